"""Room for wires that found no way: at which modules more is needed, and what was tried within the budget of tries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, sqrt
from typing import TYPE_CHECKING, Any

import klayout.db as kdb

from layoutkit.flow.hierarchy import InstanceGroup
from layoutkit.flow.routing_job import track_pitch
from layoutkit.route.routes import tree_bound

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from layoutkit.flow.placing import PlacedModules
    from layoutkit.flow.routing_job import Routes, RoutingJob
    from layoutkit.technology import Technology

MOST_TRIES = 6
"""Budget: placements that are tried, each with a trial routing, until every net is routed."""
FIRST_TRACKS = 0
"""Room between all blocks in the first try, in track pitches: wires run over modules, on the upper conductors."""
NEXT_TRACKS = 1
"""Room between all blocks in the second try, in track pitches."""
CROWDED = 0.09
"""If signal wires need more than this part of the free tracks of all conductors, modules have room between them in the
first try. Without that room, wires in chains of 80 current mirrors or single transistors (0.10 to 0.16) find no way; in
most circuits below 0.08 they do."""
ROOMY = 0.065
"""The part that signal wires need with that room. In chains of 80 and 160 current mirrors, up to 0.075 is enough."""
MANY = 24
"""Number of modules from which the first try may have room. A first try with fewer costs little, and most succeed."""
MORE_TRACKS = 2
"""Room that is added around a module in the way of a net, in track pitches; twice that where it was not enough."""


@dataclass(frozen=True)
class Room:
    """Room for wires beyond what the rules need. [dbu]

    Attributes:
        between: Between all neighbours.
        around: Around single modules, by name.
        cover: Whether plate capacitors may lie over other modules.
        rails_over: Whether rails may lie over modules.
    """

    between: int
    around: Mapping[str, int]
    cover: bool = True
    rails_over: bool = True


@dataclass(frozen=True)
class PlacementTry:
    """One placement that was tried.

    Attributes:
        room: Room for wires that it had.
        failed: Nets that found no way in it.
        unequal: Nets that found a way over matched gates only.
    """

    room: Room
    failed: tuple[str, ...]
    unequal: tuple[str, ...]

    def to_json(self, technology: Technology) -> dict[str, Any]:
        """Return it as JSON data, lengths in micrometres."""
        return {
            "room": technology.to_um(self.room.between),
            "modules": {name: technology.to_um(room) for name, room in sorted(self.room.around.items())},
            "failed": list(self.failed),
            "over_gates": list(self.unequal),
        }


def first_room(technology: Technology, row_gap: float | None) -> Room:
    """Return the room of the first try: ``row_gap`` [um] taken up to the grid, where it is given."""
    if row_gap is not None:
        return Room(technology.snap_up(technology.to_dbu(row_gap)), {})
    return Room(FIRST_TRACKS * track_pitch(technology), {})


def next_room(technology: Technology, room: Room) -> Room:
    """Return ``room`` with the least room between all modules that a second try has."""
    return replace(room, between=max(room.between, NEXT_TRACKS * track_pitch(technology)))


def uncrowded(room: Room, placed: PlacedModules, job: RoutingJob) -> Room:
    """Return the room to begin with: ``room``, or more where wires of signals need too many of the free tracks.

    Room of k times the mean side of a module adds 2 k times the area on each conductor. The term with k squared is left
    out, because the wires become longer as well.
    """
    if len(placed.drawn) < MANY:
        return room
    box, pitch = placed.placement.box, track_pitch(placed.technology)
    signals = (net for net in job.nets if net.least_cuts == 1)
    pins = ([point.box for point in net.endpoints] for net in signals)
    wires = sum(tree_bound([(pin.left, pin.bottom, pin.right, pin.top) for pin in each]) for each in pins)
    free = _free_area(placed, job)
    if wires * pitch <= CROWDED * free:
        return room
    area = (box.right - box.left) * (box.top - box.bottom)
    part = (wires * pitch / ROOMY - free) / (2 * len(job.layers) * area)
    tracks = ceil(part * sqrt(area / len(placed.drawn)) / pitch)
    return replace(room, between=room.between + tracks * pitch)


def _free_area(placed: PlacedModules, job: RoutingJob) -> int:
    """Return the area in which wires may lie, on all conductors: not near metal, nor in keepouts. [dbu2]"""
    whole, found = kdb.Region(job.area or placed.cell.bbox()), 0
    for name in job.layers:
        conductor = placed.technology.conductor(name)
        layer = placed.technology.layer(placed.layout, conductor.layer)
        metal = kdb.Region(placed.cell.begin_shapes_rec(layer))
        taken = metal.merged().sized(conductor.space + conductor.width // 2)
        for each in job.obstacles:
            if each.layer == name:
                taken.insert(each.box)
        found += (whole - taken).area()
    return found


def more_room(room: Room, placed: PlacedModules, routes: Routes) -> Room:
    """Return more room: between all modules after the first try, then at the modules that stood in the way.

    Where no module is known to, there is more between all of them. Where rails or capacitors lie over modules, they lie
    beside them next; where wires are too weak for their currents, rails do so at once.
    """
    if room.rails_over and any(net.weak for net in routes.result.nets):
        return replace(room, rails_over=False)
    if room != next_room(placed.technology, room):
        return next_room(placed.technology, room)
    if routes.result.failed and room.rails_over:
        return replace(room, rails_over=False)
    step = MORE_TRACKS * track_pitch(placed.technology)
    if routes.result.failed and placed.overlays:
        return replace(room, cover=False)
    blocking = set(_blocking(placed, routes))
    if not blocking or blocking <= {name for name, given in room.around.items() if given >= 4 * step}:
        return replace(room, between=room.between + step)
    given = {name: max(step, 2 * room.around.get(name, 0)) for name in blocking}
    return replace(room, around={**room.around, **given})


def held_inside(placed: PlacedModules, routes: Routes) -> set[str]:
    """Return the nets that metal inside of shared cells leaves no way; room beside the cells does not help them."""
    items = (item for item in placed.drawn if isinstance(item.group, InstanceGroup))
    boxes = [placed.place_of(item.module, item.module.bbox) for item in items]
    return {
        net.name
        for net in routes.result.failed
        if net.blocked_by
        and not net.conflicts
        and all(
            each.kind == "metal" and each.module and any(box.contains(*each.at) for box in boxes)
            for each in net.blocked_by
        )
    }


def _blocking(placed: PlacedModules, routes: Routes) -> Iterator[str]:
    """Yield the modules that hold what blocks nets, or that lie nearest to it where wires block."""
    owner = {device: item.module.name for item in placed.drawn for device in item.module.devices}
    boxes = {item.module.name: placed.place_of(item.module, item.module.bbox) for item in placed.drawn}
    for wire in routes.unequal:
        yield from (owner[device] for device in wire.keepout.devices if device in owner)
    for blocker in (blocker for net in routes.result.failed for blocker in net.blocked_by if blocker.kind != "edge"):
        if blocker.module in boxes:
            yield blocker.module
            continue
        x, y = blocker.at
        apart = {
            name: max(box.left - x, x - box.right, 0) + max(box.bottom - y, y - box.top, 0)
            for name, box in boxes.items()
        }
        yield from sorted(apart, key=lambda name: (apart[name], name))[:2]
