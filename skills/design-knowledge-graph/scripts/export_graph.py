"""Write a design graph to a file for other programs: JSON, networkx node-link JSON or GraphML."""

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
    """Return the file that was written and its size."""
    from designgraph import open_graph
    from designgraph.exchange import SUFFIXES, as_text, chosen_format, write_text
    from designgraph.values import check_id

    graph, graph_id = open_graph(), check_id(params["graphId"], "graphId")
    form = chosen_format(params.get("format"), params["output_path"], SUFFIXES, "json")
    folded = graph.store.fold() if params["fold"] else False
    with graph.reading(graph_id) as exported:
        text = as_text(exported, graph_id, form)
        size = {"nodes": len(exported.nodes), "relations": exported.relation_count}
    written = write_text(graph, params["output_path"], text)
    warnings = graph.store.take_notices()
    data = {
        "graphId": graph_id,
        "format": form,
        "output_path": params["output_path"],
        "file_size_bytes": written,
        **size,
        "folded": folded,
    }
    return {**data, "warnings": warnings} if warnings else data


if __name__ == "__main__":
    raise SystemExit(main(__file__, "kg.export", execute))
