"""What was read of a SKILL.md, kept on disk for as long as the file's status stays the same.

A cache only saves time: whatever is wrong with it (missing, cut short, written by another version, not private), the
skills are read as if it were not there. One file a root, replaced as a whole, so that of several writers at once
the last one wins and no reader sees half a file. It lies in the user's own cache folder and never in a folder with
skills, and is not read when somebody else could have written it.
"""

# Paths stay strings: a scan handles tens of thousands of them, and Path objects would cost as much as the parsing.
# ruff: noqa: PTH100, PTH103, PTH105, PTH108, PTH111, PTH116, PTH117, PTH118, PTH120, PTH123

from __future__ import annotations

import marshal
import os
import stat
import sys
import time
import zlib
from importlib.machinery import PathFinder

from skillpack.skills.skill_md import SKILL_FILE, Skill

TYPE_CHECKING = False  # what is imported here, every warm scan pays for: neither typing nor contextlib
if TYPE_CHECKING:
    from typing import TypeAlias

    Row: TypeAlias = tuple[int, str, str, str]  # stamp of the SKILL.md; name, description and rest of the ``Skill``
    Known: TypeAlias = dict[str, Row]  # by folder below the root

DIRECTORY_VARIABLE = "SKILLPACK_CACHE_DIR"
# A file younger than its clock's tick may change without showing it.
SETTLED_SECONDS = 2.0  # the coarsest clock of a file system in use (FAT)
FINE_SETTLED_SECONDS = 0.1  # a clock that shows parts of 10 ms: it goes with the kernel's tick of 1 to 10 ms
_COARSE_NS = 10_000_000
MAX_ROOTS = 64
_MAX_BYTES = 1 << 28
_TAIL = os.sep + SKILL_FILE
_HEADER_BYTES = 25
_PARSERS = ("files.py", "frontmatter.py", "skill_md.py", "strict_yaml.py", "cache.py")


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
    """What is remembered of the skills below one root."""

    def __init__(self, root: str, directory: str | None) -> None:
        self._root = root
        self._directory = directory
        self._known: Known | None = {} if directory is None else None

    def begin(self) -> RootScan:
        """Return a new scan of the root; several may be under way at the same time."""
        if self._known is None:
            self._known = self._load()
        return RootScan(self, self._root, self._known)

    def replace(self, known: Known) -> None:
        """Remember this instead, and write it down."""
        self._known = known
        if self._directory is None:
            return
        try:
            self._save(self._directory, known)
        except OSError:  # a full disk, a read-only home: the next scan reads the skills again
            return

    def _file(self, directory: str) -> str:
        """Return the file for this root; should another root ever have the same, its checksum tells."""
        path = os.fsencode(self._root)
        return os.path.join(directory, f"{zlib.crc32(path):08x}{zlib.adler32(path):08x}.skills")

    def _load(self) -> Known:
        """Return what the file holds; nothing when it is not exactly what ``_save`` writes, here and now.

        Marshal reads ten thousand skills in a third of the time of text. What somebody else may have written, another
        Python or another version of this module, never gets to it.
        """
        if self._directory is None or _privacy_problem(self._directory) is not None:
            return {}
        try:
            data = memoryview(_read_private(self._file(self._directory)))
            content = data[_HEADER_BYTES:]
            if data[:_HEADER_BYTES] != self._header(content):
                return {}
            known: Known = marshal.loads(content)  # noqa: S302 - the user's own, as .pyc files are
        except (OSError, ValueError, EOFError, TypeError):
            return {}
        return known

    def _save(self, directory: str, known: Known) -> None:
        """Replace the file."""
        os.makedirs(directory, mode=0o700, exist_ok=True)
        if _privacy_problem(directory) is not None:
            return
        content = marshal.dumps(known)
        path = self._file(directory)
        beside = f"{path}.{os.getpid()}.{time.monotonic_ns():x}.tmp"
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            with open(descriptor, "wb") as file:
                file.write(self._header(content))
                file.write(content)
            os.replace(beside, path)
        except OSError:
            _remove(beside)
            raise
        _tidy(directory)

    def _header(self, content: bytes | memoryview) -> bytes:
        """Return what stands before this content: a checksum of it, of its root and of what the reading depends on."""
        origin = zlib.crc32(f"{_fingerprint()}\n{self._root}".encode("utf-8", "surrogatepass"))
        return b"skillpack-cache %08x\n" % zlib.crc32(content, origin)


class RootScan:
    """One scan of a root: ``get`` and ``put`` for each skill, then ``end``."""

    def __init__(self, cache: RootCache, root: str, known: Known) -> None:
        self._cache = cache
        self._cut = len(root)
        self._known = known
        self._seen: Known = {}
        self._changed = False
        now = time.time()
        self._settled = (now - SETTLED_SECONDS) * 1e9
        self._fine_settled = (now - FINE_SETTLED_SECONDS) * 1e9

    def get(self, folder: str) -> Skill | None:
        """Return the skill in ``folder``, if its SKILL.md still has the status of the regular file it was."""
        below = folder[self._cut :]
        row = self._known.get(below)
        if row is None:
            return None
        path = folder + _TAIL
        try:
            status = os.lstat(path)
        except OSError:
            return None
        stamp, name, description, rest = row
        if stamp != _stamp(status):
            return None
        self._seen[below] = row
        return Skill(name, description, path, folder, rest)

    def put(self, skill: Skill, status: os.stat_result) -> None:
        """Remember a skill that was read from a file of this status, unless the file is too young to tell a change."""
        settled = self._fine_settled if status.st_mtime_ns % _COARSE_NS else self._settled
        if max(status.st_mtime_ns, status.st_ctime_ns) < settled:
            self._seen[skill.dir[self._cut :]] = (_stamp(status), skill.name, skill.description, skill.rest)
            self._changed = True

    def end(self) -> None:
        """Forget what was not seen, and remember what is new."""
        if self._changed or len(self._seen) != len(self._known):
            self._cache.replace(self._seen)


def _stamp(status: os.stat_result) -> int:
    """Return by what a changed file is told from the same one: a hash of numbers, the same in every process."""
    return hash((status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))


def _fingerprint() -> str:
    """Return what the reading depends on: Python, the modules that read a SKILL.md, and PyYAML, as files."""
    here = os.path.dirname(os.path.abspath(__file__))
    files = [os.path.join(here, name) for name in _PARSERS]
    spec = PathFinder.find_spec("yaml")
    if spec is not None and spec.origin is not None:
        files.append(spec.origin)
    return "\n".join([sys.version, *map(_file_state, files)])


def _file_state(path: str) -> str:
    """Return by what a changed module is told."""
    try:
        status = os.stat(path)
    except OSError:  # imported from an archive
        return path
    return f"{path} {status.st_size} {status.st_mtime_ns}"


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
    descriptor = os.open(path, flags | getattr(os, "O_BINARY", 0))
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or not _is_private(status) or status.st_size > _MAX_BYTES:
            raise OSError("not a cache of this user")
        return os.read(descriptor, status.st_size)
    finally:
        os.close(descriptor)


def _tidy(directory: str) -> None:
    """Remove the caches of the roots used longest ago, beyond ``MAX_ROOTS``, and what killed writers left."""
    try:
        with os.scandir(directory) as entries:
            aged = sorted((entry.stat(follow_symlinks=False).st_mtime, entry.path) for entry in entries)
    except OSError:  # another process tidies up
        return
    old = [path for _, path in aged if path.endswith(".skills")][:-MAX_ROOTS]
    old += [path for changed, path in aged if path.endswith(".tmp") and changed < time.time() - 3600]
    for path in old:
        _remove(path)


def _remove(path: str) -> None:
    """Remove a file, if it is still there and may be removed."""
    try:
        os.unlink(path)
    except OSError:
        return
