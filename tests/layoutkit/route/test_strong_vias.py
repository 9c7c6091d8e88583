"""Two cuts for every connection of a net that wants them: others give way, or what remains is reported."""

from dataclasses import replace

import klayout.db as kdb
import pytest
from route_fields import AREA, as_obstacles, field
from route_oracle import faults

from layoutkit.route import NetRequest, Terminal, route
from layoutkit.technology import load

SKY = load("sky130A")
LAYERS = ["met2", "met3"]
ROOM = kdb.Box(-6000, -6000, 6000, 6000)


def point(layer, x, y):
    return Terminal(layer, kdb.Box(x - 150, y - 150, x + 150, y + 150))


WALLS = [("met2", kdb.Box(x, -3000, x + 500, 3000), None) for x in (-830, 330)]
"""Between them met2 has room for two cuts above each other, but not side by side."""


ELSEWHERE = [
    NetRequest(f"e{x},{y}", (point("met2", x, y), point("met3", x, y)))
    for x in range(-5000, 5001, 1000)
    for y in (-5000, 5000)
]
"""With room for two cuts each, so that one more via with a single cut is no twentieth part of all."""


def crowded(least_cuts):
    """Return a supply that changes its layer between the walls, and two signals whose shortest ways lie beside it."""
    supply = NetRequest("vss", (point("met2", 0, 0), point("met3", 0, 0)), least_cuts=least_cuts)
    ends = {f"s{sign}": [point("met3", x, 620 * sign) for x in (-4000, 4000)] for sign in (-1, 1)}
    return [supply, *(NetRequest(name, tuple(its)) for name, its in ends.items()), *ELSEWHERE]


def cuts_of(net):
    return [via.columns * via.rows for via in net.vias]


def test_signals_give_way_to_the_second_cut_of_a_supply():
    usual, wanted = (route(SKY, crowded(cuts), as_obstacles(WALLS), ROOM, LAYERS) for cuts in (1, 2))
    assert cuts_of(usual.net("vss")) == [1]
    assert not any(single.alone for single in usual.net("vss").single_cuts)
    assert cuts_of(wanted.net("vss")) == [2]
    assert [net.name for net in wanted.failed] == []
    assert faults(SKY, crowded(2), wanted, WALLS) == []


def test_signals_give_way_to_second_cuts_where_more_than_a_twentieth_of_the_vias_have_one():
    few, many = (route(SKY, nets, as_obstacles(WALLS), ROOM, LAYERS) for nets in (crowded(1), crowded(1)[:3]))
    assert cuts_of(few.net("vss")) == [1]
    assert cuts_of(many.net("vss")) == [2]
    assert faults(SKY, crowded(1)[:3], many, WALLS) == []


def test_a_cut_that_fixed_metal_keeps_single_is_reported_as_the_only_one():
    walls = [*WALLS, *(("met3", kdb.Box(-3000, y, 3000, y + 300), None) for y in (-770, 470))]
    nets = crowded(2)[:1]
    result = route(SKY, nets, as_obstacles(walls), kdb.Box(-800, -760, 800, 760), LAYERS)
    (single,) = result.net("vss").single_cuts
    assert single.alone
    assert "an obstacle" in single.reason
    assert faults(SKY, nets, result, walls) == []


def test_a_single_cut_with_a_way_around_it_is_not_the_only_one():
    """Both terminals are joined by either end of a bar on met3; each end has one cut."""
    left, right = point("met2", -2000, 0), point("met2", 2000, 0)
    nets = [NetRequest("vss", (replace(left, group="ring"), replace(right, group="ring"), point("met3", 0, 3000)))]
    result = route(SKY, [replace(nets[0], least_cuts=2)], {}, ROOM, LAYERS)
    assert not any(single.alone for single in result.net("vss").single_cuts)


@pytest.mark.parametrize("seed", range(4))
def test_wanting_two_cuts_costs_no_net_its_way(seed):
    requests, fixed = field(SKY, seed, nets=7, obstacles=6)
    wanting = [replace(net, least_cuts=2) if number < 3 else net for number, net in enumerate(requests)]
    names = [conductor.name for conductor in SKY.conductors[1:4]]
    usual, wanted = (route(SKY, nets, as_obstacles(fixed), AREA, names) for nets in (requests, wanting))
    assert {net.name for net in wanted.failed} == {net.name for net in usual.failed}
    assert faults(SKY, wanting, wanted, fixed) == []
