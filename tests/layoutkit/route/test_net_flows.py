"""What flows through each step of a net's paths: sums of what lies beyond it, by hand."""

import pytest

from layoutkit.route.net_flows import Draw, flow_between, flows

PORT = Draw(port=True)


@pytest.mark.parametrize(
    ("one", "other", "flow"),
    [
        (Draw(3, 0), PORT, 3),
        (Draw(0, 3), PORT, 3),
        (Draw(3, 2), PORT, 3),  # at one time 3 mA flow out of the port, at another 2 mA into it
        (Draw(3, 0), Draw(0, 2), 2),
        (Draw(3, 0), Draw(2, 0), 0),  # both give, nobody takes
        (Draw(), PORT, 0),
        (Draw(30, 0), PORT, 10),  # the net carries no more
        (PORT, PORT, 10),
    ],
)
def test_between_two_sides_flows_what_one_gives_and_the_other_takes(one, other, flow):
    assert flow_between(one, other, 10) == flow_between(other, one, 10) == flow


def test_each_step_of_a_tree_carries_what_lies_beyond_it():
    """Port 0 -- 1 -- 2 -- 3 is a trunk; 4, 5 and 6 branch off at 1, 2 and 3 and draw 5, 2 and 1 mA."""
    paths = [[0, 1, 4], [1, 2, 5], [2, 3, 6]]
    draws = [PORT, Draw(0, 5), Draw(0, 2), Draw(0, 1)]
    found = flows(paths, draws, {0: 0, 4: 1, 5: 2, 6: 3}, 8)
    assert found == {(0, 1): 8, (1, 4): 5, (1, 2): 3, (2, 5): 2, (2, 3): 1, (3, 6): 1}


def test_metal_that_paths_meet_at_several_nodes_is_one_piece():
    found = flows([[0, 1], [2, 3]], [PORT, Draw(0, 2), Draw(1, 0)], {0: 0, 1: 1, 2: 1, 3: 2}, 4)
    assert found == {(0, 1): 2, (2, 3): 1}


def test_a_ring_may_carry_everything_at_each_step():
    found = flows([[0, 1, 2, 3], [3, 4, 0], [1, 5]], [PORT, Draw(0, 1)], {0: 0, 5: 1}, 3)
    assert found == {(0, 1): 3, (1, 2): 3, (2, 3): 3, (3, 4): 3, (0, 4): 3, (1, 5): 1}
