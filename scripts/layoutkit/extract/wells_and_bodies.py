"""What only shapes of wells and bodies show: soft connections, and bodies without width and length.

A soft connection: parts of one net that only a well or the substrate joins.


    metal      ====vss====                      ====(no wire)====
    contact        |                                 |        |
               --[p+ tap]------- p well / substrate --[p+ tap]--[n+ source]--

A well connects bulks to their net but is not a wire: its resistance is kilo-ohms, and a current in it shifts the bulk
voltage. The conductors are therefore connected a second time without wells and substrate. A net that has several parts
then is open.

Metal, poly or silicided diffusion must join device terminals other than bulks, labels, and every tap that has a
contact or abuts a source. A tap without a contact carries no current and is left out. A source that abuts a tap is on
the tap's net, because silicide connects them; a tap ring joins its own contacts.

Bodies without width and length: KLayout takes both from the outline, whatever its shape.

A channel or the body of a resistor is a strip of one width, straight or bent: its area is w * l and its outline 2 * (w
+ l), with l along its middle. Where its width changes, the two numbers that KLayout reports are those of no rectangle
that conducts like it. A plate or a junction is measured by area and perimeter, which is right for any shape whose two
numbers some rectangle has; a rounder shape has more area than any.

    bulge  __|""|__      notch  ""|__|""      branch  __|  |__
           --------             --------              --------
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.extract.cell_devices import SUBSTRATE
from layoutkit.extract.connectivity import Nets
from layoutkit.extract.extracted import Label, SoftConnection, point_um
from layoutkit.technology.device_kinds import SIZE_TOLERANCE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from layoutkit.extract.connectivity import ElectricalLayers
    from layoutkit.extract.extracted import Point


_WELLS = frozenset({"nwell", "deep_nwell", "p_body", SUBSTRATE})
_TAPS = {"n_tap": "n+ tap", "p_tap": "p+ tap"}
_CARRIES_CURRENT = ("contact", "n_sd", "p_sd")


@dataclass(frozen=True)
class _Piece:
    """A part of a net that metal joins: its number in the second extraction, and a place on one of its taps."""

    number: int
    tap: str
    inside: kdb.Point


def metal_nets(layers: ElectricalLayers, dbu_um: float) -> Nets:
    """Return what metal, poly and diffusion join: the nets without wells and substrate.

    Call this before devices are extracted: KLayout's extraction adds a shape for each terminal to ``layers``, with
    properties that keep a later extraction from joining it.
    """
    regions = {name: region for name, region in layers.conducting.items() if name not in _WELLS}
    return Nets(regions, layers.joins, dbu_um)


def soft_connections(
    lvs: kdb.LayoutVsSchematic, metal: Nets, labels: Mapping[int, Sequence[Label]]
) -> tuple[SoftConnection, ...]:
    """Return the nets that only wells and substrate join, each with a place for every part.

    Args:
        lvs: The extraction with wells and substrate.
        metal: The extraction without.
        labels: The labels of every net, by its number in ``lvs``.
    """
    pieces: dict[int, list[_Piece]] = {}
    for piece in _pieces(metal):
        net = lvs.probe_net(lvs.polygons_by_name(piece.tap), piece.inside)
        if net is not None:
            pieces.setdefault(net.cluster_id, []).append(piece)
    return tuple(
        SoftConnection(net, _places(parts, labels.get(net, ()), metal))
        for net, parts in sorted(pieces.items())
        if len(parts) > 1
    )


def _pieces(metal: Nets) -> list[_Piece]:
    """Return the parts that have a tap and carry current, each with the place of its first tap."""
    found = []
    for net in metal.every():
        for tap in _TAPS:
            shapes = metal.shapes(net, tap)
            if shapes.is_empty():
                continue
            current = (metal.shapes(net, name) for name in _CARRIES_CURRENT)
            if any(not region.is_empty() for region in current):
                found.append(_Piece(net.cluster_id, tap, _inside(shapes)))
            break
    return found


def _inside(shapes: kdb.Region) -> kdb.Point:
    """Return a point within ``shapes``; the centre of a ring's box lies outside it."""
    return min(shapes.decompose_trapezoids_to_region().each(), key=str).bbox().center()


def _places(parts: Sequence[_Piece], labels: Sequence[Label], metal: Nets) -> tuple[tuple[str, Point], ...]:
    """Return a name and a place for each piece: those of a label on it, else of its tap."""
    labelled: dict[int, tuple[str, Point]] = {}
    for label in (label for label in labels if label.conductor in metal.regions):
        at = kdb.Point(round(label.place.x / metal.unit_um), round(label.place.y / metal.unit_um))
        net = metal.at(label.conductor, at)
        if net is not None:
            labelled.setdefault(net.cluster_id, (label.text, label.place))
    places = [labelled.get(part.number, (_TAPS[part.tap], point_um(part.inside, metal.unit_um))) for part in parts]
    return tuple(sorted(places, key=lambda item: (item[0] in _TAPS.values(), item)))


_SLACK = 1  # deviation of an edge that is no other width; of sloped edges, whose corners are off the grid, a few [dbu]
_SLOPED_SLACK = 6


def unmeasured(bodies: kdb.Region, dbu_um: float, *, strips: bool) -> Iterator[tuple[kdb.Polygon, str]]:
    """Yield the bodies of devices that have no width and length, each with the reason.

    Args:
        bodies: Bodies of devices of one type.
        dbu_um: Database unit. [um]
        strips: Whether current flows along them: channels and resistors. Else area and perimeter count.
    """
    for polygon in bodies.merged().each():
        if polygon.is_box():
            continue
        area, half = polygon.area(), polygon.perimeter() / 2
        rest = half * half / 4 - area
        if rest < -SIZE_TOLERANCE * area:
            yield polygon, f"no rectangle has its area of {area * dbu_um**2:g} um2 and its perimeter"
        elif strips:
            width = half / 2 - math.sqrt(max(rest, 0.0))
            least, most = _widths(polygon, width)
            if (least, most) != (width, width):
                yield polygon, f"its width changes between {least * dbu_um:.3f} and {most * dbu_um:.3f} um"
            elif _ends(polygon, width) != 2:
                yield polygon, "it branches"


def _widths(polygon: kdb.Polygon, width: float) -> tuple[float, float]:
    """Return the least and the largest width, each ``width`` where it does not deviate from it. [dbu]"""
    region = kdb.Region(polygon)
    slack = _SLACK if polygon.is_rectilinear() else _SLOPED_SLACK
    narrow = region.width_check(max(1, math.ceil(width) - slack))
    least = min((pair.distance() for pair in narrow.each()), default=width)
    if region.sized(-(math.floor(width / 2) + slack), 2).is_empty():
        return least, width
    low, high = math.floor(width / 2) + slack, max(polygon.bbox().width(), polygon.bbox().height())
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if region.sized(-middle, 2).is_empty() else (middle, high)
    return least, 2.0 * high


def _ends(polygon: kdb.Polygon, width: float) -> int:
    """Return how many edges are as long as a strip is wide and lie between two outer corners: a strip has two."""
    edges = list(polygon.each_edge())
    slack = _SLACK if polygon.is_rectilinear() else _SLOPED_SLACK
    outer = [edge.d().vprod_sign(edges[(i + 1) % len(edges)].d()) < 0 for i, edge in enumerate(edges)]
    return sum(abs(edge.length() - width) <= slack and outer[i] and outer[i - 1] for i, edge in enumerate(edges))
