"""The journal: one line a change, ``<digest> <JSON>``, appended and synced before the change is acknowledged.

A record carries its sequence number and, in ``after``, the digest of the record before it, so that the records and the
snapshot they continue form one chain: a record cannot be lost, doubled, changed or put behind a foreign snapshot
without being noticed. ::

    1f00c2.. {"sequence": 7, "after": "9b1d..", "graph": "demo", "changes": [["node", "clk", "Signal", {}]]}

What follows the last whole record is the rest of a write that was never acknowledged: a torn tail.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from designgraph.errors import GraphFileError
from designgraph.names import encode

if TYPE_CHECKING:
    from pathlib import Path

    from designgraph.changes import Change

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
