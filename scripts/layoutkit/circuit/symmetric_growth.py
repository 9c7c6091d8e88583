"""Growing a symmetric structure from one pair: which devices and nets are images of each other if two devices are.

A circuit is taken for a graph of elements (transistors, passives, diodes, unknown cells) and nets. Two elements assumed
to be images make the nets of their terminals images, and so the elements on these nets. Two elements, one on each of
two nets that are images, are images when they are drawn alike and each of their nets is the same net, known as the
image of the other, or not yet known. Where a net offers a choice, what agrees best is taken: nets known as images, then
shared gates, then other shared nets. What hangs on channels comes first, then what hangs on gates, then what only a
guess about gates supports. The search therefore passes a single-ended output, a mirror as load, or a buffer on one
side.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from layoutkit.circuit.symmetry_graph import CONTROLS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from layoutkit.circuit.symmetry_graph import Element, SymmetryGraph

_MOST_CHOICES = 6  # alike elements on one net; among more, only those that share another net are compared
MOST_GATES = 3
"""Over how many gates one after the other a structure is followed from its first pair; beyond that lies logic."""
_KNOWN, _SAME_GATE, _SAME, _GUESSED_GATE = 4, 3, 2, -1  # what a terminal says for two elements being images
_ATTACHED, _GATED, _GUESSED, _INPUTS = range(4)  # in this order the elements on two nets are looked at


class _Facing(NamedTuple):
    """What two elements would make of their nets: pairs of nets that face each other, and what speaks for them."""

    nets: tuple[tuple[str, str, str], ...]  # role, left, right
    score: int
    guessed_gate: bool


class Growth:
    """A structure that grows from one or several pairs.

    Args:
        graph: The graph of the circuit.
        amplifying: The input pairs, by numbers: over how many gates it is followed counts from each of them.
        free: Whether an element, by its number, may be part of it.
        known: Images of nets in other structures.
        exact: Whether only what looks alike from everywhere is taken for images, over any number of gates.

    Attributes:
        pairs: Numbers of elements that are images, in the order found; the left one first.
        centred: Numbers of the elements that are images of themselves.
        images: Net to its image; a net on the axis to itself.
        net_pairs: Nets that are images of each other, left first, in the order found.
        partner: Number of each element to that of its image; of one on the axis to itself.
        shared: Nets of gates on both sides.
        axis: Nets of other terminals on both sides.
        inner: Structures within one of its halves, with axes of their own.
    """

    def __init__(
        self,
        graph: SymmetryGraph,
        amplifying: AbstractSet[frozenset[int]],
        free: Callable[[int], bool] = lambda _: True,
        known: Mapping[str, str] | None = None,
        *,
        exact: bool = False,
    ) -> None:
        self._graph = graph
        self._amplifying = amplifying
        self._may_hold = free
        self._exact = exact
        self.pairs: list[tuple[int, int]] = []
        self.centred: list[int] = []
        self.images: dict[str, str] = {}
        self.net_pairs: list[tuple[str, str]] = []
        self._known = known or {}
        self.partner: dict[int, int] = {}
        self.shared: set[str] = set()  # gate nets that elements on both sides are on
        self.axis: list[str] = []
        self.inner: list[Growth] = []
        self._queue: list[tuple[int, int, str, str]] = []
        self._late: list[tuple[str, str]] = []
        self._depth: dict[str, int] = {}  # over how many gates a net was reached
        self._open: dict[tuple[str, str], None] = {}  # nets that offered a choice
        self._pushed = 0

    def grow(self, one: str, other: str) -> bool:
        """Take two elements for images and add all that follows; return whether they can be images."""
        a, b = self._graph.number.get(one, -1), self._graph.number.get(other, -1)
        if min(a, b) < 0 or not self._free(a) or not self._free(b):
            return False
        if (found := self._facing(a, b, first=True)) is None:
            return False
        now = [each for each in found.nets if each[0] not in CONTROLS or each[1] == each[2]]
        self._late += [(x, y) for role, x, y in found.nets if role in CONTROLS and x != y]
        self._commit(a, b, found._replace(nets=tuple(now)))
        while self._queue or self._late or (self._exact and self._decide()):
            if self._queue:
                self._visit(*heapq.heappop(self._queue))
            elif self._late:
                left, right = self._late.pop(0)
                if self._agree(left, right, gates=True) == 0 and left != right:
                    self._mirror(left, right, 0)
        return True

    def _decide(self) -> bool:
        """Pair two of several candidates and return whether there were any; ``is_exchange`` tells if they are right."""
        while self._open:
            nets = next(iter(self._open))
            ours, theirs = self._groups(*nets, _INPUTS), self._groups(*nets[::-1], _INPUTS)
            for a, b in ((a, b) for key, row in ours.items() for a in row for b in theirs.get(key, ()) if a != b):
                if (found := self._facing(a, b)) is not None:
                    self._commit(a, b, found)
                    return True
            del self._open[nets]
        return False

    @property
    def unmatched(self) -> int:
        """How many elements on nets that are images have no image."""
        nets = {net for pair in self.net_pairs for net in pair}
        places = {index for net in nets for index, _ in self._graph.on_net[net]}
        return len(places - self.partner.keys())

    @property
    def is_exchange(self) -> bool:
        """Whether to exchange the halves changes nothing, and they hold all that looks like one of their elements."""
        ends = ((self._graph.elements[a].ends, self._graph.elements[b].ends) for a, b in self.pairs)
        exact = all(sorted((r, self.images.get(net, net)) for r, net in one) == sorted(other) for one, other in ends)
        moved = Counter(self._graph.colours[-1][index] for index in self.sides)
        whole = all(len(self._graph.alike[colour]) == count for colour, count in moved.items())
        return exact and whole and not self.unmatched

    @cached_property
    def sides(self) -> dict[int, int]:
        """Number of each element that has an image to its side, 0 for left and 1 for right."""
        return {index: side for pair in self.pairs for side, index in enumerate(pair)}

    def holds(self, other: Growth) -> bool:
        """Whether another structure lies within one of its halves, about an axis of its own, as does its image."""
        sides = {self.sides.get(index) for index in other.sides}
        nets = {net for index in other.sides for net in self._graph.elements[index].channel}
        own = {net for net in nets if net not in self._graph.supplies}
        return len(sides) == 1 and None not in sides and own.isdisjoint(self.images.get(net, net) for net in own)

    def half_of(self, other: Growth) -> Callable[[int], bool]:
        """Return whether an element, by its number, is in the half that holds another structure."""
        side = self.sides[other.pairs[0][0]]
        return lambda index: self.sides.get(index) == side

    @property
    def score(self) -> float:
        """How much of the circuit it explains."""
        passive = sum(not self._graph.elements[a].on("g") for a, _ in self.pairs)
        worth = len(self.pairs) - 0.6 * passive + 0.1 * len(self.centred)
        return worth - 0.25 * self.unmatched - 0.5 * self._disagreeing - self._outputs_on_axis

    @property
    def _outputs_on_axis(self) -> int:
        """How many pairs of ports with the same on them are on the axis, where two outputs cannot both lie."""
        ports = (net for net in dict.fromkeys(self.axis) if net in self._graph.ports)
        alike = Counter(frozenset(self._graph.around(net).items()) for net in ports)
        return sum(count // 2 for count in alike.values())

    @property
    def _disagreeing(self) -> int:
        """How many pairs have gates on two nets that are no images of each other, as in a buffer."""
        ends = (zip(self._graph.elements[a].ends, self._graph.elements[b].ends, strict=True) for a, b in self.pairs)
        return sum(
            role in CONTROLS and x != y and self.images.get(x) != y for pair in ends for (role, x), (_, y) in pair
        )

    def from_inputs(self) -> tuple[tuple[str, str], ...]:
        """Return the pairs of nets, those at the gates of the first pair first."""
        one, other = (self._graph.elements[index].on("g") for index in self.pairs[0])
        first = [pair for pair in self.net_pairs if set(pair) == {one, other}]
        return (*first, *(pair for pair in self.net_pairs if pair not in first))

    def _free(self, index: int) -> bool:
        return index not in self.partner and self._may_hold(index)

    def _commit(self, a: int, b: int, found: _Facing, depth: int = 0) -> None:
        self.partner[a], self.partner[b] = b, a
        if frozenset((a, b)) in self._amplifying:
            depth = 0
        if a == b:
            self.centred.append(a)
        else:
            self.pairs.append((a, b))
        for role, left, right in found.nets:
            if left != right:
                self._mirror(left, right, depth + (role in CONTROLS))
            elif left not in self._graph.supplies and left not in self.images:
                if role in CONTROLS:
                    self.shared.add(left)
                else:
                    self.images[left] = left
                    self.axis.append(left)

    def _mirror(self, left: str, right: str, depth: int) -> None:
        """Take two nets for images, unless one is known, and look at what is on them."""
        if self._known.get(left) == right:
            return  # other structures follow it
        if left in self.images or right in self.images:
            nearer = self.images.get(left) == right and depth < self._depth.get(left, 0)  # a pair of its own begins
            if nearer:
                self._depth[left] = depth
            if nearer or (left, right) in self._open:
                self._open.pop((left, right), None)
                self._push(_ATTACHED, left, right)
            return
        self.images[left], self.images[right] = right, left
        self._depth[left] = depth
        if self._known.keys().isdisjoint((left, right)):
            self.net_pairs.append((left, right))
        self._push(_ATTACHED, left, right)

    def _push(self, level: int, left: str, right: str) -> None:
        self._pushed += 1
        heapq.heappush(self._queue, (level, self._pushed, left, right))

    def _agree(self, x: str, y: str, *, gates: bool = False) -> int | None:
        """Return what two nets say for two elements being images; None if they cannot be images.

        A net of gates on both sides is no image of another one by a guess about gates. It may be by channels: the gates
        of a mirror as load are on one output.
        """
        if x == y:
            return _SAME if self.images.get(x, x) == x else None
        if x in self._graph.supplies or y in self._graph.supplies:
            return None
        if x in self.images or y in self.images:
            return _KNOWN if self.images.get(x) == y else None
        if x in self._known or y in self._known:
            return 0 if self._known.get(x) == y else None
        return None if gates and (x in self.shared or y in self.shared) else 0

    def _facing(self, a: int, b: int, *, first: bool = False) -> _Facing | None:
        """Return how two elements face each other; None if they cannot be images.

        The ``first`` pair may have the gate of one on its own drain, as the input pair of a buffer has, or on a net
        that has another image in another structure: channels count. It may differ in width or model, too.
        """
        one, other = self._graph.elements[a], self._graph.elements[b]
        alike = one.key[:2] == other.key[:2] if first else one.key == other.key
        if self._exact:
            alike = self._graph.colours[-1][a] == self._graph.colours[-1][b]
        if not alike or bool(one.body) != bool(other.body) or self._graph.is_passed_beside(a, other.on("g")):
            return None
        if one.body and self._agree(one.body, other.body) is None:
            return None
        straight = self._judge(
            [(role, x, y) for (role, x), (_, y) in zip(one.ends, other.ends, strict=True)], first=first
        )
        ends = [n for n, (role, _) in enumerate(one.ends) if role in ("e", "d", "s")]
        if straight is not None or len(ends) != 2 or (one.ends[ends[0]][0] != "e" and not self._across(one)):
            return straight
        turned = list(other.ends)
        turned[ends[0]], turned[ends[1]] = turned[ends[1]], turned[ends[0]]
        return self._judge([(role, x, y) for (role, x), (_, y) in zip(one.ends, turned, strict=True)])

    def _across(self, element: Element) -> bool:
        ends = element.channel
        return len(ends) == 2 and ends[0] != ends[1] and self.images.get(ends[0]) == ends[1]

    def _judge(self, nets: list[tuple[str, str, str]], *, first: bool = False) -> _Facing | None:
        score, guessed = 0, False
        new: dict[str, str] = {}
        for role, x, y in sorted(nets, key=lambda each: first and each[0] in CONTROLS):
            if role in CONTROLS and x == y:  # a mirror as load has its gates on one side
                score += _SAME_GATE if self.images.get(x, x) == x else 0
                continue
            said = self._agree(x, y, gates=role in CONTROLS)
            if said is None:
                shared = role in "gbd" and not {x, y} & self.images.keys() and self._known.keys() & {x, y}
                if shared and (first or self._graph.are_inputs(role, x, y, nets, self.images)):
                    continue  # an input that two structures share, such as a reference voltage, or an output
                if role == "d" and self._stand_on_images(nets):
                    continue  # cascodes below a floating source of one side
                return None
            if said == 0:
                if new.get(x, y) != y or new.get(y, x) != x:
                    if first and role in CONTROLS:
                        continue
                    return None
                if role in CONTROLS and new.get(x) != y:
                    guessed = True
                    score += _GUESSED_GATE
                new[x], new[y] = y, x
            score += said
        return _Facing(tuple(nets), score, guessed)

    def _stand_on_images(self, nets: Sequence[tuple[str, str, str]]) -> bool:
        """Whether two elements share a gate net, and their sources are on two nets that are images of each other."""
        own = {role: (x, y) for role, x, y in nets}
        gates, sources = own.get("g", ("", " ")), own.get("s", ("", ""))
        return gates[0] == gates[1] and self.images.get(sources[0]) == sources[1] != sources[0]

    def _visit(self, level: int, _: int, left: str, right: str) -> None:
        ours, theirs = self._groups(left, right, level), self._groups(right, left, level)
        for key, group in ours.items():
            if key in theirs:
                self._match(level, key[0] in CONTROLS, group, theirs[key], (left, right))
        deep = self._depth[left] >= MOST_GATES and not self._exact
        if level < _INPUTS - 1 and not deep:
            self._push(level + 1, left, right)

    def _groups(self, net: str, image: str, level: int) -> dict[tuple[Any, ...], list[int]]:
        found: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        for index, role in self._graph.on_net[net]:
            late = role in CONTROLS or self._graph.is_capacitor(index)  # no current tells the ends of a capacitor
            if self._free(index) and (level > _ATTACHED or not late):
                element = self._graph.elements[index]
                across = role not in CONTROLS and set(element.channel) == {net, image}
                found["e" if across else role, element.key].append(index)
        return found

    def _match(self, level: int, gates: bool, ours: list[int], theirs: list[int], nets: tuple[str, str]) -> None:
        """Pair elements of one kind on two nets that are images: those that agree best, where that leaves no choice."""
        ours, theirs = ([i for i in side if self._free(i)] for side in (ours, theirs))
        both = set(ours) & set(theirs)
        depth = self._depth[nets[0]]
        across: dict[tuple[tuple[str, str], ...], list[int]] = defaultdict(list)
        for index in ours:
            if index in both:
                ends = self._graph.elements[index].ends
                rest = tuple(end for end in ends if end[0] in CONTROLS or end[1] not in nets)
                across[rest].append(index)
        for rest, row in across.items():
            facing = tuple((role, self.images.get(net, net)) for role, net in rest)
            for a, b in zip(row, row if facing == rest else across.get(facing, ()), strict=False):
                found = self._facing(a, b)
                if found is not None and self._free(a) and self._free(b):
                    self._commit(a, b, found, depth)
        ours, theirs = ([i for i in side if i not in both] for side in (ours, theirs))
        while ours and theirs:
            choices = self._choices(level, gates, ours, theirs, depth)
            before = len(self.pairs)
            for a, b in self._best(choices):
                found = self._facing(a, b) if self._free(a) and self._free(b) else None
                if found is not None:
                    self._commit(a, b, found, depth + gates)
            if len(self.pairs) == before:
                if choices:
                    self._open[nets] = None
                return
            ours, theirs = ([i for i in side if self._free(i)] for side in (ours, theirs))

    def _choices(
        self, level: int, gates: bool, ours: Sequence[int], theirs: Sequence[int], depth: int
    ) -> dict[tuple[int, int], tuple[int, int, int]]:
        """Return what may be images, with the score, how far it looks alike, and how many nets both lead to."""
        choices = {}
        for a, near in self._near(ours, theirs):
            for b in near:
                found = self._facing(a, b)
                if found is None or (found.guessed_gate and level < _GUESSED):
                    continue
                alike = self._graph.likeness(a, b)
                if (found.guessed_gate and alike < 2) or (gates and not self._continues(a, b, found, depth)):
                    continue
                both = self._meeting(a, b) if len(ours) == len(theirs) > 1 else 0
                choices[a, b] = (found.score, alike, both)
        return choices

    def _meeting(self, a: int, b: int) -> int:
        """Return to how many nets the elements next to two others lead on both sides, as in equal paths."""
        sides = []
        for index in (a, b):
            own = {net for _, net in self._graph.elements[index].ends if net not in self._graph.supplies}
            places = [self._graph.on_net[net] for net in own if net not in self.images]
            beside = {other for row in places if len(row) <= _MOST_CHOICES for other, _ in row}
            sides.append({net for other in beside for _, net in self._graph.elements[other].ends} - own)
        return sum(net not in self._graph.supplies and net not in self.images for net in sides[0] & sides[1])

    def _near(self, ours: Sequence[int], theirs: Sequence[int]) -> Iterator[tuple[int, Sequence[int]]]:
        """Yield each of our elements with those of theirs to compare it with.

        Among many, these are the ones on the same other net, or on its image, and not too many of them.
        """
        if max(len(ours), len(theirs)) <= _MOST_CHOICES:
            for a in ours:
                yield a, theirs
            return
        places: dict[tuple[str, str], list[int]] = defaultdict(list)
        for b in theirs:
            for end in self._graph.elements[b].ends:
                places[end].append(b)
        for a in ours:
            ends = [(role, self.images.get(net, net)) for role, net in self._graph.elements[a].ends]
            few = [places[end] for end in ends if len(places.get(end, ())) <= _MOST_CHOICES and end in places]
            yield a, list(dict.fromkeys(b for found in few for b in found))

    def _continues(self, a: int, b: int, found: _Facing, depth: int) -> bool:
        """Whether the nets that two gated elements drive are alike.

        Channels of one kind are on both, or on none; outputs of mirrors whose references are images may differ.
        Behind the first gate all is alike: there begins logic, in which equal gates are no images because some of
        their nets are.
        """
        outputs = not depth and self._have_references(found)
        for role, left, right in found.nets:
            if role in CONTROLS or left == right or left in self.images or outputs:
                continue
            if depth and self._graph.around(left) != self._graph.around(right):
                return False
            one, other = (self._kinds_on(net, (a, b)) for net in (left, right))
            if (one or other) and not one & other:
                return False
        return True

    def _have_references(self, found: _Facing) -> bool:
        """Whether two gates are on diodes that are images of each other."""
        gates = [(left, right) for role, left, right in found.nets if role in CONTROLS and left != right]
        diodes = (i for left, _ in gates for i, role in self._graph.on_net[left] if role == "d")
        pairs = ((i, self.partner.get(i, i)) for i in diodes if self._graph.elements[i].is_diode)
        return any(one != other and self._graph.elements[other].is_diode for one, other in pairs)

    def _kinds_on(self, net: str, but: tuple[int, int]) -> set[Any]:
        return {
            (role, self._graph.elements[index].key)
            for index, role in self._graph.on_net[net]
            if role not in CONTROLS and index not in but
        }

    def _best(self, choices: Mapping[tuple[int, int], tuple[int, int, int]]) -> Iterator[tuple[int, int]]:
        """Yield the choices that are better than any other of their two elements, or as good as parallel ones only."""
        rivals: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
        for pair, worth in choices.items():
            for place in (("left", pair[0]), ("right", pair[1])):
                known = rivals[place]
                if known and choices[known[0]] < worth:
                    known.clear()
                if not known or choices[known[0]] == worth:
                    known.append(pair)
        for pair in sorted(choices, key=lambda each: (*(-worth for worth in choices[each]), each)):
            best = (rivals["left", pair[0]], rivals["right", pair[1]])
            if all(pair in side and all(self._parallel(*pair, *rival) for rival in side) for side in best):
                yield pair

    def _parallel(self, a: int, b: int, c: int, d: int) -> bool:
        elements = self._graph.elements
        return elements[a].ends == elements[c].ends and elements[b].ends == elements[d].ends

    def centre(self, free: Callable[[int], bool]) -> None:
        """Add the devices on the axis: tails with their cascodes and switches, parallel units, a mirror reference.

        Args:
            free: Whether an element may be there, by its number.
        """
        front, seen = list(self.axis), set(self.axis)
        while front:
            for index, role in self._graph.on_net[front.pop()]:
                element = self._graph.elements[index]
                if role not in ("d", "e", "c") or index in self.partner or not free(index):
                    continue
                if any(self.images.get(each, each) != each for each in element.channel):
                    continue
                self.partner[index] = index
                self.centred.append(index)
                new = [net for net in element.channel if net not in self._graph.supplies and net not in seen]
                front += new
                seen.update(new)
        own = self.shared | set(self.axis) | set(self._graph.supplies.power) | set(self._graph.supplies.ground)
        for net in sorted(self.shared | seen):
            self._add_on_axis(net, own, free)

    def _add_on_axis(self, net: str, own: AbstractSet[str], free: Callable[[int], bool]) -> None:
        """Centre parallel units on a net of the axis, and the reference of a mirror whose outputs are all here.

        Args:
            net: The net.
            own: Nets that are images of themselves.
            free: Whether an element may be there.
        """
        for index, role in self._graph.on_net[net]:
            element = self._graph.elements[index]
            if index in self.partner or not free(index) or not all(each in own for _, each in element.ends):
                continue
            if len(self._graph.members.get(element.name, ())) > 1:
                self.partner[index] = index
                self.centred.append(index)
            elif role == "d" and element.on("g") == net:
                others = [other for other, end in self._graph.on_net[net] if end == "g" and other != index]
                if others and all(self.partner.get(other, other) != other for other in others):
                    self.partner[index] = index
                    self.centred.append(index)
