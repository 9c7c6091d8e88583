"""Nets whose wires are to be mirror images: pairs of nets, and nets that are their own image, and what became of them.

A unit is what is routed together: a net alone, a net that is to be its own image, or a net and its twin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from layoutkit.route.metal import NetMetal
from layoutkit.route.path_search import EdgeCosts
from layoutkit.route.routes import Mirrored, NetRequest, Patch, Via, Wire

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
    return None if rest or reflected(first, axis) != reflected(second) else axis


def misfits(nets: Sequence[NetRequest]) -> dict[str, str]:
    """Return each net that cannot mirror the net it should, and why."""
    by_name = {net.name: net for net in nets}
    return {
        net.name: "the two nets have wires of different width"
        for net in nets
        if net.mirror_of is not None and by_name[net.mirror_of].width != net.width
    }


def reflected(net: NetRequest, axis_x: int | None = None) -> list[tuple[str, Rect]]:
    """Return layer and box of a net's terminals, mirrored about ``axis_x`` where one is given."""
    found = []
    for terminal in net.terminals:
        box = terminal.box
        sides = (box.left, box.right) if axis_x is None else (2 * axis_x - box.right, 2 * axis_x - box.left)
        found.append((terminal.layer, (sides[0], box.bottom, sides[1], box.top)))
    return sorted(found)


@dataclass(frozen=True)
class Unit:
    """Nets that are routed together: one, or one and the twin that is to be its mirror image.

    ``own_image`` is True for a net that is to be its own mirror image.
    """

    nets: tuple[NetRequest, ...]
    own_image: bool = False

    @property
    def is_mirrored(self) -> bool:
        """Whether its wires are to be mirror images."""
        return self.own_image or len(self.nets) == 2


class Mirror:
    """The mirrored units of one request.

    A unit that has no symmetric way is dissolved: its nets are routed one by one, and ``reasons`` says why.

    Args:
        board: Board with tracks that are symmetric about ``options.axis_x``.
        nets: The request.
    """

    def __init__(self, board: Board, nets: Sequence[NetRequest]) -> None:
        self.board, self.nets = board, list(nets)
        self.axis = board.options.axis_x or 0
        self.twins = {net.mirror_of: net for net in nets if net.mirror_of is not None}
        self.own_images = {net.name for net in nets if net.symmetric}
        self.reasons: dict[str, str] = {}
        at = {x: column for column, x in enumerate(board.tracks.xs)}
        wanted = bool(self.twins or self.own_images)
        self.columns = [at.get(2 * self.axis - x, -1) for x in board.tracks.xs] if wanted else []

    def units(self, order: Sequence[NetRequest]) -> list[Unit]:
        """Return the nets in their order, a net and its twin together."""
        second = {twin.name for twin in self.twins.values()}
        return [
            Unit((net, self.twins[net.name]) if net.name in self.twins else (net,), net.name in self.own_images)
            for net in order
            if net.name not in second
        ]

    def dissolve(self, unit: Unit, reason: str) -> list[Unit]:
        """Let the nets of ``unit`` be routed one by one from now on, and return them as units."""
        for net in unit.nets:
            self.reasons.setdefault(net.name, reason)
        self.twins.pop(unit.nets[0].name, None)
        self.own_images.discard(unit.nets[0].name)
        return [Unit((net,)) for net in unit.nets]

    def image_of(self, node: int) -> int:
        """Return the mirror image of a node; -1 where there is no track."""
        level, column, row = self.board.tracks.place(node)
        image = self.columns[column]
        return -1 if image < 0 else self.board.tracks.node(level, image, row)

    def image_path(self, path: Sequence[int]) -> list[int]:
        """Return the mirror image of a path whose columns all have one."""
        return [self.image_of(node) for node in path]

    def pair_costs(self, own: EdgeCosts, twins: EdgeCosts, width: int | None) -> EdgeCosts:
        """Return what an edge costs a net together with what its image costs the twin; the axis may not be crossed."""
        costs = self._sums(own, twins)
        self._keep_off_axis(costs, width, twins=True)
        return costs

    def folded_costs(self, own: EdgeCosts, width: int | None) -> EdgeCosts:
        """Return what an edge on either side of the axis costs a net together with the image of that edge."""
        costs = self._sums(own, own)
        self._keep_off_axis(costs, width, twins=False)
        return costs

    def own_costs(self, own: EdgeCosts, width: int | None) -> EdgeCosts:
        """Return what an edge left of the axis or on it costs a net together with its image; all others are closed."""
        import numpy as np

        costs = self.folded_costs(own, width)
        on_axis = np.asarray(self.board.tracks.xs) == self.axis
        for array in (costs.up, costs.via):
            array[:, :, on_axis] = np.where(array[:, :, on_axis] < 0, -1, array[:, :, on_axis] // 2)
        beyond = np.asarray(self.board.tracks.xs) > self.axis
        for array in (costs.right, costs.up, costs.via):
            array[:, :, beyond] = -1
        costs.right[:, :, on_axis] = -1
        return costs

    def _sums(self, own: EdgeCosts, twins: EdgeCosts) -> EdgeCosts:
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
        return EdgeCosts(*both)

    def _keep_off_axis(self, costs: EdgeCosts, width: int | None, *, twins: bool) -> None:
        """Close what would come too near to its own image; a net that is its own image may lie on the axis."""
        import numpy as np

        xs = np.asarray(self.board.tracks.xs)
        stack, off = self.board.stack, np.abs(xs - self.axis)
        crossing = (xs[:-1] < self.axis) & (xs[1:] > self.axis)
        for level, conductor in enumerate(stack.conductors):
            half = stack.width(level, width) // 2
            near = 2 * (off - half) < conductor.space
            if twins:
                costs.right[level][:, near] = -1
                costs.right[level][:, :-1][:, near[1:] | crossing] = -1
            else:
                near &= off > 0
            costs.up[level][:, near] = -1
            for cut in (level - 1, level):
                if 0 <= cut < len(stack.cuts):
                    close = 2 * (off - stack.pad(cut, level)[0]) < conductor.space
                    costs.via[cut][:, close if twins else close & (off > 0)] = -1

    def image(self, metal: NetMetal) -> NetMetal:
        """Return the mirror image of a net's metal."""
        wires = {wire: Wire(wire.layer, tuple(map(self._point, wire.points)), wire.width) for wire in metal.wires}
        return NetMetal(
            paths=[self.image_path(path) for path in metal.paths],
            wires=list(wires.values()),
            vias=[Via(via.cut, 2 * self.axis - via.x, via.y, via.columns, via.rows) for via in metal.vias],
            patches=[Patch(patch.layer, self.rect(patch.rect)) for patch in metal.patches],
            order=[
                wires[entry] if isinstance(entry, Wire) else (entry[0], 2 * self.axis - entry[1], entry[2])
                for entry in metal.order
            ],
        )

    def are_images(self, one: NetMetal, other: NetMetal) -> bool:
        """Return whether metal and cuts of two nets are mirror images."""
        stack = self.board.stack
        image = sorted((level, self.rect(rect)) for level, rect in one.rects(stack))
        cuts = sorted((cut, self.rect(rect)) for cut, rect in one.cuts(stack))
        return image == other.rects(stack) and cuts == other.cuts(stack)

    def outcomes(self, metal: Mapping[str, NetMetal | None]) -> tuple[Mirrored, ...]:
        """Return what became of each pair and of each net that was to be its own image, in the order of the request."""
        found = []
        for net in self.nets:
            names = (net.mirror_of, net.name) if net.mirror_of is not None else (net.name,)
            if net.mirror_of is None and not net.symmetric:
                continue
            one, other = metal.get(names[0]), metal.get(names[-1])
            exact = one is not None and other is not None and self.are_images(one, other)
            reason = next((self.reasons[name] for name in names if name in self.reasons), "")
            if not exact and not reason:
                reason = "other nets left no symmetric way"
            found.append(Mirrored(names, exact, "" if exact else reason))
        return tuple(found)

    def _point(self, point: Point) -> Point:
        return 2 * self.axis - point[0], point[1]

    def rect(self, rect: Rect) -> Rect:
        """Return the mirror image of a rectangle."""
        return 2 * self.axis - rect[2], rect[1], 2 * self.axis - rect[0], rect[3]
