"""Wires that are mirror images, found on the track graph folded at the axis.

A pair of nets: each way of the first net is free for its image, too, which the second net gets. Where the pins of the
two lie at different heights, both nets get the same wire past both heights, and a via each::

        |        :        |
   a ===x==  ====:========|===    a's rail: net a has its via here, on the left
        |        :        |
   b ===|========:====  ==x===    b's rail: net b has its via here, on the right

A net that is its own image: its ways lie left of the axis or on it, and all are drawn again as images. What has no
image on the other side is joined by ordinary ways afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from layoutkit.route.metal import metal_of_paths
from layoutkit.route.occupancy import Shape
from layoutkit.route.tracks import EdgeCounts
from layoutkit.route.tree import Part, box_of, distance_to, grow, joined, keep_cuts_apart, nodes_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from layoutkit.route.board import Board
    from layoutkit.route.metal import NetMetal
    from layoutkit.route.mirroring import Mirror
    from layoutkit.route.path_search import EdgeCosts
    from layoutkit.route.routes import NetRequest

Paths = list[list[int]]

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


@dataclass
class Folded:
    """The ways of a mirrored unit: those of each net, and why they are not all mirror images; empty if they are."""

    paths: list[Paths]
    failure: str = ""
    reason: str = ""


def groups_of(board: Board, net: NetRequest) -> list[set[int]]:
    """Return the nodes of each group of terminals of a net that are joined already."""
    access = board.access(net)
    groups = joined(net.terminals, [entry.level for entry in access])
    return [nodes_of(board, [access[index] for index in group]) for group in groups]


# ---- two nets


def grow_pair(board: Board, mirror: Mirror, net: NetRequest, twin: NetRequest, weight: int) -> Folded:
    """Return the ways of two nets: mirror images as far as their terminals allow, and ordinary ways for the rest."""
    costs = board.costs(net, weight), board.costs(twin, weight)
    both = mirror.pair_costs(*costs, net.width)
    groups = groups_of(board, net), groups_of(board, twin)
    folds = _exact_folds(mirror, *groups)
    folds += _Bridging(board, mirror, (net, twin), costs, both).folds(groups, folds)
    forest = _Forest(board, mirror, net, both, folds, twins=True)
    forest.grow()
    if not forest.paths[0] and len(groups[0]) > 1:
        fits = len(folds) > 1
        return Folded(
            [], "there is no symmetric way" if fits else "the terminals of the two nets are not mirror images"
        )
    found: list[Paths] = []
    for number, (request, its_costs) in enumerate(zip((net, twin), costs, strict=True)):
        other = found[0] if found else forest.paths[1 - number]
        close_near(board, its_costs, request.width, metal_of_paths(board.stack, board.tracks, other, net.width))
        growth = grow(board, request, its_costs, forest.parts(number))
        if growth.reason is not None:
            return Folded([], growth.reason)
        found.append([*forest.paths[number], *growth.paths])
    rest = [len(its) - len(mirrored) for its, mirrored in zip(found, forest.paths, strict=True)]
    reason = ""
    if any(rest):
        reason = "some terminals have no mirror image or no free way to it: they are joined by ways of their own"
    elif any(fold.bridges for fold in folds):
        reason = "the pins lie at different heights: the wires past both are mirror images, those to each pin are not"
    return Folded(found, reason=reason)


def _exact_folds(mirror: Mirror, first: Sequence[set[int]], second: Sequence[set[int]]) -> list[Fold]:
    """Return the groups of two nets that have nodes which are mirror images, each group once."""
    images = [{mirror.image_of(node) for node in nodes} for nodes in second]
    folds, taken = [], set()
    for number, nodes in enumerate(first):
        shared = [(len(nodes & image), -index) for index, image in enumerate(images) if index not in taken]
        count, index = max(shared, default=(0, 0))
        if count:
            taken.add(-index)
            folds.append(Fold(frozenset({number}), frozenset({-index}), nodes & images[-index]))
    return folds


class _Bridging:
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


class _Forest:
    """Grows mirrored ways between folds; ``paths`` has those of the first net and those of the second."""

    def __init__(
        self,
        board: Board,
        mirror: Mirror,
        net: NetRequest,
        costs: EdgeCosts,
        folds: Sequence[Fold],
        *,
        twins: bool,
    ) -> None:
        self.board, self.mirror, self.net, self.costs, self.folds = board, mirror, net, costs, list(folds)
        self.twins = twins
        self.paths: list[Paths] = [[], []]
        self.trees: list[tuple[set[int], set[int]]] = []  # folds and drawn nodes of each tree
        self.drawn_bridges: set[Bridge] = set()

    def grow(self) -> None:
        """Join as many folds as there are ways between them."""
        waiting = set(range(len(self.folds)))
        while waiting:
            first = min(waiting)
            waiting.discard(first)
            tree, drawn = {first}, set[int]()
            self.trees.append((tree, drawn))
            while waiting and self._grow_on(tree, drawn, waiting):
                pass

    def _grow_on(self, tree: set[int], drawn: set[int], waiting: set[int]) -> bool:
        board = self.board
        targets = {node: fold for fold in sorted(waiting, reverse=True) for node in self.folds[fold].nodes}
        starts = drawn.union(*(self.folds[fold].nodes for fold in tree))
        if not starts or not targets:
            return False
        boxes = [box_of(board, self.folds[fold].nodes) for fold in sorted(waiting) if self.folds[fold].nodes]
        path = board.search.shortest_path(self.costs, distance_to(board, boxes), sorted(starts), sorted(targets))
        if not path:
            return False
        fold = targets[path[-1]]
        waiting.discard(fold)
        new = [path] if len(path) > 1 else []
        added: list[Paths] = [list(new), [self.mirror.image_path(each) for each in new]]
        # The new fold's bridge is drawn also where it meets wires of the tree, so that the way has no length.
        for node, folds, wires in ((path[0], sorted(tree), drawn), (path[-1], [fold], set[int]())):
            bridge = self._bridge_at(node, folds, wires)
            if bridge is not None:
                self._add_bridge(bridge, added, drawn)
        tree.add(fold)
        self.add(added, drawn)
        return True

    def _bridge_at(self, node: int, folds: Sequence[int], drawn: set[int]) -> Bridge | None:
        """Return the bridge by which a way enters one of ``folds`` at a node; None where it needs none."""
        if node in drawn or any(node in self.folds[fold].exact for fold in folds):
            return None
        return next(self.folds[fold].bridges[node] for fold in folds if node in self.folds[fold].bridges)

    def _add_bridge(self, bridge: Bridge, added: list[Paths], drawn: set[int]) -> None:
        if bridge in self.drawn_bridges:
            return
        self.drawn_bridges.add(bridge)
        wire = list(bridge.wire)
        added[0] += [each for each in (wire, list(bridge.first)) if len(each) > 1]
        added[1] += [each for each in (self.mirror.image_path(wire), list(bridge.second)) if len(each) > 1]
        drawn.update(bridge.wire)

    def add(self, added: list[Paths], drawn: set[int]) -> None:
        """Take ways into the forest: later ones keep away from what they draw on the other side."""
        for number, new in enumerate(added):
            self.paths[number] += new
        nodes = {node for path in added[0] for node in path}
        if self.twins:  # what leads from a bridge to the pin of one net is not drawn by the other
            nodes &= {self.mirror.image_of(node) for path in added[1] for node in path}
        drawn.update(nodes)
        for path in added[0]:
            keep_cuts_apart(self.board, self.costs, path)
        if self.twins:
            metal = metal_of_paths(self.board.stack, self.board.tracks, added[1], self.net.width)
            close_near(self.board, self.costs, self.net.width, metal)

    def parts(self, number: int) -> list[Part]:
        """Return what is joined of the first (0) or second (1) net."""
        found = []
        for tree, drawn in self.trees:
            groups = {
                group for fold in tree for group in (self.folds[fold].second if number else self.folds[fold].first)
            }
            nodes = {self.mirror.image_of(node) for node in drawn} if number else drawn
            found.append(Part(frozenset(groups), frozenset(nodes)))
        return found


def close_near(board: Board, costs: EdgeCosts, width: int | None, metal: NetMetal) -> None:
    """Close the edges on which wires of ``width`` would come too close to some metal and its cuts."""
    counts = EdgeCounts(board.stack, board.tracks, width)
    for level, rect in metal.rects(board.stack):
        counts.add_metal(level, Shape(rect, None, board.stack.is_wide(level, rect)))
    for cut, rect in metal.cuts(board.stack):
        counts.add_cut(cut, rect)
    costs.right[counts.right > 0] = -1
    costs.up[counts.up > 0] = -1
    costs.via[counts.via > 0] = -1


# ---- one net


def grow_own_image(board: Board, mirror: Mirror, net: NetRequest, weight: int) -> Folded:
    """Return the ways of a net that are their own mirror image as far as its terminals allow, and the rest."""
    costs = board.costs(net, weight)
    groups = groups_of(board, net)
    if len(groups) < 2:
        return Folded([[]])
    folds = _own_folds(board, mirror, groups)
    if len(folds) < 2 and not any(len(fold.first) == 2 for fold in folds):
        return Folded([], "the terminals of the net are not mirror images of each other")
    forest = _Forest(board, mirror, net, mirror.own_costs(costs, net.width), folds, twins=False)
    forest.grow()
    parts = []
    for tree, drawn in forest.trees:
        across = any(len(folds[fold].first) == 1 for fold in tree)
        if across or _cross(board, mirror, forest, tree, drawn):
            nodes = drawn | {mirror.image_of(node) for node in drawn}
            parts.append(Part(frozenset().union(*(folds[fold].first for fold in tree)), frozenset(nodes)))
    mirrored = with_images(mirror, forest.paths[0])
    growth = grow(board, net, costs, parts)
    if growth.reason is not None:
        return Folded([], growth.reason)
    reason = "some terminals have no mirror image or no free way to it" if growth.paths else ""
    return Folded([[*mirrored, *growth.paths]], reason=reason)


def _own_folds(board: Board, mirror: Mirror, groups: Sequence[set[int]]) -> list[Fold]:
    """Return the groups of a net that are their own image, and those of which one is the other's, left of the axis."""
    on_left = [x <= mirror.axis for x in board.tracks.xs]
    folds, taken = [], set[int]()
    for number, nodes in enumerate(groups):
        images = {mirror.image_of(node) for node in nodes}
        for other in (number, *range(number + 1, len(groups))):
            shared = images & groups[other]
            if number not in taken and other not in taken and shared:
                taken |= {number, other}
                both = shared | {mirror.image_of(node) for node in shared}
                left = {node for node in both if on_left[board.tracks.place(node)[1]]}
                folds.append(Fold(frozenset({number, other}), frozenset(), left))
    return folds


def _cross(board: Board, mirror: Mirror, forest: _Forest, tree: set[int], drawn: set[int]) -> bool:
    """Join a tree to its image by a way to the axis; return whether there is one."""
    tracks = board.tracks
    middle = [column for column, x in enumerate(tracks.xs) if x == mirror.axis]
    if not middle:
        return False
    targets = {
        tracks.node(level, middle[0], row)
        for level, wired in enumerate(board.stack.wired)
        if wired
        for row in range(len(tracks.ys))
    }
    starts = drawn.union(*(forest.folds[fold].nodes for fold in tree))
    if starts & targets:
        return True
    path = board.search.shortest_path(
        forest.costs, distance_to(board, [box_of(board, targets)]), sorted(starts), sorted(targets)
    )
    if not path:
        return False
    forest.add([[path], []], drawn)
    return True


def with_images(mirror: Mirror, paths: Paths) -> Paths:
    """Return ways together with the parts of their images that they do not hold themselves."""
    known = {(min(edge), max(edge)) for path in paths for edge in pairwise(path)}
    found = list(paths)
    for path in paths:
        run: list[int] = []
        for one, other in pairwise(mirror.image_path(path)):
            edge = (min(one, other), max(one, other))
            if edge in known:
                found += [run] if len(run) > 1 else []
                run = []
            else:
                known.add(edge)
                run = [*(run or [one]), other]
        found += [run] if len(run) > 1 else []
    return found
