"""A second cut for every connection of a net that wants two: other nets give way, or the net takes another way.

A via with a single cut is weak where terminals of the net are joined by it only. Vias that have a way around them are
not weak: both ways would have to break.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from layoutkit.route.board import HARD
from layoutkit.route.connection import lone_cuts
from layoutkit.route.metal import NetMetal, cut_index
from layoutkit.route.second_cuts import SecondCuts, WiredNet

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from layoutkit.route.board import Board
    from layoutkit.route.negotiation import Negotiation, State
    from layoutkit.route.routes import NetRequest, Patch, Rect, Via

MOST_GIVING_WAY = 3
"""Nets that are routed again at most so that one via gets a second cut."""
MOST_PLACES = 4
"""Sets of nets that may give way to one via, of which the smaller ones are tried first."""
NEAR = 20
"""Track pitches around a via within which its net gets second cuts when others have given way to it."""
MOST_WAYS = 4
"""Further ways of a net that are tried, each without the weak vias of those before."""


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
