"""A circuit as a graph for the search of symmetry: elements, and the nets of their terminals without the supplies.

Colour refinement says what looks alike from everywhere. Where two halves can be exchanged, nothing changes. An exchange
that leaves one element where it is that looks like one it moves is none: three equal parts have no axis.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from layoutkit.circuit.canonical import canonical_order
from layoutkit.circuit.orientation import carries_both_ways, is_off

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence

    from layoutkit.circuit.circuit import BlackBox, Circuit, Device
    from layoutkit.circuit.supplies import Supplies

Item = TypeVar("Item")
Key = TypeVar("Key")
ROUNDS = 8
"""Rounds of colour refinement: how many steps away what is around two elements is compared."""
BOTH_WAYS = "both ways"
_PASSIVES = ("resistor", "capacitor")
_MOST_PASSIVES = 4
MOST_ALIKE = 8
"""Elements that look alike from everywhere; among more, as in an array, none are tried."""
CONTROLS = frozenset({"g", "b"})
"""Roles of the terminals that control a current: gates and bases."""


class Element(NamedTuple):
    """A device, equal devices in parallel, or an unknown cell as a node of the graph.

    Attributes:
        name: Id of the device, of several in parallel the first.
        key: How it is drawn, what its ends are, and how many are in parallel.
        ends: Role and net of each terminal but the body; roles of exchangeable ends are ``e``.
        body: Net of the body; empty if that is on the source.
    """

    name: str
    key: tuple[Any, ...]
    ends: tuple[tuple[str, str], ...]
    body: str

    def on(self, role: str) -> str:
        """Return the net of a terminal."""
        return next((net for each, net in self.ends if each == role), "")

    @property
    def is_diode(self) -> bool:
        """Whether it is a transistor with its gate on its drain."""
        return bool(self.on("g")) and self.on("g") == self.on("d")

    @property
    def channel(self) -> tuple[str, ...]:
        """The nets of the terminals that carry its current."""
        return tuple(net for role, net in self.ends if role not in CONTROLS)


def drawing(device: Device) -> tuple[Any, ...]:
    """Return what determines how a device is drawn: its type, model and parameters."""
    params = tuple(sorted((key, float(value)) for key, value in device.params.items()))
    return (device.type, device.model.lower(), params)


def same_size(first: Device, second: Device) -> bool:
    """Whether two devices are drawn alike: same type, model and parameters."""
    return drawing(first) == drawing(second)


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Return items by a key, in their order."""
    found: dict[Key, list[Item]] = defaultdict(list)
    for item in items:
        found[key(item)].append(item)
    return found


def shared_nets(
    devices: Sequence[Device], key: Callable[[Device], Hashable], apart: Collection[str]
) -> list[list[Device]]:
    """Return those devices in groups of two and more of one ``key`` that an end on a common net joins.

    Args:
        devices: Devices.
        key: What the devices of a group have in common.
        apart: Nets that join none.
    """
    from networkx.utils import UnionFind

    joined = UnionFind(device.id for device in devices)
    first: dict[tuple[Hashable, str], Device] = {}
    for device in devices:
        for net in {device.terminals[end] for end in device.kind.ends} - set(apart):
            joined.union(first.setdefault((key(device), net), device).id, device.id)
    return [group for group in grouped(devices, lambda device: joined[device.id]).values() if len(group) > 1]


class SymmetryGraph:
    """The graph of one circuit, in its canonical order, with equal devices in parallel folded into one element.

    Dummies, which are off for good or have all terminals on one net, are no elements.

    Args:
        circuit: The circuit, oriented.
        supplies: Its supplies. They are images of themselves, but for regulated rails: those are signals, and what they
            feed is not on them.
    """

    def __init__(self, circuit: Circuit, supplies: Supplies) -> None:
        self.supplies = supplies.outer
        self.ports = frozenset(circuit.ports)
        places: dict[str, set[Any]] = defaultdict(set)
        for device in circuit.devices:
            for terminal, net in device.terminals.items():
                if terminal not in device.kind.sensing:
                    places[net].add((terminal, drawing(device), *device.terminals.values()))
        loose = {net for net, alike in places.items() if len(alike) == 1} - self.ports
        both_ways = carries_both_ways(circuit)
        folded: dict[tuple[Any, ...], list[Element]] = defaultdict(list)
        for device in map(circuit.device, canonical_order(circuit).devices):
            if device.type == "tap" or (device.is_mos and is_off(device, supplies)):
                continue
            leads_on = not loose & {device.terminals[end] for end in device.kind.ends}
            element = _element(device, device.id in both_ways and leads_on)
            if any(net not in supplies for _, net in element.ends) and len({net for _, net in element.ends}) > 1:
                folded[element.key, tuple(sorted(element.ends)), element.body].append(element)
        self.members = {alike[0].name: tuple(each.name for each in alike) for alike in folded.values()}
        self.elements = [first._replace(key=(*first.key, 1 + len(more))) for first, *more in folded.values()]
        self.elements += map(_unknown, circuit.black_boxes)
        self.number = {element.name: index for index, element in enumerate(self.elements)}
        self.on_net: dict[str, list[tuple[int, str]]] = defaultdict(list)
        self._around: dict[str, Counter[Any]] = {}
        self._past: dict[str, set[str]] = {}
        self._on_ends: dict[str, list[int]] = {}
        self._lead_on: dict[str, list[int]] = {}
        for index, element in enumerate(self.elements):
            for role, net in element.ends:
                fed = role == "s" and net in supplies.turning_off.get(element.key[1], ())
                if net not in self.supplies and not fed:
                    self.on_net[net].append((index, role))

    @cached_property
    def colours(self) -> list[list[int]]:
        """The colour of every element after each round of refinement (Weisfeiler and Leman 1968)."""
        numbers: dict[Any, int] = {}

        def colour(signature: Any) -> int:
            return numbers.setdefault(signature, len(numbers))

        nets: dict[str, int] = defaultdict(lambda: colour("net"))
        nets.update({net: colour(("supply", net)) for net in (*self.supplies.power, *self.supplies.ground)})
        now = [colour(element.key) for element in self.elements]
        rounds = [now]
        for _ in range(ROUNDS):
            now = [
                colour(
                    (
                        now[i],
                        nets[each.body] if each.body else -1,
                        *sorted((role, nets[net]) for role, net in each.ends),
                    )
                )
                for i, each in enumerate(self.elements)
            ]
            nets.update(
                {
                    net: colour((nets[net], *sorted((role, now[index]) for index, role in places)))
                    for net, places in self.on_net.items()
                }
            )
            rounds.append(now)
            if len(set(now)) == len(set(rounds[-2])) and len(rounds) > 2:
                break
        return rounds

    @cached_property
    def alike(self) -> dict[int, list[int]]:
        """The elements that look alike from everywhere, by their colour."""
        return grouped(range(len(self.elements)), self.colours[-1].__getitem__)

    def is_switch(self, name: str) -> bool:
        """Whether a transistor switches a signal: it does so itself, or its gate is on that of one that does."""
        return name in self.number and self.elements[self.number[name]].on("g") in self._switching

    def is_clock(self, net: str) -> bool:
        """Whether a net leads to gates of both types and to nothing else: a bias turns on one type only."""
        types = {self.elements[index].key[1] if role == "g" else role for index, role in self.on_net.get(net, ())}
        return types == {"nmos", "pmos"}

    @cached_property
    def _switching(self) -> set[str]:
        """The gate nets of switches: of what carries current both ways, or direct current to further switches only."""
        return {element.on("g") for index, element in enumerate(self.elements) if self._switches(index)}

    def _switches(self, index: int) -> bool:
        if self.elements[index].key[0] == BOTH_WAYS:
            return not self._floats(index)
        drain, source = self.elements[index].on("d"), self.elements[index].on("s")
        if not drain or source in self.supplies or self.elements[index].is_diode:
            return False
        if all(other == index for other in self._ends(drain)):  # an output, unless it charges a capacitor or a gate
            stored = any(self.is_capacitor(other) for other, _ in self.on_net[source])
            gates = source in self.ports and drain not in self.ports and len(self.on_net[drain]) > 1
            return stored or gates or not self._conducts(source, index)
        beyond = any(other != index for other in self._leading(drain))
        return not self._conducts(source, index) or not (beyond or drain in self.ports or drain in self.supplies)

    def _floats(self, index: int) -> bool:
        """Whether PMOS transistors feed a current into one end of a transistor that NMOS ones take from the other."""
        ends = self.elements[index].channel
        kinds = [{self.elements[i].key[1] for i, role in self.on_net.get(net, ()) if role in "ds"} for net in ends]
        return sorted(map(sorted, kinds)) == [["nmos"], ["pmos"]]

    def is_passed_beside(self, index: int, gate: str) -> bool:
        """Whether a gate is that of the other half of a transmission gate of which an element is one half."""
        one = self.elements[index]
        beside = (self.elements[i] for i, _ in min((self.on_net.get(net, []) for net in one.channel), key=len) if gate)
        switched = (each for each in beside if each.on("g") == gate and each.key[1] != one.key[1])
        return any({*each.channel} == {*one.channel} for each in switched)

    def are_inputs(
        self, role: str, x: str, y: str, nets: Iterable[tuple[str, str, str]], images: Mapping[str, str]
    ) -> bool:
        """Whether two nets are on controls of one type alone, of elements on nets that are images.

        Args:
            role: That of the terminals of two elements on them.
            x: The net of one.
            y: That of the other.
            nets: Role and nets of all terminals of the two.
            images: Net to its image.
        """
        kinds = {self.elements[i].key[1] for net in (x, y) for i, each in self.on_net[net] if each in CONTROLS}
        known = any(images.get(one) == other != one for each, one, other in nets if each not in CONTROLS)
        return role in CONTROLS and len(kinds) == 1 and known

    def past_passives(self, net: str) -> set[str]:
        """Return the nets to which one resistor or capacitor leads from a net with few of these on it."""
        if net not in self._past:
            passive = [index for index, _ in self.on_net.get(net, ()) if self.elements[index].key[1] in _PASSIVES]
            few = passive if len(passive) <= _MOST_PASSIVES else ()
            self._past[net] = {self._far(index, net) for index in few} - {net}
        return self._past[net]

    def is_capacitor(self, index: int) -> bool:
        """Whether an element is a capacitor, also one of a transistor with drain and source on one net."""
        return not {*self.elements[index].key[:2]}.isdisjoint(("capacitor", "mos_capacitor"))

    def _ends(self, net: str) -> list[int]:
        """Return the elements on a net with another terminal than a gate or base."""
        if net not in self._on_ends:
            self._on_ends[net] = [index for index, role in self.on_net[net] if role not in CONTROLS]
        return self._on_ends[net]

    def _conducts(self, net: str, but: int) -> bool:
        """Whether another element may carry direct current to or from a net; a supply always does."""
        if net in self.supplies:
            return True
        return any(index != but and not self.is_capacitor(index) for index in self._ends(net))

    def _leading(self, net: str) -> list[int]:
        """Return the elements that carry direct current from a net on to others."""
        if net not in self._lead_on:
            carrying = (index for index in self._ends(net) if not self.is_capacitor(index))
            self._lead_on[net] = [index for index in carrying if self._conducts(self._far(index, net), index)]
        return self._lead_on[net]

    def _far(self, index: int, net: str) -> str:
        return next((other for other in self.elements[index].channel if other != net), net)

    def around(self, net: str) -> Counter[Any]:
        """Return what is on a net: how often each kind of element with each of its terminals."""
        if net not in self._around:
            self._around[net] = Counter((role, self.elements[index].key) for index, role in self.on_net[net])
        return self._around[net]

    def likeness(self, one: int, other: int) -> int:
        """Return for how many rounds of refinement two elements look alike."""
        return next((n for n, row in enumerate(self.colours) if row[one] != row[other]), ROUNDS + 1)


def _element(device: Device, both_ways: bool) -> Element:
    net = device.terminals
    body = net.get(device.kind.bulk, "") if device.kind.bulk else ""
    shape, ends = "", tuple((device.kind.roles.get(name, name), net[name]) for name in net if name != device.kind.bulk)
    if device.is_mos and net["d"] == net["s"]:  # a capacitor from its gate
        shape, ends = "capacitor", (("p", net["g"]), ("n", net["d"]))
    elif device.is_mos:
        one, other = ("e", "e") if both_ways else ("d", "s")
        shape, ends = BOTH_WAYS if both_ways else "", ((one, net["d"]), (other, net["s"]), ("g", net["g"]))
    return Element(device.id, (shape, *drawing(device)), ends, "" if body in (net.get("d"), net.get("s")) else body)


def _unknown(box: BlackBox) -> Element:
    return Element(
        box.id, ("cell", box.cell.lower()), tuple((f"port {name}", net) for name, net in box.nets.items()), ""
    )
