"""Put blocks back where an earlier placement had them, when some of them have another size or shape now.

A changed block keeps the place of one of its edges or of its middle. Where it no longer fits, the blocks on one side
of it move away by as much as it has grown::

        [ c ]                [ c ]      moved up by the growth of b
      [a] [ b ]      ->    [a] [  ]
        [ d ]                [ b  ]     a and d stay
                             [ d ]

Every two blocks that were one above the other, or side by side, remain so, which keeps the distances between them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import combinations, product
from typing import TYPE_CHECKING, NamedTuple

from layoutkit.place.blocks import SIDES, Clearances, Island, Placed, Placement
from layoutkit.place.problem import wire_length_of
from layoutkit.rectangle import Rectangle

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from layoutkit.place.blocks import Block, IntArray, RingRoom
    from layoutkit.technology import Technology

FACING = (("right", "left"), ("left", "right"), ("top", "bottom"), ("bottom", "top"))
"""Sides of two blocks that face each other where the first lies left of, right of, below or above the second."""

AWAY = tuple(sides for count in range(3) for sides in combinations(SIDES, count))
"""Sides of a changed block at which others make room: none, one or two."""
UNLIMITED = 1 << 40


@dataclass(frozen=True)
class EarlierPlaces:
    """A placement, and what was placed.

    Attributes:
        placement: The places.
        boxes: Bounding box of each block in its own coordinates, in the shape that was chosen.
        devices: What each block holds.
        gap: Extra room between neighbours, for wires. [dbu]
        overlaid: Blocks that lie over others, each with these.
        resized: What has another size now, of what the blocks hold.
    """

    placement: Placement
    boxes: Mapping[str, Rectangle]
    devices: Mapping[str, tuple[str, ...]]
    gap: int
    overlaid: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    resized: frozenset[str] = frozenset()

    def rectangle(self, name: str) -> Rectangle:
        """Return where a block lay."""
        return self.placement.placed[name].rectangle(self.boxes[name])


class _Change(NamedTuple):
    """Blocks of the earlier placement, and those that hold the same devices now."""

    before: tuple[str, ...]
    now: tuple[str, ...]


class _Candidate(NamedTuple):
    """Places of all blocks so far, and the names of unchanged blocks that had to move."""

    places: dict[str, Placed]
    moved: frozenset[str]


def kept_placement(
    technology: Technology, blocks: Sequence[Block], devices: Mapping[str, tuple[str, ...]], earlier: EarlierPlaces
) -> Placement | None:
    """Return a placement of ``blocks`` in which as few as possible leave their earlier places; None if there is none.

    Args:
        technology: Gives the clearances and the grid.
        blocks: What to place.
        devices: What each of them holds.
        earlier: Where they were.
    """
    return _Keeping(technology, blocks, devices, earlier).placement(_changes(blocks, devices, earlier))


def _changes(blocks: Sequence[Block], devices: Mapping[str, tuple[str, ...]], earlier: EarlierPlaces) -> list[_Change]:
    """Return which earlier blocks became which; blocks that mirror each other change together."""
    groups: list[set[tuple[str, str]]] = [
        {("device", each) for each in held} | {("before", name)} for name, held in earlier.devices.items()
    ]
    for block in blocks:
        partner = {("now", block.partner)} if block.partner else set()
        groups.append({("device", each) for each in devices[block.name]} | {("now", block.name)} | partner)
    joined: list[set[tuple[str, str]]] = []
    for group in groups:
        same = [other for other in joined if other & group]
        joined = [other for other in joined if not other & group]
        joined.append(group.union(*same))
    found = [
        _Change(*(tuple(sorted(name for kind, name in group if kind == wanted)) for wanted in ("before", "now")))
        for group in joined
    ]
    return sorted(found)


class _Keeping:
    """The search for places of one set of blocks."""

    def __init__(
        self,
        technology: Technology,
        blocks: Sequence[Block],
        devices: Mapping[str, tuple[str, ...]],
        earlier: EarlierPlaces,
    ) -> None:
        self.grid = technology.grid
        self.devices = devices
        self.clearances = Clearances(technology)
        self.blocks = {block.name: block for block in blocks}
        self.earlier = earlier

    def placement(self, changes: Sequence[_Change]) -> Placement | None:
        """Return the placement, None where there is none."""
        same = [change for change in changes if self._is_same(change)]
        places = {name: self.earlier.placement.placed[name] for change in same for name in change.now}
        unchanged, moved = frozenset(places), frozenset[str]()
        for change in changes:
            if change in same:
                continue
            fitting = list(self._candidates(places, change, unchanged))
            if not fitting:
                return None
            best = min(fitting, key=lambda each: (len((moved | each.moved) & unchanged), self._area(each.places)))
            places, moved = best.places, moved | best.moved
        return self._finished(places)

    def _is_same(self, change: _Change) -> bool:
        return change.before == change.now and all(
            self.earlier.placement.placed[name].variant < len(self.blocks[name].shapes)
            and self.earlier.placement.placed[name].shape(self.blocks[name]).box == self.earlier.boxes[name]
            for name in change.now
        )

    def _rectangle(self, place: Placed) -> Rectangle:
        return place.box(self.blocks[place.name])

    def _candidates(
        self, places: Mapping[str, Placed], change: _Change, unchanged: frozenset[str]
    ) -> Iterator[_Candidate]:
        """Yield legal places of a changed block, or of several, alone and with what must make room for them."""
        if not change.before or not change.now:
            return
        old = _around([self.earlier.rectangle(name) for name in change.before])
        for together in self._arranged(change):
            size = _around([self._rectangle(place) for place in together])
            for x, y in product(self._starts(change, old, size, 0), self._starts(change, old, size, 1)):
                new = Rectangle(x, y, x + size.right - size.left, y + size.top - size.bottom)
                moved = {p.name: replace(p, x=p.x + x - size.left, y=p.y + y - size.bottom) for p in together}
                grown = (old.left - new.left, new.right - old.right, old.bottom - new.bottom, new.top - old.top)
                for sides in AWAY:
                    steps = [max(0, self._up(each)) * (side in sides) for side, each in zip(SIDES, grown, strict=True)]
                    found = self._made_room(places, moved, old, steps, unchanged)
                    if isinstance(found, int) and found < UNLIMITED:  # the growth is not enough
                        steps = [step + self._up(found) * (s in sides) for s, step in zip(SIDES, steps, strict=True)]
                        found = self._made_room(places, moved, old, steps, unchanged)
                    if isinstance(found, _Candidate):
                        yield found

    def _made_room(
        self,
        places: Mapping[str, Placed],
        changed: Mapping[str, Placed],
        old: Rectangle,
        steps: Sequence[int],
        unchanged: frozenset[str],
    ) -> _Candidate | int:
        """Return all places after others moved away by ``steps``; by how much blocks are too close if they are."""
        shifted = {name: self._shifted(place, old, steps) for name, place in places.items()}
        every = {**shifted, **changed}
        lack = UNLIMITED if self._islands(every) is None else self._lack(every, unchanged)
        if lack > 0:
            return lack
        return _Candidate(every, frozenset(name for name, place in shifted.items() if place != places[name]))

    def _up(self, length: int) -> int:
        """Return a length, rounded up to the grid. [dbu]"""
        return -(-length // self.grid) * self.grid

    def _arranged(self, change: _Change) -> Iterator[list[Placed]]:
        """Yield the changed blocks in each of their shapes, anywhere, in the arrangement of the earlier ones."""
        first = self.blocks[change.now[0]]
        for variant in range(len(first.shapes)):
            places = []
            if change.before == change.now and len(change.now) == 1:
                places = [replace(self.earlier.placement.placed[first.name], variant=variant)]
            elif change.before == change.now and self._are_partners(change.now):
                places = self._mirrored(change.now, variant)
            elif all(not block.partner for block in map(self.blocks.__getitem__, change.now)):
                places = self._in_row(change.now, variant)
            if places:
                yield places

    def _are_partners(self, names: Sequence[str]) -> bool:
        return len(names) == len(SIDES) // 2 and self.blocks[names[0]].partner == names[1]

    def _mirrored(self, names: Sequence[str], variant: int) -> list[Placed]:
        """Return two partners as far apart as they were."""
        one, other = (self.earlier.placement.placed[name] for name in names)
        left, right = sorted((one, other), key=lambda place: self.earlier.rectangle(place.name).left)
        apart = self.earlier.rectangle(right.name).left - self.earlier.rectangle(left.name).right
        left, right = replace(left, variant=variant), replace(right, variant=variant)
        return [left, replace(right, x=right.x + self._rectangle(left).right + apart - self._rectangle(right).left)]

    def _in_row(self, names: Sequence[str], variant: int) -> list[Placed]:
        """Return blocks that took the place of others side by side, from left to right."""
        row: list[Placed] = []
        for name in names:
            place = Placed(name, 0, 0, variant=min(variant, len(self.blocks[name].shapes) - 1))
            block = place.shape(self.blocks[name])
            edge = 0
            if row:
                last = row[-1].shape(self.blocks[row[-1].name])
                edge = self._rectangle(row[-1]).right + self.clearances.beside(last, block) + self.earlier.gap
            row.append(replace(place, x=edge - block.box.left, y=-block.box.bottom))
        return row

    def _starts(self, change: _Change, old: Rectangle, new: Rectangle, axis: int) -> list[int]:
        """Return lower ends at which the new blocks have an edge or the middle of the old ones, on the grid."""
        low, high = old[axis], old[axis + 2]
        length = new[axis + 2] - new[axis]
        middle = (low + high - length) // 2
        on_grid = middle % self.grid == 0 and (low + high - length) % 2 == 0
        centred = axis == 0 and any(self.blocks[name].symmetric or self.blocks[name].partner for name in change.now)
        if centred:
            return [middle] if on_grid else []
        return list(dict.fromkeys([low, high - length, middle // self.grid * self.grid]))

    def _shifted(self, place: Placed, old: Rectangle, steps: Sequence[int]) -> Placed:
        """Return a place after the blocks at each side of ``old`` have moved away from it by ``steps``."""
        box = self._rectangle(place)
        left, right, down, up = steps
        dx = (right if box.left >= old.right else 0) - (left if box.right <= old.left else 0)
        dy = (up if box.bottom >= old.top else 0) - (down if box.top <= old.bottom else 0)
        return replace(place, x=place.x + dx, y=place.y + dy)

    def _islands(self, places: Mapping[str, Placed]) -> tuple[Island, ...] | None:
        """Return the islands with their axes; None where blocks of one island have several."""
        found = []
        for island in self.earlier.placement.islands:
            names = [name for name in island.members if name in places]
            axes = set()
            for name in names:
                block, box = self.blocks[name], self._rectangle(places[name])
                other = box if not block.partner else self._rectangle(places[block.partner])
                axes.add(min(box.left, other.left) + max(box.right, other.right))
                if other.bottom != box.bottom or places[block.partner or name].variant != places[name].variant:
                    return None
            if len(axes) > 1 or any(axis % 2 for axis in axes):
                return None
            if names:
                found.append(Island(axes.pop() // 2, tuple(names)))
        return tuple(found)

    def _clusters(self, names: Iterable[str]) -> list[tuple[str, ...]]:
        """Return the blocks inside each ring; a block with taps of its own is alone."""
        rings = enumerate(self.earlier.placement.rings)
        owners = {device: n for n, ring in rings for name in ring for device in self.earlier.devices[name]}
        found: dict[tuple[int, str], list[str]] = {}
        for number, name in enumerate(names):
            ring = self.blocks[name].ring
            inside = next((owners[device] for device in self.devices[name] if device in owners), -1 - number)
            found.setdefault((inside, ring.key) if ring else (-1 - number, ""), []).append(name)
        return [tuple(members) for members in found.values()]

    def _lack(self, places: Mapping[str, Placed], unchanged: frozenset[str]) -> int:
        """Return by how much two blocks are too close; 0 if all keep their distances. [dbu]

        Unchanged blocks that share no ring with a changed one keep their distances to each other.
        """
        names = list(places)
        clusters = self._clusters(names)
        changed = [not unchanged.issuperset(cluster) for cluster in clusters]
        blocks = [_as_placed(places[name].shape(self.blocks[name]), places[name]) for name in names]
        number = {name: index for index, name in enumerate(names)}
        outside = [block.ring.outside if block.ring else block for block in blocks]
        members = [[number[name] for name in cluster] for cluster in clusters]
        if not all(map(_is_in_reach, ([block for i in inside if (block := blocks[i].ring)] for inside in members))):
            return UNLIMITED
        inner, outer = self.clearances.gaps(blocks, inside=True), self.clearances.gaps(outside)
        lacks = [
            self._too_close((blocks[one].box, [one]), (blocks[other].box, [other]), inner)
            for inside in members
            for one, other in combinations(inside, 2)
            if not unchanged.issuperset((names[one], names[other]))
        ]
        boxes = [_around([outside[index].box for index in inside]) for inside in members]
        lacks += [
            self._too_close((boxes[one], members[one]), (boxes[other], members[other]), outer)
            for one, other in combinations(range(len(clusters)), 2)
            if changed[one] or changed[other]
        ]
        return max(lacks, default=0)

    def _too_close(
        self, one: tuple[Rectangle, Sequence[int]], other: tuple[Rectangle, Sequence[int]], gaps: IntArray
    ) -> int:
        """Return by how much two sets of blocks, each with its box, are too close in every direction; else 0. [dbu]"""
        (a, first), (b, second) = one, other
        spaces = (b.left - a.right, a.left - b.right, b.bottom - a.top, a.bottom - b.top)
        lacks = [
            self.earlier.gap
            + max(int(gaps[4 * i + SIDES.index(near), 4 * j + SIDES.index(far)]) for i in first for j in second)
            - space
            for space, (near, far) in zip(spaces, FACING, strict=True)
        ]
        return max(0, min(lacks))

    def _area(self, places: Mapping[str, Placed]) -> int:
        box = _around([self._rectangle(place) for place in places.values()])
        return (box.right - box.left) * (box.top - box.bottom)

    def _finished(self, places: Mapping[str, Placed]) -> Placement:
        boxes = {name: self._rectangle(place) for name, place in places.items()}
        ordered = sorted(places, key=lambda name: (boxes[name].bottom, boxes[name].left, name))
        placed = {name: places[name] for name in ordered}
        rings = tuple(
            sorted((c for c in self._clusters(ordered) if self.blocks[c[0]].ring), key=lambda c: ordered.index(c[0]))
        )
        islands = self._islands(places) or ()
        return Placement(placed, islands, _around(list(boxes.values())), wire_length_of(self.blocks, placed), rings)


def _is_in_reach(rings: Sequence[RingRoom]) -> bool:
    """Return whether the taps of one ring around these blocks reach its middle."""
    if not rings:
        return True
    box = _around([ring.inner for ring in rings])
    return min(box.right - box.left, box.top - box.bottom) <= min(ring.reach for ring in rings)


def _as_placed(block: Block, place: Placed) -> Block:
    """Return a block in the coordinates of the placement."""
    ring = block.ring
    if ring is not None:
        ring = replace(ring, inner=place.rectangle(ring.inner), outside=_as_placed(ring.outside, place))
    boxes = {layer: place.rectangle(box) for layer, box in block.layer_boxes.items()}
    return replace(block, box=place.rectangle(block.box), layer_boxes=boxes, ring=ring)


def _around(boxes: Sequence[Rectangle]) -> Rectangle:
    """Return the bounding box of ``boxes``."""
    left, bottom, right, top = zip(*boxes, strict=True)
    return Rectangle(min(left), min(bottom), max(right), max(top))
