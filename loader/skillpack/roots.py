"""Where skills are looked for when nobody says where."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from skillpack.errors import RootError

if TYPE_CHECKING:
    from collections.abc import Sequence

PATH_VARIABLE = "SKILLPACK_PATH"


def default_roots(explicit: Sequence[str | os.PathLike[str]] = ()) -> tuple[str, ...]:
    """Return the folders to scan, highest precedence first, from the first of these that says anything.

    1. ``explicit``, the ``--skills-dir`` options in their order;
    2. the environment variable ``SKILLPACK_PATH``, a list separated as PATH is;
    3. the skills that come with this package.

    Raises:
        RootError: If an explicit folder does not exist.
    """
    missing = [os.fspath(folder) for folder in explicit if not Path(folder).is_dir()]
    if missing:
        raise RootError(f"no such skills directory: {', '.join(missing)}")
    if explicit:
        return tuple(os.fspath(folder) for folder in explicit)
    named = tuple(part for part in os.environ.get(PATH_VARIABLE, "").split(os.pathsep) if part)
    return named or (bundled_root(),)


def bundled_root() -> str:
    """Return the pack's own skills: the checkout's ``skills`` folder, or the copy inside the wheel."""
    package = Path(__file__).resolve().parent
    checkout = package.parent.parent
    if (checkout / "pyproject.toml").is_file() and (checkout / "skills").is_dir():
        return str(checkout / "skills")
    return str(package / "bundled_skills")
