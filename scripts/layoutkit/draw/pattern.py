"""In which order the units of matched devices lie.

A pattern is a sequence of device ids, one a unit, at equal pitch. Its common-centroid error is how far the mean
position of a device's units lies from the middle. A palindrome has none; it exists when at most one device has an odd
number of units.
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

from layoutkit.errors import GeometryError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Pattern = tuple[str, ...]

ARRANGEMENTS = ("ABBA", "ABAB", "AABB")
_SWAP_LIMIT = 64  # longer patterns are palindromes but for a few units in their middle, and swaps gain little


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
    """Return a pattern of ``units`` (device to count) with the least centroid error found, well interleaved.

    The result is a palindrome where the counts allow one. Otherwise the units left over from pairing lie in the
    middle, and exchanges of two units reduce the error as far as they can.

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
    """Return for each device how far the mean position of its units lies from the middle. [unit pitches]"""
    return {device: total / 2 / pattern.count(device) for device, total in _doubled_sums(pattern).items()}


def centroid_error(pattern: Sequence[str]) -> float:
    """Return the largest distance between the mean positions of any two devices. [unit pitches]"""
    offsets = centroid_offsets(pattern).values()
    return max(offsets) - min(offsets)


def matched_units(fingers: Mapping[str, int]) -> tuple[int, Pattern]:
    """Return fingers per unit, and the pattern of such units, for devices with ``fingers`` each.

    The largest unit that gives no centroid error is taken, else the one with the least: one unit a device would be
    most compact, smaller ones interleave better.
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
    """Return for each device the sum over its units of twice their distance from the middle."""
    sums = dict.fromkeys(pattern, 0)
    for i, device in enumerate(pattern):
        sums[device] += 2 * i - (len(pattern) - 1)
    return sums


def _interleaved(units: Mapping[str, int]) -> Pattern:
    """Return the units in the order of evenly spread sequences: the k-th of n comes at (k + 1/2) / n; ties in order."""
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
