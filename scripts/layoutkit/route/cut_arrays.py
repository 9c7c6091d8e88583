"""Arrays of cuts, compared as a whole with other cuts and keepouts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from layoutkit.route.occupancy import too_close

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from layoutkit.route.occupancy import Shape
    from layoutkit.route.routes import Rect
    from layoutkit.technology.technology import Cut


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


def dense_array(rule: Cut, cuts: Sequence[Rect], near: Callable[[Rect], Iterable[Rect]]) -> set[Rect]:
    """Return ``cuts`` and cuts around them that make one array which is too dense; empty if they make none.

    This is for cuts further apart than ``array_space`` that still count as one array (``array_reach``), if they lie
    beside or above each other in part: foundries' decks join them by growing and shrinking, which parts diagonal ones.
    It then does not matter which wires they lie on, nor that each via alone has too few for an array.

    Args:
        rule: The cut.
        cuts: Those of one via.
        near: Returns all cuts within ``array_reach`` of one in x and in y; the cut itself may be among them.
    """
    if rule.array_reach <= rule.array_space:
        return set()
    least = rule.array_count * rule.size + (rule.array_count - 1) * rule.space
    found, left, dense = set(cuts), list(cuts), False
    while left:
        cut = left.pop()
        around = [other for other in near(cut) if other != cut]
        dense = dense or any(too_close(cut, other, rule.array_space) for other in around)
        beside = [other for other in around if other not in found and _are_abreast(cut, other)]
        left += beside
        found.update(beside)
        if dense and len(found) >= rule.array_count**2:
            lefts, bottoms, rights, tops = zip(*found, strict=True)
            if max(rights) - min(lefts) >= least and max(tops) - min(bottoms) >= least:
                return found
    return set()


def _are_abreast(one: Rect, other: Rect) -> bool:
    """Return whether two rectangles lie beside or above each other in part, instead of diagonally."""
    return (one[0] < other[2] and other[0] < one[2]) or (one[1] < other[3] and other[1] < one[3])
