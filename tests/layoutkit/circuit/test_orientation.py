"""Drain and source follow the current, and supplies the structure, whatever the netlist calls them."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutkit.circuit import find_roles, read_netlist, write_spice
from layoutkit.circuit.orientation import carries_both_ways, oriented
from layoutkit.circuit.readers.source import NetlistText
from layoutkit.circuit.supplies import find_supplies
from layoutkit.technology import load

AMPLIFIER = """.subckt amp vdd vss inp inn out ib
M1 x inp t vss nmos W=4u L=0.5u
M2 out inn t vss nmos W=4u L=0.5u
M3 x x vdd vdd pmos W=4u L=0.5u
M4 out x vdd vdd pmos W=4u L=0.5u
M5 t ib vss vss nmos W=4u L=0.5u
M6 ib ib vss vss nmos W=4u L=0.5u
{more}.ends
"""
FOLDED = """.subckt folded inp inn outp outn bp cp cn bn cm vdd vss
MT t bp vdd vdd pmos W=8u L=1u
M1 f1 inp t {body} pmos W=8u L=0.5u
M2 f2 inn t {body} pmos W=8u L=0.5u
MC1 t outp vss vss nmos W=1u L=1u
MC2 t outn vss vss nmos W=1u L=1u
M3 f1 bn vss vss nmos W=4u L=1u
M4 f2 bn vss vss nmos W=4u L=1u
M5 outn cn f1 vss nmos W=4u L=0.5u
M6 outp cn f2 vss nmos W=4u L=0.5u
M7 outn cp u1 vdd pmos W=4u L=0.5u
M8 outp cp u2 vdd pmos W=4u L=0.5u
M9 u1 bp vdd vdd pmos W=4u L=1u
M10 u2 bp vdd vdd pmos W=4u L=1u
.ends
"""
STRONG_ARM = """.subckt latch clk inp inn x y vdd vss
MT com clk vss vss nmos W=4u L=0.18u
M1 dp inp com vss nmos W=8u L=0.18u
M2 dn inn com vss nmos W=8u L=0.18u
M3 x y dp vss nmos W=4u L=0.18u
M4 y x dn vss nmos W=4u L=0.18u
M5 x y vdd vdd pmos W=4u L=0.18u
M6 y x vdd vdd pmos W=4u L=0.18u
M7 dp clk vdd vdd pmos W=1u L=0.18u
M8 dn clk vdd vdd pmos W=1u L=0.18u
.ends
"""
RING = """.subckt ring vctl vo vccx vssx
MP1 n1 vo vctl vccx pmos W=2u L=0.2u
MN1 n1 vo vssx vssx nmos W=1u L=0.2u
MP2 n2 n1 vctl vccx pmos W=2u L=0.2u
MN2 n2 n1 vssx vssx nmos W=1u L=0.2u
MP3 vo n2 vctl vccx pmos W=2u L=0.2u
MN3 vo n2 vssx vssx nmos W=1u L=0.2u
.ends
"""
OPEN_DRAIN = """.subckt mul xp xn wp wn op on bias vss
M1 t1 xp s vss nmos W=4u L=0.5u
M2 t2 xn s vss nmos W=4u L=0.5u
M3 op wp t1 vss nmos W=4u L=0.5u
M4 on wn t1 vss nmos W=4u L=0.5u
M5 on wp t2 vss nmos W=4u L=0.5u
M6 op wn t2 vss nmos W=4u L=0.5u
M7 s bias vss vss nmos W=8u L=1u
.ends
"""
WRITTEN_RIGHT = {
    "amplifier": AMPLIFIER.format(more=""),
    "output held at ground while off": AMPLIFIER.format(more="M7 out en vss vss nmos W=1u L=0.5u\n"),
    "output held at power while off": AMPLIFIER.format(more="M7 out en vdd vdd pmos W=1u L=0.5u\n"),
    "folded": FOLDED.format(body="vdd"),
    "folded, pair in a well of its own": FOLDED.format(body="t"),
    "strong arm": STRONG_ARM,
    "strong arm reset to ground": STRONG_ARM.replace(".ends", "M9 x rst vss vss nmos W=1u L=0.18u\n.ends"),
    "ring": RING,
    "open drains": OPEN_DRAIN,
}


def circuit_of(text, **options):
    return read_netlist(NetlistText(text), **options)


def exchanged(circuit, names):
    """Return ``circuit`` as a netlist would give it that names the ends of the transistors ``names`` the other way."""
    devices = (d.with_ends_exchanged() if d.id in names else d for d in circuit.devices)
    return replace(circuit, devices=tuple(replace(d, exchanged=False) for d in devices))


@pytest.mark.parametrize("name", WRITTEN_RIGHT)
def test_a_circuit_that_is_written_right_stays_as_it_is(name):
    assert [d.id for d in circuit_of(WRITTEN_RIGHT[name]).devices if d.exchanged] == []


@pytest.mark.parametrize("name", WRITTEN_RIGHT)
@given(data=st.data())
@settings(max_examples=15)
def test_exchanging_drain_and_source_changes_nothing(name, data):
    circuit = circuit_of(WRITTEN_RIGHT[name])
    names = data.draw(st.sets(st.sampled_from([device.id for device in circuit.devices])))
    turned = oriented(exchanged(circuit, names))
    assert turned == circuit
    assert find_supplies(turned) == find_supplies(circuit)
    assert {device.id for device in turned.devices if device.exchanged} == names


def test_the_modules_of_an_amplifier_do_not_depend_on_the_order_of_terminals():
    drawn = AMPLIFIER.format(more="")
    flipped = drawn
    for card, other in (("out inn t vss", "t inn out vss"), ("x x vdd vdd", "vdd x x vdd"), ("ib ib vss", "vss ib ib")):
        flipped = flipped.replace(card, other)
    assert flipped != drawn
    found = circuit_of(flipped)
    assert [d.id for d in found.devices if d.exchanged] == ["M2", "M3", "M6"]
    assert found.modules == circuit_of(drawn).modules
    assert [m.type for m in found.modules] == ["differential_pair", "current_mirror", "current_mirror"]


def test_netlists_are_written_in_the_order_of_the_one_that_was_read():
    text = AMPLIFIER.format(more="").replace("out inn t vss nmos W=4u L=0.5u", "t inn out vss nmos W=4u L=0.5u as=2p")
    circuit = circuit_of(text)
    assert circuit.device("M2").junctions == {"ad": pytest.approx(2e-12)}, "drain and source exchanged"
    card = next(line for line in write_spice(circuit, load("generic")).splitlines() if line.startswith("M2 "))
    assert card.split()[1:5] == ["t", "inn", "out", "vss"]
    assert circuit.device("M2").to_json()["terminals"] == {"d": "t", "g": "inn", "s": "out", "b": "vss"}
    assert circuit.device("M2").to_json()["params"]["as"] == pytest.approx(2e-12)


def test_a_transmission_gate_carries_current_both_ways_and_is_alike_in_every_instance():
    text = """.subckt gate a z c cb vdd vss
M1 a c z vss nmos W=1u L=0.2u
M2 z cb a vdd pmos W=2u L=0.2u
.ends
.subckt top in mid out c cb vdd vss
X1 in mid c cb vdd vss gate
X2 out mid cb c vdd vss gate
M5 mid out vss vss nmos W=1u L=0.2u
.ends
"""
    circuit = circuit_of(text, top="top")
    assert carries_both_ways(circuit) == {"X1.M1", "X1.M2", "X2.M1", "X2.M2"}
    drains = [[circuit.device(f"{x}.{m}").terminals["d"] for m in ("M1", "M2")] for x in ("X1", "X2")]
    assert drains in ([["in", "in"], ["out", "out"]], [["mid", "mid"], ["mid", "mid"]])


def test_transistors_of_both_types_between_a_rail_and_a_net_are_no_transmission_gate():
    text = """.subckt follower a z y vdd vss
M1 vdd a y y nmos W=4u L=0.6u
M2 y z vdd vdd pmos W=2u L=0.6u
M3 y y vss vss nmos W=2u L=1u
.ends
"""
    circuit = circuit_of(text)
    assert carries_both_ways(circuit) == frozenset()
    assert [d.id for d in circuit.devices if d.exchanged] == []


SUPPLIES = {
    "a pass transistor, its enable switch, written source first, and a load": (
        """.subckt reg vin en g out vss
M1 out g vin vin pmos W=90u L=0.5u
M2 vin en g vin pmos W=5u L=0.5u
M3 out en vss vss nmos W=5u L=0.6u
.ends
""",
        ("vin",),
        ("vss",),
    ),
    "two domains with voltages in their names": (
        """.subckt shift vgnd vdd3v3 vdd1v8 a y
M1 an a vgnd vgnd nmos W=1u L=0.2u
M2 an a vdd1v8 vdd1v8 pmos W=2u L=0.2u
M3 yn a vgnd vgnd nmos W=4u L=0.5u
M4 y an vgnd vgnd nmos W=4u L=0.5u
M5 yn y vdd3v3 vdd3v3 pmos W=1u L=0.5u
M6 y yn vdd3v3 vdd3v3 pmos W=1u L=0.5u
.ends
""",
        ("vdd1v8", "vdd3v3"),
        ("vgnd",),
    ),
    "inner rails of a starved inverter, named like supplies": (
        """.subckt starved a y bp bn vdd vss
M1 vdd_inv bp vdd vdd pmos W=1u L=1u
M2 y a vdd_inv vdd pmos W=1u L=0.2u
M3 y a vss_inv vss nmos W=1u L=0.2u
M4 vss_inv bn vss vss nmos W=1u L=1u
.ends
""",
        ("vdd",),
        ("vss",),
    ),
    "an input that senses the ground of a load, named like a ground": (
        """.subckt sense vss_sense ref y b vdd vss
M1 x vss_sense t vss nmos W=1u L=1u
M2 y ref t vss nmos W=1u L=1u
M3 t b vss vss nmos W=1u L=1u
M4 x x vdd vdd pmos W=1u L=1u
M5 y x vdd vdd pmos W=1u L=1u
.ends
""",
        ("vdd",),
        ("vss",),
    ),
    "a supply named so that only gates are on, without another one": (
        """.subckt pass a b vdd vss
M1 a vdd b vss nmos W=1u L=1u
.ends
""",
        ("vdd",),
        ("vss",),
    ),
    "a net called like a power net, which a drain drives": (
        """.subckt p bp i vps_1 vdd vss
M1 t bp vdd vdd pmos W=1u L=1u
M2 vps_1 i t vdd pmos W=1u L=1u
M3 vps_1 vps_1 vss vss nmos W=1u L=1u
.ends
""",
        ("vdd",),
        ("vss",),
    ),
    "a pair in a well of its own": (
        """.subckt own bp i j x y top bot
M1 t bp top top pmos W=1u L=1u
M2 x i t t pmos W=1u L=1u
M3 y j t t pmos W=1u L=1u
M4 x x bot bot nmos W=1u L=1u
M5 y x bot bot nmos W=1u L=1u
.ends
""",
        ("top",),
        ("bot",),
    ),
    "followers in wells of their own": (
        """.subckt all a y z vdd vss
M1 vdd a y y nmos W=4u L=0.6u
M2 vdd y z z nmos W=4u L=0.6u
.ends
""",
        ("vdd",),
        ("vss",),
    ),
    "a regulated rail: the output of a pass device that feeds a block": (
        ".subckt r g a b vdd vreg vss\nM1 vreg g vdd vdd pmos W=9u L=1u\n"
        + "".join(f"MP{i} n{i} a vreg vreg pmos W=1u L=1u\nMN{i} n{i} a vss vss nmos W=1u L=1u\n" for i in range(4))
        + ".ends",
        ("vdd", "vreg"),
        ("vss",),
    ),
    "no power at all": (OPEN_DRAIN, (), ("vss",)),
}


@pytest.mark.parametrize("name", SUPPLIES)
def test_supplies_follow_from_the_structure(name):
    text, power, ground = SUPPLIES[name]
    circuit = circuit_of(text)
    for each in (circuit, oriented(exchanged(circuit, {device.id for device in circuit.devices}))):
        supplies = find_supplies(each)
        assert (supplies.power, supplies.ground) == (power, ground)
        assert set(supplies.reasons) == {*power, *ground}
        assert all(supplies.reasons.values())


@pytest.mark.parametrize("turned", [False, True])
def test_two_equal_transistors_that_meet_on_an_unknown_cell_are_a_pair_with_their_sources_there(turned):
    first = "tail inp outp" if turned else "outp inp tail"
    text = f".subckt p inp inn outp outn vss\nM1 {first} vss nmos W=4u L=1u\nM2 outn inn tail vss nmos W=4u L=1u\n"
    circuit = read_netlist(NetlistText(f"{text}XB tail vss bias_cell\n.ends\n"), keep_unknown=True)
    assert [circuit.device(name).terminals["s"] for name in ("M1", "M2")] == ["tail", "tail"]
    assert carries_both_ways(circuit) == frozenset()
    assert [module.type for module in circuit.modules] == ["differential_pair"]


@pytest.mark.parametrize("turned", [False, True])
def test_two_equal_transistors_alone_on_a_port_are_a_pair_with_their_sources_there(turned):
    first = "tail g1 o1" if turned else "o1 g1 tail"
    text = f".subckt dut o1 o2 g1 g2 tail vss\nM1 {first} vss n w=2u l=1u\nM2 o2 g2 tail vss n w=2u l=1u\n.ends\n"
    circuit = oriented(read_netlist(NetlistText(text)))
    assert {circuit.device(name).terminals["s"] for name in ("M1", "M2")} == {"tail"}
    assert [group.type for group in circuit.modules] == ["differential_pair"]


def test_switches_on_a_port_that_gates_inside_the_circuit_select_carry_current_both_ways():
    text = """.subckt mux a b sel out vdd vss
M1 a sel out vss n w=2u l=0.2u
M2 b nsel out vss n w=2u l=0.2u
MN nsel sel vss vss n w=1u l=0.2u
MP nsel sel vdd vdd p w=2u l=0.2u
.ends
"""
    circuit = oriented(read_netlist(NetlistText(text)))
    assert {device.id for device in circuit.devices if device.both_ways} == {"M1", "M2"}


def test_the_gate_of_a_diode_is_on_its_drain_though_a_switch_pulls_it_to_the_rail():
    """The switch that turns the mirror off makes the drain the nearer end to ground; the emitter is a port."""
    text = """.subckt t ve en out vdd vss
MN0 ve n0 n0 vss nmos w=5u l=4u
MP0 n0 p0 vdd vdd pmos w=5u l=4u
MOFF n0 en vss vss nmos w=1u l=0.5u
.ends
"""
    assert read_netlist(NetlistText(text)).device("MN0").terminals["d"] == "n0"


def test_the_fingers_of_a_pair_stand_on_a_switch_of_their_size():
    """One switch carries the current of all fingers: its voltage is larger than theirs, and tells nothing of them."""
    text = ".subckt p inp inn en bias a b vdd vss\nMB tail2 bias vss vss nmos w=9u l=1u\n"
    text += "MS tail en tail2 vss nmos w=4u l=1u\nMP1 a a vdd vdd pmos w=4u l=1u\nMP2 b a vdd vdd pmos w=4u l=1u\n"
    for number in range(8):
        text += f"MI{number} a inp tail vss nmos w=4u l=1u\nMJ{number} tail inn b vss nmos w=4u l=1u\n"
    circuit = read_netlist(NetlistText(f"{text}.ends\n"))
    assert {d.terminals["s"] for d in circuit.devices if d.id[:2] in ("MI", "MJ")} == {"tail"}
    assert [len(group.devices) for group in circuit.modules if group.type == "differential_pair"] == [16]


def test_the_order_of_cards_decides_nothing_where_several_transistors_cross_one():
    cards = """
    M0 n2 n0 n0 vss nmos w=1u l=1u
    M1 n3 n0 n1 vdd pmos w=1u l=1u
    M1y n0 n3 n1 vdd pmos w=1u l=1u
    M2 n0 n0 vss vdd pmos w=1u l=1u
    M3 n3 n1 n3 vdd pmos w=1u l=1u
    M4 n0 n0 n2 vss nmos w=1u l=1u
    M4y n0 n0 n2 vss nmos w=1u l=1u
    M5 n2 n3 n0 vdd pmos w=1u l=1u
    M6 n2 n0 vdd vss nmos w=1u l=1u
    M7 vdd n1 n0 vss nmos w=1u l=1u
    """.strip().splitlines()

    def groups(lines):
        roles = find_roles(read_netlist(NetlistText("\n".join([".subckt t vdd n3", *lines, ".ends", ""]))))
        return {(group.type, frozenset(group.devices)) for group in roles.groups}

    assert groups(cards) == groups(cards[::-1]) == groups(cards[5:] + cards[:5])


def test_what_pulls_the_output_down_does_not_turn_a_half_and_a_replica_on_the_tail_is_none():
    """The replica of the cascodes, MR1 and MR2, stands on the tail of the pair; an inverter drives the pull-down."""
    circuit = read_netlist(
        NetlistText(""".subckt telescopic vdd vss inp inn out ib off
M1 a inp t vss nmos W=1u L=0.5u
M2 b inn t vss nmos W=1u L=0.5u
MC1 x c a vss nmos W=1u L=0.5u
MC2 out c b vss nmos W=1u L=0.5u
M3 x x vdd vdd pmos W=4u L=0.5u
M4 out x vdd vdd pmos W=4u L=0.5u
MR1 r c t vss nmos W=1u L=0.5u
MR2 c c r vss nmos W=1u L=0.5u
MP c x vdd vdd pmos W=4u L=0.5u
M5 t ib vss vss nmos W=4u L=2u
M6 ib ib vss vss nmos W=2u L=2u
MI1 pd off vss vss nmos W=1u L=0.18u
MI2 pd off vdd vdd pmos W=1u L=0.18u
MOFF out pd vss vss nmos W=0.5u L=0.18u
.ends
""")
    )
    assert circuit.device("M2").terminals["s"] == "t"
    pairs = {module.type: module.devices for module in circuit.modules}
    assert pairs["differential_pair"] == ("M1", "M2")
