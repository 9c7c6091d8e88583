"""Find the skills below one or more folders, or those in which skills are searched by default.

If two skills have the same name, the one in the earlier root wins, and within a root the one whose path sorts first.
A faulty skill never hides another. No code of a skill is imported or executed.
"""

# Paths stay strings: a scan handles tens of thousands of them, and Path objects would cost as much as the parsing.
# ruff: noqa: PTH100, PTH110, PTH112, PTH120
from __future__ import annotations

import os
import stat
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from skillpack.exceptions import RootError, SkillFileError
from skillpack.skills.skill_md import DECLARATION_FILE, JSON_DECLARATION_FILE, SKILL_FILE, Skill, read_skill

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Literal

MAX_DEPTH = 5
MAX_FOLDERS = 20_000
_IGNORED = frozenset({"__pycache__", "node_modules"})
_TAIL = os.sep + SKILL_FILE
PATH_VARIABLE = "SKILLPACK_PATH"
PROJECT, USER, PACK = "@project", "@user", "@pack"
_HOST_FOLDERS = (".agents/skills", ".claude/skills")  # the common folder of all hosts, then that of Claude Code


class Skipped(NamedTuple):
    """A file or folder below a root that is not in the catalogue, and why.

    Attributes:
        path: The SKILL.md or folder.
        reason: What is wrong with it.
        level: "error" if a skill was left out, "info" if a folder was not searched.
    """

    path: str
    reason: str
    level: Literal["error", "info"] = "error"


class Shadowed(NamedTuple):
    """A usable skill that is hidden by another of the same name.

    Attributes:
        name: The common name.
        path: SKILL.md of the hidden skill.
        by: SKILL.md of the skill that is used.
    """

    name: str
    path: str
    by: str

    @property
    def reason(self) -> str:
        """Return why the skill is hidden, as a sentence."""
        return f"the name {self.name!r} is taken by {self.by}"


class Catalog(NamedTuple):
    """The usable skills by name, and everything that was left out.

    Attributes:
        skills: Usable skills in the order of their roots and paths.
        skipped: What was left out, with reasons.
        shadowed: Usable skills whose name was taken.
        roots: Absolute paths that were searched, highest precedence first.
        undescribed: Folders that declare tools but have no SKILL.md (also in ``skipped``), each as a skill without a
            description, named after its folder. The registry offers their tools; layer 1 does not list them.
    """

    skills: Mapping[str, Skill] = MappingProxyType({})
    skipped: tuple[Skipped, ...] = ()
    shadowed: tuple[Shadowed, ...] = ()
    roots: tuple[str, ...] = ()
    undescribed: tuple[Skill, ...] = ()

    @property
    def errors(self) -> tuple[Skipped, ...]:
        """Return the entries of ``skipped`` that are errors: each is a skill that was left out."""
        return tuple(entry for entry in self.skipped if entry.level == "error")


def scan(
    roots: Iterable[str | os.PathLike[str]],
    *,
    max_depth: int = MAX_DEPTH,
    max_folders: int = MAX_FOLDERS,
) -> Catalog:
    """Return the catalogue of every skill below ``roots``.

    A root may itself be a skill. Hidden folders and folders inside a skill are not searched.

    Args:
        roots: Folders to search, highest precedence first; a missing one is reported in ``skipped``.
        max_depth: Levels of folders below a root that are searched.
        max_folders: Maximum number of folders opened, all roots together.
    """
    search = _Search(max_depth, max_folders)
    for root in roots:
        search.root(os.path.abspath(root))
    found = Catalog(search.skills, tuple(search.skipped), tuple(search.shadowed), tuple(search.roots))
    return found._replace(undescribed=tuple(search.undescribed.values()))


class _Search:
    """The state of one scan."""

    def __init__(self, max_depth: int, max_folders: int) -> None:
        self.skills: dict[str, Skill] = {}
        self.skipped: list[Skipped] = []
        self.shadowed: list[Shadowed] = []
        self.roots: list[str] = []
        self.undescribed: dict[str, Skill] = {}
        self._max_depth = max_depth
        self._folders_left = max_folders
        self._full = False
        self._real_roots: set[str] = set()

    def root(self, path: str) -> None:
        """Search a root, unless it has already been searched under another path."""
        real = os.path.realpath(path)
        if real in self._real_roots:
            return
        self._real_roots.add(real)
        self.roots.append(path)
        if not os.path.isdir(path):
            self._skip(path, "the skills directory does not exist")
            return
        self._visit(path, 0)

    def _visit(self, folder: str, depth: int) -> None:
        """Add the skill in ``folder``, or search its subfolders if it is not a skill. Skip it if it is too deep."""
        if depth > self._max_depth:
            self._skip(folder, f"lies deeper than {self._max_depth} levels: not searched", "info")
            return
        if self._folders_left <= 0:
            if not self._full:
                self._skip(folder, "too many folders: this one and those after it were not searched")
            self._full = True
            return
        self._folders_left -= 1
        path = folder + _TAIL
        try:
            is_link = stat.S_ISLNK(os.lstat(path).st_mode)
        except FileNotFoundError:
            self._descend(folder, depth)
            return
        except OSError as error:
            self._skip(path, f"cannot be opened: {error.strerror}")
            return
        try:
            self._take(read_skill(path, folder, is_link=is_link))
        except FileNotFoundError:
            if is_link:  # otherwise it was deleted during the scan
                self._skip(path, "is a link to a file that does not exist")
        except SkillFileError as error:
            self._skip(path, str(error))

    def _take(self, skill: Skill) -> None:
        """Add a skill; if its name is taken, record which skill has it."""
        first = self.skills.setdefault(skill.name, skill)
        if first is not skill:
            self.shadowed.append(Shadowed(skill.name, skill.path, first.path))

    def _descend(self, folder: str, depth: int) -> None:
        """Search the subfolders of ``folder``, which is not a skill."""
        try:
            with os.scandir(folder) as entries:
                children = sorted(entries, key=attrgetter("name"))
        except OSError as error:
            self._skip(folder, f"cannot be listed: {error.strerror}")
            return
        for entry in children:
            if entry.name.startswith(".") or entry.name in _IGNORED:
                continue
            if entry.is_dir(follow_symlinks=False):
                self._visit(entry.path, depth + 1)
            elif entry.name.lower() == SKILL_FILE.lower():
                self._skip(entry.path, f"the file must be named {SKILL_FILE}")
            elif entry.name in {DECLARATION_FILE, JSON_DECLARATION_FILE}:
                self._skip(
                    entry.path, f"declares tools, but there is no {SKILL_FILE} beside it: agents do not see them"
                )
                self.undescribed[folder] = Skill(os.path.basename(folder), "", folder + _TAIL, folder)  # noqa: PTH119
            elif entry.is_symlink():
                self._follow(entry, depth + 1)

    def _follow(self, link: os.DirEntry[str], depth: int) -> None:
        """Visit the folder that a link points to, unless the link leads back to a folder above it."""
        if not os.path.exists(link.path):
            self._skip(link.path, "is a link to a folder that does not exist")
        elif _is_folder(link):
            if _leads_back(link.path):
                self._skip(link.path, "is a link back to a folder above it: not searched", "info")
            else:
                self._visit(link.path, depth)

    def _skip(self, path: str, reason: str, level: Literal["error", "info"] = "error") -> None:
        """Record a file or folder that is left out."""
        self.skipped.append(Skipped(path, reason, level))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Return whether ``entry`` is a folder or a link to one; False if the system cannot say."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def _leads_back(link: str) -> bool:
    """Return whether the folder that ``link`` points to contains the link."""
    target = os.path.realpath(link)
    home = os.path.realpath(os.path.dirname(link))
    return home == target or home.startswith(target.rstrip(os.sep) + os.sep)


def default_roots(explicit: Sequence[str | os.PathLike[str]] = ()) -> tuple[str, ...]:
    """Return the folders to scan, highest precedence first, from the first of these sources that is set.

    1. ``explicit``, the ``--skills-dir`` options in their order;
    2. the environment variable ``SKILLPACK_PATH``, a list separated as PATH is;
    3. the skills that come with this package.

    Three keywords name the existing folders in which hosts keep skills: ``@project`` for ``.agents/skills`` and
    ``.claude/skills`` in the working directory and in its parents up to the root of the repository, ``@user`` for the
    same folders in the home directory, ``@pack`` for the skills that come with this package. Skills of a project are
    untrusted, so they are searched only on request.

    Raises:
        RootError: If an explicit folder does not exist.
    """
    named = [os.fspath(folder) for folder in explicit]
    missing = [part for part in named if not _is_word(part) and not (part and Path(part).is_dir())]
    if missing:
        raise RootError(f"no such skills directory: {', '.join(part or repr(part) for part in missing)}")
    named = named or [part for part in os.environ.get(PATH_VARIABLE, "").split(os.pathsep) if part]
    return tuple(folder for part in named or [PACK] for folder in _expanded(part))


def project_roots(start: Path) -> list[str]:
    """Return the existing skill folders of a project, the nearest to ``start`` first.

    Args:
        start: Folder in the project; if it is not in a repository (``.git``), it is the only folder searched.
    """
    above = [start, *start.parents]
    top = next((folder for folder in above if (folder / ".git").exists()), start)
    return [root for folder in above[: above.index(top) + 1] for root in host_roots(folder)]


def host_roots(base: Path) -> list[str]:
    """Return the existing folders below ``base`` in which hosts keep skills."""
    return [str(base / name) for name in _HOST_FOLDERS if (base / name).is_dir()]


def _is_word(part: str) -> bool:
    """Return whether a part of the list is a keyword."""
    return part in {PROJECT, USER, PACK}


def _expanded(part: str) -> list[str]:
    """Return the folders that a part of the list names."""
    if part == PROJECT:
        return project_roots(Path.cwd())
    if part == USER:
        home = Path(os.path.expanduser("~"))  # noqa: PTH111 - unchanged if there is no home directory
        return host_roots(home) if home.is_absolute() else []
    return [bundled_root()] if part == PACK else [part]


def bundled_root() -> str:
    """Return the folder of the skills in this package: the copy in the wheel, or ``skills`` of the checkout."""
    package = Path(__file__).resolve().parents[1]
    bundled = package / "bundled_skills"
    return str(bundled if bundled.is_dir() else package.parents[1] / "skills")
