"""The board the nets are routed on: fixed and routed metal, whose it is, and the cost of every edge for a given net."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from layoutkit.errors import GeometryError
from layoutkit.rectangle import Occupancy, Shape
from layoutkit.route.metal import cut_index
from layoutkit.route.tracks import EdgeCosts, EdgeCounts, Search, Tracks, coordinates, inside, spanning

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import klayout.db as kdb
    import numpy as np
    import numpy.typing as npt

    from layoutkit.rectangle import FixedMetal, Rect
    from layoutkit.route.metal import NetMetal
    from layoutkit.route.routes import Gauge, NetRequest, RouteOptions, Via
    from layoutkit.route.routing_stack import Stack

    IntArray = npt.NDArray[np.int64]

LARGEST_BOARD = 4_000_000
"""Nodes of the track graph; at 100 bytes each this is what fits into memory comfortably."""
BESIDE = 3
"""Tracks up to which a wire counts as beside another, and by how many times its length it costs more there."""
AVOIDED = 8
"""By how many times its length a wire costs more on a conductor that its net avoids: more than two vias and a way
against the preferred direction of a thinner one."""
HOPPED = 200
"""By how many times its length a wire costs more that does not leave a terminal on the conductor where it should, or
lies there elsewhere: more than the vias of a hop."""
HOP_FROM, HOP_TO = 4, 6
"""Track pitches from a terminal up to which wires lie on that conductor, and up to which they may; so many that they
find a place for the vias beside what lies above the terminal."""
HARD = -1
"""Weight of other nets' wires that means: never cross them."""


@dataclass(frozen=True)
class TerminalAccess:
    """Where one terminal can be entered: a level, and columns and rows of the track graph."""

    level: int
    columns: tuple[int, ...]
    rows: tuple[int, ...]

    def nodes(self, tracks: Tracks) -> list[int]:
        """Return its node numbers."""
        return [tracks.node(self.level, column, row) for row in self.rows for column in self.columns]


@dataclass(frozen=True)
class Hugging:
    """Further tracks, on which wires of ``nets`` just keep their distance to ``metal``; at most ``limit`` nodes."""

    metal: Sequence[FixedMetal]
    nets: Sequence[NetRequest]
    limit: int


class Sheet:
    """The metal and keepouts of a routed cell, found by place.

    Args:
        stack: The rules.
        names: Nets whose fixed metal is listed in ``own``.
        area: Nothing is drawn outside it. [dbu]
    """

    def __init__(self, stack: Stack, names: Iterable[str], area: Rect) -> None:
        self.stack, self.area, self.pitch = stack, area, stack.pitch()
        self.occupancy = Occupancy()
        self.own: dict[str, list[tuple[int, Rect]]] = {name: [] for name in names}

    def add_fixed(self, piece: FixedMetal) -> None:
        """Enter metal, a cut or a keepout that stays."""
        layer, rect, net, wide, keepout = piece
        if layer in [cut.name for cut in self.stack.cuts]:
            self.occupancy.add(layer, Shape(rect, net, wide=False, keepout=keepout))
            return
        level = self.stack.index(layer)
        self.occupancy.add(self.stack.conductors[level].name, Shape(rect, net, wide, keepout))
        if net in self.own:
            self.own[net].append((level, rect))

    def change(self, net: NetRequest, metal: NetMetal, amount: int) -> None:
        """Enter (``amount`` 1) or take out (-1) the route of a net."""
        self._act(net, metal.shapes(self.stack), metal.vias, amount)

    def exchange(self, net: NetRequest, old: NetMetal, new: NetMetal) -> None:
        """Replace a route of a net by another one; only what differs is processed."""
        if (old.wires, old.vias, old.patches) == (new.wires, new.vias, new.patches):
            return
        shapes = [Counter(metal.shapes(self.stack)) for metal in (old, new)]
        vias = [Counter(metal.vias) for metal in (old, new)]
        for amount, one, other in ((-1, 0, 1), (1, 1, 0)):
            differ = list((shapes[one] - shapes[other]).elements())
            self._act(net, differ, list((vias[one] - vias[other]).elements()), amount)

    def _act(self, net: NetRequest, shapes: Sequence[tuple[int, Rect, bool]], vias: Sequence[Via], amount: int) -> None:
        """Enter or take out metal, as (level, rectangle, whether it is wide), and the cuts of vias."""
        act = self.occupancy.add if amount > 0 else self.occupancy.remove
        for level, rect, wide in shapes:
            act(self.stack.conductors[level].name, Shape(rect, net.name, wide))
        for via in vias:
            cut = cut_index(self.stack, via.cut)
            for rect in self.stack.cut_rects(cut, via.x, via.y, via.columns, via.rows):
                act(via.cut, Shape(rect, net.name, wide=False))


class Board(Sheet):
    """Fixed and routed metal, the tracks, and the history of conflicts.

    Args:
        stack: The rules.
        nets: What will be routed; their terminals are fixed metal and align the tracks.
        fixed: Metal and cuts that are already there.
        area: Nothing is drawn outside it. [dbu]
        options: How to search.
        hugging: Further tracks, beside fixed metal; none by default.

    Raises:
        GeometryError: If the area holds more track crossings than the limit.
    """

    def __init__(
        self,
        stack: Stack,
        nets: Sequence[NetRequest],
        fixed: Sequence[FixedMetal],
        area: Rect,
        options: RouteOptions,
        *,
        hugging: Hugging | None = None,
    ) -> None:
        import numpy as np

        super().__init__(stack, [net.name for net in nets], area)
        self.options = options
        self.search = Search(options.engine)
        self.tracks = self._make_tracks(nets)
        if hugging is not None:
            self.tracks = self._with_hugging(hugging)
        if options.axis_x is not None and any(net.mirror_of or net.symmetric for net in nets):
            self.tracks = self._symmetric(options.axis_x)
        nodes = len(self.tracks.xs) * len(self.tracks.ys) * len(stack.conductors)
        limit = LARGEST_BOARD if hugging is None else hugging.limit
        if nodes > limit:
            raise GeometryError(
                f"the routing area holds {nodes} track crossings ({len(self.tracks.xs)} x {len(self.tracks.ys)} tracks "
                f"on {len(stack.conductors)} layers), more than the allowed {limit}; give a smaller routing area or "
                "fewer layers, and build a circuit of this size in parts: choose a subcircuit with top"
            )
        self.routed: dict[str, list[tuple[int, Rect]]] = {}
        self.closed_vias: dict[str, set[tuple[str, int, int]]] = {}
        """Net to cut and place of vias that it may not have. [dbu]"""
        self._own_shapes: dict[str, list[tuple[int, Shape]]] = {net.name: [] for net in nets}
        self._fixed: dict[Gauge, EdgeCounts] = {}
        self._routed: dict[Gauge, EdgeCounts] = {}
        for gauge in sorted({gauge for net in nets for gauge in net.gauges}, key=_by_width):
            self._fixed[gauge] = EdgeCounts(stack, self.tracks, gauge)
            self._fixed[gauge].bound(area)
            self._routed[gauge] = EdgeCounts(stack, self.tracks, gauge)
        for piece in fixed:
            self.add_fixed(piece)
        self.base = self._base_costs()
        shape = self.base.right.shape
        self.history = EdgeCosts(*(np.zeros(shape, dtype=np.int64) for _ in range(3)))

    def _make_tracks(self, nets: Sequence[NetRequest]) -> Tracks:
        need_x: set[int] = set()
        need_y: set[int] = set()
        grid = self.stack.technology.grid
        for net in nets:
            for terminal in net.terminals:
                box, level = terminal.box, self.stack.index(terminal.layer)
                room = self.stack.wire_width(level, net.gauge) + 2 * self.pitch
                if box.width() < room:
                    need_x.add((box.left + box.right) // 2 // grid * grid)
                if box.height() < room:
                    need_y.add((box.bottom + box.top) // 2 // grid * grid)
        left, bottom, right, top = self.area
        return Tracks(
            coordinates(left, right, need_x, self.pitch, grid), coordinates(bottom, top, need_y, self.pitch, grid)
        )

    def _symmetric(self, axis: int) -> Tracks:
        """Return the tracks together with their images about ``axis``, and a track on it."""
        images = (2 * axis - x for x in self.tracks.xs)
        middle = () if axis % self.stack.technology.grid else (axis,)
        return Tracks(tuple(sorted({*self.tracks.xs, *images, *middle})), self.tracks.ys)

    def _with_hugging(self, hugging: Hugging) -> Tracks:
        """Return the tracks and those on which a wire just keeps its distance to fixed metal."""
        stack, grid = self.stack, self.stack.technology.grid
        levels = {conductor.name: level for level, conductor in enumerate(stack.conductors)}
        more: tuple[set[int], set[int]] = (set(), set())
        gauges, halves = {net.gauge for net in hugging.nets}, dict[int, list[int]]()
        for layer, rect, _, wide, keepout in hugging.metal:
            level = levels.get(layer)
            if level is None or not stack.wired[level]:
                continue
            space = 0 if keepout else stack.space(level, wide=wide)
            if level not in halves:
                halves[level] = sorted({stack.wire_width(level, gauge) // 2 for gauge in gauges})
            for half in halves[level]:
                for axis in (0, 1):
                    more[axis].add((rect[axis] - half - space) // grid * grid)
                    more[axis].add(-(-(rect[axis + 2] + half + space) // grid) * grid)
        left, bottom, right, top = self.area
        xs = sorted({*self.tracks.xs, *(x for x in more[0] if left <= x <= right)})
        ys = sorted({*self.tracks.ys, *(y for y in more[1] if bottom <= y <= top)})
        return Tracks(tuple(xs), tuple(ys))

    def add_fixed(self, piece: FixedMetal) -> None:
        """Enter metal, a cut or a keepout that stays."""
        super().add_fixed(piece)
        layer, rect, net_name, wide, keepout = piece
        cuts = [cut.name for cut in self.stack.cuts]
        if layer in cuts:
            for counts in self._fixed.values():
                counts.add_cut(cuts.index(layer), rect, keepout=keepout)
            return
        level = self.stack.index(layer)
        shape = Shape(rect, net_name, wide, keepout)
        for counts in self._fixed.values():
            counts.add_metal(level, shape)
        if net_name in self.own:
            self._own_shapes[net_name].append((level, shape))

    def remove_fixed(self, piece: FixedMetal) -> None:
        """Take out metal of a conductor that ``add_fixed`` entered."""
        level, shape = self.stack.index(piece.layer), Shape(piece.rect, piece.net, piece.wide, piece.keepout)
        self.occupancy.remove(self.stack.conductors[level].name, shape)
        for counts in self._fixed.values():
            counts.add_metal(level, shape, -1)
        if piece.net in self.own:
            self.own[piece.net].remove((level, piece.rect))
            self._own_shapes[piece.net].remove((level, shape))

    def _base_costs(self) -> EdgeCosts:
        """Return the cost of every edge on an empty board: length, times the wrong-way factor where it applies."""
        import numpy as np

        layers, rows, columns = len(self.stack.conductors), len(self.tracks.ys), len(self.tracks.xs)
        via_cost = 4 * self.pitch if self.options.via_cost is None else self.options.via_cost
        right = np.full((layers, rows, columns), -1, dtype=np.int64)
        up = np.full_like(right, -1)
        via = np.full_like(right, -1)
        across, along = np.diff(np.asarray(self.tracks.xs)), np.diff(np.asarray(self.tracks.ys))
        for level in range(layers):
            if self.stack.wired[level]:
                wrong = self.options.wrong_way_cost
                right[level, :, :-1] = across * (1 if self.stack.horizontal[level] else wrong)
                up[level, :-1, :] = along[:, None] * (wrong if self.stack.horizontal[level] else 1)
        via[:-1] = via_cost
        return EdgeCosts(right, up, via)

    def access(self, net: NetRequest) -> list[TerminalAccess]:
        """Return where each terminal of a net can be entered, in the order of its terminals."""
        found = []
        for terminal in net.terminals:
            level, box = self.stack.index(terminal.layer), terminal.box
            half = self.stack.wire_width(level, net.gauge) // 2
            found.append(
                TerminalAccess(
                    level,
                    self._entries(self.tracks.xs, box.left, box.right, half),
                    self._entries(self.tracks.ys, box.bottom, box.top, half),
                )
            )
        return found

    def _entries(self, tracks: Sequence[int], low: int, high: int, half: int) -> tuple[int, ...]:
        """Return the tracks on which a wire overlaps a terminal with its full width, or the terminal's middle."""
        grid = self.stack.technology.grid
        first, last = low + half, high - half
        if first > last:
            first = last = (low + high) // 2 // grid * grid
        return tuple(i for i, coordinate in enumerate(tracks) if first <= coordinate <= last)

    def costs(self, net: NetRequest, weight: int) -> EdgeCosts:
        """Return the edge costs for a net.

        Args:
            net: The net; its own fixed metal does not hinder it.
            weight: Price of crossing another net's route, in lengths of the edge; ``HARD`` forbids it.
        """
        fixed = self._fixed[net.gauge]
        own = self._own_shapes[net.name]
        for level, shape in own:
            fixed.add_metal(level, shape, -1)
        try:
            costs = self._priced(fixed, self._routed[net.gauge], weight)
        finally:
            for level, shape in own:
                fixed.add_metal(level, shape)
        self._raise_beside(costs, net)
        self._raise_avoided(costs, net)
        self._raise_without_hops(costs, net)
        levels = {cut.name: number for number, cut in enumerate(self.stack.cuts)}
        for cut, x, y in self.closed_vias.get(net.name, ()):
            if x in self.tracks.xs and y in self.tracks.ys:
                costs.via[levels[cut], self.tracks.ys.index(y), self.tracks.xs.index(x)] = -1
        return costs

    def _raise_beside(self, costs: EdgeCosts, net: NetRequest) -> None:
        """Make wires dear that run beside, above or below wires of the nets from which ``net`` should keep apart."""
        import numpy as np

        metal = sorted({place for name in net.apart_from for place in self.routed.get(name, ())})
        if not metal:
            return
        near = {"right": np.zeros(costs.right.shape, dtype=bool), "up": np.zeros(costs.up.shape, dtype=bool)}
        reach, xs, ys = BESIDE * self.pitch, self.tracks.xs, self.tracks.ys
        for level, (left, bottom, right, top) in metal:
            across, along = (left - reach, right + reach), (bottom - reach, top + reach)
            for beside in range(max(level - 1, 0), min(level + 2, len(costs.right))):
                near["right"][beside, inside(ys, *along), spanning(xs, *across)] = True
                near["up"][beside, spanning(ys, *along), inside(xs, *across)] = True
        for name, places in near.items():
            cost, base = getattr(costs, name), getattr(self.base, name)
            open_ = places & (cost >= 0)
            cost[open_] += BESIDE * base[open_]

    def _raise_avoided(self, costs: EdgeCosts, net: NetRequest) -> None:
        """Make wires dear on the conductors that ``net`` avoids."""
        for level in {self.stack.index(name) for name in net.avoid_layers}:
            for cost, base in ((costs.right[level], self.base.right[level]), (costs.up[level], self.base.up[level])):
                open_ = cost >= 0
                cost[open_] += AVOIDED * base[open_]

    def _raise_without_hops(self, costs: EdgeCosts, net: NetRequest) -> None:
        """Make wires dear near terminals below the conductor on which they leave these, and on it elsewhere."""
        import numpy as np

        if net.hop_layer is None:
            return
        top, xs, ys = self.stack.index(net.hop_layer), self.tracks.xs, self.tracks.ys
        dear = {"right": np.zeros(costs.right.shape, dtype=bool), "up": np.zeros(costs.up.shape, dtype=bool)}
        dear["right"][top:], dear["up"][top:] = True, True
        below = [each.box for each in net.terminals if self.stack.index(each.layer) < top and self._is_inside(each.box)]
        for levels, reach, is_dear in ((slice(top, top + 1), HOP_TO, False), (slice(top), HOP_FROM, True)):
            for box in (box.enlarged(reach * self.pitch, reach * self.pitch) for box in below):
                across, along = (box.left, box.right), (box.bottom, box.top)
                dear["right"][levels, inside(ys, *along), spanning(xs, *across)] = is_dear
                dear["up"][levels, spanning(ys, *along), inside(xs, *across)] = is_dear
        for name, places in dear.items():
            cost, base = getattr(costs, name), getattr(self.base, name)
            raised = places & (cost >= 0)
            cost[raised] += HOPPED * base[raised]

    def _is_inside(self, box: kdb.Box) -> bool:
        """Return whether a terminal lies inside the area; one that reaches its edge is a port."""
        left, bottom, right, top = self.area
        return box.left > left and box.bottom > bottom and box.right < right and box.top < top

    def _priced(self, fixed: EdgeCounts, routed: EdgeCounts, weight: int) -> EdgeCosts:
        import numpy as np

        arrays = []
        for base, blocked, shared, history in (
            (self.base.right, fixed.right, routed.right, self.history.right),
            (self.base.up, fixed.up, routed.up, self.history.up),
            (self.base.via, fixed.via, routed.via, self.history.via),
        ):
            closed = (base < 0) | (blocked > 0)
            if weight == HARD:
                closed |= shared > 0
                cost = base
            else:
                cost = base + (base + self.pitch) * (weight * shared + history)
            arrays.append(np.where(closed, -1, cost))
        return EdgeCosts(*arrays)

    def change(self, net: NetRequest, metal: NetMetal, amount: int) -> None:
        """Enter (``amount`` 1) or take out (-1) the route of a net."""
        super().change(net, metal, amount)
        self.routed[net.name] = metal.rects(self.stack) if amount > 0 else []

    def exchange(self, net: NetRequest, old: NetMetal, new: NetMetal) -> None:
        """Replace a route of a net by another one; only what differs is processed."""
        super().exchange(net, old, new)
        self.routed[net.name] = new.rects(self.stack)

    def _act(self, net: NetRequest, shapes: Sequence[tuple[int, Rect, bool]], vias: Sequence[Via], amount: int) -> None:
        super()._act(net, shapes, vias, amount)
        for level, rect, wide in shapes:
            shape = Shape(rect, net.name, wide)
            for counts in self._routed.values():
                counts.add_metal(level, shape, amount)
        for via in vias:
            for counts in self._routed.values():
                counts.add_array(cut_index(self.stack, via.cut), via, amount)

    def blame(self, metal: NetMetal, net: NetRequest) -> None:
        """Raise the history of the edges that a net, which is not entered now, shares with others; all if none is."""
        routed = self._routed[net.gauge]
        edges = [self.edge(a, b) for path in metal.paths for a, b in pairwise(path)]
        arrays = {"right": routed.right, "up": routed.up, "via": routed.via}
        shared = [(kind, place) for kind, place in edges if arrays[kind][place] > 0]
        for kind, place in shared or edges:
            getattr(self.history, kind)[place] += 1

    def edge(self, one: int, other: int) -> tuple[str, tuple[int, int, int]]:
        """Return in which array of costs the edge between two neighbouring nodes is, and where: level, row, column."""
        level, column, row = self.tracks.place(min(one, other))
        other_level, other_column, _ = self.tracks.place(max(one, other))
        kind = "via" if other_level != level else "right" if other_column != column else "up"
        return kind, (level, row, column)


def _by_width(gauge: Gauge) -> tuple[float, float, int]:
    return -1 if gauge.width is None else gauge.width, gauge.current_ma or 0.0, gauge.lowest
