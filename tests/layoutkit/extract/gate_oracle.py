"""Stress and junction figures of transistors, recomputed from the shapes of a GDS file by other means than the engine.

KLayout reads the shapes; shapely does the geometry. Nothing of layoutkit is used.
"""

from __future__ import annotations

from typing import NamedTuple

from shapely import MultiPolygon, Polygon, box, unary_union

UM = 0.001


class Channel(NamedTuple):
    """One channel: its device text, bounds [um], distances to the ends of the diffusion [um], shares of both ends."""

    text: str
    bounds: tuple[float, float, float, float]
    before: float
    after: float
    shares: list[tuple[float, float]]

    def stress(self):
        """Return 1/(sa + L/2) + 1/(sb + L/2) for a current along x. [1/um]"""
        length = self.bounds[2] - self.bounds[0]
        return 1 / (self.before + length / 2) + 1 / (self.after + length / 2)


def polygons(cell, gds):
    index = cell.layout().find_layer(*gds)
    found = []
    for shape in cell.begin_shapes_rec(index).each() if index is not None else ():
        own = shape.shape().polygon.transformed(shape.trans())
        found.append(Polygon([(point.x * UM, point.y * UM) for point in own.each_point_hull()]))
    merged = unary_union(found) if found else MultiPolygon()
    return list(getattr(merged, "geoms", [merged]))


def texts(cell, gds):
    index = cell.layout().find_layer(*gds)
    for shape in cell.begin_shapes_rec(index).each() if index is not None else ():
        if shape.shape().is_text():
            place = shape.shape().text.transformed(shape.trans())
            yield place.string, place.x * UM, place.y * UM


def channels(cell, active, poly, text, tap=None):
    """Return the channels whose current runs along x, sorted by place; layers are GDS numbers."""
    drawn = polygons(cell, active)
    gates = unary_union(polygons(cell, poly))
    whole = unary_union([*drawn, *(polygons(cell, tap) if tap else [])])
    islands = list(getattr(whole, "geoms", [whole]))
    labels = list(texts(cell, text))
    found = []
    for diffusion in drawn:
        crossed = diffusion & gates
        own = [part for part in getattr(crossed, "geoms", [crossed]) if part.area > 0]
        ends = diffusion - gates
        ends = [part for part in getattr(ends, "geoms", [ends]) if part.area > 0]
        borders = [sum(end.buffer(1e-4).intersection(gate).area > 1e-8 for gate in own) for end in ends]
        for gate in own:
            left, bottom, right, top = gate.bounds
            island = next(each for each in islands if each.intersects(gate.centroid))
            shares = [
                (end.area / beside, end.length / beside)
                for end, beside in zip(ends, borders, strict=True)
                if end.buffer(1e-4).intersection(gate).area > 1e-8
            ]
            name = [label for label, x, y in labels if left < x < right and bottom < y < top]
            before, after = reach(island, gate.bounds)
            found.append(Channel("".join(name), gate.bounds, before, after, sorted(shares)))
    return sorted(found, key=lambda channel: channel.bounds)


def reach(island, bounds):
    """Return the distances with the mean of 1/(distance + L/2) over 40 lines across the channel. [um]"""
    left, bottom, right, top = bounds
    half = (right - left) / 2
    x0, _, x1, _ = island.bounds
    sums, lines = [0.0, 0.0], 40
    for number in range(lines):
        y = bottom + (number + 0.5) * (top - bottom) / lines
        across = island & box(x0 - 1, y - 1e-5, x1 + 1, y + 1e-5)
        part = next(each for each in getattr(across, "geoms", [across]) if each.bounds[0] < left < each.bounds[2])
        sums[0] += 1 / (left - part.bounds[0] + half)
        sums[1] += 1 / (part.bounds[2] - right + half)
    return tuple(lines / total - half for total in sums)
