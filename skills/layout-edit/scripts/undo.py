# /// script
# requires-python = ">=3.10"
# dependencies = ["analog-layout-skills"]
# ///
"""Undo the last operations on the workspace."""

from typing import Any

try:
    from skillscript import main
except ImportError as missing:
    raise SystemExit(f"{missing}: `pip install -e .` in a clone; `uv run {__file__!r}` in an exported copy") from None


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return what was undone and what else can be."""
    from layoutkit.tools.edit_layout import undo

    return undo(params)


if __name__ == "__main__":
    raise SystemExit(main(__file__, "layout.undo", execute))
