"""Where skills are looked for when nobody says where."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from skillpack.skills.exceptions import RootError

if TYPE_CHECKING:
    from collections.abc import Sequence

PATH_VARIABLE = "SKILLPACK_PATH"
PROJECT, USER, PACK = "@project", "@user", "@pack"
_HOST_FOLDERS = (".agents/skills", ".claude/skills")  # every host's, then Claude Code's


def default_roots(explicit: Sequence[str | os.PathLike[str]] = ()) -> tuple[str, ...]:
    """Return the folders to scan, highest precedence first, from the first of these that says anything.

    1. ``explicit``, the ``--skills-dir`` options in their order;
    2. the environment variable ``SKILLPACK_PATH``, a list separated as PATH is;
    3. the skills that come with this package.

    Three words stand for folders where hosts keep skills, as far as they exist: ``@project`` for ``.agents/skills`` and
    ``.claude/skills`` of the working directory and those above it up to the repository's root, ``@user`` for the same
    of the home folder, ``@pack`` for the skills that come with this package. A project's skills are a stranger's until
    somebody trusts the project, so they are only looked for when asked.

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
        start: Folder in the project; without a repository (``.git``) around it, it is the project.
    """
    above = [start, *start.parents]
    top = next((folder for folder in above if (folder / ".git").exists()), start)
    return [root for folder in above[: above.index(top) + 1] for root in host_roots(folder)]


def host_roots(base: Path) -> list[str]:
    """Return the existing folders below ``base`` in which hosts keep skills."""
    return [str(base / name) for name in _HOST_FOLDERS if (base / name).is_dir()]


def _is_word(part: str) -> bool:
    """Return whether a part of the list stands for other folders."""
    return part in {PROJECT, USER, PACK}


def _expanded(part: str) -> list[str]:
    """Return the folders that one part of the list stands for."""
    if part == PROJECT:
        return project_roots(Path.cwd())
    if part == USER:
        home = Path("~").expanduser()  # stays as it is where there is no home
        return host_roots(home) if home.is_absolute() else []
    return [bundled_root()] if part == PACK else [part]


def bundled_root() -> str:
    """Return the pack's own skills: the checkout's ``skills`` folder, or the copy inside the wheel."""
    package = Path(__file__).resolve().parents[1]
    checkout = package.parent.parent
    if (checkout / "pyproject.toml").is_file() and (checkout / "skills").is_dir():
        return str(checkout / "skills")
    return str(package / "bundled_skills")
