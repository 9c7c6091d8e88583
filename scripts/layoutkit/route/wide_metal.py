"""Where metal is so wide that others keep a larger distance to it, and to what is attached to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutkit.route.occupancy import holds, touches

if TYPE_CHECKING:
    from collections.abc import Sequence

    import klayout.db as kdb

    from layoutkit.route.routes import Rect
    from layoutkit.route.routing_stack import Stack


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
