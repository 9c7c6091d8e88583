"""The workers of a cluster as the client knows them: which are connected, which get jobs, and why others get none."""

from __future__ import annotations

import time
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from layoutkit.explore.cluster_task import call_there
from layoutkit.explore.package_identity import identity
from layoutkit.explore.run_journal import described

if TYPE_CHECKING:
    from collections.abc import Mapping

_REFRESH_S = 1.0
_FIRST_LOOK_S = 5.0


class ClusterWorkers:
    """Looks who is there once a second and asks each new worker for its version before it may be relied on.

    Args:
        client: A connected client of ``distributed``.
        token: What sets this run's tasks apart from others'.

    Attributes:
        threads: Number of threads of each worker that is there, by address.
        refused: Why a worker gets no jobs, by address, also of workers that have gone.
        seen_at: When there was last a worker that may work. [s, monotonic]
    """

    def __init__(self, client: Any, token: str) -> None:
        self.threads: dict[str, int] = {}
        self.refused: dict[str, str] = {}
        self.seen_at = time.monotonic()
        self._client = client
        self._token = token
        self._asked: dict[str, Any] = {}  # address to the task that asks it, None when it has answered
        self._answers: SimpleQueue[tuple[str, Any]] = SimpleQueue()
        self._looked_at = 0.0
        begun = time.monotonic()
        self.look()
        while any(self._asked.values()) and time.monotonic() < begun + _FIRST_LOOK_S:
            self._hear(0.1)

    def look(self) -> None:
        """Ask the scheduler for its workers, at most once a second.

        Raises:
            OSError: If the scheduler does not answer.
        """
        now = time.monotonic()
        if now - self._looked_at >= _REFRESH_S:
            self._looked_at = now
            self.threads = dict(self._client.nthreads())
            for address in self._asked.keys() - self.threads.keys():
                del self._asked[address]  # should it come back, it may have been updated
            for address in sorted(self.threads.keys() - self._asked.keys()):
                self._ask(address)
        self._hear(0.0)
        if self.accepted:
            self.seen_at = now

    @property
    def accepted(self) -> list[str]:
        """Return the workers that may work, sorted."""
        return sorted(self.threads.keys() - self.refused.keys())

    @property
    def restriction(self) -> list[str] | None:
        """Return the workers that a task must be bound to; None where every worker may work."""
        return self.accepted if self.threads.keys() & self.refused.keys() else None

    def refuse_version(self, address: str, found: Mapping[str, str]) -> None:
        """Note that a worker runs another version of the package; it gets no jobs."""
        self.refused[address] = f"it runs {described(found)}; this client runs {described(identity())}"

    def _ask(self, address: str) -> None:
        task = self._client.submit(
            *call_there("worker_identity"),
            key=f"layout-version-{self._token}-{address}",
            workers=[address],
            pure=False,
        )
        self._asked[address] = task
        task.add_done_callback(lambda done, address=address: self._answers.put((address, done)))

    def _hear(self, seconds: float) -> None:
        while True:
            try:
                address, task = self._answers.get(timeout=seconds) if seconds else self._answers.get_nowait()
            except Empty:
                return
            seconds = 0.0
            if address not in self._asked:
                continue  # it has gone meanwhile
            self._asked[address] = None
            if task.status == "finished":
                found = task.result()
                if found == identity():
                    self.refused.pop(address, None)
                else:
                    self.refuse_version(address, found)
            elif task.status == "error":
                fault = task.exception()
                self.refused[address] = f"it cannot run this package: {type(fault).__name__}: {fault}"
