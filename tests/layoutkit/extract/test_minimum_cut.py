"""Maximum flows and minimum cuts agree with all cuts of small networks."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutkit.extract import minimum_cut as cuts
from layoutkit.extract.minimum_cut import minimum_cut

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


@settings(max_examples=30, deadline=None)
@given(EDGES)
def test_python_and_numba_find_the_same_cut(edges):
    pytest.importorskip("numba", reason="skipped: numba is not installed")
    assert minimum_cut(NODES, edges, 0, 1, "numba") == minimum_cut(NODES, edges, 0, 1, "python")


def test_a_process_compiles_only_after_it_has_cut_large_meshes(monkeypatch):
    monkeypatch.setattr(cuts, "_compiled", {})
    monkeypatch.setattr(cuts, "_visited", [0])
    monkeypatch.setattr(cuts, "CompiledByOne", lambda _: cuts._dinic)
    ladder = [(i, j, 1) for i in range(400) for j in (i + 1, i + 2, i + 20)]
    cuts.minimum_cut(420, ladder, 0, 400)
    assert cuts._compiled == {}
    assert cuts._visited[0] > 0
    cuts._visited[0] = cuts.START_FROM_VISITS
    assert cuts.minimum_cut(420, ladder, 0, 400)[0] == 3
    assert "dinic" in cuts._compiled
