# /// script
# requires-python = ">=3.10"
# dependencies = ["analog-layout-skills"]
# ///
"""Turn a netlist into a placed, routed, DRC- and LVS-checked layout."""

import sys
from typing import Any

try:
    from skillscript import ErrorCode, SkillError, main
except ImportError as missing:
    raise SystemExit(f"{missing}: `pip install -e .` in a clone; `uv run {__file__!r}` in an exported copy") from None


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return the report of the whole job; raise with the same report when the design is not clean."""
    from layoutkit.tools.whole_flow import build

    report, found = build(params, _print_progress)
    if found:
        judged = report.get("drc", {"passed": True})  # a build that stops early has no verdict
        code = ErrorCode.LAYOUT_CONFLICT if judged["passed"] else ErrorCode.DRC_VIOLATION
        raise SkillError(code, "; ".join(found), {"faults": found}, report)
    return report


def _print_progress(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    raise SystemExit(main(__file__, "flow.build_layout", execute))
