"""Findings on wires: their length, metal that carries nothing, and neighbours that disturb."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from math import sqrt
from typing import TYPE_CHECKING

import klayout.db as kdb
import numpy as np

from layoutkit.extract.metal_mesh import mesh_of
from layoutkit.review.subject import box_around, region_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from layoutkit.review.finding import Finding, Unjudged
    from layoutkit.review.subject import PlacedDevice, Subject

_LEAST_TREE_UM = 1.0
"""Nets whose terminals are nearer to each other than this have no length to judge. [um]"""
_EQUAL = 0.1  # areas of stubs that differ by at most this much are equal [1]
_BESIDE = 2  # wires nearer than this many minimum spaces run side by side


class Wires:
    """The findings on the wires of one layout.

    Args:
        subject: The layout.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.unjudged: list[Unjudged] = []
        self._found: dict[str, tuple[int, list[tuple[int, kdb.Box]]]] = {}
        self.signals = [net for net in subject.nets if net not in subject.supplies]

    def findings(self) -> Iterator[Finding]:
        """Yield all findings."""
        for net in self.signals:
            yield from self.length(net)
        yield from self.dead_metal()
        yield from self.coupling()

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
        whole = _spanning_tree([point for own in points.values() for point in own])
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
            places = [point for own in points.values() for point in own]
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
            area, lengths = self._dead(net, least)
            image = self._images.get(net)
            if not area or (image is not None and abs(self._dead(image, least)[0] - area) <= _EQUAL * area):
                continue  # equal stubs on both nets of a pair make their loads equal
            dead_area += area
            longest = max(((length, box) for length, box in lengths), key=lambda each: (each[0], str(each[1])))
            places += longest[1]
            yield from subject.finding(
                "dead-metal.piece",
                subject.um(longest[0]),
                longest[1],
                f"{subject.um(longest[0]):.3g} um of {net} lead nowhere",
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

    def _dead(self, net: str, least: int) -> tuple[int, list[tuple[int, kdb.Box]]]:
        """Return the area of a net's metal that leads nowhere, and each piece's length and place. [dbu2, dbu]"""
        if net not in self._found:
            self._found[net] = self._searched(net, least)
        return self._found[net]

    def _searched(self, net: str, least: int) -> tuple[int, list[tuple[int, kdb.Box]]]:
        subject, technology = self.subject, self.subject.technology
        regions = {name: subject.shapes(net, name) for name, _ in subject.metal_layers}
        contacts = [polygon.bbox() for polygon in subject.shapes(net, "contact").each()]
        marks = [(box.left, box.bottom, box.right, box.top) for box in contacts]
        mesh = mesh_of(technology, regions, marks)
        first = technology.conductors[0].name
        held = {mesh.at(first, (b[0] + b[2]) / 2, (b[1] + b[3]) / 2) for b in marks}
        for conductor, point, _ in subject.labels.get(net, ()):
            held.update(mesh.across(conductor, point.x, point.y))
        held |= self._plates(net, mesh)
        near: dict[int, set[int]] = defaultdict(set)
        for link in mesh.links:
            near[link.one].add(link.other)
            near[link.other].add(link.one)
        waiting = [cell for cell in range(len(mesh.cells)) if cell not in held and len(near[cell]) < 2]
        gone: set[int] = set()
        while waiting:
            cell = waiting.pop()
            gone.add(cell)
            for other in near.pop(cell, set()):
                near[other].discard(cell)
                if other not in held and other not in gone and len(near[other]) < 2:
                    waiting.append(other)
        found: dict[str, kdb.Region] = {}
        for cell in sorted(gone):
            name, rect = mesh.cells[cell]
            found.setdefault(name, kdb.Region()).insert(kdb.Box(*rect))
        area, pieces = 0, []
        for name, region in found.items():
            region.merge()
            live = regions[name] - region
            for polygon in region.each():
                length = _reach(polygon.bbox(), live)
                if length > max(least, technology.conductor(name).width):
                    area += polygon.area()
                    pieces.append((length, polygon.bbox()))
        return area, pieces

    def _plates(self, net: str, mesh: object) -> set[int | None]:
        """Return the cells of the mesh below and above capacitors, whose metal is a plate."""
        found: set[int | None] = set()
        for placed in self.subject.placed:
            if placed.device.type == "capacitor" and net in placed.device.terminals.values():
                spec = self.subject.technology.passives.get(placed.fingers[0].device)
                parts = {} if spec is None else spec.parts
                for part in ("top", "bottom"):
                    if part in parts:
                        name = self.subject.technology.conductor(parts[part]).name
                        for number, (level, rect) in enumerate(mesh.cells):  # type: ignore[attr-defined]
                            if level == name and any(box.touches(kdb.Box(*rect)) for box in placed.boxes):
                                found.add(number)
        return found

    def coupling(self) -> Iterator[Finding]:
        """Yield the quiet nets that run beside loud ones."""
        quiet, loud = _quiet_and_loud(self.subject)
        for one in sorted(quiet):
            for other in sorted(loud - {one}):
                if one in loud and other in quiet and one > other:
                    continue
                length, place = self._beside(one, other)
                yield from self.subject.finding(
                    "coupling",
                    self.subject.um(length),
                    place,
                    f"{one} runs {self.subject.um(length):.3g} um beside {other} at under {_BESIDE} minimum spaces",
                    "more distance, or a quiet wire between them",
                    nets=[one, other],
                )

    def _beside(self, one: str, other: str) -> tuple[int, kdb.Box]:
        """Return along how much of their length two nets run side by side, and where. [dbu]"""
        length, place = 0, kdb.Box()
        for conductor in self.subject.technology.conductors:
            first, second = (self.subject.shapes(net, conductor.name) for net in (one, other))
            if first.is_empty() or second.is_empty():
                continue
            pairs = first.separation_check(second, _BESIDE * conductor.space, False, kdb.Region.Projection)
            for pair in pairs.each():
                length += min(pair.first.length(), pair.second.length())
                place += pair.bbox()
        return length, place


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


def _quiet_and_loud(subject: Subject) -> tuple[set[str], set[str]]:
    """Return the nets that must not be disturbed, and those that disturb: outputs and clocks."""
    quiet: set[str] = set()
    loud: set[str] = set()
    devices = {device.id: device for device in subject.circuit.devices}
    for module in subject.roles.groups:
        if module.type in {"differential_pair", "source_follower"}:
            quiet.update(devices[name].terminals["g"] for name in module.devices if "g" in devices[name].terminals)
        if module.type == "inverter":
            loud.update(str(module.properties[each]) for each in ("input", "output"))
    switched = {d.terminals["g"] for d in subject.circuit.devices if d.id in subject.currents.devices
                and "switch" in subject.currents.devices[d.id].how and d.is_mos}  # fmt: skip
    loud |= {net for net in switched if net in subject.circuit.ports}
    for port in subject.circuit.ports:
        ends = {(devices[end.device].type, end.terminal) for end in subject.circuit.nets[port]}
        if {("nmos", "d"), ("pmos", "d")} <= ends:
            loud.add(port)
    own = {*subject.supplies.power, *subject.supplies.ground}
    return {net for net in quiet - own if net in subject.number}, {net for net in loud - own if net in subject.number}
