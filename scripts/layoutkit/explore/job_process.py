"""Jobs on this machine: one process a core, as far as the memory goes.

Each process is a job server. Its client's side starts the process, sends it jobs, and reads the outcomes.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from layoutkit.errors import UnsupportedOperationError
from layoutkit.explore.jobs import CRASHED, NOT_RUN, TIME_LIMIT, Job, JobOutcome, Limits
from layoutkit.flow.tries import free_memory_mb
from sturdy.child_process import end

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


GRACE_S = 10.0
"""How long beyond its limit a job's answer may take: the process imports modules first, and ends the job. [s]"""
_POLL_S = 0.5
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Jobs share the cores among themselves, and a process with threads should not fork."""


class JobProcess:
    """A process that runs one job at a time; it is started when the first one comes, and again after it ended.

    Args:
        limits: Of each job.
    """

    def __init__(self, limits: Limits) -> None:
        if not hasattr(os, "fork"):
            raise UnsupportedOperationError("many layouts at once need a system with fork, such as Linux")
        self.limits = limits
        self._process: subprocess.Popen[bytes] | None = None
        self._job: Job | None = None
        self._unread = b""
        self._overdue_at = 0.0

    def start(self, job: Job, folder: Path) -> None:
        """Begin ``job`` in ``folder``, which does not exist yet."""
        if self._process is None or self._process.poll() is not None:
            self.stop()
            self._process = subprocess.Popen(
                [sys.executable, "-m", "layoutkit.explore.job_server"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **ONE_THREAD, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
                start_new_session=True,  # Ctrl-C is for the engine, which ends its jobs
            )
        self._job, self._unread = job, b""
        self._overdue_at = time.monotonic() + self.limits.seconds + GRACE_S
        order = {"job": job.to_json(), "folder": str(folder), "limits": vars(self.limits)}
        assert self._process.stdin is not None  # noqa: S101 - for the type checker
        try:
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:  # it has just ended; the answer says so
            return

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when there is something to read."""
        assert self._process is not None  # noqa: S101 - for the type checker
        assert self._process.stdout is not None  # noqa: S101 - for the type checker
        return self._process.stdout.fileno()

    def outcome(self, *, readable: bool) -> JobOutcome | None:
        """Return what came of the job; None while it works.

        Args:
            readable: Whether ``fileno()`` was ready to be read.
        """
        assert self._job is not None  # noqa: S101 - for the type checker
        job = self._job
        if readable:
            piece = os.read(self.fileno(), 1 << 20)
            if not piece:
                self.stop()
                return JobOutcome.unfinished(job, CRASHED, "the process that runs the jobs was ended from outside")
            self._unread += piece
            if self._unread.endswith(b"\n"):
                self._job = None
                return JobOutcome(job.key, folder=job.home, **json.loads(self._unread))
        if time.monotonic() > self._overdue_at:
            self.stop()
            text = f"no answer {GRACE_S:g} s after the limit of {self.limits.seconds:g} s"
            return JobOutcome.unfinished(job, TIME_LIMIT, text, "TIMEOUT")
        return None

    def run(self, job: Job, folder: Path, is_wanted: Callable[[], bool]) -> JobOutcome:
        """Return what came of ``job``; this waits for it, and ends it when it is no longer wanted."""
        self.start(job, folder)
        while is_wanted():
            ready, _, _ = select.select([self], [], [], _POLL_S)
            found = self.outcome(readable=bool(ready))
            if found is not None:
                return found
        self.stop()
        return JobOutcome.unfinished(job, NOT_RUN, "the client no longer waits for it")

    def stop(self) -> None:
        """End the process and what it runs."""
        process, self._process, self._job = self._process, None, None
        if process is None:
            return
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                _close(stream)
        try:
            process.wait(timeout=0.5)  # its input has closed: it ends its job and itself
        except subprocess.TimeoutExpired:
            end(process)


def _close(stream: Any) -> None:
    try:
        stream.close()
    except BrokenPipeError:  # what was still to be written
        return


@dataclass(frozen=True)
class LocalProcesses:
    """Processes on this machine.

    Attributes:
        count: Jobs at a time; None for one a core. Fewer run where their memory limits exceed the free memory.
    """

    count: int | None = None

    def open(self, limits: Limits) -> LocalWorkplace:
        """Return the processes; the first job starts each."""
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return LocalWorkplace(max(1, min(self.count or cores, free_memory_mb() // limits.memory_mb)), limits)


class LocalWorkplace:
    """Warm processes, each with at most one job."""

    dashboard = ""

    def __init__(self, slots: int, limits: Limits) -> None:
        self.slots = slots
        self.notes: Mapping[str, str] = {}
        self._idle = [JobProcess(limits) for _ in range(slots)]
        self._working: list[JobProcess] = []

    def start(self, job: Job, folder: Path) -> None:
        """Give ``job`` to an idle process."""
        process = self._idle.pop()
        self._working.append(process)
        process.start(job, folder)

    def finished(self, seconds: float) -> list[JobOutcome]:
        """Return the outcomes of jobs that have ended, after at most ``seconds`` without one."""
        ready, _, _ = select.select(self._working, [], [], seconds)
        found = []
        for process in list(self._working):
            outcome = process.outcome(readable=process in ready)
            if outcome is not None:
                found.append(outcome)
                self._working.remove(process)
                self._idle.append(process)
        return found

    def stop(self) -> None:
        """End all processes."""
        for process in [*self._working, *self._idle]:
            process.stop()
