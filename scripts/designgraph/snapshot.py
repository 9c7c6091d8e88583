"""The form of ``graph.json``: all graphs as one JSON document, for people, comparison and version control.

It has one node or relation per line, sorted. The last line holds a number that grows with each change, the digest of
the version before, and a digest of everything above it. If that does not match, another program changed the file. ::

    {
      "format": "design-knowledge-graph",
      "version": 1,
      "graphs": {
        "demo": {
          "nodes": [
            {"id": "clk", "type": "Signal", "properties": {"width": "1"}}
          ],
          "relations": [
            {"from": "clk", "to": "clk", "type": "EXAMPLES"}
          ]
        }
      },
      "state": {"sequence": 3, "last": "91aa..", "digest": "0c5e.."}
    }
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING

from designgraph.graph import new_graph, relations

if TYPE_CHECKING:
    from collections.abc import Iterable

    from designgraph.graph import Graph

FORMAT = "design-knowledge-graph"
VERSION = 1
STATE_LENGTH = 120
"""The line ``state`` is within the last bytes of a file. [bytes]"""
_STATE = b'\n  "state": '
_STATE_LINE = re.compile(
    rb'\{"sequence": (?P<sequence>[0-9]{1,18}), "last": "(?P<last>[0-9a-f]*)", "digest": "(?P<digest>[0-9a-f]*)"\}\n'
    rb"\}\n"
)
_HEAD = f'{{\n  "format": "{FORMAT}",\n  "version": {VERSION},\n  "graphs": {{'
_NODES, _RELATIONS, _END = '{\n      "nodes": [', '\n      ],\n      "relations": [', "\n      ]\n    }"
_GRAPH = re.compile(
    rf'\n    "([\w-]+)": {re.escape(_NODES)}(.*?){re.escape(_RELATIONS)}(.*?){re.escape(_END)}', re.DOTALL
)
_NODE = re.compile(r'^ {8}\{"id": "([^"]+)", "type": "([^"]+)", "properties": (\{.*\})\},?$', re.MULTILINE)
_RELATION = re.compile(r'"from": "([^"]+)", "to": "([^"]+)", "type": "([^"]+)"')


@dataclass(frozen=True)
class State:
    """The ``state`` line of a snapshot.

    Attributes:
        sequence: Number of the last change.
        last: Digest of the version before it.
        digest: Digest of the content; empty if the line has none.
    """

    sequence: int = 0
    last: str = ""
    digest: str = ""


@dataclass
class Snapshot:
    """What a file holds.

    Attributes:
        graphs: Graphs by id.
        state: The state in the file.
        edited: Whether the content has changed since the state was written.
    """

    graphs: dict[str, Graph] = field(default_factory=dict)
    state: State = field(default_factory=State)
    edited: bool = False


def digest(content: bytes) -> str:
    """Return the digest of a content."""
    return blake2b(content, digest_size=8).hexdigest()


def as_bytes(graphs: dict[str, Graph], before: State) -> tuple[bytes, State]:
    """Return the content of the file that holds ``graphs`` as the next version after ``before``, and its state."""
    body = _body(graphs)
    state = State(before.sequence + 1, before.digest, digest(body))
    tail = f'{{"sequence": {state.sequence}, "last": "{state.last}", "digest": "{state.digest}"}}\n}}\n'
    return body + _STATE + tail.encode(), state


def content_digest(graphs: dict[str, Graph]) -> str:
    """Return the digest that a file of ``graphs`` has."""
    return digest(_body(graphs))


def _body(graphs: dict[str, Graph]) -> bytes:
    parts = []
    for graph_id in sorted(graphs):
        graph = graphs[graph_id]
        # ids and types need no JSON escapes, because the id rule allows none of those characters
        nodes = _lines(
            f'{{"id": "{node_id}", "type": "{node["type"]}", "properties": {node["text"]}}}'
            for node_id, node in sorted(graph.nodes(data=True))
        )
        lines = _lines(f'{{"from": "{f}", "to": "{t}", "type": "{kind}"}}' for f, t, kind in relations(graph))
        parts.append(f'\n    "{graph_id}": {_NODES}{nodes}{_RELATIONS}{lines}{_END}')
    return (_HEAD + ",".join(parts) + ("\n  }," if graphs else "},")).encode()


def _lines(items: Iterable[str]) -> str:
    text = ",\n        ".join(items)
    return f"\n        {text}" if text else ""


def split_state(content: bytes) -> tuple[State, bool]:
    """Return the state at the end of ``content``, and whether its digest matches the content."""
    place = content.rfind(_STATE)
    found = _STATE_LINE.fullmatch(content, place + len(_STATE)) if place >= 0 else None
    if found is None:
        return State(), False
    state = State(int(found["sequence"]), found["last"].decode(), found["digest"].decode())
    return state, digest(content[:place]) == state.digest


def read_signed(content: bytes) -> Snapshot | None:
    """Return the graphs of a file that ``as_bytes`` wrote, or ``None`` if its digest does not match."""
    state, is_signed = split_state(content)
    if not is_signed:
        return None
    graphs = {}
    for graph_id, nodes, lines in _GRAPH.findall(content.decode()):
        graph = graphs[graph_id] = new_graph()
        graph.add_nodes_from((i, {"type": kind, "text": text}) for i, kind, text in _NODE.findall(nodes))
        graph.add_edges_from((*relation, {}) for relation in _RELATION.findall(lines))
    return Snapshot(graphs, state)
