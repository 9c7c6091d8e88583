# /// script
# requires-python = ">=3.10"
# dependencies = ["analog-layout-skills"]
# ///
"""Compare two layouts, or two builds, in words and as one picture."""

from typing import Any

try:
    from skillscript import main
except ImportError as missing:
    raise SystemExit(f"{missing}: `pip install -e .` in a clone; `uv run {__file__!r}` in an exported copy") from None


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return what differs between the layouts, and where the picture of both is."""
    from layoutkit.tools.layout_outputs import compare_two

    return compare_two(params)


if __name__ == "__main__":
    raise SystemExit(main(__file__, "layout.compare_layouts", execute))
