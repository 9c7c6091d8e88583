# /// script
# requires-python = ">=3.10"
# dependencies = ["analog-layout-skills"]
# ///
"""Check the current layout against design rules: the technology's own, a JSON or YAML rule file, or a foundry deck."""

from typing import Any

try:
    from skillscript import main
except ImportError as missing:
    raise SystemExit(f"{missing}: `pip install -e .` in a clone; `uv run {__file__!r}` in an exported copy") from None


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return the verdict, the violations with their locations, and what could not be checked."""
    from layoutkit.tools.current_layout import CurrentLayout
    from layoutkit.tools.layout_checks import DesignRuleCheck

    current = CurrentLayout(params)
    check = DesignRuleCheck(params, current)
    report = check.run()
    verdict = report.to_data(list_passed_rules=params["list_passed_rules"])
    data = {**verdict, **check.write(report), "layout_sha256": current.sha256}
    data["notes"] = [*data["notes"], *current.warnings]
    return data


if __name__ == "__main__":
    raise SystemExit(main(__file__, "drc.run_check", execute, violates=lambda data: not data["passed"]))
