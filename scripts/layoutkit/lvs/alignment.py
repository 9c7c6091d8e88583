"""Which device of the layout is most likely meant to be which of the netlist, when the two circuits differ.

Pairs are scored by what agrees: device type, size, nets already known, the device text on the channel; the best
unambiguous pairs are taken first, and each makes its nets known. Nothing here decides a verdict: it only finds words
for a difference that is already established.
"""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from layoutkit.extract.extracted import ExtractedDevice
    from layoutkit.extract.folding import FoldKey
    from layoutkit.lvs.reference import Reference
    from layoutkit.technology.device_kinds import DeviceKind

GROUP_LIMIT = 300  # groups on a side beyond which no pairs are sought; the search takes their product
_ACCEPTED = 2.5  # score below which two groups are not taken for the same
_LEADERS = 200  # equally likely pairs among which an unambiguous one is sought
_TEXT, _GATE, _END, _BULK, _SIZE, _TYPE = 6.0, 3.0, 2.0, 1.0, 1.0, 1.0


Surroundings = tuple[tuple[str, int], ...]
"""Kinds of terminals that meet a net, each with their number."""


@dataclass(frozen=True)
class ParallelGroup:
    """Devices in parallel, of one side."""

    device: str
    kind: DeviceKind
    nets: Mapping[str, Any]
    lengths: frozenset[float]
    w_um: float
    ids: tuple[str, ...]
    members: tuple[Any, ...]
    texts: frozenset[str] = frozenset()


@dataclass
class NetAlignment:
    """Pairs of groups, and for every pair of nets the terminals and labels that support it."""

    pairs: list[tuple[ParallelGroup, ParallelGroup]] = field(default_factory=list)
    undrawn: list[ParallelGroup] = field(default_factory=list)
    unasked: list[ParallelGroup] = field(default_factory=list)
    votes: dict[tuple[int, str], list[str]] = field(default_factory=dict)
    main: dict[int, str] = field(default_factory=dict)


def drawn_groups(groups: Mapping[FoldKey[int], Sequence[ExtractedDevice]]) -> list[ParallelGroup]:
    """Return the layout's transistor groups."""
    return [
        replace(
            _group(members, [(member.w_um, member.l_um) for member in members]),
            texts=frozenset(finger.text for member in members for finger in member.fingers if finger.text),
        )
        for members in groups.values()
    ]


def asked_groups(reference: Reference) -> list[ParallelGroup]:
    """Return the netlist's transistor groups."""
    return [
        _group(members, [(member.drawn_w_um, member.drawn_l_um) for member in members])
        for members in reference.groups.values()
    ]


def _group(members: Sequence[Any], sizes: Sequence[tuple[float, float]]) -> ParallelGroup:
    """Return devices in parallel as a group; ``sizes`` has the width and the length of each. [um]"""
    first = members[0]
    lengths, width = frozenset(length for _, length in sizes), sum(width for width, _ in sizes)
    ids = tuple(member.id for member in members)
    return ParallelGroup(first.device, first.kind, first.nets, lengths, width, ids, tuple(members))


def align(
    drawn: Sequence[ParallelGroup],
    expected: Sequence[ParallelGroup],
    types: Mapping[str, str],
    claims: Iterable[tuple[int, str]],
) -> NetAlignment:
    """Return the most likely pairs.

    Args:
        drawn: Groups of the layout.
        expected: Groups of the netlist.
        types: Device name to ``nmos`` or ``pmos``; only transistors of one type are paired.
        claims: Pairs of layout net and reference net that labels make.
    """
    search = _Search(drawn, expected, types, list(claims))
    search.run()
    return search.result()


class _Search:
    def __init__(
        self,
        drawn: Sequence[ParallelGroup],
        expected: Sequence[ParallelGroup],
        types: Mapping[str, str],
        claims: list[tuple[int, str]],
    ) -> None:
        self.drawn, self.expected, self.types, self.claims = drawn, expected, types, claims
        self.known: dict[int, str] = {}
        self.taken: set[str] = set()
        for net, name in claims:
            self._learn(net, name)
        self._around_net, self._around_name = _surroundings(drawn, types), _surroundings(expected, types)
        self._on_net, self._on_name = _groups_by_net(drawn), _groups_by_net(expected)
        self._own: dict[tuple[int, int], float] = {}
        self.pairs: list[tuple[int, int]] = []

    def _learn(self, net: int, name: str) -> bool:
        if net in self.known or name in self.taken:
            return False
        self.known[net] = name
        self.taken.add(name)
        return True

    def run(self) -> None:
        """Pair groups, the surest first, until no likely pair is left."""
        free = (set(range(len(self.drawn))), set(range(len(self.expected))))
        heap = [(-self._score(i, j), i, j) for i in free[0] for j in free[1] if self._alike(i, j)]
        heapq.heapify(heap)
        while heap and -heap[0][0] >= _ACCEPTED:
            leaders: list[tuple[float, int, int]] = []
            # The bound once more: an entry whose score has changed since is dropped, and what follows may lie below it.
            bound = -_ACCEPTED
            while heap and len(leaders) < _LEADERS and heap[0][0] <= bound:
                score, i, j = heapq.heappop(heap)
                if i in free[0] and j in free[1] and score == -self._score(i, j):
                    leaders.append((score, i, j))
                    bound = score
            if not leaders:
                continue
            rows, columns = Counter(i for _, i, _ in leaders), Counter(j for _, _, j in leaders)
            best = next((pair for pair in leaders if rows[pair[1]] == columns[pair[2]] == 1), leaders[0])
            for pair in leaders:
                if pair != best:
                    heapq.heappush(heap, pair)
            free[0].remove(best[1])
            free[1].remove(best[2])
            for i, j in self._take(best[1], best[2], free):
                if self._alike(i, j):
                    heapq.heappush(heap, (-self._score(i, j), i, j))

    def _alike(self, i: int, j: int) -> bool:
        """Return whether two groups may be the same: devices of different types never are."""
        return self.types[self.drawn[i].device] == self.types[self.expected[j].device]

    def _score(self, i: int, j: int) -> float:
        """Return how likely two groups of one type are the same."""
        ours, theirs = self.drawn[i], self.expected[j]
        nets = 0.0
        for terminal in _beside_ends(ours, theirs):
            weight = _BULK if terminal == ours.kind.bulk else _GATE
            nets += weight * self._likeness(ours.nets[terminal], theirs.nets[terminal])
        return self._own_likeness(i, j) + nets + self._orientation(i, j)[0]

    def _own_likeness(self, i: int, j: int) -> float:
        """Return the score of a pair regardless of its nets."""
        if (i, j) not in self._own:
            ours, theirs = self.drawn[i], self.expected[j]
            score = _TYPE if ours.device == theirs.device else 0.0
            score += _TEXT if ours.texts & set(theirs.ids) else 0.0
            score += _SIZE if ours.lengths == theirs.lengths else 0.0
            score += _SIZE if abs(ours.w_um - theirs.w_um) <= 1e-3 * theirs.w_um else 0.0
            self._own[i, j] = score
        return self._own[i, j]

    def _take(self, i: int, j: int, free: tuple[set[int], set[int]]) -> set[tuple[int, int]]:
        """Pair two groups; return the pairs whose score that changes."""
        self.pairs.append((i, j))
        ours, theirs = self.drawn[i].nets, self.expected[j].nets
        changed: set[tuple[int, int]] = set()
        for terminal, other in self._orientation(i, j)[1]:
            net, name = ours[terminal], theirs[other]
            if self._learn(net, name):
                changed |= {(a, b) for a in self._on_net[net] & free[0] for b in free[1]}
                changed |= {(a, b) for a in free[0] for b in self._on_name[name] & free[1]}
        return changed

    def _orientation(self, i: int, j: int) -> tuple[float, list[tuple[str, str]]]:
        """Return the score of the ends the better way round, and that way: pairs of terminals."""
        ours, theirs = self.drawn[i].nets, self.expected[j].nets
        best: tuple[float, list[tuple[str, str]]] | None = None
        kind = self.drawn[i].kind
        one, other = kind.ends
        fixed = [(terminal, terminal) for terminal in _beside_ends(self.drawn[i], self.expected[j])]
        ways = [[(one, one), (other, other)], [(one, other), (other, one)]]
        for ends in ways if kind.exchangeable else ways[:1]:
            score = sum(_END * self._likeness(ours[a], theirs[b]) for a, b in ends)
            if best is None or score > best[0]:
                best = (score, [*fixed, *ends])
        return best or (0.0, [])

    def _likeness(self, net: int, name: str) -> float:
        """Return 1 for nets known to be one, below 0 for nets known to differ, in between by their surroundings."""
        if net in self.known:
            return 1.0 if self.known[net] == name else -0.7
        if name in self.taken:
            return -0.7
        return 0.3 * _overlap(self._around_net[net], self._around_name[name])

    def result(self) -> NetAlignment:
        """Return the pairs with the votes of their terminals, source and drain turned to agree with the majority."""
        found = NetAlignment(pairs=[(self.drawn[i], self.expected[j]) for i, j in self.pairs])
        paired_drawn, paired_expected = {i for i, _ in self.pairs}, {j for _, j in self.pairs}
        found.unasked = [group for i, group in enumerate(self.drawn) if i not in paired_drawn]
        found.undrawn = [group for j, group in enumerate(self.expected) if j not in paired_expected]
        for _ in range(2):
            found.votes = self._votes()
            found.main = _majority(found.votes)
            self.known, self.taken = dict(found.main), set(found.main.values())
        return found

    def _votes(self) -> dict[tuple[int, str], list[str]]:
        votes: dict[tuple[int, str], list[str]] = {}
        for net, name in self.claims:
            votes.setdefault((net, name), []).append("")
        for i, j in self.pairs:
            ours, theirs = self.drawn[i], self.expected[j]
            for terminal, other in self._orientation(i, j)[1]:
                votes.setdefault((ours.nets[terminal], theirs.nets[other]), []).append(f"{theirs.ids[0]}.{other}")
        return votes


def _surroundings(groups: Sequence[ParallelGroup], types: Mapping[str, str]) -> dict[Any, Surroundings]:
    """Return for every net which kinds of terminals meet it, and how many."""
    found: dict[Any, Counter[str]] = {}
    for group in groups:
        for terminal, net in group.nets.items():
            place = f"{types[group.device]} {group.kind.roles[terminal]}"
            found.setdefault(net, Counter())[place] += 1
    return {net: tuple(sorted(counts.items())) for net, counts in found.items()}


def _beside_ends(one: ParallelGroup, other: ParallelGroup) -> list[str]:
    """Return the terminals of two groups of one kind that are none of their ends."""
    return [t for t in one.kind.all_terminals if t not in one.kind.ends and t in one.nets and t in other.nets]


def _groups_by_net(groups: Sequence[ParallelGroup]) -> dict[Any, set[int]]:
    found: dict[Any, set[int]] = {}
    for index, group in enumerate(groups):
        for net in group.nets.values():
            found.setdefault(net, set()).add(index)
    return found


@lru_cache(maxsize=65_536)
def _overlap(ours: Surroundings, theirs: Surroundings) -> float:
    """Return the share of terminals, of both nets together, that have a counterpart. [0 to 1]"""
    one, other = Counter(dict(ours)), Counter(dict(theirs))
    return (one & other).total() / (one | other).total()


def _majority(votes: Mapping[tuple[int, str], Sequence[str]]) -> dict[int, str]:
    """Return one reference net for each layout net and the other way round, by the weight of votes.

    A label outweighs terminals, and a bulk says least: what floats is the bulk and not the supply.
    """
    main: dict[int, str] = {}
    taken: set[str] = set()
    weight = {
        pair: sum(3.0 if not voter else 0.1 if voter.endswith(".b") else 1.0 for voter in voters)
        for pair, voters in votes.items()
    }
    for net, name in sorted(votes, key=lambda pair: (-weight[pair], pair)):
        if net not in main and name not in taken:
            main[net] = name
            taken.add(name)
    return main
