"""The journal's file: locking it, reading what is new, appending so that a failed write leaves nothing behind.

The journal is never renamed, so that it can also be the lock that all processes on one graph take.
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from designgraph import durable
from designgraph.errors import GraphFileError, NotStoredError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class JournalFile:
    """A journal on disk, opened when it is first needed.

    Args:
        path: Where it is; it is made by the first write.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = -1
        self._writable = False

    @property
    def is_open(self) -> bool:
        """Whether there is a journal; a reader of a graph that nobody has changed yet has none."""
        return self._descriptor >= 0

    @contextmanager
    def locked(self, *, exclusive: bool) -> Iterator[None]:
        """Hold the lock for a block: alone to write, with other readers to read; readers without a journal need none.

        Raises:
            GraphFileError: If the journal cannot be opened.
            NotStoredError: If the file system offers no locks.
        """
        while self._opened(writing=exclusive):
            try:
                durable.lock(self._descriptor, exclusive=exclusive)
            except OSError as error:
                raise NotStoredError(
                    f"{self.path} cannot be locked: {error.strerror}. Nothing was changed; keep the graph on a file "
                    "system with locks (KG_FILE names another place)"
                ) from error
            if self._is_current():
                break
            self.close()  # deleted or replaced by somebody while this process waited
        try:
            yield
        finally:
            if self.is_open:
                durable.unlock(self._descriptor)

    def has(self, length: int) -> bool:
        """Return whether the journal is the file known so far and has exactly ``length`` bytes; takes no lock."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return not self.is_open and length == 0
        except OSError:
            return False
        return self.is_open and status.st_size == length and self._is_current(status)

    def size(self) -> int:
        """Return its length. [bytes]."""
        return os.fstat(self._descriptor).st_size if self.is_open else 0

    def read(self, start: int) -> bytes:
        """Return its content from byte ``start`` on."""
        if not self.is_open:
            return b""
        os.lseek(self._descriptor, start, os.SEEK_SET)
        return durable.read_all(self._descriptor)

    def append(self, line: bytes, end: int) -> None:
        """Write ``line`` at byte ``end``, which is the journal's end, and return when it is on disk.

        Raises:
            NotStoredError: If that fails; the journal is as it was.
        """
        try:
            os.lseek(self._descriptor, end, os.SEEK_SET)
            durable.write_all(self._descriptor, line)
            durable.sync_data(self._descriptor)
        except OSError as error:
            with suppress(OSError):  # what is left then is a torn tail or a record that nobody acknowledged
                os.ftruncate(self._descriptor, end)
            raise NotStoredError(f"the change was not made, {self.path} cannot be written: {error.strerror}") from error

    def cut(self, length: int) -> None:
        """Shorten the journal to ``length`` [bytes]."""
        os.ftruncate(self._descriptor, length)

    def close(self) -> None:
        """Let go of the file, and of the lock."""
        if self.is_open:
            os.close(self._descriptor)
            self._descriptor = -1

    def _opened(self, *, writing: bool) -> bool:
        """Return whether the journal is open, having opened it, or made it where ``writing``."""
        if self.is_open and (self._writable or not writing):
            return True
        self.close()
        try:
            if writing:
                self._make()
            else:
                self._open_existing()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise GraphFileError(
                f"{self.path} cannot be {'written' if writing else 'read'}: {error.strerror}. Nothing was changed; set "
                "CHIPFORGE_PROJECT to the project's folder, or KG_FILE to the graph's file",
                {"path": str(self.path)},
            ) from error
        if not stat.S_ISREG(os.fstat(self._descriptor).st_mode):
            self.close()
            raise GraphFileError(f"{self.path} is not a regular file; nothing was changed", {"path": str(self.path)})
        return True

    def _make(self) -> None:
        folder = self.path.parent
        durable.make_folder(folder)
        try:
            self._descriptor = durable.open_file(self.path, os.O_RDWR)
        except FileNotFoundError:
            self._descriptor = durable.open_file(self.path, os.O_RDWR | os.O_CREAT)
            durable.sync_folder(folder)
        self._writable = True

    def _open_existing(self) -> None:
        try:
            self._descriptor = durable.open_file(self.path, os.O_RDWR)
            self._writable = True
        except PermissionError:
            self._descriptor = durable.open_file(self.path, os.O_RDONLY)
            self._writable = False

    def _is_current(self, status: os.stat_result | None = None) -> bool:
        """Return whether the open file is the one that has the journal's name."""
        try:
            named = status or self.path.stat()
        except OSError:
            return False
        return os.path.samestat(named, os.fstat(self._descriptor))
