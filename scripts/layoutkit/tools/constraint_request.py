"""``plan.suggest_constraints``: constraints that follow from a circuit, and the check of a model's proposal."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from layoutkit.circuit import given_netlist, recognised
from layoutkit.circuit.circuit import stated_supplies
from layoutkit.circuit.constraint_faults import find_faults
from layoutkit.circuit.constraints import Constraints
from layoutkit.circuit.orientation import oriented
from layoutkit.circuit.readers.json_reader import circuit_from_json
from layoutkit.circuit.recognition_report import recognition_data
from layoutkit.circuit.suggested_constraints import suggest_constraints
from layoutkit.errors import LayoutkitError
from layoutkit.layout.workspace import Workspace
from layoutkit.tools.netlist_request import read_with_supplies, refuse_unknown_supplies

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layoutkit.circuit import Circuit
    from layoutkit.circuit.constraints import ConstraintFault


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
