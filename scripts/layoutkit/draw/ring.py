"""What surrounds rows of transistors: implants and markers, the tap ring, and the well and the thick oxide beyond it.

A tap ring is closed diffusion of the bulk type with contacts, covered by the first conductor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from layoutkit.draw.sizes import row_sizes
from layoutkit.draw.sketch import Area

if TYPE_CHECKING:
    from collections.abc import Iterator

    from layoutkit.draw.sizes import RowSizes
    from layoutkit.draw.sketch import Sketch
    from layoutkit.technology import DeviceSpec, Technology


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
        active_space=tech.dim("active_space", device),
        poly_space=tech.dim("poly_to_tap", device),
        gate_contact_space=tech.dim("gate_contact_to_tap", device),
        max_distance=tech.dim("tap_max_distance", device),
        # Some decks treat any metal with long edges as wide, and all edges of a closed ring are long.
        strip_space=max(sizes.strip_space, tech.conductors[0].wide_space or 0),
    )


def frame(inner: Area, width: int) -> list[Area]:
    """Return the four sides of the closed ring of ``width`` around ``inner``: bottom, top, left, right."""
    outer = inner.enlarged(width, width)
    return [
        Area(outer.left, outer.bottom, outer.right, inner.bottom),
        Area(outer.left, inner.top, outer.right, outer.top),
        Area(outer.left, inner.bottom, inner.left, inner.top),
        Area(inner.right, inner.bottom, outer.right, inner.top),
    ]


def ring_shapes(inner: Area, ring: RingSizes) -> Iterator[tuple[str, Area]]:
    """Yield tap, contacts, first conductor and bulk implant of the ring around ``inner``, as (layer role, area)."""
    for side in frame(inner, ring.width):
        yield "tap", side
        yield "strip", side
    for area in frame(inner.enlarged(-ring.implant, -ring.implant), ring.width + 2 * ring.implant):
        yield "bulk_implant", area
    low, high = inner.bottom - ring.contact_side - ring.contact, inner.top + ring.contact_side
    for left in centred_array(inner.left, inner.right, ring.contact, ring.contact_space, ring.grid):
        yield "contact", Area(left, low, left + ring.contact, low + ring.contact)
        yield "contact", Area(left, high, left + ring.contact, high + ring.contact)
    low, high = inner.left - ring.contact_side - ring.contact, inner.right + ring.contact_side
    for bottom in centred_array(inner.bottom, inner.top, ring.contact, ring.contact_space, ring.grid):
        yield "contact", Area(low, bottom, low + ring.contact, bottom + ring.contact)
        yield "contact", Area(high, bottom, high + ring.contact, bottom + ring.contact)


def centred_array(low: int, high: int, size: int, space: int, grid: int) -> range:
    """Return the lower edges of squares of ``size`` that fit between ``low`` and ``high``, ``space`` away from both.

    The array is centred; its pitch is ``size + space``. The margin separates the arrays of adjacent ring sides.
    """
    pitch = size + space
    count = max(0, (high - low - space) // pitch)
    used = count * pitch - space
    start = low + (high - low - used) // (2 * grid) * grid
    return range(start, start + count * pitch, pitch)


def draw_tap_ring(
    sketch: Sketch, tech: Technology, device: DeviceSpec, inner: Area, net: str
) -> list[tuple[str, Area]]:
    """Draw the ring of bulk taps of ``device`` around ``inner``; return its rail as a pin: net and area.

    Raises:
        TechnologyError: If the technology lacks a dimension.
    """
    sizes = row_sizes(tech, device)
    ring = ring_sizes(tech, device, sizes)
    layers = {
        "strip": tech.conductors[0].layer,
        "contact": tech.contact.layer,
        "bulk_implant": device.bulk_implant,
    }
    for kind, area in ring_shapes(inner, ring):
        layer = layers.get(kind, kind)
        if layer is not None:
            sketch.box(layer, area)
    low = inner.bottom - ring.width + (ring.width - sizes.rail) // (2 * sizes.grid) * sizes.grid
    rail = Area(inner.left - ring.width, low, inner.right + ring.width, low + sizes.rail)
    sketch.box(tech.conductors[1].layer, rail)
    bottom = low + (sizes.rail - sizes.cut) // 2
    for left in centred_array(inner.left, inner.right, sizes.cut, sizes.cut_space, sizes.grid):
        sketch.box(tech.cuts[0].layer, Area(left, bottom, left + sizes.cut, bottom + sizes.cut))
    return [(net, rail)]


def row_covers(row: Area, reach: int, sizes: RowSizes, device: DeviceSpec) -> Iterator[tuple[str, Area]]:
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


def module_covers(inner: Area, ring: RingSizes, tech: Technology, device: DeviceSpec) -> Iterator[tuple[str, Area]]:
    """Yield the well and the covers around the tap ring whose inner edge is ``inner``, as (layer, area)."""
    reach = 0
    if device.well:
        beyond_tap = max(tech.dim("well_tap_enclosure", device), ring.implant)
        reach = max(ring.width + beyond_tap, tech.dim("well_active_enclosure", device))
        yield device.well, inner.enlarged(reach, reach)
    if device.covers:
        reach = max(reach, ring.width + max(ring.implant, tech.dim("cover_enclosure", device)))
        for cover in device.covers:
            yield cover, inner.enlarged(reach, reach)
