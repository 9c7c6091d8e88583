"""Draw the modules of a netlist and place them in rows about one axis, ready to be routed."""

from __future__ import annotations

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
    """Return the modules, where they lie, and what the router is to be asked next."""
    from layoutkit.flow.design import LayoutRequest
    from layoutkit.tools.place_circuit import PlaceRequest, place_circuit

    priorities = _priorities(params["net_priorities"])
    return place_circuit(PlaceRequest(LayoutRequest.of(params), params.get("row_gap"), priorities))


def _priorities(entries: list[dict[str, Any]]) -> dict[str, int]:
    nets = [entry["net"] for entry in entries]
    twice = sorted({net for net in nets if nets.count(net) > 1})
    if twice:
        text = f"net_priorities names nets more than once: {', '.join(twice)}"
        raise SkillError(ErrorCode.INVALID_PARAM, text, {"param_name": "net_priorities", "provided_value": twice})
    return {entry["net"]: entry["priority"] for entry in entries}


if __name__ == "__main__":
    raise SystemExit(main(__file__, "layout.place_modules", execute))
