"""Plate (MIM) capacitors: equal plates over one bottom plate, all in parallel.

::

    +----------------------------+   bottom plate (a conductor)
    |  +----+  +----+        +-+ |
    |  | T  |  | T  |        |B| |   T: top conductor over the plates, joined to each by cuts
    |  +----+  +----+        +-+ |   B: the bottom plate's cuts to the top conductor
    +-----|-------------------|--+
         [#]                  |      vias, two side by side, down to the second conductor
    =====================  p  |
                             [#]
    =======================  n       rails, as those of every other module

The bottom plate is left through the top conductor because some processes allow no via below it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, sqrt
from typing import TYPE_CHECKING

from layoutkit.draw.module import Keepout
from layoutkit.draw.plate import PlateRules, ViaColumn
from layoutkit.draw.rectangles_module import DrawnRectangles, rectangles_module
from layoutkit.draw.sizes import row_sizes
from layoutkit.draw.sketch import Area, Sketch

if TYPE_CHECKING:
    import klayout.db as kdb

    from layoutkit.draw.module import Module
    from layoutkit.draw.passive import Capacitor
    from layoutkit.technology import PassiveSpec, Technology


@dataclass(frozen=True)
class CapacitorSpec:
    """A capacitor to be drawn.

    Attributes:
        name: Name of the cell.
        capacitor: What to draw.
        columns: Plates side by side; None for about a square.
        labels: Whether pins carry net names.
        parts: Devices in parallel that it stands for, each with its number of plates; empty for itself.
    """

    name: str
    capacitor: Capacitor
    columns: int | None = None
    labels: bool = True
    parts: tuple[tuple[str, int], ...] = ()


def draw_capacitor(layout: kdb.Layout, tech: Technology, spec: CapacitorSpec) -> Module:
    """Draw the capacitor and return its module; plates are called ``<id>_1``, ``<id>_2`` from the lower left.

    Raises:
        TechnologyError: If the process lacks a dimension, or the capacitor lies too low to be reached from its rails.
    """
    return _Plates(tech, spec).module(layout)


class _Plates:
    def __init__(self, tech: Technology, spec: CapacitorSpec) -> None:
        self.tech = tech
        self.spec = spec
        self.flavour: PassiveSpec = spec.capacitor.spec
        self.sketch = Sketch()
        self.rules = PlateRules(tech, self.flavour)
        self.top, self.bottom = self.rules.top, self.rules.bottom
        cap, space = spec.capacitor, self.rules.plate_space
        self.pitch_x, self.pitch_y = cap.width + space, cap.length + space
        columns = spec.columns or ceil(sqrt(cap.m * self.pitch_y / self.pitch_x))
        self.columns = min(max(1, columns), cap.m)
        self.pins: list[tuple[str, Area]] = []

    # ---- what lies where

    def _plates(self) -> list[Area]:
        cap, found = self.spec.capacitor, []
        for i in range(cap.m):
            row, column = divmod(i, self.columns)
            x, y = column * self.pitch_x, row * self.pitch_y
            found.append(Area(x, y, x + cap.width, y + cap.length))
        return found

    # ---- drawing

    def module(self, layout: kdb.Layout) -> Module:
        sketch, rules = self.sketch, self.rules
        plates = self._plates()
        for plate in plates:
            rules.draw_plate(sketch, plate)
        whole = _bounds(plates)
        over_plates, strap, bottom = rules.over_plate(whole), rules.bottom_strap(whole), rules.bottom_plate(whole)
        sketch.box(self.bottom.layer, bottom)
        sketch.box(self.top.layer, over_plates)
        sketch.box(self.top.layer, rules.over(strap))
        for cut in rules.cuts_in(strap):
            sketch.box(rules.cut_layer, cut)
        self._lead_out(bottom, over_plates, rules.over(strap))
        owners = [name for name, count in self.spec.parts for _ in range(count)]
        drawn = DrawnRectangles(self.spec.capacitor, plates, self.pins, self.spec.labels, owners)
        module = rectangles_module(layout, self.tech, self.spec.name, sketch, drawn)
        return replace(module, keepouts=self._keepouts(bottom, sketch.extent()))

    def _lead_out(self, bottom: Area, over_plates: Area, over_strap: Area) -> None:
        """Lead both terminals down beside the bottom plate and to a rail each."""
        tech, sketch, column = self.tech, self.sketch, ViaColumn(self.tech, self.top.name)
        sizes = row_sizes(tech, tech.device("nmos"))
        reach, half = column.reach(), column.half()
        y = tech.snap(bottom.bottom - self.rules.clearance() - reach) - tech.grid
        pitch = tech.snap_up(max(column.pitch(), reach + sizes.rail + sizes.rail_space))
        x_n = tech.snap((over_strap.left + over_strap.right) / 2)
        x_p = min(tech.snap((over_plates.left + over_plates.right) / 2), x_n - column.pitch())
        cap = self.spec.capacitor
        strap = column.half_width(column.top)
        left, right = min(bottom.left, x_p - half), max(bottom.right, x_n + half)
        for net, x, low, over in ((cap.p, x_p, y, over_plates), (cap.n, x_n, y - pitch, over_strap)):
            column.draw(sketch, x, low)
            sketch.box(self.top.layer, Area(x - strap, low, x + strap, over.top))
            rail = Area(left, low - sizes.rail // 2, right, low - sizes.rail // 2 + sizes.rail)
            sketch.box(tech.conductors[1].layer, rail)
            self.pins.append((net, rail))

    def _keepouts(self, plate: Area, extent: Area) -> tuple[Keepout, ...]:
        """Return where other nets may not go: around the bottom plate, and with a via below it."""
        import klayout.db as kdb

        bottom = kdb.Box(*plate).moved(-extent.left, -extent.bottom)
        names = [conductor.name for conductor in self.tech.conductors]
        level = names.index(self.bottom.name)
        beyond = self.rules.beside_bottom(min(bottom.width(), bottom.height()))
        found = [(self.bottom.name, bottom.enlarged(beyond, beyond)), (self.top.name, bottom)]
        found += [(cut.name, bottom) for cut in self.tech.cuts[level - 1 : level + 1]]
        return tuple(Keepout(layer, box, by_rule=True) for layer, box in found)


def _bounds(areas: list[Area]) -> Area:
    return Area(
        min(area.left for area in areas),
        min(area.bottom for area in areas),
        max(area.right for area in areas),
        max(area.top for area in areas),
    )
