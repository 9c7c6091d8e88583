"""A layout as compact JSON data, cell by cell, for the drawing in a page.

Coordinates are integers in database units. A polygon is a list of contours, the hull first, then its holes::

    contour  [x, y, dx, dy, dx, dy, ...]        first point, then the step to each next point; closed. Hulls are
                                                clockwise, holes counter-clockwise, so that shapes may overlap
    boxes    [x, y, width, height, x, y, ...]   four numbers a box

Each cell is stored once, with the places of its instances, as in the layout file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import klayout.db as kdb

from layoutkit.layout.cells import sorted_layers
from layoutkit.layout.klayout_files import layer_colors

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from layoutkit.technology import Technology

CANDIDATES = (0x00FFFF, 0xFF00FF, 0xC8FF00, 0x00FF00, 0xFFE000, 0xFF6A00, 0xE60000)
"""Bright colours, from which that of markers is chosen; a dark rim sets markers off from any ground."""


def drawing_data(cell: kdb.Cell, technology: Technology | None) -> dict[str, Any]:
    """Return ``cell`` and the cells below it as data, with the layers that have shapes, lowest first.

    Args:
        cell: What to draw; its layout must be kept referenced.
        technology: Gives layers their names, colours and order; None uses layer numbers and KLayout's colours.
    """
    layout = cell.layout()
    used = {cell.cell_index(), *cell.called_cells()}
    order = [index for index in layout.each_cell_bottom_up() if index in used]
    number_of = {index: number for number, index in enumerate(order)}
    infos = _ordered(layout, technology)
    contents = [[_shapes(layout.cell(index), layout.layer(info)) for info, _, _ in infos] for index in order]
    drawn = [number for number in range(len(infos)) if any(content[number] for content in contents)]
    box = cell.bbox()
    return {
        "unit": layout.dbu,
        "box": [box.left, box.bottom, box.right, box.top],
        "marker": f"#{marker_color(technology):06x}",
        "layers": [
            {
                "name": infos[number][1],
                "gds": f"{infos[number][0].layer}/{infos[number][0].datatype}",
                **infos[number][2],
            }
            for number in drawn
        ],
        "cells": [
            {
                "shapes": {str(place): content[number] for place, number in enumerate(drawn) if content[number]},
                "instances": [_instance(each, number_of[each.cell_index]) for each in _instances(layout.cell(index))],
            }
            for index, content in zip(order, contents, strict=True)
        ],
    }


def marker_color(technology: Technology | None) -> int:
    """Return the colour 0xRRGGBB for markers, the one that is farthest from those of all layers."""
    colors = {} if technology is None else layer_colors(technology)
    taken = [*map(_rgb, colors.values()), (255, 255, 255), (0, 0, 0)]
    return max(CANDIDATES, key=lambda color: min(_distance(_rgb(f"#{color:06x}"), other) for other in taken))


def _rgb(color: str) -> tuple[int, int, int]:
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def _distance(one: tuple[int, int, int], other: tuple[int, int, int]) -> int:
    """Return how different two colours look, as a weighted square of their distance (T. Riemersma, "redmean")."""
    mean = (one[0] + other[0]) // 2
    red, green, blue = (a - b for a, b in zip(one, other, strict=True))
    return ((512 + mean) * red * red >> 8) + 4 * green * green + ((767 - mean) * blue * blue >> 8)


def contours(polygon: kdb.Polygon) -> list[list[int]]:
    """Return hull and holes of a polygon, the hull clockwise, the holes counter-clockwise."""
    holes = [list(polygon.each_point_hole(number)) for number in range(polygon.holes())]
    return [_steps(points) for points in (list(polygon.each_point_hull()), *(_turned(points) for points in holes))]


def shapes_data(polygons: Iterable[kdb.Polygon]) -> dict[str, Any]:
    """Return polygons as ``boxes`` and ``polygons``, each only where there are some; in the order of their places."""
    boxes, others = [], []
    for polygon in polygons:
        box = polygon.bbox()
        if polygon.is_box():
            boxes.append((box.left, box.bottom, box.width(), box.height()))
        else:
            others.append(contours(polygon))
    data: dict[str, Any] = {}
    if boxes:
        data["boxes"] = [value for each in sorted(boxes) for value in each]
    if others:
        data["polygons"] = sorted(others)
    return data


def _turned(points: list[kdb.Point]) -> list[kdb.Point]:
    """Return the points of a hole counter-clockwise."""
    twice = sum(a.x * b.y - b.x * a.y for a, b in zip(points, points[1:] + points[:1], strict=True))
    return points if twice > 0 else points[::-1]


def _steps(points: Iterable[kdb.Point]) -> list[int]:
    found: list[int] = []
    x = y = 0
    for point in points:
        found += (point.x - x, point.y - y)
        x, y = point.x, point.y
    return found


def _ordered(layout: kdb.Layout, technology: Technology | None) -> Sequence[tuple[kdb.LayerInfo, str, dict[str, str]]]:
    """Return the layers of a layout with name, colour and purpose: in the technology's order, then those unknown."""
    infos = {(info.layer, info.datatype): info for info in sorted_layers(layout)}
    found: list[tuple[kdb.LayerInfo, str, dict[str, str]]] = []
    others = {}
    if technology is not None:
        colors = layer_colors(technology)
        for spec in technology.layers.values():
            if spec.gds in infos:
                style = {"color": colors[spec.name], "is": spec.purpose}
                found.append((infos.pop(spec.gds), spec.name, style))
        others = {spec.gds: name for name, spec in technology.other_layers.items()}
    return found + [
        (info, others.get(gds, f"{gds[0]}/{gds[1]}"), {"color": "#808080", "is": "unknown"})
        for gds, info in infos.items()
    ]


def _shapes(cell: kdb.Cell, layer: int) -> dict[str, Any]:
    drawn = cell.shapes(layer).each(kdb.Shapes.SBoxes | kdb.Shapes.SPolygons | kdb.Shapes.SPaths)
    return shapes_data(shape.polygon for shape in drawn)


def _instances(cell: kdb.Cell) -> list[kdb.CellInstArray]:
    found = [each.cell_inst for each in cell.each_inst()]
    return sorted(found, key=lambda each: (each.cell_index, each.trans.disp.x, each.trans.disp.y, each.trans.rot))


def _instance(placed: kdb.CellInstArray, number: int) -> list[int]:
    """Return an instance or array: cell, turns by 90 degrees, whether mirrored at the x axis first, place, array."""
    trans = placed.trans
    data = [number, trans.angle, int(trans.is_mirror()), trans.disp.x, trans.disp.y]
    if placed.is_regular_array():
        data += [placed.na, placed.nb, placed.a.x, placed.a.y, placed.b.x, placed.b.y]
    return data
