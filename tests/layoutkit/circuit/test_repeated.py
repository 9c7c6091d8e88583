"""Which instances of subcircuits are equal, and the circuit that they share."""

from layoutkit.circuit import read_netlist
from layoutkit.circuit.readers.json_reader import circuit_from_json
from layoutkit.circuit.readers.source import NetlistText
from layoutkit.circuit.repeated import find_repeated

INVERTER = """.subckt inv a y vdd vss w=1u
MP y a vdd vdd pch W='2*w' L=0.5u
MN y a vss vss nch W='w' L=0.5u
.ends
"""
NESTED = f"""{INVERTER}
.subckt buf a y vdd vss
X1 a n vdd vss inv
X2 n y vdd vss inv w=2u
.ends
.subckt top a y z vdd vss
X1 a y vdd vss buf
X2 y z vdd vss buf
X3 z q vdd vss inv
M9 q z vss vss nch W=2u L=0.5u
.ends
"""


def repeated(text, **options):
    return find_repeated(read_netlist(NetlistText(text), identify_modules=False), **options)


def flat_again(circuit, hierarchy):
    """Return the devices of ``circuit`` put together from shared circuits and what lies outside of them."""
    own = {device.id: device for device in circuit.devices}
    for shared in hierarchy.shared:
        for use in shared.uses:
            for device in shared.circuit.devices:
                flat = own[use.devices[device.id]]
                assert (flat.type, flat.model, flat.params) == (device.type, device.model, device.params)
                assert {t: use.nets[net] for t, net in device.terminals.items()} == flat.terminals


def test_equal_instances_share_one_circuit_and_their_devices_are_those_of_the_flat_circuit():
    circuit = read_netlist(NetlistText(NESTED), identify_modules=False)
    hierarchy = find_repeated(circuit)
    flat_again(circuit, hierarchy)
    assert [(each.name, [use.path for use in each.uses]) for each in hierarchy.shared] == [
        ("inv", ["X1.X1", "X2.X1", "X3"]),
        ("buf", ["X1", "X2"]),
    ]
    assert [part.name for part in hierarchy.parts] == ["X1", "X2", "X3"]


def test_a_subcircuit_with_other_parameters_or_one_place_is_not_shared():
    buffer = repeated(NESTED).shared[1]  # its second inverter has another width and is there once
    assert [(part.name, part.shared, part.nets["y"]) for part in buffer.parts] == [("X1", "inv", "n")]
    assert {device.id for device in buffer.circuit.devices} == {"X1.MP", "X1.MN", "X2.MP", "X2.MN"}


def test_ports_that_one_instance_ties_stay_apart_and_ports_that_all_tie_are_one_net():
    gate = ".subckt nand a b y vdd vss\nM1 y a vdd vdd pch W=2u L=1u\nM2 y b vdd vdd pch W=2u L=1u\n.ends\n"
    apart = repeated(f"{gate}.subckt top p q r vdd vss\nX1 p q r vdd vss nand\nX2 r vdd q vdd vss nand\n.ends\n")
    assert {"a", "b"} <= set(apart.shared[0].circuit.ports)
    assert apart.parts[1].nets["b"] == "vdd"
    tied = repeated(f"{gate}.subckt top p q r vdd vss\nX1 p vdd r vdd vss nand\nX2 r vdd q vdd vss nand\n.ends\n")
    assert "b" not in tied.shared[0].circuit.ports
    assert len(tied.shared) == len(apart.shared) == 1


def test_a_refused_instance_and_those_that_differ_otherwise_do_not_share():
    assert [each.name for each in repeated(NESTED, refused={"X1"}).shared] == ["inv", "inv_2"]
    other = repeated(NESTED, kind_of=lambda names: "X2.X1.MP" in names.values())
    assert [each.name for each in other.shared] == ["inv", "inv_2"]
    assert [use.path for use in other.shared[0].uses] == ["X1.X1", "X3"]


def test_an_instance_with_a_black_box_is_not_shared():
    text = NESTED.replace("X2 n y vdd vss inv w=2u", "X2 n y vdd vss inv w=2u\nX3 n y other")
    circuit = read_netlist(NetlistText(text), identify_modules=False, black_boxes=("other",))
    assert [each.name for each in find_repeated(circuit).shared] == ["inv", "inv_2"]


def test_nets_of_inner_instances_and_globals_have_one_name_in_every_instance():
    text = NESTED.replace("MN y a vss vss nch", "MN y a gnd! gnd! nch")
    circuit = read_netlist(NetlistText(text), identify_modules=False)
    hierarchy = find_repeated(circuit)
    flat_again(circuit, hierarchy)
    assert all("gnd!" in shared.circuit.ports for shared in hierarchy.shared)


def test_a_json_netlist_keeps_its_instances_too():
    mos = {"type": "nmos", "params": {"w": 1e-6, "l": 1e-6}}
    devices = [
        {"id": "M1", **mos, "terminals": {"d": "y", "g": "a", "s": "vss", "b": "vss"}},
        {"id": "M2", **mos, "terminals": {"d": "y", "g": "y", "s": "x", "b": "vss"}},
    ]
    cells = [
        {"name": "half", "ports": ["a", "y", "vss"], "devices": devices},
        {
            "name": "top",
            "ports": ["a", "b", "vss"],
            "devices": [],
            "instances": [
                {"id": "X1", "cell": "half", "terminals": {"a": "a", "y": "b", "vss": "vss"}},
                {"id": "X2", "cell": "half", "terminals": {"a": "b", "y": "a", "vss": "vss"}},
            ],
        },
    ]
    circuit = circuit_from_json({"cells": cells, "top": "top"})
    hierarchy = find_repeated(circuit)
    flat_again(circuit, hierarchy)
    assert [use.nets["x"] for use in hierarchy.shared[0].uses] == ["X1.x", "X2.x"]


def test_a_circuit_without_repetition_shares_nothing():
    once = repeated(f"{INVERTER}.subckt top a y vdd vss\nX1 a y vdd vss inv\n.ends\n")
    assert (once.shared, once.parts) == ((), ())
