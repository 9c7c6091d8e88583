"""Alignment, order and abutment of blocks as numbers, and by how much a packing lacks them.

Each relation compares one edge of one block with one of another: they are to be equal, or the first is not to be beyond
the second by more than a number of steps. Coordinates are doubled, so that middles are whole numbers.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from layoutkit.errors import GeometryError
from layoutkit.place.packing import (
    C_BOTTOM,
    C_LEFT,
    C_X,
    C_Y,
    CLUSTER,
    CLUSTER_SIZE,
    CLUSTERS,
    I_FIRST,
    I_SIZE,
    ITEM_SIZE,
    ITEMS,
    ORIENTATIONS,
    S_HEIGHT,
    S_SIZE,
    S_WIDTH,
    SHAPE,
    Numbers,
    X,
    Y,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layoutkit.place.blocks import PlacementOptions

EDGES = ("left", "right", "center_x", "bottom", "top", "center_y")
EQUAL, NOT_BEYOND = 0, 1
RELATION_SIZE = 8
LEAST_LACK = 400
"""Added to what a missed relation lacks, in half steps. Otherwise a little area would outweigh one step."""
_ORDERS = {"left_to_right": ("right", "left"), "bottom_to_top": ("top", "bottom")}


def relation_rows(
    options: PlacementOptions, numbers: Mapping[str, tuple[int, int]], gaps: Mapping[tuple[str, str], int]
) -> list[list[int]]:
    """Return the relations that ``options`` want, one row each: two blocks and edges, the kind and the steps.

    Args:
        options: What is wanted.
        numbers: Block to the number of its item, and 1 for the left one of two partners.
        gaps: Least gap between two blocks that are to abut, the left one first. [grid steps]

    Raises:
        GeometryError: If a name is that of no block.
    """
    groups = [names for _, names in (*options.aligned, *options.ordered)] + list(options.abutting)
    unknown = sorted({name for names in groups for name in names if name not in numbers})
    if unknown:
        raise GeometryError(f"there is no block {', '.join(unknown)}; blocks: {', '.join(sorted(numbers))}")

    def row(one: str, edge: str, other: str, other_edge: str, *, kind: int = NOT_BEYOND, steps: int = 0) -> list[int]:
        return [*numbers[one], EDGES.index(edge), *numbers[other], EDGES.index(other_edge), kind, steps]

    found = [
        row(one, edge, other, edge, kind=EQUAL) for edge, names in options.aligned for one, other in pairwise(names)
    ]
    for direction, names in options.ordered:
        high, low = _ORDERS[direction]
        found += [row(before, high, after, low) for before, after in pairwise(names)]
    for names in options.abutting:
        for left, right in pairwise(names):
            found.append(row(left, "right", right, "left"))
            found.append(row(right, "left", left, "right", steps=gaps[left, right]))
            found.append(row(left, "bottom", right, "top", steps=-1))
            found.append(row(right, "bottom", left, "top", steps=-1))
    return found


def relation_lack(state: Numbers, n: int, items: Numbers, shapes: Numbers, relations: Numbers) -> int:
    """Return by how many half steps all relations together are not kept."""
    lack = 0
    for index in range(len(relations) // RELATION_SIZE):
        first = RELATION_SIZE * index
        places = [0, 0]
        for which in range(2):
            item, copy, edge = (
                relations[first + 3 * which],
                relations[first + 3 * which + 1],
                relations[first + 3 * which + 2],
            )
            i = ITEMS * n + ITEM_SIZE * item
            c = CLUSTERS * n + CLUSTER_SIZE * state[i + CLUSTER]
            s = ORIENTATIONS * (items[item * I_SIZE + I_FIRST] + state[i + SHAPE]) * S_SIZE
            width, height = shapes[s + S_WIDTH], shapes[s + S_HEIGHT]
            x = state[i + X] + state[c + C_X] - state[c + C_LEFT]
            y = state[i + Y] + state[c + C_Y] - state[c + C_BOTTOM]
            if copy:
                x = -x - width
            if edge < 3:
                places[which] = 2 * x + (0, 2, 1)[edge] * width
            else:
                places[which] = 2 * y + (0, 2, 1)[edge - 3] * height
        beyond = places[0] - places[1]
        beyond = abs(beyond) if relations[first + 6] == EQUAL else beyond - 2 * relations[first + 7]
        if beyond > 0:
            lack += beyond + LEAST_LACK
    return lack
