"""Draw a poly resistor, or several that match, into the workspace's layout."""

from __future__ import annotations

from typing import Any

from skillscript import main


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return where it lies, its pins and what was drawn."""
    from layoutkit.draw.passive_requests import create_resistor

    return create_resistor(params)


if __name__ == "__main__":
    raise SystemExit(main(__file__, "layout.create_resistor", execute))
