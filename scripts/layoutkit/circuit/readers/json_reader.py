"""Read the JSON netlist format into a flat circuit; one error reports every fault of the document.

Three shapes are read: ``{"cells": [...], "top": name}`` with instances of cells in cells, one flat cell
``{"name": ..., "devices": [...]}``, and the ``{"circuit": {...}}`` that ``netlist.parse`` itself answers.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from layoutkit.circuit.circuit import BlackBox, Circuit, SubcircuitInstance
from layoutkit.circuit.readers.json_cells import MAX_FAULTS, Cell, CellReader, CellUse
from layoutkit.circuit.readers.source import BLACK_BOX_HINT, check_listed, no_top
from layoutkit.circuit.supplies import supply_faults
from layoutkit.errors import NetlistError, repeated
from layoutkit.technology.device_kinds import KINDS
from layoutkit.technology.finger_widths import circuit_fault, stated_faults
from sturdy.strict_json import load_json

if TYPE_CHECKING:
    from collections.abc import Collection

    from layoutkit.circuit.circuit import Device
    from layoutkit.circuit.readers.json_cells import Faults

MAX_DEVICES = 50_000
MAX_SHOWN = 10
SEPARATOR = "."
_QUOTED = re.compile(r"(?P<quote>['\"]).*(?P=quote)", re.DOTALL)


def parse_json(text: str) -> Any:
    """Return the document of a JSON text, refusing what JSON readers let through: NaN and keys given twice.

    Raises:
        NetlistError: If the text is not JSON.
    """
    try:
        return load_json(text)
    except RecursionError:
        raise NetlistError("Invalid JSON format: nested too deeply") from None
    except ValueError as error:
        reason = str(error) if '"devices"' in text or '"cells"' in text else _QUOTED.sub("...", str(error))
        raise NetlistError(f"Invalid JSON format: {reason}") from None


def circuit_from_json(
    data: Any, *, top: str | None = None, black_boxes: Collection[str] = (), keep_unknown: bool = False
) -> Circuit:
    """Return the flat circuit of a netlist document.

    Args:
        data: The parsed document.
        top: Cell to read. Default: the document's ``top``, else the only cell that no other one instantiates.
        black_boxes: Cells that may be empty or undefined; their instances are kept as black boxes.
        keep_unknown: Whether instances of empty and undefined cells that are not listed are kept, too.

    Raises:
        NetlistError: If the document is not a netlist, or instantiates an empty or undefined cell that is not listed.
    """
    if isinstance(data, dict) and isinstance(data.get("circuit"), dict) and "devices" not in data:
        data = data["circuit"]
    reader = CellReader()
    if isinstance(data, dict) and "devices" in data and "cells" not in data:
        cells, named_top = [reader.cell(data, part="content")], ""
    else:
        cells, named_top = _document(data, reader)
    _raise_faults(reader.faults)
    by_name = {cell.name: cell for cell in cells}
    if not cells:
        if top:
            raise no_top((), "cell", top)
        return Circuit(named_top)
    chosen = _choose_top(cells, by_name, top or named_top)
    expansion = _Expansion(by_name, reader.faults, black_boxes, keep_unknown)
    expansion.expand(chosen, "", {port: port for port in chosen.ports}, (chosen.name,))
    if not reader.faults and (fault := circuit_fault(sum(each.m * each.nf for each in expansion.devices))):
        reader.faults.append(("devices", fault))
    _raise_faults(reader.faults)
    check_listed(black_boxes, expansion.black_boxes)
    warnings = tuple(f"ignored field: {name}" for name in sorted(reader.ignored))
    boxes = tuple(expansion.black_boxes)
    instances = tuple(expansion.instances)
    devices, own = tuple(expansion.devices), (chosen.replaced, chosen.supplies)
    circuit = Circuit(chosen.name, devices, chosen.ports, chosen.modules, boxes, warnings, instances, *own)
    if circuit.supplies is not None:
        _raise_faults([(f"supplies.{kind}", text) for kind, text, _ in supply_faults(circuit, circuit.supplies)])
    return circuit


def _document(data: Any, reader: CellReader) -> tuple[list[Cell], str]:
    """Return the cells of a document and the top that it names, both empty where it has faults."""
    fits = reader.fits("netlist" if not isinstance(data, dict) else "cells", data, ())
    if not isinstance(data, dict) or "cells" not in data:
        return [], ""
    reader.note_unknown(data, "cells", ())
    listed = data["cells"] if isinstance(data["cells"], list) else []
    cells = [reader.cell(cell, ("cells", index)) for index, cell in enumerate(listed)]
    for name in sorted(repeated(cell.name for cell in cells if cell.name)):
        reader.faults.append(("cells", f"cell '{name}' is defined twice"))
    reader.check_printable(("top",), data.get("top"))
    return cells, data.get("top", "") if fits else ""


def _raise_faults(faults: Faults) -> None:
    if not faults:
        return
    details = {
        "faults": [{"field": field, "reason": reason} for field, reason in faults[:MAX_FAULTS]],
        "known_types": list(KINDS),
    }
    if all(reason.startswith("Unknown device type: ") for _, reason in faults):
        named = (reason.removeprefix("Unknown device type: ").partition(" (did you mean ")[0] for _, reason in faults)
        types = list(dict.fromkeys(named))
        raise NetlistError(f"Unknown device type: {', '.join(types[:MAX_SHOWN])}", details=details)
    shown = "; ".join(f"{field} - {reason}" for field, reason in faults[:MAX_SHOWN])
    at_least = "at least " if len(faults) >= MAX_FAULTS else ""
    more = f"; and {at_least}{len(faults) - MAX_SHOWN} more" if len(faults) > MAX_SHOWN else ""
    raise NetlistError(f"Schema validation failed: {shown}{more}", details=details)


def _choose_top(cells: list[Cell], by_name: dict[str, Cell], top: str) -> Cell:
    if top:
        if top not in by_name:
            raise no_top(by_name, "cell", top)
        return by_name[top]
    used = {instance.cell for cell in cells for instance in cell.instances}
    roots = [cell for cell in cells if cell.name not in used]
    if len(roots) == 1:
        return roots[0]
    raise no_top([cell.name for cell in roots or cells])


class _Expansion:
    """Replaces instances by what their cells contain."""

    def __init__(
        self, cells: dict[str, Cell], faults: Faults, black_boxes: Collection[str], keep_unknown: bool
    ) -> None:
        self._keep_unknown = keep_unknown
        self._cells = cells
        self._listed = {name.lower() for name in black_boxes}
        self.black_boxes: list[BlackBox] = []
        self._faults = faults
        self._visited = 0
        self.devices: list[Device] = []
        self.instances: list[SubcircuitInstance] = []

    def expand(self, cell: Cell, path: str, nets: dict[str, str], ancestors: tuple[str, ...]) -> None:
        self._visited += 1
        if self._visited > MAX_DEVICES or len(self.devices) > MAX_DEVICES:
            raise NetlistError(f"Schema validation failed: cells - expand to more than {MAX_DEVICES} devices")
        for device in cell.devices:
            terminals = {terminal: nets.get(net, path + net) for terminal, net in device.terminals.items()}
            self.devices.append(replace(device, id=path + device.id, terminals=terminals))
            self._faults += [
                (f"device '{path}{device.id}'", text) for text in stated_faults(device.params, device.m, device.nf)
            ]
        for instance in cell.instances:
            self._instance(instance, path, nets, ancestors)

    def _instance(self, instance: CellUse, path: str, nets: dict[str, str], ancestors: tuple[str, ...]) -> None:
        cell = self._cells.get(instance.cell)
        if cell is None or not (cell.devices or cell.instances):
            self._keep(instance, path, nets, "no cell is named" if cell is None else "no device is in the cell")
            return
        if cell.name in ancestors:
            raise NetlistError(
                f"Schema validation failed: {instance.field}.cell - cell contains itself: "
                f"{' > '.join((*ancestors, cell.name))}"
            )
        wrong = sorted(set(cell.ports) ^ set(instance.terminals))
        if wrong:
            self._faults.append(
                (f"{instance.field}.terminals", f"must connect {', '.join(cell.ports)}; check {', '.join(wrong)}")
            )
            return
        inner = {port: nets.get(net, path + net) for port, net in instance.terminals.items()}
        own = {f"{path}{instance.id}{SEPARATOR}{device.id}": device.terminals for device in cell.devices}
        parent = path.removesuffix(SEPARATOR)
        self.instances.append(SubcircuitInstance(path + instance.id, parent, cell.name, instance.terminals, own))
        self.expand(cell, f"{path}{instance.id}{SEPARATOR}", inner, (*ancestors, cell.name))

    def _keep(self, instance: CellUse, path: str, nets: dict[str, str], reason: str) -> None:
        """Keep an instance whose content is unknown, if the caller listed its cell or wants all kept."""
        if not self._keep_unknown and instance.cell.lower() not in self._listed:
            self._faults.append((f"{instance.field}.cell", f"{reason} '{instance.cell}'; {BLACK_BOX_HINT}"))
            return
        terminals = {port: nets.get(net, path + net) for port, net in instance.terminals.items()}
        self.black_boxes.append(BlackBox(path + instance.id, instance.cell, terminals))
