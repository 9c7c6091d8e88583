"""On which conductor ports and rails lie, and how wide they are: what their currents need. Numbers by hand."""

import klayout.db as kdb
import pytest

from layoutkit.flow.port_frame import PortNet, plan_frame
from layoutkit.flow.port_places import Strip, innermost
from layoutkit.route.routing_stack import make_stack
from layoutkit.technology import load

SKY = load("sky130A")
CORE = kdb.Box(0, 0, 50_000, 40_000)


@pytest.mark.parametrize(
    ("current_ma", "layers", "least"),
    [
        (None, {"met1"}, 0),
        (2.7, {"met1"}, 964),  # 2.8 mA/um on met1: no wider than a usual rail of 1 um
        (5.6, {"met3"}, 823),  # 2 um of met1, so that it takes met3 with 6.8 mA/um
    ],
)
def test_a_port_for_much_current_lies_where_it_needs_the_least_width(current_ma, layers, least):
    current = None if current_ma is None else current_ma / 1e3
    net = PortNet(
        "out", (kdb.Box(1000, 20_000, 1200, 20_200),), side="left", current=current, layers=frozenset({"met2"})
    )
    [port] = plan_frame(SKY, CORE, [net], 1000, "rails").ports
    assert port.layer in layers
    assert least <= port.box.height() <= least + 150 + 20


def test_rails_beside_the_modules_lie_on_the_conductor_that_needs_the_least_width():
    nets = [PortNet("vss", (kdb.Box(0, 0, 50_000, 400),), "ground", current=0.034, layers=frozenset({"met1"}))]
    [rail] = [port for port in plan_frame(SKY, CORE, nets, 1000, "rails").ports if port.rail]
    assert rail.layer == "met3"
    assert 5000 <= rail.box.height() <= 5020  # 34 mA at 6.8 mA/um
    [usual] = [
        p for p in plan_frame(SKY, CORE, [PortNet("vss", nets[0].pins, "ground")], 1000, "rails").ports if p.rail
    ]
    assert usual.layer == "met1"


@pytest.mark.parametrize(("height", "place"), [(5000, -900), (1000, -1000)])
def test_a_rail_keeps_the_space_of_wide_metal_of_which_only_a_strip_is_near(height, place):
    """sky130: met3 wider than 3 um keeps 0.4 um (m3.3d), other met3 0.3 um; foreign metal starts 1.3 um inside."""
    stack = make_stack(SKY, ["met1", "met2", "met3", "met4"], [])
    foreign = kdb.Region(kdb.Box(5000, 1300, 45_000, 1300 + height))

    def metal_in(conductor, box):
        return {"a": foreign & kdb.Region(box)} if conductor.name == "met3" else {}

    found = innermost(stack, SKY.conductor("met3"), CORE, "bottom", [Strip("vss", 0, 1000)], metal_in)
    assert found == place
