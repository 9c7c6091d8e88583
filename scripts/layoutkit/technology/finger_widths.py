"""Choose numbers of fingers that keep a total width exact, with each finger on the grid and of an allowed width."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# The middle of a finger wider than this multiple of the tap distance would be too far from the ring.
TAP_REACH = 1.5
ROUNDING = 1e-6
MOST_COMMON_FINGERS = 1000  # with more fingers no common finger width is looked for
MOST_STEPS = 10**8  # half a metre on a grid of 5 nm; no process draws such a width


@dataclass(frozen=True)
class FingeredWidth:
    """A transistor's width and fingers. [dbu]

    Attributes:
        device: Id of the transistor.
        flavour: Its device in the technology. Transistors of the same flavour and finger width keep equal fingers.
        total: Width of all fingers, not necessarily on the grid.
        fingers: Number in the netlist.
        narrowest: Narrowest finger.
        widest: Widest finger; 0 for no limit.
        allowed: Widest finger if no narrower one keeps the total, infinity for no limit; 0 for ``widest``.
        units: A new number of fingers must be a multiple of this.
    """

    device: str
    flavour: str
    total: float
    fingers: int
    narrowest: int
    widest: float = 0
    units: int = 1
    allowed: float = 0


def widest_finger(technology: Any, spec: Any) -> int:
    """Return the widest finger of ``spec`` that is near enough to the taps around it. [dbu]"""
    reach: int = max(int(TAP_REACH * technology.dim("tap_max_distance", spec)), spec.min_w)
    widest: int = reach if spec.max_w is None else min(reach, spec.max_w)
    return widest


def dividing_fingers(widths: Iterable[FingeredWidth], grid: int) -> dict[str, int]:
    """Return new numbers of fingers, by device, where the given number does not keep the total width on the grid.

    Transistors of the same flavour and finger width get the same new finger width if possible, so that a mirror keeps
    its units. The new finger width has the smallest ratio to the given one. Fingers wider than ``widest`` are used
    only if no other width keeps the total. A width that is itself off the grid, or that no number of fingers divides,
    is not in the result.
    """
    alike: dict[tuple[str, float], list[FingeredWidth]] = defaultdict(list)
    for each in widths:
        if not 0 < each.total < MOST_STEPS * grid:
            continue
        on_grid = abs(each.total - _steps(each, grid) * grid) < ROUNDING * max(each.total, 1)
        wide_enough = each.total / each.fingers >= each.narrowest  # fingers that are too narrow are reported elsewhere
        if on_grid and wide_enough and _steps(each, grid) % each.fingers:
            alike[each.flavour, round(each.total / each.fingers, 3)].append(each)
    found: dict[str, int] = {}
    for group in alike.values():
        for part in [group] if _finger_steps(group, grid) else [[each] for each in group]:
            finger = _finger_steps(part, grid) or _finger_steps([replace(e, widest=e.allowed) for e in part], grid)
            if finger:
                found.update({each.device: _steps(each, grid) // finger for each in part})
    return found


def one_finger_width(totals: Sequence[int], wanted: int, limits: tuple[int, int], grid: int) -> int:
    """Return the finger width that divides all ``totals`` and is nearest in ratio to ``wanted``; 0 if there is none.

    Args:
        totals: Widths of whole transistors. [dbu]
        wanted: Finger width to come near to. [dbu]
        limits: Narrowest and widest finger. [dbu]
        grid: Grid of the process. [dbu]
    """
    common = math.gcd(*totals)
    if common % grid:
        return 0
    legal = [
        steps * grid
        for steps in _divisors(common // grid)
        if limits[0] <= steps * grid <= limits[1] and sum(totals) // (steps * grid) <= MOST_COMMON_FINGERS
    ]
    return min(legal, key=lambda width: (max(width / wanted, wanted / width), width), default=0)


def _steps(width: FingeredWidth, grid: int) -> int:
    return round(width.total / grid)


def _finger_steps(group: Sequence[FingeredWidth], grid: int) -> int:
    """Return the finger width that divides every total of ``group``, 0 if there is none. [grid steps]"""
    common = math.gcd(*(_steps(each, grid) for each in group))
    narrowest = max(each.narrowest for each in group)
    widest = min((each.widest for each in group if each.widest), default=common * grid)
    wanted = group[0].total / group[0].fingers / grid
    legal = [
        steps
        for steps in _divisors(common)
        if narrowest <= steps * grid <= widest and all(_steps(each, grid) // steps % each.units == 0 for each in group)
    ]
    return min(legal, key=lambda steps: (abs(math.log(steps / wanted)), steps), default=0)


def _divisors(number: int) -> list[int]:
    small = [each for each in range(1, math.isqrt(number) + 1) if number % each == 0]
    return sorted({*small, *(number // each for each in small)})
