"""Recognise bipolar transistors and other devices that are drawn as the foundry's cell, and isolated boxes.

A device with a cell of its own: a marker whose contents are those of the cell. Count and length of the emitters are
measured in each box of the marker. All layers of the wafer in it, and wherever else the cell draws, up to the contacts,
must then be those of the foundry's cell of this count and length, in any orientation; otherwise the first difference
is reported. Diffusion there is part of the device and is no source, drain or tap, poly no gate and no p body.

A vertical bipolar transistor: emitters surrounded by the same shapes as in the foundry's cell. An emitter is p+
diffusion in a well, covered by the markers of the device. It is accepted if the process has a device of its size and
if base, well, collector, implants and markers are where the foundry's cell has them. Otherwise it is reported, with
the first difference. Neighbours may share the sides of their collector rings. Therefore only the shapes inside the
ring are compared exactly; the ring must exist and have contacts.

Isolated boxes are rectangles of a deep n well, below a marker with a text, that hold a p well of their own. Other
devices may lie in the p well, and are found as anywhere else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.extract.resistor_devices import diffusion
from layoutkit.technology.device_specs import frames_of, layer_of_frame

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from layoutkit.extract.resistor_devices import Extractor, LayersOfCell, Regions
    from layoutkit.technology import PassiveSpec, Technology
    from layoutkit.technology.device_cell import DeviceCell, Points
    from layoutkit.technology.device_specs import Frame


SUBSTRATE = "substrate"  # the layer that is one net everywhere, and the name of that net
OF_TWO, OF_THREE = ("A", "C"), ("C", "B", "E")
"""KLayout's names of the terminals of a diode, and of a bipolar transistor."""
_UNCOMPARED = frozenset({"annotation", "pin", "text", "conductor", "marker"})
BOX = "isolated_box"


@dataclass
class CellDevices:
    """The devices of one flat cell that are drawn as the foundry's cell.

    Attributes:
        emitters: Device to one box per device, as wide as all its emitters together and as long as one.
        windows: All that the devices draw on the wafer, up to the contacts, as a box.
        blocked: Those in which diffusion is part of the device.
        inside: Terminal to the areas of the devices that have it.
        pins: Terminal and conductor to the metal that reaches it.
        loose: Kind to markers without a device and emitters outside of one, each region with the reason.
        boxes: Isolated boxes, which may hold other devices.
    """

    emitters: dict[str, kdb.Region] = field(default_factory=dict)
    windows: kdb.Region = field(default_factory=kdb.Region)
    blocked: kdb.Region = field(default_factory=kdb.Region)
    inside: dict[str, kdb.Region] = field(default_factory=dict)
    pins: dict[tuple[str, str], kdb.Region] = field(default_factory=dict)
    loose: dict[str, list[tuple[kdb.Region, str]]] = field(default_factory=dict)
    boxes: kdb.Region = field(default_factory=kdb.Region)


def cell_devices(drawn: LayersOfCell) -> CellDevices:
    """Return the devices of a technology that state a cell, found in a layout."""
    technology, search = drawn.technology, _Search(drawn)
    found = search.found
    specs = [spec for _, spec in sorted(technology.passives.items()) if spec.cell is not None]
    found.emitters = {spec.name: kdb.Region() for spec in specs}
    for marker in sorted({spec.cell.marker for spec in specs if spec.cell}):
        own = [spec for spec in specs if spec.cell and spec.cell.marker == marker]
        shared = any(marker in other.markers for other in technology.passives.values())
        fixed = own[0].cell is not None and own[0].cell.fixed
        for polygon in drawn.layer(marker).each():
            if fixed:
                search.read(own, polygon, alone=_mark_cells_alone(technology, own))
            elif not shared or any(search.has_wells(each, kdb.Region(polygon)) for each in own):
                search.read(own, polygon, alone=not shared)
    emitters = {(spec.cell.emitter, spec.type) for spec in specs if spec.cell and spec.cell.emitter}
    elsewhere = {technology.role(role) for role in ("active", "poly")}
    for emitter, kind in sorted(each for each in emitters if each[0] not in elsewhere):
        outside = drawn.layer(emitter).outside(found.windows)
        known = kdb.Region()
        for region, _ in found.loose.get(kind, ()):
            known.insert(region.bbox())
        found.loose.setdefault(kind, []).append((outside.outside(known), f"{emitter} belongs to no device"))
    for kind, loose in found.loose.items():
        found.loose[kind] = [(region, reason) for region, reason in loose if not region.is_empty()]
    return found


def _mark_cells_alone(technology: Technology, specs: list[PassiveSpec]) -> bool:
    """Return whether the markers of cells of one size mark no other devices."""
    others = {name for each in technology.passives.values() if each.cell is None for name in each.markers}
    others |= {name for each in technology.devices.values() for name in each.marked_by} | {*technology.roles.values()}
    return all(spec.cell is not None and spec.cell.marker not in others for spec in specs)


class _Search:
    """Compares what a layout draws in markers with the foundry's cells."""

    def __init__(self, drawn: LayersOfCell) -> None:
        self.technology, self.layer = drawn.technology, drawn.layer
        self.found = CellDevices()

    def has_wells(self, spec: PassiveSpec, window: kdb.Region) -> bool:
        """Return whether each well of the cell of ``spec`` is in ``window``: others share its marker."""
        cell = () if spec.cell is None else spec.cell.shapes(1, spec.min_l)
        return not any((self.layer(n) & window).is_empty() for n in cell if self.technology.spec(n).purpose == "well")

    def read(self, specs: list[PassiveSpec], marker: kdb.Polygon, *, alone: bool) -> None:
        """Add the device in ``marker`` to what is found, or the marker and what differs to its loose shapes.

        A marker that is not ``alone`` marks other devices as well: if its size is not that of a cell, it is theirs.
        """
        window, reasons, kind = kdb.Region(marker), list[str](), specs[0].type
        otherwise = "it holds no emitter of a known device"
        for spec, cell in ((each, each.cell) for each in specs if each.cell):
            sizes, reason = self._sizes(spec, cell, window)
            differences = []
            for size, placed in ((one, each) for one in sizes for each in _placements(cell, one, marker.bbox())):
                difference = self._difference(spec, cell, size, placed)
                if not difference:
                    self._add(spec, cell, size, placed)
                    return
                differences.append(difference)
            if differences:
                reason = f"not a {spec.name}: {differences[0]}"
                kind = spec.type if cell.fixed else kind
            elif cell.fixed:
                names = ", ".join(each.name for each in specs)
                otherwise = f"its size is not that of the foundry's cell of {names}"
            elif sizes and alone:
                reason = f"not a {spec.name}: its {cell.marker} has another size"
            reasons += [reason] if reason else []
        if alone or reasons:
            self.found.loose.setdefault(kind, []).append((window, "; ".join(reasons) or otherwise))

    def _sizes(self, spec: PassiveSpec, cell: DeviceCell, window: kdb.Region) -> tuple[list[tuple[int, int]], str]:
        """Return the sizes (emitters, their length) that a device in ``window`` may have, and why it has none."""
        if cell.fixed:
            return [(cell.most, spec.min_l)], ""
        emitters = (self.layer(cell.emitter) & window).merged()
        if emitters.is_empty():
            return [], ""
        if spec.min_l == spec.max_l:
            return [(count, spec.min_l) for count in range(1, cell.most + 1)], ""
        first, count = next(emitters.each()).bbox(), emitters.count()
        length = max(first.width(), first.height())
        if length < spec.min_l or length > (spec.max_l or length) or count > cell.most:
            return [], f"{spec.name} has no {count} emitters of {self.technology.to_um(length):g} um"
        return [(count, length)], ""

    def _difference(self, spec: PassiveSpec, cell: DeviceCell, size: tuple[int, int], placed: kdb.Trans) -> str:
        """Return what differs from the foundry's cell of ``size`` (emitters, their length) where that lies."""
        technology = self.technology
        window = kdb.Region(_window(technology, cell, size, placed))
        vias = {technology.spec(cut.layer).name for cut in technology.cuts}
        for name, region in sorted(_compared(technology, cell, size).items()):
            if name not in vias and not ((self.layer(name) & window) ^ region.transformed(placed)).is_empty():
                return f"{name} is not that of the foundry's cell"
        for name in spec.excludes:
            if not (self.layer(name) & window).is_empty():
                return f"{name} lies in it"
        outline = kdb.Box(*cell.outline(*size)[0], *cell.outline(*size)[1]).transformed(placed)
        for name, (inner, outer) in () if cell.any_ring else cell.ring.items():
            ring = kdb.Region(outline.enlarged(outer, outer)) - kdb.Region(outline.enlarged(inner, inner))
            if not (ring - self.layer(name)).is_empty():
                return f"its ring of {name} is missing or not whole"
        return ""

    def _add(self, spec: PassiveSpec, cell: DeviceCell, size: tuple[int, int], placed: kdb.Trans) -> None:
        """Add a device, the metal at its terminals, and a box of its size in place of its emitters."""
        technology, found = self.technology, self.found
        reached = {end: (conductor, [cell.stretched(box, *size)]) for end, (conductor, box) in cell.pins.items()}
        if "e" in reached and not cell.fixed:  # the pin of its emitters lies higher, on cuts
            reached["e"] = (technology.conductors[0].name, cell.emitters(*size))
        low, high = cell.outline(*size)
        outline, window = kdb.Box(*low, *high).transformed(placed), _window(technology, cell, size, placed)
        for terminal, (conductor, shapes) in reached.items():
            metal = technology.conductor(conductor)
            box = _region(shapes, placed)
            pin = found.pins.setdefault((terminal, metal.name), kdb.Region())
            pin += self.layer(metal.layer) & box
            inside = found.inside.setdefault(terminal, kdb.Region())
            inside.insert(outline.enlarged(-1, -1) if cell.fixed else window)  # neighbours stay apart
            inside.insert(box.bbox() + outline.center())
        wide, long = cell.size[0] * (1 if cell.fixed else size[0]), size[1]
        if placed.angle % 2:  # the box lies in the cell, whatever its direction
            wide, long = long, wide
        left, bottom = outline.center().x - wide // 2, outline.center().y - long // 2
        found.emitters[spec.name].insert(kdb.Box(left, bottom, left + wide, bottom + long))
        found.windows.insert(window)
        if not cell.fixed:  # in a cell of one size, diffusion and taps are read as drawn
            found.blocked.insert(window)


@lru_cache(maxsize=512)
def _compared(technology: Technology, cell: DeviceCell, size: tuple[int, int]) -> dict[str, kdb.Region]:
    """Return layer to the merged shapes of a cell that a layout must have, where the cell is not turned.

    These are its marker, and all on the wafer up to contacts.
    """
    owner = {fill: name for name, each in technology.layers.items() for fill in each.fill}
    kept = {technology.spec(cell.marker).name, technology.role("poly")}
    found: dict[str, list[Points]] = {}
    for drawn, polygons in cell.shapes(*size).items():
        name = owner.get(drawn, technology.spec(drawn).name)
        if technology.spec(name).purpose not in _UNCOMPARED or name in kept:
            found.setdefault(name, []).extend(polygons)
    return {name: _region(polygons, kdb.Trans()).merged() for name, polygons in found.items()}


def _window(technology: Technology, cell: DeviceCell, size: tuple[int, int], placed: kdb.Trans) -> kdb.Box:
    """Return the box of all that the cell draws on the wafer."""
    found = kdb.Box()
    vias = {technology.spec(cut.layer).name for cut in technology.cuts}
    for name, region in _compared(technology, cell, size).items():
        found += kdb.Box() if name in vias else region.bbox()
    return found.transformed(placed)


def add_cells(technology: Technology, cells: CellDevices, conducting: dict[str, kdb.Region]) -> list[tuple[str, str]]:
    """Add the inside of devices that are drawn as the foundry's cell to ``conducting``; return what its pins join.

    Each terminal is one region over the whole device, joined to nothing but the metal at its pin; that of the collector
    also to the well that a cell draws.
    """
    drawn = {
        name for spec in technology.passives.values() if spec.cell and spec.cell.emitter for name in spec.cell.whole
    }
    wells = sorted({spec.cell.well for spec in technology.passives.values() if spec.cell and spec.cell.emitter})
    joins = [(f"cell.{name}", "nwell") for name in wells if technology.role("nwell") in drawn and name in cells.inside]
    for terminal, windows in cells.inside.items():
        conducting[f"cell.{terminal}"] = windows
    for (terminal, conductor), metal in cells.pins.items():
        pin = f"cell_pin.{terminal}.{conductor}"
        conducting[pin] = metal
        joins += [(f"cell.{terminal}", pin), (pin, conductor)]
    return [*joins, ("cell.box.s", SUBSTRATE)]  # an isolated box states the substrate


def cell_extractor(_: Technology, spec: PassiveSpec, emitters: kdb.Region, conducting: Regions) -> Extractor:
    """Return the extractor of a bipolar transistor or varactor that is drawn as the foundry's cell, and its layers."""
    names = spec.kind.terminals
    collector, base, emitter = (conducting.get(f"cell.{name}", kdb.Region()) for name in names)
    body = conducting["p_body"]
    layers = {"C": kdb.Region(), "B": base.interacting(emitters), "E": emitters, "S": body}
    ends = {"tC": collector, "tB": base, "tE": emitter, "tS": body}
    return kdb.DeviceExtractorBJT4Transistor(spec.name), {**layers, **ends}


def fixed_extractor(_: Technology, spec: PassiveSpec, cells: kdb.Region, conducting: Regions) -> Extractor:
    """Return the extractor of a cell of one size: as a diode of its two terminals, as a bipolar transistor of three."""
    ends = [conducting.get(f"cell.{name}", kdb.Region()) for name in spec.kind.terminals]
    if len(ends) == len(OF_TWO):
        return kdb.DeviceExtractorDiode(spec.name), {"P": cells, "N": cells, "tA": ends[0], "tC": ends[1]}
    layers = {"C": kdb.Region(), "B": ends[1].interacting(cells), "E": cells}
    return kdb.DeviceExtractorBJT3Transistor(spec.name), {**layers, "tC": ends[0], "tB": ends[1], "tE": ends[2]}


def _placements(cell: DeviceCell, size: tuple[int, int], box: kdb.Box) -> Iterator[kdb.Trans]:
    """Yield how the cell may lie for its marker to be ``box``."""
    low, high = cell.outline(*size)
    for turn, mirrored in product(range(4), (False, True)):
        outline = kdb.Box(*low, *high).transformed(kdb.Trans(turn, mirrored, 0, 0))
        if (outline.width(), outline.height()) == (box.width(), box.height()):
            yield kdb.Trans(turn, mirrored, box.left - outline.left, box.bottom - outline.bottom)


def _region(polygons: list[Points], placed: kdb.Trans) -> kdb.Region:
    return kdb.Region([kdb.Polygon([kdb.Point(x, y) for x, y in points]).transformed(placed) for points in polygons])


_INSIDE = ("base", "well", "base_implant", "emitter_implant")
_WORDS = {
    "base": "the base ring",
    "collector": "the collector ring",
    "well": "the well",
    "base_implant": "the implant of the base",
    "emitter_implant": "the implant of the emitter",
    "collector_implant": "the implant of the collector",
}


def sized_emitters(spec: PassiveSpec, found: kdb.Region) -> kdb.Region:
    """Return those of the emitters ``found`` that are rectangles of a size that ``spec`` has.

    Args:
        spec: A flavour.
        found: Diffusion below the markers of the flavour.
    """
    fitting = kdb.Region()
    for emitter in found.merged().each():
        if emitter.is_box() and _turns(spec, emitter.bbox()):
            fitting.insert(emitter)
    return fitting


def emitters_of(drawn: LayersOfCell, spec: PassiveSpec, found: kdb.Region) -> kdb.Region:
    """Return those of the emitters ``found`` that are transistors of the flavour ``spec``."""
    kept = kdb.Region()
    for emitter in sized_emitters(spec, found).each():
        if not difference(drawn, spec, emitter.bbox()):
            kept.insert(emitter)
    return kept


def loose_emitters(
    drawn: LayersOfCell, specs: list[PassiveSpec], found: Regions, known: kdb.Region
) -> list[tuple[kdb.Region, str]]:
    """Return what looks like a bipolar transistor but is none, and markers without one, each with the reason.

    A flavour without a marker, such as that of sg13cmos5l, has none: its surroundings alone make it.

    Args:
        drawn: The layers of the cell.
        specs: All flavours.
        found: Flavour to the diffusion below its markers.
        known: The emitters of all transistors.
    """
    technology, loose = drawn.technology, list[tuple[kdb.Region, str]]()
    reported = known.dup()
    specs = [spec for spec in specs if spec.markers]  # without one, any other p+ diffusion of a well looks alike
    for spec in specs:
        fitting = sized_emitters(spec, found[spec.name])
        for emitter in (fitting - reported).merged().each():
            why = difference(drawn, spec, emitter.bbox()) or "it belongs to two flavours"
            loose.append((kdb.Region(emitter), f"not a {spec.name}: {why}"))
        reported += fitting
    for spec in specs:
        others = found[spec.name].merged().not_interacting(reported)
        sizes = ", ".join(_size_text(technology, each) for each in specs)
        loose.append((others, f"the emitter of no bipolar transistor of {technology.name}, which has {sizes}"))
        reported += others
    markers = {name for spec in specs for name in spec.markers if technology.spec(name).purpose == "marker"}
    loose += [
        (drawn.layer(marker).not_interacting(reported), f"{marker} marks no bipolar transistor")
        for marker in sorted(markers)
    ]
    return loose


def difference(drawn: LayersOfCell, spec: PassiveSpec, emitter: kdb.Box) -> str:
    """Return what differs from the cell of ``spec`` around an emitter of its size; empty where nothing does."""
    every = [_turned_difference(drawn, spec, emitter, turned=each) for each in _turns(spec, emitter)]
    return "" if "" in every else every[0]


def _turned_difference(drawn: LayersOfCell, spec: PassiveSpec, emitter: kdb.Box, *, turned: bool) -> str:
    technology, layer = drawn.technology, drawn.layer
    frames = _frames(technology, spec, emitter, turned=turned)
    window = kdb.Region(emitter.enlarged(*frames["collector"][0]))
    expected: dict[str, kdb.Region] = {technology.resolve("active"): kdb.Region(emitter)}
    for name, frame in frames.items():
        role = layer_of_frame(spec, name)
        if role is None:
            continue
        key = technology.resolve(role)
        ring = _ring(emitter, frame)
        if name not in _INSIDE and not (ring - layer(role)).is_empty():
            return f"{_WORDS.get(name, name)} is missing or not whole"
        expected[key] = expected.get(key, kdb.Region()) + (ring & window)
    for name in (*_INSIDE, *spec.markers):
        role = layer_of_frame(spec, name) if name in frames else None
        if role is not None:
            key = technology.resolve(role)
            if not ((layer(role) & window) ^ expected[key].merged()).is_empty():
                return f"{_WORDS.get(name, name)} is not that of the foundry's cell"
    for name in ("base", "collector"):
        ring = _ring(emitter, frames[name])
        if layer(technology.contact.layer).inside(ring).is_empty():
            return f"{_WORDS[name]} has no contact"
    return ""


def _frames(technology: Technology, spec: PassiveSpec, emitter: kdb.Box, *, turned: bool) -> Mapping[str, Frame]:
    """Return the frames around ``emitter``, x and y exchanged where it lies on its side."""
    width = emitter.height() if turned else emitter.width()
    frames = frames_of(spec, width, technology.grid)
    if not turned:
        return frames
    return {name: ((inner[1], inner[0]), (outer[1], outer[0])) for name, (inner, outer) in frames.items()}


def _ring(emitter: kdb.Box, frame: Frame) -> kdb.Region:
    inner, outer = frame
    region = kdb.Region(emitter.enlarged(*outer))
    return region if inner == (0, 0) else region - kdb.Region(emitter.enlarged(*inner))


def _turns(spec: PassiveSpec, emitter: kdb.Box) -> list[bool]:
    """Return whether an emitter may lie upright (False) and on its side (True), the likelier first."""

    def allowed(width: int, length: int) -> bool:
        wide = spec.min_w <= width <= (spec.max_w or width)
        return wide and spec.min_l <= length <= (spec.max_l or length)

    sides = (emitter.width(), emitter.height())
    found = [turned for turned in (False, True) if allowed(*(reversed(sides) if turned else sides))]
    return found[::-1] if sides[0] > sides[1] else found


def _size_text(technology: Technology, spec: PassiveSpec) -> str:
    low = f"{technology.to_um(spec.min_w):g} x {technology.to_um(spec.min_l):g} um"
    return f"{spec.name} ({low}{'' if spec.only_size else ' and more'})"


def add_boxes(drawn: LayersOfCell, spec: PassiveSpec, found: CellDevices) -> None:
    """Add the isolated boxes: rectangles of well and marker that bear the text, with a closed ring of n well in them.

    The p well is reached by the metal on the p+ taps in the ring, the n well by that on the n+ taps of the ring.
    """
    technology, layer = drawn.technology, drawn.layer
    whole = (layer(spec.well) + layer(spec.markers[0])).merged()
    contacts = layer(technology.contact.layer) & diffusion(drawn)
    p_plus, metal = layer(str(technology.device("nmos").bulk_implant)), technology.conductors[0].name
    boxes = kdb.Region()
    pins = {terminal: kdb.Region() for terminal in ("p", "n")}
    for polygon in whole.interacting(drawn.text_boxes(spec.ring_text)).each():
        box = kdb.Region(polygon)
        ring = (layer("nwell") & box).merged()
        p_well = box - ring
        if not polygon.is_box() or ring.count() != 1 or p_well.count() != 1 or not (p_well - ring.hulls()).is_empty():
            found.loose.setdefault(spec.type, []).append((box, "its ring of n well is not whole"))
            continue
        pins["p"] += contacts & p_well & p_plus
        pins["n"] += (contacts & ring) - p_plus
        boxes += box
    if boxes.is_empty():
        return
    found.emitters[spec.name] = found.boxes = boxes
    # KLayout takes the base outside the emitter for the collector, so the layers of the terminals must be larger.
    around = boxes.sized(1)
    found.inside |= {f"box.{terminal}": around.dup() for terminal in spec.kind.terminals}
    found.pins |= {(f"box.{terminal}", metal): region for terminal, region in pins.items()}


def box_extractor(_: Technology, spec: PassiveSpec, boxes: kdb.Region, conducting: Regions) -> Extractor:
    """Return the extractor of isolated boxes, as bipolar transistors whose emitter is the whole box."""
    ends = [conducting.get(f"cell.box.{name}", kdb.Region()) for name in spec.kind.terminals]
    layers = {"C": kdb.Region(), "B": ends[1], "E": boxes}
    return kdb.DeviceExtractorBJT3Transistor(spec.name), {**layers, "tC": ends[0], "tB": ends[1], "tE": ends[2]}
