"""Read a whole graph from a file, for graphs too large for one request.

The file is JSON, ``{"nodes": [...], "relations": [...]}`` as ``kg.export`` writes it, or JSON Lines (``.jsonl``,
``.ndjson``) with one node or relation per line, in any order::

    {"id": "clk", "type": "Signal", "properties": {"width": 1}}
    {"from": "clk", "to": "clk_example", "type": "EXAMPLES"}
"""

from __future__ import annotations

import re
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from designgraph.graph_errors import GraphError
from sturdy.strict_json import load_json

MAX_BYTES = 256 << 20
MAX_ITEMS = 2_000_000
_LINES = (".jsonl", ".ndjson")
_FIELDS = {"nodes", "relations"}
_ITEM_FIELDS = {"id", "type", "from", "to"}
_QUOTED = re.compile(r"""(?P<quote>['"]).*(?P=quote)""", re.DOTALL)


@dataclass
class Parts:
    """The content of a file.

    Attributes:
        nodes: Nodes as ``kg.init`` takes them, not checked yet.
        relations: Relations in the same state.
        lines: Line number of each node and of each relation in a JSON Lines file.
    """

    nodes: list[Any] = field(default_factory=list)
    relations: list[Any] = field(default_factory=list)
    lines: dict[str, list[int]] = field(default_factory=dict)

    def place(self, kind: str, index: int) -> str:
        """Return the place of an item: ``line 7``, or ``nodes[6]`` in a JSON document."""
        return f"line {self.lines[kind][index]}" if self.lines else f"{kind}[{index}]"


def read_parts(path: str) -> Parts:
    """Return the nodes and relations of a file.

    Raises:
        GraphError: If the file cannot be read, is too large or has neither of the two formats.
    """
    file = Path(path)
    try:
        status = file.stat()
        if not stat.S_ISREG(status.st_mode):
            raise _refused(path, "is not a regular file")
        if status.st_size > MAX_BYTES:
            raise _refused(path, f"has {status.st_size} bytes; at most {MAX_BYTES} are read")
        parts = _read_lines(file) if file.suffix.lower() in _LINES else _read_document(file)
    except OSError as error:
        raise _refused(path, f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise _refused(path, f"is not UTF-8 text (byte {error.start})") from None
    except RecursionError:
        raise _refused(path, "is nested too deeply") from None
    except ValueError as error:
        reason = _QUOTED.sub("...", str(error))  # the file may be something else, and secret
        raise _refused(path, f"is not JSON: {reason}") from None
    count = len(parts.nodes) + len(parts.relations)
    if count > MAX_ITEMS:
        raise _refused(path, f"has {count} nodes and relations; at most {MAX_ITEMS} are read")
    return parts


def _read_document(file: Path) -> Parts:
    document = load_json(file.read_bytes().decode("utf-8-sig"))
    if not isinstance(document, dict) or any(not isinstance(items, list) for items in document.values()):
        raise _refused(str(file), 'must be an object {"nodes": [...], "relations": [...]}')
    unknown = sorted(set(document) - _FIELDS)
    if unknown and not _FIELDS & set(document):  # not a graph file: do not quote it
        raise _refused(str(file), 'must be an object {"nodes": [...], "relations": [...]}')
    if unknown:
        raise _refused(str(file), f"has unknown fields {', '.join(unknown)}; known are nodes, relations")
    return Parts(document.get("nodes", []), document.get("relations", []))


def _read_lines(file: Path) -> Parts:
    parts = Parts(lines={"nodes": [], "relations": []})
    with file.open(encoding="utf-8-sig", newline="\n") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                item = load_json(line)
            except (ValueError, RecursionError) as error:
                raise ValueError(f"line {number}: {error}") from None
            kind = "relations" if isinstance(item, dict) and "from" in item else "nodes"
            getattr(parts, kind).append(item)
            parts.lines[kind].append(number)
    if (
        parts.nodes
        and not parts.relations
        and not any(isinstance(item, dict) and _ITEM_FIELDS & item.keys() for item in parts.nodes)
    ):
        raise _refused(str(file), "has no line that is a node (id, type) or a relation (from, to, type)")
    return parts


def _refused(path: str, reason: str) -> GraphError:
    return GraphError(f"{path} {reason}", {"param_name": "input_path", "provided_value": path})
