"""The plan of metal resistors: bars of one conductor below its marker, between heads on which wires arrive.

::

    ============= n        a strap for each terminal of a resistor of several strings
     |         |
    [n] [a a] [n] [a a]    heads: as wide as a cut needs; those of neighbours on one net are one
     |   | |   |   | |     necks: wires stay clear of the cores
     |   # #   |   # #     cores: the marker on the metal, which LVS reads as the resistor
     |   | |   |   | |
    [n   n][p][n   n][p]   a string of an even number of bars ends below: a column without a core leads up from there
            |        |
           ==========  p

Terminals on a conductor that carries no wires lead by cuts to the next one that does.
"""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from layoutkit.draw.plate import beside_wide, wide_space
from layoutkit.draw.resistor_bank import Bar, node
from layoutkit.draw.sketch import Area, Sketch, spread_squares

if TYPE_CHECKING:
    from layoutkit.draw.passive import Resistor
    from layoutkit.draw.resistor_bank import ResistorSpec
    from layoutkit.technology import Conductor, Cut, Technology

_WIRED = (1, 4)
"""The lowest and the highest conductor of the stack that usually carry wires between modules."""
_MOST_CUTS = 24  # on a side of one head


class MetalSizes(NamedTuple):
    """Lengths of one bar and its heads. [dbu]"""

    width: int
    length: int
    neck: int
    head_width: int
    head_length: int
    pitch: int


class MetalPlan:
    """Where the bars and heads of metal resistors lie; the first bar's core has its lower left corner at (0, 0).

    Args:
        tech: Process.
        spec: Resistors of one conductor, bar width and bar length.
    """

    def __init__(self, tech: Technology, spec: ResistorSpec) -> None:
        self.tech, self.spec, self.flavour = tech, spec, spec.resistors[0].spec
        self.metal = tech.conductor(self.flavour.conductor)
        level = [conductor.name for conductor in tech.conductors].index(self.metal.name)
        wired = min(max(level, _WIRED[0]), _WIRED[1])
        self.wired: Conductor = tech.conductors[wired]
        steps = range(level, wired) if level < wired else range(level - 1, wired - 1, -1)
        self.cuts: tuple[Cut, ...] = tuple(tech.cuts[step] for step in steps)  # from the heads on
        near = [(cut, above) for above, cut in ((False, level), (True, level - 1)) if 0 <= cut < len(tech.cuts)]
        held = [_held(tech.cuts[cut], above=above) for cut, above in near]
        held += [_held(cut, above=above) for cut in self.cuts for above in (False, True)]
        self.least = max(held)
        self.sizes = self._sizes()
        self.columns = self._columns()
        self.bars = [column for column in self.columns if column.unit]

    def _sizes(self) -> MetalSizes:
        tech, metal = self.tech, self.metal
        width, length = self.spec.resistors[0].width, self.spec.resistors[0].length
        lack = max(metal.width, self.least) - width
        head = width + max(0, -(-lack // (2 * tech.grid))) * 2 * tech.grid
        space = wide_space(metal) if metal.wide_width is not None and head > metal.wide_width else metal.space
        space = max(space, beside_wide(tech, metal, head))
        neck = tech.snap_up(space)
        bare = -(-(metal.area - width * (length + 2 * neck)) // (2 * head))
        head_length = tech.snap_up(max(metal.width, self.least, bare))
        pitch = head + space
        if any(resistor.m > 1 for resistor in self.spec.resistors):  # the space between two of its bars is a hole
            hole = self.flavour.dimensions.get("hole_area", 0)
            neck = max(neck, tech.snap_up((-(-hole // (pitch - width)) - length) / 2))
        if self.cuts:
            pitch = max(pitch, head + 2 * self._beyond() + wide_space(self.wired))
        return MetalSizes(width, length, neck, head, head_length, -(-pitch // (2 * tech.grid)) * 2 * tech.grid)

    def _beyond(self) -> int:
        """Return how far the widest conductor between a head and its wires reaches beyond the head. [dbu]"""
        return max((0, *(_enclosure(cut, above=not up) - _enclosure(cut, above=up) for cut, up in self._led())))

    def _led(self) -> list[tuple[Cut, bool]]:
        """Return the cuts from the heads to the conductor with wires, each with whether the way leads downwards."""
        downwards = bool(self.cuts) and self.cuts[0].above == self.metal.name
        return [(cut, downwards) for cut in self.cuts]

    def _columns(self) -> list[Bar]:
        """Return the bars from left to right, and the columns without a core, which have no unit."""
        found: list[Bar] = []
        for resistor in self.spec.resistors:
            for number in range(resistor.bars):
                string, place = divmod(number, resistor.segments)
                before, after = (node(resistor, string, place + step) for step in (0, 1))
                low, high = (after, before) if place % 2 else (before, after)
                found.append(Bar(len(found) * self.sizes.pitch, resistor, f"{resistor.id}_{number + 1}", low, high))
                if place + 1 == resistor.segments and place % 2:
                    found.append(Bar(len(found) * self.sizes.pitch, resistor, "", resistor.n, resistor.n))
        return found

    def _heads(self, resistor: Resistor, *, high: bool) -> list[tuple[str, Area]]:
        """Return the heads above or below the bars of a resistor, those of neighbours on one net as one."""
        sizes = self.sizes
        margin = (sizes.head_width - sizes.width) // 2
        low = sizes.length + sizes.neck if high else -sizes.neck - sizes.head_length
        found = []
        own = [column for column in self.columns if column.resistor is resistor]
        for net, group in groupby(own, attrgetter("high" if high else "low")):
            lefts = [column.left for column in group]
            right = lefts[-1] + sizes.width + margin
            found.append((net, Area(lefts[0] - margin, low, right, low + sizes.head_length)))
        return found

    def draw(self, sketch: Sketch) -> list[tuple[str, Area]]:
        """Draw bars, heads and markers; return the pins on ``wired``, as net and area."""
        sizes, pins = self.sizes, []
        margin = (sizes.head_width - sizes.width) // 2
        for column in self.columns:
            core = Area(column.left, 0, column.left + sizes.width, sizes.length)
            sketch.box(self.metal.layer, core.enlarged(0 if column.unit else margin, sizes.neck))
            for layer in (self.flavour.parts["core"], *self.flavour.core_markers) if column.unit else ():
                sketch.box(layer, core)
        for resistor in self.spec.resistors:
            for high, terminal in ((False, resistor.p), (True, resistor.n)):
                heads = self._heads(resistor, high=high)
                for _, area in heads:
                    sketch.box(self.metal.layer, area)
                pin = self._strap(sketch, [area for net, area in heads if net == terminal], high=high)
                pins.append((terminal, self._led_away(sketch, pin, high=high) if self.cuts else pin))
        return pins

    def _strap(self, sketch: Sketch, heads: list[Area], *, high: bool) -> Area:
        """Draw what joins the heads of one terminal; return it, the head itself where there is only one."""
        if len(heads) == 1:
            return heads[0]
        sizes, first = self.sizes, heads[0]
        beyond = sizes.neck + sizes.head_length
        for head in heads:
            grown = head._replace(top=head.top + beyond) if high else head._replace(bottom=head.bottom - beyond)
            sketch.box(self.metal.layer, grown)
        low = first.top + sizes.neck if high else first.bottom - beyond
        strap = Area(first.left, low, heads[-1].right, low + sizes.head_length)
        sketch.box(self.metal.layer, strap)
        return strap

    def _led_away(self, sketch: Sketch, head: Area, *, high: bool) -> Area:
        """Draw the cuts and conductors from a head to the conductor with wires; return the area on the last one."""
        area, beyond = head, self._beyond()
        for cut, downwards in self._led():
            inside = max(_enclosure(cut, above=downwards), _enclosure(cut, above=not downwards) - beyond)
            room = head.enlarged(-inside, -inside)
            for square in spread_squares(room, cut.size, max(cut.space, cut.array_space), self.tech.grid, _MOST_CUTS):
                sketch.box(cut.layer, square)
            next_one = self.tech.conductor(cut.below if downwards else cut.above)
            area = head.enlarged(beyond, beyond)
            lack = max(next_one.width, -(-next_one.area // (area.right - area.left))) - (area.top - area.bottom)
            more = self.tech.snap_up(max(0, lack))
            area = area._replace(top=area.top + more) if high else area._replace(bottom=area.bottom - more)
            sketch.box(next_one.layer, area)
        return area


def _enclosure(cut: Cut, *, above: bool) -> int:
    """Return how far the conductor above or below a cut reaches beyond it on any side. [dbu]"""
    sides = (cut.enclose_above, cut.enclose_above_end) if above else (cut.enclose_below, cut.enclose_below_end)
    return max(sides)


def _held(cut: Cut, *, above: bool) -> int:
    """Return the side of the square of the conductor above or below a cut that holds one. [dbu]"""
    return cut.size + 2 * _enclosure(cut, above=above)
