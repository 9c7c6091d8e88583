"""From a deck to a flat circuit: instances are replaced by what they contain, under instance-path names."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING

from layoutkit.circuit.circuit import BlackBox, Device, SubcircuitInstance
from layoutkit.circuit.readers.card_sizes import SizeReader
from layoutkit.circuit.readers.spice_cards import SOURCE, UNDRAWN, UNKNOWN, WIRE, Card, read_card
from layoutkit.circuit.readers.spice_deck import GROUND_NAMES, Deck, Subcircuit
from layoutkit.circuit.readers.spice_expressions import GivenParameters, OpenParametersError, Scope, parse_number
from layoutkit.circuit.replaced_devices import ModelNames
from layoutkit.errors import NetlistError, listed, numbered
from layoutkit.technology.device_kinds import KINDS
from layoutkit.technology.finger_widths import MAX_VALUE, circuit_fault, stated_faults

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from layoutkit.circuit.readers.spice_lines import Statement
    from layoutkit.errors import Findings

SEPARATOR = "."
LEAST_IDEAL, MOST_IDEAL = 1e3, 1e100  # henry or farad; decks write 1e100 for a short or an open
_CELL_OF_DEVICE = re.compile(r"(\w+)_[A-Z0-9]{6}")
"""Magic's name of a cell that it generates for a device: the device's, and a number that stands for its parameters."""
_MEANT_MEGA = re.compile(r"[\d.]+M(?:[Oo][Hh][Mm]s?)?", re.ASCII)
"""A value such as 1M, which is 0.001 in SPICE and which its writer took for 1e6."""
WIRE_OHM = 1e-2
"""Largest ideal resistor that is a wire [ohm]: a square of the thickest metal has more."""
OPEN_OHM = 1e12
"""Least ideal resistor that is an open [ohm]: the junctions of a transistor leak more."""
MAX_DEVICES = 50_000
MAX_INSTANCES = 50_000
MAX_DEPTH = 40
MAX_WORDS = 8_000_000  # of all cards read in all instances, so that no hierarchy multiplies the work without bound


@dataclass
class _Instance:
    """One subcircuit being expanded."""

    definition: Subcircuit
    path: str
    scope: Scope
    multiplier: int
    ancestors: tuple[str, ...]
    nets: dict[str, str] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    counters: dict[str, Iterator[int]] = field(default_factory=dict)
    devices: dict[str, dict[str, str]] = field(default_factory=dict)

    def other_name(self, name: str) -> str:
        """Return a name that is not in use yet, from one that is: R1_2, R1_3, ..."""
        counter = self.counters.setdefault(self.key(name), count(2))
        return next(other for number in counter if self.key(other := f"{name}_{number}") not in self.names)

    def key(self, name: str) -> str:
        """Return what two spellings of one name share: SPICE ignores case, Spectre does not."""
        return name if self.definition.spectre else name.lower()


class Flattener:
    """Expands one deck.

    Args:
        deck: The deck.
        findings: Receives faults and warnings.
        given: Parameters that the caller gives. They win over the deck's global ones and over the defaults of its top.
        black_boxes: Empty or undefined subcircuits whose instances are kept as black boxes.
        keep_unknown: Whether those of all others are kept, too, and devices whose sizes nothing defines.
        names: What the names of models mean in the process at hand.
    """

    def __init__(
        self,
        deck: Deck,
        findings: Findings,
        given: GivenParameters,
        black_boxes: Collection[str] = (),
        names: ModelNames | None = None,
        keep_unknown: bool = False,
    ) -> None:
        self._keep_unknown = keep_unknown
        self._deck = deck
        self.names = names or ModelNames()
        self.undrawn: dict[str, list[str]] = {}
        self.findings = findings
        self.listed = {name.lower() for name in black_boxes}
        self.black_boxes: list[BlackBox] = []
        self.instances: list[SubcircuitInstance] = []
        self.empty: dict[str, list[str]] = {}
        self._sizes = SizeReader(deck.scale, findings, self.names, keep_unknown=keep_unknown)
        self._globals = Scope()
        self._globals.define(deck.main.params)
        self._globals.define(given)
        self.given = given
        self._taken_nets: dict[str, str] = {}
        self._instances = 0
        self._words = 0
        self._units = 0
        self.devices: list[Device] = []
        self.undefined: dict[str, list[str]] = {}
        self.open_parameters: dict[str, list[str]] = {}
        self.used_globals: dict[str, str] = {}
        self.source_nets: dict[str, None] = {}
        self.wires: dict[str, tuple[str, str]] = {}
        """Sources of 0 V and their nets."""
        self.shorts: dict[str, tuple[str, str]] = {}
        """Ideal resistors that are wires, and their nets."""

    def flatten(self, top: Subcircuit) -> tuple[str, ...]:
        """Expand ``top`` into ``devices`` and return its ports.

        Raises:
            NetlistError: If the deck instantiates itself or is too large or too deep to expand.
        """
        instance = self._instance(top, "", Scope(self._globals), ())
        instance.scope.define(self.given, evaluated_in=self._globals)
        for port in top.ports:
            instance.nets.setdefault(instance.key(port), port)
        ports = tuple(instance.nets.values())
        for port in ports:
            self._taken_nets.setdefault(port, port)
        self._expand(instance)
        self.devices = self._sizes.without_own_sizes(self.devices)
        if not self.findings.faults and (fault := circuit_fault(self._units)):
            self.findings.faults.append(fault)
        return ports

    def _instance(self, definition: Subcircuit, path: str, scope: Scope, ancestors: tuple[str, ...]) -> _Instance:
        if definition is not self._deck.main:
            scope.define(definition.params)
        return _Instance(definition, path, scope, 1, (*ancestors, definition.name))

    def _expand(self, instance: _Instance) -> None:
        for card in instance.definition.cards:
            statement = card
            key = statement.words[0].lower()
            self._words += len(statement.words)
            if self._words > MAX_WORDS:
                raise _fatal(f"the netlist expands to more than {MAX_WORDS} words")
            name = statement.words[0]
            if instance.key(name) in instance.names:
                if not self._keep_unknown:
                    self.findings.fault(statement.where, f"the name '{name}' is used twice")
                    continue
                statement = replace(statement, words=(instance.other_name(name), *statement.words[1:]))
                self.findings.warn("names are used twice, which a layout refuses", f"{name} at {statement.where}")
            instance.names.add(instance.key(statement.words[0]))
            try:
                self._take(statement, instance, key)
            except OpenParametersError as error:
                self._leave_open(error.names, f"{instance.path}{statement.words[0]} at {statement.where}")
            except NetlistError as error:
                if error.details is not None and error.details.get("fatal"):
                    raise
                self.findings.fault(statement.where, str(error))

    def _leave_open(self, names: Iterable[str], user: str) -> None:
        for name in names:
            self.open_parameters.setdefault(name, []).append(user)

    def _take(self, statement: Statement, instance: _Instance, key: str) -> None:
        words = list(statement.words)
        master = instance.definition.master_of(statement)
        if master is not None and not self._is_of_process(master):
            self._descend(statement, words, master, instance)
            return
        is_call = instance.definition.spectre or key[0] == "x"
        if is_call and len(words) > 1 and words[-1].lower() in self.listed:
            ports = [str(number) for number in range(1, len(words) - 1)]
            self._keep(instance.path + words[0], words[-1], ports, words[1:-1], instance)
            return
        card = read_card(statement, instance.definition, instance.scope, self.names, keep_unknown=self._keep_unknown)
        card = _as_ideal(card, instance.scope)
        if master is not None and card.kind in KINDS:  # what the instance leaves out is as the subcircuit has it
            card = replace(card, params={**master.params, **card.params})
        is_listed = card.kind in (UNKNOWN, UNDRAWN) and card.model.lower() in self.listed
        if is_listed or (card.kind == UNKNOWN and self._keep_unknown):
            ports = [str(number) for number in range(1, len(card.nodes) + 1)]
            self._keep(instance.path + card.name, card.model, ports, card.nodes, instance)
        elif card.kind == UNDRAWN:
            self.undrawn.setdefault(card.model, []).append(instance.path + card.name)
        elif card.kind == UNKNOWN:
            self.undefined.setdefault(card.model, []).append(instance.path + card.name)
        elif card.kind == WIRE:
            first, second = (self._net(node, instance) for node in card.nodes)
            self.wires[instance.path + card.name] = first, second
        elif card.kind == SOURCE:
            self.leave_out(instance.path + key, [self._net(node, instance) for node in card.nodes])
        else:
            self._add(card, instance, statement.where)

    def leave_out(self, name: str, nets: Iterable[str]) -> None:
        """Leave out an ideal element on these nets, which the circuit is fed through."""
        self.source_nets.update(dict.fromkeys(nets))
        self.findings.warn("ideal sources, switches and lines are not drawn and are left out", name)

    def _is_of_process(self, master: Subcircuit) -> bool:
        """Whether the netlist's own subcircuit describes a device of the process of its name to a simulator.

        One that holds that device alone is read as any subcircuit.

        Raises:
            NetlistError: If it holds another device of the process.
        """
        kind = self.names.kind(master.name)
        if master.name.lower() in self.listed or kind is None or not master.cards:
            return False
        models = [card.words[-1] for card in master.cards]
        cell = _CELL_OF_DEVICE.fullmatch(master.name)
        if cell is not None and any(self.names.is_same_device(model, cell[1]) for model in models):
            return False  # capacitances of its wires may lie beside the device
        if self.names.refuses(master.name):
            return True
        others = sorted({model for model in models if self.names.is_other_device(model, master.name)})
        if others:
            raise NetlistError(
                f"subcircuit '{master.name}' at {master.where} has the name of a device of the process and holds "
                f"{listed(others)}; rename the subcircuit, or leave it out, so that the device is meant"
            )
        if all(self.names.is_same_device(model, master.name) for model in models):
            return False
        text = "subcircuits with the name of a device of the process are not read: the device is drawn"
        self.findings.warn(text, master.name)
        return True

    def _add(self, card: Card, instance: _Instance, where: str) -> None:
        if len(self.devices) >= MAX_DEVICES:
            raise _fatal(f"the netlist has more than {MAX_DEVICES} devices")
        device_id = instance.path + card.name
        params = self._sizes.params(card, device_id, instance.scope)
        if self._is_no_resistor(card, device_id, params, instance):
            return
        unknown = tuple(self._sizes.unknown)
        junctions = self._sizes.junctions(card, device_id, instance.scope, params)
        params["m"] = int(params["m"]) * instance.multiplier
        nets = [self._net(node, instance) for node in card.nodes]
        terminals = dict(zip(KINDS[card.kind].all_terminals, nets, strict=False))
        device = Device(device_id, card.kind, card.model, params, terminals, junctions, unknown=unknown)
        for text in stated_faults(device.params, device.m, device.nf):
            self.findings.fault(where, f"'{device_id}': {text}")
        self.devices.append(device)
        self._units += device.m * device.nf
        names = zip(KINDS[card.kind].all_terminals, map(instance.key, card.nodes), strict=False)
        instance.devices[device_id] = dict(names)

    def _is_no_resistor(self, card: Card, device_id: str, params: Mapping[str, float], instance: _Instance) -> bool:
        """Return whether an ideal resistor is so small that it is a wire, or so large that it is an open; note it."""
        if card.model != "resistor" or "r" not in params or {"w", "l"} & params.keys():
            return False
        ohm = abs(params["r"])
        is_small = 1 / MAX_VALUE <= ohm <= WIRE_OHM and not _MEANT_MEGA.fullmatch(str(card.params.get("r", "")))
        is_wire, is_open = ohm == 0 or is_small, OPEN_OHM <= ohm <= MAX_VALUE
        if is_wire:
            first, second = (self._net(node, instance) for node in card.nodes[:2])
            self.shorts[device_id] = first, second
        elif is_open:
            text = f"ideal resistors of {OPEN_OHM:g} ohm and more are left out, as open circuits"
            self.findings.warn(text, device_id)
        return is_wire or is_open

    def _net(self, name: str, instance: _Instance) -> str:
        key = instance.key(name)
        if key in instance.nets:
            return instance.nets[key]
        lowered = name.lower()
        if lowered in GROUND_NAMES or lowered in self._deck.globals or name.endswith("!"):
            full = self.used_globals.setdefault(lowered, name)
        else:
            full = self._own_net(instance.path + name, f"{instance.path}|{key}")
        instance.nets[key] = full
        return full

    def _own_net(self, full: str, owner: str) -> str:
        """Return ``full``, or with a number behind when another net is already called so."""
        candidate = numbered(full, lambda name: self._taken_nets.setdefault(name, owner) == owner)
        if candidate != full:
            self.findings.warn("nets renamed because another net has their name", f"{full} > {candidate}")
        return candidate

    def _descend(self, statement: Statement, words: list[str], master: Subcircuit, instance: _Instance) -> None:
        self._instances += 1
        if self._instances > MAX_INSTANCES:
            raise _fatal(f"the netlist has more than {MAX_INSTANCES} subcircuit instances")
        if master.name in instance.ancestors:
            chain = " > ".join((*instance.ancestors[instance.ancestors.index(master.name) :], master.name))
            raise _fatal(f"{statement.where}: subcircuit '{master.name}' contains itself: {chain.lstrip(' >')}")
        if len(instance.ancestors) > MAX_DEPTH:
            raise _fatal(f"{statement.where}: subcircuits are nested deeper than {MAX_DEPTH} levels")
        nodes = _connected_nodes(statement, words, master)
        if not master.cards:
            if self._keep_unknown or master.name.lower() in self.listed:
                self._keep(instance.path + words[0], master.name, master.ports, nodes, instance)
            else:
                self.empty.setdefault(master.name, []).append(instance.path + words[0])
            return
        path = f"{instance.path}{words[0]}{SEPARATOR}"
        inner = self._instance(master, path, Scope(self._globals), instance.ancestors)
        overrides = dict(statement.params)
        try:
            inner.multiplier = instance.multiplier * self._take_multiplier(overrides, master, instance, words[0])
        except OpenParametersError as error:
            self._leave_open(error.names, f"{path[: -len(SEPARATOR)]} at {statement.where}")
        inner.scope.define(overrides, evaluated_in=instance.scope)
        for port, node in zip(master.ports, nodes, strict=True):
            net = self._net(node, instance)
            if inner.nets.setdefault(inner.key(port), net) != net:
                stated = f"'{words[0]}' connects two nets, {inner.nets[inner.key(port)]} and {net}"
                raise NetlistError(f"{stated}, to the port {port} of '{master.name}', which lists it twice")
        ports = {inner.key(port): instance.key(node) for port, node in zip(master.ports, nodes, strict=True)}
        parent = instance.path.removesuffix(SEPARATOR)
        self.instances.append(
            SubcircuitInstance(path.removesuffix(SEPARATOR), parent, master.name, ports, inner.devices)
        )
        self._expand(inner)

    def _keep(self, box_id: str, cell: str, ports: Sequence[str], nodes: Sequence[str], instance: _Instance) -> None:
        """Keep an instance as a black box."""
        nets = {port: self._net(node, instance) for port, node in zip(ports, nodes, strict=True)}
        self.black_boxes.append(BlackBox(box_id, cell, nets))

    @staticmethod
    def _take_multiplier(overrides: dict[str, str], master: Subcircuit, instance: _Instance, name: str) -> int:
        """Take ``m`` out of the overrides, unless the subcircuit has a parameter of that name."""
        if "m" not in overrides or "m" in master.params:
            return 1
        value = instance.scope.value(overrides.pop("m"))
        if value < 1 or value != int(value):
            raise NetlistError(f"'{name}': m must be a positive integer, got {value:g}")
        return int(value)


def _as_ideal(card: Card, scope: Scope) -> Card:
    """Return a card as a wire or a source where its value, of 1 kH or 1 kF and more, is a short or an open to signals.

    A simulation breaks a loop with these: direct current passes the inductor and not the capacitor.
    """
    kind = {"inductor": WIRE, "capacitor": SOURCE}.get(card.kind, "")
    spectre = card.params.get("l") if kind == WIRE else None
    text = card.params.get(KINDS[card.kind].value, spectre) if kind else None
    if text is None or len(card.nodes) != 2:
        return card
    try:
        large = LEAST_IDEAL <= scope.value(text) <= MOST_IDEAL
    except NetlistError:
        return card
    return replace(card, kind=kind) if large else card


def _connected_nodes(statement: Statement, words: list[str], master: Subcircuit) -> list[str]:
    """Return one node per port of ``master``."""
    nodes = words[1:-1]
    if statement.pins:
        by_name = {pin.lower(): net for pin, net in statement.pins.items()}
        missing = [port for port in master.ports if port.lower() not in by_name]
        if missing:
            raise NetlistError(f"'{words[0]}' connects no {', '.join(missing)} of '{master.name}'")
        return [by_name[port.lower()] for port in master.ports]
    if len(nodes) != len(master.ports):
        raise NetlistError(
            f"'{words[0]}' connects {len(nodes)} nodes to '{master.name}', which has {len(master.ports)} ports: "
            f"{' '.join(master.ports)}"
        )
    if any(node.startswith("'") and parse_number(node) is None for node in nodes):
        raise NetlistError(f"'{words[0]}' has an expression where a node is needed")
    return nodes


def _fatal(message: str) -> NetlistError:
    """Return an error that ends the expansion, unlike a fault of one card."""
    return NetlistError(message, details={"fatal": True})
