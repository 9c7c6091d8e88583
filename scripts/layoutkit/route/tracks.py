"""The track graph: coordinates, and which edges metal of others blocks for a wire of a given width."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from layoutkit.route.occupancy import Shape
    from layoutkit.route.routes import Gauge, Point, Rect, Via
    from layoutkit.route.routing_stack import Stack


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
