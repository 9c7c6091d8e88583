"""Wires keep off the gates of matched devices; a net without another way crosses them, and the report says so."""

from dataclasses import replace

import klayout.db as kdb
import pytest

from layoutkit.flow import existing_metal, placing
from layoutkit.flow.design import LayoutRequest, make_design, read_circuit
from layoutkit.flow.matched_wires import Obstacle, over_gates
from layoutkit.flow.placing import find_placement
from layoutkit.flow.ports import supplies_data, weak_supplies
from layoutkit.flow.routing import draw_job, find_routes, narrower_supplies
from layoutkit.flow.routing_job import Endpoint, RoutingJob, WantedNet
from layoutkit.route.negotiation import NOT_TRIED
from layoutkit.route.routes import SingleCut
from layoutkit.technology import load

SKY = load("sky130A")
AREA = kdb.Box(-2000, -3000, 12000, 3000)


def board(*pins):
    """Return a cell with a pin of each net at each end, and the nets."""
    layout = kdb.Layout()
    layout.dbu = SKY.dbu_um
    cell = layout.create_cell("TOP")
    nets = []
    for name, y in pins:
        ends = []
        for x in (0, 10000):
            rect = (x - 200, y - 200, x + 200, y + 200)
            cell.shapes(SKY.layer(layout, "met2")).insert(kdb.Box(*rect))
            ends.append(Endpoint("met2", x, y, rect))
        nets.append(WantedNet(name, tuple(ends), None, 1))
    return layout, cell, tuple(nets)


def keepouts(box, kind):
    return tuple(Obstacle(layer, box, kind, ("M1", "M2")) for layer in ("met2", "met3", "via2"))


def drawn(cell, layout, layer):
    return kdb.Region(cell.begin_shapes_rec(SKY.layer(layout, layer))).merged()


def routed(box, kind):
    layout, cell, nets = board(("a", 0), ("b", 1500))
    job = RoutingJob(SKY, nets, ("met2", "met3"), AREA, keepouts(box, kind))
    routes = find_routes(layout, cell, job)
    draw_job(layout, cell, job, routes)
    return layout, cell, routes


def test_wires_go_around_the_body_of_a_metal_resistor_that_belongs_to_no_net():
    layout, cell, nets = board(("a", 0))
    body = kdb.Box(4000, -1000, 6000, 1000)
    for layer in ("met2", "met2.resistor"):
        cell.shapes(SKY.layer(layout, layer)).insert(body)
    job = RoutingJob(SKY, nets, ("met2",), AREA, ())
    routes = find_routes(layout, cell, job)
    assert routes.result.failed == ()
    draw_job(layout, cell, job, routes)
    near = drawn(cell, layout, "met2").interacting(kdb.Region(body.enlarged(139, 139)))
    assert str(near) == "(4000,-1000;4000,1000;6000,1000;6000,-1000)"


@pytest.mark.parametrize("kind", ["matching", "rule"])
def test_nets_go_around_keepouts_where_there_is_a_way(kind):
    box = kdb.Box(4000, -3000, 6000, 2000)
    layout, cell, routes = routed(box, kind)
    assert routes.result.failed == ()
    assert routes.unequal == ()
    for layer in ("met2", "met3", "via2"):
        assert (drawn(cell, layout, layer) & kdb.Region(box)).is_empty()


def test_a_net_without_another_way_crosses_matched_gates_and_is_reported():
    wall = kdb.Box(4000, -3000, 6000, 2800)  # leaves room above it for one wire only
    layout, cell, routes = routed(wall, "matching")
    assert routes.result.failed == ()
    crossing = {each.net for each in routes.unequal}
    assert len(crossing) == 1
    assert all(each.keepout.devices == ("M1", "M2") for each in routes.unequal)
    texts = over_gates([*routes.unequal, *routes.unequal])
    assert len(texts) == len({(each.net, each.keepout.layer) for each in routes.unequal})
    assert all("gates of M1, M2:" in text and "not equal" in text for text in texts)
    over = {layer for layer in ("met2", "met3") if not (drawn(cell, layout, layer) & kdb.Region(wall)).is_empty()}
    assert over == {each.keepout.layer for each in routes.unequal}


def test_a_keepout_of_a_design_rule_is_never_given_up():
    _, _, routes = routed(kdb.Box(4000, -3000, 6000, 3000), "rule")
    assert {net.name for net in routes.result.failed} == {"a", "b"}
    assert routes.unequal == ()


IDLE = """* an inverter and two idle devices beside it, whose rails lie close to each other
.subckt cell in m vdd vss
M1 m in vss vss nfet_01v8 L=0.5 W=1 nf=2
M2 m in vdd vdd pfet_01v8 L=0.5 W=1 nf=6
M3 m vss vss vss nfet_01v8 L=0.5 W=1 nf=1
M4 vdd vdd m vdd pfet_01v8 L=0.5 W=1 nf=1
.ends
"""


def test_supplies_are_wired_as_narrowly_as_their_rails_where_wider_wires_find_no_way(monkeypatch):
    """Where a wide supply has no way past the modules, no other net is routed before it is narrower.

    The metal of the modules is looked up once for both.
    """
    rounds, looked_up = [], []
    look_up = existing_metal.ExistingMetal
    monkeypatch.setattr(existing_metal, "ExistingMetal", lambda drawn: looked_up.append(drawn) or look_up(drawn))

    def watched(*arguments, **options):
        routes = find_routes(*arguments, **options)
        rounds.append(routes.result.iterations)
        return routes

    monkeypatch.setattr(placing, "find_routes", watched)
    request = LayoutRequest(netlist_text=IDLE, technology="sky130A")
    circuit, _ = read_circuit(request, SKY)
    tried = find_placement(make_design(request, SKY, circuit)[0], request)
    assert tried.attempts == 1
    assert rounds[0] == 0 < rounds[1]
    assert (len(rounds), len(looked_up)) == (2, 1)
    assert tried.routes.result.failed == ()
    assert any("as narrow as the rails they join" in text for text in tried.warnings)
    pins = [pin for module in tried.placed.modules.values() for pin in module.pins]
    for name in ("vdd", "vss"):
        narrowest = min(min(pin.box.width(), pin.box.height()) for pin in pins if pin.net == name)
        assert [net.width for net in tried.job.nets if net.name == name] == [narrowest]
    # each supply wants two cuts at every connection; one that has a single cut is reported with place and reason
    assert {net.name for net in tried.job.nets if net.least_cuts == 2} == {"vdd", "vss"}
    routed, weak = tried.routes.result, SingleCut("via", 1500, -250, "met2 would come too close to m", alone=True)
    nets = tuple(replace(net, single_cuts=(weak,) if net.name == "vdd" else ()) for net in routed.nets)
    supplies = supplies_data(tried.placed, replace(routed, nets=nets))
    assert [each["least_cuts"] > 1 for each in supplies] == [each["net"] != "vdd" for each in supplies]
    (text,) = weak_supplies(supplies)
    assert "supply vdd: modules depend on a single via at (1.5, -0.25) um" in text
    assert text.endswith(weak.reason)


def test_a_row_gap_is_the_room_of_the_first_try_and_grows_where_nets_find_no_way_in_it(monkeypatch):
    """Supplies are narrowed with a stated room, too; more room is given, and reported, where that is not enough."""
    request = LayoutRequest(netlist_text=IDLE, technology="sky130A", row_gap=0.28)
    circuit, _ = read_circuit(request, SKY)
    design, _ = make_design(request, SKY, circuit)
    tried = find_placement(design, request)
    assert (tried.attempts, tried.room.between, tried.routes.result.failed) == (1, 280, ())
    assert any("as narrow as the rails they join" in text for text in tried.warnings)

    routed_placement = placing.routed_placement

    def hindered(placement, metal):
        """Take away the way of net m, unless there is more room than was stated."""
        found, routes = routed_placement(placement, metal)
        nets = tuple(replace(net, success=net.name != "m") for net in routes.result.nets)
        result = routes.result if placement.room.between > 280 else replace(routes.result, nets=nets)
        return found, replace(routes, result=result)

    monkeypatch.setattr(placing, "routed_placement", hindered)
    wider = find_placement(design, request)
    given = [(each.room.rails_over, each.room.between > 280, each.failed) for each in wider.tries]
    assert given == [(True, False, ("m",)), (False, False, ("m",)), (False, True, ())]
    assert wider.warnings[-1] == "modules have more room than the row_gap of 0.28 um, with which no way was found for m"


@pytest.mark.parametrize(("width", "rounds"), [(1000, 0), (280, 1)])
def test_no_net_is_routed_where_an_essential_one_has_no_way(width, rounds):
    """A slot of 0.9 um in a keepout admits net a only as a narrow wire."""
    layout, cell, (net, other) = board(("a", 0), ("b", 1500))
    walls = [kdb.Box(4000, *ends, 6000, top) for ends, top in (((-3000,), -450), ((450,), 1000))]
    nets = (WantedNet("a", net.endpoints, width, 1), other)
    areas = tuple(each for wall in walls for each in keepouts(wall, "rule"))
    job = RoutingJob(SKY, nets, ("met2", "met3"), kdb.Box(-2000, -3000, 12000, 1900), areas)
    result = find_routes(layout, cell, job, ("a",)).result
    assert min(result.iterations, 1) == rounds
    assert len(result.failed) == (0 if rounds else 2)


@pytest.mark.parametrize(
    ("kind", "patient", "failed", "tried"),
    [("rule", False, "ab", "a"), ("rule", True, "a", "a"), ("matching", False, "", "")],
)
def test_where_a_net_has_no_way_even_over_matched_gates_the_others_wait_for_another_placement(
    kind, patient, failed, tried
):
    """Walls close every way of net a; nothing is in the way of net b."""
    layout, cell, nets = board(("a", 0), ("b", 5000))
    job = RoutingJob(SKY, nets, ("met2", "met3"), kdb.Box(-2000, -3000, 12000, 8000), ())
    walls = [kdb.Box(4000, -3000, 6000, 3000), kdb.Box(-2000, 3000, 12000, 3500)]
    job = replace(job, obstacles=tuple(each for wall in walls for each in keepouts(wall, kind)))
    routes = find_routes(layout, cell, job, patient=patient)
    assert {net.name for net in routes.result.failed} == set(failed)
    assert {net.name for net in routes.result.failed if net.reason != NOT_TRIED and net.blocked_by} == set(tried)
    assert (routes.result.iterations == 0) == (len(failed) == 2)


def test_wires_that_carry_a_stated_current_are_not_narrower_than_it_needs():
    """sky130: met2 carries 2.8 mA/um, so that 1.4 mA need 0.5 um."""
    layout, cell, (net, _) = board(("a", 0), ("b", 1500))
    for current, narrow in ((None, 400), (1.4e-3, 500)):
        job = RoutingJob(SKY, (WantedNet("a", net.endpoints, 600, 1, current=current),), ("met2", "met3"), AREA, ())
        assert narrower_supplies(job, ["a"]) == {"a": 400}
        assert narrower_supplies(job, ["b"]) == {}
        routes = find_routes(layout, cell, replace(job, nets=(replace(job.nets[0], width=400),)))
        assert {wire.width for wire in routes.result.net("a").wires} == {narrow}
