"""Which transistors are switches or pass devices, how sure that is, and which of them carry charge alone.

A transistor between ports, or between a supply and a port or a rail inside, may be one, as well as a current source or
half of a pair whose bias is elsewhere. It is at full drive where something inside drives its gate, a clock, an enable
or gates of both types are on it, or where it is as large as no amplifier makes it. A sampling switch leads to
capacitors or gates alone, or a capacitor that is charged at its input lifts its gate: no direct current flows in it.
``most_through`` computes the largest current of devices in series with resistors or transistors.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from layoutkit.circuit.roles import held_at_supply, is_clock

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from layoutkit.circuit.circuit import Circuit, Device
    from layoutkit.circuit.roles import Roles
    from layoutkit.technology import Technology

_ANALOG = frozenset({"current_mirror", "differential_pair", "cross_coupled_pair", "cascode_pair", "load_pair"})
_FOLLOWS = 20
"""A transistor in series with a current sink follows its gate; one so many times as strong as the sink passes on."""
_LARGE = 300  # W/L of a pass device that nothing else tells; transistors that amplify are smaller, or longer
_FEWEST_FED = 3  # stages on an inner rail whose bodies are on another one
_WEAK = 4  # W/L of what only holds a port when the circuit is off
_CLAMP = 30  # W/L from which on what an amplifier drives passes on a current
_SHORT = 1.2  # its length over the shortest one
_CONDUCTS = {"nmos", "pmos", "npn", "pnp", "resistor", "diode", "inductor"}
_ANY = 1.0  # current of what limits none [A]
_ROUNDS = 50


class Switches:
    """Tells the switches and pass devices of a circuit.

    Args:
        circuit: In models of the technology, its transistors oriented.
        roles: Its roles.
        full: Current of each transistor at full drive. [A]
        shortest: Shortest length of each transistor. [m]
        ends: Devices that carry current at each net, and the direction of it.
        both_ways: Transistors that carry current both ways.
    """

    def __init__(
        self, circuit: Circuit, roles: Roles, full: Mapping[str, float], shortest: Mapping[str, float],
        ends: Mapping[str, Sequence[tuple[Device, int]]], both_ways: Collection[str],
    ) -> None:  # fmt: skip
        self.circuit, self.roles, self.full, self.ends, self.both_ways = circuit, roles, full, ends, both_ways
        self.analog = {name for group in roles.groups if group.type in _ANALOG for name in group.devices}
        self.mirrored = {name for group in roles.groups if group.type == "current_mirror" for name in group.devices}
        inverters = (name for group in roles.groups if group.type == "inverter" for name in group.devices)
        self.inverted = {circuit.device(name).terminals["d"] for name in inverters}
        self.short: set[str] = set()
        self.widths: dict[tuple[object, ...], float] = defaultdict(float)  # W/L of short ones in parallel
        for name in full:
            device = circuit.device(name)
            if device.l * device.params.get("stack", 1) <= _SHORT * shortest[name]:
                self.short.add(name)
                self.widths[_parallel(device)] += device.w * device.m / device.l

    def passes(self, device: Device) -> bool:
        """Return whether a transistor feeds a rail inside, or a port that nothing inside loads the other way."""
        net, supplies = device.terminals, self.roles.supplies
        ends = set(_channel(device))
        if device.id in self.analog or len(ends) < 2 or net["d"] == net["g"] or net["g"] in supplies:
            return False
        if ends <= set(supplies.power) or ends <= set(supplies.ground):
            return True
        free = [end for end in ends if end not in supplies]
        if len(free) == 1 and self._is_bias(free[0]):
            return False  # it starts the circuit or turns it off
        if len(free) == 1 and net["g"] not in self.roles.clocks and self._is_rail(device, free[0]):
            return True
        if not free or not set(free) <= {*self.circuit.ports, *self.circuit.black_box_nets}:
            return False
        others = [other for end in free for other, _ in self.ends[end] if other.id != device.id and other.is_mos]
        sinks = sum(self.full.get(other.id, 0.0) for other in others if other.id in self.mirrored)
        return {other.type for other in others} <= {device.type} and self.full[device.id] >= _FOLLOWS * sinks

    def _is_rail(self, device: Device, net: str) -> bool:
        """Return whether a net feeds a block: several sources of its type, not of an amplifier, are on it.

        They have their bodies on it as well, or are more than a stage has.
        """
        fed = [other for other, _ in self.ends[net] if other.type == device.type and other.terminals["s"] == net]
        fed = [other for other in fed if other.id != device.id and other.id not in self.analog]
        own_body = [other for other in fed if other.terminals["b"] == net]
        return len({other.terminals["d"] for other in own_body or fed}) >= (2 if own_body else _FEWEST_FED)

    def rail_of_block(self, device: Device) -> str:
        """Return the inner rail that a switch joins to a supply, whose block decides the current; empty without one."""
        inner = [end for end in set(_channel(device)) if end not in self.circuit.ports]
        if len(inner) != 1 or not self._is_digital(device.terminals["g"]):
            return ""
        return inner[0] if inner[0] in self.roles.supplies or self._is_rail(device, inner[0]) else ""

    def is_sure(self, device: Device) -> bool:
        """Return whether size or gate tell that a transistor is a pass device or switch, not part of an amplifier."""
        gate = device.terminals["g"]
        driven = any(other.type in {"nmos", "pmos", "npn", "pnp"} for other, _ in self.ends.get(gate, ()))
        if device.w * device.m < device.l * (_WEAK if self._is_digital(gate) else _CLAMP):
            return False  # it holds an output in power-down, or clamps one
        return self.is_large(device) or driven or self._is_digital(gate) or gate in self.circuit.black_box_nets

    def turns_off(self, device: Device) -> bool:
        """Return whether a transistor turns others off, or starts them: it carries no current.

        It joins their gates and sources, or pulls at a net that others feed and drain.
        """
        net, own = device.terminals, (device.type, device.terminals["s"])
        if device.id in self.analog or net["s"] not in self.roles.supplies or not self._is_digital(net["g"]):
            return self._starts(device)
        on = [(self.circuit.device(end.device), end.terminal) for end in self.circuit.nets[net["d"]]]
        on = [(other, end) for other, end in on if other.is_mos and other.id != device.id]
        logic = any(end == "d" and other.terminals["g"] == net["g"] for other, end in on)
        held = held_at_supply(net["g"]) is not None or net["g"] in self.inverted
        gates = any(end == "g" and (other.type, other.terminals["s"]) == own for other, end in on)
        return not logic and (gates or (held and self._is_spare(device, net["d"])))

    def _starts(self, device: Device) -> bool:
        """Return whether a transistor pulls at the gates of current sources, which others feed and drain."""
        net = device.terminals
        gates = [self.circuit.device(end.device) for end in self.circuit.nets[net["g"]] if end.terminal == "g"]
        biased = any(other.type == device.type and other.terminals["d"] == net["g"] for other in gates)
        if biased or device.id in self.analog or net["g"] in {*self.circuit.ports, *self.circuit.black_box_nets}:
            return False
        return any(self._is_bias(end) and self._is_spare(device, end) for end in _channel(device))

    def _is_spare(self, device: Device, net: str) -> bool:
        """Return whether others feed a net as well as drain it."""
        others = {sign for other, sign in self.ends[net] if other.id != device.id and other.is_mos}
        return net not in self.roles.supplies and {-1, 1} <= others

    def _is_bias(self, net: str) -> bool:
        """Return whether a net drives transistors of one type at a rail: current sources, no logic."""
        gates = [self.circuit.device(end.device) for end in self.circuit.nets[net] if end.terminal == "g"]
        return len({other.type for other in gates if other.terminals["s"] in self.roles.supplies}) == 1

    def is_likely(self, device: Device) -> bool:
        """Return whether a transistor looks like a switch: as short as can be, and alike at both ends."""
        return device.id in self.both_ways and device.id in self.short

    def carries_charge(self, device: Device) -> bool:
        """Return whether a switch leads to capacitors or gates alone, or is bootstrapped."""
        ends = _channel(device)
        if device.id in self.analog:
            return False
        if device.terminals["b"] in ends or any(end in self.roles.supplies for end in ends):
            return any(self._is_reset(device, end) for end in ends if end not in self.roles.supplies)
        return self._is_bootstrapped(device) or (
            self._is_switched(device) and any(self._is_held(device, end) for end in ends)
        )

    def _is_reset(self, device: Device, net: str) -> bool:
        """Return whether a transistor at a rail only discharges capacitors that do not all lead to rails."""
        found = [self.circuit.device(end.device) for end in self.circuit.nets[net] if end.device != device.id]
        plates = [other for other in found if other.type == "capacitor"]
        held = all(other.type == "capacitor" or (other.is_mos and other.terminals["g"] == net) for other in found)
        far = {end for other in plates for end in other.terminals.values()} - {net, *self.roles.supplies.power}
        return held and bool(far - set(self.roles.supplies.ground)) and not self.is_large(device)

    def is_large(self, device: Device) -> bool:
        """Return whether a transistor is as large as no amplifier makes it."""
        return self.widths.get(_parallel(device), 0.0) >= _LARGE

    def _is_clocked(self, net: str) -> bool:
        return net in self.roles.clocks or net in self.inverted or is_clock(self.circuit, net)

    def _is_digital(self, net: str) -> bool:
        return self._is_clocked(net) or (net in self.circuit.ports and held_at_supply(net) is not None)

    def _is_switched(self, device: Device) -> bool:
        return device.id in self.both_ways or self._is_clocked(device.terminals["g"])

    def _is_held(self, device: Device, net: str) -> bool:
        """Return whether nothing but capacitors, gates and switches is on a net at an end of a switch.

        What is on a port elsewhere is not known: there a capacitor tells, unless the device is as large as those that
        feed a load. Inside, a net of several switches without a capacitor leads on.
        """
        if net in self.circuit.black_box_nets:
            return False
        gates = capacitors = leads_on = False
        for end in self.circuit.nets[net]:
            other = self.circuit.device(end.device)
            channel = other.is_mos and end.terminal in other.kind.ends
            if other.type == "capacitor" or (channel and other.terminals["d"] == other.terminals["s"]):
                capacitors = True
            elif other.is_mos and end.terminal == "g":
                gates = True
            elif channel and set(_channel(other)) != set(_channel(device)):
                is_gate = other.type != device.type and other.terminals["g"] == device.terminals["g"]  # of logic
                if is_gate or not self._is_switched(other):
                    return False
                leads_on = True
            elif not other.is_mos:
                return False
        if net in self.circuit.ports:
            return capacitors and (device.terminals["g"] in self.roles.clocks or not self.is_large(device))
        return capacitors or (gates and not leads_on)

    def _is_bootstrapped(self, device: Device) -> bool:
        """Return whether a transistor of the same gate joins an end to a capacitor that a channel joins to the gate."""
        gate, rails = device.terminals["g"], self.roles.supplies.nets
        joined = {end for other, _ in self.ends.get(gate, ()) if other.is_mos for end in _channel(other)} - rails
        beside = [other for end in _channel(device) for other, _ in self.ends.get(end, ()) if other.is_mos]
        plates = {end for other in beside if other.terminals["g"] == gate for end in _channel(other)}
        return any(
            capacitor.type == "capacitor" and ({*capacitor.terminals.values()} - {plate}) & joined
            for plate in plates - rails - {*_channel(device)}
            for capacitor in (self.circuit.device(place.device) for place in self.circuit.nets[plate])
        )


def _channel(device: Device) -> tuple[str, str]:
    return device.terminals["d"], device.terminals["s"]


def _parallel(device: Device) -> tuple[object, ...]:
    return device.type, device.terminals["g"], frozenset(_channel(device))


def as_one(devices: Sequence[Device], number: Mapping[str, int]) -> list[Device]:
    """Return devices that are one in the layout, the first of a series first and on the nets at both of its ends.

    Args:
        devices: Devices in parallel or in series.
        number: Number of each net in the layout, by which the first end is chosen: names decide nothing.
    """
    ends = devices[0].kind.ends
    on = [(device.terminals[end], end, device) for device in devices for end in ends]
    count = Counter(net for net, *_ in on)
    outer = [each for each in on if count[each[0]] == 1]
    if len(devices) == 1 or len(outer) != len(ends):
        return [*devices]
    one, other = sorted(outer, key=lambda each: (each[1] != ends[0], number.get(each[0], -1)))
    first = replace(one[2], terminals={**one[2].terminals, ends[0]: one[0], ends[1]: other[0]})
    return [first, *(device for device in devices if device is not one[2])]


def largest_alone(
    circuit: Circuit, technology: Technology, full: Mapping[str, float], volts: float
) -> dict[str, float]:
    """Return the most that each device carries by itself: capacitors nothing, junctions any current. [A]

    Args:
        circuit: In models of the technology.
        technology: States the resistances.
        full: Current of each transistor at full drive. [A]
        volts: The supply, which is the most over a resistor. [V]
    """
    found = {device.id: full.get(device.id, _ANY) for device in circuit.devices if device.type in _CONDUCTS}
    for device in circuit.devices:
        ohm = resistance(device, technology) if device.type == "resistor" else None
        found |= {device.id: volts / ohm} if ohm else {}
    return found


def most_through(
    circuit: Circuit, roles: Roles, alone: Mapping[str, float], free: Collection[str],
    signs: Mapping[str, Mapping[str, int]] = MappingProxyType({}),
) -> dict[str, float]:  # fmt: skip
    """Return the most that flows through devices: what they carry alone, and what is in series lets through. [A]

    Args:
        circuit: In models of the technology.
        roles: Its roles.
        alone: The most that each device carries between its ends; of the others, none. [A]
        free: Nets on which any current may come or go, besides those of supplies.
        signs: Whether the current of an end of a device flows into its net (1) or out of it (-1); else both ways.
    """
    ways: dict[str, frozenset[tuple[str, int]]] = {}
    parallel, edges = defaultdict(set), defaultdict[frozenset[tuple[str, int]], float](float)
    for device in (each for each in circuit.devices if each.id in alone):
        own = signs.get(device.id, {})
        ways[device.id] = frozenset((device.terminals[end], own.get(end, 0)) for end in device.kind.ends)
        parallel[frozenset(net for net, _ in ways[device.id])].add(ways[device.id])
    for name, ends in ways.items():
        if len(parallel[nets := frozenset(net for net, _ in ends)]) > 1:  # not all the same way
            ways[name] = frozenset((net, 0) for net in nets)
        edges[ways[name]] += alone[name]
    outer = {*free, *roles.supplies.nets}
    most, inner = dict(edges), {ends: [each for each in ends if each[0] not in outer] for ends in edges}
    for _ in range(_ROUNDS):
        sums = defaultdict[tuple[str, int], float](float)
        for end, ampere in ((end, ampere) for ends, ampere in most.items() for end in ends):
            sums[end] += ampere
        before, most = most, {e: min([own, *(_taken(sums, net, sign, own) for net, sign in inner[e])])
                              for e, own in most.items()}  # fmt: skip
        if most == before:
            break
    return {name: min(alone[name], max(0.0, most[ends])) for name, ends in ways.items()}


def _taken(sums: Mapping[tuple[str, int], float], net: str, sign: int, own: float) -> float:
    """Return what the others on a net let through, those apart whose current flows the same way."""
    return sum(sums.get((net, each), 0.0) for each in (-1, 0, 1) if not sign or each != sign) - own * (not sign)


def resistance(device: Device, technology: Technology) -> float | None:
    """Return the resistance that a resistor states, else that of its size; None where neither is known. [ohm]"""
    if device.params.get("r"):
        return float(device.params["r"]) / device.m
    spec = technology.device_names.drawn(device.model)
    sheet = getattr(spec, "value", None)
    if not sheet or not {"w", "l"} <= device.params.keys():
        return None
    return float(sheet) * device.l * device.params.get("series", 1) / (device.w * device.m)
