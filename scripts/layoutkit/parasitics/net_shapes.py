"""The shapes of each net on each level of the stack, as capacitances need them, and pieces of capacitance.

Wires above a resistor see its body, and the models have what it has to the silicon below.

::

    poly    ####|===========|####        ####  head: on a net; the model may contain the capacitance of it as well
            head     body    head        ====  body: half of what wires have to it counts to the net of each end

Inner nets lie between the parts of a resistor that extraction states as one device.

::

    a --[part]-- inner --[part]-- inner --[part]-- b       in the netlist: one resistor from a to b
                   2/3 a            1/3 a
                   1/3 b            2/3 b

An inner net has no node in the netlist, but its wires have capacitance. While signals are slow against the resistor
and its capacitance, the voltage of an inner net is a weighted mean of those at the ends, and the charge on it comes
from the ends with the same weights (Elmore 1948, the first moment of the network). So each end gets that share of it.

Capacitances are pieces between two nets at a place, and their sums.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import klayout.db as kdb
import numpy as np

from layoutkit.extract.cell_devices import SUBSTRATE
from layoutkit.extract.connectivity import DrawnLayers
from layoutkit.extract.resistor_devices import plate_layer, union
from layoutkit.technology.parasitic_data import DIFFUSION, POLY, THICK_DIFFUSION

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from numpy.typing import NDArray

    from layoutkit.extract.extracted import DrawnFinger, ExtractedDevice, Extraction
    from layoutkit.parasitics.rectangles import Integers
    from layoutkit.technology import Technology

    ShapesOfNets = dict[int, kdb.Region]
    Shares = dict[int, tuple[tuple[int, float], ...]]
    Numbers = NDArray[np.floating]

WELL = "well"
"""The lowest level: n wells and isolated p wells. Where there is none there is the substrate."""
GROUND = -1
"""Number of the net of the substrate, and of metal on no net, which is counted as if it were grounded."""


@dataclass(frozen=True)
class NetShapes:
    """Shapes by level and net.

    Attributes:
        levels: Level (``well``, ``diffusion``, ``thick_diffusion``, ``poly``, conductors) to net to its shapes.
        devices: Where poly is part of a device, whose model has its capacitance: diffusion, resistors.
        plates: Conductor to the plates of capacitors just above it, by net; the devices' models have what is between.
        n_wells: N wells and deep n wells by net, whose junctions with p silicon have a capacitance.
        p_wells: P silicon that is isolated from the substrate, by net.
        floating: Conductors with metal on no net.
        inner: Body of a resistor, or net inside one, to the nets at the ends, each with its share of the capacitance.
    """

    levels: Mapping[str, ShapesOfNets]
    devices: kdb.Region = field(default_factory=kdb.Region)
    plates: Mapping[str, ShapesOfNets] = field(default_factory=dict)
    n_wells: ShapesOfNets = field(default_factory=dict)
    p_wells: ShapesOfNets = field(default_factory=dict)
    floating: tuple[str, ...] = ()
    inner: Mapping[int, tuple[tuple[int, float], ...]] = field(default_factory=dict)


def level_names(technology: Technology) -> list[str]:
    """Return the levels from below; both kinds of diffusion are at the same height."""
    return [WELL, DIFFUSION, THICK_DIFFUSION, POLY, *(conductor.name for conductor in technology.conductors)]


def net_shapes(extraction: Extraction) -> NetShapes:
    """Return the shapes of nets by their numbers in ``extraction.nets``; what is inside resistors has other numbers."""
    technology = extraction.technology
    inner = inner_nets(extraction)
    reader = _Reader(extraction, {*extraction.nets, *inner})
    drawn = DrawnLayers(extraction.layout.cell(extraction.cell_name), technology)
    thick = union(drawn.layer(name) for name, layer in technology.layers.items() if layer.purpose == "oxide")
    thin, below_thick = _divided(reader.on("n_sd", "p_sd", "n_tap", "p_tap"), thick)
    n_wells = reader.on("nwell", "deep_nwell")
    p_wells = {net: shapes for net, shapes in reader.on("p_body").items() if not reader.is_substrate(net)}
    wells = reader.on("nwell") | p_wells
    poly = reader.on("poly")
    bodies = resistor_bodies(extraction, inner, poly, max((*extraction.nets, *inner), default=0) + 1)
    levels = {WELL: wells, DIFFUSION: thin, THICK_DIFFUSION: below_thick, POLY: poly | bodies.shapes}
    levels |= {conductor.name: reader.on(conductor.name) for conductor in technology.conductors}
    plates: dict[str, ShapesOfNets] = {}
    for name, spec in technology.passives.items():
        if "plate" in spec.parts:
            bottom = plates.setdefault(technology.conductor(spec.parts["bottom"]).name, {})
            for net, shapes in reader.on(plate_layer(name)).items():
                bottom[net] = bottom.get(net, kdb.Region()) + shapes
    return NetShapes(
        levels=levels,
        devices=(drawn.role("active") + drawn.role("tap") + bodies.modelled).merged(),
        plates=plates,
        n_wells=n_wells,
        p_wells=p_wells,
        floating=tuple(conductor.name for conductor in technology.conductors if GROUND in levels[conductor.name]),
        inner=inner | bodies.shares,
    )


def _divided(shapes: ShapesOfNets, area: kdb.Region) -> tuple[ShapesOfNets, ShapesOfNets]:
    """Return the shapes outside and inside an area, without nets that have none there."""
    if area.is_empty():
        return shapes, {}
    outside = {net: region - area for net, region in shapes.items()}
    inside = {net: region & area for net, region in shapes.items()}
    return without_empty(outside), without_empty(inside)


def without_empty(shapes: ShapesOfNets) -> ShapesOfNets:
    """Return the nets that have shapes."""
    return {net: region for net, region in shapes.items() if not region.is_empty()}


class _Reader:
    """Shapes of the ``known`` nets of an extraction; those of all others are on ``GROUND``."""

    def __init__(self, extraction: Extraction, known: Collection[int]) -> None:
        self.extraction = extraction
        self.known = known
        circuit = extraction.lvs.netlist().top_circuit()
        self.nets = [] if circuit is None else list(circuit.each_net())

    def on(self, *layers: str) -> ShapesOfNets:
        found: ShapesOfNets = {}
        for layer in layers:
            region = self.extraction.lvs.polygons_by_name(layer)
            if region is None or region.is_empty():
                continue
            for net in self.nets:
                shapes = self.extraction.lvs.shapes_of_net(net, region, True)
                if not shapes.is_empty():
                    number = net.cluster_id if net.cluster_id in self.known else GROUND
                    found.setdefault(number, kdb.Region()).insert(shapes)
        return {net: region.merged() for net, region in found.items()}

    def is_substrate(self, net: int) -> bool:
        return net == GROUND or self.extraction.reaches(net, SUBSTRATE)


def inner_nets(extraction: Extraction) -> Shares:
    """Return the shares that the nets at the ends of resistors have of each net inside them, all above 0.

    Nets are numbers as in ``extraction.nets``, which holds no inner net. The shares of an inner net add up to 1.
    """
    found: Shares = {}
    for device in extraction.devices:
        if device.kind.in_series == "lengths" and len(device.fingers) > 1:
            found |= {net: shares for net, shares in _shares(device).items() if net not in extraction.nets}
    return found


def _shares(device: ExtractedDevice) -> Shares:
    """Return the shares of both ends in each net inside."""
    first, second = device.kind.ends
    ends = {device.nets[first], device.nets[second]}
    inner = {bar.nets[end] for bar in device.fingers for end in device.kind.ends} - ends
    return voltage_shares([(bar.nets[first], bar.nets[second], bar.w_um / bar.l_um) for bar in device.fingers], inner)


def voltage_shares(bars: Iterable[tuple[int, int, float]], inner: Collection[int]) -> Shares:
    """Return the shares of the ends in each inner net: its voltage with 1 V at one of them, 0 V at the others.

    Args:
        bars: The two nets of each resistor, and its conductance in any unit.
        inner: The inner nets; all others are ends.
    """
    bars = list(bars)
    ends = sorted({net for *both, _ in bars for net in both} - set(inner))
    row = {net: number for number, net in enumerate((*sorted(inner), *ends))}
    conductances = np.zeros((len(row), len(row)))
    for first, second, conductance in bars:
        a, b = row[first], row[second]
        conductances[[a, b], [a, b]] += conductance
        conductances[[a, b], [b, a]] -= conductance
    size = len(inner)
    parts = np.linalg.solve(conductances[:size, :size], -conductances[:size, size:])
    return {
        net: tuple((end, share) for end, share in zip(ends, shares, strict=True) if share > 0)
        for net, shares in zip(sorted(inner), parts.tolist(), strict=True)
    }


@dataclass(frozen=True)
class ResistorBodies:
    """The bodies of all poly resistors of a layout.

    Attributes:
        shapes: A number of its own, above those of all nets, to each body.
        shares: That number to the nets at the ends, each with its share.
        modelled: Bodies and heads whose capacitance to the layers below is in the models.
    """

    shapes: dict[int, kdb.Region] = field(default_factory=dict)
    shares: Shares = field(default_factory=dict)
    modelled: kdb.Region = field(default_factory=kdb.Region)


def resistor_bodies(
    extraction: Extraction, inner: Shares, poly_of_nets: Mapping[int, kdb.Region], first_number: int
) -> ResistorBodies:
    """Return the bodies of the poly resistors of a layout.

    Parts in series are one device of the netlist, whose model knows two heads. The heads between the parts are wires.

    Args:
        extraction: The layout.
        inner: Shares of nets inside resistors, see ``inner_nets``.
        poly_of_nets: Net to its poly, without bodies.
        first_number: A number above those of all nets.
    """
    technology, found = extraction.technology, ResistorBodies()
    poly = union(region for net, region in sorted(poly_of_nets.items()) if net in extraction.nets)
    fingers: dict[str, list[DrawnFinger]] = defaultdict(list)
    for finger in extraction.fingers:
        fingers[finger.device].append(finger)
    layer = technology.roles["poly"]
    for name, spec in sorted(technology.passives.items()):
        cores = extraction.lvs.layer_by_name(f"core.{name}") if fingers[name] else None
        if cores is None or technology.resolve(spec.parts.get("body", "")) != technology.resolve(layer):
            continue
        found.modelled.insert(modelled_by(technology, name, cores, poly))
        shapes = kdb.Shapes()
        shapes.insert(cores.merged())
        for finger in fingers[name]:
            place = kdb.DPoint(*finger.place).to_itype(technology.dbu_um)
            for body in shapes.each_touching(kdb.Box(place, place)):
                if body.polygon.inside(place):
                    number = first_number + len(found.shapes)
                    found.shapes[number] = kdb.Region(body.polygon)
                    found.shares[number] = _halves(finger, inner)
    return found


def modelled_by(technology: Technology, name: str, cores: kdb.Region, poly: kdb.Region) -> kdb.Region:
    """Return the bodies and heads of a resistor whose capacitance to the layers below is in its model.

    Args:
        technology: Process.
        name: The resistor.
        cores: Its bodies.
        poly: Poly on nets of the circuit, without bodies.
    """
    head = round(technology.parasitics.modelled_heads_um.get(name, 0.0) / technology.dbu_um)
    return cores + (cores.sized(head) & poly)


def _halves(finger: DrawnFinger, inner: Shares) -> tuple[tuple[int, float], ...]:
    """Return the shares of the nets at the ends of one bar; those of an inner net are those of the nets at its ends."""
    shares: dict[int, float] = defaultdict(float)
    for end in finger.kind.ends:
        net = finger.nets[end]
        for each, share in inner.get(net, ((net, 1.0),)):
            shares[each] += share / 2
    return tuple(sorted(shares.items()))


class CapacitancePiece(NamedTuple):
    """Capacitance between two nets at one place.

    Attributes:
        net: Number of a net.
        layer: Its conductor, or ``poly``.
        other: Number of the other net; None for the substrate.
        other_layer: Its conductor, ``poly``, ``diffusion``, ``thick_diffusion``, ``well`` or ``substrate``.
        x: Place. [dbu]
        y: Place. [dbu]
        fF: Capacitance. [fF]
    """

    net: int
    layer: str
    other: int | None
    other_layer: str
    x: int
    y: int
    fF: float  # noqa: N815 - the unit


class PieceGroup(NamedTuple):
    """Pieces between two layers: nets, other nets (``GROUND`` for the substrate), places [dbu] and values [fF]."""

    nets: Integers
    layer: str
    others: Integers
    other_layer: str
    places: Integers
    values: Numbers


def divided(
    groups: Iterable[PieceGroup], shares: Mapping[int, tuple[tuple[int, float], ...]]
) -> tuple[PieceGroup, ...]:
    """Return the pieces with those of some nets divided among others, without what is then between a net and itself.

    Args:
        groups: The pieces.
        shares: Net that is to go to the nets that get its capacitance, each with its share.
    """
    if not shares:
        return tuple(groups)
    return tuple(_turned(_turned(group, shares), shares) for group in groups)


def _turned(group: PieceGroup, shares: Mapping[int, tuple[tuple[int, float], ...]]) -> PieceGroup:
    """Return pieces whose first nets are divided, with both sides exchanged."""
    numbers, index = np.unique(group.nets, return_inverse=True)
    parts = [shares.get(net, ((net, 1.0),)) for net in numbers.tolist()]
    counts = np.array([len(part) for part in parts], np.int64)
    first = np.cumsum(counts) - counts
    nets = np.array([net for part in parts for net, _ in part], np.int64)
    share = np.array([value for part in parts for _, value in part])
    each = counts[index.reshape(-1)]
    owner = np.repeat(np.arange(len(group.nets)), each)
    part = np.repeat(first[index.reshape(-1)] - (np.cumsum(each) - each), each) + np.arange(len(owner))
    kept = nets[part] != group.others[owner]
    owner, part = owner[kept], part[kept]
    return PieceGroup(
        group.others[owner],
        group.other_layer,
        nets[part],
        group.layer,
        group.places[owner],
        group.values[owner] * share[part],
    )


@dataclass(frozen=True)
class Capacitances:
    """Capacitances between nets, by their numbers.

    Attributes:
        groups: All pieces, by layers.
        merged: Pieces between the same nets and layers within a square of this size are one. [dbu]
        unchecked: What is not in it, and why.
    """

    groups: tuple[PieceGroup, ...] = field(repr=False)
    merged: int
    unchecked: tuple[str, ...] = ()

    @cached_property
    def ground_fF(self) -> dict[int, float]:  # noqa: N802 - the unit
        """Net to its capacitance to the substrate. [fF]"""
        return {net: value for (other, net), value in self._sums.items() if other == GROUND}

    @cached_property
    def coupling_fF(self) -> dict[tuple[int, int], float]:  # noqa: N802 - the unit
        """Two nets, the lower number first, to the capacitance between them. [fF]"""
        return {pair: value for pair, value in self._sums.items() if pair[0] != GROUND}

    @cached_property
    def _sums(self) -> dict[tuple[int, int], float]:
        sums: dict[tuple[int, int], float] = defaultdict(float)
        for group in self.groups:
            low, high = np.minimum(group.nets, group.others), np.maximum(group.nets, group.others)
            count = int(high.max(initial=GROUND)) - GROUND + 1  # one number for both nets is found faster than a row
            unique, index = np.unique((low - GROUND) * count + high - GROUND, return_inverse=True)
            totals = np.bincount(index.reshape(-1), group.values, len(unique))
            for key, total in zip(unique.tolist(), totals.tolist(), strict=True):
                sums[key // count + GROUND, key % count + GROUND] += total
        return {pair: value for pair, value in sorted(sums.items()) if value > 0.0}

    def total_fF(self, net: int) -> float:  # noqa: N802 - the unit
        """Return the capacitance of a net to everything. [fF]"""
        return self.ground_fF.get(net, 0.0) + sum(value for pair, value in self.coupling_fF.items() if net in pair)

    @cached_property
    def pieces(self) -> tuple[CapacitancePiece, ...]:
        """All of it by place: one piece for the same nets and layers in a square, at their mean place; sorted."""
        totals: dict[tuple[int, str, int, str, int, int], list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
        for group in self.groups:
            keys = np.column_stack([group.nets, group.others, group.places // self.merged])
            unique, index = np.unique(keys, axis=0, return_inverse=True)
            weights = (group.values, *(group.values * group.places.T))
            sums = [np.bincount(index.reshape(-1), each, len(unique)).tolist() for each in weights]
            for (net, other, column, row), *amounts in zip(unique.tolist(), *sums, strict=True):
                total = totals[net, group.layer, other, group.other_layer, column, row]
                for number, amount in enumerate(amounts):
                    total[number] += amount
        return tuple(
            CapacitancePiece(net, layer, None if other == GROUND else other, below, round(x / fF), round(y / fF), fF)
            for (net, layer, other, below, _, _), (fF, x, y) in sorted(totals.items())
            if fF > 0.0
        )
