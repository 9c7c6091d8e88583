# /// script
# requires-python = ">=3.10"
# dependencies = ["analog-layout-skills"]
# ///
"""Draw vertical bipolar transistors into the workspace's layout."""

from typing import Any

try:
    from skillscript import main
except ImportError as missing:
    raise SystemExit(f"{missing}: `pip install -e .` in a clone; `uv run {__file__!r}` in an exported copy") from None


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return where it lies, its pins and what was drawn."""
    from layoutkit.tools.passive_requests import create_bipolar_array

    return create_bipolar_array(params)


if __name__ == "__main__":
    raise SystemExit(main(__file__, "layout.create_bipolar_array", execute))
