"""Resistors and capacitors in a layout: where they are, and what they mean for what conducts.

    resistor   head [poly]--[ core: body & core layer ]--[poly] head      the core is taken out of the poly
    capacitor  top conductor --[cut]-- plate (over the bottom conductor)  the cuts on a plate do not reach the bottom

A shape becomes a device only if all markers of its flavour cover it and none of another flavour does; an unmarked core
stays poly.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import klayout.db as kdb

if TYPE_CHECKING:
    from collections.abc import Callable

    from layoutkit.technology import PassiveSpec, Technology

MICROMETRE_DECIMALS = 6


@dataclass
class PassiveLayers:
    """The passives of one flat cell.

    Attributes:
        cores: Resistor name to its cores.
        plates: Capacitor name to its plates.
    """

    cores: dict[str, kdb.Region] = field(default_factory=dict)
    plates: dict[str, kdb.Region] = field(default_factory=dict)

    def core_area(self) -> kdb.Region:
        """Return all cores: poly that does not conduct freely."""
        return _union(self.cores)


def passive_layers(technology: Technology, layer: Callable[[str], kdb.Region]) -> PassiveLayers:
    """Return the cores and plates that ``technology`` knows.

    Args:
        technology: Process.
        layer: Returns the merged shapes of a layer.
    """
    found = PassiveLayers()
    for name, spec in sorted(technology.passives.items()):
        parts = spec.parts
        if spec.type == "resistor":
            found.cores[name] = _marked(technology, spec, layer(parts["body"]) & layer(parts["core"]), layer)
        else:
            plates = layer(parts["plate"]).inside(layer(technology.conductor(parts["bottom"]).layer))
            found.plates[name] = _marked(technology, spec, plates, layer)
    return found


def _marked(
    technology: Technology, spec: PassiveSpec, shapes: kdb.Region, layer: Callable[[str], kdb.Region]
) -> kdb.Region:
    """Return those shapes that have all markers of ``spec`` and none that only flavours like it have."""
    found = shapes.merged()
    others = {
        marker
        for other in technology.passives.values()
        if other.type == spec.type and _drawn_alike(spec, other)
        for marker in other.markers
    }
    for marker in spec.markers:
        found = found.inside(layer(marker))
    for marker in sorted(others - set(spec.markers)):
        found = found.outside(layer(marker))
    return found


def _drawn_alike(one: PassiveSpec, other: PassiveSpec) -> bool:
    key = ("body", "core") if one.type == "resistor" else ("bottom", "plate")
    return all(one.parts[part] == other.parts[part] for part in key)


def plate_layer(name: str) -> str:
    """Return the name of the conducting layer of the plates of a capacitor."""
    return f"plate.{name}"


def plate_cut_layer(name: str) -> str:
    """Return the name of the layer of the cuts on the plates of a capacitor."""
    return f"plate_cut.{name}"


def add_plates(
    technology: Technology, passives: PassiveLayers, conducting: dict[str, kdb.Region]
) -> list[tuple[str, str]]:
    """Add plates and the cuts on them to ``conducting``, take those cuts from the vias, and return what they join."""
    joins = []
    for name, plates in sorted(passives.plates.items()):
        spec = technology.passives[name]
        cut = next(c for c in technology.cuts if technology.resolve(c.layer) == technology.resolve(spec.parts["cut"]))
        conducting[plate_layer(name)] = plates
        conducting[plate_cut_layer(name)] = conducting[cut.name] & plates
        conducting[cut.name] = conducting[cut.name] - plates
        joins.append((plate_cut_layer(name), plate_layer(name)))
        joins.append((plate_cut_layer(name), technology.conductor(spec.parts["top"]).name))
    return joins


def extract_passives(
    lvs: kdb.LayoutVsSchematic, technology: Technology, passives: PassiveLayers, conducting: dict[str, kdb.Region]
) -> None:
    """Have KLayout extract all passives into ``lvs``, whose layers ``conducting`` are."""
    for name, cores in passives.cores.items():
        spec = technology.passives[name]
        lvs.register(cores, f"core.{name}")
        layers = {"R": cores, "C": conducting["poly"]}
        extractor: kdb.DeviceExtractorBase = kdb.DeviceExtractorResistor(name, spec.value)
        if spec.terminals > 2:
            extractor = kdb.DeviceExtractorResistorWithBulk(name, spec.value)
            layers |= {"W": conducting["p_body"], "tW": conducting["p_body"]}
        lvs.extract_devices(extractor, {**layers, "tA": conducting["poly"], "tB": conducting["poly"]})
    for name in passives.plates:
        spec = technology.passives[name]
        bottom = conducting[technology.conductor(spec.parts["bottom"]).name]
        extractor = kdb.DeviceExtractorCapacitor(name, spec.value)
        lvs.extract_devices(
            extractor,
            {"P1": conducting[plate_layer(name)], "P2": bottom, "tA": conducting[plate_layer(name)], "tB": bottom},
        )


def size_of(device: kdb.Device) -> tuple[float, float]:
    """Return width and length of an extracted device. [um]

    A capacitor's are the sides of the rectangle of its area and perimeter, the longer one first.
    """
    names = {parameter.name for parameter in device.device_class().parameter_definitions()}
    if "W" in names:
        return round(device.parameter("W"), MICROMETRE_DECIMALS), round(device.parameter("L"), MICROMETRE_DECIMALS)
    area, half = device.parameter("A"), device.parameter("P") / 2
    root = max(0.0, half * half / 4 - area) ** 0.5
    return round(half / 2 + root, MICROMETRE_DECIMALS), round(half / 2 - root, MICROMETRE_DECIMALS)


def _union(regions: dict[str, kdb.Region]) -> kdb.Region:
    union = kdb.Region()
    for _, region in sorted(regions.items()):
        union += region
    return union.merged()
