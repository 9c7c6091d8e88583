"""Axis-parallel geometry for the independent judge of design rules: areas by shapely, edges by whole numbers."""

import math
from dataclasses import dataclass

import shapely
from shapely.geometry import MultiPolygon, Polygon
from shapely.geometry.polygon import orient

EMPTY = MultiPolygon()


@dataclass(frozen=True)
class Edge:
    """An axis-parallel edge: ``at`` on its axis (0: x, a vertical edge), ``low`` to ``high`` along it; the inside lies
    to greater coordinates where ``side`` is 1, to smaller where it is -1."""

    axis: int
    at: int
    low: int
    high: int
    side: int


def union_of(polygons):
    return faces(shapely.union_all([Polygon(points) for points in polygons])) if polygons else EMPTY


def faces(geometry):
    """Return the polygons of a result, without the points and lines that touching leaves."""
    if geometry.is_empty:
        return EMPTY
    parts = geometry.geoms if hasattr(geometry, "geoms") else [geometry]
    return MultiPolygon([part for part in parts if isinstance(part, Polygon) and part.area > 0.5])


def rings_of(polygon):
    polygon = orient(polygon)  # the inside lies to the left of every ring
    for ring in (polygon.exterior, *polygon.interiors):
        points = [(round(x), round(y)) for x, y in ring.coords[:-1]]
        kept = [
            b for a, b, c in zip(points[-1:] + points[:-1], points, points[1:] + points[:1], strict=True)
            if (b[0] - a[0]) * (c[1] - b[1]) != (b[1] - a[1]) * (c[0] - b[0])
        ]  # fmt: skip
        yield kept


def edges_of(area):
    found = []
    for polygon in area.geoms:
        for ring in rings_of(polygon):
            for (x1, y1), (x2, y2) in zip(ring, ring[1:] + ring[:1], strict=True):
                if x1 == x2:
                    found.append(Edge(0, x1, min(y1, y2), max(y1, y2), -1 if y2 > y1 else 1))
                elif y1 == y2:
                    found.append(Edge(1, y1, min(x1, x2), max(x1, x2), 1 if x2 > x1 else -1))
    return found


def corners_of(area):
    """Yield (point, convex) of every corner."""
    for polygon in area.geoms:
        for ring in rings_of(polygon):
            for a, b, c in zip(ring[-1:] + ring[:-1], ring, ring[1:] + ring[:1], strict=True):
                yield b, (b[0] - a[0]) * (c[1] - b[1]) - (b[1] - a[1]) * (c[0] - b[0]) > 0


def near(first, second, value, fields, unit):
    """Return whether two parallel edges, ``second`` at the greater coordinate, are nearer than ``value``."""
    distance, gap = second.at - first.at, max(first.low, second.low) - min(first.high, second.high)
    if distance <= 0 or distance >= value:
        return False
    if "min_projection_um" in fields and -gap < round(fields["min_projection_um"] / unit):
        return False
    metrics = fields.get("metrics", "euclidean")
    if metrics == "projection":
        return gap < 0
    if metrics == "square":
        return gap < value
    return gap <= 0 or math.hypot(distance, gap) < value


def without(edges, others):
    """Return ``edges`` without the parts that lie on one of ``others`` and run the same way or the other."""
    for other in others:
        edges = [part for edge in edges for part in _cut(edge, other)]
    return edges


def _cut(edge, other):
    if (edge.axis, edge.at) != (other.axis, other.at) or edge.high <= other.low or other.high <= edge.low:
        yield edge
        return
    if edge.low < other.low:
        yield Edge(edge.axis, edge.at, edge.low, other.low, edge.side)
    if other.high < edge.high:
        yield Edge(edge.axis, edge.at, other.high, edge.high, edge.side)


def shared(edges, others):
    left = set(without(edges, others))
    return [edge for edge in edges if edge not in left]


def outside(edges, area):
    """Return the parts of ``edges`` that lie outside ``area``, its boundary included in it."""
    found = []
    for edge in edges:
        ends = ((edge.at, edge.low), (edge.at, edge.high)) if edge.axis == 0 else (
            (edge.low, edge.at), (edge.high, edge.at))  # fmt: skip
        rest = shapely.LineString(ends).difference(area)
        for part in getattr(rest, "geoms", [rest]):
            if not part.is_empty and part.length > 0.5:
                along = [round(point[1 - edge.axis]) for point in part.coords]
                found.append(Edge(edge.axis, edge.at, min(along), max(along), edge.side))
    return found


def remaining(edge, parts):
    """Return what ``parts`` leave of ``edge``."""
    return without([edge], parts)


def parts_on(edge, others):
    for other in others:
        low, high = max(edge.low, other.low), min(edge.high, other.high)
        if (edge.axis, edge.at, edge.side) == (other.axis, other.at, other.side) and low < high:
            yield Edge(edge.axis, edge.at, low, high, edge.side)
