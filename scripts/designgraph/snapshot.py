"""The snapshot ``graph.json``: every graph as a JSON document that people read, compare and keep under version control.

One node or relation a line, sorted. The last line says which journal record it contains last and carries a digest of
all above it: a file whose digest does not fit was edited. ::

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
from itertools import islice
from typing import TYPE_CHECKING, Any

from designgraph.collector import collector_off
from designgraph.errors import GraphFileError
from designgraph.graph import Graph
from designgraph.journal import START, Digest, digest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FORMAT = "design-knowledge-graph"
VERSION = 1
_CHUNK = 1 << 20
_STATE = b'\n  "state": '
_STATE_LINE = re.compile(
    rb'\{"sequence": (?P<sequence>[0-9]{1,18}), "last": "(?P<last>[0-9a-f]*)", "digest": "(?P<digest>[0-9a-f]*)"\}\n'
    rb"\}\n"
)
_HEAD = b'{\n  "format": "%s",\n  "version": %d,\n  "graphs": {' % (FORMAT.encode(), VERSION)
_GRAPH = re.compile(rb'\n    "([\w-]+)": \{\n      "nodes": \[')
_NODE = re.compile(r'^ {8}\{"id": "([^"]+)", "type": "([^"]+)", "properties": (\{.*\})\},?$', re.MULTILINE)
_RELATION = re.compile(r'"from": "([^"]+)", "to": "([^"]+)", "type": "([^"]+)"')
_RELATIONS = b'\n      ],\n      "relations": ['
_GRAPH_END = b"\n      ]\n    }"


@dataclass(frozen=True)
class State:
    """What a snapshot says of itself.

    Attributes:
        sequence: Number of the last record it contains.
        last: Digest of that record.
        digest: Digest of the content; empty if it gives none.
    """

    sequence: int = 0
    last: str = START
    digest: str = ""


@dataclass
class Snapshot:
    """A snapshot that was read.

    Attributes:
        graphs: By id.
        state: As the file says.
        edited: Whether the content is not the one the state speaks of.
    """

    graphs: dict[str, Graph] = field(default_factory=dict)
    state: State = field(default_factory=State)
    edited: bool = False


class SnapshotText:
    """The file of some graphs, in pieces: iterate to get them, then ask for the ``state`` they end with.

    Args:
        graphs: By id.
        sequence: Number of the last record they contain.
        last: Digest of that record.
    """

    def __init__(self, graphs: dict[str, Graph], sequence: int, last: str) -> None:
        self._graphs = graphs
        self._sequence = sequence
        self._last = last
        self.state = State(sequence, last)

    def __iter__(self) -> Iterator[bytes]:
        mark = Digest()
        for piece in self._body():
            mark.update(piece)
            yield piece
        self.state = State(self._sequence, self._last, mark.hexdigest())
        tail = f'{{"sequence": {self._sequence}, "last": "{self._last}", "digest": "{self.state.digest}"}}\n}}\n'
        yield _STATE + tail.encode()

    def _body(self) -> Iterator[bytes]:
        yield _HEAD
        separator = "\n"
        for graph_id in sorted(self._graphs):
            graph = self._graphs[graph_id]
            yield f'{separator}    "{graph_id}": {{\n      "nodes": ['.encode()
            # ids and types are plain by rule, so that no encoder is needed
            nodes = (graph.nodes[node_id] for node_id in graph.ids())
            yield from _lines(f'{{"id": "{n.id}", "type": "{n.type}", "properties": {n.text}}}' for n in nodes)
            yield _RELATIONS
            yield from _lines(f'{{"from": "{f}", "to": "{t}", "type": "{y}"}}' for f, t, y in graph.relations())
            yield _GRAPH_END
            separator = ",\n"
        yield b"\n  }," if self._graphs else b"},"


def _lines(items: Iterator[str]) -> Iterator[bytes]:
    """Return array items, one a line, some thousand at a time."""
    start = "\n        "
    while piece := list(islice(items, 4096)):
        yield (start + ",\n        ".join(piece)).encode()
        start = ",\n        "


def content_digest(graphs: dict[str, Graph]) -> str:
    """Return the digest of the file that ``graphs`` would have."""
    text = SnapshotText(graphs, 0, START)
    for _ in text:
        pass
    return text.state.digest


def split_state(content: bytes) -> tuple[State, bool]:
    """Return the state that ``content`` ends with, and whether the digest in it fits the content."""
    place = content.rfind(_STATE)
    found = _STATE_LINE.fullmatch(content, place + len(_STATE)) if place >= 0 else None
    if found is None:
        return State(), False
    state = State(int(found["sequence"]), found["last"].decode(), found["digest"].decode())
    return state, digest(content[:place]) == state.digest


def read_snapshot(content: bytes, path: Path) -> Snapshot:
    """Return the graphs of a snapshot file.

    Raises:
        GraphFileError: If it is no snapshot; ``details["faults"]`` lists all that is wrong.
    """
    state, genuine = split_state(content)
    if genuine:
        with collector_off():
            return Snapshot(_read_genuine(content), state)
    from designgraph.edited import read_edited

    graphs, state = read_edited(content, path)
    # the same graphs written otherwise (line ends, indentation) are no edit
    return Snapshot(graphs, state, edited=content_digest(graphs) != state.digest)


def _read_genuine(content: bytes) -> dict[str, Graph]:
    """Return the graphs of a file that is byte for byte as ``SnapshotText`` made it."""
    graphs: dict[str, Graph] = {}
    position = len(_HEAD)
    while (found := _GRAPH.match(content, position + (content[position : position + 1] == b","))) is not None:
        graph = graphs[found[1].decode()] = Graph()
        middle = content.index(_RELATIONS, found.end())
        graph.load_nodes(_items(content, found.end(), middle, _NODE))
        position = content.index(_GRAPH_END, middle)
        graph.load_relations(_items(content, middle + len(_RELATIONS), position, _RELATION))
        position += len(_GRAPH_END)
    return graphs


def _items(content: bytes, start: int, end: int, pattern: re.Pattern[str]) -> Iterator[tuple[str, str, str]]:
    """Return the items of an array as the three groups of ``pattern``, read in pieces so that memory stays small."""
    while start < end:
        stop = end if end - start <= _CHUNK else content.find(b",\n", start + _CHUNK, end)
        stop = end if stop < 0 else stop
        yield from pattern.findall(content[start:stop].decode())
        start = stop + 1


def unreadable(path: Path, reason: str, **details: Any) -> GraphFileError:
    """Return the error of a graph file that cannot be used."""
    return GraphFileError(f"{path} cannot be used: {reason}. Nothing was changed", {"path": str(path), **details})
