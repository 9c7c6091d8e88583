"""Run jobs on this machine: one process a core, as far as the memory goes."""

from __future__ import annotations

import os
import select
from dataclasses import dataclass
from typing import TYPE_CHECKING

from layoutkit.errors import LayoutkitError
from layoutkit.explore.job_process import JobProcess
from layoutkit.flow.tries import free_memory_mb

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from layoutkit.explore.jobs import Job, Limits, Outcome


@dataclass(frozen=True)
class LocalProcesses:
    """Processes on this machine.

    Attributes:
        count: Jobs at a time; None for one a core. Fewer run where their memory limits exceed the free memory.
    """

    count: int | None = None

    def __post_init__(self) -> None:
        """Refuse a number below 1."""
        if self.count is not None and self.count < 1:
            raise LayoutkitError(f"at least one job must run at a time; got {self.count}")

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

    def finished(self, seconds: float) -> list[Outcome]:
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
