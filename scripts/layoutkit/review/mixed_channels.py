"""How the channels of the devices of a matched group are mixed: about one centre, finely, none outside all others."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations, groupby
from math import dist
from typing import TYPE_CHECKING

from layoutkit.review.matched_roles import CASCODES, CROSSED, LOADS, ON_ONE_GATE
from layoutkit.review.subject import centre_of, names_of, turned

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from layoutkit.review.finding import Remark
    from layoutkit.review.matched_devices import Matching
    from layoutkit.review.matched_roles import MatchedDevices
    from layoutkit.review.subject import PlacedDevice, Subject

_HALVES = 2
_LEAST_RUN = 5  # channels of one device side by side that could be mixed with those of its image
_FEWEST_MIXED = 4  # channels, or devices, from which on there are more ways to mix them than ABBA


def mixed_channels(matching: Matching) -> Iterator[Remark]:
    """Yield the groups of transistors whose channels are not mixed as they could be."""
    for group in matching.transistors:
        yield from _halves(matching, group)


def _halves(matching: Matching, group: MatchedDevices) -> list[Remark]:
    """Return whether devices of a pair or mirror, at least one of several channels, have different centres."""
    subject, several = matching.subject, group.strict and not group.spread
    pairs = [(a, b) for a, b in combinations(group.devices, 2) if several and not _is_between(a, b)]
    apart = subject.um(max((dist(one.centre, other.centre) for one, other in pairs), default=0.0))
    bare = bool(apart and matching.bare(group))
    if group.words == ON_ONE_GATE and (found := ratio_apart(subject, group, must=bare)):
        return found
    why = f"the devices of {group.called} are not interleaved: their centres lie {apart:.3g} um apart"
    found = subject.finding(
        "group-apart.centres",
        apart,
        why + ", and no dummies guard them" * bare,
        devices=group.devices,
        cause="not interleaved",
        must=bare and group.is_even and matching.makes_offset(group),
    )
    two = len(group.devices) == _HALVES and not _is_apart(matching, group) and not _is_pumped(subject, group)
    if two and group.words in {CASCODES, CROSSED, LOADS}:
        pairs = [(group.devices[0], group.devices[1])]
    return (
        found
        or _blocks(subject, group, pairs)
        or _coarse(subject, group)
        or _nested(subject, group)
        or _whole(matching, group)
    )


def _is_pumped(subject: Subject, group: MatchedDevices) -> bool:
    """Return whether inverters drive the drains of a group through capacitors, as those of a charge pump's switches."""
    driven = {str(each.properties["output"]) for each in subject.roles.groups if each.type == "inverter"}
    drains = {placed.device.terminals.get("d", "") for placed in group.devices}
    plates = (
        d for d in subject.circuit.devices if d.type == "capacitor" and not driven.isdisjoint(d.terminals.values())
    )
    return drains <= {net for each in plates for net in each.terminals.values()}


def _is_apart(matching: Matching, group: MatchedDevices) -> bool:
    subject = matching.subject
    return subject.limits["group-apart.gap"].beyond(subject.um(matching.gap_within(group))) is not None


def _whole(matching: Matching, group: MatchedDevices) -> list[Remark]:
    """Return whether equal devices of one channel each are so large that their middles are far apart."""
    subject = matching.subject
    matched = group.is_even and not group.spread and not _is_apart(matching, group)
    single = [p for p in group.devices if len(p.boxes) == 1] if matched else []
    far = subject.um(max((dist(a.centre, b.centre) for a, b in combinations(single, 2)), default=0.0))
    why = f"the devices of {group.called} are single channels, not interleaved: their centres lie {far:.3g} um apart"
    return subject.finding("group-apart.whole", far, why, devices=single, cause="single channels")


def _nested(subject: Subject, group: MatchedDevices) -> list[Remark]:
    """Return whether units of one device lie outside those of an equal one, or the reference outside all others."""
    middle = centre_of(group.devices)
    away: dict[PlacedDevice, float] = {}
    for placed in group.devices if group.strict and not group.spread else ():
        places = [(box.center().x, box.center().y) for box in placed.boxes]
        away[placed] = sum(dist(place, middle) for place in places) / len(places)
    pairs = [(a, b) for a in away for b in away if len(a.boxes) == len(b.boxes) >= _FEWEST_MIXED]
    found: list[Remark] = []
    figures = [("group-apart.nested", away[a] / max(away[b], 1.0), a) for a, b in pairs]
    for each in away if len(away) >= _FEWEST_MIXED else ():
        others = [(len(other.boxes), away[other]) for other in away if other is not each]
        mean = sum(count * far for count, far in others) / sum(count for count, _ in others)
        if each.device.terminals["d"] == each.device.terminals["g"]:
            figures.append(("group-apart.reference", away[each] / max(mean, 1.0), each))
    for name in ("group-apart.reference", "group-apart.nested"):
        own = ((float(f"{most:.6g}"), -each.index, each.id) for known, most, each in figures if known == name)
        most, _, outer = max(own, default=(0.0, 0, ""))
        what = "the others" if name == "group-apart.reference" else "those of an equal one"
        why = f"the channels of {outer} in {group.called} lie {most:.3g} times as far from its middle as {what}"
        found = found or subject.finding(name, most, why, devices=group.devices, cause=name)
    return found


def _blocks(
    subject: Subject, group: MatchedDevices, pairs: Sequence[tuple[PlacedDevice, PlacedDevice]]
) -> list[Remark]:
    """Return whether equal devices near to each other stand in one row as blocks: AAABBB."""
    equal = [(a, b) for a, b in pairs if len(a.boxes) == len(b.boxes) > 1 and not a.box.overlaps(b.box)]
    apart = 0.0
    for one, other in equal:
        places = [box.center() for box in one.boxes]
        pitch = min(a.distance(b) for a, b in combinations(places, 2))
        apart = max(apart, dist(one.centre, other.centre) / pitch)
    why = f"the channels of {group.called} stand in blocks, whose centres lie {apart:.3g} channels apart"
    return subject.finding("group-apart.blocks", apart, why, devices=group.devices, cause="not interleaved")


def _coarse(subject: Subject, group: MatchedDevices) -> list[Remark]:
    """Return whether the equal halves of a pair or mirror have one centre, but are mixed in large blocks only."""
    if not group.strict or group.spread or not group.is_even or len(group.devices) != _HALVES:
        return []
    rows: dict[tuple[bool, int], list[tuple[int, int, int]]] = defaultdict(list)
    for number, placed in enumerate(group.devices):
        for finger, box in zip(placed.fingers, placed.boxes, strict=True):
            upright = finger.around is not None and finger.around.vertical
            along = turned(box, upright=upright)
            rows[upright, along.center().y].append((along.left, along.right, number))
    runs = [list(run) for row in rows.values() for _, run in groupby(sorted(row), key=lambda each: each[2])]
    longest = max((run for run in runs if len(run) >= _LEAST_RUN), key=lambda run: run[-1][1] - run[0][0], default=())
    width = subject.um(longest[-1][1] - longest[0][0]) if longest else 0.0
    why = f"{group.called} {group.has} {len(longest)} channels of one device side by side, over {width:.3g} um, "
    why += "with none of the other between"
    return subject.finding("group-apart.coarse", width, why, devices=group.devices, cause="not interleaved")


def ratio_apart(subject: Subject, group: MatchedDevices, *, must: bool) -> list[Remark]:
    """Return whether the units of the largest transistor of a ratio lie about none of the others; in half pitches."""
    large = max(group.devices, key=lambda placed: (placed.area, -placed.index))
    others = [placed for placed in group.devices if placed.area < large.area and len(large.boxes) > 1]  # else one cell
    places = [box.center() for placed in group.devices for box in placed.boxes]
    pitch = min((one.distance(other) for one, other in combinations(places, 2)), default=0.0)
    off = min((dist(placed.centre, large.centre) for placed in others), default=0.0)
    why = f"the units of {large.id} lie about none of {names_of(others)}: {subject.um(off):.3g} um off"
    return subject.finding("group-apart.ratio", 2 * off / max(1.0, pitch), why, devices=group.devices, must=must)


def _is_between(one: PlacedDevice, other: PlacedDevice) -> bool:
    """Return whether no better place is left for two devices: both are one channel, or one lies within the other."""
    small, large = sorted((one, other), key=lambda each: len(each.boxes))
    return len(small.boxes) == 1 and (len(large.boxes) == 1 or small.box.inside(large.box))
