"""Jobs, their limits and their outcomes as plain JSON data; the places that run them; the version that runs here."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Protocol

from layoutkit.errors import LayoutkitError
from layoutkit.layout.reports import sha256_of

if TYPE_CHECKING:
    from collections.abc import Mapping


DONE, FAILED, TIME_LIMIT, MEMORY_LIMIT = "done", "failed", "time limit", "memory limit"
CRASHED, TOO_LARGE, LOST, NOT_RUN = "crashed", "too large", "lost", "not run"
_MB = 1_000_000
_NAMED = 5
FINAL = frozenset({DONE, FAILED})
"""Outcomes that another run would give again. The others depend on the machine; ``resume`` repeats those jobs."""


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
