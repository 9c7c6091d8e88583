"""A canonical order of the devices and nets of a circuit, on which neither names nor the order of cards have influence.

What a device is (kind, model, sizes) and what hangs on a net give the first colours; refinement splits them. Where
vertices still share a colour, one of them is given a colour of its own; of all choices the one with the smallest list
of links counts, so that equal circuits get equal orders. Where several choices give the same list, an automorphism of
the circuit exchanges them, and only then does the name decide. Parts that only nets of a colour of their own connect,
such as the stages between two supplies, are ordered each by itself.

The search is that of McKay (Practical graph isomorphism, 1981) in its simplest form: what a known automorphism maps to
a choice that was tried is not tried again.

Colour refinement says which devices and nets of a circuit look alike from everywhere.
A circuit is a graph: vertices are nets and cells (devices), a link is a terminal. Vertices get colours, and a class of
one colour is split as long as its members have other links to some class (Weisfeiler and Leman 1968), smaller parts
first, so that the cost is that of the links times the logarithm of their number (Paige and Tarjan 1987). Neither the
classes nor their order depend on the order of the vertices.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

    from networkx.utils import UnionFind

    from layoutkit.circuit.circuit import Circuit, Device


MOST_VISITS = 3_000_000  # links looked at, some seconds; beyond that names decide among all that look alike
_DEEPEST = 100  # choices within choices
KEPT = "_canonical_order"  # where a circuit holds its order once it is found
_POLAR = frozenset({"capacitor"})  # its ends are alike for LVS, but one of them is the plate next to the substrate
Net = TypeVar("Net", int, str)
Links = list[list[tuple[int, int]]]
"""For each vertex the role and the other vertex of each of its links."""


@dataclass(frozen=True)
class CanonicalOrder:
    """The devices, nets and black boxes of a circuit, each in canonical order."""

    devices: tuple[str, ...]
    nets: tuple[str, ...]
    boxes: tuple[str, ...] = ()

    @cached_property
    def device_ranks(self) -> dict[str, int]:
        """Place of each device in the order."""
        return {name: rank for rank, name in enumerate(self.devices)}

    @cached_property
    def net_ranks(self) -> dict[str, int]:
        """Place of each net in the order."""
        return {name: rank for rank, name in enumerate(self.nets)}


def canonical_order(
    circuit: Circuit, *, with_instances: bool = False, before: Mapping[str, int] | None = None
) -> CanonicalOrder:
    """Return the devices and nets of a circuit in an order that does not depend on names or on the order of cards.

    Drain and source count alike, and so do the ends of a resistor. A port counts as one, by whatever name. The plain
    order is computed once for each ``Circuit`` object.

    Args:
        circuit: The circuit.
        with_instances: Whether devices of one instance of a subcircuit differ from those of another one or of none.
        before: Numbers of devices and nets that decide where an automorphism exchanges them; None for their names.
    """
    kept: CanonicalOrder | None = vars(circuit).get(KEPT)
    if kept is not None and not with_instances and before is None:
        return kept
    names, links, labels = _graph(circuit)
    if with_instances:
        _add_instances(circuit, links, names, labels)
    numbers = {label: number for number, label in enumerate(sorted(set(labels)))}
    given = before or {}
    wishes = sorted(range(len(names)), key=lambda at: (given.get(names[at], 0), natural(names[at]), at))
    wish = [0] * len(names)
    for number, vertex in enumerate(wishes):
        wish[vertex] = number
    order = _Search().order(links, [numbers[label] for label in labels], wish)
    nets, cells = len(circuit.nets), len(circuit.devices) + len(circuit.black_boxes)
    ends = (0, nets, nets + len(circuit.devices), nets + cells)
    of_nets, of_devices, of_boxes = (
        tuple(names[vertex] for vertex in order if first <= vertex < last) for first, last in pairwise(ends)
    )
    found = CanonicalOrder(of_devices, of_nets, of_boxes)
    if before is None and not (with_instances and circuit.subcircuits):
        vars(circuit)[KEPT] = found
    return found


def classes_alike(circuit: Circuit) -> tuple[dict[str, int], dict[str, int]]:
    """Return a number for each device and for each net: those that look alike from everywhere have the same number."""
    names, links, labels = _graph(circuit)
    numbers = {label: number for number, label in enumerate(sorted(set(labels)))}
    classes = ColourClasses(links, [numbers[label] for label in labels])
    classes.refine()
    nets = len(circuit.nets)
    return dict(zip(names[nets:], classes.start[nets:], strict=True)), dict(
        zip(names[:nets], classes.start[:nets], strict=True)
    )


def _graph(circuit: Circuit) -> tuple[list[str], Links, list[tuple[str, ...]]]:
    """Return the nets, devices and black boxes of a circuit: names, links, and what each is, whatever its name."""
    nets = list(circuit.nets)
    cells = [ComparedDevice("", _ends(device)) for device in circuit.devices]
    cells += [ComparedDevice("", tuple(box.nets.items())) for box in circuit.black_boxes]
    kinds = {"port": frozenset(circuit.ports)}
    if circuit.supplies is not None:
        kinds |= {kind: frozenset(getattr(circuit.supplies, kind) or ()) for kind in ("power", "ground")}
    labels: list[tuple[str, ...]] = [("net", *(kind for kind in kinds if net in kinds[kind])) for net in nets]
    labels += [("cell", *_label(device)) for device in circuit.devices]
    labels += [("box", box.cell.lower()) for box in circuit.black_boxes]
    names = [*nets, *(device.id for device in circuit.devices), *(box.id for box in circuit.black_boxes)]
    return names, links_of(cells, nets), labels


def _label(device: Device) -> tuple[str, ...]:
    """Return what a device is. Sizes count to nine digits: the same size may be written in several ways."""
    sizes = (f"{name}={value:.9g}" for name, value in sorted(device.params.items()))
    return (device.type, device.model.lower(), *sizes)


def roles_of(device: Device) -> dict[str, str]:
    """Return the role of each connected terminal; those of one role may be exchanged without a change of the layout."""
    roles = {} if device.type in _POLAR else device.kind.roles
    return {terminal: roles.get(terminal, terminal) for terminal in device.terminals}


def _ends(device: Device) -> tuple[tuple[str, str], ...]:
    roles = roles_of(device)
    return tuple((roles[terminal], net) for terminal, net in device.terminals.items())


def _add_instances(circuit: Circuit, links: Links, names: list[str], labels: list[tuple[str, ...]]) -> None:
    """Add a vertex for each instance of a subcircuit, linked to its devices and to the instance around it."""
    number = {device.id: len(circuit.nets) + index for index, device in enumerate(circuit.devices)}
    paths = {instance.path: len(links) + index for index, instance in enumerate(circuit.subcircuits)}
    inside, around = -1, -2  # roles
    links += [[] for _ in paths]
    for instance in circuit.subcircuits:
        vertex = paths[instance.path]
        names.append(instance.path)
        labels.append(("instance",))
        for device in instance.devices.keys() & number.keys():  # mapping leaves out taps
            links[vertex].append((inside, number[device]))
            links[number[device]].append((inside, vertex))
        if instance.parent:
            links[vertex].append((around, paths[instance.parent]))
            links[paths[instance.parent]].append((inside, vertex))


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """Return a key by which M2 comes before M10."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"([0-9]{1,18})", name))


class _Search:
    """Finds the order of a graph's vertices; ``visits`` is what it has cost so far."""

    def __init__(self) -> None:
        self.visits = 0

    def order(self, links: Links, colours: Sequence[int], wish: Sequence[int]) -> list[int]:
        """Return all vertices in canonical order.

        Args:
            links: The graph.
            colours: What each vertex is.
            wish: What decides among vertices that automorphisms exchange: the smallest first.
        """
        from networkx.utils import UnionFind

        classes = ColourClasses(links, colours)
        classes.refine()
        self.visits += classes.visits
        return self._ordered(classes, wish, UnionFind(), depth=0)

    def _ordered(
        self, classes: ColourClasses, wish: Sequence[int], same: UnionFind[int], depth: int | None
    ) -> list[int]:
        """Return the vertices of a graph in order, its refined classes first.

        Args:
            classes: The graph and its classes.
            wish: The number of each vertex's name.
            same: Receives which vertices automorphisms map to each other.
            depth: Choices that were made before; None where the first choice is taken without a search.
        """
        from networkx.utils import UnionFind

        found = []
        for vertices in _parts(classes):
            inner = {vertex: index for index, vertex in enumerate(vertices)}
            links = [
                [(role, inner[other]) for role, other in classes.links[vertex] if other in inner] for vertex in vertices
            ]
            colours = [classes.start[vertex] for vertex in vertices]
            own: UnionFind[int] = UnionFind()
            order = self._part_ordered(ColourClasses(links, colours), [wish[vertex] for vertex in vertices], own, depth)
            for vertex in list(own):
                same.union(vertices[own[vertex]], vertices[vertex])
            name = min(wish[vertex] for vertex in vertices)
            found.append((_picture(links, colours, order), name, [vertices[index] for index in order]))
        found.sort(key=lambda each: each[:2])
        for (one, _, first), (other, _, second) in pairwise(found):
            if one == other:
                _join(same, first, second)
        order, place = list(classes.order), dict[int, int]()
        for vertex in (vertex for _, _, vertices in found for vertex in vertices):
            begin = classes.start[vertex]
            order[place.setdefault(begin, begin)] = vertex
            place[begin] += 1
        return order

    def _part_ordered(
        self, classes: ColourClasses, wish: Sequence[int], same: UnionFind[int], depth: int | None
    ) -> list[int]:
        """Return the vertices of a connected part in order."""
        from networkx.utils import UnionFind

        chosen = min(classes.open_classes(), key=lambda first: (classes.size[first], first), default=None)
        if chosen is None:
            return classes.order
        if self.visits > MOST_VISITS or (depth or 0) > _DEEPEST:
            # names decide what refinement does not
            for first in range(len(classes.order)):
                while classes.size.get(first, 1) > 1:
                    classes.single_out([max(classes.members(first), key=wish.__getitem__)])
            return classes.order
        # What is singled out comes last in its class, so that the last name is tried first.
        candidates = sorted(classes.members(chosen), key=wish.__getitem__, reverse=True)
        if depth is None:
            return self._with(classes, candidates[0], wish, same, None)
        best, tried = self._with(classes, candidates[0], wish, same, depth + 1), candidates[:1]
        smallest = _picture(classes.links, classes.start, best)
        for vertex in candidates[1:]:
            if self.visits > MOST_VISITS:
                break
            if any(same[vertex] == same[other] for other in tried):
                continue
            order = self._with(classes, vertex, wish, UnionFind(), None)
            picture = _picture(classes.links, classes.start, order)
            if picture != smallest:  # not the image of the best one, unless by other choices
                order = self._with(classes, vertex, wish, same, depth + 1)
                picture = _picture(classes.links, classes.start, order)
            if picture == smallest:
                _join(same, best, order)
            elif picture < smallest:
                best, smallest = order, picture
            tried.append(vertex)
        return best

    def _with(
        self, classes: ColourClasses, vertex: int, wish: Sequence[int], same: UnionFind[int], depth: int | None
    ) -> list[int]:
        """Return the vertices of a connected part in order, after one of them is singled out."""
        split = classes.copy()
        split.single_out([vertex])
        self.visits += split.visits - classes.visits + 4 * len(split.order)
        return self._ordered(split, wish, same, depth)


def _join(same: UnionFind[int], ones: Sequence[int], others: Sequence[int]) -> None:
    """Record that an automorphism maps each vertex of ``ones`` to the one of ``others`` at the same place."""
    for pair in zip(ones, others, strict=True):
        same.union(*pair)


def _parts(classes: ColourClasses) -> list[list[int]]:
    """Return the connected parts of the vertices that share their class with others."""
    waiting = dict.fromkeys(vertex for first in classes.open_classes() for vertex in classes.members(first))
    parts = []
    while waiting:
        part = [waiting.popitem()[0]]
        for vertex in part:  # which grows
            for _, other in classes.links[vertex]:
                if other in waiting:
                    del waiting[other]
                    part.append(other)
        parts.append(part)
    return parts


def _picture(links: Links, colours: Sequence[int], order: Sequence[int]) -> list[int]:
    """Return the graph as numbers that are equal for two orders exactly if one is mapped to the other."""
    place = [0] * len(order)
    for number, vertex in enumerate(order):
        place[vertex] = number
    picture = [colours[vertex] for vertex in order]
    for vertex in order:
        picture.append(-1)
        for role, at in sorted((role, place[other]) for role, other in links[vertex]):
            picture += (role, at)
    return picture


@dataclass(frozen=True)
class ComparedDevice(Generic[Net]):
    """One device: what it is, and its nets; terminals of one role are interchangeable."""

    label: Hashable
    ends: tuple[tuple[str, Net], ...]


def links_of(cells: Sequence[ComparedDevice[Any]], nets: Iterable[int | str]) -> Links:
    """Return the links of a graph whose first vertices are ``nets`` and whose further ones are ``cells``."""
    number = {net: index for index, net in enumerate(nets)}
    roles = {role: index for index, role in enumerate(sorted({role for cell in cells for role, _ in cell.ends}))}
    links: Links = [[] for _ in range(len(number) + len(cells))]
    for vertex, cell in enumerate(cells, len(number)):
        for role, net in cell.ends:
            links[vertex].append((roles[role], number[net]))
            links[number[net]].append((roles[role], vertex))
    return links


class ColourClasses:
    """The vertices of a graph in classes, and the classes in order. A class is named by the place where it begins.

    Attributes:
        order: All vertices, class by class.
        start: The class of each vertex.
        size: The number of vertices of each class.
        visits: Links that were looked at.
    """

    def __init__(self, links: Links, colours: Sequence[int]) -> None:
        self.links = links
        self.order = sorted(range(len(links)), key=colours.__getitem__)
        self.place = [0] * len(links)
        self.start = [0] * len(links)
        self.size: dict[int, int] = Counter()
        self.visits = 0
        first = 0
        for place, vertex in enumerate(self.order):
            if colours[vertex] != colours[self.order[first]]:
                first = place
            self.place[vertex], self.start[vertex] = place, first
            self.size[first] += 1

    def copy(self) -> ColourClasses:
        """Return classes that can be split further without a change of these."""
        other = object.__new__(ColourClasses)
        other.links, other.visits = self.links, self.visits
        other.order, other.place, other.start = list(self.order), list(self.place), list(self.start)
        other.size = dict(self.size)
        return other

    def members(self, first: int) -> list[int]:
        """Return the vertices of a class."""
        return self.order[first : first + self.size[first]]

    def open_classes(self) -> Iterator[int]:
        """Yield the classes of several vertices, in order."""
        first = 0
        while first < len(self.order):
            size = self.size[first]
            if size > 1:
                yield first
            first += size

    def single_out(self, vertices: Sequence[int]) -> list[int]:
        """Make some vertices of one class a class of their own, and refine; return the classes that were split."""
        new = self._split(self.start[vertices[0]], [vertices])[-1]
        return [*self.refine([new]), new, self.start[self.order[new - 1]]]

    def refine(self, waiting: Iterable[int] | None = None) -> list[int]:
        """Split classes until the members of each have the same links to every other class.

        Args:
            waiting: Classes that were split off since the last time; None for all.

        Returns:
            The classes that were split or split off, perhaps more than once.
        """
        queue = list(self.size) if waiting is None else list(waiting)
        inside = set(queue)
        split: list[int] = []
        for first in queue:  # which grows
            inside.discard(first)
            for touched, parts in self._parts(self.members(first)):
                firsts = self._split(touched, parts)
                split += firsts
                largest = max(firsts, key=lambda each: (self.size[each], -each))
                new = [each for each in firsts if each not in inside and (touched in inside or each != largest)]
                inside.update(new)
                queue += new
        return split

    def _parts(self, splitter: Iterable[int]) -> list[tuple[int, list[list[int]]]]:
        """Return the classes that the links to some vertices split, each with its parts that have such links."""
        found: dict[int, list[int]] = {}
        for vertex in splitter:
            self.visits += len(self.links[vertex])
            for role, other in self.links[vertex]:
                if self.size[self.start[other]] > 1:
                    found.setdefault(other, []).append(role)
        touched: dict[int, dict[tuple[int, ...], list[int]]] = {}
        for other, roles in found.items():
            touched.setdefault(self.start[other], {}).setdefault(tuple(sorted(roles)), []).append(other)
        return [
            (first, [parts[roles] for roles in sorted(parts)])
            for first, parts in sorted(touched.items())
            if len(parts) > 1 or len(next(iter(parts.values()))) < self.size[first]
        ]

    def _split(self, first: int, parts: Sequence[Sequence[int]]) -> list[int]:
        """Make parts of a class classes of their own, after what is left of it; return all of these classes.

        The cost is that of the parts, not that of the class.
        """
        order, place = self.order, self.place
        end, firsts = first + self.size[first], []
        for part in reversed(parts):
            begin = end - len(part)
            for at, vertex in enumerate(part, begin):
                other, old = order[at], place[vertex]
                order[at], order[old] = vertex, other
                place[vertex], place[other] = at, old
                self.start[vertex] = begin
            self.size[begin] = len(part)
            firsts.append(begin)
            end = begin
        if end > first:
            self.size[first] = end - first
            firsts.append(first)
        return firsts[::-1]
