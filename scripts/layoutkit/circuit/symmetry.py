"""The symmetric structures of a circuit: which devices and nets are mirror images of each other about one axis.

Every pair that could be one (``input_pairs.py``) is taken for images in turn, and what follows is added
(``symmetric_growth.py``). The structure that explains the most is taken first; pairs that contradict it stay groups of
their own where they are one, but are no images. A pair that is only a candidate counts where its structure has no
element without image and something joins its sides: two equal inverters on two inputs are no pair. It goes first where
each of its sides holds several amplifiers, as one of two equal channels.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from layoutkit.circuit.canonical import canonical_order
from layoutkit.circuit.input_pairs import Candidates, seeds_of
from layoutkit.circuit.symmetric_growth import Growth
from layoutkit.circuit.symmetry_graph import SymmetryGraph, drawing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from layoutkit.circuit.circuit import Circuit, Device
    from layoutkit.circuit.input_pairs import Seed
    from layoutkit.circuit.supplies import Supplies

DUMMY_PAIR = "dummy_pair"
"""Kind of two equal transistors that are off for good, on two nets that are images: they lie with what they guard."""
MOST_WORK = 50
"""How often each element is looked at before mere candidates are left out: a circuit of many equal parts has many."""


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
        structures: The largest first; no device or net is in two pairs.
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


class _Search:
    def __init__(self, circuit: Circuit, supplies: Supplies) -> None:
        self.graph = SymmetryGraph(circuit, supplies)
        self._circuit = circuit
        self._accepted: list[Growth] = []
        self._taken: dict[int, int] = {}
        self._images: dict[str, str] = {}
        self._amplify: set[frozenset[str]] = set()
        self._amplifying: set[frozenset[int]] = set()

    def add(self, seeds: Sequence[Seed]) -> None:
        """Add the structures of the pairs: those of sure pairs before candidates, the one that explains most first."""
        self._amplify = {frozenset((seed.one, seed.other)) for seed in seeds if seed.amplifies}
        sure = [seed for seed in seeds if seed.amplifies and seed.sure and seed.alone]
        self._amplifying = {frozenset(self.graph.number[name] for name in (s.one, s.other)) for s in sure}
        tried: list[tuple[Seed, Growth]] = []
        rivals: dict[str, list[tuple[Seed, Growth]]] = defaultdict(list)
        seen: set[tuple[int, int]] = set()
        left = MOST_WORK * len(self.graph.elements)
        for seed in seeds:
            if left < 0 and not seed.sure:
                break
            numbers = [self.graph.number.get(name, -1) for name in (seed.one, seed.other)]
            if (min(numbers), max(numbers)) in seen or not (seed.sure or self._alike(*numbers)):
                continue
            growth = Growth(self.graph, self._amplifying, exact=not seed.sure)
            if growth.grow(seed.one, seed.other):
                if _holds(seed, growth):
                    tried.append((seed, growth))
                elif seed.sure:
                    rivals[self.graph.elements[numbers[0]].on("s")].append((seed, growth))
            left -= growth.work
            seen.update((min(pair), max(pair)) for pair in growth.pairs)
        tried += self._clear_ones(rivals, {self.graph.elements[growth.pairs[0][0]].on("s") for _, growth in tried})
        whole = self._wholes(tried)
        tried.sort(key=lambda each: (not each[0].sure and each[1] not in whole, each[0].last, -each[1].score))
        for seed, growth in tried:
            if self._clashes(growth):
                self._add_beside(seed)
            else:
                self._accept(growth)
        for seed in sure:  # those in structures that were cut, which another one of equal cells may have
            if not {self.graph.number[name] for name in (seed.one, seed.other)} & self._taken.keys():
                self._add_beside(seed)
        for growth in self._accepted:
            growth.centre(self._taken)
            self._take(growth)

    def _add_beside(self, seed: Seed) -> None:
        """Add what follows from a pair beside the structures that are known."""
        found = Growth(self.graph, self._amplifying, self._taken, self._images, exact=not seed.sure)
        if found.grow(seed.one, seed.other) and _holds(seed, found):
            self._accept(found)

    def _wholes(self, tried: Sequence[tuple[Seed, Growth]]) -> list[Growth]:
        """Return the structures of mere candidates each half of which holds several sure ones, each with its own axis.

        Those have no axis in common, while the halves have one: two equal channels of several amplifiers each.
        """
        sure = [{index for pair in growth.pairs for index in pair} for seed, growth in tried if seed.sure]
        of = {index: number for number, indices in enumerate(sure) for index in indices}
        found = []
        for seed, growth in tried:
            halves = None if seed.sure else growth.halves
            if halves is not None:
                numbers = {of[index] for half in halves for index in half if index in of}
                inside = [sum(sure[number] <= half for number in numbers) for half in halves]
                if min(inside) > 1 and sum(inside) == len(numbers):
                    found.append(growth)
        return found

    def _clear_ones(
        self, rivals: Mapping[str, list[tuple[Seed, Growth]]], known: AbstractSet[str]
    ) -> Iterator[tuple[Seed, Growth]]:
        """Yield of the ways to pair more than two above one tail the one that pairs all and explains clearly more.

        Feedback or a capacitor on one side leaves none without elements that lack an image.
        """
        for source, ways in rivals.items():
            ways.sort(key=lambda each: -each[1].score)
            best = ways[0][1]
            paired = {index for pair in best.pairs for index in pair}
            above = {index for index, role in self.graph.on_net[source] if role == "s"}
            clear = len(ways) > 1 and best.score >= ways[1][1].score + 1
            if clear and above <= paired and source not in known:
                yield ways[0]

    def _alike(self, one: int, other: int) -> bool:
        colours = self.graph.colours[-1]
        return min(one, other) >= 0 and colours[one] == colours[other]

    def _clashes(self, growth: Growth) -> bool:
        used = {index for pair in growth.pairs for index in pair} | set(growth.centred)
        nets = {net for pair in growth.net_pairs for net in pair}
        return bool(used & self._taken.keys() or nets & self._images.keys())

    def _accept(self, growth: Growth) -> None:
        self._accepted.append(growth)
        self._take(growth)
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
            rows = [
                tuple(self._about_middle(self.graph.members[names[index]]))
                for index in growth.centred
                if names[index] in order
            ]
            images += [pair for row in rows for pair in row if len(pair) == 2]
            images += [_turned(pair, side) for nets in growth.net_pairs for pair in self._dummies_on(*nets)]
            pairs = tuple((self._kind(self._circuit.device(a), self._circuit.device(b)), a, b) for a, b in images)
            centred = tuple(pair[0] for row in rows for pair in row if len(pair) == 1)
            nets = tuple(_turned(pair, side) for pair in growth.from_inputs())
            found.append(SymmetricStructure(pairs, centred, nets, growth.unmatched))
        return tuple(found)

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


def _holds(seed: Seed, growth: Growth) -> bool:
    """Whether what follows from a pair says that it is one."""
    return (seed.alone or not growth.unmatched) if seed.sure else growth.closed


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
