"""The eight operations under their names in the specification, with its arguments and form of answer (S2.1, S2.5)::

answer("kg_create_node", graphId="uart", id="tx", type="Signal", properties={"width": "1"})
{"success": True, "data": {...}}  or  {"success": False, "error": "...", "code": "NODE_EXISTS"}
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from designgraph.graph import GraphError
from designgraph.service import KnowledgeGraph, Page, open_graph
from sturdy.near_names import sentences

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAX_NAMED = 20  # graphs in a message
# The codes of the specification and their meanings; the skill's tools declare them in their output schemas.
ERROR_CODES = {
    "NODE_EXISTS": "the graph has a node of that id already",
    "NODE_NOT_FOUND": "the graph has no node of that id",
    "RELATION_EXISTS": "the graph has that relation already",
    "RELATION_NOT_FOUND": "the graph has no such relation",
    "HAS_RELATIONS": "relations lead to or from the node",
    "INVALID_ID": "an id does not follow the id rule",
    "INVALID_TYPE": "the graph's type rule does not allow the type",
}


def perform(operation: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of one operation on the graphs of the project.

    Args:
        operation: ``kg_init`` or ``kg.init``, and so on.
        arguments: The arguments; optional ones may be omitted.

    Raises:
        GraphError: As the operation does; INVALID_PARAM for an unknown operation or wrong arguments.
    """
    name = operation.replace("kg_", "kg.", 1)
    if name not in _OPERATIONS:
        raise GraphError(f"unknown operation {operation!r}; there are {', '.join(_OPERATIONS)}")
    operate, required, optional = _OPERATIONS[name]
    missing = [argument for argument in required if argument not in arguments]
    unknown = [argument for argument in arguments if argument not in (*required, *optional)]
    if missing or unknown:
        faults = [f"missing argument {argument}" for argument in missing]
        faults += [f"unknown argument {argument}" for argument in unknown]
        raise GraphError(f"{sentences(faults)}; {name} takes {', '.join((*required, *optional))}")
    graph = open_graph()
    try:
        values = [arguments[argument] for argument in required]
        return operate(graph, *values, **_named(arguments, optional))
    except GraphError as error:
        if error.code not in ("NODE_NOT_FOUND", "RELATION_NOT_FOUND"):
            raise
        known = [each["graphId"] for each in graph.list_graphs()["graphs"]]
        asked = arguments["graphId"]
        if asked in known:
            raise
        there_are = ", ".join(known[:MAX_NAMED]) or "none"
        text = f"graph '{asked}' does not exist; there are: {there_are}"
        raise GraphError(text, {"graphId": asked, "available": known[:MAX_NAMED]}, error.code) from error


def answer(operation: str, **arguments: Any) -> dict[str, Any]:
    """Return ``{"success": True, "data"}`` or ``{"success": False, "error", "code"}``; never raise a ``GraphError``.

    Args:
        operation: ``kg_init``, ``kg_create_node``, ``kg_create_relation``, ``kg_delete_node``, ``kg_delete_relation``,
            ``kg_update_node``, ``kg_query`` or ``kg_list``.
        **arguments: The arguments, as for ``perform``.
    """
    try:
        return {"success": True, "data": perform(operation, arguments)}
    except GraphError as error:
        return {"success": False, "error": str(error), "code": error.code}


def _named(arguments: Mapping[str, Any], optional: tuple[str, ...]) -> dict[str, Any]:
    """Return the optional arguments by the names that they have in Python."""
    named = {_IN_PYTHON.get(name, name): arguments[name] for name in optional if name in arguments}
    paging = {name: named.pop(name) for name in _PAGE if name in named}
    if paging.get("fields") is not None:
        paging["fields"] = tuple(paging["fields"])
    return {**named, "page": Page(**paging)} if paging else named


def _list(graph: KnowledgeGraph, **choice: Any) -> dict[str, Any]:
    return graph.list_nodes(**choice) if "graph_id" in choice else graph.list_graphs()


_PAGE = ("limit", "cursor", "fields")
_RELATION = ("graphId", "fromId", "toId", "type")
_IN_PYTHON = {"graphId": "graph_id", "type": "node_type", "relationTypes": "relation_types"}
# The function, the arguments that it must get, in its order, and those that it may get.
_OPERATIONS: dict[str, tuple[Callable[..., dict[str, Any]], tuple[str, ...], tuple[str, ...]]] = {
    "kg.init": (KnowledgeGraph.init, ("graphId",), ("nodes", "relations", "input_path")),
    "kg.create_node": (KnowledgeGraph.create_node, ("graphId", "id", "type"), ("properties",)),
    "kg.create_relation": (KnowledgeGraph.create_relation, _RELATION, ()),
    "kg.delete_node": (KnowledgeGraph.delete_node, ("graphId", "id"), ()),
    "kg.delete_relation": (KnowledgeGraph.delete_relation, _RELATION, ()),
    "kg.update_node": (KnowledgeGraph.update_node, ("graphId", "id", "properties"), ()),
    "kg.query": (KnowledgeGraph.query, ("graphId", "nodeId"), ("depth", "direction", "relationTypes", *_PAGE)),
    "kg.list": (_list, (), ("graphId", "type", *_PAGE)),
}
