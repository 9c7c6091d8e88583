"""The resistor network of the wires of one net, by KLayout's own extractor (``klayout.pex``).

::

    port                                       met1  ====#=====#====     sheets: squares times sheet resistance
     |                                           cut     |     |         cuts: resistance of one, by their area
    ===[met1]===#=====#====                      li1     |     |
                |     |                  contact, poly   +-----+         poly outside the channels is a sheet as well
             terminal terminal

KLayout counts squares along straight pieces. What it does not model is added here: a channel is a distributed line,
whose two ends see the mean voltage of the gate through a third of its resistance.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import klayout.db as kdb
from klayout import pex

from layoutkit.parasitics.resistor_network import ResistorNetwork
from layoutkit.parasitics.terminal_feeds import Place

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from layoutkit.technology import Technology

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
    places: dict[int, Place] = field(default_factory=dict)
    at: dict[Place, int] = field(default_factory=dict)
    channels: dict[str, int] = field(default_factory=dict)

    def new_node(self, place: Place) -> int:
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
        self, regions: Mapping[str, kdb.Region], channels: Iterable[kdb.Polygon], places: Iterable[Place]
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
        ports: dict[int, list[Place]] = defaultdict(list)
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

    def _read(self, wires: WireNetwork, found: Any, ports: Mapping[int, list[Place]]) -> None:
        """Take over the nodes and resistors that KLayout found, sorted by place."""
        dbu = self.technology.dbu_um
        nodes = []
        for node in found.each_node():
            centre = node.location().center()
            place = Place(self.names.get(node.layer(), ""), round(centre.x / dbu), round(centre.y / dbu))
            port = node.port_index() if node.type() == _PEX.RNodeType.VertexPort else -1
            nodes.append((place, port, node.layer(), node.object_id()))
        numbers: dict[int, int] = {}
        for place, port, layer, identity in sorted(nodes):
            numbers[identity] = number = wires.new_node(place)
            if port >= 0:
                wires.at[ports[layer][port]] = number
        elements = [
            (*sorted((numbers[each.a().object_id()], numbers[each.b().object_id()])), each.resistance())
            for each in found.each_element()
        ]
        for one, other, ohm in sorted(elements):
            wires.network.add(one, other, 1 / max(ohm, _LEAST_OHM))

    def _channel(self, wires: WireNetwork, sides: list[Place], squares: float) -> int:
        """Add a channel between the nodes at its ends, and return the node that sees its mean voltage."""
        ohm = squares * (self.poly_sheet_ohm or 0.0)
        nodes = [wires.at[place] for place in sides]
        mean = wires.new_node(sides[0]) if sides else wires.new_node(Place(POLY, 0, 0))
        if len(nodes) != 2 or not ohm:
            for node in nodes:
                wires.network.add(node, mean, 1e6)
            return mean
        for node in nodes:
            wires.network.add(node, mean, 6 / ohm)
        wires.network.add(nodes[0], nodes[1], -2 / ohm)
        one, other = sides
        wires.places[mean] = Place(POLY, (one.x + other.x) // 2, (one.y + other.y) // 2)
        return mean


def _ends(channel: kdb.Polygon, poly: kdb.Region) -> tuple[list[Place], float]:
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
        name: Place(POLY, *point) for name, (strip, point) in sides.items() if not (poly & kdb.Region(strip)).is_empty()
    }
    squares = box.width() / box.height() if {"left", "right"} <= found.keys() else box.height() / box.width()
    return list(found.values()), squares
