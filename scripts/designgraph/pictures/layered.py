"""A layered graph drawing, in which relations run from left to right.

networkx orders the nodes into layers by longest path. An edge over several layers gets a bend in each, and a node
stands at the mean position of its neighbours in the layer before: Sugiyama, Tagawa and Toda, "Methods for visual
understanding of hierarchical system structures", IEEE Trans. SMC 11 (1981).
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Edge = tuple[str, str]

GAP_X = 90.0
GAP_Y = 18.0
ROW_WIDTH = 900.0
MAX_BENDS = 20_000
SWEEPS = 4
_BEND_SIZE = (0.0, 10.0)


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
    import networkx as nx

    graph = nx.DiGraph(sorted({edge for edge in edges if edge[0] != edge[1]}))
    parts = sorted(map(sorted, nx.weakly_connected_components(graph)), key=lambda part: (-len(part), part))
    boxes: dict[str, Box] = {}
    bends: dict[Edge, list[tuple[float, float]]] = {}
    top = 0.0
    for part in parts:
        routed, paths = _with_bends(graph.subgraph(part))
        places = _places(routed, {**dict.fromkeys(routed, _BEND_SIZE), **{name: sizes[name] for name in part}}, top)
        boxes.update({name: places[name] for name in part})
        bends.update({edge: [_middle(places[name]) for name in path] for edge, path in paths.items()})
        top = max(box.y + box.height for box in places.values()) + 2 * GAP_Y
    x = row_height = 0.0
    for name in sorted(sizes.keys() - set(graph)):  # nodes without edges stand in rows below the rest
        if x and x + sizes[name][0] > ROW_WIDTH:
            x, top, row_height = 0.0, top + row_height + GAP_Y, 0.0
        boxes[name] = Box(x, top, *sizes[name])
        x += sizes[name][0] + GAP_Y
        row_height = max(row_height, sizes[name][1])
    right = max((box.x + box.width for box in boxes.values()), default=0.0)
    return Drawing(boxes, bends, right, max((box.y + box.height for box in boxes.values()), default=0.0))


def _with_bends(graph: Any) -> tuple[Any, dict[Edge, list[str]]]:
    """Return the graph with a node for each bend and each node's layer, and the bends of every edge in its order."""
    import networkx as nx

    back = _back_edges(graph)
    turned = {edge: edge[::-1] if edge in back else edge for edge in sorted(graph.edges)}
    forward = nx.DiGraph(list(turned.values()))
    layer = {name: index for index, names in enumerate(nx.topological_generations(forward)) for name in names}
    for name in forward:
        if not forward.pred[name]:
            layer[name] = min(layer[other] for other in forward.succ[name]) - 1
    paths: dict[Edge, list[str]] = {}
    routed, left = nx.DiGraph(), MAX_BENDS
    routed.add_nodes_from((name, {"layer": layer[name]}) for name in forward)
    for edge, (first, last) in turned.items():
        steps = range(layer[first] + 1, layer[last])
        path = [f"{first} {last} {step}" for step in steps] if len(steps) <= left else []  # no id has a blank
        left -= len(path)
        routed.add_nodes_from((bend, {"layer": step}) for bend, step in zip(path, steps, strict=False))
        nx.add_path(routed, [first, *path, last])
        paths[edge] = path[::-1] if edge in back else path
    return routed, paths


def _back_edges(graph: Any) -> set[Edge]:
    """Return the edges that close a cycle in a depth-first search which starts where fewest edges enter."""
    import networkx as nx

    ordered = nx.DiGraph()
    ordered.add_nodes_from(sorted(graph, key=lambda name: (graph.in_degree(name), name)))
    ordered.add_edges_from(sorted(graph.edges))
    back, open_nodes = set(), set()
    for source, target, step in nx.dfs_labeled_edges(ordered):
        if step == "forward":
            open_nodes.add(target)
        elif step == "reverse":
            open_nodes.discard(target)
        elif target in open_nodes:
            back.add((source, target))
    return back


def _places(graph: Any, sizes: Mapping[str, tuple[float, float]], top: float) -> dict[str, Box]:
    """Return the boxes of a connected part below ``top``: a column a layer, in the order of the neighbours' means."""
    columns: dict[int, list[str]] = {}
    for name, layer in sorted(graph.nodes(data="layer")):
        columns.setdefault(layer, []).append(name)
    y = {name: float(place) for column in columns.values() for place, name in enumerate(column)}
    for sweep in range(SWEEPS):
        near = graph.succ if sweep % 2 else graph.pred
        for layer in sorted(columns, reverse=bool(sweep % 2)):
            columns[layer].sort(key=lambda name: fmean([y[other] for other in near[name]] or [y[name]]))
            height = sum(sizes[name][1] + GAP_Y for name in columns[layer])
            bottom = -height / 2
            for name in columns[layer]:
                y[name] = bottom + sizes[name][1] / 2
                bottom += sizes[name][1] + GAP_Y
    highest = min(y[name] - sizes[name][1] / 2 for name in y)
    boxes, x = {}, 0.0
    for _, column in sorted(columns.items()):
        widest = max(sizes[name][0] for name in column)
        for name in column:
            width, height = sizes[name]
            boxes[name] = Box(x + (widest - width) / 2, y[name] - height / 2 - highest + top, width, height)
        x += widest + GAP_X
    return boxes


def _middle(box: Box) -> tuple[float, float]:
    return box.x + box.width / 2, box.y + box.height / 2
