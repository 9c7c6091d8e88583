"""Where wires with a current lie, and where they land on metal of modules. sky130: met2 carries 2.8 mA/um."""

import klayout.db as kdb
import pytest

from layoutkit.flow.routing import find_routes
from layoutkit.flow.routing_job import Endpoint, RoutingJob, WantedNet, routing_conductors, wiring_conductors
from layoutkit.route.net_flows import Draw
from layoutkit.technology import load

SKY = load("sky130A")


def routed(metal, pins, current_ma, above=()):
    """Return the metal on each conductor that joins pins of met2, whose current flows to a port at the right.

    Args:
        metal: Boxes of met2 that are there already. [dbu]
        pins: Each with the current that it draws. [mA]
        current_ma: That of the net.
        above: Boxes of foreign met3. [dbu]
    """
    layout = kdb.Layout()
    layout.dbu = SKY.dbu_um
    cell = layout.create_cell("TOP")
    port = kdb.Box(30_000, 0, 32_000, 5000)
    for box in (*metal, *(box for box, _ in pins), port):
        cell.shapes(SKY.layer(layout, "met2")).insert(box)
    for box in above:
        cell.shapes(SKY.layer(layout, "met3")).insert(box)
    ends = [(box, Draw(current, 0.0)) for box, current in pins] + [(port, Draw(port=True))]
    points = tuple(
        Endpoint("met2", box.center().x, box.center().y, (box.left, box.bottom, box.right, box.top), draw)
        for box, draw in ends
    )
    net = WantedNet("n", points, None, 1, current=current_ma / 1e3)
    job = RoutingJob(SKY, (net,), ("met2", "met3"), kdb.Box(-3000, -6000, 36_000, 12_000), ())
    [found] = find_routes(layout, cell, job).result.nets
    assert found.success
    drawn = {layer: kdb.Region([kdb.Box(*rect) for at, rect in found.metal if at == layer]) for layer, _ in found.metal}
    return drawn.get("met2", kdb.Region())


@pytest.mark.parametrize(("current", "lands_on_ring"), [(2.8, False), (0.3, True)])
def test_wires_pass_a_ring_that_does_not_carry_the_current_of_the_devices_inside(current, lands_on_ring):
    """A ring of 0.2 um lies between a rail of 2 um and the port; metal of 0.14 um joins the two."""
    rail, ring, joint = (
        kdb.Box(0, 0, 10_000, 2000),
        kdb.Box(12_000, -3000, 12_200, 6000),
        kdb.Box(9000, 900, 13_000, 1040),
    )
    drawn = routed([joint], [(rail, current), (ring, 0.0)], current)
    assert [not (drawn & kdb.Region(box)).is_empty() for box in (rail, ring)] == [not lands_on_ring, lands_on_ring]


def test_rails_that_touch_get_wires_of_their_own_where_one_does_not_carry_both_currents():
    """Two rails of 0.5 um carry 1.4 mA each, which is what the devices at each of them draw."""
    rails = [kdb.Box(0, 0, 8000, 500), kdb.Box(8000, 0, 16_000, 500)]
    drawn = routed([], [(rail, 1.4) for rail in rails], 2.8)
    assert all(not (drawn & kdb.Region(rail)).is_empty() for rail in rails)
    nearer = routed([], [(rail, 0.6) for rail in rails], 1.2)
    assert (nearer & kdb.Region(rails[0])).is_empty()


def test_a_wire_to_a_rail_is_no_wider_than_the_rails_current_needs_where_others_draw_more():
    """A rail of 0.44 um lies between two foreign ones, 0.15 um away, below foreign met3.

    It draws 1.2 mA of 5.6 mA. A quarter of these, 1.4 mA, need 0.5 um, which do not fit there; 1.2 mA need 0.43 um.
    """
    rail, other = kdb.Box(0, 0, 6000, 440), kdb.Box(10_000, 6000, 14_000, 10_000)
    fence = [kdb.Box(0, -1000, 8000, -150), kdb.Box(0, 590, 8000, 1400), kdb.Box(-2000, -1000, -300, 1400)]
    drawn = routed(fence, [(rail, 1.2), (other, 4.4)], 5.6, above=[kdb.Box(-2000, -1000, 8000, 1400)])
    assert not (drawn & kdb.Region(rail)).is_empty()


def test_currents_that_need_very_wide_wires_get_a_thick_conductor():
    """sg13g2: Metal2 to Metal5 carry 2 mA/um, so that 12 mA need 6 um, and 0.8 um of TopMetal1; sky130's met5 is 1.5
    times as thick as met4 only."""
    process = load("sg13g2")
    usual = [each.name for each in routing_conductors(process)]
    assert [each.name for each in wiring_conductors(process, {"out": 0.009})] == usual
    assert [each.name for each in wiring_conductors(process, {"out": 0.012})] == [*usual, "TopMetal1"]
    sky = load("sky130A")
    assert wiring_conductors(sky, {"out": 0.1}) == routing_conductors(sky)
