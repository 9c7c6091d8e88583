"""CPU time of the whole flow: growth with the number of devices, and what numba saves.

    python tests/bench/flow.py [--runs N]

Each case is flow.build_layout as a process of its own, from the netlist to the checked layout. The floor is the same
flow on a five-transistor OTA, so that a ratio depends little on the machine.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from run import HEADER, ROOT, cpu_s, print_row, ratio

if TYPE_CHECKING:
    from collections.abc import Callable

SCRIPT = "skills/netlist-to-gds/scripts/build_layout.py"
PROCESSES = ("sky130A", "gf180mcuD", "sg13g2")
SIZES = (5, 10, 20, 40, 80, 160)
AMPLIFIER = ROOT / "tests/bench/folded_cascode_42.spice"
OTA = ROOT / "skills/netlist-to-gds/assets/ota_5t.spice"
WITHOUT_NUMBA = "import runpy, sys; sys.modules['numba'] = None; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], "
WITHOUT_NUMBA += "run_name='__main__')"


def chain(devices: int) -> str:
    """Return a netlist of five-transistor OTAs in a row, in some twelve different sizes, in one flat subcircuit."""
    cards, stages = [], devices // 5
    for i in range(stages):
        left, out = f"x{i}" if i else "inp", f"x{i + 1}" if i < stages - 1 else "out"
        n, p, length = (4, 6, 8, 10)[i % 4], (3, 5, 8)[i % 3], (0.5, 0.6, 0.8)[i % 3]
        cards += [
            f"M{i}a y{i} {left} t{i} vss nmos w={n}u l={length}u nf=4",
            f"M{i}b {out} inn t{i} vss nmos w={n}u l={length}u nf=4",
            f"M{i}c y{i} y{i} vdd vdd pmos w={p}u l={length}u nf=2",
            f"M{i}d {out} y{i} vdd vdd pmos w={p}u l={length}u nf=2",
            f"M{i}e t{i} ib vss vss nmos w={p}u l=1u nf=2",
        ]
    return "\n".join([f".subckt chain{devices} inp inn out ib vdd vss", *cards, ".ends", ""])


def inverters(devices: int) -> str:
    """Return a netlist of the smallest inverters in a row, in one flat subcircuit."""
    cards, stages = [], devices // 2
    for i in range(stages):
        before, after = f"x{i}" if i else "in", f"x{i + 1}" if i < stages - 1 else "out"
        cards += [
            f"M{i}n {after} {before} vss vss nmos w=1u l=0.15u",
            f"M{i}p {after} {before} vdd vdd pmos w=2u l=0.15u",
        ]
    return "\n".join([f".subckt inverters{devices} in out vdd vss", *cards, ".ends", ""])


FAMILIES: dict[str, Callable[[int], str]] = {"OTAs": chain, "inverters": inverters}


def measure(runs: int) -> None:
    """Print one line a measurement."""
    with tempfile.TemporaryDirectory() as folder:
        floor = _flow(OTA, "sky130A")
        for process in PROCESSES:
            case = _flow(AMPLIFIER, process)
            print_row(f"42 devices in {process} / 5T OTA in sky130A", ratio(case, floor, runs, folder), "at most 20 s")
        case = _flow(AMPLIFIER, "sky130A")
        plain = ["-c", WITHOUT_NUMBA, str(ROOT / SCRIPT), *case[1:]]
        print_row("42 devices without numba / with numba", ratio(plain, case, runs, folder), "at most 3.0")
        for family in FAMILIES:
            for process in PROCESSES:
                _print_growth(family, process, folder)


def _print_growth(family: str, process: str, folder: str) -> None:
    """Print the exponent by which the CPU time grows: the slope of the line through the logarithms."""
    points = []
    for size in SIZES:
        netlist = Path(folder, f"{family}_{size}.spice")
        netlist.write_text(FAMILIES[family](size), encoding="utf-8")
        points.append((math.log(size), math.log(cpu_s(_flow(netlist, process), folder))))
    mean_x, mean_y = (sum(column) / len(points) for column in zip(*points, strict=True))
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)
    first, last = math.exp(points[0][1]), math.exp(points[-1][1])
    print_row(
        f"growth of {family}, {SIZES[0]} to {SIZES[-1]} devices in {process}, exponent",
        (slope, last, first),
        "at most 1.2",
    )


def _flow(netlist: Path, process: str) -> list[str]:
    return [SCRIPT, "--technology", process, "--workspace", f"{netlist.stem}_{process}", "--netlist-path", str(netlist)]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3, help="pairs measured after one warm-up (default 3)")
    print(HEADER)
    measure(parser.parse_args().runs)


if __name__ == "__main__":
    main()
