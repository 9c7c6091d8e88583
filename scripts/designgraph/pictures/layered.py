"""A layered graph drawing, in which relations run from left to right.

The method is that of Sugiyama, Tagawa and Toda, "Methods for visual understanding of hierarchical system structures",
IEEE Trans. SMC 11 (1981): break cycles, assign nodes to layers by longest path, give long edges a bend in every layer
that they cross, order each layer by the mean position of the neighbours, and place nodes by least squares without
overlap.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Edge = tuple[str, str]

GAP_X = 90.0
GAP_Y = 18.0
BEND_HEIGHT = 10.0
MAX_BENDS = 20_000
SWEEPS = 12


@dataclass(frozen=True)
class Box:
    """Position and size of a node.

    Attributes:
        x: Left side.
        y: Upper side.
        width: Width.
        height: Height.
    """

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Drawing:
    """Positions of all nodes and edges.

    Attributes:
        boxes: Box of each node.
        bends: Points of an edge between its ends, from source to target.
        width: Total width.
        height: Total height.
    """

    boxes: Mapping[str, Box]
    bends: Mapping[Edge, Sequence[tuple[float, float]]]
    width: float
    height: float


def arrange(sizes: Mapping[str, tuple[float, float]], edges: Iterable[Edge]) -> Drawing:
    """Return the positions of nodes with these sizes (width, height) and of their edges, in the unit of the sizes."""
    wanted = sorted({edge for edge in edges if edge[0] != edge[1]})
    boxes: dict[str, Box] = {}
    bends: dict[Edge, list[tuple[float, float]]] = {}
    parts = _components(sizes, wanted)
    loose = [part[0] for part in parts if len(part) == 1]
    top = width = 0.0
    for part in (part for part in parts if len(part) > 1):
        members = set(part)
        drawing = _Layers({name: sizes[name] for name in part}, [e for e in wanted if e[0] in members]).drawing()
        boxes.update({name: Box(b.x, b.y + top, b.width, b.height) for name, b in drawing.boxes.items()})
        bends.update({edge: [(x, y + top) for x, y in points] for edge, points in drawing.bends.items()})
        top += drawing.height + 2 * GAP_Y
        width = max(width, drawing.width)
    return _with_loose(Drawing(boxes, bends, width, top), loose, sizes)


def _with_loose(drawing: Drawing, loose: list[str], sizes: Mapping[str, tuple[float, float]]) -> Drawing:
    """Place nodes without edges in rows below the rest."""
    boxes = dict(drawing.boxes)
    room = max(drawing.width, 900.0)
    x, y, row_height, width = 0.0, drawing.height, 0.0, drawing.width
    for name in loose:
        if x and x + sizes[name][0] > room:
            x, y, row_height = 0.0, y + row_height + GAP_Y, 0.0
        boxes[name] = Box(x, y, *sizes[name])
        x += sizes[name][0] + GAP_Y
        width = max(width, x - GAP_Y)
        row_height = max(row_height, sizes[name][1])
    return Drawing(boxes, drawing.bends, width, y + row_height)


def _components(sizes: Iterable[str], edges: Iterable[Edge]) -> list[list[str]]:
    """Return the connected components, the largest first."""
    import networkx as nx

    graph = nx.Graph(edges)
    graph.add_nodes_from(sizes)
    return sorted(map(sorted, nx.connected_components(graph)), key=lambda part: (-len(part), part))


class _Layers:
    """The layers of one connected component."""

    def __init__(self, sizes: dict[str, tuple[float, float]], edges: list[Edge]) -> None:
        self.sizes = dict(sizes)
        self.edges = edges
        self.forward = _without_cycles(sorted(sizes), edges)
        self.layer = _longest_paths(sorted(sizes), [self.turned(edge) for edge in edges])
        self.paths = self._bend()
        self.layers = self._ordered()

    def turned(self, edge: Edge) -> Edge:
        """Return an edge in the direction that leads to a later layer."""
        return edge if edge in self.forward else (edge[1], edge[0])

    def _bend(self) -> dict[Edge, list[str]]:
        """Add a bend in every layer between the ends of an edge; return the nodes along each edge."""
        paths: dict[Edge, list[str]] = {}
        left = MAX_BENDS
        for edge in self.edges:
            source, target = self.turned(edge)
            path = [source]
            steps = range(self.layer[source] + 1, self.layer[target])
            if len(steps) <= left:
                left -= len(steps)
                for step in steps:
                    bend = f"{source} {target} {step}"  # contains blanks, so no node has this id
                    self.layer[bend] = step
                    self.sizes[bend] = (0.0, BEND_HEIGHT)
                    path.append(bend)
            paths[edge] = [*path, target]
        return paths

    def _ordered(self) -> list[list[str]]:
        """Return the nodes of each layer in an order with few crossings of edges."""
        count = max(self.layer.values()) + 1
        layers: list[list[str]] = [[] for _ in range(count)]
        for name in sorted(self.layer):
            layers[self.layer[name]].append(name)
        before, after = self._neighbours()
        best, fewest = [list(layer) for layer in layers], _crossings(layers, after)
        for sweep in range(SWEEPS):
            down = sweep % 2 == 0
            near = before if down else after
            for index in range(1, count) if down else range(count - 2, -1, -1):
                fixed = {name: place for place, name in enumerate(layers[index - 1 if down else index + 1])}
                layers[index] = _by_neighbours(layers[index], fixed, near)
            crossings = _crossings(layers, after)
            if crossings < fewest:
                best, fewest = [list(layer) for layer in layers], crossings
        return best

    def _neighbours(self) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
        before: dict[str, list[str]] = {name: [] for name in self.layer}
        after: dict[str, list[str]] = {name: [] for name in self.layer}
        for path in self.paths.values():
            for first, second in pairwise(path):
                after[first].append(second)
                before[second].append(first)
        return before, after

    def drawing(self) -> Drawing:
        """Return the positions."""
        before, after = self._neighbours()
        centers = _placed(self.layers, self.sizes, before, after)
        boxes: dict[str, Box] = {}
        middle: dict[str, tuple[float, float]] = {}
        x = 0.0
        top = min(centers[name] - self.sizes[name][1] / 2 for name in centers)
        for layer in self.layers:
            widest = max(self.sizes[name][0] for name in layer)
            for name in layer:
                width, height = self.sizes[name]
                y = centers[name] - top
                boxes[name] = Box(x + (widest - width) / 2, y - height / 2, width, height)
                middle[name] = (x + widest / 2, y)
            x += widest + GAP_X
        bends = {}
        for edge, path in self.paths.items():
            points = [middle[name] for name in path[1:-1]]
            bends[edge] = points if edge in self.forward else points[::-1]
        real = {name: box for name, box in boxes.items() if " " not in name}
        height = max(box.y + box.height for box in boxes.values())
        return Drawing(real, bends, x - GAP_X, height)


def _without_cycles(names: list[str], edges: list[Edge]) -> set[Edge]:
    """Return the edges that keep their direction: all but the back edges of a depth-first search."""
    import networkx as nx

    entering = Counter(target for _, target in edges)
    graph = nx.DiGraph()
    graph.add_nodes_from(sorted(names, key=lambda name: (entering[name], name)))
    graph.add_edges_from(edges)
    forward, open_nodes = set(edges), set()
    for source, target, step in nx.dfs_labeled_edges(graph):
        if step == "forward":
            open_nodes.add(target)
        elif step == "reverse":
            open_nodes.discard(target)
        elif target in open_nodes:
            forward.discard((source, target))
    return forward


def _longest_paths(names: list[str], edges: list[Edge]) -> dict[str, int]:
    """Return the layer of each node: one after its last predecessor; for sources, one before the first successor."""
    import networkx as nx

    graph = nx.DiGraph(edges)
    graph.add_nodes_from(names)
    layer: dict[str, int] = {}
    for name in nx.topological_sort(graph):
        layer[name] = max((layer[other] + 1 for other in graph.pred[name]), default=0)
    for name in names:
        if not graph.pred[name] and graph.succ[name]:
            layer[name] = min(layer[other] for other in graph.succ[name]) - 1
    return layer


def _by_neighbours(layer: list[str], fixed: Mapping[str, int], near: Mapping[str, list[str]]) -> list[str]:
    """Return a layer sorted by the mean position of each node's neighbours; a node without any keeps its place."""
    places = {name: place for place, name in enumerate(layer)}

    def mean(name: str) -> tuple[float, int]:
        found = [fixed[other] for other in near[name] if other in fixed]
        return (sum(found) / len(found) if found else float(places[name]), places[name])

    return sorted(layer, key=mean)


def _crossings(layers: list[list[str]], after: Mapping[str, list[str]]) -> int:
    """Return how many pairs of edges between neighbouring layers cross (counted with a binary indexed tree)."""
    total = 0
    for first, second in pairwise(layers):
        place = {name: index for index, name in enumerate(second)}
        tree = [0] * (len(second) + 1)
        seen = 0
        for name in first:
            ends = sorted(place[other] for other in after[name] if other in place)
            for end in ends:
                passed, index = 0, end + 1
                while index:
                    passed += tree[index]
                    index &= index - 1
                total += seen - passed
            for end in ends:
                seen += 1
                index = end + 1
                while index < len(tree):
                    tree[index] += 1
                    index += index & -index
    return total


def _placed(
    layers: list[list[str]],
    sizes: Mapping[str, tuple[float, float]],
    before: Mapping[str, list[str]],
    after: Mapping[str, list[str]],
) -> dict[str, float]:
    """Return the vertical centre of every node: as near to its neighbours as the order of its layer allows."""
    centers: dict[str, float] = {}
    for layer in layers:
        y = 0.0
        for name in layer:
            centers[name] = y + sizes[name][1] / 2
            y += sizes[name][1] + GAP_Y
    for sweep in range(SWEEPS):
        near = before if sweep % 2 == 0 else after
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            wanted = [
                sum(centers[other] for other in near[name]) / len(near[name]) if near[name] else centers[name]
                for name in layer
            ]
            offsets = [0.0]
            for first, second in pairwise(layer):
                offsets.append(offsets[-1] + (sizes[first][1] + sizes[second][1]) / 2 + GAP_Y)
            rising = _nearest_rising([w - o for w, o in zip(wanted, offsets, strict=True)])
            centers.update({n: r + o for n, r, o in zip(layer, rising, offsets, strict=True)})
    return centers


def _nearest_rising(values: list[float]) -> list[float]:
    """Return the non-decreasing sequence with the least squared distance to ``values`` (pool adjacent violators)."""
    pools: list[tuple[float, int]] = []
    for value in values:
        total, count = value, 1
        while pools and pools[-1][0] * count > total * pools[-1][1]:
            more, members = pools.pop()
            total, count = total + more, count + members
        pools.append((total, count))
    return [total / count for total, count in pools for _ in range(count)]
