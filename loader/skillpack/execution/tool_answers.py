"""Check the answer of a tool's process: return its envelope if it is valid, else an error that says why not."""

from __future__ import annotations

import contextlib
import json
import signal
from typing import TYPE_CHECKING, Any

from skillscript.envelope import EXIT_DONE, EXIT_VIOLATES, ErrorCode, SkillError, SkillResult
from skillscript.faults import fault_details, joined
from skillscript.schema import find_faults
from sturdy.bounded_run import MAX_STDOUT_BYTES
from sturdy.strict_json import MAX_DEPTH, NotJsonError, plain

if TYPE_CHECKING:
    from skillpack.execution.tool_process import Answer
    from skillpack.registry.declaration import ToolDeclaration
    from sturdy.bounded_run import Outcome


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
        raise SkillError(
            ErrorCode.TIMEOUT, f"tool {tool.id} took longer than {timeout:g} s and was killed", {"timeout_s": timeout}
        )
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


def _program_answer(outcome: Outcome) -> tuple[SkillResult | str, int]:
    """Return the envelope in stdout, all of it or else its last line, or why it is none, and the exit code."""
    text = outcome.stdout.strip()
    if not text:
        return "it printed nothing", outcome.returncode
    whole, last = _envelope(text), text.rpartition(b"\n")[2]
    value = _envelope(last) if isinstance(whole, str) and last != text else whole
    return _result(value), outcome.returncode


def _worker_answer(outcome: Outcome) -> tuple[SkillResult | str, int]:
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
