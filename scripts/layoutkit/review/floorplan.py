"""Findings on the floorplan: supply rails, the devices next to them, and ports."""

from __future__ import annotations

from collections import defaultdict
from math import inf
from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.review.finding import Spot, Unjudged
from layoutkit.review.subject import HEADS_UM, box_around, kept, longer_side, names_of, region_of, turned

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from layoutkit.circuit.circuit import Device
    from layoutkit.circuit.supplies import Supplies
    from layoutkit.review.finding import Remark
    from layoutkit.review.subject import PlacedDevice, Subject

_OFF_HEIGHT_UM = 7.0  # an input so far along the edge from its device is not judged [um]
_RAIL_LENGTH = 0.5
"""Share of the layout's width or height from which on a straight piece of a supply is a rail. [1]"""
_RAIL_ASPECT = 4  # a rail is at least so many times as long as it is wide
_EDGE_UM = 0.5  # metal this near to the edge of the cell is at the edge [um]
_PORT_UM = 1.0  # a port this near to the edge is joined there; less is called no fault by engineers [um]
_OUTSIDE_UM = 0.1  # a signal this far outside the rails is within them; less is called noise by an engineer [um]
_FRAMED = 0.5  # share of the transistors' height from which on rails frame them
_FEWEST_CELLS = 3  # equal cells from which on they are an array
_CHANNELS = 8  # on a supply; the rail of fewer may be as many times longer before it has to be joined at several places
_TIE_UM = 5.0  # cuts farther apart than this are different joints of a rail [um]
_AT_A_RAIL_UM = 5.0  # a transistor this near to a rail across the cell is at it, wherever that lies [um]
_ACROSS = 0.9  # share of the layout's width from which on a rail crosses it; less may be a ring
_LEAST_AT_RAILS = 6  # transistors from which their share at the right rail is judged


@kept
def rails_of(subject: Subject, net: str, *, upright: bool = False) -> list[tuple[str, kdb.Box]]:
    """Return the straight pieces of a supply that are long enough for a rail, and conductors, from below (the left).

    They are horizontal, or vertical if ``upright``.
    """
    core = turned(subject.core, upright=upright)
    cut = kdb.Polygon.TD_vtrapezoids if upright else kdb.Polygon.TD_htrapezoids
    found = []
    for conductor, region in subject.metal(net).items():
        least = subject.technology.conductor(conductor).width
        for polygon in region.each():
            for piece in polygon.decompose_trapezoids(cut):
                box = turned(piece.bbox(), upright=upright)
                long = box.width() >= max(_RAIL_LENGTH * core.width(), _RAIL_ASPECT * box.height())
                if long and min(box.width(), box.height()) >= least:
                    found.append((conductor, box))
    found.sort(key=lambda each: (each[1].bottom, each[1].top, each[1].left))
    return [(conductor, turned(box, upright=upright)) for conductor, box in found]


def _side_of_power(subject: Subject) -> int:
    """1 if power has the highest rail about the transistors and ground the lowest, -1 the other way, 0 for neither.

    Where the pieces near the transistors do not tell, those of the whole layout do.
    """
    near = subject.core.enlarged(subject.core.width() // 2, subject.core.height() // 2)
    return next((side for area in (near, subject.box) if (side := _side_within(subject, area))), 0)


def _side_within(subject: Subject, area: kdb.Box, *, upright: bool = False) -> int:
    ends = []
    for nets in (subject.supplies.power, subject.supplies.ground):
        known = [net for net in nets if net in subject.number]
        rails = [rail for net in known for _, rail in rails_of(subject, net, upright=upright)]
        rails = [turned(rail, upright=upright) for rail in rails if area.contains(rail.center())]
        if not rails:
            return 0
        ends.append((min(rail.bottom for rail in rails), max(rail.top for rail in rails)))
    power, ground = ends
    if power[1] > ground[1] and power[0] > ground[0]:
        return 1
    return -1 if power[1] < ground[1] and power[0] < ground[0] else 0


def rail_side(subject: Subject) -> Iterator[Remark]:
    """Yield the stages that lie upside down between their rails, and power devices at the wrong rail."""
    supplies = subject.supplies
    found, upright = _outer_rails(subject)
    up = 0 if upright or not _frame(found, subject.core) else _side_of_power(subject)
    if not up:
        if supplies.power and supplies.ground:
            reason = "power and ground are not at opposite sides of the layout"
            matters = any(subject.is_full(placed) for placed in subject.placed)
            subject.unjudged.append(Unjudged("rail-side", reason, matters))
        return
    for stage in subject.stages:
        wrong: dict[int, PlacedDevice] = {}
        most = 0
        one_way = [placed for placed in stage if placed.id not in subject.both_ways]
        for above, below in _in_series(one_way, supplies):
            depth = below.box.bottom - above.box.top if up > 0 else above.box.bottom - below.box.top
            if depth >= 0:
                wrong |= {above.index: above, below.index: below}
                most = max(most, depth + 1)
        turned_over = list(wrong.values())
        if turned_over:
            kind = "rail-side" if any(map(subject.is_full, turned_over)) else "rail-side.order"
            why = f"{names_of(turned_over)}: upside down; "
            why += "devices that belong nearer to ground lie nearer to the power rail"
            yield from subject.finding(kind, subject.um(most), why, devices=turned_over, cause="upside down")
    yield from _wrong_rails(subject, up)
    middle = (subject.box.bottom + subject.box.top) / 2
    for placed in subject.placed:
        if subject.is_full(placed):
            ends = {placed.device.terminals["s"], placed.device.terminals["d"]}
            if not ends & supplies.nets:
                continue
            own = up if ends & set(supplies.power) else -up
            off, cure = subject.um(max(0.0, own * (middle - placed.centre[1]))), "place power devices at their rail"
            why = f"{placed.id} carries much current and lies at the other rail than the one that feeds it"
            yield from subject.finding("rail-side", off, why, what_to_do=cure, devices=[placed])


def _wrong_rails(subject: Subject, up: int) -> list[Remark]:
    """Return whether many transistors whose source is on a rail lie nearer to the other one, else whether any is far.

    Where stages have several powers, each transistor is judged within those of its own one.
    """
    sides = {**dict.fromkeys(subject.supplies.power, up), **dict.fromkeys(subject.supplies.ground, -up)}
    own = [p for p in subject.placed if p.device.is_mos and p.device.terminals["s"] in sides]
    stacked = _stacked(subject)
    own = [placed for placed in own if not subject.is_idle(placed) and placed.id not in stacked]
    rails = {net: [rail for _, rail in rails_of(subject, net)] for net in sides if net in subject.number}

    def away(placed: PlacedDevice, side: int) -> float:
        """Return how far a transistor is from the nearest rail of a side that it lies below, above or at. [dbu]"""
        near = (rail for net, found in rails.items() if sides[net] == side for rail in found)
        near = (each for each in near if each.left < placed.box.right and placed.box.left < each.right)
        return min((max(each.bottom - placed.box.top, placed.box.bottom - each.top) for each in near), default=inf)

    wrong = [p for p, middle in _middles(subject, own) if sides[p.device.terminals["s"]] * (p.centre[1] - middle) < 0]
    own_side = {placed: sides[placed.device.terminals["s"]] for placed in wrong}
    wrong = [placed for placed, side in own_side.items() if not away(placed, side) < away(placed, -side)]
    wrong.sort(key=lambda placed: placed.index)
    lie = "lies" if len(wrong) == 1 else "lie"
    why = f"{len(wrong)} of {len(own)} transistors at a rail {lie} nearer to the other one: {names_of(wrong)}"
    share = len(wrong) / len(own) if len(own) >= _LEAST_AT_RAILS else 0.0
    found = subject.finding("rail-side.share", share, why, devices=wrong)
    return found or _far_from_rails(subject, [placed for placed in own if not subject.is_full(placed)], sides)


def _stacked(subject: Subject) -> set[str]:
    """Return the devices of equal cells that lie in rows above each other, each with rails of its own."""
    arrays: dict[str, list[kdb.Box]] = defaultdict(list)
    for instance in subject.circuit.subcircuits:
        arrays[instance.cell].append(box_around(placed.box for placed in subject.devices(instance.devices)))
    rows = {
        cell
        for cell, boxes in arrays.items()
        if len(boxes) >= _FEWEST_CELLS and max(box.bottom for box in boxes) >= min(box.top for box in boxes)
    }
    return {name for each in subject.circuit.subcircuits if each.cell in rows for name in each.devices}


def _far_from_rails(subject: Subject, own: Sequence[PlacedDevice], sides: Mapping[str, int]) -> list[Remark]:
    """Return the transistors in the other half of the layout, far from the outermost rail that their source is on."""
    limit, middle, half = subject.limits["rail-side.far"], subject.box.center().y, subject.box.width() / 2
    away: dict[PlacedDevice, float] = {}
    for placed in own:
        net, box = placed.device.terminals["s"], placed.box
        rails = [rail for _, rail in rails_of(subject, net) if rail.width() >= half] if net in subject.number else []
        if rails and sides[net] * (placed.centre[1] - middle) < 0:
            outer = rails[-1].bottom - box.top if sides[net] > 0 else box.bottom - rails[0].top
            whole = [rail for rail in rails if rail.width() >= _ACROSS * subject.box.width()]
            nearest = min((max(rail.bottom - box.top, box.bottom - rail.top) for rail in whole), default=outer)
            away[placed] = (outer if subject.um(nearest) > _AT_A_RAIL_UM else nearest) / subject.box.height()
    far = [placed for placed, gap in away.items() if limit.beyond(gap)]
    most = max((away[placed] for placed in far), default=0.0)
    lie = "lies" if len(far) == 1 else "lie up to"
    why = f"{names_of(far)} {lie} {subject.um(most * subject.box.height()):.3g} um from the rail that feeds the source"
    return subject.finding("rail-side.far", most, why, devices=far)


def _middles(subject: Subject, own: Sequence[PlacedDevice]) -> Iterator[tuple[PlacedDevice, float]]:
    """Yield transistors at rails with the middle between these: of the layout, or of the stages of their power."""
    power = set(subject.supplies.power)
    part = {net: frozenset({net}) for net in power}
    of: dict[int, str] = {}  # a power of the stage that a transistor is in
    for stage in subject.stages:
        nets = {placed.device.terminals[end] for placed in stage for end in ("d", "s")} & power
        joined = frozenset[str]().union(*(part[net] for net in nets))
        part |= dict.fromkeys(joined, joined)
        of |= dict.fromkeys((placed.index for placed in stage), min(nets, default=""))
    domains: dict[frozenset[str], list[PlacedDevice]] = defaultdict(list)
    for placed in own:
        domains[part.get(of[placed.index], frozenset())].append(placed)
    several = sum(bool(each) for each in domains) > 1
    middle = subject.box.center().y
    beside = middle < subject.core.bottom or subject.core.top < middle  # all transistors, of resistors or capacitors
    kinds = [box_around(p.box for p in own if p.device.type == kind) for kind in ("nmos", "pmos")]
    apart = kinds[0].bottom > kinds[1].top or kinds[1].bottom > kinds[0].top
    whole = subject.core if beside and apart else subject.box
    for powers, devices in domains.items():
        both = several and powers and len({placed.device.type for placed in devices}) > 1
        box = box_around(placed.box for placed in devices) if both else whole
        yield from ((placed, (box.bottom + box.top) / 2) for placed in devices)


def rails(subject: Subject) -> Iterator[Remark]:
    """Yield signal wires outside the rails, and rails inside the cell; rails at the sides where none lie across."""
    found, upright = _outer_rails(subject)
    if not (_side_within(subject, subject.box, upright=True) if upright else _side_of_power(subject)):
        return
    known = subject.supplies.power + subject.supplies.ground
    reach, cell = subject.technology.to_dbu(_EDGE_UM), turned(subject.box, upright=upright)
    low = min(rails[0].bottom for rails in found.values())
    high = max(rail.top for rails in found.values() for rail in rails)
    sides = [side for rails in found.values() for rail in rails for side in (rail.left, rail.right)]
    left, right = min(sides), max(sides)  # nets left or right of all rails are ignored
    for net in subject.nets if _frame(found, turned(subject.core, upright=upright)) else ():
        boxes = [turned(region.bbox(), upright=upright) for region in subject.metal(net).values()]
        boxes = boxes if any(box.left <= right and left <= box.right for box in boxes) else []
        beyond = max((max(low - box.bottom, box.top - high) for box in boxes), default=0)
        labels = [point.x if upright else point.y for _, point, _ in subject.labels.get(net, ())]
        leaves = any(not low <= place <= high for place in labels)  # only to its port outside of the rails
        yield from subject.finding(
            "rails",
            0.0 if net in known or leaves else max(0.0, subject.um(beyond) - _OUTSIDE_UM),
            f"{net} runs {subject.um(beyond):.3g} um outside the rails",
            where=turned(box_around(boxes), upright=upright),
            nets=[net],
            cause="outside",
        )
    for net, rails in found.items():
        away = min(min(abs(r.top - cell.top), abs(r.bottom - cell.bottom)) for r in rails)
        others = [rail for name, each in found.items() if name != net for rail in each]
        ends = (min(other.bottom for other in others), max(other.top for other in others))
        outermost = rails[0].bottom <= ends[0] or max(rail.top for rail in rails) >= ends[1]
        yield from subject.finding(
            "rails",
            subject.um(max(0, away - reach)) if outermost else 0.0,
            f"the rail of {net} lies {subject.um(away):.3g} um inside the cell",
            what_to_do="rails at the edge of the cell",
            where=turned(box_around(rails), upright=upright),
            nets=[net],
        )


def rail_ties(subject: Subject) -> Iterator[Remark]:
    """Yield the rails of ports that are long, for the channels on them, and joined to these at few places."""
    for net in [net for net in subject.nets if net in subject.supplies and subject.labels.get(net)]:
        ends = [(p, end) for p, end in subject.feeds(net) if p.device.is_mos and end in p.device.kind.ends]
        channels = sum(len(placed.boxes) for placed, _ in ends if not subject.is_idle(placed))
        found = [rail for upright in (False, True) for rail in rails_of(subject, net, upright=upright)]
        for conductor, rail in found:
            ties, length = _ties(subject, net, conductor, rail), subject.um(max(rail.width(), rail.height()))
            if ties and any(rail.contains(point) for _, point, _ in subject.labels[net]):
                why = f"the rail of {net}, {length:.3g} um long, is joined to {channels} channels at only "
                why += f"{ties} place{'s' * (ties > 1)}"
                figure = min(1.0, channels / _CHANNELS) * length / ties
                yield from subject.finding("rails.tied", figure, why, where=rail, nets=[net], cause="few ties")


def _ties(subject: Subject, net: str, conductor: str, rail: kdb.Box) -> int:
    """Return the number of places, apart from each other, at which cuts or other metal join a rail to its net."""
    technology, upright = subject.technology, rail.height() > rail.width()
    cuts = [c.name for c in technology.cuts if conductor in map(technology.resolve, (c.below, c.above))]
    boxes = [each.bbox() for cut in cuts for each in subject.shapes(net, cut).each()]
    beside = (subject.shapes(net, conductor) - kdb.Region(rail)).sized(1) & kdb.Region(rail)
    joints = [box for box in boxes if box.inside(rail)] + [piece.bbox() for piece in beside.each()]
    near, places = technology.to_dbu(_TIE_UM), list[int]()
    ends = ((box.bottom, box.top) if upright else (box.left, box.right) for box in joints)
    for place in sorted(place for low, high in ends for place in (*range(low, high, near + 1), high)):
        if not places or place - places[-1] > near:
            places.append(place)
    return len(places)


def _outer_rails(subject: Subject) -> tuple[dict[str, list[kdb.Box]], bool]:
    """Return the rails of each supply, horizontal or (turned) vertical as the longest are, and which."""
    supplies = subject.supplies
    known = [net for net in supplies.power + supplies.ground if net in subject.number]
    best: tuple[float, dict[str, list[kdb.Box]], bool] = (0.0, {}, False)
    for upright in (False, True):
        every = {net: [turned(r, upright=upright) for _, r in rails_of(subject, net, upright=upright)]
                 for net in known}  # fmt: skip
        longest = sorted((max(r.width() for r in rails) for rails in every.values() if rails), reverse=True)
        share = longest[1] / turned(subject.box, upright=upright).width() if len(longest) > 1 else 0.0
        if share > best[0]:
            best = share, {net: rails for net, rails in every.items() if rails}, upright
    return best[1:]


def _frame(found: Mapping[str, Sequence[kdb.Box]], core: kdb.Box) -> bool:
    """Return whether rails lie about the transistors, not as straps in the middle of them."""
    box = box_around(rail for rails in found.values() for rail in rails)
    return box.height() >= _FRAMED * core.height()


def ports(subject: Subject) -> Iterator[Remark]:
    """Yield the ports inside the cell or on another side than asked; LVS finds those without a shape."""
    asked = {} if subject.asked is None else subject.asked.sides
    reach = subject.technology.to_dbu(_EDGE_UM)
    for net, labels in sorted(subject.labels.items()):
        pieces = [
            polygon.bbox()
            for conductor, point, _ in labels
            for polygon in subject.shapes(net, conductor).each()
            if polygon.bbox().contains(point)
        ]
        gaps = subject.margins(box_around(pieces))
        inside = subject.um(min(gaps.values())) if pieces else 0.0
        where = kdb.Box(labels[0][1], labels[0][1]).enlarged(100, 100)
        why = f"port {net} ends {inside:.3g} um inside the cell"
        beyond = inside if inside > _PORT_UM else 0.0
        yield from subject.finding("rails.port", beyond, why, where=where, nets=[net], must=False, cause="ports inside")
        sides = [subject.sides_of(kdb.Box(point, point))[0] for _, point, _ in labels]  # those of the labels come first
        sides += [side for side, gap in gaps.items() if gap <= reach]
        if net in asked and asked[net] not in sides:
            why = f"port {net} lies at the {sides[0]}, requested at the {asked[net]}"
            yield from subject.finding(
                "rails.port", 1.0, why, what_to_do="move the port to the requested side", where=where, nets=[net]
            )


def off_height(subject: Subject, net: str, ports: Sequence[kdb.Point], pins: Sequence[tuple[int, int]]) -> list[Remark]:
    """Return whether an input enters far along the edge from where the nearest device on it stands.

    Args:
        subject: The layout.
        net: A net.
        ports: Its labels. [dbu]
        pins: The contacts of its devices as x and y. [dbu]
    """
    uses = subject.roles.ports
    if net not in subject.roles.inputs and (net not in uses or uses[net].direction != "input"):
        return []
    sides = [(port, subject.sides_of(kdb.Box(port, port))[0]) for port in ports]
    off, side, port = min(
        (min(abs(y - port.y) if side in {"left", "right"} else abs(x - port.x) for x, y in pins), side, port)
        for port, side in sides
    )
    why = f"input {net} enters at the {side} side {subject.um(off):.3g} um along it from the nearest device on that net"
    share = off / longer_side(subject.box) if subject.um(off) > _OFF_HEIGHT_UM else 0.0
    where = kdb.Box(port, port).enlarged(100, 100)
    return subject.finding("wire-length.height", share, why, where=where, nets=[net], cause="heights of ports")


def open_ports(subject: Subject) -> Iterator[Remark]:
    """Yield the ports that no device is connected to, and those without metal to connect to."""
    circuit = subject.circuit
    for port in (net for net in subject.nets if net in circuit.ports and not subject.metal(net)):
        where = subject.shapes(port, "poly").bbox()
        why = f"port {port} has no metal: nothing can connect to it"
        yield from subject.finding("rails.metal", 1, why, where=where, nets=[port], cause="ports without metal")
    for port in circuit.ports:
        if not circuit.nets.get(port) and port not in subject.supplies and port not in circuit.black_box_nets:
            where = box_around(kdb.Box(point, point).enlarged(100, 100) for _, point, _ in subject.labels.get(port, ()))
            where = subject.box if where.empty() else where
            why = f"no device is connected to port {port}, neither in the netlist nor in the layout"
            yield from subject.finding("rails.open", 1, why, where=where, nets=[port], cause="open ports")


def floating_metal(subject: Subject) -> list[Remark]:
    """Return whether long wires touch no device, dummy or label; a black box might use them."""
    technology, passives = subject.technology, [p for p in subject.placed if not p.device.is_mos]
    drawn = [*subject.idle_boxes, *subject.idle_passives("resistor"), *subject.idle_passives("capacitor")]
    drawn += [box for placed in passives for box in placed.boxes]
    devices = region_of(box.enlarged(technology.to_dbu(HEADS_UM)) for box in drawn)
    found: list[Spot] = []
    for name, layer in subject.metal_layers[: len(technology.conductors)] if not subject.circuit.black_box_nets else ():
        known = kdb.Region()
        for number in subject.extraction.nets:
            known += subject.extraction.merged(number, name)
        for box in (each.bbox() for each in subject.layer(layer).not_interacting(known + devices).each()):
            length = f"{subject.um(longer_side(box)):.3g} um of {name}"
            found.append(Spot(box, f"{length} touch no device and no port", length))
    found.sort(key=lambda spot: (-longer_side(spot.box), str(spot.box)))
    found = [s for s in found if subject.limits["dead-metal.floating"].beyond(subject.um(longer_side(s.box)))]
    if not found:
        return []
    most, first = subject.um(longer_side(found[0].box)), found[0]
    return subject.finding("dead-metal.floating", most, first.why, where=first.box, cause="floating", places=found[1:])


def unfed_nets(subject: Subject) -> Iterator[Remark]:
    """Yield the inner nets on gates that no current enters or leaves: one diode at most has its channel there.

    What one transistor that another net turns on leads to is no fault of a layout, but said to be unjudged.
    Two such nets tie a gate high or low where one of them switches on the transistor of the other, an NMOS a PMOS.
    """
    circuit = subject.circuit
    unfed: dict[str, tuple[set[str], list[Device]]] = {}
    for net in subject.nets:
        if net in circuit.ports or net in subject.supplies or net in circuit.black_box_nets:
            continue
        ends = [(circuit.device(end.device), end.terminal) for end in circuit.nets[net]]
        gates = {device.id for device, end in ends if end == "g" and device.is_mos}
        on = [device for device, end in ends if end in {"d", "s"}]
        channels = {frozenset((device.terminals["d"], device.terminals["s"])) for device in on}
        if gates and len(channels) < 2 and all(device.is_mos for device, _ in ends):
            unfed[net] = gates, on
    types = {net: {device.type for device in on} for net, (_, on) in unfed.items()}
    on_by = [(device.terminals["g"], net) for net, (_, on) in unfed.items() for device in on]
    tied = {net for one in on_by if types.get(one[0], types[one[1]]) != types[one[1]] for net in one}
    for net, (gates, on) in unfed.items():
        devices, feeds = subject.devices(gates), subject.devices(device.id for device in on)
        by_both = not subject.both_ways.isdisjoint(device.id for device in on)
        if net not in tied and not by_both and not any(map(subject.is_idle, devices)):
            if any(device.terminals["g"] not in unfed for device in on):
                reason = f"only {names_of(feeds)} drives {net}: the gates of {names_of(devices)} float while it is off"
                subject.unjudged.append(Unjudged("supply-drop", reason))
                continue
            why = f"nothing drives {net}: it connects only to the gates of {names_of(devices)}"
            why += f" and to the channel of {names_of(feeds)}" * bool(feeds)
            yield from subject.finding("supply-drop.open", len(gates), why, devices=devices, nets=[net])


def _in_series(stage: Sequence[PlacedDevice], supplies: Supplies) -> Iterator[tuple[PlacedDevice, PlacedDevice]]:
    """Yield the transistors whose current flows from the first one into the second, through a net of their channels."""
    above, below = defaultdict(list), defaultdict(list)
    for placed in stage:
        drain, source = placed.device.terminals["d"], placed.device.terminals["s"]
        into, out_of = (source, drain) if placed.device.type == "nmos" else (drain, source)
        above[into].append(placed)
        below[out_of].append(placed)
    for net in above:
        if net not in supplies:
            yield from ((one, other) for one in above[net] for other in below.get(net, ()) if one is not other)
