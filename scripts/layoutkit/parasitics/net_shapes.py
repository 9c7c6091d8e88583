"""The shapes of each net on each level of the stack, as capacitances need them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.extract.cell_devices import SUBSTRATE
from layoutkit.extract.connectivity import DrawnLayers
from layoutkit.extract.resistor_devices import plate_layer, union
from layoutkit.parasitics.resistor_bodies import inner_nets, resistor_bodies
from layoutkit.technology.parasitic_data import DIFFUSION, POLY, THICK_DIFFUSION

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from layoutkit.extract.extracted import Extraction
    from layoutkit.technology import Technology

    ShapesOfNets = dict[int, kdb.Region]

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
                    found[number] = found.get(number, kdb.Region()) + shapes
        return {net: region.merged() for net, region in found.items()}

    def is_substrate(self, net: int) -> bool:
        return net == GROUND or self.extraction.reaches(net, SUBSTRATE)
