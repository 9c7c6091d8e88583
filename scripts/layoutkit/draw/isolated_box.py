"""Isolated boxes: a p well of stated size in a deep n well, as a device of its three terminals.

::

    [p+ tap]   |  [n+ tap]  |   [p+ tap]    |  [n+ tap]  |   [p+ tap]
               +------------+               +------------+
               |   n well      isolated p well    n well |
               +-------- deep n well, as large as -------+
                          the card states

The n+ taps lie in a closed ring of n well on the edge of the box, which the marker covers as well, and a ring of
substrate taps lies around all boxes. The p well is empty but for its tap: transistors whose body is its net get wells
of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutkit.draw.deep_well import deep_well_of
from layoutkit.draw.fixed_cell import FixedCell
from layoutkit.draw.module import DrawnRectangles, rectangles_module
from layoutkit.draw.passive import rectangle_on_grid, spec_of_kind
from layoutkit.draw.ring import TapRing, draw_tap_ring, frame, opposite_device, ring_sizes
from layoutkit.draw.sizes import row_sizes
from layoutkit.draw.sketch import Area, Sketch, spread_squares

if TYPE_CHECKING:
    from collections.abc import Mapping

    import klayout.db as kdb

    from layoutkit.draw.module import Module
    from layoutkit.technology import Technology
    from layoutkit.technology.passive_sizes import PassiveSize

KIND = "isolated_box"
_MOST_CONTACTS = 60


def isolated_box(
    tech: Technology, device_id: str, flavour: str, size: PassiveSize, nets: Mapping[str, str] | None = None
) -> FixedCell:
    """Return the box ``device_id`` with its sides on the grid of ``tech``; the arguments are those of ``diode``.

    Raises:
        GeometryError: If a size is below what the taps in the box need.
        TechnologyError: If the process has no such device.
    """
    spec = spec_of_kind(tech, flavour, KIND)
    width, length, m, warnings = rectangle_on_grid(tech, device_id, spec, size)
    given = nets or {}
    named = {terminal: given.get(terminal) or f"{device_id}_{terminal.upper()}" for terminal in spec.kind.terminals}
    return FixedCell(device_id, spec, width, length, m, named["p"], named["n"], warnings, named)


def draw_isolated_box(
    layout: kdb.Layout, tech: Technology, name: str, device: FixedCell, *, labels: bool = True
) -> Module:
    """Draw the boxes into the cell ``name`` and return its module; they are called ``<id>_1``, ``<id>_2``, ...

    Raises:
        TechnologyError: If the technology lacks a dimension.
        UnsupportedOperationError: If the process has no deep well.
    """
    return _Drawing(tech, device).module(layout, name, labels=labels)


class _Drawing:
    def __init__(self, tech: Technology, device: FixedCell) -> None:
        self.tech = tech
        self.device = device
        self.outside = tech.device("nmos")
        self.deep = deep_well_of(tech, self.outside)
        self.tapped = opposite_device(tech, self.outside)
        self.ring = ring_sizes(tech, self.tapped, row_sizes(tech, self.tapped))
        self.inner_ring = ring_sizes(tech, self.outside, row_sizes(tech, self.outside))
        self.edge = max(tech.dim("well_tap_enclosure", self.tapped), self.ring.implant)
        self.to_hole = max(
            2 * self.edge + self.ring.width, self.deep.dim("beyond_hole"), tech.dim("well_width", self.tapped)
        )
        self.sketch = Sketch()
        pitch = device.width + self.deep.dim("space")
        self.boxes = [Area(x, 0, x + device.width, device.length) for x in range(0, device.m * pitch, pitch)]

    def module(self, layout: kdb.Layout, name: str, *, labels: bool) -> Module:
        pins = [pin for box in self.boxes for pin in self._box(box)]
        ring, deep = self.inner_ring, self.deep
        apart = max(deep.dim("to_taps"), self.tech.dim("tap_to_well", self.outside), ring.strip_space)
        around = Area(0, 0, self.boxes[-1].right, self.device.length).enlarged(apart, apart)
        pins += draw_tap_ring(self.sketch, self.tech, self.outside, TapRing(around), self.device.nets["s"])
        drawn = DrawnRectangles(self.device, self.boxes, pins, labels, joined=self.device.m == 1)
        return rectangles_module(layout, self.tech, name, self.sketch, drawn)

    def _box(self, box: Area) -> list[tuple[str, Area]]:
        """Draw one box and return its pins."""
        sketch, tech, spec = self.sketch, self.tech, self.device.spec
        hole = box.enlarged(-self.to_hole, -self.to_hole)
        sketch.box(spec.well, box)
        for side in frame(hole, self.to_hole).values():
            for layer in ("nwell", *spec.markers):
                sketch.box(layer, side)
        sketch.text("device_text", spec.ring_text, (box.left + box.right) // 2, box.bottom + self.edge)
        taps = box.enlarged(-self.edge - self.ring.width, -self.edge - self.ring.width)
        pins = draw_tap_ring(sketch, tech, self.tapped, TapRing(taps), self.device.nets["n"])
        return [*pins, (self.device.nets["p"], self._inner_tap(box))]

    def _inner_tap(self, box: Area) -> Area:
        """Draw the tap of the p well across its middle, and return its rail."""
        sketch, tech, ring, sizes = self.sketch, self.tech, self.inner_ring, row_sizes(self.tech, self.outside)
        beside = max(
            self.to_hole + max(tech.dim("tap_to_well", self.outside), self.deep.dim("active_to_ring")),
            self.deep.dim("active_enclosure"),
            self.edge + self.ring.width + max(ring.active_space, ring.implant + self.ring.implant_to_active),
            self.edge + self.ring.width + ring.strip_space,
        )
        height = tech.snap(min(2 * ring.width, self.device.length - 2 * beside) / 2) * 2  # for the area of its implant
        low = tech.snap((box.bottom + box.top - height) / 2)
        tap = Area(box.left + beside, low, box.right - beside, low + height)
        sketch.box("tap", tap)
        sketch.box(tech.conductors[0].layer, tap)
        sketch.box(tech.conductors[1].layer, tap)
        if self.outside.bulk_implant is not None:
            sketch.box(self.outside.bulk_implant, tap.enlarged(ring.implant, ring.implant))
        inside = tap.enlarged(-ring.contact_side, -ring.contact_side)
        for contact in spread_squares(inside, ring.contact, ring.contact_space, tech.grid, _MOST_CONTACTS):
            sketch.box(tech.contact.layer, contact)
        middle = low + (height - sizes.cut) // (2 * tech.grid) * tech.grid
        ends = max(sizes.cut_strip_end, sizes.cut_rail_end)
        for cut in spread_squares(
            Area(tap.left + ends, middle, tap.right - ends, middle + sizes.cut),
            sizes.cut, sizes.cut_space, tech.grid, _MOST_CONTACTS,
        ):  # fmt: skip
            sketch.box(tech.cuts[0].layer, cut)
        return tap
