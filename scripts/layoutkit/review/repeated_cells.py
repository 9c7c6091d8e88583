"""Findings on what repeats: equal cells and stages drawn unlike each other, turned, off their pitch or out of order."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from math import dist
from statistics import mean
from typing import TYPE_CHECKING

from layoutkit.circuit.recognise import MODULE_TYPES
from layoutkit.review.subject import box_around, centre_of, names_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from layoutkit.review.finding import Finding, Unjudged
    from layoutkit.review.subject import PlacedDevice, Subject

_ONE_ROW_UM = 1.0  # cells whose middles differ by at most this much across lie in one row [um]
_NEXT = 2.1  # pitches to the next cell of a chain, which may lie folded: 1 3 5 4 2

Cell = list["PlacedDevice"]


class Repeated:
    """The findings on the repeated cells of one layout.

    Args:
        subject: The layout.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.unjudged: list[Unjudged] = []

    def findings(self) -> Iterator[Finding]:
        """Yield all findings; of cells that are unlike each other only that."""
        for cells in self._repeated():
            yield from self.turned(cells) or self.unlike(cells) or [*self.pitch(cells), *self.order(cells)]

    def turned(self, cells: Sequence[Cell]) -> list[Finding]:
        """Return whether some of the cells are turned by 90 degrees."""
        ways = [[f.around is not None and f.around.vertical for p in cell for f in p.fingers[:1]] for cell in cells]
        usual = max(ways, key=ways.count)
        odd = [cell for cell, way in zip(cells, ways, strict=True) if way != usual]
        words = f"{len(odd)} of them {'is' if len(odd) == 1 else 'are'} turned by 90 degrees"
        return self._found("turned", len(odd), odd or cells, words, len(cells))

    def unlike(self, cells: Sequence[Cell]) -> list[Finding]:
        """Return whether the cells differ in the places or sizes of their devices."""
        off = [(_unlike(cells[0], other), other) for other in cells[1:]]
        worst = self.subject.um(max(error for error, _ in off))
        wrong = [other for error, other in off if error]
        return self._found("", worst, wrong or cells, f"drawn unlike each other by up to {worst:.3g} um", len(cells))

    def pitch(self, cells: Sequence[Cell]) -> list[Finding]:
        """Return whether the cells do not lie at one pitch."""
        subject = self.subject
        off = subject.um(off_pitch([centre_of(cell) for cell in cells], subject.technology.to_dbu(_ONE_ROW_UM)))
        return self._found("", off, cells, f"they miss one pitch by {off:.3g} um", 0)

    def order(self, cells: Sequence[Cell]) -> list[Finding]:
        """Return whether cells of a chain, which lie in one row, lie out of its order."""
        centres = [centre_of(cell) for cell in _chain(cells, self.subject)]
        row = self.subject.technology.to_dbu(_ONE_ROW_UM)
        if len(centres) < 3 or min(max(each) - min(each) for each in zip(*centres, strict=True)) > row:
            return []
        pitch = max(max(each) - min(each) for each in zip(*centres, strict=True)) / (len(centres) - 1)
        jumps = sum(dist(one, other) > _NEXT * pitch for one, other in pairwise(centres))
        return self._found(
            "order",
            jumps,
            cells,
            f"{jumps} of them {'does' if jumps == 1 else 'do'} not lie beside the one that drives them",
            0,
        )

    def _found(self, figure: str, measured: float, wrong: Sequence[Cell], words: str, count: int) -> list[Finding]:
        """Return the finding; ``count``: how many cells must match, below three of which none must."""
        every = [placed for cell in wrong for placed in cell]
        return self.subject.finding(
            f"repeated.{figure}" if figure else "repeated",
            measured,
            box_around(placed.box for placed in every),
            f"cells that should be equal ({names_of(every)}): {words}",
            "draw the cell once and repeat it in its order at one pitch",
            devices=every,
            most="must" if count > 2 else "should",
        )

    def _repeated(self) -> Iterator[list[Cell]]:
        """Yield the cells that should be equal, each as its devices in one order: instances of a cell, equal stages.

        What matches devices outside of its cell, such as the output of a mirror, is no part of it.
        """
        by_name, cells = self.subject.by_name, defaultdict(list)
        matched = (module for module in self.subject.roles.modules if MODULE_TYPES[module.type].matched)
        group = {name: set(module.devices) for module in matched for name in module.devices}
        for instance in self.subject.circuit.subcircuits:
            own = [name for name in instance.devices if group.get(name, {name}) <= instance.devices.keys()]
            names = sorted(own, key=lambda name: name.rsplit(".", maxsplit=1)[-1])
            if len(names) > 1 and all(name in by_name for name in names):
                cells[instance.cell].append([by_name[name] for name in names])
        known = {id(placed) for found in cells.values() for cell in found for placed in cell}
        for module in self.subject.roles.groups:
            if module.type == "ring_stage":
                stages = [
                    [by_name[name] for name in stage if name in by_name and group.get(name, {name}) <= set(stage)]
                    for stage in module.properties["stages"]
                ]
                new = not any(id(placed) in known for stage in stages for placed in stage)
                if new and len({len(stage) for stage in stages}) == 1 and len(stages[0]) > 1:
                    cells[module.id] = stages
        yield from (found for _, found in sorted(cells.items()) if len(found) > 1)


def _chain(cells: Sequence[Cell], subject: Subject) -> list[Cell]:
    """Return the cells in the order in which each drives the next one; nothing where they are no chain."""
    gates, drains = (
        [
            {p.device.terminals.get(end) for p in cell} - {*subject.supplies.power, *subject.supplies.ground}
            for cell in cells
        ]
        for end in ("g", "d")
    )
    after: dict[int, list[int]] = {}
    for number, out in enumerate(drains):
        after[number] = [other for other, nets in enumerate(gates) if other != number and nets & (out - gates[number])]
    if any(len(following) > 1 for following in after.values()):
        return []
    driven = {other for following in after.values() for other in following}
    chain = [next((number for number in after if number not in driven), 0)]
    while (following := after[chain[-1]]) and following[0] not in chain:
        chain += following
    return [cells[number] for number in chain] if len(chain) == len(cells) else []


def _unlike(one: Sequence[PlacedDevice], other: Sequence[PlacedDevice]) -> float:
    """Return by how much places and sizes of devices in two cells differ, at the best of four reflections. [dbu]"""
    if len(one) != len(other):
        return 0.0
    here, there = ([placed.centre for placed in own] for own in (one, other))
    pairs = [(a.box, b.box) for a, b in zip(one, other, strict=True)]
    sizes = max(max(abs(a.width() - b.width()), abs(a.height() - b.height())) for a, b in pairs)
    errors = []
    for x, y in ((1, 1), (-1, 1), (1, -1), (-1, -1)):
        moved = [(x * a, y * b) for a, b in there]
        dx, dy = (mean(p[axis] - q[axis] for p, q in zip(here, moved, strict=True)) for axis in (0, 1))
        errors.append(max(max(abs(p[0] - q[0] - dx), abs(p[1] - q[1] - dy)) for p, q in zip(here, moved, strict=True)))
    return max(min(errors), sizes)


def off_pitch(centres: Sequence[tuple[float, float]], row: int) -> float:
    """Return by how much equal things miss rows at one pitch; 0 for fewer than three. [dbu]

    Args:
        centres: Their middles. [dbu]
        row: Largest difference across within one row. [dbu]
    """
    if len(centres) < 3:
        return 0.0
    found = []
    for along, across in ((0, 1), (1, 0)):
        rows: list[list[tuple[float, float]]] = []
        for centre in sorted(centres, key=lambda each: (each[across], each[along])):
            if rows and centre[across] - rows[-1][0][across] <= row:
                rows[-1].append(centre)
            else:
                rows.append([centre])
        steps = [after - before for own in rows for before, after in pairwise(sorted(each[along] for each in own))]
        between = [after[0][across] - before[0][across] for before, after in pairwise(rows)]
        if steps:
            off = max(steps) - min(steps)
            found.append(max(off, max(between) - min(between)) if between else off)
    spread = [max(each) - min(each) for each in zip(*centres, strict=True)]
    return min(found, default=min(spread))  # no two of them share a row or column
