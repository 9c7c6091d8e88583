"""One way to all pictures: choose, draw, and say what was left out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from designgraph.graph_errors import GraphError
from designgraph.pictures.excerpt import Excerpt, Selection, excerpt
from designgraph.values import check_id

if TYPE_CHECKING:
    from designgraph.service import KnowledgeGraph

# form: (default number of nodes, largest number of nodes, largest number of relations)
BOUNDS = {"mermaid": (100, 500, 500), "svg": (200, 1000, 4000), "html": (1000, 5000, 20_000)}
SUFFIXES = {".mmd": "mermaid", ".mermaid": "mermaid", ".md": "mermaid", ".svg": "svg", ".html": "html", ".htm": "html"}


def picture(knowledge: KnowledgeGraph, graph_id: str, form: str, selection: Selection) -> tuple[str, Excerpt]:
    """Return a picture's text and what it shows.

    Args:
        knowledge: Where the graph is.
        graph_id: Which one.
        form: ``mermaid``, ``svg`` or ``html``.
        selection: What to show; ``max_nodes`` 0 takes the form's default.

    Raises:
        GraphError: If something asked for does not exist, or more nodes than the form can show are asked for.
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
        from designgraph.pictures.mermaid import mermaid

        return mermaid(shown)
    if form == "svg":
        from designgraph.pictures.svg import svg

        return svg(shown)
    from designgraph.pictures.html_page import page

    return page(shown)
