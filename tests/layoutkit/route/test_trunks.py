"""A net with a stated current has a trunk: its wires join one another, not the metal of the terminals between them."""

import klayout.db as kdb
import pytest

from layoutkit.route.router import route
from layoutkit.route.routes import NetRequest, Terminal
from layoutkit.technology import load

PROCESS = load("sky130A")
BAR = kdb.Box(3000, 4000, 9000, 4280)
ENDS = (kdb.Box(0, 4000, 280, 4280), BAR, kdb.Box(12000, 4000, 12280, 4280))


def wires_of(current_ma, obstacles=None):
    """Return the met1 and met2 of a net over three terminals in a line, the middle one a long thin bar."""
    terminals = tuple(Terminal("met1", box) for box in ENDS)
    net = NetRequest("n", terminals, width=600, current_ma=current_ma)
    area = kdb.Box(-2000, 0, 14000, 9000)
    result = route(PROCESS, [net], obstacles or {}, area, ["met1", "met2"])
    assert not result.failed
    return kdb.Region([kdb.Box(*rect) for _, rect in result.net("n").metal]).merged()


def in_one_piece(region, *boxes):
    return any(all(not (kdb.Region(piece) & kdb.Region(box)).is_empty() for box in boxes) for piece in region.each())


def test_wires_of_a_current_pass_by_a_thin_terminal_and_tap_it():
    assert in_one_piece(wires_of(1.0), *ENDS)


def test_wires_without_a_current_may_go_on_from_the_far_end_of_a_terminal():
    assert not in_one_piece(wires_of(None), ENDS[0], ENDS[2])


@pytest.mark.parametrize("current_ma", [None, 1.0])
def test_where_there_is_no_way_beside_a_terminal_its_metal_is_passed_through(current_ma):
    walls = [kdb.Box(5500, 0, 6500, 3000), kdb.Box(5500, 5280, 6500, 9000)]
    blocked = {"met1": [(box, None) for box in walls], "met2": [(kdb.Box(5500, 0, 6500, 9000), None)]}
    blocked["met1"] += [(kdb.Box(5500, 3000, 6500, 3850), None), (kdb.Box(5500, 4430, 6500, 5280), None)]
    assert not in_one_piece(wires_of(current_ma, blocked), ENDS[0], ENDS[2])
