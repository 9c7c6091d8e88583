"""Rule kinds about how far one layer reaches beyond another.

::

    enclosure  #|<->|inner|<->|#      line_end_enclosure   -------------+  ^
               #################                 #####|inner| |  | narrower than line_um
               outer                             -------------+  v
                                                            |<>|
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.drc.kind_register import Case, rule_kind
from layoutkit.drc.kinds.distance import METRICS, PROJECTION, measure_options

if TYPE_CHECKING:
    from layoutkit.drc.kind_register import Found

SIDES = ("all", "opposite", "three", "two", "one")
_SHORT_SIDES_ALLOWED = {"three": 1, "two": 2, "one": 3}
_DIRECTIONS = ((-1, 0), (1, 0), (0, -1), (0, 1))


@rule_kind("enclosure", "inner", "outer", optional=("abutting",), lengths=("short_um", *PROJECTION),
           choices={"metrics": METRICS, "sides": SIDES})  # fmt: skip
def enclosure(case: Case) -> Found:
    """``inner`` lies in ``outer`` with ``value`` around it: on all sides, two opposite ones, or a number of sides."""
    inner, outer, margin = case.region("inner"), case.region("outer"), case.value
    sides = case.choice("sides")
    if sides == "opposite":
        yield _without_opposite_margins(
            inner, outer, margin, case.length("short_um") if case.has("short_um") else margin
        )
        return
    yield inner - outer
    if margin == 0 or outer.is_empty():
        return
    if sides != "all":
        yield _short_on_more_sides(inner & outer, outer, margin, _SHORT_SIDES_ALLOWED[sides])
    elif case.has("abutting"):
        edges = case.edges("inner") - case.edges("abutting")
        yield case.edges("outer").enclosing_check(edges, margin, **measure_options(case))
    else:
        yield outer.enclosing_check(inner, margin, **measure_options(case))


@rule_kind("line_end_enclosure", "inner", "outer", lengths=("line_um", *PROJECTION), needed_lengths=("line_um",),
           choices={"metrics": METRICS})  # fmt: skip
def line_end_enclosure(case: Case) -> Found:
    """Ends of lines of ``outer`` narrower than ``line_um`` reach at least ``value`` beyond ``inner``."""
    inner, outer = case.region("inner"), case.region("outer")
    ends = outer.edges(kdb.EdgeMode.Convex).with_length(0, case.length("line_um"), False)
    if ends.is_empty():
        return
    yield ends.enclosing_check(case.edges("inner"), case.value, **measure_options(case))
    yield (inner - outer).interacting(ends)


def _without_opposite_margins(inner: kdb.Region, outer: kdb.Region, margin: int, short: int) -> kdb.Region:
    """Return the polygons of ``inner`` that have a side short of ``short`` beside one short of ``margin``.

    "On one of two adjacent sides" says that no corner may have both its sides short of the margin (``short`` and
    ``margin`` are one). A square has four corners; the only sets of sides that leave none out are those with two
    opposite sides.
    """
    found = kdb.Region()
    for dx, dy in ((short, margin), (margin, short))[: 1 if short == margin else 2]:
        left_right = _lacking(inner, outer, dx, 0)
        if not left_right.is_empty():
            found = found + inner.interacting(_lacking(inner, outer, 0, dy) & left_right)
    return found.merged()


def _lacking(inner: kdb.Region, outer: kdb.Region, dx: int, dy: int) -> kdb.Region:
    """Return the polygons of ``inner`` that leave ``outer`` when grown by ``dx`` and ``dy``."""
    grown = inner.sized(dx, dy, 2)
    grown.merged_semantics = False  # neighbours may touch once grown, and must stay two
    lacking = grown.not_inside(outer)
    lacking.merged_semantics = False
    return lacking.sized(-dx, -dy, 2)


def _short_on_more_sides(inner: kdb.Region, outer: kdb.Region, margin: int, allowed: int) -> kdb.Region:
    """Return the rectangles of ``inner`` with less than ``margin`` in ``outer`` on more than ``allowed`` sides."""
    short: Counter[kdb.Polygon] = Counter()
    for dx, dy in _DIRECTIONS:
        swept = inner.minkowski_sum(kdb.Edge(0, 0, dx * margin, dy * margin))
        swept.merged_semantics = False
        lacking = swept.not_inside(outer)
        lacking.merged_semantics = False
        # Swept back, a rectangle is wider by the margin on both sides, which sizing takes away.
        both = lacking.minkowski_sum(kdb.Edge(0, 0, -dx * margin, -dy * margin))
        both.merged_semantics = False
        short.update(both.sized(-abs(dx) * margin, -abs(dy) * margin, 2).each())
    return kdb.Region(sorted(polygon for polygon, count in short.items() if count > allowed))
