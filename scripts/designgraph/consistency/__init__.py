"""Check the graph of a design for consistency (S2.6), by rules, with one function for each kind of rule."""

from __future__ import annotations

import re
from collections import Counter
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from designgraph.consistency.consistency_rules import MAX_LISTED, Breach, Breaches, rules_for
from designgraph.consistency.state_machine import check_machines
from designgraph.graph import GraphFileError, check_id, incoming, outgoing, properties_of, relations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import networkx as nx

    from designgraph.graph import Graph, Relation
    from designgraph.service import KnowledgeGraph
    from designgraph.type_rule import TypeRule


_WIDTH = re.compile(r"([0-9]{1,9})(?:\s*(?:bits?|位))?")
_RANGE = re.compile(r"\[\s*([0-9]{1,9})\s*:\s*([0-9]{1,9})\s*\]")


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


class CheckedGraph:
    """The graph to check.

    Attributes:
        graph: The graph.
        types: Its type rule.
        properties: Properties of every node by id, sorted.
        type: Type of every node by id.
    """

    def __init__(self, graph: Graph, types: TypeRule) -> None:
        self.graph = graph
        self.types = types
        self.properties = {node_id: properties_of(graph, node_id) for node_id in sorted(graph)}
        self.type: dict[str, str] = dict(graph.nodes(data="type"))

    def nodes(self, rule: dict[str, Any]) -> list[str]:
        """Return the nodes that a rule applies to, by its ``types``, ``when`` and ``unless``."""
        return [node_id for node_id in self.properties if self.is_meant(rule, node_id)]

    def is_meant(self, rule: dict[str, Any], node_id: str) -> bool:
        """Return whether a rule applies to a node."""
        given = self.properties[node_id]
        return (
            self.type[node_id] in rule.get("types", (self.type[node_id],))
            and all(given.get(name) == value for name, value in rule.get("when", {}).items())
            and not any(given.get(name) == value for name, value in rule.get("unless", {}).items())
        )

    def pairs(self, rule: dict[str, Any]) -> list[Relation]:
        """Return the relations of a rule between two nodes that it applies to."""
        return [
            relation
            for node_id in self.nodes(rule)
            for relation in outgoing(self.graph, node_id)
            if is_listed(relation[2], rule["relations"]) and self.is_meant(rule, relation[1])
        ]


def is_listed(name: str, patterns: Iterable[str]) -> bool:
    """Return whether ``name`` matches an item of a list, in which items may end in ``*``."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def known_types(subject: CheckedGraph, rule: dict[str, Any], findings: Breaches) -> None:
    """Find types that the graph does not know."""
    for node_id in subject.nodes(rule):
        if subject.type[node_id] not in subject.types.node_types and not subject.types.is_open:
            text = f"node '{node_id}' has the type {subject.type[node_id]}, which the graph does not know"
            findings.add(rule, text, (node_id,))
        for source, target, kind in outgoing(subject.graph, node_id):
            if kind not in subject.types.relation_types and not subject.types.is_open:
                text = f"relation '{source}' -> '{target}' has the type {kind}, which the graph does not know"
                findings.add(rule, text, (source, target))


def orphan(subject: CheckedGraph, rule: dict[str, Any], findings: Breaches) -> None:
    """Find nodes without any relation."""
    for node_id in subject.nodes(rule):
        if not subject.graph.degree(node_id) and subject.type[node_id] not in rule.get("except", ()):
            findings.add(rule, f"{subject.type[node_id]} '{node_id}' has no relation to anything", (node_id,))


def reference(subject: CheckedGraph, rule: dict[str, Any], findings: Breaches) -> None:
    """Find properties that name a node that does not exist, or has another type."""
    for node_id in subject.nodes(rule):
        named = subject.properties[node_id].get(rule["property"])
        for name in [named] if isinstance(named, str) else named if isinstance(named, list) else ():
            if not isinstance(name, str) or name not in subject.graph:
                findings.add(rule, f"'{node_id}' names {rule['property']} '{name}', which does not exist", (node_id,))
            elif subject.type[name] not in rule.get("to", (subject.type[name],)):
                text = f"'{node_id}' names {rule['property']} '{name}', which is a {subject.type[name]}"
                findings.add(rule, text, (node_id, name))


def equal(subject: CheckedGraph, rule: dict[str, Any], findings: Breaches) -> None:
    """Find related nodes whose property differs."""
    name = rule["property"]
    for source, target, kind in subject.pairs(rule):
        values = [subject.properties[end].get(name) for end in (source, target)]
        if None in values or values[0] == values[1]:
            continue
        shown = f"{name} {values[0]} of '{source}' and {values[1]} of '{target}' ({kind})"
        if rule.get("as") == "width":
            widths = [width_of(value) for value in values]
            if None in widths:
                findings.skip(rule, f"{shown} cannot be compared as numbers", (source, target))
                continue
            if widths[0] == widths[1]:
                continue
        findings.add(rule, f"{shown} differ", (source, target))


def width_of(value: Any) -> int | None:
    """Return the width in bits of 8, "8", "8 bits" or "[7:0]"; ``None`` for anything else, such as a parameter."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    text = value.strip() if isinstance(value, str) else ""
    if match := _WIDTH.fullmatch(text):
        return int(match[1])
    if match := _RANGE.fullmatch(text):
        return abs(int(match[1]) - int(match[2])) + 1
    return None


def clash(subject: CheckedGraph, rule: dict[str, Any], findings: Breaches) -> None:
    """Find related nodes whose property has a pair of values that contradict each other."""
    name, same = rule["property"], rule.get("same")
    for source, target, kind in subject.pairs(rule):
        first, second = (subject.properties[end] for end in (source, target))
        if same and first.get(same) != second.get(same):
            continue
        values = [first.get(name), second.get(name)]
        orders = [values, values[::-1]] if rule.get("either_way") else [values]
        if any(_fits(order, pair) for order in orders for pair in rule["pairs"]):
            shown = [value if value is not None else f"no {name}" for value in values]
            text = f"'{source}' ({shown[0]}) {kind} '{target}' ({shown[1]}): these contradict each other"
            findings.add(rule, text, (source, target))


def _fits(values: list[Any], pair: list[Any]) -> bool:
    return all(wanted in ("*", value) for value, wanted in zip(values, pair, strict=True))


def relates(subject: CheckedGraph, rule: dict[str, Any], findings: Breaches) -> None:
    """Find nodes with too few or too many relations of a kind."""
    direction = rule.get("direction", "both")
    for node_id in subject.nodes(rule):
        ends = [(r[1], r[2]) for r in outgoing(subject.graph, node_id) if direction != "in"]
        ends += [(r[0], r[2]) for r in incoming(subject.graph, node_id) if direction != "out"]
        others = sorted(other for other, kind in ends if is_listed(kind, rule["relations"]))
        others = [other for other in others if subject.type[other] in rule.get("other", (subject.type[other],))]
        wanted = "/".join(rule["relations"])
        to = f" with a {' or '.join(rule['other'])}" if "other" in rule else ""
        count = len(others)
        who = f"{subject.type[node_id]} '{node_id}' has {count}"
        if count < rule.get("at_least", 0):
            text = f"{who} of the {rule['at_least']} {wanted} relations{to} it needs"
            findings.add(rule, text, (node_id, *others))
        elif count > rule.get("at_most", count):
            text = f"{who} {wanted} relations{to}, more than {rule['at_most']}: {', '.join(others[:10])}"
            findings.add(rule, text, (node_id, *others))


def prop(subject: CheckedGraph, rule: dict[str, Any], findings: Breaches) -> None:
    """Find nodes whose property is missing or has a value that is not allowed."""
    name = rule["property"]
    for node_id in subject.nodes(rule):
        given = subject.properties[node_id]
        if name not in given:
            if rule.get("required"):
                findings.add(rule, f"{subject.type[node_id]} '{node_id}' has no {name}", (node_id,))
        elif "one_of" in rule and given[name] not in rule["one_of"]:
            allowed = ", ".join(map(str, rule["one_of"]))
            findings.add(rule, f"{name} {given[name]!r} of '{node_id}' is not one of {allowed}", (node_id,))
        elif "pattern" in rule and not re.fullmatch(rule["pattern"], str(given[name])):
            findings.add(rule, f"{name} {given[name]!r} of '{node_id}' does not match {rule['pattern']}", (node_id,))


def acyclic(subject: CheckedGraph, rule: dict[str, Any], findings: Breaches) -> None:
    """Find cycles of relations that must not form one."""
    import networkx as nx

    known = subject.types.relation_types
    listed = rule.get("relations", [name for name, about in known.items() if about.get("acyclic")])
    after = nx.DiGraph((r[0], r[1]) for r in relations(subject.graph) if is_listed(r[2], listed))
    for ring in rings(after):
        shown = " -> ".join([*ring[:20], "..." if len(ring) > 20 else ring[0]])
        findings.add(rule, f"{len(ring)} node{'s form' if len(ring) > 1 else ' forms'} a cycle: {shown}", tuple(ring))


def rings(after: nx.DiGraph[str]) -> list[list[str]]:
    """Return a shortest cycle through the first node of each strongly connected component, sorted."""
    import networkx as nx

    found = []
    for part in nx.strongly_connected_components(after):
        start = min(part)
        if after.has_edge(start, start):
            found.append([start])
        elif len(part) > 1:
            within = nx.DiGraph(edge for edge in sorted(after.edges(part)) if edge[1] in part)
            before = {node: source for source, node in nx.bfs_edges(within, start)}  # nearest first
            ring = [next(node for node in before if within.has_edge(node, start))]
            while ring[-1] != start:
                ring.append(before[ring[-1]])
            found.append(ring[::-1])
    return sorted(found)


def state_machine(subject: CheckedGraph, rule: dict[str, Any], findings: Breaches) -> None:
    """Find unreachable states, and cases that no transition covers."""
    check_machines(subject.graph, subject.properties, rule, findings)


KINDS: dict[str, Callable[[CheckedGraph, dict[str, Any], Breaches], None]] = {
    "known_types": known_types,
    "orphan": orphan,
    "reference": reference,
    "equal": equal,
    "clash": clash,
    "relates": relates,
    "property": prop,
    "acyclic": acyclic,
    "state_machine": state_machine,
}
