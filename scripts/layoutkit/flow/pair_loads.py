"""Equal capacitance of two nets that should mirror each other but whose wires cannot: couplings and modules included.

The router makes the wires of such a pair alike. What is inside the modules and beside the wires is not, so that the
finished layout is measured as extraction of parasitics does it, and the net with less gets metal beside its wires.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.extract.extractor import extract
from layoutkit.flow.mirrored_nets import measured_mirrors
from layoutkit.flow.routing import draw_job, drawn_obstacles
from layoutkit.parasitics.capacitance import capacitances
from layoutkit.parasitics.net_shapes import NetShapes, net_shapes
from layoutkit.route.equal_loads import Room, with_more_load
from layoutkit.route.routes import NetRequest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from layoutkit.flow.keepouts import Obstacles
    from layoutkit.flow.mirrored_nets import MirroredNets
    from layoutkit.flow.routing import Routes, RoutingJob
    from layoutkit.route.routes import Patch, RoutedNet, RoutingResult
    from layoutkit.technology import Technology

ALIKE = 0.01
"""Difference of two nets' capacitance, as a share of the larger one, at which no more metal is added."""
MOST_ROUNDS = 3
REACH_UM = 1.5
"""What lies further than this from new metal is not measured again."""
OVER_SUBSTRATE = 2.0
"""First guess of what metal adds in all, over what it adds to the substrate alone."""


def with_equal_pairs(layout: kdb.Layout, cell: kdb.Cell, job: RoutingJob, routes: Routes) -> Routes:
    """Return routes in which pairs that are no mirror images have as equal capacitances as there is room for.

    Each pair gets its figures as ``totals``. Where all pairs are mirror images, nothing is measured.

    Args:
        layout: The placed layout, which is left as it is.
        cell: Its top cell.
        job: What was routed.
        routes: The routes.
    """
    stated = {net.name for net in job.nets if net.match_length}
    pairs = [each.nets for each in routes.mirrored if len(each.nets) == 2]
    unequal = [each.nets for each in routes.mirrored if len(each.nets) == 2 and not each.exact]
    if not unequal:
        return routes
    drawn = layout.dup()
    top = drawn.cell(cell.name)
    draw_job(drawn, top, job, routes)
    measured = _Measured(drawn, top, job.technology, [routes.result.net(name) for pair in pairs for name in pair])
    result = routes.result
    free = [pair for pair in unequal if not stated.intersection(pair) and measured.totals.keys() >= set(pair)]
    owners = {name: routes.result.net(name).metal[0] for pair in free for name in pair if routes.result.net(name).metal}
    obstacles = drawn_obstacles(top, job, owners)
    if free:
        result = _equalised(job, routes, obstacles, measured, free)
    now = replace(result, mirrored=tuple(each for each in result.mirrored if each.nets in free))
    figures = {each.nets: each for each in measured_mirrors(job.technology, now, job.axis_x, obstacles)}
    mirrored = tuple(_with_totals(each, figures.get(each.nets, each), measured.totals) for each in routes.mirrored)
    return replace(routes, result=result, mirrored=mirrored)


def _with_totals(pair: MirroredNets, now: MirroredNets, totals: Mapping[str, float]) -> MirroredNets:
    """Return figures with those of the wires as they are now, and with the capacitance of both nets of a pair."""
    whole = tuple(totals[name] for name in pair.nets) if len(pair.nets) == 2 and totals.keys() >= set(pair.nets) else ()
    return replace(pair, capacitances=now.capacitances, wires_error=now.wires_error, error=now.error, totals=whole)


def _equalised(
    job: RoutingJob,
    routes: Routes,
    obstacles: Obstacles,
    measured: _Measured,
    pairs: Sequence[tuple[str, ...]],
) -> RoutingResult:
    """Return routes with metal beside the wires of the nets of pairs that have less capacitance."""
    result, active = routes.result, list(pairs)
    area = routes.frame.wiring if routes.frame else routes.area
    keepouts = [(each.layer, _rect(each.box)) for each in job.obstacles if each.kind != "metal"]
    room = Room(_rect(area), job.layers, keepouts)
    requests = [NetRequest(name, ()) for name in dict.fromkeys(name for pair in pairs for name in pair)]
    gain = dict.fromkeys((net.name for net in requests), OVER_SUBSTRATE)
    for _ in range(MOST_ROUNDS):
        missing = {}
        for pair in active:
            low, high = sorted(pair, key=lambda name: measured.totals[name])
            lacks = measured.totals[high] - measured.totals[low]
            if lacks > ALIKE * measured.totals[high]:
                missing[low] = lacks
        if not missing:
            break
        wanted = {name: lacks * 1000 / gain[name] for name, lacks in missing.items()}
        more = with_more_load(job.technology, requests, obstacles, room, result, wanted)
        before = dict(measured.totals)
        added = {name: more.net(name).patches[len(result.net(name).patches) :] for name in missing}
        measured.add(added)
        for name, lacks in missing.items():
            if added[name] and measured.totals[name] > before[name]:
                gain[name] *= max(0.5, min(2.0, (measured.totals[name] - before[name]) / lacks))
            else:
                active = [pair for pair in active if name not in pair]
        result = more
    return result


class _Measured:
    """The capacitances of nets in a layout.

    Attributes:
        totals: Capacitance of each net to everything [fF]; without nets that draw nothing.
    """

    def __init__(self, layout: kdb.Layout, cell: kdb.Cell, technology: Technology, nets: Sequence[RoutedNet]) -> None:
        self.technology = technology
        self.shapes = net_shapes(extract(layout, cell, technology))
        self.numbers: dict[str, int] = {}
        for net in nets:
            for layer, rect in net.metal[:1]:
                own = kdb.Region(kdb.Box(*rect))
                found = (
                    number for number, region in self.shapes.levels[layer].items() if not (region & own).is_empty()
                )
                self.numbers[net.name] = next(found)
        whole = capacitances(self.shapes, technology)
        self.totals = {name: whole.total_fF(number) for name, number in self.numbers.items()}

    def add(self, patches: Mapping[str, Sequence[Patch]]) -> None:
        """Add metal to nets; what changes is measured near the metal only."""
        metal: dict[tuple[str, str], kdb.Region] = {}
        for name, its in patches.items():
            for patch in its:
                metal.setdefault((name, patch.layer), kdb.Region()).insert(kdb.Box(*patch.rect))
        if not metal:
            return
        reach, window = round(REACH_UM / self.technology.dbu_um), kdb.Region()
        for region in metal.values():
            window += region.sized(reach)
        window.merge()
        levels = {level: dict(nets) for level, nets in self.shapes.levels.items()}
        for (name, layer), region in metal.items():
            number = self.numbers[name]
            levels[layer][number] = (levels[layer].get(number, kdb.Region()) + region).merged()
        changed = replace(self.shapes, levels=levels)
        before, after = (capacitances(_within(each, window), self.technology) for each in (self.shapes, changed))
        for other, own in self.numbers.items():
            self.totals[other] += after.total_fF(own) - before.total_fF(own)
        self.shapes = changed


def _within(shapes: NetShapes, window: kdb.Region) -> NetShapes:
    """Return the shapes inside a window."""

    def cut(nets: Mapping[int, kdb.Region]) -> dict[int, kdb.Region]:
        inside = {number: region & window for number, region in nets.items()}
        return {number: region for number, region in inside.items() if not region.is_empty()}

    return replace(
        shapes,
        levels={level: cut(nets) for level, nets in shapes.levels.items()},
        devices=shapes.devices & window,
        plates={name: cut(nets) for name, nets in shapes.plates.items()},
        n_wells=cut(shapes.n_wells),
        p_wells=cut(shapes.p_wells),
    )


def _rect(box: kdb.Box) -> tuple[int, int, int, int]:
    return box.left, box.bottom, box.right, box.top
