"""What resistors, and transistors at full drive, let through where they are in series."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from layoutkit.circuit.circuit import Circuit, Device
    from layoutkit.circuit.roles import Roles
    from layoutkit.technology import Technology

_ROUNDS = 50


def limited_drive(
    circuit: Circuit, roles: Roles, full: Mapping[str, float], off: Collection[str], resistors: Mapping[str, float]
) -> dict[str, float]:
    """Return the current at full drive of transistors, no more than what is in series with them lets through. [A]

    Nets on ports, supplies, capacitors, diodes and bipolar transistors may give or take any current.

    Args:
        circuit: In models of the technology.
        roles: Its roles.
        full: Current of each transistor at full drive. [A]
        off: Transistors that carry none.
        resistors: What the supply drives through each resistor whose resistance is known. [A]
    """
    free, edges = {*circuit.ports, *circuit.black_box_nets}, defaultdict[frozenset[str], float](float)
    for device in circuit.devices:
        ends = frozenset(device.terminals[end] for end in device.kind.ends)
        if device.id in full:
            edges[ends] += full[device.id] if device.id not in off else 0.0
        elif device.id in resistors:
            edges[ends] += resistors[device.id]
        else:
            free |= ends
    most, inner = dict(edges), {ends: ends - free - roles.supplies.nets for ends in edges}
    for _ in range(_ROUNDS):
        sums = defaultdict[str, float](float)
        for net, ampere in ((net, ampere) for ends, ampere in most.items() for net in ends):
            sums[net] += ampere
        before, most = most, {e: min([own, *(sums[net] - own for net in inner[e])]) for e, own in most.items()}
        if most == before:
            break
    ways = {name: frozenset(circuit.device(name).terminals[end] for end in ("d", "s")) for name in full}
    return {name: min(own, max(0.0, most[ways[name]])) for name, own in full.items()}


def resistance(device: Device, technology: Technology) -> float | None:
    """Return the resistance that a resistor states, else that of its size; None where neither is known. [ohm]"""
    if device.params.get("r"):
        return float(device.params["r"]) / device.m
    spec = technology.device_names.drawn(device.model)
    sheet = getattr(spec, "value", None)
    if not sheet or not {"w", "l"} <= device.params.keys():
        return None
    return float(sheet) * device.l * device.params.get("series", 1) / (device.w * device.m)
