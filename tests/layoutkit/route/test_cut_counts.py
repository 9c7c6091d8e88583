"""Counts of what blocks each via: an array of cuts entered as a whole, and cut by cut."""

import numpy as np
import pytest

from layoutkit.route.metal import cut_index
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
