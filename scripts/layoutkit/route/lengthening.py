"""Make a routed wire longer by bumps, so that nets that should match are equally long.

          +--+  +--+          the wire leaves its track for a bump: two legs of a depth, just so far apart
----------+  +--+  +---       as the minimum space asks; the length grows by twice the depth

The fewest bumps that fit in one row, all equally deep, are best. Without room for a row, bumps lie where they fit.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from layoutkit.route.metal import Finisher, wire_rects
from layoutkit.route.occupancy import too_close

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from layoutkit.route.board import Sheet
    from layoutkit.route.metal import NetMetal
    from layoutkit.route.routes import NetRequest, Point, Rect, Wire

MOST_BUMPS = 12
ROWS = (1, 2, 3, 4, 6, 8, 12)
"""How many bumps a row may have."""
MOST_TRIES = 3000
"""Places at which rows of bumps are tried for one net, and then single ones."""


def lengthen(board: Sheet, net: NetRequest, metal: NetMetal, by: int) -> int:
    """Make the wires of a net, which is not entered on the board now, longer and return by how much. [dbu]

    It is never more than ``by``, and less where there is no room.
    """
    grid = board.stack.technology.grid
    whole = by // (2 * grid)
    tries = iter(range(MOST_TRIES))
    corners: set[Point] = set()
    for count in (number for number in ROWS if number <= whole):
        deeper = whole % count
        depths = [(whole // count + 1) * grid] * deeper + [whole // count * grid] * (count - deeper)
        if _add_bumps(board, net, metal, depths, (tries, corners)):
            return whole * 2 * grid
    remaining, depth, bumps = whole * 2 * grid, whole * grid // 2, 0
    tries = iter(range(MOST_TRIES))
    while remaining > 0 and depth >= grid and bumps < MOST_BUMPS:
        depth = min(depth, remaining // 2) // grid * grid
        if depth and _add_bumps(board, net, metal, [depth], (tries, corners)):
            remaining -= 2 * depth
            bumps += 1
        else:
            depth //= 2
    return whole * 2 * grid - remaining


def _add_bumps(
    board: Sheet, net: NetRequest, metal: NetMetal, depths: Sequence[int], so_far: tuple[Iterator[int], set[Point]]
) -> bool:
    """Add a row of bumps where there is room for it; return whether there is.

    Args:
        board: Holds the metal of all other nets.
        net: Whose wires become longer.
        metal: Its metal.
        depths: Of each bump. [dbu]
        so_far: Tries that are left, and the corners of all bumps of the net: those of these are added.
    """
    tries, corners = so_far
    finisher = Finisher(board.stack, board.occupancy, net.name, board.own[net.name])
    checks: dict[Wire, _BumpCheck] = {}
    for wire, longer, gone, new in _candidates(board, metal, depths, corners):
        if next(tries, None) is None:
            return False
        level = board.stack.index(wire.layer)
        outside = any(
            rect[0] < board.area[0] or rect[1] < board.area[1] or rect[2] > board.area[2] or rect[3] > board.area[3]
            for rect in new
        )
        if outside or any(finisher.in_the_way(level, rect) for rect in new):
            continue
        if wire not in checks:
            checks[wire] = _BumpCheck(finisher, metal, wire)
        if any(checks[wire].needs(bare) for bare in gone) or checks[wire].spoils(longer):
            continue
        _exchange(metal, wire, longer)
        corners.update({*longer.points} - {*wire.points})
        return True
    return False


class _BumpCheck:
    """Judges bumps of one wire: they change no metal but that of the wire, so only its level is looked at."""

    def __init__(self, finisher: Finisher, metal: NetMetal, wire: Wire) -> None:
        stack = finisher.stack
        rest = replace(metal, wires=[other for other in metal.wires if other is not wire]).rects(stack)
        self.finisher, self.level = finisher, stack.index(wire.layer)
        self.rest = [rect for level, rect in rest if level == self.level]
        self.fixed = [rect for level, rect in finisher.own if level == self.level]
        self.before = sum(1 for _ in finisher.flaws_of(self.level, [*self.rest, *wire_rects(wire)]))

    def needs(self, gone: Rect) -> bool:
        """Return whether other metal of the net meets or touches the part of the wire that a bump leaves bare."""
        return any(too_close(rect, gone, 1) for rect in (*self.rest, *self.fixed))

    def spoils(self, longer: Wire) -> bool:
        """Return whether the net breaks more rules with the wire like this."""
        flaws = self.finisher.flaws_of(self.level, [*self.rest, *wire_rects(longer)])
        return any(number > self.before for number, _ in enumerate(flaws, 1))


def _candidates(
    board: Sheet, metal: NetMetal, depths: Sequence[int], corners: set[Point]
) -> Iterator[tuple[Wire, Wire, list[Rect], list[Rect]]]:
    """Yield a wire, the same with bumps, what these leave bare, and what they add; long straight parts first.

    Parts between two ``corners`` of earlier bumps get none.
    """
    stack, grid = board.stack, board.stack.technology.grid
    parts = [
        (abs(b[0] - a[0]) + abs(b[1] - a[1]), number, index)
        for number, wire in enumerate(metal.wires)
        for index, (a, b) in enumerate(pairwise(wire.points))
        if not {a, b} <= corners
    ]
    for length, number, index in sorted(parts, key=lambda part: (-part[0], part[1:])):
        wire = metal.wires[number]
        level = stack.index(wire.layer)
        apart = wire.width + stack.space(level, wide=wire.width > (stack.conductors[level].wide_width or wire.width))
        apart = -(-apart // grid) * grid
        (x1, y1), (x2, y2) = wire.points[index], wire.points[index + 1]
        along = ((x2 > x1) - (x2 < x1), (y2 > y1) - (y2 < y1))
        last = length - 2 * len(depths) * apart
        for start in range(apart, last + 1, max(grid, board.pitch // 2 // grid * grid)):
            for side in (1, -1):
                row: list[Point] = []
                bare: list[Rect] = []
                for place, depth in enumerate(depths):
                    at = start + 2 * place * apart
                    one, two = ((x1 + along[0] * d, y1 + along[1] * d) for d in (at, at + apart))
                    off = (-along[1] * side * depth, along[0] * side * depth)
                    row += [one, (one[0] + off[0], one[1] + off[1]), (two[0] + off[0], two[1] + off[1]), two]
                    bare += wire_rects(replace(wire, points=(one, two)))
                points = (*wire.points[: index + 1], *row, *wire.points[index + 1 :])
                yield wire, replace(wire, points=points), bare, list(wire_rects(replace(wire, points=tuple(row))))


def _exchange(metal: NetMetal, old: Wire, new: Wire) -> None:
    metal.wires = [new if wire is old else wire for wire in metal.wires]
    metal.order = [new if entry is old else entry for entry in metal.order]
