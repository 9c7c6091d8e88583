"""The frame of a routed cell, moved inwards: how far is arithmetic, the rules and the nets are judged by KLayout."""

from dataclasses import replace
from math import ceil
from types import SimpleNamespace

import klayout.db as kdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutkit.drc.check import check
from layoutkit.errors import LayoutkitError
from layoutkit.extract.connectivity import DrawnLayers, Nets
from layoutkit.flow import routing
from layoutkit.flow.inward_moves import Way
from layoutkit.flow.matched_wires import Obstacle
from layoutkit.flow.port_frame import PortNet, draw_frame, erase_frame, plan_frame
from layoutkit.flow.routing import draw_job, find_routes
from layoutkit.flow.routing_job import Endpoint, RoutingJob, WantedNet, routing_conductors
from layoutkit.flow.tight_frame import FREE, FramedCell, Kept, Squeeze, tighten
from layoutkit.route import RoutingResult, Via
from layoutkit.route.metal import pads as via_pads
from layoutkit.route.routing_stack import make_stack
from layoutkit.technology import load
from thorough import examples

CHANNEL = 6000  # dbu: room for many tracks in every process here


def routed(process, pins, ports, core, style="rails", image_of=(), *, max_aspect=None, metal=(), **options):
    """Return a cell with pins on the second conductor, wired to a frame, its routes, and the frame it had before.

    ``image_of`` holds pairs of a net and the one that it should be the mirror image of, ``max_aspect`` the largest
    aspect that the frame may be tightened to, ``metal`` more boxes on the conductor of the pins.
    """
    layout = kdb.Layout()
    layout.dbu = process.dbu_um
    cell = layout.create_cell("cell")
    conductor = process.conductors[1]
    for box in (*pins.values(), *metal):
        cell.shapes(process.layer(layout, conductor.layer)).insert(box)
    frame = replace(plan_frame(process, core, ports, CHANNEL, style), max_aspect=max_aspect)
    draw_frame(layout, cell, process, frame)
    ends = {name: [Endpoint(conductor.name, b.center().x, b.center().y, rect(b))] for name, b in pins.items()}
    for port, box in frame.terminals:
        ends[port.name].append(Endpoint(port.layer, box.center().x, box.center().y, rect(box)))
    images = dict(image_of)
    nets = tuple(WantedNet(name, tuple(points), None, 1, images.get(name)) for name, points in sorted(ends.items()))
    layers = tuple(each.name for each in routing_conductors(process))
    job = RoutingJob(process, nets, layers, frame.wiring, (), frame=frame, **options)
    routes = find_routes(layout, cell, job)
    erase_frame(layout, cell, process, frame)
    with pytest.raises(LayoutkitError, match="cell 'cell' does not hold the frame of the request"):
        draw_job(layout, cell, job, routes)
    assert cell.bbox() == sum([*pins.values(), *metal], kdb.Box())
    draw_frame(layout, cell, process, frame)
    draw_job(layout, cell, job, routes)
    return layout, routes, frame


def rect(box):
    return box.left, box.bottom, box.right, box.top


def pads(process, count, step=3000):
    """Return ``count`` pins in a row, 3 um apart, each large enough for any via."""
    side = 1000 // (2 * process.grid) * 2 * process.grid
    return {f"n{i}": kdb.Box(step * i, 0, step * i + side, side) for i in range(count)}


@pytest.mark.parametrize("technology", ["sky130A", "gf180mcuD", "sg13g2"])
def test_what_no_wire_needs_is_taken_out_of_the_frame(technology):
    process = load(technology)
    pins = pads(process, 2)
    core = sum(pins.values(), kdb.Box()).enlarged(600, 600)
    ports = [PortNet("n0", (pins["n0"],), "ground"), PortNet("n1", (pins["n1"],), side="right")]
    layout, routes, frame = routed(process, pins, ports, core)
    tight = routes.frame
    assert frame.boundary.left <= core.left - CHANNEL
    assert (tight.boundary.left, tight.boundary.top) == (core.left, core.top)  # no wire, no port, no rail there
    (rail,) = tight.of("n0")
    assert rail.box.height() == frame.of("n0")[0].box.height()
    gap = pins["n1"].bottom - rail.box.top
    space = process.conductors[1].space  # to the pin of the other net; a via on the rail may need a little more
    assert space <= gap < 1.5 * space
    (port,) = tight.of("n1")
    assert port.pin.right == tight.boundary.right < frame.boundary.right - CHANNEL // 2
    assert sum(net.wire_length for net in routes.result.nets) < 2 * CHANNEL
    assert check(layout, layout.top_cell(), process).summary()["violations"] == []


@pytest.mark.parametrize("axis", [None, 3500])
@pytest.mark.parametrize("size", [(7000, 3000), (7000, 18000)])
def test_the_longer_sides_of_a_frame_stay_where_the_cell_would_get_too_long(size, axis):
    process = load("sky130A")
    pins = pads(process, 2, 6000)
    core = kdb.Box(0, -600, size[0], size[1] - 600)
    ports = [PortNet("n0", (pins["n0"],), side="left"), PortNet("n1", (pins["n1"],), side="right")]
    images = [("n1", "n0")] if axis else ()

    def sides(**options):
        layout, routes, _ = routed(process, pins, ports, core, image_of=images, axis_x=axis, **options)
        assert check(layout, layout.top_cell(), process).summary()["violations"] == []
        assert core.inside(routes.frame.boundary)
        return sorted((routes.frame.boundary.width(), routes.frame.boundary.height()))

    shorter, longer = sides()
    for max_aspect in (1.3, 1.7):
        assert longer > 1.7 * shorter
        kept = sides(max_aspect=max_aspect)
        assert kept[1] == longer
        assert 0 <= kept[0] - ceil(longer / max_aspect) <= 2 * process.grid
    assert sides(max_aspect=longer / shorter) == [shorter, longer]


def test_only_metal_that_is_too_far_inside_to_limit_a_move_is_left_out(monkeypatch):
    process = load("sky130A")
    pins = pads(process, 4)
    core = sum(pins.values(), kdb.Box()).enlarged(600, 600)
    sides = ("left", "right", "top", "bottom")
    ports = [PortNet(*each, side=side) for each, side in zip(((n, (b,)) for n, b in pins.items()), sides, strict=True)]

    def found(beyond=None):
        if beyond is not None:
            monkeypatch.setattr(Squeeze, "hindering", lambda _: beyond)
        return routed(process, pins, ports, core)[1]

    as_it_is, with_all, with_none = found(), found(-FREE), found(FREE)
    assert as_it_is == with_all
    assert with_none.frame.boundary != with_all.frame.boundary


@pytest.mark.parametrize("technology", ["sky130A", "gf180mcuD", "sg13g2"])
def test_nets_that_should_be_mirror_images_are_equally_long_after_the_frame_has_moved(technology):
    """Without an axis they cannot be; the sides of the frame move inwards by unequal distances."""
    process = load(technology)
    pins = pads(process, 3, 6000)
    core = kdb.Box(-600, -600, 20000, 8000)
    ports = [PortNet("n0", (pins["n0"],), side="left"), PortNet("n1", (pins["n1"],), side="right")]
    layout, routes, frame = routed(process, pins, ports, core, image_of=[("n1", "n0")])
    assert routes.frame.boundary.width() < frame.boundary.width()
    lengths = [routes.result.net(name).wire_length for name in ("n0", "n1")]
    assert max(lengths) - min(lengths) <= 0.005 * max(lengths)
    (measured,) = routes.mirrored
    assert abs(measured.capacitances[0] - measured.capacitances[1]) <= 0.005 * max(measured.capacitances)
    assert check(layout, layout.top_cell(), process).summary()["violations"] == []


@pytest.mark.parametrize("technology", ["sky130A", "gf180mcuD", "sg13g2"])
@pytest.mark.parametrize("below", [200, 1000, 1100, 1600])
def test_a_rail_touches_the_strap_of_a_tap_ring_of_its_net_or_keeps_its_distance(technology, below):
    """``below`` [dbu] lies the edge of the core below the strap; the rail is 1000 wide."""
    process = load(technology)
    space = process.conductors[1].space
    pins = {"n0": kdb.Box(0, 0, 12000, 400), "n1": kdb.Box(0, 3000, 1000, 4000)}
    core = kdb.Box(-600, -below, 12600, 5000)
    ports = [PortNet("n0", (pins["n0"],), "ground"), PortNet("n1", (pins["n1"],), side="right")]
    layout, routes, _ = routed(process, pins, ports, core)
    (rail,) = routes.frame.of("n0")
    gap = -rail.box.top
    assert rail.box.bottom == routes.frame.boundary.bottom
    assert gap == below - 1000 if below != 1100 else space <= gap < 2 * space  # 100 would be too near
    assert (not routes.result.net("n0").vias) == (below <= 1000)
    assert check(layout, layout.top_cell(), process).summary()["violations"] == []
    metal = DrawnLayers(layout.top_cell(), process).wiring
    nets = Nets(metal.regions, metal.joins, layout.dbu)
    places = rail.label, kdb.Point(6000, 200)
    assert len({nets.at(process.conductors[1].name, place).cluster_id for place in places}) == 1


@pytest.mark.parametrize(("gap", "onto", "faults"), [(210, 30, 1), (235, 30, 1), (240, 30, 0), (210, -10, 0)])
def test_a_strap_that_a_rail_lies_over_keeps_the_space_of_wide_metal(gap, onto, faults):
    """M2.e of sg13g2: 0.24 um to metal wider than 0.39 um. ``onto`` [dbu] is how far the rail covers the strap."""
    process = load("sg13g2")
    core = kdb.Box(0, 0, 12000, 5000)
    frame = plan_frame(process, core, [PortNet("vdd", (kdb.Box(0, 0, 12000, 400),), "power")], CHANNEL, "rails")
    (rail,) = frame.of("vdd")
    strap = kdb.Box(1000, rail.box.bottom + onto - 200, 9000, rail.box.bottom + onto)
    wire = kdb.Box(2000, strap.bottom - gap - 200, 6000, strap.bottom - gap)
    cell = FramedCell(
        process, frame, RoutingResult((), 0, (0, 0, 0)), {rail.layer: [(strap, "vdd"), (wire, "a")]}, [], Kept(None)
    )
    alone = cell.near_wide("vdd", 1, kdb.Region(strap))
    assert alone == 0
    assert cell.near_wide("vdd", 1, kdb.Region([kdb.Polygon(strap), kdb.Polygon(rail.box)]).merged()) == faults
    normal = 1 if onto < 0 else 0  # the rail is too near to a strap that it does not touch
    assert cell.faults_at_rails((Way(1, 1),)) == faults + normal


@pytest.mark.parametrize("technology", ["sky130A", "gf180mcuD"])
@pytest.mark.parametrize("beyond", [500, -500])
def test_a_plate_whose_slices_are_narrow_keeps_the_space_of_wide_metal(technology, beyond):
    """A bar that leaves its middle cuts it into slices; all of it is wider than the limit by ``beyond``. [dbu]"""
    process = load(technology)
    conductor = process.conductors[1]
    side = conductor.wide_width + beyond
    middle, plate = side // 2, kdb.Box(0, 0, side, side)
    pins = {"n0": kdb.Box(-9000, 0, -8000, side), "n1": kdb.Box(middle, middle - 200, 2 * side, middle + 200)}
    core = kdb.Box(-9600, -100, 2 * side + 600, 2 * side)
    ports = [PortNet("n0", (pins["n0"],), "ground"), PortNet("n1", (pins["n1"],), side="right")]
    layout, routes, _ = routed(process, pins, ports, core, metal=[plate])
    (rail,) = routes.frame.of("n0")
    assert -rail.box.top == (conductor.wide_space if beyond > 0 else conductor.space)
    assert check(layout, layout.top_cell(), process).summary()["violations"] == []


@pytest.mark.parametrize("technology", ["sky130A", "gf180mcuD", "sg13g2"])
@pytest.mark.parametrize("room", [True, False])
def test_equal_lengths_hold_a_side_only_where_there_is_no_room_to_make_them_equal_again(technology, room, monkeypatch):
    process, pins = load(technology), pads(load(technology), 2, 6000)
    pins["n1"] = pins["n1"].moved(0, 2000)  # no mirror image of the other pin
    core = kdb.Box(-4000, -600, pins["n1"].right + 6000, 8000)  # as far to one port as to the other
    ports = [PortNet("n0", (pins["n0"],), side="left"), PortNet("n1", (pins["n1"],), side="right")]
    axis = (pins["n0"].left + pins["n1"].right) // 2
    if not room:
        monkeypatch.setattr("layoutkit.flow.routing.equalised", lambda *arguments: arguments[-1])
    _, routes, _ = routed(process, pins, ports, core, image_of=[("n1", "n0")], axis_x=axis)
    (pair,) = routes.mirrored
    assert not pair.exact
    assert abs(pair.wire_lengths[0] - pair.wire_lengths[1]) <= 0.02 * max(pair.wire_lengths)
    tight = routes.frame.boundary
    sides = {(tight.left, tight.right)}
    assert sides == {(core.left, core.right)} if room else tight.width() > core.width() + CHANNEL


@pytest.mark.parametrize("right", [7600, 20000])
def test_both_sides_move_alike_only_where_the_axis_is_the_middle_of_the_frame(right, monkeypatch):
    """Elsewhere the nearer boundary would stay behind its ports."""
    process, tightened, sides = load("sky130A"), FramedCell.tightened, []
    monkeypatch.setattr(FramedCell, "tightened", lambda cell, ways: sides.append(len(ways)) or tightened(cell, ways))
    pins = pads(process, 2, 6000)
    axis = (pins["n0"].left + pins["n1"].right) // 2
    ports = [PortNet("n0", (pins["n0"],), side="left"), PortNet("n1", (pins["n1"],), side="right")]
    core = kdb.Box(2 * axis - 7600, -600, right, 8000)
    _, routes, _ = routed(process, pins, ports, core, image_of=[("n1", "n0")], axis_x=axis)
    assert max(sides) == (2 if right == 7600 else 1)
    edges = {"left": routes.frame.boundary.left, "right": routes.frame.boundary.right}
    assert {port.side: getattr(port.pin, port.side) for port in routes.frame.ports} == edges


@settings(max_examples=examples(20))
@given(
    technology=st.sampled_from(["sky130A", "gf180mcuD", "sg13g2", "generic"]),
    sides=st.lists(st.sampled_from(["left", "right", "bottom", "top"]), min_size=2, max_size=6),
    style=st.sampled_from(["rails", "ring"]),
    step=st.integers(300, 600),
    max_aspect=st.sampled_from([None, 1.5]),
)
def test_a_tight_frame_keeps_the_rules_and_every_net_in_one_piece(technology, sides, style, step, max_aspect):
    process = load(technology)
    pins = pads(process, len(sides) + 2, step * 10)
    core = sum(pins.values(), kdb.Box()).enlarged(400, 600)
    uses = ["power", "ground", *("signal" for _ in sides)]
    ports = [
        PortNet(name, (box,), use, side=None if use != "signal" else sides[i - 2])
        for i, ((name, box), use) in enumerate(zip(pins.items(), uses, strict=True))
    ]
    layout, routes, frame = routed(process, pins, ports, core, style, max_aspect=max_aspect)
    assert not routes.result.failed
    tight = routes.frame
    assert tight.boundary.inside(frame.boundary)
    assert core.inside(tight.boundary)
    assert tight.boundary.area() < frame.boundary.area()
    violations = check(layout, layout.top_cell(), process).summary()["violations"]
    assert [v["rule_id"] for v in violations] == []
    metal = DrawnLayers(layout.top_cell(), process).wiring
    nets = Nets(metal.regions, metal.joins, layout.dbu)
    found = {name: {nets.at(process.conductors[1].name, box.center()).cluster_id} for name, box in pins.items()}
    for port in tight.ports:
        assert port.pin.inside(tight.boundary)
        assert any(
            getattr(port.pin, side) == getattr(tight.boundary, side) for side in ("left", "right", "bottom", "top")
        )
        found[port.name].add(nets.at(port.layer, port.label).cluster_id)
    assert all(len(clusters) == 1 for clusters in found.values())
    assert len({next(iter(clusters)) for clusters in found.values()}) == len(pins)


def test_shorter_wires_keep_their_minimum_area():
    """A wire that was long enough alone would fall below the minimum area: it keeps its length."""
    process = load("sky130A")
    pins = pads(process, 1)
    core = pins["n0"].enlarged(600, 600)
    layout, routes, frame = routed(process, pins, [PortNet("n0", (pins["n0"],), side="top")], core)
    tight = routes.frame
    assert tight.boundary.top < frame.boundary.top
    for conductor in process.conductors:
        metal = kdb.Region(layout.top_cell().begin_shapes_rec(process.layer(layout, conductor.layer))).merged()
        assert all(polygon.area() >= conductor.area for polygon in metal.each()), conductor.name


@pytest.fixture
def given(monkeypatch):
    """Return a function that routes four pins to four ports and returns what the frame would be tightened with."""

    def route_only(process):
        found = []
        monkeypatch.setattr(
            "layoutkit.flow.routing.tighten", lambda *given: found.append(given) or (given[1], given[2])
        )
        pins = pads(process, 4, 5000)
        core = sum(pins.values(), kdb.Box()).enlarged(400, 600)
        sides = zip(pins.items(), ("left", "right", "bottom", "top"), strict=True)
        routed(process, pins, [PortNet(name, (box,), side=side) for (name, box), side in sides], core)
        return core, found[0]

    return route_only


@pytest.mark.parametrize("out", [500, 2000])
def test_wires_keep_out_of_keepouts_that_reach_beyond_the_modules(given, out):
    """Other met3 of sky130A keeps 1.34 um to the bottom plate of a capacitor, also to one at the edge (capm.11)."""
    process = load("sky130A")
    core, (_, frame, result, obstacles, _, axis) = given(process)
    keepout = Obstacle("met3", core.enlarged(out, out), "rule")
    ends = core.top + CHANNEL - 1000, core.right + CHANNEL - 1000
    metal = (("met3", (core.left, ends[0], core.right, ends[0] + 300)), ("met3", (ends[1], 0, ends[1] + 300, 900)))
    net = replace(result.nets[0], metal=(*result.nets[0].metal, *metal))
    _, moved = tighten(process, frame, replace(result, nets=(net, *result.nets[1:])), obstacles, [keepout], axis)
    met3 = [kdb.Box(*rect) for layer, rect in moved.nets[0].metal if layer == "met3"]
    assert max(box.top for box in met3) < ends[0]
    assert max(box.right for box in met3) < ends[1]
    assert not any(box.overlaps(keepout.box) for box in met3)


@pytest.mark.parametrize(("columns", "rows"), [(1, 2), (2, 1)])
def test_cuts_and_pads_of_a_via_are_no_wires_whose_middle_gets_shorter(given, columns, rows):
    """Two cuts in a row and the metal around them are more than twice as long as wide, as wires are."""
    process = load("sg13g2")
    stack = make_stack(process, [conductor.name for conductor in process.conductors], [])
    core, (_, frame, result, *rest) = given(process)
    via = Via("Via2", core.right + 2000, core.top + 2000, columns, rows)
    net = replace(result.nets[0], wires=(), metal=(), vias=(via,))
    cell = FramedCell(process, replace(frame, ports=(), cuts=()), replace(result, nets=(net,)), *rest)
    way = Way(1 if rows > 1 else 0, 1)
    whole = {box[way.axis]: box[way.axis + 2] for _, box in via_pads(stack, via)}
    spans = {span.low: span.high for _, span in cell.mobile(way)}
    assert whole.items() <= spans.items()
    assert len(spans) == 3  # two pads, and all cuts


@pytest.mark.parametrize(("same", "frames"), [(True, 2), (False, 2), (True, 1)])
def test_pairs_are_made_equal_once_where_keeping_lengths_moves_no_frame(monkeypatch, same, frames):
    """The frame moves once where all pairs that were equally long still are."""
    routed, near, apart = (RoutingResult((), rounds, (0, 0, 0)) for rounds in (1, 2, 3))
    state = routing.SettledRoutes(SimpleNamespace(wiring=kdb.Box(0, 0, 10, 10)), routed, (), {})
    search = SimpleNamespace(axis_x=0, equal_lengths=())
    loaded, moved = [], []

    def tightened(_technology, frame, _result, _obstacles, _all, kept):
        moved.append(kept)
        return frame, near if same or not kept.lengths else apart

    def equal(_technology, _requests, _obstacles, _room, given):
        loaded.append(given)
        return given

    lacks = {near: 0.3, apart: 0.1}
    monkeypatch.setattr(routing, "tighten", tightened)
    monkeypatch.setattr(
        routing, "equally_long", lambda result: {("p", "n")} if (result, frames) != (near, 2) else set()
    )
    monkeypatch.setattr(routing, "with_frame", lambda obstacles, *_: obstacles)
    monkeypatch.setattr(routing, "equalised", equal)
    monkeypatch.setattr(
        routing, "measured_mirrors", lambda _technology, result, *_: (SimpleNamespace(lacks=lacks[result]),)
    )
    best = routing.settled(RoutingJob(None, (), (), None, ()), state, search)
    assert len(moved) == frames
    assert loaded == ([near] if same else [near, apart])
    assert best.result == (near if same else apart)
