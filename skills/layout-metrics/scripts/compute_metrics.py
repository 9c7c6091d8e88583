# /// script
# requires-python = ">=3.10"
# dependencies = ["analog-layout-skills"]
# ///
"""Measure the current layout: areas, utilization, aspect ratio, and how well device pairs match."""

from typing import Any

try:
    from skillscript import ErrorCode, SkillError, main
except ImportError as missing:
    raise SystemExit(f"{missing}: `pip install -e .` in a clone; `uv run {__file__!r}` in an exported copy") from None


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return the metrics of one cell."""
    from layoutkit.tools.current_layout import CurrentLayout
    from layoutkit.tools.layout_outputs import measure

    current = CurrentLayout(params)
    metrics, notes = measure(params, current)
    data = {**metrics, "layout_sha256": current.sha256, "warnings": [*current.warnings, *notes]}
    weak = [entry["text"] for entry in data.get("currents", ()) if entry["verdict"] == "failed"]
    if weak:
        raise SkillError(ErrorCode.LAYOUT_CONFLICT, "; ".join(weak), {"faults": weak}, data)
    return data


if __name__ == "__main__":
    raise SystemExit(main(__file__, "eval.compute_metrics", execute))
