"""``netlist.parse``: read a netlist into a circuit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from layoutkit.circuit import ModelNames, find_roles, given_netlist, narrow_warnings, read_netlist
from layoutkit.circuit.circuit import stated_supplies
from layoutkit.circuit.constraints import ConstraintFault, raise_faults
from layoutkit.circuit.recognition_report import recognition_data
from layoutkit.circuit.supplies import supply_faults
from layoutkit.errors import NetlistError, listed
from layoutkit.layout.workspace import Workspace
from layoutkit.technology import load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layoutkit.circuit import Circuit
    from layoutkit.circuit.circuit import StatedSupplies
    from layoutkit.circuit.readers.source import NetlistText


def parse(params: Mapping[str, Any]) -> Circuit:
    """Return the circuit of the netlist that ``params`` (of ``netlist.parse``) give.

    Raises:
        LayoutkitError: If the netlist cannot be read; the message lists every fault.
    """
    return read_with_supplies(
        params,
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


def read_with_supplies(params: Mapping[str, Any], source: str | NetlistText, **options: Any) -> Circuit:
    """Return the circuit of a netlist, with the supplies that ``supply_nets`` of ``params`` states.

    Args:
        params: Of a tool that takes ``supply_nets``.
        source: The netlist.
        options: Of ``read_netlist``.

    Raises:
        LayoutkitError: If the netlist cannot be read, or lacks a stated net; the message lists every fault.
    """
    stated = stated_supplies(params["supply_nets"]) if "supply_nets" in params else None
    circuit = read_netlist(source, supplies=stated, **options)
    refuse_unknown_supplies(circuit, stated)
    return circuit


def refuse_unknown_supplies(circuit: Circuit, stated: StatedSupplies | None) -> None:
    """Refuse stated supplies that do not fit the circuit.

    Raises:
        LayoutkitError: If any net is unknown, listed twice, or power and ground at once; the details list every fault.
    """
    faults = (
        [ConstraintFault(f"supply_nets.{kind}", text, net) for kind, text, net in supply_faults(circuit, stated)]
        if stated
        else []
    )
    raise_faults(faults, f"the supplies do not fit circuit {circuit.name}", "supply_nets")


def parse_info(circuit: Circuit) -> dict[str, Any]:
    """Return the counts, supplies and warnings of ``circuit`` as JSON data."""
    supplies, found = find_roles(circuit).supplies, recognition_data(circuit)
    apart = ("supplies", "groups")
    return {
        "device_count": len(circuit.devices),
        "net_count": len(circuit.nets),
        "module_count": len(circuit.modules),
        "power_nets": list(supplies.power),
        "ground_nets": list(supplies.ground),
        "supply_reasons": dict(supplies.reasons),
        **{name: told for name, told in found.items() if name not in apart},
        "warnings": [*circuit.warnings, *narrow_warnings(circuit)],
    }


def refuse_unknown_sizes(circuit: Circuit) -> None:
    """Refuse a circuit that is to be stored although the netlist leaves sizes open: a file could not tell them.

    Raises:
        NetlistError: If any device has such a size; the message names devices.
    """
    if names := [device.id for device in circuit.devices if device.unknown]:
        raise NetlistError(
            f"the sizes of {listed(names)} depend on undefined parameters, so the circuit is not stored in a "
            "workspace; give the parameters values with 'parameters', or leave the workspace out",
            details={"param_name": "workspace", "devices": names[:100]},
        )


def save_circuit(folder: str, circuit: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Save a circuit's JSON data in the workspace ``folder``; return its path and warnings about outdated reports."""
    workspace = Workspace(folder)
    with workspace.lock():
        warnings = workspace.save_circuit(circuit)
    return str(workspace.circuit_path), warnings
