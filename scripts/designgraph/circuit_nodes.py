"""A circuit, its constraints and the history of its layout as nodes and relations.

::

    Device M1 --TERMINAL_G--> Net net_vinp      Constraint symmetry_diff_pair_1 --CONSTRAINS--> Device M1
    Device M1 --PART_OF--> Block diff_pair_1 --PART_OF--> Circuit circuit_ota
    Verification drc_1 --VERIFIES--> Circuit    Decision drawn_diff_pair --CONCERNS--> Device M1

The circuit is plain data in the shape of ``netlist.parse``; nothing here reads netlists.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from designgraph.errors import GraphError
from designgraph.legal_ids import LegalIds
from designgraph.service import Addition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from designgraph.graph import Graph

SYMMETRIC = frozenset({"differential_pair", "cross_coupled_pair", "load_pair", "cascode_pair", "symmetric_pair"})
_SINGULAR = {"net_priorities": "net_priority"}
MATCHED = SYMMETRIC | {"current_mirror", "cascode_current_mirror"}
_IMPORTED = ("Device", "Net", "Block")
_SUBJECTS = ("device", "devices", "net", "nets", "block", "blocks", "pairs", "self_symmetric", "net_pairs")
_WORD = re.compile(r"[\w.]+")


class CircuitNodes:
    """Collects what is known of one circuit.

    Args:
        circuit: ``{name, ports, devices, nets, modules}``.
        prefix: What every id begins with, so that several circuits can share a graph.

    Attributes:
        ids: Which id each name got.
        circuit_id: Id of the circuit's own node.
    """

    def __init__(self, circuit: Mapping[str, Any], prefix: str = "") -> None:
        self.ids = LegalIds(prefix)
        self._nodes: dict[str, dict[str, Any]] = {}
        self._relations: dict[tuple[str, str, str], None] = {}
        self._circuit = circuit
        self.circuit_id = self.ids.give(circuit["name"], "circuit_")
        self._names = {
            **{net["name"]: self.ids.give(net["name"], "net_") for net in circuit["nets"]},
            **{block["id"]: self.ids.give(block["id"]) for block in circuit["modules"]},
            **{device["id"]: self.ids.give(device["id"]) for device in circuit["devices"]},
        }

    def add_circuit(self, source: str, power: Iterable[str], ground: Iterable[str]) -> None:
        """Add the circuit, its devices, nets and blocks.

        Args:
            source: Where it was read from.
            power: Names of its supply nets.
            ground: Names of its ground nets.
        """
        circuit = self._circuit
        facts = {"name": circuit["name"], "ports": circuit["ports"], "source": source}
        self._add(self.circuit_id, "Circuit", {**facts, "device_count": len(circuit["devices"])})
        supplies = {**dict.fromkeys(power, "power"), **dict.fromkeys(ground, "ground")}
        ports = set(circuit["ports"])
        for net in circuit["nets"]:
            name = net["name"]
            supply = {"supply": supplies[name]} if name in supplies else {}
            self._add(self.ids.give(name, "net_"), "Net", {"name": name, "port": name in ports, **supply}, owned=True)
            if name in ports:
                self._relate(self.ids.give(name, "net_"), self.circuit_id, "PART_OF")
        owner = {}
        for block in circuit["modules"]:
            block_id = self.ids.give(block["id"])
            owner.update(dict.fromkeys(block["devices"], block_id))
            self._add(block_id, "Block", {"kind": block["type"], **block["properties"]}, owned=True)
            self._relate(block_id, self.circuit_id, "PART_OF")
        for device in circuit["devices"]:
            device_id = self.ids.give(device["id"])
            facts = {"name": device["id"], "kind": device["type"], "model": device["model"], **device["params"]}
            self._add(device_id, "Device", facts, owned=True)
            self._relate(device_id, owner.get(device["id"], self.circuit_id), "PART_OF")
            for terminal, net in device["terminals"].items():
                self._relate(device_id, self.ids.give(net, "net_"), f"TERMINAL_{terminal.upper()}")

    def add_recognised_constraints(self) -> None:
        """Add the constraints that the recognised blocks mean: symmetry of pairs, matching of pairs and mirrors."""
        for block in self._circuit["modules"]:
            for kind, types in (("symmetry", SYMMETRIC), ("matching", MATCHED)):
                if block["type"] in types:
                    constraint = self.ids.give(f"{kind}_{block['id']}")
                    self._add(constraint, "Constraint", {"kind": kind, "origin": "recognition", "block": block["id"]})
                    for device in block["devices"]:
                        self._relate(constraint, self.ids.give(device), "CONSTRAINS")

    def add_constraints(self, constraints: Any) -> None:
        """Add constraints that were given: a list of ``{kind, ...}``, or lists by kind as layout planning makes.

        Every text in a constraint, or in a list of it, that names a device, net or block relates it to that; everything
        else is kept as its properties.

        Raises:
            GraphError: If one has no kind, or names nothing of the circuit; all faults at once.
        """
        faults = []
        for path, constraint in _listed(constraints):
            kind = constraint.get("kind") or constraint.get("type")
            subjects = [name for name in _texts(constraint) if name in self._names]
            unknown = [
                name
                for field in _SUBJECTS
                for name in _texts({field: constraint.get(field)})
                if name not in self._names
            ]
            if not isinstance(kind, str) or not kind:
                faults.append(f"{path} has no kind")
            if unknown:
                faults.append(f"{path} names {', '.join(unknown)}, which the circuit does not have")
            elif not subjects:
                faults.append(f"{path} names no device, net or block of the circuit")
            if not faults:
                mark = constraint.get("id") or f"{kind}_{'_'.join(subjects)}"
                constraint_id = self.ids.give(str(mark), "constraint_")
                self._add(constraint_id, "Constraint", {**constraint, "kind": kind})
                for name in subjects:
                    self._relate(constraint_id, self._names[name], "CONSTRAINS")
        if faults:
            raise GraphError("; ".join(faults), {"param_name": "constraints", "faults": faults})

    def add_history(self, report: Mapping[str, Any], graph: Graph) -> None:
        """Add what a layout flow reported: its verdicts, and what it decided.

        A verdict that differs from the last of its kind in ``graph`` gets the next number, so that a graph keeps them
        all; the same verdict again adds nothing.

        Args:
            report: The flow's ``summary.json``.
            graph: Where earlier verdicts are found.
        """
        for kind, facts in _verdicts(report):
            self._add_verdict(kind, facts, graph)
        for text in report.get("warnings", ()):
            mark = blake2b(text.encode(), digest_size=4).hexdigest()
            decision = self.ids.give(f"decision_{mark}")
            self._add(decision, "Decision", {"text": text, "origin": "layout flow"})
            concerned = [self._names[word] for word in dict.fromkeys(_WORD.findall(text)) if word in self._names]
            for subject in concerned or [self.circuit_id]:
                self._relate(decision, subject, "CONCERNS")
        for module in report.get("modules", ()):
            decision = self.ids.give(str(module["name"]), "drawn_")
            facts = {name: value for name, value in module.items() if name not in ("name", "devices")}
            self._add(decision, "Decision", {"text": f"drawn as {module['name']}", **facts, "origin": "layout flow"})
            for device in module.get("devices", ()):
                self._relate(decision, self._names.get(device, self.circuit_id), "CONCERNS")

    def addition(self, graph: Graph) -> Addition:
        """Return what to bring into ``graph``; terminals that have moved to other nets are outdated."""
        outdated = [
            relation
            for node_id, node in self._nodes.items()
            if node["type"] == "Device" and node_id in graph.nodes
            for relation in sorted(graph.nodes[node_id].outgoing)
            if relation[2].startswith("TERMINAL_") and relation not in self._relations
        ]
        relations = [{"from": source, "to": target, "type": kind} for source, target, kind in self._relations]
        return Addition(list(self._nodes.values()), relations, outdated)

    def stale(self, graph: Graph) -> list[str]:
        """Return the nodes in ``graph`` that an earlier import of this circuit made and this one does not."""
        return [
            node_id
            for node_id in graph.ids()
            if graph.nodes[node_id].type in _IMPORTED
            and node_id not in self._nodes
            and graph.nodes[node_id].properties.get("circuit") == self.circuit_id
        ]

    def _add_verdict(self, kind: str, facts: dict[str, Any], graph: Graph) -> None:
        number = 1
        while (earlier := graph.nodes.get(self.ids.give(f"{kind}_{number}"))) is not None:
            following = graph.nodes.get(self.ids.give(f"{kind}_{number + 1}"))
            if following is None and earlier.properties == facts:
                break
            number += 1
        verdict = self.ids.give(f"{kind}_{number}")
        self._add(verdict, "Verification", facts)
        self._relate(verdict, self.circuit_id, "VERIFIES")

    def _add(self, node_id: str, node_type: str, properties: dict[str, Any], *, owned: bool = False) -> None:
        kept = {**properties, "circuit": self.circuit_id} if owned else properties
        self._nodes[node_id] = {"id": node_id, "type": node_type, "properties": kept}

    def _relate(self, source: str, target: str, kind: str) -> None:
        self._relations[source, target, kind] = None


def _verdicts(report: Mapping[str, Any]) -> Iterable[tuple[str, dict[str, Any]]]:
    """Return the verdicts in a flow's report, in short."""
    drc, lvs, routing = (report.get(name) for name in ("drc", "lvs", "routing"))
    judged = {name: report[name] for name in ("technology", "layout_sha256") if name in report}
    if isinstance(drc, dict):
        rules = {str(entry.get("rule_id")): entry.get("count") for entry in drc.get("violations", ())[:50]}
        yield (
            "drc",
            {
                "kind": "DRC",
                "passed": drc.get("passed"),
                "total_violations": drc.get("total_violations"),
                "violations": rules,
                **judged,
            },
        )
    if isinstance(lvs, dict):
        reasons = [str(entry.get("message", entry)) for entry in lvs.get("mismatches", ())[:20]]
        passed = bool(lvs.get("matched")) and lvs.get("complete", True) is True
        yield "lvs", {"kind": "LVS", "passed": passed, "mismatches": reasons, **judged}
    if isinstance(routing, dict):
        failed = [str(entry.get("net", entry)) for entry in routing.get("failed", ())[:50]]
        facts = {"kind": "routing", "passed": not failed, "routed": routing.get("routed"), "failed": failed}
        yield "routing", {**facts, **judged}


def _listed(constraints: Any) -> list[tuple[str, dict[str, Any]]]:
    """Return each constraint with its path; of lists by kind each gets the kind it stands under."""
    if isinstance(constraints, dict):
        return [
            (f"constraints.{name}[{index}]", _of_kind(_SINGULAR.get(str(name), str(name)), item))
            for name, items in constraints.items()
            for index, item in enumerate(items if isinstance(items, list) else [items])
            if isinstance(item, dict)
        ]
    return [(f"constraints[{index}]", item) for index, item in enumerate(constraints)]


def _of_kind(kind: str, constraint: dict[str, Any]) -> dict[str, Any]:
    """Return a constraint with its kind; one that it had, such as that of a net, becomes its role."""
    role = {"role": constraint["kind"]} if "kind" in constraint else {}
    return {**constraint, **role, "kind": kind}


def _texts(constraint: Mapping[str, Any]) -> list[str]:
    """Return the texts that stand in a constraint's fields, or in lists there, each once."""
    found: list[str] = []
    for value in constraint.values():
        for item in value if isinstance(value, list) else [value]:
            parts = item if isinstance(item, list) else [item]
            found += [part for part in parts if isinstance(part, str)]
    return list(dict.fromkeys(found))
