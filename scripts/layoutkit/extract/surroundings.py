"""Measure the distances around channels, and check whether the shapes at matched channels are mirror symmetric.

The distances from each channel to the ends of its diffusion, to its neighbours and to the nearest well::

          sa      L      gap     L       sb
       |<----->|<--->|<------->|<--->|<------>|
       .-------.-----.---------.-----.--------.
       |       | M1  |         | M2  |        |   one diffusion
       '-------'-----'---------'-----'--------'

``sa`` is the distance from a channel to the end of its diffusion on the left (below, where the current runs upwards),
``sb`` that on the right (above). A diffusion that other channels cross, such as those of dummies, does not end there.
An end may have steps in its outline. Then ``1 / (sa + L/2)`` is averaged over the steps, weighted by the part of the
channel's width that lies beside each, as models of stress do (BSIM4 manual, stress effect model).

A tap that abuts a diffusion is part of it, since no oxide separates them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import klayout.db as kdb

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from layoutkit.technology import Technology

WELL_RANGE_UM = 10.0
"""Distance within which wells are searched; a well edge has no effect beyond a few micrometres. [um]"""

_UPWARDS = kdb.Trans(kdb.Trans.R270)
"""Rotates a channel whose current flows upwards, so that it flows to the right."""
SHOWN = 8
"""Largest number of differences that are listed, the largest first."""
JOINING = "cuts between metal that is symmetric, over no channel"
"""What is said of cuts that differ, but do not count."""


@dataclass(frozen=True)
class ChannelSurroundings:
    """Distances from one channel to the ends of its diffusion, to its neighbours and to the nearest well.

    Attributes:
        box: The channel. [dbu]
        vertical: Whether its current runs along y.
        sa_um: Distance to the end of the diffusion on the left (below). [um]
        sb_um: Distance to the end of the diffusion on the right (above). [um]
        diffusion: Number of its diffusion; channels on the same diffusion have the same number.
        gap_before_um: Distance to the next channel of the diffusion on the left (below); None at the end. [um]
        gap_after_um: The same on the right (above). [um]
        well_um: Distance to the nearest edge of an n well; None if there is none within ``WELL_RANGE_UM``. [um]
    """

    box: kdb.Box
    vertical: bool
    sa_um: float
    sb_um: float
    diffusion: int
    gap_before_um: float | None
    gap_after_um: float | None
    well_um: float | None

    def stress(self, length_um: float) -> float:
        """Return ``1 / (sa + L/2) + 1 / (sb + L/2)`` for a channel of this length. [1/um]"""
        return 1 / (self.sa_um + length_um / 2) + 1 / (self.sb_um + length_um / 2)


def surroundings(
    channels: Sequence[kdb.Polygon], diffusion: kdb.Region, nwell: kdb.Region, dbu_um: float
) -> dict[kdb.Box, ChannelSurroundings]:
    """Return the distances of each channel, by its box.

    The cost grows with the channels and the corners of the diffusions that they cross, times a logarithm.

    Args:
        channels: Crossings of poly and diffusion.
        diffusion: All diffusion, taps included, gates not cut out.
        nwell: All n wells.
        dbu_um: Unit of the shapes. [um]
    """
    boxes = [channel.bbox() for channel in channels]
    across = _Diffusions(diffusion, boxes, kdb.Trans())
    wells = kdb.Shapes()
    for edge in nwell.merged().edges().each():
        wells.insert(edge)
    sideways = {box: ends for box, ends in ((box, across.ends(box)) for box in boxes) if min(ends) > 0}
    rest = [box for box in boxes if box not in sideways]
    along = _Diffusions(diffusion, rest, _UPWARDS) if rest else across
    upwards = {box: along.ends(box) for box in rest}
    measured = {}
    for rows, ends in ((across, sideways), (along, upwards)):
        gaps = rows.gaps(list(ends))
        for box, (left, right) in ends.items():
            before, after = gaps[box]
            measured[box] = ChannelSurroundings(
                box=box,
                vertical=ends is upwards,
                sa_um=round(left * dbu_um, 6),
                sb_um=round(right * dbu_um, 6),
                diffusion=rows.island[box],
                gap_before_um=None if before is None else round(before * dbu_um, 6),
                gap_after_um=None if after is None else round(after * dbu_um, 6),
                well_um=_distance_um(box, wells, dbu_um),
            )
    return measured


class _Diffusions:
    """The outlines of the diffusions that channels lie on, in coordinates turned by ``turn``.

    Attributes:
        island: Number of the diffusion of each channel.
    """

    def __init__(self, diffusion: kdb.Region, boxes: Sequence[kdb.Box], turn: kdb.Trans) -> None:
        self.turn = turn
        islands = sorted(
            diffusion.merged().interacting(kdb.Region([kdb.Polygon(box) for box in boxes])).each(), key=str
        )
        self.islands = [island.transformed(turn) for island in islands]
        shapes, self.sides, self.owner = kdb.Shapes(), kdb.Shapes(), dict[kdb.Edge, int]()
        numbers: dict[kdb.Polygon, int] = {}
        for number, island in enumerate(self.islands):
            shapes.insert(island)
            numbers[island] = number
            for edge in island.each_edge():
                if edge.dy():
                    self.sides.insert(edge)
                    self.owner[edge] = number
        self.island = {}
        for box in boxes:
            centre = box.transformed(turn).center()
            found = (shape.polygon for shape in shapes.each_touching(kdb.Box(centre, centre)))
            self.island[box] = next(numbers[polygon] for polygon in found if polygon.inside(centre))

    def ends(self, box: kdb.Box) -> tuple[float, float]:
        """Return the distances from a channel to the ends of its diffusion, 0 where it reaches an end. [dbu]"""
        turned, own = box.transformed(self.turn), self.island[box]
        around = self.islands[own].bbox()
        left, right = kdb.Box(around.left, turned.bottom, turned.left, turned.top), turned.dup()
        right.left, right.right = turned.right, around.right
        before = [(height, turned.left - x) for height, x in self._steps(left, own, max)]
        after = [(height, x - turned.right) for height, x in self._steps(right, own, min)]
        return _mean_distance(before, turned.width()), _mean_distance(after, turned.width())

    def _steps(self, band: kdb.Box, own: int, nearest: Callable[[list[float]], float]) -> Iterator[tuple[int, float]]:
        """Yield where the diffusion ends beside a channel: the height of each step of its outline, and its x. [dbu]"""
        sides = [shape.edge for shape in self.sides.each_touching(band)]
        sides = [edge for edge in sides if self.owner[edge] == own]
        heights = {y for edge in sides for y in (edge.y1, edge.y2) if band.bottom < y < band.top}
        for low, high in pairwise(sorted({band.bottom, band.top, *heights})):
            middle = (low + high) / 2
            crossed = [_x_at(edge, middle) for edge in sides if min(edge.y1, edge.y2) < middle < max(edge.y1, edge.y2)]
            yield high - low, nearest(crossed)

    def gaps(self, boxes: Sequence[kdb.Box]) -> dict[kdb.Box, tuple[int | None, int | None]]:
        """Return the distances from each channel to those beside it on the same diffusion. [dbu]"""
        found: dict[kdb.Box, tuple[int | None, int | None]] = {}
        for row in self._rows(boxes):
            row.sort(key=lambda entry: (entry[0].left, entry[0].right))
            between = [after[0].left - before[0].right for before, after in pairwise(row)]
            for (_, box), before, after in zip(row, [None, *between], [*between, None], strict=True):
                found[box] = (before, after)
        return found

    def _rows(self, boxes: Sequence[kdb.Box]) -> list[list[tuple[kdb.Box, kdb.Box]]]:
        """Return the channels, turned and as they are, by diffusion and by rows that do not overlap in y."""
        rows: list[list[tuple[kdb.Box, kdb.Box]]] = []
        reached = (-1, 0)  # diffusion and top of the last row
        turned = sorted((self.island[box], box.transformed(self.turn).bottom, str(box), box) for box in boxes)
        for number, bottom, _, box in turned:
            if number != reached[0] or bottom >= reached[1]:
                rows.append([])
                reached = (number, bottom)
            own = box.transformed(self.turn)
            rows[-1].append((own, box))
            reached = (number, max(reached[1], own.top))
        return rows


def _mean_distance(steps: Sequence[tuple[int, float]], length: int) -> float:
    """Return the distance with the mean of ``1 / (distance + L/2)`` over steps of (height, distance). [dbu]"""
    half = length / 2
    return sum(height for height, _ in steps) / sum(height / (distance + half) for height, distance in steps) - half


def _x_at(edge: kdb.Edge, y: float) -> float:
    return float(edge.x1 + (edge.x2 - edge.x1) * (y - edge.y1) / (edge.y2 - edge.y1))


def _distance_um(box: kdb.Box, edges: kdb.Shapes, dbu_um: float) -> float | None:
    """Return the distance to the nearest of the edges within ``WELL_RANGE_UM``, None where there is none. [um]"""
    reach = round(WELL_RANGE_UM / dbu_um)
    nearest = min(
        (_between(box, shape.edge.bbox()) for shape in edges.each_touching(box.enlarged(reach, reach))),
        default=None,
    )
    return None if nearest is None or nearest > reach else round(nearest * dbu_um, 6)


def _between(one: kdb.Box, other: kdb.Box) -> float:
    """Return the distance of two boxes; slanted edges of wells count as their boxes. [dbu]"""
    across = max(other.left - one.right, one.left - other.right, 0)
    along = max(other.bottom - one.top, one.bottom - other.top, 0)
    return float((across**2 + along**2) ** 0.5)


class ModelDistances(NamedTuple):
    """Distances of a device with several fingers as a BSIM4 model reads them.

    The model takes a device of ``nf`` fingers for one row of them on one diffusion: finger ``i`` is
    ``sa + i * (sd + L)`` from one end and ``sb + i * (sd + L)`` from the other.

    Attributes:
        units: Number of equal devices in parallel, ``m`` of the card.
        sa_um: ``sa`` of each. [um]
        sb_um: ``sb`` of each. [um]
        sd_um: ``sd`` of each. [um]
    """

    units: int
    sa_um: float
    sb_um: float
    sd_um: float


def equivalent_distances(places: Sequence[ChannelSurroundings], length_um: float) -> tuple[float, float]:
    """Return the ``sa`` and ``sb`` of one channel under the mean stress of several: ``1/(sa + L/2)`` is their mean."""
    half = length_um / 2
    means = [sum(1 / (getattr(each, name) + half) for each in places) / len(places) for name in ("sa_um", "sb_um")]
    return round(1 / means[0] - half, 6), round(1 / means[1] - half, 6)


def model_distances(places: Sequence[ChannelSurroundings], length_um: float) -> ModelDistances:
    """Return the distances with which a model computes the mean stress of the channels at ``places``.

    ``sd`` is the mean distance between neighbouring channels. Channels that are nearer to the ends than one row allows,
    such as those of a device in several rows, are described as several devices in parallel.
    """
    count, half = len(places), length_um / 2
    gaps = [gap for each in places for gap in (each.gap_before_um, each.gap_after_um) if gap is not None]
    sd = round(sum(gaps) / len(gaps), 6) if gaps else 0.0
    wanted = [1 / (distance + half) for distance in equivalent_distances(places, length_um)]
    for units in (number for number in range(1, count + 1) if count % number == 0):
        fingers = count // units
        if fingers > 1 and not sd:
            continue
        steps = [half + index * (sd + length_um) for index in range(fingers)]
        if all(_mean_inverse(0.0, steps) > mean for mean in wanted):
            return ModelDistances(units, _solved(wanted[0], steps), _solved(wanted[1], steps), sd)
    raise AssertionError("a single finger always has a solution")  # its distances are positive


def _mean_inverse(distance: float, steps: Sequence[float]) -> float:
    return sum(1 / (distance + step) for step in steps) / len(steps)


def _solved(wanted: float, steps: Sequence[float]) -> float:
    """Return the distance at which the mean of ``1 / (distance + step)`` is ``wanted``, by bisection. [um]"""
    low, high = 0.0, 1 / wanted
    for _ in range(60):
        middle = (low + high) / 2
        if _mean_inverse(middle, steps) > wanted:
            low = middle
        else:
            high = middle
    return round((low + high) / 2, 6)


@dataclass(frozen=True)
class MirrorImage:
    """How what is drawn compares with its mirror image.

    Attributes:
        symmetric: Whether they are equal on every mask layer, but for cuts that do not count.
        axis: ``vertical`` or ``horizontal`` line of the mirror: that about which less differs.
        differences: Largest first: layer, area that differs [um2], and a place where it does [um]; what does not count
            is last and says so in ``what``.
    """

    symmetric: bool
    axis: str
    differences: tuple[Mapping[str, Any], ...]

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {
            "symmetric": self.symmetric,
            "axis": self.axis,
            "differences": [dict(each) for each in self.differences],
        }


def mirror_image(
    cell: kdb.Cell,
    technology: Technology,
    channels: Mapping[kdb.Box, str],
    idle: set[kdb.Box],
    axes: Sequence[str] = ("vertical", "horizontal"),
) -> MirrorImage:
    """Return how what is drawn in and over some channels compares with its mirror image.

    The mirror may exchange two devices: it then maps every channel of A to one of B. ``centre`` is the middle of the
    channels. The compared area is the smallest one, centred there, that contains the diffusions and the poly of the
    channels. All shapes in it count, also wires of other nets::

          |  A  B | B  A  |      mirrored about the vertical line: each device is its own image
          |  A  A | B  B  |      mirrored about the vertical line: A and B are exchanged

    The rails of two gates lie at different heights, so the cuts that join them to equal wires at the left and at the
    right cannot be mirror images. Such cuts do not count, but are listed, if they are as many at both sides, the metal
    below and above them is symmetric, and they lie over no channel of the matched devices: then channels see the same
    metal.

    Args:
        cell: Cell that holds them.
        technology: Says which layers are on a mask.
        channels: Device by channel. [dbu]
        idle: Channels of dummies beside them. [dbu]
        axes: Lines of the mirror that count.
    """
    extent = kdb.Box()
    for box in channels:
        extent += box
    drawn = dict(_layers(cell, technology, _area(cell, technology, extent, {*channels, *idle})))
    found = []
    mirrors = {
        "vertical": kdb.Trans(2, True, extent.left + extent.right, 0),
        "horizontal": kdb.Trans(0, True, 0, extent.bottom + extent.top),
    }
    for axis in axes:
        mirror = mirrors[axis]
        differences = _differences(drawn, mirror, cell.layout().dbu)
        joining = _joining_cuts(drawn, mirror, technology, channels) if differences else set()
        free = [{**each, "what": JOINING} for each in differences if each["layer"] in joining]
        differences = [each for each in differences if each["layer"] not in joining]
        exchanged = _exchanged(channels, mirror)
        if exchanged:
            what, centre = exchanged
            place = [round(centre.x * cell.layout().dbu, 6), round(centre.y * cell.layout().dbu, 6)]
            differences.insert(0, {"layer": "device", "area_um2": 0.0, "place": place, "what": what})
        area = sum(each["area_um2"] for each in differences)
        found.append((area, len(differences), len(free), axis, [*differences, *free]))
        if not differences and not free:
            break  # no other axis can be better
    _, count, _, axis, differences = min(found, key=lambda entry: (bool(entry[1]), *entry[:3]))
    return MirrorImage(count == 0, axis, tuple(differences[:SHOWN]))


def _joining_cuts(
    drawn: Mapping[str, kdb.Region], mirror: kdb.Trans, technology: Technology, channels: Iterable[kdb.Box]
) -> set[str]:
    """Return the layers of cuts whose differences do not count; those that join the lowest two conductors always do."""
    gates = kdb.Region([kdb.Polygon(box) for box in sorted(channels, key=str)])
    found = set()
    for cut in technology.cuts[1:]:
        region = drawn.get(cut.layer, kdb.Region())
        alone = region - region.transformed(mirror)
        beside = [technology.conductor(name).layer for name in (cut.below, cut.above)]
        alike = all((drawn[layer] ^ drawn[layer].transformed(mirror)).is_empty() for layer in beside if layer in drawn)
        if alike and not _surplus(alone, mirror) and (alone & gates).is_empty():
            found.add(cut.layer)
    return found


def _surplus(region: kdb.Region, mirror: kdb.Trans) -> int:
    """Return the area by which more of a region lies at one side of the mirror than at the other. [dbu^2]"""
    total = 0
    for polygon in region.each():
        centre = polygon.bbox().center()
        image = mirror * centre
        total += polygon.area() * (
            (image.x + image.y > centre.x + centre.y) - (image.x + image.y < centre.x + centre.y)
        )
    return abs(total)


def _area(cell: kdb.Cell, technology: Technology, extent: kdb.Box, channels: set[kdb.Box]) -> kdb.Box:
    """Return the area to compare: that of the diffusions and the poly of the channels, the same on both sides."""
    marks = kdb.Region([kdb.Polygon(box) for box in sorted(channels, key=str)])
    around = extent.dup()
    for role in ("active", "poly"):
        index = technology.layer(cell.layout(), role)
        near = kdb.Region(cell.begin_shapes_rec_touching(index, marks.bbox())).merged()
        around += near.interacting(marks).bbox()
    wide = max(extent.left - around.left, around.right - extent.right)
    high = max(extent.bottom - around.bottom, around.top - extent.top)
    return extent.enlarged(wide, high)


def _layers(cell: kdb.Cell, technology: Technology, area: kdb.Box) -> Iterator[tuple[str, kdb.Region]]:
    """Yield name and shapes within ``area`` of each layer that is on a mask or unknown."""
    for info in cell.layout().layer_infos():
        spec = technology.layer_at((info.layer, info.datatype))
        if spec is not None and not spec.on_a_mask:
            continue
        near = kdb.Region(cell.begin_shapes_rec_touching(cell.layout().layer(info), area)) & kdb.Region(area)
        if not near.is_empty():
            yield f"{info.layer}/{info.datatype}" if spec is None else spec.name, near.merged()


def _differences(drawn: Mapping[str, kdb.Region], mirror: kdb.Trans, dbu_um: float) -> list[dict[str, Any]]:
    found = []
    for name, region in sorted(drawn.items()):
        differs = region ^ region.transformed(mirror)
        if not differs.is_empty():
            areas = [(polygon.area(), polygon) for polygon in differs.each()]
            most = max(area for area, _ in areas)
            largest = max((polygon for area, polygon in areas if area == most), key=str)
            place = largest.bbox().center()
            found.append(
                {
                    "layer": name,
                    "area_um2": round(differs.area() * dbu_um**2, 6),
                    "place": [round(place.x * dbu_um, 6), round(place.y * dbu_um, 6)],
                }
            )
    return sorted(found, key=lambda each: (-each["area_um2"], each["layer"]))


def _exchanged(channels: Mapping[kdb.Box, str], mirror: kdb.Trans) -> tuple[str, kdb.Point] | None:
    """Return what is wrong if the mirror does not take each device to one device, and a channel of it."""
    images: dict[str, str] = {}
    for box, device in sorted(channels.items(), key=lambda entry: str(entry[0])):
        image = channels.get(box.transformed(mirror))
        if image is None or images.setdefault(device, image) != image:
            what = "no channel" if image is None else f"channels of {images[device]} and of {image}"
            return f"the mirror image of {device} meets {what}", box.center()
    return None
