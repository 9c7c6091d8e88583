"""Networks of resistors: what is between the kept nodes once all others are eliminated.

A device terminal is fed through several contacts, each with its share of the current. Its voltage is the mean of
theirs, weighted with the shares. A star of large resistances that are in the ratio of the shares imposes them, and a
negative resistance behind it takes the large ones out again::

                   +--[ LARGE / share ]-- contact
    terminal --[ -LARGE ]-- star          ...
                   +--[ LARGE / share ]-- contact
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

LARGE_OHM = 1e6
_LEFT = 1e-9  # of the large resistance is not taken out, so that the conductances of the star have a sum
_NEGLIGIBLE = (3e-2, 1e-2, 3e-3, 1e-3, 1e-4, 1e-6)
"""Conductances below this part of the largest at their nodes are left out; the first value with a small error holds."""
_NO_OHM = 1e-3
_SMALL_PART = 1e-3
ERROR = 0.01
"""Relative error of a resistance up to which resistors are left out. [1]"""


class ResistorNetwork:
    """Conductances between numbered nodes. [S]"""

    def __init__(self) -> None:
        self.links: dict[int, dict[int, float]] = defaultdict(dict)

    def add(self, one: int, other: int, siemens: float) -> None:
        """Add a conductance between two nodes, which may be negative. [S]"""
        self.links[one], self.links[other]
        if one != other:
            total = self.links[one].get(other, 0.0) + siemens
            self.links[one][other] = self.links[other][one] = total

    def add_terminal(self, terminal: int, star: int, feeds: Mapping[int, float]) -> None:
        """Add a terminal, fed by nodes with these shares of its current, whose sum is 1. ``star`` is a new node."""
        for node, share in sorted(feeds.items()):
            self.add(star, node, share / LARGE_OHM)
        self.add(star, terminal, -1 / (LARGE_OHM * (1 - _LEFT)))

    def reached(self, start: int) -> set[int]:
        """Return the nodes that a path leads to from ``start``, itself included."""
        found, waiting = {start}, [start]
        while waiting:
            for near in self.links[waiting.pop()]:
                if near not in found:
                    found.add(near)
                    waiting.append(near)
        return found

    def eliminate(self, kept: Collection[int]) -> None:
        """Eliminate all nodes but ``kept``; what is between those stays the same.

        The star-mesh transformation (Rosen, 1924) replaces a node by resistors between its neighbours. Those with the
        fewest neighbours go first, so that the time grows with the number of nodes.
        """
        heap = [(len(near), node) for node, near in self.links.items() if node not in kept]
        heapify(heap)
        while heap:
            count, node = heappop(heap)
            near = self.links.get(node)
            if near is None or count != len(near):
                continue  # it has gone, or it has another number of neighbours now
            for other in self._without(node):
                if other not in kept:
                    heappush(heap, (len(self.links[other]), other))

    def _without(self, node: int) -> list[int]:
        near = self.links.pop(node)
        total = sum(near.values())
        neighbours = sorted(near)
        for one in neighbours:
            del self.links[one][node]
        for index, one in enumerate(neighbours):
            for other in neighbours[index + 1 :]:
                self.add(one, other, near[one] * near[other] / total)
        return neighbours

    def written(self, start: int) -> WrittenNetwork:
        """Return the positive resistances that matter, with the same resistances from ``start`` to all nodes.

        Negative conductances, which the mean voltage of several contacts may leave between terminals, are left out.
        That makes some resistances too small: what is missing is put in series with those nodes.
        """
        nodes = sorted(self.links.keys() - {start})
        exact = dict(zip(nodes, self.resistances(start, nodes), strict=True))
        largest = {node: max(map(abs, near.values()), default=0.0) for node, near in self.links.items()}
        every = [
            (one, other, siemens, siemens / max(largest[one], largest[other]))
            for one, near in sorted(self.links.items())
            for other, siemens in sorted(near.items())
            if one < other and siemens > 0
        ]
        tried = []
        for negligible in _NEGLIGIBLE:
            kept = [(one, other, siemens) for one, other, siemens, part in every if part > negligible]
            tried.append(_corrected(kept, start, exact))
            if tried[-1].error <= ERROR:
                break
        return min(tried, key=lambda each: each.error)

    def resistances(self, start: int, nodes: Sequence[int]) -> list[float]:
        """Return the resistance between ``start`` and each of ``nodes``, all of which it reaches. [ohm]"""
        return resistances(
            [(a, b, g) for a, near in self.links.items() for b, g in near.items() if a < b], start, nodes
        )


@dataclass(frozen=True)
class WrittenNetwork:
    """A network as a netlist has it.

    Attributes:
        resistors: Two nodes and what is between them. [ohm]
        inner: Number of each node that was added, and of the node that it lies in front of.
        error: Largest relative error of a resistance from the start. [1]
    """

    resistors: tuple[tuple[int, int, float], ...]
    inner: Mapping[int, int]
    error: float


def _corrected(
    conductances: Sequence[tuple[int, int, float]], start: int, exact: Mapping[int, float]
) -> WrittenNetwork:
    """Return a network with what is missing of its resistances in series with its nodes."""
    found = dict(zip(exact, resistances(conductances, start, list(exact)), strict=True))
    missing = {
        node: ohm - found[node] for node, ohm in exact.items() if ohm - found[node] > max(_NO_OHM, _SMALL_PART * ohm)
    }
    highest = max([start, *exact])
    numbers = {node: highest + place for place, node in enumerate(sorted(missing), 1)}
    resistors = [(numbers.get(a, a), numbers.get(b, b), 1 / siemens) for a, b, siemens in conductances]
    resistors += [(number, node, missing[node]) for node, number in numbers.items()]
    wrong = [abs(found[node] + missing.get(node, 0.0) - ohm) / ohm for node, ohm in exact.items() if ohm > 2 * _NO_OHM]
    return WrittenNetwork(tuple(resistors), {number: node for node, number in numbers.items()}, max(wrong, default=0.0))


def resistances(conductances: Iterable[tuple[int, int, float]], start: int, nodes: Sequence[int]) -> list[float]:
    """Return the resistance between ``start`` and each of ``nodes``; infinite where no path leads. [ohm]

    Args:
        conductances: Two nodes and what is between them. [S]
        start: Node to measure from.
        nodes: Nodes to measure to.
    """
    network = ResistorNetwork()
    for one, other, siemens in conductances:
        network.add(one, other, siemens)
    reached = network.reached(start)
    places = {node: place for place, node in enumerate(sorted(reached - {start}))}
    matrix = np.zeros((len(places), len(places)))
    for one, place in places.items():
        for other, siemens in network.links[one].items():
            matrix[place, place] += siemens
            if other != start:
                matrix[place, places[other]] -= siemens
    wanted = sorted({places[node] for node in nodes if node in places})
    columns = np.zeros((len(places), len(wanted)))
    for column, place in enumerate(wanted):
        columns[place, column] = 1.0
    voltages = np.linalg.solve(matrix, columns) if wanted else columns
    found = {place: float(voltages[place, column]) for column, place in enumerate(wanted)}
    return [0.0 if node == start else found[places[node]] if node in places else float("inf") for node in nodes]
