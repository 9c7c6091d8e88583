"""Pictures of a graph (S2.6): Mermaid text, SVG, and an HTML page that needs only a browser."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from designgraph.graph_errors import GraphError
from designgraph.pictures.excerpt import Excerpt, Selection, excerpt
from designgraph.values import check_id

if TYPE_CHECKING:
    from designgraph.pictures.excerpt import Excerpt
    from designgraph.service import KnowledgeGraph

# form: (default number of nodes, largest number of nodes, largest number of relations); Mermaid refuses a flowchart
# with more than 500 edges unless its host raises the limit
BOUNDS = {"mermaid": (100, 500, 500), "svg": (200, 1000, 4000), "html": (1000, 5000, 20_000)}
SUFFIXES = {".mmd": "mermaid", ".mermaid": "mermaid", ".md": "mermaid", ".svg": "svg", ".html": "html", ".htm": "html"}


def picture(knowledge: KnowledgeGraph, graph_id: str, form: str, selection: Selection) -> tuple[str, Excerpt]:
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
    return _drawn(form, shown), shown


def _drawn(form: str, shown: Excerpt) -> str:
    if form == "mermaid":
        return mermaid(shown)
    if form == "svg":
        from designgraph.pictures.svg import svg

        return svg(shown)
    from designgraph.pictures.html_page import page

    return page(shown)


_PLAIN = frozenset(" _-.,:=+*/()!?%@'")


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
