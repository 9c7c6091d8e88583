"""Run many jobs, each once: on this machine or a cluster, within a budget, with a journal for a later run.

The journal is ``journal.jsonl``: a line for what made it and then one line for each finished job. A line is on the disk
before the next job is reported, so that a run whose machine fails loses nothing but the jobs that were working. A last
line that was not written whole is left out and removed. The progress holds counts, rate and an estimate of the time.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layoutkit.errors import FileError, LayoutConflictError, LayoutkitError
from layoutkit.explore.jobs import (
    DONE,
    FINAL,
    NOT_RUN,
    Job,
    JobOutcome,
    JobRunOptions,
    LocalProcesses,
    Workplace,
    described,
    identity,
    with_files,
)
from layoutkit.layout.files import make_folder
from layoutkit.layout.reports import sha256_of
from sturdy.atomic_files import lock

if TYPE_CHECKING:
    from typing import BinaryIO


_TURN_S = 0.25
_PART = ".part"


def run_jobs(
    jobs: Iterable[Job],
    folder: Path | str,
    options: JobRunOptions | None = None,
    on_result: Callable[[JobOutcome, RunProgress], None] = lambda _outcome, _progress: None,
) -> Iterator[JobOutcome]:
    """Yield one outcome for each key as it is finished; a job whose key has come before is left out.

    What is done is in ``folder``: the files of each job in the folder it names, and the line of each in
    ``journal.jsonl``. When the caller stops early, by an exception or by closing this, the jobs at work are ended and
    what is done stays.

    Args:
        jobs: What to do, read as jobs are begun.
        folder: Receives everything.
        options: Where and how long. Results of an earlier run that is continued are yielded first.
        on_result: Called with each outcome and the progress before it is yielded.

    Raises:
        LayoutkitError: If the folder cannot be used, or the workplace cannot be reached.
    """
    run = _Run(Path(folder), options or JobRunOptions())
    run.progress = RunProgress(len(jobs) if isinstance(jobs, Sized) else None)
    for outcome in run.outcomes(iter(jobs)):
        run.progress.add(outcome)
        on_result(outcome, run.progress)
        yield outcome


class _Run:
    """One run in progress."""

    progress: RunProgress

    def __init__(self, folder: Path, options: JobRunOptions) -> None:
        self.folder = folder.resolve()
        self.options = options
        self.seen: set[str] = set()
        self.homes: dict[str, str] = {}  # folder to the key that has it
        self.working: dict[str, Job] = {}
        self.ends_at = time.monotonic() + options.seconds if options.seconds is not None else None

    def outcomes(self, jobs: Iterator[Job]) -> Iterator[JobOutcome]:
        journal = RunJournal(self.folder, identity(), resume=self.options.resume)
        try:
            place = (self.options.where or LocalProcesses()).open(self.options.limits)
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
                job, NOT_RUN, f"it was still working after {self.options.seconds:g} s", "TIMEOUT"
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
        outcome = with_files(outcome, part, self.options.limits)
        shutil.rmtree(home, ignore_errors=True)
        if outcome.status == DONE and part.is_dir():
            part.rename(home)
        shutil.rmtree(part, ignore_errors=True)
        journal.add(outcome)
        return outcome


JOURNAL = "journal.jsonl"
FORMAT = "layout-jobs/1"
_FIELDS = frozenset(each.name for each in fields(JobOutcome))


class RunJournal:
    """What has been done in the folder of a run.

    Args:
        folder: That of the run.
        identity: Version of what does the jobs; a run continues with the same one only.
        resume: Whether to continue an earlier run; else the folder must not hold one.

    Raises:
        FileError: If the folder holds a run and ``resume`` is false, or what it holds is no journal.
        LayoutConflictError: If another program writes this journal, or another version of the package made it.
    """

    def __init__(self, folder: Path, identity: Mapping[str, str], *, resume: bool) -> None:
        self.path = folder / JOURNAL
        self.earlier: dict[str, JobOutcome] = {}
        """Outcomes of an earlier run that stand, by key: their files are still as they were."""
        make_folder(folder)
        try:
            self._file: BinaryIO = self.path.open("a+b")
        except OSError as error:
            raise FileError(f"cannot write {self.path}: {error.strerror}", details={"path": str(self.path)}) from error
        try:
            self._lock()
            self._read(folder, dict(identity), resume)
        except BaseException:
            self._file.close()
            raise

    def _lock(self) -> None:
        with contextlib.suppress(OSError):  # no lock, no writing: two writers would mix their lines
            if lock(self._file.fileno(), wait=False):
                return
        raise LayoutConflictError(f"another program writes {self.path}; wait for it or take another folder")

    def _read(self, folder: Path, identity: dict[str, str], resume: bool) -> None:
        self._file.seek(0)
        data = self._file.read()
        whole = data.rpartition(b"\n")[0] + b"\n" if b"\n" in data else b""
        if not resume:
            refuse_earlier_run(folder)
        self._file.truncate(len(whole))
        if not whole:
            self._append({"format": FORMAT, "made_by": identity})
            return
        head, *lines = whole.splitlines()
        try:
            first = json.loads(head)
            outcomes = [JobOutcome(**{k: v for k, v in json.loads(line).items() if k in _FIELDS}) for line in lines]
            form, made_by = first.get("format"), first.get("made_by")
        except (ValueError, TypeError, AttributeError):
            form = None
        if form != FORMAT:
            raise FileError(f"{self.path} is not a journal of layout jobs ({FORMAT}); take another folder")
        if made_by != identity:
            raise LayoutConflictError(
                f"{self.path} was made by {described(made_by)}, this is {described(identity)}: layouts may differ; "
                "take another folder, or continue with the version that began",
                details={"made_by": made_by, "this": identity},
            )
        for outcome in outcomes:
            self.earlier.pop(outcome.key, None)  # the last line of a key counts
            if outcome.status in FINAL and _has_its_files(folder, outcome):
                self.earlier[outcome.key] = replace(outcome, resumed=True)

    def add(self, outcome: JobOutcome) -> None:
        """Write the line of a finished job and wait until it is on the disk."""
        self._append(outcome.to_json())

    def _append(self, value: Mapping[str, Any]) -> None:
        try:
            self._file.write(json.dumps(value).encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise FileError(
                f"cannot write {self.path}: {error.strerror}; what is done is kept: resume the run"
            ) from error

    def close(self) -> None:
        """Close the file, which frees it for others; a line that could not be written has been reported."""
        with contextlib.suppress(OSError):
            self._file.close()


def refuse_earlier_run(folder: Path) -> None:
    """Raise a FileError if a folder holds a run, before anything of a new one is written into it."""
    path = folder / JOURNAL
    if path.is_file() and path.stat().st_size:
        raise FileError(f"{folder} holds a run already; resume it (resume=True, --resume) or take another folder")


def _has_its_files(folder: Path, outcome: JobOutcome) -> bool:
    home = folder / outcome.folder
    return outcome.status != DONE or all(sha256_of(home / name) == sha for name, sha in outcome.files.items())


_RECENT = 50
"""The rate is that of this number of last jobs."""


class RunProgress:
    """Counts outcomes as they come.

    Args:
        total: Jobs of the run; None where nobody knows yet.

    Attributes:
        counts: Outcomes by status, those of an earlier run included.
        resumed: How many of them an earlier run did.
        dashboard: Address of a page that shows what the workers do, or "".
        notes: Why some workers of a cluster get no jobs, by their address.
    """

    def __init__(self, total: int | None) -> None:
        self.total = total
        self.counts: Counter[str] = Counter()
        self.resumed = 0
        self.dashboard = ""
        self.notes: Mapping[str, str] = {}
        self._begun = time.monotonic()
        self._ends: deque[float] = deque(maxlen=_RECENT)

    def add(self, outcome: JobOutcome) -> None:
        """Count an outcome."""
        self.counts[outcome.status] += 1
        if outcome.resumed:
            self.resumed += 1
        elif outcome.status != NOT_RUN:
            self._ends.append(time.monotonic())

    @property
    def finished(self) -> int:
        """Return how many jobs have an outcome."""
        return sum(self.counts.values())

    @property
    def per_minute(self) -> float | None:
        """Return how many jobs end in a minute, of late; None before the first."""
        if not self._ends:
            return None
        first = self._begun if len(self._ends) < _RECENT else self._ends[0]
        count = len(self._ends) - (len(self._ends) == _RECENT)
        return 60 * count / max(self._ends[-1] - first, 1e-3)

    @property
    def seconds_left(self) -> float | None:
        """Return an estimate of the time until the run ends; None where the rate or the total is unknown. [s]"""
        if self.total is None or not self.per_minute:
            return None
        return max(0, self.total - self.finished) * 60 / self.per_minute

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON data."""
        rate, left = self.per_minute, self.seconds_left
        return {
            "finished": self.finished,
            "total": self.total,
            "resumed": self.resumed,
            "counts": dict(sorted(self.counts.items())),
            "per_minute": None if rate is None else round(rate, 2),
            "seconds_left": None if left is None else round(left, 1),
            "dashboard": self.dashboard,
            "refused_workers": dict(self.notes),
        }

    def __str__(self) -> str:
        """Return a line such as ``12 of 64, 9.5 a minute, 5 min left; 11 done, 1 failed``."""
        rate, left = self.per_minute, self.seconds_left
        parts = [f"{self.finished} of {self.total}" if self.total is not None else str(self.finished)]
        parts += [f"{rate:.3g} a minute"] if rate is not None else []
        parts += [f"{_duration(left)} left"] if left is not None else []
        return ", ".join(parts) + "; " + ", ".join(f"{n} {status}" for status, n in sorted(self.counts.items()))


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
