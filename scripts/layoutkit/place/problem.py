"""Blocks as the numbers that the search works on: items, shapes, gaps, pins, nets; a packed state as a placement.

A row of boxes holds, for one item in one shape and orientation, the box of its pins on each of its nets, from the lower
left corner of the item; of two partners, the boxes of the left one follow, from the mirror image of that point:

    left partner                axis                  item
    +-------+                    |                    +-------+
    |  [ ]  |                    |                    | [ ]   |
    +-------+ (-x, y)            |             (x, y) +-------+
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from layoutkit.errors import GeometryError
from layoutkit.place.blocks import Clearances, Island, Placed, Placement
from layoutkit.place.packing import (
    C_APART,
    C_BOTTOM,
    C_LEFT,
    C_X,
    C_Y,
    CENTRED,
    CLUSTER,
    CLUSTER_SIZE,
    CLUSTERS,
    FREE,
    I_FRAMES,
    I_LEAVES,
    I_SIZE,
    ITEM_SIZE,
    ITEMS,
    MIRRORED,
    OFF_AXIS,
    ORIENTATIONS,
    PAIR,
    SHAPE,
    TURN,
    UPSIDE_DOWN,
    X,
    Y,
    relation_rows,
)
from layoutkit.rectangle import Rectangle

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from layoutkit.place.blocks import Block, PlacementOptions
    from layoutkit.technology import Technology

    IntArray = npt.NDArray[np.int64]
    Box = tuple[int, int, int, int]

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
NOWHERE: Box = (1 << 40, 1 << 40, -(1 << 40), -(1 << 40))
"""Box for a net on which a shape has no pin."""


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

    @property
    def drawn(self) -> list[tuple[Block, Block | None]]:
        """The block in each of the shapes, with the left partner."""
        partners = [shape for _, _, shape in _shapes(self.partner)] if self.partner else [None] * len(self.shapes)
        return [(shape, partner) for (_, _, shape), partner in zip(self.shapes, partners, strict=True)]


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
    numbers: tuple[Any, ...]
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
    gaps = _gaps(clearances, [each for item in items for each in item.drawn], inside=True)
    gaps = gaps + np.add.outer(np.repeat(rooms, 4), np.repeat(rooms, 4))
    class_gaps, classes = _class_gaps(clearances, items)
    nets = wired_nets(blocks, options)
    table = np.array(
        [
            [[*row, excess] for row in _shape_rows(shape, grid, -(-room // grid))]
            for shape, room, excess in zip(shapes, rooms, more, strict=True)
        ],
        dtype=np.int64,
    )
    numbered = {net: number for number, net in enumerate(nets)}
    weights = [round(10 * options.net_weights.get(net, 1.0)) for net in nets] + [10 * NEAR_WEIGHT] * len(options.near)
    sides = [(numbered[net], EDGES.index(side)) for net, side in sorted(options.sides.items()) if net in numbered]
    pitch = _pitch(technology) // grid
    firsts, wires = wire_tables([wired_shapes(item.drawn, numbered, options, grid) for item in items], weights)
    rows = _item_rows(items, classes, firsts, options, grid)
    width, height = _reachable(options.outline, items) or (0, 0)
    numbers = [len(items), 4 * len(shapes), len(class_gaps), len(weights), pitch]
    numbers += [max(100, round(100 * ASPECT_MARGIN * options.max_aspect)), width // grid, height // grid]
    numbers.append(round(CLUSTER_COST * _area(items) / grid**2))
    numbers += [any(row[I_FRAMES] for row in rows), any(more) or any(row[I_LEAVES] for row in rows)]
    relations = relation_rows(options, _numbered(items), _abutting_gaps(clearances, items, options, grid))
    return Problem(
        grid,
        items,
        (
            _flat(numbers),
            _flat(rows),
            _flat(table),
            _flat(_with_room(gaps, options) // grid),
            _flat(_with_room(class_gaps, options) // grid),
            wires,
            _flat(sides),
            _flat(relations),
        ),
        nets,
    )


def _flat(numbers: object) -> IntArray:
    return np.ascontiguousarray(numbers, dtype=np.int64).ravel()


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
            shapes = tuple(each for each in shapes if sum(each[2].box.steps(grid)[::2]) % 2 == 0)
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


def _shape_rows(block: Block, grid: int, room: int) -> list[list[int]]:
    """Return the row of ``_shape_row`` in each orientation."""
    width, height, left, bottom, right, top, in_left, in_bottom, in_right, in_top, reach = _shape_row(block, grid, room)
    sides = [(left, right, in_left, in_right), (right, left, in_right, in_left)]
    ends = [(bottom, top, in_bottom, in_top), (top, bottom, in_top, in_bottom)]
    return [
        [width, height, side[0], end[0], side[1], end[1], side[2], end[2], side[3], end[3], reach]
        for end in ends
        for side in sides
    ]


def _shape_row(block: Block, grid: int, room: int) -> list[int]:
    """Return width and height, margins of the ring, inner edges of the ring and reach of the taps of one shape."""
    left, bottom, right, top = block.box.steps(grid)
    size, none = [right - left, top - bottom], [room] * 4
    if block.ring is None:
        return [*size, *none, 0, 0, 0, 0, UNLIMITED]
    box, around, inner = block.box, block.ring.outside.box, block.ring.inner
    outside = [box.left - around.left, box.bottom - around.bottom, around.right - box.right, around.top - box.top]
    inside = [box.left - inner.left, box.bottom - inner.bottom, inner.right - box.right, inner.top - box.top]
    own = min(size[0] + inside[0] // grid + inside[2] // grid, size[1] + inside[1] // grid + inside[3] // grid) + 2
    reach = max(block.ring.reach // grid, own)  # a block that is larger than the reach is not helped by placement
    return [*size, *(-(-each // grid) + room for each in outside), *(each // grid for each in inside), reach]


def _gaps(clearances: Clearances, drawn: Sequence[tuple[Block, Block | None]], *, inside: bool = False) -> IntArray:
    """Return the gaps between faces of blocks, each with its left partner: the larger ones of both sides of the axis.

    Partners differ in their nets, so that the wells of two may meet where those of their partners may not, and the
    wells of two partners may have to keep apart. Blocks on different sides of the axis keep the distance of partners,
    half of it each.
    """
    right, left = [block for block, _ in drawn], [partner or block for block, partner in drawn]
    if all(one.bulk_net == other.bulk_net for one, other in zip(right, left, strict=True)):
        return clearances.gaps(right, inside=inside)
    faces = 4 * len(drawn)
    both = clearances.gaps([*right, *left], inside=inside)
    own = np.kron(np.eye(len(drawn), dtype=np.int64), np.ones((4, 4), dtype=np.int64))
    across = own * np.maximum(both[:faces, faces:], both[faces:, :faces])
    result: IntArray = np.maximum(np.maximum(both[:faces, :faces], both[faces:, faces:]), across)
    return result


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
        for index, (shape, partner) in enumerate(item.drawn):
            outside.append((_outside(shape), partner and _outside(partner)))
            classes.append(first[-1] + (0 if shape.ring else index))
    gaps = _gaps(clearances, outside)
    result = np.zeros((4 * number, 4 * number), dtype=np.int64)
    faces = np.add.outer(4 * np.array(classes), np.arange(4)).ravel()
    np.maximum.at(result, (faces[:, None], faces), gaps)
    for ringed in sorted(known.values()):  # blocks inside may be mirrored and upside down
        for one, other in ((0, 1), (2, 3)):
            a, b = 4 * ringed + one, 4 * ringed + other
            result[[a, b]] = np.maximum(result[a], result[b])
            result[:, [a, b]] = np.maximum(result[:, a], result[:, b])[:, None]
    return result, first


def _outside(block: Block) -> Block:
    return block.ring.outside if block.ring else block


def _item_rows(
    items: Sequence[Item], classes: Sequence[int], firsts: Sequence[int], options: PlacementOptions, grid: int
) -> list[list[int]]:
    """Return the table of items; ``firsts`` is where the rows of boxes of each begin."""
    keys: dict[str, int] = {}
    rows: list[list[int]] = []
    first = 0
    loose = sum(item.block.leaving for item in items)
    leaving = LEAVE_COST * _area(items) / grid**2 * MOST_LEAVING / max(loose, MOST_LEAVING)
    for number, item in enumerate(items):
        ring = item.block.ring
        key = keys.setdefault(ring.key, len(items) + len(keys)) if ring else number
        mirrors = item.kind != CENTRED
        leaves = round(leaving * item.block.leaving) if item.kind == CENTRED else 0
        row = [item.kind, key, first, len(item.shapes), classes[number], ring is not None, firsts[number]]
        rows.append([*row, mirrors, True, leaves, between_ports(item.block, item.partner, options)])
        first += len(item.shapes)
    return rows


def between_ports(block: Block, partner: Block | None, options: PlacementOptions) -> bool:
    """Return whether ports that mirror each other lead to a symmetric block, or one to each of two partners."""
    if partner is None and not block.symmetric:
        return False
    one, other = ({net for net, _, _ in each.pins} for each in (block, partner or block))
    return any(left in one and right in other for pair in options.mirrored for left, right in (pair, pair[::-1]))


def placement_of(problem: Problem, state: Any, blocks: Sequence[Block]) -> Placement:
    """Return the placement that a packed state describes."""
    n, grid = len(problem.items), problem.grid
    state = [int(value) for value in state]
    placed: dict[str, Placed] = {}
    rings: dict[tuple[int, int], list[str]] = {}
    records = [state[ITEMS * n + ITEM_SIZE * number :][:ITEM_SIZE] for number in range(n)]
    for item, record in zip(problem.items, records, strict=True):
        cluster = record[CLUSTER]
        within = state[CLUSTERS * n + CLUSTER_SIZE * cluster :][:CLUSTER_SIZE]
        variant, turned, shape = item.shapes[record[SHAPE]]
        left, bottom, right, top = shape.box.steps(grid)
        x = record[X] + within[C_X] - within[C_LEFT]
        y = record[Y] + within[C_Y] - within[C_BOTTOM]
        mirrored, upside_down = bool(record[TURN] & MIRRORED), bool(record[TURN] & UPSIDE_DOWN)
        copies = [(item.block, x, mirrored)]
        if item.partner is not None:
            copies.append((item.partner, -x - (right - left), not mirrored))
        for side, (block, edge, flipped) in enumerate(copies):
            dx = edge + right if flipped else edge - left
            dy = y + top if upside_down else y - bottom
            placed[block.name] = Placed(block.name, dx * grid, dy * grid, flipped, upside_down, variant, turned)
            if block.ring is not None:
                rings.setdefault((cluster, side if within[C_APART] else 0), []).append(block.name)
    by_name = {block.name: block for block in blocks}
    boxes = {name: place.box(by_name[name]) for name, place in placed.items()}
    low = min(box.bottom for box in boxes.values()) // grid * grid
    ordered = sorted(placed, key=lambda name: (boxes[name].bottom, boxes[name].left, name))
    placed = {name: replace(placed[name], y=placed[name].y - low) for name in ordered}
    boxes = {name: place.box(by_name[name]) for name, place in placed.items()}
    alone = {
        item.block.name
        for item, record in zip(problem.items, records, strict=True)
        if item.kind == FREE or record[OFF_AXIS]
    }
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


class WiredShape(NamedTuple):
    """One shape of an item: its size, and the box of its pins per number of a net. [grid steps]

    Attributes:
        width: Width.
        height: Height.
        pins: From the lower left corner.
        partner_pins: The same of the left partner, which is drawn mirrored; empty without one.
    """

    width: int
    height: int
    pins: Mapping[int, Box]
    partner_pins: Mapping[int, Box]


def wired_nets(blocks: Sequence[Block], options: PlacementOptions) -> tuple[str, ...]:
    """Return the nets that join two or more blocks, or blocks and a wanted side."""
    counts: dict[str, set[str]] = {}
    for block in blocks:
        for net, _, _ in block.pins:
            counts.setdefault(net, set()).add(block.name)
    return tuple(sorted(net for net, names in counts.items() if len(names) > 1 or net in options.sides))


def wired_shapes(
    drawn: Sequence[tuple[Block, Block | None]], nets: Mapping[str, int], options: PlacementOptions, grid: int
) -> list[WiredShape]:
    """Return the pins of an item in each of its shapes.

    Args:
        drawn: A block in each shape, with its left partner.
        nets: Number of each net; those of the groups that belong together follow.
        options: Has these groups.
        grid: A step of the manufacturing grid. [dbu]
    """
    found = []
    for shape, partner in drawn:
        box = shape.box.steps(grid)
        pins = [_pin_boxes(each, nets, options, grid) if each else {} for each in (shape, partner)]
        found.append(WiredShape(box.right - box.left, box.top - box.bottom, *pins))
    return found


def _pin_boxes(block: Block, nets: Mapping[str, int], options: PlacementOptions, grid: int) -> dict[int, Box]:
    """Return the box of the pins of a block per number of a net, from its lower left corner, in steps of the grid."""
    left, bottom, right, top = block.box.steps(grid)
    found: dict[int, Box] = {}
    entries = [(nets[net], x // grid - left, y // grid - bottom) for net, x, y in block.pins if net in nets]
    middle = (right - left) // 2, (top - bottom) // 2
    entries += [(len(nets) + i, *middle) for i, names in enumerate(options.near) if block.name in names]
    for net, x, y in entries:
        box = found.get(net, (x, y, x, y))
        found[net] = min(box[0], x), min(box[1], y), max(box[2], x), max(box[3], y)
    return found


def wire_tables(
    items: Sequence[Sequence[WiredShape]], weights: Sequence[int]
) -> tuple[list[int], tuple[IntArray, ...]]:
    """Return where the rows of boxes of each item begin, and the tables for ``packing.wire_length``.

    Args:
        items: The shapes of each item.
        weights: Weight of each net.

    Returns:
        The first box of each item, and a tuple of tables: where each item's nets begin, the nets of the items, the rows
        of boxes, where each net's ends begin, the ends (item, place in its row, whether it is the left partner's), and
        the weights.
    """
    firsts, wired, nets_of, boxes = [], [0], list[int](), list[int]()
    ends: list[list[int]] = [[] for _ in weights]
    for number, shapes in enumerate(items):
        sides = [sorted({net for shape in shapes for net in shape.pins})]
        sides.append(sorted({net for shape in shapes for net in shape.partner_pins}))
        for is_left, nets in enumerate(sides):
            for net in nets:
                ends[net] += [number, 4 * (len(nets_of) - wired[-1]), is_left]
                nets_of.append(net)
        wired.append(len(nets_of))
        firsts.append(len(boxes))
        for shape in shapes:
            for turn in range(ORIENTATIONS):
                mirrored, upside_down = turn & 1, turn >> 1
                boxes += (
                    v for net in sides[0] for v in _turned_boxes(shape, shape.pins.get(net), mirrored, upside_down)
                )
                for net in sides[1]:
                    left, bottom, right, top = _turned_boxes(
                        shape, shape.partner_pins.get(net), 1 - mirrored, upside_down
                    )
                    boxes += (left - shape.width, bottom, right - shape.width, top)
    starts = np.cumsum([0, *(len(each) for each in ends)])
    rows = [entry for each in ends for entry in each]
    return firsts, tuple(
        np.array(table, dtype=np.int64) for table in (wired, nets_of, boxes, starts, rows, list(weights))
    )


def _turned_boxes(shape: WiredShape, box: Box | None, mirrored: int, upside_down: int) -> Box:
    """Return a box in an orientation of its shape."""
    if box is None:
        return NOWHERE
    left, bottom, right, top = box
    if mirrored:
        left, right = shape.width - right, shape.width - left
    if upside_down:
        bottom, top = shape.height - top, shape.height - bottom
    return left, bottom, right, top
