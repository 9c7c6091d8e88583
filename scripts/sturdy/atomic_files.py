"""Replace a file atomically: write a part file in its folder and rename it. Part files of killed writers are removed.

A writer holds a lock on its part file (``.NAME.RANDOM.part``) until the file has its final name. The operating system
releases the lock when the writer ends, even if it is killed. A part file that can be locked is therefore a leftover;
the next writer of the same file removes it, as does ``remove_leftovers``. ``lock`` locks any open file,
and ``file_state`` tells whether a file has changed since it was read.
"""

from __future__ import annotations

import os
import re
import sys
import time
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import TypeAlias

    FileState: TypeAlias = tuple[int, int, int]

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


# Descriptors and texts throughout: Path has no operations relative to an open folder.
# ruff: noqa: PTH105, PTH108, PTH118


_PART = re.compile(r"\.(.+)\.[0-9a-f]+(-[0-9]+)?\.part")
_ATTEMPTS = 100
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_LEFT = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_WAIT_S = 0.02  # Windows: an editor or a virus scanner may have the old file open for a moment
_WAITS = 50


def replace_file(
    target: str | os.PathLike[str],
    data: bytes,
    *,
    folder: int | None = None,
    overwrite: bool = True,
    mode: int | None = None,
) -> None:
    """Write ``data`` to ``target``, so that a reader sees either the old or the complete new file.

    Args:
        target: The file.
        data: Its new content.
        folder: Descriptor of an open folder in which ``target`` is a plain name; None for a path.
        overwrite: Whether the file may exist.
        mode: Permissions of the new file; None for those of any new file.

    Raises:
        FileExistsError: If it exists and ``overwrite`` is false.
        OSError: If writing fails; then an old file stays as it is and no part file remains.
    """
    place = os.fspath(target)
    home, name = os.path.split(place)
    remove_leftovers(home or "." if folder is None else folder, name)
    descriptor, part = _new_part(home, name, folder, 0o666 if mode is None else mode)
    try:
        try:
            if mode is not None and sys.platform != "win32":
                os.fchmod(descriptor, mode)
            write_all(descriptor, data)
            sync_data(descriptor)
            if sys.platform != "win32":
                _give_name(part, place, folder, overwrite=overwrite)
        finally:
            os.close(descriptor)
        if sys.platform == "win32":  # an open file cannot be renamed there
            _give_name(part, place, folder, overwrite=overwrite)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(part, dir_fd=folder)


def remove_leftovers(folder: str | os.PathLike[str] | int, name: str | None = None) -> None:
    """Remove the part files in ``folder`` whose writers have ended: those of the file ``name``, or all.

    Args:
        folder: The folder, or its descriptor.
        name: The file; its part file ``.NAME.part``, as earlier versions called it, is removed too.
    """
    try:
        with os.scandir(folder) as entries:
            found = [entry.name for entry in entries if entry.name.endswith(".part") and entry.name.startswith(".")]
    except OSError:
        return
    for part in found:
        of = _PART.fullmatch(part)
        if part == f".{name}.part" or (of and name in (None, of[1])):
            with suppress(OSError):  # in use, already removed, or owned by another user
                if isinstance(folder, int):
                    _remove_unless_locked(part, folder)
                else:
                    _remove_unless_locked(os.path.join(folder, part), None)


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of ``data``.

    Raises:
        OSError: If the disk is full or fails; a part of it may have been written.
    """
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def sync_data(descriptor: int) -> None:
    """Wait until the content and the size of an open file are on the disk."""
    if sys.platform == "darwin":
        import fcntl

        try:
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)  # fsync does not reach the disk there
        except OSError:  # a file system without it, such as a network share
            os.fsync(descriptor)
    else:
        os.fsync(descriptor)


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Wait until the names in ``folder`` are on the disk, so that a renaming survives a power failure.

    On Windows, where folders cannot be synced, nothing happens.

    Raises:
        OSError: If the file system cannot do it.
    """
    if sys.platform == "win32":
        return
    descriptor = os.open(folder, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(path: Path) -> None:
    """Create a folder and those above it, and wait until their names are on the disk.

    Raises:
        OSError: If that fails.
    """
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        sync_folder(folder.parent)


def _new_part(home: str, name: str, folder: int | None, mode: int) -> tuple[int, str]:
    """Return a new part file, open and locked; never with wider permissions than ``mode``."""
    for _ in range(_ATTEMPTS):
        # Not tempfile: importing it costs more than the write, and its files have mode 0600.
        part = os.path.join(home, f".{name}.{os.urandom(6).hex()}.part")
        try:
            descriptor = os.open(part, _NEW, mode, dir_fd=folder)
        except FileExistsError:
            continue
        if _lock(descriptor) is not False and _is_open_as(descriptor, part, folder):
            return descriptor, part
        os.close(descriptor)  # another writer removed it as a leftover before it was locked
    raise OSError(f"cannot create a part file for {name}")


def _give_name(part: str, place: str, folder: int | None, *, overwrite: bool) -> None:
    if not overwrite:
        try:
            os.link(part, place, src_dir_fd=folder, dst_dir_fd=folder)  # unlike a renaming, it replaces nothing
        except FileExistsError:
            raise
        except OSError:  # FAT and some shared folders have no hard links; of two writers at once, the later one wins
            if _exists(place, folder):
                raise FileExistsError(f"{place} exists already") from None
        else:
            return
    for _ in range(_WAITS if sys.platform == "win32" else 0):
        with suppress(PermissionError):
            os.replace(part, place)
            return
        time.sleep(_WAIT_S)
    os.replace(part, place, src_dir_fd=folder, dst_dir_fd=folder)


def _exists(place: str, folder: int | None) -> bool:
    try:
        os.lstat(place, dir_fd=folder)
    except FileNotFoundError:
        return False
    return True


def _remove_unless_locked(part: str, folder: int | None) -> None:
    if sys.platform == "win32":  # an open file cannot be removed there
        os.unlink(part)
        return
    descriptor = os.open(part, _LEFT, dir_fd=folder)
    try:
        if _lock(descriptor) and _is_open_as(descriptor, part, folder):
            os.unlink(part, dir_fd=folder)
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool | None:
    """Return whether the open file could be locked; None if the file system has no locks."""
    if sys.platform == "win32":
        return None
    try:
        return lock(descriptor, wait=False)
    except OSError:
        return None


def _is_open_as(descriptor: int, part: str, folder: int | None) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(part, dir_fd=folder))
    except OSError:
        return False


_OFFSET = 1 << 40  # Windows: other processes cannot read a locked byte, so a byte far beyond the content is locked
_LOCK_WAIT_S = 0.001


def lock(descriptor: int, *, wait: bool = True) -> bool:
    """Lock an open file exclusively; return whether it is locked, which it always is after waiting.

    The system releases the lock when the file is closed or the process ends, however it ends.

    Raises:
        OSError: If the file system has no locks.
    """
    while not _tried(descriptor, wait=wait):
        if not wait:
            return False
        time.sleep(_LOCK_WAIT_S)
    return True


def _tried(descriptor: int, *, wait: bool) -> bool:
    try:
        if sys.platform == "win32":
            os.lseek(descriptor, _OFFSET, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except (BlockingIOError, PermissionError):  # PermissionError: on Windows
        return False
    return True


def state_of(path: str | os.PathLike[str]) -> FileState | None:
    """Return the state of a file; None for one that is not there."""
    try:
        return file_state(os.stat(path))  # noqa: PTH116 - hundreds of files before each call
    except (OSError, ValueError):
        return None


def file_state(status: os.stat_result) -> FileState:
    """Return when a file was changed [ns since 1970], its size [bytes] and its number.

    A file that gets its old time of modification back, as from ``cp -p``, has changed all the same.
    """
    return max(status.st_ctime_ns, status.st_mtime_ns), status.st_size, status.st_ino
