"""Writing pictures and exports: whole or not at all, and never over the graph itself."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from designgraph import durable
from designgraph.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from designgraph.service import KnowledgeGraph


def chosen_form(form: str | None, path: str | None, suffixes: Mapping[str, str], default: str) -> str:
    """Return the form of the file to write: ``form``, else what the path's suffix stands for.

    Args:
        form: The form that the caller gives, ``None`` if the suffix decides.
        path: The file to write, ``None`` if the caller did not name one.
        suffixes: Forms by suffix; of several that fit, the first counts.
        default: The form without a path.

    Raises:
        GraphError: If form and suffix contradict each other, or neither is known.
    """
    if path is None:
        return form or default
    meant = next((suffixes[suffix] for suffix in suffixes if path.lower().endswith(suffix)), None)
    if form is None and meant is None:
        known = ", ".join(suffixes)
        text = f"the name {Path(path).name!r} does not show the format; give format, or a name that ends in {known}"
        raise GraphError(text, {"param_name": "output_path", "provided_value": path, "allowed": list(suffixes)})
    possible = {suffixes[suffix] for suffix in suffixes if path.lower().endswith(suffix)}
    if form is not None and possible and form not in possible:
        text = f"{Path(path).name!r} is the name of a {meant} file, but format is {form}; change one of them"
        raise GraphError(text, {"param_name": "format", "provided_value": form})
    return form or str(meant)


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
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        durable.write_file(target, content)
    except OSError as error:
        raise GraphError(
            f"{path} cannot be written: {error.strerror}", {"param_name": "output_path", "provided_value": path}
        ) from error
    return len(content)
