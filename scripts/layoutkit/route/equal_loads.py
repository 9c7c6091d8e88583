"""Capacitance of wires to the substrate, and short stubs that make that of two nets equal.

         +--+
         |  |        a stub: as wide as its wire, and as long as the capacitance that is missing asks
---------+--+-------
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from layoutkit.route.metal import Finisher
from layoutkit.route.occupancy import too_close
from layoutkit.route.routes import Patch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import klayout.db as kdb

    from layoutkit.route.board import Board
    from layoutkit.route.metal import NetMetal
    from layoutkit.route.routes import NetRequest, Point, Rect, Wire
    from layoutkit.technology import Conductor, Technology

ALIKE = 0.005
"""Difference of two nets' capacitances, as a share of the larger one, that is left as it is."""
MOST_STUBS = 24
MOST_TRIES = 400
"""Places at which the rules are checked for stubs of one net."""
LONGEST_STUB = 12
"""Largest length of a stub, in track pitches."""


def capacitance(technology: Technology, regions: Mapping[str, kdb.Region]) -> float | None:
    """Return the capacitance of metal to the substrate, other metal left out [aF]; None where numbers are missing.

    Args:
        technology: States the numbers of each conductor.
        regions: Merged metal by the name of its conductor.
    """
    found, um = 0.0, technology.dbu_um
    for conductor in technology.conductors:
        region = regions.get(conductor.name)
        if region is None:
            continue
        if conductor.area_af_um2 is None or conductor.fringe_af_um is None:
            return None
        found += region.area() * um * um * conductor.area_af_um2 + region.perimeter() * um * conductor.fringe_af_um
    return found


def capacitance_of(board: Board, metal: NetMetal) -> float | None:
    """Return the capacitance of what a net draws to the substrate [aF]; None where numbers are missing."""
    import klayout.db as kdb

    regions: dict[str, kdb.Region] = {}
    for level, rect in metal.rects(board.stack):
        regions.setdefault(board.stack.conductors[level].name, kdb.Region()).insert(kdb.Box(*rect))
    return capacitance(board.stack.technology, {name: region.merged() for name, region in regions.items()})


def add_stubs(board: Board, net: NetRequest, metal: NetMetal, wanted: float) -> None:
    """Add stubs to the wires of a net, which is not entered on the board now, until it has a capacitance.

    Args:
        board: Holds the metal of all other nets.
        net: Whose wires get stubs.
        metal: Its metal.
        wanted: Capacitance to the substrate, which is not exceeded; there is less where there is no room. [aF]
    """
    finisher = Finisher(board.stack, board.occupancy, net.name, board.own[net.name])
    tries, share = iter(range(MOST_TRIES)), 1
    for _ in range(MOST_STUBS):
        missing = wanted - (capacitance_of(board, metal) or wanted)
        while missing > ALIKE * wanted and not _add_stub(board, finisher, metal, missing / share, tries):
            share *= 2
            if share > MOST_STUBS:
                return
        if missing <= ALIKE * wanted:
            return


def _add_stub(board: Board, finisher: Finisher, metal: NetMetal, missing: float, tries: Iterator[int]) -> bool:
    """Add one stub of a capacitance, or of the largest length, where there is room; return whether there is."""
    left, bottom, right, top = board.area
    before = len(finisher.flaws(metal))
    own = [*metal.rects(board.stack), *finisher.own]
    for wire, rect, beyond in _places(board, metal, missing):
        level = board.stack.index(wire.layer)
        outside = rect[0] < left or rect[1] < bottom or rect[2] > right or rect[3] > top
        over = any(at == level and too_close(beyond, its, 1) for at, its in own)
        if outside or over or finisher.in_the_way(level, rect):
            continue
        if next(tries, None) is None:
            return False
        metal.patches.append(Patch(wire.layer, rect))
        if len(finisher.flaws(metal)) <= before:
            return True
        metal.patches.pop()
    return False


def _places(board: Board, metal: NetMetal, missing: float) -> Iterator[tuple[Wire, Rect, Rect]]:
    """Yield wires, the stubs that they may get, and the end of each stub; long straight parts first."""
    stack = board.stack
    grid = stack.technology.grid
    step = max(grid, board.pitch // 2 // grid * grid)
    parts = [
        (abs(b[0] - a[0]) + abs(b[1] - a[1]), number, a, b)
        for number, wire in enumerate(metal.wires)
        for a, b in pairwise(wire.points)
    ]
    for length, number, a, b in sorted(parts, key=lambda part: (-part[0], part[1:])):
        wire = metal.wires[number]
        conductor = stack.conductors[stack.index(wire.layer)]
        per_length = _per_length(stack.technology, conductor, wire.width)
        long = int(min(missing / per_length, LONGEST_STUB * board.pitch)) // grid * grid if per_length else 0
        if long < grid:
            continue
        along = ((b[0] > a[0]) - (b[0] < a[0]), (b[1] > a[1]) - (b[1] < a[1]))
        half = wire.width // 2
        for at in range(0, length + 1, step):
            x, y = a[0] + along[0] * at, a[1] + along[1] * at
            for side in (1, -1):
                near, far = (side * reach for reach in (half + grid, half + long))
                yield wire, _across((x, y), along, (0, far), half), _across((x, y), along, (near, far), half)


def _across(at: Point, along: Point, span: tuple[int, int], half: int) -> Rect:
    """Return the rectangle beside a wire at a point, ``span`` from its middle and ``2 * half`` along the wire."""
    low, high = sorted(span)
    if along[0]:
        return at[0] - half, at[1] + low, at[0] + half, at[1] + high
    return at[0] + low, at[1] - half, at[0] + high, at[1] + half


def _per_length(technology: Technology, conductor: Conductor, width: int) -> float:
    """Return the capacitance of a stub per length. [aF/dbu]"""
    um = technology.dbu_um
    return (conductor.area_af_um2 or 0.0) * width * um * um + 2 * (conductor.fringe_af_um or 0.0) * um
