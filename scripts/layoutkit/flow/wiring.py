"""What is asked of the router for placed modules: nets, layers, area and obstacles; and routing them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import klayout.db as kdb

from layoutkit.route import NetRequest, RouteOptions, Terminal, draw_routes, route

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from layoutkit.flow.placing import PlacedModules
    from layoutkit.route import RoutingResult
    from layoutkit.technology import Conductor, Technology

SUPPLY_WIDTH_FACTOR = 3
# Room around the modules for wires, in track pitches of the third conductor.
MARGIN_TRACKS = 8


def track_pitch(technology: Technology) -> int:
    """Return what one wire of the third conductor takes: its width and space. [dbu]"""
    vertical = technology.conductors[2]
    return vertical.width + vertical.space


def routing_conductors(technology: Technology) -> tuple[Conductor, ...]:
    """Return the conductors that carry wires between modules: the rails' own and up to three above."""
    return technology.conductors[1:5]


def net_requests(placed: PlacedModules, supplies: Collection[str]) -> list[NetRequest]:
    """Return the nets that need wires, with all their rails; supplies are wider and come last."""
    width = placed.technology.conductors[1].width * SUPPLY_WIDTH_FACTOR
    return [
        NetRequest(
            net,
            tuple(ends),
            width=width if net in supplies else None,
            priority=2 if net in supplies else 1,
        )
        for net, ends in sorted(_terminals(placed).items())
        if len(ends) > 1
    ]


def _terminals(placed: PlacedModules) -> dict[str, list[Terminal]]:
    terminals: dict[str, list[Terminal]] = {}
    for module in placed.modules.values():
        for number, pin in enumerate(module.pins):
            box = placed.place_of(module, pin.box)
            group = module.name if module.joined else f"{module.name} {number}"
            terminals.setdefault(pin.net, []).append(Terminal(pin.layer, box, group=group))
    return terminals


def routing_area(placed: PlacedModules) -> kdb.Box:
    """Return the box that holds the modules and room for wires around them. [dbu]"""
    room = MARGIN_TRACKS * track_pitch(placed.technology)
    return placed.cell.bbox().enlarged(room, room)


def keepouts(placed: PlacedModules) -> list[tuple[str, kdb.Box]]:
    """Return ``(conductor or cut, box)`` of all areas that wires may not enter. [dbu]"""
    return [
        (keepout.layer, placed.place_of(module, keepout.box))
        for module in placed.modules.values()
        for keepout in module.keepouts
    ]


def route_modules(placed: PlacedModules, supplies: Collection[str]) -> RoutingResult:
    """Return the routes of all nets, drawn into the cell.

    Args:
        placed: The modules in their places.
        supplies: Nets that get wide wires.
    """
    technology = placed.technology
    obstacles = _obstacles(technology, placed.cell, _terminals(placed))
    for layer, box in keepouts(placed):
        obstacles.setdefault(layer, []).append((kdb.Polygon(box), None))
    layers = [conductor.name for conductor in routing_conductors(technology)]
    nets = net_requests(placed, supplies)
    routing = route(technology, nets, obstacles, routing_area(placed), layers, RouteOptions())
    draw_routes(placed.layout, placed.cell, technology, routing)
    return routing


def _obstacles(
    technology: Technology, cell: kdb.Cell, terminals: Mapping[str, Sequence[Terminal]]
) -> dict[str, list[tuple[kdb.Polygon, str | None]]]:
    """Return the modules' own metal and cuts above the first conductor, each with its net where a pin lies in it."""
    layout = cell.layout()
    found: dict[str, list[tuple[kdb.Polygon, str | None]]] = {}
    drawn_on = {item.name: item.layer for item in technology.conductors[1:]}
    drawn_on.update({item.name: item.layer for item in technology.cuts})
    for name, layer in drawn_on.items():
        region = kdb.Region(cell.begin_shapes_rec(technology.layer(layout, layer))).merged()
        owners = [
            (kdb.Region(end.box), net) for net, ends in sorted(terminals.items()) for end in ends if end.layer == name
        ]
        for net_region, net in owners:
            own = region.interacting(net_region)
            found.setdefault(name, []).extend((polygon, net) for polygon in own.each())
            region = region.not_interacting(net_region)
        found.setdefault(name, []).extend((polygon, None) for polygon in region.each())
    return found


def routing_request(placed: PlacedModules, supplies: Collection[str], priorities: Mapping[str, int]) -> dict[str, Any]:
    """Return what ``layout.route_signal_nets_basic`` takes to do the same, as JSON data. [um]

    Args:
        placed: The modules in their places.
        supplies: Nets that get wide wires.
        priorities: Net to its priority, where it is not the usual one.
    """
    technology = placed.technology
    conductors = routing_conductors(technology)
    nets = []
    for net in net_requests(placed, supplies):
        entry: dict[str, Any] = {
            "net_name": net.name,
            "endpoints": [_endpoint(technology, terminal) for terminal in net.terminals],
            "priority": priorities.get(net.name, net.priority),
        }
        if net.width is not None:
            entry["width"] = technology.to_um(net.width)
        nets.append(entry)
    return {
        "nets": nets,
        "routing_layers": [conductor.name for conductor in conductors],
        "via_layer": technology.cut_between(conductors[0].name, conductors[1].name).name,
        "routing_area": box_data(technology, routing_area(placed)),
        "obstacles": [{"layer": layer, "box": box_data(technology, box)} for layer, box in keepouts(placed)],
    }


def _endpoint(technology: Technology, terminal: Terminal) -> dict[str, Any]:
    box, um = terminal.box, technology.to_um
    centre = {"x": um((box.left + box.right) / 2), "y": um((box.bottom + box.top) / 2)}
    return {"layer": terminal.layer, **centre, "width": um(box.width()), "height": um(box.height())}


def box_data(technology: Technology, box: kdb.Box) -> dict[str, float]:
    """Return a box as its lower left corner and size. [um]"""
    sides = {"x": box.left, "y": box.bottom, "width": box.width(), "height": box.height()}
    return {name: technology.to_um(side) for name, side in sides.items()}
