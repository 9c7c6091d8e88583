"""Which nets of a circuit are power and ground, by structure; a name is only a hint.

A net is power if PMOS transistors have their body and a source on it and no PMOS transistor feeds it, ground likewise
with NMOS transistors. A net named like a supply is one unless a transistor feeds it from a supply of its polarity: the
inner rail of a current-starved inverter is named like a supply and is none. Nor is one that drives gates alone, beside
a rail that is a port: an input that senses a supply. A fed net is a supply only where it feeds a block of its own: it
is the body of many transistors, or a port named like a supply that is the body of any. Without PMOS transistors, a port
that feeds nothing but loads of NMOS transistors is power.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from layoutkit.errors import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layoutkit.circuit.circuit import Circuit, StatedSupplies

_DOMAIN = "(?:[a-z]|in|out|int|ext|core|io|ana|dig|low|high|hv|lv|reg|ref|sub|pad|buf|drv)?"
"""What the name of a supply may end in: a letter, or the part of the chip that it feeds."""
_VOLTAGE = r"_?(?:\d+(?:[vp]\d*)?)?"
"""The voltage or number after it: 1v8, 3p3, 33, 2."""
_REST = rf"{_DOMAIN}{_VOLTAGE}(?:_\w+)?!?"
_GROUND = re.compile(rf"(?:0|[a-z]*_?(?:v?gnd|vss|vee|ground){_REST}|sub!)")
_POWER = re.compile(rf"(?:[a-z]*_?(?:vdd|vcc|vd?pwr|vapwr|vps|avd|dvd|power){_REST})")

MAX_SHOWN = 200  # characters of a name in a message
_KEPT = "_supplies"  # where a circuit holds its supplies once they are found

REGULATED_BODIES = 4
"""From how many bodies on it a net that a transistor feeds is a regulated rail; a pair in a well of its own has two."""


@dataclass(frozen=True)
class Supplies:
    """The supply nets of a circuit, each kind sorted by name.

    Attributes:
        power: Nets of power.
        ground: Nets of ground.
        reasons: Each of these nets to why it was taken for a supply, in words.
    """

    power: tuple[str, ...]
    ground: tuple[str, ...]
    reasons: Mapping[str, str] = field(default_factory=dict, compare=False)

    @cached_property
    def turning_off(self) -> Mapping[str, frozenset[str]]:
        """The nets at which the gate of a transistor of each type turns it off for good."""
        return {"nmos": frozenset(self.ground), "pmos": frozenset(self.power)}

    @cached_property
    def _all(self) -> frozenset[str]:
        return frozenset((*self.power, *self.ground))

    def __contains__(self, net: object) -> bool:
        return net in self._all


def find_supplies(circuit: Circuit) -> Supplies:
    """Return the power and ground nets of a circuit, each with the reason; those that the user states, where he does.

    The order of devices, and of drain and source of each, decides nothing. They are computed once for each object.
    Readers ask for them before the roles are known; all others read ``Roles.supplies``.
    """
    kept = vars(circuit)
    if _KEPT not in kept:
        power, ground = _stated(circuit, "power"), _stated(circuit, "ground")
        likely_power = _Rails(circuit, "pmos", _POWER).found() if power is None else power
        ground = _Rails(circuit, "nmos", _GROUND, likely_power).found() if ground is None else ground
        power = _Rails(circuit, "pmos", _POWER, ground).found() or _of_loads(circuit) if power is None else power
        kept[_KEPT] = Supplies(tuple(sorted(power)), tuple(sorted(ground)), {**power, **ground})
    found: Supplies = kept[_KEPT]
    return found


def _of_loads(circuit: Circuit) -> dict[str, str]:
    """Return the ports that feed two loads and more, each with the reason: the power of a circuit without PMOS.

    A load is a resistor or an inductor with its other end on the channel of an NMOS transistor; nothing else is on the
    port.
    """
    found = {}
    for port in circuit.ports:
        loads = [circuit.device(place.device) for place in circuit.nets[port] if place.terminal != "b"]
        if not loads or any(load.type not in ("resistor", "inductor") for load in loads):
            continue
        fed = {net for load in loads for net in (load.terminals[end] for end in load.kind.ends) if net != port}
        channels = ({circuit.device(p.device).type for p in circuit.nets[net] if p.terminal in "ds"} for net in fed)
        if len(fed) > 1 and all("nmos" in types for types in channels):
            found[port] = f"feeds the {len(loads)} loads {', '.join(load.id for load in loads)} of NMOS transistors"
    return found


def supply_faults(circuit: Circuit, stated: StatedSupplies) -> list[tuple[str, str, str]]:
    """Return what is wrong with stated supplies: the kind, ``power`` or ``ground``, the fault in words, and the net."""
    faults = []
    both = set(stated.power or ()) & set(stated.ground or ())
    for kind, nets in (("power", stated.power or ()), ("ground", stated.ground or ())):
        for net in dict.fromkeys(nets):
            if net not in circuit.nets:
                hint = did_you_mean(net, circuit.nets, 0.5)
                faults.append((kind, f"the circuit has no net {net[:MAX_SHOWN]!r}{hint}", net))
            if nets.count(net) > 1:
                faults.append((kind, f"{net[:MAX_SHOWN]!r} is listed twice here", net))
            if net in both and kind == "ground":
                faults.append((kind, f"{net[:MAX_SHOWN]!r} is already in power; a net is power or ground", net))
    return faults


def _stated(circuit: Circuit, kind: str) -> dict[str, str] | None:
    """Return the nets of one kind that the user states, with the reason; None where he states none of this kind."""
    nets = getattr(circuit.supplies, kind, None)
    if circuit.supplies is None or nets is None:
        return None
    words = f"stated by the user{': ' + circuit.supplies.reason if circuit.supplies.reason else ''}"
    return {net: words for net in sorted(nets) if net in circuit.nets}


def substrate_net(circuit: Circuit) -> str:
    """Return the net of the substrate: the bulk of the NMOS transistors, else ground, else an empty string.

    Of several bulks it is a ground net, the one of most transistors; where none is, it is ground itself.
    """
    bodies = Counter(device.terminals["b"] for device in circuit.devices if device.type == "nmos")
    ground = find_supplies(circuit).ground
    candidates = (set(bodies) & set(ground)) or ground or bodies if len(bodies) > 1 else bodies or ground
    return min(candidates, key=lambda net: (-bodies[net], net), default="")


class _Rails:
    """The search for the supplies of one polarity, those of the transistors of one type.

    Args:
        circuit: The circuit.
        mos_type: ``pmos`` for power, ``nmos`` for ground.
        named: What the names of such supplies match in lowercase.
        others: The supplies of the other polarity.
    """

    def __init__(
        self, circuit: Circuit, mos_type: str, named: re.Pattern[str], others: Mapping[str, str] | None = None
    ) -> None:
        self._circuit = circuit
        self._ports = frozenset(circuit.ports)
        self._others = others or {}
        self._named = {net for net in circuit.nets if named.fullmatch(net.lower()) and net not in self._others}
        self._type = mos_type
        self._bodies: Counter[str] = Counter()
        self._ends: Counter[str] = Counter()
        self._gates: set[str] = set()
        self._opposite: dict[str, set[str]] = defaultdict(set)  # net to the other ends of channels of the other type
        sources: Counter[str] = Counter()  # nets to the transistors with their body and an end on them
        self._channels: dict[str, list[tuple[str, str]]] = defaultdict(list)  # net to (other end, body)
        self._resistors: dict[str, list[str]] = defaultdict(list)
        for device in circuit.devices:
            net = device.terminals
            if device.is_mos and net["d"] != net["s"] and net["g"] != net["b"]:  # no capacitor, and not off for good
                self._gates.add(net["g"])
            if device.type == mos_type and net["d"] != net["s"]:
                self._bodies[net["b"]] += 1
                sources[net["b"]] += net["b"] in (net["d"], net["s"])
                for end, other in ((net["d"], net["s"]), (net["s"], net["d"])):
                    self._ends[end] += 1
                    self._channels[end].append((other, net["b"]))
            elif device.is_mos:
                self._opposite[net["d"]].add(net["s"])
                self._opposite[net["s"]].add(net["d"])
            elif device.type == "resistor":
                for end, other in ((net["p"], net["n"]), (net["n"], net["p"])):
                    self._resistors[end].append(other)
        self._gates -= {net for net, count in sources.items() if count > 1}  # always on: what a rail holds is no signal

    def found(self) -> dict[str, str]:
        """Return each supply with the reason."""
        rails = {net for net in self._bodies if net in self._ends and net not in self._others}
        rails = {net for net in rails if not self._follows(net)}
        if rails & self._ports:
            named = {net for net in self._named if not self._only_gates(net) and not self._is_switched(net, rails)}
        else:
            named = self._named
        rails |= named
        while True:  # a net that another rail feeds is none, and then feeds none
            inner = self._inner(rails)
            fed = {net for net in rails if not self._is_block(net) and self._is_fed(net, rails, inner)}
            if not fed:
                break
            rails -= fed
        sure = {net for net in rails if net in self._named or (net in self._ports and net not in self._gates)}
        rails = sure or {net for net in rails if net not in self._gates}
        rails = {net for net in rails if not self._is_tail(net)} or rails
        if not rails:
            rails = self._only_bodies()
        return {net: self._reason(net) for net in sorted(rails)}

    def _follows(self, net: str) -> bool:
        """Whether all transistors with their body and an end on a net end at the opposite supply: source followers."""
        own = [other for other, body in self._channels[net] if body == net]
        return all(other in self._others for other in own)

    def _only_gates(self, net: str) -> bool:
        """Whether a net drives gates and nothing else, as an input that senses a supply and is named like it."""
        places = self._circuit.nets[net]
        gates = all(place.terminal == "g" and self._circuit.device(place.device).is_mos for place in places)
        return bool(places) and gates and net not in self._circuit.black_box_nets

    def _is_switched(self, net: str, rails: set[str]) -> bool:
        """Whether a net inside is named like a supply, and only transistors of the other type drive it, from no rail.

        Such as the plate of a bootstrap capacitor that is named vcc.
        """
        driven = self._opposite.get(net, set())
        alone = not self._bodies[net] and not self._ends[net] and net not in self._ports and not self._resistors[net]
        return bool(driven) and alone and not driven & (rails | self._named) and net not in self._circuit.black_box_nets

    def _is_tail(self, net: str) -> bool:
        """Whether a net has another name than a supply and is the tail of one pair, whose current comes from outside.

        Two equal transistors alone end on it, with separate gates and drains.
        """
        if net in self._named or self._ends[net] != 2 or self._bodies[net] > 2:
            return False
        places = self._circuit.nets[net]
        ends = [self._circuit.device(place.device) for place in places if place.terminal in ("d", "s")]
        others = [place for place in places if place.terminal not in ("d", "s", "b")]
        if others or len(ends) != 2 or net in self._circuit.black_box_nets:
            return False
        one, other = ends
        equal = (one.type, one.model, one.params) == (other.type, other.model, other.params)
        nets = [{each.terminals[end] for end in ("d", "g", "s")} - {net} for each in ends]
        return equal and all(len(each) == 2 for each in nets) and not nets[0] & nets[1]

    def _inner(self, rails: set[str]) -> set[str]:
        """Return the nets that current from rails with transistors in their wells reaches through channels."""
        front = {net for net in rails if self._bodies[net]}
        inner: set[str] = set()
        while front:
            front = {other for net in front for other, _ in self._channels[net]} - inner - rails
            inner |= front
        return inner

    def _is_fed(self, net: str, rails: set[str], inner: set[str]) -> bool:
        """Whether a rail feeds a net: through a transistor in another well, several, or a resistor to an inner net."""
        if not self._bodies[net] and net in self._gates and net in self._opposite and self._ends[net]:
            return True  # an output of both types that drives a gate, whatever its name
        feeders = rails | inner if not self._bodies[net] else rails
        if any(other in feeders and net not in (other, body) for other, body in self._channels[net]):
            return True
        inside = net not in self._named and net not in self._ports
        return inside and any(other in rails and other != net for other in self._resistors[net])

    def _is_block(self, net: str) -> bool:
        """Whether a net supplies a block of its own: body of many transistors, or a port that is the body of any."""
        return self._bodies[net] >= REGULATED_BODIES or (
            self._bodies[net] > 0 and net in self._ports and net not in self._gates and net in self._named
        )

    def _only_bodies(self) -> set[str]:
        """Return the body of most transistors, where no rail was found: a fragment without its sources.

        A net that a transistor in another well feeds is none.
        """
        driven = {net for net, ends in self._channels.items() if any(body != net for _, body in ends)}
        not_rails = driven | self._gates | self._others.keys()
        candidates = [(-count, net) for net, count in self._bodies.items() if net not in not_rails]
        return {min(candidates)[1]} if candidates else set()

    def _reason(self, net: str) -> str:
        kind = self._type.upper()
        parts = ["its name"] if net in self._named else []
        if self._bodies[net]:
            count = self._bodies[net]
            parts.append(f"body of {count} {kind} transistor{'s' * (count > 1)}, {self._ends[net]} of them end on it")
        elif self._ends[net]:
            parts.append(f"{self._ends[net]} {kind} transistors end on it")
        return "; ".join(parts)
