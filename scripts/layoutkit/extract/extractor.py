"""Extraction: the circuit of a layout, read from its shapes alone.

Every channel becomes a finger. Fingers of one device type that share gate, bulk, and source and drain (in either order)
are in parallel and become one device: ``w_um`` is the width of all of them, ``fingers`` holds each. A layout shows the
number of fingers, which is the product of ``nf`` and ``m`` of a netlist, not the two.

Net names come from the labels of the cell itself. Nets are never joined because they bear the same name.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.extract.cell_devices import SUBSTRATE
from layoutkit.extract.connectivity import (
    DrawnLayers,
    ElectricalLayers,
    connect,
    device_texts,
    read_layers,
)
from layoutkit.extract.extracted import (
    DrawnFinger,
    ExtractedDevice,
    Extraction,
    Label,
    LayoutNet,
    Point,
    SourceDrain,
    point_um,
)
from layoutkit.extract.folding import FoldKey, dummies, dummy_strings, fold_series, loops, off_transistors
from layoutkit.extract.passive_devices import RECIPES, extract_passives, size_of
from layoutkit.extract.surroundings import ChannelSurroundings, surroundings
from layoutkit.extract.wells_and_bodies import metal_nets, soft_connections, unmeasured
from layoutkit.layout.cells import check_flat_size
from layoutkit.layout.drawn_layers import coverage

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from layoutkit.technology import DeviceSpec, Technology


def extract(
    layout: kdb.Layout, cell: kdb.Cell, technology: Technology, *, waived_layers: Sequence[str] = ()
) -> Extraction:
    """Return what ``cell`` and everything below it is electrically.

    Args:
        layout: The layout that holds ``cell``; it is left as it is.
        cell: Cell to read. Its own labels name the nets; labels in cells below it do not.
        technology: Process that says what the layers mean.
        waived_layers: Layers that may be drawn without being read: names of the technology, or ``layer/datatype``.

    Raises:
        LayoutkitError: If a waived layer is neither a name of the technology nor a number.
        LayoutkitError: If the cell holds more shapes than fit into memory when flattened.
    """
    check_flat_size(cell)
    why = "extraction does not read it"
    understood = read_layers(technology) | _covers_without_effect(cell, technology)
    covered = coverage(cell, technology, understood, waived_layers, why)
    layers = DrawnLayers(cell, technology).electrical()
    metal = metal_nets(layers, layout.dbu)
    around = _surroundings(layers, layout.dbu)
    without_size = _unmeasured(technology, layers, layout.dbu)
    lvs = _database(cell, technology, layers)
    reading = _Reading(lvs, technology, layers, device_texts(cell, technology), around)
    reading.straighten({place for _, place, _ in without_size})
    nets, fingers = reading.nets(), reading.fingers()
    named = {net for net, labels in nets.items() if labels}
    idle = dummies(fingers, named)
    if any(finger.text for finger in fingers):  # a channel that is off and bears none is a dummy of a generator
        idle |= {index for index in off_transistors(fingers) if not fingers[index].text}
    active = [finger for index, finger in enumerate(fingers) if index not in idle]
    folded = fold_series(combined(active, layout.dbu, loops(active, named)), named)
    strings = dummy_strings(folded, named)
    devices = tuple(device for index, device in enumerate(folded) if index not in strings)
    bars = {id(finger) for index in strings for finger in folded[index].fingers}
    idle |= {index for index, finger in enumerate(fingers) if id(finger) in bars}
    apart = tuple(sorted((fingers[index] for index in idle), key=_by_place))
    soft = soft_connections(lvs, metal, nets)
    reading.fold(idle)
    return Extraction(
        cell_name=cell.name,
        technology=technology,
        devices=devices,
        dummies=apart,
        nets=reading.named(nets, devices, apart),
        labels_off_metal=reading.labels_off_metal(),
        soft_connections=soft,
        ignored=reading.ignored(),
        lvs=lvs,
        layout=layout,
        coverage=covered,
        unmeasured=without_size,
        pins_drawn=any(not layers.pins[c.name].is_empty() for c in technology.conductors if c.pin_layer is not None),
    )


def _covers_without_effect(cell: kdb.Cell, technology: Technology) -> set[tuple[int, int]]:
    """Return the covers of devices that lie outside every deep n well: a p well in the p substrate joins nothing."""
    drawn = {c: technology.region(cell, c) for spec in technology.passives.values() for c in spec.covers}
    deep = kdb.Region() if technology.role("deep_nwell") is None else technology.region(cell, "deep_nwell")
    return {technology.spec(name).gds for name, each in drawn.items() if each.outside(deep).count() == each.count()}


def _surroundings(layers: ElectricalLayers, dbu_um: float) -> dict[Point, ChannelSurroundings]:
    """Return the distances of each channel, by its centre; call it before extraction of devices changes the regions."""
    channels = [channel for _, region in sorted(layers.gates.items()) for channel in region.each()]
    found = surroundings(channels, layers.diffusion, layers.conducting["nwell"], dbu_um)
    return {point_um(box.center(), dbu_um): around for box, around in found.items()}


def _unmeasured(technology: Technology, layers: ElectricalLayers, dbu_um: float) -> tuple[tuple[str, Point, str], ...]:
    """Return the devices whose shapes have no width and length; call it before extraction of devices changes them."""
    return tuple(
        (name, point_um(polygon.bbox().center(), dbu_um), reason)
        for name, region in sorted({**layers.gates, **layers.passives.shapes}.items())
        for polygon, reason in unmeasured(region, dbu_um, strips=not technology.any_device(name).kind.rectangle)
    )


def _database(cell: kdb.Cell, technology: Technology, layers: ElectricalLayers) -> kdb.LayoutVsSchematic:
    """Return KLayout's database with devices and nets extracted."""
    lvs = kdb.LayoutVsSchematic(cell.name, cell.layout().dbu)
    connect(lvs, layers.conducting, layers.joins)
    for name, texts in layers.labels.items():
        lvs.register(texts, _label_layer(name))
        lvs.connect(layers.conducting[name], texts)
    lvs.connect_global(layers.conducting[SUBSTRATE], SUBSTRATE.upper())
    for name, gates in layers.gates.items():
        spec = technology.devices[name]
        lvs.register(gates, f"gate.{name}")
        if gates.is_empty():
            continue
        marked = technology.region(cell, spec.drain_marker) if spec.drain_marker else kdb.Region()
        regions = _device_layers(spec, gates, layers, marked)
        for part in {"S", "D"} & regions.keys():
            if regions[part] is not layers.conducting["n_sd" if spec.type == "nmos" else "p_sd"]:
                lvs.register(regions[part], f"{part}.{name}")
        lvs.extract_devices(kdb.DeviceExtractorMOS4Transistor(name, spec.unequal_ends), regions)
    extract_passives(lvs, technology, layers.passives, layers.conducting)
    lvs.extract_netlist()
    return lvs


def _device_layers(
    spec: DeviceSpec, gates: kdb.Region, layers: ElectricalLayers, marked: kdb.Region
) -> dict[str, kdb.ShapeCollection]:
    ends = layers.conducting["n_sd" if spec.type == "nmos" else "p_sd"]
    body = layers.conducting["p_body" if spec.type == "nmos" else "nwell"]
    parts, drain = {"SD": ends}, ends
    if spec.block:
        parts = {"S": ends & layers.sources, "D": ends - layers.sources}
    elif spec.drain_marker:  # its well, or what the hole in the well leaves of the body of NMOS
        drain = layers.conducting["nwell" if spec.type == "nmos" else "p_body"]
        parts = {"S": ends, "D": drain & marked}
    return {**parts, "G": gates, "W": body, "tS": ends, "tD": drain, "tG": layers.conducting["poly"], "tB": body}


def _label_layer(conductor: str) -> str:
    return f"{conductor}.names"


class _Reading:
    """Reads the extracted database into plain data."""

    def __init__(
        self,
        lvs: kdb.LayoutVsSchematic,
        technology: Technology,
        layers: ElectricalLayers,
        texts: list[tuple[str, kdb.Point]],
        around: Mapping[Point, ChannelSurroundings],
    ) -> None:
        self.lvs = lvs
        self.technology = technology
        self.layers = layers
        self.dbu = lvs.internal_layout().dbu
        self.circuit: kdb.Circuit = lvs.netlist().top_circuit()
        shapes = kdb.Shapes()
        for found_on in (self.layers.gates, self.layers.passives.shapes):
            for _, region in sorted(found_on.items()):
                shapes.insert(region.merged())
        found: dict[Point, str] = {}
        for text, place in texts:
            for shape in shapes.each_touching(kdb.Box(place, place)):
                found.setdefault(point_um(shape.bbox().center(), self.dbu), text)
        self.text_at = found
        self.around = around
        self.untied: list[tuple[str, Point, str]] = []

    def nets(self) -> dict[int, tuple[Label, ...]]:
        """Return the labels of every net of the circuit."""
        if self.circuit is None:
            return {}
        return {net.cluster_id: self._labels(net) for net in self.circuit.each_net()}

    def _labels(self, net: kdb.Net) -> tuple[Label, ...]:
        labels = []
        for conductor in self.layers.labels:
            texts = self.lvs.texts_of_net(net, self._label_index[conductor], True)
            labels += [self._label(text, conductor) for text in texts.each()]
        return tuple(sorted(labels, key=lambda label: (label.text, label.place, label.conductor)))

    def _label(self, text: kdb.Text, conductor: str) -> Label:
        pins = self.layers.pins.get(conductor, kdb.Region())
        under = kdb.Region(kdb.Box(text.x - 1, text.y - 1, text.x + 1, text.y + 1))
        return Label(
            text.string, conductor, point_um(kdb.Point(text.x, text.y), self.dbu), not (pins & under).is_empty()
        )

    @cached_property
    def _label_index(self) -> dict[str, int]:
        return {name: self.lvs.layer_index(self.lvs.texts_by_name(_label_layer(name))) for name in self.layers.labels}

    @cached_property
    def bends(self) -> dict[Point, float]:
        """Centre of each bent resistor [um] to its number of bends."""
        return {point_um(kdb.Point(*centre), self.dbu): n for centre, n in self.layers.passives.bends.items()}

    def straighten(self, without_size: set[Point]) -> None:
        """Give bent resistors the length that their model counts; KLayout's is that of the centre line.

        Args:
            without_size: Centres of the devices that have no width and length.
        """
        bends = self.bends
        for device in self.circuit.each_device() if bends else ():
            place = Point(round(device.trans.disp.x, 6), round(device.trans.disp.y, 6))
            spec = self.technology.passives.get(device.device_class().name)
            if place in bends and place not in without_size and spec is not None and spec.bend is not None:
                width, length = size_of(device)
                device.set_parameter("L", length - bends[place] * (2 * width - spec.bend_um(width, 0.0)))

    def fingers(self) -> list[DrawnFinger]:
        """Return all channels in the order of the circuit's devices."""
        if self.circuit is None:
            return []
        found = []
        deep_wells = kdb.Shapes()
        deep_wells.insert(self.layers.conducting["deep_nwell"])
        fed = {point_um(kdb.Point(*centre), self.dbu): size for centre, size in self.layers.passives.fed.items()}
        blocked = {
            point_um(kdb.Point(*centre), self.dbu): tuple(round(side * self.dbu, 6) for side in sides)
            for centre, sides in self.layers.blocked.items()
        }
        for device in self.circuit.each_device():
            place = Point(round(device.trans.disp.x, 6), round(device.trans.disp.y, 6))
            device_class = device.device_class()
            kind = self.technology.any_device(device_class.name).kind
            terminals = {definition.name for definition in device_class.terminal_definitions()}
            nets = {
                own: device.net_for_terminal(terminal).cluster_id
                for terminal, own in RECIPES[kind.name].terminals.items()
                if terminal in terminals
            }
            ends = {device.net_for_terminal(name).cluster_id for name in RECIPES[kind.name].tied}
            if len(ends) > 1:
                self.untied.append((kind.name, place, "its source, drain and body are not one net"))
            w_um, l_um = size_of(device)
            feed_um = 0.0
            if place in fed:
                w_um, l_um, feed_um = (round(side * self.dbu, 6) for side in fed[place])
            found.append(
                DrawnFinger(
                    device=device_class.name,
                    kind=kind,
                    w_um=w_um,
                    l_um=l_um,
                    nets=nets,
                    place=place,
                    text=self.text_at.get(place),
                    junctions=_junctions(device) if kind.is_mos else {},
                    around=self.around.get(place) if kind.is_mos else None,
                    feed_um=feed_um,
                    bends=self.bends.get(place, 0),
                    blocked_um=blocked.get(place, ()),
                    in_deep_well=_is_inside(deep_wells, kdb.Point(*(round(side / self.dbu) for side in place))),
                )
            )
        return found

    def fold(self, dummies: set[int]) -> None:
        """Give KLayout's netlist its pins, take the dummies out and combine parallel devices there as well."""
        if self.circuit is None:
            return
        for net in list(self.circuit.each_net()):
            if self._labels(net):
                self.circuit.connect_pin(self.circuit.create_pin(net.name), net)
        listed = list(self.circuit.each_device())
        for index in sorted(dummies):
            self.circuit.remove_device(listed[index])
        self.lvs.netlist().combine_devices()

    def named(
        self, labels: dict[int, tuple[Label, ...]], devices: tuple[ExtractedDevice, ...], apart: tuple[DrawnFinger, ...]
    ) -> dict[int, LayoutNet]:
        """Return the nets that have a label, a device or a dummy, each with a name of its own."""
        terminals: dict[int, list[tuple[int, str]]] = {}
        for index, finger in enumerate([*(finger for device in devices for finger in device.fingers), *apart]):
            for terminal, net in finger.nets.items():
                terminals.setdefault(net, []).append((index, terminal))
        met = {net for device in devices for net in device.nets.values()}
        met |= {net for finger in apart for net in finger.nets.values()}
        kept = sorted(net for net in labels if labels[net] or net in met)
        used: set[str] = set()
        nets = {}
        for net in kept:
            plain = self.circuit.net_by_cluster_id(net).name or f"${net}"
            texts = sorted({label.text for label in labels[net]})
            name = ",".join(texts) or plain
            name = f"{name}${net}" if name in used else name
            used.add(name)
            nets[net] = LayoutNet(net, name, labels[net], tuple(terminals.get(net, ())))
        return nets

    def labels_off_metal(self) -> tuple[Label, ...]:
        """Return the labels under which there is no shape of their conductor."""
        return tuple(
            sorted(
                (
                    self._label(text, name)
                    for name, texts in self.layers.labels.items()
                    for text in texts.not_interacting(self.layers.conducting[name]).each()
                ),
                key=lambda label: (label.text, label.place, label.conductor),
            )
        )

    def ignored(self) -> dict[str, tuple[tuple[Point, str], ...]]:
        """Return kind of device to the places where something drawn should be one but makes none, with the reason."""
        crossings = (self.layers.unrecognised_gates, "its implants, well and markers are those of no device")
        found = {"nmos": self._places([crossings]) + self._refused(on_passive=False)}
        for kind, loose in self.layers.passives.loose.items():
            found[kind] = self._places(loose)
        found.setdefault("resistor", []).extend(self._refused(on_passive=True))
        for kind, place, reason in self.untied:
            found.setdefault(kind, []).append((place, reason))
        return {kind: tuple(sorted(places)) for kind, places in found.items()}

    def _places(self, regions: Sequence[tuple[kdb.Region, str]]) -> list[tuple[Point, str]]:
        """Return the centre of each polygon of the regions, with the reason given for its region."""
        return [
            (point_um(polygon.bbox().center(), self.dbu), reason)
            for region, reason in regions
            for polygon in region.merged().each()
        ]

    def _refused(self, *, on_passive: bool) -> list[tuple[Point, str]]:
        """Return the devices that KLayout rejected, those of passives or the others, with its reason."""
        entries = [
            (entry, entry.message.startswith("Expected two polygons on contacts"))
            for entry in self.lvs.each_log_entry()
        ]
        return [
            (Point(round(centre.x, 6), round(centre.y, 6)), entry.message)
            for entry, of_passive in entries
            if of_passive == on_passive
            for centre in [entry.geometry.bbox().center()]
        ]


def _is_inside(shapes: kdb.Shapes, at: kdb.Point) -> bool:
    return any(shape.polygon.inside(at) for shape in shapes.each_touching(kdb.Box(at, at)))


def _junctions(device: kdb.Device) -> dict[str, SourceDrain]:
    """Return a channel's share of source and drain: KLayout divides a diffusion evenly among the channels beside it."""
    return {
        terminal: SourceDrain(
            round(device.parameter(f"A{terminal.upper()}"), 6), round(device.parameter(f"P{terminal.upper()}"), 6)
        )
        for terminal in ("s", "d")
    }


def combined(fingers: Sequence[DrawnFinger], dbu: float, apart: Collection[int] = ()) -> tuple[ExtractedDevice, ...]:
    """Return the fingers combined where they are in parallel and of one length, sorted by place.

    Args:
        fingers: The fingers.
        dbu: Database unit. [um]
        apart: Indexes of fingers that stay as they are.
    """
    groups: dict[tuple[FoldKey[int], int, int], list[DrawnFinger]] = {}
    for index in sorted(range(len(fingers)), key=lambda each: _by_place(fingers[each])):
        finger, own = fingers[index], index if index in apart else -1
        groups.setdefault((finger.key, round(finger.l_um / dbu), own), []).append(finger)
    names = _device_names(list(groups.values()))
    return tuple(
        ExtractedDevice(
            id=name,
            device=members[0].device,
            kind=members[0].kind,
            w_um=round(sum(finger.w_um for finger in members), 6),
            l_um=members[0].l_um,
            fingers=tuple(members),
            nets=dict(members[0].nets),
        )
        for name, members in zip(names, groups.values(), strict=True)
    )


def _by_place(finger: DrawnFinger) -> tuple[Point, str]:
    return finger.place, finger.device


def _device_names(groups: list[list[DrawnFinger]]) -> list[str]:
    """Return one name per group: the device texts on it where there are any, else a letter and a number."""
    names: list[str] = []
    used: set[str] = set()
    for number, members in enumerate(groups, 1):
        letter = "M" if members[0].kind.is_mos else "D"
        base = "_".join(sorted({finger.text for finger in members if finger.text})) or f"{letter}_{number}"
        name, repeat = base, 1
        while name in used:
            repeat += 1
            name = f"{base}_{repeat}"
        used.add(name)
        names.append(name)
    return names
