# /// script
# requires-python = ">=3.10"
# dependencies = ["analog-layout-skills"]
# ///
"""Import a netlist into a design graph, with constraints and the decisions and results of a layout flow."""

from typing import Any

try:
    from skillscript import main
except ImportError as missing:
    raise SystemExit(f"{missing}: `pip install -e .` in a clone; `uv run {__file__!r}` in an exported copy") from None


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return what was created and updated, and the ids that differ from the netlist's names."""
    from designgraph import open_graph
    from designgraph.bulk_import import Import, import_nodes
    from layoutkit.tools.circuit_nodes import design_nodes

    nodes, warnings = design_nodes(params)
    replace = params["mode"] == "replace"
    data = import_nodes(open_graph(), params["graphId"], Import(**nodes), prefix=params["prefix"], replace=replace)
    circuit, found = data.pop("root"), data.pop("warnings", ())
    return {**data, "circuit": circuit, "warnings": [*found, *warnings]}


if __name__ == "__main__":
    raise SystemExit(main(__file__, "kg.import_circuit", execute))
