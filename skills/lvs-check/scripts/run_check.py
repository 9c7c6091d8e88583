# /// script
# requires-python = ">=3.10"
# dependencies = ["analog-layout-skills"]
# ///
"""Compare the current layout with the netlist it was made from."""

from typing import Any

try:
    from skillscript import main
except ImportError as missing:
    raise SystemExit(f"{missing}: `pip install -e .` in a clone; `uv run {__file__!r}` in an exported copy") from None


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return the verdict, the mismatches with their places, and what was compared."""
    from layoutkit.tools.current_layout import CurrentLayout
    from layoutkit.tools.layout_checks import NetlistComparison

    current = CurrentLayout(params)
    comparison = NetlistComparison(params, current)
    result = comparison.run()
    data = {**result.to_json(), "files": comparison.write(result), "layout_sha256": current.sha256}
    data["warnings"] = [*comparison.circuit.warnings, *data["warnings"], *current.warnings, *comparison.hints(result)]
    return data


if __name__ == "__main__":
    raise SystemExit(
        main(__file__, "lvs.run_check", execute, violates=lambda data: not (data["matched"] and data["complete"]))
    )
