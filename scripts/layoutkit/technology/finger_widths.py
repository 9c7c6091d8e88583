"""Numbers and sizes: fingers that keep a total width exact, and the largest devices and circuits that any tool accepts.

Each finger is on the grid and of an allowed width.

Time and memory of a drawing grow with the number of fingers, bars and plates, and with their area. The limits are above
what a chip needs and below what a machine can draw, so that a wrong unit (``w=1e9``) is an error and not a hang.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from layoutkit.errors import GeometryError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


# The middle of a finger wider than this multiple of the tap distance would be too far from the ring.
TAP_REACH = 1.5
BLOCKED_REACH = 1.75  # where silicide is blocked: fewer and wider fingers, as rules about those in one ring ask for
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
    share = BLOCKED_REACH if spec.block else TAP_REACH
    reach: int = max(int(share * technology.dim("tap_max_distance", spec)), spec.min_w)
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


MAX_COUNT = 100_000
"""Units of one device times its fingers that a netlist may state; drawing allows fewer."""
MAX_FINGERS = 10_000
"""Fingers of one transistor in all its units."""
MAX_UNITS = 5_000
"""Bars of one resistor, or plates or rectangles of another passive device."""
MAX_CIRCUIT_UNITS = 200_000
"""Fingers, bars, plates and rectangles of a whole circuit."""
MAX_SIDE_UM = 1000.0
"""Width of one finger, gate length, and each side of a bar, plate or rectangle. [um]"""
MAX_AREA_UM2 = 4e6
"""Plates, rectangles or bars of one passive device together: a square with sides of 2 mm. [um^2]"""
MAX_STATED_M = 0.1
"""Width or length that a netlist states: that of all fingers, or of all bars in series. [m]"""
MIN_STATED_M = 1e-12
"""Smallest size that a netlist states: a smaller one is a wrong unit. [m]"""
MAX_VALUE = 1e15
"""Resistance [ohm], capacitance [F] or other number of a device."""

SPICE_UNITS = "(in SPICE m and M are milli, meg is mega, u is 1e-6, p is 1e-12, f is 1e-15)"
"""What a message adds where the unit of a value may be wrong."""

_SIDES = ("w", "l")
_COUNTS = ("m", "nf", "nfin", "stack", "series", "s")


def stated_faults(params: Mapping[str, float], m: int, nf: int) -> list[str]:
    """Return what is beyond the limits in the parameters of a device as its netlist states them, in words.

    Args:
        params: Its parameters by name.
        m: How many units in parallel these make.
        nf: How many fingers each has.
    """
    texts = [text for name, value in params.items() if (text := _stated_fault(name, value))]
    if not texts and (units := m * nf) > MAX_COUNT:
        texts = [f"m={m} and nf={nf} make {units} fingers or units; at most {MAX_COUNT} are allowed"]
    return texts


def drawn_faults(units: int, side_um: float, area_um2: float | None) -> list[str]:
    """Return what is beyond the limits in a device as it is to be drawn, in words.

    Args:
        units: How many fingers, bars or plates it is drawn in.
        side_um: Gate length, or the longest side of a bar or plate. [um]
        area_um2: Area of all bars or plates; None for a transistor. [um^2]
    """
    most, what = (MAX_FINGERS, "fingers") if area_um2 is None else (MAX_UNITS, "bars, plates or units")
    texts = []
    if units > most:
        texts.append(
            f"it would be drawn in {_shown(units)} {what}; at most {most} are drawn; is its size or value right?"
        )
    if side_um > MAX_SIDE_UM:
        what = "gate is" if area_um2 is None else "bars or plates are"
        texts.append(f"its {what} {side_um:g} um long; at most {MAX_SIDE_UM:g} um are drawn")
    if not texts and area_um2 is not None and area_um2 > MAX_AREA_UM2:
        texts.append(
            f"its bars or plates would cover {area_um2 * 1e-6:.4g} mm^2; at most {MAX_AREA_UM2 * 1e-6:g} mm^2 are "
            f"drawn; is its size or value right? {SPICE_UNITS}"
        )
    return texts


def circuit_fault(units: int) -> str:
    """Return what is wrong with a circuit of so many fingers, bars, plates and units; empty if nothing is."""
    if units <= MAX_CIRCUIT_UNITS:
        return ""
    return f"the circuit has {units} fingers, bars, plates and units; at most {MAX_CIRCUIT_UNITS} are allowed in all"


def check_value(what: str, value: float, unit: str) -> None:
    """Raise an error unless a resistance or capacitance is positive and not above ``MAX_VALUE``.

    Raises:
        GeometryError: If it is not.
    """
    if not 0 < value <= MAX_VALUE:
        most = "" if value <= 0 else f" and at most {MAX_VALUE:g} {unit}"
        raise GeometryError(
            f"a {what} must be positive{most}, got {value:g} {unit}",
            details={"provided_value": value if math.isfinite(value) else str(value), "maximum": MAX_VALUE},
        )


def _stated_fault(name: str, value: float) -> str:
    """Return what is wrong with one parameter of a device; empty if nothing is, or another check reports it."""
    if name in _COUNTS and value > MAX_COUNT:
        return f"{name}={_shown(value)} is above {MAX_COUNT}, the most that is allowed"
    if not -MAX_VALUE <= value <= MAX_VALUE:
        return f"{name}={_shown(value)} is not between -{MAX_VALUE:g} and {MAX_VALUE:g}"
    if name in _SIDES and value > 0 and not MIN_STATED_M <= value <= MAX_STATED_M:
        return f"{name}={value:g} m is not between {MIN_STATED_M:g} and {MAX_STATED_M:g} m; is its unit right?"
    return ""


def _shown(value: float) -> str:
    """Return a number for a message; a Python integer may be too large for a float."""
    return f"{value:.6g}" if abs(value) < 1e300 else "more than 1e+300"
