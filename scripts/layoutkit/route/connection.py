"""Whether the metal of a net joins all its terminals, by the rectangles that are drawn and not by the paths found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from layoutkit.route.tree import joined

if TYPE_CHECKING:
    from collections.abc import Sequence

    from layoutkit.route.metal import NetMetal
    from layoutkit.route.routes import NetRequest, Rect
    from layoutkit.route.routing_stack import Stack


def joins_all(
    stack: Stack,
    net: NetRequest,
    metal: NetMetal,
    own: tuple[Sequence[tuple[int, Rect]], Sequence[tuple[int, Rect]]] = ((), ()),
) -> bool:
    """Return whether the wires, vias and patches of a net and its terminals are one piece.

    Terminals that are joined already count as such; each is the metal of its box.

    Args:
        stack: The rules.
        net: The net.
        metal: What it draws.
        own: Further metal and cuts of the net, which were there before, as (level or cut index, rectangle). [dbu]
    """
    pieces = [*metal.rects(stack), *own[0]]
    terminals = [(stack.index(each.layer), each.box) for each in net.terminals]
    pieces = [*pieces, *((level, (box.left, box.bottom, box.right, box.top)) for level, box in terminals)]
    parent = list(range(len(pieces)))

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    def join(one: int, other: int) -> None:
        parent[root(one)] = root(other)

    by_level: dict[int, list[int]] = {}
    for index, (level, _) in enumerate(pieces):
        by_level.setdefault(level, []).append(index)
    for its in by_level.values():
        for one, other in _touching([pieces[i][1] for i in its], [pieces[i][1] for i in its]):
            join(its[one], its[other])
    cuts = [*metal.cuts(stack), *own[1]]
    for cut in sorted({cut for cut, _ in cuts}):
        rects = [rect for at, rect in cuts if at == cut]
        above, below = by_level.get(cut + 1, []), by_level.get(cut, [])
        over, under = (dict(_touching(rects, [pieces[i][1] for i in its])) for its in (above, below))
        for number in over.keys() & under.keys():
            join(above[over[number]], below[under[number]])
    ends = range(len(pieces) - len(net.terminals), len(pieces))
    for group in joined(net.terminals, [level for level, _ in terminals]):
        for index in group:
            join(ends[index], ends[group[0]])
    return len({root(index) for index in ends}) == 1


def _touching(first: Sequence[Rect], second: Sequence[Rect]) -> list[tuple[int, int]]:
    """Return the indices of each two rectangles that overlap or share a piece of an edge."""
    if not first or not second:
        return []
    one, other = (np.array(rects, dtype=np.int64) for rects in (first, second))
    shared = [
        np.minimum(one[:, None, side + 2], other[None, :, side + 2])
        - np.maximum(one[:, None, side], other[None, :, side])
        for side in (0, 1)
    ]
    found = (np.minimum(*shared) >= 0) & (np.maximum(*shared) > 0)
    return [(int(i), int(j)) for i, j in np.argwhere(found)]
