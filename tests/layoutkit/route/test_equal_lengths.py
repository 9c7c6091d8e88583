"""Nets that should be equally long get bumps; KLayout and the route oracle judge what is drawn."""

from itertools import pairwise
from types import SimpleNamespace

import klayout.db as kdb
import pytest
from route_fields import as_obstacles
from route_oracle import faults

from layoutkit.route import NetRequest, RouteOptions, Terminal, route
from layoutkit.route.lengthening import _holds_something
from layoutkit.route.metal import NetMetal
from layoutkit.route.routes import EqualLengths, Wire
from layoutkit.route.routing_stack import make_stack
from layoutkit.technology import load

AREA = kdb.Box(-2000, -2000, 22000, 14000)


def straight(technology, name, y, length, width=None):
    layer, half = technology.conductors[1].name, technology.conductors[1].width
    ends = [Terminal(layer, kdb.Box(x - half, y - half, x + half, y + half)) for x in (0, length)]
    return NetRequest(name, tuple(ends), width)


@pytest.mark.parametrize("process", ["sky130A", "sg13g2"])
@pytest.mark.parametrize("shorter", [19000, 18010, 9000])
def test_the_shorter_net_becomes_as_long_as_the_longer(process, shorter):
    technology = load(process)
    nets = [straight(technology, "long", 0, 20000), straight(technology, "short", 6000, shorter)]
    wished = RouteOptions(equal_lengths=(EqualLengths(("long", "short")),))
    layers = [conductor.name for conductor in technology.conductors[1:4]]
    result = route(technology, nets, {}, AREA, layers, wished)
    lengths = [net.wire_length for net in result.nets]
    assert abs(lengths[0] - lengths[1]) <= 2 * technology.grid
    for net in result.nets:  # independently: the steps of the centre lines
        steps = [abs(a[0] - b[0]) + abs(a[1] - b[1]) for wire in net.wires for a, b in pairwise(wire.points)]
        assert sum(steps) == net.wire_length
    assert faults(technology, nets, result, (), AREA) == []


def test_bumps_keep_away_from_other_metal_and_are_left_out_where_there_is_no_room():
    technology = load("sky130A")
    nets = [straight(technology, "long", 0, 20000), straight(technology, "short", 6000, 15000)]
    near = [("met1", kdb.Box(-1500, y, 19000, y + 140), None) for y in (5560, 6300)]
    wished = RouteOptions(equal_lengths=(EqualLengths(("long", "short")),))
    result = route(technology, nets, as_obstacles(near), AREA, ["met1"], wished)
    assert faults(technology, nets, result, near, AREA) == []
    assert result.net("short").wire_length < 19000


def test_bumps_leave_no_holes_smaller_than_the_rule():
    """Bumps that pass the net's own bar beside a wire would close holes with it."""
    technology = load("sky130A")
    nets = [straight(technology, "long", 0, 10200), straight(technology, "short", 6000, 9000)]
    own = [("met1", kdb.Box(250, y, 8750, y + 140), "short") for y in (5610, 6250)]
    wished = RouteOptions(equal_lengths=(EqualLengths(("long", "short")),))
    result = route(technology, nets, as_obstacles(own), AREA, ["met1"], wished)
    assert faults(technology, nets, result, own, AREA) == []


def test_bumps_keep_the_space_of_wide_metal_to_wide_metal_of_the_net():
    """sg13g2 M2.b asks for 0.21 um, M2.e for 0.24 um beside metal wider than 0.39 um; 0.22 um would be left."""
    technology = load("sg13g2")
    nets = [straight(technology, "long", 0, 10200), straight(technology, "short", 6000, 9000)]
    own = [("Metal2", kdb.Box(250, y, 8750, y + 600), "short") for y in (4480, 6920)]
    wished = RouteOptions(equal_lengths=(EqualLengths(("long", "short")),))
    result = route(technology, nets, as_obstacles(own), AREA, ["Metal2"], wished)
    assert faults(technology, nets, result, own, AREA) == []
    assert result.net("short").wire_length > 9000


def test_no_bump_takes_away_what_other_metal_only_touches():
    stack = make_stack(load("sky130A"), ["met1", "met2"], [])
    wire, board = Wire("met1", ((0, 0), (9000, 0)), 140), SimpleNamespace(stack=stack, own={"n": []})
    net = straight(load("sky130A"), "n", 0, 9000)
    for y, meets in ((140, True), (145, False)):
        metal = NetMetal(wires=[wire, Wire("met1", ((4000, y), (5000, y)), 140)])
        assert _holds_something(board, net, metal, wire, (4200, -70, 4600, 70)) is meets
