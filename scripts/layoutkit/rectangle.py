"""The rectangle of the engine. Where shapes are read or drawn it becomes KLayout's ``Box``."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

Rect = tuple[int, int, int, int]
"""``(left, bottom, right, top)`` [dbu], for loops in which names cost too much."""


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
