"""Call a handler so that every outcome is one envelope."""

from __future__ import annotations

import errno
import re
import sys
from collections.abc import Mapping
from copy import deepcopy
from time import perf_counter

from sturdy.strict_json import WRAPPED, NotJsonError, path_text, plain

from .confinement import confined
from .envelope import (
    EXIT_CODES,
    ErrorCode,
    Fault,
    SkillError,
    SkillResult,
    fault_details,
    invalid_params,
    joined,
    own_codes,
    show,
)
from .schema import as_declared, fill_defaults, find_faults
from .standard_streams import print_error
from .tool import CONTEXT_SCHEMA

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Any

    from .tool import Tool

MAX_MESSAGE = 400  # characters of an unexpected exception's text that reach the caller
_WRAPPED_CONTEXT: dict[str, Any] = {"type": "object", "properties": {"context": CONTEXT_SCHEMA}}
_NO_CONTEXT: dict[str, Any] = fill_defaults({}, CONTEXT_SCHEMA)
_NO_ROOM = frozenset({errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)})  # Windows has no quotas
_ABSOLUTE_PATH = re.compile(r"(?<![\w.])(?:/[^\s/:'\"]+)+/([^\s/:'\"]+)")


class Stopped(BaseException):
    """The process received SIGTERM while it worked; like KeyboardInterrupt, it is not an ``Exception``."""


def call(
    tool: Tool,
    params: Any,
    context: Any = None,
    *,
    faults: Sequence[Fault] = (),
    log: str | None = None,
) -> SkillResult:
    """Return the result of one call. No exception leaves it, not even Ctrl-C.

    Args:
        tool: The tool to call.
        params: Parameters, a JSON object; validated strictly, then defaults are filled in. ``None`` beside ``faults``
            if they could not be read at all.
        context: Context object (S1.2) or ``None``; missing parts get their defaults.
        faults: Faults that the caller has found already, reported together with all others.
        log: File to append a call record to.
    """
    start = perf_counter()
    traceback = None
    try:
        data, violated = _executed(tool, params, context, faults)
        result = SkillResult.success(data, _milliseconds(start), violated=violated)
    except (Exception, KeyboardInterrupt, SystemExit, Stopped) as problem:  # noqa: BLE001 - the outermost boundary
        error, traceback = error_of(problem, own_codes(tool.output_schema))
        stopped = isinstance(problem, (KeyboardInterrupt, Stopped))
        result = SkillResult.failure(error, _milliseconds(start), stopped=stopped)
        print_error(traceback)
    if log is not None:
        from .standard_streams import append_record, call_record

        append_record(log, call_record(tool.id, tool.version(), params, context, result, traceback=traceback))
    return result


def error_of(problem: BaseException, own: Collection[str] = ()) -> tuple[SkillError, str | None]:
    """Return the error that an exception means, and its traceback if it was unexpected.

    An exception whose ``code`` is one of the ten codes, or of the tool's ``own``, is reported with its text,
    ``details`` and ``data``. Everything else is INTERNAL_ERROR with a message that shows no folder of this machine.
    """
    code = getattr(problem, "code", None)
    if isinstance(problem, Exception) and isinstance(code, str) and (code in EXIT_CODES or code in own):
        details, data = getattr(problem, "details", None), getattr(problem, "data", None)
        facts = details if isinstance(details, Mapping) else None
        if _is_lack_of_room(problem.__cause__):
            code = ErrorCode.SERVICE_UNAVAILABLE
        return SkillError(code, str(problem), facts, data if isinstance(data, Mapping) else None, own=own), None
    if isinstance(problem, Stopped):
        return SkillError(ErrorCode.TIMEOUT, "stopped by SIGTERM before the work was done"), None
    if isinstance(problem, KeyboardInterrupt):
        return SkillError(ErrorCode.INTERNAL_ERROR, "interrupted before the work was done"), None
    if isinstance(problem, TimeoutError):
        return SkillError(ErrorCode.TIMEOUT, _without_folders(str(problem)) or "timed out"), None
    if _is_lack_of_room(problem):
        return SkillError(ErrorCode.SERVICE_UNAVAILABLE, _without_folders(str(problem)), {"free": "disk space"}), None
    if isinstance(problem, UnicodeEncodeError) and problem.encoding in {"ascii", sys.getfilesystemencoding()}:
        shown = problem.object[:MAX_MESSAGE]
        text = f"{shown!r} cannot be the name of a file in the locale of this process; set PYTHONUTF8=1"
        return SkillError(ErrorCode.INVALID_PARAM, text, {"encoding": problem.encoding}), None
    if isinstance(problem, MemoryError):
        text = "there is not enough memory for this call; free memory, raise the limit of the process, or use less data"
        return SkillError(ErrorCode.SERVICE_UNAVAILABLE, text, {"free": "memory"}), None
    from .install import missing_requirement

    if (missing := missing_requirement(problem)) is not None:
        return missing, None
    from traceback import format_exception

    kind = type(problem).__name__
    if isinstance(problem, SystemExit):
        message = f"the tool tried to leave the process (exit {problem.code})"
    else:
        message = f"Unexpected error: {_without_folders(str(problem)) or kind}"
    return SkillError(ErrorCode.INTERNAL_ERROR, message, {"exception": kind}), "".join(format_exception(problem))


def _is_lack_of_room(problem: object) -> bool:
    """Return whether an error says that a disk is full, or that a file would exceed a quota or limit."""
    return isinstance(problem, OSError) and problem.errno in _NO_ROOM


def _executed(tool: Tool, params: Any, context: Any, known: Sequence[Fault]) -> tuple[dict[str, Any], bool]:
    """Return the handler's validated answer and whether it reports a violation."""
    if known and params is None:
        raise invalid_params(known)
    received, faults = _checked(params, tool.input_schema, list(known))
    surroundings = {"context": deepcopy(_NO_CONTEXT)}
    if context is not None and context != {}:
        surroundings, faults = _checked({"context": context}, _WRAPPED_CONTEXT, faults)
    reported = {fault.path for fault in known}
    faults = [*known, *(fault for fault in faults[len(known) :] if fault.path not in reported)]
    if faults:
        raise invalid_params(faults)
    with confined(tool.skill_dir):
        answer = tool.execute(received, surroundings["context"])
    if not isinstance(answer, dict):
        message = f"the tool answered a {type(answer).__name__}, not an object"
        raise SkillError(ErrorCode.INTERNAL_ERROR, message)
    try:
        data = plain(answer, WRAPPED)
    except NotJsonError as fault:
        raise SkillError(ErrorCode.INTERNAL_ERROR, f"the tool's answer is not JSON: {fault}") from None
    wrong = find_faults(data, tool.output_schema)
    if wrong:
        message = f"the tool's answer does not satisfy its output schema: {joined(wrong)}"
        raise SkillError(ErrorCode.INTERNAL_ERROR, message, fault_details(wrong))
    return data, tool.violates is not None and bool(tool.violates(data))


def _checked(value: Any, schema: dict[str, Any], faults: list[Fault]) -> tuple[Any, list[Fault]]:
    """Return ``value`` as plain JSON with defaults, and ``faults`` plus those found in it."""
    try:
        value = plain(value, WRAPPED)
    except NotJsonError as fault:
        who = f"'{path_text(fault.path)}'" if fault.path else "the input"
        return None, [*faults, Fault(path_text(fault.path), f"{who} {fault.reason}")]
    if not isinstance(value, dict):
        return None, [*faults, Fault("params", f"params must be an object, got {show(value)}", value, "object")]
    value = as_declared(value, schema)
    found = find_faults(value, schema)
    return (None if found else fill_defaults(value, schema)), [*faults, *found]


def _milliseconds(start: float) -> int:
    return round((perf_counter() - start) * 1000)


def _without_folders(text: str) -> str:
    shown = _ABSOLUTE_PATH.sub(r"\1", text)
    return shown if len(shown) <= MAX_MESSAGE else shown[:MAX_MESSAGE] + "..."


def stop_on_signals() -> None:
    """Turn the first SIGTERM into ``Stopped``, the first Ctrl-C into ``KeyboardInterrupt``, and ignore further ones.

    What is stopped has an envelope to write.
    """
    import signal

    def stop(number: int, _frame: object) -> None:
        for further in (signal.SIGTERM, signal.SIGINT):
            signal.signal(further, signal.SIG_IGN)
        raise Stopped if number == signal.SIGTERM else KeyboardInterrupt

    try:
        signal.signal(signal.SIGTERM, stop)
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, stop)
    except ValueError:  # not in the main thread: whoever runs this thread owns the signals
        return
