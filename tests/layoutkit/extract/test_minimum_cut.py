"""Maximum flows and minimum cuts agree with all cuts of small networks."""

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from layoutkit.extract.metal_mesh import minimum_cut

NODES = 7
EDGES = st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1), st.integers(1, 9)), max_size=16)


@settings(max_examples=60, deadline=None)
@given(EDGES)
def test_the_flow_is_that_of_the_smallest_of_all_cuts(edges):
    flow, side = minimum_cut(NODES, edges, 0, 1)

    def crossing(sides):
        return sum(room for one, other, room in edges if sides[one] != sides[other])

    assert (side[0], side[1]) == (True, False)
    assert crossing(side) == flow
    assert flow == min(crossing((True, False, *rest)) for rest in product((True, False), repeat=NODES - 2))


def test_a_long_wire_is_as_strong_as_its_narrowest_part():
    count = 20_000
    wire = [(i, i + 1, 3 if i == 7000 else 9) for i in range(count)]
    flow, side = minimum_cut(count + 1, wire, 0, count)
    assert flow == 3
    assert side == [i <= 7000 for i in range(count + 1)]


@settings(max_examples=60, deadline=None)
@given(EDGES, st.integers(1, 12))
def test_a_flow_that_is_enough_is_not_looked_for_further(edges, enough):
    flow, side = minimum_cut(NODES, edges, 0, 1)
    below, its = minimum_cut(NODES, edges, 0, 1, enough)
    assert min(below, enough) == min(flow, enough)
    if flow < enough:
        assert its == side
