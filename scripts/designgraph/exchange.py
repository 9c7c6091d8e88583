"""Whole graphs in files: what ``kg.init`` reads, what other programs read, and the writing of such files.

``kg.init`` reads JSON, ``{"nodes": [...], "relations": [...]}`` as ``kg.export`` writes it, or JSON Lines (``.jsonl``,
``.ndjson``) with one node or relation per line, in any order::

    {"id": "clk", "type": "Signal", "properties": {"width": 1}}
    {"from": "clk", "to": "clk_example", "type": "EXAMPLES"}
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from designgraph.graph import GraphError, encode, new_graph, node_json, properties_of, relation_json, relations, type_of
from sturdy.atomic_files import replace_file
from sturdy.strict_json import load_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from designgraph.graph import Graph

MAX_BYTES = 256 << 20
MAX_ITEMS = 2_000_000
_LINES = (".jsonl", ".ndjson")
_FIELDS = {"nodes", "relations"}
_ITEM_FIELDS = {"id", "type", "from", "to"}
_QUOTED = re.compile(r"""(?P<quote>['"]).*(?P=quote)""", re.DOTALL)


@dataclass
class Parts:
    """The content of a file.

    Attributes:
        nodes: Nodes as ``kg.init`` takes them, not checked yet.
        relations: Relations in the same state.
        lines: Line number of each node and of each relation in a JSON Lines file.
    """

    nodes: list[Any] = field(default_factory=list)
    relations: list[Any] = field(default_factory=list)
    lines: dict[str, list[int]] = field(default_factory=dict)

    def place(self, kind: str, index: int) -> str:
        """Return the place of an item: ``line 7``, or ``nodes[6]`` in a JSON document."""
        return f"line {self.lines[kind][index]}" if self.lines else f"{kind}[{index}]"


def read_parts(path: str) -> Parts:
    """Return the nodes and relations of a file.

    Raises:
        GraphError: If the file cannot be read, is too large or has neither of the two formats.
    """
    file = Path(path)
    try:
        status = file.stat()
        if not stat.S_ISREG(status.st_mode):
            raise _refused(path, "is not a regular file")
        if status.st_size > MAX_BYTES:
            raise _refused(path, f"has {status.st_size} bytes; at most {MAX_BYTES} are read")
        parts = _read_lines(file) if file.suffix.lower() in _LINES else _read_document(file)
    except OSError as error:
        raise _refused(path, f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise _refused(path, f"is not UTF-8 text (byte {error.start})") from None
    except RecursionError:
        raise _refused(path, "is nested too deeply") from None
    except ValueError as error:
        reason = _QUOTED.sub("...", str(error))  # the file may be something else, and secret
        raise _refused(path, f"is not JSON: {reason}") from None
    count = len(parts.nodes) + len(parts.relations)
    if count > MAX_ITEMS:
        raise _refused(path, f"has {count} nodes and relations; at most {MAX_ITEMS} are read")
    return parts


def _read_document(file: Path) -> Parts:
    document = load_json(file.read_bytes().decode("utf-8-sig"))
    if not isinstance(document, dict) or any(not isinstance(items, list) for items in document.values()):
        raise _refused(str(file), 'must be an object {"nodes": [...], "relations": [...]}')
    unknown = sorted(set(document) - _FIELDS)
    if unknown and not _FIELDS & set(document):  # not a graph file: do not quote it
        raise _refused(str(file), 'must be an object {"nodes": [...], "relations": [...]}')
    if unknown:
        raise _refused(str(file), f"has unknown fields {', '.join(unknown)}; known are nodes, relations")
    return Parts(document.get("nodes", []), document.get("relations", []))


def _read_lines(file: Path) -> Parts:
    parts = Parts(lines={"nodes": [], "relations": []})
    with file.open(encoding="utf-8-sig", newline="\n") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                item = load_json(line)
            except (ValueError, RecursionError) as error:
                raise ValueError(f"line {number}: {error}") from None
            kind = "relations" if isinstance(item, dict) and "from" in item else "nodes"
            getattr(parts, kind).append(item)
            parts.lines[kind].append(number)
    if (
        parts.nodes
        and not parts.relations
        and not any(isinstance(item, dict) and _ITEM_FIELDS & item.keys() for item in parts.nodes)
    ):
        raise _refused(str(file), "has no line that is a node (id, type) or a relation (from, to, type)")
    return parts


def _refused(path: str, reason: str) -> GraphError:
    return GraphError(f"{path} {reason}", {"param_name": "input_path", "provided_value": path})


FORMATS = ("json", "node_link", "graphml")
SUFFIXES = {".node-link.json": "node_link", ".json": "json", ".graphml": "graphml"}


def as_text(graph: Graph, graph_id: str, form: str) -> str:
    """Return the text of a file that holds the whole graph.

    Args:
        graph: The graph.
        graph_id: Its id.
        form: ``json``: ``{nodes, relations}``, which ``kg.init`` takes; ``node_link``: for ``node_link_graph`` of
            networkx; ``graphml``: for yEd, Gephi and Cytoscape, with the properties as JSON text.
    """
    if form == "graphml":
        template = Path(__file__).with_name("graphml.xml.jinja")
        return filled(template, graph_id=graph_id, nodes=sorted(graph.nodes.items()), relations=relations(graph))
    return _lines(to_json(graph) if form == "json" else to_node_link(graph, graph_id))


def to_json(graph: Graph) -> dict[str, Any]:
    """Return ``{nodes, relations}``, sorted."""
    return {
        "nodes": [node_json(graph, node_id) for node_id in sorted(graph)],
        "relations": [relation_json(relation) for relation in relations(graph)],
    }


def to_node_link(graph: Graph, graph_id: str) -> dict[str, Any]:
    """Return the node-link form of a networkx MultiDiGraph whose edges are keyed by relation type."""
    return {
        "directed": True,
        "multigraph": True,
        "graph": {"id": graph_id},
        "nodes": [node_json(graph, node_id) for node_id in sorted(graph)],
        "edges": [{"source": source, "target": target, "key": kind} for source, target, kind in relations(graph)],
    }


def to_networkx(graph: Graph) -> Graph:
    """Return a copy of the graph with the node attributes ``type`` and ``properties`` (a dict), edges keyed by type."""
    made = new_graph()
    for node_id in sorted(graph):
        made.add_node(node_id, type=type_of(graph, node_id), properties=properties_of(graph, node_id))
    made.add_edges_from((*relation, {}) for relation in relations(graph))
    return made


def _lines(document: dict[str, Any]) -> str:
    """Return JSON with one list item per line."""
    fields = []
    for name, value in document.items():
        if isinstance(value, list) and value:
            items = ",\n    ".join(map(encode, value))
            fields.append(f'  "{name}": [\n    {items}\n  ]')
        else:
            fields.append(f'  "{name}": {encode(value)}')
    return "{\n" + ",\n".join(fields) + "\n}\n"


def filled(template: Path, **values: Any) -> str:
    """Return the text of an XML file. Ids and types need no escapes; other texts get the filter ``xml``."""
    from jinja2 import Environment, StrictUndefined

    engine = Environment(undefined=StrictUndefined, keep_trailing_newline=True, trim_blocks=True)  # noqa: S701
    engine.filters["xml"] = xml_text
    return engine.from_string(template.read_text(encoding="utf-8")).render(values)


def xml_text(text: str) -> str:
    """Return ``text`` as XML character data: escaped, and without the characters that XML does not allow."""
    legal = "".join(c if c >= " " or c in "\t\n\r" else "\N{REPLACEMENT CHARACTER}" for c in text)
    legal = legal.replace("\ufffe", "\N{REPLACEMENT CHARACTER}").replace("\uffff", "\N{REPLACEMENT CHARACTER}")
    return legal.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def chosen_format(form: str | None, path: str | None, suffixes: Mapping[str, str], default: str) -> str:
    """Return the format of the file to write: ``form``, or else the format that the path's suffix means.

    Args:
        form: The format given by the caller; ``None`` if the suffix decides.
        path: The file to write; ``None`` if the caller did not name one.
        suffixes: Formats by suffix; if several match, the first counts.
        default: The format if there is neither a format nor a path.

    Raises:
        GraphError: If format and suffix contradict each other, or neither is known.
    """
    if path is None:
        return form or default
    possible = [suffixes[suffix] for suffix in suffixes if path.lower().endswith(suffix)]
    if form is None and not possible:
        known = ", ".join(suffixes)
        text = f"the name {Path(path).name!r} does not show the format; give format, or a name that ends in {known}"
        raise GraphError(text, {"param_name": "output_path", "provided_value": path, "allowed": list(suffixes)})
    if form is not None and possible and form not in possible:
        text = f"{Path(path).name!r} is the name of a {possible[0]} file, but format is {form}; change one of them"
        raise GraphError(text, {"param_name": "format", "provided_value": form})
    return form or possible[0]


def write_text(graph_file: Path, path: str, text: str) -> int:
    """Write ``text`` to ``path``, completely or not at all, and return its size in bytes.

    Args:
        graph_file: The file of the graphs.
        path: The file to write.
        text: Its content.

    Raises:
        GraphError: If the file cannot be written, or belongs to the graph itself.
    """
    target = Path(os.path.realpath(path))
    if target.name.startswith(graph_file.name) and target.parent == graph_file.parent:
        raise GraphError(f"{path} belongs to the graph itself; give another name", {"param_name": "output_path"})
    if not target.name:
        raise GraphError(f"{path} is a folder; name a file", {"param_name": "output_path", "provided_value": path})
    content = text.encode()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        replace_file(target, content)
    except OSError as error:
        raise GraphError(
            f"{path} cannot be written: {error.strerror}", {"param_name": "output_path", "provided_value": path}
        ) from error
    return len(content)
