"""Jobs on the workers of ``dask.distributed``, found by the address of a scheduler; each job is counted once.

Inputs travel with the task and files come back with the result, so nothing needs a shared disk. Dask gives the tasks
of a worker that ended, or that it has not heard of for five minutes, to another one. A job is given only to workers
that run the version of this client.

A worker checks its own version, runs one job, and sends the files back as bytes.
"""

from __future__ import annotations

import secrets
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layoutkit.errors import FileError, LayoutkitError, MissingProgramError
from layoutkit.explore.jobs import (
    LOST,
    Job,
    JobOutcome,
    Limits,
    WarmProcesses,
    described,
    identity,
    is_inside,
    regular_files,
    with_files,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

TASKS_PER_THREAD = 2
"""Jobs that a worker has at a time: one runs and the next is ready, so that the worker never waits for the client."""
_CONNECT_S = 15
_REFRESH_S = 1.0
_POLL_S = 0.02
_RETRIES = 2


@dataclass(frozen=True)
class DaskCluster:
    """Workers behind a scheduler. Whoever reaches a scheduler without TLS can run programs on all of its workers.

    Attributes:
        address: ``tcp://HOST:PORT`` or ``tls://HOST:PORT``; ``tcp://``, or with certificates ``tls://``, may be left
            out.
        ca: Certificates that the cluster's are checked against (PEM file); together with the other two or not at all.
        cert: Certificate of this client (PEM file).
        key: Private key of it (PEM file).
        worker_wait_s: For so long jobs wait for a worker that may do them. [s]
    """

    address: str
    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    worker_wait_s: float = 60.0

    def __post_init__(self) -> None:
        """Refuse certificates that do not belong together or to the address."""
        given = [name for name in ("ca", "cert", "key") if getattr(self, name)]
        if given and len(given) < 3:
            raise LayoutkitError(f"TLS needs ca, cert and key; got only {' and '.join(given)}")
        scheme, _, rest = self.address.rpartition("://")
        if scheme not in ("", "tcp", "tls") or ":" not in rest:
            raise LayoutkitError(
                f"address {self.address!r} of a scheduler must have the form tcp://HOST:8786 or tls://HOST:8786"
            )
        if scheme == "tls" and not given:
            raise LayoutkitError(f"{self.address} needs the TLS files ca, cert and key")
        if scheme == "tcp" and given:
            raise LayoutkitError(f"{self.address} is not encrypted, but TLS files are given; write tls://{rest}")

    def open(self, limits: Limits) -> DaskWorkplace:
        """Return the connected cluster.

        Raises:
            FileError: If a TLS file does not exist.
            MissingProgramError: If Dask is not installed here, or no scheduler answers.
        """
        try:
            from distributed import Client, Security
        except ImportError:
            raise MissingProgramError(
                "a cluster needs dask.distributed; install the package with its extra 'explore'"
            ) from None
        scheme, _, rest = self.address.rpartition("://")
        address = f"{scheme or ('tls' if self.ca else 'tcp')}://{rest}"
        options: dict[str, Any] = {}
        if self.ca:
            absent = [each for each in (self.ca, self.cert, self.key) if each and not Path(each).is_file()]
            if absent:
                raise FileError(f"there is no TLS file {', '.join(absent)}", details={"paths": absent})
            files = {"tls_ca_file": self.ca, "tls_client_cert": self.cert, "tls_client_key": self.key}
            options["security"] = Security(require_encryption=True, **files)
        try:
            client = Client(address, timeout=_CONNECT_S, set_as_default=False, **options)
        except (OSError, ValueError, TypeError) as error:  # also what ssl says to files that are no certificates
            why = next(iter(str(error).splitlines()), type(error).__name__)
            raise MissingProgramError(f"no scheduler answers at {address}: {why}") from error
        return DaskWorkplace(client, limits, self.worker_wait_s)


@dataclass
class _Task:
    """A job that was taken.

    Attributes:
        future: Dask's; None while no worker may do it.
        workers: Those it may run on.
        attempt: How often it was given to the scheduler.
    """

    job: Job
    folder: Path
    future: Any = None
    workers: tuple[str, ...] = ()
    attempt: int = 0


class DaskWorkplace:
    """The workers behind one scheduler, through a connected client of ``distributed``."""

    def __init__(self, client: Any, limits: Limits, worker_wait_s: float) -> None:
        self._client = client
        self._limits = limits
        self._worker_wait_s = worker_wait_s
        self._tasks: dict[str, _Task] = {}
        self._threads: dict[str, int] = {}  # of each worker that is there, by address
        self._refused: dict[str, str] = {}  # why a worker gets no jobs, also of those that have gone
        self._looked_at = float("-inf")
        self._seen_at = time.monotonic()  # when there was last a worker that may work
        services = client.scheduler_info().get("services", {})
        self.dashboard = str(client.dashboard_link) if "dashboard" in services else ""
        self._look()

    @property
    def slots(self) -> int:
        """How many jobs it takes at a time."""
        return max(1, TASKS_PER_THREAD * sum(self._threads[address] for address in self._accepted()))

    @property
    def notes(self) -> Mapping[str, str]:
        """Return why some workers get no jobs, by their address."""
        return dict(sorted(self._refused.items()))

    def start(self, job: Job, folder: Path) -> None:
        """Take ``job``."""
        self._tasks[job.key] = _Task(job, folder)
        self._submit(self._tasks[job.key])

    def finished(self, seconds: float) -> list[JobOutcome]:
        """Return the outcomes of jobs that have ended, after at most ``seconds`` without one.

        Raises:
            MissingProgramError: If the scheduler no longer answers.
        """
        try:
            self._look()
            return self._without_worker() or self._gathered(seconds)
        except Exception as error:
            if not self._is_gone(error):
                raise
            raise MissingProgramError(
                f"the scheduler no longer answers ({type(error).__name__}); finished jobs are kept: resume the run"
            ) from error

    def stop(self) -> None:
        """Cancel all tasks; their workers end them."""
        futures = [task.future for task in self._tasks.values() if task.future is not None]
        try:
            self._client.cancel(futures)
            self._client.close(timeout=5)
        except Exception as error:  # the scheduler may be gone, and with it the tasks
            if not self._is_gone(error):
                raise

    def _is_gone(self, error: Exception) -> bool:
        """Return whether an error says that the scheduler no longer answers.

        The connection closed, or the client did so with it, for which Dask has a class of its own or none.
        """
        closed = self._client.status == "closed" and not isinstance(error, LayoutkitError)
        return closed or isinstance(error, (OSError, RuntimeError))

    def _accepted(self) -> list[str]:
        """Return the workers that may work, sorted."""
        return sorted(self._threads.keys() - self._refused.keys())

    def _look(self) -> None:
        """See who is there, at most once a second, and ask each new worker for its version."""
        now = time.monotonic()
        if now - self._looked_at >= _REFRESH_S:
            self._looked_at = now
            threads = dict(self._client.nthreads())
            new = sorted(threads.keys() - self._threads.keys())
            asked = self._client.run(*call_there("worker_identity"), workers=new, on_error="return") if new else {}
            for address, found in asked.items():
                self._refused.pop(address, None)  # it may have been updated
                if isinstance(found, BaseException):
                    self._refused[address] = f"it cannot run this package: {type(found).__name__}: {found}"
                elif found != identity():
                    self._refused[address] = f"it runs {described(found)}; this client runs {described(identity())}"
            self._threads = threads
        if self._accepted():
            self._seen_at = now

    def _submit(self, task: _Task) -> None:
        """Submit a task to the workers that may run it; it waits if there is none."""
        task.workers, task.future = tuple(self._accepted()), None
        if not task.workers:
            return
        task.attempt += 1
        task.future = self._client.submit(
            *call_there("run_job", task.job.to_json(), vars(self._limits), identity()),
            key=f"layout-{task.job.key[:32]}-{secrets.token_hex(4)}",  # apart from tasks of other runs
            workers=list(task.workers),
            retries=_RETRIES,
            pure=False,
        )

    def _lost(self, task: _Task, why: str) -> JobOutcome:
        del self._tasks[task.job.key]
        if task.future is not None:
            task.future.cancel()
        return JobOutcome.unfinished(task.job, LOST, why[:500], "SERVICE_UNAVAILABLE")

    def _without_worker(self) -> list[JobOutcome]:
        """Submit tasks again whose workers are gone; return the outcomes of those that waited too long for a worker."""
        here = self._accepted()
        for task in self._tasks.values():
            if not set(here).intersection(task.workers):
                if task.future is not None:
                    task.future.cancel()
                self._submit(task)
        if here or time.monotonic() < self._seen_at + self._worker_wait_s:
            return []
        others = "".join(f"; {address}: {why}" for address, why in self.notes.items())
        text = f"no worker could run it for {self._worker_wait_s:g} s{others}"
        return [self._lost(task, text) for task in list(self._tasks.values())]

    def _gathered(self, seconds: float) -> list[JobOutcome]:
        end = time.monotonic() + seconds
        while not (ended := [task for task in self._tasks.values() if task.future is not None and task.future.done()]):
            if time.monotonic() >= end:
                break
            time.sleep(_POLL_S)
        return [outcome for task in ended for outcome in self._received(task)]

    def _received(self, task: _Task) -> list[JobOutcome]:
        """Return the outcome of a task that has ended; none if the scheduler forgot it and it was submitted again."""
        status = task.future.status
        if status == "error":
            fault = task.future.exception()
            kind = type(fault).__name__
            return [self._lost(task, f"{'its workers ended' if kind == 'KilledWorker' else kind}: {fault}")]
        if status != "finished" and task.attempt > _RETRIES:
            return [self._lost(task, f"the task was {status}")]
        if status != "finished":
            self._submit(task)
            return []
        answer = task.future.result()
        write_contents(answer["contents"], task.folder)
        del self._tasks[task.job.key]
        return [replace(JobOutcome(**answer["outcome"]), folder=task.job.home, worker=answer["worker"])]


def write_contents(contents: Mapping[str, bytes], folder: Path) -> None:
    """Write the files that a worker sent; a path that leads out of the folder is left out."""
    try:
        for name in filter(is_inside, contents):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(contents[name])
    except OSError as error:
        raise FileError(
            f"cannot write into {folder}: {error.strerror}; what is done is kept: resume the run"
        ) from error


_processes = WarmProcesses()  # of this worker; they end with it


def call_there(name: str, *arguments: Any) -> tuple[Any, ...]:
    """Return a function and its arguments that call ``name`` of this module where the package is installed.

    A worker that cannot import the function of a task ends, and so does one after the other. ``eval`` is on every
    worker; there the missing package is an error of the task, and the scheduler needs no package at all.
    """
    return eval, f"__import__({__name__!r}, fromlist=[{name!r}]).{name}(*arguments)", {"arguments": arguments}


def worker_identity() -> dict[str, str]:
    """Return the version of the package on this worker."""
    return identity()


def run_job(job: Mapping[str, Any], limits: Mapping[str, Any], expected: Mapping[str, str]) -> dict[str, Any]:
    """Return ``worker`` (its address), ``outcome`` and ``contents`` (bytes by path) of one job.

    Args:
        job: The job as JSON data.
        limits: Its limits as JSON data.
        expected: Version of the client; Dask may have restarted this worker with another one since it was asked.

    Raises:
        ValueError: If this worker runs another version.
    """
    from distributed import get_worker

    worker = get_worker()
    if identity() != expected:
        raise ValueError(f"{worker.address} runs {described(identity())}; the client runs {described(expected)}")
    within = Limits(**limits)
    with tempfile.TemporaryDirectory(prefix="layout-job-") as home:
        folder = Path(home, "files")
        outcome = _processes.run(Job(**job), folder, within, _still_wanted(worker))
        outcome = with_files(outcome, folder, within)
        contents = {name: path.read_bytes() for name, path in regular_files(folder).items() if name in outcome.files}
    return {"worker": worker.address, "outcome": outcome.to_json(), "contents": contents}


def _still_wanted(worker: Any) -> Any:
    """Return a function that says whether the scheduler still wants the task of this thread; Dask cannot end it."""
    task = worker.state.tasks.get(worker.get_current_task())
    return lambda: getattr(task, "state", "executing") != "cancelled"
