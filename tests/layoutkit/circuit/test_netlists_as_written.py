"""Decks as simulators, schematic tools and people write them: what is no circuit is left out, and said."""

import json
import re
import shutil
import subprocess

import pytest

from layoutkit.circuit import ModelNames, map_circuit, read_netlist, write_spice
from layoutkit.circuit.readers.source import NetlistText
from layoutkit.errors import NetlistError
from layoutkit.technology import load

HALF = ".subckt half in out vdd vss\nM1 out in vss vss nmos w=2u l=1u\nM2 out in vdd vdd pmos w=4u l=1u\n.ends\n"
SPECTRE = """// testbench of an amplifier
simulator lang=spectre
global 0 vdd!
parameters wn=2u vdc=1.8
include "/kit/models/spectre/kit.scs" section=tt
ahdl_include "/kit/veriloga/clock.va"
model mynch bsim4 type=n version=4.5
model mypch bsim4 {
 1: type=p lmin=1u lmax=2u
 2: type=p lmin=2u lmax=4u
}
subckt amp in out vdd vss
M0 (out in vss vss) mynch w=wn l=0.5u
M1 (out out vdd vdd) mypch w=2*wn l=0.5u
ends amp
I0 (in out vdd! 0) amp
V0 (vdd! 0) vsource dc=vdc type=dc
K0 mutual_inductor coupling=0.5 ind1=L0 ind2=L1
simulatorOptions options psfversion="1.4.0" reltol=1e-3 scale=1.0
tran1 tran stop=1u write="spectre.ic" \\
    annotate=status maxiters=5
finalTimeOP info what=oppoint where=rawfile
noise1 (out 0) noise start=1 stop=1G
dcOp dc write="x.dc"
modelParameter info what=models where=rawfile
ag1 altergroup {
  parameters wn=3u
  M9 (a b c d) nothing w=1u
}
sw1 sweep param=vdc values=[1 1.8 2.5] {
  mc1 montecarlo variations=all numruns=10 {
    ac1 ac start=1 stop=1G
  }
}
statistics {
  process { vary wn dist=gauss std=0.1 }
}
alter1 alter dev=M0 param=w value=2u
ic out=0
nodeset in=1
save I0.M0:oppoint out
saveOptions options save=allpub
"""


def read(text, **options):
    return read_netlist(NetlistText(text), **options)


def left_out(circuit):
    """Return the statements that the warning counts."""
    (told,) = (text for text in circuit.warnings if text.startswith("statements for a simulation"))
    return {word: int(count) for word, count in re.findall(r"(\S+) \((\d+)\)", told)}


def test_a_spectre_testbench_is_read_and_each_statement_that_is_no_circuit_is_counted():
    circuit = read(SPECTRE)
    assert circuit.name == "amp"
    assert [(device.id, device.type, device.w) for device in circuit.devices] == [
        ("M0", "nmos", 2e-6),
        ("M1", "pmos", 4e-6),
    ]
    once = ("alter", "altergroup", "dc", "ic", "nodeset", "noise", "save", "statistics", "sweep", "tran")
    assert left_out(circuit) == {**dict.fromkeys(once, 1), "info": 2, "options": 2}


@pytest.mark.parametrize("name", ["tran", "dc", "info", "ac"])
def test_a_spice_net_may_have_the_name_of_an_analysis(name):
    circuit = read(f".subckt a {name} x vss\nR1 x {name} 1k\nM1 x {name} vss vss nmos w=1u l=1u\n.ends\n")
    assert circuit.ports[0] == name
    assert len(circuit.devices) == 2


def test_sections_of_a_spectre_library_are_read_where_they_are_asked_for(tmp_path):
    library = "library kit\nsection tt\nparameters wn=2u\nendsection tt\nsection ff\nparameters wn=9u\nendsection ff\n"
    (tmp_path / "kit.scs").write_text(f"{library}endlibrary kit\n")
    deck = 'simulator lang=spectre\ninclude "kit.scs" section=tt\nsubckt t a b\nM0 (a b 0 0) nmos w=wn l=1u\nends t\n'
    (tmp_path / "t.scs").write_text(deck)
    assert read_netlist(tmp_path / "t.scs").devices[0].w == 2e-6


CONTROL = """.control
let w = 2
alterparam W = $&w
foreach x 1 2 {
 echo "it's
.endc
"""


@pytest.mark.parametrize("at", ["before", "after", "inside"])
def test_a_control_block_is_no_netlist_wherever_it_is(at):
    texts = {"before": CONTROL + HALF, "after": HALF + CONTROL, "inside": HALF.replace(".ends", f"{CONTROL}.ends")}
    circuit = read(texts[at])
    assert [device.id for device in circuit.devices] == ["M1", "M2"]
    assert left_out(circuit) == {".control": 1}
    with pytest.raises(NetlistError, match=r"\.control is never closed"):
        read(texts[at].replace(".endc", ""))


def test_lines_after_an_early_end_are_read_as_ngspice_reads_them(tmp_path):
    deck = "title\nV1 a 0 1\nR1 a b 1k\n.end\nR2 b 0 3k\n.control\nop\nprint v(b)\n.endc\n.end\n"
    circuit = read_netlist(NetlistText("* title\n" + deck.partition("\n")[2]))
    assert {device.id: device.params["r"] for device in circuit.devices} == {"R1": 1e3, "R2": 3e3}
    assert "what follows .end is read, as ngspice does: line 4" in circuit.warnings
    if shutil.which("ngspice"):
        (tmp_path / "deck.cir").write_text(deck)
        done = subprocess.run(["ngspice", "-b", "deck.cir"], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert "v(b) = 7.5" in done.stdout  # 3k of 4k: the second resistor is in the circuit


INCLUDES = [
    ".lib /foss/pdks/sky130A/libs.tech/ngspice/sky130.lib.spice tt",
    ".include $::PDK_ROOT/libs.ref/cells.spice",
    ".include ${PDK_ROOT}/x.spice",
    ".include '../models/x.spice'",
    '.inc "models/none.inc"',
]


@pytest.mark.parametrize("line", INCLUDES)
@pytest.mark.parametrize("place", ["around", "inside"])
@pytest.mark.parametrize("given", ["file", "text"])
def test_an_include_that_is_not_needed_is_left_out_and_one_that_is_needed_is_named(tmp_path, line, place, given):
    def circuit(text):
        whole = f"* deck\n{line}\n{text}" if place == "around" else text.replace(".ends", f"{line}\n.ends", 1)
        if given == "text":
            return read(whole)
        (tmp_path / "deck.spice").write_text(whole)
        return read_netlist(tmp_path / "deck.spice")

    name = line.split()[1].strip("'\"")
    found = circuit(HALF)
    assert len(found.devices) == 2
    assert f"included files that the netlist's folder does not hold are not read: {name}" in found.warnings
    for needs, missing in (("X3 a b other", "'other'"), ("M3 in out vss vss nmos w=wx l=1u", "'wx'")):
        with pytest.raises(NetlistError) as refused:
            circuit(HALF.replace(".ends", f"{needs}\n.ends"))
        assert missing in refused.value.message
        assert name in refused.value.message
        assert refused.value.details["skipped_includes"] == [name]


def test_a_subcircuit_whose_include_may_hold_its_devices_is_refused(tmp_path):
    text = HALF.replace(".ends", ".include ../stage.spice\n.ends")
    (tmp_path / "deck.spice").write_text(text)
    with pytest.raises(NetlistError, match="a subcircuit without its include would be incomplete"):
        read_netlist(tmp_path / "deck.spice")
    with pytest.raises(NetlistError, match=r"netlist_text cannot include '../stage.spice': a text has no folder"):
        read(text)


def test_a_port_listed_twice_is_one_port_and_two_nets_on_it_are_refused():
    twice = HALF.replace(".subckt half in out vdd vss", ".subckt half in out vdd vss in")
    assert read(twice).ports == ("in", "out", "vdd", "vss")
    assert "ports listed twice are one port: half (in)" in read(twice).warnings
    top = ".subckt top a y vdd vss\nX1 a y vdd vss {} half\n.ends\n"
    assert read(twice + top.format("a")).devices[0].terminals["g"] == "a"
    with pytest.raises(
        NetlistError, match="connects two nets, a and y, to the port in of 'half', which lists it twice"
    ):
        read(twice + top.format("y"))


BIAS = """.subckt amp vdd vss in out
M1 out in vss vss nmos w=5u l=0.5u
M2 out bp vdd vdd pmos w=10u l=0.5u
M3 bp bp vdd vdd pmos w=10u l=0.5u
I1 bp 0 50u
.ends
"""


def test_node_0_of_a_source_is_no_rail_and_the_net_it_fed_is_a_port():
    circuit = read(BIAS)
    assert circuit.ports == ("vdd", "vss", "in", "out", "bp")
    assert "0" not in circuit.nets
    assert "nets of ideal sources that are left out become ports of the circuit: bp" in circuit.warnings
    inner = read(BIAS + ".subckt two a b vdd vss\nX1 vdd vss a b amp\nX2 vdd vss b c amp\nC1 c vss 1p\n.ends\n")
    assert inner.ports == ("a", "b", "vdd", "vss", "X1.bp", "X2.bp")


@pytest.mark.parametrize("card", ["E1 x 0 in 0 2", "B1 x 0 V=v(in)*2", "S1 x 0 in 0 sw", "T1 x 0 y 0 Z0=50 TD=1n"])
def test_other_ideal_elements_are_left_out_alike(card):
    circuit = read(BIAS.replace("I1 bp 0 50u", f"R1 x bp 1k\n{card}"))
    assert circuit.ports == ("vdd", "vss", "in", "out", "x")


@pytest.mark.parametrize(
    "line",
    [
        ".measure tran period trig v(a) val=0.9 rise=5\n+ targ v(a) val=0.9 rise=6",
        ".meas tran x find v(y) at=",
        ".ic v(a)=0 v(a)=1",
        ".print tran {v(a)",
    ],
)
def test_directives_of_a_simulation_are_left_out_whatever_they_hold(line):
    circuit = read(f".subckt t a y vss\nM1 y a vss vss nmos w=1u l=1u\n.ends\n{line}\n")
    assert [device.id for device in circuit.devices] == ["M1"]
    assert any(line.split()[0] in warning for warning in circuit.warnings)


@pytest.mark.parametrize(
    ("cards", "flat"),
    [
        ("XM1<1:0> y a n vss nmos w=1u l=1u", "XM1<1> y a n vss nmos w=1u l=1u\nXM1<0> y a n vss nmos w=1u l=1u"),
        (
            "M1[0:1] y a[1:0] n vss nmos w=1u l=1u",
            "M1[0] y a[1] n vss nmos w=1u l=1u\nM1[1] y a[0] n vss nmos w=1u l=1u",
        ),
        ("X1<1:0> a<3:0> y vss two", "X1<1> a<3> a<2> y vss two\nX1<0> a<1> a<0> y vss two"),
        ("X1<1:0> a<1:0> y vss two", "X1<1> a<1> a<0> y vss two\nX1<0> a<1> a<0> y vss two"),
        ("X1 a<1:0> y vss two", "X1 a<1> a<0> y vss two"),
        ("X1<1:0> 2*(a<1:0>) y vss two", "X1<1> a<1> a<0> y vss two\nX1<0> a<1> a<0> y vss two"),
        ("X1 <*2>a y vss two", "X1 a a y vss two"),
        ("R1<2:0> a<2:0> y 1k", "R1<2> a<2> y 1k\nR1<1> a<1> y 1k\nR1<0> a<0> y 1k"),
    ],
)
def test_vectors_mean_what_their_bits_written_by_hand_mean(cards, flat):
    two = ".subckt two i<1:0> o s\nM1 o i<1> s s nmos w=1u l=1u\nM2 o i<0> s s nmos w=1u l=1u\n.ends\n"
    deck = "{}.subckt top a a<3:0> y n vss\n{}\nM9 y a n vss nmos w=1u l=1u\n.ends\n"
    by_hand = two.replace("i<1:0>", "i<1> i<0>")
    expanded = deck.format(by_hand, flat).replace("a<3:0>", "a<3> a<2> a<1> a<0>")
    assert read(deck.format(two, cards), top="top") == read(expanded, top="top")


def test_a_vector_of_a_wrong_width_or_that_nothing_expands_is_refused():
    deck = ".subckt top a<2:0> y vss\n{}\n.ends\n"
    with pytest.raises(NetlistError, match="'a<2:0>' has 3 bits; 2 instances need 1 or 2"):
        read(deck.format("XM1<1:0> y a<2:0> vss vss nmos w=1u l=1u"))
    with pytest.raises(NetlistError, match="write each bit: a<1:0>"):
        read(deck.format("M1 y a<1:0> vss vss nmos w=1u l=1u"))
    with pytest.raises(NetlistError, match="more than 4096 bits"):
        read(deck.format("XM1<0:99999> y y vss vss nmos w=1u l=1u"))
    with pytest.raises(NetlistError, match="'M1<1:0>' has no nodes"):
        read(deck.format("M1<1:0>"))
    with pytest.raises(NetlistError, match="'<\\*0>a' has no bits"):
        read(deck.format("X1<1:0> <*0>a y vss top"), top="top")


ODD_PORTS = {"+": "plus", "-": "-", "/VDD": "VDD", "net@1": "net_1", "IN+": "IN+", "+5V": "plus5V", "a<1>": "a<1>"}


def test_a_name_has_one_spelling_in_the_circuit_and_in_the_netlists_written_from_it():
    ports = " ".join(ODD_PORTS)
    body = "".join(f"R{i} {port} x 1k\n" for i, port in enumerate(ODD_PORTS))
    circuit = read(f".subckt odd {ports} x\n{body}.ends\n")
    assert circuit.ports == (*ODD_PORTS.values(), "x")
    assert any("net@1 > net_1" in text for text in circuit.warnings)
    again = read(write_spice(circuit))
    assert again.ports == circuit.ports
    assert [device.terminals for device in again.devices] == [device.terminals for device in circuit.devices]
    taken = read(".subckt t /VDD VDD vdd x\nR1 /VDD VDD 1k\nR2 vdd x 1k\n.ends\n")
    assert len(set(map(str.lower, taken.ports))) == len(taken.ports)


def test_names_that_differ_in_case_only_are_told_apart_everywhere():
    spectre = read("subckt t A a vss\nR0 (A a) resistor r=1k\nR1 (a vss) resistor r=1k\nends t\n")
    assert spectre.ports == ("A", "a_2", "vss")
    device = {"id": "R1", "type": "resistor", "model": "r", "params": {"r": 1e3}, "terminals": {"p": "A", "n": "a"}}
    text = {"cells": [{"name": "t", "ports": ["A", "a"], "devices": [device]}], "top": "t"}
    assert read(json.dumps(text)).ports == ("A", "a_2")


def test_a_call_with_the_nodes_of_no_device_may_be_one_of_a_subcircuit():
    deck = HALF.replace(".ends", "X3 a b c d e in out CAP_ARRAY\n.ends")
    with pytest.raises(NetlistError, match="unless CAP_ARRAY is a subcircuit, which the netlist does not define"):
        read(deck)
    assert [box.cell for box in read(deck, black_boxes=("cap_array",)).black_boxes] == ["CAP_ARRAY"]


def test_for_recognition_a_call_with_the_nodes_of_no_device_is_one_of_a_subcircuit():
    text = NetlistText(HALF.replace(".ends", "X3 a b c d spiral_inductor w=10u\n.ends"))
    with pytest.raises(NetlistError, match="has 4 nodes"):
        read_netlist(text)
    found = read_netlist(text, keep_unknown=True)
    assert [(box.id, box.cell) for box in found.black_boxes] == [("X3", "spiral_inductor")]
    assert [device.id for device in found.devices] == ["M1", "M2"]


def test_a_junction_with_more_nodes_is_an_unknown_cell_and_off_is_no_model():
    text = ".subckt t a b c e\nD1 a b c clamp\nQ1 c b e npn1 off\n.ends\n"
    found = read_netlist(NetlistText(text), keep_unknown=True)
    assert [(box.id, box.cell) for box in found.black_boxes] == [("D1", "clamp")]
    assert [(device.id, device.type, device.model) for device in found.devices] == [("Q1", "npn", "npn1")]
    with pytest.raises(NetlistError, match="has 3 nodes"):
        read_netlist(NetlistText(text))


def test_for_recognition_names_used_twice_are_counted_on():
    cards = "R1 a b 1k\nR1_2 a b 1k\nr1 a b 2k\nR1 a b 3k\n"
    found = read_netlist(NetlistText(f".subckt t a b\n{cards}.ends\n"), keep_unknown=True)
    assert [device.id for device in found.devices] == ["R1", "R1_2", "r1_3", "R1_4"]
    assert any(text.startswith("names are used twice") for text in found.warnings)


def test_a_net_may_be_called_off():
    text = ".subckt t a b off\nD1 a off diode off\nQ1 off b a npn1 off\nM1 off a b b nmos w=1u l=1u off\n.ends\n"
    found = read_netlist(NetlistText(text))
    assert [list(device.terminals.values()) for device in found.devices] == [
        ["a", "off"],
        ["off", "b", "a"],
        ["off", "a", "b", "b"],
    ]


def test_for_recognition_a_subcircuit_may_include_models_that_are_not_there(tmp_path):
    deck = tmp_path / "deck.sp"
    deck.write_text(HALF.replace(" vss\nM1", " vss\n.include /classes/hspice/class_114.sp\nM1", 1))
    with pytest.raises(NetlistError, match="would be incomplete"):
        read_netlist(deck)
    found = read_netlist(deck, keep_unknown=True)
    assert len(found.devices) == 2
    assert any("/classes/hspice/class_114.sp" in each for each in found.warnings)


@pytest.mark.parametrize("master", ["half_cap_array", "spiral_inductor"])
def test_for_recognition_a_spectre_call_with_the_nodes_of_no_device_is_one_of_a_subcircuit(master):
    text = f"simulator lang=spectre\nsubckt t a b c d\nI1 (a b c d a) {master}\nends t\n"
    assert [box.cell for box in read_netlist(NetlistText(text), keep_unknown=True).black_boxes] == [master]
    with pytest.raises(NetlistError, match="has 5 nodes"):
        read_netlist(NetlistText(text))


def test_for_recognition_an_include_of_a_testbench_may_be_missing(tmp_path):
    deck = tmp_path / "deck.sp"
    deck.write_text("title\n.inc sizes.txt\nM1 o i 0 0 nmos w=w1 l=1u\nV1 i 0 1\n.end\n")
    circuit = read_netlist(deck, keep_unknown=True)
    assert [device.id for device in circuit.devices] == ["M1"]
    assert any("sizes.txt" in warning for warning in circuit.warnings)
    with pytest.raises(NetlistError, match="incomplete if it holds more than models"):
        read_netlist(deck)


def test_for_recognition_a_name_may_be_used_twice():
    text = HALF + ".subckt t a b vdd vss\nx1 a b vdd vss half\nX1 b a vdd vss half\n.ends\n"
    circuit = read_netlist(NetlistText(text), top="t", keep_unknown=True)
    assert {device.id for device in circuit.devices} == {"x1.M1", "x1.M2", "X1_2.M1", "X1_2.M2"}
    assert any("used twice" in warning for warning in circuit.warnings)
    with pytest.raises(NetlistError, match="'X1' is used twice"):
        read_netlist(NetlistText(text), top="t")


def test_a_subcircuit_whose_end_is_commented_out_ends_with_the_netlist():
    circuit = read_netlist(NetlistText(HALF.replace(".ends", "**.ends") + ".end\n"))
    assert (circuit.name, len(circuit.devices)) == ("half", 2)


def test_an_alter_inside_a_subcircuit_ends_with_it():
    altered = HALF.replace(".ends", ".alter\nM3 a b vss vss nmos w=1u l=1u\n.ends")
    circuit = read_netlist(NetlistText(f"{altered}x1 a b vdd 0 half\n"))
    assert [device.id for device in circuit.devices] == ["x1.M1", "x1.M2"]
    inner = altered.replace("M3 ", ".subckt q c\nR1 c c 1k\n.ends\nM3 ")
    assert read_netlist(NetlistText(f"{inner}x1 a b vdd 0 half\n")).devices == circuit.devices
    with pytest.raises(NetlistError, match=r"write \.ends before \.alter"):
        read_netlist(NetlistText(HALF.replace(".ends", ".alter")))


def test_a_file_name_with_characters_of_no_name_names_its_circuit(tmp_path):
    deck = tmp_path / "bias (18uA).sp"
    deck.write_text("* title\nM1 o o 0 0 nmos w=1u l=1u\nI1 0 o 1u\n.end\n")
    assert read_netlist(deck).name == "bias _18uA_"


def test_a_size_named_as_its_own_parameter_is_open_where_nothing_defines_that():
    text = ".subckt t o i vss\nX1 o i vss vss nmos w={w} l=1u\n.ends\n"
    with pytest.raises(NetlistError, match="parameter 'w' is not defined"):
        read_netlist(NetlistText(text))
    assert read_netlist(NetlistText(text), keep_unknown=True).devices[0].unknown == ("w",)
    assert read_netlist(NetlistText(text), parameters={"w": "2u"}).devices[0].params["w"] == pytest.approx(2e-6)


def test_code_models_are_ideal_elements():
    text = "V1 in 0 1\nM1 out in vss vss nmos w=2u l=1u\nA1 [in ~x] [%v(out) y] gate\nA2 %d out k code\nR1 out vdd 1k\n"
    assert [device.id for device in read(text).devices] == ["M1", "R1"]


def test_the_circuit_before_the_first_alter_is_read():
    changed = ".alter\n.del lib\nM1 out in vss vss nmos w=9u l=1u\n.alter\nM3 x y z vss nmos w=1u l=1u\n"
    circuit = read("M1 out in vss vss nmos w=2u l=1u\nR1 out vdd 1k\nV1 in 0 1\n" + changed)
    assert {device.id: device.params.get("w") for device in circuit.devices} == {"M1": 2e-6, "R1": None}
    warning = "lines after .alter describe a further simulation and are not read"
    assert circuit.warnings.count(warning) == 1


@pytest.mark.parametrize("value", ["1e100", "l=1e9"])
def test_what_only_breaks_a_loop_for_a_simulation_is_a_wire_or_left_out(value):
    circuit = read(f"M1 b a vss vss nmos w=2u l=1u\nL1 b a {value}\nC1 a ac 1g\nV1 ac 0 1\nC2 b vss 1p\nL2 b vdd 1n\n")
    assert {device.id for device in circuit.devices} == {"M1", "C2", "L2"}
    net = circuit.device("M1").terminals
    assert net["g"] == net["d"]  # direct current passes the inductor


@pytest.mark.parametrize("polarity", ["npn", "pnp"])
def test_the_model_of_a_bipolar_transistor_may_state_its_polarity_anywhere(polarity):
    circuit = read(f".subckt q a b c\nQ1 c b a g45v{polarity}2 4 m=8\n.ends\n")
    assert (circuit.devices[0].type, circuit.devices[0].m) == (polarity, 8)


EXTRACTED = """* as a layout extractor writes an inverter
.subckt inv a y vdd vss
X0 y a vdd vdd pmos w=2 l=1
X1 y a vss vss nmos w=1 l=1
C0 y vdd 0.12f
C1 a vss 0.65f
C2 vdd y -0.03f
C3 vdd vss 1.3f **FLOATING
C4 y vss 1p
.ends
"""


@pytest.mark.parametrize("process", ["sky130A", "gf180mcuD", "sg13g2"])
def test_capacitances_of_wires_are_left_out_with_their_sum_and_stay_where_asked_for(process):
    names = ModelNames(load(process))
    circuit = read(EXTRACTED, names=names)
    assert [device.id for device in circuit.devices] == ["X0", "X1", "C4"]
    (told,) = (text for text in circuit.warnings if "capacitances of wires" in text)
    assert "4 with 2.04 fF in all; keep_parasitics keeps them: C0, C1, C2, C3" in told
    assert process in told
    with pytest.raises(NetlistError, match="'C2': c must be positive"):
        read(EXTRACTED, names=names, keep_parasitics=True)
    kept = read(EXTRACTED.replace("-0.03f", "0.03f"), names=names, keep_parasitics=True)
    assert len(kept.devices) == 7


@pytest.mark.parametrize("process", ["sky130A", "gf180mcuD", "sg13g2"])
def test_the_bound_of_capacitances_of_wires_is_what_the_process_can_draw(process):
    technology = load(process)
    names, target = ModelNames(technology), technology
    told = next(text for text in read(EXTRACTED, names=names).warnings if "capacitances of wires" in text)
    plate = float(re.search(r"below ([\d.]+) fF", told)[1])

    def ids(femtofarad, more=""):
        text = f".subckt t a b\nC1 a b {femtofarad}f\nR1 a b 5k\n{more}.ends\n"
        circuit = read(text, names=names)
        map_circuit(circuit, target)
        return [device.id for device in circuit.devices]

    assert ids(1.01 * plate / 8) == ["C1", "R1"]  # plates in series
    assert ids(0.99 * plate / 8) == ["R1"]
    with pytest.raises(NetlistError, match="is less than the smallest"):
        map_circuit(read(f".subckt t a b\nC1 a b {plate / 9}f\n.ends", names=names, keep_parasitics=True), target)
    assert ids(0.99 * plate, "C2 a b -1a\n") == ["R1"]
    assert ids(1.01 * plate, "C2 a b -1a\n") == ["C1", "R1"]


def test_without_a_process_capacitances_that_none_draws_are_left_out():
    circuit = read(EXTRACTED)
    assert [device.id for device in circuit.devices] == ["X0", "X1", "C3", "C4"]
    assert any("below 1 fF, which no process draws," in text and "3 with 0.74 fF" in text for text in circuit.warnings)
    with pytest.raises(NetlistError, match="c must be positive"):
        read(EXTRACTED.replace("C4 y vss 1p", "XC4 y vss cap_mim_m3_1 c=-1p"))


BENT = ".subckt t a b vss\nX{} a b vss {} w=1u l=10u b={} m=2\n.ends\n"


@pytest.mark.parametrize(("model", "offset"), [("rsil", 0.010), ("rppd", 0.006), ("rhigh", -0.040)])
@pytest.mark.parametrize("bends", [0, 1, 10])
def test_a_resistor_with_bends_has_the_length_that_its_model_computes(model, offset, bends):
    """leff = (b + 1) l + b (2 / kappa weff + ps), with kappa = 1.85, ps = 0.18 um and weff = w + offset."""
    technology = load("sg13g2")
    circuit = read(BENT.format("R1", model, bends), names=ModelNames(technology))
    mapped = map_circuit(circuit, technology)
    expected = (bends + 1) * 10 + bends * (2 / 1.85 * (1 + offset) + 0.18)
    (device,) = mapped.devices
    assert device.params["l"] * 1e6 == pytest.approx(expected, abs=0.03)
    assert device.m == 2
    assert any("bends of resistors count as long" in text for text in mapped.warnings) is (bends > 0)


def test_bends_of_another_process_are_refused():
    circuit = read(BENT.format("R1", "rppd", 3))
    with pytest.raises(NetlistError, match=r"'XR1' \(rppd\) has b=3 bends, whose length is not known here"):
        map_circuit(circuit, load("sky130A"))


def test_the_outputs_of_a_flat_deck_are_ports_and_its_inner_nets_are_not():
    deck = """* two stages as a schematic tool without subcircuits writes them
M1 x in s vss nmos w=1u l=1u
M2 x x vdd vdd pmos w=1u l=1u
M3 out x vdd vdd pmos w=1u l=1u
M4 out in2 s vss nmos w=1u l=1u
M5 s bias vss vss nmos w=1u l=1u
C1 out vss 1p
"""
    assert set(read(deck).ports) == {"in", "in2", "bias", "out"}


def test_of_several_subcircuits_that_nothing_uses_the_one_named_as_the_file_is_the_top(tmp_path):
    deck = HALF + HALF.replace("half", "other")
    (tmp_path / "half.spice").write_text(deck)
    circuit = read_netlist(tmp_path / "half.spice")
    assert circuit.name == "half"
    assert "the top is subcircuit 'half', named as the file; nothing uses other" in circuit.warnings
    with pytest.raises(NetlistError, match="Ambiguous top: choose one of half, other"):
        read(deck)


def test_a_vector_in_a_json_netlist_is_refused():
    device = {
        "id": "R1",
        "type": "resistor",
        "model": "r",
        "params": {"r": 1e3},
        "terminals": {"p": "A<1:0>", "n": "b"},
    }
    text = {"cells": [{"name": "t", "ports": ["A<1:0>", "b"], "devices": [device]}], "top": "t"}
    with pytest.raises(NetlistError, match="write each bit: A<1:0>"):
        read(json.dumps(text))


@pytest.mark.parametrize("card", ["C1 a w b sub sg13_lv_nmos w=1u l=1u", "R1 a w b sub npn13G2"])
def test_a_passive_card_is_no_transistor(card):
    with pytest.raises(NetlistError, match="Undefined subcircuits"):
        read_netlist(NetlistText(f".subckt x a w b sub\n{card}\n.ends\n"))


@pytest.mark.parametrize("comment", ["*W=2u L=0.9u m=1", "*w=11u", "*L=1u"])
def test_sizes_behind_a_star_are_a_comment_and_products_are_none(comment):
    text = f".param n=2\n.subckt t a b s\nM1 a b s s nmos W=3u L='0.5u *n' m=1 {comment}\n.ends\n"
    (device,) = read(text).devices
    assert (device.w, device.l, device.m) == (3e-6, 1e-6, 1)
    (product,) = read(text.replace(f"m=1 {comment}", "m=2 * n")).devices
    assert product.m == 4


def test_what_looks_like_a_comment_before_a_quoted_value_is_none_and_is_not_searched_for_each_time():
    words = " *x=1" * 100_000  # each would be searched to the end of the line
    (device,) = read(f".subckt t a b s\nM1 a b s s nmos W=3u{words} L='1u'\n.ends\n").devices
    assert device.l == 1e-6
