"""Send a request to a tool's process and return its answer: a warm worker if the tool supports it, or a new process."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import tempfile
import time
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import skillscript
from skillpack.execution.worker_pool import WarmWorker
from skillscript.standard_streams import LOG_VARIABLE
from sturdy.atomic_files import state_of
from sturdy.bounded_run import RunOutcome, run_bounded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from skillpack.execution.worker_pool import WorkerPool
    from skillpack.registry.declaration import ToolDeclaration
    from sturdy.atomic_files import FileState
    from sturdy.bounded_run import Cancellation


MAX_ARGUMENT_BYTES = 1 << 16  # Linux takes 128 KiB an argument
MAX_REQUEST_BYTES = 4 << 20  # what a worker reads on one line
_USES_SKILLSCRIPT = re.compile(rb"^\s*(?:from|import)\s+skillscript\b", re.MULTILINE)
_HANDLER_PROGRAM = skillscript.__path__[0] + "/handler.py"


@dataclass(frozen=True)
class ToolRequest:
    """A request to a tool.

    Attributes:
        params: Parameters, plain JSON that its input schema accepts.
        context: Context, plain JSON, or None.
        deadline: When to give up. [s, monotonic]
        cancellation: Kills the tool when cancelled.
        on_stderr: Called with each piece of the tool's stderr as it arrives.
        environment: Variables that its process gets beside those of the runner's environment.
    """

    params: dict[str, Any]
    context: Mapping[str, Any] | None
    deadline: float
    cancellation: Cancellation
    on_stderr: Callable[[bytes], None] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def seconds_left(self) -> float:
        """Time until the deadline, always more than 0. [s]"""
        return max(0.001, self.deadline - time.monotonic())


@dataclass(frozen=True)
class Answer:
    """How a tool's process answered.

    Attributes:
        outcome: How it ended; None when no worker was free in time.
        warm: Whether a worker answered; its answer is one line with an ``exit_code``.
    """

    outcome: RunOutcome | None
    warm: bool


def can_be_warm(tool: ToolDeclaration) -> bool:
    """Return whether a program answers ``--serve`` for the tool: declared so, or else its script imports skillscript.

    The program's text is looked at, not run. Pipes that do not block need POSIX.
    """
    declared = tool.entry.get("warm")
    if os.name != "posix" or declared is False:
        return False
    is_declared = declared is True or bool(tool.worker) or tool.is_handler
    return is_declared or _imports_skillscript(tool.script, state_of(tool.script))


@lru_cache(maxsize=1024)
def _imports_skillscript(script: str, _state: FileState | None) -> bool:
    try:
        with Path(script).open("rb") as file:
            return _USES_SKILLSCRIPT.search(file.read(1 << 18)) is not None
    except OSError:
        return False


def call_cold(tool: ToolDeclaration, request: ToolRequest) -> Answer:
    """Return the answer of a process started for this request alone.

    Raises:
        OSError: If it cannot be started.
    """
    text = json.dumps(request.params, ensure_ascii=False).encode("utf-8", "backslashreplace")
    command = [*program_of(tool), "--params", "-"]
    with _context_argument(request.context) as arguments:
        outcome = run_bounded(
            [*command, *arguments],
            text,
            request.seconds_left,
            environment=_environment(tool, request),
            on_stderr=request.on_stderr,
            cancellation=request.cancellation,
        )
    return Answer(outcome, warm=False)


def call_warm(tool: ToolDeclaration, request: ToolRequest, pool: WorkerPool) -> Answer:
    """Return the answer of a worker of ``pool``; one that ended while it was idle, or is stale, is replaced.

    Args:
        tool: The tool to call.
        request: What to call it with.
        pool: Has the workers.

    Raises:
        OSError: If a process cannot be started.
    """
    fields = {
        "id": 1,
        "params": request.params,
        "context": request.context,
        "timeout_s": round(request.seconds_left, 3),
        **({"tool": tool.id} if tool.worker else {}),  # that worker answers for several
    }
    line = json.dumps(fields, ensure_ascii=False).encode("utf-8", "backslashreplace")
    if len(line) > MAX_REQUEST_BYTES:
        return call_cold(tool, request)
    environment, program = _environment(tool, request), tool.worker or tool.script
    kind = (program, state_of(program), _folder(), tuple(sorted(environment.items())))  # of interchangeable workers

    def start() -> WarmWorker:
        return WarmWorker([*program_of(tool, warm=True), "--serve"], environment)

    while True:
        worker = pool.acquire(kind, start, request.deadline, request.cancellation)
        if worker is None:
            return Answer(None, warm=True)
        state = "unusable"
        try:
            with request.cancellation.calling(worker.interrupt):
                outcome = worker.call(line, request.deadline, request.on_stderr)
            state = "stale" if _had_ended(worker, outcome) else _state_after(outcome)
        finally:
            pool.release(kind, worker, reusable=state == "reusable")
        if state != "stale":
            return Answer(outcome, warm=True)


def program_of(tool: ToolDeclaration, *, warm: bool = False) -> list[str]:
    """Return the command that starts the tool's program, or its worker's."""
    if tool.is_handler:
        return [sys.executable, _HANDLER_PROGRAM, tool.script, tool.id]
    return [sys.executable, (tool.worker if warm else "") or tool.script]


def _environment(tool: ToolDeclaration, request: ToolRequest) -> dict[str, str]:
    """Return the environment of the tool's process."""
    return {**tool_environment(tool.environment), **request.environment}


def _had_ended(worker: WarmWorker, outcome: RunOutcome) -> bool:
    """Return whether a worker that answered before had ended when the request came, so that nothing was done.

    A worker that ends during a call is answered for by its supervisor; one that ends while it is idle is not, and its
    supervisor may still live for a moment when the next request arrives.
    """
    return worker.calls > 1 and outcome.returncode >= 0 and not outcome.stdout and not outcome.timed_out


def _state_after(outcome: RunOutcome) -> Literal["reusable", "stale", "unusable"]:
    """Return what a worker is good for after a call.

    It can be used again if it answered, did not end itself, and nothing unexpected happened. A stale one did nothing,
    because its code has been edited.
    """
    if outcome.returncode != 0 or outcome.timed_out or outcome.flooded or outcome.stdout.count(b"\n") != 1:
        return "unusable"
    try:
        answer = json.loads(outcome.stdout)
        error = answer.get("error")
        if answer.get("stale") is True and error:
            return "stale"
        unexpected = error and error.get("code") in ("INTERNAL_ERROR", "KLAYOUT_ERROR")
        return "unusable" if answer.get("last") or unexpected else "reusable"
    except (ValueError, AttributeError, RecursionError):
        return "unusable"


def _folder() -> str:
    """Return the working folder; relative paths in parameters start from it."""
    try:
        return os.getcwd()  # noqa: PTH109 - compared as text
    except OSError:
        return ""


@contextlib.contextmanager
def _context_argument(context: Mapping[str, Any] | None) -> Iterator[list[str]]:
    """Give the arguments that carry the context: in place, or through a file where it is too long for that."""
    if not context:
        yield []
        return
    text = json.dumps(context, ensure_ascii=False).encode("utf-8", "backslashreplace")
    if len(text) <= MAX_ARGUMENT_BYTES:
        yield ["--context", text.decode()]
        return
    with tempfile.TemporaryDirectory(prefix="skillpack-") as folder:
        file = Path(folder) / "context.json"
        file.write_bytes(text)
        yield ["--context", f"@{file}"]


# What a program needs to start, find its libraries and write its files, and the pack's own settings.
BASIC = (
    *("PATH", "HOME", "USER", "LANG", "LANGUAGE", "LC_*", "TZ", "TERM", "TMPDIR", "TEMP", "TMP"),
    *("PYTHON*", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "DYLD_*", "NUMBA_*", "OMP_NUM_THREADS", "XDG_*"),
    *("SYSTEMROOT", "COMSPEC", "PATHEXT", "APPDATA", "LOCALAPPDATA", "USERPROFILE"),
    *("ANALOG_LAYOUT_*", "SKILLPACK_*"),
)
_NEVER = frozenset({LOG_VARIABLE, "SKILLPACK_TOKEN"})  # the runner's own log; what opens the server
_SECRET = re.compile(r"TOKEN|KEY|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)


def tool_environment(declared: Iterable[str], surrounding: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a tool's process.

    A basic variable whose name looks like a secret is passed on only if it is declared. Never passed on are the call
    log, since a tool that the runner calls writes no second record, and the token of the server itself.

    Args:
        declared: Names the tool declares; a name that ends in ``*`` means all that start so.
        surrounding: What to choose from; default: this process's environment.
    """
    everything = os.environ if surrounding is None else surrounding
    wanted = tuple(declared)
    return {name: value for name, value in everything.items() if _is_passed(name, wanted)}


@lru_cache(maxsize=4096)
def _is_passed(name: str, wanted: tuple[str, ...]) -> bool:
    """Return whether a tool that declares ``wanted`` gets the variable ``name``."""
    if name in _NEVER:
        return False
    return _named(name, wanted) or (_named(name, BASIC) and not _SECRET.search(name))


def _named(name: str, patterns: Iterable[str]) -> bool:
    """Return whether one of the patterns names ``name``."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)
