"""Requests to the router for nets of equal length, shielded nets and separated nets, and the results."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from layoutkit.route.board import BESIDE
from layoutkit.route.routes import EqualLengths
from layoutkit.route.routing_stack import make_stack

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.circuit.constraints import Constraints, Outcome
    from layoutkit.flow.design import Design
    from layoutkit.flow.routing import Routes, RoutingJob, WantedNet
    from layoutkit.route.routes import RoutedNet
    from layoutkit.technology import Technology

    Decide = Callable[[str, tuple[str, ...], Mapping[str, str], str], Outcome]

SHIELDED = 0.8
"""Share of a net's wires from which it counts as shielded: at pins and crossings there is no room for a shield."""


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


def wish_outcomes(constraints: Constraints, job: RoutingJob, routes: Routes | None, decide: Decide) -> list[Outcome]:
    """Return what became of equal lengths, shields and separations, with figures."""
    um = job.technology.to_um
    routed = {net.name: net for net in routes.result.nets if net.success} if routes else {}
    found = []
    for index, group in enumerate(constraints.net_lengths):
        lengths = {net: routed[net].wire_length for net in group.nets if net in routed}
        listed = ", ".join(f"{net} {um(length):g} um" for net, length in lengths.items())
        longest, shortest = max(lengths.values(), default=0), min(lengths.values(), default=0)
        share = (longest - shortest) / longest if longest else 0.0
        text = f"{listed}: they differ by {share:.2%}, at most {group.tolerance:.2%} are wanted"
        broken = dict.fromkeys(group.nets, text) if share > group.tolerance else {}
        found.append(decide(f"net_lengths[{index}]", group.nets, broken, text))
    for index, entry in enumerate(constraints.net_shields):
        net = routed.get(entry.net)
        share = 1.0 if net is None or not net.wire_length else net.shielded / net.wire_length
        text = f"{share:.0%} of its wires have {entry.shield} at both sides"
        broken = {entry.net: f"{text}, at least {SHIELDED:.0%} are wanted"} if share < SHIELDED else {}
        found.append(decide(f"net_shields[{index}]", (entry.net,), broken, text))
    for index, entry_ in enumerate(constraints.net_separations):
        runs = [
            f"{one} and {other} {um(run):g} um"
            for number, one in enumerate(entry_.nets)
            for other in entry_.nets[:number]
            if one in routed and other in routed
            for run in [parallel_run(job.technology, job.layers, routed[one], routed[other])]
            if run
        ]
        how = "their wires run side by side nowhere"
        broken = dict.fromkeys(entry_.nets, f"their wires run side by side: {', '.join(runs)}") if runs else {}
        found.append(decide(f"net_separations[{index}]", entry_.nets, broken, how))
    return found


def parallel_run(technology: Technology, layers: Sequence[str], one: RoutedNet, other: RoutedNet) -> int:
    """Return the length along which wires of two nets on one conductor face each other within three tracks. [dbu]"""
    reach = BESIDE * make_stack(technology, layers, []).pitch()
    total = 0
    for layer in layers:
        first, second = _region(one, layer), _region(other, layer)
        pairs = first.separation_check(second, reach, False, type(first).Projection)
        total += sum(pair.first.length() for pair in pairs.each() if pair.first.length() > reach)
    return total


def _region(net: RoutedNet, layer: str) -> kdb.Region:
    import klayout.db as kdb

    return kdb.Region([kdb.Polygon(kdb.Box(*rect)) for at, rect in net.metal if at == layer]).merged()
