"""Reading SPICE, CDL and Spectre netlists into a flat circuit."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from layoutkit.circuit.circuit import Circuit
from layoutkit.circuit.readers.source import (
    NOT_IN_A_NAME,
    NetlistText,
    check_listed,
    no_top,
    refuse_unknown,
)
from layoutkit.circuit.readers.spice_cards import SOURCE, read_card
from layoutkit.circuit.readers.spice_deck import GROUND_NAMES, Deck, DeckBuilder, Subcircuit
from layoutkit.circuit.readers.spice_expressions import GivenParameters, Scope
from layoutkit.circuit.readers.spice_files import StatementReader
from layoutkit.circuit.readers.spice_flatten import WIRE_OHM, Flattener
from layoutkit.circuit.supplies import find_supplies
from layoutkit.circuit.taps import joined_names, with_names
from layoutkit.errors import Findings, LayoutkitError, NetlistError, listed
from layoutkit.technology.device_kinds import MOS_KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from layoutkit.circuit.replaced_devices import ModelNames


def read_spice(
    path: str | Path | NetlistText,
    *,
    top: str | None = None,
    black_boxes: Collection[str] = (),
    parameters: Mapping[str, str | float] | None = None,
    names: ModelNames | None = None,
    keep_unknown: bool = False,
) -> Circuit:
    """Return the flat circuit of a SPICE, CDL or Spectre netlist.

    Args:
        path: The netlist: a file, which can include files of its own folder, or the text itself, which cannot.
        top: Subcircuit to read. Default: Spectre's ``topckt``, else the only subcircuit nobody instantiates, else the
            devices outside of subcircuits.
        black_boxes: Subcircuits that may be empty or undefined; their instances are kept as black boxes.
        parameters: Values of parameters, such as ``{"w0": "2u"}``. They win over global parameters of the file and over
            defaults of the top subcircuit; overrides on instances and defaults of inner subcircuits stay.
        names: What the names of models mean in the process at hand; None where no process is known.
        keep_unknown: Whether instances of empty and undefined subcircuits that are not listed are kept, too.

    Raises:
        FileError: If a file cannot be read.
        UnsupportedOperationError: If it holds devices of the process without a drawing, and nothing else is wrong.
        NetlistError: If the netlist is faulty, incomplete, or does not say which subcircuit is the top. The message
            names every fault with its line.
    """
    findings = Findings()
    source = path if isinstance(path, NetlistText) else Path(path)
    reader = StatementReader(source, findings)
    try:
        deck = DeckBuilder(findings, keep_unknown=keep_unknown).build(reader.statements())
        try:
            chosen = _choose_top(deck, top, source.stem, findings)
        except NetlistError:
            findings.raise_faults("Invalid netlist")  # which may be why there is no top
            raise
        flattener = Flattener(deck, findings, GivenParameters(parameters), black_boxes, names, keep_unknown)
        circuit = _circuit(deck, chosen, source.stem, flattener)
    except NetlistError:
        if not reader.foreign:
            raise
        raise _no_netlist(reader.foreign) from None
    except RecursionError:
        raise NetlistError("Invalid netlist: parameters or subcircuits are nested too deeply") from None
    if reader.foreign and circuit.warnings:
        raise _no_netlist(reader.foreign)
    return circuit


def _no_netlist(name: str) -> NetlistError:
    """Return the error about a file whose text must not be shown."""
    return NetlistError(f"'{name}' is not a netlist: no line of it is a device or a directive such as .subckt")


def _circuit(deck: Deck, chosen: Subcircuit, file_name: str, flattener: Flattener) -> Circuit:
    findings, given = flattener.findings, flattener.given
    ports = flattener.flatten(chosen)
    missing = flattener.open_parameters
    for where, name in deck.missing_parts.items() if chosen is deck.main else ():
        text = f"'{name}' is not read, and the circuit is incomplete if it holds more than models"
        findings.fault(where, f"{text}; put the file into the netlist's folder, or remove the line")
    if missing or given:
        inner = {name: each.name for each in _all_below(deck.main) if each is not chosen for name in each.params}
        findings.faults[:0] = given.faults(missing, {**deck.main.params, **chosen.params}, inner)
    _raise_all(
        deck.skipped_includes,
        partial(findings.raise_faults, "Invalid netlist", {"missing_parameters": list(missing)} if missing else None),
        partial(refuse_unknown, "undefined", flattener.undefined, flattener.names.hint_at_cells(flattener.undefined)),
        partial(refuse_unknown, "empty", flattener.empty, flattener.names.hint_at_cells(flattener.empty)),
        partial(flattener.names.refuse, flattener.undrawn),
    )
    check_listed(flattener.listed, flattener.black_boxes)
    names = _joined(flattener, ports)
    ports = tuple(dict.fromkeys(names.get(port, port) for port in ports))
    if chosen is deck.main:
        ports = _flat_ports(flattener)
        findings.warn(
            f"the netlist has no subcircuit: its ports are taken to be {' '.join(ports) or 'none'}; "
            "wrap it in .subckt to choose them"
        )
    named = frozenset(ports)
    used = {net for device in flattener.devices for net in device.terminals.values()}
    used.update(net for box in flattener.black_boxes for net in box.nets.values())
    found = dict.fromkeys(names.get(net, net) for net in flattener.used_globals.values())
    extra = [net for net in found if net in used and net not in named]
    if extra and chosen is not deck.main:
        findings.warn("global nets become ports of the circuit", " ".join(extra))
    fed = [net for net in flattener.source_nets if net in used and net not in {*named, *extra}]
    for net in fed:
        findings.warn("nets of ideal sources that are left out become ports of the circuit", net)
    extra += fed
    if not flattener.devices:
        findings.warn(f"subcircuit '{chosen.name}' holds no devices")
    name = chosen.name or NOT_IN_A_NAME.sub("_", file_name)
    boxes = tuple(flattener.black_boxes)
    return Circuit(
        name,
        tuple(flattener.devices),
        (*ports, *extra),
        black_boxes=boxes,
        subcircuits=tuple(flattener.instances),
        warnings=findings.warnings,
    )


def _joined(flattener: Flattener, ports: tuple[str, ...]) -> dict[str, str]:
    """Join the nets of sources of 0 V and of resistors that are wires, and return the new name of each of them.

    A source that feeds gates alone, from a supply or from nowhere, is a signal of 0 V and joins nothing. What another
    source of 0 V joins to a driven net, as that of a cell inside, is driven, and so is a port with nothing else on it.
    """
    if not flattener.wires and not flattener.shorts:
        return {}
    circuit = Circuit("", tuple(flattener.devices), ports, black_boxes=tuple(flattener.black_boxes))
    found = find_supplies(circuit)
    supplies = {*GROUND_NAMES, *found.power, *found.ground}
    driven = {*circuit.black_box_nets, *(port for port in ports if not circuit.nets.get(port))}
    for device in circuit.devices:
        driven.update(net for terminal, net in device.terminals.items() if terminal not in device.kind.sensing)
    left = dict(flattener.wires)
    wires: dict[str, tuple[str, str]] = {}
    while reached := {
        name: nets
        for name, nets in left.items()
        if supplies.issuperset(nets) or not (driven - supplies).isdisjoint(nets)
    }:
        wires |= reached
        left = {name: nets for name, nets in left.items() if name not in reached}
        driven.update(*reached.values())
    for name, nets in left.items():
        flattener.leave_out(name, nets)
    what = " and ".join(["Sources of 0 V"] * bool(wires) + ["Resistors that are wires"] * bool(flattener.shorts))
    names = joined_names(circuit, [*wires.values(), *flattener.shorts.values()], what)
    circuit = with_names(circuit, names)
    flattener.devices[:], flattener.black_boxes[:] = circuit.devices, circuit.black_boxes
    flattener.source_nets = dict.fromkeys(names.get(net, net) for net in flattener.source_nets)
    resistors = f"ideal resistors of {WIRE_OHM:g} ohm and less join their nets, as a wire does"
    for text, joining in (("sources of 0 V join their nets, as a wire does", wires), (resistors, flattener.shorts)):
        for name, nets in joining.items():
            others = " and ".join(net for net in nets if net != names[net])
            flattener.findings.warn(text, f"{name} ({others} is {names[nets[0]]})")
    return names


def _raise_all(skipped_includes: Sequence[str], *checks: Callable[[], None]) -> None:
    """Run checks that raise errors, and raise one error with the messages and details of all of them.

    It names the files that were not read, since what is missing may be in one of them.
    """
    errors = [error for error in map(_error_of, checks) if error is not None]
    if len(errors) == 1 and not (skipped_includes and isinstance(errors[0], NetlistError)):
        raise errors[0]
    if errors:
        details = {name: value for error in errors for name, value in (error.details or {}).items()}
        messages = [error.message for error in errors]
        if skipped_includes:
            files = listed(list(dict.fromkeys(skipped_includes)), joint=" ")
            messages.append(f"Not read, because the netlist's folder does not hold them: {files}")
            details["skipped_includes"] = list(dict.fromkeys(skipped_includes))[:100]
        raise NetlistError(". ".join(messages), details=details)


def _error_of(check: Callable[[], None]) -> LayoutkitError | None:
    """Return the error that a check raises; None where it raises none."""
    try:
        check()
    except LayoutkitError as error:
        return error
    return None


def _choose_top(deck: Deck, top: str | None, file_name: str, findings: Findings) -> Subcircuit:
    definitions = deck.main.subcircuits
    if top:
        if top.lower() not in definitions:
            raise no_top([definition.name for definition in definitions.values()], "subcircuit", top)
        return definitions[top.lower()]
    marked = [definition for definition in definitions.values() if definition.is_top]
    roots = _roots(definitions.values())
    if len(marked) == 1:
        return marked[0]
    commented = [definition for definition in roots if definition.commented]
    if len(commented) == 1 and not deck.main.cards:
        return commented[0]
    if deck.main.cards and not _is_testbench(deck):
        return deck.main
    if len(roots) == 1:
        if deck.main.cards:
            findings.warn(f"the testbench around subcircuit '{roots[0].name}' is not read")
        return roots[0]
    if not definitions:
        raise NetlistError("Invalid netlist: it holds no devices and no subcircuits")
    if not roots:
        raise NetlistError(f"Invalid netlist: every subcircuit instantiates another in a ring: {listed(definitions)}")
    names = sorted(definition.name for definition in roots)
    named = [definition for definition in roots if definition.name.lower() == file_name.lower()]
    if named:
        others = listed([name for name in names if name != named[0].name], joint=" ")
        findings.warn(f"the top is subcircuit '{named[0].name}', named as the file; nothing uses {others}")
        return named[0]
    raise no_top(names)


def _roots(definitions: Iterable[Subcircuit]) -> list[Subcircuit]:
    """Return the top-level definitions that no other definition instantiates."""
    definitions = list(definitions)
    used = {id(found) for definition in definitions for found in _instantiated(definition)}
    return [definition for definition in definitions if id(definition) not in used]


def _all_below(definition: Subcircuit) -> Iterator[Subcircuit]:
    for inner in definition.subcircuits.values():
        yield inner
        yield from _all_below(inner)


def _instantiated(definition: Subcircuit) -> Iterator[Subcircuit]:
    for statement in definition.cards:
        found = definition.master_of(statement)
        if found is not None and found is not definition:
            yield found
    for inner in definition.subcircuits.values():
        yield from _instantiated(inner)


def _is_testbench(deck: Deck) -> bool:
    """Whether the main deck only drives a subcircuit: it has sources or analyses and no transistor of its own."""
    if not deck.main.subcircuits:
        return False
    instances = driven = 0
    scope = Scope()
    for statement in deck.main.cards:
        if deck.main.master_of(statement) is not None:
            instances += 1
            continue
        letter = statement.words[0][0].lower()
        if letter in "mxqd":
            return False
        try:
            driven += read_card(statement, deck.main, scope).kind == SOURCE
        except NetlistError:
            return False
    return instances <= 1 and (driven > 0 or deck.has_analyses)


def _flat_ports(flattener: Flattener) -> tuple[str, ...]:
    """Return the nets of a flat deck that must come from outside or lead there.

    These are the nets of its sources, its globals, nets that only gates use, and outputs: nets on which drains of both
    types of transistors meet and nothing else but capacitors is.
    """
    uses: dict[str, set[str]] = {}
    for device in flattener.devices:
        for terminal, net in device.terminals.items():
            use = "input" if terminal in device.kind.sensing else "other"
            if device.is_mos and terminal == "d":
                use = device.type
            uses.setdefault(net, set()).add("load" if device.type == "capacitor" else use)
    outside = {net for net, found in uses.items() if found == {"input"} or found - {"load"} == set(MOS_KINDS)}
    outside |= {*flattener.used_globals.values(), *flattener.source_nets}
    return tuple(net for net in uses if net in outside)
