"""A lower bound of the wire length that nets need, to judge the wires that were drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from layoutkit.route.routes import NetRequest, Rect, Terminal

STEINER_RATIO = 2 / 3
"""A rectilinear Steiner tree is at least this part of a minimum spanning tree.

Hwang, "On Steiner minimal trees with rectilinear distance", SIAM J. Appl. Math. 30 (1976).
"""


def length_bound(net: NetRequest) -> int:
    """Return a length that the wires of ``net`` cannot be shorter than. [dbu]

    The wires must touch the box around each group of joined terminals. The larger of two bounds counts: half the
    perimeter of the smallest box that touches all these boxes, and two thirds of their minimum spanning tree.
    """
    parts: list[list[Terminal]] = []
    for terminal in net.terminals:
        mine = [part for part in parts if any(_joined(terminal, other) for other in part)]
        parts = [part for part in parts if part not in mine] + [[terminal, *(each for part in mine for each in part)]]
    boxes = [[terminal.box for terminal in part] for part in parts]
    return tree_bound(
        [
            (min(b.left for b in p), min(b.bottom for b in p), max(b.right for b in p), max(b.top for b in p))
            for p in boxes
        ]
    )


def _joined(one: Terminal, other: Terminal) -> bool:
    """Return whether a net need not join two terminals: one metal of the layout, or metal that touches."""
    if one.group and one.group == other.group:
        return True
    return one.layer == other.layer and one.box.touches(other.box)


def tree_bound(boxes: Sequence[Rect]) -> int:
    """Return a length that no tree of axis-parallel wires that touches all ``boxes`` is shorter than. [dbu]"""
    if len(boxes) < 2:
        return 0
    width = max(0, max(box[0] for box in boxes) - min(box[2] for box in boxes))
    height = max(0, max(box[1] for box in boxes) - min(box[3] for box in boxes))
    return max(width + height, int(STEINER_RATIO * _spanning_tree(boxes)))


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
