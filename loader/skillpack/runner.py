"""Call tools, each in a process of its own: a hang, a crash or garbage becomes an envelope."""

from __future__ import annotations

import contextlib
import json
import math
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillpack.process import run_bounded
from skillscript.envelope import EXIT_DONE, EXIT_VIOLATES, ErrorCode, SkillError, SkillResult
from skillscript.faults import did_you_mean, fault_details, invalid_params, joined
from skillscript.schema import find_faults
from skillscript.strict_json import NotJsonError, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from skillpack.declaration import ToolDeclaration
    from skillpack.process import Outcome

DEFAULT_TIMEOUT_S = 300.0
MAX_ARGUMENT_BYTES = 1 << 16  # Linux takes 128 KiB an argument


@dataclass(frozen=True)
class Call:
    """A finished call.

    Attributes:
        result: What the tool answered, or what went wrong with it.
        stderr: The end of what it wrote to stderr.
    """

    result: SkillResult
    stderr: str = ""

    @property
    def envelope(self) -> dict[str, Any]:
        """Return ``{ok, error, data, duration_ms}``."""
        return self.result.to_dict()


class Runner:
    """Calls tools by id.

    Args:
        tools: The tools that can be called, by id.
        timeout: Longest duration of a call unless the call says otherwise. [s]
    """

    def __init__(self, tools: Mapping[str, ToolDeclaration], *, timeout: float = DEFAULT_TIMEOUT_S) -> None:
        self.tools = tools
        self.timeout = timeout

    def run(
        self,
        tool_id: str,
        params: Any,
        *,
        context: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        on_stderr: Callable[[bytes], None] | None = None,
    ) -> Call:
        """Return the outcome of one call; no outcome is an exception.

        Args:
            tool_id: Which tool.
            params: Its parameters, checked against its input schema before anything is started.
            context: user_profile, session_context, memory_summary, content_context.
            timeout: Longest duration; the process and all its children are killed then. [s]
            on_stderr: Called with each piece of the tool's stderr as it arrives, from another thread.
        """
        start = time.monotonic()
        limit = self.timeout if timeout is None else timeout
        outcome: Outcome | None = None
        try:
            tool = self._tool(tool_id)
            request = _request(tool, params, limit)
            outcome = _execute(tool, request, context, limit, on_stderr)
            result = _judge(tool, outcome, limit)
        except SkillError as error:
            result = SkillResult.failure(error, round(1000 * (time.monotonic() - start)))
        return Call(result, "" if outcome is None else outcome.stderr.decode("utf-8", "replace"))

    def _tool(self, tool_id: str) -> ToolDeclaration:
        """Return the tool, or raise what to answer for one that does not exist."""
        tool = self.tools.get(tool_id)
        if tool is None:
            hint = did_you_mean(tool_id, self.tools)
            details = {"param_name": "tool", "provided_value": tool_id, "available": sorted(self.tools)}
            raise SkillError(ErrorCode.INVALID_PARAM, f"unknown tool {tool_id!r}{hint}", details)
        return tool


def _request(tool: ToolDeclaration, params: Any, timeout: float) -> bytes:
    """Return the parameters as JSON text, checked against the tool's input schema."""
    if not (timeout > 0 and math.isfinite(timeout)):
        raise SkillError(ErrorCode.INVALID_PARAM, f"timeout must be a positive number of seconds, got {timeout}")
    try:
        value = plain(params)
    except NotJsonError as error:
        raise SkillError(ErrorCode.INVALID_PARAM, f"params: {error}") from error
    faults = find_faults(value, dict(tool.input_schema))
    if faults:
        raise invalid_params(faults)
    return json.dumps(value, ensure_ascii=False).encode()


def _execute(
    tool: ToolDeclaration,
    request: bytes,
    context: Mapping[str, Any] | None,
    timeout: float,
    on_stderr: Callable[[bytes], None] | None,
) -> Outcome:
    """Return how the tool's process ended."""
    command = [sys.executable, tool.script, "--params", "-"]
    try:
        with _context_argument(context) as arguments:
            return run_bounded([*command, *arguments], request, timeout, on_stderr=on_stderr)
    except OSError as error:
        raise SkillError(
            ErrorCode.INTERNAL_ERROR, f"the process of tool {tool.id} cannot be started: {error.strerror}"
        ) from error


@contextlib.contextmanager
def _context_argument(context: Mapping[str, Any] | None) -> Iterator[list[str]]:
    """Give the arguments that carry the context: in place, or through a file where it is too long for that."""
    if not context:
        yield []
        return
    try:
        text = json.dumps(plain(context), ensure_ascii=False)
    except NotJsonError as error:
        raise SkillError(ErrorCode.INVALID_PARAM, f"context: {error}") from error
    if len(text.encode()) <= MAX_ARGUMENT_BYTES:
        yield ["--context", text]
        return
    with tempfile.TemporaryDirectory(prefix="skillpack-") as folder:
        file = Path(folder) / "context.json"
        file.write_text(text, encoding="utf-8")
        yield ["--context", f"@{file}"]


def _judge(tool: ToolDeclaration, outcome: Outcome, timeout: float) -> SkillResult:
    """Return the tool's own result if it kept its promises, or raise what it did instead."""
    if outcome.timed_out:
        raise SkillError(
            ErrorCode.TIMEOUT, f"tool {tool.id} took longer than {timeout:g} s and was killed", {"timeout_s": timeout}
        )
    if outcome.flooded:
        raise SkillError(ErrorCode.INTERNAL_ERROR, f"tool {tool.id} wrote more output than is allowed and was killed")
    result = _answer(outcome.stdout)
    ending = _ending(outcome.returncode)
    details = {"exit_code": outcome.returncode}
    if result is None:
        raise SkillError(ErrorCode.INTERNAL_ERROR, f"tool {tool.id} {ending} without a valid answer", details)
    if result.error is not None:
        return result
    if outcome.returncode not in (EXIT_DONE, EXIT_VIOLATES):
        raise SkillError(ErrorCode.INTERNAL_ERROR, f"tool {tool.id} {ending} after its answer", details)
    faults = find_faults(result.data, dict(tool.output_schema))
    if faults:
        message = f"tool {tool.id} answered data that its output schema refuses: {joined(faults)}"
        raise SkillError(ErrorCode.INTERNAL_ERROR, message, fault_details(faults))
    violated = outcome.returncode == EXIT_VIOLATES
    return SkillResult.success(result.data or {}, result.duration_ms, violated=violated)


def _answer(stdout: bytes) -> SkillResult | None:
    """Return the envelope in ``stdout``: all of it, or its last line when something else was printed before."""
    text = stdout.strip()
    for candidate in (text, text.rpartition(b"\n")[2]):
        with contextlib.suppress(ValueError, TypeError, RecursionError):  # not JSON, or not an envelope
            value = plain(json.loads(candidate))
            if isinstance(value, dict):
                return SkillResult.from_dict(value)
    return None


def _ending(returncode: int) -> str:
    """Return how a process ended, in words."""
    if returncode >= 0:
        return f"ended with exit code {returncode}"
    with contextlib.suppress(ValueError):
        return f"was ended by {signal.Signals(-returncode).name}"
    return f"was ended by signal {-returncode}"
