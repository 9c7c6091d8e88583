"""The metal of one net as a mesh: cells of wire, links between them, cuts between conductors, and what limits a flow.

+----+---+----+
|    | x |    |      a wire is cut at its corners and at the edges of the cuts on it (x); neighbouring cells are
+----+---+----+      linked over the edge they share
|    |
+----+

Resistances of whole nets come from KLayout's extractor (``parasitics.net_resistance``). Its network has no widths and
no places along a wire, which the limits of currents and the straps of transistors need: they use this mesh.

A minimum cut says which edges limit a flow through the mesh. Most of a mesh is chains and ends of wires. A node one of
whose edges is at least as strong as all its others together joins the node at the other end of that edge: a minimum cut
exists that does not separate them (Padberg and Rinaldi, 1990). Where only flows below some amount matter, nodes joined
by an edge of at least that capacity are merged first, and so are those joined by an edge above what source or sink can
pass. The network that is left is solved by networkx. All capacities are integers, and the nodes that the source still
reaches are the same for every maximum flow.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import count, pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.rectangle import Rect
    from layoutkit.technology import Technology


_MANY = 1000  # cuts on a conductor, as of a power device: there one cell holds several cuts of a strap
_PART = 2  # of the longest cell, in which all cuts are as one then


class MeshLink(NamedTuple):
    """What joins two cells: an edge of ``width`` [dbu] and ``squares``, or ``cuts`` between two conductors.

    ``name`` is the conductor's or the cut's, ``box`` where it is, ``wire_width`` the whole width of the wire [dbu],
    which only a mesh with lines has.
    """

    one: int
    other: int
    name: str
    box: Rect
    width: int = 0
    squares: float = 0.0
    wire_width: int = 0


@dataclass
class Mesh:
    """Cells, as rectangles on a conductor, and the links between them.

    Attributes:
        cells: Conductor and rectangle of each cell. [dbu]
        links: What joins cells.
        slabs: The cells of each conductor, by place.
    """

    cells: list[tuple[str, Rect]] = field(default_factory=list)
    links: list[MeshLink] = field(default_factory=list)
    slabs: dict[str, _Slabs] = field(default_factory=dict)

    def at(self, conductor: str, x: float, y: float) -> int | None:
        """Return the cell of a conductor that holds a point, None where there is none. [dbu]"""
        slabs = self.slabs.get(conductor)
        return None if slabs is None else slabs.cell(x, y)

    def across(self, conductor: str, x: float, y: float) -> list[int]:
        """Return the cells of the square about a point that is as wide as the wire there. [dbu]"""
        slabs = self.slabs.get(conductor)
        return [] if slabs is None else slabs.across(x, y)


def mesh_of(
    technology: Technology,
    regions: Mapping[str, kdb.Region],
    contacts: Sequence[Rect] = (),
    longest: int | None = None,
) -> Mesh:
    """Return the mesh of the metal of one net.

    Args:
        technology: Names conductors and cuts.
        regions: Name to merged shapes of each conductor and cut of the net.
        contacts: Contacts on the first conductor, at whose edges it is cut as well. [dbu]
        longest: Distance of vertical lines at which all metal is cut; None for no lines. Without lines, current may
            pass along a wire within a long cell that no cut lies on, whatever the wire's width. With lines, metal is
            cut only at the left and lower edges of cuts and contacts, or at corners near them, so that each has a cell
            of its own. That is enough to judge currents, and makes fewer cells than resistances need. Where there are
            very many, those of half this distance share one. [dbu]
    """
    mesh = Mesh()
    cuts = {cut.name: _boxes(regions.get(cut.name)) for cut in technology.cuts}
    for level, conductor in enumerate(technology.conductors):
        region = regions.get(conductor.name)
        if region is None or region.is_empty():
            continue
        marks = list(contacts) if level == 0 else []
        for cut in technology.cuts[max(level - 1, 0) : level + 1]:
            marks += cuts[cut.name]
        mesh.slabs[conductor.name] = _Slabs(mesh, conductor.name, region, marks, longest)
    for cut in technology.cuts:
        below, above = technology.resolve(cut.below), technology.resolve(cut.above)
        for box in cuts[cut.name]:
            x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
            one, other = mesh.at(below, x, y), mesh.at(above, x, y)
            if one is not None and other is not None:
                mesh.links.append(MeshLink(one, other, cut.name, box))
    return mesh


def _boxes(region: kdb.Region | None) -> list[Rect]:
    if region is None:
        return []
    boxes = (polygon.bbox() for polygon in region.each())
    return sorted((box.left, box.bottom, box.right, box.top) for box in boxes)


class _Slabs:
    """The cells of one conductor, in slabs between neighbouring heights at which something changes."""

    def __init__(self, mesh: Mesh, name: str, region: kdb.Region, marks: Sequence[Rect], longest: int | None) -> None:
        self.longest = longest
        self.least = longest // _PART if longest and len(marks) > _MANY else 0  # between cuts that each have a cell
        self.heights: list[int] = []
        self.rows: list[list[tuple[int, int, int]]] = []  # of each slab: left, right and number of its cells
        self.lefts: list[list[int]] = []  # of each slab: the left edges of its cells
        self.wires: list[list[int]] = []  # of each slab: how wide the metal is that each of its cells is a part of
        self._runs: dict[int, tuple[int, int, int]] = {}  # x to first and last slab of the metal there, and its height
        edges = [(edge.p1, edge.p2) for polygon in region.each() for edge in polygon.each_edge()]
        heights = {point.y for edge in edges for point in edge}
        if longest:
            corners = sorted(heights)
            found = {y for _, y, _, top in marks if not _is_near(corners, y, top - y)}
            heights |= self._apart(found)
        else:
            heights |= {y for mark in marks for y in mark[1::2]}
        self.heights = sorted(heights)
        spans = self._spans(edges)
        self._cut(mesh, name, spans, marks)
        for row, cells in enumerate(self.rows):
            low, high = self.heights[row], self.heights[row + 1]
            for (a, b, one), (c, d, other) in pairwise(cells):
                if b == c:
                    squares = (d - a) / 2 / (high - low)
                    wire = min(self._thickness(row, b - 1), self._thickness(row, b + 1)) if self.longest else 0
                    mesh.links.append(MeshLink(one, other, name, (b, low, b, high), high - low, squares, wire))
            if row + 1 < len(self.rows):
                self._link_upwards(mesh, name, row)

    def cell(self, x: float, y: float) -> int | None:
        row = bisect_right(self.heights, y) - 1
        if not 0 <= row < len(self.rows):
            return None
        cells = self.rows[row]
        place = bisect_right(self.lefts[row], x) - 1
        return cells[place][2] if place >= 0 and x < cells[place][1] else None

    def across(self, x: float, y: float) -> list[int]:
        """Return the cells of the square about a point that is as wide as the wire there."""
        row = bisect_right(self.heights, y) - 1
        if self.cell(x, y) is None:
            return []
        half = min(self._thickness(row, round(x)), self._length(row, x)) / 2
        found = []
        for near, cells in enumerate(self.rows):
            if self.heights[near] < y + half and self.heights[near + 1] > y - half:
                first = max(0, bisect_right(self.lefts[near], x - half) - 1)
                last = bisect_right(self.lefts[near], x + half)
                found += [number for left, right, number in cells[first:last] if left < x + half and right > x - half]
        return found

    def _length(self, row: int, x: float) -> int:
        """Return the width of the metal at ``x`` in a slab, through the cells on the left and right."""
        cells = self.rows[row]
        first = last = bisect_right(self.lefts[row], x) - 1
        while first > 0 and cells[first - 1][1] == cells[first][0]:
            first -= 1
        while last + 1 < len(cells) and cells[last][1] == cells[last + 1][0]:
            last += 1
        return cells[last][1] - cells[first][0]

    def _spans(self, edges: Sequence[tuple[kdb.Point, kdb.Point]]) -> list[list[tuple[int, int]]]:
        """Return the metal of each slab, as intervals in x; slanted edges count by their middle in the slab."""
        crossings: list[list[float]] = [[] for _ in self.heights[1:]]
        place = {y: i for i, y in enumerate(self.heights)}
        for one, other in edges:
            low, high = sorted((one, other), key=lambda point: point.y)
            for row in range(place[low.y], place[high.y]):
                middle = (self.heights[row] + self.heights[row + 1]) / 2
                crossings[row].append(low.x + (high.x - low.x) * (middle - low.y) / (high.y - low.y))
        spans = []
        for found in crossings:
            found.sort()
            spans.append([(round(a), round(b)) for a, b in zip(found[::2], found[1::2], strict=True) if a < b])
        return spans

    def _apart(self, edges: Iterable[int]) -> set[int]:
        """Return the edges, or some of them that are ``least`` apart."""
        if not self.least:
            return {*edges}
        found: list[int] = []
        for edge in sorted(edges):
            if not found or edge - found[-1] >= self.least:
                found.append(edge)
        return {*found}

    def _cut(self, mesh: Mesh, name: str, spans: Sequence[Sequence[tuple[int, int]]], marks: Sequence[Rect]) -> None:
        """Cut the intervals where neighbouring slabs begin and end, and at the marks."""
        events: list[set[int]] = [{x for span in spans[row] for x in span} for row in range(len(spans))]
        splits = [set(own) for own in events]
        for row, ends in enumerate(events):
            for near in (row - 1, row + 1):
                if 0 <= near < len(events):
                    splits[near] |= ends
        corners = [sorted(own) for own in splits]
        alike: dict[tuple[int, int, int], set[int]] = defaultdict(set)  # left edges of the marks of a row and a width
        for left, bottom, right, top in marks:
            alike[bottom, top, right - left].add(left)
        for (bottom, top, side), lefts in alike.items():
            first, last = bisect_right(self.heights, bottom) - 1, bisect_left(self.heights, top)
            for row in range(max(first, 0), min(last, len(events))):  # a cut may reach beyond its metal
                if self.longest:
                    splits[row] |= self._apart(left for left in lefts if not _is_near(corners[row], left, side))
                else:
                    splits[row].update(*((left, left + side) for left in lefts))
        for row, crossed in enumerate(spans):
            if self.longest:
                for left, right in crossed:
                    splits[row].update(range(left // self.longest * self.longest + self.longest, right, self.longest))
            xs, cells, wires = sorted(splits[row]), list[tuple[int, int, int]](), list[int]()
            low, high = self.heights[row], self.heights[row + 1]
            for left, right in crossed:
                sides = xs[bisect_left(xs, left) : bisect_right(xs, right)]
                cells += zip(sides, sides[1:], count(len(mesh.cells)))
                mesh.cells += [(name, (a, low, b, high)) for a, b in pairwise(sides)]
                wires += [right - left] * (len(sides) - 1)
            self.rows.append(cells)
            self.wires.append(wires)
            self.lefts.append([left for left, _, _ in cells])

    def _link_upwards(self, mesh: Mesh, name: str, row: int) -> None:
        y, distance = self.heights[row + 1], (self.heights[row + 2] - self.heights[row]) / 2
        above, wide = self.rows[row + 1], self.wires[row + 1]
        start = 0
        for (a, b, one), its in zip(self.rows[row], self.wires[row], strict=True):
            while start < len(above) and above[start][1] <= a:
                start += 1
            for place in range(start, len(above)):
                c, d, other = above[place]
                if c >= b:
                    break
                left, right = max(a, c), min(b, d)
                wire = min(its, wide[place]) if self.longest else 0
                mesh.links.append(
                    MeshLink(one, other, name, (left, y, right, y), right - left, distance / (right - left), wire)
                )

    def _thickness(self, row: int, x: int) -> int:
        """Return the height of the metal at ``x``, through the slabs above and below ``row``."""
        low, high, height = self._runs.get(x, (0, -1, 0))
        if not low <= row <= high:
            low = high = row
            while low > 0 and self._holds(low - 1, x):
                low -= 1
            while high + 1 < len(self.rows) and self._holds(high + 1, x):
                high += 1
            height = self.heights[high + 1] - self.heights[low]
            self._runs[x] = low, high, height
        return height

    def _holds(self, row: int, x: int) -> bool:
        """Return whether a cell of a slab holds ``x``, edges included."""
        place = bisect_right(self.lefts[row], x) - 1
        return place >= 0 and x <= self.rows[row][place][1]


def _is_near(corners: Sequence[int], edge: int, side: int) -> bool:
    """Return whether the metal has a corner at most half a cut below or left of the edge of the cut.

    A cell between the two would look like a bottleneck, although current that enters wider metal there spreads at once.
    """
    place = bisect_right(corners, edge) - 1
    return place >= 0 and edge - corners[place] <= side // 2


def capacities(technology: Technology, mesh: Mesh) -> tuple[list[float | None], set[str]]:
    """Return the largest direct current of each link [mA], None where it is unknown, and what states no limit."""
    dbu, unknown = technology.dbu_um, set()
    conductors = {each.name: each for each in technology.conductors}
    cuts = {each.name: each for each in technology.cuts}
    found: list[float | None] = []
    for link in mesh.links:
        if link.name in cuts:
            limit = cuts[link.name].current_ma
        else:
            conductor = conductors[link.name]
            whole = conductor.current_ma(link.wire_width * dbu)
            limit = None if whole is None else whole * link.width / link.wire_width
        if limit is None:
            unknown.add(link.name)
        found.append(limit)
    return found, unknown


def ladder(mesh: Mesh, technology: Technology) -> dict[tuple[int, int], float]:
    """Return the conductance between cells [S]; links without a stated resistance are left out."""
    sheets = {each.name: each.sheet_ohm for each in technology.conductors}
    cuts = {each.name: each.resistance_ohm for each in technology.cuts}
    found: dict[tuple[int, int], float] = defaultdict(float)
    for link in mesh.links:
        ohm = cuts[link.name] if link.name in cuts else (sheets[link.name] or 0.0) * link.squares
        if ohm:
            found[min(link.one, link.other), max(link.one, link.other)] += 1 / ohm
    return dict(found)


def mean_resistance(
    conductances: Mapping[tuple[int, int], float], grounded: Collection[int], feeds: Sequence[int]
) -> float | None:
    """Return the mean voltage of the fed cells per current, where each of ``feeds`` feeds the same current. [ohm]

    One cell after the other is replaced by links between its neighbours (the star-mesh transformation: Rosen, 1924),
    those with the fewest neighbours first, so that the time grows with the number of cells.

    Args:
        conductances: Conductance between two cells. [S]
        grounded: Cells at 0 V.
        feeds: Cells into which current is fed; a cell that occurs twice gets two shares.

    Returns:
        None if a fed cell has no way to a grounded one.
    """
    links, to_ground = _network(conductances, grounded)
    current: dict[int, float] = defaultdict(float)
    for cell in feeds:
        if cell not in grounded:
            current[cell] += 1 / len(feeds)
    heap = [(len(links.get(cell, ())), cell) for cell in sorted({*links, *current})]
    heapify(heap)
    power, done = 0.0, set(grounded)
    while heap:
        count, cell = heappop(heap)
        near = links.get(cell, {})
        if cell in done or count != len(near):
            continue  # it has another number of neighbours now
        done.add(cell)
        total = to_ground[cell] + sum(near.values())
        if total:
            power += current[cell] ** 2 / total
        elif current[cell]:
            return None
        for one, conductance in near.items():
            part = conductance / total
            current[one] += current[cell] * part
            to_ground[one] += to_ground[cell] * part
            del links[one][cell]
            for other, its in near.items():
                if other != one:
                    links[one][other] = links[one].get(other, 0.0) + its * part
        for one in near:
            heappush(heap, (len(links[one]), one))
    return power  # of a current of 1 A: the voltage that the currents see


def _network(
    conductances: Mapping[tuple[int, int], float], grounded: Collection[int]
) -> tuple[dict[int, dict[int, float]], dict[int, float]]:
    """Return the conductance of each cell that is not grounded to its neighbours, and to ground. [S]"""
    links: dict[int, dict[int, float]] = defaultdict(dict)
    to_ground: dict[int, float] = defaultdict(float)
    for (one, other), conductance in conductances.items():
        for here, there in ((one, other), (other, one)):
            if there in grounded:
                to_ground[here] += conductance
            elif here not in grounded:
                links[here][there] = conductance
    return links, to_ground


def minimum_cut(
    nodes: int, edges: Sequence[tuple[int, int, int]], source: int, sink: int, enough: int | None = None
) -> tuple[int, list[bool]]:
    """Return the maximum flow, and for each node whether a minimum cut leaves it on the side of the source.

    Args:
        nodes: Number of nodes.
        edges: Two nodes and the capacity between them, in both directions.
        source: Where the flow starts.
        sink: Where it ends.
        enough: A flow that is large enough. If edges of at least this capacity join source and sink, it is returned as
            the flow, with all nodes on the side of the source. None: find the maximum flow.
    """
    import networkx as nx
    from networkx.algorithms.flow import boykov_kolmogorov

    network = _FlowNetwork(nodes, edges, enough)
    if enough is not None and network.root(source) == network.root(sink):
        return enough, [True] * nodes
    source, sink = network.root(source), network.root(sink)
    network.contract(source, sink)
    most = min(sum(network.rooms[end].values()) for end in (source, sink))  # no minimum cut crosses an edge above it
    every = ((one, other, room) for one, rooms in enumerate(network.rooms) for other, room in rooms.items())
    left = _FlowNetwork(nodes, [each for each in every if each[0] < each[1]], most + 1)
    source, sink = left.root(source), left.root(sink)
    residual: nx.DiGraph[int] = nx.DiGraph(inf=3 * most + 1)  # networkx: twice the flow is below it
    residual.add_nodes_from((source, sink))
    for one, rooms in enumerate(left.rooms):
        if rooms:
            residual.add_edges_from((one, other, {"capacity": room, "flow": 0}) for other, room in rooms.items())
    boykov_kolmogorov(residual, source, sink, residual=residual)
    reached, _ = residual.graph["trees"]
    roots = left.roots()
    return int(residual.graph["flow_value"]), [roots[root] in reached for root in network.roots()]


class _FlowNetwork:
    """Nodes, each with the capacity to its neighbours, and the node that each was joined to."""

    def __init__(self, nodes: int, edges: Sequence[tuple[int, int, int]], enough: int | None) -> None:
        self.rooms: list[dict[int, int]] = [{} for _ in range(nodes)]
        self.parents = list(range(nodes))
        if enough is not None:
            for one, other, room in edges:
                if room >= enough:
                    self.parents[self.root(one)] = self.root(other)
        roots, rooms = self.roots(), self.rooms
        for start, end, room in edges:
            one, other = roots[start], roots[end]
            if one != other and room > 0:
                near = rooms[one]
                rooms[other][one] = near[other] = near.get(other, 0) + room

    def roots(self) -> list[int]:
        """Return the node that each node was joined to."""
        return [node if node == above else self.root(node) for node, above in enumerate(self.parents)]

    def root(self, node: int) -> int:
        """Return the node that ``node`` was joined to."""
        while self.parents[node] != node:
            self.parents[node] = self.parents[self.parents[node]]
            node = self.parents[node]
        return node

    def contract(self, source: int, sink: int) -> None:
        """Join nodes that some minimum cut does not separate."""
        totals = [sum(rooms.values()) for rooms in self.rooms]
        waiting = deque(node for node, rooms in enumerate(self.rooms) if rooms)
        queued = [bool(rooms) for rooms in self.rooms]
        while waiting:
            node = waiting.popleft()
            queued[node] = False
            rooms = self.rooms[node]
            if not rooms or node in (source, sink) or self.parents[node] != node:
                continue
            strongest = max(rooms, key=rooms.__getitem__)
            if 2 * rooms[strongest] < totals[node]:
                continue
            for near in self._join(node, strongest, totals):
                if not queued[near]:
                    queued[near] = True
                    waiting.append(near)

    def _join(self, node: int, kept: int, totals: list[int]) -> list[int]:
        """Join ``node`` to ``kept`` and return the nodes whose edges changed."""
        self.parents[node] = kept
        room = self.rooms[kept].pop(node)
        totals[kept] -= room
        changed = [kept]
        for other, own in self.rooms[node].items():
            if other == kept:
                continue
            del self.rooms[other][node]
            self.rooms[other][kept] = self.rooms[other].get(kept, 0) + own
            self.rooms[kept][other] = self.rooms[kept].get(other, 0) + own
            totals[kept] += own
            changed.append(other)
        self.rooms[node] = {}
        return changed
