"""Which end of a transistor is its drain: what the current makes of it, not what the netlist calls it.

An end on the body is the source; of two equal transistors that cross, the gate of one is on the drain of the other; an
end on the gate, no supply, is the drain; of equal ones on one gate, as cascodes, those ends are sources from which
equal transistors on one gate lead to the rail. Otherwise the circuit is taken for a network of resistors between power
and ground: one for each channel that is not off, resistor, diode and junction. In its solution the source of an NMOS
transistor is the lower end, that of a PMOS transistor the higher one. Channels of the transistor's own type conduct
best, since they lead to the rail of its sources: a tail is on the source side, however many transistors of the other
type are on it. What an inverter turns on to pull a net to its rail conducts as little as the other type, since it is
off while the circuit works. Unknown cells and ports without channels of both types hold their nets weakly at the
middle. Where both ends have one potential, two equal transistors that meet on an unknown cell, or alone on a port with
gates on others, have their sources there. A transistor for which none of this decides, and each of two that are a
transmission gate, carries current both ways.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Union

from layoutkit.circuit.supplies import find_supplies

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from layoutkit.circuit.circuit import Circuit, Device
    from layoutkit.circuit.supplies import Supplies

_Node = Union[str, "tuple[str]"]  # a fixed potential, or a net
_EQUAL = 1e-6  # potentials that differ by less are one
_OTHER = 0.02  # conductance of everything but the channels of the transistor's own type, in such channels
_CLEARER = 2  # how much more than the transistor itself equal ones on its net must say to count
_WEAK = 0.01  # conductance to the middle of a net that something outside drives
_LEAST = 1e-9  # conductance of every net to the middle, which decides the potential of nets without current
_MOST_NEIGHBOURS = 64  # of a node that is eliminated
_SWEEPS = 200
_SETTLED = 1e-13  # change of a potential in one sweep below which no further one is made
_MOST_TO_RAIL = 8  # transistors between a net and a rail; more share a net that is no inner one
_FIXED: dict[_Node, float] = {"power": 1.0, "ground": 0.0, "middle": 0.5}
_CONDUCTS = {"resistor": ("p", "n"), "inductor": ("p", "n"), "diode": ("p", "n"), "npn": ("c", "e"), "pnp": ("e", "c")}


def oriented(circuit: Circuit) -> Circuit:
    """Return the circuit with drain and source of every transistor as the current makes them.

    A transistor whose netlist calls them the other way round is marked as ``exchanged``, so that netlists are written
    in their own order.
    """
    drains = _Drains(circuit)
    turned = {d.id for d in circuit.devices if d.is_mos and drains.of(d) != d.terminals["d"]}
    if not turned and all(d.both_ways == (d.id in drains.both_ways) for d in circuit.devices if d.is_mos):
        return circuit
    devices = tuple(
        replace(d.with_ends_exchanged() if d.id in turned else d, both_ways=d.id in drains.both_ways) if d.is_mos else d
        for d in circuit.devices
    )
    subcircuits = tuple(
        replace(
            instance,
            devices={
                name: {**terminals, "d": terminals["s"], "s": terminals["d"]} if name in turned else terminals
                for name, terminals in instance.devices.items()
            },
        )
        for instance in circuit.subcircuits
    )
    return replace(circuit, devices=devices, subcircuits=subcircuits)


def carries_both_ways(circuit: Circuit) -> frozenset[str]:
    """Return the transistors of an oriented circuit that carry current both ways.

    These are the two of a transmission gate, and those with one potential at both ends and neither on body nor gate.
    What is told in the whole circuit holds in its parts, too, whose ports tell less.
    """
    if any(device.is_mos and device.both_ways is None for device in circuit.devices):
        return frozenset(_Drains(circuit).both_ways)
    return frozenset(device.id for device in circuit.devices if device.both_ways)


def undecided(circuit: Circuit) -> dict[str, str | None]:
    """Return the transistors in which the current does not tell drain and source apart.

    For each the net that is taken for its drain, since fewer ends meet there; None where only the names differ.
    """
    drains = _Drains(circuit)
    open_ones = (d for d in circuit.devices if d.is_mos and (d.id in drains.both_ways or drains.decided(d) is None))
    return {device.id: drains.by_what_meets(device) for device in open_ones}


def is_off(device: Device, supplies: Supplies) -> bool:
    """Whether the gate of a transistor is on the supply that turns it off for good; a regulated one in its own well."""
    gate, body = device.terminals["g"], device.terminals["b"]
    return gate in supplies.turning_off[device.type] and (gate == body or gate not in supplies.regulated)


class _Drains:
    """Decides which end of each transistor is its drain.

    Where equal transistors on one of its nets say more, they count: a switch that pulls one output of a pair to the
    rail does not turn that half. Those on the rail do not where nothing else of the type takes the current on from the
    drain, as above a tail of the size of one half. Nor do dummies that are off, nor any where all current of those at
    its source must come through it.
    """

    def __init__(self, circuit: Circuit) -> None:
        supplies = find_supplies(circuit)
        self._circuit = circuit
        self._power, self._ground = frozenset(supplies.power), frozenset(supplies.ground)
        self._potentials = {kind: _potentials(circuit, supplies, kind) for kind in ("nmos", "pmos")}
        self._places: dict[tuple[str, str], tuple[object, ...]] = {}
        self._local = {name: nets for instance in circuit.subcircuits for name, nets in instance.devices.items()}
        self._rises: dict[tuple[object, ...], float] = defaultdict(float)
        self._falls: Counter[tuple[str, str]] = Counter()  # net and type, to the channels that take its current on
        self._unknown = frozenset(circuit.black_box_nets)
        self._ports = frozenset(circuit.ports)
        self._carrying = Counter(chain(self._unknown, self._ports))  # net to what carries direct current there
        self._gates: dict[tuple[object, ...], list[str]] = defaultdict(list)  # on an end, to those of equal transistors
        self._by_gate: dict[tuple[object, ...], list[tuple[str, str]]] = defaultdict(list)
        every = [device for device in circuit.devices if device.is_mos]
        mos = [device for device in every if not is_off(device, supplies)]
        joined = {(frozenset((d.terminals["d"], d.terminals["s"])), d.type) for d in mos}
        self._fingers = Counter(self._channel(device) for device in every)
        self._standing: dict[tuple[object, ...], dict[object, set[str]]] = {}  # gate to what leads to the rail where
        self._to_rail: dict[tuple[str, str], set[tuple[object, ...]]] = defaultdict(set)  # net and type, to their gates
        for device in {self._channel(device): device for device in mos}.values():
            far = self._far_from_rail(device)
            if far is not None:
                closed = (frozenset((far, device.terminals["g"])), device.type) in joined  # over a cascode of any size
                self._to_rail[far, device.type].add(
                    ("", *self._key(device, "g")[1:]) if closed else self._key(device, "g")
                )
            self._by_gate[self._key(device, "g")].append((device.terminals["d"], device.terminals["s"]))
            for end, other in (("d", "s"), ("s", "d")):
                self._falls[device.terminals[end], device.type] += self._rise(device, end, other) < -_EQUAL
                self._carrying[device.terminals[end]] += 1
                self._rises[self._voters(device, end)] += self._rise(device, end, other)
                self._gates[self._key(device, end)].append(device.terminals["g"])
        others = (device for device in circuit.devices if device.type in _CONDUCTS)
        self._carrying.update(net for device in others for net in {*device.terminals.values()})
        self.both_ways = self._both_ways(supplies)

    def _both_ways(self, supplies: Supplies) -> set[str]:
        found = set()
        between: dict[frozenset[str], dict[str, list[str]]] = defaultdict(lambda: {"nmos": [], "pmos": []})
        for device in self._circuit.devices:
            ends = frozenset(device.terminals[end] for end in device.kind.ends) if device.is_mos else frozenset()
            if len(ends) < 2 or is_off(device, supplies):
                continue
            if device.terminals["b"] not in ends and not any(end in supplies for end in ends):
                between[ends][device.type].append(device.id)
            if self.decided(device) is None:
                found.add(device.id)
        for devices in between.values():
            if devices["nmos"] and devices["pmos"]:
                found.update(devices["nmos"], devices["pmos"])
        return found

    def of(self, device: Device) -> str:
        """Return the net of the drain; of a transistor that carries current both ways, alike in all equal instances."""
        drain = None if device.id in self.both_ways else self.decided(device)
        if drain is not None:
            return drain
        local = self._local.get(device.id)
        if local is not None:
            return device.terminals[max(("d", "s"), key=lambda end: local[end])]
        return self.by_what_meets(device) or max(device.terminals["d"], device.terminals["s"])

    def by_what_meets(self, device: Device) -> str | None:
        """Return the net at which fewer ends meet, or other ones; None where both are alike but for their names."""
        first, second = device.terminals["d"], device.terminals["s"]
        one, other = self._place(device.type, first), self._place(device.type, second)
        return None if one == other else first if one > other else second

    def _place(self, mos_type: str, net: str) -> tuple[object, ...]:
        """Return by what the source is found where potentials do not tell: more ends meet there."""
        if (mos_type, net) not in self._places:
            connected = _connected(self._circuit, net, self._potentials[mos_type])
            self._places[mos_type, net] = (-sum(not each[1] for each in connected), connected)
        return self._places[mos_type, net]

    def decided(self, device: Device) -> str | None:
        """Return the net of the drain, None where nothing tells the ends apart."""
        net = device.terminals
        if net["b"] in (net["d"], net["s"]) or net["d"] == net["s"]:
            return net["d"] if net["b"] == net["s"] else net["s"]
        crossed = [end for end in (net["d"], net["s"]) if self._crossed(device, end)]
        if len(crossed) == 1 and net["g"] != crossed[0]:
            return crossed[0]
        if net["g"] in (net["d"], net["s"]) and not self._kind(net["g"]):
            return net["g"]  # a diode: with the gate on its source it would be off
        inner = not any(map(self._kind, (net["d"], net["s"])))
        standing = [end for end in ("d", "s") if inner and self._stands_like_its_mates(device, net[end])]
        standing = standing or (self._above_its_gate(device) if inner else [])
        if len(standing) == 1:
            return net["s" if standing == ["d"] else "d"]
        rise = self._rise(device, "s", "d")
        low = net["s" if rise > 0 else "d"]
        if abs(rise) > _EQUAL and self._falls[low, device.type] == self._carrying[low] - 1:
            return net["d" if rise > 0 else "s"]  # whose current is all that those at its source take on
        leads_on = abs(rise) <= _EQUAL or self._falls[net["d" if rise > 0 else "s"], device.type] > 1
        voters = [True, False] if leads_on or self._far_from_rail(device) is not None else [True]
        besides_s, besides_d = (
            sum(self._rises[self._key(device, end, any_model=any_model)] for any_model in voters) for end in ("s", "d")
        )
        besides_s, besides_d = besides_s - rise, besides_d + rise
        rise += sum(each for each in (besides_s, -besides_d) if abs(each) > _CLEARER * abs(rise))
        if abs(rise) > _EQUAL:
            return net["d"] if rise > 0 else net["s"]
        return self._fed_from_outside(device)

    def _stands_like_its_mates(self, device: Device, net: str) -> bool:
        """Whether an equal transistor with this gate is on another net, and equal ones on one gate lead to the rail."""
        own, key = self._to_rail[net, device.type], self._key(device, "g")
        if any(self._to_rail[end, device.type] for end in {device.terminals["d"], device.terminals["s"]} - {net}):
            own = own - {key}  # an equal source beside one above a switch
        if key not in self._standing:
            found: dict[object, set[str]] = defaultdict(set)
            for end in {end for ends in self._by_gate[key] for end in ends}:
                sources = self._to_rail[end, device.type]
                for source in sources if len(sources) <= _MOST_TO_RAIL else ():
                    found[source].add(end)
            self._standing[key] = found
        standing = self._standing[key]
        return len(own) <= _MOST_TO_RAIL and any(len(standing[source]) > 1 for source in own & standing.keys())

    def _above_its_gate(self, device: Device) -> list[str]:
        """Return the end from which alone transistors lead to the rail, if one of them is on the gate of this one."""
        leads = {end: self._to_rail[device.terminals[end], device.type] for end in ("d", "s")}
        ends = [end for end, keys in leads.items() if keys]
        gates = {key[0] for end in ends for key in leads[end]}
        return ends if len(ends) == 1 and device.terminals["g"] in gates else []

    def _fed_from_outside(self, device: Device) -> str | None:
        """Return the drain of one of two equal transistors that get their current from an unknown cell or a port."""
        ends = [device.terminals[end] for end in ("d", "s")]
        tails = [net for net in ends if net in self._unknown] or [net for net in ends if self._is_tail_port(net)]
        if len(tails) != 1:
            return None
        far = next(net for net in ends if net not in tails)
        pairs = {device.terminals[end]: self._gates[self._key(device, end)] for end in ("d", "s")}
        meet = [net for net, gates in pairs.items() if len(set(gates)) == len(gates) == 2]
        if far in meet and sum(place.terminal in {"d", "s"} for place in self._circuit.nets[far]) > 2:
            return tails[0]  # another transistor is the tail
        return far if tails[0] in meet else None

    def _is_tail_port(self, net: str) -> bool:
        """Whether a port is on two ends of channels and on nothing else, and ports are on their gates."""
        places = self._circuit.nets[net]
        if net not in self._ports or len(places) != 2:
            return False
        devices = [self._circuit.device(place.device) for place in places]
        return all(device.is_mos and device.terminals["g"] in self._ports - {net} for device in devices)

    def _crossed(self, device: Device, end: str) -> bool:
        """Whether the gate of an equal transistor is on an end, and an end of that one on the gate of this one.

        The other ends of both are on one supply, or on none: what leads to power and what leads to ground do not cross.
        A cascode and the amplifier that drives its gate are not crossed either: one of them stands the other way round,
        on a net where other channels end.
        """
        gate, net, potentials = device.terminals["g"], device.terminals, self._potentials[device.type]
        source = net["s"] if end == net["d"] else net["d"]
        rise = potentials[end] - potentials[source]
        for ends in self._by_gate.get((end, *self._key(device, "g")[1:]), ()):
            other = ends[ends[0] == gate]
            if gate in ends and self._kind(source) == self._kind(other):
                ends_there = [self._place(device.type, each)[0] for each in (source, other)]
                if rise * (potentials[gate] - potentials[other]) > -_EQUAL or len(set(ends_there)) == 1:
                    return True
        return False

    def _far_from_rail(self, device: Device) -> str | None:
        """Return the net of the end that is not on the rail of a transistor's sources; None where none is on it."""
        net, rail = device.terminals, self._ground if device.type == "nmos" else self._power
        return net["d"] if net["s"] in rail else net["s"] if net["d"] in rail else None

    def _kind(self, net: str) -> str:
        return "power" if net in self._power else "ground" if net in self._ground else ""

    def _rise(self, device: Device, end: str, other: str) -> float:
        """Return by how much the other end is nearer to the rail of the drains, times the fingers: a current."""
        potentials = self._potentials[device.type]
        rise = potentials[device.terminals[other]] - potentials[device.terminals[end]]
        return self._fingers[self._channel(device)] * (rise if device.type == "nmos" else -rise)

    def _channel(self, device: Device) -> tuple[object, ...]:
        """Return what the fingers of one transistor have in common, whichever end the netlist calls the drain."""
        return (frozenset((device.terminals["d"], device.terminals["s"])), self._key(device, "g"))

    def _voters(self, device: Device, end: str) -> tuple[object, ...]:
        """Return for which transistors one on their net counts: all of its size, but one on its rail for its model."""
        return self._key(device, end, any_model=self._far_from_rail(device) is None)

    def _key(self, device: Device, end: str, *, any_model: bool = False) -> tuple[object, ...]:
        model = "" if any_model else device.model
        return (device.terminals[end], device.type, model, *sorted(device.params.items()))


def _connected(circuit: Circuit, net: str, potentials: Mapping[str, float]) -> list[tuple[object, ...]]:
    """Return what is connected to a net, without names."""
    found: list[tuple[object, ...]] = []
    for place in circuit.nets[net]:
        device = circuit.device(place.device)
        others = sorted(round(potentials[other], 6) for other in device.terminals.values())
        end = "" if place.terminal in device.kind.ends else place.terminal
        found.append((device.type, end, device.model, sorted(device.params.items()), others))
    return sorted(found, key=str)


def _potentials(circuit: Circuit, supplies: Supplies, mos_type: str) -> dict[str, float]:
    """Return the potential of each net, from 0 (ground) to 1 (power), where channels of ``mos_type`` conduct best."""
    fixed = dict.fromkeys(supplies.outer.power, 1.0) | dict.fromkeys(supplies.outer.ground, 0.0)
    rails = {1.0: "power", 0.0: "ground"}
    network: dict[_Node, dict[_Node, float]] = defaultdict(dict)
    for one, other, kind in _edges(circuit, supplies):
        first, second = (rails[fixed[net]] if net in fixed else (net,) for net in (one, other))
        if first != second:
            conductance = 1.0 if kind == mos_type else _OTHER
            network[first][second] = network[second][first] = network[first].get(second, 0.0) + conductance
    # driven from outside: nets of unknown cells, and ports without channels of both types
    types: dict[str, set[str]] = defaultdict(set)
    for device in circuit.devices:
        if device.is_mos:
            for end in device.kind.ends:
                types[device.terminals[end]].add(device.type)
    held = {*circuit.black_box_nets, *(port for port in circuit.ports if len(types[port]) < 2)}
    for node in [node for node in network if node not in _FIXED]:
        network[node]["middle"] = _WEAK if node[0] in held else _LEAST
    found = _solved(network)
    return {net: fixed.get(net, found.get((net,), 0.5)) for net in circuit.nets}


def _solved(network: dict[_Node, dict[_Node, float]]) -> dict[_Node, float]:
    """Return the potential of every node of a network of conductances, which is used up.

    Nodes are eliminated, those with the fewest neighbours first, each replaced by conductances between its neighbours
    (the star-mesh transform), and then solved in the reverse order. Nothing is subtracted, so that the smallest
    conductance counts. What has many neighbours even so is solved by relaxation.
    """
    waiting = [(len(around), node) for node, around in network.items() if node not in _FIXED]
    heapq.heapify(waiting)
    eliminated: list[tuple[_Node, dict[_Node, float]]] = []
    done: set[_Node] = set()
    while waiting and waiting[0][0] <= _MOST_NEIGHBOURS:
        degree, node = heapq.heappop(waiting)
        if node in done or degree != len(network[node]):
            continue
        done.add(node)
        around = network.pop(node)
        eliminated.append((node, around))
        total = sum(around.values())
        inner = [(other, conductance) for other, conductance in around.items() if other not in _FIXED]
        for other, conductance in inner:
            row = network[other]
            del row[node]
            for third, its in around.items():
                if third != other:
                    row[third] = row.get(third, 0.0) + conductance * its / total
            heapq.heappush(waiting, (len(row), other))
    rest = [node for node in network if node not in _FIXED]
    value: dict[_Node, float] = {**_FIXED, **dict.fromkeys(rest, 0.5)}
    for _ in range(_SWEEPS if rest else 0):
        change = 0.0
        for node in rest:
            around, before = network[node], value[node]
            value[node] = sum(value[other] * its for other, its in around.items()) / sum(around.values())
            change = max(change, abs(value[node] - before))
        if change < _SETTLED:
            break
    for node, around in reversed(eliminated):
        value[node] = sum(value[other] * its for other, its in around.items()) / sum(around.values())
    return value


def _edges(circuit: Circuit, supplies: Supplies) -> Iterable[tuple[str, str, str]]:
    """Yield the nets between which each device that conducts direct current lies, and its type.

    What pulls a net to its rail while the circuit is turned off conducts as little as a transistor of another type.
    """
    pulling = _pulling(circuit, supplies)
    for device in circuit.devices:
        if device.is_mos and device.type in ("nmos", "pmos"):
            if not is_off(device, supplies):
                yield device.terminals["d"], device.terminals["s"], "" if device.id in pulling else device.type
        elif device.type in _CONDUCTS:
            first, second = _CONDUCTS[device.type]
            yield device.terminals[first], device.terminals[second], device.type


def _pulling(circuit: Circuit, supplies: Supplies) -> set[str]:
    """Return the transistors between a net and a rail that an inverter drives, and that are in none themselves."""
    rails = {"nmos": frozenset(supplies.ground), "pmos": frozenset(supplies.power)}
    on_rail: dict[str, tuple[str, str]] = {}  # to gate and far net
    for device in circuit.devices:
        ends = {device.terminals[end] for end in device.kind.ends} if device.type in rails else set()
        far = ends - rails.get(device.type, frozenset())
        if len(ends) == 2 and len(far) == 1:
            on_rail[device.id] = (device.terminals["g"], min(far))
    types: dict[tuple[str, str], set[str]] = defaultdict(set)
    for name, nets in on_rail.items():
        types[nets].add(circuit.device(name).type)
    inverted = {net for (gate, net), found in types.items() if len(found) > 1 and gate != net}
    return {name for name, nets in on_rail.items() if nets[0] in inverted and len(types[nets]) == 1}
