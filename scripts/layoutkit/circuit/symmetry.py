"""The symmetric structures of a circuit: which devices and nets are mirror images of each other about one axis.

Each candidate pair (``input_pairs.py``) is assumed to be images in turn, and what follows from it is added
(``symmetric_growth.py``). The structure that explains the most is accepted first. A pair that contradicts it may still
be a matched group, but its devices are not images. One of two equal amplifiers, in one half of a structure, has its own
axis, and so has its image. A pair that is only a candidate counts if every element of its structure has an image and
something joins its sides: two equal inverters on two inputs are not a pair. It is accepted first if each of its sides
contains several amplifiers, as one of two equal channels does.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from layoutkit.circuit.canonical import canonical_order
from layoutkit.circuit.input_pairs import Candidates, seeds_of
from layoutkit.circuit.symmetric_growth import Growth
from layoutkit.circuit.symmetry_graph import CONTROLS, MOST_ALIKE, SymmetryGraph, drawing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from layoutkit.circuit.circuit import Circuit, Device
    from layoutkit.circuit.input_pairs import Seed
    from layoutkit.circuit.supplies import Supplies

_ANALOG = frozenset({"resistor", "capacitor", "mos_capacitor", "inductor", "npn", "pnp"})
DUMMY_PAIR = "dummy_pair"
"""Kind of two equal transistors that are off for good, on two nets that are images: they lie with what they guard."""
OF_CELLS = "images_of_cells"
"""Kind of two devices of equal parts with an axis each: the parts are images, the groups are within them."""


@dataclass(frozen=True)
class SymmetricStructure:
    """Devices and nets that are mirror images of each other about one axis.

    Attributes:
        pairs: Kind of each pair and its devices, the left one first, from the input on.
        centred: Devices that are images of themselves.
        net_pairs: Nets that are images of each other, left first.
        unmatched: How many devices on those nets have no image, as at a single-ended output.
    """

    pairs: tuple[tuple[str, str, str], ...]
    centred: tuple[str, ...]
    net_pairs: tuple[tuple[str, str], ...]
    unmatched: int


class Symmetry(NamedTuple):
    """The symmetry of a circuit.

    Attributes:
        structures: The largest first. No net is in two pairs, and a device only where it is one ``OF_CELLS``.
        inputs: The transistors that are the only two above one tail, or whose tails an element joins, also those that
            are no images; of equal ones in parallel the first. Several may stand for one of them.
        members: The first of equal devices in parallel to all of them.
    """

    structures: tuple[SymmetricStructure, ...]
    inputs: tuple[tuple[str, ...], ...]
    crossed: tuple[tuple[str, str], ...]
    members: Mapping[str, tuple[str, ...]]


def find_symmetry(circuit: Circuit, supplies: Supplies) -> Symmetry:
    """Return the symmetric structures of an oriented circuit, and its input pairs."""
    search = _Search(circuit, supplies)
    search.add(list(seeds_of(search.graph)))
    candidates = Candidates(search.graph)
    inputs = [tuple(each.name for each in members) for members in candidates.alone_above_a_tail()]
    joined = {(seed.one, seed.other) for seed in candidates.joined_at_sources()}
    counts = Counter(name for pair in joined for name in pair)
    inputs += sorted(pair for pair in joined if max(counts[name] for name in pair) == 1)
    crossed = tuple((seed.one, seed.other) for seed in candidates.cross_coupled())
    return Symmetry(search.structures(), tuple(inputs), crossed, search.graph.members)


class _Candidate(NamedTuple):
    """A structure, the pair that it holds, if any, and whether two halves are exchanged."""

    growth: Growth
    seed: Seed | None
    exchanged: bool = False


class _Search:
    def __init__(self, circuit: Circuit, supplies: Supplies) -> None:
        self.graph = SymmetryGraph(circuit, supplies)
        self._circuit = circuit
        self._accepted: list[Growth] = []
        self._taken: dict[int, int] = {}
        self._of: dict[int, list[Growth]] = defaultdict(list)  # structures of each element
        self._images: dict[str, str] = {}
        self._amplify: set[frozenset[str]] = set()
        self._amplifying: set[frozenset[int]] = set()

    def add(self, seeds: Sequence[Seed]) -> None:
        """Add the structures of the pairs, and of halves that can be exchanged; the one that explains most first."""
        self._amplify = {frozenset((seed.one, seed.other)) for seed in seeds if seed.amplifies}
        pairs = [seed for seed in seeds if seed.sure]
        inputs = [seed for seed in pairs if seed.amplifies and seed.alone]
        self._amplifying = {frozenset(self._numbers(seed)) for seed in inputs}
        tried: list[_Candidate] = []
        rivals: dict[str, list[_Candidate]] = defaultdict(list)
        seen: set[frozenset[int]] = set()
        for seed in pairs:
            if frozenset(self._numbers(seed)) in seen:
                continue
            growth = Growth(self.graph, self._amplifying)
            if growth.grow(seed.one, seed.other):
                sure = seed.alone or not growth.unmatched
                place = tried if sure else rivals[self.graph.elements[growth.pairs[0][0]].on("s")]
                place.append(_Candidate(growth, seed))
            seen.update(map(frozenset, growth.pairs))
        tried += self._clear_ones(rivals, {self.graph.elements[each.growth.pairs[0][0]].on("s") for each in tried})
        tried += self._exchanged(pairs)
        tried.sort(key=self._place)
        for growth, pair, exchanged in tried:
            if not self._clashes(growth):
                self._accept(growth)
            elif not self._add_nested(growth) and pair is not None and not exchanged:
                self._add_beside(pair)
        for seed in pairs:  # those in structures that were cut, which another one of equal cells may have
            if seed.alone and not {*self._numbers(seed)} & self._taken.keys():
                self._add_beside(seed)
        halves = {id(inner): outer.half_of(inner) for outer in self._accepted for inner in outer.inner}
        for growth in self._accepted:
            growth.centre(halves.get(id(growth), self._is_free))
            self._take(growth)

    def _place(self, candidate: _Candidate) -> tuple[float, ...]:
        """Return in which order structures are tried: first one that begins below two pairs on the same gates."""
        growth, seed, exchanged = candidate
        one, other = (self._tails.get(self.graph.elements[index].on("d")) for index in growth.pairs[0])
        mixes = one is not None and one == other and not exchanged
        return (2 if seed is None else seed.last, not mixes, -growth.score)

    @cached_property
    def _tails(self) -> dict[str, set[str]]:
        """The tails of the input pairs, with the nets at their gates."""
        pairs = [[self.graph.elements[index] for index in pair] for pair in self._amplifying if min(pair) >= 0]
        return {pair[0].on("s"): {each.on("g") for each in pair} for pair in pairs if pair[0].on("s")}

    def _numbers(self, seed: Seed) -> tuple[int, int]:
        return self.graph.number.get(seed.one, -1), self.graph.number.get(seed.other, -1)

    def _exchanged(self, seeds: Sequence[Seed]) -> Iterator[_Candidate]:
        """Yield the halves that can be exchanged, and that a pair has on both sides or that lie about an axis."""
        seen = set[int]()
        names = [element.name for element in self.graph.elements]
        for one, *others in self.graph.alike.values():
            if one in seen or len(others) >= MOST_ALIKE:
                continue
            found = [Growth(self.graph, self._amplifying, exact=True) for _ in others]
            found = [each for each, other in zip(found, others, strict=True) if each.grow(names[one], names[other])]
            seen.update(index for each in found for index in each.sides)
            found = [each for each in found if each.is_exchange]
            growth = min(found, key=lambda each: (self._clocks(each), -len(each.pairs)), default=None)
            if growth is None:
                continue
            paired = [s for s in seeds if not s.last and growth.partner.get(self._numbers(s)[0]) == self._numbers(s)[1]]
            if paired or _is_axis(self.graph, growth):
                yield _Candidate(growth, paired[0] if paired else None, exchanged=True)

    def _clocks(self, growth: Growth) -> int:
        """Return how many pairs of nets have only gates on them: the phases of switches rather stay what they are."""
        return sum(all(role in CONTROLS for _, role in self.graph.on_net[net]) for net, _ in growth.net_pairs)

    def _add_nested(self, growth: Growth) -> bool:
        """Add a structure if it and each accepted one that it overlaps are nested, and return whether it was added.

        One is nested in another if it lies within a half of it. The halves of the outer one are joined, or each
        contains several structures, as one of two equal channels does.
        """
        known = list(dict.fromkeys(each for index in growth.sides for each in self._of.get(index, ())))
        around = [each for each in known if each.holds(growth)]
        inside = [each for each in known if each not in around and growth.holds(each)]
        held = Counter(growth.sides[each.pairs[0][0]] for each in inside)
        joined = not growth.unmatched and (_are_joined_across(self.graph, growth) or min(held[0], held[1]) > 1)
        if len(around) + len(inside) < len(known) or ((inside or not around) and not joined):
            return False
        if around:
            growth = self._within(around, growth)
        pairs = [(each, growth) for each in around] + [(growth, self._within([growth], each)) for each in inside]
        for outer, inner in pairs:
            outer.inner.append(inner)
            own = {net for pair in inner.net_pairs for net in pair}
            for pair in [pair for pair in outer.net_pairs if not own.isdisjoint(pair)]:
                outer.net_pairs.remove(pair)
                self._forget(pair)
        growth.net_pairs = [pair for pair in growth.net_pairs if self._images.keys().isdisjoint(pair)]
        self._accept(growth)
        if inside:
            self._accepted.insert(min(map(self._accepted.index, growth.inner)), self._accepted.pop())
        return True

    def _within(self, around: Sequence[Growth], growth: Growth) -> Growth:
        """Return a structure that lies within a half of others, grown within that half alone.

        The nets at the gates of its first pair lead no further, and ports and what leads from part to part are images
        about the other axis.
        """
        first = [self.graph.elements[index] for index in growth.pairs[0]]
        gates = [each.on("g") for each in first]
        inputs = {net for each in first for net in each.channel}.isdisjoint(gates)
        known = dict(zip(gates, gates[::-1], strict=True)) if inputs else {}
        halves = [each.half_of(growth) for each in around]
        found = Growth(self.graph, self._amplifying, lambda index: all(half(index) for half in halves), known)
        found.grow(first[0].name, first[1].name)
        found.net_pairs = [pair for pair in found.net_pairs if self._leading.isdisjoint(pair)]
        if growth in self._accepted:
            self._accepted[self._accepted.index(growth)] = found
            for index in growth.sides:
                self._of[index] = [found if each is growth else each for each in self._of[index]]
            for pair in growth.net_pairs:
                self._forget(pair)
            self._images.update(image for pair in found.net_pairs for image in (pair, pair[::-1]))
        return found

    def _forget(self, pair: tuple[str, str]) -> None:
        if self._images.get(pair[0]) == pair[1]:
            del self._images[pair[0]], self._images[pair[1]]

    @cached_property
    def _leading(self) -> set[str]:
        """Ports, and the nets at the gates of input pairs."""
        gates = (self.graph.elements[index].on("g") for pair in self._amplifying for index in pair if index >= 0)
        return {*self.graph.ports, *gates}

    def _add_beside(self, seed: Seed) -> None:
        """Add what follows from a pair beside the structures that are known."""
        found = Growth(self.graph, self._amplifying, self._is_free, self._images)
        if found.grow(seed.one, seed.other) and (seed.alone or found.score > 0):
            self._accept(found)

    def _clear_ones(self, rivals: Mapping[str, list[_Candidate]], known: AbstractSet[str]) -> Iterator[_Candidate]:
        """Yield of the ways to pair more than two above one tail the one that pairs all and explains clearly more.

        Feedback or a capacitor on one side leaves none without elements that lack an image.
        """
        for source, ways in rivals.items():
            ways.sort(key=lambda each: -each.growth.score)
            best = ways[0].growth
            paired = {index for pair in best.pairs for index in pair}
            above = {index for index, role in self.graph.on_net[source] if role == "s"}
            clear = len(ways) > 1 and best.score >= ways[1].growth.score + 1
            if clear and above <= paired and source not in known:
                yield ways[0]

    def _clashes(self, growth: Growth) -> bool:
        used = (growth.sides, growth.centred, *growth.net_pairs)
        return any(each in self._taken or each in self._images for names in used for each in names)

    def _is_free(self, index: int) -> bool:
        return index not in self._taken

    def _accept(self, growth: Growth) -> None:
        self._accepted.append(growth)
        self._take(growth)
        for index in growth.sides:
            self._of[index].append(growth)
        for left, right in growth.net_pairs:
            self._images[left], self._images[right] = right, left

    def _take(self, growth: Growth) -> None:
        for one, other in growth.pairs:
            self._taken[one], self._taken[other] = other, one
        self._taken.update({index: index for index in growth.centred})

    def structures(self) -> tuple[SymmetricStructure, ...]:
        """Return what was accepted."""
        names = [element.name for element in self.graph.elements]
        order = {device.id: number for number, device in enumerate(self._circuit.devices)}
        found = []
        for growth in self._accepted:
            side = self._right_first(growth, [order.get(names[index], 0) for index in growth.pairs[0]])
            images = [
                _turned(pair, side)
                for a, b in growth.pairs
                if names[a] in order and self._same_form(a, b)
                for pair in zip(self.graph.members[names[a]], self.graph.members[names[b]], strict=True)
            ]
            own = {name for index in self._of_cells(growth) for name in self.graph.members.get(names[index], ())}
            rows = [
                tuple(self._about_middle(self.graph.members[names[index]]))
                for index in growth.centred
                if names[index] in order
            ]
            images += [pair for row in rows for pair in row if len(pair) == 2]
            images += [_turned(pair, side) for nets in growth.net_pairs for pair in self._dummies_on(*nets)]
            pairs = tuple(
                (OF_CELLS if a in own else self._kind(*map(self._circuit.device, (a, b))), a, b) for a, b in images
            )
            centred = tuple(pair[0] for row in rows for pair in row if len(pair) == 1)
            nets = tuple(_turned(pair, side) for pair in growth.from_inputs())
            found.append(SymmetricStructure(pairs, centred, nets, growth.unmatched))
        return tuple(found)

    def _of_cells(self, growth: Growth) -> Iterator[int]:
        """Yield the elements of a structure that lie on axes within its halves, and the diodes that bias these."""
        for inner in growth.inner:
            yield from inner.partner
            gates = {self.graph.elements[index].on("g") for index in inner.centred}
            yield from (index for net in gates | inner.shared for index in self._diodes.get(net, ()))

    @cached_property
    def _diodes(self) -> dict[str, list[int]]:
        """Net to the diodes on it."""
        found: dict[str, list[int]] = defaultdict(list)
        for index, element in enumerate(self.graph.elements):
            for _, net in element.ends if element.is_diode else ():
                found[net].append(index)
        return found

    @cached_property
    def _dummies(self) -> dict[str, dict[object, list[str]]]:
        """Net to the transistors that are off for good and have one end on it, by what they are drawn as."""
        found: dict[str, dict[object, list[str]]] = defaultdict(lambda: defaultdict(list))
        for device in map(self._circuit.device, canonical_order(self._circuit).devices):
            net = off_end(device)
            if net is not None:
                found[net][drawing(device), device.terminals["b"]].append(device.id)
        return found

    def _dummies_on(self, left: str, right: str) -> Iterator[tuple[str, str]]:
        """Yield the pairs of equal dummies on two nets."""
        for drawn, names in self._dummies.get(left, {}).items():
            yield from zip(names, self._dummies.get(right, {}).get(drawn, ()), strict=False)

    def _same_form(self, one: int, other: int) -> bool:
        """Whether two elements agree in all but their model; an input pair may have two widths."""
        keys = [self.graph.elements[index].key for index in (one, other)]
        return keys[0][3:] == keys[1][3:]

    def _about_middle(self, row: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """Yield the pairs of parallel units on the axis about their middle, the outer ones first; the middle one alone.

        More than two transistors are the fingers of one, which is drawn whole.
        """
        if len(row) > 2 and self._circuit.device(row[0]).is_mos:
            yield from ((name,) for name in row)
            return
        for place in range((len(row) + 1) // 2):
            one, other = row[place], row[-1 - place]
            yield (one,) if one == other else (one, other)

    def _right_first(self, growth: Growth, places: Sequence[int]) -> bool:
        """Whether the first half is the right one: that with the outputs of mirrors, or else the one listed later."""
        halves = zip(*growth.pairs, strict=True)
        diodes = [sum(self.graph.elements[index].is_diode for index in half) for half in halves]
        return diodes[0] < diodes[1] if diodes[0] != diodes[1] else places[0] > places[1]

    def _kind(self, one: Device, other: Device) -> str:
        """Return the type of the module that two devices are which are images of each other."""
        if not one.is_mos:
            return f"{one.type.removeprefix('mos_')}_pair"
        if off_end(one) is not None:
            return DUMMY_PAIR
        a, b = one.terminals, other.terminals
        if a["d"] == a["s"]:
            return "symmetric_pair"
        if a["g"] == b["g"] and self.graph.is_switch(one.id):
            return "switch_pair"
        if a["g"] == b["g"]:
            if a["s"] == b["s"] or a["d"] == b["d"]:
                return "load_pair"
            return "switch_pair" if self.graph.is_clock(a["g"]) else "cascode_pair"
        if all(x["g"] == y["d"] or x["g"] in self.graph.past_passives(y["d"]) for x, y in ((a, b), (b, a))):
            return "cross_coupled_pair"
        if a["d"] == a["g"] and b["d"] == b["g"]:
            return "load_pair"
        if a["d"] != b["d"] and b["g"] in self._above(one) and a["g"] in self._above(other):
            return "cross_coupled_pair"
        above_tail = a["s"] == b["s"] and a["s"] not in self.graph.supplies
        amplifies = above_tail or frozenset((one.id, other.id)) in self._amplify
        return "differential_pair" if amplifies and a["d"] != b["d"] else "symmetric_pair"

    def _above(self, device: Device) -> set[str]:
        """Return the drains of the transistors of its type whose sources are on the drain of a transistor."""
        places = self.graph.on_net.get(device.terminals["d"], ())
        tops = (self.graph.elements[index] for index, role in places if role == "s")
        return {top.on("d") for top in tops if top.key[1] == device.type}


def _turned(pair: tuple[str, str], turn: bool) -> tuple[str, str]:
    return (pair[1], pair[0]) if turn else pair


def _is_axis(graph: SymmetryGraph, halves: Growth) -> bool:
    """Whether two halves that are exchanged lie on both sides of an axis: they are joined, and are not logic.

    Both lead on to two ports, and a net on which their currents or gates meet joins them: two of many current sources
    on one bias are no images. What is across them joins them in any case.
    """
    moved = [graph.elements[index] for pair in halves.pairs for index in pair]
    passive = not any(element.on(role) for element in moved for role in CONTROLS)
    alone = passive and len(graph.elements) == 2
    if (len(halves.pairs) + len(halves.centred) == 1 and not alone) or not halves.net_pairs:
        return False
    driven = any(halves.images.get(gate, gate) != gate for gate in (element.on("g") for element in moved))
    ports = [pair for pair in halves.net_pairs if graph.ports.issuperset(pair)]
    if _are_joined_across(graph, halves):
        return (driven and _is_analog(graph, halves)) or (bool(ports) and not driven)
    through = any(role not in CONTROLS for left, _ in ports for _, role in graph.on_net[left])
    if not through or not _is_analog(graph, halves):
        return False
    if passive:  # the middle of a string joins no halves
        return 2 * len(halves.partner) > len(graph.elements) and graph.ports.issuperset(halves.axis)
    return any(_meet(graph, halves, net) for net in (*halves.shared, *halves.axis))


def _are_joined_across(graph: SymmetryGraph, halves: Growth) -> bool:
    """Whether an element is across two halves, or elements of both are on one of two nets that are images."""
    crossing = (len({halves.sides.get(index) for index, _ in graph.on_net[left]}) > 1 for left, _ in halves.net_pairs)
    return bool(halves.centred) or any(crossing)


def _is_analog(graph: SymmetryGraph, halves: Growth) -> bool:
    """Whether something in two halves is no logic: a passive device, a bipolar transistor, a diode, or a source."""
    for index in halves.partner:
        element = graph.elements[index]
        gate = element.on("g")
        if (not gate and element.key[1] in _ANALOG) or element.is_diode:
            return True
        types = {graph.elements[other].key[1] for other, role in graph.on_net.get(gate, ()) if role == "g"}
        biased = gate and halves.images.get(gate, gate) == gate and len(types) == 1
        if biased and not graph.is_switch(element.name) and any(net in graph.supplies for net in element.channel):
            return True
    return False


def _meet(graph: SymmetryGraph, halves: Growth, net: str) -> bool:
    """Whether, on a net of both halves, no element without an image looks like one that has an image.

    Elements that only sense a voltage and the reference of a mirror may. Where only gates of a small part of the
    circuit meet, nothing else is on their net.
    """
    currents = net in halves.axis
    ours, rest = set(), set()
    for index, role in graph.on_net[net]:
        element = graph.elements[index]
        if index in halves.partner:
            ours.add((role, element.key[1]))
        elif not (role in CONTROLS if currents else element.is_diode):
            rest.add((role, element.key[1]))
    return not rest or (ours.isdisjoint(rest) and (currents or 2 * len(halves.partner) > len(graph.elements)))


def is_capacitor(device: Device) -> bool:
    """Return whether a transistor is a capacitor to the net of its drain and source: only its gate carries a signal."""
    return device.is_mos and device.terminals["d"] == device.terminals["s"] != device.terminals["g"]


def is_tied(device: Device) -> bool:
    """Return whether a transistor is a dummy with all terminals on one net."""
    return device.is_mos and len(set(device.terminals.values())) == 1


def off_end(device: Device) -> str | None:
    """Return the net of an end of a dummy of which all else is on the net of its body; None for other devices."""
    if not device.is_mos:
        return None
    net = device.terminals
    ends = [net["d"], net["s"]]
    if net["g"] != net["b"] or net["b"] not in ends:
        return None
    return ends[ends[0] == net["b"]]


def decouples(device: Device, rails: AbstractSet[str]) -> bool:
    """Return whether a device is a capacitor between two of the supplies ``rails``."""
    if is_capacitor(device):
        return rails >= set(device.terminals.values())
    ends = {device.terminals[end] for end in device.kind.ends if end in device.terminals}
    return "capacitor" in device.type and len(ends) == 2 and ends <= rails


def facing_nets(first: Device, second: Device, images: Mapping[str, str] | None = None) -> list[tuple[str, str]]:
    """Return the nets of two equal devices that face each other: those of drains, sources and gates, or of both ends.

    The ends of resistors and capacitors face each other as they must so that a net faces itself, or its mirror image in
    ``images``.
    """
    one, other = ([device.terminals[t] for t in _terminals(device)] for device in (first, second))
    if first.kind.exchangeable and not first.is_mos:
        known = [(images or {}).get(net, net) for net in one]
        straight, crossed = (sum(map(str.__eq__, known, nets)) for nets in (other, other[::-1]))
        other = other[::-1] if crossed > straight else other
    return list(zip(one, other, strict=True))


def _terminals(device: Device) -> tuple[str, ...]:
    return ("d", "s", "g") if device.is_mos else device.kind.ends
