"""Find transistors on one gate net whose feet end on one net (a mirror or current sources), or that are in parallel.

A netlist from a layout lists each finger as a device. Groups are found in a circuit in which the first of the
transistors in parallel stands for all, and then list all of them.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from layoutkit.circuit.channels import electrical_width, gate_length

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from layoutkit.circuit.channels import Channels
    from layoutkit.circuit.circuit import Circuit, Device, RecognisedModule


OTHER_TYPE = {"nmos": "pmos", "pmos": "nmos"}


class Family(NamedTuple):
    """Transistors of one type and model on one gate net whose feet end on one net, in the order of the netlist."""

    gate: str
    root: str
    members: tuple[Device, ...]


def families_of(channels: Channels) -> dict[tuple[str, str, str], list[Family]]:
    """Return the families of a circuit by type, model and gate net."""
    members: dict[tuple[str, str, str], dict[str, list[Device]]] = defaultdict(lambda: defaultdict(list))
    for device in channels.mos.values():
        gate = device.terminals["g"]
        if gate not in channels.supplies:
            key = (device.type, device.model.lower(), gate)
            members[key][channels.foot(device).root].append(device)
    found: dict[tuple[str, str, str], list[Family]] = {}
    for key, by_root in members.items():
        _join_source_port(channels, key[2], by_root)
        _join_self_biased(channels, key[2], by_root)
        found[key] = []
        for root, devices in by_root.items():
            kept = _without_cascodes(channels, devices)
            if kept:
                found[key].append(Family(key[2], root, tuple(kept)))
    return found


def _join_source_port(channels: Channels, gate: str, by_root: dict[str, list[Device]]) -> None:
    """Move a diode whose source is a port, which a junction outside holds, to those of its gate at a supply."""
    held = [
        root
        for root, devices in by_root.items()
        if root in channels.ports and root not in channels.supplies
        if len(devices) == len(channels.channel_ends(root)) == 1 and devices[0].terminals["d"] == gate
    ]
    rails = [root for root in by_root if root in channels.supplies]
    if len(held) == len(rails) == 1 and any("resistor" in channels.foot(d).kinds for d in by_root[rails[0]]):
        by_root[rails[0]] += by_root.pop(held[0])


def _join_self_biased(channels: Channels, gate: str, by_root: dict[str, list[Device]]) -> None:
    """Move the transistor above a channel that sets its current to the diode on its gate, at a rail.

    A mirror of the other type returns the current of the one to the other, so that it is no cascode. The gain round
    the loop is above one without the channel. Where nothing but the port is on the source, a component outside the
    circuit sets the current, and the loop may have any gain.
    """
    railed = [d for root, devices in by_root.items() if root in channels.supplies for d in devices]
    diodes = [d for d in railed if d.terminals["d"] == gate]
    lifted = [root for root, devices in by_root.items() if root not in channels.supplies and len(devices) == 1]
    for root in lifted if len(diodes) == 1 else ():
        (device,) = by_root[root]
        returning = [d for d in channels.gates.get(device.terminals["d"], ()) if d.type != device.type]
        returning = [d for d in returning if channels.foot(d).root in channels.supplies]
        ends = ([d for d in returning if d.terminals["d"] == end] for end in (device.terminals["d"], gate))
        loops = [_area(device, output) > _area(diodes[0], reference) for reference, output in product(*ends)]
        alone = channels.channel_ends(root) == [device] and not channels.others.get(root)
        alone = alone and root in channels.ports and gate_length(device) == gate_length(diodes[0])
        if (channels.drains.get(device.terminals["s"]) and any(loops)) or (alone and loops):
            by_root[channels.foot(diodes[0]).root] += by_root.pop(root)


def _area(*devices: Device) -> float:
    """Return the product of the widths of transistors."""
    return prod(electrical_width(device) or 0 for device in devices)


def _without_cascodes(channels: Channels, devices: Sequence[Device]) -> list[Device]:
    """Return the devices on one root without those above switches that only ports drive: these may be sources.

    One no wider than a diode of its length on the gate is no cascode: the net below it would be at the rail. Nor are
    those on the gate of a diode above a switch, unless a diode of the other type feeds it: then the switch is a source.
    """
    switched = [d for d in devices if "switch" in channels.foot(d).kinds]
    switched = [d for d in switched if "junction" not in channels.foot(d).kinds]  # no source stands on one
    feet = {name for d in switched for name in channels.foot(d).devices if name in channels.mos}
    closed = [d for d in switched if d.terminals["d"] == d.terminals["g"]]
    closed = [d for d in closed if not channels.has_diode(d.terminals["g"], OTHER_TYPE[d.type])]
    if not feet or closed or any(channels.is_switch(channels.mos[name]) for name in feet):
        return list(devices)
    diodes = [d for d in devices if d.terminals["d"] == d.terminals["g"] and not channels.foot(d).kinds]
    widest: dict[Any, float] = defaultdict(float)
    for diode in diodes:
        length = gate_length(diode)
        widest[length] = max(widest[length], electrical_width(diode) or 0)
    return [
        d for d in devices if d not in switched or 0 < (electrical_width(d) or 0) <= widest[gate_length(d)] * (1 + 1e-9)
    ]


def fingers_of(circuit: Circuit, members: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Return the first of equal transistors on the same terminals to all of them, where there are several.

    Args:
        circuit: Oriented.
        members: The first of equal devices in parallel to all of them.
    """
    found = {}
    for first, names in members.items():
        terminals = circuit.device(first).terminals
        same = tuple(name for name in names if circuit.device(name).terminals == terminals)
        if len(same) > 1 and circuit.device(first).is_mos:
            found[first] = same
    return found


def folded(circuit: Circuit, fingers: Mapping[str, tuple[str, ...]]) -> Circuit:
    """Return a circuit without the transistors that the first of equal ones in parallel stands for."""
    more = {name for names in fingers.values() for name in names[1:]}
    if not more:
        return circuit
    devices = []
    for device in circuit.devices:
        if device.id in fingers:
            devices.append(replace(device, params={**device.params, "m": device.m * len(fingers[device.id])}))
        elif device.id not in more:
            devices.append(device)
    return replace(circuit, devices=tuple(devices))


def unfolded(
    modules: Iterable[RecognisedModule], circuit: Circuit, fingers: Mapping[str, tuple[str, ...]]
) -> tuple[RecognisedModule, ...]:
    """Return groups of a folded circuit with all devices; ``halves`` are the two sides of a pair with more than two.

    Args:
        modules: The groups.
        circuit: The circuit before it was folded.
        fingers: The first of equal transistors in parallel to all of them.
    """

    def all_of(names: Iterable[str]) -> list[str]:
        return [each for name in names for each in fingers.get(name, (name,))]

    return tuple(_unfolded(module, circuit.device, all_of) for module in modules) if fingers else tuple(modules)


def _unfolded(
    module: RecognisedModule, device: Callable[[str], Device], all_of: Callable[[Iterable[str]], list[str]]
) -> RecognisedModule:
    devices, properties = all_of(module.devices), dict(module.properties)
    for key in ("cascodes", "unequal_length", "joined_by"):
        if key in properties:
            properties[key] = all_of(properties[key])
    if "feet" in properties:
        feet = properties["feet"].items()
        properties["feet"] = {each: all_of(names) for name, names in feet for each in all_of([name])}
    for key in ("stages", "halves"):
        if key in properties:
            properties[key] = [all_of(names) for names in properties[key]]
    if module.type == "current_mirror":
        reference = device(properties["reference"])
        properties["outputs"] = all_of((reference.id, *properties["outputs"]))[1:]
        properties["ratios"] = {name: ratio(device(name), reference) for name in properties["outputs"]}
    elif len(module.devices) == 2 < len(devices):
        properties["halves"] = [all_of([name]) for name in module.devices]
    return replace(module, devices=tuple(devices), properties=properties)


def ratio(output: Device, reference: Device) -> float | None:
    """Return how many times the reference's current an output carries.

    It is None when their lengths differ, or their widths do and the netlist leaves one open.
    """
    if gate_length(output) != gate_length(reference):
        return None
    own, base = electrical_width(output), electrical_width(reference)
    if own is None or base is None or (own != base and {*output.unknown, *reference.unknown} & {"w", "nf", "m"}):
        return None
    return round(own / base, 6)


def halves(module: RecognisedModule) -> list[tuple[Any, ...]]:
    """Return the pairs of equal devices that a pair of several devices in parallel consists of; none if it has none."""
    sides = module.properties.get("halves", ((), ()))
    return list(zip(*sides, strict=True)) if len(sides[0]) == len(sides[1]) else []
