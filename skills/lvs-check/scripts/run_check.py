"""Compare the current layout with the netlist it was made from."""

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
    """Return the verdict, the mismatches with their places, and what was compared."""
    from layoutkit.tools.current_layout import CurrentLayout
    from layoutkit.tools.netlist_comparison import NetlistComparison

    current = CurrentLayout(params)
    comparison = NetlistComparison(params, current)
    result = comparison.run()
    data = {**result.to_json(), "files": comparison.write(result), "layout_sha256": current.sha256}
    data["warnings"] = [*comparison.circuit.warnings, *data["warnings"], *current.warnings]
    return data


if __name__ == "__main__":
    raise SystemExit(
        main(__file__, "lvs.run_check", execute, violates=lambda data: not (data["matched"] and data["complete"]))
    )
