"""The metal of a row: along the fingers, equal for matched gates, with two cuts or more and nothing foreign above."""

from dataclasses import replace
from itertools import pairwise

import klayout.db as kdb
import pytest
from drawn_circuit import channels_of

from layoutkit.draw.mos import MosSize, MosSpec, compact_rows, draw_mos, transistor, with_dummies
from layoutkit.draw.ring import RingStyle
from layoutkit.draw.row import Finger, Row
from layoutkit.draw.row_metal import Metal
from layoutkit.draw.stack import RowStack, draw_row_module
from layoutkit.drc.check import Options, check
from layoutkit.technology import load
from thorough import processes

TECHNOLOGIES = {name: load(name) for name in processes()}
# Strap, rail over the fingers and the cuts from the first conductor up to the rail, as layers of the PDKs.
METAL = {
    "generic": ("metal1", "metal2", ["via1"]),
    "gf180mcuD": ("Metal1", "Metal2", ["Via1"]),
    "sg13g2": ("Metal1", "Metal2", ["Via1"]),
    "sky130A": ("met1", "met2", ["mcon", "via"]),
}
NETS = {"A": ("ga", "da"), "B": ("gb", "db")}


@pytest.fixture(params=sorted(TECHNOLOGIES))
def process(request):
    """Return each shipped technology in turn."""
    return TECHNOLOGIES[request.param]


def row_of(letters, *, flipped=False, dummies=0, width=1000, length=500):
    """Return single-finger units that share their diffusions, drains at the ends or sources, as the letters allow."""
    fingers, left = [], NETS[letters[0]][1]
    for letter in letters:
        gate, drain = NETS[letter]
        right = "s" if left == drain else drain
        fingers.append(Finger(letter, gate, left, right, width, length, letter))
        left = right
    return with_dummies(Row(tuple(fingers), flipped=flipped), dummies, "b")


def drawn(tech, *rows, device="nmos", ring="full"):
    layout = kdb.Layout()
    layout.dbu = tech.dbu_um
    return draw_row_module(layout, tech, RowStack("cell", tech.device(device), "b", rows, ring=RingStyle(ring)))


def shapes(module, tech, layer):
    return kdb.Region(module.cell.begin_shapes_rec(tech.layer(module.layout, layer))).merged()


def around(gates, region):
    """Return for each gate what of ``region`` lies over it and beside it, moved to its own corner."""
    found = []
    for gate in gates:
        window = gate.box.enlarged(150, 0)
        found.append((region & kdb.Region(window)).moved(-window.left, -window.bottom))
    return found


def test_straps_cover_four_fifths_of_each_finger_and_cuts_fill_them(process):
    for width in (1000, 5000):
        module = drawn(process, row_of("ABBA", dummies=1, width=width))
        strap, _, cuts = METAL[process.name]
        metal = shapes(module, process, strap)
        channels = [gate.box for gate in module.gates if gate.device]
        for left, right in pairwise(channels):
            column = kdb.Region(kdb.Box(left.right, left.bottom, right.left, left.top))
            heights = (metal & column).bbox().height()
            assert heights >= 0.8 * width
            for layer in ["contact", *cuts[:-1]]:
                inside = shapes(module, process, layer) & column
                pitch = {"contact": process.contact.size + process.contact.space}
                pitch |= {cut.name: cut.size + cut.space for cut in process.cuts}
                assert inside.count() >= (0.8 * width) // pitch[layer] - 1


def test_straps_are_wide_only_below_their_rails(process):
    module = drawn(process, row_of("ABBA", dummies=1, width=5000, length=1000))
    strap, rail, _ = METAL[process.name]
    narrow = process.conductors[Metal(process).strap].width + 140
    channels = [gate.box for gate in module.gates if gate.device]
    over_fingers = kdb.Region(kdb.Box(channels[0].right, channels[0].bottom, channels[-1].left, channels[0].top))
    wide = (shapes(module, process, strap) & over_fingers).sized(-narrow // 2, 0, 2).sized(narrow // 2, 0, 2)
    assert not wide.is_empty()
    assert (wide - shapes(module, process, rail).sized(60)).is_empty()


@pytest.mark.parametrize(("width", "bulk", "place"), [(1000, "b", 1), (5000, "s", 1), (1000, "s", 0)])
def test_the_rail_of_the_common_source_lies_between_those_of_the_drains(process, width, bulk, place):
    """Beside the ring's rail lies that of the bulk, where rails find no room over the fingers."""
    made = row_of("ABBA", width=width, length=1000)
    layout = kdb.Layout()
    layout.dbu = process.dbu_um
    module = draw_row_module(layout, process, RowStack("cell", process.device("nmos"), bulk, (made,)))
    level = process.conductors[Metal(process).rail].name
    ends = [pin for pin in module.pins if pin.layer == level and 2 * pin.box.width() < module.bbox.width()]
    found = sorted((pin.box.bottom, pin.net) for pin in ends if pin.net in {"s", "da", "db"})
    assert list(dict.fromkeys(net for _, net in found)).index("s") == place


def test_every_matched_gate_has_the_same_metal_above_and_two_cuts_at_each_crossing(process):
    module = drawn(process, row_of("ABBA", dummies=2, width=2000, length=1000))
    _, rail, cuts = METAL[process.name]
    gates = [gate for gate in module.gates if gate.device]
    over = around(gates, shapes(module, process, rail))
    assert all((area ^ over[0]).is_empty() for area in over)
    strap_to_rail = shapes(module, process, cuts[-1])
    for gate in gates:
        for x in (gate.box.left - 200, gate.box.right + 200):
            column = kdb.Region(kdb.Box(x - 600, gate.box.bottom - 2000, x + 600, gate.box.top))
            assert (strap_to_rail & column).count() >= 2


def test_all_gate_strips_of_a_row_are_equally_high(process):
    module = drawn(process, row_of("ABBA", dummies=2))
    top = max(gate.box.top for gate in module.gates)
    first = shapes(module, process, process.conductors[0].layer)
    heights = set()
    for gate in (gate for gate in module.gates if gate.device):
        middle = kdb.Box(gate.box.center().x - 10, top + 1, gate.box.center().x + 10, module.bbox.top)
        (strip,) = [p.bbox() for p in (first & kdb.Region(middle)).each_merged() if p.bbox().bottom > top][:1]
        heights.add((strip.bottom, strip.top))
    assert len(heights) == 1


@pytest.mark.parametrize("rows", [("ABBA",), ("AB", "BA"), ("AABB", "BBAA")], ids="/".join)
def test_matched_rows_are_clean_and_only_their_own_metal_lies_over_the_channels(process, rows):
    made = [row_of(letters, flipped=i == 1, dummies=2) for i, letters in enumerate(rows)]
    module = drawn(process, *made)
    assert {v.rule.id: v.count for v in check(module.layout, module.cell, process).violated} == {}
    keepouts = {}
    for keepout in module.keepouts:
        keepouts.setdefault(keepout.layer, kdb.Region()).insert(keepout.box)
    assert set(keepouts) == {c.name for c in process.conductors[1:5]} | {c.name for c in process.cuts[1:4]}
    channels = kdb.Region([gate.box for gate in module.gates if gate.device])
    for region in keepouts.values():
        assert (channels - region).is_empty()
    for pin in module.pins:
        assert (kdb.Region(pin.box) & keepouts.get(pin.layer, kdb.Region())).is_empty()
    assert {pin.net for pin in module.pins} == {"s", "da", "db", "ga", "gb", "b"}


def test_rows_that_face_each_other_share_their_gate_rails(process):
    module = drawn(process, row_of("AB", dummies=2, length=600), row_of("BA", flipped=True, dummies=2, length=600))
    assert [len(module.pins_of(net)) for net in ("ga", "gb")] == [1, 1]


def test_gate_rails_of_facing_palindromes_are_joined_between_the_rows_and_need_no_risers(process):
    size = {"dummies": 2, "width": 2000, "length": process.device("nmos").min_l}
    module = drawn(process, row_of("ABBA", **size), row_of("BAAB", flipped=True, **size))
    assert module.symmetry_axis_x is not None
    assert {v.rule.id: v.count for v in check(module.layout, module.cell, process).violated} == {}
    link = shapes(module, process, process.conductors[2].layer)
    between = kdb.Box(module.bbox.left, module.gates[0].box.top, module.bbox.right, module.gates[-1].box.bottom)
    for net in ("ga", "gb"):
        low, high = (pin.box for pin in module.pins_of(net))
        joining = link.interacting(kdb.Region(low)).interacting(kdb.Region(high)).inside(kdb.Region(between))
        assert joining.count() >= 2


def test_a_palindrome_is_its_own_mirror_image(process):
    module = drawn(process, row_of("ABBA", dummies=2))
    axis = module.symmetry_axis_x
    assert axis is not None
    for index in module.layout.layer_indexes():
        layer = kdb.Region(module.cell.begin_shapes_rec(index)).merged()
        assert (layer ^ layer.transformed(kdb.Trans(kdb.Trans.M90)).moved(2 * axis, 0)).is_empty()


def test_end_columns_are_as_wide_as_inner_ones(process):
    module = drawn(process, row_of("ABBA", dummies=1))
    channels = sorted((gate.box for gate in module.gates), key=lambda box: box.left)
    active = shapes(module, process, "active").select_interacting(kdb.Region(channels))
    inner = channels[1].left - channels[0].right
    assert channels[0].left - active.bbox().left >= inner
    assert active.bbox().right - channels[-1].right >= inner


def test_dummies_are_tied_by_metal_and_isolate_inside_a_row(process):
    off = Finger("", "b", "da", "db", 1000, 500)
    fingers = (Finger("A", "ga", "s", "da", 1000, 500, "A"), off, Finger("B", "gb", "db", "s", 1000, 500, "B"))
    module = drawn(process, with_dummies(Row(fingers), 2, "b"))
    assert check(module.layout, module.cell, process).violated == ()
    assert [gate.device for gate in module.gates] == ["", "", "A", "", "B", "", ""]


@pytest.mark.parametrize("source", ["s", "b"])
@pytest.mark.parametrize("rows", [("AABB", "BBAA"), ("AA", "AA"), ("A", "B", "B", "A")], ids="/".join)
@pytest.mark.parametrize("name", ["generic", "sky130A"])
def test_dummies_without_taps_beside_them_are_tied_to_one_rail_and_gates_share_theirs(name, rows, source):
    made = [row_of(letters, flipped=i % 2 == 1, dummies=2) for i, letters in enumerate(rows)]
    named = {"s": source}
    made = [
        replace(
            row,
            fingers=tuple(
                replace(f, left=named.get(f.left, f.left), right=named.get(f.right, f.right)) for f in row.fingers
            ),
        )
        for row in made
    ]
    tech = TECHNOLOGIES[name]
    module = drawn(tech, *made, ring="later")
    asked = sorted((f.gate, sorted({f.left, f.right})) for row in made for f in row.fingers)
    assert sorted((c.gate, sorted(c.sides)) for c in channels_of(module.cell, name)) == asked
    broken = {v.rule.id for v in check(module.layout, module.cell, tech).violated}
    assert broken <= {"LU.2", "LATCHUP_N"}
    if source == "s":
        assert len(module.pins_of("b")) == 1
    if rows == ("AA", "AA"):
        assert len(module.pins_of("ga")) == 1


def test_the_pair_of_two_micrometres_is_small(process):
    """W 2 um in two fingers, L 0.5 um, with its ring: the bounds are those of the sky130A drawing."""
    if process.name != "sky130A":
        pytest.skip("the bounds are for sky130A")
    for dummies, bound, rows in ((0, 20, ("ABBA",)), (2, 34, ("ABBA",)), (2, 34, ("AB", "BA"))):
        made = [row_of(letters, flipped=i == 1, dummies=dummies) for i, letters in enumerate(rows)]
        box = drawn(process, *made).bbox
        assert box.area() * process.dbu_um**2 <= bound


def test_a_finger_of_five_micrometres_loses_at_most_a_fiftieth_of_its_current_in_its_strap(process):
    """A strap that is fed evenly drops a third of R * I; at most twice that share of the supply is lost as current."""
    spec = process.device("nmos")
    made = transistor(process, "M1", "nmos", MosSize(20e-6, spec.min_l * process.dbu_um * 1e-6, 4), None)
    layout = kdb.Layout()
    layout.dbu = process.dbu_um
    module = draw_mos(layout, process, MosSpec(made, "cell"))
    strap = METAL[process.name][0]
    a, b = [gate.box for gate in module.gates][:2]
    column = kdb.Region(kdb.Box(a.right, a.bottom, b.left, a.top)) & shapes(module, process, strap)
    box = column.bbox()
    ohm = process.conductor(strap).sheet_ohm * box.height() / box.width()
    supply = spec.supply_v or 1.8
    current = 2 * 5 * 0.5e-3  # two fingers of 5 um share a column, 0.5 mA/um at minimum length
    assert 2 * ohm / 3 * current / supply <= 0.02


@pytest.mark.parametrize(("width_um", "length_um", "fingers"), [(40, 0.5, 20), (200, 1.0, 80), (30, 2.0, 14)])
def test_a_large_transistor_is_folded_to_an_aspect_of_at_most_four(process, width_um, length_um, fingers):
    made = transistor(process, "M1", "nmos", MosSize(width_um * 1e-6, length_um * 1e-6, fingers), None)
    spec = MosSpec(made, "cell")
    rows = compact_rows(process, spec)
    layout = kdb.Layout()
    layout.dbu = process.dbu_um
    module = draw_mos(layout, process, replace(spec, rows=rows))
    box = module.bbox
    assert rows > 1
    assert max(box.width() / box.height(), box.height() / box.width()) <= 4
    if fingers < 80:
        assert check(layout, module.cell, process).violated == ()


@pytest.mark.parametrize(
    "size", [MosSize(60e-6, 0.5e-6, 20), MosSize(51.84e-6, 0.28e-6, 16)], ids=["rails", "rail-and-gates"]
)
def test_the_cuts_of_neighbouring_rails_are_no_array_together(size):
    """The deck of gf180mcuD joins cuts up to 0.4 um apart to one array, whatever their nets."""
    tech = TECHNOLOGIES["gf180mcuD"]
    module = draw_mos(kdb.Layout(), tech, MosSpec(transistor(tech, "M1", "pmos", size), "folded", rows=2))
    joined = shapes(module, tech, tech.cuts[0].layer).sized(200).merged()
    least = 4 * tech.cuts[0].size + 3 * tech.cuts[0].space
    assert not [box for each in joined.each() for box in [each.bbox()] if min(box.width(), box.height()) - 400 >= least]


@pytest.mark.parametrize("device", ["nfet_03v3", "nfet_05v0"])
@pytest.mark.parametrize("length", [280, 500, 600, 700, 1000])
def test_straps_of_one_net_side_by_side_hold_no_array_of_cuts(device, length):
    tech = TECHNOLOGIES["gf180mcuD"]
    length = max(length, tech.device(device).min_l)
    for width in (5000, 20000):
        fingers = tuple(Finger("A", "g", "s", "s", width, length, f"A{number}") for number in range(8))
        module = drawn(tech, Row(fingers), device=device)
        arrays = [rule.id for rule in tech.rules if rule.kind == "array_space"]
        assert check(module.layout, module.cell, tech, Options(rule_ids=arrays)).total_violations == 0
