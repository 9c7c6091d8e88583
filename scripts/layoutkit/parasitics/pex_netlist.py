"""The netlist of a layout with its parasitics, as SPICE that takes the place of the input netlist in a test bench."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from layoutkit.circuit.circuit import Device
from layoutkit.circuit.spice_writer import write_spice
from layoutkit.parasitics.net_parasitics import GROUND

if TYPE_CHECKING:
    from collections.abc import Sequence

    from layoutkit.parasitics.layout_circuit import LayoutCircuit
    from layoutkit.parasitics.net_parasitics import Elements

_FARADS = 1e-15
_PLAIN = ("w", "l", "m", "ad", "as", "pd", "ps")
"""What the simple models of transistors read, on the cards of a process that states none of its own."""


def pex_spice(found: LayoutCircuit, elements: Elements, comments: Sequence[str] = ()) -> str:
    """Return ``.subckt`` with the name and pins of the input netlist: devices as measured, and parasitics.

    Devices are written as the technology's library has them, with AD, AS, PD, PS and the distances sa, sb and sd under
    its names. Capacitance to the substrate is on the net of the substrate, or on node 0 where no named net reaches it.

    Args:
        found: The circuit of the layout.
        elements: Its parasitics.
        comments: Lines for its head, without ``*``.
    """
    technology = found.extraction.technology
    ground = found.substrate or "0"

    def placed(device: Device) -> Device:
        terminals = {
            terminal: elements.nodes.get((device.id, terminal), net) for terminal, net in device.terminals.items()
        }
        params = device.params
        if "spice" not in technology.netlists and device.is_mos:
            params = {name: value for name, value in params.items() if name in _PLAIN}
        return replace(device, terminals=terminals, params=params)

    devices = [placed(device) for device in found.circuit.devices]
    devices += [
        Device(f"Rpar{number}", "resistor", "", {"r": round(each.ohm, 6)}, {"p": each.one, "n": each.other})
        for number, each in enumerate(elements.resistors, 1)
    ]
    totals: dict[tuple[str, str], float] = defaultdict(float)
    for each in elements.capacitors:
        ends = (each.one, ground if each.other == GROUND else each.other)
        if ends[0] != ends[1]:
            totals[min(ends), max(ends)] += each.fF
    devices += [
        Device(f"Cpar{number}", "capacitor", "", {"c": float(f"{value * _FARADS:.6g}")}, {"p": one, "n": other})
        for number, ((one, other), value) in enumerate(sorted(totals.items()), 1)
    ]
    circuit = replace(found.circuit, devices=tuple(devices))
    head, _, rest = write_spice(circuit, technology, dummies=[placed(each) for each in found.dummies]).partition("\n")
    return "\n".join([head, *(f"* {comment}" for comment in comments), rest])
