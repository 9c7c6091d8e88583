"""One net: which terminals are already joined, and the paths that join the rest."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

    from layoutkit.route.board import Access, Board
    from layoutkit.route.path_search import EdgeCosts
    from layoutkit.route.routes import NetRequest, Terminal

    IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Growth:
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


def grow(board: Board, net: NetRequest, costs: EdgeCosts) -> Growth:
    """Return paths that join all groups of a net's terminals, each grown to the nearest group not yet joined."""
    access = board.access(net)
    groups = joined(net.terminals, [entry.level for entry in access])
    entries = [[access[i] for i in group] for group in groups]
    reason = _unreachable(board, net, groups, entries, costs)
    if reason is not None:
        return Growth([], reason)
    waiting = set(range(1, len(groups)))
    tree = _nodes(board, entries[0])
    paths: list[list[int]] = []
    while waiting:
        targets: dict[int, int] = {}
        for group in sorted(waiting, reverse=True):
            targets.update(dict.fromkeys(_nodes(board, entries[group]), group))
        guess = _guess(board, [entry for group in sorted(waiting) for entry in entries[group]])
        path = board.search.shortest_path(costs, guess, sorted(tree), sorted(targets))
        if not path:
            return Growth(paths, _no_path(board, net, groups, waiting))
        reached = targets[path[-1]]
        waiting.discard(reached)
        tree.update(path)
        tree.update(_nodes(board, entries[reached]))
        if len(path) > 1:
            paths.append(path)
        _keep_cuts_apart(board, costs, path)
    return Growth(paths)


def _nodes(board: Board, entries: Sequence[Access]) -> set[int]:
    return {node for entry in entries for node in entry.nodes(board.tracks)}


def _guess(board: Board, entries: Sequence[Access]) -> IntArray:
    """Return the Manhattan distance from each (row, column) to the nearest of the entries' bounding boxes."""
    import numpy as np

    xs, ys = np.asarray(board.tracks.xs, dtype=np.int64), np.asarray(board.tracks.ys, dtype=np.int64)
    nearest = np.full((len(ys), len(xs)), 1 << 60, dtype=np.int64)
    for entry in entries:
        if entry.columns and entry.rows:
            dx = np.maximum(np.maximum(xs[entry.columns[0]] - xs, xs - xs[entry.columns[-1]]), 0)
            dy = np.maximum(np.maximum(ys[entry.rows[0]] - ys, ys - ys[entry.rows[-1]]), 0)
            np.minimum(nearest, dy[:, None] + dx[None, :], out=nearest)
    return nearest


def _keep_cuts_apart(board: Board, costs: EdgeCosts, path: Sequence[int]) -> None:
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
    entries: Sequence[Sequence[Access]],
    costs: EdgeCosts,
) -> str | None:
    """Return why a group cannot even be left, None when all can (or there is nothing to join)."""
    if len(groups) < 2:
        return None
    for group, its_entries in zip(groups, entries, strict=True):
        nodes = _nodes(board, its_entries)
        where = _where(board, net, group[0])
        if not nodes:
            return f"terminal {where} cannot be reached: it lies outside the routing area"
        others = set().union(*(_nodes(board, entry) for entry in entries if entry is not its_entries))
        if nodes & others or any(_has_exit(board, costs, node) for node in sorted(nodes)):
            continue
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


def _no_path(board: Board, net: NetRequest, groups: Sequence[Sequence[int]], waiting: set[int]) -> str:
    joined_so_far = [index for number, group in enumerate(groups) if number not in waiting for index in group]
    target = groups[min(waiting)][0]
    return (
        f"no path from the terminal {_where(board, net, joined_so_far[0])} to the terminal "
        f"{_where(board, net, target)}: obstacles close every way inside the routing area"
    )
