"""Call tools from an event loop: several at a time, each in a thread that waits for the tool's process."""

from __future__ import annotations

import math
import time
from collections import deque
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from skillpack.execution.process import Cancellation
from skillpack.execution.runner import Call
from skillscript.envelope import ErrorCode, SkillError, SkillResult

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skillpack.execution.runner import Runner

MAX_WAITING = 64
MAX_LINES = 20
MAX_LINE = 500


@dataclass(frozen=True)
class Order:
    """One call to make.

    Attributes:
        tool_id: Which tool.
        params: Its parameters, as received.
        context: Context of the call, or None.
        timeout: Longest duration, including the wait for a free place. [s]
        output: Collects what the tool writes to stderr, or None.
    """

    tool_id: str
    params: Any
    context: Mapping[str, Any] | None = None
    timeout: float | None = None
    output: StderrLines | None = None


class Calls:
    """Makes calls, a limited number at a time; cancelling a call kills its tool.

    Args:
        max_running: Calls that run at one time.
        max_waiting: Calls that wait for a place; any further one is refused with SERVICE_UNAVAILABLE.
    """

    def __init__(self, max_running: int, *, max_waiting: int = MAX_WAITING) -> None:
        self.max_running = max_running
        self.max_waiting = max_waiting
        self._places = anyio.CapacityLimiter(max_running)

    @property
    def waiting(self) -> int:
        """How many calls wait for a place."""
        return self._places.statistics().tasks_waiting

    @property
    def running(self) -> int:
        """How many calls are running."""
        return self._places.statistics().borrowed_tokens

    async def make(self, runner: Runner, order: Order) -> Call:
        """Return the finished call. Only cancellation raises; the tool has been killed then."""
        if self.waiting >= self.max_waiting:
            text = f"busy: {self.running} calls run and {self.waiting} wait; try again later"
            return Call(SkillResult.failure(SkillError(ErrorCode.SERVICE_UNAVAILABLE, text)))
        cancellation = Cancellation()
        limit = runner.timeout if order.timeout is None else order.timeout
        end = time.monotonic() + limit
        with anyio.move_on_after(limit if limit > 0 and math.isfinite(limit) else None) as wait:
            await self._places.acquire_on_behalf_of(cancellation)
        if wait.cancelled_caught:
            text = f"no place was free for tool {order.tool_id} within {limit:g} s"
            return Call(SkillResult.failure(SkillError(ErrorCode.TIMEOUT, text, {"timeout_s": limit})))
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(_cancel_with_caller, cancellation)
                work = partial(_run, runner, order, cancellation, end - time.monotonic() if limit > 0 else limit)
                call = await anyio.to_thread.run_sync(work, limiter=anyio.CapacityLimiter(1))
                group.cancel_scope.cancel()
        finally:
            self._places.release_on_behalf_of(cancellation)
        return call


def _run(runner: Runner, order: Order, cancellation: Cancellation, seconds: float) -> Call:
    """Return the call, made in this thread, within the seconds that are left."""
    on_stderr: Callable[[bytes], None] | None = None if order.output is None else order.output.feed
    return runner.run(
        order.tool_id,
        order.params,
        context=order.context,
        timeout=seconds,
        on_stderr=on_stderr,
        cancellation=cancellation,
    )


async def _cancel_with_caller(cancellation: Cancellation) -> None:
    """Wait until the caller is cancelled or has its answer, and cancel the call."""
    try:
        await anyio.sleep_forever()
    finally:
        cancellation.cancel()


class StderrLines:
    """The last lines a tool wrote to stderr; one thread adds them, another takes them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._lines: deque[str] = deque(maxlen=MAX_LINES)
        self._unfinished = b""

    def feed(self, chunk: bytes) -> None:
        """Add a piece of output."""
        with self._lock:
            *whole, unfinished = (self._unfinished + chunk).split(b"\n")
            self._unfinished = unfinished[-MAX_LINE:]
            texts = (line.decode("utf-8", "replace").strip()[:MAX_LINE] for line in whole[-MAX_LINES:])
            self._lines.extend(text for text in texts if text)

    def take(self) -> list[str]:
        """Return the complete lines since the last call, at most ``MAX_LINES``."""
        with self._lock:
            lines = list(self._lines)
            self._lines.clear()
            return lines
