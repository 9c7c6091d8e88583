"""How much drain current the metal on sources and drains costs, measured from the layout.

::

      rail  ===#===        a column of contacts under one source or drain, the metal on it up to the rail: first
               |           conductor, cuts, strap, and the crossing with the rail (#)
          [x]--+
          [x]--+           every contact feeds its share of the current; the mesh of sheet and cut resistances gives
          [x]--+           the mean voltage lost between the rail and the contacts

Contacts and diffusion are not counted: the models of transistors contain them.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import klayout.db as kdb

from layoutkit.extract.connectivity import DrawnLayers, labelled_gates
from layoutkit.extract.metal_mesh import ladder, mean_resistance, mesh_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from layoutkit.rectangle import Rect
    from layoutkit.technology import Technology

SOURCE_SLOPE = 2.0
"""Relative loss of Idsat per source voltage over the supply: alpha / (1 - VT / VDD) of the alpha-power law (Sakurai,
Newton, 1990) with alpha = 1.5 and VT = VDD / 4. IHP's measurements of sg13g2's nmos give 2.0, a simulation of gf180's
nfet_03v3 1.7."""
DRAIN_SLOPE = 0.2
"""The same per drain voltage, for an output conductance of 0.2 Idsat / VDD."""


class StrapColumn(NamedTuple):
    """One source or drain: resistance from its contacts to its rail [ohm], and the share of its height with a strap."""

    ohm: float | None
    coverage: float


@dataclass(frozen=True)
class FingerLoss:
    """The loss of one finger.

    Attributes:
        device: Its device.
        box: Its channel. [dbu]
        left: The column on its left.
        right: The column on its right.
        loss: Lost part of Idsat at VGS = VDS = supply, for the worse of the two directions of the current; None if the
            technology states no saturation current or no resistance.
    """

    device: str
    box: kdb.Box
    left: StrapColumn
    right: StrapColumn
    loss: float | None


def strap_losses(cell: kdb.Cell, technology: Technology) -> list[FingerLoss]:
    """Return the loss of each labelled finger whose current runs along x, sorted by device and place."""
    return _Straps(cell, technology).losses()


def straps_data(losses: Iterable[FingerLoss]) -> list[dict[str, Any]]:
    """Return the worst finger of each device as JSON data, sorted by device."""
    found: dict[str, list[FingerLoss]] = defaultdict(list)
    for finger in losses:
        found[finger.device].append(finger)
    data = []
    for device, fingers in sorted(found.items()):
        columns = [column for finger in fingers for column in (finger.left, finger.right)]
        ohms = [column.ohm for column in columns]
        lost = [finger.loss for finger in fingers]
        data.append(
            {
                "device": device,
                "strap_ohm": None if None in ohms else round(max(ohm or 0.0 for ohm in ohms), 4),
                "coverage": round(min(column.coverage for column in columns), 4),
                "idsat_loss": None if None in lost else round(max(loss or 0.0 for loss in lost), 6),
            }
        )
    return data


class _Shapes:
    """Merged shapes of a layer, found by place."""

    def __init__(self, region: kdb.Region) -> None:
        self.shapes = kdb.Shapes()
        self.shapes.insert(region)

    def touching(self, box: kdb.Box) -> list[kdb.Polygon]:
        """Return the shapes that touch a box."""
        return [shape.polygon for shape in self.shapes.each_touching(box) if shape.polygon.touches(box)]

    def interacting(self, others: kdb.Region) -> kdb.Region:
        """Return the shapes that touch one of ``others``."""
        near = kdb.Region([shape.polygon for shape in self.shapes.each_touching(others.bbox())])
        near.merged_semantics = False  # they are merged
        return near.interacting(others)


class _Straps:
    def __init__(self, cell: kdb.Cell, technology: Technology) -> None:
        self.technology = technology
        layers = DrawnLayers(cell, technology).electrical()
        metal = [each.name for each in technology.conductors] + [each.name for each in technology.cuts]
        self.layers = {name: _Shapes(layers.conducting[name].merged()) for name in ("contact", *metal)}
        self.sides = _Shapes((layers.conducting["n_sd"] + layers.conducting["p_sd"]).merged())
        self.flavours = {name: _Shapes(region.merged()) for name, region in layers.gates.items()}
        self.fingers = [(device, box) for device, boxes in labelled_gates(cell, technology).items() for box in boxes]
        self.channels = _Shapes(DrawnLayers(cell, technology).channels().merged())
        self.known: dict[str, tuple[float | None, float]] = {}
        self.alike: dict[Any, float | None] = {}  # resistance by what a column consists of, wherever it lies

    def losses(self) -> list[FingerLoss]:
        found = []
        for device, box in sorted(self.fingers, key=lambda each: (each[0], each[1].left, each[1].bottom)):
            sides = [self._side(box, direction) for direction in (-1, 1)]
            if any(piece is None for piece in sides):
                continue  # the current runs along y, or a side is no source or drain
            left, right = (self._column(box, piece) for piece in sides if piece is not None)
            found.append(FingerLoss(device, box, left, right, self._loss(box, left, right)))
        return found

    def _side(self, box: kdb.Box, direction: int) -> kdb.Polygon | None:
        """Return the diffusion that touches a channel on its left or right."""
        x = box.left if direction < 0 else box.right
        probe = kdb.Box(min(x, x + direction), box.bottom, max(x, x + direction), box.top)
        inside = kdb.Region(probe)
        return next((each for each in self.sides.touching(probe) if not (inside & kdb.Region(each)).is_empty()), None)

    def _column(self, finger: kdb.Box, piece: kdb.Polygon) -> StrapColumn:
        """Return the column of one source or drain, with the current of all channels that share it."""
        key = str(piece)
        if key not in self.known:
            self.known[key] = self._measured(piece)
        ohm, covered = self.known[key]
        shared = sum(1 for channel in self.channels.touching(piece.bbox()) if piece.touches(channel.bbox()))
        return StrapColumn(None if ohm is None else ohm * max(1, shared), min(1.0, covered / finger.height()))

    def _measured(self, piece: kdb.Polygon) -> tuple[float | None, float]:
        """Return the resistance from the contacts of a source or drain to its rail, and the height of its strap."""
        near = kdb.Region([*self.layers["contact"].touching(piece.bbox())])
        boxes = [polygon.bbox() for polygon in (near & kdb.Region(piece)).each()]
        marks = sorted((box.left, box.bottom, box.right, box.top) for box in boxes)
        window = self._window(piece.bbox())
        regions, rail = self._levels(kdb.Region([kdb.Polygon(kdb.Box(*mark)) for mark in marks]), window)
        if rail is None:
            return None, 0.0
        strap = regions[self.technology.conductors[max(rail - 1, 0)].name]
        return self._ohm_of_alike(regions, rail, marks, window), _height(strap & kdb.Region(piece.bbox()))

    def _window(self, piece: kdb.Box) -> tuple[int, int]:
        """Return the left and right end of a source or drain with the gates beside it: beyond them is the rail."""
        reach = max((each.bbox().width() for each in self.channels.touching(piece)), default=0) + 1
        return piece.left - reach, piece.right + reach

    def _levels(self, contacts: kdb.Region, window: tuple[int, int]) -> tuple[dict[str, kdb.Region], int | None]:
        """Return the metal and cuts of a column up to its rail, and the rail's level; None where it reaches none.

        The rail is the first metal that reaches beyond the neighbouring gates, or the highest there is.
        """
        technology = self.technology
        regions: dict[str, kdb.Region] = {}
        below = contacts
        for level, conductor in enumerate(technology.conductors):
            metal = self.layers[conductor.name].interacting(below)
            if metal.is_empty():
                return regions, None
            box = metal.bbox()
            beyond = box.left < window[0] or box.right > window[1]
            if beyond and not level:
                metal &= kdb.Region(kdb.Box(window[0], box.bottom, window[1], box.top))
            regions[conductor.name] = metal
            if beyond or level == len(technology.cuts):
                return regions, level
            cut = technology.cuts[level].name
            cuts = self.layers[cut].interacting(metal) & metal
            if cuts.is_empty():
                return regions, level or None
            regions[cut] = below = cuts.merged()
        return regions, None

    def _ohm_of_alike(
        self, regions: Mapping[str, kdb.Region], rail: int, contacts: Sequence[Rect], window: tuple[int, int]
    ) -> float | None:
        """Return the resistance of a column, which is that of another one if the two differ only in their place."""
        used = _without_rail(self.technology, regions, rail)
        x, y = contacts[0][0], contacts[0][1]
        metal = tuple((name, tuple(sorted(region.moved(-x, -y).each()))) for name, region in used.items())
        marks = tuple((left - x, bottom - y, right - x, top - y) for left, bottom, right, top in contacts)
        key = metal, rail, marks, (window[0] - x, window[1] - x)
        if key not in self.alike:
            self.alike[key] = self._ohm(used, rail, contacts, window)
        return self.alike[key]

    def _ohm(
        self, regions: Mapping[str, kdb.Region], rail: int, contacts: Sequence[Rect], window: tuple[int, int]
    ) -> float | None:
        """Return the mean voltage of the contacts per current, where all of them feed the same current. [ohm]"""
        technology = self.technology
        used = (*technology.conductors[: max(rail, 1)], *technology.cuts[:rail])
        if any((getattr(each, "sheet_ohm", None) or getattr(each, "resistance_ohm", None)) is None for each in used):
            return None
        mesh = mesh_of(technology, regions, contacts)
        top = technology.conductors[rail].name

        def on_rail(name: str, rect: Rect) -> bool:
            """Return whether a cell is the rail's: metal on the first conductor leads to it at the window's ends."""
            return name == top and (rail > 0 or rect[0] <= window[0] or rect[2] >= window[1])

        grounded = {number for number, cell in enumerate(mesh.cells) if on_rail(*cell)}
        first = technology.conductors[0].name
        found = (mesh.at(first, (box[0] + box[2]) / 2, (box[1] + box[3]) / 2) for box in contacts)
        feeds = [cell for cell in found if cell is not None]
        return mean_resistance(ladder(mesh, technology), grounded, feeds)

    def _loss(self, box: kdb.Box, left: StrapColumn, right: StrapColumn) -> float | None:
        names = [name for name, shapes in self.flavours.items() if shapes.touching(box)]
        spec = self.technology.devices[names[0]] if names else None
        if spec is None or not spec.saturation_ma_um or not spec.supply_v or left.ohm is None or right.ohm is None:
            return None
        current = spec.saturation_ma_um * 1e-3 * box.height() * self.technology.dbu_um
        worse = max(
            SOURCE_SLOPE * source + DRAIN_SLOPE * drain
            for source, drain in ((left.ohm, right.ohm), (right.ohm, left.ohm))
        )
        lost = worse * current / spec.supply_v
        return lost / (1 + lost)


def _without_rail(technology: Technology, regions: Mapping[str, kdb.Region], rail: int) -> dict[str, kdb.Region]:
    """Return the metal of a column with what its mesh needs of a rail above the first conductor: that on its cuts."""
    used = dict(regions)
    if rail:
        top = technology.conductors[rail].name
        used[top] = (used[top] & used[technology.cuts[rail - 1].name]).merged()
    return used


def _height(region: kdb.Region) -> float:
    """Return the length of the projection of a region on y. [dbu]"""
    spans = sorted((polygon.bbox().bottom, polygon.bbox().top) for polygon in region.merged().each())
    total, reached = 0, None
    for low, high in spans:
        start = low if reached is None else max(low, reached)
        total += max(0, high - start)
        reached = high if reached is None else max(high, reached)
    return float(total)
