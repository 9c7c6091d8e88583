"""The operations on a design's graphs (S2.1), for Python: ``open_graph().create_node("demo", "clk", "Signal", {})``.

The service stores and finds. ``consistency`` and the caller judge the content (S2.7). Long answers come in pages: a
limited number of nodes, the requested fields, and a cursor for the next page.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from designgraph import graph as edit
from designgraph.exchange import Parts, read_parts
from designgraph.graph import (
    GraphError,
    ManyFaultsError,
    check_id,
    checked_properties,
    is_id,
    new_graph,
    node_json,
    properties_of,
    reach,
    read_graph,
    relation_json,
    type_of,
)
from designgraph.store import Store
from designgraph.type_rule import TypeRule, type_rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from designgraph.graph import Graph, Relation

DEFAULT_LIMIT = 1000
MAX_LIMIT = 10_000
RELATIONS_PER_NODE = 10
"""A page of a search ends early when it has this many relations per node of its limit."""

_FIELD = re.compile(r"id|type|properties|properties\..+", re.DOTALL)
_WALK_CURSOR = re.compile(r"([0-9]{1,4})\.(.+)")
DIRECTIONS = ("out", "in", "both")
MAX_DEPTH = 1000
FILE_VARIABLE = "KG_FILE"
PROJECT_VARIABLE = "CHIPFORGE_PROJECT"
FILE_IN_PROJECT = Path(".chipforge", "kg", "graph.json")
_open: dict[str, KnowledgeGraph] = {}


@dataclass(frozen=True)
class Page:
    """The part of a long answer to return.

    Attributes:
        limit: Maximum number of nodes.
        cursor: The ``nextCursor`` of the previous page; empty for the first page.
        fields: Fields of each node: ``type``, ``properties``, ``properties.NAME``; ``None`` for all. The id is always
            included.
    """

    limit: int = DEFAULT_LIMIT
    cursor: str = ""
    fields: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if type(self.limit) is not int or not 1 <= self.limit <= MAX_LIMIT:
            raise GraphError(f"limit must be 1 to {MAX_LIMIT}, got {self.limit}")
        wrong = [name for name in self.fields or () if not _FIELD.fullmatch(name)]
        if wrong:
            raise GraphError(f"fields must be id, type, properties or properties.NAME, got {', '.join(wrong)}")

    def view(self, graph: Graph, node_id: str) -> dict[str, Any]:
        """Return the requested fields of a node."""
        if self.fields is None:
            return node_json(graph, node_id)
        shown: dict[str, Any] = {"id": node_id}
        if "type" in self.fields:
            shown["type"] = type_of(graph, node_id)
        if "properties" in self.fields:
            shown["properties"] = properties_of(graph, node_id)
        elif wanted := [name.partition(".")[2] for name in self.fields if name.startswith("properties.")]:
            properties = properties_of(graph, node_id)
            shown["properties"] = {name: properties[name] for name in wanted if name in properties}
        return shown


def page_of_nodes(graph: Graph, node_type: str | None, page: Page) -> dict[str, Any]:
    """Return ``{nodes, total}``, with ``nextCursor`` if there are more nodes."""
    if page.cursor and not is_id(page.cursor):
        raise _bad_cursor(page.cursor)
    ids = sorted(node_id for node_id, kind in graph.nodes(data="type") if node_type in (None, kind))
    found = ids[bisect_right(ids, page.cursor) :]
    answer: dict[str, Any] = {
        "nodes": [page.view(graph, node_id) for node_id in found[: page.limit]],
        "total": len(ids),
    }
    if len(found) > page.limit:
        answer["nextCursor"] = found[page.limit - 1]
    return answer


def page_of_walk(graph: Graph, distances: dict[str, int], walked: list[Relation], page: Page) -> dict[str, Any]:
    """Return ``{nodes, relations, total, totalRelations}``, with ``nextCursor`` if there are more nodes.

    Nodes are sorted by distance, then id. A relation is on the page of the later of its two nodes, so that all pages
    together have each relation once, and none before its nodes.

    Args:
        graph: The graph.
        distances: Id to distance, in order.
        walked: The relations among these nodes.
        page: The page.
    """
    order = {node_id: place for place, node_id in enumerate(distances)}
    by_later: dict[str, list[Relation]] = {}
    for relation in walked:
        later = max(relation[0], relation[1], key=order.__getitem__)
        by_later.setdefault(later, []).append(relation)
    after = _walk_place(page.cursor)
    waiting = [node_id for node_id, distance in distances.items() if after is None or (distance, node_id) > after]
    nodes: list[dict[str, Any]] = []
    relations: list[dict[str, str]] = []
    for node_id in waiting:
        nodes.append({**page.view(graph, node_id), "distance": distances[node_id]})
        relations += map(relation_json, by_later.get(node_id, ()))
        if len(nodes) >= page.limit or len(relations) >= RELATIONS_PER_NODE * page.limit:
            break
    answer = {"nodes": nodes, "relations": relations, "total": len(distances), "totalRelations": len(walked)}
    if len(nodes) < len(waiting):
        answer["nextCursor"] = f"{nodes[-1]['distance']}.{nodes[-1]['id']}"
    return answer


def _walk_place(cursor: str) -> tuple[int, str] | None:
    if not cursor:
        return None
    found = _WALK_CURSOR.fullmatch(cursor)
    if found is None or not is_id(found[2]):
        raise _bad_cursor(cursor)
    return int(found[1]), found[2]


def _bad_cursor(cursor: str) -> GraphError:
    return GraphError(f"cursor {cursor[:80]!r} is not the nextCursor of an answer; leave it out to get the first page")


def open_graph(path: str | os.PathLike[str] | None = None) -> KnowledgeGraph:
    """Return the graphs of a file; later calls in this process return the same object.

    Args:
        path: The file. Default: ``$KG_FILE``, else ``.chipforge/kg/graph.json`` in the folder ``$CHIPFORGE_PROJECT``
            or in the current folder.
    """
    if path is None:
        path = os.environ.get(FILE_VARIABLE) or Path(os.environ.get(PROJECT_VARIABLE) or ".", FILE_IN_PROJECT)
    key = str(Path(path).absolute())
    if key not in _open:
        _open[key] = KnowledgeGraph(key)
    return _open[key]


class KnowledgeGraph:
    """The graphs of one file. Every method returns JSON data; a method that raises has changed nothing.

    Args:
        path: The file; the first change creates it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.store = Store(path)
        self._folder = str(self.store.path.parent)

    def init(
        self,
        graph_id: str,
        nodes: Iterable[Mapping[str, Any]] = (),
        relations: Iterable[Mapping[str, Any]] = (),
        *,
        input_path: str | None = None,
    ) -> dict[str, Any]:
        """Replace a whole graph in one step, and return its present and previous size.

        Args:
            graph_id: The graph.
            nodes: ``{id, type, properties}`` each.
            relations: ``{from, to, type}`` each.
            input_path: A file that holds both (``exchange.read_parts``), for a graph too large for one request.

        Raises:
            GraphError: With the code of the first fault, and all faults in ``details["errors"]``.
        """
        check_id(graph_id, "graphId")
        parts = Parts(list(nodes), list(relations))
        if input_path is not None:
            if parts.nodes or parts.relations:
                text = "give either input_path or nodes and relations, not both"
                raise GraphError(text, {"param_name": "input_path", "provided_value": input_path})
            parts = read_parts(input_path)
        made = self.checked_graph(graph_id, parts)
        replaced = {"nodes": 0, "relations": 0}

        def work(graphs: dict[str, Graph]) -> bool:
            if graph_id in graphs:
                replaced.update(nodes=len(graphs[graph_id]), relations=graphs[graph_id].number_of_edges())
            graphs[graph_id] = made
            return True

        self.store.change(work)
        size = {"nodes": len(made), "relations": made.number_of_edges()}
        return self.with_warnings({"graphId": graph_id, **size, "replaced": replaced})

    def create_node(
        self, graph_id: str, node_id: str, node_type: str, properties: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Add a node and return it.

        Raises:
            GraphError: INVALID_ID, INVALID_TYPE, NODE_EXISTS.
        """
        _check(graphId=graph_id, id=node_id)
        node_type = self.types(graph_id).check_node(node_type)
        kept = checked_properties({} if properties is None else properties)
        self._change(graph_id, lambda graph: edit.add_node(graph, node_id, node_type, kept))
        return self.with_warnings({"graphId": graph_id, "id": node_id, "type": node_type, "properties": kept})

    def create_relation(self, graph_id: str, from_id: str, to_id: str, relation_type: str) -> dict[str, Any]:
        """Add a relation and return it.

        Raises:
            GraphError: INVALID_ID, INVALID_TYPE, NODE_NOT_FOUND, RELATION_EXISTS.
        """
        _check(graphId=graph_id, fromId=from_id, toId=to_id)
        relation_type = self.types(graph_id).check_relation(relation_type)
        self._change(graph_id, lambda graph: edit.add_relation(graph, from_id, to_id, relation_type))
        return self.with_warnings({"graphId": graph_id, **relation_json((from_id, to_id, relation_type))})

    def delete_node(self, graph_id: str, node_id: str) -> dict[str, Any]:
        """Delete a node that has no relations and return it.

        Raises:
            GraphError: INVALID_ID, NODE_NOT_FOUND, HAS_RELATIONS.
        """
        _check(graphId=graph_id, id=node_id)
        deleted: dict[str, Any] = {}

        def work(graph: Graph) -> None:
            deleted.update(node_json(graph, node_id))
            edit.remove_node(graph, node_id)

        self._change(graph_id, work)
        return self.with_warnings({"graphId": graph_id, **deleted})

    def delete_relation(self, graph_id: str, from_id: str, to_id: str, relation_type: str) -> dict[str, Any]:
        """Delete a relation and return it.

        Raises:
            GraphError: INVALID_ID, RELATION_NOT_FOUND.
        """
        _check(graphId=graph_id, fromId=from_id, toId=to_id)
        kinds: list[str] = []
        self._change(graph_id, lambda graph: kinds.append(edit.remove_relation(graph, from_id, to_id, relation_type)))
        return self.with_warnings({"graphId": graph_id, **relation_json((from_id, to_id, kinds[-1]))})

    def update_node(self, graph_id: str, node_id: str, properties: Mapping[str, Any]) -> dict[str, Any]:
        """Replace all properties of a node; return it with them and with the previous ones.

        Raises:
            GraphError: INVALID_ID, NODE_NOT_FOUND.
        """
        _check(graphId=graph_id, id=node_id)
        kept = checked_properties(properties)
        answer: dict[str, Any] = {}

        def work(graph: Graph) -> None:
            before = node_json(graph, node_id)
            answer.update({**before, "properties": kept, "previous": before["properties"]})
            edit.set_properties(graph, node_id, kept)

        self._change(graph_id, work)
        return self.with_warnings({"graphId": graph_id, **answer})

    def query(
        self,
        graph_id: str,
        node_id: str,
        depth: int = 1,
        *,
        direction: str = "out",
        relation_types: Iterable[str] | None = None,
        page: Page | None = None,
    ) -> dict[str, Any]:
        """Return the nodes that a breadth-first search from a node reaches, and the relations it followed.

        Args:
            graph_id: The graph.
            node_id: The start node, at distance 0.
            depth: Maximum distance.
            direction: ``out``, ``in`` or ``both``.
            relation_types: Relation types to follow; ``None`` for all.
            page: The part of a long answer to return.

        Raises:
            GraphError: INVALID_ID, INVALID_TYPE, NODE_NOT_FOUND, INVALID_PARAM.
        """
        _check(graphId=graph_id, nodeId=node_id)
        if direction not in DIRECTIONS or type(depth) is not int or not 0 <= depth <= MAX_DEPTH:
            raise GraphError(f"direction must be one of {', '.join(DIRECTIONS)}, and depth 0 to {MAX_DEPTH}")
        rule = self.types(graph_id)
        wanted = None if relation_types is None else {rule.check_relation(name) for name in relation_types}
        with self.store.reading() as graphs:
            graph = graphs.get(graph_id) or new_graph()
            distances, walked = reach(graph, node_id, depth, direction=direction, types=wanted)
            found = page_of_walk(graph, distances, walked, page or Page())
        return self.with_warnings(
            {"graphId": graph_id, "nodeId": node_id, "depth": depth, "direction": direction, **found}
        )

    def list_nodes(self, graph_id: str, node_type: str | None = None, *, page: Page | None = None) -> dict[str, Any]:
        """Return the nodes of a graph, or those of one type, sorted by id.

        Args:
            graph_id: The graph; one that does not exist has no nodes, and a warning says so.
            node_type: The type; ``None`` for all.
            page: The part of a long answer to return.

        Raises:
            GraphError: INVALID_ID, INVALID_TYPE, INVALID_PARAM.
        """
        check_id(graph_id, "graphId")
        with self.store.reading() as graphs:
            graph = graphs.get(graph_id) or new_graph()
            if node_type is not None and node_type not in dict(graph.nodes(data="type")).values():
                node_type = self.types(graph_id).check_node(node_type)
            found = page_of_nodes(graph, node_type, page or Page())
            known = sorted(graphs)
        notes = []
        if graph_id not in known:
            notes = [f"graph '{graph_id}' does not exist; there are: {', '.join(known[:50]) or 'none'}"]
        return self.with_warnings({"graphId": graph_id, **found}, notes)

    def list_graphs(self) -> dict[str, Any]:
        """Return the graphs, sorted by id, with the number of nodes and relations of each."""
        with self.store.reading() as graphs:
            found = [
                {"graphId": name, "nodes": graph.number_of_nodes(), "relations": graph.number_of_edges()}
                for name, graph in sorted(graphs.items())
            ]
        return self.with_warnings({"graphs": found, "total": len(found)})

    @contextmanager
    def reading(self, graph_id: str) -> Iterator[Graph]:
        """Context manager that gives one graph, as it is on disk, for reading.

        Raises:
            GraphError: If there is no such graph, or the files cannot be used.
        """
        with self.store.reading() as graphs:
            if graph_id not in graphs:
                known = sorted(graphs)
                raise GraphError(
                    f"graph '{graph_id}' does not exist; there are: {', '.join(known[:50]) or 'none'}",
                    {"param_name": "graphId", "provided_value": graph_id, "allowed": known[:50]},
                )
            yield graphs[graph_id]

    def types(self, graph_id: str) -> TypeRule:
        """Return the types that a graph may use.

        Raises:
            GraphFileError: If the project's ``types.yaml`` cannot be used.
        """
        return type_rule(self._folder, graph_id)

    def _change(self, graph_id: str, work: Callable[[Graph], None]) -> None:
        """Change one graph, which is created if it does not exist."""

        def change(graphs: dict[str, Graph]) -> bool:
            graph = graphs[graph_id] if graph_id in graphs else new_graph()
            work(graph)
            graphs[graph_id] = graph
            return True

        self.store.change(change)

    def checked_graph(self, graph_id: str, parts: Parts) -> Graph:
        """Return a new graph with these nodes and relations.

        Raises:
            GraphError: With all faults of the nodes and relations in ``details["errors"]``.
        """
        rule = self.types(graph_id)
        graph, faults = read_graph(parts.nodes, parts.relations, rule.check_node, rule.check_relation)
        if faults:
            raise ManyFaultsError([(parts.place(name, index), error) for name, index, error in faults])
        return graph

    def with_warnings(self, data: dict[str, Any], notes: Iterable[str] = ()) -> dict[str, Any]:
        """Return ``data``, with the messages about the files as ``warnings`` if there are any."""
        warnings = [*self.store.take_notices(), *notes]
        return {**data, "warnings": warnings} if warnings else data


def _check(**ids: str) -> None:
    """Raise a GraphError, INVALID_ID, for the first argument that is no id."""
    for what, value in ids.items():
        check_id(value, what)
