"""The cost of recognition as a ratio: how it grows from 400 to 4,000 devices, all measured in one run.

    python tests/bench/recognition.py

The circuit repeats a two-stage amplifier, a latch and a ring of inverters, so that every search has work in each part.
"""

from __future__ import annotations

import gc
import math
import time

from layoutkit.circuit import find_roles, read_netlist
from layoutkit.circuit.readers.source import NetlistText

CELL = """
M{n}a x{n} inp{n} t{n} vss nmos W=4u L=1u
M{n}b y{n} inn{n} t{n} vss nmos W=4u L=1u
M{n}c x{n} x{n} vdd vdd pmos W=4u L=1u
M{n}d y{n} x{n} vdd vdd pmos W=4u L=1u
M{n}e t{n} ib vss vss nmos W=2u L=2u
M{n}f o{n} y{n} vdd vdd pmos W=8u L=0.5u
M{n}g o{n} ib vss vss nmos W=4u L=2u
R{n}a y{n} z{n} 2k
C{n}a z{n} o{n} 1p
M{n}h q{n} p{n} l{n} vss nmos W=1u L=0.2u
M{n}i p{n} q{n} l{n} vss nmos W=1u L=0.2u
M{n}j q{n} p{n} vdd vdd pmos W=1u L=0.2u
M{n}k p{n} q{n} vdd vdd pmos W=1u L=0.2u
M{n}l l{n} ck vss vss nmos W=2u L=0.2u
M{n}m r{n} o{n} vdd vdd pmos W=2u L=0.2u
M{n}n r{n} o{n} vss vss nmos W=1u L=0.2u
"""
DEVICES = 16
MOST_GROWTH = 1.2
"""Largest exponent of the cost in the number of devices."""


def chips(devices: int) -> NetlistText:
    """Return the netlist of a circuit with about so many devices."""
    count = devices // DEVICES
    cells = "".join(CELL.format(n=n) for n in range(count))
    ports = " ".join(f"inp{n} inn{n} o{n}" for n in range(count))
    return NetlistText(f".subckt chips vdd vss ib ck {ports}\nMib ib ib vss vss nmos W=2u L=2u\n{cells}\n.ends\n")


def cpu_s(devices: int, runs: int = 3) -> float:
    """Return the least CPU time in which the roles of such a circuit are found. [s]."""
    times = []
    for _ in range(runs):
        circuit = read_netlist(chips(devices), identify_modules=False)
        gc.collect()
        gc.disable()  # as timeit does: what else the process holds is no cost of recognition
        begun = time.process_time()
        find_roles(circuit)
        times.append(time.process_time() - begun)
        gc.enable()
    return min(times)


def growth(small: int = 400, large: int = 4000) -> tuple[float, float, float]:
    """Return the exponent of the cost in the number of devices, and both costs. [1, s, s]."""
    one, other = cpu_s(small), cpu_s(large)
    return math.log(other / one) / math.log(large / small), one, other


def measure() -> float:
    """Print and return the growth."""
    exponent, small, large = growth()
    costs = f"{small:.2f} s for 400 devices, {large:.2f} s for 4,000"
    print(f"recognition grows with n^{exponent:.2f} (bound {MOST_GROWTH}): {costs}")
    return exponent


if __name__ == "__main__":
    raise SystemExit(measure() > MOST_GROWTH)
