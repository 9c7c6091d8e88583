"""Whether the metal of a net joins all its terminals, by the rectangles that are drawn and not by the paths found.

What is in the way of a net that failed: the shapes on the way through the fewest closed edges of the track graph.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.route.board import HARD
from layoutkit.route.path_search import EdgeCosts
from layoutkit.route.routes import Blocker
from layoutkit.route.tree import grow, joined

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from layoutkit.route.board import Board
    from layoutkit.route.metal import NetMetal
    from layoutkit.route.routes import NetRequest, Rect
    from layoutkit.route.routing_stack import Stack


def joins_all(stack: Stack, net: NetRequest, metal: NetMetal) -> bool:
    """Return whether the wires, vias and patches of a net and its terminals are one piece.

    Terminals that are joined already count as such; each is the metal of its box.

    Args:
        stack: The rules.
        net: The net.
        metal: What it draws.
    """
    ends, joints = _graph(stack, net, metal.rects(stack), metal.cuts(stack))
    root = _roots([(one, other) for one, other, _ in joints])
    return len({root(end) for end in ends}) == 1


def lone_cuts(
    stack: Stack, net: NetRequest, metal: NetMetal, own: tuple[Sequence[tuple[int, Rect]], Sequence[tuple[int, Rect]]]
) -> set[tuple[int, Rect]]:
    """Return the cuts, as (cut index, rectangle), without which some terminals of a net would not be joined.

    These are the bridges of the graph of the net's metal, whose edges are its cuts, with terminals at both sides
    (Tarjan, 1974). So the time grows with the size of the net, and not with its square.

    Args:
        stack: The rules.
        net: The net.
        metal: What it draws.
        own: Further metal and cuts of the net, which were there before, as (level or cut index, rectangle). [dbu]
    """
    cuts = sorted({*metal.cuts(stack), *own[1]})
    ends, joints = _graph(stack, net, [*metal.rects(stack), *own[0]], cuts)
    edges: dict[int, list[tuple[int, int]]] = {}
    for number, (one, other, _) in enumerate(joints):
        edges.setdefault(one, []).append((other, number))
        edges.setdefault(other, []).append((one, number))
    first = next(iter(ends))
    found: set[tuple[int, Rect]] = set()
    seen, low, held = {first: 0}, {first: 0}, {first: int(first in ends)}
    stack_of = [(first, -1, iter(edges.get(first, ())))]
    while stack_of:
        node, by, ways = stack_of[-1]
        way = next(ways, None)
        if way is None:
            stack_of.pop()
            if stack_of:
                before = stack_of[-1][0]
                held[before] += held[node]
                low[before] = min(low[before], low[node])
                if low[node] > seen[before] and 0 < held[node] < len(ends):
                    found.add(joints[by][2])
        elif way[0] not in seen:
            seen[way[0]] = low[way[0]] = len(seen)
            held[way[0]] = int(way[0] in ends)
            stack_of.append((way[0], way[1], iter(edges[way[0]])))
        elif way[1] != by:
            low[node] = min(low[node], seen[way[0]])
    return found


def _graph(
    stack: Stack, net: NetRequest, metal: Sequence[tuple[int, Rect]], cuts: Sequence[tuple[int, Rect]]
) -> tuple[set[int], list[tuple[int, int, tuple[int, Rect]]]]:
    """Return the pieces of one level that hold terminals of a net, and for each cut the two pieces that it joins.

    Terminals that are joined already are one piece.
    """
    terminals = [(stack.index(each.layer), each.box) for each in net.terminals]
    boxes = [(level, (box.left, box.bottom, box.right, box.top)) for level, box in terminals]
    pieces = [*metal, *boxes]
    by_level: dict[int, list[int]] = {}
    for index, (level, _) in enumerate(pieces):
        by_level.setdefault(level, []).append(index)
    touching = [
        (its[one], its[other])
        for its in by_level.values()
        for rects in [[pieces[index][1] for index in its]]
        for one, other in _touching(rects, rects)
    ]
    ends = range(len(pieces) - len(terminals), len(pieces))
    groups = joined(net.terminals, [level for level, _ in terminals])
    root = _roots([*touching, *((ends[index], ends[group[0]]) for group in groups for index in group)])
    joints: list[tuple[int, int, tuple[int, Rect]]] = []
    for cut in sorted({cut for cut, _ in cuts}):
        rects = [rect for at, rect in cuts if at == cut]
        above, below = by_level.get(cut + 1, []), by_level.get(cut, [])
        over, under = (dict(_touching(rects, [pieces[i][1] for i in its])) for its in (above, below))
        joints += [
            (root(above[over[number]]), root(below[under[number]]), (cut, rects[number]))
            for number in sorted(over.keys() & under.keys())
        ]
    return {root(end) for end in ends}, joints


def _roots(pairs: Iterable[tuple[int, int]]) -> Callable[[int], int]:
    """Return a function from a number to that of its connected piece; each pair joins two numbers."""
    parent: dict[int, int] = {}

    def root(index: int) -> int:
        while (above := parent.get(index, index)) != index:
            parent[index] = parent.get(above, above)
            index = parent[index]
        return index

    for one, other in pairs:
        parent[root(one)] = root(other)
    return root


def _touching(first: Sequence[Rect], second: Sequence[Rect]) -> Iterator[tuple[int, int]]:
    """Yield the indices of each two rectangles that overlap or share a piece of an edge."""
    there = kdb.Shapes()
    for index, rect in enumerate(second):
        there.insert(kdb.Box(*rect), index)
    for index, (left, bottom, right, top) in enumerate(first):
        for shape in there.each_touching(kdb.Box(left, bottom, right, top)):
            box = shape.box
            if min(right, box.right) > max(left, box.left) or min(top, box.top) > max(bottom, box.bottom):
                yield index, shape.prop_id


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
