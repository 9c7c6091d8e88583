"""One graph in memory: nodes by id, and at most one relation of each type between two nodes.

A networkx MultiDiGraph has the same meaning. Decision 0005 gives the reasons for a structure of its own;
``exchange.to_networkx`` converts.
"""

from __future__ import annotations

import gc
import json
import sys
from bisect import bisect_left, bisect_right, insort
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from designgraph.graph_errors import (
    HasRelationsError,
    NodeExistsError,
    NodeNotFoundError,
    RelationExistsError,
    RelationNotFoundError,
)
from designgraph.values import encode
from sturdy.near_names import near_names

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

Relation = tuple[str, str, str]
"""(from id, to id, type)."""

SHOWN = 20
HUB = 32
"""A node with more outgoing relations gets an index of them."""


class Node:
    """A node. ``outgoing`` holds the relations that leave it; ``Graph.incoming`` returns those that reach it.

    Its properties are kept as JSON text. That takes a third of the memory, needs no parsing when a file is loaded and
    no encoding when one is written, and every caller gets a copy.
    """

    __slots__ = ("id", "outgoing", "reached_by", "text", "type")

    def __init__(self, node_id: str, node_type: str, text: str) -> None:
        self.id = node_id
        self.type = node_type
        self.text = text
        self.outgoing: list[Relation] = _NO_RELATIONS
        self.reached_by: list[Relation] = _NO_RELATIONS

    @property
    def properties(self) -> dict[str, Any]:
        """A copy of the properties."""
        found: dict[str, Any] = json.loads(self.text)
        return found

    def to_json(self) -> dict[str, Any]:
        """Return ``{id, type, properties}``."""
        return {"id": self.id, "type": self.type, "properties": self.properties}


_NO_RELATIONS: list[Relation] = []  # shared by all nodes without relations; never appended to


@contextmanager
def garbage_collector_disabled() -> Iterator[None]:
    """Disable the garbage collector while many nodes are loaded; it would walk the growing heap and free nothing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def relation_json(relation: Relation) -> dict[str, str]:
    """Return ``{from, to, type}``."""
    return {"from": relation[0], "to": relation[1], "type": relation[2]}


class Graph:
    """A directed graph with typed nodes and relations."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.relation_count = 0
        self._sorted: list[str] | None = None
        self._knows_incoming = True
        self._hubs: dict[str, set[Relation]] = {}  # outgoing relations of nodes that have many

    def node(self, node_id: str) -> Node:
        """Return the node with this id.

        Raises:
            NodeNotFoundError: If there is none.
        """
        try:
            return self.nodes[node_id]
        except KeyError:
            raise NodeNotFoundError(f"node '{node_id}' does not exist", self._near(node_id)) from None

    def add_node(self, node_id: str, node_type: str, properties: dict[str, Any]) -> None:
        """Add a node.

        Raises:
            NodeExistsError: If its id is taken.
        """
        if node_id in self.nodes:
            raise NodeExistsError(
                f"node '{node_id}' exists already; update it or choose another id",
                {"id": node_id, "type": self.nodes[node_id].type},
            )
        self.nodes[node_id] = Node(node_id, sys.intern(node_type), encode(properties))
        if self._sorted is not None:
            insort(self._sorted, node_id)

    def load_nodes(self, items: Iterable[tuple[str, str, str]]) -> None:
        """Add nodes (id, type, properties as JSON text) that are known to be new and valid, as fast as possible."""
        nodes = self.nodes
        last_type = ""
        for node_id, node_type, text in items:
            if node_type != last_type:
                last_type = sys.intern(node_type)
            nodes[node_id] = Node(node_id, last_type, text)
        self._sorted = None

    def load_relations(self, items: Iterable[Relation]) -> None:
        """Add all relations of this graph, sorted and known to be valid, as fast as possible."""
        nodes = self.nodes
        source = ""
        outgoing: list[Relation] = []
        count = 0
        for relation in items:
            if relation[0] != source:
                source = relation[0]
                outgoing = nodes[source].outgoing = []
            outgoing.append(relation)
            count += 1
        self.relation_count = count
        self._knows_incoming = count == 0

    def incoming(self, node: Node) -> list[Relation]:
        """Return the relations that reach a node; the list belongs to the graph.

        The first call after loading collects them for all nodes. That takes as long as the rest of the loading, and
        many programs never need it.
        """
        if not self._knows_incoming:
            with garbage_collector_disabled():
                self._learn_incoming()
            self._knows_incoming = True
        return node.reached_by

    def remove_node(self, node_id: str) -> Node:
        """Remove a node that has no relations, and return it.

        Raises:
            NodeNotFoundError: If there is none with this id.
            HasRelationsError: If relations lead to or from it.
        """
        node = self.node(node_id)
        if node.outgoing or self.incoming(node):
            related = sorted({*node.outgoing, *self.incoming(node)})
            raise HasRelationsError(
                f"node '{node_id}' has {len(related)} relation{'s' if len(related) > 1 else ''}; delete them first",
                {"id": node_id, "count": len(related), "relations": [relation_json(r) for r in related[:SHOWN]]},
            )
        del self.nodes[node_id]
        self._hubs.pop(node_id, None)
        if self._sorted is not None:
            del self._sorted[bisect_left(self._sorted, node_id)]
        return node

    def set_properties(self, node_id: str, properties: dict[str, Any]) -> dict[str, Any]:
        """Replace all properties of a node and return the previous ones.

        Raises:
            NodeNotFoundError: If there is none with this id.
        """
        node = self.node(node_id)
        previous, node.text = node.properties, encode(properties)
        return previous

    def add_relation(self, source: str, target: str, relation_type: str) -> None:
        """Add a relation.

        Raises:
            NodeNotFoundError: If one of its nodes does not exist.
            RelationExistsError: If the two nodes already have one of this type.
        """
        start, end = self.node(source), self.node(target)
        relation = (start.id, end.id, sys.intern(relation_type))
        if self._has(start, relation):
            raise RelationExistsError(
                f"relation '{source}' -> '{target}' of type {relation_type} exists already",
                relation_json(relation),
            )
        if start.outgoing is _NO_RELATIONS:
            start.outgoing = []
        start.outgoing.append(relation)
        if self._knows_incoming:
            self._add_incoming(end, relation)
        if source in self._hubs:
            self._hubs[source].add(relation)
        self.relation_count += 1

    def remove_relation(self, source: str, target: str, relation_type: str) -> None:
        """Remove a relation.

        Raises:
            RelationNotFoundError: If there is no such relation, or one of the nodes does not exist.
        """
        relation = (source, target, relation_type)
        start = self.nodes.get(source)
        if start is None or not self._has(start, relation):
            between = sorted(r for r in (start.outgoing if start else ()) if r[1] == target)
            raise RelationNotFoundError(
                f"relation '{source}' -> '{target}' of type {relation_type} does not exist",
                {**relation_json(relation), "relations_between": [relation_json(r) for r in between[:SHOWN]]},
            )
        start.outgoing.remove(relation)
        if source in self._hubs:
            self._hubs[source].discard(relation)
        if self._knows_incoming:
            self.nodes[target].reached_by.remove(relation)
        self.relation_count -= 1

    def relations(self) -> Iterator[Relation]:
        """Return every relation once, sorted by from, to and type."""
        for node_id in self.ids():
            yield from sorted(self.nodes[node_id].outgoing)

    def ids(self) -> list[str]:
        """Return all ids, sorted; the list belongs to the graph."""
        if self._sorted is None:
            self._sorted = sorted(self.nodes)
        return self._sorted

    def ids_after(self, node_id: str) -> list[str]:
        """Return the ids that follow ``node_id`` in sorted order."""
        ids = self.ids()
        return ids[bisect_right(ids, node_id) :] if node_id else ids

    def reach(
        self, node_id: str, depth: int, *, direction: str = "out", types: Collection[str] | None = None
    ) -> tuple[dict[str, int], list[Relation]]:
        """Return the distance of each node that a breadth-first search reaches, and the relations it followed.

        Ids are sorted by distance, then id.

        Args:
            node_id: The start node, at distance 0.
            depth: Steps at most.
            direction: ``out`` along the relations, ``in`` against them, ``both``.
            types: Relation types walked over; ``None`` for all.

        Raises:
            NodeNotFoundError: If the start does not exist.
        """
        self.node(node_id)
        distances = {node_id: 0}
        walked: set[Relation] = set()
        frontier = [node_id]
        for distance in range(1, depth + 1):
            found = set()
            for current in frontier:
                for relation, other in self._steps(self.nodes[current], direction):
                    if types is None or relation[2] in types:
                        walked.add(relation)
                        if other not in distances:
                            found.add(other)
            if not found:
                break
            frontier = sorted(found)
            distances.update(dict.fromkeys(frontier, distance))
        return distances, sorted(walked)

    def _has(self, start: Node, relation: Relation) -> bool:
        """Return whether a relation leaves ``start``; an index keeps this fast for nodes with many relations."""
        if len(start.outgoing) <= HUB:
            return relation in start.outgoing
        hub = self._hubs.get(start.id)
        if hub is None:
            hub = self._hubs[start.id] = set(start.outgoing)
        return relation in hub

    def _learn_incoming(self) -> None:
        nodes = self.nodes
        for node in nodes.values():  # an interrupted call may have left some
            node.reached_by = _NO_RELATIONS
        for node in nodes.values():
            for relation in node.outgoing:
                end = nodes[relation[1]]
                if end.reached_by is _NO_RELATIONS:
                    end.reached_by = [relation]
                else:
                    end.reached_by.append(relation)

    @staticmethod
    def _add_incoming(end: Node, relation: Relation) -> None:
        if end.reached_by is _NO_RELATIONS:
            end.reached_by = [relation]
        else:
            end.reached_by.append(relation)

    def _steps(self, node: Node, direction: str) -> Iterator[tuple[Relation, str]]:
        if direction != "in":
            for relation in node.outgoing:
                yield relation, relation[1]
        if direction != "out":
            for relation in self.incoming(node):
                yield relation, relation[0]

    def _near(self, node_id: str) -> dict[str, Any]:
        """Return the details of an unknown id: the id itself and similar ids."""
        wanted = node_id.lower()
        close = (
            [known for known in self.ids() if wanted in known.lower() or known.lower() == wanted][:5] if wanted else []
        )
        if not close and len(self.nodes) <= 5000:
            close = near_names(node_id, self.ids(), 5)
        return {"id": node_id, "similar": close}
