"""Route again where pairs of nets load unequally, as where a clock passes one of two mirrored nets only.

Mirrored wires alone do not prevent that: a wire of another net beside one of them may have no image. So the two nets
and the other signals keep apart when they are routed once more, and the routes in which pairs are more alike are taken.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from layoutkit.flow.pair_loads import completed
from layoutkit.flow.routing import find_routes

if TYPE_CHECKING:
    from collections.abc import Callable

    from layoutkit.flow.existing_metal import MetalInCell
    from layoutkit.flow.routing_job import Routes, RoutingJob


def with_pairs_apart(
    metal: MetalInCell, job: RoutingJob, routes: Routes, lacks: Callable[[Routes], tuple[int, ...]]
) -> tuple[RoutingJob, Routes]:
    """Return a job in which pairs that load unequally keep apart from other signals, with its routes.

    It is the same job with the same routes where no pair is unequal, or the others are no better. Supplies, and the
    nets of pairs, may lie beside any net.

    Args:
        metal: The metal of the placed cell, without the wires.
        job: What was routed.
        routes: Its routes, with the figures of ``with_equal_pairs``.
        lacks: What routes lack, which comes before how unequal pairs are.
    """
    pairs = [pair for pair in routes.mirrored if len(pair.nets) == 2]
    unequal = {net for pair in pairs if pair.unequal_loads for net in pair.nets}
    if not unequal or routes.result.failed:
        return job, routes
    paired = {net for pair in pairs for net in pair.nets}
    others = {net.name for net in job.nets if net.width is None} - paired
    if not others:
        return job, routes
    apart = _with_apart(job, unequal, others)
    again = find_routes(metal.cell.layout(), metal.cell, apart, metal=metal)
    again = again if again.result.failed else completed(metal, apart, again)
    return min((job, routes), (apart, again), key=lambda each: (*lacks(each[1]), *_unequal(each[1])))


def _with_apart(job: RoutingJob, ones: set[str], others: set[str]) -> RoutingJob:
    """Return a job in which wires of the nets ``ones`` and ``others`` cost more beside each other."""
    apart = dict.fromkeys(ones, others) | dict.fromkeys(others, ones)
    nets = (replace(net, apart_from=tuple(sorted({*net.apart_from, *apart.get(net.name, ())}))) for net in job.nets)
    return replace(job, nets=tuple(nets))


def _unequal(routes: Routes) -> tuple[int, float]:
    """Return how many pairs are no mirror images, and how unequally all of them load."""
    pairs = [pair for pair in routes.mirrored if len(pair.nets) == 2]
    return sum(not pair.exact for pair in pairs), sum(pair.unequal_loads for pair in pairs)
