"""Findings on the channels that transistors are divided into, on dummies beside and between these, on turned bars."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from layoutkit.review.subject import gap_between, names_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from layoutkit.review.finding import Remark
    from layoutkit.review.subject import PlacedDevice, Subject

_FEWEST_CHANNELS = 4  # of a diffusion in which dummies at the ends alone are fewer than its channels


def split_channels(subject: Subject) -> list[Remark]:
    """Return the transistors that are divided into channels too narrow to be made well."""
    limit = subject.limits["room.split"]
    least: dict[PlacedDevice, float] = {}
    for placed in subject.placed:
        if placed.device.is_mos and len(placed.fingers) > 1 and not subject.is_idle(placed):
            least[placed] = min(finger.w_um for finger in placed.fingers)
    split = [placed for placed, width in least.items() if limit.beyond(width)]
    narrowest = min((least[placed] for placed in split), default=limit.should or 0.0)
    why = f"{names_of(split)} {'is' if len(split) == 1 else 'are'} divided into channels of down to {narrowest:.3g} um"
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
    supplies = {*subject.supplies.power, *subject.supplies.ground}
    for placed in subject.placed:
        if not placed.device.is_mos or len(placed.ends) > 1 or placed.ends & supplies:
            continue
        kind, gate = (placed.device.model, placed.device.l), placed.device.terminals["g"]
        alike = [o for o in subject.placed if o.device.is_mos and (o.device.model, o.device.l) == kind]
        alike = [other for other in alike if placed.ends & other.ends and not subject.is_idle(other)]
        if gate not in placed.ends | supplies:  # a capacitor, unless its gate is that of a transistor beside it
            alike = [other for other in alike if other.device.terminals["g"] == gate]
        gap = min((gap_between(one, its) for one in placed.boxes for o in alike for its in o.boxes), default=0.0)
        why = f"{placed.id}, on a net of {names_of(alike)} and never on, lies {subject.um(gap):.3g} um from there"
        yield from subject.finding("rings.away", subject.um(gap), why, devices=[placed], cause="dummies away")


def turned_bars(subject: Subject) -> Iterator[Remark]:
    """Yield the resistors that lie across others of their kind."""
    kinds: dict[str, tuple[list[PlacedDevice], list[PlacedDevice]]] = {}
    for placed in subject.placed:
        if placed.device.type == "resistor" and not subject.is_idle(placed):
            sides = (placed.boxes[0].width(), placed.boxes[0].height())  # one of them is the length of the bar
            away = [abs(subject.um(side) - placed.fingers[0].l_um) for side in sides]
            upright = away[1] < away[0]
            kinds.setdefault(placed.device.model, ([], []))[upright].append(placed)
    for ways in kinds.values():
        few, others = sorted(ways, key=len)
        why = f"{names_of(few)} {'lies' if len(few) == 1 else 'lie'} across {names_of(others)} of the same kind"
        yield from subject.finding("passives.turned", len(few), why, devices=few)
