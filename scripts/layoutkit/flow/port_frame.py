"""The frame of a cell, drawn before routing: its boundary, metal of each port at it, and rails of the supplies.

boundary +--------------------------------------+
         |======================================|  rail of a power net, horizontal conductor
         |      | out          room for wires   |
         |in ---+    +------------------+   +---| stub of a port at the right, horizontal conductor
         |----       |       core       |       |
         |           +------------------+       |
         |======================================|  rail of a ground net
         +-----------|--------------------------+  stub of a port at the bottom, vertical conductor

A ring has rails of every supply at all four sides; those at the left and right are on the vertical conductor. Rails
reach from one end of the boundary to the other, so that each of them touches it twice. Rails at one or two sides may
lie over the core (``layoutkit.flow.port_places``).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Literal

import klayout.db as kdb

from layoutkit.errors import LayoutkitError
from layoutkit.flow.port_places import (
    SIDES,
    PortWish,
    Strip,
    choose_sides,
    conductors_for_rails,
    innermost,
    mirror_axis,
    outwards,
    place_ports,
)
from layoutkit.rectangle import Rectangle
from layoutkit.route.routing_stack import make_stack

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from layoutkit.circuit.roles import Direction, Use
    from layoutkit.flow.port_places import MetalIn, PortPlace, Side
    from layoutkit.technology import Conductor, Technology

SupplyStyle = Literal["rails", "ring", "ports"]
RAIL_WIDTH_UM = 1.0
"""Least width of a rail. [um]"""
RAIL_SIDES: dict[str, tuple[Side, ...]] = {"power": ("top",), "ground": ("bottom",)}
LARGEST_PART = 2
"""No port or rail is wider than the longer side of the core divided by this."""
SLOT_PITCHES = 2
"""Least distance of two ports at one side, in pitches of the tracks."""
MOST_FRAMED = 1.3
"""How much wider than the core a frame may be that is symmetric about the axis of ports that mirror each other."""


@dataclass(frozen=True)
class PortNet:
    """A net that needs a port.

    Attributes:
        name: The port.
        pins: The metal inside the core that the port leads to. [dbu]
        use: Supplies get rails.
        direction: ``input``, ``output`` or ``inout``.
        side: The side it must be at; None for the usual one.
        order: Place among the ports of its side that have an order, from the left or from below.
        current: Largest direct current; None where nobody states it. [A]
        layers: Conductors of the pins.
        partner: Port that should be its mirror image.
        axis: Vertical axis of the two; None where their pins have none. They lie beside each other then. [dbu]
        longest: Length of wires from which the nearest side is better than the usual one; None where any will do. [dbu]
    """

    name: str
    pins: tuple[kdb.Box, ...]
    use: Use = "signal"
    direction: Direction = "inout"
    side: Side | None = None
    order: int | None = None
    current: float | None = None
    layers: frozenset[str] = frozenset()
    partner: str | None = None
    axis: int | None = None
    longest: int | None = None


@dataclass(frozen=True)
class Port:
    """Metal of a port at the boundary. [dbu]

    Attributes:
        name: The net.
        side: Side of the boundary.
        layer: Conductor.
        box: The metal: a stub from the boundary inwards, or a rail.
        pin: The part of it that is the pin; it touches the boundary.
        label: Where the name is written, inside the pin.
        rail: Whether it is a rail of a supply.
    """

    name: str
    side: Side
    layer: str
    box: kdb.Box
    pin: kdb.Box
    label: kdb.Point
    rail: bool = False


@dataclass(frozen=True)
class Frame:
    """The boundary of a cell with its ports and supply rails. [dbu]

    Attributes:
        boundary: Outline of the cell.
        core: Box of the placed modules.
        wiring: Where wires may run; they keep half a space to the boundary, where no rail lies at it.
        ports: The metal of the ports, rails first.
        cuts: Name and box of each cut at the corners of a ring.
        nets: Net name to its request.
        max_aspect: Largest ratio of the longer to the shorter side that the boundary may be moved inwards
            to; None for any.
    """

    boundary: kdb.Box
    core: kdb.Box
    wiring: kdb.Box
    ports: tuple[Port, ...]
    cuts: tuple[tuple[str, kdb.Box], ...] = ()
    nets: Mapping[str, PortNet] = field(default_factory=dict)
    max_aspect: float | None = None

    @property
    def terminals(self) -> tuple[tuple[Port, kdb.Box], ...]:
        """Each port with the part of its metal that wires may join. [dbu]"""
        return tuple((port, port.box & self.wiring) for port in self.ports)

    def of(self, net: str) -> tuple[Port, ...]:
        """Return the metal of one port."""
        return tuple(port for port in self.ports if port.name == net)


def port_conductors(technology: Technology) -> tuple[Conductor, Conductor]:
    """Return the lowest conductors for wires from the left and right, and from the bottom and top, that pins lie on.

    Where the process marks pins by a layer of their own, only conductors that have one count.
    """
    stack = make_stack(technology, [conductor.name for conductor in technology.conductors], [])
    marked = any(conductor.pin_layer for conductor in technology.conductors)
    fit = [
        (conductor, sideways)
        for conductor, sideways in zip(stack.conductors[1:], stack.horizontal[1:], strict=True)
        if conductor.pin_layer or not marked
    ]
    horizontal = next(conductor for conductor, sideways in fit if sideways)
    return horizontal, next(conductor for conductor, sideways in fit if not sideways)


def plan_frame(
    technology: Technology,
    core: kdb.Box,
    nets: Sequence[PortNet],
    channel: int,
    style: SupplyStyle = "rails",
    metal_in: MetalIn | None = None,
) -> Frame:
    """Return the frame around a core.

    Args:
        technology: The process.
        core: Box of everything that is drawn.
        nets: The ports.
        channel: Room for wires between the core and the rails or the boundary. [dbu]
        style: ``rails``: power at the top, ground at the bottom, unless a net wants another side. ``ring``: every
            supply around the core. ``ports``: supplies have ports as signals do.
        metal_in: Returns the metal and keepouts of the modules. If given, rails lie over the modules as far as these
            leave room.
    """
    planner = _Planner(technology, core, [_near_axis(net, core) for net in nets], channel, style)
    if style == "rails" and metal_in is not None:
        planner.lay_over(metal_in)
    return planner.frame()


def _near_axis(net: PortNet, core: kdb.Box) -> PortNet:
    """Return a port without its axis if a frame that is symmetric about that would leave much of one side empty."""
    if net.axis is None or 2 * max(net.axis - core.left, core.right - net.axis) <= MOST_FRAMED * core.width():
        return net
    return replace(net, axis=None)


def label_place(technology: Technology, pin: kdb.Box, *, rail: bool) -> kdb.Point:
    """Return where the name of a port is written: in the middle of its pin, or near the first end of a rail. [dbu]"""
    width = min(pin.width(), pin.height())
    place = kdb.Point(pin.left + width // 2, pin.bottom + width // 2) if rail else pin.center()
    return kdb.Point(technology.snap(place.x), technology.snap(place.y))


def draw_frame(layout: kdb.Layout, cell: kdb.Cell, technology: Technology, frame: Frame) -> None:
    """Draw the boundary, and metal, pin and label of each port into ``cell``."""
    for layer, shape in _shapes(technology, frame):
        cell.shapes(technology.layer(layout, layer)).insert(shape)


def erase_frame(layout: kdb.Layout, cell: kdb.Cell, technology: Technology, frame: Frame) -> None:
    """Remove what ``draw_frame`` drew into ``cell``, also after the layout went through a file.

    Raises:
        LayoutkitError: If it is not there.
    """
    for layer, drawn in _shapes(technology, frame):
        shapes = cell.shapes(technology.layer(layout, layer))
        same = (each for each in shapes.each() if (each.text if each.is_text() else each.bbox()) == drawn)
        found = next(same, None)
        if found is None:
            raise LayoutkitError(
                f"cell '{cell.name}' does not hold the frame of the request: {layer} lacks {drawn}; route the layout "
                "that the frame was drawn in, or leave it out",
                details={"param_name": "frame", "provided_value": str(drawn)},
            )
        shapes.erase(found)


def _shapes(technology: Technology, frame: Frame) -> Iterator[tuple[str, kdb.Box | kdb.Text]]:
    """Yield the layer and shape of all that a frame consists of."""
    outline = technology.role("boundary")
    if outline is not None:
        yield outline, frame.boundary
    for port in frame.ports:
        conductor = technology.conductor(port.layer)
        yield conductor.layer, port.box
        if conductor.pin_layer is not None:
            yield conductor.pin_layer, port.pin
        yield conductor.label_layer, kdb.Text(port.name, kdb.Trans(port.label.x, port.label.y))
    for name, box in frame.cuts:
        yield next(cut.layer for cut in technology.cuts if cut.name == name), box


class _Planner:
    """One frame in the making."""

    def __init__(
        self, technology: Technology, core: kdb.Box, nets: Sequence[PortNet], channel: int, style: SupplyStyle
    ) -> None:
        self.technology, self.step = technology, 2 * technology.grid
        self.nets = {net.name: net for net in nets}
        self.stack = make_stack(technology, [conductor.name for conductor in technology.conductors], [])
        self.horizontal, self.vertical = port_conductors(technology)
        self.railed = [net for net in nets if net.use != "signal" and style != "ports"]
        self.rails: dict[Side, list[PortNet]] = {
            side: sorted((n for n in self.railed if side in self._rail_sides(n, style)), key=_rank) for side in SIDES
        }
        self.core = core
        self.on = {side: self._beside(side, style) for side in SIDES}
        self.inner: dict[Side, int] = {}
        self.inset = self._up(max(c.space for c in technology.conductors[1:5]) // 2)
        names = {net.name for net in self.railed}
        self.wishes = [_wish(net, core, channel) for net in nets if net.name not in names]
        self.sides = choose_sides(self.wishes, Rectangle(core.left, core.bottom, core.right, core.top))
        self.channel = channel

    def _rail_sides(self, net: PortNet, style: SupplyStyle) -> tuple[Side, ...]:
        if style == "ring":
            return SIDES
        return (net.side,) if net.side else RAIL_SIDES[net.use]

    def _beside(self, side: Side, style: SupplyStyle) -> Conductor:
        """Return the conductor for the rails at a side: the one on which their currents need the least width."""
        lowest = self.horizontal if side in {"bottom", "top"} else self.vertical
        fit: list[Conductor] = [lowest, *(conductors_for_rails(self.stack, lowest) if style == "rails" else ())]
        return min(fit, key=lambda each: sum(self._rail_width(each, net) for net in self.rails[side]))

    def _heavy_wires(self) -> int:
        """Return the room for wires of all nets whose currents need wires that are wider than a usual rail."""
        usual = self.technology.to_dbu(RAIL_WIDTH_UM)
        wires = [(c, self._width(c, net)) for net in self.nets.values() for c in self._wiring(net)]
        return sum(width + self._rail_space(c, width) for c, width in wires if width > max(usual, c.width)) // 2

    def lay_over(self, metal_in: MetalIn) -> None:
        """Let the rails of each side lie over the core, on the conductor on which they reach furthest inside.

        Where keepouts hold them off the core on every such conductor, they lie beside it as other rails do.
        """
        for side in (side for side in SIDES if self.rails[side]):
            places = []
            for conductor in conductors_for_rails(self.stack, self.on[side]):
                rails, at = [], 0
                for net in self.rails[side]:
                    width = self._rail_width(conductor, net)
                    rails.append(Strip(net.name, at, at + width))
                    at += width + self._rail_space(conductor, width)
                inner = innermost(self.stack, conductor, self.core, side, rails, metal_in)
                if inner <= outwards(self.core, side) + self._rail_space(conductor, rails[0].high):
                    places.append((inner, conductor))
            if places:
                self.inner[side], self.on[side] = min(places, key=itemgetter(0))

    def frame(self) -> Frame:
        room = self._room()
        depth = {side: self._depth(side, room) for side in SIDES}
        boundary = kdb.Box(
            room.left - depth["left"],
            room.bottom - depth["bottom"],
            room.right + depth["right"],
            room.top + depth["top"],
        )
        rails = [port for side in SIDES for port in self._rails_at(side, room, boundary)]
        beside = self._beside_rails(room)
        places = place_ports(
            self.wishes,
            self.sides,
            Rectangle(beside.left, beside.bottom, beside.right, beside.top),
            self.technology.grid,
            max((self._slot(self.nets[name], side) for name, side in self.sides.items()), default=0),
        )
        stubs = [
            self._stub(self.nets[name], place, boundary, depth[place.side]) for name, place in sorted(places.items())
        ]
        edges: tuple[tuple[Side, int, int], ...] = (
            ("left", boundary.left, 1),
            ("bottom", boundary.bottom, 1),
            ("right", boundary.right, -1),
            ("top", boundary.top, -1),
        )
        return Frame(
            boundary,
            self.core,
            kdb.Box(*(edge + sign * (0 if depth[side] else self.inset) for side, edge, sign in edges)),
            (*rails, *stubs),
            tuple(self._corners(rails)),
            self.nets,
        )

    def _up(self, length: float) -> int:
        return -int(-length // self.step) * self.step

    def _layer(self, net: PortNet, side: Side) -> Conductor:
        """Return the conductor of a port's metal at a side.

        It is the lowest one. A current that needs more than a usual rail there gets the conductor on which it needs the
        least width, preferably one of the net's pins.
        """
        lowest = self.horizontal if side in {"left", "right"} else self.vertical
        if net.current is None or self._width(lowest, net) <= self.technology.to_dbu(RAIL_WIDTH_UM):
            return lowest
        fit = [lowest, *conductors_for_rails(self.stack, lowest)]
        return min(fit, key=lambda each: (self._width(each, net), each.name not in net.layers))

    def _wiring(self, net: PortNet) -> tuple[Conductor, Conductor]:
        """Return the conductors for wires of a net from the left and right, and from the bottom and top."""
        return self._layer(net, "left"), self._layer(net, "bottom")

    def _width(self, conductor: Conductor, net: PortNet, least: int = 0) -> int:
        """Return the width that a net's current needs on a conductor, at least that of the conductor's wires. [dbu]

        It is at most a part of the core's width or height, and no wider than rules for usual metal allow; the check of
        currents reports what that cannot carry.
        """
        needed = conductor.width_um((net.current or 0.0) * 1e3) / self.technology.dbu_um
        needed = min(round(needed, 6), max(self.core.width(), self.core.height()) / LARGEST_PART)
        width = self._up(max(conductor.width, least, needed))
        widest = self.technology.widest_usual(conductor)
        return width if widest is None else min(width, widest // self.step * self.step)

    def _rail(self, net: PortNet, side: Side) -> tuple[Conductor, int]:
        """Return the conductor and width of a net's rail along a side."""
        return self.on[side], self._rail_width(self.on[side], net)

    def _rail_width(self, conductor: Conductor, net: PortNet) -> int:
        return self._width(conductor, net, self.technology.to_dbu(RAIL_WIDTH_UM))

    def _rail_space(self, conductor: Conductor, width: int) -> int:
        wide = conductor.wide_width is not None and width > conductor.wide_width
        return self._up(conductor.spacing(wide=wide))

    def _depth(self, side: Side, room: kdb.Box) -> int:
        """Return how far the rails of a side reach beyond the room for wires, each with the space inside of it."""
        rails = [self._rail(net, side) for net in self.rails[side]]
        depth = self._first(side, room) + sum(width + self._rail_space(conductor, width) for conductor, width in rails)
        return max(0, depth) if rails else 0

    def _first(self, side: Side, room: kdb.Box) -> int:
        """Return where the space inside of the first rail begins, measured outwards from the room for wires."""
        if side not in self.inner:
            return 0
        return self.inner[side] - outwards(room, side) - self._rail_space(*self._rail(self.rails[side][0], side))

    def _room(self) -> kdb.Box:
        """Return the core and the room for wires around it, large enough for the ports of every side."""
        ends = [self._end(self.nets[name], side) for name, side in self.sides.items()]
        widest = max((self._width(c, net) for net in self.nets.values() for c in self._wiring(net)), default=0)
        channel = self.channel + max(widest, *ends, self._heavy_wires(), 0)
        core = self.core.enlarged(channel, channel)
        left, bottom = core.left // self.step * self.step, core.bottom // self.step * self.step
        right, top = self._up(core.right), self._up(core.top)
        axis = mirror_axis(self.wishes, self.sides)
        if axis is not None:
            reach = self._up(max(axis - left, right - axis))
            left, right = axis - reach, axis + reach
        needed = {}
        for one, other in (("left", "right"), ("bottom", "top")):
            here = [name for name, side in self.sides.items() if side in {one, other}]
            count = max(sum(self.sides[name] == side for name in here) for side in (one, other))
            needed[one] = count * max((self._slot(self.nets[name], self.sides[name]) for name in here), default=0)
        beside = self._beside_rails(kdb.Box(left, bottom, right, top))
        across = self._up(max(0, needed["bottom"] - beside.width()) / 2)
        along = self._up(max(0, needed["left"] - beside.height()) / 2)
        return kdb.Box(left - across, bottom - along, right + across, top + along)

    def _beside_rails(self, room: kdb.Box) -> kdb.Box:
        """Return the part of the room in which stubs of ports keep their distance to rails over the core."""
        edges = {"left": room.left, "bottom": room.bottom, "right": room.right, "top": room.top}
        for side in self.inner:
            across = {"left", "right"} if side in {"bottom", "top"} else {"bottom", "top"}
            stubs = {self._layer(self.nets[name], at) for name, at in self.sides.items() if at in across}
            if self.on[side] in stubs:
                inside = self.inner[side] - self._rail_space(*self._rail(self.rails[side][0], side))
                inside = min(inside, outwards(room, side)) // self.step * self.step
                edges[side] = inside if side in {"right", "top"} else -inside
        return kdb.Box(*edges.values())

    def _slot(self, net: PortNet, side: Side) -> int:
        conductor = self._layer(net, side)
        width = self._width(conductor, net)
        return max(SLOT_PITCHES * self.stack.pitch(), width + self._rail_space(conductor, width)) + 2 * self.step

    def _rails_at(self, side: Side, room: kdb.Box, boundary: kdb.Box) -> list[Port]:
        found, offset = [], self._first(side, room)
        for net in self.rails[side]:
            conductor, width = self._rail(net, side)
            inner = offset + self._rail_space(conductor, width)
            offset = inner + width
            box = {
                "left": kdb.Box(room.left - offset, boundary.bottom, room.left - inner, boundary.top),
                "right": kdb.Box(room.right + inner, boundary.bottom, room.right + offset, boundary.top),
                "bottom": kdb.Box(boundary.left, room.bottom - offset, boundary.right, room.bottom - inner),
                "top": kdb.Box(boundary.left, room.top + inner, boundary.right, room.top + offset),
            }[side]
            label = label_place(self.technology, box, rail=True)
            found.append(Port(net.name, side, conductor.name, box, box, label, rail=True))
        return found

    def _stub(self, net: PortNet, place: PortPlace, boundary: kdb.Box, depth: int) -> Port:
        """Return the metal of a port from the boundary through the rails of its side."""
        side, at = place
        conductor = self._layer(net, side)
        width = self._width(conductor, net)
        end = self._end(net, side)
        low, high = at - width // 2, at + width // 2

        def box(length: int) -> kdb.Box:
            return {
                "left": kdb.Box(boundary.left, low, boundary.left + length, high),
                "right": kdb.Box(boundary.right - length, low, boundary.right, high),
                "bottom": kdb.Box(low, boundary.bottom, high, boundary.bottom + length),
                "top": kdb.Box(low, boundary.top - length, high, boundary.top),
            }[side]

        pin = box(end)
        label = label_place(self.technology, pin, rail=False)
        return Port(net.name, side, conductor.name, box(end + depth), pin, label)

    def _end(self, net: PortNet, side: Side) -> int:
        """Return the length of a port's metal beyond rails: enough for its area, and for a via that wires can reach."""
        conductor = self._layer(net, side)
        level = self.stack.index(conductor.name)
        cuts = [cut for cut in (level - 1, level) if 0 <= cut < len(self.stack.cuts)]
        pad = max(max(self.stack.pad(cut, level)) for cut in cuts)
        width = self._width(conductor, net)
        return self._up(max(conductor.area / width, 2 * self.inset + width, 2 * (self.inset + pad)))

    def _corners(self, rails: Sequence[Port]) -> list[tuple[str, kdb.Box]]:
        """Return the cuts where rails of one net cross."""
        names = [conductor.name for conductor in self.stack.conductors]
        low, high = names.index(self.horizontal.name), names.index(self.vertical.name)
        found = []
        for one in rails:
            for other in rails:
                if one.name != other.name or one.side not in {"bottom", "top"} or other.side not in {"left", "right"}:
                    continue
                overlap = one.box & other.box
                for cut in range(low, high):
                    columns, rows = self._array(cut, overlap)
                    center = overlap.center()
                    rects = self.stack.cut_rects(cut, center.x, center.y, columns, rows)
                    found += [(self.stack.cuts[cut].name, kdb.Box(*rect)) for rect in rects]
        return found

    def _array(self, cut: int, overlap: kdb.Box) -> tuple[int, int]:
        """Return the columns and rows of the largest array of cuts in an overlap of two rails."""

        def fits(columns: int, rows: int) -> bool:
            halves = [self.stack.pad(cut, level, columns, rows) for level in (cut, cut + 1)]
            return all(2 * w <= overlap.width() and 2 * h <= overlap.height() for w, h in halves)

        columns = rows = 1
        while fits(columns + 1, 1):
            columns += 1
        while fits(columns, rows + 1):
            rows += 1
        return columns, rows


def _rank(net: PortNet) -> tuple[int, str]:
    return (net.order or 0, net.name)


def _wish(net: PortNet, core: kdb.Box, channel: int) -> PortWish:
    """Return where a port should be; the usual sides are left for inputs, right for outputs.

    A port's metal crosses the ``channel`` between the core and the boundary, which counts as wire.
    """
    around = kdb.Box()
    for pin in net.pins:
        around += pin
    middle = core.center() if around.empty() else around.center()
    usual: dict[str, Side] = {"input": "left", "output": "right"}
    supplies: dict[str, Side] = {"power": "top", "ground": "bottom"}
    side = supplies.get(net.use) or usual.get(net.direction)
    near = False
    if net.longest is not None:
        far: list[tuple[int, Side]] = [(around.left - core.left, "left"), (core.right - around.right, "right")]
        far += [(around.bottom - core.bottom, "bottom"), (core.top - around.top, "top")]
        inside = around.width() + around.height() + channel
        if side is not None:
            side = next((each for each in far if each[1] == side and each[0] + inside <= net.longest), min(far))[1]
        # Ports that are spread evenly may lie half a side away from what they lead to.
        near = min(far)[0] + inside + max(core.width(), core.height()) // 2 > net.longest
    return PortWish(net.name, middle.x, middle.y, net.side, side, net.order, net.partner, net.axis, near)
