"""A net whose metal does not join its terminals is open, whatever its paths say, and is never reported as routed."""

from dataclasses import replace

import klayout.db as kdb
import pytest

from layoutkit.route import NetRequest, RouteOptions, Terminal, Via, Wire, negotiation, route
from layoutkit.route.metal import NetMetal
from layoutkit.route.routes import EqualLengths
from layoutkit.route.routing_stack import make_stack
from layoutkit.route.tree import joins_all
from layoutkit.technology import load

TECHNOLOGY = load("sky130A")
STACK = make_stack(TECHNOLOGY, ["met1", "met2"], [])
ENDS = [kdb.Box(-200, -200, 200, 200), kdb.Box(7800, 4800, 8200, 5200)]
NET = NetRequest("n", tuple(Terminal("met1", box) for box in ENDS))
WIRES = [Wire("met1", ((0, 0), (8000, 0)), 140), Wire("met2", ((8000, 0), (8000, 5000)), 140)]
VIAS = [Via("via", 8000, 0), Via("via", 8000, 5000)]


@pytest.mark.parametrize(
    ("wires", "vias", "joins"),
    [
        (WIRES, VIAS, True),
        (WIRES, VIAS[:1], False),
        (WIRES[:1], VIAS, False),
        (WIRES, [VIAS[0], replace(VIAS[1], y=6000)], False),
        ([WIRES[0], replace(WIRES[1], points=((8000, 0), (8000, 4000)))], VIAS, False),
        ([], [], False),
    ],
)
def test_metal_joins_the_terminals_only_if_it_is_one_piece_with_them(wires, vias, joins):
    assert joins_all(STACK, NET, NetMetal(wires=list(wires), vias=list(vias))) is joins


def test_terminals_of_one_group_need_no_metal():
    grouped = tuple(replace(terminal, group="metal 1") for terminal in NET.terminals)
    assert joins_all(STACK, replace(NET, terminals=grouped), NetMetal())


def test_the_router_reports_a_net_as_failed_if_its_metal_is_open(monkeypatch):
    def lengthen(_board, _net, metal, _by):
        metal.wires.pop()

    area = kdb.Box(-3000, -3000, 20000, 12000)
    other = NetRequest("m", tuple(Terminal("met1", box.moved(0, -1500)) for box in (ENDS[0], ENDS[1].moved(5000, 0))))
    nets = [NET, other]
    options = RouteOptions(equal_lengths=(EqualLengths(("n", "m")),))
    assert not route(TECHNOLOGY, nets, {}, area, ["met1", "met2"], options).failed
    monkeypatch.setattr(negotiation, "lengthen", lengthen)
    failed = route(TECHNOLOGY, nets, {}, area, ["met1", "met2"], options).failed
    assert [(net.name, net.reason) for net in failed] == [("n", "the wires found do not join all terminals")]
