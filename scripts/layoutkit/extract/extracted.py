"""What extraction finds: fingers, devices, nets, labels, and the shapes of devices. See ``extract``.

``latched_nets`` finds the pairs of nets that a latch discharges against each other.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import klayout.db as kdb

from layoutkit.circuit.circuit import Circuit, Device
from layoutkit.extract.folding import SizedDevice
from layoutkit.extract.resistor_devices import plate_layer
from layoutkit.layout.drawn_layers import Coverage
from layoutkit.technology.device_kinds import BLOCKS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from layoutkit.extract.surroundings import ChannelSurroundings
    from layoutkit.technology import Technology


class Point(NamedTuple):
    """A place in the cell. [um]"""

    x: float
    y: float


@dataclass(frozen=True)
class Label:
    """One text that names a net: where it is and whether a pin shape lies under it."""

    text: str
    conductor: str
    place: Point
    on_pin: bool


class SourceDrain(NamedTuple):
    """The share that one channel has of a source or drain: half of what two channels share.

    Attributes:
        area_um2: Diffusion outside the channels. [um2]
        perimeter_um: Its outline, the edge at the channel included, as the models of the PDKs expect it. [um]
    """

    area_um2: float
    perimeter_um: float

    def __add__(self, other: object) -> SourceDrain:
        """Return both together."""
        if not isinstance(other, SourceDrain):
            return NotImplemented
        return SourceDrain(self.area_um2 + other.area_um2, self.perimeter_um + other.perimeter_um)


@dataclass(frozen=True)
class DrawnFinger(SizedDevice):
    """One channel, resistor bar or plate: its device, size [um], nets by terminal and the device text on it, if any.

    A channel also has its share of source and drain, by terminal, and its distances to edges and neighbours. A plate
    that wires of a stated width lead to has that width, or 0 where it cannot be measured. ``bends`` states how often a
    bar turns back, ``blocked_um`` how far silicide is blocked at drain and source, ``in_deep_well`` whether it lies
    above a deep n well.
    """

    place: Point
    text: str | None
    junctions: Mapping[str, SourceDrain] = field(default_factory=dict)
    around: ChannelSurroundings | None = None
    feed_um: float = 0.0
    bends: float = 0
    blocked_um: tuple[float, ...] = ()
    in_deep_well: bool = False


@dataclass(frozen=True)
class ExtractedDevice(SizedDevice):
    """Parallel fingers of one length, as one device; of a resistor all bars, in series and in parallel."""

    id: str
    fingers: tuple[DrawnFinger, ...]

    @property
    def place(self) -> Point:
        """Where its first finger is."""
        return self.fingers[0].place

    @property
    def bends(self) -> int:
        """How often each of its bars turns back; 0 where they differ or are in series."""
        (bends, length), *others = {(finger.bends, finger.l_um) for finger in self.fingers}
        return int(bends) if not others and length == self.l_um and bends == int(bends) else 0

    def junction(self, terminal: str) -> SourceDrain:
        """Return area and perimeter of its source or drain, of all fingers together.

        Args:
            terminal: ``s`` or ``d``. A finger whose ends are exchanged counts with the end on the same net.
        """
        total = SourceDrain(0.0, 0.0)
        for finger in self.fingers:
            turned = finger.nets[terminal] != self.nets[terminal]
            total += finger.junctions[{"s": "d", "d": "s"}[terminal] if turned else terminal]
        return total

    def without_bulk(self) -> ExtractedDevice:
        """Return it without its bulk terminal."""
        return replace(self, nets={terminal: net for terminal, net in self.nets.items() if terminal != self.kind.bulk})

    def in_series(self, other: ExtractedDevice, nets: Mapping[str, int]) -> ExtractedDevice:
        """Return both as one device on ``nets``, as long as the two together."""
        length = round(self.l_um + other.l_um, 6)
        return replace(self, l_um=length, fingers=(*self.fingers, *other.fingers), nets=nets)

    def in_parallel(self, other: ExtractedDevice) -> ExtractedDevice:
        """Return both as one device, as wide as the two together."""
        return replace(self, w_um=round(self.w_um + other.w_um, 6), fingers=(*self.fingers, *other.fingers))


@dataclass(frozen=True)
class LayoutNet:
    """One net of the layout that has a device or a label on it."""

    id: int
    name: str
    labels: tuple[Label, ...]
    terminals: tuple[tuple[int, str], ...]
    """Terminals on it: index of the finger, dummies included, and the terminal."""

    @property
    def texts(self) -> tuple[str, ...]:
        """Its different names, sorted."""
        return tuple(sorted({label.text for label in self.labels}))


@dataclass(frozen=True)
class SoftConnection:
    """A net whose pieces nothing but a well or the substrate joins; of each piece a name and a place."""

    net: int
    pieces: tuple[tuple[str, Point], ...]


@dataclass(frozen=True)
class Extraction:
    """What a cell holds.

    Attributes:
        cell_name: The cell.
        technology: Its process.
        devices: Parallel fingers combined; without the dummies. Sorted by place.
        dummies: Fingers that can carry no current.
        nets: Nets with a device or a label, by id.
        labels_off_metal: Labels that name nothing, since no shape of their conductor is under them.
        soft_connections: Nets that only wells or substrate hold together.
        ignored: Kind of device to the places where something drawn should be one but makes none, and why. Poly that
            crosses diffusion without making a transistor is listed as ``nmos``.
        pins_drawn: Whether the cell itself has pin shapes of its conductors.
        unmeasured: Devices whose shape has no width and length: type of device, place and reason.
        lvs: KLayout's database: shapes, nets, netlist; ready to be compared.
        coverage: Drawn layers that were not read.
    """

    cell_name: str
    technology: Technology
    devices: tuple[ExtractedDevice, ...]
    dummies: tuple[DrawnFinger, ...]
    nets: dict[int, LayoutNet]
    labels_off_metal: tuple[Label, ...]
    soft_connections: tuple[SoftConnection, ...]
    ignored: dict[str, tuple[tuple[Point, str], ...]]
    lvs: kdb.LayoutVsSchematic
    layout: kdb.Layout = field(repr=False)  # its shapes must outlive the database
    coverage: Coverage = field(default_factory=Coverage)
    unmeasured: tuple[tuple[str, Point, str], ...] = ()
    pins_drawn: bool = False
    _merged: dict[tuple[int, str], kdb.Region] = field(default_factory=dict, repr=False, compare=False)

    def without_bulks_of(self, names: Collection[str]) -> Extraction:
        """Return it with the bulk terminals of the devices of these types left out."""
        devices = tuple(d.without_bulk() if d.device in names else d for d in self.devices)
        return replace(self, devices=devices)

    @cached_property
    def fingers(self) -> tuple[DrawnFinger, ...]:
        """All fingers, dummies last."""
        return (*(finger for device in self.devices for finger in device.fingers), *self.dummies)

    @cached_property
    def circuit(self) -> Circuit:
        """The devices as a circuit: ``w`` of all fingers [m], ``nf`` their number, ``m`` 1.

        Its ports are the labels on pin shapes, or all labels where there are no pin shapes.
        """
        devices = tuple(self.as_device(device) for device in self.devices)
        labelled = sorted(net.name for net in self.nets.values() if net.labels)
        pinned = sorted(net.name for net in self.nets.values() if any(label.on_pin for label in net.labels))
        return Circuit(name=self.cell_name, devices=devices, ports=tuple(pinned or labelled))

    def as_device(self, device: ExtractedDevice) -> Device:
        """Return an extracted device as one of a circuit."""
        passive = self.technology.passives.get(device.device)
        spec = self.technology.devices[device.device] if passive is None else passive
        unit = 1 if passive is None else max(1, round(device.w_um / device.fingers[0].w_um))
        params = {"w": round(device.w_um / unit * 1e-6, 12), "l": round(device.l_um * 1e-6, 12), "m": unit}
        if passive is None:
            params["nf"] = len(device.fingers)
            stated = zip(BLOCKS, device.fingers[0].blocked_um, strict=False)
            params |= {name: round(length * 1e-6, 12) for name, length in stated}
        elif passive.kind.in_cells and passive.widths:  # what is drawn does not tell width and length of emitters apart
            metre = self.layout.dbu * 1e-6
            params["w"], params["l"] = passive.emitter_sides((params["w"], params["l"]), metre)
            drawn = params["w"] * 1e6 / self.layout.dbu
            params["nf"] = 1 + min(range(len(passive.widths)), key=lambda i: abs(passive.widths[i] - drawn))
        elif passive.fed:
            params["wfeed"] = round(device.fingers[0].feed_um * 1e-6, 12)
        elif (bends := device.bends) > 0:
            params["bends"] = bends
        nets = {terminal: self.nets[net].name for terminal, net in device.nets.items()}
        model = spec.model if passive is None else passive.model_of(device.fingers[0].w_um)
        return Device(id=device.id, type=spec.type, model=model, params=params, terminals=nets)

    def shapes(self, net: int, layer: str) -> kdb.Region:
        """Return the shapes of a net on one of the layers of ``DrawnLayers.electrical``."""
        top = self.lvs.netlist().top_circuit()
        return self.lvs.shapes_of_net(top.net_by_cluster_id(net), self.lvs.polygons_by_name(layer), True)

    def merged(self, net: int, layer: str) -> kdb.Region:
        """Return the merged shapes of a net on a layer, found once; shared, not to be changed."""
        if (net, layer) not in self._merged:
            self._merged[net, layer] = self.shapes(net, layer).merged()
        return self._merged[net, layer]

    def reaches(self, net: int, *layers: str) -> bool:
        """Return whether the net has a shape on one of the layers."""
        return any(not self.shapes(net, layer).is_empty() for layer in layers)

    @cached_property
    def substrate(self) -> str | None:
        """Name of the net of the substrate; None where the process draws p wells, or no named net reaches it."""
        from layoutkit.extract.cell_devices import SUBSTRATE

        return next((net.name for net in self.nets.values() if self.reaches(net.id, SUBSTRATE)), None)

    def place_of(self, net: int) -> Point | None:
        """Return where to look for a net: a label, else its metal, else a device on it."""
        found = self.nets[net]
        if found.labels:
            return found.labels[0].place
        for conductor in self.technology.conductors:
            shapes = self.shapes(net, conductor.name)
            if not shapes.is_empty():
                return point_um(min((polygon.bbox().center() for polygon in shapes.each()), key=str), self.layout.dbu)
        return self.fingers[found.terminals[0][0]].place if found.terminals else None


def point_um(point: kdb.Point, dbu: float) -> Point:
    """Return ``point`` [dbu] in micrometres."""
    return Point(round(point.x * dbu, 6), round(point.y * dbu, 6))


def latched_nets(devices: Sequence[ExtractedDevice]) -> set[frozenset[int]]:
    """Return the pairs of nets that two cross-coupled transistors join: those of their drains, and of their sources.

    Transistors of the same types drive both nets of the drains; those that are always off do not count, nor those with
    a gate on either net. Where some drive one net alone, the two are no sides of a latch that decides: an inverter
    switches a Schmitt trigger by one of them, and the difference of their capacitances is no offset.
    """
    ends: dict[int, list[tuple[ExtractedDevice, int]]] = defaultdict(list)
    for device in devices:
        if device.kind.gate:
            for own, other in (("s", "d"), ("d", "s")):
                ends[device.nets[own]].append((device, device.nets[other]))

    def driving(net: int, latch: frozenset[int]) -> set[str]:
        return {each.kind.name for each, other in ends[net] if other != net and each.nets["g"] not in {*latch, other}}

    found: set[frozenset[int]] = set()
    for drain, connected in [*ends.items()]:
        for device, source in connected:
            latch = frozenset((device.nets["g"], drain))
            # Another transistor of the type has this drain as its gate and this gate as its drain.
            alike = [pair for pair in ends[device.nets["g"]] if pair[0].kind.name == device.kind.name]
            partners = [other for each, other in alike if each.nets["g"] == drain]
            if len(latch) == 2 and partners and driving(drain, latch) == driving(device.nets["g"], latch):
                found |= {latch, *(frozenset((source, other)) for other in partners)}
    return found


class Bodies:
    """Finds the shape of each channel, bar, plate or emitter of a layout.

    Args:
        extraction: What was found in the layout.
    """

    def __init__(self, extraction: Extraction) -> None:
        self.extraction = extraction
        self.shapes: dict[str, kdb.Shapes] = {}

    def box(self, finger: DrawnFinger) -> kdb.Box:
        """Return the box of a channel, bar or plate. [dbu]"""
        if finger.around is not None:
            return finger.around.box
        dbu = self.extraction.layout.dbu
        point = kdb.Point(round(finger.place.x / dbu), round(finger.place.y / dbu))
        if finger.device not in self.shapes:
            self.shapes[finger.device] = kdb.Shapes()
            for name in (f"core.{finger.device}", f"gate.{finger.device}", plate_layer(finger.device)):
                region = self.extraction.lvs.layer_by_name(name)
                if region is not None:
                    self.shapes[finger.device].insert(region.merged())
        at = [shape.bbox() for shape in self.shapes[finger.device].each_touching(kdb.Box(point, point))]
        return min(at, key=lambda box: (box.area(), str(box)), default=kdb.Box(point, point).enlarged(1, 1))
