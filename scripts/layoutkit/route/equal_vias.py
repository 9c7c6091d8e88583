"""Vias on the wires of a net that has fewer than its partner, so that both load and look alike.

         +-------+
---------| x   x |---------     the wire goes on as before; the other conductor has the pad only
         +-------+
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from layoutkit.route.metal import Finisher, cut_index, pads
from layoutkit.route.routes import Via

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from layoutkit.route.metal import NetMetal
    from layoutkit.route.routes import NetRequest, Rect
    from layoutkit.route.sheet import Sheet

MOST_VIAS = 6
"""Vias that a net gets at most."""
MOST_TRIES = 60
"""Places with room for the pads at which all rules are checked for one net."""


def missing_cuts(few: NetMetal, many: NetMetal) -> list[str]:
    """Return as many cuts as one net has fewer vias than another, those first that it has fewer of."""
    own, other = (Counter(via.cut for via in metal.vias) for metal in (few, many))
    wanted = sorted((other - own).elements())
    return wanted[: max(0, len(many.vias) - len(few.vias))]


def add_vias(sheet: Sheet, net: NetRequest, metal: NetMetal, cuts: Sequence[str]) -> None:
    """Give a net vias of two cuts where there is room.

    Args:
        sheet: Holds the metal of all other nets.
        net: A net without a stated current, since these vias carry none; it is not entered on the sheet now.
        metal: Its metal, which is changed.
        cuts: Name of the cut of each via. Where there is no room for one, one of the other side of a wire serves.
    """
    if net.current_ma is not None:
        return
    finisher = Finisher(sheet.stack, sheet.occupancy, net.name, sheet.own[net.name])
    tries = iter(range(MOST_TRIES))
    for wanted in cuts[:MOST_VIAS]:
        places = sorted(_places(sheet, net, metal), key=lambda via: via.cut != wanted)
        new = next((more for via in places for more in [_with_via(sheet, finisher, metal, via, tries)] if more), None)
        if new is None:
            return
        metal.vias, metal.patches, metal.order = new.vias, new.patches, new.order


def _with_via(sheet: Sheet, finisher: Finisher, metal: NetMetal, via: Via, tries: Iterator[int]) -> NetMetal | None:
    """Return the metal of a net with one more via; None where the rules leave no room for it, or without tries."""
    stack = sheet.stack
    cut = cut_index(stack, via.cut)
    if not finisher.fits(via, cut, metal.vias) or not _is_free(sheet, finisher, pads(stack, via)):
        return None
    if next(tries, None) is None:
        return None
    order = [*metal.order, (via.cut, via.x, via.y)]
    more = replace(metal, vias=sorted([*metal.vias, via], key=str), patches=list(metal.patches), order=order)
    for level in (cut, cut + 1):
        finisher.enlarge_small(more, level)
    patches = [(stack.index(patch.layer), patch.rect) for patch in more.patches[len(metal.patches) :]]
    if not _is_free(sheet, finisher, patches) or len(finisher.flaws(more)) > len(finisher.flaws(metal)):
        return None
    return more


def _is_free(sheet: Sheet, finisher: Finisher, metal: Sequence[tuple[int, Rect]]) -> bool:
    left, bottom, right, top = sheet.area
    inside = all(r[0] >= left and r[1] >= bottom and r[2] <= right and r[3] <= top for _, r in metal)
    return inside and not any(finisher.in_the_way(level, rect) for level, rect in metal)


def _places(sheet: Sheet, net: NetRequest, metal: NetMetal) -> Iterator[Via]:
    """Yield vias of two cuts on the wires of a net, on long straight parts first."""
    stack, grid = sheet.stack, sheet.stack.technology.grid
    step = max(grid, sheet.pitch // grid * grid)
    parts = [
        (abs(b[0] - a[0]) + abs(b[1] - a[1]), number, a, b)
        for number, wire in enumerate(metal.wires)
        for a, b in pairwise(wire.points)
    ]
    closed = {stack.index(layer) for layer in net.avoid_layers}
    for length, number, (x, y), (to_x, to_y) in sorted(parts, key=lambda part: (-part[0], part[1:])):
        level = stack.index(metal.wires[number].layer)
        along = (to_x > x) - (to_x < x), (to_y > y) - (to_y < y)
        for cut, other in ((level - 1, level - 1), (level, level + 1)):
            if not 0 <= cut < len(stack.cuts) or not stack.wired[other] or other in closed:
                continue
            for at in range(0, length + 1, step):
                for columns, rows in ((2, 1), (1, 2)) if along[0] else ((1, 2), (2, 1)):
                    yield Via(stack.cuts[cut].name, x + along[0] * at, y + along[1] * at, columns, rows)
