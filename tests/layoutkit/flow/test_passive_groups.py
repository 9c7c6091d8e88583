"""Capacitors and resistors in the flow: matched groups, plates in series, MOS capacitors, and what is refused."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import klayout.db as kdb
import pytest

from layoutkit.circuit import MapOptions, map_circuit, read_netlist
from layoutkit.circuit.constraints import Constraints, MatchedGroup, SymmetryGroup
from layoutkit.circuit.suggested_constraints import suggest_constraints
from layoutkit.draw.generators import BlockSpec, draw_block
from layoutkit.errors import NetlistError, UnsupportedOperationError
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
    return map_circuit(read, load(technology), MapOptions())


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


def poly_bars(report, technology, model):
    """Return the names of the bars of a layout from left to right, "" for those that the netlist lacks."""
    process, layout = load(technology), kdb.Layout()
    layout.read(report["files"]["gds"])
    top = layout.top_cell()
    poly = kdb.Region(top.begin_shapes_rec(process.layer(layout, process.passive(model).parts["body"]))).merged()
    texts = kdb.Texts(top.begin_shapes_rec(process.layer(layout, process.role("device_text"))))
    found = []
    for polygon in poly.each():
        names = [each.string for each in texts.each() if polygon.inside(kdb.Point(each.x, each.y))]
        found.append((polygon.bbox().left, polygon.bbox().height(), names[0] if names else ""))
    return [(name, height) for _, height, name in sorted(found)]


def test_strings_in_a_ratio_are_interleaved_in_one_bank(tmp_path):
    """Tap feeds a gate: the ratio of what is on its two sides counts, not that of one section to another."""
    ((group,), notes) = group_passives(mapped(tmp_path, STRINGS), load("sky130A"), Constraints())
    assert (group.unit, notes) == (10_000, ())
    assert sorted(map(sorted, group.strings)) == [["XR1", "XR2", "XR3"], ["XR5", "XR6", "XR7", "XR8", "XR9"]]
    request = LayoutRequest(netlist_text=STRINGS, technology="sky130A", workspace=str(tmp_path), last_stage="lvs")
    report = build_layout(request)
    assert (report["drc"]["passed"], report["lvs"]["matched"]) == (True, True)
    bars = poly_bars(report, "sky130A", "res_high_po")
    bars = [(name, height) for name, height in bars if height > 10_000]
    assert len({height for _, height in bars}) == 1
    assert [bars[0][0], bars[-1][0]] == ["", ""]
    assert len(bars) == 3 + 6 * 6 + 2
    places = [number for number, (name, _) in enumerate(bars) if name in {"XR5", "XR6", "XR7", "XR8", "XR9"}]
    assert abs(sum(places) / len(places) - (len(bars) - 1) / 2) < 1  # about the middle of the bank


DIVIDER = "* two strings of units with the user's dummies\n.subckt divider in fb vss\n" + "\n".join(
    [
        *(f"XRA{i} {'in' if i == 0 else f'a{i}'} {'fb' if i == 9 else f'a{i + 1}'} vss RES" for i in range(10)),
        *(f"XRB{i} {'fb' if i == 0 else f'b{i}'} {'vss' if i == 4 else f'b{i + 1}'} vss RES" for i in range(5)),
        *(f"XRD{i} vss vss vss RES" for i in range(4)),
        "M1 in fb vss vss nmos W=2u L=0.5u",
        ".ends\n",
    ]
)


@pytest.mark.parametrize(
    ("technology", "card"),
    [
        ("sky130A", "sky130_fd_pr__res_high_po w=0.35 l=10"),
        ("gf180mcuD", "ppolyf_u r_width=1u r_length=10u"),
        ("sg13g2", "rppd w=0.5u l=10u"),
    ],
)
def test_the_dummies_of_the_netlist_are_those_of_the_bank(tmp_path, technology, card):
    text = DIVIDER.replace("RES", card)
    report = build_layout(
        LayoutRequest(netlist_text=text, technology=technology, workspace=str(tmp_path), last_stage="lvs")
    )
    assert (report["drc"]["passed"], report["lvs"]["matched"]) == (True, True)
    model = {"sky130A": "res_high_po", "gf180mcuD": "ppolyf_u", "sg13g2": "rppd"}[technology]
    names = [name for name, height in poly_bars(report, technology, model) if height > 10_000]
    assert {names[0], names[1], names[-1], names[-2]} == {"XRD0", "XRD1", "XRD2", "XRD3"}
    assert sorted(names[2:-2]) == sorted([*(f"XRA{i}" for i in range(10)), *(f"XRB{i}" for i in range(5))])


def test_a_string_that_nothing_senses_lies_in_its_order(tmp_path):
    """It is cut where one row of bars would be too long, and no section needs to match another."""
    nets = ["a", *(f"n{i}" for i in range(1, 120)), "c"]
    cards = [
        f"XR{i:03} {one} {two} vss sky130_fd_pr__res_high_po w=0.35 l=10" for i, (one, two) in enumerate(pairwise(nets))
    ]
    text = "\n".join([".subckt strings a c vss", *cards, "M1 c a vss vss nmos W=2u L=0.5u", ".ends", ""])
    groups, _ = group_passives(mapped(tmp_path, text), load("sky130A"), Constraints())
    assert [(len(group.devices), group.chained, group.unit) for group in groups] == [(60, True, 0), (60, True, 0)]
    for group in groups:
        numbers = [int(device.id[2:]) for device in group.devices]
        assert {abs(one - other) for one, other in pairwise(numbers)} == {1}
    request = LayoutRequest(netlist_text=text, technology="sky130A", workspace=str(tmp_path), last_stage="lvs")
    report = build_layout(request)
    assert (report["drc"]["passed"], report["lvs"]["matched"]) == (True, True)


def test_values_in_an_integer_ratio_that_share_a_net_become_equal_plates(tmp_path):
    ratio = mapped(tmp_path, ".subckt x a b c t v\nC1 a t 100f\nC2 b t 300f\nC3 c t 100f\nC4 c v 5f\n.ends\n")
    plates = {device.id: (device.w, device.l, device.m) for device in ratio.devices if device.id != "C4"}
    assert [plates[name][2] for name in ("C1", "C2", "C3")] == [2, 6, 2]  # 1:3:1 would have two single plates
    assert len({plate[:2] for plate in plates.values()}) == 1
    (group,) = suggest_constraints(ratio).matching
    assert group.devices == ("C1", "C2", "C3")
    golden = mapped(tmp_path, ".subckt x a b t\nC1 a t 100f\nC2 b t 161.803f\n.ends\n")
    assert [device.m for device in golden.devices] == [1, 1]
    assert suggest_constraints(golden).matching == ()


def test_matched_groups_of_a_file_are_obeyed_and_splits_reported(tmp_path):
    text = ".subckt x a b c t\n" + "".join(
        f"XR{i} {net} t t sky130_fd_pr__res_high_po w=0.35 l=10\n" for i, net in enumerate("abca")
    )
    text += "XC1 a t sky130_fd_pr__cap_mim_m3_1 w=5 l=5\nXC2 b t sky130_fd_pr__cap_mim_m3_1 w=6 l=5\n.ends\n"
    circuit = mapped(tmp_path, text)
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


def test_a_starved_ring_with_a_capacitor_at_each_stage_is_reviewed(tmp_path):
    cards = ["MP g g vdd vdd pmos W=0.8u L=0.5u", "MN g vb vss vss nmos W=0.6u L=0.5u"]
    for i, (one, other) in enumerate(["ab", "bc", "cd", "de", "ea"]):
        cards += [
            f"MA{i} {other} {one} p{i} vdd pmos W=2u L=0.5u",
            f"MB{i} {other} {one} n{i} vss nmos W=1u L=0.5u",
            f"MC{i} p{i} g vdd vdd pmos W=0.8u L=0.5u",
            f"MD{i} n{i} vb vss vss nmos W=0.6u L=0.5u",
            f"C{i} {other} vss 50f",
        ]
    text = "\n".join([".subckt ring vb e vdd vss", *cards, ".ends", ""])
    request = LayoutRequest(netlist_text=text, technology="sky130A", workspace=str(tmp_path), last_stage="metrics")
    assert build_layout(request)["review"]["findings"]


def test_diodes_whose_area_and_perimeter_make_a_narrow_rectangle_are_all_told_and_drawn_with_stated_sides(tmp_path):
    diodes = [f"XD{i} vss a sky130_fd_pr__diode_pw2nd_05v5 area=0.2025e12 perim={i}e6" for i in (3, 4)]
    text = "\n".join([".subckt x a vss", *diodes, "M1 a a vss vss nmos W=2u L=0.5u", ".ends", ""])
    request = LayoutRequest(netlist_text=text, technology="sky130A", workspace=str(tmp_path), last_stage="lvs")
    with pytest.raises(NetlistError) as caught:
        build_layout(request)
    for told in ("'XD3'", "'XD4'", "minimum is 0.45 um", "0.2025 um2", "perimeter 4 um", "of 1.8 um", "sizes"):
        assert told in caught.value.message
    sizes = {f"XD{i}": {"w": 0.45e-6, "l": 0.45e-6} for i in (3, 4)}
    assert build_layout(replace(request, sizes=sizes))["lvs"]["matched"]


@pytest.mark.parametrize(("count", "sizes"), [(2, [1, 1, 1, 1]), (3, [6]), (7, [6, 8])])
def test_many_symmetric_pairs_of_equal_resistors_share_banks(tmp_path, count, sizes):
    cards = [
        f"XR{side}{i} {side}{i} t vss sky130_fd_pr__res_high_po w=0.35 l=10\n" for side in "ab" for i in range(count)
    ]
    text = f".subckt x t vss {' '.join(card.split()[1] for card in cards)}\n" + "".join(cards) + ".ends\n"
    pairs = tuple((f"XRa{i}", f"XRb{i}") for i in range(count))
    circuit = mapped(tmp_path, text)
    groups, _ = group_passives(circuit, load("sky130A"), Constraints(symmetry=(SymmetryGroup(pairs=pairs),)))
    assert sorted(len(group.devices) for group in groups) == sizes
    drawn = [{device.id for device in group.devices} for group in groups if len(group.devices) > 1]
    assert all(bank >= set(pair) for pair in pairs for bank in drawn if bank & set(pair))


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
    circuit = mapped(tmp_path, LADDER, technology)
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


@pytest.mark.parametrize("name", ["vss", "b4"])
def test_a_ladder_alone_is_one_bank_whatever_its_ground_is_called(tmp_path, name):
    """Without a ground nothing says which net a substrate ring has: there is none, and no dummy tied to it."""
    cards = LADDER.replace("M1 s0 out vss vss nmos W=2u L=1u\n", "Rd1 vss vss 10k\nRd2 vss vss 10k\n")
    text = cards.replace("vss", name)
    request = LayoutRequest(netlist_text=text, technology="gf180mcuD", workspace=str(tmp_path), last_stage="metrics")
    report = build_layout(request)
    assert (report["drc"]["passed"], report["lvs"]["matched"]) == (True, True)
    (bank,) = (each["devices"] for each in report["modules"] if "Rt" in each["devices"])
    assert {"Ra0", "Ra1", "Ra2", "Rb0", "Rb1", "Rt"} == set(bank) - {"Rd1", "Rd2"}


def test_resistors_in_a_ratio_without_a_common_bar_keep_their_own_and_say_so(tmp_path):
    text = ".subckt x a b vss\nXR1 a b vss sky130_fd_pr__res_high_po w=0.35 l=10.005\n"
    text += "XR2 b vss vss sky130_fd_pr__res_high_po w=0.35 l=17.77\nM1 a b vss vss nmos W=2u L=0.5u\n.ends\n"
    groups, notes = group_passives(mapped(tmp_path, text), load("sky130A"), Constraints())
    assert [[device.id for device in group.devices] for group in groups] == [["XR1"], ["XR2"]]
    assert len(notes) == 1
    assert "XR1, XR2 are in a ratio, but no bar" in notes[0]
    assert not any(group.turns for group in groups)  # their bars lie in one direction


def test_resistors_of_one_length_are_a_bank_where_a_ratio_has_no_common_bar(tmp_path):
    """A trimmed string of ten units and one odd bar."""
    cards = [
        f"XR{i} {'a' if i == 0 else f'n{i}'} n{i + 1} vss sky130_fd_pr__res_high_po w=0.35 l=10.005" for i in range(9)
    ]
    cards += [f"XS{i} n{i + 9} n{i + 10} vss sky130_fd_pr__res_high_po w=0.35 l=10.005" for i in range(9)]
    cards += ["XT n18 b vss sky130_fd_pr__res_high_po w=0.35 l=17.77", "M1 a n9 vss vss nmos W=2u L=0.5u"]
    text = "\n".join([".subckt x a b vss", *cards, ".ends", ""])
    groups, notes = group_passives(mapped(tmp_path, text), load("sky130A"), Constraints())
    assert [(len(group.devices), len(group.strings)) for group in groups] == [(18, 2), (1, 0)]
    assert len(notes) == 1


def test_a_bank_that_would_be_very_long_becomes_several_of_one_bar(tmp_path):
    """Resistors of many wide bars: one row would be 30 times as long as high."""
    cards = [
        f"XR{i} n{i} n{i + 1} vss ppolyf_u r_width=3u r_length={length}u"
        for i, length in enumerate((165, 40, 10, 45, 70))
    ]
    taps = [f"M{i} x n{i} vss vss nfet_03v3 W=2u L=0.5u" for i in range(1, 5)]
    text = "\n".join([".subckt x n0 n5 x vss", *cards, *taps, ".ends", ""])
    groups, notes = group_passives(mapped(tmp_path, text, "gf180mcuD"), load("gf180mcuD"), Constraints())
    assert (len(groups), {group.unit for group in groups}, notes) == (3, {5000}, ())
    assert sorted(device.id for group in groups for device in group.devices) == [f"XR{i}" for i in range(5)]


PARALLEL = """* compensation and decoupling, each of several capacitors in parallel
.subckt parallel a b vdd vss
M1 a b vss vss nmos W=2u L=0.5u
M2 a b vdd vdd pmos W=2u L=0.5u
{cards}
.ends
"""


@pytest.mark.parametrize(
    ("technology", "card"),
    [
        ("sky130A", "sky130_fd_pr__cap_mim_m3_1 w=10 l=10"),
        ("gf180mcuD", "cap_mim_2f0fF c_width=10u c_length=10u"),
        ("sg13g2", "cap_cmim w=10u l=10u"),
    ],
)
def test_equal_capacitors_in_parallel_are_plates_over_one_bottom_plate_without_dummies(tmp_path, technology, card):
    cards = [f"XC{i} a b {card}" for i in range(4)] + [f"XD{i} vdd vss {card}" for i in range(3)]
    text = PARALLEL.format(cards="\n".join(cards))
    report = build_layout(
        LayoutRequest(netlist_text=text, technology=technology, workspace=str(tmp_path), last_stage="metrics")
    )
    assert (report["drc"]["passed"], report["lvs"]["matched"]) == (True, True)
    modules = {frozenset(module["devices"]) for module in report["modules"]}
    assert {frozenset({"XC0", "XC1", "XC2", "XC3"}), frozenset({"XD0", "XD1", "XD2"})} <= modules
    reference = Path(report["files"]["reference_netlist"]).read_text()
    assert "dummy" not in reference


@pytest.mark.parametrize(
    ("technology", "card"),
    [
        ("sky130A", "vdd vss vss sky130_fd_pr__cap_var_lvt w=80 l=20"),
        ("gf180mcuD", "vdd vss cap_nmos_03v3 c_width=50u c_length=50u"),
    ],
)
def test_a_large_mos_capacitor_is_rows_with_taps_between_them(tmp_path, technology, card):
    """Rows of one ring reach no farther than its taps, which would leave one long row."""
    text = PARALLEL.format(cards=f"XC1 {card}\nXC2 {card}")
    report = build_layout(
        LayoutRequest(netlist_text=text, technology=technology, workspace=str(tmp_path), last_stage="metrics")
    )
    assert (report["drc"]["passed"], report["lvs"]["matched"]) == (True, True)
    layout = kdb.Layout()
    layout.read(report["files"]["gds"])
    (cell,) = [each for each in layout.each_cell() if each.name.startswith("mos_capacitor_XC1_XC2")]
    box = cell.bbox()
    assert max(box.width(), box.height()) < 4 * min(box.width(), box.height())


@pytest.mark.parametrize(
    ("technology", "card"),
    [
        ("sky130A", "sky130_fd_pr__cap_mim_m3_1 w=4 l=4"),
        ("gf180mcuD", "cap_mim_2f0fF c_width=6u c_length=6u"),
        ("sg13g2", "cap_cmim w=6u l=6u"),
    ],
)
def test_equal_loads_on_one_supply_are_one_array_without_dummies(tmp_path, technology, card):
    """Followers of unlike widths. Loads that constraints place, as in the stages of a ring, stay in their stages."""
    cards = [f"M{i} vdd i{i} n{i} vss nmos W={i + 2}u L=0.5u" for i in range(6)]
    cards += [f"XC{i} n{i} vss {card}" for i in range(6)]
    text = "\n".join([f".subckt loads {' '.join(f'i{i} n{i}' for i in range(6))} vdd vss", *cards, ".ends", ""])
    report = build_layout(
        LayoutRequest(netlist_text=text, technology=technology, workspace=str(tmp_path), last_stage="metrics")
    )
    assert (report["drc"]["passed"], report["lvs"]["matched"]) == (True, True)
    arrays = [set(module["devices"]) for module in report["modules"] if module["type"] == "capacitor_array"]
    assert arrays == [{f"XC{i}" for i in range(6)}]
    assert "dummy" not in Path(report["files"]["reference_netlist"]).read_text()
    assert not any("one centroid" in text for text in report["warnings"])


def test_large_capacitors_whose_places_are_stated_lie_beside_the_others(tmp_path):
    """The loads of a ring lie in the columns of its stages, and decoupling of unlike sizes together."""
    cards = [f"M{i} n{(i + 1) % 3} n{i} vss vss nmos W=2u L=0.5u" for i in range(3)]
    cards += [f"MP{i} n{(i + 1) % 3} n{i} vdd vdd pmos W=4u L=0.5u" for i in range(3)]
    cards += [f"XC{i} n{i} vss cap_cmim w=8u l=8u" for i in range(3)]
    cards += ["XD1 vdd vss cap_cmim w=12u l=10u", "XD2 vdd vss cap_cmim w=10u l=10u"]
    text = "\n".join([".subckt ring n0 vdd vss", *cards, ".ends", ""])
    report = build_layout(
        LayoutRequest(netlist_text=text, technology="sg13g2", workspace=str(tmp_path), last_stage="metrics")
    )
    assert (report["drc"]["passed"], report["lvs"]["matched"]) == (True, True)


def test_resistors_without_a_ring_between_them_keep_the_distance_of_all_their_layers(tmp_path):
    """No supply is recognised, so blocks lie beside each other: Sal.b 0.42 um, EXT.b 0.31 um."""
    models = ("rppd", "rsil", "rhigh", "rsil", "rppd", "rppd", "rppd")
    cards = [f"XR{i} n{i} n{(3 * i + 1) % 8} {m} w=1u l={6 + 2 * (i // 2 % 3)}u" for i, m in enumerate(models)]
    text = "\n".join([".subckt x n0 n1 n2 n3 n4 n5 n6 n7", *cards, ".ends", ""])
    request = LayoutRequest(netlist_text=text, technology="sg13g2", workspace=str(tmp_path), last_stage="drc")
    report = build_layout(request)
    assert report["drc"]["passed"], report["drc"]
    layout = kdb.Layout()
    layout.read(report["files"]["gds"])
    for number, space in ((28, 420), (111, 310)):
        shapes = kdb.Region(layout.top_cell().begin_shapes_rec(layout.layer(number, 0))).merged()
        assert shapes.count() > 1
        assert not shapes.space_check(space).count()


@pytest.mark.parametrize("technology", ["sg13g2", "gf180mcuD"])
def test_resistor_dummies_on_a_rail_that_is_not_their_body_lie_beside_the_pair(tmp_path, technology):
    model = {"sg13g2": "rhigh", "gf180mcuD": "ppolyf_u"}[technology]
    loads = "\n".join(
        f"R{name} vdd {net} vss {model} w=1u l=10u" for name, net in [(1, "x"), (2, "y"), (3, "vdd"), (4, "vdd")]
    )
    pair = "M1 x a t vss nmos W=4u L=1u\nM2 y b t vss nmos W=4u L=1u\nM3 t t vss vss nmos W=4u L=1u"
    text = f".subckt loaded a b x y t vdd vss\n{pair}\n{loads}\n.ends\n"
    report = build_layout(
        LayoutRequest(netlist_text=text, technology=technology, workspace=str(tmp_path), last_stage="metrics")
    )
    assert report["drc"]["passed"]
    assert report["lvs"]["matched"]
    modules = [set(module["devices"]) for module in report["modules"] if "M1" not in module["devices"]]
    beside = [devices & {"R3", "R4"} for devices in modules if devices & {"R1", "R2"}]
    assert set().union(*beside) == {"R3", "R4"}
    assert len({len(each) for each in beside}) == 1


LONG = "Xcell_of_a_deep_hierarchy_0.Xanother_one_with_a_generated_name_RXTQM4_0.X"


def test_modules_of_devices_with_long_names_that_begin_alike_are_all_drawn(tmp_path):
    ends = ["a j", "a j", "j b", "c k", "k d"]
    bars = [f"{LONG}{i} {nets} vss sky130_fd_pr__res_high_po_0p35 l={4 + i}" for i, nets in enumerate(ends)]
    gates = [
        f"{LONG}M{i} {nets} vss vss sky130_fd_pr__nfet_01v8 w=1 l=0.{3 + i}" for i, nets in enumerate(["d a", "b c"])
    ]
    path = tmp_path / "long.spice"
    path.write_text("\n".join([".subckt long a b c d vss", *bars, *gates, ".ends", ""]))
    report = build_layout(LayoutRequest(str(path), "sky130A", str(tmp_path / "ws"), last_stage="lvs"))
    assert (report["lvs"]["verdict"], report["lvs"]["mismatches"]) == ("complete", [])
