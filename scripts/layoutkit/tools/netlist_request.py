"""``netlist.parse``: read a netlist into a circuit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from layoutkit.circuit import ModelNames, find_roles, given_netlist, narrow_warnings, read_netlist
from layoutkit.circuit.orientation import carries_both_ways
from layoutkit.layout.workspace import Workspace
from layoutkit.technology import load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layoutkit.circuit import Circuit


def parse(params: Mapping[str, Any]) -> Circuit:
    """Return the circuit of the netlist that ``params`` (of ``netlist.parse``) give.

    Raises:
        LayoutkitError: If the netlist cannot be read; the message lists every fault.
    """
    return read_netlist(
        given_netlist(params),
        netlist_format=params["format"],
        top=params.get("top") or None,
        identify_modules=params["identify_modules"],
        black_boxes=params.get("black_boxes", ()),
        keep_unknown=True,
        parameters=params.get("parameters"),
        names=ModelNames(load(params["technology"]) if "technology" in params else None, params.get("device_map")),
        keep_parasitics=params.get("keep_parasitics", False),
    )


def parse_info(circuit: Circuit) -> dict[str, Any]:
    """Return the counts, supplies and warnings of ``circuit`` as JSON data."""
    supplies = find_roles(circuit).supplies
    return {
        "device_count": len(circuit.devices),
        "net_count": len(circuit.nets),
        "module_count": len(circuit.modules),
        "power_nets": list(supplies.power),
        "ground_nets": list(supplies.ground),
        "supply_reasons": dict(supplies.reasons),
        "drain_source_exchanged": [device.id for device in circuit.devices if device.exchanged],
        "carry_both_ways": sorted(carries_both_ways(circuit)),
        "warnings": [*circuit.warnings, *narrow_warnings(circuit)],
    }


def save_circuit(folder: str, circuit: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Save a circuit's JSON data in the workspace ``folder``; return its path and warnings about outdated reports."""
    workspace = Workspace(folder)
    with workspace.lock():
        warnings = workspace.save_circuit(circuit)
    return str(workspace.circuit_path), warnings
