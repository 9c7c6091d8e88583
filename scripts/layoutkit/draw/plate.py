"""One plate of a capacitor with its bottom plate and the cuts on both, and the vias that lead down beside it."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from layoutkit.draw.sketch import Area, spread_squares
from layoutkit.errors import TechnologyError

if TYPE_CHECKING:
    from layoutkit.draw.sketch import Sketch
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
        self._cut_space = max(cut.space, cut.array_space, self.dim("plate_cut_space"))
        self._top_over_cut = max(cut.enclose_above, cut.enclose_above_end, self.dim("top_cut_enclosure"))
        self._bottom_over_cut = max(cut.enclose_below, cut.enclose_below_end)

    def dim(self, name: str) -> int:
        """Return a drawing dimension of the flavour, 0 where it states none. [dbu]"""
        return self.flavour.dimensions.get(name, 0)

    def draw_plate(self, sketch: Sketch, plate: Area) -> None:
        """Draw ``plate`` with its markers and the cuts on it."""
        sketch.box(self.flavour.parts["plate"], plate)
        beyond = self.dim("marker_enclosure")
        for marker in self.flavour.markers:
            sketch.box(marker, plate.enlarged(beyond, beyond))
        for cut in self.cuts_in(plate.enlarged(-self.cut_in_plate, -self.cut_in_plate)):
            sketch.box(self.cut_layer, cut)

    def cuts_in(self, area: Area) -> list[Area]:
        """Return the cuts that fill ``area``, spread evenly."""
        return spread_squares(area, self.cut, self._cut_space, self.tech.grid, _MOST_CUTS)

    def over(self, cuts: Area) -> Area:
        """Return the top conductor over cuts: enclosing them and of its minimum width."""
        grid, over = self.tech.grid, self._top_over_cut
        area = cuts.enlarged(over, over)
        dx, dy = (
            max(0, -(-(self.top.width - size) // (2 * grid)) * grid)
            for size in (area.right - area.left, area.top - area.bottom)
        )
        return area.enlarged(dx, dy)

    def over_plate(self, plate: Area) -> Area:
        """Return the top conductor over a plate, or over all plates in ``plate``."""
        return self.over(plate.enlarged(-self.cut_in_plate, -self.cut_in_plate))

    def bottom_strap(self, plate: Area) -> Area:
        """Return where the cuts on the bottom plate are: a column to the right of all plates in ``plate``."""
        over_plate = self.over_plate(plate)
        narrow = self.over(Area(0, 0, self.cut, self.cut))
        half = max((narrow.right - narrow.left) // 2, ViaColumn(self.tech, self.top.name).half_width(self.level()))
        left = max(
            plate.right + max(self.dim("plate_to_bottom_cut"), self.dim("plate_cut_space")),
            max(over_plate.right + wide_space(self.top), plate.right + self.dim("plate_to_top")) + half - self.cut // 2,
        )
        left = self.tech.snap_up(left)
        return Area(left, plate.bottom + self.cut_in_plate, left + self.cut, plate.top - self.cut_in_plate)

    def bottom_plate(self, plate: Area) -> Area:
        """Return the bottom plate below ``plate`` and below its own cuts."""
        strap, enclosure = self.bottom_strap(plate), self.dim("bottom_enclosure")
        around = plate.enlarged(enclosure, enclosure)
        beyond = max(self.dim("bottom_cut_enclosure"), self._bottom_over_cut)
        held = strap.enlarged(beyond, beyond)
        return Area(
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


def wide_space(conductor: Conductor) -> int:
    """Return the distance that wide shapes of a conductor keep. [dbu]"""
    return max(conductor.space, conductor.wide_space or 0)


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
            space = max(conductor.space, (conductor.wide_space or 0) if wide else 0)
            spaces.append(2 * self.half_width(level) + space)
        return self.tech.snap_up(max(spaces))

    def draw(self, sketch: Sketch, x: int, y: int) -> None:
        """Draw the column centred at (x, y)."""
        for level in range(self.lower, self.top + 1):
            half_width, half_height = self.half_width(level), self.half_height(level)
            pad = Area(x - half_width, y - half_height, x + half_width, y + half_height)
            sketch.box(self.tech.conductors[level].layer, pad)
            if level < self.top:
                draw_two_cuts(sketch, self.tech, level, x, y)


def draw_two_cuts(sketch: Sketch, tech: Technology, level: int, x: int, y: int) -> None:
    """Draw two cuts above ``tech.conductors[level]`` side by side, centred at (x, y)."""
    cut = tech.cuts[level]
    width, height = _two(cut)
    low = y - height // 2
    for left in (x - width // 2, x + width // 2 - cut.size):
        sketch.box(cut.layer, Area(left, low, left + cut.size, low + cut.size))


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
