"""What a worker of a cluster does: check its own version, run one job, and send the files back as bytes."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layoutkit.explore.job_process import JobProcess
from layoutkit.explore.jobs import Job, Limits, regular_files, with_files
from layoutkit.explore.package_identity import identity
from layoutkit.explore.run_journal import described

if TYPE_CHECKING:
    from collections.abc import Mapping

_idle: list[JobProcess] = []  # this worker's warm processes; they end with it
_lock = threading.Lock()


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
        process = _taken(within)
        try:
            outcome = process.run(Job(**job), folder, _still_wanted(worker))
        finally:
            with _lock:
                _idle.append(process)
        outcome = with_files(outcome, folder, within)
        contents = {name: path.read_bytes() for name, path in regular_files(folder).items() if name in outcome.files}
    return {"worker": worker.address, "outcome": outcome.to_json(), "contents": contents}


def _taken(limits: Limits) -> JobProcess:
    with _lock:
        process = _idle.pop() if _idle else JobProcess(limits)
    process.limits = limits
    return process


def _still_wanted(worker: Any) -> Any:
    """Return a function that says whether the scheduler still wants the task of this thread; Dask cannot end it."""
    task = worker.state.tasks.get(worker.get_current_task())
    return lambda: getattr(task, "state", "executing") != "cancelled"
