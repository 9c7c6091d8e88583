"""The order of the units of matched devices.

A pattern is a sequence of device ids, one per unit, at equal pitch. The centroid error of a device is the distance
between the mean position of its units and the middle. A palindrome has no centroid error; one exists if at most one
device has an odd number of units.
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

from layoutkit.errors import GeometryError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Pattern = tuple[str, ...]

ARRANGEMENTS = ("ABBA", "ABAB", "AABB")
_SWAP_LIMIT = 64  # longer patterns are palindromes except for a few units in the middle, so exchanges improve little


def named_pattern(arrangement: str, first: str, second: str) -> Pattern:
    """Return the pattern of ``arrangement`` (ABBA, ABAB, AABB) with A = ``first`` and B = ``second``.

    Raises:
        GeometryError: If there is no such arrangement.
    """
    if arrangement not in ARRANGEMENTS:
        raise GeometryError(
            f"Invalid arrangement: {arrangement}",
            details={"provided_value": arrangement, "allowed": list(ARRANGEMENTS)},
        )
    return tuple(first if letter == "A" else second for letter in arrangement)


def common_centroid(units: Mapping[str, int]) -> Pattern:
    """Return an interleaved pattern of ``units`` (device to count) with the smallest centroid error found.

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


def centroid_offsets(pattern: Sequence[str]) -> dict[str, float]:
    """Return for each device the distance of the mean position of its units from the middle. [unit pitches]"""
    return {device: total / 2 / pattern.count(device) for device, total in _doubled_sums(pattern).items()}


def centroid_error(pattern: Sequence[str]) -> float:
    """Return the largest distance between the mean positions of any two devices. [unit pitches]"""
    offsets = centroid_offsets(pattern).values()
    return max(offsets) - min(offsets)


def matched_units(fingers: Mapping[str, int]) -> tuple[int, Pattern]:
    """Return fingers per unit, and the pattern of such units, for devices with ``fingers`` each.

    The largest unit without a centroid error is used, else the one with the smallest error. Large units are more
    compact, small units interleave better.
    """
    whole = gcd(*fingers.values())
    best: tuple[float, int, Pattern] | None = None
    for size in (size for size in range(whole, 0, -1) if whole % size == 0):
        pattern = common_centroid({device: count // size for device, count in fingers.items()})
        error = centroid_error(pattern) * size
        if best is None or error < best[0]:
            best = (error, size, pattern)
        if error == 0 or len(pattern) > _SWAP_LIMIT:
            break
    if best is None:
        raise GeometryError("a pattern needs at least one device")
    return best[1], best[2]


def _doubled_sums(pattern: Sequence[str]) -> dict[str, int]:
    """Return for each device the sum of twice the distance of its units from the middle."""
    sums = dict.fromkeys(pattern, 0)
    for i, device in enumerate(pattern):
        sums[device] += 2 * i - (len(pattern) - 1)
    return sums


def _interleaved(units: Mapping[str, int]) -> Pattern:
    """Return the units of all devices evenly spread: the k-th of n units at (k + 1/2) / n; ties in the given order."""
    keyed = [
        ((2 * k + 1) / (2 * count), place, device)
        for place, (device, count) in enumerate(units.items())
        for k in range(count)
    ]
    return tuple(device for _, _, device in sorted(keyed))


def _improved(pattern: Pattern) -> Pattern:
    """Return ``pattern`` after exchanging pairs of units as long as that lowers the centroid error."""

    def cost(units: Sequence[str]) -> tuple[float, float]:
        return centroid_error(units), sum(abs(offset) for offset in centroid_offsets(units).values())

    best, best_cost = list(pattern), cost(pattern)
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
