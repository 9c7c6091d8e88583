"""The placement that a packed state of the search describes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from layoutkit.place.blocks import Island, Placed, Placement, Rectangle
from layoutkit.place.packing import (
    C_APART,
    C_BOTTOM,
    C_LEFT,
    C_X,
    C_Y,
    CLUSTER,
    CLUSTER_SIZE,
    CLUSTERS,
    FREE,
    I_FRAMES,
    I_SIZE,
    ITEM_SIZE,
    ITEMS,
    MIRRORED,
    OFF_AXIS,
    SHAPE,
    TURN,
    UPSIDE_DOWN,
    X,
    Y,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from layoutkit.place.blocks import Block
    from layoutkit.place.problem import Problem


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
