"""Read a graph file that a person or another program has changed: strictly, and with a report of all faults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from designgraph.graph import add_node, add_relation, new_graph
from designgraph.graph_errors import GraphError, unreadable
from designgraph.snapshot import FORMAT, VERSION, Snapshot, State, content_digest
from designgraph.values import check_id, checked_properties, is_id
from sturdy.strict_json import load_json

if TYPE_CHECKING:
    from pathlib import Path

    from designgraph.graph import Graph

SHOWN = 5


class Fault:
    """A fault of a graph file.

    Attributes:
        kind: ``dangling_relation`` if a node is missing, else ``malformed``.
        path: Place in the file, such as ``graphs.demo.nodes[3]``.
        message: Description of the fault.
        ids: Nodes concerned.
    """

    def __init__(self, path: str, message: str, kind: str = "malformed", ids: tuple[str, ...] = ()) -> None:
        self.kind = kind
        self.path = path
        self.message = message
        self.ids = ids

    def to_json(self) -> dict[str, Any]:
        """Return the fault as JSON."""
        return {"kind": self.kind, "path": self.path, "message": self.message, "ids": list(self.ids)}


def read_changed(content: bytes, path: Path) -> Snapshot:
    """Return the graphs of a snapshot whose digest does not match.

    The same graphs in another layout, such as other line ends, do not count as edited.

    Raises:
        GraphFileError: If the file cannot be used; ``details["faults"]`` lists every fault.
    """
    document = _parsed(content, path)
    faults: list[Fault] = []
    graphs: dict[str, Graph] = {}
    _check_fields(document, {"format", "version", "graphs", "state"}, "", faults)
    if document.get("format") != FORMAT or document.get("version") != VERSION:
        faults.append(Fault("format", f'must be "{FORMAT}" with "version" {VERSION}'))
    written = document.get("graphs")
    if not isinstance(written, dict):
        faults.append(Fault("graphs", "must be an object of graphs by id"))
        written = {}
    for graph_id, graph in written.items():
        if is_id(graph_id):
            graphs[graph_id] = _read_graph(graph, f"graphs.{graph_id}", faults)
        else:
            faults.append(Fault("graphs", f"{graph_id!r} is not a valid graph id"))
    state = _read_state(document.get("state"), faults)
    if faults:
        shown = "; ".join(f"{fault.path}: {fault.message}" for fault in faults[:SHOWN])
        more = f"; and {len(faults) - SHOWN} more" if len(faults) > SHOWN else ""
        raise unreadable(
            path,
            f"it was edited and has {len(faults)} fault{'s' if len(faults) > 1 else ''}: {shown}{more}. Repair it, or "
            "restore it from version control",
            faults=[fault.to_json() for fault in faults],
        )
    return Snapshot(graphs, state, edited=content_digest(graphs) != state.digest)


def _parsed(content: bytes, path: Path) -> dict[str, Any]:
    if not content.strip(b"\0 \t\r\n"):
        raise unreadable(path, "it is empty; restore it, or delete it to start with an empty graph")
    try:
        text = content.decode("utf-8-sig")
        document = load_json(text)
    except UnicodeDecodeError as error:
        raise unreadable(path, f"it is not UTF-8 text (byte {error.start})") from None
    except RecursionError:
        raise unreadable(path, "it is nested too deeply") from None
    except ValueError as error:
        merge = any(mark in content for mark in (b"<<<<<<<", b">>>>>>>", b"======="))
        hint = "; it holds an unresolved merge" if merge else "; it is torn or was edited"
        raise unreadable(path, f"it is not JSON: {error}{hint}") from None
    if not isinstance(document, dict):
        raise unreadable(path, "it is not a JSON object")
    return document


def _read_state(state: Any, faults: list[Fault]) -> State:
    if state is None:
        return State()
    fields = {"sequence": int, "last": str, "digest": str}
    if not isinstance(state, dict) or any(type(state.get(name)) is not kind for name, kind in fields.items()):
        faults.append(Fault("state", "must be {sequence, last, digest} as written, or be left out"))
        return State()
    return State(state["sequence"], state["last"], state["digest"])


def _read_graph(written: Any, path: str, faults: list[Fault]) -> Graph:
    graph = new_graph()
    if not isinstance(written, dict):
        faults.append(Fault(path, "must be an object with 'nodes' and 'relations'"))
        return graph
    _check_fields(written, {"nodes", "relations"}, path, faults)
    for name, read in (("nodes", _read_node), ("relations", _read_relation)):
        items = written.get(name, [])
        if not isinstance(items, list):
            faults.append(Fault(f"{path}.{name}", "must be an array"))
            continue
        for index, item in enumerate(items):
            read(graph, item, f"{path}.{name}[{index}]", faults)
    return graph


def _read_node(graph: Graph, item: Any, path: str, faults: list[Fault]) -> None:
    if not isinstance(item, dict):
        faults.append(Fault(path, "must be an object"))
        return
    _check_fields(item, {"id", "type", "properties"}, path, faults)
    try:
        node_id, node_type = check_id(item.get("id"), "id"), check_id(item.get("type"), "type")
        add_node(graph, node_id, node_type, checked_properties(item.get("properties", {})))
    except GraphError as error:
        faults.append(Fault(path, str(error)))


def _read_relation(graph: Graph, item: Any, path: str, faults: list[Fault]) -> None:
    if not isinstance(item, dict):
        faults.append(Fault(path, "must be an object"))
        return
    _check_fields(item, {"from", "to", "type"}, path, faults)
    try:
        ends = check_id(item.get("from"), "from"), check_id(item.get("to"), "to")
        relation_type = check_id(item.get("type"), "type")
        missing = [end for end in dict.fromkeys(ends) if end not in graph]
        if missing:
            text = f"relation '{ends[0]}' -> '{ends[1]}' of type {relation_type}: " + " and ".join(
                f"node '{end}' does not exist" for end in missing
            )
            faults.append(Fault(path, text, "dangling_relation", ends))
            return
        add_relation(graph, *ends, relation_type)
    except GraphError as error:
        faults.append(Fault(path, str(error)))


def _check_fields(item: dict[str, Any], known: set[str], path: str, faults: list[Fault]) -> None:
    unknown = sorted(set(item) - known)
    if unknown:
        faults.append(Fault(path or "the document", f"has unknown fields {', '.join(unknown)}"))
