"""Wires of an array of bipolar transistors: bars per unit, straps per column, rails below the array.

Over every column stands one strap of the third conductor per net, so that all units lie below the same metal. A unit's
emitter and base reach their straps by bars of the second conductor. Cuts fill what bar and strap have in common.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from layoutkit.draw.sketch import spread_squares
from layoutkit.rectangle import Rectangle

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from layoutkit.draw.sketch import Sketch
    from layoutkit.technology import Conductor, Cut, Technology
    from layoutkit.technology.device_specs import Distance, Frame

_WIDEST_STRAP_UM = 2.0  # wide enough for three cuts and more, below what counts as wide metal
_MOST_CUTS = 60  # on a side of one array of cuts
_LANDING = 4  # wires of the third conductor that find room over each end of a rail, beside the straps


@dataclass(frozen=True)
class Tiles:
    """The grid of units. [dbu]

    Attributes:
        size: Emitter in x and y.
        pitch: Distance of neighbouring emitters' centres in x and y.
        columns: Units in x.
        rows: Units in y.
        frames: What surrounds each emitter.
    """

    size: Distance
    pitch: Distance
    columns: int
    rows: int
    frames: Mapping[str, Frame]

    def places(self) -> Iterator[tuple[int, int]]:
        """Yield column and row of every unit, the bottom row first."""
        for row in range(self.rows):
            for column in range(self.columns):
                yield column, row

    def emitter(self, column: int, row: int) -> Rectangle:
        """Return the emitter of a unit; that of the first has its lower left corner at the origin."""
        left, bottom = column * self.pitch[0], row * self.pitch[1]
        return Rectangle(left, bottom, left + self.size[0], bottom + self.size[1])

    def extent(self) -> Rectangle:
        """Return the outer edge of the collector."""
        last = self.emitter(self.columns - 1, self.rows - 1)
        return Rectangle(0, 0, last.right, last.top).enlarged(*self.frames["collector"][1])

    def is_shared(self, name: str) -> bool:
        """Return whether a frame reaches the collector ring, where those of neighbouring units are one."""
        return name != "collector" and self.frames[name][1][0] >= self.frames["collector"][0][0]

    def frame(self, emitter: Rectangle, name: str) -> list[Rectangle]:
        """Return the frame ``name`` around one emitter, as boxes."""
        inner, outer = (emitter.enlarged(*distance) for distance in self.frames[name])
        if self.frames[name][0] == (0, 0):
            return [outer]
        return [
            Rectangle(outer.left, outer.bottom, outer.right, inner.bottom),
            Rectangle(outer.left, inner.top, outer.right, outer.top),
            Rectangle(outer.left, inner.bottom, inner.left, inner.top),
            Rectangle(inner.right, inner.bottom, outer.right, inner.top),
        ]

    def shared(self, name: str) -> list[Rectangle]:
        """Return the frame ``name`` of all units as one grid: all of the array but the hole around each emitter."""
        inner, outer = self.frames[name]
        last = self.emitter(self.columns - 1, self.rows - 1)
        whole = Rectangle(0, 0, last.right, last.top).enlarged(*outer)
        if inner == (0, 0):
            return [whole]
        left, top = self._hole(0, 0, inner), self._hole(0, self.rows - 1, inner)
        right = self._hole(self.columns - 1, 0, inner)
        areas = [
            Rectangle(whole.left, whole.bottom, whole.right, left.bottom),
            Rectangle(whole.left, top.top, whole.right, whole.top),
            Rectangle(whole.left, left.bottom, left.left, top.top),
            Rectangle(right.right, left.bottom, whole.right, top.top),
        ]
        for row in range(1, self.rows):
            below, above = self._hole(0, row - 1, inner), self._hole(0, row, inner)
            areas.append(Rectangle(left.left, below.top, right.right, above.bottom))
        for column in range(1, self.columns):
            one, other = self._hole(column - 1, 0, inner), self._hole(column, 0, inner)
            areas.append(Rectangle(one.right, left.bottom, other.left, top.top))
        return areas

    def _hole(self, column: int, row: int, inner: Distance) -> Rectangle:
        return self.emitter(column, row).enlarged(*inner)

    def collector_bars(self) -> list[Rectangle]:
        """Return the rows of the collectors' metal: below, between and above the rows of units."""
        extent, inner = self.extent(), self.frames["collector"][0]
        edges = [extent.bottom]
        for row in range(self.rows):
            hole = self._hole(0, row, inner)
            edges += [hole.bottom, hole.top]
        edges.append(extent.top)
        return [
            Rectangle(extent.left, low, extent.right, high) for low, high in zip(edges[::2], edges[1::2], strict=True)
        ]


def _space(conductor: Conductor) -> int:
    """Return the distance of two wires, of which one may count as wide. [dbu]"""
    return conductor.spacing()


class BipolarWires:
    """Draws the wires of one array.

    Args:
        tech: Process.
        tiles: Its units.
        nets: The nets of the straps, from left to right in each column.
        level: Index of the conductor of the bars; the straps are on the next.
    """

    def __init__(self, tech: Technology, tiles: Tiles, nets: tuple[str, ...], level: int = 1) -> None:
        self.tech = tech
        self.tiles = tiles
        self.nets = nets
        self.level = level
        self.bar, self.strap = tech.conductors[level : level + 2]
        self.cut, self.via = tech.cuts[level - 1 : level + 1]
        self.slot = tiles.pitch[0] // len(nets) // tech.grid * tech.grid
        widest = round(_WIDEST_STRAP_UM / tech.dbu_um)
        width = min(self.slot - _space(self.strap), widest)
        self.width = width // (2 * tech.grid) * 2 * tech.grid
        self.rail = self._rail_height()

    @staticmethod
    def least_pitch(tech: Technology, straps: int, level: int = 1) -> int:
        """Return the smallest width of a column with so many straps above bars of the conductor ``level``. [dbu]"""
        strap, via = tech.conductors[level + 1], tech.cuts[level]
        narrow = max(strap.width, via.size + 2 * max(via.enclose_above, via.enclose_below_end))
        return straps * tech.snap_up(narrow + _space(strap) + 2 * tech.grid)

    def _rail_height(self) -> int:
        """Return the height of a rail: two rows of cuts where a strap has no room for two cuts side by side."""
        via, tech = self.via, self.tech
        sides = 2 * max(via.enclose_above, via.enclose_below_end)
        beside = (self.width - sides + via.space) // (via.size + via.space)
        rows = 1 if beside > 1 else 2
        height = rows * (via.size + via.space) - via.space + 2 * max(via.enclose_below, via.enclose_below_end)
        return -(-max(height, self.bar.width) // (2 * tech.grid)) * 2 * tech.grid

    def _strap(self, column: int, net: str) -> tuple[int, int]:
        """Return the left and right edges of the strap of ``net`` over a column."""
        emitter = self.tiles.emitter(column, 0)
        middle = (emitter.left + emitter.right) // 2
        left = middle - len(self.nets) * self.slot // 2 + self.nets.index(net) * self.slot
        left += (self.slot - self.width) // 2
        left = left // self.tech.grid * self.tech.grid
        return left, left + self.width

    def _unit_width(self, column: int) -> tuple[int, int]:
        """Return the left and right edges of a unit's bars: as wide as the column, apart from those beside it."""
        emitter = self.tiles.emitter(column, 0)
        grow = (self.tiles.pitch[0] - self.tiles.size[0] - _space(self.bar)) // (2 * self.tech.grid) * self.tech.grid
        return emitter.left - grow, emitter.right + grow

    def connect(self, sketch: Sketch, column: int, row: int, base: str, emitter: str) -> None:
        """Draw the bars of one unit and join them to the straps of its nets."""
        left, right = self._unit_width(column)
        area = self.tiles.emitter(column, row)
        inner, outer = (area.enlarged(*distance) for distance in self.tiles.frames["base"])
        for net, low, high, under in (
            (emitter, area.bottom, area.top, area),
            (base, outer.bottom, inner.bottom, Rectangle(outer.left, outer.bottom, outer.right, inner.bottom)),
            (base, inner.top, outer.top, Rectangle(outer.left, inner.top, outer.right, outer.top)),
        ):
            bar = Rectangle(left, low, right, high)
            sketch.box(self.bar.layer, bar)
            self.cuts(sketch, self.cut, under, bar)
            self._join(sketch, column, net, bar)

    def bar_over(self, sketch: Sketch, column: int, net: str, pin: Rectangle, *, below: bool) -> None:
        """Draw a bar across a column over ``pin`` and join it to the strap of ``net``.

        Args:
            sketch: What is drawn.
            column: Of the unit.
            net: Of the pin.
            pin: Metal that reaches the terminal. [dbu]
            below: Whether it lies on the conductor below, so that cuts join the bar with it.
        """
        left, right = self._unit_width(column)
        bar = Rectangle(left, pin.bottom, right, pin.top)
        sketch.box(self.bar.layer, bar)
        if below:
            self.cuts(sketch, self.cut, pin, bar)
        self._join(sketch, column, net, bar)

    def _join(self, sketch: Sketch, column: int, net: str, bar: Rectangle) -> None:
        left, right = self._strap(column, net)
        self.cuts(sketch, self.via, bar, Rectangle(left, bar.bottom, right, bar.top), upright=True)

    def rails(self, sketch: Sketch, collector: str) -> list[tuple[str, Rectangle]]:
        """Draw the bars of the collector, all straps and the rail of each net below the array; return net and rail."""
        extent = self._extent()
        for row in self.tiles.collector_bars():
            bar = Rectangle(extent.left, row.bottom, extent.right, row.top)
            sketch.box(self.bar.layer, bar)
            self.cuts(sketch, self.cut, row, bar)
            for column in range(self.tiles.columns):
                self._join(sketch, column, collector, bar)
        gap = self.tech.snap_up(_space(self.bar))
        landing = self.tech.snap_up(_LANDING * (self.width_of_via() + _space(self.strap)))
        top, found = extent.bottom - gap, []
        for net in self.nets:
            rail = Rectangle(extent.left - landing, top - self.rail, extent.right + landing, top)
            sketch.box(self.bar.layer, rail)
            for column in range(self.tiles.columns):
                self._join(sketch, column, net, rail)
            found.append((net, rail))
            top = rail.bottom - gap
        low = found[-1][1].bottom - max(0, self.via.enclose_above_end - self.via.enclose_below)
        low = low // self.tech.grid * self.tech.grid
        for column in range(self.tiles.columns):
            for net in self.nets:
                left, right = self._strap(column, net)
                sketch.box(self.strap.layer, Rectangle(left, low, right, extent.top))
        return found

    def _extent(self) -> Rectangle:
        """Return the area of the collector, or of the bars where the straps need wider columns."""
        extent = self.tiles.extent()
        left, right = self._unit_width(0)[0], self._unit_width(self.tiles.columns - 1)[1]
        return Rectangle(min(extent.left, left), extent.bottom, max(extent.right, right), extent.top)

    def keepouts(self) -> list[tuple[str, Rectangle]]:
        """Return conductors from that of the bars up, each with the array and the room that wide metal beside it needs.

        The rails below the array stay free.
        """
        extent, found = self._extent(), []
        for conductor in self.tech.conductors[1:]:
            room = self.tech.snap_up(_space(conductor))
            found.append(
                (conductor.name, Rectangle(extent.left - room, extent.bottom, extent.right + room, extent.top + room))
            )
        return found

    def width_of_via(self) -> int:
        """Return the width of a wire of the third conductor with one cut. [dbu]"""
        return max(self.strap.width, self.via.size + 2 * max(self.via.enclose_above, self.via.enclose_above_end))

    def cuts(self, sketch: Sketch, cut: Cut, below: Rectangle, above: Rectangle, *, upright: bool = False) -> None:
        """Draw the cuts that fill what two wires have in common; ``upright`` if the upper one runs in y, else in x."""
        shared = Rectangle(
            max(below.left, above.left),
            max(below.bottom, above.bottom),
            min(below.right, above.right),
            min(below.top, above.top),
        )
        ends = max(cut.enclose_below_end, cut.enclose_above_end)
        x = max(cut.enclose_above, cut.enclose_below_end) if upright else ends
        y = max(cut.enclose_below, 0 if upright else cut.enclose_above)
        room = shared.enlarged(-self.tech.snap_up(x), -self.tech.snap_up(y))
        space = cut.spacing()
        for square in spread_squares(room, cut.size, space, self.tech.grid, _MOST_CUTS):
            sketch.box(cut.layer, square)
