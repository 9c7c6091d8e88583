"""Where ports and rails lie at the sides of a cell: the side, order and even spacing of ports, and rails over modules.

Rails lie over modules on a conductor that these leave free::

    ===================    rail beside the modules          ________________   boundary
    +-----------------+                                    |================|  rail over the modules, on a
    |     modules     |    ->                              |     modules    |  conductor that they leave free there
    +-----------------+                                    +----------------+

All places are distances ``u`` that grow outwards, from the origin. [dbu]
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

import klayout.db as kdb

from layoutkit.route.routing_stack import wide_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from layoutkit.rectangle import Rectangle
    from layoutkit.route.routing_stack import Stack
    from layoutkit.technology import Conductor

    MetalIn = Callable[[Conductor, kdb.Box], Mapping[str, kdb.Region]]
    """Returns the metal of each net in a box; metal of no known net, and keepouts, under an empty name."""

ROUTED_UP_TO = 5
"""Rails lie below this level, on conductors that carry wires; that of the modules' lowest wires is level 0."""
FAR = 1 << 30
"""Further out than any keepout reaches beyond the modules. [dbu]"""
Side = Literal["left", "right", "bottom", "top"]
SIDES: tuple[Side, ...] = ("left", "right", "bottom", "top")
OPPOSITE: dict[Side, Side] = {"left": "right", "right": "left", "bottom": "bottom", "top": "top"}
"""Side of a port's mirror image about a vertical axis."""


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


@dataclass(frozen=True)
class PortWish:
    """A port and where it should be.

    Attributes:
        name: Unique name.
        x: Middle of what it leads to.
        y: Middle of what it leads to.
        side: The side it must be at; None for the best one.
        usual: The side for ports of its kind, such as left for inputs; None for the nearest of left and right.
        order: Place among the ports of its side that have an order, from the left or from below; None for any.
        partner: Port that should be its mirror image about ``axis``, and vice versa.
        axis: Vertical axis of the two; None where what they lead to has none. They lie beside each other then.
        near: Whether its wire may not be long. The ports of its side then lie before what they lead to, if they can.
    """

    name: str
    x: int
    y: int
    side: Side | None = None
    usual: Side | None = None
    order: int | None = None
    partner: str | None = None
    axis: int | None = None
    near: bool = False


class PortPlace(NamedTuple):
    """The side of a port, and its middle along that side: y at the left and right, else x."""

    side: Side
    at: int


def choose_sides(wishes: Sequence[PortWish], core: Rectangle) -> dict[str, Side]:
    """Return the side of each port.

    A wanted side counts first. Two ports that mirror each other lie at opposite sides, or both at the bottom or top.
    Two that should but cannot lie at the same side, so that their wires can be alike.
    """
    named = {wish.name: wish for wish in wishes}
    found = {wish.name: wish.side for wish in wishes if wish.side is not None}
    for wish in sorted(wishes, key=lambda each: (each.x, each.name)):
        if wish.name in found:
            continue
        partner = named.get(wish.partner or "")
        if partner is None:
            nearest: Side = "left" if 2 * wish.x < core.left + core.right else "right"
            found[wish.name] = wish.usual or nearest
        elif partner.name in found:
            found[wish.name] = found[partner.name] if wish.axis is None else OPPOSITE[found[partner.name]]
        elif wish.axis is None:
            nearest = "left" if wish.x + partner.x < core.left + core.right else "right"
            found[wish.name] = found[partner.name] = nearest
        else:  # of two partners the left one comes first
            found[wish.name], found[partner.name] = "left", "right"
    return found


def place_ports(
    wishes: Sequence[PortWish], sides: Mapping[str, Side], room: Rectangle, grid: int, pitch: int
) -> dict[str, PortPlace]:
    """Return where each port lies: evenly spread along its side of ``room``, partners as mirror images.

    Where a port must be near, those of its side are near to what they lead to instead.

    Partners without an axis lie beside each other near what they lead to.

    Args:
        wishes: The ports.
        sides: The side of each.
        room: Where ports may lie.
        grid: Places are multiples of it.
        pitch: Least distance of two ports at the left or right, for which there is room.
    """
    here: dict[Side, list[PortWish]] = {side: [w for w in wishes if sides[w.name] == side] for side in SIDES}
    found: dict[str, PortPlace] = {}
    for side in SIDES[2:]:
        found.update(_across(here[side], side, room, grid, pitch))
    rows = _rows(_in_order(here["left"], "y"), _in_order(here["right"], "y"))
    heights = _spread(room.bottom, room.top, len(rows), grid)
    paired = any(left and right and left.partner == right.name for left, right in rows)
    facing: tuple[Side, Side] = ("left", "right")
    for index, side in enumerate(facing):
        ports = [row[index] for row in rows] if paired else _in_order(here[side], "y")
        at = heights if paired else _spread(room.bottom, room.top, len(ports), grid)
        if not paired and any(w is not None and w.near for w in ports):
            at = _near([w.y for w in ports if w is not None], room.bottom, room.top, pitch, grid)
        those = [(w, y) for w, y in zip(ports, at, strict=True) if w is not None]
        heights_here = _side_by_side([w for w, _ in those], [y for _, y in those], room, grid, pitch)
        found.update({w.name: PortPlace(side, y) for (w, _), y in zip(those, heights_here, strict=True)})
    return found


def _side_by_side(
    ports: Sequence[PortWish], heights: Sequence[int], room: Rectangle, grid: int, pitch: int
) -> list[int]:
    """Return the heights of ports at one side, partners without an axis beside each other and what they lead to."""
    found = list(heights)
    for i, (one, other) in enumerate(pairwise(ports)):
        if one.partner != other.name or one.axis is not None:
            continue
        low = found[i - 1] + pitch if i else room.bottom + pitch // 2
        high = found[i + 2] - pitch if i + 2 < len(found) else room.top - pitch // 2
        apart = min(max(abs(one.y - other.y), pitch), found[i + 1] - found[i])
        if low + apart <= high:
            found[i] = max(low, min((one.y + other.y - apart) // 2, high - apart)) // grid * grid
            found[i + 1] = found[i] + -(-apart // grid) * grid
    return found


def mirror_axis(wishes: Iterable[PortWish], sides: Mapping[str, Side]) -> int | None:
    """Return the axis of most pairs of partners at the left and right; None where there is no such pair."""
    axes = Counter(w.axis for w in wishes if w.axis is not None and sides[w.name] == "left")
    return min(axes, key=lambda axis: (-axes[axis], axis)) if axes else None


def _spread(low: int, high: int, count: int, grid: int) -> list[int]:
    """Return the middles of ``count`` equal parts of a length, on the grid."""
    return [(low + (high - low) * (2 * i + 1) // (2 * count)) // grid * grid for i in range(count)]


def _near(wanted: Sequence[int], low: int, high: int, pitch: int, grid: int) -> list[int]:
    """Return places in the order of ``wanted`` and as near to them as a pitch allows, on the grid."""
    pitch = min(pitch, (high - low) // max(len(wanted), 1))
    found: list[int] = []
    for place in wanted:
        found.append(max(place, found[-1] + pitch if found else low + pitch // 2))
    limit = high - pitch // 2
    for index in range(len(found) - 1, -1, -1):
        found[index] = min(found[index], limit)
        limit = found[index] - pitch
    return [place // grid * grid for place in found]


def _in_order(ports: Sequence[PortWish], along: Literal["x", "y"]) -> list[PortWish]:
    """Return ports sorted by what they lead to; those with an order keep it among themselves."""
    at = {wish.name: getattr(wish, along) for wish in ports}
    beside = {w.name: w.partner for w in ports if w.partner in at and w.axis is None}
    by_place = sorted(
        ports, key=lambda each: (at[each.name] + at[beside.get(each.name) or each.name], at[each.name], each.name)
    )
    ordered = iter(sorted((w for w in ports if w.order is not None), key=lambda each: (each.order, each.name)))
    return [next(ordered) if wish.order is not None else wish for wish in by_place]


def _rows(left: Sequence[PortWish], right: Sequence[PortWish]) -> list[tuple[PortWish | None, PortWish | None]]:
    """Return who lies opposite whom: partners face each other, as far as the order of both sides allows.

    The longer of the lists between two facing pairs gets all rows there; the others are spread over them.
    """
    at = {wish.name: index for index, wish in enumerate(right)}
    rows: list[tuple[PortWish | None, PortWish | None]] = []
    i = j = 0
    for index, wish in enumerate(left):
        other = at.get(wish.partner or "", -1)
        if other >= j:
            rows += _facing(left[i:index], right[j:other])
            rows.append((wish, right[other]))
            i, j = index + 1, other + 1
    return rows + _facing(left[i:], right[j:])


def _facing(left: Sequence[PortWish], right: Sequence[PortWish]) -> list[tuple[PortWish | None, PortWish | None]]:
    count = max(len(left), len(right))
    lists = []
    for ports in (left, right):
        column: list[PortWish | None] = [None] * count
        for index, wish in enumerate(ports):
            column[(2 * index + 1) * count // (2 * len(ports))] = wish
        lists.append(column)
    return list(zip(*lists, strict=True))


def _across(ports: Sequence[PortWish], side: Side, room: Rectangle, grid: int, pitch: int) -> dict[str, PortPlace]:
    """Return the places at the bottom or top; partners lie at equal distances from their axis."""
    ordered = _in_order(ports, "x")
    names = {wish.name for wish in ports}
    axis = next((w.axis for w in ordered if w.axis is not None and w.partner in names), None)
    if axis is None:
        at = _spread(room.left, room.right, len(ordered), grid)
        if any(wish.near for wish in ordered):
            at = _near([wish.x for wish in ordered], room.left, room.right, pitch, grid)
        return {wish.name: PortPlace(side, x) for wish, x in zip(ordered, at, strict=True)}
    pairs, middle, seen = [], [], set()
    for wish in ordered:
        partner = next((w for w in ordered if w.name == wish.partner and w.axis == axis), None)
        if wish.name not in seen and (partner is None or wish.axis != axis):
            middle.append(wish)
        elif wish.name not in seen and partner is not None:
            pairs.append((wish, partner))
            seen |= {wish.name, partner.name}
    reach = min(axis - room.left, room.right - axis)
    at = _spread(axis - reach, axis + reach, len(ordered), grid)
    found = {}
    for (left, right), x in zip(pairs, at, strict=False):
        found[left.name], found[right.name] = PortPlace(side, x), PortPlace(side, 2 * axis - x)
    inner = at[len(pairs) : len(at) - len(pairs)]
    return found | {wish.name: PortPlace(side, x) for wish, x in zip(middle, inner, strict=True)}
