"""What is legal in a netlist and yet often a mistake: nets with too few terminals, supplies without a port, bodies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutkit.circuit.readers.findings import Findings
from layoutkit.circuit.supplies import find_supplies

if TYPE_CHECKING:
    from collections.abc import Collection

    from layoutkit.circuit.circuit import Circuit, Connection

MAX_TERMINALS = 4
WRONG_BODIES = {
    "nmos": "NMOS transistors whose body is on a supply: the diodes from body to source and drain conduct",
    "pmos": "PMOS transistors whose body is on ground: the diodes from source and drain to body conduct",
}
"""Type of a transistor to what a body on the opposite supply is called in a warning."""


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
        elif net in supplies and net not in supplies.regulated:
            findings.warn("supplies that are not ports; the layout has no pin for them", net)
    return findings.warnings


def unknown_cells(circuit: Circuit, listed: Collection[str]) -> tuple[str, ...]:
    """Return the black boxes of a circuit with what hangs on them, in words.

    Args:
        circuit: The circuit.
        listed: Cells that the caller listed as black boxes; the netlist lacks all others by mistake.
    """
    findings, known = Findings(), {name.lower() for name in listed}
    for box in circuit.black_boxes:
        if box.cell.lower() in known:
            findings.warn("black boxes, whose content is unknown", f"{box.id} ({box.cell})")
        else:
            findings.warn(
                "cells that the netlist does not define: what hangs on them is not understood, and a layout needs them",
                f"{box.id} ({box.cell} on {' '.join(dict.fromkeys(box.nets.values()))})",
            )
    return findings.warnings


def suspicious_bodies(circuit: Circuit) -> tuple[str, ...]:
    """Return the transistors whose bodies are on the supply of the opposite type, with the net, in words."""
    findings, supplies = Findings(), find_supplies(circuit)
    opposite = {"nmos": supplies.power, "pmos": supplies.ground}
    for device in circuit.devices:
        body = device.terminals.get("b", "")
        if device.is_mos and body in opposite[device.type]:
            findings.warn(WRONG_BODIES[device.type], f"{device.id} ({body})")
    return findings.warnings


def _leads_nowhere(circuit: Circuit, connections: tuple[Connection, ...]) -> bool:
    """Whether one terminal alone is on a net, or only gates and bulks, which carry no current."""
    return len(connections) == 1 or all(
        each.terminal in circuit.device(each.device).kind.sensing for each in connections
    )
