"""Place blocks in rows about one vertical axis, exactly symmetric where the constraints want it.

Every row holds blocks of one kind. Its middle is on the axis: a symmetric block is centred there,
partners are mirrored at equal distance on both sides, and the other blocks are outside of these.

              axis
    pmos        |
    +--------[ load ]--------+     level 1 (next to the upper supply)
    [ a' ]  [ pair  ]  [ a ]       partners a, a'
    +-------[ tail ]---[ free ]    level 1 (next to ground)
    nmos        |

The order of rows and the sides of free blocks are chosen by seeded simulated annealing over the half-perimeter wire
length; positions are then exact, never nudged.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from layoutkit.errors import GeometryError
from layoutkit.place.blocks import Block, Island, Placed, Placement, PlacementOptions, Rectangle
from layoutkit.place.clearance import Clearances

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from layoutkit.technology import Technology


NEAR_WEIGHT = 4
"""How much a proximity group counts, compared with a net of the same extent."""


@dataclass
class _Row:
    """One row while it is built: the block on the axis, the pairs around it, and the free blocks outside."""

    kind: str
    level: int
    centre: Block | None = None
    pairs: list[tuple[Block, Block]] = field(default_factory=list)
    free: list[Block] = field(default_factory=list)

    def width(self) -> int:
        blocks = [*self.free, *(block for pair in self.pairs for block in pair)]
        return sum(b.width for b in blocks) + (self.centre.width if self.centre else 0)

    def copy(self) -> _Row:
        return _Row(self.kind, self.level, self.centre, list(self.pairs), list(self.free))


def place_blocks(technology: Technology, blocks: Sequence[Block], options: PlacementOptions | None = None) -> Placement:
    """Return a legal placement of ``blocks``.

    Args:
        technology: Gives the clearances and the grid.
        blocks: What to place; names are unique, partners name each other.
        options: Room for wires, shape and seed.

    Raises:
        GeometryError: If ``blocks`` is empty, two have one name, or a partner is missing.
    """
    _check(blocks)
    options = options or PlacementOptions()
    placer = _Placer(technology, options, blocks)
    rows = _assign_rows(blocks, 1.0)
    best = _anneal(placer, rows, options)
    return placer.place(best)


def _check(blocks: Sequence[Block]) -> None:
    names = [block.name for block in blocks]
    if not names:
        raise GeometryError("there is nothing to place")
    if len(set(names)) != len(names):
        raise GeometryError(f"block names must be unique, got {names}")
    by_name = {block.name: block for block in blocks}
    for block in blocks:
        partner = by_name.get(block.partner) if block.partner else None
        if block.partner and (partner is None or partner.partner != block.name or partner.box != block.box):
            raise GeometryError(f"block {block.name} names {block.partner} as partner, which is not its equal")


def _assign_rows(blocks: Sequence[Block], aspect_ratio: float) -> list[_Row]:
    """Return rows in bottom-up order: nmos from the rail up, then pmos down to theirs."""
    area = sum((block.width) * (block.height) for block in blocks)
    wide = math.sqrt(area * aspect_ratio * 1.3)
    rows: list[_Row] = []
    for kind in sorted({block.kind for block in blocks}):
        levels = sorted({block.level for block in blocks if block.kind == kind}, reverse=kind == "pmos")
        for level in levels:
            rows.extend(_rows_of_level([b for b in blocks if (b.kind, b.level) == (kind, level)], wide))
    return rows


def _rows_of_level(blocks: list[Block], wide: float) -> list[_Row]:
    kind, level = blocks[0].kind, blocks[0].level
    by_name = {block.name: block for block in blocks}
    order = {name: number for number, name in enumerate(by_name)}
    rows = [_Row(kind, level, centre=block) for block in blocks if block.symmetric]
    rows = rows or [_Row(kind, level)]
    for block in blocks:
        if block.partner and order[block.name] < order.get(block.partner, -1):
            narrowest = min(rows, key=_Row.width)
            if narrowest.width() + 2 * block.width > wide and narrowest.width():
                rows.append(narrowest := _Row(kind, level))
            narrowest.pairs.append((block, by_name[block.partner]))
    for block in sorted(blocks, key=lambda b: (-b.width, b.name)):
        if block.symmetric or (block.partner and block.partner in by_name):
            continue
        narrowest = min(rows, key=_Row.width)
        if narrowest.width() + block.width > wide and narrowest.width():
            rows.append(narrowest := _Row(kind, level))
        narrowest.free.append(block)
    return rows


@dataclass
class _Ring:
    """Blocks without taps inside one ring, which grows upwards until a row does not fit."""

    blocks: list[Block]
    low: int
    closed: bool = False

    def takes(self, blocks: Sequence[Block], y: int) -> bool:
        """Return whether a row of ``blocks`` whose boxes start at ``y`` may be inside, too."""
        room = self.blocks[0].ring
        if self.closed or room is None or not _share_ring(self.blocks[0], blocks[0]):
            return False
        top = max(y + block.ring.inner.top - block.box.bottom for block in blocks if block.ring)
        return top - self.low <= room.reach

    def add(self, blocks: Sequence[Block], y: int) -> None:
        self.blocks += blocks
        self.low = min(self.low, _ring_low(blocks, y))


def _ring_low(blocks: Sequence[Block], y: int) -> int:
    """Return the inner edge below blocks whose boxes start at ``y``. [dbu]"""
    return min(y + block.ring.inner.bottom - block.box.bottom for block in blocks if block.ring)


def _share_ring(first: Block, second: Block) -> bool:
    return first.ring is not None and second.ring is not None and first.ring.key == second.ring.key


def _rings_of_row(blocks: Sequence[Block], y: int) -> list[_Ring]:
    """Return a ring for each run of neighbours that share one."""
    rings: list[_Ring] = []
    for before, block in zip((None, *blocks), blocks, strict=False):
        if block.ring is None:
            continue
        if before is not None and _share_ring(before, block):
            rings[-1].blocks.append(block)
        else:
            rings.append(_Ring([block], 0))
    for ring in rings:
        ring.low = _ring_low(ring.blocks, y)
    return rings


class _Placer:
    """Computes exact positions from rows, and their wire length."""

    def __init__(self, technology: Technology, options: PlacementOptions, blocks: Sequence[Block]) -> None:
        self.blocks = {block.name: block for block in blocks}
        self.clearances = Clearances(technology)
        self.grid = technology.grid
        self.options = options
        self._gaps: dict[tuple[str, str, str, bool], int] = {}

    def gap(self, first: Block, second: Block, axis: str, *, inside: bool) -> int:
        key = (first.name, second.name, axis, inside)
        if key not in self._gaps:
            between = self.clearances.inside if inside else self.clearances.between
            self._gaps[key] = between(first, second, axis)
        own = max(self.options.room.get(block.name, 0) for block in (first, second))
        return self._gaps[key] + own + (self.options.gap_x if axis == "x" else self.options.gap_y)

    def beside(self, first: Block, second: Block) -> int:
        """Return the gap between neighbours in a row."""
        return self.gap(first, second, "x", inside=_share_ring(first, second))

    def place(self, rows: Sequence[_Row]) -> Placement:
        placed: dict[str, Placed] = {}
        rings: list[_Ring] = []
        y = 0
        below: list[Block] = []
        for row in rows:
            line = self._line(row)
            members = [block for block, _, _ in line]
            room = members[0].ring if all(_share_ring(members[0], block) for block in members) else None
            inside = False
            if below:
                above = y + max(self.gap(low, high, "y", inside=True) for low in below for high in members)
                inside = room is not None and bool(rings) and rings[-1].takes(members, above)
                if not inside:
                    above = y + max(self.gap(low, high, "y", inside=False) for low in below for high in members)
                y = above
            for block, x, mirrored in line:
                placed[block.name] = Placed(block.name, x, y - block.box.bottom, mirrored)
            if inside:
                rings[-1].add(members, y)
            else:
                rings += _rings_of_row(members, y)
                if room is None and rings:
                    rings[-1].closed = True
            y += max(block.height for block in members)
            below = members
        boxes = [place.box(self.blocks[name]) for name, place in placed.items()]
        box = Rectangle(
            min(b.left for b in boxes),
            min(b.bottom for b in boxes),
            max(b.right for b in boxes),
            max(b.top for b in boxes),
        )
        shared = tuple(tuple(block.name for block in ring.blocks) for ring in rings)
        centred = tuple(b.name for b in self.blocks.values() if b.symmetric or b.partner)
        islands = (Island(0, centred),) if centred else ()
        return Placement(placed, islands, box, _wire_length(self.blocks, placed), shared)

    def _line(self, row: _Row) -> list[tuple[Block, int, bool]]:
        """Return (block, x of its origin, mirrored) from left to right, symmetric about x = 0."""
        right: list[tuple[Block, int, bool]] = []
        left: list[tuple[Block, int, bool]] = []
        free = list(row.free)
        centre = row.centre
        if centre is None and not row.pairs and len(free) % 2:
            centre = free.pop(0)
        edge_left = edge_right = 0
        last_left = last_right = centre
        middle: list[tuple[Block, int, bool]] = []
        if centre is not None:
            middle = [(centre, self._up(-(centre.box.left + centre.box.right) / 2), False)]
            edge_right = middle[0][1] + centre.box.right
            edge_left = middle[0][1] + centre.box.left
        for first, second in row.pairs:
            half = self._up(self.beside(first, second) / 2)
            offset = half if last_right is None else edge_right + self.beside(last_right, second)
            right.append((second, offset - second.box.left, False))
            left.append((first, -(offset - second.box.left), True))
            edge_right = offset + second.width
            edge_left = -edge_right
            last_left, last_right = first, second
        across = self._up(self.beside(free[0], free[1]) / 2) if len(free) > 1 else 0  # the first two meet at the axis
        for index, block in enumerate(free):
            if index % 2 == 0:
                offset = across if last_right is None else edge_right + self.beside(last_right, block)
                right.append((block, offset - block.box.left, False))
                edge_right, last_right = offset + block.width, block
            else:
                offset = across if last_left is None else self.beside(last_left, block) - edge_left
                left.append((block, -offset + block.box.left, True))
                edge_left, last_left = -(offset + block.width), block
        return [*reversed(left), *middle, *right]

    def _up(self, length: float) -> int:
        return math.ceil(length / self.grid) * self.grid


def _wire_length(blocks: Mapping[str, Block], placed: Mapping[str, Placed]) -> int:
    """Return the half-perimeter wire length over all nets. [dbu]."""
    extents: dict[str, list[int]] = {}
    for name, place in placed.items():
        for net, x, y in place.shape(blocks[name]).pins:
            px, py = place.point(x, y)
            extent = extents.setdefault(net, [px, py, px, py])
            extent[0], extent[1] = min(extent[0], px), min(extent[1], py)
            extent[2], extent[3] = max(extent[2], px), max(extent[3], py)
    return sum(e[2] - e[0] + e[3] - e[1] for e in extents.values())


def _anneal(placer: _Placer, rows: list[_Row], options: PlacementOptions) -> list[_Row]:
    """Return the best order found: rows of one kind change places, free blocks change sides and rows."""
    generator = random.Random(options.seed)  # noqa: S311 - a search, not a secret
    current, best = rows, rows
    cost = best_cost = _cost(placer, rows)
    moves = (
        (600 if options.moves is None else options.moves)
        if sum(len(row.free) + len(row.pairs) for row in rows) + len(rows) > 2
        else 0
    )
    for step in range(moves):
        candidate = _changed(current, generator)
        if candidate is None:
            break
        new_cost = _cost(placer, candidate)
        temperature = 0.05 * best_cost * (1 - step / moves) + 1e-9
        if new_cost <= cost or generator.random() < math.exp((cost - new_cost) / temperature):
            current, cost = candidate, new_cost
            if cost < best_cost:
                best, best_cost = current, cost
    return best


def _cost(placer: _Placer, rows: Sequence[_Row]) -> float:
    placement = placer.place(rows)
    box = placement.box
    width, height = box.right - box.left, box.top - box.bottom
    pull = sum(_half_perimeter(placer, placement, names) for names in placer.options.near)
    return placement.wire_length + NEAR_WEIGHT * pull + 2.0 * max(width, height) + width + height


def _half_perimeter(placer: _Placer, placement: Placement, names: Sequence[str]) -> int:
    """Return the half-perimeter around the centres of some blocks. [dbu]"""
    boxes = [placement.placed[name].box(placer.blocks[name]) for name in names]
    xs, ys = [(box.left + box.right) // 2 for box in boxes], [(box.bottom + box.top) // 2 for box in boxes]
    return max(xs) - min(xs) + max(ys) - min(ys)


def _changed(rows: Sequence[_Row], generator: random.Random) -> list[_Row] | None:
    """Return the rows with one random change, None where nothing can change."""
    result = [row.copy() for row in rows]
    changes = [
        change for change in (_swap_rows, _swap_free, _swap_pairs, _move_free) if change(result, generator, dry=True)
    ]
    if not changes:
        return None
    generator.choice(changes)(result, generator, dry=False)
    return result


def _neighbours(rows: Sequence[_Row]) -> list[int]:
    return [i for i in range(len(rows) - 1) if (rows[i].kind, rows[i].level) == (rows[i + 1].kind, rows[i + 1].level)]


def _swap_rows(rows: list[_Row], generator: random.Random, *, dry: bool) -> bool:
    places = _neighbours(rows)
    if places and not dry:
        i = generator.choice(places)
        rows[i], rows[i + 1] = rows[i + 1], rows[i]
    return bool(places)


def _swap_free(rows: list[_Row], generator: random.Random, *, dry: bool) -> bool:
    return _swap_two([row.free for row in rows], generator, dry=dry)


def _swap_pairs(rows: list[_Row], generator: random.Random, *, dry: bool) -> bool:
    return _swap_two([row.pairs for row in rows], generator, dry=dry)


def _swap_two(lists: list[list[Any]], generator: random.Random, *, dry: bool) -> bool:
    """Exchange two entries of one of ``lists``; return whether one has two."""
    able = [entries for entries in lists if len(entries) > 1]
    if able and not dry:
        entries = generator.choice(able)
        i, j = generator.sample(range(len(entries)), 2)
        entries[i], entries[j] = entries[j], entries[i]
    return bool(able)


def _move_free(rows: list[_Row], generator: random.Random, *, dry: bool) -> bool:
    able = [
        (source, target)
        for source in rows
        for target in rows
        if source is not target and source.free and source.kind == target.kind and _stays(source)
    ]
    if able and not dry:
        source, target = generator.choice(able)
        target.free.append(source.free.pop(generator.randrange(len(source.free))))
    return bool(able)


def _stays(row: _Row) -> bool:
    """Return whether the row still holds something after one free block has left."""
    return bool(row.centre or row.pairs or len(row.free) > 1)
