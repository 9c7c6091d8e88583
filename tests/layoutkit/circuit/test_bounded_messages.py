"""Messages about netlists with thousands of faults: at most twenty names or faults, and how many more there are."""

import pytest

from layoutkit.circuit import ModelNames, map_circuit, read_netlist
from layoutkit.circuit.readers.json_reader import circuit_from_json
from layoutkit.circuit.readers.source import NetlistText
from layoutkit.errors import LayoutkitError
from layoutkit.technology import load

MANY = range(1000)
NFET = "sky130_fd_pr__nfet_01v8"
PNP = "sky130_fd_pr__pnp_05v5_W3p40L3p40"
CARDS = {
    "without nodes": "M{i} a b",
    "of no type": "Z{i} a b c",
    "of undefined cells": "X{i} a b cell{i}",
    "of undefined cells with long names": "X{i} a b {n}{i}",
    "of standard cells": "X{i} a b sky130_fd_sc_hd__inv_{i}",
    "with open parameters": "M{i} a b vss vss nmos w=w{i} l=l{i}",
    "with an open expression": "M{i} a b vss vss nmos w={{a{i}+b{i}+c{i}}} l=1u",
    "without a width": "M{i} a b vss vss nmos l=1u",
    "of one undrawn device": "X{i} a b vss vss sky130_fd_pr__pfet_20v0 w=1 l=1",
    "of many undrawn devices": "X{i} a b vss vss sky130_fd_pr__special_{i} w=1 l=1",
    "of negative size": "M{i} a {n}{i} vss vss nmos w=-1u l=1u",
    "with a long gate": "M{i} a b vss vss nmos w=50u l=5000u",
    "with odd names": "M{i} a{i}=; b vss vss nmos w=1u l=1u",
    "with one name": "M1 a b vss vss nmos w=1u l=1u",
    "of a type that is not drawn": "L{i} a b 1n",
    "of another kind": f"R{{i}} a b {NFET} 1k",
    "with a collector apart": f"Q{{i}} a b vss vss {PNP}",
    "with another emitter": f"Q{{i}} vss b a {PNP} we=9u le=9u",
    "with two numbers of units": f"Q{{i}} vss b a {PNP} m=2 ne=3",
    "with crooked vectors": "X{i}<1:0> a<3:0> b vss vss nmos w=1u l=1u",
}


def read_and_map(text, **options):
    technology = load("sky130A")
    circuit = read_netlist(NetlistText(text), names=ModelNames(technology), **options)
    return map_circuit(circuit, technology)


@pytest.mark.parametrize("card", CARDS.values(), ids=CARDS)
def test_thousands_of_faulty_cards_make_a_short_message(card):
    cards = "\n".join(card.format(i=i, n="n" * 500) for i in MANY)
    with pytest.raises(LayoutkitError) as caught:
        read_and_map(f".subckt t a b vss vdd\n{cards}\n.ends\n")
    assert len(caught.value.message) < 8000
    assert " more" in caught.value.message


def test_thousands_of_warnings_become_a_short_one():
    cards = "\n".join(f"M{i} a b vss vss {NFET} w=1u l=1u odd{i}=1" for i in MANY)
    warnings = read_and_map(f".subckt t a b vss vdd\n{cards}\n.ends\n").warnings
    assert sum(map(len, warnings)) < 4000


SUBCKTS = "\n".join(f".subckt t{i} a b\nM1 a b b b nmos w=1u l=1u\n.ends" for i in MANY)
EMPTY = "\n".join(f".subckt e{i} a\n.ends" for i in MANY)
CALLS = "\n".join(f"X{i} a e{i}" for i in MANY)
RING = "\n".join(f".subckt c{i} a\nX1 a c{(i + 1) % len(MANY)}\n.ends" for i in MANY)
ONE = ".subckt t a b\nM1 a b b b nmos w=1u l=1u\n.ends"
TEXTS = {
    "tops": (SUBCKTS, {}),
    "tops without the one": (SUBCKTS, {"top": "other"}),
    "empty cells": (f"{EMPTY}\n.subckt t a\n{CALLS}\n.ends", {"top": "t"}),
    "a ring of cells": (RING, {}),
    "parameters": (ONE, {"parameters": {f"p{i}": 1 for i in MANY}}),
    "wrong parameters": (ONE, {"parameters": {f"p{i}": True for i in MANY}}),
    "black boxes": (ONE, {"black_boxes": [f"box{i}" for i in MANY]}),
}


@pytest.mark.parametrize(("text", "options"), TEXTS.values(), ids=TEXTS)
def test_thousands_of_names_make_a_short_message(text, options):
    with pytest.raises(LayoutkitError) as caught:
        read_and_map(text, **options)
    assert len(caught.value.message) < 8000
    assert " more" in caught.value.message


def test_thousands_of_cells_of_a_document_make_a_short_message():
    cells = [{"name": f"c{i}", "devices": [], "ports": []} for i in MANY]
    for top in (None, "other"):
        with pytest.raises(LayoutkitError, match="more") as caught:
            circuit_from_json({"cells": cells}, top=top)
        assert len(caught.value.message) < 1000
