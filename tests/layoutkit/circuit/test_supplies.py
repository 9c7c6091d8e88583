"""What is found as power and ground, and what the user states in its place, in every tool that reads a netlist."""

import json

import pytest

from layoutkit.circuit import find_roles, read_netlist
from layoutkit.circuit.circuit import StatedSupplies
from layoutkit.circuit.readers.source import NetlistText
from layoutkit.errors import LayoutkitError
from layoutkit.tools.constraint_request import read_circuit, suggested_by_recognition
from layoutkit.tools.netlist_request import parse, parse_info

# A pass device whose input is named like a signal and whose output drives the wells of what it feeds.
SWITCHED = """.subckt sw a y g gnd
M1 y g a a pmos W=10u L=0.5u
M2 o i y y pmos W=2u L=0.5u
M3 o i gnd gnd nmos W=1u L=0.5u
.ends
"""
PARSED = {"netlist_text": SWITCHED, "format": "auto", "identify_modules": True}


def stated(**nets):
    return read_netlist(NetlistText(SWITCHED), supplies=StatedSupplies(**nets))


def test_stated_nets_take_the_place_of_those_found_and_say_so():
    found = find_roles(read_netlist(NetlistText(SWITCHED))).supplies
    assert "a" in found.power
    assert "y" not in found.power
    roles = find_roles(stated(power=("y",), reason="the regulated rail"))
    assert roles.supplies.power == ("y",)
    assert roles.supplies.ground == found.ground  # what is not stated is found
    assert roles.supplies.reasons["y"] == "stated by the user: the regulated rail"
    assert roles.ports["y"].use == "power"
    assert roles.ports["a"].use == "signal"
    assert find_roles(stated(power=())).supplies.power == ()


def test_drain_and_source_follow_the_stated_supplies():
    text = ".subckt s p q g\nM1 p g q b nmos W=1u L=0.5u\n.ends\n"
    for ground, drain in (("q", "p"), ("p", "q")):
        circuit = read_netlist(NetlistText(text), supplies=StatedSupplies(ground=(ground,)))
        assert circuit.device("M1").terminals["d"] == drain


def test_the_circuit_keeps_stated_supplies_in_its_json_form(tmp_path):
    path = tmp_path / "circuit.json"
    path.write_text(json.dumps(stated(power=("y",), reason="r").to_json()))
    assert find_roles(read_netlist(path)).supplies.power == ("y",)
    data = {**stated(power=("y",)).to_json(), "supplies": {"power": ["yy"], "ground": ["y", "y"]}}
    path.write_text(json.dumps(data))
    with pytest.raises(LayoutkitError, match=r"supplies.power - the circuit has no net 'yy'.*listed twice"):
        read_netlist(path)


def test_parse_and_plan_take_supply_nets_and_the_plan_states_them():
    params = {**PARSED, "supply_nets": {"power": ["y"]}}
    info = parse_info(parse(params))
    assert info["power_nets"] == ["y"]
    plan = suggested_by_recognition(read_circuit({"netlist_text": SWITCHED, "supply_nets": {"power": ["y"]}}))
    assert plan["supplies"] == {"power": ["y"]}
    assert "supplies" not in suggested_by_recognition(read_circuit({"netlist_text": SWITCHED}))
    circuit = {"circuit": parse(PARSED).to_json(), "supply_nets": {"power": ["y"]}}
    assert suggested_by_recognition(read_circuit(circuit))["supplies"] == {"power": ["y"]}


@pytest.mark.parametrize("read", [parse, read_circuit])
def test_every_wrong_name_is_refused_at_once(read):
    wrong = {"power": ["Y", "y", "y"], "ground": ["y", "ground"]}
    params = {**(PARSED if read is parse else {"netlist_text": SWITCHED}), "supply_nets": wrong}
    with pytest.raises(LayoutkitError) as caught:
        read(params)
    told = [(each["path"], each["message"].split()[0]) for each in caught.value.details["errors"]]
    assert told == [
        ("supply_nets.power", "the"), ("supply_nets.power", "'y'"),
        ("supply_nets.ground", "'y'"), ("supply_nets.ground", "the"),
    ]  # fmt: skip


def test_a_port_that_feeds_only_loads_is_power_where_there_is_no_pmos():
    pair = "M1 a i t g nmos W=1u L=1u\nM2 b j t g nmos W=1u L=1u\nM3 t k g g nmos W=1u L=1u\nRa v a 1k\nRb b v 1k\n"
    found = find_roles(read_netlist(NetlistText(f".subckt s i j k v g a b\n{pair}.ends\n"))).supplies
    assert (found.power, found.ground) == (("v",), ("g",))
    assert found.reasons["v"] == "feeds the 2 loads Ra, Rb of NMOS transistors"
    one = pair.replace("Rb b v 1k\n", "")  # may as well be a current that comes in
    assert find_roles(read_netlist(NetlistText(f".subckt s i j k v g a b\n{one}.ends\n"))).supplies.power == ()


def test_a_gate_that_is_always_on_makes_no_signal_of_a_rail_and_a_name_no_rail_of_a_switched_plate():
    """A bootstrapped switch: NMOS gates on vdd, and a plate named vcc that only switches to vss and the input drive."""
    text = """.subckt boot vdd vss ck ckn vin
MN1 g ckn vss vss nmos W=1u L=0.3u
MN2 x vdd g vss nmos W=1u L=0.3u
MN3 vcc ckn vss vss nmos W=1u L=0.3u
MN4 vin x vcc vss nmos W=1u L=0.3u
MP1 top x vdd top pmos W=1u L=0.3u
MP2 cc ck vdd vdd pmos W=1u L=0.3u
MP3 x cc top top pmos W=1u L=0.3u
MP4 ckx ck vdd vdd pmos W=1u L=0.3u
C1 top vcc 1p
.ends
"""
    found = find_roles(read_netlist(NetlistText(text))).supplies
    assert (found.power, found.ground) == (("vdd",), ("vss",))


def test_the_tail_of_a_pair_that_gets_its_current_from_outside_is_no_supply():
    text = """.subckt ota p g i j o t
M1 a i t t pmos W=4u L=1u
M2 o j t t pmos W=4u L=1u
M3 a a g g nmos W=4u L=1u
M4 o a g g nmos W=4u L=1u
M5 o o p p pmos W=2u L=1u
.ends
"""
    found = find_roles(read_netlist(NetlistText(text))).supplies
    assert (found.power, found.ground) == (("p",), ("g",))
    unequal = read_netlist(NetlistText(text.replace("M2 o j t t pmos W=4u", "M2 o j t t pmos W=9u")))
    assert find_roles(unequal).supplies.power == ("p", "t")  # two loads of a rail of their own
