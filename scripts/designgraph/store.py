"""All graphs of one file: kept in memory and on disk, and synchronized with other processes.

A change is made under the lock. The store reads what other processes wrote, checks the change against that, appends it
to the journal and syncs. Only then does it keep the change in memory and acknowledge it. The snapshot is rewritten if
it is small, or if the journal has grown to a set part of it: a new file is written, synced and renamed, and only then
is the journal emptied. After any interruption, snapshot and journal together hold every acknowledged change:

==============================  ===================================================================
interruption                    state afterwards
==============================  ===================================================================
while a record is appended      a torn tail; reported, and moved to ``.torn`` by the next change
while a snapshot is written     a leftover ``.new`` file, overwritten by the next snapshot
between renaming and emptying   journal records that the snapshot already contains; they are skipped
==============================  ===================================================================
"""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from designgraph import fsync, journal
from designgraph.graph import Graph
from designgraph.graph_errors import GraphError, GraphFileError, NotStoredError, sentences, unreadable
from designgraph.snapshot import Snapshot, SnapshotFile, SnapshotText, content_digest, read_signed, split_state

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from designgraph.journal import Change, Record

    Undo = list[Callable[[], object]]

SMALL_BYTES = 64 << 10
"""A snapshot up to this size is rewritten at every change, so that the file that people read is complete. [bytes]"""

JOURNAL_BYTES = 256 << 10
"""Minimum size of a journal that is folded into a larger snapshot. [bytes]"""

JOURNAL_PART = 8
"""A journal is folded when it has reached 1 / JOURNAL_PART of its snapshot, so loading costs at most an eighth more."""


class Store:
    """The graphs of one file, safe to read and change from several threads and processes.

    Args:
        path: The snapshot, ``graph.json``; the journal lies beside it. Neither file need exist.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(os.path.realpath(path))  # the target of a link is replaced and locked, not the link
        self.sequence = 0
        self._last = journal.START
        self._graphs: dict[str, Graph] = {}
        self._edited = False
        self._loaded = False
        self._journal = journal.JournalFile(self.path.with_name(f"{self.path.name}.journal"))
        self._end = 0  # bytes of the journal that are in memory
        self._snapshot = SnapshotFile(self.path)
        self._notices: list[str] = []
        self._mutex = threading.RLock()

    @contextmanager
    def reading(self) -> Iterator[dict[str, Graph]]:
        """Context manager that gives the graphs by id, as they are on disk, for reading.

        Raises:
            GraphFileError: If the files cannot be used.
        """
        with self._mutex:
            if not self._is_current():
                with self._journal.locked(exclusive=False):
                    self._catch_up()
            yield self._graphs

    def change(self, graph_id: str, plan: Callable[[dict[str, Graph]], list[Change]]) -> int:
        """Make changes in one graph, all or none, and return their sequence number once they are on disk.

        An empty list of changes leaves the files unchanged.

        Args:
            graph_id: The graph; it is created if it does not exist.
            plan: Takes the current graphs and returns the changes. Its exceptions are passed on.

        Raises:
            GraphError: If a change cannot be made.
            GraphFileError: If the files cannot be used.
            NotStoredError: If the disk is full or fails.
        """
        with self._mutex, self._journal.locked(exclusive=True):
            self._catch_up()
            made = plan(self._graphs)
            if not made:
                return self.sequence
            if self._edited:
                self._adopt_edit()
            self._cut_torn()
            undo = apply_changes(self._graphs, graph_id, made)
            try:
                record, line = journal.make_record(self.sequence + 1, self._last, graph_id, made)
                self._journal.append(line, self._end)
            except NotStoredError:
                revert_changes(undo)
                raise
            except BaseException:  # interrupted: the files are read again, because they decide
                revert_changes(undo)
                self._forget()
                raise
            self._end += len(line)
            self.sequence, self._last = record.sequence, record.digest
            self._fold_if_due()
            return self.sequence

    def fold(self) -> bool:
        """Bring the snapshot up to date and empty the journal; return whether that was possible."""
        with self._mutex, self._journal.locked(exclusive=True):
            self._catch_up()
            if self._edited:
                self._adopt_edit()
            self._cut_torn()
            return self._fold()

    def take_notices(self) -> list[str]:
        """Return the messages about the files since the last call."""
        with self._mutex:
            notices, self._notices = list(dict.fromkeys(self._notices)), []
        return notices

    def close(self) -> None:
        """Close the files. Nothing is lost, and the next use opens them again."""
        with self._mutex:
            self._journal.close()
            self._forget()

    def _is_current(self) -> bool:
        """Return whether memory matches the files, judged by the status of both files without a lock."""
        return self._loaded and self._snapshot.is_known() and self._journal.has(self._end)

    def _catch_up(self) -> None:
        """Read what is on disk and not in memory; the caller holds the lock."""
        try:
            if not self._loaded or not self._is_continued() or self._journal.size() < self._end:
                self._load()
            self._take_records()
        except BaseException:
            self._forget()
            raise

    def _load(self) -> None:
        self._forget()
        snapshot = self._read_snapshot()
        self._graphs, self._edited = snapshot.graphs, snapshot.edited
        self.sequence, self._last = snapshot.state.sequence, snapshot.state.last
        self._end = 0
        self._loaded = True
        if self._edited:
            self._notices.append(
                f"{self.path} was edited outside the graph's tools; the edit is accepted, and the next change signs it"
            )

    def _read_snapshot(self) -> Snapshot:
        content = self._snapshot.read()
        if content is None:
            return Snapshot()
        signed = read_signed(content)
        if signed is not None:
            return signed
        from designgraph.external_changes import read_changed

        return read_changed(content, self.path)

    def _forget(self) -> None:
        self._loaded = False
        self._snapshot.forget()

    def _is_continued(self) -> bool:
        """Return whether the snapshot on disk is the known one, or was folded from the graphs in memory."""
        if self._snapshot.is_known():
            return True
        content = self._snapshot.read()
        if content is None or self._edited:
            return False
        state, is_signed = split_state(content)
        if not is_signed or (state.sequence, state.last) != (self.sequence, self._last):
            return False
        self._end = 0
        return True

    def _take_records(self) -> None:
        part = journal.read_part(self._journal.read(self._end), self._journal.path)
        before: Record | None = None
        for record in part.records:
            if before is not None and (record.sequence, record.after) != (before.sequence + 1, before.digest):
                raise self._conflict(record)
            before = record
            if record.sequence > self.sequence:
                self._replay(record)
            elif record.sequence == self.sequence and record.digest != self._last:
                raise self._conflict(record)
        if part.records and part.records[-1].sequence < self.sequence:
            raise self._conflict(part.records[-1])
        self._end += part.length
        if part.torn:
            self._notices.append(
                f"{self._journal.path} ends with {len(part.torn)} bytes of a write that was interrupted before it was "
                "acknowledged; they are ignored"
            )

    def _replay(self, record: Record) -> None:
        if record.sequence != self.sequence + 1 or record.after != self._last:
            raise self._conflict(record)
        try:
            apply_changes(self._graphs, record.graph_id, record.changes)
        except (GraphError, ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            raise unreadable(
                self.path,
                f"it was edited, and change {record.sequence} of its journal no longer applies ({error}). Undo the "
                "edit, or move the journal away to continue without its changes",
                journal=str(self._journal.path),
            ) from error
        self.sequence, self._last = record.sequence, record.digest

    def _conflict(self, record: Record) -> GraphFileError:
        return unreadable(
            self.path,
            f"it holds changes up to {self.sequence}, and its journal {self._journal.path} continues with change "
            f"{record.sequence} of another version of it. Restore the version that belongs to the journal, or move "
            "the journal away to keep this version without the journal's changes",
            journal=str(self._journal.path),
            sequence=self.sequence,
            record=record.sequence,
        )

    def _cut_torn(self) -> None:
        """Move a torn tail from the journal to the file ``.torn``."""
        if self._journal.size() == self._end:
            return
        aside = self.path.with_name(f"{self.path.name}.torn")
        try:
            descriptor = fsync.open_file(aside, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            try:
                fsync.write_all(descriptor, self._journal.read(self._end) + b"\n")
            finally:
                os.close(descriptor)
            self._journal.cut(self._end)
        except OSError as error:
            raise NotStoredError(f"the change was not made, {aside} cannot be written: {error.strerror}") from error
        self._notices.append(f"the interrupted write was moved from the journal to {aside}")

    def _adopt_edit(self) -> None:
        """Sign an edited snapshot as a change of its own, so that it is distinct from the version before the edit."""
        before = (self.sequence, self._last)
        mark = content_digest(self._graphs)
        self.sequence, self._last = self.sequence + 1, journal.digest(f"{self._last} {mark}".encode())
        if not self._fold():
            self.sequence, self._last = before
            raise NotStoredError(f"the change was not made: {sentences(self.take_notices())}")
        self._edited = False

    def _fold_if_due(self) -> None:
        size = self._snapshot.size
        if size <= SMALL_BYTES or self._end >= max(JOURNAL_BYTES, size // JOURNAL_PART):
            self._fold()

    def _fold(self) -> bool:
        """Write the snapshot and empty the journal; a failure is reported and loses nothing."""
        try:
            self._snapshot.write(SnapshotText(self._graphs, self.sequence, self._last))
        except OSError as error:
            self._notices.append(
                f"{self.path} could not be rewritten ({error.strerror}); its journal keeps the changes"
            )
            return False
        try:
            self._snapshot.sync_name()
            self._journal.cut(0)
        except OSError as error:  # harmless: the journal repeats what the snapshot holds
            self._notices.append(f"{self._journal.path} could not be emptied ({error.strerror}); it is kept")
            return False
        self._end = 0
        return True


def apply_changes(graphs: dict[str, Graph], graph_id: str, changes: list[Change]) -> Undo:
    """Make ``changes`` in one graph, all or none, and return the steps that undo them when called last to first.

    A graph that does not exist is created. A change is a JSON array::

        ["clear"]                                 start with an empty graph
        ["node", id, type, properties]            add a node
        ["no_node", id]                           remove a node without relations
        ["properties", id, properties]            replace the properties of a node
        ["relation", from, to, type]              add a relation
        ["no_relation", from, to, type]           remove a relation

    Raises:
        GraphError: If one of them cannot be made; nothing has changed then.
    """
    undo: Undo = []
    try:
        if graph_id not in graphs:
            graphs[graph_id] = Graph()
            undo.append(partial(graphs.pop, graph_id))
        for change in changes:
            undo.append(_apply_change(graphs, graph_id, change))
    except BaseException:  # also at an interrupt the graph must be as it was
        revert_changes(undo)
        raise
    return undo


def revert_changes(undo: Undo) -> None:
    """Undo the changes of one call of ``apply_changes``."""
    for step in reversed(undo):
        step()


def _apply_change(graphs: dict[str, Graph], graph_id: str, change: Change) -> Callable[[], object]:
    graph = graphs[graph_id]
    match change:
        case ["node", node_id, node_type, properties]:
            graph.add_node(node_id, node_type, properties)
            return partial(graph.remove_node, node_id)
        case ["relation", source, target, relation_type]:
            graph.add_relation(source, target, relation_type)
            return partial(graph.remove_relation, source, target, relation_type)
        case ["properties", node_id, properties]:
            return partial(graph.set_properties, node_id, graph.set_properties(node_id, properties))
        case ["no_node", node_id]:
            node = graph.remove_node(node_id)
            return partial(graph.add_node, node_id, node.type, node.properties)
        case ["no_relation", source, target, relation_type]:
            graph.remove_relation(source, target, relation_type)
            return partial(graph.add_relation, source, target, relation_type)
        case ["clear"]:
            graphs[graph_id] = Graph()
            return partial(graphs.__setitem__, graph_id, graph)
    raise ValueError(f"unknown change {change!r}")
