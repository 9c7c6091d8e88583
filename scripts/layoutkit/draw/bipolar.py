"""Vertical bipolar transistors: the foundry's cell, repeated in an array with wires, as one module.

::

    +-------+-------+-------+   collector: a ring of substrate taps per unit, below one grid of the first conductor
    | +---+ | +---+ | +---+ |
    | | B | | | B | | | B | |   base ring in its own well, bars of the second conductor at its bottom and top
    | +---+ | +---+ | +---+ |
    +-------+-------+-------+   over each column a strap of the third conductor per net, equal in all columns
    | | B | | | A | | | B | |
    +-------+-------+-------+
    ======= collector rail ==
    ======= base rail =======   rails of the second conductor below the array: the pins
    ======= emitter rails ===

Every unit has the same neighbours, straps and bars, whichever transistor it belongs to. All terminals of a dummy are on
the net of the collector, so that LVS, here and in foundries' decks, takes it for no device. Neighbouring collector
rings share implant, marker and metal, but not the diffusion: the foundries' LVS decks take the box around a ring for
the collector, so that rings in one piece would short every unit in them.

Others are drawn as the foundry's cell: shapes from ``device_cell``, one ring of taps around each.

::

    +-----------------+   ring of substrate taps, with contacts and metal
    | ====== C ====== |   bars of the second conductor over the terminals, which straps of the third join
    | ====== E ====== |
    | ====== B ====== |
    +-----------------+

Every unit lies in a ring of its own; what surrounds one emitter surrounds all.

The units of matched bipolar transistors stand in rows and columns with one common centroid.

::

    B B B        1:8, the single unit in the middle. A unit cannot be cut, so that an exact common centroid needs
    B A B        places that are opposite about the middle, the middle itself, or three places whose centre is the
    B B B        middle. Places that remain are dummies.

No exact arrangement exists where two transistors have one unit each: only one can stand in the middle.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

from layoutkit.draw.array_pattern import array_pattern
from layoutkit.draw.bipolar_wires import BipolarWires, Tiles
from layoutkit.draw.module import DrawnDummy, Gate, Instance, Keepout, Module, Pin
from layoutkit.draw.passive import rectangle_on_grid, spec_of_kind
from layoutkit.draw.ring import centred_array
from layoutkit.draw.sketch import Sketch, spread_squares
from layoutkit.errors import GeometryError, TechnologyError, sentences
from layoutkit.layout.cells import fresh_cell
from layoutkit.rectangle import Rectangle
from layoutkit.technology.device_specs import frames_of, layer_of_frame
from layoutkit.technology.finger_widths import MAX_UNITS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.technology import PassiveSpec, Technology
    from layoutkit.technology.device_cell import DeviceCell
    from layoutkit.technology.device_specs import Frame
    from layoutkit.technology.passive_sizes import PassiveSize


__all__ = ["KIND", "NPN", "Bipolar", "BipolarSpec", "bipolar", "draw_bipolars"]
KIND, NPN = "pnp", "npn"
_MOST_CONTACTS = 60  # on a side of an emitter
_WIDE_SIDE = 8
"""Width of a ring's side, in contacts with their enclosure, from which it gets several rows of contacts."""


@dataclass(frozen=True)
class Bipolar:
    """A bipolar transistor in database units: ``m`` units in parallel with emitters of ``width`` in x and ``length``.

    Attributes:
        id: Instance name.
        spec: Flavour.
        width: Emitter in x. [dbu]
        length: Emitter in y. [dbu]
        m: Units.
        collector: Net, that of the substrate.
        base: Net.
        emitter: Net.
        substrate: Net of the ring of substrate taps around it, where that is not its collector's.
        warnings: What was rounded, in words.
    """

    id: str
    spec: PassiveSpec
    width: int
    length: int
    m: int
    collector: str
    base: str
    emitter: str
    substrate: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def ring(self) -> str:
        """Net of the ring around each unit, and of the terminals of dummies."""
        return self.substrate or self.collector


@dataclass(frozen=True)
class BipolarSpec:
    """What to draw in one cell.

    Attributes:
        name: Name of the cell.
        devices: Transistors of one flavour and size, on one collector net.
        dummies: Rings of dummies around the array.
        pattern: Rows from the top down with ``A`` for the first transistor; empty for a computed common centroid.
        labels: Whether to write the nets on the pins.
    """

    name: str
    devices: tuple[Bipolar, ...]
    dummies: int = 0
    pattern: tuple[str, ...] = ()
    labels: bool = True


class ArrayDrawing:
    """Draws an array of units whose collectors are the substrate.

    Args:
        tech: Process.
        spec: What to draw.
        rows: Where the units stand.
    """

    def __init__(self, tech: Technology, spec: BipolarSpec, rows: Rows) -> None:
        self.tech = tech
        self.spec = spec
        self.rows = rows
        self.device = spec.devices[0]
        self.flavour = self.device.spec
        self.frames = self._frames()
        self.sketch = Sketch()
        collectors, bases, emitters = (
            [getattr(device, name) for device in spec.devices] for name in ("collector", "base", "emitter")
        )
        self.nets = tuple(dict.fromkeys((self.device.ring, *collectors, *bases, *emitters)))
        self.wires = BipolarWires(tech, self._tiles(), self.nets, self.level)

    @property
    def level(self) -> int:
        """Index of the conductor of the bars."""
        return 1

    def _frames(self) -> Mapping[str, Frame]:
        return frames_of(self.flavour, self.device.width, self.tech.grid)

    def _layer_of(self, name: str) -> str | None:
        return layer_of_frame(self.flavour, name)

    def _tiles(self) -> Tiles:
        """Return the grid of units: its pitch keeps wells, markers and collector rings apart."""
        well = self.tech.dim("well_space", self.flavour.diffusion_of)
        ring = self.flavour.dimensions.get("collector_space", self.tech.dim("active_space", self.flavour.diffusion_of))
        emitter = (self.device.width, self.device.length)
        pitch = []
        for axis in (0, 1):

            def size(name: str, axis: int = axis) -> int:
                return emitter[axis] + 2 * self.frames[name][1][axis]

            wanted = [size("collector") + ring, size("well") + well]
            for marker in self.flavour.markers:
                space = self.flavour.dimensions.get(f"{marker}_space", 0)
                wanted.append(size(marker) + space if space else 0)
            pitch.append(max(wanted))
        across = BipolarWires.least_pitch(self.tech, len(self.nets))
        step = 2 * self.tech.grid
        x, y = (
            side + -(-(least - side) // step) * step
            for side, least in zip(emitter, (max(pitch[0], across), pitch[1]), strict=True)
        )
        return Tiles(emitter, (x, y), len(self.rows[0]), len(self.rows), self.frames)

    # ---- silicon

    def _draw_silicon(self) -> None:
        for column, row in self.wires.tiles.places():
            emitter = self.wires.tiles.emitter(column, row)
            self._draw_unit(emitter)
        self._draw_grid()

    def _draw_unit(self, emitter: Rectangle) -> None:
        """Draw one emitter with its base, well and collector ring, and the contacts of all."""
        sketch, tech, tiles = self.sketch, self.tech, self.wires.tiles
        first, contact = tech.conductors[0], tech.contact
        sketch.box("active", emitter)
        sketch.box(first.layer, emitter)
        for name in self.frames:
            layer = self._layer_of(name)
            if layer is not None and not tiles.is_shared(name):
                for area in tiles.frame(emitter, name):
                    sketch.box(layer, area)
        for area in tiles.frame(emitter, "base"):
            sketch.box(first.layer, area)
        inset = max(
            tech.dim("active_contact_enclosure"), tech.dim("active_contact_enclosure_end"), contact.enclose_above_end
        )
        space = contact.spacing()
        room = emitter.enlarged(-inset, -inset)
        for square in spread_squares(room, contact.size, space, tech.grid, _MOST_CONTACTS):
            sketch.box(contact.layer, square)
        for name in ("base", "collector"):
            self._draw_ring_contacts(emitter, name)

    def _draw_ring_contacts(self, emitter: Rectangle, name: str) -> None:
        """Draw one row of contacts along each side of the ring ``name``, several on a side that is wide."""
        size, grid = self.tech.contact.size, self.tech.grid
        enclosure = self.tech.dim("tap_contact_enclosure")
        least = size + 2 * enclosure
        inner, outer = (emitter.enlarged(*distance) for distance in self.frames[name])
        for low, high, across in (
            (outer.bottom, inner.bottom, False),
            (inner.top, outer.top, False),
            (outer.left, inner.left, True),
            (inner.right, outer.right, True),
        ):
            if high - low < least:  # such as the lower and upper sides of the base ring in sg13g2
                continue
            rows, space = [low + (high - low - size) // (2 * grid) * grid], self.tech.contact.space
            if high - low > _WIDE_SIDE * least:
                space = max(space, self.tech.contact.array_space)
                rows = list(centred_array(low + enclosure, high - enclosure, size, space, grid))
            ends = (inner.bottom, inner.top) if across else (inner.left, inner.right)
            for at, start in product(rows, centred_array(*ends, size, space, grid)):
                x, y = (at, start) if across else (start, at)
                self.sketch.box(self.tech.contact.layer, Rectangle(x, y, x + size, y + size))

    def _draw_grid(self) -> None:
        """Draw what the units share: implant and metal of the collectors, and the markers around them."""
        tiles = self.wires.tiles
        for name in self.frames:
            layer = self._layer_of(name)
            if layer is not None and tiles.is_shared(name):
                for area in tiles.shared(name):
                    self.sketch.box(layer, area)
        for area in tiles.shared("collector"):
            self.sketch.box(self.tech.conductors[0].layer, area)

    # ---- the whole

    def module(self, layout: kdb.Layout) -> Module:
        """Draw the array into a new cell of ``layout`` and return its module."""
        self._draw_silicon()
        units: list[tuple[str, str, Rectangle]] = []
        numbers: dict[str, int] = {}
        for column, row in self.wires.tiles.places():
            index = self.rows[row][column]
            owner = None if index is None else self.spec.devices[index]
            emitter = self.wires.tiles.emitter(column, row)
            device = "" if owner is None else owner.id
            numbers[device] = numbers.get(device, 0) + 1
            units.append((device, f"{device or 'dummy'}_{numbers[device]}", emitter))
            self._connect(column, row, owner)
        rails = self.wires.rails(self.sketch, self.device.ring)
        self._draw_texts(rails, units)
        return self._described(layout, rails, units)

    def _connect(self, column: int, row: int, owner: Bipolar | None) -> None:
        """Draw the bars of one unit, all on the net of the ring where it is a dummy."""
        nets = (owner.base, owner.emitter) if owner else (self.device.ring,) * 2
        self.wires.connect(self.sketch, column, row, *nets)

    def _draw_texts(self, rails: Sequence[tuple[str, Rectangle]], units: Sequence[tuple[str, str, Rectangle]]) -> None:
        rail, layer = self.wires.bar, self.tech.role("device_text")
        for net, area in rails:
            if rail.pin_layer:
                self.sketch.box(rail.pin_layer, area)
            if self.spec.labels:
                self.sketch.text(rail.label_layer, net, (area.left + area.right) // 2, (area.bottom + area.top) // 2)
        for device, _, emitter in units if layer else ():
            if device:
                x, y = (emitter.left + emitter.right) // 2, (emitter.bottom + emitter.top) // 2
                self.sketch.text(str(layer), device, x, y)

    def _described(
        self, layout: kdb.Layout, rails: Sequence[tuple[str, Rectangle]], units: Sequence[tuple[str, str, Rectangle]]
    ) -> Module:
        cell = fresh_cell(layout, self.spec.name)
        moved = self.sketch.write_at_origin(cell, self.tech)
        ordered = sorted(rails, key=lambda pin: (pin[1].bottom, pin[1].left, pin[0]))
        real = [(device, unit, moved(emitter)) for device, unit, emitter in units if device]
        return Module(
            name=self.spec.name,
            cell=cell,
            layout=layout,
            pins=tuple(Pin(net, self.wires.bar.name, moved(area)) for net, area in ordered),
            devices=tuple(device.id for device in self.spec.devices),
            instances=tuple(
                Instance(unit, device, (box.left + box.right) / 2, (box.bottom + box.top) / 2, "R0")
                for device, unit, box in real
            ),
            symmetry_axis_x=None,
            bbox=moved(self.sketch.extent()),
            gates=tuple(Gate(device, unit, moved(emitter)) for device, unit, emitter in units),
            warnings=tuple(text for device in self.spec.devices for text in device.warnings),
            keepouts=tuple(Keepout(name, moved(area)) for name, area in self.wires.keepouts())
            if len(units) > 1
            else (),
            dummies=self._dummies(len(units) - len(real)),
        )

    def _dummies(self, count: int) -> tuple[DrawnDummy, ...]:
        like, net = self.device, self.device.ring
        dummy = DrawnDummy(self.flavour.name, net, net, net, net, like.width, like.length, count)
        return (dummy,) if count else ()


Rows = tuple[tuple[int | None, ...], ...]
"""Rows from the bottom up, each from left to right: the index of the transistor, None for a dummy."""
FILLER = "."


def rows_of(pattern: Sequence[str], counts: Sequence[int]) -> Rows:
    """Return the arrangement that ``pattern`` states, a common centroid where it is empty.

    Raises:
        GeometryError: If the pattern is not one of ``counts`` units per transistor.
    """
    return drawn_as(pattern, counts) if pattern else common_centroid(counts)


def common_centroid(counts: Sequence[int]) -> Rows:
    """Return the arrangement of ``counts`` units with the smallest centroid error; see ``array_pattern``.

    Raises:
        GeometryError: If a count is not positive, or there are too many units.
    """
    rows = array_pattern({str(index): count for index, count in enumerate(counts)}, 1, 1).rows
    return tuple(tuple(int(device) if device else None for device in row) for row in rows)


def drawn_as(pattern: Sequence[str], counts: Sequence[int]) -> Rows:
    """Return the arrangement that ``pattern`` states: rows from the top down, ``A`` for the first transistor.

    Args:
        pattern: Rows of equal length; ``.`` is a dummy.
        counts: Units of each transistor.

    Raises:
        GeometryError: If the rows differ in length, or the letters are not those of the transistors as often as they
            have units.
    """
    letters = [chr(ord("A") + index) for index in range(len(counts))]
    wanted = dict(zip(letters, counts, strict=True))
    text = "".join(pattern)
    found = {letter: text.count(letter) for letter in sorted(set(text) - {FILLER})}
    if not pattern or len({len(row) for row in pattern}) != 1 or found != wanted:
        listed = ", ".join(f"{count} x {letter}" for letter, count in wanted.items())
        raise GeometryError(
            f"the pattern must be rows of equal length with {listed} and '{FILLER}' for dummies, got {list(pattern)}",
            details={"param_name": "pattern", "units": wanted},
        )
    index = {letter: number for number, letter in enumerate(letters)}
    return tuple(tuple(index.get(letter) for letter in row) for row in reversed(list(pattern)))


def as_text(rows: Rows) -> list[str]:
    """Return the rows from the top down as ``drawn_as`` reads them."""
    return ["".join(FILLER if one is None else chr(ord("A") + one) for one in row) for row in reversed(rows)]


def with_dummies(rows: Rows, rings: int) -> Rows:
    """Return the rows with ``rings`` rings of dummies around them."""
    for _ in range(rings):
        empty = (None,) * (len(rows[0]) + 2)
        rows = (empty, *((None, *row, None) for row in rows), empty)
    return rows


def bipolar(
    tech: Technology, device_id: str, flavour: str, size: PassiveSize, nets: Mapping[str, str] | None = None
) -> Bipolar:
    """Return the transistor ``device_id``.

    Args:
        tech: Process.
        device_id: Instance name.
        flavour: ``pnp``, ``npn``, a device of the technology, or its model.
        size: Sides of one emitter, in either order, and the number of units. Of an NPN with several emitters in one
            unit the width is that of all.
        nets: Terminal (c, b, e; s of an NPN; g1, w, g2, bn of a varactor) to net; one left out is called
            ``<device_id>_<terminal>``.

    Raises:
        GeometryError: If the emitter has another size than the process has, or there are too many units.
        TechnologyError: If the process has no such device.
    """
    kind = tech.passive(flavour).kind
    spec = spec_of_kind(tech, flavour, kind.name if kind.in_cells else KIND)
    width, length, m, warnings = rectangle_on_grid(tech, device_id, spec, _upright(spec, size, tech.dbu_um))
    given = nets or {}
    names = (*spec.kind.terminals, spec.kind.bulk or spec.kind.optional[0])
    collector, base, emitter, substrate = (given.get(name) or f"{device_id}_{name.upper()}" for name in names)
    own = "" if spec.kind.substrate else substrate
    return Bipolar(device_id, spec, width, length, m, collector, base, emitter, own, warnings)


def draw_bipolars(layout: kdb.Layout, tech: Technology, spec: BipolarSpec) -> Module:
    """Draw the transistors into the cell ``spec.name`` and return its module; units are ``<id>_1``, ``<id>_2``, ...

    Raises:
        GeometryError: If they do not fit together, or the pattern is not one of their units.
        TechnologyError: If the technology lacks a dimension.
    """
    _check(spec)
    rows = rows_of(spec.pattern, [device.m for device in spec.devices])
    drawing = ArrayDrawing if spec.devices[0].spec.cell is None else CellDrawing
    return drawing(tech, spec, with_dummies(rows, spec.dummies)).module(layout)


def _upright(spec: PassiveSpec, size: PassiveSize, dbu_um: float) -> PassiveSize:
    """Return the size with its sides in the order in which the process has them."""
    metre = dbu_um * 1e-6
    tall = spec.max_w is not None and max(size.w_m, size.l_m) > (spec.max_w + 0.5) * metre
    return replace(size, w_m=min(size.w_m, size.l_m), l_m=max(size.w_m, size.l_m)) if tall else size


def _check(spec: BipolarSpec) -> None:
    first, faults = spec.devices[0], []
    names = [device.id for device in spec.devices]
    if len(set(names)) != len(names):
        faults.append(f"transistors named twice: {', '.join(sorted({n for n in names if names.count(n) > 1}))}")
    for device in spec.devices[1:]:
        if (device.spec, device.width, device.length) != (first.spec, first.width, first.length):
            faults.append(f"{device.id} has another flavour or emitter than {first.id}; draw it by itself")
        if device.ring != first.ring:
            what = "rings" if first.substrate else "collectors"
            faults.append(
                f"the {what} of {first.id} and {device.id} are on {first.ring} and {device.ring}, "
                "but both are the substrate; connect them to one net"
            )
    total = sum(device.m for device in spec.devices)
    if total > MAX_UNITS:
        faults.append(f"there are {total} units, at most {MAX_UNITS} are drawn")
    if faults:
        raise GeometryError(sentences(faults))


_INSET = 10
"""How far the core of a unit lies inside its marker, so that the ring, which touches that, begins beyond. [dbu]"""


class CellDrawing(ArrayDrawing):
    """Draws an array of units that are the foundry's cell."""

    @property
    def cell(self) -> DeviceCell:
        """The foundry's cell."""
        if self.flavour.cell is None:
            raise TechnologyError(f"device {self.flavour.name} states no cell")
        return self.flavour.cell

    @property
    def count(self) -> int:
        """Emitters of one unit."""
        return self.device.width // self.cell.size[0]

    @property
    def level(self) -> int:
        """Index of the conductor of the bars: above those on which collector and base are reached."""
        names = [each.name for each in self.tech.conductors]
        return 1 + max(
            names.index(self.tech.resolve(self.cell.pins[terminal][0])) for terminal in self.flavour.kind.terminals[:2]
        )

    def _frames(self) -> Mapping[str, Frame]:
        """Return the ring as ``collector`` and what touches it, as distances from the core of a unit."""
        tap = self.tech.resolve("tap")
        frames = {}
        for layer, (inner, outer) in self.cell.ring.items():
            name = "collector" if self.tech.resolve(layer) == tap else layer
            frames[name] = ((inner + _INSET,) * 2, (outer + _INSET,) * 2)
        return frames

    def _layer_of(self, name: str) -> str | None:
        return "tap" if name == "collector" else name

    def _tiles(self) -> Tiles:
        """Return the grid of units: rings stay apart, and every column has room for a strap of each net."""
        (left, bottom), (right, top) = self.cell.outline(self.count, self.device.length)
        size = (right - left - 2 * _INSET, top - bottom - 2 * _INSET)
        ring = self.frames["collector"][1]
        step = 2 * self.tech.grid
        least = BipolarWires.least_pitch(self.tech, len(self.nets), self.level)
        apart = self._well_pitch(size)
        pitch = [
            side + -(-(max(2 * grow + self.tech.dim("active_space"), apart, least - side)) // step) * step
            for side, grow, least in zip(size, ring, (least, 0), strict=True)
        ]
        return Tiles(size, (pitch[0], pitch[1]), len(self.rows[0]), len(self.rows), self.frames)

    def _well_pitch(self, size: tuple[int, int]) -> int:
        """Return the gap between two cores that keeps the deep wells of their cells apart; 0 where they have none."""
        deep, layer = self.tech.deep_well, self.tech.role("deep_nwell")
        if deep is None or layer not in self.cell.whole:
            return 0
        box = self.cell.stretched(self.cell.whole[str(layer)][0], self.count, self.device.length)
        ((left, _), _, (right, _), _) = box
        return right - left - size[0] + deep.dim("space")

    def _origin(self, core: Rectangle) -> tuple[int, int]:
        """Return the centre of the first emitter of a unit. [dbu]"""
        (left, bottom), _ = self.cell.outline(self.count, self.device.length)
        return core.left - _INSET - left, core.bottom - _INSET - bottom

    def _draw_unit(self, emitter: Rectangle) -> None:
        """Draw the foundry's cell with its core at ``emitter``, and its ring with contacts."""
        x0, y0 = self._origin(emitter)
        for layer, polygons in self.cell.shapes(self.count, self.device.length).items():
            for points in polygons:
                self.sketch.polygon(layer, tuple((x + x0, y + y0) for x, y in points))
        role = self.tech.role("device_text")
        for text, (x, y) in self.cell.texts.items() if role else ():
            ((x, y),) = self.cell.stretched(((x, y),), 1, self.device.length)  # noqa: PLW2901
            self.sketch.text(str(role), text, x + x0, y + y0)
        tiles = self.wires.tiles
        for name in self.frames:
            if not tiles.is_shared(name):
                for area in tiles.frame(emitter, name):
                    self.sketch.box(str(self._layer_of(name)), area)
        self._draw_ring_contacts(emitter, "collector")

    def _draw_grid(self) -> None:
        """Draw what the units share, with the metal of the rings up to the conductor below the bars."""
        super()._draw_grid()
        for index in range(1, self.level):
            for area in self.wires.tiles.shared("collector"):
                self.sketch.box(self.tech.conductors[index].layer, area)
            for area in self.wires.tiles.collector_bars():
                self.wires.cuts(self.sketch, self.tech.cuts[index - 1], area, area)

    def _connect(self, column: int, row: int, owner: Bipolar | None) -> None:
        """Draw a bar of the second conductor over each terminal, joined to the straps of their nets."""
        ring = self.device.ring
        own = (owner.collector, owner.base, owner.emitter) if owner else (ring,) * 3
        nets = dict(zip(self.flavour.kind.terminals, own, strict=True))
        x0, y0 = self._origin(self.wires.tiles.emitter(column, row))
        for terminal, (conductor, box) in self.cell.pins.items():
            points = self.cell.stretched(box, self.count, self.device.length)
            (left, bottom), (right, top) = min(points), max(points)
            area = Rectangle(left + x0, bottom + y0, right + x0, top + y0)
            below = self.tech.resolve(conductor) != self.wires.bar.name
            self.wires.bar_over(self.sketch, column, nets[terminal], area, below=below)
