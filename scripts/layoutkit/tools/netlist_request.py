"""The tools that read a circuit.

``netlist.parse``: read a netlist into a circuit.

``plan.suggest_constraints``: constraints that follow from a circuit, and the check of a model's proposal.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from layoutkit.circuit import Circuit, ModelNames, find_roles, given_netlist, narrow_warnings, read_netlist, recognised
from layoutkit.circuit.circuit import StatedSupplies, stated_supplies
from layoutkit.circuit.constraint_faults import find_faults
from layoutkit.circuit.constraints import ConstraintFault, Constraints, raise_faults
from layoutkit.circuit.orientation import oriented
from layoutkit.circuit.readers.json_reader import circuit_from_json
from layoutkit.circuit.suggested_constraints import recognition_data, suggest_constraints
from layoutkit.circuit.supplies import supply_faults
from layoutkit.errors import LayoutkitError, NetlistError, listed
from layoutkit.layout.workspace import Workspace
from layoutkit.technology import load

if TYPE_CHECKING:
    from collections.abc import Mapping

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


def read_circuit(params: Mapping[str, Any]) -> Circuit:
    """Return the circuit with its modules, from the netlist or from what ``netlist.parse`` answered.

    Raises:
        LayoutkitError: If ``params`` do not give exactly one netlist or circuit, or the circuit cannot be read.
    """
    if "circuit" not in params:
        return read_with_supplies(
            params,
            given_netlist(params),
            top=params.get("top"),
            black_boxes=params.get("black_boxes", ()),
            parameters=params.get("parameters"),
            keep_unknown=True,
        )
    if "top" in params:
        raise LayoutkitError("top chooses in a netlist; a circuit is flat already", details={"param_name": "top"})
    if "parameters" in params:
        text = "parameters need a netlist: the sizes of a circuit given as circuit are numbers, without parameters"
        raise LayoutkitError(text, details={"param_name": "parameters"})
    circuit = circuit_from_json(params["circuit"], black_boxes=params.get("black_boxes", ()), keep_unknown=True)
    if "supply_nets" in params:
        circuit = replace(circuit, supplies=stated_supplies(params["supply_nets"]))
        refuse_unknown_supplies(circuit, circuit.supplies)
    return recognised(oriented(circuit))


def recognition(circuit: Circuit) -> dict[str, Any]:
    """Return what was understood of ``circuit`` as JSON data."""
    return recognition_data(circuit)


def suggested_by_recognition(circuit: Circuit) -> dict[str, Any]:
    """Return the constraints that follow from the modules of ``circuit`` as JSON data."""
    found = suggest_constraints(circuit)
    return replace(found, supplies=(circuit.supplies,) if circuit.supplies else ()).to_json()


def proposal_faults(proposal: Any, circuit: Circuit) -> list[ConstraintFault]:
    """Return what is wrong with proposed constraints, given as JSON data, for ``circuit``."""
    return find_faults(Constraints.from_json(proposal), circuit)


def save_constraints(folder: str, constraints: Mapping[str, Any]) -> str:
    """Save constraints in the workspace ``folder``; return the path of their file."""
    return str(Workspace(folder).write_json("constraints.json", constraints))
