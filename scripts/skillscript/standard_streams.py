"""Where the output of a program goes: the envelope alone to standard output, talk to standard error, calls to a log.

File descriptor 1 is redirected to standard error until the process ends. C++ code does not print through
``sys.stdout``, and the C library flushes its buffer only at exit; restoring the descriptor would print that text after
the envelope.

The call log has one JSON object per call and line, with the inputs and the result (S0.15). The file is given by
``--log FILE`` or the environment variable ``ANALOG_LAYOUT_LOG``. Lines of concurrent processes do not mix. If the log
cannot be written, a warning goes to standard error and the call succeeds.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress

from sturdy.atomic_files import lock, write_all

from .envelope import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, BinaryIO

    from .envelope import SkillResult

LOG_VARIABLE = "ANALOG_LAYOUT_LOG"


class EnvelopeStream:
    """The process's original standard output; only envelopes, ``--help`` and ``--schema`` are written to it.

    Attributes:
        was_closed: Whether the process was started with standard output closed.
    """

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor
        self._supervisor: int | None = None
        self.was_closed = descriptor is None

    def announce_on(self, descriptor: int) -> None:
        """From now on, report to the supervisor at the other end of ``descriptor`` which call is to be answered."""
        self._supervisor = descriptor

    def announce(self, call: Mapping[str, Any] | None) -> None:
        """Report to the supervisor that ``call`` (a ``RunningCall`` as fields) begins; ``None``: it is answered."""
        if self._supervisor is not None:
            write_all(self._supervisor, (json.dumps(call) + "\n").encode())

    def write_line(self, text: str) -> bool:
        """Write ``text`` and a newline as UTF-8; return whether standard output is still open.

        Raises:
            OSError: If writing fails for another reason than a closed pipe, such as a full disk.
        """
        self.announce(None)
        if self._descriptor is None:
            return False
        # A lone surrogate can only be inside a JSON string here, where its backslash form is the JSON escape.
        left = memoryview((text + "\n").encode("utf-8", "backslashreplace"))
        while left:
            try:
                left = left[os.write(self._descriptor, left) :]
            except BrokenPipeError:  # noqa: PERF203 - a few writes at most
                self._descriptor = None
                return False
            except BlockingIOError:
                from select import select

                select([], [self._descriptor], [])
        return True


def take_stdout() -> EnvelopeStream:
    """Return the original standard output, and from now on send everything else printed to standard error."""
    if sys.stdout is not None:
        sys.stdout.flush()
    # A descriptor that was closed at the start would otherwise be taken by the next file or pipe that is opened.
    closed = [number for number in (0, 1, 2) if not _is_open(number)]
    for number in closed:
        _point_at_null(number, os.O_RDONLY if number == 0 else os.O_WRONLY)
    descriptor = None if 1 in closed else os.dup(1)
    os.dup2(2, 1)
    if sys.stderr is None:  # closed at the start; what a handler prints is lost, but does not end it
        sys.stderr = os.fdopen(os.dup(2), "w", encoding="utf-8", errors="backslashreplace")
    sys.stdout = sys.stderr
    return EnvelopeStream(descriptor)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def print_error(text: str | None) -> None:
    """Print ``text`` to standard error, if there is any text and any standard error."""
    if text and sys.stderr is not None:
        with suppress(OSError):  # its reader is gone, or its disk is full
            sys.stderr.write(text.rstrip() + "\n")
            sys.stderr.flush()


def take_stdin() -> BinaryIO:
    """Return the original standard input; for everything else it is empty from now on."""
    descriptor = os.dup(0)
    _point_at_null(0, os.O_RDONLY)
    return os.fdopen(descriptor, "rb")


def _point_at_null(descriptor: int, flags: int) -> None:
    null = os.open(os.devnull, flags)
    if null != descriptor:
        os.dup2(null, descriptor)
        os.close(null)


def log_path(option: str | None) -> str | None:
    """Return the log file: the command line's ``option`` if given, else the one that the environment names."""
    return option or os.environ.get(LOG_VARIABLE) or None


def call_record(
    tool: str, version: str | None, params: Any, context: Any, result: SkillResult, **more: Any
) -> dict[str, Any]:
    """Return the log record of one call.

    Args:
        tool: Id of the tool called.
        version: Its version, ``None`` if that is not known.
        params: Parameters as received, before defaults.
        context: Context as received.
        result: The answer to the caller.
        **more: Further facts, of which those that are ``None`` are left out.
    """
    known = {name: value for name, value in more.items() if value is not None}
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "tool": tool,
        "version": version,
        "params": params,
        "context": context,
        "result": result.to_dict(),
        "duration_ms": result.duration_ms,
        **known,
    }


def append_record(path: str, record: dict[str, Any]) -> bool:
    """Append ``record`` to the log at ``path`` as one line; return whether it was written."""
    try:
        line = (to_json(record) + "\n").encode("utf-8", "backslashreplace")
    except (TypeError, ValueError, RecursionError):  # input that was refused for not being JSON
        record = {**record, "params": repr(record["params"]), "context": repr(record["context"])}
        line = (to_json(record) + "\n").encode("utf-8", "backslashreplace")
    try:
        # O_NONBLOCK: a named pipe without a reader is an error here; the call does not hang.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NONBLOCK", 0)
        descriptor = os.open(path, flags, 0o644)
        try:
            with suppress(OSError):  # a file system without locks, or a pipe: appended without one
                lock(descriptor)  # so that a line too long for one write stays whole
            write_all(descriptor, line)
        finally:
            os.close(descriptor)
    except OSError as error:
        print_error(f"warning: the call log {path} cannot be written: {error.strerror}")
        return False
    return True
