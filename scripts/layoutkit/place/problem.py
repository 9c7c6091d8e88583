"""Blocks as the numbers that the search works on: items, shapes, gaps, pins; and a placement back from a state."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from layoutkit.errors import GeometryError
from layoutkit.place.blocks import Island, Placed, Placement, Rectangle
from layoutkit.place.clearance import Clearances
from layoutkit.place.packing import (
    C_APART,
    C_BOTTOM,
    C_LEFT,
    C_X,
    C_Y,
    CENTRED,
    CLUSTER,
    FREE,
    I_FRAMES,
    I_SIZE,
    MIRRORED,
    OFF_AXIS,
    PAIR,
    SHAPE,
    UPSIDE_DOWN,
    X,
    Y,
)
from layoutkit.place.relations import relation_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from layoutkit.place.blocks import Block, PlacementOptions
    from layoutkit.technology import Technology

    IntArray = npt.NDArray[np.int64]

EDGES = ("left", "bottom", "right", "top")
CLUSTER_COST = 0.02
"""What one more ring costs beyond the area that it takes, as a part of the area of all blocks."""

LEAVE_COST = 0.15
"""What a block costs that leaves the axis, as a part of the area of all blocks."""
MOST_LEAVING = 4
"""No more than this many times that cost is asked where all leave that may: else many blocks are one tall stack."""
ASPECT_MARGIN = 0.92
"""The search aims at this part of the largest aspect: beyond it, a layout costs as much as one that has the aspect."""
NEAR_WEIGHT = 12
"""How much a proximity group counts, compared with a net of the same extent."""
UNLIMITED = 1 << 40
OPEN = 1 << 30
"""Length of the side at which an outline is open. [dbu]"""


@dataclass(frozen=True)
class Item:
    """What is packed as one: a block, or two partners as the right one.

    Attributes:
        kind: ``FREE``, ``CENTRED`` or ``PAIR``.
        block: The block, of two partners the right one.
        partner: The left one.
        shapes: The shapes that may be chosen, with the variant and whether it is turned.
    """

    kind: int
    block: Block
    partner: Block | None
    shapes: tuple[tuple[int, bool, Block], ...]


@dataclass(frozen=True)
class Problem:
    """Blocks as numbers.

    Attributes:
        grid: A step of the manufacturing grid, in which all lengths are. [dbu]
        items: What is packed, in the order of their numbers.
        numbers: What the search works on; see ``layoutkit.place.annealing``.
        nets: Names of the nets, in the order of their numbers; groups that belong together follow.
    """

    grid: int
    items: tuple[Item, ...]
    numbers: tuple[IntArray, ...]
    nets: tuple[str, ...]


def make_problem(technology: Technology, blocks: Sequence[Block], options: PlacementOptions) -> Problem:
    """Return ``blocks`` as numbers.

    Raises:
        GeometryError: If a block that is to be centred has no shape whose middle is on the grid.
    """
    grid = technology.grid
    clearances = Clearances(technology)
    items = _items(blocks, grid)
    shapes = [shape for item in items for _, _, shape in item.shapes]
    rooms = [options.room.get(shape.name, 0) for shape in shapes]
    more = [shape.excess * (2 if item.partner else 1) // grid**2 for item in items for _, _, shape in item.shapes]
    gaps = clearances.gaps(shapes, inside=True) + np.add.outer(np.repeat(rooms, 4), np.repeat(rooms, 4))
    class_gaps, classes = _class_gaps(clearances, items)
    nets = _wired_nets(blocks, options)
    table = np.array(
        [
            [*_shape_row(shape, grid, -(-room // grid)), excess]
            for shape, room, excess in zip(shapes, rooms, more, strict=True)
        ],
        dtype=np.int64,
    )
    numbered = {net: number for number, net in enumerate(nets)}
    rows, starts, pins = _items_and_pins(items, classes, numbered, options, grid)
    weights = [round(10 * options.net_weights.get(net, 1.0)) for net in nets] + [10 * NEAR_WEIGHT] * len(options.near)
    sides = [(numbered[net], EDGES.index(side)) for net, side in sorted(options.sides.items()) if net in numbered]
    pitch = _pitch(technology) // grid
    width, height = _reachable(options.outline, items) or (0, 0)
    numbers = [len(items), 4 * len(shapes), len(class_gaps), len(weights), pitch]
    numbers += [max(100, round(100 * ASPECT_MARGIN * options.max_aspect)), width // grid, height // grid]
    numbers.append(round(CLUSTER_COST * _area(items) / grid**2))
    return Problem(
        grid,
        items,
        tuple(
            np.ascontiguousarray(array, dtype=np.int64).ravel()
            for array in (
                numbers,
                rows,
                table,
                _with_room(gaps, options) // grid,
                _with_room(class_gaps, options) // grid,
                starts,
                pins,
                weights,
                sides,
                relation_rows(options, _numbered(items), _abutting_gaps(clearances, items, options, grid)),
            )
        ),
        nets,
    )


def _reachable(outline: tuple[int, int] | None, items: Sequence[Item]) -> tuple[int, int] | None:
    """Return the outline; None for one that is open at one side and too narrow for some block at the other. [dbu]

    No layout keeps it then, and one row or column of all blocks would come nearest to it.
    """
    if outline is None or max(outline) < OPEN:
        return outline
    fits = (any(s.width <= outline[0] and s.height <= outline[1] for _, _, s in item.shapes) for item in items)
    return outline if all(fits) else None


def _numbered(items: Sequence[Item]) -> dict[str, tuple[int, int]]:
    """Return the number of each block's item, and 1 for the left one of two partners."""
    found = {item.block.name: (number, 0) for number, item in enumerate(items)}
    return {**found, **{item.partner.name: (n, 1) for n, item in enumerate(items) if item.partner is not None}}


def _abutting_gaps(
    clearances: Clearances, items: Sequence[Item], options: PlacementOptions, grid: int
) -> dict[tuple[str, str], int]:
    """Return the least gap, with the room for wires, between every two blocks that are to abut. [grid steps]"""
    blocks = {block.name: block for item in items for block in (item.block, item.partner) if block is not None}
    pairs = [pair for names in options.abutting for pair in pairwise(names) if set(pair) <= set(blocks)]
    return {
        (left, right): (clearances.beside(blocks[left], blocks[right]) + options.room_between(left, right)[0]) // grid
        for left, right in pairs
    }


def _area(items: Sequence[Item]) -> int:
    """Return the area of all blocks. [dbu2]"""
    return sum(item.block.width * item.block.height * (2 if item.partner else 1) for item in items)


def _pitch(technology: Technology) -> int:
    """Return the distance of two wires on the first layer that is routed in the open. [dbu]"""
    conductor = technology.conductors[min(2, len(technology.conductors) - 1)]
    return conductor.width + conductor.space


def _with_room(gaps: IntArray, options: PlacementOptions) -> IntArray:
    """Return the gaps with the extra room for wires."""
    count = len(gaps) // 4
    upright = np.tile([False, False, True, True], count)
    extra = np.where(upright, options.gap_y, options.gap_x)
    return gaps + np.minimum(extra[:, None], extra)


def _items(blocks: Sequence[Block], grid: int) -> tuple[Item, ...]:
    by_name = {block.name: block for block in blocks}
    order = {name: number for number, name in enumerate(by_name)}
    items, faults = [], []
    together = Counter(block.island for block in blocks if block.symmetric or block.partner)
    for block in blocks:
        if block.partner:
            if order[block.name] < order[block.partner]:
                right = by_name[block.partner]
                items.append(Item(PAIR, right, block, _shapes(right)))
            continue
        shapes = _shapes(block)
        if block.symmetric and together[block.island] > 1:
            shapes = tuple(each for each in shapes if sum(_steps(each[2], grid)[::2]) % 2 == 0)
            if not shapes:
                faults.append(block.name)
                continue
            items.append(Item(CENTRED, block, None, shapes))
        else:
            items.append(Item(FREE, block, None, shapes))
    if faults:
        raise GeometryError(
            f"{', '.join(faults)} cannot be centred on an axis: the width is an odd number of grid steps; "
            "leave them out of the symmetric blocks"
        )
    return tuple(items)


def _shapes(block: Block) -> tuple[tuple[int, bool, Block], ...]:
    found = []
    for number, shape in enumerate(block.shapes):
        found.append((number, False, shape))
        if block.turns:
            found.append((number, True, _turned(shape)))
    return tuple(found)


def _turned(block: Block) -> Block:
    """Return a block turned by 90 degrees counter-clockwise."""
    place = Placed(block.name, 0, 0, turned=True)
    return replace(
        block,
        box=place.rectangle(block.box),
        pins=tuple((net, *place.point(x, y)) for net, x, y in block.pins),
        layer_boxes={layer: place.rectangle(box) for layer, box in block.layer_boxes.items()},
    )


def _steps(block: Block, grid: int) -> tuple[int, int, int, int]:
    """Return the bounding box in steps of the grid, rounded outwards."""
    box = block.box
    return box.left // grid, box.bottom // grid, -(-box.right // grid), -(-box.top // grid)


def _shape_row(block: Block, grid: int, room: int) -> list[int]:
    """Return width and height, margins of the ring, inner edges of the ring and reach of the taps of one shape."""
    left, bottom, right, top = _steps(block, grid)
    size, none = [right - left, top - bottom], [room] * 4
    if block.ring is None:
        return [*size, *none, 0, 0, 0, 0, UNLIMITED]
    box, around, inner = block.box, block.ring.outside.box, block.ring.inner
    outside = [box.left - around.left, box.bottom - around.bottom, around.right - box.right, around.top - box.top]
    inside = [box.left - inner.left, box.bottom - inner.bottom, inner.right - box.right, inner.top - box.top]
    own = min(size[0] + inside[0] // grid + inside[2] // grid, size[1] + inside[1] // grid + inside[3] // grid) + 2
    reach = max(block.ring.reach // grid, own)  # a block that is larger than the reach is not helped by placement
    return [*size, *(-(-each // grid) + room for each in outside), *(each // grid for each in inside), reach]


def _class_gaps(clearances: Clearances, items: Sequence[Item]) -> tuple[IntArray, list[int]]:
    """Return the gaps between clusters, and the class of each item.

    Clusters of one ring key are one class. A block without a ring has a class for each of its shapes.
    """
    outside, classes, first = [], [], []
    known: dict[str, int] = {}
    number = 0
    for item in items:
        ring = item.block.ring
        if ring is not None and ring.key in known:
            first.append(known[ring.key])
        else:
            first.append(number)
            if ring is not None:
                known[ring.key] = number
            number += 1 if ring is not None else len(item.shapes)
        for index, (_, _, shape) in enumerate(item.shapes):
            outside.append(shape.ring.outside if shape.ring else shape)
            classes.append(first[-1] + (0 if shape.ring else index))
    gaps = clearances.gaps(outside)
    result = np.zeros((4 * number, 4 * number), dtype=np.int64)
    faces = np.add.outer(4 * np.array(classes), np.arange(4)).ravel()
    np.maximum.at(result, (faces[:, None], faces), gaps)
    for ringed in sorted(known.values()):  # blocks inside may be mirrored and upside down
        for one, other in ((0, 1), (2, 3)):
            a, b = 4 * ringed + one, 4 * ringed + other
            result[[a, b]] = np.maximum(result[a], result[b])
            result[:, [a, b]] = np.maximum(result[:, a], result[:, b])[:, None]
    return result, first


def _wired_nets(blocks: Sequence[Block], options: PlacementOptions) -> tuple[str, ...]:
    """Return the nets of two blocks or more, and of blocks and a wanted side."""
    counts: dict[str, set[str]] = {}
    for block in blocks:
        for net, _, _ in block.pins:
            counts.setdefault(net, set()).add(block.name)
    return tuple(sorted(net for net, names in counts.items() if len(names) > 1 or net in options.sides))


def _items_and_pins(
    items: Sequence[Item], classes: Sequence[int], nets: Mapping[str, int], options: PlacementOptions, grid: int
) -> tuple[list[list[int]], list[int], list[list[int]]]:
    keys: dict[str, int] = {}
    rows: list[list[int]] = []
    starts: list[int] = []
    pins: list[list[int]] = []
    first = 0
    loose = sum(item.block.leaving for item in items)
    leaving = LEAVE_COST * _area(items) / grid**2 * MOST_LEAVING / max(loose, MOST_LEAVING)
    for number, item in enumerate(items):
        ring = item.block.ring
        key = keys.setdefault(ring.key, len(items) + len(keys)) if ring else number
        mirrors = item.kind != CENTRED
        leaves = round(leaving * item.block.leaving) if item.kind == CENTRED else 0
        row = [item.kind, key, first, len(item.shapes), classes[number], ring is not None, len(starts), mirrors, True]
        rows.append([*row, leaves, between_ports(item.block, item.partner, options)])
        first += len(item.shapes)
        left = _shapes(item.partner) if item.partner else ()
        for index, (_, _, shape) in enumerate(item.shapes):
            starts.append(len(pins))
            pins += _pin_rows(shape, nets, options, grid)
            starts.append(len(pins))
            pins += _pin_rows(left[index][2], nets, options, grid) if left else []
            starts.append(len(pins))
    return rows, starts, pins


def between_ports(block: Block, partner: Block | None, options: PlacementOptions) -> bool:
    """Return whether ports that mirror each other lead to a symmetric block, or one to each of two partners."""
    if partner is None and not block.symmetric:
        return False
    one, other = ({net for net, _, _ in each.pins} for each in (block, partner or block))
    return any(left in one and right in other for pair in options.mirrored for left, right in (pair, pair[::-1]))


def _pin_rows(block: Block, nets: Mapping[str, int], options: PlacementOptions, grid: int) -> list[list[int]]:
    """Return number and box of each net of a block, from its lower left corner, in steps of the grid."""
    left, bottom, right, top = _steps(block, grid)
    found: dict[int, list[int]] = {}
    entries = [(nets[net], x // grid - left, y // grid - bottom) for net, x, y in block.pins if net in nets]
    middle = (right - left) // 2, (top - bottom) // 2
    entries += [(len(nets) + i, *middle) for i, names in enumerate(options.near) if block.name in names]
    for net, x, y in entries:
        box = found.setdefault(net, [x, y, x, y])
        found[net] = [min(box[0], x), min(box[1], y), max(box[2], x), max(box[3], y)]
    return [[net, *box] for net, box in sorted(found.items())]


def placement_of(problem: Problem, state: Any, blocks: Sequence[Block]) -> Placement:
    """Return the placement that a packed state describes."""
    n, grid = len(problem.items), problem.grid
    state = [int(value) for value in state]
    placed: dict[str, Placed] = {}
    rings: dict[tuple[int, int], list[str]] = {}
    for number, item in enumerate(problem.items):
        cluster = state[CLUSTER * n + number]
        variant, turned, shape = item.shapes[state[SHAPE * n + number]]
        left, bottom, right, _ = _steps(shape, grid)
        x = state[X * n + number] + state[C_X * n + cluster] - state[C_LEFT * n + cluster]
        y = state[Y * n + number] + state[C_Y * n + cluster] - state[C_BOTTOM * n + cluster]
        mirrored, upside_down = bool(state[MIRRORED * n + number]), bool(state[UPSIDE_DOWN * n + number])
        copies = [(item.block, x, mirrored)]
        if item.partner is not None:
            copies.append((item.partner, -x - (right - left), not mirrored))
        for side, (block, edge, flipped) in enumerate(copies):
            dx = edge + right if flipped else edge - left
            dy = y + _steps(shape, grid)[3] if upside_down else y - bottom
            placed[block.name] = Placed(block.name, dx * grid, dy * grid, flipped, upside_down, variant, turned)
            if block.ring is not None:
                apart = state[C_APART * n + cluster]
                rings.setdefault((cluster, side if apart else 0), []).append(block.name)
    by_name = {block.name: block for block in blocks}
    boxes = {name: place.box(by_name[name]) for name, place in placed.items()}
    low = min(box.bottom for box in boxes.values()) // grid * grid
    ordered = sorted(placed, key=lambda name: (boxes[name].bottom, boxes[name].left, name))
    placed = {name: replace(placed[name], y=placed[name].y - low) for name in ordered}
    boxes = {name: place.box(by_name[name]) for name, place in placed.items()}
    alone = {i.block.name for k, i in enumerate(problem.items) if i.kind == FREE or state[OFF_AXIS * n + k]}
    symmetric = [block for block in blocks if block.symmetric or block.partner]
    main = tuple(block.name for block in symmetric if block.name not in alone)
    islands = [Island(0, main)] if main else []
    frames = {item.block.name for k, item in enumerate(problem.items) if problem.numbers[1][k * I_SIZE + I_FRAMES]}
    for block in sorted(symmetric, key=lambda each: each.name not in frames):
        if block.name in alone:
            box = boxes[block.name]
            islands.append(Island((box.left + box.right) // 2, (block.name,)))
    rank = {name: number for number, name in enumerate(placed)}
    inside = sorted((sorted(names, key=rank.__getitem__) for names in rings.values()), key=lambda names: rank[names[0]])
    whole = Rectangle(
        min(box.left for box in boxes.values()),
        min(box.bottom for box in boxes.values()),
        max(box.right for box in boxes.values()),
        max(box.top for box in boxes.values()),
    )
    return Placement(placed, tuple(islands), whole, wire_length_of(by_name, placed), tuple(map(tuple, inside)))


def wire_length_of(blocks: Mapping[str, Block], placed: Mapping[str, Placed]) -> int:
    """Return the half-perimeter wire length over all nets. [dbu]"""
    extents: dict[str, list[int]] = {}
    for name, place in placed.items():
        for net, x, y in place.shape(blocks[name]).pins:
            px, py = place.point(x, y)
            extent = extents.setdefault(net, [px, py, px, py])
            extent[0], extent[1] = min(extent[0], px), min(extent[1], py)
            extent[2], extent[3] = max(extent[2], px), max(extent[3], py)
    return sum(e[2] - e[0] + e[3] - e[1] for e in extents.values())
