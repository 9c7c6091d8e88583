"""Wires that are mirror images, found on the track graph folded at the axis.

A pair of nets: each way of the first net is free for its image, too, which the second net gets. Where the pins of the
two lie at different heights, both nets get the same wire past both heights (``mirroring``). What only one of the
nets needs is drawn for both where there is room, so that their metal stays equal.

A net that is its own image: its ways lie left of the axis or on it, and all are drawn again as images. What has no
image on the other side, such as a port, is joined afterwards; images of these ways are drawn where there is room.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from layoutkit.rectangle import Shape, too_close
from layoutkit.route.metal import metal_of_paths
from layoutkit.route.mirroring import Bridge, Bridging, Fold
from layoutkit.route.routes import Gauge
from layoutkit.route.tracks import EdgeCosts, EdgeCounts
from layoutkit.route.tree import Linked, box_of, distance_to, grow, joined, keep_cuts_apart, nodes_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from layoutkit.route.board import Board
    from layoutkit.route.metal import NetMetal
    from layoutkit.route.mirroring import Mirror
    from layoutkit.route.routes import NetRequest

Paths = list[list[int]]

MOST_IMAGES = 2
"""How long images that end nowhere may be on a net that is its own image, in lengths of what is mirrored anyway."""


NO_IMAGE = "some terminals have no mirror image or no free way to it"
BRIDGED = "the pins lie at different heights: the wires past both are mirror images, those to each pin are not"


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
    folds += Bridging(board, mirror, (net, twin), costs, both).folds(groups, folds)
    forest = _Forest(board, mirror, net, both, folds, twins=True)
    forest.grow()
    if not forest.paths[0] and len(groups[0]) > 1:
        fits = len(folds) > 1
        return Folded(
            [], "there is no symmetric way" if fits else "the terminals of the two nets are not mirror images"
        )
    rest = _rest_with_images(board, mirror, (net, twin), costs, forest)
    if rest is None:
        found: list[Paths] = []
        for number, (request, its_costs) in enumerate(zip((net, twin), costs, strict=True)):
            other = found[0] if found else forest.paths[1 - number]
            close_near(board, its_costs, request.width, metal_of_paths(board.stack, board.tracks, other, net.width))
            growth = grow(board, request, its_costs, forest.parts(number))
            if growth.reason is not None:
                return Folded([], growth.reason)
            found.append([*forest.paths[number], *growth.paths])
        return Folded(found, reason=f"{NO_IMAGE}: they are joined by ways of their own")
    if any(fold.bridges for fold in folds):
        rest.reason = BRIDGED
    return rest


def _rest_with_images(
    board: Board,
    mirror: Mirror,
    nets: tuple[NetRequest, NetRequest],
    costs: tuple[EdgeCosts, EdgeCosts],
    forest: _Forest,
) -> Folded | None:
    """Return the ways of two nets, where each also gets the image of what only the other one needs.

    A net with a port on one side only then has a twin with as much metal. None where an image finds no room, or where
    the images would be longer than what is mirrored anyway. An image that would touch nothing is not drawn.
    """
    found = [list(paths) for paths in forest.paths]
    images: list[Paths] = [[], []]
    lengths = []
    for number, net in enumerate(nets):
        closed = []
        for side in (number, 1 - number):
            mine = EdgeCosts(costs[side].right.copy(), costs[side].up.copy(), costs[side].via.copy())
            close_near(board, mine, net.width, metal_of_paths(board.stack, board.tracks, found[1 - side], net.width))
            for path in found[side]:
                keep_cuts_apart(board, mine, path)
            closed.append(mine)
        growth = grow(board, net, mirror.pair_costs(closed[0], closed[1], net.width), forest.parts(number))
        if growth.reason is not None:
            return None
        images[1 - number] = [mirror.image_path(path) for path in growth.paths]
        rest, theirs = (
            metal_of_paths(board.stack, board.tracks, paths, net.width) for paths in (growth.paths, images[1 - number])
        )
        if _too_near(board, rest, theirs):
            return None
        found[number] += growth.paths
        found[1 - number] += images[1 - number]
        lengths.append(rest.wire_length)
    mirrored = metal_of_paths(board.stack, board.tracks, forest.paths[0], nets[0].width).wire_length
    if min(lengths) > mirrored:
        return None
    kept = [_without_loose(board, net, found[side], images[side]) for side, net in enumerate(nets)]
    return Folded(kept, reason=f"{NO_IMAGE} that joins anything" if kept != found else "")


def _without_loose(board: Board, net: NetRequest, paths: Paths, images: Paths) -> Paths:
    """Return the ways of a net without images that touch no terminal, neither directly nor through other ways.

    Args:
        board: Where the ways lie.
        net: The net.
        paths: All its ways.
        images: Those of ``paths`` that mirror ways between terminals on the other side only.
    """
    doubtful = {id(path) for path in images}
    reached = set[int]().union(*groups_of(board, net), *(path for path in paths if id(path) not in doubtful))
    waiting = list(images)
    while attached := [path for path in waiting if not reached.isdisjoint(path)]:
        reached.update(*attached)
        waiting = [path for path in waiting if reached.isdisjoint(path)]
    loose = {id(path) for path in waiting}
    return [path for path in paths if id(path) not in loose]


def _too_near(board: Board, one: NetMetal, other: NetMetal) -> bool:
    """Return whether metal or cuts of two nets keep too little distance."""
    stack = board.stack
    levels = [
        too_close(rect, its, stack.space(level, wide=stack.is_wide(level, rect)))
        for level, rect in one.rects(stack)
        for at, its in other.rects(stack)
        if at == level
    ]
    return any(levels) or _cuts_too_near(board, one, other)


def _cuts_too_near(board: Board, one: NetMetal, other: NetMetal) -> bool:
    """Return whether cuts of two kinds of metal keep too little distance; a cut of both is one cut."""
    stack = board.stack
    return any(
        too_close(rect, its, stack.cuts[cut].space)
        for cut, rect in one.cuts(stack)
        for at, its in other.cuts(stack)
        if at == cut and rect != its
    )


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

    def parts(self, number: int) -> list[Linked]:
        """Return what is joined of the first (0) or second (1) net."""
        found = []
        for tree, drawn in self.trees:
            groups = {
                group for fold in tree for group in (self.folds[fold].second if number else self.folds[fold].first)
            }
            nodes = {self.mirror.image_of(node) for node in drawn} if number else drawn
            found.append(Linked(frozenset(groups), frozenset(nodes)))
        return found


def close_near(board: Board, costs: EdgeCosts, width: int | None, metal: NetMetal) -> None:
    """Close the edges on which wires of ``width`` would come too close to some metal and its cuts."""
    counts = EdgeCounts(board.stack, board.tracks, Gauge(width))
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
            parts.append(Linked(frozenset().union(*(folds[fold].first for fold in tree)), frozenset(nodes)))
    mirrored = with_images(mirror, forest.paths[0])
    rest = _own_rest_with_images(board, mirror, net, (costs, mirrored), parts)
    if rest is not None:
        whole = [*mirrored, *with_images(mirror, rest)]
        kept = _without_loose(board, net, whole, whole[len(mirrored) + len(rest) :])
        return Folded([kept], reason=f"{NO_IMAGE} that joins anything" if kept != whole else "")
    growth = grow(board, net, costs, parts)
    if growth.reason is not None:
        return Folded([], growth.reason)
    return Folded([[*mirrored, *growth.paths]], reason=NO_IMAGE if growth.paths else "")


def _own_rest_with_images(
    board: Board, mirror: Mirror, net: NetRequest, drawn: tuple[EdgeCosts, Paths], parts: Sequence[Linked]
) -> Paths | None:
    """Return the ways to terminals without an image, where there is room for the images of these ways as well.

    The images end nowhere. With them, a clock with a port on one side couples equally to the nets on both sides. None
    where an image finds no room, or where the images would be longer than ``MOST_IMAGES`` allows.

    Args:
        board: Where to route.
        mirror: Its axis.
        net: What to join.
        drawn: Edge costs of the net, and its ways so far.
        parts: What these ways join.
    """
    costs, mirrored = drawn
    both = mirror.folded_costs(costs, net.width)
    for path in mirrored:
        keep_cuts_apart(board, both, path)
    growth = grow(board, net, both, parts)
    if growth.reason is not None:
        return None
    rest, images = growth.paths, [mirror.image_path(path) for path in growth.paths]
    one, other, whole = (
        metal_of_paths(board.stack, board.tracks, paths, net.width) for paths in (rest, images, mirrored)
    )
    if one.wire_length > MOST_IMAGES * whole.wire_length or _cuts_too_near(board, one, other):
        return None
    return rest


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
