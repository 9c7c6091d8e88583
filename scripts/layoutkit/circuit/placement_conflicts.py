"""Constraints on places that contradict one another: no placement can obey all of them, whatever the sizes.

Every constraint on places is a set of inequalities between the edges and middles of what is placed, such as "the right
edge of M1 is not beyond the left edge of M2". A cycle of inequalities that holds a strict one has no solution; the
constraints on the cycle contradict one another.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from layoutkit.circuit.constraints import Constraints

    Point = tuple[str, str, str]  # what is placed, the axis x or y, and its low edge, middle or high edge
    # A point, a point that is not below it, whether it must be above it, and the path of the constraint.
    Step = tuple[Point, Point, bool, str]

EDGES = {
    "left": ("x", "low"),
    "right": ("x", "high"),
    "center_x": ("x", "middle"),
    "bottom": ("y", "low"),
    "top": ("y", "high"),
    "center_y": ("y", "middle"),
}
"""Edge of an alignment to its axis and where on it."""
AXES = {"left_to_right": "x", "bottom_to_top": "y"}
"""Direction of an ordering to its axis."""
_TRIED = 50  # inequalities of a contradiction from which the shortest cycle is searched


class Contradiction(NamedTuple):
    """Constraints that no placement can obey together: their paths, and the names of what they place."""

    paths: tuple[str, ...]
    names: tuple[str, ...]

    @property
    def text(self) -> str:
        """It in words."""
        return f"no placement of {', '.join(self.names)} obeys {' and '.join(self.paths)} together; change one of them"


def contradictions(constraints: Constraints, item_of: Callable[[str], str] | None = None) -> list[Contradiction]:
    """Return the sets of constraints on places that contradict one another.

    Args:
        constraints: Symmetric pairs, devices on an axis, alignment, ordering and abutment.
        item_of: What is placed for a device; None where that is not known yet. Then matched devices, which may be drawn
            in one module, mirror each other in it.
    """
    import networkx as nx

    steps = list(_inequalities(constraints, item_of))
    for item, axis in sorted({(item, axis) for low, high, _, _ in steps for item, axis, _ in (low, high)}):
        for before, after in (("low", "middle"), ("middle", "high")):
            steps.append(((item, axis, before), (item, axis, after), True, ""))
    order: nx.DiGraph[Point] = nx.DiGraph((low, high) for low, high, _, _ in steps)
    cycles = sorted((part for part in nx.strongly_connected_components(order) if len(part) > 1), key=min)
    numbers = {point: number for number, members in enumerate(cycles) for point in members}
    inside: list[list[Step]] = [[] for _ in cycles]
    for step in steps:
        number = numbers.get(step[0])
        if number is not None and number == numbers.get(step[1]):
            inside[number].append(step)
    found = [_shortest(each) for each in inside]
    return [each for each in found if each is not None]


def _inequalities(constraints: Constraints, item_of: Callable[[str], str] | None) -> Iterator[Step]:
    """Yield the inequalities of the constraints, each with the path of its constraint."""
    matched = {name: index for index, group in enumerate(constraints.matching) for name in group.devices}

    def items(names: Sequence[str]) -> list[str]:
        return list(dict.fromkeys(item_of(name) if item_of else name for name in names))

    def equal(one: Point, other: Point, path: str) -> Iterator[Step]:
        yield one, other, False, path
        yield other, one, False, path

    for number, group in enumerate(constraints.symmetry):
        middle = (f"axis of symmetry[{number}]", "x", "middle")
        for index, pair in enumerate(group.pairs):
            path, (left, right, *_) = f"symmetry[{number}].pairs[{index}]", (*items(pair), "")
            if not right or (item_of is None and pair[0] in matched and matched[pair[0]] == matched.get(pair[1])):
                continue
            yield (left, "x", "high"), middle, False, path
            yield middle, (right, "x", "low"), False, path
            for place in ("low", "middle", "high"):
                yield from equal((left, "y", place), (right, "y", place), path)
        for index, name in enumerate(group.self_symmetric):
            (item,) = items([name])
            yield from equal((item, "x", "middle"), middle, f"symmetry[{number}].self_symmetric[{index}]")
    for number, wanted in enumerate(constraints.alignment):
        axis, place = EDGES[wanted.edge]
        first, *others = items(wanted.devices)
        for item in others:
            yield from equal((first, axis, place), (item, axis, place), f"alignment[{number}]")
    for number, line in enumerate(constraints.ordering):
        names, axis = items(line.devices), AXES[line.direction]
        for before, after in pairwise(names):
            yield (before, axis, "high"), (after, axis, "low"), False, f"ordering[{number}]"
    for number, row in enumerate(constraints.abutment):
        names = items(row.devices)
        for left, right in pairwise(names):
            yield from equal((left, "x", "high"), (right, "x", "low"), f"abutment[{number}]")
            for one, other in ((left, right), (right, left)):
                yield (one, "y", "low"), (other, "y", "high"), True, f"abutment[{number}]"


def _shortest(steps: Sequence[Step]) -> Contradiction | None:
    """Return the cycle with a strict inequality that has the fewest constraints; None where no cycle has one."""
    import networkx as nx

    order: nx.DiGraph[Point] = nx.DiGraph()
    for low, high, _, why in steps:
        if not order.has_edge(low, high):
            order.add_edge(low, high, why=why)
    strict = sorted((step for step in steps if step[2]), key=lambda step: step[0])
    best: tuple[list[str], set[str]] | None = None
    for low, high, _, why in strict[:_TRIED]:
        back = nx.single_source_shortest_path(order, high)[low]
        reasons = (why, *(order.edges[step]["why"] for step in pairwise(back)))
        paths = list(dict.fromkeys(filter(None, reasons)))
        if best is None or len(paths) < len(best[0]):
            best = paths, {item for item, _, _ in back if not item.startswith("axis of ")}
    return None if best is None else Contradiction(tuple(sorted(best[0])), tuple(sorted(best[1])))
