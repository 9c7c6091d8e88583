"""Call tools, several at a time: from threads, or from an event loop."""

from __future__ import annotations

import math
import time
from collections import deque
from dataclasses import dataclass, field
from functools import partial
from threading import Condition, Lock
from typing import TYPE_CHECKING, Any, TypeVar

from skillpack.execution.runner import Call
from skillscript.envelope import ErrorCode, SkillError, SkillResult
from sturdy.bounded_run import Cancellation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from anyio import CapacityLimiter

    from skillpack.execution.runner import Runner

MAX_WAITING = 64
MAX_LINES = 20
MAX_LINE = 500
_Result = TypeVar("_Result")


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


@dataclass(eq=False)
class Calls:
    """Makes calls, a limited number at a time; cancelling a call kills its tool.

    Attributes:
        max_running: Calls that run at one time.
        max_waiting: Calls that wait for a place; any further one is refused with SERVICE_UNAVAILABLE.
        running: Calls that run now.
        waiting: Calls that wait now.
    """

    max_running: int
    max_waiting: int = MAX_WAITING
    running: int = 0
    waiting: int = 0
    _changed: Condition = field(default_factory=Condition)

    async def make(self, runner: Runner, order: Order) -> Call:
        """Return the finished call, made in a thread. Only cancellation raises, after the tool was killed."""
        cancellation = Cancellation()
        return await in_thread(partial(self.make_here, runner, order, cancellation), cancellation)

    def make_here(self, runner: Runner, order: Order, cancellation: Cancellation) -> Call:
        """Return the finished call, made in this thread, which waits for a free place first."""
        limit = runner.timeout if order.timeout is None else order.timeout
        end = time.monotonic() + limit
        refusal = self._take_place(order.tool_id, limit, end, cancellation)
        if refusal is not None:
            return Call(SkillResult.failure(refusal))
        try:
            return runner.run(
                order.tool_id,
                order.params,
                context=order.context,
                timeout=end - time.monotonic() if limit > 0 else limit,
                on_stderr=None if order.output is None else order.output.feed,
                cancellation=cancellation,
            )
        finally:
            with self._changed:
                self.running -= 1
                self._changed.notify()

    def _take_place(self, tool_id: str, limit: float, end: float, cancellation: Cancellation) -> SkillError | None:
        """Take a place, or return why there is none; a cancelled call takes one, as its tool is not started."""
        with cancellation.calling(self._wake), self._changed:
            if self.running >= self.max_running and self.waiting >= self.max_waiting:
                text = f"busy: {self.running} calls run and {self.waiting} wait; try again later"
                return SkillError(ErrorCode.SERVICE_UNAVAILABLE, text)
            self.waiting += 1
            try:
                while self.running >= self.max_running and not cancellation.cancelled:
                    left = end - time.monotonic() if limit > 0 and math.isfinite(limit) else None
                    if left is not None and left <= 0:
                        text = f"no place was free for tool {tool_id} within {limit:g} s"
                        return SkillError(ErrorCode.TIMEOUT, text, {"timeout_s": limit})
                    self._changed.wait(left)
                self.running += 1
            finally:
                self.waiting -= 1
        return None

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()


async def in_thread(
    work: Callable[[], _Result], cancellation: Cancellation, threads: CapacityLimiter | None = None
) -> _Result:
    """Return what ``work`` returns, done in a thread; ``cancellation`` is cancelled with the caller, which then waits.

    ``work`` must not raise. It waits for a place among ``threads``, if these are given.
    """
    import anyio
    import anyio.lowlevel
    import anyio.to_thread

    async def cancel_with_caller() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            cancellation.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(cancel_with_caller)
        result = await anyio.to_thread.run_sync(work, limiter=threads or anyio.CapacityLimiter(1))
        group.cancel_scope.cancel()
    await anyio.lowlevel.checkpoint_if_cancelled()
    return result


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
