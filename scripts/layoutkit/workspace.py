"""The folder that holds a design in progress: its layout, circuit, placement, routes and reports.

Several processes may work on one workspace: every change of the layout is read, made and saved under one lock, and
every file is written beside and renamed, so that readers need no lock and a crash loses nothing that was saved.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layoutkit import files
from layoutkit.errors import FileError, TimeLimitError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import klayout.db as kdb

ENVIRONMENT_VARIABLE = "ANALOG_LAYOUT_WORKSPACE"
DEFAULT_DIRECTORY = "workspace"
LOCK_TIMEOUT_S = 60.0
_LOCK_POLL_S = 0.01


class Workspace:
    """A design in progress.

    Args:
        directory: Its folder, created when first written to. ``None`` or "" takes the environment variable
            ANALOG_LAYOUT_WORKSPACE, and without that the folder ``workspace`` in the current folder.

    Raises:
        FileError: If ``directory`` is a file, or leads through one.
    """

    def __init__(self, directory: str | os.PathLike[str] | None = None) -> None:
        self.directory = Path(directory or os.environ.get(ENVIRONMENT_VARIABLE) or DEFAULT_DIRECTORY)
        try:
            occupied = self.directory.exists() and not self.directory.is_dir()
        except (OSError, ValueError) as error:
            raise FileError(f"{str(self.directory)!r} is not usable as a workspace: {error}") from error
        if occupied:
            raise FileError(
                f"workspace {self.directory} is a file; give a folder", details={"workspace": str(self.directory)}
            )

    @property
    def layout_path(self) -> Path:
        """The layout that all tools of the pack work on, "the current layout"."""
        return self.directory / "layout.gds"

    @property
    def circuit_path(self) -> Path:
        """The circuit that ``netlist.parse`` left here."""
        return self.directory / "circuit.json"

    def path(self, name: str) -> Path:
        """Return where the file ``name`` of this workspace is, or would be."""
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
                "or give the path of a layout file",
                details={"workspace": str(self.directory)},
            )
        return files.read_layout(self.layout_path)

    def open_layout(self, dbu_um: float) -> kdb.Layout:
        """Return the layout as last saved, or a new empty one with the database unit ``dbu_um``.

        Raises:
            FileError: If the saved layout cannot be read or has another database unit.
        """
        if not self.layout_path.exists():
            import klayout.db as kdb

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
    def update_layout(self, dbu_um: float) -> Iterator[kdb.Layout]:
        """Yield the layout for changing, and save it when the block ends without an exception.

        No other process updates it meanwhile. When the block raises, nothing is saved.

        Raises:
            FileError: If the layout cannot be read or saved; what was saved before stays.
            TimeLimitError: If other processes keep the workspace locked.
        """
        with self.lock():
            layout = self.open_layout(dbu_um)
            yield layout
            files.write_layout(layout, self.layout_path)

    @contextmanager
    def lock(self, timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[None]:
        """Keep other processes and threads from updating this workspace while the block runs (not re-entrant).

        Raises:
            FileError: If the workspace is not writable.
            TimeLimitError: If it stays locked by others for ``timeout_s``.
        """
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
            yield
        finally:
            os.close(descriptor)  # releases the lock, as does the end of the process

    def read_json(self, name: str) -> Any:
        """Return the JSON value of the file ``name``.

        Raises:
            FileError: If it is missing or not JSON.
        """
        import json

        data = files.read_bytes(self.path(name))
        try:
            return json.loads(data)
        except ValueError as error:
            raise FileError(
                f"{self.path(name)} is not JSON: {error}", details={"path": str(self.path(name))}
            ) from error

    def write_json(self, name: str, value: Any) -> Path:
        """Save ``value`` as the JSON file ``name`` and return its path."""
        self.create()
        files.write_json(self.path(name), value)
        return self.path(name)


def current_layout(layout_path: str | None, workspace: str | None) -> tuple[kdb.Layout, Path]:
    """Return the layout a tool is to look at and the file it came from: ``layout_path`` if given, else the workspace's.

    Raises:
        FileError: If there is none, or it cannot be read.
    """
    if layout_path is not None:
        return files.read_layout(layout_path), Path(layout_path)
    place = Workspace(workspace)
    return place.read_layout(), place.layout_path


def _try_lock(descriptor: int) -> bool:
    """Lock the open file for this process unless another holds it; tell whether that worked."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
