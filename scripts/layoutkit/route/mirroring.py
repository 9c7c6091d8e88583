"""Nets whose wires are to be mirror images: pairs of nets, and nets that are their own image, and what became of them.

A unit is what is routed together: a net alone, a net that is to be its own image, or a net and its twin.

Wires past the different heights of the pins of two nets that are to be mirror images: bridges.

     |        :        |
a ===x==  ====:========|===    a's rail: net a has its via here, on the left
     |        :        |
b ===|========:====  ==x===    b's rail: net b has its via here, on the right
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from layoutkit.route.metal import NetMetal
from layoutkit.route.routes import Mirrored, NetRequest, Patch, Via, Wire
from layoutkit.route.tracks import EdgeCosts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import numpy as np
    import numpy.typing as npt

    from layoutkit.rectangle import Rect
    from layoutkit.route.board import Board
    from layoutkit.route.routes import Point

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
class RoutedUnit:
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

    def units(self, order: Sequence[NetRequest]) -> list[RoutedUnit]:
        """Return the nets in their order, a net and its twin together."""
        second = {twin.name for twin in self.twins.values()}
        return [
            RoutedUnit((net, self.twins[net.name]) if net.name in self.twins else (net,), net.name in self.own_images)
            for net in order
            if net.name not in second
        ]

    def dissolve(self, unit: RoutedUnit, reason: str) -> list[RoutedUnit]:
        """Let the nets of ``unit`` be routed one by one from now on, and return them as units."""
        for net in unit.nets:
            self.reasons.setdefault(net.name, reason)
        self.twins.pop(unit.nets[0].name, None)
        self.own_images.discard(unit.nets[0].name)
        return [RoutedUnit((net,)) for net in unit.nets]

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


LONGEST_LEG = 40
"""Tracks up to which a wire past both heights may lie beside the pins."""


@dataclass(frozen=True)
class Bridge:
    """How both nets of a pair enter a column: along ``wire``, from which each has its own way down to its pin."""

    wire: tuple[int, ...]
    first: tuple[int, ...]
    second: tuple[int, ...]


@dataclass
class Fold:
    """Terminals that are reached together: the groups of each net, and where."""

    first: frozenset[int]
    second: frozenset[int]
    exact: set[int] = field(default_factory=set)
    bridges: dict[int, Bridge] = field(default_factory=dict)

    @property
    def nodes(self) -> set[int]:
        """Where a way of the first net may enter."""
        return self.exact | self.bridges.keys()


class Bridging:
    """Finds columns on which two groups whose pins lie at different heights are entered as mirror images."""

    def __init__(
        self,
        board: Board,
        mirror: Mirror,
        nets: tuple[NetRequest, NetRequest],
        costs: tuple[EdgeCosts, EdgeCosts],
        both: EdgeCosts,
    ) -> None:
        self.board, self.mirror, self.costs, self.both = board, mirror, costs, both
        self.pins, self.width = [board.own[net.name] for net in nets], nets[0].width
        self.wired = board.stack.wired

    def folds(self, groups: tuple[Sequence[set[int]], Sequence[set[int]]], known: Sequence[Fold]) -> list[Fold]:
        """Return the further folds, those whose heights differ least first."""
        left = [
            {number: self._by_column(nodes, image=bool(side)) for number, nodes in enumerate(its) if number not in used}
            for side, its in enumerate(groups)
            for used in [{n for fold in known for n in (fold.second if side else fold.first)}]
        ]
        ys = self.board.tracks.ys
        offers = []
        for one, own in left[0].items():
            for other, its in left[1].items():
                nearest = {
                    key: min((abs(ys[a] - ys[b]), a, b) for a in own[key] for b in its[key])
                    for key in own.keys() & its.keys()
                }
                if nearest:
                    offers.append((min(nearest.values())[0], one, other, nearest))
        folds: list[Fold] = []
        taken: tuple[set[int], set[int]] = (set(), set())
        for _, one, other, nearest in sorted(offers, key=lambda offer: offer[:3]):
            if one in taken[0] or other in taken[1]:
                continue
            bridges = self._bridges(nearest)
            if bridges:
                taken[0].add(one)
                taken[1].add(other)
                folds.append(Fold(frozenset({one}), frozenset({other}), bridges=bridges))
        return folds

    def _by_column(self, nodes: Iterable[int], *, image: bool) -> dict[tuple[int, int], list[int]]:
        found: dict[tuple[int, int], list[int]] = {}
        for node in sorted(nodes):
            level, column, row = self.board.tracks.place(node)
            column = self.mirror.columns[column] if image else column
            if column >= 0:
                found.setdefault((level, column), []).append(row)
        return found

    def _bridges(self, nearest: dict[tuple[int, int], tuple[int, int, int]]) -> dict[int, Bridge]:
        """Return the cheapest bridges by the nodes of their wires: on the pins, or else beside them."""
        offers = [
            offer
            for (level, column), (_, a, b) in nearest.items()
            for offer in [self._bridge(level, column, (a, b), ())]
            if offer is not None
        ]
        if not offers:
            offers = [offer for step in (-1, 1) for offer in self._beside(nearest, step)]
        if not offers:
            return {}
        least = min(cost for cost, _ in offers)
        return {node: bridge for cost, bridge in offers if cost <= 2 * least for node in bridge.wire}

    def _beside(self, nearest: dict[tuple[int, int], tuple[int, int, int]], step: int) -> Iterator[tuple[int, Bridge]]:
        """Yield bridges left (``step`` -1) or right (1) of the pins, which wires on the pins' conductor lead to."""
        xs = self.board.tracks.xs
        half = {key: rows for key, rows in nearest.items() if (xs[key[1]] - self.mirror.axis) * step > 0}
        if not half:
            return
        level, column = max(half, key=lambda key: (key[1] * step, -key[0]))
        _, a, b = half[level, column]
        leg = [column]
        while self.wired[level] and len(leg) < LONGEST_LEG and 0 <= leg[-1] + step < len(xs):
            images = [self.mirror.columns[at] for at in (leg[-1], leg[-1] + step)]
            if min(images) < 0 or abs(images[0] - images[1]) != 1:
                return
            prices = (
                self.costs[0].right[level, a, min(leg[-1], leg[-1] + step)],
                self.costs[1].right[level, b, min(images)],
            )
            if min(prices) < 0:
                return
            leg.append(leg[-1] + step)
            offer = self._bridge(level, leg[-1], (a, b), tuple(leg[:-1]))
            if offer is not None:
                yield offer[0] + len(leg) * self.board.pitch, offer[1]

    def _bridge(
        self, level: int, column: int, rows: tuple[int, int], leg: tuple[int, ...]
    ) -> tuple[int, Bridge] | None:
        """Return the cheapest wire between two heights with its vias, and its cost; None where there is none.

        Args:
            level: Level of the pins.
            column: Where the wire runs.
            rows: Heights of the two pins.
            leg: Columns of the wire on the pins' level that leads from the first net's pin to ``column``.
        """
        node, columns = self.board.tracks.node, self.mirror.columns
        low, high = min(rows), max(rows)
        found: list[tuple[int, int, Bridge]] = []
        for wire_level in (level + 1, level, level + 2, level - 1):
            if not 0 <= wire_level < len(self.wired) or not self.wired[wire_level]:
                continue
            if wire_level == level and self._ends_beside_a_pin(level, column, rows):
                continue
            steps = range(level, wire_level, 1 if wire_level > level else -1)
            cuts = [min(step, step + (1 if wire_level > level else -1)) for step in steps]
            prices = [int(self.both.up[wire_level, at, column]) for at in range(low, high)]
            prices += [int(self.costs[0].via[cut, rows[0], column]) for cut in cuts]
            prices += [int(self.costs[1].via[cut, rows[1], columns[column]]) for cut in cuts]
            if min(prices, default=0) >= 0:
                ways = [(level, at) for at in leg] + [(at, column) for at in (*steps, wire_level)]
                wire = tuple(node(wire_level, column, at) for at in range(low, high + 1))
                first = tuple(node(at, x, rows[0]) for at, x in ways)
                second = tuple(node(at, columns[x], rows[1]) for at, x in ways)
                found.append((sum(prices), len(found), Bridge(wire, first, second)))
        if not found:
            return None
        cost, _, bridge = min(found, key=lambda entry: entry[:2])
        return cost, bridge

    def _ends_beside_a_pin(self, level: int, column: int, rows: tuple[int, int]) -> bool:
        """Return whether a wire on the pins' level reaches so little beyond a pin that cuts in it are at a line end."""
        stack, tracks = self.board.stack, self.board.tracks
        ends = [cut.enclose_above_end for cut in stack.cuts[max(level - 1, 0) : level]]
        ends += [cut.enclose_below_end for cut in stack.cuts[level : level + 1]]
        half, least = stack.width(level, self.width) // 2, max(ends, default=0)
        low, high = tracks.ys[min(rows)] - half, tracks.ys[max(rows)] + half
        for x, pins in zip((column, self.mirror.columns[column]), self.pins, strict=True):
            for where, (left, bottom, right, top) in pins:
                met = where == level and left <= tracks.xs[x] <= right and bottom <= high and low <= top
                if met and (0 < high - top < least or 0 < bottom - low < least):
                    return True
        return False
