"""The nets of blocks as numbers: where the pins of each item lie in each of its shapes and orientations.

A row of boxes holds, for one item in one shape and orientation, the box of its pins on each of its nets, from the lower
left corner of the item; of two partners, the boxes of the left one follow, from the mirror image of that point:

    left partner                axis                  item
    +-------+                    |                    +-------+
    |  [ ]  |                    |                    | [ ]   |
    +-------+ (-x, y)            |             (x, y) +-------+
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from layoutkit.place.packing import ORIENTATIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from layoutkit.place.blocks import Block, PlacementOptions

    IntArray = npt.NDArray[np.int64]
    Box = tuple[int, int, int, int]

NOWHERE: Box = (1 << 40, 1 << 40, -(1 << 40), -(1 << 40))
"""Box for a net on which a shape has no pin."""


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
                boxes += (v for net in sides[0] for v in _turned(shape, shape.pins.get(net), mirrored, upside_down))
                for net in sides[1]:
                    left, bottom, right, top = _turned(shape, shape.partner_pins.get(net), 1 - mirrored, upside_down)
                    boxes += (left - shape.width, bottom, right - shape.width, top)
    starts = np.cumsum([0, *(len(each) for each in ends)])
    rows = [entry for each in ends for entry in each]
    return firsts, tuple(
        np.array(table, dtype=np.int64) for table in (wired, nets_of, boxes, starts, rows, list(weights))
    )


def _turned(shape: WiredShape, box: Box | None, mirrored: int, upside_down: int) -> Box:
    """Return a box in an orientation of its shape."""
    if box is None:
        return NOWHERE
    left, bottom, right, top = box
    if mirrored:
        left, right = shape.width - right, shape.width - left
    if upside_down:
        bottom, top = shape.height - top, shape.height - bottom
    return left, bottom, right, top
