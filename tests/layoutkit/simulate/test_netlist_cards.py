"""Netlists and decks of users: only devices, subcircuits and, in a deck, analyses pass."""

import re

import pytest

from layoutkit.errors import NetlistError
from layoutkit.simulate.fixture import read_deck
from layoutkit.simulate.ngspice import IN_DECKS, harmless_cards, read_cards

GOOD = """* title
.subckt amp in out vdd vss
M1 out in vss vss nfet W=1u
+ L=1u $ a comment
XM2 out in vdd vdd pfet w=2 l=0.5
Xinner out vss load
C1 out vss 5f
.ends amp
.subckt load a b
R1 a b 1k
.ends
.end
"""


def test_a_netlist_gives_its_ports_and_the_models_that_it_calls():
    netlist = read_cards(GOOD, "the netlist", "AMP")
    assert (netlist.cell, netlist.ports) == ("amp", ("in", "out", "vdd", "vss"))
    assert netlist.models == {"nfet", "pfet"}
    assert "M1 out in vss vss nfet W=1u L=1u\n" in netlist.text


def test_ignored_parameters_are_left_out():
    assert "nfet L=1u" in read_cards(GOOD, "the netlist", "amp", ["w"]).text


@pytest.mark.parametrize(
    "card",
    [
        ".control\nshell touch stolen\n.endc",
        ".include /etc/passwd",
        ".lib '/etc/passwd' tt",
        ".inc x",
        ".INCLUDE x",
        " .lib x y",
        "a1 in out filter",
        "B1 out 0 V=1",
        "!ls",
        "shell ls",
        "*ng_script\n.exec",
        "V1 in 0 pwl(file=/etc/passwd)",
        "V1 in 0 dc `id`",
        "V1 in 0 dc=$(id)",
        ".csparam x=1",
        ".model x d()\n.include\n+ y",
        "Nmos d g s b osdi",
    ],
)
@pytest.mark.parametrize("commands", [IN_DECKS, frozenset({".subckt", ".ends"})])
def test_a_card_that_could_run_or_read_something_is_refused(card, commands):
    with pytest.raises(NetlistError, match="not simulated"):
        harmless_cards(f"R1 a b 1k\n{card}\n", "the deck", commands)


def test_every_faulty_line_is_named():
    with pytest.raises(NetlistError, match=r"line 2: \.include; line 4: \.lib;? allowed|line 2.*line 4"):
        harmless_cards("R1 a b 1\n.include x\nR2 a b 1\n.lib y z\n", "the deck", IN_DECKS)


@pytest.mark.parametrize(("text", "cell"), [("R1 a b 1k\n", ""), (GOOD, "other")])
def test_a_netlist_without_the_subcircuit_is_refused(text, cell):
    with pytest.raises(NetlistError, match="has no subcircuit"):
        read_cards(text, "the netlist", cell)


@pytest.mark.parametrize("text", ["root:x:0:0:secret:/root\n", "\x7fELF\0\0.subckt a b\n.ends\n"])
def test_a_file_that_is_no_netlist_is_not_quoted(text):
    """A path may be that of any file, and a message must hold no NUL."""
    for read in (lambda: read_cards(text, "the netlist"), lambda: read_deck(text, "cell")):
        with pytest.raises(NetlistError, match=r"has no subcircuit and no analysis|is binary, not text") as raised:
            read()
        assert not re.search(r"root|secret|\0|ELF", raised.value.message)


def test_the_fingers_of_a_transistor_are_not_rounded_below_the_narrowest_model():
    """ngspice takes the model by W/nf: 4.2 um over ten fingers is found with a width that is 0.4 pm larger."""
    sizes = ["w=4.2 l=8 nf=10 m=1", "w=2.1u l=8u nf=5", "w=4.2 nf=1"]
    text = "\n".join([".subckt a d g s b", *(f"XM{size[-1]} d g s b fet {size}" for size in sizes), ".ends"])
    widths = [word for word in read_cards(text, "it").text.split() if word.startswith("w=")]
    assert widths == ["w=4.20000042", "w=2.10000021u", "w=4.2"]
