"""Resistors of a placed cell: to which nets count the wires inside them, and what wires have to their bodies.

It is what extraction of parasitics states of the finished layout (``net_shapes``), for a cell
in which nets have owners by name and are not wired yet.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import klayout.db as kdb

from layoutkit.extract.connectivity import DrawnLayers, Nets
from layoutkit.parasitics.net_shapes import voltage_shares

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from layoutkit.extract.passive_devices import PassiveLayers
    from layoutkit.flow.keepouts import Obstacles

    NamedShares = tuple[tuple[str, float], ...]


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
    owners = _owners(nets, contacts, metal, first)
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


def _owners(nets: Nets, contacts: kdb.Region, metal: Obstacles, conductor: str) -> dict[int, str]:
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
