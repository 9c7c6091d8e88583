"""Plate (MIM) capacitors: equal plates over one bottom plate with their cuts, and single plates in a ring for radio.

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

For radio frequencies: a plate in a ring of substrate taps, with a wide feed on either side.

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

from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil, inf, sqrt
from typing import TYPE_CHECKING

from layoutkit.draw.module import DrawnRectangles, Keepout, rectangles_module
from layoutkit.draw.row import row_sizes
from layoutkit.draw.sketch import Sketch, spread_squares
from layoutkit.errors import TechnologyError
from layoutkit.rectangle import Rectangle

if TYPE_CHECKING:
    import klayout.db as kdb

    from layoutkit.draw.module import Module
    from layoutkit.draw.passive import Capacitor
    from layoutkit.technology import Conductor, Cut, PassiveSpec, Technology


_MOST_CUTS = 24  # on a side of one plate; more lower the resistance little and cost shapes


class PlateRules:
    """Lengths and areas of a plate and what belongs to it.

    Attributes:
        top: Conductor over the plates.
        bottom: Conductor of the bottom plates.
        cut_layer: The cuts between plate and ``top``, and between ``bottom`` and ``top``.
        cut: Side of a cut. [dbu]
        cut_in_plate: How far a plate reaches beyond the cuts on it. [dbu]
        plate_space: Distance of two plates on one bottom plate. [dbu]
    """

    def __init__(self, tech: Technology, flavour: PassiveSpec) -> None:
        self.tech = tech
        self.flavour = flavour
        self.top, self.bottom = tech.conductor(flavour.parts["top"]), tech.conductor(flavour.parts["bottom"])
        self.cut_layer = flavour.parts["cut"]
        cut = next(cut for cut in tech.cuts if tech.resolve(cut.layer) == tech.resolve(self.cut_layer))
        self.cut = cut.size
        self.cut_in_plate = max(self.dim("plate_cut_enclosure"), cut.enclose_below)
        self.plate_space = tech.snap_up(max(self.dim("plate_space"), self.dim("plate_cut_space")))
        self._cut_space = max(cut.spacing(), self.dim("plate_cut_space"))
        self._top_over_cut = max(cut.enclose_above, cut.enclose_above_end, self.dim("top_cut_enclosure"))
        self._bottom_over_cut = max(cut.enclose_below, cut.enclose_below_end)

    def dim(self, name: str) -> int:
        """Return a drawing dimension of the flavour, 0 where it states none. [dbu]"""
        return self.flavour.dimensions.get(name, 0)

    def draw_plate(self, sketch: Sketch, plate: Rectangle) -> None:
        """Draw ``plate`` with its markers and the cuts on it."""
        sketch.box(self.flavour.parts["plate"], plate)
        beyond = self.dim("marker_enclosure")
        for marker in self.flavour.markers:
            sketch.box(marker, plate.enlarged(beyond, beyond))
        for cut in self.cuts_in(plate.enlarged(-self.cut_in_plate, -self.cut_in_plate)):
            sketch.box(self.cut_layer, cut)

    def cuts_in(self, area: Rectangle) -> list[Rectangle]:
        """Return the cuts that fill ``area``, spread evenly."""
        return spread_squares(area, self.cut, self._cut_space, self.tech.grid, _MOST_CUTS)

    def over(self, cuts: Rectangle) -> Rectangle:
        """Return the top conductor over cuts: enclosing them and of its minimum width."""
        grid, over = self.tech.grid, self._top_over_cut
        area = cuts.enlarged(over, over)
        dx, dy = (
            max(0, -(-(self.top.width - size) // (2 * grid)) * grid)
            for size in (area.right - area.left, area.top - area.bottom)
        )
        return area.enlarged(dx, dy)

    def over_plate(self, plate: Rectangle) -> Rectangle:
        """Return the top conductor over a plate, or over all plates in ``plate``."""
        return self.over(plate.enlarged(-self.cut_in_plate, -self.cut_in_plate))

    def bottom_strap(self, plate: Rectangle) -> Rectangle:
        """Return where the cuts on the bottom plate are: a column to the right of all plates in ``plate``."""
        over_plate = self.over_plate(plate)
        narrow = self.over(Rectangle(0, 0, self.cut, self.cut))
        half = max((narrow.right - narrow.left) // 2, ViaColumn(self.tech, self.top.name).half_width(self.level()))
        left = max(
            plate.right + max(self.dim("plate_to_bottom_cut"), self.dim("plate_cut_space")),
            max(over_plate.right + wide_space(self.top), plate.right + self.dim("plate_to_top")) + half - self.cut // 2,
        )
        left = self.tech.snap_up(left)
        return Rectangle(left, plate.bottom + self.cut_in_plate, left + self.cut, plate.top - self.cut_in_plate)

    def bottom_plate(self, plate: Rectangle) -> Rectangle:
        """Return the bottom plate below ``plate`` and below its own cuts."""
        strap, enclosure = self.bottom_strap(plate), self.dim("bottom_enclosure")
        around = plate.enlarged(enclosure, enclosure)
        beyond = max(self.dim("bottom_cut_enclosure"), self._bottom_over_cut)
        held = strap.enlarged(beyond, beyond)
        return Rectangle(
            around.left, min(around.bottom, held.bottom), max(around.right, held.right), max(around.top, held.top)
        )

    def level(self) -> int:
        """Return the index of the top conductor in the stack."""
        return [conductor.name for conductor in self.tech.conductors].index(self.top.name)

    def clearance(self) -> int:
        """Return how far other metal stays from a bottom plate. [dbu]"""
        others = (wide_space(conductor) for conductor in self.tech.conductors[1 : self.level() + 1])
        return max(self.dim("bottom_to_others"), *others)

    def beside_bottom(self, side: int) -> int:
        """Return how far wires stay from bottom plates whose shorter side is ``side``. [dbu]"""
        return max(self.dim("bottom_to_others"), beside_wide(self.tech, self.bottom, side))


def beside_wide(tech: Technology, conductor: Conductor, side: int) -> int:
    """Return how far other metal stays from a shape whose shorter side is ``side`` by rules for wide metal. [dbu]

    Rules for very wide metal, such as M5.f of sg13g2, concern plates, metal resistors and diodes; those for wires are
    stated by the conductors.
    """
    layer, found = tech.resolve(conductor.layer), [0]
    for rule in tech.rules:
        if rule.kind == "wide_space" and rule.severity == "error" and rule.value is not None:
            same = tech.resolve(str(rule.options["layer"])) == layer
            found += [rule.value] if same and tech.to_dbu(rule.options["wide_um"]) < side else []
    return max(found)


def widest_without_slits(tech: Technology, conductor: Conductor) -> float:
    """Return how wide metal without plates may be by rules such as Slt.c of sg13g2; infinite without one. [dbu]"""
    layer, found = tech.resolve(conductor.layer), [inf if conductor.max_width is None else conductor.max_width]
    for rule in tech.rules:
        if rule.kind == "max_width" and rule.severity == "error" and rule.value is not None:
            within, *_ = str(rule.options["layer"]).split(" - ")
            found += [rule.value] if tech.resolve(within) == layer else []
    return min(found)


def wide_space(conductor: Conductor) -> int:
    """Return the distance that wide shapes of a conductor keep. [dbu]"""
    return conductor.spacing()


class ViaColumn:
    """Vias on top of each other from one conductor up to another, two side by side on each level, with pads.

    Args:
        tech: Process.
        upper: Name of the conductor at its upper end.
        lower: Index of the conductor at its lower end.

    Raises:
        TechnologyError: If ``upper`` is not above the conductor ``lower``.
    """

    def __init__(self, tech: Technology, upper: str, lower: int = 1) -> None:
        self.tech = tech
        names = [conductor.name for conductor in tech.conductors]
        self.lower, self.top = lower, names.index(tech.conductor(upper).name)
        if self.top <= lower:
            raise TechnologyError(f"conductor {upper} of {tech.name} is not above {names[lower]}")

    def _cuts(self, level: int) -> list[tuple[int, int, int]]:
        """Return width and height of the two cuts that meet a pad, and how far the pad reaches beyond them."""
        found = []
        if level > self.lower:
            cut = self.tech.cuts[level - 1]
            found.append((*_two(cut), max(cut.enclose_above, cut.enclose_above_end)))
        if level < self.top:
            cut = self.tech.cuts[level]
            found.append((*_two(cut), max(cut.enclose_below, cut.enclose_below_end)))
        return found

    def half_height(self, level: int) -> int:
        """Return half the height of the pad on ``tech.conductors[level]``. [dbu]"""
        sides = [self.tech.conductors[level].width, *(height + 2 * over for _, height, over in self._cuts(level))]
        return -(-max(sides) // (2 * self.tech.grid)) * self.tech.grid

    def half_width(self, level: int) -> int:
        """Return half the width of the pad on ``tech.conductors[level]``, which has the minimum area. [dbu]"""
        conductor, grid = self.tech.conductors[level], self.tech.grid
        sides = [conductor.width, *(width + 2 * over for width, _, over in self._cuts(level))]
        sides.append(ceil(conductor.area / (2 * self.half_height(level))))
        return -(-max(sides) // (2 * grid)) * grid

    def reach(self) -> int:
        """Return half the height of the highest pad. [dbu]"""
        return max(self.half_height(level) for level in range(self.lower, self.top + 1))

    def half(self) -> int:
        """Return half the width of the widest pad. [dbu]"""
        return max(self.half_width(level) for level in range(self.lower, self.top + 1))

    def pitch(self) -> int:
        """Return how far apart the centres of two columns must be. [dbu]"""
        spaces = []
        for level in range(self.lower, self.top + 1):
            conductor, sides = self.tech.conductors[level], (self.half_width(level), self.half_height(level))
            wide = conductor.wide_width is not None and 2 * max(sides) > conductor.wide_width
            space = conductor.spacing(wide=wide)
            spaces.append(2 * self.half_width(level) + space)
        return self.tech.snap_up(max(spaces))

    def draw(self, sketch: Sketch, x: int, y: int) -> None:
        """Draw the column centred at (x, y)."""
        for level in range(self.lower, self.top + 1):
            half_width, half_height = self.half_width(level), self.half_height(level)
            pad = Rectangle(x - half_width, y - half_height, x + half_width, y + half_height)
            sketch.box(self.tech.conductors[level].layer, pad)
            if level < self.top:
                draw_two_cuts(sketch, self.tech, level, x, y)


def draw_two_cuts(sketch: Sketch, tech: Technology, level: int, x: int, y: int) -> None:
    """Draw two cuts above ``tech.conductors[level]`` side by side, centred at (x, y)."""
    cut = tech.cuts[level]
    width, height = _two(cut)
    low = y - height // 2
    for left in (x - width // 2, x + width // 2 - cut.size):
        sketch.box(cut.layer, Rectangle(left, low, left + cut.size, low + cut.size))


def two_cuts_width(tech: Technology, level: int) -> tuple[int, int]:
    """Return how wide and high metal around two cuts above ``tech.conductors[level]`` is, on either side. [dbu]"""
    cut = tech.cuts[level]
    over = max(cut.enclose_below, cut.enclose_below_end, cut.enclose_above, cut.enclose_above_end)
    width, height = _two(cut)
    return (
        max(width + 2 * over, tech.conductors[level].width, tech.conductors[level + 1].width),
        max(height + 2 * over, tech.conductors[level].width, tech.conductors[level + 1].width),
    )


def _two(cut: Cut) -> tuple[int, int]:
    return 2 * cut.size + cut.space, cut.size


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
        self.pins: list[tuple[str, Rectangle]] = []

    # ---- what lies where

    def _plates(self) -> list[Rectangle]:
        cap, found = self.spec.capacitor, []
        for i in range(cap.m):
            row, column = divmod(i, self.columns)
            x, y = column * self.pitch_x, row * self.pitch_y
            found.append(Rectangle(x, y, x + cap.width, y + cap.length))
        return found

    # ---- drawing

    def module(self, layout: kdb.Layout) -> Module:
        sketch, rules = self.sketch, self.rules
        plates = self._plates()
        for plate in plates:
            rules.draw_plate(sketch, plate)
        tall = self._beside_wide_gap(plates)
        whole = Rectangle.around(plates[: len(plates) // self.columns * self.columns] if tall else plates)
        over_plates, strap, bottom = rules.over_plate(whole), rules.bottom_strap(whole), rules.bottom_plate(whole)
        sketch.box(self.bottom.layer, bottom)
        sketch.box(self.top.layer, over_plates)
        enclosure = rules.dim("bottom_enclosure")
        if tall:
            sketch.box(self.bottom.layer, tall.enlarged(enclosure, enclosure))
            sketch.box(self.top.layer, rules.over_plate(tall))
        sketch.box(self.top.layer, rules.over(strap))
        for cut in rules.cuts_in(strap):
            sketch.box(rules.cut_layer, cut)
        self._lead_out(bottom, over_plates, rules.over(strap))
        owners = [name for name, count in self.spec.parts for _ in range(count)]
        drawn = DrawnRectangles(self.spec.capacitor, plates, self.pins, self.spec.labels, owners)
        module = rectangles_module(layout, self.tech, self.spec.name, sketch, drawn)
        held = Rectangle.around([bottom, tall.enlarged(enclosure, enclosure)]) if tall else bottom
        return replace(module, keepouts=self._keepouts(held, sketch.extent()))

    def _beside_wide_gap(self, plates: list[Rectangle]) -> Rectangle | None:
        """Return the columns that the last row has, where the rest of it is a gap too wide for metal without plates."""
        last = len(plates) % self.columns
        gap = min((self.columns - last) * self.pitch_x, self.pitch_y)
        widest = min(widest_without_slits(self.tech, conductor) for conductor in (self.top, self.bottom))
        return Rectangle.around([*plates[:last], plates[-1]]) if last and gap > widest else None

    def _lead_out(self, bottom: Rectangle, over_plates: Rectangle, over_strap: Rectangle) -> None:
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
            sketch.box(self.top.layer, Rectangle(x - strap, low, x + strap, over.top))
            rail = Rectangle(left, low - sizes.rail // 2, right, low - sizes.rail // 2 + sizes.rail)
            sketch.box(tech.conductors[1].layer, rail)
            self.pins.append((net, rail))

    def _keepouts(self, plate: Rectangle, extent: Rectangle) -> tuple[Keepout, ...]:
        """Return where other nets may not go: around the bottom plate, and with a via below it."""
        import klayout.db as kdb

        bottom = kdb.Box(*plate).moved(-extent.left, -extent.bottom)
        names = [conductor.name for conductor in self.tech.conductors]
        level = names.index(self.bottom.name)
        beyond = self.rules.beside_bottom(min(bottom.width(), bottom.height()))
        found = [(self.bottom.name, bottom.enlarged(beyond, beyond)), (self.top.name, bottom)]
        found += [(cut.name, bottom) for cut in self.tech.cuts[level - 1 : level + 1]]
        return tuple(Keepout(layer, box, by_rule=True) for layer, box in found)


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
        plates = [Rectangle(0, i * pitch, self.cap.length, i * pitch + self.cap.width) for i in range(self.cap.m)]
        pins = [(self.cap.b, self._ring(plate)) for plate in plates]
        for below, above in pairwise(plate.enlarged(self.outer, self.outer) for plate in plates):
            between = Rectangle(below.left, below.top, below.right, above.bottom)
            self.sketch.box(self.tech.conductors[0].layer, between)
        ends = [self._plate(plate) for plate in plates]
        for net, pads in zip((self.cap.p, self.cap.n), zip(*ends, strict=True), strict=True):
            bar = Rectangle(pads[0].left, pads[0].bottom, pads[0].right, pads[-1].top)
            self.sketch.box(self.tech.conductors[1].layer, bar)
            pins.append((net, bar))
        owners = [name for name, count in self.spec.parts for _ in range(count)]
        drawn = DrawnRectangles(self.cap, plates, pins, self.spec.labels, owners)
        module = rectangles_module(layout, self.tech, self.spec.name, self.sketch, drawn)
        return replace(module, keepouts=tuple(self._keepouts(plates)))

    def _feed(self, plate: Rectangle) -> tuple[int, int]:
        """Return lower and upper edge of the feeds."""
        low = plate.bottom + self.tech.snap((self.cap.width - self.cap.feed) / 2)
        return low, low + self.cap.feed

    def _plate(self, plate: Rectangle) -> tuple[Rectangle, Rectangle]:
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
            sketch.box(conductor.layer, Rectangle(ends[0], low, ends[1], high))
            half_width, half_height = column.half_width(1), column.half_height(1)
            pads.append(Rectangle(x - half_width, y - half_height, x + half_width, y + half_height))
        return pads[0], pads[1]

    def _ring(self, plate: Rectangle) -> Rectangle:
        """Draw the ring of taps around ``plate``, open below the feed of the bottom plate; return its rail."""
        sketch, tech, sizes = self.sketch, self.tech, row_sizes(self.tech, self.like)
        inner, outer = plate.enlarged(self.inner, self.inner), plate.enlarged(self.outer, self.outer)
        low, high = self._feed(plate)
        sides = [
            Rectangle(outer.left, outer.bottom, outer.right, inner.bottom),
            Rectangle(outer.left, inner.top, outer.right, outer.top),
            Rectangle(outer.left, inner.bottom, inner.left, inner.top),
            Rectangle(inner.right, inner.bottom, outer.right, low),
            Rectangle(inner.right, high, outer.right, inner.top),
        ]
        inset = self.flavour.dim("ring_contact_enclosure")
        space = tech.contact.spacing()
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
        for side in (*sides[:3], Rectangle(inner.right, inner.bottom, outer.right, inner.top)):
            sketch.box(implant, side.enlarged(grow, grow))
        middle = outer.bottom + width // 2
        rail = Rectangle(outer.left, middle - sizes.rail // 2, outer.right, middle - sizes.rail // 2 + sizes.rail)
        sketch.box(tech.conductors[1].layer, rail)
        below = middle - sizes.cut // 2
        row = Rectangle(rail.left + inset, below, rail.right - inset, below + sizes.cut)
        for cut in spread_squares(row, sizes.cut, sizes.cut_space, tech.grid, _MOST_TAPS):
            sketch.box(tech.cuts[0].layer, cut)
        return rail

    def _keepouts(self, plates: list[Rectangle]) -> list[Keepout]:
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
