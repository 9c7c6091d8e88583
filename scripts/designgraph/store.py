"""All graphs of one file: kept in memory and on disk, and synchronized with other processes.

A change is made under a lock: the store reads what other processes wrote, makes the change, writes the whole file
beside the old one, syncs it and renames it. Only then is the change acknowledged. So the file is complete at every
moment, readers need no lock, and an interruption leaves the version before or the version after.
"""

from __future__ import annotations

import os
import stat
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from designgraph.graph import GraphError, GraphFileError, NotStoredError, unreadable
from designgraph.snapshot import STATE_LENGTH, Snapshot, as_bytes, read_changed, read_signed
from sturdy.atomic_files import lock, make_folder, replace_file, sync_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from designgraph.graph import Graph

    Version = tuple[int, int, int, int, int, bytes]

MAX_BYTES = 1 << 30
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_LOCK = os.O_RDWR | os.O_CREAT | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


class Store:
    """The graphs of one file, safe to read and change from several threads and processes.

    Args:
        path: ``graph.json``, which need not exist; the lock ``graph.json.lock`` lies beside it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(os.path.realpath(path))  # the target of a link is replaced and locked, not the link
        self._held: Snapshot | None = None  # None: the file must be read
        self._version: Version | None = None  # of the file that is in memory; None: there was none
        self._has_more = False  # whether memory holds an edit that the file does not sign yet
        self._notices: list[str] = []
        self._mutex = threading.RLock()

    @contextmanager
    def reading(self) -> Iterator[dict[str, Graph]]:
        """Context manager that gives the graphs by id, as they are on disk, for reading.

        Raises:
            GraphFileError: If the files cannot be used.
        """
        with self._mutex:
            yield self._current().graphs

    def change(self, work: Callable[[dict[str, Graph]], bool]) -> None:
        """Make a change; once this returns, it is on disk.

        Args:
            work: Changes the graphs that it is given, and returns whether it did. If it raises a ``GraphError``, it has
                changed nothing.

        Raises:
            GraphError: As ``work`` does.
            GraphFileError: If the files cannot be used.
            NotStoredError: If the disk is full or fails; the change was not made.
        """
        with self._mutex, self._locked():
            held = self._current()
            try:
                if work(held.graphs):
                    self._write(held)
            except NotStoredError:
                self._held = None
                raise
            except GraphError:
                raise
            except BaseException:  # interrupted: the file decides
                self._held = None
                raise

    def fold(self) -> bool:
        """Sign an edit of the file that another program made; return whether the file is signed."""
        with self._mutex, self._locked():
            held = self._current()
            try:
                if self._has_more:
                    self._write(held)
            except NotStoredError as error:
                self._notices.append(str(error))
            return not self._has_more

    def take_notices(self) -> list[str]:
        """Return the messages about the files since the last call."""
        with self._mutex:
            notices, self._notices = list(dict.fromkeys(self._notices)), []
        return notices

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Context manager that holds the lock of all processes that change this graph."""
        path = self.path.with_name(f"{self.path.name}.lock")
        descriptor = -1
        try:
            while True:
                descriptor = self._opened(path)
                try:
                    lock(descriptor)
                except OSError as error:
                    raise NotStoredError(
                        f"{path} cannot be locked: {error.strerror}. Nothing was changed; keep the graph on a file "
                        "system with locks (KG_FILE can name another file)"
                    ) from error
                with suppress(FileNotFoundError):
                    if os.path.samestat(os.fstat(descriptor), path.stat()):
                        break
                os.close(descriptor)  # deleted or replaced while this process waited
            yield
        finally:
            if descriptor >= 0:
                with suppress(OSError):
                    os.close(descriptor)

    @staticmethod
    def _opened(path: Path) -> int:
        try:
            make_folder(path.parent)
            descriptor = os.open(path, _LOCK, 0o666)
        except OSError as error:
            raise GraphFileError(
                f"{path} cannot be written: {error.strerror}. Nothing was changed; set CHIPFORGE_PROJECT to the "
                "project's folder, or KG_FILE to the graph's file",
                {"path": str(path)},
            ) from error
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
        raise GraphFileError(f"{path} is not a regular file; nothing was changed", {"path": str(path)})

    def _current(self) -> Snapshot:
        """Return what is on disk, which is read if it is not in memory."""
        descriptor = self._open()
        try:
            version = None if descriptor is None else _version(descriptor)
            if self._held is None or version != self._version:
                self._held = None
                self._has_more = False
                self._held = self._read(b"" if descriptor is None else _content(descriptor), exists=version is not None)
                self._version = version
        except OSError as error:
            raise unreadable(self.path, f"it cannot be read: {error.strerror}") from error
        finally:
            if descriptor is not None:
                os.close(descriptor)
        return self._held

    def _open(self) -> int | None:
        """Return a descriptor of the file; None if there is none."""
        try:
            descriptor = os.open(self.path, _READ)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise unreadable(self.path, f"it cannot be opened: {error.strerror}") from error
        status = os.fstat(descriptor)
        fault = "it is not a regular file" if not stat.S_ISREG(status.st_mode) else ""
        if not fault and status.st_size > MAX_BYTES:
            fault = f"it has {status.st_size} bytes, more than {MAX_BYTES}"
        if fault:
            os.close(descriptor)
            raise unreadable(self.path, fault)
        return descriptor

    def _read(self, content: bytes, *, exists: bool) -> Snapshot:
        held = read_signed(content) if exists else Snapshot()
        if held is None:
            held = read_changed(content, self.path)
        if held.edited:
            self._has_more = True
            self._notices.append(
                f"{self.path} was edited outside the graph's tools; the edit is accepted, and the next change signs it"
            )
        self._refuse_journal()
        return held

    def _refuse_journal(self) -> None:
        """Raise an error if there are changes beside the file, in the journal of an earlier version."""
        journal = self.path.with_name(f"{self.path.name}.journal")
        with suppress(FileNotFoundError):
            status = journal.stat()
            if status.st_size and stat.S_ISREG(status.st_mode):
                raise unreadable(
                    journal,
                    "it holds changes of an earlier version of this package, which this version does not read. Run "
                    "`export_graph.py --fold` of the version that wrote it, or move it away to keep the graph "
                    "without its changes",
                )

    def _write(self, held: Snapshot) -> None:
        content, state = as_bytes(held.graphs, held.state)
        mode = None
        with suppress(FileNotFoundError):
            mode = stat.S_IMODE(self.path.stat().st_mode)
        try:
            replace_file(self.path, content, mode=mode)
        except OSError as error:
            raise NotStoredError(f"the change was not made, {self.path} cannot be written: {error.strerror}") from error
        held.state = state
        self._has_more = False
        self._version = None
        with suppress(GraphFileError):  # replaced at once by something else: it is read again
            if (descriptor := self._open()) is not None:
                self._version = _version(descriptor)
                os.close(descriptor)
        try:
            sync_folder(self.path.parent)
        except OSError as error:
            self._notices.append(
                f"{self.path.parent} could not be synced ({error.strerror}); a power failure may undo the last change"
            )


def _version(descriptor: int) -> Version:
    """Return what tells one version of a file from another: its status, and its end, which holds its digest."""
    status = os.fstat(descriptor)
    os.lseek(descriptor, max(0, status.st_size - STATE_LENGTH), os.SEEK_SET)
    end = os.read(descriptor, STATE_LENGTH)
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, end


def _content(descriptor: int) -> bytes:
    os.lseek(descriptor, 0, os.SEEK_SET)
    with os.fdopen(os.dup(descriptor), "rb") as stream:
        return stream.read()
