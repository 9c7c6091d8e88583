"""Installed copies of skills: which of their files were changed or added since."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from skillpack.copies.skill_copy import MANIFEST, MAX_FILE_BYTES, manifest_in
from skillpack.exceptions import FileRefusedError
from skillpack.untrusted.file_access import read_bounded

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
