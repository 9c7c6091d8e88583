"""Which devices are drawn together: one row per matched group, and one per other transistor.

The devices of a row have the same body, gate length, finger width and flavour. A matched group whose devices differ in
one of these is split, and the split is reported.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from layoutkit.circuit.recognise import MODULE_TYPES
from layoutkit.errors import UnsupportedOperationError
from layoutkit.flow.deep_wells import isolated_bodies
from layoutkit.technology.device_kinds import PASSIVE_KINDS, plural_nouns
from layoutkit.technology.finger_widths import widest_finger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from layoutkit.circuit.circuit import Circuit, Device
    from layoutkit.circuit.constraints import Constraints
    from layoutkit.draw.deep_well import DeepWellNets
    from layoutkit.technology import DeviceSpec, Technology


@dataclass(frozen=True)
class Sizing:
    """How one device is cut into fingers. [dbu]."""

    finger_width: int
    length: int
    fingers: int


@dataclass(frozen=True)
class Group:
    """Devices drawn in one row.

    Attributes:
        name: Cell name.
        type: Recognised type; ``matched_group`` for devices that only the constraints match; or ``single``.
        spec: The flavour all of them have.
        devices: Reference first.
        sizing: Finger width and length are equal for all; fingers are per device, in the order of ``devices``.
        bulk_net: Their common body.
        level: Steps from the supply that the body is tied to: 1 next to it.
        arrangement: How the constraints want the fingers arranged; empty where they do not say.
        deep_well: Nets of the deep well that isolates their body; None where the body is the substrate or an n well.
    """

    name: str
    type: str
    spec: DeviceSpec
    devices: tuple[Device, ...]
    sizing: tuple[Sizing, ...]
    bulk_net: str
    level: int
    arrangement: str = ""
    deep_well: DeepWellNets | None = None


def group_devices(
    circuit: Circuit, technology: Technology, constraints: Constraints, deep_well_net: str | None = None
) -> tuple[tuple[Group, ...], tuple[str, ...]]:
    """Return the groups of transistors to draw, each in exactly one, and what was decided, in words.

    Args:
        circuit: Mapped to ``technology``: models are its devices, sizes are legal.
        technology: Where the circuit is drawn.
        constraints: State which devices are matched; every other transistor is drawn by itself.
        deep_well_net: Net of the deep wells around isolated bodies; None for the highest supply.

    Raises:
        UnsupportedOperationError: If there are devices of a kind that is not drawn, or bodies that can neither be the
            substrate nor be isolated; all are named.
    """
    others = [f"{d.id} ({d.type})" for d in circuit.devices if not (d.is_mos or d.type in PASSIVE_KINDS)]
    if others:
        raise UnsupportedOperationError(
            f"only {plural_nouns()} can be drawn; the circuit also has: {', '.join(others)}",
            details={"devices": others},
        )
    deep_wells, deep_notes = isolated_bodies(circuit, technology, deep_well_net)
    levels = _levels(circuit, constraints)
    recognised = {name: module for module in circuit.modules for name in module.devices}  # no device is in two
    notes: list[str] = [*deep_notes]
    groups: list[Group] = []
    taken: set[str] = set()
    for wanted in constraints.matching:
        devices = [circuit.device(name) for name in wanted.devices]
        if not devices[0].is_mos:
            continue
        parts = _alike(devices, technology)
        if len(parts) > 1:
            split = "; ".join(" ".join(d.id for d, _ in part) for part in parts)
            notes.append(
                f"the matched group {' '.join(wanted.devices)} is drawn in {len(parts)} rows, its devices differ in "
                "flavour, body, l or w / nf "
                f"(equal fingers, with nf or m for the ratio, share one row): {split}"
            )
        module = recognised.get(wanted.devices[0])
        kind = "matched_group"
        if module is not None and MODULE_TYPES[module.type].matched and set(wanted.devices) <= set(module.devices):
            kind = module.type
        for part in parts:
            group = _group(kind, part, technology, levels)
            groups.append(replace(group, arrangement=wanted.arrangement))
        taken.update(wanted.devices)
    groups.extend(
        _group("single", [(device, size(device, technology, 1))], technology, levels)
        for device in circuit.devices
        if device.id not in taken and device.is_mos
    )
    return tuple(replace(group, deep_well=deep_wells.get(group.devices[0].id)) for group in groups), tuple(notes)


def size(device: Device, technology: Technology, units: int) -> Sizing:
    """Return the fingers of a device: as in its netlist, more where a finger would be too wide or ``units`` needs more.

    The total width is kept exactly: a finger count is only taken when it divides the width on the grid.

    Args:
        device: A MOS transistor.
        technology: Gives the grid, the minimum width and the largest distance to a tap.
        units: Wanted divisor of the finger count, such as 2 for a common-centroid pair; 1 for none.
    """
    spec = technology.device(device.model)
    total = technology.snap(device.w * 1e6 / technology.dbu_um) * device.m
    length = technology.snap(device.l * 1e6 / technology.dbu_um)
    stated = device.nf * device.m
    widest = widest_finger(technology, spec)

    def legal(fingers: int) -> bool:
        width, rest = divmod(total, fingers)
        return rest == 0 and width % technology.grid == 0 and spec.min_w <= width <= widest

    candidates = range(stated, max(4 * stated, 2 * -(-total // widest)) + 1)
    for wanted in (units, 1):
        for fingers in candidates:
            if fingers % wanted == 0 and legal(fingers):
                return Sizing(total // fingers, length, fingers)
    return Sizing(technology.snap(total / stated), length, stated)


def _alike(devices: Sequence[Device], technology: Technology) -> list[list[tuple[Device, Sizing]]]:
    """Return the devices in parts that can share a row, in order."""
    sized = [(device, size(device, technology, 2)) for device in devices]
    widths = {sizing.finger_width for _, sizing in sized}
    if len(widths) > 1:
        sized = [(device, size(device, technology, 1)) for device in devices]
    parts: dict[tuple[str, str, int, int], list[tuple[Device, Sizing]]] = {}
    for device, sizing in sized:
        key = (technology.device(device.model).name, device.terminals["b"], sizing.length, sizing.finger_width)
        parts.setdefault(key, []).append((device, sizing))
    return list(parts.values())


def _group(kind: str, part: Sequence[tuple[Device, Sizing]], technology: Technology, levels: dict[str, int]) -> Group:
    kind = kind if len(part) > 1 else "single"
    devices = tuple(device for device, _ in part)
    spec = technology.device(devices[0].model)
    return Group(
        name="_".join([kind if kind != "single" else spec.type, *(d.id for d in devices)])[:60],
        type=kind,
        spec=spec,
        devices=devices,
        sizing=tuple(sizing for _, sizing in part),
        bulk_net=devices[0].terminals["b"],
        level=min(levels[d.id] for d in devices),
    )


def _levels(circuit: Circuit, constraints: Constraints) -> dict[str, int]:
    """Return each transistor's distance from the rail of its type, counted through sources and drains.

    The two devices of a symmetric pair have the same distance, the smaller one.
    """
    levels: dict[str, int] = {}
    for kind in ("nmos", "pmos"):
        devices = [device for device in circuit.devices if device.type == kind]
        reached = {device.terminals["b"] for device in devices}
        waiting, level = list(devices), 1
        while waiting:
            near = [d for d in waiting if reached & _channel_nets(d)] or waiting
            levels.update({d.id: level for d in near})
            reached = set().union(*(_channel_nets(d) for d in near))
            waiting = [d for d in waiting if d.id not in levels]
            level += 1
    for left, right in (pair for group in constraints.symmetry for pair in group.pairs):
        if left in levels and right in levels:
            levels[left] = levels[right] = min(levels[left], levels[right])
    return levels


def _channel_nets(device: Device) -> set[str]:
    return {device.terminals["s"], device.terminals["d"]}
