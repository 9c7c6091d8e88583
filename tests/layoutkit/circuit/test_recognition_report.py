"""What a designer is told of a circuit: the same in the answers of the tools and on the report page."""

from dataclasses import replace

import pytest

from layoutkit.circuit import read_netlist
from layoutkit.circuit.readers.source import NetlistText
from layoutkit.circuit.suggested_constraints import recognition_data, suggest_constraints
from layoutkit.tools.netlist_request import parse, parse_info
from layoutkit.view.report_page import report_page
from report_sample import inputs_of

AMPLIFIER = """.subckt amp inp inn out ib avdd agnd
M1 x inp t agnd nmos W=4u L=1u
M2 t inn out agnd nmos W=4u L=1u
M3 x x avdd avdd pmos W=4u L=1u
M4 out x avdd avdd pmos W=4u L=1u
M5 t ib agnd agnd nmos W=4u L=2u
M6 ib ib agnd agnd nmos W=4u L=2u
M7 q out avdd avdd pmos W=9u L=1u
X1 q w avdd unknown_cell
R1 w agnd 1k
.ends
"""


def told(**options):
    return recognition_data(read_netlist(NetlistText(AMPLIFIER), keep_unknown=True, **options))


def test_each_part_is_told_in_words():
    found = told()
    supplies = {each["net"]: (each["kind"], each["reason"]) for each in found["supplies"]}
    assert set(supplies) == {"avdd", "agnd"}
    assert supplies["agnd"][0] == "ground"
    assert "body of 4 NMOS transistors" in supplies["agnd"][1]
    groups = {(each["what"], frozenset(each["devices"])) for each in found["groups"]}
    assert ("differential pair", frozenset({"M1", "M2"})) in groups
    assert ("current mirror", frozenset({"M3", "M4"})) in groups
    halves = (("M1 and M2", "inp/inn"), ("M2 and M1", "inn/inp"))
    assert any(a in line and b in line and "M5 on it" in line for line in found["symmetry"] for a, b in halves)
    assert any("M7" in line and "M3" in line for line in found["not_matched"])
    assert found["drain_source_exchanged"] == ["M2"]
    (cell,) = found["undefined_cells"]
    assert cell.startswith("X1 is a unknown_cell, which the netlist does not define, on q w")
    assert cell.endswith("on these nets: M7, R1")


def test_the_answer_and_the_page_tell_the_same():
    params = {"netlist_text": AMPLIFIER, "format": "auto", "identify_modules": True}
    info, found = parse_info(parse(params)), told()
    for part in found.keys() - {"supplies", "groups"}:
        assert info[part] == found[part]
    assert info["supply_reasons"] == {each["net"]: each["reason"] for each in found["supplies"]}
    sample = inputs_of("amp")
    page = report_page(replace(sample, report={**sample.report, "recognition": found}))
    for sentence in (
        found["supplies"][0]["reason"],
        *found["symmetry"],
        *found["not_matched"],
        *found["undefined_cells"],
    ):
        assert sentence in page
    assert "exchanged in the netlist" in page
    assert 'data-device="M2"' in page
    assert "Html(" not in page


@pytest.mark.parametrize(("stages", "said"), [(17, False), (21, True)])
def test_a_ring_that_is_too_long_for_an_order_says_so(stages, said):
    nets = [(f"n{place}", f"n{(place + 1) % stages}") for place in range(stages)]
    cards = [
        f"MP{i} {o} {n} vdd vdd pmos W=2u L=1u\nMN{i} {o} {n} vss vss nmos W=1u L=1u" for i, (n, o) in enumerate(nets)
    ]
    circuit = read_netlist(NetlistText("\n".join([".subckt ring n0 vdd vss", *cards, ".ends", ""])))
    told = [line for line in recognition_data(circuit)["cut"] if f"its {stages} stages get no order" in line]
    assert bool(told) == said
    assert bool(suggest_constraints(circuit).ordering) != said


def test_what_is_off_or_carries_current_both_ways_has_no_source_that_was_exchanged():
    off = "M8 out avdd ib avdd pmos W=4u L=1u\n"
    gate = "M9 p k q agnd nmos W=1u L=1u\nM10 p kb q avdd pmos W=1u L=1u\n"
    turned = "M8 ib avdd out avdd pmos W=4u L=1u\nM9 q k p agnd nmos W=1u L=1u\nM10 q kb p avdd pmos W=1u L=1u\n"
    for cards in (off + gate, turned):
        text = AMPLIFIER.replace("ib avdd", "ib k kb p q avdd", 1).replace("R1", cards + "R1")
        found = recognition_data(read_netlist(NetlistText(text), keep_unknown=True))
        assert found["drain_source_exchanged"] == ["M2"]
        assert found["carry_both_ways"] == ["M10", "M9"]
