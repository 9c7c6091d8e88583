"""A circuit, its constraints and the history of its layout as nodes and relations, for the design graph.

::

    Device M1 --TERMINAL_G--> Net vinp          Constraint symmetry_diff_pair_1 --CONSTRAINS--> Device M1
    Device M1 --PART_OF--> Block diff_pair_1 --PART_OF--> Circuit ota
    Verification drc --VERIFIES--> Circuit      Decision drawn_diff_pair --CONCERNS--> Device M1

The result is plain data, because this package does not know the graph. A node is named by its type, its name in the
circuit and the text that precedes the name in the graph's ids: ``("Net", "vinp", "net_")``.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layoutkit.circuit.constraints import OF_THE_CHIP
from layoutkit.circuit.readers.json_reader import parse_json
from layoutkit.circuit.readers.netlist import read_netlist
from layoutkit.circuit.readers.source import NetlistText, given_netlist
from layoutkit.circuit.recognise import MODULE_TYPES
from layoutkit.circuit.roles import find_roles
from layoutkit.errors import FileError, LayoutkitError, sentences

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from layoutkit.circuit.circuit import Circuit

    Name = tuple[str, str, str]

CONSTRAINTS_FILE = "constraints.json"
REPORT_FILE = "summary.json"
AFTER_LAYOUT = ("parasitics", "simulation")
_SINGULAR = {
    "net_priorities": "net_priority",
    "net_currents": "net_current",
    "net_lengths": "net_length",
    "net_shields": "net_shield",
    "net_separations": "net_separation",
    "device_currents": "device_current",
    "port_sides": "port_side",
}
_ONES = ("device", "net", "shield", "port", "block")
_MANY = ("devices", "nets", "blocks", "pairs", "self_symmetric", "net_pairs", "power", "ground")
_SUBJECTS = (*_ONES, *_MANY)
_WORD = re.compile(r"[\w.]+")


def design_nodes(params: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return what a netlist and its workspace say about a design, as ``circuit_nodes`` does, and warnings.

    Args:
        params: ``netlist_path``, ``netlist_text`` or ``workspace``, and optionally ``top``, ``black_boxes``,
            ``parameters``, ``constraints``. Constraints and the report of the layout flow are read from the workspace.

    Raises:
        LayoutkitError: If a file cannot be read, or a constraint names something that the circuit does not have.
    """
    netlist = _netlist(params)
    circuit = read_netlist(
        netlist,
        top=params.get("top"),
        black_boxes=params.get("black_boxes", ()),
        parameters=params.get("parameters"),
    )
    constraints = params.get("constraints")
    report, warnings = _flow_report(params)
    nodes = circuit_nodes(
        circuit,
        str(netlist),
        constraints=_read_json(params, CONSTRAINTS_FILE) if constraints is None else constraints,
        report=report,
    )
    none = [] if circuit.devices else [f"{netlist} has no devices"]
    return nodes, [*circuit.warnings, *warnings, *none]


def circuit_nodes(
    circuit: Circuit, path: str, *, constraints: Any = None, report: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return ``{root, nodes, relations, owner, owned_types, owned_relations}``.

    ``root`` is the circuit's node. A node is ``(name, properties, is_numbered)``; of a numbered one, such as a verdict,
    the graph keeps every version. A relation is ``(from, to, type)``. The circuit owns its devices, nets and blocks,
    which get the property ``circuit``, and the relations of its terminals.

    Args:
        circuit: The circuit.
        path: File it was read from, or ``netlist_text``.
        constraints: A list of ``{kind, ...}``, or lists by kind; ``None`` for those that follow from recognition.
        report: ``summary.json`` of a layout flow.

    Raises:
        LayoutkitError: If a constraint has no kind, or names something that the circuit does not have.
    """
    made = _CircuitNodes(circuit)
    made.add_circuit(path)
    if constraints is None:
        made.add_recognised_constraints()
    else:
        made.add_constraints(constraints)
    if report is not None:
        made.add_history(report)
    return {
        "root": made.root,
        "nodes": [(name, properties, name in made.numbered) for name, properties in made.nodes.items()],
        "relations": list(made.relations),
        "owner": "circuit",
        "owned_types": frozenset({"Device", "Net", "Block"}),
        "owned_relations": ("TERMINAL_",),
    }


def _netlist(params: Mapping[str, Any]) -> str | NetlistText:
    if "netlist_path" in params or "netlist_text" in params:
        return given_netlist(params)
    if "workspace" not in params:
        text = "give netlist_path or netlist_text, or a workspace in which a netlist was parsed or laid out"
        raise LayoutkitError(text, details={"param_name": "netlist_path"})
    return str(Path(params["workspace"], "circuit.json"))


def _flow_report(params: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """Return the report in the workspace and warnings about it; a report on another layout is left out."""
    from layoutkit.layout.workspace import Workspace

    if "workspace" not in params:
        return None, []
    workspace = Workspace(params["workspace"])
    reasons = workspace.changed_since(REPORT_FILE)
    if reasons:
        text = f"{workspace.path(REPORT_FILE)} is out of date: it was made from another {' and '.join(reasons)}"
        return None, [f"{text}; its verdicts are left out"]
    report = _read_json(params, REPORT_FILE)
    if report is not None and reasons is None:
        return report, [f"{workspace.path(REPORT_FILE)} does not say which layout it was made from"]
    return report, []


def _read_json(params: Mapping[str, Any], name: str) -> Any:
    """Return the value of a JSON file in the workspace; ``None`` without a workspace or without the file."""
    from layoutkit.layout.files import read_bytes

    if "workspace" not in params or not (path := Path(params["workspace"], name)).exists():
        return None
    try:
        return parse_json(read_bytes(path).decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise FileError(f"{path} is not UTF-8 text (byte {error.start})", details={"param_name": "workspace"}) from None
    except LayoutkitError as error:
        raise FileError(f"{path}: {error.message}", details={"param_name": "workspace"}) from error


def _net(name: str) -> Name:
    return "Net", name, "net_"


def _device(name: str) -> Name:
    return "Device", name, ""


def _block(name: str) -> Name:
    return "Block", name, ""


class _CircuitNodes:
    """Collects the nodes and relations of one circuit."""

    def __init__(self, circuit: Circuit) -> None:
        self.root: Name = ("Circuit", circuit.name, "circuit_")
        self.nodes: dict[Name, dict[str, Any]] = {}
        self.numbered: set[Name] = set()
        self.relations: dict[tuple[Name, Name, str], None] = {}
        self._circuit = circuit
        self._names = {
            **{net: _net(net) for net in circuit.nets},
            **{module.id: _block(module.id) for module in circuit.modules},
            **{device.id: _device(device.id) for device in circuit.devices},
        }

    def add_circuit(self, path: str) -> None:
        """Add the circuit, its nets, blocks and devices."""
        circuit, supplies = self._circuit, find_roles(self._circuit).supplies
        facts = {"name": circuit.name, "ports": list(circuit.ports), "source": path}
        self.nodes[self.root] = {**facts, "device_count": len(circuit.devices)}
        kinds = {**dict.fromkeys(supplies.power, "power"), **dict.fromkeys(supplies.ground, "ground")}
        for net in circuit.nets:
            is_port = net in circuit.ports
            self.nodes[_net(net)] = {
                "name": net,
                "port": is_port,
                **({"supply": kinds[net]} if net in kinds else {}),
            }
            if is_port:
                self._relate(_net(net), self.root, "PART_OF")
        owners: dict[str, list[Name]] = {}  # groups may share devices
        for module in circuit.modules:
            for name in module.devices:
                owners.setdefault(name, []).append(_block(module.id))
            self.nodes[_block(module.id)] = {"kind": module.type, **module.properties}
            self._relate(_block(module.id), self.root, "PART_OF")
        for device in circuit.devices:
            params = device.to_json()["params"]
            self.nodes[_device(device.id)] = {
                "name": device.id,
                "kind": device.type,
                "model": device.model,
                **params,
            }
            for owner in owners.get(device.id, [self.root]):
                self._relate(_device(device.id), owner, "PART_OF")
            for terminal, net in device.terminals.items():
                self._relate(_device(device.id), _net(net), f"TERMINAL_{terminal.upper()}")

    def add_recognised_constraints(self) -> None:
        """Add the constraints that follow from recognition: symmetry of pairs, matching of pairs and mirrors."""
        for module in self._circuit.modules:
            implied = MODULE_TYPES[module.type]
            for kind, applies in (("symmetry", implied.symmetric), ("matching", implied.matched)):
                if applies:
                    constraint = ("Constraint", f"{kind}_{module.id}", "")
                    self.nodes[constraint] = {"kind": kind, "origin": "recognition", "block": module.id}
                    for device in module.devices:
                        self._relate(constraint, _device(device), "CONSTRAINS")

    def add_constraints(self, constraints: Any) -> None:
        """Add given constraints.

        Every string in a constraint, or in a list of it, that names a device, net or block becomes a relation to that.
        The whole constraint becomes the properties of its node.

        Raises:
            LayoutkitError: If a constraint has no kind, or names nothing of the circuit; all faults at once.
        """
        faults = []
        for path, constraint in _listed(constraints):
            kind = constraint.get("kind") or constraint.get("type")
            subjects = [name for name in _strings(constraint) if name in self._names]
            unknown = [
                name
                for field in _SUBJECTS
                for name in _strings({field: constraint.get(field)})
                if name not in self._names
            ]
            if not isinstance(kind, str) or not kind:
                faults.append(f"{path} has no kind")
            if unknown:
                faults.append(f"{path} names {', '.join(unknown)}, which the circuit does not have")
            elif not subjects and kind not in ("outline", *OF_THE_CHIP):
                faults.append(f"{path} names no device, net or block of the circuit")
            if not faults:
                name = ("Constraint", str(constraint.get("id") or "_".join([str(kind), *subjects])), "constraint_")
                self.nodes[name] = {**constraint, "kind": kind}
                for subject in [self._names[subject] for subject in subjects] or [self.root]:
                    self._relate(name, subject, "CONSTRAINS")
        if faults:
            raise LayoutkitError(sentences(faults), details={"param_name": "constraints", "faults": faults})

    def add_history(self, report: Mapping[str, Any]) -> None:
        """Add the verdicts and decisions in the ``summary.json`` of a layout flow."""
        for kind, facts in verdicts_of(report):
            verdict = ("Verification", kind, "")
            self.nodes[verdict] = facts
            self.numbered.add(verdict)
            self._relate(verdict, self.root, "VERIFIES")
        for text in report.get("warnings", ()):
            mark = blake2b(text.encode(), digest_size=4).hexdigest()
            decision = ("Decision", f"decision_{mark}", "")
            self.nodes[decision] = {"text": text, "origin": "layout flow"}
            concerned = [self._names[word] for word in dict.fromkeys(_WORD.findall(text)) if word in self._names]
            for subject in concerned or [self.root]:
                self._relate(decision, subject, "CONCERNS")
        for module in report.get("modules", ()):
            decision = ("Decision", str(module["name"]), "drawn_")
            facts = {name: value for name, value in module.items() if name not in ("name", "devices")}
            self.nodes[decision] = {"text": f"drawn as {module['name']}", **facts, "origin": "layout flow"}
            for device in module.get("devices", ()):
                self._relate(decision, self._names.get(device, self.root), "CONCERNS")

    def _relate(self, start: Name, end: Name, kind: str) -> None:
        self.relations[start, end, kind] = None


def verdicts_of(report: Mapping[str, Any]) -> Iterable[tuple[str, dict[str, Any]]]:
    """Return the kind and the facts of each verdict in the report of a layout flow."""
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
    after = report.get("post_layout")
    parasitics, simulation = (after.get(name) if isinstance(after, dict) else None for name in AFTER_LAYOUT)
    if isinstance(parasitics, dict):
        totals = {str(each["net"]): each.get("total_ff") for each in parasitics.get("nets", ())[:200]}
        open_ends = [str(text) for text in parasitics.get("unchecked", ())[:20]]
        facts = {"kind": "parasitic extraction", "passed": bool(totals) and not open_ends, "total_ff": totals}
        pairs = [each for each in parasitics.get("pairs", ())[:50] if isinstance(each, dict)]
        yield "parasitics", {**facts, "pairs": pairs, "unchecked": open_ends, **judged}
    if isinstance(simulation, dict):
        changes = {
            str(each["name"]): {side: each.get(side) for side in ("schematic", "extracted", "unit")}
            for corner in simulation.get("corners", ())[:1]
            for each in corner.get("measurements", ())[:50]
        }
        open_ends = [str(text) for text in simulation.get("unchecked", ())[:20]]
        facts = {"kind": "post-layout simulation", "passed": bool(changes) and not open_ends, "measured": changes}
        yield "post_layout", {**facts, "unchecked": open_ends, **judged}
    if isinstance(routing, dict):
        failed = [str(entry.get("net", entry)) for entry in routing.get("failed", ())[:50]]
        facts = {"kind": "routing", "passed": not failed, "routed": routing.get("routed"), "failed": failed}
        yield "routing", {**facts, **judged}


def _listed(constraints: Any) -> list[tuple[str, dict[str, Any]]]:
    """Return each constraint with its path; in lists by kind, a constraint gets the kind of its list."""
    if isinstance(constraints, dict):
        return [
            (f"constraints.{name}[{index}]", _of_kind(_SINGULAR.get(str(name), str(name)), item))
            for name, items in constraints.items()
            for index, item in enumerate(items if isinstance(items, list) else [items])
            if isinstance(item, dict)
        ]
    return [(f"constraints[{index}]", item) for index, item in enumerate(constraints)]


def _of_kind(kind: str, constraint: dict[str, Any]) -> dict[str, Any]:
    """Return a constraint with this kind; a ``kind`` that it already has, such as that of a net, becomes ``role``."""
    role = {"role": constraint["kind"]} if "kind" in constraint else {}
    return {**constraint, **role, "kind": kind}


def _strings(constraint: Mapping[str, Any]) -> list[str]:
    """Return the strings in a constraint's fields and in lists there, each once."""
    found: list[str] = []
    for value in constraint.values():
        for item in value if isinstance(value, list) else [value]:
            parts = item if isinstance(item, list) else [item]
            found += [part for part in parts if isinstance(part, str)]
    return list(dict.fromkeys(found))
