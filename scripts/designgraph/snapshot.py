"""The snapshot ``graph.json``: all graphs as one JSON document, for people, comparison and version control.

It has one node or relation per line, sorted. The last line names the last journal record that the snapshot contains
and holds a digest of everything above it. If the digest does not match, the file was changed by another program. ::

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

import os
import re
import stat
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from designgraph import fsync
from designgraph.graph import Graph, garbage_collector_disabled
from designgraph.graph_errors import unreadable
from designgraph.journal import START, Digest, digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

FORMAT = "design-knowledge-graph"
VERSION = 1
MAX_BYTES = 1 << 30
_FileKey = tuple[int, int, int, int, int]
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
    """The ``state`` line of a snapshot.

    Attributes:
        sequence: Number of the last record that the snapshot contains.
        last: Digest of that record.
        digest: Digest of the content; empty if the line has none.
    """

    sequence: int = 0
    last: str = START
    digest: str = ""


@dataclass
class Snapshot:
    """A snapshot that was read.

    Attributes:
        graphs: Graphs by id.
        state: The state in the file.
        edited: Whether the content has changed since the state was written.
    """

    graphs: dict[str, Graph] = field(default_factory=dict)
    state: State = field(default_factory=State)
    edited: bool = False


class SnapshotText:
    """The content of a snapshot file, produced in pieces; after the iteration, ``state`` is the state it ends with.

    Args:
        graphs: Graphs by id.
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
            # ids and types need no JSON escapes, because the id rule allows none of those characters
            nodes = (graph.nodes[node_id] for node_id in graph.ids())
            yield from _lines(f'{{"id": "{n.id}", "type": "{n.type}", "properties": {n.text}}}' for n in nodes)
            yield _RELATIONS
            yield from _lines(f'{{"from": "{f}", "to": "{t}", "type": "{y}"}}' for f, t, y in graph.relations())
            yield _GRAPH_END
            separator = ",\n"
        yield b"\n  }," if self._graphs else b"},"


def _lines(items: Iterator[str]) -> Iterator[bytes]:
    """Return array items, one per line, in pieces of some thousand lines."""
    start = "\n        "
    while piece := list(islice(items, 4096)):
        yield (start + ",\n        ".join(piece)).encode()
        start = ",\n        "


def content_digest(graphs: dict[str, Graph]) -> str:
    """Return the digest that a snapshot of ``graphs`` would have."""
    text = SnapshotText(graphs, 0, START)
    for _ in text:
        pass
    return text.state.digest


def split_state(content: bytes) -> tuple[State, bool]:
    """Return the state at the end of ``content``, and whether its digest matches the content."""
    place = content.rfind(_STATE)
    found = _STATE_LINE.fullmatch(content, place + len(_STATE)) if place >= 0 else None
    if found is None:
        return State(), False
    state = State(int(found["sequence"]), found["last"].decode(), found["digest"].decode())
    return state, digest(content[:place]) == state.digest


def read_signed(content: bytes) -> Snapshot | None:
    """Return the graphs of a file that ``SnapshotText`` wrote, or ``None`` if its digest does not match."""
    state, is_signed = split_state(content)
    if not is_signed:
        return None
    with garbage_collector_disabled():
        return Snapshot(_read_graphs(content), state)


def _read_graphs(content: bytes) -> dict[str, Graph]:
    """Return the graphs of a file that holds exactly the bytes that ``SnapshotText`` wrote."""
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
    """Return the items of an array as the three groups of ``pattern``, read in pieces to save memory."""
    while start < end:
        stop = end if end - start <= _CHUNK else content.find(b",\n", start + _CHUNK, end)
        stop = end if stop < 0 else stop
        yield from pattern.findall(content[start:stop].decode())
        start = stop + 1


class SnapshotFile:
    """A snapshot on disk, and the version of it that is in memory.

    The known version is kept open where the system allows open files to be replaced. Its inode cannot be reused then,
    so a new snapshot is never mistaken for the known one.

    Args:
        path: The file, which need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: _FileKey | None = None
        self._held = -1

    @property
    def size(self) -> int:
        """Size of the known version; 0 if there is none. [bytes]."""
        return self._known[2] if self._known else 0

    def is_known(self) -> bool:
        """Return whether the file on disk is the one last read or written, or whether there was and is no file."""
        try:
            return _file_key(self.path.stat()) == self._known
        except FileNotFoundError:
            return self._known is None
        except OSError:
            return False

    def read(self) -> bytes | None:
        """Return the content and remember it as the known version; ``None`` if there is no file.

        Raises:
            GraphFileError: If the file cannot be read, is not a regular file or is too large.
        """
        self.forget()
        try:
            descriptor = fsync.open_file(self.path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise unreadable(self.path, f"it cannot be opened: {error.strerror}") from error
        try:
            content = self._content(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        self._remember(descriptor)
        return content

    def _content(self, descriptor: int) -> bytes:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise unreadable(self.path, "it is not a regular file")
        if status.st_size > MAX_BYTES:
            raise unreadable(self.path, f"it has {status.st_size} bytes, more than {MAX_BYTES}")
        try:
            return fsync.read_all(descriptor)
        except OSError as error:
            raise unreadable(self.path, f"it cannot be read: {error.strerror}") from error

    def write(self, pieces: Iterable[bytes]) -> None:
        """Replace the file by one with the content ``pieces``, which is synced to disk before it is renamed.

        Raises:
            OSError: If that fails; the file is unchanged.
        """
        new_path = self.path.with_name(f"{self.path.name}.new")
        descriptor = fsync.open_file(new_path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        try:
            with suppress(FileNotFoundError):
                new_path.chmod(stat.S_IMODE(self.path.stat().st_mode))
            for piece in pieces:
                fsync.write_all(descriptor, piece)
            fsync.sync_data(descriptor)
            if sys.platform == "win32":  # an open file cannot be renamed there
                os.close(descriptor)
                descriptor = -1
            fsync.replace(new_path, self.path)
        except BaseException:
            if descriptor >= 0:
                os.close(descriptor)
            with suppress(OSError):
                new_path.unlink()
            raise
        self.forget()
        self._remember(fsync.open_file(self.path, os.O_RDONLY) if descriptor < 0 else descriptor)

    def sync_name(self) -> None:
        """Sync the folder, so that the file's new name is on disk.

        Raises:
            OSError: If that fails.
        """
        fsync.sync_folder(self.path.parent)

    def forget(self) -> None:
        """Forget the known version and close it."""
        self._known = None
        if self._held >= 0:
            os.close(self._held)
            self._held = -1

    def _remember(self, descriptor: int) -> None:
        self._known = _file_key(os.fstat(descriptor))
        if sys.platform == "win32":
            os.close(descriptor)
        else:
            self._held = descriptor


def _file_key(status: os.stat_result) -> _FileKey:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
