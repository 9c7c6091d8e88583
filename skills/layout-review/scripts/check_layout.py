# /// script
# requires-python = ">=3.10"
# dependencies = ["analog-layout-skills"]
# ///
"""Say what a layout engineer would say of the current layout at the design review."""

from typing import Any

try:
    from skillscript import main
except ImportError as missing:
    raise SystemExit(f"{missing}: `pip install -e .` in a clone; `uv run {__file__!r}` in an exported copy") from None


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return the verdict, the findings with their places, and what could not be judged."""
    from layoutkit.tools.current_layout import CurrentLayout
    from layoutkit.tools.layout_checks import LayoutReview

    current = CurrentLayout(params)
    request = LayoutReview(params, current)
    review = request.run()
    files = request.write(review)
    warnings = [*request.comparison.circuit.warnings, *current.warnings]
    return {**review.to_json(), "files": files, "layout_sha256": current.sha256, "warnings": warnings}


if __name__ == "__main__":
    raise SystemExit(main(__file__, "review.check_layout", execute, violates=lambda data: not data["would_sign"]))
