"""Capacitors and resistors in the flow: matched groups, plates in series, MOS capacitors, and what is refused."""

from pathlib import Path

import klayout.db as kdb
import pytest

from layoutkit.circuit import MapOptions, Target, map_circuit, read_netlist
from layoutkit.circuit.constraints import Constraints, MatchedGroup
from layoutkit.circuit.suggested_constraints import suggest_constraints
from layoutkit.draw.generators import BlockSpec, draw_block
from layoutkit.errors import UnsupportedOperationError
from layoutkit.flow.build import build_layout
from layoutkit.flow.design import LayoutRequest
from layoutkit.flow.passive_modules import group_passives
from layoutkit.technology import load
from layoutkit.technology.passive_sizes import PassiveSize

FILTER = """.subckt filter a b c vss
C1 a top 100f
C2 b top 200f
C3 c b 4f
XC4 top vss vss sky130_fd_pr__cap_var_lvt w=20 l=2
M1 c top vss vss nmos W=2u L=0.5u
.ends
"""


def mapped(tmp_path, text, technology="sky130A"):
    path = tmp_path / "own.spice"
    path.write_text(text)
    read = read_netlist(str(path), identify_modules=False)
    return map_circuit(read, Target.from_technology(load(technology)), MapOptions())


def test_matched_small_and_mos_capacitors_are_laid_out(tmp_path):
    request = LayoutRequest(netlist_text=FILTER, technology="sky130A", workspace=str(tmp_path), last_stage="metrics")
    report = build_layout(request)
    assert report["drc"]["passed"]
    assert report["lvs"]["matched"]
    types = {tuple(module["devices"]): module["type"] for module in report["modules"]}
    assert types["C1", "C2"] == "capacitor_array"
    assert [m["centroid_error"] for m in report["modules"] if m["type"] == "capacitor_array"] == [0]
    reference = Path(report["files"]["reference_netlist"]).read_text()
    (c2,) = [line for line in reference.splitlines() if line.startswith("XC2 ")]
    assert c2.endswith("m=2")
    assert sum(line.startswith("XC3_s") for line in reference.splitlines()) == 3
    assert "XC4 top vss vss sky130_fd_pr__cap_var_lvt w=10 l=2 vm=2" in reference
    assert "vss vss sky130_fd_pr__cap_mim_m3_1" in reference.split("* dummy")[1]


@pytest.mark.parametrize(("plates", "dummies"), [((1, 1), 0), ((1, 2), 12), ((2, 2), 12)])
def test_two_single_plates_get_no_dummies(plates, dummies):
    """They are mirror images of each other; ten dummies around them would take most of the area."""
    technology, layout = load("sky130A"), kdb.Layout()
    layout.dbu = technology.dbu_um
    devices = tuple(
        (f"C{m}{i}", PassiveSize(10e-6, 10e-6, m), {"p": f"a{i}", "n": "out"}) for i, m in enumerate(plates)
    )
    spec = BlockSpec("pair", technology.passive("cap_mim_m3_1"), devices, "vss", 1)
    assert sum(each.count for each in draw_block(layout, technology, spec).dummies) == dummies


STRINGS = """.subckt strings a b c d vss
XR1 a n1 vss sky130_fd_pr__res_high_po w=0.35 l=10
XR2 n2 n1 vss sky130_fd_pr__res_high_po w=0.35 l=10
XR3 n2 b vss sky130_fd_pr__res_high_po w=0.35 l=10
XR4 b tap vss sky130_fd_pr__res_high_po w=0.35 l=60
XR5 p1 tap vss sky130_fd_pr__res_high_po w=0.35 l=60
XR6 p1 p2 vss sky130_fd_pr__res_high_po w=0.35 l=60
XR7 p3 p2 vss sky130_fd_pr__res_high_po w=0.35 l=60
XR8 p3 p4 vss sky130_fd_pr__res_high_po w=0.35 l=60
XR9 c p4 vss sky130_fd_pr__res_high_po w=0.35 l=60
M1 d tap vss vss nmos W=2u L=0.5u
.ends
"""


def test_resistors_in_series_lie_in_the_order_of_their_string(tmp_path):
    """Tap feeds a gate, so that a string ends there and the one resistor on its other side is no part of one."""
    groups, _ = group_passives(mapped(tmp_path, STRINGS).circuit, load("sky130A"), Constraints())
    found = [("".join(device.id[2:] for device in group.devices), group.chained) for group in groups]
    assert found == [("123", True), ("56", True), ("789", True), ("4", False)]
    request = LayoutRequest(netlist_text=STRINGS, technology="sky130A", workspace=str(tmp_path), last_stage="lvs")
    report = build_layout(request)
    assert (report["drc"]["passed"], report["lvs"]["matched"]) == (True, True)


def test_values_in_an_integer_ratio_that_share_a_net_become_equal_plates(tmp_path):
    ratio = mapped(tmp_path, ".subckt x a b c t v\nC1 a t 100f\nC2 b t 300f\nC3 c t 100f\nC4 c v 5f\n.ends\n").circuit
    plates = {device.id: (device.w, device.l, device.m) for device in ratio.devices if device.id != "C4"}
    assert [plates[name][2] for name in ("C1", "C2", "C3")] == [2, 6, 2]  # 1:3:1 would have two single plates
    assert len({plate[:2] for plate in plates.values()}) == 1
    (group,) = suggest_constraints(ratio).matching
    assert group.devices == ("C1", "C2", "C3")
    golden = mapped(tmp_path, ".subckt x a b t\nC1 a t 100f\nC2 b t 161.803f\n.ends\n").circuit
    assert [device.m for device in golden.devices] == [1, 1]
    assert suggest_constraints(golden).matching == ()


def test_matched_groups_of_a_file_are_obeyed_and_splits_reported(tmp_path):
    text = ".subckt x a b c t\n" + "".join(
        f"XR{i} {net} t t sky130_fd_pr__res_high_po w=0.35 l=10\n" for i, net in enumerate("abca")
    )
    text += "XC1 a t sky130_fd_pr__cap_mim_m3_1 w=5 l=5\nXC2 b t sky130_fd_pr__cap_mim_m3_1 w=6 l=5\n.ends\n"
    circuit = mapped(tmp_path, text).circuit
    wanted = Constraints(matching=(MatchedGroup(("XR0", "XR2")), MatchedGroup(("XC1", "XC2"))))
    groups, notes = group_passives(circuit, load("sky130A"), wanted)
    assert [(g.type, [d.id for d in g.devices]) for g in groups] == [
        ("resistor_bank", ["XR0", "XR2"]),
        ("single", ["XC1"]),
        ("single", ["XC2"]),
        ("resistor_bank", ["XR1", "XR3"]),
    ]
    assert len(notes) == 1
    assert "XC1 XC2 is drawn in 2 blocks" in notes[0]


@pytest.mark.parametrize("technology", ["generic", "sg13g2"])
def test_a_process_without_mos_capacitors_says_what_to_use(tmp_path, technology):
    text = ".subckt x a t\nXC1 a t t sky130_fd_pr__cap_var_lvt w=5 l=1\nM1 a t t t nmos W=1u L=1u\n.ends\n"
    with pytest.raises(
        UnsupportedOperationError, match=r"XC1.*use a transistor with source, drain and body on one net"
    ):
        mapped(tmp_path, text, technology)


def test_a_pair_of_resistors_whose_ends_are_named_in_another_order_is_drawn_as_mirror_images(tmp_path):
    """Resistors of two bars have both rails at one side, in the order of the ends."""
    text = """.subckt stage ip in op on b vdd vss
M1 on ip t vss nmos w=4u l=1u
M2 op in t vss nmos w=4u l=1u
M3 t b vss vss nmos w=4u l=1u
R1 vdd on r=60k
R2 op vdd r=60k
.ends
"""
    request = LayoutRequest(netlist_text=text, technology="sky130A", workspace=str(tmp_path / "w"), last_stage="place")
    places = {
        m: island["axis_x"] for island in build_layout(request)["placement"]["islands"] for m in island["modules"]
    }
    assert places["resistor_R1"] == places["resistor_R2"]


def test_the_reference_netlist_states_the_plates_of_mirrored_capacitors_as_drawn(tmp_path):
    text = """.subckt stage ip in op on b vdd vss
M1 on ip t vss nmos w=4u l=1u
M2 op in t vss nmos w=4u l=1u
M3 t b vss vss nmos w=4u l=1u
XC1 on x sky130_fd_pr__cap_mim_m3_1 w=2 l=2
XC2 x op sky130_fd_pr__cap_mim_m3_1 w=2 l=2
.ends
"""
    build_layout(LayoutRequest(netlist_text=text, technology="sky130A", workspace=str(tmp_path), last_stage="lvs"))
    cards = [line.split()[:3] for line in (tmp_path / "reference.spice").read_text().splitlines() if "mim" in line]
    extracted = [line.split()[:3] for line in (tmp_path / "extracted.spice").read_text().splitlines() if "mim" in line]
    assert sorted(cards) == [["XC1", "on", "x"], ["XC2", "op", "x"]]
    assert {card[1] for card in extracted} == {"on", "op"}


LADDER = """.subckt ladder s0 s1 s2 out vss
Rt n0 vss 20k
Ra0 s0 n0 20k
Ra1 s1 n1 20k
Ra2 s2 out 20k
Rb0 n0 n1 10k
Rb1 n1 out 10k
M1 s0 out vss vss nmos W=2u L=1u
.ends
"""


@pytest.mark.parametrize("technology", ["sky130A", "gf180mcuD", "sg13g2"])
def test_resistors_in_a_ratio_are_one_bank_of_one_bar_with_dummies(tmp_path, technology):
    request = LayoutRequest(netlist_text=LADDER, technology=technology, workspace=str(tmp_path), last_stage="metrics")
    report = build_layout(request)
    assert (report["drc"]["passed"], report["lvs"]["matched"]) == (True, True)
    assert sorted(sorted(each["devices"]) for each in report["modules"] if each["type"] == "resistor_bank") == [
        ["Ra0", "Ra1", "Ra2", "Rb0", "Rb1", "Rt"]
    ]
    process = load(technology)
    circuit = mapped(tmp_path, LADDER, technology).circuit
    lengths = {device.id: round(device.l * 1e6 / process.dbu_um) for device in circuit.devices if device.id != "M1"}
    assert {lengths[name] for name in ("Rt", "Ra0", "Ra1", "Ra2")} == {2 * lengths["Rb0"]} == {2 * lengths["Rb1"]}
    ((group,), notes) = group_passives(circuit, process, Constraints())
    assert (group.unit > 0, notes) == (True, ())
    assert all(length % group.unit == 0 for length in lengths.values())
    layout = kdb.Layout()
    layout.read(report["files"]["gds"])
    poly = process.layer(layout, process.passive(circuit.device("Rt").model).parts["body"])
    shapes = [each.bbox() for each in kdb.Region(layout.top_cell().begin_shapes_rec(poly)).merged()]
    heights = [box.height() for box in shapes if box.height() > group.unit]
    per_r = lengths["Rb0"] // group.unit
    assert len(heights) == (4 * 2 + 2) * per_r + 2  # with a dummy at each end
    assert len(set(heights)) == 1


def test_resistors_in_a_ratio_without_a_common_bar_keep_their_own_and_say_so(tmp_path):
    text = ".subckt x a b vss\nXR1 a b vss sky130_fd_pr__res_high_po w=0.35 l=10.005\n"
    text += "XR2 b vss vss sky130_fd_pr__res_high_po w=0.35 l=17.77\nM1 a b vss vss nmos W=2u L=0.5u\n.ends\n"
    groups, notes = group_passives(mapped(tmp_path, text).circuit, load("sky130A"), Constraints())
    assert [[device.id for device in group.devices] for group in groups] == [["XR1"], ["XR2"]]
    assert len(notes) == 1
    assert "XR1, XR2 are in a ratio, but no bar" in notes[0]
