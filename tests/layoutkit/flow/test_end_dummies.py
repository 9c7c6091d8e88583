"""Dummies at the ends of matched rows: one at least where matching counts, more or fewer as the figures need."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from layoutkit.draw.group import GroupSpec, group_plans
from layoutkit.draw.module import DrawnDummy
from layoutkit.flow.build import build_layout
from layoutkit.flow.design import LayoutRequest, make_design, read_circuit
from layoutkit.flow.dummies import LIMIT_MV, chosen_dummies
from layoutkit.flow.groups import transistors_of
from layoutkit.flow.modules import dummy_devices
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
CLOCKED = """* a clocked comparator: input pair, latch and reset on the clock of the tail
.subckt clocked inp inn x y clk vdd gnd
M1 x inp t vdd pmos W=8u L=0.2u nf=4
M2 y inn t vdd pmos W=8u L=0.2u nf=4
M3 x y gnd gnd nmos W=4u L=0.2u nf=2
M4 y x gnd gnd nmos W=4u L=0.2u nf=2
M5 x clk gnd gnd nmos W=4u L=0.2u nf=2
M6 y clk gnd gnd nmos W=4u L=0.2u nf=2
M7 t clk vdd vdd pmos W=8u L=0.2u nf=2
.ends
"""
ENABLED = CLOCKED.replace("M7 t clk", "M8 n clk vdd vdd pmos W=2u L=0.2u\nM7 t bias")
OSCILLATOR = """* a cross-coupled pair on a tail current
.subckt oscillator x y bias gnd
M1 x y t gnd nmos W=4u L=0.15u nf=2
M2 y x t gnd nmos W=4u L=0.15u nf=2
M3 t bias gnd gnd nmos W=4u L=0.5u nf=2
.ends
"""
LONG = """* a mirror of two long gates
.subckt long a b vdd
M1 a a vdd vdd pmos W=33u L=26.4u nf=2
M2 b a vdd vdd pmos W=33u L=26.4u nf=2
.ends
"""


def groups(text, technology):
    """Return the matched groups of a netlist by the least name in them."""
    request = LayoutRequest(netlist_text=text, technology=technology)
    circuit, _ = read_circuit(request, load(technology))
    design, _ = make_design(request, load(technology), circuit)
    return {min(str(device.id) for device in group.devices): group for group in design.groups if len(group.devices) > 1}


def choice(group, technology, *, arrangement="auto", wanted="auto"):
    spec = GroupSpec("m", tuple(transistors_of(group, {})), arrangement)

    def plans(count):
        return group_plans(load(technology), GroupSpec("m", spec.transistors, arrangement, count), 4)

    return chosen_dummies(load(technology), group, wanted, plans)


@pytest.mark.parametrize("technology", ["sky130A", "sg13g2"])
def test_an_input_pair_gets_one_dummy_even_where_its_rows_exchange_the_devices(technology):
    group = groups(PAIR, technology)["M1"]
    dummies, plans = choice(group, technology)
    assert dummies.count == 1
    assert all(plan.figures.stress_spread < 1e-9 for plan in plans)
    assert dummies.reason.startswith("1 by default where matching counts")
    unmatched, _ = choice(replace(group, type="symmetric_pair"), technology)
    assert (unmatched.count, unmatched.reason.startswith("none is needed")) == (0, True)


def test_the_pairs_of_a_clocked_comparator_are_two_modules_each_and_those_with_a_bias_current_one():
    assert groups(CLOCKED, "sg13g2") == {}
    two_tails = CLOCKED.replace("M3 x y gnd", "M3 x2 y2 gnd").replace("M4 y x gnd", "M4 y2 x2 gnd")
    two_tails = two_tails.replace(".ends", "M8 x2 x vdd vdd pmos W=2u L=0.2u\nM9 y2 y vdd vdd pmos W=2u L=0.2u\n.ends")
    assert groups(two_tails.replace("x y clk", "x2 y2 clk"), "sg13g2") == {}
    assert groups(ENABLED, "sg13g2").keys() == {"M1", "M3"}


def test_a_latch_on_a_supply_gets_no_dummies_and_a_pair_on_a_clock_is_two_modules():
    found = groups(ENABLED, "sg13g2")
    assert {name: choice(group, "sg13g2")[0].count for name, group in found.items()} == {"M1": 1, "M3": 0}
    biased = groups(CLOCKED.replace(" clk gnd gnd", " bias gnd gnd"), "sg13g2")
    assert (biased["M5"].type, biased["M5"].mirrored) == ("load_pair", "")
    assert choice(biased["M5"], "sg13g2")[0].count == 1


def test_a_cross_coupled_pair_on_a_tail_current_gets_a_dummy():
    oscillator = groups(OSCILLATOR, "sky130A")["M1"]
    assert (oscillator.type, choice(oscillator, "sky130A")[0].count) == ("cross_coupled_pair", 1)


def test_dummies_at_one_end_of_each_diffusion_are_left_out_and_the_reason_says_so():
    dummies, plans = choice(groups(LONG, "sky130A")["M1"], "sky130A")
    assert dummies.count == 0
    assert plans[0].figures.stress_spread < 1e-9
    assert dummies.reason.startswith("none at each end: ")
    assert "no better with 1 at each end" in dummies.reason
    assert "2 at each end" in dummies.reason


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


def test_short_gates_that_stand_unequally_often_at_the_ends_of_rows_need_a_dummy_and_long_ones_none():
    short, long = (replace(groups(MIRROR.format(length=x), "sky130A")["M1"], type="") for x in (0.15, 2))
    found = [choice(group, "sky130A", arrangement="BAB")[0] for group in (short, long)]
    assert [dummies.count for dummies in found] == [2, 0]
    assert "gate edges at the ends of rows" in found[0].reason


def test_a_number_that_is_stated_is_drawn():
    dummies, _ = choice(groups(PAIR, "sky130A")["M1"], "sky130A", wanted=2)
    assert (dummies.count, dummies.reason) == (2, "stated in the request")


def test_a_latch_between_the_supplies_is_two_modules_and_one_on_an_input_pair_a_matched_group():
    assert groups(SHIFTER, "sky130A") == {}
    on_inputs = groups(LATCHED, "sky130A")
    assert on_inputs.keys() == {"M1", "M3"}
    assert not any(group.mirrored for group in on_inputs.values())


def test_a_latch_with_a_stated_pattern_is_one_module_without_dummies():
    request = LayoutRequest(netlist_text=SHIFTER, technology="sky130A")
    circuit, _ = read_circuit(request, load("sky130A"))
    constraints = make_design(request, load("sky130A"), circuit)[0].whole.to_json()
    for entry in constraints["matching"]:
        entry["arrangement"] = "AABB" if "M3" in entry["devices"] else entry["arrangement"]
    design, _ = make_design(replace(request, constraints=constraints), load("sky130A"), circuit)
    (latch,) = (group for group in design.groups if len(group.devices) > 1)
    assert latch.mirrored
    dummies, _ = choice(latch, "sky130A", arrangement="AABB")
    assert (dummies.count, "latch" in dummies.reason) == (0, True)


def test_the_two_modules_of_a_latch_mirror_each_other_and_their_constraints_are_obeyed(tmp_path):
    request = LayoutRequest(netlist_text=SHIFTER, technology="sky130A", workspace=str(tmp_path), last_stage="metrics")
    report = build_layout(request)
    assert (report["drc"]["passed"], report["lvs"]["matched"]) == (True, True)
    of_latch = [each for each in report["constraints"]["outcomes"] if set(each["names"]) == {"M3", "M4"}]
    assert [each["obeyed"] for each in of_latch] == [True, True]
    assert "rather than a common centroid" in of_latch[-1]["reason"]
    (group,) = (each for each in report["matching"]["groups"] if each["devices"][0]["id"] in ("M3", "M4"))
    assert (group["equal"]["areas"], group["equal"]["distances"]) == (True, True)


def test_the_flow_reports_number_and_reason_and_the_measured_offset_keeps_the_limit(tmp_path):
    request = LayoutRequest(netlist_text=PAIR, technology="sky130A", workspace=str(tmp_path), last_stage="metrics")
    report = build_layout(request)
    (pair,) = (module for module in report["modules"] if len(module["devices"]) == 2)
    assert pair["dummies"]["at_each_end"] == 1
    assert "limit 0.1 mV" in pair["dummies"]["reason"]
    assert report["lvs"]["dummies"] == 2 * len(pair["pattern"].split("/"))
    (group,) = report["matching"]["groups"]
    assert all(abs(offset["value"]) <= LIMIT_MV for offset in group["predicted_offsets"])


def test_equal_dummies_of_two_modules_are_one_device():
    technology = load("gf180mcuD")
    one = DrawnDummy("nfet_03v3", "vss", "t", "vss", "vss", 1960, 560, 4)
    drawn = [
        SimpleNamespace(module=SimpleNamespace(dummies=(one, replace(one, width=980))), deep_well=None),
        SimpleNamespace(
            module=SimpleNamespace(dummies=(replace(one, first="vss", second="t", count=8),)), deep_well=None
        ),
    ]
    listed, _ = dummy_devices(drawn, SimpleNamespace(devices=()), technology)
    assert [(device.w, device.params["m"]) for device in listed] == [(1.96e-6, 12), (0.98e-6, 4)]
