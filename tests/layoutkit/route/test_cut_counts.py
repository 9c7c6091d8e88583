"""Counts of what blocks each via: an array of cuts entered as a whole, and cut by cut."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutkit.route.cut_arrays import CutArray
from layoutkit.route.metal import cut_index
from layoutkit.route.occupancy import Shape, too_close
from layoutkit.route.routes import Gauge, Via
from layoutkit.route.routing_stack import make_stack
from layoutkit.route.tracks import EdgeCounts, Tracks
from layoutkit.technology import load


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


@settings(max_examples=150, deadline=None)
@given(ARRAYS, ARRAYS, st.integers(1, 400))
def test_arrays_of_cuts_are_near_if_two_of_their_cuts_are(one, other, space):
    expected = any(too_close(a, b, space) for a in each_cut(one) for b in each_cut(other))
    assert one.is_near(other, space) == other.is_near(one, space) == expected


@settings(max_examples=150, deadline=None)
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
