"""Which transistor of the layout is most likely meant to be which of the netlist, when the two circuits differ.

Pairs are scored by what agrees: device type, size, nets already known, the device text on the channel; the best
unambiguous pairs are taken first, and each makes its nets known. Nothing here decides a verdict: it only finds words
for a difference that is already established.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from layoutkit.check.extracted import ExtractedDevice
    from layoutkit.check.parallel import FoldKey
    from layoutkit.check.reference import Reference, ReferenceDevice

GROUP_LIMIT = 300  # groups on a side beyond which no pairs are sought; the search takes their product
_ACCEPTED = 2.5
_TEXT, _GATE, _END, _BULK, _SIZE, _TYPE = 6.0, 3.0, 2.0, 1.0, 1.0, 1.0


@dataclass(frozen=True)
class Group:
    """Transistors in parallel, of one side."""

    device: str
    nets: Mapping[str, Any]
    lengths: frozenset[float]
    w_um: float
    ids: tuple[str, ...]
    members: tuple[Any, ...]
    texts: frozenset[str] = frozenset()


@dataclass
class Alignment:
    """Pairs of groups, and for every pair of nets the terminals and labels that speak for it."""

    pairs: list[tuple[Group, Group]] = field(default_factory=list)
    undrawn: list[Group] = field(default_factory=list)
    unasked: list[Group] = field(default_factory=list)
    votes: dict[tuple[int, str], list[str]] = field(default_factory=dict)
    main: dict[int, str] = field(default_factory=dict)


def drawn_groups(groups: Mapping[FoldKey[int], Sequence[ExtractedDevice]]) -> list[Group]:
    """Return the layout's transistor groups."""
    return [
        Group(
            device=members[0].device,
            nets=members[0].nets,
            lengths=frozenset(member.l_um for member in members),
            w_um=sum(member.w_um for member in members),
            ids=tuple(member.id for member in members),
            members=tuple(members),
            texts=frozenset(finger.text for member in members for finger in member.fingers if finger.text),
        )
        for members in groups.values()
    ]


def asked_groups(reference: Reference) -> list[Group]:
    """Return the netlist's transistor groups."""
    return [_asked(members) for members in reference.groups.values()]


def _asked(members: Sequence[ReferenceDevice]) -> Group:
    return Group(
        device=members[0].device,
        nets=members[0].nets,
        lengths=frozenset(member.drawn_l_um for member in members),
        w_um=sum(member.drawn_w_um for member in members),
        ids=tuple(member.id for member in members),
        members=tuple(members),
    )


def align(
    drawn: Sequence[Group], asked: Sequence[Group], types: Mapping[str, str], claims: Iterable[tuple[int, str]]
) -> Alignment:
    """Return the most likely pairs.

    Args:
        drawn: Groups of the layout.
        asked: Groups of the netlist.
        types: Device name to ``nmos`` or ``pmos``; only transistors of one type are paired.
        claims: Pairs of layout net and reference net that labels make.
    """
    search = _Search(drawn, asked, types, list(claims))
    search.run()
    return search.result()


class _Search:
    def __init__(
        self, drawn: Sequence[Group], asked: Sequence[Group], types: Mapping[str, str], claims: list[tuple[int, str]]
    ) -> None:
        self.drawn, self.asked, self.types, self.claims = drawn, asked, types, claims
        self.known: dict[int, str] = {}
        self.taken: set[str] = set()
        for net, name in claims:
            self._learn(net, name)
        self.shape_of_net = {id(side): _surroundings(side, types) for side in (drawn, asked)}
        self.pairs: list[tuple[int, int]] = []

    def _learn(self, net: int, name: str) -> None:
        if net not in self.known and name not in self.taken:
            self.known[net] = name
            self.taken.add(name)

    def run(self) -> None:
        """Pair groups, the surest first, until no likely pair is left."""
        free = {
            (i, j)
            for i, ours in enumerate(self.drawn)
            for j, theirs in enumerate(self.asked)
            if self.types[ours.device] == self.types[theirs.device]
        }
        while free:
            scores = {pair: self._score(*pair) for pair in sorted(free)}
            best = max(scores.values())
            if best < _ACCEPTED:
                return
            leaders = [pair for pair, score in scores.items() if score == best]
            rows, columns = Counter(i for i, _ in leaders), Counter(j for _, j in leaders)
            sure = [(i, j) for i, j in leaders if rows[i] == 1 and columns[j] == 1] or leaders[:1]
            for i, j in sure:
                if self._score(i, j) >= best:
                    self._take(i, j)
                    free = {(a, b) for a, b in free if a != i and b != j}

    def _take(self, i: int, j: int) -> None:
        self.pairs.append((i, j))
        ours, theirs = self.drawn[i].nets, self.asked[j].nets
        for terminal, other in self._orientation(i, j)[1]:
            self._learn(ours[terminal], theirs[other])

    def _score(self, i: int, j: int) -> float:
        ours, theirs = self.drawn[i], self.asked[j]
        score = _TYPE if ours.device == theirs.device else 0.0
        score += _TEXT if ours.texts & set(theirs.ids) else 0.0
        score += _SIZE if ours.lengths == theirs.lengths else 0.0
        score += _SIZE if abs(ours.w_um - theirs.w_um) <= 1e-3 * theirs.w_um else 0.0
        score += _GATE * self._likeness(ours.nets["g"], theirs.nets["g"])
        score += _BULK * self._likeness(ours.nets["b"], theirs.nets["b"])
        return score + self._orientation(i, j)[0]

    def _orientation(self, i: int, j: int) -> tuple[float, list[tuple[str, str]]]:
        """Return the score of source and drain the better way round, and that way: pairs of terminals."""
        ours, theirs = self.drawn[i].nets, self.asked[j].nets
        best: tuple[float, list[tuple[str, str]]] | None = None
        for ends in ([("s", "s"), ("d", "d")], [("s", "d"), ("d", "s")]):
            score = sum(_END * self._likeness(ours[a], theirs[b]) for a, b in ends)
            if best is None or score > best[0]:
                best = (score, [("g", "g"), ("b", "b"), *ends])
        return best or (0.0, [])

    def _likeness(self, net: int, name: str) -> float:
        """Return 1 for nets known to be one, below 0 for nets known to differ, in between by their surroundings."""
        if net in self.known:
            return 1.0 if self.known[net] == name else -0.7
        if name in self.taken:
            return -0.7
        ours, theirs = self.shape_of_net[id(self.drawn)][net], self.shape_of_net[id(self.asked)][name]
        return 0.3 * (ours & theirs).total() / max((ours | theirs).total(), 1) if ours and theirs else 0.0

    def result(self) -> Alignment:
        """Return the pairs with the votes of their terminals, source and drain turned to agree with the majority."""
        found = Alignment(pairs=[(self.drawn[i], self.asked[j]) for i, j in self.pairs])
        paired_drawn, paired_asked = {i for i, _ in self.pairs}, {j for _, j in self.pairs}
        found.unasked = [group for i, group in enumerate(self.drawn) if i not in paired_drawn]
        found.undrawn = [group for j, group in enumerate(self.asked) if j not in paired_asked]
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
            ours, theirs = self.drawn[i], self.asked[j]
            for terminal, other in self._orientation(i, j)[1]:
                votes.setdefault((ours.nets[terminal], theirs.nets[other]), []).append(f"{theirs.ids[0]}.{other}")
        return votes


def _surroundings(groups: Sequence[Group], types: Mapping[str, str]) -> dict[Any, Counter[str]]:
    """Return for every net which kinds of terminals meet it."""
    found: dict[Any, Counter[str]] = {}
    for group in groups:
        for terminal, net in group.nets.items():
            place = f"{types[group.device]} {'ds' if terminal in 'ds' else terminal}"
            found.setdefault(net, Counter())[place] += 1
    return found


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
