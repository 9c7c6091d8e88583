"""Plates of several capacitors in rows and columns, each with its own bottom plate and with equal wires.

::

      p  n    p  n    p  n         T: plate below the top conductor, B: cuts on its bottom plate
    +-----+ +-----+ +-----+        Each unit leads both plates down beside its bottom plate, by vias, to a stub.
    | T B | | T B | | T B |        All stubs cross all tracks of the row and are as long as each other; two cuts join
    +-|-|-+ +-|-|-+ +-|-|-+        each to the track of its net.
    ==x=|=====|=x=====x=|===  C1_P   | |
    ====x=====x===========x=  C1_N   | |   risers join the tracks of all rows, and others above the
      stubs                         risers  uppermost row, so that wires reach the array from both sides

Where the bottom plates are too low for stubs below them, the stubs are on the top conductor, and vias lead down to the
tracks where both cross.

The units of matched capacitors lie about a common centroid (``array_pattern``). Dummies around them are equal to them
and have both plates on one net.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from layoutkit.draw.array_pattern import ArrayPattern, array_pattern
from layoutkit.draw.capacitor import PlateRules, ViaColumn, draw_two_cuts, two_cuts_width, wide_space
from layoutkit.draw.module import DrawnDummy, Gate, Instance, Keepout, Module, Pin
from layoutkit.draw.sketch import Sketch
from layoutkit.errors import GeometryError, TechnologyError
from layoutkit.layout.cells import fresh_cell
from layoutkit.rectangle import Rectangle

if TYPE_CHECKING:
    from collections.abc import Sequence

    import klayout.db as kdb

    from layoutkit.draw.passive import Capacitor
    from layoutkit.technology import PassiveSpec, Technology

_TRACK, _STUB = 1, 2  # conductors of tracks, and of stubs and risers below bottom plates, by their index in the stack


@dataclass(frozen=True)
class PlateUnit:
    """One plate of an array: its device, empty for a dummy, and the nets of its top and bottom plate."""

    device: str
    p: str
    n: str


@dataclass(frozen=True)
class ArraySpec:
    """Plates to be drawn in rows and columns.

    Attributes:
        name: Name of the cell.
        flavour: What all of them are.
        width: Width of each plate of a device. [dbu]
        length: Length of each plate of a device. [dbu]
        rows: The units, bottom row first.
        devices: Ids of the devices.
        labels: Whether pins carry net names.
        warnings: What was rounded, in words.
        inner_nets: Nets that lead out of no pin: those between plates in series.
    """

    name: str
    flavour: PassiveSpec
    width: int
    length: int
    rows: tuple[tuple[PlateUnit, ...], ...]
    devices: tuple[str, ...]
    labels: bool = True
    warnings: tuple[str, ...] = ()
    inner_nets: frozenset[str] = frozenset()


def matched_capacitors(
    tech: Technology, name: str, capacitors: Sequence[Capacitor], *, dummy_net: str = "", labels: bool = True
) -> tuple[ArraySpec, ArrayPattern]:
    """Return the array of capacitors whose plates are equal, with the pattern of their units.

    Args:
        tech: Process.
        name: Name of the cell.
        capacitors: Of one flavour and plate; their plates in parallel give the ratio.
        dummy_net: Net of both plates of each dummy; empty for no dummies around the array. Places that the units leave
            free within it are dummies in any case, on this net or on that of the first bottom plate.
        labels: Whether pins carry net names.

    Raises:
        GeometryError: If the plates differ, or are in series.
    """
    first = capacitors[0]
    odd = [c.id for c in capacitors if (c.spec.name, c.width, c.length, c.series) != (*_plate_of(first), 1)]
    if odd:
        raise GeometryError(
            f"matched capacitors are made of equal plates; {', '.join(odd)} differ from {first.id} or are plates in "
            "series. Give all the same flavour, w and l, and the ratio by m",
            details={"devices": odd},
        )
    by_id = {each.id: each for each in capacitors}
    alone = ArraySpec(name, first.spec, first.width, first.length, ((PlateUnit("", first.n, first.n),),), ())
    pitch_x, pitch_y = _Array(tech, alone).pitches(len({net for each in capacitors for net in (each.p, each.n)}) + 1)
    pattern = array_pattern({each.id: each.m for each in capacitors}, pitch_x, pitch_y)
    spare = PlateUnit("", dummy_net or first.n, dummy_net or first.n)
    rows = [
        [PlateUnit(by_id[device].id, by_id[device].p, by_id[device].n) if device else spare for device in row]
        for row in pattern.rows
    ]
    if dummy_net:
        rows = [[spare] * len(rows[0]), *rows, [spare] * len(rows[0])]
        rows = [[spare, *row, spare] for row in rows]
    warnings = [warning for each in capacitors for warning in each.warnings]
    if pattern.error:
        counts = ":".join(str(each.m) for each in capacitors)
        warnings.append(
            f"no array of {counts} plates has one centroid: those of {', '.join(by_id)} are "
            f"{tech.to_um(pattern.error):g} um apart. Use twice as many plates (m) of half the area"
        )
    return (
        ArraySpec(
            name,
            first.spec,
            first.width,
            first.length,
            tuple(tuple(row) for row in rows),
            tuple(by_id),
            labels=labels,
            warnings=tuple(warnings),
        ),
        pattern,
    )


def _plate_of(capacitor: Capacitor) -> tuple[str, int, int]:
    return capacitor.spec.name, capacitor.width, capacitor.length


def series_plates(name: str, capacitor: Capacitor, *, labels: bool = True) -> ArraySpec:
    """Return the array of a capacitor whose plates are in series: one column for each, ``m`` plates in parallel."""
    nets = [capacitor.p, *(f"{capacitor.id}#{i}" for i in range(1, capacitor.series)), capacitor.n]
    row = tuple(PlateUnit(capacitor.id, top, bottom) for top, bottom in pairwise(nets))
    return ArraySpec(
        name,
        capacitor.spec,
        capacitor.width,
        capacitor.length,
        (row,) * capacitor.m,
        (capacitor.id,),
        labels=labels,
        warnings=capacitor.warnings,
        inner_nets=frozenset(nets[1:-1]),
    )


def draw_capacitor_array(layout: kdb.Layout, tech: Technology, spec: ArraySpec) -> Module:
    """Draw the array and return its module; the plates of a device are called ``<id>_1``, ... from the lower left.

    Raises:
        TechnologyError: If the process lacks a dimension, or its plates lie on the lowest conductors.
    """
    return _Array(tech, spec).module(layout)


class _Place:
    """Where everything of one unit lies whose plate has its lower left corner at (0, 0)."""

    def __init__(self, rules: PlateRules, column: ViaColumn, width: int, length: int) -> None:
        tech, plate = rules.tech, Rectangle(0, 0, width, length)
        self.plate, self.over = plate, rules.over_plate(plate)
        self.strap, self.bottom = rules.bottom_strap(plate), rules.bottom_plate(plate)
        self.over_strap = rules.over(self.strap)
        middle = tech.snap((self.over_strap.left + self.over_strap.right) / 2)
        self.top = max(self.bottom.top, self.over.top, self.over_strap.top)
        self.x_n = max(middle, middle + tech.snap_up(column.half_width(column.top) - self._half(self.over_strap)))
        self.x_p = min(tech.snap((self.over.left + self.over.right) / 2), self.x_n - column.pitch())

    def _half(self, area: Rectangle) -> int:
        return (area.right - area.left) // 2

    def sides(self, column: ViaColumn, level: int) -> tuple[int, int]:
        """Return the left and right end of what is drawn on a conductor."""
        half = column.half_width(level) if level >= column.lower else 0
        left, right = self.x_p - half, self.x_n + half
        if level == column.top:
            return min(left, self.over.left), max(right, self.over_strap.right)
        if level == column.top - 1:
            return min(left, self.bottom.left), max(right, self.bottom.right)
        return left, right


class _Array:
    def __init__(self, tech: Technology, spec: ArraySpec) -> None:
        self.tech = tech
        self.spec = spec
        self.rules = PlateRules(tech, spec.flavour)
        if spec.flavour.fed:
            text = f"each {spec.flavour.name} has a ring of its own, so that no array holds several"
            raise TechnologyError(f"{text}; draw each capacitor by itself")
        below = self.rules.level() - 1 > _STUB  # whether there is a conductor for stubs below the bottom plates
        self.stubs = tech.conductors[_STUB] if below else self.rules.top
        self.column = ViaColumn(tech, self.rules.top.name, _STUB if below else _TRACK)
        self.sketch = Sketch()
        self.nets = list(dict.fromkeys(net for row in spec.rows for unit in row for net in (unit.p, unit.n)))
        self.stub, self.track = two_cuts_width(tech, _TRACK)
        if not below:
            self.stub, self.track = 2 * self.column.half(), max(self.track, 2 * self.column.reach())
        even = 2 * tech.grid
        self.stub, self.track = (-(-side // even) * even for side in (self.stub, self.track))
        self.track_pitch = tech.snap_up(self.track + wide_space(tech.conductors[_TRACK]))
        self.place = _Place(self.rules, self.column, spec.width, spec.length)
        # From the lower edge of the plates of a row: the middle of its vias, and the upper edge of its tracks.
        self.reach = self.column.reach() if below else 0
        self.vias = tech.snap(self.place.bottom.bottom - self.rules.clearance() - self.reach) - tech.grid
        self.tracks_top = self.vias - (self.column.half_height(_STUB) if below else 0)
        pitch_x, pitch_y = self.pitches(len(self.nets))
        self.lefts = [i * pitch_x for i in range(len(spec.rows[0]))]
        self.lows = [i * pitch_y for i in range(len(spec.rows))]

    # ---- where units lie

    def pitches(self, tracks: int) -> tuple[int, int]:
        """Return how far apart the columns and the rows are of units that ``tracks`` nets connect. [dbu]"""
        place, column, needed = self.place, self.column, []
        for level in self._levels():
            space = wide_space(self.tech.conductors[level])
            if level == column.top - 1:
                space = max(space, self.rules.clearance())
            left, right = place.sides(column, level)
            needed.append(right + space - left)
        needed.append(place.x_n - place.x_p + self.stub + wide_space(self.stubs))
        needed.append(place.plate.right + 2 * self.rules.dim("marker_enclosure") + self.rules.plate_space)
        rows = place.top + self.rules.clearance() + tracks * self.track_pitch - self.tracks_top
        return self.tech.snap_up(max(needed)), self.tech.snap_up(rows)

    def _levels(self) -> range:
        """Return the conductors on which units lie, from that of the stubs or the bottom plates to the top one."""
        return range(min(_STUB, self.column.top - 1), self.column.top + 1)

    # ---- drawing

    def module(self, layout: kdb.Layout) -> Module:
        plates: list[tuple[PlateUnit, Rectangle]] = []
        for row, units in enumerate(self.spec.rows):
            for column, unit in enumerate(units):
                plates.append((unit, self._draw_unit(unit, row, column)))
        right = self._right()
        risers = [right + i * self._riser_pitch() for i in range(len(self.nets) if len(self.spec.rows) > 1 else 0)]
        end = risers[-1] + self.stub // 2 if risers else right - self._riser_pitch() + self.stub // 2
        left = min(0, self.place.x_p - self.stub // 2)
        pins = []
        levels = range(len(self.spec.rows) + bool(risers))  # the last tracks are above all units
        for row in levels:
            for index, net in enumerate(self.nets):
                track = Rectangle(left, (low := self._track_low(row, index)), end, low + self.track)
                self.sketch.box(self.tech.conductors[_TRACK].layer, track)
                if row in (0, len(self.spec.rows)) and net not in self.spec.inner_nets:
                    pins.append((net, track))
        for index, x in enumerate(risers):
            low, high = self._track_low(0, len(self.nets) - 1), self._track_low(levels[-1], 0) + self.track
            riser = Rectangle(x - self.stub // 2, low, x + self.stub // 2, high)
            self.sketch.box(self.stubs.layer, riser)
            for row in levels:
                self._join(x, self._track_low(row, index) + self.track // 2)
        self._draw_texts(plates, pins)
        return self._described(layout, plates, pins)

    def _join(self, x: int, y: int) -> None:
        """Draw the vias between a stub or riser and the track that it crosses at (x, y)."""
        if self.stubs is self.rules.top:
            self.column.draw(self.sketch, x, y)
        else:
            draw_two_cuts(self.sketch, self.tech, _TRACK, x, y)

    def _track_low(self, row: int, index: int) -> int:
        """Return the lower edge of a track of a row, or of those above the last row."""
        if row == len(self.lows):
            return self._top() + (len(self.nets) - 1 - index) * self.track_pitch
        return self.lows[row] + self.tracks_top - index * self.track_pitch - self.track

    def _top(self) -> int:
        """Return how low tracks above all units may lie."""
        return self.lows[-1] + self.tech.snap_up(self.place.top + self.rules.clearance())

    def _riser_pitch(self) -> int:
        return self.tech.snap_up(self.stub + wide_space(self.stubs))

    def _right(self) -> int:
        """Return the middle of the first riser."""
        edge = self.lefts[-1] + max(self.place.sides(self.column, level)[1] for level in self._levels())
        return self.tech.snap_up(edge + self.rules.clearance() + self.stub // 2)

    def _draw_unit(self, unit: PlateUnit, row: int, column: int) -> Rectangle:
        sketch, rules = self.sketch, self.rules
        x, y = self.lefts[column], self.lows[row]
        place = self.place

        def moved(area: Rectangle) -> Rectangle:
            return Rectangle(area.left + x, area.bottom + y, area.right + x, area.top + y)

        rules.draw_plate(sketch, moved(place.plate))
        sketch.box(rules.bottom.layer, moved(place.bottom))
        for cut in rules.cuts_in(moved(place.strap)):
            sketch.box(rules.cut_layer, cut)
        half, low = self.column.half_width(self.column.top), y + self.vias
        last = self._track_low(row, len(self.nets) - 1)
        for net, centre, over in ((unit.p, place.x_p, place.over), (unit.n, place.x_n, place.over_strap)):
            sketch.box(rules.top.layer, moved(over))
            if self.stubs is not rules.top:
                self.column.draw(sketch, x + centre, low)
            sketch.box(rules.top.layer, Rectangle(x + centre - half, low, x + centre + half, y + over.top))
            stub = Rectangle(x + centre - self.stub // 2, last, x + centre + self.stub // 2, low)
            sketch.box(self.stubs.layer, stub)
            self._join(x + centre, self._track_low(row, self.nets.index(net)) + self.track // 2)
        return moved(place.plate)

    def _draw_texts(self, plates: Sequence[tuple[PlateUnit, Rectangle]], pins: Sequence[tuple[str, Rectangle]]) -> None:
        rail, layer = self.tech.conductors[_TRACK], self.tech.role("device_text")
        for net, area in pins:
            if rail.pin_layer:
                self.sketch.box(rail.pin_layer, area)
            if self.spec.labels:
                self.sketch.text(rail.label_layer, net, (area.left + area.right) // 2, (area.bottom + area.top) // 2)
        for unit, plate in plates if layer else ():
            if unit.device:
                x, y = (plate.left + plate.right) // 2, (plate.bottom + plate.top) // 2
                self.sketch.text(str(layer), unit.device, x, y)

    def _described(
        self, layout: kdb.Layout, plates: Sequence[tuple[PlateUnit, Rectangle]], pins: Sequence[tuple[str, Rectangle]]
    ) -> Module:
        spec, extent = self.spec, self.sketch.extent()
        cell = fresh_cell(layout, spec.name)
        moved = self.sketch.write_at_origin(cell, self.tech)
        count = dict.fromkeys(("", *spec.devices), 0)
        instances, gates = [], []
        for unit, plate in plates:
            count[unit.device] += 1
            name = f"{unit.device or 'dummy'}_{count[unit.device]}"
            box = moved(plate)
            gates.append(Gate(unit.device, name, box))
            if unit.device:
                centre = ((box.left + box.right) / 2, (box.bottom + box.top) / 2)
                instances.append(Instance(name, unit.device, *centre, "R0"))
        rail = self.tech.conductors[_TRACK]
        ordered = sorted(pins, key=lambda pin: (pin[1].bottom, pin[1].left, pin[0]))
        top = min(self._top(), extent.top)  # beyond it may be the pins of a neighbour
        inside = moved(Rectangle(extent.left, self.vias + self.reach, extent.right, top))
        return Module(
            name=spec.name,
            cell=cell,
            layout=layout,
            pins=tuple(Pin(net, rail.name, moved(area)) for net, area in ordered),
            devices=spec.devices,
            instances=tuple(instances),
            symmetry_axis_x=None,
            bbox=moved(extent),
            gates=tuple(gates),
            warnings=spec.warnings,
            keepouts=self._keepouts(inside),
            dummies=self._dummies(plates),
        )

    def _dummies(self, plates: Sequence[tuple[PlateUnit, Rectangle]]) -> tuple[DrawnDummy, ...]:
        """Return the dummies, those of one net together."""
        spec, found = self.spec, Counter(unit.p for unit, _ in plates if not unit.device)
        return tuple(
            DrawnDummy(spec.flavour.name, net, net, net, net, spec.width, spec.length, count)
            for net, count in sorted(found.items())
        )

    def _keepouts(self, inside: kdb.Box) -> tuple[Keepout, ...]:
        """Return where no wire may go: over and under all plates, so that each has the same metal around it."""
        tech, level = self.tech, self.rules.level()
        beyond = self.rules.beside_bottom(min(inside.width(), inside.height()))
        found = [Keepout(conductor.name, inside) for conductor in tech.conductors[: level + 1]]
        found += [Keepout(cut.name, inside) for cut in tech.cuts[:level]]
        above = 0 if self.rules.bottom is tech.conductors[_TRACK] else beyond  # the tracks keep wires away
        return (*found, Keepout(self.rules.bottom.name, inside.enlarged(beyond, above), by_rule=True))
