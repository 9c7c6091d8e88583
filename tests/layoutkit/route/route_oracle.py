"""Judges routes with KLayout's own operations and the technology's numbers; shares no code with the router."""

from __future__ import annotations

import klayout.db as kdb


def box(x1, y1, x2, y2):
    return kdb.Box(x1, y1, x2, y2)


def terminal_region(technology, nets, layer):
    region = kdb.Region()
    for net in nets:
        for terminal in net.terminals:
            if technology.conductor(terminal.layer).name == layer:
                region.insert(terminal.box)
    return region


def net_metal(technology, net, routed, fixed=()):
    """Return layer name -> merged region of one net: its route, terminals and fixed metal."""
    regions = {c.name: terminal_region(technology, [net], c.name) for c in technology.conductors}
    for layer, rect in routed.metal:
        regions[layer].insert(kdb.Box(*rect))
    for layer, shape, owner in fixed:
        if owner == net.name and layer in regions:
            regions[layer].insert(shape)
    return {name: region.merged() for name, region in regions.items()}


def net_cuts(technology, routed):
    """Return cut name -> region, each cut drawn from the technology's own size and the via's array."""
    regions = {cut.name: kdb.Region() for cut in technology.cuts}
    for via in routed.vias:
        cut = next(c for c in technology.cuts if c.name == via.cut)
        pitch = -(-(cut.size + cut.space) // 10) * 10
        for column in range(via.columns):
            for row in range(via.rows):
                x = via.x - ((via.columns - 1) * pitch + cut.size) // 2 + column * pitch
                y = via.y - ((via.rows - 1) * pitch + cut.size) // 2 + row * pitch
                regions[via.cut].insert(kdb.Box(x, y, x + cut.size, y + cut.size))
    return regions


def pieces(technology, metal, cuts):
    """Return the number of connected pieces and a function from (layer, box) to the piece it lies on."""
    polygons = [(layer, polygon) for layer, region in metal.items() for polygon in region.each()]
    parent = list(range(len(polygons)))

    def root(i):
        while parent[i] != i:
            i = parent[i]
        return i

    for cut in technology.cuts:
        for shape in cuts[cut.name].each():
            touched = [
                i
                for i, (layer, polygon) in enumerate(polygons)
                if layer in {cut.below, cut.above} and not (kdb.Region(polygon) & kdb.Region(shape)).is_empty()
            ]
            for other in touched[1:]:
                parent[root(other)] = root(touched[0])

    def piece_of(layer, shape):
        region = kdb.Region()
        region.insert(shape)
        for i, (at, polygon) in enumerate(polygons):
            if at == layer and not (kdb.Region(polygon) & region).is_empty():
                return root(i)
        return None

    return len({root(i) for i in range(len(polygons))}), piece_of


def faults_of_pieces(technology, net, routed, fixed):
    """Return what is wrong with the pieces of a net: several that join terminals, or metal that joins none."""
    metal = net_metal(technology, net, routed, fixed)
    _, piece_of = pieces(technology, metal, net_cuts(technology, routed))
    homes = {piece_of(technology.conductor(t.layer).name, t.box) for t in net.terminals}
    own = {piece_of(layer, shape) for layer, shape, owner in fixed if owner == net.name and layer in metal}
    drawn = {piece_of(layer, kdb.Box(*rect)) for layer, rect in routed.metal}
    found = [f"{net.name}: metal that joins no terminal"] * len(drawn - homes - own)
    joined_before = len({t.group or i for i, t in enumerate(net.terminals)})
    if len(homes) != 1 and joined_before > 1 and not all(t.group for t in net.terminals):
        found.append(f"{net.name}: {len(homes)} pieces")
    return found


def faults(technology, nets, result, fixed=(), area=None):  # noqa: PLR0912 - one list of everything that can be wrong
    """Return every way in which a result is wrong, as texts; failed nets count only through what they draw."""
    found = []
    by_name = {net.name: net for net in nets}
    all_metal = {c.name: kdb.Region() for c in technology.conductors}
    all_cuts = {c.name: kdb.Region() for c in technology.cuts}
    per_net = {}
    for routed in result.nets:
        net = by_name[routed.name]
        metal, cuts = net_metal(technology, net, routed, fixed), net_cuts(technology, routed)
        per_net[net.name] = metal
        if routed.success:
            found += faults_of_pieces(technology, net, routed, fixed)
        elif routed.metal or routed.vias or not routed.reason:
            found.append(f"{net.name}: failed but draws, or says no reason")
        for layer, region in metal.items():
            all_metal[layer] += region
        for name, region in cuts.items():
            all_cuts[name] += region
        if area is not None:
            for layer, rect in routed.metal:
                if not kdb.Box(*rect).inside(area):
                    found.append(f"{net.name}: {layer} {rect} leaves the area")
    for layer, shape, owner in fixed:
        if layer in all_metal and owner not in by_name:
            all_metal[layer].insert(shape)
            per_net.setdefault(f"fixed {owner}", {c.name: kdb.Region() for c in technology.conductors})[layer].insert(
                shape
            )
        elif layer in all_cuts:
            all_cuts[layer].insert(shape)
    names = sorted(per_net)
    for i, one in enumerate(names):
        for other in names[:i]:
            found += [
                f"short {one} {other} on {c.name}"
                for c in technology.conductors
                if not (per_net[one][c.name].sized(1) & per_net[other][c.name]).is_empty()
            ]
    for c in technology.conductors:
        region = all_metal[c.name].merged()
        euclid = kdb.Region.Euclidian
        for what, pairs in (
            ("width", region.width_check(c.width, False, euclid)),
            ("space", region.space_check(c.space, False, euclid)),
        ):
            found += [f"{c.name} {what} {pair}" for pair in pairs.each()]
        if c.wide_width:
            wide = region.sized(-c.wide_width // 2).sized(c.wide_width // 2)
            gaps = region.space_check(c.wide_space, False, kdb.Region.Projection)
            near = [p for p in gaps.each() if not (wide & kdb.Region(p.bbox().enlarged(1, 1))).is_empty()]
            found += [f"{c.name} wide {p}" for p in near]
        found += [f"{c.name} area {p}" for p in region.with_area(0, c.area, False).each()]
        for rule in technology.rules:
            if rule.kind == "hole_area" and c.layer in (rule.options.get("layer"), *rule.options.get("layers", ())):
                found += [f"{c.name} hole {p}" for p in region.holes().with_area(0, rule.value, False).each()]
        found += [f"{c.name} grid {p}" for p in region.grid_check(technology.grid, technology.grid).each()]
    for cut in technology.cuts:
        region = all_cuts[cut.name].merged()
        found += [f"{cut.name} space {p}" for p in region.space_check(cut.space, False, kdb.Region.Euclidian).each()]
        for shape in region.each():
            b = shape.bbox()
            if (b.width(), b.height()) != (cut.size, cut.size):
                found.append(f"{cut.name} size {shape}")
            for layer, side, end in (
                (cut.below, cut.enclose_below, cut.enclose_below_end),
                (cut.above, cut.enclose_above, cut.enclose_above_end),
            ):
                metal = all_metal[layer].merged()
                along_x, along_y = b.enlarged(max(side, end), side), b.enlarged(side, max(side, end))
                if not any((kdb.Region(b2) - metal).is_empty() for b2 in (along_x, along_y)):
                    found.append(f"{cut.name} at {b} not enclosed by {layer}")
    return found
