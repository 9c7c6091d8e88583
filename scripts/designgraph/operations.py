"""The eight operations under their names in the specification, with its arguments and form of answer (S2.1, S2.5)::

answer("kg_create_node", graphId="uart", id="tx", type="Signal", properties={"width": "1"})
{"success": True, "data": {...}}  or  {"success": False, "error": "...", "code": "NODE_EXISTS"}
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from designgraph.graph_errors import GraphError, NodeNotFoundError, RelationNotFoundError, sentences
from designgraph.paging import DEFAULT_LIMIT, Page
from designgraph.service import KnowledgeGraph, open_graph

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
    required, optional, run = _OPERATIONS[name]
    missing = [argument for argument in required if argument not in arguments]
    unknown = [argument for argument in arguments if argument not in (*required, *optional)]
    if missing or unknown:
        faults = [f"missing argument {argument}" for argument in missing]
        faults += [f"unknown argument {argument}" for argument in unknown]
        raise GraphError(f"{sentences(faults)}; {name} takes {', '.join((*required, *optional))}")
    graph = open_graph()
    try:
        return run(graph, arguments)
    except (NodeNotFoundError, RelationNotFoundError) as error:
        known = [each["graphId"] for each in graph.list_graphs()["graphs"]]
        asked = arguments["graphId"]
        if asked in known:
            raise
        there_are = ", ".join(known[:MAX_NAMED]) or "none"
        text = f"graph '{asked}' does not exist; there are: {there_are}"
        raise type(error)(text, {"graphId": asked, "available": known[:MAX_NAMED]}) from error


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


def _page(arguments: Mapping[str, Any]) -> Page:
    fields = arguments.get("fields")
    return Page(
        arguments.get("limit", DEFAULT_LIMIT),
        arguments.get("cursor", ""),
        None if fields is None else tuple(fields),
    )


def _query(graph: KnowledgeGraph, given: Mapping[str, Any]) -> dict[str, Any]:
    return graph.query(
        given["graphId"],
        given["nodeId"],
        given.get("depth", 1),
        direction=given.get("direction", "out"),
        relation_types=given.get("relationTypes"),
        page=_page(given),
    )


_Operation = tuple[tuple[str, ...], tuple[str, ...], "Callable[[KnowledgeGraph, Mapping[str, Any]], dict[str, Any]]"]
_RELATION = ("graphId", "fromId", "toId", "type")
_PAGE = ("limit", "cursor", "fields")
_OPERATIONS: dict[str, _Operation] = {
    "kg.init": (
        ("graphId",),
        ("nodes", "relations", "input_path"),
        lambda graph, given: graph.init(
            given["graphId"],
            given.get("nodes", ()),
            given.get("relations", ()),
            input_path=given.get("input_path"),
        ),
    ),
    "kg.create_node": (
        ("graphId", "id", "type"),
        ("properties",),
        lambda graph, given: graph.create_node(given["graphId"], given["id"], given["type"], given.get("properties")),
    ),
    "kg.create_relation": (
        _RELATION,
        (),
        lambda graph, given: graph.create_relation(*(given[name] for name in _RELATION)),
    ),
    "kg.delete_node": (
        ("graphId", "id"),
        (),
        lambda graph, given: graph.delete_node(given["graphId"], given["id"]),
    ),
    "kg.delete_relation": (
        _RELATION,
        (),
        lambda graph, given: graph.delete_relation(*(given[name] for name in _RELATION)),
    ),
    "kg.update_node": (
        ("graphId", "id", "properties"),
        (),
        lambda graph, given: graph.update_node(given["graphId"], given["id"], given["properties"]),
    ),
    "kg.query": (("graphId", "nodeId"), ("depth", "direction", "relationTypes", *_PAGE), _query),
    "kg.list": (
        (),
        ("graphId", "type", *_PAGE),
        lambda graph, given: (
            graph.list_nodes(given["graphId"], given.get("type"), page=_page(given))
            if "graphId" in given
            else graph.list_graphs()
        ),
    ),
}
