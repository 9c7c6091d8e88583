"""Read a netlist (JSON, SPICE, CDL or Spectre) into a circuit with its matched modules."""

try:
    from skillscript import main
except ModuleNotFoundError:  # the same lines in every script: a Python without the package answers an envelope, too
    HELP = "this Python lacks analog-layout-skills: in a clone run python3 -m venv .venv && .venv/bin/pip install -e . "
    HELP += "(elsewhere .venv/bin/pip install its wheel), then start the script with .venv/bin/python"
    ERROR = f'{{"code": "SERVICE_UNAVAILABLE", "message": "{HELP}", "details": {{"missing": "skillscript"}}}}'
    print(f'{{"ok": false, "error": {ERROR}, "data": null, "duration_ms": 0}}')
    raise SystemExit(3) from None


def execute(params: dict, context: dict) -> dict:
    """Return the circuit, what was counted in it, and where it was written."""
    from layoutkit.circuit import find_supplies, narrow_warnings, read_netlist

    circuit = read_netlist(
        params["netlist_path"],
        netlist_format=params["format"],
        top=params.get("top") or None,
        identify_modules=params["identify_modules"],
        black_boxes=params.get("black_boxes", ()),
        parameters=params.get("parameters"),
    )
    supplies = find_supplies(circuit)
    data = {
        "circuit": circuit.to_json(),
        "parse_info": {
            "device_count": len(circuit.devices),
            "net_count": len(circuit.nets),
            "module_count": len(circuit.modules),
            "power_nets": list(supplies.power),
            "ground_nets": list(supplies.ground),
            "warnings": [*circuit.warnings, *narrow_warnings(circuit)],
        },
    }
    if params.get("workspace"):
        from layoutkit.layout.workspace import Workspace

        workspace = Workspace(params["workspace"])
        with workspace.lock():
            data["parse_info"]["warnings"] += workspace.save_circuit(data["circuit"])
        data["circuit_path"] = str(workspace.circuit_path)
    return data


if __name__ == "__main__":
    raise SystemExit(main(__file__, "netlist.parse", execute))
