"""Lay out the cells that instances share, inner ones first, by the same steps as the circuit itself.

A cell whose nets cannot all be routed is not shared: its instances are laid out with the rest.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import klayout.db as kdb

from layoutkit.draw.module import DrawnDummy, Gate, Keepout, Module, Pin
from layoutkit.errors import listed
from layoutkit.extract.connectivity import DrawnLayers, Nets, device_texts
from layoutkit.flow.design import make_design
from layoutkit.flow.hierarchy import outcomes_inside
from layoutkit.flow.instances import FinishedCell
from layoutkit.flow.net_wishes import net_outcomes
from layoutkit.flow.pair_loads import finished_routes
from layoutkit.flow.placing import find_placement
from layoutkit.flow.room import held_inside
from layoutkit.flow.routing import draw_job
from layoutkit.flow.routing_job import routing_conductors
from layoutkit.route.router import cuts_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from layoutkit.circuit.constraints import Outcome
    from layoutkit.flow.design import Design, LayoutRequest, SharedCell
    from layoutkit.flow.placing import PlacedModules, TriedPlacement
    from layoutkit.flow.routing_job import Routes
    from layoutkit.technology import Technology

MOST_PINS = 8
"""Pins of one net of a cell at which wires may arrive; more only cost time."""


def place_design(design: Design, request: LayoutRequest) -> TriedPlacement:
    """Return the placement of a design, its shared cells laid out with all wires.

    Where nets find no way, the same is tried with fewer shared cells: without those whose own nets find none, then with
    all devices laid out by themselves. Before that, where metal inside of shared cells leaves nets no way, wires may
    arrive at all upper metal of these cells. ``placed_design`` returns what was placed in the end.

    Raises:
        LayoutkitError: If a module cannot be drawn.
    """
    circuit, refused = design.circuit, dict[str, str]()
    finished: dict[str, FinishedCell] = {}
    laid_out: dict[str, SharedCell] = {}
    waiting = list(design.cells)
    while waiting:
        cell = waiting.pop(0)
        if cell.name in finished and laid_out[cell.name].design.groups == cell.design.groups:
            continue
        finished[cell.name] = _lay_out(cell, replace(cell.design, finished=dict(finished)), request)
        laid_out[cell.name] = cell
        failed = finished[cell.name].wiring["failed"]
        if failed:
            why = f"laid out with the rest, as no way was found inside of {cell.name} for {', '.join(failed)}"
            refused.update(dict.fromkeys((use.path for use in cell.uses), why))
            design, _ = make_design(request, design.technology, circuit, refused)
            waiting = list(design.cells)
    tried = find_placement(replace(design, finished=finished), request)
    if tried.routes is not None and held_inside(tried.placed, tried.routes):
        reachable = {name: _with_more_pins(cell, design.technology) for name, cell in finished.items()}
        again = find_placement(replace(design, finished=reachable), request)
        if again.routes is not None and len(again.routes.result.failed) < len(tried.routes.result.failed):
            tried = replace(again, tries=(*tried.tries, *again.tries))
    tried = replace(tried, refused=refused, warnings=(*tried.warnings, *_reasons(refused)))
    if design.cells and tried.routes is not None and tried.routes.result.failed:
        flat, _ = make_design(replace(request, flatten=True), design.technology, circuit)
        again = find_placement(flat, request)
        if again.routes is not None and len(again.routes.result.failed) < len(tried.routes.result.failed):
            names = listed(net.name for net in tried.routes.result.failed)
            why = f"no subcircuit is shared: no way was found for {names} between shared cells"
            return replace(again, flattened=why, warnings=(*again.warnings, why))
    return tried


def _reasons(refused: Mapping[str, str]) -> list[str]:
    return [f"{', '.join(p for p in refused if refused[p] == why)}: {why}" for why in dict.fromkeys(refused.values())]


def placed_design(design: Design, request: LayoutRequest, tried: TriedPlacement) -> Design:
    """Return the design that ``place_design`` placed in the end, with its finished cells."""
    if tried.flattened:
        flat, _ = make_design(replace(request, flatten=True), design.technology, design.circuit)
        return replace(flat, kept_flat=(tried.flattened,))
    if tried.refused:
        design, _ = make_design(request, design.technology, design.circuit, tried.refused)
    return replace(design, finished=tried.placed.finished)


def _lay_out(cell: SharedCell, design: Design, request: LayoutRequest) -> FinishedCell:
    tried = find_placement(design, replace(request, outline=None, aspect=None))
    placed = tried.placed
    routes = tried.routes or finished_routes(placed.layout, placed.cell, tried.job)
    draw_job(placed.layout, placed.cell, tried.job, routes)
    texts = _take_texts(placed.cell, design)
    _name_cells(cell.name, design, placed)
    box = placed.cell.bbox()
    origin = kdb.Trans(-box.left, -box.bottom)
    placed.cell.transform(origin)
    outcomes = [*placed.outcomes, *net_outcomes(design.constraints, tried.job, routes)]
    return FinishedCell(
        cell.name,
        _module(cell, tried, routes, origin),
        tuple(replace(each, trans=origin * each.trans) for each in placed.inside),
        placed.kinds,
        tuple(replace(well, shapes=well.shapes.transformed(origin)) for well in placed.wells),
        tuple((name, origin * point) for name, point in texts),
        tuple(outcomes),
        _wiring(tried, routes, design.technology),
    )


def _take_texts(cell: kdb.Cell, design: Design) -> list[tuple[str, kdb.Point]]:
    """Remove the texts that name devices from a cell and all below it; return them with their places in it.

    The devices of every instance have names of their own, which are written where the cell is placed. Other texts, by
    which foundries know the kind of a device, stay.
    """
    names = {device.id for device in design.circuit.devices}
    texts = [(text, place) for text, place in device_texts(cell, design.technology) if text in names]
    layer = design.technology.layer(cell.layout(), design.technology.roles["device_text"])
    for index in (cell.cell_index(), *cell.called_cells()):
        shapes = cell.layout().cell(index).shapes(layer)
        for shape in [each for each in shapes.each(kdb.Shapes.STexts) if each.text_string in names]:
            shapes.erase(shape)
    return texts


def _name_cells(name: str, design: Design, placed: PlacedModules) -> None:
    """Name the cell, and those in it that no other cell shares, so that no two cells of the chip have one name."""
    layout = placed.layout
    shared = {below for finished in design.finished.values() for below in _names_below(finished.module.cell)}
    for cell in sorted(layout.each_cell(), key=lambda cell: cell.name):
        if cell.cell_index() == placed.cell.cell_index():
            cell.name = name
        elif cell.name not in shared:
            cell.name = f"{name}.{cell.name}"


def _names_below(cell: kdb.Cell) -> set[str]:
    layout = cell.layout()
    return {cell.name, *(layout.cell(index).name for index in cell.called_cells())}


def _module(cell: SharedCell, tried: TriedPlacement, routes: Routes, origin: kdb.Trans) -> Module:
    """Return a laid out cell as a module, whose lower left corner is at the origin."""
    placed = tried.placed
    gates: list[Gate] = []
    keepouts: list[Keepout] = []
    dummies: list[DrawnDummy] = []
    for each in placed.inside:
        trans = origin * each.trans
        gates += [Gate(gate.device, gate.unit, gate.box.transformed(trans)) for gate in each.module.gates]
        keepouts += [
            Keepout(keepout.layer, keepout.box.transformed(trans), keepout.by_rule) for keepout in each.module.keepouts
        ]
        dummies += each.module.dummies
    return Module(
        name=cell.name,
        cell=placed.cell,
        layout=placed.layout,
        pins=tuple(pin for net in cell.ports for pin in _pins(net, placed, routes, origin)),
        devices=tuple(device.id for device in cell.design.circuit.devices),
        instances=(),
        symmetry_axis_x=None,
        bbox=placed.cell.bbox(),
        gates=tuple(gates),
        keepouts=tuple(keepouts),
        dummies=tuple(dummies),
        warnings=tuple(f"in cell {cell.name}: {text}" for text in tried.warnings),
    )


def _pins(net: str, placed: PlacedModules, routes: Routes, origin: kdb.Trans) -> list[Pin]:
    """Return metal of a net at which wires may arrive: its wires, else the pins of its modules; the largest first."""
    routed = [each for each in routes.result.nets if each.name == net]
    found = {(layer, kdb.Box(*rect).transformed(origin)) for each in routed for layer, rect in each.metal}
    found |= {
        (pin.layer, placed.place_of(module, pin.box).transformed(origin))
        for module in placed.modules.values()
        for pin in module.pins_of(net)
    }
    technology = placed.technology
    cuts = [(name, kdb.Box(*rect).transformed(origin)) for each in routed for name, rect in cuts_of(technology, each)]
    away = {piece for layer, box in found for piece in _away_from_cuts(technology, layer, box, cuts)} or found
    alone = [
        (layer, box)
        for layer, box in away
        if not any((layer, box) != other and layer == other[0] and box.inside(other[1]) for other in away)
    ]
    alone.sort(key=lambda entry: (-min(entry[1].width(), entry[1].height()), -entry[1].area(), entry[0], str(entry[1])))
    return [Pin(net, layer, box) for layer, box in alone[:MOST_PINS]]


def _away_from_cuts(
    technology: Technology, layer: str, box: kdb.Box, cuts: Sequence[tuple[str, kdb.Box]]
) -> Iterator[tuple[str, kdb.Box]]:
    """Yield the parts of a box of metal that lie away from cuts in it.

    A wire that ends beside a cut would give the metal around it short edges, which line-end rules judge.
    """
    conductor = technology.conductor(layer)
    own = {cut.name for cut in technology.cuts if conductor.name in {cut.below, cut.above}}
    near = kdb.Region()
    for name, cut in cuts:
        if name in own and cut.overlaps(box):
            near.insert(cut.enlarged(conductor.width, conductor.width))
    for piece in (kdb.Region(box) - near).decompose_trapezoids_to_region().each():
        part = piece.bbox()
        if piece.is_box() and min(part.width(), part.height()) >= conductor.width:
            yield layer, part


def _with_more_pins(finished: FinishedCell, technology: Technology) -> FinishedCell:
    """Return a cell at which wires may arrive on all metal of its nets above their pins, such as risers of modules."""
    module = finished.module
    drawn = DrawnLayers(module.cell, technology).wiring
    metal, pins = Nets(drawn.regions, drawn.joins, technology.dbu_um), dict.fromkeys(module.pins)
    for pin in module.pins:
        net = metal.at(pin.layer, pin.box.center())
        if net is None:
            continue
        for conductor in routing_conductors(technology)[1:]:
            boxes = (each.bbox() for each in metal.shapes(net, conductor.name).merged().each() if each.is_box())
            pins |= dict.fromkeys(Pin(pin.net, conductor.name, box) for box in boxes)
    return replace(finished, module=replace(module, pins=tuple(pins)))


def _wiring(tried: TriedPlacement, routes: Routes, technology: Technology) -> dict[str, Any]:
    routing = routes.result
    return {
        "nets": len(routing.nets),
        "failed": [net.name for net in routing.failed],
        "wire_length": technology.to_um(routing.wire_length),
        "via_count": sum(net.via_count for net in routing.nets),
        "attempts": tried.attempts,
    }


def cell_outcomes(design: Design) -> Iterator[Outcome]:
    """Yield what became of the constraints inside of shared cells, for every instance."""
    for cell in design.cells:
        for use in cell.uses:
            names = {**use.nets, **use.devices}
            yield from outcomes_inside(design.whole, design.finished[cell.name].outcomes, names)


def hierarchy_data(design: Design, layout: kdb.Layout) -> dict[str, Any]:
    """Return which cells are shared and how often, and which subcircuits are not, as JSON data. [um]

    Args:
        design: What was placed.
        layout: Holds the arrays of the cells.
    """
    to_um = design.technology.to_um
    arrays: dict[str, list[list[int]]] = {}
    for instance in (each for cell in layout.each_cell() for each in cell.each_inst()):
        if instance.is_regular_array():
            places = [trans.disp for trans in instance.cell_inst.each_trans()]
            columns, rows = len({place.x for place in places}), len({place.y for place in places})
            arrays.setdefault(instance.cell.name, []).append([columns, rows])
    return {
        "cells": [
            {
                "name": cell.name,
                "subcircuit": cell.subcircuit,
                "devices": len(cell.design.circuit.devices),
                "instances": [use.path for use in cell.uses],
                "arrays": sorted(arrays.get(cell.name, [])),
                "width": to_um(design.finished[cell.name].module.bbox.width()),
                "height": to_um(design.finished[cell.name].module.bbox.height()),
                "routing": dict(design.finished[cell.name].wiring),
            }
            for cell in design.cells
        ],
        "not_shared": list(design.kept_flat),
    }
