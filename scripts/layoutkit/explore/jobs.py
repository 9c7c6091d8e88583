"""Jobs, their limits and their outcomes as plain JSON data; the places that run them; the version that runs here.

This machine is one of these places: one process a core, as far as the memory goes. Each process is a job server. Its
client's side starts the process, sends it jobs, and reads the outcomes.
"""

from __future__ import annotations

import hashlib
import json
import os
import select
import subprocess
import sys
import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from layoutkit.errors import LayoutkitError, UnsupportedOperationError
from sturdy.child_process import end

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

DONE, FAILED, TIME_LIMIT, MEMORY_LIMIT = "done", "failed", "time limit", "memory limit"
CRASHED, TOO_LARGE, LOST, NOT_RUN = "crashed", "too large", "lost", "not run"
_MB = 1_000_000
_NAMED = 5
FINAL = frozenset({DONE, FAILED})
"""Outcomes that another run would give again. The others depend on the machine; ``resume`` repeats those jobs."""
GRACE_S = 10.0
"""How long beyond its limit a job's answer may take: the process imports modules first, and ends the job. [s]"""
_POLL_S = 0.5
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Jobs share the cores among themselves, and a process with threads should not fork."""


@dataclass(frozen=True)
class Job:
    """One layout to make, or any other function to call.

    Attributes:
        function: ``module:name`` of a function ``(params, folder) -> answer``. It writes its files into ``folder``,
            which is new. Params and answer are JSON data. If its module has a function ``prepare(params)``, the
            job server calls it before it forks the job. ``prepare`` imports modules and reads files that many jobs
            need; a second call finds them cached.
        params: JSON data for the function.
        inputs: Text of the files that the function finds in its folder, by relative path.
        folder: Where the files are kept, relative to the folder of the run; empty for the key. Not part of the key.
    """

    function: str
    params: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    folder: str = ""

    def __post_init__(self) -> None:
        """Refuse paths out of the folder."""
        strange = [path for path in (*self.inputs, self.home) if not is_inside(path)]
        if strange:
            raise LayoutkitError(f"a job cannot be run: {', '.join(strange)} lies not within its folder")

    @cached_property
    def key(self) -> str:
        """SHA-256 of what the job is: the same key stands for the same work."""
        content = {"function": self.function, "params": self.params, "inputs": self.inputs}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    @property
    def home(self) -> str:
        """Return the folder of its files, relative to the folder of the run."""
        return self.folder or self.key[:16]

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return asdict(self)


@dataclass(frozen=True)
class Limits:
    """Limits of one job.

    Attributes:
        seconds: Wall time. [s]
        memory_mb: Memory of all its processes. [MB]
        output_mb: Sum of the sizes of its files. [MB]
    """

    seconds: float = 600.0
    memory_mb: int = 1500
    output_mb: int = 100


@dataclass(frozen=True)
class JobRunOptions:
    """Where the jobs of a run are done, and how long.

    Attributes:
        where: Local processes, one a core, by default.
        seconds: After this time no job is begun, and running jobs are ended; None for no limit. [s]
        limits: Of each job.
        resume: Whether to continue the run in the folder.
    """

    where: Where | None = None
    seconds: float | None = None
    limits: Limits = field(default_factory=Limits)
    resume: bool = False


@dataclass(frozen=True)
class JobOutcome:
    """The outcome of one job.

    Attributes:
        key: That of the job.
        status: ``done``; ``failed``: the function raised an error, and would again; ``time limit``, ``memory limit``
            or ``too large``: it exceeded a limit; ``crashed``: its process ended without an answer, or its machine
            failed, for example with a full disk; ``lost``: workers of a cluster took it and did not answer; ``not
            run``: the budget ended first. Only ``done`` has files.
        folder: Where its files are, relative to the folder of the run.
        answer: What the function returned.
        error: ``code``, ``message`` and ``details`` where it is not ``done``.
        files: SHA-256 of each file, by path relative to ``folder``.
        seconds: Wall time. [s]
        cpu_s: CPU time of all its processes. [s]
        peak_mb: Most memory that its processes held. [MB]
        worker: Where it ran: ``local``, or the address of a worker.
        resumed: Whether an earlier run did it.
    """

    key: str
    status: str
    folder: str = ""
    answer: Any = None
    error: Mapping[str, Any] | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    cpu_s: float = 0.0
    peak_mb: float = 0.0
    worker: str = ""
    resumed: bool = False

    @classmethod
    def unfinished(cls, job: Job, status: str, message: str, code: str = "INTERNAL_ERROR") -> JobOutcome:
        """Return the outcome of a job that gave no answer."""
        return cls(job.key, status, job.home, error={"code": code, "message": message, "details": None})

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON data: one line of the journal."""
        return asdict(self)


def is_inside(path: str) -> bool:
    """Return whether a path is relative and names something below its folder."""
    pure = PurePosixPath(path)
    return bool(pure.parts) and not pure.is_absolute() and ".." not in pure.parts and "\\" not in path


def regular_files(folder: Path) -> dict[str, Path]:
    """Return the files below ``folder`` by relative path, sorted; links are left out, also those to folders."""
    found = {}
    for home, folders, names in os.walk(folder):
        folders.sort()  # os.walk enters no linked folder
        for path in (Path(home, name) for name in names):
            if path.is_file() and not path.is_symlink():
                found[path.relative_to(folder).as_posix()] = path
    return dict(sorted(found.items()))


def with_files(outcome: JobOutcome, folder: Path, limits: Limits) -> JobOutcome:
    """Return ``outcome`` with the hashes of the files in ``folder``, or that they are too large to be kept."""
    if outcome.status != DONE:
        return outcome
    found = regular_files(folder)
    sizes = {name: path.stat().st_size for name, path in found.items()}
    if sum(sizes.values()) > limits.output_mb * _MB:
        largest = sorted(sizes, key=lambda name: (-sizes[name], name))[:_NAMED]
        text = ", ".join(f"{name} {sizes[name] / _MB:.1f} MB" for name in largest)
        message = f"its files are larger than {limits.output_mb} MB together: {text}"
        error = {"code": "INTERNAL_ERROR", "message": message, "details": None}
        return replace(outcome, status=TOO_LARGE, answer=None, error=error)
    from layoutkit.layout.reports import sha256_of  # imports KLayout, which a job server leaves to its jobs

    return replace(outcome, files={name: sha256_of(path) or "" for name, path in found.items()})


class Workplace(Protocol):
    """Runs jobs on this machine or on a cluster. The caller ends with ``stop``, which ends all jobs."""

    @property
    def slots(self) -> int:
        """How many jobs it takes at a time; it may change."""

    @property
    def dashboard(self) -> str:
        """Address of a page that shows what its workers do; empty where there is none."""

    @property
    def notes(self) -> Mapping[str, str]:
        """What is wrong with some of its workers, by their address."""

    def start(self, job: Job, folder: Path) -> None:
        """Take ``job``; its files are to be in ``folder``, which does not exist, when its outcome is ``done``."""

    def finished(self, seconds: float) -> list[JobOutcome]:
        """Return the outcomes of jobs that have ended, after at most ``seconds`` without one."""

    def stop(self) -> None:
        """End all jobs; what they made so far is not kept."""


class Where(Protocol):
    """Says where jobs are to run; ``open`` makes the workplace."""

    def open(self, limits: Limits) -> Workplace:
        """Return the workplace; each job has these limits."""


PACKAGE, LAYOUT_LIBRARY = "analog-layout-skills", "klayout"
_SUFFIXES = frozenset({".py", ".yaml", ".json"})


@lru_cache(maxsize=1)
def identity() -> dict[str, str]:
    """Return the versions on which the bytes of a layout depend.

    ``sources`` is a hash of the engine's programs and technology files: two checkouts may have the same version.
    """
    home = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(path for path in home.rglob("*") if path.suffix in _SUFFIXES):
        digest.update(f"{path.relative_to(home).as_posix()} {path.stat().st_size}\n".encode())
        digest.update(path.read_bytes())
    return {PACKAGE: _version(PACKAGE), "sources": digest.hexdigest()[:16], LAYOUT_LIBRARY: _version(LAYOUT_LIBRARY)}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"


def described(identity: Mapping[str, str] | None) -> str:
    """Return a version as words."""
    return ", ".join(f"{name} {value}" for name, value in (identity or {}).items()) or "an unknown version"


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
        from layoutkit.flow.tries import free_memory_mb

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
