"""Leave out what joins a rail to a strap of its net, where the rail is to lie over the strap.

rail   =====[v]=====
             |             =============   rail and strap
strap  -----[v]-----   ->  -----[v]-----
             |                   |         a wire from further inside ends at the strap
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import klayout.db as kdb

from layoutkit.route.metal import NetMetal, cut_index, pads
from layoutkit.route.routes import Wire

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from layoutkit.flow.port_frame import Port
    from layoutkit.route.routes import Point, RoutedNet, Via
    from layoutkit.route.routing_stack import Stack


class RailLink(NamedTuple):
    """A wire from a via on a strap to a via on a rail; ``points`` are those of the wire, that at the rail last."""

    wire: Wire
    points: tuple[Point, ...]
    at_strap: Via
    at_rail: Via


def rail_links(stack: Stack, net: RoutedNet, rail: Port, straps: kdb.Region) -> list[RailLink]:
    """Return the wires that end at ``rail`` and come from a strap in a straight line, with as many cuts there.

    Args:
        stack: The rules.
        net: The net of the rail.
        rail: The rail.
        straps: Metal of the net in modules, on the conductor of the rail.
    """
    along = 1 if rail.box.width() > rail.box.height() else 0
    level, found = stack.index(rail.layer), []
    for at_rail in net.vias:
        place = at_rail.x, at_rail.y
        wires = [wire for wire in net.wires if _reaches(wire, place)]
        alone = sum((via.x, via.y) == place for via in net.vias) == 1 and len(wires) == 1
        on_rail = cut_index(stack, at_rail.cut) == level and rail.box.contains(kdb.Point(*place))
        if not (alone and on_rail) or wires[0].layer == rail.layer or place not in {*_ends(wires[0])}:
            continue
        points = wires[0].points if wires[0].points[-1] == place else wires[0].points[::-1]
        if points[-2][1 - along] != place[1 - along] or _patched(stack, net, at_rail):
            continue
        low, high = sorted((points[-2][along], place[along]))
        fit = [
            via
            for via in net.vias
            if via is not at_rail
            and (via.cut, (via.x, via.y)[1 - along]) == (at_rail.cut, place[1 - along])
            and low <= (via.x, via.y)[along] <= high
            and via.columns * via.rows >= at_rail.columns * at_rail.rows
            and not _strap_at(stack, straps, via).is_empty()
        ]
        if fit:
            nearest = min(fit, key=lambda via: abs((via.x, via.y)[along] - place[along]))
            found.append(RailLink(wires[0], points, nearest, at_rail))
    return found


def without_links(stack: Stack, net: RoutedNet, links: Sequence[RailLink]) -> RoutedNet:
    """Return the net without the vias at the rail; wires end at the strap, and what only led there is left out."""
    gone: list[Via] = [link.at_rail for link in links]
    shorter: dict[Wire, Wire | None] = {}
    for link in links:
        end = link.at_strap.x, link.at_strap.y
        points = (*link.points[:-1], *(() if link.points[-2] == end else (end,)))
        shorter[link.wire] = replace(link.wire, points=points) if len(points) > 1 else None
    wires = [kept for wire in net.wires if (kept := shorter.get(wire, wire)) is not None]
    for link in links:
        place = link.at_strap.x, link.at_strap.y
        used = any(wire.layer == link.wire.layer and _reaches(wire, place) for wire in wires)
        used |= any((via.x, via.y) == place and via is not link.at_strap for via in net.vias)
        if not used and not _patched(stack, net, link.at_strap):
            gone.append(link.at_strap)
    vias = [via for via in net.vias if via not in gone]
    steps = (shorter.get(step, step) if isinstance(step, Wire) else step for step in net.path)
    path = tuple(step for step in steps if step is not None and step not in gone)
    places = {(via.cut, via.x, via.y) for via in gone}
    length = net.wire_length - sum(_length(wire) - (_length(kept) if kept else 0) for wire, kept in shorter.items())
    return replace(
        net,
        wires=tuple(wires),
        vias=tuple(vias),
        path=path,
        metal=NetMetal([], wires, vias, list(net.patches), []).layers(stack),
        wire_length=length,
        via_count=len(vias),
        single_cuts=tuple(each for each in net.single_cuts if (each.cut, each.x, each.y) not in places),
        shielded=min(net.shielded, length),
    )


def touches_strap(stack: Stack, rail: Port, via: Via, straps: kdb.Region) -> bool:
    """Return whether a rail touches the strap that ``via`` lies on."""
    return not _strap_at(stack, straps, via).interacting(kdb.Region(rail.box)).is_empty()


def _strap_at(stack: Stack, straps: kdb.Region, via: Via) -> kdb.Region:
    """Return the strap under the lower pad of a via."""
    _, pad = min(pads(stack, via))
    return straps.interacting(kdb.Region(kdb.Box(*pad)))


def _ends(wire: Wire) -> Iterator[Point]:
    yield from (wire.points[0], wire.points[-1])


def _reaches(wire: Wire, place: Point) -> bool:
    """Return whether the middle of a wire passes a point."""
    x, y = place
    return any(
        min(a[0], b[0]) <= x <= max(a[0], b[0]) and min(a[1], b[1]) <= y <= max(a[1], b[1])
        for a, b in zip(wire.points, wire.points[1:], strict=False)
    )


def _patched(stack: Stack, net: RoutedNet, via: Via) -> bool:
    """Return whether patches touch the pads of a via."""
    rects = [(stack.conductors[level].name, kdb.Box(*rect)) for level, rect in pads(stack, via)]
    return any(
        patch.layer == layer and kdb.Box(*patch.rect).touches(box) for patch in net.patches for layer, box in rects
    )


def _length(wire: Wire) -> int:
    return sum(abs(a[0] - b[0]) + abs(a[1] - b[1]) for a, b in zip(wire.points, wire.points[1:], strict=False))
