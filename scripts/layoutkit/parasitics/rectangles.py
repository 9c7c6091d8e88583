"""Rectangles with nets as arrays: where they overlap, and how far their edges are from the next one.

A rectangle is a row ``left, bottom, right, top``. [dbu] All steps are sorts and sweeps, so that the time grows with the
number of rectangles and of the places where they meet.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import klayout.db as kdb
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Integers = NDArray[np.int64]
    Flags = NDArray[np.bool_]

_STEP = 50  # height of the steps that stand for a slanted side [dbu]
_MOST_STEPS = 200
DIRECTIONS = ("right", "left", "up", "down")


@dataclass(frozen=True)
class Rectangles:
    """Rectangles of one layer, disjoint, each with the net it belongs to.

    Attributes:
        boxes: (N, 4) left, bottom, right, top. [dbu]
        nets: (N,) number of the net.
    """

    boxes: Integers
    nets: Integers

    def __len__(self) -> int:
        return len(self.nets)

    @property
    def areas(self) -> Integers:
        """Area of each. [dbu2]"""
        boxes = self.boxes
        return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])

    def of(self, net: int) -> Rectangles:
        """Return those of one net."""
        return Rectangles(self.boxes[self.nets == net], self.nets[self.nets == net])

    def joined(self, other: Rectangles) -> Rectangles:
        """Return these and others, which must not overlap."""
        return Rectangles(np.concatenate([self.boxes, other.boxes]), np.concatenate([self.nets, other.nets]))

    def region(self) -> kdb.Region:
        """Return them as a merged region."""
        found = kdb.Region()
        for left, bottom, right, top in self.boxes.tolist():
            found.insert(kdb.Box(left, bottom, right, top))
        return found.merged()

    def cut(self, length: int) -> Rectangles:
        """Return them cut into pieces no longer than ``length``. [dbu]"""
        strips, owner = cut_across(self.boxes, length)
        turned, strip = cut_across(strips[:, [1, 0, 3, 2]], length)
        return Rectangles(turned[:, [1, 0, 3, 2]], self.nets[owner[strip]])


def none() -> Rectangles:
    """Return no rectangles."""
    return Rectangles(np.zeros((0, 4), np.int64), np.zeros(0, np.int64))


def rectangles_of(shapes: Mapping[int, kdb.Region]) -> tuple[Rectangles, bool]:
    """Return the rectangles of a layer, and whether steps stand for slanted sides.

    Args:
        shapes: Net to its shapes on the layer.
    """
    rows: list[tuple[int, int, int, int]] = []
    nets: list[int] = []
    slanted = False
    for net, region in sorted(shapes.items()):
        for part in region.merged().decompose_trapezoids_to_region().each():
            if part.is_box():
                box = part.bbox()
                found = [(box.left, box.bottom, box.right, box.top)]
            else:
                found, slanted = _steps(part), True
            rows += found
            nets += [net] * len(found)
    if not rows:
        return none(), slanted
    return Rectangles(np.array(rows, np.int64), np.array(nets, np.int64)), slanted


def _steps(trapezoid: kdb.Polygon) -> list[tuple[int, int, int, int]]:
    """Return steps of the area of a trapezoid whose lower and upper sides are horizontal."""
    box = trapezoid.bbox()
    points = [(point.x, point.y) for point in trapezoid.each_point_hull()]
    low = sorted(x for x, y in points if y == box.bottom)
    high = sorted(x for x, y in points if y == box.top)
    count = min(max(1, -(-box.height() // _STEP)), _MOST_STEPS)
    heights = [box.bottom + box.height() * step // count for step in range(count + 1)]
    found = []
    for below, above in pairwise(heights):
        share = ((below + above) / 2 - box.bottom) / box.height()
        left, right = (round(a + (b - a) * share) for a, b in ((low[0], high[0]), (low[-1], high[-1])))
        if left < right and below < above:
            found.append((left, below, right, above))
    return found


def cut_across(boxes: Integers, length: int) -> tuple[Integers, Integers]:
    """Return boxes cut into pieces that are no taller than ``length``, and the number of the box of each piece."""
    counts = np.maximum(1, -(-(boxes[:, 3] - boxes[:, 1]) // length))
    owner = np.repeat(np.arange(len(boxes)), counts)
    step, height = _counted(counts), (boxes[:, 3] - boxes[:, 1])[owner]
    cut: Integers = boxes[owner].copy()
    cut[:, 1] = boxes[owner, 1] + height * step // counts[owner]
    cut[:, 3] = boxes[owner, 1] + height * (step + 1) // counts[owner]
    return cut, owner


def _counted(counts: Integers) -> Integers:
    """Return 0, 1, ... for each of the counts, one after the other."""
    ends = np.cumsum(counts)
    return np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - counts, counts)


def turned_back(boxes: Integers, direction: int) -> Integers:
    """Return boxes of the frame in which ``DIRECTIONS[direction]`` points to the right as they are."""
    sign = -1 if direction in (1, 3) else 1
    left, right = boxes[:, 0] * sign, boxes[:, 2] * sign
    if sign < 0:
        left, right = right, left
    columns = (left, boxes[:, 1], right, boxes[:, 3])
    return np.stack(columns if direction < 2 else [columns[i] for i in (1, 0, 3, 2)], axis=1)


def overlaps(one: Integers, other: Integers, cell: int) -> tuple[Integers, Integers, Integers]:
    """Return the pairs of boxes that overlap: number in ``one``, number in ``other``, and the common box.

    Args:
        one: (N, 4) boxes. [dbu]
        other: (M, 4) boxes. [dbu]
        cell: Size of the squares by which candidates are found; a few boxes should fit into one. [dbu]
    """
    if not len(one) or not len(other):
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((0, 4), np.int64)
    origin = np.minimum(one[:, :2].min(axis=0), other[:, :2].min(axis=0))
    wide = int(max(np.max(one[:, 2]), np.max(other[:, 2])) - origin[0]) // cell + 2
    here, near = (_in_cells(boxes, origin, cell, wide) for boxes in (one, other))
    order = np.argsort(near[0], kind="stable")
    keys, numbers = near[0][order], near[1][order]
    first, last = np.searchsorted(keys, here[0], "left"), np.searchsorted(keys, here[0], "right")
    counts = last - first
    place = np.repeat(first, counts) + _counted(counts)
    a, b = np.repeat(here[1], counts), numbers[place]
    common = np.concatenate([np.maximum(one[a, :2], other[b, :2]), np.minimum(one[a, 2:], other[b, 2:])], axis=1)
    home = (common[:, 1] - origin[1]) // cell * wide + (common[:, 0] - origin[0]) // cell
    kept = (common[:, 0] < common[:, 2]) & (common[:, 1] < common[:, 3]) & (home == np.repeat(here[0], counts))
    return a[kept], b[kept], common[kept]


def _in_cells(boxes: Integers, origin: Integers, cell: int, wide: int) -> tuple[Integers, Integers]:
    """Return the squares that boxes touch, and the number of the box of each."""
    low = (boxes[:, :2] - origin) // cell
    spans = (boxes[:, 2:] - origin) // cell - low + 1
    counts = spans[:, 0] * spans[:, 1]
    owner, place = np.repeat(np.arange(len(boxes)), counts), _counted(counts)
    columns = low[owner, 0] + place % spans[owner, 0]
    rows = low[owner, 1] + place // spans[owner, 0]
    return rows * wide + columns, owner


def located(boxes: Integers, rectangles: Rectangles, cell: int) -> Integers:
    """Return the net of each box, which lies within the rectangles of one net. [dbu]"""
    corner = boxes[:, :2]
    found = np.zeros(len(boxes), np.int64)
    one, other, _ = overlaps(np.concatenate([corner, corner + 1], axis=1), rectangles.boxes, cell)
    found[one] = rectangles.nets[other]
    return found


@dataclass(frozen=True)
class Edges:
    """Vertical edges of a layer, in a frame in which those that look to the right may be asked.

    Attributes:
        place: (N,) x of each. [dbu]
        low: (N,) its lower end. [dbu]
        high: (N,) its upper end. [dbu]
        rightwards: (N,) whether the metal is on its left.
        nets: (N,) number of the net.
        counted: (N,) whether it has a capacitance; the others only shield.
    """

    place: Integers
    low: Integers
    high: Integers
    rightwards: Flags
    nets: Integers
    counted: Flags


def vertical_edges(region_of: Mapping[int, kdb.Region], direction: int, uncounted: kdb.Region | None) -> Edges:
    """Return the vertical edges of merged regions in the frame of ``direction`` (0 or 2).

    Args:
        region_of: Net to its merged shapes, without slanted sides.
        direction: 0 for vertical edges, 2 for horizontal ones, whose x and y are exchanged.
        uncounted: Where edges only shield; None for nowhere.
    """
    rows: list[tuple[int, int, int, int, bool]] = []
    for net, region in sorted(region_of.items()):
        edges = region.edges()
        parts = [(edges, True)] if uncounted is None else [(edges - uncounted, True), (edges & uncounted, False)]
        for some, counted in parts:
            for edge in some.each():
                if direction == 0 and edge.x1 == edge.x2:  # KLayout has the inside on the right of an edge
                    rows.append((edge.x1, edge.y1, edge.y2, net, counted))
                elif direction == 2 and edge.y1 == edge.y2:
                    rows.append((edge.y1, edge.x2, edge.x1, net, counted))
    found = np.array(rows, np.int64).reshape(-1, 5)
    start, end = found[:, 1], found[:, 2]
    return Edges(
        found[:, 0], np.minimum(start, end), np.maximum(start, end), start > end, found[:, 3], found[:, 4] == 1
    )


def facing(edges: Edges, reach: int) -> tuple[Integers, Integers, Integers, Integers]:
    """Return the pieces of edges with what each faces: its edge, the facing edge or -1, and its lower and upper end.

    The plane is cut into slabs at all ends of edges. In each slab the edges are sorted by place, so that what an edge
    faces is the next one. Pieces of edges that look to the left have what they face on their left.

    Args:
        edges: All edges of a layer that are parallel.
        reach: Facing edges farther away count as none. [dbu]
    """
    heights = np.unique(np.concatenate([edges.low, edges.high]))
    first = np.searchsorted(heights, edges.low)
    counts = np.searchsorted(heights, edges.high) - first
    edge = np.repeat(np.arange(len(counts)), counts)
    slab = first[edge] + _counted(counts)
    # Of edges at one place the one that ends metal comes first: there is no gap between the two.
    order = np.lexsort((~edges.rightwards[edge], edges.place[edge], slab))
    edge, slab = edge[order], slab[order]
    found = [_pieces(edges, edge, slab, reach, step) for step in (1, -1)]
    mine, other, slab = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.lexsort((slab, other, mine))
    mine, other, slab = mine[order], other[order], slab[order]
    starts = np.ones(len(mine), bool)
    starts[1:] = (mine[1:] != mine[:-1]) | (other[1:] != other[:-1]) | (slab[1:] != slab[:-1] + 1)
    begin = np.flatnonzero(starts)
    end = np.append(begin[1:], len(mine)) - 1
    return mine[begin], other[begin], heights[slab[begin]], heights[slab[end] + 1]


def _pieces(edges: Edges, edge: Integers, slab: Integers, reach: int, step: int) -> tuple[Integers, Integers, Integers]:
    """Return edge, facing edge or -1 and slab of the pieces that look to the right (step 1) or left (-1)."""
    asked = np.flatnonzero(edges.rightwards[edge] == (step > 0))
    there = asked + step
    inside = (there >= 0) & (there < len(edge))
    there = np.clip(there, 0, max(len(edge) - 1, 0))
    other = edge[there]
    near = inside & (slab[there] == slab[asked]) & (edges.rightwards[other] != (step > 0))
    near &= np.abs(edges.place[other] - edges.place[edge[asked]]) <= reach
    return edge[asked], np.where(near, other, -1), slab[asked]
