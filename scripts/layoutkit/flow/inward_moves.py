"""Move metal towards the modules: rigid parts of each net move inwards, and the wires between them become shorter.

What joins a rail to a strap of its net is left out where the rail is to lie over the strap::

rail   =====[v]=====
             |             =============   rail and strap
strap  -----[v]-----   ->  -----[v]-----
             |                   |         a wire from further inside ends at the strap
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import klayout.db as kdb

from layoutkit.route.metal import NetMetal, cut_index, pads
from layoutkit.route.routes import Wire, rect_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy as np
    import numpy.typing as npt

    from layoutkit.flow.port_frame import Frame, Port
    from layoutkit.rectangle import Rect
    from layoutkit.route.routes import Point, RoutedNet, Via
    from layoutkit.route.routing_stack import Stack
    from layoutkit.technology import Technology

    IntArray = npt.NDArray[np.int64]


class MetalBox(NamedTuple):
    """A rectangle of metal or cuts: its layer, its sides, and its distance to others. [dbu]"""

    layer: str
    rect: Rect
    space: int = 0


class Span(NamedTuple):
    """A rigid piece as one side sees it: from its inner to its outer edge, and across. [dbu]"""

    low: int
    high: int
    start: int
    end: int
    layer: str
    space: int


@dataclass(frozen=True)
class Way:
    """One side of the cell as a direction: distances ``u`` grow outwards from ``origin``."""

    axis: int
    sign: int
    origin: int = 0

    def span(self, piece: MetalBox) -> Span:
        """Return a rectangle as it lies in this direction."""
        layer, rect, space = piece
        axis, sign, origin = self.axis, self.sign, self.origin
        one, other = sign * (rect[axis] - origin), sign * (rect[axis + 2] - origin)
        low, high = (one, other) if one <= other else (other, one)
        return Span(low, high, rect[1 - axis], rect[3 - axis], layer, space)

    def highs(self, rects: IntArray) -> IntArray:
        """Return the distance of the outer edge of each of many rectangles, one a row. [dbu]"""
        return self.sign * (rects[:, self.axis + (2 if self.sign > 0 else 0)] - self.origin)

    def stub(self, piece: MetalBox) -> Iterator[MetalBox]:
        """Yield the square at the outer end of a stub, which is its pin, and its inner edge."""
        span = self.span(piece)
        width = span.end - span.start
        for one, other in ((span.high - width, span.high), (span.low, span.low)):
            low, high = sorted(self.origin + self.sign * u for u in (one, other))
            rect = (low, span.start, high, span.end) if self.axis == 0 else (span.start, low, span.end, high)
            yield piece._replace(rect=rect)

    def of(self, box: kdb.Box) -> int:
        """Return the distance of a box's outer edge."""
        return self.span(MetalBox("", (box.left, box.bottom, box.right, box.top))).high


class RigidBlock(NamedTuple):
    """Metal of a net from ``low`` to ``high`` that stays rigid and moves inwards by ``by``. [dbu]"""

    low: int
    high: int
    by: int = 0


@dataclass(frozen=True)
class Move:
    """Where each distance ``u`` of some directions goes, per net.

    Attributes:
        ways: The directions.
        blocks: Net to its blocks, from the inside.
        images: Net to the one of which it is the mirror image, with the same blocks.
        edge: Distance of the boundary, and how far it moves.
    """

    ways: tuple[Way, ...]
    blocks: Mapping[str, tuple[RigidBlock, ...]]
    images: Mapping[str, str]
    edge: tuple[int, int]

    def __call__(self, net: str, u: int) -> int:
        """Return where a distance goes on metal of a net. [dbu]"""
        if u == self.edge[0]:
            return u - self.edge[1]
        blocks = self.blocks.get(self.images.get(net, net), ())
        at = bisect_right(blocks, u, key=_low) - 1
        inner = u - (blocks[at].by if at >= 0 else 0)
        if at + 1 == len(blocks) or (at >= 0 and u <= blocks[at].high):
            return inner
        return min(inner, blocks[at + 1].low - blocks[at + 1].by)

    def rect(self, net: str, rect: Rect) -> Rect:
        """Return where a rectangle of a net goes. [dbu]"""
        left, bottom, right, top = rect
        return (*self.point(net, (left, bottom)), *self.point(net, (right, top)))

    def point(self, net: str, point: Point) -> Point:
        """Return where a point of a net goes. [dbu]"""
        found = list(point)
        for way in self.ways:
            u = way.sign * (found[way.axis] - way.origin)
            found[way.axis] = way.origin + way.sign * self(net, u)
        return found[0], found[1]

    def box(self, net: str, box: kdb.Box) -> kdb.Box:
        """Return where a box of a net goes. [dbu]"""
        return kdb.Box(*self.rect(net, (box.left, box.bottom, box.right, box.top)))


def _low(block: RigidBlock) -> int:
    return block.low


def shrunk(polygon: kdb.Polygon, net: str, move: Move, least: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """Yield the extents of a polygon, or of its holes, that the move makes smaller than allowed."""
    rings = [(polygon, least[0])]
    rings += [(kdb.Polygon(list(polygon.each_point_hole(i))), least[1]) for i in range(polygon.holes())]
    for ring, area in rings:
        moved = kdb.Polygon([kdb.Point(*move.point(net, (p.x, p.y))) for p in ring.each_point_hull()], True)
        if moved.area() < min(area, ring.area()):
            spans = [way.span(MetalBox("", rect_of(ring.bbox()))) for way in move.ways]
            yield from ((span.low, span.high) for span in spans if move(net, span.high) != span.high)


def moved_net(net: RoutedNet, move: Move) -> RoutedNet:
    """Return the routes of a net after a move."""

    def wire(each: Wire) -> Wire:
        return replace(each, points=tuple(move.point(net.name, point) for point in each.points))

    def at(each: Any) -> Any:
        x, y = move.point(net.name, (each.x, each.y))
        return replace(each, x=x, y=y)

    wires = tuple(wire(each) for each in net.wires)
    steps = [pair for each in wires for pair in pairwise(each.points)]
    length = sum(abs(a[0] - b[0]) + abs(a[1] - b[1]) for a, b in steps)
    return replace(
        net,
        wires=wires,
        vias=tuple(at(via) for via in net.vias),
        path=tuple(wire(each) if isinstance(each, Wire) else at(each) for each in net.path),
        patches=tuple(replace(each, rect=move.rect(net.name, each.rect)) for each in net.patches),
        metal=tuple(sorted((layer, move.rect(net.name, rect)) for layer, rect in net.metal)),
        single_cuts=tuple(at(each) for each in net.single_cuts),
        wire_length=length,
        shielded=min(net.shielded, length),
    )


def moved_frame(frame: Frame, move: Move, technology: Technology) -> Frame:
    """Return a frame after a move; labels lie on the grid of the technology."""

    def port(each: Port) -> Port:
        box, pin = move.box(each.name, each.box), move.box(each.name, each.pin)
        width = min(box.width(), box.height())
        label = kdb.Point(box.left + width // 2, box.bottom + width // 2) if each.rail else pin.center()
        label = kdb.Point(technology.snap(label.x), technology.snap(label.y))
        return replace(each, box=box, pin=box if each.rail else pin, label=label)

    boundary, inner = move.box("", frame.boundary), frame.wiring
    wiring = kdb.Box(
        boundary.left + inner.left - frame.boundary.left,
        boundary.bottom + inner.bottom - frame.boundary.bottom,
        boundary.right + inner.right - frame.boundary.right,
        boundary.top + inner.top - frame.boundary.top,
    )
    cuts = tuple((name, move.box(owner_of(frame, box), box)) for name, box in frame.cuts)
    return replace(frame, boundary=boundary, wiring=wiring, ports=tuple(port(each) for each in frame.ports), cuts=cuts)


def owner_of(frame: Frame, box: kdb.Box) -> str:
    """Return the net of the rails that a cut at the corner of a ring joins."""
    return next(port.name for port in frame.ports if port.rail and box.inside(port.box))


class RailLink(NamedTuple):
    """A wire from a via on a strap to a via on a rail; ``points`` are those of the wire, that at the rail last."""

    wire: Wire
    points: tuple[Point, ...]
    at_strap: Via
    at_rail: Via


def rail_links(stack: Stack, net: RoutedNet, rail: Port, straps: kdb.Region) -> list[RailLink]:
    """Return the wires that end at ``rail`` and come from a strap in a straight line, with as many cuts there.

    Args:
        stack: The rules.
        net: The net of the rail.
        rail: The rail.
        straps: Metal of the net in modules, on the conductor of the rail.
    """
    along = 1 if rail.box.width() > rail.box.height() else 0
    level, found = stack.index(rail.layer), []
    for at_rail in net.vias:
        place = at_rail.x, at_rail.y
        wires = [wire for wire in net.wires if _reaches(wire, place)]
        alone = sum((via.x, via.y) == place for via in net.vias) == 1 and len(wires) == 1
        on_rail = cut_index(stack, at_rail.cut) == level and rail.box.contains(kdb.Point(*place))
        if not (alone and on_rail) or wires[0].layer == rail.layer or place not in {*_ends(wires[0])}:
            continue
        points = wires[0].points if wires[0].points[-1] == place else wires[0].points[::-1]
        if points[-2][1 - along] != place[1 - along] or _patched(stack, net, at_rail):
            continue
        low, high = sorted((points[-2][along], place[along]))
        fit = [
            via
            for via in net.vias
            if via is not at_rail
            and (via.cut, (via.x, via.y)[1 - along]) == (at_rail.cut, place[1 - along])
            and low <= (via.x, via.y)[along] <= high
            and via.columns * via.rows >= at_rail.columns * at_rail.rows
            and not _strap_at(stack, straps, via).is_empty()
        ]
        if fit:
            nearest = min(fit, key=lambda via: abs((via.x, via.y)[along] - place[along]))
            found.append(RailLink(wires[0], points, nearest, at_rail))
    return found


def without_links(stack: Stack, net: RoutedNet, links: Sequence[RailLink]) -> RoutedNet:
    """Return the net without the vias at the rail; wires end at the strap, and what only led there is left out."""
    gone: list[Via] = [link.at_rail for link in links]
    shorter: dict[Wire, Wire | None] = {}
    for link in links:
        end = link.at_strap.x, link.at_strap.y
        points = (*link.points[:-1], *(() if link.points[-2] == end else (end,)))
        shorter[link.wire] = replace(link.wire, points=points) if len(points) > 1 else None
    wires = [kept for wire in net.wires if (kept := shorter.get(wire, wire)) is not None]
    for link in links:
        place = link.at_strap.x, link.at_strap.y
        used = any(wire.layer == link.wire.layer and _reaches(wire, place) for wire in wires)
        used |= any((via.x, via.y) == place and via is not link.at_strap for via in net.vias)
        if not used and not _patched(stack, net, link.at_strap):
            gone.append(link.at_strap)
    vias = [via for via in net.vias if via not in gone]
    steps = (shorter.get(step, step) if isinstance(step, Wire) else step for step in net.path)
    path = tuple(step for step in steps if step is not None and step not in gone)
    places = {(via.cut, via.x, via.y) for via in gone}
    length = net.wire_length - sum(_length(wire) - (_length(kept) if kept else 0) for wire, kept in shorter.items())
    return replace(
        net,
        wires=tuple(wires),
        vias=tuple(vias),
        path=path,
        metal=NetMetal([], wires, vias, list(net.patches), []).layers(stack),
        wire_length=length,
        via_count=len(vias),
        single_cuts=tuple(each for each in net.single_cuts if (each.cut, each.x, each.y) not in places),
        shielded=min(net.shielded, length),
    )


def touches_strap(stack: Stack, rail: Port, via: Via, straps: kdb.Region) -> bool:
    """Return whether a rail touches the strap that ``via`` lies on."""
    return not _strap_at(stack, straps, via).interacting(kdb.Region(rail.box)).is_empty()


def _strap_at(stack: Stack, straps: kdb.Region, via: Via) -> kdb.Region:
    """Return the strap under the lower pad of a via."""
    _, pad = min(pads(stack, via))
    return straps.interacting(kdb.Region(kdb.Box(*pad)))


def _ends(wire: Wire) -> Iterator[Point]:
    yield from (wire.points[0], wire.points[-1])


def _reaches(wire: Wire, place: Point) -> bool:
    """Return whether the middle of a wire passes a point."""
    x, y = place
    return any(
        min(a[0], b[0]) <= x <= max(a[0], b[0]) and min(a[1], b[1]) <= y <= max(a[1], b[1])
        for a, b in zip(wire.points, wire.points[1:], strict=False)
    )


def _patched(stack: Stack, net: RoutedNet, via: Via) -> bool:
    """Return whether patches touch the pads of a via."""
    rects = [(stack.conductors[level].name, kdb.Box(*rect)) for level, rect in pads(stack, via)]
    return any(
        patch.layer == layer and kdb.Box(*patch.rect).touches(box) for patch in net.patches for layer, box in rects
    )


def _length(wire: Wire) -> int:
    return sum(abs(a[0] - b[0]) + abs(a[1] - b[1]) for a, b in zip(wire.points, wire.points[1:], strict=False))
