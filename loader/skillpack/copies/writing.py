"""Write copies of skills as folders or archives, each completely or not at all, and report later changes in them.

An interruption loses nothing. Beside the folder ``NAME`` there may be, for a moment or after one,
``.NAME.skillpack-new`` (being written), ``.NAME.skillpack-old`` (the folder that the new one replaces) and
``.NAME.skillpack-gone`` (being deleted).
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import shutil
import sys
import zipfile
import zlib
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from skillpack.copies.skill_copy import MANIFEST, MAX_FILE_BYTES, copy_of, manifest_in
from skillpack.exceptions import CopyError, FileRefusedError
from skillpack.untrusted.file_access import read_bounded
from sturdy.atomic_files import lock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from skillpack.copies.skill_copy import SkillCopy
    from skillpack.skills.skill_md import Skill

MAX_MANIFEST_BYTES = 4 << 20
_CACHES = frozenset({"__pycache__"})
_LOCK = ".py.lock"  # uv rewrites a script's lock when it resolves anew, as with UV_EXCLUDE_NEWER
ARCHIVE_SUFFIX = ".skill"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a ZIP file can state
_FILE_MODE, _PROGRAM_MODE, _FOLDER_MODE = 0o644, 0o755, 0o755


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
    listed = manifest.get("files")
    entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    digests = {str(entry.get("path")): str(entry.get("sha256")) for entry in entries}
    present = set(_files_in(place))
    changed = [path for path, digest in digests.items() if not _is_intact(place, path, digest, present)]
    added = present - digests.keys() - {MANIFEST}
    version, distribution = (str(manifest.get(key) or "") for key in ("version", "distribution"))
    return InstalledSkill(place, version, distribution, tuple(sorted(changed)), tuple(sorted(added)))


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
