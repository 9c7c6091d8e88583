"""Runs ngspice on one deck: in a folder of its own, within a time limit, without the user's start-up files.

A deck that reaches this module holds no commands: ``netlist_cards`` has refused them, and the models come through
``device_models``, which copies models and parameters only.

The raw file holds one part for each analysis: a header in text and, after ``Binary:``, one record of doubles a point,
pairs of doubles where the values are complex. (ngspice manual, chapter "rawfile".)
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from layoutkit.errors import LayoutkitError, UnsupportedOperationError
from layoutkit.other_programs import LOG, OtherProgram, ProgramRun, run_program

if TYPE_CHECKING:
    from collections.abc import Mapping


MAX_BYTES = 1 << 30


@dataclass(frozen=True)
class Plot:
    """The result of one analysis.

    Attributes:
        name: What ngspice calls it, such as ``AC Analysis``.
        vectors: Name in lowercase, such as ``v(out)``, to its values; the first one is the scale.
    """

    name: str
    vectors: Mapping[str, np.ndarray]

    @property
    def scale(self) -> np.ndarray:
        """The time, frequency or swept value of each point."""
        return np.real(next(iter(self.vectors.values())))

    def of(self, name: str) -> np.ndarray:
        """Return a vector: ``v(node)`` or ``i(source)``."""
        return self.vectors[name.lower()]


def read_raw(path: Path) -> list[Plot]:
    """Return the analyses of a raw file, none where the file is missing or cut off.

    Raises:
        ValueError: If the file is larger than a simulation of these test benches makes.
    """
    if not path.is_file():
        return []
    if path.stat().st_size > MAX_BYTES:
        raise ValueError(f"the result of the simulation has {path.stat().st_size} bytes, at most {MAX_BYTES} are read")
    rest, plots = path.read_bytes(), []
    while (mark := rest.find(b"Binary:\n")) >= 0:
        header = rest[:mark].decode("utf-8", "replace").splitlines()
        plot, size = _plot(header, rest[mark + 8 :])
        if plot is None:
            break
        plots.append(plot)
        rest = rest[mark + 8 + size :]
    return plots


def _plot(header: list[str], data: bytes) -> tuple[Plot | None, int]:
    """Return one analysis and the bytes of its values."""
    fields = dict(line.split(":", 1) for line in header if ":" in line and not line.startswith("\t"))
    count, points = int(fields["No. Variables"]), int(fields["No. Points"])
    kind = np.dtype("<c16" if "complex" in fields["Flags"] else "<f8")
    size = count * points * kind.itemsize
    if not points or len(data) < size:
        return None, 0
    names = [line.split("\t")[2].lower() for line in header if line.startswith("\t")][:count]
    values = np.frombuffer(data[:size], dtype=kind).reshape(points, count)
    return Plot(fields["Plotname"].strip(), {name: values[:, i] for i, name in enumerate(names)}), size


def mean_over_time(time: np.ndarray, values: np.ndarray) -> float:
    """Return the mean of values at uneven times, straight lines between them."""
    return float(np.sum((values[1:] + values[:-1]) / 2 * np.diff(time)) / (time[-1] - time[0]))


PROGRAM_VARIABLE = "ANALOG_LAYOUT_NGSPICE"
DEFAULT_TIMEOUT_S = 300.0
NGSPICE = OtherProgram(
    "ngspice",
    "circuits are simulated by ngspice",
    "install ngspice (Debian: apt-get install ngspice; others: https://ngspice.sourceforge.io) and put it on PATH, "
    f"or name its program in ${PROGRAM_VARIABLE}",
    PROGRAM_VARIABLE,
)
SETTINGS = ("set ngbehavior=hsa", "set ng_nomodcheck", "set no_auto_gnd", "set num_threads=1")
"""Settings with which ngspice reads the models of every PDK. A net called gnd is not node 0."""
_MAX_LOG = 200_000
_TROUBLE = re.compile(
    r"error|unknown|can't find|could not find|cannot find|undefined|singular matrix|too small|no convergence|"
    r"not converge|failed|aborted|no such|too many|too few",
    re.IGNORECASE,
)
_HARMLESS = re.compile(
    r"^(note|warning|no\. of|reducing trtol|doing analysis|trying gmin|supplies reduced)", re.IGNORECASE
)


class SimulationError(LayoutkitError):
    """ngspice did not finish a deck; the message holds what it said."""

    default_code = "UNSUPPORTED_OPERATION"


@dataclass(frozen=True)
class Start:
    """How ngspice is started.

    Attributes:
        osdi: Compiled Verilog-A models to load.
        seed: Seed of the random numbers in the models; 0 for ngspice's own.
        timeout_s: Longest time of one run. [s]
    """

    osdi: tuple[str, ...] = ()
    seed: int = 0
    timeout_s: float = DEFAULT_TIMEOUT_S

    def lines(self) -> list[str]:
        """Return the start-up file."""
        return [*SETTINGS, *(f"osdi '{path}'" for path in self.osdi)]


@lru_cache
def ngspice_version(program: str) -> str:
    """Return what ngspice calls itself, such as ``ngspice-39``; empty where it does not say."""
    done = subprocess.run(
        [program, "--version"], capture_output=True, timeout=30, check=False, stdin=subprocess.DEVNULL
    )
    found = re.search(rb"ngspice-[\w.+]+", done.stdout)
    return found[0].decode() if found else ""


@lru_cache
def loads_osdi(program: str, paths: tuple[str, ...]) -> str:
    """Return why ngspice cannot load these compiled models; empty if it can."""
    log = _run(program, "osdi\nv1 1 0 1\n.op\n.end\n", Start(paths, timeout_s=60.0))[1]
    if "no such command" in log:
        return "this ngspice was built without OSDI (configure --enable-osdi)"
    said = [
        line.strip()
        for line in log.splitlines()
        if re.search(r"osdi.*(error|not|could)|error.*osdi", line, re.IGNORECASE)
    ]
    return f"ngspice cannot load them: {said[0][:300]}" if said else ""


def simulate(deck: str, start: Start, expected: int) -> list[Plot]:
    """Return the results of a deck's analyses, the operating point first: ngspice runs it after the others.

    Args:
        deck: Title line, cards and ``.end``.
        start: How to start ngspice.
        expected: Number of analyses in the deck.

    Raises:
        SimulationError: If fewer analyses finished; the message holds what ngspice said.
        TimeLimitError: If it took longer than allowed; its process has ended.
    """
    plots, log = _run(NGSPICE.path(), deck, start)
    if len(plots) < expected:
        raise SimulationError(f"ngspice finished {len(plots)} of {expected} analyses: {trouble(log)}")
    return sorted(plots, key=lambda plot: plot.name != "Operating Point")


def measure_log(deck: str, start: Start) -> str:
    """Return what ngspice prints for a deck with ``.meas`` cards, which it evaluates only without a raw file.

    Raises:
        TimeLimitError: If it took longer than allowed; its process has ended.
    """
    return _run(NGSPICE.path(), deck, start, raw=False)[1]


def trouble(log: str) -> str:
    """Return the lines of a log that say what went wrong, at most five."""
    lines = [line.strip() for line in re.sub(r"(Error on line:)\s+", r"\1 ", log).splitlines()]
    said = [line for line in lines if line and _TROUBLE.search(line) and not _HARMLESS.match(line)]
    return "; ".join(dict.fromkeys(line[:200] for line in said[:5])) or "it gave no reason"


def _run(program: str, deck: str, start: Start, *, raw: bool = True) -> tuple[list[Plot], str]:
    """Return the results and the log of one run."""
    with tempfile.TemporaryDirectory(prefix="simulation-") as name:
        folder = Path(name)
        (folder / "deck.cir").write_text(deck, encoding="utf-8")
        (folder / ".spiceinit").write_text("\n".join(start.lines()) + "\n", encoding="utf-8")
        command = [program, "-b", *(["-r", "results.raw"] if raw else []), "deck.cir"]
        environment = {"HOME": str(folder), "OMP_NUM_THREADS": "1"}
        in_batch_mode = ProgramRun(
            command, folder, start.timeout_s, "a simulation", environment, starts_others=False, max_bytes=MAX_BYTES
        )
        try:
            run_program(in_batch_mode)
        except UnsupportedOperationError as error:
            raise SimulationError(
                f"{error.message}; simulate a shorter time or larger steps, or save fewer voltages"
            ) from error
        with (folder / LOG).open("rb") as stream:
            log = stream.read(_MAX_LOG).decode("utf-8", "replace")
        try:
            return read_raw(folder / "results.raw"), log
        except ValueError as error:
            raise SimulationError(str(error)) from error
