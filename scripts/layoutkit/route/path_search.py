"""The inner loop of the router: A* over the track graph, in Python or compiled by numba from the same source.

All costs are integers, so both give the same path. Reference: Hart, Nilsson, Raphael 1968.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

    IntArray = npt.NDArray[np.int64]

COMPILE_FROM_NODES = 400_000
"""Below this many nodes the start of numba (0.5 s from its cache) costs more CPU than it saves."""

COMPILE_FROM_TOTAL = 20_000_000
"""The same for the nodes of all graphs searched in one run: a crowded board takes hundreds of searches."""

UNREACHED = 1 << 62

_compiled: dict[str, Any] = {}


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
        engine: ``python``, ``numba`` (Python where it is not installed), or ``auto``: numba on a large graph, and
            once the graphs searched so far add up.
    """

    def __init__(self, engine: str = "auto") -> None:
        self.engine = engine
        self.searched = 0

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
        size = costs.right.size
        self.searched += size
        pays = size >= COMPILE_FROM_NODES or self.searched >= COMPILE_FROM_TOTAL
        if self.engine == "numba" or (self.engine == "auto" and pays):
            found = _run_compiled(costs, guess, starts, targets)
            if found is not None:
                return found
        return _run_interpreted(costs, guess, starts, targets)


def _run_interpreted(costs: EdgeCosts, guess: IntArray, starts: Sequence[int], targets: Sequence[int]) -> list[int]:
    rows, columns = costs.right.shape[1:]
    size = costs.right.size
    is_target = bytearray(size)
    for node in targets:
        is_target[node] = 1
    parent = [-1] * size
    goal = _astar(
        costs.right.ravel().tolist(),
        costs.up.ravel().tolist(),
        costs.via.ravel().tolist(),
        guess.ravel().tolist(),
        list(starts),
        is_target,
        [UNREACHED] * size,
        parent,
        columns,
        rows * columns,
    )
    return _walk_back(parent, goal)


def _run_compiled(costs: EdgeCosts, guess: IntArray, starts: Sequence[int], targets: Sequence[int]) -> list[int] | None:
    """Return the path found by the compiled search, None where numba is not installed."""
    import numpy as np

    if "astar" not in _compiled:
        try:
            import numba
        except ImportError:
            _compiled["astar"] = None
        else:
            try:
                _compiled["astar"] = numba.njit(cache=True)(_astar)
            except RuntimeError:  # no writable place for the cache
                _compiled["astar"] = numba.njit(_astar)
    astar = _compiled["astar"]
    if astar is None:
        return None
    size = costs.right.size
    is_target = np.zeros(size, dtype=np.uint8)
    is_target[np.asarray(targets, dtype=np.int64)] = 1
    cost = np.full(size, UNREACHED, dtype=np.int64)
    parent = np.full(size, -1, dtype=np.int64)
    rows, columns = costs.right.shape[1:]
    goal = astar(
        costs.right.ravel(),
        costs.up.ravel(),
        costs.via.ravel(),
        guess.ravel(),
        np.asarray(starts, dtype=np.int64),
        is_target,
        cost,
        parent,
        columns,
        rows * columns,
    )
    return _walk_back(parent, int(goal))


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
    is_target: Any,
    cost: Any,
    parent: Any,
    columns: int,
    plane: int,
) -> int:
    """Fill ``cost`` and ``parent``; return the target reached, -1 when none can be."""
    heap = [(0, 0, 0)]
    heappop(heap)
    for start in starts:
        cost[start] = 0
        heappush(heap, (guess[start % plane], 0, start))
    while len(heap) > 0:
        _, negative, node = heappop(heap)
        here = -negative
        if here > cost[node]:
            continue
        if is_target[node]:
            return node
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
    return -1
