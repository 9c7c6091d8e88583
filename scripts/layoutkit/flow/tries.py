"""Compare several placements of one design, routed, checked and measured in processes of their own, one a core.

Try number i has the seed of the request plus i. Where the request states neither outline nor aspect, every second try
aims at a square, the others at the usual aspect. The best try is the first in this order:

1. nets that are not routed, 2. design rule violations, 3. whether LVS matches, 4. nets that do not carry their current,
5. constraints that are not obeyed, 6. aspect beyond the one that the request states, in steps of 2 %, 7. area in steps
of 2 %, 8. wire length in steps of 2 %, 9. matched modules that are not symmetric, 10. largest predicted offset or
current error, 11. its number.

``one_try`` is the program of these processes.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Any

from layoutkit.errors import LayoutkitError
from layoutkit.flow.summary import largest_offset
from sturdy.child_process import end

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from layoutkit.flow.design import LayoutRequest

MAX_TRIES = 1000
MEMORY_MB = 700
"""Memory that one try may need: as many run at a time as fit into the free memory."""
STEP = 0.02
"""Areas and wire lengths that differ by less than one such step on a logarithmic scale count as equal."""
SQUARE = 1.25
"""Aspect of the tries that aim at a square."""
REQUEST, OUTCOME = "request.json", "outcome.json"
_POLL_S = 0.02


@dataclass(frozen=True)
class Effort:
    """How much to try: a number of tries, or seconds after which none begins that would end late."""

    tries: int = MAX_TRIES
    seconds: float | None = None

    @classmethod
    def of(cls, text: int | str) -> Effort:
        """Return the effort that ``8`` (tries) or ``20s`` (seconds) states.

        Raises:
            LayoutkitError: If it states neither.
        """
        word = str(text)
        try:
            effort = cls(seconds=float(word[:-1])) if word.endswith("s") else cls(tries=int(word))
        except ValueError:
            effort = cls(tries=0)
        if not (1 <= effort.tries <= MAX_TRIES and 0 < (1 if effort.seconds is None else effort.seconds) < math.inf):
            raise LayoutkitError(
                f"effort {word!r} is neither a number of tries from 1 to {MAX_TRIES} nor seconds such as 20s",
                details={"param_name": "effort", "provided_value": word},
            )
        return effort

    @property
    def is_one(self) -> bool:
        """Whether there is nothing to compare."""
        return self.tries == 1


@dataclass(frozen=True)
class Try:
    """One try and what came of it.

    Attributes:
        number: From 0.
        seed: Seed of its placement.
        aspect: Aspect that it asked for; None for the usual one.
        figures: What is compared, by name; None if it failed.
        error: Why it failed.
    """

    number: int
    seed: int
    aspect: float | None
    figures: Mapping[str, float | None] | None = None
    error: str = ""

    @property
    def rank(self) -> tuple[float, ...]:
        """The smaller, the better."""
        if self.figures is None:
            return (math.inf, self.number)
        steps = {name: self.figures[name] or 0.0 for name in FIGURES}  # no prediction, no reason against it
        for name in ("over_aspect", "area_um2", "wire_length_um"):
            steps[name] = math.floor(math.log(max(steps[name], 1e-9)) / math.log1p(STEP))
        return (*steps.values(), self.number)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON data."""
        outcome = {"error": self.error} if self.figures is None else dict(self.figures)
        return {"seed": self.seed, "aspect": self.aspect, **outcome}


FIGURES = (
    "failed_nets", "drc_violations", "lvs_mismatch", "weak_nets", "constraints_not_obeyed", "over_aspect",
    "area_um2", "wire_length_um", "asymmetric_modules", "offset",
)  # fmt: skip
"""What is compared, in this order."""


def figures(report: Mapping[str, Any], asked: float | None) -> dict[str, float | None]:
    """Return what is compared of a build's report, by the names in ``FIGURES``.

    The offset is the largest one in millivolts or per cent; None where none is predicted. ``over_aspect`` is the
    layout's aspect relative to ``asked``, or 1 if it is not larger or ``asked`` is None.
    """
    placement, routing = report["placement"], report["routing"]
    matched = [module for module in report["modules"] if module["pattern"]]
    return {
        "failed_nets": len(routing["failed"]),
        "drc_violations": report["drc"]["total_violations"],
        "lvs_mismatch": int(not report["lvs"]["matched"]),
        "weak_nets": report["currents"]["failed"],
        "constraints_not_obeyed": report["constraints"]["not_obeyed"],
        "over_aspect": 1.0 if asked is None else max(1.0, round(placement["aspect"] / asked, 3)),
        "area_um2": round(placement["width"] * placement["height"], 3),
        "wire_length_um": routing["total_wire_length"],
        "asymmetric_modules": sum(not module["symmetric"] for module in matched),
        "offset": largest_offset(report["matching"]["groups"]),
    }


def planned(request: LayoutRequest, number: int) -> Try:
    """Return try ``number`` of a request, not yet done."""
    free = request.outline is None and request.aspect is None
    return Try(number, request.seed + number, SQUARE if free and number % 2 else request.aspect)


def compare_tries(
    request: LayoutRequest, prepare: Callable[[Path], None], adopt: Callable[[Path], Any], tell: Callable[[str], None]
) -> tuple[Any, list[Try], Try]:
    """Return what ``adopt`` makes of the best try, all tries, and the best one.

    Args:
        request: States the effort, the seed, and whether the tries may have aspects of their own.
        prepare: Makes a folder the workspace of a build that is to begin with stage ``place``.
        adopt: Reads the workspace of the best try, which is removed afterwards.
        tell: Receives a line for each try that ends.

    Raises:
        LayoutkitError: If every try fails, with the reason of the first.
    """
    effort = Effort.of(request.effort)
    with tempfile.TemporaryDirectory(prefix="tries-") as home:
        pool = TryPool(Path(home), request, prepare, tell)
        try:
            tries = pool.run(effort)
        finally:
            pool.stop()
        best = min(tries, key=lambda each: each.rank)
        if best.figures is None:
            raise LayoutkitError(tries[0].error, details={"tries": len(tries)})
        return adopt(Path(home, str(best.number))), tries, best


def at_a_time(effort: Effort) -> int:
    """Return how many tries run at a time: one a core, as far as the free memory goes."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, effort.tries, free_memory_mb() // MEMORY_MB))


def free_memory_mb() -> int:
    """Return how much memory new programs can have; one try's if the system does not tell. [MB]"""
    found = []
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        found += [int(line.split()[1]) // 1024 for line in lines if line.startswith("MemAvailable:")]
        limit, used = (Path("/sys/fs/cgroup", name).read_text("ascii") for name in ("memory.max", "memory.current"))
        found += [(int(limit) - int(used)) >> 20]
    except (OSError, ValueError):  # no Linux, no container, or a container without a limit: "max"
        pass
    return min(found, default=MEMORY_MB)


class TryPool:
    """The tries that run, each with a workspace of its own in ``home``, and the processes that wait for one."""

    def __init__(
        self, home: Path, request: LayoutRequest, prepare: Callable[[Path], None], tell: Callable[[str], None]
    ) -> None:
        self.home = home
        self.request = request
        self.prepare = prepare
        self.tell = tell
        self.running: dict[int, tuple[subprocess.Popen[bytes], float]] = {}
        self.idle: list[subprocess.Popen[bytes]] = []
        self.done: dict[int, Try] = {}

    def run(self, effort: Effort) -> list[Try]:
        """Return the finished tries in order of their numbers.

        A limit in seconds gives the first tries of the sequence that a number of tries gives.
        """
        begun, slots, number, longest = perf_counter(), at_a_time(effort), 0, 0.0
        while True:
            for finished in [key for key in self.running if self._has_ended(key)]:
                longest = max(longest, perf_counter() - self.running[finished][1])
                self._finish(finished)
            elapsed = perf_counter() - begun
            late = effort.seconds is not None and number > 0 and elapsed + longest >= effort.seconds
            waits = effort.seconds is not None and number >= slots and not self.done  # how long does one take?
            if number < effort.tries and len(self.running) < slots and not late and not waits:
                self._start(number)
                number += 1
            elif self.running:
                sleep(_POLL_S)
            else:
                return [self.done[each] for each in range(number)]

    def _start(self, number: int) -> None:
        folder = self.home / str(number)
        self.prepare(folder)
        plan = planned(self.request, number)
        options = {"seed": plan.seed, "aspect": plan.aspect, "asked": self.request.aspect}
        folder.joinpath(REQUEST).write_text(json.dumps(options), encoding="utf-8")
        waits = self.idle and self.idle[-1].poll() is None
        process = self.idle.pop() if waits else self.new_process()
        self.running[number] = (process, perf_counter())
        if process.stdin is not None:
            with suppress(BrokenPipeError):  # it was killed; the try has no outcome then
                process.stdin.write(os.fsencode(folder) + b"\n")
                process.stdin.flush()

    def new_process(self) -> subprocess.Popen[bytes]:
        """Start one more process, which waits for its first try."""
        return subprocess.Popen(
            [sys.executable, "-m", "layoutkit.flow.one_try"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,  # closes when this process ends, and with it the try
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )

    def _has_ended(self, number: int) -> bool:
        return (self.home / str(number) / OUTCOME).is_file() or self.running[number][0].poll() is not None

    def _finish(self, number: int) -> None:
        process, _ = self.running.pop(number)
        if process.poll() is None:
            self.idle.append(process)
        plan = planned(self.request, number)
        outcome = self.home / str(number) / OUTCOME
        read = json.loads(outcome.read_text(encoding="utf-8")) if outcome.is_file() else {}
        error = read.get("error") or ("" if read else f"the try ended with exit code {process.returncode}")
        done = replace(plan, figures=read.get("figures"), error=error)
        self.done[number] = done
        found = error or ", ".join(f"{name} {value:g}" for name, value in (done.figures or {}).items())
        self.tell(f"try {number + 1}, seed {done.seed}: {found}")

    def stop(self) -> None:
        """End all processes, also the tries that still run."""
        for process in (*self.idle, *(process for process, _ in self.running.values())):
            with process:  # closes its pipes
                end(process, group=False)
