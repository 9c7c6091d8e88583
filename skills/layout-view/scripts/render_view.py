# /// script
# requires-python = ">=3.10"
# dependencies = ["analog-layout-skills"]
# ///
"""Draw a picture (PNG) of the current layout, with layer colours, labels, legend, scale and DRC markers."""

from typing import Any

try:
    from skillscript import main
except ImportError as missing:
    raise SystemExit(f"{missing}: `pip install -e .` in a clone; `uv run {__file__!r}` in an exported copy") from None


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return where the picture is and what it shows."""
    from layoutkit.tools.current_layout import CurrentLayout
    from layoutkit.tools.layout_outputs import draw_picture

    return draw_picture(params, CurrentLayout(params))


if __name__ == "__main__":
    raise SystemExit(main(__file__, "layout.render_view", execute))
