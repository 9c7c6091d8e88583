"""Find the folders in which hosts look for skills; install copies of skills there, update and remove them."""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from skillpack.copies.skill_copy import MANIFEST, copy_of, manifest_in
from skillpack.copies.writing import (
    discard,
    installed_skill,
    installed_skills,
    locked,
    remove,
    replace_with_staged,
    staging,
    write_folder,
)
from skillpack.exceptions import CopyError, InstallError, RootError
from sturdy.near_names import did_you_mean, sentences

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from skillpack.copies.skill_copy import SkillCopy
    from skillpack.copies.writing import InstalledSkill
    from skillpack.skills.skill_md import Skill


_MAX_NAMED = 3  # files that a message names


class Copied(NamedTuple):
    """What was done with one skill in one folder.

    Attributes:
        action: ``installed``, ``updated``, ``unchanged``, ``kept`` (this pack does not have the skill) or ``removed``.
        name: Name of the skill.
        version: Its version now, or the one that was removed; "" if it has none.
        folder: Where it lies or lay.
        before: The version that it replaced; "" if there was none.
        notes: Notes for the user.
    """

    action: str
    name: str
    version: str
    folder: Path
    before: str = ""
    notes: tuple[str, ...] = ()


def install(skills: Iterable[Skill], roots: Sequence[Path], *, force: bool = False) -> list[Copied]:
    """Install skills into folders and return what was done; if one has a fault, nothing is changed.

    Args:
        skills: What to install.
        roots: The folders; those that do not exist are created.
        force: Whether installed skills are replaced although their files were edited.

    Raises:
        InstallError: With all reasons why nothing was installed; or if the file system fails in between, with what was
            done before.
    """
    copies, faults = _copies(skills)
    made: list[Path] = []
    faults += [fault for root in roots if (fault := _created(root, made))]
    try:
        _refuse(faults)
        with ExitStack() as stack:
            _lock(stack, roots)
            return _installed([(root, copy) for root in roots for copy in copies], force)
    except BaseException:
        for folder in reversed(made):
            with suppress(OSError):  # it is not empty
                folder.rmdir()
        raise


def update(skills: Mapping[str, Skill], roots: Sequence[Path], names: Sequence[str], *, force: bool) -> list[Copied]:
    """Install the skills in folders anew and return what was done; if one has a fault, nothing is changed.

    Args:
        skills: The skills of this pack by name. Others stay as they are.
        roots: The folders.
        names: Which skills to update; all that are installed there if empty.
        force: Whether skills are replaced although their files were edited.

    Raises:
        InstallError: With all reasons why nothing was updated, such as a name that is not installed; or if the file
            system fails in between, with what was done before.
    """
    with ExitStack() as stack:
        found, faults = _chosen(stack, roots, names)
        faults += [f"{name}: this pack has no such skill" for name in names if name not in skills]
        copies, more = _copies(skills[name] for name in sorted({one.name for one in found} & skills.keys()))
        _refuse(faults + more)
        by_name = {copy.name: copy for copy in copies}
        kept = [Copied("kept", one.name, one.version, one.folder) for one in found if one.name not in by_name]
        jobs = [(one.folder.parent, by_name[one.name]) for one in found if one.name in by_name]
        return [*_installed(jobs, force), *kept]


def uninstall(roots: Sequence[Path], names: Sequence[str], *, force: bool) -> list[Copied]:
    """Remove installed skills from folders and return what was done; if one has a fault, nothing is changed.

    Args:
        roots: The folders.
        names: Which skills to remove; all that were installed there if empty.
        force: Whether skills are removed with files that were edited or added.

    Raises:
        InstallError: With all reasons why nothing was removed; or if the file system fails in between, with what was
            done before.
    """
    with ExitStack() as stack:
        found, faults = _chosen(stack, roots, names)
        if not force:
            edited = [(one, [*one.edited, *one.added]) for one in found]
            kept = [_not_as_installed(one, files) for one, files in edited if files]
            faults += [f"{fault}; --force removes it anyway" for fault in kept]
        _refuse(faults)
        outcomes: list[Copied] = []
        try:
            for one in found:
                remove(one.folder.parent, one.name)
                outcomes.append(Copied("removed", one.name, one.version, one.folder))
        except OSError as error:
            raise InstallError([_failure(error.filename, "removed", error, outcomes)]) from error
        return outcomes


def _copies(skills: Iterable[Skill]) -> tuple[list[SkillCopy], list[str]]:
    """Return the copies of skills, and why others cannot be copied."""
    faults: list[str] = []
    made = [_copy(skill, faults) for skill in skills]
    return [copy for copy in made if copy is not None], faults


def _copy(skill: Skill, faults: list[str]) -> SkillCopy | None:
    try:
        return copy_of(skill)
    except CopyError as error:
        faults.append(str(error))
        return None


def _refuse(faults: list[str]) -> None:
    """Raise an exception with all faults, if there is any."""
    if faults:
        raise InstallError(faults)


def _created(root: Path, made: list[Path]) -> str:
    """Create a folder for skills, add new folders to ``made`` and return why it cannot be used, or ""."""
    missing = [folder for folder in (root, *root.parents) if not os.path.lexists(folder)]
    try:
        root.mkdir(parents=True, exist_ok=True)
        made += reversed(missing)
        if not os.access(root, os.R_OK | os.W_OK | os.X_OK):
            return f"{root} cannot be written: Permission denied"
    except OSError as error:
        made += [folder for folder in reversed(missing) if os.path.lexists(folder)]
        reason = "it is a link to a folder that does not exist" if _dangles(root) else error.strerror or error
        return f"{root} cannot be created: {reason}"
    return ""


def _dangles(path: Path) -> bool:
    """Return whether a path, or a folder above it, is a link to nothing."""
    places = [place for place in (path, *path.parents) if os.path.lexists(place)]
    return any(not os.path.lexists(os.path.realpath(place)) for place in places)


def _lock(stack: ExitStack, roots: Iterable[Path]) -> None:
    """Keep other processes from changing these folders until ``stack`` is closed."""
    try:
        for root in sorted(roots):
            stack.enter_context(locked(root))
    except OSError as error:
        raise InstallError([f"{error.filename} cannot be changed: {error.strerror or error}"]) from error


def _chosen(stack: ExitStack, roots: Iterable[Path], names: Sequence[str]) -> tuple[list[InstalledSkill], list[str]]:
    """Lock folders; return the installed skills that were named, or all, and a fault for each that is not installed."""
    present = [root for root in roots if root.is_dir()]
    _lock(stack, present)
    everything = [one for root in present for one in installed_skills(root)]
    found = {one.name for one in everything}
    lost = [f"{name}: not installed by skillpack in these folders" for name in names if name not in found]
    return [one for one in everything if not names or one.name in names], lost


def _installed(jobs: Sequence[tuple[Path, SkillCopy]], force: bool) -> list[Copied]:
    """Write copies into folders: all of them are staged before the first one is put in place."""
    present = [installed_skill(root / copy.name) for root, copy in jobs]
    faults = [_fault(root, copy, one, force) for (root, copy), one in zip(jobs, present, strict=True)]
    _refuse([fault for fault in faults if fault])
    planned = [_outcome(root, copy, one) for (root, copy), one in zip(jobs, present, strict=True)]
    writing = [job for job, outcome in zip(jobs, planned, strict=True) if outcome.action != "unchanged"]
    done: list[Copied] = []
    try:
        for root, copy in writing:
            _stage(root, copy, installed_skill(root / copy.name))
        for root, copy in writing:
            replace_with_staged(root, copy.name)
            done.append(next(one for one in planned if one.folder == root / copy.name))
    except OSError as error:
        raise InstallError([_failure(error.filename or root, "written", error, done)]) from error
    finally:
        for root, copy in writing:
            discard(root, copy.name)
    return planned


def _failure(place: object, what: str, error: OSError, done: Sequence[Copied]) -> str:
    """Return what failed in the middle, and what was done before it."""
    before = "; ".join(f"{one.action} {one.folder}" for one in done) or "nothing"
    return f"{place} cannot be {what}: {error.strerror or error} (done before: {before})"


def _fault(root: Path, copy: SkillCopy, present: InstalledSkill | None, force: bool) -> str:
    """Return why a copy must not be put into a folder, or ""."""
    place = root / copy.name
    if present is None:
        kind = "a link" if place.is_symlink() else "there"
        return f"{place} is {kind}, and skillpack did not install it; move it away" if os.path.lexists(place) else ""
    clashes = sorted(set(present.added) & copy.files.keys())
    if clashes:
        return f"{place}: {_some(clashes)} would be overwritten, and skillpack did not install it; move it away"
    if force:
        return ""
    origin = (manifest_in(copy.files[MANIFEST]) or {}).get("distribution") or ""
    if present.distribution != origin:
        return f"{place} is from {present.distribution or 'no distribution'}, not from {origin}; --force replaces it"
    return f"{_not_as_installed(present, present.edited)}; --force overwrites them" if present.edited else ""


def _not_as_installed(skill: InstalledSkill, files: Sequence[str]) -> str:
    return f"{skill.folder} is not as it was installed: {_some(files)}"


def _some(files: Sequence[str]) -> str:
    """Return the first of some files, and how many more there are."""
    more = len(files) - _MAX_NAMED
    return ", ".join(files[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def _outcome(root: Path, copy: SkillCopy, present: InstalledSkill | None) -> Copied:
    """Return the outcome that writing a copy into a folder will have."""
    place = root / copy.name
    if present is None:
        return Copied("installed", copy.name, copy.version, place, "", copy.notes)
    same = not present.changed and (place / MANIFEST).read_bytes() == copy.files[MANIFEST]
    action = "unchanged" if same else "updated"
    return Copied(action, copy.name, copy.version, place, present.version, copy.notes)


def _stage(root: Path, copy: SkillCopy, present: InstalledSkill | None) -> None:
    """Write a copy beside its place, with the files that the user added to the skill that is there."""
    folder = staging(root, copy.name)
    write_folder(copy, folder)
    for path in present.added if present is not None else ():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / copy.name / path, target, follow_symlinks=False)


USER, PROJECT = "user", "project"
# Below the home folder (of a user's skills) and below the working folder (of a project's).
_FOLDERS = {
    "claude": ".claude/skills",
    "codex": ".agents/skills",
    "agents": ".agents/skills",
    "gemini": ".gemini/skills",
}
HOSTS = tuple(_FOLDERS)


class HostFolder(NamedTuple):
    """A folder of skills.

    Attributes:
        folder: Where it is.
        hosts: Those of the requested hosts that look there; empty for a folder given by its path.
        scope: ``user`` or ``project``; "" for a folder given by its path.
    """

    folder: Path
    hosts: tuple[str, ...] = ()
    scope: str = ""

    def __str__(self) -> str:
        """Return the folder, and whose it is."""
        return f"{self.folder} ({', '.join(self.hosts)}; {self.scope})" if self.hosts else str(self.folder)


def host_folders(wanted: tuple[str, ...], scopes: tuple[str, ...]) -> list[HostFolder]:
    """Return the folders of hosts, each once, also if several hosts share it or one is a link to another.

    Args:
        wanted: Names of hosts, or paths of folders; all known hosts if empty.
        scopes: ``user``, ``project`` or both; a folder given by its path has none.

    Raises:
        RootError: If a name is neither a host nor a folder; the message gives all such names.
    """
    unknown = [name for name in wanted if name not in _FOLDERS and not _is_path(name)]
    if unknown:
        raise RootError(sentences([*map(_not_a_host, unknown)]))
    found: dict[str, HostFolder] = {}
    for name in dict.fromkeys(wanted or HOSTS):
        for scope in scopes if name in _FOLDERS else ("",):
            folder = _place(name, scope)
            key = os.path.realpath(folder)
            known = found.get(key, HostFolder(folder, (), scope))
            hosts = (*known.hosts, name) if name in _FOLDERS else known.hosts
            found[key] = known._replace(hosts=tuple(dict.fromkeys(hosts)))
    return list(found.values())


def _place(name: str, scope: str) -> Path:
    """Return the folder of a host, or the one that a path names, as an absolute path."""
    if name not in _FOLDERS:
        if (expanded := os.path.expanduser(name)).startswith("~"):  # noqa: PTH111 - it raises no error
            raise RootError(f"{name!r}: no such user is known; write ./{name} to create a folder")
        return Path(os.path.abspath(expanded))  # noqa: PTH100 - a link stays a link
    if scope == PROJECT:
        return Path.cwd() / _FOLDERS[name]
    configured = os.environ.get("CLAUDE_CONFIG_DIR") if name == "claude" else None
    if configured:  # where Claude Code keeps what is otherwise in ~/.claude
        return Path(configured).absolute() / "skills"
    home = Path(os.path.expanduser("~") if os.environ.get("HOME") != "" else "")  # noqa: PTH111 - "~" without a home
    if not home.is_absolute():
        raise RootError("no home folder is known: set HOME to an absolute path, or choose --project or a folder")
    return home / _FOLDERS[name]


def _is_path(name: str) -> bool:
    """Return whether a name can only mean a folder."""
    is_there = name != "" and os.path.isdir(name)  # noqa: PTH112 - it raises no error for a long name
    return is_there or name.startswith(("~", ".")) or "/" in name or os.sep in name


def _not_a_host(name: str) -> str:
    hosts = ", ".join(HOSTS)
    hint = did_you_mean(name, HOSTS)
    return f"{name!r} is neither a host ({hosts}) nor a folder{hint}; write ./{name or 'NAME'} to create a folder"
