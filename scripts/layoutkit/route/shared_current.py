"""Wires of one net with different widths: each path is as wide as the current needs that flows through it.

The paths to terminals that draw most come first, and those that draw less start from them. Wires that join a path later
may add to its current. Where that becomes more than its width carries, the net is grown once more with a wider path.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from layoutkit.route.metal import Share
from layoutkit.route.net_flows import Draw, flow_between, flows
from layoutkit.route.tracks import inside, spanning
from layoutkit.route.tree import box_of, distance_to, grow, joined, keep_cuts_apart, nodes_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from layoutkit.route.board import Board
    from layoutkit.route.path_search import EdgeCosts
    from layoutkit.route.routes import NetRequest

MOST_ROUNDS = 8
"""How often a net is grown with wider paths."""
ALMOST = 1 + 1e-9


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
