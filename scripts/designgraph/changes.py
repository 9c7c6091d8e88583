"""Changes: the words in which a graph is changed, journalled and rebuilt. A change is a JSON array::

["clear"]                                 begin with an empty graph
["node", id, type, properties]            add a node
["no_node", id]                           remove a node without relations
["properties", id, properties]            replace a node's properties
["relation", from, to, type]              add a relation
["no_relation", from, to, type]           remove a relation
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from designgraph.graph import Graph

Change = list[Any]
Undo = list[Callable[[], object]]


def apply(graphs: dict[str, Graph], graph_id: str, changes: list[Change]) -> Undo:
    """Make ``changes`` in one graph, all or none, and return what undoes them when called last to first.

    A graph that does not exist yet begins to.

    Raises:
        GraphError: If one of them cannot be made; nothing has changed then.
    """
    undo: Undo = []
    try:
        if graph_id not in graphs:
            graphs[graph_id] = Graph()
            undo.append(partial(graphs.pop, graph_id))
        for change in changes:
            undo.append(_apply_one(graphs, graph_id, change))
    except BaseException:  # whatever happens, the graph is as it was
        revert(undo)
        raise
    return undo


def revert(undo: Undo) -> None:
    """Undo what ``apply`` made."""
    for step in reversed(undo):
        step()


def _apply_one(graphs: dict[str, Graph], graph_id: str, change: Change) -> Callable[[], object]:
    graph = graphs[graph_id]
    match change:
        case ["node", node_id, node_type, properties]:
            graph.add_node(node_id, node_type, properties)
            return partial(graph.remove_node, node_id)
        case ["relation", source, target, relation_type]:
            graph.add_relation(source, target, relation_type)
            return partial(graph.remove_relation, source, target, relation_type)
        case ["properties", node_id, properties]:
            return partial(graph.set_properties, node_id, graph.set_properties(node_id, properties))
        case ["no_node", node_id]:
            node = graph.remove_node(node_id)
            return partial(graph.add_node, node_id, node.type, node.properties)
        case ["no_relation", source, target, relation_type]:
            graph.remove_relation(source, target, relation_type)
            return partial(graph.add_relation, source, target, relation_type)
        case ["clear"]:
            graphs[graph_id] = Graph()
            return partial(graphs.__setitem__, graph_id, graph)
    raise ValueError(f"unknown change {change!r}")
