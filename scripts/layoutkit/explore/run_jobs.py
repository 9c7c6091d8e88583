"""Run many jobs, each once: on this machine or a cluster, within a budget, with a journal for a later run."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sized
from pathlib import Path
from typing import TYPE_CHECKING

from layoutkit.errors import LayoutkitError
from layoutkit.explore.job_process import LocalProcesses
from layoutkit.explore.jobs import DONE, NOT_RUN, JobBudget, JobOutcome, identity, with_files
from layoutkit.explore.run_journal import RunJournal, RunProgress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from layoutkit.explore.jobs import Job, Where, Workplace

_TURN_S = 0.25
_PART = ".part"


def run_jobs(
    jobs: Iterable[Job],
    folder: Path | str,
    *,
    where: Where | None = None,
    budget: JobBudget | None = None,
    resume: bool = False,
    on_result: Callable[[JobOutcome, RunProgress], None] = lambda _outcome, _progress: None,
) -> Iterator[JobOutcome]:
    """Yield one outcome for each key as it is finished; a job whose key has come before is left out.

    What is done is in ``folder``: the files of each job in the folder it names, and the line of each in
    ``journal.jsonl``. When the caller stops early, by an exception or by closing this, the jobs at work are ended and
    what is done stays.

    Args:
        jobs: What to do, read as jobs are begun.
        folder: Receives everything.
        where: Local processes, one a core, by default.
        budget: All jobs, with the default limits of each, by default.
        resume: Whether to continue the run in ``folder``: what it did is yielded first as it is asked for.
        on_result: Called with each outcome and the progress before it is yielded.

    Raises:
        LayoutkitError: If the folder cannot be used, or the workplace cannot be reached.
    """
    run = _Run(Path(folder), budget or JobBudget(), where or LocalProcesses(), resume)
    run.progress = RunProgress(len(jobs) if isinstance(jobs, Sized) else None)
    for outcome in run.outcomes(iter(jobs)):
        run.progress.add(outcome)
        on_result(outcome, run.progress)
        yield outcome


class _Run:
    """One run in progress."""

    progress: RunProgress

    def __init__(self, folder: Path, budget: JobBudget, where: Where, resume: bool) -> None:
        self.folder = folder.resolve()
        self.budget = budget
        self.where = where
        self.resume = resume
        self.seen: set[str] = set()
        self.homes: dict[str, str] = {}  # folder to the key that has it
        self.working: dict[str, Job] = {}
        self.ends_at = time.monotonic() + budget.seconds if budget.seconds is not None else None

    def outcomes(self, jobs: Iterator[Job]) -> Iterator[JobOutcome]:
        journal = RunJournal(self.folder, identity(), resume=self.resume)
        try:
            place = self.where.open(self.budget.each)
            try:
                self.progress.dashboard = place.dashboard
                yield from self._worked_off(jobs, place, journal)
            finally:
                place.stop()
                for job in self.working.values():
                    shutil.rmtree(self._part(job), ignore_errors=True)
        finally:
            journal.close()

    def _worked_off(self, jobs: Iterator[Job], place: Workplace, journal: RunJournal) -> Iterator[JobOutcome]:
        while not (late := self._is_late()):
            yield from self._begin(jobs, place, journal)
            if not self.working:
                break
            for outcome in place.finished(_TURN_S):
                self.progress.notes = place.notes
                yield self._kept(outcome, journal)
        for job in list(self.working.values()) if late else ():
            yield JobOutcome.unfinished(
                job, NOT_RUN, f"it was still working after {self.budget.seconds:g} s", "TIMEOUT"
            )
        for left in jobs if self.progress.total is not None else ():
            if self._is_new(left):
                rest = JobOutcome.unfinished(left, NOT_RUN, "the budget ended before it was begun", "TIMEOUT")
                yield journal.earlier.get(left.key, rest)

    def _begin(self, jobs: Iterator[Job], place: Workplace, journal: RunJournal) -> Iterator[JobOutcome]:
        """Begin as many jobs as there is room for; yield the outcomes of those that an earlier run did."""
        while len(self.working) < place.slots and not self._is_late():
            job = next(jobs, None)
            if job is None:
                return
            if not self._is_new(job):
                continue
            if job.key in journal.earlier:
                yield journal.earlier[job.key]
                continue
            self.working[job.key] = job
            shutil.rmtree(self._part(job), ignore_errors=True)
            self._part(job).parent.mkdir(parents=True, exist_ok=True)
            place.start(job, self._part(job))

    def _is_new(self, job: Job) -> bool:
        """Return whether the job's key has not come before.

        Raises:
            LayoutkitError: If another job has the same folder.
        """
        other = self.homes.setdefault(job.home, job.key)
        if other != job.key:
            raise LayoutkitError(f"two jobs have the same folder {job.home}; give each its own, or none")
        new = job.key not in self.seen
        self.seen.add(job.key)
        return new

    def _is_late(self) -> bool:
        return self.ends_at is not None and time.monotonic() >= self.ends_at

    def _part(self, job: Job) -> Path:
        """Return the folder that a job works in."""
        return self.folder / f"{job.home}{_PART}"

    def _kept(self, outcome: JobOutcome, journal: RunJournal) -> JobOutcome:
        """Give the files of a job their place, then write its line."""
        job = self.working.pop(outcome.key)
        part, home = self._part(job), self.folder / job.home
        outcome = with_files(outcome, part, self.budget.each)
        shutil.rmtree(home, ignore_errors=True)
        if outcome.status == DONE and part.is_dir():
            part.rename(home)
        shutil.rmtree(part, ignore_errors=True)
        journal.add(outcome)
        return outcome
