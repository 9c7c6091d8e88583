"""Wire a planned row: its contacts, gate heads, strips and rails, in the row's own coordinates.

Sources and drains leave the row at the bottom (below y = 0), gates at the top (above ``height``). Each net has one
rail on each side where it appears; the rails with most strips are nearest to the row.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

from layoutkit.draw.row import Stripe, head_width
from layoutkit.draw.sketch import Area

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from layoutkit.draw.row import Column, PlannedRow
    from layoutkit.draw.sizes import RowSizes

Side = Literal["foot", "head"]


class Strip(NamedTuple):
    """A vertical wire on the first conductor that leaves the row at one side."""

    net: str
    left: int
    start: int  # the end inside the row
    pad: tuple[int, int]  # left and right edge if it extends to the ring: as wide as its contacts need, without a notch


class WiredRow:
    """A row with its wiring planned.

    Args:
        plan: The row.
        sizes: Lengths to draw with.
        ringed: Sides that face the tap ring. There, strips of ``bulk_net`` extend to the ring and have no rail.
        bulk_net: Net of the ring.
    """

    def __init__(self, plan: PlannedRow, sizes: RowSizes, ringed: frozenset[Side], bulk_net: str) -> None:
        self.plan = plan
        self.sizes = sizes
        self.ringed = ringed
        self.bulk_net = bulk_net
        self.head_contact = self._head_contact()
        self.strips: dict[Side, list[Strip]] = {
            "foot": [self._column_strip(column) for column in plan.columns],
            "head": [self._gate_strip(stripe) for stripe in plan.stripes],
        }
        self.rails: dict[Side, dict[str, int]] = {"foot": self._rails("foot"), "head": self._rails("head")}

    def to_ring(self, side: Side, net: str) -> bool:
        """Return whether strips of ``net`` on ``side`` extend to the ring."""
        return side in self.ringed and net == self.bulk_net

    def strip_end(self, side: Side, strip: Strip) -> int:
        """Return where ``strip`` ends beyond its rail; it is extended to the minimum area."""
        sizes = self.sizes
        cut_low = self.rails[side][strip.net] + (sizes.rail - sizes.cut) // 2
        length = -(-sizes.strip_area // (sizes.strip * sizes.grid)) * sizes.grid
        if side == "foot":
            return min(cut_low - sizes.cut_strip_end, strip.start - length)
        return max(cut_low + sizes.cut + sizes.cut_strip_end, strip.start + length)

    def reach(self, side: Side) -> dict[str, int]:
        """Return how far each kind of shape extends beyond the diffusion on ``side``. [dbu]"""
        sizes, plan = self.sizes, self.plan
        edge: Callable[[int], int] = (lambda y: -y) if side == "foot" else (lambda y: y - plan.height)
        reach = {"active": 0, "channel": 0, "active_contact": -sizes.active_end, "implant": self.implant_reach()}
        if sizes.flavour:
            reach["flavour"] = sizes.flavour + self.implant_reach() - sizes.implant
        if side == "foot":
            reach["poly"] = max(edge(s.bottom) for s in plan.stripes) + sizes.gate_extension
        else:
            top = edge(self.head_contact) + sizes.contact
            reach |= {"poly": top + sizes.head_end, "gate_contact": top, "marker": top + sizes.marker}
        wired = [s for s in self.strips[side] if not self.to_ring(side, s.net)]
        if wired:
            reach["strip"] = max(edge(self.strip_end(side, s)) for s in wired)
            lows = self.rails[side].values()
            reach["rail"] = max(edge(low) if side == "foot" else edge(low) + sizes.rail for low in lows)
        return reach

    def implant_reach(self) -> int:
        """Return how far the implant extends beyond the diffusion; in very small rows, more than its enclosure."""
        lack = self.sizes.implant_width - self.plan.height
        return max(self.sizes.implant, -(-lack // (2 * self.sizes.grid)) * self.sizes.grid)

    def head_box(self, stripe: Stripe) -> Area:
        """Return the poly head of ``stripe``."""
        sizes = self.sizes
        width, contacts = head_width(stripe.right - stripe.left, sizes), self.contacts_width(stripe)
        left = stripe.left if width == stripe.right - stripe.left else stripe.contact - (width - contacts) // 2
        low = self.head_contact - sizes.head_end
        return Area(left, low, left + width, self.head_contact + sizes.contact + sizes.head_end)

    def contacts_width(self, stripe: Stripe) -> int:
        """Return the width of the gate contacts of ``stripe`` side by side."""
        return stripe.contacts * self.sizes.contact + (stripe.contacts - 1) * self.sizes.contact_space

    def shapes(self) -> Iterator[tuple[str, Area]]:
        """Yield the shapes that do not depend on other rows, without rails, as (layer role, area)."""
        for left, bottom, right, top in self.plan.diffusions:
            yield "active", Area(left, bottom, right, top)
        for column in self.plan.columns:
            for low in self._column_contacts(column):
                yield "contact", Area(column.left, low, column.left + self.sizes.contact, low + self.sizes.contact)
        yield from self._gates()
        yield from (("marker", area) for area in self._markers())

    def _gates(self) -> Iterator[tuple[str, Area]]:
        sizes = self.sizes
        for stripe in self.plan.stripes:
            head = self.head_box(stripe)
            yield "poly", Area(stripe.left, stripe.bottom - sizes.gate_extension, stripe.right, head.top)
            yield "poly", head
            low = self.head_contact
            for i in range(stripe.contacts):
                left = stripe.contact + i * (sizes.contact + sizes.contact_space)
                yield "contact", Area(left, low, left + sizes.contact, low + sizes.contact)
            pad = Area(stripe.contact, low, stripe.contact + self.contacts_width(stripe), low + sizes.contact)
            yield "strip", pad.enlarged(sizes.strip_side, sizes.strip_end)
        for a, b in pairwise(self.plan.stripes):
            one, other = self.head_box(a), self.head_box(b)
            if a.finger.gate == b.finger.gate and 0 < other.left - one.right < sizes.gate_space:
                yield "poly", Area(one.right, one.bottom, other.left, one.top)

    def _markers(self) -> list[Area]:
        """Return the markers around the gate contacts; those that would be too close are merged."""
        sizes, low = self.sizes, self.head_contact
        merged: list[Area] = []
        for stripe in self.plan.stripes:
            pad = Area(stripe.contact, low, stripe.contact + self.contacts_width(stripe), low + sizes.contact)
            area = pad.enlarged(sizes.marker, sizes.marker)
            if merged and area.left - merged[-1].right < sizes.marker_space:
                area = Area(merged.pop().left, area.bottom, area.right, area.top)
            merged.append(area)
        return merged

    def _column_contacts(self, column: Column) -> range:
        """Return the lower edges of the contacts that fill ``column``."""
        sizes = self.sizes
        pitch = sizes.contact + sizes.contact_space
        count = (column.top - column.bottom - 2 * sizes.active_end + sizes.contact_space) // pitch
        used = count * pitch - sizes.contact_space
        low = column.bottom + (column.top - column.bottom - used) // (2 * sizes.grid) * sizes.grid
        return range(low, low + count * pitch, pitch)

    def _column_strip(self, column: Column) -> Strip:
        sizes = self.sizes
        left = column.left - (sizes.strip - sizes.contact) // 2
        start = self._column_contacts(column)[-1] + sizes.contact + sizes.strip_end
        return Strip(column.net, left, start, (left, left + sizes.strip))

    def _gate_strip(self, stripe: Stripe) -> Strip:
        """Return the strip that starts at the gate contacts."""
        sizes = self.sizes
        width = self.contacts_width(stripe)
        middle = stripe.contact + (width - sizes.contact) // (2 * sizes.grid) * sizes.grid
        left = middle - (sizes.strip - sizes.contact) // 2
        pad = (
            min(left, stripe.contact - sizes.strip_side),
            max(left + sizes.strip, stripe.contact + width + sizes.strip_side),
        )
        return Strip(stripe.finger.gate, left, self.head_contact - self._pad_end(), pad)

    def _pad_end(self) -> int:
        """Return how far a gate's strip extends below its contacts, where the cut to the nearest rail may lie."""
        sizes = self.sizes
        return max(sizes.strip_end, (sizes.cut - sizes.contact) // 2 + sizes.cut_strip_end)

    def _head_contact(self) -> int:
        """Return the lower edge of the gate contacts."""
        sizes, top = self.sizes, self.plan.height
        contacts = max(self._column_contacts(column)[-1] for column in self.plan.columns) + sizes.contact
        return max(
            top + sizes.gate_contact_to_active,
            top + sizes.poly_to_active + sizes.head_end,
            contacts + sizes.strip_end + sizes.strip_space + self._pad_end(),
            contacts + sizes.marker_to_contact + sizes.marker,
        )

    def _rails(self, side: Side) -> dict[str, int]:
        """Return the lower edge of each net's rail on ``side``."""
        sizes = self.sizes
        pitch = sizes.rail + sizes.rail_space
        nets = _by_use(s.net for s in self.strips[side] if not self.to_ring(side, s.net))
        if side == "foot":
            return {net: -sizes.rail - i * pitch for i, net in enumerate(nets)}
        first = self.head_contact - (sizes.rail - sizes.contact) // (2 * sizes.grid) * sizes.grid
        return {net: first + i * pitch for i, net in enumerate(nets)}


def _by_use(nets: Iterable[str]) -> list[str]:
    """Return the distinct ``nets``, the most frequent first, ties by name."""
    counts = Counter(nets)
    return sorted(counts, key=lambda net: (-counts[net], net))
