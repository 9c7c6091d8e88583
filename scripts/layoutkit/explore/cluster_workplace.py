"""Run jobs on the workers of a cluster; each job is counted once, whatever becomes of workers.

Inputs travel with the task and files come back with the result, so nothing needs a shared disk. Dask gives the task of
a worker that died to another one. This module notices what Dask does not: a worker with another version, one that
holds a task and does not answer, and the lack of any worker that may work.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from layoutkit.errors import FileError, LayoutkitError, MissingProgramError
from layoutkit.explore.cluster_task import call_there
from layoutkit.explore.cluster_workers import ClusterWorkers
from layoutkit.explore.job_process import GRACE_S
from layoutkit.explore.jobs import LOST, Job, Limits, Outcome, is_inside
from layoutkit.explore.package_identity import identity

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

TASKS_PER_THREAD = 2
"""Jobs that a worker has at a time: one runs and the next is ready, so that the worker never waits for the client."""
ATTEMPTS = 3


@dataclass
class _Task:
    """A job that was taken.

    Attributes:
        future: Dask's; None while it waits for a worker that may do it.
        bound_to: Workers that the task is bound to; empty for any.
        since: When it was given to the scheduler. [s, monotonic]
        attempt: How often it was given to it.
        faults: Why it was given again.
    """

    job: Job
    folder: Path
    future: Any = None
    bound_to: tuple[str, ...] = ()
    since: float = 0.0
    attempt: int = 0
    faults: tuple[str, ...] = ()


class ClusterWorkplace:
    """The workers behind one scheduler."""

    def __init__(self, client: Any, limits: Limits, worker_wait_s: float) -> None:
        self._client = client
        self._limits = limits
        self._worker_wait_s = worker_wait_s
        self._token = secrets.token_hex(4)
        self._tasks: dict[str, _Task] = {}
        self._ended: SimpleQueue[tuple[str, int]] = SimpleQueue()
        self._workers = ClusterWorkers(client, self._token)
        services = client.scheduler_info().get("services", {})
        self.dashboard = str(client.dashboard_link) if "dashboard" in services else ""

    @property
    def slots(self) -> int:
        """How many jobs it takes at a time."""
        threads = self._workers.threads
        return max(1, TASKS_PER_THREAD * sum(threads[address] for address in self._workers.accepted))

    @property
    def notes(self) -> Mapping[str, str]:
        """Return why some workers get no jobs, by their address."""
        return dict(sorted(self._workers.refused.items()))

    def start(self, job: Job, folder: Path) -> None:
        """Take ``job``."""
        self._tasks[job.key] = _Task(job, folder)
        self._submit(self._tasks[job.key])

    def finished(self, seconds: float) -> list[Outcome]:
        """Return the outcomes of jobs that have ended, after at most ``seconds`` without one.

        Raises:
            MissingProgramError: If the scheduler no longer answers.
        """
        try:
            self._workers.look()
            lost = [*self._without_worker(), *self._overdue()]
            return lost or self._gathered(seconds)
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

    def _submit(self, task: _Task) -> None:
        """Submit a task; it waits if no worker may run it."""
        task.future = None
        if not self._workers.accepted:
            return
        task.attempt += 1
        task.since = time.monotonic()
        task.bound_to = tuple(self._workers.restriction or ())
        task.future = self._client.submit(
            *call_there("run_job", task.job.to_json(), vars(self._limits), identity()),
            key=f"layout-{task.job.key[:32]}-{self._token}-{task.attempt}",
            workers=list(task.bound_to) or None,
            pure=False,
        )
        ended = (task.job.key, task.attempt)
        task.future.add_done_callback(lambda _: self._ended.put(ended))

    def _again(self, task: _Task, fault: str) -> list[Outcome]:
        """Submit a task again; return its outcome as lost if that was tried often enough."""
        task.faults += (fault,)
        if len(task.faults) >= ATTEMPTS:
            return [self._lost(task, "; ".join(task.faults))]
        self._submit(task)
        return []

    def _lost(self, task: _Task, why: str) -> Outcome:
        del self._tasks[task.job.key]
        if task.future is not None:
            task.future.cancel()
        return Outcome.unfinished(task.job, LOST, why, "SERVICE_UNAVAILABLE")

    def _without_worker(self) -> list[Outcome]:
        """Submit tasks again whose workers are gone; return the outcomes of those that waited too long for a worker."""
        here = set(self._workers.accepted)
        for task in self._tasks.values():
            if task.future is None or (task.bound_to and not here & set(task.bound_to)):
                if task.future is not None:
                    task.future.cancel()
                self._submit(task)
        if here or time.monotonic() < self._workers.seen_at + self._worker_wait_s:
            return []
        others = "".join(f"; {address}: {why}" for address, why in self.notes.items())
        text = f"no worker could run it for {self._worker_wait_s:g} s{others}"
        return [self._lost(task, text) for task in list(self._tasks.values())]

    def _overdue(self) -> list[Outcome]:
        """Take tasks from workers that hold them without an answer for longer than two jobs may take."""
        longest = TASKS_PER_THREAD * (self._limits.seconds + GRACE_S)
        late = [t for t in self._tasks.values() if t.future is not None and time.monotonic() > t.since + longest]
        if not late:
            return []
        holders = {key: address for address, keys in self._client.processing().items() for key in keys}
        found = []
        for task in late:
            holder = holders.get(task.future.key)
            if holder is not None:
                self._workers.refused.setdefault(holder, f"it has not answered for {longest:g} s")
        for task in late:
            holder = holders.get(task.future.key)
            task.future.cancel()
            found += self._again(task, f"{holder or 'no worker'} has not answered for {longest:g} s")
        return found

    def _gathered(self, seconds: float) -> list[Outcome]:
        ended = []
        try:
            ended.append(self._ended.get(timeout=seconds))
            while True:
                ended.append(self._ended.get_nowait())
        except Empty:
            pass
        found = []
        for key, attempt in ended:
            task = self._tasks.get(key)
            if task is not None and task.attempt == attempt:  # else it was taken from that worker
                found += self._received(task)
        return found

    def _received(self, task: _Task) -> list[Outcome]:
        status = task.future.status
        if status == "error":
            fault = task.future.exception()
            if type(fault).__name__ == "KilledWorker":  # Dask has given it to several workers
                return [self._lost(task, f"workers ended while they did it: {fault}"[:500])]
            return self._again(task, f"{type(fault).__name__}: {fault}"[:500])
        if status != "finished":
            return self._again(task, f"the task was {status}")
        answer = task.future.result()
        if "foreign" in answer:
            self._workers.refuse_version(answer["worker"], answer["foreign"])
            self._submit(task)
            return []
        _write(answer["contents"], task.folder)
        del self._tasks[task.job.key]
        outcome = Outcome(**answer["outcome"])
        return [replace(outcome, folder=task.job.home, worker=answer["worker"])]


def _write(contents: Mapping[str, bytes], folder: Path) -> None:
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
