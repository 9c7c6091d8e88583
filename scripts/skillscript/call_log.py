"""The call log: one JSON object per call and line, with the inputs and the result (S0.15).

The file is given by ``--log FILE`` or the environment variable ``ANALOG_LAYOUT_LOG``. Lines of concurrent processes
do not mix. If the log cannot be written, a warning goes to standard error and the call succeeds.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress

from sturdy.atomic_files import lock, write_all

from .envelope import to_json
from .standard_streams import print_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .envelope import SkillResult

LOG_VARIABLE = "ANALOG_LAYOUT_LOG"


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
        _append(path, line)
    except OSError as error:
        print_error(f"warning: the call log {path} cannot be written: {error.strerror}")
        return False
    return True


def _append(path: str, line: bytes) -> None:
    # O_NONBLOCK: a named pipe without a reader is an error here; the call does not hang.
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, flags, 0o644)
    try:
        with suppress(OSError):  # a file system without locks, or a pipe: appended without one
            lock(descriptor)  # so that a line too long for one write stays whole
        write_all(descriptor, line)
    finally:
        os.close(descriptor)
