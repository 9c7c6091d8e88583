"""Bringing a circuit into a graph: what ``kg.import_circuit`` does once the netlist is read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from designgraph.circuit_nodes import CircuitNodes
from designgraph.graph import Graph

if TYPE_CHECKING:
    from collections.abc import Mapping

    from designgraph.service import Addition, KnowledgeGraph

SHOWN = 200


@dataclass(frozen=True)
class CircuitSource:
    """A circuit and what is known of it.

    Attributes:
        circuit: ``{name, ports, devices, nets, modules}`` as ``netlist.parse`` answers it.
        path: Where it was read from.
        power: Its supply nets.
        ground: Its ground nets.
        constraints: A list of ``{kind, ...}``, lists by kind, or ``None``: those that recognition means.
        report: A layout flow's ``summary.json``, or ``None``.
    """

    circuit: Mapping[str, Any]
    path: str
    power: tuple[str, ...] = ()
    ground: tuple[str, ...] = ()
    constraints: Any = None
    report: Mapping[str, Any] | None = field(default=None, repr=False)


def import_circuit(
    knowledge: KnowledgeGraph, graph_id: str, source: CircuitSource, *, prefix: str = "", replace: bool = False
) -> dict[str, Any]:
    """Return what was brought into a graph, and which ids it got.

    Args:
        knowledge: Where the graph is.
        graph_id: Which one.
        source: The circuit.
        prefix: What every id begins with.
        replace: Whether the graph is to hold nothing else.

    Raises:
        GraphError: If a constraint names what the circuit does not have, or an id belongs to something else already.
    """
    made: list[CircuitNodes] = []
    stale: list[str] = []

    def build(graph: Graph) -> Addition:
        made[:] = [_nodes(source, prefix, graph)]
        stale[:] = made[0].stale(graph)
        return made[0].addition(graph)

    if replace:
        addition = build(Graph())
        counts = knowledge.init(graph_id, addition.nodes, addition.relations)
        answer = {
            "nodesCreated": counts["nodes"],
            "nodesUpdated": 0,
            "relationsCreated": counts["relations"],
            "relationsDeleted": 0,
            "unchanged": 0,
            "replaced": counts["replaced"],
            **{name: counts[name] for name in ("warnings",) if name in counts},
        }
    else:
        answer = knowledge.merge(graph_id, build)
    renamed = made[0].ids.changed()
    return {
        **answer,
        "graphId": graph_id,
        "circuit": made[0].circuit_id,
        "renamed": {name: renamed[name] for name in sorted(renamed)[:SHOWN]},
        "stale": stale[:SHOWN],
    }


def _nodes(source: CircuitSource, prefix: str, graph: Graph) -> CircuitNodes:
    nodes = CircuitNodes(source.circuit, prefix)
    nodes.add_circuit(source.path, source.power, source.ground)
    if source.constraints is None:
        nodes.add_recognised_constraints()
    else:
        nodes.add_constraints(source.constraints)
    if source.report is not None:
        nodes.add_history(source.report, graph)
    return nodes
