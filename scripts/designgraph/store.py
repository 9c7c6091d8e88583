"""All graphs of one file, ``graph.json``: kept in memory and on disk, and synchronized with other processes.

A change is made under a lock: the store reads what other processes wrote, makes the change, writes the whole file
beside the old one, syncs it and renames it. Only then is the change acknowledged. So the file is complete at every
moment, readers need no lock, and an interruption leaves the version before or the version after.

The file is one JSON document, for people, comparison and version control. It has one node or relation per line, sorted.
The last line holds a number that grows with each change, the digest of the version before, and a digest of everything
above it. If that does not match, another program changed the file. ::

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
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from designgraph.graph import (
    GraphError,
    GraphFileError,
    NotStoredError,
    check_id,
    is_id,
    new_graph,
    read_graph,
    relations,
    unreadable,
)
from sturdy.atomic_files import lock, make_folder, replace_file, sync_folder
from sturdy.near_names import sentences
from sturdy.strict_json import load_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from designgraph.graph import Graph

    Version = tuple[int, int, int, int, int, bytes]


MAX_BYTES = 1 << 30
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_LOCK = os.O_RDWR | os.O_CREAT | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
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
class SnapshotState:
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
    state: SnapshotState = field(default_factory=SnapshotState)
    edited: bool = False


def digest(content: bytes) -> str:
    """Return the digest of a content."""
    return blake2b(content, digest_size=8).hexdigest()


def as_bytes(graphs: dict[str, Graph], before: SnapshotState) -> tuple[bytes, SnapshotState]:
    """Return the content of the file that holds ``graphs`` as the next version after ``before``, and its state."""
    body = _body(graphs)
    state = SnapshotState(before.sequence + 1, before.digest, digest(body))
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


def split_state(content: bytes) -> tuple[SnapshotState, bool]:
    """Return the state at the end of ``content``, and whether its digest matches the content."""
    place = content.rfind(_STATE)
    found = _STATE_LINE.fullmatch(content, place + len(_STATE)) if place >= 0 else None
    if found is None:
        return SnapshotState(), False
    state = SnapshotState(int(found["sequence"]), found["last"].decode(), found["digest"].decode())
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


SHOWN = 5
_STATE_FIELDS = {"sequence": int, "last": str, "digest": str}


def read_changed(content: bytes, path: Path) -> Snapshot:
    """Return the graphs of a file that a person or another program has changed: read strictly.

    The same graphs in another layout, such as other line ends, do not count as edited.

    Raises:
        GraphFileError: If the file cannot be used. ``details["faults"]`` lists every fault as ``{kind, path, message,
            ids}``; the kind is ``dangling_relation`` if a node is missing, else ``malformed``.
    """
    document = _parsed(content, path)
    faults: list[dict[str, Any]] = []
    graphs: dict[str, Graph] = {}
    _check_fields(document, {"format", "version", "graphs", "state"}, "", faults)
    if document.get("format") != FORMAT or document.get("version") != VERSION:
        faults.append(_fault("format", f'must be "{FORMAT}" with "version" {VERSION}'))
    written = document.get("graphs")
    if not isinstance(written, dict):
        faults.append(_fault("graphs", "must be an object of graphs by id"))
        written = {}
    for graph_id, graph in written.items():
        if is_id(graph_id):
            graphs[graph_id] = _read_changed_graph(graph, f"graphs.{graph_id}", faults)
        else:
            faults.append(_fault("graphs", f"{graph_id!r} is not a valid graph id"))
    state = document.get("state", {"sequence": 0, "last": "", "digest": ""})
    if not isinstance(state, dict) or any(type(state.get(name)) is not kind for name, kind in _STATE_FIELDS.items()):
        faults.append(_fault("state", "must be {sequence, last, digest} as written, or be left out"))
    if faults:
        shown = sentences((f"{fault['path']}: {fault['message']}" for fault in faults), SHOWN)
        raise unreadable(
            path,
            f"it was edited and has {len(faults)} fault{'s' if len(faults) > 1 else ''}: {shown}. Repair it, or "
            "restore it from version control",
            faults=faults,
        )
    known = SnapshotState(**{name: state[name] for name in _STATE_FIELDS})
    return Snapshot(graphs, known, edited=content_digest(graphs) != known.digest)


def _fault(path: str, message: str, kind: str = "malformed", ids: Sequence[str] = ()) -> dict[str, Any]:
    return {"kind": kind, "path": path, "message": message, "ids": list(ids)}


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


def _read_changed_graph(written: Any, path: str, faults: list[dict[str, Any]]) -> Graph:
    if not isinstance(written, dict):
        faults.append(_fault(path, "must be an object with 'nodes' and 'relations'"))
        return new_graph()
    _check_fields(written, {"nodes", "relations"}, path, faults)
    items = {name: written.get(name, []) for name in ("nodes", "relations")}
    for name, listed in items.items():
        if not isinstance(listed, list):
            faults.append(_fault(f"{path}.{name}", "must be an array"))
            items[name] = []
    graph, found = read_graph(items["nodes"], items["relations"], _checked_type, _checked_type)
    for name, index, error in found:
        place, item = f"{path}.{name}[{index}]", items[name][index]
        if error.code == "NODE_NOT_FOUND":
            text = f"relation '{item['from']}' -> '{item['to']}' of type {item['type']}: {error}"
            faults.append(_fault(place, text, "dangling_relation", (item["from"], item["to"])))
        else:
            faults.append(_fault(place, str(error)))
    return graph


def _checked_type(value: Any) -> str:
    """Return a type as written; a consistency check, not the reader, decides which types a graph may use."""
    return check_id(value, "type")


def _check_fields(item: dict[str, Any], known: set[str], path: str, faults: list[dict[str, Any]]) -> None:
    unknown = sorted(set(item) - known)
    if unknown:
        faults.append(_fault(path or "the document", f"has unknown fields {', '.join(unknown)}"))


class Store:
    """The graphs of one file, safe to read and change from several threads and processes.

    Args:
        path: ``graph.json``, which need not exist; the lock ``graph.json.lock`` lies beside it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(os.path.realpath(path))  # the target of a link is replaced and locked, not the link
        self._held: Snapshot | None = None  # None: the file must be read
        self._version: Version | None = None  # of the file that is in memory; None: there was none
        self._has_more = False  # whether memory holds an edit that the file does not sign yet
        self._notices: list[str] = []
        self._mutex = threading.RLock()

    @contextmanager
    def reading(self) -> Iterator[dict[str, Graph]]:
        """Context manager that gives the graphs by id, as they are on disk, for reading.

        Raises:
            GraphFileError: If the files cannot be used.
        """
        with self._mutex:
            yield self._current().graphs

    def change(self, work: Callable[[dict[str, Graph]], bool]) -> None:
        """Make a change; once this returns, it is on disk.

        Args:
            work: Changes the graphs that it is given, and returns whether it did. If it raises a ``GraphError``, it has
                changed nothing.

        Raises:
            GraphError: As ``work`` does.
            GraphFileError: If the files cannot be used.
            NotStoredError: If the disk is full or fails; the change was not made.
        """
        with self._mutex, self._locked():
            held = self._current()
            try:
                if work(held.graphs):
                    self._write(held)
            except NotStoredError:
                self._held = None
                raise
            except GraphError:
                raise
            except BaseException:  # interrupted: the file decides
                self._held = None
                raise

    def fold(self) -> bool:
        """Sign an edit of the file that another program made; return whether the file is signed."""
        with self._mutex, self._locked():
            held = self._current()
            try:
                if self._has_more:
                    self._write(held)
            except NotStoredError as error:
                self._notices.append(str(error))
            return not self._has_more

    def take_notices(self) -> list[str]:
        """Return the messages about the files since the last call."""
        with self._mutex:
            notices, self._notices = list(dict.fromkeys(self._notices)), []
        return notices

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Context manager that holds the lock of all processes that change this graph."""
        path = self.path.with_name(f"{self.path.name}.lock")
        descriptor = -1
        try:
            while True:
                descriptor = self._opened(path)
                try:
                    lock(descriptor)
                except OSError as error:
                    raise NotStoredError(
                        f"{path} cannot be locked: {error.strerror}. Nothing was changed; keep the graph on a file "
                        "system with locks (KG_FILE can name another file)"
                    ) from error
                with suppress(FileNotFoundError):
                    if os.path.samestat(os.fstat(descriptor), path.stat()):
                        break
                os.close(descriptor)  # deleted or replaced while this process waited
            yield
        finally:
            if descriptor >= 0:
                with suppress(OSError):
                    os.close(descriptor)

    @staticmethod
    def _opened(path: Path) -> int:
        try:
            make_folder(path.parent)
            descriptor = os.open(path, _LOCK, 0o666)
        except OSError as error:
            raise GraphFileError(
                f"{path} cannot be written: {error.strerror}. Nothing was changed; set CHIPFORGE_PROJECT to the "
                "project's folder, or KG_FILE to the graph's file",
                {"path": str(path)},
            ) from error
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
        raise GraphFileError(f"{path} is not a regular file; nothing was changed", {"path": str(path)})

    def _current(self) -> Snapshot:
        """Return what is on disk, which is read if it is not in memory."""
        descriptor = self._open()
        try:
            version = None if descriptor is None else _version(descriptor)
            if self._held is None or version != self._version:
                self._held = None
                self._has_more = False
                self._held = self._read(b"" if descriptor is None else _content(descriptor), exists=version is not None)
                self._version = version
        except OSError as error:
            raise unreadable(self.path, f"it cannot be read: {error.strerror}") from error
        finally:
            if descriptor is not None:
                os.close(descriptor)
        return self._held

    def _open(self) -> int | None:
        """Return a descriptor of the file; None if there is none."""
        try:
            descriptor = os.open(self.path, _READ)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise unreadable(self.path, f"it cannot be opened: {error.strerror}") from error
        status = os.fstat(descriptor)
        fault = "it is not a regular file" if not stat.S_ISREG(status.st_mode) else ""
        if not fault and status.st_size > MAX_BYTES:
            fault = f"it has {status.st_size} bytes, more than {MAX_BYTES}"
        if fault:
            os.close(descriptor)
            raise unreadable(self.path, fault)
        return descriptor

    def _read(self, content: bytes, *, exists: bool) -> Snapshot:
        held = read_signed(content) if exists else Snapshot()
        if held is None:
            held = read_changed(content, self.path)
        if held.edited:
            self._has_more = True
            self._notices.append(
                f"{self.path} was edited outside the graph's tools; the edit is accepted, and the next change signs it"
            )
        self._refuse_journal()
        return held

    def _refuse_journal(self) -> None:
        """Raise an error if there are changes beside the file, in the journal of an earlier version."""
        journal = self.path.with_name(f"{self.path.name}.journal")
        with suppress(FileNotFoundError):
            status = journal.stat()
            if status.st_size and stat.S_ISREG(status.st_mode):
                raise unreadable(
                    journal,
                    "it holds changes of an earlier version of this package, which this version does not read. Run "
                    "`export_graph.py --fold` of the version that wrote it, or move it away to keep the graph "
                    "without its changes",
                )

    def _write(self, held: Snapshot) -> None:
        content, state = as_bytes(held.graphs, held.state)
        mode = None
        with suppress(FileNotFoundError):
            mode = stat.S_IMODE(self.path.stat().st_mode)
        try:
            replace_file(self.path, content, mode=mode)
        except OSError as error:
            raise NotStoredError(f"the change was not made, {self.path} cannot be written: {error.strerror}") from error
        held.state = state
        self._has_more = False
        self._version = None
        with suppress(GraphFileError):  # replaced at once by something else: it is read again
            if (descriptor := self._open()) is not None:
                self._version = _version(descriptor)
                os.close(descriptor)
        try:
            sync_folder(self.path.parent)
        except OSError as error:
            self._notices.append(
                f"{self.path.parent} could not be synced ({error.strerror}); a power failure may undo the last change"
            )


def _version(descriptor: int) -> Version:
    """Return what tells one version of a file from another: its status, and its end, which holds its digest."""
    status = os.fstat(descriptor)
    os.lseek(descriptor, max(0, status.st_size - STATE_LENGTH), os.SEEK_SET)
    end = os.read(descriptor, STATE_LENGTH)
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, end


def _content(descriptor: int) -> bytes:
    os.lseek(descriptor, 0, os.SEEK_SET)
    with os.fdopen(os.dup(descriptor), "rb") as stream:
        return stream.read()
