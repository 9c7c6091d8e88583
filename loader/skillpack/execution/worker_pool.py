"""A tool's processes that answer several calls (``--serve``) and can be killed at once, and a pool that keeps them.

They are limited in number, ended when idle, and never shared by two callers.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import threading
import time
import uuid
from typing import IO, TYPE_CHECKING, Any

from sturdy.bounded_run import MAX_STDOUT_BYTES, STDERR_TAIL_BYTES, RunOutcome, kill_marked, lifeline, marked
from sturdy.child_process import end, kill_group

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from sturdy.bounded_run import Cancellation

_CHUNK = 1 << 16
# For three pipes poll needs one system call, epoll six; poll is not everywhere.
_SELECTOR: type[selectors.BaseSelector] = getattr(selectors, "PollSelector", selectors.DefaultSelector)


class WarmWorker:
    """A process that reads one request per line and answers one line; it serves one caller at a time.

    Its pipes are only used during a call, so that a finished call has all of its own stderr and nothing of
    another's.

    Attributes:
        calls: Requests it received.
        idle_since: When it finished its last request. [s, monotonic]
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.calls = 0
        self.idle_since = time.monotonic()
        self._mark = uuid.uuid4().hex
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            env=marked(environment, self._mark),
            start_new_session=True,
            bufsize=0,
            **lifeline(),
        )
        self._pipes: list[Any] = [self._process.stdin, self._process.stdout, self._process.stderr]
        for made in self._pipes:
            os.set_blocking(made.fileno(), False)

    @property
    def alive(self) -> bool:
        """Whether its process runs."""
        return self._process.poll() is None

    def call(self, request: bytes, deadline: float, on_stderr: Callable[[bytes], None] | None = None) -> RunOutcome:
        """Return how one request ended: ``stdout`` is the answer's line, or the part that arrived.

        A worker that did not answer is killed with everything it started; so it is when the caller is interrupted.
        ``returncode`` is 0 after an answer.

        Args:
            request: One line, without the line break.
            deadline: When to give up. [s, monotonic]
            on_stderr: Called with each piece of stderr as it arrives.
        """
        self.calls += 1
        exchange = _Exchange(self._pipes, request + b"\n", on_stderr)
        answered = False
        try:
            answered = exchange.run(deadline)
        finally:
            if not answered:
                self._end()
                exchange.take_rest()
                self._close_pipes()
            self.idle_since = time.monotonic()
        return RunOutcome(
            0 if answered else self._process.returncode,
            bytes(exchange.stdout),
            bytes(exchange.stderr),
            exchange.timed_out,
            exchange.flooded,
        )

    def interrupt(self) -> None:
        """End the process at once from another thread; the caller that waits for its answer cleans up."""
        kill_group(self._process.pid)

    def kill(self) -> None:
        """End the process and everything it started, and give its pipes back; more than once is fine."""
        self._end()
        self._close_pipes()

    def _close_pipes(self) -> None:
        for pipe in self._pipes:
            with contextlib.suppress(OSError):
                pipe.close()

    def _end(self) -> None:
        end(self._process)
        kill_marked(self._mark)


class _Exchange:
    """One request and its answer."""

    def __init__(self, pipes: list[IO[bytes]], request: bytes, on_stderr: Callable[[bytes], None] | None) -> None:
        self._in, self._out, self._err = pipes
        self._unsent = memoryview(request)
        self._on_stderr = on_stderr
        self._whole = False
        self.stdout = bytearray()
        self.stderr = bytearray()
        self.timed_out = False
        self.flooded = False

    def run(self, deadline: float) -> bool:
        """Return whether a line was answered before the deadline."""
        with _SELECTOR() as selector:
            selector.register(self._in, selectors.EVENT_WRITE, self._send)
            selector.register(self._out, selectors.EVENT_READ, self._read_stdout)
            selector.register(self._err, selectors.EVENT_READ, self._read_stderr)
            while not self._whole and not self.flooded:
                left = deadline - time.monotonic()
                if left <= 0:
                    self.timed_out = True
                    return False
                for key, _ in selector.select(left):
                    if not key.data():
                        selector.unregister(key.fileobj)
                        if key.fileobj is self._out:
                            return self._whole
        while _waiting(self._err) and self._read_stderr():
            pass
        return not self.flooded

    def take_rest(self) -> None:
        """Take what an ended process has left in its pipes."""
        for pipe, read in ((self._out, self._read_stdout), (self._err, self._read_stderr)):
            while not self.flooded and _waiting(pipe) and read():
                pass

    def _send(self) -> bool:
        """Send a part of the request; return whether more is to be sent and the process still reads."""
        try:
            self._unsent = self._unsent[os.write(self._in.fileno(), self._unsent[:_CHUNK]) :]
        except BlockingIOError:
            return True
        except OSError:  # it has closed its input: what it answers decides
            return False
        return len(self._unsent) > 0

    def _read_stdout(self) -> bool:
        """Take a piece of stdout; return whether its end is still to come."""
        chunk = os.read(self._out.fileno(), _CHUNK)
        self.stdout += chunk
        self._whole = self._whole or b"\n" in chunk
        self.flooded = len(self.stdout) > MAX_STDOUT_BYTES
        return bool(chunk)

    def _read_stderr(self) -> bool:
        """Take a piece of stderr, pass it on and keep the tail; return whether its end is still to come."""
        chunk = os.read(self._err.fileno(), _CHUNK)
        if chunk and self._on_stderr is not None:
            self._on_stderr(chunk)
        self.stderr += chunk
        del self.stderr[:-STDERR_TAIL_BYTES]
        return bool(chunk)


def _waiting(pipe: IO[bytes]) -> bool:
    """Return whether there is something to read in a pipe, or its end."""
    with _SELECTOR() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        return bool(selector.select(0))


IDLE_SECONDS = 60.0
MAX_CALLS = 1000


class PoolClosedError(RuntimeError):
    """The pool has been closed."""


class WorkerPool:
    """Workers by kind; those of one kind are interchangeable.

    Args:
        max_workers: Most processes at one time; further callers wait. Default: twice the processors, at least 4.
        idle_seconds: How long a worker is kept without a call. [s]
        max_calls: Calls after which a worker is replaced, so that what leaks in it stays bounded.
    """

    def __init__(
        self, *, max_workers: int | None = None, idle_seconds: float = IDLE_SECONDS, max_calls: int = MAX_CALLS
    ) -> None:
        self.max_workers = max_workers or max(4, 2 * (os.cpu_count() or 1))
        self.idle_seconds = idle_seconds
        self.max_calls = max_calls
        self._changed = threading.Condition()
        self._idle: list[tuple[Hashable, WarmWorker]] = []  # the longest idle first
        self._live = 0
        self._closed = False
        self._reaper: threading.Thread | None = None

    @property
    def live(self) -> int:
        """How many processes there are, busy and idle."""
        return self._live

    def acquire(
        self,
        kind: Hashable,
        start: Callable[[], WarmWorker],
        deadline: float,
        cancellation: Cancellation,
    ) -> WarmWorker | None:
        """Return a worker of ``kind`` for the caller alone, or None when none was free before the deadline.

        An idle one is taken, or one is started; where the pool is full, an idle one of another kind makes room.

        Args:
            kind: What the worker can do.
            start: Starts a worker of that kind.
            deadline: When to give up. [s, monotonic]
            cancellation: Ends the waiting when cancelled.

        Raises:
            OSError: If a process cannot be started.
            PoolClosedError: If the pool has been closed.
        """
        with cancellation.calling(self._wake):
            worker, room = self._claim(kind, deadline, cancellation)
        if worker is not None or not room:
            return worker
        try:
            return start()
        except BaseException:
            self._forget_one()
            raise

    def release(self, kind: Hashable, worker: WarmWorker, *, reusable: bool) -> None:
        """Give a worker back after a call; one that is not reusable, dead or worn out is ended."""
        keep = reusable and worker.calls < self.max_calls and worker.alive
        with self._changed:
            keep = keep and not self._closed
            if keep:
                self._idle.append((kind, worker))
                if self._reaper is None:
                    self._reaper = threading.Thread(target=self._reap, name="skillpack-reaper", daemon=True)
                    self._reaper.start()
                self._changed.notify_all()
        if not keep:
            worker.kill()
            self._forget_one()

    def close(self) -> None:
        """End the idle workers, and every other as soon as its call is over."""
        with self._changed:
            self._closed = True
            idle, self._idle = self._idle, []
            self._live -= len(idle)
            self._changed.notify_all()
        for _, worker in idle:
            worker.kill()

    def _claim(self, kind: Hashable, deadline: float, cancellation: Cancellation) -> tuple[WarmWorker | None, bool]:
        """Return an idle worker, or that there is room to start one."""
        unwanted: list[WarmWorker] = []
        try:
            with self._changed:
                while True:
                    if self._closed:
                        raise PoolClosedError("the runner has been closed")
                    worker = self._take_idle(kind, unwanted)
                    if worker is not None:
                        return worker, False
                    if self._live >= self.max_workers and self._idle:
                        unwanted.append(self._idle.pop(0)[1])
                        self._live -= 1
                    if self._live < self.max_workers:
                        self._live += 1
                        return None, True
                    left = deadline - time.monotonic()
                    if left <= 0 or cancellation.cancelled:
                        return None, False
                    self._changed.wait(left)
        finally:
            for worker in unwanted:
                worker.kill()

    def _take_idle(self, kind: Hashable, unwanted: list[WarmWorker]) -> WarmWorker | None:
        """Return the idle worker of ``kind`` that worked last; those found dead are counted out."""
        for index in range(len(self._idle) - 1, -1, -1):
            known, worker = self._idle[index]
            if known != kind:
                continue
            del self._idle[index]
            if worker.alive:
                return worker
            unwanted.append(worker)
            self._live -= 1
        return None

    def _forget_one(self) -> None:
        with self._changed:
            self._live -= 1
            self._changed.notify_all()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _reap(self) -> None:
        while True:
            with self._changed:
                now = time.monotonic()
                old = [entry for entry in self._idle if now - entry[1].idle_since >= self.idle_seconds]
                self._idle = [entry for entry in self._idle if entry not in old]
                self._live -= len(old)
                if old:
                    self._changed.notify_all()
                elif self._idle:
                    oldest = min(worker.idle_since for _, worker in self._idle)
                    self._changed.wait(oldest + self.idle_seconds - now)
                else:
                    self._reaper = None
                    return
            for _, worker in old:
                worker.kill()
