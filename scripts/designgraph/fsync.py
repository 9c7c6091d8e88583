"""The few system calls that durability rests on, in one place so that tests can make each of them fail.

Linux, macOS and Windows differ: macOS needs F_FULLFSYNC to reach the disk, Windows has no folder to sync and locks byte
ranges, exclusively, instead of whole files.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

LOCK_OFFSET = 1 << 40  # Windows: a locked byte cannot be read by others, so one far behind the content is locked
LOCK_TIMEOUT_S = 60.0
_O_BINARY = getattr(os, "O_BINARY", 0)
_O_CLOEXEC = getattr(os, "O_CLOEXEC", 0)


def open_file(path: Path, flags: int) -> int:
    """Return a descriptor of ``path`` that children do not inherit; a file made here is readable by others."""
    return os.open(path, flags | _O_BINARY | _O_CLOEXEC, 0o644)


def write_all(descriptor: int, content: bytes) -> None:
    """Write all of ``content``.

    Raises:
        OSError: If the disk is full or fails; a part may have been written.
    """
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]


def read_all(descriptor: int) -> bytes:
    """Return what the file holds from the current position on."""
    pieces = []
    while piece := os.read(descriptor, 1 << 24):
        pieces.append(piece)
    return b"".join(pieces)


def sync_data(descriptor: int) -> None:
    """Return when the file's content and size are on disk."""
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
    """Return when the names in the folder ``path`` are on disk; where folders cannot be synced, at once."""
    if sys.platform == "win32":
        return
    descriptor = os.open(path, os.O_RDONLY | _O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace(source: Path, target: Path) -> None:
    """Rename ``source`` to ``target``, which it replaces in one step.

    On Windows an editor or virus scanner that has the target open for a moment is waited for.
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


def write_file(target: Path, content: bytes) -> None:
    """Give ``target`` the content in one step, by way of the part file ``.NAME.part`` beside it.

    The part file is locked while it is written. One that a killed writer left is taken over by the next writer.

    Raises:
        OSError: If that fails; the file is as it was.
    """
    part = target.with_name(f".{target.name}.part")
    descriptor = _locked_part(part)
    try:
        os.ftruncate(descriptor, 0)
        write_all(descriptor, content)
        sync_data(descriptor)
        if sys.platform == "win32":  # an open file cannot be renamed there
            os.close(descriptor)
            descriptor = -1
        replace(part, target)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _locked_part(part: Path) -> int:
    """Return a descriptor of the part file, once no other writer has it."""
    while True:
        descriptor = open_file(part, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0))
        try:
            with suppress(OSError):  # a file system without locks
                lock(descriptor, exclusive=True)
            if os.path.samestat(os.fstat(descriptor), part.lstat()):
                return descriptor
        except FileNotFoundError:  # the writer that had the lock has given the file its final name
            pass
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def make_folder(path: Path) -> None:
    """Create the folder ``path`` and those above it, each of them on disk when this returns."""
    missing = []
    folder = path
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for new in reversed(missing):
        new.mkdir(exist_ok=True)
        sync_folder(new.parent)


def lock(descriptor: int, *, exclusive: bool) -> None:
    """Wait until this descriptor holds the lock: alone, or together with other readers.

    The system takes the lock back when its process ends, however it ends.

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
    """Give the lock back."""
    if sys.platform == "win32":
        os.lseek(descriptor, LOCK_OFFSET, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
    else:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
