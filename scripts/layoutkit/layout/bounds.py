"""Limits on the extent, depth and number of shapes of a layout that is read, counted without flattening.

A file of a few hundred bytes can describe more shapes than fit into memory (arrays of arrays), and KLayout's scanline
does not terminate on coordinates near +-2**31. Counts are summed from the leaf cells up, once per cell, in Python
integers and floats, which do not wrap around as KLayout's 32-bit coordinates do.

Measured with KLayout 0.30 on one core, sky130A: DRC takes 43 s for each million flat shapes, extraction 24 s. The cost
does not depend on the extent up to +-5e8 database units, which leaves room for sizing and for areas in 64 bits. A
hierarchical check takes time that grows with the square of the depth (0.01 s at 100 levels, 6 s at 3000).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import cos, radians, sin
from typing import TYPE_CHECKING

from layoutkit.errors import listed

if TYPE_CHECKING:
    from collections.abc import Iterable

    import klayout.db as kdb

MAX_COORDINATE = 500_000_000  # database units from the origin; 0.5 m at 1 nm
MAX_DEPTH = 100  # levels of cells
MAX_FLAT_SHAPES = 4_000_000
MAX_FLAT_INSTANCES = 4_000_000
MAX_FLAT_POINTS = 40_000_000  # vertices of all polygons and paths
MAX_CROSSINGS = 10_000_000  # of long shapes on one layer; KLayout merges 40,000 a second and keeps all of them
MAX_POINTS = 8_191  # vertices of one polygon or path, the limit of a GDSII record
MAX_LAYERS = 4_000
MAX_CELL_LAYERS = 5_000_000  # cells times layers; tools loop over all pairs
_WIDE_PATH = 1_000_000  # from this width on [dbu], the extent of a path is calculated here
MANY_CELLS = 5_000
_GDS_STRUCTURE = b"\x00\x1c\x05\x02"  # the head of a BGNSTR record
_GDS_LAYER = b"\x00\x06\x0d\x02"  # the head of a LAYER record
_GDS_LAYER_AND_TYPE = rb"\x00\x06\x0d\x02..\x00\x06[\x0e\x16\x2a\x2e]\x02.."  # with DATATYPE, TEXTTYPE, ...
_GDS_STRUCTURE_NAME, _GDS_REFERENCE_NAME = 0x06, 0x12  # record types STRNAME and SNAME
_SATURATED = 10**30  # counts stop here, so that sums over many levels stay small numbers
_FAR = 1e30  # coordinates stop here [dbu]


@dataclass(frozen=True)
class CellCounts:
    """Counts of a cell with all cells below it.

    Attributes:
        depth: Levels of cells, 1 for a cell without instances.
        shapes: Shapes and texts of the flattened cell.
        instances: Number of placed cells; each element of an array counts.
        points: Vertices of the polygons and paths of the flattened cell.
        largest: Vertices of the largest polygon or path of the cell itself.
        extent: Box around everything, in floating point, which does not wrap around. [dbu]
        sides: By layer index, the sum of the widths and the sum of the heights of all shapes, flattened. [dbu]
        crossings: Estimated number of crossings of shapes on one layer, as if they were spread evenly over ``extent``.
            Two arrays of long bars cross as often as the product of their numbers.
    """

    depth: int
    shapes: int
    instances: int
    points: int
    largest: int
    extent: kdb.DBox
    sides: dict[int, tuple[float, float]]
    crossings: int


def layout_faults(layout: kdb.Layout) -> list[str]:
    """Return the reasons why tools cannot process ``layout``, which was read from a file; empty if there are none."""
    missing = missing_cells(layout)
    if missing:
        names = listed(missing)
        return [f"it refers to cells that it does not contain: {names}; write the file with all referenced cells"]
    layers, cells = layout.layers(), layout.cells()
    if layers > MAX_LAYERS:
        return [_too_many_layers(layers)]
    if layers * cells > MAX_CELL_LAYERS:
        return [f"it has {cells} cells and {layers} layers; at most {MAX_CELL_LAYERS} cells times layers are read"]
    found = cell_counts(layout)
    deepest = max((counts.depth for counts in found.values()), default=0)
    return [_too_deep(deepest)] if deepest > MAX_DEPTH else _exceeded(layout, found)


def gds_faults(data: bytes) -> list[str]:
    """Return the reasons not to let KLayout read the GDSII file ``data``.

    KLayout's reader takes time that grows with the square of the depth and of the number of layers: 0.4 s at 5000
    levels, 8 s at 20,000, 27 s at 20,000 layers. Files with few cells and layers are not examined, and
    neither is the format: KLayout reports a corrupt file when it reads it.
    """
    faults = []
    if data.count(_GDS_LAYER) > MAX_LAYERS:
        layers = len(set(re.findall(_GDS_LAYER_AND_TYPE, data, re.DOTALL)))
        faults += [_too_many_layers(layers)] if layers > MAX_LAYERS else []
    if data.count(_GDS_STRUCTURE) > MANY_CELLS:
        deepest = _deepest(_gds_children(data))
        faults += [_too_deep(deepest)] if deepest > MAX_DEPTH else []
    return faults


def _gds_children(data: bytes) -> dict[bytes, set[bytes]]:
    """Return the names of the structures that each structure of the GDSII file ``data`` refers to."""
    found: dict[bytes, set[bytes]] = {}
    current: set[bytes] = set()
    position = 0
    while position + 4 <= len(data):
        length, kind = int.from_bytes(data[position : position + 2], "big"), data[position + 2]
        if length < 4:
            break
        if kind in {_GDS_STRUCTURE_NAME, _GDS_REFERENCE_NAME}:
            name = data[position + 4 : position + length].rstrip(b"\0")
            if kind == _GDS_STRUCTURE_NAME:
                current = found.setdefault(name, set())
            else:
                current.add(name)
        position += length
    return found


def _deepest(children: dict[bytes, set[bytes]]) -> int:
    """Return the number of levels of a hierarchy; cells that contain themselves are left out."""
    parents: dict[bytes, list[bytes]] = {}
    waiting = {name: len(below) for name, below in children.items()}
    for name, below in children.items():
        for child in below:
            parents.setdefault(child, []).append(name)
    level = {name: 1 for name in (*parents, *children) if not waiting.get(name)}
    ready, deepest = list(level), 1
    while ready:
        child = ready.pop()
        deepest = max(deepest, level[child])
        for name in parents.get(child, ()):
            level[name] = max(level.get(name, 0), level[child] + 1)
            waiting[name] -= 1
            if not waiting[name]:
                ready.append(name)
    return deepest


def missing_cells(layout: kdb.Layout) -> list[str]:
    """Return the names of the cells that a file refers to but does not contain (KLayout's ghost cells), sorted."""
    return sorted(cell.name for cell in layout.each_cell() if cell.is_ghost_cell() and cell.is_empty())


def cell_counts(layout: kdb.Layout, top: kdb.Cell | None = None) -> dict[int, CellCounts]:
    """Return the counts of every cell of ``layout``, or of ``top`` and all cells below it, by cell index."""
    layers = list(layout.layer_indexes())
    wanted = None if top is None else {top.cell_index(), *top.called_cells()}
    found: dict[int, CellCounts] = {}
    for index in layout.each_cell_bottom_up():
        if wanted is None or index in wanted:
            found[index] = _counts(layout.cell(index), layers, found)
    return found


def _exceeded(layout: kdb.Layout, found: dict[int, CellCounts]) -> list[str]:
    """Return the exceeded limits, each with the cell that exceeds it most."""
    if not found:
        return []
    faults = []
    for field, limit, text in (
        ("shapes", MAX_FLAT_SHAPES, "{} shapes when flattened"),
        ("instances", MAX_FLAT_INSTANCES, "{} instances of other cells when flattened"),
        ("points", MAX_FLAT_POINTS, "{} polygon vertices when flattened"),
        ("crossings", MAX_CROSSINGS, "about {} crossings of shapes on one layer when flattened"),
        ("largest", MAX_POINTS, "a polygon or path of {} vertices"),
    ):
        index, most = max(((i, getattr(c, field)) for i, c in found.items()), key=lambda item: item[1])
        if most > limit:
            faults.append(
                f"its cell {layout.cell(index).name} has {text.format(_shown(most))}; at most {limit} are read"
            )
    index, reach = max(((i, _reach(c.extent)) for i, c in found.items()), key=lambda item: item[1])
    if reach > MAX_COORDINATE:
        faults.append(
            f"its cell {layout.cell(index).name} reaches {reach * layout.dbu:g} um from its origin; at most "
            f"{MAX_COORDINATE * layout.dbu:g} um ({MAX_COORDINATE} database units) are read"
        )
    return faults


def _too_many_layers(layers: int) -> str:
    return f"it has {layers} layers; at most {MAX_LAYERS} are read"


def _too_deep(levels: int) -> str:
    return f"its cells are nested {levels} levels deep; at most {MAX_DEPTH} are read"


def _counts(cell: kdb.Cell, layers: Iterable[int], below: dict[int, CellCounts]) -> CellCounts:
    import klayout.db as kdb

    layout, near, extent = cell.layout(), kdb.Box(), kdb.DBox()
    shapes = points = largest = instances = 0
    depth = 1
    sides: dict[int, tuple[float, float]] = {}
    placed: dict[tuple[int, float, float], int] = {}
    for layer in layers:
        own = cell.shapes(layer)
        if own.is_empty():
            continue
        shapes += own.size()
        vertices, biggest, wide = _vertices(own)
        sides[layer] = _sides(own)
        points, largest = points + vertices, max(largest, biggest)
        extent += wide
        near += cell.bbox(layer) if cell.is_leaf() else kdb.Region(own).bbox() + kdb.Texts(own).bbox()
    for instance in cell.each_inst():
        array = instance.cell_inst
        child, count = below[array.cell_index], array.size()
        depth = max(depth, child.depth + 1)
        shapes += count * child.shapes
        points += count * child.points
        instances += count * (child.instances + 1)
        turned = (array.cell_index, array.cplx_trans.angle, array.cplx_trans.mag)
        placed[turned] = placed.get(turned, 0) + count
        if count == 1 and not array.is_complex():
            # If this sum wraps around, its result is beyond the limit too, as long as the child is within the limit.
            near += array.bbox(layout)
        else:
            extent += _placed(array, child.extent, layout)
    shapes, instances, points = (min(number, _SATURATED) for number in (shapes, instances, points))
    _add_placed(sides, placed, below)
    extent += kdb.DBox(near)
    return CellCounts(depth, shapes, instances, points, largest, extent, sides, _crossings(sides, extent))


def _sides(shapes: kdb.Shapes) -> tuple[float, float]:
    """Return the sums of the widths and heights of all shapes, from their horizontal and vertical edges."""
    import klayout.db as kdb

    region = kdb.Region(shapes)
    region.merged_semantics = False
    edges = region.edges()
    edges.merged_semantics = False
    across, along = (edges.with_angle(angle, False) for angle in (0, 90))
    across.merged_semantics = along.merged_semantics = False
    return across.length() / 2, along.length() / 2


def _add_placed(
    sides: dict[int, tuple[float, float]], placed: dict[tuple[int, float, float], int], below: dict[int, CellCounts]
) -> None:
    """Add the sides of the cells in ``placed`` (index, angle and magnification to count) to ``sides``."""
    for (index, angle, scale), count in placed.items():
        straight, crossed = (abs(round(part, 9)) * scale * count for part in (cos(radians(angle)), sin(radians(angle))))
        for layer, (width, height) in below[index].sides.items():
            own = sides.get(layer, (0.0, 0.0))
            sums = own[0] + straight * width + crossed * height, own[1] + straight * height + crossed * width
            sides[layer] = (min(sums[0], _FAR), min(sums[1], _FAR))


def _crossings(sides: dict[int, tuple[float, float]], extent: kdb.DBox) -> int:
    area = extent.width() * extent.height()
    most = max((width * height for width, height in sides.values()), default=0.0)
    return min(int(most / area), _SATURATED) if area > 0 else 0


def _vertices(shapes: kdb.Shapes) -> tuple[int, int, kdb.DBox]:
    """Return the vertex counts of all polygons and paths and of the largest, and the extent of very wide paths."""
    import klayout.db as kdb

    total = largest = 0
    wide = kdb.DBox()
    for shape in shapes.each(kdb.Shapes.SPolygons | kdb.Shapes.SPaths):
        count = shape.polygon.num_points()
        if shape.is_path():
            margin = shape.path_width + max(abs(shape.path_bgnext), abs(shape.path_endext))
            if margin > _WIDE_PATH:
                for point in shape.each_point():
                    wide += kdb.DBox(point.x - margin, point.y - margin, point.x + margin, point.y + margin)
        total, largest = total + count, max(largest, count)
    return total, largest, wide


def _placed(array: kdb.CellInstArray, extent: kdb.DBox, layout: kdb.Layout) -> kdb.DBox:
    """Return the extent of all elements of ``array``, whose cell has ``extent``."""
    import klayout.db as kdb

    if extent.empty():
        return extent
    placed = extent.transformed(kdb.DCplxTrans(array.cplx_trans))
    if array.is_regular_array():
        for count, step in ((array.na, array.a), (array.nb, array.b)):
            placed += placed.moved((count - 1) * step.x, (count - 1) * step.y)
    elif array.size() > 1:
        placed += kdb.DBox(array.bbox(layout))
    sides = (placed.left, placed.bottom, placed.right, placed.top)
    return kdb.DBox(*(max(-_FAR, min(_FAR, side)) for side in sides))


def _reach(extent: kdb.DBox) -> float:
    return 0.0 if extent.empty() else max(map(abs, (extent.left, extent.bottom, extent.right, extent.top)))


def _shown(number: int) -> str:
    return f"more than {number:.0e}" if number == _SATURATED else str(number)
