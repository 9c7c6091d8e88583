# /// script
# requires-python = ">=3.10"
# dependencies = ["analog-layout-skills"]
# ///
"""Join points of the current layout by wires and vias, around everything that is already drawn."""

from typing import Any

try:
    from skillscript import main
except ImportError as missing:
    raise SystemExit(f"{missing}: `pip install -e .` in a clone; `uv run {__file__!r}` in an exported copy") from None


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return the route of every net, or why it has none; successful nets are drawn into the workspace's layout."""
    from layoutkit.tools.route_in_layout import route_in_layout

    return route_in_layout(params)


def violates(data: dict[str, Any]) -> bool:
    """Return whether a net failed or the drawn routes break a rule."""
    return data["routing_stats"]["failed_count"] > 0 or not data["drc"]["passed"]


if __name__ == "__main__":
    raise SystemExit(main(__file__, "layout.route_signal_nets_basic", execute, violates=violates))
