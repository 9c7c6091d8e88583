"""The closed tap ring around a module: diffusion of the bulk type with contacts, joined by the first conductor."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from layoutkit.draw.sketch import Area

if TYPE_CHECKING:
    from collections.abc import Iterator

    from layoutkit.draw.sizes import RowSizes
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
        # Some decks take any metal with long edges for wide, and a closed ring has no others.
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
    """Return the lower edges of as many squares of ``size`` as lie between ``low`` and ``high``, ``space`` off both.

    The array is centred; its pitch is ``size + space``. The margin keeps arrays of adjoining ring sides apart.
    """
    pitch = size + space
    count = max(0, (high - low - space) // pitch)
    used = count * pitch - space
    start = low + (high - low - used) // (2 * grid) * grid
    return range(start, start + count * pitch, pitch)
