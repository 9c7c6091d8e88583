# /// script
# requires-python = ">=3.10"
# dependencies = ["analog-layout-skills"]
# ///
"""Draw one NMOS transistor, tap ring included, into the workspace's layout."""

from typing import Any

try:
    from skillscript import main
except ImportError as missing:
    raise SystemExit(f"{missing}: `pip install -e .` in a clone; `uv run {__file__!r}` in an exported copy") from None


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return where the transistor lies, its pins and what was drawn."""
    from layoutkit.tools.transistor_requests import create_mos

    return create_mos("nmos", params)


if __name__ == "__main__":
    raise SystemExit(main(__file__, "layout.create_nmos_pcell", execute))
