# /// script
# requires-python = ">=3.10"
# dependencies = ["analog-layout-skills"]
# ///
"""Delete the wires of nets from the current layout."""

from typing import Any

try:
    from skillscript import main
except ImportError as missing:
    raise SystemExit(f"{missing}: `pip install -e .` in a clone; `uv run {__file__!r}` in an exported copy") from None


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return how many shapes were deleted."""
    from layoutkit.tools.edit_layout import unroute_net

    return unroute_net(params)


if __name__ == "__main__":
    raise SystemExit(main(__file__, "layout.unroute_net", execute))
