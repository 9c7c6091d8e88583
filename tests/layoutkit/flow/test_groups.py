"""Which devices share a row, and into how many fingers they are cut (design: engine's ideas 2 and 5)."""

import re
from dataclasses import replace
from itertools import pairwise

import klayout.db as kdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutkit.circuit import Circuit, Device, recognise
from layoutkit.circuit.suggested_constraints import suggest_constraints
from layoutkit.flow.build import build_layout
from layoutkit.flow.design import LayoutRequest, make_design, read_circuit
from layoutkit.flow.groups import MOST_MATCHED, group_devices, size
from layoutkit.flow.modules import draw_groups
from layoutkit.technology import load
from thorough import examples

TECHNOLOGY = load("sky130A")


def mos(name, nets, model="nfet_01v8", **params):
    """Return a transistor on nets "d g s b"."""
    sizes = {"w": 4e-6, "l": 0.5e-6, "nf": 2, "m": 1, **params}
    kind = "nmos" if model.startswith("nfet") else "pmos"
    return Device(name, kind, model, sizes, dict(zip("dgsb", nets.split(), strict=True)))


def groups_of(*devices, ports=()):
    circuit = Circuit("c", devices, ports)
    circuit = circuit.with_modules(recognise(circuit))
    return group_devices(circuit, TECHNOLOGY, suggest_constraints(circuit))


def test_a_pair_and_its_tail_are_two_rows_one_above_the_other():
    groups, notes = groups_of(
        mos("M1", "x1 a t vss"), mos("M2", "x2 b t vss"), mos("M3", "t bias vss vss"), ports=("a", "b", "bias", "vss")
    )
    assert [(g.type, [d.id for d in g.devices], g.level) for g in groups] == [
        ("differential_pair", ["M1", "M2"], 2),
        ("single", ["M3"], 1),
    ]
    assert notes == ()


CASCODED = (
    mos("M1", "x1 a t vss"),
    mos("M2", "x2 b t vss"),
    mos("M3", "t bias vss vss"),
    mos("M4", "o1 c x1 vss"),
    mos("M5", "o2 c x2 vss"),
)


def test_cascodes_are_two_modules_that_mirror_each_other_unless_a_pattern_is_stated():
    circuit = Circuit("c", CASCODED, ("a", "b", "bias", "c", "o1", "o2", "vss"))
    circuit = circuit.with_modules(recognise(circuit))
    suggested = suggest_constraints(circuit)
    assert ["M4", "M5"] in [sorted(wanted.devices) for wanted in suggested.matching]

    def modules(wanted):
        groups, _ = group_devices(circuit, TECHNOLOGY, wanted)
        return sorted([device.id for device in group.devices] for group in groups)

    assert modules(suggested) == [["M1", "M2"], ["M3"], ["M4"], ["M5"]]
    stated = [replace(each, arrangement="AB/BA") if "M4" in each.devices else each for each in suggested.matching]
    assert modules(replace(suggested, matching=tuple(stated))) == [["M1", "M2"], ["M3"], ["M4", "M5"]]
    assert ["M4", "M5"] in modules(replace(suggested, symmetry=()))


def test_a_mirror_of_two_lengths_is_split_and_told():
    groups, notes = groups_of(mos("M1", "i i vss vss"), mos("M2", "o i vss vss", l=1e-6))
    assert [g.type for g in groups] == ["single", "single"]
    assert len(notes) <= 1


@pytest.mark.parametrize(
    ("widths_um", "finger_um", "fingers"),
    [((2, 8), 2, [1, 4]), ((3, 2), 1, [3, 2]), ((2, 8, 5), 1, [2, 8, 5]), ((4, 2), 2, [2, 1])],
)
def test_a_mirror_with_its_ratio_in_the_widths_gets_fingers_of_one_width(widths_um, finger_um, fingers):
    devices = [
        mos(f"M{i}", f"{'i' if i == 1 else f'o{i}'} i vss vss", w=w * 1e-6, nf=1) for i, w in enumerate(widths_um, 1)
    ]
    (group,), notes = groups_of(*devices)
    assert notes == ()
    drawn = {device.id: sizing.fingers for device, sizing in zip(group.devices, group.sizing, strict=True)}
    assert [drawn[device.id] for device in devices] == fingers
    assert {sizing.finger_width for sizing in group.sizing} == {finger_um * 1000}


UNIT = {"w": 0.75e-6, "l": 0.15e-6, "nf": 1, "m": 25}


@pytest.mark.parametrize("other", [{}, {"m": 10}, {"w": 1e-6}])
def test_equal_fingers_stay_as_they_are(other):
    """Reference and output are equal, and a switch between their gates keeps recognition from seeing the output."""
    groups, _ = groups_of(
        mos("M1", "i i vss vss", **UNIT),
        mos("M2", "mid i vss vss", **UNIT),
        mos("M3", "g sw i vss", **(UNIT | {"m": 10})),
        mos("M4", "out g vss vss", **(UNIT | other)),
    )
    drawn = {d.id: (s.fingers, s.finger_width) for g in groups for d, s in zip(g.devices, g.sizing, strict=True)}
    assert drawn["M1"] == drawn["M2"] == (25, 750)
    assert (drawn["M4"] == drawn["M1"]) == (not other)
    assert drawn["M3"] == (10, 750)


PUMP = """.subckt pump i mid out sw vss
M1 i i vss vss nmos w=0.75u l=0.15u m=25
M2 mid i vss vss nmos w=0.75u l=0.15u m=25
M3 g sw i vss nmos w=0.75u l=0.15u m=10
M4 out g vss vss nmos w=0.75u l=0.15u m=25
.ends
"""
PAIR = """.subckt pair a b x y t vss
M1 x a t vss nmos w=6u l=0.5u
M2 y b t vss nmos w=6u l=0.5u
M3 t t vss vss nmos w=3u l=0.5u
.ends
"""


@pytest.mark.parametrize("technology", ["sky130A", "gf180mcuD", "sg13g2"])
@pytest.mark.parametrize("netlist", [PUMP, PAIR])
def test_every_change_of_fingers_is_told_as_it_is_drawn(tmp_path, technology, netlist):
    request = LayoutRequest(
        netlist_text=netlist, technology=technology, workspace=str(tmp_path), last_stage="place", row_gap=0.5
    )
    told = {}
    for text in build_layout(request)["warnings"]:
        if found := re.fullmatch(r"fingers differ .*\((\d+) x ([\d.]+) um drawn as (\d+) x ([\d.]+) um\): (.*)", text):
            told |= {name: (int(found[1]), int(found[3]), float(found[4])) for name in found[5].split(", ")}
    process, layout = load(technology), kdb.Layout()
    layout.read(str(tmp_path / "placed.gds"))
    cell = layout.top_cell()

    def region(role):
        return kdb.Region(cell.begin_shapes_rec(process.layer(layout, process.roles[role])))

    gates = (region("active") & region("poly")).merged()
    names = kdb.Texts(cell.begin_shapes_rec(process.layer(layout, process.roles["device_text"])))
    stated = {words[0]: int(words[-1][2:]) if words[-1].startswith("m=") else 1
              for words in map(str.split, netlist.splitlines()) if words[0].startswith("M")}  # fmt: skip
    for name, count in stated.items():
        here = kdb.Texts([text for text in names.each() if text.string == name])
        drawn = gates.interacting(here)
        if drawn.count() == count:
            assert name not in told
        else:
            assert told[name][:2] == (count, drawn.count())
            sides = [(box.width(), box.height()) for box in (each.bbox() for each in drawn.each())]
            assert all(round(1000 * told[name][2]) in each for each in sides)


def test_a_mirror_whose_widths_have_no_common_finger_is_split_and_its_ratio_is_told():
    groups, (note,) = groups_of(mos("M1", "i i vss vss", nf=1), mos("M2", "o i vss vss", w=6.01e-6, nf=1))
    assert [g.type for g in groups] == ["single", "single"]
    assert "no finger width near theirs divides all w (ratios to M1 by the sizes: M2 1.5025)" in note


@pytest.mark.parametrize(("count", "sizes"), [(MOST_MATCHED, [24]), (25, [12, 13]), (73, [18, 18, 18, 19])])
def test_a_mirror_of_many_devices_is_split_evenly_and_reported_unless_a_pattern_is_stated(count, sizes):
    devices = [mos(f"M{i:02}", f"{f'o{i}' if i else 'in'} in vss vss") for i in range(count)]
    circuit = Circuit("c", tuple(devices), ())
    circuit = circuit.with_modules(recognise(circuit))
    wanted = suggest_constraints(circuit)
    groups, notes = group_devices(circuit, TECHNOLOGY, wanted)
    assert [len(group.devices) for group in groups] == sizes
    assert [device.id for group in groups for device in group.devices] == [device.id for device in devices]
    assert [f"in {len(sizes)} modules" in note for note in notes] == [True] * (len(sizes) > 1)
    stated = replace(wanted, matching=tuple(replace(each, arrangement="interdigitated") for each in wanted.matching))
    (group,), notes = group_devices(circuit, TECHNOLOGY, stated)
    assert (len(group.devices), notes) == (count, ())


@pytest.mark.parametrize(("branches", "modules"), [(12, 1), (13, 2)])
def test_each_module_of_a_large_cascode_mirror_holds_the_cascodes_of_its_own_devices(branches, modules):
    devices = [mos(f"M{i:02}", f"{f'x{i}' if i else 'in'} in vss vss", w=3e-6) for i in range(branches)]
    tops = [f"{f'o{i}' if i else 'ic'} ic {f'x{i}' if i else 'in'} vss" for i in range(branches)]
    devices += [mos(f"C{i:02}", nets, w=3e-6) for i, nets in enumerate(tops)]
    groups, _ = groups_of(*devices)
    assert len(groups) == modules
    for group in groups:
        below = [device.id for device in group.devices if device.id not in group.cascodes]
        assert list(group.cascodes) == [name.replace("M", "C") for name in below]


PTAT = """.subckt ptat g c o s1 s2 vss
M1 x1 g {0} vss nmos w=10u l=1u nf=2
M2 x2 g {1} vss nmos w=10u l=1u nf=2
M3 g c x1 vss nmos w=10u l=1u nf=2
M4 o c x2 vss nmos w=10u l=1u nf=2
"""
RESISTOR = "XR1 s2 vss vss rhigh w=0.5u l=20u"
JUNCTIONS = "XQ1 vss vss s1 pnpMPA a=2p p=6u\nXQ2 vss vss q pnpMPA a=2p p=6u m=8\nXR1 s2 q vss rhigh w=0.5u l=20u"


@pytest.mark.parametrize(
    ("feet", "sources", "modules"),
    [
        ("", ("vss", "vss"), ["M1 M2 M3 M4"]),
        (RESISTOR, ("vss", "s2"), ["M1 M2", "M3 M4"]),
        (f"{RESISTOR}\nXR2 s1 vss vss rhigh w=0.5u l=20u", ("s1", "s2"), ["M1 M2", "M3 M4"]),
        (JUNCTIONS, ("s1", "s2"), ["M1 M2", "M3 M4"]),
    ],
)
def test_a_mirror_above_several_nets_is_a_module_and_its_cascodes_are_another(feet, sources, modules):
    netlist = PTAT.format(*sources) + feet + "\n.ends\n"
    request, technology = LayoutRequest(netlist_text=netlist), load("sg13g2")
    circuit, _ = read_circuit(request, technology)
    design, notes = make_design(request, technology, circuit)
    mirrors = [group for group in design.groups if group.type == "current_mirror"]
    assert sorted(" ".join(device.id for device in group.devices) for group in mirrors) == modules
    assert ["sources below" in note for note in notes if "is drawn in" in note] == [True] * (len(modules) - 1)
    layout = kdb.Layout()
    layout.dbu = technology.dbu_um
    drawn = {device for each in draw_groups(layout, design) for device in each.module.devices}
    assert drawn >= {"M1", "M2", "M3", "M4"}


@pytest.mark.parametrize(("top_um", "modules"), [(15.735, 2), (6.0, 1)])
def test_a_mirror_whose_cascodes_leave_no_room_for_all_its_rows_is_apart_from_them(top_um, modules):
    """Three rows of 3.315 um and three of 5.245 um are 25.7 um high, more than 3/4 of the 30 um between two taps.

    In one row, they were 119 um long, and the larger device of the mirror was at its ends only.
    """
    low = {"model": "pfet_01v8", "w": 3.315e-6, "l": 2e-6, "nf": 1}
    top = {"model": "pfet_01v8", "w": top_um * 1e-6, "l": 10e-6, "nf": 3}
    devices = [mos("M0", "s0 s0 vdd vdd", **low), mos("M1", "s1 s0 vdd vdd", **(low | {"m": 2}))]
    devices += [mos("C0", "i0 i0 s0 vdd", **top), mos("C1", "i1 i0 s1 vdd", **(top | {"m": 2}))]
    groups, notes = groups_of(*devices)
    assert [[device.id for device in group.devices] for group in groups] == (
        [["M0", "M1"], ["C0", "C1"]] if modules > 1 else [["M0", "M1", "C0", "C1"]]
    )
    assert ["too high for the taps" in note for note in notes] == [True] * (modules - 1)


def test_every_device_is_in_exactly_one_group():
    devices = [mos(f"M{i}", f"d{i % 3} g{i % 2} s{i % 4} vss") for i in range(12)]
    groups, _ = groups_of(*devices)
    assert sorted(d.id for g in groups for d in g.devices) == sorted(d.id for d in devices)


@settings(max_examples=examples(200), deadline=None)
@given(st.integers(84, 40_000).map(lambda n: n * 5), st.integers(1, 12), st.integers(1, 4), st.sampled_from([1, 2]))
def test_cutting_into_fingers_keeps_the_total_width(width, fingers, multiplier, units):
    """Arithmetic oracle: W * m is kept exactly wherever the asked fingers divide it on the grid."""
    device = mos("M1", "d g s vss", w=width * 1e-9, nf=fingers, m=multiplier)
    sizing = size(device, TECHNOLOGY, units)
    assert sizing.finger_width % TECHNOLOGY.grid == 0
    total = width * multiplier
    if total % (fingers * multiplier * 5) == 0 and total // (fingers * multiplier) >= 420:
        assert sizing.finger_width * sizing.fingers == total
    else:
        assert abs(sizing.finger_width * sizing.fingers - total) <= 5 * sizing.fingers


def test_a_finger_too_wide_for_its_taps_is_cut():
    sizing = size(mos("M1", "d g s vss", w=100e-6, nf=1), TECHNOLOGY, 1)
    assert sizing.finger_width * sizing.fingers == 100_000
    assert sizing.finger_width <= 22_500


def test_an_odd_number_of_equal_fingers_stays():
    pair = [mos(f"M{i}", f"x{i} {gate} t vss", w=1.62e-6, nf=3) for i, gate in ((1, "a"), (2, "b"))]
    (group, _), _ = groups_of(*pair, mos("M3", "t bias vss vss"), ports=("a", "b", "bias", "vss"))
    assert {(sizing.finger_width, sizing.fingers) for sizing in group.sizing} == {(540, 3)}


def test_current_sources_that_an_amplifier_drives_are_one_group():
    """Those of a bandgap: without a latch beside them they do not switch."""
    netlist = """
    .subckt bandgap va vb bias vdd vss
    M1 va pg vdd vdd pmos W=8u L=1u nf=2
    M2 vb pg vdd vdd pmos W=8u L=1u nf=2
    M3 x va t vss nmos W=4u L=1u nf=2
    M4 pg vb t vss nmos W=4u L=1u nf=2
    M5 x x vdd vdd pmos W=4u L=1u nf=2
    M6 pg x vdd vdd pmos W=4u L=1u nf=2
    M7 t bias vss vss nmos W=4u L=2u nf=2
    .ends
    """
    request, technology = LayoutRequest(netlist_text=netlist), load("sky130A")
    circuit, _ = read_circuit(request, technology)
    design, _ = make_design(request, technology, circuit)
    assert {"M1", "M2"} in [{device.id for device in group.devices} for group in design.groups]


def test_five_rows_whose_rails_agree_only_at_an_odd_distance_are_drawn_at_equal_distances():
    """The two inner pairs of rows share rails; without an odd step they push each other apart for ever."""
    netlist = """
    .subckt bias in a b c vdd
    M1 in in vdd vdd pmos W=8u L=1u nf=2
    M2 a in vdd vdd pmos W=8u L=1u nf=2
    M3 b in vdd vdd pmos W=8u L=1u nf=2
    M4 c in vdd vdd pmos W=16u L=1u nf=4
    .ends
    """
    request, technology = LayoutRequest(netlist_text=netlist), load("sg13g2")
    circuit, _ = read_circuit(request, technology)
    design, _ = make_design(request, technology, circuit)
    layout = kdb.Layout()
    layout.dbu = technology.dbu_um
    (drawn,) = draw_groups(layout, design)
    rows = sorted({gate.box.center().y for gate in drawn.module.gates})
    assert len(rows) == 5
    assert len({upper - lower for lower, upper in pairwise(rows)}) == 1


def test_fingers_are_not_cut_into_dozens_for_one_width():
    """60 and 26.5 um have 0.5 um in common, with which a mirror of six fingers would have 173."""
    groups, (note,) = groups_of(
        mos("M1", "b b vdd vdd", "pfet_01v8", w=60e-6, l=1e-6, nf=4),
        mos("M2", "o b vdd vdd", "pfet_01v8", w=26.5e-6, l=1e-6, nf=2),
        ports=("b", "o", "vdd"),
    )
    assert [(group.sizing[0].finger_width, group.sizing[0].fingers) for group in groups] == [(15_000, 4), (13_250, 2)]
    assert "no finger width near theirs divides all w (ratios to M1 by the sizes: M2 0.441667)" in note


def test_a_changed_number_of_fingers_states_what_it_buys(tmp_path):
    """M2 gets the finger width of M1; M3 is too wide for its taps."""
    text = """.subckt t b o x g vss
M1 b b vss vss nmos W=4u L=1u nf=2
M2 o b vss vss nmos W=8u L=1u nf=2
M3 x g vss vss nmos W=100u L=1u nf=1
.ends
"""
    request = LayoutRequest(netlist_text=text, technology="sky130A", workspace=str(tmp_path), last_stage="place")
    changes = [each for each in build_layout(request)["warnings"] if each.startswith("fingers differ")]
    reasons = {each.partition("): ")[2]: each.partition(", so ")[2].partition(" (")[0] for each in changes}
    assert reasons == {
        "M2": "that all fingers of their group have one width",
        "M3": "that taps are near, or as equal transistors are drawn",
    }
