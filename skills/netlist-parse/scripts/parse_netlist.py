"""Read a netlist (JSON, SPICE, CDL or Spectre) into a circuit with its matched modules."""

from skillscript import main


def execute(params: dict, context: dict) -> dict:
    """Return the circuit, what was counted in it, and where it was written."""
    from layoutkit.circuit import find_supplies, narrow_warnings, read_netlist

    circuit = read_netlist(
        params["netlist_path"],
        netlist_format=params["format"],
        top=params.get("top") or None,
        identify_modules=params["identify_modules"],
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
        from layoutkit.workspace import Workspace

        data["circuit_path"] = str(Workspace(params["workspace"]).write_json("circuit.json", data["circuit"]))
    return data


if __name__ == "__main__":
    raise SystemExit(main(__file__, "netlist.parse", execute))
