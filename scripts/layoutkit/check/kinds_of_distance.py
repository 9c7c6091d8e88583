"""Rule kinds that measure between edges: width, space, separation, enclosure, extension, gate sizes.

::

    width   |<->|        space  ###|<->|###      enclosure  #|<->|inner|      extension   outer |<->| beyond inner
            #####                                outer #####################              #######inner####

Distances are Euclidean unless a rule says otherwise, so that two corners may be as near diagonally as two edges. Edges
that meet at 90 degrees or more are never a pair. KLayout's checks see facing edges only; what they miss (shapes that
poke out, overlaps) is added here as the area that should not be there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import klayout.db as kdb

from layoutkit.check.rules import Case, rule_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from layoutkit.check.rules import Shapes

METRICS = ("euclidean", "projection", "square")
_METRICS = {
    "euclidean": kdb.Metrics.Euclidian,
    "projection": kdb.Metrics.Projection,
    "square": kdb.Metrics.Square,
}
PROJECTION = ("min_projection_um", "max_projection_um")
_MEASURE: dict[str, Any] = {"lengths": PROJECTION, "choices": {"metrics": METRICS}}


def _options(case: Case) -> dict[str, Any]:
    """Return the keyword arguments that KLayout's checks take for a rule's metrics and projection limits."""
    options: dict[str, Any] = {"metrics": _METRICS[case.choice("metrics")]}
    for name in PROJECTION:
        if case.has(name):
            options[name.removesuffix("_um")] = case.length(name)
    return options


@rule_kind("width", "layer", **_MEASURE)
def width(case: Case) -> Iterator[Shapes]:
    """``layer`` is at least ``value`` wide everywhere."""
    yield case.region("layer").width_check(case.value, **_options(case))


@rule_kind("space", "layer", lengths=PROJECTION, choices={"metrics": METRICS, "notches": ("included", "ignored")})
def space(case: Case) -> Iterator[Shapes]:
    """Polygons of ``layer``, and the sides of its notches, are at least ``value`` apart."""
    region = case.region("layer")
    check = region.space_check if case.choice("notches") == "included" else region.isolated_check
    yield check(case.value, **_options(case))


@rule_kind("notch", "layer", **_MEASURE)
def notch(case: Case) -> Iterator[Shapes]:
    """The sides of a notch in ``layer`` are at least ``value`` apart."""
    yield case.region("layer").notch_check(case.value, **_options(case))


@rule_kind("wide_space", "layer", lengths=("wide_um", "attached_um"), needed_lengths=("wide_um",))
def wide_space(case: Case) -> Iterator[Shapes]:
    """``layer`` wider than ``wide_um`` (or what is attached to it within ``attached_um``) is ``value`` from any."""
    layer = case.region("layer")
    wide = _wider(layer, case.length("wide_um"))
    if wide.is_empty():
        return
    if case.has("attached_um"):
        reach = wide.sized(case.length("attached_um"))
        wide = ((layer - wide) & reach).interacting(wide)
    edges = case.edges("layer")
    yield (edges & wide.edges()).separation_check(edges, case.value)


def _wider(layer: kdb.Region, width: int) -> kdb.Region:
    """Return the part of ``layer`` that is more than ``width`` wide: what a square of that size and more can reach."""
    half = (width + 1) // 2
    return layer.sized(-half).sized(half) & layer


@rule_kind("separation", "layer", "other", optional=("abutting",), lengths=PROJECTION,
           choices={"metrics": METRICS, "overlap": ("forbidden", "allowed")})  # fmt: skip
def separation(case: Case) -> Iterator[Shapes]:
    """``layer`` and ``other`` are at least ``value`` apart; edges of ``other`` shared with ``abutting`` are exempt."""
    layer, other = case.region("layer"), case.region("other")
    if other.is_empty():
        return
    allowed = case.choice("overlap") == "allowed"
    if not allowed:
        yield layer & other
    if not allowed and not case.has("abutting"):
        yield layer.separation_check(other, case.value, **_options(case))
        return
    edges, facing = case.edges("layer"), case.edges("other")
    if allowed:
        edges, facing = edges.outside_part(other), facing.outside_part(layer)
    if case.has("abutting"):
        facing = facing - case.edges("abutting")
    yield edges.separation_check(facing, case.value, **_options(case))


@rule_kind("overlap", "layer", "other", **_MEASURE)
def overlap(case: Case) -> Iterator[Shapes]:
    """Where ``layer`` and ``other`` overlap, they do so by at least ``value``."""
    yield case.region("layer").overlap_check(case.region("other"), case.value, **_options(case))


@rule_kind("enclosure", "inner", "outer", optional=("abutting",), lengths=PROJECTION,
           choices={"metrics": METRICS, "sides": ("all", "opposite")})  # fmt: skip
def enclosure(case: Case) -> Iterator[Shapes]:
    """``inner`` lies in ``outer`` with ``value`` around it, on all sides or on two opposite ones."""
    inner, outer, margin = case.region("inner"), case.region("outer"), case.value
    if case.choice("sides") == "opposite":
        yield _without_opposite_margins(inner, outer, margin)
        return
    yield inner - outer
    if margin == 0 or outer.is_empty():
        return
    if case.has("abutting"):
        edges = case.edges("inner") - case.edges("abutting")
        yield case.edges("outer").enclosing_check(edges, margin, **_options(case))
    else:
        yield outer.enclosing_check(inner, margin, **_options(case))


def _without_opposite_margins(inner: kdb.Region, outer: kdb.Region, margin: int) -> kdb.Region:
    """Return the polygons of ``inner`` that have ``margin`` in ``outer`` neither left and right nor below and above.

    "On one of two adjacent sides" says that no corner may have both its sides short of the margin. A square has four
    corners; the only sets of sides that leave none out are those with two opposite sides.
    """
    left_right = _lacking(inner, outer, margin, 0)
    if left_right.is_empty():
        return left_right
    return inner.interacting(_lacking(inner, outer, 0, margin) & left_right)


def _lacking(inner: kdb.Region, outer: kdb.Region, dx: int, dy: int) -> kdb.Region:
    """Return the polygons of ``inner`` that leave ``outer`` when grown by ``dx`` and ``dy``."""
    grown = inner.sized(dx, dy, 2)
    grown.merged_semantics = False  # neighbours may touch once grown, and must stay two
    lacking = grown.not_inside(outer)
    lacking.merged_semantics = False
    return lacking.sized(-dx, -dy, 2)


@rule_kind("extension", "inner", "outer", **_MEASURE)
def extension(case: Case) -> Iterator[Shapes]:
    """Where ``outer`` crosses ``inner``, it reaches at least ``value`` beyond it and never ends within it."""
    inner, outer = case.region("inner"), case.region("outer")
    yield outer.enclosing_check(inner, case.value, **_options(case))
    yield outer.corners(-180.0, 0.0, 1, True, False).interacting(inner)


@rule_kind("gate_width", "layer", "active", **_MEASURE)
def gate_width(case: Case) -> Iterator[Shapes]:
    """Channels ``layer`` are at least ``value`` from one side of ``active`` to the other."""
    yield (case.edges("layer") & case.edges("active")).width_check(case.value, **_options(case))


@rule_kind("gate_length", "layer", "active", **_MEASURE)
def gate_length(case: Case) -> Iterator[Shapes]:
    """Channels ``layer`` are at least ``value`` from source to drain."""
    yield (case.edges("layer") - case.edges("active")).width_check(case.value, **_options(case))


@rule_kind("abutting_width", "layer", "abutting", choices={"ends": ("one", "both")})
def abutting_width(case: Case) -> Iterator[Shapes]:
    """``layer`` is at least ``value`` wide from where it abuts ``abutting``, at one end or between both ends."""
    shared = case.edges("layer") & case.edges("abutting")
    if case.choice("ends") == "both":
        yield shared.width_check(case.value)
    else:
        yield shared.overlap_check(case.edges("layer") - shared, case.value)


@rule_kind("abutting_space", "layer", "abutting")
def abutting_space(case: Case) -> Iterator[Shapes]:
    """Where ``layer`` and ``abutting`` abut, no other parallel edge of either is nearer than ``value``."""
    shared = case.edges("layer") & case.edges("abutting")
    if shared.is_empty():
        return
    rest = (case.edges("layer") + case.edges("abutting")) - shared
    reach = case.value - 1  # a parallel edge at ``value`` itself is far enough
    for angle in (0.0, 90.0):
        near = shared.with_angle(angle, False).extended(reach, reach, reach, reach, False)
        yield rest.with_angle(angle, False).inside_part(near)


@rule_kind("abutting_flush", "layer", "abutting", value="none")
def abutting_flush(case: Case) -> Iterator[Shapes]:
    """Where ``layer`` and ``abutting`` abut, neither reaches beyond the edge they share."""
    shared = case.edges("layer") & case.edges("abutting")
    rest = (case.edges("layer") + case.edges("abutting")) - shared
    ends = {(point, abs(edge.dx()) > 0) for edge in shared.each() for point in (edge.p1, edge.p2)}
    beyond = kdb.Edges()
    for edge in rest.interacting(shared).each():
        if any((point, abs(edge.dx()) > 0) in ends for point in (edge.p1, edge.p2)):
            beyond.insert(edge)
    yield beyond
