"""Rule kinds about which layers may, must and must not be together, and how far a tap may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.drc.kind_register import Case, rule_kind

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


@rule_kind("count", "layer", "inner", optional=("beside",), lengths=("width_um",), value="ratio")
def count(case: Case) -> Found:
    """Each polygon of ``layer`` (that shares an edge of ``width_um`` with ``beside``) has ``value`` of ``inner``."""
    layer, number = case.region("layer"), round(case.ratio)
    if case.has("beside"):
        width = case.length("width_um")
        layer = layer.interacting((case.edges("layer") & case.edges("beside")).with_length(width, width + 1, False))
    if number:
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
