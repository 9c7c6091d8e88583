# /// script
# requires-python = ">=3.10"
# dependencies = ["analog-layout-skills"]
# ///
"""Read a netlist (JSON, SPICE, CDL or Spectre) into a circuit with its matched modules."""

from typing import Any

try:
    from skillscript import main
except ImportError as missing:
    raise SystemExit(f"{missing}: `pip install -e .` in a clone; `uv run {__file__!r}` in an exported copy") from None


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return the circuit, what was counted in it, and where it was written."""
    from layoutkit.tools.netlist_request import parse, parse_info, refuse_unknown_sizes, save_circuit

    circuit = parse(params)
    data: dict[str, Any] = {"circuit": circuit.to_json(), "parse_info": parse_info(circuit)}
    if params.get("workspace"):
        refuse_unknown_sizes(circuit)
        data["circuit_path"], outdated = save_circuit(params["workspace"], data["circuit"])
        data["parse_info"]["warnings"] += outdated
    return data


if __name__ == "__main__":
    raise SystemExit(main(__file__, "netlist.parse", execute))
