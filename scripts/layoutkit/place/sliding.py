"""Slide placed blocks into line where the constraints want aligned edges and the packed placement leaves a difference.

Packed blocks touch each other at the left and the bottom, so that edges of blocks of different size seldom meet. Where
there is room, a block then moves within its ring, or its whole ring moves; what is in the way moves along.

Two blocks keep the distance that the packed placement gave them, or get at least the largest one that any of their
sides need.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from layoutkit.place.blocks import Clearances, Placement
from layoutkit.place.problem import wire_length_of
from layoutkit.rectangle import Rectangle

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from layoutkit.place.blocks import Block, Placed, PlacementOptions
    from layoutkit.technology import Technology

    IntArray = npt.NDArray[np.int64]

_SIDES = {"left": (0, 0), "right": (2, 2), "center_x": (0, 2), "bottom": (1, 1), "top": (3, 3), "center_y": (1, 3)}
"""Edge of an alignment to the two coordinates of a rectangle whose mean it is."""
_IN_ORDER = {"left_to_right": (2, 0), "bottom_to_top": (3, 1)}


def slide_into_line(
    technology: Technology, placement: Placement, blocks: Sequence[Block], options: PlacementOptions
) -> Placement:
    """Return ``placement`` with the blocks of ``options.aligned`` in line where they can slide there.

    Edges then differ by less than a step of the grid, which is left where blocks differ by an odd number of steps. No
    other relation of ``options`` gets worse, and an outline that was kept is kept.

    Args:
        technology: Gives the grid and the clearances.
        placement: A legal placement.
        blocks: What was placed.
        options: How.
    """
    if not options.aligned:
        return placement
    state = _State.of(technology, placement, blocks, options)
    for number, (edge, names) in enumerate(options.aligned):
        if len(names) > 1 and all(name in state.boxes for name in names) and _apart(state.boxes, edge, names):
            tried = [_in_line(state, edge, names, target) for target in names]
            found = [each for each in tried if each is not None and _better(state, each, options, number)]
            if found:
                state = min(found, key=lambda each: _cost(state, each, options))
    return state.placement(placement, blocks)


def _apart(boxes: Mapping[str, Rectangle], edge: str, names: Iterable[str]) -> int:
    """Return twice the largest distance between the edges of blocks. [dbu]"""
    places = [_place(boxes[name], edge) for name in names]
    return max(places) - min(places)


def _place(box: Rectangle, edge: str) -> int:
    one, other = _SIDES[edge]
    return box[one] + box[other]


@dataclass(frozen=True)
class _State:
    """Where the blocks are.

    Attributes:
        boxes: Block to its box. [dbu]
        around: Block to what its box and its ring need beyond the box: left, bottom, right, top. [dbu]
        ring_of: Block to the number of its ring, or a number of its own.
        fixed: Blocks on the main axis, which do not move in x.
        partners: Block to its mirror image, with which it moves in y.
        numbers: Block to its row in the two tables.
        beside: Distance that is enough for two blocks of different rings, whichever sides face each other. [dbu]
        within: The same of two blocks of one ring. [dbu]
        grid: Step of the grid. [dbu]
    """

    boxes: Mapping[str, Rectangle]
    around: Mapping[str, tuple[int, int, int, int]]
    ring_of: Mapping[str, int]
    fixed: frozenset[str]
    partners: Mapping[str, str]
    numbers: Mapping[str, int]
    beside: IntArray
    within: IntArray
    grid: int

    @classmethod
    def of(
        cls, technology: Technology, placement: Placement, blocks: Sequence[Block], options: PlacementOptions
    ) -> _State:
        by_name = {block.name: block for block in blocks}
        shapes = {name: place.shape(by_name[name]) for name, place in placement.placed.items()}
        boxes = {name: place.rectangle(shapes[name].box) for name, place in placement.placed.items()}
        around = {name: _margins(place, shapes[name], boxes[name]) for name, place in placement.placed.items()}
        ring_of = {name: number for number, names in enumerate(placement.rings) for name in names}
        alone = (name for name in boxes if name not in ring_of)
        ring_of |= {name: len(placement.rings) + number for number, name in enumerate(alone)}
        outside = [shape.ring.outside if shape.ring else shape for shape in shapes.values()]
        rooms = [options.room.get(name, 0) for name in shapes]
        tables = [
            _largest(Clearances(technology).gaps(each, inside=inside), rooms, max(options.gap_x, options.gap_y))
            for each, inside in ((outside, False), (list(shapes.values()), True))
        ]
        main = placement.islands[0] if placement.islands and placement.islands[0].axis_x == 0 else None
        return cls(
            boxes,
            around,
            ring_of,
            frozenset(main.members) if main else frozenset(),
            {block.name: block.partner for block in blocks if block.partner},
            dict(zip(shapes, range(len(shapes)), strict=True)),
            tables[0],
            tables[1],
            technology.grid,
        )

    @property
    def area(self) -> int:
        """Area of the box around all rings and blocks. [dbu2]"""
        left, bottom, right, top = Rectangle.around([self.outside(ring) for ring in set(self.ring_of.values())])
        return (right - left) * (top - bottom)

    def size(self) -> tuple[int, int]:
        """Return width and height of the box around all blocks. [dbu]"""
        left, bottom, right, top = Rectangle.around(list(self.boxes.values()))
        return right - left, top - bottom

    def distance(self, before: _State) -> int:
        """Return how far all blocks together moved. [dbu]"""
        boxes = ((self.boxes[name], before.boxes[name]) for name in self.boxes)
        return sum(abs(new[0] - old[0]) + abs(new[1] - old[1]) for new, old in boxes)

    def moved(self, name: str, way: tuple[int, int], kept: frozenset[str]) -> _State | None:
        """Return the state with a block moved: within its ring, else with it; None where ``kept`` is in the way."""
        mates = [other for other, ring in self.ring_of.items() if ring == self.ring_of[name]]
        for moving in ({name}, set(mates)) if len(mates) > 1 else ({name},):
            found = self._pushed(moving, way, kept)
            if found is not None:
                return found
        return None

    def _pushed(self, moving: set[str], way: tuple[int, int], kept: frozenset[str]) -> _State | None:
        """Return the state with blocks moved, and with them what is in their way."""
        while True:
            if way[1]:
                moving |= {self.partners[name] for name in moving if name in self.partners}
            if moving & kept or (way[0] and moving & self.fixed):
                return None
            after = replace(
                self, boxes={name: _shifted(box, way) if name in moving else box for name, box in self.boxes.items()}
            )
            inside = {self.ring_of[name] for name in moving if not self._whole(self.ring_of[name], moving)}
            if any(self.outside(ring) != after.outside(ring) for ring in inside):
                return None
            hit = self._in_the_way(after, moving)
            if not hit:
                return after
            moving |= hit

    def _whole(self, ring: int, moving: set[str]) -> bool:
        return all(name in moving for name, number in self.ring_of.items() if number == ring)

    def _in_the_way(self, after: _State, moving: set[str]) -> set[str]:
        """Return the blocks that are too near to those that moved; of another ring all blocks."""
        hit: set[str] = set()
        for name in sorted(moving):
            ring = self.ring_of[name]
            for other, number in self.ring_of.items():
                if other in moving or other in hit:
                    continue
                if number == ring:
                    before, now = (self.boxes[name], self.boxes[other]), (after.boxes[name], after.boxes[other])
                    hit |= set() if _legal(before, now, self._safe(name, other)) else {other}
                else:
                    before = self.outside(ring), self.outside(number)
                    now = after.outside(ring), after.outside(number)
                    mates = {each for each, of in self.ring_of.items() if of == number}
                    safe = max(self._safe(one, each) for one in self._mates(ring) for each in mates)
                    hit |= set() if _legal(before, now, safe) else mates
        return hit

    def _mates(self, ring: int) -> list[str]:
        return [name for name, number in self.ring_of.items() if number == ring]

    def _safe(self, name: str, other: str) -> int:
        """Return the distance that is enough for two blocks. [dbu]"""
        table = self.within if self.ring_of[name] == self.ring_of[other] else self.beside
        return int(table[self.numbers[name], self.numbers[other]])

    def outside(self, ring: int) -> Rectangle:
        """Return the box of a ring with its blocks."""
        found = []
        for name, number in self.ring_of.items():
            if number == ring:
                box, (left, bottom, right, top) = self.boxes[name], self.around[name]
                found.append(Rectangle(box.left - left, box.bottom - bottom, box.right + right, box.top + top))
        return Rectangle.around(found)

    def placement(self, before: Placement, blocks: Sequence[Block]) -> Placement:
        """Return the placement with the blocks where they are."""
        by_name = {block.name: block for block in blocks}
        old = {name: place.box(by_name[name]) for name, place in before.placed.items()}
        low = min(box.bottom for box in self.boxes.values()) // self.grid * self.grid
        ways = {name: (box.left - old[name].left, box.bottom - old[name].bottom) for name, box in self.boxes.items()}
        placed = {
            name: replace(place, x=place.x + ways[name][0], y=place.y + ways[name][1] - low)
            for name, place in before.placed.items()
        }
        boxes = {name: place.box(by_name[name]) for name, place in placed.items()}
        ordered = sorted(placed, key=lambda name: (boxes[name].bottom, boxes[name].left, name))
        placed = {name: placed[name] for name in ordered}
        islands = tuple(replace(island, axis_x=island.axis_x + ways[island.members[0]][0]) for island in before.islands)
        whole = Rectangle.around(list(boxes.values()))
        return replace(before, placed=placed, islands=islands, box=whole, wire_length=wire_length_of(by_name, placed))


def _in_line(state: _State, edge: str, names: Sequence[str], target: str) -> _State | None:
    """Return the state with all ``names`` in line with one of them; None where that is not possible."""
    done = {target}
    for name in names:
        if name in done:
            continue
        twice = _place(state.boxes[target], edge) - _place(state.boxes[name], edge)
        step = (abs(twice) // (2 * state.grid) * state.grid) * (1 if twice > 0 else -1)
        if step:
            way = (step, 0) if edge in {"left", "right", "center_x"} else (0, step)
            found = state.moved(name, way, frozenset(done))
            if found is None:
                return None
            state = found
        done.add(name)
    return state if _apart(state.boxes, edge, names) < 2 * state.grid else None


def _better(before: _State, after: _State, options: PlacementOptions, number: int) -> bool:
    """Return whether one alignment is kept now, and no other relation less than before."""
    old, new = _lacks(before.boxes, options), _lacks(after.boxes, options)
    rest = all(b <= a for index, (a, b) in enumerate(zip(old, new, strict=True)) if index != number)
    fits = options.outline is None or all(
        now <= max(was, most) for now, was, most in zip(after.size(), before.size(), options.outline, strict=True)
    )
    return rest and fits and new[number] < old[number]


def _cost(before: _State, after: _State, options: PlacementOptions) -> tuple[int, int, int]:
    """Return how far blocks that belong together are from the nearest other one, the area, and the way moved. [dbu]"""
    boxes, apart = after.boxes, 0
    for names in options.near:
        known = [name for name in names if name in boxes]
        for name in known if len(known) > 1 else ():
            apart += max(0, min(max(_gaps(boxes[name], boxes[other])) for other in known if other != name))
    return apart, after.area, after.distance(before)


def _lacks(boxes: Mapping[str, Rectangle], options: PlacementOptions) -> list[int]:
    """Return by how much each relation is not kept, alignments first. [dbu]"""
    found = [
        _apart(boxes, edge, [name for name in names if name in boxes] or list(boxes)[:1])
        for edge, names in options.aligned
    ]
    for direction, names in options.ordered:
        high, low = _IN_ORDER[direction]
        known = [boxes[name] for name in names if name in boxes]
        found += [max(0, one[high] - other[low]) for one, other in pairwise(known)]
    for names in options.abutting:
        known = [boxes[name] for name in names if name in boxes]
        for one, other in pairwise(known):
            found += [abs(other.left - one.right), max(0, one.bottom - other.top), max(0, other.bottom - one.top)]
    return found


def _margins(place: Placed, shape: Block, box: Rectangle) -> tuple[int, int, int, int]:
    """Return what the ring of a block needs beyond its box: left, bottom, right, top. [dbu]"""
    if shape.ring is None:
        return 0, 0, 0, 0
    whole = place.rectangle(shape.ring.outside.box)
    return box.left - whole.left, box.bottom - whole.bottom, whole.right - box.right, whole.top - box.top


def _largest(gaps: IntArray, rooms: Sequence[int], between: int) -> IntArray:
    """Return the largest gap that any two sides of two blocks need, with the room for wires. [dbu]"""
    count = len(rooms)
    largest: IntArray = gaps.reshape(count, 4, count, 4).max(axis=(1, 3)) + np.add.outer(rooms, rooms) + between
    return largest


def _legal(before: tuple[Rectangle, Rectangle], after: tuple[Rectangle, Rectangle], safe: int) -> bool:
    """Return whether two rectangles are far enough apart, judged by how they were apart before."""
    was, now = _gaps(*before), _gaps(*after)
    if max(now) >= safe:
        return True
    kept = [new >= min(old, safe) for new, old in zip(now, was, strict=True)]
    if was[0] >= 0 and was[1] >= 0:  # which of the two made them legal is not known
        return all(kept)
    return kept[0] if was[0] >= 0 else kept[1]


def _gaps(one: Rectangle, other: Rectangle) -> tuple[int, int]:
    """Return how far two rectangles are apart in x and in y; negative where they overlap. [dbu]"""
    return max(one.left, other.left) - min(one.right, other.right), max(one.bottom, other.bottom) - min(
        one.top, other.top
    )


def _shifted(box: Rectangle, way: tuple[int, int]) -> Rectangle:
    return Rectangle(box.left + way[0], box.bottom + way[1], box.right + way[0], box.top + way[1])
