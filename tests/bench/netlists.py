"""Cost of reading a netlist of twice the size, over the cost of the size: 2 where the time is linear.

    python tests/bench/netlists.py [--runs N]

Each case is netlist.parse as a process of its own, with its checks of the answer against the schema.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from run import HEADER, print_row, ratio

if TYPE_CHECKING:
    from collections.abc import Callable

SCRIPT = "skills/netlist-parse/scripts/parse_netlist.py"


def _ports(size: int) -> str:
    return f".subckt top {' '.join(f'p{i}' for i in range(size))}\nM1 p0 p1 p2 p3 nmos w=1u l=1u\n.ends\n"


def _devices(size: int) -> str:
    cards = "".join(f"M{i} n{i} n{i + 1} vss vss nmos w=1u l=0.18u nf=2\n" for i in range(size))
    return f".subckt top a b vdd vss\n{cards}.ends\n"


def _one_net(size: int) -> str:
    cards = "".join(f"M{i} a b vss vss nmos w=1u l=0.18u\n" for i in range(size))
    return f".subckt top a b vdd vss\n{cards}.ends\n"


def _subcircuits(size: int) -> str:
    inner = "".join(f".subckt s{i} a b\nM1 a b b b nmos w=1u l=1u\n.ends\n" for i in range(size))
    return f"{inner}.subckt top a b\n{''.join(f'X{i} a b s{i}{chr(10)}' for i in range(size))}.ends\n"


def _continuations(size: int) -> str:
    return f".subckt top a b\nM0 a b b b nmos w=1u l=1u\n{''.join(f'+ q{i}=1{chr(10)}' for i in range(size))}.ends\n"


CASES: dict[str, tuple[Callable[[int], str], int]] = {
    "ports on one line": (_ports, 200_000),
    "devices": (_devices, 24_000),
    "devices on one net": (_one_net, 24_000),
    "subcircuits": (_subcircuits, 20_000),
    "continuation lines": (_continuations, 150_000),
    "devices beyond the limit": (_devices, 150_000),
}


def measure(runs: int) -> None:
    """Print one line a shape of netlist."""
    with tempfile.TemporaryDirectory() as folder:
        for name, (text, size) in CASES.items():
            commands = []
            for factor in (2, 1):
                path = Path(folder, f"{factor}.spice")
                path.write_text(text(factor * size), encoding="utf-8")
                code = "import subprocess, sys; subprocess.run([sys.executable, *sys.argv[1:]])"
                commands.append(["-c", code, SCRIPT, "--netlist-path", str(path)])
            print_row(f"netlist.parse, 2 x {size} {name} / {size}", ratio(*commands, runs, folder), "at most 2.5")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3, help="pairs measured after one warm-up (default 3)")
    print(HEADER)
    measure(parser.parse_args().runs)


if __name__ == "__main__":
    main()
