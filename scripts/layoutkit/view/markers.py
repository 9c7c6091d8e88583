"""Violations as shapes for pictures, from a KLayout report database or from a list of locations."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import klayout.db as kdb
from klayout import rdb

from layoutkit.errors import FileError, LayoutkitError
from layoutkit.layout import files
from layoutkit.layout.report_database import places_of, shapes_of

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence


MAX_MARKERS = 10_000
_POINT_UM = 0.05
_LINE_UM = 0.01
_HEADER_BYTES = 1024


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
