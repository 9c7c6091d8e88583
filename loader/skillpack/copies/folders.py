"""Folders of copied skills: which files were changed or added since, and how a folder is replaced or removed.

An interruption loses nothing. Beside the folder ``NAME`` there may be, for a moment or after one,
``.NAME.skillpack-new`` (being written), ``.NAME.skillpack-old`` (the folder that the new one replaces) and
``.NAME.skillpack-gone`` (being deleted).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from skillpack.copies.skill_copy import MANIFEST, MAX_FILE_BYTES, manifest_in
from skillpack.exceptions import FileRefusedError
from skillpack.untrusted.file_access import read_bounded
from sturdy.atomic_files import lock

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_MANIFEST_BYTES = 4 << 20
_CACHES = frozenset({"__pycache__"})
_LOCK = ".py.lock"  # uv rewrites a script's lock when it resolves anew, as with UV_EXCLUDE_NEWER


class InstalledSkill(NamedTuple):
    """A skill that was installed.

    Attributes:
        folder: Where it lies.
        version: Version as installed; "" if it has none.
        distribution: The distribution that it came from; "" if it was none.
        changed: Paths of installed files that are not as they were installed, sorted.
        added: Paths of files that were not installed, sorted; caches of Python are left out.
    """

    folder: Path
    version: str
    distribution: str
    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()

    @property
    def edited(self) -> tuple[str, ...]:
        """Return what a user changed: ``changed`` without the locks that uv rewrote."""
        return tuple(path for path in self.changed if not (path.endswith(_LOCK) and (self.folder / path).is_file()))

    @property
    def name(self) -> str:
        """Return the skill's name, which is that of its folder."""
        return self.folder.name


def installed_skills(root: Path) -> list[InstalledSkill]:
    """Return the skills in ``root`` that were installed there, by name; nothing if the folder cannot be read."""
    try:
        places = sorted(place for place in root.iterdir() if not place.name.startswith("."))
    except OSError:
        return []
    return [found for place in places if (found := installed_skill(place)) is not None]


def installed_skill(place: Path) -> InstalledSkill | None:
    """Return the skill that was installed as the folder ``place``; None for anything else, a link included."""
    if place.is_symlink() or not place.is_dir():
        return None
    try:
        manifest = manifest_in(read_bounded(str(place / MANIFEST), MAX_MANIFEST_BYTES, follow=False))
    except (OSError, FileRefusedError):
        return None
    if manifest is None or manifest.get("name") != place.name:
        return None
    digests = _listed(manifest)
    present = set(_files_in(place))
    changed = [path for path, digest in digests.items() if not _is_intact(place, path, digest, present)]
    added = present - digests.keys() - {MANIFEST}
    version, distribution = (str(manifest.get(key) or "") for key in ("version", "distribution"))
    return InstalledSkill(place, version, distribution, tuple(sorted(changed)), tuple(sorted(added)))


def _listed(manifest: dict[str, Any]) -> dict[str, str]:
    """Return the SHA-256 of each file that a manifest lists, by its path."""
    listed = manifest.get("files")
    entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    return {str(entry.get("path")): str(entry.get("sha256")) for entry in entries}


def _files_in(place: Path) -> Iterator[str]:
    """Yield the paths below ``place`` of everything that is not a folder, except Python's caches."""
    for folder, subfolders, names in os.walk(place):
        links = [name for name in subfolders if (Path(folder) / name).is_symlink()]
        subfolders[:] = sorted(set(subfolders) - _CACHES - set(links))
        for name in sorted([*names, *links]):
            if not name.endswith(".pyc"):
                yield (Path(folder) / name).relative_to(place).as_posix()


def _is_intact(place: Path, path: str, digest: str, present: set[str]) -> bool:
    """Return whether an installed file is as it was."""
    if path not in present:
        return False
    try:
        content = read_bounded(str(place / path), MAX_FILE_BYTES, follow=False)
    except (OSError, FileRefusedError):
        return False
    return hashlib.sha256(content).hexdigest() == digest


_NEW, _OLD, _GONE = ".skillpack-new", ".skillpack-old", ".skillpack-gone"


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Wait until no other process changes folders in ``root``, then finish what was interrupted there.

    Raises:
        OSError: If ``root`` cannot be read or written.
    """
    descriptor = os.open(root, os.O_RDONLY) if sys.platform != "win32" else -1
    try:
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
