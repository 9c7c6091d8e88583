"""Capacitance of a few nets of a placed cell with routes, without extraction of its devices.

All other nets count as one: a net's whole capacitance does not depend on whose metal is beside it. Poly and diffusion
belong to the net to whose metal on the lowest conductor contacts join them.

Of resistors it says to which nets count the wires inside them, and what wires have to their bodies, as extraction of
parasitics states it of the finished layout (``net_shapes``), for a cell in which nets have owners by name and are not
wired yet.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import klayout.db as kdb

from layoutkit.extract.connectivity import DrawnLayers, Nets
from layoutkit.parasitics.capacitance import capacitances
from layoutkit.parasitics.net_shapes import WELL, NetShapes, modelled_by, voltage_shares, without_empty
from layoutkit.technology.parasitic_data import DIFFUSION, POLY, THICK_DIFFUSION

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from layoutkit.extract.passive_devices import PassiveLayers
    from layoutkit.flow.matched_wires import Obstacles
    from layoutkit.parasitics.net_shapes import Capacitances
    from layoutkit.route.routes import Patch, RoutingResult
    from layoutkit.technology import Technology

    ShapesOfNets = dict[int, kdb.Region]
    NamedShares = tuple[tuple[str, float], ...]

OTHERS = 0
"""Number of all nets that are not measured."""


class PlacedCell(NamedTuple):
    """A placed cell without wires: its process, its metal and cuts with the nets that own them, and its passives."""

    cell: kdb.Cell
    technology: Technology
    metal: Obstacles
    passives: PassiveLayers


class PairShapes:
    """The shapes of a few nets and of all others together, and the capacitances of the former.

    Args:
        drawn: The placed cell.
        result: Its routes.
        names: The nets to measure.
        signals: Nets whose coupling to the former is to be known one by one.

    Attributes:
        area: Of the cell. [dbu2]
    """

    def __init__(
        self, drawn: PlacedCell, result: RoutingResult, names: Sequence[str], signals: Sequence[str] = ()
    ) -> None:
        self.technology = drawn.technology
        layers = DrawnLayers(drawn.cell, drawn.technology)
        self.resistors = placed_resistors(layers, drawn.metal, drawn.passives)
        self.names, self.signals = names, signals
        known = (*names, *signals, *self.resistors.inner)
        self.numbers = {name: number for number, name in enumerate(known, OTHERS + 1)}
        self.metal = self.resistors.metal
        self.slots = {each.name: layers.slots(each.layer) for each in drawn.technology.conductors}
        self.shapes = self._all_shapes(layers, self._wiring(result), drawn.passives)
        self.area = drawn.cell.bbox().area()

    @cached_property
    def totals(self) -> dict[str, float]:
        """Capacitance of each net to all others and the substrate; measured on first access. [fF]"""
        return self._totals_of(self._whole)

    @cached_property
    def _whole(self) -> Capacitances:
        return capacitances(self.shapes, self.technology)

    def coupled_unlike(self, one: str, other: str) -> float:
        """Return by how much two nets differ in what each signal couples to them, summed, before ``add``. [fF]"""
        found = 0.0
        for signal in self.signals:
            low, high = (
                self._whole.coupling_fF.get((self.numbers[name], self.numbers[signal]), 0.0) for name in (one, other)
            )
            found += abs(high - low)
        return found

    def drives_alike(self, one: str, other: str) -> bool:
        """Return whether gates, sources and drains, and plates of the same sizes hang on two nets.

        A net that also has the gates of a mirror is no image of the output beside it.
        """
        return self._loads[one] == self._loads[other]

    @cached_property
    def _loads(self) -> dict[str, tuple[int, int, int]]:
        """Area of the gates, width of the channels that end at diffusion, and area of plates, by net. [dbu2, dbu]"""
        levels, none = self.shapes.levels, kdb.Region()
        sides = sum(levels[POLY].values(), kdb.Region()).merged().edges()
        found = {}
        for name in self.names:
            number = self.numbers[name]
            ends = sum((levels[each].get(number, none) for each in (DIFFUSION, THICK_DIFFUSION)), kdb.Region())
            gates = levels[POLY].get(number, none) & self.diffusion
            plates = sum(each.get(number, none).area() for each in self.shapes.plates.values())
            found[name] = gates.area(), (ends.merged().edges() & sides).length(), plates
        return found

    def add(self, patches: Mapping[str, Iterable[Patch]]) -> None:
        """Add metal to nets and measure what that changes."""
        levels = dict(self.shapes.levels)
        for name, its in patches.items():
            number, added = self.numbers[name], dict[str, kdb.Region]()
            for patch in its:
                added.setdefault(patch.layer, kdb.Region()).insert(kdb.Box(*patch.rect))
            for layer, region in added.items():
                nets = levels.get(layer, {})
                levels[layer] = {**nets, number: (nets.get(number, kdb.Region()) + region).merged()}
        self._change(levels, [patch for its in patches.values() for patch in its])

    def remove(self, patches: Sequence[Patch], result: RoutingResult) -> None:
        """Remove metal of measured nets, which other routes lack, and measure what that changes."""
        wiring = self._wiring(result)
        metal = {each.name: without_empty(wiring[each.name]) for each in self.technology.conductors}
        self._change({**self.shapes.levels, **metal}, patches)

    def _change(self, levels: Mapping[str, ShapesOfNets], patches: Sequence[Patch]) -> None:
        """Take other shapes. What changes lies beside, above and below patches, as far as fields reach."""
        if not patches:
            return
        shielding = self.technology.parasitics.shielding
        reach = round((shielding.reach_um if shielding else 0.0) / self.technology.dbu_um)
        window = kdb.Region()
        for patch in patches:
            for sides in ((reach, self.technology.grid), (self.technology.grid, reach)):
                window.insert(kdb.Box(*patch.rect).enlarged(*sides))
        window.merge()
        changed = replace(self.shapes, levels=levels)
        if 2 * window.area() > self.area:  # all of it once takes less time than this part before and after
            self.totals = self._totals(changed)
        else:
            before, after = (self._totals(_within(each, window)) for each in (self.shapes, changed))
            for name in self.totals:
                self.totals[name] += after[name] - before[name]
        self.shapes = changed

    def _totals(self, shapes: NetShapes) -> dict[str, float]:
        return self._totals_of(capacitances(shapes, self.technology))

    def _totals_of(self, whole: Capacitances) -> dict[str, float]:
        return {name: whole.total_fF(self.numbers[name]) for name in self.names}

    def _wiring(self, result: RoutingResult) -> dict[str, ShapesOfNets]:
        """Return the metal and cuts of the cell and the metal of the routes, by layer and net."""
        found: dict[str, ShapesOfNets] = {}
        conductors, cuts = self.technology.conductors, self.technology.cuts
        for layer in (*(each.name for each in conductors), *(each.name for each in cuts)):
            its = found[layer] = {OTHERS: kdb.Region()}
            for geometry, owner in self.metal.get(layer, ()):
                its.setdefault(self.numbers.get(owner or "", OTHERS), kdb.Region()).insert(geometry)
        for net in result.nets:
            for name, rect in net.metal:
                found[name].setdefault(self.numbers.get(net.name, OTHERS), kdb.Region()).insert(kdb.Box(*rect))
        for conductor in conductors:
            found[conductor.name][OTHERS] -= self.slots[conductor.name]  # obstacles, but no metal
        return {name: {net: region.merged() for net, region in its.items()} for name, its in found.items()}

    def _all_shapes(self, drawn: DrawnLayers, wiring: Mapping[str, ShapesOfNets], passives: PassiveLayers) -> NetShapes:
        technology = self.technology
        poly, n_wells = drawn.role("poly"), drawn.n_wells()
        devices = (drawn.role("active") + drawn.role("tap")).merged()
        contacts = _owners(drawn.layer(technology.contact.layer), wiring[technology.conductors[0].name])
        diffusion = _joined(devices - poly, contacts)
        taps = {net: its & n_wells & drawn.implants("n") for net, its in diffusion.items() if net != OTHERS}
        wells = _joined(n_wells, [(box.bbox().center(), net) for net, its in taps.items() for box in its.each()])
        oxides = [drawn.layer(name) for name, layer in technology.layers.items() if layer.purpose == "oxide"]
        thick = sum(oxides, kdb.Region()).merged()
        plates: dict[str, ShapesOfNets] = {}
        for name, region in passives.plates.items():
            spec = technology.passives[name]
            cut = next(
                c for c in technology.cuts if technology.resolve(c.layer) == technology.resolve(spec.parts["cut"])
            )
            cuts = [(each.bbox().center(), net) for net, its in wiring[cut.name].items() if net for each in its.each()]
            bottom = plates.setdefault(technology.conductor(spec.parts["bottom"]).name, {})
            for net, its in _joined(region, cuts).items():
                bottom[net] = bottom.get(net, kdb.Region()) + its
        levels = {
            WELL: wells,
            DIFFUSION: {net: its - thick for net, its in diffusion.items()},
            THICK_DIFFUSION: {net: its & thick for net, its in diffusion.items()},
            POLY: _joined(poly - passives.marked, contacts),
            **{each.name: wiring[each.name] for each in technology.conductors},
        }
        inner = {self.numbers[name]: self._shares(its) for name, its in self.resistors.inner.items()}
        self.diffusion = devices
        devices = devices + self._modelled(levels[POLY])
        for number, (body, ends) in enumerate(self.resistors.bodies, OTHERS + 1 + len(self.numbers)):
            levels[POLY][number], inner[number] = kdb.Region(body), self._shares(ends)
        return NetShapes(
            {level: without_empty(its) for level, its in levels.items()},
            devices.merged(),
            plates,
            n_wells=wells,
            inner=inner,
        )

    def _shares(self, shares: Sequence[tuple[str, float]]) -> tuple[tuple[int, float], ...]:
        """Return shares of nets by their numbers."""
        return tuple((self.numbers.get(name, OTHERS), part) for name, part in shares)

    def _modelled(self, poly: ShapesOfNets) -> kdb.Region:
        """Return bodies and heads of resistors whose capacitance to the layers below is in the models."""
        inside = {self.numbers[name] for name in self.resistors.inner}
        heads = sum((its for number, its in poly.items() if number not in inside), kdb.Region())
        cores = self.resistors.cores.items()
        return sum((modelled_by(self.technology, name, its, heads) for name, its in cores), kdb.Region())


def _owners(contacts: kdb.Region, metal: ShapesOfNets) -> list[tuple[kdb.Point, int]]:
    """Return the centre of each contact under the metal of a measured net, and the number of that net."""
    shapes = kdb.Shapes()
    for net, region in metal.items():
        for polygon in region.each() if net != OTHERS else ():
            shapes.insert(polygon, net)
    middles = (each.bbox().center() for each in contacts.each())
    return [(middle, shape.prop_id) for middle in middles for shape in _at(shapes, middle)]


def _joined(region: kdb.Region, contacts: Iterable[tuple[kdb.Point, int]]) -> ShapesOfNets:
    """Return the polygons of a region by the net of a contact on them."""
    shapes = kdb.Shapes()
    polygons = list(region.merged().each())
    for number, polygon in enumerate(polygons, 1):
        shapes.insert(polygon, number)
    owners = {shape.prop_id: net for middle, net in contacts for shape in _at(shapes, middle)}
    found: ShapesOfNets = {}
    for number, polygon in enumerate(polygons, 1):
        found.setdefault(owners.get(number, OTHERS), kdb.Region()).insert(polygon)
    return found


def _at(shapes: kdb.Shapes, point: kdb.Point) -> list[kdb.Shape]:
    return [each for each in shapes.each_touching(kdb.Box(point, point)) if each.polygon.inside(point)]


def _within(shapes: NetShapes, window: kdb.Region) -> NetShapes:
    """Return the shapes inside a window."""

    def cut(nets: Mapping[int, kdb.Region]) -> dict[int, kdb.Region]:
        return without_empty({number: region & window for number, region in nets.items()})

    return replace(
        shapes,
        levels={level: cut(nets) for level, nets in shapes.levels.items()},
        devices=shapes.devices & window,
        plates={name: cut(nets) for name, nets in shapes.plates.items()},
        n_wells=cut(shapes.n_wells),
    )


class ResistorBody(NamedTuple):
    """The body of a resistor between two connected pieces of metal, by their numbers in ``Nets``."""

    body: kdb.Polygon
    first: int
    second: int
    conductance: float
    """Width over length."""


@dataclass(frozen=True)
class PlacedResistors:
    """The poly resistors of a placed cell.

    Attributes:
        metal: The metal of the cell, that inside resistors with names of its own as owners.
        inner: Such a name to the nets at the ends, each with its share.
        bodies: Each body, with the shares of the nets at its ends.
        cores: Resistor to all of its bodies.
    """

    metal: Obstacles
    inner: Mapping[str, NamedShares] = field(default_factory=dict)
    bodies: Sequence[tuple[kdb.Polygon, NamedShares]] = ()
    cores: Mapping[str, kdb.Region] = field(default_factory=dict)


def placed_resistors(drawn: DrawnLayers, metal: Obstacles, passives: PassiveLayers) -> PlacedResistors:
    """Return the poly resistors of a cell.

    Args:
        drawn: The cell.
        metal: Its metal and cuts with the nets that own them.
        passives: Its passive devices.
    """
    technology = drawn.technology
    layer = technology.resolve(technology.roles["poly"])
    cores = {
        name: passives.shapes[name]
        for name, spec in sorted(technology.passives.items())
        if technology.resolve(spec.parts.get("body", "")) == layer and not passives.shapes[name].is_empty()
    }
    if not cores:
        return PlacedResistors(metal)
    first = technology.conductors[0].name
    heads = (drawn.role("poly") - passives.marked).interacting(sum(cores.values(), kdb.Region()))
    contacts = drawn.layer(technology.contact.layer) & heads
    joins = (*drawn.wiring.joins, ("poly", "contact"), ("contact", first))
    nets = Nets({**drawn.wiring.regions, "poly": heads, "contact": contacts}, joins, technology.dbu_um)
    bars = [bar for region in cores.values() for bar in _bars(region, heads, nets)]
    owners = _owners_of_bodies(nets, contacts, metal, first)
    shares: dict[int, tuple[tuple[int, float], ...]] = {}
    for string in _strings(bars, owners):
        ends = {number for bar in string for number in (bar.first, bar.second)}
        if ends & owners.keys():  # else nothing sets the voltage inside
            triples = [(bar.first, bar.second, bar.conductance) for bar in string]
            shares |= voltage_shares(triples, ends - owners.keys())
    names = {number: f"inside a resistor: {number}" for number in sorted(shares)}  # no net: netlists have no such names
    named = {number: tuple((owners[end], part) for end, part in its) for number, its in shares.items()}
    named |= {number: ((owner, 1.0),) for number, owner in owners.items()}
    bodies = [
        (bar.body, tuple((name, part / 2) for end in (bar.first, bar.second) for name, part in named.get(end, ())))
        for bar in bars
    ]
    return PlacedResistors(_owned(metal, nets, names), {names[each]: named[each] for each in names}, bodies, cores)


def _bars(cores: kdb.Region, heads: kdb.Region, nets: Nets) -> list[ResistorBody]:
    """Return the bodies that lie between two heads."""
    shapes, found = kdb.Shapes(), []
    shapes.insert(heads.merged())
    for body in cores.merged().each():
        ends = []
        for head in sorted((each.polygon for each in shapes.each_touching(body.bbox())), key=str):
            width = (kdb.Region(body).edges() & kdb.Region(head).edges()).length()
            net = nets.at("poly", head.decompose_convex()[0].bbox().center()) if width else None
            if net is not None:
                ends.append((net.cluster_id, width))
        if len(ends) == 2:
            (first, width), (second, _) = ends
            found.append(ResistorBody(body, first, second, width * width / body.area()))
    return found


def _owners_of_bodies(nets: Nets, contacts: kdb.Region, metal: Obstacles, conductor: str) -> dict[int, str]:
    """Return the nets that own connected pieces of metal below which there are contacts of heads."""
    shapes, names, found = kdb.Shapes(), [""], {}
    for region, owner in metal.get(conductor, ()):
        if owner:
            names.append(owner)
            for polygon in _region(region).each():
                shapes.insert(polygon, len(names) - 1)
    for contact in contacts.each():
        middle = contact.bbox().center()
        net = nets.at("contact", middle)
        if net is None:
            continue
        for shape in shapes.each_touching(kdb.Box(middle, middle)):
            if shape.polygon.inside(middle):
                found[net.cluster_id] = names[shape.prop_id]
    return found


def _strings(bars: Sequence[ResistorBody], owners: Mapping[int, str]) -> list[list[ResistorBody]]:
    """Return the bars that metal without an owner joins, together."""
    meeting: dict[int, list[int]] = {}
    for index, bar in enumerate(bars):
        for number in {bar.first, bar.second} - owners.keys():
            meeting.setdefault(number, []).append(index)
    strings, seen = [], set[int]()
    for start in range(len(bars)):
        if start in seen:
            continue
        seen.add(start)
        string = [start]
        for index in string:  # grows
            for number in (bars[index].first, bars[index].second):
                more = [other for other in meeting.pop(number, ()) if other not in seen]
                seen.update(more)
                string += more
        strings.append([bars[index] for index in string])
    return strings


def _owned(metal: Obstacles, nets: Nets, names: Mapping[int, str]) -> Obstacles:
    """Return metal in which that of some nets has names as owners."""
    found = {layer: list(its) for layer, its in metal.items()}
    by_number = {net.cluster_id: net for net in nets.every()}
    for layer, its in found.items():
        inside = [(nets.shapes(by_number[number], layer), name) for number, name in names.items()]
        inside = [(region, name) for region, name in inside if not region.is_empty()]
        if inside:
            its.extend(inside)
            taken = sum((region for region, _ in inside), kdb.Region())
            its[:] = [(_region(each) - taken, None) if not owner else (each, owner) for each, owner in its]
    return found


def _region(geometry: kdb.Box | kdb.Polygon | kdb.Region) -> kdb.Region:
    found = kdb.Region()
    found.insert(geometry)
    return found
