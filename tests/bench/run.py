"""Costs as ratios: each command and its floor run in turn, CPU time of the whole process, median of the pairs.

    python tests/bench/run.py [--runs N]

A ratio depends little on the machine and its load; the seconds beside it only tell the order of size.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
SMALLEST_DRAWING = """
import klayout.db as kdb
layout = kdb.Layout()
layout.create_cell("TOP").shapes(layout.layer(1, 0)).insert(kdb.Box(0, 0, 100, 100))
layout.write("floor.gds")
"""
HEADER = f"{'what':<60} {'ratio':>6} {'cpu s':>7} {'floor s':>8}  bound"
NMOS = ["skills/mos-pcell/scripts/create_nmos_pcell.py", "--device-id", "M1", "--w", "2e-6", "--l", "0.5e-6"]
OTA = ["skills/netlist-to-gds/scripts/build_layout.py", "--technology", "sky130A", "--workspace", "ota"]
OTA += ["--netlist-path", str(ROOT / "skills/netlist-to-gds/assets/ota_5t.spice")]


def cpu_s(command: list[str], folder: str) -> float:
    """Return the CPU time of one run of a Python program, its children included. [s]."""
    program = [part if part.startswith("-") or not part.startswith("skills/") else str(ROOT / part) for part in command]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, *program], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def ratio(command: list[str], floor: list[str], runs: int, folder: str) -> tuple[float, float, float]:
    """Return the median of command / floor over ``runs`` pairs, and both medians. [1, s, s]."""
    pairs = [(cpu_s(command, folder), cpu_s(floor, folder)) for _ in range(runs + 1)][1:]
    return (
        statistics.median(a / b for a, b in pairs),
        statistics.median(a for a, _ in pairs),
        statistics.median(b for _, b in pairs),
    )


def print_row(name: str, measured: tuple[float, float, float], bound: str) -> None:
    """Print one line: name, ratio, CPU times of command and floor, bound."""
    value, cost, base = measured
    print(f"{name:<60} {value:>6.2f} {cost:>7.3f} {base:>8.3f}  {bound}", flush=True)


def main() -> None:
    """Print one line a measurement: name, ratio, bound, seconds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=7, help="pairs measured after one warm-up (default 7)")
    runs = parser.parse_args().runs
    drawing = ["-c", SMALLEST_DRAWING]
    empty = ["-c", "pass"]
    cases = [
        ("cold NMOS to GDS / smallest KLayout drawing", NMOS, drawing, "at most 2.5"),
        ("--help of a script / python -c pass", [NMOS[0], "--help"], empty, "no KLayout"),
        ("skillpack --help / python -c pass", ["-m", "skillpack", "--help"], empty, "at most 150 ms"),
        ("5T OTA netlist to verified GDS / smallest KLayout drawing", OTA, drawing, "at most 5 s"),
    ]
    print(f"python {sys.version.split()[0]}, {os.cpu_count()} cores, median of {runs} pairs, CPU time")
    print(HEADER)
    with tempfile.TemporaryDirectory() as folder:
        for name, command, floor, bound in cases:
            print_row(name, ratio(command, floor, runs if command is not OTA else min(runs, 3), folder), bound)
    import drc
    import flow
    import knowledge_graph
    import many_jobs
    import mcp_server
    import netlists
    import recognition
    import review

    import loader

    loader.measure(runs)
    flow.measure(min(runs, 3))
    drc.measure(runs)
    knowledge_graph.measure(runs)
    mcp_server.measure(min(runs, 3))
    netlists.measure(min(runs, 3))
    many_jobs.measure()
    recognition.measure()
    review.measure()


if __name__ == "__main__":
    main()
