"""What one net may draw on a technology's stack: wire widths, via pads, and the distances others must keep. [dbu]

|<- end ->|<- size ->|<- end ->|
+------------------------------+  ^ side
|         +----------+         |  ^
|         |   cut    |         |  | size        pad on a conductor of horizontal preferred direction
|         +----------+         |  v
+------------------------------+  v side

Arrays of cuts are compared as a whole with other cuts and keepouts.

``fixed_metal`` gives what routes go around, as rectangles: obstacles, terminals and keepouts. Others keep a larger
distance to wide metal, and to what is attached to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, sqrt
from typing import TYPE_CHECKING, NamedTuple

from layoutkit.errors import TechnologyError
from layoutkit.rectangle import FixedMetal, holds, too_close, touches
from layoutkit.route.routes import rect_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.rectangle import Rect, Shape
    from layoutkit.route.routes import Gauge, NetRequest
    from layoutkit.technology import Technology
    from layoutkit.technology.technology import Conductor, Cut

    Obstacle = tuple[kdb.Box | kdb.Polygon | kdb.Region, str | None]


@dataclass(frozen=True)
class Stack:
    """The conductors from the lowest to the highest that takes part, and the vias between them.

    Args:
        technology: Where the numbers come from.
        conductors: Neighbouring conductors, lowest first.
        cuts: ``cuts[i]`` joins ``conductors[i]`` and ``conductors[i + 1]``.
        wired: Which of them may carry wires; the others are only passed by vias.
        horizontal: Preferred direction of each conductor.
    """

    technology: Technology
    conductors: tuple[Conductor, ...]
    cuts: tuple[Cut, ...]
    wired: tuple[bool, ...]
    horizontal: tuple[bool, ...]

    def index(self, name: str) -> int:
        """Return the position of the conductor ``name`` (or alias)."""
        if name not in self._levels:
            wanted = self.technology.conductor(name).name
            names = [conductor.name for conductor in self.conductors]
            if wanted not in names:
                raise TechnologyError(f"conductor '{name}' takes no part in this routing")
            self._levels[name] = names.index(wanted)
        return self._levels[name]

    @cached_property
    def _levels(self) -> dict[str, int]:
        return {}

    def width(self, level: int, wanted: int | None) -> int:
        """Return the width drawn on a level: at least its minimum, and halvable on the grid."""
        step = 2 * self.technology.grid
        return -(-max(wanted or 0, self.conductors[level].width) // step) * step

    def wire_width(self, level: int, gauge: Gauge) -> int:
        """Return the width of a gauge's wires on a level: its own, or what its current needs there if that is more."""
        needed = self.conductors[level].width_um(gauge.current_ma or 0.0)
        return self.width(level, max(gauge.width or 0, ceil(round(needed / self.technology.dbu_um, 6))))

    def space(self, level: int, *, wide: bool) -> int:
        """Return the distance to keep on a level; ``wide`` when one of the two is wider than the wide-metal limit."""
        return self.conductors[level].spacing(wide=wide)

    @cached_property
    def widest(self) -> tuple[int | None, ...]:
        """The width of each conductor's wires up to which its spaces hold; None for any. [dbu]"""
        return tuple(self.technology.widest_usual(conductor) for conductor in self.conductors)

    @cached_property
    def least_hole(self) -> tuple[int, ...]:
        """The minimum area of holes in each conductor, 0 where there is no such rule. [dbu2]"""
        found = dict.fromkeys((conductor.layer for conductor in self.conductors), 0)
        for rule in self.technology.rules:
            if rule.kind == "hole_area" and rule.value is not None:
                for layer in (rule.options.get("layer"), *rule.options.get("layers", ())):
                    if layer in found:
                        found[layer] = max(found[layer], rule.value)
        return tuple(found.values())

    @cached_property
    def attached(self) -> tuple[int, ...]:
        """How far from wide metal what is attached to it keeps the space of wide metal, 0 without such a rule. [dbu]"""
        found = dict.fromkeys((conductor.layer for conductor in self.conductors), 0)
        for rule in self.technology.rules:
            layer = rule.options.get("layer")
            if rule.kind == "wide_space" and layer in found and "attached_um" in rule.options:
                reach = self.technology.snap_up(float(rule.options["attached_um"]) / self.technology.dbu_um)
                found[layer] = max(found[layer], reach)
        return tuple(found.values())

    @cached_property
    def least_beside(self) -> tuple[int, ...]:
        """How far metal must run beside wide metal before it keeps the space of that. [dbu]"""
        found = {conductor.layer: [0] for conductor in self.conductors}
        for rule in self.technology.rules:
            if rule.kind == "wide_space" and rule.options.get("layer") in found:
                least = float(rule.options.get("min_projection_um", 0.0)) / self.technology.dbu_um
                found[rule.options["layer"]].append(self.technology.snap_up(least))
        return tuple(min(each[1:], default=0) for each in found.values())

    @cached_property
    def line_ends(self) -> dict[tuple[int, int], tuple[int, int]]:
        """Per cut and level: the width below which a line's end reaches further beyond the cut, and how far. [dbu]"""
        found = {}
        for rule in self.technology.rules:
            if rule.kind == "line_end_enclosure" and rule.value is not None:
                width = self.technology.snap_up(float(rule.options["line_um"]) / self.technology.dbu_um)
                for index, cut in enumerate(self.cuts):
                    for level in (index, index + 1):
                        if (rule.options["inner"], rule.options["outer"]) == (cut.layer, self.conductors[level].layer):
                            found[index, level] = (width, rule.value)
        return found

    def reach(self, level: int) -> int:
        """Return how far from a piece of metal other metal of its net may make a gap or a small hole with it."""
        space = self.conductors[level].space
        return max(2 * space, self.least_hole[level] // space + space)

    def is_wide(self, level: int, rect: Rect) -> bool:
        """Return whether a rectangle on a level is subject to wide-metal spacing."""
        limit = self.conductors[level].wide_width
        return limit is not None and min(rect[2] - rect[0], rect[3] - rect[1]) > limit

    def long_edged(self, level: int, merged: kdb.Region) -> kdb.Region:
        """Return the polygons of ``merged`` whose edges are all so long that a foundry's deck takes them for wide."""
        import klayout.db as kdb

        limit = self.conductors[level].long_edges
        if limit is None:
            return kdb.Region()
        return merged.not_interacting(merged.edges().with_length(0, limit + 1, False))

    def pad(self, cut_index: int, level: int, columns: int = 1, rows: int = 1) -> tuple[int, int]:
        """Return half the width and half the height of the metal around ``columns`` x ``rows`` cuts on a level."""
        key = cut_index, level, columns, rows
        if key not in self._pads:
            self._pads[key] = self._pad(*key)
        return self._pads[key]

    @cached_property
    def _pads(self) -> dict[tuple[int, int, int, int], tuple[int, int]]:
        return {}

    def _pad(self, cut_index: int, level: int, columns: int, rows: int) -> tuple[int, int]:
        cut = self.cuts[cut_index]
        above = level > cut_index
        side = cut.enclose_above if above else cut.enclose_below
        end = cut.enclose_above_end if above else cut.enclose_below_end
        along, across = max(side, end), side
        half_width = self.array_half(cut_index, columns) + (along if self.horizontal[level] else across)
        half_height = self.array_half(cut_index, rows) + (across if self.horizontal[level] else along)
        least = self.width(level, None) // 2
        return self._up(max(half_width, least)), self._up(max(half_height, least))

    def array_half(self, cut_index: int, count: int) -> int:
        """Return half the extent of ``count`` cuts in a row, rounded up to the grid."""
        cut = self.cuts[cut_index]
        return self._up(-(-(count * cut.size + (count - 1) * self.cut_space(cut_index, count)) // 2))

    def cut_space(self, cut_index: int, count: int = 1) -> int:
        """Return the distance between ``count`` cuts in a row: the rule, rounded so that centres stay on the grid.

        A row of as many cuts as make an array keeps the array's spacing, whatever the other direction holds.
        """
        cut = self.cuts[cut_index]
        step = 2 * self.technology.grid
        return -(-(cut.size + cut.spacing(count)) // step) * step - cut.size

    def cut_rects(self, cut_index: int, x: int, y: int, columns: int, rows: int) -> list[Rect]:
        """Return the cuts of an array centred at (x, y)."""
        size = self.cuts[cut_index].size
        across, up = (size + self.cut_space(cut_index, count) for count in (columns, rows))
        left = x - ((columns - 1) * across + size) // 2
        bottom = y - ((rows - 1) * up + size) // 2
        return [
            (left + c * across, bottom + r * up, left + c * across + size, bottom + r * up + size)
            for r in range(rows)
            for c in range(columns)
        ]

    def array_for(self, cut_index: int, gauge: Gauge) -> tuple[int, int]:
        """Return the columns and rows of the cuts for a gauge: nearly square, with rows that its terminals hold."""
        needed = self.cuts[cut_index].count_for(gauge.current_ma)
        rows = min(self.most_cuts(cut_index, (gauge.lowest, gauge.lowest)), ceil(sqrt(needed)))
        return -(-needed // rows), rows

    def most_cuts(self, cut_index: int, widths: tuple[int, int]) -> int:
        """Return how many cuts fit side by side in wires of these widths, below and above the cut; at least one."""
        count = 1
        while all(
            self._narrow_half(cut_index, level, count + 1) * 2 <= width
            for level, width in zip((cut_index, cut_index + 1), widths, strict=True)
        ):
            count += 1
        return count

    def _narrow_half(self, cut_index: int, level: int, count: int) -> int:
        cut = self.cuts[cut_index]
        return self.array_half(cut_index, count) + (cut.enclose_above if level > cut_index else cut.enclose_below)

    def pitch(self) -> int:
        """Return the distance at which two neighbouring tracks are legal in every combination of wires and pads.

        Layers that need more than twice the smallest (thick top metals) do not widen the tracks of the others: what
        they need is kept by the exact distances, at the price of unused tracks.
        """
        needs = [
            max([self.width(level, None), *(2 * max(self.pad(cut, level)) for cut in self._cuts_at(level))])
            + self.conductors[level].space
            for level in range(len(self.conductors))
            if self.wired[level]
        ]
        return self._up(max(need for need in needs if need <= 2 * min(needs)))

    def _cuts_at(self, level: int) -> list[int]:
        return [cut for cut in (level - 1, level) if 0 <= cut < len(self.cuts)]

    def _up(self, length: int) -> int:
        grid = self.technology.grid
        return -(-length // grid) * grid


def make_stack(technology: Technology, layers: Sequence[str], touched: Sequence[str]) -> Stack:
    """Return the part of the stack that spans the wiring ``layers`` and the ``touched`` (terminals') conductors.

    Preferred directions alternate over the whole stack: conductors[1] is horizontal, [2] vertical, [3] horizontal.

    Raises:
        TechnologyError: If a name is not a conductor or no wiring layer is given.
    """
    names = [conductor.name for conductor in technology.conductors]
    wired = {names.index(technology.conductor(layer).name) for layer in layers}
    if not wired:
        raise TechnologyError(f"no routing layer given; the stack of {technology.name} is: {', '.join(names)}")
    every = wired | {names.index(technology.conductor(layer).name) for layer in touched}
    span = range(min(every), max(every) + 1)
    return Stack(
        technology=technology,
        conductors=tuple(technology.conductors[i] for i in span),
        cuts=tuple(technology.cuts[i] for i in span[:-1]),
        wired=tuple(i in wired for i in span),
        horizontal=tuple(i % 2 == 1 for i in span),
    )


class CutArray(NamedTuple):
    """The cuts of a via: left edges of its columns, lower edges of its rows, and the side of each cut. [dbu]

    Every column crosses every row, so that the nearest two cuts of two arrays are in the nearest columns and rows.
    """

    lefts: tuple[int, ...]
    bottoms: tuple[int, ...]
    size: int

    @property
    def hull(self) -> Rect:
        """The box of all cuts."""
        return self.lefts[0], self.bottoms[0], self.lefts[-1] + self.size, self.bottoms[-1] + self.size

    def is_near(self, other: CutArray, space: int) -> bool:
        """Return whether two cuts are nearer than ``space`` (Euclidean)."""
        if not too_close(self.hull, other.hull, space):
            return False
        dx = min(abs(one - two) for one in self.lefts for two in other.lefts)
        dy = min(abs(one - two) for one in self.bottoms for two in other.bottoms)
        return max(0, dx - self.size) ** 2 + max(0, dy - self.size) ** 2 < space * space

    def hinders(self, shape: Shape, space: int) -> bool:
        """Return whether a cut comes too near to a shape, or enters a keepout; see ``Shape.hinders``."""
        (left, bottom, right, top), size = shape.rect, self.size
        dx = min(max(low - right, left - low - size) for low in self.lefts)
        dy = min(max(low - top, bottom - low - size) for low in self.bottoms)
        if shape.keepout:
            return dx < 0 and dy < 0
        return max(0, dx) ** 2 + max(0, dy) ** 2 < space * space


def dense_array(rule: Cut, cuts: Sequence[Rect], near: Callable[[Rect], Iterable[Rect]]) -> set[Rect]:
    """Return ``cuts`` and cuts around them that make one array which is too dense; empty if they make none.

    This is for cuts further apart than ``array_space`` that still count as one array (``array_reach``), if they lie
    beside or above each other in part: foundries' decks join them by growing and shrinking, which parts diagonal ones.
    It then does not matter which wires they lie on, nor that each via alone has too few for an array.

    Args:
        rule: The cut.
        cuts: Those of one via.
        near: Returns all cuts within ``array_reach`` of one in x and in y; the cut itself may be among them.
    """
    if rule.array_reach <= rule.array_space:
        return set()
    least = rule.array_count * rule.size + (rule.array_count - 1) * rule.space
    found, left, dense = set(cuts), list(cuts), False
    while left:
        cut = left.pop()
        around = [other for other in near(cut) if other != cut]
        dense = dense or any(too_close(cut, other, rule.array_space) for other in around)
        beside = [other for other in around if other not in found and _are_abreast(cut, other)]
        left += beside
        found.update(beside)
        if dense and len(found) >= rule.array_count**2:
            lefts, bottoms, rights, tops = zip(*found, strict=True)
            if max(rights) - min(lefts) >= least and max(tops) - min(bottoms) >= least:
                return found
    return set()


def _are_abreast(one: Rect, other: Rect) -> bool:
    """Return whether two rectangles lie beside or above each other in part, instead of diagonally."""
    return (one[0] < other[2] and other[0] < one[2]) or (one[1] < other[3] and other[1] < one[3])


def fixed_metal(
    stack: Stack,
    nets: Sequence[NetRequest],
    obstacles: Mapping[str, Iterable[Obstacle]],
    keepouts: Iterable[tuple[str, Rect]],
) -> list[FixedMetal]:
    """Return what is there before any route, in a fixed order; see ``router.route`` for the parameters."""
    closed = {FixedMetal(stack.technology.resolve(layer), rect, None, keepout=True) for layer, rect in keepouts}
    known = {*(each.name for each in stack.conductors), *(cut.name for cut in stack.cuts)}
    closed = {each for each in closed if each.layer in known}
    return sorted({*_of_obstacles(stack, obstacles), *_of_terminals(stack, nets), *closed}, key=str)


def _of_terminals(stack: Stack, nets: Sequence[NetRequest]) -> Iterable[FixedMetal]:
    for net in nets:
        for terminal in net.terminals:
            level = stack.index(terminal.layer)
            rect = rect_of(terminal.box)
            yield FixedMetal(stack.conductors[level].name, rect, net.name, stack.is_wide(level, rect))


def _of_obstacles(stack: Stack, obstacles: Mapping[str, Iterable[Obstacle]]) -> Iterable[FixedMetal]:
    """Yield rectangles that cover the obstacles; slanted parts become their bounding boxes."""
    import klayout.db as kdb

    for layer, shapes in obstacles.items():
        name = stack.technology.resolve(layer)
        levels = [i for i, conductor in enumerate(stack.conductors) if conductor.name == name]
        if not levels and name not in [cut.name for cut in stack.cuts]:
            continue
        by_net: dict[str | None, kdb.Region] = {}
        for geometry, net in shapes:
            by_net.setdefault(net, kdb.Region()).insert(geometry)
        for net, region in by_net.items():
            merged = region.merged()
            pieces = [piece.bbox() for piece in merged.decompose_trapezoids_to_region().each()]
            if not levels:
                yield from (FixedMetal(name, rect_of(box), net) for box in pieces)
                continue
            level = levels[0]
            yield from (FixedMetal(name, rect_of(box), net, stack.is_wide(level, rect_of(box))) for box in pieces)
            yield from (FixedMetal(name, rect_of(box), net, wide=True) for box in wide_parts(stack, level, merged))
            rings = stack.long_edged(level, merged).decompose_trapezoids_to_region()
            yield from (FixedMetal(name, rect_of(piece.bbox()), net, wide=True) for piece in rings.each())


def attached_to_wide(stack: Stack, drawn: Sequence[tuple[int, Rect, bool]]) -> list[tuple[int, Rect, bool]]:
    """Return the parts of narrow metal that keep the space of wide metal, as they are attached to wide metal.

    Args:
        stack: The rules.
        drawn: Level, rectangle and whether it is wide, of all metal of one net.
    """
    found = set()
    for level, wide, is_wide in drawn:
        reach = stack.attached[level]
        near = wide[0] - reach, wide[1] - reach, wide[2] + reach, wide[3] + reach
        for at, rect, other_wide in drawn if is_wide and reach else ():
            if at == level and not other_wide and touches(rect, wide) and not holds(wide, rect):
                part = max(rect[0], near[0]), max(rect[1], near[1]), min(rect[2], near[2]), min(rect[3], near[3])
                found.add((level, part, True))
    return sorted(found)


def wide_parts(stack: Stack, level: int, merged: kdb.Region) -> list[kdb.Box]:
    """Return boxes, as thin as a decomposition cuts them, over the parts wider than the wide-metal limit."""
    limit = stack.conductors[level].wide_width
    if limit is None:
        return []
    half = limit // 2
    core = merged.sized(-half).sized(half) & merged
    return [polygon.bbox() for polygon in core.decompose_trapezoids_to_region().each()]
