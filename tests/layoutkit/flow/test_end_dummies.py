"""Dummies at the ends of matched rows: none where the figures need none, as many as they need elsewhere."""

from dataclasses import replace

import pytest

from layoutkit.draw.group import GroupSpec, group_plans
from layoutkit.flow.build import build_layout
from layoutkit.flow.design import LayoutRequest, make_design, read_circuit
from layoutkit.flow.end_dummies import LIMIT_MV, chosen_dummies
from layoutkit.flow.modules import _transistors
from layoutkit.technology import load

PAIR = """* an input pair with its tail
.subckt pair a b c d t vss
M1 a c t vss nmos W=4u L=0.5u nf=2
M2 b d t vss nmos W=4u L=0.5u nf=2
M3 t c vss vss nmos W=2u L=0.5u
.ends
"""
MIRROR = """* 1:2 at the shortest gate
.subckt mirror a b vss
M1 a a vss vss nmos W=2u L={length}u
M2 b a vss vss nmos W=4u L={length}u nf=2
.ends
"""
SHIFTER = """* a level shifter: its pull-up pair is a latch without an input pair
.subckt shifter in inb out outb vdd vss
M1 outb in vss vss nmos W=1u L=0.15u
M2 out inb vss vss nmos W=1u L=0.15u
M3 outb out vdd vdd pmos W=2u L=0.15u nf=1
M4 out outb vdd vdd pmos W=2u L=0.15u nf=1
.ends
"""
LATCHED = """* the same latch on an input pair
.subckt latched inp inn out outb t clk vdd vss
M1 outb inp t vss nmos W=1u L=0.15u
M2 out inn t vss nmos W=1u L=0.15u
M3 outb out vdd vdd pmos W=2u L=0.15u nf=1
M4 out outb vdd vdd pmos W=2u L=0.15u nf=1
M5 t clk vss vss nmos W=2u L=0.15u
.ends
"""


def groups(text, technology):
    """Return the matched groups of a netlist by their first device."""
    request = LayoutRequest(netlist_text=text, technology=technology)
    circuit, _ = read_circuit(request, load(technology))
    design, _ = make_design(request, load(technology), circuit)
    return {group.devices[0].id: group for group in design.groups if len(group.devices) > 1}


def choice(group, technology, *, arrangement="auto", wanted="auto"):
    spec = GroupSpec("m", tuple(_transistors(group, {})), arrangement)

    def plans(count):
        return group_plans(load(technology), GroupSpec("m", spec.transistors, arrangement, count), 4)

    return chosen_dummies(load(technology), group, wanted, plans)


@pytest.mark.parametrize("technology", ["sky130A", "sg13g2"])
def test_rows_that_exchange_the_devices_need_no_dummies(technology):
    dummies, plans = choice(groups(PAIR, technology)["M1"], technology)
    assert dummies.count == 0
    assert all(plan.figures.stress_spread < 1e-9 for plan in plans)
    assert dummies.reason.startswith("none is needed")


def test_a_single_row_gets_the_dummies_that_its_offset_needs():
    group = groups(PAIR, "sky130A")["M1"]
    dummies, plans = choice(group, "sky130A", arrangement="ABBA")
    # Skill common-centroid-pair: 11.7 mV without, 2.5 mV with one, 1.0 mV with two for this kind of row.
    assert dummies.count == 2
    assert "mV (limit 0.1 mV)" in dummies.reason
    assert "this remains" in dummies.reason
    assert len(plans) == 1
    stress = sorted(plans[0].figures.stress.values())
    matching = group.spec.matching.stress
    threshold = (stress[1] - stress[0]) / load("sky130A").dbu_um * matching.threshold_mv_um(2)
    assert abs(threshold) > LIMIT_MV


def test_short_gates_that_stand_unequally_often_at_the_ends_of_rows_get_one_dummy_and_long_ones_none():
    short, _ = choice(groups(MIRROR.format(length=0.15), "sky130A")["M1"], "sky130A")
    long, _ = choice(groups(MIRROR.format(length=2), "sky130A")["M1"], "sky130A")
    assert (short.count, long.count) == (1, 0)
    assert "gate edges at the ends of rows" in short.reason


def test_a_number_that_is_stated_is_drawn():
    dummies, _ = choice(groups(PAIR, "sky130A")["M1"], "sky130A", wanted=2)
    assert (dummies.count, dummies.reason) == (2, "stated in the request")


def test_a_latch_between_the_supplies_is_two_modules_and_one_on_an_input_pair_a_matched_group():
    assert groups(SHIFTER, "sky130A") == {}
    on_inputs = groups(LATCHED, "sky130A")
    assert on_inputs.keys() == {"M1", "M3"}
    assert not any(group.switching for group in on_inputs.values())


def test_a_latch_with_a_stated_pattern_is_one_module_without_dummies():
    request = LayoutRequest(netlist_text=SHIFTER, technology="sky130A")
    circuit, _ = read_circuit(request, load("sky130A"))
    constraints = make_design(request, load("sky130A"), circuit)[0].whole.to_json()
    for entry in constraints["matching"]:
        entry["arrangement"] = "AABB" if "M3" in entry["devices"] else entry["arrangement"]
    design, _ = make_design(replace(request, constraints=constraints), load("sky130A"), circuit)
    (latch,) = (group for group in design.groups if len(group.devices) > 1)
    assert latch.switching
    dummies, _ = choice(latch, "sky130A", arrangement="AABB")
    assert (dummies.count, "latch" in dummies.reason) == (0, True)


def test_the_two_modules_of_a_latch_mirror_each_other_and_their_constraints_are_obeyed(tmp_path):
    report = build_layout(LayoutRequest(netlist_text=SHIFTER, technology="sky130A", workspace=str(tmp_path / "ws")))
    assert (report["drc"]["passed"], report["lvs"]["matched"]) == (True, True)
    of_latch = [each for each in report["constraints"]["outcomes"] if each["names"] == ["M3", "M4"]]
    assert [each["obeyed"] for each in of_latch] == [True, True]
    assert "no common centroid" in of_latch[-1]["reason"]
    (group,) = (each for each in report["matching"]["groups"] if each["devices"][0]["id"] == "M3")
    assert (group["equal"]["areas"], group["equal"]["distances"]) == (True, True)


def test_the_flow_reports_number_and_reason_and_the_measured_offset_keeps_the_limit(tmp_path):
    request = LayoutRequest(netlist_text=PAIR, technology="sky130A", workspace=str(tmp_path / "ws"))
    report = build_layout(request)
    (pair,) = (module for module in report["modules"] if len(module["devices"]) == 2)
    assert pair["dummies"]["at_each_end"] == 0
    assert "limit 0.1 mV" in pair["dummies"]["reason"]
    assert report["lvs"]["dummies"] == 0
    (group,) = report["matching"]["groups"]
    assert all(abs(offset["value"]) <= LIMIT_MV for offset in group["predicted_offsets"])
