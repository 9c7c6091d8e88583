"""Wire a planned row, in the row's own coordinates: straps, rails over the fingers, gate heads, gate strips and rails.

Gates leave the row at the top (above ``height``, its head). Source and drain rails lie over the fingers; what finds no
room there extends below y = 0 (its foot). All straps of a row are equal, and so are all gate strips, so that matched
fingers have equal wires. Dummies at the ends of the row, whose gates are on the bulk net, are tied by a bar on the
first conductor, which runs past their heads to the tap ring, or to a post (``ring``); columns between two dummies
extend to that bar.

Where straps must be wider than the room between gates to carry their currents, the gates move apart. The current of a
column enters its strap at the contacts and leaves it where the rail crosses, so that the strap carries most at one edge
of the rail: what enters above it, or what enters below::

    |#|  contacts above the rail
    [#]==== rail
    |#|  contacts below it
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

from layoutkit.draw.risers import Rail
from layoutkit.draw.row import head_width
from layoutkit.draw.row_metal import hull
from layoutkit.draw.trunks import rail_below_straps
from layoutkit.rectangle import Rectangle

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from layoutkit.draw.row import Column, PlannedRow, RowSizes, Stripe
    from layoutkit.draw.row_metal import Metal
    from layoutkit.technology import Cut

Side = Literal["foot", "head"]
RAIL_ROWS = 4
"""Rows of cuts that a source or drain rail is made high enough for, where the fingers are."""


class Head(NamedTuple):
    """The contacts and the strip of one gate. [dbu]"""

    stripe: Stripe
    left: int  # left edge of the contacts
    right: int
    strip: tuple[int, int]  # left and right edge of the strip


class Bulk(NamedTuple):
    """The net of the ring, and whether the dummies at the left and right end are tied to the ring or a post."""

    net: str
    tied: tuple[bool, bool]


class RowTwins(NamedTuple):
    """Nets that are to be wired as mirror images, in a row that is none by itself.

    Attributes:
        exchanged: Each net to its twin, where the row is its own mirror image with these nets exchanged; else empty.
        risers: Those pairs, the left net first, that risers over their columns may join.
    """

    exchanged: Mapping[str, str] = MappingProxyType({})
    risers: Sequence[tuple[str, str]] = ()


class HeadMove(NamedTuple):
    """How the heads of a row move aside for those of another row. [dbu]

    Attributes:
        distance: How far.
        outwards: Whether away from x = 0, with the dummies tied to the ring; else to the right, without these.
        inner: How much farther outwards the two innermost gates move, which need more room where they are of two nets.
    """

    distance: int
    outwards: bool
    inner: int = 0


class RailContacts(NamedTuple):
    """What a rail has to reach: the ends that its cuts to the row ask for, and the middles of its columns. [dbu]"""

    span: tuple[int, int]
    columns: tuple[int, ...]


class Loads(NamedTuple):
    """Currents that the metal of a row is drawn for. [mA]

    Attributes:
        nets: Net to its current.
        fingers: Device to the current of each of its fingers.
        trunks: Each net with trunks, mapped to the rows of cuts that its rails have room for at least. These rails
            carry current only as far as the next strap.
    """

    nets: Mapping[str, float]
    fingers: Mapping[str, float]
    trunks: Mapping[str, int] = MappingProxyType({})


class WiredRow:
    """A row with its wiring planned.

    Args:
        plan: The row.
        sizes: Lengths to draw with.
        metal: Conductors and cuts.
        bulk: The ring around it.
        loads: Currents; straps are as wide as they need, as far as there is room between the fingers.
        twins: Nets that are to be wired as mirror images.
    """

    def __init__(
        self,
        plan: PlannedRow,
        sizes: RowSizes,
        metal: Metal,
        bulk: Bulk,
        loads: Loads = Loads({}, {}),  # noqa: B008 (immutable)
        twins: RowTwins = RowTwins(),  # noqa: B008 (immutable)
    ) -> None:
        self.plan = plan
        self.loads = loads
        self.exchanged = twins.exchanged if self._may_exchange(twins.exchanged) else {}
        self.twins = twins.risers if self.exchanged else ()
        self.sizes = sizes
        self.metal = metal
        self.bulk_net = bulk.net
        self.dummies = self._end_dummies(bulk.tied)
        self.tied_columns = frozenset(i for i, column in enumerate(plan.columns) if self._is_tied(column))
        # Where twins have short rails, those become narrow, with cuts side by side, if the dummies' columns do without.
        tied = self.tied_columns if self.twins else frozenset()
        self.narrow_columns = frozenset(self.plan.columns[i].left for i in tied)
        self.strap_width = self._strap_width()
        self.pad_width = self._pad_width()
        self.side_by_side = self._side_by_side()
        self.rails = self._rails()
        self.strap_span = self._strap_span()
        self.heads = self._heads()
        self.contact_rows = self._contact_rows()
        self.bar = self._one_bar()
        self.gate_nets = _by_use(head.stripe.finger.gate for head in self._wired_heads())
        self.gate_rail = self._gate_rail_height()
        self.head_contact = self._head_contact()
        self._lift = 0
        self.gate_rails = self._gate_rails()

    # ---- dummies at the ends

    def _end_dummies(self, tied: tuple[bool, bool]) -> tuple[int, int]:
        """Return how many dummies at the left and at the right end are tied to the ring there."""

        def count(fingers: Iterable[Stripe]) -> int:
            found = 0
            for stripe in fingers:
                if stripe.finger.device or stripe.finger.gate != self.bulk_net:
                    break
                found += 1
            return found

        left = count(self.plan.stripes) if tied[0] else 0
        right = count(reversed(self.plan.stripes)) if tied[1] else 0
        total = len(self.plan.stripes)
        if left + right > total:  # nothing but dummies
            left = (total + 1) // 2
        return left, min(right, total - left)

    def is_end_dummy(self, index: int) -> bool:
        """Return whether finger ``index`` is one of the dummies tied to the ring."""
        left, right = self.dummies
        return index < left or index >= len(self.plan.stripes) - right

    def _is_tied(self, column: Column) -> bool:
        return column.net == self.bulk_net and all(self.is_end_dummy(i) for i in column.fingers)

    def tie_bars(self) -> list[tuple[bool, Rectangle]]:
        """Return the bars that tie the end dummies, as (at the left end, the part beside the row)."""
        low, high = self._pad()
        bars = []
        for at_left, count in zip((True, False), self.dummies, strict=True):
            if count:
                heads = self.heads[:count] if at_left else self.heads[-count:]
                own = range(count) if at_left else range(len(self.heads) - count, len(self.heads))
                areas = [Rectangle(head.strip[0], low, head.strip[1], high) for head in heads]
                for column in (self.plan.columns[i] for i in sorted(self.tied_columns)):
                    if set(column.fingers) & set(own):
                        metal = self._first_metal(column)
                        areas.append(Rectangle(metal.left, low, metal.right, high))
                bars.append((at_left, hull(areas)))
        return bars

    def tied_end_columns(self) -> tuple[Rectangle, Rectangle]:
        """Return the first conductor over the leftmost and the rightmost column."""
        columns = sorted(self.plan.columns, key=lambda column: column.left)
        left, right = (
            hull((self._first_metal(column), *([] if self.metal.strap else [self.strap(column)])))
            for column in (columns[0], columns[-1])
        )
        return left, right

    def tied_end_pads(self) -> tuple[Rectangle, Rectangle]:
        """Return ``tied_end_columns`` as wide as they are below rails of their nets."""
        columns = sorted(self.plan.columns, key=lambda column: column.left)
        pads = [
            self._rail_pad(rail, column)
            for column in (columns[0], columns[-1])
            for rail in self.rails
            if rail.net == column.net and not self.metal.strap
        ]
        grow = max((pad.right - pad.left - self.strap_width for pad in pads), default=0) // 2
        left, right = (column.enlarged(grow, 0) for column in self.tied_end_columns())
        return left, right

    # ---- source and drain columns

    def _may_exchange(self, nets: Mapping[str, str]) -> bool:
        """Return whether no columns of two of these nets are adjacent: each gets pads below the rails of both."""
        columns = sorted(self.plan.columns, key=lambda column: column.left)
        return not any(a.net != b.net and {a.net, b.net} <= set(nets) for a, b in pairwise(columns))

    def _strap_width(self) -> int:
        """Return the width of all straps.

        They are narrow where the columns leave room for wider pads with two cuts side by side below the rails: metal
        beside the fingers couples nets. Elsewhere they are as wide as the two cuts, if that has room at all.
        """
        metal, level = self.metal, self.metal.strap
        least = self.sizes.strip if level == 0 else metal.wire(level)
        wide = max(least, self._like_contact(metal.wire(level, 2)))
        current = min(self._column_ma(), metal.most_for(level))  # the strap may carry less on each side of the rail
        needed = self._like_contact(max(metal.width_for(level, current), least))
        narrow = max(least, self._like_contact(least))
        widths = [narrow if self._columns_fit(wide, wide) else wide, narrow]
        widths += range(needed, narrow, -2 * self.sizes.grid)
        return next((width for width in sorted(widths, reverse=True) if self._columns_fit(width, width)), narrow)

    def _column_ma(self) -> float:
        """Return the largest current of a source or drain column. [mA]"""
        stripes, fingers = self.plan.stripes, self.loads.fingers
        columns = self._railed_columns()
        sums = [sum(fingers.get(stripes[i].finger.device, 0.0) for i in column.fingers) for column in columns]
        return max(sums, default=0.0)

    def _pad_width(self) -> int:
        """Return the width of straps where they cross their rail: for two cuts if only the strap has no room."""
        wide = self._like_contact(self.metal.wire(self.metal.strap, 2))
        return max(wide, self.strap_width) if self._columns_fit(wide, self.strap_width) else self.strap_width

    def _columns_fit(self, width: int, beside: int) -> bool:
        """Return whether straps of ``width`` have room if those of other nets beside them have the width ``beside``.

        So have the narrow columns of dummies.
        """
        metal, level = self.metal, self.metal.strap
        columns = sorted(self.plan.columns, key=lambda column: column.left)
        for a, b in pairwise(columns):
            same = a.net == b.net and not {a.left, b.left} & self.narrow_columns
            room = b.left - a.left - (width + (width if same else beside)) // 2
            if room < max(metal.space(level, width), self._beside_cuts(level) if same else 0):
                return False
        return True

    def _beside_cuts(self, level: int) -> int:
        """Return the distance of two wires that hold cuts to the next level, for the distance of those cuts."""
        cut = self.metal.cuts[level]
        return cut.space - 2 * cut.enclose_below

    def _like_contact(self, width: int) -> int:
        """Return ``width`` rounded up so that a contact can be centred in it."""
        step, contact = 2 * self.sizes.grid, self.sizes.contact
        return contact + -(-(width - contact) // step) * step

    def column_contacts(self, column: Column) -> range:
        """Return the lower edges of the contacts that fill ``column``."""
        sizes = self.sizes
        pitch = sizes.contact + sizes.contact_space
        count = (column.top - column.bottom - 2 * sizes.active_end + sizes.contact_space) // pitch
        used = count * pitch - sizes.contact_space
        low = column.bottom + (column.top - column.bottom - used) // (2 * sizes.grid) * sizes.grid
        return range(low, low + count * pitch, pitch)

    def _first_metal(self, column: Column) -> Rectangle:
        """Return the first conductor over ``column``: around its contacts, and over nearly the whole finger."""
        sizes, contacts = self.sizes, self.column_contacts(column)
        inset = (column.top - column.bottom) // (20 * sizes.grid) * sizes.grid
        low = min(contacts[0] - sizes.strip_end, column.bottom + inset)
        high = max(contacts[-1] + sizes.contact + sizes.strip_end, column.top - inset)
        left = column.left - (sizes.strip - sizes.contact) // 2
        return Rectangle(left, low, left + sizes.strip, high)

    def strap(self, column: Column) -> Rectangle:
        """Return the strap of ``column``."""
        left = column.left - (self.strap_width - self.sizes.contact) // 2
        return Rectangle(left, self.strap_span[0], left + self.strap_width, self.strap_span[1])

    def _strap_span(self) -> tuple[int, int]:
        """Return where all straps of the row start and end: over all fingers, and beyond the cuts to the rails."""
        metal, columns = self.metal, [self._first_metal(column) for column in self.plan.columns]
        lows, highs = [area.bottom for area in columns], [area.top for area in columns]
        if metal.strap:
            lows, highs = [min(c.bottom for c in self.plan.columns)], [max(c.top for c in self.plan.columns)]
            beyond = metal.cuts[metal.strap - 1].enclose_above_end
            lows.append(min(area.bottom for area in columns) + beyond)
        for rail in self.rails:
            margin = self._rail_margin(rail) - metal.cuts[metal.strap].enclose_below_end
            lows.append(rail.low + margin)
            highs.append(rail.high - margin)
        low, high = self._down(min(lows)), -self._down(-max(highs))
        lack = -(-metal.conductors[metal.strap].area // self.strap_width) - (high - low)
        return low - max(0, -self._down(-lack)), high

    def _rail_margin(self, rail: Rail) -> int:
        """Return the distance from the edge of a rail to its outermost cuts."""
        cut = self.metal.cuts[rail.level - 1]
        places = self.metal.cuts_in(rail.level - 1, rail.high - rail.low - 2 * cut.enclose_above)
        return (rail.high - rail.low - places[-1] - cut.size) // 2

    def _down(self, length: int) -> int:
        return length // self.sizes.grid * self.sizes.grid

    def _rails(self) -> list[Rail]:
        """Return the source and drain rails: over the fingers, and below them if there is too little room."""
        metal, level = self.metal, self.metal.rail
        nets = _by_use(column.net for column in self._railed_columns())
        if not nets:
            return []
        room, count = self.plan.height, len(nets)
        least_height = max(self._rail_for_current(net) for net in nets)

        def block(rows: int) -> tuple[int, int]:
            height = max(metal.wire(level, rows), least_height)
            return height, count * height + (count - 1) * self._rail_space(height)

        # Two cuts above each other where two side by side do not fit, unless rails would then be most of the row.
        height, total = block(2)
        least = 1 if self.pad_width >= metal.wire(metal.strap, 2) or total > room + 2 * height else 2

        beside = 2 if self.pad_width >= metal.wire(metal.strap, 2) else 1
        least = max(least, metal.cuts_of_each(metal.strap, self._column_ma(), beside))
        rows = next((rows for rows in range(RAIL_ROWS, least, -1) if block(rows)[1] <= room), least)
        height, total = block(rows)
        if self.side_by_side:
            nets, count = [net for net in nets if net not in self.side_by_side], len(nets) - len(self.side_by_side)
            total = block(rows)[1]
        nets = self._around_the_common(nets, beside_ring=total > room)
        low = self._down((room - total) // 2) if total <= room else self._down(room) - total
        pitch = height + self._rail_space(height)
        rails = [Rail(net, level, low + i * pitch, low + i * pitch + height) for i, net in enumerate(nets)]
        if total <= room:
            rails = self._spread(rails, block(least)[0])
        own = {rail.net: rail for rail in rails}
        return rails + [own[left]._replace(net=right) for right, left in self.side_by_side.items()]

    def _spread(self, rails: Sequence[Rail], height: int) -> list[Rail]:
        """Return the rails with those of twins made ``height`` high, and with the room divided between all of them.

        Twins have short rails, on signals, whose capacitance counts more than their resistance.
        """
        twins = {net for pair in self.twins for net in pair}
        if not twins & {rail.net for rail in rails}:
            return list(rails)
        heights = [height if rail.net in twins else rail.high - rail.low for rail in rails]
        free = self.plan.height - sum(heights)
        gap = max(self._down(free // len(rails)), *(self._rail_space(each) for each in heights))
        low, found = self._down((free - gap * (len(rails) - 1)) // 2), []
        for rail, own in zip(rails, heights, strict=True):
            found.append(rail._replace(low=low, high=low + own))
            low += own + gap
        return found

    def _railed_columns(self) -> list[Column]:
        """Return the columns that need a rail."""
        return [column for i, column in enumerate(self.plan.columns) if i not in self.tied_columns]

    def _side_by_side(self) -> dict[str, str]:
        """Return the right one of twins to the left one, where the columns of both lie on their own side of x = 0.

        Their rails are so short that they lie beside each other, at one height.
        """
        places: dict[str, list[int]] = {}
        for column in self._railed_columns():
            places.setdefault(column.net, []).append(column.left + self.sizes.contact // 2)
        return {
            right: left
            for left, right in self.twins
            if {left, right} <= set(places) and max(places[left]) < 0 < min(places[right])
        }

    def current_of(self, net: str) -> float:
        """Return the current between a net and the fingers of the row [mA]; their number where none is stated."""
        stripes, fingers = self.plan.stripes, self.loads.fingers
        own = [s.finger for s in stripes if s.finger.device and net in {s.finger.left, s.finger.right}]
        return sum(fingers.get(finger.device, 0.0) for finger in own) if fingers else float(len(own))

    def _rail_for_current(self, net: str) -> int:
        """Return the height of a rail that carries the current of its net in the module, if that is allowed. [dbu]

        Where it is not, each rail carries the current of its own row, as far as allowed. Wires then lead to every rail,
        or trunks join the rails.
        """
        metal, level, whole = self.metal, self.metal.rail, self.loads.nets.get(net, 0.0)
        if net in self.loads.trunks:
            return rail_below_straps(
                metal, self.current_of(net), self.plan.right - self.plan.left, self.loads.trunks[net]
            )
        if metal.carries(level, whole):
            return metal.width_for(level, whole)
        return metal.width_for(level, min(self.current_of(net) if self.loads.fingers else 0.0, metal.most_for(level)))

    def _around_the_common(self, nets: Sequence[str], *, beside_ring: bool) -> list[str]:
        """Return the nets of three rails or more with the net of most devices in the middle; fewer as they are.

        That is the common source of a group; its rail shields those of the drains from each other. Rails below the
        fingers are ``beside_ring``, where that of the bulk comes first.
        """
        devices: dict[str, set[str]] = {net: set() for net in nets}
        for column in self.plan.columns:
            named = {self.plan.stripes[i].finger.device for i in column.fingers} - {""}
            devices.get(column.net, named).update(named)
        common = max(nets, key=lambda net: len(devices[net]))
        if len(nets) < 3:
            return list(nets)
        others = [net for net in nets if net != common]
        middle = 0 if beside_ring and common == self.bulk_net else len(others) // 2
        return [*others[:middle], common, *others[middle:]]

    def _rail_space(self, height: int) -> int:
        """Return the distance of rails of ``height``, also for the wider parts of straps below and the cuts in them.

        Columns of exchanged nets have such parts below the rails of both.
        """
        metal, level = self.metal, self.metal.rail
        space = metal.space(level, height)
        above = bool(self.exchanged) or not self._columns_fit(self.pad_width, self.pad_width)
        if above and self.pad_width > self.strap_width:
            beyond = metal.cuts[metal.strap].enclose_below_end - self._rail_margin(Rail("", level, 0, height))
            between = metal.space(metal.strap, self.pad_width) + 2 * max(0, beyond)
            space = max(space, -self._down(-between))
        apart = self._apart(metal.cuts[level - 1]) - 2 * self._rail_margin(Rail("", level, 0, height))
        return max(space, -self._down(-apart))

    def _apart(self, cut: Cut) -> int:
        """Return the least distance at which the cuts of two rails do not count as one array; 0 without such a rule."""
        return cut.array_reach + self.sizes.grid if cut.array_count else 0

    def lies_beside(self, net: str) -> bool:
        """Return whether the rail of a net lies beside that of its twin."""
        return net in self.side_by_side or net in self.side_by_side.values()

    # ---- gates

    def _heads(self) -> list[Head]:
        """Return the head of every gate: two contacts and a strip for two cuts where all gates have room for them."""
        sizes, metal = self.sizes, self.metal
        two = 2 * sizes.contact + sizes.contact_space
        wide = self._like_contact(max(metal.wire(0, 2), sizes.strip, two + 2 * sizes.strip_side))
        for contacts in (two, 0):
            for width in (wide, sizes.strip):
                heads = [self._head(stripe, contacts, width) for stripe in self.plan.stripes]
                if self._have_room(heads):
                    return heads
        return heads

    def _head(self, stripe: Stripe, contacts: int, width: int) -> Head:
        sizes = self.sizes
        own = stripe.contacts * sizes.contact + (stripe.contacts - 1) * sizes.contact_space
        grow = max(0, contacts - own)
        left = stripe.contact - grow // 2
        used = max(own, contacts)
        beyond = max(sizes.strip_side, -(-(width - used) // (2 * sizes.grid)) * sizes.grid)
        return Head(stripe, left, left + used, (left - beyond, left + used + beyond))

    def _have_room(self, heads: Sequence[Head]) -> bool:
        sizes = self.sizes
        for a, b in pairwise(heads):
            strip = max(b.strip[1] - b.strip[0], a.strip[1] - a.strip[0])
            same = a.stripe.finger.gate == b.stripe.finger.gate
            space = max(self.metal.space(0, strip), self._beside_cuts(0) if same else 0)
            if b.strip[0] - a.strip[1] < space or b.left - a.right < sizes.contact_space:
                return False
            if not same and self._poly(b)[0] - self._poly(a)[1] < sizes.gate_space:
                return False
        return True

    def _poly(self, head: Head) -> tuple[int, int]:
        """Return the left and right edge of the poly head."""
        side, stripe = self.sizes.head_side, head.stripe
        width = head_width(stripe.right - stripe.left, self.sizes)
        beyond = max(side, (width - (head.right - head.left)) // 2)
        if width == stripe.right - stripe.left:
            return min(stripe.left, head.left - side), max(stripe.right, head.right + side)
        return min(stripe.left, head.left - beyond), max(stripe.right, head.right + beyond)

    def _wired_heads(self) -> list[Head]:
        """Return the heads that need a rail."""
        return [head for i, head in enumerate(self.heads) if not self.is_end_dummy(i)]

    def _contact_rows(self) -> int:
        """Return 2 if each gate has a contact above the other, because two side by side find no room, else 1."""
        single = any(head.right - head.left == self.sizes.contact for head in self.heads)
        gates = {head.stripe.finger.gate for head in self._wired_heads()}
        return 2 if single and (len(gates) > 1 or len(self._wired_heads()) == 1) else 1

    def _one_bar(self) -> bool:
        """Return whether one bar on the first conductor joins all gates, which are on one net and lie close."""
        heads = self._wired_heads()
        gates = {head.stripe.finger.gate for head in heads}
        return len(heads) > 1 and len(gates) == 1 and not self._holds_two(heads)

    def _holds_two(self, heads: Iterable[Head]) -> bool:
        return all(head.strip[1] - head.strip[0] >= self.metal.wire(0, 2) for head in heads)

    def _gate_rail_height(self) -> int:
        """Return the height of all gate rails, for two cuts at each strip and for pads below the risers."""
        metal = self.metal
        height = metal.wire(1, 1 if self.bar or self._holds_two(self._wired_heads()) else 2)
        return max(height, *(metal.wire(level) for level in range(1, metal.riser)))

    def _contacts_height(self) -> int:
        sizes = self.sizes
        return self.contact_rows * sizes.contact + (self.contact_rows - 1) * sizes.contact_space

    def _first_top(self) -> int:
        """Return how high the first conductor of the columns reaches."""
        tops = [self._first_metal(column).top for column in self.plan.columns]
        return max([*tops, self.strap_span[1]] if self.metal.strap == 0 else tops)

    def _first_space(self) -> int:
        widths = [head.strip[1] - head.strip[0] for head in self.heads]
        if self.bar or any(self.dummies):
            widths.append(self._contacts_height() + 2 * self.sizes.strip_end)
        return self.metal.space(0, max(*widths, self.strap_width if self.metal.strap == 0 else 0, self.sizes.strip))

    def _head_contact(self) -> int:
        """Return the lower edge of the gate contacts."""
        sizes, top = self.sizes, self.plan.height
        contacts = max(self.column_contacts(column)[-1] for column in self.plan.columns) + sizes.contact
        return -self._down(
            -max(
                top + sizes.gate_contact_to_active,
                top + sizes.poly_to_active + sizes.head_end,
                self._first_top() + self._first_space() + sizes.strip_end,
                contacts + sizes.marker_to_contact + sizes.marker,
            )
        )

    def _gate_rails(self) -> list[Rail]:
        """Return the gate rails: the first at the contacts or lifted above them, the others above it."""
        metal, height = self.metal, self.gate_rail
        low = self.head_contact + self._down((self._contacts_height() - height) // 2)
        cut = metal.cuts[0]
        margin = self._gate_margin()
        low = max(low, self._first_top() + self._first_space() + cut.enclose_below_end - margin)
        if metal.strap == 1:
            low = max(low, self.strap_span[1] + metal.space(1, max(height, self.strap_width)))
        for rail in self.rails:
            low = max(low, rail.high + metal.space(rail.level, max(height, rail.high - rail.low)))
            if rail.level == 1:
                low = max(low, rail.high - self._rail_margin(rail) + self._apart(cut) - margin)
        low = -self._down(-low) + self._lift
        pitch = height - self._down(-max(metal.space(1, height), self._apart(cut) - 2 * margin))
        return [Rail(net, 1, low + i * pitch, low + i * pitch + height) for i, net in enumerate(self.gate_nets)]

    def _gate_margin(self) -> int:
        """Return the distance from the edge of a gate rail to its outermost cuts."""
        cut, height = self.metal.cuts[0], self.gate_rail
        rows = (height - 2 * cut.enclose_above + cut.space) // (cut.size + cut.space)
        return (height - rows * (cut.size + cut.space) + cut.space) // 2

    def _pad(self) -> tuple[int, int]:
        """Return the bottom and top of the first conductor around the gate contacts."""
        end = self.sizes.strip_end
        return self.head_contact - end, self.head_contact + self._contacts_height() + end

    def gate_strips(self) -> list[tuple[str, Rectangle]]:
        """Return the strips of the gates that have a rail, as (net, area); all are equally high."""
        low, high = self._pad()
        heads = self._wired_heads()
        if not heads:
            return []
        end = self.metal.cuts[0].enclose_below_end - self._gate_margin()
        low = min(low, self.gate_rails[0].low - end)
        high = max(high, self.gate_rails[-1].high + end)
        if self.bar:
            left, right = min(h.strip[0] for h in heads), max(h.strip[1] for h in heads)
            return [(heads[0].stripe.finger.gate, Rectangle(left, low, right, high))]
        width = min(head.strip[1] - head.strip[0] for head in heads)
        lack = -(-self.sizes.strip_area // width) - (high - low)
        high += max(0, -self._down(-lack))
        return [(head.stripe.finger.gate, Rectangle(head.strip[0], low, head.strip[1], high)) for head in heads]

    # ---- rows that face each other

    def moved_heads(self, move: HeadMove) -> list[Head] | None:
        """Return the heads with narrow strips, moved, or None if they find no room."""
        heads, count = [], len(self.plan.stripes)
        inner = {(count - 1) // 2, count // 2}
        for i, stripe in enumerate(self.plan.stripes):
            head = self._head(stripe, 0, self.sizes.strip)
            side = (stripe.left + stripe.right > 0) - (stripe.left + stripe.right < 0)
            if self.is_end_dummy(i):  # their bars couple most to the gate that lies outermost
                shift = (1 if 2 * i >= count else -1) * abs(move.distance) if move.outwards else 0
            elif move.outwards:
                shift = side * (move.distance + (move.inner if i in inner else 0))
            else:
                shift = move.distance
            left, right = head.strip
            heads.append(Head(stripe, head.left + shift, head.right + shift, (left + shift, right + shift)))
        return heads if self._have_room(heads) else None

    def share_rails(self, nets: list[str], heads: list[Head] | None) -> None:
        """Let the gates reach rails of all ``nets``, nearest first, by the moved ``heads`` if there are any."""
        if heads is not None:
            self.heads = heads
            self.contact_rows = self._contact_rows()
        self.gate_nets = nets
        self.gate_rail = self._gate_rail_height()
        self.head_contact = self._head_contact()
        self.gate_rails = self._gate_rails()

    def exchange_rails(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Exchange the source and drain rails of the two nets of each pair that both have one."""
        for one, other in pairs:
            if {one, other} <= {rail.net for rail in self.rails} and self.bulk_net not in (one, other):
                image = {one: other, other: one}
                self.rails = [rail._replace(net=image.get(rail.net, rail.net)) for rail in self.rails]

    def exchange_gate_rails(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Exchange the gate rails of the two nets of each pair that both have one."""
        for one, other in pairs:
            if {one, other} <= set(self.gate_nets):
                image = {one: other, other: one}
                self.gate_nets = [image.get(net, net) for net in self.gate_nets]
        self.gate_rails = self._gate_rails()

    def lift_rails(self, distance: int) -> None:
        """Move the gate rails away from the row, from where they are."""
        self._lift += distance
        self.gate_rails = self._gate_rails()

    # ---- what stacking needs

    def all_rails(self) -> list[Rail]:
        """Return the rails over the fingers and those of the gates."""
        return self.rails + self.gate_rails

    def rail_contacts(self, rail: Rail) -> list[RailContacts]:
        """Return what a rail has to reach, or nothing if no cut joins it to the row."""
        columns = [column for column in self.plan.columns if column.net == rail.net and rail in self.rails]
        areas = [self._rail_pad(rail, column) for column in columns]
        if rail in self.gate_rails:
            areas = [area for net, area in self.gate_strips() if net == rail.net]
        cut = self.metal.cuts[rail.level - 1]
        beyond = max(0, cut.enclose_above_end - cut.enclose_below)
        if not areas:
            return []
        span = min(area.left for area in areas) - beyond, max(area.right for area in areas) + beyond
        return [RailContacts(span, tuple((area.left + area.right) // 2 for area in areas if columns))]

    def reach(self, side: Side) -> dict[str, int]:
        """Return how far each kind of shape extends beyond the diffusion on ``side``. [dbu]

        Metal has the names of ``level_name``.
        """
        sizes, metal = self.sizes, self.metal
        reach = {"active": 0, "channel": 0, "active_contact": -sizes.active_end, "implant": self.implant_reach()}
        if sizes.flavour:
            reach["flavour"] = sizes.flavour + self.implant_reach() - sizes.implant
        wires: list[tuple[int, Rectangle]] = [(0, self._first_metal(column)) for column in self.plan.columns]
        wires += [(metal.strap, self.strap(column)) for column in self.plan.columns]
        wires += [(rail.level, Rectangle(0, rail.low, 0, rail.high)) for rail in self.rails]
        for rail in self.rails:
            if rail.net == self.bulk_net:  # pads on the levels below join it to the ring
                wires += [(level, Rectangle(0, rail.low, 0, rail.high)) for level in range(1, rail.level)]
        wires += [(0, area) for _, area in self.gate_strips()]
        wires += [(0, area) for _, area in self.tie_bars()]
        if any(self.dummies):  # posts reach rails on the bulk net by metal around the cuts on them
            end = metal.cuts[0].enclose_below_end + max(0, metal.even(metal.wire(0) - self.gate_rail) // 2)
            tied = (rail for rail in self.gate_rails if rail.net == self.bulk_net)
            wires += [(0, Rectangle(0, rail.low - end, 0, rail.high + end)) for rail in tied]
        for rail in self.gate_rails:  # risers may reach it by pads on the levels above
            wires += [(level, Rectangle(0, rail.low, 0, rail.high)) for level in range(1, metal.riser)]
        if side == "foot":
            bottom = min(stripe.bottom for stripe in self.plan.stripes)
            reach["poly"] = sizes.gate_extension - bottom
            ends = [(level, -area.bottom) for level, area in wires]
        else:
            top = self.head_contact + self._contacts_height() - self.plan.height
            reach |= {"poly": top + sizes.head_end, "gate_contact": top, "marker": top + sizes.marker}
            if any(self.dummies):
                reach["tie_bar"] = self._pad()[1] - self.plan.height
            ends = [(level, area.top - self.plan.height) for level, area in wires]
        for level, end in ends:
            name = level_name(level)
            reach[name] = max(reach.get(name, end), end)
        return reach

    def implant_reach(self) -> int:
        """Return how far the implant extends beyond the diffusion; in very small rows, more than its enclosure."""
        lack = self.sizes.implant_width - self.plan.height
        return max(self.sizes.implant, -(-lack // (2 * self.sizes.grid)) * self.sizes.grid)

    def beside(self, *, right: bool) -> dict[str, int]:
        """Return how far each kind of shape extends beyond the left or right end of the diffusion. [dbu]"""
        plan, sizes = self.plan, self.sizes

        def beyond(spans: Iterable[tuple[int, int]]) -> int:
            """Return how far the outermost of ``spans`` (left and right edges) extends."""
            edges = list(spans)
            if right:
                return max(edge for _, edge in edges) - plan.right
            return plan.left - min(edge for edge, _ in edges)

        columns = [self._first_metal(column) for column in plan.columns]
        grow = (self.pad_width - self.strap_width) // 2
        straps = [self.strap(column).enlarged(grow, 0) for column in plan.columns]
        strips = [area for _, area in self.gate_strips()]
        reach = {
            "active": 0,
            "implant": sizes.implant,
            "poly": beyond(self._poly(head) for head in self.heads),
            "marker": beyond((head.left, head.right) for head in self.heads) + sizes.marker,
            "gate_contact": beyond((head.left, head.right) for head in self.heads),
            "channel": beyond((stripe.left, stripe.right) for stripe in plan.stripes),
            "strip": beyond((area.left, area.right) for area in [*columns, *strips]),
        }
        name, strap = level_name(self.metal.strap), beyond((area.left, area.right) for area in straps)
        return reach | {name: max(strap, reach.get(name, strap))}

    # ---- shapes

    def shapes(self) -> Iterator[tuple[str, Rectangle]]:
        """Yield the shapes that do not depend on other rows, without rails, as (layer or its role, area)."""
        tech, sizes = self.metal.tech, self.sizes
        for left, bottom, right, top in self.plan.diffusions:
            yield "active", Rectangle(left, bottom, right, top)
        yield from (("block", area) for area in self.plan.blocks(sizes.block))
        yield from (("source", area) for area in self.plan.sources())
        for i, column in enumerate(self.plan.columns):
            for low in self.column_contacts(column):
                yield tech.contact.layer, Rectangle(column.left, low, column.left + sizes.contact, low + sizes.contact)
            yield from self._column(i, column)
        yield from self._gates()
        first = self.metal.layer(0)
        for net, strip in self.gate_strips():
            yield first, strip
            if net not in self.exchanged:
                yield from self._gate_cuts(net, strip)

    def crossings(self) -> Iterator[tuple[str, Rectangle]]:
        """Yield the cuts of the twins that ``exchanged`` names, which ``shapes`` leaves out: all else is symmetric."""
        for net, strip in self.gate_strips():
            if net in self.exchanged:
                yield from self._gate_cuts(net, strip)
        for column in self.plan.columns:
            if column.net in self.exchanged:
                yield from self._rail_cuts(column)

    def _gate_cuts(self, net: str, strip: Rectangle) -> Iterator[tuple[str, Rectangle]]:
        """Yield the cuts between the strip of a gate and the rails of its net."""
        for rail in self.gate_rails:
            if rail.net == net:
                across = Rectangle(strip.left - self.sizes.rail, rail.low, strip.right + self.sizes.rail, rail.high)
                # In the middle of the rail, also at the end of the strip, where another row's strip may begin.
                for cut in self.metal.cuts_between(0, strip.enlarged(0, self.sizes.rail), across):
                    yield self.metal.cuts[0].layer, cut

    def _column(self, index: int, column: Column) -> Iterator[tuple[str, Rectangle]]:
        metal, area, strap = self.metal, self._first_metal(column), self.strap(column)
        layer = metal.layer(0)
        if index in self.tied_columns:
            bar = self._pad()[1]
            yield layer, Rectangle(area.left, area.bottom, area.right, max(bar, area.top))
        else:
            yield layer, area
        yield metal.layer(metal.strap), strap
        below = area
        for level in range(metal.strap):
            above = strap if level + 1 == metal.strap else Rectangle(strap.left, area.bottom, strap.right, area.top)
            if level + 1 < metal.strap:
                yield metal.layer(level + 1), above
            for cut in metal.cuts_between(level, below, above):
                yield metal.cuts[level].layer, cut
            below = above
        for rail in self.rails:
            if rail.net == column.net or rail.net == self.exchanged.get(column.net):
                yield metal.layer(metal.strap), self._rail_pad(rail, column)
        if column.net not in self.exchanged:
            yield from self._rail_cuts(column)

    def _rail_cuts(self, column: Column) -> Iterator[tuple[str, Rectangle]]:
        """Yield the cuts between the strap of a column and the rails of its net."""
        metal = self.metal
        for rail in self.rails:
            if rail.net == column.net:
                pad = self._rail_pad(rail, column)
                across = Rectangle(pad.left - self.plan.height, rail.low, pad.right + self.plan.height, rail.high)
                for cut in metal.cuts_between(metal.strap, pad, across, crowded=True):
                    yield metal.cuts[metal.strap].layer, cut

    def _rail_pad(self, rail: Rail, column: Column) -> Rectangle:
        """Return the part of a strap below its rail, widened for its cuts; not that of narrow columns of dummies."""
        strap = self.strap(column)
        margin = self._rail_margin(rail) - self.metal.cuts[self.metal.strap].enclose_below_end
        grow = 0 if column.left in self.narrow_columns else (self.pad_width - self.strap_width) // 2
        bottom, top = max(strap.bottom, self._down(rail.low + margin)), -self._down(margin - rail.high)
        return Rectangle(strap.left - grow, bottom, strap.right + grow, min(strap.top, top))

    def _gates(self) -> Iterator[tuple[str, Rectangle]]:
        sizes = self.sizes
        top = self.head_contact + self._contacts_height() + sizes.head_end
        low = self.head_contact - sizes.head_end
        for head in self.heads:
            stripe, (left, right) = head.stripe, self._poly(head)
            yield "poly", Rectangle(stripe.left, stripe.bottom - sizes.gate_extension, stripe.right, top)
            yield "poly", Rectangle(left, low, right, top)
            for contact in self._contacts(head):
                yield self.metal.tech.contact.layer, contact
        for a, b in pairwise(self.heads):
            gap = self._poly(b)[0] - self._poly(a)[1]
            if a.stripe.finger.gate == b.stripe.finger.gate and 0 < gap < sizes.gate_space:
                yield "poly", Rectangle(self._poly(a)[1], low, self._poly(b)[0], top)
        yield from (("marker", area) for area in self.markers())

    def markers(self) -> list[Rectangle]:
        """Return the markers around the gate contacts; those that would be too close are merged."""
        sizes = self.sizes
        merged: list[Rectangle] = []
        for head in self.heads:
            area = hull(self._contacts(head)).enlarged(sizes.marker, sizes.marker)
            if merged and area.left - merged[-1].right < sizes.marker_space:
                area = hull((merged.pop(), area))
            merged.append(area)
        return merged

    def _contacts(self, head: Head) -> list[Rectangle]:
        """Return the contacts of one gate."""
        sizes = self.sizes
        pitch = sizes.contact + sizes.contact_space
        return [
            Rectangle(
                x, self.head_contact + row * pitch, x + sizes.contact, self.head_contact + row * pitch + sizes.contact
            )
            for row in range(self.contact_rows)
            for x in range(head.left, head.right, pitch)
        ]


def level_name(level: int) -> str:
    """Return the name under which ``reach`` reports metal of ``level``."""
    return ("strip", "rail")[level] if level < 2 else f"level {level}"


def _by_use(nets: Iterable[str]) -> list[str]:
    """Return the distinct ``nets``, the most frequent first, ties by name."""
    counts = Counter(nets)
    return sorted(counts, key=lambda net: (-counts[net], net))


def wider_spread(row: WiredRow) -> int:
    """Return by how much the gates of a row must move apart so that straps carry their currents. [dbu]

    It is 0 if the straps are wide enough, or if no strap may be drawn as wide as they would have to be.
    """
    metal, level = row.metal, row.metal.strap
    carried = [_most_at_rail(row, column) for i, column in enumerate(row.plan.columns) if i not in row.tied_columns]
    width = metal.width_for(level, max(carried, default=0.0))
    contact = row.sizes.contact
    width = contact + metal.even(width - contact)
    if width <= row.strap_width:
        return 0
    columns = sorted(row.plan.columns, key=lambda column: column.left)
    pitch = min((b.left - a.left for a, b in pairwise(columns)), default=0)
    return max(0, width + metal.space(level, width) - pitch)


def _most_at_rail(row: WiredRow, column: Column) -> float:
    """Return the largest current that a strap carries at an edge of its rail. [mA]"""
    stripes, fingers, contacts = row.plan.stripes, row.loads.fingers, row.column_contacts(column)
    current = sum(fingers.get(stripes[i].finger.device, 0.0) for i in column.fingers)
    parts = [0]
    for rail in (each for each in row.rails if each.net == column.net):
        parts.append(sum(low + row.sizes.contact > rail.high for low in contacts))
        parts.append(sum(low < rail.low for low in contacts))
    return current * max(parts) / max(1, len(contacts))
