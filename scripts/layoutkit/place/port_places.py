"""Where the ports of a cell lie along the sides of its boundary: side, order and even spacing. All lengths in dbu."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from layoutkit.place.blocks import Rectangle

Side = Literal["left", "right", "bottom", "top"]
SIDES: tuple[Side, ...] = ("left", "right", "bottom", "top")
OPPOSITE: dict[Side, Side] = {"left": "right", "right": "left", "bottom": "bottom", "top": "top"}
"""Side of a port's mirror image about a vertical axis."""


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
