"""Single boards with a known best answer: lengths, detours, vias, rip-up, and reasons of failure (S0.7)."""

import itertools
import json
import subprocess
import sys
from collections import deque

import klayout.db as kdb
import pytest
from route_fields import AREA, as_obstacles, field
from route_oracle import faults, net_cuts

from layoutkit.errors import GeometryError, TechnologyError
from layoutkit.rectangle import Occupancy, Shape
from layoutkit.route import NetRequest, Patch, RouteOptions, Terminal, Via, Wire, route
from layoutkit.route.board import Sheet
from layoutkit.route.metal import Finisher, NetMetal, Share
from layoutkit.route.negotiation import PATIENCE
from layoutkit.route.routes import Gauge
from layoutkit.route.routing_stack import make_stack
from layoutkit.route.second_cuts import SecondCuts, WiredNet
from layoutkit.route.tracks import EdgeCosts, Search, coordinates
from layoutkit.technology import load
from thorough import processes

SKY = load("sky130A")
GENERIC = load("generic")


def point(layer, x, y, half=150):
    return Terminal(layer, kdb.Box(x - half, y - half, x + half, y + half))


def rail(layer, left, y, right, half=150):
    return Terminal(layer, kdb.Box(left, y - half, right, y + half))


def two(name, one, other, **options):
    return NetRequest(name, (one, other), **options)


@pytest.mark.parametrize("technology", [GENERIC, SKY], ids=["generic", "sky130A"])
@pytest.mark.parametrize(("dx", "dy"), [(8000, 0), (0, 8000), (8000, 6000), (6000, -8000)])
def test_on_an_empty_board_a_wire_is_as_long_as_the_manhattan_distance(technology, dx, dy):
    layer = technology.conductors[1].name
    net = two("a", point(layer, 0, 0), point(layer, dx, dy))
    area = kdb.Box(-10000, -10000, 10000, 10000)
    result = route(technology, [net], {}, area, [c.name for c in technology.conductors[1:3]])
    # the terminals are 0.3 um squares and may be entered within half a wire of their edge
    assert abs(dx) + abs(dy) - 4 * 150 <= result.net("a").wire_length <= abs(dx) + abs(dy)
    assert faults(technology, [net], result, (), area) == []


def test_a_wall_is_passed_by_the_shortest_detour():
    wall = kdb.Box(3800, -3000, 4200, 5000)
    net = two("a", point("met1", 0, 0, 70), point("met1", 8000, 0, 70))
    area = kdb.Box(-10000, -10000, 20000, 20000)
    result = route(SKY, [net], {"met1": [(wall, None)]}, area, ["met1"])
    pitch = 460  # 0.14 space + 0.32 via pad
    below = 2 * (3000 + 140 + 70)
    assert 8000 + below <= result.net("a").wire_length <= 8000 + below + 2 * pitch
    assert result.net("a").via_count == 0
    assert faults(SKY, [net], result, [("met1", wall, None)], area) == []


def test_a_wall_on_one_layer_is_crossed_on_the_other_when_that_is_cheaper():
    wall = kdb.Box(3800, -30000, 4200, 30000)
    net = two("a", point("met1", 0, 0), point("met1", 8000, 0))
    result = route(SKY, [net], {"met1": [(wall, None)]}, kdb.Box(-5000, -5000, 12000, 5000), ["met1", "met2"])
    assert result.net("a").via_count == 2
    assert faults(SKY, [net], result, [("met1", wall, None)]) == []


def test_every_terminal_of_a_net_is_joined_by_a_tree_shorter_than_a_chain():
    ends = (
        rail("met1", 0, 0, 4000),
        rail("met1", 10000, 0, 14000),
        rail("met1", 0, 8000, 4000),
        point("met2", 7000, 4000),
    )
    net = NetRequest("a", ends)
    result = route(SKY, [net], {}, AREA, ["met1", "met2", "met3"])
    assert result.net("a").success
    assert result.net("a").wire_length < 6000 + 8000 + 7000
    assert faults(SKY, [net], result, (), AREA) == []


def test_terminals_that_are_joined_already_need_no_wire():
    touching = NetRequest("a", (rail("met1", 0, 0, 2000), rail("met1", 2000, 0, 4000)))
    grouped = NetRequest(
        "b",
        (Terminal("met1", kdb.Box(0, 3000, 500, 3400), "m1"), Terminal("met2", kdb.Box(5000, 3000, 5500, 3400), "m1")),
    )
    alone = NetRequest("c", (point("met1", 9000, 9000),))
    result = route(SKY, [touching, grouped, alone], {}, AREA, ["met1", "met2"])
    assert [(net.success, net.metal, net.wire_length) for net in result.nets] == [(True, (), 0)] * 3


def test_crossing_nets_make_way_on_another_layer():
    nets = [
        two("a", point("met1", 0, 0), point("met1", 9000, 9000)),
        two("b", point("met1", 0, 9000), point("met1", 9000, 0)),
    ]
    result = route(SKY, nets, {}, AREA, ["met1", "met2"])
    assert result.failed == ()
    assert faults(SKY, nets, result, (), AREA) == []


def two_gaps():
    """Return a wall with two gaps, each wide enough for one wire, and nets that both want the lower one.

    ##############|#####     b's room is open only to the lower gap, so a, which came first, must
       a          : gap      give it up and take the upper one.
         #########|
         #  b     : gap
         #########|
    """
    walls = [kdb.Box(5000, 0, 5200, 3785), kdb.Box(5000, 4215, 5200, 8000), kdb.Box(5000, 8430, 5200, 12000)]
    room = [kdb.Box(2000, 4800, 5200, 5000), kdb.Box(2000, 1000, 2200, 3785), kdb.Box(2000, 1000, 5200, 1200)]
    fixed = [("met1", box, None) for box in [*walls, *room]]
    first = two("a", point("met1", 1000, 4000), point("met1", 9000, 4000), priority=1)
    second = two("b", point("met1", 3500, 2500), point("met1", 9000, 2500), priority=2)
    return fixed, [first, second]


def test_a_net_that_took_the_only_gap_of_another_is_ripped_up_and_goes_round():
    fixed, nets = two_gaps()
    area = kdb.Box(0, 0, 12000, 12000)
    alone = route(SKY, nets[:1], as_obstacles(fixed), area, ["met1"])
    greedy = route(SKY, nets, as_obstacles(fixed), area, ["met1"], RouteOptions(max_iterations=1))
    both = route(SKY, nets, as_obstacles(fixed), area, ["met1"])
    assert greedy.failed, "without rip-up one of the two fails"
    assert both.failed == ()
    assert both.net("a").wire_length > alone.net("a").wire_length, "a gives way although it is more important"
    assert faults(SKY, nets, both, fixed, area) == []


def test_rounds_end_early_where_many_nets_conflict_and_no_fewer_do():
    """Eight nets want the one gap of a wall, and no other layer."""
    walls = [("met1", kdb.Box(3000, -9000, 3200, 1235), None), ("met1", kdb.Box(3000, 1655, 3200, 9000), None)]
    nets = [two(f"n{i}", point("met1", 0, 1000 * i), point("met1", 6000, 1000 * i)) for i in range(8)]
    result = route(SKY, nets, as_obstacles(walls), kdb.Box(-1000, -1000, 7000, 8000), ["met1"])
    assert len(result.failed) == 7
    assert result.iterations == 1 + PATIENCE


@pytest.mark.parametrize("gap", [420, 415])
def test_a_gap_that_just_admits_a_wire_is_found_wherever_it_lies(gap):
    # 0.14 space + 0.14 wire + 0.14 space
    fixed = [("met1", kdb.Box(3000, -9000, 3200, 1235), None), ("met1", kdb.Box(3000, 1235 + gap, 3200, 9000), None)]
    net = two("a", point("met1", 0, 0), point("met1", 6000, 0))
    result = route(SKY, [net], as_obstacles(fixed), kdb.Box(-1000, -3000, 7000, 3000), ["met1"])
    assert result.net("a").success == (gap == 420)
    assert faults(SKY, [net], result, fixed) == []


def test_a_shut_in_terminal_is_reported_and_draws_nothing():
    ring = [
        kdb.Box(-600, -600, 600, -400),
        kdb.Box(-600, 400, 600, 600),
        kdb.Box(-600, -600, -400, 600),
        kdb.Box(400, -600, 600, 600),
    ]
    fixed = [("met1", box, None) for box in ring]
    net = two("a", point("met1", 0, 0), point("met1", 6000, 0))
    result = route(SKY, [net], as_obstacles(fixed), kdb.Box(-5000, -5000, 9000, 5000), ["met1"])
    failed = result.net("a")
    assert not failed.success
    assert "met1 at (0, 0) um" in failed.reason
    assert (failed.metal, failed.wires, failed.vias, failed.wire_length) == ((), (), (), 0)


def test_a_wall_across_the_area_leaves_no_path_and_the_reason_names_both_ends():
    net = two("a", point("met1", 0, 0), point("met1", 8000, 0))
    result = route(
        SKY, [net], {"met1": [(kdb.Box(4000, -9000, 4200, 9000), None)]}, kdb.Box(-2000, -2000, 10000, 2000), ["met1"]
    )
    assert result.net("a").reason == (
        "no path from the terminal on met1 at (0, 0) um to the terminal on met1 at (8, 0) um: "
        "obstacles close every way inside the routing area"
    )


def test_a_terminal_outside_the_area_is_reported():
    net = two("a", point("met1", 0, 0), point("met1", 8000, 0))
    result = route(SKY, [net], {}, kdb.Box(-2000, -2000, 5000, 2000), ["met1"])
    assert "outside the routing area" in result.net("a").reason


def test_two_nets_for_one_gap_leave_the_less_important_one_with_the_others_name():
    bars = [("met1", kdb.Box(5000, -9000, 5200, 3830), None), ("met1", kdb.Box(5000, 4280, 5200, 20000), None)]
    nets = [
        two("low", point("met1", 1000, 3000), point("met1", 9000, 3000), priority=5),
        two("high", point("met1", 1000, 5000), point("met1", 9000, 5000), priority=1),
    ]
    result = route(SKY, nets, as_obstacles(bars), kdb.Box(0, 0, 10000, 8000), ["met1"])
    assert [net.name for net in result.failed] == ["low"]
    assert result.net("low").conflicts == ("high",)
    assert "congestion" in result.net("low").reason
    assert faults(SKY, nets, result, bars) == []


@pytest.mark.parametrize("gap", [280, 275])
def test_metal_wider_than_the_wide_limit_is_kept_at_its_own_distance(gap):
    # met1 wider than 3 um asks for 0.28 um instead of 0.14: a wire of 0.14 just fits between two such plates, or not.
    plates = [("met1", kdb.Box(0, 0, 8000, 4000), None), ("met1", kdb.Box(0, 4140 + 2 * gap, 8000, 9000), None)]
    y = 4000 + gap + 70
    net = two("a", point("met1", -1000, y), point("met1", 9000, y))
    area = kdb.Box(-2000, 0, 10000, 9000)
    result = route(SKY, [net], as_obstacles(plates), area, ["met1"])
    assert result.net("a").success == (gap == 280)
    assert faults(SKY, [net], result, plates) == []


def ring(inner, width=300):
    """Return the closed ring around a square of the side ``inner``."""
    hole = kdb.Box(0, 0, inner, inner)
    return kdb.Region(hole.enlarged(width, width)) - kdb.Region(hole)


@pytest.mark.parametrize(("inner", "gap"), [(10005, 300), (10005, 295), (10000, 230), (10000, 225)])
@pytest.mark.parametrize("owner", [None, "vss"])
def test_a_closed_ring_without_a_short_edge_is_kept_at_the_distance_of_wide_metal(inner, gap, owner):
    # M1.2b of gf180mcuD: metal with no edge up to 10 um counts as wide and asks for 0.3 um; other metal asks for 0.23.
    wall = gap + 230 + 230  # a wire of 0.23 just fits between the left side of the ring and the wall, or not
    ends = [point("Metal1", gap + 115, y, 115) for y in (1000, 9000)]
    metal = [(ring(inner), owner), (kdb.Region(kdb.Box(wall, 2000, inner, 8000)), "wall")]
    area = kdb.Box(0, 0, inner, inner)
    result = route(load("gf180mcuD"), [two("a", *ends)], {"Metal1": metal}, area, ["Metal1"])
    assert result.net("a").success == (gap in {300, 230})


def test_a_via_stack_gets_the_metal_that_the_area_rule_asks_for():
    net = two("a", Terminal("met1", kdb.Box(0, 0, 600, 300)), Terminal("met4", kdb.Box(0, 0, 800, 800)))
    result = route(SKY, [net], {}, AREA, ["met1", "met4"])
    assert result.net("a").success
    assert faults(SKY, [net], result, (), AREA) == []
    met3 = kdb.Region([kdb.Box(*rect) for layer, rect in result.net("a").metal if layer == "met3"])
    assert met3.area() >= 240_000  # m3.6: 0.24 um2


def test_wide_nets_get_as_many_cuts_as_fit():
    net = two(
        "a", Terminal("met1", kdb.Box(0, 0, 1000, 1000)), Terminal("met2", kdb.Box(8000, 6000, 9000, 7000)), width=1000
    )
    result = route(SKY, [net], {}, AREA, ["met1", "met2"])
    assert result.net("a").success
    # three cuts of 0.15 at a pitch of 0.32 and 0.055 around them: 0.9 um
    assert {(via.columns, via.rows) for via in result.net("a").vias} == {(3, 3)}
    assert net_cuts(SKY, result.net("a"))["via"].count() == 9 * len(result.net("a").vias)


@pytest.mark.parametrize("name", ["generic", "sky130A", "gf180mcuD", "sg13g2"])
def test_vias_of_minimum_width_wires_get_two_cuts_where_there_is_room(name):
    technology = load(name)
    lower, middle, upper = (conductor.name for conductor in technology.conductors[1:4])
    net = two("a", point(lower, 0, 0, 300), point(upper, 8000, 6000, 300))
    area = kdb.Box(-4000, -4000, 12000, 12000)
    result = route(technology, [net], {}, area, [lower, middle, upper])
    routed = result.net("a")
    assert routed.success
    assert routed.vias
    assert {via.columns * via.rows for via in routed.vias} == {2}
    assert routed.single_cuts == ()
    assert [fault for fault in faults(technology, [net], result, (), area) if "area" not in fault] == []


def test_a_via_without_room_for_two_cuts_keeps_one_and_says_what_is_in_the_way():
    """Walls on both conductors leave a shaft that is as wide as one pad and its distances, in x and in y."""
    net = two("a", Terminal("met1", kdb.Box(-160, -160, 160, 160)), Terminal("met2", kdb.Box(-160, -160, 160, 160)))
    walls = [kdb.Box(-1000, -1000, -300, 1000), kdb.Box(300, -1000, 1000, 1000)]
    walls += [kdb.Box(-300, 300, 300, 1000), kdb.Box(-300, -1000, 300, -300)]
    fixed = [(layer, wall, "other") for layer in ("met1", "met2") for wall in walls]
    result = route(SKY, [net], as_obstacles(fixed), kdb.Box(-1000, -1000, 1000, 1000), ["met1", "met2"])
    routed = result.net("a")
    assert [(via.columns, via.rows) for via in routed.vias] == [(1, 1)]
    assert len(routed.single_cuts) == 1
    assert "met1 would come too close to other" in routed.single_cuts[0].reason
    assert faults(SKY, [net], result, fixed) == []


def test_two_cuts_fill_the_gap_to_other_metal_of_the_net():
    """In the shaft two cuts fit above each other; their pads end 0.02 um below a bar of the net, 0.14 are required."""
    net = two("a", Terminal("met1", kdb.Box(-160, -160, 160, 160)), Terminal("met2", kdb.Box(-160, -160, 160, 160)))
    walls = [kdb.Box(-1000, -1000, -300, 1000), kdb.Box(300, -1000, 1000, 1000), kdb.Box(-300, -1000, 300, -300)]
    fixed = [(layer, wall, None) for layer in ("met1", "met2") for wall in walls]
    fixed += [("met1", kdb.Box(-160, 500, 160, 800), "a"), ("met2", kdb.Box(-1000, 900, 1000, 1100), None)]
    result = route(SKY, [net], as_obstacles(fixed), kdb.Box(-1000, -1000, 1000, 1000), ["met1", "met2"])
    routed = result.net("a")
    assert [(via.columns, via.rows) for via in routed.vias] == [(1, 2)]
    assert routed.single_cuts == ()
    assert faults(SKY, [net], result, fixed) == []


def test_cuts_that_are_already_there_keep_vias_away():
    cut = kdb.Box(925, -75, 1075, 75)
    fixed = [("via", cut, "a")]
    net = two("a", rail("met1", 0, 0, 2000), point("met2", 1000, 5000))
    result = route(SKY, [net], {"via": [(cut, "a")]}, AREA.enlarged(2000, 2000), ["met1", "met2"])
    assert result.net("a").success
    assert [fault for fault in faults(SKY, [net], result, fixed) if "space" in fault or "size" in fault] == []


def test_metal_of_the_net_itself_is_free_to_touch():
    own = kdb.Box(3800, -3000, 4200, 3000)
    net = two("a", point("met1", 0, 0), point("met1", 8000, 0))
    area = kdb.Box(-2000, -2000, 10000, 2000)
    assert not route(SKY, [net], {"met1": [(own, None)]}, area, ["met1"]).net("a").success
    assert route(SKY, [net], {"met1": [(own, "a")]}, area, ["met1"]).net("a").success


def test_faulty_requests_are_told_all_at_once():
    with pytest.raises(GeometryError, match=r"'a' is listed more than once.*'b' has no terminal.*area is empty"):
        route(
            SKY,
            [two("a", point("met1", 0, 0), point("met1", 1, 1))] * 2 + [NetRequest("b", ())],
            {},
            kdb.Box(),
            ["met1"],
        )
    with pytest.raises(TechnologyError, match="no conductor 'poly'"):
        route(SKY, [two("a", point("met1", 0, 0), point("met1", 1, 1))], {}, AREA, ["poly"])


@pytest.mark.parametrize(("required", "pitch"), [([], 460), ([100], 460), ([0, 3000, 3200, 9995], 460), ([5], 1000)])
def test_tracks_that_are_not_required_keep_a_pitch_to_their_neighbours(required, pitch):
    tracks = coordinates(-1000, 10000, required, pitch, 5)
    assert set(required) <= set(tracks)
    assert all(track % 5 == 0 and -1000 <= track <= 10000 for track in tracks)
    for low, high in itertools.pairwise(tracks):
        assert high - low >= pitch or {low, high} <= set(required)
        assert high - low < 2 * pitch


def brute_force(costs, starts, targets):
    """Return the cheapest cost by Bellman-Ford over all edges."""
    import numpy as np

    _, rows, columns = costs.right.shape
    best = dict.fromkeys(starts, 0)
    queue = deque(starts)
    steps = ((costs.right, 1), (costs.up, columns), (costs.via, rows * columns))
    flat = [(array.ravel(), step) for array, step in steps]
    size = int(np.prod(costs.right.shape))
    while queue:
        node = queue.popleft()
        for array, step in flat:
            for other, cost in ((node + step, array[node]), (node - step, array[node - step] if node >= step else -1)):
                if cost >= 0 and other < size and best[node] + cost < best.get(other, 1 << 60):
                    best[other] = best[node] + cost
                    queue.append(other)
    return min((best[target] for target in targets if target in best), default=None)


def random_costs(seed):
    import numpy as np

    shape = (3, 9, 11)
    generator = np.random.default_rng(seed)
    right, up, via = (generator.integers(1, 50, shape) for _ in range(3))
    for array in (right, up, via):
        array[generator.random(shape) < 0.35] = -1
    right[:, :, -1] = up[:, -1, :] = via[-1] = -1
    return EdgeCosts(right.astype(np.int64), up.astype(np.int64), via.astype(np.int64)), np.zeros(
        shape[1:], dtype=np.int64
    )


def cost_of(costs, path):
    _, rows, columns = costs.right.shape
    by_step = {1: costs.right.ravel(), columns: costs.up.ravel(), rows * columns: costs.via.ravel()}
    return sum(int(by_step[abs(a - b)][min(a, b)]) for a, b in itertools.pairwise(path))


@pytest.mark.parametrize("seed", range(30))
def test_the_search_finds_the_cheapest_path_or_says_there_is_none(seed):
    costs, guess = random_costs(seed)
    starts, targets = [0, 50], [3 * 99 - 1, 160]
    path = Search("python").shortest_path(costs, guess, starts, targets)
    best = brute_force(costs, starts, targets)
    assert (cost_of(costs, path) if path else None) == best


def test_compiled_and_interpreted_search_find_the_same_path():
    pytest.importorskip("numba")
    for seed in range(12):
        costs, guess = random_costs(seed)
        python = Search("python").shortest_path(costs, guess, [0, 50], [296, 160])
        assert Search("numba").shortest_path(costs, guess, [0, 50], [296, 160]) == python


def test_compiled_and_interpreted_router_give_the_same_routes():
    pytest.importorskip("numba")
    requests, fixed = field(SKY, 11, nets=6, obstacles=5)
    results = [
        route(SKY, requests, as_obstacles(fixed), AREA, ["met1", "met2", "met3"], RouteOptions(engine=engine))
        for engine in ("python", "numba")
    ]
    assert results[0] == results[1]


PROGRAM = """
import sys
sys.path[:0] = {path!r}
from route_fields import AREA, as_obstacles, field
from layoutkit.route import route
from layoutkit.technology import load, names
technology = load("sky130A")
requests, fixed = field(technology, 23, nets=9, obstacles=5)
print(repr(route(technology, requests, as_obstacles(fixed), AREA, ["met1", "met2", "met3"])))
"""


def test_routes_do_not_depend_on_the_process():
    from pathlib import Path

    program = PROGRAM.format(path=[str(Path(__file__).parent)])
    answers = {
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    }
    assert len(answers) == 1
    assert json.dumps(answers.pop())


def test_a_gap_that_just_admits_a_wide_wire_is_found_on_a_board_with_much_metal():
    """The wire fits between the columns only off the tracks; hugging all metal would be too many tracks."""
    gap, left = 420 + 2 * 140, 10_095
    right = left + gap
    columns = [("met2", kdb.Box(*x, 2000), None) for x in ((left - 300, -2000, left), (right, -2000, right + 1300))]
    around = [kdb.Box(left - 900, -600, right + 1900, -300), kdb.Box(left - 900, 300, right + 1900, 600)]
    around += [kdb.Box(left - 900, -600, left - 500, 600), kdb.Box(right + 1500, -600, right + 1900, 600)]
    clutter = [kdb.Box(700 * i, 3000 + 715 * i, 700 * i + 300, 3300 + 715 * i) for i in range(60)]
    fixed = [*columns, *(("met1", box, None) for box in around), *(("met2", box, None) for box in clutter)]
    ends = (rail("met1", left - 300, 0, right + 1300, 130), rail("met1", left - 300, -9000, right + 1300, 130))
    area = kdb.Box(-1000, -12_000, 43_000, 47_000)
    net = two("a", *ends, width=420)
    result = route(SKY, [net], as_obstacles(fixed), area, ["met1", "met2", "met3", "met4"])
    assert result.failed == ()
    assert faults(SKY, [net], result, fixed, area) == []


def test_wires_of_one_net_that_are_wide_together_count_as_wide():
    """Two narrow wires side by side are filled to one of 0.44 um; sg13g2 M3.e asks for more space from 0.39 um on."""
    process = load("sg13g2")
    stack = make_stack(process, ["Metal3"], [])
    wires = [Wire("Metal3", ((x, 0), (x, 4000)), 200) for x in (0, 240)]
    metal = NetMetal(wires=wires)
    Finisher(stack, Occupancy(), "a", []).finish(metal, None)
    assert [rect for level, rect in metal.rects(stack) if stack.is_wide(level, rect)] == [(-100, -100, 340, 4100)]


@pytest.mark.parametrize(("gap", "array"), [(300, (10, 7)), (395, (10, 7)), (400, (7, 10))])
def test_arrays_of_cuts_attached_to_wide_metal_keep_its_space(gap, array):
    """32 mA need 67 cuts, more than the wire of 3.2 um holds; what is attached to it keeps 0.4 um, not 0.3 (m3.3c)."""
    stack = make_stack(SKY, ["met2", "met3"], [])
    top = 4000 + 1965  # of ten rows
    others = Occupancy()
    others.add("met3", Shape((-4000, top + gap, 4000, top + gap + 330), "b", wide=False))
    metal = NetMetal(wires=[Wire("met3", ((0, 3900), (0, 4100)), 3200)], vias=[Via("via2", 0, 4000)])
    Finisher(stack, others, "a", []).finish(metal, 3200, 32.0)
    assert [(via.columns, via.rows) for via in metal.vias] == [array]


def test_an_array_of_cuts_for_a_current_does_not_reach_far_beyond_its_wire():
    """2 mA need 5 cuts of 0.4 mA; wires of 1 um hold 2 x 2. Both outer cuts of 1 x 5 would share a pad of 0.2 um."""
    stack = make_stack(load("sg13g2"), ["Metal3", "Metal4"], [])
    metal = NetMetal(wires=[Wire("Metal3", ((0, 0), (0, 4000)), 1000)], vias=[Via("Via3", 0, 0)])
    Finisher(stack, Occupancy(), "a", []).finish(metal, 1000, 2.0)
    assert [(via.columns, via.rows) for via in metal.vias] == [(2, 3)]


def test_a_via_below_a_thick_conductor_is_no_wider_than_wires_may_be():
    """sg13g2: 48 mA need 24 um of Metal4 (M4.f starts at 10 um), 120 cuts of Via4, and 3 um of TopMetal1."""
    technology = load("sg13g2")
    stack = make_stack(technology, ["Metal4", "Metal5", "TopMetal1"], [])
    metal = NetMetal(vias=[Via("Via4", 0, 0), Via("TopVia1", 0, 0)])
    metal.shares = {(via.cut, 0, 0): Share(Gauge(None, 48.0), 48.0) for via in metal.vias}
    Finisher(stack, Occupancy(), "a", []).finish(metal, None, 48.0)
    for via in metal.vias:
        each = technology.cuts[[cut.name for cut in technology.cuts].index(via.cut)]
        assert via.columns * via.rows * each.current_ma >= 48.0
    for level, (left, bottom, right, top) in metal.rects(stack):
        assert max(right - left, top - bottom) <= (technology.widest_usual(stack.conductors[level]) or 20_000)


@pytest.mark.parametrize("edge", [(-200, -4000, 4000, 4000), (-4000, -200, 4000, 4000), (-4000, -4000, 200, 4000)])
def test_a_pad_grows_to_the_minimum_area_inside_of_the_area_where_it_can(edge):
    """A stack of vias has a pad of met3 below 0.24 um2 (m3.6); beyond the area lies what the outline leaves out."""
    stack = make_stack(SKY, ["met2", "met3", "met4"], [])
    metal = NetMetal(vias=[Via("via2", 0, 0), Via("via3", 0, 0)])
    Finisher(stack, Occupancy(), "a", [], edge).finish(metal, None)
    pad = [kdb.Box(*rect) for level, rect in metal.rects(stack) if stack.conductors[level].name == "met3"]
    assert kdb.Region(pad).merged().area() >= 240_000
    assert kdb.Region(pad).bbox().inside(kdb.Box(*edge))


def test_an_array_of_cuts_does_not_reach_beyond_the_area():
    """4 mA need ten cuts of 0.4 mA, more rows than 0.4 um has room for; the area ends 0.4 um above the via."""
    stack = make_stack(load("sg13g2"), ["Metal3", "Metal4"], [])
    for area in (None, (-4000, -4000, 4000, 400)):
        metal = NetMetal(wires=[Wire("Metal3", ((0, 0), (-2000, 0)), 600)], vias=[Via("Via3", 0, 0)])
        Finisher(stack, Occupancy(), "a", [], area).finish(metal, 600, 4.0)
        top = max(rect[3] for _, rect in metal.rects(stack))
        assert (top > 400) == (area is None)


@pytest.mark.parametrize(("end", "top"), [(6500, 0), (6530, 6550), (6545, 6550), (6550, 0)])
def test_a_wire_ends_on_a_pin_or_well_beyond_its_cuts(end, top):
    """Ends of Metal2 below 0.34 um reach 0.06 um beyond Via2 in gf180mcuD (V2.3c); the pin ends 0.01 um beyond it."""
    stack = make_stack(load("gf180mcuD"), ["Metal2", "Metal3"], [])
    level = [conductor.name for conductor in stack.conductors].index("Metal2")
    cuts = Occupancy()
    cuts.add("Via2", Shape((9650, 6230, 9910, 6490), "a", wide=False))
    finisher = Finisher(stack, cuts, "a", [(level, (4270, 5700, 9970, 6500))])
    metal = NetMetal(wires=[Wire("Metal2", ((9780, 6000), (9780, end - 140)), 280)])
    short = [flaw[0] for flaw in finisher.flaws(metal)] == ["enclosure at line ends"]
    assert short == bool(top)
    finisher.finish(metal, None)
    assert [patch.rect[3] for patch in metal.patches] == ([top] if top else [])
    assert finisher.flaws(metal) == []


def test_others_keep_the_space_of_wide_metal_to_what_is_attached_to_it():
    """A stub of 0.3 um on a wire of 3.2 um in sky130A keeps 0.4 um within 0.4 um of it, beyond that 0.3 (m3.3c)."""
    stack = make_stack(SKY, ["met3"], [])
    level = [conductor.name for conductor in stack.conductors].index("met3")
    wires = [Wire("met3", ((0, 0), (0, 8000)), 3200), Wire("met3", ((0, 4000), (5000, 4000)), 300)]
    wide = [rect for at, rect, wide in NetMetal(wires=wires).shapes(stack) if at == level and wide]
    assert wide == [(-1600, -1600, 1600, 9600), (-150, 3850, 2000, 4150)]


@pytest.mark.parametrize("technology", processes())
@pytest.mark.parametrize("across", [True, False], ids=["horizontal", "vertical"])
def test_long_wires_run_in_the_preferred_direction_of_their_layer(technology, across):
    """The second conductor is horizontal, the third vertical; two vias cost less than a long way against it."""
    process = load(technology)
    low, high = process.conductors[1], process.conductors[2]
    side = 4 * low.width
    far = kdb.Vector(60 * side, 0) if across else kdb.Vector(0, 60 * side)
    start = kdb.Box(0, 0, side, side)
    ends = tuple(Terminal(low.name, box) for box in (start, start.moved(far)))
    area = kdb.Box(-20 * side, -20 * side, 80 * side, 80 * side)
    (net,) = route(process, [NetRequest("n", ends)], {}, area, [low.name, high.name]).nets
    long_wires = {
        (wire.layer, a[1] == b[1])
        for wire in net.wires
        for a, b in zip(wire.points, wire.points[1:], strict=False)
        if abs(a[0] - b[0]) + abs(a[1] - b[1]) > 10 * side
    }
    assert long_wires == {(low.name, True) if across else (high.name, False)}


def test_wires_keep_out_of_a_keepout_even_those_of_its_own_net_and_may_touch_its_edge():
    """Between two walls of other metal there is room beside the keepout for one wire with its distance to the wall."""
    net = two("a", point("met1", 0, 0, 70), point("met1", 8000, 0, 70))
    area = kdb.Box(-1000, -2000, 9000, 2000)
    keepout = ("met1", (3000, -2000, 5000, 500))
    around = route(SKY, [net], {}, area, ["met1"], RouteOptions(keepouts=(keepout,)))
    metal = kdb.Region([kdb.Box(*rect) for _, rect in around.net("a").metal])
    assert around.net("a").success
    assert (metal & kdb.Region(kdb.Box(*keepout[1]))).is_empty()
    assert metal.bbox().top <= 500 + 140 + 460  # no more than a pitch above its edge, not wide-metal spacing
    shut = RouteOptions(keepouts=(("met1", (3000, -2000, 5000, 2000)),))
    assert (
        not route(SKY, [net], {"met1": [(kdb.Box(3000, -100, 5000, 100), "a")]}, area, ["met1"], shut).net("a").success
    )
    over = route(SKY, [net], {}, area, ["met1", "met2"], shut)
    assert over.net("a").success
    assert faults(SKY, [net], over, (), area) == []


def test_vias_keep_out_of_a_keepout_of_cuts():
    net = two("a", rail("met1", 0, 0, 6000), point("met2", 1000, 5000))
    area = kdb.Box(-1000, -2000, 9000, 7000)
    box = kdb.Box(-1000, -2000, 4000, 7000)
    options = RouteOptions(keepouts=(("via", (box.left, box.bottom, box.right, box.top)),))
    result = route(SKY, [net], {}, area, ["met1", "met2"], options)
    assert result.net("a").success
    assert (net_cuts(SKY, result.net("a"))["via"] & kdb.Region(box)).is_empty()


def test_a_wide_wire_keeps_the_space_of_wide_metal_to_its_own_net():
    """0.22 um is enough for narrow Metal3 of sg13g2, 0.24 um are needed beside metal wider than 0.39 um."""
    stack = make_stack(load("sg13g2"), ["Metal2", "Metal3"], [])
    level = [conductor.name for conductor in stack.conductors].index("Metal3")
    rail = (520, 0, 720, 4000)
    metal = NetMetal(wires=[Wire("Metal3", ((0, 300), (0, 3700)), 600)])
    finisher = Finisher(stack, Occupancy(), "a", [(level, rail)])
    finisher.finish(metal, None)
    region = finisher.region(metal, level)
    assert region.space_check(240, False, kdb.Region.Projection).is_empty()
    assert region.count() == 1


def test_a_small_hole_between_metal_of_one_net_is_filled():
    """Two wires join two rails of their net; sky130A m1.7 asks for holes of 0.14 um2 at least."""
    stack = make_stack(SKY, ["met1", "met2"], [])
    level = [conductor.name for conductor in stack.conductors].index("met1")
    rails = [(level, (-2000, y, 2000, y + 260)) for y in (0, 425)]
    metal = NetMetal(wires=[Wire("met1", ((x, 100), (x, 600)), 420) for x in (-340, 340)])
    finisher = Finisher(stack, Occupancy(), "a", rails)
    finisher.finish(metal, None)
    assert finisher.region(metal, level).holes().is_empty()


def test_a_long_hole_that_fixed_metal_closes_far_from_the_wire_is_a_flaw():
    """0.15 x 0.86 um beside a wire are 0.129 um2 of the 0.14 um2 that m1.7 asks for; the far end is fixed metal."""
    stack = make_stack(SKY, ["met1", "met2"], [])
    level = [conductor.name for conductor in stack.conductors].index("met1")
    fixed = [(0, 0, 1000, 140), (0, 290, 1000, 430), (930, 0, 1070, 430)]
    metal = NetMetal(wires=[Wire("met1", ((0, 0), (0, 430)), 140)])
    finisher = Finisher(stack, Occupancy(), "a", [(level, rect) for rect in fixed])
    assert ("minimum area of holes", "met1", (70, 140, 930, 290)) in finisher.flaws(metal)


@pytest.mark.parametrize("gap", [0, 10])
def test_cuts_of_one_net_that_are_too_close_are_found_wherever_they_lie(gap):
    """met2 vias of sky130A are 0.15 um wide and 0.17 um apart; each cut of an array stands beside one of the next."""
    stack = make_stack(SKY, ["met1", "met2"], [])
    step = 150 + 170 - gap
    places = [(step * column - 1000, 900 * row - 3000) for column in range(7) for row in range(7)]
    metal = NetMetal(vias=[Via("via", x, y, 1, 1) for x, y in places])
    found = [flaw for flaw in Finisher(stack, Occupancy(), "a", []).flaws(metal) if flaw[1] == "via"]
    boxes = [rect for _, rect in metal.cuts(stack)]
    near = [
        kdb.Region(kdb.Box(*a)).separation_check(kdb.Region(kdb.Box(*b)), 170)
        for a, b in itertools.combinations(boxes, 2)
    ]
    assert len(found) == sum(not pairs.is_empty() for pairs in near) == (6 * 7 if gap else 0)


def test_only_gaps_are_filled_where_a_wire_runs_beside_wide_metal_of_its_net():
    """A wire of 6 um passes a bar of 6 um at 0.08 um. All between the two ends was filled, 12 um high (sg13g2 M4.f)."""
    stack = make_stack(load("sg13g2"), ["Metal4", "Metal5"], [])
    level = [conductor.name for conductor in stack.conductors].index("Metal4")
    bar = (0, 0, 18_000, 6000)
    pad, wire = Patch("Metal4", (10_900, 6340, 17_000, 11_820)), kdb.Box(11_000, 6080, 33_000, 12_080)
    metal = NetMetal(wires=[Wire("Metal4", ((14_000, 9080), (30_000, 9080)), 6000)], patches=[pad])
    finisher = Finisher(stack, Occupancy(), "a", [(level, bar)])
    finisher.finish(metal, None)
    drawn = kdb.Region([kdb.Box(*bar), wire, kdb.Box(*pad.rect)])
    filled = (finisher.region(metal, level) - drawn).merged()
    assert [(each.bbox(), each.is_box()) for each in filled.each()] == [(kdb.Box(11_000, 6000, 18_000, 6080), True)]


def test_wide_metal_of_uneven_height_is_not_taken_for_more_than_is_drawn():
    """A decomposition cuts it into slabs of 5 nm; what sticks out of the metal would call for patches in the gap."""
    technology = load("sg13g2")
    bar, rail = kdb.Region(kdb.Box(3290, 1120, 5570, 1720)), kdb.Box(1000, 490, 5570, 690)
    own = (bar + kdb.Region(kdb.Box(1000, 490, 1600, 1115)) + kdb.Region(kdb.Box(1000, 1115, 3290, 1720))).merged()
    nets = [two("a", Terminal("Metal2", kdb.Box(3290, 1120, 5570, 1720)), Terminal("Metal2", rail))]
    result = route(technology, nets, {"Metal2": [(own, "a")]}, kdb.Box(-3000, -3000, 9000, 6000), ["Metal2", "Metal3"])
    assert faults(technology, nets, result, [("Metal2", own, "a")]) == []
    assert [rect for _, rect in result.net("a").metal if any(at % technology.grid for at in rect)] == []


def test_a_second_cut_keeps_its_distance_to_the_end_of_a_narrow_line():
    """Metal2 of gf180mcuD narrower than 0.34 um reaches 0.06 um beyond Via2; two cuts would end 0.05 um below."""
    stack = make_stack(load("gf180mcuD"), ["Metal2", "Metal3"], [])
    wires = [Wire("Metal2", ((0, 140), (0, 700)), 280), Wire("Metal3", ((0, 100), (0, 140)), 280)]
    metal = NetMetal(wires=wires, vias=[Via("Via2", 0, 140)], order=[("Via2", 0, 140)])
    area = (-2000, -60, 2000, 2000)
    board, net = Sheet(stack, ["a"], area), two("a", Terminal("Metal2", kdb.Box()), Terminal("Metal3", kdb.Box()))
    board.change(net, metal, 1)
    SecondCuts(board).add([WiredNet(net, metal)])
    assert max(rect[3] for _, rect in metal.cuts(stack)) <= 840 - 60
    assert len(metal.cuts(stack)) == 2


def test_what_fills_a_gap_beside_a_second_cut_leaves_none_to_other_metal_of_the_net():
    """The pad of two cuts in line would end 0.15 um from the bar on the left; M2.b of sg13g2 asks for 0.21 um.

    What fills gaps there also fills that between the wire and the bracket, whose leg lies 0.045 um further.
    """
    stack = make_stack(load("sg13g2"), ["Metal2", "Metal3"], [])
    level = [conductor.name for conductor in stack.conductors].index("Metal2")
    bar, wire = (-700, -300, -500, 300), (-100, -100, 900, 100)
    bracket = [(1110, 40, 1600, 600), (1350, -300, 1600, 40)]
    patches = [Patch("Metal2", rect) for rect in (bar, wire, *bracket)]
    metal = NetMetal(vias=[Via("Via2", 0, 0)], patches=patches, order=[("Via2", 0, 0)])
    board = Sheet(stack, ["a"], (-4000, -4000, 4000, 4000))
    # room on Metal3 for two cuts in line with the wire only
    for wall in ((-900, -900, -520, 900), (520, -900, 900, 900), (-400, 360, 400, 900), (-400, -900, 400, -360)):
        board.occupancy.add("Metal3", Shape(wall, "b", wide=False))
    net = two("a", Terminal("Metal2", kdb.Box()), Terminal("Metal3", kdb.Box()))
    board.change(net, metal, 1)
    SecondCuts(board).add([WiredNet(net, metal)])
    drawn = kdb.Region([kdb.Box(*rect) for at, rect in metal.rects(stack) if at == level]).merged()
    assert drawn.space_check(210).is_empty()


def test_fills_of_gaps_beside_a_second_cut_join_its_pad():
    """The pad of two cuts ends 0.1 um from the bar, and a block of four rectangles far away has no gap.

    One of the four is out of reach, so there seems to be a gap. A fill for it would be mirrored about the axis to a
    place where the net has no metal.
    """
    stack = make_stack(SKY, ["met1", "met2"], [])
    bar = (-700, -300, -420, 300)
    block = [(-7000, -1400, -6310, -1140), (-7000, -1100, -6310, -700)]
    block += [(-7000, -1140, -6330, -1100), (-6330, -1140, -6310, -1100)]
    metal = NetMetal(
        vias=[Via("via", 0, 0)], patches=[Patch("met1", rect) for rect in (bar, *block)], order=[("via", 0, 0)]
    )
    board = Sheet(stack, ["a"], (-8000, -4000, 8000, 4000))
    for wall in ((-900, 310, 900, 600), (-900, -600, 900, -310)):  # room for two cuts side by side only
        board.occupancy.add("met2", Shape(wall, "b", wide=False))
    net = two("a", Terminal("met1", kdb.Box()), Terminal("met2", kdb.Box()))
    board.change(net, metal, 1)
    assert SecondCuts(board).add([WiredNet(net, metal)], axis_x=0) == {"a": ()}
    added = [patch.rect for patch in metal.patches[5:]]
    assert added
    assert all(rect[0] >= -420 and rect[2] <= 420 for rect in added)


def test_second_cuts_on_both_sides_of_the_axis_leave_no_gap_between_their_pads():
    """Pads of two cuts would end 0.105 um from the axis, 0.21 um apart below the wire; m3.2 asks for 0.3 um."""
    stack = make_stack(SKY, ["met2", "met3"], [])
    level = [conductor.name for conductor in stack.conductors].index("met3")
    wires = [Wire("met3", ((-670, 0), (670, 0)), 300)]
    wires += [Wire("met2", ((x, 0), (x, 400)), 260) for x in (-670, 670)]
    vias = [Via("via2", x, 0) for x in (-670, 670)]
    metal = NetMetal(wires=wires, vias=vias, order=[("via2", x, 0) for x in (-670, 670)])
    # no room but towards the axis
    walls = kdb.Region(kdb.Box(-3000, -300, -1150, 300)) + kdb.Region(kdb.Box(1150, -300, 3000, 300))
    board = Sheet(stack, ["a"], (-4000, -270, 4000, 270))
    for box in (polygon.bbox() for polygon in walls.each()):
        board.occupancy.add("met3", Shape((box.left, box.bottom, box.right, box.top), "b", wide=False))
    net = two("a", Terminal("met2", kdb.Box()), Terminal("met3", kdb.Box()))
    board.change(net, metal, 1)
    SecondCuts(board).add([WiredNet(net, metal)], axis_x=0)
    drawn = kdb.Region([kdb.Box(*rect) for at, rect in metal.rects(stack) if at == level]).merged()
    assert drawn.space_check(300).is_empty()
