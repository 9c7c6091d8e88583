"""The netlist with parasitics takes the place of the input netlist."""

import shutil
import subprocess

import klayout.db as kdb
import pytest

from layoutkit.circuit import read_netlist
from layoutkit.circuit.readers.source import NetlistText
from layoutkit.errors import LayoutkitError
from layoutkit.parasitics.parasitic_extraction import MODES, PexOptions, extract_parasitics
from layoutkit.technology import load

PAIR = """* two transistors of unequal length; the netlist states the source of M2 as its drain
.subckt pair inp inn outp outn tail vss
M1 outp inp tail vss nmos w=4u l=0.5u nf=2
M2 tail inn outn vss nmos w=4u l=0.6u nf=2
.ends pair
"""
NO_TRANSISTOR = """.subckt sky130_fd_pr__nfet_01v8 d g s b w=1 l=1 nf=1 ad=0 as=0 pd=0 ps=0 sa=0 sb=0 sd=0 m=1
R1 d b 1e15
.ends
"""


@pytest.fixture(scope="module")
def pair(finished_layout):
    """Return layout and circuit of the pair in sky130A, and the technology."""
    _, workspace = finished_layout(PAIR, "sky130A")
    layout = kdb.Layout()
    layout.read(str(workspace / "layout.gds"))
    return layout, read_netlist(workspace / "circuit.json"), load("sky130A")


def cards(text):
    """Return the words of each transistor's card, by its name."""
    lines = text.replace("\n+", "").splitlines()
    return {words[0]: words for words in map(str.split, lines) if words and words[0].startswith("XM")}


def test_the_subcircuit_has_the_name_the_pins_and_the_devices_of_the_netlist(pair):
    text = extract_parasitics(*pair, PexOptions("cc")).spice
    assert ".subckt pair inp inn outp outn tail vss\n" in text
    found = cards(text)
    assert found["XM1"][1:6] == ["outp", "inp", "tail", "vss", "sky130_fd_pr__nfet_01v8"]
    assert found["XM2"][1:6] == ["tail", "inn", "outn", "vss", "sky130_fd_pr__nfet_01v8"]
    assert {"w=4", "l=0.5", "nf=2", "m=1"} < set(found["XM1"])


def test_the_capacitance_of_each_net_is_what_the_netlist_has_on_it_that_of_the_substrate_too(pair):
    """The wires of vss have none to the substrate, which is vss: what the other nets have to it is its own."""
    found = extract_parasitics(*pair, PexOptions("cc"))
    capacitors = [words.split() for words in found.spice.splitlines() if words.startswith("Cpar")]
    for net in found.nets:
        on_it = sum(float(value) * 1e15 for _, one, other, value in capacitors if net.net in (one, other))
        assert net.total_fF == pytest.approx(on_it, rel=1e-4), net.net
    assert found.total_fF == pytest.approx(sum(float(words[3]) * 1e15 for words in capacitors), rel=1e-4)


def test_source_and_drain_are_those_of_the_netlist_and_their_areas_go_with_them(pair):
    layout, circuit, technology = pair
    turned = read_netlist(
        NetlistText(PAIR.replace("M2 tail inn outn", "M2 outn inn tail").replace("nmos", "nfet_01v8"))
    )
    as_drawn, other = (
        cards(extract_parasitics(layout, each, technology, PexOptions("cc")).spice)["XM2"] for each in (circuit, turned)
    )
    values = [dict(word.split("=") for word in card if "=" in word) for card in (as_drawn, other)]
    assert other[1:4] == ["outn", "inn", "tail"]
    assert values[0]["ad"] != values[0]["as"]
    assert [values[0][name] for name in ("ad", "as", "pd", "ps")] == [
        values[1][name] for name in ("as", "ad", "ps", "pd")
    ]


@pytest.mark.parametrize(
    "change", [("outn vss nmos", "outp vss nmos"), ("M1 outp inp tail vss nmos w=4u", "M1 outp inp tail vss nmos w=6u")]
)
def test_a_layout_of_another_circuit_or_size_is_refused_with_the_first_differences(pair, change):
    wrong = read_netlist(NetlistText(PAIR.replace(*change).replace("nmos", "nfet_01v8")))
    with pytest.raises(LayoutkitError, match=r"is not the circuit pair.*mend what lvs\.run_check reports"):
        extract_parasitics(pair[0], wrong, pair[2])


def test_layers_that_extraction_does_not_read_are_named_as_what_to_waive(pair):
    layout, circuit, technology = pair
    layout = layout.dup()
    layout.top_cell().shapes(layout.layer(200, 3)).insert(kdb.Box(0, 0, 100, 100))
    with pytest.raises(LayoutkitError, match=r"does not read all layers of pair.*: 200/3; list .* in waived_layers"):
        extract_parasitics(layout, circuit, technology)
    assert extract_parasitics(layout, circuit, technology, PexOptions(waived_layers=("200/3",))).spice


@pytest.mark.skipif(shutil.which("ngspice") is None, reason="skipped: needs ngspice")
@pytest.mark.parametrize("mode", MODES)
def test_ngspice_reads_the_netlist_in_place_of_the_input_and_sees_its_capacitance(pair, tmp_path, mode):
    found = extract_parasitics(*pair, PexOptions(mode))
    (tmp_path / "pair.pex.spice").write_text(NO_TRANSISTOR + found.spice.replace(".end\n", ""))
    deck = """* capacitance of a gate's net, with no transistor to hide it
.include pair.pex.spice
X1 p n op on t 0 pair
Vp p 0 dc 0 ac 1
Vn n 0 0
Vop op 0 0
Von on 0 0
Vt t 0 0
.ac lin 1 1e9 1e9
.control
run
print imag(i(vp))
.endc
.end
"""
    (tmp_path / "deck.spice").write_text(deck)
    done = subprocess.run(
        ["ngspice", "-b", "deck.spice"], check=False, cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    line = next(line for line in done.stdout.splitlines() if line.startswith("imag(i(vp)) ="))
    measured = -float(line.split("=")[1]) / (2 * 3.141592653589793 * 1e9) * 1e15
    expected = next(net.total_fF for net in found.nets if net.net == "inp")
    assert measured == pytest.approx(expected, rel=1e-3), done.stdout + done.stderr
