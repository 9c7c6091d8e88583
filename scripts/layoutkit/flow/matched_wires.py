"""What matching asks of wires: areas that they keep clear, and nets that are mirror images.

Nets that find no way around the areas over matched gates are tried a second time, without those. How far nets are from
mirror images is measured: lengths, vias, capacitance, and the metal that differs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from layoutkit.rectangle import overlaps
from layoutkit.route.equal_loads import capacitance
from layoutkit.route.router import cuts_of, route
from layoutkit.route.routes import RouteOptions, rect_of

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.rectangle import Rect
    from layoutkit.route.routes import EqualLengths, Mirrored, NetRequest, RoutedNet, RoutingResult
    from layoutkit.technology import Technology

    Obstacles = dict[str, list[tuple[kdb.Box | kdb.Polygon | kdb.Region, str | None]]]

ObstacleKind = Literal["metal", "rule", "matching"]
MANY_FAILED, FEW = 0.25, 8
"""If more than this part of all nets and more than this number fail, the placement is the cause, not the keepouts."""
MIRROR_ERROR = 0.02
"""Largest mirror error of two whole nets, metal inside modules included, that is not mentioned."""
LOAD_MISMATCH = 0.02
"""Difference in length or capacitance, as a share of the larger one, that is left for want of room only."""


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


@dataclass(frozen=True)
class MirroredNets:
    """Two nets that should be mirror images, or one that should be its own.

    Attributes:
        nets: Their names.
        exact: Whether wires and cuts are mirror images as they are drawn in the end, to the database unit.
        reason: Why not; empty where they are.
        wire_lengths: Of each net. [dbu]
        via_counts: Of each net; a via has one cut or several.
        cut_counts: Of each net.
        capacitances: Of each net's wires to the substrate [aF]; empty where the technology states no numbers.
        wires_error: Area of the wires that differ from the mirror image, over twice their area.
        error: The same for all metal of the nets above the first conductor's contacts, in modules, too.
        totals: Capacitance of each net in the layout, modules and couplings included [fF]; empty if not measured.
        unlike_coupling: By how much two nets differ in what each single signal couples to them, summed. [fF]
        alike: False where different devices are known to hang on two nets, so that these cannot load equally.
    """

    nets: tuple[str, ...]
    exact: bool
    reason: str
    wire_lengths: tuple[int, ...]
    via_counts: tuple[int, ...]
    cut_counts: tuple[int, ...]
    capacitances: tuple[float, ...]
    wires_error: float
    error: float
    totals: tuple[float, ...] = ()
    unlike_coupling: float = 0.0
    alike: bool = True

    @property
    def text(self) -> str:
        """It in words."""
        within = "metal inside the modules, which share one row or lie at different heights, does not"
        if self.exact:
            inside = f"; {within}: mirror error {self.error:.3g}" if self.error > MIRROR_ERROR else ""
            differ = _mismatch(self.totals) or 0.0
            unequal = f"; modules load the nets unequally: their capacitance differs by {differ:.2%}"
            return f"the wires are mirror images{inside}{unequal if differ > LOAD_MISMATCH else ''}"
        if len(self.nets) < 2:
            return self.reason
        length, vias, cuts, load = (
            _mismatch(each) for each in (self.wire_lengths, self.via_counts, self.cut_counts, self.loads)
        )
        last = "" if load is None else f", in capacitance by {load:.2%}"
        counts = f"in vias by {vias or 0:.2%}, in cuts by {cuts or 0:.2%}"
        full = "; there is no room for further bumps or stubs" if self.lacks > 0 else ""
        return f"{self.reason}; the nets differ in length by {length or 0:.2%}, {counts}{last}{full}"

    @property
    def loads(self) -> tuple[float, ...]:
        """Capacitance of each net in the layout if that is measured, else of its wires to the substrate."""
        return self.totals or self.capacitances

    @property
    def lacks(self) -> float:
        """By how much two nets that are no mirror images differ beyond ``LOAD_MISMATCH``."""
        differences = [_mismatch(each) or 0.0 for each in (self.wire_lengths, self.loads)]
        return 0.0 if self.exact or len(self.nets) < 2 else max(0.0, max(differences) - LOAD_MISMATCH)

    @property
    def unequal_loads(self) -> float:
        """By how much two nets with equal devices differ beyond ``LOAD_MISMATCH``, mirror images or not.

        It is the larger difference: of their whole capacitances, or of what the signals couple to them, both over the
        larger of their whole capacitances.
        """
        if not self.alike or not self.totals:
            return 0.0
        coupling = self.unlike_coupling / max(*self.totals, 1e-9)
        return max(0.0, max(_mismatch(self.totals) or 0.0, coupling) - LOAD_MISMATCH)

    def to_json(self, technology: Technology) -> dict[str, Any]:
        """Return it as JSON data, lengths in micrometres, capacitances in femtofarads."""
        data: dict[str, Any] = {
            "nets": list(self.nets),
            "exact": self.exact,
            "wire_length": [technology.to_um(length) for length in self.wire_lengths],
            "via_count": list(self.via_counts),
            "wires_error": round(self.wires_error, 4),
            "mirror_error": round(self.error, 4),
        }
        if self.reason:
            data["reason"] = self.reason
        if self.capacitances:
            data["capacitance_ff"] = [round(each / 1000, 4) for each in self.capacitances]
        if self.totals:
            data["total_ff"] = [round(each, 4) for each in self.totals]
        if len(self.nets) == 2:
            mismatches = {
                "length": _mismatch(self.wire_lengths),
                "vias": _mismatch(self.via_counts),
                "cuts": _mismatch(self.cut_counts),
                "capacitance": _mismatch(self.loads),
            }
            data["mismatch"] = {name: round(value, 4) for name, value in mismatches.items() if value is not None}
        return data


def _mismatch(values: Sequence[float]) -> float | None:
    """Return the difference of two values over the larger one; None where there are none."""
    if len(values) < 2:
        return None
    return abs(values[0] - values[1]) / max(*values) if max(values) else 0.0


def measured_mirrors(
    technology: Technology, result: RoutingResult, axis_x: int | None, fixed: Obstacles
) -> tuple[MirroredNets, ...]:
    """Return the figures of each net or pair of a result that was to be mirrored and is routed.

    Args:
        technology: States the capacitance of conductors.
        result: The routes.
        axis_x: Axis of the mirror; None where the nets have none: then the metal differs wholly. [dbu]
        fixed: Metal that was there before, with its nets.
    """
    return tuple(
        _measured(technology, each, [result.net(net) for net in each.nets], axis_x, fixed)
        for each in result.mirrored
        if all(result.net(net).success for net in each.nets)
    )


def _measured(
    technology: Technology, mirrored: Mirrored, nets: Sequence[RoutedNet], axis_x: int | None, fixed: Obstacles
) -> MirroredNets:
    wires = [_regions(technology, net) for net in nets]
    wires_error = mirror_error(wires[0], wires[-1], axis_x)
    reason = mirrored.reason or ("wires changed when the frame moved" if wires_error else "")
    whole = [_with_fixed(regions, net.name, fixed, technology) for regions, net in zip(wires, nets, strict=True)]
    return MirroredNets(
        mirrored.nets,
        mirrored.exact and not wires_error,
        reason,
        tuple(net.wire_length for net in nets),
        tuple(net.via_count for net in nets),
        tuple(sum(via.columns * via.rows for via in net.vias) for net in nets),
        tuple(found for regions in wires for found in [capacitance(technology, regions)] if found is not None),
        wires_error,
        mirror_error(whole[0], whole[-1], axis_x),
    )


def _regions(technology: Technology, net: RoutedNet) -> dict[str, kdb.Region]:
    """Return the merged metal and cuts that a net draws, by conductor and cut."""
    import klayout.db as kdb

    found: dict[str, kdb.Region] = {}
    for layer, rect in (*net.metal, *cuts_of(technology, net)):
        found.setdefault(layer, kdb.Region()).insert(kdb.Box(*rect))
    return {layer: region.merged() for layer, region in sorted(found.items())}


def _with_fixed(
    regions: Mapping[str, kdb.Region], net: str, fixed: Obstacles, technology: Technology
) -> dict[str, kdb.Region]:
    """Return metal of a net on all conductors, with what was there before."""
    import klayout.db as kdb

    names = {conductor.name for conductor in technology.conductors}
    found = {layer: region.dup() for layer, region in regions.items() if layer in names}
    for layer, shapes in fixed.items():
        for geometry, owner in shapes:
            if owner == net and layer in names:
                found.setdefault(layer, kdb.Region()).insert(geometry)
    return {layer: region.merged() for layer, region in sorted(found.items())}


def mirror_error(one: Mapping[str, kdb.Region], other: Mapping[str, kdb.Region], axis_x: int | None) -> float:
    """Return the area by which one differs from the mirror image of the other, over the area of both; 0: equal."""
    import klayout.db as kdb

    differs = total = 0
    for layer in sorted({*one, *other}):
        first, second = one.get(layer, kdb.Region()), other.get(layer, kdb.Region())
        total += first.area() + second.area()
        image = kdb.Region() if axis_x is None else first.transformed(kdb.Trans(kdb.Trans.M90)).moved(2 * axis_x, 0)
        differs += (image ^ second).area()
    return differs / total if total else 0.0
