"""Writing pictures and exports: whole or not at all, and never over the graph itself."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from designgraph.errors import GraphError

if TYPE_CHECKING:
    from designgraph.service import KnowledgeGraph


def write_text(knowledge: KnowledgeGraph, path: str, text: str) -> int:
    """Write ``text`` to ``path`` and return its size in bytes.

    Raises:
        GraphError: If the file cannot be written, or is the graph's own.
    """
    target = Path(os.path.realpath(path))
    if target.name.startswith(knowledge.store.path.name) and target.parent == knowledge.store.path.parent:
        raise GraphError(f"{path} belongs to the graph itself; give another name", {"param_name": "output_path"})
    if not target.name:
        raise GraphError(f"{path} is a folder; name a file", {"param_name": "output_path", "provided_value": path})
    content = text.encode()
    beside = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        beside.write_bytes(content)
        beside.replace(target)
    except OSError as error:
        with suppress(OSError):
            beside.unlink()
        raise GraphError(
            f"{path} cannot be written: {error.strerror}", {"param_name": "output_path", "provided_value": path}
        ) from error
    return len(content)
