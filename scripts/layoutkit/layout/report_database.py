"""KLayout's report databases: the shapes of an item, the places of its cell, and the bytes of the file."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.layout.provenance import noted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from klayout import rdb

MAX_PLACES = 100_000  # of one cell; a violation in a cell below is one at each place of that cell


def shapes_of(item: rdb.RdbItem) -> Iterator[kdb.DPolygon | kdb.DEdge | kdb.DEdgePair]:
    """Yield the shapes that an item holds, boxes and paths as polygons. [um]"""
    for value in item.each_value():
        if value.is_polygon():
            yield value.polygon()
        elif value.is_box():
            yield kdb.DPolygon(value.box())
        elif value.is_edge_pair():
            yield value.edge_pair()
        elif value.is_edge():
            yield value.edge()
        elif value.is_path():
            yield value.path().polygon()


def places_of(reported: rdb.RdbCell, top: kdb.Cell) -> list[kdb.DCplxTrans]:
    """Return the transformations of a reported cell in ``top``, none where ``top`` does not hold it. [um]

    A cell that the layout lacks is a variant that the application made: the report names its places, or it is ``top``.
    """
    layout = top.layout()
    cell = layout.cell(reported.name())
    if cell is None:
        return [reference.trans() for reference in reported.each_reference()] or [kdb.DCplxTrans()]
    if cell.cell_index() == top.cell_index():
        return [kdb.DCplxTrans()]
    places: list[kdb.DCplxTrans] = []
    instances = top.begin_instances_rec()
    instances.targets = [cell.cell_index()]
    while not instances.at_end() and len(places) < MAX_PLACES:
        places.append(instances.dtrans() * instances.inst_dtrans())
        instances.next()
    return places


def report_bytes(database: rdb.ReportDatabase, sources: Mapping[str, str] | None = None) -> bytes:
    """Return a report database as the bytes of a file, with the digests of its sources."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.lyrdb"
        database.save(str(file))
        return noted(file.read_bytes(), sources or {})
