"""Read the cells, devices and modules of a JSON netlist; every fault is reported with the path of its field.

``netlist.schema.json`` states the format in plain names such as ``nmos``, ``w`` and ``d``. Other spellings are replaced
before the check. What a schema cannot say is checked here: names are printable, and nothing is given twice.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layoutkit.circuit.circuit import (
    INTEGER_PARAMS,
    JUNCTIONS,
    Device,
    RecognisedModule,
    ReplacedDevice,
    StatedSupplies,
    stated_supplies,
)
from layoutkit.circuit.readers.spice_expressions import parse_number
from layoutkit.errors import did_you_mean, repeated
from layoutkit.file_schema import JsonSchema, json_place
from layoutkit.technology.device_kinds import KINDS
from sturdy.schema_acceptance import accepts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from layoutkit.technology.device_kinds import DeviceKind

Faults = list[tuple[str, str]]
Place = tuple[Any, ...]


class _NetlistSchema(JsonSchema):
    """``netlist.schema.json`` with the kinds of devices, which ``device_kinds`` declares."""

    @cached_property
    def content(self) -> dict[str, Any]:
        """The schema as JSON data."""
        data: dict[str, Any] = json.loads(self.file.read_text(encoding="utf-8"))
        device = data["$defs"]["device"]
        device["properties"]["type"]["enum"] = list(KINDS)
        listed = (f"{name}: {' '.join(kind.terminals)}" + _optional(kind) for name, kind in KINDS.items())
        device["properties"]["terminals"]["description"] = f"{'; '.join(listed)}. {FULL_NAMES}"
        areas = [name for name, kind in KINDS.items() if "area" in kind.compared and not kind.area_counts]
        area = {"params": {"properties": {"area": {"$ref": "#/$defs/area"}}}}
        device["allOf"] = [*map(_terminals_of, KINDS.values()), _of_types(areas, area)]
        return data

    def accepts(self, data: Any, part: str = "") -> bool:
        """Return whether ``faults`` finds none; of a device only what is about its own kind is looked at."""
        kind = self._kinds.get(str(data.get("type"))) if part == "device" and isinstance(data, dict) else None
        return (kind is not None and accepts(kind, data, self.content)) or super().accepts(data, part)

    @cached_property
    def _kinds(self) -> dict[str, dict[str, Any]]:
        """The schema of the devices of each kind."""
        device = self.content["$defs"]["device"]
        rules: dict[str, list[Any]] = {name: [] for name in KINDS}
        for each in device["allOf"]:
            for name in each["if"]["properties"]["type"]["enum"]:
                rules[name].append(each["then"])
        return {name: {**device, "allOf": found} for name, found in rules.items()}


def _terminals_of(kind: DeviceKind) -> dict[str, Any]:
    """Return the part of the schema about the terminals of one kind."""
    which = f"{kind.noun} ({kind.name}) has"
    has = f"it has {', '.join(kind.terminals)}{_optional(kind)}"
    names = {"enum": list(kind.all_terminals), "x-error": {"enum": f"{which} no such terminal; {has}"}}
    missing = {"required": f"terminal '{{name}}' is missing; {which} {', '.join(kind.terminals)}"}
    terminals = {"required": list(kind.terminals), "propertyNames": names, "x-error": missing}
    return _of_types([kind.name], {"terminals": terminals})


def _optional(kind: DeviceKind) -> str:
    return f", optionally {', '.join(kind.optional)}" if kind.optional else ""


def _of_types(names: list[str], properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "if": {"required": ["type"], "properties": {"type": {"enum": names}}},
        "then": {"properties": properties},
    }


SCHEMA = _NetlistSchema(Path(__file__).with_name("netlist.schema.json"))
MAX_FAULTS = 1000
MAX_NAME = 200  # characters of a name in a message
LIKELY_UM = (0.01, 1e6)  # sizes between these numbers are probably in micrometres

FULL_NAMES = "Full names such as drain and anode are read too, in any case."
_TYPES = {other: name for name, kind in KINDS.items() for other in (name, *kind.other_names)}


@dataclass(frozen=True)
class CellUse:
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
    instances: tuple[CellUse, ...] = ()
    modules: tuple[RecognisedModule, ...] = ()
    replaced: tuple[ReplacedDevice, ...] = ()
    supplies: StatedSupplies | None = None


@cache
def _fields(part: str) -> dict[str, Any]:
    """Return the fields of a part of the format, with their schemas."""
    fields: dict[str, Any] = SCHEMA.content["$defs"][part]["properties"]
    return fields


class CellReader:
    """Turns the parts of a document into cells and collects what is wrong with them.

    Attributes:
        faults: Pairs of field path and reason; the schema's faults are no longer collected after ``MAX_FAULTS``.
        ignored: Names of fields that are not part of the format.
    """

    def __init__(self) -> None:
        self.faults: Faults = []
        self.ignored: set[str] = set()

    def cell(self, data: Any, place: Place = (), part: str = "cell") -> Cell:
        """Return the cell of ``data``; it is incomplete where it has faults."""
        if not self.fits(part, data, place) and not isinstance(data, dict):
            return Cell("")
        self.note_unknown(data, "content", place)
        name, ports = data.get("name", ""), _listed(data, "ports")
        self.check_printable((*place, "name"), name)
        for index, port in enumerate(ports):
            self.check_printable((*place, "ports", index), port)
        devices = self._each(self._device, data, "devices", place)
        instances = self._each(self._instance, data, "instances", place)
        modules = self._each(self._module, data, "modules", place)
        replaced = self._each(self._replaced, data, "replaced", place)
        entries = [*_listed(data, "devices"), *_listed(data, "instances")]
        ids = [entry["id"] for entry in entries if isinstance(entry, dict) and isinstance(entry.get("id"), str)]
        for twice in sorted(repeated(ids)):
            self.faults.append((json_place((*place, "devices")), f"id '{twice[:MAX_NAME]}' is used twice"))
        stated = data.get("supplies")
        is_read = "supplies" in data and self._is_read("supplies", stated, (*place, "supplies"))
        supplies = stated_supplies(stated) if is_read else None
        return Cell(
            name if isinstance(name, str) else "", tuple(ports), devices, instances, modules, replaced, supplies
        )

    def _is_read(self, part: str, data: Any, place: Place, *names: str) -> bool:
        """Return whether ``data`` is such a part, of which some fields are ``names``; note what it has besides."""
        if not self.fits(part, data, place):
            return False
        self.note_unknown(data, part, place)
        for key in names:
            self.check_printable((*place, key), data[key])
        return True

    def _each(self, read: Callable[[Any, Place], Any], data: dict[str, Any], key: str, place: Place) -> tuple[Any, ...]:
        found = [read(item, (*place, key, index)) for index, item in enumerate(_listed(data, key))]
        return tuple(item for item in found if item is not None)

    def _device(self, data: Any, place: Place) -> Device | None:
        plain = _in_plain_names(data) if isinstance(data, dict) else data
        fits = self.fits("device", plain, place, data)
        nouns = {"params": "parameter", "terminals": "terminal"}
        fewer = any(
            len(plain[key]) < len(data[key])
            for key in nouns
            if isinstance(data, dict) and isinstance(data.get(key), dict)
        )
        for (key, name), spelled in _spellings(plain, data).items() if fewer else ():
            if len(spelled) > 1:
                self.faults.append((json_place((*place, key)), f"{nouns[key]} '{name[:MAX_NAME]}' is given twice"))
        if not fits:
            return None
        self.note_unknown(data, "device", place)
        kind, nets = KINDS[plain["type"]], plain["terminals"]
        model = plain.get("model", kind.name)
        for key, name in (("id", plain["id"]), ("model", model)):
            self.check_printable((*place, key), name)
        for terminal, net in nets.items():
            self.check_printable((*place, "terminals", terminal), net)
        params = {
            name: int(value) if name in INTEGER_PARAMS else float(value)
            for name, value in plain.get("params", {}).items()
        }
        terminals = {terminal: nets[terminal] for terminal in kind.all_terminals if terminal in nets}
        junctions = {name: params.pop(name) for name in JUNCTIONS if kind.is_mos and name in params}
        return Device(plain["id"], kind.name, model, params, terminals, junctions)

    def _instance(self, data: Any, place: Place) -> CellUse | None:
        if not self._is_read("instance", data, place, "id", "cell"):
            return None
        nets = data.get("terminals", {})
        for port, net in nets.items():
            self.check_printable((*place, "terminals", port), net)
        return CellUse(data["id"], data["cell"], dict(nets), json_place(place))

    def _module(self, data: Any, place: Place) -> RecognisedModule | None:
        if not self.fits("module", data, place):
            return None
        for key in ("id", "type"):
            self.check_printable((*place, key), data[key])
        devices = tuple(data.get("devices", ()))
        for index, device in enumerate(devices):
            self.check_printable((*place, "devices", index), device)
        return RecognisedModule(data["id"], data["type"], devices, dict(data.get("properties", {})))

    def _replaced(self, data: Any, place: Place) -> ReplacedDevice | None:
        if not self._is_read("replaced", data, place, "device", "model"):
            return None
        params = {name: float(value) for name, value in data["params"].items()}
        return ReplacedDevice(data["device"], data["model"], params, data.get("asked", False))

    def fits(self, part: str, value: Any, place: Place, data: Any = None) -> bool:
        """Return whether ``value`` is such a part of the format; entries that are checked on their own are left out.

        Args:
            part: Name of the part in ``$defs`` of the schema.
            value: The part.
            place: Where it is in the document.
            data: The part in the spelling of the document, where that differs.
        """
        if isinstance(value, dict):
            fields = SCHEMA.content["$defs"]["content" if part == "cell" else part].get("properties", {})
            apart = (
                ("cells", "devices", "instances", "modules", "replaced", "supplies")
                if part != "module"
                else ("properties",)
            )
            value = {
                key: type(item)() if key in apart and isinstance(item, list | dict) else item
                for key, item in value.items()
                if fields.get(key, {}).keys() - {"description"}
            }
        if SCHEMA.accepts(value, part):
            return True
        self._explain(part, value, place, data)
        return False

    def _explain(self, part: str, value: Any, place: Place, data: Any) -> None:
        if len(self.faults) >= MAX_FAULTS:
            return
        spellings = _spellings(value, data) if isinstance(value, dict) else {}
        for fault in SCHEMA.faults(value, part)[: MAX_FAULTS - len(self.faults)]:
            path = fault.path if fault.place == json_place(fault.path) else fault.path[:-1]
            if path[:2] in spellings:
                path = (path[0], spellings[path[:2]][-1], *path[2:])
            self.faults.append((json_place((*place, *path)), _reason(part, fault.path, fault.message, value)))

    def note_unknown(self, data: dict[str, Any], part: str, place: Place) -> None:
        """Note the fields of ``data`` that are not part of the format."""
        unknown = data.keys() - _fields(part).keys()
        if unknown:
            prefix = re.sub(r"\[\d+\]", "[]", f"{json_place(place)}.") if place else ""
            self.ignored.update(f"{prefix}{name[:MAX_NAME]}" for name in unknown)

    def check_printable(self, place: Place, name: Any) -> None:
        """Report a name with characters that cannot be shown; a portable pattern cannot list them."""
        if isinstance(name, str) and not name.isprintable():
            self.faults.append((json_place(place), f"must be a word of printable characters; got {name[:40]!r}"))


def _in_plain_names(data: dict[str, Any]) -> dict[str, Any]:
    """Return a device with its type, parameters and terminals in the names of the schema."""
    kind, params, terminals = data.get("type"), data.get("params"), data.get("terminals")
    plain = dict(data)
    if isinstance(kind, str):
        plain["type"] = _TYPES.get(kind.lower(), kind)
    if isinstance(params, dict):
        plain["params"] = {name.lower(): value for name, value in params.items()}
    if isinstance(terminals, dict):
        aliases = _aliases(plain)
        plain["terminals"] = {aliases.get(name.lower(), name.lower()): net for name, net in terminals.items()}
    return plain


def _aliases(plain: dict[str, Any]) -> Mapping[str, str]:
    """Return the other names of the terminals of a device."""
    kind = plain.get("type")
    return KINDS[kind].terminal_names if isinstance(kind, str) and kind in KINDS else {}


def _listed(data: dict[str, Any], key: str) -> list[Any]:
    items = data.get(key)
    return items if isinstance(items, list) else []


def _spellings(plain: Any, data: Any) -> dict[tuple[str, str], list[str]]:
    """Return the parameters and terminals of a device by their plain names, as ``data`` spells them."""
    found: dict[tuple[str, str], list[str]] = {}
    for key, aliases in (("params", {}), ("terminals", _aliases(plain))) if data is not plain else ():
        names = (data or {}).get(key)
        for name in names if isinstance(names, dict) else ():
            found.setdefault((key, aliases.get(name.lower(), name.lower())), []).append(name)
    return found


def _reason(part: str, path: Place, message: str, value: Any) -> str:
    """Return the message of a fault, with what to write instead."""
    if part != "device" or not isinstance(value, dict):
        return message
    if path == ("type",):
        if "type" not in value:
            return f"{message}; known types: {', '.join(KINDS)}"
        kind = value["type"]
        return (
            f"Unknown device type: {kind[:MAX_NAME]}{did_you_mean(kind, _TYPES)}" if isinstance(kind, str) else message
        )
    if len(path) == 2 and path[0] == "params":
        given = value["params"][path[1]]
        number = parse_number(given) if isinstance(given, str) else None
        if number is not None:
            return f"{message} (write {number:g})"
        if path[1] in ("w", "l") and type(given) in (int, float) and LIKELY_UM[0] <= given < LIKELY_UM[1]:
            return f"{message}; write {given:g}e-6 for {given:g} um"
    return message
