"""Check the graph of a design for consistency (S2.6). A finding has a message, the nodes concerned and a suggestion."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from designgraph.consistency.consistency_rules import MAX_LISTED, Breach, Breaches, rules_for
from designgraph.consistency.rule_kinds import KINDS, CheckedGraph
from designgraph.graph_errors import GraphFileError
from designgraph.values import check_id

if TYPE_CHECKING:
    from designgraph.service import KnowledgeGraph


def check_graph(knowledge: KnowledgeGraph, graph_id: str, limit: int = MAX_LISTED) -> dict[str, Any]:
    """Return the verdict on one graph: ``passed`` if it has nodes and no finding has the severity error.

    If an edit has made the file unusable, the faults of the file are the findings.

    Args:
        knowledge: The graphs.
        graph_id: The graph.
        limit: Maximum number of findings in the list; ``total`` and ``counts`` include all.

    Raises:
        GraphError: If there is no such graph, or the id, the file or the project's rules cannot be used.
    """
    check_id(graph_id, "graphId")
    rules = rules_for(str(knowledge.store.path.parent), graph_id)
    types = knowledge.types(graph_id)
    findings = Breaches()
    size = {"nodes": 0, "relations": 0}
    try:
        with knowledge.reading(graph_id) as graph:
            size = {"nodes": len(graph), "relations": graph.number_of_edges()}
            subject = CheckedGraph(graph, types)
            for rule in rules:
                KINDS[rule["kind"]](subject, rule, findings)
    except GraphFileError as error:
        if not (error.details or {}).get("faults"):
            raise
        findings.found = _file_findings(error)
        rules = []
    found = sorted(findings.found, key=lambda item: (item.severity != "error", item.rule, item.ids, item.message))
    warnings = knowledge.store.take_notices()
    nothing_checked = not size["nodes"] and not found
    if nothing_checked:
        warnings.append(f"graph '{graph_id}' has no nodes, so nothing was checked")
    counts = Counter(item.rule for item in found)
    return {
        "graphId": graph_id,
        "passed": not nothing_checked and not any(item.severity == "error" for item in found),
        **size,
        "total": len(found),
        "counts": dict(sorted(counts.items())),
        "findings": [item.to_json() for item in found[:limit]],
        "unchecked": [item.to_json() for item in findings.unchecked[:limit]],
        "uncheckedTotal": len(findings.unchecked),
        "rulesChecked": [rule["id"] for rule in rules],
        **({"warnings": warnings} if warnings else {}),
    }


def _file_findings(error: GraphFileError) -> list[Breach]:
    """Return the faults of a graph file as findings."""
    faults = (error.details or {})["faults"]
    return [
        Breach(
            fault["kind"],
            "error",
            f"{fault['path']}: {fault['message']}",
            tuple(fault["ids"]),
            "Create the missing node or delete the relation in the file; it was edited outside the graph's tools."
            if fault["kind"] == "dangling_relation"
            else "Correct the file, which was edited outside the graph's tools, or restore it.",
        )
        for fault in faults
        if isinstance(fault, dict)
    ]
