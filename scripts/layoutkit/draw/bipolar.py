"""Vertical bipolar transistors: the foundry's cell, repeated in an array.

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
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutkit.draw.bipolar_array import ArrayDrawing, Bipolar, BipolarSpec, rows_of, with_dummies
from layoutkit.draw.bipolar_wires import BipolarWires, Tiles
from layoutkit.draw.passive import rectangle_on_grid, spec_of_kind
from layoutkit.draw.sketch import Area
from layoutkit.errors import GeometryError, TechnologyError, sentences
from layoutkit.technology.finger_widths import MAX_UNITS

if TYPE_CHECKING:
    from collections.abc import Mapping

    import klayout.db as kdb

    from layoutkit.draw.module import Module
    from layoutkit.technology import PassiveSpec, Technology
    from layoutkit.technology.bipolar_frames import Frame
    from layoutkit.technology.device_cell import DeviceCell
    from layoutkit.technology.passive_sizes import PassiveSize


__all__ = ["KIND", "NPN", "Bipolar", "BipolarSpec", "bipolar", "draw_bipolars"]

KIND, NPN = "pnp", "npn"


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
    from dataclasses import replace

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

    def _origin(self, core: Area) -> tuple[int, int]:
        """Return the centre of the first emitter of a unit. [dbu]"""
        (left, bottom), _ = self.cell.outline(self.count, self.device.length)
        return core.left - _INSET - left, core.bottom - _INSET - bottom

    def _draw_unit(self, emitter: Area) -> None:
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
            area = Area(left + x0, bottom + y0, right + x0, top + y0)
            below = self.tech.resolve(conductor) != self.wires.bar.name
            self.wires.bar_over(self.sketch, column, nets[terminal], area, below=below)
