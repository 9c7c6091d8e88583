"""What pictures and pages draw of a layout: its cells as compact JSON data, and its violations as shapes.

Coordinates are integers in database units. A polygon is a list of contours, the hull first, then its holes::

    contour  [x, y, dx, dy, dx, dy, ...]        first point, then the step to each next point; closed. Hulls are
                                                clockwise, holes counter-clockwise, so that shapes may overlap
    boxes    [x, y, width, height, x, y, ...]   four numbers a box

Each cell is stored once, with the places of its instances, as in the layout file. Violations are those of a KLayout
report database, or of a list of locations.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import klayout.db as kdb
from klayout import rdb

from layoutkit.errors import FileError, LayoutkitError
from layoutkit.layout import files
from layoutkit.layout.cells import sorted_layers
from layoutkit.layout.klayout_files import layer_colors
from layoutkit.layout.reports import places_of, shapes_of

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence

    from layoutkit.technology import Technology

CANDIDATES = (0x00FFFF, 0xFF00FF, 0xC8FF00, 0x00FF00, 0xFFE000, 0xFF6A00, 0xE60000)
"""Bright colours, from which that of markers is chosen; a dark rim sets markers off from any ground."""
MAX_MARKERS = 10_000
_POINT_UM = 0.05
_LINE_UM = 0.01
_HEADER_BYTES = 1024


def drawing_data(cell: kdb.Cell, technology: Technology | None) -> dict[str, Any]:
    """Return ``cell`` and the cells below it as data, with the layers that have shapes, lowest first.

    Args:
        cell: What to draw; its layout must be kept referenced.
        technology: Gives layers their names, colours and order; None uses layer numbers and KLayout's colours.
    """
    layout = cell.layout()
    used = [cell, *(layout.cell(index) for index in cell.called_cells())]
    order = [each.cell_index() for each in sorted(used, key=lambda each: (each.hierarchy_levels(), each.name))]
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
                "instances": sorted(
                    _instance(each.cell_inst, number_of[each.cell_index]) for each in layout.cell(index).each_inst()
                ),
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


def _instance(placed: kdb.CellInstArray, number: int) -> list[int]:
    """Return an instance or array: cell, turns by 90 degrees, whether mirrored at the x axis first, place, array."""
    trans = placed.trans
    data = [number, trans.angle, int(trans.is_mirror()), trans.disp.x, trans.disp.y]
    if placed.is_regular_array():
        data += [placed.na, placed.nb, placed.a.x, placed.a.y, placed.b.x, placed.b.y]
    return data


@dataclass(frozen=True)
class Marker:
    """A violation: the rule, its shapes and the box around them. [um]"""

    rule_id: str
    polygons: tuple[kdb.DPolygon, ...]
    box: kdb.DBox


def read_markers(path: str | os.PathLike[str], cell: kdb.Cell) -> list[Marker]:
    """Return the violations in ``cell`` and below that the report database ``path`` lists, in ``cell``'s coordinates.

    A violation in a cell below is returned once per instance of that cell. At most ``MAX_MARKERS`` are returned.

    Raises:
        FileError: If the file is missing or not a report database.
    """
    data = files.read_bytes(path)
    head = data[:_HEADER_BYTES].removeprefix(b"\xef\xbb\xbf").lstrip()
    if not head.startswith(b"<") or b"<report-database" not in head:  # KLayout accepts any text as some format
        raise FileError(f"cannot read {path}: it is not a KLayout report database", details={"path": str(path)})
    database = _loaded(data, path)
    found: list[Marker] = []
    for reported in database.each_cell():
        places = places_of(reported, cell)
        for item in database.each_item_per_cell(reported.rdb_id()):
            rule_id = database.category_by_id(item.category_id()).name()
            polygons = [_polygon(shape) for shape in shapes_of(item)]
            for place in places if polygons else ():
                if len(found) == MAX_MARKERS:
                    return found
                found.append(_marker(rule_id, [polygon.transformed(place) for polygon in polygons]))
    return found


def _loaded(data: bytes, path: str | os.PathLike[str]) -> rdb.ReportDatabase:
    """Return the report database ``data``, loaded from a copy because KLayout runs a file named "pipe:COMMAND".

    Raises:
        FileError: If KLayout cannot read it.
    """
    database = rdb.ReportDatabase("markers")
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder).resolve() / "report.lyrdb"
        copy.write_bytes(data)
        try:
            database.load(str(copy))
        except (RuntimeError, UnicodeDecodeError) as error:
            reason = str(error).split("\n")[0]
            raise FileError(f"cannot read {path}: it is not a KLayout report database ({reason})") from error
    return database


def markers_at(violations: Sequence[Mapping[str, Any]]) -> list[Marker]:
    """Return markers for the ``violations`` of a ``drc.run_check`` answer (``rule_id``, ``locations`` in um).

    A location has its centre ``x``, ``y`` and may have a ``box``: left, bottom, right, top.

    Raises:
        LayoutkitError: If there are too many locations.
    """
    found = []
    for violation in violations:
        for location in violation.get("locations", ()):
            point = kdb.DPoint(location["x"], location["y"])
            box = kdb.DBox(point, point).enlarged(_POINT_UM / 2, _POINT_UM / 2)
            if location.get("box") is not None:
                box += kdb.DBox(*location["box"])
            found.append(_marker(str(violation.get("rule_id", "")), [kdb.DPolygon(box)]))
    if len(found) > MAX_MARKERS:
        raise LayoutkitError(f"{len(found)} locations are too many to show; at most {MAX_MARKERS} are allowed")
    return found


def _marker(rule_id: str, polygons: Sequence[kdb.DPolygon]) -> Marker:
    return Marker(rule_id, tuple(polygons), sum((polygon.bbox() for polygon in polygons), kdb.DBox()))


def _polygon(shape: kdb.DPolygon | kdb.DEdge | kdb.DEdgePair) -> kdb.DPolygon:
    """Return a shape as a polygon; edges become thin ones."""
    if isinstance(shape, kdb.DEdge):
        return kdb.DPolygon(shape.bbox().enlarged(_LINE_UM / 2, _LINE_UM / 2))
    return shape.normalized().polygon(_LINE_UM / 2) if isinstance(shape, kdb.DEdgePair) else shape
