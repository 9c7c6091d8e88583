"""Which conductors a diffusion row is wired on, and the cuts that join two pieces of metal.

The levels are numbers of conductors, from below:

- 0 has the contacts and the gate strips. It is the level of the straps where it conducts well enough.
- 1 has the gate rails beside the diffusion and the rails of the tap ring.
- ``strap``: metal along each source and drain, joined to the first conductor by cuts at pitch.
- ``rail``: horizontal source and drain rails over the fingers.
- ``riser``: vertical wires at the ends of the rows, which join the rails of one net.
"""

from __future__ import annotations

from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING

from layoutkit.rectangle import Rectangle

if TYPE_CHECKING:
    from collections.abc import Iterable

    from layoutkit.technology import Technology

# A finger of this width, with this current per width at full drive, loses at most this share of the supply in its
# metal; twice that is about the loss of current. 0.5 mA/um is that of minimum length in the processes shipped here.
_FINGER_UM = 5.0
_CURRENT_MA_UM = 0.5
_SUPPLY_SHARE = 0.01
_LEAST_SUPPLY_V = 1.2
# Wires for stated currents become no wider than this: wider ones need more space in some processes (sky130 m2.3a).
_WIDEST_UM = 2.9


def overlap(one: Rectangle, other: Rectangle) -> Rectangle:
    """Return what two areas have in common; its edges cross if they have nothing in common."""
    return Rectangle(
        max(one.left, other.left),
        max(one.bottom, other.bottom),
        min(one.right, other.right),
        min(one.top, other.top),
    )


def hull(areas: Iterable[Rectangle]) -> Rectangle:
    """Return the smallest rectangle around ``areas``."""
    lefts, bottoms, rights, tops = zip(*areas, strict=True)
    return Rectangle(min(lefts), min(bottoms), max(rights), max(tops))


class Metal:
    """The conductors and cuts of a technology as a row uses them."""

    def __init__(self, tech: Technology) -> None:
        self.tech = tech
        self.grid = tech.grid
        self.conductors = tech.conductors
        self.cuts = tech.cuts

    @cached_property
    def strap(self) -> int:
        """The level of the straps: the lowest conductor on which a wide finger loses little."""
        limit_v = _SUPPLY_SHARE * _LEAST_SUPPLY_V
        for level, conductor in enumerate(self.conductors[:-2]):
            sheet = conductor.sheet_ohm
            squares = _FINGER_UM / self.tech.to_um(max(conductor.width, self.tech.contact.size))
            # Current that enters evenly along a wire drops a third of what it would drop entering at the far end.
            if sheet is None or sheet * squares / 3 * _FINGER_UM * _CURRENT_MA_UM * 1e-3 <= limit_v:
                return level
        return 0

    @property
    def rail(self) -> int:
        """The level of the source and drain rails."""
        return self.strap + 1

    @property
    def riser(self) -> int:
        """The level of the risers."""
        return self.strap + 2

    def layer(self, level: int) -> str:
        """Return the layer of a conductor."""
        return self.conductors[level].layer

    def space(self, level: int, width: int) -> int:
        """Return the distance that metal of ``width`` keeps from other metal of its level. [dbu]"""
        conductor = self.conductors[level]
        wide = conductor.wide_width is not None and width >= conductor.wide_width
        return conductor.spacing(wide=wide)

    def wire(self, level: int, count: int = 1) -> int:
        """Return the width of a long wire that holds ``count`` cuts side by side, to above and to below. [dbu]"""
        widths = [self.conductors[level].width]
        if level:
            cut = self.cuts[level - 1]
            widths.append(count * cut.size + (count - 1) * cut.spacing(count) + 2 * cut.enclose_above)
        if level < len(self.cuts):
            cut = self.cuts[level]
            widths.append(count * cut.size + (count - 1) * cut.spacing(count) + 2 * cut.enclose_below)
        return self.even(max(widths))

    def width_for(self, level: int, current_ma: float) -> int:
        """Return the width of a wire that carries a current; 0 without a limit, or if no allowed wire carries it."""
        conductor = self.conductors[level]
        if not conductor.current_ma_um or current_ma <= (conductor.narrow_current_ma or 0.0):
            return 0
        width_um = current_ma / conductor.current_ma_um
        return 0 if width_um > self.widest(level) else self.even(ceil(round(width_um / self.tech.dbu_um, 6)))

    def widest(self, level: int) -> float:
        """Return the width of the widest wire that is drawn for a current [um]; it needs no more space than others."""
        return max(_WIDEST_UM, self.tech.to_um(self.conductors[level].wide_width or 0) / 2)

    def carries(self, level: int, current_ma: float) -> bool:
        """Return whether a wire for a current may be as wide as it needs; True without a limit."""
        conductor = self.conductors[level]
        return not conductor.current_ma_um or current_ma <= max(
            self.most_for(level), conductor.narrow_current_ma or 0.0
        )

    def most_for(self, level: int) -> float:
        """Return the current of the widest wire that is drawn for a current. [mA]"""
        return self.widest(level) * (self.conductors[level].current_ma_um or 0.0)

    def cuts_of_each(self, level: int, current_ma: float, lines: int) -> int:
        """Return how many cuts each of some lines needs so that together, two at least, they carry a current.

        The answer is 1 without current or limit, or if lines as long as the widest wire is wide do not carry it.
        """
        cut = self.cuts[level]
        if not cut.current_ma or current_ma <= 0:
            return 1
        needed = -(-cut.count_for(current_ma) // lines)
        return needed if needed <= len(self.cuts_in(level, self.tech.to_dbu(_WIDEST_UM))) else 1

    def cuts_in(self, level: int, room: int) -> list[int]:
        """Return the places of the cuts that ``room`` holds in a line beside other arrays, from the first. [dbu]

        As many as make an array keep the space of arrays. If cuts further apart still count as one array, they stand in
        equal groups of fewer, out of reach of each other: whatever lies beside them, no array becomes that long.
        """
        cut = self.cuts[level]
        pitch, most = cut.size + cut.space, cut.array_count - 1
        count = (room + cut.space) // pitch
        if cut.spacing(count) == cut.space:
            return [number * pitch for number in range(count)]
        if cut.array_reach > cut.array_space:
            apart = cut.array_reach + self.grid - cut.space  # more than between the cuts of a group
            of_size = {size: (room + cut.space + apart) // (size * pitch + apart) for size in range(1, most + 1)}
            size, groups = max(of_size.items(), key=lambda item: item[0] * item[1])
            return [number * pitch + number // size * apart for number in range(size * groups)]
        spread = (room + cut.array_space) // (cut.size + cut.array_space)
        if spread <= most:
            return [number * pitch for number in range(most)]
        return [number * (cut.size + cut.array_space) for number in range(spread)]

    def even(self, length: int) -> int:
        """Return the smallest length, not below ``length``, of which half is on the grid. [dbu]"""
        return -(-length // (2 * self.grid)) * 2 * self.grid

    def riser_block(self, risers: int, width: int) -> int:
        """Return the width of a number of risers, each of ``width``, from the end of the rails. [dbu]"""
        cut = self.cuts[self.riser - 1]
        between = self.space(self.riser, width)
        return max(0, cut.enclose_below_end - cut.enclose_above) + risers * (width + between) - between

    def cuts_between(self, level: int, lower: Rectangle, upper: Rectangle, *, crowded: bool = False) -> list[Rectangle]:
        """Return as many cuts as fit where ``lower`` on ``level`` and ``upper`` on the next conductor overlap.

        The array is centred; one right of x = 0 is the mirror image of the one left of it. In a ``crowded`` one many
        cuts in line keep the space of cuts in arrays, for the sake of the arrays beside it.
        """
        if lower.left + lower.right + upper.left + upper.right > 0:
            mirrored = self._cuts_between(level, _mirrored(lower), _mirrored(upper), crowded)
            return [_mirrored(area) for area in mirrored]
        return self._cuts_between(level, lower, upper, crowded)

    def _cuts_between(self, level: int, lower: Rectangle, upper: Rectangle, crowded: bool) -> list[Rectangle]:
        cut = self.cuts[level]
        below, above = (cut.enclose_below, cut.enclose_below_end), (cut.enclose_above, cut.enclose_above_end)
        best: list[Rectangle] = []
        for way_below in (below, below[::-1]):
            for way_above in (above, above[::-1]):
                inside = lower.enlarged(-way_below[0], -way_below[1]), upper.enlarged(-way_above[0], -way_above[1])
                found = self._array(level, overlap(*inside), crowded)
                if len(found) > len(best):
                    best = found
        return best

    def _array(self, level: int, room: Rectangle, crowded: bool) -> list[Rectangle]:
        cut = self.cuts[level]
        width, height, pitch = room.right - room.left, room.top - room.bottom, cut.size + cut.space
        if crowded:
            across, up = self.cuts_in(level, width), self.cuts_in(level, height)
        else:
            columns, rows = (width + cut.space) // pitch, (height + cut.space) // pitch
            if cut.array_count and min(columns, rows) >= cut.array_count:
                columns, rows = (cut.array_count - 1, rows) if columns <= rows else (columns, cut.array_count - 1)
            across, up = ([number * pitch for number in range(count)] for count in (columns, rows))
        if not across or not up:
            return []
        step = 2 * self.grid
        left = room.left + (width - across[-1] - cut.size) // step * self.grid
        low = room.bottom + (height - up[-1] - cut.size) // step * self.grid
        return [Rectangle(left + x, low + y, left + x + cut.size, low + y + cut.size) for y in up for x in across]

    def stack_between(
        self, low: int, lower: Rectangle, high: int, upper: Rectangle, *, crowded: bool = False
    ) -> list[tuple[str, Rectangle]]:
        """Return cuts and pads between ``lower`` on level ``low`` and ``upper`` on ``high``, as (layer, area)."""
        shapes: list[tuple[str, Rectangle]] = []
        crossing, within = overlap(lower, upper), hull((lower, upper))
        below = lower
        for level in range(low, high):
            above = upper if level + 1 == high else self.pad(level + 1, crossing, within)
            if level + 1 < high:
                shapes.append((self.layer(level + 1), above))
            shapes += [
                (self.cuts[level].layer, area) for area in self.cuts_between(level, below, above, crowded=crowded)
            ]
            below = above
        return shapes

    def pad(self, level: int, crossing: Rectangle, within: Rectangle) -> Rectangle:
        """Return ``crossing`` made large enough for a cut below and above it and for the minimum area.

        It is centred, but does not extend beyond the left and right edge of ``within``.
        """
        below, above, conductor = self.cuts[level - 1], self.cuts[level], self.conductors[level]
        ends = max(below.size + 2 * below.enclose_above_end, above.size + 2 * above.enclose_below_end)
        sides = self.wire(level)
        width, height = crossing.right - crossing.left, crossing.top - crossing.bottom
        width, height = max(width, ends), max(height, sides)
        width = max(width, -(-conductor.area // height))
        dx = self.even(width - (crossing.right - crossing.left)) // 2
        dy = self.even(height - (crossing.top - crossing.bottom)) // 2
        pad = crossing.enlarged(dx, dy)
        shift = max(0, within.left - pad.left) - max(0, pad.right - within.right)
        return pad._replace(left=pad.left + shift, right=pad.right + shift)


def _mirrored(area: Rectangle) -> Rectangle:
    return Rectangle(-area.right, area.bottom, -area.left, area.top)
