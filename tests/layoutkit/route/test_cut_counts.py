"""Counts of what blocks each via: an array of cuts entered as a whole, and cut by cut; arrays beside each other."""

import klayout.db as kdb
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from layoutkit.rectangle import Occupancy, Shape, too_close
from layoutkit.route import NetRequest, Terminal, Via, route
from layoutkit.route.metal import Finisher, cut_index
from layoutkit.route.router import cuts_of
from layoutkit.route.routes import Gauge
from layoutkit.route.routing_stack import CutArray, dense_array, make_stack
from layoutkit.route.tracks import EdgeCounts, Tracks
from layoutkit.technology import load
from thorough import examples


@pytest.mark.parametrize(("columns", "rows"), [(1, 1), (7, 1), (3, 5), (9, 8)])
@pytest.mark.parametrize("place", [(0, 0), (2000, 1505), (3900, 4100), (-20000, 900)])
def test_an_array_of_cuts_counts_like_its_cuts_one_by_one(columns, rows, place):
    stack = make_stack(load("sky130A"), ["met1", "met2"], [])
    tracks = Tracks(tuple(range(0, 4001, 170)), tuple(range(0, 4001, 230)))
    via = Via("via", *place, columns, rows)
    cut = cut_index(stack, via.cut)
    whole, single = EdgeCounts(stack, tracks, Gauge(None)), EdgeCounts(stack, tracks, Gauge(None))
    whole.add_array(cut, via)
    for rect in stack.cut_rects(cut, *place, columns, rows):
        single.add_cut(cut, rect)
    assert np.array_equal(whole.via, single.via)
    assert single.via.any() == (place[0] >= 0)
    whole.add_array(cut, via, -1)
    assert not whole.via.any()


ARRAYS = st.builds(
    lambda x, y, columns, rows, pitch: CutArray(
        tuple(x + pitch * i for i in range(columns)), tuple(y + pitch * i for i in range(rows)), 150
    ),
    *(st.integers(-900, 900), st.integers(-900, 900), st.integers(1, 4), st.integers(1, 4), st.integers(320, 500)),
)


def each_cut(array):
    return [(x, y, x + array.size, y + array.size) for x in array.lefts for y in array.bottoms]


@settings(max_examples=examples(150), deadline=None)
@given(ARRAYS, ARRAYS, st.integers(1, 400))
def test_arrays_of_cuts_are_near_if_two_of_their_cuts_are(one, other, space):
    expected = any(too_close(a, b, space) for a in each_cut(one) for b in each_cut(other))
    assert one.is_near(other, space) == other.is_near(one, space) == expected


@settings(max_examples=examples(150), deadline=None)
@given(ARRAYS, st.integers(-900, 900), st.integers(-900, 900), st.integers(10, 900), st.booleans(), st.integers(1, 400))
def test_a_shape_is_in_the_way_of_an_array_if_it_is_in_that_of_a_cut(array, x, y, size, keepout, space):
    shape = Shape((x, y, x + size, y + size), "other", wide=False, keepout=keepout)
    assert array.hinders(shape, space) == any(shape.hinders(cut, space) for cut in each_cut(array))


def test_a_wire_is_counted_with_the_width_that_its_current_needs_on_each_conductor():
    """sky130: 6.8 mA need 2.43 um of met2, which is 2.8 mA/um, and 1 um of met3."""
    stack = make_stack(load("sky130A"), ["met2", "met3"], [])
    gauge = Gauge(None, 6.8)
    assert [stack.wire_width(level, gauge) for level in (0, 1)] == [2430, 1000]
    assert [stack.wire_width(level, Gauge(1200, 6.8)) for level in (0, 1)] == [2430, 1200]
    counts = EdgeCounts(stack, Tracks((0,), (0,)), gauge)
    assert [2 * half for half in counts.half] == [2430, 1000]


@pytest.mark.parametrize(("current", "blocked"), [(19.9, False), (20.1, True)])
def test_wires_so_wide_that_others_would_keep_more_space_are_not_used(current, blocked):
    """sg13g2: Metal2 carries 2 mA/um; beside metal wider than 10 um other metal keeps 0.6 um (M2.f)."""
    stack = make_stack(load("sg13g2"), ["Metal2", "Metal3"], [])
    counts = EdgeCounts(stack, Tracks((0, 5000), (0, 5000)), Gauge(None, current))
    counts.bound((-50_000, -50_000, 50_000, 50_000))
    assert bool(counts.right[0].all()) == bool(counts.up[1].all()) == blocked


CUTS = {"size": 260, "space": 260, "array_space": 360, "reach": 400}
"""What gf180mcuD asks of Via1 to Via4, in the manual (V1.1, V1.2a, V1.2b) and in the foundry's deck. [dbu]"""


def too_dense(cuts):
    """Return the cuts of arrays in which some are too near, as the foundry's deck joins them, exemptions left out."""
    layer, half = kdb.Region([kdb.Box(*cut) for cut in cuts]), CUTS["reach"] // 2
    least = 4 * CUTS["size"] + 3 * CUTS["space"]
    arrays = layer.sized(half, 2).merged().sized(-half, 2).with_bbox_min(least, None, False).interacting(layer, 16)
    near = layer.space_check(CUTS["array_space"], False, kdb.Region.Euclidian).polygons().sized(1)
    return layer.interacting(arrays.interacting(near))


def array_at(x, y, columns, rows, pitch=520):
    return [(left, low, left + 260, low + 260) for left, low in each_cut_place(x, y, columns, rows, pitch)]


def each_cut_place(x, y, columns, rows, pitch):
    return [(x + pitch * column, y + pitch * row) for column in range(columns) for row in range(rows)]


ARRAYS_BESIDE = st.lists(
    st.tuples(st.integers(1, 5), st.integers(1, 5), st.sampled_from((240, 260, 340, 360, 400, 405)), st.booleans()),
    min_size=1,
    max_size=5,
)


@settings(max_examples=examples(150), deadline=None)
@given(ARRAYS_BESIDE)
@example([(4, 3, 240, False), (1, 1, 240, True), (1, 2, 405, True), (1, 1, 240, False)])  # the last lies diagonally
def test_cuts_beside_each_other_are_too_dense_where_the_foundrys_deck_joins_them_to_an_array(shape):
    cuts, x, y = [], 0, 0
    for columns, rows, gap, upwards in shape:
        cuts.append(array_at(x, y, columns, rows))
        x, y = (x, y + rows * 520 - 260 + gap) if upwards else (x + columns * 520 - 260 + gap, y)
    whole = [cut for array in cuts for cut in array]
    reach = CUTS["reach"]

    def near(cut):
        left, low, right, high = cut[0] - reach, cut[1] - reach, cut[2] + reach, cut[3] + reach
        return [o for o in whole if o[0] <= right and o[2] >= left and o[1] <= high and o[3] >= low]

    rule = next(cut for cut in load("gf180mcuD").cuts if cut.name == "Via2")
    region = too_dense(whole)
    for array in cuts:
        expected = not region.interacting(kdb.Region([kdb.Box(*cut) for cut in array])).is_empty()
        assert bool(dense_array(rule, array, near)) == expected


@pytest.mark.parametrize(("gap", "fits"), [(280, False), (340, False), (400, False), (410, True)])
@pytest.mark.parametrize("net", ["a", "b"])
def test_a_via_keeps_so_far_from_the_cuts_beside_it_that_they_make_no_array_with_its_own(net, gap, fits):
    stack, occupancy = make_stack(load("gf180mcuD"), ["Metal2", "Metal3"], []), Occupancy()
    via = Via("Via2", 0, 0, 2, 8)
    mine = stack.cut_rects(cut_index(stack, "Via2"), 0, 0, 2, 8)
    for x, y in each_cut_place(max(cut[2] for cut in mine) + gap, min(cut[1] for cut in mine), 2, 8, 620):
        occupancy.add("Via2", Shape((x, y, x + 260, y + 260), net, wide=False))
    finisher = Finisher(stack, occupancy, "a", ())
    assert finisher.fits(via, cut_index(stack, "Via2"), []) == fits
    assert bool(list(finisher.cuts_in_the_way(via))) == (not fits and net == "b")
    assert bool(finisher.dense_array(via, cut_index(stack, "Via2"), [via])) == (not fits)


def test_arrays_of_a_wide_net_beside_each_other_are_no_array_that_is_too_dense():
    places = (1000, 6860, 2500, 9860), (9500, 9860, 11000, 12860), (6000, 6860, 9000, 9860)
    terminals = tuple(Terminal("Metal2", kdb.Box(*place)) for place in places)
    net = NetRequest("a", terminals, 3000, current_ma=3.0, least_cuts=2, own_gauge=Gauge(3000, 3.0, 3000))
    layers = ["Metal2", "Metal3", "Metal4"]
    tech = load("gf180mcuD")
    result = route(tech, [net], {}, kdb.Box(0, 0, 12000, 14240), layers)
    cuts = list(cuts_of(tech, result.nets[0]))
    assert not result.failed
    assert len(cuts) > 40
    for name in {name for name, _ in cuts}:
        assert too_dense([rect for cut, rect in cuts if cut == name]).is_empty()
