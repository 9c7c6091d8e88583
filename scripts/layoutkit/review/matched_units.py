"""Findings on the units of matched groups: their order and lengths, and units of the same kind drawn elsewhere."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from layoutkit.circuit.recognise import MODULE_TYPES
from layoutkit.review.subject import gap_between, names_of, turned

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from layoutkit.review.finding import Remark
    from layoutkit.review.matched_roles import MatchedDevices
    from layoutkit.review.subject import PlacedDevice, Subject

_MIRROR = MODULE_TYPES["current_mirror"].words
_LOADS = MODULE_TYPES["load_pair"].words
_FEWEST_IN_ORDER = 3  # devices from which on a mirror has a middle
_NEXT_UM = 10.0  # from a transistor to one that it could share a diffusion with [um]


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
    """Return whether the copies of a mirror stand in its row behind each other, all at one side of the reference."""
    references = [each for each in group.devices if each.device.terminals["d"] == each.device.terminals["g"]]
    if group.words != _MIRROR or len(references) != 1 or len(group.devices) < _FEWEST_IN_ORDER or group.spread:
        return []
    (own,), others = references, [each for each in group.devices if each not in references]
    for upright in (False, True):
        first, *rest = (turned(each.box, upright=upright) for each in (own, *others))
        beside = [min(first.top, box.top) > max(first.bottom, box.bottom) for box in rest]
        after, before = ([box.left >= first.right for box in rest], [box.right <= first.left for box in rest])
        if all(beside) and (all(after) or all(before)):
            gaps = sorted(subject.um(abs(box.center().x - first.center().x)) for box in rest)
            why = (
                f"the copies of {own.id} in {group.called} stand at one side of it, {gaps[0]:.3g} to {gaps[-1]:.3g} um"
            )
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
    """Yield the second stages whose size is a multiple of that of the loads that drive them, not their channels."""
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
    """Yield the diodes of the kind, channels and rail of a pair of loads, in no group, that stand elsewhere."""
    grouped = {placed for group in groups for placed in group.devices}
    alike: dict[tuple[object, ...], list[MatchedDevices]] = defaultdict(list)
    for group in groups:
        kinds = {_kind(placed) for placed in group.devices}
        if len(kinds) == 1 and group.words == _LOADS and not group.spread:
            alike[kinds.pop()].append(group)
    for placed in subject.placed:
        net = placed.device.terminals
        if placed.device.is_mos and net["g"] == net["d"] != net["s"] in subject.supplies and placed not in grouped:
            far = [(_gap(placed, group.devices), group) for group in alike[_kind(placed)]]
            for gap, group in sorted(far, key=lambda each: each[0])[:1]:
                yield from _stands_away(subject, placed, group.devices, subject.um(gap))


def _stands_away(subject: Subject, placed: PlacedDevice, others: Sequence[PlacedDevice], gap: float) -> list[Remark]:
    """Return whether what follows some matched transistors lies too far from them."""
    why = f"{placed.id}, of the same kind as {names_of(others)} and at a voltage of theirs, lies {gap:.3g} um from them"
    return subject.finding("group-apart.replica", gap, why, devices=[placed, *others], cause="replicas")


def _gap(placed: PlacedDevice, others: Sequence[PlacedDevice]) -> float:
    """Return the distance between the channels of a transistor and of others. [dbu]"""
    return min(gap_between(one, box) for one in placed.boxes for other in others for box in other.boxes)


def _kind(placed: PlacedDevice) -> tuple[object, ...]:
    net, finger = placed.device.terminals, placed.fingers[0]
    return placed.device.model, placed.device.l, finger.w_um, net.get("s"), net.get("b")


def _open_joints(subject: Subject, groups: Sequence[MatchedDevices]) -> list[Remark]:
    """Return the single channels in series, of equal widths, that could share a diffusion but have one each."""
    strict = {placed for group in groups if group.strict for placed in group.devices}
    on: dict[tuple[str, str, str], list[PlacedDevice]] = defaultdict(list)
    for placed in (each for each in subject.placed if each.device.is_mos and not subject.is_idle(each)):
        terminals = placed.device.terminals
        for net in dict.fromkeys(terminals[end] for end in placed.device.kind.ends):
            if net not in subject.supplies and (net not in subject.circuit.ports or placed.id in subject.both_ways):
                on[placed.device.model, terminals["b"], net].append(placed)
    found: dict[PlacedDevice, None] = {}
    nets: list[str] = []
    for (_, _, net), own in on.items():
        single = all(len(placed.boxes) == 1 for placed in own) and not strict.issuperset(own)
        if len(own) != 2 or not single or len({finger.w_um for placed in own for finger in placed.fingers}) > 1:
            continue
        if not own[0].islands & own[1].islands and subject.um(gap_between(own[0].box, own[1].box)) <= _NEXT_UM:
            found |= dict.fromkeys(own)
            nets.append(net)
    devices = list(found)
    why = f"{names_of(devices)} meet at {', '.join(nets[:4])}, but share no diffusion there"
    return subject.finding("room.joint", len(nets), why, devices=devices, nets=nets)
