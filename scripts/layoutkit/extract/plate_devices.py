"""Finds the plates of capacitors and the cuts on them, which do not reach the bottom conductor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.extract.resistor_devices import Layer, Loose, marked, union

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layoutkit.technology import PassiveSpec, Technology


def plates_of(technology: Technology, spec: PassiveSpec, layer: Layer) -> kdb.Region:
    """Return the plates that the markers of one type of capacitor touch."""
    plates = layer(spec.parts["plate"]).inside(layer(technology.conductor(spec.parts["bottom"]).layer))
    return marked(technology, spec, plates, layer, kdb.Region.interacting)  # MIM_L_MK of gf180mcuD is a strip


def fed_plates(
    technology: Technology, spec: PassiveSpec, plates: kdb.Region, layer: Layer
) -> dict[tuple[int, int], tuple[int, int, int]]:
    """Return the sizes of plates with feeds: the feed of the bottom plate is what crosses the edge of the marker.

    A plate whose bottom plate is not left on exactly one side is not among them, and has no feed that could agree.
    """
    found = {}
    bottom, marker = layer(technology.conductor(spec.parts["bottom"]).layer), layer(spec.markers[0])
    for polygon in plates.each():
        box, around = polygon.bbox(), marker.interacting(kdb.Region(polygon))
        edges = [edge for edge in (around.edges() & bottom).each() if edge.length() > 0]
        if len(edges) == 1:
            along_x = edges[0].d().x == 0
            width, length = (box.height(), box.width()) if along_x else (box.width(), box.height())
            found[box.center().x, box.center().y] = (width, length, edges[0].length())
    return found


def loose_plates(_: Technology, capacitors: list[PassiveSpec], plates: Mapping[str, kdb.Region], layer: Layer) -> Loose:
    """Return what each plate layer draws outside all ``plates``: its cuts would be read as wires to the bottom."""
    found = []
    for name in sorted({spec.parts["plate"] for spec in capacitors}):
        own = union(plates[spec.name] for spec in capacitors if spec.parts["plate"] == name)
        found.append((layer(name) - own, f"{name} is not the plate of a capacitor"))
    for spec in (each for each in capacitors if each.fed):
        lone = layer(spec.markers[0]).not_interacting(plates[spec.name])
        found.append((lone, f"{spec.markers[0]} surrounds no plate of a capacitor"))
    return found


def plate_layer(name: str) -> str:
    """Return the name of the conducting layer of the plates of a capacitor."""
    return f"plate.{name}"


def plate_cut_layer(name: str) -> str:
    """Return the name of the layer of the cuts on the plates of a capacitor."""
    return f"plate_cut.{name}"


def add_plates(
    technology: Technology, every: Mapping[str, kdb.Region], conducting: dict[str, kdb.Region]
) -> list[tuple[str, str]]:
    """Add plates and the cuts on them to ``conducting``, take those cuts from the vias, and return what they join."""
    joins = []
    for name, plates in sorted(every.items()):
        spec = technology.passives[name]
        cut = next(c for c in technology.cuts if technology.resolve(c.layer) == technology.resolve(spec.parts["cut"]))
        conducting[plate_layer(name)] = plates
        conducting[plate_cut_layer(name)] = conducting[cut.name] & plates
        conducting[cut.name] = conducting[cut.name] - plates
        joins.append((plate_cut_layer(name), plate_layer(name)))
        joins.append((plate_cut_layer(name), technology.conductor(spec.parts["top"]).name))
    return joins


def capacitor_extractor(
    technology: Technology, spec: PassiveSpec, _: kdb.Region, conducting: Mapping[str, kdb.Region]
) -> tuple[kdb.DeviceExtractorBase, dict[str, kdb.Region]]:
    """Return KLayout's extractor for one type of capacitor, and its layers."""
    plates = conducting[plate_layer(spec.name)]
    bottom = conducting[technology.conductor(spec.parts["bottom"]).name]
    layers = {"P1": plates, "P2": bottom, "tA": plates, "tB": bottom}
    if spec.body_terminal:
        body = conducting["p_body"]
        with_body = kdb.DeviceExtractorCapacitorWithBulk(spec.name, spec.value)
        return with_body, {**layers, "W": body, "tW": body}
    return kdb.DeviceExtractorCapacitor(spec.name, spec.value), layers
