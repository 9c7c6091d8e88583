"""The search for the supplies of one polarity: the nets that transistors of one type have their wells and sources on.

Where wells have nets of their own, the rail is the port on which most channels of the type end that lead to channels
of the other type or a diode. A net that another rail feeds is a supply only where it feeds a block of its own.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping

    from layoutkit.circuit.circuit import Circuit

BY_NAME = "its name"
REGULATED_BODIES = 4  # on a net that a transistor feeds: it is a regulated rail; a pair in its own well has two
_IN_A_BLOCK = 3  # sources on a net that switches join to a rail: with so many it is a rail
_STAGES = 2  # sources in wells on a net: so many make it a regulated rail, if it is regulated
_LONGEST_LOOP = 8  # gates and resistors from a regulated rail to the gate of the transistor that feeds it


class Rails:
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
        self._own_gates: set[str] = set()  # gates of the type that are on no end of their transistor
        self._diodes: set[str] = set()  # gates that are on an end of their transistor
        self._opposite_diodes: set[str] = set()
        self._opposite: dict[str, set[str]] = defaultdict(set)  # net to the other ends of channels of the other type
        self._opposite_ends: Counter[str] = Counter()
        self._well_diodes: Counter[str] = Counter()  # nets to the transistors with body, gate and an end on them
        sources: Counter[str] = Counter()  # nets to the transistors with their body and an end on them
        self._channels: dict[str, list[tuple[str, str]]] = defaultdict(list)  # net to (other end, body)
        self._resistors: dict[str, list[str]] = defaultdict(list)
        self._driven: dict[str, set[str]] = defaultdict(set)  # gate to the ends of its channels
        self._pulled: dict[tuple[str, str], set[str]] = defaultdict(set)  # gate and one end of the other type to others
        for device in circuit.devices:
            net = device.terminals
            if device.is_mos and net["d"] != net["s"] and net["g"] != net["b"]:  # no capacitor, and not off for good
                self._gates.add(net["g"])
                self._driven[net["g"]] |= {net["d"], net["s"]}
            if device.type == mos_type and net["d"] != net["s"]:
                self._bodies[net["b"]] += 1
                self._well_diodes[net["b"]] += net["b"] == net["g"] in (net["d"], net["s"])
                self._own_gates |= {net["g"]} - {net["d"], net["s"]}
                self._diodes |= {net["g"]} & {net["d"], net["s"]}
                sources[net["b"]] += net["b"] in (net["d"], net["s"])
                for end, other in ((net["d"], net["s"]), (net["s"], net["d"])):
                    self._ends[end] += 1
                    self._channels[end].append((other, net["b"]))
            elif device.is_mos:
                self._opposite_ends.update((net["d"], net["s"]))
                self._opposite_diodes |= {net["g"]} & {net["d"], net["s"]}
                self._opposite[net["d"]].add(net["s"])
                self._opposite[net["s"]].add(net["d"])
                self._pulled[net["g"], net["d"]].add(net["s"])
                self._pulled[net["g"], net["s"]].add(net["d"])
            elif device.type == "resistor":
                for end, other in ((net["p"], net["n"]), (net["n"], net["p"])):
                    self._resistors[end].append(other)
        self._gates -= {net for net, count in sources.items() if count > 1}  # always on: what a rail holds is no signal

    def found(self) -> dict[str, str]:
        """Return each supply with the reason."""
        rails = {
            net for net in self._bodies if net in self._ends and net not in self._others and not self._follows(net)
        }
        rails = {net for net in rails if self._bodies[net] > self._well_diodes[net]} or rails
        rails -= self._hangs_on_port(rails)
        rails -= {net for net in rails if len(rails) > 1 and self._passes_bias(net)}
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
        given = {net for net in rails if net in self._ports or self._feeds_alone(net, rails)} - self._gates
        sure = given | (rails & self._named)
        rails = sure or {net for net in rails if net not in self._gates}
        rails = {net for net in rails if not self._is_tail(net)} or rails
        if not rails:
            rails = self._under_sources() or self._only_bodies()
        elif not any(self._ends[net] or self._resistors[net] for net in rails):
            rails |= self._under_sources()  # wells alone have the name of a supply
        rails |= {net for net in self._tapped(rails) if net in self._ports and self._bodies[net]}
        rails |= {net for net in self._bodies if net not in rails and self._is_regulated(net, rails)}
        rails |= {net for net in self._ends if net not in rails and self._is_gated(net, rails)}
        return {net: self._reason(net) for net in sorted(rails)}

    def _is_regulated(self, net: str, rails: set[str]) -> bool:
        """Whether a transistor feeds a net, the body of others whose sources end on it, as the supply of their stages.

        They are inverters, but no latch; or the net drives the gate of the transistor that feeds it, through gates and
        resistors. The tail of a pair in a well of its own does neither.
        """
        own = {other for other, body in self._channels[net] if body == net}
        if net in self._others or not self._others or len(own) < _STAGES:
            return False
        gates, stages = set(), []
        for device in (
            self._circuit.device(place.device) for place in self._circuit.nets[net] if place.terminal in "ds"
        ):
            if not device.is_mos or device.terminals["d"] == device.terminals["s"]:
                continue
            far = device.terminals["s" if device.terminals["d"] == net else "d"]
            if far in rails and device.terminals["b"] != net:
                gates.add(device.terminals["g"])
            elif device.type == self._type and device.terminals["b"] == net:
                stages.append((device.terminals["g"], far))
        inverters = {(gate, far) for gate, far in stages if self._others.keys() & self._pulled.get((gate, far), set())}
        inverters -= {(gate, far) for far, gate in inverters}
        return bool(gates) and (len(inverters) >= _STAGES or self._drives(net, gates - rails, rails))

    def _drives(self, net: str, gates: set[str], rails: set[str]) -> bool:
        """Whether the voltage of a net acts on one of some gates, through gates and resistors."""
        front, seen = {net}, {net, *rails, *self._others}
        for _ in range(_LONGEST_LOOP):
            front = {far for each in front for far in (*self._driven[each], *self._resistors[each])} - seen
            if front & gates:
                return True
            seen |= front
        return False

    def _is_gated(self, net: str, rails: set[str]) -> bool:
        """Whether a net is a switched supply: switches alone join it to a rail; it feeds a mirror and its reference.

        A port without a current, or nets that channels of both types drive, are on the gates of the switches.
        """
        if net in self._ports or net in self._gates or net in self._others:
            return False
        gates: set[str] = set()
        sources: Counter[tuple[str, bool]] = Counter()  # gate, and whether the other end is on it
        for place in self._circuit.nets[net]:
            device = self._circuit.device(place.device)
            if device.type == self._type and place.terminal in ("d", "s"):
                far, gate = device.terminals["s" if place.terminal == "d" else "d"], device.terminals["g"]
                if far in rails:
                    gates.add(gate)
                elif far != net:
                    sources[gate, far == gate] += 1
        mirrored = any(is_diode and sources[gate, False] for gate, is_diode in sources)
        return bool(gates) and mirrored and sum(sources.values()) >= _IN_A_BLOCK and all(map(self._switches, gates))

    def _switches(self, gate: str) -> bool:
        """Whether a port without channels, or channels of both types, drive a gate."""
        own, opposite = self._ends[gate] > 0, self._opposite_ends[gate] > 0
        return not self._resistors[gate] and own == opposite and (own or gate in self._ports)

    def _tapped(self, rails: set[str]) -> set[str]:
        """Return the nets that taps tie to a rail."""
        taps = [tuple(each.terminals.values()) for each in self._circuit.devices if each.type == "tap"]
        return {net for tap in taps if not rails.isdisjoint(tap) for net in tap}

    def _follows(self, net: str) -> bool:
        """Whether all transistors with their body and an end on a net end at the opposite supply: source followers."""
        own = [other for other, body in self._channels[net] if body == net]
        return all(other in self._others for other in own)

    def _passes_bias(self, net: str) -> bool:
        """Whether all that is on a net is one transistor in its well, whose other end is a diode of the other type.

        The net brings a current from outside, which the transistor switches on.
        """
        if net in self._named or self._bodies[net] != 1 or len(self._circuit.nets[net]) != 2:
            return False
        return any(other in self._opposite_diodes for other, _ in self._channels[net])

    def _hangs_on_port(self, rails: set[str]) -> set[str]:
        """Return the nets inside that a port feeds through a transistor in the well of the fed net.

        Such as the top plate of a bootstrap capacitor. Port and net are rails of one kind, so one of them feeds the
        other; and where nothing else feeds the net, all that is on it came from the port.
        """
        found = set()
        for net in rails - self._ports - self._named:
            feeds = {other for other, body in self._channels[net] if other in rails and other != net}
            if self._bodies[net] < REGULATED_BODIES and len(feeds & self._ports) == 1 and feeds <= self._ports:
                found.add(net)
        return found

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

        Two equal transistors alone end on it, with separate gates and drains; they are no inverters in wells on it.
        """
        if net in self._named or self._ends[net] != 2 or self._bodies[net] > 2:
            return False
        places = self._circuit.nets[net]
        ends = [self._circuit.device(place.device) for place in places if place.terminal in ("d", "s")]
        others = [place for place in places if place.terminal not in ("d", "s", "b")]
        if others or len(ends) != 2 or net in self._circuit.black_box_nets:
            return False
        one, other = ends
        outputs = [{(each.terminals["g"], each.terminals[end]) for end in "ds"} for each in ends]
        if self._bodies[net] == 2 and not any(map(self._pulled.keys().isdisjoint, outputs)):
            return False
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

    def _feeds_alone(self, net: str, rails: set[str]) -> bool:
        """Whether a net feeds transistors in its well, and nothing feeds it: a port that was forgotten.

        Nothing else may be on it but resistors that lead to no rail.
        """
        alone = len(self._circuit.nets[net]) == self._bodies[net] + self._ends[net] + len(self._resistors[net])
        alone = alone and not (rails | self._others.keys()).intersection(self._resistors[net])
        return alone and self._bodies[net] >= REGULATED_BODIES and all(body == net for _, body in self._channels[net])

    def _is_block(self, net: str) -> bool:
        """Whether a net supplies a block of its own: body of many transistors, or a port that is the body of any."""
        return self._bodies[net] >= REGULATED_BODIES or (
            self._bodies[net] > 0 and net in self._ports and net not in self._gates and net in self._named
        )

    def _under_sources(self) -> set[str]:
        """Return the port on which the sources end, where the wells have nets of their own.

        Channels of the type lead from it to most nets, and of several such ports most end on it, more than of the other
        type; current from it reaches a channel of the other type or a diode. It is the gate of none of the type but of
        those that end on it. Where a well is a port, too, two channels end on it
        and it reaches a diode: the rail of plain inverters is then one that the outside controls. It feeds a block of
        its own where more channels end on it.
        """
        well_is_port = not self._ports.isdisjoint(self._bodies)
        ends = {
            port: (len({other for other, _ in self._channels[port]}), self._ends[port] - self._opposite_ends[port])
            for port in self._ports - self._own_gates - self._others.keys() - self._bodies.keys()
            if self._ends[port] > well_is_port and not self._is_tail(port)
        }
        _, most = best = max(ends.values(), default=(0, 0))
        aims = self._diodes if well_is_port and most < REGULATED_BODIES else self._diodes | self._opposite.keys()
        found = {port for port in ends if most > 0 and ends[port] == best and self._reaches(port, aims)}
        return found if len(found) == 1 else set()

    def _reaches(self, net: str, aims: set[str]) -> bool:
        """Whether channels of the type lead from a net to one of these, over nets inside."""
        seen, front = {net}, {net}
        while front:
            front = {other for each in front for other, _ in self._channels[each]} - seen
            if front & aims:
                return True
            seen |= front
            front -= self._ports
        return False

    def _only_bodies(self) -> set[str]:
        """Return the body of most transistors, where no rail was found: a fragment without its sources.

        A net that a transistor in another well feeds is none.
        """
        driven = {net for net, ends in self._channels.items() if any(body != net for _, body in ends)}
        always_on = self._bodies.keys() - self._ends.keys() - self._own_gates
        not_rails = driven | (self._gates - always_on) | self._others.keys()
        candidates = [(-count, net) for net, count in self._bodies.items() if net not in not_rails]
        return {min(candidates)[1]} if candidates else set()

    def _reason(self, net: str) -> str:
        kind = self._type.upper()
        parts = [BY_NAME] if net in self._named else []
        if self._bodies[net]:
            count, ends = self._bodies[net], self._ends[net]
            on_it = f"{ends} of them end{'s' * (ends == 1)} on it"
            parts.append(f"body of {count} {kind} transistor{'s' * (count > 1)}, {on_it}")
        elif self._ends[net]:
            ends = self._ends[net]
            parts.append(f"{ends} {kind} transistor{'s end' if ends > 1 else ' ends'} on it")
        return "; ".join(parts)
