"""The devices on each net of the netlist, which tell whether two nets can have equal capacitance."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from layoutkit.circuit.circuit import Circuit, Device


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
