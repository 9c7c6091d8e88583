"""Turn a sequence of units into a row of fingers, with the orientation of each finger that shares most diffusions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from layoutkit.draw.row import Finger, Row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from layoutkit.draw.mos import Transistor

_BREAK = 1000  # a broken diffusion costs more than any number of drains at the ends


@dataclass(frozen=True)
class FingerUnit:
    """Adjacent fingers of one transistor.

    Attributes:
        id: Name of the instance.
        transistor: Transistor that it is a part of.
        fingers: Number of fingers.
    """

    id: str
    transistor: Transistor
    fingers: int


def arranged_row(units: Sequence[FingerUnit], *, gap: int = 0, separate: bool = False) -> Row:
    """Return ``units`` as one row.

    Fingers are oriented so that as few diffusions as possible are broken; if several orientations are equal, those
    with sources at the ends are used. A palindrome becomes a row whose geometry is its own mirror image.

    Args:
        units: From left to right.
        gap: Minimum distance between diffusions that are not shared. [dbu]
        separate: Whether every unit has its own diffusion.
    """
    owners = [unit for unit in units for _ in range(unit.fingers)]
    boundaries = frozenset(end - 1 for end in accumulate(unit.fingers for unit in units[:-1]))
    forced = boundaries if separate else frozenset()
    both = [(unit.transistor.finger(mirrored=False), unit.transistor.finger(mirrored=True)) for unit in owners]
    shape = [(unit.transistor.id, unit.fingers) for unit in units]
    palindrome = shape == shape[::-1]
    if palindrome and len(both) % 2 == 0:
        half = _facing(both[: len(both) // 2], forced, open_end=True)
        facing = half + [not mirrored for mirrored in reversed(half)]
    else:
        facing = _facing(both, forced, open_end=False)
    chosen = [pair[mirrored] for pair, mirrored in zip(both, facing, strict=True)]
    breaks = forced | Row(tuple(chosen)).broken()
    if palindrome:
        breaks |= {len(chosen) - 2 - i for i in breaks}
    orientations = _orientations(units, facing, palindrome=palindrome)
    fingers = tuple(
        replace(finger, unit=unit.id, orientation=orientations[unit.id])
        for finger, unit in zip(chosen, owners, strict=True)
    )
    return Row(fingers, frozenset(breaks), gap)


def in_one_direction(units: Sequence[FingerUnit]) -> Row:
    """Return ``units`` as one row in which every unit starts with its source on the left."""
    fingers = [
        replace(unit.transistor.finger(mirrored=bool(i % 2)), unit=unit.id)
        for unit in units
        for i in range(unit.fingers)
    ]
    row = Row(tuple(fingers))
    return replace(row, breaks=row.broken())


def mirrored_row(row: Row, units: Sequence[FingerUnit]) -> Row:
    """Return the mirror image of ``row``, with its units named as in ``units``, from left to right."""
    names = [unit.id for unit in units for _ in range(unit.fingers)]
    fingers = tuple(
        replace(f.turned(), unit=name, orientation=_MIRRORED[f.orientation])
        for f, name in zip(reversed(row.fingers), names, strict=True)
    )
    return replace(row, fingers=fingers, breaks=frozenset(len(fingers) - 2 - i for i in row.breaks))


def upside_down(row: Row) -> Row:
    """Return ``row`` with its gate contacts below and its sources and drains as they are."""
    fingers = tuple(replace(f, orientation=_TURNED[f.orientation]) for f in row.fingers)
    return replace(row, fingers=fingers, flipped=not row.flipped)


def isolated(row: Row, bulk_net: str) -> Row:
    """Return ``row`` with a dummy finger, its gate on ``bulk_net``, wherever two different nets break the diffusion."""
    fingers: list[Finger] = []
    breaks: set[int] = set()
    broken = row.broken()
    for i, finger in enumerate(row.fingers):
        fingers.append(finger)
        if i not in broken:
            continue
        after = row.fingers[i + 1]
        if after.width != finger.width or finger.blocked:
            breaks.add(len(fingers) - 1)
            continue
        length = max(finger.length, after.length)
        dummy = replace(finger, device="", unit="", gate=bulk_net, left=finger.right, right=after.left, length=length)
        fingers.append(replace(dummy, orientation="R0"))
    return replace(row, fingers=tuple(fingers), breaks=frozenset(breaks))


_MIRRORED = {"R0": "MY", "MY": "R0", "MX": "R180", "R180": "MX"}
_TURNED = {"R0": "MX", "MX": "R0", "MY": "R180", "R180": "MY"}


def _facing(both: Sequence[tuple[Finger, Finger]], forced: frozenset[int], *, open_end: bool) -> list[bool]:
    """Return for each finger whether it is mirrored, by dynamic programming over its two orientations.

    ``open_end``: the last finger's right side is the middle of a mirrored row, always shared, and costs nothing.
    """

    def at_end(finger: Finger, *, left: bool) -> int:
        source = both[0][0].left if left else both[-1][0].left
        return int((finger.left if left else finger.right) != source)

    costs: list[tuple[int, list[bool]]] = [(at_end(f, left=True), [bool(i)]) for i, f in enumerate(both[0])]
    for i, (before, after) in enumerate(pairwise(both)):
        costs = [
            min(
                (
                    cost + (0 if i in forced else _BREAK * (not before[path[-1]].shares_diffusion(finger))),
                    [*path, bool(way)],
                )
                for cost, path in costs
            )
            for way, finger in enumerate(after)
        ]
    if not open_end:
        costs = [(cost + at_end(both[-1][path[-1]], left=False), path) for cost, path in costs]
    return min(costs)[1]


def _orientations(units: Sequence[FingerUnit], facing: Sequence[bool], *, palindrome: bool) -> dict[str, str]:
    """Return unit id -> orientation relative to the first unit of the same device: R0, or MY if mirrored."""
    first: dict[str, tuple[bool, ...]] = {}
    result: dict[str, str] = {}
    start = 0
    for i, unit in enumerate(units):
        ways = tuple(facing[start : start + unit.fingers])
        start += unit.fingers
        base = first.setdefault(unit.transistor.id, ways)
        mirrored = tuple(not way for way in reversed(ways))
        right_half = palindrome and 2 * i >= len(units)
        result[unit.id] = "MY" if ways != base or (right_half and mirrored == base) else "R0"
    return result
