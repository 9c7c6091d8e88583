# /// script
# requires-python = ">=3.10"
# dependencies = ["analog-layout-skills"]
# ///
"""Write a design graph to a file for other programs: JSON, networkx node-link JSON or GraphML."""

from typing import Any

try:
    from skillscript import main
except ImportError as missing:
    raise SystemExit(f"{missing}: `pip install -e .` in a clone; `uv run {__file__!r}` in an exported copy") from None


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return the file that was written and its size."""
    from designgraph import open_graph
    from designgraph.exchange import SUFFIXES, as_text, chosen_format, write_text
    from designgraph.graph import check_id

    graph, graph_id = open_graph(), check_id(params["graphId"], "graphId")
    form = chosen_format(params.get("format"), params["output_path"], SUFFIXES, "json")
    folded = graph.store.fold() if params["fold"] else False
    with graph.reading(graph_id) as exported:
        text = as_text(exported, graph_id, form)
        size = {"nodes": len(exported), "relations": exported.number_of_edges()}
    written = write_text(graph.store.path, params["output_path"], text)
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
