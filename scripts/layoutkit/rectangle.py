"""The rectangle of the engine, and an index of rectangles per layer in buckets that answers "what is near".

Where shapes are read or drawn a rectangle becomes KLayout's ``Box``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Rect = tuple[int, int, int, int]
"""``(left, bottom, right, top)`` [dbu], for loops in which names cost too much."""
BUCKET = 4000
"""Side of a bucket. [dbu]"""


class Rectangle(NamedTuple):
    """An axis-parallel rectangle. [dbu]"""

    left: int
    bottom: int
    right: int
    top: int

    @classmethod
    def around(cls, boxes: Sequence[Rectangle]) -> Rectangle:
        """Return the bounding box of at least one rectangle."""
        return cls(
            min(box.left for box in boxes),
            min(box.bottom for box in boxes),
            max(box.right for box in boxes),
            max(box.top for box in boxes),
        )

    def enlarged(self, dx: int, dy: int) -> Rectangle:
        """Return it grown by ``dx`` at the left and right and by ``dy`` at the bottom and top."""
        return Rectangle(self.left - dx, self.bottom - dy, self.right + dx, self.top + dy)

    def steps(self, grid: int) -> Rectangle:
        """Return it in steps of the grid, rounded outwards."""
        return Rectangle(self.left // grid, self.bottom // grid, -(-self.right // grid), -(-self.top // grid))


class Shape(NamedTuple):
    """One rectangle, whose it is (None: nobody's), and whether wide-metal spacing applies to it.

    A ``keepout`` is an area without metal that nothing may enter; no distance is kept to it.
    """

    rect: Rect
    net: str | None
    wide: bool
    keepout: bool = False

    def hinders(self, rect: Rect, space: int) -> bool:
        """Return whether ``rect`` comes closer than ``space`` (Euclidean; touching included), or enters a keepout."""
        return overlaps(self.rect, rect) if self.keepout else too_close(self.rect, rect, space)


class FixedMetal(NamedTuple):
    """Metal, a cut or a keepout that is already there: its layer, its net, and whether wide-metal spacing applies."""

    layer: str
    rect: Rect
    net: str | None
    wide: bool = False
    keepout: bool = False


class Occupancy:
    """Rectangles per layer key (a conductor's or a cut's name), findable by area and removable by net."""

    def __init__(self) -> None:
        self._buckets: dict[str, dict[tuple[int, int], dict[Shape, int]]] = {}

    def add(self, layer: str, shape: Shape) -> None:
        """Enter a shape; the same shape may be entered several times."""
        buckets = self._buckets.setdefault(layer, {})
        for key in _keys(shape.rect):
            bucket = buckets.setdefault(key, {})
            bucket[shape] = bucket.get(shape, 0) + 1

    def remove(self, layer: str, shape: Shape) -> None:
        """Take one entry of a shape out again."""
        for key in _keys(shape.rect):
            bucket = self._buckets[layer][key]
            bucket[shape] -= 1
            if not bucket[shape]:
                del bucket[shape]

    def near(self, layer: str, rect: Rect, distance: int) -> Iterator[Shape]:
        """Yield each shape that comes closer than ``distance`` to ``rect`` in x and in y, touching included."""
        left, bottom, right, top = rect
        window = (left - distance, bottom - distance, right + distance, top + distance)
        buckets = self._buckets.get(layer)
        if not buckets:
            return
        seen: set[Shape] = set()
        first, last = (window[0] // BUCKET, window[1] // BUCKET), (window[2] // BUCKET, window[3] // BUCKET)
        if (last[0] - first[0] + 1) * (last[1] - first[1] + 1) > len(buckets):
            inside = [k for k in buckets if first[0] <= k[0] <= last[0] and first[1] <= k[1] <= last[1]]
        else:
            inside = _keys(window)
        for key in inside:
            for shape in buckets.get(key, ()):
                if shape not in seen and overlaps(shape.rect, window):
                    seen.add(shape)
                    yield shape


def overlaps(one: Rect, other: Rect) -> bool:
    """Return whether two rectangles share an area (touching is not enough)."""
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def holds(outer: Rect, inner: Rect) -> bool:
    """Return whether a rectangle lies inside another one, or is the same."""
    return outer[0] <= inner[0] and outer[1] <= inner[1] and outer[2] >= inner[2] and outer[3] >= inner[3]


def touches(one: Rect, other: Rect) -> bool:
    """Return whether two rectangles share an area, an edge or a corner."""
    return one[0] <= other[2] and other[0] <= one[2] and one[1] <= other[3] and other[1] <= one[3]


def too_close(one: Rect, other: Rect, space: int) -> bool:
    """Return whether two rectangles are nearer than ``space`` (Euclidean), touching and overlapping included."""
    dx = max(one[0] - other[2], other[0] - one[2], 0)
    dy = max(one[1] - other[3], other[1] - one[3], 0)
    return dx * dx + dy * dy < space * space


def _keys(rect: Rect) -> list[tuple[int, int]]:
    return [
        (column, row)
        for column in range(rect[0] // BUCKET, rect[2] // BUCKET + 1)
        for row in range(rect[1] // BUCKET, rect[3] // BUCKET + 1)
    ]
