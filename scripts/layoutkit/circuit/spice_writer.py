"""Write a circuit as SPICE: in the form of a process, or on plain cards that every reader understands."""

from __future__ import annotations

import re
import textwrap
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from layoutkit.circuit.circuit import INTEGER_PARAMS, Circuit, Device
from layoutkit.circuit.taps import with_names
from layoutkit.errors import Findings, TechnologyError, numbered
from layoutkit.technology.device_kinds import BLOCKS, OTHER_LENGTHS
from layoutkit.technology.device_names import AREAS, MEASURED
from layoutkit.technology.device_specs import PassiveSpec, width_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from layoutkit.circuit.circuit import BlackBox
    from layoutkit.technology import DeviceSpec, Technology
    from layoutkit.technology.device_names import CardForm

LINE_WIDTH = 96
DUMMY_SECTION = "dummy fingers of the layout, always off; the input netlist does not have them"

_UNSAFE = re.compile(r"[^\w.:!<>\[\]+\-/]", re.ASCII)
_MICRO = frozenset({"w", "l"})
_PARAM_NAMES = {"w": "W", "l": "L"}
_PARAM_ORDER = ("w", "l", "nf", "nfin", "stack", "r", "c", "value", "area", "m")


def write_spice(
    circuit: Circuit,
    technology: Technology | None = None,
    form: str = "spice",
    isolated: Collection[str] = (),
    dummies: Sequence[Device] = (),
) -> str:
    """Return the circuit as one ``.subckt``: the same circuit gives the same text.

    A device of the technology is written as its file states for this form: card, terminals, model, parameters and
    units. A capacitor of plates in series has a card for each. Any other device, and any device of a technology that
    states no such form, is written on the plain card of its type, with sizes in micrometres and their unit
    (``W=1.05u``). Numbers are exact.

    Names keep their spelling, except for characters that a SPICE reader would take for something else (they become
    ``_``), for devices whose name does not start with the letter of their card (the letter goes in front; on an ``X``
    card ``X`` and the letter of the type, as in ``XM1``), and for names that differ in case only. Where a card has a
    terminal that the circuit leaves open, such as the substrate below a resistor, it is on a net of its own and a
    comment says so. Where a card has no place for the number of units, it is repeated for each unit.

    A resistor or capacitor without a model and with a value alone is an ideal element: ``R1 a b 12.5``.

    Args:
        circuit: What to write; models are the technology's device names or its model names.
        technology: Process whose netlist form to follow; None for plain cards.
        form: ``spice`` or ``lvs_deck``.
        isolated: Ids of the transistors in deep wells, for which a deck may have other models.
        dummies: Dummy transistors of a drawing, which follow the circuit's devices in a section of their own.
    """
    cards = _Cards(circuit, technology, form, isolated)
    ports = " ".join(cards.nets.of(port) for port in circuit.ports)
    calls = [card for device in circuit.devices for unit in device.in_series for card in cards.of(unit)]
    calls += [cards.of_black_box(box) for box in circuit.black_boxes]
    body = [line for card in calls for line in _wrapped(card)]
    if dummies:
        body += _comment(DUMMY_SECTION)
        body += [line for device in dummies for card in cards.of(device) for line in _wrapped(card)]
    lines = [f"* {circuit.name or 'empty'}"]
    if cards.open_terminals:
        lines += _comment(f"on net {cards.substrate}, which the circuit leaves open: {', '.join(cards.open_terminals)}")
    lines += _wrapped(f".subckt {_safe(circuit.name) or 'top'} {ports}".rstrip())
    lines += [*body, f".ends {_safe(circuit.name) or 'top'}", *_empty_subcircuits(circuit), ".end"]
    return "\n".join(lines) + "\n"


def longer_sides_first(circuit: Circuit) -> Circuit:
    """Return the circuit with the longer side of each rectangle as its width, as extraction states it.

    netgen compares the widths, and a layout does not show which side of a plate the netlist means by W.
    """
    devices = []
    for device in circuit.devices:
        if device.kind.rectangle and not device.kind.in_cells and {"w", "l"} <= device.params.keys():
            length, width = sorted((device.w, device.l))
            device = replace(device, params={**device.params, "w": width, "l": length})  # noqa: PLW2901
        devices.append(device)
    return replace(circuit, devices=tuple(devices))


def _empty_subcircuits(circuit: Circuit) -> Iterable[str]:
    """Return an empty definition of each black box, as netgen and KLayout expect it."""
    ports = {_safe(box.cell): [_safe(port) for port in box.nets] for box in circuit.black_boxes}
    for cell, names in sorted(ports.items()):
        yield from _wrapped(" ".join([f".subckt {cell}", *names]))
        yield f".ends {cell}"


class _Cards:
    """Writes the cards of one circuit.

    Attributes:
        nets: Spelling of the nets.
        open_terminals: Terminals that a card has and the circuit does not, as ``device.terminal``.
    """

    def __init__(
        self, circuit: Circuit, technology: Technology | None, form: str, isolated: Collection[str] = ()
    ) -> None:
        self.nets = _Names()
        for port in circuit.ports:
            self.nets.of(port)
        self.open_terminals: list[str] = []
        self._devices = _Names()
        self._technology = technology
        self._forms = {} if technology is None else technology.netlists.get(form, {})
        self._taken = {net.lower() for net in circuit.nets}
        deep_well = None if technology is None or form != "lvs_deck" else technology.deep_well
        self._isolated_models = {} if deep_well is None else deep_well.lvs_deck_models
        self._isolated = frozenset(isolated)

    @property
    def substrate(self) -> str:
        """Net of the open terminals."""
        name = "substrate"
        while name in self._taken:
            name += "_"
        return self.nets.of(name)

    def of(self, device: Device) -> list[str]:
        """Return the cards of ``device``, each on one line: one, or one for each of its units.

        A transistor with all terminals on one net has no card in a form that omits such transistors.
        """
        device = device.as_written
        if not device.model and list(device.params) == [device.kind.value]:
            ends = [self.nets.of(device.terminals[terminal]) for terminal in device.kind.ends]
            return [
                " ".join(
                    [self._devices.of(device.id, device.kind.letter), *ends, repr(device.params[device.kind.value])]
                )
            ]
        spec = self._spec(device)
        if spec is not None and spec.name in self._forms and {"w", "l"} <= device.params.keys():
            if device.is_mos and not self._forms[spec.name].lists_tied and len(set(device.terminals.values())) == 1:
                return []
            return self._of_form(device, spec, self._forms[spec.name])
        nodes = [self.nets.of(device.terminals[t]) for t in device.kind.all_terminals if t in device.terminals]
        name = self._devices.of(device.id, device.kind.letter)
        model = _model(device, spec) if spec is not None else device.model
        return [" ".join([name, *nodes, _safe(model), *_params(device)])]

    def of_black_box(self, box: BlackBox) -> str:
        """Return the call of a black box."""
        return " ".join([self._devices.of(box.id, "X"), *map(self.nets.of, box.nets.values()), _safe(box.cell)])

    def _spec(self, device: Device) -> DeviceSpec | PassiveSpec | None:
        """Return the technology's device, None where it has none of this model and type."""
        if self._technology is None:
            return None
        find = self._technology.device if device.is_mos else self._technology.passive
        try:
            spec = find(device.model)
        except TechnologyError:
            return None
        return spec if spec.type == device.type else None

    def _of_form(self, device: Device, spec: DeviceSpec | PassiveSpec, form: CardForm) -> list[str]:
        nodes = []
        for terminal in form.terminals:
            if terminal not in device.terminals:
                self.open_terminals.append(f"{device.id}.{terminal}")
            nodes.append(self.nets.of(device.terminals[terminal]) if terminal in device.terminals else self.substrate)
        own = device.kind.letter
        letter = own if form.letter == own else form.letter + own
        device = _with_length_of_bars(device, spec, form)
        params = [
            f"{key}={_quantity(device, quantity, form.lengths)}{power}"
            for key, quantity, power in form.params
            if quantity not in (*MEASURED, *BLOCKS, "bends") or quantity in device.params
        ]
        isolated = device.id in self._isolated or device.in_deep_well
        model = self._isolated_models.get(spec.name, form.model) if isolated else form.model
        rest = [*nodes, _safe(_model(device, spec, model)), *params]
        if form.counts_units or device.m == 1:
            return [" ".join([self._devices.of(device.id, letter), *rest])]
        return [" ".join([self._devices.of(f"{device.id}_{unit}", letter), *rest]) for unit in range(1, device.m + 1)]


def with_spelled_nets(circuit: Circuit) -> Circuit:
    """Return the circuit with nets whose names every netlist, tool and label of the flow can hold.

    Layout, answers, LVS and the netlists that are written then agree on them. A net keeps its name unless SPICE would
    read it otherwise, or another net's differs in case only. A warning states each new name.
    """
    names, changed = _Names(), dict[str, str]()
    for net in circuit.nets:
        spelled = names.of(net)
        if spelled != net:
            changed[net] = spelled
    if not changed:
        return circuit
    findings = Findings()
    for net, spelled in changed.items():
        text = "nets renamed, because SPICE reads their names otherwise or another differs in case only"
        findings.warn(text, f"{net} > {spelled}")

    return replace(with_names(circuit, changed), warnings=(*circuit.warnings, *findings.warnings))


def spelled_ports(circuit: Circuit) -> dict[str, str]:
    """Return the spelling of each port in ``write_spice``, in the circuit's order."""
    names = _Names()
    return {port: names.of(port) for port in circuit.ports}


class _Names:
    """Gives every name a spelling that is safe and unique without regard to case."""

    def __init__(self) -> None:
        self._spelling: dict[str, str] = {}
        self._taken: set[str] = set()

    def of(self, name: str, letter: str = "") -> str:
        key = letter + "\n" + name
        if key not in self._spelling:
            safe = _safe(name)
            if not safe.upper().startswith(letter):
                safe = (letter if not safe.upper().startswith(letter[1:]) else letter[:1]) + safe
            self._spelling[key] = numbered(safe, lambda name: name.lower() not in self._taken)
            self._taken.add(self._spelling[key].lower())
        return self._spelling[key]


def _safe(name: str) -> str:
    """Return a name without what a reader takes for something else; KiCad writes ``/VDD``, ``+5V`` and ``+``."""
    if name[0:1] == "/":
        name = name.lstrip("/") or "_"
    elif name[0:1] == "+":
        name = f"plus{name[1:]}"
    return _UNSAFE.sub("_", name)


def _model(device: Device, spec: DeviceSpec | PassiveSpec, model: str | None = None) -> str:
    """Return the model name of ``device``: with the width in it where the technology's models have fixed widths."""
    name = spec.model if model is None else model
    if "{width}" not in name:
        return name
    return name.replace("{width}", width_name(device.w * 1e6)) if "w" in device.params else device.model


def _with_length_of_bars(device: Device, spec: DeviceSpec | PassiveSpec, form: CardForm) -> Device:
    """Return a resistor with the length [m] of each bar between its bends, where the card states these.

    The whole length of one that is too short for its bends is written without them.
    """
    params = dict(device.params)
    bends = params.pop("bends", 0)
    stated = any(quantity == "bends" for _, quantity, _ in form.params)
    if not bends or not stated or not isinstance(spec, PassiveSpec):
        return device
    bar = (params["l"] - bends * spec.bend_um(params["w"] * 1e6) * 1e-6) / (bends + 1)
    bent = {"l": round(bar, 12), "bends": bends} if bar > 0 else {}
    return replace(device, params={**params, **bent})


def _quantity(device: Device, quantity: str, lengths: str) -> str:
    """Return one of ``device_names.QUANTITIES`` of a device that states w and l, as text; nothing for no quantity."""
    if not quantity:
        return ""
    if quantity in INTEGER_PARAMS:
        return str(int(device.params.get(quantity, 1)))
    if quantity in (*AREAS, "w", "l", *OTHER_LENGTHS, *MEASURED):
        return _scaled(device.params[quantity], lengths, 2 if quantity in AREAS else 1)
    width, length = (Decimal(repr(float(device.params[name]))) for name in ("w", "l"))
    if quantity in ("finger_w", "total_w"):
        return _scaled(width / device.nf if quantity == "finger_w" else width * device.m, lengths)
    units = 1 if quantity.startswith("unit_") else device.m
    if quantity.endswith("area"):
        return _scaled(units * width * length, lengths, 2)
    return _scaled(units * 2 * (width + length), lengths)


def _scaled(value: float | Decimal, lengths: str = "metres", power: int = 1) -> str:
    """Return a length or an area, of power 2, in micrometres, with their unit where ``lengths`` are in metres."""
    exact = value if isinstance(value, Decimal) else Decimal(repr(float(value)))
    return f"{exact.scaleb(6 * power).normalize():f}{('u', 'p')[power - 1] if lengths == 'metres' else ''}"


def _params(device: Device) -> Iterable[str]:
    known = [name for name in _PARAM_ORDER if name in device.params]
    for name in (*known, *sorted(device.params.keys() - set(known))):
        yield f"{_PARAM_NAMES.get(name, name)}={_number(name, device.params[name])}"


def _number(name: str, value: float) -> str:
    if name in INTEGER_PARAMS:
        return str(int(value))
    if name not in _MICRO:
        return repr(float(value))
    return _scaled(value)


def _comment(text: str) -> list[str]:
    """Return a comment in lines of at most ``LINE_WIDTH`` characters."""
    return textwrap.wrap(text, LINE_WIDTH, initial_indent="* ", subsequent_indent="* ", break_long_words=False)


def _wrapped(line: str) -> list[str]:
    """Return the card in lines of at most ``LINE_WIDTH`` characters where its words allow it."""
    lines = [""]
    for word in line.split(" "):
        if lines[-1] and len(lines[-1]) + len(word) + 1 > LINE_WIDTH:
            lines.append("+")
        lines[-1] = f"{lines[-1]} {word}" if lines[-1] else word
    return lines
