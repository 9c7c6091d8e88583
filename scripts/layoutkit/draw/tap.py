"""Taps as devices: equal rectangles of diffusion of the well's own type, with the marker and text that name them.

::

    +-------------------------+   well, where the tap lies in one
    |  +------+   +------+    |
    |  | #  # |   | #  # |    |   diffusion with contacts, the first conductor over each
    | =|==x===|===|==x===|=   |   rail of the second conductor, joined to each by cuts
    |  +-text-+   +-text-+    |
    +-------------------------+
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from layoutkit.draw.diode import RectangleDrawing
from layoutkit.draw.module import DrawnRectangles, rectangles_module
from layoutkit.draw.passive import EqualRectangles, nets_of, rectangle_on_grid, spec_of_kind
from layoutkit.draw.ring import module_covers
from layoutkit.errors import GeometryError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import klayout.db as kdb

    from layoutkit.draw.module import Module
    from layoutkit.technology import Technology
    from layoutkit.technology.passive_sizes import PassiveSize


@dataclass(frozen=True)
class Tap(EqualRectangles):
    """A tap: ``width`` is the longer side of a rectangle, ``p`` the net of its metal and of the well below it."""


def tap(
    tech: Technology, device_id: str, flavour: str, size: PassiveSize, nets: Mapping[str, str] | None = None
) -> Tap:
    """Return the tap ``device_id`` with its sides on the grid of ``tech``; the arguments are those of ``diode``.

    Raises:
        GeometryError: If a size is below or above what the process allows.
        TechnologyError: If the process has no such device.
    """
    spec = spec_of_kind(tech, flavour, "tap")
    longer, shorter = sorted((size.w_m, size.l_m), reverse=True)
    width, length, m, warnings = rectangle_on_grid(tech, device_id, spec, replace(size, w_m=longer, l_m=shorter))
    return Tap(device_id, spec, width, length, m, *nets_of(device_id, nets), warnings)


def draw_tap(layout: kdb.Layout, tech: Technology, name: str, device: Tap, *, labels: bool = True) -> Module:
    """Draw the tap into the cell ``name`` and return its module; its rectangles are ``<id>_1``, ``<id>_2``, ...

    Raises:
        GeometryError: If the metal of a rectangle would be too wide.
        TechnologyError: If the technology lacks a dimension.
    """
    return _Drawing(tech, device, labels=labels).module(layout, name)


class _Drawing(RectangleDrawing):
    def _check(self) -> None:
        tech, device, widest = self.tech, self.device, self.tech.conductors[0].max_width
        if widest is not None and min(self.plate) > widest:
            raise GeometryError(
                f"{device.id} cannot be one rectangle of {tech.to_um(device.width):g} x {tech.to_um(device.length):g} "
                f"um: {tech.conductors[0].name} is at most {tech.to_um(widest):g} um wide. "
                "Use more and smaller units (m)"
            )

    def module(self, layout: kdb.Layout, name: str) -> Module:
        """Draw it into the cell ``name`` and return its module."""
        sketch, tech, spec, ring = self.sketch, self.tech, self.device.spec, self.ring
        row = self._row()
        for junction, plate in zip(self.junctions, self.plates, strict=True):
            self._draw_junction(junction, plate)
            for marker in spec.markers:
                sketch.box(marker, junction)
            if spec.ring_text:
                middle = (junction.left + junction.right) // 2
                sketch.text("device_text", spec.ring_text, middle, junction.bottom + tech.grid)
        if self.transistor.bulk_implant is not None:
            sketch.box(self.transistor.bulk_implant, row.enlarged(ring.implant, ring.implant))
        for layer, area in module_covers(row.enlarged(-ring.width, -ring.width), ring, tech, self.transistor):
            sketch.box(layer, area)
        sketch.box(tech.conductors[1].layer, self.rail)
        drawn = DrawnRectangles(self.device, self.junctions, [(self.device.p, self.rail)], self.labels)
        return rectangles_module(layout, tech, name, sketch, drawn)
