"""Wires and vias of one net carry their own shares of its current: widths and cuts by hand, from sky130's limits."""

import klayout.db as kdb

from layoutkit.route import NetRequest, Terminal, route
from layoutkit.route.net_flows import Draw
from layoutkit.route.routes import Gauge
from layoutkit.technology import load

PROCESS = load("sky130A")
MET1_MA_UM = 2.8
PORT = kdb.Box(0, 20000, 3000, 23000)
FIRST, SECOND = kdb.Box(20000, 20000, 23000, 23000), kdb.Box(40000, 20000, 43000, 23000)
SHARES = ((0.39, Gauge(None)), *((part, Gauge(None, part)) for part in (1.4, 2.8, 5.6)))


def routed(first, second, obstacles=None):
    """Return the net from the port past a terminal that draws ``first`` to one that draws ``second``. [mA]"""
    terminals = (
        Terminal("met1", PORT, draw=Draw(port=True)),
        Terminal("met1", FIRST, draw=first),
        Terminal("met1", SECOND, draw=second),
    )
    net = NetRequest("n", terminals, width=2000, current_ma=5.6, shares=SHARES)
    result = route(PROCESS, [net], obstacles or {}, kdb.Box(-5000, 0, 50000, 43000), ["met1", "met2"])
    assert not result.failed
    return result.net("n")


def width_at(net, x):
    """Return the width of the net's metal on met1 where the vertical line at ``x`` cuts it. [um]"""
    metal = kdb.Region([kdb.Box(*rect) for layer, rect in net.metal if layer == "met1"]).merged()
    return sum(piece.bbox().height() for piece in (metal & kdb.Region(kdb.Box(x, 0, x + 10, 43000))).each()) / 1000


def test_a_wire_is_as_wide_as_what_flows_through_it_needs():
    net = routed(Draw(0, 4.2), Draw(0, 1.4))
    assert width_at(net, 11000) >= 5.6 / MET1_MA_UM
    assert 1.4 / MET1_MA_UM <= width_at(net, 32000) < 2.8 / MET1_MA_UM


def test_a_wire_that_others_start_from_is_widened_for_them():
    """The nearer terminal draws little; the wire to it becomes the way to the farther one, or that one has its own."""
    net = routed(Draw(0, 1.4), Draw(0, 4.2))
    assert width_at(net, 11000) >= 5.6 / MET1_MA_UM - 0.01
    assert width_at(net, 32000) >= 4.2 / MET1_MA_UM


def test_what_draws_nothing_gets_a_usual_wire_and_what_is_unknown_one_for_the_whole_current():
    assert width_at(routed(Draw(0, 5.6), Draw()), 32000) == PROCESS.to_um(PROCESS.conductor("met1").width)
    assert width_at(routed(Draw(0, 5.6), None), 32000) >= 5.6 / MET1_MA_UM


def test_vias_have_cuts_for_what_flows_through_them():
    """A wall on met1 makes the wires climb to met2; a cut of via carries 0.29 mA, so 2.8 mA need 10 of them."""
    wall = {"met1": [(kdb.Box(30000, 0, 31000, 43000), None)]}
    net = routed(Draw(0, 2.8), Draw(0, 2.8), wall)
    assert len(net.vias) == 2
    assert all(10 <= via.columns * via.rows < 20 for via in net.vias)
