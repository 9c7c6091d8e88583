"""Recognise devices that are drawn as the foundry's cell: a marker whose contents are those of the cell.

Count and length of the emitters are measured in each box of the marker. All layers of the wafer in it, up to the
contacts, must then be those of the foundry's cell of this count and length, in any of four orientations; otherwise the
first difference is reported. Diffusion in the marker is part of the device and is no source, drain or tap.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import klayout.db as kdb

if TYPE_CHECKING:
    from collections.abc import Callable

    from layoutkit.technology import PassiveSpec, Technology
    from layoutkit.technology.device_cell import DeviceCell, Points

    Layer = Callable[[str], kdb.Region]

TERMINALS = ("c", "b", "e")
_UNCOMPARED = frozenset({"annotation", "pin", "text", "conductor", "marker"})
_UPRIGHT, _TURNED = (0, 2), (1, 3)  # quarter turns


@dataclass
class CellDevices:
    """The devices of one flat cell that are drawn as the foundry's cell.

    Attributes:
        emitters: Device to one box per device, as wide as all its emitters together and as long as one.
        windows: Device to the markers around them.
        pins: Terminal to the metal of the first conductor that reaches it.
        loose: Markers without a device and emitters outside of one, each region with the reason.
    """

    emitters: dict[str, kdb.Region] = field(default_factory=dict)
    windows: kdb.Region = field(default_factory=kdb.Region)
    pins: dict[str, kdb.Region] = field(default_factory=lambda: {name: kdb.Region() for name in TERMINALS})
    loose: list[tuple[kdb.Region, str]] = field(default_factory=list)


def cell_devices(technology: Technology, layer: Layer) -> CellDevices:
    """Return the devices of ``technology`` that state a cell, found in a layout.

    Args:
        technology: Process.
        layer: Returns the merged shapes of a layer.
    """
    found = CellDevices()
    specs = [spec for _, spec in sorted(technology.passives.items()) if spec.cell is not None]
    found.emitters = {spec.name: kdb.Region() for spec in specs}
    cells = [spec.cell for spec in specs if spec.cell is not None]
    for marker in sorted({cell.marker for cell in cells}):
        for polygon in layer(marker).each():
            _read(technology, [s for s in specs if s.cell and s.cell.marker == marker], polygon, layer, found)
    for emitter in sorted({cell.emitter for cell in cells}):
        outside = layer(emitter).outside(found.windows)
        known = kdb.Region()
        for region, _ in found.loose:
            known.insert(region.bbox())
        found.loose.append((outside.outside(known), f"{emitter} lies in no device"))
    found.loose = [(region, reason) for region, reason in found.loose if not region.is_empty()]
    return found


def _read(
    technology: Technology, specs: list[PassiveSpec], marker: kdb.Polygon, layer: Layer, found: CellDevices
) -> None:
    """Add the device in ``marker`` to ``found``, or the marker and what differs to its loose shapes."""
    window, reasons = kdb.Region(marker), []
    for spec in specs:
        cell = spec.cell
        emitters = layer(cell.emitter) & window if cell is not None else kdb.Region()
        if cell is None or emitters.is_empty():
            continue
        first = next(emitters.merged().each()).bbox()
        turned = first.width() > first.height()
        length, count = max(first.width(), first.height()), emitters.merged().count()
        if length < spec.min_l or length > (spec.max_l or length) or count > cell.most:
            reasons.append(f"{spec.name} has no {count} emitters of {technology.to_um(length):g} um")
            continue
        differences = []
        for turn in _TURNED if turned else _UPRIGHT:
            placed = _placed(cell, count, length, turn, marker.bbox())
            difference = _difference(technology, spec, (count, length), placed, window, layer)
            if not difference:
                _add(technology, spec, (count, length), placed, layer, found)
                return
            differences.append(difference)
        reasons.append(f"not a {spec.name}: {differences[0]}")
    found.loose.append((window, "; ".join(reasons) or "it holds no emitter of a device that is known here"))


def _placed(cell: DeviceCell, count: int, length: int, turn: int, box: kdb.Box) -> kdb.Trans:
    """Return how the cell must lie for its marker to have the lower left corner of ``box``."""
    low, high = cell.outline(count, length)
    outline = kdb.Box(*low, *high).transformed(kdb.Trans(turn, False, 0, 0))
    return kdb.Trans(turn, False, box.left - outline.left, box.bottom - outline.bottom)


def _region(polygons: list[Points], placed: kdb.Trans) -> kdb.Region:
    return kdb.Region([kdb.Polygon([kdb.Point(x, y) for x, y in points]).transformed(placed) for points in polygons])


def _difference(
    technology: Technology,
    spec: PassiveSpec,
    size: tuple[int, int],
    placed: kdb.Trans,
    window: kdb.Region,
    layer: Layer,
) -> str:
    """Return what differs from the foundry's cell of ``size`` (emitters, their length) in ``window``."""
    cell = spec.cell
    if cell is None:
        return "it states no cell"
    expected: dict[str, kdb.Region] = {}
    owner = {fill: name for name, each in technology.layers.items() for fill in each.fill}
    for drawn, polygons in cell.shapes(*size).items():
        name = owner.get(drawn, technology.spec(drawn).name)
        if technology.spec(name).purpose not in _UNCOMPARED or name == technology.spec(cell.marker).name:
            expected[name] = expected.get(name, kdb.Region()) + _region(polygons, placed)
    vias = {technology.spec(cut.layer).name for cut in technology.cuts}
    for name, region in sorted(expected.items()):
        if name not in vias and not ((layer(name) & window) ^ region.merged()).is_empty():
            return f"{name} is not that of the foundry's cell"
    for name in spec.excludes:
        if not (layer(name) & window).is_empty():
            return f"{name} lies in it"
    outline = window.bbox()
    for name, (inner, outer) in cell.ring.items():
        ring = kdb.Region(outline.enlarged(outer, outer)) - kdb.Region(outline.enlarged(inner, inner))
        if not (ring - layer(name)).is_empty():
            return f"its ring of {name} is missing or not whole"
    return ""


def _add(
    technology: Technology,
    spec: PassiveSpec,
    size: tuple[int, int],
    placed: kdb.Trans,
    layer: Layer,
    found: CellDevices,
) -> None:
    """Add a device, the metal at its terminals, and a box of its size in place of its emitters."""
    cell = spec.cell
    if cell is None:
        return
    emitters = _region(cell.emitters(*size), placed)
    first = technology.conductors[0]
    metal = layer(first.layer)
    for terminal, (conductor, box) in cell.pins.items():
        if technology.conductor(conductor) is first:
            found.pins[terminal] += metal & _region([cell.stretched(box, *size)], placed)
    found.pins["e"] += metal & emitters
    low, high = cell.outline(*size)
    centre = kdb.Box(*low, *high).transformed(placed).center()
    wide, long = cell.size[0] * size[0], size[1]
    left, bottom = centre.x - wide // 2, centre.y - long // 2
    found.emitters[spec.name].insert(kdb.Box(left, bottom, left + wide, bottom + long))
    found.windows.insert(kdb.Box(*low, *high).transformed(placed))
