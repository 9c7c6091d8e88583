"""Connectivity of a layout: which shapes conduct, which join, and which are channels and bodies.

    cross-section            p_tap   n_sd  gate  n_sd          p_sd  gate  p_sd   n_tap
    metal      ===========================================================================
    contact        |          |       |           |             |           |       |
               ----#----------#-------#--[poly]---#-------------#--[poly]---#-------#-----
                  p well / substrate (bulk of nmos)    |      n well (bulk of pmos)

Diffusion is drawn on the active and tap layers. Its implant and well decide what it is, not the layer: n+ outside the
n well is a source or drain, n+ inside is a tap of the well, and the reverse holds for p+.

Where the process draws no p well, the p substrate is one global net. It has no name, and only p+ taps join it, so that
without a substrate tap the bulks are on a net of their own. A p region that a deep n well and a ring of n well isolate
from the substrate is a separate net and needs its own tap; so is each p well where the process draws them. A deep n
well that reaches the surface isolates the p wells that are drawn in it. Where the process has a marker for substrate of
another ground (``substrate_cut``), what it covers counts as a net of its own, though silicon joins it.

Fill is of the same material as the layer that it fills and conducts like it. Slots are subtracted from their layer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.errors import LayoutkitError, TechnologyError
from layoutkit.extract.cell_devices import SUBSTRATE, add_cells
from layoutkit.extract.passive_devices import PassiveLayers, passive_layers
from layoutkit.extract.resistor_devices import add_plates, carrier, diffusion, n_wells, plate_cut_layer
from layoutkit.layout.cells import check_flat_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from layoutkit.technology import DeviceSpec, Technology

    Joins = Iterable[tuple[str, str]]

_LABELLED = {"nwell": "nwell", "pwell": "p_body", "poly": "poly"}
_MARGIN = 1000  # substrate beyond the drawn shapes [dbu]; any positive number will do


def connect(database: kdb.LayoutToNetlist, regions: Mapping[str, kdb.Region], joins: Joins) -> None:
    """Register ``regions`` in ``database`` and connect each with itself and with what it joins.

    Args:
        database: Database to extract nets with.
        regions: Name to region of everything that carries a net.
        joins: Pairs of names whose touching shapes are one net; a pair with a name not in ``regions`` is left out.
    """
    for name, region in regions.items():
        database.register(region, name)
        database.connect(region)
    for one, other in joins:
        if one in regions and other in regions:
            database.connect(regions[one], regions[other])


class Nets:
    """The nets of conducting regions, without devices.

    Args:
        regions: Name to region of everything that carries a net.
        joins: Pairs of names whose touching shapes are one net; a pair with a name not in ``regions`` is left out.
        unit_um: Unit of the regions. [um]
    """

    def __init__(self, regions: Mapping[str, kdb.Region], joins: Joins, unit_um: float) -> None:
        # Copied: extraction of devices adds terminals to regions, with properties that keep nets apart.
        self.regions = {name: region.dup() for name, region in regions.items()}
        self.unit_um = unit_um
        self.database = kdb.LayoutToNetlist("NETS", unit_um)
        connect(self.database, self.regions, joins)
        self.database.extract_netlist()

    def every(self) -> list[kdb.Net]:
        """Return all nets."""
        circuit = self.database.netlist().top_circuit()
        return [] if circuit is None else list(circuit.each_net())

    def at(self, layer: str, point: kdb.Point) -> kdb.Net | None:
        """Return the net of the shape of region ``layer`` at ``point``, None where there is no shape."""
        return self.database.probe_net(self.regions[layer], point)

    def shapes(self, net: kdb.Net, layer: str) -> kdb.Region:
        """Return the shapes of ``net`` on the region ``layer``."""
        return self.database.shapes_of_net(net, self.regions[layer], True)


@dataclass(frozen=True)
class Wiring:
    """The metal of one flat cell: conductors, cuts between them, and capacitor plates.

    Attributes:
        regions: Name to region of each conductor, cut, plate, and of the cuts on plates.
        joins: Pairs of names whose touching shapes are one net.
        drawn_as: Name of each conductor and cut, and of the cuts on plates, to the conductor or cut it is drawn as.
        passives: Resistor cores and capacitor plates.
    """

    regions: dict[str, kdb.Region]
    joins: tuple[tuple[str, str], ...]
    drawn_as: dict[str, str]
    passives: PassiveLayers


@dataclass(frozen=True)
class ElectricalLayers:
    """The regions of one flat cell.

    Attributes:
        conducting: Name to region of everything that carries a net: diffusions, taps, wells, poly, contacts, metals.
        joins: Pairs of names whose touching shapes are one net.
        diffusion: All diffusion, taps included, also below poly.
        gates: Device name to its channels.
        blocked: Centre of each channel beside which silicide is blocked to how far it is at drain and source. [dbu]
        sources: The sources of these channels.
        unrecognised_gates: Where poly crosses diffusion without making a device of the technology.
        labels: Name of a conductor, poly or well to the texts of the cell itself that name nets.
        pins: Conductor, poly or well to the pin shapes of the cell itself; a text on the layer of pins is one, too.
        passives: Resistor cores and capacitor plates.
    """

    conducting: dict[str, kdb.Region]
    joins: tuple[tuple[str, str], ...]
    diffusion: kdb.Region
    gates: dict[str, kdb.Region]
    blocked: dict[tuple[int, int], tuple[int, int]]
    sources: kdb.Region
    unrecognised_gates: kdb.Region
    labels: dict[str, kdb.Texts]
    pins: dict[str, kdb.Region]
    passives: PassiveLayers


@lru_cache(maxsize=32)
def read_layers(technology: Technology) -> frozenset[tuple[int, int]]:
    """Return the GDS layers that extraction reads, and those that change neither devices nor nets (such as openings).

    Shapes on any other layer of the wafer may change devices or nets without extraction noticing.
    """
    read = {technology.contact.layer, *(c.layer for c in technology.conductors), *(c.layer for c in technology.cuts)}
    read |= {layer for role, layer in technology.roles.items() if role != "device_text"}
    if technology.deep_well is not None and technology.deep_well.body is not None:
        read.add(technology.deep_well.body)
    for device in technology.devices.values():
        read |= {layer for layer in (device.implant, device.bulk_implant, device.well) if layer is not None}
        read |= {*device.marked_by, *device.optional, *((device.source_marker,) if device.block else ())}
    for passive in technology.passives.values():
        # What excludes a flavour is read on its cores alone; anywhere else it may mean a device that is not known here.
        read |= {*passive.parts.values(), *passive.markers, *passive.covers, *passive.core_markers, *passive.resistive}
        read |= (
            set()
            if passive.cell is None
            else {passive.cell.marker, *passive.cell.shapes(passive.cell.most, passive.min_l)}
        )
    specs = [technology.spec(name) for name in read]
    specs += [technology.spec(name) for spec in specs for name in (*spec.fill, *spec.slots)]
    every = (*technology.layers.values(), *technology.other_layers.values())
    return frozenset(
        spec.gds for spec in (*specs, *(spec for spec in every if spec.purpose in {"opening", "rule_marker"}))
    )


def device_texts(cell: kdb.Cell, technology: Technology) -> list[tuple[str, kdb.Point]]:
    """Return the texts that name the device of a channel, on all levels, with their places, sorted."""
    role = technology.role("device_text")
    index = None if role is None else cell.layout().find_layer(*technology.spec(role).gds)
    if index is None:
        return []
    texts = kdb.Texts(cell.begin_shapes_rec(index))
    return sorted(
        ((text.string, kdb.Point(text.x, text.y)) for text in texts.each()), key=lambda item: (item[0], str(item[1]))
    )


def labelled_gates(cell: kdb.Cell, technology: Technology) -> dict[str, list[kdb.Box]]:
    """Return the channels of each device in ``cell``, by the texts on the ``device_text`` layer inside them. [dbu]

    Raises:
        LayoutkitError: If one channel carries the texts of two devices.
        TechnologyError: If the technology names no active, poly or device_text layer.
    """
    for role in ("active", "poly", "device_text"):
        if technology.role(role) is None:
            raise TechnologyError(f"technology {technology.name} has no layer for the role '{role}'")
    check_flat_size(cell)
    drawn = DrawnLayers(cell, technology)
    found = kdb.Shapes()
    found.insert(drawn.channels())
    owners: dict[tuple[int, int, int, int], str] = {}
    for text, place in device_texts(cell, technology):
        for channel in found.each_touching(kdb.Box(place, place)):
            box = channel.bbox()
            owner = owners.setdefault((box.left, box.bottom, box.right, box.top), text)
            if owner != text:
                raise LayoutkitError(
                    f"the channel at {box} of cell '{cell.name}' is labelled both '{owner}' and '{text}'"
                )
    gates: dict[str, list[kdb.Box]] = {}
    for key, owner in sorted(owners.items(), key=lambda item: (item[1], item[0])):
        gates.setdefault(owner, []).append(kdb.Box(*key))
    return gates


def _silicon_joins(technology: Technology) -> list[tuple[str, str]]:
    first = technology.conductors[0].name
    joins = [("contact", below) for below in ("poly", "n_sd", "p_sd", "n_tap", "p_tap", first)]
    # Silicide shorts a source to the tap it abuts, with or without metal on the tap.
    joins += [("n_tap", "nwell"), ("p_tap", "p_body"), ("n_sd", "p_tap"), ("p_sd", "n_tap")]
    joins += [("nwell", "deep_nwell"), ("p_body", SUBSTRATE)]
    return joins


class DrawnLayers:
    """The drawn layers of one cell, all levels of its hierarchy flattened; no layer is added to its layout."""

    def __init__(self, cell: kdb.Cell, technology: Technology) -> None:
        self.cell = cell
        self.technology = technology
        self._layers: dict[str, kdb.Region] = {}

    @cached_property
    def wiring(self) -> Wiring:
        """The metal of the cell as the technology connects it; shared, not to be changed.

        The cuts on a capacitor's plate join the plate, not the conductor below it.
        """
        technology = self.technology
        regions = {conductor.name: self.layer(conductor.layer) for conductor in technology.conductors}
        regions.update({cut.name: self.layer(cut.layer) for cut in technology.cuts})
        drawn_as = {name: name for name in regions}
        joins = [
            (cut.name, technology.resolve(conductor)) for cut in technology.cuts for conductor in (cut.below, cut.above)
        ]
        passives = passive_layers(self)
        for name, cores in passives.metal.items():
            regions[name] = regions[name] if cores.is_empty() else regions[name] - cores
        joins += add_plates(technology, passives.plates, regions)
        joins += add_cells(technology, passives.cells, regions)
        for name in passives.plates:
            cut = technology.resolve(technology.passives[name].parts["cut"])
            drawn_as[plate_cut_layer(name)] = next(
                c.name for c in technology.cuts if technology.resolve(c.layer) == cut
            )
        return Wiring(regions, tuple(joins), drawn_as, passives)

    def electrical(self) -> ElectricalLayers:
        """Return the regions of the cell as the technology connects them."""
        technology = self.technology
        metal = self.wiring
        poly, nwell, p_body = self.role("poly"), self.n_wells(), self.p_body() - metal.passives.cells.blocked
        n_plus, p_plus = self.implants("n"), self.implants("p")
        open_diffusion = diffusion(self) - poly - metal.passives.cells.blocked
        conducting = {
            "n_sd": (open_diffusion & n_plus) - p_plus - nwell,
            "p_sd": (open_diffusion & p_plus & nwell) - n_plus,
            "n_tap": (open_diffusion & n_plus & nwell) - p_plus,
            "p_tap": (open_diffusion & p_plus) - n_plus - nwell,
            "nwell": nwell,
            "deep_nwell": self.role("deep_nwell"),
            "p_body": p_body,
            SUBSTRATE: kdb.Region() if technology.role("pwell") else p_body - self.role("deep_nwell") - self.cut,
            "poly": poly - metal.passives.marked,
            "contact": self.layer(technology.contact.layer),
            **metal.regions,
        }
        for spec in technology.passives.values():
            if spec.bare:
                conducting["p_sd"] = (conducting["p_sd"] + metal.passives.shapes[spec.name]).merged()
            if spec.type == "resistor" and (spec.diffusion_of is not None or spec.well):
                of, cores = carrier(spec), metal.passives.shapes[spec.name]
                conducting[of] = conducting[of] - cores
                if spec.well:  # its body is the substrate or the well around it
                    conducting["nwell" if spec.in_p_well else "p_body"] += cores
        channels = self.channels()
        capacitors = metal.passives.gates + channels.inside(metal.passives.cells.windows)
        gates = {
            spec.name: self.gates(spec, channels, p_body).outside(capacitors)
            for _, spec in sorted(technology.devices.items())
        }
        sources, blocked = self.blocked(gates, open_diffusion)
        recognised = capacitors.dup()
        for name, region in gates.items():
            marked = technology.devices[name].drain_marker  # below its gate the diffusion is longer than the channel
            recognised += channels.interacting(region) if marked else region
        return ElectricalLayers(
            conducting={name: region.merged() for name, region in conducting.items()},
            joins=(*_silicon_joins(technology), *metal.joins),
            diffusion=diffusion(self),
            gates=gates,
            blocked=blocked,
            sources=sources,
            unrecognised_gates=self.crossings() - recognised - metal.passives.cells.windows,
            labels={
                **{c.name: self.own_texts(c.label_layer, c.pin_layer) for c in technology.conductors},
                **{_LABELLED[part]: self.own_texts(*names) for part, names in technology.silicon_labels.items()},
            },
            pins={
                **{c.name: self.pins(c.pin_layer) for c in technology.conductors if c.pin_layer is not None},
                **{_LABELLED[part]: self.silicon_pins(part) for part in technology.silicon_labels},
            },
            passives=metal.passives,
        )

    def layer(self, name: str) -> kdb.Region:
        """Return the merged shapes of a layer with its fill, without its slots; shared, not to be changed."""
        if name not in self._layers:
            spec = self.technology.spec(name)
            if spec.name not in self._layers:
                found = self._shapes((spec.name, *spec.fill))
                self._layers[spec.name] = found - self._shapes(spec.slots) if spec.slots else found
            self._layers[name] = self._layers[spec.name]
        return self._layers[name]

    def slots(self, name: str) -> kdb.Region:
        """Return the merged slots of a layer."""
        return self._shapes(self.technology.spec(name).slots)

    def fill(self, role: str) -> kdb.Region:
        """Return the merged fill of the layer of ``role``."""
        layer = self.technology.role(role)
        names = () if layer is None else self.technology.spec(layer).fill
        return self._shapes(name for name in names if self.technology.spec(name).purpose == "fill")

    def _shapes(self, names: Iterable[str]) -> kdb.Region:
        found = kdb.Region()
        for name in names:
            index = self.cell.layout().find_layer(*self.technology.spec(name).gds)
            if index is not None and not self.cell.bbox(index).empty():
                found += kdb.Region(self.cell.begin_shapes_rec(index))
        return found if found.is_empty() else found.merged()

    def role(self, role: str) -> kdb.Region:
        """Return the layer of ``role``, empty where the technology has none."""
        return self.layer(role) if self.technology.role(role) is not None else kdb.Region()

    def crossings(self) -> kdb.Region:
        """Return where poly crosses diffusion; where fill crosses fill there is no transistor."""
        only_fill = self.fill("poly") & (self.fill("active") + self.fill("tap"))
        return (self.role("poly") & diffusion(self)).merged().not_inside(only_fill)

    def channels(self) -> kdb.Region:
        """Return the crossings of poly and diffusion that lie wholly in the active layer."""
        return self.crossings().inside(self.role("active"))

    def implants(self, polarity: str) -> kdb.Region:
        """Return all n+ or p+ implants."""
        own = "nmos" if polarity == "n" else "pmos"
        specs = self.technology.devices.values()
        names = {spec.implant if spec.type == own else spec.bulk_implant for spec in specs}
        if None in names:  # not drawn: all diffusion that the other implant leaves
            return diffusion(self) - self.implants("p" if polarity == "n" else "n")
        union = kdb.Region()
        for name in sorted(name for name in names if name is not None):
            union += self.layer(name)
        return union.merged()

    def p_body(self) -> kdb.Region:
        """Return the p-type bodies: the drawn p wells, or everything that is not n well."""
        if self.technology.role("pwell") is not None:
            return self.role("pwell") - self.role("nwell")
        whole = kdb.Region(self.cell.bbox().enlarged(_MARGIN, _MARGIN)) - self.n_wells()
        # A gap of one unit makes each marked part of the substrate a net of its own.
        return whole if self.cut.is_empty() else (whole & self.cut) + (whole - self.cut.sized(1))

    @cached_property
    def cut(self) -> kdb.Region:
        """The parts of the substrate whose taps are on another net than those outside of them."""
        return self.role("substrate_cut")

    def n_wells(self) -> kdb.Region:
        """Return the n-type surface: n wells, and deep n wells that reach the surface without the p wells in them."""
        found = n_wells(self)
        return kdb.Region() if found is None else found

    def gates(self, spec: DeviceSpec, crossings: kdb.Region, p_body: kdb.Region) -> kdb.Region:
        """Return the ``crossings`` of poly and active with all layers of ``spec`` and none of another device.

        A channel that a marker, implant or well covers only partly is no device.
        """
        body = self.n_wells() if spec.type == "pmos" else p_body
        found = crossings.inside(self.layer(spec.drain_marker)) & body if spec.drain_marker else crossings
        found = found.inside(body).outside(self.role("tap_marker"))
        if spec.block:
            found = found.interacting(self.layer(spec.source_marker))
        if spec.implant is not None:
            found = found.inside(self.layer(spec.implant))
        if spec.bulk_implant is not None:
            found = found.outside(self.layer(spec.bulk_implant))
        others = {m for other in self.technology.devices.values() if other.type == spec.type for m in other.marked_by}
        for marker in spec.marked_by:
            found = found.inside(self.layer(marker))
        others |= {layer for other in self.technology.devices.values() for layer in other.optional}
        for marker in sorted(others - {*spec.marked_by, *spec.optional}):
            found = found.outside(self.layer(marker))
        rings = {text: region for text, region in self.text_rings.items() if not found.is_empty()}
        if spec.ring_text:
            found = found.inside(rings.pop(spec.ring_text, kdb.Region()))
        for region in rings.values():
            found = found.outside(region)
        return found

    def blocked(
        self, gates: Mapping[str, kdb.Region], diffusion: kdb.Region
    ) -> tuple[kdb.Region, dict[tuple[int, int], tuple[int, int]]]:
        """Return the sources of gates beside which silicide is blocked, and how far it is at drain and source. [dbu]

        Args:
            gates: Device name to its channels.
            diffusion: What is no channel of all diffusion.
        """
        sources, found = kdb.Region(), {}
        for spec in (each for each in self.technology.devices.values() if each.block):
            if gates[spec.name].is_empty():
                continue
            block, source = self.layer(spec.block) & diffusion, self.layer(spec.source_marker) & diffusion
            sources += source
            sides = [kdb.Shapes(), kdb.Shapes()]
            for shapes, region in zip(sides, (block - source, block & source), strict=True):
                shapes.insert(region)
            for box in (gate.bbox() for gate in gates[spec.name].each()):
                reach = [0, 0]
                for number, shapes in enumerate(sides):
                    for each in (shape.bbox() for shape in shapes.each_touching(box)):
                        beyond = box.left - each.left, each.right - box.right, box.bottom - each.bottom
                        reach[number] = max(reach[number], *beyond, each.top - box.top)
                found[box.center().x, box.center().y] = reach[0], reach[1]
        return sources.merged(), found

    @cached_property
    def _text_places(self) -> dict[str, kdb.Region]:
        found: dict[str, kdb.Region] = {}
        for text, place in device_texts(self.cell, self.technology):
            box = kdb.Box(place.x - 1, place.y - 1, place.x + 1, place.y + 1)
            found.setdefault(text.lower(), kdb.Region()).insert(box)
        return found

    def text_boxes(self, text: str) -> kdb.Region:
        """Return boxes at the places of a device text, which decks read in either case."""
        return self._text_places.get(text.lower(), kdb.Region())

    @cached_property
    def text_rings(self) -> dict[str, kdb.Region]:
        """What the rings of taps enclose that bear a text which makes devices of transistors, by that text."""
        kinds = {each.ring_text: each.type for each in self.technology.devices.values() if each.ring_text}
        places = {text: found for text in kinds if not (found := self.text_boxes(text)).is_empty()}
        open_diffusion = diffusion(self) - self.role("poly") if places else kdb.Region()
        taps = {
            "nmos": (open_diffusion & self.implants("p")) - self.n_wells(),
            "pmos": (open_diffusion & self.implants("n") & self.n_wells()) - self.implants("p"),
        }
        return {text: taps[kinds[text]].merged().interacting(where).holes() for text, where in sorted(places.items())}

    def own_texts(self, *names: str | None) -> kdb.Texts:
        """Return the texts of the cell itself on layers."""
        found = kdb.Texts()
        for name in names:
            index = None if name is None else self.cell.layout().find_layer(*self.technology.spec(name).gds)
            if index is not None:
                found += kdb.Texts(self.cell.shapes(index))
        return found

    def silicon_pins(self, part: str) -> kdb.Region:
        """Return the pin shapes of the cell itself on poly or wells, with a box around each text on their layers."""
        found = kdb.Region()
        for name in self.technology.silicon_labels[part]:
            if self.technology.spec(name).purpose == "pin":
                found += self.pins(name)
        return found

    def pins(self, name: str) -> kdb.Region:
        """Return the shapes of the cell itself on a layer of pins, with a box around each text on it."""
        index = self.cell.layout().find_layer(*self.technology.spec(name).gds)
        if index is None:
            return kdb.Region()
        return kdb.Region(self.cell.shapes(index)) + self.own_texts(name).polygons(1)
