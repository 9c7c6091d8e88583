# /// script
# requires-python = ">=3.10"
# dependencies = ["analog-layout-skills"]
# ///
"""Check a technology file and report everything that is wrong with it."""

from typing import Any

try:
    from skillscript import main
except ImportError as missing:
    raise SystemExit(f"{missing}: `pip install -e .` in a clone; `uv run {__file__!r}` in an exported copy") from None


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return the verdict on one technology file, with all its faults."""
    from layoutkit.tools.technology_file import validate

    return validate(params["technology"]).to_data()


if __name__ == "__main__":
    raise SystemExit(main(__file__, "technology.validate", execute, violates=lambda data: not data["valid"]))
