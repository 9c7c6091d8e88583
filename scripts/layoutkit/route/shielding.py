"""Draw wires of a shield's net at both sides of a routed net, and join them to that net.

============= shield ============   on the first track that keeps the minimum space,
------------- net ---------------   where there is room; vias and wires of the shield's net join them
============= shield ============
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import klayout.db as kdb

from layoutkit.rectangle import FixedMetal
from layoutkit.route.board import HARD
from layoutkit.route.metal import Finisher, metal_of_paths
from layoutkit.route.routes import NetRequest, Patch, Terminal
from layoutkit.route.tree import Linked, grow, joined

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from layoutkit.rectangle import Rect
    from layoutkit.route.board import Board
    from layoutkit.route.metal import NetMetal
    from layoutkit.route.routes import Wire


class ShieldPiece(NamedTuple):
    """One wire of a shield: level, rectangle, the side of the net it lies at, and the stretch that it covers. [dbu]"""

    level: int
    rect: Rect
    side: tuple[int, int, int]
    covers: tuple[int, int]


class Shielding:
    """Shields nets on a board on which all nets are entered."""

    def __init__(self, board: Board) -> None:
        self.board, self.stack = board, board.stack

    def shield(self, metal: NetMetal, by: NetRequest, its: NetMetal) -> int:
        """Add wires of ``by`` beside those of a net to its metal ``its``, and return the length shielded at both sides.

        Args:
            metal: What the net draws.
            by: The net of the shield.
            its: What that net draws; it is entered on the board, before and after.
        """
        drawn = [piece for piece in self._pieces(metal, by) if self._join(by, its, piece)]
        return _covered_twice(drawn)

    def _pieces(self, metal: NetMetal, by: NetRequest) -> Iterator[ShieldPiece]:
        """Yield the free stretches beside the wires of a net, longest wires first."""
        segments = [
            (wire, number, a, b) for number, wire in enumerate(metal.wires) for a, b in pairwise(wire.points) if a != b
        ]
        segments.sort(key=lambda s: (-abs(s[3][0] - s[2][0]) - abs(s[3][1] - s[2][1]), s[1], s[2]))
        for index, (wire, _, a, b) in enumerate(segments):
            level = self.stack.index(wire.layer)
            upright = a[0] == b[0]
            low, high = sorted((a[1], b[1]) if upright else (a[0], b[0]))
            for sign in (-1, 1):
                track = self._track(level, wire, a[0] if upright else a[1], sign, upright=upright)
                if track is not None:
                    for first, last in self._free(level, by, track, (low, high), upright=upright):
                        rect = self._rect(level, track, first, last, upright=upright)
                        yield ShieldPiece(level, rect, (index, level, sign), (first, last))

    def _track(self, level: int, wire: Wire, centre: int, sign: int, *, upright: bool) -> int | None:
        """Return the nearest track on which a shield keeps its distance to a wire."""
        tracks = self.board.tracks.xs if upright else self.board.tracks.ys
        wide = wire.width > (self.stack.conductors[level].wide_width or wire.width)
        apart = wire.width // 2 + self.stack.space(level, wide=wide) + self.stack.width(level, None) // 2
        found = bisect_left(tracks, centre + apart) if sign > 0 else bisect_right(tracks, centre - apart) - 1
        near = 0 <= found < len(tracks) and abs(tracks[found] - centre) <= apart + 2 * self.board.pitch
        return tracks[found] if near else None

    def _rect(self, level: int, track: int, low: int, high: int, *, upright: bool) -> Rect:
        half = self.stack.width(level, None) // 2
        return (track - half, low, track + half, high) if upright else (low, track - half, high, track + half)

    def _free(
        self, level: int, by: NetRequest, track: int, span: tuple[int, int], *, upright: bool
    ) -> list[tuple[int, int]]:
        """Return the stretches of a track in which a shield fits."""
        finisher = Finisher(self.stack, self.board.occupancy, by.name, self.board.own[by.name])
        step = max(self.board.pitch // 2 // self.stack.technology.grid, 1) * self.stack.technology.grid
        conductor = self.stack.conductors[level]
        least = max(2 * self.board.pitch, -(-conductor.area // self.stack.width(level, None)))
        found: list[tuple[int, int]] = []
        at = span[0]
        start: int | None = None
        while at < span[1]:
            end = min(at + step, span[1])
            rect = self._rect(level, track, at, end, upright=upright)
            left, bottom, right, top = self.board.area
            inside = left <= rect[0] and bottom <= rect[1] and rect[2] <= right and rect[3] <= top
            free = inside and not finisher.in_the_way(level, rect)
            if free and start is None:
                start = at
            if start is not None and (not free or end == span[1]):
                last = end if free else at
                found += [(start, last)] if last - start >= least else []
                start = None
            at = end
        return found

    def _join(self, by: NetRequest, its: NetMetal, piece: ShieldPiece) -> bool:
        """Draw a piece and join it to its net; return whether that was possible."""
        board, name = self.board, self.stack.conductors[piece.level].name
        terminal = Terminal(name, kdb.Box(*piece.rect))
        own = FixedMetal(name, piece.rect, by.name, self.stack.is_wide(piece.level, piece.rect))
        board.change(by, its, -1)
        board.add_fixed(own)
        more = self._ways(by, its, terminal)
        trial = replace(
            its, paths=[*its.paths], wires=[*its.wires], vias=[*its.vias], patches=[*its.patches], order=[*its.order]
        )
        good = more is not None
        if more is not None:
            known = {(via.cut, via.x, via.y) for via in trial.vias}
            trial.paths += more.paths
            trial.wires += more.wires
            trial.vias += [via for via in more.vias if (via.cut, via.x, via.y) not in known]
            trial.order += [each for each in more.order if not isinstance(each, tuple) or each not in known]
            trial.patches += [*more.patches, Patch(name, piece.rect)]
            finisher = Finisher(self.stack, board.occupancy, by.name, board.own[by.name])
            drawn = len(trial.patches)
            if _necks(finisher, trial):  # where a piece meets another at a corner
                finisher.close_gaps(trial, piece.level)
            good = not any(finisher.in_the_way(piece.level, patch.rect) for patch in trial.patches[drawn:])
            good = good and not _necks(finisher, trial) and len(finisher.flaws(trial)) <= len(finisher.flaws(its))
        board.remove_fixed(own)
        if good:
            its.paths, its.wires, its.vias = trial.paths, trial.wires, trial.vias
            its.patches, its.order = trial.patches, trial.order
        board.change(by, its, 1)
        return good

    def _ways(self, by: NetRequest, its: NetMetal, terminal: Terminal) -> NetMetal | None:
        """Return what joins one more terminal to a net; None if nothing does."""
        board = self.board
        wanted = replace(by, terminals=(*by.terminals, terminal))
        access = board.access(wanted)
        groups = joined(wanted.terminals, [entry.level for entry in access])
        here = next(number for number, group in enumerate(groups) if len(by.terminals) in group)
        if len(groups[here]) > 1:
            return metal_of_paths(self.stack, board.tracks, [], by.width)  # it touches a terminal of the net
        nodes = frozenset(node for path in its.paths for node in path)
        parts: Sequence[Linked] = [Linked(frozenset(number for number in range(len(groups)) if number != here), nodes)]
        growth = grow(board, wanted, board.costs(by, HARD), parts)
        if growth.reason is not None:
            return None
        metal = metal_of_paths(self.stack, board.tracks, growth.paths, by.width)
        Finisher(self.stack, board.occupancy, by.name, board.own[by.name]).finish(metal, by.width, by.current_ma)
        return metal


def _necks(finisher: Finisher, metal: NetMetal) -> bool:
    return any(what == "minimum width" for what, *_ in finisher.flaws(metal))


def _covered_twice(pieces: Sequence[ShieldPiece]) -> int:
    """Return the length of the stretches with pieces at both sides."""
    total = 0
    for piece in pieces:
        index, level, sign = piece.side
        for other in pieces:
            if sign > 0 and other.side == (index, level, -1):
                total += max(0, min(piece.covers[1], other.covers[1]) - max(piece.covers[0], other.covers[0]))
    return total
