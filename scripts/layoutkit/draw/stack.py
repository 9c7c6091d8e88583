"""Draw rows above each other inside one tap ring, and connect the pieces of every net in the module.

    +--------------------------------+   tap ring
    |  .--[ gate rails, row 2 ]---.  |
    |  |   row 2                  |  |   risers (third conductor) at both ends join the rails of one net
    |  |--[ source/drain rails ]--|  |
    |  |--[ gate rails, row 1 ]---|  |
    |  |   row 1                  |  |
    |  '--[ source/drain rails ]--'  |
    +----------[ bulk rail ]---------+

Strips of the bulk net on a side that faces the ring extend to the ring and need no rail.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from layoutkit.draw.module import Gate, Instance, Module, Pin, channel_centre
from layoutkit.draw.ring import (
    FULL_RING,
    SIDES,
    RingSide,
    RingStyle,
    TapRing,
    draw_outer_ring,
    draw_tap_ring,
    inner_edge,
    module_covers,
    ring_sizes,
    row_covers,
    tap_distance,
)
from layoutkit.draw.row import Row, plan_row
from layoutkit.draw.sizes import row_sizes
from layoutkit.draw.sketch import Area, Sketch
from layoutkit.draw.wires import Side, WiredRow
from layoutkit.errors import GeometryError
from layoutkit.layout.cells import fresh_cell

if TYPE_CHECKING:
    import klayout.db as kdb

    from layoutkit.technology import DeviceSpec, Technology

BulkRails = Literal["bottom", "both"]


@dataclass(frozen=True)
class RowStack:
    """The rows of a module and how to draw them.

    Attributes:
        name: Name of the cell.
        device: Flavour of all fingers.
        bulk_net: Net of the tap ring.
        rows: Bottom row first.
        labels: Whether pins carry their net's name on the label layers.
        bulk_rails: Sides of the ring that have a rail: ``bottom``, or ``both`` bottom and top.
        gap: Minimum distance between the diffusions of adjacent rows. [dbu]
        ring: Which taps surround the rows.
    """

    name: str
    device: DeviceSpec
    bulk_net: str
    rows: tuple[Row, ...]
    labels: bool = True
    bulk_rails: BulkRails = "bottom"
    gap: int = 0
    ring: RingStyle = FULL_RING


def draw_row_module(layout: kdb.Layout, tech: Technology, stack: RowStack) -> Module:
    """Draw ``stack`` into its own cell of ``layout`` and return the module; an old cell of that name is replaced.

    Raises:
        GeometryError: If there is no row, or part of a diffusion would lie too far from the tap ring.
        TechnologyError: If the technology lacks a layer or dimension.
        LayoutkitError: If GDSII cannot hold the name.
    """
    return _Drawing(tech, stack).module(layout)


class _PlacedRow:
    """A wired row at its position, which converts the row's coordinates to the module's."""

    def __init__(self, wired: WiredRow, flipped: bool, bottom: int) -> None:
        self.wired = wired
        self.flipped = flipped
        self.bottom = bottom
        self.top = bottom + wired.plan.height

    def y(self, own: int) -> int:
        return self.top - own if self.flipped else self.bottom + own

    def area(self, own: Area) -> Area:
        bottom, top = sorted((self.y(own.bottom), self.y(own.top)))
        return Area(own.left, bottom, own.right, top)


class _Drawing:
    def __init__(self, tech: Technology, stack: RowStack) -> None:
        if not stack.rows:
            raise GeometryError(f"module {stack.name} needs at least one row")
        self.tech = tech
        self.stack = stack
        self.sizes = row_sizes(tech, stack.device)
        self.ring = ring_sizes(tech, stack.device, self.sizes)
        self.taps = stack.ring.sides
        self.sketch = Sketch()
        self.pins: list[tuple[str, Area]] = []
        first, last = stack.rows[0], stack.rows[-1]
        wired = []
        for row in stack.rows:
            ringed: set[Side] = set()
            if row is first and "bottom" in self.taps:
                ringed.add(_lower(row))
            if row is last and "top" in self.taps:
                ringed.add(_upper(row))
            wired.append(WiredRow(plan_row(row, self.sizes), self.sizes, frozenset(ringed), stack.bulk_net))
        self.left = min(row.plan.left for row in wired)
        self.right = max(row.plan.right for row in wired)
        self.rows = self._stacked(wired)
        self.risers = self._riser_slots()
        self.rail_left, self.rail_right = self._rail_ends()
        self.inner = self._ring_inside()
        self._check_tap_distance()

    def module(self, layout: kdb.Layout) -> Module:
        stack, tech, sketch = self.stack, self.tech, self.sketch
        for placed in self.rows:
            self._draw_row(placed)
        self._draw_ring()
        self._draw_risers()
        if self.taps:
            for layer, area in module_covers(self.inner, self.ring, tech, stack.device, self.taps):
                sketch.box(layer, area)
        if stack.ring.kind == "double":
            self.pins += draw_outer_ring(sketch, tech, stack.device, stack.ring, stack.bulk_net)
        self._draw_texts()
        extent = sketch.extent()
        symmetric = sketch.is_mirror_image_of_itself() and (extent.left + extent.right) % (2 * self.sizes.grid) == 0
        cell = fresh_cell(layout, stack.name)
        sketch.write(cell, tech, -extent.left, -extent.bottom)
        return self._described(layout, cell, extent, symmetric=symmetric)

    # ---- positions

    def _stacked(self, wired: list[WiredRow]) -> list[_PlacedRow]:
        sizes = self.sizes
        needs = {
            ("active", "active"): max(sizes.active_space, self.stack.gap),
            ("implant", "implant"): sizes.implant_space,
            ("flavour", "flavour"): sizes.flavour_space,
            ("poly", "poly"): sizes.gate_space,
            ("poly", "active"): sizes.poly_to_active,
            ("gate_contact", "active"): sizes.gate_contact_to_active,
            ("marker", "marker"): sizes.marker_space,
            ("marker", "active_contact"): sizes.marker_to_contact,
            ("strip", "strip"): sizes.strip_space,
            ("rail", "rail"): sizes.rail_space,
        }
        placed = [_PlacedRow(wired[0], self.stack.rows[0].flipped, 0)]
        pairs = list(pairwise(zip(self.stack.rows, wired, strict=True)))
        # The same distance for all rows, so that the rows of an odd stack are symmetric about the middle row.
        distance = max(
            (
                _clearance(lower.reach(_upper(lower_row)), upper.reach(_lower(upper_row)), needs)
                for (lower_row, lower), (upper_row, upper) in pairs
            ),
            default=0,
        )
        distance = self.tech.snap_up(distance)
        for _, (upper_row, upper) in pairs:
            placed.append(_PlacedRow(upper, upper_row.flipped, placed[-1].top + distance))
        return placed

    def _riser_slots(self) -> list[str]:
        """Return the nets that need a riser, innermost first."""
        counts: dict[str, int] = {}
        for placed in self.rows:
            for rails in placed.wired.rails.values():
                for net in rails:
                    counts[net] = counts.get(net, 0) + 1
        if self.taps and (self.stack.bulk_net in counts or self._in_two_strips()):
            # and the rails on the ring; two strips have no other connection
            counts[self.stack.bulk_net] = counts.get(self.stack.bulk_net, 0) + 1 + self._in_two_strips()
        return sorted(net for net, count in counts.items() if count > 1)

    def _riser(self, slot: int) -> tuple[int, int]:
        """Return the left edges of the left and right riser of ``slot``."""
        offset = slot * (self.sizes.riser + self.sizes.riser_space)
        return self.left - offset - self.sizes.riser, self.right + offset

    def _rail_ends(self) -> tuple[int, int]:
        """Return the left and right end of every rail, beyond its cuts and long enough for the minimum area."""
        sizes = self.sizes
        offset = (sizes.strip - sizes.cut) // 2
        lefts = [s.left + offset for p in self.rows for strips in p.wired.strips.values() for s in strips]
        reach = max(self.right, max(lefts) + sizes.cut + sizes.cut_rail_end)
        reach_left = min(self.left, min(lefts) - sizes.cut_rail_end)
        if self.risers:
            left, right = self._riser(len(self.risers) - 1)
            offset = (sizes.riser - sizes.via) // 2
            reach = max(reach, right + offset + sizes.via + sizes.via_rail_end)
            reach_left = min(reach_left, left + offset - sizes.via_rail_end)
        lack = -(-sizes.rail_area // sizes.rail) - (reach - reach_left)
        if lack > 0:
            grow = -(-lack // (2 * sizes.grid)) * sizes.grid
            reach, reach_left = reach + grow, reach_left - grow
        return reach_left, reach

    def _ring_inside(self) -> Area:
        """Return the inner edge of the tap ring."""
        sizes, ring = self.sizes, self.ring
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
            ("strip", "strip"): ring.strip_space,
            ("rail", "rail"): sizes.rail_space,
            ("active", "end"): 0,
            ("poly", "end"): 0,
            ("strip", "end"): 0,
        }
        edge: dict[RingSide, dict[str, int]] = {
            side: inner_edge(self.taps, side, ring, sizes, rail=side in self._bulk_rail_sides()) for side in SIDES
        }
        bottom, top = self.rows[0], self.rows[-1]
        below = _clearance(bottom.wired.reach(_lower(self.stack.rows[0])), edge["bottom"], needs)
        above = _clearance(top.wired.reach(_upper(self.stack.rows[-1])), edge["top"], needs)
        below, above = self.tech.snap_up(below), self.tech.snap_up(above)
        if (top.top + above + below) % (2 * sizes.grid):
            above += sizes.grid
        left = right = 0
        for placed in self.rows:
            plan, implant = placed.wired.plan, placed.wired.implant_reach()
            pads = (sizes.strip - sizes.contact) // 2 - sizes.active_side
            markers = max(sizes.marker, sizes.head_side)
            first = plan.left - min(placed.wired.head_box(s).left for s in plan.stripes) + markers
            channel = plan.left - min(stripe.left for stripe in plan.stripes)
            reach = {"active": 0, "implant": implant, "strip": pads, "marker": first, "poly": first, "channel": channel}
            left = max(left, _clearance(reach, edge["left"], needs) + self.left - plan.left)
            right = max(right, _clearance(reach, edge["right"], needs) + plan.right - self.right)
        widths = [ring.width if side in self.taps else 0 for side in ("left", "right")]
        left = max(left, self.left - self.rail_left - widths[0])
        right = max(right, self.rail_right - self.right - widths[1])
        if widths[0] == widths[1]:
            left = right = max(left, right)
        left, right = self.tech.snap_up(left), self.tech.snap_up(right)
        return Area(self.left - left, bottom.bottom - below, self.right + right, top.top + above)

    def _bulk_rail_sides(self) -> tuple[RingSide, ...]:
        if self.stack.bulk_rails == "both" or self._in_two_strips():
            return ("bottom", "top")
        return ("bottom",) if "bottom" in self.taps else ("top",)

    def _in_two_strips(self) -> bool:
        return self.taps == ("bottom", "top")

    def _check_tap_distance(self) -> None:
        if not self.taps:
            return
        limit = self.ring.max_distance
        for placed in self.rows:
            plan = placed.wired.plan
            distance = tap_distance(placed.area(Area(plan.left, 0, plan.right, plan.height)), self.inner, self.taps)
            if distance > limit:
                tall = self.tech.to_um(max(s.top - s.bottom for s in plan.stripes))
                closed = "" if len(self.taps) == len(SIDES) else " or close a side of the ring"
                raise GeometryError(
                    f"a finger of {tall:g} um puts diffusion {self.tech.to_um(distance):g} um from the nearest tap; "
                    f"{self.tech.to_um(limit):g} um are allowed. "
                    f"Use more fingers (nf), so that each is narrower{closed}",
                    details={"finger_width_um": tall, "max_tap_distance_um": self.tech.to_um(limit)},
                )

    # ---- shapes

    def _draw_row(self, placed: _PlacedRow) -> None:
        stack, tech, wired, plan = self.stack, self.tech, placed.wired, placed.wired.plan
        layers = {"strip": tech.conductors[0].layer, "contact": tech.contact.layer}
        for kind, area in wired.shapes():
            layer = layers.get(kind, kind)
            if kind == "marker":
                marker = tech.role("poly_contact_marker")
                if marker is None:
                    continue
                layer = marker
            self.sketch.box(layer, placed.area(area))
        row_area = placed.area(Area(plan.left, 0, plan.right, plan.height))
        for layer, area in row_covers(row_area, wired.implant_reach(), self.sizes, stack.device):
            self.sketch.box(layer, area)
        sides: tuple[Side, ...] = ("foot", "head")
        for side in sides:
            self._draw_strips(placed, side)
            for net, low in wired.rails[side].items():
                self._draw_rail(net, placed.area(Area(self.rail_left, low, self.rail_right, low + self.sizes.rail)))

    def _draw_strips(self, placed: _PlacedRow, side: Side) -> None:
        sizes, wired, sketch = self.sizes, placed.wired, self.sketch
        strip_layer, cut = self.tech.conductors[0].layer, self.tech.cuts[0]
        lower_side = side == ("head" if placed.flipped else "foot")
        outside = self.inner.bottom - self.ring.width if lower_side else self.inner.top + self.ring.width
        for strip in wired.strips[side]:
            if wired.to_ring(side, strip.net):
                bottom, top = sorted((placed.y(strip.start), outside))
                sketch.box(strip_layer, Area(strip.pad[0], bottom, strip.pad[1], top))
                continue
            low, high = sorted((strip.start, wired.strip_end(side, strip)))
            sketch.box(strip_layer, placed.area(Area(strip.left, low, strip.left + sizes.strip, high)))
            low = wired.rails[side][strip.net] + (sizes.rail - sizes.cut) // 2
            left = strip.left + (sizes.strip - sizes.cut) // 2
            sketch.box(cut.layer, placed.area(Area(left, low, left + sizes.cut, low + sizes.cut)))

    def _draw_rail(self, net: str, area: Area) -> None:
        self.sketch.box(self.tech.conductors[1].layer, area)
        self.pins.append((net, area))

    def _draw_ring(self) -> None:
        taps = TapRing(self.inner, self.taps, self._bulk_rail_sides())
        self.pins += draw_tap_ring(self.sketch, self.tech, self.stack.device, taps, self.stack.bulk_net)

    def _draw_risers(self) -> None:
        sizes, tech, sketch = self.sizes, self.tech, self.sketch
        rail_offset, riser_offset = (sizes.rail - sizes.via) // 2, (sizes.riser - sizes.via) // 2
        for slot, net in enumerate(self.risers):
            lows = sorted(area.bottom + rail_offset for pin_net, area in self.pins if pin_net == net)
            bottom, top = lows[0] - sizes.via_riser_end, lows[-1] + sizes.via + sizes.via_riser_end
            lack = -(-sizes.riser_area // sizes.riser) - (top - bottom)
            grow = max(0, -(-lack // (2 * sizes.grid)) * sizes.grid)
            for left in self._riser(slot):
                sketch.box(tech.conductors[2].layer, Area(left, bottom - grow, left + sizes.riser, top + grow))
                for low in lows:
                    x = left + riser_offset
                    sketch.box(tech.cuts[1].layer, Area(x, low, x + sizes.via, low + sizes.via))

    def _draw_texts(self) -> None:
        rail = self.tech.conductors[1]
        for net, area in self.pins:
            if rail.pin_layer:
                self.sketch.box(rail.pin_layer, area)
            if self.stack.labels:
                x, y = (area.left + area.right) // 2, (area.bottom + area.top) // 2
                self.sketch.text(rail.label_layer, net, x, y)
        layer = self.tech.role("device_text")
        for placed in self.rows:
            for stripe in placed.wired.plan.stripes:
                if layer and stripe.finger.device:
                    x, y = (stripe.left + stripe.right) // 2, placed.y((stripe.bottom + stripe.top) // 2)
                    self.sketch.text(layer, stripe.finger.device, x, y)

    # ---- the module

    def _described(self, layout: kdb.Layout, cell: kdb.Cell, extent: Area, *, symmetric: bool) -> Module:
        import klayout.db as kdb

        dx, dy = -extent.left, -extent.bottom

        def moved(area: Area) -> kdb.Box:
            return kdb.Box(area.left + dx, area.bottom + dy, area.right + dx, area.top + dy)

        gates = []
        orientations: dict[tuple[str, str], str] = {}
        for placed in self.rows:
            for stripe in placed.wired.plan.stripes:
                finger = stripe.finger
                channel = placed.area(Area(stripe.left, stripe.bottom, stripe.right, stripe.top))
                gates.append(Gate(finger.device, finger.unit, moved(channel)))
                if finger.device:
                    orientations.setdefault((finger.unit, finger.device), finger.orientation)
        instances = []
        for (unit, device), orientation in orientations.items():
            x, y = channel_centre([gate.box for gate in gates if (gate.unit, gate.device) == (unit, device)])
            instances.append(Instance(unit, device, x, y, orientation))
        pins = sorted(self.pins, key=lambda pin: (pin[1].bottom, pin[1].left, pin[0]))
        return Module(
            name=self.stack.name,
            cell=cell,
            layout=layout,
            pins=tuple(Pin(net, self.tech.conductors[1].name, moved(area)) for net, area in pins),
            devices=tuple(dict.fromkeys(device for _, device in orientations)),
            instances=tuple(instances),
            symmetry_axis_x=dx + (extent.left + extent.right) // 2 if symmetric else None,
            bbox=moved(extent),
            gates=tuple(gates),
            mirrored_in_y=self.sketch.is_mirror_image_of_itself(upside_down=True),
        )


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
