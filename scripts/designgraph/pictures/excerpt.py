"""The part of a graph that a picture shows: limited in size, chosen deterministically, with a count of the rest."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from designgraph.graph import GraphError, outgoing, properties_of, reach, type_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from designgraph.graph import Graph, Relation
    from designgraph.type_rule import TypeRule

LABEL_LENGTH = 40
_SHOWN_FIRST = ("name", "description", "text", "kind", "condition")
_SPARE_COLORS = ("#5470c6", "#91a03a", "#c9882b", "#b34a4a", "#3c8fa8", "#3a8a5f", "#d0673a", "#8a58a8", "#c25f94")


@dataclass(frozen=True)
class Shown:
    """A node in a picture.

    Attributes:
        id: Its id.
        type: Its type.
        note: Short second line, such as its name or description; may be empty.
        properties: All properties.
    """

    id: str
    type: str
    note: str
    properties: Mapping[str, Any]


@dataclass(frozen=True)
class Excerpt:
    """The content of a picture.

    Attributes:
        graph_id: The graph.
        nodes: Nodes, sorted by id.
        relations: Relations between these nodes, sorted.
        colors: Color of each node type.
        focus: Node in the centre of the selection; empty for none.
        total_nodes: Number of nodes of the selection without limits.
        total_relations: Number of relations between those.
    """

    graph_id: str
    nodes: tuple[Shown, ...]
    relations: tuple[Relation, ...]
    colors: Mapping[str, str] = field(default_factory=dict)
    focus: str = ""
    total_nodes: int = 0
    total_relations: int = 0

    @property
    def left_out(self) -> str:
        """Text about what the limits omitted; empty if nothing."""
        nodes, relations = self.total_nodes - len(self.nodes), self.total_relations - len(self.relations)
        if not nodes and not relations:
            return ""
        return f"{nodes} of {self.total_nodes} nodes and {relations} of {self.total_relations} relations are not shown"


@dataclass(frozen=True)
class GraphSelection:
    """What to show of a graph.

    Attributes:
        focus: Show only the neighbourhood of this node; empty for the whole graph.
        depth: Maximum distance from the focus, in both directions of the relations.
        types: Only nodes of these types; ``None`` for all.
        max_nodes: Maximum number of nodes: those nearest to the focus, or else those with the most relations.
        max_relations: Maximum number of relations.
    """

    focus: str = ""
    depth: int = 2
    types: Collection[str] | None = None
    max_nodes: int = 200
    max_relations: int = 500


def excerpt(graph: Graph, graph_id: str, rule: TypeRule, selection: GraphSelection) -> Excerpt:
    """Return the part of ``graph`` that ``selection`` describes.

    Raises:
        GraphError: NODE_NOT_FOUND if the focus does not exist.
        GraphError: If the focus does not have one of the selected types.
    """
    if selection.focus:
        near, _ = reach(graph, selection.focus, selection.depth, direction="both")
        wanted = list(near)
    else:
        wanted = sorted(graph, key=lambda node_id: (-graph.degree(node_id), node_id))
    if selection.types is not None:
        if selection.focus and type_of(graph, selection.focus) not in selection.types:
            raise GraphError(f"node '{selection.focus}' is not of the types {', '.join(sorted(selection.types))}")
        wanted = [node_id for node_id in wanted if type_of(graph, node_id) in selection.types]
    every = set(wanted)
    chosen = set(wanted[: selection.max_nodes])
    total_relations = sum(target in every for _, target in graph.out_edges(every))
    relations = [r for node_id in sorted(chosen) for r in outgoing(graph, node_id) if r[1] in chosen]
    nodes = tuple(_shown(graph, node_id) for node_id in sorted(chosen))
    return Excerpt(
        graph_id,
        nodes,
        tuple(relations[: selection.max_relations]),
        colors_of({node.type for node in nodes}, rule),
        selection.focus,
        len(every),
        total_relations,
    )


def colors_of(types: Collection[str], rule: TypeRule) -> dict[str, str]:
    """Return a color for each type: the one in its rule, or else one of a fixed list."""
    spare = sorted(name for name in types if not _color(rule, name))
    return {name: _color(rule, name) or _SPARE_COLORS[spare.index(name) % len(_SPARE_COLORS)] for name in sorted(types)}


def _color(rule: TypeRule, name: str) -> str:
    """Return the color of a type if it is a plain hexadecimal one, because it is written into style sheets."""
    color = str(rule.node_types.get(name, {}).get("color", ""))
    digits = color.removeprefix("#")
    is_plain = color.startswith("#") and len(digits) == 6 and all(c in "0123456789abcdefABCDEF" for c in digits)
    return color if is_plain else ""


def _shown(graph: Graph, node_id: str) -> Shown:
    properties = properties_of(graph, node_id)
    return Shown(node_id, type_of(graph, node_id), shortened(_note(node_id, properties)), properties)


def _note(node_id: str, properties: Mapping[str, Any]) -> str:
    """Return the second line of a node: its transition, or the first property that adds something to its id."""
    texts = {name: " ".join(value.split()) for name, value in properties.items() if isinstance(value, str)}
    if "from" in texts and "to" in texts:
        condition = f": {texts['condition']}" if texts.get("condition") else ""
        return f"{texts['from']} \N{RIGHTWARDS ARROW} {texts['to']}{condition}"
    found = (texts.get(name, "") for name in _SHOWN_FIRST)
    return next((text for text in found if text and not node_id.endswith(text)), "")


def shortened(text: str, length: int = LABEL_LENGTH) -> str:
    """Return ``text`` cut to ``length`` characters."""
    return text if len(text) <= length else f"{text[: length - 1]}\N{HORIZONTAL ELLIPSIS}"
