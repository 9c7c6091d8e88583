"""Read the journal that earlier versions kept beside ``graph.json``: changes that the file does not hold yet.

A line is ``<digest> <JSON>``. A record has a sequence number and, in ``after``, the digest of the record before. ::

    1f00c2.. {"sequence": 7, "after": "9b1d..", "graph": "demo", "changes": [["node", "clk", "Signal", {}]]}

Anything after the last complete record belongs to a write that was never acknowledged.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from designgraph import graph as edit
from designgraph.graph_errors import GraphError, GraphFileError, unreadable
from designgraph.snapshot import State, digest

if TYPE_CHECKING:
    from pathlib import Path

    from designgraph.snapshot import Snapshot

_MARK = 16  # characters of a digest
_KINDS = {"sequence": int, "after": str, "graph": str, "changes": list}


def take_journal(snapshot: Snapshot, path: Path, content: bytes) -> bytes:
    """Make the changes of a journal that ``snapshot`` does not hold, and return what follows its last whole record.

    Raises:
        GraphFileError: If the journal is damaged, continues another version of the graph, or no longer applies to it.
    """
    records, torn = _records(content, path)
    chained = all(b["sequence"] == a["sequence"] + 1 and b["after"] == a["mark"] for a, b in pairwise(records))
    for record in records:
        state = snapshot.state
        number = record["sequence"]
        fits = number < state.sequence or (number == state.sequence and record["mark"] == state.last)
        if not chained or not (fits or (number, record["after"]) == (state.sequence + 1, state.last)):
            raise unreadable(
                path,
                f"the graph beside it holds changes up to {state.sequence}, and it continues with change {number} of "
                "another version of it. Restore the version that belongs to the journal, or move the journal away to "
                "keep this version without the journal's changes",
            )
        if not fits:
            _replay(snapshot, record, path)
            snapshot.state = State(number, record["mark"], state.digest)
    return torn


def _records(content: bytes, path: Path) -> tuple[list[dict[str, Any]], bytes]:
    """Return the whole records of a journal, and the rest of an interrupted write.

    Such a write leaves the beginning of a line, or, after a power failure, a line that contains pages of zeros.
    """
    *lines, rest = content.split(b"\n")
    records = [_record(line) for line in lines]
    whole = next((place for place, record in enumerate(records) if record is None), len(records))
    torn = b"\n".join([*lines[whole:], rest])
    behind = sum(record is not None for record in records[whole:])
    if behind or (whole < len(lines) and b"\0" not in lines[whole]):
        raise GraphFileError(
            f"{path} is damaged: record {whole + 1} has been changed, and {behind} complete records follow it. "
            "Nothing was changed. Restore the file from a backup or version control, or move it away to continue from "
            "the graph beside it without its records",
            {"path": str(path), "record": whole + 1, "records_behind": behind},
        )
    return [record for record in records[:whole] if record is not None], torn


def _record(line: bytes) -> dict[str, Any] | None:
    """Return the record in a line, or ``None`` if the line is not a record."""
    mark, _, body = line.partition(b" ")
    if len(mark) != _MARK or digest(body).encode() != mark:
        return None
    try:
        read = json.loads(body)
    except (ValueError, RecursionError):  # signed by another program
        return None
    if not isinstance(read, dict) or any(type(read.get(name)) is not kind for name, kind in _KINDS.items()):
        return None
    return {**read, "mark": mark.decode()}


def _replay(snapshot: Snapshot, record: dict[str, Any], path: Path) -> None:
    graphs, graph_id = snapshot.graphs, record["graph"]
    try:
        graphs.setdefault(graph_id, edit.new_graph())
        for change in record["changes"]:
            match change:
                case ["clear"]:
                    graphs[graph_id] = edit.new_graph()
                case ["node", node_id, kind, properties]:
                    edit.add_node(graphs[graph_id], node_id, kind, properties)
                case ["no_node", node_id]:
                    edit.remove_node(graphs[graph_id], node_id)
                case ["properties", node_id, properties]:
                    edit.set_properties(graphs[graph_id], node_id, properties)
                case ["relation", source, target, kind]:
                    edit.add_relation(graphs[graph_id], source, target, kind)
                case ["no_relation", source, target, kind]:
                    edit.remove_relation(graphs[graph_id], source, target, kind)
                case _:
                    raise ValueError(f"unknown change {change!r}")  # noqa: TRY301 - reported below, with its place
    except (GraphError, ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise unreadable(
            path,
            f"the graph beside it was edited, and change {record['sequence']} of the journal no longer applies "
            f"({error}). Undo the edit, or move the journal away to continue without its changes",
        ) from error
