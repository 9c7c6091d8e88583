"""Arrays of cuts, compared as a whole with other cuts and keepouts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from layoutkit.route.occupancy import too_close

if TYPE_CHECKING:
    from layoutkit.route.occupancy import Shape
    from layoutkit.route.routes import Rect


class CutArray(NamedTuple):
    """The cuts of a via: left edges of its columns, lower edges of its rows, and the side of each cut. [dbu]

    Every column crosses every row, so that the nearest two cuts of two arrays are in the nearest columns and rows.
    """

    lefts: tuple[int, ...]
    bottoms: tuple[int, ...]
    size: int

    @property
    def hull(self) -> Rect:
        """The box of all cuts."""
        return self.lefts[0], self.bottoms[0], self.lefts[-1] + self.size, self.bottoms[-1] + self.size

    def is_near(self, other: CutArray, space: int) -> bool:
        """Return whether two cuts are nearer than ``space`` (Euclidean)."""
        if not too_close(self.hull, other.hull, space):
            return False
        dx = min(abs(one - two) for one in self.lefts for two in other.lefts)
        dy = min(abs(one - two) for one in self.bottoms for two in other.bottoms)
        return max(0, dx - self.size) ** 2 + max(0, dy - self.size) ** 2 < space * space

    def hinders(self, shape: Shape, space: int) -> bool:
        """Return whether a cut comes too near to a shape, or enters a keepout; see ``Shape.hinders``."""
        (left, bottom, right, top), size = shape.rect, self.size
        dx = min(max(low - right, left - low - size) for low in self.lefts)
        dy = min(max(low - top, bottom - low - size) for low in self.bottoms)
        if shape.keepout:
            return dx < 0 and dy < 0
        return max(0, dx) ** 2 + max(0, dy) ** 2 < space * space
