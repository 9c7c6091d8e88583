# /// script
# requires-python = ">=3.10"
# dependencies = ["analog-layout-skills"]
# ///
"""Draw a device again at its place, with other sizes."""

from typing import Any

try:
    from skillscript import main
except ImportError as missing:
    raise SystemExit(f"{missing}: `pip install -e .` in a clone; `uv run {__file__!r}` in an exported copy") from None


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return where the device lies, its sizes and the check."""
    from layoutkit.tools.edit_layout import redraw

    return redraw(params)


if __name__ == "__main__":
    raise SystemExit(main(__file__, "layout.redraw_device", execute))
