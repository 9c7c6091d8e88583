"""Equal capacitance of two nets that should mirror each other but whose wires cannot: couplings and modules included.

The router makes the wires of such a pair alike. What is inside the modules and beside the wires is not, so that the
layout is measured as extraction of parasitics does it, and the net with less gets metal beside its wires. Wires that
are mirror images stay so; how unequally modules load them is measured and reported.

A single cut inside a module, on a net that carries a stated current, gets a second one where the rules leave room: the
router does the same for its own vias. The cuts and the metal around them are drawn with the wires of the net, so that
modules stay as they are.

Where pairs still load unequally, as where a clock passes one of two mirrored nets only, nets are routed again. Mirrored
wires alone do not prevent that: a wire of another net beside one of them may have no image. So the two nets and the
other signals keep apart when they are routed once more, and the routes in which pairs are more alike are taken.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.extract.connectivity import DrawnLayers, Nets, labelled_gates
from layoutkit.extract.single_cuts import WholeLayout, with_second_cuts
from layoutkit.flow.existing_metal import MetalInCell
from layoutkit.flow.matched_wires import measured_mirrors
from layoutkit.flow.pair_shapes import PairShapes, PlacedCell
from layoutkit.flow.routing import axis_of, draw_job, find_routes, loading, metal_around
from layoutkit.route.routes import Mirrored, Patch, Via

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from layoutkit.extract.single_cuts import SinglePlace
    from layoutkit.flow.matched_wires import MirroredNets, Obstacles
    from layoutkit.flow.routing_job import Routes, RoutingJob
    from layoutkit.route.equal_loads import Loading
    from layoutkit.route.routes import RoutedNet, RoutingResult


ALIKE = 0.015
"""Difference of two nets' capacitance, as a share of the larger one, at which no more metal is added."""
ENOUGH = 0.007
"""The same at which a round adds no further stubs."""
MOST_ROUNDS = 5
OVER_SUBSTRATE = 1.4
"""First guess of what metal adds in all, over what it adds to the substrate alone."""
LEAST_OVER_SUBSTRATE = 0.8
"""With a smaller guess, metal beside other wires would bring far too much."""
UNLIKE = "different devices hang on the two nets, so that their whole capacitance is not made equal"


def finished_routes(layout: kdb.Layout, cell: kdb.Cell, job: RoutingJob) -> Routes:
    """Return the routes of a job in ``cell``, which is left as it is, with pairs as ``with_equal_pairs`` makes them.

    Nets with a stated current have second cuts inside modules, too.

    Raises:
        LayoutkitError: As ``find_routes`` does.
    """
    metal = MetalInCell(cell, job)
    return completed(metal, job, find_routes(layout, cell, job, metal=metal))


def completed(metal_in_cell: MetalInCell, job: RoutingJob, routes: Routes) -> Routes:
    """Return routes with equal pairs, and with second cuts where a stated current flows."""
    return with_second_module_cuts(metal_in_cell.cell, job, with_equal_pairs(metal_in_cell, job, routes))


def with_equal_pairs(metal_in_cell: MetalInCell, job: RoutingJob, routes: Routes) -> Routes:
    """Return routes in which pairs that are no mirror images have as equal capacitances as there is room for.

    Each pair gets its figures, ``totals`` and ``unlike_coupling``. Left as they are: mirror images, and pairs on which
    different devices hang, as an output and the gates of the mirror beside it. A process without coefficients of
    capacitance has no figures.

    Args:
        metal_in_cell: The metal of the placed cell, without the wires.
        job: What was routed.
        routes: What ``find_routes`` returned.
    """
    technology = job.technology
    pairs = [each for each in routes.mirrored if len(each.nets) == 2 and each.capacitances]
    if not pairs or technology.parasitics.shielding is None:
        return routes
    metal, passives = metal_around(metal_in_cell, routes)
    drawn = PlacedCell(metal_in_cell.cell, technology, metal, passives)
    names = [name for pair in pairs for name in pair.nets]
    signals = [net.name for net in job.nets if net.width is None and net.name not in names]  # supplies do not move
    shapes = PairShapes(drawn, routes.result, names, signals)
    alike = [pair for pair in pairs if _loaded_alike(job, shapes, pair.nets)]
    unequal = _unequal(shapes, alike)
    result = routes.result
    if unequal:
        nets = loading(job, routes, metal)
        high = [max(pair, key=lambda name: shapes.totals[name]) for pair in unequal]
        # the router added stubs to make the wires alike, before anything else was measured
        removed = [patch for name in high for patch in nets.net(name).remove_stubs()]
        if removed:
            shapes.remove(removed, nets.result())
            unequal = _unequal(shapes, alike)
        _equalise(nets, shapes, unequal)
        result = nets.result()
    figures = _figures(job, result, [pair for pair in pairs if not pair.exact], metal)
    measured = {pair.nets: figures.get(pair.nets, pair) for pair in pairs}
    for pair in alike:
        totals = tuple(shapes.totals[name] for name in pair.nets)
        coupling = shapes.coupled_unlike(*pair.nets)
        measured[pair.nets] = replace(measured[pair.nets], totals=totals, unlike_coupling=coupling)
    for pair in pairs:
        if pair not in alike and not pair.exact:
            measured[pair.nets] = replace(measured[pair.nets], reason=f"{pair.reason}; {UNLIKE}", alike=False)
    mirrored = tuple(measured.get(each.nets, each) for each in routes.mirrored)
    return replace(routes, result=result, mirrored=mirrored)


def _loaded_alike(job: RoutingJob, shapes: PairShapes, pair: tuple[str, ...]) -> bool:
    """Return whether two nets have equal devices: in the netlist if it is known, else in the drawing.

    The drawing also has dummies, which lie next to only one device of a matched row.
    """
    one, other = (next(net.load for net in job.nets if net.name == name) for name in pair)
    if one is None or other is None:
        return shapes.drives_alike(*pair)
    return one == other


def _unequal(shapes: PairShapes, pairs: Sequence[MirroredNets]) -> list[tuple[str, ...]]:
    """Return the nets of each pair that is no mirror image and whose capacitances differ."""
    return [pair.nets for pair in pairs if not pair.exact and _missing(shapes, pair.nets)[1]]


def _figures(
    job: RoutingJob, result: RoutingResult, pairs: Sequence[MirroredNets], metal: Obstacles
) -> dict[tuple[str, ...], MirroredNets]:
    """Return the figures of pairs in routes that have more metal now."""
    now = replace(result, mirrored=tuple(Mirrored(each.nets, exact=False, reason=each.reason) for each in pairs))
    return {each.nets: each for each in measured_mirrors(job.technology, now, axis_of(job), metal)}


def _missing(shapes: PairShapes, pair: tuple[str, ...]) -> tuple[str, float]:
    """Return the net of a pair with less capacitance, and what it lacks [fF]; 0 if the two are alike."""
    low, high = sorted(pair, key=lambda name: shapes.totals[name])
    lacks = shapes.totals[high] - shapes.totals[low]
    return low, lacks if lacks > ALIKE * shapes.totals[high] else 0.0


def _equalise(nets: Loading, shapes: PairShapes, pairs: Sequence[tuple[str, ...]]) -> None:
    """Add metal to the net of each pair that has less capacitance, and measure what it brings, a few times."""
    gain = {name: OVER_SUBSTRATE for pair in pairs for name in pair}
    active = list(pairs)
    for _ in range(MOST_ROUNDS):
        wanted = {low: lacks for low, lacks in (_missing(shapes, pair) for pair in active) if lacks}
        added: dict[str, tuple[Patch, ...]] = {}
        loads: dict[str, float] = {}  # what the metal adds to the substrate, which may be less than asked for [fF]
        for name, lacks in wanted.items():
            net = nets.net(name)
            before, load = len(net.metal.patches), net.load() or 0.0
            target = load + lacks * 1000 / gain[name]
            net.add_load(target, ENOUGH * shapes.totals[name] * 1000 / gain[name] / target)
            added[name] = tuple(net.metal.patches[before:])
            loads[name] = ((net.load() or load) - load) / 1000
        if not any(added.values()):
            return
        earlier = dict(shapes.totals)
        shapes.add(added)
        for name, load in loads.items():
            if load > 0.0:
                found = (shapes.totals[name] - earlier[name]) / load
                gain[name] = max(LEAST_OVER_SUBSTRATE, min(2 * gain[name], found))
        active = [pair for pair in active if not any(name in wanted and not added[name] for name in pair)]


def with_second_module_cuts(cell: kdb.Cell, job: RoutingJob, routes: Routes) -> Routes:
    """Return routes with second cuts for the single ones in modules, on nets whose current is stated.

    Args:
        cell: The placed cell, without the wires; it is left as it is.
        job: What was routed.
        routes: Its routes.
    """
    stated = {net.name: net for net in job.nets if net.current is not None}
    nets = [net for net in routes.result.nets if net.success and net.name in stated]
    technology = job.technology
    if not nets or None in {technology.role(role) for role in ("active", "poly", "device_text")}:
        return routes
    layout = cell.layout().dup()
    drawn = layout.cell(cell.name)
    draw_job(layout, drawn, job, routes)
    layers = DrawnLayers(drawn, technology).electrical()
    traced = Nets(layers.conducting, layers.joins, technology.dbu_um)
    channels = kdb.Region()
    for boxes in labelled_gates(drawn, technology).values():
        for box in boxes:
            channels.insert(box)
    around = WholeLayout(technology, layers.conducting, channels, drawn.bbox())
    names = [*(each.name for each in technology.conductors), *(each.name for each in technology.cuts)]
    found: dict[str, RoutedNet] = {}
    for net in nets:
        point = stated[net.name].endpoints[0]
        own = traced.at(technology.conductor(point.layer).name, kdb.Point(point.x, point.y))
        if own is not None:
            metal = {name: traced.shapes(own, name).merged() for name in names}
            wired = {(via.cut, via.x, via.y) for via in net.vias}
            places = [
                place
                for place in with_second_cuts(around, metal)
                if (place.cut, place.box.center().x, place.box.center().y) not in wired
            ]
            found[net.name] = _with_cuts(net, places)
    result = replace(routes.result, nets=tuple(found.get(net.name, net) for net in routes.result.nets))
    return replace(routes, result=result)


def _with_cuts(net: RoutedNet, places: list[SinglePlace]) -> RoutedNet:
    """Return a net with further cuts and the metal around them."""
    if not places:
        return net
    vias = tuple(
        Via(each.cut, each.second.center().x, each.second.center().y) for each in places if each.second is not None
    )
    patches = tuple(
        Patch(name, (box.left, box.bottom, box.right, box.top)) for each in places for name, box in each.pads
    )
    return replace(
        net,
        vias=(*net.vias, *vias),
        patches=(*net.patches, *patches),
        metal=tuple(sorted((*net.metal, *((patch.layer, patch.rect) for patch in patches)))),
        via_count=net.via_count + len(vias),
    )


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
    return min((job, routes), (apart, again), key=lambda each: (*lacks(each[1]), *_unequal_pairs(each[1])))


def _with_apart(job: RoutingJob, ones: set[str], others: set[str]) -> RoutingJob:
    """Return a job in which wires of the nets ``ones`` and ``others`` cost more beside each other."""
    apart = dict.fromkeys(ones, others) | dict.fromkeys(others, ones)
    nets = (replace(net, apart_from=tuple(sorted({*net.apart_from, *apart.get(net.name, ())}))) for net in job.nets)
    return replace(job, nets=tuple(nets))


def _unequal_pairs(routes: Routes) -> tuple[int, float]:
    """Return how many pairs are no mirror images, and how unequally all of them load."""
    pairs = [pair for pair in routes.mirrored if len(pair.nets) == 2]
    return sum(not pair.exact for pair in pairs), sum(pair.unequal_loads for pair in pairs)
