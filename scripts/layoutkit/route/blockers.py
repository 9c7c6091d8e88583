"""What is in the way of a net that failed: the shapes on the way through the fewest closed edges of the track graph."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from layoutkit.route.board import HARD
from layoutkit.route.path_search import EdgeCosts
from layoutkit.route.routes import Blocker
from layoutkit.route.tree import grow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from layoutkit.route.board import Board
    from layoutkit.route.routes import NetRequest, Rect

THROUGH = 100
"""A closed edge costs as much as this many track pitches, so that the way found passes few of them."""


def blockers(board: Board, net: NetRequest) -> tuple[Blocker, ...]:
    """Return what blocks a net on a board, in the order in which a way through it meets the shapes.

    The way joins all terminals of the net and passes as few closed edges as possible: without these shapes the net
    could be routed. It is empty where a terminal lies outside the area, or no other metal is in the way.
    """
    import numpy as np

    hard, base = board.costs(net, HARD), board.base
    through = EdgeCosts(
        *(
            np.where((cost < 0) & (open_ >= 0), open_ + THROUGH * board.pitch, cost)
            for cost, open_ in ((hard.right, base.right), (hard.up, base.up), (hard.via, base.via))
        )
    )
    found: dict[tuple[str | None, str, Rect], Blocker] = {}
    for path in grow(board, net, through).paths:
        for one, other in pairwise(path):
            kind, place = board.edge(one, other)
            if getattr(hard, kind)[place] < 0:
                for blocker in _in_the_way(board, net, one, other):
                    found.setdefault((blocker.net, blocker.layer, blocker.rect), blocker)
    return tuple(found.values())


def _in_the_way(board: Board, net: NetRequest, one: int, other: int) -> Iterator[Blocker]:
    """Yield what closes the edge between two nodes."""
    stack, tracks = board.stack, board.tracks
    (x1, y1), (x2, y2) = tracks.point(one), tracks.point(other)
    at = ((x1 + x2) // 2, (y1 + y2) // 2)
    levels = sorted({tracks.place(one)[0], tracks.place(other)[0]})
    drawn: list[tuple[int, Rect]] = []
    if len(levels) == 1:
        half = stack.wire_width(levels[0], net.gauge) // 2
        drawn = [(levels[0], (min(x1, x2) - half, min(y1, y2) - half, max(x1, x2) + half, max(y1, y2) + half))]
    else:
        cut = levels[0]
        for level in levels:
            width, height = stack.pad(cut, level)
            drawn.append((level, (x1 - width, y1 - height, x1 + width, y1 + height)))
        rule = stack.cuts[cut]
        for rect in stack.cut_rects(cut, x1, y1, 1, 1):
            for shape in board.occupancy.near(rule.name, rect, rule.space):
                if shape.hinders(rect, rule.space):
                    yield Blocker(shape.net, rule.name, shape.rect, at, "keepout" if shape.keepout else "metal")
    for level, rect in drawn:
        name = stack.conductors[level].name
        wide = stack.is_wide(level, rect)
        for shape in board.occupancy.near(name, rect, stack.space(level, wide=True)):
            if shape.net != net.name and shape.hinders(rect, stack.space(level, wide=wide or shape.wide)):
                yield Blocker(shape.net, name, shape.rect, at, "keepout" if shape.keepout else "metal")
        left, bottom, right, top = board.area
        if rect[0] < left or rect[1] < bottom or rect[2] > right or rect[3] > top:
            yield Blocker(None, name, board.area, at, "edge")
