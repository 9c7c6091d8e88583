"""Move the frame of a routed cell inwards: what the wires leave free between the modules and the boundary is taken out.

         before                      after
    =====================
              |                =====================   rail
    ----+     |                ----+     |
        |     |                    |     |             a wire keeps its shape and its distances
    [ modules     ]            [ modules     ]

Metal outside of the modules is cut into blocks, each of which stays rigid: vias, patches, wires across, ends of wires
along, rails, pins. From the inside to the outside, each block moves inwards as far as the rules between it and the
blocks before it allow; wires between blocks get shorter. Each side of the cell moves on its own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from copy import copy
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import klayout.db as kdb

from layoutkit.route.metal import cut_index, pads
from layoutkit.route.routes import Wire
from layoutkit.route.routing_stack import make_stack

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from layoutkit.flow.keepouts import Obstacle, Obstacles
    from layoutkit.flow.port_frame import Frame, Port
    from layoutkit.place.port_places import Side
    from layoutkit.route.routes import Point, Rect, RoutedNet, RoutingResult
    from layoutkit.technology import Technology

ROUNDS = 12
"""How often blocks are joined because shorter wires would break a rule, before a side is left as it is."""


FREE = 1 << 60
"""A distance that limits nothing. [dbu]"""
WAYS: dict[Side, tuple[int, int]] = {"left": (0, -1), "right": (0, 1), "bottom": (1, -1), "top": (1, 1)}
"""Axis and sign of each side."""
KEEPOUT = -1
"""Space of an area that metal may touch."""


class Piece(NamedTuple):
    """A rectangle of metal or cuts: its layer, its sides, its distance to others, whether it is rigid. [dbu]"""

    layer: str
    rect: Rect
    space: int = 0
    rigid: bool = False


class _Span(NamedTuple):
    """A rigid piece as one side sees it: from its inner to its outer edge, and across. [dbu]"""

    low: int
    high: int
    start: int
    end: int
    layer: str
    space: int


@dataclass(frozen=True)
class _Way:
    """One side of the cell as a direction: distances ``u`` grow outwards from ``origin``."""

    axis: int
    sign: int
    origin: int = 0

    def span(self, piece: Piece) -> _Span:
        low, high = sorted(self.sign * (piece.rect[self.axis + i] - self.origin) for i in (0, 2))
        return _Span(low, high, piece.rect[1 - self.axis], piece.rect[3 - self.axis], piece.layer, piece.space)

    def stub(self, piece: Piece) -> Iterator[Piece]:
        """Yield the square at the outer end of a stub, which is its pin, and its inner edge."""
        span = self.span(piece)
        width = span.end - span.start
        for one, other in ((span.high - width, span.high), (span.low, span.low)):
            low, high = sorted(self.origin + self.sign * u for u in (one, other))
            rect = (low, span.start, high, span.end) if self.axis == 0 else (span.start, low, span.end, high)
            yield piece._replace(rect=rect)

    def of(self, box: kdb.Box) -> int:
        """Return the distance of a box's outer edge."""
        return self.span(Piece("", (box.left, box.bottom, box.right, box.top))).high


@dataclass(frozen=True)
class _Move:
    """Where each distance ``u`` of some directions goes: blocks [low, high] move inwards by ``by``."""

    ways: tuple[_Way, ...]
    lows: tuple[int, ...]
    highs: tuple[int, ...]
    by: tuple[int, ...]

    def __call__(self, u: int) -> int:
        at = bisect_right(self.lows, u) - 1
        if at < 0:
            return min(u, self.lows[0] - self.by[0])
        if u <= self.highs[at] or at + 1 == len(self.lows):
            return u - self.by[at]
        return min(u - self.by[at], self.lows[at + 1] - self.by[at + 1])

    def rect(self, rect: Rect) -> Rect:
        left, bottom, right, top = rect
        return (*self.point((left, bottom)), *self.point((right, top)))

    def point(self, point: Point) -> Point:
        found = list(point)
        for way in self.ways:
            u = way.sign * (found[way.axis] - way.origin)
            found[way.axis] = way.origin + way.sign * self(u)
        return found[0], found[1]

    def box(self, box: kdb.Box) -> kdb.Box:
        return kdb.Box(*self.rect((box.left, box.bottom, box.right, box.top)))


def tighten(
    technology: Technology,
    frame: Frame,
    result: RoutingResult,
    obstacles: Obstacles,
    keepouts: Sequence[Obstacle],
    axis_x: int | None,
) -> tuple[Frame, RoutingResult]:
    """Return the frame and the routes with the free room between modules and boundary taken out.

    Args:
        technology: The rules.
        frame: The frame that the routes end at.
        result: The routes; where a net failed, everything is returned as it is.
        obstacles: The metal of modules and frame.
        keepouts: Areas without wires.
        axis_x: The axis of mirrored nets, which stay mirror images. [dbu]
    """
    if result.failed:
        return frame, result
    whole = _Cell(technology, frame, result, obstacles, keepouts, axis_x)
    exact = whole.exact()
    upright = whole.tightened((_Way(1, 1),)).tightened((_Way(1, -1),))
    alone = upright.tightened((_Way(0, 1),)).tightened((_Way(0, -1),))
    if axis_x is None or alone.exact() >= exact:
        return alone.frame, alone.result
    folded = upright.tightened((_Way(0, 1, axis_x), _Way(0, -1, axis_x)))
    best = folded if folded.exact() >= exact else upright
    return best.frame, best.result


def with_frame(obstacles: Obstacles, old: Frame, new: Frame) -> Obstacles:
    """Return metal with that of the frame ``new`` in the place of that of ``old``."""
    drawn = _drawn(old)
    found: Obstacles = {
        layer: [(_less(shape, drawn[layer]), net) for shape, net in obstacles[layer]] for layer in obstacles
    }
    for port in new.ports:
        found.setdefault(port.layer, []).append((port.box, port.name))
    return found


class _Cell:
    """A routed cell, of which sides are moved one after the other."""

    def __init__(
        self,
        technology: Technology,
        frame: Frame,
        result: RoutingResult,
        obstacles: Obstacles,
        keepouts: Sequence[Obstacle],
        axis_x: int | None,
    ) -> None:
        self.technology, self.frame, self.result, self.axis_x = technology, frame, result, axis_x
        self.stack = make_stack(technology, [conductor.name for conductor in technology.conductors], [])
        self.keepouts = [Piece(each.layer, _rect(each.box), KEEPOUT) for each in keepouts if each.kind != "metal"]
        known = {*(c.name for c in technology.conductors), *(cut.name for cut in technology.cuts)}
        drawn = _drawn(frame)
        self.fixed: list[Piece] = []
        self.own: dict[tuple[str, str], kdb.Region] = {}
        for layer, shapes in obstacles.items():
            for shape, net in shapes:
                region = _less(shape, drawn[layer])
                if net is not None:
                    self.own.setdefault((net, layer), kdb.Region()).insert(region)
                if layer in known:
                    pieces = region.decompose_trapezoids_to_region().each()
                    self.fixed += [self._piece(layer, _rect(piece.bbox())) for piece in pieces]

    def exact(self) -> int:
        """Return how many nets that the router drew as mirror images are mirror images."""
        if self.axis_x is None:
            return 0
        image = kdb.Trans(2, True, 2 * self.axis_x, 0)  # at the vertical axis
        count = 0
        for pair in self.result.mirrored:
            if pair.exact:
                one, other = (self._metal(self.result.net(name)) for name in (pair.nets[0], pair.nets[-1]))
                layers = {*one, *other}
                count += all((one[n].transformed(image) ^ other[n]).is_empty() for n in layers)
        return count

    def _metal(self, net: RoutedNet) -> dict[str, kdb.Region]:
        found: dict[str, kdb.Region] = defaultdict(kdb.Region)
        for layer, rect in net.metal:
            found[layer].insert(kdb.Box(*rect))
        for via in net.vias:
            found[via.cut].insert(kdb.Box(via.x - 1, via.y - 1, via.x + 1, via.y + 1))
        return found

    def tightened(self, ways: tuple[_Way, ...]) -> _Cell:
        """Return the cell with one side moved inwards, or with two opposite sides moved equally far."""
        rigid: list[tuple[int, int]] = []
        for _ in range(ROUNDS):
            move = _Squeeze(self, ways, rigid).move()
            if not any(move.by):
                return self
            broken = list(self._broken(move))
            if not broken:
                return self._moved(move)
            rigid += broken
        return self

    def _broken(self, move: _Move) -> Iterator[tuple[int, int]]:
        """Yield the extents of metal or of holes in it that the move would make smaller than the rules allow."""
        for net in {*(net.name for net in self.result.nets), *(port.name for port in self.frame.ports)}:
            for level, conductor in enumerate(self.technology.conductors):
                region = self.own.get((net, conductor.name), kdb.Region()).dup()
                mobile = kdb.Region()
                for piece in self._pieces_of(net):
                    if piece.layer == conductor.name:
                        mobile.insert(kdb.Box(*piece.rect))
                if mobile.is_empty():
                    continue
                for polygon in (region + mobile).merged().interacting(mobile).each():
                    yield from _shrunk(polygon, move, conductor.area, self.stack.least_hole[level])

    def _piece(self, layer: str, rect: Rect) -> Piece:
        """Return a rectangle with the distance that other metal or other cuts keep to it."""
        for cut in self.stack.cuts:
            if cut.name == layer:
                return Piece(layer, rect, max(cut.space, cut.array_space))
        level = self.stack.index(layer)
        return Piece(layer, rect, self.stack.space(level, wide=self.stack.is_wide(level, rect)))

    def mobile(self, way: _Way) -> Iterator[Piece]:
        """Yield wires, vias, and the metal of ports and rails, as far as it is rigid in one direction."""
        for net in self.result.nets:
            yield from (self._piece(layer, rect) for layer, rect in net.metal)
            for via in net.vias:
                rects = self.stack.cut_rects(cut_index(self.stack, via.cut), via.x, via.y, via.columns, via.rows)
                boxes = [kdb.Box(*rect) for rect in rects]
                yield self._piece(via.cut, _rect(sum(boxes, kdb.Box())))._replace(rigid=True)
                for level, rect in pads(self.stack, via):
                    yield self._piece(self.stack.conductors[level].name, rect)._replace(rigid=True)
        yield from (self._piece(name, _rect(box)) for name, box in self.frame.cuts)
        for port in self.frame.ports:
            axis, sign = WAYS[port.side]
            piece = self._piece(port.layer, _rect(port.box))
            if axis != way.axis:
                if not port.rail:  # a rail reaches from boundary to boundary
                    yield piece
            elif sign == way.sign:
                yield from [piece] if port.rail else way.stub(piece)

    def _pieces_of(self, net: str) -> list[Piece]:
        found = [Piece(layer, rect) for each in self.result.nets if each.name == net for layer, rect in each.metal]
        return found + [Piece(port.layer, _rect(port.box)) for port in self.frame.of(net)]

    def _moved(self, move: _Move) -> _Cell:
        other = copy(self)
        other.frame = _moved_frame(self.frame, move, self.technology)
        other.result = replace(self.result, nets=tuple(_moved_net(net, move) for net in self.result.nets))
        return other


class _Squeeze:
    """The blocks at one side of a cell, or at two opposite ones, and how far each may move inwards."""

    def __init__(self, cell: _Cell, ways: tuple[_Way, ...], rigid: Iterable[tuple[int, int]]) -> None:
        self.cell, self.ways = cell, ways
        frame, lowest = cell.frame, {cell.stack.conductors[0].name, cell.stack.cuts[0].name}
        self.edge = max(way.of(frame.boundary) for way in ways)
        still = [p for p in cell.fixed if p.layer not in lowest] + cell.keepouts
        modules = max((way.span(piece).high for way in ways for piece in still), default=-FREE)
        self.mobile = [[span for piece in cell.mobile(way) for span in _ends(way, piece)] for way in ways]
        extents = [(span.low, span.high) for spans in self.mobile for span in spans]
        blocks = _united([(-FREE, modules), *extents, *rigid, (self.edge, self.edge)])
        self.still = next(high for low, high in blocks if low <= modules <= high)
        self.blocks = [block for block in blocks if block[0] > self.still]
        self.core = max(way.of(frame.core) for way in ways)
        self.inset = min(way.of(frame.boundary) - way.of(frame.wiring) for way in ways)

    def move(self) -> _Move:
        """Return the largest move that keeps all distances."""
        grid = self.cell.technology.grid
        by: list[int] = []
        before = [self._still_spans(way) for way in self.ways]
        for low, high in self.blocks:
            limits = [low - self.still if not by else low - self.blocks[len(by) - 1][1] + by[-1]]
            here = [[span for span in spans if low <= span.low <= high] for spans in self.mobile]
            for spans, others in zip(here, before, strict=True):
                limits += (_room(span, other, moved) for span in spans for other, moved in others.get(span.layer, ()))
            if high == self.edge:
                limits.append(max(0, self.edge - self.core))
                gaps = [(self.edge - far, moved) for (_, far), moved in zip(self.blocks, by, strict=False)]
                limits += (moved + gap - min(self.inset, gap) for gap, moved in [(self.edge - self.still, 0), *gaps])
            by.append(max(0, min(limits)) // grid * grid)
            for spans, others in zip(here, before, strict=True):
                for span in spans:
                    others.setdefault(span.layer, []).append((span, by[-1]))
        return _Move(self.ways, tuple(low for low, _ in self.blocks), tuple(high for _, high in self.blocks), tuple(by))

    def _still_spans(self, way: _Way) -> dict[str, list[tuple[_Span, int]]]:
        """Return what does not move and lies near enough to what does, per layer."""
        found: dict[str, list[tuple[_Span, int]]] = {}
        pieces = [*self.cell.fixed, *self.cell.keepouts, *self.cell.mobile(way)]
        reach = max((span.space for spans in self.mobile for span in spans), default=0)
        for piece in pieces:
            span = way.span(piece)
            if self.still - reach < span.high <= self.still:
                found.setdefault(span.layer, []).append((span, 0))
        return found


def _room(span: _Span, other: _Span, moved: int) -> int:
    """Return how far a span may move towards another, which is further inside and moves by ``moved``."""
    space = 0 if KEEPOUT in (span.space, other.space) else max(span.space, other.space)
    if span.start >= other.end + space or other.start >= span.end + space:
        return FREE  # they pass each other
    gap = span.low - other.high
    return moved + gap - min(space, gap)


def _ends(way: _Way, piece: Piece) -> Iterator[_Span]:
    """Yield the parts of a rectangle that are rigid: the two ends of a wire that runs inwards, else all of it."""
    span = way.span(piece)
    width = span.end - span.start
    if piece.rigid or span.high - span.low <= 2 * width:
        yield span
    else:
        yield span._replace(high=span.low + width)
        yield span._replace(low=span.high - width)


def _united(extents: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the extents from below, those that touch as one."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(extents):
        if found and low <= found[-1][1]:
            found[-1] = found[-1][0], max(high, found[-1][1])
        else:
            found.append((low, high))
    return found


def _shrunk(polygon: kdb.Polygon, move: _Move, area: int, hole_area: int) -> Iterator[tuple[int, int]]:
    """Yield the extents of a polygon, or of its holes, that the move makes smaller than allowed."""
    rings = [(polygon, area)]
    rings += [(kdb.Polygon(list(polygon.each_point_hole(i))), hole_area) for i in range(polygon.holes())]
    for ring, least in rings:
        moved = kdb.Polygon([kdb.Point(*move.point((p.x, p.y))) for p in ring.each_point_hull()], True)
        if moved.area() < min(least, ring.area()):
            spans = [way.span(Piece("", _rect(ring.bbox()))) for way in move.ways]
            yield from ((span.low, span.high) for span in spans if move(span.high) != span.high)


def _moved_net(net: RoutedNet, move: _Move) -> RoutedNet:
    def wire(each: Wire) -> Wire:
        return replace(each, points=tuple(move.point(point) for point in each.points))

    def at(each: Any) -> Any:
        x, y = move.point((each.x, each.y))
        return replace(each, x=x, y=y)

    wires = tuple(wire(each) for each in net.wires)
    steps = [pair for each in wires for pair in pairwise(each.points)]
    length = sum(abs(a[0] - b[0]) + abs(a[1] - b[1]) for a, b in steps)
    return replace(
        net,
        wires=wires,
        vias=tuple(at(via) for via in net.vias),
        path=tuple(wire(each) if isinstance(each, Wire) else at(each) for each in net.path),
        patches=tuple(replace(each, rect=move.rect(each.rect)) for each in net.patches),
        metal=tuple(sorted((layer, move.rect(rect)) for layer, rect in net.metal)),
        single_cuts=tuple(at(each) for each in net.single_cuts),
        wire_length=length,
        shielded=min(net.shielded, length),
    )


def _moved_frame(frame: Frame, move: _Move, technology: Technology) -> Frame:
    def port(each: Port) -> Port:
        pin = move.box(each.pin)
        label = kdb.Point(*move.point((each.label.x, each.label.y))) if each.rail else pin.center()
        label = kdb.Point(technology.snap(label.x), technology.snap(label.y))
        return replace(each, box=move.box(each.box), pin=pin, label=label)

    boundary, inner = move.box(frame.boundary), frame.wiring
    wiring = kdb.Box(
        boundary.left + inner.left - frame.boundary.left,
        boundary.bottom + inner.bottom - frame.boundary.bottom,
        boundary.right + inner.right - frame.boundary.right,
        boundary.top + inner.top - frame.boundary.top,
    )
    cuts = tuple((name, move.box(box)) for name, box in frame.cuts)
    return replace(frame, boundary=boundary, wiring=wiring, ports=tuple(port(each) for each in frame.ports), cuts=cuts)


def _drawn(frame: Frame) -> dict[str, kdb.Region]:
    """Return the metal and cuts of a frame per layer."""
    found: dict[str, kdb.Region] = defaultdict(kdb.Region)
    for port in frame.ports:
        found[port.layer].insert(port.box)
    for name, box in frame.cuts:
        found[name].insert(box)
    return found


def _less(shape: kdb.Box | kdb.Polygon | kdb.Region, gone: kdb.Region) -> kdb.Region:
    """Return a shape without ``gone``."""
    region = kdb.Region()
    region.insert(shape)
    return region - gone


def _rect(box: kdb.Box) -> Rect:
    return box.left, box.bottom, box.right, box.top
