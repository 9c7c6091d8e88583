"""Replace a file atomically: write a part file in its folder and rename it. Part files of killed writers are removed.

A writer holds a lock on its part file (``.NAME.RANDOM.part``) until the file has its final name. The operating system
releases the lock when the writer ends, even if it is killed. A part file that can be locked is therefore a leftover;
the next writer of the same file, or the next tool that changes the workspace, removes it.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from pathlib import Path

_PART = re.compile(r"\.(.+)\.[0-9a-f]+(-[0-9]+)?\.part")
_ATTEMPTS = 100
_FLAGS = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


def replace_file(target: Path, data: bytes) -> None:
    """Write ``data`` to ``target``, so that a reader sees either the old or the complete new file.

    Raises:
        OSError: If that fails; then an old file stays as it is and no part file remains.
    """
    remove_leftovers(target.parent, target.name)
    descriptor, part = _new_part(target)
    try:
        try:
            with os.fdopen(descriptor, "wb", closefd=False) as stream:
                stream.write(data)
                stream.flush()
                os.fsync(descriptor)
            if sys.platform != "win32":
                part.replace(target)
        finally:
            os.close(descriptor)
        if sys.platform == "win32":  # an open file cannot be renamed there
            part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def remove_leftovers(folder: Path, name: str | None = None) -> None:
    """Remove the part files in ``folder`` whose writers have ended: those of the file ``name``, or all."""
    try:
        with os.scandir(folder) as entries:
            found = [entry.path for entry in entries if entry.name.endswith(".part") and entry.name.startswith(".")]
    except OSError:
        return
    for path in found:
        of = _PART.fullmatch(Path(path).name)
        if of and name in (None, of[1]):
            with suppress(OSError):  # in use, already removed, or owned by another user
                _remove_unless_locked(path)


def _new_part(target: Path) -> tuple[int, Path]:
    """Return a new part file, open and locked."""
    for _ in range(_ATTEMPTS):
        part = target.with_name(f".{target.name}.{os.urandom(6).hex()}.part")
        try:
            # Not tempfile: importing it costs more than the write, and its files have mode 0600.
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o666)
        except FileExistsError:
            continue
        if _lock(descriptor) is not False and _is_open_as(descriptor, part):
            return descriptor, part
        os.close(descriptor)  # another writer removed it as a leftover before it was locked
    raise OSError(f"cannot create a part file for {target.name}")


def _remove_unless_locked(path: str) -> None:
    if sys.platform == "win32":  # an open file cannot be removed there
        Path(path).unlink()
        return
    descriptor = os.open(path, os.O_RDONLY | _FLAGS | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if _lock(descriptor) and _is_open_as(descriptor, path):
            Path(path).unlink()
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool | None:
    """Return whether the open file could be locked; None if the file system has no locks."""
    if sys.platform == "win32":
        return None
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _is_open_as(descriptor: int, path: str | Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except OSError:
        return False
