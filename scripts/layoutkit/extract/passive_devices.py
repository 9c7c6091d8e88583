"""Devices in a layout: where they are, what they mean for what conducts, and how KLayout extracts them.

    resistor   head [body]--[ core: body & core layer ]--[body] head      ``resistor_devices``
    capacitor  top conductor --[cut]-- plate (over the bottom conductor)  the cuts on a plate do not reach the bottom
    diode      n+ diffusion in the p substrate, or p+ in a well, that the marker of diodes covers
    tap        diffusion of its well's own type, where the text of taps lies in its marker, else in its well
    MOS cap.   poly over diffusion; source, drain and body are one net, or the diffusion is of the body's type
    bipolar    emitters with the surroundings of the foundry's cell: ``cell_devices``, as a whole cell

A shape becomes a device only if all markers of its flavour cover it and none of another flavour does. The core markers
give the ends of a resistor: the heads are the body outside them, so that a marker over a head cuts the head off. Body
that a core layer or a core marker covers without making a resistor is reported, since in silicon it is not a wire; so
is a plate that is not part of a capacitor.

``RECIPES`` has one entry per kind of device. ``connectivity`` finds the channels of transistors.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.extract.cell_devices import (
    BOX,
    OF_THREE,
    OF_TWO,
    CellDevices,
    add_boxes,
    box_extractor,
    cell_devices,
    cell_extractor,
    emitters_of,
    fixed_extractor,
    loose_emitters,
)
from layoutkit.extract.resistor_devices import (
    LayersOfCell,
    Loose,
    bends_of,
    by_body,
    capacitor_extractor,
    diffusion,
    diffusion_of,
    fed_plates,
    loose_bodies,
    loose_plates,
    n_wells,
    plates_of,
    resistor_class,
    resistor_cores,
    resistor_extractor,
    union,
)
from layoutkit.technology.device_kinds import KINDS
from layoutkit.technology.passive_sizes import rectangle_sides

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from layoutkit.extract.resistor_devices import Extractor, Regions
    from layoutkit.technology import DeviceSpec, PassiveSpec, Technology

MICROMETRE_DECIMALS = 6


@dataclass
class PassiveLayers:
    """The devices of one flat cell that are not transistors.

    Attributes:
        shapes: Device name to its shapes: cores of resistors, plates of capacitors.
        plates: Those of ``shapes`` that are plates, which conduct.
        gates: Channels of MOS capacitors, which are no transistors.
        marked: All that a core marker of a poly resistor covers: poly there conducts only as a resistor.
        metal: Conductor to all of it that a core marker of its resistors covers, which is no wire.
        loose: Kind to the shapes that should be such a device but are none.
        cells: Those that are drawn as the foundry's cell.
        fed: Centre of a plate with feeds to its width across them, its length along them, and their width. [dbu]
        bends: Centre of a resistor to the number of its bends. [dbu]
    """

    shapes: dict[str, kdb.Region] = field(default_factory=dict)
    plates: dict[str, kdb.Region] = field(default_factory=dict)
    gates: kdb.Region = field(default_factory=kdb.Region)
    marked: kdb.Region = field(default_factory=kdb.Region)
    metal: dict[str, kdb.Region] = field(default_factory=dict)
    loose: dict[str, Loose] = field(default_factory=dict)
    cells: CellDevices = field(default_factory=CellDevices)
    fed: dict[tuple[int, int], tuple[int, int, int]] = field(default_factory=dict)
    bends: dict[tuple[int, int], float] = field(default_factory=dict)


@dataclass(frozen=True)
class Recipe:
    """How devices of one kind are found in a layout.

    Attributes:
        device_class: Returns KLayout's class for a device.
        terminals: KLayout's names of the terminals, with the circuit's.
        shapes: Returns the shapes of one device type; None for transistors.
        loose: Returns the shapes that should be devices of the kind but are none, for all its types and their shapes;
            regions may be empty.
        tied: KLayout's names of terminals that must all be on the net of one terminal of the circuit.
        named_in: Returns the shapes in which a text must lie to make what they hold devices of one type; None where no
            text is needed.
        extractor: Returns KLayout's extractor for one device type, and its layers from the shapes and what conducts.
    """

    device_class: Callable[[PassiveSpec | None], kdb.DeviceClass]
    terminals: Mapping[str, str]
    shapes: Callable[[LayersOfCell, PassiveSpec], kdb.Region] | None = None
    loose: Callable[[LayersOfCell, list[PassiveSpec], Regions], Loose] | None = None
    tied: tuple[str, ...] = ()
    named_in: Callable[[LayersOfCell, PassiveSpec], kdb.Region] | None = None
    extractor: Callable[[Technology, PassiveSpec, kdb.Region, Regions], Extractor] | None = None


def passive_layers(drawn: LayersOfCell) -> PassiveLayers:
    """Return the devices of a flat cell that its technology knows, but for transistors."""
    technology, layer = drawn.technology, drawn.layer
    found = PassiveLayers(cells=cell_devices(drawn))
    for spec in technology.passives.values():
        if spec.type == BOX and technology.makes(spec):
            add_boxes(drawn, spec, found.cells)
    found.shapes.update(found.cells.emitters)
    found.loose |= found.cells.loose
    for kind, recipe in RECIPES.items():
        specs = [spec for _, spec in sorted(technology.passives.items()) if spec.type == kind]
        if recipe.shapes is None or recipe.loose is None:
            continue
        made = [spec for spec in specs if technology.makes(spec)]
        own = {spec.name: kdb.Region() for spec in specs}
        own |= {spec.name: recipe.shapes(drawn, spec) for spec in made}
        if recipe.named_in is not None:
            for spec in made:
                bearing = recipe.named_in(drawn, spec).interacting(drawn.text_boxes(spec.ring_text))
                own[spec.name] = own[spec.name].inside(bearing)
        found.shapes.update(own)
        found.plates.update({spec.name: own[spec.name] for spec in made if "plate" in spec.parts})
        for spec in made:
            if kind == "capacitor" and spec.fed:
                found.fed.update(fed_plates(drawn, spec, own[spec.name]))
            if kind == "resistor" and spec.bend is not None:
                found.bends.update(bends_of(own[spec.name]))
        if recipe.tied:
            found.gates = union((found.gates, *own.values()))
        loose = recipe.loose(drawn, specs, own)
        cells = found.cells.windows + found.cells.boxes
        found.loose[kind] = [(rest, why) for each, why in loose if not (rest := each.not_inside(cells)).is_empty()]
    for spec in (each for each in technology.passives.values() if each.conductor):
        covered = layer(spec.parts["body"]) & union(layer(name) for name in spec.cuts_body)
        found.metal[spec.conductor] = union((covered, found.metal.get(spec.conductor, kdb.Region())))
    poly = technology.role("poly")
    of_poly = (s for s in technology.passives.values() if technology.resolve(s.parts.get("body", "")) == poly)
    found.marked = union(layer(name) for spec in of_poly for name in spec.cuts_body)
    return found


def _lacks(drawn: LayersOfCell, names: Iterable[str]) -> bool:
    """Return whether a cell draws nothing on one of these layers, so that it has no device that needs them all."""
    return any(drawn.layer(name).is_empty() for name in names)


def _junctions(drawn: LayersOfCell, spec: PassiveSpec) -> kdb.Region:
    """Return the shapes of one type of diode or tap: diffusion, or wells, with its markers and no excluded layer."""
    transistor = spec.diffusion_of
    if transistor is None or _lacks(drawn, (*transistor.marked_by, *spec.markers, *spec.covers)):
        return kdb.Region()
    implants = (transistor.implant, transistor.bulk_implant)
    if spec.well:
        found = drawn.layer(spec.well)
        found = found.inside(drawn.layer("deep_nwell")) if spec.in_p_well else found
    elif spec.bare:
        found = diffusion(drawn)
    else:
        own_type = implants[::-1] if spec.kind.always_tied else implants
        found = diffusion_of(drawn, *own_type).outside(drawn.layer("poly"))
    others = _markers_of_type(drawn.technology, transistor.type) - {*transistor.marked_by, *spec.optional}
    own = (*transistor.marked_by, *spec.markers, *spec.covers)
    body = None if spec.well else transistor
    return _of_flavour(drawn, body, found, own, others | {*spec.excludes})


def _markers_of_type(technology: Technology, mos_type: str) -> set[str]:
    """Return the layers that mark transistors of one type."""
    return {marker for each in technology.devices.values() if each.type == mos_type for marker in each.marked_by}


def _of_flavour(
    drawn: LayersOfCell, transistor: DeviceSpec | None, found: kdb.Region, inside: Iterable[str], outside: Iterable[str]
) -> kdb.Region:
    """Return the shapes of ``found`` in the body of a transistor that are inside some layers and outside others.

    Without a transistor, any body will do.
    """
    wells, substrate = n_wells(drawn), drawn.technology.role("pwell")
    if transistor is not None and wells is not None:
        found = found.inside(wells) if transistor.type == "pmos" else found.outside(wells)
    if transistor is not None and transistor.type == "nmos" and substrate is not None:
        found = found.inside(drawn.layer(substrate))
    for name in inside:
        found = found.inside(drawn.layer(name))
    for name in sorted(outside):
        found = found.outside(drawn.layer(name))
    return found


def _loose_junctions(drawn: LayersOfCell, diodes: list[PassiveSpec], junctions: Regions) -> Loose:
    """Return what markers of diodes cover without a diode: diffusion that is none, and markers on no diode at all.

    The first marker of a diode is what marks it. It may cover the taps beside the diode as well.
    """
    layer, firsts = drawn.layer, {marker for spec in diodes for marker in (spec.markers or spec.covers)[:1]}
    markers = sorted(marker for marker in firsts if not layer(marker).is_empty())
    if not markers:
        return []
    known = union(junctions.values())
    taps, found = kdb.Region(), []
    wells = n_wells(drawn)
    for transistor in {spec.diffusion_of.name: spec.diffusion_of for spec in diodes if spec.diffusion_of}.values():
        bulk = diffusion_of(drawn, transistor.bulk_implant, transistor.implant)
        if wells is not None:
            bulk = bulk & wells if transistor.type == "pmos" else bulk - wells
        taps += bulk
    for marker in markers:
        covered = diffusion(drawn) & layer(marker)
        found.append((covered - known - taps, f"{marker} covers diffusion that is not a diode"))
        found.append((layer(marker).not_interacting(known), f"{marker} marks no diode"))
    return found


def _mos_gates(drawn: LayersOfCell, spec: PassiveSpec) -> kdb.Region:
    """Return the channels of a type of MOS capacitor: with its implant, well, markers and covers, and no other's."""
    transistor = spec.diffusion_of
    if transistor is None:
        return kdb.Region()
    own = {*transistor.marked_by, *spec.markers, *spec.covers}
    if _lacks(drawn, {spec.parts["implant"], *own}):
        return kdb.Region()
    technology, layer = drawn.technology, drawn.layer
    found = (layer("poly") & diffusion(drawn)).merged().inside(layer(spec.parts["implant"]))
    for implant in {transistor.implant, transistor.bulk_implant} - {spec.parts["implant"], None}:
        found = found.outside(layer(str(implant)))
    others = _markers_of_type(technology, transistor.type) | {*spec.excludes}
    others |= {m for other in technology.passives.values() if other.type == spec.type for m in other.markers}
    return _of_flavour(drawn, transistor, found, sorted(own), others - own)


def _loose_mos_gates(drawn: LayersOfCell, capacitors: list[PassiveSpec], gates: Regions) -> Loose:
    """Return the markers that only MOS capacitors have and that lie on none."""
    of_transistors = {marker for spec in drawn.technology.devices.values() for marker in spec.marked_by}
    markers = {marker for spec in capacitors for marker in spec.markers} - of_transistors
    known = union(gates.values())
    return [(drawn.layer(name).not_interacting(known), f"{name} marks no MOS capacitor") for name in sorted(markers)]


def extract_passives(
    lvs: kdb.LayoutVsSchematic, technology: Technology, passives: PassiveLayers, conducting: dict[str, kdb.Region]
) -> None:
    """Have KLayout extract all devices but transistors into ``lvs``, whose layers ``conducting`` are."""
    for name, shapes in passives.shapes.items():
        spec = technology.passives[name]
        recipe = RECIPES[spec.type]
        if recipe.extractor is not None and technology.makes(spec):
            if name not in passives.plates:  # plates are registered as conductors
                lvs.register(shapes, f"core.{name}")
            bodies = {} if shapes.is_empty() else by_body(spec, shapes, conducting)
            for place, found in bodies.items():
                around = conducting if place == "p_body" else {**conducting, "p_body": conducting[place]}
                extractor, regions = recipe.extractor(technology, spec, found, around)
                known = [shapes, *conducting.values()]
                for part, region in regions.items():
                    if not any(region is each for each in known):
                        lvs.register(region, f"{part}.{name}.{place}")
                lvs.extract_devices(extractor, dict[str, kdb.ShapeCollection](regions))


def _diode_extractor(_: Technology, spec: PassiveSpec, junctions: kdb.Region, conducting: Regions) -> Extractor:
    if spec.well:
        ends = {"tA": conducting["p_body"], "tC": conducting["nwell"]}
        return kdb.DeviceExtractorDiode(spec.name), {"P": junctions, "N": junctions, **ends}
    in_well = spec.diffusion_of is not None and spec.diffusion_of.type == "pmos"
    anode, cathode = ("p_sd", "nwell") if in_well else ("p_body", "n_sd")
    p, n = (junctions, conducting["nwell"]) if in_well else (conducting["p_body"], junctions)
    layers = {"P": p, "N": n, "tA": conducting[anode], "tC": conducting[cathode]}
    return kdb.DeviceExtractorDiode(spec.name), layers


def _mos_capacitor_extractor(_: Technology, spec: PassiveSpec, gates: kdb.Region, conducting: Regions) -> Extractor:
    in_well = spec.diffusion_of is not None and spec.diffusion_of.type == "pmos"
    name = {True: ("p_tap", "n_tap"), False: ("n_sd", "p_sd")}[spec.accumulates][in_well]
    ends, body = conducting[name], conducting["nwell" if in_well else "p_body"]
    layers = {"SD": ends, "G": gates, "W": body, "tS": ends, "tD": ends, "tG": conducting["poly"], "tB": body}
    return kdb.DeviceExtractorMOS4Transistor(spec.name), layers


def _tapped(drawn: LayersOfCell, spec: PassiveSpec) -> kdb.Region:
    """Return the shapes in which the text of a tap lies: its marker, or the wells where it has none."""
    wells = n_wells(drawn)
    return drawn.layer(spec.markers[0]) if spec.markers else kdb.Region() if wells is None else wells


def _tap_extractor(_: Technology, spec: PassiveSpec, taps: kdb.Region, conducting: Regions) -> Extractor:
    tie, body = ("p_tap", "p_body") if spec.in_substrate else ("n_tap", "nwell")
    layers = {"P": taps, "N": conducting[body], "tA": conducting[tie], "tC": conducting[body]}
    return kdb.DeviceExtractorDiode(spec.name), layers


def _emitters(drawn: LayersOfCell, spec: PassiveSpec) -> kdb.Region:
    return emitters_of(drawn, spec, _junctions(drawn, spec))


def _loose_emitters(drawn: LayersOfCell, bipolars: list[PassiveSpec], emitters: Regions) -> Loose:
    if not bipolars:
        return []
    found = {spec.name: _junctions(drawn, spec) for spec in bipolars}
    return loose_emitters(drawn, bipolars, found, union(emitters.values()))


def _bipolar_extractor(_: Technology, spec: PassiveSpec, emitters: kdb.Region, conducting: Regions) -> Extractor:
    wells = conducting["nwell"].interacting(emitters)
    # Without a region of its own, the collector is below the base; its terminal is where the well meets the substrate.
    layers = {"C": kdb.Region(), "B": wells, "E": emitters}
    ends = {"tC": conducting["p_body"], "tB": conducting["nwell"], "tE": conducting["p_sd"]}
    return kdb.DeviceExtractorBJT3Transistor(spec.name), {**layers, **ends}


def _fixed_recipe(kind: str) -> Recipe:
    names = KINDS[kind].terminals
    two = len(names) == len(OF_TWO)
    return Recipe(
        device_class=lambda _: kdb.DeviceClassDiode() if two else kdb.DeviceClassBJT3Transistor(),
        terminals=dict(zip(OF_TWO if two else OF_THREE, names, strict=True)),
        extractor=fixed_extractor,
    )


def _cell_recipe(kind: str) -> Recipe:
    declared = KINDS[kind]
    return Recipe(
        device_class=lambda _: kdb.DeviceClassBJT4Transistor(),
        terminals=dict(zip("CBES", (*declared.terminals, declared.bulk), strict=True)),
        extractor=cell_extractor,
    )


def size_of(device: kdb.Device) -> tuple[float, float]:
    """Return width and length of an extracted device. [um]

    A capacitor's, diode's or emitter's are the sides of the rectangle of its area and perimeter, the longer one first.
    """
    names = {parameter.name for parameter in device.device_class().parameter_definitions()}
    if "W" in names:
        return round(device.parameter("W"), MICROMETRE_DECIMALS), round(device.parameter("L"), MICROMETRE_DECIMALS)
    area, perimeter = (device.parameter(name) for name in (("AE", "PE") if "AE" in names else ("A", "P")))
    sides = rectangle_sides(area, perimeter) or (perimeter / 4, perimeter / 4)
    return round(sides[0], MICROMETRE_DECIMALS), round(sides[1], MICROMETRE_DECIMALS)


_MOS = Recipe(
    device_class=lambda _: kdb.DeviceClassMOS4Transistor(),
    terminals={"S": "s", "G": "g", "D": "d", "B": "b"},
)

RECIPES: dict[str, Recipe] = {
    "nmos": _MOS,
    "pmos": _MOS,
    "resistor": Recipe(
        device_class=resistor_class,
        terminals={"A": "p", "B": "n", "W": "b"},
        shapes=resistor_cores,
        loose=loose_bodies,
        extractor=resistor_extractor,
    ),
    "capacitor": Recipe(
        device_class=lambda spec: (
            kdb.DeviceClassCapacitorWithBulk() if spec and spec.body_terminal else kdb.DeviceClassCapacitor()
        ),
        terminals={"A": "p", "B": "n", "W": "b"},
        shapes=plates_of,
        loose=loose_plates,
        extractor=capacitor_extractor,
    ),
    "mos_capacitor": Recipe(
        device_class=lambda _: kdb.DeviceClassMOS4Transistor(),
        terminals={"G": "p", "S": "n", "D": "n", "B": "n"},
        shapes=_mos_gates,
        loose=_loose_mos_gates,
        tied=("S", "D", "B"),
        extractor=_mos_capacitor_extractor,
    ),
    "diode": Recipe(
        device_class=lambda _: kdb.DeviceClassDiode(),
        terminals={"A": "p", "C": "n"},
        shapes=_junctions,
        loose=_loose_junctions,
        extractor=_diode_extractor,
    ),
    "tap": Recipe(
        device_class=lambda _: kdb.DeviceClassDiode(),
        terminals={"A": "p", "C": "n"},
        shapes=_junctions,
        loose=lambda *_: [],
        named_in=_tapped,
        extractor=_tap_extractor,
    ),
    **{name: _cell_recipe(name) for name, kind in KINDS.items() if kind.in_cells},
    **{name: _fixed_recipe(name) for name, kind in KINDS.items() if kind.one_size},
    BOX: Recipe(
        device_class=lambda _: kdb.DeviceClassBJT3Transistor(),
        terminals=dict(zip(OF_THREE, KINDS[BOX].terminals, strict=True)),
        extractor=box_extractor,
    ),
    "pnp": Recipe(
        device_class=lambda _: kdb.DeviceClassBJT3Transistor(),
        terminals={"C": "c", "B": "b", "E": "e"},
        shapes=_emitters,
        loose=_loose_emitters,
        extractor=_bipolar_extractor,
    ),
}
"""Kind of device to how it is found; the order is that of extraction."""
