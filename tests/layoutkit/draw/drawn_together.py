"""Cells checked in one layout: most of the time of a check is that of its rules, not of the few shapes of a cell."""

import klayout.db as kdb

from layoutkit.drc.check import check
from thorough import THOROUGH, TURN

TOGETHER = 6 if THOROUGH or TURN is not None else 1  # other runs take some of the lots only
APART_UM = 100.0  # farther than any rule looks


def in_lots(cases, of_one_layout):
    """Return (what ``of_one_layout`` says of a case, a few cases of which it says this), in their order."""
    kinds = {}
    for case in cases:
        kinds.setdefault(of_one_layout(case), []).append(case)
    return [(kind, found[at : at + TOGETHER]) for kind, found in kinds.items() for at in range(0, len(found), TOGETHER)]


def not_passed(layout, cells, tech):
    """Return which rules each of some cells of a layout does not pass, each in its own place: {name: rules}.

    Args:
        layout: The layout.
        cells: Cells of the layout by name.
        tech: The technology.
    """
    top, boxes, left = layout.create_cell("TOGETHER"), {}, 0
    for name, cell in cells.items():
        box = cell.bbox()
        place = kdb.Trans(left - box.left, -box.bottom)
        top.insert(kdb.CellInstArray(cell.cell_index(), place))
        boxes[name] = box.transformed(place)
        left += box.width() + tech.to_dbu(APART_UM)
    report, found = check(layout, top, tech), {}
    for verdict in report.verdicts:
        assert verdict.status != "unchecked", (verdict.rule.id, verdict.reason)
        for marks in verdict.marks:
            for shape in marks.shapes.each():
                middle = shape.bbox().center()
                nearest = min(boxes, key=lambda name: abs(boxes[name].center().x - middle.x) - boxes[name].width() // 2)
                found.setdefault(nearest, set()).add(verdict.rule.id)
    layout.prune_cell(top.cell_index(), 0)
    return found
