"""Rule kinds about where two layers abut: a tap and the diffusion beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.drc.kind_register import Case, rule_kind

if TYPE_CHECKING:
    from layoutkit.drc.kind_register import Found


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
