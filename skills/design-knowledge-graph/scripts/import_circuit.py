"""Bring a netlist into a design graph: devices, nets, blocks, constraints, and what a layout flow decided and found."""

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

CONSTRAINTS_FILE = "constraints.json"
REPORT_FILE = "summary.json"


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return what was created and updated, and which ids differ from the netlist's names."""
    from designgraph import open_graph
    from designgraph.circuit_import import CircuitSource, import_circuit
    from layoutkit.circuit import find_supplies, read_netlist

    path = netlist_path(params)
    circuit = read_netlist(
        path,
        top=params.get("top"),
        black_boxes=params.get("black_boxes", ()),
        parameters=params.get("parameters"),
    )
    supplies = find_supplies(circuit)
    constraints = params.get("constraints")
    report, doubts = flow_report(params)
    source = CircuitSource(
        circuit=circuit.to_json(),
        path=path,
        power=tuple(supplies.power),
        ground=tuple(supplies.ground),
        constraints=read_json(params, CONSTRAINTS_FILE) if constraints is None else constraints,
        report=report,
    )
    data = import_circuit(
        open_graph(), params["graphId"], source, prefix=params["prefix"], replace=params["mode"] == "replace"
    )
    warnings = [*data.pop("warnings", ()), *circuit.warnings, *doubts]
    if not circuit.devices:
        warnings.append(f"{path} has no devices")
    return {**data, "warnings": warnings}


def netlist_path(params: dict[str, Any]) -> str:
    """Return the netlist that was named, else the circuit in the workspace."""
    from pathlib import Path

    if "netlist_path" in params:
        return str(params["netlist_path"])
    if "workspace" not in params:
        text = "give netlist_path, or a workspace in which a netlist was parsed or laid out"
        raise SkillError(ErrorCode.INVALID_PARAM, text, {"param_name": "netlist_path"})
    return str(Path(params["workspace"], "circuit.json"))


def flow_report(params: dict[str, Any]) -> tuple[Any, list[str]]:
    """Return the report in the workspace and warnings about it; a report on another layout is left out."""
    from layoutkit.layout.reports import changed_since
    from layoutkit.layout.workspace import Workspace

    if "workspace" not in params:
        return None, []
    workspace = Workspace(params["workspace"])
    reasons = changed_since(workspace, REPORT_FILE)
    if reasons:
        text = f"{workspace.path(REPORT_FILE)} is out of date: it was made from another {' and '.join(reasons)}"
        return None, [f"{text}; its verdicts are left out"]
    report = read_json(params, REPORT_FILE)
    if report is not None and reasons is None:
        return report, [f"{workspace.path(REPORT_FILE)} does not say which layout it was made from"]
    return report, []


def read_json(params: dict[str, Any], name: str) -> Any:
    """Return a JSON file of the workspace, ``None`` without a workspace or without the file."""
    from pathlib import Path

    from layoutkit.layout.files import read_bytes
    from skillscript import parse_json

    if "workspace" not in params:
        return None
    path = Path(params["workspace"], name)
    if not path.exists():
        return None
    try:
        return parse_json(read_bytes(path))
    except ValueError as error:
        raise SkillError(ErrorCode.INVALID_PARAM, f"{path} {error}", {"param_name": "workspace"}) from error


if __name__ == "__main__":
    raise SystemExit(main(__file__, "kg.import_circuit", execute))
