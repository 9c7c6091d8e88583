"""What flows through each part of a net's wires: the most that can pass between what lies on its two sides.

::

    port ==[all]==+==[M1 and M2]==+--[M2]-- M2
                  |               |
                  +--[M3]-- M3    +--[M1]-- M1

Terminals state what flows from them into the net and out of the net at most. Through a part of a tree flows what one
side gives and the other takes. A port gives and takes anything, so that all that devices beyond a part give, or take,
flows through it. Wires in a ring have two ways; each of them is counted as if it were the only one.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

DIGITS = 9
"""Currents that are stated in amperes are rounded to this many digits. [mA]"""


@dataclass(frozen=True)
class Draw:
    """What flows between terminals and their net at most. [mA]

    Attributes:
        into: From the terminals into the net.
        out_of: Out of the net into them.
        port: Whether a port is among them, through which any current may flow.
    """

    into: float = 0.0
    out_of: float = 0.0
    port: bool = False

    def __add__(self, other: Draw) -> Draw:
        return Draw(self.into + other.into, self.out_of + other.out_of, self.port or other.port)

    def part(self, share: float) -> Draw:
        """Return a share of it."""
        return Draw(self.into * share, self.out_of * share, self.port)

    def at_most(self, current_ma: float) -> Draw:
        """Return it with both directions limited to a current. [mA]"""
        return Draw(min(self.into, current_ma), min(self.out_of, current_ma), self.port)

    @classmethod
    def of(cls, amperes: Sequence[float]) -> Draw:
        """Return what flows into a net and out of it, stated in amperes."""
        into, out_of = (round(each * 1e3, DIGITS) for each in amperes)
        return cls(into, out_of)

    @property
    def amperes(self) -> tuple[float, float]:
        """What flows into the net and out of it; ``Draw.of`` makes the same of it. [A]"""
        return round(self.into / 1e3, DIGITS + 3), round(self.out_of / 1e3, DIGITS + 3)

    @property
    def most(self) -> float:
        """The larger of the two directions."""
        return max(self.into, self.out_of)


def flow_between(one: Draw, other: Draw, whole: float) -> float:
    """Return the most that flows between two sides of a net, at most ``whole``, the current of the net. [mA]"""
    if one.port and other.port:
        return whole
    found = max(min(one.into, other.out_of), min(one.out_of, other.into))
    if other.port:
        found = max(found, one.most)
    if one.port:
        found = max(found, other.most)
    return min(found, whole)


def flows(
    paths: Iterable[Sequence[int]], draws: Sequence[Draw], pieces: Mapping[int, int], whole: float
) -> dict[tuple[int, int], float]:
    """Return the flow through each step of some paths, by its two nodes, the smaller one first. [mA]

    Steps along a piece of metal are left out.

    Args:
        paths: Nodes of each path.
        draws: What flows at each piece of metal that the paths join.
        pieces: Node to the piece of metal that it lies on.
        whole: The current of the net. [mA]
    """
    links: dict[Hashable, dict[Hashable, list[tuple[int, int]]]] = {("piece", i): {} for i in range(len(draws))}

    def vertex(node: int) -> Hashable:
        return ("piece", pieces[node]) if node in pieces else node

    for path in paths:
        for a, b in pairwise(path):
            one, other, step = vertex(a), vertex(b), (min(a, b), max(a, b))
            if one == other:
                continue
            for here, there in ((one, other), (other, one)):
                steps = links.setdefault(here, {}).setdefault(there, [])
                if step not in steps:
                    steps.append(step)
    found: dict[tuple[int, int], float] = {}
    seen: set[Hashable] = set()
    for start in links:
        if start not in seen:
            found.update(_flows_of_tree(links, start, draws, whole, seen))
    return found


def _flows_of_tree(
    links: Mapping[Hashable, Mapping[Hashable, Sequence[tuple[int, int]]]],
    start: Hashable,
    draws: Sequence[Draw],
    whole: float,
    seen: set[Hashable],
) -> dict[tuple[int, int], float]:
    """Return the flows through the links that can be reached from ``start``, and note in ``seen`` what was reached.

    A walk in depth numbers the vertices. A link is a bridge if nothing beyond it leads back past it; what is beyond
    a bridge then takes its current through it alone.
    """
    number: dict[Hashable, int] = {start: 0}
    parent: dict[Hashable, Hashable] = {}
    order, stack = [start], [(start, iter(links[start]))]
    lowest = {start: 0}
    while stack:
        here, others = stack[-1]
        there = next(others, None)
        if there is None:
            stack.pop()
            if stack:
                lowest[stack[-1][0]] = min(lowest[stack[-1][0]], lowest[here])
        elif there not in number:
            number[there] = lowest[there] = len(order)
            parent[there] = here
            order.append(there)
            stack.append((there, iter(links[there])))
        elif there != parent.get(here):
            lowest[here] = min(lowest[here], number[there])
    seen.update(order)
    beyond = {each: draws[each[1]] if isinstance(each, tuple) else Draw() for each in order}
    for each in reversed(order[1:]):
        beyond[parent[each]] += beyond[each]
    ports = sum(draws[each[1]].port for each in order if isinstance(each, tuple))
    inside = {each: int(isinstance(each, tuple) and draws[each[1]].port) for each in order}
    for each in reversed(order[1:]):
        inside[parent[each]] += inside[each]
    found = {step: whole for each in order for steps in links[each].values() for step in steps}
    total = beyond[start]
    for each in order[1:]:
        steps = links[each][parent[each]]
        if lowest[each] == number[each] and len(steps) == 1:
            rest = Draw(total.into - beyond[each].into, total.out_of - beyond[each].out_of, ports > inside[each])
            found[steps[0]] = flow_between(beyond[each], rest, whole)
    return found
