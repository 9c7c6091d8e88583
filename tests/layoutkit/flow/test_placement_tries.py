"""Routing that cannot come out otherwise is not repeated."""

from dataclasses import replace
from itertools import count
from types import SimpleNamespace

import klayout.db as kdb
import pytest

from layoutkit.flow import placing
from layoutkit.flow.design import LayoutRequest
from layoutkit.flow.existing_metal import SupplyFeeds
from layoutkit.flow.matched_wires import MirroredNets, Obstacle
from layoutkit.flow.room import MOST_TRIES, Room, uncrowded
from layoutkit.flow.routing_job import Endpoint, Routes, RoutingJob, WantedNet
from layoutkit.route import RoutedNet, RoutingResult
from layoutkit.route.negotiation import NOT_TRIED
from layoutkit.technology import load


@pytest.fixture
def calls(monkeypatch):
    """Every routing of a placement whose supply finds a way only where it is narrow, and whose net d finds none."""
    technology = load("gf180mcuD")
    job = RoutingJob(technology, (WantedNet("vss", (), 800, 1), WantedNet("d", (), None, 1)), ("metal2",), None, ())
    done = []

    def routed(_layout, _cell, job, essential=(), _metal=None, **_):
        wide = job.nets[0].width == 800
        done.append((wide, essential))
        vss = RoutedNet("vss", success=not wide, reason="blocked")
        d = RoutedNet("d", success=False, reason=NOT_TRIED if wide and essential else "blocked")
        return Routes(RoutingResult((vss, d), 0 if wide and essential else 1, (0, 0, 0)), None)

    monkeypatch.setattr(placing, "find_routes", routed)
    monkeypatch.setattr(placing, "narrower_supplies", lambda _, names: {"vss": 400} if "vss" in names else {})
    placed = SimpleNamespace(technology=technology, layout=None, cell=None)
    routes = placing.routed_placement(placing.TriedPlacement(placed, job, None, None, ()), None)[1]
    assert [net.name for net in routes.result.failed] == ["d"]
    return done


def test_narrow_supplies_are_routed_once_a_placement(calls):
    assert calls == [(True, ("vss",)), (False, ()), (True, ())]


PAIR = MirroredNets(("p", "n"), False, "", (100, 100), (1, 1), (1, 1), (10.0, 8.0), 1.0, 1.0)


END = Endpoint("met2", 0, 0)


@pytest.mark.parametrize(("group", "calls"), [("metal 1 1", 2), ("metal 1", 1)])
def test_supplies_that_rings_join_no_better_are_not_routed_again(monkeypatch, group, calls):
    """Both ends of a supply lie on one metal, which a resistive ring joins to the second end, or strong metal does."""
    technology, done = load("sky130A"), []
    job = RoutingJob(technology, (WantedNet("vdd", (), 800, 1, least_cuts=2),), ("met1",), None, ())
    far = replace(END, x=1)
    by_rings = SupplyFeeds({("vdd", END): "metal 1", ("vdd", far): "metal 1"}, frozenset())
    feeds = SupplyFeeds({("vdd", END): "metal 1", ("vdd", far): group}, frozenset())

    def routed(_layout, _cell, job, *_, **__):
        done.append(job.by_rings)
        return Routes(RoutingResult((RoutedNet("vdd", success=False, reason="blocked"),), 1, (0, 0, 0)), None)

    monkeypatch.setattr(placing, "find_routes", routed)
    monkeypatch.setattr(placing, "narrower_supplies", lambda *_: {})
    placed = SimpleNamespace(technology=technology, layout=None, cell=None)
    metal = SimpleNamespace(feeds=feeds, feeds_by_rings=by_rings)
    placing.routed_placement(placing.TriedPlacement(placed, job, None, None, ()), metal)
    assert done == [False, True][:calls]


@pytest.mark.parametrize(
    ("keepout", "metal", "count", "tracks"),
    [(8800, 0, 25, 0), (8900, 0, 25, 3), (8900, 0, 23, 0), (8000, 0, 25, 0), (8000, 580, 25, 3), (28_000, 0, 25, 7)],
)
def test_modules_have_room_between_them_in_the_first_try_if_wires_would_crowd_them(keepout, metal, count, tracks):
    """Ten wires of 10 um at a pitch of 0.28 um take 28 um2: 9 % of 311 um2, and 6.5 % of 430.8 um2.

    The modules take 312 um2, so room of a mean side (3.53 um) adds 624 um2. With 311 um2 free, the missing area takes
    0.19 of a side, which is 2.4 tracks; with 120 um2 free, 6.3 tracks. The middle of a wire keeps 0.21 um from metal.
    """
    technology, ends = load("sky130A"), (END, replace(END, x=10_000))
    layout = kdb.Layout()
    layout.dbu = technology.dbu_um
    cell = layout.create_cell("TOP")
    if metal:
        cell.shapes(technology.layer(layout, "met1")).insert(kdb.Box(210, 39_210, 9790, 39_210 + metal))
    nets = tuple(WantedNet(f"n{number}", ends, None, 1) for number in range(10))
    supply = WantedNet("vdd", ends, None, 1, least_cuts=2)
    area, kept = kdb.Box(0, 0, 10_000, 40_000), Obstacle("met1", kdb.Box(0, 0, 10_000, keepout), "matching")
    job = RoutingJob(technology, (*nets, supply), ("met1",), area, (kept,))
    box = SimpleNamespace(left=0, right=10_000, bottom=0, top=31_200)
    placed = SimpleNamespace(
        technology=technology, placement=SimpleNamespace(box=box), drawn=(None,) * count, cell=cell, layout=layout
    )
    assert uncrowded(Room(0, {}), placed, job).between == 280 * tracks


@pytest.mark.parametrize(("stated", "room"), [({}, 560), ({"row_gap": 0.0}, 0), ({"outline": "9x9"}, 0)])
def test_the_first_try_has_room_for_crowded_wires_unless_a_gap_or_an_outline_is_stated(monkeypatch, stated, room):
    found = placements(monkeypatch, lambda _: ((), ()), LayoutRequest(**stated), room=Room(560, {}))
    assert [each.room.between for each in found.tries] == [room]


def placements(monkeypatch, pairs_of, request=None, room=None, routed=None, nets_of=lambda _: ()):
    """Return the placement that is found where all nets have a way, unless ``routed`` returns other routes.

    ``pairs_of`` returns the pairs of a try, given its number, as they are wired and once metal is added. ``nets_of``
    returns its nets.
    """
    technology, box = load("sky130A"), SimpleNamespace(left=0, right=10, bottom=0, top=10)
    placed = SimpleNamespace(cell=None, drawn=(), placement=SimpleNamespace(box=box), technology=technology)
    numbers, latest = count(), []

    def all_routed(tried, _):
        number = next(numbers)
        result = RoutingResult(nets_of(number), 1, (0, 0, 0))
        latest[:] = [Routes(result, None, mirrored=its) for its in pairs_of(number)]
        return tried, latest[0]

    monkeypatch.setattr(placing, "place_modules", lambda *_, **__: placed)
    monkeypatch.setattr(placing, "placed_job", lambda *_: None)
    monkeypatch.setattr(placing, "uncrowded", lambda first, *_: room or first)
    monkeypatch.setattr(placing, "routed_placement", routed or all_routed)
    monkeypatch.setattr(placing, "completed", lambda *_: latest[1])
    monkeypatch.setattr(placing, "more_room", lambda room, *_: Room(room.between + 280, {}))
    monkeypatch.setattr(placing, "MetalInCell", lambda *_: None)
    monkeypatch.setattr(placing, "with_pairs_apart", lambda _, job, routes, __: (job, routes))
    design = SimpleNamespace(technology=technology, earlier=None, is_cell=True)
    return placing.find_placement(design, request or LayoutRequest())


@pytest.mark.parametrize(
    ("wires", "totals", "alike", "tries"),
    [
        ((10.0, 8.0), (30.0, 30.0), True, 1),
        ((10.0, 8.0), (30.0, 25.0), True, 2),
        ((9.0, 9.0), (30.0, 25.0), True, 1),
        ((10.0, 8.0), (), False, 1),
    ],
)
def test_pairs_that_are_equal_or_cannot_be_need_no_second_placement(monkeypatch, wires, totals, alike, tries):
    """Capacitances of a pair's wires, and of the whole nets once metal is added where there is room for it.

    The last pair has different devices on its nets.
    """
    pair = replace(PAIR, capacitances=wires)
    balanced = (replace(pair, totals=totals, alike=alike),)
    found = placements(monkeypatch, lambda _: ((pair,), balanced))
    assert len(found.tries) == tries
    assert found.routes.mirrored == balanced


def test_unequal_pairs_ask_for_one_more_placement_only(monkeypatch):
    """Each placement has one unequal pair less than the one before."""
    found = placements(monkeypatch, lambda number: ((PAIR,) * (5 - number),) * 2)
    assert len(found.tries) == 2
    assert len(found.routes.mirrored) == 4


def test_where_no_placement_lets_a_net_past_its_modules_as_many_as_possible_are_routed_in_the_last(monkeypatch):
    """Net a has no way in any try, so that every try is given up; net b has none in the first one only."""
    asked = []

    def routed(tried, _, *, patient=False):
        asked.append((tried.room.between, patient))
        names = {"a": "closed", "b": "closed" if len(asked) == 1 else NOT_TRIED, "c": NOT_TRIED}
        nets = [RoutedNet(name, success=patient and name != "a", reason=reason) for name, reason in names.items()]
        return tried, Routes(RoutingResult(tuple(nets), int(patient), (0, 0, 0)), None)

    found = placements(monkeypatch, None, routed=routed)
    assert asked == [*((280 * number, False) for number in range(MOST_TRIES)), (280 * (MOST_TRIES - 1), True)]
    assert [each.failed for each in found.tries] == [("a", "b"), *[("a",)] * (MOST_TRIES - 1)]
    assert [net.name for net in found.routes.result.failed] == ["a"]


@pytest.mark.parametrize(("stated", "tries"), [({}, 4), ({"row_gap": 0.0}, 1)])
def test_wires_too_weak_for_their_current_get_more_room_until_they_are_not(monkeypatch, stated, tries):
    """Two nets are too weak in the first three placements, though each has more room. A stated gap is kept."""

    def nets(number):
        return tuple(RoutedNet(name, success=True, weak=number < 3) for name in ("vdd", "vss"))

    found = placements(monkeypatch, lambda _: ((), ()), LayoutRequest(**stated), nets_of=nets)
    assert len(found.tries) == tries
    assert any(net.weak for net in found.routes.result.nets) == (tries == 1)
