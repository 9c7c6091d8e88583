"""One net: which terminals are already joined, and the paths that join the rest."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    import numpy as np
    import numpy.typing as npt

    from layoutkit.route.board import Board, TerminalAccess
    from layoutkit.route.path_search import EdgeCosts
    from layoutkit.route.routes import NetRequest, Rect, Terminal

    IntArray = npt.NDArray[np.int64]

FEW_BOXES = 4
"""Up to so many, the distance to each is calculated everywhere."""
MANY_PARTS = 40
STALE = 0.9
"""While more parts wait, distances that also count parts reached since are a lower bound until so many are left."""


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
