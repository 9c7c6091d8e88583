"""Resistors and capacitors in a layout: where they are, and what they mean for what conducts.

    resistor   head [poly]--[ core: body & core layer ]--[poly] head      what its marker covers is no wire
    capacitor  top conductor --[cut]-- plate (over the bottom conductor)  the cuts on a plate do not reach the bottom

A shape becomes a device only if all markers of its flavour cover it and none of another flavour does. The core markers
give the ends of a resistor: the heads are the body outside them, so that a marker over a head cuts the head off. Body
that a core layer or a core marker covers without making a resistor is reported, since in silicon it is not a wire; so
is a plate that is not part of a capacitor.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import klayout.db as kdb

if TYPE_CHECKING:
    from collections.abc import Callable

    from layoutkit.technology import PassiveSpec, Technology

MICROMETRE_DECIMALS = 6
_DIFFUSION = frozenset({"active", "tap"})


@dataclass
class PassiveLayers:
    """The passives of one flat cell.

    Attributes:
        cores: Resistor name to its cores.
        plates: Capacitor name to its plates.
        marked: All that a core marker of a resistor covers: body there conducts only as a resistor.
        unrecognised: Body that is resistive, or marked as a resistor, without being the core of one, and diffusion
            below a silicide block or a resistor's marker, with the reason.
        loose_plates: Shapes on plate layers that are not part of a capacitor, with the reason.
    """

    cores: dict[str, kdb.Region] = field(default_factory=dict)
    plates: dict[str, kdb.Region] = field(default_factory=dict)
    marked: kdb.Region = field(default_factory=kdb.Region)
    unrecognised: list[tuple[kdb.Region, str]] = field(default_factory=list)
    loose_plates: list[tuple[kdb.Region, str]] = field(default_factory=list)


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
            core = layer(parts["body"]) & layer(parts["core"])
            for marker in spec.core_markers:
                core &= layer(marker)
            found.cores[name] = _marked(technology, spec, core, layer)
        else:
            plates = layer(parts["plate"]).inside(layer(technology.conductor(parts["bottom"]).layer))
            found.plates[name] = _marked(technology, spec, plates, layer)
    resistors = [spec for _, spec in sorted(technology.passives.items()) if spec.type == "resistor"]
    found.marked = _union({name: layer(name) for spec in resistors for name in spec.cuts_body})
    found.unrecognised = _unrecognised(resistors, _union(found.cores), layer) + _resistive_diffusion(technology, layer)
    found.loose_plates = _loose_plates(technology, found.plates, layer)
    return found


def _unrecognised(
    resistors: list[PassiveSpec], cores: kdb.Region, layer: Callable[[str], kdb.Region]
) -> list[tuple[kdb.Region, str]]:
    """Return the parts of bodies that are resistive or marked outside all ``cores``, each once, with what covers it."""
    known, found = cores.dup(), []
    covers = {(spec.parts["body"], name) for spec in resistors for name in (spec.parts["core"], *spec.core_markers)}
    for body, name in sorted(covers):
        found.append(((layer(body) & layer(name)) - known, f"{name} covers it outside the core of every resistor"))
        known += found[-1][0]
    for body, name in sorted({(spec.parts["body"], name) for spec in resistors for name in spec.resistive}):
        loose = (layer(body) & layer(name)).merged().not_interacting(known)
        found.append((loose, f"{name} makes it resistive, but it is not part of a resistor"))
    return [(region, reason) for region, reason in found if not region.is_empty()]


def _resistive_diffusion(technology: Technology, layer: Callable[[str], kdb.Region]) -> list[tuple[kdb.Region, str]]:
    """Return diffusion below a silicide block or a resistor's marker: a resistor that no technology here declares."""
    names = {name for name, spec in technology.layers.items() if spec.purpose == "silicide_block"}
    for spec in technology.passives.values():
        names |= {spec.parts["core"], *spec.core_markers} if spec.type == "resistor" else set()
    drawn = {role: layer(name) for role, name in technology.roles.items() if name and role in _DIFFUSION | {"poly"}}
    poly = drawn.pop("poly")
    diffusion = _union(drawn) - poly
    found = [(diffusion & layer(name), f"{name} makes diffusion a resistor") for name in sorted(names)]
    return [(region, reason) for region, reason in found if not region.is_empty()]


def _loose_plates(
    technology: Technology, plates: dict[str, kdb.Region], layer: Callable[[str], kdb.Region]
) -> list[tuple[kdb.Region, str]]:
    """Return what each plate layer draws outside all ``plates``: its cuts would be read as wires to the bottom."""
    found = []
    for name in sorted({technology.passives[capacitor].parts["plate"] for capacitor in plates}):
        own = {
            capacitor: region
            for capacitor, region in plates.items()
            if technology.passives[capacitor].parts["plate"] == name
        }
        found.append((layer(name) - _union(own), f"{name} is not the plate of a capacitor"))
    return [(region, reason) for region, reason in found if not region.is_empty()]


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
    others -= {technology.role("poly_contact_marker")}
    others |= {*spec.excludes, *_other_cores(technology, spec)}
    for marker in spec.markers:
        found = found.inside(layer(marker))
    for marker in sorted(others - set(spec.markers)):
        found = found.outside(layer(marker))
    return found


def _other_cores(technology: Technology, spec: PassiveSpec) -> set[str]:
    """Return other resistors' core layers on the body of ``spec``: a core under two of them belongs to neither."""
    if spec.type != "resistor":
        return set()
    resistors = [other for other in technology.passives.values() if other.type == "resistor"]
    alike = {other.parts["core"] for other in resistors if other.parts["body"] == spec.parts["body"]}
    return alike - {spec.parts["core"]}


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
