"""Findings on the order of stages: along the way of the signal, outputs away from inputs, bias at what it biases."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from math import dist, inf
from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.circuit.recognise import MODULE_TYPES
from layoutkit.review.finding import Unjudged
from layoutkit.review.matched_devices import widest_gap
from layoutkit.review.matched_roles import without_current
from layoutkit.review.subject import box_around, centre_of, gap_between, longer_side, names_of, region_of, turned

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from layoutkit.review.finding import Remark
    from layoutkit.review.subject import PlacedDevice, Subject

_HOT = 10  # times the current of a pair from which on an output device beside it heats it
_HOT_A = 2e-4  # less heats nothing [A]
_WAY = {"nmos": ("d", "s"), "pmos": ("d", "s"), "npn": ("c", "e"), "pnp": ("c", "e")}  # ends of a transistor in line
_FEW, _SOME = 4, 6  # most devices in series on one net, and most on a net that can lie near to each other
_WITHIN_REACH_UM = 20.0  # devices within it are not far apart, however small the layout [um]
_OFF_AXIS_UM = 6.0  # loads that are images and so far off their pair miss the axis of both by half of it [um]
_SIDE_BY_SIDE = 0.1  # stages nearer to each other than this share of the whole way lie side by side


def flow_order(subject: Subject) -> list[Remark]:
    """Return whether the stages between input and output lie in another order than the signal passes them."""
    levels = _levels(subject)
    if len(levels) < 3:
        return []
    middles = [centre_of(levels[level]) for level in sorted(levels)]
    spans = [max(middle[axis] for middle in middles) - min(middle[axis] for middle in middles) for axis in (0, 1)]
    along = spans.index(max(spans))
    steps = [after[along] - before[along] for before, after in pairwise(middles)]
    steps = [step for step in steps if abs(step) > _SIDE_BY_SIDE * max(spans)]
    turns = min(sum(step < 0 for step in steps), sum(step > 0 for step in steps))
    every = [placed for level in sorted(levels) for placed in levels[level]]
    why = f"the {len(levels)} stages of the signal path are out of order: {turns} step{'s' * (turns > 1)} back"
    return subject.finding("flow-order", turns, why, devices=every)


def output_beside_input(subject: Subject) -> list[Remark]:
    """Return the outputs whose port lies beside that of an input or, if none does, whether all are at one side."""
    places = {port: [(point.x, point.y) for _, point, _ in labels] for port, labels in subject.labels.items()}
    inputs = [port for port in subject.roles.inputs if port in places]
    outputs = [port for port, use in subject.roles.ports.items() if use.direction == "output" and port not in inputs]
    outputs = [port for port in outputs if port in places] if inputs else []
    found: list[Remark] = []
    for net in outputs:
        gaps = [(dist(a, b), subject.number[port], port) for port in inputs for a in places[net] for b in places[port]]
        gap, _, port = min(gaps)
        found += subject.finding(
            "flow-order.ports",
            gap / longer_side(subject.box),
            f"output {net} leaves the cell {subject.um(gap):.3g} um from input {port}",
            where=box_around(kdb.Box(*place, *place) for name in (net, port) for place in places[name]),
            nets=[net, port],
        )
    asked = set() if subject.asked is None else subject.asked.sides.keys()
    every = [port for port in (*inputs, *outputs) if port not in asked]
    sides = {subject.sides_of(kdb.Box(*place, *place))[0] for port in every for place in places[port]}
    if found or not outputs or not {*inputs, *outputs}.issubset(every) or len(sides) > 1:
        return found
    why = f"all inputs and outputs ({', '.join(every)}) leave at the {sides.pop()}"
    where = box_around(kdb.Box(*place, *place) for port in every for place in places[port])
    return subject.finding("flow-order.sides", len(outputs), why, where=where, nets=every)


def far_loads(subject: Subject) -> Iterator[Remark]:
    """Yield the differential pairs whose loads, transistors of the other type or resistors, lie far from them."""
    for pair in _pairs(subject):
        box = box_around(placed.box for placed in pair)
        far: list[tuple[float, PlacedDevice]] = []
        for net in {placed.device.terminals.get("d") for placed in pair}:
            loads = [placed for placed in subject.placed if net in placed.ends]
            loads = [p for p in loads if p.device.type not in {pair[0].device.type, "capacitor"}]
            loads = [p for p in loads if p.id not in without_current(subject)]
            far += sorted(((gap_between(box, p.box), p) for p in loads), key=lambda each: (each[0], each[1].index))[:1]
        gap = max((gap for gap, _ in far), default=0.0)
        nearest = subject.devices(load.id for _, load in far)
        why = f"{names_of(pair)} and the loads {names_of(nearest)} lie {subject.um(gap):.3g} um apart"
        yield from subject.finding(
            "flow-order.load", subject.um(gap), why, devices=[*pair, *nearest], cause="far loads"
        )


def loads_beside(subject: Subject) -> Iterator[Remark]:
    """Yield the differential pairs with their loads on the same rows, to one side, not above or below them."""
    for pair in _pairs(subject):
        loads, outputs = (
            _loads_of(subject, pair),
            {placed.device.terminals[_WAY[placed.device.type][0]] for placed in pair},
        )
        one, other = box_around(p.box for p in pair), box_around(p.box for p in loads)
        loaded = {net for p in loads for net in p.ends}
        if not loads or not outputs <= loaded or max(one.bottom, other.bottom) > min(one.top, other.top):
            continue
        gap = subject.um(max(0, one.left - other.right, other.left - one.right))
        why = f"{names_of(loads)}, the loads of {names_of(pair)}, lie {gap:.3g} um beside them on the same rows"
        yield from subject.finding("flow-order.beside", gap, why, devices=[*pair, *loads], cause="loads beside")


def _pairs(subject: Subject) -> Iterator[list[PlacedDevice]]:
    """Yield the transistors of each differential pair."""
    pairs = (subject.devices(group.devices) for group in subject.roles.groups if group.type == "differential_pair")
    yield from filter(None, pairs)


def _loads_of(subject: Subject, pair: Sequence[PlacedDevice]) -> list[PlacedDevice]:
    """Return the transistors of the other type and the resistors between the outputs of a pair and the supplies."""
    own = subject.supplies.nets
    outputs = {placed.device.terminals[_WAY[placed.device.type][0]] for placed in pair}
    loads = [p for p in subject.placed if p.device.type not in {"capacitor", *(q.device.type for q in pair)}]
    return [p for p in loads if len(p.ends & outputs) == 1 and p.ends - outputs <= own and not subject.is_idle(p)]


def _tails_of(subject: Subject, pair: Sequence[PlacedDevice]) -> list[PlacedDevice]:
    """Return the transistors that feed a pair."""
    sources = {placed.device.terminals.get("s") for placed in pair if placed.device.is_mos}
    tails = [p for p in subject.placed if p.device.is_mos and p.device.terminals["d"] in sources and p not in pair]
    return [placed for placed in tails if not subject.is_idle(placed)]


def off_centre(subject: Subject) -> Iterator[Remark]:
    """Yield the loads and tails above or below a differential pair that do not lie about its middle.

    Those that are images of each other and farther off miss the axis of their structure.
    """
    for pair in _pairs(subject):
        box = box_around(placed.box for placed in pair)
        for words, own in (("loads", _loads_of(subject, pair)), ("tail", _tails_of(subject, pair))):
            its = box_around(placed.box for placed in own)
            above = own and (its.bottom > box.top or box.bottom > its.top)
            if not above or max(its.left, box.left) > min(its.right, box.right):
                continue
            off = subject.um(abs(centre_of(own)[0] - centre_of(pair)[0]))
            if off > _OFF_AXIS_UM and all(subject.images(placed) for placed in own):
                continue
            why = f"{names_of(own)}, the {words} of {names_of(pair)}, {'lies' if len(own) == 1 else 'lie'} "
            why += f"{off:.3g} um off the middle of the pair"
            yield from subject.finding("flow-order.centre", off, why, devices=[*pair, *own], cause="off centre")


def loads_behind(subject: Subject) -> Iterator[Remark]:
    """Yield the loads of pairs and of bipolar transistors that lie behind the tail, seen from the transistors between.

    Loads are resistors, and transistors of modules that must match.
    """
    own = subject.supplies.nets
    matched = {name for each in subject.roles.groups if MODULE_TYPES[each.type].matched for name in each.devices}
    paired = {name for each in subject.roles.groups if each.type == "differential_pair" for name in each.devices}
    below: dict[tuple[str, str], list[PlacedDevice]] = defaultdict(list)
    working = [p for p in subject.placed if p.device.type in _WAY and not subject.is_idle(p)]
    for placed in working:
        below[placed.device.type, placed.device.terminals[_WAY[placed.device.type][0]]].append(placed)
    for placed in working:
        kind, net = placed.device.type, placed.device.terminals
        start, end = _WAY[kind]
        loads = [p for p in subject.placed if p.device.type not in {kind, "capacitor"} and net[start] in p.ends]
        loads = [p for p in loads if len(p.ends) > 1 and p.ends - {net[start]} <= own and not subject.is_idle(p)]
        loads = [p for p in loads if p.device.type == "resistor" or p.id in matched]
        line, after = [placed], below[kind, net[end]]
        while loads and after and net[start] not in own and after[0] not in line:
            line.append(after[0])
            after = below[kind, after[0].device.terminals[end]]
        if len(line) < 2 or (placed.device.is_mos and paired.isdisjoint(each.id for each in line)):
            continue
        for load in loads:
            gap = subject.um(_behind(placed.box, line[-1].box, load.box))
            why = f"{load.id}, the load of {placed.id}, lies {gap:.3g} um behind {line[-1].id}, which feeds it"
            every = [placed, line[-1], load]
            yield from subject.finding("flow-order.behind", gap, why, devices=every, cause="loads behind")


def _behind(start: kdb.Box, tail: kdb.Box, load: kdb.Box) -> float:
    """Return how far a load lies behind a tail, along the wider gap between tail and start; 0 if it does not. [dbu]"""
    found: list[tuple[int, int]] = []
    for upright in (False, True):
        one, middle, last = (turned(box, upright=upright) for box in (start, tail, load))
        found += [
            (middle.left - one.right, last.left - middle.right),
            (one.left - middle.right, middle.left - last.right),
        ]
    gap, behind = max(found)
    return float(max(0, behind)) if gap >= 0 else 0.0


def far_tails(subject: Subject) -> Iterator[Remark]:
    """Yield the tails of differential pairs that lie far from these."""
    for pair in _pairs(subject):
        for tail in _tails_of(subject, pair):
            gap = subject.um(
                min(gap_between(one, other) for one in tail.boxes for each in pair for other in each.boxes)
            )
            why = f"{tail.id}, which feeds {names_of(pair)}, lies {gap:.3g} um from them"
            yield from subject.finding("flow-order.tail", gap, why, devices=[*pair, tail], cause="far tails")


def far_in_series(subject: Subject) -> Iterator[Remark]:
    """Yield the inner nets whose few devices lie far apart: those in series by length, others by share of the side."""
    reach = subject.technology.to_dbu(_WITHIN_REACH_UM)
    for net in subject.nets:
        if net in subject.supplies or net in subject.circuit.ports:
            continue
        every = list(dict.fromkeys(placed for placed, _ in subject.feeds(net) if not subject.is_idle(placed)))
        own = [placed for placed in every if net in placed.ends]
        kinds = {placed.device.type for placed in own} - {"resistor"}
        if 1 < len(own) <= _FEW and len(kinds) == 1 and kinds <= {"nmos", "pmos", "npn", "pnp"}:
            gap = widest_gap([placed.boxes for placed in own], len(own))
            why = f"{names_of(own)}, whose current flows from one into the other, lie {subject.um(gap):.3g} um apart"
            one_row = len({(p.device.is_mos, p.device.terminals.get("b")) for p in own}) == 1 and own[0].device.is_mos
            stacked = one_row and own == every and len(own) == 2 and gap > max(longer_side(p.box) for p in own)
            limit = "flow-order.series" if stacked else "flow-order.load"
            found = subject.finding(limit, subject.um(gap), why, devices=own, nets=[net], cause="in series")
            yield from found
            if found:
                continue
        gap = widest_gap([placed.boxes for placed in every], len(every)) if 1 < len(every) <= _SOME else 0.0
        share = gap / longer_side(subject.box) if gap > reach else 0.0
        why = f"the devices on {net}, {names_of(every)}, lie {subject.um(gap):.3g} um apart"
        yield from subject.finding("flow-order.bias", share, why, devices=every, nets=[net], cause="far apart")


def far_bias(subject: Subject) -> Iterator[Remark]:
    """Yield the diodes that bias other transistors and lie far from the nearest of them."""
    for placed in subject.placed:
        net = placed.device.terminals
        if not placed.device.is_mos or net["d"] != net["g"] or net["g"] in subject.supplies:
            continue
        biased = [
            other
            for other in subject.placed
            if other.device.type == placed.device.type  # else it is the load of a stage, and drives the next one
            and other.device.terminals.get("g") == net["g"]
            and other.device.terminals["d"] != net["g"]
        ]
        gap = min((gap_between(placed.box, other.box) for other in biased), default=0.0)
        why = f"{placed.id} biases {names_of(biased)} from {subject.um(gap):.3g} um away"
        yield from subject.finding(
            "flow-order.bias", gap / longer_side(subject.box), why, devices=[placed, *biased], nets=[net["g"]]
        )


def bipolar_pairs(subject: Subject) -> Iterator[Remark]:
    """Yield the bipolar input pairs, and the transistors on the base of a diode, that lie apart."""
    found: dict[tuple[str, ...], list[PlacedDevice]] = defaultdict(list)
    for placed in subject.placed:
        net = placed.device.terminals
        if placed.device.type in {"npn", "pnp"} and net["b"] not in subject.supplies:
            bases = {net["b"], *(image.device.terminals["b"] for image in subject.images(placed))}
            is_input = len(bases) > 1 and bases <= {*subject.circuit.ports}
            found[tuple(sorted(bases)) if is_input else (placed.device.model, net["b"])].append(placed)
    for key, devices in found.items():
        pair = not any(placed.device.model == key[0] for placed in devices)
        mirrored = any(placed.device.terminals["b"] == placed.device.terminals["c"] for placed in devices)
        if len(devices) > 1 and (pair or mirrored):
            gap = subject.um(widest_gap([placed.boxes for placed in devices], len(devices)))
            why = f"{names_of(devices)}, bipolar transistors that must match, have {gap:.3g} um between them"
            yield from subject.finding("group-apart.bipolar", gap, why, devices=devices, must=pair)


def parts_apart(subject: Subject) -> list[Remark]:
    """Return the two transistors of an inverter, of a gate's input or between the same two nets that lie apart."""
    alike: dict[tuple[str, ...], list[PlacedDevice]] = defaultdict(list)
    own = subject.supplies.nets
    for placed in subject.placed:
        net = placed.device.terminals
        if placed.device.is_mos and not subject.is_idle(placed):
            ends = sorted(placed.ends - own)
            key = (" ", *ends) if len(ends) == 2 else (*ends, net["g"])  # apart, whatever the names
            if len(ends) == 2 or (net["g"] not in own and net["g"] != net["d"]):
                alike[key].append(placed)
    outputs: dict[tuple[str, str, str], list[PlacedDevice]] = defaultdict(list)  # inverters switched at a source
    for placed in [p for devices in alike.values() for p in devices if p.device.id not in subject.both_ways]:
        outputs["", placed.device.terminals["d"], placed.device.terminals["g"]].append(placed)
    for key, both in outputs.items():
        starved = any(placed.device.terminals["s"] not in own for placed in both)
        alike |= {key: both} if starved and len({placed.device.type for placed in both}) > 1 else {}
    for stage in subject.stages:  # stacks on one gate, as of a Schmitt trigger; a clock is on no stacks
        stacked: dict[str, list[PlacedDevice]] = defaultdict(list)
        for placed in stage:
            stacked[placed.device.terminals["g"]].append(placed)
        alike |= {
            ("", gate): own for gate, own in stacked.items() if all(_in_series(own, kind) for kind in ("nmos", "pmos"))
        }
    limit = subject.limits["flow-order.parts"]
    far: list[tuple[float, list[PlacedDevice]]] = []
    for devices in alike.values():
        gap = subject.um(widest_gap([placed.boxes for placed in devices], len(devices))) if len(devices) > 1 else 0.0
        far += [(gap, devices)] if limit.beyond(gap) else []
    far += [(gap, [placed]) for placed in subject.placed if limit.beyond(gap := _gap_inside(subject, placed))]
    far.sort(key=lambda each: (-each[0], each[1][0].index))
    every = subject.devices(name for _, devices in far for placed in devices for name in placed.names)
    most = far[0][0] if far else 0.0
    why = f"parts of one function lie up to {most:.3g} um apart: " + "; ".join(names_of(each) for _, each in far[:4])
    return subject.finding("flow-order.parts", most, why, devices=every)


def _in_series(devices: Sequence[PlacedDevice], kind: str) -> bool:
    """Return whether two of the transistors of a type are in series."""
    drains, sources = ({p.device.terminals[end] for p in devices if p.device.type == kind} for end in ("d", "s"))
    return not drains.isdisjoint(sources)


def _gap_inside(subject: Subject, placed: PlacedDevice) -> float:
    """Return the widest gap between the parts of a transistor, bridged by dummies and by others of its kind. [um]"""
    half = subject.technology.to_dbu(subject.limits["flow-order.parts"].should or 0.0) // 2
    if len(placed.islands) < 2 or region_of(box.enlarged(half, half) for box in placed.boxes).merged().count() < 2:
        return 0.0
    kind = (placed.device.model, placed.device.params.get("l"))
    others = [o for o in subject.placed if o is not placed and (o.device.model, o.device.params.get("l")) == kind]
    bridges = [[box] for box in subject.idle_boxes] + [[box] for other in others for box in other.boxes]
    reach = int(half / 2**0.5)  # whose diagonal is within the limit
    parts = region_of(box.enlarged(reach, reach) for box in (*placed.boxes, *(box for (box,) in bridges))).merged()
    if parts.interacting(region_of(placed.boxes)).count() < 2:
        return 0.0
    return subject.um(widest_gap([[box] for box in placed.boxes] + bridges, len(placed.boxes)))


def power_beside_input(subject: Subject) -> Iterator[Remark]:
    """Yield the pairs and bipolar transistors beside which an output or pass device of much larger current lies."""
    outside = {*subject.circuit.ports} - subject.supplies.nets
    currents = {placed: subject.current(placed) or 0.0 for placed in subject.placed}
    pairs = [subject.devices(each.devices) for each in subject.roles.groups if each.type == "differential_pair"]
    bipolar = [placed for placed in subject.placed if placed.device.type in {"npn", "pnp"}]
    for name, own in [("flow-order.power", pair) for pair in pairs] + [("flow-order.heat", bipolar)]:
        drawn = sum(currents.get(placed, 0.0) for placed in own) / (len(own) if own is bipolar and own else 1)
        least = max(_HOT * drawn, _HOT_A) if drawn else inf
        hot = [p for p, current in currents.items() if p not in own and current >= least]
        gaps = [
            (gap_between(one.box, p.box), p, one) for p in hot if p.device.is_mos and p.ends & outside for one in own
        ]
        if gaps:
            gap, placed, one = min(gaps, key=lambda each: (each[0], each[1].index, each[2].index))
            beside = [one] if own is bipolar else own
            why = f"{placed.id}, which carries {currents[placed] / drawn:.3g} times the current of {names_of(beside)}, "
            why += f"lies {subject.um(gap):.3g} um beside {'it' if len(beside) == 1 else 'them'}"
            yield from subject.finding(name, subject.um(gap), why, devices=[*beside, placed])


def far_capacitors(subject: Subject) -> Iterator[Remark]:
    """Yield the capacitors between gate and drain of a transistor, or from a drain to a supply, that lie far from it.

    A transistor with one net at both ends is a capacitor as well.
    """
    supplies, mos = subject.supplies.nets, [p for p in subject.placed if p.device.is_mos]
    for placed in subject.placed:
        gate = {placed.device.terminals["g"]} if placed.device.is_mos and len(placed.ends) == 1 else set[str]()
        ends = (placed.ends | gate) - supplies
        if placed.device.type != "capacitor" and (not gate or gate <= supplies):
            continue
        around = [p for p in mos if p.device.terminals["d"] in ends and p is not placed and not subject.is_idle(p)]
        words = "which drives it" if len(around) == 1 else "which drive it"
        if len(ends) > 1:
            around = [p for p in around if p.device.terminals["g"] in ends - {p.device.terminals["d"]}]
            words = "around which it is"
        gap = min((gap_between(one, its) for p in around for its in p.boxes for one in placed.boxes), default=0.0)
        why = f"{placed.id} lies {subject.um(gap):.3g} um from {names_of(around)}, {words}"
        yield from subject.finding(
            "flow-order.load", subject.um(gap), why, devices=[placed, *around], cause="far capacitors"
        )


def _levels(subject: Subject) -> dict[int, list[PlacedDevice]]:
    """Return the transistors by the most stages between them and an input; none where a signal feeds back.

    Only logic has an order where signals reach a stage on unlike ways: others have pairs, which stay together.
    """
    import networkx as nx

    stages = subject.stages
    of = {placed.index: number for number, stage in enumerate(stages) for placed in stage}
    drains: dict[str, set[int]] = defaultdict(set)
    for placed in subject.placed:
        if placed.index in of:
            for net in (placed.device.terminals["d"], placed.device.terminals["s"]):
                drains[net].add(of[placed.index])
    inputs = set(subject.roles.inputs) or {
        port for port in subject.circuit.ports if port not in subject.supplies and port not in drains
    }
    drives: nx.DiGraph[int] = nx.DiGraph()
    drives.add_nodes_from(range(len(stages)))
    front: set[int] = set()
    for number, stage in enumerate(stages):
        for gate in {placed.device.terminals["g"] for placed in stage}:
            front |= {number} if gate in inputs else set()
            for before in drains[gate] - {number} if gate not in subject.supplies else ():
                drives.add_edge(before, number)
    driven = front.union(*(nx.descendants(drives, number) for number in front))
    way, depth = drives.subgraph(driven), dict[int, int]()
    if nx.is_directed_acyclic_graph(way):
        depth = {number: level for level, each in enumerate(nx.topological_generations(way)) for number in each}
    unlike = any(depth[after] - depth[before] > 1 for before, after in way.edges if depth) or any(map(depth.get, front))
    if (way and not depth) or (unlike and not all(is_logic(stages[number]) for number in way)):
        reason = "the stages feed back, or signals reach one of them on unlike ways, so that they have no order"
        subject.unjudged.append(Unjudged("flow-order", reason))
        return {}
    levels: dict[int, list[PlacedDevice]] = defaultdict(list)
    for number, level in depth.items():
        levels[level] += stages[number]
    return levels


def is_logic(stage: Sequence[PlacedDevice]) -> bool:
    """Return whether the same signals drive the transistors of both types."""
    gates = [{p.device.terminals["g"] for p in stage if p.device.type == kind} for kind in ("nmos", "pmos")]
    return gates[0] == gates[1]
