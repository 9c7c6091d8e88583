r"""Finding input pairs: two equal transistors with gates of their own, above one tail or above equal current sources.

        d1   d2            d1       d2
    g1-| M1  M2 |-g2    g1-| M1    M2 |-g2
        |____|              |__/\/__|
         tail              I1       I2
    with one source      with two sources

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
"""Most transistors with one source net among which an input pair with two sources is looked for."""

_POLARITY = str.maketrans({"n": "p", "m": "p", "-": "+", "2": "1", "b": "a", "r": "l"})


class FoundPair(NamedTuple):
    """An input pair, its devices in the order of the netlist.

    Attributes:
        first: One transistor.
        second: The other one.
        properties: Of the module.
    """

    first: Device
    second: Device
    properties: dict[str, Any]


class _Leg(NamedTuple):
    """What hangs below a source: a current source, or a resistor to a net that is no supply.

    Attributes:
        drawing: How it is drawn.
        gate: Net that drives a current source; empty for a resistor.
        end: Net at the other end.
    """

    drawing: tuple[Any, ...]
    gate: str
    end: str


def drawing(device: Device) -> tuple[Any, ...]:
    """Return what a device is drawn from: type, model and every parameter."""
    params = tuple(sorted((key, float(value)) for key, value in device.params.items()))
    return (device.type, device.model.lower(), params)


def same_size(first: Device, second: Device) -> bool:
    """Whether two devices are drawn alike: type, model and every parameter."""
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

    def with_one_source(self, free: Iterable[Device]) -> list[FoundPair]:
        """Return the pairs among free transistors whose sources are on one net, below which a tail hangs."""
        groups: dict[tuple[Any, ...], list[Device]] = defaultdict(list)
        for device in free:
            net = device.terminals
            if net["s"] not in self._supplies and net["g"] not in self._supplies:
                groups[device.type, device.model.lower(), net["s"], device.params.get("l")].append(device)
        return [
            FoundPair(first, second, {"matched": same_size(first, second), "common_source": first.terminals["s"]})
            for members in groups.values()
            for first, second in self._partners(members)
            if self._has_tail(first, second) and _faces(first.terminals, second.terminals)
        ]

    def _partners(self, members: list[Device]) -> list[tuple[Device, Device]]:
        """Return the pairs of a group on one source net.

        They are the only two, those whose gates are named as partners, or the only two inputs.
        """
        if len(members) == 2:
            return [(members[0], members[1])]
        alike: dict[tuple[Any, ...], list[Device]] = defaultdict(list)
        for member in members:
            alike[drawing(member), _without_polarity(member.terminals["g"])].append(member)
        named = [(group[0], group[1]) for group in alike.values() if len(group) == 2]
        inputs = [member for member in members if member.terminals["g"] in self._ports]
        return named or ([(inputs[0], inputs[1])] if len(inputs) == 2 else [])

    def _has_tail(self, first: Device, second: Device) -> bool:
        own, source = {first.id, second.id}, first.terminals["s"]
        return source in self._ports or any(device not in own for device in self._channels[source])

    def with_two_sources(self, free: Iterable[Device]) -> list[FoundPair]:
        """Return the pairs among free transistors whose sources are two nets, each above an equal leg.

        A device joins the two sources, or the gates are ports that are named as partners, or resistors below the
        sources end at one tail.
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
        pairs = [*self._with_equal_legs(single.values(), below), *self._joined_at_sources(single)]
        taken: set[str] = set()
        result = []
        for one, other in sorted(pairs, key=lambda pair: self._order[pair[0].id]):
            a, b = one.terminals, other.terminals
            if taken & {one.id, other.id} or a["s"] == b["s"] or not below[a["s"]] & below[b["s"]]:
                continue
            if same_size(one, other) and _faces(a, b):
                result.append(FoundPair(one, other, {"matched": True}))
                taken |= {one.id, other.id}
        return result

    def _with_equal_legs(self, tops: Iterable[Device], below: Mapping[str, set[_Leg]]) -> list[tuple[Device, Device]]:
        """Return the pairs whose gates are ports named as partners, and those with resistors to one net."""
        alike: dict[tuple[Any, ...], list[Device]] = defaultdict(list)
        for top in tops:
            net = top.terminals
            if net["g"] in self._ports:
                alike["named", drawing(top), net["b"], _without_polarity(net["g"])].append(top)
            for leg in sorted(below[net["s"]], key=str):
                if not leg.gate:
                    alike[drawing(top), net["b"], leg].append(top)
        groups = [sorted(group, key=lambda device: self._order[device.id]) for group in alike.values()]
        return [(group[0], group[1]) for group in groups if len(group) == 2]

    def _joined_at_sources(self, tops: Mapping[tuple[str, str], Device]) -> list[tuple[Device, Device]]:
        """Return the pairs whose sources a device joins."""
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
                found.add(_Leg(drawing(device), net["g"], net["s"]))
            elif device.type == "resistor":
                far = [net[end] for end in device.kind.ends if net[end] != source]
                if len(far) == 1 and far[0] not in self._supplies:
                    found.add(_Leg(drawing(device), "", far[0]))
        return found


def _bridges(device: Device, above: _BySource) -> bool:
    """Whether the channel of a transistor joins the sources of two others that are drawn alike."""
    one, other = (above.get((device.terminals[end], device.type), []) for end in ("d", "s"))
    if max(len(one), len(other)) > MOST_ON_A_SOURCE:
        return False
    return bool({drawing(each) for each in one} & {drawing(each) for each in other if each is not device})


def _faces(a: Mapping[str, str], b: Mapping[str, str]) -> bool:
    """Whether two transistors have gates and drains of their own, one body, and neither drives the other."""
    if a["g"] == b["g"] or a["d"] == b["d"] or a["b"] != b["b"]:
        return False
    return not ((a["d"] == a["g"] and b["d"] == b["g"]) or a["d"] == b["g"] or b["d"] == a["g"])


def _without_polarity(net: str) -> str:
    return net.lower().translate(_POLARITY)
