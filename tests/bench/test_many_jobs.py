"""The simulation of many workers, at its limits, where arithmetic gives the answer."""

import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def bench():
    sys.path.insert(0, str(Path(__file__).parent))
    try:
        import many_jobs
    finally:
        sys.path.remove(str(Path(__file__).parent))
    return many_jobs


def test_without_costs_the_workers_are_the_limit(bench):
    found = bench.simulate(10, [2.0], bench.Costs(0, 0), 1000)
    assert found.seconds == pytest.approx(1000 * 2.0 / 10)
    assert (found.workers, found.client, found.scheduler) == pytest.approx((1, 0, 0))


@pytest.mark.parametrize(("costs", "busy"), [((0.05, 0.01), "client"), ((0.01, 0.05), "scheduler")])
def test_with_many_workers_the_dearer_of_client_and_scheduler_is_the_limit(bench, costs, busy):
    found = bench.simulate(1000, [2.0], bench.Costs(*costs), 20_000)
    assert found.seconds == pytest.approx(20_000 * 0.05, rel=0.01)
    assert getattr(found, busy) == pytest.approx(1, abs=0.01)
    assert found.workers == pytest.approx(2 / 0.05 / 1000, rel=0.01)


def test_one_worker_waits_for_nobody(bench):
    found = bench.simulate(1, [1.0, 3.0], bench.Costs(0.05, 0.05), 100)
    assert found.workers > 0.99
    assert found.seconds == pytest.approx(200, rel=0.02)
