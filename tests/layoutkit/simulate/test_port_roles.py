"""What ports are for: the test bench follows from the recognised circuit and the names of its ports."""

import pytest

from layoutkit.circuit import read_netlist, recognise
from layoutkit.circuit.readers.source import NetlistText
from layoutkit.simulate.port_roles import find_roles

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


def roles(text, bench=""):
    circuit = read_netlist(NetlistText(text), identify_modules=False)
    return find_roles(circuit.with_modules(recognise(circuit)), bench)


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


def test_an_odd_ring_of_inverters_is_an_oscillator_and_an_even_one_is_not():
    assert (roles(RING).bench, roles(RING).outputs) == ("oscillator", ("out",))
    even = RING.replace("out b v", "c b v").replace(".ends", "MP4 out c vdd vdd pmos\nMN4 out c vss vss nmos\n.ends")
    assert (
        roles(even.replace("pmos\n", "pmos W=4u L=1u\n").replace("nmos\n.", "nmos W=2u L=1u\n.")).bench != "oscillator"
    )


def test_a_mirror_alone_has_its_own_bench():
    found = roles(SIMPLE_MIRROR)
    assert (found.bench, found.inputs, found.outputs) == ("mirror", ("iref",), ("io1", "io2"))


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
