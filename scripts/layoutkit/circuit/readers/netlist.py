"""Reading a netlist of any supported format, and what is legal in it and yet often a mistake, as warnings."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from layoutkit.circuit.orientation import oriented
from layoutkit.circuit.passive_map import without_parasitics
from layoutkit.circuit.readers.json_reader import circuit_from_json, parse_json
from layoutkit.circuit.readers.source import NOT_IN_A_NAME, NetlistText, read_text
from layoutkit.circuit.readers.spice_deck import VECTOR
from layoutkit.circuit.readers.spice_reader import read_spice
from layoutkit.circuit.replaced_devices import ModelNames
from layoutkit.circuit.roles import recognised
from layoutkit.circuit.spice_writer import with_spelled_nets
from layoutkit.circuit.supplies import find_supplies
from layoutkit.errors import Findings, NetlistError, listed

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from layoutkit.circuit.circuit import Circuit, Connection, StatedSupplies

FORMATS = ("auto", "json", "spice")

SHOWN = 20
MAX_TERMINALS = 4
WRONG_BODIES = {
    "nmos": "NMOS transistors whose body is on a supply: the diodes from body to source and drain conduct",
    "pmos": "PMOS transistors whose body is on ground: the diodes from source and drain to body conduct",
}
"""Type of a transistor to what a body on the opposite supply is called in a warning."""

_SPICE_SUFFIXES = frozenset(
    {".sp", ".spi", ".spice", ".cdl", ".cir", ".ckt", ".net", ".scs", ".src", ".spx", ".subckt"}
)
SPICE_LINE = re.compile(
    r"^[ \t]*(?:(?:\*\*[ \t]*)?\.?(?:subckt|topckt)\s+\S|\.(?:end|include|param|global|lib)\b"
    r"|[mx]\S*\s+\(?\S+(?:\s+\S+){3})",
    re.IGNORECASE | re.MULTILINE,
)


def read_netlist(  # noqa: PLR0913 - each has a default
    path: str | Path | NetlistText,
    *,
    netlist_format: str = "auto",
    top: str | None = None,
    identify_modules: bool = True,
    black_boxes: Collection[str] = (),
    parameters: Mapping[str, str | float] | None = None,
    names: ModelNames | None = None,
    keep_parasitics: bool = False,
    keep_unknown: bool = False,
    supplies: StatedSupplies | None = None,
) -> Circuit:
    """Return the flat circuit of a netlist.

    Args:
        path: JSON, SPICE, CDL or Spectre netlist: a file, or the text itself.
        netlist_format: ``json``, ``spice`` (which includes CDL and Spectre) or ``auto``: by suffix, then by content; a
            text is JSON if it begins with a brace or bracket.
        top: Cell or subcircuit to read; default: the one the netlist marks or the only one nobody instantiates.
        identify_modules: Whether to recognise differential pairs, current mirrors and other groups.
        black_boxes: Subcircuits that may be empty or undefined; their instances are kept as black boxes.
        parameters: Values of parameters that the netlist leaves open or sets itself, such as ``{"w0": "2u"}``; see
            ``read_spice``.
        names: What the names of models mean in the process that the netlist is read for, and which ones the user
            replaces; None for a netlist of any process.
        keep_parasitics: Whether capacitors too small to be drawn stay; see ``without_parasitics``.
        keep_unknown: Whether reading goes on where the netlist does not define a cell, for a circuit that is to be
            understood and not drawn: each instance is kept as a black box, and a warning names it with its nets.
        supplies: Power and ground as the user states them, in place of those found and of those that the netlist
            itself states; ``supplies.supply_faults`` finds names that the circuit lacks.

    Raises:
        UnsupportedOperationError: If the netlist holds devices of the process that are neither drawn nor replaced.
        LayoutkitError: If the user's device map does not fit the netlist and the process.
        FileError: If a file is missing, unreadable, too large or binary.
        NetlistError: If the netlist is faulty, does not say which cell is the top, or instantiates an empty or
            undefined subcircuit that is not listed.
    """
    if netlist_format not in FORMATS:
        raise NetlistError(f"Unknown netlist format '{netlist_format}'; known are {', '.join(FORMATS)}")
    names = names or ModelNames()
    text = read_text(path)
    if netlist_format == "json" or (netlist_format == "auto" and _is_json(text, path)):
        if parameters:
            text = f"a JSON netlist has no parameters: {', '.join(sorted(parameters))}; its sizes are numbers"
            raise NetlistError(text, details={"param_name": "parameters"})
        circuit = circuit_from_json(parse_json(text), top=top, black_boxes=black_boxes, keep_unknown=keep_unknown)
    else:
        circuit = read_spice(
            path, top=top, black_boxes=black_boxes, parameters=parameters, names=names, keep_unknown=keep_unknown
        )
    _check_names(circuit)
    circuit = with_spelled_nets(names.applied(circuit))
    circuit = replace(circuit, supplies=supplies or circuit.supplies)
    circuit = oriented(without_parasitics(circuit, names.technology, keep=keep_parasitics))
    boxes = unknown_cells(circuit, black_boxes)
    circuit = replace(
        circuit, warnings=(*circuit.warnings, *boxes, *suspicious_nets(circuit), *suspicious_bodies(circuit))
    )
    return recognised(circuit) if identify_modules else circuit


def _check_names(circuit: Circuit) -> None:
    """Refuse names that no other netlist of the flow can hold, not even the stored circuit.

    Raises:
        NetlistError: If there are any; the message lists them.
    """
    names = {circuit.name, *circuit.nets, *(device.id for device in circuit.devices)}
    vectors = sorted(name for name in names - {circuit.name} if VECTOR.search(name))
    if vectors:
        text = "Invalid netlist: vectors that are not connected bit by bit; write each bit: " + listed(
            vectors, joint=" "
        )
        raise NetlistError(text, details={"names": vectors})
    odd = sorted(name for name in names if NOT_IN_A_NAME.search(name))
    if odd:
        raise NetlistError(
            f"Invalid netlist: names must be without quotes, (), braces, '=', ',' and ';', which other netlists cannot "
            f"hold in a name; rename {listed(odd, SHOWN)}",
            details={"names": odd},
        )


def _is_json(text: str, path: str | Path | NetlistText) -> bool:
    if text.lstrip().startswith(("{", "[")):
        return True
    suffix = ".spice" if isinstance(path, NetlistText) else Path(path).suffix.lower()
    if suffix == ".json" or suffix in _SPICE_SUFFIXES:
        return suffix == ".json"
    return SPICE_LINE.search(text) is None


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
        elif net in supplies and net not in supplies.fed:
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
