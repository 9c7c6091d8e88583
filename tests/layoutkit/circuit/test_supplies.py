"""What is found as power and ground, and what the user states in its place, in every tool that reads a netlist."""

import json
from types import SimpleNamespace

import pytest

from layoutkit.circuit import find_roles, read_netlist
from layoutkit.circuit.circuit import StatedSupplies
from layoutkit.circuit.orientation import is_off
from layoutkit.circuit.readers.source import NetlistText
from layoutkit.circuit.suggested_constraints import symmetry_lines
from layoutkit.errors import LayoutkitError
from layoutkit.tools.netlist_request import parse, parse_info, read_circuit, suggested_by_recognition

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
    assert found.reasons["v"] == "the 2 loads Ra, Rb of NMOS transistors end on it"
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


AMPLIFIER = "M1 x i t {n} nmos W=2u L=1u\nM2 o j t {n} nmos W=2u L=1u\nM3 t k g {n} nmos W=2u L=1u\n"
MIRROR = "M4 x x v {p} pmos W=4u L=1u\nM5 o x v {p} pmos W=4u L=1u\nM6 q o v {p} pmos W=4u L=1u\n"
SINK = "M7 q k g {n} nmos W=2u L=1u\nM8 k k g {n} nmos W=2u L=1u\n"
STRUCTURES = {  # ports, cards, power and ground
    "wells inside": ("i j k o q v g", (AMPLIFIER + MIRROR + SINK).format(n="sub", p="nw"), "v", "g"),
    "wells that are ports": ("i j k v g pb nb", (AMPLIFIER + MIRROR + SINK).format(n="nb", p="pb"), "v", "g"),
    "a load transistor across the rails": (
        "i j k o q v g", (AMPLIFIER + MIRROR + SINK + "M9 g q v {p} pmos W=90u L=1u\n").format(n="sub", p="nw"),
        "v", "g"
    ),
    "inverters that the outside starves": (
        "a v g w", ("M1 b a v w pmos W=2u L=1u\nM2 b a g g nmos W=1u L=1u\n"
        "M3 a b v w pmos W=2u L=1u\nM4 a b g g nmos W=1u L=1u\n"), "w", "g"
    ),
    "a tap on a port": (
        "i j k o q v g sub", (AMPLIFIER + MIRROR + SINK).format(n="sub", p="v") + "R1 g sub ptap1 A=1p P=4u\n",
        "v", "g sub"
    ),
    "NPN transistors under loads": (
        "i j g", "Q1 a i g g npn\nQ2 b j g g npn\nR1 v a 1k\nR2 v b 1k\nR3 i e 9k\nR4 j e 9k\nC1 v g 1p\n", "v", "g"
    ),
    "PNP diodes under PMOS transistors": (
        "v f a g", ("M1 a f v v pmos W=2u L=1u\nM2 b f v v pmos W=2u L=1u\n"
        "R1 b c 1k\nQ1 g g a pnp m=1\nQ2 g g c pnp m=8\n"), "v", "g"
    ),
    "PMOS transistors alone": (
        "i j k v g", ("M1 a i t v pmos W=2u L=1u\nM2 b j t v pmos W=2u L=1u\nM3 t k v v pmos W=2u L=1u\n"
        "R1 a g 1k\nR2 b g 1k\n"), "v", "g"
    ),
    "PMOS transistors alone, with resistors at their sources": (
        "v k a b",
        "M1 a k x v pmos W=2u L=1u\nM2 b k y v pmos W=2u L=1u\nR1 v x 1k\nR2 v y 1k\n",
        "v",
        "",
    ),
    "NMOS transistors alone, with resistors at their sources": (
        "g k a b",
        "M1 a k x g nmos W=2u L=1u\nM2 b k y g nmos W=2u L=1u\nR1 g x 1k\nR2 g y 1k\n",
        "",
        "g",
    ),
    "NMOS transistors alone, with diodes as loads": (
        "i j k v g", ("M1 a i t g nmos W=2u L=1u\nM2 b j t g nmos W=2u L=1u\nM3 t k g g nmos W=2u L=1u\n"
        "M4 v v a g nmos W=2u L=1u\nM5 v v b g nmos W=2u L=1u\n"), "v", "g"
    ),
    "three resistors, each behind a switch": (
        "p q i j k g", ("M1 q i a g nmos W=2u L=1u\nM2 q j b g nmos W=4u L=1u\nM3 q k c g nmos W=8u L=1u\n"
        "R1 a p 4k\nR2 b p 2k\nR3 c p 1k\n"), "", "g"
    ),
    "two inverters of two drivers, each on a supply of its own": (
        "a b c d v w g h", ("M1 n a v v pmos W=2u L=1u\nM2 n a g g nmos W=2u L=1u\nM3 m b v v pmos W=2u L=1u\n"
        "M4 m b g g nmos W=2u L=1u\nM5 c n w w pmos W=9u L=1u\nM6 c n h h nmos W=9u L=1u\n"
        "M7 d m w w pmos W=9u L=1u\nM8 d m h h nmos W=9u L=1u\n"), "v w", "g h"
    ),
    "a gate that is always on": ("v a b g", "M1 a g b v pmos W=2u L=1u\nM2 a v b g nmos W=2u L=1u\n", "v", "g"),
    "the plate of a bootstrap capacitor": (
        "v g k a b", ("M1 c k v v pmos W=2u L=1u\nM2 c k g g nmos W=1u L=1u\nM3 v x d d pmos W=2u L=1u\n"
        "M4 x c d d pmos W=2u L=1u\nM5 x k g g nmos W=1u L=1u\nM6 b x a g nmos W=9u L=1u\nC1 d c 1p\n"), "v", "g"
    ),
    "two resistors that sense a common mode": (
        "i j k g a b", ("M1 a i t g nmos W=2u L=1u\nM2 b j t g nmos W=2u L=1u\nM3 t k g g nmos W=2u L=1u\n"
        "R1 a m 9k\nR2 b m 9k\nR3 a u 1k\nR4 b w 1k\nC1 m g 1p\n"), "", "g"
    ),
    "a multiplexer of one type": (
        "a b c d s t u o w", ("M1 x s a w nmos W=1u L=1u\nM2 x t b w nmos W=1u L=1u\nM3 y s c w nmos W=1u L=1u\n"
        "M4 y t d w nmos W=1u L=1u\nM5 o u x w nmos W=1u L=1u\nM6 o t y w nmos W=1u L=1u\n"), "", "w"
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", STRUCTURES)
def test_structure_tells_the_supplies_whatever_the_nets_are_called(kind):
    """The nets have no names that tell; in a second reading they have others, in a third the supplies have theirs."""
    ports, cards, power, ground = STRUCTURES[kind]
    text = f".subckt s {ports}\n{cards}.ends\n"
    nets = sorted(
        {word for line in cards.splitlines() for word in line.split()[1:5] if word.isalpha()} | set(ports.split())
    )
    nets = [net for net in nets if net not in {"nmos", "pmos", "npn", "pnp"}]
    for names in ({}, {net: f"n{91 - 7 * i}" for i, net in enumerate(nets)}, {power: "vdd", ground: "vss"}):
        renamed = "\n".join(" ".join(names.get(word, word) for word in line.split(" ")) for line in text.split("\n"))
        found = find_roles(read_netlist(NetlistText(renamed))).supplies
        expected = [tuple(sorted(names.get(net, net) for net in each.split())) for each in (power, ground)]
        assert [found.power, found.ground] == expected, names
        assert not any("by its name" in reason for reason in found.reasons.values())


ERROR_AMPLIFIER = """M1 g ref t sub nmos W=4u L=0.5u
M2 y {sense} t sub nmos W=4u L=0.5u
M3 y y in in pmos W=4u L=0.5u
M4 g y in in pmos W=4u L=0.5u
M5 t ref sub sub nmos W=2u L=2u
"""
CHAIN = """M6 p a {rail} {rail} pmos W=2u L=0.2u
M7 p a sub sub nmos W=1u L=0.2u
M8 o p {rail} {rail} pmos W=2u L=0.2u
M9 o p sub sub nmos W=1u L=0.2u
"""
PAIR = """M6 p a {rail} {rail} pmos W=2u L=1u
M7 q b {rail} {rail} pmos W=2u L=1u
R8 p c 9k
R9 c q 9k
M10 p k sub sub nmos W=1u L=1u
M11 q k sub sub nmos W=1u L=1u
"""
SERIES_DEVICE = "M0 r g in in pmos W=99u L=0.5u nf=9\n"
LATCH = """M6 p q r r pmos W=2u L=1u
M7 p q sub sub nmos W=1u L=1u
M8 q p r r pmos W=2u L=1u
M9 q p sub sub nmos W=1u L=1u
"""
REGULATED = {
    "an amplifier that senses the rail": SERIES_DEVICE + ERROR_AMPLIFIER.format(sense="r") + CHAIN.format(rail="r"),
    "an amplifier behind a divider": SERIES_DEVICE
    + ERROR_AMPLIFIER.format(sense="f")
    + "R1 r f 9k\nR2 f sub 9k\n"
    + PAIR.format(rail="r"),
    "a follower without feedback": "M0 in g r sub nmos W=99u L=0.5u\n"
    + CHAIN.format(rail="r")
    + "M3 z a in in pmos W=2u L=1u\n",
}
NOT_REGULATED = {
    "the tail of a pair in a well of its own, which an amplifier drives from the outputs": SERIES_DEVICE
    + ERROR_AMPLIFIER.format(sense="c")
    + PAIR.format(rail="r"),
    "the head of a latch": "M0 r g in in pmos W=9u L=0.5u\nM3 z a in in pmos W=2u L=1u\n" + LATCH,
}


def regulated(cards, supplies=None, **names):
    """Return the roles of these cards as a circuit, with the names given in place of their own."""
    text = f".subckt s ref a b k o g in sub\n{cards}.ends\n"
    lines = (" ".join(names.get(word, word) for word in line.split(" ")) for line in text.split("\n"))
    return find_roles(read_netlist(NetlistText("\n".join(lines)), supplies=supplies))


@pytest.mark.parametrize("kind", REGULATED)
def test_the_output_of_a_pass_device_is_the_supply_of_what_hangs_on_it(kind):
    """With inner names that say nothing, and with those of a supply and of a signal exchanged."""
    for names in ({}, {"r": "z1", "in": "z2"}, {"r": "a1", "in": "z2"}, {"r": "net5", "in": "vin"}):
        supplies = regulated(REGULATED[kind], **names).supplies
        rail, source = names.get("r", "r"), names.get("in", "in")
        assert set(supplies.power) == {rail, source}
        assert supplies.regulated == {rail}
        assert supplies.reasons[rail].endswith(f"fed from {source} by M0")
        assert "fed" not in supplies.reasons[source]


GATED = """M0 r {on} in in pmos W=40u L=0.5u
M1 k k r in pmos W=4u L=1u
M2 p k r in pmos W=4u L=1u
M3 q k r in pmos W=8u L=1u
C1 r sub 1p
M4 p p sub sub nmos W=4u L=1u
M5 q p sub sub nmos W=4u L=1u
"""
SWITCHES = {"a port": "b", "an inverter": "n"}


@pytest.mark.parametrize("kind", SWITCHES)
def test_a_switch_makes_a_rail_of_the_net_on_which_a_mirror_and_its_reference_stand(kind):
    inverter = "M6 n a in in pmos W=2u L=0.2u\nM7 n a sub sub nmos W=1u L=0.2u\n"
    for names in ({}, {"r": "z1", "in": "z2"}, {"r": "a1", "in": "z2"}, {"r": "vdd", "in": "p1"}):
        supplies = regulated(GATED.format(on=SWITCHES[kind]) + inverter, **names).supplies
        rail, source = names.get("r", "r"), names.get("in", "in")
        assert set(supplies.power) == {rail, source}
        assert rail not in supplies.regulated, "no signal acts on it"
        assert supplies.reasons[rail].endswith(f"fed from {source} by M0")


def test_a_clocked_tail_a_starved_rail_and_the_tail_of_a_current_are_no_rails():
    pair = "M1 p a r in pmos W=4u L=1u\nM2 q b r in pmos W=4u L=1u\nM3 p q sub sub nmos W=4u L=1u\n"
    starved = CHAIN.replace("{rail} {rail}", "r in") + "M1 a o r in pmos W=2u L=0.2u\nM2 a o sub sub nmos W=1u L=0.2u\n"
    for cards in (pair + "M4 q p sub sub nmos W=4u L=1u\n", starved):
        assert "r" not in regulated("M0 r k in in pmos W=40u L=0.5u\n" + cards).supplies.power
    driven = GATED.format(on="y") + "M6 y y in in pmos W=2u L=0.2u\n"
    assert "r" not in regulated(driven).supplies.power, "its gate carries a bias"


@pytest.mark.parametrize("kind", NOT_REGULATED)
def test_a_tail_and_the_head_of_a_latch_are_no_regulated_rails(kind):
    assert "r" not in regulated(NOT_REGULATED[kind]).supplies.power


@pytest.mark.parametrize("stated", [None, ("in", "r")])
def test_a_regulated_rail_stays_a_signal_of_its_loop_stated_or_not(stated):
    roles = regulated(REGULATED["an amplifier that senses the rail"], stated and StatedSupplies(power=stated))
    assert roles.supplies.power == ("in", "r")
    groups = {(group.type, frozenset(group.devices)) for group in roles.groups}
    assert {("differential_pair", frozenset({"M1", "M2"})), ("current_mirror", frozenset({"M3", "M4"}))} <= groups
    assert sum(kind == "inverter" for kind, _ in groups) == 2
    (structure,) = roles.symmetry
    assert {frozenset(pair) for pair in structure.net_pairs} == {frozenset({"r", "ref"}), frozenset({"y", "g"})}
    assert structure.unmatched == 1  # the pass device; what hangs on the rail is not on the signal


def test_the_wires_of_a_regulated_rail_mirror_no_others_and_it_needs_no_pin():
    cards = REGULATED["an amplifier that senses the rail"]
    circuit = read_netlist(NetlistText(f".subckt s ref a b k o g in sub\n{cards}.ends\n"))
    (group,) = suggested_by_recognition(circuit)["symmetry"]
    assert [sorted(pair) for pair in group["net_pairs"]] == [["g", "y"]]
    assert not any("no pin" in warning for warning in parse_info(circuit)["warnings"])


def test_a_supply_that_only_its_name_tells_says_so():
    """A divider with a follower: nothing but its name makes power of the port at its top."""
    text = ".subckt s {0} g o\nR1 {0} a 1k\nR2 a g 1k\nM1 {0} a o g nmos W=2u L=1u\nM2 o a g g nmos W=2u L=1u\n.ends\n"
    found = find_roles(read_netlist(NetlistText(text.format("vdd")))).supplies
    assert (found.power, found.ground) == (("vdd",), ("g",))
    assert found.reasons["vdd"] == "only by its name"
    assert "name" not in found.reasons["g"]
    assert find_roles(read_netlist(NetlistText(text.format("x")))).supplies.power == ()


def test_the_rail_of_a_block_is_found_where_wells_alone_have_the_name_of_a_supply():
    """A clocked latch whose wells are on vdd! and whose sources are on a port of another name."""
    text = """.subckt latch clk inp inn x y k vdd! vss
M0 t clk vss vss nmos W=4u L=0.1u
M1 a inp t vss nmos W=4u L=0.1u
M2 b inn t vss nmos W=4u L=0.1u
M3 x y a vss nmos W=2u L=0.1u
M4 y x b vss nmos W=2u L=0.1u
M5 x y k vdd! pmos W=2u L=0.1u
M6 y x k vdd! pmos W=2u L=0.1u
M7 x clk k vdd! pmos W=1u L=0.1u
M8 y clk k vdd! pmos W=1u L=0.1u
.ends
"""
    roles = find_roles(read_netlist(NetlistText(text)))
    assert "k" in roles.supplies.power
    groups = {(group.type, frozenset(group.devices)) for group in roles.groups}
    assert ("cross_coupled_pair", frozenset({"M5", "M6"})) in groups


def test_diodes_against_antenna_charge_do_not_drive_a_net():
    """An enable input with its antenna diodes is a logic signal: what it pulls down in both halves is no pair."""
    text = """.subckt pair en inp inn o1 o2 vdd vss
D1 vss en dio
D2 en vdd dio
MI1 enb en vss vss nmos W=1u L=0.2u
MI2 enb en vdd vdd pmos W=2u L=0.2u
M0 t b vss vss nmos W=4u L=1u
MB b b vss vss nmos W=4u L=1u
M1 x inp t vss nmos W=8u L=0.5u
M2 y inn t vss nmos W=8u L=0.5u
M3 x x vdd vdd pmos W=4u L=1u
M4 y y vdd vdd pmos W=4u L=1u
M5 o1 x vdd vdd pmos W=4u L=1u
M6 o2 y vdd vdd pmos W=4u L=1u
M7 x en vdd vdd pmos W=1u L=0.2u
M8 y en vdd vdd pmos W=1u L=0.2u
.model dio d
.ends
"""
    roles = find_roles(read_netlist(NetlistText(text)))
    grouped = {name for group in roles.groups for name in group.devices}
    assert not grouped & {"M7", "M8"}
    images = {frozenset(pair[1:]) for structure in roles.symmetry for pair in structure.pairs}
    assert {frozenset({"M1", "M2"}), frozenset({"M7", "M8"})} <= images


def test_a_port_whose_current_a_switch_in_its_own_well_passes_to_a_diode_is_no_supply():
    text = """.subckt s a stop q o v g
M1 d stop a a pmos W=1u L=0.2u
M2 d d g g nmos W=2u L=1u
M3 o d g g nmos W=2u L=1u
M4 o o v v pmos W=4u L=1u
M5 q o v v pmos W=4u L=1u
.ends
"""
    supplies = find_roles(read_netlist(NetlistText(text))).supplies
    assert (supplies.power, supplies.ground) == (("v",), ("g",))


@pytest.mark.parametrize("diodes", [1, 2])
def test_a_transistor_whose_gate_drain_and_well_are_on_the_ground_is_a_diode_that_conducts(diodes):
    """Those of a bandgap; a dummy has its gate and its well on the power."""
    cards = "".join(f"M{n} g g x{n} g pmos W=10u L=2u\nR{n} x{n} o 10k\n" for n in range(diodes))
    text = f""".subckt s a o v g
{cards}M7 a a v v pmos W=10u L=1u
M8 o a v v pmos W=10u L=1u
M9 a o g g nmos W=4u L=1u
MD o v v v pmos W=10u L=1u
.ends
"""
    circuit = read_netlist(NetlistText(text))
    supplies = find_roles(circuit).supplies
    assert (supplies.power, supplies.ground) == (("v",), ("g",))
    assert [d.id for d in circuit.devices if d.is_mos and is_off(d, supplies)] == ["MD"]


def test_reasons_are_in_the_singular_and_the_plural():
    text = "M1 o i vss vss nmos W=1u L=1u\nM2 o i vdd vdd pmos W=1u L=1u\nM3 p j vdd vdd pmos W=1u L=1u\n"
    reasons = find_roles(read_netlist(NetlistText(f".subckt s i j o p vdd vss\n{text}.ends\n"))).supplies.reasons
    assert reasons["vss"] == "its name; body of 1 NMOS transistor, 1 of them ends on it"
    assert reasons["vdd"] == "its name; body of 2 PMOS transistors, 2 of them end on it"


@pytest.mark.parametrize(("count", "words"), [(1, "1 device has no image"), (2, "2 devices have no image")])
def test_a_symmetric_structure_names_one_device_without_image_in_the_singular(count, words):
    structure = SimpleNamespace(pairs=[("pair", "M1", "M2")], centred=(), net_pairs=[("a", "b")], unmatched=count)
    assert symmetry_lines([structure]) == [
        f"M1 and M2 mirror each other about one axis; nets a/b; {words} on these nets"
    ]


@pytest.mark.parametrize(("loaded", "is_supply"), [("", True), ("R1 block vdd 1k", False)])
def test_a_net_that_only_feeds_the_wells_of_many_transistors_is_a_port_that_was_forgotten(loaded, is_supply):
    inverters = "".join(f"MP{n} o{n} i{n} block block pmos\nMN{n} o{n} i{n} 0 0 nmos\n" for n in range(4))
    text = f"{inverters}MPA q i9 vdd vdd pmos\nMNA q i9 0 0 nmos\nR2 block o2 9k\n{loaded}\n"
    text = text.replace("pmos\n", "pmos W=2u L=1u\n").replace("nmos\n", "nmos W=1u L=1u\n")
    circuit = read_netlist(NetlistText("* flat\n" + text + ".end\n"))
    assert ("block" in find_roles(circuit).supplies.power) == is_supply


def test_a_coil_in_series_with_its_resistance_is_no_supply_of_an_oscillator():
    text = """
.subckt vco vcc outp outn bp bn e 0
L1 vcc n1 0.45n
R1 n1 outp 5.85
L2 vcc n2 0.45n
R2 n2 outn 5.85
Q1 outp outn e 0 npn13G2
Q2 outn outp e 0 npn13G2
Q3 vcc outp bp 0 npn13G2
Q4 vcc outn bn 0 npn13G2
.ends
"""
    circuit = read_netlist(NetlistText(text))
    assert find_roles(circuit).supplies.power == ("vcc",)
    bipolars = [(m.type, m.devices) for m in circuit.modules if "Q1" in m.devices or m.type.startswith("bipolar")]
    assert bipolars == [("cross_coupled_pair", ("Q1", "Q2"))]  # the followers on their bases are no arrays with them


def test_with_wells_of_their_own_the_rail_is_the_port_that_feeds_most_nets_whatever_ends_on_a_resistor_s():
    text = """
.subckt bias vn vp vbn vbp r
MA net1 vbp vp vdd pch w=6u l=0.5u
MB net2 net2 vp vdd pch w=6u l=0.5u
MC vbp net2 vp vdd pch w=6u l=0.5u
MD vbn vbp vp vdd pch w=6u l=0.5u
M1 net1 net1 r gnd nch w=6u l=0.5u m=18
M1b net1 net1 r gnd nch w=6u l=0.5u
M1c net1 net1 r gnd nch w=6u l=0.5u
M1d net1 net1 r gnd nch w=6u l=0.5u
M2 net2 net1 vn gnd nch w=6u l=0.5u
M3 vbp vbn vn gnd nch w=6u l=0.5u
M4 vbn vbn vn gnd nch w=6u l=0.5u
MX vn vn net1 gnd nch w=6u l=0.5u
MY vp vp vbp vdd pch w=6u l=0.5u
.global vdd gnd
.ends
"""
    found = find_roles(read_netlist(NetlistText(text))).supplies
    assert {"vp"} <= set(found.power)
    assert "vn" in found.ground
    assert "r" not in found.ground
