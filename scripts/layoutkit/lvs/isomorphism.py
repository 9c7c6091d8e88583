"""Finding the renaming of nets that turns one circuit into another, by colour refinement.

Both circuits are refined as one graph (``circuit.refinement``), so that their cells and nets share colours. Circuits of
which one has more cells or nets of some colour differ. Nets that still share a colour look alike from everywhere; one
of ours and one of theirs get a colour of their own and the refinement goes on, and the next of theirs is tried where
that leads nowhere. Ports colour their nets from the start.

This is the search that Gemini (Ebeling 1988) and netgen use. A result is a proposal to be checked: see ``matching``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutkit.circuit.refinement import ColourClasses, links_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

    from layoutkit.circuit.refinement import Cell

MAX_VISITS = 10_000_000  # links looked at, some ten seconds


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
    nets = list(dict.fromkeys(net for cell in ours for _, net in cell.ends))
    names = list(dict.fromkeys(name for cell in theirs for _, name in cell.ends))
    if len(ours) != len(theirs) or len(nets) != len(names):
        return None
    named = set(pins.values())
    marks: list[Hashable] = [*map(pins.get, nets), *(name if name in named else None for name in names)]
    marks += [("cell", cell.label) for side in (ours, theirs) for cell in side]
    numbers: dict[Hashable, int] = {}
    colours = [numbers.setdefault(mark, len(numbers)) for mark in marks]  # those of nets first
    count = len(nets)
    own = [vertex < count or 2 * count <= vertex < 2 * count + len(ours) for vertex in range(len(marks))]
    classes = ColourClasses(links_of([*ours, *theirs], [*nets, *names]), colours)
    found = _Search(own, 2 * count).run(classes)
    if found is None:
        return None
    pairs = (found.members(first) for first in range(0, 2 * count, 2))
    return {nets[min(pair)]: names[max(pair) - count] for pair in pairs}


class _Search:
    """Splits the classes of two circuits until each class of nets has one net of ours and one of theirs.

    ``own`` states whether each vertex is ours; the first ``nets`` vertices are nets, ours before theirs.
    """

    def __init__(self, own: Sequence[bool], nets: int) -> None:
        self.own, self.nets = own, nets
        self.visits = 0

    def run(self, classes: ColourClasses) -> ColourClasses | None:
        """Refine, single out, and go back where that fails; depth first without recursion."""
        classes.refine()
        untried = [iter([classes] if self._balanced(classes, classes.size) else [])]
        begin = [0]  # classes before it have one net of ours each
        while untried:
            found = next(untried[-1], None)
            if found is None:
                untried.pop()
                begin.pop()
                continue
            first = begin[-1]
            while first < self.nets and found.size[first] == 2:
                first += 2
            if first == self.nets:
                return found
            untried.append(self._singled_out(found, first))
            begin.append(first)
        return None

    def _balanced(self, classes: ColourClasses, some: Iterable[int]) -> bool:
        """Whether as many vertices of some classes are ours as are theirs."""
        return all(2 * sum(self.own[v] for v in classes.members(first)) == classes.size[first] for first in set(some))

    def _singled_out(self, classes: ColourClasses, first: int) -> Iterator[ColourClasses]:
        """Yield the classes after one net of ours and each of theirs in turn became a class, where they are alike."""
        members = classes.members(first)
        chosen = min(members)
        for other in sorted(vertex for vertex in members if not self.own[vertex]):
            split = classes.copy()
            changed = split.single_out([chosen, other])
            self.visits += split.visits - classes.visits
            if self.visits > MAX_VISITS:
                raise GaveUpError
            if self._balanced(split, changed):
                yield split
