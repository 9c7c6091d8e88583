"""SPEF follows the grammar of IEEE 1481, and says what the netlist says."""

import re

import pytest

from layoutkit.circuit import Circuit, Device
from layoutkit.parasitics.net_network import GROUND, Elements, NetParasitics, ParasiticCapacitor, ParasiticResistor
from layoutkit.parasitics.parasitic_extraction import write_spef

HEADER = (
    "SPEF DESIGN DATE VENDOR PROGRAM VERSION DESIGN_FLOW DIVIDER DELIMITER BUS_DELIMITER T_UNIT C_UNIT R_UNIT L_UNIT"
)
NUMBER = r"\d+(?:\.\d+)?(?:e[+-]\d+)?"
INDEX = r"\*\d+"
NODE = rf"{INDEX}(?::\w+)?"
NAME = r"(?:[A-Za-z0-9_]|\\[^A-Za-z0-9_\s])+"


def read_spef(text):
    """Return names, ports and nets of a SPEF file; anything that the grammar does not allow there fails."""
    lines = iter(text.splitlines())

    def expect(pattern):
        line = next(lines)
        found = re.fullmatch(pattern, line)
        assert found, f"{line!r} is not {pattern}"
        return found

    for word in HEADER.split():
        expect(rf"\*{word} (?:\"[^\"]*\"(?: \"[^\"]*\")*|[\d.]+ (?:PS|FF|OHM|HENRY)|/|:|\[ \])")
    expect("")
    expect(r"\*NAME_MAP")
    names = {}
    while line := next(lines):
        index, name = re.fullmatch(rf"({INDEX}) ({NAME})", line).groups()
        assert index not in names
        names[index] = re.sub(r"\\(.)", r"\1", name)
    expect(r"\*PORTS")
    ports = []
    while line := next(lines):
        ports.append(names[re.fullmatch(rf"({INDEX}) [IOB]", line)[1]])
    nets = {}
    for line in lines:
        net, total = re.fullmatch(rf"\*D_NET ({INDEX}) ({NUMBER})", line).groups()
        nets[names[net]] = read_net(lines, names, float(total))
    return names, ports, nets


def read_net(lines, names, total):
    """Return the pins, capacitors and resistors of one net."""

    def spelt(node):
        index, _, pin = node.partition(":")
        return names[index] + (f":{pin}" if pin else "")

    assert next(lines) == "*CONN"
    net = {"total": total, "pins": [], "CAP": [], "RES": []}
    section = "CONN"
    for line in lines:
        if line == "*END":
            next(lines, None)
            return net
        if line in ("*CAP", "*RES"):
            assert (section, line) in {("CONN", "*CAP"), ("CONN", "*RES"), ("CAP", "*RES")}
            section = line[1:]
        elif section == "CONN":
            net["pins"].append(spelt(re.fullmatch(rf"\*[PI] ({NODE}) [IOB]", line)[1]))
        else:
            second = "?" if section == "CAP" else ""
            number, one, other, value = re.fullmatch(rf"(\d+) ({NODE})(?: ({NODE})){second} ({NUMBER})", line).groups()
            assert int(number) == len(net[section]) + 1
            net[section].append((spelt(one), spelt(other) if other else "", float(value)))
    pytest.fail("the file ends in a net")


def transistor(name, d, g, s):
    return Device(name, "nmos", "n", {"w": 1e-6, "l": 1e-6}, {"d": d, "g": g, "s": s, "b": "vss"})


CIRCUIT = Circuit(
    "top<1>", (transistor("X1.M1", "out", "in", "t"), transistor("M2", "t", "in", "vss")), ("in", "out", "vss")
)
ELEMENTS = Elements(
    resistors=(ParasiticResistor("in", "in", "in:X1.M1.g", 30.0), ParasiticResistor("t", "t", "t:M2.d", 2.5)),
    capacitors=(
        ParasiticCapacitor("in", GROUND, 1.5),
        ParasiticCapacitor("in:X1.M1.g", "t:M2.d", 0.25),
        ParasiticCapacitor("out", "t", 0.5),
    ),
    nodes={("X1.M1", "g"): "in:X1.M1.g", ("X1.M1", "s"): "t", ("M2", "d"): "t:M2.d"},
    net_of={"in:X1.M1.g": "in", "t:M2.d": "t"},
)
NETS = tuple(NetParasitics(net) for net in ("in", "out", "t", "vss"))


def test_a_strict_parser_reads_what_was_written():
    names, ports, nets = read_spef(write_spef(CIRCUIT, ELEMENTS, NETS))
    assert {"X1.M1", "M2", "in", "t"} < set(names.values())
    assert ports == ["in", "out", "vss"]
    assert nets["in"]["pins"] == ["in", "X1.M1:g", "M2:g"]
    assert nets["in"]["RES"] == [("in", "X1.M1:g", 30.0), ("in", "M2:g", 0.0)]
    assert nets["t"]["RES"] == [("X1.M1:s", "M2:d", 2.5)]
    assert nets["in"]["CAP"] == [("in", "", 1.5), ("X1.M1:g", "M2:d", 0.25)]
    assert nets["t"]["CAP"] == [("M2:d", "X1.M1:g", 0.25), ("X1.M1:s", "out", 0.5)]
    assert nets["t"]["total"] == 0.75
    assert nets["vss"]["pins"] == ["vss", "X1.M1:b", "M2:s", "M2:b"]


def test_without_resistors_all_terminals_are_on_the_node_of_the_net():
    elements = Elements(capacitors=(ParasiticCapacitor("in", GROUND, 1.5), ParasiticCapacitor("out", "t", 0.5)))
    _, _, nets = read_spef(write_spef(CIRCUIT, elements, NETS))
    assert nets["t"] == {"total": 0.5, "pins": ["X1.M1:s", "M2:d"], "CAP": [("t:1", "out", 0.5)], "RES": []}


@pytest.mark.parametrize("fault", [("*CONN", "*CAP"), (" 30", " -30"), ("*D_NET", "*NET"), ("*END", "")])
def test_the_parser_refuses_what_is_not_spef(fault):
    with pytest.raises((AssertionError, TypeError, pytest.fail.Exception, AttributeError)):
        read_spef(write_spef(CIRCUIT, ELEMENTS, NETS).replace(*fault, 1))
