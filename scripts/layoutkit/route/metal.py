"""From paths on the track graph to metal that keeps the rules of its own net: area, gaps, enough cuts."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from layoutkit.rectangle import holds, overlaps, too_close, touches
from layoutkit.route.routes import Gauge, Patch, Via, Wire
from layoutkit.route.routing_stack import CutArray, attached_to_wide, dense_array, wide_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import klayout.db as kdb

    from layoutkit.rectangle import Occupancy, Rect, Shape
    from layoutkit.route.routes import Point
    from layoutkit.route.routing_stack import Stack
    from layoutkit.route.tracks import Tracks

FILL_ROUNDS = 4
MORE_CUTS = 4
"""Cuts by which the side of an array may exceed what fits into the wires."""
MOST_IN_LINE = 16
"""Cuts that the longer side of an array for a current may have in any case."""


class Share(NamedTuple):
    """The gauge of the wires along a path, and the current through it; None for the current of the net. [mA]"""

    gauge: Gauge
    current_ma: float | None


@dataclass
class NetMetal:
    """What one net draws at the moment, and the paths it came from.

    ``shares`` has those of its vias, where they differ; ``thin`` says that some path is too thin for its own.
    """

    paths: list[list[int]] = field(default_factory=list)
    wires: list[Wire] = field(default_factory=list)
    vias: list[Via] = field(default_factory=list)
    patches: list[Patch] = field(default_factory=list)
    order: list[Wire | tuple[str, int, int]] = field(default_factory=list)
    shares: dict[tuple[str, int, int], Share] = field(default_factory=dict)
    thin: bool = False
    _known: tuple[object, list[tuple[int, Rect]]] | None = field(default=None, repr=False, compare=False)
    _regions: dict[int, tuple[object, kdb.Region]] = field(default_factory=dict, repr=False, compare=False)

    def rects(self, stack: Stack) -> list[tuple[int, Rect]]:
        """Return ``(level, rect)`` of all metal, sorted, each once; the same list, not to be changed, until it changes.

        Args:
            stack: The rules, the same at each call.
        """
        drawn = tuple(self.wires), tuple(self.vias), tuple(self.patches)
        if self._known is None or self._known[0] != drawn:
            self._known = drawn, self._rects(stack)
        return self._known[1]

    def layers(self, stack: Stack) -> tuple[tuple[str, Rect], ...]:
        """Return ``(layer, rect)`` of all metal, from the lowest layer."""
        return tuple((stack.conductors[level].name, rect) for level, rect in self.rects(stack))

    def shapes(self, stack: Stack) -> list[tuple[int, Rect, bool]]:
        """Return ``(level, rect, wide)`` of all metal, and once more what keeps the space of wide metal beside it."""
        drawn = [(level, rect, stack.is_wide(level, rect)) for level, rect in self.rects(stack)]
        return drawn + attached_to_wide(stack, drawn)

    def region(self, stack: Stack, level: int, own: Sequence[tuple[int, Rect]]) -> kdb.Region:
        """Return the merged metal on a level and that of ``own`` nearby, which is the same at each call; shared."""
        rects = self.rects(stack)
        if level not in self._regions or self._regions[level][0] is not rects:
            self._regions[level] = rects, merged_metal(stack, level, [rect for at, rect in rects if at == level], own)
        return self._regions[level][1]

    def _rects(self, stack: Stack) -> list[tuple[int, Rect]]:
        found = {(stack.index(wire.layer), rect) for wire in self.wires for rect in wire_rects(wire)}
        for via in self.vias:
            found.update(pads(stack, via))
        found.update((stack.index(patch.layer), patch.rect) for patch in self.patches)
        return sorted(found)

    def cuts(self, stack: Stack) -> list[tuple[int, Rect]]:
        """Return ``(cut index, rect)`` of all cuts, sorted."""
        return sorted(
            (cut, rect)
            for via in self.vias
            for cut in [cut_index(stack, via.cut)]
            for rect in stack.cut_rects(cut, via.x, via.y, via.columns, via.rows)
        )

    def path(self) -> tuple[Wire | Via, ...]:
        """Return wires and vias in the order in which the net was grown."""
        at = {(via.cut, via.x, via.y): via for via in self.vias}
        return tuple(entry if isinstance(entry, Wire) else at[entry] for entry in self.order)

    def is_weak(self, stack: Stack) -> bool:
        """Return whether a path is too thin, or a via has too few cuts, for its share of the current."""
        found = {(via.cut, via.x, via.y): via.columns * via.rows for via in self.vias}
        return self.thin or any(
            found.get(place, 0) < stack.cuts[cut_index(stack, place[0])].count_for(share.current_ma)
            for place, share in self.shares.items()
            if share.current_ma
        )

    @property
    def wire_length(self) -> int:
        """Centre-line length of the wires. [dbu]"""
        return sum(abs(a[0] - b[0]) + abs(a[1] - b[1]) for wire in self.wires for a, b in pairwise(wire.points))


def merged_metal(stack: Stack, level: int, drawn: Sequence[Rect], own: Sequence[tuple[int, Rect]]) -> kdb.Region:
    """Return the merged metal that is drawn on a level, and that of ``own`` nearby."""
    import klayout.db as kdb

    region = kdb.Region()
    for rect in drawn:
        region.insert(kdb.Box(*rect))
    reach = stack.reach(level)
    window = region.bbox().enlarged(reach, reach)
    for at, rect in own:
        if at == level and kdb.Box(*rect).touches(window):
            region.insert(kdb.Box(*rect))
    return region.merged()


def cut_index(stack: Stack, name: str) -> int:
    """Return the position of the cut called ``name`` in a stack."""
    return [cut.name for cut in stack.cuts].index(name)


def wire_rects(wire: Wire) -> Iterator[Rect]:
    """Yield one rectangle per segment, which extends half a width beyond both ends."""
    half = wire.width // 2
    for (x1, y1), (x2, y2) in pairwise(wire.points):
        yield min(x1, x2) - half, min(y1, y2) - half, max(x1, x2) + half, max(y1, y2) + half


def pads(stack: Stack, via: Via) -> list[tuple[int, Rect]]:
    """Return the metal of a via on the two levels it joins."""
    cut = cut_index(stack, via.cut)
    found = []
    for level in (cut, cut + 1):
        half_width, half_height = stack.pad(cut, level, via.columns, via.rows)
        found.append((level, (via.x - half_width, via.y - half_height, via.x + half_width, via.y + half_height)))
    return found


def metal_of_paths(stack: Stack, tracks: Tracks, paths: list[list[int]], width: int | None) -> NetMetal:
    """Return the wires and single-cut vias that draw ``paths``, all of them of one width. [dbu]"""
    return metal_of_shares(stack, tracks, [(path, Share(Gauge(width), None)) for path in paths])


def metal_of_shares(stack: Stack, tracks: Tracks, paths: Sequence[tuple[list[int], Share]]) -> NetMetal:
    """Return the wires and single-cut vias that draw paths, each with its own share of the net's current."""
    metal = NetMetal(paths=[path for path, _ in paths])
    vias: dict[tuple[int, int, int], Via] = {}
    for path, share in paths:
        run: list[Point] = []
        level = tracks.place(path[0])[0]
        for node in path:
            new_level, point = tracks.place(node)[0], tracks.point(node)
            if new_level != level:
                _close_run(stack, metal, level, run, share.gauge)
                cut = min(level, new_level)
                place = stack.cuts[cut].name, *point
                if (cut, *point) not in vias:
                    vias[cut, point[0], point[1]] = Via(*place)
                    metal.order.append(place)
                if share.current_ma is not None:
                    known = metal.shares.get(place, share)
                    metal.shares[place] = max(known, share, key=lambda each: each.current_ma or 0.0)
                run, level = [], new_level
            run.append(point)
        _close_run(stack, metal, level, run, share.gauge)
    metal.vias = [vias[key] for key in sorted(vias)]
    return metal


def _close_run(stack: Stack, metal: NetMetal, level: int, run: list[Point], gauge: Gauge) -> None:
    if len(run) > 1:
        wire = Wire(stack.conductors[level].name, _corners(run), stack.wire_width(level, gauge))
        metal.wires.append(wire)
        metal.order.append(wire)


def _corners(points: Sequence[Point]) -> tuple[Point, ...]:
    """Return the ends and corners of a polyline of axis-parallel steps."""
    inner = [
        b
        for a, b, c in zip(points, points[1:], points[2:], strict=False)
        if not (a[0] == b[0] == c[0] or a[1] == b[1] == c[1])
    ]
    return (points[0], *inner, points[-1])


class Finisher:
    """Completes the metal of one net beside what others have drawn.

    Args:
        stack: The rules.
        occupancy: Metal and cuts of everyone else (own shapes in it are ignored).
        net: Name of the net.
        own: Fixed metal of the net, ``(level, rect)``.
        area: No array of cuts reaches beyond it, and no area patch that can lie inside; None for any. [dbu]
    """

    def __init__(
        self,
        stack: Stack,
        occupancy: Occupancy,
        net: str,
        own: Sequence[tuple[int, Rect]],
        area: Rect | None = None,
    ) -> None:
        self.stack, self.occupancy, self.net, self.own, self.area = stack, occupancy, net, own, area

    def finish(self, metal: NetMetal, width: int | None, current_ma: float | None = None) -> None:
        """Add cuts, area patches, gap fills and what is wide only together to ``metal``."""
        if width is not None or current_ma is not None:
            single = metal.vias
            net = Share(Gauge(width), current_ma)
            for _ in range(2):  # the arrays may make metal wide, which needs more space
                wide = self._wide(metal)
                shares = [metal.shares.get((via.cut, via.x, via.y), net) for via in single]
                metal.vias = list(single)
                beside = metal.vias if any(share.current_ma for share in shares) else single
                for number in sorted(range(len(single)), key=lambda i: -(shares[i].current_ma or 0.0)):
                    others = [*beside[:number], *beside[number + 1 :]]
                    metal.vias[number] = self._with_more_cuts(wide, others, single[number], shares[number])
                if self._wide(metal) == wide:
                    break
        for level in sorted({level for level, _ in metal.rects(self.stack)}):
            self.enlarge_small(metal, level)
            self.close_gaps(metal, level)
            self._name_wide(metal, level)

    def in_the_way(self, level: int, rect: Rect, *, attached: bool = False) -> list[Shape]:
        """Return the metal of others that is too close to ``rect`` on a level.

        Args:
            level: Index of the conductor.
            rect: The metal. [dbu]
            attached: Whether wide metal touches it, so that it keeps the space of wide metal.
        """
        wide = attached or self.stack.is_wide(level, rect)
        reach = self.stack.space(level, wide=True)
        return [
            shape
            for shape in self.occupancy.near(self.stack.conductors[level].name, rect, reach)
            if shape.net != self.net and shape.hinders(rect, self.stack.space(level, wide=wide or shape.wide))
        ]

    def region(self, metal: NetMetal, level: int) -> kdb.Region:
        """Return the merged metal of the net on a level: what it draws, and its fixed metal nearby; shared."""
        return metal.region(self.stack, level, self.own)

    def _wide(self, metal: NetMetal) -> list[tuple[int, Rect]]:
        """Return the wide parts of the net's metal on the levels where what is attached to them keeps their space."""
        levels = sorted({level for level, _ in metal.rects(self.stack) if self.stack.attached[level]})
        parts = [(level, box) for level in levels for box in wide_parts(self.stack, level, self.region(metal, level))]
        return [(level, (box.left, box.bottom, box.right, box.top)) for level, box in parts]

    def _with_more_cuts(self, wide: Sequence[tuple[int, Rect]], others: Sequence[Via], via: Via, share: Share) -> Via:
        """Return the via with as many cuts as fit into its wires, or the smallest larger array that a current needs.

        Arrays with more than one row or column beyond the wires at a side come last: their pads are narrow there, and
        the current of the outer cuts has to pass the inner ones.

        Args:
            wide: The wide metal of the net.
            others: The other vias of the net.
            via: The via.
            share: The gauge of its wires, and the current that it has to carry.
        """
        cut = cut_index(self.stack, via.cut)
        most = self.stack.most_cuts(cut, self._wire_widths(cut, share.gauge))
        needed = self.stack.cuts[cut].count_for(share.current_ma)
        arrays = sorted(
            ((c, r) for c in range(1, most + 1) for r in range(1, most + 1)),
            key=lambda n: (-n[0] * n[1], n[0] != n[1], n),
        )
        if needed > 1:
            enough = [array for array in arrays if array[0] * array[1] >= needed]
            side = range(1, min(needed, max(most + MORE_CUTS, MOST_IN_LINE)) + 1)
            larger = [(c, r) for c in side for r in side if c * r >= needed and max(c, r) > most]
            larger.sort(key=lambda n: (max(n) > most + 2, n[0] * n[1], max(n), n))
            arrays = [*enough, *larger, *arrays[len(enough) :]]
        too_large: list[tuple[int, Rect]] = []  # pads without room; one that holds another has none either
        for columns, rows in arrays:
            candidate = Via(via.cut, via.x, via.y, columns, rows)
            if (columns, rows) == (1, 1):
                return candidate
            metal = pads(self.stack, candidate)
            if any(level == at and holds(rect, less) for level, rect in metal for at, less in too_large):
                continue
            pad = self._pad_without_room(metal, wide)
            if pad is not None:
                too_large = [each for each in too_large if each[0] != pad[0] or not holds(each[1], pad[1])] + [pad]
            elif self.fits(candidate, cut, others):
                return candidate
        return via

    def _wire_widths(self, cut: int, gauge: Gauge) -> tuple[int, int]:
        """Return the widths of a gauge's wires below and above a cut, as far as wires may be so wide; 0 for usual ones.

        On the way to wires on a thick conductor, vias cross levels on which the current would need wires that are wider
        than allowed. [dbu]
        """
        if gauge.width is None and not gauge.current_ma:
            return 0, 0
        below, above = (
            min(width, self.stack.widest[level] or width)
            for level in (cut, cut + 1)
            for width in [self.stack.wire_width(level, gauge)]
        )
        return below, above

    def _pad_without_room(
        self, metal: Sequence[tuple[int, Rect]], wide: Sequence[tuple[int, Rect]]
    ) -> tuple[int, Rect] | None:
        """Return the first pad that leaves the area or is too close to others, None without.

        ``wide`` is the wide metal of the net.
        """
        for level, rect in metal:
            if self.area is not None and not holds(self.area, rect):
                return level, rect
            attached = any(at == level and touches(rect, other) for at, other in wide)
            if self.in_the_way(level, rect, attached=attached):
                return level, rect
        return None

    def fits(self, via: Via, cut: int, others: Sequence[Via]) -> bool:
        """Return whether the cuts of a via keep their space to all others."""
        space, array = self.stack.cuts[cut].space, self._array(via, cut)
        if any(array.is_near(self._array(other, cut), space) for other in others if other.cut == via.cut):
            return False
        if any(array.hinders(shape, space) for shape in self.occupancy.near(via.cut, array.hull, space)):
            return False
        return not self.dense_array(via, cut, [*others, via])

    def cuts_in_the_way(self, via: Via) -> Iterator[Shape]:
        """Yield the cuts of others, and keepouts of cuts, that are too close to a via's own."""
        cut = cut_index(self.stack, via.cut)
        rule, array = self.stack.cuts[cut], self._array(via, cut)
        dense = self.dense_array(via, cut, [via])
        for shape in self.occupancy.near(via.cut, array.hull, max(rule.space, rule.array_reach + 1)):
            if shape.net != self.net and (array.hinders(shape, rule.space) or shape.rect in dense):
                yield shape

    def dense_array(
        self, via: Via, cut: int, vias: Sequence[Via], without: Iterable[Rect] = (), *, own: bool = False
    ) -> set[Rect]:
        """Return the cuts that make an array with those of a via which is too dense (``routing_stack.dense_array``).

        Args:
            via: The via.
            cut: The index of its cut.
            vias: Vias of the net that may not be entered yet, the via among them.
            without: Cuts that are entered and do not count.
            own: Whether those of other nets do not count.
        """
        rule, gone = self.stack.cuts[cut], set(without)
        if rule.array_reach <= rule.array_space:
            return set()
        reach, hulls = rule.array_reach + 1, [(self._array(one, cut).hull, one) for one in vias if one.cut == via.cut]

        def near(rect: Rect) -> Iterator[Rect]:
            for shape in self.occupancy.near(via.cut, rect, reach):
                if not shape.keepout and shape.rect not in gone and (shape.net == self.net or not own):
                    yield shape.rect
            window = rect[0] - reach, rect[1] - reach, rect[2] + reach, rect[3] + reach
            for hull, one in hulls:
                if overlaps(hull, window):
                    rects = self.stack.cut_rects(cut, one.x, one.y, one.columns, one.rows)
                    yield from (other for other in rects if overlaps(other, window))

        return dense_array(rule, self.stack.cut_rects(cut, via.x, via.y, via.columns, via.rows), near)

    def _array(self, via: Via, cut: int) -> CutArray:
        rects = self.stack.cut_rects(cut, via.x, via.y, via.columns, via.rows)
        lefts = tuple(rect[0] for rect in rects[: via.columns])
        return CutArray(lefts, tuple(rect[1] for rect in rects[:: via.columns]), self.stack.cuts[cut].size)

    def enlarge_small(self, metal: NetMetal, level: int) -> None:
        """Add patches to pieces of the net's metal on a level that are smaller than the minimum area."""
        conductor = self.stack.conductors[level]
        if not conductor.area:
            return
        for polygon in sorted(self.region(metal, level).with_area(0, conductor.area, False).each(), key=str):
            box = polygon.bbox()
            best = min(
                self._enlargements((box.left, box.bottom, box.right, box.top), conductor.area, level),
                key=lambda rect: (
                    len(self.in_the_way(level, rect)),
                    self.area is not None and not holds(self.area, rect),
                ),
            )
            metal.patches.append(Patch(conductor.name, best))

    def _enlargements(self, rect: Rect, area: int, level: int) -> list[Rect]:
        """Return rectangles of at least ``area`` that hold ``rect``, along the preferred direction first."""
        left, bottom, right, top = rect
        grid = self.stack.technology.grid
        width, height = right - left, top - bottom
        more_x = max(0, -(-(-(-area // height) - width) // grid) * grid)
        more_y = max(0, -(-(-(-area // width) - height) // grid) * grid)
        half_x, half_y = more_x // 2 // grid * grid, more_y // 2 // grid * grid
        along_x = [(left - part, bottom, right + more_x - part, top) for part in (half_x, 0, more_x)]
        along_y = [(left, bottom - part, right, top + more_y - part) for part in (half_y, 0, more_y)]
        return along_x + along_y if self.stack.horizontal[level] else along_y + along_x

    def flaws(self, metal: NetMetal) -> list[tuple[str, str, Rect]]:
        """Return ``(what, layer, where)`` of every rule that the net's metal and cuts break on their own."""
        levels = sorted({level for level, _ in metal.rects(self.stack)})
        cuts = metal.cuts(self.stack)
        found = [flaw for level in levels for flaw in self._flaws_on(level, self.region(metal, level), cuts)]
        return found + self._cut_flaws(metal)

    def flaws_of(self, level: int, drawn: Sequence[Rect]) -> Iterator[tuple[str, str, Rect]]:
        """Yield, one kind after the other, the flaws of a level on which the net draws these rectangles."""
        return self._flaws_on(level, merged_metal(self.stack, level, drawn, self.own))

    def _flaws_on(
        self, level: int, region: kdb.Region, cuts: Sequence[tuple[int, Rect]] = ()
    ) -> Iterator[tuple[str, str, Rect]]:
        import klayout.db as kdb

        conductor = self.stack.conductors[level]
        least_area, euclidean = conductor.area or 0, kdb.Region.Euclidian
        kinds: tuple[tuple[str, Callable[[], kdb.Region | kdb.EdgePairs]], ...] = (
            ("minimum width", lambda: region.width_check(conductor.width, False, euclidean)),
            ("minimum space", lambda: region.space_check(conductor.space, False, euclidean)),
            ("minimum space of wide metal", lambda: kdb.EdgePairs(self.gaps_of_wide(region, level))),
            ("minimum area", lambda: region.with_area(0, least_area, False) if least_area else kdb.Region()),
            ("minimum area of holes", lambda: self._small_holes(region, level)),
            (
                "enclosure at line ends",
                lambda: kdb.EdgePairs([pair for pair, _ in self._short_ends(region, level, cuts)]),
            ),
        )
        for what, shapes in kinds:
            boxes = sorted((shape.bbox() for shape in shapes().each()), key=str)
            yield from ((what, conductor.name, (b.left, b.bottom, b.right, b.top)) for b in boxes)

    def _cut_flaws(self, metal: NetMetal) -> list[tuple[str, str, Rect]]:
        found: list[tuple[str, str, Rect]] = []
        cuts = metal.cuts(self.stack)
        side = max((max(rect[2] - rect[0], rect[3] - rect[1]) for _, rect in cuts), default=0)
        buckets: dict[tuple[int, int, int], list[Rect]] = {}  # cut, column and row of a lower left corner
        for cut, rect in cuts:
            name, space = self.stack.cuts[cut].name, self.stack.cuts[cut].space
            column, row = rect[0] // (side + space), rect[1] // (side + space)
            around = [(cut, column + right, row + up) for right in (-1, 0, 1) for up in (-1, 0, 1)]
            near = [other for place in around for other in buckets.get(place, ())]
            near += [s.rect for s in self.occupancy.near(name, rect, space) if s.net == self.net]
            found += [("minimum space", name, rect) for other in near if too_close(other, rect, space)]
            buckets.setdefault((cut, column, row), []).append(rect)
        for via in metal.vias:
            dense = self.dense_array(via, cut_index(self.stack, via.cut), metal.vias, own=True)
            found += [("minimum space in arrays", via.cut, rect) for rect in sorted(dense)[:1]]
        return found

    def close_gaps(self, metal: NetMetal, level: int) -> None:
        """Fill gaps and notches of the net's own metal that are narrower than the minimum space, and too small holes.

        Beside its wide parts this is the space of wide metal. Narrow ends of lines near cuts of fixed metal are made
        longer.
        """
        import klayout.db as kdb

        conductor = self.stack.conductors[level]
        for _ in range(FILL_ROUNDS):
            region = self.region(metal, level)
            gaps = region.space_check(conductor.space, False, kdb.Region.Projection)
            fills = [pair.polygon(0).bbox() for pair in [*gaps.each(), *self.gaps_of_wide(region, level)]]
            holes = self._small_holes(region, level).decompose_trapezoids_to_region()
            fills += [piece.bbox() for piece in holes.each()]
            rects = [(box.left, box.bottom, box.right, box.top) for box in fills if box.area() > 0]
            rects = rects or self._corner_fills(region, level) or self._line_end_fills(metal, region, level)
            if not rects:
                return
            metal.patches += [Patch(conductor.name, rect) for rect in sorted(set(rects))]

    def _small_holes(self, region: kdb.Region, level: int) -> kdb.Region:
        """Return the holes of a region that are smaller than the rule of the level, if there is one."""
        import klayout.db as kdb

        least = self.stack.least_hole[level]
        return region.holes().with_area(0, least, False) if least else kdb.Region()

    def gaps_of_wide(self, region: kdb.Region, level: int) -> list[kdb.EdgePair]:
        """Return the gaps beside wide parts of a region that are narrower than the space of wide metal."""
        import klayout.db as kdb

        conductor = self.stack.conductors[level]
        if not conductor.wide_width or not conductor.wide_space:
            return []
        half = conductor.wide_width // 2
        core = region.sized(-half)
        if core.is_empty():
            return []
        wide = core.sized(half)
        near = wide.sized(conductor.wide_space) & region
        gaps = near.merged().space_check(conductor.wide_space, False, kdb.Region.Projection)
        return [pair for pair in gaps.each() if not (kdb.Region(pair.bbox().enlarged(1, 1)) & wide).is_empty()]

    def _name_wide(self, metal: NetMetal, level: int) -> None:
        """Add as patches the wide parts that wires make only together, so that others keep wide-metal spacing."""
        import klayout.db as kdb

        limit = self.stack.conductors[level].wide_width
        if limit is None:
            return
        half = limit // 2
        core = self.region(metal, level).sized(-half).sized(half)
        if core.is_empty():
            return
        known = [rect for at, rect in (*metal.rects(self.stack), *self.own) if at == level]
        across = core.decompose_trapezoids_to_region(kdb.Polygon.TD_vtrapezoids)
        across.merged_semantics = False  # else each of them would be all of the metal
        pieces = [polygon.bbox() for polygon in core.decompose_trapezoids_to_region().each()]
        for piece in pieces.copy():  # a wire along wide metal of its net is a slice that is wide only together with it
            if min(piece.width(), piece.height()) >= self.stack.width(level, None):
                rect = (piece.left, piece.bottom, piece.right, piece.top)
                if not self.stack.is_wide(level, rect):
                    pieces += [polygon.bbox() for polygon in across.overlapping(kdb.Region(piece)).each()]
        for piece in sorted(set(pieces), key=str):
            rect = (piece.left, piece.bottom, piece.right, piece.top)
            if self.stack.is_wide(level, rect) and not any(holds(one, rect) for one in known):
                fixed = kdb.Region()
                for box in (kdb.Box(*one) for at, one in self.own if at == level):
                    fixed.insert(box)
                if not (kdb.Region(piece) - fixed.merged().sized(-half).sized(half)).is_empty():
                    metal.patches.append(Patch(self.stack.conductors[level].name, rect))

    def _corner_fills(self, region: kdb.Region, level: int) -> list[Rect]:
        """Return rectangles that join corners of own metal that nearly meet, and thicken necks."""
        import klayout.db as kdb

        conductor = self.stack.conductors[level]
        pairs = list(region.space_check(conductor.space, False, kdb.Region.Euclidian).each())
        pairs += list(region.width_check(conductor.width, False, kdb.Region.Euclidian).each())
        least = self.stack.width(level, None)
        fills: list[Rect] = []
        for pair in sorted(pairs, key=str):
            left, bottom, right, top = self._on_grid(pair.polygon(0).bbox())
            grow_x, grow_y = max(0, least - (right - left)), max(0, least - (top - bottom))
            fills.append(self._least_in_the_way(level, (left, bottom, right, top), grow_x, grow_y))
        return fills

    def _line_end_fills(self, metal: NetMetal, region: kdb.Region, level: int) -> list[Rect]:
        """Return rectangles that lengthen narrow ends of lines which hardly reach beyond a cut."""
        import klayout.db as kdb

        short = self._short_ends(region, level, metal.cuts(self.stack))
        ends = ((kdb.Edges([pair.first]), beyond - pair.distance()) for pair, beyond in short)
        return sorted({self._on_grid(end.extended_out(lack).bbox()) for end, lack in ends})

    def _short_ends(
        self, region: kdb.Region, level: int, own: Sequence[tuple[int, Rect]]
    ) -> Iterator[tuple[kdb.EdgePair, int]]:
        """Yield narrow ends of lines that reach too little beyond a cut of the net, and how far they should. [dbu]

        A wire that ends just beyond the edge of a pin makes such an end beside the cuts of the pin, and a pin that ends
        just beyond the pad of a via makes one beside those of the via.
        """
        import klayout.db as kdb

        for (cut, at), (width, beyond) in self.stack.line_ends.items():
            if at != level:
                continue
            cuts, name = kdb.Region(), self.stack.cuts[cut].name
            ends = region.edges(kdb.EdgeMode.Convex).with_length(0, width, False)
            for box in (end.bbox() for end in ends.each()):
                for shape in self.occupancy.near(name, (box.left, box.bottom, box.right, box.top), beyond):
                    if shape.net == self.net:
                        cuts.insert(kdb.Box(*shape.rect))
            for box in (kdb.Box(*rect) for index, rect in own if index == cut):
                cuts.insert(box)
            if not cuts.is_empty():
                pairs = ends.enclosing_check(cuts.merged().edges(), beyond, True, kdb.Region.Projection)
                yield from ((pair, beyond) for pair in pairs.each())

    def _on_grid(self, box: kdb.Box) -> Rect:
        """Return the smallest rectangle on the grid that holds ``box``; Euclidean checks cut edges anywhere."""
        grid = self.stack.technology.grid
        low = (box.left // grid * grid, box.bottom // grid * grid)
        return *low, -(-box.right // grid) * grid, -(-box.top // grid) * grid

    def _least_in_the_way(self, level: int, rect: Rect, grow_x: int, grow_y: int) -> Rect:
        left, bottom, right, top = rect
        grid = self.stack.technology.grid
        halves = [grow // 2 // grid * grid for grow in (grow_x, grow_y)]
        candidates = [
            (left - dx, bottom - dy, right + grow_x - dx, top + grow_y - dy)
            for dx in (halves[0], 0, grow_x)
            for dy in (halves[1], 0, grow_y)
        ]
        return min(candidates, key=lambda candidate: len(self.in_the_way(level, candidate)))
