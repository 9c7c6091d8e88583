"""The work of reading grows with the size of a netlist: comparisons of names are counted, not seconds."""

import re

import pytest

from layoutkit.circuit import Circuit, Device, recognise
from layoutkit.circuit.readers.netlist import SPICE_LINE, suspicious_nets
from layoutkit.circuit.readers.spice_files import SUBCIRCUIT


class Name(str):
    """A net or device name that counts how often it is compared."""

    compared = 0
    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other):
        Name.compared += 1
        return str.__eq__(self, other)

    def __ne__(self, other):
        return not self == other


def mos(name, d, g, s, b):
    nets = dict(zip("dgsb", map(Name, (d, g, s, b)), strict=True))
    return Device(Name(name), Name("nmos"), "nmos", {"w": 1e-6, "l": 1e-6, "nf": 1, "m": 1}, nets)


def many_ports(size):
    ports = tuple(Name(f"p{i}") for i in range(size))
    return Circuit("t", tuple(mos(f"M{i}", f"n{i}", f"g{i}", "s", "vss") for i in range(size)), ports)


def many_supplies(size):
    ports = tuple(Name(f"vss{i}") for i in range(size))
    return Circuit("t", tuple(mos(f"M{i}", f"x{i}", f"y{i}", f"vss{i}", f"vss{i}") for i in range(size)), ports)


def mirrors_below_one_net(size):
    mirrors = [mos(f"M{i}", "x", "g", "vss", "vss") for i in range(size)]
    cascodes = [mos(f"C{i}", f"y{i}", "h", "x", "vss") for i in range(size)]
    return Circuit("t", (*mirrors, *cascodes), (Name("vss"),))


def diodes_on_one_gate(size):
    diodes = [mos(f"D{i}", "g", "g", "vss", "vss") for i in range(size)]
    return Circuit("t", (*diodes, *(mos(f"M{i}", f"o{i}", "g", "vss", "vss") for i in range(size))), (Name("vss"),))


def pairs_on_shared_ports(size):
    """Equal cascoded pairs side by side: all inputs, biases and outputs are shared, tails are not."""
    halves = [(f"{side}{i}", side, i) for i in range(size // 4) for side in "ab"]
    inputs = [mos(f"M{name}", f"x{name}", f"in{side}", f"t{i}", "vss") for name, side, i in halves]
    cascodes = [mos(f"C{name}", f"out{side}", "cas", f"x{name}", "vss") for name, side, _ in halves]
    tails = [mos(f"T{i}", f"t{i}", "bias", "vss", "vss") for i in range(size // 4)]
    return Circuit(
        "t", (*inputs, *cascodes, *tails), tuple(map(Name, ("ina", "inb", "outa", "outb", "cas", "bias", "vss")))
    )


def comparisons(circuit):
    Name.compared = 0
    suspicious_nets(circuit)
    recognise(circuit)
    return Name.compared


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        (many_ports, 200),
        (many_supplies, 200),
        (mirrors_below_one_net, 200),
        (diodes_on_one_gate, 200),
        (pairs_on_shared_ports, 800),
    ],
)
def test_twice_the_circuit_takes_about_twice_the_comparisons(shape, size):
    small, large = comparisons(shape(size)), comparisons(shape(2 * size))
    assert large < 2.5 * small + 100


@pytest.mark.parametrize("pattern", [SUBCIRCUIT, SPICE_LINE])
def test_a_pattern_for_the_start_of_a_line_does_not_run_over_blank_lines(pattern):
    # "\s*" at the start of a line would look at all blank lines again from each of them.
    start = pattern.pattern.split("(?:", 1)[0]
    assert re.match(start, "\n\n\n").end() == 0
