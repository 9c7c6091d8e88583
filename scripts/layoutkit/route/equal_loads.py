"""Capacitance of wires to the substrate, and bumps, stubs and vias that make length and capacitance of nets equal.

::

          +--+  +--+          the wire leaves its track for a bump: two legs of a depth, just so far apart
----------+  +--+  +---       as the minimum space asks; the length grows by twice the depth

         +--            a stub: as wide as its wire, straight or with one corner, as long as what is missing asks
         |
---------+---------

Bumps come first: the fewest that fit in one row, all equally deep, or without room for a row, where they fit. Stubs
serve where there is no room for bumps, and for the capacitance that vias and pads make unequal. A net that has a stub
gets a longer one before it gets another.

A net that has fewer vias than its partner gets some on its wires, so that both load and look alike::

         +-------+
---------| x   x |---------     the wire goes on as before; the other conductor has the pad only
         +-------+
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from layoutkit.rectangle import too_close
from layoutkit.route.board import Sheet
from layoutkit.route.metal import Finisher, NetMetal, cut_index, pads, wire_rects
from layoutkit.route.routes import Patch, Via, Wire
from layoutkit.route.routing_stack import fixed_metal, make_stack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.rectangle import Rect
    from layoutkit.route.routes import NetRequest, Point, RoutedNet, RoutingResult
    from layoutkit.route.routing_stack import Obstacle
    from layoutkit.technology import Technology


ALIKE = 0.005
"""Difference of two nets' lengths or capacitances, as a share of the larger one, that is left as it is."""
MOST_STUBS = 6
"""Stubs of a net for its length, and as many for its capacitance."""
SMALLEST = 16
"""Smallest stub, as a divisor of what is missing."""
MOST_TRIES = 400
"""Places at which the rules are checked for stubs of one net."""
OUTWARDS = (2, 4, 8, 16)
"""Track pitches from the wire to the corner of a stub that has one."""
MOST_VIAS = 6
"""Vias that a net gets at most."""
MOST_VIA_TRIES = 60
"""Places with room for the pads at which all rules are checked for one net."""
MOST_BUMPS = 12
ROWS = (1, 2, 3, 4, 6, 8, 12)
"""How many bumps a row may have."""
MOST_BUMP_TRIES = 3000
"""Places at which rows of bumps are tried for one net, and then single ones."""


class StubRoom(NamedTuple):
    """Where stubs may lie: an area [dbu], conductors, and areas of layers that they keep out of [dbu]."""

    area: Rect
    layers: Sequence[str]
    keepouts: Sequence[tuple[str, Rect]] = ()


def equalised(
    technology: Technology,
    nets: Sequence[NetRequest],
    obstacles: Mapping[str, Iterable[Obstacle]],
    room: StubRoom,
    result: RoutingResult,
) -> RoutingResult:
    """Return routes in which the nets of each pair that are no mirror images are equally long and load equally.

    They also have equally many vias. As much is added as there is room for.

    Args:
        technology: The rules, and the capacitance of conductors.
        nets: What was routed, with terminals as they are now.
        obstacles: Metal that was there before, as for ``router.route``.
        room: Where metal may be added.
        result: The routes.
    """
    names = [each.nets for each in result.mirrored if len(each.nets) == 2 and not each.exact]
    pairs = [pair for pair in names if all(result.net(name).success for name in pair)]
    if not pairs:
        return result
    loading = Loading(technology, nets, obstacles, room, result)
    for pair in pairs:
        both = [loading.net(name) for name in pair]
        short, long = sorted(both, key=lambda each: each.metal.wire_length)
        short.lengthen(long.metal.wire_length)
        few, many = sorted(both, key=lambda each: len(each.metal.vias))
        few.add_vias(missing_cuts(few.metal, many.metal))
        low, high = sorted(both, key=lambda each: each.load() or 0.0)
        low.add_load(high.load())
    return loading.result()


class Loading:
    """Routed nets that metal is added to; the parameters are those of ``equalised``."""

    def __init__(
        self,
        technology: Technology,
        nets: Sequence[NetRequest],
        obstacles: Mapping[str, Iterable[Obstacle]],
        room: StubRoom,
        result: RoutingResult,
    ) -> None:
        stack = make_stack(technology, room.layers, [terminal.layer for net in nets for terminal in net.terminals])
        self.sheet = Sheet(stack, [net.name for net in nets], room.area)
        for piece in fixed_metal(stack, nets, obstacles, room.keepouts):
            self.sheet.add_fixed(piece)
        self.requests, self.before = {net.name: net for net in nets}, result
        self.metals = {net.name: _metal_of(net) for net in result.nets if net.success}
        self.stubs = {net.name: list(net.stubs) for net in result.nets if net.success}
        for name, metal in self.metals.items():
            self.sheet.change(self.requests[name], metal, 1)

    def net(self, name: str) -> LoadedNet:
        """Return a net that has a route."""
        return LoadedNet(self.sheet, self.requests[name], self.metals[name], self.stubs[name])

    def result(self) -> RoutingResult:
        """Return the routes with what was added."""
        nets = (self._outcome(net) if net.success else net for net in self.before.nets)
        return replace(self.before, nets=tuple(nets))

    def _outcome(self, net: RoutedNet) -> RoutedNet:
        metal, stubs = self.metals[net.name], tuple(self.stubs[net.name])
        wires, vias, patches = tuple(metal.wires), tuple(metal.vias), tuple(metal.patches)
        if (wires, vias, patches) == (net.wires, net.vias, net.patches):
            return net
        return replace(
            net,
            wires=wires,
            vias=vias,
            path=metal.path(),
            patches=patches,
            metal=metal.layers(self.sheet.stack),
            wire_length=metal.wire_length,
            via_count=len(vias),
            stubs=stubs,
        )


def _metal_of(net: RoutedNet) -> NetMetal:
    order = [each if isinstance(each, Wire) else (each.cut, each.x, each.y) for each in net.path]
    return NetMetal([], list(net.wires), list(net.vias), list(net.patches), order)


@dataclass(frozen=True)
class LoadedNet:
    """A routed net of a pair on the sheet, and the stubs that its capacitance was given."""

    sheet: Sheet
    net: NetRequest
    metal: NetMetal
    stubs: list[Wire]

    def load(self) -> float | None:
        """Return the capacitance of the wires to the substrate [aF]; None where numbers are missing."""
        return capacitance_of(self.sheet, self.metal)

    def lengthen(self, wanted: int) -> None:
        """Make the wires longer by bumps, or else by stubs, until they have a length. [dbu]"""
        missing = wanted - self.metal.wire_length
        if missing <= 0:
            return
        self.sheet.change(self.net, self.metal, -1)
        lengthen(self.sheet, self.net, self.metal, missing)
        stubs = _Stubs(self.sheet, self.net, self.metal, [])
        stubs.add(lambda: wanted - self.metal.wire_length, ALIKE * wanted, lambda _: 1.0, stubs.draw_wire)
        self.sheet.change(self.net, self.metal, 1)

    def remove_stubs(self) -> list[Patch]:
        """Remove the stubs that capacitance was added by; return the metal that they were drawn with."""
        drawn = {patch for stub in self.stubs for patch in _patches(stub)}
        removed = [patch for patch in self.metal.patches if patch in drawn]
        if not removed:
            return []
        self.sheet.change(self.net, self.metal, -1)
        self.metal.patches = [patch for patch in self.metal.patches if patch not in drawn]
        self.stubs.clear()
        self.sheet.change(self.net, self.metal, 1)
        return removed

    def add_vias(self, cuts: Sequence[str]) -> None:
        """Add vias where there is room, named by their cuts."""
        if not cuts:
            return
        self.sheet.change(self.net, self.metal, -1)
        add_vias(self.sheet, self.net, self.metal, cuts)
        self.sheet.change(self.net, self.metal, 1)

    def add_load(self, wanted: float | None, alike: float = ALIKE) -> None:
        """Add metal beside the wires until they have a capacitance to the substrate [aF], less a share ``alike``."""
        if wanted is None or self.load() is None:
            return
        self.sheet.change(self.net, self.metal, -1)
        stubs = _Stubs(self.sheet, self.net, self.metal, self.stubs)
        stubs.add(lambda: wanted - (self.load() or wanted), alike * wanted, stubs.load_per_length, stubs.draw_patches)
        self.sheet.change(self.net, self.metal, 1)


class _Stubs:
    """Adds stubs to the wires of a net, which is not entered on the sheet now."""

    def __init__(self, sheet: Sheet, net: NetRequest, metal: NetMetal, stubs: list[Wire]) -> None:
        self.sheet, self.net, self.metal, self.stubs = sheet, net, metal, stubs
        self.finisher = Finisher(sheet.stack, sheet.occupancy, net.name, sheet.own[net.name])
        self.wires = [wire for wire in metal.wires if wire.layer not in net.avoid_layers]
        self.tries = iter(range(MOST_TRIES))
        self.blocked: dict[tuple[str, Point, Point, int], int] = {}

    def add(
        self,
        missing: Callable[[], float],
        alike: float,
        per_length: Callable[[Wire], float],
        draw: Callable[[Wire], None],
    ) -> None:
        """Add few stubs until no more than ``alike`` is missing; each stub adds ``per_length`` of its wire."""
        share = 1
        for _ in range(MOST_STUBS):
            while missing() > alike and not self._add_one(missing() / share, per_length, draw):
                share *= 2
                if share > SMALLEST:
                    return
            if missing() <= alike:
                return

    def load_per_length(self, wire: Wire) -> float:
        """Return the capacitance of a stub per length. [aF/dbu]"""
        stack = self.sheet.stack
        um, conductor = stack.technology.dbu_um, stack.conductors[stack.index(wire.layer)]
        return (conductor.area_af_um2 or 0.0) * wire.width * um * um + 2 * (conductor.fringe_af_um or 0.0) * um

    def draw_wire(self, stub: Wire) -> None:
        """Draw a stub as a wire, which counts in the length of the net."""
        self.metal.wires = [*self.metal.wires, stub]
        self.metal.order = [*self.metal.order, stub]
        self.stubs.append(stub)

    def draw_patches(self, stub: Wire) -> None:
        """Draw a stub as metal beside wires."""
        self.metal.patches = [*self.metal.patches, *_patches(stub)]
        self.stubs.append(stub)

    def _add_one(self, amount: float, per_length: Callable[[Wire], float], draw: Callable[[Wire], None]) -> bool:
        """Add one stub of an amount where there is room; return whether there is."""
        metal, level_of = self.metal, self.sheet.stack.index
        drawn = metal.rects(self.sheet.stack)
        own = [*drawn, *self.finisher.own]
        before: dict[int, int] = {}
        for wire, stub in self._places(amount, per_length):
            level = level_of(stub.layer)
            if not self._is_free(level, stub):
                continue
            beyond = _beyond(stub, wire.width + self.sheet.stack.technology.grid)
            if any(at == level and too_close(part, its, 1) for part in beyond for at, its in own):
                continue
            if next(self.tries, None) is None:
                return False
            # a stub changes the metal of its level only
            here = [rect for at, rect in drawn if at == level]
            if level not in before:
                before[level] = sum(1 for _ in self.finisher.flaws_of(level, here))
            flaws = self.finisher.flaws_of(level, [*here, *wire_rects(stub)])
            if all(number <= before[level] for number, _ in enumerate(flaws, 1)):
                draw(stub)
                return True
        return False

    def _is_free(self, level: int, stub: Wire) -> bool:
        """Return whether nothing of other nets is in the way of a stub, nor of a shorter one from its place before."""
        (x, y), (to_x, to_y) = stub.points[:2]
        long = abs(to_x - x) + abs(to_y - y)
        place = stub.layer, (x, y), ((to_x > x) - (to_x < x), (to_y > y) - (to_y < y)), stub.width
        if long >= self.blocked.get(place, long + 1):
            return False
        first, *rest = wire_rects(stub)
        if self._outside(first) or self.finisher.in_the_way(level, first):
            self.blocked[place] = long
            return False
        return not any(self._outside(rect) or self.finisher.in_the_way(level, rect) for rect in rest)

    def _outside(self, rect: Rect) -> bool:
        left, bottom, right, top = self.sheet.area
        return rect[0] < left or rect[1] < bottom or rect[2] > right or rect[3] > top

    def _places(self, amount: float, per_length: Callable[[Wire], float]) -> Iterator[tuple[Wire, Wire]]:
        """Yield wires and stubs that they may get.

        Those that make another stub longer come first, then straight ones, and those on long straight parts first.
        """
        grid, pitch = self.sheet.stack.technology.grid, self.sheet.pitch
        starts = list(self._starts())
        for outwards in (None, *OUTWARDS):
            for wire, (x, y), (dx, dy) in starts:
                share = per_length(wire)
                # a stub reaches from the middle of its wire, and half a width beyond its end
                long = int(amount / share) // grid * grid if share else 0
                out = long if outwards is None else outwards * pitch // grid * grid
                rest = long - out
                if long < grid or rest < 0 or (outwards is not None and rest < 2 * wire.width):
                    continue
                corner = x + dx * out, y + dy * out
                if outwards is None:
                    yield wire, Wire(wire.layer, ((x, y), corner), wire.width)
                    continue
                for side in (1, -1):
                    end = corner[0] + side * dy * rest, corner[1] + side * dx * rest
                    yield wire, Wire(wire.layer, ((x, y), corner, end), wire.width)

    def _starts(self) -> Iterator[tuple[Wire, Point, Point]]:
        """Yield a wire, stub or pin, a point on it, and a direction across or onwards."""
        grid = self.sheet.stack.technology.grid
        for stub in self.stubs:
            (x, y), (to_x, to_y) = stub.points[-2:]
            yield stub, (to_x, to_y), ((to_x > x) - (to_x < x), (to_y > y) - (to_y < y))
        step = max(grid, self.sheet.pitch // 2 // grid * grid)
        parts = [
            (abs(b[0] - a[0]) + abs(b[1] - a[1]), number, a, b)
            for number, wire in enumerate(self.wires)
            for a, b in pairwise(wire.points)
        ]
        for length, number, a, b in sorted(parts, key=lambda part: (-part[0], part[1:])):
            along = ((b[0] > a[0]) - (b[0] < a[0]), (b[1] > a[1]) - (b[1] < a[1]))
            for at in range(0, length + 1, step):
                point = a[0] + along[0] * at, a[1] + along[1] * at
                for side in (1, -1):
                    yield self.wires[number], point, (side * along[1], side * along[0])
            yield self.wires[number], a, (-along[0], -along[1])
            yield self.wires[number], b, along
        stack = self.sheet.stack
        for terminal in self.net.terminals:
            level, box = stack.index(terminal.layer), terminal.box
            wire = Wire(terminal.layer, (), stack.width(level, self.net.width))
            half = wire.width // 2
            if terminal.layer in self.net.avoid_layers:
                continue
            if not stack.wired[level] or min(box.width(), box.height()) < wire.width:
                continue
            x, y = (each // grid * grid for each in (box.center().x, box.center().y))
            yield wire, (-(-box.left // grid) * grid + half, y), (-1, 0)
            yield wire, (box.right // grid * grid - half, y), (1, 0)
            yield wire, (x, -(-box.bottom // grid) * grid + half), (0, -1)
            yield wire, (x, box.top // grid * grid - half), (0, 1)


def _patches(stub: Wire) -> list[Patch]:
    return [Patch(stub.layer, rect) for rect in wire_rects(stub)]


def _beyond(stub: Wire, first: int) -> list[Rect]:
    """Return the rectangles of a stub without its first part."""
    (x1, y1), (x2, y2) = stub.points[:2]
    length = abs(x2 - x1) + abs(y2 - y1)
    if length <= first:
        return list(wire_rects(replace(stub, points=stub.points[1:])))
    start = x1 + (x2 - x1) * first // length, y1 + (y2 - y1) * first // length
    return list(wire_rects(replace(stub, points=(start, *stub.points[1:]))))


def capacitance(technology: Technology, regions: Mapping[str, kdb.Region]) -> float | None:
    """Return the capacitance of metal to the substrate, other metal left out [aF]; None where numbers are missing.

    Args:
        technology: States the numbers of each conductor.
        regions: Merged metal by the name of its conductor.
    """
    found, um = 0.0, technology.dbu_um
    for conductor in technology.conductors:
        region = regions.get(conductor.name)
        if region is None:
            continue
        if conductor.area_af_um2 is None or conductor.fringe_af_um is None:
            return None
        found += region.area() * um * um * conductor.area_af_um2 + region.perimeter() * um * conductor.fringe_af_um
    return found


def capacitance_of(sheet: Sheet, metal: NetMetal) -> float | None:
    """Return the capacitance of what a net draws to the substrate [aF]; None where numbers are missing."""
    import klayout.db as kdb

    regions: dict[str, kdb.Region] = {}
    for layer, rect in metal.layers(sheet.stack):
        regions.setdefault(layer, kdb.Region()).insert(kdb.Box(*rect))
    return capacitance(sheet.stack.technology, {name: region.merged() for name, region in regions.items()})


def missing_cuts(few: NetMetal, many: NetMetal) -> list[str]:
    """Return as many cuts as one net has fewer vias than another, those first that it has fewer of."""
    own, other = (Counter(via.cut for via in metal.vias) for metal in (few, many))
    wanted = sorted((other - own).elements())
    return wanted[: max(0, len(many.vias) - len(few.vias))]


def add_vias(sheet: Sheet, net: NetRequest, metal: NetMetal, cuts: Sequence[str]) -> None:
    """Give a net vias of two cuts where there is room.

    Args:
        sheet: Holds the metal of all other nets.
        net: A net without a stated current, since these vias carry none; it is not entered on the sheet now.
        metal: Its metal, which is changed.
        cuts: Name of the cut of each via. Where there is no room for one, one of the other side of a wire serves.
    """
    if net.current_ma is not None:
        return
    finisher = Finisher(sheet.stack, sheet.occupancy, net.name, sheet.own[net.name])
    tries = iter(range(MOST_VIA_TRIES))
    for wanted in cuts[:MOST_VIAS]:
        places = sorted(_places(sheet, net, metal), key=lambda via: via.cut != wanted)
        new = next((more for via in places for more in [_with_via(sheet, finisher, metal, via, tries)] if more), None)
        if new is None:
            return
        metal.vias, metal.patches, metal.order = new.vias, new.patches, new.order


def _with_via(sheet: Sheet, finisher: Finisher, metal: NetMetal, via: Via, tries: Iterator[int]) -> NetMetal | None:
    """Return the metal of a net with one more via; None where the rules leave no room for it, or without tries."""
    stack = sheet.stack
    cut = cut_index(stack, via.cut)
    if not finisher.fits(via, cut, metal.vias) or not _is_free(sheet, finisher, pads(stack, via)):
        return None
    if next(tries, None) is None:
        return None
    order = [*metal.order, (via.cut, via.x, via.y)]
    more = replace(metal, vias=sorted([*metal.vias, via], key=str), patches=list(metal.patches), order=order)
    for level in (cut, cut + 1):
        finisher.enlarge_small(more, level)
    patches = [(stack.index(patch.layer), patch.rect) for patch in more.patches[len(metal.patches) :]]
    if not _is_free(sheet, finisher, patches) or len(finisher.flaws(more)) > len(finisher.flaws(metal)):
        return None
    return more


def _is_free(sheet: Sheet, finisher: Finisher, metal: Sequence[tuple[int, Rect]]) -> bool:
    left, bottom, right, top = sheet.area
    inside = all(r[0] >= left and r[1] >= bottom and r[2] <= right and r[3] <= top for _, r in metal)
    return inside and not any(finisher.in_the_way(level, rect) for level, rect in metal)


def _places(sheet: Sheet, net: NetRequest, metal: NetMetal) -> Iterator[Via]:
    """Yield vias of two cuts on the wires of a net, on long straight parts first."""
    stack, grid = sheet.stack, sheet.stack.technology.grid
    step = max(grid, sheet.pitch // grid * grid)
    parts = [
        (abs(b[0] - a[0]) + abs(b[1] - a[1]), number, a, b)
        for number, wire in enumerate(metal.wires)
        for a, b in pairwise(wire.points)
    ]
    closed = {stack.index(layer) for layer in net.avoid_layers}
    for length, number, (x, y), (to_x, to_y) in sorted(parts, key=lambda part: (-part[0], part[1:])):
        level = stack.index(metal.wires[number].layer)
        along = (to_x > x) - (to_x < x), (to_y > y) - (to_y < y)
        for cut, other in ((level - 1, level - 1), (level, level + 1)):
            if not 0 <= cut < len(stack.cuts) or not stack.wired[other] or other in closed:
                continue
            for at in range(0, length + 1, step):
                for columns, rows in ((2, 1), (1, 2)) if along[0] else ((1, 2), (2, 1)):
                    yield Via(stack.cuts[cut].name, x + along[0] * at, y + along[1] * at, columns, rows)


def lengthen(board: Sheet, net: NetRequest, metal: NetMetal, by: int) -> int:
    """Make the wires of a net, which is not entered on the board now, longer and return by how much. [dbu]

    It is never more than ``by``, and less where there is no room.
    """
    grid = board.stack.technology.grid
    whole = by // (2 * grid)
    tries = iter(range(MOST_BUMP_TRIES))
    corners: set[Point] = set()
    for count in (number for number in ROWS if number <= whole):
        deeper = whole % count
        depths = [(whole // count + 1) * grid] * deeper + [whole // count * grid] * (count - deeper)
        if _add_bumps(board, net, metal, depths, (tries, corners)):
            return whole * 2 * grid
    remaining, depth, bumps = whole * 2 * grid, whole * grid // 2, 0
    tries = iter(range(MOST_BUMP_TRIES))
    while remaining > 0 and depth >= grid and bumps < MOST_BUMPS:
        depth = min(depth, remaining // 2) // grid * grid
        if depth and _add_bumps(board, net, metal, [depth], (tries, corners)):
            remaining -= 2 * depth
            bumps += 1
        else:
            depth //= 2
    return whole * 2 * grid - remaining


def _add_bumps(
    board: Sheet, net: NetRequest, metal: NetMetal, depths: Sequence[int], so_far: tuple[Iterator[int], set[Point]]
) -> bool:
    """Add a row of bumps where there is room for it; return whether there is.

    Args:
        board: Holds the metal of all other nets.
        net: Whose wires become longer.
        metal: Its metal.
        depths: Of each bump. [dbu]
        so_far: Tries that are left, and the corners of all bumps of the net: those of these are added.
    """
    tries, corners = so_far
    finisher = Finisher(board.stack, board.occupancy, net.name, board.own[net.name])
    checks: dict[Wire, BumpCheck] = {}
    for wire, longer, gone, new in _candidates(board, metal, depths, corners):
        if next(tries, None) is None:
            return False
        level = board.stack.index(wire.layer)
        outside = any(
            rect[0] < board.area[0] or rect[1] < board.area[1] or rect[2] > board.area[2] or rect[3] > board.area[3]
            for rect in new
        )
        if outside or any(finisher.in_the_way(level, rect) for rect in new):
            continue
        if wire not in checks:
            checks[wire] = BumpCheck(finisher, metal, wire)
        if any(checks[wire].needs(bare) for bare in gone) or checks[wire].spoils(longer):
            continue
        _exchange(metal, wire, longer)
        corners.update({*longer.points} - {*wire.points})
        return True
    return False


class BumpCheck:
    """Judges bumps of one wire: they change no metal but that of the wire, so only its level is looked at."""

    def __init__(self, finisher: Finisher, metal: NetMetal, wire: Wire) -> None:
        stack = finisher.stack
        rest = replace(metal, wires=[other for other in metal.wires if other is not wire]).rects(stack)
        self.finisher, self.level = finisher, stack.index(wire.layer)
        self.rest = [rect for level, rect in rest if level == self.level]
        self.fixed = [rect for level, rect in finisher.own if level == self.level]
        self.before = sum(1 for _ in finisher.flaws_of(self.level, [*self.rest, *wire_rects(wire)]))

    def needs(self, gone: Rect) -> bool:
        """Return whether other metal of the net meets or touches the part of the wire that a bump leaves bare."""
        return any(too_close(rect, gone, 1) for rect in (*self.rest, *self.fixed))

    def spoils(self, longer: Wire) -> bool:
        """Return whether the net breaks more rules with the wire like this."""
        flaws = self.finisher.flaws_of(self.level, [*self.rest, *wire_rects(longer)])
        return any(number > self.before for number, _ in enumerate(flaws, 1))


def _candidates(
    board: Sheet, metal: NetMetal, depths: Sequence[int], corners: set[Point]
) -> Iterator[tuple[Wire, Wire, list[Rect], list[Rect]]]:
    """Yield a wire, the same with bumps, what these leave bare, and what they add; long straight parts first.

    Parts between two ``corners`` of earlier bumps get none.
    """
    stack, grid = board.stack, board.stack.technology.grid
    parts = [
        (abs(b[0] - a[0]) + abs(b[1] - a[1]), number, index)
        for number, wire in enumerate(metal.wires)
        for index, (a, b) in enumerate(pairwise(wire.points))
        if not {a, b} <= corners
    ]
    for length, number, index in sorted(parts, key=lambda part: (-part[0], part[1:])):
        wire = metal.wires[number]
        level = stack.index(wire.layer)
        apart = wire.width + stack.space(level, wide=wire.width > (stack.conductors[level].wide_width or wire.width))
        apart = -(-apart // grid) * grid
        (x1, y1), (x2, y2) = wire.points[index], wire.points[index + 1]
        along = ((x2 > x1) - (x2 < x1), (y2 > y1) - (y2 < y1))
        last = length - 2 * len(depths) * apart
        for start in range(apart, last + 1, max(grid, board.pitch // 2 // grid * grid)):
            for side in (1, -1):
                row: list[Point] = []
                bare: list[Rect] = []
                for place, depth in enumerate(depths):
                    at = start + 2 * place * apart
                    one, two = ((x1 + along[0] * d, y1 + along[1] * d) for d in (at, at + apart))
                    off = (-along[1] * side * depth, along[0] * side * depth)
                    row += [one, (one[0] + off[0], one[1] + off[1]), (two[0] + off[0], two[1] + off[1]), two]
                    bare += wire_rects(replace(wire, points=(one, two)))
                points = (*wire.points[: index + 1], *row, *wire.points[index + 1 :])
                yield wire, replace(wire, points=points), bare, list(wire_rects(replace(wire, points=tuple(row))))


def _exchange(metal: NetMetal, old: Wire, new: Wire) -> None:
    metal.wires = [new if wire is old else wire for wire in metal.wires]
    metal.order = [new if entry is old else entry for entry in metal.order]
