"""The order of the units of matched devices, in one row or several: read from text, written as text, and enumerated.

A unit is a number of adjacent fingers of one device. A pattern is rows of units, bottom row first; all rows have the
units of one grid. As text, a letter is one unit and a number repeats it: ``A2B4A2`` is ``AABBBBAA``. ``A`` is the first
device of the group, ``B`` the second; ``/`` starts the next row above: ``AB/BA`` is the cross-coupled quad. The fingers
of each device are divided evenly over its units.

A sequence of units that reads the same from both ends, laid in rows from left to right whose lengths do so too, is its
own image after half a turn: every device has its centroid in the middle, in x and y.

A sequence of units becomes a row of fingers, with the orientation of each finger that shares most diffusions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import accumulate, groupby, pairwise, permutations
from math import factorial, prod
from typing import TYPE_CHECKING

from layoutkit.draw.row import Finger, Row
from layoutkit.errors import GeometryError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from layoutkit.draw.mos import Transistor


UnitRow = tuple[str, ...]
Pattern = tuple[UnitRow, ...]
AUTO = "auto"
"""Chosen by computed figures, see ``group_plan``."""
INTERDIGITATED = "interdigitated"
"""One row of the largest units that have a common centroid."""
STACKED = "stacked"
"""The same units, each in a row of its own."""
NAMED = ("ABBA", "ABAB", "AABB")
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
PATTERN_FORM = r"^([A-Z][0-9]{0,3})+(/([A-Z][0-9]{0,3})+)*$"
_MOST_UNITS = 10_000
_MOST_ORDERS = 400  # orders of half a pattern that are all tried; of more, only the evenly spread ones
_SWAP_LIMIT = 64  # longer patterns are palindromes except for a few units in the middle, so exchanges improve little
_BREAK = 1000  # a broken diffusion costs more than any number of drains at the ends


def parse_pattern(text: str, devices: Sequence[str]) -> Pattern:
    """Return the pattern that ``text`` states, with the ids of ``devices`` for its letters.

    Raises:
        GeometryError: If it is no pattern, a device has no unit in it, or a letter stands for no device.
    """
    allowed = [AUTO, *NAMED, "A2B4A2", "AB/BA"]
    if not re.fullmatch(PATTERN_FORM, text):
        raise GeometryError(
            f"Invalid arrangement: {text}; write 'auto', or a letter for each unit, A the first device, with a number "
            "for several, and / between rows, such as ABBA, A2B4A2, AB/BA",
            details={"provided_value": text, "allowed": allowed},
        )
    letters = dict(zip(LETTERS, devices, strict=False))
    rows = []
    for row in text.split("/"):
        parts = [(letter, int(number) if number else 1) for letter, number in re.findall(r"([A-Z])([0-9]*)", row)]
        if sum(count for _, count in parts) > _MOST_UNITS or min(count for _, count in parts) < 1:
            raise GeometryError(f"Invalid arrangement: {text}; each letter stands for 1 to {_MOST_UNITS} units")
        rows.append([letter for letter, count in parts for _ in range(count)])
    used = {letter for row in rows for letter in row}
    named = ", ".join(f"{letter} = {device}" for letter, device in letters.items())
    unknown, missing = sorted(used - letters.keys()), sorted(letters.keys() - used)
    if unknown or missing or len(devices) > len(LETTERS):
        faults = [f"{letter} is no device" for letter in unknown] + [f"{letter} has no unit" for letter in missing]
        raise GeometryError(
            f"Invalid arrangement: {text}; {', '.join(faults)}. The devices are {named}",
            details={"provided_value": text, "devices": list(devices), "allowed": allowed},
        )
    return tuple(tuple(letters[letter] for letter in row) for row in rows)


def pattern_text(pattern: Pattern, devices: Sequence[str]) -> str:
    """Return ``pattern`` as text that ``parse_pattern`` reads: plain letters where it is short, else with numbers."""
    letter = dict(zip(devices, LETTERS, strict=False))
    short = sum(map(len, pattern)) <= len(LETTERS)
    rows = []
    for row in pattern:
        runs = [(letter.get(device, "?"), len(list(units))) for device, units in groupby(row)]
        rows.append("".join(name * count if short or count == 1 else f"{name}{count}" for name, count in runs))
    return "/".join(rows)


def wrapped(sequence: Sequence[str], rows: int) -> Pattern:
    """Return ``sequence`` in ``rows`` rows of the lengths ``row_lengths``, each from left to right."""
    ends = [0, *accumulate(row_lengths(len(sequence), rows))]
    return tuple(tuple(sequence[start:end]) for start, end in pairwise(ends))


def row_lengths(total: int, rows: int) -> list[int]:
    """Return how many of ``total`` units each of ``rows`` rows has: the same, or one more in rows near the middle.

    The lengths read the same from both ends; there are none for an odd number of units in an even number of rows.
    """
    least, more = divmod(total, rows)
    if more % 2 and rows % 2 == 0:
        return []
    lengths = [least] * rows
    if more % 2:
        lengths[rows // 2] += 1
    for place in range(more // 2):
        lengths[(rows - 1) // 2 - rows % 2 - place] += 1
        lengths[rows // 2 + rows % 2 + place] += 1
    return lengths


def common_centroid(units: Mapping[str, int]) -> UnitRow:
    """Return an interleaved row of ``units`` (device to count) with the smallest centroid error found.

    The result is a palindrome if the counts allow one. Otherwise the unpaired units are placed in the middle, and
    pairs of units are exchanged as long as that reduces the error.

    Raises:
        GeometryError: If a count is not positive.
    """
    if not units or min(units.values()) < 1:
        raise GeometryError(f"every device of a pattern needs at least one unit, got {dict(units)}")
    half = _interleaved({device: count // 2 for device, count in units.items()})
    middle = tuple(device for device, count in units.items() if count % 2)
    pattern = (*half, *middle, *reversed(half))
    return pattern if len(middle) < 2 or len(pattern) > _SWAP_LIMIT else _improved(pattern)


def sequences(units: Mapping[str, int]) -> Iterator[UnitRow]:
    """Yield sequences of ``units`` to choose from, those that are common centroid where the counts allow any.

    All orders of half a palindrome if they are few, else the evenly spread order and the one in blocks. Two devices
    with equal counts also have ``ABBABAAB`` repeated, in which a reversal exchanges the devices.
    """
    first = common_centroid(units)
    yield first
    if sum(count % 2 for count in units.values()) > 1:
        return
    half = [device for device, count in units.items() for _ in range(count // 2)]
    middle = tuple(device for device, count in units.items() if count % 2)
    orders = factorial(len(half)) // prod(factorial(count // 2) for count in units.values()) if len(half) < 24 else 0
    if 0 < orders <= _MOST_ORDERS:
        for order in _orders(tuple(half)):
            yield (*order, *middle, *reversed(order))
    else:
        yield (*half, *middle, *reversed(half))
        turned = _interleaved({device: units[device] // 2 for device in reversed(tuple(units))})
        yield (*turned, *middle, *reversed(turned))
    if len(units) == 2 and len(set(units.values())) == 1 and sum(units.values()) % 8 == 0:
        a, b = units
        yield (a, b, b, a, b, a, a, b) * (sum(units.values()) // 8)


def centroid_offsets(row: Sequence[str]) -> dict[str, float]:
    """Return for each device the distance of the mean position of its units from the middle. [unit pitches]"""
    return {device: total / 2 / row.count(device) for device, total in _doubled_sums(row).items()}


def centroid_error(row: Sequence[str]) -> float:
    """Return the largest distance between the mean positions of any two devices. [unit pitches]"""
    offsets = centroid_offsets(row).values()
    return max(offsets) - min(offsets)


def _orders(units: UnitRow) -> Iterator[UnitRow]:
    """Yield the distinct orders of ``units``, sorted."""
    if len(set(units)) == len(units):
        yield from permutations(units)
        return
    if not units:
        yield ()
        return
    for device in dict.fromkeys(units):
        rest = list(units)
        rest.remove(device)
        for order in _orders(tuple(rest)):
            yield (device, *order)


def _doubled_sums(row: Sequence[str]) -> dict[str, int]:
    """Return for each device the sum of twice the distance of its units from the middle."""
    sums = dict.fromkeys(row, 0)
    for i, device in enumerate(row):
        sums[device] += 2 * i - (len(row) - 1)
    return sums


def _interleaved(units: Mapping[str, int]) -> UnitRow:
    """Return the units of all devices evenly spread: the k-th of n units at (k + 1/2) / n; ties in the given order."""
    keyed = [
        ((2 * k + 1) / (2 * count), place, device)
        for place, (device, count) in enumerate(units.items())
        for k in range(count)
    ]
    return tuple(device for _, _, device in sorted(keyed))


def _improved(row: UnitRow) -> UnitRow:
    """Return ``row`` after exchanging pairs of units as long as that lowers the centroid error."""

    def cost(units: Sequence[str]) -> tuple[float, float]:
        return centroid_error(units), sum(abs(offset) for offset in centroid_offsets(units).values())

    best, best_cost = list(row), cost(row)
    improved = True
    while improved:
        improved = False
        for i in range(len(best)):
            for j in range(i):
                if best[i] == best[j]:
                    continue
                best[i], best[j] = best[j], best[i]
                found = cost(best)
                if found < best_cost:
                    best_cost, improved = found, True
                else:
                    best[i], best[j] = best[j], best[i]
    return tuple(best)


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
