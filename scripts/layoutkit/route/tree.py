"""One net: which terminals are already joined, and the paths that join the rest.

The rectangles that are drawn, not the paths found, decide whether the metal joins all terminals. In the way of
a net that failed are the shapes on the way through the fewest closed edges of the track graph.

Wires of a net may have different widths: each path is as wide as the current needs that flows through it. The paths to
terminals that draw most come first, and those that draw less start from them. Wires that join a path later may add to
its current. Where that becomes more than its width carries, the net is grown once more with a wider path.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import klayout.db as kdb

from layoutkit.route.board import HARD
from layoutkit.route.metal import Share
from layoutkit.route.net_flows import Draw, flow_between, flows
from layoutkit.route.routes import Blocker
from layoutkit.route.tracks import EdgeCosts, inside, spanning

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

    import numpy as np
    import numpy.typing as npt

    from layoutkit.rectangle import Rect
    from layoutkit.route.board import Board, TerminalAccess
    from layoutkit.route.metal import NetMetal
    from layoutkit.route.routes import NetRequest, Terminal
    from layoutkit.route.routing_stack import Stack

    IntArray = npt.NDArray[np.int64]

FEW_BOXES = 4
"""Up to so many, the distance to each is calculated everywhere."""
MANY_PARTS = 40
STALE = 0.9
"""While more parts wait, distances that also count parts reached since are a lower bound until so many are left."""
MOST_ROUNDS = 8
"""How often a net is grown with wider paths."""
ALMOST = 1 + 1e-9


@dataclass(frozen=True)
class GrownTree:
    """The paths of a net's tree, or the group that could not be reached and why."""

    paths: list[list[int]]
    reason: str | None = None


def joined(terminals: Sequence[Terminal], layer_of: Sequence[int]) -> list[list[int]]:
    """Return the indices of terminals that are already one piece, in the order of their first member."""
    parent = list(range(len(terminals)))

    def root(index: int) -> int:
        while parent[index] != index:
            index = parent[index]
        return index

    for i, one in enumerate(terminals):
        for j in range(i):
            other = terminals[j]
            same_group = bool(one.group) and one.group == other.group
            if same_group or (layer_of[i] == layer_of[j] and one.box.touches(other.box)):
                parent[max(root(i), root(j))] = min(root(i), root(j))
    groups: dict[int, list[int]] = {}
    for index in range(len(terminals)):
        groups.setdefault(root(index), []).append(index)
    return list(groups.values())


class Linked(NamedTuple):
    """Groups of terminals that are joined already, and the nodes of the wires that join them."""

    groups: frozenset[int]
    nodes: frozenset[int]


def grow(board: Board, net: NetRequest, costs: EdgeCosts, parts: Sequence[Linked] = ()) -> GrownTree:
    """Return paths that join all groups of a net's terminals, each grown to the nearest group not yet joined.

    The paths of a net that carries a stated current begin at wires and at terminals that are as wide as these. They
    go on from the metal of a thinner terminal, such as that of a ring, only where there is no other way.

    Args:
        board: Where to route.
        net: What to join.
        costs: Edge costs; cuts of the paths found are kept apart in them.
        parts: What is joined already; other paths grow from there, too.
    """
    access = board.access(net)
    groups = joined(net.terminals, [entry.level for entry in access])
    entries = [[access[i] for i in group] for group in groups]
    held = {group for part in parts for group in part.groups}
    reason = _unreachable(board, net, groups, entries, costs, held)
    if reason is not None:
        return GrownTree([], reason)
    alone = [Linked(frozenset({group}), frozenset()) for group in range(len(groups)) if group not in held]
    thin = {Linked(frozenset({number}), frozenset()) for number, group in enumerate(groups) if _is_thin(net, group)}
    clusters = sorted((*parts, *alone), key=lambda part: (part in thin, min(part.groups)))
    pieces = [
        [part.nodes, *(set(entry.nodes(board.tracks)) for group in sorted(part.groups) for entry in entries[group])]
        for part in clusters
    ]
    nodes = [set().union(*its) for its in pieces]
    boxes = [[box_of(board, piece) for piece in its if piece] for its in pieces]
    waiting = set(range(1, len(clusters)))
    tree, beside = set(nodes[0]), set[int]()
    paths: list[list[int]] = []
    guessed = float("inf")
    while waiting:
        targets: dict[int, int] = {}
        for cluster in sorted(waiting, reverse=True):
            targets.update(dict.fromkeys(nodes[cluster], cluster))
        if len(waiting) <= MANY_PARTS or len(waiting) < STALE * guessed:
            guess = distance_to(board, [box for cluster in sorted(waiting) for box in boxes[cluster]])
            guessed = len(waiting)
        path = board.search.shortest_path(costs, guess, list(tree), list(targets))
        if not path and beside:
            path = board.search.shortest_path(costs, guess, list(tree | beside), list(targets))
        if not path:
            joined_now = [g for number, part in enumerate(clusters) if number not in waiting for g in part.groups]
            return GrownTree(paths, _no_path(board, net, groups, joined_now, min(clusters[min(waiting)].groups)))
        reached = targets[path[-1]]
        waiting.discard(reached)
        tree.update(path)
        (beside if clusters[reached] in thin else tree).update(nodes[reached])
        if len(path) > 1:
            paths.append(path)
        keep_cuts_apart(board, costs, path)
    return GrownTree(paths)


def _is_thin(net: NetRequest, group: Sequence[int]) -> bool:
    """Return whether the net carries a stated current and no terminal of a group is as wide as its wires."""
    boxes = [net.terminals[index].box for index in group]
    return net.current_ma is not None and max(min(box.width(), box.height()) for box in boxes) < (net.width or 0)


def nodes_of(board: Board, entries: Sequence[TerminalAccess]) -> set[int]:
    """Return the nodes at which some terminals can be entered."""
    return {node for entry in entries for node in entry.nodes(board.tracks)}


def box_of(board: Board, nodes: Iterable[int]) -> Rect:
    """Return the bounding box of some nodes. [dbu]"""
    points = [board.tracks.point(node) for node in nodes]
    across, along = [x for x, _ in points], [y for _, y in points]
    return min(across), min(along), max(across), max(along)


def distance_to(board: Board, boxes: Sequence[Rect]) -> IntArray:
    """Return the Manhattan distance from each (row, column) to the nearest of some boxes, which end on tracks. [dbu]

    Where there are many boxes, the distances along x and then those along y are passed on from track to track.
    """
    import numpy as np

    xs, ys = np.asarray(board.tracks.xs, dtype=np.int64), np.asarray(board.tracks.ys, dtype=np.int64)
    nearest = np.full((len(ys), len(xs)), 1 << 60, dtype=np.int64)
    if len(boxes) > FEW_BOXES:
        for left, bottom, right, top in boxes:
            rows, columns = np.searchsorted(ys, (bottom, top)), np.searchsorted(xs, (left, right))
            nearest[rows[0] : rows[1] + 1, columns[0] : columns[1] + 1] = 0
        for axis, at in ((1, xs[None, :]), (0, ys[:, None])):
            before = np.minimum.accumulate(nearest - at, axis=axis) + at
            after = np.flip(np.minimum.accumulate(np.flip(nearest + at, axis), axis=axis), axis) - at
            nearest = np.minimum(before, after)
        return nearest
    for left, bottom, right, top in boxes:
        dx = np.maximum(np.maximum(left - xs, xs - right), 0)
        dy = np.maximum(np.maximum(bottom - ys, ys - top), 0)
        np.minimum(nearest, dy[:, None] + dx[None, :], out=nearest)
    return nearest


def keep_cuts_apart(board: Board, costs: EdgeCosts, path: Sequence[int]) -> None:
    """Forbid later branches a cut too near one that this path needs; the very same cut stays free to use."""
    tracks, stack = board.tracks, board.stack
    for one, other in pairwise(path):
        (level, column, row), (other_level, _, _) = tracks.place(min(one, other)), tracks.place(max(one, other))
        if level == other_level:
            continue
        reach = stack.cuts[level].size + stack.cuts[level].space
        columns, rows = _nearer(tracks.xs, column, reach), _nearer(tracks.ys, row, reach)
        kept = costs.via[level, row, column]
        costs.via[level, rows, columns] = -1
        costs.via[level, row, column] = kept


def _nearer(coordinates: Sequence[int], index: int, reach: int) -> slice:
    """Return the tracks that are nearer than ``reach`` to the one at ``index``."""
    at = coordinates[index]
    return slice(bisect_right(coordinates, at - reach), bisect_left(coordinates, at + reach))


def _unreachable(
    board: Board,
    net: NetRequest,
    groups: Sequence[Sequence[int]],
    entries: Sequence[Sequence[TerminalAccess]],
    costs: EdgeCosts,
    held: Container[int],
) -> str | None:
    """Return why a group cannot even be left, None when all can (or there is nothing to join); ``held`` ones are."""
    if len(groups) < 2:
        return None
    by_group = [nodes_of(board, its) for its in entries]
    shared = Counter(node for nodes in by_group for node in nodes)
    for number, (group, nodes) in enumerate(zip(groups, by_group, strict=True)):
        if number in held or any(shared[node] > 1 or _has_exit(board, costs, node) for node in sorted(nodes)):
            continue
        where = _where(board, net, group[0])
        if not nodes:
            return f"terminal {where} cannot be reached: it lies outside the routing area"
        return f"terminal {where} is blocked: metal of other nets or the edge of the area leaves no wire or via room"
    return None


def _has_exit(board: Board, costs: EdgeCosts, node: int) -> bool:
    level, column, row = board.tracks.place(node)
    exits = [costs.right[level, row, column], costs.up[level, row, column], costs.via[level, row, column]]
    exits += [costs.right[level, row, column - 1]] if column else []
    exits += [costs.up[level, row - 1, column]] if row else []
    exits += [costs.via[level - 1, row, column]] if level else []
    return any(cost >= 0 for cost in exits)


def _where(board: Board, net: NetRequest, index: int) -> str:
    terminal, technology = net.terminals[index], board.stack.technology
    center = terminal.box.center()
    return f"on {terminal.layer} at ({technology.to_um(center.x):g}, {technology.to_um(center.y):g}) um"


def _no_path(board: Board, net: NetRequest, groups: Sequence[Sequence[int]], reached: list[int], target: int) -> str:
    return (
        f"no path from the terminal {_where(board, net, groups[reached[0]][0])} to the terminal "
        f"{_where(board, net, groups[target][0])}: obstacles close every way inside the routing area"
    )


def joins_all(stack: Stack, net: NetRequest, metal: NetMetal) -> bool:
    """Return whether the wires, vias and patches of a net and its terminals are one piece.

    Terminals that are joined already count as such; each is the metal of its box.

    Args:
        stack: The rules.
        net: The net.
        metal: What it draws.
    """
    ends, joints = _graph(stack, net, metal.rects(stack), metal.cuts(stack))
    root = _roots([(one, other) for one, other, _ in joints])
    return len({root(end) for end in ends}) == 1


def lone_cuts(
    stack: Stack, net: NetRequest, metal: NetMetal, own: tuple[Sequence[tuple[int, Rect]], Sequence[tuple[int, Rect]]]
) -> set[tuple[int, Rect]]:
    """Return the cuts, as (cut index, rectangle), without which some terminals of a net would not be joined.

    These are the bridges of the graph of the net's metal, whose edges are its cuts, with terminals at both sides
    (Tarjan, 1974). So the time grows with the size of the net, and not with its square.

    Args:
        stack: The rules.
        net: The net.
        metal: What it draws.
        own: Further metal and cuts of the net, which were there before, as (level or cut index, rectangle). [dbu]
    """
    cuts = sorted({*metal.cuts(stack), *own[1]})
    ends, joints = _graph(stack, net, [*metal.rects(stack), *own[0]], cuts)
    edges: dict[int, list[tuple[int, int]]] = {}
    for number, (one, other, _) in enumerate(joints):
        edges.setdefault(one, []).append((other, number))
        edges.setdefault(other, []).append((one, number))
    first = next(iter(ends))
    found: set[tuple[int, Rect]] = set()
    seen, low, held = {first: 0}, {first: 0}, {first: int(first in ends)}
    stack_of = [(first, -1, iter(edges.get(first, ())))]
    while stack_of:
        node, by, ways = stack_of[-1]
        way = next(ways, None)
        if way is None:
            stack_of.pop()
            if stack_of:
                before = stack_of[-1][0]
                held[before] += held[node]
                low[before] = min(low[before], low[node])
                if low[node] > seen[before] and 0 < held[node] < len(ends):
                    found.add(joints[by][2])
        elif way[0] not in seen:
            seen[way[0]] = low[way[0]] = len(seen)
            held[way[0]] = int(way[0] in ends)
            stack_of.append((way[0], way[1], iter(edges[way[0]])))
        elif way[1] != by:
            low[node] = min(low[node], seen[way[0]])
    return found


def _graph(
    stack: Stack, net: NetRequest, metal: Sequence[tuple[int, Rect]], cuts: Sequence[tuple[int, Rect]]
) -> tuple[set[int], list[tuple[int, int, tuple[int, Rect]]]]:
    """Return the pieces of one level that hold terminals of a net, and for each cut the two pieces that it joins.

    Terminals that are joined already are one piece.
    """
    terminals = [(stack.index(each.layer), each.box) for each in net.terminals]
    boxes = [(level, (box.left, box.bottom, box.right, box.top)) for level, box in terminals]
    pieces = [*metal, *boxes]
    by_level: dict[int, list[int]] = {}
    for index, (level, _) in enumerate(pieces):
        by_level.setdefault(level, []).append(index)
    touching = [
        (its[one], its[other])
        for its in by_level.values()
        for rects in [[pieces[index][1] for index in its]]
        for one, other in _touching(rects, rects)
    ]
    ends = range(len(pieces) - len(terminals), len(pieces))
    groups = joined(net.terminals, [level for level, _ in terminals])
    root = _roots([*touching, *((ends[index], ends[group[0]]) for group in groups for index in group)])
    joints: list[tuple[int, int, tuple[int, Rect]]] = []
    for cut in sorted({cut for cut, _ in cuts}):
        rects = [rect for at, rect in cuts if at == cut]
        above, below = by_level.get(cut + 1, []), by_level.get(cut, [])
        over, under = (dict(_touching(rects, [pieces[i][1] for i in its])) for its in (above, below))
        joints += [
            (root(above[over[number]]), root(below[under[number]]), (cut, rects[number]))
            for number in sorted(over.keys() & under.keys())
        ]
    return {root(end) for end in ends}, joints


def _roots(pairs: Iterable[tuple[int, int]]) -> Callable[[int], int]:
    """Return a function from a number to that of its connected piece; each pair joins two numbers."""
    parent: dict[int, int] = {}

    def root(index: int) -> int:
        while (above := parent.get(index, index)) != index:
            parent[index] = parent.get(above, above)
            index = parent[index]
        return index

    for one, other in pairs:
        parent[root(one)] = root(other)
    return root


def _touching(first: Sequence[Rect], second: Sequence[Rect]) -> Iterator[tuple[int, int]]:
    """Yield the indices of each two rectangles that overlap or share a piece of an edge."""
    there = kdb.Shapes()
    for index, rect in enumerate(second):
        there.insert(kdb.Box(*rect), index)
    for index, (left, bottom, right, top) in enumerate(first):
        for shape in there.each_touching(kdb.Box(left, bottom, right, top)):
            box = shape.box
            if min(right, box.right) > max(left, box.left) or min(top, box.top) > max(bottom, box.bottom):
                yield index, shape.prop_id


THROUGH = 100
"""A closed edge costs as much as this many track pitches, so that the way found passes few of them."""


def blockers(board: Board, net: NetRequest) -> tuple[Blocker, ...]:
    """Return what blocks a net on a board, in the order in which a way through it meets the shapes.

    The way joins all terminals of the net and passes as few closed edges as possible: without these shapes the net
    could be routed. It is empty where a terminal lies outside the area, or no other metal is in the way.
    """
    import numpy as np

    hard, base = board.costs(net, HARD), board.base
    through = EdgeCosts(
        *(
            np.where((cost < 0) & (open_ >= 0), open_ + THROUGH * board.pitch, cost)
            for cost, open_ in ((hard.right, base.right), (hard.up, base.up), (hard.via, base.via))
        )
    )
    found: dict[tuple[str | None, str, Rect], Blocker] = {}
    for path in grow(board, net, through).paths:
        for one, other in pairwise(path):
            kind, place = board.edge(one, other)
            if getattr(hard, kind)[place] < 0:
                for blocker in _in_the_way(board, net, one, other):
                    found.setdefault((blocker.net, blocker.layer, blocker.rect), blocker)
    return tuple(found.values())


def _in_the_way(board: Board, net: NetRequest, one: int, other: int) -> Iterator[Blocker]:
    """Yield what closes the edge between two nodes."""
    stack, tracks = board.stack, board.tracks
    (x1, y1), (x2, y2) = tracks.point(one), tracks.point(other)
    at = ((x1 + x2) // 2, (y1 + y2) // 2)
    levels = sorted({tracks.place(one)[0], tracks.place(other)[0]})
    drawn: list[tuple[int, Rect]] = []
    if len(levels) == 1:
        half = stack.wire_width(levels[0], net.gauge) // 2
        drawn = [(levels[0], (min(x1, x2) - half, min(y1, y2) - half, max(x1, x2) + half, max(y1, y2) + half))]
    else:
        cut = levels[0]
        for level in levels:
            width, height = stack.pad(cut, level)
            drawn.append((level, (x1 - width, y1 - height, x1 + width, y1 + height)))
        rule = stack.cuts[cut]
        for rect in stack.cut_rects(cut, x1, y1, 1, 1):
            for shape in board.occupancy.near(rule.name, rect, rule.space):
                if shape.hinders(rect, rule.space):
                    yield Blocker(shape.net, rule.name, shape.rect, at, "keepout" if shape.keepout else "metal")
    for level, rect in drawn:
        name = stack.conductors[level].name
        wide = stack.is_wide(level, rect)
        for shape in board.occupancy.near(name, rect, stack.space(level, wide=True)):
            if shape.net != net.name and shape.hinders(rect, stack.space(level, wide=wide or shape.wide)):
                yield Blocker(shape.net, name, shape.rect, at, "keepout" if shape.keepout else "metal")
        left, bottom, right, top = board.area
        if rect[0] < left or rect[1] < bottom or rect[2] > right or rect[3] > top:
            yield Blocker(None, name, board.area, at, "edge")


@dataclass(frozen=True)
class Shared:
    """Paths with their shares of a net's current, or why there are none; ``weak`` if some are too thin for theirs."""

    paths: list[tuple[list[int], Share]]
    reason: str | None = None
    weak: bool = False


def grow_shared(board: Board, net: NetRequest, weight: int) -> Shared:
    """Return paths that join all terminals of a net whose wires share its current.

    Args:
        board: Where to route.
        net: What to join; it states its shares.
        weight: Price of crossing another net's route; see ``Board.costs``.
    """
    tree = _Tree(board, net, weight)
    best = tree.grown()
    for _ in range(MOST_ROUNDS):
        if best.reason is not None or not tree.raised():
            return best
        wider = tree.grown()
        if wider.reason is not None:
            return replace(best, weak=True)
        best = wider
    return replace(best, weak=True)


class _Tree:
    """A net's pieces of metal and the paths between them."""

    def __init__(self, board: Board, net: NetRequest, weight: int) -> None:
        self.board, self.net, self.weight = board, net, weight
        self.whole = net.shares[-1][0]
        levels = [board.stack.index(terminal.layer) for terminal in net.terminals]
        self.groups = joined(net.terminals, levels)
        self.draws = [self._draw(group) for group in self.groups]
        everything = sum(self.draws, Draw())
        ports = sum(draw.port for draw in self.draws)
        self.own = [
            flow_between(
                draw,
                Draw(everything.into - draw.into, everything.out_of - draw.out_of, ports > draw.port),
                self.whole,
            )
            for draw in self.draws
        ]
        self.least = list(self.own)  # what the path to each group is to carry
        self.found: list[tuple[list[int], int]] = []  # paths and the groups that they lead to
        self.through: list[dict[tuple[int, int], float]] = []

    def _draw(self, group: Sequence[int]) -> Draw:
        found = Draw()
        for draw in (self.net.terminals[index].draw for index in group):
            found += Draw(self.whole, self.whole) if draw is None else draw
        return found

    def _rank(self, current: float) -> int:
        """Return the number of the narrowest share that carries a current."""
        shares = self.net.shares
        return next((i for i, (limit, _) in enumerate(shares) if current <= limit * ALMOST), len(shares) - 1)

    def _with(self, rank: int) -> NetRequest:
        gauge = self.net.shares[rank][1]
        return replace(self.net, own_gauge=gauge)

    def grown(self) -> Shared:
        """Return the paths for the currents in ``least``, or why there are none."""
        board, net = self.board, self.net
        ranks = [self._rank(current) for current in self.least]
        entries: dict[int, list[set[int]]] = {}
        costs: dict[int, EdgeCosts] = {}
        for rank in sorted({*ranks, *map(self._rank, self.own), len(net.shares) - 1}):
            access = board.access(self._with(rank))
            entries[rank] = [nodes_of(board, [access[i] for i in group]) for group in self.groups]
            costs[rank] = board.costs(self._with(rank), self.weight)
            self._close_rails(costs[rank])
        thick = {number for number in range(len(ranks)) if self._is_thick(number)}
        root = min(range(len(ranks)), key=lambda i: (not self.draws[i].port, i not in thick, -self.least[i], i))
        tree, beside, self.found = {root}, set[int](), []
        nodes = set[int]()
        waiting = set(range(len(ranks))) - {root}
        while waiting:
            rank = max(ranks[i] for i in waiting)
            landings = {i: self._landings(i, rank, entries, costs) for i in {*waiting, *tree, *beside}}
            now = [i for i in sorted(waiting) if ranks[i] == rank]
            targets = {node: number for number in reversed(now) for node in landings[number]}
            guess = distance_to(board, [box_of(board, landings[i]) for i in now if landings[i]])
            path: list[int] = []
            for others in (set[int](), beside):
                starts = {node: tail for i in sorted(tree | others) for node, tail in landings[i].items()}
                path = path or board.search.shortest_path(costs[rank], guess, [*{*starts, *nodes}], [*targets])
            if not path:
                return Shared([], grow(board, net, board.costs(net, self.weight)).reason or "no path is wide enough")
            reached = targets[path[-1]]
            waiting.discard(reached)
            (tree if reached in thick else beside).add(reached)
            before = () if path[0] in nodes else starts[path[0]]
            path = [*before[::-1], *path, *landings[reached][path[-1]]]
            nodes.update(path)
            if len(path) > 1:
                self.found.append((path, reached))
            for each in costs.values():
                keep_cuts_apart(board, each, path)
        return self._shared(ranks, entries)

    def _close_rails(self, costs: EdgeCosts) -> None:
        """Close the ways along divided rails: metal of the net that is there already would carry no more."""
        tracks, grid = self.board.tracks, self.board.stack.technology.grid
        for terminal in self.net.terminals:
            if terminal.divided:
                box = terminal.box.enlarged(2 * grid, 0)
                rows, columns = inside(tracks.ys, box.bottom, box.top), spanning(tracks.xs, box.left, box.right)
                costs.right[self.board.stack.index(terminal.layer), rows, columns] = -1

    def _landings(
        self, number: int, rank: int, entries: Mapping[int, Sequence[set[int]]], costs: Mapping[int, EdgeCosts]
    ) -> dict[int, tuple[int, ...]]:
        """Return the nodes where a path may end at a piece of metal, each with the nodes from there to the metal.

        Where a path carries more than the piece draws, for the sake of others, it may end above the piece: the vias
        down to it need cuts for the piece alone.
        """
        found: dict[int, tuple[int, ...]] = dict.fromkeys(sorted(entries[rank][number]), ())
        own = self._rank(self.own[number])
        if own >= rank:
            return found
        tracks = self.board.tracks
        for entry in sorted(entries[own][number]):
            level, column, row = tracks.place(entry)
            down: tuple[int, ...] = (entry,)
            while level + 1 < len(costs[own].via) and costs[own].via[level, row, column] >= 0:
                level += 1
                node = tracks.node(level, column, row)
                found.setdefault(node, down)
                down = (node, *down)
        return found

    def _is_thick(self, number: int) -> bool:
        """Return whether some metal of a group is as wide as the widest wires on its conductor."""
        stack, widest = self.board.stack, self.net.shares[-1][1]
        return any(
            min(terminal.box.width(), terminal.box.height()) >= stack.wire_width(stack.index(terminal.layer), widest)
            for terminal in (self.net.terminals[index] for index in self.groups[number])
        )

    def _shared(self, ranks: Sequence[int], entries: dict[int, list[set[int]]]) -> Shared:
        """Return the paths that were found, in parts through which one share flows."""
        pieces = {node: number for found in entries.values() for number, nodes in enumerate(found) for node in nodes}
        through = flows([path for path, _ in self.found], self.draws, pieces, self.whole)
        self.through = [
            {step: through[step] for a, b in pairwise(path) if (step := (min(a, b), max(a, b))) in through}
            for path, _ in self.found
        ]
        parts: list[tuple[list[int], Share]] = []
        for (path, reached), its in zip(self.found, self.through, strict=True):
            widest, last = ranks[reached], None
            for a, b in pairwise(path):
                current = its.get((min(a, b), max(a, b)), self.least[reached])
                share = Share(self.net.shares[min(widest, self._rank(current))][1], current)
                if share != last:
                    parts.append(([a], share))
                parts[-1][0].append(b)
                last = share
        return Shared(parts)

    def raised(self) -> bool:
        """Raise what paths must carry to what flows through them; return whether any becomes wider."""
        wider = False
        for (_, reached), its in zip(self.found, self.through, strict=True):
            most = max(its.values(), default=0.0)
            wider = wider or self._rank(most) > self._rank(self.least[reached])
            self.least[reached] = max(self.least[reached], most)
        return wider
