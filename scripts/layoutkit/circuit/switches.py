r"""Find equal switches: below a mirror, steering a current into two nets, ladders, and mixers without current.

  M1|--|M2            current            in --M1-- net --M3-- net --M5--
    |  |             __|__                     |          |          |
   S1  S2          S1|   |S2                   M2         M4         M6
    |  |          b--|   |--not b              |          |          |
   rail           out     dump                out        out        out
below a mirror     steering          one ladder, all gates on one net
"""

from __future__ import annotations

from collections import defaultdict
from operator import and_, xor
from typing import TYPE_CHECKING, Any

from layoutkit.circuit.channels import electrical_width, gate_length
from layoutkit.circuit.mirrors import Found
from layoutkit.circuit.symmetry_graph import drawing

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from layoutkit.circuit.channels import Channels
    from layoutkit.circuit.circuit import Device

FEWEST_IN_MIXER = 4
FEWEST_IN_LADDER = 4  # transistors; fewer in series on one gate are one long channel
FEWEST_BITS = 3
_MOST_ON_A_NET = 64  # channel ends


def switch_groups(
    channels: Channels,
    mirrors: Iterable[Found],
    inverters: Iterable[Found],
    taken: Collection[str],
    pairs: Iterable[Found],
) -> Iterator[Found]:
    """Yield the groups of equal switches.

    Args:
        channels: The channels of the circuit.
        mirrors: Its mirrors.
        inverters: Its inverters, which say which signals are complements of each other.
        taken: Transistors that are part of other groups.
        pairs: Its pairs of which mixers may consist.
    """
    yield from _below_mirrors(channels, mirrors)
    yield from _mixers(channels, pairs)
    ladders = list(_ladders(channels, taken))
    yield from ladders
    yield from _steering(channels, inverters, {*taken, *(name for ladder in ladders for name in ladder.devices)})


def _below_mirrors(channels: Channels, mirrors: Iterable[Found]) -> Iterator[Found]:
    """Yield the switches below members of one mirror that are as wide as these, among them those that are always on.

    Others drop unequal voltages, and have nothing to match.
    """
    for mirror in mirrors:
        feet = mirror.properties.get("feet", {})
        below = {name: channels.mos[member] for member in feet for name in feet[member] if name in channels.mos}
        switches = [channels.mos[name] for name in below]
        forms = {(device.type, device.model, gate_length(device)) for device in switches}
        shares = {_share(channels.mos[name], member) for name, member in below.items()}
        if len(switches) > 1 and len(forms) == len(shares) == 1:
            yield _group(switches, {"of": mirror.properties["reference"]})


def _share(switch: Device, member: Device) -> object:
    """Return the width of a switch by that of the transistor above it, or how both are drawn if it is open."""
    own, base = electrical_width(switch), electrical_width(member)
    return round(own / base, 3) if own and base else (drawing(switch), drawing(member))


def _steering(channels: Channels, inverters: Iterable[Found], taken: Collection[str]) -> Iterator[Found]:
    """Yield the two equal transistors on one net that steer its current: a signal and its complement switch them.

    Inverters tell complements, or several nets each lead to the same two others, each by a port of its own: these are
    the bits of a divider of currents, whose complements come from outside.
    """
    complement = {each.properties["output"]: each.properties["input"] for each in inverters}
    bits: dict[frozenset[str], list[tuple[str, list[Device]]]] = defaultdict(list)
    for net in dict.fromkeys((*channels.drains, *channels.sources)):
        ends = channels.channel_ends(net)
        if net in channels.supplies or channels.gates.get(net) or len(ends) > _MOST_ON_A_NET:
            continue  # a voltage, not a current, is switched where a gate is on the net
        on_gate: dict[str, list[Device]] = defaultdict(list)
        for device in ends:
            to_rail = channels.far(device, net) in channels.supplies
            if not (to_rail or device.id in taken or channels.passes(device)):
                on_gate[device.terminals["g"]].append(device)
        alone = {gate: devices[0] for gate, devices in on_gate.items() if len(devices) == 1}
        both = [(alone[complement[gate]], device) for gate, device in alone.items() if complement.get(gate) in alone]
        for pair in both:
            if drawing(pair[0]) == drawing(pair[1]):
                yield _group(pair, {"common_net": net})
        free = [device for gate, device in alone.items() if gate in channels.ports and not both]
        outputs = frozenset(channels.far(device, net) for device in free)
        if len(free) == len(outputs) == 2 and len({*map(drawing, free)}) == 1:
            bits[outputs].append((net, free))
    for several in bits.values():
        used = [device.terminals["g"] for _, devices in several for device in devices]
        if len(several) >= FEWEST_BITS and len(set(used)) == len(used):
            for net, devices in several:
                yield _group(devices, {"common_net": net})


def _mixers(channels: Channels, pairs: Iterable[Found]) -> Iterator[Found]:
    """Yield the equal transistors of pairs on one net each that are joined by nets on which no other channels end."""

    def ends(name: str) -> set[str]:
        return {channels.mos[name].terminals[end] for end in ("d", "s")}

    two = [pair.devices for pair in pairs if len(pair.devices) == 2 and channels.mos.keys() >= set(pair.devices)]
    joints, outer = ({net for one, other in two for net in nets(ends(one), ends(other))} for nets in (and_, xor))
    two = [pair for pair in two if (joints & outer).isdisjoint({*ends(pair[0]), *ends(pair[1])})]  # none on another
    names = (name for one, other in two if ends(one) & ends(other) for name in (one, other))
    left = {name: channels.mos[name] for name in dict.fromkeys(names)}

    def switched(device: Device) -> list[Device]:
        """Return the transistors on both ends of one; none where another kind or a supply is there."""
        nets = ends(device.id)
        beside = [each for net in sorted(nets) for each in channels.channel_ends(net)[: _MOST_ON_A_NET + 1]]
        alike = all(each.id in paired and drawing(each) == drawing(device) for each in beside)
        return beside if alike and not any(net in channels.supplies for net in nets) else []

    paired = frozenset(left)
    while left:
        found = [left.pop(next(iter(left)))]
        whole = True
        for device in found:  # which grows
            beside = switched(device)
            whole = whole and bool(beside)
            found += [left.pop(name) for name in dict.fromkeys(each.id for each in beside) if name in left]
        if whole and len(found) >= FEWEST_IN_MIXER:
            yield _group(found, {})


def _ladders(channels: Channels, taken: Collection[str]) -> Iterator[Found]:
    """Yield the equal transistors on one gate whose channels form one network, as a divider of currents."""
    alike: dict[Any, list[Device]] = defaultdict(list)
    for device in channels.mos.values():
        ends = {device.terminals["d"], device.terminals["s"]}
        if device.both_ways and device.id not in taken and not any(net in channels.supplies for net in ends):
            alike[device.terminals["g"], drawing(device)].append(device)
    for devices in alike.values():
        on: dict[str, list[Device]] = defaultdict(list)
        for device in devices:
            for end in ("d", "s"):
                on[device.terminals[end]].append(device)
        left = {device.id: device for device in devices}
        while left:
            found = [left.pop(next(iter(left)))]
            for device in found:  # which grows
                for end in ("d", "s"):
                    found += [left.pop(other.id) for other in on[device.terminals[end]] if other.id in left]
            branches = any(len(on[device.terminals[end]]) > 2 for device in found for end in ("d", "s"))
            if len(found) >= FEWEST_IN_LADDER and branches:
                names = {device.id for device in found}
                yield _group([device for device in devices if device.id in names], {})


def _group(devices: Iterable[Device], properties: dict[str, Any]) -> Found:
    return Found("switch_pair", tuple(device.id for device in devices), {"matched": True, **properties})
