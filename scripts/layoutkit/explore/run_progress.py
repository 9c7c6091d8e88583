"""How far a run is: counts, rate and estimate."""

from __future__ import annotations

import time
from collections import Counter, deque
from typing import TYPE_CHECKING, Any

from layoutkit.explore.jobs import NOT_RUN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layoutkit.explore.jobs import Outcome

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

    def add(self, outcome: Outcome) -> None:
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
