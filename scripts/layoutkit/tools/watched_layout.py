"""The page of a layout that someone works on: what it shows now, and what keeps it from showing more.

If a file is incomplete or missing, the page says so and shows the last drawing that could be read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from layoutkit.errors import FileError, LayoutkitError
from layoutkit.layout.cells import choose_cell
from layoutkit.tools.current_layout import CurrentLayout
from layoutkit.view.drawing_data import drawing_data
from layoutkit.view.html_parts import digest, rendered, safe_json
from layoutkit.view.markers import read_markers
from layoutkit.view.report_inputs import MOST, findings_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import klayout.db as kdb

REPORTS = {"drc.lyrdb": "DRC", "review.lyrdb": "design review"}
SUMMARY = "summary.json"
_VIEW = Path(__file__).parents[1] / "view"
_NOTHING: dict[str, Any] = {"unit": 0.001, "box": [0, 0, 1, 1], "marker": "#00ffff", "layers": [], "cells": []}
_EMPTY_CELL: dict[str, Any] = {"shapes": {}, "instances": []}


@dataclass
class _Shown:
    """What a page shows: the drawing, its names, findings, notes and what has judged this very layout."""

    drawing: dict[str, Any] = field(default_factory=lambda: {**_NOTHING, "cells": [_EMPTY_CELL]})
    labels: list[list[Any]] = field(default_factory=list)
    findings: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    judged: list[str] = field(default_factory=list)
    cell: str = "no layout yet"
    technology: str = ""


class WatchedLayout:
    """A layout whose page follows its file.

    Args:
        params: ``layout_path``, ``workspace`` and ``technology``, ``cell_name`` of the tool, each optional.

    Raises:
        FileError: If the workspace is a file.
    """

    def __init__(self, params: Mapping[str, Any]) -> None:
        self.params = dict(params)
        current = CurrentLayout(params)
        self.path = current.path.absolute()
        self._lock = Lock()
        self._seen: object = None
        self._shown = _Shown()
        self._problem = ""
        self._page = self._version = ""

    def state(self) -> dict[str, str]:
        """Return ``version`` of the page's content, what is ``told`` beside it, and its ``kind``, a class of style."""
        self._look()
        faults = sum(each["fault"] for each in self._shown.findings)
        if self._problem:
            return {"version": self._version, "told": self._problem, "kind": "warn"}
        if faults:
            return {"version": self._version, "told": f"{faults} fault{'s' * (faults > 1)}", "kind": "bad"}
        if not self._shown.notes:
            return {"version": self._version, "told": "no faults found", "kind": "good"}
        clean = " and ".join(self._shown.judged)
        told = f"no faults found by {clean}; the rest is not checked" if clean else "not checked"
        return {"version": self._version, "told": told, "kind": "warn"}

    def page(self) -> str:
        """Return the page as HTML text."""
        self._look()
        return self._page

    def digests(self) -> tuple[list[str], str]:
        """Return the SHA-256 of the page's scripts and of its style, as a security policy names them."""
        return [digest(_text(name)) for name in ("report_page.js", "live_page.js")], digest(_text("report_page.css"))

    def _look(self) -> None:
        """Read the files again if one has changed since the last time."""
        with self._lock:
            seen = [_stamp(path) for path in (self.path, *(self.path.parent / name for name in (*REPORTS, SUMMARY)))]
            if seen == self._seen:
                return
            try:
                self._shown, self._problem = self._read(), ""
            except LayoutkitError as error:
                last = "; this is the last layout that could be read" if self._shown.drawing["layers"] else ""
                self._problem = f"{error}{last}"
            self._seen = seen
            self._version, self._page = self._made()

    def _read(self) -> _Shown:
        """Return what the files show now.

        Raises:
            LayoutkitError: If the layout cannot be read, or has several top cells.
        """
        current = CurrentLayout(self.params)
        self._check_inside(self.path)
        layout = current.read()
        cell = choose_cell(layout, self.params.get("cell_name"))
        technology = current.technology()
        judged = self._findings(current, cell)
        return _Shown(drawing_data(cell, technology), _labels(cell), *judged, cell.name, technology.name)

    def _findings(self, current: CurrentLayout, cell: kdb.Cell) -> tuple[list[dict[str, Any]], list[str], list[str]]:
        """Return the findings of the reports on this very layout, which reports there are not, and which there are."""
        folder = self.path.parent
        summary = self._summary(current.sha256)
        if summary is not None:
            return findings_of(summary), [], []
        found, notes, judged = [], [], []
        for name, what in REPORTS.items():
            path = folder / name
            if not path.is_file():
                notes.append(f"{what}: not run on this layout")
                continue
            try:
                self._check_inside(path)
                doubts = current.doubts_of(str(path))
                markers = [] if doubts else read_markers(path, cell)
            except LayoutkitError as error:
                doubts, markers = [str(error)], []
            notes += doubts
            judged += [] if doubts else [what]
            for marker in markers:
                box = [marker.box.left, marker.box.bottom, marker.box.right, marker.box.top]
                found.append({"rule": marker.rule_id, "text": what, "fault": what == "DRC", "box": box})
        notes.append("LVS: see the answer of lvs.run_check")
        more = len(found) - MOST
        return found[:MOST], [*notes, *([f"{more} more findings are in the reports"] if more > 0 else [])], judged

    def _summary(self, layout: str) -> dict[str, Any] | None:
        """Return the summary of the build that made the layout with this SHA-256; None if there is none."""
        path = self.path.parent / SUMMARY
        try:
            self._check_inside(path)
            summary = json.loads(path.read_bytes())
        except (OSError, ValueError, LayoutkitError):  # none, or half written
            return None
        return summary if isinstance(summary, dict) and summary.get("layout_sha256") == layout else None

    def _check_inside(self, path: Path) -> None:
        """Check that no link leads out of the folder, since a server may confine this page's caller to it.

        Raises:
            FileError: If one does.
        """
        if path.resolve().parent != self.path.parent.resolve():
            raise FileError(f"{path} is a link to another folder; the page reads only files of its own folder")

    def _made(self) -> tuple[str, str]:
        """Return version and text of the page."""
        shown = self._shown
        data = {**shown.drawing, "nets": [], "devices": [], "labels": shown.labels, "findings": shown.findings}
        # The page shows a new status without being loaded again, so the status is not part of the version.
        version = sha256(json.dumps([data, shown.notes, shown.cell]).encode()).hexdigest()
        box, unit = shown.drawing["box"], shown.drawing["unit"]
        size = f"{(box[2] - box[0]) * unit:g} by {(box[3] - box[1]) * unit:g} um" if shown.drawing["layers"] else ""
        faults = sum(each["fault"] for each in shown.findings)
        page = rendered(
            "live_page.html",
            cell=shown.cell,
            technology=shown.technology,
            told=self._problem,
            alt=f"Layout of {shown.cell}",
            findings=shown.findings,
            faults=faults,
            unchecked=bool(self._problem or shown.notes),
            counted=lambda number, word: f"{number} {word}{'' if number == 1 else 's'}",
            notes=shown.notes,
            source=str(self.path),
            size=size,
            data=safe_json({**data, "version": version}),
            style=_text("report_page.css"),
            script=_text("report_page.js"),
            follow=_text("live_page.js"),
        )
        return version, str(page)


def _labels(cell: kdb.Cell) -> list[list[Any]]:
    """Return the texts of the cell and the cells below it: text, x, y [dbu]."""
    import klayout.db as kdb

    found = set()
    for layer in cell.layout().layer_indexes():
        texts = cell.begin_shapes_rec(layer)
        texts.shape_flags = kdb.Shapes.STexts
        while not texts.at_end():
            place = texts.trans() * (kdb.Point() + texts.shape().text_pos)
            found.add((texts.shape().text_string, place.x, place.y))
            texts.next()
    return [list(each) for each in sorted(found)[:2000]]


def _text(name: str) -> str:
    return (_VIEW / name).read_text(encoding="utf-8")


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """Return what changes when the file does; None if it is not there."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
