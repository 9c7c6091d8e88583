"""What surrounds rows of transistors: implants and markers, the tap ring, and the well and the thick oxide beyond it.

A tap ring is diffusion of the bulk type with contacts, covered by the first conductor. It is closed, open at some
sides, or only strips below and above the rows.

Dummies at the ends of rows that have no taps of their own are tied by a post at each end, and a bulk rail::

      |=|--[o]--[o]-      gate heads of the upper row's dummies
      |P|                 P: post on the first conductor, over the outermost columns of all rows
      |=|--[o]--[o]-      gate heads of the lower row's dummies
      |=|  |x|
      |=|  |x|            columns of the dummies
    ==[#][#]============  bulk rail on the second conductor, below the rows; the pin of the bulk net

Where a row has a rail on the bulk net, its outermost columns or the posts reach that one, and no other is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from layoutkit.draw.row import row_sizes
from layoutkit.draw.row_metal import hull
from layoutkit.errors import GeometryError
from layoutkit.rectangle import Rectangle

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from layoutkit.draw.row import Row, RowSizes
    from layoutkit.draw.row_metal import Metal
    from layoutkit.draw.sketch import Sketch
    from layoutkit.technology import DeviceSpec, Technology


RingKind = Literal["full", "open", "double", "none", "later"]
RingSide = Literal["bottom", "top", "left", "right"]
SIDES: tuple[RingSide, ...] = ("bottom", "top", "left", "right")
RING = "ring_"
"""The name of a cell that holds only a ring of taps begins with this."""


@dataclass(frozen=True)
class RingStyle:
    """Which taps surround a module.

    Attributes:
        kind: ``full``: a closed ring. ``open``: without the sides ``open_sides``. ``double``: a closed ring, and one of
            the opposite type around it. ``none``: strips of taps below and above. ``later``: no taps, no well and no
            thick oxide; the caller draws one ring around several modules.
        open_sides: Sides without taps; ``open`` needs one to three, ``none`` may leave out ``bottom`` or ``top``.
        outer_net: Net of the outer ring of ``double``; empty for ``VDD`` around NMOS and ``VSS`` around PMOS.

    Raises:
        GeometryError: If the sides do not fit the kind.
    """

    kind: RingKind = "full"
    open_sides: tuple[RingSide, ...] = ()
    outer_net: str = ""

    def __post_init__(self) -> None:
        named, taken = " ".join(self.open_sides) or "no side", set(self.open_sides)
        if not taken <= set(SIDES):
            raise GeometryError(f"the sides of a ring are {', '.join(SIDES)}, got {named}")
        if self.kind == "open" and not 1 <= len(taken) <= 3:
            raise GeometryError(f"an open ring has one to three open sides of {', '.join(SIDES)}, got {named}")
        if self.kind == "none" and taken not in (set(), {"bottom"}, {"top"}):
            raise GeometryError(f"without a ring there are tap strips at the bottom, the top or both, not: {named}")
        if self.kind not in {"open", "none"} and taken:
            raise GeometryError(f"open sides belong to an open ring, not to ring {self.kind}; got {named}")
        if self.outer_net and self.kind != "double":
            raise GeometryError(f"only a double ring has an outer net, ring {self.kind} got {self.outer_net}")

    @property
    def sides(self) -> tuple[RingSide, ...]:
        """The sides that have taps."""
        if self.kind == "later":
            return ()
        possible = ("bottom", "top") if self.kind == "none" else SIDES
        return tuple(side for side in SIDES if side in possible and side not in self.open_sides)


FULL_RING = RingStyle()


class RingSizes(NamedTuple):
    """Lengths of a tap ring. [dbu]"""

    grid: int
    width: int
    contact: int
    contact_space: int
    contact_side: int
    implant: int
    implant_to_active: int
    implant_to_channel: int
    active_space: int
    poly_space: int
    gate_contact_space: int
    max_distance: int
    strip_space: int


def ring_sizes(tech: Technology, device: DeviceSpec, sizes: RowSizes) -> RingSizes:
    """Return the lengths for tap rings around rows of ``device``.

    Raises:
        TechnologyError: If the technology does not state one of them.
    """
    cut = tech.cuts[0]
    least = max(
        tech.dim("tap_width", device),
        tech.conductors[0].width,
        sizes.contact + 2 * max(tech.dim("tap_contact_enclosure", device), tech.contact.enclose_above),
        cut.size + 2 * cut.enclose_below,
    )
    width = sizes.contact + -(-(least - sizes.contact) // (2 * sizes.grid)) * 2 * sizes.grid
    return RingSizes(
        grid=sizes.grid,
        width=width,
        contact=sizes.contact,
        contact_space=sizes.contact_space,
        contact_side=(width - sizes.contact) // 2,
        implant=tech.dim("implant_tap_enclosure", device),
        implant_to_active=tech.dim("implant_to_active", device),
        implant_to_channel=tech.dim("bulk_implant_to_channel", device),
        active_space=tech.dim("active_space", device)
        if not device.drain_marker
        else tech.dim("drain_well_enclosure", device) + tech.dim("drain_well_to_tap", device),
        poly_space=tech.dim("poly_to_tap", device),
        gate_contact_space=tech.dim("gate_contact_to_tap", device),
        max_distance=tech.dim("tap_max_distance", device),
        # Some decks treat any metal with long edges as wide, and all edges of a closed ring are long.
        strip_space=max(sizes.strip_space, tech.conductors[0].wide_space or 0),
    )


def frame(inner: Rectangle, width: int, sides: Collection[RingSide] = SIDES) -> dict[RingSide, Rectangle]:
    """Return the ``sides`` of the ring of ``width`` around ``inner``; bottom and top hold the corners between two."""
    left, right = (width if side in sides else 0 for side in ("left", "right"))
    every: dict[RingSide, Rectangle] = {
        "bottom": Rectangle(inner.left - left, inner.bottom - width, inner.right + right, inner.bottom),
        "top": Rectangle(inner.left - left, inner.top, inner.right + right, inner.top + width),
        "left": Rectangle(inner.left - width, inner.bottom, inner.left, inner.top),
        "right": Rectangle(inner.right, inner.bottom, inner.right + width, inner.top),
    }
    return {side: every[side] for side in SIDES if side in sides}


def ring_shapes(
    inner: Rectangle, ring: RingSizes, sides: Collection[RingSide] = SIDES
) -> Iterator[tuple[str, Rectangle]]:
    """Yield tap, contacts, first conductor and bulk implant of the ring around ``inner``, as (layer role, area)."""
    for side, area in frame(inner, ring.width, sides).items():
        yield "tap", area
        yield "strip", area
        yield "bulk_implant", area.enlarged(ring.implant, ring.implant)
        if side in {"bottom", "top"}:
            low = area.bottom + ring.contact_side
            for left in centred_array(inner.left, inner.right, ring.contact, ring.contact_space, ring.grid):
                yield "contact", Rectangle(left, low, left + ring.contact, low + ring.contact)
        else:
            low = area.left + ring.contact_side
            for bottom in centred_array(inner.bottom, inner.top, ring.contact, ring.contact_space, ring.grid):
                yield "contact", Rectangle(low, bottom, low + ring.contact, bottom + ring.contact)


def centred_array(low: int, high: int, size: int, space: int, grid: int) -> range:
    """Return the lower edges of squares of ``size`` that fit between ``low`` and ``high``, ``space`` away from both.

    The array is centred; its pitch is ``size + space``. The margin separates the arrays of adjacent ring sides.
    """
    pitch = size + space
    count = max(0, (high - low - space) // pitch)
    used = count * pitch - space
    start = low + (high - low - used) // (2 * grid) * grid
    return range(start, start + count * pitch, pitch)


@dataclass(frozen=True)
class TapRing:
    """A ring to be drawn.

    Attributes:
        inner: Its inner edge. [dbu]
        sides: Sides that have taps.
        rails: Which of bottom and top have a rail if they have taps. One of the sides that have taps always has one.
            Without taps at bottom and top the rail crosses the inside at its lower edge.
    """

    inner: Rectangle
    sides: tuple[RingSide, ...] = SIDES
    rails: tuple[RingSide, ...] = ("bottom",)


def draw_tap_ring(
    sketch: Sketch, tech: Technology, device: DeviceSpec, taps: TapRing, net: str
) -> list[tuple[str, Rectangle]]:
    """Draw the ring of bulk taps of ``device`` with its rails and text; return the rails as pins: net and area.

    Raises:
        TechnologyError: If the technology lacks a dimension.
    """
    sizes = row_sizes(tech, device)
    ring = ring_sizes(tech, device, sizes)
    draw_taps(sketch, tech, device, taps)
    pins = []
    for rail, cuts in _rails(taps, ring, sizes):
        sketch.box(tech.conductors[1].layer, rail)
        for left in cuts:
            bottom = rail.bottom + (sizes.rail - sizes.cut) // 2
            sketch.box(tech.cuts[0].layer, Rectangle(left, bottom, left + sizes.cut, bottom + sizes.cut))
        pins.append((net, rail))
    if device.ring_text and set(taps.sides) == set(SIDES):
        x, y = (taps.inner.left + taps.inner.right) // 2, taps.inner.bottom - ring.width // 2
        sketch.text("device_text", device.ring_text, x, y)
    return pins


def draw_taps(sketch: Sketch, tech: Technology, device: DeviceSpec, taps: TapRing) -> None:
    """Draw the taps of a ring on its sides, without rails."""
    ring = ring_sizes(tech, device, row_sizes(tech, device))
    layers = {"strip": tech.conductors[0].layer, "contact": tech.contact.layer, "bulk_implant": device.bulk_implant}
    for kind, area in ring_shapes(taps.inner, ring, taps.sides):
        layer = layers.get(kind, kind)
        if layer is not None:
            sketch.box(layer, area)


def _rails(taps: TapRing, ring: RingSizes, sizes: RowSizes) -> Iterator[tuple[Rectangle, Iterable[int]]]:
    """Yield each rail on the second conductor with the left edges of its cuts."""
    inner, sides = taps.inner, taps.sides
    left = inner.left - (ring.width if "left" in sides else 0)
    right = inner.right + (ring.width if "right" in sides else 0)
    offset = (ring.width - sizes.rail) // (2 * sizes.grid) * sizes.grid
    lows = {"bottom": inner.bottom - ring.width + offset, "top": inner.top + ring.width - offset - sizes.rail}
    tapped = [side for side in ("bottom", "top") if side in sides]
    for side in [side for side in tapped if side in taps.rails] or tapped[:1]:
        cuts = centred_array(inner.left, inner.right, sizes.cut, sizes.cut_space, sizes.grid)
        yield Rectangle(left, lows[side], right, lows[side] + sizes.rail), cuts
    if sides and not tapped:
        middle = (ring.width - sizes.cut) // (2 * sizes.grid) * sizes.grid
        edges = {"left": inner.left - ring.width + middle, "right": inner.right + middle}
        beside = [edge for side, edge in edges.items() if side in sides]
        low = inner.bottom + _crossing_rail(sizes) - sizes.rail
        left = min(left, *(edge - sizes.cut_rail_end for edge in beside))
        right = max(right, *(edge + sizes.cut + sizes.cut_rail_end for edge in beside))
        yield Rectangle(left, low, right, low + sizes.rail), beside


def _crossing_rail(sizes: RowSizes) -> int:
    """Return how far a rail that crosses the inside reaches above its lower edge. [dbu]"""
    return sizes.rail + max(0, sizes.cut_strip_end - (sizes.rail - sizes.cut) // 2)


def row_covers(row: Rectangle, reach: int, sizes: RowSizes, device: DeviceSpec) -> Iterator[tuple[str, Rectangle]]:
    """Yield the implant and the markers over a row's diffusion ``row``, as (layer, area).

    Args:
        row: The diffusion, broken or not, as one rectangle. [dbu]
        reach: How far the implant extends above and below it. [dbu]
        sizes: Lengths of the device's rows.
        device: Flavour.
    """
    if device.implant is not None:
        yield device.implant, row.enlarged(sizes.implant, reach)
    for marker in device.markers:
        yield marker, row.enlarged(sizes.flavour, sizes.flavour + reach - sizes.implant)


def module_covers(
    inner: Rectangle, ring: RingSizes, tech: Technology, device: DeviceSpec, sides: Collection[RingSide] = SIDES
) -> Iterator[tuple[str, Rectangle]]:
    """Yield the well and the covers around the taps whose inner edge is ``inner``, as (layer, area)."""

    def around(beyond_tap: int, beyond_active: int) -> Rectangle:
        low_x, low_y, high_x, high_y = (
            max(beyond_tap + (ring.width if side in sides else 0), beyond_active)
            for side in ("left", "bottom", "right", "top")
        )
        return Rectangle(inner.left - low_x, inner.bottom - low_y, inner.right + high_x, inner.top + high_y)

    beyond_tap = beyond_active = 0
    if device.well:
        beyond_tap = max(tech.dim("well_tap_enclosure", device), ring.implant)
        beyond_active = tech.dim("well_active_enclosure", device)
        yield device.well, around(beyond_tap, beyond_active)
    if device.covers:
        beyond_tap = max(beyond_tap, ring.implant, tech.dim("cover_enclosure", device))
        for cover in device.covers:
            yield cover, around(beyond_tap, beyond_active)


def inner_edge(
    sides: Collection[RingSide], side: RingSide, ring: RingSizes, sizes: RowSizes, *, rail: bool
) -> dict[str, int]:
    """Return how far each kind of shape at the inner edge of a side extends towards the rows. [dbu]

    Args:
        sides: Sides that have taps.
        side: The side in question.
        ring: Lengths of the ring.
        sizes: Lengths of the rows.
        rail: Whether the ring's rail lies on this side.
    """
    if side in sides:
        edge = {"tap": 0, "tap_implant": ring.implant, "tap_contact": -ring.contact_side, "strip": 0}
        return edge | ({"rail": (sizes.rail - ring.width + 1) // 2} if rail else {})
    crossing = side == "bottom" and sides and "top" not in sides
    return {"end": 0} | ({"rail": _crossing_rail(sizes)} if crossing else {})


def tap_distance(area: Rectangle, inner: Rectangle, sides: Collection[RingSide]) -> int:
    """Return how far the farthest point of ``area`` lies from the nearest of the ``sides`` around ``inner``. [dbu]

    Half a database unit counts down; without sides the distance is that of the farther edges of ``inner``.
    """

    def farthest(low: int, high: int, first: int | None, last: int | None) -> int:
        if first is not None and last is not None:
            middle = min(max((first + last) // 2, low), high)
            return min(middle - first, last - middle)
        if first is not None:
            return high - first
        return last - low if last is not None else max(inner.right - inner.left, inner.top - inner.bottom)

    def edge(side: RingSide) -> int | None:
        return getattr(inner, side) if side in sides else None

    return min(
        farthest(area.left, area.right, edge("left"), edge("right")),
        farthest(area.bottom, area.top, edge("bottom"), edge("top")),
    )


def draw_outer_ring(
    sketch: Sketch, tech: Technology, device: DeviceSpec, style: RingStyle, bulk_net: str
) -> list[tuple[str, Rectangle]]:
    """Draw the ring of the opposite type around all that ``sketch`` holds; return its rail as a pin: net and area.

    Around NMOS it is a well with taps; around PMOS it is a ring of substrate taps outside the well.

    Raises:
        GeometryError: If both rings would be on one net, or the process has no device of the opposite type.
        TechnologyError: If the technology lacks a dimension.
    """
    net = style.outer_net or ("VDD" if device.type == "nmos" else "VSS")
    if net == bulk_net:
        raise GeometryError(
            f"the outer ring of a double ring is of the opposite type and needs another net than the bulk's, {bulk_net}"
        )
    other = opposite_device(tech, device)
    ring = ring_sizes(tech, other, row_sizes(tech, other))
    own = sketch.extent()
    to_well = max(tech.dim("tap_to_well", spec) for spec in (device, other))
    if other.well:
        beyond = max(tech.dim("well_tap_enclosure", other), ring.implant)
        beyond = max(beyond, -(-(tech.dim("well_width") - ring.width) // 2))
        gap = max(to_well + beyond, ring.strip_space)
    else:
        beyond, gap = ring.implant, max(to_well, ring.strip_space)
    gap = tech.snap_up(max(gap, ring.active_space, ring.implant_to_active + ring.implant))
    inner = own.enlarged(gap, gap)
    pins = draw_tap_ring(sketch, tech, other, TapRing(inner), net)
    if other.well:
        beyond = tech.snap_up(beyond)
        for area in frame(inner.enlarged(-beyond, -beyond), ring.width + 2 * beyond).values():
            sketch.box(other.well, area)
    if device.covers:
        reach = ring.width + max(beyond, ring.implant, tech.dim("cover_enclosure", other))
        for cover in device.covers:
            sketch.box(cover, inner.enlarged(reach, reach))
    return pins


def opposite_device(tech: Technology, device: DeviceSpec) -> DeviceSpec:
    """Return the transistor of the opposite type with the same covers (thick oxide), the default before others."""
    others = (s for s in tech.devices.values() if s.type != device.type and not s.ring_text)
    found = [s for s in others if set(s.covers) == set(device.covers)]
    if not found:
        raise GeometryError(
            f"{tech.name} has no transistor of the other type that could lend its taps to {device.name}"
        )
    return min(found, key=lambda spec: (not spec.default, bool(spec.markers), spec.name))


class TiedRow(NamedTuple):
    """The metal of one row's end dummies: its outermost columns, and what joins the gates to them. [dbu]

    The pads are as wide as those columns below rails. The gate rails are those on the bulk net, for dummies inside the
    row.
    """

    columns: tuple[Rectangle, Rectangle]
    pads: tuple[Rectangle, Rectangle]
    bars: tuple[Rectangle, Rectangle]
    gate_rails: tuple[Rectangle, ...]


def ends_in_dummies(row: Row, bulk_net: str) -> bool:
    """Return whether both ends of ``row`` are dummies whose gate and outer side are on the bulk net."""
    first, last = row.fingers[0], row.fingers[-1]
    outer = {first.gate, first.left, last.gate, last.right}
    return len(row.fingers) > 1 and not (first.device or last.device) and outer == {bulk_net}


def tie_shapes(rows: Sequence[TiedRow], rails: Sequence[Rectangle], metal: Metal) -> Iterator[tuple[str, Rectangle]]:
    """Yield the posts and what joins them to the bulk ``rails`` below or above all rows, as (layer, area)."""
    ends = [area for row in rows for area in (*row.columns, *row.bars, *row.gate_rails)]
    feet = [_foot(rail, metal) for rail in rails]
    low = min(area.bottom for area in (*ends, *feet))
    high = max(area.top for area in (*ends, *feet))
    for side in (0, 1):
        columns = [row.columns[side] for row in rows]
        width = min(area.right - area.left for area in columns)
        left = max(area.right for area in columns) - width if side else min(area.left for area in columns)
        post = Rectangle(left, low, left + width, high)
        yield metal.layer(0), post
        for row in rows:
            column, bar, pad = row.columns[side], row.bars[side], row.pads[side]
            gap = max(pad.left - post.right, post.left - pad.right)
            # Metal as high as the column between it and the post would be wide, and keep more distance.
            joining = bar if gap >= metal.space(0, pad.right - pad.left) else hull((column, bar))
            yield metal.layer(0), hull((bar, post._replace(bottom=bar.bottom, top=bar.top)))
            if joining != bar:
                yield metal.layer(0), hull((column, post._replace(bottom=joining.bottom, top=joining.top)))
            for rail in row.gate_rails:
                end = metal.cuts[0].enclose_below_end
                foot = _beside_post(_foot(rail, metal).enlarged(0, end), post, row.bars[side])
                yield metal.layer(0), hull((row.bars[side], foot))
                yield from _cuts(foot, rail, metal)
        for rail, foot in zip(rails, feet, strict=True):
            wide = _beside_post(foot, post, hull(row.bars[side] for row in rows))
            yield metal.layer(0), wide
            yield from _cuts(wide, rail, metal)


def _beside_post(foot: Rectangle, post: Rectangle, bar: Rectangle) -> Rectangle:
    return foot._replace(left=min(bar.left, post.left), right=max(bar.right, post.right))


def _cuts(foot: Rectangle, rail: Rectangle, metal: Metal) -> Iterator[tuple[str, Rectangle]]:
    return ((metal.cuts[0].layer, area) for area in metal.cuts_between(0, foot, rail, crowded=True))


def _foot(rail: Rectangle, metal: Metal) -> Rectangle:
    """Return ``rail`` as high as the first conductor below it is."""
    shrink = (rail.top - rail.bottom - metal.wire(0)) // (2 * metal.grid) * metal.grid
    return rail.enlarged(0, -shrink)
