"""Findings on transistors one by one: the channels that they are divided into, and dummies at the ends of these.

Also on those on one gate in no matched group, which lie apart or differ, and on the units of matched groups: their
order and lengths, and units of the same kind drawn elsewhere.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from math import dist
from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.errors import listed
from layoutkit.review.matched_devices import is_gate
from layoutkit.review.matched_roles import CASCODES, LOADS, MIRROR, PAIR, MatchedDevices
from layoutkit.review.subject import gap_between, longer_side, names_of, region_of, turned

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from layoutkit.review.finding import Remark
    from layoutkit.review.matched_devices import Matching
    from layoutkit.review.subject import PlacedDevice, Subject

_NARROW = 4  # channels so many times as long as wide lie side by side across their length
_FLANK_UM = 2.0  # from a transistor to the dummies beside it [um]
_FEWEST_BITS = 3  # transistors in parallel from which on they are the bits of a current
_BESIDE_UM = 1.0  # from a channel to the wires beside it [um]
_AS_LONG = 1.05  # a channel that is as long as its longer side is longer than wide
_FEWEST_CHANNELS = 4  # of a diffusion in which dummies at the ends alone are fewer than its channels
_FEWEST_IN_ORDER = 3  # devices from which on a mirror has a middle
_FACING_UM = 5.0  # between the transistors of an inverter whose gates could be one line of poly [um]
_ON_ONE_LINE = 4  # channels at most of a transistor whose gates are lines of poly to the other one
_NEXT_UM = 10.0  # from a transistor to one that it could share a diffusion with [um]


def lone_transistors(subject: Subject, matching: Matching) -> Iterator[Remark]:
    """Yield the findings on transistors outside matched groups."""
    gates: dict[tuple[str, str, str], list[PlacedDevice]] = defaultdict(list)
    for placed in _biased(subject):
        if placed.index not in matching.cells:  # cells of an array are compared with each other
            net = placed.device.terminals
            gates[placed.device.model, net["b"], net["g"]].append(placed)
    groups = matching.transistors
    for (_, _, gate), devices in gates.items():
        if not any(set(group.devices) >= set(devices) for group in groups):
            yield from _on_one_gate(subject, matching, gate, devices)
    banks = _banks(subject)
    for own in (each for each in banks if len({round(placed.fingers[0].l_um, 3) for placed in each}) == 1):
        far = subject.um(max(dist(a.centre, b.centre) for a, b in combinations(own, 2)))
        why = f"{names_of(own)}, whose currents are switched into one net, are not interleaved: "
        why += f"their centres lie up to {far:.3g} um apart"
        yield from subject.finding("group-apart.centres", far, why, devices=own, must=False)
    guarded = [*(group for group in groups if group.is_ordered), *matching.lone_references()]
    known = {placed for group in guarded for placed in group.devices}
    single = (placed for own in (*gates.values(), *banks) for placed in own if placed not in known)
    single = (p for p in single if p.device.terminals["d"] != p.device.terminals["g"])  # diodes copy nothing here
    single = (placed for placed in single if not (subject.is_full(placed) or _is_flanked(subject, placed)))
    bare = {placed: matching.bare(_group([placed])) for placed in single}
    devices = [placed for placed, ends in bare.items() if ends]
    supplies = subject.supplies  # current sources are named first
    devices.sort(key=lambda p: (p.device.terminals["s"] not in supplies, -p.fingers[0].l_um, p.index))
    ends = sum(bare.values())
    why = f"{ends} end{'s' * (ends > 1)} of the rows of {names_of(devices)} {'have' if ends > 1 else 'has'} no dummy"
    yield from subject.finding("group-unlike.single", ends, why, devices=devices)


def _group(devices: Sequence[PlacedDevice]) -> MatchedDevices:
    return MatchedDevices("transistors on one gate", False, tuple(devices), tuple(devices))


def _banks(subject: Subject) -> list[list[PlacedDevice]]:
    """Return the transistors of one type in parallel, each with a gate of its own: the bits of a current."""
    alike: dict[tuple[object, ...], list[PlacedDevice]] = defaultdict(list)
    for placed in (placed for stage in subject.stages if not _is_driven_by_both(stage) for placed in stage):
        net = placed.device.terminals
        if placed.id not in subject.both_ways:
            alike[placed.device.model, net["s"], net["d"], net["b"]].append(placed)
    gates = ({placed.device.terminals["g"] for placed in own} for own in alike.values())
    return [own for own, on in zip(alike.values(), gates, strict=True) if len(on) == len(own) >= _FEWEST_BITS]


def _is_driven_by_both(stage: Sequence[PlacedDevice]) -> bool:
    """Return whether signals drive transistors of both types in a stage, as in logic; a diode is a load."""
    driven = [placed for placed in stage if placed.device.terminals["g"] not in placed.ends]
    return len({placed.device.type for placed in driven}) > 1


def _on_one_gate(subject: Subject, matching: Matching, gate: str, devices: Sequence[PlacedDevice]) -> Iterator[Remark]:
    """Yield how the transistors on one gate lie apart, or differ in what their currents relate by."""
    lengths: dict[float, list[PlacedDevice]] = defaultdict(list)
    sources: dict[str, list[PlacedDevice]] = defaultdict(list)
    for placed in devices:
        lengths[round(placed.fingers[0].l_um, 3)].append(placed)
        sources[placed.device.terminals["s"]].append(placed)
    known = gate in subject.circuit.ports or any(placed.device.terminals["d"] == gate for placed in devices)
    for own in sources.values() if known else ():
        long = sorted({round(placed.fingers[0].l_um, 3) for placed in own})
        why = f"{names_of(own)}, on the gate {gate}, have channels of different lengths: {_listed(long)} um"
        yield from subject.finding("group-unlike.length", 1 - long[0] / long[-1], why, devices=own, nets=[gate])
    grouped = {placed for group in matching.transistors for placed in group.devices}
    fed = any(placed.device.terminals["s"] in subject.supplies for placed in devices)
    pairs = {placed for group in matching.transistors if group.words == PAIR for placed in group.devices}
    steered = not (known or fed) or not pairs.isdisjoint(devices)  # switches, or what a signal is on
    for own in (own for own in lengths.values() if len(own) > 1):
        called = f"{names_of(own)}, on the gate {gate},"
        wide = sorted({round(f.w_um, 3) for p in own for f in p.fingers})
        apart = len({*(p.device.terminals["s"] for p in own)} - subject.supplies.nets) == len(own)  # inputs of stages
        gap = 0.0 if steered and apart else subject.um(matching.gap_within(_group(own)))
        units = f"; their channels are {_listed(wide)} um wide" * (len(wide) > 1)
        why = f"{called} lie {gap:.3g} um apart{units}"
        found = subject.finding("group-apart.gate", gap, why, devices=own, nets=[gate], cause="one gate")
        if not found:
            why = f"{called} have channels of different widths: {_listed(wide)} um"
            share = 0.0 if steered else 1 - wide[0] / wide[-1]
            found = subject.finding("group-unlike.unit", share, why, devices=own, nets=[gate], must=False)
        far = 0.0 if grouped.intersection(own) else max(dist(a.centre, b.centre) for a, b in combinations(own, 2))
        if not found and len({placed.area for placed in own}) == 1:
            why = f"{called} are equal and not interleaved: their centres lie {subject.um(far):.3g} um apart"
            found = subject.finding("group-apart.whole", subject.um(far), why, devices=own, nets=[gate])
        yield from found


def _is_flanked(subject: Subject, placed: PlacedDevice) -> bool:
    """Return whether dummies lie at two opposite sides of a transistor; for long narrow channels others do, too."""
    reach, box, first = subject.technology.to_dbu(_FLANK_UM), placed.box, placed.fingers[0]
    near = subject.idle_boxes
    if first.l_um > _NARROW * first.w_um:
        alike = (p for p in subject.placed if p is not placed and p.fingers[0].l_um == first.l_um)
        near = near + [each for other in alike for each in other.boxes]
    for upright in (False, True):
        its = turned(box, upright=upright)
        sides = ((its.left - reach, its.left), (its.right, its.right + reach))
        strips = [turned(kdb.Box(start, its.bottom, end, its.top), upright=upright) for start, end in sides]
        if all(any(each.overlaps(strip) for each in near) for strip in strips):
            return True
    return False


def _listed(sizes: Iterable[float]) -> str:
    return ", ".join(f"{size:g}" for size in sizes)


def _biased(subject: Subject) -> Iterator[PlacedDevice]:
    """Yield the working transistors that are no switches or logic: nothing drives their gates from rail to rail."""
    supplies = subject.supplies.nets
    working = [p for p in subject.placed if p.device.is_mos and not subject.is_idle(p)]
    on: dict[str, list[PlacedDevice]] = defaultdict(list)
    swings = {*subject.roles.clocks, *supplies}
    for group in subject.roles.groups:
        swings |= {str(group.properties[end]) for end in ("input", "output") if group.type == "inverter"}
    clocked = (s for s in subject.stages if any(p.device.terminals["g"] in subject.roles.clocks for p in s))
    for stage in (*filter(is_gate, subject.stages), *clocked):
        swings |= {placed.device.terminals[end] for placed in stage for end in ("g", "d")}
    for placed in working:
        on[placed.device.terminals["g"]].append(placed)
    shortest = {
        t: min(p.fingers[0].l_um for p in working if p.device.type == t) for t in {p.device.type for p in working}
    }
    for gate, devices in on.items():
        fed = [placed.device.terminals["s"] in supplies for placed in devices]
        short = all(placed.fingers[0].l_um <= shortest[placed.device.type] for placed in devices)
        mirrored = any(placed.device.terminals["d"] == gate for placed in devices)
        short = not mirrored and (short or any(_turns_off(placed, on) for placed in devices))
        drives_both = any(fed) and len({placed.device.type for placed in devices}) > 1
        if gate not in swings and not drives_both and not (short and any(fed) and gate in subject.circuit.ports):
            yield from (placed for placed in devices if placed.id not in subject.both_ways)


def _turns_off(placed: PlacedDevice, on: Mapping[str, Sequence[PlacedDevice]]) -> bool:
    """Return whether a transistor joins the gates of others of its type with their source."""
    net = placed.device.terminals
    return any(
        (other.device.type, other.device.terminals["s"]) == (placed.device.type, net["s"])
        for other in on.get(net["d"], ())
        if other is not placed and other.device.terminals["d"] != net["d"]
    )


def split_channels(subject: Subject) -> list[Remark]:
    """Return the transistors that are divided into channels too narrow to be made well."""
    limit = subject.limits["room.split"]
    least: dict[PlacedDevice, float] = {}
    for placed in subject.placed:
        if placed.device.is_mos and len(placed.fingers) > 1 and not subject.is_idle(placed):
            least[placed] = min(finger.w_um for finger in placed.fingers)
    split = [placed for placed, width in least.items() if limit.beyond(width)]
    narrowest = min((least[placed] for placed in split), default=limit.should or 0.0)
    why = f"{names_of(split)} {'is' if len(split) == 1 else 'are'} divided into channels as narrow as "
    why += f"{narrowest:.3g} um"
    return subject.finding("room.split", narrowest, why, devices=split)


def unshared_diffusions(subject: Subject) -> list[Remark]:
    """Return the transistors in no matched group whose channels each have a diffusion of their own."""
    grouped = {name for group in subject.roles.groups for name in group.devices}
    own: list[PlacedDevice] = []
    for placed in subject.placed:
        single = len(placed.islands) == len(placed.boxes) and placed.device.is_mos and not subject.is_idle(placed)
        own += [placed] if single and len(placed.boxes) >= _FEWEST_CHANNELS and placed.id not in grouped else []
    most = max((len(placed.boxes) for placed in own), default=0)
    why = f"the channels of {names_of(own)} share no drain or source: {most} diffusions for {most} channels"
    return subject.finding("room.shared", len(own), why, devices=own)


def gates_apart(subject: Subject) -> list[Remark]:
    """Return the inverters whose two transistors stand side by side, but have no poly in common."""
    reach, poly = subject.technology.to_dbu(_FACING_UM), kdb.Shapes()
    for number, piece in enumerate(subject.role("poly").each()):
        poly.insert(kdb.PolygonWithProperties(piece, number))
    working = [p for p in subject.placed if p.device.is_mos and not subject.is_idle(p) and len(p.boxes) <= _ON_ONE_LINE]
    working = [placed for placed in working if placed.id not in subject.both_ways]
    found: list[tuple[PlacedDevice, PlacedDevice]] = []
    for one, other in ((a, b) for a in working for b in working if (a.device.type, b.device.type) == ("nmos", "pmos")):
        driven = one.ends & other.ends - subject.supplies.nets
        same = one.device.terminals["g"] == other.device.terminals["g"]
        if same and driven and gap_between(one.box, other.box) <= reach:
            on = [{shape.prop_id for box in p.boxes for shape in poly.each_touching(box)} for p in (one, other)]
            found += [(one, other)] if on[0].isdisjoint(on[1]) else []
    pairs = [f"{one.id} and {other.id}" for one, other in found]
    why = f"the gates of {listed(pairs, most=4)}, within {_FACING_UM:g} um of each other, are joined by metal instead "
    why += "of poly"
    devices = list(dict.fromkeys(placed for pair in found for placed in pair))
    return subject.finding("wire-length.gates", len(found), why, devices=devices)


def along_channels(subject: Subject) -> Iterator[Remark]:
    """Yield the drains whose wires run along so much of a long channel, over it or beside it, beside its gate."""
    reach, rule = subject.technology.to_dbu(_BESIDE_UM), subject.limits["foreign-over-gates.along"]
    for placed in (each for each in subject.placed if each.device.is_mos and not subject.is_idle(each)):
        net, gate = placed.device.terminals["d"], placed.device.terminals["g"]
        box = max(placed.boxes, key=lambda each: (longer_side(each), str(each)))
        is_long = subject.um(longer_side(box)) <= _AS_LONG * max(finger.l_um for finger in placed.fingers)
        if (
            {net, gate} & subject.supplies.nets
            or net == gate
            or not (is_long and rule.beyond(subject.um(longer_side(box))))
        ):
            continue
        upright, near = box.height() > box.width(), kdb.Region(box.enlarged(reach))
        drawn = (piece.bbox() for metal in subject.metal(net).values() for piece in (metal & near).each())
        spans = (turned(each, upright=upright) for each in drawn)
        whole = turned(box, upright=upright)
        covered = region_of(
            kdb.Box(s.left, 0, s.right, 1) & kdb.Box(whole.left, 0, whole.right, 1) for s in spans
        ).merged()
        length = subject.um(covered.area())
        why = f"{net}, the drain of {placed.id}, runs {length:.3g} um over or beside its channel, which is "
        why += f"{subject.um(longer_side(box)):.3g} um long, and its gate {gate}"
        yield from subject.finding(
            "foreign-over-gates.along", length, why, where=box, devices=[placed], nets=[net, gate], cause="along"
        )


def far_taps(subject: Subject) -> list[Remark]:
    """Return whether channels lie far from any tap of their own body, though the process may allow more."""
    mos = [placed for placed in subject.placed if placed.device.is_mos and not subject.is_idle(placed)]
    limit, bodies = subject.limits["rings.taps"], defaultdict[tuple[str, str], kdb.Region](kdb.Region)
    for placed in (each for each in mos if each.device.terminals["b"] in subject.number):
        layer = "p_tap" if placed.device.type == "nmos" else "n_tap"
        bodies[placed.device.terminals["b"], layer] += region_of(placed.boxes)
    parts = [(subject.shapes(*body), channels) for body, channels in bodies.items()]
    parts = [(taps, channels) for taps, channels in parts if not taps.is_empty()]
    stated = limit.must if limit.should is None else limit.should
    far, away = kdb.Region(), max(stated or 0.0, subject.technology.dbu_um)
    while stated is not None and parts:
        reach = subject.technology.to_dbu(away)
        parts = [(taps, left) for taps, own in parts if not (left := own - taps.sized(reach)).is_empty()]
        if parts:
            far, away = region_of(box.bbox() for _, left in parts for box in left.each()), 1.1 * away
    if not limit.beyond(away):
        return []
    devices = [placed for placed in mos if not (region_of(placed.boxes) & far).is_empty()]
    why = f"channels of {names_of(devices)} lie about {away:.2g} um from the nearest tap of their well or the substrate"
    return subject.finding("rings.taps", away, why, where=far.bbox(), devices=devices)


def few_contacts(subject: Subject) -> list[Remark]:
    """Return the transistors with a single contact on each source or drain where several fit."""
    contact, limit = subject.technology.contact, subject.limits["single-cut.contacts"]
    pitch = contact.size + contact.space
    few: dict[PlacedDevice, int] = {}
    for net in subject.nets:
        for (placed, end), feeds in subject.feeds(net).items():
            if placed.device.is_mos and end in placed.device.kind.ends and not subject.is_idle(placed):
                strips = (len(placed.boxes) + 1) // 2
                wide = subject.technology.to_dbu(placed.fingers[0].w_um) - contact.size - contact.space // 2
                fit = int(wide // pitch) + 1
                if 0 < len(feeds.points) <= strips and limit.beyond(fit):
                    few[placed] = max(few.get(placed, 0), fit)
    why = (
        f"sources or drains of {names_of([*few])} have one contact each, where up to {max(few.values(), default=0)} fit"
    )
    return subject.finding("single-cut.contacts", max(few.values(), default=0), why, devices=[*few])


def matched_units(subject: Subject, groups: Sequence[MatchedDevices]) -> Iterator[Remark]:
    """Yield all findings on the units of matched groups."""
    mos = [group for group in groups if group.devices[0].device.is_mos]
    for group in mos:
        yield from _in_plain_order(subject, group)
        yield from _near_a_well(subject, group)
    yield from _unlike_lengths(subject)
    yield from _unlike_followers(subject)
    yield from _replicas(subject, mos)
    yield from _open_joints(subject, mos)


def _in_plain_order(subject: Subject, group: MatchedDevices) -> list[Remark]:
    """Return whether all copies of a mirror stand in one row with its reference, on the same side of it."""
    references = [each for each in group.devices if each.device.terminals["d"] == each.device.terminals["g"]]
    if group.words != MIRROR or len(references) != 1 or len(group.devices) < _FEWEST_IN_ORDER or group.spread:
        return []
    (own,), others = references, [each for each in group.devices if each not in references]
    for upright in (False, True):
        first, *rest = (turned(each.box, upright=upright) for each in (own, *others))
        beside = [min(first.top, box.top) > max(first.bottom, box.bottom) for box in rest]
        after, before = ([box.left >= first.right for box in rest], [box.right <= first.left for box in rest])
        if all(beside) and (all(after) or all(before)):
            gaps = sorted(subject.um(abs(box.center().x - first.center().x)) for box in rest)
            why = f"all copies of {own.id} in {group.called} stand on one side of {own.id}, "
            why += f"{gaps[0]:.3g} to {gaps[-1]:.3g} um away"
            return subject.finding("group-apart.order", gaps[-1] - gaps[0], why, devices=group.devices)
    return []


def _near_a_well(subject: Subject, group: MatchedDevices) -> list[Remark]:
    """Return whether channels of a pair, mirror or ratio lie too near to a well edge."""
    around = [finger.around for placed in group.devices for finger in placed.fingers if finger.around is not None]
    least = min((each.well_um for each in around if each.well_um and group.strict), default=float("inf"))
    why = f"channels of {group.called} lie {least:.3g} um from the edge of a well"
    return subject.finding("group-unlike.edge", least, why, devices=group.devices, cause="near a well edge")


def _unlike_lengths(subject: Subject) -> Iterator[Remark]:
    """Yield the mirrors whose channels have unlike lengths."""
    for module in subject.roles.groups:
        devices = [placed for placed in subject.devices(module.devices) if placed.device.is_mos]
        lengths = sorted({round(finger.l_um, 4) for placed in devices for finger in placed.fingers})
        if module.type == "current_mirror" and lengths:
            shown = ", ".join(f"{length:g}" for length in lengths)
            why = f"the channels of current mirror {names_of(devices)} are {shown} um long"
            share = 1 - lengths[0] / lengths[-1]
            yield from subject.finding("group-unlike.length", share, why, devices=devices)


def _unlike_followers(subject: Subject) -> Iterator[Remark]:
    """Yield the second stages with channels unlike those of the loads that drive them, or far away from these.

    Their size is a multiple of that of the loads.
    """
    grouped = {name for module in subject.roles.groups for name in module.devices}
    for module in subject.roles.groups:
        loads = [p for p in subject.devices(module.devices) if p.device.is_mos and subject.images(p)]
        if module.type not in {"current_mirror", "load_pair"} or len(loads) < len(module.devices):
            continue
        first, outputs = loads[0], {load.device.terminals["d"] for load in loads}
        kind = (first.device.model, first.device.l, first.device.terminals["s"], first.device.terminals["b"])
        for other in (p for p in subject.placed if p.device.is_mos and p.id not in grouped):
            net, share = other.device.terminals, other.area / first.area
            alike = (other.device.model, other.device.l, net["s"], net["b"]) == kind and net["g"] in outputs
            if not alike or subject.images(other) or abs(share - round(share)) > 1e-3:
                continue
            widths = sorted({round(finger.w_um, 4) for each in (*loads, other) for finger in each.fingers})
            why = f"the channels of {other.id} and of the loads {names_of(loads)} that drive it are "
            why += f"{', '.join(f'{width:g}' for width in widths)} um wide"
            share, gap = 1 - widths[0] / widths[-1], subject.um(_gap(other, loads))
            found = subject.finding("group-unlike.unit", share, why, devices=[*loads, other], must=False)
            yield from found or _stands_away(subject, other, loads, gap)


def _replicas(subject: Subject, groups: Sequence[MatchedDevices]) -> Iterator[Remark]:
    """Yield the diodes in no group that have the model, channels and rail of a pair of loads but stand elsewhere.

    Also what sets the gate of equal channels that carry current both ways, such as those of large resistances.
    """
    grouped = {placed for group in groups for placed in group.devices}
    alike: dict[tuple[object, ...], list[MatchedDevices]] = defaultdict(list)
    for group in groups:
        kinds = {_kind(placed) for placed in group.devices}
        if len(kinds) == 1 and group.words == LOADS and not group.spread:
            alike[kinds.pop()].append(group)
    for placed in subject.placed:
        net = placed.device.terminals
        if placed.device.is_mos and net["g"] == net["d"] != net["s"] in subject.supplies and placed not in grouped:
            far = [(_gap(placed, group.devices), group) for group in alike[_kind(placed)]]
            for gap, group in sorted(far, key=lambda each: each[0])[:1]:
                yield from _stands_away(subject, placed, group.devices, subject.um(gap))
    biased: dict[object, list[PlacedDevice]] = defaultdict(list)
    driven = {*subject.circuit.ports, *subject.supplies.nets, *subject.inverted, *subject.roles.clocks}
    for placed in (p for p in subject.placed if p.device.is_mos and p.device.terminals["g"] not in driven):
        net = placed.device.terminals
        biased[placed.device.model, placed.device.l, placed.fingers[0].w_um, net["g"], net["b"]].append(placed)
    for own in biased.values():
        channels = [placed for placed in own if placed.id in subject.both_ways]
        for placed in (each for each in own if channels and each not in channels and not subject.is_idle(each)):
            gap = subject.um(_gap(placed, channels))
            yield from _stands_away(subject, placed, channels, gap, "gate")


def _stands_away(
    subject: Subject, placed: PlacedDevice, others: Sequence[PlacedDevice], gap: float, shared: str = "source net"
) -> list[Remark]:
    """Return whether a transistor of the same kind as some matched ones lies too far from them."""
    why = f"{placed.id}, of the same kind and on the same {shared} as {names_of(others)}, lies {gap:.3g} um from them"
    return subject.finding("group-apart.replica", gap, why, devices=[placed, *others], cause="replicas")


def _gap(placed: PlacedDevice, others: Sequence[PlacedDevice]) -> float:
    """Return the distance between the channels of a transistor and of others. [dbu]"""
    return min(gap_between(one, box) for one in placed.boxes for other in others for box in other.boxes)


def _kind(placed: PlacedDevice) -> tuple[object, ...]:
    net, finger = placed.device.terminals, placed.fingers[0]
    return placed.device.model, placed.device.l, finger.w_um, net.get("s"), net.get("b")


def _open_joints(subject: Subject, groups: Sequence[MatchedDevices]) -> list[Remark]:
    """Return the single channels of equal widths on one inner net that could share a diffusion but have one each.

    Matched transistors and their cascodes are rows of their own.
    """
    matched = {placed for group in groups if group.strict or group.words == CASCODES for placed in group.devices}
    on: dict[tuple[str, str, str], list[PlacedDevice]] = defaultdict(list)
    for placed in (each for each in subject.placed if each.device.is_mos and not subject.is_idle(each)):
        terminals = placed.device.terminals
        for net in dict.fromkeys(terminals[end] for end in placed.device.kind.ends):
            if net not in subject.supplies and (net not in subject.circuit.ports or placed.id in subject.both_ways):
                on[placed.device.model, terminals["b"], net].append(placed)
    found: dict[PlacedDevice, None] = {}
    nets: list[str] = []
    for (_, _, net), own in on.items():
        single = all(len(placed.boxes) == 1 for placed in own) and not matched.issuperset(own)
        if len(own) != 2 or not single or len({finger.w_um for placed in own for finger in placed.fingers}) > 1:
            continue
        if not own[0].islands & own[1].islands and subject.um(gap_between(own[0].box, own[1].box)) <= _NEXT_UM:
            found |= dict.fromkeys(own)
            nets.append(net)
    devices = list(found)
    why = f"{names_of(devices)} meet at {', '.join(nets[:4])}, but share no diffusion there"
    return subject.finding("room.joint", len(nets), why, devices=devices, nets=nets)
