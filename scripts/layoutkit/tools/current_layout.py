"""The layout that a tool works on, with its technology, its SHA-256, warnings about its reports, and its modules.

A drawn module becomes an instance in the top cell, at a place, without overlap. The frame of a placed cell is written
to the JSON request of the router, lengths in micrometres, and read from it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import klayout.db as kdb

from layoutkit.errors import FileError, GeometryError, LayoutConflictError
from layoutkit.layout import files
from layoutkit.layout.reports import CIRCUIT, LAYOUT, sha256_of, sources_of
from layoutkit.layout.workspace import DEFAULT_TECHNOLOGY, Workspace
from layoutkit.layout.workspace_record import RECORD_FILE, fitting
from layoutkit.technology import load

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from layoutkit.draw.module import Module
    from layoutkit.flow.port_frame import Frame
    from layoutkit.technology import Technology

_READ_ATTEMPTS = 5
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


class CurrentLayout:
    """The layout that a tool works on: the file ``layout_path`` if given, else the workspace's.

    Args:
        params: ``layout_path``, ``workspace`` and ``technology`` of the tool, each optional.

    Attributes:
        path: The file.
        workspace: The workspace that the file lies in; None for one that lies elsewhere.
        sha256: Of the file, once it is read.
        warnings: What the caller should know, once it is read.
    """

    def __init__(self, params: Mapping[str, Any]) -> None:
        given = params.get("layout_path")
        self._named = given is not None
        self.workspace: Workspace | None
        if given is None:
            self.workspace = Workspace(params.get("workspace"))
            self.path = self.workspace.layout_path
        else:
            self.path = Path(given)
            self.workspace = workspace_of(given)
        self._requested: str | None = params.get("technology")
        self.sha256 = ""
        self.warnings: list[str] = []
        self._guess: list[str] = []

    @property
    def is_of_workspace(self) -> bool:
        """Whether the request leaves the layout to the workspace, rather than naming a file."""
        return self.workspace is not None and not self._named

    def used_constraints(self) -> Path | None:
        """Return the file of the constraints that the workspace's layout was made with; None if there is none."""
        path = self.path.parent / "used_constraints.json"
        return path if self.is_of_workspace and path.is_file() else None

    def technology(self) -> Technology:
        """Return the requested technology, else the one that the layout is drawn in; see ``Workspace.technology``.

        Of a layout outside of a workspace it is the shipped one that fits the layers best.
        """
        if self.workspace is None:
            if self._requested is None:
                self._requested = fitting(files.read_layout(self.path), self.path, DEFAULT_TECHNOLOGY)
                self._guess = [
                    f"the process is not stated: {self._requested} fits the layers best; technology (-t) names another"
                ]
                self.warnings += self._guess
            return load(self._requested)
        return self.workspace.technology(self._requested)

    def read(self) -> kdb.Layout:
        """Return the layout as it is now.

        Raises:
            FileError: If there is none, or it cannot be read.
        """
        own = self._is_current()
        for _ in range(_READ_ATTEMPTS):
            before = sha256_of(self.path)
            layout = self.workspace.read_layout() if own and self.workspace else files.read_layout(self.path)
            if before is not None and before == sha256_of(self.path):
                break
        else:
            raise FileError(f"another program keeps changing {self.path}; try again later")
        self.sha256 = before
        self.warnings = [*self._guess, *(self.workspace.stale_reports() if own and self.workspace else ())]
        return layout

    def matched_groups(self) -> list[tuple[str, ...]]:
        """Return the matched groups of the workspace's circuit; none for a layout elsewhere or without a circuit."""
        from layoutkit.circuit.recognise import MODULE_TYPES

        matched = {name for name, kind in MODULE_TYPES.items() if kind.matched}
        return [tuple(module["devices"]) for module in self._circuit("modules") if module.get("type") in matched]

    def devices(self) -> list[dict[str, Any]]:
        """Return the devices of the workspace's circuit; none for a layout elsewhere or without a circuit."""
        return self._circuit("devices")

    def _circuit(self, part: str) -> list[dict[str, Any]]:
        return list(self.workspace.circuit()[part]) if self.workspace is not None and self._is_current() else []

    def check_target(self, path: str, *inputs: str | os.PathLike[str]) -> None:
        """Check that a report can be written to ``path`` without replacing what it is made from.

        Args:
            path: Where the report is to be written.
            inputs: Further files that the report is made from.

        Raises:
            FileError: If nothing can be written there, or it is the layout, one of ``inputs``, or the workspace's
                layout, circuit or record.
        """
        target = files.check_target(path)
        kept: list[str | os.PathLike[str]] = [self.path, *inputs]
        for home in (self.workspace, workspace_of(target)):
            kept += [] if home is None else [home.layout_path, home.circuit_path, home.record_path]
        if target in {Path(each).resolve() for each in kept}:
            raise FileError(
                f"a report must not replace {path}, which is not a report; give another name", details={"path": path}
            )

    def sources(self, *, circuit: bool = False) -> dict[str, str]:
        """Return the SHA-256 values to write into a report on this layout.

        Args:
            circuit: Whether the workspace's circuit was used too.
        """
        found = {LAYOUT: self.sha256}
        if circuit and self.workspace is not None:
            found[CIRCUIT] = sha256_of(self.workspace.circuit_path) or ""
        return found

    def doubts_of(self, report_path: str) -> list[str]:
        """Return warnings if the report is about another layout, or does not state its layout; else none."""
        sources = sources_of(report_path)
        if sources is not None and LAYOUT not in sources:
            return [f"{report_path} does not say which layout it is about"]
        if sources and sources[LAYOUT] != self.sha256:
            return [f"{report_path} is out of date: it judged another layout than the present {self.path}"]
        return []

    def add_reports(self, *paths: str) -> None:
        """Record these files as made from this layout, and update the warnings about outdated reports."""
        if self.workspace is not None and self._is_current() and paths:
            self.warnings = self.workspace.add_reports(paths)

    def _is_current(self) -> bool:
        return self.workspace is not None and self.path == self.workspace.layout_path


def workspace_of(path: str | os.PathLike[str]) -> Workspace | None:
    """Return the workspace whose folder the file ``path`` lies in; None if that folder has no record of one."""
    home = Path(path).parent
    try:
        return Workspace(home) if (home / RECORD_FILE).is_file() else None
    except (OSError, ValueError):
        return None


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
