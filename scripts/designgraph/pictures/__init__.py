"""Pictures of a graph (S2.6): Mermaid text, SVG, and an HTML page that needs only a browser."""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any
from unicodedata import east_asian_width

from designgraph.exchange import filled, xml_text
from designgraph.graph import GraphError, check_id
from designgraph.pictures.excerpt import Excerpt, GraphSelection, excerpt

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from designgraph.pictures.excerpt import Shown
    from designgraph.service import KnowledgeGraph

    Edge = tuple[str, str]

# form: (default number of nodes, largest number of nodes, largest number of relations); Mermaid refuses a flowchart
# with more than 500 edges unless its host raises the limit
BOUNDS = {"mermaid": (100, 500, 500), "svg": (200, 1000, 4000), "html": (1000, 5000, 20_000)}
SUFFIXES = {".mmd": "mermaid", ".mermaid": "mermaid", ".md": "mermaid", ".svg": "svg", ".html": "html", ".htm": "html"}
_PLAIN = frozenset(" _-.,:=+*/()!?%@'")
_FOLDER = Path(__file__).parent
GAP_X = 90.0
GAP_Y = 18.0
ROW_WIDTH = 900.0
MAX_BENDS = 20_000
SWEEPS = 4
_BEND_SIZE = (0.0, 10.0)


def picture(knowledge: KnowledgeGraph, graph_id: str, form: str, selection: GraphSelection) -> tuple[str, Excerpt]:
    """Return the text of a picture and the excerpt that it shows.

    Args:
        knowledge: The graphs.
        graph_id: The graph.
        form: ``mermaid``, ``svg`` or ``html``.
        selection: What to show; ``max_nodes`` 0 means the default of the format.

    Raises:
        GraphError: If a requested node does not exist, or ``max_nodes`` is more than the format can show.
    """
    check_id(graph_id, "graphId")
    usual, most, most_relations = BOUNDS[form]
    if selection.max_nodes > most:
        raise GraphError(f"{form} shows at most {most} nodes, got {selection.max_nodes}; choose a node and a depth")
    bounded = replace(selection, max_nodes=selection.max_nodes or usual, max_relations=most_relations)
    rule = knowledge.types(graph_id)
    with knowledge.reading(graph_id) as graph:
        shown = excerpt(graph, graph_id, rule, bounded)
    return {"mermaid": mermaid, "svg": svg, "html": page}[form](shown), shown


def mermaid(picture: Excerpt) -> str:
    """Return the flowchart. Nodes are called n0, n1, ...: Mermaid reserves words such as ``end``."""
    names = {node.id: f"n{index}" for index, node in enumerate(picture.nodes)}
    lines = ["flowchart LR"]
    if picture.left_out:
        lines.append(f"  %% {picture.left_out}")
    for node in picture.nodes:
        label = escaped(node.id) + (f"<br/>{escaped(node.note)}" if node.note else "")
        lines.append(f'  {names[node.id]}["{label}"]:::{_class(node.type)}')
    lines += [f'  {names[source]} -->|"{escaped(kind)}"| {names[target]}' for source, target, kind in picture.relations]
    lines += [
        f"  classDef {_class(kind)} fill:{color},stroke:#333333,color:#ffffff" for kind, color in picture.colors.items()
    ]
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """Return ``text`` for a quoted Mermaid label, with special characters as entities ``#NUMBER;``."""
    return "".join(c if c.isalnum() or c in _PLAIN else f"#{ord(c)};" if c.isprintable() else " " for c in text)


def _class(node_type: str) -> str:
    return f"type_{node_type}"


def page(picture: Excerpt) -> str:
    """Return an HTML page with search, neighbourhoods and properties, which loads nothing from elsewhere.

    The graph is embedded as JSON in which markup is escaped, the script inserts text only as text, and the security
    policy of the page allows only this script, by its digest.
    """
    from jinja2 import Environment, StrictUndefined

    script, style = ((_FOLDER / f"page.{kind}").read_text(encoding="utf-8") for kind in ("js", "css"))
    engine = Environment(autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True)
    engine.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return engine.from_string((_FOLDER / "page.html").read_text(encoding="utf-8")).render(
        title=xml_text(f"{picture.graph_id} - design graph"),
        digest=b64encode(sha256(script.encode()).digest()).decode(),
        style=style,
        data=_data(picture),
        script=script,
    )


def _data(picture: Excerpt) -> dict[str, Any]:
    drawing = arrange({node.id: box_size(node) for node in picture.nodes}, {(r[0], r[1]) for r in picture.relations})
    place = {node.id: index for index, node in enumerate(picture.nodes)}
    nodes = []
    for node in picture.nodes:
        box = drawing.boxes[node.id]
        nodes.append(
            {
                "id": node.id,
                "type": node.type,
                "note": node.note,
                "properties": node.properties,
                "x": round(box.x, 1),
                "y": round(box.y, 1),
                "w": round(box.width, 1),
                "h": round(box.height, 1),
            }
        )
    bends = {
        f"{place[source]} {place[target]}": [[round(x, 1), round(y, 1)] for x, y in points]
        for (source, target), points in drawing.bends.items()
        if points
    }
    return {
        "graph": picture.graph_id,
        "focus": picture.focus,
        "leftOut": picture.left_out,
        "colors": picture.colors,
        "nodes": nodes,
        "bends": bends,
        "relations": [[place[source], place[target], kind] for source, target, kind in picture.relations],
    }


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


MARGIN = 24.0
LINE = 16.0
_NARROW, _WIDE = 7.2, 12.5  # px per character of 12 px sans-serif, rounded up
_TEMPLATE = Path(__file__).with_name("picture.svg.jinja")


def svg(picture: Excerpt) -> str:
    """Return the picture as the text of an SVG file."""
    sizes = {node.id: box_size(node) for node in picture.nodes}
    between: dict[tuple[str, str], list[str]] = {}
    for source, target, kind in picture.relations:
        between.setdefault((source, target), []).append(kind)
    drawing = arrange(sizes, between)
    around = f" around {picture.focus}" if picture.focus else ""
    head = f"{picture.graph_id}{around}: {len(picture.nodes)} nodes, {len(picture.relations)} relations"
    top = MARGIN + LINE * (2 if picture.left_out else 1) + MARGIN
    legend_y = top + drawing.height + MARGIN
    legend, legend_height, legend_width = _legend(picture, max(drawing.width, 480.0))
    return filled(
        _TEMPLATE,
        width=max(drawing.width, text_width(head) * 1.2, legend_width) + 2 * MARGIN,
        height=legend_y + legend_height + MARGIN,
        head=head,
        left_out=picture.left_out,
        top=top,
        arrows=_arrows(drawing, between),
        boxes=[(node, drawing.boxes[node.id]) for node in picture.nodes],
        focus=picture.focus,
        colors=picture.colors,
        legend=legend,
        legend_y=legend_y,
        margin=MARGIN,
        line=LINE,
    )


def text_width(text: str) -> float:
    """Return the approximate width of ``text`` at 12 px. [px]."""
    return sum(_WIDE if east_asian_width(c) in "WF" else _NARROW for c in text)


def box_size(node: Shown) -> tuple[float, float]:
    """Return the width and height of a node's box. [px]."""
    return max(60.0, text_width(node.id), text_width(node.note)) + 16, 2 * LINE + 8 if node.note else LINE + 10


def _arrows(drawing: Drawing, between: dict[tuple[str, str], list[str]]) -> list[tuple[str, float, float, str]]:
    """Return each arrow's path, the position of its text, and the text."""
    found = []
    degree = Counter(end for ends in between for end in ends)
    for (source, target), kinds in between.items():
        points = _points(drawing, source, target)
        text = ", ".join(kind.removeprefix("TERMINAL_") for kind in kinds)
        found.append((_curve(points), *_label_place(points, degree[source] - degree[target]), text))
    return found


def _points(drawing: Drawing, source: str, target: str) -> list[tuple[float, float]]:
    """Return the points of an arrow between the sides of its boxes."""
    start, end = drawing.boxes[source], drawing.boxes[target]
    if source == target:
        x, y = start.x + start.width, start.y + start.height / 2
        return [(x, y - 6), (x + 28, y - 14), (x + 28, y + 14), (x, y + 6)]
    rightwards = start.x < end.x
    first = (start.x + start.width if rightwards else start.x, start.y + start.height / 2)
    last = (end.x if rightwards else end.x + end.width, end.y + end.height / 2)
    return [first, *drawing.bends.get((source, target), ()), last]


def _curve(points: list[tuple[float, float]]) -> str:
    """Return a smooth path through ``points``, horizontal at each of them."""
    text = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in pairwise(points):
        middle = (x0 + x1) / 2
        text += f"C{middle:.1f} {y0:.1f} {middle:.1f} {y1:.1f} {x1:.1f} {y1:.1f}"
    return text


def _label_place(points: list[tuple[float, float]], surplus: int) -> tuple[float, float]:
    """Return the position of an arrow's text: nearer to the end with fewer arrows, where there is more space."""
    place = -2 if surplus > 0 else 0 if surplus < 0 else (len(points) - 1) // 2
    (x0, y0), (x1, y1) = points[place], points[place + 1]
    t = 0.68 if surplus > 0 else 0.32 if surplus < 0 else 0.5
    middle = 3 * t * (1 - t) * (x0 + x1) / 2  # both inner control points are in the middle
    return (1 - t) ** 3 * x0 + middle + t**3 * x1, y0 + (y1 - y0) * t * t * (3 - 2 * t)


def _legend(picture: Excerpt, room: float) -> tuple[list[tuple[str, float, float]], float, float]:
    """Return the types of the legend with their positions, its height and its width."""
    found = []
    x = y = width = 0.0
    for kind in picture.colors:
        needed = text_width(kind) + 36
        if x and x + needed > room:
            x, y = 0.0, y + LINE + 4
        found.append((kind, x, y))
        x += needed
        width = max(width, x)
    return found, y + LINE, width
