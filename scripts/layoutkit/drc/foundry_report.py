"""Read the report database that a deck wrote into the verdicts that every check answers with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import klayout.db as kdb

from layoutkit.drc.drc_report import Marks, Verdict
from layoutkit.errors import FileError
from layoutkit.technology.technology import Rule

if TYPE_CHECKING:
    from pathlib import Path

    from klayout import rdb

MAX_PLACES = 100_000  # of one cell; a violation in a cell below is one at each place of that cell
_WAIVED = "waived"


def read_deck_report(path: Path, cell: kdb.Cell) -> tuple[Verdict, ...]:
    """Return a verdict for each category of the report ``path``, in the report's order.

    A rule is passed where its category holds no item. Items that someone waived do not count.

    Args:
        path: Report database.
        cell: The checked cell; what was found in a cell below counts at each of its places.

    Raises:
        FileError: If it is no report database.
    """
    from klayout import rdb

    database = rdb.ReportDatabase("deck")
    try:
        database.load(str(path))
    except (RuntimeError, UnicodeDecodeError) as error:
        raise FileError(f"its report cannot be read: {str(error).splitlines()[0]}") from error
    return _Reader(database, cell).verdicts()


class _Reader:
    def __init__(self, database: rdb.ReportDatabase, cell: kdb.Cell) -> None:
        self._database = database
        self._cell = cell
        self._to_units = kdb.DCplxTrans(1 / cell.layout().dbu)
        self._waived = database.tag_id(_WAIVED)
        self._places: dict[int, list[kdb.DCplxTrans]] = {}

    def verdicts(self) -> tuple[Verdict, ...]:
        found: list[Verdict] = []
        for category in self._database.each_category():
            self._add(category, "", found)
        return tuple(found)

    def _add(self, category: rdb.RdbCategory, above: str, found: list[Verdict]) -> None:
        name = f"{above}/{category.name()}" if above else category.name()
        children = list(category.each_sub_category())
        items = list(category.each_item())
        if items or not children:  # one that only groups others is no rule
            rule = Rule(name, "deck", category.description or name, "error", None, None, "deck", {})
            found.append(self._verdict(rule, items))
        for child in children:
            self._add(child, name, found)

    def _verdict(self, rule: Rule, items: list[rdb.RdbItem]) -> Verdict:
        polygons, edges, pairs = kdb.Region(), kdb.Edges(), kdb.EdgePairs()
        polygons.merged_semantics = edges.merged_semantics = False
        count = 0
        for item in items:
            if item.has_tag(self._waived):
                continue
            places = self._placed(item.cell_id())
            count += len(places)
            shape = _shape_of(item)
            if shape is None:
                continue
            for place in places:
                placed = shape.transformed(self._to_units * place)
                if isinstance(placed, kdb.DEdgePair):
                    pairs.insert(placed.to_itype(1.0))
                elif isinstance(placed, kdb.DEdge):
                    edges.insert(placed.to_itype(1.0))
                else:
                    polygons.insert(placed.to_itype(1.0))
        marks = tuple(Marks("", shapes) for shapes in (polygons, edges, pairs) if shapes.count())
        return Verdict(rule, "failed" if count else "passed", None, count, marks)

    def _placed(self, cell_id: int) -> list[kdb.DCplxTrans]:
        if cell_id not in self._places:
            self._places[cell_id] = self._places_of(self._database.cell_by_id(cell_id))
        return self._places[cell_id]

    def _places_of(self, reported: rdb.RdbCell) -> list[kdb.DCplxTrans]:
        layout = self._cell.layout()
        cell = layout.cell(reported.name())
        if reported.name() == self._cell.name:
            return [kdb.DCplxTrans()]
        if cell is None:  # a variant that the application made: the report names one place of it at least
            references = [reference.trans() for reference in reported.each_reference()]
            return references or [kdb.DCplxTrans()]
        places: list[kdb.DCplxTrans] = []
        instances = self._cell.begin_instances_rec()
        instances.targets = [cell.cell_index()]
        while not instances.at_end() and len(places) < MAX_PLACES:
            places.append(instances.dtrans() * instances.inst_dtrans())
            instances.next()
        return places or [kdb.DCplxTrans()]


def _shape_of(item: rdb.RdbItem) -> Any:
    """Return the first polygon, edge or edge pair that ``item`` holds, None where it holds only words and numbers."""
    for value in item.each_value():
        if value.is_polygon():
            return value.polygon()
        if value.is_box():
            return kdb.DPolygon(value.box())
        if value.is_edge_pair():
            return value.edge_pair()
        if value.is_edge():
            return value.edge()
        if value.is_path():
            return value.path().polygon()
        if value.is_text():
            place = value.text().trans.disp
            return kdb.DEdge(place.x, place.y, place.x, place.y)
    return None
