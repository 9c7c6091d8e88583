"""Read untrusted files (bounded size, never blocking, confined to a folder), and sanitize untrusted texts.

``open_inside`` and ``write_inside`` stay below a folder even if another process changes links meanwhile. A path is
checked and then opened; between the two that process could replace a folder by a symbolic link that leads elsewhere.
Therefore each step of a path is opened relative to the step before and follows no link.
"""

# Descriptors and texts throughout: Path has no operations relative to an open folder.
# ruff: noqa: PTH118

from __future__ import annotations

import errno
import os
import re
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from skillpack.exceptions import FileRefusedError
from sturdy.atomic_files import replace_file

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_PATH = 1024  # bytes
MAX_NAME = 200  # bytes; leaves room for the name of a part file

_OPEN_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NONBLOCK", 0)  # opening a FIFO must not wait for its writer
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_NOCTTY", 0)
)
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_CLOSE = getattr(os, "O_CLOEXEC", 0)
_FILE = os.O_RDONLY | _CLOSE | _NO_FOLLOW | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_FOLDER = os.O_RDONLY | _CLOSE | _NO_FOLLOW | getattr(os, "O_DIRECTORY", 0)
_BY_DESCRIPTOR = os.open in os.supports_dir_fd and bool(_NO_FOLLOW)  # not on Windows
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?", re.IGNORECASE)  # devices of Windows
_REFUSED = re.compile(r'[\x00-\x1f\x7f<>:"|?*\\]')


def read_bounded(path: str, max_bytes: int, *, follow: bool = True) -> bytes:
    """Return the content of the regular file ``path``.

    Args:
        path: File to read.
        max_bytes: Maximum size. [bytes]
        follow: Whether to follow a symbolic link (check its target with ``inside`` first); a link is refused otherwise.

    Raises:
        FileNotFoundError: If the file does not exist, which is often not an error.
        FileRefusedError: If it is a folder, FIFO, device or socket, is unreadable or too large.
    """
    try:
        descriptor = os.open(path, _OPEN_FLAGS if follow else _OPEN_FLAGS | _NO_FOLLOW)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise FileRefusedError(f"cannot be opened: {error.strerror}") from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise FileRefusedError(f"is {_kind(status.st_mode)}, not a regular file")
        if status.st_size > max_bytes:
            raise FileRefusedError(f"has {status.st_size} bytes, more than the {max_bytes} allowed")
        return _read_all(descriptor, status.st_size, max_bytes)
    except OSError as error:
        raise FileRefusedError(f"cannot be read: {error.strerror}") from error
    finally:
        os.close(descriptor)


def inside(folder: str, path: str) -> bool:
    """Return whether ``path`` is inside ``folder`` once the links in both are resolved."""
    base = os.path.realpath(folder)
    return os.path.realpath(path).startswith(base.rstrip(os.sep) + os.sep)


def text_of(content: bytes) -> str | None:
    """Return content as text; None if it is not UTF-8, or contains NUL, which texts do not and binary formats do."""
    if b"\x00" in content:
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return None


def is_text_name(name: str) -> bool:
    """Return whether a file's name is Unicode text; on POSIX it may be any bytes."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


class FileExistsAlreadyError(FileRefusedError):
    """There is a file of that name, and it is not to be replaced."""


def name_fault(path: str) -> str | None:
    """Return why a relative path with forward slashes cannot be the name of a new file on every system, or None."""
    steps = path.split("/")
    try:
        size = len(path.encode())
        longest = max(len(step.encode()) for step in steps)
    except UnicodeEncodeError:
        return "is not Unicode text"
    if not path or size > MAX_PATH or longest > MAX_NAME:
        return f"must have 1 to {MAX_PATH} bytes, and at most {MAX_NAME} in each name"
    if {"", ".", ".."} & {*steps}:
        return "must be relative to the server's folder, with '/' between names and without '.' and '..'"
    if any(step.startswith(".") for step in steps):
        return "must not contain a hidden name, which begins with '.'"
    if any(_REFUSED.search(step) or step[-1] in ". " or _RESERVED.fullmatch(step) for step in steps):
        return "must not contain control characters, any of < > : \" | ? * \\, a name of a device, or end in '.' or ' '"
    return None


def open_inside(root: str, path: str) -> tuple[int, os.stat_result]:
    """Return a descriptor of the regular file ``path`` and its status. No step of the path may be a link.

    Args:
        root: Folder without links in its path.
        path: Path of the file relative to it.

    Raises:
        FileNotFoundError: If there is no such file.
        FileRefusedError: If it is not a regular file, a step is a link, or it is unreadable.
    """
    try:
        with _folder_of(root, path, make=False) as (folder, name):
            descriptor = os.open(name, _FILE, dir_fd=folder)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise FileRefusedError(_reason(error)) from error
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode):
        return descriptor, status
    os.close(descriptor)
    raise FileRefusedError("is not a regular file")


def write_inside(root: str, path: str, content: bytes, *, replace: bool) -> bool:
    """Write a file completely or not at all; return whether it is new. Missing folders are created.

    Args:
        root: Folder without links in its path.
        path: Path of the file relative to it, without a fault by ``name_fault``.
        content: The whole content.
        replace: Whether to replace a file of that name.

    Raises:
        FileExistsAlreadyError: If there is one that is not to be replaced.
        FileRefusedError: If something else has that name, a step is a link or a file, or writing fails.
    """
    try:
        with _folder_of(root, path, make=True) as (folder, name):
            is_new = _is_free(folder, name, replace=replace)
            try:
                replace_file(name, content, folder=folder, overwrite=replace)
            except FileExistsError as error:
                raise FileExistsAlreadyError("exists already") from error
            return is_new
    except OSError as error:
        raise FileRefusedError(_reason(error)) from error


@contextmanager
def _folder_of(root: str, path: str, *, make: bool) -> Iterator[tuple[int | None, str]]:
    """Yield the open folder of a file and the file's name in it; without descriptors, None and the whole path."""
    *folders, name = path.split("/")
    if not _BY_DESCRIPTOR:
        home = os.path.join(root, *folders)
        if make:
            os.makedirs(home, exist_ok=True)  # noqa: PTH103
        if not inside(root, os.path.join(home, name)):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        yield None, os.path.join(home, name)
        return
    descriptor = os.open(root, _FOLDER)
    try:
        for step in folders:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(step, dir_fd=descriptor)
            following = os.open(step, _FOLDER, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = following
        yield descriptor, name
    finally:
        os.close(descriptor)


def _is_free(folder: int | None, name: str, *, replace: bool) -> bool:
    """Return whether nothing has a name.

    Raises:
        FileExistsAlreadyError: If a file has it that is not to be replaced.
        FileRefusedError: If it is not a regular file.
    """
    try:
        mode = os.lstat(name, dir_fd=folder).st_mode
    except FileNotFoundError:
        return True
    if not stat.S_ISREG(mode):
        raise FileRefusedError("is a folder" if stat.S_ISDIR(mode) else "is not a regular file")
    if not replace:
        raise FileExistsAlreadyError("exists already")
    return False


def _reason(error: OSError) -> str:
    """Return the reason of a failure in words, without a path."""
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return "leads through a symbolic link or a file"
    return f"cannot be opened: {error.strerror}"


def _read_all(descriptor: int, size: int, max_bytes: int) -> bytes:
    """Read to the end of the file; ``size`` is its size by its status, so that one read is usually enough."""
    data = os.read(descriptor, size + 1)
    if len(data) <= size:
        return data
    while len(data) <= max_bytes and (chunk := os.read(descriptor, 1 << 16)):
        data += chunk
    if len(data) > max_bytes:
        raise FileRefusedError(f"has more than the {max_bytes} bytes allowed")
    return data


def _kind(mode: int) -> str:
    """Return the kind of file, with its article."""
    kinds = {
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a FIFO",
        stat.S_IFCHR: "a character device",
        stat.S_IFBLK: "a block device",
        stat.S_IFSOCK: "a socket",
    }
    return kinds.get(stat.S_IFMT(mode), "a special file")


CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]")
HIDING = re.compile(r"[\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")  # reorders text, or is visible to models only


def written_out(text: str) -> str:
    r"""Return ``text`` with control and hidden characters written as escape sequences, such as ``\x1b``."""
    return HIDING.sub(_escaped, CONTROL.sub(_escaped, text))


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


def one_line(text: str) -> str:
    """Return ``text`` on one line, with single spaces between words and without control and hidden characters."""
    return " ".join(CONTROL.sub(" ", HIDING.sub("", text)).split())
