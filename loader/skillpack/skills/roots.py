"""The folders in which skills are searched by default."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from skillpack.exceptions import RootError

if TYPE_CHECKING:
    from collections.abc import Sequence

PATH_VARIABLE = "SKILLPACK_PATH"
PROJECT, USER, PACK = "@project", "@user", "@pack"
_HOST_FOLDERS = (".agents/skills", ".claude/skills")  # the common folder of all hosts, then that of Claude Code


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
