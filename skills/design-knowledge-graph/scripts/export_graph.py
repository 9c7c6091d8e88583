"""Write a design graph to a file for other programs: JSON, networkx node-link JSON or GraphML."""

from skillscript import main


def execute(params: dict, context: dict) -> dict:
    """Return the file that was written and how much it holds."""
    from designgraph import open_graph
    from designgraph.exchange import as_text
    from designgraph.graph import Graph
    from designgraph.names import check_id
    from designgraph.text_file import write_text

    graph, graph_id = open_graph(), check_id(params["graphId"], "graphId")
    folded = graph.store.fold() if params["fold"] else False
    with graph.store.reading() as graphs:
        exported = graphs.get(graph_id, Graph())
        text = as_text(exported, graph_id, params["format"])
        size = {"nodes": len(exported.nodes), "relations": exported.relation_count}
        known = sorted(graphs)
    written = write_text(graph, params["output_path"], text)
    warnings = graph.store.take_notices()
    if graph_id not in known:
        warnings.append(f"graph '{graph_id}' does not exist; there are: {', '.join(known[:50]) or 'none'}")
    data = {
        "graphId": graph_id,
        "format": params["format"],
        "output_path": params["output_path"],
        "file_size_bytes": written,
        **size,
        "folded": folded,
    }
    return {**data, "warnings": warnings} if warnings else data


if __name__ == "__main__":
    raise SystemExit(main(__file__, "kg.export", execute))
