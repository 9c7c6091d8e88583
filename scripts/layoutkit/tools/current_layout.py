"""The layout that a tool works on, with its technology, its SHA-256 and warnings about its reports."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from layoutkit.errors import FileError
from layoutkit.layout import files
from layoutkit.layout.reports import CIRCUIT, LAYOUT, sha256_of, sources_of
from layoutkit.layout.workspace import DEFAULT_TECHNOLOGY, Workspace
from layoutkit.layout.workspace_record import RECORD_FILE, fitting
from layoutkit.technology import load

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    import klayout.db as kdb

    from layoutkit.technology import Technology

_READ_ATTEMPTS = 5


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
