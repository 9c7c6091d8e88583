"""Keep a tool's work inside one folder: a test for paths, and a guard on the files that a tool's process opens.

A server checks the paths in a call's parameters before it starts a tool (``skillpack.execution.limits``). The guard
here covers what parameters do not show: links inside the folder, and paths that a file in it names. It sees what Python
code opens, lists, makes, renames and removes. It is no sandbox for hostile programs.
"""

from __future__ import annotations

import errno
import os
import sys
from contextlib import contextmanager
from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

VARIABLE = "SKILLPACK_CONFINE"  # the folder, for the tools that a server starts
REASON = "lies outside of the folder that this server works in"
_FOLLOWING = frozenset({"open", "os.listdir", "os.scandir", "os.mkdir", "os.truncate", "os.chmod"})
_NOT_FOLLOWING = frozenset({"os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink"})  # act on a link itself
_SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/opt", "/nix", "/System", "/Library")  # programs and their libraries
_DEVICES = ("/dev/null", "/dev/urandom", "/dev/random", "/proc/self", "/proc/cpuinfo", "/proc/meminfo")
_NEW = os.O_CREAT | os.O_EXCL


def is_inside(folder: str, path: str) -> bool:
    """Return whether ``path`` is ``folder`` or lies in it with every symbolic link resolved; it need not exist.

    A path with ``..`` after a link means one place to the system and another to programs that shorten the text; both
    places must lie in the folder. A relative path starts from the working folder.
    """
    return _within([os.path.realpath(folder)], _places(path))


def _places(path: str) -> set[str]:
    """Return the real places that ``path`` may mean; none if it cannot be a path."""
    try:
        return {os.path.realpath(path), os.path.realpath(os.path.abspath(path))}  # noqa: PTH100 - text, as opened
    except (OSError, ValueError):  # a loop of links, a NUL character
        return set()


def _within(homes: Iterable[str], places: set[str]) -> bool:
    """Return whether every place is one of the real folders ``homes`` or lies in one."""
    return bool(places) and all(
        any(place == home or place.startswith(home.rstrip(os.sep) + os.sep) for home in homes) for place in places
    )


@contextmanager
def confined(skill_dir: str | os.PathLike[str] | None = None) -> Iterator[None]:
    """Within the block, refuse to open files outside of the folder that ``SKILLPACK_CONFINE`` names, if it is set.

    A refused operation raises ``PermissionError``. Programs, libraries and caches stay readable, and new files can be
    made in the folder for temporary files.

    Args:
        skill_dir: Folder of the tool's skill, whose templates and schemas the tool reads.
    """
    global _guard  # noqa: PLW0603 - an audit hook cannot be removed, only left without a guard
    folder = os.environ.get(VARIABLE)
    if not folder or os.name != "posix":
        yield
        return
    if _guard is None:
        sys.addaudithook(_refuse_outside)
    _guard = _Guard(folder, skill_dir)
    try:
        yield
    finally:
        _guard.active = False


class _Guard:
    """What may be opened during one call."""

    def __init__(self, folder: str, skill_dir: str | os.PathLike[str] | None) -> None:
        here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
        home = os.environ.get("HOME") or "/nonexistent"
        caches = (f"{home}/.cache", os.environ.get("XDG_CACHE_HOME"), os.environ.get("NUMBA_CACHE_DIR"))
        skill = None if skill_dir is None else os.fspath(skill_dir)
        programs = (*sys.path, sys.prefix, sys.base_prefix, sys.exec_prefix, here, skill)
        temporary = (os.environ.get("TMPDIR"), os.environ.get("TEMP"), os.environ.get("TMP"), "/tmp", "/var/tmp")  # noqa: S108
        self.active = True
        self._roots = _real((folder, *programs, *caches, *_SYSTEM, *_DEVICES))
        self._temporary = _real(temporary)
        self._made: set[str] = set()

    def allows(self, event: str, path: str, flags: object) -> bool:
        """Return whether an operation on ``path`` may take place; temporary files that it makes are remembered."""
        places = _places(path)
        if places <= self._made:  # what this call made itself; also its removal
            return bool(places)
        if event in _NOT_FOLLOWING:
            path = os.path.dirname(os.path.abspath(path))  # noqa: PTH100, PTH120
            places = _places(path)
        if _within([*self._roots, *self._made], places):
            return True
        is_new = event == "os.mkdir" or (isinstance(flags, int) and flags & _NEW == _NEW)
        if is_new and _within(self._temporary, places):
            self._made |= places
            return True
        return False


@lru_cache(maxsize=16)
def _real(folders: tuple[str | None, ...]) -> tuple[str, ...]:
    """Return the real paths of folders at the first call: the new target of a link that is changed later is outside."""
    return tuple(dict.fromkeys(os.path.realpath(folder) for folder in folders if folder))


_guard: _Guard | None = None


def _refuse_outside(event: str, arguments: tuple[Any, ...]) -> None:
    if _guard is None or not _guard.active or (event not in _FOLLOWING and event not in _NOT_FOLLOWING):
        return
    if event in ("os.rename", "os.link"):
        paths = arguments[:2]
    else:
        paths = arguments[1:2] if event == "os.symlink" else arguments[:1]
    for path in paths:
        if isinstance(path, (str, bytes, os.PathLike)):
            text = os.fsdecode(path)
            if not _guard.allows(event, text, arguments[2] if event == "open" else None):
                raise PermissionError(errno.EACCES, REASON, text)
