"""Share of the design review in the CPU time of a build, both measured in one run of the flow.

    python tests/bench/review.py [NETLIST ...]

Each case is flow.build_layout as a process of its own. The share is that of the process, so that a ratio depends
little on the machine and its load.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from flow import AMPLIFIER, OTA, PROCESSES, chain
from run import HEADER, print_row

BUILD = """
import sys, time
from layoutkit import build
from layoutkit.review import design_review
review, spent = design_review.review_layout, []
def timed(*parts):
    start = time.process_time()
    try:
        return review(*parts)
    finally:
        spent.append(time.process_time() - start)
design_review.review_layout = timed
build(*sys.argv[1:], progress=lambda line: None)
print(sum(spent), time.process_time())
"""


REGULATOR = """
.subckt regulator vin vout vref vss ib
Mp vout g vin vin {pmos} w=10u l=0.6u m={units}
M1 g vref t vss {nmos} w=4u l=1u m=2
M2 o vout t vss {nmos} w=4u l=1u m=2
M3 g o vin vin {pmos} w=4u l=1u m=2
M4 o o vin vin {pmos} w=4u l=1u m=2
M5 t ib vss vss {nmos} w=4u l=1u m=2
M6 ib ib vss vss {nmos} w=4u l=1u m=2
.ends
"""


def measure(netlists: list[Path] | None = None) -> None:
    """Print one line a measurement."""
    with tempfile.TemporaryDirectory() as folder:
        repeated = Path(folder, "chain40.spice")
        repeated.write_text(chain(40), encoding="utf-8")
        regulator = Path(folder, "regulator_440.spice")
        regulator.write_text(REGULATOR.format(nmos="nmos", pmos="pmos", units=440), encoding="utf-8")
        for netlist in netlists or [OTA, AMPLIFIER, repeated, regulator]:
            for process in PROCESSES:
                command = [sys.executable, "-c", BUILD, str(netlist), process, f"{folder}/{netlist.stem}_{process}"]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode:
                    print(f"{netlist.stem} in {process}: not measured: {done.stderr.strip().splitlines()[-1]}")
                    continue
                spent, whole = map(float, done.stdout.split())
                name = f"review / build of {netlist.stem} in {process}"
                print_row(name, (spent / whole, spent, whole), "at most 0.15")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("netlists", nargs="*", type=Path, help="netlists to lay out (default: four of its own)")
    print(HEADER)
    measure(parser.parse_args().netlists)


if __name__ == "__main__":
    main()
