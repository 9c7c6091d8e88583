"""An array of vertical bipolar transistors, as ``bipolar`` describes: its units, its wires and its module.

Where the units of matched bipolar transistors stand: rows and columns with one common centroid.

::

    B B B        1:8, the single unit in the middle. A unit cannot be cut, so that an exact common centroid needs
    B A B        places that are opposite about the middle, the middle itself, or three places whose centre is the
    B B B        middle. Places that remain are dummies.

No exact arrangement exists where two transistors have one unit each: only one can stand in the middle.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from layoutkit.draw.array_pattern import array_pattern
from layoutkit.draw.bipolar_wires import BipolarWires, Tiles
from layoutkit.draw.module import DrawnDummy, Gate, Instance, Keepout, Module, Pin
from layoutkit.draw.ring import centred_array
from layoutkit.draw.sketch import Area, Sketch, spread_squares
from layoutkit.errors import GeometryError
from layoutkit.layout.cells import fresh_cell
from layoutkit.technology.bipolar_frames import frames_of, layer_of_frame

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.technology import PassiveSpec, Technology
    from layoutkit.technology.bipolar_frames import Frame


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

    def _draw_unit(self, emitter: Area) -> None:
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
        space = max(contact.space, contact.array_space)
        room = emitter.enlarged(-inset, -inset)
        for square in spread_squares(room, contact.size, space, tech.grid, _MOST_CONTACTS):
            sketch.box(contact.layer, square)
        for name in ("base", "collector"):
            self._draw_ring_contacts(emitter, name)

    def _draw_ring_contacts(self, emitter: Area, name: str) -> None:
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
                self.sketch.box(self.tech.contact.layer, Area(x, y, x + size, y + size))

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
        units: list[tuple[str, str, Area]] = []
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

    def _draw_texts(self, rails: Sequence[tuple[str, Area]], units: Sequence[tuple[str, str, Area]]) -> None:
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
        self, layout: kdb.Layout, rails: Sequence[tuple[str, Area]], units: Sequence[tuple[str, str, Area]]
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
