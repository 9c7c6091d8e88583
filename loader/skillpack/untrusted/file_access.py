"""Read untrusted files (bounded size, never blocking, confined to a folder), and sanitize untrusted texts."""

import os
import re
import stat

from skillpack.exceptions import FileRefusedError

_OPEN_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NONBLOCK", 0)  # opening a FIFO must not wait for its writer
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_NOCTTY", 0)
)
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)


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
