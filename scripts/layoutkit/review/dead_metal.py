"""Findings on metal that carries nothing: stubs and combs, ways that only close a loop, and meanders."""

from __future__ import annotations

from collections import defaultdict, deque
from functools import cache, cached_property
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

import klayout.db as kdb

from layoutkit.review.finding import Spot
from layoutkit.review.floorplan import rails_of
from layoutkit.review.subject import HEADS_UM, box_around, gap_between, longer_side, region_of, turned
from layoutkit.review.ways import Pieces, rectangles

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from layoutkit.review.finding import Remark
    from layoutkit.review.matched_roles import MatchedDevices
    from layoutkit.review.subject import Subject


_EQUAL = 0.05  # stubs whose lengths differ by at most this much balance each other, as half of the hand layouts do [1]
_OWN_UM = 1.0  # so near to its own devices, metal of a net is a mesh over them [um]
_SHORT_UM = 5.0  # dead pieces up to this length are one finding, as an engineer says it once [um]
_MIRRORED_UM = 10.0  # dead pieces beyond this length are named although the image of the net has the same [um]
_SUPPLY_UM = 4.0  # dead pieces of a supply beyond this length are named [um]
_MESH = 2000  # contacts beyond which a supply is a mesh
_EDGE_UM = 0.5  # metal this near to the edge of the layout is at the edge [um]
_EDGES = 0.1  # share of the edges of pads in the length of a way that is a wire [1]
_STRAPS_UM = 2.5  # from an array of interleaved transistors to the straps at its sides [um]
_STRAIGHT = 0.2  # of the longer side of a way: the shorter one of a strap [1]
_DOUBLE_UM = 1.0  # from cut to cut along a wire from which on what they join to it carries its current, too [um]
_ROW_UM = 5.0  # gap within which matched transistors are one row [um]
_FOLD = 3  # the legs of a fold are at most so many minimum spaces apart
_LOOP_UM = 5.0  # ways up to this length may join two straps of one device twice [um]


class Stub(NamedTuple):
    """Metal that carries nothing: conductor, box, length, area, sides of the wire that it ends [dbu], and in words.

    Metal joined to its net by several cuts has area 0, so that it never counts toward a must.
    """

    conductor: str
    box: kdb.Box
    length: int
    area: int
    whole: tuple[int, int]
    how: str


class DeadMetal:
    """The findings on metal that carries nothing of one layout.

    Args:
        subject: The layout.
        groups: Its matched groups.
    """

    def __init__(self, subject: Subject, groups: Sequence[MatchedDevices]) -> None:
        self.subject, self.groups = subject, groups
        self._dead = cache(self._searched)
        self.signals = [net for net in subject.nets if net not in subject.supplies]

    def findings(self) -> Iterator[Remark]:
        """Yield the nets with metal that leads nowhere, and whether there is too much of it in all."""
        subject = self.subject
        least = subject.technology.to_dbu(subject.limits["dead-metal.piece"].should or 0.0)
        whole = sum(region.area() for net in self.signals for region in subject.metal(net).values())
        dead_area, places, short = 0, kdb.Box(), subject.technology.to_dbu(_SHORT_UM)
        for net in self.signals:
            if net in subject.circuit.black_box_nets:
                continue
            stubs = [each for each in self._dead(net, least) if not self._balances(net, each, least)]
            if not stubs:
                continue
            dead_area += sum(each.area for each in stubs if not self._is_over_own(net, each))
            found = self._of_net(net, stubs, "" if any(each.length > short for each in stubs) else "short ends")
            places += box_around(each.box for each in found)
            yield from found
        yield from self.supply_ends()
        if whole:
            why = f"{100 * dead_area / whole:.3g} % of the area of all signal wires carries nothing"
            yield from subject.finding("dead-metal", dead_area / whole, why, where=places)

    def supply_ends(self) -> Iterator[Remark]:
        """Yield the supplies with a wire that ends inside the layout without leading anywhere, and is no rail."""
        subject, edge = self.subject, self.subject.technology.to_dbu(_EDGE_UM)
        short, inner = subject.technology.to_dbu(_SUPPLY_UM), subject.metal_box.enlarged(-edge)
        for net in [net for net in subject.nets if net in subject.supplies]:
            if subject.shapes(net, "contact").count() > _MESH:
                continue  # that of a power device
            rails = region_of(box for upright in (False, True) for _, box in rails_of(subject, net, upright=upright))
            beyond = {each: (kdb.Region(each.box) - rails).bbox() for each in self._dead(net, short)}
            stubs = [each for each, box in beyond.items() if longer_side(box) > short and box.inside(inner)]
            yield from self._of_net(net, stubs, "supplies")

    def _of_net(self, net: str, stubs: Sequence[Stub], cause: str) -> list[Remark]:
        """Return the dead metal of a net as one finding, at the longest piece."""
        places = [] if stubs else [Spot(kdb.Box(), "", "")]
        for stub in sorted(stubs, key=lambda each: (-each.length, str(each.box))):
            length = f"{self.subject.um(stub.length):.3g} um of {net}"
            places.append(Spot(stub.box, f"{length} {stub.how}", length))
        most, first = self.subject.um(max((each.length for each in stubs), default=0)), places[0]
        return self.subject.finding(
            "dead-metal.piece", most, first.why, where=first.box, nets=[net], cause=cause, places=places[1:]
        )

    @cached_property
    def _equalised(self) -> set[str]:
        """The nets whose lengths a constraint makes equal."""
        return {net for group in self.subject.constraints.net_lengths for net in group.nets}

    def _is_over_own(self, net: str, stub: Stub) -> bool:
        """Return whether a stub lies over matched bars or plates on its net, or all along a row of transistors."""
        subject = self.subject
        heads, half, beyond = (subject.technology.to_dbu(um) for um in (HEADS_UM, _ROW_UM / 2, _OWN_UM))
        for group in self.groups:
            if any(net in placed.device.terminals.values() for placed in group.devices):
                rows = [box_around(placed.box for placed in group.devices).enlarged(heads)]
                if group.devices[0].device.is_mos:
                    near = region_of(placed.box.enlarged(half) for placed in group.relatives).merged()
                    rows = [row.bbox().enlarged(beyond - half) for row in near.each()]
                if any(stub.box.inside(row) for row in rows):
                    return True
        return False

    def _balances(self, net: str, stub: Stub, least: int) -> bool:
        """Return whether dead metal makes a net as long as another one, or is the image of such metal."""
        image = self.subject.net_images.get(net)
        if net in self._equalised or any(stub.whole in self._sizes(other, stub) for other in self._fellows[net]):
            return True
        if image is None:
            return False
        for other in self._dead(image, least):
            if other.conductor == stub.conductor and abs(other.length - stub.length) <= _EQUAL * stub.length:
                return stub.length <= self.subject.technology.to_dbu(_MIRRORED_UM)
        return stub.whole in self._sizes(image, stub)

    def _sizes(self, net: str, stub: Stub) -> set[tuple[int, int]]:
        return {(p.bbox().width(), p.bbox().height()) for p in self.subject.shapes(net, stub.conductor).each()}

    @cached_property
    def _fellows(self) -> Mapping[str, set[str]]:
        """Each net's fellows at the drains, gates and sources of a matched group, whose wires cross it alike."""
        found: dict[str, set[str]] = defaultdict(set)
        for group in self.groups:
            if group.devices[0].device.is_mos:
                nets = {net for each in group.relatives for end, net in each.device.terminals.items() if end != "b"}
                for net in nets - self.subject.supplies.nets:
                    found[net] |= nets & self.subject.number.keys() - {net}
        return found

    def _searched(self, net: str, least: int) -> list[Stub]:
        """Return the metal of a net that leads nowhere, in pieces longer than ``least``. [dbu]"""
        subject, technology = self.subject, self.subject.technology
        pieces = _Rectangles(subject, net)
        pieces.hold(technology.conductors[0].name, subject.shapes(net, "contact"))
        for conductor, plate in self._plates(net):
            pieces.hold(conductor, plate)
        for conductor, end in subject.ends_of_crossings(net):
            pieces.hold(conductor, kdb.Region(end.enlarged(1, 1)))
        for conductor, point, _ in subject.labels.get(net, ()):
            pieces.hold_port(conductor, point, technology.conductor(conductor).width // 2)
            pieces.hold(conductor, subject.shapes(net, conductor) & kdb.Region(self._way_out(conductor, point)))
        bipolar = (placed for placed, _ in subject.feeds(net) if placed.device.type in {"npn", "pnp"})
        over = region_of(placed.box for placed in bipolar)  # whose contacts are those of their cell
        for name, metal in subject.metal(net).items():
            pieces.hold(name, metal & over)
        found, every = [], pieces.dead(pieces.gone)
        ends = every if pieces.ends == pieces.gone else pieces.dead(pieces.ends)
        live = {name: metal - every.get(name, kdb.Region()) for name, metal in subject.metal(net).items()}
        for name, dead in every.items():
            whole, plain = subject.shapes(net, name), ends.get(name, kdb.Region())
            most = max(least, technology.conductor(name).width)
            for polygon in dead.each():
                if longer_side(polygon.bbox()) < most:
                    continue
                length, alone = _reach(polygon.bbox(), live[name]), kdb.Region(polygon)
                ends_here = [each for each in (alone & plain).merged().each() if longer_side(each.bbox()) > least]
                area, others = sum(each.area() for each in ends_here), (live[other] for other in live if other != name)
                if not area and any(2 * (alone & other).area() > polygon.area() for other in others):
                    continue  # a landing pad
                if length > most:
                    around = whole.interacting(alone).bbox()
                    size = (around.width(), around.height())
                    found.append(Stub(name, polygon.bbox(), length, area, size, "lead nowhere"))
        return found if net in subject.supplies else found + self._needless(net, pieces, least)

    def _way_out(self, conductor: str, label: kdb.Point) -> kdb.Box:
        """Return the end of the straight way from a label that is not at the edge to the nearest side. [dbu]"""
        technology, box = self.subject.technology, self.subject.metal_box
        spec, edge = technology.conductor(conductor), technology.to_dbu(2 * _EDGE_UM)
        if not box.enlarged(-edge, -edge).contains(label):
            return kdb.Box()
        near = kdb.Box(label, label).enlarged(spec.width + spec.space)
        ends = {
            "left": kdb.Box(box.left, near.bottom, box.left + edge, near.top),
            "bottom": kdb.Box(near.left, box.bottom, near.right, box.bottom + edge),
            "right": kdb.Box(box.right - edge, near.bottom, box.right, near.top),
            "top": kdb.Box(near.left, box.top - edge, near.right, box.top),
        }
        return ends[self.subject.sides_of(kdb.Box(label, label))[0]]

    def _needless(self, net: str, pieces: _Rectangles, least: int) -> list[Stub]:
        """Return the loops and meanders of a net, apart from the meshes over its own devices."""
        subject, found = self.subject, []
        reach, heads = subject.technology.to_dbu(_OWN_UM), subject.technology.to_dbu(HEADS_UM)
        fed = region_of(placed.box.enlarged(reach, reach) for placed, _ in subject.feeds(net))
        own = fed + region_of(  # plates and bulks, and the straps that a plate has
            placed.box.enlarged(0 if placed.device.is_mos else heads)
            for placed in subject.placed
            if net in placed.device.terminals.values()
        )
        both_sides = own + self._arrays(net)
        for how, chains in (("only close a loop", pieces.loops()), ("meander", pieces.meanders())):
            for chain in chains:
                (name, first), (_, last) = chain[0], chain[-1]
                box, area = box_around(box for _, box in chain), sum(box.area() for _, box in chain)
                length = sum(max(box.width(), box.height()) for _, box in chain)
                thin = [b for n, b in chain if min(b.width(), b.height()) < subject.technology.conductor(n).width]
                if sum(map(longer_side, thin)) > _EDGES * length:
                    continue  # the edge of a pad or a kink, which is no wire
                if length <= max(least, subject.technology.to_dbu(_LOOP_UM) if how[0] == "o" else 0):
                    continue
                straight = min(box.width(), box.height()) <= _STRAIGHT * longer_side(box)
                held = both_sides if straight and how != "meander" else own
                tight = gap_between(first, last) <= _FOLD * subject.technology.conductor(name).space
                if how == "meander" and tight and longer_side(box) > heads:
                    held = fed  # a fold so long and narrow leads around no head of a device
                free = (region_of(box for _, box in chain) - held).area() * 2 > area
                if free and (how != "meander" or self._is_alone(net, name, box)):
                    found.append(Stub(name, box, length, int(area), (0, 0), how))
        return found

    def _arrays(self, net: str) -> kdb.Region:
        """Return the places of arrays of interleaved transistors on a net, at both sides of which it has straps."""
        found, reach = kdb.Region(), self.subject.technology.to_dbu(_STRAPS_UM)
        for group in self.groups:
            boxes = [placed.box for placed in group.devices if placed.device.is_mos]
            woven = [a for n, a in enumerate(boxes) if any(a.overlaps(b) for m, b in enumerate(boxes) if m != n)]
            if woven and any(net in placed.device.terminals.values() for placed in group.devices):
                found.insert(box_around(woven).enlarged(reach))
        return found

    def _is_alone(self, net: str, name: str, box: kdb.Box) -> bool:
        """Return whether a conductor has no other net in a box that a wire could go around."""
        layer = self.subject.layer(self.subject.technology.conductor(name).layer)
        return ((layer & kdb.Region(box)) - self.subject.shapes(net, name)).is_empty()

    def _plates(self, net: str) -> Iterator[tuple[str, kdb.Region]]:
        """Yield the plates of capacitors and dummies on a net, with the conductors that they are or lie on."""
        subject = self.subject
        drawn = [(p.fingers[0], p.boxes) for p in subject.placed if net in p.device.terminals.values()]
        idle = [f for f in subject.extraction.dummies if subject.number.get(net) in f.nets.values()]
        drawn += [(finger, (subject.bodies.box(finger),)) for finger in idle]
        for finger, boxes in drawn:
            spec = subject.technology.passives.get(finger.device) if finger.kind.name == "capacitor" else None
            for part in ("top", "bottom"):
                if spec is not None and part in spec.parts:
                    yield subject.technology.conductor(spec.parts[part]).name, region_of(boxes)


class _Rectangles(Pieces):
    """The metal of a net as rectangles, each as wide as the wire, and where they meet. [dbu]

    A rectangle without contact, port or plate that meets others in one place at most leads nowhere; so does what one
    has beyond the outermost of these along its longer side.
    """

    def __init__(self, subject: Subject, net: str) -> None:
        vars(self).update(vars(rectangles(subject, net)))
        self.boxes = [(name, piece.bbox()) for name, piece in self.pieces]
        self.held: dict[int, list[kdb.Box]] = defaultdict(list)
        self.least_way = subject.technology.to_dbu(_DOUBLE_UM)

    def hold(self, conductor: str, places: kdb.Region) -> None:
        """Note places of a conductor that current leaves at."""
        for place in places.each():
            for number in self.at(conductor, place.bbox()):
                self.held[number].append(place.bbox())

    def hold_port(self, conductor: str, label: kdb.Point, half: int) -> None:
        """Note the place of a port's label, up to the end of its wire where nothing else is on that side of it."""
        place = kdb.Box(label, label).enlarged(half, half)
        for number in self.at(conductor, place):
            box = self.boxes[number][1]
            used = [*self.held[number], *(link.where for link in self.links[number])]
            free = [
                side
                for side in _beyond(box, place)
                if box.contains(label) and not any(side.touches(each) for each in used)
            ]
            self.held[number] += [place, *free]

    @cached_property
    def ends(self) -> set[int]:
        """The rectangles that lead nowhere as a whole, joined with one other at most, or with such ones."""
        gone: set[int] = set()
        waiting = list(range(len(self.boxes)))
        while waiting:
            number = waiting.pop()
            near = [link.other for link in self.links[number] if link.other not in gone]
            if number not in gone and number not in self.held and len(near) < 2:
                gone.add(number)
                waiting += near
        return gone

    @cached_property
    def gone(self) -> set[int]:
        """The ends, and biconnected blocks with one articulation point: several cuts join these, and they lead nowhere.

        A block stays joined without any one of its rectangles; Hopcroft and Tarjan, "Efficient algorithms for graph
        manipulation", 1973.
        """
        import networkx as nx

        gone, of = set(self.ends), defaultdict[int, set[int]](set)
        pairs = ((number, link.other) for number, links in self.links.items() for link in links)
        joined = nx.Graph(pair for pair in pairs if gone.isdisjoint(pair))
        blocks = [set(block) for block in nx.biconnected_components(joined)]
        for number, block in enumerate(blocks):
            for each in block:
                of[each].add(number)
        waiting = list(range(len(blocks)))
        while waiting:
            number = waiting.pop()
            joints = [each for each in blocks[number] if len(of[each]) > 1]
            free = blocks[number].difference(joints)
            if len(joints) > 1 or not free.isdisjoint(self.held) or any(self._doubles(free, each) for each in joints):
                continue
            gone |= free
            blocks[number] = set()
            for each in joints:
                of[each].discard(number)
                waiting += of[each]
        return gone

    def _doubles(self, free: AbstractSet[int], joint: int) -> bool:
        """Return whether rectangles lie along another one, so that both carry its current."""
        places = [link.where for each in free for link in self.links[each] if link.other == joint]
        return longer_side(box_around(places)) > self.least_way

    def dead(self, gone: AbstractSet[int]) -> dict[str, kdb.Region]:
        """Return the metal that leads nowhere where some rectangles do, by conductor."""
        found: dict[str, kdb.Region] = defaultdict(kdb.Region)
        for number, (name, box) in enumerate(self.boxes):
            if number in gone:
                found[name].insert(box)
                continue
            for beyond in _beyond(box, box_around(self._used(number, gone=gone))):
                found[name].insert(beyond)
        return {name: region.merged() for name, region in found.items()}

    def _near(self, number: int) -> set[int]:
        return {link.other for link in self.links[number]} - self.gone

    def _is_plain(self, number: int, near: Collection[int]) -> bool:
        """Return whether a rectangle is only a part of a way: nothing ends on it, and it joins two others."""
        return number not in self.held and len(near) == 2

    def loops(self) -> list[list[tuple[str, kdb.Box]]]:
        """Return the ways between two places of the net that another way joins as well, the shortest of each loop.

        Once the short ones, such as those around the edges of pads, are gone, others are found through them.
        """
        near = {number: self._near(number) for number in range(len(self.boxes)) if number not in self.gone}
        way_of, needed = dict[int, frozenset[int]](), set[int]()
        waiting: list[tuple[bool, int, int, frozenset[int]]] = []
        found: list[list[tuple[str, kdb.Box]]] = []

        def note(starts: Iterable[int]) -> None:
            for start in starts:
                if start not in way_of and self._is_plain(start, near[start]):
                    ways = self._way(start, near)
                    way_of.update(dict.fromkeys(ways, ways))
                    heappush(waiting, self._rank(ways, near))

        note(near)
        while waiting:
            rank = heappop(waiting)
            ways = rank[-1]
            if any(way_of.get(each) is not ways for each in ways) or not needed.isdisjoint(ways):
                continue  # it is part of a longer one, or the only way
            if rank != (now := self._rank(ways, near)):
                heappush(waiting, now)
                continue
            ends = _ends(ways, near)
            if not _are_joined(ends, ways, near):
                needed |= ways
                continue
            for end in ends:
                near[end] -= ways
            for end in ends:
                for merged in self._way(end, near) if self._is_plain(end, near[end]) else ():
                    way_of.pop(merged, None)
            note(sorted(ends))
            doubled = sum(self._length(each) for each in ways if self._doubled(each))
            if 2 * doubled <= sum(map(self._length, ways)):
                found.append([self.boxes[each] for each in sorted(ways)])
        return found

    def _way(self, start: int, near: Mapping[int, AbstractSet[int]]) -> frozenset[int]:
        """Return the plain rectangles that one of them is joined with by nothing but such ones."""
        found, front = {start}, [start]
        while front:
            new = {each for each in near[front.pop()] if self._is_plain(each, near[each])} - found
            found |= new
            front += new
        return frozenset(found)

    def _rank(
        self, ways: frozenset[int], near: Mapping[int, AbstractSet[int]]
    ) -> tuple[bool, int, int, frozenset[int]]:
        """Return the order of a way: those beside a rectangle that joins the same ones first, then the short ones."""
        beside = [near[end] | {end} for end in _ends(ways, near)]
        far = bool(beside) and not set[int]().union(*beside).intersection(*beside) - ways
        return far, sum(map(self._length, ways)), min(ways), ways

    def _length(self, number: int) -> int:
        return max(self.boxes[number][1].width(), self.boxes[number][1].height())

    def _doubled(self, number: int) -> bool:
        """Return whether another conductor of the net lies along a rectangle, so that both carry the current."""
        name, box = self.boxes[number]
        others = (shapes.each_overlapping(box) for other, shapes in self.shapes.items() if other != name)
        over = (kdb.Region(box) & region_of(shape.box for found in others for shape in found)).area()
        return over * 2 > box.area()

    def meanders(self) -> list[list[tuple[str, kdb.Box]]]:
        """Return the parts of two legs, joined at one end only, along which a wire leads there and back."""
        found = []
        for middle in set(range(len(self.boxes))) - self.gone:
            if not self._is_plain(middle, self._near(middle)):
                continue
            one, other = sorted(self._near(middle))
            if self._near(one) & self._near(other) - {middle}:
                continue  # a loop
            (name, *_), (same, *_) = self.boxes[one], self.boxes[other]
            for upright in (True, False) if name == same else ():
                base, a, b = (turned(self.boxes[each][1], upright=not upright) for each in (middle, one, other))
                low, high = max(a.bottom, b.bottom), min(a.top, b.top)
                if high <= low or not (a.right <= b.left or b.right <= a.left):
                    continue
                ahead = base.bottom + base.top <= low + high  # the legs lead up (right) from what joins them
                for used in (
                    turned(box, upright=not upright) for leg in (one, other) for box in self._used(leg, middle)
                ):
                    low, high = (low, min(high, used.bottom)) if ahead else (max(low, used.top), high)
                if high > low:
                    sides = (kdb.Box(leg.left, low, leg.right, high) for leg in (a, b))
                    found.append([(name, turned(side, upright=not upright)) for side in sides])
        return found

    def _used(self, number: int, but: int = -1, gone: AbstractSet[int] | None = None) -> list[kdb.Box]:
        """Return where current enters or leaves a rectangle, but for what joins it to another one or to gone ones."""
        gone = self.gone if gone is None else gone
        links = (link.where for link in self.links[number] if link.other not in gone and link.other != but)
        return [*self.held.get(number, ()), *links]


def _ends(ways: AbstractSet[int], near: Mapping[int, AbstractSet[int]]) -> set[int]:
    """Return the rectangles that a way leads to."""
    return {other for each in ways for other in near[each]} - ways


def _are_joined(ends: set[int], without: AbstractSet[int], near: Mapping[int, AbstractSet[int]]) -> bool:
    """Return whether the net joins some rectangles, one at least, without others."""
    if not ends:
        return False
    seen, front = {*without, min(ends)}, deque([min(ends)])
    while front and not ends <= seen:
        new = near[front.popleft()] - seen
        seen |= new
        front += new
    return ends <= seen


def _beyond(box: kdb.Box, used: kdb.Box) -> list[kdb.Box]:
    """Return the parts of a rectangle that lie beyond what is used of it, along its longer side."""
    if used.empty():
        return [box]
    upright = box.width() < box.height()
    box, used = (turned(each, upright=upright) for each in (box, used))
    along = [(box.left, used.left), (used.right, box.right)]
    parts = [kdb.Box(left, box.bottom, right, box.top) for left, right in along if left < right]
    return [turned(each, upright=upright) for each in parts]


def _reach(piece: kdb.Box, live: kdb.Region) -> int:
    """Return how far a piece of metal leads away from the rest of its net. [dbu]"""
    near = live & kdb.Region(piece.enlarged(1, 1))
    if near.is_empty():
        return max(piece.width(), piece.height())
    box = near.bbox()
    return max(box.left - piece.left, piece.right - box.right, box.bottom - piece.bottom, piece.top - box.top)
