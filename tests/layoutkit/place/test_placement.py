"""Placement in two dimensions (design: exact symmetry, determinism; S0.5)."""

import itertools

import klayout.db as kdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutkit.errors import GeometryError
from layoutkit.flow.rings import transformation
from layoutkit.place import Block, Placed, PlacementOptions, Rectangle, place_blocks
from layoutkit.place.clearance import Clearances
from layoutkit.technology import load

TECHNOLOGY = load("sky130A")
LEFT, RIGHT, BOTTOM, TOP = range(4)


def block(name, kind="nmos", size=(4000, 3000), **other):
    box = Rectangle(-size[0] // 2, 0, size[0] // 2, size[1])
    layer = "nwell" if kind == "pmos" else "tap"
    bulk = "vdd" if kind == "pmos" else "vss"
    return Block(name, kind, box, ((f"net_{name}", 0, size[1] // 2),), {layer: box}, bulk_net=bulk, **other)


def gap(first, second):
    """Return the largest of the horizontal and vertical distances of two rectangles; negative where they overlap."""
    return max(
        second.left - first.right, first.left - second.right, second.bottom - first.top, first.bottom - second.top
    )


@st.composite
def circuits(draw):
    sizes = st.tuples(st.integers(100, 2000).map(lambda n: n * 10), st.integers(100, 2000).map(lambda n: n * 5))
    kinds, levels = st.sampled_from(["nmos", "pmos"]), st.integers(1, 3)
    found = [
        block(f"s{i}", draw(kinds), draw(sizes), level=draw(levels), symmetric=True)
        for i in range(draw(st.integers(0, 3)))
    ]
    found += [block(f"f{i}", draw(kinds), draw(sizes), level=draw(levels)) for i in range(draw(st.integers(0, 4)))]
    for i in range(draw(st.integers(0, 2))):
        kind, size, level = draw(kinds), draw(sizes), draw(levels)
        found += [block(f"p{i}{side}", kind, size, level=level, partner=f"p{i}{other}") for side, other in ("lr", "rl")]
    return found or [block("only")]


@settings(max_examples=60, deadline=None)
@given(circuits())
def test_blocks_never_come_closer_than_the_rules_allow(blocks):
    placement = place_blocks(TECHNOLOGY, blocks, PlacementOptions(moves=200))
    boxes = {b.name: (b, placement.placed[b.name].box(b)) for b in blocks}
    for (first, box), (second, other) in itertools.combinations(boxes.values(), 2):
        wells = {first.kind, second.kind} == {"nmos", "pmos"}
        assert gap(box, other) >= (340 if wells else 0 if first.kind == "pmos" else 270), (first.name, second.name)


@settings(max_examples=60, deadline=None)
@given(circuits())
def test_partners_mirror_each_other_and_symmetric_blocks_lie_on_the_axis(blocks):
    placement = place_blocks(TECHNOLOGY, blocks, PlacementOptions(moves=200))
    by_name = {b.name: b for b in blocks}
    for b in blocks:
        place = placement.placed[b.name]
        box = place.box(b)
        if b.symmetric:
            (axis,) = {island.axis_x for island in placement.islands if b.name in island.members}
            assert box.left + box.right == 2 * axis
            assert axis == placement.axis_x
        if b.partner:
            partner = placement.placed[b.partner]
            other = partner.box(by_name[b.partner])
            assert (box.left, box.right) == (2 * placement.axis_x - other.right, 2 * placement.axis_x - other.left)
            assert place.upside_down == partner.upside_down
            assert box.bottom == other.bottom
            assert place.mirrored != partner.mirrored


@settings(max_examples=20, deadline=None)
@given(circuits())
def test_everything_lies_on_the_manufacturing_grid_and_repeats(blocks):
    placement = place_blocks(TECHNOLOGY, blocks, PlacementOptions(moves=200, seed=3))
    assert all(p.x % TECHNOLOGY.grid == 0 and p.y % TECHNOLOGY.grid == 0 for p in placement.placed.values())
    assert placement == place_blocks(TECHNOLOGY, blocks, PlacementOptions(moves=200, seed=3))


def test_wells_of_different_bulk_nets_keep_the_well_spacing():
    first = block("a", "pmos")
    box = first.box
    second = Block("b", "pmos", box, (), {"nwell": box}, bulk_net="other")
    placement = place_blocks(TECHNOLOGY, [first, second])
    assert gap(placement.placed["a"].box(first), placement.placed["b"].box(second)) >= 1270


def test_the_search_puts_blocks_of_one_net_side_by_side():
    """Arithmetic: five nets between blocks side by side, 2000 wide and 270 apart, or one above the other."""
    box = Rectangle(-1000, 0, 1000, 2000)
    blocks = [Block(n, "nmos", box, ((f"n{i // 2}", 0, 1000),), {"tap": box}) for i, n in enumerate("acegibdfhj")]
    start, found = (place_blocks(TECHNOLOGY, blocks, PlacementOptions(moves=moves)) for moves in (0, 6000))
    assert found.wire_length <= 5 * 2270 <= start.wire_length


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("upside_down", [False, True])
def test_a_place_moves_points_as_klayout_does(turned, mirrored, upside_down):
    place = Placed("a", 700, -300, mirrored, upside_down, turned=turned)
    box = kdb.Box(-10, 20, 400, 90)
    moved = box.transformed(transformation(place))
    assert place.rectangle(Rectangle(-10, 20, 400, 90)) == (moved.left, moved.bottom, moved.right, moved.top)
    point = transformation(place) * kdb.Point(5, 17)
    assert place.point(5, 17) == (point.x, point.y)


@pytest.mark.parametrize(
    ("blocks", "words"),
    [
        ([], "nothing to place"),
        ([block("a"), block("a")], "unique"),
        ([block("a", partner="b")], "partner"),
        ([block("a", partner="b"), block("b", size=(100, 100), partner="a")], "partner"),
    ],
)
def test_impossible_requests_are_refused(blocks, words):
    with pytest.raises(GeometryError, match=words):
        place_blocks(TECHNOLOGY, blocks)


def test_wire_length_counts_the_pins_of_a_mirrored_block_on_their_mirrored_side():
    """Arithmetic: each pin is 3500 or 500 from its block's inner edge, and the inner edges keep the clearance."""
    box = Rectangle(0, 0, 4000, 3000)
    left = Block("l", "nmos", box, (("n", 3500, 0),), {"tap": box}, partner="r")
    right = Block("r", "nmos", box, (("n", 3500, 0),), {"tap": box}, partner="l")
    placement = place_blocks(TECHNOLOGY, [left, right])
    gap_between = placement.placed["r"].box(right).left - placement.placed["l"].box(left).right
    assert placement.placed["l"].mirrored != placement.placed["r"].mirrored
    assert placement.wire_length == 2 * (3500 if placement.placed["l"].mirrored else 500) + gap_between


@pytest.mark.parametrize(("top_inset", "bottom_inset"), [(0, 0), (300, 100), (100, 300)])
def test_what_a_layer_stays_behind_its_block_counts_towards_the_clearance(top_inset, bottom_inset):
    """Arithmetic: the largest well spacing is nwell.8, 2000; the insets on the sides that face are a part of it."""
    box = Rectangle(0, 0, 4000, 3000)
    lower = Block("a", "pmos", box, (), {"nwell": Rectangle(200, 700, 3700, 3000 - top_inset)}, bulk_net="a")
    upper = Block("b", "pmos", box, (), {"nwell": Rectangle(250, bottom_inset, 3600, 2200)}, bulk_net="b")
    gaps = Clearances(TECHNOLOGY).gaps([lower, upper])
    assert gaps[TOP, 4 + BOTTOM] == 2000 - top_inset - bottom_inset
    assert gaps[RIGHT, 4 + LEFT] == 2000 - 300 - 250
    assert gaps[RIGHT, 4 + RIGHT] == 2000 - 300 - 400  # the upper one mirrored


def test_only_capacitors_keep_the_distance_of_their_plates():
    """sky130: wires of met3 keep 0.3 um (0.4 um beside wide ones), plates of MIM capacitors on it 1.34 um."""
    box = Rectangle(0, 0, 5000, 2000)
    wired = [Block(name, "nmos", box, (), {"met3": box}, bulk_net="b") for name in ("a", "b")]
    plate = Block("c", TECHNOLOGY.passives["cap_mim_m3_1"].type, box, (), {"met3": box})
    gaps = Clearances(TECHNOLOGY).gaps([*wired, plate])
    assert gaps[TOP, 4 + BOTTOM] == 400
    assert gaps[TOP, 8 + BOTTOM] >= 1340
    assert gaps[8 + TOP, BOTTOM] >= 1340
