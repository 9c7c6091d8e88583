"""Measure the current layout: areas, utilization, aspect ratio, and how well device pairs match."""

from typing import Any

try:
    from skillscript import main
except ModuleNotFoundError:  # the same lines in every script: a Python without the package answers an envelope, too
    HELP = "this Python lacks analog-layout-skills: in a clone run python3 -m venv .venv && .venv/bin/pip install -e . "
    HELP += "(elsewhere .venv/bin/pip install its wheel), then start the script with .venv/bin/python"
    ERROR = f'{{"code": "SERVICE_UNAVAILABLE", "message": "{HELP}", "details": {{"missing": "skillscript"}}}}'
    print(f'{{"ok": false, "error": {ERROR}, "data": null, "duration_ms": 0}}')
    raise SystemExit(3) from None


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return the metrics of one cell."""
    from layoutkit.tools.current_layout import CurrentLayout
    from layoutkit.tools.layout_outputs import measure

    current = CurrentLayout(params)
    metrics = measure(params, current)
    return {**metrics.to_json(), "layout_sha256": current.sha256, "warnings": current.warnings}


if __name__ == "__main__":
    raise SystemExit(main(__file__, "eval.compute_metrics", execute))
