"""Instances of a finished cell: the cell as a module with pins, and the modules inside it as those of an instance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from layoutkit.circuit.ranked_names import named_after
from layoutkit.draw.module import Instance
from layoutkit.flow.hierarchy import InstanceGroup
from layoutkit.layout.cells import copy_content, fresh_cell
from layoutkit.place import Block
from layoutkit.place.blocks import Clearances
from layoutkit.rectangle import Rectangle

if TYPE_CHECKING:
    from collections.abc import Mapping

    import klayout.db as kdb

    from layoutkit.circuit.constraints import Outcome
    from layoutkit.draw.module import DrawnDummy, Gate, Keepout, Module, Pin
    from layoutkit.flow.modules import Drawn
    from layoutkit.technology import Technology

_SHAPES = 3
"""Shapes of an array from which placement chooses."""


@dataclass(frozen=True)
class Inside:
    """A module or ring inside a cell: what it is, and what moves it into the cell's coordinates."""

    module: Module
    trans: kdb.Trans
    item: Drawn | None


@dataclass(frozen=True)
class Well:
    """Wells of one layer, net and oxide, in a cell's coordinates. [dbu]"""

    layer: str
    net: str
    oxide: tuple[str, ...]
    shapes: kdb.Region


@dataclass(frozen=True)
class FinishedCell:
    """A subcircuit that is laid out, wires included.

    Attributes:
        name: Name of the cell.
        module: The cell as a module in names of its own; its pins are those of nets that lead out.
        inside: All modules and rings in it, those of inner cells included.
        kinds: Kinds of the blocks in it.
        wells: Its wells.
        texts: Name and place of each device; they are written where the cell is placed.
        outcomes: What became of its constraints, in its own names.
        wiring: Nets, wire length and vias inside, as JSON data. [um]
    """

    name: str
    module: Module
    inside: tuple[Inside, ...]
    kinds: frozenset[str]
    wells: tuple[Well, ...]
    texts: tuple[tuple[str, kdb.Point], ...]
    outcomes: tuple[Outcome, ...]
    wiring: Mapping[str, Any]


def instance_module(layout: kdb.Layout, group: InstanceGroup, finished: FinishedCell) -> Module:
    """Return an instance of a finished cell as a module, in the names of the circuit that contains it.

    Args:
        layout: Receives the cell, unless it holds it already.
        group: The instance.
        finished: Its cell.
    """
    cell = layout.cell(finished.name) or _copied(layout, finished.module.cell)
    module = renamed_module(finished.module, group.name, group.names, group.nets)
    return replace(module, cell=cell, layout=layout)


def array_modules(
    layout: kdb.Layout, technology: Technology, group: InstanceGroup, finished: FinishedCell
) -> list[Module]:
    """Return an array of instances of a finished cell in several shapes, the one nearest to a square first.

    Neighbours are as far apart as any two blocks. The order is that of the netlist, every second row backwards.
    """
    count, box = len(group.several), finished.module.bbox
    gaps = _gaps(technology, finished)
    pitch_x, pitch_y = (
        technology.snap_up(side + gap) for side, gap in zip((box.width(), box.height()), gaps, strict=True)
    )

    def uneven(columns: int) -> tuple[float, int]:
        width, height = columns * pitch_x, -(-count // columns) * pitch_y
        return max(width, height) / min(width, height) * -(-count // columns) * columns / count, columns

    shapes = sorted(range(1, count + 1), key=uneven)[:_SHAPES]
    return [_array(layout, group, finished, columns, (pitch_x, pitch_y)) for columns in shapes]


def _gaps(technology: Technology, finished: FinishedCell) -> tuple[int, int]:
    """Return how far apart two instances side by side and one above the other are. [dbu]"""
    module = finished.module
    boxes = {
        spec.name: module.cell.bbox(technology.layer(module.layout, spec.name)) for spec in technology.layers.values()
    }
    one, other = (
        Block(
            name,
            name,
            Rectangle(module.bbox.left, module.bbox.bottom, module.bbox.right, module.bbox.top),
            (),
            {layer: Rectangle(b.left, b.bottom, b.right, b.top) for layer, b in boxes.items() if not b.empty()},
            holds=finished.kinds,
        )
        for name in ("one", "other")
    )
    clearances = Clearances(technology)
    room = technology.conductors[2].width + technology.conductors[2].space
    gaps = clearances.gaps((one, other))
    left, right, bottom, top = range(4)
    return int(gaps[right, 4 + left]) + room, int(gaps[top, 4 + bottom]) + room


def _array(
    layout: kdb.Layout, group: InstanceGroup, finished: FinishedCell, columns: int, pitch: tuple[int, int]
) -> Module:
    """Return an array of some columns, drawn in ``layout`` as a cell with KLayout arrays."""
    import klayout.db as kdb

    name = group.name
    while layout.has_cell(name):
        name += f"_{columns}"
    single = instance_module(layout, group.several[0], finished)
    cell, count = fresh_cell(layout, name), len(group.several)
    rows, rest = divmod(count, columns)
    for size, number, row in ((columns, rows, 0), (rest, 1, rows)):
        if size and number:
            place = kdb.Trans(0, row * pitch[1])
            along, up = kdb.Vector(pitch[0], 0), kdb.Vector(0, pitch[1])
            one = size == number == 1
            index = single.cell.cell_index()
            cell.insert(
                kdb.CellInstArray(index, place) if one else kdb.CellInstArray(index, place, along, up, size, number)
            )
    pins: list[Pin] = []
    gates: list[Gate] = []
    keepouts: list[Keepout] = []
    dummies: list[DrawnDummy] = []
    places = []
    for position, member in enumerate(group.several):
        row, column = divmod(position, columns)
        backwards = row % 2 == 1 and row < rows
        x, y = (columns - 1 - column if backwards else column) * pitch[0], row * pitch[1]
        module = renamed_module(finished.module, member.name, member.names, member.nets)
        pins += [replace(pin, box=pin.box.moved(x, y)) for pin in module.pins]
        gates += [replace(gate, box=gate.box.moved(x, y)) for gate in module.gates]
        keepouts += [replace(keepout, box=keepout.box.moved(x, y)) for keepout in module.keepouts]
        dummies += module.dummies
        places.append(Instance(member.name, member.cell, x, y, "R0"))
    return replace(
        finished.module,
        name=group.name,
        cell=cell,
        layout=layout,
        pins=tuple(pins),
        devices=tuple(device.id for device in group.devices),
        instances=tuple(places),
        bbox=cell.bbox(),
        gates=tuple(gates),
        keepouts=tuple(keepouts),
        dummies=tuple(dummies),
        joined=False,
    )


def members_of(item: Drawn, trans: kdb.Trans) -> list[tuple[InstanceGroup, kdb.Trans]]:
    """Return each instance of a drawn instance or array with its place; none for what is no instance.

    Args:
        item: What was drawn.
        trans: Where it lies.
    """
    import klayout.db as kdb

    if not isinstance(item.group, InstanceGroup):
        return []
    places = [kdb.Trans(int(each.x), int(each.y)) for each in item.module.instances] or [kdb.Trans()]
    return [(member, trans * place) for member, place in zip(item.group.members, places, strict=True)]


def _copied(layout: kdb.Layout, source: kdb.Cell) -> kdb.Cell:
    """Copy a cell, and those below it that ``layout`` lacks, into ``layout``; return the copy."""
    origin = source.layout()
    below = [origin.cell(index) for index in sorted(source.called_cells())]
    missing = [cell for cell in (*below, source) if not layout.has_cell(cell.name)]
    for cell in missing:
        fresh_cell(layout, cell.name)
    index = {cell.cell_index(): layout.cell(cell.name).cell_index() for cell in (*below, source)}
    for cell in missing:
        copy_content(cell, layout.cell(cell.name), index)
    return layout.cell(source.name)


def in_layout(finished: FinishedCell, layout: kdb.Layout) -> FinishedCell:
    """Return a finished cell as ``layout`` holds it."""
    inside = tuple(
        replace(
            each,
            module=(module := each.module.in_layout(layout)),
            item=None if each.item is None else replace(each.item, module=module),
        )
        for each in finished.inside
    )
    return replace(finished, module=finished.module.in_layout(layout), inside=inside)


def renamed_module(module: Module, name: str, names: Mapping[str, str], nets: Mapping[str, str]) -> Module:
    """Return a module with the devices and nets of an instance."""

    def net_of(net: str) -> str:
        return nets.get(net, net)

    return replace(
        module,
        name=name,
        pins=tuple(replace(pin, net=net_of(pin.net)) for pin in module.pins),
        devices=tuple(names[device] for device in module.devices),
        instances=tuple(replace(each, parent=names.get(each.parent, each.parent)) for each in module.instances),
        gates=tuple(replace(gate, device=names.get(gate.device, gate.device)) for gate in module.gates),
        dummies=tuple(
            replace(
                dummy,
                gate=net_of(dummy.gate),
                first=net_of(dummy.first),
                second=net_of(dummy.second),
                bulk=net_of(dummy.bulk),
            )
            for dummy in module.dummies
        ),
    )


def renamed_item(item: Drawn, module: Module, names: Mapping[str, str], nets: Mapping[str, str]) -> Drawn:
    """Return a drawn group inside a cell as one of an instance, whose module is ``module``."""
    group = item.group
    devices, guards = (
        tuple(
            replace(
                device,
                id=names[device.id],
                terminals={terminal: nets.get(net, net) for terminal, net in device.terminals.items()},
            )
            for device in members
        )
        for members in (group.devices, getattr(group, "guards", ()))
    )
    cascodes = tuple(names[device] for device in getattr(group, "cascodes", ()))
    changed: dict[str, Any] = ({"cascodes": cascodes} if cascodes else {}) | ({"guards": guards} if guards else {})
    bulk = nets.get(group.bulk_net, group.bulk_net)
    return replace(item, group=replace(group, devices=devices, bulk_net=bulk, **changed), module=module, others=())


def name_devices(
    cell: kdb.Cell, technology: Technology, group: InstanceGroup, finished: FinishedCell, trans: kdb.Trans
) -> None:
    """Write the names of an instance's devices into the cell that contains it, as modules have them in their cells."""
    import klayout.db as kdb

    shapes = cell.shapes(technology.layer(cell.layout(), technology.roles["device_text"]))
    for name, point in finished.texts:
        place = trans * point
        shapes.insert(kdb.Text(group.names[name], kdb.Trans(place.x, place.y)))


def inside_of(group: InstanceGroup, finished: FinishedCell, trans: kdb.Trans) -> tuple[Inside, ...]:
    """Return the modules and rings inside an instance, in the names and coordinates of what contains it.

    Args:
        group: The instance.
        finished: Its cell.
        trans: Where the instance lies.
    """
    found = []
    for each in finished.inside:
        first = next((group.names[device] for device in each.module.devices), group.name)
        name = named_after(first, f"{group.name}.{each.module.name}")
        module = renamed_module(each.module, name, group.names, group.nets)
        item = renamed_item(each.item, module, group.names, group.nets) if each.item is not None else None
        found.append(Inside(module, trans * each.trans, item))
    return tuple(found)
