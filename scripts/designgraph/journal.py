"""The journal: one line per change, ``<digest> <JSON>``, appended and synced before the change is acknowledged.

A record has a sequence number and, in ``after``, the digest of the previous record. The records and the snapshot that
they continue form a chain, so a record that is lost, repeated, changed or appended to another snapshot is detected. ::

    1f00c2.. {"sequence": 7, "after": "9b1d..", "graph": "demo", "changes": [["node", "clk", "Signal", {}]]}

Anything after the last complete record belongs to a write that was never acknowledged: a torn tail.

The journal file is never renamed, so that it can also be the lock that all processes of one graph take.
"""

from __future__ import annotations

import json
import os
import stat
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from designgraph import fsync
from designgraph.graph_errors import GraphFileError, NotStoredError
from designgraph.values import encode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Change = list[Any]
"""A change of a graph, as the journal holds it; ``store.apply_changes`` lists the forms."""

START = ""
"""The digest before the first record."""

DIGEST_BYTES = 8
Digest = partial(blake2b, digest_size=DIGEST_BYTES)
_DIGEST_LENGTH = 2 * DIGEST_BYTES


@dataclass(frozen=True)
class Record:
    """One acknowledged change.

    Attributes:
        sequence: Number of the record; the numbers are consecutive.
        after: Digest of the previous record.
        graph_id: The graph that it changes.
        changes: The changes, made together.
        digest: Digest of its line.
    """

    sequence: int
    after: str
    graph_id: str
    changes: list[Change]
    digest: str


@dataclass(frozen=True)
class Part:
    """Part of a journal, read from a given record on.

    Attributes:
        records: The complete records.
        length: Their length. [bytes]
        torn: The bytes after them; empty if the last write was completed.
    """

    records: list[Record]
    length: int
    torn: bytes


def digest(content: bytes) -> str:
    """Return the digest that identifies a record or a content."""
    return Digest(content).hexdigest()


def make_record(sequence: int, after: str, graph_id: str, changes: list[Change]) -> tuple[Record, bytes]:
    """Return a record and its line."""
    body = encode({"sequence": sequence, "after": after, "graph": graph_id, "changes": changes}).encode()
    mark = digest(body)
    return Record(sequence, after, graph_id, changes, mark), b"%s %s\n" % (mark.encode(), body)


def read_part(content: bytes, path: Path) -> Part:
    """Return the records of ``content``.

    Raises:
        GraphFileError: If it is damaged, that is, a record changed after it was written.
    """
    records: list[Record] = []
    position = 0
    while (end := content.find(b"\n", position)) >= 0:
        record = _read_line(content[position:end])
        if record is None:
            break
        records.append(record)
        position = end + 1
    torn = content[position:]
    if torn:
        _check_torn(torn, len(records), path)
    return Part(records, position, torn)


def _read_line(line: bytes) -> Record | None:
    """Return the record in a line, or ``None`` if the line is not a record."""
    body = line[_DIGEST_LENGTH + 1 :]
    mark = line[:_DIGEST_LENGTH].decode("ascii", "replace")
    if line[_DIGEST_LENGTH : _DIGEST_LENGTH + 1] != b" " or digest(body) != mark:
        return None
    try:
        read: Any = json.loads(body)
        record = Record(read["sequence"], read["after"], read["graph"], read["changes"], mark)
    except (ValueError, KeyError, TypeError, RecursionError):  # signed by another program
        return None
    kinds = (type(record.sequence), type(record.after), type(record.graph_id), type(record.changes))
    return record if kinds == (int, str, str, list) else None


def _check_torn(torn: bytes, before: int, path: Path) -> None:
    """Raise an error if an interrupted write cannot be the reason for the torn tail.

    Such a write leaves the beginning of a line, or, after a power failure, a line that contains pages of zeros.
    """
    first, *others = torn.split(b"\n")
    behind = sum(_read_line(line) is not None for line in others)
    if behind or (others and b"\0" not in first):
        raise GraphFileError(
            f"{path} is damaged: record {before + 1} has been changed, and {behind} complete records follow it. "
            "Nothing was changed. Restore the file from a backup or version control, or move it away to continue from "
            "the snapshot beside it without its records",
            {"path": str(path), "record": before + 1, "records_behind": behind},
        )


class JournalFile:
    """A journal on disk, opened when it is first needed.

    Args:
        path: The file; the first write creates it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = -1
        self._writable = False

    @property
    def is_open(self) -> bool:
        """Whether the file is open; a graph that was never changed has no journal."""
        return self._descriptor >= 0

    @contextmanager
    def locked(self, *, exclusive: bool) -> Iterator[None]:
        """Context manager that holds the lock: exclusive to write, shared to read; without a journal, no lock to read.

        Raises:
            GraphFileError: If the journal cannot be opened.
            NotStoredError: If the file system offers no locks.
        """
        while self._opened(writing=exclusive):
            try:
                fsync.lock(self._descriptor, exclusive=exclusive)
            except OSError as error:
                raise NotStoredError(
                    f"{self.path} cannot be locked: {error.strerror}. Nothing was changed; keep the graph on a file "
                    "system with locks (KG_FILE can name another file)"
                ) from error
            if self._is_current():
                break
            self.close()  # deleted or replaced while this process waited
        try:
            yield
        finally:
            if self.is_open:
                fsync.unlock(self._descriptor)

    def has(self, length: int) -> bool:
        """Return whether the journal is the open file and has exactly ``length`` bytes; take no lock."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return not self.is_open and length == 0
        except OSError:
            return False
        return self.is_open and status.st_size == length and self._is_current(status)

    def size(self) -> int:
        """Return the length of the journal. [bytes]."""
        return os.fstat(self._descriptor).st_size if self.is_open else 0

    def read(self, start: int) -> bytes:
        """Return the content from byte ``start`` on."""
        if not self.is_open:
            return b""
        os.lseek(self._descriptor, start, os.SEEK_SET)
        return fsync.read_all(self._descriptor)

    def append(self, line: bytes, end: int) -> None:
        """Write ``line`` at byte ``end``, the end of the journal, and wait until it is on disk.

        Raises:
            NotStoredError: If that fails; the journal is unchanged.
        """
        try:
            os.lseek(self._descriptor, end, os.SEEK_SET)
            fsync.write_all(self._descriptor, line)
            fsync.sync_data(self._descriptor)
        except OSError as error:
            with suppress(OSError):  # otherwise a torn tail or an unacknowledged record remains
                os.ftruncate(self._descriptor, end)
            raise NotStoredError(f"the change was not made, {self.path} cannot be written: {error.strerror}") from error

    def cut(self, length: int) -> None:
        """Shorten the journal to ``length`` [bytes]."""
        os.ftruncate(self._descriptor, length)

    def close(self) -> None:
        """Close the file, which releases the lock."""
        if self.is_open:
            os.close(self._descriptor)
            self._descriptor = -1

    def _opened(self, *, writing: bool) -> bool:
        """Open the journal, or create it if ``writing``; return whether it is open."""
        if self.is_open and (self._writable or not writing):
            return True
        self.close()
        try:
            if writing:
                self._make()
            else:
                self._open_existing()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise GraphFileError(
                f"{self.path} cannot be {'written' if writing else 'read'}: {error.strerror}. Nothing was changed; set "
                "CHIPFORGE_PROJECT to the project's folder, or KG_FILE to the graph's file",
                {"path": str(self.path)},
            ) from error
        if not stat.S_ISREG(os.fstat(self._descriptor).st_mode):
            self.close()
            raise GraphFileError(f"{self.path} is not a regular file; nothing was changed", {"path": str(self.path)})
        return True

    def _make(self) -> None:
        folder = self.path.parent
        fsync.make_folder(folder)
        try:
            self._descriptor = fsync.open_file(self.path, os.O_RDWR)
        except FileNotFoundError:
            self._descriptor = fsync.open_file(self.path, os.O_RDWR | os.O_CREAT)
            fsync.sync_folder(folder)
        self._writable = True

    def _open_existing(self) -> None:
        try:
            self._descriptor = fsync.open_file(self.path, os.O_RDWR)
            self._writable = True
        except PermissionError:
            self._descriptor = fsync.open_file(self.path, os.O_RDONLY)
            self._writable = False

    def _is_current(self, status: os.stat_result | None = None) -> bool:
        """Return whether the journal's path still leads to the open file."""
        try:
            named = status or self.path.stat()
        except OSError:
            return False
        return os.path.samestat(named, os.fstat(self._descriptor))
