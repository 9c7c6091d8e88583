"""Supervise the working process, and answer for it when it cannot.

KLayout computes in C++ and holds Python's global lock. Until such a call returns, the process runs no signal handler
and no thread, so it can neither answer SIGTERM nor keep a deadline. Therefore the process forks before work begins::

    supervisor (the process that was started)  --SIGTERM, SIGINT-->  worker (its child)
         waits, kills, answers in its place     <----messages----    runs the tool, writes the answer

A worker that was signalled to stop has ``GRACE_SECONDS`` to answer itself. If it does not, or if it crashes, the
supervisor kills it, writes the envelope and exits with the envelope's exit code. Otherwise it exits with the worker's
exit code.
If the supervisor is killed, the worker ends too (by SIGIO from a pipe between them, where the system has it). If the
program that started the supervisor ends and gave it the pipe ``LIFELINE``, the supervisor kills the worker and ends.

Where processes cannot be forked (Windows), or threads run already, the work is done without a supervisor.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import dataclass, field
from time import monotonic

from sturdy.child_process import LIFELINE, end_with_pipe

from .envelope import ErrorCode, SkillError, SkillResult, to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, NoReturn

    from .standard_streams import EnvelopeStream
    from .tool import Tool

GRACE_SECONDS = 1.0  # how long a worker that was signalled to stop may take to answer
LATE_SECONDS = 0.25  # added to a deadline, so that a caller with the same deadline gives up first
_FORWARDED = (signal.SIGTERM, signal.SIGINT)
_INTERNAL_EXIT = 4


@dataclass
class RunningCall:
    """A call that has not been answered yet.

    Attributes:
        tool: Id of the tool.
        params: Parameters, for the call log.
        context: Context, for the call log.
        request_id: ``id`` of the request.
        served: Whether the answer is a line of ``--serve``.
        seconds: Maximum duration, ``None`` for no limit. [s]
        begun: When it began. [s, monotonic]
    """

    tool: str
    params: Any = None
    context: Any = None
    request_id: Any = None
    served: bool = False
    seconds: float | None = None
    begun: float = field(default_factory=monotonic)


def split(stdout: EnvelopeStream, tools: Mapping[str, Tool], call: RunningCall | None, log: str | None) -> None:
    """Continue in a child process that this one supervises; the function returns in the child only.

    Args:
        stdout: Where answers go.
        tools: The tools that may be called, by id.
        call: The call that begins now, ``None`` for a worker that waits for requests.
        log: Call log of the calls that the supervisor answers.
    """
    if not hasattr(os, "fork") or has_threads():
        return
    if sys.stderr is not None:
        sys.stderr.flush()
    messages, sender = os.pipe()
    ended, alive = os.pipe()
    signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)
    worker = os.fork()
    if worker:
        os.close(sender)
        os.close(ended)
        _Supervisor(worker, messages, stdout, tools, call, log).run()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)
    os.close(messages)
    os.close(alive)
    end_with_pipe(ended)  # without it, a worker whose supervisor was killed finishes its call
    stdout.announce_on(sender)


def _lifeline() -> list[int]:
    """Return the pipe that closes when the program that started this one ends, as ``LIFELINE`` names it."""
    number, _, inode = os.environ.get(LIFELINE, "").partition(":")
    try:
        return [int(number)] if os.fstat(int(number)).st_ino == int(inode) else []
    except (OSError, ValueError, OverflowError):  # another program in between has not passed it on
        return []


def has_threads() -> bool:
    """Return whether Python threads run beside the main one."""
    threading = sys.modules.get("threading")
    return threading is not None and threading.active_count() > 1


@dataclass
class _Supervisor:
    """The work of the process that was started, while its child works."""

    worker: int
    messages: int
    stdout: EnvelopeStream
    tools: Mapping[str, Tool]
    call: RunningCall | None
    log: str | None
    stopped_by: int | None = None
    kill_at: float | None = None
    unread: bytes = b""

    def run(self) -> NoReturn:
        """Wait for the worker, answer in its place where it did not, and end with its exit code."""
        try:
            code = self._watched()
        except BaseException:  # whatever is wrong here, the worker must not continue alone
            self._signal(signal.SIGKILL)
            raise
        finally:
            if sys.stderr is not None:
                sys.stderr.flush()
        os._exit(code)

    def _watched(self) -> int:
        wakeup, alarm = os.pipe()
        os.set_blocking(alarm, False)
        os.set_blocking(wakeup, False)
        signal.set_wakeup_fd(alarm, warn_on_full_buffer=False)
        for number in _FORWARDED:
            signal.signal(number, self._forward)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)
        from select import select

        lifeline = _lifeline()
        while True:
            ready, _, _ = select([self.messages, wakeup, *lifeline], [], [], self._seconds_left())
            if lifeline and lifeline[0] in ready:  # nobody waits for the answer
                self._signal(signal.SIGKILL)
                self.call = None
                break
            if wakeup in ready:
                os.read(wakeup, 64)
            if self.messages in ready and not self._read_messages():
                break
            if self._overdue():
                self._signal(signal.SIGKILL)
                break
        _, status = os.waitpid(self.worker, 0)
        if self.call is None:
            return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else _INTERNAL_EXIT
        return self._answer(self.call, status)

    def _forward(self, number: int, _frame: object) -> None:
        """Pass a signal on; the worker answers, or is killed after ``GRACE_SECONDS``."""
        if self.stopped_by is None:
            self.stopped_by = number
            self.kill_at = monotonic() + GRACE_SECONDS
        self._signal(number)

    def _seconds_left(self) -> float | None:
        """Return the maximum time to wait for the next event, ``None`` for no limit. [s]"""
        if self.kill_at is not None:
            return max(0.0, self.kill_at - monotonic())
        if self.call is not None and self.call.seconds is not None:
            return max(0.0, self.call.begun + self.call.seconds + LATE_SECONDS - monotonic())
        return None

    def _overdue(self) -> bool:
        """Return whether the worker must be killed now; one whose deadline has passed is first signalled to stop."""
        if self._seconds_left() != 0.0:
            return False
        if self.kill_at is not None:
            return self.call is not None or self.stopped_by is not None
        self.kill_at = monotonic() + GRACE_SECONDS
        self._signal(signal.SIGTERM)
        return False

    def _read_messages(self) -> bool:
        """Read the worker's messages; return whether it still runs."""
        piece = os.read(self.messages, 1 << 16)
        *lines, self.unread = (self.unread + piece).split(b"\n")
        for line in lines:
            said = json.loads(line)
            self.call = None if said is None else RunningCall(**said)
            if said is None and self.stopped_by is None:
                self.kill_at = None
        return bool(piece)

    def _signal(self, number: int) -> None:
        try:
            os.kill(self.worker, number)
        except ProcessLookupError:
            return

    def _answer(self, call: RunningCall, status: int) -> int:
        """Write the answer in the worker's place and return its exit code."""
        error = self._error(call, status)
        result = SkillResult.failure(error, round((monotonic() - call.begun) * 1000))
        if self.log is not None:
            from .standard_streams import append_record, call_record

            version = self.tools[call.tool].version()
            append_record(self.log, call_record(call.tool, version, call.params, call.context, result))
        answer = result.to_dict()
        if call.served:
            answer = {"id": call.request_id, **answer, "exit_code": result.exit_code, "last": True}
        self.stdout.write_line(to_json(answer))
        return result.exit_code

    def _error(self, call: RunningCall, status: int) -> SkillError:
        if self.stopped_by == signal.SIGINT:
            return SkillError(ErrorCode.INTERNAL_ERROR, "interrupted before the work was done")
        if self.stopped_by is not None:
            return SkillError(ErrorCode.TIMEOUT, "stopped by SIGTERM before the work was done")
        if self.kill_at is not None:
            text = f"the call took longer than its timeout_s, {call.seconds:g} s, and was stopped"
            return SkillError(ErrorCode.TIMEOUT, text, {"timeout_s": call.seconds})
        if os.WIFSIGNALED(status):
            how = signal.Signals(os.WTERMSIG(status)).name
        else:
            how = f"exit code {os.waitstatus_to_exitcode(status)}"
        text = f"the tool's process ended with {how} before it answered"
        return SkillError(ErrorCode.INTERNAL_ERROR, text, {"ended_with": how})
