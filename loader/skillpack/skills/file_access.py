"""Read untrusted files (bounded size, never blocking, confined to a folder) and replace files atomically."""

import os
import stat
import sys

from skillpack.skills.exceptions import FileRefusedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

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
    kinds = (
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a FIFO"),
        (stat.S_ISCHR, "a character device"),
        (stat.S_ISBLK, "a block device"),
        (stat.S_ISSOCK, "a socket"),
    )
    return next((name for test, name in kinds if test(mode)), "a special file")


def replace_file(path: "Path", content: bytes) -> None:
    """Replace the content of ``path`` atomically: write ``.NAME.part`` in the same folder, then rename it.

    The part file is locked while it is written. If a writer was killed, the next one reuses its part file.

    Raises:
        OSError: If writing fails; the old content is kept.
    """
    part = path.with_name(f".{path.name}.part")
    with os.fdopen(_locked_part(part), "wb") as stream:
        try:
            stream.truncate(0)
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
            if sys.platform == "win32":  # an open file cannot be renamed there
                stream.close()
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


def _locked_part(part: "Path") -> int:
    """Return an open descriptor of the part file, after any other writer has finished."""
    while True:
        flags = os.O_WRONLY | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        descriptor = os.open(part, flags | _NO_FOLLOW, 0o666)
        try:
            if sys.platform != "win32":
                _wait_for_lock(descriptor)
            if os.path.samestat(os.fstat(descriptor), part.lstat()):
                return descriptor
        except FileNotFoundError:  # the writer that held the lock has renamed the file
            pass
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _wait_for_lock(descriptor: int) -> None:
    """Lock the open file, if the file system supports locks."""
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError:
        return
