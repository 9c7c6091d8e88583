"""Devices that exist as one foundry cell of fixed size, such as ESD diodes: copies of it side by side.

Every terminal of each copy is a pin on one conductor, joined by cuts where the cell reaches it on a lower one. Wires
join the copies.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from layoutkit.draw.module import DrawnRectangles, rectangles_module
from layoutkit.draw.passive import EqualRectangles, counted
from layoutkit.draw.sketch import Sketch, spread_squares
from layoutkit.errors import GeometryError, TechnologyError
from layoutkit.rectangle import Rectangle

if TYPE_CHECKING:
    from collections.abc import Mapping

    import klayout.db as kdb

    from layoutkit.draw.module import Module
    from layoutkit.technology import Technology
    from layoutkit.technology.device_cell import DeviceCell
    from layoutkit.technology.passive_sizes import PassiveSize

_MOST_CUTS = 40  # on a side of one pin


@dataclass(frozen=True)
class FixedCell(EqualRectangles):
    """A device of ``m`` copies of the foundry's cell in parallel; ``nets`` has the net of each terminal."""

    nets: Mapping[str, str] = field(default_factory=dict)


def fixed_cell(
    tech: Technology, device_id: str, flavour: str, size: PassiveSize, nets: Mapping[str, str] | None = None
) -> FixedCell:
    """Return the device ``device_id``.

    Args:
        tech: Process.
        device_id: Instance name.
        flavour: A device of the technology, or its model.
        size: As in the netlist: the size of the cell or nothing, and the number of copies.
        nets: Terminal to net; a terminal left out is called ``<device_id>_<terminal>``.

    Raises:
        GeometryError: If the cell has another size.
        TechnologyError: If the process has no such device.
    """
    spec = tech.passive(flavour)
    sides = (spec.min_w, spec.min_l)
    stated = [round(side * 1e6 / tech.dbu_um) for side in (size.w_m, size.l_m)]
    if any(stated) and sorted(stated) != sorted(sides):
        wide, long = (tech.to_um(side) for side in sides)
        raise GeometryError(
            f"{device_id}: {spec.name} is drawn in the size of the foundry's cell only, {wide:g} x {long:g} um, got "
            f"{tech.to_um(stated[0]):g} x {tech.to_um(stated[1]):g} um; leave out the size and state m copies"
        )
    named = {
        terminal: (nets or {}).get(terminal) or f"{device_id}_{terminal.upper()}" for terminal in spec.kind.terminals
    }
    m = counted("Multiplier", size.m)
    p, n = (named[end] for end in spec.kind.ends)
    return FixedCell(device_id, spec, *sides, m, p, n, nets=named)


def draw_fixed_cell(
    layout: kdb.Layout, tech: Technology, name: str, device: FixedCell, *, labels: bool = True
) -> Module:
    """Draw the copies into the cell ``name`` and return its module; they are called ``<id>_1``, ``<id>_2``, ...

    Raises:
        TechnologyError: If the device states no cell.
    """
    cell = device.spec.cell
    if cell is None:
        raise TechnologyError(f"device {device.spec.name} states no cell")
    sketch, pins = Sketch(), []
    shapes = cell.shapes(cell.most, device.length)
    xs = [x for polygons in shapes.values() for points in polygons for x, _ in points]
    pitch = tech.snap_up(max(xs) - min(xs) + device.spec.dim("unit_space"))
    (left, bottom), (right, top) = cell.outline(cell.most, device.length)
    levels = {each.name: index for index, each in enumerate(tech.conductors)}
    reached = {
        terminal: (levels[tech.conductor(conductor).name], cell.stretched(box, cell.most, device.length))
        for terminal, (conductor, box) in cell.pins.items()
    }
    highest = max(1, *(level for level, _ in reached.values()))
    for x in (number * pitch for number in range(device.m)):
        for layer, polygons in shapes.items():
            for points in polygons:
                sketch.polygon(layer, tuple((px + x, py) for px, py in points))
        _draw_texts(sketch, tech, cell, x)
        for terminal, (level, points) in reached.items():
            area = Rectangle(min(points)[0] + x, min(points)[1], max(points)[0] + x, max(points)[1])
            for step in range(level, highest):
                _draw_cuts(sketch, tech, step, area)
            pins.append((device.nets[terminal], area))
    areas = [Rectangle(left + number * pitch, bottom, right + number * pitch, top) for number in range(device.m)]
    drawn = DrawnRectangles(device, areas, pins, labels, conductor=tech.conductors[highest], joined=device.m == 1)
    return rectangles_module(layout, tech, name, sketch, drawn)


def _draw_texts(sketch: Sketch, tech: Technology, cell: DeviceCell, x: int) -> None:
    role = tech.role("device_text")
    for text, (px, py) in cell.texts.items() if role else ():
        sketch.text(str(role), text, px + x, py)


def _draw_cuts(sketch: Sketch, tech: Technology, level: int, area: Rectangle) -> None:
    """Join a pin on the conductor ``level`` to the next one above it."""
    upper, cut = tech.conductors[level + 1], tech.cuts[level]
    inset = max(cut.enclose_below_end, cut.enclose_above_end)
    sketch.box(upper.layer, area)
    room = area.enlarged(-inset, -inset)
    for square in spread_squares(room, cut.size, cut.spacing(), tech.grid, _MOST_CUTS):
        sketch.box(cut.layer, square)
