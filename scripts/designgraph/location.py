"""Where a project keeps its graph."""

from __future__ import annotations

import os
from pathlib import Path

FILE_VARIABLE = "KG_FILE"
PROJECT_VARIABLE = "CHIPFORGE_PROJECT"
PLACE = Path(".chipforge", "kg", "graph.json")


def graph_path() -> Path:
    """Return the graph's file: ``$KG_FILE``, else ``.chipforge/kg/graph.json`` in ``$CHIPFORGE_PROJECT`` or here."""
    named = os.environ.get(FILE_VARIABLE)
    return Path(named).absolute() if named else Path(os.environ.get(PROJECT_VARIABLE) or ".", PLACE).absolute()
