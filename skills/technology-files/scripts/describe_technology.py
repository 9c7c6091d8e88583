# /// script
# requires-python = ">=3.10"
# dependencies = ["analog-layout-skills"]
# ///
"""Describe a technology: layers, wiring, devices with their limits, and how many rules."""

from typing import Any

try:
    from skillscript import main
except ImportError as missing:
    raise SystemExit(f"{missing}: `pip install -e .` in a clone; `uv run {__file__!r}` in an exported copy") from None


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return a technology in numbers a person reads."""
    from layoutkit.tools.technology_file import describe

    return describe(params["technology"])


if __name__ == "__main__":
    raise SystemExit(main(__file__, "technology.describe", execute))
