"""Checking the cells, devices and modules of a JSON netlist by hand: every fault with the path of its field.

The same rules are written as a JSON Schema in the ``netlist-parse`` skill; a test keeps the two in step. They are
checked here so that the engine needs no schema library and its messages can say what to write instead.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from layoutkit.circuit.circuit import INTEGER_PARAMS, Device, RecognisedModule
from layoutkit.circuit.readers.findings import repeated
from layoutkit.circuit.readers.spice_expressions import parse_number
from layoutkit.technology.device_kinds import KINDS

Faults = list[tuple[str, str]]

LARGEST_SIZE_M = 1e-3
LARGEST_COUNT = 1_000_000
LARGEST_NUMBER = 10**30
MAX_NAME_LENGTH = 4096

_NAME = re.compile(rf"[^\s,;='\"(){{}}]{{1,{MAX_NAME_LENGTH}}}")
_NAME_RULE = f"must be a word of 1 to {MAX_NAME_LENGTH} characters without spaces, quotes, (), braces, '=', ',' or ';'"
_TYPE_ALIASES = {other: name for name, kind in KINDS.items() for other in kind.other_names}


@dataclass(frozen=True)
class Instance:
    """One use of a cell in another; ``field`` is its place in the document."""

    id: str
    cell: str
    terminals: dict[str, str]
    field: str


@dataclass(frozen=True)
class Cell:
    """One checked cell."""

    name: str
    ports: tuple[str, ...] = ()
    devices: tuple[Device, ...] = ()
    instances: tuple[Instance, ...] = ()
    modules: tuple[RecognisedModule, ...] = ()


class CellChecker:
    """Turns document parts into cells and collects what is wrong with them.

    Attributes:
        faults: Pairs of field path and reason.
        ignored: Names of fields that are not part of the format.
    """

    def __init__(self) -> None:
        self.faults: Faults = []
        self.ignored: set[str] = set()

    def fault(self, field: str, reason: str) -> None:
        """Record a fault of one field."""
        self.faults.append((field, reason))

    def ignore_unknown(self, data: dict[str, Any], known: set[str], field: str) -> None:
        """Note the fields of ``data`` that are not in ``known``."""
        prefix = re.sub(r"\[\d+\]", "[]", f"{field}." if field else "")
        self.ignored.update(f"{prefix}{name[:MAX_NAME_LENGTH]}" for name in data.keys() - known)

    def cell(self, data: Any, field: str, *, needs_name: bool = True) -> Cell:
        """Return the cell of ``data``; parts with faults are left out."""
        if not isinstance(data, dict):
            self.fault(field, f"must be an object, got {type_name(data)}")
            return Cell("")
        known = {"name", "ports", "devices", "instances", "nets", "modules", "description", "warnings"}
        self.ignore_unknown(data, known, field)
        name = self._name(data, "name", field) if needs_name or data.get("name") else ""
        ports = [self.word(port, _at(_join(field, "ports"), i)) for i, port in self._items(data, "ports", field)]
        if len(set(ports)) < len(ports):
            self.fault(_join(field, "ports"), "names a port twice")
        devices = [self._device(d, _at(_join(field, "devices"), i)) for i, d in self._items(data, "devices", field)]
        instances = [
            self._instance(item, _at(_join(field, "instances"), i)) for i, item in self._items(data, "instances", field)
        ]
        modules = [self._module(m, _at(_join(field, "modules"), i)) for i, m in self._items(data, "modules", field)]
        ids = [item.id for item in (*devices, *instances) if item is not None and item.id]
        for twice in sorted(repeated(ids)):
            self.fault(_join(field, "devices"), f"id '{twice}' is used twice")
        return Cell(
            name,
            tuple(ports),
            tuple(d for d in devices if d is not None),
            tuple(i for i in instances if i is not None),
            tuple(m for m in modules if m is not None),
        )

    def _device(self, data: Any, field: str) -> Device | None:
        if not isinstance(data, dict):
            self.fault(field, f"must be an object, got {type_name(data)}")
            return None
        self.ignore_unknown(data, {"id", "type", "model", "params", "terminals", "name"}, field)
        device_id = self._name(data, "id", field)
        device_type = self._type(data, field)
        model = self.word(data["model"], f"{field}.model") if "model" in data else device_type
        params = self._params(data.get("params", {}), f"{field}.params")
        kind = KINDS.get(device_type)
        area = params.get("area") if kind is not None and "area" in kind.compared else None
        if area is not None and not 0 < area < LARGEST_SIZE_M**2:
            reason = f"must be between 0 and {LARGEST_SIZE_M**2:g} square metres, got {area:g}"
            self.fault(f"{field}.params.area", reason)
        terminals = self._terminals(data, device_type, field)
        return Device(device_id, device_type, model, params, terminals) if device_id and device_type else None

    def _type(self, data: dict[str, Any], field: str) -> str:
        if "type" not in data:
            self.fault(f"{field}.type", f"is missing; known types: {', '.join(KINDS)}")
            return ""
        value = data["type"]
        if not isinstance(value, str):
            self.fault(f"{field}.type", f"must be a string, got {type_name(value)}")
            return ""
        lowered = _TYPE_ALIASES.get(value.lower(), value.lower())
        if lowered not in KINDS:
            self.fault(f"{field}.type", f"Unknown device type: {value[:MAX_NAME_LENGTH]}")
            return ""
        return lowered

    def _params(self, data: Any, field: str) -> dict[str, float]:
        if not isinstance(data, dict):
            self.fault(field, f"must be an object, got {type_name(data)}")
            return {}
        result: dict[str, float] = {}
        for name, value in data.items():
            reason = _param_fault(name.lower(), value)
            if reason:
                self.fault(f"{field}.{name}", reason)
            else:
                result[name.lower()] = int(value) if name.lower() in INTEGER_PARAMS else float(value)
        return result

    def _terminals(self, data: dict[str, Any], device_type: str, field: str) -> dict[str, str]:
        terminals = data.get("terminals")
        field = f"{field}.terminals"
        if not isinstance(terminals, dict):
            self.fault(field, "is missing" if terminals is None else f"must be an object, got {type_name(terminals)}")
            return {}
        kind = KINDS.get(device_type)
        aliases = {} if kind is None else kind.terminal_names
        nets: dict[str, str] = {}
        for name, net in terminals.items():
            terminal = aliases.get(name.lower(), name.lower())
            if terminal in nets:
                self.fault(field, f"terminal '{terminal}' is given twice")
            nets[terminal] = self.word(net, f"{field}.{name}")
        if kind is None:
            return nets
        needed = ", ".join(kind.terminals)
        for terminal in kind.terminals:
            if terminal not in nets:
                self.fault(field, f"terminal '{terminal}' is missing; {device_type} has {needed}")
        for terminal in nets:
            if terminal not in kind.all_terminals:
                self.fault(f"{field}.{terminal}", f"{device_type} has no such terminal; it has {needed}")
        return {terminal: nets[terminal] for terminal in kind.all_terminals if terminal in nets}

    def _instance(self, data: Any, field: str) -> Instance | None:
        if not isinstance(data, dict):
            self.fault(field, f"must be an object, got {type_name(data)}")
            return None
        self.ignore_unknown(data, {"id", "cell", "terminals"}, field)
        instance_id, cell = self._name(data, "id", field), self._name(data, "cell", field)
        terminals = data.get("terminals", {})
        if not isinstance(terminals, dict):
            self.fault(f"{field}.terminals", f"must be an object, got {type_name(terminals)}")
            return None
        nets = {port: self.word(net, f"{field}.terminals.{port}") for port, net in terminals.items()}
        return Instance(instance_id, cell, nets, field) if instance_id and cell else None

    def _module(self, data: Any, field: str) -> RecognisedModule | None:
        if not isinstance(data, dict):
            self.fault(field, f"must be an object, got {type_name(data)}")
            return None
        module_id, kind = self._name(data, "id", field), self._name(data, "type", field)
        devices = [self.word(d, _at(f"{field}.devices", i)) for i, d in self._items(data, "devices", field)]
        properties = data.get("properties", {})
        if not isinstance(properties, dict):
            self.fault(f"{field}.properties", f"must be an object, got {type_name(properties)}")
            properties = {}
        return RecognisedModule(module_id, kind, tuple(devices), properties)

    def _items(self, data: dict[str, Any], name: str, field: str) -> list[tuple[int, Any]]:
        items = data.get(name, [])
        if not isinstance(items, list):
            self.fault(_join(field, name), f"must be an array, got {type_name(items)}")
            return []
        return list(enumerate(items))

    def _name(self, data: dict[str, Any], key: str, field: str) -> str:
        if key not in data:
            self.fault(_join(field, key), "is missing")
            return ""
        return self.word(data[key], _join(field, key))

    def word(self, value: Any, field: str) -> str:
        """Return ``value``, or an empty text and a fault where it is no name."""
        if not isinstance(value, str):
            self.fault(field, f"must be a string, got {type_name(value)}")
            return ""
        if _NAME.fullmatch(value) is None or not value.isprintable():
            self.fault(field, f"{_NAME_RULE}; got {value[:40]!r}")
            return ""
        return value


def _param_fault(name: str, value: Any) -> str:
    """Return what is wrong with a parameter, or an empty text."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        number = parse_number(value) if isinstance(value, str) else None
        hint = "" if number is None else f" (write {number:g})"
        return f"must be a number in SI units, got {type_name(value)}{hint}"
    if (isinstance(value, int) and abs(value) > LARGEST_NUMBER) or not math.isfinite(value):
        return "is out of range"
    if name in {"w", "l"} and not 0 < value < LARGEST_SIZE_M:
        hint = f"; write {value:g}e-6 for {value:g} um" if value >= 0.01 else ""
        return f"must be between 0 and {LARGEST_SIZE_M:g} metres, got {value:g}{hint}"
    if name in INTEGER_PARAMS and not (1 <= value <= LARGEST_COUNT and float(value).is_integer()):
        return f"must be an integer from 1 to {LARGEST_COUNT}, got {value:g}"
    return ""


def type_name(value: Any) -> str:
    """Return what JSON calls the type of a value."""
    names = {dict: "object", list: "array", str: "string", bool: "boolean", int: "number", float: "number"}
    return "null" if value is None else names[type(value)]


def _join(field: str, name: str) -> str:
    return f"{field}.{name}" if field else name


def _at(field: str, index: int) -> str:
    return f"{field}[{index}]"
