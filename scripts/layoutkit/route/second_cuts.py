"""Give each via that has a single cut a second one where the rules leave room, after all nets are routed.

single        beside it       about it
+---+        +-------+       +-------+
| x |        | x   x |       | x | x |      one of the two cuts stays on the track, or both are beside it
+---+        +-------+       +-------+

Where the larger pad leaves too narrow a gap to other metal of the net, the gap is filled.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import klayout.db as kdb

from layoutkit.rectangle import Occupancy, Shape, touches
from layoutkit.route.metal import Finisher, NetMetal, cut_index, pads, wire_rects
from layoutkit.route.routes import Patch, SingleCut

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from layoutkit.rectangle import Rect
    from layoutkit.route.board import Sheet
    from layoutkit.route.routes import NetRequest, Via

OWN_METAL = "other metal of the net"
FAR = 40
"""Track pitches from a window beyond which metal of a net cannot break a rule inside it."""


class WiredNet(NamedTuple):
    """A net that has its wires."""

    net: NetRequest
    metal: NetMetal

    @property
    def name(self) -> str:
        """Name of the net."""
        return self.net.name


class _Change(NamedTuple):
    """A via in the place of another, and metal that fills gaps beside it: its level and rectangle."""

    via: Via
    fills: tuple[tuple[int, Rect], ...] = ()


class SecondCuts:
    """Adds cuts to the vias of nets that are entered on a board.

    Args:
        board: Holds the metal of all nets.
    """

    def __init__(self, board: Sheet) -> None:
        self.board, self.stack = board, board.stack
        self._entered: list[tuple[str, Shape]] = []
        self._own: dict[str, Occupancy] = {}
        """Metal of the nets, fixed metal included, found by place."""

    def add(
        self, nets: Sequence[WiredNet], axis_x: int | None = None, windows: Sequence[Rect] | None = None
    ) -> dict[str, tuple[SingleCut, ...]]:
        """Give single cuts of ``nets`` a second one and return, per net, those that remain and why.

        Args:
            nets: One net, or two whose wires are mirror images.
            axis_x: Where it is given, a via and its mirror image get a second cut together, or neither does. [dbu]
            windows: Where the vias are that may get one; None for all. [dbu]
        """
        self._own = {net.name: self._found_by_place(net, windows) for net in nets}
        left: dict[str, list[SingleCut]] = {net.name: [] for net in nets}
        before = [replace(net.metal, vias=list(net.metal.vias), patches=list(net.metal.patches)) for net in nets]
        places = {(via.cut, via.x, via.y): (net, number) for net in nets for number, via in enumerate(net.metal.vias)}
        done: set[tuple[str, int, int]] = set()
        for (cut, x, y), place in list(places.items()):
            if (cut, x, y) in done or not is_inside(x, y, windows):
                continue
            ends = [place]
            image = None if axis_x is None or x == axis_x else 2 * axis_x - x
            if image is not None and (cut, image, y) in places:
                ends.append(places[cut, image, y])
                done.add((cut, image, y))
            if any(net.metal.vias[number].columns * net.metal.vias[number].rows > 1 for net, number in ends):
                continue
            reason = self._widen(ends, axis_x)
            for net, number in ends if reason else ():
                at = net.metal.vias[number]
                left[net.name].append(SingleCut(at.cut, at.x, at.y, reason))
        if self._entered:
            for layer, shape in self._entered:
                self.board.occupancy.remove(layer, shape)
            self._entered = []
            for (request, metal), old in zip(nets, before, strict=True):
                self.board.exchange(request, old, metal)
        return {name: tuple(singles) for name, singles in left.items()}

    def in_the_way(self, net: WiredNet, number: int, axis_x: int | None = None) -> Iterator[set[str]]:
        """Yield, for each place of two cuts instead of a via, whose metal and cuts are too close.

        Args:
            net: A net.
            number: Index of its via.
            axis_x: Where it is given, its mirror image gets two cuts, too. [dbu]
        """
        at = net.metal.vias[number]
        ends = [(net, number)]
        places = {(via.cut, via.x, via.y): index for index, via in enumerate(net.metal.vias)}
        image = None if axis_x is None or at.x == axis_x else places.get((at.cut, 2 * axis_x - at.x, at.y))
        if image is not None:
            ends.append((net, image))
        finisher = Finisher(self.stack, self.board.occupancy, net.name, self.board.own[net.name])
        for changes in self._candidates(ends, on_axis=at.x == axis_x):
            names: set[str] = set()
            for (_, index), via in zip(ends, changes, strict=True):
                for level, rect in pads(self.stack, via):
                    names |= {shape.net or "an obstacle" for shape in finisher.in_the_way(level, rect)}
                names |= self._cuts_too_close(net, index, via)
            yield names

    def _widen(self, ends: Sequence[tuple[WiredNet, int]], axis_x: int | None) -> str:
        """Give a via, or it and its mirror image, a second cut; return why there is no room, empty if there is."""
        net, number = ends[0]
        reasons: list[str] = []
        beside_own: list[list[Via]] = []
        for vias in self._candidates(ends, on_axis=net.metal.vias[number].x == axis_x):
            reason = self._exchanged(ends, [_Change(via) for via in vias])
            if not reason:
                return ""
            reasons.append(reason)
            if reason.endswith(OWN_METAL):
                beside_own.append(vias)
        if any(not self._exchanged(ends, self._filled(net, vias, axis_x)) for vias in beside_own):
            return ""
        return "; ".join(dict.fromkeys(reasons))

    def _exchanged(self, ends: Sequence[tuple[WiredNet, int]], changes: Sequence[_Change]) -> str:
        """Exchange a via, or it and its mirror image, if there is room; return why there is none, empty if there is."""
        entered: list[tuple[str, Shape]] = []
        before: list[tuple[WiredNet, int, Via, list[Patch]]] = []
        reason = ""
        for (net, number), change in zip(ends, changes, strict=True):
            reason = self._reason_against(net, number, change)
            if reason:
                break
            entered += self._enter(net.name, change)
            before.append((net, number, net.metal.vias[number], net.metal.patches))
            self._exchange(net, number, change.via)  # the image is checked beside it: both may lie near the axis
            self._own_fills(net, change, 1)
            fills = [Patch(self.stack.conductors[level].name, rect) for level, rect in change.fills]
            net.metal.patches = [*net.metal.patches, *fills]
        if not reason:
            self._entered += entered
            return ""
        for (net, number, via, patches), change in reversed(list(zip(before, changes, strict=False))):
            self._exchange(net, number, via)
            self._own_fills(net, change, -1)
            net.metal.patches = patches
        for layer, shape in entered:
            self.board.occupancy.remove(layer, shape)
        return reason

    def _filled(self, net: WiredNet, vias: Sequence[Via], axis_x: int | None) -> list[_Change]:
        """Return a via of a net, or it and its mirror image, with metal in gaps beside it that are too narrow."""
        finisher = Finisher(self.stack, self.board.occupancy, net.name, ())
        fills: list[tuple[int, Rect]] = []
        for level, rect in pads(self.stack, vias[0]):
            name = self.stack.conductors[level].name
            metal = NetMetal(patches=[Patch(name, each) for each in (*self._own_around(net, level, rect), rect)])
            drawn = len(metal.patches)
            finisher.close_gaps(metal, level)
            # farther away, metal of the net is not looked up, so what looks like a gap may be metal
            beside = _joined_to(rect, [patch.rect for patch in metal.patches[drawn:]])
            fills += [(level, fill) for fill in beside]
        if axis_x is None:
            return [_Change(vias[0], tuple(fills))]
        images = [(level, (2 * axis_x - r[2], r[1], 2 * axis_x - r[0], r[3])) for level, r in fills]
        if len(vias) > 1:
            return [_Change(vias[0], tuple(fills)), _Change(vias[1], tuple(images))]
        return [_Change(vias[0], tuple(fills + images if vias[0].x == axis_x else fills))]

    def _candidates(self, ends: Sequence[tuple[WiredNet, int]], *, on_axis: bool) -> Iterator[list[Via]]:
        """Yield what may replace a via and its image: two cuts along a wire of the upper conductor first."""
        vias = [net.metal.vias[number] for net, number in ends]
        cut = cut_index(self.stack, vias[0].cut)
        half = (self.stack.cuts[cut].size + self.stack.cut_space(cut, 2)) // 2
        sideways = self.stack.horizontal[cut + 1]
        for columns, rows in ((2, 1), (1, 2)) if sideways else ((1, 2), (2, 1)):
            for step in (0,) if on_axis and columns == 2 else self._steps(half):
                dx, dy = (step, 0) if columns == 2 else (0, step)
                yield [
                    replace(via, x=via.x + (-dx if number else dx), y=via.y + dy, columns=columns, rows=rows)
                    for number, via in enumerate(vias)
                ]

    def _steps(self, half: int) -> Iterator[int]:
        """Yield how far two cuts may lie beside the place of one: on it, beside it, or wherever they just fit. [dbu]"""
        yield from (0, half, -half)
        step = 2 * self.stack.technology.grid
        for distance in range(step, half, step):
            yield from (distance, -distance)

    def _reason_against(self, net: WiredNet, number: int, change: _Change) -> str:
        """Return why a net cannot have this via, empty if it can."""
        finisher = Finisher(self.stack, self.board.occupancy, net.name, self.board.own[net.name])
        names, via = self.stack.conductors, change.via
        area = self.board.area
        for level, rect in (*pads(self.stack, via), *change.fills):
            if rect[0] < area[0] or rect[1] < area[1] or rect[2] > area[2] or rect[3] > area[3]:
                return "the routing area ends here"
            near = {shape.net or "an obstacle" for shape in finisher.in_the_way(level, rect)}
            if near:
                return f"{names[level].name} would come too close to {', '.join(sorted(near))}"
        if self._cuts_too_close(net, number, via):
            return f"{via.cut} would come too close to another"
        for level, rect in pads(self.stack, via):
            drawn = [rect, *(fill for at, fill in change.fills if at == level)]
            box = _region(drawn).bbox()  # fills reach farther than the pad
            before = _region(self._own_around(net, level, (box.left, box.bottom, box.right, box.top)))
            after = (before + _region(drawn)).merged()
            if self._near_line_end(after, level, via):
                return f"{via.cut} would come too close to the end of a line of {names[level].name}"
            gaps = (pair.first.length() for pair in finisher.gaps_of_wide(after, level))
            if max(gaps, default=-1) >= self.stack.least_beside[level] or self._spoils_own_metal(before, after, level):
                return f"{names[level].name} would come too close to {OWN_METAL}"
        return ""

    def _cuts_too_close(self, net: WiredNet, number: int, via: Via) -> set[str]:
        """Return whose cuts would be too close to those of a via."""
        cut = cut_index(self.stack, via.cut)
        space, found = self.stack.cuts[cut].space, set()
        kept = {
            rect
            for other in [net.metal.vias[number]]
            for rect in self.stack.cut_rects(cut, other.x, other.y, other.columns, other.rows)
        }
        for rect in self.stack.cut_rects(cut, via.x, via.y, via.columns, via.rows):
            for shape in self.board.occupancy.near(via.cut, rect, space):
                if not (shape.net == net.name and shape.rect in kept) and shape.hinders(rect, space):
                    found.add(shape.net or "an obstacle")
        finisher = Finisher(self.stack, self.board.occupancy, net.name, ())
        if finisher.dense_array(via, cut, [via], kept):
            found.add(net.name)
        return found

    def _spoils_own_metal(self, before: kdb.Region, after: kdb.Region, level: int) -> bool:
        """Return whether a pad leaves a gap, neck or small hole in a net's metal, or makes it wide.

        Args:
            before: The metal around the pad.
            after: The same with the pad, merged.
            level: Its conductor.
        """
        conductor = self.stack.conductors[level]
        euclidean = kdb.Region.Euclidian
        if not after.space_check(conductor.space, False, euclidean).is_empty():
            return True
        if not after.width_check(conductor.width, False, euclidean).is_empty():
            return True
        if not after.holes().with_area(0, self.stack.least_hole[level], False).is_empty():
            return True
        if conductor.wide_width is None:
            return False
        half = conductor.wide_width // 2
        return not (_core(after, half) - _core(before.merged(), half)).is_empty()

    def _near_line_end(self, metal: kdb.Region, level: int, via: Via) -> bool:
        """Return whether a line of the net ends nearer to the cuts of a via than narrow lines may."""
        cut = cut_index(self.stack, via.cut)
        if (cut, level) not in self.stack.line_ends:
            return False
        width, beyond = self.stack.line_ends[cut, level]
        cuts = _region(self.stack.cut_rects(cut, via.x, via.y, via.columns, via.rows))
        ends = metal.edges(kdb.EdgeMode.Convex).with_length(0, width, False)
        return not ends.enclosing_check(cuts.edges(), beyond, False, kdb.Region.Projection).is_empty()

    def _own_around(self, net: WiredNet, level: int, rect: Rect) -> list[Rect]:
        """Return the metal of a net on a level that a pad may spoil."""
        conductor = self.stack.conductors[level]
        reach = max(self.stack.reach(level), 2 * max(conductor.wide_space or 0, conductor.wide_width or 0))
        near = self._own[net.name].near(conductor.name, rect, reach + 1)  # touching counts
        return [shape.rect for shape in near]

    def _found_by_place(self, net: WiredNet, windows: Sequence[Rect] | None) -> Occupancy:
        """Return the metal of a net, fixed metal included, and of other metal only what is near some windows."""
        found, metal, stack = Occupancy(), net.metal, self.stack
        drawn = [(stack.index(wire.layer), rect) for wire in metal.wires for rect in wire_rects(wire)]
        drawn += [pad for via in metal.vias for pad in pads(stack, via)]
        drawn += [(stack.index(patch.layer), patch.rect) for patch in metal.patches]
        reach = FAR * self.board.pitch
        wider = None if windows is None else [(w[0] - reach, w[1] - reach, w[2] + reach, w[3] + reach) for w in windows]
        for level, rect in (*drawn, *self.board.own[net.name]):
            if wider is None or any(touches(rect, window) for window in wider):
                found.add(stack.conductors[level].name, Shape(rect, net.name, wide=False))
        return found

    def _own_fills(self, net: WiredNet, change: _Change, amount: int) -> None:
        own = self._own[net.name]
        for level, rect in change.fills:
            (own.add if amount > 0 else own.remove)(
                self.stack.conductors[level].name, Shape(rect, net.name, wide=False)
            )

    def _exchange(self, net: WiredNet, number: int, via: Via) -> None:
        own = self._own[net.name]
        for act, each in ((own.remove, net.metal.vias[number]), (own.add, via)):
            for level, rect in pads(self.stack, each):
                act(self.stack.conductors[level].name, Shape(rect, net.name, wide=False))
        _exchange(net.metal, number, via)

    def _enter(self, name: str, change: _Change) -> list[tuple[str, Shape]]:
        """Enter the metal and cuts of a via and what fills gaps beside it, and return what was entered."""
        via, cut = change.via, cut_index(self.stack, change.via.cut)
        entered = [
            (self.stack.conductors[level].name, Shape(rect, name, self.stack.is_wide(level, rect)))
            for level, rect in (*pads(self.stack, via), *change.fills)
        ]
        rects = self.stack.cut_rects(cut, via.x, via.y, via.columns, via.rows)
        entered += [(via.cut, Shape(rect, name, wide=False)) for rect in rects]
        for layer, shape in entered:
            self.board.occupancy.add(layer, shape)
        return entered


def is_inside(x: int, y: int, windows: Sequence[Rect] | None) -> bool:
    """Return whether a point lies in one of some windows; None stands for everywhere. [dbu]"""
    return windows is None or any(w[0] <= x <= w[2] and w[1] <= y <= w[3] for w in windows)


def _region(rects: Iterable[Rect]) -> kdb.Region:
    region = kdb.Region()
    for rect in rects:
        region.insert(kdb.Box(*rect))
    return region


def _joined_to(pad: Rect, fills: Sequence[Rect]) -> list[Rect]:
    """Return the fills that touch a pad, directly or through other fills."""
    joined = _region([pad, *fills]).merged().interacting(_region([pad]))
    return [fill for fill in fills if not (_region([fill]) & joined).is_empty()]


def _core(region: kdb.Region, half: int) -> kdb.Region:
    """Return the parts of a region that are wider than twice ``half``."""
    return region.sized(-half - 1).sized(half + 1)


def _exchange(metal: NetMetal, number: int, via: Via) -> None:
    old = metal.vias[number]
    metal.vias[number] = via
    metal.order = [
        (via.cut, via.x, via.y) if entry == (old.cut, old.x, old.y) else entry  # what NetMetal.path finds it by
        for entry in metal.order
    ]
