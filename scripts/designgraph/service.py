"""The operations on a design's graphs (S2.1), for Python: ``open_graph().create_node("demo", "clk", "Signal", {})``.

The service stores and finds; what a design needs is judged by ``check`` and by whoever calls (S2.7).
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from designgraph.bulk_file import Parts, read_parts
from designgraph.errors import GraphError, InvalidTypeError, ManyFaultsError
from designgraph.graph import Graph, Relation, relation_json
from designgraph.location import graph_path
from designgraph.names import check_id, checked_properties
from designgraph.pages import Page, page_of_nodes, page_of_walk
from designgraph.store import Store
from designgraph.type_rule import TypeRule, type_rule

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from designgraph.changes import Change


@dataclass(frozen=True)
class Addition:
    """What ``KnowledgeGraph.merge`` is to bring into a graph.

    Attributes:
        nodes: ``{id, type, properties}`` each.
        relations: ``{from, to, type}`` each, between these nodes.
        outdated: Existing relations to delete.
    """

    nodes: list[dict[str, Any]]
    relations: list[dict[str, str]]
    outdated: list[Relation] = field(default_factory=list)


DIRECTIONS = ("out", "in", "both")
MAX_DEPTH = 1000
_open: dict[str, KnowledgeGraph] = {}


def open_graph(path: str | os.PathLike[str] | None = None) -> KnowledgeGraph:
    """Return the graphs of a file, warm from an earlier call in this process.

    Args:
        path: The file. Default: what the environment says, else ``.chipforge/kg/graph.json`` in the current folder.
    """
    key = str(graph_path() if path is None else Path(path).absolute())
    if key not in _open:
        _open[key] = KnowledgeGraph(key)
    return _open[key]


class KnowledgeGraph:
    """The graphs of one file. Every method answers JSON data and leaves everything as it was when it raises.

    Args:
        path: The file; it is made by the first change.
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
        """Replace a whole graph in one step, and return how much it has and had.

        Args:
            graph_id: The graph.
            nodes: ``{id, type, properties}`` each.
            relations: ``{from, to, type}`` each.
            input_path: A file with both instead (``bulk_file``), for a graph too large for one request.

        Raises:
            GraphError: With the code of the first thing that is wrong and all of them in ``details["errors"]``.
        """
        check_id(graph_id, "graphId")
        parts = Parts(list(nodes), list(relations))
        if input_path is not None:
            if parts.nodes or parts.relations:
                text = "give either input_path or nodes and relations, not both"
                raise GraphError(text, {"param_name": "input_path", "provided_value": input_path})
            parts = read_parts(input_path)
        changes = self._whole(graph_id, parts)
        del parts
        before = [0, 0]

        def plan(graphs: dict[str, Graph]) -> list[Change]:
            old = graphs.get(graph_id, Graph())
            before[:] = [len(old.nodes), old.relation_count]
            return changes

        self.store.change(graph_id, plan)
        made = sum(change[0] == "node" for change in changes)
        return self._told(
            {
                "graphId": graph_id,
                "nodes": made,
                "relations": len(changes) - 1 - made,
                "replaced": {"nodes": before[0], "relations": before[1]},
            }
        )

    def create_node(
        self, graph_id: str, node_id: str, node_type: str, properties: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Add a node and return it.

        Raises:
            GraphError: INVALID_ID, INVALID_TYPE, NODE_EXISTS.
        """
        check_id(graph_id, "graphId")
        check_id(node_id, "id")
        self.types(graph_id).check_node(node_type)
        kept = checked_properties({} if properties is None else properties)
        self.store.change(graph_id, lambda _: [["node", node_id, node_type, kept]])
        return self._told({"graphId": graph_id, "id": node_id, "type": node_type, "properties": kept})

    def create_relation(self, graph_id: str, from_id: str, to_id: str, relation_type: str) -> dict[str, Any]:
        """Add a relation and return it.

        Raises:
            GraphError: INVALID_ID, INVALID_TYPE, NODE_NOT_FOUND, RELATION_EXISTS.
        """
        self._check_ends(graph_id, from_id, to_id)
        self.types(graph_id).check_relation(relation_type)
        self.store.change(graph_id, lambda _: [["relation", from_id, to_id, relation_type]])
        return self._told({"graphId": graph_id, **relation_json((from_id, to_id, relation_type))})

    def delete_node(self, graph_id: str, node_id: str) -> dict[str, Any]:
        """Delete a node that has no relations and return it.

        Raises:
            GraphError: INVALID_ID, NODE_NOT_FOUND, HAS_RELATIONS.
        """
        check_id(graph_id, "graphId")
        check_id(node_id, "id")
        deleted: dict[str, Any] = {}

        def plan(graphs: dict[str, Graph]) -> list[Change]:
            deleted.update(graphs.get(graph_id, Graph()).node(node_id).to_json())
            return [["no_node", node_id]]

        self.store.change(graph_id, plan)
        return self._told({"graphId": graph_id, **deleted})

    def delete_relation(self, graph_id: str, from_id: str, to_id: str, relation_type: str) -> dict[str, Any]:
        """Delete a relation and return it.

        Raises:
            GraphError: INVALID_ID, RELATION_NOT_FOUND.
        """
        self._check_ends(graph_id, from_id, to_id)
        self.store.change(graph_id, lambda _: [["no_relation", from_id, to_id, relation_type]])
        return self._told({"graphId": graph_id, **relation_json((from_id, to_id, relation_type))})

    def update_node(self, graph_id: str, node_id: str, properties: Mapping[str, Any]) -> dict[str, Any]:
        """Replace all properties of a node; return it with them and with the previous ones.

        Raises:
            GraphError: INVALID_ID, NODE_NOT_FOUND.
        """
        check_id(graph_id, "graphId")
        check_id(node_id, "id")
        kept = checked_properties(properties)
        answer: dict[str, Any] = {}

        def plan(graphs: dict[str, Graph]) -> list[Change]:
            node = graphs.get(graph_id, Graph()).node(node_id)
            answer.update(id=node_id, type=node.type, properties=kept, previous=node.properties)
            return [["properties", node_id, kept]]

        self.store.change(graph_id, plan)
        return self._told({"graphId": graph_id, **answer})

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
        """Return what a breadth-first walk from a node reaches, and the relations it walked over.

        Args:
            graph_id: The graph.
            node_id: Where it starts, at distance 0.
            depth: Steps at most.
            direction: ``out``, ``in`` or ``both``.
            relation_types: Relation types to walk over; ``None`` for all.
            page: Which part of a long answer.

        Raises:
            GraphError: INVALID_ID, INVALID_TYPE, NODE_NOT_FOUND, INVALID_PARAM.
        """
        check_id(graph_id, "graphId")
        check_id(node_id, "nodeId")
        if direction not in DIRECTIONS or type(depth) is not int or not 0 <= depth <= MAX_DEPTH:
            raise GraphError(f"direction must be one of {', '.join(DIRECTIONS)}, and depth 0 to {MAX_DEPTH}")
        rule = self.types(graph_id)
        wanted = None if relation_types is None else {rule.check_relation(name) for name in relation_types}
        with self.store.reading() as graphs:
            graph = graphs.get(graph_id, Graph())
            distances, walked = graph.reach(node_id, depth, direction=direction, types=wanted)
            found = page_of_walk(graph, distances, walked, page or Page())
        return self._told({"graphId": graph_id, "nodeId": node_id, "depth": depth, "direction": direction, **found})

    def list_nodes(self, graph_id: str, node_type: str | None = None, *, page: Page | None = None) -> dict[str, Any]:
        """Return the nodes of a graph, or those of one type, in the order of their ids.

        Args:
            graph_id: The graph; one that does not exist has no nodes, and the answer tells so.
            node_type: The type; ``None`` for all.
            page: Which part of a long answer.

        Raises:
            GraphError: INVALID_ID, INVALID_TYPE, INVALID_PARAM.
        """
        check_id(graph_id, "graphId")
        with self.store.reading() as graphs:
            graph = graphs.get(graph_id, Graph())
            if node_type is not None and not any(node.type == node_type for node in graph.nodes.values()):
                self.types(graph_id).check_node(node_type)
            found = page_of_nodes(graph, node_type, page or Page())
            known = sorted(graphs)
        notes = []
        if graph_id not in known:
            notes = [f"graph '{graph_id}' does not exist; there are: {', '.join(known[:50]) or 'none'}"]
        return self._told({"graphId": graph_id, **found}, notes)

    def merge(self, graph_id: str, build: Callable[[Graph], Addition]) -> dict[str, Any]:
        """Add what is new and update what exists, in one step.

        The properties of an existing node are kept where the addition gives none of their name.

        Args:
            graph_id: The graph.
            build: Returns what to add, given the graph as it is.

        Returns:
            How many nodes and relations were created, updated, deleted and found unchanged.

        Raises:
            GraphError: As ``init``; INVALID_TYPE also for a node that exists with another type.
        """
        check_id(graph_id, "graphId")
        count: dict[str, int] = {}

        def plan(graphs: dict[str, Graph]) -> list[Change]:
            count.update(nodesCreated=0, nodesUpdated=0, relationsCreated=0, relationsDeleted=0, unchanged=0)
            graph = graphs.get(graph_id, Graph())
            addition = build(graph)
            wanted = self._whole(graph_id, Parts(addition.nodes, addition.relations))[1:]
            outdated = [["no_relation", *relation] for relation in addition.outdated]
            count["relationsDeleted"] = len(outdated)
            return outdated + [made for change in wanted if (made := _merged(graph, change, count)) is not None]

        self.store.change(graph_id, plan)
        return self._told({"graphId": graph_id, **count})

    @contextmanager
    def reading(self, graph_id: str) -> Iterator[Graph]:
        """Give one graph as it is on disk, for reading in a block.

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
        """Return which types a graph may have.

        Raises:
            GraphFileError: If the project's ``types.yaml`` cannot be used.
        """
        return type_rule(self._folder, graph_id)

    def _check_ends(self, graph_id: str, from_id: str, to_id: str) -> None:
        for value, what in ((graph_id, "graphId"), (from_id, "fromId"), (to_id, "toId")):
            check_id(value, what)

    def _whole(self, graph_id: str, parts: Parts) -> list[Change]:
        """Return the changes that make a graph of these nodes and relations, having checked all of them."""
        rule = self.types(graph_id)
        graph = Graph()
        changes: list[Change] = [["clear"]]
        faults: list[tuple[str, GraphError]] = []
        sources = (("nodes", parts.nodes, _node_change), ("relations", parts.relations, _relation_change))
        for kind, items, read in sources:
            for index, item in enumerate(items):
                try:
                    changes.append(read(graph, rule, item))
                except GraphError as error:  # noqa: PERF203 - all faults are told at once
                    faults.append((parts.place(kind, index), error))
        if faults:
            raise ManyFaultsError(faults)
        return changes

    def _told(self, data: dict[str, Any], notes: Iterable[str] = ()) -> dict[str, Any]:
        """Return ``data`` with what was found about the files, if anything."""
        warnings = [*self.store.take_notices(), *notes]
        return {**data, "warnings": warnings} if warnings else data


def _node_change(graph: Graph, rule: TypeRule, item: Mapping[str, Any]) -> Change:
    """Return the change that adds a node, having tried it on ``graph``."""
    _check_fields(item, ("id", "type", "properties"))
    node_id, node_type = check_id(item.get("id"), "id"), rule.check_node(item.get("type"))
    properties = checked_properties(item.get("properties", {}))
    graph.add_node(node_id, node_type, properties)
    return ["node", node_id, node_type, properties]


def _relation_change(graph: Graph, rule: TypeRule, item: Mapping[str, Any]) -> Change:
    """Return the change that adds a relation, having tried it on ``graph``."""
    _check_fields(item, ("from", "to", "type"))
    source, target = check_id(item.get("from"), "from"), check_id(item.get("to"), "to")
    relation_type = rule.check_relation(item.get("type"))
    graph.add_relation(source, target, relation_type)
    return ["relation", source, target, relation_type]


def _check_fields(item: Mapping[str, Any], known: tuple[str, ...]) -> None:
    if not isinstance(item, dict):
        raise GraphError(f"must be an object of {', '.join(known)}, got {type(item).__name__}")
    unknown = sorted(set(item) - set(known))
    if unknown:
        raise GraphError(f"has unknown fields {', '.join(unknown)}; known are {', '.join(known)}")


def _merged(graph: Graph, change: Change, count: dict[str, int]) -> Change | None:
    """Return what is to be done so that ``graph`` has what ``change`` would add; ``None`` if it has it."""
    if change[0] == "relation":
        relation: Relation = (change[1], change[2], change[3])
        start = graph.nodes.get(relation[0])
        if start is not None and relation in start.outgoing:
            count["unchanged"] += 1
            return None
        count["relationsCreated"] += 1
        return change
    _, node_id, node_type, properties = change
    node = graph.nodes.get(node_id)
    if node is None:
        count["nodesCreated"] += 1
        return change
    if node.type != node_type:
        raise InvalidTypeError(
            f"node '{node_id}' exists with type {node.type}, not {node_type}; delete it or use another id",
            {"id": node_id, "type": node.type},
        )
    merged = {**node.properties, **properties}
    if merged == node.properties:
        count["unchanged"] += 1
        return None
    count["nodesUpdated"] += 1
    return ["properties", node_id, merged]
