"""The circuit that a layout holds, under the names of its input netlist, and where its currents enter the wires.

::

    source, drain     the contacts on its diffusion, each with an equal share of the fingers' current
    gate              the middle of each channel, in proportion to the widths; see ``Channel``
    resistor          the contacts on its head            capacitor   the cuts on its plate; the metal below its middle
    diode, emitter    the contacts on its diffusion       base, collector   the nearest contact of the net
                      (or the metal on an emitter that has none)

Contacts on diffusion and heads, and the layers below them, are not counted: the device models include them.
A bulk is on the own node of its net: wells and substrate are not extracted.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import klayout.db as kdb

from layoutkit.errors import LayoutkitError, listed
from layoutkit.extract.resistor_devices import plate_cut_layer, plate_layer, union
from layoutkit.lvs.compare import compare
from layoutkit.lvs.lvs_result import measured_circuit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from layoutkit.circuit.circuit import Circuit, Device
    from layoutkit.extract.extracted import DrawnFinger, ExtractedDevice, Extraction, LayoutNet
    from layoutkit.lvs.lvs_result import LvsResult

    FeedsOfNet = dict[tuple[str, str], "Feeds"]

_NEXT_EMITTER_UM = 1.5  # from the middle of a device to its nearest emitter, at most [um]
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


def thinned(feeds: Feeds, most: int) -> Feeds:
    """Return ``feeds`` with about ``most`` of its contacts, each with the share of the dropped ones beside it."""
    step = len(feeds.points) // most
    if step < 2:
        return feeds
    kept = sorted(feeds.points)[step // 2 :: step]
    return replace(feeds, points=dict.fromkeys(kept, sum(feeds.points.values()) / len(kept)))


def port_of(net: LayoutNet, extraction: Extraction) -> FeedPoint | None:
    """Return where the port of a net is: its first label, one on a pin before all others."""
    wires = {conductor.name for conductor in extraction.technology.conductors}
    on_wires = [label for label in net.labels if label.conductor in wires]
    labels = sorted(on_wires, key=lambda label: (not label.on_pin, label.text, label.place, label.conductor))
    if not labels:
        return None
    dbu = extraction.layout.dbu
    return FeedPoint(labels[0].conductor, round(labels[0].place.x / dbu), round(labels[0].place.y / dbu))


def terminal_feeds(extraction: Extraction, channels: kdb.Shapes) -> dict[tuple[int, str], Feeds]:
    """Return what feeds each terminal, by index of the extracted device and terminal; bulks are left out."""
    search = _Search(extraction, channels)
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


def _layer(extraction: Extraction, name: str) -> kdb.Region:
    found = extraction.lvs.layer_by_name(name)
    return kdb.Region() if found is None else found


class _Search:
    def __init__(self, extraction: Extraction, channels: kdb.Shapes) -> None:
        self.extraction, self.channels = extraction, channels
        self.technology = extraction.technology
        self.first = extraction.technology.conductors[0].name
        self.dbu = extraction.layout.dbu
        self.cores = {name: _shapes(_layer(extraction, f"core.{name}")) for name in extraction.technology.passives}
        self._on_net: dict[tuple[int, str], kdb.Shapes] = {}
        self._pieces: dict[tuple[int, kdb.Polygon], list[FeedPoint]] = {}

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
            contacts = [FeedPoint(self.first, point.x, point.y) for point in every[:1]]
            if terminal == "e" and not any(s.inside(point) for s in _at(shapes, place) for point in every[:1]):
                contacts = self._bare(net, place) or contacts
        for point in contacts:
            found.points[point] += finger.w_um / len(contacts)

    def _bare(self, net: int, place: kdb.Point) -> list[FeedPoint]:
        """Return where metal lies on an emitter without a contact, the middle one of several: metal near a place."""
        near = kdb.Box(place, place).enlarged(round(_NEXT_EMITTER_UM / self.dbu), 1)
        metal = kdb.Region([shape.polygon for shape in self.on_net(net, self.first).each_touching(near)])
        found = [piece.bbox().center() for piece in (metal & kdb.Region(near)).each()]
        found.sort(key=lambda point: (point.sq_distance(place), point.x, point.y))
        return [FeedPoint(self.first, point.x, point.y) for point in found[:1]]

    def _silicon(self, net: int, shape: kdb.Polygon) -> list[kdb.Polygon]:
        return [
            each.polygon
            for layer in _SILICON
            for each in self.on_net(net, layer).each_touching(shape.bbox())
            if each.polygon.touches(shape)
        ]

    def _on(self, pieces: Sequence[kdb.Polygon], net: int) -> list[FeedPoint]:
        """Return the centres of the contacts on pieces of silicon."""
        found = [self._on_piece(piece, net) for piece in pieces]
        return found[0] if len(found) == 1 else sorted({*chain.from_iterable(found)})

    def _on_piece(self, piece: kdb.Polygon, net: int) -> list[FeedPoint]:
        """Return the centres of the contacts on a piece of silicon, which the channels at both sides share."""
        key = (net, piece)
        if key not in self._pieces:
            near = (each.bbox().center() for each in self.on_net(net, "contact").each_touching(piece.bbox()))
            self._pieces[key] = sorted({FeedPoint(self.first, p.x, p.y) for p in near if piece.inside(p)})
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
            self._on_net[net, layer] = _shapes(self.extraction.merged(net, layer))
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


@dataclass(frozen=True)
class LayoutCircuit:
    """What a layout holds, under the names of the netlist.

    Attributes:
        extraction: What was extracted.
        netlist: The netlist.
        nets: Name of each net of the layout, by number.
        sources: Index of the extracted device, and whether its ends are exchanged, by name in the netlist.
    """

    extraction: Extraction
    netlist: Circuit
    nets: Mapping[int, str]
    sources: Mapping[str, tuple[int, bool]]

    @cached_property
    def circuit(self) -> Circuit:
        """The devices as drawn and measured, with the netlist's names, ports and order of source and drain."""
        stated = {device.id: device for device in self.netlist.devices}
        devices = []
        for name, (index, exchanged) in self.sources.items():
            drawn = _renamed_nets(self._measured[0].devices[index], self._layout_nets)
            written = name in stated and stated[name].exchanged
            devices.append(replace(drawn.with_ends_exchanged() if exchanged else drawn, id=name, exchanged=written))
        return replace(self.netlist, devices=tuple(devices), modules=(), subcircuits=())

    @cached_property
    def dummies(self) -> tuple[Device, ...]:
        """The dummies, likewise."""
        return tuple(_renamed_nets(device, self._layout_nets) for device in self._measured[1])

    @cached_property
    def _measured(self) -> tuple[Circuit, list[Device]]:
        return measured_circuit(self.extraction)

    @cached_property
    def _layout_nets(self) -> dict[str, str]:
        return _net_names_by_own(self.extraction, self.nets)

    @cached_property
    def channels(self) -> kdb.Shapes:
        """All channels of the layout, those of MOS capacitors and dummies as well."""
        technology = self.extraction.technology
        names = [f"gate.{name}" for name in technology.devices]
        names += [f"core.{name}" for name, spec in technology.passives.items() if spec.type == "mos_capacitor"]
        return _shapes(union(_layer(self.extraction, name) for name in names))

    @cached_property
    def feeds(self) -> dict[int, FeedsOfNet]:
        """What feeds the terminals of each net, by its number, under the names of the netlist."""
        names = {index: (name, exchanged) for name, (index, exchanged) in self.sources.items()}
        feeds: dict[int, FeedsOfNet] = defaultdict(dict)
        for (index, terminal), each in terminal_feeds(self.extraction, self.channels).items():
            name, exchanged = names[index]
            ends = self.extraction.devices[index].kind.ends
            own = ends[1 - ends.index(terminal)] if exchanged and terminal in ends else terminal
            feeds[each.net][name, own] = each
        return feeds

    @property
    def substrate(self) -> str:
        """Net of the substrate; empty where no named net reaches it."""
        found = self.extraction.substrate
        return next((self.nets[net.id] for net in self.extraction.nets.values() if net.name == found), "")


def layout_circuit(extraction: Extraction, circuit: Circuit, result: LvsResult | None = None) -> LayoutCircuit:
    """Return the circuit of a layout under the names of ``circuit``, its input netlist.

    Args:
        extraction: What was extracted.
        circuit: The netlist.
        result: How LVS compared the two; None to compare them here.

    Raises:
        LayoutkitError: If the layout is not that circuit, or has layers that extraction does not read.
        NetlistError: If the netlist holds models that the technology does not have.
    """
    result = compare(extraction, circuit) if result is None else result
    unread = extraction.coverage.unchecked
    if unread and not result.mismatches:
        shown = listed(layer.shown for layer in unread)
        raise LayoutkitError(
            f"extraction does not read all layers of {extraction.cell_name}, so its figures may not be those of "
            f"the netlist: {shown}; list those that change no device or net in waived_layers, then try again",
            details=extraction.coverage.to_data(),
        )
    if not result.matched:
        shown = "; ".join(mismatch.message for mismatch in result.mismatches[:3])
        raise LayoutkitError(
            f"the layout of {extraction.cell_name} is not the circuit {circuit.name}, so that its figures would be of "
            f"another one: {result.mismatch_count} differences, the first: {shown}; mend what lvs.run_check reports, "
            "then try again",
            details={"mismatch_count": result.mismatch_count},
        )
    nets = _net_names(extraction, circuit, result)
    by_layout_name, stated = _net_names_by_own(extraction, nets), {device.id: device for device in circuit.devices}
    sources: dict[str, tuple[int, bool]] = {}
    for index, device in enumerate(extraction.circuit.devices):
        names = [name for name in (*result.device_pairs.get(device.id, ()), device.id) if name not in sources]
        name = names[0] if names else f"{device.id}_{index}"
        wanted = stated.get(name)
        sources[name] = index, wanted is not None and _exchanged(_renamed_nets(device, by_layout_name), wanted)
    return LayoutCircuit(extraction, circuit, nets, sources)


def _net_names(extraction: Extraction, circuit: Circuit, result: LvsResult) -> dict[int, str]:
    """Return a name of each net of the layout: the netlist's, else its own, made different from all others."""
    names: dict[int, str] = {}
    taken = set(circuit.nets)
    claimed: set[str] = set()
    for number in sorted(extraction.nets):
        name = result.nets.get(number)
        if name is not None and name not in claimed:
            names[number] = name
            claimed.add(name)
    for number, net in sorted(extraction.nets.items()):
        if number not in names:
            name = net.name if net.name not in taken else f"{net.name}_{number}"
            taken.add(name)
            names[number] = name
    return names


def _net_names_by_own(extraction: Extraction, nets: Mapping[int, str]) -> dict[str, str]:
    """Return the name of each net by the one that it has in the layout."""
    return {net.name: nets[net.id] for net in extraction.nets.values()}


def _renamed_nets(device: Device, names: Mapping[str, str]) -> Device:
    return replace(device, terminals={terminal: names.get(net, net) for terminal, net in device.terminals.items()})


def _exchanged(device: Device, wanted: Device) -> bool:
    """Return whether a device has its two ends the other way round than the one of the netlist."""
    if not device.kind.exchangeable or wanted.kind.ends != device.kind.ends:
        return False
    first, second = device.kind.ends
    own, theirs = ((each.terminals.get(first), each.terminals.get(second)) for each in (device, wanted))
    return own != theirs and own == theirs[::-1]
