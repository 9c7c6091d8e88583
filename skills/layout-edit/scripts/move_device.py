# /// script
# requires-python = ">=3.10"
# dependencies = ["analog-layout-skills"]
# ///
"""Move a device, or the module that it is drawn in, within the current layout."""

from typing import Any

try:
    from skillscript import main
except ImportError as missing:
    raise SystemExit(f"{missing}: `pip install -e .` in a clone; `uv run {__file__!r}` in an exported copy") from None


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return where it lies now and which wires lost their end."""
    from layoutkit.tools.edit_layout import move_device

    return move_device(params)


if __name__ == "__main__":
    raise SystemExit(main(__file__, "layout.move_device", execute))
