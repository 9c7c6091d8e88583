"""Constraints on places that contradict one another: no placement can obey all of them, whatever the sizes.

Every constraint on places is a set of inequalities between the edges and middles of what is placed, such as "the right
edge of M1 is not beyond the left edge of M2". A cycle of inequalities that holds a strict one has no solution; the
constraints on the cycle contradict one another.
"""

from __future__ import annotations

from collections import defaultdict, deque
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from layoutkit.circuit.constraints import Constraints

    Point = tuple[str, str, str]  # what is placed, the axis x or y, and its low edge, middle or high edge
    Step = tuple[Point, bool, str]  # the point that is not before another one, whether it is beyond it, and why

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
    order: dict[Point, list[Step]] = defaultdict(list)
    for low, high, beyond, why in _inequalities(constraints, item_of):
        order[low].append((high, beyond, why))
        for point in (low, high):
            order.setdefault(point, [])
    for item, axis in sorted({(item, axis) for item, axis, _ in order}):
        for before, after in (("low", "middle"), ("middle", "high")):
            order[item, axis, before].append(((item, axis, after), True, ""))
            order.setdefault((item, axis, after), [])
    found = [_shortest(order, set(members)) for members in _cycles(order)]
    return [each for each in found if each is not None]


def _inequalities(
    constraints: Constraints, item_of: Callable[[str], str] | None
) -> Iterator[tuple[Point, Point, bool, str]]:
    """Yield (one point, another that is not before it, whether it must be beyond it, the constraint's path)."""
    matched = {name: index for index, group in enumerate(constraints.matching) for name in group.devices}

    def items(names: Sequence[str]) -> list[str]:
        return list(dict.fromkeys(item_of(name) if item_of else name for name in names))

    def equal(one: Point, other: Point, path: str) -> Iterator[tuple[Point, Point, bool, str]]:
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


def _cycles(order: dict[Point, list[Step]]) -> list[list[Point]]:
    """Return the points that lie on common cycles: strongly connected components of more than one point.

    Tarjan's algorithm without recursion (Depth-first search and linear graph algorithms, SIAM J. Comput. 1, 1972).
    """
    index: dict[Point, int] = {}
    low: dict[Point, int] = {}
    stack: list[Point] = []
    on_stack: set[Point] = set()
    found = []
    for root in sorted(order):
        if root in index:
            continue
        work = [(root, iter(order[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            point, steps = work[-1]
            for following, _, _ in steps:
                if following not in index:
                    index[following] = low[following] = len(index)
                    stack.append(following)
                    on_stack.add(following)
                    work.append((following, iter(order[following])))
                    break
                if following in on_stack:
                    low[point] = min(low[point], index[following])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[point])
                if low[point] == index[point]:
                    place = stack.index(point)
                    members, stack[place:] = stack[place:], []
                    on_stack -= set(members)
                    if len(members) > 1:
                        found.append(members)
    return found


def _shortest(order: dict[Point, list[Step]], members: set[Point]) -> Contradiction | None:
    """Return the fewest constraints on a cycle with a strict inequality; None where the cycles have none."""
    strict = [
        (point, following, why)
        for point in sorted(members)
        for following, beyond, why in order[point]
        if beyond and following in members
    ]
    best: tuple[list[str], list[str]] | None = None
    for point, following, why in strict[:_TRIED]:
        paths, names = _way_back(order, members, following, point)
        paths = list(dict.fromkeys(path for path in (why, *paths) if path))
        if best is None or len(paths) < len(best[0]):
            best = paths, names
    if best is None:
        return None
    return Contradiction(tuple(sorted(best[0])), tuple(sorted(set(best[1]))))


def _way_back(
    order: dict[Point, list[Step]], members: set[Point], start: Point, end: Point
) -> tuple[list[str], list[str]]:
    """Return the constraints along the shortest path from ``start`` to ``end``, and the names of its devices."""
    before: dict[Point, tuple[Point, str]] = {}
    waiting = deque([start])
    while waiting and end not in before:
        point = waiting.popleft()
        for following, _, why in order[point]:
            if following in members and following not in before and following != start:
                before[following] = point, why
                waiting.append(following)
    paths, point = [], end
    names = [start[0], end[0]]
    while point != start:
        point, why = before[point]
        paths.append(why)
        names.append(point[0])
    return paths, [name for name in names if not name.startswith("axis of ")]
