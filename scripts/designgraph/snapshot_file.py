"""The snapshot's file: reading it whole, knowing it again, replacing it in one step."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from designgraph import durable
from designgraph.snapshot import unreadable

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

MAX_BYTES = 1 << 30
_Key = tuple[int, int, int, int, int]


class SnapshotFile:
    """A snapshot on disk, and which version of it is in memory.

    Where files can be replaced while they are open, the known one is kept open: its inode cannot go to a new snapshot
    then, so that a new one is never taken for it.

    Args:
        path: Where it is, or will be.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: _Key | None = None
        self._held = -1

    @property
    def size(self) -> int:
        """Size of the known version; 0 without one. [bytes]."""
        return self._known[2] if self._known else 0

    def is_known(self) -> bool:
        """Return whether the file on disk is the one last read or written; also if there was none and is none."""
        try:
            return _key(self.path.stat()) == self._known
        except FileNotFoundError:
            return self._known is None
        except OSError:
            return False

    def read(self) -> bytes | None:
        """Return the content, which is known from now on; ``None`` if there is no file.

        Raises:
            GraphFileError: If it cannot be read, is no regular file or too large.
        """
        self.let_go()
        try:
            descriptor = durable.open_file(self.path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise unreadable(self.path, f"it cannot be opened: {error.strerror}") from error
        try:
            content = self._content(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        self._know(descriptor)
        return content

    def _content(self, descriptor: int) -> bytes:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise unreadable(self.path, "it is not a regular file")
        if status.st_size > MAX_BYTES:
            raise unreadable(self.path, f"it has {status.st_size} bytes, more than {MAX_BYTES}")
        try:
            return durable.read_all(descriptor)
        except OSError as error:
            raise unreadable(self.path, f"it cannot be read: {error.strerror}") from error

    def write(self, pieces: Iterable[bytes]) -> None:
        """Replace the file by one made of ``pieces``, which is on disk before it gets the name.

        Raises:
            OSError: If that fails; the file is as it was.
        """
        beside = self.path.with_name(f"{self.path.name}.new")
        descriptor = durable.open_file(beside, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        try:
            with suppress(FileNotFoundError):
                beside.chmod(stat.S_IMODE(self.path.stat().st_mode))
            for piece in pieces:
                durable.write_all(descriptor, piece)
            durable.sync_data(descriptor)
            if sys.platform == "win32":  # an open file cannot be renamed there
                os.close(descriptor)
                descriptor = -1
            durable.replace(beside, self.path)
        except BaseException:
            if descriptor >= 0:
                os.close(descriptor)
            with suppress(OSError):
                beside.unlink()
            raise
        self.let_go()
        self._know(durable.open_file(self.path, os.O_RDONLY) if descriptor < 0 else descriptor)

    def sync_name(self) -> None:
        """Return when the file's new name is on disk.

        Raises:
            OSError: If that fails.
        """
        durable.sync_folder(self.path.parent)

    def let_go(self) -> None:
        """Know no version any more."""
        self._known = None
        if self._held >= 0:
            os.close(self._held)
            self._held = -1

    def _know(self, descriptor: int) -> None:
        self._known = _key(os.fstat(descriptor))
        if sys.platform == "win32":
            os.close(descriptor)
        else:
            self._held = descriptor


def _key(status: os.stat_result) -> _Key:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
