"""Plate (MIM) capacitors: equal plates over one bottom plate, all in parallel.

::

    +----------------------------+   bottom plate (a conductor)
    |  +----+  +----+        +-+ |
    |  | T  |  | T  |        |B| |   T: top conductor over the plates, joined to each by cuts
    |  +----+  +----+        +-+ |   B: the bottom plate's cuts to the top conductor
    +-----|-------------------|--+
         [#]                  |      vias down to the second conductor
    =====================  p  |
                             [#]
    =======================  n       rails, as those of every other module

The bottom plate is left through the top conductor because some processes allow no via below it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt
from typing import TYPE_CHECKING, NamedTuple

from layoutkit.draw.module import Gate, Instance, Keepout, Module, Pin
from layoutkit.draw.sizes import row_sizes
from layoutkit.draw.sketch import Area, Sketch, spread_squares
from layoutkit.errors import TechnologyError
from layoutkit.layout.cells import fresh_cell

if TYPE_CHECKING:
    import klayout.db as kdb

    from layoutkit.draw.passive import Capacitor
    from layoutkit.technology import Conductor, PassiveSpec, Technology

_MOST_CUTS = 24  # on a side of one plate; more lower the resistance little and cost shapes


@dataclass(frozen=True)
class CapacitorSpec:
    """A capacitor to be drawn.

    Attributes:
        name: Name of the cell.
        capacitor: What to draw.
        columns: Plates side by side; None for about a square.
        labels: Whether pins carry net names.
    """

    name: str
    capacitor: Capacitor
    columns: int | None = None
    labels: bool = True


def draw_capacitor(layout: kdb.Layout, tech: Technology, spec: CapacitorSpec) -> Module:
    """Draw the capacitor and return its module; plates are called ``<id>_1``, ``<id>_2`` from the lower left.

    Raises:
        TechnologyError: If the process lacks a dimension, or the capacitor lies too low to be reached from its rails.
    """
    return _Plates(tech, spec).module(layout)


class _Sizes(NamedTuple):
    """Lengths. [dbu]"""

    width: int
    length: int
    pitch_x: int
    pitch_y: int
    cut: int
    cut_space: int
    cut_in_plate: int
    top_over_cut: int
    bottom_over_cut: int
    top_space: int


class _Plates:
    def __init__(self, tech: Technology, spec: CapacitorSpec) -> None:
        self.tech = tech
        self.spec = spec
        self.flavour: PassiveSpec = spec.capacitor.spec
        self.sketch = Sketch()
        parts = self.flavour.parts
        self.top, self.bottom = tech.conductor(parts["top"]), tech.conductor(parts["bottom"])
        self.cut_layer = parts["cut"]
        self.sizes = self._sizes()
        columns = spec.columns or ceil(sqrt(spec.capacitor.m * self.sizes.pitch_y / self.sizes.pitch_x))
        self.columns = min(max(1, columns), spec.capacitor.m)
        self.pins: list[tuple[str, Area]] = []

    def _dim(self, name: str) -> int:
        return self.flavour.dimensions.get(name, 0)

    def _sizes(self) -> _Sizes:
        cap, tech = self.spec.capacitor, self.tech
        cut = next(cut for cut in tech.cuts if tech.resolve(cut.layer) == tech.resolve(self.cut_layer))
        space = max(cut.space, cut.array_space, self._dim("plate_cut_space"))
        over = max(cut.enclose_above, cut.enclose_above_end, self._dim("top_cut_enclosure"))
        plate_space = tech.snap_up(max(self._dim("plate_space"), self._dim("plate_cut_space")))
        return _Sizes(
            width=cap.width,
            length=cap.length,
            pitch_x=cap.width + plate_space,
            pitch_y=cap.length + plate_space,
            cut=cut.size,
            cut_space=space,
            cut_in_plate=max(self._dim("plate_cut_enclosure"), cut.enclose_below),
            top_over_cut=over,
            bottom_over_cut=max(cut.enclose_below, cut.enclose_below_end),
            top_space=_wide_space(self.top),
        )

    # ---- what lies where

    def _plates(self) -> list[Area]:
        sizes, m = self.sizes, self.spec.capacitor.m
        found = []
        for i in range(m):
            row, column = divmod(i, self.columns)
            x, y = column * sizes.pitch_x, row * sizes.pitch_y
            found.append(Area(x, y, x + sizes.width, y + sizes.length))
        return found

    def _cuts_in(self, area: Area) -> list[Area]:
        """Return the cuts that fill ``area``, spread evenly, at most ``_MOST_CUTS`` on a side."""
        return spread_squares(area, self.sizes.cut, self.sizes.cut_space, self.tech.grid, _MOST_CUTS)

    # ---- drawing

    def module(self, layout: kdb.Layout) -> Module:
        sketch, sizes, parts = self.sketch, self.sizes, self.flavour.parts
        plates = self._plates()
        for plate in plates:
            sketch.box(parts["plate"], plate)
            beyond = self._dim("marker_enclosure")
            for marker in self.flavour.markers:
                sketch.box(marker, plate.enlarged(beyond, beyond))
            for cut in self._cuts_in(plate.enlarged(-sizes.cut_in_plate, -sizes.cut_in_plate)):
                sketch.box(self.cut_layer, cut)
        whole = _bounds(plates)
        over_plates = self._over(whole.enlarged(-sizes.cut_in_plate, -sizes.cut_in_plate))
        strap = self._bottom_strap(whole, over_plates)
        bottom = self._bottom_plate(whole, strap)
        sketch.box(self.bottom.layer, bottom)
        sketch.box(self.top.layer, over_plates)
        sketch.box(self.top.layer, self._over(strap))
        for cut in self._cuts_in(strap):
            sketch.box(self.cut_layer, cut)
        self._lead_out(bottom, over_plates, self._over(strap))
        self._draw_texts(plates)
        return self._described(layout, plates, bottom)

    def _over(self, cuts: Area) -> Area:
        """Return the top conductor over cuts: enclosing them and of its minimum width."""
        grid, over = self.tech.grid, self.sizes.top_over_cut
        area = cuts.enlarged(over, over)
        dx, dy = (
            max(0, -(-(self.top.width - size) // (2 * grid)) * grid)
            for size in (area.right - area.left, area.top - area.bottom)
        )
        return area.enlarged(dx, dy)

    def _bottom_strap(self, whole: Area, over_plates: Area) -> Area:
        """Return where the cuts on the bottom plate are: a column to the right of all plates."""
        sizes = self.sizes
        narrow = self._over(Area(0, 0, sizes.cut, sizes.cut))
        half = max((narrow.right - narrow.left) // 2, _ViaColumn(self.tech, self.top.name).half(self._level()))
        left = max(
            whole.right + max(self._dim("plate_to_bottom_cut"), self._dim("plate_cut_space")),
            max(over_plates.right + sizes.top_space, whole.right + self._dim("plate_to_top")) + half - sizes.cut // 2,
        )
        left = self.tech.snap_up(left)
        inset = sizes.cut_in_plate
        return Area(left, whole.bottom + inset, left + sizes.cut, whole.top - inset)

    def _level(self) -> int:
        return [conductor.name for conductor in self.tech.conductors].index(self.top.name)

    def _bottom_plate(self, whole: Area, strap: Area) -> Area:
        around = whole.enlarged(self._dim("bottom_enclosure"), self._dim("bottom_enclosure"))
        beyond = max(self._dim("bottom_cut_enclosure"), self.sizes.bottom_over_cut)
        held = strap.enlarged(beyond, beyond)
        return Area(
            around.left, min(around.bottom, held.bottom), max(around.right, held.right), max(around.top, held.top)
        )

    def _lead_out(self, bottom: Area, over_plates: Area, over_strap: Area) -> None:
        """Lead both terminals down beside the bottom plate and to a rail each."""
        tech, sketch, column = self.tech, self.sketch, _ViaColumn(self.tech, self.top.name)
        sizes = row_sizes(tech, tech.device("nmos"))
        clear = max(self._dim("bottom_to_others"), *(_wide_space(c) for c in tech.conductors[1 : column.top + 1]))
        half = column.reach()
        y = tech.snap(bottom.bottom - clear - half) - tech.grid
        pitch = tech.snap_up(max(column.pitch(), half + sizes.rail + sizes.rail_space))
        x_n = tech.snap((over_strap.left + over_strap.right) / 2)
        x_p = min(tech.snap((over_plates.left + over_plates.right) / 2), x_n - column.pitch())
        cap = self.spec.capacitor
        strap = column.half(column.top)
        left, right = min(bottom.left, x_p - half), max(bottom.right, x_n + half)
        for net, x, low, over in ((cap.p, x_p, y, over_plates), (cap.n, x_n, y - pitch, over_strap)):
            column.draw(sketch, x, low)
            sketch.box(self.top.layer, Area(x - strap, low, x + strap, over.top))
            rail = Area(left, low - sizes.rail // 2, right, low - sizes.rail // 2 + sizes.rail)
            sketch.box(tech.conductors[1].layer, rail)
            self.pins.append((net, rail))

    def _draw_texts(self, plates: list[Area]) -> None:
        rail = self.tech.conductors[1]
        for net, area in self.pins:
            if rail.pin_layer:
                self.sketch.box(rail.pin_layer, area)
            if self.spec.labels:
                self.sketch.text(rail.label_layer, net, (area.left + area.right) // 2, (area.bottom + area.top) // 2)
        layer = self.tech.role("device_text")
        for plate in plates if layer else ():
            x, y = (plate.left + plate.right) // 2, (plate.bottom + plate.top) // 2
            self.sketch.text(str(layer), self.spec.capacitor.id, x, y)

    def _described(self, layout: kdb.Layout, plates: list[Area], bottom: Area) -> Module:
        import klayout.db as kdb

        cap, extent = self.spec.capacitor, self.sketch.extent()
        dx, dy = -extent.left, -extent.bottom
        cell = fresh_cell(layout, self.spec.name)
        self.sketch.write(cell, self.tech, dx, dy)

        def moved(area: Area) -> kdb.Box:
            return kdb.Box(area.left + dx, area.bottom + dy, area.right + dx, area.top + dy)

        units = [f"{cap.id}_{i}" for i in range(1, len(plates) + 1)]
        centres = [(dx + (p.left + p.right) / 2, dy + (p.bottom + p.top) / 2) for p in plates]
        pins = sorted(self.pins, key=lambda pin: (pin[1].bottom, pin[1].left, pin[0]))
        return Module(
            name=self.spec.name,
            cell=cell,
            layout=layout,
            pins=tuple(Pin(net, self.tech.conductors[1].name, moved(area)) for net, area in pins),
            devices=(cap.id,),
            instances=tuple(Instance(unit, cap.id, *centre, "R0") for unit, centre in zip(units, centres, strict=True)),
            symmetry_axis_x=None,
            bbox=moved(extent),
            gates=tuple(Gate(cap.id, unit, moved(plate)) for unit, plate in zip(units, plates, strict=True)),
            warnings=cap.warnings,
            keepouts=self._keepouts(moved(bottom)),
        )

    def _keepouts(self, bottom: kdb.Box) -> tuple[Keepout, ...]:
        """Return where other nets may not go: around the bottom plate, and with a via below it."""
        names = [conductor.name for conductor in self.tech.conductors]
        level = names.index(self.bottom.name)
        beyond = max(0, self._dim("bottom_to_others") - self.bottom.space)
        found = [Keepout(self.bottom.name, bottom.enlarged(beyond, beyond)), Keepout(self.top.name, bottom)]
        found += [Keepout(cut.name, bottom) for cut in self.tech.cuts[level - 1 : level + 1]]
        return tuple(found)


def _wide_space(conductor: Conductor) -> int:
    return max(conductor.space, conductor.wide_space or 0)


def _bounds(areas: list[Area]) -> Area:
    return Area(
        min(area.left for area in areas),
        min(area.bottom for area in areas),
        max(area.right for area in areas),
        max(area.top for area in areas),
    )


class _ViaColumn:
    """A column of single vias from the second conductor up to ``upper``, with pads of legal size between them.

    Args:
        tech: Process.
        upper: Name of the conductor at its upper end.

    Raises:
        TechnologyError: If ``upper`` is not above the second conductor.
    """

    def __init__(self, tech: Technology, upper: str) -> None:
        self.tech = tech
        names = [conductor.name for conductor in tech.conductors]
        self.top = names.index(tech.conductor(upper).name)
        if self.top < 2:
            raise TechnologyError(f"conductor {upper} of {tech.name} is not above {names[1]}")

    def half(self, level: int) -> int:
        """Return half the side of the pad on ``tech.conductors[level]``. [dbu]"""
        conductor, grid = self.tech.conductors[level], self.tech.grid
        sides = [conductor.width, ceil(sqrt(conductor.area))]
        if level > 1:
            cut = self.tech.cuts[level - 1]
            sides.append(cut.size + 2 * max(cut.enclose_above, cut.enclose_above_end))
        if level < self.top:
            cut = self.tech.cuts[level]
            sides.append(cut.size + 2 * max(cut.enclose_below, cut.enclose_below_end))
        return -(-max(sides) // (2 * grid)) * grid

    def reach(self) -> int:
        """Return half the side of the largest pad. [dbu]"""
        return max(self.half(level) for level in range(1, self.top + 1))

    def pitch(self) -> int:
        """Return how far apart the centres of two columns must be. [dbu]"""
        spaces = []
        for level in range(1, self.top + 1):
            conductor = self.tech.conductors[level]
            wide = conductor.wide_width is not None and 2 * self.half(level) > conductor.wide_width
            space = max(conductor.space, (conductor.wide_space or 0) if wide else 0)
            spaces.append(2 * self.half(level) + space)
        return self.tech.snap_up(max(spaces))

    def draw(self, sketch: Sketch, x: int, y: int) -> None:
        """Draw the column centred at (x, y)."""
        for level in range(1, self.top + 1):
            half = self.half(level)
            sketch.box(self.tech.conductors[level].layer, Area(x - half, y - half, x + half, y + half))
            if level < self.top:
                half = self.tech.cuts[level].size // 2
                sketch.box(self.tech.cuts[level].layer, Area(x - half, y - half, x + half, y + half))
