"""The maximum flow between two nodes of an undirected network, and a minimum cut: the edges that limit it.

Most of a mesh of metal is chains and ends of wires. A node one of whose edges is at least as strong as all its others
together joins the node at the other end of that edge: a minimum cut exists that does not separate them (Padberg and
Rinaldi, 1990). Dinic's algorithm (1970) solves the small network that is left.
"""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def minimum_cut(nodes: int, edges: Iterable[tuple[int, int, int]], source: int, sink: int) -> tuple[int, list[bool]]:
    """Return the maximum flow, and of each node whether a minimum cut leaves it on the side of the source.

    Args:
        nodes: Number of nodes.
        edges: Two nodes and the capacity between them, in both directions.
        source: Where the flow starts.
        sink: Where it ends.
    """
    network = _Network(nodes, edges)
    network.contract(source, sink)
    flow = network.flow(source, sink)
    reached = network.levels(source)
    return flow, [network.root(node) in reached for node in range(nodes)]


class _Network:
    """Nodes, each with what remains of the capacity to its neighbours, and the node that each was joined to."""

    def __init__(self, nodes: int, edges: Iterable[tuple[int, int, int]]) -> None:
        self.rooms: list[dict[int, int]] = [{} for _ in range(nodes)]
        self.parents = list(range(nodes))
        for one, other, room in edges:
            if one != other and room > 0:
                self.rooms[one][other] = self.rooms[one].get(other, 0) + room
                self.rooms[other][one] = self.rooms[other].get(one, 0) + room

    def root(self, node: int) -> int:
        """Return the node that ``node`` was joined to."""
        while self.parents[node] != node:
            self.parents[node] = self.parents[self.parents[node]]
            node = self.parents[node]
        return node

    def contract(self, source: int, sink: int) -> None:
        """Join nodes that some minimum cut does not separate."""
        totals = [sum(rooms.values()) for rooms in self.rooms]
        waiting = deque(range(len(self.rooms)))
        queued = [True] * len(self.rooms)
        while waiting:
            node = waiting.popleft()
            queued[node] = False
            rooms = self.rooms[node]
            if node in (source, sink) or self.parents[node] != node or not rooms:
                continue
            strongest = max(rooms, key=rooms.__getitem__)
            if 2 * rooms[strongest] < totals[node]:
                continue
            for near in self._join(node, strongest, totals):
                if not queued[near]:
                    queued[near] = True
                    waiting.append(near)

    def _join(self, node: int, kept: int, totals: list[int]) -> list[int]:
        """Join ``node`` to ``kept`` and return the nodes whose edges changed."""
        self.parents[node] = kept
        room = self.rooms[kept].pop(node)
        totals[kept] -= room
        changed = [kept]
        for other, own in self.rooms[node].items():
            if other == kept:
                continue
            del self.rooms[other][node]
            self.rooms[other][kept] = self.rooms[other].get(kept, 0) + own
            self.rooms[kept][other] = self.rooms[kept].get(other, 0) + own
            totals[kept] += own
            changed.append(other)
        self.rooms[node] = {}
        return changed

    def levels(self, source: int) -> dict[int, int]:
        """Return the nodes to which more can flow, with their distance from the source."""
        found, queue = {source: 0}, deque([source])
        while queue:
            node = queue.popleft()
            for other, room in self.rooms[node].items():
                if room > 0 and other not in found:
                    found[other] = found[node] + 1
                    queue.append(other)
        return found

    def flow(self, source: int, sink: int) -> int:
        """Return the maximum flow; what remains of the capacities is left in the network."""
        total = 0
        while True:
            levels = self.levels(source)
            if sink not in levels:
                return total
            ways = {node: list(self.rooms[node]) for node in levels}
            while path := self._path(source, sink, levels, ways):
                pushed = min(self.rooms[one][other] for one, other in pairwise(path))
                for one, other in pairwise(path):
                    self.rooms[one][other] -= pushed
                    self.rooms[other][one] += pushed
                total += pushed

    def _path(self, source: int, sink: int, levels: dict[int, int], ways: dict[int, list[int]]) -> list[int]:
        """Return a path that can carry more, each node one level beyond the last; empty if there is none.

        Neighbours that lead nowhere are removed from ``ways``.
        """
        path = [source]
        while path and path[-1] != sink:
            node = path[-1]
            open_ways = ways[node]
            while open_ways and not (
                self.rooms[node][open_ways[-1]] > 0 and levels.get(open_ways[-1]) == levels[node] + 1
            ):
                open_ways.pop()
            if open_ways:
                path.append(open_ways[-1])
            else:
                path.pop()
                if path:
                    ways[path[-1]].pop()
        return path
