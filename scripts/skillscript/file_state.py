"""By what a program recognises that a file has changed since it was read."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from typing import TypeAlias

    FileState: TypeAlias = tuple[int, int, int]


def file_state(status: os.stat_result) -> FileState:
    """Return when a file was changed [ns since 1970], its size [bytes] and its number.

    A file that gets its old time of modification back, as from ``cp -p``, has changed all the same.
    """
    return max(status.st_ctime_ns, status.st_mtime_ns), status.st_size, status.st_ino
