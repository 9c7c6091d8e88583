"""Check whether the shapes of matched devices, on every mask layer, are their own mirror image.

The mirror may exchange two devices: it then maps every channel of A to one of B. ``centre`` is the middle of the
channels. The compared area is the smallest one, centred there, that contains the diffusions and the poly of the
channels. All shapes in it count, also wires of other nets::

      |  A  B | B  A  |      mirrored about the vertical line: each device is its own image
      |  A  A | B  B  |      mirrored about the vertical line: A and B are exchanged

The rails of two gates lie at different heights, so the cuts that join them to equal wires at the left and at the right
cannot be mirror images. Such cuts do not count, but are listed, if they are as many at both sides, the metal below and
above them is symmetric, and they lie over no channel of the matched devices: then channels see the same metal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import klayout.db as kdb

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from layoutkit.technology import Technology

SHOWN = 8
"""Largest number of differences that are listed, the largest first."""
JOINING = "cuts between metal that is symmetric, over no channel"
"""What is said of cuts that differ, but do not count."""


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
