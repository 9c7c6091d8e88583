"""Draw two matched transistors as ABBA, ABAB or AABB, side by side in one row or as rows above each other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from layoutkit.draw.arrange import Unit, arranged_row
from layoutkit.draw.group import centroid_warnings, check_alike, halved_text
from layoutkit.draw.mos import with_dummies
from layoutkit.draw.pattern import named_pattern
from layoutkit.draw.stack import RowStack, draw_row_module
from layoutkit.errors import DrcViolationError, GeometryError

if TYPE_CHECKING:
    import klayout.db as kdb

    from layoutkit.draw.module import Module
    from layoutkit.draw.mos import Transistor
    from layoutkit.draw.row import Row
    from layoutkit.technology import Technology

Axis = Literal["vertical", "horizontal"]


@dataclass(frozen=True)
class PairSpec:
    """A matched pair to be drawn.

    Attributes:
        name: Name of the cell.
        first: Device A.
        second: Device B.
        arrangement: ABBA, ABAB or AABB.
        axis: Direction of the symmetry axis. ``vertical``: units side by side; ``horizontal``: one row per unit.
        spacing: Distance between diffusions that are not shared. [dbu]
        interdigitate: Whether neighbouring units share diffusion.
        dummies: Dummy fingers at each end of each row.
        labels: Whether pins carry net names.
    """

    name: str
    first: Transistor
    second: Transistor
    arrangement: str = "ABBA"
    axis: Axis = "vertical"
    spacing: int = 500
    interdigitate: bool = True
    dummies: int = 0
    labels: bool = True


def draw_pair(layout: kdb.Layout, tech: Technology, spec: PairSpec) -> Module:
    """Draw the pair and return its module: four units ``<id>_A1``, ``<id>_B1``, ``<id>_B2``, ``<id>_A2``.

    Each device is two units of half its fingers; a device with an odd number of fingers has them halved first.

    Raises:
        GeometryError: If the devices differ in type, the arrangement is unknown, or a device cannot be split in two.
        DrcViolationError: If ``spacing`` is smaller than the process allows.
    """
    check_alike((spec.first, spec.second))
    pattern = named_pattern(spec.arrangement, "A", "B")
    least = max(tech.dim("active_space", spec.first.spec), tech.grid)
    if spec.spacing < least:
        raise DrcViolationError(
            f"Spacing {tech.to_um(spec.spacing):g} violates min spacing {tech.to_um(least):g}",
            details={"spacing_um": tech.to_um(spec.spacing), "min_spacing_um": tech.to_um(least)},
        )
    warnings = [*spec.first.warnings, *spec.second.warnings, *_differences(spec)]
    devices = {"A": spec.first, "B": spec.second}
    for letter, device in devices.items():
        if device.fingers % 2:
            devices[letter] = _halved(device, tech)
            warnings.append(halved_text([devices[letter]], tech))
    numbers = {"A": 0, "B": 0}
    units = []
    for letter in pattern:
        numbers[letter] += 1
        device = devices[letter]
        units.append(Unit(f"{device.id}_{letter}{numbers[letter]}", device, device.fingers // 2))
    spacing = tech.snap_up(spec.spacing)
    stack = RowStack(spec.name, spec.first.spec, spec.first.bulk, (), labels=spec.labels, gap=spacing)
    rows: tuple[Row, ...]
    if spec.axis == "vertical":
        rows = (arranged_row(units, gap=spacing, separate=not spec.interdigitate),)
    else:
        rows = mirrored_rows(units)
        stack = replace(stack, bulk_rails="both")
    rows = tuple(with_dummies(row, spec.dummies, spec.first.bulk) for row in rows)
    module = draw_row_module(layout, tech, replace(stack, rows=rows))
    return replace(module, warnings=(*warnings, *centroid_warnings(module, tech)))


def mirrored_rows(units: list[Unit]) -> tuple[Row, ...]:
    """Return one row per unit, bottom row first. The rows of the upper half are upside down: gates face the middle."""
    rows = []
    for i, unit in enumerate(units):
        row = arranged_row([unit])
        if 2 * i >= len(units):
            fingers = tuple(replace(finger, orientation="MX") for finger in row.fingers)
            row = replace(row, fingers=fingers, flipped=True)
        rows.append(row)
    return tuple(rows)


def _halved(device: Transistor, tech: Technology) -> Transistor:
    try:
        halves = device.in_halves()
        if halves.finger_width % tech.grid == 0:
            return halves
        reason = f"is off the grid of {tech.to_um(tech.grid):g} um"
    except GeometryError:
        reason = f"is below the minimum of {tech.to_um(device.spec.min_w):g} um"
    raise GeometryError(
        f"{device.id} has an odd number of fingers ({device.fingers}) and must be split into two units, but half a "
        f"finger ({tech.to_um(device.finger_width / 2):g} um) {reason}; choose an even nf or m, or a wider finger",
        details={"device_id": device.id, "fingers": device.fingers},
    )


def _differences(spec: PairSpec) -> list[str]:
    a, b = spec.first, spec.second
    differences = []
    if a.width != b.width:
        differences.append(f"{a.id} and {b.id} differ in total width; they do not match")
    elif (a.finger_width, a.fingers) != (b.finger_width, b.fingers):
        differences.append(f"{a.id} and {b.id} differ in finger width; they match less well")
    if a.length != b.length:
        differences.append(f"{a.id} and {b.id} differ in length; they do not match")
    return differences
