"""Risers: vertical wires at the ends of rows, which join the rails of one net.

  | |              | |
--[#]--------------|-|--   rail of net a      a's risers are outermost, at both ends where there is room
--|-[#]------------[#]-|   rail of net b

Twins are two nets that are to be wired as mirror images. Their rails lie at different heights, so each has one riser,
as long as the other's and at the mirrored place, where wires can start alike::

  |                |
-[#]---------------|--     rail of net a: its riser is the left one
--|---------------[#]-     rail of net b: its riser is the right one
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from layoutkit.draw.sketch import Area

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from layoutkit.draw.row_metal import Metal


class Rail(NamedTuple):
    """A horizontal wire over or beside a row. [dbu]"""

    net: str
    level: int
    low: int
    high: int


DrawnRail = tuple[str, int, Area]
"""Net, level and area of a rail. [dbu]"""


class Twins(NamedTuple):
    """Two nets with a riser each at mirrored places, and the height that their rails reach from and to. [dbu]"""

    left: str
    right: str
    bottom: int
    top: int


class Joined(NamedTuple):
    """What risers join: nets with a riser at both ends where there is room, outermost first, and twins outside them."""

    nets: Sequence[str]
    twins: Sequence[Twins] = ()

    @property
    def names(self) -> list[str]:
        """All the nets."""
        return [*self.nets, *(net for pair in self.twins for net in pair[:2])]


class Risers:
    """The risers of a module: on which side each lies and how wide they are.

    Args:
        metal: Conductors and cuts.
        joined: Nets to join; those of twins at different heights lie above each other.
        rails: All rails of the rows.
        currents: Net to its current. [mA]
        room: Room for risers at each end of the rows. [dbu]
        may_part: Whether each net without a twin may have one riser only, at one of the ends, where both have no room.
    """

    def __init__(
        self,
        metal: Metal,
        joined: Joined,
        rails: Sequence[Rail],
        currents: Mapping[str, float],
        *,
        room: int,
        may_part: bool,
    ) -> None:
        self.metal = metal
        self.twins, nets = joined.twins, joined.nets
        self.nets = joined.names
        self.room = room
        self._least = needed_width(metal, rails, currents)
        self.slots = self._slots(self._wire(1))
        both = not may_part or metal.riser_block(len(self.slots) + len(nets), self._wire(1)) <= room
        self.sides = (list(nets), list(nets)) if both else (list(nets[::2]), list(nets[1::2]))
        self.width = self._wire(self._cuts([rail for rail in rails if rail.net in self.nets], currents))
        self.slots = self._slots(self.width)

    def _slots(self, width: int) -> list[list[Twins]]:
        """Return the twins by their distance from the ends: those in one slot lie above each other."""
        slots: list[list[Twins]] = []
        for pair in sorted(self.twins, key=lambda twins: (twins.bottom, twins.top)):
            bottom, _ = self._span(pair.bottom, pair.top, width)
            space = self.metal.space(self.metal.riser, width)
            ends = [self._span(slot[-1].bottom, slot[-1].top, width)[1] for slot in slots]
            free = next((number for number, end in enumerate(ends) if bottom - end >= space), None)
            if free is None:
                slots.append([pair])
            else:
                slots[free].append(pair)
        return slots

    def _span(self, bottom: int, top: int, width: int) -> tuple[int, int]:
        """Return where a riser starts and ends that joins rails from ``bottom`` to ``top``. [dbu]"""
        end = self.metal.cuts[self.metal.riser - 1].enclose_above_end
        lack = -(-self.metal.conductors[self.metal.riser].area // width) - (top - bottom + 2 * end)
        grow = self.metal.even(max(0, lack)) // 2
        return bottom - end - grow, top + end + grow

    @property
    def lack(self) -> int:
        """What the rooms at the ends lack for the risers. [dbu]"""
        return max(0, self._block(self.width) - self.room)

    @property
    def free(self) -> int:
        """Width of the room at each end that the risers leave free, at its inner side. [dbu]"""
        return max(0, self.room - self._block(self.width))

    def _block(self, width: int) -> int:
        """Return the width of the risers at one end of the rows."""
        return self.metal.riser_block(len(self.slots) + max(map(len, self.sides)), width)

    def reach(self, ends: tuple[int, int]) -> tuple[int, int]:
        """Return the right edge of the risers at the left end of the rows, and the left edge of those at the right."""
        left, right = (
            self.metal.riser_block(count, self.width) if count else 0
            for count in (len(self.slots) + len(side) for side in self.sides)
        )
        return ends[0] + left, ends[1] - right

    def _wire(self, cuts: int) -> int:
        """Return the width of risers with a number of cuts side by side."""
        return max(self.metal.wire(self.metal.riser, cuts), self._least)

    def _cuts(self, rails: Sequence[Rail], currents: Mapping[str, float]) -> int:
        """Return how many cuts side by side the risers hold: as many as currents need, or two where there is room."""
        metal, least = self.metal, 1
        for rail in rails:
            for level in range(rail.level, metal.riser):
                beyond = 2 * metal.cuts[level].enclose_below
                rows = max(1, len(metal.cuts_in(level, rail.high - rail.low - beyond)))
                least = max(least, metal.cuts_for(level, currents.get(rail.net, 0.0), rows))
        if least > 1:
            return least
        return 2 if self._block(self._wire(2)) <= self.room else 1

    def shapes(self, ends: tuple[int, int], rails: Sequence[DrawnRail]) -> Iterator[tuple[str, Area]]:
        """Yield the risers and what joins them to ``rails`` as (layer, area); ``ends`` are the rails' ends in x.

        The cuts that join twins are left out, see ``crossings``: all else is as symmetric as the rails.
        """
        metal = self.metal
        for net, riser in self._placed(ends, rails):
            yield metal.layer(metal.riser), riser
            for rail_net, level, area in rails:
                if rail_net == net:
                    yield from metal.stack_between(level, area, metal.riser, riser, crowded=True)
        top = metal.cuts[metal.riser - 1].layer
        for nets, riser in self.twin_risers(ends):
            yield metal.layer(metal.riser), riser
            for net, level, area in rails:
                if net in nets:
                    stack = metal.stack_between(level, area, metal.riser, riser, crowded=True)
                    yield from (shape for shape in stack if shape[0] != top)

    def crossings(self, ends: tuple[int, int], rails: Sequence[DrawnRail]) -> Iterator[tuple[str, Area]]:
        """Yield the uppermost cuts that join each twin's riser to its own rails, and not to those of the other twin."""
        metal = self.metal
        top = metal.cuts[metal.riser - 1].layer
        for nets, riser in self.twin_risers(ends):
            for net, level, area in rails:
                if net == nets[0]:
                    stack = metal.stack_between(level, area, metal.riser, riser, crowded=True)
                    yield from (shape for shape in stack if shape[0] == top)

    def twin_risers(self, ends: tuple[int, int]) -> Iterator[tuple[tuple[str, str], Area]]:
        """Yield each twin's riser with its net and the other twin's."""
        for slot, pairs in enumerate(self.slots):
            for pair in pairs:
                bottom, top = self._span(pair.bottom, pair.top, self.width)
                for right, nets in enumerate(((pair.left, pair.right), (pair.right, pair.left))):
                    left = self._left(ends, slot, right=bool(right))
                    yield nets, Area(left, bottom, left + self.width, top)

    def _left(self, ends: tuple[int, int], slot: int, *, right: bool) -> int:
        """Return the left edge of the risers in a slot, counted from the left or right end. [dbu]"""
        metal, cut = self.metal, self.metal.cuts[self.metal.riser - 1]
        inset = max(0, cut.enclose_below_end - cut.enclose_above)
        offset = inset + slot * (self.width + metal.space(metal.riser, self.width))
        return ends[1] - offset - self.width if right else ends[0] + offset

    def _placed(self, ends: tuple[int, int], rails: Sequence[DrawnRail]) -> Iterator[tuple[str, Area]]:
        """Yield net and area of each riser that is no twin's; all are equally long."""
        nets = {net for side in self.sides for net in side}
        spans = [area for net, _, area in rails if net in nets]
        if not spans:
            return
        bottom, top = self._span(min(area.bottom for area in spans), max(area.top for area in spans), self.width)
        for right, side in enumerate(self.sides):
            for slot, net in enumerate(side, len(self.slots)):
                left = self._left(ends, slot, right=bool(right))
                yield net, Area(left, bottom, left + self.width, top)


def needed_width(metal: Metal, rails: Sequence[Rail], currents: Mapping[str, float]) -> int:
    """Return the width of risers that carry the currents of the rails' nets. [dbu]"""
    nets = {rail.net for rail in rails}
    return max((metal.width_for(metal.riser, currents.get(net, 0.0)) for net in nets), default=0)
