"""Devices of a circuit that are not transistors: which are drawn together, and drawing them.

Matched resistors of one flavour, width and length are one bank, matched capacitors of one plate one array, both with a
common centroid. Symmetric pairs that match no other device are two equal modules. Other equal resistors share banks:
those of a string whose inner nets nothing else uses lie in its order, up to four in each, others up to eight. Resistors
whose ratio counts share a bank although their lengths differ, where bars of one length make up all of them. Bipolar
transistors of one flavour on the same base and collector, as those of a bandgap are, share arrays. Any other device is
a block of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from layoutkit.circuit.canonical import natural
from layoutkit.circuit.ranked_names import named_after
from layoutkit.circuit.roles import find_roles
from layoutkit.circuit.supplies import substrate_net
from layoutkit.circuit.symmetry import facing_nets
from layoutkit.draw.generators import BlockSpec, draw_block
from layoutkit.errors import listed
from layoutkit.technology.passive_sizes import PassiveSize, unit_bar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.circuit.circuit import Circuit, Device
    from layoutkit.circuit.constraints import Constraints
    from layoutkit.draw.module import Module
    from layoutkit.technology import PassiveSpec, Technology


ARRAYS = {"resistor": "resistor_bank", "capacitor": "capacitor_array", "pnp": "bipolar_array"}
"""Kind of device to what several of them in one block are called."""
MOST_IN_RATIO = 16
"""Most resistors in one bank whose lengths differ: each net has a rail along the whole bank."""
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
        chained: Whether the devices are resistors of one string, in its order.
        unit: Length of one bar of resistors in a ratio; 0 where each has bars of its own length. [dbu]
    """

    name: str
    type: str
    spec: PassiveSpec
    devices: tuple[Device, ...]
    bulk_net: str
    level: int = 1
    chained: bool = False
    unit: int = 0

    @property
    def shares_centroid(self) -> bool:
        """Whether it is drawn so that its devices are equal: several, and not the sections of one string."""
        return len(self.devices) > 1 and not self.chained

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
                f"the matched group {' '.join(wanted.devices)} is drawn in {len(parts)} blocks, because its devices "
                f"differ in flavour, w, l or body, or are plates in series (equal w and l, with m for the ratio, share "
                f"one): {split}"
            )
        groups += [_group(technology, part, bulks[part[0].id] or substrate) for part in parts]
        taken.update(wanted.devices)
    rest = [device for device in circuit.devices if device.id in bulks and device.id not in taken]
    pairs = {name for group in constraints.symmetry for pair in group.pairs for name in pair}
    alone = {device.id: device for device in rest if device.kind.together == 1 or device.id in pairs}
    banks, reasons = _ratio_banks(circuit, technology, [each for each in rest if each.id not in alone], bulks)
    groups += banks
    notes += reasons
    in_banks = {device.id for bank in banks for device in bank.devices}
    rest = [device for device in rest if device.id not in in_banks]
    bodies = {device.id: f"{bulks[device.id]} {_base_net(device)}" for device in rest}
    for part in _alike([device for device in rest if device.id not in alone], bodies):
        strings = _strings(circuit, part)
        for bank in (bank for string in strings for bank in _banks(string)):
            groups.append(replace(_group(technology, bank, bulks[bank[0].id]), chained=True))
        other = [device for device in part if all(device not in string for string in strings)]
        most = part[0].kind.together
        groups += [_group(technology, other[i : i + most], bulks[part[0].id]) for i in range(0, len(other), most)]
    images = _images(circuit, constraints)
    groups += [_group(technology, [images.get(name, device)], bulks[name]) for name, device in alone.items()]
    return tuple(groups), tuple(notes)


def _images(circuit: Circuit, constraints: Constraints) -> dict[str, Device]:
    """Return the right device of each symmetric pair of passives by id, with its ends in the order of the left one."""
    found = {}
    for group in constraints.symmetry:
        nets = {left: right for pair in group.net_pairs for left, right in (pair, pair[::-1])}
        for one, other in (map(circuit.device, pair) for pair in group.pairs):
            if one.kind == other.kind and one.kind.exchangeable and not one.is_mos:
                ends = dict(zip(one.kind.ends, (net for _, net in facing_nets(one, other, nets)), strict=True))
                found[other.id] = replace(other, terminals={**other.terminals, **ends})
    return found


def _alike(devices: Sequence[Device], bulks: Mapping[str, str]) -> list[list[Device]]:
    """Return the devices in parts that are made of equal bars or plates around one body, in order."""
    parts: dict[tuple[object, ...], list[Device]] = {}
    for device in devices:
        alone = device.id if device.params.get("series", 1) > 1 else ""
        key = (device.model, bulks[device.id], device.w, device.l, alone)
        parts.setdefault(key, []).append(device)
    return list(parts.values())


def _ratio_banks(
    circuit: Circuit, technology: Technology, free: Sequence[Device], bulks: Mapping[str, str]
) -> tuple[list[PassiveGroup], list[str]]:
    """Return banks of resistors whose ratio counts and whose lengths differ, and which have no common bar, in words.

    The sections of a string stay together: nothing outside sees the ratio of one to another.
    """
    sections = {each.id for part in _alike(free, bulks) for string in _strings(circuit, part) for each in string}
    own, banks, notes = {device.id: device for device in free if device.id not in sections}, [], []
    for module in (each for each in find_roles(circuit).groups if each.type == "resistor_ratio"):
        alike: dict[tuple[object, ...], list[Device]] = {}
        for device in (own[name] for name in module.devices if name in own):
            alike.setdefault((device.model, bulks[device.id], _dbu(technology, device.w)), []).append(device)
        for (_, bulk, width), members in alike.items():
            lengths = [_dbu(technology, device.l) for device in members]
            if len(set(lengths)) == 1:
                continue  # as all equal resistors
            spec = technology.passive(members[0].model)
            shares = [length for length, device in zip(lengths, members, strict=True) for _ in range(device.m)]
            unit = unit_bar(technology, spec, int(str(width)), shares)
            if not unit:
                notes.append(
                    f"the resistors {listed([each.id for each in members], 12)} are in a ratio, but no bar within the "
                    "limits of the process makes up all their lengths: each has bars of its own length"
                )
                continue
            count = -(-len(members) // MOST_IN_RATIO)
            ends = [len(members) * number // count for number in range(count + 1)]
            parts = (members[low:high] for low, high in pairwise(ends))
            banks += [replace(_group(technology, part, str(bulk)), unit=unit) for part in parts]
    return banks, notes


def _dbu(technology: Technology, length_m: float) -> int:
    return round(length_m * 1e6 / technology.dbu_um)


def _strings(circuit: Circuit, part: Sequence[Device]) -> list[list[Device]]:
    """Return the resistors of ``part`` that are in series, each string in its order.

    Nothing else is on a net between two of them, so that neither it nor their matching is seen from outside.
    """
    own = {device.id: device for device in part if device.type == "resistor" and device.m == 1}
    near: dict[str, list[Device]] = {name: [] for name in own}
    for net, connections in circuit.nets.items():
        ends = [each.device for each in connections if each.terminal in {"p", "n"}]
        alone = len(connections) == len(set(ends)) == 2 and net not in {*circuit.ports, *circuit.black_box_nets}
        if alone and own.keys() >= set(ends):
            near[ends[0]].append(own[ends[1]])
            near[ends[1]].append(own[ends[0]])
    found: list[list[Device]] = []
    for device in own.values():
        if len(near[device.id]) != 1 or any(device in string for string in found):
            continue  # inside a string, alone, or the other end of one
        string = [device]
        while following := [each for each in near[string[-1].id] if each not in string]:
            string.append(following[0])
        found.append(string)
    return found


def _banks(string: list[Device]) -> list[list[Device]]:
    """Return a string in parts of about equal length, each for one bank."""
    count = -(-len(string) // (string[0].kind.together // 2))
    cuts = [len(string) * number // count for number in range(count + 1)]
    return [string[low:high] for low, high in pairwise(cuts)]


def _along(string: Sequence[Device]) -> list[Mapping[str, str]]:
    """Return the nets of the resistors of a string, turned so that the ``n`` of each is the ``p`` of the next."""
    nets = [device.terminals for device in string]
    start = nets[0]["p"] if nets[0]["n"] in {nets[1]["p"], nets[1]["n"]} else nets[0]["n"]
    found: list[Mapping[str, str]] = []
    for each in nets:
        p, n = (each["p"], each["n"]) if each["p"] == start else (each["n"], each["p"])
        found.append({**each, "p": p, "n": n})
        start = n
    return found


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
        name=named_after(members[0].id, "_".join([kind, *sorted((each.id for each in members), key=natural)])[:60]),
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
    chained = group.chained and len(group.devices) > 1
    nets = _along(group.devices) if chained else [device.terminals for device in group.devices]
    devices = tuple(
        (device.id, _size(technology, group, device), each) for device, each in zip(group.devices, nets, strict=True)
    )
    spec = BlockSpec(group.name, group.spec, devices, group.bulk_net, dummies, chained)
    return draw_block(layout, technology, spec)


def _size(technology: Technology, group: PassiveGroup, device: Device) -> PassiveSize:
    segments = _dbu(technology, device.l) // group.unit if group.unit else None
    return PassiveSize(device.w, device.l, device.m, segments, int(device.params.get("series", 1)))
