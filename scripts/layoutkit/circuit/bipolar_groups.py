"""Find bipolar transistors whose ratio counts: arrays on one base, of diodes on one supply, and pairs."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING, Any

from layoutkit.circuit.bipolar_map import with_units
from layoutkit.circuit.mirrors import Found
from layoutkit.circuit.symmetry_graph import drawing, grouped

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from layoutkit.circuit.channels import Channels
    from layoutkit.circuit.circuit import Device

_MOST_ON_A_NET = 16


def bipolar_arrays(channels: Channels, order: Mapping[str, int]) -> list[Found]:
    """Return bipolar transistors of one model on one base: those on one collector too, or with separate collectors.

    Diodes of one model are an array, too, whose emitters are on one supply. Two on one emitter with separate bases and
    collectors are a pair, or a cross-coupled one.
    """
    alike: dict[tuple[str, ...], list[Device]] = defaultdict(list)
    base_of = cache(lambda net: _base(channels, net))
    for device in channels.circuit.devices:
        net = device.terminals
        if device.type == "pnp" and net["c"] != net["b"] == net["e"] in channels.supplies.ground:  # a diode, turned
            turned = replace(device, terminals={**net, "c": net["e"], "e": net["c"]})
            alike[device.type, device.model.lower(), net["b"]].append(turned)
        elif device.type in {"npn", "pnp"} and net["e"] not in (net["b"], net["c"]):
            alike[device.type, device.model.lower(), base_of(net["b"])].append(device)
    found, used = [], set[str]()
    for (_, _, base), every in alike.items():
        followers = [device for device in every if device.terminals["c"] in channels.supplies.power]
        # Followers beside others on one base are driven by these: each drives an output of its own.
        devices = every if len(followers) == len(every) else [each for each in every if each not in followers]
        collectors = {device.terminals["c"] for device in devices}
        by_collector = grouped(devices, lambda device: device.terminals["c"])
        crossed = collectors & {device.terminals["e"] for device in devices}
        one = base not in channels.supplies and len(collectors) > 1 and not crossed
        for members in [devices] if one else by_collector.values():
            parallel = len({tuple(sorted(device.terminals.items())) for device in members}) == 1
            if len(members) > 1 and (not parallel or members[0].type == "pnp"):
                used.update(device.id for device in members)
                found.append(_bipolars(members, order))
    for devices in _bipolar_diodes(channels, [each for members in alike.values() for each in members], used):
        used.update(device.id for device in devices)
        found.append(_bipolars(devices, order))
    pairs = [device for devices in alike.values() for device in devices if device.id not in used]
    return found + _bipolar_pairs(channels, pairs, order)


def _base(channels: Channels, net: str) -> str:
    """Return a net of bases, or that of a diode from which these get but their base current, through a resistor."""
    ends = () if net in channels.supplies else channels.circuit.nets[net]
    beside = [channels.circuit.device(end.device) for end in ends if end.terminal != "b"]
    if len(beside) != 1 or beside[0].type != "resistor":
        return net
    (far,) = {beside[0].terminals[end] for end in beside[0].kind.ends} - {net} or {net}
    on_far = [channels.circuit.device(end.device).terminals for end in channels.circuit.nets[far]]
    return far if any(far == nets.get("b") == nets.get("c") for nets in on_far) else net


def _bipolar_diodes(channels: Channels, devices: Iterable[Device], used: Collection[str]) -> list[list[Device]]:
    """Return the bipolar diodes of one model with emitters on one supply and bases on several nets."""
    free = (d for d in devices if d.id not in used and d.terminals["e"] in channels.supplies)
    diodes = grouped(
        (device for device in free if device.terminals["b"] == device.terminals["c"]),
        lambda device: (device.type, device.model.lower(), device.terminals["e"]),
    )
    return [members for members in diodes.values() if len({device.terminals["b"] for device in members}) > 1]


def _bipolar_pairs(channels: Channels, devices: Iterable[Device], order: Mapping[str, int]) -> list[Found]:
    """Return each two equal transistors that are cross-coupled, and the only two on one emitter that is no supply."""
    found, listed = [], sorted(devices, key=lambda device: order[device.id])
    for (_, emitter), members in grouped(listed, lambda device: (drawing(device), device.terminals["e"])).items():
        pairs = [*combinations(members, 2)] if len(members) <= _MOST_ON_A_NET else []
        crossed = [pair for pair in pairs if _drives(channels, *pair) and _drives(channels, *pair[::-1])]
        kind = "cross_coupled_pair" if crossed else "bipolar_pair"
        alone = pairs if len(pairs) == 1 and emitter not in channels.supplies else []
        for one, other in crossed or alone:
            if one.terminals["c"] != other.terminals["c"]:
                found.append(Found(kind, (one.id, other.id), {"matched": True, "common_emitter": emitter}))
    return found


def _drives(channels: Channels, one: Device, other: Device) -> bool:
    """Whether the collector of one transistor is on the base of another one, or a passive device joins them."""
    nets = {one.terminals["c"], other.terminals["b"]}
    places = channels.circuit.nets[other.terminals["b"]]
    beside = [channels.circuit.device(place.device) for place in places] if len(places) <= _MOST_ON_A_NET else []
    passives = [device for device in beside if device.type in ("resistor", "capacitor")]
    return len(nets) == 1 or any(nets == {device.terminals[end] for end in device.kind.ends} for device in passives)


def _bipolars(devices: Sequence[Device], order: Mapping[str, int]) -> Found:
    members = sorted(devices, key=lambda device: order[device.id])
    units = {device.id: with_units(device).m for device in members}
    least = min(units.values())
    properties: dict[str, Any] = {
        "matched": True,
        "units": units,
        "ratios": {name: count / least for name, count in units.items()},
        "diode_connected": all(device.terminals["c"] == device.terminals["b"] for device in members),
    }
    for terminal, name in (("b", "common_base"), ("c", "common_collector")):
        nets = {device.terminals[terminal] for device in members}
        if len(nets) == 1:
            properties[name] = nets.pop()
    return Found("bipolar_array", tuple(units), properties)
