"""Where jobs are run: what the engine asks of local processes and of a cluster alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from layoutkit.explore.jobs import Job, Limits, Outcome


class Workplace(Protocol):
    """Runs jobs; used as a context, so that nothing runs on when it is left."""

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

    def finished(self, seconds: float) -> list[Outcome]:
        """Return the outcomes of jobs that have ended, after at most ``seconds`` without one."""

    def stop(self) -> None:
        """End all jobs; what they made so far is not kept."""


class Where(Protocol):
    """Describes a workplace."""

    def open(self, limits: Limits) -> Workplace:
        """Return the workplace; each job has these limits."""
