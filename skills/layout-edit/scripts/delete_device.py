# /// script
# requires-python = ">=3.10"
# dependencies = ["analog-layout-skills"]
# ///
"""Delete a device from the current layout, with its own labels and stubs."""

from typing import Any

try:
    from skillscript import main
except ImportError as missing:
    raise SystemExit(f"{missing}: `pip install -e .` in a clone; `uv run {__file__!r}` in an exported copy") from None


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return what was deleted and which wires lost their end."""
    from layoutkit.tools.edit_layout import delete_device

    return delete_device(params)


if __name__ == "__main__":
    raise SystemExit(main(__file__, "layout.delete_device", execute))
