"""A net that fails names what is in its way: without that there is a way."""

from dataclasses import replace

import klayout.db as kdb
from route_fields import AREA, as_obstacles, field

from layoutkit.route import NetRequest, RouteOptions, Terminal, route
from layoutkit.technology import load

SKY = load("sky130A")


def square(layer, x, y, half=150):
    return Terminal(layer, kdb.Box(x - half, y - half, x + half, y + half))


def test_a_wall_is_named_with_its_net_its_layer_and_the_place():
    net = NetRequest("a", (square("met1", 0, 0), square("met1", 8000, 0)))
    wall = kdb.Box(3800, -30000, 4200, 30000)
    far = kdb.Box(-3000, 3000, -2000, 3400)
    result = route(SKY, [net], {"met1": [(wall, "w"), (far, "f")]}, kdb.Box(-5000, -5000, 12000, 5000), ["met1"])
    (blocker,) = result.net("a").blocked_by
    assert (blocker.kind, blocker.net, blocker.layer, kdb.Box(*blocker.rect)) == ("metal", "w", "met1", wall)
    assert wall.enlarged(300, 300).contains(kdb.Point(*blocker.at))


def test_the_thinner_of_two_walls_is_named_where_both_would_do():
    net = NetRequest("a", (square("met1", 0, 0), square("met1", 8000, 0)))
    ring = [kdb.Box(-2000, 1000, 2000, 1200), kdb.Box(-2000, -1200, 2000, -1000), kdb.Box(-2000, -1200, -1800, 1200)]
    east = [kdb.Box(1800 + 700 * i, -1200, 2000 + 700 * i, 1200) for i in range(4)]
    bridges = [kdb.Box(1800, y, 4100, y + 200) for y in (1000, -1200)]
    fixed = {"met1": [(box, None) for box in [*ring, *east, *bridges]]}
    result = route(SKY, [net], fixed, kdb.Box(-5000, -5000, 12000, 5000), ["met1"])
    assert not result.net("a").success
    assert not {kdb.Box(*b.rect) for b in result.net("a").blocked_by} & set(east[1:])


def test_keepouts_cuts_of_others_and_the_edge_of_the_area_are_named_as_such():
    net = NetRequest("a", (square("met1", 0, 0), square("met1", 8000, 0)))
    area = kdb.Box(-1000, -400, 9000, 400)
    keepout = RouteOptions(keepouts=(("met1", (3800, -400, 4200, 400)),))
    (blocker,) = route(SKY, [net], {}, area, ["met1"], keepout).net("a").blocked_by
    assert (blocker.kind, blocker.net) == ("keepout", None)
    up = NetRequest("a", (square("met1", 0, 0), square("met2", 8000, 0)))
    grid = [kdb.Box(x, -400, x + 150, 400) for x in range(-900, 9000, 300)]
    result = route(SKY, [up], {"via": [(box, "v") for box in grid]}, area, ["met1", "met2"])
    assert {(b.kind, b.net, b.layer) for b in result.net("a").blocked_by} == {("metal", "v", "via")}


def routed_without_blockers(seed):
    """Yield for each net that fails on a random board whether it is routed once its blockers are gone."""
    nets, fixed = field(SKY, seed, nets=14, obstacles=80, layers=(1, 2))
    result = route(SKY, nets, as_obstacles(fixed), AREA, ["met1"], RouteOptions(max_iterations=3))
    assert len(result.failed) > 3
    for failed in result.failed:
        blocked = {(b.layer, b.rect) for b in failed.blocked_by}
        assert blocked

        def stays(layer, box, blocked=blocked):
            return (layer, (box.left, box.bottom, box.right, box.top)) not in blocked

        nets_there = {b.net for b in failed.blocked_by}
        metal = [
            (layer, kdb.Box(*rect), n.name) for n in result.nets if n.name not in nets_there for layer, rect in n.metal
        ]
        others = [
            replace(n, terminals=tuple(replace(t, group="joined") for t in n.terminals if stays(t.layer, t.box)))
            for n in nets
        ]
        alone = [next(n for n in nets if n.name == failed.name)]
        alone += [n for n in others if n.terminals and n.name != failed.name]
        rest = as_obstacles(each for each in [*fixed, *metal] if stays(each[0], each[1]))
        yield not route(SKY, alone, rest, AREA, ["met1"]).failed


def test_without_its_blockers_a_net_that_failed_is_routed():
    """Small gaps of a net's own metal may still fail, which the track graph does not see."""
    found = [routed for seed in range(3) for routed in routed_without_blockers(seed)]
    print(found)
    assert len(found) > 20
    assert sum(found) >= 0.9 * len(found)
