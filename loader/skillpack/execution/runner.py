"""Call tools in separate processes: a hang, a crash or invalid output becomes an envelope.

First the tool and version that a call means are found, and its parameters are checked.
"""

from __future__ import annotations

import contextlib
import json
import signal
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skillpack.exceptions import MigrationError, VersionError
from skillpack.execution.limits import CallLimits
from skillpack.execution.tool_process import Answer, ToolRequest, call_cold, call_warm, can_be_warm
from skillpack.execution.worker_pool import PoolClosedError, WorkerPool
from skillpack.registry.declaration import Tools
from skillpack.registry.migrations import SkillVersionManager, parse_version
from skillscript.envelope import (
    EXIT_DONE,
    EXIT_VIOLATES,
    ErrorCode,
    SkillError,
    SkillResult,
    fault_details,
    invalid_params,
    joined,
)
from skillscript.schema import as_declared, find_faults
from skillscript.standard_streams import append_record, call_record, log_path
from sturdy.bounded_run import MAX_STDOUT_BYTES, Cancellation
from sturdy.near_names import did_you_mean
from sturdy.strict_json import MAX_DEPTH, NotJsonError, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skillpack.registry.declaration import ToolDeclaration
    from sturdy.bounded_run import RunOutcome


DEFAULT_TIMEOUT_S = 300.0
MAX_STDERR = 4000  # characters of a failed tool's stderr in the call log; they hold its traceback
_UNEXPECTED = (ErrorCode.INTERNAL_ERROR, ErrorCode.KLAYOUT_ERROR, ErrorCode.TIMEOUT)


@dataclass(frozen=True)
class Choice:
    """The tool a call means.

    Attributes:
        tool: The tool in the version that answers.
        migrated_from: The older compatible version the caller named, or None.
    """

    tool: ToolDeclaration
    migrated_from: str | None = None


def choose(tools: Tools, name: str) -> Choice:
    """Return the tool that ``name`` means: ``id`` the latest, ``id@version`` that one or a later compatible one.

    Raises:
        SkillError: INVALID_PARAM if there is none.
    """
    tool_id, _, version = name.partition("@")
    versions = tools.versions(tool_id)
    if not versions:
        hint = did_you_mean(tool_id, tools.by_id)
        details = {"param_name": "tool", "provided_value": tool_id, "available": sorted(tools.by_id)}
        raise SkillError(ErrorCode.INVALID_PARAM, f"unknown tool {tool_id!r}{hint}", details)
    if not version:
        return Choice(versions[0])
    try:
        wanted = parse_version(version)
    except VersionError as error:
        raise SkillError(ErrorCode.INVALID_PARAM, str(error), {"param_name": "tool", "provided_value": name}) from error
    for tool in versions:
        if parse_version(tool.version) == wanted:
            return Choice(tool)
    compatible = SkillVersionManager().is_compatible
    for tool in versions:
        if compatible(version, tool.version) and parse_version(tool.version) > wanted:
            return Choice(tool, version)
    available = [tool.version for tool in versions]
    text = (
        f"tool {tool_id} has no version {version} or a later one compatible with it; available: {', '.join(available)}"
    )
    raise SkillError(
        ErrorCode.INVALID_PARAM, text, {"param_name": "tool", "provided_value": name, "available": available}
    )


def checked_params(choice: Choice, params: Any) -> dict[str, Any]:
    """Return the parameters as plain JSON, carried over from the version they were written for, and checked.

    Raises:
        SkillError: INVALID_PARAM with all faults at once.
    """
    tool = choice.tool
    try:
        value = plain(params)
        if choice.migrated_from is not None and isinstance(value, dict):
            known = SkillVersionManager({tool.id: tool.migrations})
            value = plain(known.migrate_params(value, choice.migrated_from, tool.version, tool.id))
    except NotJsonError as error:
        raise SkillError(ErrorCode.INVALID_PARAM, f"params: {error}") from error
    except MigrationError as error:
        raise SkillError(ErrorCode.INVALID_PARAM, str(error)) from error
    value = as_declared(value, dict(tool.input_schema))
    faults = find_faults(value, dict(tool.input_schema))
    if faults:
        raise invalid_params(faults)
    if not isinstance(value, dict):
        raise SkillError(ErrorCode.INVALID_PARAM, "params must be an object")
    return value


MAX_TIMEOUT_S = 1_000_000  # the system's calls that wait take 2^31 ms at most


def checked_timeout(seconds: float) -> float:
    """Return a duration that makes sense. [s]

    Raises:
        SkillError: INVALID_PARAM if it does not.
    """
    if not 0 < seconds <= MAX_TIMEOUT_S:
        text = f"timeout must be a positive number of seconds and at most {MAX_TIMEOUT_S}, got {seconds:g}"
        raise SkillError(ErrorCode.INVALID_PARAM, text)
    return seconds


@dataclass(frozen=True)
class Call:
    """A finished call.

    Attributes:
        result: What the tool answered, or what went wrong with it.
        stderr: The end of what it wrote to stderr.
        tool: The tool that was called; None if there is none.
        migrated_from: The older version the parameters were written for, if they had to be carried over.
        warm: Whether a process that answers several calls was used.
        left_out: Of a short answer, the fields that it lacks, and where the whole answer is; None if it is whole.
    """

    result: SkillResult
    stderr: str = ""
    tool: ToolDeclaration | None = None
    migrated_from: str | None = None
    warm: bool = False
    left_out: Mapping[str, Any] | None = None

    @property
    def envelope(self) -> dict[str, Any]:
        """Return ``{ok, error, data, duration_ms}``, and ``left_out`` if the data are not whole."""
        return self.result.to_dict() | ({} if self.left_out is None else {"left_out": dict(self.left_out)})

    @property
    def notes(self) -> tuple[str, ...]:
        """Return notes for the caller beside the envelope, in sentences."""
        if self.tool is None or self.migrated_from is None:
            return ()
        return (f"the parameters of {self.tool.id} {self.migrated_from} were carried over to {self.tool.version}",)


class Runner(contextlib.AbstractContextManager["Runner"]):
    """Calls tools by id, from any number of threads.

    Used as a context manager, or closed, it ends its warm processes; left alone, they end with this process.

    Args:
        tools: The tools that can be called: what ``find_tools`` found, or a mapping by id.
        timeout: Longest duration of a call unless the call says otherwise. [s]
        warm: Whether processes of tools that can answer several calls are kept for the next; else each call starts one.
        pool: Where they are kept. Default: a pool of its own.
        log: File that gets a record of each call. Default: what ANALOG_LAYOUT_LOG names, if anything.
        limits: Which paths and programs a call may name. Default: any.
    """

    def __init__(
        self,
        tools: Mapping[str, ToolDeclaration] | Tools,
        *,
        timeout: float = DEFAULT_TIMEOUT_S,
        warm: bool = True,
        pool: WorkerPool | None = None,
        log: str | None = None,
        limits: CallLimits | None = None,
    ) -> None:
        self.all_tools = tools if isinstance(tools, Tools) else Tools(tools)
        self.tools = self.all_tools.by_id
        self.timeout = timeout
        self.log = log
        self.limits = limits or CallLimits()
        self.pool = (pool or WorkerPool()) if warm else None

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """End the warm processes: the idle ones now, the others after their calls."""
        if self.pool is not None:
            self.pool.close()

    def run(
        self,
        tool_id: str,
        params: Any,
        *,
        context: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        on_stderr: Callable[[bytes], None] | None = None,
        cancellation: Cancellation | None = None,
    ) -> Call:
        """Return the outcome of one call; only Ctrl-C raises, after killing the tool.

        Args:
            tool_id: Which tool: ``id`` for the latest version, or ``id@version``. Parameters written for an older
                compatible version are carried over to the available one, which the call reports.
            params: Its parameters, checked against its input schema before anything is started.
            context: user_profile, session_context, memory_summary, content_context.
            timeout: Longest duration, waiting for a free process included; the process and all its children are
                killed then. [s]
            on_stderr: Called with each piece of the tool's stderr as it arrives, perhaps from another thread.
            cancellation: Kills the process and all its children when cancelled.
        """
        start, stopping = time.monotonic(), cancellation or Cancellation()
        made: dict[str, Any] = {}
        try:
            choice = choose(self.all_tools, tool_id)
            made |= {"tool": choice.tool, "migrated_from": choice.migrated_from}
            limit = checked_timeout(self.timeout if timeout is None else timeout)
            values = checked_params(choice, params)
            self.limits.check(choice.tool, values)
            try:
                surroundings = plain(context)
            except NotJsonError as error:
                raise SkillError(ErrorCode.INVALID_PARAM, f"context: {error}") from error
            request = ToolRequest(values, surroundings, start + limit, stopping, on_stderr, self.limits.environment)
            answer = self._answer(choice.tool, request)
            if answer.outcome is not None:
                made |= {"stderr": answer.outcome.stderr.decode("utf-8", "replace"), "warm": answer.warm}
            if stopping.cancelled:
                raise _cancelled(tool_id)
            result = judge(choice.tool, answer, limit)
        except SkillError as error:
            if made.get("migrated_from"):
                error.details = {**(error.details or {}), "migrated_from": made["migrated_from"]}
            result = SkillResult.failure(error, round(1000 * (time.monotonic() - start)))
        except KeyboardInterrupt:
            interrupted = SkillError(ErrorCode.INTERNAL_ERROR, "interrupted; the tool was killed")
            self._note(tool_id, params, context, Call(SkillResult.failure(interrupted), **made))
            raise
        call = Call(result, **made)
        self._note(tool_id, params, context, call)
        return call

    def _note(self, tool_id: str, params: Any, context: Any, call: Call) -> None:
        """Append the record of a call to the log, if there is one; a log that cannot be written fails no call."""
        path, error = log_path(self.log), call.result.error
        if path is None:
            return
        has_traceback = error is not None and error.code in _UNEXPECTED and call.stderr
        record = call_record(
            tool_id.partition("@")[0],
            None if call.tool is None else call.tool.version,
            params,
            context,
            call.result,
            warm=call.warm,
            migrated_from=call.migrated_from,
            stderr=call.stderr[-MAX_STDERR:] if has_traceback else None,
        )
        append_record(path, record)

    def _answer(self, tool: ToolDeclaration, request: ToolRequest) -> Answer:
        """Return how the tool's process answered."""
        if not tool.script:
            text = f"tool {tool.id} is declared without a script: it can be listed and validated, not called"
            raise SkillError(ErrorCode.UNSUPPORTED_OPERATION, text)
        if request.cancellation.cancelled:
            raise _cancelled(tool.id)
        try:
            if self.pool is not None and can_be_warm(tool):
                return call_warm(tool, request, self.pool)
            return call_cold(tool, request)
        except PoolClosedError as error:
            raise SkillError(ErrorCode.UNSUPPORTED_OPERATION, str(error)) from error
        except OSError as error:
            raise SkillError(
                ErrorCode.INTERNAL_ERROR, f"the process of tool {tool.id} cannot be started: {error.strerror}"
            ) from error


def _cancelled(tool_id: str) -> SkillError:
    """Return the error of a call that its caller gave up."""
    return SkillError(ErrorCode.TIMEOUT, f"the call of {tool_id} was cancelled", {"cancelled": True})


def judge(tool: ToolDeclaration, answer: Answer, timeout: float) -> SkillResult:
    """Return the tool's own result, checked against its output schema.

    Args:
        tool: The tool that was called.
        answer: How its process answered.
        timeout: The time it had, for the message. [s]

    Raises:
        SkillError: TIMEOUT if it did not answer in time, INTERNAL_ERROR if its answer is not valid.
    """
    outcome = answer.outcome
    if outcome is None:
        text = f"no process was free for tool {tool.id} within {timeout:g} s; allow more workers or a longer timeout"
        raise SkillError(ErrorCode.TIMEOUT, text, {"timeout_s": timeout})
    if outcome.timed_out:
        text = f"tool {tool.id} took longer than {timeout:g} s and was killed; a longer timeout may let it end"
        raise SkillError(ErrorCode.TIMEOUT, text, {"timeout_s": timeout})
    if outcome.flooded:
        text = f"tool {tool.id} wrote more output than is allowed ({MAX_STDOUT_BYTES} bytes) and was killed"
        raise SkillError(ErrorCode.INTERNAL_ERROR, f"{text}; large data belongs in a file that its answer names")
    result, exit_code = _worker_answer(outcome) if answer.warm else _program_answer(outcome)
    ending = _ending(exit_code)
    details: dict[str, Any] = {"exit_code": exit_code}
    if isinstance(result, str):
        details["reason"] = result
        text = f"tool {tool.id} {ending} without a valid answer: {result}"
        raise SkillError(ErrorCode.INTERNAL_ERROR, text, details)
    if result.error is not None:
        return result
    if exit_code not in (EXIT_DONE, EXIT_VIOLATES):
        raise SkillError(ErrorCode.INTERNAL_ERROR, f"tool {tool.id} {ending} after its answer", details)
    faults = find_faults(result.data, dict(tool.output_schema))
    if faults:
        message = f"tool {tool.id} answered data that its output schema refuses: {joined(faults)}"
        raise SkillError(ErrorCode.INTERNAL_ERROR, message, fault_details(faults))
    return SkillResult.success(result.data or {}, result.duration_ms, violated=exit_code == EXIT_VIOLATES)


def _program_answer(outcome: RunOutcome) -> tuple[SkillResult | str, int]:
    """Return the envelope in stdout, all of it or else its last line, or why it is none, and the exit code."""
    text = outcome.stdout.strip()
    if not text:
        return "it printed nothing", outcome.returncode
    whole, last = _envelope(text), text.rpartition(b"\n")[2]
    value = _envelope(last) if isinstance(whole, str) and last != text else whole
    return _result(value), outcome.returncode


def _worker_answer(outcome: RunOutcome) -> tuple[SkillResult | str, int]:
    """Return the one line a worker answered with, or why it is not an answer, and the exit code in it."""
    if outcome.returncode != 0 or not outcome.stdout:
        return "it ended before it answered", outcome.returncode
    if outcome.stdout.count(b"\n") != 1:
        return "a worker answers one line a request", outcome.returncode
    value = _envelope(outcome.stdout)
    if isinstance(value, str):
        return value, 0
    exit_code = value.get("exit_code")
    return (_result(value), exit_code) if isinstance(exit_code, int) else ("it has no exit_code", 0)


def _envelope(text: bytes) -> dict[str, Any] | str:
    """Return the JSON object in ``text``, or why there is none."""
    try:
        value = plain(json.loads(text))
    except NotJsonError as error:
        return str(error)
    except RecursionError:
        return f"it is nested deeper than the {MAX_DEPTH} levels allowed"
    except ValueError:
        return "what it printed is not JSON"
    return value if isinstance(value, dict) else "what it printed is not a JSON object"


def _result(value: dict[str, Any] | str) -> SkillResult | str:
    """Return the result an object describes, or why it is not an envelope."""
    if isinstance(value, str):
        return value
    try:
        return SkillResult.from_dict(value)
    except (ValueError, TypeError) as error:
        return str(error)


def _ending(returncode: int) -> str:
    """Return how a process ended, in words."""
    if returncode >= 0:
        return f"ended with exit code {returncode}"
    with contextlib.suppress(ValueError):
        return f"was ended by {signal.Signals(-returncode).name}"
    return f"was ended by signal {-returncode}"
