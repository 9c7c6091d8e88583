r"""Capacitance of the nets of a layout: areas, fringes of edges, and facing sidewalls (decision 0018).

    cross-section         met2  =========            d: distance from an edge of met1 to the next one
                                 | area \ fringe
    met1   ======== <--d--> =============    =====   area: to the nearest conductor above or below
            | area \ sidewall      | area     |      fringe: of an edge, to what lies within d beside it, nearest first
    substrate  ------------------------------------

Only the nearest conductor below or above a place is seen from there; what lies behind it is shielded. The field of an
edge reaches as far as the next edge on its layer; ``technology.parasitics.shielding`` says how much of it that is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from layoutkit.extract.resistor_devices import union
from layoutkit.parasitics.net_shapes import GROUND, WELL, Capacitances, NetShapes, PieceGroup, divided, level_names
from layoutkit.parasitics.rectangles import (
    Rectangles,
    cut_across,
    facing,
    located,
    overlaps,
    rectangles_of,
    turned_back,
    vertical_edges,
)
from layoutkit.technology.parasitic_data import DIFFUSION, POLY, THICK_DIFFUSION, FringeShielding, Overlap

if TYPE_CHECKING:
    from collections.abc import Mapping

    import klayout.db as kdb
    from numpy.typing import NDArray

    from layoutkit.parasitics.rectangles import Edges, Integers
    from layoutkit.technology import Technology

    Numbers = NDArray[np.floating]

SUBSTRATE = "substrate"
_PIECE_UM = 5.0  # no longer is a piece whose capacitance is at one place
_MERGED_UM = 4.0  # pieces between the same two nets and layers in squares of this size are one
_CELL_UM = 1.5
_AF = 1e-3  # fF


@dataclass(frozen=True)
class _Level:
    """One level: what it shields, what has capacitances of its own, and how it looks from above."""

    name: str
    all: Rectangles
    own: Rectangles
    top: Rectangles
    regions: Mapping[int, kdb.Region]
    area_af: float | None
    fringe_af: float | None

    @property
    def is_wire(self) -> bool:
        return self.name not in {WELL, DIFFUSION, THICK_DIFFUSION}


def capacitances(shapes: NetShapes, technology: Technology, depth: int | None = None) -> Capacitances:
    """Return the capacitances between the nets of a layout, and to the substrate.

    Gates of transistors and what lies between the plates of capacitors are left out: the models of the devices have
    them. So are the junctions of diffusion. What a net inside a resistor has counts to the nets at its ends, see
    ``inner_nets``. What the technology states no coefficient for is in ``unchecked``.

    Args:
        shapes: Shapes by level and net.
        technology: States the coefficients.
        depth: How many levels up and down a level sees; None for all. With two, totals are at most 5 % smaller, at
            half the cost: enough to compare nets.
    """
    return _Extractor(shapes, technology, depth).run()


@dataclass(frozen=True)
class _Zones:
    """Strips beside edges, as far as the next edge.

    Attributes:
        boxes: (N, 4) the strips. [dbu]
        directions: (N,) where each looks, as a number of ``DIRECTIONS``.
        nets: (N,) nets of the edges.
        open: (N,) whether nothing is beside the edge within reach.
    """

    boxes: Integers
    directions: Integers
    nets: Integers
    open: NDArray[np.bool_]

    @property
    def lengths(self) -> Integers:
        """Length of each edge. [dbu]"""
        return _along(self.boxes, self.directions)

    @property
    def depths(self) -> Integers:
        """How far each strip reaches from its edge. [dbu]"""
        return _along(self.boxes, (self.directions + 2) % 4)

    @property
    def edges(self) -> Integers:
        """(N, 4) the part of each strip, 1 dbu deep, at its edge. [dbu]"""
        boxes: Integers = self.boxes.copy()
        for direction, (moved, kept, step) in enumerate(((2, 0, 1), (0, 2, -1), (3, 1, 1), (1, 3, -1))):
            its = self.directions == direction
            boxes[its, moved] = boxes[its, kept] + step
        return boxes


class _Extractor:
    """Collects pieces of capacitance, level by level."""

    def __init__(self, shapes: NetShapes, technology: Technology, depth: int | None) -> None:
        self.technology = technology
        self.depth = depth or len(level_names(technology))
        self.data = technology.parasitics
        self.dbu = technology.dbu_um
        self.cell = round(_CELL_UM / self.dbu)
        self.unchecked: set[str] = set()
        self.found: list[PieceGroup] = []
        self.shapes = shapes
        self.levels = [self._level(name) for name in level_names(technology) if shapes.levels.get(name)]
        self.views = self._views()
        if shapes.floating:
            self.unchecked.add(f"metal on no net is counted as grounded: on {', '.join(shapes.floating)}")

    def run(self) -> Capacitances:
        self._wells()
        wires = [level for level in self.levels if level.is_wire]
        for level in wires:
            shielding = self.data.shielding
            if level.area_af is None or level.fringe_af is None or shielding is None:
                self.unchecked.add(f"capacitance of {level.name}: technology {self.technology.name} states none")
                continue
            self._areas(level)
            self._fringes(level, self._zones(level, round(shielding.reach_um / self.dbu)), shielding)
        merged = round(_MERGED_UM / self.dbu)
        return Capacitances(divided(self.found, self.shapes.inner), merged, tuple(sorted(self.unchecked)))

    # ---- what there is

    def _level(self, name: str) -> _Level:
        regions = self.shapes.levels[name]
        everything, slanted = rectangles_of(regions)
        if slanted:
            self.unchecked.add(f"edges of slanted {name} are counted as steps, at most 1.41 times as long")
            numbers = sorted(regions)
            regions = {net: everything.of(net).region() for net in numbers}
        own, top = everything, everything
        if name == POLY:
            own = rectangles_of({net: region - self.shapes.devices for net, region in regions.items()})[0]
        plates = self.shapes.plates.get(name)
        if plates:
            covered = union(plates.values())
            top = rectangles_of({net: region - covered for net, region in regions.items()})[0]
            top = top.joined(rectangles_of(plates)[0])
            self.unchecked.add(f"plates of capacitors are seen from above at the height of {name}")
        source = self.technology.silicon.get(POLY) if name == POLY else None
        if name in {conductor.name for conductor in self.technology.conductors}:
            conductor = self.technology.conductor(name)
            return _Level(name, everything, own, top, regions, conductor.area_af_um2, conductor.fringe_af_um)
        area, fringe = (None, None) if source is None else (source.area_af_um2, source.fringe_af_um)
        return _Level(name, everything, own, top, regions, area, fringe)

    def _views(self) -> dict[tuple[str, str], Rectangles]:
        """Return what is seen of a level (second name) from another one (first), by both names.

        What a level covers is hidden from all levels behind it. Only wires look; poly looks at wells only.
        """
        views: dict[tuple[str, str], Rectangles] = {}
        covers = [union(level.regions.values()) for level in self.levels]
        for number, level in enumerate(self.levels):
            seen = covers[number].dup() if level.top is level.all else level.top.region()
            seers = slice(number + 1, number + 1 + self.depth)
            for viewer, cover in zip(self.levels[seers], covers[seers], strict=True):
                if viewer.is_wire and (viewer.name != POLY or level.name == WELL):
                    views[viewer.name, level.name] = _visible(level.top, seen, self.cell)
                seen -= cover
            seen = covers[number].dup()
            seers = slice(max(0, number - self.depth), number)
            for viewer, cover in zip(self.levels[seers][::-1], covers[seers][::-1], strict=True):
                if not viewer.is_wire:
                    break
                views[viewer.name, level.name] = _visible(level.all, seen, self.cell)
                seen -= cover
        return views

    def _below(self, level: _Level) -> list[_Level]:
        number = self.levels.index(level)
        return self.levels[max(0, number - self.depth) : number]

    def _above(self, level: _Level) -> list[_Level]:
        number = self.levels.index(level)
        return self.levels[number + 1 : number + 1 + self.depth]

    def _pair(self, upper: _Level, lower: _Level) -> Overlap | None:
        found = self.data.pairs.get((upper.name, lower.name))
        if found is None and upper.name != POLY:
            self.unchecked.add(
                f"capacitance between {upper.name} and {lower.name}: technology {self.technology.name} states none"
            )
        return found

    # ---- areas

    def _wells(self) -> None:
        """Add the junctions of n wells and deep n wells with the substrate and with isolated p wells in them."""
        coefficient = self.data.well_af_um2
        if coefficient is None:
            if self.shapes.n_wells:
                self.unchecked.add(f"junctions of wells: technology {self.technology.name} states no capacitance")
            return
        n_wells, p_wells = rectangles_of(self.shapes.n_wells)[0], rectangles_of(self.shapes.p_wells)[0]
        ground = np.full(len(n_wells), GROUND)
        self._add(n_wells.nets, WELL, ground, SUBSTRATE, n_wells.boxes, n_wells.areas * self.dbu**2 * coefficient)
        mine, other, common = overlaps(p_wells.boxes, n_wells.boxes, self.cell)
        area = (common[:, 2] - common[:, 0]) * (common[:, 3] - common[:, 1]) * self.dbu**2
        self._add(p_wells.nets[mine], WELL, n_wells.nets[other], WELL, common, area * coefficient)

    def _areas(self, level: _Level) -> None:
        own = level.own.cut(round(_PIECE_UM / self.dbu))
        rest = own.areas.astype(float)
        for lower in self._below(level):
            if level.name == POLY and lower.name != WELL:
                continue
            seen = self.views[level.name, lower.name]
            mine, other, common = overlaps(own.boxes, seen.boxes, self.cell)
            if not len(mine):
                continue
            area = ((common[:, 2] - common[:, 0]) * (common[:, 3] - common[:, 1])).astype(float)
            if lower.name == WELL:
                coefficient = level.area_af
            else:
                pair = self._pair(level, lower)
                coefficient = None if pair is None else pair.area_af_um2
            np.subtract.at(rest, mine, area)
            if coefficient is not None:
                self._add(
                    own.nets[mine], level.name, seen.nets[other], lower.name, common, area * self.dbu**2 * coefficient
                )
        ground = np.full(len(own), GROUND)
        self._add(own.nets, level.name, ground, SUBSTRATE, own.boxes, rest * self.dbu**2 * (level.area_af or 0.0))

    # ---- edges

    def _zones(self, level: _Level, reach: int) -> _Zones:
        """Return the strips beside the edges of a level; add the coupling of facing edges."""
        found: list[tuple[Integers, Integers, Integers, NDArray[np.bool_]]] = []
        for axis in (0, 2):
            edges = vertical_edges(level.regions, axis, self.shapes.devices if level.name == POLY else None)
            if not len(edges.place):
                continue
            mine, other, low, high = facing(edges, reach)
            self._sidewalls(level, axis, edges, (mine, other, low, high))
            alone = other < 0
            depth = np.where(alone, reach, np.abs(edges.place[other] - edges.place[mine]))
            for direction, looks in ((axis, edges.rightwards[mine]), (axis + 1, ~edges.rightwards[mine])):
                kept = looks & edges.counted[mine] & (depth > 0)
                place = edges.place[mine][kept] * (1 if direction == axis else -1)
                boxes = np.stack([place, low[kept], place + depth[kept], high[kept]], axis=1)
                boxes, owner = cut_across(boxes, round(_PIECE_UM / self.dbu))
                directions = np.full(len(boxes), direction)
                nets, open_ = edges.nets[mine][kept][owner], alone[kept][owner]
                found.append((turned_back(boxes, direction), directions, nets, open_))
        if not found:
            none = np.zeros(0, np.int64)
            return _Zones(np.zeros((0, 4), np.int64), none, none, np.zeros(0, np.bool_))
        parts = list(zip(*found, strict=True))
        strips, looking, owners, alone = (np.concatenate(each) for each in parts)
        return _Zones(strips, looking, owners, alone)

    def _sidewalls(self, level: _Level, axis: int, edges: Edges, pieces: tuple[Integers, ...]) -> None:
        mine, other, low, high = pieces
        profile = self.data.profiles.get(level.name)
        kept = (other >= 0) & edges.rightwards[mine]
        kept &= edges.counted[mine] & edges.counted[other] & (edges.nets[mine] != edges.nets[other])
        if not kept.any():
            return
        if profile is None or profile.sidewall_af is None:
            self.unchecked.add(f"sidewalls of {level.name}: technology {self.technology.name} states no coupling")
            return
        mine, other, low, high = mine[kept], other[kept], low[kept], high[kept]
        boxes, owner = cut_across(
            np.stack([edges.place[mine], low, edges.place[other], high], axis=1), round(_PIECE_UM / self.dbu)
        )
        distance = (boxes[:, 2] - boxes[:, 0]) * self.dbu
        # Closer than the rules allow, the sum may be no distance any more.
        apart = np.maximum(distance + profile.sidewall_offset_um, distance / 4)
        value = profile.sidewall_af * (boxes[:, 3] - boxes[:, 1]) * self.dbu / np.maximum(apart, self.dbu)
        self._add(
            edges.nets[mine][owner],
            level.name,
            edges.nets[other][owner],
            level.name,
            turned_back(boxes, axis),
            value,
        )

    def _fringes(self, level: _Level, zones: _Zones, shielding: FringeShielding) -> None:
        length, depth = zones.lengths * self.dbu, zones.depths * self.dbu
        area, fringe = level.area_af or 0.0, level.fringe_af or 0.0
        rest = length * np.where(zones.open, 1.0, field_share(depth, area, shielding))
        for lower in self._below(level):
            if lower.name != WELL and level.name == POLY:
                continue
            pair = None if lower.name == WELL else self._pair(level, lower)
            part = self._parts(zones, self.views[level.name, lower.name])
            if part is None:
                continue
            np.subtract.at(rest, part.zone, part.length * part.share(shielding, area))
            if lower.name == WELL:
                value = fringe * part.length * part.share(shielding, area)
            elif pair is not None:
                value = pair.fringe_upper_af_um * part.length * part.share(shielding, pair.area_af_um2)
            else:
                continue
            self._add(zones.nets[part.zone], level.name, part.nets, lower.name, part.places, value)
        for upper in self._above(level):
            pair = self._pair(upper, level)
            part = None if pair is None else self._parts(zones, self.views[level.name, upper.name])
            if pair is not None and part is not None:
                value = pair.fringe_lower_af_um * part.length * part.share(shielding, pair.area_af_um2)
                self._add(zones.nets[part.zone], level.name, part.nets, upper.name, part.places, value)
        ground = np.full(len(length), GROUND)
        self._add(zones.nets, level.name, ground, SUBSTRATE, zones.edges, rest * fringe)

    def _parts(self, zones: _Zones, seen: Rectangles) -> _Parts | None:
        zone, other, common = overlaps(zones.boxes, seen.boxes, self.cell)
        if not len(zone):
            return None
        whole, direction = zones.boxes[zone], zones.directions[zone]
        offsets = np.abs(whole - common)  # of each side from that of the strip
        near = offsets[np.arange(len(zone)), np.array([0, 2, 1, 3])[direction]]
        across = _along(common, (direction + 2) % 4)
        return _Parts(
            zone=zone,
            nets=seen.nets[other],
            near=near * self.dbu,
            far=(near + across) * self.dbu,
            length=_along(common, direction) * self.dbu,
            places=common,
        )

    # ---- what is found

    def _add(
        self, nets: Integers, layer: str, others: Integers, other_layer: str, places: Integers, value: Numbers
    ) -> None:
        """Add the pieces of capacitance between two nets; ``value`` in aF."""
        kept = (nets != others) & (nets != GROUND) | (nets == GROUND) & (others != GROUND)
        turned_over = kept & (nets == GROUND)
        centre = (places[:, :2] + places[:, 2:]) // 2
        plain = kept & ~turned_over
        if plain.any():
            self.found.append(
                PieceGroup(nets[plain], layer, others[plain], other_layer, centre[plain], value[plain] * _AF)
            )
        if turned_over.any():
            kept = turned_over
            self.found.append(PieceGroup(others[kept], other_layer, nets[kept], layer, centre[kept], value[kept] * _AF))


@dataclass(frozen=True)
class _Parts:
    """The parts of conductors that lie in the strips beside edges."""

    zone: Integers
    nets: Integers
    near: Numbers
    far: Numbers
    length: Numbers
    places: Integers

    def share(self, shielding: FringeShielding, area_af_um2: float) -> Numbers:
        """Return the part of each edge's fringe field that ends on them, 0 to 1."""
        return field_share(self.far, area_af_um2, shielding) - field_share(self.near, area_af_um2, shielding)


def field_share(distance_um: Numbers, area_af_um2: float, shielding: FringeShielding) -> Numbers:
    """Return the part of an edge's fringe field that lies within a distance of it, 0 to 1.

    Magic's ExtCouple.c has this formula; the field of a thin edge over a plane has the same form.

    Args:
        distance_um: Distances from the edge. [um]
        area_af_um2: Capacitance per area between the edge's conductor and the one that the field ends on. [aF/um2]
        shielding: States how steep it is.
    """
    return np.asarray(2 / np.pi * np.arctan(shielding.steepness_um_af * area_af_um2 * distance_um))


def _along(boxes: Integers, directions: Integers) -> Integers:
    """Return the size of boxes along edges that look in a direction, a number of ``DIRECTIONS``. [dbu]"""
    return np.where(directions < 2, boxes[:, 3] - boxes[:, 1], boxes[:, 2] - boxes[:, 0])


def _visible(rectangles: Rectangles, seen: kdb.Region, cell: int) -> Rectangles:
    """Return the part of rectangles that is in ``seen``, which none of them exceeds."""
    if not len(rectangles) or seen.area() == int(rectangles.areas.sum()):
        return rectangles
    left = rectangles_of({GROUND: seen})[0]
    return Rectangles(left.boxes, located(left.boxes, rectangles, cell))
