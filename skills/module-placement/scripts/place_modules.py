"""Draw the modules of a netlist and place them in rows about one axis, ready to be routed."""

from __future__ import annotations

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
    """Return the modules, where they lie, and the request for the router."""
    from layoutkit.tools.place_circuit import place_circuit

    return place_circuit(params)


if __name__ == "__main__":
    raise SystemExit(main(__file__, "layout.place_modules", execute))
