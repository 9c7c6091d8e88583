"""Reading a netlist of any supported format."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from layoutkit.circuit.orientation import oriented
from layoutkit.circuit.passive_map import without_parasitics
from layoutkit.circuit.readers.findings import shown_words
from layoutkit.circuit.readers.json_reader import circuit_from_json, parse_json
from layoutkit.circuit.readers.netlist_warnings import suspicious_bodies, suspicious_nets, unknown_cells
from layoutkit.circuit.readers.source import NOT_IN_A_NAME, NetlistText, read_text
from layoutkit.circuit.readers.spice_reader import read_spice
from layoutkit.circuit.readers.vectors import VECTOR
from layoutkit.circuit.replaced_devices import ModelNames
from layoutkit.circuit.roles import recognised
from layoutkit.circuit.spice_writer import with_spelled_nets
from layoutkit.errors import NetlistError, listed

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from layoutkit.circuit.circuit import Circuit, StatedSupplies

FORMATS = ("auto", "json", "spice")

SHOWN = 20

_SPICE_SUFFIXES = frozenset(
    {".sp", ".spi", ".spice", ".cdl", ".cir", ".ckt", ".net", ".scs", ".src", ".spx", ".subckt"}
)
_SPICE_LINE = re.compile(
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
        text = f"Invalid netlist: vectors that are not connected bit by bit; write each bit: {shown_words(vectors)}"
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
    return _SPICE_LINE.search(text) is None
