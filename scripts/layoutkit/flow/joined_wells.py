"""Merging wells of one net that stand close together, and room around those that nothing can join.

Wells of one net may touch, so placement asks for no gap between them. Where two of them nearly meet at a corner and
other diffusion lies in both of the remaining quarters, neither the gap nor a way around it can be filled::

    n n n  P P P
    n n n  P P P     P: n wells of one net, 0.6 um apart in x and y; they need 1.4 um
                     n: n channels and their taps, too close to each other for an n well between them
    P P P  n n n
    P P P  n n n
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.flow.instances import Well
from layoutkit.place.blocks import Clearances

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from layoutkit.place import Block, Placed
    from layoutkit.technology import Technology

    Key = tuple[str, str, tuple[str, ...]]
    from layoutkit.flow.placing import PlacedModules


def join_wells(
    technology: Technology, cell: kdb.Cell, blocks: Sequence[tuple[Block, Placed]], inside: Sequence[Well] = ()
) -> tuple[Well, ...]:
    """Merge wells of the same layer, bulk net and oxide that are closer than the minimum well spacing; return them all.

    Where a layer is made from wide wells, larger gaps are filled, too (dimension ``well_fill``), unless another block
    lies in the gap.

    Args:
        technology: The process.
        cell: Receives the fillings.
        blocks: What was placed, rings included.
        inside: Wells inside of instances.
    """
    clearances = Clearances(technology)
    wells: dict[str, str | None] = {spec.type: spec.well for spec in technology.devices.values()}
    drawn: dict[Key, kdb.Region] = {}
    keys: list[Key | None] = []
    for block, place in blocks:
        well, key = wells.get(block.kind), None
        if well is not None and well in block.layer_boxes:
            key = (well, block.bulk_net, tuple(sorted(clearances.oxide(block))))
            drawn.setdefault(key, kdb.Region()).insert(kdb.Box(*place.rectangle(block.layer_boxes[well])))
        keys.append(key)
    for each in inside:
        drawn.setdefault((each.layer, each.net, each.oxide), kdb.Region()).insert(each.shapes)
    width, grid = technology.dim("well_width"), technology.grid
    space = max(technology.dim("well_space", spec) for spec in technology.devices.values() if spec.well)
    # Blocks that share a ring lie inside it, and the ring is one of the blocks; instances have wells of their own.
    instances = kdb.Region()
    for each in inside:
        instances.insert(each.shapes.bbox())
    rest = [
        (block, place)
        for (block, place), own in zip(blocks, keys, strict=True)
        if own is None
        and block.ring is None
        and (instances & kdb.Region(kdb.Box(*place.rectangle(block.box)))).is_empty()
    ]
    apart = {technology.resolve(role): clearances.to_well for role in ("active", "tap")}
    bare = _diffusion_outside(technology, cell, drawn.values(), apart)  # that inside of instances is in no block
    merged: list[Well] = []
    for key, region in sorted(drawn.items(), key=lambda entry: entry[0]):
        others = kdb.Region()
        for other, shapes in drawn.items():
            if other != key:
                others += shapes.sized(space if other[0] == key[0] else clearances.to_well)
        closed = others + _boxes(rest, apart) + bare
        for block, place in rest:
            closed.insert(kdb.Box(*place.rectangle(block.box)))
        patch = kdb.Region()
        for reach in (max(space, technology.dimensions.get("well_fill", 0)), space):
            filled = (joined(region + patch, reach, width, grid) - region - patch).merged()
            patch = (patch + filled.not_overlapping(closed)).merged()
        patch += _wider_necks(technology, region + patch, closed)
        patch += joined(region + patch, space, width, grid) - region - closed
        patch = _far_enough(_wide_enough(patch.merged(), region, width), region, space)
        patch += _bridges(region + patch, closed, width, space_of(technology, Well(*key, region)), grid)
        for layer in (key[0], *key[2]):
            cell.shapes(technology.layer(cell.layout(), layer)).insert(patch)
        merged.append(Well(*key, (region + patch).merged()))
    return tuple(merged)


def join_covers(technology: Technology, cell: kdb.Cell) -> None:
    """Fill the gaps that a filling between wells leaves beside the covers of others, such as thick oxide.

    What is drawn in ``cell`` itself is the filling. A cover keeps its space to diffusion that has none.
    """
    clearances = Clearances(technology)
    for layer, apart in sorted(clearances.covers.items()):
        index = technology.layer(cell.layout(), layer)
        if cell.shapes(index).is_empty():
            continue
        covers = kdb.Region(cell.begin_shapes_rec(index)).merged()
        diffusion = kdb.Region()
        for name in sorted(clearances.diffusion):
            diffusion += technology.region(cell, name)
        closed = diffusion.merged().not_interacting(covers).sized(apart)
        space = clearances.spaces[layer]
        gaps = (joined(covers, space, space, technology.grid) - covers).merged()
        cell.shapes(index).insert(gaps.interacting(kdb.Region(cell.shapes(index))).not_overlapping(closed))


def _wider_necks(technology: Technology, wells: kdb.Region, closed: kdb.Region) -> kdb.Region:
    """Return what makes a well wide where two wide parts of it meet at a corner, as far as nothing else is there. [dbu]

    ::

        +--------+            +--------+---+
        |        |            |        |   |
        |     +--+---+   ->   |     +--+---+
        +-----+--+   |        +-----+--+   |
              |      |              |      |
    """
    inset, space = (technology.dimensions.get(name, 0) for name in ("well_core_inset", "well_core_space"))
    found = kdb.Region()
    if not inset:
        return found

    def narrow(shapes: kdb.Region) -> list[kdb.Box]:
        cores = shapes.merged().sized(technology.grid - inset, 2)
        return sorted(pair.bbox() for pair in cores.space_check(space, False, kdb.Metrics.Square).each())

    def fillings(neck: kdb.Box) -> Iterator[kdb.Region]:
        for x, y in product((neck.left, neck.right), (neck.bottom, neck.top)):
            path = kdb.Region(kdb.Box(neck.left, y, neck.right, y).enlarged(inset, inset))
            path.insert(kdb.Box(x, neck.bottom, x, neck.top).enlarged(inset, inset))
            yield path.merged() - wells

    for neck in narrow(wells):
        necks = narrow(wells + found)
        if neck in necks:
            free = (each for each in fillings(neck) if (each & closed).is_empty())
            found += next((each for each in free if len(narrow(wells + found + each)) < len(necks)), kdb.Region())
    return found


def space_of(technology: Technology, well: Well) -> int:
    """Return the space that wells of one layer and oxide keep to one another on different nets. [dbu]"""
    specs = [spec for spec in technology.devices.values() if spec.well == well.layer]
    alike = [spec for spec in specs if sorted(spec.covers) == sorted(well.oxide)]
    return max(technology.dim("well_space", spec) for spec in alike or specs)


def _bridges(wells: kdb.Region, closed: kdb.Region, width: int, space: int, grid: int) -> kdb.Region:
    """Return bridges between wells that are still too close; they avoid the ``closed`` areas beside the gap. [dbu]

    ::

        C C C                C C C                C, D: closed
        C C C +-----         C C C +-----
              |         ->     +---+
        ----+                ----+ |
            | D D D              +-+ D D D
            | D D D              | D D D

    Each bridge is all that a square of the minimum width reaches from one well to the other in the smallest of a few
    windows around the place.
    """
    found, half = kdb.Region(), -(-width // 2)
    whole = wells.merged()
    for pair in sorted(whole.isolated_check(space, False, kdb.Metrics.Euclidian).each(), key=lambda each: each.bbox()):
        for reach in (half, 3 * half // 2, 2 * half):
            window = on_grid(pair.bbox().enlarged(reach, reach), grid)
            bridge = _bridge(pair, whole, closed, window, half)
            if not bridge.is_empty() and _improves(bridge, whole, pair, width, space):
                found += bridge
                whole = (whole + bridge).merged()
                break
    return found.merged()


def _bridge(pair: kdb.EdgePair, wells: kdb.Region, closed: kdb.Region, window: kdb.Box, half: int) -> kdb.Region:
    """Return where a square of twice ``half`` moves from one well of ``pair`` to the other inside a window. [dbu]"""
    ends = [wells.interacting(kdb.Edges([edge])) for edge in (pair.first, pair.second)]
    here = wells & kdb.Region(window.enlarged(2 * half, 2 * half))
    free = (kdb.Region(window) - (closed - wells) + here).merged()
    inset = half - 1  # what is just wide enough must not vanish
    for way in free.sized(-inset, 2).merged().each():
        bridge = kdb.Region(way).sized(inset, 2) - wells
        if not any(bridge.interacting(end).is_empty() for end in ends):
            return bridge.interacting(ends[0]).interacting(ends[1])
    return kdb.Region()


def _improves(bridge: kdb.Region, wells: kdb.Region, pair: kdb.EdgePair, width: int, space: int) -> bool:
    """Return whether a bridge makes nothing narrow and leaves no gap at its sides that is as small as ``pair``."""
    near = kdb.Region(bridge.bbox().enlarged(space, space))
    whole = ((wells & near) + bridge).merged()
    narrow = whole.width_check(width, False, kdb.Metrics.Euclidian).polygons(1)
    gaps = whole.space_check(pair.distance() + 1, False, kdb.Metrics.Euclidian).polygons(1)
    return (narrow + gaps).interacting(bridge).is_empty()


def _wide_enough(patch: kdb.Region, wells: kdb.Region, width: int) -> kdb.Region:
    """Return a filling without what would make wells narrower than their minimum width. [dbu]

    Narrow ends of a piece are cut off; where that does not help, the whole piece is left out.
    """
    half, trimmed = -(-width // 2), False
    while True:
        narrow = (wells + patch).merged().width_check(width, False, kdb.Metrics.Euclidian).polygons()
        faults = patch.interacting(narrow)
        if faults.is_empty():
            return patch
        patch -= faults
        if not trimmed:
            patch = (patch + (faults & (wells + faults).merged().sized(-half).sized(half))).merged()
            trimmed = True


def _far_enough(patch: kdb.Region, wells: kdb.Region, space: int) -> kdb.Region:
    """Return a filling without the pieces that only make the gaps around them smaller. [dbu]"""

    def gaps(filling: kdb.Region, around: kdb.Region) -> kdb.EdgePairs:
        return (around + filling).merged().space_check(space, False, kdb.Metrics.Euclidian)

    def least(filling: kdb.Region, around: kdb.Region) -> int:
        return min((pair.distance() for pair in gaps(filling, around).each()), default=space)

    for piece in patch.interacting(gaps(patch, wells).polygons()).each():
        near = kdb.Region(piece.bbox().enlarged(space, space))
        here, around = patch & near, wells & near
        if least(here - kdb.Region(piece), around) > least(here, around):
            patch -= kdb.Region(piece)
    return patch


def _diffusion_outside(
    technology: Technology, cell: kdb.Cell, wells: Iterable[kdb.Region], spaces: Mapping[str, int]
) -> kdb.Region:
    """Return the diffusion of a cell that lies in no well, each layer with its space around it. [dbu]"""
    found, covered = kdb.Region(), kdb.Region()
    for well in wells:
        covered += well
    for layer, space in spaces.items():
        found += (technology.region(cell, layer) - covered).sized(space)
    return found


def _boxes(blocks: Sequence[tuple[Block, Placed]], spaces: Mapping[str, int]) -> kdb.Region:
    """Return the boxes of some layers of blocks as placed, each with its space around it. [dbu]"""
    found = kdb.Region()
    for block, place in blocks:
        for layer, space in spaces.items():
            if layer in block.layer_boxes:
                found.insert(kdb.Box(*place.rectangle(block.layer_boxes[layer])).enlarged(space, space))
    return found


def join_deep_wells(technology: Technology, cell: kdb.Cell, blocks: Sequence[tuple[Block, Placed]]) -> None:
    """Merge deep wells of one net and oxide that are closer than their minimum spacing, with their rings.

    A gap with another block in it is bridged beside that, or stays. Where a ring of substrate taps lies around every
    deep well, these keep apart.
    """
    deep = technology.deep_well
    if deep is None or deep.substrate_ring:
        return
    layer, ring = technology.roles["deep_nwell"], technology.roles["nwell"]
    covers = sorted({cover for name in deep.devices for cover in technology.device(name).covers})
    outside = [(block, place) for block, place in blocks if layer not in block.layer_boxes]
    clearances = Clearances(technology)
    closed = _boxes(outside, clearances.beside_deep_well)
    beyond = deep.dim("ring_enclosure")
    spaces = dict.fromkeys(clearances.diffusion, clearances.to_well) | clearances.covers
    around = _boxes(outside, spaces) + closed
    for block, place in outside:
        around.insert(kdb.Box(*place.rectangle(block.box)))
    around = around.sized(beyond, 2)  # a bridge has a ring, too
    parts: dict[tuple[str, tuple[str, ...]], dict[str, kdb.Region]] = {}
    for block, place in blocks:
        if layer not in block.layer_boxes:
            continue
        oxide = tuple(cover for cover in covers if cover in block.layer_boxes)
        drawn = parts.setdefault((block.bulk_net, oxide), {})
        for name in (layer, ring, *oxide):
            box = place.rectangle(block.layer_boxes[name])
            drawn.setdefault(name, kdb.Region()).insert(kdb.Box(*box))
    for (_, oxide), drawn in sorted(parts.items()):
        deep_wells = drawn[layer].merged()
        space, width = deep.dim("space"), deep.dim("width")
        patch = (joined(deep_wells, space, width, technology.grid) - deep_wells).merged().not_overlapping(closed)
        others = sum((each[ring] for each in parts.values() if each is not drawn), kdb.Region()).sized(space)
        patch += _bridges(deep_wells + patch, around + others, width, space, technology.grid)
        if patch.is_empty():
            continue
        wells = (patch.sized(beyond, 2) - drawn[ring]).merged()
        cell.shapes(technology.layer(cell.layout(), layer)).insert(patch)
        cell.shapes(technology.layer(cell.layout(), ring)).insert(wells)
        for cover in oxide:
            cell.shapes(technology.layer(cell.layout(), cover)).insert((wells - drawn[cover]).merged())


def joined(region: kdb.Region, space: int, width: int, grid: int) -> kdb.Region:
    """Return ``region`` with gaps and holes narrower than ``space`` filled; corners that nearly meet are bridged.

    A check cuts its edges where the distance ends, anywhere between grid points, so bridges grow to the grid.
    """
    half = -(-space // 2)
    for _ in range(len(list(region.each())) + 1):
        region = region.sized(half, 2).sized(-half, 2) + region
        region.merge()
        faults = region.space_check(space, False, kdb.Metrics.Euclidian)
        faults += region.width_check(width, False, kdb.Metrics.Euclidian)
        if faults.is_empty():
            break
        for pair in faults.each():
            region.insert(on_grid(pair.bbox().enlarged(width // 2, width // 2), grid))
        region.merge()
    return region


def on_grid(box: kdb.Box, grid: int) -> kdb.Box:
    """Return the smallest box on the grid that holds ``box``."""
    low = (edge // grid * grid for edge in (box.left, box.bottom))
    high = (-(-edge // grid) * grid for edge in (box.right, box.top))
    return kdb.Box(*low, *high)


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
