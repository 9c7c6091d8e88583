"""What lies over whole rows and modules: source-drain implants, threshold markers, the well, the thick oxide."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from layoutkit.draw.ring import RingSizes
    from layoutkit.draw.sizes import RowSizes
    from layoutkit.draw.sketch import Area
    from layoutkit.technology import DeviceSpec, Technology


def row_covers(row: Area, reach: int, sizes: RowSizes, device: DeviceSpec) -> Iterator[tuple[str, Area]]:
    """Yield the implant and the markers over a row's diffusion ``row``, as (layer, area).

    Args:
        row: The diffusion, broken or not, as one rectangle. [dbu]
        reach: How far the implant reaches above and below it. [dbu]
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
