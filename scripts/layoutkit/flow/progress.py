"""Lines of progress while a build runs, and what each stage costs."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Progress:
    """Reports each stage as it begins, with the time since the build began, and measures what it costs.

    Attributes:
        done: Name, duration, CPU time and peak memory of each finished stage, as JSON data.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._begun = perf_counter()
        self.done: list[dict[str, Any]] = []

    def line(self, name: str, text: str) -> None:
        """Report what stage ``name`` is doing."""
        self._tell(f"{perf_counter() - self._begun:6.1f} s  {name:<10} {text}")

    @contextmanager
    def stage(self, name: str, text: str) -> Iterator[None]:
        """Within the block, stage ``name`` runs."""
        self.line(name, text)
        start, cpu = perf_counter(), cpu_s()
        yield
        entry = {"name": name, "duration_ms": round((perf_counter() - start) * 1000, 1)}
        self.done.append({**entry, "cpu_ms": round((cpu_s() - cpu) * 1000, 1), "peak_mb": peak_mb()})


def cpu_s() -> float:
    """Return the CPU time of this process and of its children that have ended. [s]"""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def peak_mb() -> float | None:
    """Return the most memory that this process has held so far; None where the system does not tell. [MB]"""
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024  # [bytes]
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6, 1)
