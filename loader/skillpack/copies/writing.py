"""Write copies of skills: as folders or as archives, complete or not at all."""

from __future__ import annotations

import contextlib
import io
import os
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from skillpack.copies.folders import (
    MAX_MANIFEST_BYTES,
    discard,
    installed_skill,
    locked,
    replace_with_staged,
    staging,
)
from skillpack.copies.skill_copy import MANIFEST, copy_of, manifest_in
from skillpack.exceptions import CopyError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skillpack.copies.skill_copy import SkillCopy
    from skillpack.skills.skill_md import Skill

ARCHIVE_SUFFIX = ".skill"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a ZIP file can state
_FILE_MODE, _PROGRAM_MODE, _FOLDER_MODE = 0o644, 0o755, 0o755


class Written(NamedTuple):
    """A copy that was written.

    Attributes:
        copy: What was written.
        path: The folder or the archive.
    """

    copy: SkillCopy
    path: Path


def export_skills(
    skills: Iterable[Skill], folder: Path, *, archive: bool = False, force: bool = False
) -> list[Written]:
    """Write self-contained copies of ``skills`` into ``folder`` and return them; if one has a fault, none is written.

    Args:
        skills: The skills to copy.
        folder: Where to write ``NAME/`` or ``NAME.skill``; created if absent.
        archive: Whether to write archives.
        force: Whether to replace a copy that was changed since it was written.

    Raises:
        CopyError: If a copy cannot be made or written, or would replace what no export wrote; the message has all
            reasons, one per line.
    """
    copies, faults = [], []
    for skill in skills:
        target = folder / (f"{skill.name}{ARCHIVE_SUFFIX}" if archive else skill.name)
        try:
            _check_target(skill, target, force=force)
        except CopyError as error:
            faults.append(str(error))
        try:
            copies.append(Written(copy_of(skill), target))
        except CopyError as error:
            faults.append(str(error))
    if faults:
        raise CopyError("\n".join(faults))
    _write_all(copies, folder)
    return copies


def archive_bytes(copy: SkillCopy) -> bytes:
    """Return a copy as a ZIP file with its folder inside; the bytes depend on the files alone.

    They are stored without compression: its result depends on the version of the library that compresses.
    """
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as file:
        for name, data in copy.files.items():
            entry = zipfile.ZipInfo(f"{copy.name}/{name}", _EPOCH)
            entry.create_system = 3  # Unix, on every system
            entry.external_attr = (0o100000 | _mode(data)) << 16
            file.writestr(entry, data)
    return stream.getvalue()


def changes_of(folder: Path) -> list[str] | None:
    """Return the files of a copy that were changed, added or removed since it was written; None for no copy."""
    found = installed_skill(folder)
    return None if found is None else sorted([*found.edited, *found.added])


def _check_target(skill: Skill, target: Path, *, force: bool) -> None:
    """Check that nothing but an unchanged copy would be replaced."""
    home = Path(os.path.realpath(skill.dir))
    place = Path(os.path.realpath(target.parent)) / target.name
    if place.is_relative_to(home):
        raise CopyError(f"{target} is in the folder of the skill itself; choose another folder")
    if home.is_relative_to(place):
        raise CopyError(f"{target} contains the skill itself; choose another folder")
    if not os.path.lexists(target):
        return
    if target.is_symlink():
        raise CopyError(f"{target} is a link; remove it, or choose another folder")
    if target.name.endswith(ARCHIVE_SUFFIX):
        if not _is_archive_of(target, skill.name):
            raise CopyError(
                f"{target} exists and is no archive that an export wrote; remove it, or choose another folder"
            )
        return
    changes = changes_of(target) if target.is_dir() else None
    if changes is None:
        raise CopyError(f"{target} exists and is no copy that an export wrote; remove it, or choose another folder")
    if changes and not force:
        shown = ", ".join(changes[:5]) + (f" and {len(changes) - 5} more" if len(changes) > 5 else "")
        raise CopyError(f"{target} was changed since it was written ({shown}); --force deletes the changes")


def _is_archive_of(path: Path, name: str) -> bool:
    """Return whether an export wrote the file ``path``; it may be any file."""
    try:
        if not path.is_file():
            return False
        with zipfile.ZipFile(path) as file, file.open(f"{name}/{MANIFEST}") as manifest:
            return manifest_in(manifest.read(MAX_MANIFEST_BYTES)) is not None
    except (OSError, KeyError, ValueError, RuntimeError, EOFError, zipfile.BadZipFile, zlib.error):
        return False


def _write_all(copies: Sequence[Written], folder: Path) -> None:
    """Write all copies beside their places, then move them there."""
    is_new = not os.path.lexists(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder):
            _write_locked(copies, folder)
    except OSError as error:
        raise CopyError(f"the folder {folder} cannot be written: {error.strerror or error}") from error
    finally:
        if is_new:
            with contextlib.suppress(OSError):  # it has copies, or could not be made
                folder.rmdir()


def _write_locked(copies: Sequence[Written], folder: Path) -> None:
    """Write copies into a folder that no other process changes."""
    try:
        for copy, target in copies:
            staged = staging(folder, target.name)
            if target.name == copy.name:
                write_folder(copy, staged)
            else:
                staged.mkdir()
                (staged / target.name).write_bytes(archive_bytes(copy))
                (staged / target.name).chmod(_FILE_MODE)
        for copy, target in copies:
            if target.name == copy.name:
                replace_with_staged(folder, target.name)
            else:
                (staging(folder, target.name) / target.name).replace(target)
    finally:
        for _, target in copies:
            discard(folder, target.name)


def write_folder(copy: SkillCopy, home: Path) -> None:
    """Write the files of a copy into the folder ``home``, with fixed permissions."""
    for name, data in copy.files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(_mode(data))
    for folder in {home, *(path for path in home.rglob("*") if path.is_dir())}:
        folder.chmod(_FOLDER_MODE)


def _mode(data: bytes) -> int:
    """Return the permissions of a file: one that names its interpreter can be executed."""
    return _PROGRAM_MODE if data.startswith(b"#!") else _FILE_MODE
