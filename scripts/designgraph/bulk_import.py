"""Bring the nodes and relations of another program into a graph, as often as its data change.

An import names things as its source does (``X1.M2``, ``data[3]``); here they get ids. Importing again updates what
exists, keeps what was added by hand, and reports the nodes that the source no longer has.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

from designgraph import graph as edit
from designgraph.exchange import Parts
from designgraph.graph import (
    MAX_ID_LENGTH,
    GraphError,
    is_id,
    new_graph,
    node_json,
    outgoing,
    properties_of,
    type_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from designgraph.graph import Graph, Relation
    from designgraph.service import KnowledgeGraph

    _Triple = tuple[str, str, str]

MAX_LISTED = 200
_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9_-]")
_HASH_LENGTH = 8


class Name(NamedTuple):
    """How the source names a thing.

    Attributes:
        type: Node type; equal names of two types are two things.
        name: Its name in the source.
        stem: Text before the name in the id, such as ``net_``.
    """

    type: str
    name: str
    stem: str = ""


class ImportedNode(NamedTuple):
    """A node of an import.

    Attributes:
        name: How the source names it.
        properties: Its properties.
        is_numbered: Whether the graph keeps every version of it: ``drc_1``, ``drc_2``, ... A version that equals the
            last one adds nothing.
    """

    name: Name
    properties: Mapping[str, Any]
    is_numbered: bool = False


@dataclass(frozen=True)
class Import:
    """What to bring into a graph. Plain tuples may stand for ``Name`` and ``ImportedNode``.

    Attributes:
        root: The node that stands for the whole source.
        nodes: The nodes, ``root`` among them. If two want the same id, the first gets it.
        relations: From, to, type.
        owner: Property that holds the id of ``root`` in each owned node.
        owned_types: Node types that belong to the source. Owned nodes that the source no longer has are reported.
        owned_relations: Beginnings of relation types that belong to the source. Such relations of owned nodes are
            deleted if the source no longer has them.
    """

    root: _Triple
    nodes: Sequence[tuple[_Triple, Mapping[str, Any], bool]]
    relations: Sequence[tuple[_Triple, _Triple, str]]
    owner: str = "owner"
    owned_types: frozenset[str] = frozenset()
    owned_relations: tuple[str, ...] = ()


def import_nodes(
    knowledge: KnowledgeGraph, graph_id: str, source: Import, *, prefix: str = "", replace: bool = False
) -> dict[str, Any]:
    """Return how many nodes and relations were created, updated, deleted and unchanged, and the ids they got.

    The import is one step. An existing node keeps the properties that the import does not have.

    Args:
        knowledge: The graphs.
        graph_id: The graph.
        source: What to import.
        prefix: Text that every id starts with, so that several imports can share a graph.
        replace: Whether to remove everything else from the graph.

    Raises:
        GraphError: If an id belongs to a node of another type, or the graph does not allow a node or relation.
    """
    resolved: list[_Resolved] = []
    count = {"nodesCreated": 0, "nodesUpdated": 0, "relationsCreated": 0, "relationsDeleted": 0, "unchanged": 0}

    def work(graphs: dict[str, Graph]) -> bool:
        graph = graphs.get(graph_id) or new_graph()
        resolved[:] = [_Resolved(source, prefix, graph)]
        wanted = knowledge.checked_graph(graph_id, Parts(resolved[0].nodes(), resolved[0].relations()))
        _check_types(graph, wanted)
        outdated = resolved[0].outdated_relations()
        for relation in outdated:
            edit.remove_relation(graph, *relation)
        count.update(dict.fromkeys(count, 0), relationsDeleted=len(outdated))
        _merge(graph, wanted, count)
        graphs[graph_id] = graph
        return any(number for name, number in count.items() if name != "unchanged")

    if replace:
        resolved.append(_Resolved(source, prefix, new_graph()))
        answer = knowledge.init(graph_id, resolved[0].nodes(), resolved[0].relations())
        count.update(nodesCreated=answer.pop("nodes"), relationsCreated=answer.pop("relations"))
    else:
        knowledge.store.change(work)
        answer = knowledge.with_warnings({"graphId": graph_id})
    renamed = resolved[0].ids.renamed()
    return {
        **answer,
        **count,
        "root": resolved[0].id_of(source.root),
        "renamed": {name: renamed[name] for name in sorted(renamed)[:MAX_LISTED]},
        "stale": resolved[0].stale[:MAX_LISTED],
    }


class AssignedIds:
    """Gives each name a valid id of its own, the same one in every import.

    Args:
        prefix: Text that every id starts with.
    """

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self._by_name: dict[Name, str] = {}
        self._taken: set[str] = set()

    def of(self, given: _Triple) -> str:
        """Return the id of a name."""
        name = Name(*given)
        if name not in self._by_name:
            wanted = _NOT_ALLOWED.sub("_", f"{self.prefix}{name.stem}{name.name}")
            if not is_id(wanted[:1]):
                wanted = f"_{wanted}"
            made, mark = wanted, f"{name.stem}\0{name.name}"
            while len(made) > MAX_ID_LENGTH or made in self._taken:
                mark = blake2b(mark.encode(), digest_size=_HASH_LENGTH // 2).hexdigest()
                made = f"{wanted[: MAX_ID_LENGTH - 1 - _HASH_LENGTH]}_{mark}"
            self._by_name[name] = made
            self._taken.add(self._by_name[name])
        return self._by_name[name]

    def renamed(self) -> dict[str, str]:
        """Return the ids that are not simply prefix, stem and name, by name."""
        return {n.name: made for n, made in self._by_name.items() if made != f"{self.prefix}{n.stem}{n.name}"}


class _Resolved:
    """An import with its ids, for the present state of a graph."""

    def __init__(self, source: Import, prefix: str, graph: Graph) -> None:
        self.ids = AssignedIds(prefix)
        self._source = source
        self._graph = graph
        self._numbered: dict[_Triple, str] = {}
        nodes = [ImportedNode(Name(*name), properties, is_numbered) for name, properties, is_numbered in source.nodes]
        for node in nodes:
            if node.is_numbered:
                self._numbered[node.name] = self._version(node)
            else:
                self.ids.of(node.name)
        root = self.id_of(source.root)
        self._nodes = {self.id_of(node.name): self._node(node, root) for node in nodes}
        self._relations = dict.fromkeys(
            (self.id_of(start), self.id_of(end), kind) for start, end, kind in source.relations
        )
        self.stale = [
            node_id
            for node_id in sorted(graph)
            if type_of(graph, node_id) in source.owned_types
            and node_id not in self._nodes
            and properties_of(graph, node_id).get(source.owner) == root
        ]

    def id_of(self, name: _Triple) -> str:
        """Return the id of a name."""
        return self._numbered.get(name) or self.ids.of(name)

    def nodes(self) -> list[dict[str, Any]]:
        """Return the nodes as ``{id, type, properties}``."""
        return list(self._nodes.values())

    def relations(self) -> list[dict[str, str]]:
        """Return the relations as ``{from, to, type}``."""
        return [{"from": start, "to": end, "type": kind} for start, end, kind in self._relations]

    def outdated_relations(self) -> list[Relation]:
        """Return the relations in the graph that belong to the source and that it no longer has."""
        source = self._source
        return [
            relation
            for node_id, node in self._nodes.items()
            if node["type"] in source.owned_types and node_id in self._graph
            for relation in outgoing(self._graph, node_id)
            if relation[2].startswith(source.owned_relations) and relation not in self._relations
        ]

    def _node(self, node: ImportedNode, root: str) -> dict[str, Any]:
        owner = {self._source.owner: root} if node.name.type in self._source.owned_types else {}
        return {"id": self.id_of(node.name), "type": node.name.type, "properties": {**node.properties, **owner}}

    def _version(self, node: ImportedNode) -> str:
        """Return the id of the last version in the graph if it equals ``node``, else the next one."""

        def numbered(number: int) -> str:
            return self.ids.of(node.name._replace(name=f"{node.name.name}_{number}"))

        graph, number = self._graph, 1
        while (earlier := numbered(number)) in graph:
            if numbered(number + 1) not in graph and properties_of(graph, earlier) == node.properties:
                break
            number += 1
        return numbered(number)


def _check_types(graph: Graph, wanted: Graph) -> None:
    for node_id in wanted:
        if node_id in graph and type_of(graph, node_id) != type_of(wanted, node_id):
            kind, other = type_of(graph, node_id), type_of(wanted, node_id)
            raise GraphError(
                f"node '{node_id}' exists with type {kind}, not {other}; delete it or use another id",
                {"id": node_id, "type": kind},
                "INVALID_TYPE",
            )


def _merge(graph: Graph, wanted: Graph, count: dict[str, int]) -> None:
    """Bring the nodes and relations of ``wanted`` into ``graph``, and count what that changes."""
    for node_id in wanted:
        new = node_json(wanted, node_id)
        if node_id not in graph:
            edit.add_node(graph, node_id, new["type"], new["properties"])
            count["nodesCreated"] += 1
            continue
        before = properties_of(graph, node_id)
        merged = {**before, **new["properties"]}
        count["unchanged" if merged == before else "nodesUpdated"] += 1
        if merged != before:
            edit.set_properties(graph, node_id, merged)
    for relation in wanted.edges(keys=True):
        is_new = not graph.has_edge(*relation)
        count["relationsCreated" if is_new else "unchanged"] += 1
        if is_new:
            edit.add_relation(graph, *relation)
