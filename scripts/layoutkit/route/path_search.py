"""The inner loop of the router: A* over the track graph, in Python or compiled by numba from the same source.

All costs are integers, so both give the same path. Reference: Hart, Nilsson, Raphael 1968.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from layoutkit.compiled import CompiledByOne, compiled

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

    IntArray = npt.NDArray[np.int64]

COMPILE_FROM_VISITS = 150_000
"""Nodes visited in Python, in this process, from which numba is started: so many cost what its start does (0.7 s CPU
from its cache). So no run pays more than twice the least it could."""

UNREACHED = 1 << 62
NEXT_SEARCH = 1 << 42
"""Each search starts this much below the one before, which is more than a path can cost."""
SEARCHES = 1 << 18

_compiled: dict[str, Any] = {}
_visited = [0]


@dataclass(frozen=True)
class EdgeCosts:
    """Cost of the edge from each node to its right, upper and next-layer neighbour; -1 where there is none.

    Each array has the shape (layers, rows, columns) of int64.
    """

    right: IntArray
    up: IntArray
    via: IntArray


class Search:
    """Finds cheapest paths; compiles itself when that pays.

    Args:
        engine: ``python``, ``numba`` (Python where it is not installed), or ``auto``: numba once the searches of this
            process have cost as much as its start does, or where it is in use already.
    """

    def __init__(self, engine: str = "auto") -> None:
        self.engine = engine
        self._known: dict[bool, _Reached] = {}

    def shortest_path(
        self, costs: EdgeCosts, guess: IntArray, starts: Sequence[int], targets: Sequence[int]
    ) -> list[int]:
        """Return the cheapest path from any start to any target as node numbers; empty when there is none.

        Args:
            costs: Edge costs.
            guess: Lower bound of the cost from a (row, column) to the nearest target, whatever the layer.
            starts: Node numbers ``(layer * rows + row) * columns + column``.
            targets: Node numbers.
        """
        pays = "astar" in _compiled or "numba" in sys.modules or _visited[0] >= COMPILE_FROM_VISITS
        wanted = self.engine == "numba" or (self.engine == "auto" and pays)
        astar = _compiled_search() if wanted else None
        is_compiled = astar is not None
        size = costs.right.size
        reached = self._known.get(is_compiled)
        if reached is None or reached.size != size or reached.first <= -SEARCHES * NEXT_SEARCH:
            reached = self._known[is_compiled] = _Reached(size, compiled=is_compiled)
        rows, columns = costs.right.shape[1:]
        arrays: list[Any] = [array.reshape(-1) for array in (costs.right, costs.up, costs.via, guess)]
        if not is_compiled:
            arrays = [memoryview(array) for array in arrays]
        search: Any = astar or _astar
        goal, visited = search(*arrays, *reached.begin(starts, targets), columns, rows * columns)
        reached.end(targets)
        _visited[0] += 0 if is_compiled else visited
        return _walk_back(reached.parent, int(goal))


class _Reached:
    """The cost and predecessor of each node of a graph, kept from one search to the next.

    A search starts so far below the one before that what that one has left counts as unreached: nothing is cleared.
    """

    def __init__(self, size: int, *, compiled: bool) -> None:
        self.size, self.compiled = size, compiled
        self.first = 0
        self.is_target: Any = bytearray(size)
        self.cost: Any = [UNREACHED] * size
        self.parent: Any = [-1] * size
        if compiled:
            import numpy as np

            self.is_target = np.zeros(size, dtype=np.uint8)
            self.cost = np.full(size, UNREACHED, dtype=np.int64)
            self.parent = np.full(size, -1, dtype=np.int64)

    def begin(self, starts: Sequence[int], targets: Sequence[int]) -> tuple[Any, int, Any, Any, Any]:
        """Return starts, their cost, marks of the targets, costs and predecessors for the next search."""
        import numpy as np

        self.first -= NEXT_SEARCH
        for node in targets:
            self.is_target[node] = 1
        nodes = np.asarray(starts, dtype=np.int64) if self.compiled else starts
        return nodes, self.first, self.is_target, self.cost, self.parent

    def end(self, targets: Sequence[int]) -> None:
        """Forget the targets."""
        for node in targets:
            self.is_target[node] = 0


def _compiled_search() -> Any:
    """Return the compiled search, None where numba is not installed."""
    if "astar" not in _compiled:
        try:
            _compiled["astar"] = CompiledByOne(compiled(_astar))
        except ImportError:
            _compiled["astar"] = None
    return _compiled["astar"]


def _walk_back(parent: Any, goal: int) -> list[int]:
    path: list[int] = []
    while goal >= 0:
        path.append(goal)
        goal = int(parent[goal])
    path.reverse()
    return path


def _astar(  # noqa: PLR0913, PLR0917 - one flat loop: numba compiles it, Python runs it
    right: Any,
    up: Any,
    via: Any,
    guess: Any,
    starts: Any,
    first: int,
    is_target: Any,
    cost: Any,
    parent: Any,
    columns: int,
    plane: int,
) -> tuple[int, int]:
    """Fill ``cost`` and ``parent``; return the target reached, -1 when none can be, and the number of visits."""
    visited = 0
    heap = [(0, 0, 0)]
    heappop(heap)
    for start in starts:
        cost[start] = first
        parent[start] = -1
        heappush(heap, (first + guess[start % plane], -first, start))
    while len(heap) > 0:
        _, negative, node = heappop(heap)
        here = -negative
        if here > cost[node]:
            continue
        if is_target[node]:
            return node, visited
        visited += 1
        # A negative index wraps to the last column, row or layer, whose outward edge is always -1.
        for step, other in (
            (right[node], node + 1),
            (right[node - 1], node - 1),
            (up[node], node + columns),
            (up[node - columns], node - columns),
            (via[node], node + plane),
            (via[node - plane], node - plane),
        ):
            reached = here + step
            if step >= 0 and reached < cost[other]:
                cost[other] = reached
                parent[other] = node
                heappush(heap, (reached + guess[other % plane], -reached, other))
    return -1, visited
