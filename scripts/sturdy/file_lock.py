"""Lock an open file; the system releases the lock when the file is closed or the process ends, however it ends."""

from __future__ import annotations

import os
import sys
import time

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_OFFSET = 1 << 40  # Windows: other processes cannot read a locked byte, so a byte far beyond the content is locked
_WAIT_S = 0.001


def lock(descriptor: int, *, wait: bool = True) -> bool:
    """Lock an open file exclusively; return whether it is locked, which it always is after waiting.

    Raises:
        OSError: If the file system has no locks.
    """
    while not _tried(descriptor, wait=wait):
        if not wait:
            return False
        time.sleep(_WAIT_S)
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
