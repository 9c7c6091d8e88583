"""The folder that holds a design in progress: its layout, circuit, placement, routes and reports.

Several processes may work in the same workspace: each change of the layout is read, made and saved under one lock, and
each file is replaced atomically, so that readers need no lock and a crash does not lose saved data.

``layout_workspace.json`` records which technology the layout is drawn in and which reports were made from it. When a
tool changes the layout or the circuit, earlier reports are renamed to ``*.stale.*``. When another program changes the
layout, such as KLayout, the next tool reports which files are out of date.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import klayout.db as kdb

from layoutkit.errors import FileError, LayoutkitError, TechnologyError, TimeLimitError
from layoutkit.layout import files
from layoutkit.layout.history import History
from layoutkit.layout.reports import sha256_of
from layoutkit.layout.workspace_record import (
    CIRCUIT_FILE,
    LAYOUT_FILE,
    RECORD_FILE,
    STORED_FILES,
    DrawnIn,
    Record,
    changed_since,
    check_fits,
    check_same,
    fitting,
    mark_stale,
    read_record,
    record_reports,
    restore_reports,
    stale_reports,
)
from layoutkit.technology import Technology, load
from sturdy.atomic_files import lock, remove_leftovers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


ENVIRONMENT_VARIABLE = "ANALOG_LAYOUT_WORKSPACE"
DEFAULT_DIRECTORY = "workspace"
LOCK_TIMEOUT_S = 60.0
_LOCK_POLL_S = 0.01
DEFAULT_TECHNOLOGY = "generic"
CHANGE = "change the layout"


@dataclass(frozen=True)
class Saved:
    """The result of saving a layout.

    Attributes:
        sha256: Of the layout file.
        warnings: Reports that are out of date, and other warnings for the caller.
    """

    sha256: str
    warnings: tuple[str, ...] = ()


class Workspace:
    """A design in progress.

    Args:
        directory: Its folder, created at the first write. Default: the environment variable ANALOG_LAYOUT_WORKSPACE,
            else the folder ``workspace`` in the current folder.

    Raises:
        FileError: If ``directory`` or one of its parents is a file.
    """

    saved: Saved | None = None
    """Result of the last ``update_layout`` of this object; None before."""
    _recorded: bool = False
    """Whether the history holds the design as it was before the operation in progress."""
    _in_parts: bool = False
    """Whether the operation in progress locks the workspace several times."""

    def __init__(self, directory: str | os.PathLike[str] | None = None) -> None:
        self.directory = Path(directory or os.environ.get(ENVIRONMENT_VARIABLE) or DEFAULT_DIRECTORY)
        try:
            occupied = self.directory.exists() and not self.directory.is_dir()
        except (OSError, ValueError) as error:
            raise FileError(f"{str(self.directory)!r} is not usable as a workspace: {error}") from error
        if occupied:
            raise FileError(
                f"workspace {self.directory} is a file; specify a folder", details={"workspace": str(self.directory)}
            )

    @property
    def layout_path(self) -> Path:
        """The current layout, on which all tools work."""
        return self.directory / LAYOUT_FILE

    @property
    def circuit_path(self) -> Path:
        """The circuit that ``netlist.parse`` wrote."""
        return self.directory / CIRCUIT_FILE

    def path(self, name: str) -> Path:
        """Return the path of the file ``name`` in this workspace, whether it exists or not."""
        return self.directory / name

    def create(self) -> None:
        """Create the folder unless it exists.

        Raises:
            FileError: If it cannot be created.
        """
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(
                f"cannot create the workspace {self.directory}: {error.strerror}",
                details={"workspace": str(self.directory)},
            ) from error

    def read_layout(self) -> kdb.Layout:
        """Return the layout as last saved.

        Raises:
            FileError: If there is none yet, or it cannot be read.
        """
        if not self.layout_path.exists():
            raise FileError(
                f"workspace {self.directory} holds no layout yet; draw a device first, "
                "or specify the path of a layout file",
                details={"workspace": str(self.directory)},
            )
        return files.read_layout(self.layout_path)

    def open_layout(self, dbu_um: float) -> kdb.Layout:
        """Return the layout as last saved, or a new empty one with the database unit ``dbu_um``.

        Raises:
            FileError: If the saved layout cannot be read or has another database unit.
        """
        if not self.layout_path.exists():
            layout = kdb.Layout()
            layout.dbu = dbu_um
            return layout
        layout = files.read_layout(self.layout_path)
        if abs(layout.dbu - dbu_um) > 1e-6 * dbu_um:
            raise FileError(
                f"{self.layout_path} has a database unit of {layout.dbu:g} um, the technology one of {dbu_um:g} um; "
                "use another workspace",
                details={"layout_dbu_um": layout.dbu, "technology_dbu_um": dbu_um},
            )
        return layout

    @contextmanager
    def update_layout(
        self, dbu_um: float, technology: Technology | None = None, operation: str = CHANGE
    ) -> Iterator[kdb.Layout]:
        """Yield the layout to be changed, and save it if the block ends without an exception.

        No other process updates it meanwhile. If the block raises, nothing is saved. ``saved`` holds the result.

        Args:
            dbu_um: Database unit of a new layout. [um]
            technology: Technology of the drawing, recorded at the first drawing. None does not change the record.
            operation: What is done, for the history.

        Raises:
            FileError: If the layout cannot be read or saved; the saved layout is not changed.
            TechnologyError: If the layout is drawn in another technology.
            TimeLimitError: If other processes keep the workspace locked.
        """
        with self.lock():
            layout = self.open_layout(dbu_um)
            if technology is not None:
                self._check_technology(technology, layout)
            self._record_before(operation)
            yield layout
            self.saved = self.save_layout(layout, technology, operation)

    def save_layout(self, layout: kdb.Layout, technology: Technology | None = None, operation: str = CHANGE) -> Saved:
        """Save the layout, record its technology, and rename earlier reports; the caller holds the lock.

        Raises:
            FileError: If that fails.
            TechnologyError: If the present layout is drawn in another technology.
        """
        if not self._recorded:
            self._record_before(operation)
        before, warnings = sha256_of(self.layout_path), []
        if technology is not None:
            warnings = self._check_technology(technology)
            record = self.record() or Record()
            drawn_in = replace(record, technology=DrawnIn.of(technology))
            if drawn_in != record:
                drawn_in.write(self.record_path)
        files.write_layout(layout, self.layout_path)
        sha256 = sha256_of(self.layout_path) or ""
        return Saved(sha256, (*warnings, *mark_stale(self.directory, changed=sha256 != before)))

    def begin(self, operation: str) -> None:
        """Record the design in the history, before an operation that changes several files in several steps."""
        with self.lock():
            self._in_parts = True
            self._record_before(operation)

    def undo(self, steps: int = 1, *, discard: bool = False) -> tuple[list[str], list[str]]:
        """Restore the design as it was before the last operations, with the reports on it.

        Args:
            steps: Number of operations.
            discard: Whether to give up a change of the layout that another program made since.

        Returns:
            The names of the operations, the last one first, and a warning for each report that is out of date.

        Raises:
            LayoutkitError: If there are fewer operations, or another program changed the layout since.
        """
        with self.lock():
            undone = History.of(self.directory).undo(steps, discard=discard)
            warnings = mark_stale(self.directory, changed=True)
            restore_reports(self.directory)
            return undone, warnings

    def operations(self) -> list[str]:
        """Return the names of the operations that can be undone, the last one first; nothing is written."""
        return [each.name for each in reversed(History.read(self.directory).operations)]

    def _record_before(self, operation: str) -> None:
        History.of(self.directory).begin(operation)
        self._recorded = True

    def _record_after(self) -> None:
        if self._recorded:
            History.of(self.directory).end(goes_on=self._in_parts)
            self._recorded = self._in_parts

    @property
    def record_path(self) -> Path:
        """The file that records the technology of the layout and the reports made from it."""
        return self.path(RECORD_FILE)

    def record(self) -> Record | None:
        """Return the record; None if the workspace has none.

        Raises:
            FileError: If it is not a record of this version.
        """
        return read_record(self.record_path)

    def technology(self, requested: str | None, usual: str = DEFAULT_TECHNOLOGY) -> Technology:
        """Return the technology to use: ``requested``, else that of the layout, else ``usual``.

        For a layout without a record, from an earlier version or another program, the layers determine the technology.

        Args:
            requested: Shipped name or path of a technology file; None if the caller does not specify one.
            usual: Technology for a workspace without a layout.

        Raises:
            TechnologyError: If there is no such technology, the layout is drawn in another one, or ``requested`` is
                None and the technology of the layout cannot be determined.
            FileError: If the record or the layout cannot be read.
        """
        if requested is not None:
            technology = load(requested)
            self._check_technology(technology)
            return technology
        record = self.record()
        if not self.layout_path.exists():
            return load(usual)
        if record is None or record.technology is None:
            return load(fitting(self.read_layout(), self.directory, usual))
        try:
            technology = load(record.technology.source)
        except TechnologyError as error:
            raise TechnologyError(
                f"workspace {self.directory} is drawn in {record.technology.name}, which cannot be loaded: "
                f"{error.message}; specify the path of its file as technology",
                details={"param_name": "technology", "workspace": str(self.directory)},
            ) from error
        self._check_technology(technology)
        return technology

    def _check_technology(self, technology: Technology, layout: kdb.Layout | None = None) -> list[str]:
        """Check that the layout, if there is one, is drawn in ``technology``; return warnings."""
        record = self.record()
        if not self.layout_path.exists():
            return []
        if record is not None and record.technology is not None:
            return check_same(record.technology, DrawnIn.of(technology), self.directory)
        check_fits(self.read_layout() if layout is None else layout, technology, self.layout_path)
        return []

    @contextmanager
    def lock(self, timeout_s: float | None = None) -> Iterator[None]:
        """Prevent other processes and threads from updating this workspace during the block (not re-entrant).

        Raises:
            FileError: If the workspace is not writable.
            TimeLimitError: If it stays locked by others for ``timeout_s``, by default ``LOCK_TIMEOUT_S``.
        """
        timeout_s = LOCK_TIMEOUT_S if timeout_s is None else timeout_s
        self.create()
        lock_path = self.path(".lock")
        try:
            descriptor = os.open(lock_path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise FileError(
                f"workspace {self.directory} is not writable: {error.strerror}",
                details={"workspace": str(self.directory)},
            ) from error
        try:
            deadline = time.monotonic() + timeout_s
            while not _try_lock(descriptor):
                if time.monotonic() > deadline:
                    raise TimeLimitError(
                        f"workspace {self.directory} was locked by another process for more than {timeout_s:g} s; "
                        "wait for it or use another workspace",
                        details={"workspace": str(self.directory)},
                    )
                time.sleep(_LOCK_POLL_S)
            remove_leftovers(self.directory)
            try:
                yield
                self._record_after()
            except BaseException:
                with suppress(LayoutkitError):  # the disk may be full; undo finds what could not be restored
                    if self._recorded and not self._in_parts:
                        History.of(self.directory).abandon()
                    else:
                        self._record_after()
                self._recorded = self._in_parts
                raise
        finally:
            os.close(descriptor)  # releases the lock, as does the end of the process

    def read_json(self, name: str) -> Any:
        """Return the JSON value of the file ``name``.

        Raises:
            FileError: If it is missing or not JSON.
        """
        data = files.read_bytes(self.path(name))
        try:
            return json.loads(data)
        except ValueError as error:
            raise FileError(
                f"{self.path(name)} is not JSON: {error}", details={"path": str(self.path(name))}
            ) from error

    def circuit(self) -> dict[str, Any]:
        """Return the circuit as JSON data, without entries of another form; devices and modules are lists in any case.

        Raises:
            FileError: If the file is not JSON.
        """
        data = self.read_json(CIRCUIT_FILE) if self.circuit_path.exists() else {}
        data = data.get("circuit", data) if isinstance(data, dict) else {}
        if STORED_FILES.accepts(data, "circuit"):
            return {"devices": [], "modules": [], **data}
        lists = {name: found if isinstance(found := data.get(name), list) else [] for name in ("devices", "modules")}
        for name, found in lists.items():
            lists[name] = [each for each in found if STORED_FILES.accepts({name: [each]}, "circuit")]
        return {**data, **lists}

    def write_json(self, name: str, value: Any) -> Path:
        """Save ``value`` as the JSON file ``name`` and return its path."""
        self.create()
        files.write_json(self.path(name), value)
        return self.path(name)

    def write(self, name: str, content: Any) -> Path:
        """Save ``content``, bytes or a JSON value, as the file ``name`` and return its path."""
        if not isinstance(content, bytes):
            return self.write_json(name, content)
        self.create()
        files.write_bytes(self.path(name), content)
        return self.path(name)

    def save_circuit(self, value: Any) -> list[str]:
        """Save ``value`` as the circuit and return a warning for each outdated report; the caller holds the lock."""
        self.write_json(self.circuit_path.name, value)
        return mark_stale(self.directory)

    def add_reports(self, paths: Iterable[str | os.PathLike[str]]) -> list[str]:
        """Record these files as made from the layout; return a warning for each report that is out of date.

        If the workspace is not writable, a warning states that nothing was recorded.
        """
        try:
            with self.lock():
                return record_reports(self.directory, paths)
        except (FileError, TimeLimitError) as error:
            text = f"cannot record which reports were made from the layout: {error.message}"
            return [text, *stale_reports(self.directory)]

    def stale_reports(self) -> list[str]:
        """Return one sentence for each report that was made from another layout or circuit than the present one."""
        return stale_reports(self.directory)

    def changed_since(self, name: str) -> list[str] | None:
        """Return what changed since the report ``name`` was made ("layout", "circuit"), None if that is unknown."""
        return changed_since(self.directory, name)


def _try_lock(descriptor: int) -> bool:
    """Lock the open file unless another process holds the lock; return whether that succeeded."""
    with suppress(OSError):
        return lock(descriptor, wait=False)
    return False
