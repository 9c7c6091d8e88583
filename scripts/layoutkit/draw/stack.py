"""Draw rows above each other inside one tap ring, and connect the pieces of every net in the module.

    +--------------------------------+   tap ring
    |  .--[ gate rails, row 2 ]---.  |
    |  |   row 2 under its rails  |  |   risers at both ends join the rails of one net
    |  |--[ gate rails, row 1 ]---|  |
    |  '   row 1 under its rails  '  |
    +----------[ bulk rail ]---------+

Rails extend to the outer edge of the ring; those of the bulk net are joined to it at both sides. No wire but the
module's own may lie over the channels of matched transistors, so those are keepouts and the rails' ends the pins.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from layoutkit.draw.facing import LEVEL, gate_links, link_shapes, share_gate_rails, shared_distance
from layoutkit.draw.module import Gate, Instance, Keepout, Module, Pin, channel_centre
from layoutkit.draw.ring import (
    FULL_RING,
    SIDES,
    RingSide,
    RingStyle,
    TapRing,
    TiedRow,
    draw_outer_ring,
    draw_tap_ring,
    ends_in_dummies,
    frame,
    inner_edge,
    module_covers,
    ring_sizes,
    row_covers,
    tap_distance,
    tie_shapes,
)
from layoutkit.draw.risers import (
    Channel,
    InnerRisers,
    Joined,
    NetRail,
    Rail,
    Risers,
    RiserSurroundings,
    Twins,
    needed_width,
    parts_beside,
)
from layoutkit.draw.row import Row, bevelled, extended_drains, is_palindrome, plan_row, row_sizes
from layoutkit.draw.row_metal import Metal, hull
from layoutkit.draw.sketch import Sketch
from layoutkit.draw.trunks import Trunks, heavy_nets, plan_trunks
from layoutkit.draw.wires import RAIL_ROWS, Bulk, Loads, RowTwins, Side, WiredRow, level_name, wider_spread
from layoutkit.errors import FarFromTapsError, GeometryError
from layoutkit.layout.cells import fresh_cell
from layoutkit.rectangle import Rectangle

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.draw.facing import GateLink
    from layoutkit.draw.risers import DrawnRail
    from layoutkit.technology import DeviceSpec, Technology

BulkRails = Literal["bottom", "both"]

_WIDER_ROUNDS = 3
"""How often gates are moved apart so that straps carry their currents. Rails and straps change each time."""
HIGHER_ROUNDS = 3
"""How often rails are made higher to hold the cuts below the straps of their trunks."""
WIDER_FOR_TWINS = 0.03
"""Part of the rows' width by which mirrored pins may widen a module; without them, wires start at the rails."""


@dataclass(frozen=True)
class RowStack:
    """The rows of a module and how to draw them.

    Attributes:
        name: Name of the cell.
        device: Flavour of all fingers.
        bulk_net: Net of the tap ring.
        rows: Bottom row first.
        labels: Whether pins carry their net's name on the label layers.
        bulk_rails: Sides of the ring that have a rail: ``bottom``, or ``both`` bottom and top. Rows without taps have
            at most one, on the side where it takes less room.
        gap: Minimum distance between the diffusions of adjacent rows. [dbu]
        ring: Which taps surround the rows.
        currents: Device to its largest direct current, for which the metal is drawn. [A]
        twins: Nets that are to be wired as mirror images, in pairs: the first gets a pin at the left end, the second
            one at the mirrored place. Only nets that both have rails count.
        parallel: Whether its devices are on the same nets, so that they need not match.
    """

    name: str
    device: DeviceSpec
    bulk_net: str
    rows: tuple[Row, ...]
    labels: bool = True
    bulk_rails: BulkRails = "bottom"
    gap: int = 0
    ring: RingStyle = FULL_RING
    currents: Mapping[str, float] = field(default_factory=dict)
    twins: tuple[tuple[str, str], ...] = ()
    parallel: bool = False


def draw_row_module(layout: kdb.Layout, tech: Technology, stack: RowStack) -> Module:
    """Draw ``stack`` into its own cell of ``layout`` and return the module; an old cell of that name is replaced.

    Raises:
        GeometryError: If there is no row, or part of a diffusion would lie too far from the tap ring.
        TechnologyError: If the technology lacks a layer or dimension.
        LayoutkitError: If GDSII cannot hold the name.
    """
    return _Drawing(tech, stack).module(layout)


def module_size(tech: Technology, stack: RowStack) -> tuple[int, int]:
    """Return the width and height of what ``stack`` is drawn as, inside the outer edges of its ring. [dbu]

    Raises:
        GeometryError: If it cannot be drawn.
    """
    drawing = _Drawing(tech, stack)
    inner, around = drawing.inner, 2 * drawing.ring.width
    return inner.right - inner.left + around, inner.top - inner.bottom + around


class _PlacedRow:
    """A wired row at its position, which converts the row's coordinates to the module's."""

    def __init__(self, wired: WiredRow, flipped: bool, bottom: int) -> None:
        self.wired = wired
        self.flipped = flipped
        self.bottom = bottom
        self.top = bottom + wired.plan.height

    def y(self, own: int) -> int:
        return self.top - own if self.flipped else self.bottom + own

    def area(self, own: Rectangle) -> Rectangle:
        bottom, top = sorted((self.y(own.bottom), self.y(own.top)))
        return Rectangle(own.left, bottom, own.right, top)


class _Drawing:
    def __init__(self, tech: Technology, stack: RowStack) -> None:
        if not stack.rows:
            raise GeometryError(f"module {stack.name} needs at least one row")
        self.tech = tech
        self.stack = stack
        self.metal = Metal(tech)
        self.sizes = row_sizes(tech, stack.device)
        self.ring = ring_sizes(tech, stack.device, self.sizes)
        self.taps = stack.ring.sides
        self.sketch = Sketch()
        self.pins: list[tuple[str, int, Rectangle]] = []
        self.shares: dict[tuple[str, int, Rectangle], float] = {}
        self.shared: list[bool] = []  # for each two adjacent rows: whether they share gate rails
        self.rails: list[tuple[str, int, Rectangle]] = []
        # Without taps, posts at both ends tie the dummies.
        self.posts = not self.taps and all(ends_in_dummies(row, stack.bulk_net) for row in stack.rows)
        self.loads = _loads(stack)
        self.wider = 0
        several = len({f.device for row in stack.rows for f in row.fingers if f.device}) > 1
        self.matched = several and not stack.parallel
        self.trunk_nets = self._trunk_nets()
        # wires lead to every rail of a net that one rail does not carry; risers carry no current of it then
        carried = {net: ma for net, ma in self.loads.nets.items() if self.metal.carries(self.metal.rail, ma)}
        self.riser_loads = {net: ma for net, ma in carried.items() if net not in self.trunk_nets}
        usual = dict.fromkeys(self.trunk_nets, 1)
        self._plan(usual)
        for _ in range(HIGHER_ROUNDS):
            rows = self._rows_below_straps()
            if rows == self.loads.trunks:
                break
            self._plan(rows)
        try:
            self._check_tap_distance()
        except FarFromTapsError:
            if self.loads.trunks == usual:
                raise
            self._plan(usual)  # some cuts may be too weak; otherwise all metal would be drawn without currents
            self._check_tap_distance()

    def _plan(self, trunks: Mapping[str, int]) -> None:
        """Plan the rows and what joins them.

        Args:
            trunks: Each net with trunks, mapped to the rows of cuts that its rails have room for at least.
        """
        self.loads = self.loads._replace(trunks=trunks)
        self._plan_rows(self._inner_pairs())
        if not self.inner_risers.nets.issuperset(net for row in self.wired for net in row.side_by_side):
            self._plan_rows(())  # rails beside each other need risers over their columns
        self.inner = self._ring_inside()
        self.ends = self.inner.left - self._tap_width("left"), self.inner.right + self._tap_width("right")
        self.trunks = self._planned_trunks()
        if self.trunks.lack:
            room = self.metal.even(self.trunks.lack) // 2
            self.inner = self.inner._replace(left=self.inner.left - room, right=self.inner.right + room)
            self.ends = self.ends[0] - room, self.ends[1] + room
            self.trunks = self._planned_trunks()

    def _plan_rows(self, twins: Sequence[tuple[str, str]]) -> None:
        """Wire the rows and place them; rails of ``twins`` may lie beside each other."""
        stack, self.shared = self.stack, []
        bulk = Bulk(stack.bulk_net, (self.posts or "left" in self.taps, self.posts or "right" in self.taps))
        images = {net: twin for one, other in stack.twins for net, twin in ((one, other), (other, one))}
        wired = self._wired(bulk, images, twins)
        for _ in range(_WIDER_ROUNDS if self.loads.fingers else 0):
            lack = max(map(wider_spread, wired))
            if not lack:
                break
            self.wider += lack
            wired = self._wired(bulk, images, twins)
        beside = any(row.side_by_side for row in wired)
        for row in wired[1::2]:  # each twin then has the rail nearer to the gates in every second row
            row.exchange_gate_rails(stack.twins)
            if not beside:
                row.exchange_rails(stack.twins)
        self.left = min(row.plan.left for row in wired)
        self.right = max(row.plan.right for row in wired)
        self.wired = wired
        self.rows = self._stacked(wired)
        self.links = self._gate_links()
        self.tie_rails = self._tie_rails()
        self._plan_risers()

    def _wired(self, bulk: Bulk, images: Mapping[str, str], twins: Sequence[tuple[str, str]]) -> list[WiredRow]:
        """Return the rows with their wiring; gates lie ``self.wider`` farther apart than the rules need."""
        wired = []
        for fingers in self.stack.rows:
            exchanged = images if not is_palindrome(fingers) and is_palindrome(fingers, images) else {}
            plan, pairs = plan_row(fingers, self.sizes, self.wider), RowTwins(exchanged, twins)
            wired.append(WiredRow(plan, self.sizes, self.metal, bulk, self.loads, pairs))
        return wired

    def module(self, layout: kdb.Layout) -> Module:
        stack, tech, sketch = self.stack, self.tech, self.sketch
        self._draw_covers()
        self._draw_common_markers()
        for placed in self.rows:
            self._draw_row(placed)
        self._draw_ring()
        self._draw_end_ties()
        for layer, area in link_shapes(self.links, self.metal):
            sketch.box(layer, area)
        if self.risers.nets:
            for layer, area in self.risers.shapes(self.ends, self.rails):
                sketch.box(layer, area)
            self.pins += [(net, self.metal.riser, area) for (net, _), area in self.risers.twin_risers(self.ends)]
        for layer, area in self.inner_risers.shapes(self.rails):
            sketch.box(layer, area)
        for layer, area in self.trunks.shapes(self.metal, self.rails):
            sketch.box(layer, area)
        self.pins += [(net, self.metal.riser + 1, area) for net, area in self.trunks.bars.items()]
        self.shares |= dict.fromkeys(self.pins[-len(self.trunks.bars) :] if self.trunks.bars else (), 1.0)
        inner = [(net, self.metal.riser, area) for (net, _), area in self.inner_risers.risers()]
        self.pins += inner
        self.shares |= {pin: 1 / sum(other[0] == pin[0] for other in inner) for pin in inner}
        if self.taps:
            for layer, area in module_covers(self.inner, self.ring, tech, stack.device, self.taps):
                sketch.box(layer, area)
                if stack.device.drain_marker and layer == stack.device.well and tech.deep_well is not None:
                    beyond = tech.deep_well.dim("ring_enclosure")
                    sketch.box("deep_nwell", area.enlarged(-beyond, -beyond))
        if stack.ring.kind == "double":
            outer = draw_outer_ring(sketch, tech, stack.device, stack.ring, stack.bulk_net)
            self.pins += [(net, 1, area) for net, area in outer]
        self._draw_texts()
        extent = sketch.extent()
        symmetric = sketch.is_mirror_image_of_itself() and (extent.left + extent.right) % (2 * self.sizes.grid) == 0
        crossings = self.inner_risers.crossings(self.rails)
        rows = ((layer, placed.area(area)) for placed in self.rows for layer, area in placed.wired.crossings())
        for layer, area in (*self.risers.crossings(self.ends, self.rails), *crossings, *rows):
            sketch.box(layer, area)
        cell = fresh_cell(layout, stack.name)
        moved = sketch.write_at_origin(cell, tech)
        return self._described(layout, cell, moved, extent, symmetric=symmetric)

    # ---- positions

    def _stacked(self, wired: list[WiredRow]) -> list[_PlacedRow]:
        rows = list(zip(self.stack.rows, wired, strict=True))
        distances = []
        for (lower_row, lower), (upper_row, upper) in pairwise(rows):
            facing = _upper(lower_row), _lower(upper_row)
            way = 1 if 2 * len(self.shared) + 2 <= len(rows) else -1  # so that the upper half mirrors the lower one
            shared = facing == ("head", "head") and share_gate_rails(lower, upper, self.metal, way=way)
            needs = self._row_needs(facing, shared=shared)
            needed = self.tech.snap_up(_clearance(lower.reach(facing[0]), upper.reach(facing[1]), needs))
            distances.append(shared_distance(lower, upper, needed) if shared else needed)
            self.shared.append(shared)
        if distances != distances[::-1]:  # the rows of an odd stack are to be symmetric about the middle row
            most = max(distances)
            for number, pair in enumerate(pairwise(wired)):
                if self.shared[number]:  # the outer row's rails take an odd step, so that the upper half is the image
                    shared_distance(*pair, most, odd_step=1 if 2 * number + 2 <= len(rows) else -1)
            distances = [most] * len(distances)
        placed = [_PlacedRow(wired[0], self.stack.rows[0].flipped, 0)]
        for (row, upper), distance in zip(rows[1:], distances, strict=True):
            placed.append(_PlacedRow(upper, row.flipped, placed[-1].top + distance))
        return placed

    def _row_needs(self, facing: tuple[Side, Side], *, shared: bool) -> dict[tuple[str, str], int]:
        """Return the distances that shapes of two adjacent rows keep.

        One implant covers rows foot to foot; the wires of rows with shared gate rails lie beside each other.
        """
        sizes, metal = self.sizes, self.metal
        widest = {level: self._widest(level) for level in range(metal.riser + 1)}
        if self.posts:  # bars that tie dummies reach to rails on the bulk net, and are wide there
            bulk_rails = [
                (row, rail) for row in self.wired for rail in row.gate_rails if rail.net == self.stack.bulk_net
            ]
            widest[0] = max([widest[0], *(rail.high - row.head_contact for row, rail in bulk_rails)])
        needs = {(level_name(level),) * 2: metal.space(level, width) for level, width in widest.items()}
        needs |= {
            ("active", "active"): max(sizes.active_space, self.stack.gap),
            # Decks measure the length of channels between all edges of channels, also those of two channels.
            ("channel", "channel"): self.stack.device.min_l,
            ("poly", "poly"): sizes.gate_space,
            ("poly", "active"): sizes.poly_to_active,
            ("gate_contact", "active"): sizes.gate_contact_to_active,
            ("marker", "marker"): sizes.marker_space,
            ("marker", "active_contact"): sizes.marker_to_contact,
        }
        if shared:
            free = {*map(level_name, widest), "marker"}
            bars = needs["strip", "strip"]
            needs = {pair: space for pair, space in needs.items() if pair[0] not in free}
            needs["tie_bar", "tie_bar"] = bars
        if facing != ("foot", "foot"):
            needs |= {("implant", "implant"): sizes.implant_space, ("flavour", "flavour"): sizes.flavour_space}
        return needs

    def _widest(self, level: int) -> int:
        """Return the width of the widest wire on ``level``, for spaces beside it."""
        rails = [rail.high - rail.low for row in self.wired for rail in row.all_rails() if rail.level == level]
        every = [rail for row in self.wired for rail in row.all_rails()]
        wires = [needed_width(self.metal, every, self.riser_loads)] if level == self.metal.riser else []
        if level == self.metal.riser and self.trunk_nets:
            wires.append(self.tech.to_dbu(self.metal.widest(level)))
        straps = [row.pad_width for row in self.wired] if level == self.metal.strap else []
        return max([self.metal.wire(level, RAIL_ROWS), *rails, *wires, *straps])

    def _tap_width(self, side: RingSide) -> int:
        """Return the width of the ring at ``side``; 0 where it is open."""
        return self.ring.width if side in self.taps else 0

    def _bulk_rail_sides(self) -> tuple[RingSide, ...]:
        if self.stack.bulk_rails == "both" or self._in_two_strips():
            return ("bottom", "top")
        return ("bottom",) if "bottom" in self.taps else ("top",)

    def _in_two_strips(self) -> bool:
        return self.taps == ("bottom", "top")

    def _planned_risers(self) -> Risers:
        needed, twins = self._riser_nets(), self._twins()
        plain = self._risers_of(Joined(needed))
        if not twins:
            return plain
        alike = {net for pair in twins for net in pair[:2]}
        mirrored = self._risers_of(Joined([net for net in needed if net not in alike], twins))
        wider = 2 * (mirrored.lack - plain.lack)
        return plain if wider > WIDER_FOR_TWINS * (self.right - self.left) else mirrored

    def _risers_of(self, joined: Joined) -> Risers:
        rails = [rail for row in self.wired for rail in row.all_rails()]
        may_part = self.matched and not self._palindromes()
        room = self._riser_room(self._sides(), joined.names) if joined.names else 0
        return Risers(self.metal, joined, rails, self.riser_loads, room=room, may_part=may_part)

    def _twins(self) -> list[Twins]:
        """Return the twins of which both have rails, each net once."""
        found: dict[str, Twins] = {}
        rails = [
            (rail.net, placed.area(Rectangle(0, rail.low, 0, rail.high)))
            for placed in self.rows
            for rail in placed.wired.all_rails()
        ]
        for left, right in self.stack.twins:
            nets = {left, right}
            spans = [area for net, area in rails if net in nets]
            apart = len(nets) == 2 and not nets & {self.stack.bulk_net, *found, *self.inner_risers.nets}
            if apart and nets == {net for net, _ in rails if net in nets}:
                pair = Twins(left, right, min(area.bottom for area in spans), max(area.top for area in spans))
                found |= dict.fromkeys(nets, pair)
        return list(dict.fromkeys(found.values()))

    def _plan_risers(self) -> None:
        """Plan inner risers and those at the ends, and leave out the links of nets whose rails these join.

        Inner risers may lie beyond the matched channels, over the outermost columns, where risers at the ends leave
        room.
        """
        planned = self.links
        self.links = self._plan_risers_within(planned, self._half_width(beyond=True))
        if self.risers.nets and self.inner_risers.reach > self._half_width(beyond=False) + self.risers.free:
            self.links = self._plan_risers_within(planned, self._half_width(beyond=False))

    def _plan_risers_within(self, planned: list[GateLink], half_width: int) -> list[GateLink]:
        """Plan inner risers, as far as ``half_width`` from x = 0, and those at the ends; return the links that stay.

        Which links stay is known once both are planned. Inner risers that were planned without one are planned again.
        """
        staying = {link.net for link in planned} - {net for pair in self._inner_pairs() for net in pair}
        while True:
            self.inner_risers = self._planned_inner_risers(staying, half_width)
            self.risers = self._planned_risers()
            joined = {*self.risers.nets, *self.inner_risers.nets}
            links = [link for link in planned if link.net not in joined]
            if staying.issuperset(link.net for link in links):
                return links
            staying.update(link.net for link in links)

    def _half_width(self, *, beyond: bool) -> int:
        """Return how far inner risers with their space may extend from x = 0. [dbu]

        Args:
            beyond: Whether they may lie beyond the matched channels, up to the ends of the rows. There they need the
                room of the risers at the ends.
        """
        metal, level = self.metal, self.metal.riser
        narrow = metal.space(level, 0)
        if beyond:
            return min(-self.left, self.right) + narrow
        left, right = self._matched_span()
        return min(-left, right) - metal.space(level, self._widest(level)) + narrow  # those at the ends are wide

    def _inner_pairs(self) -> list[tuple[str, str]]:
        """Return the twins that may have inner risers.

        Risers of nets with a stated current lie at the ends, where there is room for wide ones. Trunks leave no room.
        """
        bulk, loads = self.stack.bulk_net, self.loads.nets
        pairs = self.stack.twins if self.matched and not self.trunk_nets else ()
        return [pair for pair in pairs if len({*pair, bulk}) > 2 and not any(map(loads.get, pair))]

    def _planned_inner_risers(self, staying: Collection[str], half_width: int) -> InnerRisers:
        """Return the risers of twins over the columns of matched devices, beside the links of nets ``staying``."""
        metal, pairs = self.metal, self._inner_pairs()
        space = metal.space(metal.riser, self._widest(metal.riser))
        taken = [link.area.enlarged(space, space) for link in self.links if link.net in staying]
        columns = [{column.left + self.sizes.contact // 2 for column in row.plan.columns} for row in self.wired]
        around = RiserSurroundings(self._channels(), set.intersection(*columns), half_width, taken)
        return InnerRisers(metal, pairs, self._net_rails() if pairs else [], around)

    def _net_rails(self) -> list[NetRail]:
        """Return the rails of all rows, those that rows share once."""
        found: dict[tuple[str, int, int, int], NetRail] = {}
        for placed in self.rows:
            for rail in placed.wired.all_rails():
                area = placed.area(Rectangle(0, rail.low, 0, rail.high))
                for end in placed.wired.rail_contacts(rail):
                    beside = rail in placed.wired.rails and placed.wired.lies_beside(rail.net)
                    made = NetRail(rail.net, rail.level, area.bottom, area.top, end.span, end.columns, beside)
                    same = found.setdefault(made[:4], made)
                    left, right = zip(same.contacts, made.contacts, strict=True)
                    found[made[:4]] = same._replace(contacts=(min(left), max(right)))
        return list(found.values())

    def _channels(self) -> list[Channel]:
        """Return the channels that are no dummies."""
        return [
            Channel(s.finger.device, placed.area(Rectangle(s.left, s.bottom, s.right, s.top)))
            for placed in self.rows
            for s in placed.wired.plan.stripes
            if s.finger.device
        ]

    def _riser_nets(self) -> list[str]:
        """Return the nets that need a riser, outermost first: that with the lowest rail, whatever the nets' names are.

        So two groups that are images of each other are drawn alike. Beside the rows the ring joins the bulk's rails,
        unless they carry a stated current.
        """
        own = {
            (rail.net, rail.level, placed.area(Rectangle(0, rail.low, 0, rail.high)))
            for placed in self.rows
            for rail in placed.wired.all_rails()
        }
        counts = Counter(net for net, _, _ in own)
        counts.subtract(net for net, _ in {(link.net, link.rails) for link in self.links})
        for net in self.inner_risers.nets:
            del counts[net]
        for net in self.trunk_nets:
            del counts[net]
        bulk = self.stack.bulk_net
        over = [rail for placed in self.rows for rail in placed.wired.rails if rail.net == bulk]
        if self.posts and not over:  # posts join gate rails, but carry no current of sources and drains
            del counts[bulk]
        carried = not self.loads.nets.get(bulk) or bulk in self.trunk_nets
        if ("left" in self.taps or "right" in self.taps) and carried:
            del counts[bulk]
        elif self.taps and (counts[bulk] or self._in_two_strips()):
            counts[bulk] += 1 + self._in_two_strips()
        heights = {net: bottom for bottom, net in sorted(((area.bottom, net) for net, _, area in own), reverse=True)}
        return sorted((net for net, count in counts.items() if count > 1), key=lambda net: (heights.get(net, 0), net))

    def _riser_room(self, sides: dict[RingSide, int], nets: Collection[str]) -> int:
        """Return the room for risers of ``nets`` at each end: outside matched channels, or half of the rows. [dbu]

        Links between gate rails are in the way of risers on their conductor, and of pads down to rails below it; the
        risers replace those of their own nets.
        """
        links = [link for link in self.links if link.net not in nets]
        beyond = min(sides["left"] + self._tap_width("left"), sides["right"] + self._tap_width("right"))
        space = self.metal.space(self.metal.riser, self._widest(self.metal.riser))
        half = self.metal.even(space) // 2
        edges = [(-half, half)]
        if self.matched:
            edges = [self._matched_span()]
        width, height = self.metal.wire(self.metal.riser), self.metal.wire(1)
        pad = self.metal.pad(LEVEL, Rectangle(0, 0, width, height), Rectangle(-height * 10, 0, height * 10, height))
        beside = max(space, self.metal.space(LEVEL, self._widest(LEVEL)) + pad.right - width)
        below = [rail for row in self.wired for rail in row.all_rails() if rail.net in nets and rail.level < LEVEL]
        if self.metal.riser == LEVEL or below:
            edges += [(link.area.left - beside, link.area.right + beside) for link in links]
        return min(*(left - self.left for left, _ in edges), *(self.right - right for _, right in edges)) + beyond

    def _trunk_nets(self) -> list[str]:
        """Return the nets that have trunks, that of the lowest bar first.

        The bar of the bulk net is the lowest one in NMOS modules and the highest one in PMOS modules, as supplies are.
        """
        found = sorted(heavy_nets(self.metal, self.loads.nets), key=lambda net: net != self.stack.bulk_net)
        return found if self.stack.device.type == "nmos" else found[::-1]

    def _planned_trunks(self) -> Trunks:
        """Return the trunks between the risers at the ends; each rail of a single row lies below the bar of its net."""
        if not self.trunk_nets:
            return Trunks()
        metal, (left, right) = self.metal, self.risers.reach(self.ends)
        space = metal.space(metal.riser, self._widest(metal.riser)) if self.risers.nets else 0
        room = Rectangle(left + space, self.inner.bottom, right - space, self.inner.top)
        nets = self.trunk_nets
        if len(self.rows) == 1:
            nets = [net for _, net in sorted((rail.low, rail.net) for rail in self.wired[0].rails) if net in nets]
        rails = [rail for rail, _ in self._trunk_rails()]
        return plan_trunks(metal, {net: self.loads.nets[net] for net in nets}, room, rails)

    def _rows_below_straps(self) -> dict[str, int]:
        """Return the rows of cuts that the rails of each net with trunks need."""
        found = dict(self.loads.trunks)
        for (net, _, area), current in self._trunk_rails():
            found[net] = max(found[net], self.trunks.rows_of_cuts(self.metal, net, area, current))
        return found

    def _trunk_rails(self) -> list[tuple[DrawnRail, float]]:
        """Return the rails of nets with trunks, each with the current of its row. [mA]"""
        return [
            (
                (rail.net, rail.level, placed.area(Rectangle(row.plan.left, rail.low, row.plan.right, rail.high))),
                current,
            )
            for placed in self.rows
            for row in (placed.wired,)
            for rail in row.rails
            for current in (row.current_of(rail.net),)
            if rail.net in self.trunk_nets
        ]

    def _palindromes(self) -> bool:
        """Return whether every row is its own mirror image."""
        return all(is_palindrome(row) for row in self.stack.rows)

    def _sides(self) -> dict[RingSide, int]:
        """Return the distance from the rows to the inner edge of the ring at left and right, risers apart. [dbu]"""
        needs, found = self._ring_needs(), {}
        sides: tuple[RingSide, RingSide] = ("left", "right")
        for side in sides:
            edge = inner_edge(self.taps, side, self.ring, self.sizes, rail=False)
            if self._tap_width(side):
                edge["rail"] = self._pad_over_ring()
            reach = 0
            for placed in self.rows:
                plan = placed.wired.plan
                inset = plan.left - self.left if side == "left" else self.right - plan.right
                reach = max(reach, _clearance(placed.wired.beside(right=side == "right"), edge, needs) - inset)
            found[side] = self.tech.snap_up(reach)
        if self._tap_width("left") == self._tap_width("right"):
            found = dict.fromkeys(sides, max(found.values()))
        return found

    def _pad_over_ring(self) -> int:
        """Return how far pads on the second conductor extend from the ring towards the rows. [dbu]

        They join rails of the bulk net above that conductor to the ring.
        """
        metal, bulk = self.metal, self.stack.bulk_net
        rails = [rail for placed in self.rows for rail in placed.wired.rails if rail.net == bulk]
        crossings = [Rectangle(0, 0, self.ring.width, rail.high - rail.low) for rail in rails if rail.level > 1]
        pads = [metal.pad(1, crossing, crossing._replace(right=crossing.right * 10)) for crossing in crossings]
        return max((pad.right - self.ring.width for pad in pads), default=-self.ring.width)

    def _ring_needs(self) -> dict[tuple[str, str], int]:
        sizes, ring, metal = self.sizes, self.ring, self.metal
        needs = {
            ("active", "tap"): ring.active_space,
            ("implant", "tap_implant"): 0,
            ("implant", "tap"): ring.implant_to_active,
            ("active", "tap_implant"): ring.implant_to_active,
            ("channel", "tap_implant"): ring.implant_to_channel,
            ("flavour", "tap_implant"): 0,
            ("poly", "tap"): ring.poly_space,
            ("gate_contact", "tap"): ring.gate_contact_space,
            ("gate_contact", "tap_contact"): sizes.contact_space,
            ("marker", "tap_contact"): sizes.marker_to_contact,
            ("strip", "strip"): max(ring.strip_space, metal.space(0, self._widest(0))),
            ("active", "end"): 0,
            ("poly", "end"): self.tech.dim("cover_enclosure", self.stack.device) if self.stack.device.covers else 0,
        }
        for level in range(metal.riser):
            # Rails end at an open side, beyond the cuts of the wires that they cross there.
            needs[level_name(level), "end"] = metal.cuts[level].enclose_above_end
            if level:
                needs[level_name(level), "tap"] = 0
                needs[(level_name(level),) * 2] = metal.space(level, self._widest(level))
        return needs

    def _ring_inside(self) -> Rectangle:
        """Return the inner edge of the tap ring."""
        needs = self._ring_needs()
        edge: dict[RingSide, dict[str, int]] = {
            side: inner_edge(self.taps, side, self.ring, self.sizes, rail=side in self._bulk_rail_sides())
            for side in SIDES
        }
        if self.stack.bulk_net in self.risers.nets:  # it reaches the ring's rail by pads
            for side in edge.values():
                if "rail" in side:
                    beyond = self.sizes.rail // 2 - side["rail"]
                    side |= {
                        level_name(level): self.metal.wire(level) // 2 - beyond + self.sizes.grid
                        for level in range(2, self.metal.riser)
                    }
        bottom, top = self.rows[0], self.rows[-1]
        below = _clearance(bottom.wired.reach(_lower(self.stack.rows[0])), edge["bottom"], needs)
        above = _clearance(top.wired.reach(_upper(self.stack.rows[-1])), edge["top"], needs)
        below, above = self.tech.snap_up(below), self.tech.snap_up(above)
        if (top.top + above + below) % (2 * self.sizes.grid):
            above += self.sizes.grid
        sides = self._sides()
        if self.risers.nets:
            grow = self.tech.snap_up(self.risers.lack)
            sides = {side: distance + grow for side, distance in sides.items()}
        return Rectangle(self.left - sides["left"], bottom.bottom - below, self.right + sides["right"], top.top + above)

    def _gate_links(self) -> list[GateLink]:
        """Return the wires that join the gate rails of two rows that face each other without sharing them.

        There are none where trunks need the room. Risers at the ends join the rails then.
        """
        found: list[GateLink] = []
        if self.trunk_nets and self.metal.riser == LEVEL:
            return found
        for shared, (lower, upper) in zip(self.shared, pairwise(self.rows), strict=True):
            if not shared and not lower.flipped and upper.flipped:
                rails = [
                    [
                        (rail.net, placed.area(Rectangle(self.left, rail.low, self.right, rail.high)))
                        for rail in placed.wired.gate_rails
                    ]
                    for placed in (lower, upper)
                ]
                found += gate_links(rails[0], rails[1], min(self.right, -self.left), self.metal)
        return found

    def _tie_rails(self) -> list[tuple[int, int]]:
        """Return the bottom and top of the bulk rail that joins the posts at the ends of rows without taps.

        There is none if the rows have a rail on the bulk net: the posts or the dummies' columns below reach that one.
        """
        bulk, metal = self.stack.bulk_net, self.metal
        if not self.posts or any(rail.net == bulk for placed in self.rows for rail in placed.wired.all_rails()):
            return []
        height, levels = metal.wire(1), range(1, metal.riser)
        beyond = (height - metal.wire(0)) // (2 * metal.grid) * metal.grid  # first conductor below the rail
        edge = {"strip": -beyond} | {level_name(level): 0 for level in levels}  # risers may reach it by pads
        needs = {(level_name(level),) * 2: metal.space(level, self._widest(level)) for level in (0, *levels)}
        bottom, top = self.rows[0], self.rows[-1]
        below = _clearance(bottom.wired.reach(_lower(self.stack.rows[0])), edge, needs)
        above = _clearance(top.wired.reach(_upper(self.stack.rows[-1])), edge, needs)
        low, high = bottom.bottom - self.tech.snap_up(below), top.top + self.tech.snap_up(above)
        found = [(low - height, low), (high, high + height)]
        return found[:1] if below <= above else found[1:]

    def _check_tap_distance(self) -> None:
        if not self.taps:
            return
        limit = self.ring.max_distance
        for placed in self.rows:
            plan = placed.wired.plan
            distance = tap_distance(
                placed.area(Rectangle(plan.left, 0, plan.right, plan.height)), self.inner, self.taps
            )
            if distance > limit:
                tall = self.tech.to_um(max(s.top - s.bottom for s in plan.stripes))
                closed = "" if len(self.taps) == len(SIDES) else " or close a side of the ring"
                raise FarFromTapsError(
                    f"a finger of {tall:g} um puts diffusion {self.tech.to_um(distance):g} um from the nearest tap; "
                    f"{self.tech.to_um(limit):g} um are allowed. "
                    f"Use more fingers (nf), so that each is narrower{closed}",
                    details={"finger_width_um": tall, "max_tap_distance_um": self.tech.to_um(limit)},
                )

    # ---- shapes

    def _draw_covers(self) -> None:
        """Draw implants and markers over the diffusions; rows foot to foot have them in common."""
        stack, areas = self.stack, []
        for placed, row in zip(self.rows, stack.rows, strict=True):
            plan, reach = placed.wired.plan, placed.wired.implant_reach()
            area = placed.area(Rectangle(plan.left, 0, plan.right, plan.height))
            areas.append((area, reach, row))
        for area, reach, _ in areas:
            for layer, cover in row_covers(area, reach, self.sizes, stack.device):
                self.sketch.box(layer, cover)
        for (lower, _, lower_row), (upper, _, upper_row) in pairwise(areas):
            if (_upper(lower_row), _lower(upper_row)) == ("foot", "foot"):
                for layer, cover in row_covers(hull((lower, upper)), self.sizes.implant, self.sizes, stack.device):
                    self.sketch.box(layer, cover)

    def _draw_common_markers(self) -> None:
        """Draw one marker over the gate contacts of two rows that share gate rails."""
        layer = self.tech.role("poly_contact_marker")
        for shared, (lower, upper) in zip(self.shared, pairwise(self.rows), strict=True):
            if shared and layer is not None:
                markers = [placed.area(area) for placed in (lower, upper) for area in placed.wired.markers()]
                self.sketch.box(layer, hull(markers))

    def _draw_row(self, placed: _PlacedRow) -> None:
        wired, sketch = placed.wired, self.sketch
        for kind, area in wired.shapes():
            layer: str | None = kind
            if kind == "marker":
                layer = self.tech.role("poly_contact_marker")
            elif kind in {"block", "source"}:
                layer = self.stack.device.block if kind == "block" else self.stack.device.source_marker
            elif kind == "active" and self.stack.device.drain_marker:
                layer = None
            if layer:
                sketch.box(layer, placed.area(area))
        if self.stack.device.drain_marker:
            self._draw_drains(placed)
        for at_left, bar in wired.tie_bars():
            if self.posts:
                sketch.box(self.metal.layer(0), placed.area(bar))
                continue
            left, right = (self.ends[0], bar.right) if at_left else (bar.left, self.ends[1])
            sketch.box(self.metal.layer(0), placed.area(Rectangle(left, bar.bottom, right, bar.top)))
        for rail in wired.rails:
            self._draw_rail(placed, rail, over_channels=True)
        for rail in wired.gate_rails:
            self._draw_rail(placed, rail, over_channels=False)

    def _draw_drains(self, placed: _PlacedRow) -> None:
        """Draw the sources of transistors with extended drains, and these."""
        device, sketch = self.stack.device, self.sketch
        for each in extended_drains(placed.wired.plan, device, self.sizes):
            source, drain, well = map(placed.area, each)
            sketch.box("active", source)
            sketch.box(device.drain_marker, hull((source, drain)))
            sketch.polygon("tap", bevelled(drain, device.dimensions["drain_bevel"]))
            shape = bevelled(well, device.dimensions["drain_well_bevel"])
            if device.well:
                sketch.cut(device.well, shape)
            else:
                sketch.polygon("nwell", shape)

    def _draw_rail(self, placed: _PlacedRow, rail: Rail, *, over_channels: bool) -> None:
        area = placed.area(Rectangle(self.ends[0], rail.low, self.ends[1], rail.high))
        span = self.inner_risers.span(rail.net, area.bottom, area.top)
        if span is not None:
            area = area._replace(left=span[0], right=span[1])
        self.sketch.box(self.metal.layer(rail.level), area)
        self.rails.append((rail.net, rail.level, area))
        if span is not None:
            return
        if rail.net == self.stack.bulk_net:
            for side, beside in frame(self.inner, self.ring.width, self.taps).items():
                if side in {"left", "right"}:
                    for layer, shape in self.metal.stack_between(0, beside, rail.level, area, crowded=True):
                        self.sketch.box(layer, shape)
        if over_channels and rail.net in self.trunks.nets:
            return  # wires start at its bar
        share = self._share(placed, rail.net) if over_channels else 0.0
        if not (over_channels and self.matched):
            self.pins.append((rail.net, rail.level, area))
            self.shares[self.pins[-1]] = share
            return
        left, right = self._matched_span()
        for part in (area._replace(right=left), area._replace(left=right)):
            self.pins.append((rail.net, rail.level, part))
            self.shares[self.pins[-1]] = share / 2

    def _share(self, placed: _PlacedRow, net: str) -> float:
        """Return the part of the current between a net and the devices that passes the fingers of one row."""
        whole = sum(each.wired.current_of(net) for each in self.rows)
        return placed.wired.current_of(net) / whole if whole else 0.0

    def _matched_span(self) -> tuple[int, int]:
        """Return the left and right end of all channels that are no dummies."""
        channels = [s for placed in self.rows for s in placed.wired.plan.stripes if s.finger.device]
        return min(s.left for s in channels), max(s.right for s in channels)

    def _draw_ring(self) -> None:
        taps = TapRing(self.inner, self.taps, self._bulk_rail_sides())
        for net, area in draw_tap_ring(self.sketch, self.tech, self.stack.device, taps, self.stack.bulk_net):
            self.rails.append((net, 1, area))
            self.pins.append((net, 1, area))

    def _draw_end_ties(self) -> None:
        if not self.posts:
            return
        rails = [Rectangle(self.ends[0], low, self.ends[1], high) for low, high in self.tie_rails]
        for rail in rails:
            self.sketch.box(self.metal.layer(1), rail)
            self.rails.append((self.stack.bulk_net, 1, rail))
            self.pins.append((self.stack.bulk_net, 1, rail))
        rows = []
        for placed in self.rows:
            columns, pads = (
                (placed.area(left), placed.area(right))
                for left, right in (placed.wired.tied_end_columns(), placed.wired.tied_end_pads())
            )
            bars = {at_left: placed.area(bar) for at_left, bar in placed.wired.tie_bars()}
            gates = [
                placed.area(Rectangle(self.ends[0], rail.low, self.ends[1], rail.high))
                for rail in placed.wired.gate_rails
                if rail.net == self.stack.bulk_net
            ]
            rows.append(TiedRow(columns, pads, (bars[True], bars[False]), tuple(gates)))
        for layer, area in tie_shapes(rows, rails, self.metal):
            self.sketch.box(layer, area)

    def _draw_texts(self) -> None:
        for net, level, area in dict.fromkeys(self.pins):
            conductor = self.tech.conductors[level]
            if conductor.pin_layer:
                self.sketch.box(conductor.pin_layer, area)
            if self.stack.labels:
                x, y = (area.left + area.right) // 2, (area.bottom + area.top) // 2
                self.sketch.text(conductor.label_layer, net, x, y)
        layer = self.tech.role("device_text")
        for placed in self.rows:
            for stripe in placed.wired.plan.stripes:
                name = stripe.finger.device or stripe.finger.unit
                if layer and name:
                    x, y = (stripe.left + stripe.right) // 2, placed.y((stripe.bottom + stripe.top) // 2)
                    self.sketch.text(layer, name, x, y)

    def _keepouts(self) -> Iterator[tuple[str, Rectangle]]:
        """Yield the conductors and cuts that no wire may use over matched channels, with the area.

        Wires may lie on the risers between the channels, and on trunks, which cover all of them.
        """
        if not self.matched:
            return
        tech, above = self.tech, 5 if not self.trunks.bars else self.metal.riser + 1
        layers = [conductor.name for conductor in tech.conductors[1:above]]
        layers += [cut.name for cut in tech.cuts[1 : above - 1]]
        risers = {tech.conductors[self.metal.riser].name: [area for _, area in self.inner_risers.risers()]}
        for placed in self.rows:
            channels = [
                placed.area(Rectangle(s.left, s.bottom, s.right, s.top))
                for s in placed.wired.plan.stripes
                if s.finger.device
            ]
            if channels:
                for layer in layers:
                    yield from ((layer, area) for area in parts_beside(hull(channels), risers.get(layer, [])))

    # ---- the module

    def _described(
        self,
        layout: kdb.Layout,
        cell: kdb.Cell,
        moved: Callable[[Rectangle], kdb.Box],
        extent: Rectangle,
        *,
        symmetric: bool,
    ) -> Module:
        gates = []
        orientations: dict[tuple[str, str], str] = {}
        for placed in self.rows:
            for stripe in placed.wired.plan.stripes:
                finger = stripe.finger
                channel = placed.area(Rectangle(stripe.left, stripe.bottom, stripe.right, stripe.top))
                gates.append(Gate(finger.device, finger.unit, moved(channel)))
                if finger.device:
                    orientations.setdefault((finger.unit, finger.device), finger.orientation)
        instances = []
        for (unit, device), orientation in orientations.items():
            x, y = channel_centre([gate.box for gate in gates if (gate.unit, gate.device) == (unit, device)])
            instances.append(Instance(unit, device, x, y, orientation))
        pins = sorted(dict.fromkeys(self.pins), key=lambda pin: (pin[2].bottom, pin[2].left, pin[0]))
        return Module(
            name=self.stack.name,
            cell=cell,
            layout=layout,
            pins=tuple(
                Pin(net, self.tech.conductors[level].name, moved(area), self.shares.get((net, level, area), 0.0))
                for net, level, area in pins
            ),
            devices=tuple(dict.fromkeys(device for _, device in orientations)),
            instances=tuple(instances),
            symmetry_axis_x=(extent.right - extent.left) // 2 if symmetric else None,
            bbox=moved(extent),
            gates=tuple(gates),
            mirrored_in_y=self.sketch.is_mirror_image_of_itself(upside_down=True),
            keepouts=tuple(Keepout(layer, moved(area)) for layer, area in self._keepouts()),
        )


def _loads(stack: RowStack) -> Loads:
    """Return the currents of the nets and fingers of a module. [mA]"""
    counts = Counter(finger.device for row in stack.rows for finger in row.fingers)
    fingers = {device: current * 1e3 / counts[device] for device, current in stack.currents.items() if current}
    nets: dict[str, float] = {}
    ends = {(net, f.device) for row in stack.rows for f in row.fingers for net in (f.left, f.right) if f.device}
    for net, device in sorted(ends):
        nets[net] = nets.get(net, 0.0) + stack.currents.get(device, 0.0) * 1e3
    return Loads(nets, fingers)


def _lower(row: Row) -> Side:
    return "head" if row.flipped else "foot"


def _upper(row: Row) -> Side:
    return "foot" if row.flipped else "head"


def _clearance(a: dict[str, int], b: dict[str, int], needs: dict[tuple[str, str], int]) -> int:
    """Return the minimum distance between two edges beyond which shapes extend by ``a`` and ``b``."""
    distances = [0]
    for (one, other), space in needs.items():
        for x, y in ((a, b), (b, a)):
            if one in x and other in y:
                distances.append(x[one] + y[other] + space)
    return max(distances)
