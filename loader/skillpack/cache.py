"""What was read of a SKILL.md, kept on disk for as long as the file's status stays the same.

A cache only saves time: whatever is wrong with it (missing, cut short, written by another version, not private), the
skills are read as if it were not there. One JSON file a root, replaced as a whole, so that of several writers at once
the last one wins and no reader sees half a file. It lies in the user's own cache folder and never in a folder with
skills, and is not read when somebody else could have written it.
"""

# Paths stay strings: a scan handles tens of thousands of them, and Path objects would cost as much as the parsing.
# ruff: noqa: PTH100, PTH103, PTH105, PTH108, PTH111, PTH116, PTH117, PTH118, PTH120, PTH123

from __future__ import annotations

import contextlib
import json
import os
import stat
import sys
import time
import zlib
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skillpack.skill import Skill

DIRECTORY_VARIABLE = "SKILLPACK_CACHE_DIR"
SETTLED_SECONDS = 2.0  # the coarsest clock of a file system in use (FAT): a younger file may change without showing it
MAX_ROOTS = 64
_MAX_BYTES = 1 << 28
_MAGIC = b"skillpack-cache "
_PARSERS = ("files.py", "frontmatter.py", "skill.py", "strict_yaml.py", "cache.py")
_Stamp = list[int]


def default_directory() -> str | None:
    """Return where caches are kept, or None when that is switched off or there is no such place.

    ``SKILLPACK_CACHE_DIR``, if it is set (empty: no cache); else the user's cache folder of the system.
    """
    named = os.environ.get(DIRECTORY_VARIABLE)
    if named is not None:
        return os.path.abspath(named) if named else None
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA", "")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME", "")
        if not os.path.isabs(base):  # the XDG specification has relative ones ignored
            base = os.path.expanduser("~/.cache")
    return os.path.join(base, "skillpack") if os.path.isabs(base) else None


class ScanCache:
    """What is remembered of skills, by root.

    Args:
        directory: Where it is kept between processes; None keeps it in memory only.
    """

    def __init__(self, directory: str | None) -> None:
        self.directory = directory
        self._roots: dict[str, RootCache] = {}

    def of_root(self, root: str) -> RootCache:
        """Return what is remembered of the skills below ``root``, an absolute path."""
        known = self._roots.get(root)
        if known is None:
            directory = None if self.directory is None or _holds(root, self.directory) else self.directory
            known = self._roots[root] = RootCache(root, directory)
        return known

    def problem(self) -> str | None:
        """Return why nothing is kept on disk, or None."""
        if self.directory is None:
            return "switched off"
        return _privacy_problem(self.directory)


class RootCache:
    """What is remembered of the skills below one root. One scan at a time: ``begin``, ``get``/``put``, ``end``."""

    def __init__(self, root: str, directory: str | None) -> None:
        self._root = root
        self._directory = directory
        self._known: dict[str, tuple[_Stamp, dict[str, Any], list[str]]] = {}
        self._loaded = directory is None
        self._seen: dict[str, Any] = {}
        self._changed = False
        self._settled = 0.0

    def begin(self) -> None:
        """Begin a scan."""
        if not self._loaded:
            self._known = self._load()
            self._loaded = True
        self._seen = {}
        self._changed = False
        self._settled = (time.time() - SETTLED_SECONDS) * 1e9

    def get(self, folder: str, status: os.stat_result) -> tuple[dict[str, Any], list[str]] | None:
        """Return fields and repairs of the skill in ``folder``, if its SKILL.md still has the same status."""
        key = folder[len(self._root) :]
        known = self._known.get(key)
        if known is None or known[0] != [status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]:
            return None
        self._seen[key] = known
        return known[1], known[2]

    def put(self, skill: Skill, status: os.stat_result) -> None:
        """Remember a skill that was read from a file of this status, unless the file is too young to tell a change."""
        if max(status.st_mtime_ns, status.st_ctime_ns) < self._settled:
            stamp = [status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]
            self._seen[skill.dir[len(self._root) :]] = (stamp, dict(skill.fields), list(skill.repairs))
            self._changed = True

    def end(self) -> None:
        """End the scan: forget what was not seen, and write down what is new."""
        changed = self._changed or len(self._seen) != len(self._known)
        self._known, self._seen = self._seen, {}
        if changed and self._directory is not None:
            with contextlib.suppress(OSError):  # a full disk, a read-only home: the next scan reads the skills again
                self._save(self._directory)

    def _file(self, directory: str) -> str:
        """Return the file for this root."""
        import hashlib

        name = hashlib.sha256(os.fsencode(self._root)).hexdigest()[:32]
        return os.path.join(directory, f"{name}.json")

    def _load(self) -> dict[str, Any]:
        """Return what the file holds; nothing when it is not exactly what ``_save`` writes, here and now."""
        if self._directory is None or _privacy_problem(self._directory) is not None:
            return {}
        try:
            data = _read_private(self._file(self._directory))
        except OSError:
            return {}
        header, _, content = data.partition(b"\n")
        if header != _MAGIC + b"%08x" % zlib.crc32(content):
            return {}
        try:
            made_by, root, skills = json.loads(content)
        except (ValueError, TypeError, RecursionError):
            return {}
        if made_by != _fingerprint() or root != self._root or not isinstance(skills, dict):
            return {}
        return skills if all(map(_is_entry, skills.values())) else {}

    def _save(self, directory: str) -> None:
        """Replace the file."""
        os.makedirs(directory, mode=0o700, exist_ok=True)
        if _privacy_problem(directory) is not None:
            return
        try:
            content = json.dumps([_fingerprint(), self._root, self._known], separators=(",", ":")).encode("ascii")
        except (TypeError, ValueError):  # a folder's name or a field that JSON cannot hold
            return
        path = self._file(directory)
        beside = f"{path}.{os.getpid()}.{time.monotonic_ns():x}.tmp"
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            with open(descriptor, "wb") as file:
                file.write(_MAGIC + b"%08x\n" % zlib.crc32(content))
                file.write(content)
            os.replace(beside, path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(beside)
            raise
        _tidy(directory)


def _is_entry(entry: Any) -> bool:
    """Return whether a remembered skill has the shape of one."""
    return (
        type(entry) is list
        and len(entry) == 3
        and type(entry[0]) is list
        and type(entry[1]) is dict
        and type(entry[2]) is list
        and type(entry[1].get("name")) is str
        and type(entry[1].get("description")) is str
    )


def _fingerprint() -> list[Any]:
    """Return what the reading depends on: Python, the modules that read a SKILL.md, and PyYAML, as files."""
    here = os.path.dirname(os.path.abspath(__file__))
    files = [os.path.join(here, name) for name in _PARSERS]
    spec = PathFinder.find_spec("yaml")
    if spec is not None and spec.origin is not None:
        files.append(spec.origin)
    found: list[Any] = [sys.implementation.cache_tag]
    for path in files:
        with contextlib.suppress(OSError):  # imported from an archive
            status = os.stat(path)
            found.append([path, status.st_size, status.st_mtime_ns])
    return found


def _holds(root: str, directory: str) -> bool:
    """Return whether ``directory`` lies in ``root``, where a stranger's pack could bring a cache along."""
    inner, outer = os.path.realpath(directory), os.path.realpath(root)
    return inner == outer or inner.startswith(outer.rstrip(os.sep) + os.sep)


def _privacy_problem(directory: str) -> str | None:
    """Return why a cache folder is not to be trusted, or None; one that does not exist yet is fine."""
    try:
        status = os.lstat(directory)
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"{directory} cannot be used: {error.strerror}"
    if not stat.S_ISDIR(status.st_mode):
        return f"{directory} is not a folder"
    return None if _is_private(status) else f"{directory} belongs to somebody else, or others may write to it"


def _is_private(status: os.stat_result) -> bool:
    """Return whether only this user can have written there; Windows keeps a user's folders apart itself."""
    return sys.platform == "win32" or (status.st_uid == os.geteuid() and not status.st_mode & 0o022)


def _read_private(path: str) -> bytes:
    """Return the content of a file that only this user can have written.

    Raises:
        OSError: If it is not there, is something else, or too large.
    """
    flags = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with open(os.open(path, flags | getattr(os, "O_BINARY", 0)), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or not _is_private(status) or status.st_size > _MAX_BYTES:
            raise OSError("not a cache of this user")
        return file.read()


def _tidy(directory: str) -> None:
    """Remove the caches of the roots used longest ago, beyond ``MAX_ROOTS``, and what killed writers left."""
    aged: list[tuple[float, str]] = []
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        aged.extend((entry.stat(follow_symlinks=False).st_mtime, entry.path) for entry in entries)
    old = [path for _, path in sorted(aged) if path.endswith(".json")][:-MAX_ROOTS]
    old += [path for changed, path in aged if path.endswith(".tmp") and changed < time.time() - 3600]
    for path in old:
        with contextlib.suppress(OSError):
            os.unlink(path)
