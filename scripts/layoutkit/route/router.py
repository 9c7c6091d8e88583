"""Route several nets at once: A* per net, conflicts settled by negotiation.

Every net is routed as if conflicts were only expensive; each round conflicts cost more and leave a history, and the
nets in conflict are ripped up and routed again (McMurchie, Ebeling: PathFinder, 1995). A net that still conflicts at
the end is taken out, the least important first, and reported.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from layoutkit.errors import GeometryError
from layoutkit.route.board import HARD, Board
from layoutkit.route.metal import Finisher, NetMetal, metal_of_paths, too_close
from layoutkit.route.model import NetRequest, RoutedNet, RouteOptions, RoutingResult
from layoutkit.route.stack import Stack, make_stack
from layoutkit.route.tree import grow

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.route.model import Rect
    from layoutkit.technology import Technology

    Obstacle = tuple[kdb.Box | kdb.Polygon | kdb.Region, str | None]

HIGHEST_WEIGHT = 16
LARGEST_SECOND_TRY = 100_000
"""Nodes up to which failed nets are tried once more with tracks that hug the fixed metal."""
SECOND_TRY_ITERATIONS = 12


def route(
    technology: Technology,
    nets: Sequence[NetRequest],
    obstacles: Mapping[str, Iterable[Obstacle]],
    area: kdb.Box,
    layers: Sequence[str],
    options: RouteOptions | None = None,
) -> RoutingResult:
    """Return wires and vias that join the terminals of every net, and why a net has none.

    Args:
        technology: The rules.
        nets: What to route.
        obstacles: Per conductor or cut of the stack (its name or an alias): metal that is already there and the net
            it belongs to (None: nobody's). A net may touch its own; others keep the rules' distance to it. Terminals
            count as metal of their net and need not be repeated.
        area: Nothing is drawn outside it. [dbu]
        layers: Conductors that may carry wires; vias pass through those in between.
        options: How to search.

    When a net fails, all are routed once more with further tracks that pass as near to fixed metal as the rules allow,
    so that a gap which just admits a wire is found; the better of the two outcomes counts.

    Raises:
        GeometryError: If the area is empty, a name appears twice or a net has no terminal.
        TechnologyError: If a layer is none of the technology's stack.
    """
    options = options or RouteOptions()
    _check_request(nets, area)
    stack = make_stack(technology, layers, [terminal.layer for net in nets for terminal in net.terminals])
    fixed = sorted({*_fixed_metal(stack, obstacles), *_terminal_metal(stack, nets)}, key=str)
    limits = (area.left, area.bottom, area.right, area.top)
    first = _Negotiation(Board(stack, nets, fixed, limits, options), nets).run()
    if not first.failed:
        return first
    board = Board(stack, nets, fixed, limits, options, hugging=True)
    tracks = board.tracks
    if len(tracks.xs) * len(tracks.ys) * len(stack.conductors) > LARGEST_SECOND_TRY:
        return first
    board.options = replace(options, max_iterations=min(options.max_iterations, SECOND_TRY_ITERATIONS))
    second = _Negotiation(board, nets).run()
    return second if len(second.failed) < len(first.failed) else first


def _check_request(nets: Sequence[NetRequest], area: kdb.Box) -> None:
    names = [net.name for net in nets]
    twice = sorted({name for name in names if names.count(name) > 1})
    faults = [f"net '{name}' is asked for more than once" for name in twice]
    faults += [f"net '{net.name}' has no terminal" for net in nets if not net.terminals]
    if area.empty() or not area.width() or not area.height():
        faults.append("the routing area is empty")
    if faults:
        raise GeometryError("; ".join(faults))


def _terminal_metal(stack: Stack, nets: Sequence[NetRequest]) -> Iterable[tuple[str, Rect, str | None]]:
    for net in nets:
        for terminal in net.terminals:
            box = terminal.box
            name = stack.conductors[stack.index(terminal.layer)].name
            yield name, (box.left, box.bottom, box.right, box.top), net.name


def _fixed_metal(stack: Stack, obstacles: Mapping[str, Iterable[Obstacle]]) -> Iterable[tuple[str, Rect, str | None]]:
    """Yield rectangles that cover the obstacles; slanted parts become their bounding boxes."""
    import klayout.db as kdb

    for layer, shapes in obstacles.items():
        name = stack.technology.resolve(layer)
        levels = [i for i, conductor in enumerate(stack.conductors) if conductor.name == name]
        if not levels and name not in [cut.name for cut in stack.cuts]:
            continue
        by_net: dict[str | None, kdb.Region] = {}
        for geometry, net in shapes:
            by_net.setdefault(net, kdb.Region()).insert(geometry)
        for net, region in by_net.items():
            merged = region.merged()
            pieces = [piece.bbox() for piece in merged.decompose_trapezoids_to_region().each()]
            if levels:
                pieces += _wide_parts(stack, levels[0], merged)
            for box in pieces:
                yield name, (box.left, box.bottom, box.right, box.top), net


def _wide_parts(stack: Stack, level: int, merged: kdb.Region) -> list[kdb.Box]:
    """Return boxes over the parts wider than the wide-metal limit, which a decomposition may have cut thinner."""
    limit = stack.conductors[level].wide_width
    if limit is None:
        return []
    half = limit // 2
    core = merged.sized(-half).sized(half) & merged
    return [
        box.enlarged(max(0, half + 1 - box.width() // 2), max(0, half + 1 - box.height() // 2)) & merged.bbox()
        for polygon in core.decompose_trapezoids_to_region().each()
        for box in [polygon.bbox()]
    ]


@dataclass
class _State:
    """Where one net stands."""

    metal: NetMetal | None = None
    entered: bool = False
    reason: str | None = None
    conflicts: tuple[str, ...] = ()
    flaws: tuple[tuple[str, str, Rect], ...] = ()


class _Negotiation:
    """The rounds of rip-up and re-route over one board."""

    def __init__(self, board: Board, nets: Sequence[NetRequest]) -> None:
        self.board, self.stack, self.nets = board, board.stack, list(nets)
        self.state = {net.name: _State() for net in nets}
        self.order = sorted(nets, key=lambda net: (net.priority, _half_perimeter(net), net.name))
        self.rounds = 0

    def run(self) -> RoutingResult:
        todo, weight = list(self.order), 1
        for number in range(1, self.board.options.max_iterations + 1):
            self.rounds = number
            for net in todo:
                self._route_again(net, weight)
            todo = [net for net in self.order if self._is_bad(net)]
            if not todo:
                break
            weight = min(2 * weight, HIGHEST_WEIGHT)
        self._give_up(todo)
        tracks = self.board.tracks
        return RoutingResult(
            nets=tuple(self._outcome(net) for net in self.nets),
            iterations=self.rounds,
            tracks=(len(tracks.xs), len(tracks.ys), len(self.stack.conductors)),
        )

    def _route_again(self, net: NetRequest, weight: int) -> None:
        state = self.state[net.name]
        if state.reason is not None:
            return
        if state.metal is not None:
            self._leave(net)
            self.board.blame(state.metal, net)
        self._try(net, weight)

    def _try(self, net: NetRequest, weight: int) -> None:
        """Route a net and enter it, or note why it has no path."""
        state = self.state[net.name]
        growth = grow(self.board, net, self.board.costs(net, weight))
        state.metal, state.reason, state.flaws = None, growth.reason, ()
        if growth.reason is not None:
            return
        state.metal = metal_of_paths(self.stack, self.board.tracks, growth.paths, net.width)
        finisher = self._finisher(net)
        finisher.finish(state.metal, net.width)
        state.flaws = tuple(finisher.flaws(state.metal))
        self.board.change(net, state.metal, 1)
        state.entered = True

    def _leave(self, net: NetRequest) -> None:
        state = self.state[net.name]
        if state.entered and state.metal is not None:
            self.board.change(net, state.metal, -1)
            state.entered = False

    def _finisher(self, net: NetRequest) -> Finisher:
        return Finisher(self.stack, self.board.occupancy, net.name, self.board.own[net.name])

    def _is_bad(self, net: NetRequest) -> bool:
        """Return whether an entered route conflicts with others or breaks a rule by itself."""
        state = self.state[net.name]
        return state.entered and bool(state.flaws or self._conflicts(net))

    def _conflicts(self, net: NetRequest) -> set[str]:
        """Return the names of whose metal or cuts are too close; fixed metal of nobody is called an obstacle."""
        metal = self.state[net.name].metal
        found: set[str] = set()
        if metal is None:
            return found
        finisher = self._finisher(net)
        for level, rect in metal.rects(self.stack):
            found.update(shape.net or "an obstacle" for shape in finisher.in_the_way(level, rect))
        for cut, rect in metal.cuts(self.stack):
            space = self.stack.cuts[cut].space
            for shape in self.board.occupancy.near(self.stack.cuts[cut].name, rect, space):
                if shape.net != net.name and too_close(shape.rect, rect, space):
                    found.add(shape.net or "an obstacle")
        return found

    def _give_up(self, bad: Sequence[NetRequest]) -> None:
        """Take nets out until none conflicts, then offer each the room that is left."""
        out: list[NetRequest] = []
        remaining = list(bad)
        while remaining:
            victim = max(remaining, key=lambda net: (bool(self.state[net.name].flaws), self.order.index(net)))
            state = self.state[victim.name]
            state.conflicts = tuple(sorted(self._conflicts(victim)))
            state.reason = self._why(victim)
            self._leave(victim)
            out.append(victim)
            remaining = [net for net in remaining if net is not victim and self._is_bad(net)]
        for net in reversed(out):
            state = self.state[net.name]
            reason, conflicts = state.reason, state.conflicts
            self._try(net, HARD)
            if state.entered and not self._is_bad(net):
                state.conflicts = ()
                continue
            self._leave(net)
            state.metal, state.reason, state.conflicts = None, reason, conflicts

    def _why(self, net: NetRequest) -> str:
        conflicts = self.state[net.name].conflicts
        if conflicts:
            return (
                f"congestion: after {self.rounds} rounds every way found comes too close to {', '.join(conflicts)}; "
                "give more area, more layers or another priority"
            )
        what, name, where = self.state[net.name].flaws[0]
        um = self.stack.technology.to_um
        return f"{what} of {name} cannot be kept near ({um(where[0]):g}, {um(where[1]):g}) um"

    def _outcome(self, net: NetRequest) -> RoutedNet:
        state = self.state[net.name]
        if state.metal is None or not state.entered:
            return RoutedNet(net.name, success=False, reason=state.reason, conflicts=state.conflicts)
        metal = state.metal
        return RoutedNet(
            name=net.name,
            success=True,
            wires=tuple(metal.wires),
            vias=tuple(metal.vias),
            path=metal.path(),
            patches=tuple(metal.patches),
            metal=tuple((self.stack.conductors[level].name, rect) for level, rect in metal.rects(self.stack)),
            wire_length=metal.wire_length,
            via_count=len(metal.vias),
        )


def _half_perimeter(net: NetRequest) -> int:
    boxes = [terminal.box for terminal in net.terminals]
    width = max(box.left for box in boxes) - min(box.right for box in boxes)
    height = max(box.bottom for box in boxes) - min(box.top for box in boxes)
    return max(width, 0) + max(height, 0)
