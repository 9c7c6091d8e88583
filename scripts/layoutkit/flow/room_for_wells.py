"""Room around modules whose wells stand too close where nothing can join them.

Wells of one net may touch, so placement asks for no gap between them. Where two of them nearly meet at a corner and
other diffusion lies in both of the remaining quarters, neither the gap nor a way around it can be filled::

    n n n  P P P
    n n n  P P P     P: n wells of one net, 0.6 um apart in x and y; they need 1.4 um
                     n: n channels and their taps, too close to each other for an n well between them
    P P P  n n n
    P P P  n n n
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.flow.joined_wells import space_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from layoutkit.flow.instances import Well
    from layoutkit.flow.placing import PlacedModules


def close_wells(placed: PlacedModules) -> list[tuple[Well, kdb.EdgePair]]:
    """Return where wells of one net are closer than two wells may be, with the sides that face each other."""
    return [
        (well, pair)
        for well in placed.wells
        for pair in well.shapes.isolated_check(space_of(placed.technology, well), False, kdb.Metrics.Euclidian).each()
    ]


def room_for_wells(placed: PlacedModules, given: Mapping[str, int]) -> dict[str, int]:
    """Return room that keeps wells apart which stand too close, around the modules of both. [dbu]

    Args:
        placed: The modules and their wells.
        given: Room around modules so far, which stays.
    """
    technology, room = placed.technology, dict(given)
    for well, pair in close_wells(placed):
        half = technology.snap_up(-(-space_of(technology, well) // 2))
        for name in _modules_at(placed, well, pair):
            room[name] = max(room.get(name, 0), given.get(name, 0) + half)
    return room


def _modules_at(placed: PlacedModules, well: Well, pair: kdb.EdgePair) -> Iterator[str]:
    """Yield the module nearest to the gap in each of the two wells, and those that share a ring with it."""
    kinds = {spec.type for spec in placed.technology.devices.values() if spec.well == well.layer}
    items = (item for item in placed.drawn if kinds & (item.holds or {item.kind}))
    boxes = {item.module.name: placed.place_of(item.module, item.module.bbox) for item in items}
    at = pair.bbox().center()
    for edge in (pair.first, pair.second):
        end = well.shapes.interacting(kdb.Edges([edge]))
        inside = [name for name, box in sorted(boxes.items()) if not (end & kdb.Region(box)).is_empty()]
        if not inside:
            continue
        nearest = min(inside, key=lambda name: _distance(boxes[name], at))
        yield from next((ring for ring in placed.placement.rings if nearest in ring), (nearest,))


def _distance(box: kdb.Box, at: kdb.Point) -> int:
    """Return how far a point is from a box, along both axes together. [dbu]"""
    return max(box.left - at.x, at.x - box.right, 0) + max(box.bottom - at.y, at.y - box.top, 0)
