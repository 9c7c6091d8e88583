"""Draw a plate (MIM) capacitor into the workspace's layout."""

from __future__ import annotations

from typing import Any

from skillscript import main


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return where it lies, its pins and what was drawn."""
    from layoutkit.draw.passive_requests import create_capacitor

    return create_capacitor(params)


if __name__ == "__main__":
    raise SystemExit(main(__file__, "layout.create_capacitor", execute))
