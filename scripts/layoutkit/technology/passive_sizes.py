"""Sizes of resistors, capacitors and diodes: as netlists state them, and the one that has a given value."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, gcd, log, sqrt
from typing import TYPE_CHECKING

from layoutkit.errors import GeometryError
from layoutkit.technology.finger_widths import MAX_SIDE_UM, MAX_UNITS, SPICE_UNITS, check_value, widest_finger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from layoutkit.technology.device_specs import PassiveSpec
    from layoutkit.technology.technology import Technology

_LONG_METAL = 50_000  # the same of metal, whose turns have as much resistance as a bar of their length [dbu]
_LONG = 10_000  # bars shorter than this are not folded further [dbu]
MOST_IN_SERIES = 8
"""Plates in series that make up a small capacitor: more have mostly the capacitance of their wires."""
MOST_PLATES = 64
"""Plates of matched capacitors whose number follows from their values."""
RATIO_TOLERANCE = 1e-4
"""Largest relative error of a value that counts as an integer multiple of a plate. [1]"""
# Of a MOS capacitor whose size follows from its value: short channels have little resistance.
_GATE_LENGTH = 2_000  # [dbu]
_GATE_WIDTH = 10_000  # widest gate of a MOS capacitor: the poly of a wider one has too much resistance [dbu]
MOST_BARS = 96
"""Bars of one length in a bank of resistors whose lengths differ."""
_TRIED = 4  # numbers of bars tried for one that divides the length on the grid


@dataclass(frozen=True)
class PassiveSize:
    """Size as netlists state it.

    Attributes:
        w_m: Width. [m]
        l_m: Length of the whole string of a resistor, of one plate of a capacitor. [m]
        m: Units in parallel.
        segments: Bars in series that share the length; None for as many as make the block about square.
        series: Equal plates in series of a capacitor, each of them ``m`` plates in parallel.
        feed_m: Width of the feeds of a capacitor that has some; 0 for the usual one. [m]
        bends: Bends of a resistor that is one bent bar, its length as its model counts them.
    """

    w_m: float
    l_m: float
    m: int = 1
    segments: int | None = None
    series: int = 1
    feed_m: float = 0.0
    bends: int = 0


def rectangle_sides(area: float, perimeter: float) -> tuple[float, float] | None:
    """Return the sides of the rectangle of this area and perimeter, the longer one first; None where there is none."""
    half = perimeter / 2
    square = half * half / 4 - area
    if area <= 0 or square < -1e-6 * area:
        return None
    root = max(0.0, square) ** 0.5
    return half / 2 + root, half / 2 - root


def capacitance(spec: PassiveSpec, width_um: float, length_um: float) -> float:
    """Return the capacitance of one plate. [um, um] -> [F]"""
    return spec.value * width_um * length_um + spec.edge_value * 2 * (width_um + length_um)


def resistor_size(tech: Technology, spec: PassiveSpec, ohm: float, width: int | None = None) -> PassiveSize:
    """Return the size of a resistor of ``ohm``: of ``width`` [dbu], else of the minimum width.

    A value too small for the minimum length at that width becomes bars in parallel.

    Raises:
        GeometryError: If the value is not positive.
    """
    check_value("resistance", ohm, "ohm")
    width = width or (spec.widths[0] if spec.widths else spec.min_w)
    squares = ohm / spec.value
    m = _units(spec, spec.min_l / (squares * width), f"{ohm:g} ohm")
    unit = tech.dbu_um * 1e-6
    return PassiveSize(width * unit, tech.snap(squares * width * m) * unit, m)


def bars_of(tech: Technology, spec: PassiveSpec, width: int, total: float) -> int:
    """Return into how many bars in series a resistor of length ``total`` is folded. [dbu]

    The block is about a square; where a number of bars near that divides the length on the grid, it is that number.
    """
    pitch = width + spec.dimensions.get("body_space", width)
    longest = max(_LONG_METAL if spec.conductor else _LONG, sqrt(total * pitch))
    wanted = max(1, round(total / longest))
    most = max(1, int(total // max(1, spec.min_l)))
    wanted = min(max(wanted, ceil(total / (spec.max_l or total))), most)
    for count in range(wanted, min(wanted + _TRIED, most) + 1):
        if abs(total / count / tech.grid - round(total / count / tech.grid)) < 1e-6:
            return count
    return wanted


def unit_bar(tech: Technology, spec: PassiveSpec, width: int, lengths: Sequence[int]) -> int:
    """Return the length of one bar that makes up all ``lengths``, with which a bank of them is about a square. [dbu]

    0 if there is none within the limits of the process, on its grid and with ``MOST_BARS`` bars at most.
    """
    common, total = gcd(*lengths), sum(lengths)
    wanted = max(_LONG, sqrt(total * (width + spec.dimensions.get("body_space", width))))
    legal = [
        common // parts
        for parts in range(1, MOST_BARS * common // total + 1)
        if common % (parts * tech.grid) == 0
        and spec.min_l <= common // parts <= (spec.max_l or tech.to_dbu(MAX_SIDE_UM))
    ]
    return min(legal, key=lambda unit: (abs(log(unit / wanted)), unit), default=0)


def drawn_length(tech: Technology, spec: PassiveSpec, width: int, total: float) -> int:
    """Return the length nearest to ``total`` that equal bars on the grid make up. [dbu]"""
    length = tech.snap(total)
    for _ in range(_TRIED):  # another length may be folded into another number of bars
        step = bars_of(tech, spec, width, length) * tech.grid
        if length % step == 0:
            break
        length = (length + step // 2) // step * step
    return length


def capacitor_size(tech: Technology, spec: PassiveSpec, farad: float) -> PassiveSize:
    """Return the size of a capacitor of ``farad``: a square plate, or equal ones in parallel or in series.

    A value above that of the largest plate becomes plates in parallel, one below that of the smallest plate becomes
    larger plates in series, ``MOST_IN_SERIES`` at most.

    Raises:
        GeometryError: If the value is not positive, or smaller than that of the smallest plates in series.
    """
    check_value("capacitance", farad, "F")
    most = tech.to_dbu(MAX_SIDE_UM)
    largest = min(spec.max_w or most, spec.max_l or most)
    if spec.max_area is not None:
        largest = min(largest, int(sqrt(spec.max_area)))
    side_um = tech.to_um(largest + tech.grid)  # no plate is larger, so that fewer are never enough
    m = max(1, _units(spec, farad / capacitance(spec, side_um, side_um), f"{farad:g} F") - 1)
    side = _plate_side(tech, spec, farad / m)
    while side > largest:
        m += 1
        side = _plate_side(tech, spec, farad / m)
    smallest, series = smallest_plate(tech, spec), 1
    while side < smallest and series < MOST_IN_SERIES:
        series += 1
        side = _plate_side(tech, spec, farad * series)
    if side < smallest:
        side_um = tech.to_um(smallest)
        value = capacitance(spec, side_um, side_um)
        raise GeometryError(
            f"{farad:g} F is less than the smallest {spec.name} has: {value:.4g} F is one plate of {side_um:g} x "
            f"{side_um:g} um, {value / MOST_IN_SERIES:.4g} F are {MOST_IN_SERIES} of them in series, the most that "
            "are drawn. Use a larger value, or leave the capacitor to the capacitance of wires",
            details={"provided_value": farad, "smallest": value, "smallest_in_series": value / MOST_IN_SERIES},
        )
    unit = tech.dbu_um * 1e-6
    return PassiveSize(side * unit, side * unit, m, series=series)


def _units(spec: PassiveSpec, least: float, value: str) -> int:
    """Return how many units in parallel are at least ``least``.

    Raises:
        GeometryError: If they are more than are drawn.
    """
    if not least <= MAX_UNITS:
        raise GeometryError(
            f"{value} would be more than {MAX_UNITS} units of {spec.name} in parallel, the most that are drawn; "
            f"is its value right? {SPICE_UNITS}",
            details={"value": value, "maximum": MAX_UNITS},
        )
    return max(1, ceil(least - 1e-9))


def smallest_plate(tech: Technology, spec: PassiveSpec) -> int:
    """Return the side of the smallest square plate that the process allows. [dbu]"""
    return tech.snap_up(max(spec.min_w, spec.min_l, ceil(sqrt(spec.min_area))))


def common_plates(tech: Technology, spec: PassiveSpec, farads: Sequence[float]) -> tuple[PassiveSize, list[int]]:
    """Return one plate, and how many of it in parallel make up each of several values in an integer ratio.

    The plate is the largest with which at most one value is a single plate, so that an array of them can have one
    centroid; where the process allows no plate so small, the largest of all.

    Raises:
        GeometryError: If no ratio of integers up to ``MOST_PLATES`` plates in all is within ``RATIO_TOLERANCE`` of the
            values, or its plate would be smaller than the process allows.
    """
    ratio = integer_ratio(farads)
    smallest = smallest_plate(tech, spec)
    found = []
    for factor in range(1, MOST_PLATES + 1):
        counts = [count * factor for count in ratio]
        size = capacitor_size(tech, spec, sum(farads) / sum(counts))
        if size.m > 1:
            continue
        if size.series > 1:
            break
        found.append((size, counts))
        if counts.count(1) < 2:
            return found[-1]
    if not found:
        least = capacitance(spec, tech.to_um(smallest), tech.to_um(smallest))
        raise GeometryError(
            f"{spec.name} has no plate of {sum(farads) / sum(ratio):.4g} F, of which {':'.join(map(str, ratio))} would "
            f"make up the values; the smallest has {least:.4g} F",
            details={"ratio": ratio, "smallest": least},
        )
    return found[0]


def integer_ratio(values: Sequence[float]) -> list[int]:
    """Return the smallest integers in the ratio of ``values``, ``MOST_PLATES`` in all.

    Raises:
        GeometryError: If there are none within ``RATIO_TOLERANCE``; the message states the nearest ones.
    """
    least = min(values)
    best: tuple[float, list[int]] = (1.0, [1] * len(values))
    for unit in range(1, MOST_PLATES):
        counts = [max(1, round(value / least * unit)) for value in values]
        if sum(counts) > MOST_PLATES:
            break
        per_plate = sum(values) / sum(counts)
        error = max(abs(count * per_plate / value - 1) for count, value in zip(counts, values, strict=True))
        if error <= RATIO_TOLERANCE:
            return counts
        best = min(best, (error, counts))
    raise GeometryError(
        f"the values {', '.join(f'{value:.4g}' for value in values)} F are in no ratio of integers with "
        f"{MOST_PLATES} plates in all; the nearest is {':'.join(map(str, best[1]))} with an error of "
        f"{100 * best[0]:.2g} %. State values in an integer ratio, or units with w, l and m",
        details={"values": list(values), "nearest_ratio": best[1], "error": best[0]},
    )


def _plate_side(tech: Technology, spec: PassiveSpec, farad: float) -> int:
    """Return the side of the square plate of ``farad`` on the grid: the root of value s^2 + 4 edge s = farad. [dbu]"""
    edge = 2 * spec.edge_value / spec.value
    side_um = sqrt(edge**2 + farad / spec.value) - edge
    return tech.snap(side_um / tech.dbu_um)


def mos_capacitor_size(tech: Technology, spec: PassiveSpec, farad: float) -> PassiveSize:
    """Return the size of a MOS capacitor of ``farad``: equal gates ``_GATE_LENGTH`` long, as many as that takes.

    Raises:
        GeometryError: If the value is not positive, or smaller than that of the smallest gate.
    """
    check_value("capacitance", farad, "F")
    area = farad / spec.value / tech.dbu_um**2
    length = min(max(_GATE_LENGTH, spec.min_l), spec.max_l or _GATE_LENGTH)
    if area < spec.min_w * length:
        length = max(spec.min_l, tech.snap(sqrt(area)))
    if area < spec.min_w * spec.min_l:
        least = spec.value * spec.min_w * spec.min_l * tech.dbu_um**2
        raise GeometryError(
            f"{farad:g} F is less than the smallest {spec.name} has: {least:.4g} F",
            details={"provided_value": farad, "smallest": least},
        )
    m = _units(spec, area / length / _widest_gate(tech, spec), f"{farad:g} F")
    unit = tech.dbu_um * 1e-6
    return PassiveSize(max(spec.min_w, tech.snap(area / length / m)) * unit, length * unit, m)


def folded_gate(tech: Technology, spec: PassiveSpec, width: int, m: int) -> tuple[int, int]:
    """Return width and number of the gates of a MOS capacitor, wide ones cut into equal narrower ones. [dbu]

    The total width stays exact where some number of parts divides it on the grid; otherwise each part is rounded.
    """
    widest = _widest_gate(tech, spec)
    least = -(-width // widest)
    for parts in range(least, 3 * least + 1):
        part, rest = divmod(width, parts)
        if rest == 0 and part % tech.grid == 0 and part >= spec.min_w:
            return part, m * parts
    return max(spec.min_w, tech.snap(width / least)), m * least


def _widest_gate(tech: Technology, spec: PassiveSpec) -> int:
    """Return how wide one gate of a MOS capacitor is at most: near enough to taps and to its contact. [dbu]"""
    reach = widest_finger(tech, spec.diffusion_of)
    return max(spec.min_w, min(_GATE_WIDTH, reach, spec.max_w or reach) // tech.grid * tech.grid)


SIZE_OF_VALUE: dict[str, Callable[[Technology, PassiveSpec, float], PassiveSize]] = {
    "resistor": resistor_size,
    "capacitor": capacitor_size,
    "mos_capacitor": mos_capacitor_size,
}
"""Kind of device to the function that returns the size of a value."""
