"""Long answers in pages: a limited number of nodes, the requested fields, and a cursor for the next page."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from designgraph.graph import node_json, properties_of, relation_json, type_of
from designgraph.graph_errors import GraphError
from designgraph.values import is_id

if TYPE_CHECKING:
    from designgraph.graph import Graph, Relation

DEFAULT_LIMIT = 1000
MAX_LIMIT = 10_000
RELATIONS_PER_NODE = 10
"""A page of a search ends early when it has this many relations per node of its limit."""

_FIELD = re.compile(r"id|type|properties|properties\..+", re.DOTALL)
_WALK_CURSOR = re.compile(r"([0-9]{1,4})\.(.+)")


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
