"""One graph in memory: a networkx MultiDiGraph with typed nodes, and at most one relation of each type between two.

The key of an edge is its type. A node has the attributes ``type`` and ``text``: its properties as JSON text, which a
file can hold as it is, and of which every caller gets a copy. Ids follow one rule (S2.4), properties are plain JSON.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from sturdy.near_names import near_names, sentences
from sturdy.strict_json import NotJsonError, path_text, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from pathlib import Path
    from typing import TypeAlias

    import networkx as nx

    Graph: TypeAlias = nx.MultiDiGraph[str]


ID_RULE = "^[a-zA-Z_][a-zA-Z0-9_-]{0,59}$"
MAX_ID_LENGTH = 60
MAX_PROPERTIES_BYTES = 1 << 18
LEVELS_ABOVE = 8  # of the properties in an answer: envelope, data, nodes, node
_ID = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,59}")
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(", ", ": "))

is_id = _ID.fullmatch  # not match: "$" would accept "clk\n"
encode = _ENCODER.encode
Relation = tuple[str, str, str]
"""(from id, to id, type)."""

SHOWN = 20


class GraphError(Exception):
    """Base of all errors of this package: a request that cannot be carried out. Nothing was changed.

    Attributes:
        code: Error code of the answer, such as ``NODE_NOT_FOUND``.
        details: Facts behind the message, or ``None``.
    """

    code = "INVALID_PARAM"

    def __init__(self, message: str, details: Mapping[str, Any] | None = None, code: str = "") -> None:
        super().__init__(message)
        self.code = code or self.code
        self.details = None if details is None else dict(details)


class GraphFileError(GraphError):
    """The graph file, or a file beside it, cannot be used; ``details["faults"]`` may list the reasons."""


class NotStoredError(GraphError):
    """A change was not made because it could not be written to disk (disk full or failing, no file locks)."""

    code = "SERVICE_UNAVAILABLE"


class ManyFaultsError(GraphError):
    """A request has several faults; the first one gives the code, and ``details["errors"]`` lists all of them."""

    def __init__(self, faults: list[tuple[str, GraphError]]) -> None:
        first = faults[0][1]
        self.code = first.code
        shown = sentences([f"{path}: {error}" for path, error in faults], 10)
        listed = [{"path": path, "code": error.code, "message": str(error)} for path, error in faults]
        super().__init__(str(first) if len(faults) == 1 else shown, {**(first.details or {}), "errors": listed})


def unreadable(path: Path, reason: str, **details: Any) -> GraphFileError:
    """Return the error of a graph file that cannot be used."""
    return GraphFileError(f"{path} cannot be used: {reason}. Nothing was changed", {"path": str(path), **details})


def check_id(value: Any, what: str) -> str:
    """Return ``value`` if it is a valid id.

    Args:
        value: The id received.
        what: Name of the argument, for the message.

    Raises:
        GraphError: INVALID_ID if it is not a string that the id rule matches as a whole.
    """
    if isinstance(value, str) and is_id(value):
        return value
    shown = repr(value) if len(repr(value)) <= 80 else f"{repr(value)[:80]}..."
    raise GraphError(
        f"{what} {shown} is not a valid id: use 1 to {MAX_ID_LENGTH} letters, digits, '_' or '-', and begin with a "
        "letter or '_'",
        {"param_name": what, "provided_value": value if isinstance(value, str) else None, "pattern": ID_RULE},
        "INVALID_ID",
    )


def checked_properties(value: Any) -> dict[str, Any]:
    """Return a copy of ``value`` as plain JSON values.

    Raises:
        GraphError: If it is not an object, holds a value that JSON cannot represent, is nested too deeply or is too
            large.
    """
    if not isinstance(value, dict):
        raise GraphError(f"properties must be an object, got {type(value).__name__}")
    try:
        copied: dict[str, Any] = plain(value, LEVELS_ABOVE)
    except NotJsonError as error:
        raise GraphError(f"{path_text(('properties', *error.path))} {error.reason}") from None
    size = len(encode(copied).encode())
    if size > MAX_PROPERTIES_BYTES:
        raise GraphError(
            f"properties have {size} bytes, more than the {MAX_PROPERTIES_BYTES} allowed per node; keep long "
            "content in a file and store its path"
        )
    return copied


def new_graph() -> Graph:
    """Return an empty graph."""
    import networkx as nx

    return nx.MultiDiGraph()


def type_of(graph: Graph, node_id: str) -> str:
    """Return the type of a node."""
    found: str = graph.nodes[node_id]["type"]
    return found


def properties_of(graph: Graph, node_id: str) -> dict[str, Any]:
    """Return a copy of the properties of a node."""
    found: dict[str, Any] = json.loads(graph.nodes[node_id]["text"])
    return found


def node_json(graph: Graph, node_id: str) -> dict[str, Any]:
    """Return a node as ``{id, type, properties}``.

    Raises:
        GraphError: NODE_NOT_FOUND if there is none with this id.
    """
    _check_known(graph, node_id)
    return {"id": node_id, "type": type_of(graph, node_id), "properties": properties_of(graph, node_id)}


def relation_json(relation: Relation) -> dict[str, str]:
    """Return ``{from, to, type}``."""
    return {"from": relation[0], "to": relation[1], "type": relation[2]}


def relations(graph: Graph) -> list[Relation]:
    """Return every relation once, sorted by from, to and type."""
    rows = sorted(graph.adjacency())  # the dicts themselves, several times as fast as ``graph.edges``
    return [(start, end, kind) for start, ends in rows for end in sorted(ends) for kind in sorted(ends[end])]


def outgoing(graph: Graph, node_id: str) -> list[Relation]:
    """Return the relations that leave a node, sorted."""
    return sorted(graph.out_edges(node_id, keys=True))


def incoming(graph: Graph, node_id: str) -> list[Relation]:
    """Return the relations that reach a node, sorted."""
    return sorted(graph.in_edges(node_id, keys=True))


def add_node(graph: Graph, node_id: str, node_type: str, properties: dict[str, Any]) -> None:
    """Add a node.

    Raises:
        GraphError: NODE_EXISTS if its id is taken.
    """
    if node_id in graph:
        raise GraphError(
            f"node '{node_id}' exists already; update it or choose another id",
            {"id": node_id, "type": type_of(graph, node_id)},
            "NODE_EXISTS",
        )
    graph.add_node(node_id, type=node_type, text=encode(properties))


def remove_node(graph: Graph, node_id: str) -> None:
    """Remove a node that has no relations.

    Raises:
        GraphError: NODE_NOT_FOUND if there is none with this id.
        GraphError: HAS_RELATIONS if relations lead to or from it.
    """
    _check_known(graph, node_id)
    related = sorted({*outgoing(graph, node_id), *incoming(graph, node_id)})
    if related:
        raise GraphError(
            f"node '{node_id}' has {len(related)} relation{'s' if len(related) > 1 else ''}; delete them first",
            {"id": node_id, "count": len(related), "relations": [relation_json(r) for r in related[:SHOWN]]},
            "HAS_RELATIONS",
        )
    graph.remove_node(node_id)


def set_properties(graph: Graph, node_id: str, properties: dict[str, Any]) -> None:
    """Replace all properties of a node.

    Raises:
        GraphError: NODE_NOT_FOUND if there is none with this id.
    """
    _check_known(graph, node_id)
    graph.nodes[node_id]["text"] = encode(properties)


def add_relation(graph: Graph, source: str, target: str, relation_type: str) -> None:
    """Add a relation.

    Raises:
        GraphError: NODE_NOT_FOUND if one of its nodes does not exist.
        GraphError: RELATION_EXISTS if the two nodes already have one of this type.
    """
    _check_known(graph, source)
    _check_known(graph, target)
    if graph.has_edge(source, target, relation_type):
        raise GraphError(
            f"relation '{source}' -> '{target}' of type {relation_type} exists already",
            relation_json((source, target, relation_type)),
            "RELATION_EXISTS",
        )
    graph.add_edge(source, target, relation_type)


def remove_relation(graph: Graph, source: str, target: str, relation_type: str) -> str:
    """Remove a relation and return its type, which may differ from ``relation_type`` in case if only one does.

    Raises:
        GraphError: RELATION_NOT_FOUND if there is no such relation, or one of the nodes does not exist.
    """
    kinds = sorted(graph[source][target]) if graph.has_edge(source, target) else []
    meant = [kind for kind in kinds if kind.casefold() == relation_type.casefold()]
    kind = relation_type if relation_type in kinds or len(meant) != 1 else meant[0]
    if kind not in kinds:
        raise GraphError(
            f"relation '{source}' -> '{target}' of type {relation_type} does not exist",
            {
                **relation_json((source, target, relation_type)),
                "relations_between": [relation_json((source, target, kind)) for kind in kinds[:SHOWN]],
            },
            "RELATION_NOT_FOUND",
        )
    graph.remove_edge(source, target, kind)
    return kind


def read_graph(
    nodes: Iterable[Any],
    relations: Iterable[Any],
    check_node: Callable[[Any], str],
    check_relation: Callable[[Any], str],
) -> tuple[Graph, list[tuple[str, int, GraphError]]]:
    """Return the graph of untrusted nodes and relations, and each fault: its list, its index and what is wrong.

    Args:
        nodes: ``{id, type, properties}`` each.
        relations: ``{from, to, type}`` each.
        check_node: Returns the type of a node, or raises a ``GraphError``.
        check_relation: The same for a relation.
    """
    graph = new_graph()
    faults: list[tuple[str, int, GraphError]] = []
    sources = (("nodes", nodes, _read_node, check_node), ("relations", relations, _read_relation, check_relation))
    for name, items, read, check in sources:
        for index, item in enumerate(items):
            try:
                read(graph, item, check, is_first=not faults)  # to look for similar names takes long
            except GraphError as error:  # noqa: PERF203 - all faults are reported at once
                faults.append((name, index, error))
    return graph, faults


def _read_node(graph: Graph, item: Any, check: Callable[[Any], str], **_: bool) -> None:
    _check_fields(item, ("id", "type", "properties"))
    node_id, node_type = check_id(item.get("id"), "id"), check(item.get("type"))
    add_node(graph, node_id, node_type, checked_properties(item.get("properties", {})))


def _read_relation(graph: Graph, item: Any, check: Callable[[Any], str], *, is_first: bool) -> None:
    _check_fields(item, ("from", "to", "type"))
    source, target = check_id(item.get("from"), "from"), check_id(item.get("to"), "to")
    relation_type = check(item.get("type"))
    missing = [end for end in dict.fromkeys((source, target)) if end not in graph]
    if missing:
        text = " and ".join(f"node '{end}' does not exist" for end in missing)
        raise GraphError(
            text, {"id": missing[0], "similar": _similar(graph, missing[0]) if is_first else []}, "NODE_NOT_FOUND"
        )
    add_relation(graph, source, target, relation_type)


def _check_fields(item: Any, known: tuple[str, ...]) -> None:
    if not isinstance(item, dict):
        raise GraphError(f"must be an object of {', '.join(known)}, got {type(item).__name__}")
    unknown = sorted(set(item) - set(known))
    if unknown:
        raise GraphError(f"has unknown fields {', '.join(unknown)}; known are {', '.join(known)}")


def reach(
    graph: Graph, node_id: str, depth: int, *, direction: str = "out", types: Collection[str] | None = None
) -> tuple[dict[str, int], list[Relation]]:
    """Return the distance of each node that a breadth-first search reaches, and the relations it followed.

    Ids are sorted by distance, then id.

    Args:
        graph: The graph.
        node_id: The start node, at distance 0.
        depth: Steps at most.
        direction: ``out`` along the relations, ``in`` against them, ``both``.
        types: Relation types walked over; ``None`` for all.

    Raises:
        GraphError: NODE_NOT_FOUND if the start does not exist.
    """
    _check_known(graph, node_id)
    distances = {node_id: 0}
    walked: set[Relation] = set()
    frontier = [node_id]
    for distance in range(1, depth + 1):
        steps = [(r, r[1]) for r in graph.out_edges(frontier, keys=True)] if direction != "in" else []
        steps += [(r, r[0]) for r in graph.in_edges(frontier, keys=True)] if direction != "out" else []
        steps = [(relation, other) for relation, other in steps if types is None or relation[2] in types]
        walked.update(relation for relation, _ in steps)
        frontier = sorted({other for _, other in steps} - distances.keys())
        if not frontier:
            break
        distances.update(dict.fromkeys(frontier, distance))
    return distances, sorted(walked)


def _check_known(graph: Graph, node_id: str) -> None:
    if node_id not in graph:
        details = {"id": node_id, "similar": _similar(graph, node_id)}
        raise GraphError(f"node '{node_id}' does not exist", details, "NODE_NOT_FOUND")


def _similar(graph: Graph, node_id: str) -> list[str]:
    wanted = node_id.lower()
    close = [known for known in sorted(graph) if wanted and wanted in known.lower()][:5]
    if not close and len(graph) <= 5000:
        close = near_names(node_id, sorted(graph), 5)
    return close
