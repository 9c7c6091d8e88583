"""A column of single vias from the second conductor up to another, each conductor between with a pad of legal size."""

from __future__ import annotations

from math import ceil, sqrt
from typing import TYPE_CHECKING

from layoutkit.draw.sketch import Area
from layoutkit.errors import TechnologyError

if TYPE_CHECKING:
    from layoutkit.draw.sketch import Sketch
    from layoutkit.technology import Technology


class ViaColumn:
    """The pads and cuts between the second conductor and ``upper``.

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
