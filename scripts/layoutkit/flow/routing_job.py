"""What to route, and the routes that were found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import klayout.db as kdb

    from layoutkit.flow.matched_wires import MirroredNets, Obstacle, UnequalMetal
    from layoutkit.flow.port_frame import Frame
    from layoutkit.rectangle import Rect
    from layoutkit.route.net_flows import Draw
    from layoutkit.route.routes import RoutingResult
    from layoutkit.technology import Conductor, Technology


VERY_WIDE_UM = 5.0
"""Wires for a current that would be wider may lie on one more conductor. [um]"""


@dataclass(frozen=True)
class Endpoint:
    """A point that a net must reach, or the middle of a pin that it may reach anywhere. [dbu]

    ``pin`` is ``(left, bottom, right, top)``; its middle may lie between grid points and is rounded to the dbu.
    ``draw`` is what flows through it, where the net's current is stated; None where it is not known.
    """

    layer: str
    x: int
    y: int
    pin: Rect | None = None
    draw: Draw | None = None

    @property
    def box(self) -> kdb.Box:
        """The pin, or the point as a box without area. [dbu]"""
        import klayout.db as kdb

        return kdb.Box(*(self.pin or (self.x, self.y, self.x, self.y)))


@dataclass(frozen=True)
class WantedNet:
    """One net to route.

    Attributes:
        name: Net name.
        endpoints: What it joins.
        width: Wire width; None takes each layer's minimum. [dbu]
        priority: Nets with a smaller number are routed first.
        mirror_of: Net whose wires this net's should mirror.
        symmetric: Whether its wires should be their own mirror image, as far as its pins are.
        match_length: Nets that state the same word are made equally long; empty for none.
        apart_from: Nets beside whose wires this net's cost more.
        shield: Net whose wires are drawn at both sides of this net's.
        current: Largest direct current; None where nobody states it. [A]
        least_cuts: With 2, no endpoint should depend on a single cut.
        avoid_layers: Conductors on which this net's wires cost more.
        hop_layer: Conductor on which its wires leave each endpoint; elsewhere they lie below it. None for any.
        load: The devices on it, as ``net_loads`` lists them; None if no netlist is known.
    """

    name: str
    endpoints: tuple[Endpoint, ...]
    width: int | None
    priority: int
    mirror_of: str | None = None
    symmetric: bool = False
    match_length: str = ""
    apart_from: tuple[str, ...] = ()
    shield: str | None = None
    current: float | None = None
    least_cuts: int = 1
    avoid_layers: tuple[str, ...] = ()
    hop_layer: str | None = None
    load: tuple[str, ...] | None = None


@dataclass(frozen=True)
class RoutingJob:
    """What to route. [dbu]

    Attributes:
        technology: The process, with widths and spaces raised where the caller wants more.
        nets: What to join.
        layers: Conductors for the wires, from below.
        area: Where metal may be drawn; None for the layout and a margin.
        obstacles: Areas to keep clear.
        spelled: Name of the technology to the caller's name of a layer.
        warnings: What was decided while the request was read.
        labels: Names to write on metal of the layout.
        axis_x: Symmetry axis of mirrored nets; None for that of the first two that have one.
        frame: What ports and rails the wires end at, to be moved inwards after routing; None for none.
        by_rings: Whether supplies may reach devices through a resistive conductor of rings; see ``existing_metal``.
        modules: Names of modules by cell and place of their instances, since equal modules may share a cell.
    """

    technology: Technology
    nets: tuple[WantedNet, ...]
    layers: tuple[str, ...]
    area: kdb.Box | None
    obstacles: tuple[Obstacle, ...]
    spelled: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    labels: tuple[tuple[str, Endpoint], ...] = ()
    axis_x: int | None = None
    frame: Frame | None = None
    by_rings: bool = False
    modules: Mapping[tuple[str, kdb.Trans], str] = field(default_factory=dict)


@dataclass(frozen=True)
class Routes:
    """The routes of a job.

    Attributes:
        result: What the router returned.
        area: Where metal could be drawn. [dbu]
        mirrored: Each pair of nets that should be mirror images, and each net that should be its own, with figures.
        overloaded: Each net whose wires or vias may not carry its current, and why.
        unequal: Wires over matched gates, of nets that found no other way.
        length_bound: What the wires of the nets that were routed cannot be shorter than. [dbu]
        frame: The frame of the job, as near to the modules as the wires let it be.
    """

    result: RoutingResult
    area: kdb.Box
    mirrored: tuple[MirroredNets, ...] = ()
    overloaded: Mapping[str, str] = field(default_factory=dict)
    unequal: tuple[UnequalMetal, ...] = ()
    length_bound: int = 0
    frame: Frame | None = None


def track_pitch(technology: Technology) -> int:
    """Return the width and space of a wire of the third conductor. [dbu]"""
    vertical = technology.conductors[2]
    return vertical.width + vertical.space


def routing_conductors(technology: Technology) -> tuple[Conductor, ...]:
    """Return the conductors that carry wires between modules: that of the modules' pins and up to three above."""
    return technology.conductors[1:5]


def wiring_conductors(
    technology: Technology, currents: Mapping[str, float], hops: Iterable[str] = ()
) -> tuple[Conductor, ...]:
    """Return ``routing_conductors``, those up to a hop, and the next one if a current needs very wide wires on all.

    The next one is used only if the wires are at most half as wide there, as on a thick upper conductor.

    Args:
        technology: The process.
        currents: Net to its current. [A]
        hops: Conductors that nets need above the plates of capacitors.
    """
    usual, most = routing_conductors(technology), max(currents.values(), default=0.0) * 1e3
    highest = max((technology.conductors.index(technology.conductor(name)) for name in hops), default=0)
    if highest > len(usual):
        return technology.conductors[1 : highest + 1]
    above = technology.conductors[len(usual) + 1 : len(usual) + 2]
    least = min(each.width_um(most) for each in usual)
    thick = [each for each in above if each.current_ma_um and each.width_um(most) <= least / 2]
    return (*usual, *thick) if least > VERY_WIDE_UM else usual
