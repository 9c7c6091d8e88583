"""Wires of a stated current go on from one another and from terminals as wide as they are, not from thinner metal."""

import klayout.db as kdb
import pytest

from layoutkit.route import NetRequest, Terminal, route
from layoutkit.technology import load

PROCESS = load("sky130A")
BAR = kdb.Box(3000, 4000, 9000, 4280)
ENDS = (kdb.Box(0, 3840, 600, 4440), kdb.Box(12000, 3840, 12600, 4440))


def wires_of(terminals, current_ma, obstacles=None):
    """Return the wires of a net over terminals in a line, each layer's pieces merged."""
    net = NetRequest("n", tuple(Terminal("met1", box) for box in terminals), width=600, current_ma=current_ma)
    result = route(PROCESS, [net], obstacles or {}, kdb.Box(-2000, 0, 14600, 9000), ["met1", "met2"])
    assert not result.failed
    return kdb.Region([kdb.Box(*rect) for _, rect in result.net("n").metal]).merged()


def in_one_piece(region, *boxes):
    return any(all(not (kdb.Region(piece) & kdb.Region(box)).is_empty() for box in boxes) for piece in region.each())


@pytest.mark.parametrize("terminals", [(ENDS[0], BAR, ENDS[1]), (BAR, *ENDS)])
def test_wires_of_a_current_pass_by_a_thin_terminal_and_reach_it(terminals):
    assert in_one_piece(wires_of(terminals, 1.0), *terminals)


def test_wires_without_a_current_may_go_on_from_the_far_end_of_a_thin_terminal():
    assert not in_one_piece(wires_of((ENDS[0], BAR, ENDS[1]), None), *ENDS)


def test_wires_of_a_current_may_go_on_from_a_terminal_as_wide_as_they_are():
    wide = kdb.Box(3000, 3840, 9000, 4440)
    assert not in_one_piece(wires_of((ENDS[0], wide, ENDS[1]), 1.0), *ENDS)


def test_where_there_is_no_way_beside_a_thin_terminal_its_metal_is_passed_through():
    walls = [kdb.Box(5500, 0, 6500, 3850), kdb.Box(5500, 4430, 6500, 9000)]
    blocked = {"met1": [(box, None) for box in walls], "met2": [(kdb.Box(5500, 0, 6500, 9000), None)]}
    assert not in_one_piece(wires_of((ENDS[0], BAR, ENDS[1]), 1.0, blocked), *ENDS)
