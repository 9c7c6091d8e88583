"""Rule kinds that look at polygons one by one: sizes, areas, angles, grid."""

from __future__ import annotations

from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.drc.kind_register import Case, rule_kind

if TYPE_CHECKING:
    from layoutkit.drc.kind_register import Found


@rule_kind("exact_size", "layer", lengths=("length_um",))
def exact_size(case: Case) -> Found:
    """Each polygon of ``layer`` is a square of ``value``, or a rectangle of ``value`` by ``length_um``."""
    layer = case.region("layer")
    yield layer.non_rectangles()
    long = case.length("length_um") if case.has("length_um") else case.value
    boxes = layer.rectangles()
    wrong = boxes.with_bbox_min(case.value, True) + boxes.with_bbox_max(long, True)
    yield wrong.merged()


@rule_kind("area", "layer", value="area")
def area(case: Case) -> Found:
    """Each polygon of ``layer`` has at least the area ``value``."""
    yield case.region("layer").with_area(0, case.value, False)


@rule_kind("max_area", "layer", optional=("within",), value="area")
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


@rule_kind("hole_area", "layer", value="area")
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
