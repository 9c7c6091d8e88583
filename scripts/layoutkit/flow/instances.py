"""Instances of a finished cell: the cell as a module with pins, and the modules inside it as those of an instance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from layoutkit.layout.cells import copy_content, fresh_cell

if TYPE_CHECKING:
    from collections.abc import Mapping

    import klayout.db as kdb

    from layoutkit.circuit.constraints import Outcome
    from layoutkit.draw.module import Module
    from layoutkit.flow.hierarchy import InstanceGroup
    from layoutkit.flow.modules import Drawn
    from layoutkit.technology import Technology


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


def _copied(layout: kdb.Layout, source: kdb.Cell) -> kdb.Cell:
    """Copy a cell, and those below it that ``layout`` lacks, into ``layout``; return the copy."""
    origin = source.layout()
    below = sorted((origin.cell(index) for index in source.called_cells()), key=lambda cell: cell.name)
    missing = [cell for cell in (*below, source) if not layout.has_cell(cell.name)]
    for cell in missing:
        fresh_cell(layout, cell.name)
    index = {cell.cell_index(): layout.cell(cell.name).cell_index() for cell in (*below, source)}
    for cell in missing:
        copy_content(cell, layout.cell(cell.name), index)
    return layout.cell(source.name)


def in_layout(finished: FinishedCell, layout: kdb.Layout) -> FinishedCell:
    """Return a finished cell as ``layout`` holds it."""

    def moved(module: Module) -> Module:
        return replace(module, cell=layout.cell(module.cell.name), layout=layout)

    inside = tuple(
        replace(
            each,
            module=(module := moved(each.module)),
            item=None if each.item is None else replace(each.item, module=module),
        )
        for each in finished.inside
    )
    return replace(finished, module=moved(finished.module), inside=inside)


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
    devices = tuple(
        replace(
            device,
            id=names[device.id],
            terminals={terminal: nets.get(net, net) for terminal, net in device.terminals.items()},
        )
        for device in group.devices
    )
    cascodes = tuple(names[device] for device in getattr(group, "cascodes", ()))
    changed: dict[str, Any] = {"cascodes": cascodes} if cascodes else {}
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
        module = renamed_module(each.module, f"{group.name}.{each.module.name}", group.names, group.nets)
        item = renamed_item(each.item, module, group.names, group.nets) if each.item is not None else None
        found.append(Inside(module, trans * each.trans, item))
    return tuple(found)
