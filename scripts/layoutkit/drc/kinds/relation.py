"""Rule kinds about two layers (what may and must be together, where they abut, enclosures) and about polygons.

::

    enclosure  #|<->|inner|<->|#      line_end_enclosure   -------------+  ^
               #################                 #####|inner| |  | narrower than line_um
               outer                             -------------+  v
                                                            |<>|

Those of polygons look at them one by one: sizes, areas, angles, grid.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.drc.kind_register import Case, rule_kind
from layoutkit.drc.kinds.distance import METRICS, PROJECTION, measure_options

if TYPE_CHECKING:
    from layoutkit.drc.kind_register import Found


_CIRCLE_POINTS = 64
_FIRST_STEP = 10  # the part of a distance that taps are grown by before they are merged


@rule_kind("forbidden", "layer", value="none", counts="drawn")
def forbidden(case: Case) -> Found:
    """``layer`` (an expression) is nowhere."""
    yield case.region("layer")


@rule_kind("covered", "inner", "outer", value="none")
def covered(case: Case) -> Found:
    """All of ``inner`` lies in ``outer``."""
    yield case.region("inner") - case.region("outer")


@rule_kind("contains", "layer", "inner", value="none")
def contains(case: Case) -> Found:
    """Each polygon of ``layer`` holds at least one whole polygon of ``inner``."""
    layer = case.region("layer")
    # Not layer.not_covering(inner): KLayout 0.30 takes a polygon that another one of inner leaves for not covering any.
    yield layer.not_interacting(case.region("inner").inside(layer))


@rule_kind("count", "layer", "inner", optional=("beside",), lengths=("width_um",), value="ratio",
           choices={"counted": ("exact", "most")})  # fmt: skip
def count(case: Case) -> Found:
    """Each polygon of ``layer`` (that shares an edge of ``width_um`` with ``beside``) has ``value`` of ``inner``.

    With ``counted: most``, it may have fewer.
    """
    layer, number = case.region("layer"), round(case.ratio)
    if case.has("beside"):
        width = case.length("width_um")
        layer = layer.interacting((case.edges("layer") & case.edges("beside")).with_length(width, width + 1, False))
    if case.choice("counted") == "most":
        yield layer.interacting(case.region("inner"), number + 1)
    elif number:
        yield layer - layer.interacting(case.region("inner"), number, number)
    else:
        yield layer.interacting(case.region("inner"))


@rule_kind("corner", "layer", "other", value="none", choices={"corners": ("all", "convex", "concave")})
def corner(case: Case) -> Found:
    """``layer`` has no corner (all, convex or concave ones) strictly inside ``other``."""
    which = case.choice("corners")
    low = 0.0 if which == "concave" else -180.0
    high = 0.0 if which == "convex" else 180.0
    yield case.region("layer").corners(low, high, 1, low < 0, high > 0).inside(case.region("other"))


@rule_kind("bevel", "layer")
def bevel(case: Case) -> Found:
    """Each corner of ``layer`` is cut off at 45 degrees, ``value`` from where its sides would meet."""
    layer, length = case.region("layer"), round(case.value * 2**0.5)
    for right in (-90.0, 90.0):
        yield layer.corners(right, right, 1, True, True)
    diagonal = case.edges("layer").with_angle(kdb.Edges.DiagonalEdges, False)
    yield diagonal.with_length(length - 1, length + 2, True)


@rule_kind("tap_distance", "layer", "other", optional=("within",), flat=True)
def tap_distance(case: Case) -> Found:
    """No point of ``layer`` is further than ``value`` from ``other``, in the same polygon of ``within``."""
    layer, taps = case.region("layer"), case.region("other")
    if not case.has("within"):
        yield _beyond_reach(layer, taps, case.value)
        return
    wells = case.region("within")
    yield layer - wells
    layer_shapes, tap_shapes = _indexed(layer), _indexed(taps)
    for well in wells.each():
        here = _within(well, layer_shapes)
        if not here.is_empty():
            yield _beyond_reach(here, _within(well, tap_shapes), case.value)


def _indexed(region: kdb.Region) -> kdb.Shapes:
    shapes = kdb.Shapes()
    shapes.insert(region)
    return shapes


def _within(polygon: kdb.Polygon, shapes: kdb.Shapes) -> kdb.Region:
    near = kdb.Region([shape.polygon for shape in shapes.each_touching(polygon.bbox())])
    return near & kdb.Region(polygon)


def _beyond_reach(layer: kdb.Region, taps: kdb.Region, distance: int) -> kdb.Region:
    """Return the part of ``layer`` further than ``distance`` from ``taps``.

    Taps are first grown with bevelled corners, which stay inside the true circle and decide nearly everything; only
    what is left is measured with a circle (an inscribed polygon, at most 0.12 % too small).

    They are grown in two steps, because thousands of contacts that overlap widely take seconds to merge. The first step
    makes one rectangle of each row of contacts; its corners are square, so it grows the sides by less than 1/sqrt(2)
    of the step.
    """
    first = distance // _FIRST_STEP
    left = layer - taps.sized(first * 7 // 10, 2).merged().sized(distance - first, 0)
    if left.is_empty() or taps.is_empty():
        return left
    near = taps.interacting(kdb.Region(left.bbox().enlarged(distance, distance)))
    circle = kdb.Polygon.ellipse(kdb.Box(-distance, -distance, distance, distance), _CIRCLE_POINTS)
    return left - near.minkowski_sum(circle).merged()


@rule_kind("abutting_width", "layer", "abutting", choices={"ends": ("one", "both")})
def abutting_width(case: Case) -> Found:
    """``layer`` is at least ``value`` wide from where it abuts ``abutting``, at one end or between both ends."""
    shared = case.edges("layer") & case.edges("abutting")
    if case.choice("ends") == "both":
        yield shared.width_check(case.value)
    else:
        yield shared.overlap_check(case.edges("layer") - shared, case.value)


@rule_kind("widest", "layer", optional=("abutting",))
def widest(case: Case) -> Found:
    """Each piece of ``layer`` is ``value`` wide at one position at least, measured from where it abuts ``abutting``."""
    layer = case.region("layer")
    if case.has("abutting"):
        shared = case.edges("layer") & case.edges("abutting")
        narrow = shared.overlap_check(case.edges("layer"), case.value, metrics=kdb.Metrics.Projection)
    else:
        narrow = layer.width_check(case.value, metrics=kdb.Metrics.Projection)
    if not narrow.is_empty():
        narrow_area = narrow.polygons()
        yield layer.interacting(narrow_area).outside(layer - narrow_area)


# Flat: of hierarchical edges in a region grown from edges of two cells, KLayout's inside_part finds none.
@rule_kind("abutting_space", "layer", "abutting", flat=True)
def abutting_space(case: Case) -> Found:
    """Where ``layer`` and ``abutting`` abut, no other parallel edge of either is nearer than ``value``."""
    shared = case.edges("layer") & case.edges("abutting")
    if shared.is_empty():
        return
    rest = (case.edges("layer") + case.edges("abutting")) - shared
    reach = case.value - 1  # a parallel edge at ``value`` itself is far enough
    for angle in (0.0, 90.0):
        near = shared.with_angle(angle, False).extended(reach, reach, reach, reach, False)
        yield rest.with_angle(angle, False).inside_part(near)


@rule_kind("abutting_flush", "layer", "abutting", value="none", flat=True)
def abutting_flush(case: Case) -> Found:
    """Where ``layer`` and ``abutting`` abut, neither reaches beyond the edge they share."""
    shared = case.edges("layer") & case.edges("abutting")
    rest = (case.edges("layer") + case.edges("abutting")) - shared
    ends = {(point, abs(edge.dx()) > 0) for edge in shared.each() for point in (edge.p1, edge.p2)}
    beyond = kdb.Edges()
    for edge in rest.interacting(shared).each():
        if any((point, abs(edge.dx()) > 0) in ends for point in (edge.p1, edge.p2)):
            beyond.insert(edge)
    yield beyond


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


@rule_kind("exact_size", "layer", lengths=("length_um",))
def exact_size(case: Case) -> Found:
    """Each polygon of ``layer`` is a square of ``value``, or a rectangle of ``value`` by ``length_um``."""
    layer = case.region("layer")
    yield layer.non_rectangles()
    long = case.length("length_um") if case.has("length_um") else case.value
    boxes = layer.rectangles()
    wrong = boxes.with_bbox_min(case.value, True) + boxes.with_bbox_max(long, True)
    yield wrong.merged()


@rule_kind("area", "layer")
def area(case: Case) -> Found:
    """Each polygon of ``layer`` has at least the area ``value``."""
    yield case.region("layer").with_area(0, case.value, False)


@rule_kind("max_area", "layer", optional=("within",))
def max_area(case: Case) -> Found:
    """Each polygon of ``layer``, or all of it in one polygon of ``within``, has at most the area ``value``."""
    layer = case.region("layer")
    if not case.has("within"):
        yield layer.with_area(case.value + 1, None, False)
        return
    for polygon in case.region("within").with_area(case.value + 1, None, False).each():
        together = layer & kdb.Region(polygon)
        if together.area() > case.value:
            yield together


@rule_kind("hole_area", "layer")
def hole_area(case: Case) -> Found:
    """Each hole in ``layer`` has at least the area ``value``."""
    yield case.region("layer").holes().with_area(0, case.value, False)


@rule_kind("min_length", "layer")
def min_length(case: Case) -> Found:
    """The longer side of each polygon's bounding box is at least ``value``."""
    yield case.region("layer").with_bbox_max(0, case.value, False)


@rule_kind("max_length", "layer")
def max_length(case: Case) -> Found:
    """The longer side of each polygon's bounding box is at most ``value``."""
    yield case.region("layer").with_bbox_max(case.value + 1, None, False)


@rule_kind("max_width", "layer")
def max_width(case: Case) -> Found:
    """``layer`` is at most ``value`` wide: no larger square fits in."""
    layer = case.region("layer")
    half = case.value // 2
    yield layer.sized(-half - case.value % 2).sized(half + case.value % 2) & layer


@rule_kind("max_ratio", "layer", value="ratio", flat=True)
def max_ratio(case: Case) -> Found:
    """Each polygon of ``layer`` is at most ``value`` times as long as wide."""
    slender = kdb.Region()
    for polygon in case.region("layer").each():
        # A strip w by l has half the perimeter w + l and the area w * l, also where it bends.
        half, size = polygon.perimeter() / 2, polygon.area()
        longer = (half + max(half * half - 4 * size, 0) ** 0.5) / 2
        if longer * longer > case.ratio * size * (1 + 1e-9):
            slender.insert(polygon)
    yield slender


@rule_kind("grid", "layer", any_layer=True)
def grid(case: Case) -> Found:
    """Each drawn vertex of ``layer`` is at a multiple of ``value``."""
    yield case.layers.drawn(case.text("layer")).grid_check(case.value, case.value)


@rule_kind("angle", "layer", value="angle", any_layer=True)
def angle(case: Case) -> Found:
    """Each edge of ``layer`` is at a multiple of ``value`` (90 or 45 degrees) from the x axis."""
    allowed = {90: kdb.Edges.OrthoEdges, 45: kdb.Edges.OrthoDiagonalEdges}
    yield case.edges("layer").with_angle(allowed[case.value], True)
