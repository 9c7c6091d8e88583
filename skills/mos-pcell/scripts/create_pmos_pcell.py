"""Draw one PMOS transistor, well and tap ring included, into the workspace's layout."""

from __future__ import annotations

from typing import Any

from skillscript import main


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return where the transistor lies, its pins and what was drawn."""
    from layoutkit.draw.requests import create_mos

    return create_mos("pmos", params)


if __name__ == "__main__":
    raise SystemExit(main(__file__, "layout.create_pmos_pcell", execute))
