"""A second cut for each single one inside modules, on nets that carry a stated current, where the rules leave room.

The router does the same for its own vias. The cuts and the metal around them are drawn with the wires of the net, so
that modules stay as they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.extract.connectivity import Nets, electrical_layers, labelled_gates
from layoutkit.extract.single_cuts import WholeLayout, with_second_cuts
from layoutkit.flow.routing import draw_job
from layoutkit.route.routes import Patch, Via

if TYPE_CHECKING:
    from layoutkit.extract.single_cuts import SinglePlace
    from layoutkit.flow.routing_job import Routes, RoutingJob
    from layoutkit.route.routes import RoutedNet


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
    layers = electrical_layers(drawn, technology)
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
