"""Risers: vertical wires at the ends of rows, which join the rails of one net.

  | |              | |
--[#]--------------|-|--   rail of net a      a's risers are outermost, at both ends where there is room
--|-[#]------------[#]-|   rail of net b
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutkit.draw.row_metal import cuts_in
from layoutkit.draw.sketch import Area

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from layoutkit.draw.row_metal import Metal
    from layoutkit.draw.wires import Rail

DrawnRail = tuple[str, int, Area]
"""Net, level and area of a rail. [dbu]"""


class Risers:
    """The risers of a module: on which side each lies and how wide they are.

    Args:
        metal: Conductors and cuts.
        nets: Nets to join, outermost first.
        rails: All rails of the rows.
        currents: Net to its current. [mA]
        room: Room for risers at each end of the rows. [dbu]
        may_part: Whether each net may have one riser only, at one of the ends, where both have no room.
    """

    def __init__(
        self,
        metal: Metal,
        nets: Sequence[str],
        rails: Sequence[Rail],
        currents: Mapping[str, float],
        *,
        room: int,
        may_part: bool,
    ) -> None:
        self.metal = metal
        self.nets = list(nets)
        self.room = room
        self._least = needed_width(metal, rails, currents)
        both = not may_part or metal.riser_block(len(nets), self._wire(1)) <= room
        self.sides = (self.nets, self.nets) if both else (self.nets[::2], self.nets[1::2])
        self.width = self._wire(self._cuts([rail for rail in rails if rail.net in nets], currents))

    @property
    def lack(self) -> int:
        """What the rooms at the ends lack for the risers. [dbu]"""
        return max(0, self.metal.riser_block(max(map(len, self.sides)), self.width) - self.room)

    def _wire(self, cuts: int) -> int:
        """Return the width of risers with a number of cuts side by side."""
        return max(self.metal.wire(self.metal.riser, cuts), self._least)

    def _cuts(self, rails: Sequence[Rail], currents: Mapping[str, float]) -> int:
        """Return how many cuts side by side the risers hold: as many as currents need, or two where there is room."""
        metal, least = self.metal, 1
        for rail in rails:
            for level in range(rail.level, metal.riser):
                cut = metal.cuts[level]
                rows = max(1, cuts_in(cut, rail.high - rail.low - 2 * cut.enclose_below)[0])
                least = max(least, metal.cuts_for(level, currents.get(rail.net, 0.0), rows))
        if least > 1:
            return least
        return 2 if metal.riser_block(max(map(len, self.sides)), self._wire(2)) <= self.room else 1

    def shapes(self, ends: tuple[int, int], rails: Sequence[DrawnRail]) -> Iterator[tuple[str, Area]]:
        """Yield the risers and what joins them to ``rails`` as (layer, area); ``ends`` are the rails' ends in x."""
        metal = self.metal
        for net, riser in self._placed(ends, rails):
            yield metal.layer(metal.riser), riser
            for rail_net, level, area in rails:
                if rail_net == net:
                    yield from metal.stack_between(level, area, metal.riser, riser, crowded=True)

    def _placed(self, ends: tuple[int, int], rails: Sequence[DrawnRail]) -> Iterator[tuple[str, Area]]:
        """Yield net and area of each riser; all are equally long."""
        metal, width = self.metal, self.width
        pitch = width + metal.space(metal.riser, width)
        cut = metal.cuts[metal.riser - 1]
        inset = max(0, cut.enclose_below_end - cut.enclose_above)
        spans = [area for net, _, area in rails if net in self.nets]
        end = cut.enclose_above_end
        bottom, top = min(area.bottom for area in spans) - end, max(area.top for area in spans) + end
        lack = -(-metal.conductors[metal.riser].area // width) - (top - bottom)
        grow = metal.even(max(0, lack)) // 2
        for right, nets in enumerate(self.sides):
            for slot, net in enumerate(nets):
                offset = inset + slot * pitch
                left = ends[1] - offset - width if right else ends[0] + offset
                yield net, Area(left, bottom - grow, left + width, top + grow)


def needed_width(metal: Metal, rails: Sequence[Rail], currents: Mapping[str, float]) -> int:
    """Return the width of risers that carry the currents of the rails' nets. [dbu]"""
    nets = {rail.net for rail in rails}
    return max((metal.width_for(metal.riser, currents.get(net, 0.0)) for net in nets), default=0)
