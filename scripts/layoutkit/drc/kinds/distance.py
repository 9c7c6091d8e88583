"""Rule kinds that measure between edges: width, space, separation, overlap, extension, gate sizes.

::

    width   |<->|        space  ###|<->|###      extension   outer |<->| beyond inner
            #####                                            #######inner####

Distances are Euclidean unless a rule says otherwise, so that two corners may be as near diagonally as two edges. Edges
that meet at 90 degrees or more are never a pair. KLayout's checks see facing edges only; what they miss (shapes that
poke out, overlaps) is added here as the area that should not be there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import klayout.db as kdb

from layoutkit.drc.kind_register import Case, rule_kind
from layoutkit.drc.regions import polygons_as_nets
from layoutkit.errors import TechnologyError

if TYPE_CHECKING:
    from layoutkit.drc.kind_register import Found

METRICS = ("euclidean", "projection", "square")
_METRICS = {
    "euclidean": kdb.Metrics.Euclidian,
    "projection": kdb.Metrics.Projection,
    "square": kdb.Metrics.Square,
}
NETS = ("any", "same", "different")
_NET_CONSTRAINTS = {
    "any": None,
    "same": kdb.Region.SamePropertiesConstraintDrop,
    "different": kdb.Region.DifferentPropertiesConstraintDrop,
}
PROJECTION = ("min_projection_um", "max_projection_um")
MEASURE: dict[str, Any] = {"lengths": PROJECTION, "choices": {"metrics": METRICS}}


def measure_options(case: Case) -> dict[str, Any]:
    """Return the keyword arguments that KLayout's checks take for a rule's metrics and projection limits."""
    options: dict[str, Any] = {"metrics": _METRICS[case.choice("metrics")]} if "metrics" in case.kind.choices else {}
    for name in PROJECTION:
        if case.has(name):
            options[name.removesuffix("_um")] = case.length(name)
    return options


@rule_kind("width", "layer", **MEASURE)
def width(case: Case) -> Found:
    """``layer`` is at least ``value`` wide everywhere."""
    yield case.region("layer").width_check(case.value, **measure_options(case))


@rule_kind("space", "layer", optional=("net_of", "one_net"), lengths=PROJECTION,
           choices={"metrics": METRICS, "notches": ("included", "ignored"), "nets": NETS})  # fmt: skip
def space(case: Case) -> Found:
    """Polygons of ``layer``, and the sides of its notches, are at least ``value`` apart.

    Polygons of ``layer`` in the same polygon of ``one_net`` may be closer, and where all of them lie in it, those in
    polygons that wires join.
    """
    region = _with_nets(case, "layer", "net_of")
    check = region.space_check if case.choice("notches") == "included" else region.isolated_check
    near = check(case.value, **measure_options(case), **_net_constraint(case))
    if case.has("one_net") and not near.is_empty():
        apart = polygons_as_nets(region, (case.region("one_net") + region).merged())
        options: dict[str, Any] = {"property_constraint": _NET_CONSTRAINTS["different"]}
        near = apart.isolated_check(case.value, **measure_options(case), **options)
        if not near.is_empty() and (region - case.region("one_net")).is_empty():
            joined = case.layers.nets.of(region, case.text("one_net"))
            near = joined.isolated_check(case.value, **measure_options(case), **options)
    yield near


def _with_nets(case: Case, operand: str, net_of: str) -> kdb.Region:
    """Return the region of ``operand``, with the net of each polygon as a property where the rule depends on nets."""
    if case.choice("nets") == "any":
        return case.region(operand)
    return case.layers.nets.of(case.region(operand), case.text(net_of if case.has(net_of) else operand))


def _net_constraint(case: Case) -> dict[str, Any]:
    constraint = _NET_CONSTRAINTS[case.choice("nets")]
    return {} if constraint is None else {"property_constraint": constraint}


@rule_kind("notch", "layer", **MEASURE)
def notch(case: Case) -> Found:
    """The sides of a notch in ``layer`` are at least ``value`` apart."""
    yield case.region("layer").notch_check(case.value, **measure_options(case))


@rule_kind("bent_width", "layer", lengths=("longer_um",))
def bent_width(case: Case) -> Found:
    """Between diagonal edges longer than ``longer_um``, ``layer`` is at least ``value`` wide."""
    bent = case.edges("layer").with_angle(kdb.Edges.DiagonalEdges, False)
    yield bent.with_length(case.length("longer_um") + 1, None, False).width_check(case.value)


@rule_kind("bent_space", "layer")
def bent_space(case: Case) -> Found:
    """Diagonal edges of ``layer`` are at least ``value`` from all edges that they face."""
    edges = case.edges("layer")
    yield edges.separation_check(edges.with_angle(kdb.Edges.DiagonalEdges, False), case.value)


@rule_kind("wide_space", "layer", lengths=("wide_um", "attached_um", "long_edges_um", *PROJECTION),
           needed_lengths=("wide_um",), choices={"metrics": METRICS})  # fmt: skip
def wide_space(case: Case) -> Found:
    """``layer`` wider than ``wide_um`` (or what is attached to it within ``attached_um``) is ``value`` from any."""
    layer = case.region("layer")
    wide = _wider(layer, case.length("wide_um"))
    if case.has("long_edges_um"):
        short = case.edges("layer").with_length(0, case.length("long_edges_um") + 1, False)
        wide = (wide + layer.not_interacting(short)).merged()
    if wide.is_empty():
        return
    if case.has("attached_um"):
        reach = wide.sized(case.length("attached_um"))
        wide = ((layer - wide) & reach).interacting(wide)
    edges = case.edges("layer")
    yield (edges & wide.edges()).separation_check(edges, case.value, **measure_options(case))


def _wider(layer: kdb.Region, width: int) -> kdb.Region:
    """Return the part of ``layer`` that is more than ``width`` wide: what a square of that size and more can reach."""
    half = (width + 1) // 2
    return layer.sized(-half).sized(half) & layer


@rule_kind("array_space", "layer", lengths=("array_um", "reach_um", "crossing_um", *PROJECTION),
           needed_lengths=("array_um",), ratios=("count",))  # fmt: skip
def array_space(case: Case) -> Found:
    """In arrays of at least ``array_um`` by ``array_um`` the cuts of ``layer`` are at least ``value`` apart.

    Cuts nearer than ``value`` to each other make an array; with ``reach_um``, ``count`` cuts and more that are at most
    that far apart in x and in y, whatever the shape they make, if it has no arm narrower than ``array_um``. With
    ``crossing_um``, cuts ``value`` apart make an array too, and rows may be near if columns are not: only where gaps of
    up to ``crossing_um`` cross each other are cuts too near.
    """
    layer = case.region("layer")
    if case.has("crossing_um"):
        yield _crossing_gaps(case, layer)
        return
    arrays = _joined_arrays(case, layer) if case.has("reach_um") else _square_arrays(layer, (case.value - 1) // 2, case)
    if not arrays.is_empty():
        yield layer.interacting(arrays).space_check(case.value, **measure_options(case))


def _crossing_gaps(case: Case, layer: kdb.Region) -> kdb.Region:
    """Return the gaps between cuts in an array that meet other gaps, as the foundry deck of sg13g2 finds them."""
    cuts = layer.inside(_square_arrays(layer, case.value // 2, case))
    half = case.length("crossing_um") // 2
    gaps = cuts.sized(half, 2).sized(-half, 2) - cuts
    gaps.min_coherence = True  # gaps on two sides of one corner of a cut do not meet
    return gaps.non_rectangles()


def _square_arrays(layer: kdb.Region, reach: int, case: Case) -> kdb.Region:
    half = (case.length("array_um") - 1) // 2
    return layer.sized(reach, 2).sized(-reach, 2).sized(-half, 2).sized(half, 2)


def _joined_arrays(case: Case, layer: kdb.Region) -> kdb.Region:
    """Return what cuts within reach make, as the foundry deck of gf180mcu joins them."""
    half, side = case.length("reach_um") // 2, case.length("array_um")
    arrays = layer.sized(half, 2).merged().sized(-half, 2).with_bbox_min(side, None, False)
    arrays = arrays.interacting(layer, round(case.number("count")) or 1)
    arms = arrays.width_check(side, min_projection=side, max_projection=1000 * side)
    return arrays.not_interacting(arms.polygons())


@rule_kind("separation", "layer", "other", mutual=True, lengths=PROJECTION,
           optional=("abutting", "net_of", "other_net_of"),
           choices={"metrics": METRICS, "overlap": ("forbidden", "allowed"), "nets": NETS})  # fmt: skip
def separation(case: Case) -> Found:
    """``layer`` and ``other`` are at least ``value`` apart; edges of ``other`` shared with ``abutting`` are exempt."""
    layer, other = case.region("layer"), case.region("other")
    if other.is_empty():
        return
    if case.choice("nets") != "any":
        yield _by_nets(case)
        return
    allowed = case.choice("overlap") == "allowed"
    if not allowed:
        yield layer & other
    if not allowed and not case.has("abutting"):
        yield layer.separation_check(other, case.value, **measure_options(case))
        return
    edges, facing = case.edges("layer"), case.edges("other")
    if allowed:
        edges, facing = edges.outside_part(other), facing.outside_part(layer)
    if case.has("abutting"):
        facing = facing - case.edges("abutting")
    yield edges.separation_check(facing, case.value, **measure_options(case))


def _by_nets(case: Case) -> kdb.EdgePairs:
    """Return where the two layers are too near on one net, or on two; what overlaps is of no concern to nets."""
    if case.has("abutting") or case.has("overlap"):
        raise TechnologyError("a rule about nets has neither 'abutting' nor 'overlap'")
    layer, other = _with_nets(case, "layer", "net_of"), _with_nets(case, "other", "other_net_of")
    return layer.separation_check(other, case.value, **measure_options(case), **_net_constraint(case))


@rule_kind("overlap", "layer", "other", mutual=True, **MEASURE)
def overlap(case: Case) -> Found:
    """Where ``layer`` and ``other`` overlap, they do so by at least ``value``."""
    yield case.region("layer").overlap_check(case.region("other"), case.value, **measure_options(case))


@rule_kind("extension", "inner", "outer", lengths=PROJECTION,
           choices={"metrics": METRICS, "ends": ("forbidden", "allowed")})  # fmt: skip
def extension(case: Case) -> Found:
    """Where ``outer`` crosses ``inner``, it reaches at least ``value`` beyond it and never ends within it.

    With ``ends: allowed``, it may end within it.
    """
    inner, outer = case.region("inner"), case.region("outer")
    yield outer.enclosing_check(inner, case.value, **measure_options(case))
    if case.choice("ends") == "forbidden":
        yield outer.corners(-180.0, 0.0, 1, True, False).interacting(inner)


@rule_kind("gate_width", "layer", "active", **MEASURE)
def gate_width(case: Case) -> Found:
    """Channels ``layer`` are at least ``value`` from one side of ``active`` to the other."""
    yield (case.edges("layer") & case.edges("active")).width_check(case.value, **measure_options(case))


@rule_kind("gate_length", "layer", "active", **MEASURE)
def gate_length(case: Case) -> Found:
    """Channels ``layer`` are at least ``value`` from source to drain."""
    yield (case.edges("layer") - case.edges("active")).width_check(case.value, **measure_options(case))
