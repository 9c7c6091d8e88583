"""Writing a circuit as SPICE that ngspice, netgen, KLayout and this package's own reader understand."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING

from layoutkit.circuit.model import INTEGER_PARAMS, TERMINALS, Circuit, Device

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

LINE_WIDTH = 96

_LETTERS = {"nmos": "M", "pmos": "M", "resistor": "R", "capacitor": "C", "inductor": "L", "diode": "D"}
_LETTERS |= {"npn": "Q", "pnp": "Q", "tap": "X"}
_UNSAFE = re.compile(r"[^\w.:!<>\[\]+\-/]|(?<!.)[+/]", re.ASCII)
_MICRO = frozenset({"w", "l"})
_PARAM_NAMES = {"w": "W", "l": "L"}
_PARAM_ORDER = ("w", "l", "nf", "nfin", "stack", "r", "c", "value", "area", "m")


def write_spice(circuit: Circuit, *, models: Mapping[str, str] | None = None, subcircuits: Collection[str] = ()) -> str:
    """Return the circuit as one ``.subckt``: the same circuit gives the same text.

    Sizes are written in micrometres with their unit (``W=1.05u``), exactly. Names keep their spelling, except for
    characters that a SPICE reader would take for something else (they become ``_``), for devices whose name does not
    start with the letter of their card (the letter goes in front), and for names that differ in case only.

    Args:
        circuit: What to write.
        models: Other names for models, such as the technology's device name to its PDK's model name.
        subcircuits: Models that are subcircuits, as those of a PDK's resistors and capacitors: written on X cards.
    """
    nets = _Names()
    devices = _Names()
    lines = [f"* {circuit.name or 'empty'}"]
    ports = " ".join(nets.of(port) for port in circuit.ports)
    lines += _wrapped(f".subckt {_safe(circuit.name) or 'top'} {ports}".rstrip())
    for device in circuit.devices:
        letter = "X" if device.model in subcircuits else _LETTERS[device.type]
        lines += _wrapped(_card(device, devices.of(device.id, letter), nets, models or {}))
    for box in circuit.black_boxes:
        nodes = [nets.of(net) for net in box.nets.values()]
        lines += _wrapped(" ".join([devices.of(box.id, "X"), *nodes, _safe(box.cell)]))
    lines += [f".ends {_safe(circuit.name) or 'top'}", *_empty_subcircuits(circuit), ".end"]
    return "\n".join(lines) + "\n"


def _empty_subcircuits(circuit: Circuit) -> Iterable[str]:
    """Return an empty definition of each black box, as netgen and KLayout expect it."""
    ports = {_safe(box.cell): [_safe(port) for port in box.nets] for box in circuit.black_boxes}
    for cell, names in sorted(ports.items()):
        yield from _wrapped(" ".join([f".subckt {cell}", *names]))
        yield f".ends {cell}"


class _Names:
    """Gives every name a spelling that is safe and unique without regard to case."""

    def __init__(self) -> None:
        self._spelling: dict[str, str] = {}
        self._taken: set[str] = set()

    def of(self, name: str, letter: str = "") -> str:
        key = letter + "\n" + name
        if key not in self._spelling:
            safe = _safe(name)
            if letter and safe[:1].upper() != letter:
                safe = letter + safe
            candidate, number = safe, 1
            while candidate.lower() in self._taken:
                number += 1
                candidate = f"{safe}_{number}"
            self._taken.add(candidate.lower())
            self._spelling[key] = candidate
        return self._spelling[key]


def _safe(name: str) -> str:
    return _UNSAFE.sub("_", name)


def _card(device: Device, name: str, nets: _Names, models: Mapping[str, str]) -> str:
    needed, optional = TERMINALS[device.type]
    nodes = [nets.of(device.terminals[terminal]) for terminal in (*needed, *optional) if terminal in device.terminals]
    model = _safe(models.get(device.model, device.model))
    return " ".join([name, *nodes, model, *_params(device)])


def _params(device: Device) -> Iterable[str]:
    known = [name for name in _PARAM_ORDER if name in device.params]
    for name in (*known, *sorted(device.params.keys() - set(known))):
        yield f"{_PARAM_NAMES.get(name, name)}={_number(name, device.params[name])}"


def _number(name: str, value: float) -> str:
    if name in INTEGER_PARAMS:
        return str(int(value))
    if name not in _MICRO:
        return repr(float(value))
    micrometres = Decimal(repr(float(value))).scaleb(6).normalize()
    return f"{micrometres:f}u"


def _wrapped(line: str) -> list[str]:
    """Return the card in lines of at most ``LINE_WIDTH`` characters where its words allow it."""
    lines = [""]
    for word in line.split(" "):
        if lines[-1] and len(lines[-1]) + len(word) + 1 > LINE_WIDTH:
            lines.append("+")
        lines[-1] = f"{lines[-1]} {word}" if lines[-1] else word
    return lines
