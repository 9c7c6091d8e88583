# /// script
# requires-python = ">=3.10"
# dependencies = ["analog-layout-skills"]
# ///
"""Draw the modules of a netlist and place them, ready to be routed."""

from typing import Any

try:
    from skillscript import main
except ImportError as missing:
    raise SystemExit(f"{missing}: `pip install -e .` in a clone; `uv run {__file__!r}` in an exported copy") from None


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return the modules, where they lie, and the request for the router."""
    from layoutkit.tools.whole_flow import place_circuit

    return place_circuit(params)


if __name__ == "__main__":
    raise SystemExit(main(__file__, "layout.place_modules", execute))
