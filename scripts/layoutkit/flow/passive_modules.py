"""Devices of a circuit that are not transistors: which are drawn together, and drawing them.

Resistors of one flavour, width and length match: up to eight of them are one bank with a common centroid. A device of a
kind that is not drawn in banks is a block of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from layoutkit.circuit.supplies import substrate_net
from layoutkit.draw.generators import BlockSpec, draw_block
from layoutkit.technology.passive_sizes import PassiveSize

if TYPE_CHECKING:
    import klayout.db as kdb

    from layoutkit.circuit.circuit import Circuit, Device
    from layoutkit.draw.module import Module
    from layoutkit.technology import PassiveSpec, Technology


@dataclass(frozen=True)
class PassiveGroup:
    """Devices drawn in one cell.

    Attributes:
        name: Cell name.
        type: Such as ``resistor_bank`` for several, else ``single``.
        spec: The flavour all of them have.
        devices: In the order of the netlist.
        bulk_net: Net of the well or substrate around them; empty where there is none or the circuit names none.
        level: 1.
    """

    name: str
    type: str
    spec: PassiveSpec
    devices: tuple[Device, ...]
    bulk_net: str
    level: int = 1


def group_passives(circuit: Circuit, technology: Technology) -> tuple[PassiveGroup, ...]:
    """Return the devices of ``circuit``, mapped to ``technology``, that are not transistors, in groups."""
    banks: dict[tuple[str, str, float, float], list[Device]] = {}
    groups = []
    substrate = substrate_net(circuit)
    for device in circuit.devices:
        if device.is_mos:
            continue
        bulk = _bulk_net(device, technology.passive(device.model), substrate)
        if device.kind.together > 1:
            banks.setdefault((device.model, bulk, device.w, device.l), []).append(device)
        else:
            groups.append(_group(technology, [device], bulk))
    for (_, bulk, _, _), members in banks.items():
        most = members[0].kind.together
        groups += [_group(technology, members[i : i + most], bulk) for i in range(0, len(members), most)]
    return tuple(groups)


def _bulk_net(device: Device, spec: PassiveSpec, substrate: str) -> str:
    if not (spec.body_terminal or device.kind.in_ring):
        return ""
    return device.terminals.get(spec.body_terminal or device.kind.bulk, substrate)


def _group(technology: Technology, members: list[Device], bulk: str) -> PassiveGroup:
    kind = members[0].type
    return PassiveGroup(
        name="_".join([kind, *(device.id for device in members)])[:60],
        type=f"{kind}_bank" if len(members) > 1 else "single",
        spec=technology.passive(members[0].model),
        devices=tuple(members),
        bulk_net=bulk,
    )


def draw_passives(layout: kdb.Layout, technology: Technology, group: PassiveGroup, dummies: int) -> Module:
    """Return the module of ``group``, drawn in ``layout``.

    Args:
        layout: Receives its cell.
        technology: The process.
        group: What to draw.
        dummies: Dummy bars at each end of a bank of several resistors.

    Raises:
        GeometryError: If the process does not allow a size.
    """
    devices = tuple(
        (device.id, PassiveSize(device.w, device.l, device.m), device.terminals) for device in group.devices
    )
    return draw_block(layout, technology, BlockSpec(group.name, group.spec, devices, group.bulk_net, dummies))
