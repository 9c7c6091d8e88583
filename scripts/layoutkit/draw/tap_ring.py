"""The substrate tap ring around something that is no transistor row, with its rail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutkit.draw.ring import centred_array, ring_shapes, ring_sizes
from layoutkit.draw.sizes import row_sizes
from layoutkit.draw.sketch import Area

if TYPE_CHECKING:
    from layoutkit.draw.sketch import Sketch
    from layoutkit.technology import DeviceSpec, Technology


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
