# /// script
# requires-python = ">=3.10"
# dependencies = ["analog-layout-skills"]
# ///
"""Delete a relation from a design graph."""

from typing import Any

try:
    from skillscript import main
except ImportError as missing:
    raise SystemExit(f"{missing}: `pip install -e .` in a clone; `uv run {__file__!r}` in an exported copy") from None


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return the data of the operation; a change is on disk when this returns."""
    from designgraph.operations import perform

    return perform("kg.delete_relation", params)


if __name__ == "__main__":
    raise SystemExit(main(__file__, "kg.delete_relation", execute))
