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
from layoutkit.parasitics.net_parasitics import GROUND, ParasiticCapacitor, ParasiticResistor

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from layoutkit.circuit.circuit import Circuit
    from layoutkit.parasitics.layout_circuit import LayoutCircuit
    from layoutkit.parasitics.net_parasitics import Elements, NetParasitics


_PLAIN = re.compile(r"[A-Za-z0-9_]", re.ASCII)
_HEADER = """*SPEF "IEEE 1481-1999"
*DESIGN "{design}"
*DATE "not stated, so that the same layout gives the same file"
*VENDOR "analog-layout-skills"
*PROGRAM "layoutkit"
*VERSION "1"
*DESIGN_FLOW "FULL_CONNECTIVITY" "NAME_SCOPE FLAT" "PIN_CAP NONE"
*DIVIDER /
*DELIMITER :
*BUS_DELIMITER [ ]
*T_UNIT 1 PS
*C_UNIT 1 FF
*R_UNIT 1 OHM
*L_UNIT 1 HENRY
"""


def write_spef(circuit: Circuit, elements: Elements, nets: Sequence[NetParasitics]) -> str:
    """Return the parasitics of a circuit as SPEF, in fF and ohms.

    A coupling capacitance stands in both nets. Capacitance to the substrate is to ground. Terminals on the own node of
    a net, such as bulks, have a resistor of 0 ohm to it where the net has resistors.

    Args:
        circuit: Its devices and ports.
        elements: Its parasitics.
        nets: Figures of its nets.
    """
    return _Spef(circuit, elements, nets).text()


class _Spef:
    def __init__(self, circuit: Circuit, elements: Elements, nets: Sequence[NetParasitics]) -> None:
        self.circuit = circuit
        self.elements = elements
        self.nets = nets
        names = dict.fromkeys([net.net for net in nets] + [*circuit.ports])
        self.net_index = {name: f"*{number}" for number, name in enumerate(names, 1)}
        first = len(names) + 1
        self.device_index = {each.id: f"*{number}" for number, each in enumerate(circuit.devices, first)}
        self.pins: dict[str, list[tuple[Device, str]]] = defaultdict(list)
        for device in circuit.devices:
            for terminal, net in device.terminals.items():
                self.pins[net].append((device, terminal))
        self.node_names = {node: self._pin(*terminal) for terminal, node in sorted(elements.nodes.items())}
        for node, net in sorted(elements.net_of.items()):
            self.node_names.setdefault(node, f"{self.net_index[net]}:{node.rpartition(':')[2]}")
        ports = set(circuit.ports)
        for name in names:
            if name not in self.node_names or name in ports:
                self.node_names[name] = self.net_index[name] if name in ports else f"{self.net_index[name]}:1"

    def _pin(self, device: str, terminal: str) -> str:
        return f"{self.device_index[device]}:{terminal}"

    def text(self) -> str:
        lines = [_HEADER.format(design=_escaped(self.circuit.name)), "*NAME_MAP"]
        lines += [f"{index} {_escaped(name)}" for name, index in (*self.net_index.items(), *self.device_index.items())]
        lines += ["", "*PORTS", *(f"{self.net_index[port]} B" for port in self.circuit.ports)]
        capacitors = self._by_net()
        resistors: dict[str, list[ParasiticResistor]] = defaultdict(list)
        for each in self.elements.resistors:
            resistors[each.net].append(each)
        for net in self.nets:
            lines += ["", *self._net(net.net, capacitors[net.net], resistors[net.net])]
        return "\n".join(lines) + "\n"

    def _by_net(self) -> Mapping[str, list[ParasiticCapacitor]]:
        found: dict[str, list[ParasiticCapacitor]] = defaultdict(list)
        for each in self.elements.capacitors:
            one, other = (self.elements.net_of.get(node, node) for node in (each.one, each.other))
            found[one].append(each)
            if other not in (one, GROUND):
                found[other].append(ParasiticCapacitor(each.other, each.one, each.fF))
        return found

    def _net(
        self, net: str, capacitors: Sequence[ParasiticCapacitor], resistors: Sequence[ParasiticResistor]
    ) -> Iterator[str]:
        total = sum(each.fF for each in capacitors)
        yield f"*D_NET {self.net_index[net]} {total:.6g}"
        yield "*CONN"
        if net in self.circuit.ports:
            yield f"*P {self.net_index[net]} B"
        pins = [self._pin(device.id, terminal) for device, terminal in self.pins[net]]
        directions = [_direction(device, terminal) for device, terminal in self.pins[net]]
        yield from (f"*I {pin} {direction}" for pin, direction in zip(pins, directions, strict=True))
        if capacitors:
            yield "*CAP"
        for number, each in enumerate(capacitors, 1):
            other = "" if each.other == GROUND else f" {self.node_names[each.other]}"
            yield f"{number} {self.node_names[each.one]}{other} {each.fF:.6g}"
        own = self.node_names[net]
        placed = {self.node_names[node] for each in resistors for node in (each.one, each.other)}
        loose = [pin for pin in pins if pin != own and pin not in placed] if resistors else []
        if resistors:
            yield "*RES"
        for number, resistor in enumerate(resistors, 1):
            ends = f"{self.node_names[resistor.one]} {self.node_names[resistor.other]}"
            yield f"{number} {ends} {resistor.ohm:.6g}"
        for number, pin in enumerate(loose, len(resistors) + 1):
            yield f"{number} {own} {pin} 0"
        yield "*END"


def _direction(device: Device, terminal: str) -> str:
    return "I" if terminal in device.kind.sensing else "B"


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
