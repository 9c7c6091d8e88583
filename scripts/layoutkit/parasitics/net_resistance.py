"""The resistor network of the wires of one net, by KLayout's own extractor (``klayout.pex``).

::

    port                                       met1  ====#=====#====     sheets: squares times sheet resistance
     |                                           cut     |     |         cuts: resistance of one, by their area
    ===[met1]===#=====#====                      li1     |     |
                |     |                  contact, poly   +-----+         poly outside the channels is a sheet as well
             terminal terminal

KLayout counts squares along straight pieces. What it does not model is added here: a channel is a distributed line,
whose two ends see the mean voltage of the gate through a third of its resistance.

A network is reduced to what is between the kept nodes once all others are eliminated.

A device terminal is fed through several contacts, each with its share of the current. Its voltage is the mean of
theirs, weighted with the shares. A star of large resistances that are in the ratio of the shares imposes them, and a
negative resistance behind it takes the large ones out again::

                   +--[ LARGE / share ]-- contact
    terminal --[ -LARGE ]-- star          ...
                   +--[ LARGE / share ]-- contact
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any

import klayout.db as kdb
import numpy as np
from klayout import pex

from layoutkit.parasitics.layout_circuit import FeedPoint

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from layoutkit.technology import Technology


LARGE_OHM = 1e6
_LEFT = 1e-9  # of the large resistance is not taken out, so that the conductances of the star have a sum
_NEGLIGIBLE = (3e-2, 1e-2, 3e-3, 1e-3, 1e-4, 1e-6)
"""Conductances below this part of the largest at their nodes are left out; the first value with a small error holds."""
_NO_OHM = 1e-3
_SMALL_PART = 1e-3
ERROR = 0.01
"""Relative error of a resistance up to which resistors are left out. [1]"""


class ResistorNetwork:
    """Conductances between numbered nodes. [S]"""

    def __init__(self) -> None:
        self.links: dict[int, dict[int, float]] = defaultdict(dict)

    def add(self, one: int, other: int, siemens: float) -> None:
        """Add a conductance between two nodes, which may be negative. [S]"""
        here, there = self.links[one], self.links[other]
        if one != other:
            here[other] = there[one] = here.get(other, 0.0) + siemens

    def add_terminal(self, terminal: int, star: int, feeds: Mapping[int, float]) -> None:
        """Add a terminal, fed by nodes with these shares of its current, whose sum is 1. ``star`` is a new node."""
        for node, share in sorted(feeds.items()):
            self.add(star, node, share / LARGE_OHM)
        self.add(star, terminal, -1 / (LARGE_OHM * (1 - _LEFT)))

    def reached(self, start: int) -> set[int]:
        """Return the nodes that a path leads to from ``start``, itself included."""
        found, waiting = {start}, [start]
        while waiting:
            for near in self.links[waiting.pop()]:
                if near not in found:
                    found.add(near)
                    waiting.append(near)
        return found

    def eliminate(self, kept: Collection[int]) -> None:
        """Eliminate all nodes but ``kept``; what is between those stays the same.

        The star-mesh transformation (Rosen, 1924) replaces a node by resistors between its neighbours. Those with the
        fewest neighbours go first, so that the time grows with the number of nodes.
        """
        counts = {node: len(near) for node, near in self.links.items()}  # those in the heap
        heap = [(count, node) for node, count in counts.items() if node not in kept]
        heapify(heap)
        while heap:
            count, node = heappop(heap)
            near = self.links.get(node)
            if near is None or count != len(near):
                continue  # it has gone, or it has another number of neighbours now
            for other in self._without(node):
                number = len(self.links[other])
                if number != counts[other] and other not in kept:
                    counts[other] = number
                    heappush(heap, (number, other))

    def _without(self, node: int) -> list[int]:
        links = self.links
        near = links.pop(node)
        if len(near) == 1:  # the end of a wire, as most nodes are
            (only,) = near
            del links[only][node]
            return [only]
        total = sum(near.values())
        neighbours = sorted(near)
        for one in neighbours:
            del links[one][node]
        for index, one in enumerate(neighbours):
            here, own = links[one], near[one]
            for other in neighbours[index + 1 :]:
                here[other] = links[other][one] = here.get(other, 0.0) + own * near[other] / total
        return neighbours

    def written(self, start: int) -> WrittenNetwork:
        """Return the positive resistances that matter, with the same resistances from ``start`` to all nodes.

        Negative conductances, which the mean voltage of several contacts may leave between terminals, are left out.
        That makes some resistances too small: what is missing is put in series with those nodes.
        """
        nodes = sorted(self.links.keys() - {start})
        exact = dict(zip(nodes, self.resistances(start, nodes), strict=True))
        largest = {node: max(map(abs, near.values()), default=0.0) for node, near in self.links.items()}
        every = [
            (one, other, siemens, siemens / max(largest[one], largest[other]))
            for one, near in sorted(self.links.items())
            for other, siemens in sorted(near.items())
            if one < other and siemens > 0
        ]
        tried = []
        for negligible in _NEGLIGIBLE:
            kept = [(one, other, siemens) for one, other, siemens, part in every if part > negligible]
            tried.append(corrected(kept, start, exact))
            if tried[-1].error <= ERROR:
                break
        return min(tried, key=lambda each: each.error)

    def resistances(self, start: int, nodes: Sequence[int]) -> list[float]:
        """Return the resistance between ``start`` and each of ``nodes``, all of which it reaches. [ohm]"""
        return resistances(
            [(a, b, g) for a, near in self.links.items() for b, g in near.items() if a < b], start, nodes
        )


@dataclass(frozen=True)
class WrittenNetwork:
    """A network as a netlist has it.

    Attributes:
        resistors: Two nodes and what is between them. [ohm]
        inner: Number of each node that was added, and of the node that it lies in front of.
        error: Largest relative error of a resistance from the start. [1]
    """

    resistors: tuple[tuple[int, int, float], ...]
    inner: Mapping[int, int]
    error: float


def corrected(conductances: Sequence[tuple[int, int, float]], start: int, exact: Mapping[int, float]) -> WrittenNetwork:
    """Return a network with what is missing of its resistances in series with its nodes."""
    found = dict(zip(exact, resistances(conductances, start, list(exact)), strict=True))
    missing = {
        node: ohm - found[node] for node, ohm in exact.items() if ohm - found[node] > max(_NO_OHM, _SMALL_PART * ohm)
    }
    highest = max([start, *exact])
    numbers = {node: highest + place for place, node in enumerate(sorted(missing), 1)}
    resistors = [(numbers.get(a, a), numbers.get(b, b), 1 / siemens) for a, b, siemens in conductances]
    resistors += [(number, node, missing[node]) for node, number in numbers.items()]
    wrong = [abs(found[node] + missing.get(node, 0.0) - ohm) / ohm for node, ohm in exact.items() if ohm > 2 * _NO_OHM]
    return WrittenNetwork(tuple(resistors), {number: node for node, number in numbers.items()}, max(wrong, default=0.0))


def resistances(conductances: Iterable[tuple[int, int, float]], start: int, nodes: Sequence[int]) -> list[float]:
    """Return the resistance between ``start`` and each of ``nodes``; infinite where no path leads. [ohm]

    Args:
        conductances: Two nodes and what is between them. [S]
        start: Node to measure from.
        nodes: Nodes to measure to.
    """
    network = ResistorNetwork()
    for one, other, siemens in conductances:
        network.add(one, other, siemens)
    reached = network.reached(start)
    places = {node: place for place, node in enumerate(sorted(reached - {start}))}
    matrix = np.zeros((len(places), len(places)))
    for one, place in places.items():
        for other, siemens in network.links[one].items():
            matrix[place, place] += siemens
            if other != start:
                matrix[place, places[other]] -= siemens
    wanted = sorted({places[node] for node in nodes if node in places})
    columns = np.zeros((len(places), len(wanted)))
    for column, place in enumerate(wanted):
        columns[place, column] = 1.0
    voltages = np.linalg.solve(matrix, columns) if wanted else columns
    found = {place: float(voltages[place, column]) for column, place in enumerate(wanted)}
    return [0.0 if node == start else found[places[node]] if node in places else float("inf") for node in nodes]


POLY = "poly"
CONTACT = "contact"
_LEAST_OHM = 1e-6
_PEX: Any = pex  # whose stubs for type checkers are empty


@dataclass
class WireNetwork:
    """The resistors of one net before terminals are added.

    Attributes:
        network: Conductances between nodes.
        places: Where each node is.
        at: Node at each place that was asked for.
        channels: Node that sees the mean voltage of a channel, by the channel's box.
    """

    network: ResistorNetwork = field(default_factory=ResistorNetwork)
    places: dict[int, FeedPoint] = field(default_factory=dict)
    at: dict[FeedPoint, int] = field(default_factory=dict)
    channels: dict[str, int] = field(default_factory=dict)

    def new_node(self, place: FeedPoint) -> int:
        """Return a new node."""
        node = len(self.places)
        self.places[node] = place
        self.network.links[node]
        return node


class WireExtractor:
    """Extracts the wires of one net after the other.

    Args:
        technology: States sheet and cut resistances.
        drawn_as: Name of each layer of cuts to the cut that it is drawn as.
    """

    def __init__(self, technology: Technology) -> None:
        self.technology = technology
        self.unknown: list[str] = []
        poly = technology.silicon.get(POLY)
        sheets = {each.name: each.sheet_ohm for each in technology.conductors}
        sheets[POLY] = None if poly is None else poly.sheet_ohm
        first = technology.conductors[0].name
        cuts = [
            (cut.name, technology.resolve(cut.below), technology.resolve(cut.above), cut.resistance_ohm, cut.size)
            for cut in technology.cuts
        ]
        cuts.append((CONTACT, POLY, first, None if poly is None else poly.contact_ohm, technology.contact.size))
        self.poly_sheet_ohm = sheets[POLY]
        self.unstated = {name for name, ohm in sheets.items() if ohm is None}
        self.unstated |= {name for name, _, _, ohm, _ in cuts if ohm is None}
        self.layers = {name: number for number, name in enumerate([*sheets, *(cut[0] for cut in cuts)])}
        self.names = {number: name for name, number in self.layers.items()}
        self._tech = _PEX.RExtractorTech()
        for name, ohm in sheets.items():
            conductor = _PEX.RExtractorTechConductor()
            conductor.layer, conductor.resistance = self.layers[name], ohm or 0.0
            self._tech.add_conductor(conductor)
        for name, below, above, ohm, size in cuts:
            via = _PEX.RExtractorTechVia()
            via.cut_layer, via.bottom_conductor, via.top_conductor = (
                self.layers[each] for each in (name, below, above)
            )
            via.resistance = (ohm or 0.0) * (size * technology.dbu_um) ** 2
            self._tech.add_via(via)

    def extract(
        self, regions: Mapping[str, kdb.Region], channels: Iterable[kdb.Polygon], places: Iterable[FeedPoint]
    ) -> WireNetwork:
        """Return the network of one net.

        Args:
            regions: Shapes of the net by conductor, cut, ``poly`` (without channels) and ``contact`` (on poly).
            channels: Channels that its poly crosses.
            places: Where nodes are wanted; on the conductors of the net.
        """
        wires = WireNetwork()
        ends = {str(channel.bbox()): _ends(channel, regions.get(POLY, kdb.Region())) for channel in channels}
        wanted = sorted({*places, *(place for found, _ in ends.values() for place in found)})
        ports: dict[int, list[FeedPoint]] = defaultdict(list)
        for place in wanted:
            ports[self.layers[place.conductor]].append(place)
        geometry = {self.layers[name]: region for name, region in regions.items() if not region.is_empty()}
        points = {number: [kdb.Point(place.x, place.y) for place in found] for number, found in ports.items()}
        found = _PEX.RNetExtractor(self.technology.dbu_um).extract(self._tech, geometry, points, {})
        self._read(wires, found, ports)
        for place in wanted:
            if place not in wires.at:
                wires.at[place] = wires.new_node(place)
        for box, (sides, squares) in sorted(ends.items()):
            wires.channels[box] = self._channel(wires, sides, squares)
        return wires

    def _read(self, wires: WireNetwork, found: Any, ports: Mapping[int, list[FeedPoint]]) -> None:
        """Take over the nodes and resistors that KLayout found, sorted by place."""
        dbu = self.technology.dbu_um
        nodes, at_port = [], _PEX.RNodeType.VertexPort
        for node in found.each_node():
            centre, layer = node.location().center(), node.layer()
            place = FeedPoint(self.names.get(layer, ""), round(centre.x / dbu), round(centre.y / dbu))
            port = node.port_index() if node.type() == at_port else -1
            nodes.append((place, port, layer, node.object_id()))
        numbers: dict[int, int] = {}
        for place, port, layer, identity in sorted(nodes):
            numbers[identity] = number = wires.new_node(place)
            if port >= 0:
                wires.at[ports[layer][port]] = number
        ends = ((numbers[e.a().object_id()], numbers[e.b().object_id()], e.resistance()) for e in found.each_element())
        for one, other, ohm in sorted(
            (one, other, ohm) if one < other else (other, one, ohm) for one, other, ohm in ends
        ):
            wires.network.add(one, other, 1 / max(ohm, _LEAST_OHM))

    def _channel(self, wires: WireNetwork, sides: list[FeedPoint], squares: float) -> int:
        """Add a channel between the nodes at its ends, and return the node that sees its mean voltage."""
        ohm = squares * (self.poly_sheet_ohm or 0.0)
        nodes = [wires.at[place] for place in sides]
        mean = wires.new_node(sides[0]) if sides else wires.new_node(FeedPoint(POLY, 0, 0))
        if len(nodes) != 2 or not ohm:
            for node in nodes:
                wires.network.add(node, mean, 1e6)
            return mean
        for node in nodes:
            wires.network.add(node, mean, 6 / ohm)
        wires.network.add(nodes[0], nodes[1], -2 / ohm)
        one, other = sides
        wires.places[mean] = FeedPoint(POLY, (one.x + other.x) // 2, (one.y + other.y) // 2)
        return mean


def _ends(channel: kdb.Polygon, poly: kdb.Region) -> tuple[list[FeedPoint], float]:
    """Return the middles of the sides where poly goes on beyond a channel, and its squares from one to the other."""
    box = channel.bbox()
    middle = box.center()
    sides = {
        "left": (kdb.Box(box.left - 1, box.bottom, box.left, box.top), (box.left, middle.y)),
        "right": (kdb.Box(box.right, box.bottom, box.right + 1, box.top), (box.right, middle.y)),
        "bottom": (kdb.Box(box.left, box.bottom - 1, box.right, box.bottom), (middle.x, box.bottom)),
        "top": (kdb.Box(box.left, box.top, box.right, box.top + 1), (middle.x, box.top)),
    }
    found = {
        name: FeedPoint(POLY, *point)
        for name, (strip, point) in sides.items()
        if not (poly & kdb.Region(strip)).is_empty()
    }
    squares = box.width() / box.height() if {"left", "right"} <= found.keys() else box.height() / box.width()
    return list(found.values()), squares
