"""Plate capacitors in a ring of substrate taps, with a wide feed on either side: those for radio frequencies.

::

              +------------------ ring ------------------+
              |   ...... marker (no well below) ......   |
              |   :  +------ bottom plate ------+     :  |
     p  [#]======== top ====[ T ]               |=====bottom====[#]  n
              |   :  +--------------------------+     :  |
              +===================b=====================-+

The plate is ``l`` long in the direction of the feeds and ``w`` wide across. Diffusion and metal of the ring are open
below the feed of the bottom plate; its implant is closed. The feeds end in vias down to the second conductor.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from layoutkit.draw.module import Keepout
from layoutkit.draw.plate import PlateRules, ViaColumn
from layoutkit.draw.rectangles_module import DrawnRectangles, rectangles_module
from layoutkit.draw.sizes import row_sizes
from layoutkit.draw.sketch import Area, Sketch, spread_squares

if TYPE_CHECKING:
    import klayout.db as kdb

    from layoutkit.draw.capacitor import CapacitorSpec
    from layoutkit.draw.module import Module
    from layoutkit.technology import Technology

_MOST_TAPS = 400
"""Contacts on one side of a ring in a row, and cuts below its rail."""


def draw_shielded_capacitor(layout: kdb.Layout, tech: Technology, spec: CapacitorSpec) -> Module:
    """Draw the capacitor, its units above each other, and return its module; units are called as other plates are.

    Raises:
        TechnologyError: If the process lacks a dimension.
    """
    return _Shielded(tech, spec).module(layout)


class _Shielded:
    def __init__(self, tech: Technology, spec: CapacitorSpec) -> None:
        self.tech = tech
        self.spec = spec
        self.cap = spec.capacitor
        self.flavour = spec.capacitor.spec
        self.sketch = Sketch()
        self.rules = PlateRules(tech, self.flavour)
        self.like = tech.device("nmos")
        self.columns = (ViaColumn(tech, self.rules.top.name), ViaColumn(tech, self.rules.bottom.name))
        dim = self.flavour.dim
        self.inner = dim("marker_enclosure") + dim("ring_space")
        self.outer = self.inner + dim("ring_width")
        self.beyond = self.outer + dim("ring_implant_enclosure")

    def module(self, layout: kdb.Layout) -> Module:
        pitch = (
            self.cap.width
            + 2 * self.beyond
            + self.tech.snap_up(
                max(self.tech.dim("implant_space", self.like), self.tech.dim("active_space", self.like))
            )
        )
        plates = [Area(0, i * pitch, self.cap.length, i * pitch + self.cap.width) for i in range(self.cap.m)]
        pins = [(self.cap.b, self._ring(plate)) for plate in plates]
        for below, above in pairwise(plate.enlarged(self.outer, self.outer) for plate in plates):
            between = Area(below.left, below.top, below.right, above.bottom)
            self.sketch.box(self.tech.conductors[0].layer, between)
        ends = [self._plate(plate) for plate in plates]
        for net, pads in zip((self.cap.p, self.cap.n), zip(*ends, strict=True), strict=True):
            bar = Area(pads[0].left, pads[0].bottom, pads[0].right, pads[-1].top)
            self.sketch.box(self.tech.conductors[1].layer, bar)
            pins.append((net, bar))
        owners = [name for name, count in self.spec.parts for _ in range(count)]
        drawn = DrawnRectangles(self.cap, plates, pins, self.spec.labels, owners)
        module = rectangles_module(layout, self.tech, self.spec.name, self.sketch, drawn)
        return replace(module, keepouts=tuple(self._keepouts(plates)))

    def _feed(self, plate: Area) -> tuple[int, int]:
        """Return lower and upper edge of the feeds."""
        low = plate.bottom + self.tech.snap((self.cap.width - self.cap.feed) / 2)
        return low, low + self.cap.feed

    def _plate(self, plate: Area) -> tuple[Area, Area]:
        """Draw plate, marker and both feeds with their vias; return the pads on the second conductor."""
        sketch, rules, dim = self.sketch, self.rules, self.flavour.dim
        sketch.box(self.flavour.parts["plate"], plate)
        for marker in self.flavour.markers:
            sketch.box(marker, plate.enlarged(dim("marker_enclosure"), dim("marker_enclosure")))
        inside = dim("plate_cut_enclosure")
        sketch.box(rules.top.layer, plate.enlarged(-inside, -inside))
        inside += dim("top_cut_enclosure")
        for cut in rules.cuts_in(plate.enlarged(-inside, -inside)):
            sketch.box(rules.cut_layer, cut)
        around = plate.enlarged(dim("bottom_enclosure"), dim("bottom_enclosure"))
        sketch.box(rules.bottom.layer, around)
        if self.flavour.ring_text:
            x, y = (plate.left + plate.right) // 2, plate.top + self.flavour.dim("marker_enclosure") * 2 // 3
            sketch.text("device_text", self.flavour.ring_text, x, y)
        low, high = self._feed(plate)
        y = self.tech.snap((low + high) / 2)
        pads = []
        for column, left in zip(self.columns, (True, False), strict=True):
            half, conductor = column.half(), self.tech.conductors[column.top]
            away = self.beyond + self.rules.clearance() + half
            x = self.tech.snap(plate.left - away if left else plate.right + away)
            column.draw(sketch, x, y)
            reach = column.half_width(column.top)
            ends = (x - reach, plate.left + dim("plate_cut_enclosure")) if left else (around.right, x + reach)
            sketch.box(conductor.layer, Area(ends[0], low, ends[1], high))
            half_width, half_height = column.half_width(1), column.half_height(1)
            pads.append(Area(x - half_width, y - half_height, x + half_width, y + half_height))
        return pads[0], pads[1]

    def _ring(self, plate: Area) -> Area:
        """Draw the ring of taps around ``plate``, open below the feed of the bottom plate; return its rail."""
        sketch, tech, sizes = self.sketch, self.tech, row_sizes(self.tech, self.like)
        inner, outer = plate.enlarged(self.inner, self.inner), plate.enlarged(self.outer, self.outer)
        low, high = self._feed(plate)
        sides = [
            Area(outer.left, outer.bottom, outer.right, inner.bottom),
            Area(outer.left, inner.top, outer.right, outer.top),
            Area(outer.left, inner.bottom, inner.left, inner.top),
            Area(inner.right, inner.bottom, outer.right, low),
            Area(inner.right, high, outer.right, inner.top),
        ]
        inset = self.flavour.dim("ring_contact_enclosure")
        space = max(tech.contact.space, tech.contact.array_space)
        for side in sides:
            sketch.box("tap", side)
            sketch.box(tech.conductors[0].layer, side)
            for contact in spread_squares(
                side.enlarged(-inset, -inset), tech.contact.size, space, tech.grid, _MOST_TAPS
            ):
                sketch.box(tech.contact.layer, contact)
        grow = self.flavour.dim("ring_implant_enclosure")
        width = self.outer - self.inner
        implant = str(self.like.bulk_implant)
        for side in (*sides[:3], Area(inner.right, inner.bottom, outer.right, inner.top)):
            sketch.box(implant, side.enlarged(grow, grow))
        middle = outer.bottom + width // 2
        rail = Area(outer.left, middle - sizes.rail // 2, outer.right, middle - sizes.rail // 2 + sizes.rail)
        sketch.box(tech.conductors[1].layer, rail)
        below = middle - sizes.cut // 2
        row = Area(rail.left + inset, below, rail.right - inset, below + sizes.cut)
        for cut in spread_squares(row, sizes.cut, sizes.cut_space, tech.grid, _MOST_TAPS):
            sketch.box(tech.cuts[0].layer, cut)
        return rail

    def _keepouts(self, plates: list[Area]) -> list[Keepout]:
        """Return where other nets may not go: over the inside of the ring, and beside the wide feed of the plate."""
        import klayout.db as kdb

        extent, found = self.sketch.extent(), []
        names = [conductor.name for conductor in self.tech.conductors]
        level = names.index(self.rules.top.name)
        for plate in plates:
            box = kdb.Box(*plate.enlarged(self.inner, self.inner)).moved(-extent.left, -extent.bottom)
            found += [Keepout(name, box, by_rule=True) for name in names[: level + 1]]
            found += [Keepout(cut.name, box, by_rule=True) for cut in self.tech.cuts[:level]]
            low, high = self._feed(plate)
            beside = self.rules.beside_bottom(min(high - low, self.outer))
            feed = kdb.Box(plate.right, low, extent.right, high).moved(-extent.left, -extent.bottom)
            found.append(Keepout(self.rules.bottom.name, feed.enlarged(0, beside), by_rule=True))
        return found
