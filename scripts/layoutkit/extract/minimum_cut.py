"""The maximum flow between two nodes of an undirected network, and a minimum cut: the edges that limit it.

Most of a mesh of metal is chains and ends of wires. A node one of whose edges is at least as strong as all its others
together joins the node at the other end of that edge: a minimum cut exists that does not separate them (Padberg and
Rinaldi, 1990). Where only flows below some amount matter, nodes joined by an edge of at least that capacity are merged
first, and so are those joined by an edge above what source or sink can pass. The network that is left is solved by
networkx. All capacities are integers, and the nodes that the source still reaches are the same for every maximum flow.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def minimum_cut(
    nodes: int, edges: Sequence[tuple[int, int, int]], source: int, sink: int, enough: int | None = None
) -> tuple[int, list[bool]]:
    """Return the maximum flow, and for each node whether a minimum cut leaves it on the side of the source.

    Args:
        nodes: Number of nodes.
        edges: Two nodes and the capacity between them, in both directions.
        source: Where the flow starts.
        sink: Where it ends.
        enough: A flow that is large enough. If edges of at least this capacity join source and sink, it is returned as
            the flow, with all nodes on the side of the source. None: find the maximum flow.
    """
    import networkx as nx
    from networkx.algorithms.flow import boykov_kolmogorov

    network = _Network(nodes, edges, enough)
    if enough is not None and network.root(source) == network.root(sink):
        return enough, [True] * nodes
    source, sink = network.root(source), network.root(sink)
    network.contract(source, sink)
    most = min(sum(network.rooms[end].values()) for end in (source, sink))  # no minimum cut crosses an edge above it
    every = ((one, other, room) for one, rooms in enumerate(network.rooms) for other, room in rooms.items())
    left = _Network(nodes, [each for each in every if each[0] < each[1]], most + 1)
    source, sink = left.root(source), left.root(sink)
    residual: nx.DiGraph[int] = nx.DiGraph(inf=3 * most + 1)  # networkx: twice the flow is below it
    residual.add_nodes_from((source, sink))
    for one, rooms in enumerate(left.rooms):
        residual.add_edges_from((one, other, {"capacity": room, "flow": 0}) for other, room in rooms.items())
    boykov_kolmogorov(residual, source, sink, residual=residual)
    reached, _ = residual.graph["trees"]
    return int(residual.graph["flow_value"]), [left.root(network.root(node)) in reached for node in range(nodes)]


class _Network:
    """Nodes, each with the capacity to its neighbours, and the node that each was joined to."""

    def __init__(self, nodes: int, edges: Sequence[tuple[int, int, int]], enough: int | None) -> None:
        self.rooms: list[dict[int, int]] = [{} for _ in range(nodes)]
        self.parents = list(range(nodes))
        if enough is not None:
            for one, other, room in edges:
                if room >= enough:
                    self.parents[self.root(one)] = self.root(other)
        for start, end, room in edges:
            one, other = self.root(start), self.root(end)
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
