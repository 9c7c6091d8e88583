"""Parasitics as files: SPEF, and SPICE that takes the place of the input netlist in a test bench.

SPEF is the Standard Parasitic Exchange Format of IEEE 1481, chapter 9.

::

    *D_NET *1 12.5                net and its whole capacitance
    *CONN
    *P *1 B                       port
    *I *9:g I                     terminal g of the device that the name map calls *9
    *CAP
    1 *9:g 3.25                   to ground
    2 *9:g *2 1.5                 to a node of another net
    *RES
    1 *1 *9:g 33.75
    *END
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from layoutkit.circuit.circuit import Device
from layoutkit.circuit.spice_writer import write_spice
from layoutkit.parasitics.net_parasitics import GROUND
from layoutkit.templates import rendered

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from layoutkit.circuit.circuit import Circuit
    from layoutkit.parasitics.layout_circuit import LayoutCircuit
    from layoutkit.parasitics.net_parasitics import Elements, NetParasitics


_PLAIN = re.compile(r"[A-Za-z0-9_]", re.ASCII)


def write_spef(circuit: Circuit, elements: Elements, nets: Sequence[NetParasitics]) -> str:
    """Return the parasitics of a circuit as SPEF, in fF and ohms.

    A coupling capacitance stands in both nets. Capacitance to the substrate is to ground. Terminals on the own node of
    a net, such as bulks, have a resistor of 0 ohm to it where the net has resistors.

    Args:
        circuit: Its devices and ports.
        elements: Its parasitics.
        nets: Figures of its nets.
    """
    index: dict[str, str] = {}
    pins = defaultdict(list)
    for name in dict.fromkeys([*(net.net for net in nets), *circuit.ports]):
        index[name] = f"*{len(index) + 1}"
    devices = {device.id: f"*{number}" for number, device in enumerate(circuit.devices, len(index) + 1)}
    for device in circuit.devices:
        for terminal, net in device.terminals.items():
            direction = "I" if terminal in device.kind.sensing else "B"
            pins[net].append((f"{devices[device.id]}:{terminal}", direction))
    nodes = {node: f"{devices[device]}:{end}" for (device, end), node in sorted(elements.nodes.items())}
    for node, net in sorted(elements.net_of.items()):
        nodes.setdefault(node, f"{index[net]}:{node.rpartition(':')[2]}")
    for name, number in index.items():
        if name in circuit.ports:
            nodes[name] = number
        else:
            nodes.setdefault(name, f"{number}:1")
    capacitors, resistors = _by_net(elements, nodes), defaultdict(list)
    for each in elements.resistors:
        resistors[each.net].append((nodes[each.one], nodes[each.other], each.ohm))
    for net, found in resistors.items():
        placed = {nodes[net], *(node for *ends, _ in found for node in ends)}
        found += [(nodes[net], pin, 0) for pin, _ in pins[net] if pin not in placed]
    return str(
        rendered(
            "nets.spef",
            design=_escaped(circuit.name),
            names=[(number, _escaped(name)) for name, number in (*index.items(), *devices.items())],
            ports=[index[port] for port in circuit.ports],
            nets=[(index[net.net], capacitors[net.net], pins[net.net], resistors[net.net]) for net in nets],
        )
    )


def _by_net(elements: Elements, nodes: Mapping[str, str]) -> dict[str, list[tuple[str, str, float]]]:
    """Return the capacitors of each net: both nodes, the second empty for ground, and the value. [fF]"""
    found: dict[str, list[tuple[str, str, float]]] = defaultdict(list)
    for each in elements.capacitors:
        one, other = (elements.net_of.get(node, node) for node in (each.one, each.other))
        first, second = nodes[each.one], "" if each.other == GROUND else nodes[each.other]
        found[one].append((first, second, each.fF))
        if other not in (one, GROUND):
            found[other].append((second, first, each.fF))
    return found


def _escaped(name: str) -> str:
    """Return a name with a backslash before each character that SPEF gives a meaning of its own."""
    return "".join(char if _PLAIN.match(char) else f"\\{char}" for char in name)


_FARADS = 1e-15
_SIZES = ("w", "l", "m", "ad", "as", "pd", "ps")
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
            params = {name: value for name, value in params.items() if name in _SIZES}
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
