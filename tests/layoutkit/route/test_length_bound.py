"""The lower bound of a net's wire length, against trees counted by hand and against what the router draws."""

import klayout.db as kdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layoutkit.route import NetRequest, Terminal
from layoutkit.route.routes import length_bound, tree_bound


def point(x, y):
    return (x, y, x, y)


@pytest.mark.parametrize(
    ("boxes", "bound"),
    [
        ([], 0),
        ([point(0, 0)], 0),
        ([point(0, 0), point(30, 40)], 70),
        ([(0, 0, 10, 10), (20, 0, 30, 10)], 10),  # side by side
        ([(0, 0, 10, 10), (5, 5, 30, 30)], 0),  # they overlap
        ([point(0, 0), point(10, 0), point(5, 20)], 30),  # three points: half the perimeter is exact
        ([point(x, y) for x in (0, 90, 180) for y in (0, 90, 180)], 405),  # tree of 9 points: 720, of which 9 / 16
        ([(0, 0, 100, 10), point(0, 50), point(100, -40)], 80),  # the long bar leads from one side to the other
    ],
)
def test_the_bound_of_trees_counted_by_hand(boxes, bound):
    assert tree_bound(boxes) == bound


def test_terminals_of_one_metal_and_terminals_that_touch_need_no_wire():
    def terminal(left, right, group="", layer="met1"):
        return Terminal(layer, kdb.Box(left, 0, right, 10), group)

    apart = NetRequest("a", (terminal(0, 10), terminal(50, 60)))
    assert (length_bound(apart, 0), length_bound(apart, 5)) == (40, 30)
    assert length_bound(NetRequest("a", (terminal(0, 10, "metal 1"), terminal(50, 60, "metal 1"))), 0) == 0
    between = (terminal(0, 10), terminal(50, 60), terminal(10, 50))
    assert length_bound(NetRequest("a", between), 0) == 0
    other_layer = (terminal(0, 10), terminal(50, 60), terminal(10, 50, layer="met2"))
    assert length_bound(NetRequest("a", other_layer), 0) == 0  # two vias at its ends join them


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=2, max_size=7), st.data())
def test_no_drawn_tree_is_shorter(points, data):
    """Any tree over the points by L-shaped wires is at least as long, and so is one with further points."""
    order = data.draw(st.permutations(points))
    links = [data.draw(st.integers(0, number - 1)) for number in range(1, len(order))]
    length = sum(abs(order[n][0] - order[m][0]) + abs(order[n][1] - order[m][1]) for n, m in enumerate(links, 1))
    for count in range(2, len(order) + 1):
        assert tree_bound([point(*each) for each in order[:count]]) <= length
