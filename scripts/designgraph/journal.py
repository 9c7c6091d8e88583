"""The journal: one line a change, ``<digest> <JSON>``, appended and synced before the change is acknowledged.

A record carries its sequence number and, in ``after``, the digest of the record before it, so that the records and the
snapshot they continue form one chain: a record cannot be lost, doubled, changed or put behind a foreign snapshot
without being noticed. ::

    1f00c2.. {"sequence": 7, "after": "9b1d..", "graph": "demo", "changes": [["node", "clk", "Signal", {}]]}

What follows the last whole record is the rest of a write that was never acknowledged: a torn tail.
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
        sequence: Its number; the next record has the next.
        after: Digest of the record before it.
        graph_id: The graph it changes.
        changes: What it changes, all or nothing.
        digest: Digest of its line.
    """

    sequence: int
    after: str
    graph_id: str
    changes: list[Change]
    digest: str


@dataclass(frozen=True)
class Part:
    """A piece of a journal, read from some record on.

    Attributes:
        records: Its whole records.
        length: Bytes they take.
        torn: What follows them; empty in a journal whose last write was finished.
    """

    records: list[Record]
    length: int
    torn: bytes


def digest(content: bytes) -> str:
    """Return the digest by which records and contents are recognised."""
    return Digest(content).hexdigest()


def make_record(sequence: int, after: str, graph_id: str, changes: list[Change]) -> tuple[Record, bytes]:
    """Return a record and its line."""
    body = encode({"sequence": sequence, "after": after, "graph": graph_id, "changes": changes}).encode()
    mark = digest(body)
    return Record(sequence, after, graph_id, changes, mark), b"%s %s\n" % (mark.encode(), body)


def read_part(content: bytes, path: Path) -> Part:
    """Return the records of ``content``.

    Raises:
        GraphFileError: If it is damaged: a record that was whole once is not any more.
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
    """Return the record of a line, or ``None`` if it is none."""
    body = line[_DIGEST_LENGTH + 1 :]
    mark = line[:_DIGEST_LENGTH].decode("ascii", "replace")
    if line[_DIGEST_LENGTH : _DIGEST_LENGTH + 1] != b" " or digest(body) != mark:
        return None
    read: dict[str, Any] = json.loads(body)
    return Record(read["sequence"], read["after"], read["graph"], read["changes"], mark)


def _check_torn(torn: bytes, before: int, path: Path) -> None:
    """Refuse as damaged what an interrupted write cannot leave.

    It leaves the beginning of a line, or, after a loss of power, a line with pages of zeros in it.
    """
    first, *others = torn.split(b"\n")
    behind = sum(_read_line(line) is not None for line in others)
    if behind or (others and b"\0" not in first):
        raise GraphFileError(
            f"{path} is damaged: record {before + 1} has been changed, and {behind} whole records follow it. "
            "Nothing was changed. Restore the file from a backup or version control, or move it away to go on from the "
            "snapshot beside it, which loses its records",
            {"path": str(path), "record": before + 1, "records_behind": behind},
        )


class JournalFile:
    """A journal on disk, opened when it is first needed.

    Args:
        path: Where it is; it is made by the first write.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = -1
        self._writable = False

    @property
    def is_open(self) -> bool:
        """Whether there is a journal; a reader of a graph that nobody has changed yet has none."""
        return self._descriptor >= 0

    @contextmanager
    def locked(self, *, exclusive: bool) -> Iterator[None]:
        """Hold the lock for a block: alone to write, with other readers to read; readers without a journal need none.

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
                    "system with locks (KG_FILE names another place)"
                ) from error
            if self._is_current():
                break
            self.close()  # deleted or replaced by somebody while this process waited
        try:
            yield
        finally:
            if self.is_open:
                fsync.unlock(self._descriptor)

    def has(self, length: int) -> bool:
        """Return whether the journal is the file known so far and has exactly ``length`` bytes; takes no lock."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return not self.is_open and length == 0
        except OSError:
            return False
        return self.is_open and status.st_size == length and self._is_current(status)

    def size(self) -> int:
        """Return its length. [bytes]."""
        return os.fstat(self._descriptor).st_size if self.is_open else 0

    def read(self, start: int) -> bytes:
        """Return its content from byte ``start`` on."""
        if not self.is_open:
            return b""
        os.lseek(self._descriptor, start, os.SEEK_SET)
        return fsync.read_all(self._descriptor)

    def append(self, line: bytes, end: int) -> None:
        """Write ``line`` at byte ``end``, which is the journal's end, and return when it is on disk.

        Raises:
            NotStoredError: If that fails; the journal is as it was.
        """
        try:
            os.lseek(self._descriptor, end, os.SEEK_SET)
            fsync.write_all(self._descriptor, line)
            fsync.sync_data(self._descriptor)
        except OSError as error:
            with suppress(OSError):  # what is left then is a torn tail or a record that nobody acknowledged
                os.ftruncate(self._descriptor, end)
            raise NotStoredError(f"the change was not made, {self.path} cannot be written: {error.strerror}") from error

    def cut(self, length: int) -> None:
        """Shorten the journal to ``length`` [bytes]."""
        os.ftruncate(self._descriptor, length)

    def close(self) -> None:
        """Let go of the file, and of the lock."""
        if self.is_open:
            os.close(self._descriptor)
            self._descriptor = -1

    def _opened(self, *, writing: bool) -> bool:
        """Return whether the journal is open, having opened it, or made it where ``writing``."""
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
        """Return whether the open file is the one that has the journal's name."""
        try:
            named = status or self.path.stat()
        except OSError:
            return False
        return os.path.samestat(named, os.fstat(self._descriptor))
