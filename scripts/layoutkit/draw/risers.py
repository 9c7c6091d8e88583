"""Risers: vertical wires that join the rails of one net, at the ends of rows or between the channels.

  | |              | |
--[#]--------------|-|--   rail of net a      a's risers are outermost, at both ends where there is room
--|-[#]------------[#]-|   rail of net b

Twins are two nets that are to be wired as mirror images. Their rails lie at different heights, so each has one riser,
as long as the other's and at the mirrored place, where wires can start alike::

  |                |
-[#]---------------|--     rail of net a: its riser is the left one
--|---------------[#]-     rail of net b: its riser is the right one

Inner risers are those of twins inside a matched group, over columns of their sources and drains. Risers at the ends of
the rows need rails as long as the rows. Risers between the channels need rails from their first contact to their last,
and rails are what most of the capacitance of a drain is made of::

         |     |
       --[#]------     rail of net a: its riser is the left one
     -----|---[#]---   rail of net b: its riser is the right one
         |     |

Wires lengthen them over the columns, upwards or downwards. Devices must stay equally covered by metal: a shorter rail
covers fewer fingers, so the pattern decides, such as ABBA/BAAB, whether a group has inner risers.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from layoutkit.rectangle import Rectangle

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from layoutkit.draw.row_metal import Metal


class Rail(NamedTuple):
    """A horizontal wire over or beside a row. [dbu]"""

    net: str
    level: int
    low: int
    high: int


DrawnRail = tuple[str, int, Rectangle]
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
                least = max(least, metal.cuts_of_each(level, currents.get(rail.net, 0.0), rows))
        if least > 1:
            return least
        return 2 if self._block(self._wire(2)) <= self.room else 1

    def shapes(self, ends: tuple[int, int], rails: Sequence[DrawnRail]) -> Iterator[tuple[str, Rectangle]]:
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

    def crossings(self, ends: tuple[int, int], rails: Sequence[DrawnRail]) -> Iterator[tuple[str, Rectangle]]:
        """Yield the uppermost cuts that join each twin's riser to its own rails, and not to those of the other twin."""
        metal = self.metal
        top = metal.cuts[metal.riser - 1].layer
        for nets, riser in self.twin_risers(ends):
            for net, level, area in rails:
                if net == nets[0]:
                    stack = metal.stack_between(level, area, metal.riser, riser, crowded=True)
                    yield from (shape for shape in stack if shape[0] == top)

    def twin_risers(self, ends: tuple[int, int]) -> Iterator[tuple[tuple[str, str], Rectangle]]:
        """Yield each twin's riser with its net and the other twin's."""
        for slot, pairs in enumerate(self.slots):
            for pair in pairs:
                bottom, top = self._span(pair.bottom, pair.top, self.width)
                for right, nets in enumerate(((pair.left, pair.right), (pair.right, pair.left))):
                    left = self._left(ends, slot, right=bool(right))
                    yield nets, Rectangle(left, bottom, left + self.width, top)

    def _left(self, ends: tuple[int, int], slot: int, *, right: bool) -> int:
        """Return the left edge of the risers in a slot, counted from the left or right end. [dbu]"""
        metal, cut = self.metal, self.metal.cuts[self.metal.riser - 1]
        inset = max(0, cut.enclose_below_end - cut.enclose_above)
        offset = inset + slot * (self.width + metal.space(metal.riser, self.width))
        return ends[1] - offset - self.width if right else ends[0] + offset

    def _placed(self, ends: tuple[int, int], rails: Sequence[DrawnRail]) -> Iterator[tuple[str, Rectangle]]:
        """Yield net and area of each riser that is no twin's; all are equally long."""
        nets = {net for side in self.sides for net in side}
        spans = [area for net, _, area in rails if net in nets]
        if not spans:
            return
        bottom, top = self._span(min(area.bottom for area in spans), max(area.top for area in spans), self.width)
        for right, side in enumerate(self.sides):
            for slot, net in enumerate(side, len(self.slots)):
                left = self._left(ends, slot, right=bool(right))
                yield net, Rectangle(left, bottom, left + self.width, top)


def needed_width(metal: Metal, rails: Sequence[Rail], currents: Mapping[str, float]) -> int:
    """Return the width of risers that carry the currents of the rails' nets. [dbu]"""
    nets = {rail.net for rail in rails}
    return max((metal.width_for(metal.riser, currents.get(net, 0.0)) for net in nets), default=0)


class NetRail(NamedTuple):
    """A rail of a row, with what it has to reach. [dbu]

    Attributes:
        net: Its net.
        level: Number of its conductor.
        low: Its lower edge.
        high: Its upper edge.
        contacts: Leftmost and rightmost end that its cuts to the row ask for.
        columns: Middles of the columns that it joins.
        beside: Whether a rail of the other twin lies beside it, at the other side of x = 0.
    """

    net: str
    level: int
    low: int
    high: int
    contacts: tuple[int, int]
    columns: tuple[int, ...] = ()
    beside: bool = False


class Channel(NamedTuple):
    """The channel of a finger of a matched device. [dbu]"""

    device: str
    area: Rectangle


class RiserSurroundings(NamedTuple):
    """What inner risers have to go around.

    Attributes:
        channels: The matched channels.
        columns: Middles of columns that lie above each other in all rows.
        half_width: How far risers may extend to the left and right of x = 0. [dbu]
        taken: Other metal on the conductor of the risers, and metal that their cuts would touch. [dbu]
    """

    channels: Sequence[Channel]
    columns: Collection[int]
    half_width: int
    taken: Sequence[Rectangle]


class Place(NamedTuple):
    """Where the riser of the right twin lies; that of the left one is its mirror image. [dbu]

    Attributes:
        left: Its left edge.
        right: Its right edge.
        pad: Left and right edge of its wider parts at the rails.
    """

    left: int
    right: int
    pad: tuple[int, int]


class InnerRisers:
    """The risers of twins between the channels of a matched group; nets that find no room there have none.

    Args:
        metal: Conductors and cuts.
        pairs: The nets of the left and of the right riser.
        rails: All rails of the rows.
        around: What is in the way.
    """

    def __init__(
        self, metal: Metal, pairs: Iterable[tuple[str, str]], rails: Sequence[NetRail], around: RiserSurroundings
    ) -> None:
        self.metal = metal
        self.around = around
        self.all_rails = rails
        self.rails = {pair: [rail for rail in rails if rail.net in pair] for pair in pairs}
        self.places: dict[tuple[str, str], Place] = {}
        for pair in self.rails:
            place = None if self.nets & {*pair} else self._best_place(pair)
            if place is not None:
                self.places[pair] = place

    @property
    def nets(self) -> set[str]:
        """All nets with such a riser."""
        return {net for pair in self.places for net in pair}

    @property
    def reach(self) -> int:
        """How far the risers extend from x = 0, with the space that they keep; 0 without any. [dbu]"""
        ends = [(place.pad[1], place.pad[1] - place.pad[0]) for place in self.places.values()]
        return max((end + self.metal.space(self.metal.riser, width) for end, width in ends), default=0)

    def span(self, net: str, bottom: int, top: int) -> tuple[int, int] | None:
        """Return the left and right end of a rail, or None if its net has no riser here. [dbu]"""
        for pair, place in self.places.items():
            for rail in self.rails[pair]:
                if (rail.net, rail.low, rail.high) == (net, bottom, top):
                    return self._span(rail, place)
        return None

    def risers(self) -> Iterator[tuple[tuple[str, str], Rectangle]]:
        """Yield each riser with its net and the other twin's.

        They run over all channels, so that all are alike; where they cover both devices of each row alike, from the
        lowest rail to the highest one only.
        """
        for pair, place in self.places.items():
            bottom, top = self._ends(place, self.rails[pair])
            yield pair, Rectangle(-place.right, bottom, -place.left, top)
            yield pair[::-1], Rectangle(place.left, bottom, place.right, top)

    def _ends(self, place: Place, rails: Sequence[NetRail]) -> tuple[int, int]:
        """Return the lower and upper end of the risers of two nets. [dbu]"""
        metal = self.metal
        end = metal.cuts[metal.riser - 1].enclose_above_end
        bottom, top = min(rail.low - end for rail in rails), max(rail.high + end for rail in rails)
        if not self._covers_rows_equally(place):
            bottom = min(bottom, *(each.area.bottom for each in self.around.channels))
            top = max(top, *(each.area.top for each in self.around.channels))
        least = -(-metal.conductors[metal.riser].area // (place.right - place.left))
        grow = metal.even(max(0, least - (top - bottom))) // 2
        return bottom - grow, top + grow

    def shapes(self, rails: Sequence[DrawnRail]) -> Iterator[tuple[str, Rectangle]]:
        """Yield the risers and what joins them to ``rails`` as (layer, area), without the cuts of ``crossings``."""
        layer, cuts = self.metal.layer(self.metal.riser), self.metal.cuts[self.metal.riser - 1].layer
        for nets, riser in self.risers():
            yield layer, riser
            yield from (shape for shape in self._stacks(nets, riser, nets, rails) if shape[0] != cuts)
        for pair, place in self.places.items():
            yield from ((layer, pad) for pad in self._pads(pair, place))
            for gate, link in self._gate_links(pair):
                left, right = self._span(gate, place)
                rail = Rectangle(left, gate.low, right, gate.high)
                yield self.metal.layer(self.metal.rail), link
                yield from self.metal.stack_between(gate.level, rail, self.metal.rail, link)

    def crossings(self, rails: Sequence[DrawnRail]) -> Iterator[tuple[str, Rectangle]]:
        """Yield the uppermost cuts that join each riser to its own rails, and not to those of the other twin."""
        cuts = self.metal.cuts[self.metal.riser - 1].layer
        for nets, riser in self.risers():
            yield from (shape for shape in self._stacks(nets, riser, nets[:1], rails) if shape[0] == cuts)

    def _stacks(
        self, nets: tuple[str, str], riser: Rectangle, own: Sequence[str], rails: Sequence[DrawnRail]
    ) -> Iterator[tuple[str, Rectangle]]:
        """Yield what joins a riser to the rails of the nets ``own``."""
        metal, pair = self.metal, nets if nets in self.places else nets[::-1]
        place = self.places[pair]
        wide = riser.enlarged(place.left - place.pad[0], 0)
        linked = [(gate.net, gate.low, gate.high) for gate, _ in self._gate_links(pair)]
        for net, level, area in rails:
            if net in own and (net, area.bottom, area.top) not in linked and _meet(area, riser):
                yield from metal.stack_between(level, area, metal.riser, wide, crowded=True)

    def _gate_links(self, pair: tuple[str, str]) -> list[tuple[NetRail, Rectangle]]:
        """Return the gate rails of a net that its drain's rail beside them joins at x = 0, with the wire that does it.

        So a gate that is joined to its drain leaves the cuts of both risers alike.
        """
        metal = self.metal
        found, half, space = [], metal.even(metal.wire(metal.rail)) // 2, metal.space(metal.rail, 0)
        for gate in (rail for rail in self.rails[pair] if not rail.columns):
            for rail in (
                rail for rail in self.rails[pair] if rail.columns and not rail.beside and rail.net == gate.net
            ):
                end = metal.cuts[gate.level].enclose_above_end if gate.level < metal.rail else 0
                link = Rectangle(-half, min(rail.low, gate.low - end), half, max(rail.high, gate.high + end))
                others = [each for each in self.all_rails if each not in (rail, gate)]
                free = not any(each.low - space < link.top and each.high + space > link.bottom for each in others)
                if free and not any(_meet(link, channel.area) for channel in self.around.channels):
                    found.append((gate, link))
                    break
        return found

    # ---- places

    def _best_place(self, pair: tuple[str, str]) -> Place | None:
        """Return where the risers of two nets need the least metal, or None if they have no room."""
        rails, found = self.rails[pair], []
        if {rail.net for rail in rails if rail.columns} != {*pair}:
            return None
        images = {x for x in self.around.columns if x > 0 and -x in self.around.columns}
        for column in sorted(images & {abs(x) for rail in rails for x in rail.columns}):
            for cuts in (2, 1):
                place = self._at(column, cuts)
                beside = cuts == 1 or not self._has_cuts_over_channels(place, rails)
                if beside and self._fits(place, rails) and self._covers_equally(pair, place):
                    lengths = [right - left for left, right in (self._span(rail, place) for rail in rails)]
                    found.append((-cuts, sum(lengths), place))
        return min(found)[-1] if found else None

    def _at(self, column: int, cuts: int) -> Place:
        """Return a riser over a column, with a number of cuts side by side at each rail."""
        metal = self.metal
        least = metal.even(metal.wire(metal.riser))
        wide = max(least, metal.even(metal.wire(metal.riser, cuts)))
        left, pad = (column - least // 2) // metal.grid * metal.grid, (wide - least) // 2
        return Place(left, left + least, (left - pad, left + least + pad))

    def _fits(self, place: Place, rails: Sequence[NetRail]) -> bool:
        low, high = self._ends(place, rails)
        metal, level = self.metal, self.metal.riser
        space = metal.space(level, place.pad[1] - place.pad[0])
        if 2 * place.pad[0] < space or place.pad[1] + space > self.around.half_width:
            return False
        others = [area for _, area in self.risers()]
        others += (pad for pair, other in self.places.items() for pad in self._pads(pair, other))
        zones = [Rectangle(place.pad[0], low, place.pad[1], high), Rectangle(-place.pad[1], low, -place.pad[0], high)]
        for area in (*self.around.taken, *others):
            apart = max(space, metal.space(level, min(area.right - area.left, area.top - area.bottom)))
            if any(_meet(zone.enlarged(apart, apart), area) for zone in zones):
                return False
        return True

    def _has_cuts_over_channels(self, place: Place, rails: Sequence[NetRail]) -> bool:
        """Return whether cuts between rails and risers would lie over matched channels, which need equal cuts."""
        inset = self.metal.cuts[self.metal.riser - 1].enclose_above
        zones = [Rectangle(place.pad[0] + inset, rail.low, place.pad[1] - inset, rail.high) for rail in rails]
        return any(_meet(zone, channel.area) for zone in zones for channel in self.around.channels)

    def _covers_equally(self, pair: tuple[str, str], place: Place) -> bool:
        """Return whether the rails, and the risers, cover the same part of the channels of each device."""
        channels = self.around.channels
        spans = [(self._span(rail, place), rail) for rail in self.rails[pair]]
        rails = [Rectangle(left, rail.low, right, rail.high) for (left, right), rail in spans]
        bottom, top = min(each.area.bottom for each in channels), max(each.area.top for each in channels)
        risers = [Rectangle(place.left, bottom, place.right, top), Rectangle(-place.right, bottom, -place.left, top)]
        covers = rails, risers, self._pads(pair, place)
        return all(len(set(_covered(areas, channels).values())) == 1 for areas in covers)

    def _covers_rows_equally(self, place: Place) -> bool:
        """Return whether risers cover the same part of the channels of each device in every row by itself."""
        rows: dict[tuple[int, int], list[Channel]] = {}
        for channel in self.around.channels:
            rows.setdefault((channel.area.bottom, channel.area.top), []).append(channel)
        devices = {channel.device for channel in self.around.channels}
        for (bottom, top), channels in rows.items():
            areas = [Rectangle(place.left, bottom, place.right, top), Rectangle(-place.right, bottom, -place.left, top)]
            covered = _covered(areas, channels)
            if len(set(covered.values())) > 1 or (any(covered.values()) and set(covered) != devices):
                return False
        return True

    def _span(self, rail: NetRail, place: Place) -> tuple[int, int]:
        """Return the left and right end of a rail: its contacts and its riser, alike at both sides. [dbu]

        A rail beside that of the other twin lies at its own side of x = 0, as its riser does.
        """
        metal = self.metal
        cut = metal.cuts[metal.riser - 1]
        beyond = max(0, cut.enclose_below_end - cut.enclose_above)
        riser = place.pad[1] + beyond
        least = -(-metal.conductors[rail.level].area // (rail.high - rail.low))
        if rail.beside:
            edges = sorted(map(abs, rail.contacts))
            near, far = min(edges[0], place.pad[0] - beyond), max(edges[1], riser)
            far += max(0, metal.even(least - (far - near)))
            return (-far, -near) if rail.contacts[0] < 0 else (near, far)
        half = max(-rail.contacts[0], rail.contacts[1], riser, metal.even(least) // 2)
        return -half, half

    def _pads(self, pair: tuple[str, str], place: Place) -> list[Rectangle]:
        """Return the wider parts of both risers at the rails of either twin; parts that are too close are merged."""
        metal, (left, right) = self.metal, place.pad
        end, space = metal.cuts[metal.riser - 1].enclose_above_end, metal.space(metal.riser, right - left)
        merged: list[tuple[int, int]] = []
        for span in sorted({(rail.low - end, rail.high + end) for rail in self.rails[pair]}):
            near = bool(merged) and span[0] - merged[-1][1] < space
            merged.append((merged.pop()[0], span[1]) if near else span)
        return [
            area
            for low, high in merged
            for area in (Rectangle(-right, low, -left, high), Rectangle(left, low, right, high))
        ]


def parts_beside(area: Rectangle, wires: Sequence[Rectangle]) -> list[Rectangle]:
    """Return the parts of ``area`` left and right of vertical wires that run through it. [dbu]"""
    sides = [x for left, right in sorted((wire.left, wire.right) for wire in wires) for x in (left, right)]
    edges = [area.left, *sides, area.right]
    return [area._replace(left=left, right=right) for left, right in zip(edges[::2], edges[1::2], strict=True)]


def _meet(one: Rectangle, other: Rectangle) -> bool:
    left, bottom, right, top = one
    across = max(left, other.left) < min(right, other.right)
    return across and max(bottom, other.bottom) < min(top, other.top)


def _covered(areas: Sequence[Rectangle], channels: Sequence[Channel]) -> dict[str, Fraction]:
    """Return for each device the part of its channels under ``areas`` that do not overlap each other."""
    under: Counter[str] = Counter()
    whole: Counter[str] = Counter()
    for device, (left, bottom, right, top) in channels:
        whole[device] += (right - left) * (top - bottom)
        for area in areas:
            width = min(right, area.right) - max(left, area.left)
            if width > 0:
                under[device] += width * max(0, min(top, area.top) - max(bottom, area.bottom))
    return {device: Fraction(under[device], area) for device, area in whole.items()}
