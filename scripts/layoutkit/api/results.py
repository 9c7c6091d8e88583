"""What the functions of ``import layoutkit`` return: objects that show themselves in Jupyter.

Texts of files, such as names of nets, are escaped before they become HTML.
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layoutkit.errors import LayoutkitError
from layoutkit.templates import rendered

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.circuit import Circuit
    from layoutkit.technology import Technology
    from layoutkit.view.markers import Marker

PICTURE_SIDE = 900
"""Longer side of a picture. [pixels]"""


@dataclass(frozen=True)
class Netlist:
    """A netlist that has been read.

    Attributes:
        circuit: Its devices, nets, ports and recognised modules.
        request: Where it comes from and how it is read, as parameters of ``flow.build_layout``.
    """

    circuit: Circuit
    request: Mapping[str, Any]

    def _repr_html_(self) -> str:
        """Return tables of the recognised groups and of the devices."""
        return rendered("results.html", netlist=self.circuit, png="")


@dataclass(frozen=True)
class Layout:
    """A layout in memory.

    Attributes:
        layout: KLayout's object, which owns the cell.
        cell: The cell that was drawn or built.
        technology: Its process.
        path: The file it was read from; None for one that was drawn.
        warnings: What was rounded or changed, and other warnings.
    """

    layout: kdb.Layout
    cell: kdb.Cell
    technology: Technology
    path: Path | None = None
    warnings: tuple[str, ...] = ()

    @property
    def size_um(self) -> tuple[float, float]:
        """Width and height of all that is drawn. [um]"""
        box = self.cell.dbbox()
        return box.width(), box.height()

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the layout as GDSII or OASIS, by the name of the file, and return the path.

        Raises:
            FileError: If nothing can be written there.
        """
        from layoutkit.layout.files import write_layout

        write_layout(self.layout, path)
        return Path(path)

    def picture(self, layers: Sequence[int | str] | None = None, *, markers: Sequence[Marker] = ()) -> bytes:
        """Return a PNG picture in the process's colours.

        Args:
            layers: Layers to show: names of the process or GDS numbers; None for all.
            markers: Places to mark, such as violations.
        """
        from layoutkit.view.render import ViewOptions, render

        width, height = self.size_um
        ratio = min(max(width / max(height, 1e-9), 0.5), 2.0)
        sides = round(PICTURE_SIDE * min(ratio, 1)), round(PICTURE_SIDE / max(ratio, 1))
        return render(self.cell, self.technology, ViewOptions(*sides, layers=layers), markers).png

    def _repr_png_(self) -> bytes:
        return self.picture()


@dataclass(frozen=True)
class Check:
    """The verdict of DRC and of LVS.

    Attributes:
        layout: What was judged.
        drc: Verdict, violations and what could not be checked, as ``drc`` in the report of ``flow.build_layout``.
        lvs: Data of ``lvs.run_check``; None where no circuit was given.
    """

    layout: Layout
    drc: Mapping[str, Any]
    lvs: Mapping[str, Any] | None

    @property
    def ok(self) -> bool:
        """Whether every check that ran is complete and found nothing; without a circuit this says nothing about LVS."""
        return not self.faults

    @cached_property
    def faults(self) -> tuple[str, ...]:
        """One sentence for each fault."""
        from layoutkit.flow.summary import faults

        return tuple(faults({"drc": self.drc} | ({} if self.lvs is None else {"lvs": self.lvs})))

    def _repr_html_(self) -> str:
        """Return the verdicts, and a picture with the places of the violations."""
        from layoutkit.view.markers import markers_at

        markers = markers_at(self.drc["violations"])
        return rendered("results.html", check=self, png=b64encode(self.layout.picture(markers=markers)).decode())


@dataclass(frozen=True)
class Build:
    """A layout built from a netlist, and the report on it.

    Attributes:
        netlist: What was built.
        report: Data of ``flow.build_layout``: placement, routing, checks, matching and metrics.
        faults: One sentence for each fault; none if the layout is clean.
    """

    netlist: Netlist
    report: Mapping[str, Any]
    faults: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether all stages ran, every net is routed, DRC and LVS are clean and complete, and currents are carried."""
        return not self.faults and not self.report["remaining_stages"]

    @property
    def files(self) -> Mapping[str, str]:
        """Paths of the files in the workspace, by what they are: ``gds``, ``png``, ``drc_report`` and so on."""
        return dict(self.report["files"])

    @cached_property
    def layout(self) -> Layout:
        """The finished layout, read from the workspace.

        Raises:
            LayoutkitError: If the build stopped before there was one, or the file has changed since.
        """
        from layoutkit.layout.cells import choose_cell
        from layoutkit.tools.current_layout import CurrentLayout

        if "gds" not in self.files:
            stages = ", ".join(self.report["remaining_stages"])
            raise LayoutkitError(f"the build stopped before the layout was written; still to run: {stages}")
        current = CurrentLayout({"layout_path": self.files["gds"]})
        layout = current.read()
        if current.sha256 != self.report["layout_sha256"]:
            raise LayoutkitError(f"{current.path} has changed since it was built; build it again")
        return Layout(layout, choose_cell(layout), current.technology(), current.path, tuple(self.report["warnings"]))

    def _repr_html_(self) -> str:
        """Return the verdicts, some figures and the picture of the build, and where its whole report is."""
        png = Path(self.files["png"]).read_bytes() if "png" in self.files else b""
        return rendered("results.html", build=self, png=b64encode(png).decode())
