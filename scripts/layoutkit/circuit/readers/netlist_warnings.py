"""What is legal in a netlist and yet often a mistake: nets with too few terminals, supplies without a port."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutkit.circuit.readers.findings import Findings
from layoutkit.circuit.supplies import find_supplies

if TYPE_CHECKING:
    from layoutkit.circuit.circuit import Circuit, Connection

MAX_TERMINALS = 4


def suspicious_nets(circuit: Circuit) -> tuple[str, ...]:
    """Return what its author should look at, in words; nothing for a circuit without ports, such as a fragment."""
    if not circuit.ports:
        return ()
    findings = Findings()
    supplies, ports = find_supplies(circuit), frozenset(circuit.ports)
    for net, connections in circuit.nets.items():
        if net in ports or net in circuit.black_box_nets:
            continue
        if _leads_nowhere(circuit, connections):
            ends = " ".join(f"{each.device}.{each.terminal}" for each in connections[:MAX_TERMINALS])
            more = " ..." if len(connections) > MAX_TERMINALS else ""
            subject = f"{net} ({ends}{more})"
            findings.warn(
                "nets that are not ports and have one terminal or only gates (a typing error or a forgotten port)",
                subject,
            )
        elif net in supplies:
            findings.warn("supplies that are not ports; the layout has no pin for them", net)
    return findings.warnings


def _leads_nowhere(circuit: Circuit, connections: tuple[Connection, ...]) -> bool:
    """Whether one terminal alone is on a net, or only gates and bulks, which carry no current."""
    return len(connections) == 1 or all(
        each.terminal in circuit.device(each.device).kind.sensing for each in connections
    )
