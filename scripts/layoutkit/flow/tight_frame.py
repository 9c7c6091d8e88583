"""Move the frame of a routed cell inwards: what the wires leave free between the modules and the boundary is taken out.

         before                      after
    =====================
              |                =====================   rail
    ----+     |                ----+     |
        |     |                    |     |             a wire keeps its shape and its distances
    [ modules     ]            [ modules     ]

The metal of each net outside of the modules is cut into blocks, each of which stays rigid: vias, patches, wires across,
ends of wires along, rails, pins. The blocks move inwards one after the other, the innermost first, each as far as the
rules allow; wires between blocks get shorter. Each side of the cell moves on its own. Where the cell gets too long for
its width, the longer sides move less far.
"""

from __future__ import annotations

from collections import defaultdict
from copy import copy
from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

import klayout.db as kdb
import numpy as np

from layoutkit.flow.inward_moves import (
    MetalBox,
    Move,
    RigidBlock,
    Span,
    Way,
    moved_frame,
    moved_net,
    owner_of,
    rail_links,
    shrunk,
    touches_strap,
    without_links,
)
from layoutkit.route.metal import cut_index, pads
from layoutkit.route.routes import rect_of
from layoutkit.route.routing_stack import fixed_metal, make_stack, wide_parts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from layoutkit.flow.inward_moves import RailLink
    from layoutkit.flow.matched_wires import Obstacle, Obstacles
    from layoutkit.flow.port_frame import Frame, Port
    from layoutkit.flow.port_places import Side
    from layoutkit.rectangle import Rect
    from layoutkit.route.routes import RoutedNet, RoutingResult
    from layoutkit.technology import Conductor, Technology

    IntArray = npt.NDArray[np.int64]

ROUNDS = 12
"""How often blocks are joined because shorter wires would break a rule, before a side is left as it is."""


MISMATCH = 0.02
"""Difference in length, as a share, up to which the nets of a pair are equally long."""
FREE = 1 << 60
"""A distance that limits nothing. [dbu]"""
WAYS: dict[Side, tuple[int, int]] = {"left": (0, -1), "right": (0, 1), "bottom": (1, -1), "top": (1, 1)}
"""Axis and sign of each side."""
KEEPOUT = -1
"""Space of an area that metal may touch."""


class Kept(NamedTuple):
    """Pairs that stay alike: mirror images about ``axis_x`` [dbu], and, with ``lengths``, nets of equal length."""

    axis_x: int | None
    lengths: bool = False


def tighten(
    technology: Technology,
    frame: Frame,
    result: RoutingResult,
    obstacles: Obstacles,
    keepouts: Sequence[Obstacle],
    kept: Kept,
) -> tuple[Frame, RoutingResult]:
    """Return the frame and the routes with the free room between modules and boundary taken out.

    Args:
        technology: The rules.
        frame: The frame that the routes end at.
        result: The routes; where a net failed, everything is returned as it is.
        obstacles: The metal of modules and frame.
        keepouts: Areas without wires.
        kept: Which pairs of nets stay alike.
    """
    if result.failed:
        return frame, result
    whole = FramedCell(technology, frame, result, obstacles, keepouts, kept)
    best = _tightest(whole)
    width, height = best.frame.boundary.width(), best.frame.boundary.height()
    aspect = frame.max_aspect
    if aspect is not None and max(width, height) > aspect * min(width, height):
        whole.least = ceil(height / aspect), ceil(width / aspect)
        best = _tightest(whole)
    return best.frame, best.result


def equally_long(result: RoutingResult) -> frozenset[tuple[str, ...]]:
    """Return the nets that should be mirror images and are about as long as each other."""
    lengths = {pair.nets: [result.net(name).wire_length for name in pair.nets] for pair in result.mirrored}
    return frozenset(nets for nets, its in lengths.items() if max(its) - min(its) <= MISMATCH * max(its))


def _tightest(whole: FramedCell) -> FramedCell:
    """Return a cell with all sides moved inwards."""
    upright = whole.tightened((Way(1, 1),)).tightened((Way(1, -1),))
    tried = [upright.tightened((Way(0, 1),)).tightened((Way(0, -1),))]
    box = whole.frame.boundary
    if whole.axis_x is not None and whole.result.mirrored and box.left + box.right == 2 * whole.axis_x:
        tried.append(upright.tightened((Way(0, 1, whole.axis_x), Way(0, -1, whole.axis_x))))
    return min(tried, key=lambda each: (len(whole.spoiled(each)), each.frame.boundary.area()))


def with_frame(obstacles: Obstacles, old: Frame, new: Frame) -> Obstacles:
    """Return metal with that of the frame ``new`` in the place of that of ``old``."""
    found = _without(obstacles, old)
    for port in new.ports:
        found.setdefault(port.layer, []).append((port.box, port.name))
    return found


class _Fixed:
    """The metal and cuts that stay where they are, and areas without wires.

    Args:
        metal: Net and rectangle.
        areas: The same of areas.
        lowest: Layers that reach as far as they like.
    """

    def __init__(
        self, metal: Sequence[tuple[str, MetalBox]], areas: Sequence[tuple[str, MetalBox]], lowest: Collection[str]
    ) -> None:
        self.metal = metal
        self._all = [*metal, *areas]
        self._rects = np.array([piece.rect for _, piece in self._all], dtype=np.int64).reshape(-1, 4)
        above = [number for number, (_, piece) in enumerate(metal) if piece.layer not in lowest]
        self._above = self._rects[above]
        self.space = max((piece.space for _, piece in metal), default=0)

    def outer_edge(self, way: Way) -> int:
        """Return how far the metal above the lowest layers reaches to one side. [dbu]"""
        return int(np.max(way.highs(self._above), initial=-FREE))

    def beyond(self, way: Way, distance: int) -> Iterator[tuple[str, MetalBox]]:
        """Yield net and rectangle of what reaches further to one side than a distance. [dbu]"""
        for number in np.flatnonzero(way.highs(self._rects) > distance).tolist():
            yield self._all[number]


class FramedCell:
    """A routed cell, of which sides are moved one after the other.

    Attributes:
        least: Width and height that the boundary keeps. [dbu]
    """

    def __init__(
        self,
        technology: Technology,
        frame: Frame,
        result: RoutingResult,
        obstacles: Obstacles,
        keepouts: Sequence[Obstacle],
        kept: Kept,
    ) -> None:
        self.technology, self.frame, self.result, (self.axis_x, self.keep_lengths) = technology, frame, result, kept
        self.least = 0, 0
        self.stack = make_stack(technology, [conductor.name for conductor in technology.conductors], [])
        self.keepouts = [MetalBox(each.layer, rect_of(each.box), KEEPOUT) for each in keepouts if each.kind != "metal"]
        others = _without(obstacles, frame)
        self.own: dict[tuple[str, str], kdb.Region] = {}
        for layer, shapes in others.items():
            for shape, net in shapes:
                if net is not None:
                    self.own.setdefault((net, layer), kdb.Region()).insert(shape)
        fixed = [
            (piece.net or "", self._piece(piece.layer, piece.rect, wide=piece.wide))
            for piece in fixed_metal(self.stack, (), others, ())
        ]
        lowest = {self.stack.conductors[0].name, self.stack.cuts[0].name}
        self.fixed = _Fixed(fixed, [("", piece) for piece in self.keepouts], lowest)

    def spoiled(self, other: FramedCell) -> frozenset[str]:
        """Return the nets that are mirror images, or as long as each other where that counts, here only."""
        lost = [one - two for one, two in zip(self._alike(), other._alike(), strict=True)]
        return frozenset(net for nets in frozenset().union(*lost) for net in nets)

    def _alike(self) -> tuple[frozenset[tuple[str, ...]], frozenset[tuple[str, ...]]]:
        """Return the nets that are mirror images as the router drew them, and those whose equal lengths count."""
        if self.axis_x is None:
            return frozenset(), frozenset()
        image = kdb.Trans(2, True, 2 * self.axis_x, 0)  # at the vertical axis
        exact = set()
        for pair in self.result.mirrored:
            one, other = (self._metal(self.result.net(name)) for name in (pair.nets[0], pair.nets[-1]))
            if pair.exact and all((one[n].transformed(image) ^ other[n]).is_empty() for n in {*one, *other}):
                exact.add(pair.nets)
        return frozenset(exact), equally_long(self.result) if self.keep_lengths else frozenset()

    def _metal(self, net: RoutedNet) -> dict[str, kdb.Region]:
        found: dict[str, kdb.Region] = defaultdict(kdb.Region)
        for layer, rect in net.metal:
            found[layer].insert(kdb.Box(*rect))
        for via in net.vias:
            found[via.cut].insert(kdb.Box(via.x - 1, via.y - 1, via.x + 1, via.y + 1))
        return found

    def tightened(self, ways: tuple[Way, ...]) -> FramedCell:
        """Return the cell with one side moved inwards, or with two opposite sides moved equally far."""
        beside = self.moved_inwards(ways, over=False)
        links = beside.links(ways)
        if not links:
            return beside
        for start in [*([beside.without(links)] if any(links.values()) else []), beside]:
            over = start.moved_inwards(ways, over=True)
            whole = start is beside or over.joins(links)
            if whole and over.faults_at_rails(ways) <= beside.faults_at_rails(ways):
                return over
        return beside

    def links(self, ways: tuple[Way, ...]) -> dict[int, list[RailLink]]:
        """Return what joins each rail at the sides in question to straps of its net, by the number of the rail."""
        sides = {side for side, way in WAYS.items() if way in {(each.axis, each.sign) for each in ways}}
        routed = {net.name: net for net in self.result.nets if net.success}
        return {
            number: rail_links(self.stack, routed[port.name], port, self._straps(port))
            for number, port in enumerate(self.frame.ports)
            if port.rail and port.side in sides and port.name in routed
        }

    def without(self, links: Mapping[int, Sequence[RailLink]]) -> FramedCell:
        """Return the cell without these links."""
        other, nets = copy(self), {net.name: net for net in self.result.nets}
        for number, found in links.items():
            name = self.frame.ports[number].name
            nets[name] = without_links(self.stack, nets[name], found)
        other.result = replace(self.result, nets=tuple(nets[net.name] for net in self.result.nets))
        return other

    def joins(self, links: Mapping[int, Sequence[RailLink]]) -> bool:
        """Return whether the rails touch the straps that were linked to them."""
        rails = [(self.frame.ports[number], link.at_strap) for number, found in links.items() for link in found]
        return all(touches_strap(self.stack, rail, via, self._straps(rail)) for rail, via in rails)

    def _straps(self, rail: Port) -> kdb.Region:
        """Return the metal in modules that is on the net and the conductor of a rail."""
        return self.own.get((rail.name, rail.layer), kdb.Region()).merged()

    def faults_at_rails(self, ways: tuple[Way, ...]) -> int:
        """Return the number of places where metal of a net with a rail, or a hole in it, breaks a rule."""
        found = 0
        sides = [side for side, way in WAYS.items() if way in {(each.axis, each.sign) for each in ways}]
        for net in sorted({port.name for port in self.frame.ports if port.rail and port.side in sides}):
            for level, conductor in enumerate(self.technology.conductors):
                region = self._mobile_metal(net, conductor) + self.own.get((net, conductor.name), kdb.Region())
                found += region.merged().space_check(self.stack.space(level, wide=False)).count()
                found += sum(polygon.area() < conductor.area for polygon in region.merged().each())
                found += region.merged().holes().with_area(0, self.stack.least_hole[level], False).count()
                if any(port.rail and port.layer == conductor.name for port in self.frame.of(net)):
                    found += self.near_wide(net, level, region.merged())
        return found

    def near_wide(self, net: str, level: int, region: kdb.Region) -> int:
        """Return the number of places where other metal is too near to what a rail makes wide by lying over it."""
        conductor = self.stack.conductors[level]
        wide, others = kdb.Region(), kdb.Region()
        for box in wide_parts(self.stack, level, region):
            wide.insert(box)
        for name, piece in self.fixed.metal:
            if piece.layer == conductor.name and name != net:
                others.insert(kdb.Box(*piece.rect))
        for name in {each.name for each in self.result.nets} - {net}:
            others += self._mobile_metal(name, conductor)
        space = self.stack.space(level, wide=True)
        return int(wide.merged().separation_check(others.not_interacting(region), space).count())

    def moved_inwards(self, ways: tuple[Way, ...], *, over: bool) -> FramedCell:
        """Return the cell with sides moved inwards; with ``over``, rails may lie over metal of their nets then."""
        rigid: dict[str, list[tuple[int, int]]] = {}
        still: set[str] = set()
        for _ in range(ROUNDS):
            squeeze = Squeeze(self, ways, rigid, over=over)
            move = squeeze.move()
            broken = list(self._broken(move))
            if not broken:
                other = self._moved(move)
                spoiled = sorted(self.spoiled(other) - still)
                if not spoiled:
                    return other
                still.update(spoiled)
                broken = [(move.images.get(net, net), squeeze.inner(net)) for net in spoiled]
            for net, extent in broken:
                rigid.setdefault(net, []).append(extent)
        return self

    def _broken(self, move: Move) -> Iterator[tuple[str, tuple[int, int]]]:
        """Yield net and extent of metal, or of holes in it, that the move would make smaller than the rules allow."""
        for net in sorted({*(net.name for net in self.result.nets), *(port.name for port in self.frame.ports)}):
            for level, conductor in enumerate(self.technology.conductors):
                mobile = self._mobile_metal(net, conductor)
                if mobile.is_empty():
                    continue
                region = mobile + self.own.get((net, conductor.name), kdb.Region())
                for polygon in region.merged().interacting(mobile).each():
                    least = conductor.area, self.stack.least_hole[level]
                    for extent in shrunk(polygon, net, move, least):
                        yield move.images.get(net, net), extent

    def mobile(self, way: Way) -> Iterator[tuple[str, Span]]:
        """Yield net and metal of wires, vias, ports and rails, as far as it is rigid in one direction."""
        for net, piece in self._rigid(way):
            yield net, way.span(piece)
        for each in self.result.nets:
            for layer, rect in each.metal:
                for span in _ends(way.span(self._piece(layer, rect))):
                    yield each.name, span

    def _rigid(self, way: Way) -> Iterator[tuple[str, MetalBox]]:
        """Yield net and rectangle of all that keeps its shape; of wires it is the ends only."""
        for net in self.result.nets:
            for via in net.vias:
                rects = self.stack.cut_rects(cut_index(self.stack, via.cut), via.x, via.y, via.columns, via.rows)
                yield net.name, self._piece(via.cut, rect_of(sum((kdb.Box(*rect) for rect in rects), kdb.Box())))
                for level, rect in pads(self.stack, via):
                    yield net.name, self._piece(self.stack.conductors[level].name, rect)
        for name, box in self.frame.cuts:
            yield owner_of(self.frame, box), self._piece(name, rect_of(box))
        for port in self.frame.ports:
            axis, sign = WAYS[port.side]
            piece = self._piece(port.layer, rect_of(port.box))
            if axis != way.axis:
                if not port.rail:  # a rail reaches from boundary to boundary
                    yield port.name, piece
            elif sign == way.sign:
                for part in [piece] if port.rail else way.stub(piece):
                    yield port.name, part

    def _piece(self, layer: str, rect: Rect, *, wide: bool = False) -> MetalBox:
        """Return a rectangle, which may be part of ``wide`` metal, with the distance that others keep to it."""
        for cut in self.stack.cuts:
            if cut.name == layer:
                reach = cut.array_reach + self.technology.grid if cut.array_reach > cut.array_space else 0
                return MetalBox(layer, rect, max(cut.spacing(), reach))
        level = self.stack.index(layer)
        return MetalBox(layer, rect, self.stack.space(level, wide=wide or self.stack.is_wide(level, rect)))

    def _mobile_metal(self, net: str, conductor: Conductor) -> kdb.Region:
        """Return the wires, ports and rails of a net on one conductor."""
        found = kdb.Region()
        for layer, rect in (entry for each in self.result.nets if each.name == net for entry in each.metal):
            if layer == conductor.name:
                found.insert(kdb.Box(*rect))
        for port in self.frame.of(net):
            if port.layer == conductor.name:
                found.insert(port.box)
        return found

    def _moved(self, move: Move) -> FramedCell:
        other = copy(self)
        other.frame = moved_frame(self.frame, move, self.technology)
        other.result = replace(self.result, nets=tuple(moved_net(net, move) for net in self.result.nets))
        return other


class Squeeze:
    """The blocks at one side of a cell, or at two opposite ones, and how far each may move inwards."""

    def __init__(
        self, cell: FramedCell, ways: tuple[Way, ...], rigid: Mapping[str, list[tuple[int, int]]], *, over: bool
    ) -> None:
        self.cell, self.ways, self.over = cell, ways, over
        self.cuts = {cut.name for cut in cell.stack.cuts}
        frame = cell.frame
        self.edge = max(way.of(frame.boundary) for way in ways)
        self.modules = max(cell.fixed.outer_edge(way) for way in ways)
        self.core = max(way.of(frame.core) for way in ways)
        self.inset = min(way.of(frame.boundary) - way.of(frame.wiring) for way in ways)
        pairs = [pair.nets for pair in cell.result.mirrored if len(pair.nets) == 2]
        along_axis = cell.axis_x is not None and all(way.axis == 1 for way in ways)
        self.images = {other: one for one, other in pairs} if along_axis or len(ways) > 1 else {}
        whole = [way.span(MetalBox("", rect_of(frame.boundary))) for way in ways]
        self.across = [(span.start, span.end) for span in whole]
        self.near: list[dict[str, list[_Entry]]] = [{} for _ in ways]
        found: dict[str, list[_Entry]] = {}
        for side, way in enumerate(ways):
            for net, span in cell.mobile(way):
                found.setdefault(self.images.get(net, net), []).append(self._enter(side, span, net))
        self.still: dict[str, RigidBlock] = {}
        self.blocks: list[tuple[str, RigidBlock, list[_Entry]]] = []
        for net, entries in sorted(found.items()):
            extents = [(each.span.low, each.span.high) for each in entries]
            still, *others = _united([(-FREE, self.modules), *extents, *rigid.get(net, ())])
            self.still[net] = RigidBlock(*still)
            for low, high in others:
                here = [each for each in entries if low <= each.span.low <= high]
                self.blocks.append((net, RigidBlock(low, high), here))
        beyond = self.hindering()
        for side, way in enumerate(ways):
            for net, piece in cell.fixed.beyond(way, beyond):
                self._enter(side, way.span(piece), net)

    def hindering(self) -> int:
        """Return how far out metal of modules must reach to limit any move. [dbu]

        No block moves further than to the modules, or the outermost than by the width of the frame, and metal counts
        up to its space away from a block.
        """
        widest = max(0, self.edge - self.core)
        outer = min((block.low for _, block, _ in self.blocks if block.high == self.edge), default=self.edge)
        return min(self.modules, outer - widest, self.core) - max(self.inset, self.cell.fixed.space, self._space())

    def _space(self) -> int:
        """Return the largest distance that a block keeps. [dbu]"""
        return max((entry.span.space for _, _, entries in self.blocks for entry in entries), default=0)

    def _enter(self, side: int, span: Span, net: str) -> _Entry:
        entry = _Entry(span, side, net, (span.start, span.end) == self.across[side])
        self.near[side].setdefault(span.layer, []).append(entry)
        return entry

    def move(self) -> Move:
        """Return the largest move that keeps all distances."""
        moved = {net: [block] for net, block in self.still.items()}
        for net, block, entries in sorted(self.blocks, key=lambda each: (each[1], each[0])):
            if block.high < self.edge:
                by = self._limit(entries, block.low - self.modules)
                moved[net].append(block._replace(by=by))
                for entry in entries:
                    entry.by = by
        outer = [each for each in self.blocks if each[1].high == self.edge]
        with_edge = [entry for _, _, entries in outer for entry in entries]
        own = {id(entry) for entry in with_edge}
        limit = min(max(0, self.edge - self.core), self._spare())
        for entry in (entry for near in self.near for layer in near.values() for entry in layer):
            gap = self.edge - entry.span.high
            if entry.span.space != KEEPOUT and gap >= 0 and id(entry) not in own:
                limit = min(limit, entry.by + gap - (0 if entry.rail else min(self.inset, gap)))
        by = self._over(with_edge, limit) if self.over else self._limit(with_edge, limit)
        for net, block, _ in outer:
            moved[net].append(block._replace(by=by))
        blocks = {net: tuple(sorted(each)) for net, each in moved.items()}
        return Move(self.ways, blocks, self.images, (self.edge, by))

    def _spare(self) -> int:
        """Return how far each side may move until the boundary is as small as allowed. [dbu]"""
        box, (width, height) = self.cell.frame.boundary, self.cell.least
        spare = box.width() - width if self.ways[0].axis == 0 else box.height() - height
        return spare // len(self.ways)

    def inner(self, net: str) -> tuple[int, int]:
        """Return the extent of all blocks of a net that do not touch the boundary."""
        name = self.images.get(net, net)
        highs = [block.high for other, block, _ in self.blocks if other == name and block.high < self.edge]
        return -FREE, max(highs, default=self.still[name].high)

    def _limit(self, entries: Sequence[_Entry], limit: int) -> int:
        """Return how far some spans may move together, at most ``limit``."""
        rooms = (_room(one.span, other.span, other.by) for one, other in self._further_in(entries))
        return self._on_grid(min(limit, *rooms, FREE))

    def _over(self, entries: Sequence[_Entry], limit: int) -> int:
        """Return the same where metal may end up over metal of its own net that lies further in.

        The two touch, or keep their distance. No wire gets shorter than it is wide.
        """
        between: list[tuple[int, int]] = []
        for one, other in self._further_in(entries):
            gap = one.span.low - other.span.high + other.by
            if one.net != other.net or one.span.layer in self.cuts or not _meet(one.span, other.span):
                limit = min(limit, _room(one.span, other.span, other.by))
                continue
            between.append((gap - max(one.span.space, other.span.space), gap))
            if not one.rail:
                limit = min(limit, one.span.low - other.span.low + other.by)
        for least, most in sorted(between, reverse=True):
            if least < limit < most:
                limit = least
        return self._on_grid(limit)

    def _further_in(self, entries: Sequence[_Entry]) -> Iterator[tuple[_Entry, _Entry]]:
        """Yield each of ``entries`` with every other span of its layer that lies further in."""
        own = {id(entry) for entry in entries}
        for entry in entries:
            for other in self.near[entry.side].get(entry.span.layer, ()):
                if other.span.high <= entry.span.low and id(other) not in own:
                    yield entry, other

    def _on_grid(self, length: int) -> int:
        grid = self.cell.technology.grid
        return max(0, length) // grid * grid


@dataclass
class _Entry:
    """A span at one of the sides in question, and how far it moves; a rail reaches from boundary to boundary."""

    span: Span
    side: int
    net: str
    rail: bool = False
    by: int = 0


def _room(span: Span, other: Span, moved: int) -> int:
    """Return how far a span may move towards another, which is further inside and moves by ``moved``."""
    space = 0 if KEEPOUT in (span.space, other.space) else max(span.space, other.space)
    if span.start >= other.end + space or other.start >= span.end + space:
        return FREE  # they pass each other
    gap = span.low - other.high
    return moved + gap - min(space, gap)


def _meet(one: Span, other: Span) -> bool:
    """Return whether two spans would touch if one moved far enough."""
    return one.start < other.end and other.start < one.end


def _ends(span: Span) -> Iterator[Span]:
    """Yield the parts of metal that keep their shape: its two ends where it runs inwards, else all of it."""
    width = span.end - span.start
    if span.high - span.low <= 2 * width:
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


def _without(obstacles: Obstacles, frame: Frame) -> Obstacles:
    """Return metal and cuts without those of a frame."""
    gone = _drawn(frame)
    return {layer: [(_less(shape, gone[layer]), net) for shape, net in obstacles[layer]] for layer in obstacles}
