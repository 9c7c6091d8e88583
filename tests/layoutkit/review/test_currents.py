"""Currents that nobody stated: from the structure of the circuit, whatever its names and the order of its cards."""

import json
import random
from pathlib import Path

import pytest

from layoutkit.circuit import read_netlist
from layoutkit.circuit.readers.source import NetlistText
from layoutkit.circuit.roles import find_roles
from layoutkit.review.currents import device_currents
from layoutkit.technology import load

SKY = load("sky130A")
USUAL = (0.2 / 1.35) ** 1.5  # of full drive, at 0.2 V of overdrive: the alpha-power law with VT = VDD / 4
FULL = 0.516e-3 * 0.15  # A for W/L = 1
OPERATING_POINTS = json.loads(Path(__file__).with_name("operating_points.json").read_text(encoding="utf-8"))
"""Circuits with the currents that ngspice 39 found with the typical models of sky130_fd_pr and gf180mcu_fd_pr."""

TWO_STAGE = """* two-stage amplifier
.subckt amp inp inn out ib vdd vss
MB ib ib vss vss nfet_01v8 W=4u L=1u
MT tail ib vss vss nfet_01v8 W=8u L=1u
M1 n1 inn tail vss nfet_01v8 W=8u L=0.5u
M2 n2 inp tail vss nfet_01v8 W=8u L=0.5u
M3 n1 n1 vdd vdd pfet_01v8 W=6u L=1u
M4 n2 n1 vdd vdd pfet_01v8 W=6u L=1u
M6 out n2 vdd vdd pfet_01v8 W=40u L=0.5u
M7 out ib vss vss nfet_01v8 W=16u L=1u
.ends
"""


def currents(text, stated=None, technology=SKY, nets=None):
    circuit = read_netlist(NetlistText(text), identify_modules=False)
    return device_currents(circuit, find_roles(circuit), technology, stated or {}, nets).devices


@pytest.mark.parametrize("case", OPERATING_POINTS, ids=lambda case: f"{case['circuit']}-{case['technology']}")
def test_currents_are_within_a_factor_of_two_of_the_operating_point(case):
    """Where a port sets the current it is stated; what the circuit sets itself is not."""
    found = currents("\n".join(["*", *case["netlist"], ""]), case["stated"], load(case["technology"]))
    ratios = {name: round(found[name].ampere / ampere, 3) for name, ampere in case["measured"].items()}
    assert {name: ratio for name, ratio in ratios.items() if not 0.5 <= ratio <= 2} == {}


def test_mirrors_pass_their_reference_on_and_all_else_follows():
    found = currents(TWO_STAGE)
    reference = FULL * 4 * USUAL
    wanted = {"MB": 1, "MT": 2, "M1": 1, "M2": 1, "M3": 1, "M4": 1, "M6": 4, "M7": 4}
    assert {name: found[name].ampere / reference for name in wanted} == pytest.approx(wanted)
    assert not any(each.assumed for each in found.values())
    assert not any(each.full or each.stated for each in found.values())


def test_a_stated_current_decides_the_others():
    found = currents(TWO_STAGE, {"MT": 20e-6})
    assert found["MT"].stated
    assert {name: round(found[name].ampere * 1e6, 6) for name in ("MB", "M1", "M6")} == {"MB": 10, "M1": 10, "M6": 40}


def test_the_order_of_cards_and_names_decide_nothing():
    lines = TWO_STAGE.splitlines()
    cards = lines[2:-1]
    random.Random(3).shuffle(cards)
    renamed = [f"MZ{10 * number}X{card.split()[0]} {card.split(maxsplit=1)[1]}" for number, card in enumerate(cards)]
    found = currents("\n".join([*lines[:2], *renamed, lines[-1], ""]))
    before = currents(TWO_STAGE)
    assert {name.split("X")[1]: each.ampere for name, each in found.items()} == pytest.approx(
        {name: each.ampere for name, each in before.items()}
    )


def test_a_resistor_sets_the_current_of_a_reference():
    text = TWO_STAGE.replace("MB ib ib", "R1 vdd ib res_high_po_0p69 W=0.69u L=69u\nMB ib ib")
    ohm = 100 * SKY.device_names.drawn("res_high_po_0p69").value
    assert currents(text)["MB"].ampere == pytest.approx((0.75 * 1.8 - 0.2) / ohm)


def test_a_pass_device_carries_what_it_can_at_full_drive():
    text = """* pass
.subckt pass vin vout gate vss
MP vout gate vin vin pfet_01v8 W=100u L=0.15u
MB x b vss vss nfet_01v8 W=1u L=1u
.ends
"""
    found = currents(text)["MP"]
    assert found.full
    assert found.ampere == pytest.approx(0.202e-3 * 100)


def test_a_pair_whose_nets_are_all_ports_is_no_pass_device():
    text = """* pair
.subckt pair outp outn inp inn tail vss
M1 outp inp tail vss nfet_01v8 W=8u L=0.5u
M2 outn inn tail vss nfet_01v8 W=8u L=0.5u
.ends
"""
    found = currents(text)
    assert not found["M1"].full
    assert found["M1"].assumed  # its tail is elsewhere
    assert found["M1"].ampere == pytest.approx(FULL * 16 * USUAL)


def test_devices_that_are_off_carry_nothing():
    text = TWO_STAGE.replace("M7 out", "MD out vss vss vss nfet_01v8 W=16u L=1u\nM7 out")
    assert "MD" not in currents(text)


def test_a_folding_net_divides_its_current_between_tail_and_cascode():
    """Each source above gives 3 units, the tail takes 1 of each side, so that each cascode carries 2."""
    text = """* folded cascode
.subckt folded inp inn out ib ibp vcp vcn vdd vss
MB ib ib vss vss nfet_01v8 W=4u L=1u
MT tail ib vss vss nfet_01v8 W=8u L=1u
M1 a inn tail vss nfet_01v8 W=8u L=0.5u
M2 b inp tail vss nfet_01v8 W=8u L=0.5u
M3 a ibp vdd vdd pfet_01v8 W=24u L=1u
M4 b ibp vdd vdd pfet_01v8 W=24u L=1u
M5 c vcp a vdd pfet_01v8 W=12u L=0.5u
M6 out vcp b vdd pfet_01v8 W=12u L=0.5u
M7 c vcn d vss nfet_01v8 W=6u L=0.5u
M8 out vcn e vss nfet_01v8 W=6u L=0.5u
M9 d c vss vss nfet_01v8 W=6u L=1u
M10 e c vss vss nfet_01v8 W=6u L=1u
.ends
"""
    found = currents(text, {"MB": 10e-6, "M3": 30e-6, "M4": 30e-6})
    wanted = {"M1": 10, "M2": 10, "M5": 20, "M6": 20, "M7": 20, "M9": 20, "M10": 20}
    assert {name: round(found[name].ampere * 1e6, 6) for name in wanted} == wanted


def test_the_stated_current_of_a_net_decides_that_of_its_pass_device():
    text = """* pass
.subckt pass vin vout gate vss
MP vout gate vin vin pfet_01v8 W=100u L=0.15u
MB x b vss vss nfet_01v8 W=1u L=1u
.ends
"""
    assert currents(text, nets={"vout": 2e-3})["MP"].ampere == pytest.approx(2e-3)
