"""All graphs of one file, kept in memory, on disk and in step with other processes.

A change is made under the lock: take in what others wrote, check the change against that, append it to the journal,
sync, and only then keep it in memory and acknowledge it. The snapshot is rewritten when it is small or the journal has
grown to a good part of it: written beside, synced, renamed, and only then is the journal emptied. Whatever is
interrupted, snapshot and journal together hold every acknowledged change:

========================  =============================================================
interrupted while         found afterwards
========================  =============================================================
appending a record        a torn tail: put aside, told, cut off by the next change
writing the new snapshot  a leftover ``.new``, overwritten by the next one
between rename and cut    records that the snapshot contains already: passed over
========================  =============================================================
"""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from designgraph import changes as change_words
from designgraph import durable, journal
from designgraph.errors import GraphError, GraphFileError, NotStoredError
from designgraph.journal_file import JournalFile
from designgraph.snapshot import Snapshot, SnapshotText, content_digest, read_snapshot, split_state, unreadable
from designgraph.snapshot_file import SnapshotFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from designgraph.changes import Change
    from designgraph.graph import Graph
    from designgraph.journal import Record

SMALL_BYTES = 64 << 10
"""A snapshot up to this size is rewritten at every change, so that the file people read is always complete. [bytes]"""

JOURNAL_BYTES = 256 << 10
"""Least size of a journal that is folded into a larger snapshot. [bytes]"""

JOURNAL_PART = 8
"""A journal is folded when it has grown to this part of its snapshot: loading costs an eighth more at most."""


class Store:
    """The graphs of one file.

    Reading and changing are safe from several threads and processes.

    Args:
        path: The snapshot, ``graph.json``; the journal lies beside it. Neither need exist.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(os.path.realpath(path))  # a link's target is what gets replaced, and what is locked
        self.sequence = 0
        self._last = journal.START
        self._graphs: dict[str, Graph] = {}
        self._edited = False
        self._loaded = False
        self._journal = JournalFile(self.path.with_name(f"{self.path.name}.journal"))
        self._end = 0  # bytes of the journal that are in memory
        self._snapshot = SnapshotFile(self.path)
        self._notices: list[str] = []
        self._mutex = threading.RLock()

    @contextmanager
    def reading(self) -> Iterator[dict[str, Graph]]:
        """Give the graphs by id as they are on disk, for reading in a block.

        Raises:
            GraphFileError: If the files cannot be used.
        """
        with self._mutex:
            if not self._is_current():
                with self._journal.locked(exclusive=False):
                    self._catch_up()
            yield self._graphs

    def change(self, graph_id: str, plan: Callable[[dict[str, Graph]], list[Change]]) -> int:
        """Make changes in one graph, all or none, and return their sequence number when they are on disk.

        No changes leave the files as they are.

        Args:
            graph_id: The graph, which begins to exist if it does not.
            plan: Returns the changes, given the graphs as they are; what it raises is passed on.

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
            undo = change_words.apply(self._graphs, graph_id, made)
            try:
                record, line = journal.make_record(self.sequence + 1, self._last, graph_id, made)
                self._journal.append(line, self._end)
            except NotStoredError:
                change_words.revert(undo)
                raise
            except BaseException:  # interrupted: what is on disk decides, so it is read again
                change_words.revert(undo)
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

    def journal_bytes(self) -> int:
        """Return how much of the graphs is in the journal alone. [bytes]."""
        return self._end

    def take_notices(self) -> list[str]:
        """Return what was found about the files since the last time, in words."""
        with self._mutex:
            notices, self._notices = list(dict.fromkeys(self._notices)), []
        return notices

    def close(self) -> None:
        """Let go of the files; nothing is lost, and the next use opens them again."""
        with self._mutex:
            self._journal.close()
            self._forget()

    def _is_current(self) -> bool:
        """Return whether memory is what is on disk, told by two looks at the files without a lock."""
        return self._loaded and self._snapshot.is_known() and self._journal.has(self._end)

    def _catch_up(self) -> None:
        """Take in what is on disk and not in memory; the lock is held."""
        try:
            if not self._loaded or not self._is_continued() or self._journal.size() < self._end:
                self._load()
            self._take_records()
        except BaseException:
            self._forget()
            raise

    def _load(self) -> None:
        self._forget()
        content = self._snapshot.read()
        snapshot = Snapshot() if content is None else read_snapshot(content, self.path)
        self._graphs, self._edited = snapshot.graphs, snapshot.edited
        self.sequence, self._last = snapshot.state.sequence, snapshot.state.last
        self._end = 0
        self._loaded = True
        if self._edited:
            self._notices.append(
                f"{self.path} was edited outside the graph's tools; it is taken as it is, and the next change signs it"
            )

    def _forget(self) -> None:
        self._loaded = False
        self._snapshot.let_go()

    def _is_continued(self) -> bool:
        """Return whether the snapshot on disk is the known one, or one that was folded from what is in memory."""
        if self._snapshot.is_known():
            return True
        content = self._snapshot.read()
        if content is None or self._edited:
            return False
        state, genuine = split_state(content)
        if not genuine or (state.sequence, state.last) != (self.sequence, self._last):
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
                "acknowledged; they are left out"
            )

    def _replay(self, record: Record) -> None:
        if record.sequence != self.sequence + 1 or record.after != self._last:
            raise self._conflict(record)
        try:
            change_words.apply(self._graphs, record.graph_id, record.changes)
        except (GraphError, ValueError) as error:
            raise unreadable(
                self.path,
                f"it was edited so that change {record.sequence} of its journal does not fit any more ({error}). Undo "
                "the edit, or move the journal away to go on without its changes",
                journal=str(self._journal.path),
            ) from error
        self.sequence, self._last = record.sequence, record.digest

    def _conflict(self, record: Record) -> GraphFileError:
        return unreadable(
            self.path,
            f"it holds changes up to {self.sequence}, and its journal {self._journal.path} goes on with change "
            f"{record.sequence} of another version of it. Restore the version that belongs to the journal, or move "
            "the journal away to keep this one without the journal's changes",
            journal=str(self._journal.path),
            sequence=self.sequence,
            record=record.sequence,
        )

    def _cut_torn(self) -> None:
        """Put a torn tail aside and cut it off."""
        if self._journal.size() == self._end:
            return
        aside = self.path.with_name(f"{self.path.name}.torn")
        try:
            descriptor = durable.open_file(aside, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            try:
                durable.write_all(descriptor, self._journal.read(self._end) + b"\n")
            finally:
                os.close(descriptor)
            self._journal.cut(self._end)
        except OSError as error:
            raise NotStoredError(f"the change was not made, {aside} cannot be written: {error.strerror}") from error
        self._notices.append(f"the interrupted write was moved from the journal to {aside}")

    def _adopt_edit(self) -> None:
        """Sign an edited snapshot as a change of its own, so that nobody takes it for the one before the edit."""
        before = (self.sequence, self._last)
        mark = content_digest(self._graphs)
        self.sequence, self._last = self.sequence + 1, journal.digest(f"{self._last} {mark}".encode())
        if not self._fold():
            self.sequence, self._last = before
            raise NotStoredError(f"the change was not made: {'; '.join(self.take_notices())}")
        self._edited = False

    def _fold_if_due(self) -> None:
        size = self._snapshot.size
        if size <= SMALL_BYTES or self._end >= max(JOURNAL_BYTES, size // JOURNAL_PART):
            self._fold()

    def _fold(self) -> bool:
        """Write the snapshot and empty the journal; a failure is told and loses nothing."""
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
        except OSError as error:  # the journal repeats what the snapshot holds, which does no harm
            self._notices.append(f"{self._journal.path} could not be emptied ({error.strerror}); it is kept")
            return False
        self._end = 0
        return True
