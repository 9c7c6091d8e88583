"""The maximum flow between two nodes of an undirected network, and a minimum cut: the edges that limit it.

Most of a mesh of metal is chains and ends of wires. A node one of whose edges is at least as strong as all its others
together joins the node at the other end of that edge: a minimum cut exists that does not separate them (Padberg and
Rinaldi, 1990). Dinic's algorithm (1970) solves the network that is left, in Python or compiled by numba from the same
source. All capacities are integers, and the nodes that the source still reaches are the same for every maximum flow.
"""

from __future__ import annotations

import sys
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from layoutkit.compiled import CompiledByOne, compiled

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

START_FROM_VISITS, COMPILE_FROM_VISITS = 1_000_000, 400_000
"""numba is used once this process has visited so many nodes in Python. They cost as much as importing numba (0.7 s CPU)
or, if it is imported already, as reading the compiled algorithm from its cache."""

_compiled: dict[str, Any] = {}
_visited = [0]


def minimum_cut(
    nodes: int, edges: Iterable[tuple[int, int, int]], source: int, sink: int, engine: str = "auto"
) -> tuple[int, list[bool]]:
    """Return the maximum flow, and for each node whether a minimum cut leaves it on the side of the source.

    Args:
        nodes: Number of nodes.
        edges: Two nodes and the capacity between them, in both directions.
        source: Where the flow starts.
        sink: Where it ends.
        engine: ``python``, ``numba`` (Python where it is not installed), or ``auto``: numba once it pays.
    """
    network = _Network(nodes, edges)
    network.contract(source, sink)
    roots = [network.root(node) for node in range(nodes)]
    numbers = {root: number for number, root in enumerate(sorted(set(roots)))}
    arcs = _arcs(network.rooms, numbers)
    flow = _solved(arcs, numbers[source], numbers[sink], engine)
    reached = _reached(arcs, numbers[source])
    return flow, [reached[numbers[root]] for root in roots]


class _Network:
    """Nodes, each with the capacity to its neighbours, and the node that each was joined to."""

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


class _Arcs(NamedTuple):
    """Both directions of every edge, those from one node after the other.

    Attributes:
        first: Where the arcs of each node begin, and where those of the last one end.
        heads: The node that each arc leads to.
        twins: The arc in the other direction.
        room: What remains of its capacity.
    """

    first: Any
    heads: Any
    twins: Any
    room: Any


def _arcs(rooms: Sequence[dict[int, int]], numbers: dict[int, int]) -> _Arcs:
    """Return the arcs between the nodes in ``numbers``, which maps each to its new number."""
    first, heads, room, places = [0], list[int](), list[int](), dict[tuple[int, int], int]()
    for root, number in numbers.items():
        for other, capacity in rooms[root].items():
            places[number, numbers[other]] = len(heads)
            heads.append(numbers[other])
            room.append(capacity)
        first.append(len(heads))
    return _Arcs(first, heads, [places[other, one] for one, other in places], room)


def _solved(arcs: _Arcs, source: int, sink: int, engine: str) -> int:
    """Return the maximum flow; ``arcs`` keeps what remains of the capacities."""
    nodes = len(arcs.first) - 1
    pays = "dinic" in _compiled or _visited[0] >= (COMPILE_FROM_VISITS if "numba" in sys.modules else START_FROM_VISITS)
    dinic = _numba_dinic() if engine == "numba" or (engine == "auto" and pays) else None
    if dinic is None:
        flow, rounds = _dinic(*arcs, source, sink, *([0] * nodes for _ in range(4)))
        _visited[0] += rounds * nodes
        return flow
    import numpy as np

    arrays = [np.asarray(each, dtype=np.int64) for each in arcs]
    flow, _ = dinic(*arrays, source, sink, *(np.zeros(nodes, dtype=np.int64) for _ in range(4)))
    arcs.room[:] = arrays[-1].tolist()
    return int(flow)


def _reached(arcs: _Arcs, source: int) -> list[bool]:
    """Return for each node whether more can flow to it from the source."""
    found = [False] * (len(arcs.first) - 1)
    found[source], queue = True, deque([source])
    while queue:
        node = queue.popleft()
        for arc in range(arcs.first[node], arcs.first[node + 1]):
            if arcs.room[arc] > 0 and not found[arcs.heads[arc]]:
                found[arcs.heads[arc]] = True
                queue.append(arcs.heads[arc])
    return found


def _numba_dinic() -> Any:
    """Return the algorithm compiled by numba, None where it is not installed."""
    if "dinic" not in _compiled:
        try:
            _compiled["dinic"] = CompiledByOne(compiled(_dinic))
        except ImportError:
            _compiled["dinic"] = None
    return _compiled["dinic"]


def _dinic(  # noqa: PLR0912, PLR0913, PLR0917 - one flat loop: numba compiles it, Python runs it
    first: Any,
    heads: Any,
    twins: Any,
    room: Any,
    source: int,
    sink: int,
    level: Any,
    place: Any,
    queue: Any,
    path: Any,
) -> tuple[int, int]:
    """Return the maximum flow, which is taken off ``room``, and the number of rounds.

    The last four arrays have one entry for each node.
    """
    total, nodes, rounds = 0, len(first) - 1, 0
    while True:
        rounds += 1
        for node in range(nodes):
            level[node] = -1
            place[node] = first[node]
        level[sink] = 0  # distances to the sink, so that only nodes that lead there are entered
        queue[0] = sink
        low, high = 0, 1
        while low < high and level[source] < 0:
            node = queue[low]
            low += 1
            for arc in range(first[node], first[node + 1]):
                other = heads[arc]
                if level[other] < 0 and room[twins[arc]] > 0:
                    level[other] = level[node] + 1
                    queue[high] = other
                    high += 1
        if level[source] < 0:
            return total, rounds
        depth, node = 0, source
        while True:
            if node == sink:
                pushed, full = room[path[0]], 0
                for step in range(1, depth):
                    pushed = min(pushed, room[path[step]])
                for step in range(depth - 1, -1, -1):
                    arc = path[step]
                    room[arc] -= pushed
                    room[twins[arc]] += pushed
                    if room[arc] == 0:
                        full = step
                total += pushed
                depth, node = full, heads[twins[path[full]]]
            elif place[node] == first[node + 1]:
                if node == source:
                    break
                level[node] = -1
                depth -= 1
                node = heads[twins[path[depth]]]
                place[node] += 1
            else:
                arc = place[node]
                if room[arc] > 0 and level[heads[arc]] == level[node] - 1:
                    path[depth] = arc
                    depth, node = depth + 1, heads[arc]
                else:
                    place[node] += 1
