"""From drawn modules to one routed cell: placement, terminals, obstacles, wires, well patches, port labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.place import Block, PlacementOptions, Rectangle, place_rows
from layoutkit.place.clearance import Clearances
from layoutkit.route import NetRequest, RouteOptions, Terminal, draw_routes, route

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from layoutkit.draw.module import Module
    from layoutkit.flow.groups import Group
    from layoutkit.flow.passives import PassiveGroup
    from layoutkit.place import Placed, Placement
    from layoutkit.route import RoutingResult
    from layoutkit.technology import Technology

SUPPLY_WIDTH_FACTOR = 3
# Groups whose two halves carry the two halves of a differential signal; mirrors match within themselves.
ON_THE_AXIS = frozenset({"differential_pair", "cross_coupled_pair", "cascode_pair", "load_pair", "symmetric_pair"})


@dataclass(frozen=True)
class Assembly:
    """One placed and routed cell and what was decided for it."""

    cell: kdb.Cell
    placement: Placement
    routing: RoutingResult
    trans: Mapping[str, kdb.Trans]


@dataclass(frozen=True)
class Drawn:
    """A group with the module drawn for it."""

    group: Group | PassiveGroup
    module: Module


def blocks_of(drawn: Sequence[Drawn], technology: Technology) -> list[Block]:
    """Return what placement needs to know of each module."""
    layout = drawn[0].module.layout
    names = {layout.get_info(index): index for index in layout.layer_indexes()}
    blocks = []
    for item in drawn:
        boxes = {}
        for spec in technology.layers.values():
            index = names.get(kdb.LayerInfo(*spec.gds))
            box = item.module.cell.bbox(index) if index is not None else kdb.Box()
            if not box.empty():
                boxes[spec.name] = _rectangle(box)
        axis = item.module.symmetry_axis_x
        middle = item.module.bbox.left + item.module.bbox.right
        blocks.append(
            Block(
                name=item.module.name,
                kind=item.group.spec.type,
                box=_rectangle(item.module.bbox),
                pins=tuple((pin.net, pin.box.center().x, pin.box.center().y) for pin in item.module.pins),
                layer_boxes=boxes,
                level=item.group.level,
                symmetric=item.group.type in ON_THE_AXIS
                and axis is not None
                and 2 * axis == middle
                and middle % (2 * technology.grid) == 0,
                bulk_net=item.group.bulk_net,
            )
        )
    return blocks


def _rectangle(box: kdb.Box) -> Rectangle:
    return Rectangle(box.left, box.bottom, box.right, box.top)


def assemble(
    technology: Technology, cell: kdb.Cell, drawn: Sequence[Drawn], options: PlacementOptions, supplies: set[str]
) -> Assembly:
    """Place the modules into ``cell``, wire their nets, and return what came out.

    Args:
        technology: The process.
        cell: Empty cell of the layout that holds the modules.
        drawn: The modules.
        options: How to place.
        supplies: Nets that get wide wires.
    """
    blocks = blocks_of(drawn, technology)
    placement = place_rows(technology, blocks, options)
    trans = {name: _trans(place) for name, place in placement.placed.items()}
    modules = {item.module.name: item.module for item in drawn}
    for name in sorted(modules):
        cell.insert(kdb.CellInstArray(modules[name].cell.cell_index(), trans[name]))
    _join_wells(technology, cell, blocks, placement)
    routing = _route(technology, cell, modules, trans, supplies)
    draw_routes(cell.layout(), cell, technology, routing)
    return Assembly(cell, placement, routing, trans)


def _trans(place: Placed) -> kdb.Trans:
    return kdb.Trans(2 if place.mirrored else 0, place.mirrored, place.x, place.y)


def _join_wells(technology: Technology, cell: kdb.Cell, blocks: Sequence[Block], placement: Placement) -> None:
    """Make one well of those of one layer, bulk net and oxide that stand closer than two wells may, oxide included."""
    drawn: dict[tuple[str, str, tuple[str, ...]], kdb.Region] = {}
    oxide = Clearances(technology).oxide
    wells: dict[str, str | None] = {spec.type: spec.well for spec in technology.devices.values()}
    for block in blocks:
        well = wells.get(block.kind)
        if well is not None and well in block.layer_boxes:
            box = placement.placed[block.name].rectangle(block.layer_boxes[well])
            key = (well, block.bulk_net, tuple(sorted(oxide(block))))
            drawn.setdefault(key, kdb.Region()).insert(kdb.Box(*box))
    width = technology.dim("well_width")
    space = max(technology.dim("well_space", spec) for spec in technology.devices.values() if spec.well)
    for key, region in sorted(drawn.items(), key=lambda entry: entry[0]):
        others = kdb.Region()
        for other, shapes in drawn.items():
            if other != key:
                others += shapes
        patch = (_joined(region, space, width) - region - others.sized(space)).merged()
        for layer in (key[0], *key[2]):
            cell.shapes(technology.layer(cell.layout(), layer)).insert(patch)


def _joined(region: kdb.Region, space: int, width: int) -> kdb.Region:
    """Return ``region`` with gaps and holes narrower than ``space`` filled; corners that nearly meet are bridged."""
    half = -(-space // 2)
    for _ in range(len(list(region.each())) + 1):
        region = region.sized(half, 2).sized(-half, 2) + region
        region.merge()
        faults = region.space_check(space, False, kdb.Metrics.Euclidian)
        faults += region.width_check(width, False, kdb.Metrics.Euclidian)
        if faults.is_empty():
            break
        for pair in faults.each():
            region.insert(pair.bbox().enlarged(width // 2, width // 2))
        region.merge()
    return region


def _route(
    technology: Technology,
    cell: kdb.Cell,
    modules: Mapping[str, Module],
    trans: Mapping[str, kdb.Trans],
    supplies: set[str],
) -> RoutingResult:
    terminals: dict[str, list[Terminal]] = {}
    for name in sorted(modules):
        for number, pin in enumerate(modules[name].pins):
            box = pin.box.transformed(trans[name])
            group = name if modules[name].joined else f"{name} {number}"
            terminals.setdefault(pin.net, []).append(Terminal(pin.layer, box, group=group))
    wire = technology.conductors[1]
    nets = [
        NetRequest(
            net,
            tuple(ends),
            width=wire.width * SUPPLY_WIDTH_FACTOR if net in supplies else None,
            priority=2 if net in supplies else 1,
        )
        for net, ends in sorted(terminals.items())
        if len(ends) > 1
    ]
    layers = [conductor.name for conductor in technology.conductors[1:5]]
    room = 8 * (technology.conductors[2].width + technology.conductors[2].space)
    area = cell.bbox().enlarged(room, room)
    obstacles = _obstacles(technology, cell, terminals)
    for name in sorted(modules):
        for keepout in modules[name].keepouts:
            box = keepout.box.transformed(trans[name])
            obstacles.setdefault(keepout.layer, []).append((kdb.Polygon(box), None))
    return route(technology, nets, obstacles, area, layers, RouteOptions())


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


def label_ports(
    technology: Technology, assembly: Assembly, modules: Sequence[Module], ports: Sequence[str]
) -> list[str]:
    """Write each port's name and pin shape on its widest rail; return the ports that have no metal."""
    layout, missing = assembly.cell.layout(), []
    for port in ports:
        boxes = [
            (pin.box.transformed(assembly.trans[module.name]), pin.layer)
            for module in modules
            for pin in module.pins_of(port)
        ]
        if not boxes:
            missing.append(port)
            continue
        box, layer = max(boxes, key=lambda entry: (entry[0].width() * entry[0].height(), str(entry[0])))
        conductor = technology.conductor(layer)
        if conductor.pin_layer is not None:
            assembly.cell.shapes(technology.layer(layout, conductor.pin_layer)).insert(box)
        text = kdb.Text(port, kdb.Trans(0, False, box.center().x, box.center().y))
        assembly.cell.shapes(technology.layer(layout, conductor.label_layer)).insert(text)
    return missing
