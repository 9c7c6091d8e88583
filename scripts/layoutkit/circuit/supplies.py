"""Which nets of a circuit are power and ground, by structure; a name is only a hint.

A net is power if PMOS transistors have their body and a source on it and no PMOS transistor feeds it, ground likewise
with NMOS transistors. A net named like a supply is one unless a transistor feeds it from a supply of its polarity: the
inner rail of a current-starved inverter is named like a supply and is none. Nor is one that drives gates alone, beside
a rail that is a port: an input that senses a supply. A fed net is a supply only where it feeds a block of its own: it
is the body of many transistors, or a port named like a supply that is the body of any. Where wells have nets of their
own, the rail is the port on which most channels of the type end that lead to channels of the other type or a diode.
Without PMOS transistors, a net with nothing but loads of NMOS or NPN transistors is power; without NMOS
transistors, the substrate of bipolar ones is ground, or a net with nothing but loads of PMOS transistors. The reasons
say which supplies only their names tell.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from layoutkit.errors import did_you_mean, listed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layoutkit.circuit.circuit import Circuit, Device, StatedSupplies

_DOMAIN = "(?:[a-z]|in|out|int|ext|core|io|ana|dig|low|high|hv|lv|reg|ref|sub|pad|buf|drv)?"
"""What the name of a supply may end in: a letter, or the part of the chip that it feeds."""
_VOLTAGE = r"_?(?:\d+(?:[vp]\d*)?)?"
"""The voltage or number after it: 1v8, 3p3, 33, 2."""
_REST = rf"{_DOMAIN}{_VOLTAGE}(?:_\w+)?!?"
_GROUND = re.compile(rf"(?:0|[a-z]*_?(?:v?gnd|vss|vee|ground){_REST}|sub!)")
_POWER = re.compile(rf"(?:[a-z]*_?(?:vdd|vcc|vd?pwr|vapwr|vps|avd|dvd|power){_REST})")

_NO_NAME = re.compile(r"(?!)")
_NAME = "its name"
_LOADS = ("resistor", "inductor")
_FED_BY_POWER = frozenset({("nmos", "d"), ("nmos", "s"), ("npn", "c")})  # types and terminals that loads end on
_FED_BY_GROUND = frozenset({("pmos", "d"), ("pmos", "s")})

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
        with_names = _both(circuit, power, ground, (_POWER, _GROUND))
        without = _both(circuit, power, ground, (_NO_NAME, _NO_NAME))
        for by_name, by_structure in zip(with_names, without, strict=True):
            by_name.update({net: _by_name(words) for net, words in by_name.items() if net not in by_structure})
        power, ground = with_names
        kept[_KEPT] = Supplies(tuple(sorted(power)), tuple(sorted(ground)), {**power, **ground})
    found: Supplies = kept[_KEPT]
    return found


def _by_name(words: str) -> str:
    """Return the reason for a supply that its structure alone does not tell."""
    return f"only by {words}" if words.startswith(_NAME) else words


def _both(
    circuit: Circuit,
    power: dict[str, str] | None,
    ground: dict[str, str] | None,
    named: tuple[re.Pattern[str], re.Pattern[str]],
) -> tuple[dict[str, str], dict[str, str]]:
    """Return power and ground with the reasons; what is stated stays."""
    likely_power = _Rails(circuit, "pmos", named[0]).found() if power is None else power
    types = {device.type for device in circuit.devices}
    if ground is None:
        ground = _Rails(circuit, "nmos", named[1], likely_power).found() or _substrate(circuit)
        if not ground or "nmos" not in types:
            ground = {**_of_loads(circuit, _FED_BY_GROUND, likely_power), **ground}
    if power is None:
        power = _Rails(circuit, "pmos", named[0], ground).found()
        if not power or "pmos" not in types:  # its name may tell one of several
            power = {**_of_loads(circuit, _FED_BY_POWER, ground), **power}
    return dict(power), dict(ground)


def _substrate(circuit: Circuit) -> dict[str, str]:
    """Return the net of the substrate of bipolar transistors with the reason: the ground of a circuit without NMOS.

    It is the substrate of all NPN transistors, with more than that on it; or collector and base of two PNP transistors
    and more, whose collectors are the substrate.
    """
    bipolars = [device for device in circuit.devices if device.type in ("npn", "pnp")]
    nets = {device.terminals.get("s", "") for device in bipolars if device.type == "npn"}
    if len(nets) == 1 and any(place.terminal not in "sb" for place in circuit.nets.get(min(nets), ())):
        return {min(nets): f"substrate of {_counted(sum(each.type == 'npn' for each in bipolars), 'NPN')}"}
    diodes = Counter(d.terminals["c"] for d in bipolars if d.type == "pnp" and d.terminals["c"] == d.terminals["b"])
    return {net: f"collector and base of {_counted(count, 'PNP')}" for net, count in diodes.items() if count > 1}


def _counted(count: int, kind: str) -> str:
    return f"{count} {kind} transistor{'s' * (count != 1)}"


def _of_loads(circuit: Circuit, driven: frozenset[tuple[str, str]], other_rail: Mapping[str, str]) -> dict[str, str]:
    """Return the nets that two loads and more end on, each with the reason: the other rail of a circuit of one type.

    A load is a resistor, an inductor, or a transistor of that type with its gate on the net, and its other end is on
    channels or collectors; but for capacitors nothing else is on the net. A port is one rather than a net inside. Two
    resistors to a net inside, whose other ends have loads of their own, sense a common mode.

    Args:
        circuit: The circuit.
        driven: The types and terminals that loads end on.
        other_rail: The supplies of the other polarity; resistors on them degenerate sources.
    """
    channels: dict[str, dict[str, str]] = defaultdict(dict)  # nets to the transistors that loads may end on
    in_loads: Counter[str] = Counter()
    for device in circuit.devices:
        for terminal, each in device.terminals.items():
            in_loads[each] += device.type in _LOADS and terminal in device.kind.ends
            if (device.type, terminal) in driven:
                channels[each][device.id] = device.type
    found = {}
    unknown = {*circuit.black_box_nets, *other_rail}
    for net, places in circuit.nets.items():
        others = {p.device: circuit.device(p.device) for p in places if p.terminal != "b"}
        loads = [each for each in others.values() if each.type != "capacitor"]
        if not loads or net in unknown:
            continue
        if any(
            load.type not in _LOADS and ((load.type, "d") not in driven or not _is_diode(load, net)) for load in loads
        ):
            continue
        fed = {load.terminals[end] for load in loads for end in load.kind.ends} - {net}
        all_driven = all(not channels[each].keys() <= others.keys() for each in fed)
        senses = len(fed) < 3 and all(in_loads[each] > 1 for each in fed)
        if len(fed) > 1 and all_driven and (net in circuit.ports or not senses):
            kinds = " and ".join(sorted({kind for each in fed for kind in channels[each].values()})).upper()
            found[net] = f"the {len(loads)} loads {listed(load.id for load in loads)} of {kinds} transistors end on it"
    return {net: words for net, words in found.items() if net in circuit.ports} or found


def _is_diode(device: Device, net: str) -> bool:
    """Whether gate and one end of a transistor are on a net."""
    return device.terminals["g"] == net and (device.terminals["d"] == net) != (device.terminals["s"] == net)


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
        self._own_gates: set[str] = set()  # gates of the type
        self._diodes: set[str] = set()  # gates that are on an end of their transistor
        self._opposite: dict[str, set[str]] = defaultdict(set)  # net to the other ends of channels of the other type
        self._opposite_ends: Counter[str] = Counter()
        sources: Counter[str] = Counter()  # nets to the transistors with their body and an end on them
        self._channels: dict[str, list[tuple[str, str]]] = defaultdict(list)  # net to (other end, body)
        self._resistors: dict[str, list[str]] = defaultdict(list)
        for device in circuit.devices:
            net = device.terminals
            if device.is_mos and net["d"] != net["s"] and net["g"] != net["b"]:  # no capacitor, and not off for good
                self._gates.add(net["g"])
            if device.type == mos_type and net["d"] != net["s"]:
                self._bodies[net["b"]] += 1
                self._own_gates.add(net["g"])
                self._diodes |= {net["g"]} & {net["d"], net["s"]}
                sources[net["b"]] += net["b"] in (net["d"], net["s"])
                for end, other in ((net["d"], net["s"]), (net["s"], net["d"])):
                    self._ends[end] += 1
                    self._channels[end].append((other, net["b"]))
            elif device.is_mos:
                self._opposite_ends.update((net["d"], net["s"]))
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
        rails -= self._hangs_on_port(rails)
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
            rails = self._under_sources() or self._only_bodies()
        elif not any(self._ends[net] or self._resistors[net] for net in rails):
            rails |= self._under_sources()  # wells alone have the name of a supply
        rails |= {net for net in self._tapped(rails) if net in self._ports and self._bodies[net]}
        return {net: self._reason(net) for net in sorted(rails)}

    def _tapped(self, rails: set[str]) -> set[str]:
        """Return the nets that taps tie to a rail."""
        taps = [tuple(each.terminals.values()) for each in self._circuit.devices if each.type == "tap"]
        return {net for tap in taps if not rails.isdisjoint(tap) for net in tap}

    def _follows(self, net: str) -> bool:
        """Whether all transistors with their body and an end on a net end at the opposite supply: source followers."""
        own = [other for other, body in self._channels[net] if body == net]
        return all(other in self._others for other in own)

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

    def _under_sources(self) -> set[str]:
        """Return the port on which the sources end, where the wells have nets of their own.

        Most channels of the type end on it, more than of the other type, and current from it reaches a channel of the
        other type or a diode. It is the gate of none of the type. Where a well is a port, too, two channels end on it
        and it reaches a diode: the rail of plain inverters is then one that the outside controls. It feeds a block of
        its own where more channels end on it.
        """
        well_is_port = not self._ports.isdisjoint(self._bodies)
        ends = {
            port: self._ends[port] - self._opposite_ends[port]
            for port in self._ports - self._own_gates - self._others.keys() - self._bodies.keys()
            if self._ends[port] > well_is_port and not self._is_tail(port)
        }
        most = max(ends.values(), default=0)
        aims = self._diodes if well_is_port and most < REGULATED_BODIES else self._diodes | self._opposite.keys()
        found = {port for port in ends if most > 0 and ends[port] == most and self._reaches(port, aims)}
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
        parts = [_NAME] if net in self._named else []
        if self._bodies[net]:
            count, ends = self._bodies[net], self._ends[net]
            on_it = f"{ends} of them end{'s' * (ends == 1)} on it"
            parts.append(f"body of {count} {kind} transistor{'s' * (count > 1)}, {on_it}")
        elif self._ends[net]:
            ends = self._ends[net]
            parts.append(f"{ends} {kind} transistor{'s end' if ends > 1 else ' ends'} on it")
        return "; ".join(parts)
