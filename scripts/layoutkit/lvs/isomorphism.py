"""Finding the renaming of nets that turns one circuit into another, by colour refinement.

Cells and nets get colours: a cell by its label and the colours of its nets, a net by the cells that meet it, round
after round until no colour splits any more (Weisfeiler and Leman 1968). Two circuits whose colours differ in number
differ. Nets that still share a colour look alike from everywhere; one of them is singled out on both sides and the
refinement goes on, and the next candidate is tried where that leads nowhere. Ports colour their nets from the start.

This is the search that Gemini (Ebeling 1988) and netgen use. A result is a proposal to be checked: see ``matching``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

MAX_VISITS = 10_000_000  # cells looked at in all rounds, some ten seconds

Net = TypeVar("Net", int, str)


@dataclass(frozen=True)
class Cell(Generic[Net]):
    """One device: what it is, and its nets; terminals of one role are interchangeable."""

    label: Hashable
    ends: tuple[tuple[str, Net], ...]


class GaveUpError(Exception):
    """The circuits are too symmetric to decide within ``MAX_VISITS``."""


def renaming(ours: Sequence[Cell[int]], theirs: Sequence[Cell[str]], pins: Mapping[int, str]) -> dict[int, str] | None:
    """Return a renaming of our nets under which our cells are exactly theirs, or None where there is none.

    Args:
        ours: Cells on nets by number.
        theirs: Cells on nets by name.
        pins: Our nets that have to be the nets of these names.

    Raises:
        GaveUpError: If neither was found in reasonable time.
    """
    if len(ours) != len(theirs):
        return None
    named = set(pins.values())
    left = _Side(ours, {net: ("pin", name) for net, name in pins.items()})
    right = _Side(theirs, {name: ("pin", name) for cell in theirs for _, name in cell.ends if name in named})
    search = _Search(left, right)
    return search.run(_Colours(*left.first_colours(search)), _Colours(*right.first_colours(search)))


class _Side(Generic[Net]):
    """One circuit, its nets and cells numbered."""

    def __init__(self, cells: Sequence[Cell[Net]], marks: Mapping[Net, Hashable]) -> None:
        self.cells: list[Cell[Net]] = list(cells)
        self.nets: list[Net] = list(dict.fromkeys(net for cell in cells for _, net in cell.ends))
        number = {net: index for index, net in enumerate(self.nets)}
        self.ends = [[(role, number[net]) for role, net in cell.ends] for cell in cells]
        self.marks = [marks.get(net) for net in self.nets]

    def first_colours(self, search: _Search) -> tuple[list[int], list[int]]:
        return (
            [search.colour(("cell", cell.label)) for cell in self.cells],
            [search.colour(("net", mark)) for mark in self.marks],
        )


@dataclass
class _Colours:
    """The colour of every cell and every net of one side."""

    cells: list[int]
    nets: list[int]

    def classes(self) -> int:
        return len(set(self.cells)) + len(set(self.nets))

    def alike(self, other: _Colours) -> bool:
        return Counter(self.nets) == Counter(other.nets) and Counter(self.cells) == Counter(other.cells)


class _Search:
    def __init__(self, left: _Side[int], right: _Side[str]) -> None:
        self.left, self.right = left, right
        self._numbers: dict[Hashable, int] = {}
        self._visits = 0

    def colour(self, signature: Hashable) -> int:
        """Return the number of a signature, the same on both sides."""
        return self._numbers.setdefault(signature, len(self._numbers))

    def run(self, ours: _Colours, theirs: _Colours) -> dict[int, str] | None:
        """Refine, single out, and go back where that fails; depth first without recursion."""
        untried = [iter([(ours, theirs)])]
        while untried:
            colours = next(untried[-1], None)
            if colours is None:
                untried.pop()
                continue
            ours, theirs = colours
            if not self._refined(ours, theirs):
                continue
            choice = _smallest_class(ours.nets)
            if choice is None:
                by_colour = dict(zip(theirs.nets, self.right.nets, strict=True))
                return {net: by_colour[colour] for net, colour in zip(self.left.nets, ours.nets, strict=True)}
            untried.append(self._singled_out(ours, theirs, choice))
        return None

    def _singled_out(self, ours: _Colours, theirs: _Colours, choice: int) -> Iterator[tuple[_Colours, _Colours]]:
        """Yield the colours with one net of a class marked on our side and each of the class in turn on theirs."""
        chosen = ours.nets.index(choice)
        mark = self.colour(("chosen", choice, self._visits))
        for candidate, colour in enumerate(theirs.nets):
            if colour == choice:
                yield _marked(ours, chosen, mark), _marked(theirs, candidate, mark)

    def _refined(self, ours: _Colours, theirs: _Colours) -> bool:
        """Refine both sides in place; return False as soon as they differ."""
        classes = 0
        while ours.alike(theirs):
            now = ours.classes()
            if now == classes:
                return True
            classes = now
            self._visits += len(self.left.cells) + len(self.right.cells)
            if self._visits > MAX_VISITS:
                raise GaveUpError
            for side, colours in ((self.left, ours), (self.right, theirs)):
                self._round(side, colours)
        return False

    def _round(self, side: _Side[int] | _Side[str], colours: _Colours) -> None:
        colours.cells = [
            self.colour((colours.cells[index], tuple(sorted((role, colours.nets[net]) for role, net in ends))))
            for index, ends in enumerate(side.ends)
        ]
        meeting: list[list[tuple[str, int]]] = [[] for _ in side.nets]
        for index, ends in enumerate(side.ends):
            for role, net in ends:
                meeting[net].append((role, colours.cells[index]))
        colours.nets = [self.colour((colours.nets[net], tuple(sorted(found)))) for net, found in enumerate(meeting)]


def _smallest_class(colours: Sequence[int]) -> int | None:
    """Return the colour that the fewest nets, but more than one, share; None when no two nets share one."""
    shared = [(count, colour) for colour, count in Counter(colours).items() if count > 1]
    return min(shared)[1] if shared else None


def _marked(colours: _Colours, net: int, mark: int) -> _Colours:
    nets = list(colours.nets)
    nets[net] = mark
    return _Colours(list(colours.cells), nets)
