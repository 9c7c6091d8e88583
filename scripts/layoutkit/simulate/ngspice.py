"""Runs ngspice on one deck: in a folder of its own, within a time limit, without the user's start-up files.

A deck that reaches this module holds no commands: ``netlist_cards`` has refused them, and the models come through
``model_library``, which copies models and parameters only.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from layoutkit.errors import LayoutkitError, UnsupportedOperationError
from layoutkit.other_programs import LOG, OtherProgram, ProgramRun, run_program
from layoutkit.simulate.raw_file import MAX_BYTES, Plot, read_raw

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
    r"not converge|failed|aborted|no such",
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
    lines = [line.strip() for line in log.splitlines()]
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
