"""What ports are for: the test bench follows from the recognised circuit and the names of its ports."""

import pytest

from layoutkit.circuit import read_netlist, recognise
from layoutkit.circuit.readers.source import NetlistText
from layoutkit.simulate.port_roles import find_port_roles

OTA = """.subckt ota {ports}
M1 tmir inp tail vss nmos W=8u L=0.5u
M2 out inn tail vss nmos W=8u L=0.5u
M3 tmir tmir vdd vdd pmos W=12u L=0.5u
M4 out tmir vdd vdd pmos W=12u L=0.5u
M5 tail bias vss vss nmos W=8u L=1u
{more}
.ends
"""
LATCH = """.subckt latch clk inp inn x y vdd vss
MT com clk vss vss nmos W=4u L=0.18u
M1 dp inp com vss nmos W=8u L=0.18u
M2 dn inn com vss nmos W=8u L=0.18u
M3 x y dp vss nmos W=4u L=0.18u
M4 y x dn vss nmos W=4u L=0.18u
M5 x y vdd vdd pmos W=4u L=0.18u
M6 y x vdd vdd pmos W=4u L=0.18u
M7 dp clk vdd vdd pmos W=1u L=0.18u
M8 dn clk vdd vdd pmos W=1u L=0.18u
M9 x clk vdd vdd pmos W=1u L=0.18u
M10 y clk vdd vdd pmos W=1u L=0.18u
.ends
"""
RING = """.subckt ring out vdd vss
MP1 a out vdd vdd pmos W=4u L=0.5u
MN1 a out vss vss nmos W=2u L=0.5u
MP2 b a vdd vdd pmos W=4u L=0.5u
MN2 b a vss vss nmos W=2u L=0.5u
MP3 out b vdd vdd pmos W=4u L=0.5u
MN3 out b vss vss nmos W=2u L=0.5u
.ends
"""
INVERTERS = """M7 n1 out vdd vdd pmos W=4u L=0.5u
M8 n1 out vss vss nmos W=2u L=0.5u
M9 logic n1 vdd vdd pmos W=4u L=0.5u
M10 logic n1 vss vss nmos W=2u L=0.5u"""
CONTINUOUS = OTA.format(ports="inp inn logic bias vdd vss", more=f"M6 bias bias vss vss nmos W=8u L=1u\n{INVERTERS}")
MIRROR = """.subckt mirror iref io1 io2 vss
M1 iref iref a vss nmos W=4u L=1u
MR a iref vss vss nmos W=4u L=1u
.ends
"""
SIMPLE_MIRROR = """.subckt mirror iref io1 io2 vss
M1 iref iref vss vss nmos W=4u L=1u
M2 io1 iref vss vss nmos W=8u L=1u
M3 io2 iref vss vss nmos W=4u L=1u
.ends
"""
CASCODE_MIRROR = """.subckt mirror iref io1 io2 vss
M1 k k vss vss nmos W=4u L=1u
M2 a k vss vss nmos W=4u L=1u
M3 b k vss vss nmos W=16u L=1u
M4 iref iref k vss nmos W=4u L=0.5u
M5 io1 iref a vss nmos W=4u L=0.5u
M6 io2 iref b vss nmos W=16u L=0.5u
.ends
"""
DEGENERATED = """.subckt equalizer bias s vin1 vin2 out1 out2 vdd vss
M1 out1 vin1 a1 vss nmos W=8u L=0.5u
M2 a1 vin1 b1 vss nmos W=8u L=0.5u
M3 out2 vin2 a2 vss nmos W=8u L=0.5u
M4 a2 vin2 b2 vss nmos W={width} L=0.5u
M5 bias bias vss vss nmos W=8u L=0.5u
M6 b1 bias vss vss nmos W=8u L=0.5u
M7 b2 bias vss vss nmos W=8u L=0.5u
M8 c1 s c2 vss nmos W=8u L=0.5u
R1 b1 c1 100
R2 b2 c2 100
R3 vdd out1 800
R4 vdd out2 800
.ends
"""


def roles(text, bench=""):
    circuit = read_netlist(NetlistText(text), identify_modules=False)
    return find_port_roles(circuit.with_modules(recognise(circuit)), bench)


def test_a_pair_whose_gates_are_ports_is_an_amplifier_and_a_diode_takes_its_bias():
    found = roles(OTA.format(ports="inp inn out bias vdd vss", more="M6 bias bias vss vss nmos W=4u L=1u"))
    assert (found.bench, found.inputs, found.outputs) == ("amplifier", ("inp", "inn"), ("out",))
    assert (list(found.currents), found.gates, found.power, found.ground) == (["bias"], {}, ("vdd",), ("vss",))


def test_a_port_on_gates_alone_is_biased_by_a_copy_of_its_transistor():
    found = roles(OTA.format(ports="inp inn out bias vdd vss", more=""))
    assert {port: device.id for port, device in found.gates.items()} == {"bias": "M5"}
    assert found.currents == {}


def test_a_port_at_the_source_of_the_pair_takes_its_current():
    found = roles(OTA.format(ports="inp inn out tail vdd vss", more="").replace("M5 tail bias vss vss", "*"))
    assert list(found.currents) == ["tail"]


def test_an_output_needs_no_name_that_says_so():
    text = OTA.format(ports="inp inn z3 bias vdd vss", more="M6 bias bias vss vss nmos W=4u L=1u").replace("out", "z3")
    assert roles(text).outputs == ("z3",)


def test_a_clocked_latch_behind_a_pair_is_a_comparator():
    found = roles(LATCH)
    assert (found.bench, found.clock, found.outputs) == ("comparator", "clk", ("x", "y"))


def test_a_pair_before_two_inverters_is_a_comparator_without_a_clock():
    found = roles(CONTINUOUS)
    assert (found.bench, found.clock, found.outputs) == ("comparator", "", ("logic",))
    assert roles(CONTINUOUS.replace("M9 logic n1", "M9 logic bias")).bench == "amplifier"


def test_an_odd_ring_of_inverters_is_an_oscillator_and_an_even_one_is_not():
    assert (roles(RING).bench, roles(RING).outputs) == ("oscillator", ("out",))
    even = RING.replace("out b v", "c b v").replace(".ends", "MP4 out c vdd vdd pmos\nMN4 out c vss vss nmos\n.ends")
    assert (
        roles(even.replace("pmos\n", "pmos W=4u L=1u\n").replace("nmos\n.", "nmos W=2u L=1u\n.")).bench != "oscillator"
    )


def test_a_mirror_alone_has_its_own_bench():
    found = roles(SIMPLE_MIRROR)
    assert (found.bench, found.inputs, found.outputs) == ("mirror", ("iref",), ("io1", "io2"))


def test_a_ring_of_differential_stages_is_an_oscillator():
    """Each output is at the gate of the next stage, and such ports are no inputs of an amplifier."""
    stage = """M1{0} {2}n {1}p t{0} vss nmos W=4u L=0.5u
        M2{0} {2}p {1}n t{0} vss nmos W=4u L=0.5u
        R1{0} vdd {2}n 10k
        R2{0} vdd {2}p 10k
        M3{0} t{0} vc vss vss nmos W=4u L=0.5u"""
    stages = [stage.format(*nets) for nets in ("1ab", "2bc", "3ca")]
    ring = "\n".join([".subckt ring ap an vc vdd vss", *stages, ".ends", ""])
    found = roles(ring)
    assert (found.bench, found.inputs, found.outputs) == ("oscillator", (), ("ap",))
    assert found.reason == "a ring of differential stages: an and ap, bn and bp, cn and cp"
    assert list(found.gates) == ["vc"]
    cut = ring.replace(" cp t3 vss", " ap t3 vss").replace(" cn t3 vss", " an t3 vss")
    assert roles(cut).bench == "operating_point", "the last stage is not driven by the one before it"


def test_the_input_of_a_mirror_with_stacked_diodes_is_at_the_drain_of_its_cascode():
    found = roles(CASCODE_MIRROR)
    assert (found.bench, found.inputs, found.outputs) == ("mirror", ("iref",), ("io1", "io2"))
    assert found.currents["iref"].id == "M1"


def test_sources_whose_gates_an_amplifier_drives_are_no_mirror_with_an_input():
    driven = """.subckt sources g o1 o2 o3 x vdd vss
        M1 o1 g vdd vdd pmos W=4u L=1u
        M2 o2 g vdd vdd pmos W=4u L=1u
        M3 o3 g vdd vdd pmos W=4u L=1u
        M4 g x vss vss nmos W=4u L=1u
        .ends
        """
    assert roles(driven).bench == "operating_point"


def test_a_mirror_whose_output_feeds_a_load_inside_is_none_with_outputs_on_ports():
    """What leaves such a port is not the mirror's current."""
    loaded = SIMPLE_MIRROR.replace("io1 io2 vss\n", "io1 io2 vdd vss\n").replace(".ends", "R1 vdd io1 1k\n.ends")
    assert roles(loaded).outputs == ("io2",)
    assert roles(loaded.replace(".ends", "R2 vdd io2 1k\n.ends")).bench == "operating_point"


def test_another_circuit_gets_its_operating_point():
    assert roles(MIRROR).bench == "operating_point"


def test_the_bench_that_is_asked_for_is_used():
    found = roles(LATCH, "operating_point")
    assert (found.bench, found.reason) == ("operating_point", "asked for")


@pytest.mark.parametrize("name", ["vcm", "VREF", "v_cm1"])
def test_a_port_named_as_a_common_mode_gets_that_voltage(name):
    text = OTA.format(ports=f"inp inn out bias {name} vdd vss", more=f"M7 x {name} vss vss nmos W=4u L=1u")
    assert roles(text + "").common == (name,)


@pytest.mark.parametrize(
    ("main", "other", "inverse"),
    [
        ("CLK", "CLK_B", True), ("clk", "nclk", True), ("clkp", "clkn", True), ("phi1", "phi1b", True),
        ("phi1", "phib1", True), ("latch", "latch_bar", True), ("ck", "ck!", True), ("clk", "clk2", False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("swapped", [False, True])
def test_a_clock_with_the_name_of_an_inverse_is_one(main, other, inverse, swapped):
    """M11 resets as M7 to M10 do, so that nothing but the name tells."""
    names = [other, main] if swapped else [main, other]
    text = LATCH.replace("clk", main).replace(f".subckt latch {main}", f".subckt latch {' '.join(names)}")
    found = roles(text.replace(".ends", f"M11 x {other} vdd vdd pmos W=1u L=0.18u\n.ends"))
    assert found.gates == {}
    if inverse:
        assert (found.clock, found.more_clocks) == (main, {other: True})
    else:
        assert {found.clock, *found.more_clocks} == {main, other}
        assert list(found.more_clocks.values()) == [False]


@pytest.mark.parametrize(
    ("card", "inverse"),
    [
        ("MT2 up {0} vdd vdd pmos W=1u L=0.18u\nM12 x dp up vdd pmos W=1u L=0.18u", True),
        ("M11 x {0} vss vss nmos W=1u L=0.18u", True),
        ("MT2 low {0} vss vss nmos W=1u L=0.18u\nM12 x dp low vss nmos W=1u L=0.18u", False),
        ("M11 x {0} vdd vdd pmos W=1u L=0.18u", False),
    ],
)
def test_what_a_second_clock_drives_tells_its_phase(card, inverse):
    """A tail conducts and a reset does not while the circuit compares."""
    text = LATCH.replace("latch clk", "latch clk strobe").replace(".ends", card.format("strobe") + "\n.ends")
    assert roles(text).more_clocks == {"strobe": inverse}


def test_a_clock_without_a_name_switches_the_tail_and_an_enable_is_none():
    unnamed = LATCH.replace("clk", "go")
    assert (roles(unnamed).bench, roles(unnamed).clock) == ("comparator", "go")
    enabled = unnamed.replace("MT com go vss vss", "MT com vb vss vss").replace("latch go", "latch go vb")
    found = roles(enabled.replace("go", "ena"))
    assert (found.bench, found.levels, list(found.gates)) == ("amplifier", {"ena": True}, ["vb"])


@pytest.mark.parametrize(
    ("name", "level"), [("en", True), ("EN_B", False), ("pd", False), ("pdn", True), ("rst", False)]
)
def test_a_port_that_enables_is_held(name, level):
    text = OTA.format(ports=f"inp inn out bias {name} vdd vss", more=f"M7 out {name} vdd vdd pmos W=4u L=1u")
    assert (roles(text).levels, list(roles(text).gates)) == ({name: level}, ["bias"])


def test_the_input_of_an_inverter_is_driven_in_every_bench():
    found = roles(".subckt inverter a y vdd vss\nM1 y a vss vss nmos W=1u L=1u\nM2 y a vdd vdd pmos W=2u L=1u\n.ends\n")
    assert (found.bench, found.common, found.outputs) == ("operating_point", ("a",), ("y",))


def test_a_mirror_node_on_a_port_has_its_current_from_the_circuit():
    text = OTA.format(ports="inp inn out tmir bias vdd vss", more="")
    assert roles(text).currents == {}
    assert roles(text).open == ("tmir",)


def test_a_bias_current_may_pass_a_switch():
    more = "M6 vn vn vss vss nmos W=4u L=1u\nM7 ib en vn vss nmos W=1u L=0.5u\nM8 vn enb ib vdd pmos W=1u L=0.5u"
    found = roles(OTA.format(ports="inp inn out ib en enb vdd vss", more=more).replace("bias", "vn"))
    assert {port: device.id for port, device in found.currents.items()} == {"ib": "M6"}
    assert found.levels == {"en": True, "enb": False}


def test_a_pair_with_resistors_between_its_sources_is_an_amplifier_whose_switch_is_closed():
    found = roles(DEGENERATED.format(width="8u"))
    assert (found.bench, found.inputs, found.outputs) == ("amplifier", ("vin1", "vin2"), ("out1", "out2"))
    assert (found.levels, list(found.currents), found.gates) == ({"s": True}, ["bias"], {})
    assert "differential pair with inputs vin1 and vin2" in found.reason


def test_unequal_transistors_on_two_currents_are_no_pair():
    assert roles(DEGENERATED.format(width="4u")).inputs == ()


def test_a_switch_to_a_port_is_biased_and_not_closed():
    found = roles(DEGENERATED.format(width="8u").replace("M8 c1 s c2", "M8 c1 s out2"))
    assert (found.levels, list(found.gates)) == ({}, ["s"])


def test_a_port_that_feeds_the_stages_of_a_ring_is_a_supply():
    starved = RING.replace("out vdd vdd", "out vctl vdd").replace("a vdd vdd", "a vctl vdd")
    found = roles(starved.replace("b vdd vdd", "b vctl vdd").replace("ring out", "ring vctl out"))
    assert (found.bench, found.levels, found.currents) == ("oscillator", {"vctl": True}, {})
