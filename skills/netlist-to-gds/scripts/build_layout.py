"""Turn a netlist into a placed, routed, DRC- and LVS-checked layout."""

from __future__ import annotations

import sys
from typing import Any

try:
    from skillscript import ErrorCode, SkillError, main
except ModuleNotFoundError:  # the same lines in every script: a Python without the package answers an envelope, too
    HELP = "this Python lacks analog-layout-skills: in a clone run python3 -m venv .venv && .venv/bin/pip install -e . "
    HELP += "(elsewhere .venv/bin/pip install its wheel), then start the script with .venv/bin/python"
    ERROR = f'{{"code": "SERVICE_UNAVAILABLE", "message": "{HELP}", "details": {{"missing": "skillscript"}}}}'
    print(f'{{"ok": false, "error": {ERROR}, "data": null, "duration_ms": 0}}')
    raise SystemExit(3) from None


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return the report of the whole job; raise with the same report when the design is not clean."""
    from layoutkit.tools.whole_flow import build

    report, found = build(params, _print_progress)
    if found:
        code = ErrorCode.LAYOUT_CONFLICT if report["drc"]["passed"] else ErrorCode.DRC_VIOLATION
        raise SkillError(code, "; ".join(found), {"faults": found}, report)
    return report


def _print_progress(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    raise SystemExit(main(__file__, "flow.build_layout", execute))
