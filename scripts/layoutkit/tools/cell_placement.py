"""Putting a drawn module into the design in progress: an instance in its top cell, at a place, without overlap.

Also the frame of a placed cell in the JSON request of the router, lengths in micrometres: written, and read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import klayout.db as kdb

from layoutkit.errors import GeometryError, LayoutConflictError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layoutkit.draw.module import Module
    from layoutkit.flow.port_frame import Frame
    from layoutkit.technology import Technology


TOP_CELL = "layout"

# orientation -> quarter turns counter-clockwise, mirrored at the x axis before turning
ORIENTATIONS: dict[str, tuple[int, bool]] = {
    "R0": (0, False),
    "R90": (1, False),
    "R180": (2, False),
    "R270": (3, False),
    "MX": (0, True),
    "MY": (2, True),
    "MXR90": (1, True),
    "MYR90": (3, True),
}


@dataclass(frozen=True)
class CellPlace:
    """Where the lower left corner of the placed module's bounding box goes, whatever its orientation. [um]"""

    x_um: float = 0.0
    y_um: float = 0.0
    orientation: str = "R0"


def place_module(module: Module, tech: Technology, place: CellPlace) -> kdb.Trans:
    """Instantiate ``module`` in the top cell of its layout and return the transformation; an older instance goes.

    Raises:
        GeometryError: If the orientation is unknown or the position is off the grid.
        LayoutConflictError: If the bounding box would overlap that of another instance.
    """
    turned = transformation(module.bbox, tech, place)
    top = design_top(module.layout, module.cell)
    box = module.bbox.transformed(turned)
    index = module.cell.cell_index()
    for instance in [instance for instance in top.each_inst() if instance.cell_index == index]:
        instance.delete()
    taken = sorted(
        (instance.bbox(), instance.cell.name) for instance in top.each_inst() if instance.bbox().overlaps(box)
    )
    if taken:
        raise LayoutConflictError(
            f"{module.name} at ({place.x_um:g}, {place.y_um:g}) um would overlap {taken[0][1]}; "
            f"to its right, x is free from {tech.to_um(max(other.right for other, _ in taken)):g} um on; "
            "neighbours of other nets or wells need a gap, which drc.run_check reports",
            details={
                "bounding_box": box_um(box, tech),
                "overlaps": [{"cell_name": name, "bounding_box": box_um(other, tech)} for other, name in taken],
            },
        )
    top.insert(kdb.CellInstArray(index, turned))
    return turned


def place_of(bbox: kdb.Box, trans: kdb.Trans, tech: Technology) -> CellPlace:
    """Return the place at which ``transformation`` puts ``bbox`` by ``trans``."""
    box = bbox.transformed(trans)
    turned = (trans.angle, trans.is_mirror())
    name = next(name for name, form in ORIENTATIONS.items() if form == turned)
    return CellPlace(tech.to_um(box.left), tech.to_um(box.bottom), name)


def transformation(bbox: kdb.Box, tech: Technology, place: CellPlace) -> kdb.Trans:
    """Return the transformation that turns ``bbox`` and puts its lower left corner at the position.

    Raises:
        GeometryError: If the orientation is unknown or the position is off the grid.
    """
    if place.orientation not in ORIENTATIONS:
        raise GeometryError(
            f"Invalid orientation: {place.orientation}",
            details={"provided_value": place.orientation, "allowed": list(ORIENTATIONS)},
        )
    corner = []
    for name, value_um in (("x", place.x_um), ("y", place.y_um)):
        exact = value_um / tech.dbu_um
        snapped = tech.snap(exact)
        if abs(exact - snapped) > 0.01:
            raise GeometryError(
                f"position {name} = {value_um:g} um is off the {tech.to_um(tech.grid):g} um grid; "
                f"the nearest point is {tech.to_um(snapped):g} um"
            )
        if abs(snapped) > 2**30:
            raise GeometryError(f"position {name} = {value_um:g} um is too far from the origin")
        corner.append(snapped)
    turns, mirrored = ORIENTATIONS[place.orientation]
    turned = bbox.transformed(kdb.Trans(turns, mirrored, 0, 0))
    return kdb.Trans(turns, mirrored, corner[0] - turned.left, corner[1] - turned.bottom)


def design_top(layout: kdb.Layout, module_cell: kdb.Cell) -> kdb.Cell:
    """Return the cell that holds the design: ``layout`` where it exists, else the only other top cell, else a new one.

    Raises:
        LayoutConflictError: If there are several top cells and none is called ``layout``.
    """
    top = layout.cell(TOP_CELL)
    if top is not None:
        return top
    others = sorted(cell.name for cell in layout.top_cells() if cell.name != module_cell.name)
    if len(others) > 1:
        raise LayoutConflictError(
            f"the layout has several top cells ({', '.join(others)}) and none is called '{TOP_CELL}'",
            details={"top_cells": others},
        )
    return layout.cell(others[0]) if others else layout.create_cell(TOP_CELL)


def box_um(box: kdb.Box, tech: Technology) -> dict[str, float]:
    """Return ``box`` as ``{x, y, width, height}``. [um]"""
    return {
        "x": tech.to_um(box.left),
        "y": tech.to_um(box.bottom),
        "width": tech.to_um(box.width()),
        "height": tech.to_um(box.height()),
    }


def frame_data(technology: Technology, frame: Frame) -> dict[str, Any]:
    """Return a frame as ``read_frame`` reads it, without the area for wires."""
    aspect = {} if frame.max_aspect is None else {"max_aspect": frame.max_aspect}
    return {
        **aspect,
        "boundary": box_um(frame.boundary, technology),
        "core": box_um(frame.core, technology),
        "ports": [
            {
                "port": port.name,
                "side": port.side,
                "layer": port.layer,
                "box": box_um(port.box, technology),
                "pin": box_um(port.pin, technology),
                "rail": port.rail,
            }
            for port in frame.ports
        ],
        "cuts": [{"layer": name, "box": box_um(box, technology)} for name, box in frame.cuts],
    }


def read_frame(technology: Technology, entry: Mapping[str, Any], wiring: kdb.Box) -> Frame:
    """Return the frame in a request, with the area for wires.

    Raises:
        TechnologyError: If the technology has no such conductor.
    """
    from layoutkit.flow.port_frame import Frame, Port, label_place

    def box(data: Mapping[str, float]) -> kdb.Box:
        left, bottom, width, height = (round(data[side] / technology.dbu_um) for side in ("x", "y", "width", "height"))
        return kdb.Box(left, bottom, left + width, bottom + height)

    ports = []
    for each in entry["ports"]:
        layer, pin = technology.conductor(each["layer"]).name, box(each["pin"])
        label = label_place(technology, pin, rail=each["rail"])
        ports.append(Port(each["port"], each["side"], layer, box(each["box"]), pin, label, each["rail"]))
    cuts = tuple((technology.resolve(each["layer"]), box(each["box"])) for each in entry["cuts"])
    found = Frame(box(entry["boundary"]), box(entry["core"]), wiring, tuple(ports), cuts)
    return replace(found, max_aspect=entry.get("max_aspect"))
