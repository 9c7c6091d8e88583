# /// script
# requires-python = ">=3.10"
# dependencies = ["analog-layout-skills"]
# ///
"""List modules, devices, nets, pins, labels and wires of the current layout."""

from typing import Any

try:
    from skillscript import main
except ImportError as missing:
    raise SystemExit(f"{missing}: `pip install -e .` in a clone; `uv run {__file__!r}` in an exported copy") from None


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return what the layout holds, with places."""
    from layoutkit.tools.edit_layout import list_contents

    return list_contents(params)


if __name__ == "__main__":
    raise SystemExit(main(__file__, "layout.list_contents", execute))
