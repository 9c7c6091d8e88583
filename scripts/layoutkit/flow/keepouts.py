"""Areas that wires keep clear, and the second try for nets that find no way around those over matched gates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from layoutkit.route.occupancy import overlaps
from layoutkit.route.router import cuts_of, route
from layoutkit.route.routes import RouteOptions, rect_of

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    import klayout.db as kdb

    from layoutkit.rectangle import Rect
    from layoutkit.route.routes import EqualLengths, Mirrored, NetRequest, RoutingResult
    from layoutkit.technology import Technology

    Obstacles = dict[str, list[tuple[kdb.Box | kdb.Polygon | kdb.Region, str | None]]]

ObstacleKind = Literal["metal", "rule", "matching"]
MANY_FAILED, FEW = 0.25, 8
"""If more than this part of all nets and more than this number fail, the placement is the cause, not the keepouts."""


class RoutingFrame(NamedTuple):
    """Where and how nets are routed: process, area [dbu], conductors, axis of mirrored nets [dbu], equal lengths.

    If one of the ``essential`` nets has no way around all keepouts, no net is routed. Without ``patient``, no net is
    routed either if any net has no way even over matched gates; and if many nets fail, they are not tried again.
    """

    technology: Technology
    area: kdb.Box
    layers: Sequence[str]
    axis_x: int | None
    equal_lengths: tuple[EqualLengths, ...] = ()
    essential: tuple[str, ...] = ()
    patient: bool = True


@dataclass(frozen=True)
class Obstacle:
    """An area of one conductor or cut that wires keep clear.

    Attributes:
        layer: Name of the conductor or cut.
        box: The area. [dbu]
        kind: ``metal``: wires keep their distance, as to drawn metal. ``rule``: a keepout that a design rule needs;
            wires may touch its edge. ``matching``: the same, to keep the metal over matched gates equal; it is given
            up for a net that finds no other way.
        devices: Devices whose gates a keepout of kind ``matching`` covers.
    """

    layer: str
    box: kdb.Box
    kind: ObstacleKind = "metal"
    devices: tuple[str, ...] = ()


@dataclass(frozen=True)
class UnequalMetal:
    """A wire over matched gates that the others do not have: its net, and the keepout that it enters."""

    net: str
    keepout: Obstacle

    def to_json(self, technology: Technology) -> dict[str, Any]:
        """Return it as JSON data, lengths in micrometres."""
        box = self.keepout.box
        return {
            "net": self.net,
            "layer": self.keepout.layer,
            "box": [technology.to_um(side) for side in (box.left, box.bottom, box.right, box.top)],
            "devices": list(self.keepout.devices),
        }


def over_gates(found: Iterable[UnequalMetal]) -> list[str]:
    """Return a warning for each net and layer with wires over matched gates that the others do not have."""
    devices: dict[tuple[str, str], dict[str, None]] = {}
    for each in found:
        devices.setdefault((each.net, each.keepout.layer), {}).update(dict.fromkeys(each.keepout.devices))
    return [
        f"net {net} finds no way around the gates of {', '.join(names) or 'a matched group'}: "
        f"its {layer} lies over some of them, so that the metal above them is not equal"
        for (net, layer), names in devices.items()
    ]


def route_around(
    areas: Sequence[Obstacle], requests: Sequence[NetRequest], obstacles: Obstacles, search: RoutingFrame
) -> RoutingResult:
    """Return the routes around all keepouts; nets that find no way may enter those for matching.

    The nets that failed are routed again beside the others first; if that does not help, all nets are routed again.
    ``RoutingFrame`` says when neither is tried.

    Args:
        areas: Areas to keep clear; those of kind ``metal`` are among the obstacles.
        requests: The nets.
        obstacles: Metal and cuts that are already there, with their nets.
        search: Where to route.
    """

    def options(kinds: Container[str], essential: tuple[str, ...] = ()) -> RouteOptions:
        rects = [each for each in areas if each.kind in kinds]
        return RouteOptions(
            axis_x=search.axis_x,
            equal_lengths=search.equal_lengths,
            keepouts=tuple((each.layer, rect_of(each.box)) for each in rects),
            essential=essential,
        )

    def closed(names: tuple[str, ...]) -> bool:
        """Return whether one of these nets has no way, even without the wires of others and over matched gates."""
        some = [replace(net, mirror_of=None, symmetric=False) for net in requests if net.name in names]
        alone = replace(options(("rule",), names), equal_lengths=())
        return not route(search.technology, some, around, search.area, search.layers, alone).iterations

    around = _with_terminals(requests, obstacles)
    first = options(("rule", "matching"), search.essential)
    first = first if search.patient else replace(first, gives_up=closed)
    strict = route(search.technology, requests, obstacles, search.area, search.layers, first)
    if not strict.failed or not strict.iterations or all(each.kind != "matching" for each in areas):
        return strict
    if not search.patient and len(strict.failed) > max(FEW, MANY_FAILED * len(requests)):
        return strict
    failed = {net.name for net in strict.failed}
    beside = _with_routed(search.technology, around, strict)
    again = [
        replace(net, mirror_of=net.mirror_of if net.mirror_of in failed else None)
        for net in requests
        if net.name in failed
    ]
    second = route(search.technology, again, beside, search.area, search.layers, options(("rule",)))
    routed = {net.name: net for net in (*strict.nets, *second.nets)}
    both = replace(
        strict,
        nets=tuple(routed[net.name] for net in strict.nets),
        mirrored=tuple(_mirrored_again(each, second, failed) for each in strict.mirrored),
    )
    if not both.failed:
        return both
    free = route(search.technology, requests, obstacles, search.area, search.layers, options(("rule",)))
    return min((both, free), key=lambda each: len(each.failed))


def _mirrored_again(before: Mirrored, second: RoutingResult, failed: Container[str]) -> Mirrored:
    """Return what became of a mirrored net or pair after the nets that failed were routed again."""
    if not any(net in failed for net in before.nets):
        return before
    again = {each.nets: each for each in second.mirrored}
    return again.get(before.nets, replace(before, exact=False, reason="its partner was routed without it"))


def _with_terminals(requests: Sequence[NetRequest], obstacles: Obstacles) -> Obstacles:
    """Return obstacles together with the terminals of all nets."""
    found = {layer: list(shapes) for layer, shapes in obstacles.items()}
    for request in requests:
        for terminal in request.terminals:
            found.setdefault(terminal.layer, []).append((terminal.box, request.name))
    return found


def _with_routed(technology: Technology, obstacles: Obstacles, result: RoutingResult) -> Obstacles:
    """Return obstacles together with what a result draws."""
    import klayout.db as kdb

    found = {layer: list(shapes) for layer, shapes in obstacles.items()}
    for net in result.nets:
        for layer, rect in (*net.metal, *cuts_of(technology, net)):
            found.setdefault(layer, []).append((kdb.Box(*rect), net.name))
    return found


def unequal_metal(technology: Technology, areas: Sequence[Obstacle], result: RoutingResult) -> Iterator[UnequalMetal]:
    """Yield each keepout for matching that a net of a result entered."""
    kept = [(each, rect_of(each.box)) for each in areas if each.kind == "matching"]
    for net in result.nets:
        drawn: dict[str, list[Rect]] = {}
        for layer, rect in (*net.metal, *cuts_of(technology, net)):
            drawn.setdefault(layer, []).append(rect)
        for keepout, area in kept:
            if any(overlaps(area, rect) for rect in drawn.get(keepout.layer, ())):
                yield UnequalMetal(net.name, keepout)
