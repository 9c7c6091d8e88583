"""The largest devices and circuits that any tool accepts.

Time and memory of a drawing grow with the number of fingers, bars and plates, and with their area. The limits are above
what a chip needs and below what a machine can draw, so that a wrong unit (``w=1e9``) is an error and not a hang.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from layoutkit.errors import GeometryError

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_FINGERS = 10_000
"""Fingers of one transistor in all its units, and units in parallel of any device."""
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
    if not texts and (units := m * nf) > MAX_FINGERS:
        texts = [f"m={m} and nf={nf} make {units} fingers or units; at most {MAX_FINGERS} are allowed"]
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
    if name in _COUNTS and value > MAX_FINGERS:
        return f"{name}={_shown(value)} is above {MAX_FINGERS}, the most that is allowed"
    if not -MAX_VALUE <= value <= MAX_VALUE:
        return f"{name}={_shown(value)} is not between -{MAX_VALUE:g} and {MAX_VALUE:g}"
    if name in _SIDES and value > 0 and not MIN_STATED_M <= value <= MAX_STATED_M:
        return f"{name}={value:g} m is not between {MIN_STATED_M:g} and {MAX_STATED_M:g} m; is its unit right?"
    return ""


def _shown(value: float) -> str:
    """Return a number for a message; a Python integer may be too large for a float."""
    return f"{value:.6g}" if abs(value) < 1e300 else "more than 1e+300"
