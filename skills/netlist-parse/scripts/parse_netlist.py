"""Read a netlist (JSON, SPICE, CDL or Spectre) into a circuit with its matched modules."""

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
    """Return the circuit, what was counted in it, and where it was written."""
    from layoutkit.tools.netlist_request import parse, parse_info, save_circuit

    circuit = parse(params)
    data: dict[str, Any] = {"circuit": circuit.to_json(), "parse_info": parse_info(circuit)}
    if params.get("workspace"):
        data["circuit_path"], outdated = save_circuit(params["workspace"], data["circuit"])
        data["parse_info"]["warnings"] += outdated
    return data


if __name__ == "__main__":
    raise SystemExit(main(__file__, "netlist.parse", execute))
