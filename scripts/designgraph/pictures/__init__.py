"""Pictures of a graph (S2.6): Mermaid text, SVG, and an HTML page that needs only a browser."""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from designgraph.exchange import xml_text
from designgraph.graph_errors import GraphError
from designgraph.pictures.excerpt import Excerpt, GraphSelection, excerpt
from designgraph.pictures.svg import arrange, box_size, svg
from designgraph.values import check_id

if TYPE_CHECKING:
    from designgraph.service import KnowledgeGraph

# form: (default number of nodes, largest number of nodes, largest number of relations); Mermaid refuses a flowchart
# with more than 500 edges unless its host raises the limit
BOUNDS = {"mermaid": (100, 500, 500), "svg": (200, 1000, 4000), "html": (1000, 5000, 20_000)}
SUFFIXES = {".mmd": "mermaid", ".mermaid": "mermaid", ".md": "mermaid", ".svg": "svg", ".html": "html", ".htm": "html"}
_PLAIN = frozenset(" _-.,:=+*/()!?%@'")
_FOLDER = Path(__file__).parent


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
    return engine.from_string((_FOLDER / "page.html").read_text(encoding="utf-8")).render(
        title=xml_text(f"{picture.graph_id} - design graph"),
        digest=b64encode(sha256(script.encode()).digest()).decode(),
        style=style,
        data=_safe_json(_data(picture)),
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


def _safe_json(value: Any) -> str:
    """Return JSON text that cannot close a script element or open a comment in it."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
