r"""Candidates for symmetric pairs: input pairs, cross-coupled pairs.

        d1   d2            d1       d2             d1    d2
    g1-| M1  M2 |-g2    g1-| M1    M2 |-g2          |\  /|
        |____|              |__/\/__|              M1 X  M2
         tail              I1       I2              |/  \|
    with one source      with two sources        cross-coupled

Every search runs over elements indexed by the nets they share.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from itertools import combinations, product, zip_longest
from math import isclose
from typing import TYPE_CHECKING, Any, NamedTuple

from layoutkit.circuit.channels import gate_length
from layoutkit.circuit.symmetry_graph import grouped, same_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from layoutkit.circuit.channels import Channels
    from layoutkit.circuit.circuit import Device
    from layoutkit.circuit.symmetry_graph import Element, SymmetryGraph

MOST_ON_A_SOURCE = 8
"""A source net with more alike transistors than this has no input pair."""
_POLARITY = str.maketrans({"n": "p", "m": "p", "-": "+", "2": "1", "b": "a", "r": "l"})
_TRANSISTORS = ("nmos", "pmos")
_BIPOLARS = ("npn", "pnp")


class Seed(NamedTuple):
    """Two elements that may be images of each other.

    Attributes:
        one: Id of one.
        other: Id of the other.
        sure: Whether they are a pair in any case, as an input pair is; else they are one if all around them agrees.
        alone: Whether no other pair competes; else it is one if each element on its nets has an image.
        amplifies: Whether they are a differential pair or two source followers.
        last: Whether the axes of all other pairs in any case go before theirs.
    """

    one: str
    other: str
    sure: bool
    alone: bool = True
    amplifies: bool = False
    last: bool = False


def seeds_of(graph: SymmetryGraph) -> Iterator[Seed]:
    """Yield all candidates, those that are a pair in any case first."""
    search = Candidates(graph)
    yield from search.with_one_source()
    yield from search.joined_at_sources()
    yield from search.cross_coupled()
    yield from search.on_one_emitter()
    yield from search.in_a_loop_of_mirrors()
    yield from search.unequal()
    yield from search.on_equal_legs()


class Candidates:
    """The search in one graph."""

    def __init__(self, graph: SymmetryGraph) -> None:
        self._graph = graph
        self._rails = frozenset((*graph.supplies.power, *graph.supplies.ground))
        self._biases: dict[str, bool] = {}
        self._led: dict[str, bool] = {}  # whether a gate net leads to more than gates
        self._by_source: dict[tuple[Any, ...], list[Element]] = defaultdict(list)
        for element in graph.elements:
            source, gate = element.on("s"), element.on("g")
            if source and not {source, gate} & self._rails:
                self._by_source[source, element.key, element.body].append(element)

    def with_one_source(self) -> Iterator[Seed]:
        """Yield the transistors with separate gates and drains above one tail.

        Of several, those whose gates diodes bias are replicas of cascodes where two others are left.
        """
        for (source, *_), on_source in self._by_source.items():
            unbiased = [each for each in on_source if not self._is_bias(each.on("g"))]
            members = unbiased if len(unbiased) == 2 else on_source
            if 1 < len(members) <= MOST_ON_A_SOURCE and self._has_tail(source, members):
                if len(members) > 2 and any(map(self._inverts, members)):
                    continue  # inverters on a rail of their own
                pairs = [pair for pair in combinations(members, 2) if _faces(*pair)]
                for one, other in sorted(pairs, key=lambda pair: not _named_alike(*pair)):
                    yield Seed(one.name, other.name, sure=True, alone=len(members) == 2, amplifies=True)

    def alone_above_a_tail(self) -> Iterator[tuple[Element, ...]]:
        """Yield the only two transistors of one length above one tail, which may differ in width or in model.

        Several may stand for one, with separate gates and its width in all; the first two face each other.
        """
        alike: dict[tuple[Any, ...], list[Element]] = defaultdict(list)
        for (source, key, body), members in self._by_source.items():
            alike[source, key[:2], dict(key[3]).get("l"), body] += members
        for (source, *_), members in alike.items():
            one_form = len({each.key[2] for each in members}) == 1 or len({each.key[3:] for each in members}) == 1
            follows = len(members) == 2 and {each.on("d") for each in members} & self._rails  # and biases the other
            if not 2 <= len(members) <= MOST_ON_A_SOURCE or not one_form or not self._has_tail(source, members):
                continue
            one, other = _sides(members, "d") or _sides(members, "g") or ((), ())
            if one and not (follows and len({each.key for each in members}) > 1):
                yield tuple(each for row in zip_longest(one, other) for each in row if each is not None)

    def unequal(self) -> Iterator[Seed]:
        """Yield those above one tail that differ in width or in model: what follows them may be images."""
        for one, other, *more in self.alone_above_a_tail():
            if one.key != other.key and not more:
                yield Seed(one.name, other.name, sure=True, amplifies=True)

    def in_a_loop_of_mirrors(self) -> Iterator[Seed]:
        """Yield diode and output of a mirror whose currents another equal mirror of the other type returns."""
        inner = [e for e in self._graph.elements if e.on("d") and not {e.on("d"), e.on("g")} & self._rails]
        by_ends = grouped(inner, lambda each: (each.key[1], each.on("d"), each.on("g")))
        for (kind, drain, gate), diodes in by_ends.items():
            if kind != "nmos" or drain != gate or len(diodes) != 1:
                continue
            for index, role in self._graph.on_net[gate]:
                output = self._graph.elements[index]
                far = output.on("d")
                if role != "g" or not _alike(diodes[0], output) or far == gate:
                    continue
                sides = [by_ends.get(("pmos", net, far), []) for net in (gate, far)]
                if all(len(side) == 1 for side in sides) and _alike(sides[0][0], sides[1][0]):
                    yield Seed(diodes[0].name, output.name, sure=True)

    def _inverts(self, element: Element) -> bool:
        """Whether a transistor of the other type has the same gate and drain."""
        others = (self._graph.elements[index] for index, role in self._graph.on_net[element.on("d")] if role == "d")
        return any(each.on("g") == element.on("g") and each.key[1] != element.key[1] for each in others)

    def _has_tail(self, source: str, members: Sequence[Element]) -> bool:
        own = {member.name for member in members}
        gates = {member.on("g") for member in members if len(members) == 2}
        alike = len({member.key for member in members}) == 1  # a tail at a rail may follow one of these
        if self._is_bias(source):  # else the transistors pass a current on to the reference of a mirror
            return len(members) == 2 and all(map(self._is_input, members)) and self._surrounded_alike(*members)
        phases = all(self._graph.is_switch(member.name) for member in members)
        for index, role in self._graph.on_net[source]:
            element = self._graph.elements[index]
            if phases and self._rails.isdisjoint(element.channel):
                continue  # no source of current for switches of several phases
            in_series = role == "d" and element.on("g") in gates and not (alike and element.on("s") in self._rails)
            if element.name in own or role == "g" or in_series:
                continue
            if role in ("d", "e", "c") and not self._graph.is_capacitor(index):
                return True
            if role.startswith("port ") or element.key[1] == "inductor":
                return True
        return source in self._graph.ports and not phases

    def _is_bias(self, net: str) -> bool:
        """Whether a diode and gates of other transistors of its type are on a net."""
        if net in self._biases:
            return self._biases[net]
        on_net = [(self._graph.elements[index], role) for index, role in self._graph.on_net[net]]
        diodes = {each.key[1] for each, role in on_net if role == "d" and each.is_diode}
        self._biases[net] = any(role == "g" and each.key[1] in diodes and not each.is_diode for each, role in on_net)
        return self._biases[net]

    def joined_at_sources(self) -> Iterator[Seed]:
        """Yield equal transistors whose sources an element joins, above branches that are equal but for their gates.

        Where the sources are ports, with nothing but passive devices below the transistors, the branches are outside.
        """
        for element in self._graph.elements:
            ends = element.channel
            if len(ends) != 2 or ends[0] == ends[1]:
                continue
            tops = product(self._tops.get(ends[0], ()), self._tops.get(ends[1], ()))
            pairs = [pair for pair in tops if element not in pair and _alike(*pair) and self._follow(*pair)]
            legs = (self._legs(end, gates=False, but=element) for end in ends if pairs)
            outside = pairs and not element.on("g") and all(self._fed_from_outside(end) for end in ends)
            if outside or (pairs and set.intersection(*legs)):
                for one, other in pairs:
                    yield Seed(one.name, other.name, sure=True, amplifies=True)

    def _fed_from_outside(self, source: str) -> bool:
        """Whether a source net is a port on which no transistor has its drain and no unknown block hangs."""
        roles = {role for _, role in self._graph.on_net[source]}
        return source in self._graph.ports and roles <= {"s", "e"}

    @cached_property
    def _tops(self) -> dict[str, list[Element]]:
        """Net to the transistors whose sources are on it."""
        tops: dict[str, list[Element]] = defaultdict(list)
        for (source, *_), members in self._by_source.items():
            if len(members) <= MOST_ON_A_SOURCE:
                tops[source] += members
        return tops

    def _legs(self, source: str, *, gates: bool = True, but: Element | None = None) -> set[tuple[Any, ...]]:
        """Return the branches that carry the current of a source net on.

        A branch is a resistor or a transistor with its drain there: how it is drawn, its gate and its other end. That
        of a cascode includes the only transistor below it.

        Args:
            source: The net.
            gates: Whether the gates of single transistors count; each half of a circuit may drive its own.
            but: An element that is no branch.
        """
        found: set[tuple[Any, ...]] = set()
        for index, role in self._graph.on_net[source]:
            element = self._graph.elements[index]
            if element is but or (role not in ("d", "e") and element.key[1] not in ("resistor", "inductor")):
                continue
            if element.key[1] not in (*_TRANSISTORS, "resistor", "inductor"):
                continue
            ends = [net for net in element.channel if net != source]
            below = self._below(ends[0]) if role == "d" and ends else None
            if below is not None:
                found.add((element.key, element.on("g") if gates else "", below.key, below.on("g"), below.on("s")))
            else:
                found.add((element.key, element.on("g") if gates else "", *ends))
        return found

    def _below(self, net: str) -> Element | None:
        """Return the only transistor whose drain is on a net that is no supply."""
        found = [self._graph.elements[index] for index, role in self._graph.on_net[net] if role == "d"]
        return found[0] if len(found) == 1 else None

    def _follow(self, one: Element, other: Element) -> bool:
        """Whether two transistors on two source nets face each other; the drains of followers are on one supply."""
        followers = one.on("d") == other.on("d") and one.on("d") in self._rails and one.on("g") != other.on("g")
        return one.on("s") != other.on("s") and (followers or _faces(one, other))

    def cross_coupled(self) -> Iterator[Seed]:
        """Yield transistors of which each has its gate on the drain of the other."""
        for one, other, drain, gate in self._crossed():
            beside = self._driven_beside(drain, gate)
            alike = (one.on("s") in self._rails) == (other.on("s") in self._rails)
            if alike and beside == self._driven_beside(gate, drain):
                yield Seed(one.name, other.name, sure=True, last=beside and self._in_gates(drain, gate))

    def _controls(self, element: Element) -> dict[str, bool]:
        """Return the nets that drive a gate or base: its own, and with True those past a passive on a base."""
        base = element.on("b")
        return {**dict.fromkeys(self._graph.past_passives(base) if base else (), True), base or element.on("g"): False}

    def _crossed(self) -> Iterator[tuple[Element, Element, str, str]]:
        """Yield each two equal transistors each of whose drains drives the other in the same way, and these nets."""
        by_nets: dict[tuple[Any, ...], list[Element]] = defaultdict(list)
        for element in self._graph.elements:
            drain = element.on("d") or element.on("c")
            for net, passed in self._controls(element).items() if drain else ():
                if net != drain:
                    by_nets[element.key, element.body, passed, drain, net].append(element)
        for (*kind, drain, net), members in by_nets.items():
            others = by_nets.get((*kind, net, drain), [])
            if len(members) == len(others) == 1 and not {drain, net} & self._rails:
                one, other = members[0], others[0]
                if self._graph.number[one.name] < self._graph.number[other.name]:
                    yield one, other, drain, net

    def _in_gates(self, *nets: str) -> bool:
        """Whether two nets are outputs of NOR or NAND gates: their latch follows what drives its inputs."""
        for net in nets:
            on_net = [(self._graph.elements[index], role) for index, role in self._graph.on_net[net]]
            drivers = {kind: [e for e, role in on_net if role == "d" and e.key[1] == kind] for kind in _TRANSISTORS}
            gates = [{element.on("g") for element in drivers[kind]} for kind in _TRANSISTORS]
            series = [len(drivers[kind]) == 1 and drivers[kind][0].on("s") not in self._rails for kind in _TRANSISTORS]
            if not any(series) or sorted(map(len, gates)) != [1, 2] or not (gates[0] & gates[1]):
                return False
        return True

    def on_one_emitter(self) -> Iterator[Seed]:
        """Yield the only two equal bipolar transistors on one emitter net with separate bases and collectors."""
        bipolars = [e for e in self._graph.elements if e.key[1] in _BIPOLARS and e.on("e") not in self._rails]
        for members in grouped(bipolars, lambda each: (each.on("e"), each.key)).values():
            if len(members) == 2 and all(len({each.on(role) for each in members}) == 2 for role in "bc"):
                yield Seed(members[0].name, members[1].name, sure=True, amplifies=True)

    def _driven_beside(self, net: str, other: str) -> bool:
        """Whether ``net`` hangs on the channel of a transistor that is not driven by ``other``.

        Where one net of a loop does and the other does not, the loop follows an input: it is the feedback of a Schmitt
        trigger or the keeper of a latch, and the two transistors are no mirror images.
        """
        for index, role in self._graph.on_net[net]:
            element = self._graph.elements[index]
            if role in ("d", "s", "e") and element.key[1] in _TRANSISTORS and element.on("g") != other:
                return True
        return False

    def on_equal_legs(self) -> Iterator[Seed]:
        """Yield the only two equal transistors above equal sources on one bias, or equal resistors to one tail."""
        above: dict[tuple[Any, ...], list[Element]] = defaultdict(list)
        for (source, key, body), members in self._by_source.items():
            if len(members) == 1 and not self._is_regulated(members[0]):
                for leg in self._legs(source):
                    above[key, body, leg].append(members[0])
        for (_, _, leg), members in above.items():
            if len(members) == 2 and self._follow(members[0], members[1]):
                degenerated = leg[0][1] == "resistor" and leg[-1] not in self._rails
                if degenerated or all(map(self._is_input, members)):
                    sure = degenerated or self._surrounded_alike(*members)
                    yield Seed(members[0].name, members[1].name, sure=sure, amplifies=True)

    def _surrounded_alike(self, one: Element, other: Element) -> bool:
        """Whether two transistors, no inverters, have equal surroundings at their sources and drains, with a load."""
        ends = [(one.on(role), other.on(role)) for role in ("s", "d")]
        loaded = len(self._graph.on_net[one.on("d")]) > 1 and not self._inverts(one)
        return loaded and all(self._graph.around(net) == self._graph.around(image) for net, image in ends)

    def _is_input(self, element: Element) -> bool:
        """Whether the gate of a transistor leads somewhere: a cascode may have a bias net without a source in sight."""
        gate = element.on("g")
        if gate not in self._led:
            ends = self._graph.on_net[gate]
            self._led[gate] = gate in self._graph.ports or any(role not in ("g", "b") for _, role in ends)
        return self._led[gate]

    def _is_regulated(self, element: Element) -> bool:
        """Whether another transistor, with its gate on the source of this one, drives its gate: a regulated cascode."""
        drivers = (self._graph.elements[index] for index, role in self._graph.on_net[element.on("g")] if role == "d")
        return any(driver.on("g") == element.on("s") for driver in drivers)


def _faces(one: Element, other: Element) -> bool:
    """Whether two transistors have separate gates and drains, and neither drives the other or is a diode."""
    drains, gates = (one.on("d"), other.on("d")), (one.on("g"), other.on("g"))
    if gates[0] == gates[1] or drains[0] == drains[1]:
        return False
    return not ((drains[0] == gates[0] and drains[1] == gates[1]) or drains[0] == gates[1] or drains[1] == gates[0])


def _sides(members: Sequence[Element], role: str) -> list[list[Element]]:
    """Return the two sides of an input pair whose transistors have one drain or gate (``role``) on each side.

    Nothing if they are none.
    """
    sides = [[each for each in members if (each.on(role) == members[0].on(role)) == first] for first in (True, False)]
    if not sides[1] or not all(_faces(*pair) for pair in product(*sides)):
        return []
    split = len({each.on(role) for each in sides[1]}) == 1 and len(sides[0]) != len(sides[1])
    return sides if len(members) == 2 or (split and isclose(*(sum(map(_width, side)) for side in sides))) else []


def _width(element: Element) -> float:
    """Return the width of all units of a transistor [m]."""
    return float(dict(element.key[3]).get("w", 0) * dict(element.key[3]).get("m", 1) * element.key[-1])


def _alike(one: Element, other: Element) -> bool:
    return one.key == other.key and one.body == other.body


def _named_alike(one: Element, other: Element) -> bool:
    """Whether two gates have names that differ in their polarity only: a hint where nothing else tells pairs apart."""
    return one.on("g").lower().translate(_POLARITY) == other.on("g").lower().translate(_POLARITY)


def mesh_mirrors(channels: Channels, taken: AbstractSet[str]) -> Iterator[tuple[Device, Device]]:
    r"""Yield diode and mesh transistor of a class-AB output, a mirror: two diodes in series bias the gate of the mesh.

    ``taken`` are the devices of other groups, which may grow while this runs.

    gate --.--- D1 (diode)    gate --- X         X and D1 are drawn alike, and so are Y and D2 up to their width
              |                        |
              D2 (diode)               |--- Y    (output transistor; its gate is the source of X)
    """
    for lower in channels.mos.values():
        net = lower.terminals
        if net["d"] != net["g"] or net["s"] not in channels.supplies or net["d"] in channels.supplies:
            continue
        for upper in channels.sources.get(net["d"], ()):
            gate = upper.terminals["g"]
            if upper.terminals["d"] != gate or upper.type != lower.type:
                continue
            on_gate = [each for each in channels.gates.get(gate, ()) if each is not upper]
            for mesh in on_gate if len(on_gate) == 1 else ():  # two of them are a pair of their own
                ends = {mesh.terminals[end] for end in ("sd" if mesh.both_ways else "s")} - {net["d"], gate}
                driven = any(_biased_alike(each, lower) for end in ends for each in channels.gates.get(end, ()))
                if driven and same_size(mesh, upper) and taken.isdisjoint((mesh.id, upper.id)):
                    yield upper, mesh


def _biased_alike(one: Device, other: Device) -> bool:
    """Whether two transistors have one type, model, length and source, so that one gate voltage biases both alike."""
    keys = ((d.type, d.model.lower(), gate_length(d), d.terminals["s"]) for d in (one, other))
    return next(keys) == next(keys)
