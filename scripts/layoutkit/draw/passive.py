"""What a passive device is before it is drawn: its size on the grid, its units and its nets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from layoutkit.errors import GeometryError
from layoutkit.technology.finger_widths import MAX_SIDE_UM, MAX_UNITS, SPICE_UNITS
from layoutkit.technology.passive_sizes import PassiveSize, bars_of, capacitance, capacitor_size

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layoutkit.technology import PassiveSpec, Technology


@dataclass(frozen=True)
class Resistor:
    """A resistor in database units: ``m`` strings in parallel of ``segments`` bars in series.

    Attributes:
        id: Instance name.
        spec: Flavour.
        width: Width of every bar. [dbu]
        length: Resistive length of one bar. [dbu]
        segments: Bars in series.
        m: Strings in parallel.
        p: Net.
        n: Net.
        warnings: What was rounded, in words.
        bends: Bends of each bar, whose length counts them as the model does.
    """

    id: str
    spec: PassiveSpec
    width: int
    length: int
    segments: int
    m: int
    p: str
    n: str
    warnings: tuple[str, ...] = ()
    bends: int = 0

    @property
    def bars(self) -> int:
        """All bars of all strings."""
        return self.segments * self.m

    @property
    def ohm(self) -> float:
        """Resistance by sheet resistance and drawn size, heads and contacts left out. [ohm]"""
        return self.spec.value * self.length * self.segments / self.width / self.m


@dataclass(frozen=True)
class EqualRectangles:
    """A device in database units that consists of ``m`` equal rectangles in parallel.

    Attributes:
        id: Instance name.
        spec: Flavour.
        width: Width of one rectangle. [dbu]
        length: Length of one rectangle. [dbu]
        m: Rectangles.
        p: Net of the first terminal.
        n: Net of the second terminal.
        warnings: What was rounded, in words.
    """

    id: str
    spec: PassiveSpec
    width: int
    length: int
    m: int
    p: str
    n: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Capacitor(EqualRectangles):
    """A plate capacitor: ``p`` is the net of the top plates, ``n`` that of the bottom plate.

    Attributes:
        series: Equal capacitors of ``m`` plates each, in series.
        feed: Width of its feeds; 0 where it has none. [dbu]
        b: Net of the ring around it; empty where it has none.
    """

    series: int = 1
    feed: int = 0
    b: str = ""

    def farad(self, dbu_um: float) -> float:
        """Return the capacitance of the drawn plates by area and edge. [F]"""
        return capacitance(self.spec, self.width * dbu_um, self.length * dbu_um) * self.m / self.series


def resistor(
    tech: Technology, device_id: str, flavour: str, size: PassiveSize, nets: Mapping[str, str] | None = None
) -> Resistor:
    """Return the resistor ``device_id`` with its size on the grid of ``tech``.

    Args:
        tech: Process.
        device_id: Instance name.
        flavour: ``resistor``, a device of the technology, or its model.
        size: As in the netlist.
        nets: Terminal (p, n) to net; a terminal left out is called ``<device_id>_<terminal>``.

    Raises:
        GeometryError: If a size is below or above what the process allows.
        TechnologyError: If the process has no such device.
    """
    spec = spec_of_kind(tech, flavour, "resistor")
    warnings: list[str] = []
    width = _on_grid(tech, "Width", size.w_m, 1, warnings)
    _check_width(tech, spec, width)
    total = size.l_m * 1e6 / tech.dbu_um
    m = counted("Multiplier", size.m)
    bends = size.bends if spec.bend is not None else 0
    segments = bars_of(tech, spec, width, total) if size.segments is None else counted("segments", size.segments)
    segments = 1 if bends else segments
    if (segments + bends) * m > MAX_UNITS:
        raise GeometryError(
            f"{device_id} would have {(segments + bends) * m} bars, at most {MAX_UNITS} are drawn; "
            f"is its value right? {SPICE_UNITS}"
        )
    length = _on_grid(tech, "Length", size.l_m, segments, warnings)
    bars = segments if length < spec.min_l else segments + bends  # with bends the least length is that of all bars
    what = "Length" if bars == 1 else f"Length of each of {bars} segments"
    _bounded(tech, what, min(length, max(spec.min_l, length // (bends + 1))), spec.min_l, spec.max_l)
    named = nets_of(device_id, nets)
    rounded = tuple(f"{device_id}: {warning}" for warning in warnings)
    return Resistor(device_id, spec, width, length, segments, m, *named, rounded, bends)


def straight(tech: Technology, bent: Resistor) -> Resistor:
    """Return a resistor with bends as straight bars in series, as long as its model counts it."""
    if not bent.bends:
        return bent
    segments = bars_of(tech, bent.spec, bent.width, bent.length)
    return replace(bent, length=tech.snap(bent.length / segments), segments=segments, bends=0)


def capacitor(
    tech: Technology, device_id: str, flavour: str, size: PassiveSize, nets: Mapping[str, str] | None = None
) -> Capacitor:
    """Return the capacitor ``device_id`` with its plate on the grid of ``tech``; arguments as ``resistor``.

    Raises:
        GeometryError: If a size is below or above what the process allows; the message says which plates are allowed.
        TechnologyError: If the process has no such device.
    """
    spec = spec_of_kind(tech, flavour, "capacitor")
    try:
        width, length, m, warnings = rectangle_on_grid(tech, device_id, spec, size)
    except GeometryError as error:
        raise GeometryError(f"{error}{_other_plates(tech, spec, size)}", details=error.details) from error
    feed, b = 0, ""
    if spec.fed:
        if size.series > 1:
            text = f"{device_id}: plates of {spec.name} are put in no series, since each has a ring of its own"
            raise GeometryError(f"{text}{_other_plates(tech, spec, size)}")
        feed, b = _feed(tech, device_id, spec, size, width), (nets or {}).get("b") or f"{device_id}_B"
    return Capacitor(device_id, spec, width, length, m, *nets_of(device_id, nets), warnings, size.series, feed, b)


def _feed(tech: Technology, device_id: str, spec: PassiveSpec, size: PassiveSize, width: int) -> int:
    """Return the width of the feeds of a capacitor: as stated, else the usual one or what its plate allows. [dbu]"""
    most = min(spec.dim("feed_max"), width - 2 * spec.dim("feed_inset"))
    low, feed = spec.dim("feed_min"), tech.snap(size.feed_m * 1e6 / tech.dbu_um) or spec.usual_feed(width)
    if not low <= feed <= most:
        raise GeometryError(
            f"the feeds of {device_id} are {tech.to_um(feed):g} um wide; allowed are {tech.to_um(low):g} to "
            f"{tech.to_um(most):g} um with a plate of {tech.to_um(width):g} um"
        )
    return feed


def _other_plates(tech: Technology, spec: PassiveSpec, size: PassiveSize) -> str:
    """Return which plates have the value of ``size``, for a message; empty where there are none."""
    if min(size.w_m, size.l_m) <= 0 or size.m < 1:
        return ""
    value = capacitance(spec, size.w_m * 1e6, size.l_m * 1e6) * size.m / size.series
    try:
        other = capacitor_size(tech, spec, value)
    except GeometryError:
        return ""
    count, how = (other.series, "series") if other.series > 1 else (other.m, "parallel")
    return (
        f". Its value {value:.4g} F can be drawn as {count} plates of {other.w_m * 1e6:.6g} x {other.l_m * 1e6:.6g} um "
        f"in {how}: state the value c instead of w and l"
    )


def rectangle_on_grid(
    tech: Technology, device_id: str, spec: PassiveSpec, size: PassiveSize
) -> tuple[int, int, int, tuple[str, ...]]:
    """Return width and length [dbu] of each of the equal rectangles of a device, their number, and what was rounded.

    Raises:
        GeometryError: If a size is below or above what the process allows.
    """
    warnings: list[str] = []
    width = _on_grid(tech, "Width", size.w_m, 1, warnings)
    length = _on_grid(tech, "Length", size.l_m, 1, warnings)
    _check_width(tech, spec, width)
    _bounded(tech, "Length", length, spec.min_l, spec.max_l)
    m = counted("Multiplier", size.m)
    if m > MAX_UNITS:
        raise GeometryError(f"{device_id} has {m} units, at most {MAX_UNITS} are drawn")
    area = width * length
    for limit, wrong, word in (
        (spec.min_area, area < spec.min_area, "below minimum"),
        (spec.max_area, spec.max_area is not None and area > spec.max_area, "above maximum"),
    ):
        if wrong and limit is not None:
            um2 = tech.dbu_um**2
            raise GeometryError(
                f"Area {area * um2:g} um2 of one unit is {word} {limit * um2:g} um2"
                + ("; use more and smaller units (m)" if word.startswith("above") else ""),
                details={"provided_value": area * um2, "limit": limit * um2, "unit": "um2"},
            )
    return width, length, m, tuple(f"{device_id}: {warning}" for warning in warnings)


def spec_of_kind(tech: Technology, flavour: str, kind: str) -> PassiveSpec:
    """Return the device ``flavour`` of the technology.

    Raises:
        GeometryError: If it is a device of another kind.
    """
    spec = tech.passive(flavour)
    if spec.type != kind:
        raise GeometryError(f"device '{flavour}' of {tech.name} is a {spec.type}, not a {kind}")
    return spec


def nets_of(device_id: str, nets: Mapping[str, str] | None) -> tuple[str, str]:
    """Return the nets of ``p`` and ``n``; one that is not given is called ``<device_id>_P`` or ``<device_id>_N``."""
    given = nets or {}
    return given.get("p") or f"{device_id}_P", given.get("n") or f"{device_id}_N"


def counted(what: str, value: int) -> int:
    """Return a number of units, or raise a GeometryError that says ``what`` it is."""
    if value < 1:
        raise GeometryError(f"{what} must be positive integer", details={"provided_value": value})
    return value


def _check_width(tech: Technology, spec: PassiveSpec, width: int) -> None:
    if spec.widths and width not in spec.widths:
        allowed = ", ".join(f"{tech.to_um(w):g}" for w in spec.widths)
        raise GeometryError(
            f"{spec.name} exists {allowed} um wide, got {tech.to_um(width):g} um",
            details={"provided_value": tech.to_um(width), "allowed": [tech.to_um(w) for w in spec.widths]},
        )
    _bounded(tech, "Width", width, spec.min_w, spec.max_w)


def _bounded(tech: Technology, what: str, length: int, low: int, high: int | None) -> None:
    per_m = tech.dbu_um * 1e-6
    if length < low:
        raise GeometryError(
            f"{what} {length * per_m:g} is below minimum {low * per_m:g}",
            details={"provided_value": length * per_m, "minimum": low * per_m, "unit": "m"},
        )
    if high is not None and length > high:
        raise GeometryError(
            f"{what} {length * per_m:g} is above maximum {high * per_m:g}",
            details={"provided_value": length * per_m, "maximum": high * per_m, "unit": "m"},
        )
    if high is None and length > tech.to_dbu(MAX_SIDE_UM):
        raise GeometryError(
            f"{what} {length * per_m:g} m is above {MAX_SIDE_UM * 1e-6:g} m, the most that is drawn of one "
            "bar or unit; w and l are in metres",
            details={"provided_value": length * per_m, "maximum": MAX_SIDE_UM * 1e-6, "unit": "m"},
        )


def _on_grid(tech: Technology, what: str, length_m: float, parts: int, warnings: list[str]) -> int:
    """Return one of ``parts`` equal parts of ``length_m`` on the grid."""
    exact = length_m * 1e6 / tech.dbu_um / parts
    snapped = tech.snap(exact)
    if abs(snapped - exact) > 0.01:
        each = f" in each of {parts} segments" if parts > 1 else ""
        warnings.append(
            f"{what.lower()} {length_m:g} m is off the {tech.to_um(tech.grid):g} um grid; "
            f"drawn as {tech.to_um(snapped):g} um{each}"
        )
    return snapped
