"""Findings on room and wells: how full the layout is, its shape, rings that could be one, distances to taps."""

from __future__ import annotations

from collections import defaultdict
from itertools import compress
from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.drc.check import Options, check
from layoutkit.errors import listed
from layoutkit.review.finding import Unjudged
from layoutkit.review.stage_order import is_logic
from layoutkit.review.subject import box_around, gap_between, longer_side, names_of, region_of, turned, wire_length
from layoutkit.technology.expressions import names, parse

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from layoutkit.review.finding import Remark
    from layoutkit.review.matched_roles import MatchedDevices
    from layoutkit.review.subject import PlacedDevice, Subject
    from layoutkit.technology.technology import Cut, Technology

    Devices = list[PlacedDevice]

_CLOSE_UM = 0.5  # gaps up to this within what is used are used [um]
_CELL_UM = 10.0  # height of the cells of a library at most [um]
_BARS_UM = 2.0  # gaps up to this between the bars of a resistor are used [um]
_LEAST_DEVICES = 8  # fewest for which room is judged; a device of several channels counts as two
_MOST_GAPS = 4  # places without a device that are looked for
_BESIDE_UM = 2.0  # from a transistor to its dummies [um]
_FITS_UM = 2.0  # sides of a place inside a ring that a device would fit into [um]
_ROW_UM = 35.0  # hand layouts, too, have rows of up to this length [um]
_WIDE_RATIO = 10  # channels that are at most so many times as wide as long have a gate of little resistance
_HALF = 0.5  # share of a side of the layout beyond which the width of one channel decides that side [1]
_WELLS_UM, _FEW_IN_A_WELL = 10.0, 4  # wells that could be one: how near to each other they lie, with how many devices
_MOST_OF_ALL = 0.5  # share of the layout from which on a ring is one around all blocks [1]
_MANY_RINGS = 13  # so many rings that are nearly empty are a must [1]
_FEWEST_RINGS = 2  # in a ring around all blocks, with that ring itself
_RESISTIVE_OHM = 1.0  # a local interconnect has more than this a square, metal less [ohm]
_RING_UM = 15.0  # shorter rings are hardly resistive [um]
_NEIGHBOUR_UM = 5.0  # rings this near to each other could be one [um]


def room(subject: Subject) -> Iterator[Remark]:
    """Yield how the room of the layout is used."""
    asked = subject.asked.outline if subject.asked is not None else ()
    if any(each.width or each.height for each in asked) or not subject.placed:
        return
    few = _are_few(subject)
    used, core = _used(subject)
    if not few:
        yield from _fullness(subject, used, core)
    empty = _largest_empty(subject)
    share = empty.area() / subject.box.area()
    why = f"an empty rectangle of {_size(subject, empty)}, {100 * share:.3g} % of the layout"
    found = subject.finding("room.few" if few else "room.empty", share, why, where=empty)
    if found and found[0].severity == "must":
        yield from found
        return
    yield from _gaps(subject, used, found)


def _gaps(subject: Subject, used: kdb.Region, empty: list[Remark]) -> list[Remark]:
    """Return the largest place that no device takes, whatever wires cross it, else ``empty``, else several together."""
    taken, least, places = used.dup(), subject.technology.to_dbu(_FITS_UM), list[kdb.Box]()
    for _ in range(_MOST_GAPS):
        place = largest_empty(subject.box, taken, steps=96)
        taken.insert(place)
        places += [place] if min(place.width(), place.height()) >= least else []
    if not places:
        return empty
    places.sort(key=lambda place: -place.area())
    first, *others = [place for place in places if 3 * place.area() >= places[0].area()]
    share, whole = (sum(place.area() for place in each) / subject.box.area() for each in ([first], places))
    more = [f"{_size(subject, p)} at ({subject.um(p.left):.3g}, {subject.um(p.bottom):.3g})" for p in others]
    size = _size(subject, first) + (f"; others: {listed(more)}" if more else "")
    why = f"one place without a device takes {100 * share:.3g} % of the layout: {size}"
    found = subject.finding("room.gap", share, why, where=first)
    why = f"{len(places)} places without a device take {100 * whole:.3g} % of the layout, the largest {size}"
    return found or empty or subject.finding("room.gaps", whole, why, where=first)


def _size(subject: Subject, place: kdb.Box) -> str:
    return f"{subject.um(place.width()):.3g} x {subject.um(place.height()):.3g} um"


def _are_few(subject: Subject) -> bool:
    """Return whether a layout has so few devices that it cannot be filled as others are."""
    return sum(min(2, len(placed.boxes)) for placed in subject.placed) < _LEAST_DEVICES


def _is_logic(subject: Subject) -> bool:
    """Return whether a layout is a cell of a library, whose height is given: low, and nothing but logic gates."""
    is_low = min(subject.box.width(), subject.box.height()) <= subject.technology.to_dbu(_CELL_UM)
    return is_low and all(p.device.is_mos for p in subject.placed) and all(map(is_logic, subject.stages))


def _fullness(subject: Subject, used: kdb.Region, core: kdb.Box) -> list[Remark]:
    """Return whether devices and wells use too little of the core or, if not, of the layout."""
    share, mos = (used & kdb.Region(core)).area() / core.area(), any(p.device.is_mos for p in subject.placed)
    why = f"devices and wells use {100 * share:.3g} % of the core"
    packed = subject.finding("room.used", share, why, where=core, must=mos)  # dummies between resistors are no well
    whole = used.area() / subject.box.area()
    return packed or subject.finding(
        "room.box", whole, f"devices and wells use {100 * whole:.3g} % of the layout, wires the rest", where=subject.box
    )


def shape(subject: Subject) -> list[Remark]:
    """Return whether the layout exceeds the requested outline or, if none is requested, is too long."""
    box = subject.box
    sizes = {
        "width": subject.um(box.width()),
        "height": subject.um(box.height()),
        "aspect": longer_side(box) / min(box.width(), box.height()),
    }
    asked = {
        name: getattr(each, name)
        for each in (subject.asked.outline if subject.asked is not None else ())
        for name in sizes
        if getattr(each, name)
    }
    if asked:
        name = max(asked, key=lambda each: sizes[each] / asked[each])
        why = f"the layout has {name} {sizes[name]:.3g}, at most {asked[name]:.3g} was requested"
        return subject.finding("room.asked", sizes[name] / asked[name], why, where=box)
    if _are_few(subject) or _is_logic(subject):
        return []
    return subject.finding(
        "room.aspect", sizes["aspect"], f"the layout is {sizes['aspect']:.3g} times as long as it is wide", where=box
    )


def _used(subject: Subject) -> tuple[kdb.Region, kdb.Box]:
    """Return the area of wells, diffusion, taps, poly and plates with what rings enclose, and the box around it.

    A ring around most of the layout with further rings inside is no block.
    """
    roles = ("nwell", "pwell", "deep_nwell", "active", "tap", "poly")
    every, gap = kdb.Region(), subject.technology.to_dbu(_BARS_UM) // 2
    for role in roles:
        every += subject.role(role)
    for spec in subject.technology.passives.values():
        if "plate" in spec.parts:
            every += subject.layer(spec.parts["plate"])
    bars: dict[str, list[kdb.Box]] = defaultdict(list)  # of a bank with the gaps between them
    for placed in subject.placed:
        if placed.device.type == "resistor":
            bars[placed.device.model] += placed.boxes
    for boxes in bars.values():
        every += region_of(box.enlarged(gap, gap) for box in boxes).merged().sized(-gap)
    half = subject.technology.to_dbu(_CLOSE_UM) // 2
    closed = every.merged().sized(half).merged().sized(-half)
    taken, most = kdb.Region(), subject.box.area() * _MOST_OF_ALL
    rings = [ring.bbox().center() for ring in subject.taps.each() if ring.holes()]
    for piece in closed.each():
        holes = [kdb.Polygon(list(piece.each_point_hole(number))) for number in range(piece.holes())]
        around = [hole for hole in holes if hole.area() > most and sum(map(hole.inside, rings)) > _FEWEST_RINGS]
        taken += kdb.Region(piece) + kdb.Region([hole for hole in holes if hole not in around])
    return taken.merged(), every.bbox()


def _largest_empty(subject: Subject) -> kdb.Box:
    """Return the largest rectangle without any shape on a mask. [dbu]"""
    drawn = kdb.Region()
    for spec in subject.technology.layers.values():
        if spec.on_a_mask:
            drawn += subject.layer(spec.name)
    return largest_empty(subject.box, drawn)


def long_rows(subject: Subject, groups: Sequence[MatchedDevices]) -> Iterator[Remark]:
    """Yield the matched groups and devices of several channels, bars or plates that lie in one long row.

    Those that all lie in larger groups, which are blocks, are no row: the middle of two such blocks is none.
    """
    grouped = {placed.index for group in groups for placed in group.devices}
    boxes = {group.devices: box_around(p.box for p in group.devices) for group in groups if not group.spread}
    boxes |= {(p,): p.box for p in subject.placed if p.index not in grouped}
    aspects = {devices: longer_side(box) / min(box.width(), box.height()) for devices, box in boxes.items()}
    limit, reach = subject.limits["room.row"], subject.technology.to_dbu(_BESIDE_UM)
    folded = {p.index for devices, aspect in aspects.items() if not limit.beyond(aspect) for p in devices}
    for devices, aspect in aspects.items():
        box, parts = boxes[devices], [each for placed in devices for each in placed.boxes]
        if len(parts) < 2 or subject.um(longer_side(box)) <= _ROW_UM or folded.issuperset(p.index for p in devices):
            continue
        if 2 * max(map(longer_side, parts)) > longer_side(box):  # one part is that long, and cannot be folded
            continue
        if region_of(part.enlarged(reach) for part in parts).merged().count() > 1:
            continue  # other things lie between
        why = (
            f"{names_of(devices)} fill{'s' * (len(devices) == 1)} a row of {subject.um(longer_side(box)):.3g} um, "
            f"{aspect:.3g} times as long as wide"
        )
        yield from subject.finding("room.row", aspect, why, devices=devices, cause="long rows")


def wide_channels(subject: Subject) -> list[Remark]:
    """Return the transistors with a channel too wide for one gate and a strap at each side, or for the layout."""
    limit, sides = subject.limits["room.channel"], (subject.box.height(), subject.box.width())
    part = 2.0 if _are_few(subject) else _HALF
    wide: dict[PlacedDevice, float] = {}
    for placed, finger in ((p, f) for p in subject.placed if p.device.is_mos for f in p.fingers):
        side = subject.um(sides[finger.around is not None and finger.around.vertical])
        if limit.beyond(finger.w_um) and finger.w_um > min(_WIDE_RATIO * finger.l_um, part * side):
            wide[placed] = max(finger.w_um, wide.get(placed, 0.0))
    devices, most = list(wide), max(wide.values(), default=0.0)
    why, share = f"channels of {names_of(devices)} are up to {most:.3g} um wide", most / subject.um(max(sides))
    why += f", {100 * share:.0f} % of the longer side of the layout" * (share > part)
    why += ": gate and straps are long and thin"
    return subject.finding("room.channel", most, why, devices=devices)


def empty_rings(subject: Subject) -> list[Remark]:
    """Return the rings that have empty room for a device inside."""
    limit, found = subject.limits["room.ring"], list[tuple[float, kdb.Box]]()
    half = subject.technology.to_dbu(_CLOSE_UM) // 2
    bipolar = [placed.box for placed in subject.placed if placed.device.type in {"npn", "pnp"}]  # cells with a ring
    bipolar += subject.idle_passives("npn") + subject.idle_passives("pnp")
    drawn = subject.role("active") + subject.role("tap") + subject.role("poly")
    drawn += region_of(box for p in subject.placed if p.device.type == "resistor" for box in p.boxes)
    for hole in (hole for net in subject.nets for _, hole in rings_of(subject, net)):
        inside = (drawn & kdb.Region(hole)).sized(half).merged().sized(-half)
        if (
            inside.is_empty()
            or any(box.inside(hole.bbox()) for box in bipolar)
            or limit.beyond(1 - inside.area() / hole.area()) is None
        ):
            continue  # quickly decided for most rings
        taken = inside + (kdb.Region(hole.bbox()) - kdb.Region(hole))
        empty = largest_empty(hole.bbox(), taken, steps=48)
        if subject.um(min(empty.width(), empty.height())) >= _FITS_UM:
            found.append((empty.area() / hole.area(), empty))
    found = [each for each in found if limit.beyond(each[0])]
    most, place = max(found, key=lambda each: (each[0], each[1].left, each[1].bottom), default=(0.0, kdb.Box()))
    why = f"{100 * most:.3g} % of the inside of a ring is one empty rectangle of "
    why += f"{subject.um(place.width()):.3g} x {subject.um(place.height()):.3g} um"
    why += f", the worst of {len(found)} rings" * (len(found) > 1)
    return subject.finding("room.ring", most, why, where=place)


def wide_rings(subject: Subject) -> list[Remark]:
    """Return whether the rings around transistors are too large for what is in them."""
    half, whole, inside = subject.technology.to_dbu(_CLOSE_UM), kdb.Region(), kdb.Region()
    mos, count = [placed for placed in subject.placed if placed.device.is_mos], 0
    for box, hole in (ring for net in subject.nets for ring in rings_of(subject, net)):
        if any(hole.inside(placed.box.center()) for placed in mos):
            whole.insert(box)
            inside.insert(hole)
            count += 1
    drawn = subject.role("active") - subject.taps + subject.role("poly")
    drawn += region_of(box for placed in subject.placed if not placed.device.is_mos for box in placed.boxes)
    filled = drawn.sized(half).merged().sized(-half) & inside
    share = filled.area() / whole.merged().area() if count else 1.0
    why = f"devices fill {100 * share:.3g} % of the area of the {count} ring{'s' * (count > 1)} around them"
    return subject.finding("rings.share", share, why, where=whole.bbox(), must=count >= _MANY_RINGS)


def rings(subject: Subject) -> Iterator[Remark]:
    """Yield the devices with a ring of their own beside another ring of the same net."""
    near = subject.technology.to_dbu(_NEIGHBOUR_UM)
    for net in subject.nets:
        found = [
            (box, [p for p in subject.placed if hole.inside(p.box.center()) and not subject.is_idle(p)])
            for box, hole in rings_of(subject, net)
        ]
        beside = [
            (box, inside[0])
            for box, inside in found
            if len(inside) == 1 and inside[0].device.type not in {"npn", "pnp"}  # whose ring is part of the cell
            if any(_joins(box, inside, other, its, near) for other, its in found)
        ]
        devices, where = [placed for _, placed in beside], box_around(box for box, _ in beside)
        own = "has a ring of its own" if len(devices) == 1 else "have rings of their own"
        why = f"{names_of(devices)} {own} beside others of {net}"
        yield from subject.finding("rings", len(beside), why, where=where, devices=devices, nets=[net])


def wells_apart(subject: Subject) -> Iterator[Remark]:
    """Yield the wells of one net with few transistors each that lie beside each other and could be one.

    Where most have one device, that is a finding of ``rings``.
    """
    reach, pmos = subject.technology.to_dbu(_WELLS_UM), [p for p in subject.placed if p.device.type == "pmos"]
    for net in subject.nets:
        boxes = [piece.bbox() for piece in subject.shapes(net, "nwell").each()]
        inside = [[p for p in pmos if box.contains(p.box.center())] for box in boxes]
        wells = [(box, own) for box, own in zip(boxes, inside, strict=True) if own]
        few = [(box, own) for box, own in wells if len(own) <= _FEW_IN_A_WELL]
        few = [(box, own) for box, own in few if any(o is not box and gap_between(o, box) <= reach for o, _ in wells)]
        devices, single = [placed for _, own in few for placed in own], sum(len(own) == 1 for _, own in few)
        why = f"{len(few)} wells of {net}, each within {_WELLS_UM:g} um of another one, hold only {len(devices)} "
        why += f"transistors: {names_of(devices)}"
        yield from subject.finding(
            "rings.wells", 0 if 2 * single >= len(few) else len(few), why, devices=devices, nets=[net]
        )


def single_tap_contacts(subject: Subject) -> list[Remark]:
    """Return the taps that one contact alone joins to their net."""
    taps, contacts = subject.taps, subject.role("contact")
    unit = min((each.area() for each in contacts.each()), default=1)
    few = taps.not_interacting(contacts, 2)  # of which a long contact counts as several
    found = [tap.bbox() for tap in few.each() if contacts.interacting(kdb.Region(tap)).area() < 2 * unit]
    count = len(found)
    why = f"{count} taps of wells and substrate have one contact each"
    return subject.finding("well-tap.contacts", count, why, where=box_around(found))


def bare_rings(subject: Subject) -> Iterator[Remark]:
    """Yield the long rings that have a local interconnect of high resistance but hardly any metal over it."""
    technology = subject.technology
    resistive = (technology.conductors[0].sheet_ohm or 0.0) > _RESISTIVE_OHM
    rings = [(net, ring) for net in subject.nets for layer in ("n_tap", "p_tap") if resistive
             for ring in subject.shapes(net, layer).each() if ring.holes()]  # fmt: skip
    for net, ring in rings:
        metal, long = kdb.Region(), subject.um(wire_length(ring))
        for conductor in technology.conductors[1:]:
            metal += subject.shapes(net, conductor.name) & kdb.Region(ring)
        bare = 1 - metal.merged().area() / ring.area() if long > _RING_UM else 0.0
        why = f"{100 * bare:.3g} % of the ring of {net}, {long:.3g} um long, has no metal of that net over "
        why += technology.conductors[0].name
        yield from subject.finding("well-tap.metal", bare, why, where=ring.bbox(), nets=[net], cause="bare rings")


def _joins(box: kdb.Box, alone: Devices, other: kdb.Box, its: Devices, near: int) -> bool:
    """Return whether a device could be in the ring beside its own: that of one, or, if a transistor, a larger one."""
    larger = alone[0].device.is_mos and other.area() > box.area()
    return bool(its) and its != alone and (len(its) == 1 or larger) and gap_between(box, other) <= near


def rings_of(subject: Subject, net: str) -> Iterator[tuple[kdb.Box, kdb.Polygon]]:
    """Yield the rings of taps of a net: its box and what each encloses."""
    for layer in ("n_tap", "p_tap"):
        for ring in subject.shapes(net, layer).each():
            for number in range(ring.holes()):
                yield ring.bbox(), kdb.Polygon(list(ring.each_point_hole(number)))


def domains(subject: Subject) -> Iterator[Remark]:
    """Yield the supply domains, where there are several, whose transistors no ring of their own encloses."""
    domains: dict[str, dict[str, list[PlacedDevice]]] = defaultdict(lambda: defaultdict(list))
    for placed in subject.placed:
        bulk = placed.device.terminals.get("b")
        if placed.device.is_mos and bulk in subject.supplies:
            domains[placed.device.type][str(bulk)].append(placed)
    for wells in domains.values():
        for net, devices in wells.items() if len(wells) > 1 else ():
            bare = _outside(devices, [hole for _, hole in rings_of(subject, net)])
            why = (
                f"no ring of {net} encloses {names_of(bare)}, which {'lies' if len(bare) == 1 else 'lie'} "
                "beside another supply domain"
            )
            yield from subject.finding("well-tap.domain", len(bare), why, devices=bare, nets=[net])


def floating_bodies(subject: Subject) -> Iterator[Remark]:
    """Yield the wells and the substrate that nothing but bodies of transistors is on, and no port leads to."""
    for net in subject.nets:
        ends = [(subject.by_name.get(each.device), each.terminal) for each in subject.circuit.nets[net]]
        devices = [p for p, terminal in ends if p is not None and p.device.is_mos and terminal == "b"]
        if net not in subject.circuit.ports and len(devices) == len(ends):
            why = f"{net}, the body of {names_of(devices)}, is joined to nothing else: it floats"
            yield from subject.finding("well-tap.floating", len(devices), why, devices=devices, nets=[net])
    wells, taps = subject.role("nwell"), kdb.Region()
    for number, drawn in subject.extraction.nets.items():
        if drawn.labels or subject.found.nets[number] in subject.circuit.nets:  # or a port for that well alone
            taps += subject.extraction.merged(number, "n_tap")
    for deep in subject.role("deep_nwell").each():  # that of a bipolar transistor is its collector
        inside = [placed for placed in subject.placed if deep.inside(placed.box.center())]
        whole = kdb.Region(deep) + wells.interacting(kdb.Region(deep))
        if inside and all(placed.device.is_mos for placed in inside) and (taps & whole).is_empty():
            why = f"the deep n well around {names_of(inside)} has no tap: it floats"
            yield from subject.finding("well-tap.floating", len(inside), why, where=deep.bbox(), devices=inside)


def _outside(devices: Sequence[PlacedDevice], holes: Sequence[kdb.Polygon]) -> list[PlacedDevice]:
    """Return the devices with a part that lies in none of the holes."""
    return [p for p in devices if not all(any(hole.inside(b.center()) for hole in holes) for b in p.boxes)]


def unguarded(subject: Subject, groups: Sequence[MatchedDevices]) -> list[Remark]:
    """Return the transistors of pairs and mirrors that no ring of taps encloses."""
    holes = [hole for net in subject.nets for _, hole in rings_of(subject, net)]
    strict = {p.index: p for g in groups if g.strict for p in g.devices if p.device.is_mos}
    bare = _outside(list(strict.values()), holes)
    lie = "lies" if len(bare) == 1 else "lie"
    why = f"{names_of(bare)}, which must match, {lie} in no ring of taps"
    return subject.finding("well-tap.ring", len(bare), why, devices=bare)


def well_tap(subject: Subject) -> Iterator[Remark]:
    """Yield what is too far from a tap, by the process's own rules of latch-up."""
    rules = [rule.id for rule in subject.technology.rules if rule.kind == "tap_distance"]
    if not rules:
        subject.unjudged.append(
            Unjudged("well-tap", f"{subject.technology.name} states no distance to taps", matters=True)
        )
        return
    for broken, box in _broken(subject, rules):
        yield from subject.finding("well-tap", 1.001, broken, where=box)


def cut_sizes(subject: Subject) -> Iterator[Remark]:
    """Yield contacts and vias that are not of the one size that the process etches."""
    technology = subject.technology
    cuts = {
        cut.layer for cut in (technology.contact, *technology.cuts) if _of_other_sizes(subject.layer(cut.layer), cut)
    }
    if not cuts:
        return
    sized = [rule for rule in technology.rules if rule.kind in {"exact_size", "max_width"}]
    rules = [rule.id for rule in sized if _layers(rule.options["layer"], technology) & cuts]
    for broken, box in _broken(subject, rules):
        yield from subject.finding("single-cut.size", 1, f"cuts cannot be made: {broken}", where=box)


def _of_other_sizes(shapes: kdb.Region, cut: Cut) -> bool:
    """Return whether a shape is no square of the cut's size; the rules say which of these may be drawn."""
    return any(
        not found.is_empty() for found in (shapes.with_bbox_min(cut.size, True), shapes.with_bbox_max(cut.size, True))
    )


def _layers(text: str, technology: Technology) -> set[str]:
    """Return the drawn layers that an operand of a rule is made of."""
    found = set()
    for name in names(parse(text)):
        derived = technology.derived.get(name)
        found |= _layers(derived, technology) if derived else {name}
    return found


def _broken(subject: Subject, rules: Sequence[str]) -> Iterator[tuple[str, kdb.Box]]:
    """Yield what the layout says against rules of the process, and the first place of each."""
    options = Options(rule_ids=rules, chosen_rules=True, max_violations=20)
    report = check(subject.cell.layout(), subject.cell, subject.technology, options).summary()
    for rule in report["violations"]:
        place = rule["locations"][0]
        box = kdb.DBox(*(place.get("box") or (place["x"], place["y"], place["x"], place["y"])))
        places = "1 place breaks" if rule["count"] == 1 else f"{rule['count']} places break"
        why = f"{places} {rule['rule_id']}: {rule['rule_description']}"
        yield why, box.to_itype(subject.technology.dbu_um)


def largest_empty(area: kdb.Box, drawn: kdb.Region, steps: int = 128) -> kdb.Box:
    """Return the largest rectangle in an area without any shape, by the largest rectangle under a histogram.

    Args:
        area: Where to look. [dbu]
        drawn: What is in the way. [dbu]
        steps: Strips that both sides are divided into; a strip that a shape enters is taken.
    """
    width, height = max(1, area.width() // steps), max(1, area.height() // steps)
    columns, rows = -(-area.width() // width), -(-area.height() // height)
    taken = drawn.rasterize(area.p1, kdb.Vector(width, height), columns, rows)
    best, found, free = 0, (0, 0, 0, 0), [0] * columns
    for row in range(rows):
        free = [0 if shape else tall + 1 for shape, tall in zip(taken[row], free, strict=True)]
        ends = row + 1 == rows or any(compress(taken[row + 1], free))  # else each rectangle goes on
        stack, last = list[tuple[int, int]](), -1
        for column, tall in enumerate([*free, 0] if ends else ()):
            if tall == last:  # the rectangle goes on
                continue
            last, start = tall, column
            while stack and stack[-1][1] >= tall:
                start, depth = stack.pop()
                size = depth * height * (column - start) * width
                if size > best:
                    best, found = size, (start, row - depth + 1, column, row + 1)
            stack.append((start, tall))
    if not best:
        return kdb.Box(area.p1, area.p1)
    left, bottom = area.left + found[0] * width, area.bottom + found[1] * height
    right, top = min(area.right, area.left + found[2] * width), min(area.top, area.bottom + found[3] * height)
    place = kdb.Box(left, bottom, right, top)
    for upright in (False, True):  # up to the nearest shapes at both sides, left and right first
        its, whole = turned(place, upright=upright), turned(area, upright=upright)
        sides = (
            kdb.Box(whole.left, its.bottom, its.left, its.top),
            kdb.Box(its.right, its.bottom, whole.right, its.top),
        )
        before, after = (
            turned((drawn & kdb.Region(turned(side, upright=upright))).bbox(), upright=upright) for side in sides
        )
        low, high = whole.left if before.empty() else before.right, whole.right if after.empty() else after.left
        place = turned(kdb.Box(low, its.bottom, high, its.top), upright=upright)
    return place
