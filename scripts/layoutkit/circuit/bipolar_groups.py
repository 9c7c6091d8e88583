r"""Find the matched groups of bipolar transistors: pairs with their cascodes and emitter followers, and arrays.

    c1  c2      c1    c2      c1          c2         |a  |b       vcc     vcc
  b1-|  |-b2  b1-|    |-b2  b1-|          |-b2   b---|---|      b1-|       |-b2
     |__|        R    R        |___R______|          c1  c2        |       |
     tail        |_tail_       I1         I2         of a pair     o1      o2
          pairs, with and without resistors          cascodes      followers

Two transistors are a pair if their emitters meet at one tail, even where other transistors share their bases: two on
one signal then belong to two pairs, and are no array. An array has one base, or consists of diodes on one supply.
"""

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
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from layoutkit.circuit.channels import Channels
    from layoutkit.circuit.circuit import Device

_MOST_ON_A_NET = 16


def bipolar_groups(
    channels: Channels,
    order: Mapping[str, int],
    inputs: Iterable[Sequence[Device]],
    images: Iterable[Sequence[str]],
    crossed: Iterable[Sequence[str]],
) -> tuple[list[Found], list[Found]]:
    """Return the pairs of bipolar transistors, with their cascodes and followers, and the arrays of all others.

    Args:
        channels: The channels of the circuit.
        order: Id of each device to its place in the netlist.
        inputs: The input pairs of channels, on which bipolar cascodes may stand.
        images: Each two devices that mirror each other.
        crossed: Each two devices that drive each other.
    """
    pairs = _pairs(channels, order, {frozenset(pair) for pair in crossed})
    outputs = [[device.terminals["d"] for device in pair] for pair in inputs]
    outputs += [[channels.circuit.device(name).terminals["c"] for name in pair.devices] for pair in pairs]
    pairs += [*_cascodes(channels, outputs, order), *_followers(channels, images)]
    return pairs, _arrays(channels, order, {name for pair in pairs for name in pair.devices})


def _pairs(channels: Channels, order: Mapping[str, int], latched: Collection[frozenset[str]]) -> list[Found]:
    """Return the only two equal transistors on one tail with separate bases and collectors, and cross-coupled ones."""
    found, bipolars = [], [d for d in channels.circuit.devices if d.type in {"npn", "pnp"}]
    listed = sorted(bipolars, key=lambda device: order[device.id])
    for (_, tail), members in grouped(listed, lambda device: (drawing(device), _tail(channels, device))).items():
        several = [*combinations(members, 2)] if len(members) <= _MOST_ON_A_NET else []
        crossed = [pair for pair in several if frozenset(device.id for device in pair) in latched]
        alone = several if len(several) == 1 and tail not in channels.supplies else []
        for pair in crossed or alone:
            if all(len({device.terminals[end] for device in pair}) == 2 for end in "bc"):
                kind = "cross_coupled_pair" if crossed else "differential_pair"
                found.append(_pair(kind, pair))
    return found


def _tail(channels: Channels, device: Device) -> str:
    """Return the net at which the currents of a pair meet: below the resistors at the emitters, or between them."""
    net = device.terminals["e"]
    if net in channels.supplies:
        return net
    resistors = [each for each in channels.others[net] if each.type == "resistor"]
    for resistor in resistors if len(resistors) == 1 else ():
        (far,) = {resistor.terminals[end] for end in resistor.kind.ends} - {net} or {net}
        on_far = [each for each in channels.others.get(far, ()) if each is not resistor]
        if len(channels.others[net]) == 2 and not channels.channel_ends(net):
            return far
        if any(each.terminals.get("e") == far and drawing(each) == drawing(device) for each in on_far):
            return min(net, far)
    return net


def _cascodes(channels: Channels, outputs: Sequence[Sequence[str]], order: Mapping[str, int]) -> Iterator[Found]:
    """Yield each two equal transistors on one base whose emitters are on the two outputs of a pair, and on theirs."""
    rows = list(outputs)
    for nets in rows:  # which grows
        sides = [[d for d in channels.others.get(net, ()) if d.terminals.get("e") == net] for net in nets]
        for kind in ("npn", "pnp"):
            row = [device for side in sides for device in side if device.type == kind]
            counts = [len({device.terminals[end] for device in row}) for end in "bec"]
            if len(row) == 2 and counts == [1, 2, 2] and drawing(row[0]) == drawing(row[1]):
                row.sort(key=lambda device: order[device.id])
                rows.append([device.terminals["c"] for device in row])
                yield _pair("cascode_pair", row)


def _followers(channels: Channels, images: Iterable[Sequence[str]]) -> Iterator[Found]:
    """Yield each two images with one collector, a supply, and separate bases and emitters."""
    for names in images:
        pair = [channels.circuit.device(name) for name in names]
        if {"npn", "pnp"}.isdisjoint(device.type for device in pair):
            continue
        counts = {end: len({device.terminals[end] for device in pair}) for end in "cbe"}
        if counts == {"c": 1, "b": 2, "e": 2} and pair[0].terminals["c"] in channels.supplies:
            yield _pair("symmetric_pair", pair)


def _pair(kind: str, pair: Sequence[Device]) -> Found:
    properties = {"matched": True, "units": {device.id: with_units(device).m for device in pair}}
    for terminal, name in (("b", "common_base"), ("e", "common_emitter")):
        nets = {device.terminals[terminal] for device in pair}
        properties |= {name: nets.pop()} if len(nets) == 1 else {}
    return Found(kind, tuple(device.id for device in pair), properties)


def _arrays(channels: Channels, order: Mapping[str, int], used: set[str]) -> list[Found]:
    """Return bipolar transistors of one model on one base: those on one collector too, or with separate collectors.

    Diodes of one model are an array, too, whose emitters are on one supply. Those ``used`` in other groups are in none.
    """
    alike: dict[tuple[str, ...], list[Device]] = defaultdict(list)
    base_of = cache(lambda net: _base(channels, net))
    for device in (each for each in channels.circuit.devices if each.id not in used):
        net = device.terminals
        if device.type == "pnp" and net["c"] != net["b"] == net["e"] in channels.supplies.ground:  # a diode, turned
            turned = replace(device, terminals={**net, "c": net["e"], "e": net["c"]})
            alike[device.type, device.model.lower(), net["b"]].append(turned)
        elif device.type in {"npn", "pnp"} and net["e"] not in (net["b"], net["c"]):
            alike[device.type, device.model.lower(), base_of(net["b"])].append(device)
    found = []
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
    diodes = _bipolar_diodes(channels, [each for members in alike.values() for each in members], used)
    return found + [_bipolars(devices, order) for devices in diodes]


def _base(channels: Channels, net: str) -> str:
    """Return a net of bases, or that of a diode from which these get but their base current, through resistors."""
    beside = () if net in channels.supplies else channels.others.get(net, ())
    if len(beside) != 1 or beside[0].type != "resistor" or channels.channel_ends(net):
        return net
    _, far = channels.path_from(beside[0], net)
    nets = (device.terminals for device in channels.others.get(far, ()))
    return far if any(far == each.get("b") == each.get("c") for each in nets) else net


def _bipolar_diodes(channels: Channels, devices: Iterable[Device], used: Collection[str]) -> list[list[Device]]:
    """Return the bipolar diodes of one model with emitters on one supply and bases on several nets."""
    free = (d for d in devices if d.id not in used and d.terminals["e"] in channels.supplies)
    diodes = grouped(
        (device for device in free if device.terminals["b"] == device.terminals["c"]),
        lambda device: (device.type, device.model.lower(), device.terminals["e"]),
    )
    return [members for members in diodes.values() if len({device.terminals["b"] for device in members}) > 1]


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
