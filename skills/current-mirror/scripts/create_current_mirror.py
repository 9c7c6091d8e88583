# /// script
# requires-python = ">=3.10"
# dependencies = ["analog-layout-skills"]
# ///
"""Draw a simple or cascode current mirror of matched units into the workspace's layout."""

from typing import Any

try:
    from skillscript import main
except ImportError as missing:
    raise SystemExit(f"{missing}: `pip install -e .` in a clone; `uv run {__file__!r}` in an exported copy") from None


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return the units, the ratios as drawn, the common nets and the pins."""
    from layoutkit.tools.transistor_requests import create_current_mirror

    return create_current_mirror(params)


if __name__ == "__main__":
    raise SystemExit(main(__file__, "layout.create_current_mirror", execute))
