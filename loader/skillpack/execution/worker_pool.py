"""Warm workers kept for their next call: limited in number, ended when idle, never shared by two callers."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from skillpack.execution.warm_worker import WarmWorker
    from sturdy.bounded_run import Cancellation

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
        cancellation: Cancellation | None = None,
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
        if cancellation is None:
            worker, room = self._claim(kind, deadline, lambda: False)
        else:
            with cancellation.calling(self._wake):
                worker, room = self._claim(kind, deadline, lambda: cancellation.cancelled)
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
                self._start_reaper()
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

    def _claim(self, kind: Hashable, deadline: float, stop: Callable[[], bool]) -> tuple[WarmWorker | None, bool]:
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
                    if left <= 0 or stop():
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

    def _start_reaper(self) -> None:
        """Start the thread that ends idle workers; the thread lives as long as there are any."""
        if self._reaper is None:
            self._reaper = threading.Thread(target=self._reap, name="skillpack-reaper", daemon=True)
            self._reaper.start()

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
