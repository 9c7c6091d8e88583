"""The metal that routes go around, as rectangles: obstacles, terminals and keepouts.

Where metal is so wide that others keep a larger distance to it, and to what is attached to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutkit.route.occupancy import FixedMetal, holds, touches
from layoutkit.route.routes import rect_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.route.routes import NetRequest, Rect
    from layoutkit.route.routing_stack import Stack

    Obstacle = tuple[kdb.Box | kdb.Polygon | kdb.Region, str | None]


def fixed_metal(
    stack: Stack,
    nets: Sequence[NetRequest],
    obstacles: Mapping[str, Iterable[Obstacle]],
    keepouts: Iterable[tuple[str, Rect]],
) -> list[FixedMetal]:
    """Return what is there before any route, in a fixed order; see ``router.route`` for the parameters."""
    closed = {FixedMetal(stack.technology.resolve(layer), rect, None, keepout=True) for layer, rect in keepouts}
    known = {*(each.name for each in stack.conductors), *(cut.name for cut in stack.cuts)}
    closed = {each for each in closed if each.layer in known}
    return sorted({*_of_obstacles(stack, obstacles), *_of_terminals(stack, nets), *closed}, key=str)


def _of_terminals(stack: Stack, nets: Sequence[NetRequest]) -> Iterable[FixedMetal]:
    for net in nets:
        for terminal in net.terminals:
            level = stack.index(terminal.layer)
            rect = rect_of(terminal.box)
            yield FixedMetal(stack.conductors[level].name, rect, net.name, stack.is_wide(level, rect))


def _of_obstacles(stack: Stack, obstacles: Mapping[str, Iterable[Obstacle]]) -> Iterable[FixedMetal]:
    """Yield rectangles that cover the obstacles; slanted parts become their bounding boxes."""
    import klayout.db as kdb

    for layer, shapes in obstacles.items():
        name = stack.technology.resolve(layer)
        levels = [i for i, conductor in enumerate(stack.conductors) if conductor.name == name]
        if not levels and name not in [cut.name for cut in stack.cuts]:
            continue
        by_net: dict[str | None, kdb.Region] = {}
        for geometry, net in shapes:
            by_net.setdefault(net, kdb.Region()).insert(geometry)
        for net, region in by_net.items():
            merged = region.merged()
            pieces = [piece.bbox() for piece in merged.decompose_trapezoids_to_region().each()]
            if not levels:
                yield from (FixedMetal(name, rect_of(box), net) for box in pieces)
                continue
            level = levels[0]
            yield from (FixedMetal(name, rect_of(box), net, stack.is_wide(level, rect_of(box))) for box in pieces)
            yield from (FixedMetal(name, rect_of(box), net, wide=True) for box in wide_parts(stack, level, merged))
            rings = stack.long_edged(level, merged).decompose_trapezoids_to_region()
            yield from (FixedMetal(name, rect_of(piece.bbox()), net, wide=True) for piece in rings.each())


def attached_to_wide(stack: Stack, drawn: Sequence[tuple[int, Rect, bool]]) -> list[tuple[int, Rect, bool]]:
    """Return the parts of narrow metal that keep the space of wide metal, as they are attached to wide metal.

    Args:
        stack: The rules.
        drawn: Level, rectangle and whether it is wide, of all metal of one net.
    """
    found = set()
    for level, wide, is_wide in drawn:
        reach = stack.attached[level]
        near = wide[0] - reach, wide[1] - reach, wide[2] + reach, wide[3] + reach
        for at, rect, other_wide in drawn if is_wide and reach else ():
            if at == level and not other_wide and touches(rect, wide) and not holds(wide, rect):
                part = max(rect[0], near[0]), max(rect[1], near[1]), min(rect[2], near[2]), min(rect[3], near[3])
                found.add((level, part, True))
    return sorted(found)


def wide_parts(stack: Stack, level: int, merged: kdb.Region) -> list[kdb.Box]:
    """Return boxes, as thin as a decomposition cuts them, over the parts wider than the wide-metal limit."""
    limit = stack.conductors[level].wide_width
    if limit is None:
        return []
    half = limit // 2
    core = merged.sized(-half).sized(half) & merged
    return [polygon.bbox() for polygon in core.decompose_trapezoids_to_region().each()]
