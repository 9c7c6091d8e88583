"""Nets that mirror each other are exact images of each other, or the result says that they are not (0 dbu)."""

import random
from dataclasses import replace
from itertools import pairwise

import klayout.db as kdb
import pytest
from route_fields import as_obstacles
from route_oracle import faults, net_cuts

from layoutkit.errors import GeometryError
from layoutkit.route import NetRequest, RouteOptions, Terminal, route
from layoutkit.route.equal_loads import MOST_STUBS, Loading, StubRoom, equalised
from layoutkit.route.router import cuts_of
from layoutkit.route.routes import Mirrored
from layoutkit.technology import load

SKY = load("sky130A")
AREA = kdb.Box(-12000, -3000, 12000, 14000)
LAYERS = ["met1", "met2", "met3"]


def boxes(axis):
    """Return terminals of the left net and their images: rails of two heights and one on the layer above."""
    left = [("met1", kdb.Box(-6000, 0, -2000, 300)), ("met1", kdb.Box(-9000, 8000, -5000, 8300))]
    left.append(("met2", kdb.Box(-1500, 5000, -1200, 7000)))
    mirrored = [(layer, kdb.Box(2 * axis - b.right, b.bottom, 2 * axis - b.left, b.top)) for layer, b in left]
    return tuple(Terminal(*end) for end in left), tuple(Terminal(*end) for end in mirrored)


def images(metal, axis):
    return sorted((layer, (2 * axis - r[2], r[1], 2 * axis - r[0], r[3])) for layer, r in metal)


@pytest.mark.parametrize("axis", [0, 105, -402])
@pytest.mark.parametrize("width", [None, 600])
def test_mirrored_nets_are_exact_images_around_an_obstacle_of_one_side(axis, width):
    axis = axis // 5 * 5
    left, right = boxes(axis)
    nets = [NetRequest("p", left, width), NetRequest("n", right, width, mirror_of="p")]
    nets.append(
        NetRequest(
            "tail",
            (
                Terminal("met1", kdb.Box(-11000, 3000, -10000, 3300)),
                Terminal("met1", kdb.Box(10000, 3000, 11000, 3300)),
            ),
        )
    )
    fixed = [("met1", kdb.Box(2500, 2000, 8000, 6000), None), ("met2", kdb.Box(2500, 2000, 4000, 6000), None)]
    result = route(SKY, nets, as_obstacles(fixed), AREA, LAYERS, RouteOptions(axis_x=axis))
    assert result.unmirrored == ()
    assert result.failed == ()
    one, other = result.net("p"), result.net("n")
    assert images(one.metal, axis) == sorted(other.metal)
    assert one.wire_length == other.wire_length
    assert sorted((v.cut, 2 * axis - v.x, v.y) for v in one.vias) == sorted((v.cut, v.x, v.y) for v in other.vias)
    assert all(via.columns * via.rows > 1 for via in (*one.vias, *other.vias))
    assert net_cuts(SKY, one)["via"].count() == net_cuts(SKY, other)["via"].count()
    assert faults(SKY, nets, result, fixed, AREA) == []


def shapes(result, name, axis=None):
    """Return metal and cuts of a net by layer as KLayout's regions, mirrored about ``axis`` where one is given."""
    found = {}
    for layer, rect in [*result.net(name).metal, *cuts_of(SKY, result.net(name))]:
        found.setdefault(layer, kdb.Region()).insert(kdb.Box(*rect))
    if axis is None:
        return found
    return {layer: region.transformed(kdb.Trans(kdb.Trans.M90)).moved(2 * axis, 0) for layer, region in found.items()}


def differs(one, other, layers=("met1", "met2", "met3", "via", "via2")):
    """Return the area of the difference of two sets of shapes. [dbu2]"""
    empty = kdb.Region()
    return sum((one.get(layer, empty) ^ other.get(layer, empty)).area() for layer in layers)


def test_a_terminal_without_an_image_gives_both_nets_the_same_metal():
    """The net without it gets the image of the wire that leads to it, which ends with enough area."""
    left, right = boxes(0)
    nets = [NetRequest("p", left), NetRequest("n", right[:2], mirror_of="p")]
    result = route(SKY, nets, {}, AREA, LAYERS, RouteOptions(axis_x=0))
    assert result.failed == ()
    assert result.unmirrored == ()
    assert differs(shapes(result, "p", 0), shapes(result, "n")) == 0
    assert result.net("p").wire_length > shortest(left)
    assert faults(SKY, nets, result, (), AREA) == []


def shortest(ends):
    """Return a length that no wire between some terminals undercuts: the largest gap between two of them. [dbu]"""
    spans = [(end.box.bottom, end.box.top) for end in ends]
    return max(low - high for low, _ in spans for _, high in spans)


@pytest.mark.parametrize("process", ["sky130A", "sg13g2"])
def test_a_terminal_whose_image_is_blocked_is_joined_by_a_way_of_its_own_and_stubs_make_the_loads_equal(process):
    technology = load(process)
    names = [conductor.name for conductor in technology.conductors[1:4]]
    left, right = ([(names[LAYERS.index(end.layer)], end.box) for end in ends] for ends in boxes(0))
    nets = [NetRequest("p", tuple(Terminal(*end) for end in left))]
    nets.append(NetRequest("n", tuple(Terminal(*end) for end in right[:2]), mirror_of="p"))
    layer, image = right[2]
    fixed = [(layer, image.enlarged(100, 100), None)]
    result = route(technology, nets, as_obstacles(fixed), AREA, names, RouteOptions(axis_x=0))
    room = StubRoom((AREA.left, AREA.bottom, AREA.right, AREA.top), names)
    result = equalised(technology, nets, as_obstacles(fixed), room, result)
    assert result.failed == ()
    ((net, reason),) = result.unmirrored
    assert net == "n"
    assert reason.startswith("some terminals have no mirror image")
    assert faults(technology, nets, result, fixed, AREA) == []
    assert abs(result.net("p").wire_length - result.net("n").wire_length) <= 2 * technology.grid
    loads = [load_of(technology, result.net(name)) for name in ("p", "n")]
    assert abs(loads[0] - loads[1]) <= 0.01 * max(loads)


@pytest.mark.parametrize("process", ["sky130A", "gf180mcuD", "sg13g2"])
def test_a_net_that_has_no_room_for_bumps_gets_few_stubs_that_no_other_stub_branches_off(process):
    """Bars lie along both sides of the shorter wire; the way onwards from its right pin is free."""
    technology = load(process)
    layer, half = technology.conductors[1].name, technology.conductors[1].width
    nets = []
    for name, y, length in (("p", 0, 18000), ("n", 6000, 2000)):
        ends = [kdb.Box(x - half, y - half, x + half, y + half) for x in (-9000, length - 9000)]
        nets.append(NetRequest(name, tuple(Terminal(layer, box) for box in ends)))
    gap = half + 2 * technology.conductors[1].space  # pins are wide metal, twice as wide as wires
    bars = [(-9000 - gap, y, -6500, y + 2 * half) for y in (6000 + gap, 6000 - gap - 2 * half)]
    fixed = [(layer, kdb.Box(*bar), None) for bar in bars]
    result = route(technology, nets, as_obstacles(fixed), AREA, [layer], RouteOptions())
    result = replace(result, mirrored=(Mirrored(("p", "n"), exact=False, reason="a test"),))
    room = StubRoom((AREA.left, AREA.bottom, AREA.right, AREA.top), [layer])
    equal = equalised(technology, nets, as_obstacles(fixed), room, result)
    assert faults(technology, nets, equal, fixed, AREA) == []
    assert equal.net("p").wires == result.net("p").wires
    assert abs(equal.net("n").wire_length - 18000) <= 0.005 * 18000
    loads = [load_of(technology, equal.net(name)) for name in ("p", "n")]
    assert abs(loads[0] - loads[1]) <= 0.005 * max(loads)
    added = equal.net("n").wires[len(result.net("n").wires) :]
    assert 1 <= len(added) <= MOST_STUBS
    assert all(len(wire.points) <= 3 for wire in added)
    narrow = room._replace(area=(-9000 - half, 6000 - half // 2, -7000 + half, 6000 + half // 2))
    assert equalised(technology, nets, as_obstacles(fixed), narrow, result).net("n") == result.net("n")


def apart(technology):
    """Return two nets that are routed one by one, the second with a wire and two vias less, and their routes."""
    lower, upper = (conductor.name for conductor in technology.conductors[1:3])
    ends = [[(lower, -9000, 0), (upper, 0, 2000)], [(lower, -9000, 6000), (lower, -2000, 6000)]]
    pads = [[Terminal(layer, kdb.Box(x - 200, y - 200, x + 200, y + 200)) for layer, x, y in its] for its in ends]
    nets = [NetRequest(name, tuple(its)) for name, its in zip("pn", pads, strict=True)]
    result = route(technology, nets, {}, AREA, [lower, upper], RouteOptions())
    result = replace(result, mirrored=(Mirrored(("p", "n"), exact=False, reason="a test"),))
    return nets, result, StubRoom((AREA.left, AREA.bottom, AREA.right, AREA.top), [lower, upper])


@pytest.mark.parametrize("process", ["sky130A", "gf180mcuD", "sg13g2"])
def test_a_stub_becomes_longer_before_the_net_gets_another(process):
    technology = load(process)
    nets, result, room = apart(technology)
    loading = Loading(technology, nets, {}, room, result)
    start = loading.net("n").load()
    for more in (200, 350, 450):  # [aF]
        loading.net("n").add_load(start + more)
    stubs = loading.stubs["n"]
    assert len(stubs) == 3
    assert all(one.points[-1] == next_one.points[0] for one, next_one in pairwise(stubs))
    assert all(one.points[0][0] == one.points[-1][0] for one in stubs) or all(
        one.points[0][1] == one.points[-1][1] for one in stubs
    )
    assert faults(technology, nets, loading.result(), (), AREA) == []
    again = Loading(technology, nets, {}, room, loading.result())
    assert again.net("n").remove_stubs()
    assert again.net("n").load() == pytest.approx(start)
    assert again.result().net("n") == result.net("n")


@pytest.mark.parametrize("process", ["sky130A", "gf180mcuD", "sg13g2"])
@pytest.mark.parametrize("current_ma", [None, 0.1])
def test_the_net_with_fewer_vias_gets_as_many_unless_its_vias_must_carry_a_current(process, current_ma):
    technology = load(process)
    nets, result, room = apart(technology)
    nets[1] = replace(nets[1], current_ma=current_ma)
    before = [result.net(name).via_count for name in "pn"]
    equal = equalised(technology, nets, {}, room, result)
    assert before[0] > before[1]
    assert [equal.net(name).via_count for name in "pn"] == [before[0], before[1 if current_ma else 0]]
    assert all(via.columns * via.rows == 2 for via in equal.net("n").vias)
    assert faults(technology, nets, equal, (), AREA) == []


def load_of(technology, net):
    """Return the capacitance of a net's wires to the substrate, by KLayout's areas and perimeters. [aF]"""
    total = 0.0
    for conductor in technology.conductors:
        drawn = kdb.Region([kdb.Box(*rect) for layer, rect in net.metal if layer == conductor.name]).merged()
        total += drawn.area() * technology.dbu_um**2 * conductor.area_af_um2
        total += drawn.perimeter() * technology.dbu_um * conductor.fringe_af_um
    return total


def test_pins_at_different_heights_get_wires_that_are_mirror_images_past_both():
    """The rails of a pair that is drawn in one row: each net has its via at its own height."""
    rails = [("p", 0), ("n", 700)]
    nets = [
        NetRequest(
            name,
            (
                Terminal("met1", kdb.Box(-4000, y, 4000, y + 300)),
                Terminal("met1", kdb.Box(sign * 7000 - 150, 6000, sign * 7000 + 150, 6300)),
            ),
            mirror_of="p" if name == "n" else None,
        )
        for (name, y), sign in zip(rails, (-1, 1), strict=True)
    ]
    result = route(SKY, nets, {}, AREA, LAYERS, RouteOptions(axis_x=0))
    assert result.failed == ()
    ((_, reason),) = result.unmirrored
    assert "different heights" in reason
    assert faults(SKY, nets, result, (), AREA) == []
    one, other = result.net("p"), result.net("n")
    assert (one.wire_length, len(one.vias)) == (other.wire_length, len(other.vias))
    assert sorted((w.layer, sorted((-x, y) for x, y in w.points)) for w in one.wires) == sorted(
        (w.layer, sorted(w.points)) for w in other.wires
    )


@pytest.mark.parametrize("lower", [(), (-620,)])
def test_no_wire_past_both_heights_ends_just_beyond_a_rail_that_may_hold_cuts(lower):
    """In gf180mcuD narrow metal reaches 0.06 um beyond a via at its end (V1.4b); the rails are just as wide as vias."""
    process = load("gf180mcuD")
    nets = []
    for name, rows, side in (("p", (0, *lower), -1), ("n", (45,), 1)):
        ends = [kdb.Box(5000 * side - 3000, y, 5000 * side + 3000, y + 280) for y in rows]
        ends.append(kdb.Box(side * 7000 - 150, 6000, side * 7000 + 150, 6300))
        group = ["rails"] * len(rows) + [""]
        terminals = tuple(Terminal("Metal2", box, its) for box, its in zip(ends, group, strict=True))
        nets.append(NetRequest(name, terminals, mirror_of="p" if name == "n" else None))
    result = route(process, nets, {}, AREA, ["Metal2", "Metal3", "Metal4"], RouteOptions(axis_x=0))
    assert result.failed == ()
    for net in nets:
        drawn = kdb.Region([kdb.Box(*rect) for layer, rect in result.net(net.name).metal if layer == "Metal2"]).merged()
        for rail in (kdb.Region(terminal.box) for terminal in net.terminals[:-1]):
            beyond = (drawn.interacting(rail) - rail).merged()
            assert all(min(piece.bbox().height(), piece.bbox().width()) >= 60 for piece in beyond.each())


@pytest.mark.parametrize("seed", range(6))
def test_pairs_with_rails_at_random_heights_are_connected_whatever_is_mirrored(seed):
    """Rails of modules on the axis, and pins of modules at its two sides; the oracle traces what is drawn."""
    draw = random.Random(seed)
    ends, fixed = {"p": [], "n": []}, []
    for number in range(3):
        y, reach = 4000 * number, draw.randrange(2000, 4500, 5)
        fixed += [(layer, kdb.Box(-reach - 300, y - 900, reach + 300, y + 2100), None) for layer in ("met2", "met3")]
        for name, up in zip(draw.sample(["p", "n"], 2), (0, draw.randrange(600, 1500, 5)), strict=True):
            ends[name].append(Terminal("met1", kdb.Box(-reach, y + up, reach, y + up + 300)))
    for number in range(2):
        x, y = draw.randrange(6000, 9000, 5), 4000 * number + draw.randrange(0, 3000, 5)
        for name, side in (("p", -x), ("n", x)):
            ends[name].append(Terminal("met1", kdb.Box(side - 300, y, side + 300, y + 300)))
    nets = [NetRequest(name, tuple(its), mirror_of="p" if name == "n" else None) for name, its in ends.items()]
    result = route(SKY, nets, as_obstacles(fixed), AREA, LAYERS, RouteOptions(axis_x=0))
    assert result.failed == ()
    assert faults(SKY, nets, result, fixed, AREA) == []


def test_ways_start_at_wires_that_both_nets_have_not_at_what_leads_to_one_pin():
    """Legs lead from rails at y = 0 and 1000 to a wire past both, 4 um away; the second pin lies below the legs."""
    ends = {
        name: [Terminal("met1", kdb.Box(-2000, y, 2000, y + 300))]
        + [
            Terminal("met1", kdb.Box(side * x - 150, up, side * x + 150, up + 300))
            for x, up in ((9000, 150), (4000, -1500))
        ]
        for name, y, side in (("p", 0, -1), ("n", 1000, 1))
    }
    over = [(layer, kdb.Box(-6000, -300, 6000, 1600), None) for layer in ("met2", "met3")]
    between = [("met1", kdb.Box(x, 580, x + 3500, 720), None) for x in (-6000, 2500)]
    nets = [NetRequest(name, tuple(its), mirror_of="p" if name == "n" else None) for name, its in ends.items()]
    result = route(SKY, nets, as_obstacles([*over, *between]), AREA, LAYERS, RouteOptions(axis_x=0))
    assert result.failed == ()
    assert faults(SKY, nets, result, [*over, *between], AREA) == []


@pytest.mark.parametrize("obstacle", [None, kdb.Box(1200, 2000, 8000, 6000)])
def test_a_symmetric_net_is_its_own_image_and_keeps_to_obstacles_of_one_side(obstacle):
    ends = [kdb.Box(-3000, 0, 3000, 300), kdb.Box(-7000, 8000, -5000, 8300), kdb.Box(5000, 8000, 7000, 8300)]
    net = NetRequest("tail", tuple(Terminal("met1", box) for box in ends), symmetric=True)
    fixed = [] if obstacle is None else [(layer, obstacle, None) for layer in ("met1", "met2")]
    result = route(SKY, [net], as_obstacles(fixed), AREA, LAYERS, RouteOptions(axis_x=0))
    assert result.failed == ()
    assert [(each.nets, each.exact, each.reason) for each in result.mirrored] == [(("tail",), True, "")]
    assert differs(shapes(result, "tail"), shapes(result, "tail", 0)) == 0
    assert faults(SKY, [net], result, fixed, AREA) == []


@pytest.mark.parametrize("blocked", [False, True])
def test_the_way_to_a_port_on_one_side_has_an_image_that_ends_where_there_is_room_for_it(blocked):
    ends = [kdb.Box(-3000, 0, 3000, 300), kdb.Box(-7000, 8000, -5000, 8300), kdb.Box(5000, 8000, 7000, 8300)]
    port = kdb.Box(-11800, 5000, -11000, 5300)
    net = NetRequest("clk", tuple(Terminal("met1", box) for box in (*ends, port)), symmetric=True)
    fixed = [(layer, kdb.Box(10000, 4500, 12000, 5800), None) for layer in LAYERS if blocked]
    result = route(SKY, [net], as_obstacles(fixed), AREA, LAYERS, RouteOptions(axis_x=0))
    assert result.failed == ()
    assert [(each.exact, bool(each.reason)) for each in result.mirrored] == [(not blocked, blocked)]
    assert (differs(shapes(result, "clk"), shapes(result, "clk", 0)) == 0) is not blocked
    assert faults(SKY, [net], result, fixed, AREA) == []


@pytest.mark.parametrize("mirrored", ["net", "pair"])
def test_a_way_between_two_terminals_without_images_gets_no_image_that_would_touch_nothing(mirrored):
    """A long rail on the right is joined at its left end, and a terminal beyond it at its right end."""
    ends = [Terminal("met1", kdb.Box(x - 300, y, x + 300, y + 300)) for x in (-3000, 3000) for y in (0, 1500)]
    right = [Terminal("met1", kdb.Box(4000, 3000, 9500, 3300)), Terminal("met1", kdb.Box(10000, 6000, 10400, 6300))]
    nets = [NetRequest("n", (*ends, *right), symmetric=True)]
    if mirrored == "pair":
        right.append(Terminal("met1", kdb.Box(2700, 9000, 3300, 9300)))
        left = Terminal("met1", kdb.Box(-3300, 9000, -2700, 9300))
        nets = [NetRequest("p", (*ends[:2], left)), NetRequest("n", (*ends[2:], *right), mirror_of="p")]
    result = route(SKY, nets, {}, AREA, LAYERS, RouteOptions(axis_x=0))
    assert result.failed == ()
    assert faults(SKY, nets, result, (), AREA) == []
    assert [(each.exact, "joins anything" in each.reason) for each in result.mirrored] == [(False, True)]


@pytest.mark.parametrize("odd", [False, True])
def test_a_via_gets_two_cuts_alone_where_the_net_is_no_mirror_image_anyway(odd):
    """Left of the axis walls leave room for a single cut, and none for the image of a wire to one more terminal."""
    ends = [Terminal(layer, kdb.Box(x - 160, -160, x + 160, 160)) for x in (-3000, 3000) for layer in ("met1", "met2")]
    more = [Terminal("met1", kdb.Box(6000, 1000, 6320, 1320))] if odd else []
    walls = [kdb.Box(-4000, -1000, -3300, 1000), kdb.Box(-3300, 300, -2700, 1000), kdb.Box(-3300, -1000, -2700, -300)]
    gate = [kdb.Box(-2700, -1000, -2560, -215), kdb.Box(-2700, 215, -2560, 1000)]
    fixed = [("met1", wall, None) for wall in (*walls, *gate)]
    fixed += [("met2", wall, None) for wall in (*walls, kdb.Box(-2700, -1000, -2000, 1000))]
    fixed += [(layer, kdb.Box(-7000, -3000, -5000, 14000), None) for layer in ("met1", "met2")]
    net = NetRequest("tail", (*ends, *more), symmetric=True)
    result = route(SKY, [net], as_obstacles(fixed), AREA, ["met1", "met2"], RouteOptions(axis_x=0))
    cuts = {via.x: via.columns * via.rows for via in result.net("tail").vias if abs(abs(via.x) - 3000) < 300}
    assert cuts == ({-3000: 1, 3000: 2} if odd else {-3000: 1, 3000: 1}), cuts
    assert faults(SKY, [net], result, fixed, AREA) == []


def test_two_pins_that_are_images_of_each_other_are_joined_straight_across_the_axis():
    ends = [kdb.Box(x, 0, x + 300, 300) for x in (-5000, 4700)]
    net = NetRequest("tail", tuple(Terminal("met1", box) for box in ends), symmetric=True)
    result = route(SKY, [net], {}, AREA, ["met1"], RouteOptions(axis_x=0))
    assert result.mirrored[0].exact
    assert 9400 <= result.net("tail").wire_length <= 10000
    assert faults(SKY, [net], result, (), AREA) == []


def test_a_symmetric_net_that_finds_no_symmetric_way_is_routed_all_the_same():
    ends = [kdb.Box(-3000, 0, 3000, 300), kdb.Box(-3000, 6000, 3000, 6300)]
    net = NetRequest("tail", tuple(Terminal("met1", box) for box in ends), symmetric=True)
    wall = [("met1", kdb.Box(-13000, 2000, 2000, 2300), None)]
    result = route(SKY, [net], as_obstacles(wall), AREA, ["met1"], RouteOptions(axis_x=0))
    assert result.failed == ()
    assert [(each.exact, bool(each.reason)) for each in result.mirrored] == [(False, True)]
    assert faults(SKY, [net], result, wall, AREA) == []


def test_a_pair_without_a_symmetric_way_is_routed_apart_and_reported():
    left = (Terminal("met1", kdb.Box(-6000, 0, -5700, 300)), Terminal("met1", kdb.Box(-6000, 6000, -5700, 6300)))
    right = tuple(Terminal("met1", kdb.Box(5700, t.box.bottom, 6000, t.box.top)) for t in left)
    nets = [NetRequest("p", left), NetRequest("n", right, mirror_of="p")]
    # p passes its wall on the outside only, n its wall on the inside only
    fixed = [("met1", kdb.Box(-9000, 3000, 0, 3300), None), ("met1", kdb.Box(500, 3000, 12000, 3300), None)]
    area = kdb.Box(-12000, -1000, 12000, 8000)
    result = route(SKY, nets, as_obstacles(fixed), area, ["met1"], RouteOptions(axis_x=0))
    assert result.failed == ()
    ((net, reason),) = result.unmirrored
    assert net == "n"
    assert "there is no symmetric way" in reason
    assert faults(SKY, nets, result, fixed, area) == []


def test_impossible_mirror_requests_are_refused():
    left, right = boxes(0)
    nets = [NetRequest("p", left, mirror_of="n"), NetRequest("n", right, mirror_of="p")]
    with pytest.raises(GeometryError, match=r"'p' is to mirror 'n'.*axis_x is not given"):
        route(SKY, nets, {}, AREA, LAYERS)
