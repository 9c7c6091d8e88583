"""Check the current layout against design rules: the technology's own, a JSON or YAML rule file, or a foundry deck."""

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
    """Return the verdict, the violations with their locations, and what could not be checked."""
    from layoutkit.tools.current_layout import CurrentLayout
    from layoutkit.tools.design_rule_check import DesignRuleCheck

    current = CurrentLayout(params)
    check = DesignRuleCheck(params, current)
    report = check.run()
    data = {**report.to_data(), **check.write(report), "layout_sha256": current.sha256}
    data["notes"] = [*data["notes"], *current.warnings]
    return data


if __name__ == "__main__":
    raise SystemExit(main(__file__, "drc.run_check", execute, violates=lambda data: not data["passed"]))
