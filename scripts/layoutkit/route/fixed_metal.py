"""The metal that routes go around, as rectangles: obstacles, terminals and keepouts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutkit.route.occupancy import FixedMetal
from layoutkit.route.routes import rect_of
from layoutkit.route.wide_metal import wide_parts

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
