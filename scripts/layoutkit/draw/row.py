"""Plan a diffusion row, an ordered list of fingers. Every MOS structure is made of such rows.

Adjacent fingers share their diffusion if its net and height are the same; otherwise the diffusion is broken.

      gate rail  ==========#==================     second conductor
                           |                       strip, first conductor
                          [x]   poly head
         .-----.---------||------.-----.
         |  x  |  x      ||  x   |  x  |           diffusion; x: contact columns under straps
     D rail =================#=============        on the conductor above the straps
         |  x  |  x      ||  x   |  x  |
     S rail =#======================#======
         '-----'---------||------'-----'

This module places the pieces of one row in x; ``wires`` wires it, ``stack`` stacks rows and closes the tap ring around
them, ``row_metal`` chooses the conductors.

Some devices have drains beyond field oxide, each a tap in a well of its own (NMOS) or in a hole of the well (PMOS). The
well or hole reaches below the gate, where the channel ends::

    +------- gate --------+
    +-- source, channel --+--+        +---------+
    |          +- well ---|--|- field | - drain |----+
    +---------------------+--+        +---------+    |
               +-------------------------------------+

The lengths that a row is drawn with are read from the technology once. Two kinds of enclosure appear everywhere:
``side`` holds across a strip (all sides), ``end`` along it (two opposite sides), as in rules that require more "on one
of two adjacent sides".
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from layoutkit.errors import GeometryError
from layoutkit.rectangle import Rectangle

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from layoutkit.technology import DeviceSpec, Technology


@dataclass(frozen=True)
class Finger:
    """One gate stripe with the nets left and right of it.

    Attributes:
        device: Id of its transistor; empty for a dummy.
        gate: Net of the gate.
        left: Net of the diffusion left of the gate.
        right: Net of the diffusion right of the gate.
        width: Channel width, the height of the diffusion. [dbu]
        length: Channel length, the width of the stripe. [dbu]
        unit: Id of the instance it is a part of; of a dummy, the transistor of the netlist that it is, if any.
        orientation: Orientation of that instance.
        blocked: How far silicide is blocked left and right of the gate, or the drain lies beyond it, for a flavour
            of which this is so. [dbu]
        source_left: Whether its source is left of the gate; of such a flavour.
    """

    device: str
    gate: str
    left: str
    right: str
    width: int
    length: int
    unit: str = ""
    orientation: str = "R0"
    blocked: tuple[int, int] | None = None
    source_left: bool = True

    @property
    def extended(self) -> bool:
        """Whether its drain is drawn beyond field oxide, and its source as any other."""
        return 0 in (self.blocked or ())

    def shares_diffusion(self, right: Finger) -> bool:
        """Return whether its right side and the left side of another finger can be one diffusion."""
        alike = not (self.extended and self.source_left == right.source_left)  # a drain is no source
        return self.right == right.left and self.width == right.width and alike

    def turned(self) -> Finger:
        """Return it seen from the other side."""
        blocked = self.blocked and self.blocked[::-1]
        return replace(self, left=self.right, right=self.left, blocked=blocked, source_left=not self.source_left)


@dataclass(frozen=True)
class Row:
    """A list of fingers from left to right.

    Attributes:
        fingers: At least one.
        breaks: ``i`` separates the diffusions of fingers ``i`` and ``i + 1`` although they could be shared.
        gap: Minimum distance between separated diffusions, if larger than the process's. [dbu]
        flipped: Upside down: gate contacts below, source and drain strips above.
    """

    fingers: tuple[Finger, ...]
    breaks: frozenset[int] = field(default_factory=frozenset)
    gap: int = 0
    flipped: bool = False

    def broken(self) -> frozenset[int]:
        """Return the fingers after which the diffusion is broken."""
        return self.breaks | {i for i, (a, b) in enumerate(pairwise(self.fingers)) if not a.shares_diffusion(b)}


class Stripe(NamedTuple):
    """A placed finger: its channel spans ``left`` to ``right`` and ``bottom`` to ``top``. [dbu]"""

    finger: Finger
    left: int
    right: int
    bottom: int
    top: int
    contact: int  # left edge of the (first) gate contact
    contacts: int  # gate contacts side by side


class Column(NamedTuple):
    """A placed contact column on a source or drain; ``left`` is the left edge of its contacts. [dbu]"""

    net: str
    left: int
    bottom: int
    top: int
    fingers: tuple[int, ...] = ()  # the fingers that it lies beside


class PlannedRow(NamedTuple):
    """A row placed in x, centred on x = 0; y = 0 and ``height`` bound its tallest diffusion. [dbu]"""

    row: Row
    stripes: tuple[Stripe, ...]
    columns: tuple[Column, ...]
    diffusions: tuple[tuple[int, int, int, int], ...]
    left: int
    right: int
    height: int

    def blocks(self, beyond: int) -> list[Rectangle]:
        """Return where silicide is blocked: over each gate and beside it, ``beyond`` the diffusion. [dbu]"""
        return [
            Rectangle(s.left - s.finger.blocked[0], s.bottom - beyond, s.right + s.finger.blocked[1], s.top + beyond)
            for s in self.stripes
            if s.finger.blocked
        ]

    def sources(self) -> list[Rectangle]:
        """Return the sources of the fingers with blocked silicide, from gate to gate or to the end of the diffusion."""
        found: dict[Rectangle, None] = {}
        for left, bottom, right, top in self.diffusions:
            inside = [s for s in self.stripes if left <= s.left and s.right <= right]
            edges = [left, *(edge for s in inside for edge in (s.left, s.right)), right]
            for number, stripe in enumerate(inside):
                at = 2 * number if stripe.finger.source_left else 2 * number + 2
                if stripe.finger.blocked:
                    found[Rectangle(edges[at], bottom, edges[at + 1], top)] = None
        return list(found)


def plan_row(row: Row, sizes: RowSizes, wider: int = 0) -> PlannedRow:
    """Return ``row`` with every piece placed in x.

    All adjacent gates of a row have the same distance, the largest that any pair needs, so that matched fingers have
    equal diffusions.

    Args:
        row: The fingers.
        sizes: Lengths to draw with.
        wider: Extra distance between gates, beyond what the rules need. [dbu]

    Raises:
        GeometryError: If the row has no fingers.
    """
    if not row.fingers:
        raise GeometryError("a diffusion row needs at least one finger")
    return _Planner(row, sizes, wider).plan()


def is_palindrome(row: Row, exchanged: Mapping[str, str] = MappingProxyType({})) -> bool:
    """Return whether the shapes and nets of ``row`` are the same from both ends, gates and rails' cuts included.

    Args:
        row: The row.
        exchanged: Names of nets when seen from the right end, by their names from the left end. Gates may have these
            or their own, as in a mirror, whose gates are on one of the two drains.
    """
    fingers, count = row.fingers, len(row.fingers)

    def turned(net: str) -> str:
        return exchanged.get(net, net)

    shapes = [(f.left, f.right, f.width, f.length, f.blocked or ()) for f in fingers]
    mirrored = [
        (turned(f.right), turned(f.left), f.width, f.length, (f.blocked or ())[::-1]) for f in reversed(fingers)
    ]
    gates = [f.gate for f in fingers]
    same_gates = gates[::-1] in (gates, [turned(gate) for gate in gates])
    return shapes == mirrored and same_gates and row.broken() == {count - 2 - i for i in row.broken()}


def head_width(length: int, sizes: RowSizes) -> int:
    """Return the width of the poly head of a gate of ``length``; a long gate needs no wider head."""
    return max(length, _contacts_width(length, sizes) + 2 * sizes.head_side)


def _contact_count(length: int, sizes: RowSizes) -> int:
    """Return 2 if two gate contacts fit on the stripe (for yield), else 1."""
    return 2 if length >= 2 * (sizes.contact + sizes.head_side) + sizes.contact_space else 1


def _contacts_width(length: int, sizes: RowSizes) -> int:
    count = _contact_count(length, sizes)
    return count * sizes.contact + (count - 1) * sizes.contact_space


class _Planner:
    def __init__(self, row: Row, sizes: RowSizes, wider: int) -> None:
        self.row = row
        self.sizes = sizes
        self.broken = row.broken()
        self.spread = self._round_up(self._gate_distance() + wider, sizes.contact)
        self.gap = self._diffusion_gap()

    def plan(self) -> PlannedRow:
        fingers, sizes = self.row.fingers, self.sizes
        heights = [max(f.width, self._contact_height(f.width)) for f in fingers]
        height = max(heights)
        end = self._end_width()
        total = 2 * end + self._beyond(fingers[0], 0) + self._beyond(fingers[-1], 1) + sum(f.length for f in fingers)
        total += sum(
            2 * end + self._beyond(a, 1) + self.gap + self._beyond(b, 0)
            if i in self.broken
            else self.spread + 2 * self._beyond_both(a, b)
            for i, (a, b) in enumerate(pairwise(fingers))
        )
        left = x = -(total // (2 * sizes.grid)) * sizes.grid
        stripes: list[Stripe] = []
        columns: list[Column] = []
        diffusions: list[tuple[int, int, int, int]] = []
        island = x
        for i, finger in enumerate(fingers):
            base = self._bottom(height, finger.width)
            starts, ends = i == 0 or i - 1 in self.broken, i == len(fingers) - 1 or i in self.broken
            if starts:
                island = x
                x += end + self._beyond(finger, 0)
                column = self._column(finger.left, x - self._beyond(finger, 0), -1, base, finger.width)
                columns.append(column._replace(fingers=(i,)))
            stripes.append(self._stripe(finger, x, base))
            x += finger.length
            beside = (i,) if ends else (i, i + 1)
            beyond = self._beyond(finger, 1) if ends else self._beyond_both(finger, fingers[i + 1])
            columns.append(self._column(finger.right, x + beyond, 1, base, finger.width)._replace(fingers=beside))
            if ends:
                diffusions.append((island, base, x + beyond + end, base + finger.width))
                x += beyond + end + self.gap
            else:
                x += self.spread + 2 * beyond
        diffusions += self._shoulders(columns)
        return PlannedRow(self.row, tuple(stripes), tuple(columns), tuple(diffusions), left, left + total, height)

    def _beyond(self, finger: Finger, side: int) -> int:
        """Return how much farther away a contact left (0) or right (1) of a gate lies where silicide is blocked."""
        if not finger.blocked:
            return 0
        distance = finger.blocked[side] + self.sizes.block_to_contact
        return max(0, distance - (self.spread - self.sizes.contact) // 2)

    def _beyond_both(self, left: Finger, right: Finger) -> int:
        return max(self._beyond(left, 1), self._beyond(right, 0))

    def _gate_to_contact(self, finger: Finger) -> int:
        """Return the minimum distance from gate to contact; narrow channels have wider diffusion at their contacts."""
        sizes = self.sizes
        if finger.width >= self._contact_height(0):
            return sizes.contact_to_gate
        to_shoulder = max(sizes.poly_to_active, (sizes.active_space - finger.length + 1) // 2)
        return max(sizes.contact_to_gate, sizes.active_side + to_shoulder)

    def _gate_distance(self) -> int:
        sizes, fingers = self.sizes, self.row.fingers
        shortest = min(f.length for f in fingers)
        needs = [
            sizes.gate_space,
            sizes.contact + 2 * max(self._gate_to_contact(f) for f in fingers),
            sizes.strip + sizes.strip_space - shortest,
        ]
        for a, b in pairwise(fingers):
            pads = self._pad(a.length) + self._pad(b.length)
            heads = head_width(a.length, sizes) + head_width(b.length, sizes)
            lengths = a.length + b.length
            needs.append((pads - lengths) // 2 + sizes.strip_space + sizes.grid)
            if a.gate != b.gate:
                needs.append((heads - lengths) // 2 + sizes.gate_space + self._odd(a) + self._odd(b))
        return self._round_up(max(needs), sizes.contact)

    def _diffusion_gap(self) -> int:
        sizes = self.sizes
        pads = sizes.strip + sizes.strip_space - sizes.contact - 2 * sizes.active_side
        return self._round_up(max(sizes.active_space, self.row.gap, pads), 0)

    def _end_width(self) -> int:
        """Return how far the outermost diffusion extends beyond its gate: at least as far as an inner one."""
        sizes = self.sizes
        inner = (self.spread - sizes.contact) // 2
        return max(sizes.source_drain, inner + sizes.contact + sizes.active_side, self.spread)

    def _round_up(self, length: int, like: int) -> int:
        step = 2 * self.sizes.grid
        return like + -(-(length - like) // step) * step

    def _odd(self, finger: Finger) -> int:
        """Return the offset, half a grid step rounded up, that a head may have from the centre of its stripe."""
        width = _contacts_width(finger.length, self.sizes)
        return self.sizes.grid if (finger.length - width) % (2 * self.sizes.grid) else 0

    def _pad(self, length: int) -> int:
        return max(self.sizes.strip, _contacts_width(length, self.sizes) + 2 * self.sizes.strip_side)

    def _contact_height(self, width: int) -> int:
        """Return the height of a diffusion with a contact: ``width`` or what the contact needs, if that is more."""
        return max(width, self.sizes.contact + 2 * self.sizes.active_end)

    def _bottom(self, height: int, width: int) -> int:
        return (height - width) // (2 * self.sizes.grid) * self.sizes.grid

    def _column(self, net: str, gate_edge: int, side: int, base: int, width: int) -> Column:
        """Return the column right (``side`` 1) or left (-1) of a gate edge."""
        sizes = self.sizes
        distance = (self.spread - sizes.contact) // 2
        left = gate_edge + distance if side > 0 else gate_edge - distance - sizes.contact
        height = self._contact_height(width)
        bottom = base - (height - width) // (2 * sizes.grid) * sizes.grid
        return Column(net, left, bottom, bottom + height)

    def _stripe(self, finger: Finger, x: int, base: int) -> Stripe:
        sizes = self.sizes
        slack = finger.length - _contacts_width(finger.length, sizes)
        offset = slack // (2 * sizes.grid) * sizes.grid
        if slack % (2 * sizes.grid) and 2 * x + finger.length < 0:
            offset += sizes.grid  # off the centre towards the row's axis, so that mirror images stay mirror images
        return Stripe(
            finger,
            x,
            x + finger.length,
            base,
            base + finger.width,
            x + offset,
            _contact_count(finger.length, sizes),
        )

    def _shoulders(self, columns: list[Column]) -> list[tuple[int, int, int, int]]:
        """Return the wider diffusion around contacts of channels that are too narrow for a contact."""
        if all(f.width >= self._contact_height(0) for f in self.row.fingers):
            return []
        side, contact = self.sizes.active_side, self.sizes.contact
        return [(c.left - side, c.bottom, c.left + contact + side, c.top) for c in columns]


class ExtendedDrain(NamedTuple):
    """What is drawn of one finger: diffusion of source and channel, drain, and its well or the hole in it. [dbu]"""

    source: Rectangle
    drain: Rectangle
    well: Rectangle


def extended_drains(plan: PlannedRow, device: DeviceSpec, sizes: RowSizes) -> Iterator[ExtendedDrain]:
    """Yield the sources and drains of a row of ``device``; those that two fingers share overlap."""
    over, beyond = device.dimensions["gate_over_field"], device.dimensions["drain_well_enclosure"]
    for stripe in plan.stripes:
        before = max(column.left for column in plan.columns if column.left < stripe.left)
        after = min(column.left for column in plan.columns if column.left > stripe.left)
        left, right = (
            Rectangle(x, stripe.bottom, x + sizes.contact, stripe.top).enlarged(sizes.active_side, 0)
            for x in (before, after)
        )
        if stripe.finger.source_left:
            well = right.enlarged(beyond, beyond)._replace(left=stripe.right - device.beyond_channel)
            yield ExtendedDrain(left._replace(right=stripe.right - over), right, well)
        else:
            well = left.enlarged(beyond, beyond)._replace(right=stripe.left + device.beyond_channel)
            yield ExtendedDrain(right._replace(left=stripe.left + over), left, well)


def bevelled(area: Rectangle, bevel: int) -> tuple[tuple[int, int], ...]:
    """Return the corners of ``area`` without a triangle of ``bevel`` at each. [dbu]"""
    x, y = ((low, low + bevel, high - bevel, high) for low, high in ((area.left, area.right), (area.bottom, area.top)))
    corners = ((0, 1), (0, 2), (1, 3), (2, 3), (3, 2), (3, 1), (2, 0), (1, 0))
    return tuple((x[i], y[j]) for i, j in corners)


class RowSizes(NamedTuple):
    """Lengths of one device flavour's diffusion rows. [dbu]

    ``strip`` is the vertical wire on the first conductor, ``rail`` the horizontal one on the second, ``riser`` the
    vertical one on the third, ``cut`` joins strip and rail, ``via`` rail and riser, ``marker`` surrounds poly contacts,
    ``flavour`` is how far the device's own markers extend beyond the diffusion, ``block`` how far
    the silicide block does.
    """

    grid: int
    contact: int
    contact_space: int
    contact_to_gate: int
    active_side: int
    active_end: int
    active_space: int
    source_drain: int
    gate_space: int
    gate_extension: int
    poly_to_active: int
    head_side: int
    head_end: int
    gate_contact_to_active: int
    marker: int
    marker_space: int
    marker_to_contact: int
    strip: int
    strip_space: int
    strip_side: int
    strip_end: int
    strip_area: int
    cut: int
    cut_space: int
    cut_strip_end: int
    cut_rail_end: int
    rail: int
    rail_space: int
    rail_area: int
    via: int
    riser: int
    implant: int
    implant_space: int
    implant_width: int
    flavour: int
    flavour_space: int
    block: int
    block_to_contact: int


def row_sizes(tech: Technology, device: DeviceSpec) -> RowSizes:
    """Return the lengths for rows of ``device`` in ``tech``.

    Raises:
        TechnologyError: If the technology does not state one of them.
    """
    first, second, third = tech.conductors[:3]
    contact, cut, via = tech.contact, tech.cuts[0], tech.cuts[1]
    has_marker = tech.role("poly_contact_marker") is not None

    def dim(name: str) -> int:
        return tech.dim(name, device)

    def even(length: int, like: int = 0) -> int:
        """Return the smallest length, not below ``length``, in which ``like`` can be centred on the grid."""
        return like + -(-(length - like) // (2 * tech.grid)) * 2 * tech.grid

    return RowSizes(
        grid=tech.grid,
        contact=contact.size,
        contact_space=contact.space,
        contact_to_gate=dim("contact_to_gate"),
        active_side=dim("active_contact_enclosure"),
        active_end=max(dim("active_contact_enclosure"), dim("active_contact_enclosure_end")),
        active_space=dim("active_space"),
        source_drain=dim("source_drain_extension"),
        gate_space=dim("gate_space"),
        gate_extension=dim("gate_extension"),
        poly_to_active=dim("poly_to_active"),
        head_side=dim("poly_contact_enclosure"),
        head_end=max(dim("poly_contact_enclosure"), dim("poly_contact_enclosure_end")),
        gate_contact_to_active=dim("gate_contact_to_active"),
        marker=dim("poly_contact_marker_enclosure") if has_marker else 0,
        marker_space=dim("poly_contact_marker_space") if has_marker else 0,
        marker_to_contact=dim("poly_contact_marker_to_active_contact") if has_marker else 0,
        strip=even(
            max(first.width, contact.size + 2 * contact.enclose_above, cut.size + 2 * cut.enclose_below), contact.size
        ),
        strip_space=first.space,
        strip_side=contact.enclose_above,
        strip_end=max(contact.enclose_above, contact.enclose_above_end),
        strip_area=first.area,
        cut=cut.size,
        cut_space=cut.space,
        cut_strip_end=max(cut.enclose_below, cut.enclose_below_end),
        cut_rail_end=max(cut.enclose_above, cut.enclose_above_end),
        rail=even(max(second.width, cut.size + 2 * cut.enclose_above, via.size + 2 * via.enclose_below), cut.size),
        rail_space=second.space,
        rail_area=second.area,
        via=via.size,
        riser=even(max(third.width, via.size + 2 * via.enclose_above), via.size),
        implant=dim("implant_enclosure"),
        implant_space=dim("implant_space"),
        implant_width=dim("implant_width"),
        flavour=dim("marker_enclosure") if device.markers else 0,
        flavour_space=dim("marker_space") if device.markers else 0,
        block=dim("block_enclosure") if device.block else 0,
        block_to_contact=dim("block_to_contact") if device.block else dim("active_contact_enclosure"),
    )
