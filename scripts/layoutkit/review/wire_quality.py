"""Findings on wires: their length, and metal that carries nothing."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from math import sqrt
from typing import TYPE_CHECKING, NamedTuple

import klayout.db as kdb
import numpy as np

from layoutkit.review.subject import box_around, region_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from layoutkit.review.finding import Finding, Unjudged
    from layoutkit.review.subject import PlacedDevice, Subject

_LEAST_TREE_UM = 1.0
"""Nets whose terminals are nearer to each other than this have no length to judge. [um]"""
_EQUAL = 0.02  # stubs whose lengths differ by at most this much balance each other [1]


class Stub(NamedTuple):
    """Metal that leads nowhere: its conductor, box, length and area, and width and height of the wire it ends. [dbu]"""

    conductor: str
    box: kdb.Box
    length: int
    area: int
    whole: tuple[int, int]


class Wires:
    """The findings on the wires of one layout.

    Args:
        subject: The layout.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.unjudged: list[Unjudged] = []
        self._found: dict[str, list[Stub]] = {}
        self.signals = [net for net in subject.nets if net not in subject.supplies]

    def findings(self) -> Iterator[Finding]:
        """Yield all findings."""
        for net in self.signals:
            yield from self.length(net)
        yield from self.dead_metal()

    def _points(self, net: str) -> dict[PlacedDevice, list[tuple[int, int]]]:
        """Return where each device meets a net: the centres of its contacts. [dbu]"""
        found: dict[PlacedDevice, list[tuple[int, int]]] = defaultdict(list)
        for (placed, _), feed in self.subject.feeds(net).items():
            found[placed] += [(place.x, place.y) for place in feed.points]
            if feed.channels:
                found[placed] += self._gate_contacts(net, placed)
        return {placed: points for placed, points in found.items() if points}

    def _gate_contacts(self, net: str, placed: PlacedDevice) -> list[tuple[int, int]]:
        """Return the contacts on the poly of a device's gates. [dbu]"""
        poly = self.subject.shapes(net, "poly").interacting(region_of(placed.boxes))
        contacts = self.subject.shapes(net, "contact") & poly
        return [(point.x, point.y) for point in (each.bbox().center() for each in contacts.each())]

    def length(self, net: str) -> list[Finding]:
        """Return whether the wires of a net are much longer than they have to be."""
        subject = self.subject
        points = self._points(net)
        if len(points) < 2:
            return []
        ends = [(end.center().x, end.center().y) for _, end in subject.ends_of_crossings(net)]
        places = [*ends, *(point for own in points.values() for point in own)]
        whole = _spanning_tree(places)
        inner = sum(_spanning_tree(own) for own in points.values())
        own_area = kdb.Region()
        for placed in points:
            own_area.insert(box_around([placed.box, *(kdb.Box(x, y, x, y) for x, y in points[placed])]))
        for layer in ("n_tap", "p_tap"):  # the metal on a ring is no way
            own_area += subject.shapes(net, layer).sized(subject.technology.contact.size)
        own_area.merge()
        metal = kdb.Region()
        for region in subject.metal(net).values():
            metal += region
        metal.merge()
        ports = [point for _, point, _ in subject.labels.get(net, ())]
        if ports:  # the way to the port counts as needed
            whole += min(abs(p.x - x) + abs(p.y - y) for p in ports for x, y in places)
        outside = sum(_wire_length(polygon) for polygon in (metal - own_area).each())
        inside = min(sum(_wire_length(polygon) for polygon in (metal & own_area).each()), inner)
        needed = max(whole, inner)
        if subject.um(needed) < _LEAST_TREE_UM:
            return []
        drawn = outside + inside
        return subject.finding(
            "wire-length",
            drawn / needed,
            metal.bbox(),
            f"{net} has {subject.um(drawn):.3g} um of wire and needs {subject.um(needed):.3g} um",
            "place what it joins side by side, and lead the wire straight",
            devices=list(points),
            nets=[net],
        )

    def dead_metal(self) -> Iterator[Finding]:
        """Yield the nets with metal that leads nowhere, and whether there is too much of it in all."""
        subject = self.subject
        least = subject.technology.to_dbu(subject.limits["dead-metal.piece"].should or 0.0)
        whole = sum(region.area() for net in self.signals for region in subject.metal(net).values())
        dead_area, places = 0, kdb.Box()
        for net in self.signals:
            if net in subject.circuit.black_box_nets:
                continue
            stubs = [each for each in self._dead(net, least) if not self._balances(net, each, least)]
            if not stubs:
                continue
            area = sum(each.area for each in stubs)
            dead_area += area
            longest = max(stubs, key=lambda each: (each.length, str(each.box)))
            places += longest.box
            yield from subject.finding(
                "dead-metal.piece",
                subject.um(longest.length),
                longest.box,
                f"{subject.um(longest.length):.3g} um of {net} lead nowhere",
                "cut the stub off",
                nets=[net],
            )
        if whole:
            yield from subject.finding(
                "dead-metal",
                dead_area / whole,
                places,
                f"{100 * dead_area / whole:.3g} % of the area of all signal wires carries nothing",
                "cut stubs and combs off",
            )

    @cached_property
    def _images(self) -> dict[str, str]:
        pairs = [pair for group in self.subject.structure.symmetry for pair in group.net_pairs]
        return {one: other for a, b in pairs for one, other in ((a, b), (b, a)) if other in self.subject.number}

    def _balances(self, net: str, stub: Stub, least: int) -> bool:
        """Return whether a stub makes a net as long as its image is, or has an image itself."""
        image = self._images.get(net)
        if image is None:
            return False
        for other in self._dead(image, least):
            if other.conductor == stub.conductor and abs(other.length - stub.length) <= _EQUAL * stub.length:
                return True
        sizes = {(p.bbox().width(), p.bbox().height()) for p in self.subject.shapes(image, stub.conductor).each()}
        return stub.whole in sizes

    def _dead(self, net: str, least: int) -> list[Stub]:
        """Return the metal of a net that leads nowhere, in pieces longer than ``least``. [dbu]"""
        if net not in self._found:
            self._found[net] = self._searched(net, least)
        return self._found[net]

    def _searched(self, net: str, least: int) -> list[Stub]:
        subject, technology = self.subject, self.subject.technology
        pieces = _Pieces(subject, net)
        pieces.hold(technology.conductors[0].name, subject.shapes(net, "contact"))
        for conductor, plate in self._plates(net):
            pieces.hold(conductor, plate)
        for conductor, end in subject.ends_of_crossings(net):
            pieces.hold(conductor, kdb.Region(end.enlarged(1, 1)))
        for conductor, point, _ in subject.labels.get(net, ()):
            pieces.hold_port(conductor, point, technology.conductor(conductor).width // 2)
        found = []
        for name, dead in pieces.dead().items():
            whole = subject.shapes(net, name)
            live = whole - dead
            for polygon in dead.each():
                length = _reach(polygon.bbox(), live)
                if length > max(least, technology.conductor(name).width):
                    around = whole.interacting(kdb.Region(polygon)).bbox()
                    size = (around.width(), around.height())
                    found.append(Stub(name, polygon.bbox(), length, int(polygon.area()), size))
        return found

    def _plates(self, net: str) -> Iterator[tuple[str, kdb.Region]]:
        """Yield the plates of capacitors on a net, with the conductors that they are or lie on."""
        for placed in self.subject.placed:
            if placed.device.type == "capacitor" and net in placed.device.terminals.values():
                spec = self.subject.technology.passives.get(placed.fingers[0].device)
                parts = {} if spec is None else spec.parts
                for part in ("top", "bottom"):
                    if part in parts:
                        yield self.subject.technology.conductor(parts[part]).name, region_of(placed.boxes)


class _Pieces:
    """The metal of a net as rectangles, each as wide as the wire, and where they meet. [dbu]

    A rectangle without contact, port or plate that meets others in one place at most leads nowhere; so does what one
    has beyond the outermost of these along its longer side.
    """

    def __init__(self, subject: Subject, net: str) -> None:
        self.boxes: list[tuple[str, kdb.Box]] = []
        self.held: dict[int, list[kdb.Box]] = defaultdict(list)
        self.links: dict[int, list[tuple[int, kdb.Box]]] = defaultdict(list)
        self.shapes: dict[str, kdb.Shapes] = {}
        for name, region in subject.metal(net).items():
            self.shapes[name] = kdb.Shapes()
            for piece in region.decompose_trapezoids_to_region().each():
                self.shapes[name].insert(kdb.BoxWithProperties(piece.bbox(), len(self.boxes)))
                self.boxes.append((name, piece.bbox()))
        for number, (name, box) in enumerate(self.boxes):
            for other in self._at(name, box):
                if other > number:
                    self._link(number, other, box & self.boxes[other][1])
        technology = subject.technology
        for cut in technology.cuts:
            for via in subject.shapes(net, cut.name).each():
                ends = [self._at(technology.resolve(level), via.bbox()) for level in (cut.below, cut.above)]
                for one, other in ((one, other) for one in ends[0] for other in ends[1]):
                    self._link(one, other, via.bbox())

    def _at(self, name: str, box: kdb.Box) -> list[int]:
        found = self.shapes[name].each_touching(box) if name in self.shapes else ()
        return [shape.prop_id for shape in found]

    def _link(self, one: int, other: int, where: kdb.Box) -> None:
        self.links[one].append((other, where))
        self.links[other].append((one, where))

    def hold(self, conductor: str, places: kdb.Region) -> None:
        """Note places of a conductor that current leaves at."""
        for place in places.each():
            for number in self._at(conductor, place.bbox()):
                self.held[number].append(place.bbox())

    def hold_port(self, conductor: str, label: kdb.Point, half: int) -> None:
        """Note the place of a port's label, up to the end of its wire where nothing else is on that side of it."""
        place = kdb.Box(label, label).enlarged(half, half)
        for number in self._at(conductor, place):
            box = self.boxes[number][1]
            used = [*self.held[number], *(where for _, where in self.links[number])]
            if box.width() >= box.height():
                sides = [
                    kdb.Box(box.left, box.bottom, place.left, box.top),
                    kdb.Box(place.right, box.bottom, box.right, box.top),
                ]
            else:
                sides = [
                    kdb.Box(box.left, box.bottom, box.right, place.bottom),
                    kdb.Box(box.left, place.top, box.right, box.top),
                ]
            free = [side for side in sides if box.contains(label) and not any(side.touches(each) for each in used)]
            self.held[number] += [place, *free]

    def dead(self) -> dict[str, kdb.Region]:
        """Return the metal that leads nowhere, by conductor."""
        gone: set[int] = set()
        waiting = list(range(len(self.boxes)))
        while waiting:
            number = waiting.pop()
            near = [other for other, _ in self.links[number] if other not in gone]
            if number not in gone and number not in self.held and len(near) < 2:
                gone.add(number)
                waiting += near
        found: dict[str, kdb.Region] = defaultdict(kdb.Region)
        for number, (name, box) in enumerate(self.boxes):
            if number in gone:
                found[name].insert(box)
                continue
            used = box_around([*self.held[number], *(w for other, w in self.links[number] if other not in gone)])
            beyond = kdb.Region(box) - kdb.Region(_across(box, used))
            found[name] += beyond
        return {name: region.merged() for name, region in found.items()}


def _across(box: kdb.Box, used: kdb.Box) -> kdb.Box:
    """Return the part of a rectangle beside what is used of it, over its whole width."""
    if box.width() >= box.height():
        return kdb.Box(used.left, box.bottom, used.right, box.top)
    return kdb.Box(box.left, used.bottom, box.right, used.top)


def _reach(piece: kdb.Box, live: kdb.Region) -> int:
    """Return how far a piece of metal leads away from the rest of its net. [dbu]"""
    near = live & kdb.Region(piece.enlarged(1, 1))
    if near.is_empty():
        return max(piece.width(), piece.height())
    box = near.bbox()
    return max(box.left - piece.left, piece.right - box.right, box.bottom - piece.bottom, piece.top - box.top)


def _wire_length(polygon: kdb.Polygon) -> float:
    """Return the length of a wire from its area and outline: of a strip L long and W wide, L. [dbu]"""
    half = (polygon.perimeter()) / 2
    return float(half + sqrt(max(0.0, half * half - 4 * polygon.area()))) / 2


def _spanning_tree(points: Sequence[tuple[int, int]]) -> float:
    """Return the length of the rectilinear minimum spanning tree of points (Prim, 1957). [dbu]"""
    places = np.array(sorted(set(points)), dtype=np.int64)
    if len(places) < 2:
        return 0.0
    distance = np.abs(places - places[0]).sum(axis=1)
    out = np.ones(len(places), dtype=bool)
    out[0] = False
    total = 0.0
    for _ in range(len(places) - 1):
        nearest = int(np.argmin(np.where(out, distance, np.iinfo(np.int64).max)))
        total += float(distance[nearest])
        out[nearest] = False
        distance = np.minimum(distance, np.abs(places - places[nearest]).sum(axis=1))
    return total
