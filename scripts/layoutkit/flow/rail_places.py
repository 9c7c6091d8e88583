"""How far the rails of one side of a cell may lie over its modules, and on which conductor.

    ===================    rail beside the modules          ________________   boundary
    +-----------------+                                    |================|  rail over the modules, on a
    |     modules     |    ->                              |     modules    |  conductor that they leave free there
    +-----------------+                                    +----------------+

All places are distances ``u`` that grow outwards, from the origin. [dbu]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import klayout.db as kdb

from layoutkit.route.fixed_metal import wide_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from layoutkit.place.port_places import Side
    from layoutkit.route.routing_stack import Stack
    from layoutkit.technology import Conductor

    MetalIn = Callable[[Conductor, kdb.Box], Mapping[str, kdb.Region]]
    """Returns the metal of each net in a box; metal of no known net, and keepouts, under an empty name."""

ROUTED_UP_TO = 5
"""Rails lie below this level, on conductors that carry wires; that of the modules' lowest wires is level 0."""
FAR = 1 << 30
"""Further out than any keepout reaches beyond the modules. [dbu]"""


class Strip(NamedTuple):
    """A rail: its net, its inner and outer edge measured from the inner edge of the first one. [dbu]"""

    net: str
    low: int
    high: int


def outwards(box: kdb.Box, side: Side) -> int:
    """Return the place of a box's edge. [dbu]"""
    return {"left": -box.left, "bottom": -box.bottom, "right": box.right, "top": box.top}[side]


def conductors_for_rails(stack: Stack, lowest: Conductor) -> list[Conductor]:
    """Return the conductors above ``lowest``, in its direction, on which a rail may lie over modules."""
    first = stack.index(lowest.name)
    return [
        conductor
        for level, conductor in enumerate(stack.conductors[:ROUTED_UP_TO])
        if level > first
        and stack.horizontal[level] == stack.horizontal[first]
        and (conductor.pin_layer or not lowest.pin_layer)
    ]


def innermost(
    stack: Stack, conductor: Conductor, core: kdb.Box, side: Side, rails: Sequence[Strip], metal_in: MetalIn
) -> int:
    """Return how far inside the inner edge of the first rail may lie: not further than all rails lie over the core.

    It lies beyond the core where a keepout reaches out of it, as those around plates of capacitors do.

    Args:
        stack: The rules.
        conductor: On which the rails are to lie.
        core: Box of the modules.
        side: Side of the core.
        rails: The rails from the inside.
        metal_in: Returns the metal and keepouts of the modules, also those that extend beyond the core.
    """
    level, edge, step = stack.index(conductor.name), outwards(core, side), 2 * stack.technology.grid
    half = (core.height() if side in {"bottom", "top"} else core.width()) // 2
    depth = min(rails[-1].high, half - stack.space(level, wide=False))
    near = _strip(core, side, edge - depth - 2 * stack.reach(level), FAR)
    metal = {net: region for net, region in metal_in(conductor, near).items() if not region.is_empty()}
    wide = _any_wide(stack, level, rails, metal) or _reaches_wide(stack, level, near, metal_in)
    space = stack.space(level, wide=wide)
    inner = edge - depth
    for rail in rails:
        for net, region in metal.items():
            if net != rail.net or wide:
                inner = max(inner, outwards(region.bbox(), side) + space - rail.low)
    own = [(rail, metal[rail.net]) for rail in rails if rail.net in metal and not wide]
    beyond = [outwards(polygon.bbox(), side) + space - rail.low for rail, region in own for polygon in region.each()]
    places = sorted({-(-each // step) * step for each in (inner, *beyond) if each >= inner})
    for place in places:
        drawn = [(_strip(core, side, place + rail.low, place + rail.high), region) for rail, region in own]
        if not any(_faulty(stack, level, box, region) for box, region in drawn):
            return place
    return places[-1]


def _any_wide(stack: Stack, level: int, rails: Sequence[Strip], metal: Mapping[str, kdb.Region]) -> bool:
    """Return whether metal near the rails, or a rail with metal of its net beside it, needs the space of wide metal."""
    limit = stack.conductors[level].wide_width
    boxes = (polygon.bbox() for region in metal.values() for polygon in region.each())
    return (limit is not None and any(2 * (rail.high - rail.low) > limit for rail in rails)) or any(
        stack.is_wide(level, (box.left, box.bottom, box.right, box.top)) for box in boxes
    )


def _reaches_wide(stack: Stack, level: int, near: kdb.Box, metal_in: MetalIn) -> bool:
    """Return whether a net's metal in a box is part of wide metal, also where only a narrow strip of it lies there."""
    conductor = stack.conductors[level]
    if conductor.wide_width is None:
        return False
    deep = near.enlarged(conductor.wide_width + 2 * stack.technology.grid)
    return any(
        box.overlaps(near)
        for net, region in metal_in(conductor, deep).items()
        if net
        for box in wide_parts(stack, level, region.merged())
    )


def _strip(core: kdb.Box, side: Side, low: int, high: int) -> kdb.Box:
    """Return the part of the core's width or height from ``low`` to ``high``."""
    return {
        "left": kdb.Box(-high, core.bottom, -low, core.top),
        "bottom": kdb.Box(core.left, -high, core.right, -low),
        "right": kdb.Box(low, core.bottom, high, core.top),
        "top": kdb.Box(core.left, low, core.right, high),
    }[side]


def _faulty(stack: Stack, level: int, rail: kdb.Box, own: kdb.Region) -> bool:
    """Return whether a rail leaves a gap or a hole to metal of its own net that is too small, or hides such metal.

    Metal that lies wholly under a rail would count as a part of it, and stay behind where the rail moves.
    """
    if not own.inside(kdb.Region(rail)).is_empty():
        return True
    region = (own + kdb.Region(rail)).merged()
    if region.space_check(stack.space(level, wide=False)).count():
        return True
    return bool(region.holes().with_area(0, stack.least_hole[level], inverse=False).count())
