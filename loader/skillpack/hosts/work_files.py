"""The files that a server's tools work on: those a call made, listing, reading and uploading them.

With ``--directory`` these are the files of that folder. Without it they are the files of the folders that calls named
and wrote to, such as a workspace, and single files that calls wrote. Hidden files are not among them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import threading
import time
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from skillpack.exceptions import FileRefusedError
from skillpack.execution.limits import is_path, named_paths
from skillpack.untrusted.file_access import MAX_PATH, is_text_name, name_fault, open_inside, text_of, write_inside

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from skillpack.registry.declaration import ToolDeclaration

BYTES = "application/octet-stream"
_BY_SUFFIX = {
    ".csv": "text/csv",
    ".html": "text/html",
    ".json": "application/json",
    ".md": "text/markdown",
    ".png": "image/png",
    ".py": "text/x-python",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
}


def known_type(path: str) -> str | None:
    """Return the media type that the suffix of a file's name stands for; None for an unknown suffix."""
    return _BY_SUFFIX.get(os.path.splitext(path)[1].lower())  # noqa: PTH122


def media_type(path: str, content: bytes | None = None) -> str:
    """Return the media type of a file, from its name or else its content: plain text, or bytes."""
    known = known_type(path)
    if known is not None or content is None:
        return known or BYTES
    return "text/plain" if text_of(content) is not None else BYTES


# Paths stay strings: they are compared with texts of callers, and Path would shorten those.
# ruff: noqa: PTH118, PTH120, PTH206


MAX_MADE = 32  # files of one call that its answer links to
MAX_LISTED = 1000
MAX_USED = 256  # folders and files that calls used, without --directory
_MAX_VISITED = 20_000  # entries of folders that one listing looks at
_MAX_DEPTH = 16
_MAX_DIGESTS = 1024
_MADE_DEPTH = 2  # below a folder that a call names
_MADE_VISITED = 2000
_CLOCK_SLACK_S = 2.0  # the coarsest time stamps of a file system
_SCAN_SLACK_S = 0.05  # between the system's clock and file times; with more, files of the previous call would count
_digests: dict[tuple[int, ...], str] = {}  # of files as they are, by their identity


@dataclass(frozen=True, order=True)
class WorkFile:
    """One file.

    Attributes:
        path: Path from the server's folder, with forward slashes; absolute for a file elsewhere.
        size: [bytes]
    """

    path: str
    size: int

    @property
    def media_type(self) -> str | None:
        """The media type that its name stands for, None if that is unknown."""
        return known_type(self.path)


class OpenFile(contextlib.AbstractContextManager["OpenFile"]):
    """A file opened for reading; to be closed.

    Args:
        file: Its path and size.
        descriptor: Open for reading; closed with this object.
        status: Its status when it was opened.
    """

    def __init__(self, file: WorkFile, descriptor: int, status: os.stat_result) -> None:
        self.file = file
        self._stream = os.fdopen(descriptor, "rb", buffering=0)
        self._identity = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Close it."""
        self._stream.close()

    def chunk(self, start: int, size: int) -> bytes:
        """Return up to ``size`` bytes from byte ``start`` on; none at the end."""
        self._stream.seek(start)
        return self._stream.read(size) or b""

    @property
    def sha256(self) -> str:
        """The SHA-256 of the content, in hexadecimal digits; an unchanged file is read for it once."""
        known = _digests.get(self._identity)
        if known is None:
            digest, size = hashlib.sha256(), 0
            while chunk := self.chunk(size, 1 << 20):
                digest.update(chunk)
                size += len(chunk)
            known = digest.hexdigest()
            if time.time() - self._identity[-1] / 1e9 < _CLOCK_SLACK_S:  # it may change without another time stamp
                return known
            if len(_digests) >= _MAX_DIGESTS:
                _digests.clear()
            _digests[self._identity] = known
        return known

    def read(self, limit: int) -> bytes:
        """Return the content from the start.

        Raises:
            FileRefusedError: If it is longer. [bytes]
        """
        if self.file.size > limit:
            raise FileRefusedError(f"has {self.file.size} bytes; at most {limit} are read here")
        content = bytearray()
        while len(content) <= limit and (chunk := self.chunk(len(content), min(1 << 20, limit + 1 - len(content)))):
            content += chunk
        if len(content) > limit:
            raise FileRefusedError(f"grew beyond the {limit} bytes that are read here")
        return bytes(content)


class WorkFiles:
    """The files of one server.

    Args:
        folder: The server's folder, all of whose files are served; None if it has none.
    """

    def __init__(self, folder: str | None = None) -> None:
        self.base = os.path.realpath(folder or os.curdir)
        self.takes_uploads = folder is not None
        self._used: dict[str, None] = {}  # real paths of folders and files, the latest last
        self._lock = threading.Lock()

    def open(self, path: str) -> OpenFile:
        """Return an open file.

        Args:
            path: Path from the server's folder with forward slashes, or an absolute one.

        Raises:
            FileNotFoundError: If the server has no such file, or does not serve it.
            FileRefusedError: If it is not a regular file, or unreadable.
        """
        found = self._located(path)
        if found is None:
            raise FileNotFoundError(path)
        root, steps = found
        descriptor, status = open_inside(root, "/".join(steps))
        return OpenFile(WorkFile(self._name(os.path.join(root, *steps)), status.st_size), descriptor, status)

    def write(
        self, path: str, content: bytes, *, replace: bool, programs: tuple[str, ...] = (), closed: tuple[str, ...] = ()
    ) -> bool:
        """Write a file below the server's folder, completely or not at all; return whether it is new.

        Args:
            path: Relative path with forward slashes; missing folders are created.
            content: The whole content.
            replace: Whether to replace a file of that name.
            programs: Suffixes of files that may not be written, because tools would run them.
            closed: Folders into which nothing may be written.

        Raises:
            FileRefusedError: If the server accepts no files, the name is not allowed, or writing fails.
        """
        if not self.takes_uploads:
            raise FileRefusedError("this server accepts no files; to allow uploads, start it with --directory")
        fault = name_fault(path)
        if fault is not None:
            raise FileRefusedError(f"the path {path[:MAX_PATH]!r} {fault}")
        if path.lower().endswith(programs):
            text = "is a program, and this server accepts no programs; to allow them, start it with --allow-decks"
            raise FileRefusedError(f"the path {path!r} {text}")
        target = _comparable(os.path.join(self.base, path))
        if any(_is_below(target, _comparable(folder)) for folder in closed):
            text = "lies in a folder of skills, which are programs; to allow it, start the server with --allow-decks"
            raise FileRefusedError(f"the path {path!r} {text}")
        try:
            return write_inside(self.base, path, content, replace=replace)
        except FileRefusedError as error:
            raise type(error)(f"{path!r} {error}") from error

    def listing(self, under: str = "", limit: int = MAX_LISTED) -> tuple[list[WorkFile], bool]:
        """Return files sorted by path, and whether there are more than a listing holds. Links are not listed.

        Args:
            under: Folder, as in ``open``; "" for all.
            limit: Most files to return.
        """
        roots = [self.base] if self.takes_uploads else []
        with self._lock:
            roots += [used for used in self._used if not any(_is_below(used, root) for root in roots)]
        if under:
            found = self._located(under.rstrip("/") or under)
            roots = [] if found is None else [os.path.join(found[0], *found[1])]
        files: dict[str, WorkFile] = {}
        walk = _Walk(_MAX_DEPTH, _MAX_VISITED)
        for root in sorted(roots):
            for path, status in walk.files(root):
                name = self._name(path)
                files[name] = WorkFile(name, status.st_size)
        listed = sorted(files.values())
        return listed[:limit], walk.is_cut or len(listed) > limit

    def made(self, tool: ToolDeclaration, params: Mapping[str, Any], data: Any, since: float) -> list[WorkFile]:
        """Return the files that a call wrote: those that its answer names, and those in folders that the call names.

        They are served from then on. Left out are files that the call did not write, that lie outside of the server's
        folder and the folders that the call names, and links.

        Args:
            tool: The tool that was called.
            params: Parameters of the call.
            data: Its answer's data.
            since: When the call began. [s, as time.time]
        """
        named = list(_paths_in(data)) if isinstance(data, dict) else []
        writes = not tool.entry.get("annotations", {}).get("read_only", False)
        if not isinstance(data, dict) or not (named or writes):
            return []
        near = (_folder_near(item.path) for item in named_paths(tool, params))
        folders = {folder for folder in near if folder is not None}
        homes = [self.base, *(folder for folder, _ in folders)]
        found: dict[str, int] = {}
        for path in named:
            status = _written(path, since)
            real = os.path.realpath(path) if status is not None else ""
            if status is not None and any(_is_below(real, home) and home != os.sep for home in homes):
                found.setdefault(real, status.st_size)
                self._use(real)
        for folder in sorted(folder for folder, is_named in folders if is_named and writes):
            self._collect(folder, since - _SCAN_SLACK_S, found)
        offered = [WorkFile(self._name(real), size) for real, size in found.items() if self._root_of(real) is not None]
        return offered[:MAX_MADE]

    def _collect(self, folder: str, since: float, found: dict[str, int]) -> None:
        """Add the files of a folder that were written since then; a folder with any is served from then on."""
        walk = _Walk(_MADE_DEPTH, _MADE_VISITED)
        written = sorted((path, status) for path, status in walk.files(folder) if status.st_mtime >= since)
        for path, status in written[:MAX_MADE]:
            found.setdefault(path, status.st_size)
        if written or any(_is_below(path, folder) for path in found):
            self._use(folder)

    def _use(self, path: str) -> None:
        """Serve a folder or file from now on; the one that was used longest ago is dropped if there are many."""
        if self.takes_uploads and _is_below(path, self.base):
            return
        with self._lock:
            self._used.pop(path, None)
            self._used[path] = None
            while len(self._used) > MAX_USED:
                del self._used[next(iter(self._used))]

    def _located(self, path: str) -> tuple[str, list[str]] | None:
        """Return the folder that is served and the steps below it to a real path; None for what is not served."""
        steps = path.removeprefix("/").split("/")
        if {"", ".", ".."} & {*steps} or len(path) > MAX_PATH or (os.sep != "/" and os.sep in path):
            return None
        if any(step.startswith(".") for step in steps) and not path.startswith("/"):
            return None
        try:
            real = os.path.realpath(os.path.join(self.base, path))
        except (OSError, ValueError):  # a NUL character, a loop of links
            return None
        root = self._root_of(real)
        if root is None:
            return None
        home = os.path.dirname(real) if real == root else root
        return home, os.path.relpath(real, home).split(os.sep)

    def _root_of(self, real: str) -> str | None:
        """Return the folder or file through which a real path is served; None if it is not, or is hidden below it."""
        with self._lock:
            roots = [self.base] if self.takes_uploads else []
            roots += self._used
        for root in roots:
            if _is_below(real, root) and not any(step.startswith(".") for step in real[len(root) :].split(os.sep)):
                return root
        return None

    def _name(self, real: str) -> str:
        """Return the path by which callers name a file."""
        below = _is_below(real, self.base)
        return (os.path.relpath(real, self.base) if below else real).replace(os.sep, "/")


class _Walk:
    """Looks at a limited number of entries of folders.

    Attributes:
        is_cut: Whether there were more.
    """

    def __init__(self, depth: int, visited: int) -> None:
        self.is_cut = False
        self._depth = depth
        self._left = visited

    def files(self, root: str) -> Iterator[tuple[str, os.stat_result]]:
        """Yield the regular files below a folder, or the file itself; no hidden ones and no links."""
        waiting = [(root, 0)]
        while waiting:
            folder, depth = waiting.pop(0)
            try:
                with os.scandir(folder) as entries:
                    known = list(islice(entries, self._left + 1))
            except OSError as error:
                if isinstance(error, NotADirectoryError) and (status := _written(folder, 0)) is not None:
                    yield folder, status
                continue
            self.is_cut |= len(known) > self._left
            self._left -= min(len(known), self._left)
            for entry in sorted(known, key=lambda entry: entry.name):
                if entry.name.startswith(".") or not is_text_name(entry.name):
                    continue
                try:
                    if entry.is_dir(follow_symlinks=False):
                        if depth < self._depth:
                            waiting.append((entry.path, depth + 1))
                        else:
                            self.is_cut = True
                    elif entry.is_file(follow_symlinks=False):
                        yield entry.path, entry.stat(follow_symlinks=False)
                except OSError:  # removed meanwhile
                    continue


def _paths_in(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield the paths in an answer: fields with the name of a path, and those in ``files``."""
    for name, value in data.items():
        if isinstance(value, str) and is_path({}, name):
            yield value
    files = data.get("files")
    if isinstance(files, (dict, list)):
        values = files.values() if isinstance(files, dict) else files
        yield from islice((value for value in values if isinstance(value, str)), MAX_MADE)


def _written(path: str, since: float) -> os.stat_result | None:
    """Return the status of a regular file that was written since then, else None; whole seconds are coarse stamps."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return None
    slack = _SCAN_SLACK_S if status.st_mtime_ns % 1_000_000_000 else _CLOCK_SLACK_S
    return status if stat.S_ISREG(status.st_mode) and status.st_mtime >= since - slack else None


def _folder_near(path: str) -> tuple[str, bool] | None:
    """Return the real folder that a path names, or that the file it names lies in, and which of the two it is."""
    try:
        real = os.path.realpath(path)
    except (OSError, ValueError):
        return None
    is_named = os.path.isdir(real)  # noqa: PTH112
    folder = real if is_named else os.path.dirname(real)
    return None if folder == os.path.dirname(folder) else (folder, is_named)


def _is_below(path: str, folder: str) -> bool:
    """Return whether a real path is a folder or lies in it."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _comparable(path: str) -> str:
    """Return the real path in one case: some file systems do not tell ``Skills`` from ``skills``."""
    return os.path.realpath(path).casefold()
