"""Requests to the router for nets of equal length, shielded nets and separated nets; the devices on each net."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from layoutkit.route.routes import EqualLengths

if TYPE_CHECKING:
    from collections.abc import Sequence

    from layoutkit.circuit.circuit import Circuit, Device
    from layoutkit.circuit.constraints import Constraints
    from layoutkit.flow.design import Design
    from layoutkit.flow.routing_job import WantedNet


def with_wishes(
    nets: Sequence[WantedNet], constraints: Constraints, design: Design | None = None
) -> tuple[WantedNet, ...]:
    """Return nets with what constraints state of their lengths, shields and neighbours.

    With a design, its inputs also keep apart from its outputs, as signals would couple from one to the other.
    """
    lengths = {net: f"net_lengths[{n}]" for n, group in enumerate(constraints.net_lengths) for net in group.nets}
    shields = {entry.net: entry.shield for entry in constraints.net_shields}
    apart: dict[str, set[str]] = {net.name: set(net.apart_from) for net in nets}
    groups = [({net}, set(entry.nets) - {net}) for entry in constraints.net_separations for net in entry.nets]
    if design is not None:
        groups += inputs_and_outputs(design)
    for ones, others in groups:
        for name in ones & apart.keys():
            apart[name] |= others & apart.keys()
    return tuple(
        replace(
            net,
            match_length=lengths.get(net.name, net.match_length),
            shield=shields.get(net.name, net.shield) if shields.get(net.name, net.shield) in apart else None,
            apart_from=tuple(sorted(apart[net.name])),
        )
        for net in nets
    )


def inputs_and_outputs(design: Design) -> list[tuple[set[str], set[str]]]:
    """Return the ports that only drive gates with those that sources or drains drive, and the other way round."""
    gates, driven = set[str](), set[str]()
    for device in design.circuit.devices:
        for terminal, net in device.terminals.items():
            (gates if device.is_mos and terminal == "g" else driven).add(net)
    ports = set(design.circuit.ports) - set(design.supplies)
    inputs, outputs = ports & gates - driven, ports & driven
    return [(inputs, outputs), (outputs, inputs)] if inputs and outputs else []


def equal_lengths(nets: Sequence[WantedNet]) -> tuple[EqualLengths, ...]:
    """Return the groups of nets that state the same word in ``match_length``."""
    groups: dict[str, list[str]] = {}
    for net in nets:
        if net.match_length:
            groups.setdefault(net.match_length, []).append(net.name)
    return tuple(EqualLengths(tuple(names)) for names in groups.values() if len(names) > 1)


def net_loads(circuit: Circuit) -> dict[str, tuple[str, ...]]:
    """Return the kinds of terminals on each net, as lines with flavour, terminal, gate length and total width.

    Ends that a device may exchange, such as source and drain, are terminals of one kind.
    """
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for device in circuit.devices:
        length = f" l={device.params['l']:.4g}" if "l" in device.params else ""
        for terminal, net in device.terminals.items():
            end = "end" if device.kind.exchangeable and terminal in device.kind.ends else terminal
            found[net][f"{device.type} {device.model} {end}{length}"] += _size(device)
    return {net: tuple(f"{kind} {size}" for kind, size in sorted(kinds.items())) for net, kinds in found.items()}


def _size(device: Device) -> int:
    """Return the total width of all units [nm]; the number of units if they have no width."""
    width = device.params.get("w")
    return device.m if width is None else round(width * device.m * 1e9)
