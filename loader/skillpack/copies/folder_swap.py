"""Replace and remove whole folders so that an interruption loses nothing.

Beside the folder ``NAME`` there may be, for a moment or after an interruption, ``.NAME.skillpack-new`` (being written),
``.NAME.skillpack-old`` (the folder that the new one replaces) and ``.NAME.skillpack-gone`` (being deleted).
"""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from sturdy.file_lock import lock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_NEW, _OLD, _GONE = ".skillpack-new", ".skillpack-old", ".skillpack-gone"


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Wait until no other process changes folders in ``root``, then finish what was interrupted there.

    Raises:
        OSError: If ``root`` cannot be read or written.
    """
    descriptor = os.open(root, os.O_RDONLY) if sys.platform != "win32" else -1
    try:
        if sys.platform != "win32":
            with suppress(OSError):  # a file system without locks
                lock(descriptor)
        _finish_interrupted(root)
        yield
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def staging(root: Path, name: str) -> Path:
    """Return the folder in which to write the new ``root/name``; it does not exist yet."""
    return root / f".{name}{_NEW}"


def discard(root: Path, name: str) -> None:
    """Delete what was staged for ``root/name``."""
    shutil.rmtree(staging(root, name), ignore_errors=True)


def replace_with_staged(root: Path, name: str) -> None:
    """Make what was staged the folder ``root/name``. If that fails, the folder is as before.

    Raises:
        OSError: If a folder cannot be renamed.
    """
    place, new, old = root / name, staging(root, name), root / f".{name}{_OLD}"
    if not os.path.lexists(place):
        new.rename(place)
        return
    place.rename(old)
    try:
        new.rename(place)
    except BaseException:
        old.rename(place)
        raise
    _delete(root, name, old)


def remove(root: Path, name: str) -> None:
    """Remove the folder ``root/name``.

    Raises:
        OSError: If it cannot be renamed; it is as before then.
    """
    _delete(root, name, root / name)


def _delete(root: Path, name: str, folder: Path) -> None:
    """Delete a folder under a name that shows that it may be incomplete."""
    gone = root / f".{name}{_GONE}"
    folder.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)  # the next command deletes what remains


def _finish_interrupted(root: Path) -> None:
    """Restore the folders whose replacement was interrupted; delete other leftovers."""
    for left in sorted(root.glob(".*.skillpack-*")):
        name, suffix = left.name[1:].removesuffix(left.suffix), left.suffix
        if suffix in {_NEW, _OLD, _GONE} and left.is_symlink():
            left.unlink()  # skillpack did not make it, and must not write through it
        elif suffix == _OLD and not os.path.lexists(root / name):
            left.rename(root / name)
        elif suffix in {_NEW, _OLD, _GONE}:
            shutil.rmtree(left, ignore_errors=True)
