# /// script
# requires-python = ">=3.10"
# dependencies = ["analog-layout-skills"]
# ///
"""Draw a design graph as Mermaid text, as an SVG picture or as an HTML page to explore it in."""

from typing import Any

try:
    from skillscript import main
except ImportError as missing:
    raise SystemExit(f"{missing}: `pip install -e .` in a clone; `uv run {__file__!r}` in an exported copy") from None


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return the file or the text of the picture, and the size of the part that it shows."""
    from designgraph import open_graph
    from designgraph.exchange import chosen_format, write_text
    from designgraph.pictures import SUFFIXES, picture
    from designgraph.pictures.excerpt import GraphSelection

    graph, path = open_graph(), params.get("output_path")
    form = chosen_format(params.get("format"), path, SUFFIXES, "mermaid")
    types = params.get("types")
    selection = GraphSelection(
        focus=params.get("nodeId", ""),
        depth=params["depth"],
        types=None if types is None else frozenset(types),
        max_nodes=params.get("maxNodes", 0),
    )
    text, shown = picture(graph, params["graphId"], form, selection)
    data = {
        "graphId": params["graphId"],
        "format": form,
        "nodes": len(shown.nodes),
        "relations": len(shown.relations),
        "leftOut": shown.left_out,
    }
    if path is None and form != "mermaid":
        path = str(graph.store.path.parent / f"{params['graphId']}.{form}")
    if path is None:
        data["text"] = text
    else:
        data.update(output_path=path, file_size_bytes=write_text(graph.store.path, path, text))
    warnings = graph.store.take_notices()
    return {**data, "warnings": warnings} if warnings else data


if __name__ == "__main__":
    raise SystemExit(main(__file__, "kg.render", execute))
