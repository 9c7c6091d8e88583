"""Colour refinement: which devices and nets of a circuit look alike from everywhere.

A circuit is a graph: vertices are nets and cells (devices), a link is a terminal. Vertices get colours, and a class of
one colour is split as long as its members have other links to some class (Weisfeiler and Leman 1968), smaller parts
first, so that the cost is that of the links times the logarithm of their number (Paige and Tarjan 1987). Neither the
classes nor their order depend on the order of the vertices.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

Net = TypeVar("Net", int, str)
Links = list[list[tuple[int, int]]]
"""For each vertex the role and the other vertex of each of its links."""


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
