"""Wires keep off the gates of matched devices; a net without another way crosses them, and the report says so."""

import klayout.db as kdb
import pytest

from layoutkit.flow.keepouts import Obstacle
from layoutkit.flow.routing import Endpoint, RoutingJob, WantedNet, draw_job, find_routes
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
    assert "not equal" in routes.unequal[0].text
    over = {layer for layer in ("met2", "met3") if not (drawn(cell, layout, layer) & kdb.Region(wall)).is_empty()}
    assert over == {each.keepout.layer for each in routes.unequal}


def test_a_keepout_of_a_design_rule_is_never_given_up():
    _, _, routes = routed(kdb.Box(4000, -3000, 6000, 3000), "rule")
    assert {net.name for net in routes.result.failed} == {"a", "b"}
    assert routes.unequal == ()
