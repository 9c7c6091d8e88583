"""Wires past the different heights of the pins of two nets that are to be mirror images: bridges.

     |        :        |
a ===x==  ====:========|===    a's rail: net a has its via here, on the left
     |        :        |
b ===|========:====  ==x===    b's rail: net b has its via here, on the right
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from layoutkit.route.board import Board
    from layoutkit.route.mirroring import Mirror
    from layoutkit.route.path_search import EdgeCosts
    from layoutkit.route.routes import NetRequest

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
