"""Nets that are each other's mirror image: routed once, with costs that count both sides of the axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutkit.route.metal import NetMetal
from layoutkit.route.path_search import EdgeCosts
from layoutkit.route.routes import NetRequest, Patch, Via, Wire

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    import numpy.typing as npt

    from layoutkit.route.board import Board
    from layoutkit.route.routes import Point, Rect

    IntArray = npt.NDArray[np.int64]


def axis_between(first: NetRequest, second: NetRequest) -> int | None:
    """Return the vertical axis about which the terminals of two nets are mirror images [dbu]; None if there is none."""
    boxes = [terminal.box for net in (first, second) for terminal in net.terminals]
    axis, rest = divmod(min(box.left for box in boxes) + max(box.right for box in boxes), 2)
    return None if rest or _reflected(first, axis) != _reflected(second) else axis


def misfits(nets: Sequence[NetRequest], axis_x: int) -> dict[str, str]:
    """Return each net that cannot mirror the net it should, and why."""
    by_name = {net.name: net for net in nets}
    found = {}
    for net in nets:
        if net.mirror_of is None:
            continue
        original = by_name[net.mirror_of]
        if original.width != net.width:
            found[net.name] = "the two nets have wires of different width"
        elif _reflected(original, axis_x) != _reflected(net):
            found[net.name] = "the terminals of the two nets are not mirror images"
    return found


def _reflected(net: NetRequest, axis_x: int | None = None) -> list[tuple[str, Rect]]:
    """Return layer and box of a net's terminals, mirrored about ``axis_x`` where one is given."""
    found = []
    for terminal in net.terminals:
        box = terminal.box
        sides = (box.left, box.right) if axis_x is None else (2 * axis_x - box.right, 2 * axis_x - box.left)
        found.append((terminal.layer, (sides[0], box.bottom, sides[1], box.top)))
    return sorted(found)


class Mirror:
    """The mirrored pairs of one request.

    A pair that has no symmetric way is dissolved: its nets are routed one by one, and ``unmirrored`` says why.

    Args:
        board: Board with tracks that are symmetric about ``options.axis_x``.
        nets: The request; the pairs in it fit, see ``misfits``.
    """

    def __init__(self, board: Board, nets: Sequence[NetRequest]) -> None:
        self.board = board
        self.axis = board.options.axis_x or 0
        self.wanted = {net.name: net.mirror_of for net in nets if net.mirror_of is not None}
        self.twins = {net.mirror_of: net for net in nets if net.mirror_of is not None}
        self.reasons: dict[str, str] = {}
        if self.twins:
            at = {x: column for column, x in enumerate(board.tracks.xs)}
            self.columns = [at.get(2 * self.axis - x, -1) for x in board.tracks.xs]

    def units(self, order: Sequence[NetRequest]) -> list[tuple[NetRequest, ...]]:
        """Return the nets in their order, a net and its twin together."""
        second = {twin.name for twin in self.twins.values()}
        return [
            (net, self.twins[net.name]) if net.name in self.twins else (net,) for net in order if net.name not in second
        ]

    def dissolve(self, twin: NetRequest, reason: str) -> None:
        """Let ``twin`` and its original be routed one by one from now on."""
        self.reasons[twin.name] = f"there is no symmetric way ({reason})"
        self.twins = {name: other for name, other in self.twins.items() if other is not twin}

    def costs(self, own: EdgeCosts, twins: EdgeCosts) -> EdgeCosts:
        """Return what an edge costs a net together with what its image costs the twin; the axis may not be crossed."""
        import numpy as np

        columns = np.asarray(self.columns)
        image = EdgeCosts(
            np.roll(twins.right, 1, axis=2)[:, :, columns], twins.up[:, :, columns], twins.via[:, :, columns]
        )
        both = []
        for one, other in ((own.right, image.right), (own.up, image.up), (own.via, image.via)):
            closed = (one < 0) | (other < 0)
            closed[:, :, columns < 0] = True
            both.append(np.where(closed, -1, one + other))
        costs = EdgeCosts(*both)
        self._keep_off_axis(costs)
        return costs

    def image(self, metal: NetMetal) -> NetMetal:
        """Return the mirror image of a net's metal."""
        tracks = self.board.tracks
        paths = []
        for path in metal.paths:
            places = [tracks.place(node) for node in path]
            paths.append([tracks.node(level, self.columns[column], row) for level, column, row in places])
        wires = {wire: Wire(wire.layer, tuple(map(self._point, wire.points)), wire.width) for wire in metal.wires}
        return NetMetal(
            paths=paths,
            wires=list(wires.values()),
            vias=[Via(via.cut, 2 * self.axis - via.x, via.y, via.columns, via.rows) for via in metal.vias],
            patches=[Patch(patch.layer, self._rect(patch.rect)) for patch in metal.patches],
            order=[
                wires[entry] if isinstance(entry, Wire) else (entry[0], 2 * self.axis - entry[1], entry[2])
                for entry in metal.order
            ],
        )

    def are_images(self, one: NetMetal, other: NetMetal) -> bool:
        """Return whether two nets are mirror images, with their vias in the same order."""
        images = [(via.cut, 2 * self.axis - via.x, via.y, via.columns, via.rows) for via in one.vias]
        same_vias = images == [(via.cut, via.x, via.y, via.columns, via.rows) for via in other.vias]
        return same_vias and self._same(one, other)

    def _same(self, one: NetMetal, other: NetMetal) -> bool:
        """Return whether metal and cuts of two nets are mirror images."""
        stack = self.board.stack
        image = sorted((level, self._rect(rect)) for level, rect in one.rects(stack))
        cuts = sorted((cut, self._rect(rect)) for cut, rect in one.cuts(stack))
        return image == other.rects(stack) and cuts == other.cuts(stack)

    def unmirrored(self, metal: Mapping[str, NetMetal | None]) -> tuple[tuple[str, str], ...]:
        """Return every net that was to be a mirror image and is none, and why."""
        found = []
        for name, of in self.wanted.items():
            one, other = metal.get(of), metal.get(name)
            if one is not None and other is not None and self._same(one, other):
                continue
            found.append((name, self.reasons.get(name, "other nets left no symmetric way")))
        return tuple(found)

    def _keep_off_axis(self, costs: EdgeCosts) -> None:
        """Close everything that would come too near to its own image."""
        import numpy as np

        stack, off = self.board.stack, np.abs(np.asarray(self.board.tracks.xs) - self.axis)
        crossing = np.asarray(self.board.tracks.xs[:-1]) < self.axis
        crossing &= np.asarray(self.board.tracks.xs[1:]) > self.axis
        widths = {net.name: net.width for net in self.twins.values()}
        for level, conductor in enumerate(stack.conductors):
            half = max(stack.width(level, width) for width in widths.values()) // 2
            near = 2 * (off - half) < conductor.space
            costs.up[level][:, near] = -1
            costs.right[level][:, near] = -1
            costs.right[level][:, :-1][:, near[1:] | crossing] = -1
            for cut in (level - 1, level):
                if 0 <= cut < len(stack.cuts):
                    costs.via[cut][:, 2 * (off - stack.pad(cut, level)[0]) < conductor.space] = -1

    def _point(self, point: Point) -> Point:
        return 2 * self.axis - point[0], point[1]

    def _rect(self, rect: Rect) -> Rect:
        return 2 * self.axis - rect[2], rect[1], 2 * self.axis - rect[0], rect[3]
