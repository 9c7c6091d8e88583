# /// script
# requires-python = ">=3.10"
# dependencies = ["analog-layout-skills[http]"]
# ///
"""Serve a page on this machine that follows the layout while it changes."""

from typing import Any

try:
    from skillscript import main
except ImportError as missing:
    raise SystemExit(f"{missing}: `pip install -e .` in a clone; `uv run {__file__!r}` in an exported copy") from None


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return the address of the page."""
    from layoutkit.tools.watched_layout import watch

    return watch(params)


if __name__ == "__main__":
    raise SystemExit(main(__file__, "layout.watch", execute))
