"""Nets that should be equally long get bumps; KLayout and the route oracle judge what is drawn."""

from itertools import pairwise

import klayout.db as kdb
import pytest
from route_fields import as_obstacles
from route_oracle import faults

from layoutkit.rectangle import Occupancy
from layoutkit.route import NetRequest, RouteOptions, Terminal, Via, Wire, route
from layoutkit.route.equal_loads import BumpCheck
from layoutkit.route.metal import Finisher, NetMetal
from layoutkit.route.routes import EqualLengths
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


@pytest.mark.parametrize("process", ["sky130A", "gf180mcuD", "sg13g2"])
def test_without_room_for_one_deep_bump_equally_deep_ones_lie_in_a_row(process):
    technology = load(process)
    layer = technology.conductors[1].name
    nets = [straight(technology, "long", 0, 20000), straight(technology, "short", 6000, 12000)]
    near = [(layer, kdb.Box(-1500, y, 19000, y + 400), None) for y in (3900, 7700)]  # 1.7 um to the wire
    wished = RouteOptions(equal_lengths=(EqualLengths(("long", "short")),))
    result = route(technology, nets, as_obstacles(near), AREA, [layer], wished)
    lengths = [net.wire_length for net in result.nets]
    assert abs(lengths[0] - lengths[1]) <= 2 * technology.grid
    (wire,) = result.net("short").wires
    depths = [abs(y - 6000) for _, y in wire.points if abs(y - 6000) > technology.grid]
    assert len(depths) >= 2 * 3
    assert max(depths) - min(depths) <= technology.grid
    assert faults(technology, nets, result, near, AREA) == []


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


def on_met1():
    """Return what completes a net on met1 and met2 of sky130A that has no metal of its own, and a wire of the net."""
    stack = make_stack(load("sky130A"), ["met1", "met2"], [])
    return Finisher(stack, Occupancy(), "n", []), Wire("met1", ((0, 0), (9000, 0)), 140)


def test_no_bump_takes_away_what_other_metal_only_touches():
    finisher, wire = on_met1()
    for y, meets in ((140, True), (145, False)):
        metal = NetMetal(wires=[wire, Wire("met1", ((4000, y), (5000, y)), 140)])
        assert BumpCheck(finisher, metal, wire).needs((4200, -70, 4600, 70)) is meets


def test_a_bump_is_judged_as_the_whole_net_with_it():
    finisher, wire = on_met1()
    others = [Wire("met1", ((4000, 600), (5000, 600)), 140), Wire("met2", ((4000, 600), (5000, 600)), 140)]
    found = []
    for depth in (200, 350, 400, 600, 750, 850):  # free, just free, too near, on the other wire, beyond it
        for flawed in (False, True):
            more = [Wire("met1", ((100, 4000), (100, 4200)), 100)] if flawed else []  # too narrow, and too small
            metal = NetMetal(wires=[wire, *others, *more], vias=[Via("via", 4100, 600)])
            bump = ((4200, 0), (4200, depth), (4480, depth), (4480, 0))
            longer = Wire("met1", (wire.points[0], *bump, wire.points[1]), 140)
            bumped = NetMetal(wires=[longer, *others, *more], vias=metal.vias)
            spoils = BumpCheck(finisher, metal, wire).spoils(longer)
            assert spoils is (len(finisher.flaws(bumped)) > len(finisher.flaws(metal))), (depth, flawed)
            found.append(spoils)
    assert set(found) == {True, False}
