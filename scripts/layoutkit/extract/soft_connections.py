"""Soft connections: parts of one net that only a well or the substrate joins.

    metal      ====vss====                      ====(no wire)====
    contact        |                                 |        |
               --[p+ tap]------- p well / substrate --[p+ tap]--[n+ source]--

A well connects bulks to their net but is not a wire: its resistance is kilo-ohms, and a current in it shifts the bulk
voltage. The conductors are therefore connected a second time without wells and substrate. A net that has several parts
then is open.

Metal, poly or silicided diffusion must join device terminals other than bulks, labels, and every tap that has a contact
or abuts a source. A tap without a contact carries no current and is left out. A source that abuts a tap is on the tap's
net, because silicide connects them; a tap ring joins its own contacts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.extract.connectivity import SUBSTRATE, Nets
from layoutkit.extract.extracted import Label, SoftConnection, point_um

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
