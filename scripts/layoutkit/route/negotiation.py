"""Conflicts between nets, settled by negotiation, and single cuts, which other nets give way to double.

Every net is routed as if conflicts were only expensive; each round conflicts cost more and leave a history, and the
nets in conflict are ripped up and routed again (McMurchie, Ebeling: PathFinder, 1995). A net that still conflicts at
the end is taken out, the least important first, and reported.

Every connection of a net that wants two cuts gets a second one: other nets give way, or the net takes another way. A
via with a single cut is weak where terminals of the net are joined by it only. Vias that have a way around them are not
weak: both ways would have to break.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from layoutkit.route.board import HARD, Board
from layoutkit.route.equal_loads import lengthen
from layoutkit.route.metal import Finisher, NetMetal, Share, cut_index, metal_of_paths, metal_of_shares
from layoutkit.route.mirrored_paths import grow_own_image, grow_pair
from layoutkit.route.mirroring import Mirror, RoutedUnit
from layoutkit.route.routes import Blocker, NetRequest, RoutedNet, RoutingResult
from layoutkit.route.second_cuts import SecondCuts, WiredNet, is_inside
from layoutkit.route.shielding import Shielding
from layoutkit.route.tree import blockers, grow, grow_shared, joins_all, lone_cuts

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from layoutkit.rectangle import Rect
    from layoutkit.route.routes import Patch, SingleCut, Via


HIGHEST_WEIGHT = 16
MOST_SINGLE_CUTS = 0.05
"""Part of the vias that may have a single cut before nets are asked to give way to second ones."""
PATIENCE = 6
"""Rounds in which no fewer nets conflict than before, after which the rounds end where many do."""
MANY_CONFLICTS = 0.25
"""Part of the nets from which that holds; few nets cost little time, and one of them may still find a way."""
FINISH_ROUNDS = 3
"""How often the metal of a net and that of its image are completed in turn."""
NOT_TRIED = "not tried, because another net has no way past the modules"
"""Reason of a net that was not tried; see ``RouteOptions.essential`` and ``gives_up``."""
MOST_GIVING_WAY = 3
"""Nets that are routed again at most so that one via gets a second cut."""
MOST_PLACES = 4
"""Sets of nets that may give way to one via, of which the smaller ones are tried first."""
NEAR = 20
"""Track pitches around a via within which its net gets second cuts when others have given way to it."""
MOST_WAYS = 4
"""Further ways of a net that are tried, each without the weak vias of those before."""


@dataclass
class State:
    """The route of one net so far."""

    metal: NetMetal | None = None
    entered: bool = False
    reason: str | None = None
    conflicts: tuple[str, ...] = ()
    flaws: tuple[tuple[str, str, Rect], ...] = ()
    single_cuts: tuple[SingleCut, ...] = ()
    blocked_by: tuple[Blocker, ...] = ()
    shielded: int = 0


class Negotiation:
    """The rounds of rip-up and re-route over one board."""

    def __init__(self, board: Board, nets: Sequence[NetRequest]) -> None:
        self.board, self.stack, self.nets = board, board.stack, list(nets)
        self.state = {net.name: State() for net in nets}
        self.order = sorted(nets, key=lambda net: (net.priority, _half_perimeter(net), net.name))
        self.mirror = Mirror(board, nets)
        self.rounds = 0
        self.given_up = False

    def run(self) -> RoutingResult:
        """Return the routes after the last round."""
        if self._essential_net_closed():
            return self._result()
        todo, weight = self.mirror.units(self.order), 1
        rounds, counts, bad = self.board.options.max_iterations, list[int](), set[str]()
        for number in range(1, rounds + 1):
            self.rounds = number
            again = [net for unit in todo for net in unit.nets]
            before = [self.state[net.name].metal for net in again]
            for unit in todo:
                self.route_again(unit, weight)
            if number == 1 and self._is_hopeless():
                return self._result()
            bad = self._bad_after(bad, again, before)
            todo = self._units_of(bad)
            counts.append(len(bad))
            if not todo or (self._is_stuck(counts) and not any(unit.is_mirrored for unit in todo)):
                break
            if 2 * number >= rounds:  # the other half of the rounds is for ways that are not mirror images
                for unit in todo:
                    if unit.is_mirrored:
                        self.mirror.dissolve(unit, "other nets left no symmetric way")
                todo = self._units_of(bad)
            weight = min(2 * weight, HIGHEST_WEIGHT)
        self._give_up([net for unit in todo for net in unit.nets if net.name in bad])
        for net in self.nets:
            self._find_blockers(net)
        self._equalise()
        self._shield()
        self.add_second_cuts(self.mirror.units(self.order))
        for net in sorted(self.nets, key=lambda net: -net.least_cuts):
            if self.state[net.name].entered and (net.least_cuts > 1 or self._many_single_cuts()):
                strengthen(self, net)
        for net in self.nets:
            self._take_out_open(net)
        return self._result()

    def _units_of(self, names: Container[str]) -> list[RoutedUnit]:
        """Return the units that some of the nets belong to, in the order of routing."""
        return [unit for unit in self.mirror.units(self.order) if any(net.name in names for net in unit.nets)]

    def _bad_after(
        self, bad: Container[str], again: Sequence[NetRequest], before: Sequence[NetMetal | None]
    ) -> set[str]:
        """Return the nets that are bad after some were routed again. Only these and the nets beside them can change.

        Args:
            bad: The nets that were bad before.
            again: Those that were routed again.
            before: The metal that they had.
        """
        changed = {net.name for net in again}
        for metal in (*before, *(self.state[net.name].metal for net in again)):
            if metal is not None:
                changed |= self._beside(metal)
        return {net.name for net in self.nets if (self.is_bad(net) if net.name in changed else net.name in bad)}

    def _beside(self, metal: NetMetal) -> set[str]:
        """Return the nets whose metal or cuts on the board may be too close to some metal."""
        near, stack = self.board.occupancy.near, self.stack
        found = {
            shape.net
            for level, rect, _ in metal.shapes(stack)
            for shape in near(stack.conductors[level].name, rect, stack.space(level, wide=True))
        }
        found |= {
            shape.net
            for cut, rect in metal.cuts(stack)
            for shape in near(stack.cuts[cut].name, rect, stack.cuts[cut].space)
        }
        return {name for name in found if name is not None}

    def _is_stuck(self, counts: Sequence[int]) -> bool:
        """Return whether many nets conflict, and no fewer than before the last few rounds.

        Args:
            counts: How many nets conflicted after each round.
        """
        before, latest = counts[:-PATIENCE], counts[-PATIENCE:]
        return bool(before) and min(latest) >= min(before) and counts[-1] > MANY_CONFLICTS * len(self.nets)

    def _many_single_cuts(self) -> bool:
        """Return whether more than ``MOST_SINGLE_CUTS`` of all vias have a single cut."""
        vias = [via for state in self.state.values() if state.entered and state.metal for via in state.metal.vias]
        return sum(via.columns * via.rows == 1 for via in vias) > MOST_SINGLE_CUTS * len(vias)

    def _essential_net_closed(self) -> bool:
        """Return whether fixed metal leaves an essential net no way, and note so for all nets."""
        closed = {}
        for net in self.nets:
            if net.name in self.board.options.essential:
                closed[net.name] = grow(self.board, net, self.board.costs(net, 1)).reason
        if any(closed.values()):
            self.state = {net.name: State(reason=closed.get(net.name) or NOT_TRIED) for net in self.nets}
        return any(closed.values())

    def _is_hopeless(self) -> bool:
        """Return whether the caller gives up because nets have no way past the fixed metal. Then all nets fail."""
        closed = [net for net in self.nets if self.state[net.name].reason is not None]
        gives_up = self.board.options.gives_up
        self.given_up = bool(closed) and gives_up is not None and gives_up(tuple(net.name for net in closed))
        if self.given_up:
            for net in self.nets:
                self.leave(net)
            self.state = {net.name: State(reason=self.state[net.name].reason or NOT_TRIED) for net in self.nets}
            for net in closed:
                self._find_blockers(net)
            self.rounds = 0
        return self.given_up

    def _result(self) -> RoutingResult:
        tracks = self.board.tracks
        metal = {net.name: self.state[net.name].metal for net in self.nets if self.state[net.name].entered}
        return RoutingResult(
            nets=tuple(self._outcome(net) for net in self.nets),
            iterations=self.rounds,
            tracks=(len(tracks.xs), len(tracks.ys), len(self.stack.conductors)),
            mirrored=self.mirror.outcomes(metal),
        )

    def exact(self) -> set[tuple[str, ...]]:
        """Return the nets and pairs whose routes are mirror images now."""
        metal = {name: state.metal for name, state in self.state.items() if state.entered}
        return {each.nets for each in self.mirror.outcomes(metal) if each.exact}

    def route_again(self, unit: RoutedUnit, weight: int) -> None:
        """Route the nets of a unit that have no reason to fail, instead of the way that they have now."""
        if any(self.state[net.name].reason is not None for net in unit.nets):
            return
        for net in unit.nets:
            self.leave(net)
        for net in unit.nets:
            metal = self.state[net.name].metal
            if metal is not None:
                self.board.blame(metal, net)
        if unit.is_mirrored and self._try_mirrored(unit, weight):
            return
        for net in unit.nets:
            self._try(net, weight)

    def _try(self, net: NetRequest, weight: int) -> None:
        """Route a net and enter it, or note why it has no path."""
        if net.shares:
            shared = grow_shared(self.board, net, weight)
            reason, paths, thin = shared.reason, shared.paths, shared.weak
        else:
            growth = grow(self.board, net, self.board.costs(net, weight))
            reason, paths, thin = growth.reason, [(path, Share(net.gauge, None)) for path in growth.paths], False
        if reason is not None:
            self.state[net.name] = State(reason=reason)
            return
        metal = metal_of_shares(self.stack, self.board.tracks, paths)
        metal.thin = thin
        self._finisher(net).finish(metal, net.width, net.current_ma)
        self._enter(net, metal)

    def _try_mirrored(self, unit: RoutedUnit, weight: int) -> bool:
        """Route a unit as mirror images as far as possible and enter its nets; return whether there was a way."""
        board, nets = self.board, unit.nets
        if unit.own_image:
            folded = grow_own_image(board, self.mirror, nets[0], weight)
        else:
            folded = grow_pair(board, self.mirror, nets[0], nets[1], weight)
        if folded.failure:
            self.mirror.dissolve(unit, folded.failure)
            return False
        metals = [
            metal_of_paths(self.stack, board.tracks, paths, net.width)
            for net, paths in zip(nets, folded.paths, strict=True)
        ]
        if len(nets) == 2 and not folded.reason:
            metals = self._finished_images(nets, metals[0])
        for net, metal in zip(nets, metals, strict=True):
            if len(nets) == 1 or folded.reason:
                self._finisher(net).finish(metal, net.width, net.current_ma)
            self._enter(net, metal)
        if not all(joins_all(self.stack, net, metal) for net, metal in zip(nets, metals, strict=True)):
            for net in nets:
                self.leave(net)
            self.mirror.dissolve(unit, "the mirrored ways do not join all terminals")
            return False
        for net in nets:
            self.mirror.reasons.pop(net.name, None)
            if folded.reason:
                self.mirror.reasons[net.name] = folded.reason
        return True

    def _finished_images(self, nets: Sequence[NetRequest], metal: NetMetal) -> list[NetMetal]:
        """Return the finished metal of a net and its image, the twin's: what one of them needs, both get.

        At the image of a terminal of one net, the other has a wire that ends, which may need more area.
        """
        width, current = nets[0].width, nets[0].current_ma
        for _ in range(FINISH_ROUNDS):
            self._finisher(nets[0]).finish(metal, width, current)
            image = self.mirror.image(metal)
            self._finisher(nets[1]).finish(image, None)
            if len(image.patches) == len(metal.patches):
                break
            metal, width, current = self.mirror.image(image), None, None
        return [metal, image]

    def _enter(self, net: NetRequest, metal: NetMetal) -> None:
        state = self.state[net.name] = State(metal)
        state.flaws = tuple(self._finisher(net).flaws(metal))
        self.board.change(net, metal, 1)
        state.entered = True

    def leave(self, net: NetRequest) -> None:
        """Take the route of a net out of the board, if it is there."""
        state = self.state[net.name]
        if state.entered and state.metal is not None:
            self.board.change(net, state.metal, -1)
            state.entered = False

    def _finisher(self, net: NetRequest) -> Finisher:
        return Finisher(self.stack, self.board.occupancy, net.name, self.board.own[net.name], self.board.area)

    def is_bad(self, net: NetRequest) -> bool:
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
        for level, rect, wide in metal.shapes(self.stack):
            found.update(shape.net or "an obstacle" for shape in finisher.in_the_way(level, rect, attached=wide))
        for via in metal.vias:
            found.update(shape.net or "an obstacle" for shape in finisher.cuts_in_the_way(via))
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
            self.leave(victim)
            out.append(victim)
            remaining = [net for net in remaining if net is not victim and self.is_bad(net)]
        for net in reversed(out):
            state = self.state[net.name]
            reason, conflicts, flaws = state.reason, state.conflicts, state.flaws
            self._try(net, HARD)
            if self.state[net.name].entered and not self.is_bad(net):
                continue
            self.leave(net)
            self.state[net.name] = State(reason=reason, conflicts=conflicts, flaws=flaws)

    def _find_blockers(self, net: NetRequest) -> None:
        """Note what is in the way of a net that failed."""
        state = self.state[net.name]
        if state.entered:
            return
        state.blocked_by = blockers(self.board, net)
        if not state.blocked_by:
            state.blocked_by = tuple(
                Blocker(net.name, layer, rect, ((rect[0] + rect[2]) // 2, (rect[1] + rect[3]) // 2), "rule")
                for _, layer, rect in state.flaws
            )

    def _take_out_open(self, net: NetRequest) -> None:
        """Take a net out whose metal does not join all its terminals, whatever its paths say."""
        state = self.state[net.name]
        if state.entered and state.metal is not None and not joins_all(self.stack, net, state.metal):
            self.leave(net)
            self.state[net.name] = State(reason="the wires found do not join all terminals")

    def _equalise(self) -> None:
        """Make the shorter nets of pairs that are no mirror images, and of groups of equal length, longer."""
        nets = {net.name: net for net in self.nets if self.state[net.name].entered}
        pairs = [(net.mirror_of, net.name) for net in self.nets if net.mirror_of is not None]
        for names in (*pairs, *(group.nets for group in self.board.options.equal_lengths)):
            metals = {name: self.state[name].metal for name in names if name in nets}
            lengths = {name: metal.wire_length for name, metal in metals.items() if metal is not None}
            for name, length in lengths.items():
                metal, by = metals[name], max(lengths.values()) - length
                if metal is not None and by > 0:
                    self.board.change(nets[name], metal, -1)
                    lengthen(self.board, nets[name], metal, by)
                    self.board.change(nets[name], metal, 1)

    def _shield(self) -> None:
        """Draw shields beside the nets that want one."""
        nets = {net.name: net for net in self.nets}
        for net in self.nets:
            by = nets.get(net.shield or "")
            metal = self.state[net.name].metal
            its = self.state[by.name].metal if by is not None else None
            entered = by is not None and self.state[net.name].entered and self.state[by.name].entered
            if entered and by is not None and metal is not None and its is not None:
                self.state[net.name].shielded = Shielding(self.board).shield(metal, by, its)

    def add_second_cuts(self, units: Sequence[RoutedUnit], windows: Sequence[Rect] | None = None) -> None:
        """Give vias a second cut where there is room: all of them, or those in some windows. [dbu]

        A via and its mirror image get one together, or neither does, as long as the rest of the metal is mirrored.
        """
        widening = SecondCuts(self.board)
        for unit in units:
            drawn = [
                WiredNet(net, metal)
                for net in unit.nets
                for metal in [self.state[net.name].metal]
                if metal is not None and self.state[net.name].entered
            ]
            axis = self.mirror.axis if unit.is_mirrored else None
            left = widening.add(drawn, axis, windows)
            if axis is not None and any(left.values()) and not self.mirror.are_images(drawn[0].metal, drawn[-1].metal):
                left = widening.add(drawn, None, windows)
            for name, singles in left.items():
                others = (each for each in self.state[name].single_cuts if not is_inside(each.x, each.y, windows))
                self.state[name].single_cuts = (*others, *singles)

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
            return RoutedNet(
                net.name,
                success=False,
                reason=state.reason,
                conflicts=state.conflicts,
                blocked_by=state.blocked_by,
            )
        metal = state.metal
        weak = weak_vias(self.board, net, metal) if net.least_cuts > 1 else ()
        alone = {(via.cut, via.x, via.y) for via in weak}
        singles = (replace(each, alone=(each.cut, each.x, each.y) in alone) for each in state.single_cuts)
        return RoutedNet(
            name=net.name,
            success=True,
            wires=tuple(metal.wires),
            vias=tuple(metal.vias),
            path=metal.path(),
            patches=tuple(metal.patches),
            metal=metal.layers(self.stack),
            wire_length=metal.wire_length,
            via_count=len(metal.vias),
            single_cuts=tuple(singles),
            shielded=state.shielded,
            weak=metal.is_weak(self.stack),
        )


def _half_perimeter(net: NetRequest) -> int:
    boxes = [terminal.box for terminal in net.terminals]
    width = max(box.left for box in boxes) - min(box.right for box in boxes)
    height = max(box.bottom for box in boxes) - min(box.top for box in boxes)
    return max(width, 0) + max(height, 0)


def weak_vias(board: Board, net: NetRequest, metal: NetMetal) -> list[Via]:
    """Return the vias of a single cut without which the metal of a net would not join all its terminals."""
    single = [via for via in metal.vias if via.columns * via.rows == 1]
    if not single:
        return []
    lone = lone_cuts(board.stack, net, metal, (board.own[net.name], _own_cuts(board, net, metal)))
    places = [(cut_index(board.stack, via.cut), via.x, via.y) for via in single]
    return [
        via
        for via, (cut, x, y) in zip(single, places, strict=True)
        if (cut, board.stack.cut_rects(cut, x, y, 1, 1)[0]) in lone
    ]


def _own_cuts(board: Board, net: NetRequest, metal: NetMetal) -> list[tuple[int, Rect]]:
    """Return the cuts of a net that were there before: they may join what its vias join."""
    levels: dict[int, list[Rect]] = {}
    for level, rect in board.own[net.name]:
        levels.setdefault(level, []).append(rect)
    drawn = set(metal.cuts(board.stack))
    return [
        (index, shape.rect)
        for index, cut in enumerate(board.stack.cuts)
        for its in [[*levels.get(index, ()), *levels.get(index + 1, ())]]
        if its
        for shape in board.occupancy.near(cut.name, _box(its), 0)
        if shape.net == net.name and (index, shape.rect) not in drawn
    ]


def _box(rects: Sequence[Rect]) -> Rect:
    """Return the bounding box of some rectangles. [dbu]"""
    lefts, bottoms, rights, tops = zip(*rects, strict=True)
    return min(lefts), min(bottoms), max(rights), max(tops)


def strengthen(job: Negotiation, net: NetRequest) -> None:
    """Give each weak via of a routed net a second cut where this costs no other net its way or its mirror image."""
    left: set[Via] = set()
    weak = _weak(job, net)
    exact = job.exact() if weak else set()
    while (via := next((via for via in weak if via not in left), None)) is not None:
        left.add(via)
        for names in _in_the_way(job, net, via):
            fewer = _tried(job, net, names, _Aim(weak, exact, via))
            if fewer is not None:
                weak, exact = fewer, job.exact()
                left.discard(via)
                break
    closed = job.board.closed_vias.setdefault(net.name, set())
    for _ in range(MOST_WAYS):
        closed.update((via.cut, x, via.y) for via in weak for x in (via.x, 2 * job.mirror.axis - via.x))
        if not weak or _tried(job, net, (net.name,), _Aim(weak, exact, None)) is not None:
            break


class _Aim(NamedTuple):
    """The weak vias of a net before a try, the nets and pairs that are mirror images, and the via to make stronger."""

    weak: Sequence[Via]
    exact: set[tuple[str, ...]]
    via: Via | None


def _weak(job: Negotiation, net: NetRequest) -> list[Via]:
    metal = job.state[net.name].metal
    return [] if metal is None else weak_vias(job.board, net, metal)


def _in_the_way(job: Negotiation, net: NetRequest, via: Via) -> list[tuple[str, ...]]:
    """Return sets of routed nets that would give way to two cuts in the place of a via, the smallest first."""
    metal = job.state[net.name].metal
    if metal is None:
        return []
    wanted = {each.shield for each in job.nets} | {each.name for each in job.nets if each.shield}
    stay = {net.name, *wanted, *(name for group in job.board.options.equal_lengths for name in group.nets)}
    movable = {each.name for each in job.nets if job.state[each.name].entered} - stay
    axis = job.mirror.axis if net.name in job.mirror.own_images else None
    offers = SecondCuts(job.board).in_the_way(WiredNet(net, metal), metal.vias.index(via), axis)
    found = {tuple(sorted(names)) for names in offers if names <= movable and 0 < len(names) <= MOST_GIVING_WAY}
    return sorted(found, key=lambda each: (len(each), each))[:MOST_PLACES]


def _tried(job: Negotiation, net: NetRequest, names: Sequence[str], aim: _Aim) -> list[Via] | None:
    """Take nets out, give vias of ``net`` a second cut, route the others again; return what is still weak then.

    Where no fewer vias are weak than before, or another net lost something, all is as it was: None.
    """
    units = [unit for unit in job.mirror.units(job.order) if any(each.name in names for each in unit.nets)]
    own = [unit for unit in job.mirror.units(job.order) if net in unit.nets]
    touched = {each.name: each for unit in (*units, *own) for each in unit.nets}
    before = _Before.of(job, touched)
    for unit in units:
        for each in unit.nets:
            job.leave(each)
    if aim.via is not None:
        job.add_second_cuts(own, _windows(job, aim.via))
    if aim.via is None or _are_stronger(job, net, aim.weak):
        for unit in units:
            job.route_again(unit, HARD)
        job.add_second_cuts(units)
        routed = all(job.state[name].entered and not job.is_bad(each) for name, each in touched.items())
        if routed and aim.exact <= job.exact():
            fewer = _weak(job, net)
            if len(fewer) < len(aim.weak):
                return fewer
    before.restore(job, touched)
    return None


def _windows(job: Negotiation, via: Via) -> list[Rect]:
    """Return where second cuts are tried when nets have given way to a via: around it and its mirror image."""
    reach = NEAR * job.board.pitch
    return [(x - reach, via.y - reach, x + reach, via.y + reach) for x in (via.x, 2 * job.mirror.axis - via.x)]


def _are_stronger(job: Negotiation, net: NetRequest, weak: Iterable[Via]) -> bool:
    """Return whether one of the weak vias of a net has more cuts by now."""
    metal = job.state[net.name].metal
    return metal is not None and not set(weak).issubset(metal.vias)


@dataclass(frozen=True)
class _Before:
    """The routes of some nets, and what is mirrored, before a try."""

    states: Mapping[str, State]
    drawn: Mapping[str, tuple[list[Via], list[Any], list[Patch]]]
    mirror: tuple[dict[str, NetRequest], set[str], dict[str, str]]

    @classmethod
    def of(cls, job: Negotiation, nets: Iterable[str]) -> _Before:
        states = {name: copy(job.state[name]) for name in nets}
        drawn = {
            name: (list(state.metal.vias), list(state.metal.order), list(state.metal.patches))
            for name, state in states.items()
            if state.metal is not None
        }
        mirror = job.mirror
        return cls(states, drawn, (dict(mirror.twins), set(mirror.own_images), dict(mirror.reasons)))

    def restore(self, job: Negotiation, nets: Mapping[str, NetRequest]) -> None:
        job.mirror.twins, job.mirror.own_images, job.mirror.reasons = self.mirror
        for name, state in self.states.items():
            now, job.state[name] = job.state[name], state
            there, back = (replace(each.metal) if each.metal and each.entered else NetMetal() for each in (now, state))
            if state.metal is not None:
                state.metal.vias, state.metal.order, state.metal.patches = self.drawn[name]
                back = state.metal if state.entered else back
            job.board.exchange(nets[name], there, back)
