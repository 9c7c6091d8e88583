"""Resistors in a layout (cores, what conducts at their ends, what should be one and is none) and plates of capacitors.

    poly, metal  head [body]--[ core: body & core layer ]--[body] head
    diffusion    the same below a silicide block or a marker, in the substrate or in the well of its transistor

The core carries no net: what conducts is the body without it.

The cuts on the plate of a capacitor do not reach the bottom conductor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import klayout.db as kdb

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from layoutkit.technology import PassiveSpec, Technology

    Regions = Mapping[str, kdb.Region]
    Extractor = tuple[kdb.DeviceExtractorBase, dict[str, kdb.Region]]  # KLayout's, and its layers


class LayersOfCell(Protocol):
    """The layers of one flat cell; ``connectivity.DrawnLayers`` reads them."""

    technology: Technology

    def layer(self, name: str) -> kdb.Region:
        """Return the merged shapes of a layer."""

    def text_boxes(self, text: str) -> kdb.Region:
        """Return boxes at the places of a device text."""


Loose = list[tuple[kdb.Region, str]]
"""Shapes that should be part of a device and are not, each region with the reason."""


def union(regions: Iterable[kdb.Region]) -> kdb.Region:
    """Return the merged union of regions."""
    found = kdb.Region()
    for region in regions:
        found += region
    return found.merged()


def n_wells(drawn: LayersOfCell) -> kdb.Region | None:
    """Return the n-type surface: n wells, and deep n wells that reach the surface without the p wells in them.

    None where the process has no n well.
    """
    if drawn.technology.role("nwell") is None:
        return None
    wells, deep = drawn.layer("nwell"), drawn.technology.deep_well
    if deep is None or deep.body is None:
        return wells
    return (wells + (drawn.layer("deep_nwell") - drawn.layer(deep.body))).merged()


def diffusion(drawn: LayersOfCell) -> kdb.Region:
    """Return all diffusion, taps included."""
    apart = drawn.technology.role("tap") not in (None, drawn.technology.role("active"))
    return (drawn.layer("active") + drawn.layer("tap")).merged() if apart else drawn.layer("active").dup()


def diffusion_of(drawn: LayersOfCell, implant: str | None, other: str | None) -> kdb.Region:
    """Return the diffusion that ``implant`` makes, or that ``other`` leaves where the process draws no ``implant``."""
    found = diffusion(drawn)
    found = found if implant is None else found & drawn.layer(implant)
    return (found if other is None else found - drawn.layer(other)).merged()


def carrier(spec: PassiveSpec) -> str:
    """Return what the ends of a resistor are part of: a conductor, ``poly``, a well, or ``n_sd`` or ``p_sd``."""
    if spec.conductor or spec.well:
        return spec.conductor or ("p_body" if spec.in_p_well else "nwell")
    if spec.diffusion_of is None:
        return "poly"
    return "n_sd" if spec.diffusion_of.type == "nmos" else "p_sd"


def resistor_cores(drawn: LayersOfCell, spec: PassiveSpec) -> kdb.Region:
    """Return the cores of one type of resistor."""
    core = drawn.layer(spec.parts["body"]) & drawn.layer(spec.parts["core"])
    for marker in spec.core_markers:
        core &= drawn.layer(marker)
    if core.is_empty():  # as of most types in most cells
        return core
    core, wells, transistor = marked(drawn, spec, core), n_wells(drawn), spec.diffusion_of
    if spec.in_p_well:
        return core.inside(drawn.layer("deep_nwell"))
    if transistor is not None and wells is not None:
        core = core.inside(wells) if transistor.type == "pmos" else core.outside(wells)
    return core


def marked(
    drawn: LayersOfCell,
    spec: PassiveSpec,
    shapes: kdb.Region,
    by: Callable[[kdb.Region, kdb.Region], kdb.Region] = kdb.Region.inside,
) -> kdb.Region:
    """Return those shapes that have all markers of ``spec`` and none that only flavours like it have.

    Args:
        drawn: The layers of the cell.
        spec: Device.
        shapes: Shapes that may be its own.
        by: Returns the shapes that a marker applies to: those inside it, or those that it touches.
    """
    technology, found = drawn.technology, shapes.merged()
    if found.is_empty():
        return found
    others = {
        marker
        for other in technology.passives.values()
        if other.type == spec.type and _drawn_alike(spec, other)
        for marker in other.markers
    }
    others -= {technology.role("poly_contact_marker")}
    others |= {*spec.excludes, *_other_cores(technology, spec)}
    for marker in spec.markers:
        found = by(found, drawn.layer(marker))
    for marker in sorted(others - set(spec.markers)):
        found = found.outside(drawn.layer(marker))
    return found


def _drawn_alike(one: PassiveSpec, other: PassiveSpec) -> bool:
    """Whether two types are drawn on the same layers, so that only their markers distinguish them."""
    return all(one.parts.get(part) == other.parts.get(part) for part in ("body", "core", "bottom", "plate"))


def _other_cores(technology: Technology, spec: PassiveSpec) -> set[str]:
    """Return other resistors' core layers on the body of ``spec``: a core under two of them belongs to neither."""
    if "core" not in spec.parts:
        return set()
    resistors = [other for other in technology.passives.values() if other.type == spec.type]
    alike = {other.parts["core"] for other in resistors if other.parts["body"] == spec.parts["body"]}
    return alike - {spec.parts["core"], *spec.core_markers}


def loose_bodies(drawn: LayersOfCell, resistors: list[PassiveSpec], cores: Regions) -> Loose:
    """Return body that is resistive or marked as a resistor without being a core, and resistive diffusion."""
    known = union(cores.values()) + _heads_in_core_layers(drawn, resistors, cores)
    for block, source in sorted({(d.block, d.source_marker) for d in drawn.technology.devices.values() if d.block}):
        known += drawn.layer(block).interacting(drawn.layer(source))  # of transistors
    of_poly = [spec for spec in resistors if spec.diffusion_of is None and not spec.well]  # others lie above wells
    return _unrecognised(drawn, of_poly, known) + _resistive_diffusion(drawn, known)


def _unrecognised(drawn: LayersOfCell, resistors: list[PassiveSpec], known: kdb.Region) -> Loose:
    """Return the parts of bodies that are resistive or marked outside ``known``, each once, with what covers it."""
    layer, known, found = drawn.layer, known.dup(), []
    covers = {(spec.parts["body"], name) for spec in resistors for name in (spec.parts["core"], *spec.core_markers)}
    for body, name in sorted(covers):
        found.append(((layer(body) & layer(name)) - known, f"{name} covers it outside the core of every resistor"))
        known += found[-1][0]
    for body, name in sorted({(spec.parts["body"], name) for spec in resistors for name in spec.resistive}):
        loose = (layer(body) & layer(name)).merged().not_interacting(known)
        found.append((loose, f"{name} makes it resistive, but it is not part of a resistor"))
    return found


def _heads_in_core_layers(drawn: LayersOfCell, resistors: list[PassiveSpec], cores: Regions) -> kdb.Region:
    """Return the heads, below their own layers, over which the core layer of a resistor may reach."""
    found = kdb.Region()
    for spec in resistors:
        for name in () if cores[spec.name].is_empty() else spec.heads:
            found += (drawn.layer(spec.parts["body"]) & drawn.layer(name)).merged().interacting(cores[spec.name])
    return found


def _resistive_diffusion(drawn: LayersOfCell, known: kdb.Region) -> Loose:
    """Return diffusion below a silicide block or a resistor's marker that is no core of a resistor."""
    technology, layer = drawn.technology, drawn.layer
    names = {name for name, spec in technology.layers.items() if spec.purpose == "silicide_block"}
    for spec in technology.passives.values():
        names |= {spec.parts["core"], *spec.core_markers} if "core" in spec.parts and not spec.conductor else set()
    names = {name for name in names if not layer(name).is_empty()}
    if not names:
        return []
    silicon = diffusion(drawn) - layer("poly") - known
    return [(silicon & layer(name), f"{name} makes diffusion a resistor") for name in sorted(names)]


def bends_of(cores: kdb.Region) -> dict[tuple[int, int], float]:
    """Return the centre of each bent core to its number of bends; a bend turns back by two corners. [dbu]"""
    found = {}
    for polygon in cores.merged().each():
        corners = polygon.num_points_hull()
        if corners > 4 and polygon.is_rectilinear():
            centre = polygon.bbox().center()
            found[centre.x, centre.y] = (corners - 4) / 4
    return found


def by_body(spec: PassiveSpec, shapes: kdb.Region, conducting: Regions) -> dict[str, kdb.Region]:
    """Return the shapes of a device by what they lie in: a resistor over an n well has the well for its body."""
    wells = conducting["nwell"]
    if spec.type != "resistor" or spec.well or not spec.body_terminal or (shapes & wells).is_empty():
        return {"p_body": shapes}
    parts = {"p_body": shapes.not_inside(wells), "nwell": shapes.inside(wells)}
    return {place: region for place, region in parts.items() if not region.is_empty()}


def resistor_extractor(_: Technology, spec: PassiveSpec, cores: kdb.Region, conducting: Regions) -> Extractor:
    """Return KLayout's extractor for one type of resistor, and its layers."""
    of = carrier(spec)
    ends = conducting[of]
    layers = {"R": cores, "C": ends, "tA": ends, "tB": ends}
    if spec.body_terminal:
        body = conducting["nwell" if of == "p_sd" or spec.in_p_well else "p_body"]
        return kdb.DeviceExtractorResistorWithBulk(spec.name, spec.value), {**layers, "W": body, "tW": body}
    return kdb.DeviceExtractorResistor(spec.name, spec.value), layers


def resistor_class(spec: PassiveSpec | None) -> kdb.DeviceClass:
    """Return KLayout's class for a resistor."""
    with_bulk = spec is not None and spec.body_terminal
    return kdb.DeviceClassResistorWithBulk() if with_bulk else kdb.DeviceClassResistor()


def plates_of(drawn: LayersOfCell, spec: PassiveSpec) -> kdb.Region:
    """Return the plates that the markers of one type of capacitor touch."""
    bottom = drawn.technology.conductor(spec.parts["bottom"]).layer
    plates = drawn.layer(spec.parts["plate"]).inside(drawn.layer(bottom))
    return marked(drawn, spec, plates, kdb.Region.interacting)  # MIM_L_MK of gf180mcuD is a strip


def fed_plates(
    drawn: LayersOfCell, spec: PassiveSpec, plates: kdb.Region
) -> dict[tuple[int, int], tuple[int, int, int]]:
    """Return the sizes of plates with feeds: the feed of the bottom plate is what crosses the edge of the marker.

    A plate whose bottom plate is not left on exactly one side is not among them, and has no feed that could agree.
    """
    found = {}
    bottom = drawn.layer(drawn.technology.conductor(spec.parts["bottom"]).layer)
    marker = drawn.layer(spec.markers[0])
    for polygon in plates.each():
        box, around = polygon.bbox(), marker.interacting(kdb.Region(polygon))
        edges = [edge for edge in (around.edges() & bottom).each() if edge.length() > 0]
        if len(edges) == 1:
            along_x = edges[0].d().x == 0
            width, length = (box.height(), box.width()) if along_x else (box.width(), box.height())
            found[box.center().x, box.center().y] = (width, length, edges[0].length())
    return found


def loose_plates(drawn: LayersOfCell, capacitors: list[PassiveSpec], plates: Regions) -> Loose:
    """Return what each plate layer draws outside all ``plates``: its cuts would be read as wires to the bottom."""
    found = []
    for name in sorted({spec.parts["plate"] for spec in capacitors}):
        own = union(plates[spec.name] for spec in capacitors if spec.parts["plate"] == name)
        found.append((drawn.layer(name) - own, f"{name} is not the plate of a capacitor"))
    for spec in (each for each in capacitors if each.fed):
        lone = drawn.layer(spec.markers[0]).not_interacting(plates[spec.name])
        found.append((lone, f"{spec.markers[0]} surrounds no plate of a capacitor"))
    return found


def plate_layer(name: str) -> str:
    """Return the name of the conducting layer of the plates of a capacitor."""
    return f"plate.{name}"


def plate_cut_layer(name: str) -> str:
    """Return the name of the layer of the cuts on the plates of a capacitor."""
    return f"plate_cut.{name}"


def add_plates(technology: Technology, every: Regions, conducting: dict[str, kdb.Region]) -> list[tuple[str, str]]:
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


def capacitor_extractor(technology: Technology, spec: PassiveSpec, _: kdb.Region, conducting: Regions) -> Extractor:
    """Return KLayout's extractor for one type of capacitor, and its layers."""
    plates = conducting[plate_layer(spec.name)]
    bottom = conducting[technology.conductor(spec.parts["bottom"]).name]
    layers = {"P1": plates, "P2": bottom, "tA": plates, "tB": bottom}
    if spec.body_terminal:
        body = conducting["p_body"]
        with_body = kdb.DeviceExtractorCapacitorWithBulk(spec.name, spec.value)
        return with_body, {**layers, "W": body, "tW": body}
    return kdb.DeviceExtractorCapacitor(spec.name, spec.value), layers
