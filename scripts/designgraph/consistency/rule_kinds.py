"""The kinds of rules: one function per kind, which takes a rule and a graph and adds findings."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from designgraph.consistency.state_machine import check_machines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from designgraph.consistency.inconsistencies import Findings
    from designgraph.graph import Graph, Node, Relation
    from designgraph.type_rule import TypeRule

_WIDTH = re.compile(r"([0-9]{1,9})(?:\s*(?:bits?|位))?")
_RANGE = re.compile(r"\[\s*([0-9]{1,9})\s*:\s*([0-9]{1,9})\s*\]")


class Subject:
    """The graph to check.

    Attributes:
        graph: The graph.
        types: Its type rule.
        properties: Properties of every node by id.
    """

    def __init__(self, graph: Graph, types: TypeRule) -> None:
        self.graph = graph
        self.types = types
        self.properties = {node_id: graph.nodes[node_id].properties for node_id in graph.ids()}

    def nodes(self, rule: dict[str, Any]) -> list[Node]:
        """Return the nodes that a rule applies to, by its ``types``, ``when`` and ``unless``."""
        return [node for node in map(self.graph.nodes.__getitem__, self.graph.ids()) if self.is_meant(rule, node)]

    def is_meant(self, rule: dict[str, Any], node: Node) -> bool:
        """Return whether a rule applies to ``node``."""
        given = self.properties[node.id]
        return (
            node.type in rule.get("types", (node.type,))
            and all(given.get(name) == value for name, value in rule.get("when", {}).items())
            and not any(given.get(name) == value for name, value in rule.get("unless", {}).items())
        )

    def pairs(self, rule: dict[str, Any]) -> list[Relation]:
        """Return the relations of a rule between two nodes that it applies to."""
        nodes = self.graph.nodes
        return [
            relation
            for node in self.nodes(rule)
            for relation in sorted(node.outgoing)
            if is_listed(relation[2], rule["relations"]) and self.is_meant(rule, nodes[relation[1]])
        ]


def is_listed(name: str, patterns: Iterable[str]) -> bool:
    """Return whether ``name`` matches an item of a list, in which items may end in ``*``."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def known_types(subject: Subject, rule: dict[str, Any], findings: Findings) -> None:
    """Find types that the graph does not know."""
    for node in subject.nodes(rule):
        if node.type not in subject.types.node_types and not subject.types.is_open:
            findings.add(rule, f"node '{node.id}' has the type {node.type}, which the graph does not know", (node.id,))
        for source, target, kind in sorted(node.outgoing):
            if kind not in subject.types.relation_types and not subject.types.is_open:
                text = f"relation '{source}' -> '{target}' has the type {kind}, which the graph does not know"
                findings.add(rule, text, (source, target))


def orphan(subject: Subject, rule: dict[str, Any], findings: Findings) -> None:
    """Find nodes without any relation."""
    for node in subject.nodes(rule):
        if not node.outgoing and not subject.graph.incoming(node) and node.type not in rule.get("except", ()):
            findings.add(rule, f"{node.type} '{node.id}' has no relation to anything", (node.id,))


def reference(subject: Subject, rule: dict[str, Any], findings: Findings) -> None:
    """Find properties that name a node that does not exist, or has another type."""
    for node in subject.nodes(rule):
        named = subject.properties[node.id].get(rule["property"])
        for name in [named] if isinstance(named, str) else named if isinstance(named, list) else ():
            other = subject.graph.nodes.get(name) if isinstance(name, str) else None
            if other is None:
                findings.add(rule, f"'{node.id}' names {rule['property']} '{name}', which does not exist", (node.id,))
            elif other.type not in rule.get("to", (other.type,)):
                text = f"'{node.id}' names {rule['property']} '{name}', which is a {other.type}"
                findings.add(rule, text, (node.id, other.id))


def equal(subject: Subject, rule: dict[str, Any], findings: Findings) -> None:
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


def clash(subject: Subject, rule: dict[str, Any], findings: Findings) -> None:
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


def relates(subject: Subject, rule: dict[str, Any], findings: Findings) -> None:
    """Find nodes with too few or too many relations of a kind."""
    direction = rule.get("direction", "both")
    for node in subject.nodes(rule):
        ends = [(r[1], r[2]) for r in node.outgoing if direction != "in"]
        ends += [(r[0], r[2]) for r in subject.graph.incoming(node) if direction != "out"]
        others = sorted(other for other, kind in ends if is_listed(kind, rule["relations"]))
        nodes = subject.graph.nodes
        others = [other for other in others if nodes[other].type in rule.get("other", (nodes[other].type,))]
        wanted = "/".join(rule["relations"])
        to = f" with a {' or '.join(rule['other'])}" if "other" in rule else ""
        if len(others) < rule.get("at_least", 0):
            text = (
                f"{node.type} '{node.id}' has {len(others)} of the {rule['at_least']} {wanted} relations{to} it needs"
            )
            findings.add(rule, text, (node.id, *others))
        elif len(others) > rule.get("at_most", len(others)):
            text = f"{node.type} '{node.id}' has {len(others)} {wanted} relations{to}, more than {rule['at_most']}"
            findings.add(rule, f"{text}: {', '.join(others[:10])}", (node.id, *others))


def prop(subject: Subject, rule: dict[str, Any], findings: Findings) -> None:
    """Find nodes whose property is missing or has a value that is not allowed."""
    name = rule["property"]
    for node in subject.nodes(rule):
        given = subject.properties[node.id]
        if name not in given:
            if rule.get("required"):
                findings.add(rule, f"{node.type} '{node.id}' has no {name}", (node.id,))
        elif "one_of" in rule and given[name] not in rule["one_of"]:
            allowed = ", ".join(map(str, rule["one_of"]))
            findings.add(rule, f"{name} {given[name]!r} of '{node.id}' is not one of {allowed}", (node.id,))
        elif "pattern" in rule and not re.fullmatch(rule["pattern"], str(given[name])):
            findings.add(rule, f"{name} {given[name]!r} of '{node.id}' does not match {rule['pattern']}", (node.id,))


def acyclic(subject: Subject, rule: dict[str, Any], findings: Findings) -> None:
    """Find cycles of relations that must not form one."""
    known = subject.types.relation_types
    listed = rule.get("relations", [name for name, about in known.items() if about.get("acyclic")])
    after = {
        node_id: sorted({target for _, target, kind in node.outgoing if is_listed(kind, listed)})
        for node_id, node in subject.graph.nodes.items()
    }
    for ring in rings(subject.graph.ids(), after):
        shown = " -> ".join([*ring[:20], "..." if len(ring) > 20 else ring[0]])
        findings.add(rule, f"{len(ring)} node{'s form' if len(ring) > 1 else ' forms'} a cycle: {shown}", tuple(ring))


def rings(ids: list[str], after: dict[str, list[str]]) -> list[list[str]]:
    """Return one cycle of each strongly connected component, which starts at its first id.

    Tarjan, "Depth-first search and linear graph algorithms", SIAM J. Comput. 1 (1972), without recursion.
    """
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    found = []
    for root in ids:
        if root in order:
            continue
        work = [(root, iter(after[root]))]
        order[root] = low[root] = len(order)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, rest = work[-1]
            other = next(rest, None)
            if other is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == order[node]:
                    part = _popped(stack, node)
                    on_stack -= part
                    if len(part) > 1 or node in after[node]:
                        found.append(_ring(part, after))
            elif other not in order:
                order[other] = low[other] = len(order)
                stack.append(other)
                on_stack.add(other)
                work.append((other, iter(after[other])))
            elif other in on_stack:
                low[node] = min(low[node], order[other])
    return sorted(found)


def _popped(stack: list[str], node: str) -> set[str]:
    """Remove the items from ``node`` on from ``stack``, and return them."""
    part = {stack.pop()}
    while node not in part:
        part.add(stack.pop())
    return part


def _ring(part: set[str], after: dict[str, list[str]]) -> list[str]:
    """Return a shortest cycle through the first node of a strongly connected component."""
    start = min(part)
    before: dict[str, str] = {}
    waiting = [start]
    for node in waiting:
        for other in after[node]:
            if other == start:
                ring = [node]
                while ring[-1] != start:
                    ring.append(before[ring[-1]])
                return ring[::-1]
            if other in part and other not in before:
                before[other] = node
                waiting.append(other)
    raise AssertionError("a strongly connected component has a cycle through each of its nodes")


def state_machine(subject: Subject, rule: dict[str, Any], findings: Findings) -> None:
    """Find unreachable states, and cases that no transition covers."""
    check_machines(subject.graph, subject.properties, rule, findings)


KINDS: dict[str, Callable[[Subject, dict[str, Any], Findings], None]] = {
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
