"""The track graph: coordinates, and which edges metal of others blocks for a wire of a given width; A* over it.

All costs of the search are integers, so Python and numba, which compile the same source, give the same path.
Reference: Hart, Nilsson, Raphael 1968.
"""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from layoutkit.compiled import CompiledByOne, compiled

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    import numpy.typing as npt

    from layoutkit.rectangle import Rect, Shape
    from layoutkit.route.routes import Gauge, Point, Via
    from layoutkit.route.routing_stack import Stack

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
class Tracks:
    """The coordinates on which centre lines run, the same on every layer. [dbu]"""

    xs: tuple[int, ...]
    ys: tuple[int, ...]

    def node(self, level: int, column: int, row: int) -> int:
        """Return the number of a node."""
        return (level * len(self.ys) + row) * len(self.xs) + column

    def place(self, node: int) -> tuple[int, int, int]:
        """Return ``(level, column, row)`` of a node."""
        rest, column = divmod(node, len(self.xs))
        level, row = divmod(rest, len(self.ys))
        return level, column, row

    def point(self, node: int) -> Point:
        """Return the coordinates of a node."""
        _, column, row = self.place(node)
        return self.xs[column], self.ys[row]


def coordinates(first: int, last: int, required: Iterable[int], pitch: int, grid: int) -> tuple[int, ...]:
    """Return track coordinates from ``first`` to ``last``: every required one, and as many as fit between them.

    Tracks that are not required keep at least ``pitch`` to each other and to the required ones, so that whatever
    runs on them is legal beside its neighbours.
    """
    fixed = sorted({c for c in required if first <= c <= last})
    start, end = -(-first // grid) * grid, last // grid * grid
    if not fixed:
        middle = (start + end) // 2 // grid * grid
        fixed = [middle] if start <= end else []
    tracks: list[int] = []
    if fixed:
        tracks += range(fixed[0] - pitch, start - 1, -pitch)
        tracks += range(fixed[-1] + pitch, end + 1, pitch)
    for low, high in pairwise(fixed):
        parts = max(1, (high - low) // pitch)
        tracks += [low + (high - low) * part // parts // grid * grid for part in range(1, parts)]
    return tuple(sorted({*tracks, *fixed}))


class EdgeCounts:
    """How many shapes of other nets block each edge, for wires and vias of one gauge.

    ``right``, ``up``, ``via`` have the shape (levels, rows, columns) like the costs of the search.
    """

    def __init__(self, stack: Stack, tracks: Tracks, gauge: Gauge) -> None:
        import numpy as np

        self.stack, self.tracks = stack, tracks
        self.half = [stack.wire_width(level, gauge) // 2 for level in range(len(stack.conductors))]
        self.wide = [
            conductor.wide_width is not None and 2 * half > conductor.wide_width
            for conductor, half in zip(stack.conductors, self.half, strict=True)
        ]
        arrays = [stack.array_for(cut, gauge) for cut in range(len(stack.cuts))]
        self.pads = {
            (cut, level): stack.pad(cut, level, *array) for cut, array in enumerate(arrays) for level in (cut, cut + 1)
        }
        shape = (len(stack.conductors), len(tracks.ys), len(tracks.xs))
        self.right = np.zeros(shape, dtype=np.int32)
        self.up = np.zeros(shape, dtype=np.int32)
        self.via = np.zeros(shape, dtype=np.int32)

    def add_metal(self, level: int, shape: Shape, amount: int = 1) -> None:
        """Count metal on a level: against wires there, and against the pads of the vias that land there."""
        rect, space = shape.rect, self.stack.space(level, wide=shape.wide or self.wide[level])
        space = 0 if shape.keepout else space
        half = self.half[level]
        if self.stack.wired[level]:
            xs, ys = self.tracks.xs, self.tracks.ys
            across = _grown(rect, half + space, half + space)
            columns, rows = inside(xs, across[0], across[2]), inside(ys, across[1], across[3])
            self.right[level, rows, spanning(xs, across[0], across[2])] += amount
            self.up[level, spanning(ys, across[1], across[3]), columns] += amount
        pad_space = 0 if shape.keepout else self.stack.space(level, wide=shape.wide)
        for cut in (level - 1, level):
            if 0 <= cut < len(self.stack.cuts):
                half_width, half_height = self.pads[cut, level]
                self._add_via(cut, _grown(rect, half_width + pad_space, half_height + pad_space), amount)

    def add_cut(self, cut: int, rect: Rect, *, keepout: bool = False) -> None:
        """Count a cut, or a keepout of cuts, against the vias of its kind."""
        reach = self.stack.cuts[cut].size // 2 + (0 if keepout else self.stack.cuts[cut].space)
        self._add_via(cut, _grown(rect, reach, reach), 1)

    def add_array(self, cut: int, via: Via, amount: int = 1) -> None:
        """Count each cut of a via: in a row of cuts, all columns block the same rows of nodes."""
        import numpy as np

        reach = self.stack.cuts[cut].size // 2 + self.stack.cuts[cut].space
        rects = self.stack.cut_rects(cut, via.x, via.y, via.columns, via.rows)
        across = [inside(self.tracks.xs, rect[0] - reach, rect[2] + reach) for rect in rects[: via.columns]]
        up = [inside(self.tracks.ys, rect[1] - reach, rect[3] + reach) for rect in rects[:: via.columns]]
        left, right = min(part.start for part in across), max(part.stop for part in across)
        low, high = min(part.start for part in up), max(part.stop for part in up)
        if left >= right or low >= high:
            return
        columns, rows = np.zeros(right - left, dtype=np.int32), np.zeros(high - low, dtype=np.int32)
        for counts, parts, first in ((columns, across, left), (rows, up, low)):
            for part in parts:
                counts[part.start - first : max(part.stop - first, 0)] += 1
        self.via[cut, low:high, left:right] += amount * np.outer(rows, columns)

    def bound(self, area: Rect) -> None:
        """Count everything that would leave ``area``, and all wires so wide that other metal has to keep more space."""
        for level, half in enumerate(self.half):
            xs, ys = self.tracks.xs, self.tracks.ys
            if 2 * half > (self.stack.widest[level] or 2 * half):
                self.right[level] += 1
                self.up[level] += 1
            rows = [i for i, y in enumerate(ys) if y - half < area[1] or y + half > area[3]]
            columns = [i for i, x in enumerate(xs) if x - half < area[0] or x + half > area[2]]
            for array in (self.right, self.up):
                array[level, rows, :] += 1
                array[level, :, columns] += 1
            before = [i - 1 for i in columns if i]
            self.right[level, :, before] += 1
            self.up[level, [i - 1 for i in rows if i], :] += 1
        for cut in range(len(self.stack.cuts)):
            for level in (cut, cut + 1):
                half_width, half_height = self.pads[cut, level]
                xs, ys = self.tracks.xs, self.tracks.ys
                self.via[
                    cut, [i for i, y in enumerate(ys) if y - half_height < area[1] or y + half_height > area[3]], :
                ] += 1
                self.via[
                    cut, :, [i for i, x in enumerate(xs) if x - half_width < area[0] or x + half_width > area[2]]
                ] += 1

    def _add_via(self, cut: int, rect: Rect, amount: int) -> None:
        columns = inside(self.tracks.xs, rect[0], rect[2])
        self.via[cut, inside(self.tracks.ys, rect[1], rect[3]), columns] += amount


def _grown(rect: Rect, by_x: int, by_y: int) -> Rect:
    return rect[0] - by_x, rect[1] - by_y, rect[2] + by_x, rect[3] + by_y


def inside(coordinates_: Sequence[int], low: int, high: int) -> slice:
    """Return the coordinates strictly between ``low`` and ``high``."""
    return slice(bisect_right(coordinates_, low), max(bisect_left(coordinates_, high), 0))


def spanning(coordinates_: Sequence[int], low: int, high: int) -> slice:
    """Return the steps from one coordinate to the next that enter the open interval."""
    return slice(max(bisect_right(coordinates_, low) - 1, 0), bisect_left(coordinates_, high))


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
