"""Transistors in parallel taken for one: a netlist from a layout lists each finger as a device.

Groups are found in a circuit in which the first of them stands for all, and then list all of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from layoutkit.circuit.channels import electrical_width, gate_length

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from layoutkit.circuit.circuit import Circuit, Device, RecognisedModule


def fingers_of(circuit: Circuit, members: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Return the first of equal transistors on the same terminals to all of them, where there are several.

    Args:
        circuit: Oriented.
        members: The first of equal devices in parallel to all of them.
    """
    found = {}
    for first, names in members.items():
        terminals = circuit.device(first).terminals
        same = tuple(name for name in names if circuit.device(name).terminals == terminals)
        if len(same) > 1 and circuit.device(first).is_mos:
            found[first] = same
    return found


def folded(circuit: Circuit, fingers: Mapping[str, tuple[str, ...]]) -> Circuit:
    """Return a circuit without the transistors that the first of equal ones in parallel stands for."""
    more = {name for names in fingers.values() for name in names[1:]}
    if not more:
        return circuit
    devices = []
    for device in circuit.devices:
        if device.id in fingers:
            devices.append(replace(device, params={**device.params, "m": device.m * len(fingers[device.id])}))
        elif device.id not in more:
            devices.append(device)
    return replace(circuit, devices=tuple(devices))


def unfolded(
    modules: Iterable[RecognisedModule], circuit: Circuit, fingers: Mapping[str, tuple[str, ...]]
) -> tuple[RecognisedModule, ...]:
    """Return groups of a folded circuit with all devices; ``halves`` are the two sides of a pair with more than two.

    Args:
        modules: The groups.
        circuit: The circuit before it was folded.
        fingers: The first of equal transistors in parallel to all of them.
    """

    def all_of(names: Iterable[str]) -> list[str]:
        return [each for name in names for each in fingers.get(name, (name,))]

    return tuple(
        module if fingers.keys().isdisjoint(_named(module)) else _unfolded(module, circuit.device, all_of)
        for module in modules
    )


def _named(module: RecognisedModule) -> set[str]:
    properties = module.properties
    feet = [name for names in properties.get("feet", {}).values() for name in names]
    return {*module.devices, *properties.get("cascodes", ()), *properties.get("unequal_length", ()), *feet}


def _unfolded(
    module: RecognisedModule, device: Callable[[str], Device], all_of: Callable[[Iterable[str]], list[str]]
) -> RecognisedModule:
    devices, properties = all_of(module.devices), dict(module.properties)
    for key in ("cascodes", "unequal_length", "joined_by"):
        if key in properties:
            properties[key] = all_of(properties[key])
    if "feet" in properties:
        feet = properties["feet"].items()
        properties["feet"] = {each: all_of(names) for name, names in feet for each in all_of([name])}
    for key in ("stages", "halves"):
        if key in properties:
            properties[key] = [all_of(names) for names in properties[key]]
    if module.type == "current_mirror":
        reference = device(properties["reference"])
        properties["outputs"] = all_of((reference.id, *properties["outputs"]))[1:]
        properties["ratios"] = {name: ratio(device(name), reference) for name in properties["outputs"]}
    elif len(module.devices) == 2:
        properties["halves"] = [all_of([name]) for name in module.devices]
    return replace(module, devices=tuple(devices), properties=properties)


def ratio(output: Device, reference: Device) -> float | None:
    """Return how many times the reference's current an output carries.

    It is None when their lengths differ, or their widths do and the netlist leaves one open.
    """
    if gate_length(output) != gate_length(reference):
        return None
    own, base = electrical_width(output), electrical_width(reference)
    if own is None or base is None or (own != base and {*output.unknown, *reference.unknown} & {"w", "nf", "m"}):
        return None
    return round(own / base, 6)


def halves(module: RecognisedModule) -> list[tuple[Any, ...]]:
    """Return the pairs of equal devices that a pair of several devices in parallel consists of; none if it has none."""
    sides = module.properties.get("halves", ((), ()))
    return list(zip(*sides, strict=True)) if len(sides[0]) == len(sides[1]) else []
