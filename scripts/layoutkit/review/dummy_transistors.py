"""Findings on dummies: those that guard nothing, lie away from what they belong to, or are as many as the channels.

A dummy guards the transistor beside it, or one step away in an array whose units are islands.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.review.subject import box_around, gap_between, names_of, turned

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from layoutkit.review.finding import Remark
    from layoutkit.review.subject import PlacedDevice, Subject

_BESIDE_UM = 2.0  # from a transistor to its dummies [um]
_DEEPEST = 3  # dummies side by side that guard one end; the hand layouts have up to so many
_STEP_UM = 10.0  # from island to island of an array at most [um]
_A_STEP = 1.1  # times the step from unit to unit that a dummy is away from a unit at most
_FEWEST_CHANNELS = 4  # of a diffusion in which dummies at the ends alone are fewer than its channels


def lone_dummies(subject: Subject) -> list[Remark]:
    """Return the transistors that are always off and in no row or column of working ones: they guard nothing.

    Three dummies in a row guard what is beside them; those beyond guard nothing. What is off between two ports or
    supplies is a clamp, and with a signal at its gate a capacitor.
    """
    reach = subject.technology.to_dbu(_BESIDE_UM)
    supplies = subject.supplies
    outside = {*subject.circuit.ports, *supplies.power, *supplies.ground}
    clamps = [p for p in subject.placed if p.device.is_mos and p.ends <= outside]
    clamps = [p for p in clamps if len(p.ends) > 1 or p.device.terminals["g"] not in p.ends | supplies.nets]
    clamped = [box for placed in clamps for box in placed.boxes]
    used, lone = kdb.Shapes(), [box for box in subject.idle_boxes if box not in clamped]
    for placed in subject.placed:
        if placed.device.is_mos and not subject.is_idle(placed):
            for finger, box in zip(placed.fingers, placed.boxes, strict=True):
                used.insert(kdb.BoxWithProperties(box, int(finger.around is not None and finger.around.vertical)))
    for _ in range(_DEEPEST):  # a dummy beside one that guards a transistor does so, too
        found = {box: near for box in lone if (near := _guarded(box, used, reach, subject.technology.to_dbu(_STEP_UM)))}
        lone = [box for box in lone if box not in found]
        for box, guarded in found.items():
            used.insert(kdb.BoxWithProperties(box, guarded[0]))
    count = len(lone)
    why = (
        f"{count} {'transistors are' if count > 1 else 'transistor is'} always off and "
        f"{'lie' if count > 1 else 'lies'} beside no transistor to guard"
    )
    return subject.finding("rings.dummies", count, why, where=box_around(lone))


def _guarded(dummy: kdb.Box, channels: kdb.Shapes, reach: int, far: int) -> list[int]:
    """Return the directions of the channels that a dummy guards: beside it, or one step of a grid of islands away."""
    near = [each for each in channels.each_touching(dummy.enlarged(reach, reach)) if _in_line(dummy, each)]
    if near:
        return [each.prop_id for each in near]
    for flat in (True, False):
        row = _in_row(dummy, channels, far, flat=flat)
        found = [c.prop_id for gap, c in row if gap <= _A_STEP * _step(c.box, channels, far, flat=flat)]
        if found:
            return found
    return []


def _in_row(box: kdb.Box, channels: kdb.Shapes, far: int, *, flat: bool) -> list[tuple[float, kdb.Shape]]:
    """Return the other channels of the size of one that lie in its row, or in its column, and their distances. [dbu]"""
    strip = turned(turned(box, upright=not flat).enlarged(far, 0), upright=not flat)
    others = (each for each in channels.each_overlapping(strip) if each.box != box)
    size = (box.width(), box.height())
    return [(gap_between(box, each.box), each) for each in others if (each.box.width(), each.box.height()) == size]


def _step(box: kdb.Box, channels: kdb.Shapes, far: int, *, flat: bool) -> float:
    return min((gap for gap, _ in _in_row(box, channels, far, flat=flat)), default=0.0)


def _in_line(dummy: kdb.Box, channel: kdb.Shape) -> bool:
    """Return whether a dummy is in the row of a channel, or in its column with the same gate length."""
    one, other = (turned(box, upright=bool(channel.prop_id)) for box in (dummy, channel.box))
    both = min(one.top, other.top) - max(one.bottom, other.bottom)
    return 2 * both >= min(one.height(), other.height()) or (one.left, one.right) == (other.left, other.right)


def dummies_between(subject: Subject) -> list[Remark]:
    """Return the rows with as many dummies as working channels, which the ends of the rows do not need."""
    idle, working = Counter[int](), Counter[int]()
    rows: dict[int, dict[PlacedDevice, None]] = {}
    for finger in subject.extraction.dummies:
        if finger.around is not None:
            idle[finger.around.diffusion] += 1
    for placed in subject.placed:
        count = idle if subject.is_idle(placed) else working
        for around in (finger.around for finger in placed.fingers if placed.device.is_mos):
            if around is not None:
                count[around.diffusion] += 1
                rows.setdefault(around.diffusion, {})[placed] = None
    shares = {row: idle[row] / count for row, count in working.items() if count >= _FEWEST_CHANNELS}
    limit = subject.limits["rings.between"]
    full = [row for row, share in shares.items() if limit.beyond(share)]
    most = max(full, key=lambda row: (shares[row], -row), default=0)
    devices = list(dict.fromkeys(placed for row in full for placed in rows[row]))
    why = f"{names_of(devices)}: {idle[most]} dummies are in a row with {working[most]} channels"
    return subject.finding("rings.between", shares.get(most, 0.0), why, devices=devices)


def dummies_away(subject: Subject) -> Iterator[Remark]:
    """Yield the dummies of the user that lie away from the transistors whose nets, type and length they have."""
    supplies = subject.supplies.nets
    for placed in subject.placed:
        if not placed.device.is_mos or len(placed.ends) > 1 or placed.ends & supplies:
            continue
        kind, gate = (placed.device.model, placed.device.l), placed.device.terminals["g"]
        alike = [o for o in subject.placed if o.device.is_mos and (o.device.model, o.device.l) == kind]
        alike = [other for other in alike if placed.ends & other.ends and not subject.is_idle(other)]
        if gate not in placed.ends | supplies:  # a capacitor, unless on the gate of another, or cancelling a switch
            alike = [
                o
                for o in alike
                if o.device.terminals["g"] == gate or (o.id in subject.both_ways and o.area >= placed.area)
            ]
        places = [gap_between(one, its) for one in placed.boxes for o in alike for its in o.boxes]
        gap = min(places, default=0.0)
        why = f"the dummy {placed.id}, tied to a net of {names_of(alike)}, lies {subject.um(gap):.3g} um from "
        why += "them" if len(alike) > 1 else "it"
        yield from subject.finding("rings.away", subject.um(gap), why, devices=[placed], cause="dummies away")


def bare_sides(
    subject: Subject, units: Sequence[tuple[kdb.Box, bool]], others: Sequence[kdb.Box], bare: Sequence[tuple[int, bool]]
) -> int:
    """Return how many sides of channels have no neighbour, not even at the step of an array of islands with dummies.

    Args:
        subject: The layout.
        units: The channels of a group, and whether their gates are horizontal. [dbu]
        others: The channels of those that work with them. [dbu]
        bare: The numbers of channels without a neighbour near by, and whether at the right (upper) side of these.
    """
    far, sizes = subject.technology.to_dbu(_STEP_UM), {(box.width(), box.height()) for box, _ in units}
    around = box_around(box for box, _ in units).enlarged(far, far)
    idle = [box for box in subject.idle_boxes if (box.width(), box.height()) in sizes and box.touches(around)]
    if not bare or not idle:
        return len(bare)

    def gap(number: int, near: Sequence[kdb.Box], *, right: bool) -> float:
        box, upright = units[number]
        its, gaps = turned(box, upright=upright), [float(far + 1)]
        for other in (turned(each, upright=upright) for each in near):
            ahead = other.left - its.right if right else its.left - other.right
            in_row = min(its.top, other.top) > max(its.bottom, other.bottom) and other.height() == its.height()
            gaps += [ahead] if in_row and ahead >= 0 else []
        return min(gaps)

    steps = [min(gap(number, others, right=False), gap(number, others, right=True)) for number, _ in bare]
    step = _A_STEP * max((each for each in steps if each <= far), default=0.0)
    return sum(gap(number, (*idle, *others), right=right) > step for number, right in bare)
