"""Shields and separations: KLayout measures what lies beside wires, the route oracle judges rules and connections."""

import klayout.db as kdb
import pytest
from route_fields import as_obstacles
from route_oracle import faults

from layoutkit.route import NetRequest, RouteOptions, Terminal, route
from layoutkit.technology import load

AREA = kdb.Box(-4000, -4000, 24000, 12000)


def ends(technology, *places):
    layer, half = technology.conductors[1].name, technology.conductors[1].width
    return tuple(Terminal(layer, kdb.Box(x - half, y - half, x + half, y + half)) for x, y in places)


def metal(result, name, layer):
    return kdb.Region([kdb.Polygon(kdb.Box(*rect)) for at, rect in result.net(name).metal if at == layer]).merged()


def shielded(technology, result, net, by):
    """Return the length of a net's longest wire that has metal of ``by`` within two minimum spaces at both sides."""
    longest = max((w for w in result.net(net).wires), key=lambda w: abs(w.points[0][0] - w.points[-1][0]))
    conductor = technology.conductor(longest.layer)
    (x1, y), (x2, _) = longest.points[0], longest.points[-1]
    beside = metal(result, by, longest.layer)
    reach = longest.width // 2 + 3 * conductor.space + conductor.width
    covered = []
    for low, high in ((y + longest.width // 2, y + reach), (y - reach, y - longest.width // 2)):
        strip = beside & kdb.Region(kdb.Box(min(x1, x2), low, max(x1, x2), high))
        covered.append({x for p in strip.each() for x in range(p.bbox().left // 5, p.bbox().right // 5)})
    return 5 * len(covered[0] & covered[1])


@pytest.mark.parametrize("process", ["sky130A", "gf180mcuD", "sg13g2"])
def test_a_shield_lies_at_both_sides_and_is_joined_to_its_net(process):
    technology = load(process)
    nets = [
        NetRequest("in", ends(technology, (0, 4000), (20000, 4000)), shield="gnd"),
        NetRequest("gnd", ends(technology, (0, 0), (20000, 0))),
    ]
    layers = [conductor.name for conductor in technology.conductors[1:4]]
    result = route(technology, nets, {}, AREA, layers)
    assert result.failed == ()
    assert faults(technology, nets, result, (), AREA) == []
    assert result.net("in").shielded >= 0.8 * result.net("in").wire_length
    assert shielded(technology, result, "in", "gnd") >= 0.95 * result.net("in").shielded
    plain = route(technology, [nets[1], NetRequest("in", nets[0].terminals)], {}, AREA, layers)
    assert shielded(technology, plain, "in", "gnd") == 0


def test_where_other_metal_leaves_no_room_there_is_no_shield():
    technology = load("sky130A")
    nets = [
        NetRequest("in", ends(technology, (0, 4000), (20000, 4000)), shield="gnd"),
        NetRequest("gnd", ends(technology, (0, 0), (20000, 0))),
    ]
    near = [("met1", kdb.Box(9000, y, 11000, y + 300), None) for y in (4300, 3400)]
    result = route(technology, nets, as_obstacles(near), AREA, ["met1", "met2"])
    assert faults(technology, nets, result, near, AREA) == []
    assert 14000 <= result.net("in").shielded <= 18000


def test_nets_that_keep_apart_do_not_run_side_by_side():
    technology = load("sky130A")
    nets = [
        NetRequest("in", ends(technology, (0, 4000), (20000, 4000))),
        NetRequest("out", ends(technology, (0, 4600), (20000, 4600)), apart_from=("in",)),
    ]
    reach = 3 * 460

    def side_by_side(nets):
        result = route(technology, nets, {}, AREA, ["met1", "met2"], RouteOptions())
        assert faults(technology, nets, result, (), AREA) == []
        found = metal(result, "in", "met1").separation_check(
            metal(result, "out", "met1"), reach - 600, False, kdb.Region.Projection
        )
        return sum(pair.first.length() for pair in found.each())

    assert side_by_side([nets[0], NetRequest("out", nets[1].terminals)]) > 15000
    assert side_by_side(nets) < 4000


@pytest.mark.parametrize("shift", [0, 70, 140, 210])
@pytest.mark.parametrize("process", ["sky130A", "gf180mcuD", "sg13g2"])
def test_pieces_of_a_shield_that_meet_at_a_corner_leave_no_neck(process, shift):
    technology = load(process)
    nets = [
        NetRequest("in", ends(technology, (0, 1000), (12000, 9000 + shift)), shield="gnd"),
        NetRequest("gnd", ends(technology, (0, -2000), (20000, -2000))),
    ]
    layers = [conductor.name for conductor in technology.conductors[1:3]]
    options = RouteOptions(wrong_way_cost=1, via_cost=100_000)  # a corner on one conductor
    result = route(technology, nets, {}, AREA, layers, options)
    assert result.failed == ()
    assert faults(technology, nets, result, (), AREA) == []
    assert result.net("in").shielded > 10000
