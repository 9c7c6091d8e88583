"""The cell of a device that is drawn as the foundry draws it: its shapes, and how they follow from count and length.

::

    y  +------------------ marker ------------------+      ring of substrate taps around the marker
       |   +-----+   step    +-----+   step  +-----+ |
       |   |  1  |---------->|  2  |-------->|  3  | |     ``every``: shapes of each emitter
       |   +-----+           +-----+         +-----+ |     ``whole``: drawn once, points right of the first
       |  =========================================  |     emitter lie ``step`` farther right for each more
       +---------------------------------------------+

Coordinates count from the centre of the first emitter at its shortest length. Points above it lie farther up by what a
longer emitter is longer. A cell without emitters, such as that of an ESD diode, is a fixed number of equal parts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    Point = tuple[int, int]
    Points = tuple[Point, ...]
    Shapes = Mapping[str, tuple[Points, ...]]
    Length = Callable[[Any, str], int]
    Grid = tuple[tuple[Points, ...], int, int, int]


@dataclass(frozen=True, eq=False)
class DeviceCell:
    """The cell of a device of one to ``most`` emitters side by side, compared by identity. [dbu]

    Attributes:
        marker: Layer whose one box is the outline of the device without its ring.
        emitter: Layer of the emitters; empty for a cell of one size.
        size: Width of one emitter, and the shortest length.
        step: Distance of neighbouring emitters in x.
        most: Most emitters; the number of parts of a cell of one size.
        every: Layer to the shapes of each emitter.
        whole: Layer to the shapes that are drawn once.
        single: The same for a device of one emitter.
        several: The same for a device of more.
        columns: Layer to cuts of each emitter: boxes that they fill from the lower left corner, their pitch, size and
            space; with a space they are spread evenly, and the pitch is the grid of their places.
        grids: The same for cuts that are drawn once.
        pins: Terminal to the conductor on which it is reached, and where.
        texts: Texts that the foundry's decks look for, with their places.
        ring: Layer of the ring around the marker to the distances of its inner and outer edges.
        middle: Fewest and most emitters to the shapes that stay in the middle of them.
        well: Terminal that is the n well, where the cell draws one.
        any_ring: Whether a substrate tap anywhere will do in a layout, so that the ring is only drawn, not compared.
    """

    marker: str
    emitter: str
    size: Point
    step: int
    most: int
    every: Shapes
    whole: Shapes
    single: Shapes
    several: Shapes
    columns: Mapping[str, tuple[Grid, ...]]
    pins: Mapping[str, tuple[str, Points]]
    ring: Mapping[str, tuple[int, int]]
    texts: Mapping[str, Point] = field(default_factory=dict)
    any_ring: bool = False
    grids: Mapping[str, tuple[Grid, ...]] = field(default_factory=dict)
    middle: tuple[tuple[Point, Shapes], ...] = ()
    well: str = "c"

    @property
    def fixed(self) -> bool:
        """Whether it has one size."""
        return not self.emitter

    @lru_cache(maxsize=512)  # noqa: B019 - cells live as long as their technology
    def shapes(self, count: int, length: int) -> dict[str, list[Points]]:
        """Return layer to polygons of a device of ``count`` emitters of ``length`` [dbu], without its ring.

        The result is shared and not to be changed.
        """
        found: dict[str, list[Points]] = {}
        for shapes in (self.whole, self.single if count == 1 else self.several):
            for layer, polygons in shapes.items():
                found.setdefault(layer, []).extend(self.stretched(points, count, length) for points in polygons)
        for (fewest, most), drawn in self.middle:
            for layer, polygons in drawn.items() if fewest <= count <= most else ():
                found.setdefault(layer, []).extend(self._in_middle(points, count, length) for points in polygons)
        for index in range(count):
            for layer, polygons in self.every.items():
                found.setdefault(layer, []).extend(self._moved(points, index, length) for points in polygons)
            for layer, columns in self.columns.items():
                cuts = found.setdefault(layer, [])
                for boxes, *how in columns:
                    cuts += [cut for box in boxes for cut in _cuts(self._moved(box, index, length), *how)]
        for layer, grids in self.grids.items():
            cuts = found.setdefault(layer, [])
            for boxes, *how in grids:
                cuts += [cut for box in boxes for cut in _cuts(self.stretched(box, count, length), *how)]
        return found

    def outline(self, count: int, length: int) -> Points:
        """Return lower left and upper right corner of the marker of such a device. [dbu]"""
        return _corners(self.stretched(self.whole[self.marker][0], count, length))

    def emitters(self, count: int, length: int) -> list[Points]:
        """Return the emitters of such a device as polygons."""
        return [self._moved(points, index, length) for index in range(count) for points in self.every[self.emitter]]

    def stretched(self, points: Points, count: int, length: int) -> Points:
        """Return a shape that is drawn once, for so many emitters of ``length``. [dbu]"""
        wider, longer = (count - 1) * self.step, length - self.size[1]
        if self.fixed:
            return points
        return tuple((x + wider * (x > 0), y + longer * (y > 0)) for x, y in points)

    def _in_middle(self, points: Points, count: int, length: int) -> Points:
        longer = length - self.size[1]
        return tuple((x + (count - 1) * self.step // 2, y + longer * (y > 0)) for x, y in points)

    def _moved(self, points: Points, index: int, length: int) -> Points:
        longer = length - self.size[1]
        return tuple((x + index * self.step, y + longer * (y > 0)) for x, y in points)


def read_cell(entry: Mapping[str, Any], size: Point, length: Length, where: str) -> DeviceCell:
    """Return the cell that ``entry`` of a technology file states; ``length`` makes a length in um one in dbu."""

    def points(shape: Any) -> Points:
        if not isinstance(shape[0], list):
            left, bottom, right, top = (length(number, where) for number in shape)
            return (left, bottom), (left, top), (right, top), (right, bottom)
        return tuple((length(x, where), length(y, where)) for x, y in shape)

    def shapes(key: str, of: Mapping[str, Any] = entry) -> dict[str, tuple[Points, ...]]:
        return {str(layer): tuple(map(points, every)) for layer, every in of.get(key, {}).items()}

    def grids(key: str) -> dict[str, tuple[Grid, ...]]:
        return {str(layer): tuple(map(grid, every)) for layer, every in entry.get(key, {}).items()}

    def grid(each: Mapping[str, Any]) -> Grid:
        size, space = length(each.get("size", 0), where), length(each.get("space", 0), where)
        return tuple(map(points, each["boxes"])), length(each.get("pitch", 0.005), where), size, space

    ring = entry.get("ring", {})
    return DeviceCell(
        marker=str(entry["marker"]),
        emitter=str(entry.get("emitter", "")),
        size=size,
        step=length(entry.get("step", 0), where),
        most=int(entry.get("most", 1)),
        every=shapes("every"),
        whole=shapes("whole"),
        single=shapes("single"),
        several=shapes("several"),
        columns=grids("columns"),
        grids=grids("grids"),
        pins={name: (str(pin["layer"]), points(pin["box"])) for name, pin in entry["pins"].items()},
        texts={str(text): points([place])[0] for text, place in entry.get("texts", {}).items()},
        ring={str(layer): (length(low, where), length(high, where)) for layer, (low, high) in ring.items()},
        middle=tuple(
            ((low, high), shapes("shapes", each)) for each in entry.get("middle", ()) for low, high in [each["of"]]
        ),
        well=str(entry.get("well", "c")),
        any_ring=bool(entry.get("any_ring", False)),
    )


def _corners(points: Sequence[Point]) -> Points:
    """Return lower left and upper right corner of the box around ``points``. [dbu]"""
    xs, ys = zip(*points, strict=True)
    return (min(xs), min(ys)), (max(xs), max(ys))


def _cuts(box: Points, pitch: int, size: int, space: int) -> list[Points]:
    """Return the squares that fit into a box from its lower left corner, as wide as the box where ``size`` is 0.

    With a ``space`` they are spread over the whole box, at no less than that, their places multiples of ``pitch``.
    """
    (left, bottom), (right, top) = box[0], box[2]
    size = size or right - left

    def places(low: int, high: int) -> Iterable[int]:
        if not space:
            return range(low, high - size + 1, pitch)
        several = (high - low - size) // (size + space)
        return (
            [low + (high - low - size) * n // (several * pitch) * pitch for n in range(several + 1)]
            if several
            else [low]
        )

    return [
        ((x, y), (x, y + size), (x + size, y + size), (x + size, y))
        for y in places(bottom, top)
        for x in places(left, right)
    ]
