"""Where the current of each device terminal enters the wires of its net.

::

    source, drain     the contacts on its diffusion, each with an equal share of the fingers' current
    gate              the middle of each channel, in proportion to the widths; see ``Channel``
    resistor          the contacts on its head            capacitor   the cuts on its plate; the metal below its middle
    diode, emitter    the contacts on its diffusion       base, collector   the nearest contact of the net

Contacts on diffusion and on heads, and what lies below them, are not counted: the models of the devices contain them.
A bulk is on the own node of its net: wells and substrate are not extracted.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import klayout.db as kdb

from layoutkit.extract.resistor_devices import plate_cut_layer, plate_layer, union

if TYPE_CHECKING:
    from collections.abc import Iterable

    from layoutkit.extract.extracted import DrawnFinger, ExtractedDevice, Extraction

_SILICON = ("n_sd", "p_sd", "n_tap", "p_tap", "poly")


class FeedPoint(NamedTuple):
    """A point on a conductor. [dbu]"""

    conductor: str
    x: int
    y: int


@dataclass
class Feeds:
    """What feeds one terminal.

    Attributes:
        net: Number of its net.
        points: Share of the current by place.
        channels: Share of the current by channel, by its box.
        series_ohm: Resistance between those places and the terminal; None where it is not known.
    """

    net: int
    points: dict[FeedPoint, float] = field(default_factory=lambda: defaultdict(float))
    channels: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    series_ohm: float | None = 0.0


def terminal_feeds(extraction: Extraction) -> dict[tuple[int, str], Feeds]:
    """Return what feeds each terminal, by index of the extracted device and terminal; bulks are left out."""
    search = _Search(extraction)
    found = {}
    for index, device in enumerate(extraction.devices):
        for terminal, net in device.nets.items():
            if terminal == device.kind.bulk:
                continue
            feeds = search.feeds(device, terminal, net)
            total = sum(feeds.points.values()) + sum(feeds.channels.values())
            feeds.points = {place: share / total for place, share in feeds.points.items()}
            feeds.channels = {box: share / total for box, share in feeds.channels.items()}
            found[index, terminal] = feeds
    return found


def channels_of(extraction: Extraction) -> kdb.Region:
    """Return all channels of a layout, those of MOS capacitors and dummies as well."""
    names = [f"gate.{name}" for name in extraction.technology.devices]
    names += [f"core.{name}" for name, spec in extraction.technology.passives.items() if spec.type == "mos_capacitor"]
    return union(_layer(extraction, name) for name in names)


def _layer(extraction: Extraction, name: str) -> kdb.Region:
    found = extraction.lvs.layer_by_name(name)
    return kdb.Region() if found is None else found


class _Search:
    def __init__(self, extraction: Extraction) -> None:
        self.extraction = extraction
        self.technology = extraction.technology
        self.first = extraction.technology.conductors[0].name
        self.dbu = extraction.layout.dbu
        self.channels = _shapes(channels_of(extraction))
        self.cores = {name: _shapes(_layer(extraction, f"core.{name}")) for name in extraction.technology.passives}
        self._on_net: dict[tuple[int, str], kdb.Shapes] = {}
        self._pieces: dict[tuple[int, kdb.Polygon], list[tuple[int, int]]] = {}

    def feeds(self, device: ExtractedDevice, terminal: str, net: int) -> Feeds:
        """Return what feeds one terminal."""
        found = Feeds(net)
        kind = device.kind
        if kind.name == "capacitor":
            self._plates(found, device, terminal)
            return found
        for finger in device.fingers:
            ends = [end for end in kind.ends if finger.nets.get(end) == net] if terminal in kind.ends else [terminal]
            if terminal == kind.gate or (kind.name == "mos_capacitor" and terminal == "p"):
                for channel in _at(self.channels, self._point(finger)):
                    found.channels[str(channel.bbox())] += finger.w_um
            elif ends:
                self._contacts(found, finger, net, terminal)
        return found

    def _contacts(self, found: Feeds, finger: DrawnFinger, net: int, terminal: str) -> None:
        """Add the contacts on the silicon of the net that the shape of a device touches, else the nearest contact."""
        place = self._point(finger)
        shapes = self.channels if finger.kind.is_mos else self.cores[finger.device]
        beside = [piece for shape in _at(shapes, place) for piece in self._silicon(net, shape)]
        contacts = self._on(beside, net)
        if not contacts:  # silicide joins a source to the tap that it abuts
            contacts = self._on([near for piece in beside for near in self._silicon(net, piece)], net)
        if not contacts and not finger.kind.is_mos and terminal != finger.kind.bulk:
            every = sorted(
                (shape.bbox().center() for shape in self.on_net(net, "contact").each()),
                key=lambda point: (point.sq_distance(place), point.x, point.y),
            )
            contacts = every[:1]
        for point in contacts:
            found.points[FeedPoint(self.first, point.x, point.y)] += finger.w_um / len(contacts)

    def _silicon(self, net: int, shape: kdb.Polygon) -> list[kdb.Polygon]:
        return [
            each.polygon
            for layer in _SILICON
            for each in self.on_net(net, layer).each_touching(shape.bbox())
            if each.polygon.touches(shape)
        ]

    def _on(self, pieces: Iterable[kdb.Polygon], net: int) -> list[kdb.Point]:
        """Return the centres of the contacts on pieces of silicon."""
        found = {point for piece in pieces for point in self._on_piece(piece, net)}
        return [kdb.Point(x, y) for x, y in sorted(found)]

    def _on_piece(self, piece: kdb.Polygon, net: int) -> list[tuple[int, int]]:
        """Return the centres of the contacts on a piece of silicon, which the channels at both sides share."""
        key = (net, piece)
        if key not in self._pieces:
            near = (each.bbox().center() for each in self.on_net(net, "contact").each_touching(piece.bbox()))
            self._pieces[key] = [(point.x, point.y) for point in near if piece.inside(point)]
        return self._pieces[key]

    def _plates(self, found: Feeds, device: ExtractedDevice, terminal: str) -> None:
        spec = self.technology.passives[device.device]
        plates = _shapes(_layer(self.extraction, plate_layer(spec.name)))
        cuts = _shapes(_layer(self.extraction, plate_cut_layer(spec.name)))
        top, bottom = (self.technology.conductor(spec.parts[part]).name for part in ("top", "bottom"))
        count = 0
        for finger in device.fingers:
            if finger.nets[terminal] != found.net:
                continue
            for plate in _at(plates, self._point(finger)):
                area = plate.area()
                if terminal == "p":
                    on = [each.bbox().center() for each in cuts.each_touching(plate.bbox())]
                    count += len(on)
                    for point in on:
                        found.points[FeedPoint(top, point.x, point.y)] += area / len(on)
                else:
                    point = plate.bbox().center()
                    found.points[FeedPoint(bottom, point.x, point.y)] += area
        if terminal == "p" and count:
            layer = self.technology.resolve(spec.parts["cut"])
            cut = next(each for each in self.technology.cuts if self.technology.resolve(each.layer) == layer)
            found.series_ohm = None if cut.resistance_ohm is None else cut.resistance_ohm / count

    def on_net(self, net: int, layer: str) -> kdb.Shapes:
        """Return the merged shapes of a net on a layer."""
        if (net, layer) not in self._on_net:
            self._on_net[net, layer] = _shapes(self.extraction.shapes(net, layer).merged())
        return self._on_net[net, layer]

    def _point(self, finger: DrawnFinger) -> kdb.Point:
        return kdb.Point(round(finger.place.x / self.dbu), round(finger.place.y / self.dbu))


def _shapes(region: kdb.Region) -> kdb.Shapes:
    shapes = kdb.Shapes()
    shapes.insert(region.merged())
    return shapes


def _at(shapes: kdb.Shapes, point: kdb.Point) -> list[kdb.Polygon]:
    """Return the shapes whose boxes hold a point, those first that hold it themselves."""
    found = [shape.polygon for shape in shapes.each_touching(kdb.Box(point, point))]
    inside = [polygon for polygon in found if polygon.inside(point)]
    return inside or found
