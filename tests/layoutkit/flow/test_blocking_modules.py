"""What is in the way of a net is named by the module that holds it, also where equal modules share a cell."""

from dataclasses import replace

import pytest

from layoutkit.errors import LayoutConflictError
from layoutkit.flow.design import LayoutRequest, make_design, read_circuit
from layoutkit.flow.existing_metal import with_modules
from layoutkit.flow.room import NEXT_TRACKS, Room, more_room
from layoutkit.flow.routing import Routes, find_routes, track_pitch
from layoutkit.flow.routing_job import Endpoint, WantedNet
from layoutkit.flow.shared_cells import place_design
from layoutkit.route import RoutedNet, RoutingResult
from layoutkit.route.routes import Blocker
from layoutkit.technology import load

TWO_INVERTERS = """* two equal inverters, and a switch between them
.subckt inv a y vdd vss
MP y a vdd vdd pfet_01v8 W=2u L=0.5u
MN y a vss vss nfet_01v8 W=1u L=0.5u
.ends
.subckt two a b en vdd vss
X1 a n1 vdd vss inv
X2 n2 b vdd vss inv
M1 n1 en n2 vss nfet_01v8 W=4u L=0.15u
.ends
"""


@pytest.fixture(scope="module")
def tried():
    technology = load("sky130A")
    request = LayoutRequest(None, technology.name, "", netlist_text=TWO_INVERTERS)
    circuit, _ = read_circuit(request, technology)
    return place_design(make_design(request, technology, circuit)[0], request)


@pytest.mark.parametrize("name", ["X1", "X2"])
def test_a_blocker_inside_of_a_shared_cell_names_its_instance_which_gets_more_room(tried, name):
    placed, technology = tried.placed, tried.placed.technology
    module = placed.modules[name]
    assert module.cell.name == placed.modules["X1"].cell.name != name
    pin = next(pin for pin in module.pins if pin.net in {"a", "b"})
    box = placed.place_of(module, pin.box)
    rect, at = (box.left, box.bottom, box.right, box.top), (box.center().x, box.center().y)
    failed = RoutedNet("en", success=False, blocked_by=(Blocker(pin.net, pin.layer, rect, at),))

    named = with_modules(placed.cell, technology, RoutingResult((failed,), 1, (1, 1, 1)), tried.job.modules)

    assert named.failed[0].blocked_by[0].module == name
    room = Room(NEXT_TRACKS * track_pitch(technology), {}, cover=False, rails_over=False)
    assert set(more_room(room, placed, Routes(named, placed.cell.bbox())).around) == {name}


def test_an_instance_that_is_no_module_is_named_by_its_cell(tried):
    module = tried.placed.modules["X1"]
    pin = module.pins[0]
    box = tried.placed.place_of(module, pin.box)
    rect, at = (box.left, box.bottom, box.right, box.top), (box.center().x, box.center().y)
    net = RoutedNet("en", success=False, blocked_by=(Blocker(pin.net, pin.layer, rect, at),))
    result = RoutingResult((net,), 1, (1, 1, 1))

    named = with_modules(tried.placed.cell, tried.placed.technology, result, {})

    assert named.failed[0].blocked_by[0].module == module.cell.name


@pytest.mark.parametrize("names", [["X2"], ["X1", "X2"]])
def test_a_module_that_shorts_its_nets_is_named(tried, names):
    """Both nets have an endpoint on each pin, so that the metal of the module joins them."""
    placed = tried.placed
    ends = {}
    for name in names:
        for pin in placed.modules[name].pins:
            box = placed.place_of(placed.modules[name], pin.box)
            at = Endpoint(pin.layer, box.center().x, box.center().y)
            ends.setdefault(f"{pin.net} {name}", []).append(at)
            ends.setdefault(f"{pin.net} {name} again", []).append(at)
    nets = tuple(WantedNet(name, tuple(found), None, 1) for name, found in sorted(ends.items()))
    job = replace(tried.job, nets=nets, frame=None, area=None)

    with pytest.raises(LayoutConflictError, match=f"in module {names[0]}") as refused:
        find_routes(placed.layout, placed.cell, job)

    assert set(refused.value.details["modules"]) == set(names)
