"""The design graph: facts about a design, kept across sessions, checked for consistency and drawn.

::

    from designgraph import open_graph
    graph = open_graph()                      # .chipforge/kg/graph.json of the project
    graph.create_node("uart", "tx", "Signal", {"width": "1", "direction": "output"})

Nothing here knows about skills, envelopes, circuits or layouts. Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from designgraph.graph import GraphError
    from designgraph.operations import answer
    from designgraph.service import KnowledgeGraph, Page, open_graph

_HOMES = {
    "GraphError": "graph",
    "KnowledgeGraph": "service",
    "Page": "service",
    "answer": "operations",
    "open_graph": "service",
}

__all__ = ["GraphError", "KnowledgeGraph", "Page", "answer", "open_graph"]


def __getattr__(name: str) -> object:
    """Return the public ``name``, importing the module that defines it."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'designgraph' has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"designgraph.{home}"), name)
    globals()[name] = value
    return value
