"""The metal of a net as a graph, its paths of least resistance, and findings on supplies with long paths to taps.

Its pieces have one conductor each; links are where they touch or cuts join them.

A way is one such path. Metal in parallel is left out, so the true resistance is at most that of the way.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from functools import cached_property
from heapq import heappop, heappush
from itertools import islice, product
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import klayout.db as kdb
import numpy as np

from layoutkit.errors import listed
from layoutkit.review.subject import PlacedDevice, box_around, gap_between, kept, longer_side, names_of, turned

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from layoutkit.parasitics.layout_circuit import FeedPoint
    from layoutkit.review.finding import Remark, Spot
    from layoutkit.review.matched_roles import MatchedDevices
    from layoutkit.review.subject import Subject

_DETOUR_UM = 8.0  # detours that are shorter are not judged [um]
_TWICE = 2  # a detour is a way so many times as long as the distance
_MOST_PINS, _MOST_POINTS = 8, 24  # devices on a net whose ways are judged, and contacts of each: else wide ones
_SUPPLY_UM = 4.0  # shorter detours of supplies are not judged [um]
_STRETCH_UM = 4.0  # of a wire: ways that leave it and come back farther on are found [um]
_Node = tuple[int, int]  # number of a piece and of a stretch of it

Place = tuple[str, kdb.Box]
"""A conductor and a place on it. [dbu]"""
MESH_CONTACTS = 3000
"""Supplies of more contacts are meshes over power devices, in which no wire is the only way."""


def worst_first(subject: Subject, limit: str, found: Iterable[tuple[float, Spot]], **more: Any) -> list[Remark]:
    """Return one finding of the places whose figures are beyond a limit, with what ``Subject.finding`` takes."""
    beyond = [(figure, spot) for figure, spot in found if subject.limits[limit].beyond(figure)]
    order = sorted(beyond, key=lambda each: (-float(f"{each[0]:.4g}"), each[1].box.left, each[1].box.bottom))
    if not order:
        return []
    (figure, first), *others = order
    places = [spot for _, spot in others]
    return subject.finding(limit, figure, first.why, where=first.box, places=places, **more)


class Extents:
    """How far merged metal reaches through points in x and in y. [dbu]

    What each horizontal or vertical line meets is computed once for all points on it.
    """

    def __init__(self, region: kdb.Region) -> None:
        self.region = region
        self._box = region.bbox()
        self._lines: dict[tuple[bool, int], list[tuple[int, int]]] = {}

    def at(self, point: kdb.Point) -> tuple[int, int]:
        """Return the reach in x and in y of the metal at a point, which may be on its edge."""
        return self._through(False, point.y, point.x), self._through(True, point.x, point.y)

    def _through(self, upright: bool, line: int, place: int) -> int:
        pieces = self._pieces(upright, line)
        before = bisect_right(pieces, (place, inf))
        near = pieces[max(0, before - 2) : before]  # a slanted edge may let two overlap
        return max((end - start for start, end in near if end >= place), default=0)

    def _pieces(self, upright: bool, line: int) -> list[tuple[int, int]]:
        """Return where a line through the metal begins and ends to be inside it, in order."""
        if (upright, line) not in self._lines:
            whole = turned(self._box, upright=upright)
            strip = turned(kdb.Box(whole.left, line - 1, whole.right, line + 1), upright=upright)
            boxes = (turned(piece.bbox(), upright=upright) for piece in (self.region & kdb.Region(strip)).each())
            self._lines[upright, line] = sorted((box.left, box.right) for box in boxes)
        return self._lines[upright, line]


class Stretch(NamedTuple):
    """A straight part of a way: conductor, from where to where [dbu], its length [dbu] and its resistance. [ohm]"""

    conductor: str
    box: kdb.Box
    length: int
    ohm: float


class WireWay(NamedTuple):
    """A way: its resistance [ohm] and its parts from the start on; what joins them is part of the resistance."""

    ohm: float
    steps: tuple[Stretch, ...]

    @property
    def length(self) -> int:
        """Its length. [dbu]"""
        return sum(step.length for step in self.steps)

    @property
    def box(self) -> kdb.Box:
        """The box around it. [dbu]"""
        return box_around(step.box for step in self.steps)

    def words(self, subject: Subject) -> str:
        """Return its length, on which conductors most of it runs, and the resistance of its cuts, for a message."""
        lengths, ohms = defaultdict[str, int](int), defaultdict[str, float](float)
        for step in self.steps:
            lengths[step.conductor] += step.length
            ohms[step.conductor] += step.ohm
        most = sorted(ohms, key=lambda name: (-ohms[name], name))[:2]
        parts = [f"{subject.um(lengths[name]):.3g} um of {name}" for name in most]
        cuts = ", most of the resistance in its cuts" * (2 * sum(ohms.values()) < self.ohm)
        return f"{subject.um(self.length):.3g} um, mostly {listed(parts)}{cuts}"


class _Joint(NamedTuple):
    """Where a stretch of a wire meets another one: the place, that one, and the resistance of the cuts. [dbu, ohm]"""

    place: kdb.Box
    other: _Node
    ohm: float


class Ways:
    """The ways from some places of a net (Dijkstra, 1959), which enter each stretch of a wire at one place.

    Args:
        subject: The layout.
        net: The net.
        starts: Where the ways begin.
    """

    def __init__(self, subject: Subject, net: str, starts: Sequence[Place]) -> None:
        self.pieces = rectangles(subject, net)
        self.sheets = {each.name: each.sheet_ohm or 0.0 for each in subject.technology.conductors}
        self.cuts = {each.name: each.resistance_ohm or 0.0 for each in subject.technology.cuts}
        self.stretch = subject.technology.to_dbu(_STRETCH_UM)
        self.boxes = [outline.bbox() for _, outline in self.pieces.pieces]
        self.upright = [box.height() > box.width() for box in self.boxes]
        self.found: dict[_Node, tuple[float, kdb.Box, _Node | None]] = {}  # resistance, where and from what it enters
        joints: dict[int, dict[int, list[_Joint]]] = {}
        waiting: list[tuple[float, int, _Node, _Node | None]] = []
        entries: list[kdb.Box] = []

        def note(ohm: float, place: kdb.Box, node: _Node, before: _Node | None) -> None:
            if node not in self.found:
                heappush(waiting, (ohm, len(entries), node, before))
                entries.append(place)

        for conductor, place in starts:
            for piece in self.pieces.at(conductor, place):
                note(0.0, place, self._node(piece, place), None)
        while waiting:
            ohm, entry, node, before = heappop(waiting)
            if node in self.found:
                continue
            self.found[node] = ohm, entries[entry], before
            piece, number = node
            if piece not in joints:
                joints[piece] = self._joints(piece)
            for joint in joints[piece].get(number, ()):
                if joint.other not in self.found:
                    note(ohm + self._ohm(node, joint.place) + joint.ohm, joint.place, joint.other, node)

    def _joints(self, piece: int) -> dict[int, list[_Joint]]:
        """Return where each stretch of a piece meets others, and the next stretches of the same piece."""
        cuts: dict[tuple[int, _Node, str], list[kdb.Box]] = {}
        for link in self.pieces.links[piece]:
            _, number = self._node(piece, link.where)
            cuts.setdefault((number, self._node(link.other, link.where), link.layer), []).append(link.where)
        found: dict[int, list[_Joint]] = {}
        for (number, other, layer), places in cuts.items():
            ohm = self.cuts.get(layer, 0.0) / len(places)
            found.setdefault(number, []).append(_Joint(places[0], other, ohm))
        box, upright = self.boxes[piece], self.upright[piece]
        for number in range(1, self._last(piece) + 1):
            at = (box.bottom if upright else box.left) + number * self.stretch
            line = kdb.Box(box.left, at, box.right, at) if upright else kdb.Box(at, box.bottom, at, box.top)
            for one, next_one in ((number, number - 1), (number - 1, number)):
                found.setdefault(one, []).append(_Joint(line, (piece, next_one), 0.0))
        return found

    def _last(self, piece: int) -> int:
        """Return the number of the last stretch of a piece."""
        box = self.boxes[piece]
        return max(0, (box.height() if self.upright[piece] else box.width()) - 1) // self.stretch

    def _node(self, piece: int, place: kdb.Box) -> _Node:
        """Return the stretch of a piece at a place."""
        box = self.boxes[piece]
        if box.width() <= self.stretch >= box.height():
            return piece, 0
        middle = place.center()
        along = middle.y - box.bottom if self.upright[piece] else middle.x - box.left
        return piece, min(max(0, along // self.stretch), self._last(piece))

    def _ohm(self, node: _Node, place: kdb.Box) -> float:
        """Return the resistance of a stretch from where the way enters it to a place. [ohm]"""
        box, (x, y) = self.boxes[node[0]], apart(self.found[node][1], place)
        return self.sheets[self.pieces.pieces[node[0]][0]] * (x / max(1, box.height()) + y / max(1, box.width()))

    def lengths(self, conductor: str, place: kdb.Box) -> tuple[int, int, Place] | None:
        """Return the length of the way to a place, of the shortest one with a straight wire there, and from where.

        None where no metal leads to the place. [dbu]
        """
        found, (number, boxes, lengths) = self._at(conductor, place), self._entries
        if found is None:
            return None
        x, y = place.center().x, place.center().y
        gaps = np.maximum(0, np.maximum(boxes[:, 0] - x, x - boxes[:, 2]))
        gaps += np.maximum(0, np.maximum(boxes[:, 1] - y, y - boxes[:, 3]))
        best = int(np.argmin(lengths + gaps))
        whole = int(lengths[number[found[1]]]) + sum(apart(self.found[found[1]][1], place))
        node = next(islice(number, best, None))
        return whole, int(lengths[best] + gaps[best]), (self.pieces.pieces[node[0]][0], self.found[node][1])

    @cached_property
    def _entries(self) -> tuple[dict[_Node, int], np.ndarray, np.ndarray]:
        """The number of each stretch, where the ways enter it, and how long they are up to there. [dbu]"""
        lengths: dict[_Node, int] = {}
        for node, (_, entry, before) in self.found.items():  # in the order of their resistance
            lengths[node] = 0 if before is None else lengths[before] + sum(apart(self.found[before][1], entry))
        boxes = [(box.left, box.bottom, box.right, box.top) for _, box, _ in self.found.values()]
        number = {node: at for at, node in enumerate(lengths)}
        return number, np.array(boxes).reshape(-1, 4), np.array([*lengths.values()])

    def _at(self, conductor: str, place: kdb.Box) -> tuple[float, _Node] | None:
        """Return the resistance to a place of a conductor, and the stretch there that has it."""
        nodes = (self._node(piece, place) for piece in self.pieces.at(conductor, place))
        return min(((self.found[each][0] + self._ohm(each, place), each) for each in nodes if each in self.found),
                   default=None)  # fmt: skip

    def ohm(self, conductor: str, place: kdb.Box) -> float | None:
        """Return the resistance to a place of a conductor; None where no metal leads there. [ohm]"""
        found = self._at(conductor, place)
        return None if found is None else found[0]

    def to(self, conductor: str, place: kdb.Box) -> WireWay | None:
        """Return the way to a place of a conductor; None where no metal leads there."""
        found = self._at(conductor, place)
        if found is None:
            return None
        steps: list[Stretch] = []
        here, node = place, cast("_Node | None", found[1])
        while node is not None:
            _, entry, before = self.found[node]
            if length := sum(apart(entry, here)):
                name = self.pieces.pieces[node[0]][0]
                steps.append(Stretch(name, _between(entry, here), length, self._ohm(node, here)))
            node, here = before, entry
        return WireWay(found[0], tuple(reversed(steps)))


def apart(one: kdb.Box, other: kdb.Box) -> tuple[int, int]:
    """Return how far two boxes are apart in x and in y. [dbu]"""
    x = max(0, one.left - other.right, other.left - one.right)
    return x, max(0, one.bottom - other.top, other.bottom - one.top)


def _between(one: kdb.Box, other: kdb.Box) -> kdb.Box:
    """Return the box that leads from the middle of one box to that of another. [dbu]"""
    return kdb.Box(one.center(), one.center()) + kdb.Box(other.center(), other.center())


def detour(
    subject: Subject, net: str, beyond: float, points: Mapping[PlacedDevice, Sequence[tuple[int, int]]]
) -> list[Remark]:
    """Return whether the way from what drives a short net to another pin is far longer than their distance.

    Gates alone wait for a bias, and so do those on a diode.

    Args:
        subject: The layout.
        net: A signal.
        beyond: How much longer its wires are than a tree of its pins. [dbu]
        points: The contacts of each device on it, those of gates as well. [dbu]
    """
    if subject.um(beyond) < _DETOUR_UM:
        return []
    pins: dict[str, list[Place]] = defaultdict(list)
    for (placed, _), feed in subject.feeds(net).items():
        pins[placed.id] += [(at.conductor, kdb.Box(at.x, at.y, at.x, at.y)) for at in feed.points]
    lowest = subject.technology.conductors[0].name
    for placed, own in points.items():
        known = {place.center() for _, place in pins[placed.id]}
        pins[placed.id] += [(lowest, kdb.Box(x, y, x, y)) for x, y in own if kdb.Point(x, y) not in known]
    for name, point, _ in subject.labels.get(net, ()):
        pins["its port"].append((name, kdb.Box(point, point)))
    if len(pins) > _MOST_PINS or max(map(len, pins.values())) > _MOST_POINTS:
        return []
    worst, why, where = 0.0, "", kdb.Box()
    drivers = {placed.id for placed, terminal in subject.feeds(net)
               if terminal in placed.device.kind.ends and placed.device.terminals.get("g") != net}  # fmt: skip
    for number, (start, ends) in enumerate(pins.items()):
        ways = Ways(subject, net, ends)
        for end, places in [each for each in list(pins.items())[number + 1 :] if {start, each[0]} & drivers]:
            way = min(filter(None, (ways.to(*place) for place in places)), key=lambda way: way.length, default=None)
            straight = min((sum(apart(one, other)) for _, one in ends for _, other in places), default=0)
            if way is not None and way.length - straight > worst and way.length > _TWICE * straight:
                worst, where = way.length - straight, way.box
                why = f"{net} takes {subject.um(way.length):.3g} um from {start} to {end}, which lie "
                why += f"{subject.um(straight):.3g} um apart"
    share = worst / longer_side(subject.box) if subject.um(worst) > _DETOUR_UM else 0.0
    return subject.finding("wire-length.way", share, why, where=where, nets=[net], cause="detours")


@kept
def from_ports(subject: Subject, net: str) -> Ways:
    """Return the ways from the ports of a net."""
    return Ways(subject, net, [(name, kdb.Box(point, point)) for name, point, _ in subject.labels.get(net, ())])


def detours(subject: Subject) -> Iterator[Remark]:
    """Yield the transistors that a supply reaches by a way much longer than one from other metal of it nearby."""
    first, limit = subject.technology.conductors[0].name, subject.limits["supply-drop.detour"]
    share, side = subject.limits["supply-drop.round"], longer_side(subject.box)
    for net in [net for net in subject.nets if net in subject.supplies and net in subject.labels]:
        if subject.shapes(net, "contact").count() > MESH_CONTACTS:
            continue
        ways, far = from_ports(subject, net), dict[PlacedDevice, tuple[float, kdb.Box, int, Place]]()
        for (placed, end), feeds in subject.feeds(net).items():
            if not placed.device.is_mos or end not in placed.device.kind.ends or subject.is_idle(placed):
                continue
            places = [kdb.Box(at.x, at.y, at.x, at.y) for at in feeds.points if at.conductor == first]
            led = [(*known, at) for at in places if (known := ways.lengths(first, at)) is not None]
            if led:
                length, least, near, at = min(led, key=lambda each: (each[0] - each[1], each[0]))
                if subject.um(length - least) > _SUPPLY_UM and share.beyond((length - least) / side):
                    far[placed] = length / max(least, 1), at, least, near
        order = sorted(filter(lambda p: limit.beyond(far[p][0]), far), key=lambda p: (-far[p][0], p.index))
        if order and (way := ways.to(first, far[order[0]][1])) is not None:
            times, _, least, (on, place) = far[order[0]]
            why = f"{net} reaches {names_of(order)} by a detour: {way.words(subject)}, to {order[0].id}, where "
            why += f"{subject.um(least):.3g} um would do, by its {on} at ({_at(subject, place)})"
            yield from subject.finding(
                "supply-drop.detour", times, why, where=way.box, devices=order, nets=[net], cause="detours"
            )


def unlike_rows(
    subject: Subject, groups: Sequence[MatchedDevices], arrays: Sequence[Sequence[Sequence[PlacedDevice]]]
) -> Iterator[Remark]:
    """Yield the matched groups and equal cells with sources that a supply reaches by ways of unlike resistance.

    Of a group, rows are compared, the sources of one diffusion; of cells, all sources of each.
    """
    sets: list[tuple[str, list[tuple[int | None, PlacedDevice]]]]
    sets = [(group.called, [(None, placed) for placed in group.devices]) for group in groups]
    sets += [(f"{len(each)} equal cells", [(n, p) for n, cell in enumerate(each) for p in cell]) for each in arrays]
    for (called, own), net in product(sets, [net for net in subject.nets if net in subject.supplies]):
        if net not in subject.labels or subject.shapes(net, "contact").count() > MESH_CONTACTS:
            continue
        rows: dict[int, list[tuple[float, kdb.Box, PlacedDevice]]] = defaultdict(list)
        for number, placed in own:
            feed = subject.feeds(net).get((placed, "s")) if placed.device.is_mos else None
            for at in feed.points if feed is not None else ():
                place = kdb.Box(at.x, at.y, at.x, at.y)
                ohm = from_ports(subject, net).ohm(at.conductor, place)
                if ohm is not None:
                    rows[_row(placed, at) if number is None else number].append((ohm, place, placed))
        means = {number: sum(ohm for ohm, *_ in row) / len(row) for number, row in rows.items()}
        if len(means) < 2:
            continue
        boxes = {number: box_around(place for _, place, _ in row) for number, row in rows.items()}
        order = sorted(means, key=lambda row: (float(f"{means[row]:.6g}"), boxes[row].left, boxes[row].bottom))
        least, most = order[0], order[-1]
        if not subject.limits["supply-drop.ohms"].beyond(means[most] - means[least]):
            continue
        ends = {row: names_of(list(dict.fromkeys(placed for *_, placed in rows[row]))) for row in (least, most)}
        places = " and ".join(
            f"{means[row]:.3g} ohm to {ends[row]} at ({_at(subject, boxes[row])})" for row in (least, most)
        )
        why = f"the best ways from the port of {net} to the sources of {called} differ: {places}"
        figure = means[most] / max(means[least], 1.0)  # less than an ohm is the port itself
        devices = list(dict.fromkeys(placed for _, placed in own))
        yield from subject.finding("supply-drop.rows", figure, why, where=boxes[most], devices=devices, nets=[net])


def _row(placed: PlacedDevice, at: FeedPoint) -> int:
    """Return the number of the diffusion of a device that a contact is on."""
    point = kdb.Point(at.x, at.y)
    whole = zip(placed.fingers, placed.boxes, strict=True)
    near = min(whole, key=lambda each: (gap_between(each[1], kdb.Box(point, point)), str(each[1])))
    return near[0].around.diffusion if near[0].around is not None else -1


def _at(subject: Subject, box: kdb.Box) -> str:
    return f"{subject.um(box.center().x):.1f}, {subject.um(box.center().y):.1f}"


class Link(NamedTuple):
    """Where a piece meets another one: its number, the conductor or cut that joins them, and the place. [dbu]"""

    other: int
    layer: str
    where: kdb.Box


class Pieces:
    """The metal of a net in pieces, and where they meet.

    Args:
        subject: The layout.
        net: The net.
        whole: Whether a piece is all metal of one conductor that touches; else each is a rectangle as wide as the wire.
        without: What is left out of each conductor.

    Attributes:
        pieces: The conductor and the outline of each piece. [dbu]
        links: Where each meets others.
    """

    def __init__(
        self, subject: Subject, net: str, *, whole: bool, without: Mapping[str, kdb.Region] | None = None
    ) -> None:
        self.whole = whole
        self.pieces: list[tuple[str, kdb.Polygon]] = []
        self.links: dict[int, list[Link]] = defaultdict(list)
        self.shapes: dict[str, kdb.Shapes] = {}
        self._last: dict[str, int] = {}
        for name, every in subject.metal(net).items():
            self.shapes[name] = kdb.Shapes()
            region = every - without[name] if without is not None and name in without else every
            for piece in (region if whole else region.decompose_trapezoids_to_region()).each():
                self.shapes[name].insert(kdb.BoxWithProperties(piece.bbox(), len(self.pieces)))
                self.pieces.append((name, piece))
        for number, (name, outline) in enumerate(() if whole else self.pieces):
            for other in self.at(name, outline.bbox()):
                if other > number:
                    self._link(number, other, name, outline.bbox() & self.pieces[other][1].bbox())
        for cut in subject.technology.cuts:
            levels = [subject.technology.resolve(level) for level in (cut.below, cut.above)]
            joints = _joints(subject, net, cut.name, levels)
            for boxes in joints if whole else ([via.bbox()] for via in subject.shapes(net, cut.name).each()):
                above = self.at(levels[1], boxes[0])
                for one in self.at(levels[0], boxes[0]):
                    for box in boxes:
                        for other in above:
                            self._link(one, other, cut.name, box)

    def at(self, conductor: str, place: kdb.Box) -> list[int]:
        """Return the pieces of a conductor at a place; of whole ones that at its middle."""
        shapes, point = self.shapes.get(conductor), place.center()
        last = self._last.get(conductor)  # of whole pieces mostly the same one again
        if last is not None and self.pieces[last][1].inside(point):
            return [last]
        found = [] if shapes is None else [shape.prop_id for shape in shapes.each_touching(place)]
        if not self.whole:
            return found
        found = [number for number in found if self.pieces[number][1].inside(point)][:1]
        if found:
            self._last[conductor] = found[0]
        return found

    def at_point(self, conductor: str, point: kdb.Point) -> int | None:
        """Return the first piece of a conductor at a point."""
        return next(iter(self.at(conductor, kdb.Box(point, point))), None)

    def reached(self, start: int, among: Collection[int]) -> set[int]:
        """Return the pieces that a piece is joined with by some pieces."""
        found, front = {start}, [start]
        while front:
            new = {link.other for link in self.links[front.pop()] if link.other in among} - found
            found |= new
            front += new
        return found

    def _link(self, one: int, other: int, layer: str, where: kdb.Box) -> None:
        self.links[one].append(Link(other, layer, where))
        self.links[other].append(Link(one, layer, where))


def _joints(subject: Subject, net: str, cut: str, levels: Sequence[str]) -> Iterator[list[kdb.Box]]:
    """Yield the cuts of each place where the metal of two conductors overlaps, which join the same two pieces. [dbu]"""
    cuts, (below, above) = kdb.Shapes(), (subject.shapes(net, level) for level in levels)
    cuts.insert(subject.shapes(net, cut))
    for joint in (below & above).each():
        near = (via.bbox() for via in cuts.each_touching(joint.bbox()))
        if boxes := [box for box in near if joint.inside(box.center())]:
            yield boxes


@kept
def rectangles(subject: Subject, net: str) -> Pieces:
    """Return the metal of a net in rectangles, each as wide as the wire."""
    return Pieces(subject, net, whole=False)
