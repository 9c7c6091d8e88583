# /// script
# requires-python = ">=3.10"
# dependencies = ["analog-layout-skills"]
# ///
"""Check whether the design in a graph is consistent."""

from typing import Any

try:
    from skillscript import main
except ImportError as missing:
    raise SystemExit(f"{missing}: `pip install -e .` in a clone; `uv run {__file__!r}` in an exported copy") from None


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return the findings, each with the nodes concerned and a suggestion."""
    from designgraph import open_graph
    from designgraph.consistency import check_graph

    return check_graph(open_graph(), params["graphId"], params["limit"])


def violates(data: dict[str, Any]) -> bool:
    """Return whether the design is inconsistent."""
    return not data["passed"]


if __name__ == "__main__":
    raise SystemExit(main(__file__, "kg.check", execute, violates=violates))
