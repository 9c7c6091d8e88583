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
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

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
    """A process that runs one job at a time; it is started when the first one comes, and again after it ended."""

    def __init__(self) -> None:
        if not hasattr(os, "fork"):
            raise UnsupportedOperationError("many layouts at once need a system with fork, such as Linux")
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, job: Job, folder: Path, limits: Limits, is_wanted: Callable[[], bool]) -> JobOutcome:
        """Return what came of ``job``; this waits for it, and ends it when it is no longer wanted.

        Args:
            job: What to do.
            folder: Where, a folder that does not exist yet.
            limits: Of this job.
            is_wanted: Whether somebody still waits for it; asked twice a second.
        """
        told = self._begun(job, folder, limits)
        unread, overdue_at = b"", time.monotonic() + limits.seconds + GRACE_S
        while is_wanted():
            if select.select([told], [], [], _POLL_S)[0]:
                piece = os.read(told, 1 << 20)
                unread += piece
                if unread.endswith(b"\n"):
                    return JobOutcome(job.key, folder=job.home, **json.loads(unread))
                if not piece:
                    self.stop()
                    return JobOutcome.unfinished(job, CRASHED, "the process that runs the jobs was ended from outside")
            if time.monotonic() > overdue_at:
                self.stop()
                text = f"no answer {GRACE_S:g} s after the limit of {limits.seconds:g} s"
                return JobOutcome.unfinished(job, TIME_LIMIT, text, "TIMEOUT")
        self.stop()
        return JobOutcome.unfinished(job, NOT_RUN, "the client no longer waits for it")

    def _begun(self, job: Job, folder: Path, limits: Limits) -> int:
        """Begin ``job``, and return the descriptor that its answer comes from."""
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
        order = {"job": job.to_json(), "folder": str(folder), "limits": vars(limits)}
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None  # noqa: S101, PT018 - both are pipes
        with suppress(BrokenPipeError):  # it has just ended; the answer says so
            stdin.write(json.dumps(order).encode() + b"\n")
            stdin.flush()
        return stdout.fileno()

    def stop(self) -> None:
        """End the process and what it runs."""
        process, self._process = self._process, None
        if process is None:
            return
        for stream in (process.stdin, process.stdout):
            with suppress(BrokenPipeError):  # what was still to be written
                if stream is not None:
                    stream.close()
        try:
            process.wait(timeout=0.5)  # its input has closed: it ends its job and itself
        except subprocess.TimeoutExpired:
            end(process)


class WarmProcesses:
    """Processes that wait for jobs; a job takes one that is idle, or a new one. Threads may share them."""

    def __init__(self) -> None:
        self._idle: list[JobProcess] = []

    def run(self, job: Job, folder: Path, limits: Limits, is_wanted: Callable[[], bool]) -> JobOutcome:
        """Return what came of ``job``, as ``JobProcess.run``."""
        try:
            process = self._idle.pop()
        except IndexError:
            process = JobProcess()
        try:
            return process.run(job, folder, limits, is_wanted)
        finally:
            self._idle.append(process)

    def stop(self) -> None:
        """End those that are idle."""
        for process in self._idle:
            process.stop()


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
    """Warm processes, each with at most one job and a thread that waits for it."""

    dashboard = ""
    notes: Mapping[str, str] = MappingProxyType({})

    def __init__(self, slots: int, limits: Limits) -> None:
        self.slots = slots
        self._limits = limits
        self._processes = WarmProcesses()
        self._threads = ThreadPoolExecutor(slots)
        self._working: set[Future[JobOutcome]] = set()
        self._is_open = True

    def start(self, job: Job, folder: Path) -> None:
        """Begin ``job`` in a process of its own."""
        self._working.add(self._threads.submit(self._processes.run, job, folder, self._limits, lambda: self._is_open))

    def finished(self, seconds: float) -> list[JobOutcome]:
        """Return the outcomes of jobs that have ended, after at most ``seconds`` without one."""
        ended, self._working = wait(self._working, seconds, FIRST_COMPLETED)
        return [each.result() for each in ended]

    def stop(self) -> None:
        """End all processes."""
        self._is_open = False
        self._threads.shutdown()
        self._processes.stop()
