"""A lower bound of the wire length that nets need, to judge the wires that were drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import klayout.db as kdb

    from layoutkit.route.routes import NetRequest, Rect, Terminal


def length_bound(net: NetRequest, reach: int) -> int:
    """Return a length that the wires of ``net`` cannot be shorter than. [dbu]

    A wire's middle must come as near as ``reach``, half its width, to the box around each group of joined terminals.
    """
    parts: list[list[Terminal]] = []
    for terminal in net.terminals:
        mine = [part for part in parts if any(_joined(terminal, other) for other in part)]
        parts = [part for part in parts if part not in mine] + [[terminal, *(each for part in mine for each in part)]]
    return tree_bound([_around([terminal.box for terminal in part], reach) for part in parts])


def _around(boxes: Sequence[kdb.Box], reach: int) -> Rect:
    left, bottom = min(box.left for box in boxes), min(box.bottom for box in boxes)
    right, top = max(box.right for box in boxes), max(box.top for box in boxes)
    return (left - reach, bottom - reach, right + reach, top + reach)


def _joined(one: Terminal, other: Terminal) -> bool:
    """Return whether a net need not join two terminals: one metal of the layout, or metal that touches."""
    if one.group and one.group == other.group:
        return True
    return one.layer == other.layer and one.box.touches(other.box)


def tree_bound(boxes: Sequence[Rect]) -> int:
    """Return a length that no axis-parallel wires that join ``boxes``, each metal in itself, are shorter than. [dbu]

    The larger of two bounds counts. First, the wires must bridge the gaps between the boxes in x and in y.
    Second, a tree that joins k boxes is at least k / (2 (k - 1)) of their minimum spanning tree: Kou, Markowsky,
    Berman, "A fast algorithm for Steiner trees", Acta Informatica 15 (1981).
    """
    count = len(boxes)
    if count < 2:
        return 0
    between = _uncovered([(box[0], box[2]) for box in boxes]) + _uncovered([(box[1], box[3]) for box in boxes])
    return max(between, _spanning_tree(boxes) * count // (2 * (count - 1)))


def _uncovered(intervals: Sequence[tuple[int, int]]) -> int:
    """Return the length of the gaps that a union of intervals has."""
    gaps, reached = 0, min(low for low, _ in intervals)
    for low, high in sorted(intervals):
        gaps += max(0, low - reached)
        reached = max(reached, high)
    return gaps


def _spanning_tree(boxes: Sequence[Rect]) -> int:
    """Return the length of a minimum spanning tree over the distances between boxes, by Prim's algorithm. [dbu]"""
    distances = {index: _distance(boxes[0], box) for index, box in enumerate(boxes) if index}
    length = 0
    while distances:
        nearest = min(distances, key=lambda index: (distances[index], index))
        length += distances.pop(nearest)
        for index, distance in distances.items():
            distances[index] = min(distance, _distance(boxes[nearest], boxes[index]))
    return length


def _distance(one: Rect, other: Rect) -> int:
    """Return the shortest Manhattan distance between two boxes; 0 if they touch. [dbu]"""
    across = max(0, one[0] - other[2], other[0] - one[2])
    return across + max(0, one[1] - other[3], other[1] - one[3])
