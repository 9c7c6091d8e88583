"""Routing that cannot come out otherwise is not repeated."""

from types import SimpleNamespace

import pytest

from layoutkit.flow import placing
from layoutkit.flow.routing_job import Routes, RoutingJob, WantedNet
from layoutkit.route.negotiation import NOT_TRIED
from layoutkit.route.routes import RoutedNet, RoutingResult
from layoutkit.technology import load


@pytest.fixture
def calls(monkeypatch):
    """Every routing of a placement whose supply finds a way only where it is narrow, and whose net d finds none."""
    technology = load("gf180mcuD")
    job = RoutingJob(technology, (WantedNet("vss", (), 800, 1), WantedNet("d", (), None, 1)), ("metal2",), None, ())
    done = []

    def routed(_layout, _cell, job, essential=()):
        wide = job.nets[0].width == 800
        done.append((wide, essential))
        vss = RoutedNet("vss", success=not wide, reason="blocked")
        d = RoutedNet("d", success=False, reason=NOT_TRIED if wide and essential else "blocked")
        return Routes(RoutingResult((vss, d), 0 if wide and essential else 1, (0, 0, 0)), None)

    monkeypatch.setattr(placing, "find_routes", routed)
    monkeypatch.setattr(placing, "narrower_supplies", lambda _, names: {"vss": 400} if "vss" in names else {})
    placed = SimpleNamespace(technology=technology, layout=None, cell=None)
    routes = placing._routed_placement(placing.TriedPlacement(placed, job, None, None, ()))[1]
    assert [net.name for net in routes.result.failed] == ["d"]
    return done


def test_narrow_supplies_are_routed_once_a_placement(calls):
    assert calls == [(True, ("vss",)), (False, ()), (True, ())]
