"""A graph in the forms that other programs read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from designgraph.graph import relation_json
from designgraph.names import encode

if TYPE_CHECKING:
    from collections.abc import Iterator

    import networkx as nx

    from designgraph.graph import Graph

FORMATS = ("json", "node_link", "graphml")
SUFFIXES = {".node-link.json": "node_link", ".json": "json", ".graphml": "graphml"}
_GRAPHML = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="type" for="node" attr.name="type" attr.type="string"/>
  <key id="properties" for="node" attr.name="properties" attr.type="string"/>
  <key id="relation" for="edge" attr.name="type" attr.type="string"/>
"""


def as_text(graph: Graph, graph_id: str, form: str) -> str:
    """Return the whole graph as the text of a file.

    Args:
        graph: The graph.
        graph_id: Its id.
        form: ``json``: ``{nodes, relations}``, what ``kg.init`` takes; ``node_link``: what networkx reads with
            ``node_link_graph``; ``graphml``: what yEd, Gephi and Cytoscape read, properties as JSON text.
    """
    if form == "graphml":
        return "".join(_graphml(graph, graph_id))
    return _lines(to_json(graph) if form == "json" else to_node_link(graph, graph_id))


def to_json(graph: Graph) -> dict[str, Any]:
    """Return ``{nodes, relations}``, sorted."""
    return {
        "nodes": [graph.nodes[node_id].to_json() for node_id in graph.ids()],
        "relations": [relation_json(relation) for relation in graph.relations()],
    }


def to_node_link(graph: Graph, graph_id: str) -> dict[str, Any]:
    """Return the node-link form of a networkx MultiDiGraph whose edges are keyed by relation type."""
    return {
        "directed": True,
        "multigraph": True,
        "graph": {"id": graph_id},
        "nodes": [graph.nodes[node_id].to_json() for node_id in graph.ids()],
        "edges": [{"source": source, "target": target, "key": kind} for source, target, kind in graph.relations()],
    }


def to_networkx(graph: Graph) -> nx.MultiDiGraph[str]:
    """Return the graph as a networkx MultiDiGraph; node attributes ``type`` and ``properties``, edges keyed by type.

    Raises:
        ImportError: If networkx, which this package does not need otherwise, is not installed.
    """
    import networkx as nx

    made: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    for node_id in graph.ids():
        node = graph.nodes[node_id]
        made.add_node(node_id, type=node.type, properties=node.properties)
    for source, target, kind in graph.relations():
        made.add_edge(source, target, key=kind)
    return made


def _lines(document: dict[str, Any]) -> str:
    """Return JSON with one list item a line."""
    fields = []
    for name, value in document.items():
        if isinstance(value, list) and value:
            items = ",\n    ".join(map(encode, value))
            fields.append(f'  "{name}": [\n    {items}\n  ]')
        else:
            fields.append(f'  "{name}": {encode(value)}')
    return "{\n" + ",\n".join(fields) + "\n}\n"


def _graphml(graph: Graph, graph_id: str) -> Iterator[str]:
    yield _GRAPHML
    yield f'  <graph id="{graph_id}" edgedefault="directed">\n'
    for node_id in graph.ids():
        node = graph.nodes[node_id]
        yield f'    <node id="{node_id}"><data key="type">{node.type}</data>'
        yield f'<data key="properties">{xml_text(node.text)}</data></node>\n'
    for source, target, kind in graph.relations():
        yield f'    <edge source="{source}" target="{target}"><data key="relation">{kind}</data></edge>\n'
    yield "  </graph>\n</graphml>\n"


def xml_text(text: str) -> str:
    """Return ``text`` as XML character data: escaped, and without the characters that XML cannot hold at all."""
    legal = "".join(c if c >= " " or c in "\t\n\r" else "\N{REPLACEMENT CHARACTER}" for c in text)
    legal = legal.replace("\ufffe", "\N{REPLACEMENT CHARACTER}").replace("\uffff", "\N{REPLACEMENT CHARACTER}")
    return legal.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
