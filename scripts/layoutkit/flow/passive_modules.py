"""Devices of a circuit that are not transistors: which are drawn together, and drawing them.

Matched resistors of one flavour, width and length are one bank, matched capacitors of one plate one array, both with a
common centroid. Other equal resistors share banks, up to eight in each, and bipolar transistors of one flavour on the
same base and collector, as those of a bandgap are, share arrays. Any other device is a block of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from layoutkit.circuit.supplies import substrate_net
from layoutkit.draw.generators import BlockSpec, draw_block
from layoutkit.technology.passive_sizes import PassiveSize

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.circuit.circuit import Circuit, Device
    from layoutkit.circuit.constraints import Constraints
    from layoutkit.draw.module import Module
    from layoutkit.technology import PassiveSpec, Technology


ARRAYS = {"resistor": "resistor_bank", "capacitor": "capacitor_array", "pnp": "bipolar_array"}
"""Kind of device to what several of them in one block are called."""
TURNED = frozenset({"resistor", "capacitor"})
"""Kinds of which a device that matches no other may be turned by 90 degrees."""


@dataclass(frozen=True)
class PassiveGroup:
    """Devices drawn in one cell.

    Attributes:
        name: Cell name.
        type: One of ``ARRAYS`` for several, else ``single``.
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

    @property
    def turns(self) -> bool:
        """Whether its module may be turned by 90 degrees: a device whose value does not depend on its direction."""
        return len(self.devices) == 1 and self.type == "single" and self.devices[0].type in TURNED


def group_passives(
    circuit: Circuit, technology: Technology, constraints: Constraints, substrate: str | None = None
) -> tuple[tuple[PassiveGroup, ...], tuple[str, ...]]:
    """Return the devices of ``circuit`` that are not transistors, in groups, and what was decided, in words.

    Args:
        circuit: Mapped to ``technology``.
        technology: Where the circuit is drawn.
        constraints: State which devices are matched.
        substrate: Net of the substrate; None for that of ``circuit``.
    """
    substrate = substrate_net(circuit) if substrate is None else substrate
    bulks = {
        device.id: _bulk_net(device, technology.passive(device.model), substrate)
        for device in circuit.devices
        if not device.is_mos
    }
    groups, notes, taken = [], [], set[str]()
    for wanted in constraints.matching:
        devices = [circuit.device(name) for name in wanted.devices]
        if devices[0].is_mos or devices[0].type not in ARRAYS:
            continue
        parts = _alike(devices, bulks)
        if len(parts) > 1:
            split = "; ".join(" ".join(device.id for device in part) for part in parts)
            notes.append(
                f"the matched group {' '.join(wanted.devices)} is drawn in {len(parts)} blocks, its devices differ in "
                f"flavour, w, l or body, or are plates in series (equal w and l, with m for the ratio, share one): "
                f"{split}"
            )
        groups += [_group(technology, part, bulks[part[0].id] or substrate) for part in parts]
        taken.update(wanted.devices)
    rest = [device for device in circuit.devices if device.id in bulks and device.id not in taken]
    bodies = {device.id: f"{bulks[device.id]} {_base_net(device)}" for device in rest}
    for part in _alike([device for device in rest if device.kind.together > 1], bodies):
        most = part[0].kind.together
        groups += [_group(technology, part[i : i + most], bulks[part[0].id]) for i in range(0, len(part), most)]
    groups += [_group(technology, [device], bulks[device.id]) for device in rest if device.kind.together == 1]
    return tuple(groups), tuple(notes)


def _alike(devices: Sequence[Device], bulks: Mapping[str, str]) -> list[list[Device]]:
    """Return the devices in parts that are made of equal bars or plates around one body, in order."""
    parts: dict[tuple[object, ...], list[Device]] = {}
    for device in devices:
        alone = device.id if device.params.get("series", 1) > 1 else ""
        key = (device.model, bulks[device.id], device.w, device.l, alone)
        parts.setdefault(key, []).append(device)
    return list(parts.values())


def _base_net(device: Device) -> str:
    """Return the net of a bipolar transistor's base, which is its well; empty for other devices."""
    return device.terminals["b"] if device.kind.substrate else ""


def _bulk_net(device: Device, spec: PassiveSpec, substrate: str) -> str:
    if not (spec.body_terminal or device.kind.in_ring):
        return ""
    return device.terminals.get(spec.body_terminal or device.kind.bulk, substrate)


def _group(technology: Technology, members: list[Device], bulk: str) -> PassiveGroup:
    kind = members[0].type
    return PassiveGroup(
        name="_".join([kind, *(device.id for device in members)])[:60],
        type=ARRAYS[kind] if len(members) > 1 else "single",
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
        dummies: Dummy bars at each end of a bank of several resistors; any number puts one dummy on each side of an
            array of capacitors or bipolar transistors.

    Raises:
        GeometryError: If the process does not allow a size.
    """
    devices = tuple(
        (
            device.id,
            PassiveSize(device.w, device.l, device.m, series=int(device.params.get("series", 1))),
            device.terminals,
        )
        for device in group.devices
    )
    return draw_block(layout, technology, BlockSpec(group.name, group.spec, devices, group.bulk_net, dummies))
