"""The system calls for durable files, in one module so that tests can make each of them fail.

Linux, macOS and Windows differ: macOS needs F_FULLFSYNC to reach the disk. Windows cannot sync folders, and it locks
byte ranges exclusively instead of whole files.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

LOCK_OFFSET = 1 << 40  # Windows: other processes cannot read a locked byte, so a byte far beyond the content is locked
LOCK_TIMEOUT_S = 60.0
_O_BINARY = getattr(os, "O_BINARY", 0)
_O_CLOEXEC = getattr(os, "O_CLOEXEC", 0)


def open_file(path: Path, flags: int) -> int:
    """Return a descriptor of ``path`` that child processes do not inherit; a new file is readable by all users."""
    return os.open(path, flags | _O_BINARY | _O_CLOEXEC, 0o644)


def write_all(descriptor: int, content: bytes) -> None:
    """Write all of ``content``.

    Raises:
        OSError: If the disk is full or fails; part of the content may have been written.
    """
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]


def read_all(descriptor: int) -> bytes:
    """Return the content of the file from the current position on."""
    pieces = []
    while piece := os.read(descriptor, 1 << 24):
        pieces.append(piece)
    return b"".join(pieces)


def sync_data(descriptor: int) -> None:
    """Wait until the content and size of the file are on disk."""
    if sys.platform == "darwin":
        try:
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
        except OSError:  # a file system without it, such as a network share
            os.fsync(descriptor)
    elif hasattr(os, "fdatasync"):
        os.fdatasync(descriptor)
    else:
        os.fsync(descriptor)


def sync_folder(path: Path) -> None:
    """Wait until the names in the folder ``path`` are on disk; do nothing where folders cannot be synced."""
    if sys.platform == "win32":
        return
    descriptor = os.open(path, os.O_RDONLY | _O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace(source: Path, target: Path) -> None:
    """Rename ``source`` to ``target``, which it replaces in one step.

    On Windows, wait up to a second for an editor or virus scanner that has the target open.
    """
    for attempt in range(50):
        try:
            source.replace(target)
        except PermissionError:  # noqa: PERF203 - a short wait, on Windows only
            if sys.platform != "win32" or attempt == 49:
                raise
            time.sleep(0.02)
        else:
            return


def make_folder(path: Path) -> None:
    """Create the folder ``path`` and its parents, and sync each of them to disk."""
    missing = []
    folder = path
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for new in reversed(missing):
        new.mkdir(exist_ok=True)
        sync_folder(new.parent)


def lock(descriptor: int, *, exclusive: bool) -> None:
    """Wait until this descriptor holds the lock: exclusively, or shared with other readers.

    The system releases the lock when the process ends, however it ends.

    Raises:
        OSError: If the file system has no locks; on Windows also when the lock is not free within a minute.
    """
    if sys.platform == "win32":
        deadline = time.monotonic() + LOCK_TIMEOUT_S
        while True:
            os.lseek(descriptor, LOCK_OFFSET, os.SEEK_SET)
            try:
                msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.001)
            else:
                return
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)


def unlock(descriptor: int) -> None:
    """Release the lock."""
    if sys.platform == "win32":
        os.lseek(descriptor, LOCK_OFFSET, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
    else:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
