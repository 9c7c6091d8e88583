"""The record of a call in the call log (S0.15): every call once, also those that were refused, killed or crashed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from skillscript.call_log import append_record
from skillscript.envelope import ErrorCode

if TYPE_CHECKING:
    from skillpack.execution.runner import Call

MAX_STDERR = 4000  # characters of a failed tool's talk, which has its traceback
_UNEXPECTED = (ErrorCode.INTERNAL_ERROR, ErrorCode.KLAYOUT_ERROR, ErrorCode.TIMEOUT)


def log_call(path: str, tool_id: str, params: Any, context: Any, call: Call) -> None:
    """Append the record of ``call`` to the log at ``path``; a log that cannot be written fails no call.

    Args:
        path: The log file.
        tool_id: What the caller asked for.
        params: Parameters as given.
        context: Context as given.
        call: How it ended.
    """
    result = call.result
    record = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "tool": tool_id.partition("@")[0],
        "version": None if call.tool is None else call.tool.version,
        "params": params,
        "context": context,
        "result": result.to_dict(),
        "duration_ms": result.duration_ms,
        "warm": call.warm,
    }
    if call.migrated_from is not None:
        record["migrated_from"] = call.migrated_from
    if result.error is not None and result.error.code in _UNEXPECTED and call.stderr:
        record["stderr"] = call.stderr[-MAX_STDERR:]
    append_record(path, record)
