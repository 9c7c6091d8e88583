"""Resistors and capacitors of a circuit: which are drawn together, and drawing them.

Resistors of one flavour, width and length match: up to eight of them are one bank with a common centroid. A capacitor
is a block of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from layoutkit.circuit.supplies import substrate_net
from layoutkit.draw.capacitor import CapacitorSpec, draw_capacitor
from layoutkit.draw.passive import capacitor, resistor
from layoutkit.draw.resistor import ResistorSpec, draw_resistors
from layoutkit.errors import GeometryError
from layoutkit.technology.passive_sizes import PassiveSize

if TYPE_CHECKING:
    import klayout.db as kdb

    from layoutkit.circuit.circuit import Circuit, Device
    from layoutkit.draw.module import Module
    from layoutkit.technology import PassiveSpec, Technology

PASSIVE_TYPES = frozenset({"resistor", "capacitor"})
_MOST_IN_BANK = 8
LARGEST_PLATE_M = 2e-3
"""Side of a capacitor's plate above which its value is taken to be a mistake: no router board holds it."""


@dataclass(frozen=True)
class PassiveGroup:
    """Passives drawn in one cell.

    Attributes:
        name: Cell name.
        type: ``resistor_bank`` for several, else ``single``.
        spec: The flavour all of them have.
        devices: In the order of the netlist.
        bulk_net: Net of the substrate around resistors; empty where the circuit names none.
        level: 1.
    """

    name: str
    type: str
    spec: PassiveSpec
    devices: tuple[Device, ...]
    bulk_net: str
    level: int = 1


def group_passives(circuit: Circuit, technology: Technology) -> tuple[PassiveGroup, ...]:
    """Return the passives of ``circuit``, mapped to ``technology``, in groups."""
    banks: dict[tuple[str, str, float, float], list[Device]] = {}
    groups = []
    substrate = substrate_net(circuit)
    for device in circuit.devices:
        if device.type == "resistor":
            key = (device.model, device.terminals.get("b", substrate), device.w, device.l)
            banks.setdefault(key, []).append(device)
        elif device.type == "capacitor":
            groups.append(_group(technology, [device], ""))
    for (_, bulk, _, _), members in banks.items():
        groups += [
            _group(technology, members[i : i + _MOST_IN_BANK], bulk) for i in range(0, len(members), _MOST_IN_BANK)
        ]
    return tuple(groups)


def _group(technology: Technology, members: list[Device], bulk: str) -> PassiveGroup:
    return PassiveGroup(
        name="_".join([members[0].type, *(device.id for device in members)])[:60],
        type="resistor_bank" if len(members) > 1 else "single",
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
        GeometryError: If a size is not one to draw.
    """
    name = group.spec.name
    sizes = [PassiveSize(device.w, device.l, device.m) for device in group.devices]
    if group.spec.type == "capacitor":
        device, size = group.devices[0], sizes[0]
        if max(size.w_m, size.l_m) > LARGEST_PLATE_M:
            raise GeometryError(
                f"{device.id} would be a plate of {size.w_m * 1e6:.6g} x {size.l_m * 1e6:.6g} um, at most "
                f"{LARGEST_PLATE_M * 1e6:g} um are laid out; is its value right? (p is 1e-12, f is 1e-15)"
            )
        drawn = capacitor(technology, device.id, name, size, device.terminals)
        return draw_capacitor(layout, technology, CapacitorSpec(group.name, drawn, labels=False))
    resistors = tuple(
        resistor(technology, device.id, name, size, device.terminals)
        for device, size in zip(group.devices, sizes, strict=True)
    )
    ringed = bool(group.bulk_net)
    spec = ResistorSpec(
        group.name,
        resistors,
        group.bulk_net,
        dummies=dummies if ringed and len(resistors) > 1 else 0,
        ring=ringed,
        labels=False,
    )
    return draw_resistors(layout, technology, spec)
