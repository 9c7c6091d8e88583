"""Import a netlist into a design graph, with constraints and the decisions and results of a layout flow."""

from __future__ import annotations

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
    """Return what was created and updated, and the ids that differ from the netlist's names."""
    from designgraph import open_graph
    from designgraph.bulk_import import Import, import_nodes
    from layoutkit.tools.circuit_nodes import design_nodes

    nodes, warnings = design_nodes(params)
    replace = params["mode"] == "replace"
    data = import_nodes(open_graph(), params["graphId"], Import.of(**nodes), prefix=params["prefix"], replace=replace)
    circuit, found = data.pop("root"), data.pop("warnings", ())
    return {**data, "circuit": circuit, "warnings": [*found, *warnings]}


if __name__ == "__main__":
    raise SystemExit(main(__file__, "kg.import_circuit", execute))
