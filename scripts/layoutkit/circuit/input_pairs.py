r"""Find input pairs: two equal transistors with separate gates, above one tail or above equal current sources.

        d1   d2            d1       d2             supply  supply
    g1-| M1  M2 |-g2    g1-| M1    M2 |-g2         g1-| M1  M2 |-g2
        |____|              |__/\/__|                  |     |
         tail              I1       I2                 I1    I2
    with one source      with two sources         source followers

Every search runs over devices indexed by the nets they share.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from layoutkit.circuit.circuit import Circuit, Device
    from layoutkit.circuit.supplies import Supplies

    _BySource = Mapping[tuple[str, str], Sequence[Device]]

MOST_ON_A_SOURCE = 4
"""A source net with more transistors than this has none of an input pair with two source nets."""

_POLARITY = str.maketrans({"n": "p", "m": "p", "-": "+", "2": "1", "b": "a", "r": "l"})


class FoundPair(NamedTuple):
    """An input pair, with its devices in the order of the netlist.

    Attributes:
        kind: Type of its module: ``differential_pair``, or ``symmetric_pair`` for source followers.
        first: One transistor.
        second: The other one.
        properties: Properties of its module.
    """

    kind: str
    first: Device
    second: Device
    properties: dict[str, Any]


class _Leg(NamedTuple):
    """The branch below a source net: a current source, or a resistor to a net that is not a supply.

    Attributes:
        drawing: Type, model and parameters of its devices.
        gate: Net that drives a current source; empty for a resistor.
        end: Net at the other end.
    """

    drawing: tuple[Any, ...]
    gate: str
    end: str


def drawing(device: Device) -> tuple[Any, ...]:
    """Return what determines how a device is drawn: its type, model and parameters."""
    params = tuple(sorted((key, float(value)) for key, value in device.params.items()))
    return (device.type, device.model.lower(), params)


def same_size(first: Device, second: Device) -> bool:
    """Whether two devices are drawn alike: same type, model and parameters."""
    return drawing(first) == drawing(second)


class InputPairs:
    """The search in one circuit.

    Args:
        circuit: The circuit.
        supplies: Its supplies.
        channels: Net to the devices that are on it with another terminal than gate or bulk.
    """

    def __init__(self, circuit: Circuit, supplies: Supplies, channels: Mapping[str, Sequence[str]]) -> None:
        self._circuit = circuit
        self._supplies = supplies
        self._channels = channels
        self._ports = frozenset(circuit.ports)
        self._order = {device.id: index for index, device in enumerate(circuit.devices)}
        self._around: dict[str, tuple[Any, ...]] = {}
        self._bottoms: dict[str, Device | None] = {}

    def with_one_source(self, free: Iterable[Device]) -> list[FoundPair]:
        """Return the pairs among free transistors that share a source net with a tail current source."""
        groups: dict[tuple[Any, ...], list[Device]] = defaultdict(list)
        for device in free:
            net = device.terminals
            if net["s"] not in self._supplies and net["g"] not in self._supplies:
                groups[device.type, device.model.lower(), net["s"], device.params.get("l")].append(device)
        return [
            FoundPair(
                "differential_pair",
                first,
                second,
                {"matched": same_size(first, second), "common_source": first.terminals["s"]},
            )
            for members in groups.values()
            for first, second in self._partners(members)
            if self._has_tail(first, second) and self._faces(first.terminals, second.terminals)
        ]

    def _partners(self, members: list[Device]) -> list[tuple[Device, Device]]:
        """Return the pairs among transistors on one source net.

        Two transistors are a pair. Among more, pairs have gates that are named as partners. If there are none, the only
        two with inputs as gates are a pair. Otherwise, two gate nets may drive several transistors each, as in a
        recycling amplifier.
        """
        if len(members) == 2:
            return [(members[0], members[1])]
        alike: dict[tuple[Any, ...], list[Device]] = defaultdict(list)
        for member in members:
            alike[drawing(member), _without_polarity(member.terminals["g"])].append(member)
        named = [(group[0], group[1]) for group in alike.values() if len(group) == 2]
        inputs = [member for member in members if member.terminals["g"] in self._ports]
        return named or ([(inputs[0], inputs[1])] if len(inputs) == 2 else self._split_inputs(members))

    def _split_inputs(self, members: Sequence[Device]) -> list[tuple[Device, Device]]:
        """Return the pairs among equal transistors on two gate nets: those with equal devices on their drain nets."""
        gates = list(dict.fromkeys(member.terminals["g"] for member in members))
        if len(gates) != 2 or len({drawing(member) for member in members}) > 1:
            return []
        by_drain: dict[Any, tuple[list[Device], list[Device]]] = defaultdict(lambda: ([], []))
        for member in members:
            around = self._surroundings(member.terminals["d"])
            by_drain[around][gates.index(member.terminals["g"])].append(member)
        return [(one[0], other[0]) for one, other in by_drain.values() if len(one) == len(other) == 1]

    def _surroundings(self, net: str) -> tuple[Any, ...]:
        """Return the drawing and terminal of every device on a net, sorted."""
        if net in self._around:
            return self._around[net]
        found = []
        for place in self._circuit.nets[net]:
            device = self._circuit.device(place.device)
            exchangeable = device.kind.exchangeable and not device.is_mos and place.terminal in device.kind.ends
            found.append((drawing(device), "" if exchangeable else place.terminal))
        self._around[net] = tuple(sorted(found, key=str))
        return self._around[net]

    def _has_tail(self, first: Device, second: Device) -> bool:
        own, source = {first.id, second.id}, first.terminals["s"]
        return source in self._ports or any(device not in own for device in self._channels[source])

    def with_two_sources(self, free: Iterable[Device]) -> list[FoundPair]:
        """Return the pairs among free transistors on two source nets, above equal branches.

        In a pair, a device joins the two source nets, or the gates are ports that are named as partners, or resistors
        below the sources end at one tail.
        """
        above: dict[tuple[str, str], list[Device]] = defaultdict(list)
        for device in free:
            if device.terminals["s"] not in self._supplies and device.terminals["g"] not in self._supplies:
                above[device.terminals["s"], device.type].append(device)
        for key, found in list(above.items()):
            if 1 < len(found) <= MOST_ON_A_SOURCE:
                above[key] = [device for device in found if not _bridges(device, above)]
        single = {key: found[0] for key, found in above.items() if len(found) == 1}
        below = {source: self._legs(source) for source, _ in single}
        joined = self._joined_at_sources(single)
        pairs = [*self._with_equal_legs(single.values(), below), *joined]
        bridged = {(one.id, other.id) for one, other in joined}
        taken: set[str] = set()
        result = []
        for one, other in sorted(pairs, key=lambda pair: self._order[pair[0].id]):
            a, b = one.terminals, other.terminals
            legs, others = below[a["s"]], below[b["s"]]
            if (one.id, other.id) in bridged:  # each half of the circuit may drive a current source
                legs, others = self._with_any_gate(legs), self._with_any_gate(others)
            if taken & {one.id, other.id} or a["s"] == b["s"] or not legs & others:
                continue
            if same_size(one, other) and self._faces(a, b):
                kind = "symmetric_pair" if a["d"] == b["d"] else "differential_pair"
                result.append(FoundPair(kind, one, other, {"matched": True}))
                taken |= {one.id, other.id}
        return result

    def _with_any_gate(self, legs: Iterable[_Leg]) -> set[_Leg]:
        """Return branches, without the gate nets of those that end at a supply."""
        return {leg._replace(gate="") if leg.end in self._supplies else leg for leg in legs}

    def _with_equal_legs(self, tops: Iterable[Device], below: Mapping[str, set[_Leg]]) -> list[tuple[Device, Device]]:
        """Return the pairs whose gates are ports named as partners, and those with resistors to one net."""
        alike: dict[tuple[Any, ...], list[Device]] = defaultdict(list)
        for top in tops:
            net = top.terminals
            if net["g"] in self._ports:
                alike["named", drawing(top), _body(net), _without_polarity(net["g"])].append(top)
            for leg in sorted(below[net["s"]], key=str):
                if not leg.gate:
                    alike[drawing(top), _body(net), leg].append(top)
        groups = [sorted(group, key=lambda device: self._order[device.id]) for group in alike.values()]
        return [(group[0], group[1]) for group in groups if len(group) == 2]

    def _joined_at_sources(self, tops: Mapping[tuple[str, str], Device]) -> list[tuple[Device, Device]]:
        """Return the pairs whose source nets a device joins."""
        found = []
        for device in self._circuit.devices:
            ends = [device.terminals[end] for end in (("d", "s") if device.is_mos else device.kind.ends)]
            for kind in ("nmos", "pmos") if len(ends) == 2 and ends[0] != ends[1] else ():
                both = [tops[end, kind] for end in ends if (end, kind) in tops]
                if len(both) == 2:
                    one, other = sorted(both, key=lambda each: self._order[each.id])
                    found.append((one, other))
        return found

    def _legs(self, source: str) -> set[_Leg]:
        found = set[_Leg]()
        for name in self._channels[source]:
            device = self._circuit.device(name)
            net = device.terminals
            if device.is_mos and net["d"] == source != net["s"]:
                found.add(self._current_source(device))
            elif device.type == "resistor":
                far = [net[end] for end in device.kind.ends if net[end] != source]
                if len(far) == 1 and far[0] not in self._supplies:
                    found.add(_Leg(drawing(device), "", far[0]))
        return found

    def _current_source(self, top: Device) -> _Leg:
        """Return the branch of a current source; that of a cascode includes the transistor below it."""
        net = top.terminals
        bottom = None if net["s"] in self._supplies else self._bottom(net["s"])
        if bottom is None:
            return _Leg((drawing(top),), net["g"], net["s"])
        return _Leg((drawing(top), drawing(bottom), bottom.terminals["g"]), net["g"], bottom.terminals["s"])

    def _bottom(self, net: str) -> Device | None:
        """Return the only transistor whose drain is on a net; None if there is none or more than one."""
        if net not in self._bottoms:
            devices = map(self._circuit.device, self._channels[net])
            found = [each for each in devices if each.is_mos and each.terminals["d"] == net != each.terminals["s"]]
            self._bottoms[net] = found[0] if len(found) == 1 else None
        return self._bottoms[net]

    def _faces(self, a: Mapping[str, str], b: Mapping[str, str]) -> bool:
        """Whether two transistors have separate gates and drains and equal bodies, and neither drives the other.

        The drains of two source followers may be on one supply.
        """
        followers = a["s"] != b["s"] and a["d"] in self._supplies
        if a["g"] == b["g"] or (a["d"] == b["d"] and not followers) or _body(a) != _body(b):
            return False
        return not ((a["d"] == a["g"] and b["d"] == b["g"]) or a["d"] == b["g"] or b["d"] == a["g"])


def _bridges(device: Device, above: _BySource) -> bool:
    """Whether the channel of a transistor joins the sources of two others that are drawn alike."""
    one, other = (above.get((device.terminals[end], device.type), []) for end in ("d", "s"))
    if max(len(one), len(other)) > MOST_ON_A_SOURCE:
        return False
    return bool({drawing(each) for each in one} & {drawing(each) for each in other if each is not device})


def _body(net: Mapping[str, str]) -> str:
    """Return the net of the body; empty if the body is on the source of its own transistor."""
    return "" if net["b"] == net["s"] else net["b"]


def _without_polarity(net: str) -> str:
    return net.lower().translate(_POLARITY)
