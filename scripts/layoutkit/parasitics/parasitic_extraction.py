"""Extraction of parasitics: what the wires of a layout add to its circuit.

The capacitors of a netlist are of whole nets, or on the nodes that lie nearest.

They are written as SPEF, and as SPICE that takes the place of the input netlist in a test bench.

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
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from layoutkit.circuit.circuit import Circuit, Device
from layoutkit.circuit.spice_writer import write_spice
from layoutkit.extract.extractor import extract
from layoutkit.layout.cells import choose_cell, to_unit
from layoutkit.parasitics.capacitance import capacitances
from layoutkit.parasitics.layout_circuit import LayoutCircuit, layout_circuit
from layoutkit.parasitics.net_network import (
    GROUND,
    Elements,
    NetNetwork,
    NetParasitics,
    ParasiticCapacitor,
    ParasiticResistor,
    Parasitics,
    layout_networks,
    pair_mismatches,
)
from layoutkit.parasitics.net_shapes import net_shapes
from layoutkit.templates import rendered

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.circuit.constraints import Constraints
    from layoutkit.parasitics.net_shapes import CapacitancePiece, Capacitances
    from layoutkit.technology import Technology


Mode = Literal["c", "cc", "rc"]
MODES: dict[Mode, str] = {
    "c": "the whole capacitance of each net, to the substrate",
    "cc": "capacitance of each net to the substrate and to other nets",
    "rc": "resistance between port and terminals, capacitance to the substrate and between nodes",
}


@dataclass(frozen=True)
class PexOptions:
    """How to extract.

    Attributes:
        mode: What the netlist holds, see ``MODES``.
        cell_name: Cell to extract; None for the only top cell.
        constraints: State which nets and devices mirror each other; None for none.
        waived_layers: Layers that may be drawn without being read.
    """

    mode: Mode = "rc"
    cell_name: str | None = None
    constraints: Constraints | None = None
    waived_layers: tuple[str, ...] = ()


def extract_parasitics(
    layout: kdb.Layout, circuit: Circuit, technology: Technology, options: PexOptions | None = None
) -> Parasitics:
    """Return the parasitics of a layout.

    Args:
        layout: The layout; it gets the technology's database unit.
        circuit: Its input netlist, in models of the technology.
        technology: Its process.
        options: How to extract.

    Raises:
        LayoutkitError: If the layout is not the circuit.
        NetlistError: If the netlist holds models that the technology does not have.
    """
    options = options or PexOptions()
    technology = technology.made_for(device.model for device in circuit.devices)
    to_unit(layout, technology.dbu_um)
    cell = choose_cell(layout, options.cell_name)
    extraction = extract(layout, cell, technology, waived_layers=options.waived_layers)
    found = layout_circuit(extraction, circuit)
    capacitance = capacitances(net_shapes(extraction), technology)
    networks, unchecked = layout_networks(found)
    nets = _nets(found, capacitance, networks, options.mode)
    if options.mode == "rc":
        elements = _distributed(found, capacitance, networks)
    else:
        coupled = options.mode == "cc"
        elements = Elements(capacitors=net_capacitors(nets, coupled=coupled, substrate=found.substrate))
    by_name = {found.nets[number]: network for number, network in networks.items()}
    note = f"parasitics: {MODES[options.mode]}"
    return Parasitics(
        cell=found.circuit.name,
        nets=nets,
        substrate=found.substrate,
        pairs=pair_mismatches(options.constraints, nets, by_name),
        elements=elements,
        spice=pex_spice(found, elements, [note]),
        spef=write_spef(found.circuit, elements, nets),
        unchecked=tuple(sorted({*capacitance.unchecked, *unchecked})),
    )


def _nets(
    found: LayoutCircuit, capacitance: Capacitances, networks: Mapping[int, NetNetwork], mode: Mode
) -> tuple[NetParasitics, ...]:
    coupling: dict[int, dict[str, float]] = {number: {} for number in found.nets}
    for (one, other), value in sorted(capacitance.coupling_fF.items()):
        coupling[one][found.nets[other]] = value
        coupling[other][found.nets[one]] = value
    ground = dict(capacitance.ground_fF)
    for number, name in found.nets.items():
        if name == found.substrate:
            ground[number] = sum(value for other, value in ground.items() if other != number)
    return tuple(
        NetParasitics(
            net=name,
            ground_fF=ground.get(number, 0.0),
            coupling_fF=coupling[number],
            start=networks[number].start,
            terminals=networks[number].terminals,
            resistance_error=networks[number].error if mode == "rc" else 0.0,
        )
        for number, name in sorted(found.nets.items(), key=lambda item: item[1])
    )


def _distributed(found: LayoutCircuit, capacitance: Capacitances, networks: Mapping[int, NetNetwork]) -> Elements:
    """Return the resistors of all nets, and the capacitance on their nodes."""
    named = sorted((found.nets[number], network) for number, network in networks.items())
    return Elements(
        resistors=tuple(ParasiticResistor(net, *each) for net, network in named for each in network.resistors),
        capacitors=node_capacitors(capacitance.pieces, found.nets, networks),
        nodes={terminal: node for _, network in named for terminal, node in network.nodes.items()},
        net_of={node: net for net, network in named for node in (*network.places, *network.inner) if node != net},
    )


LEAST_FF = 1e-3
"""A smaller coupling between two nodes is added to the capacitor between their nets. [fF]"""


def net_capacitors(nets: Sequence[NetParasitics], *, coupled: bool, substrate: str) -> tuple[ParasiticCapacitor, ...]:
    """Return the capacitors of whole nets: all of it to ground, or what is between nets ``coupled``.

    The net of the ``substrate`` is ground itself.
    """
    found = []
    for net in nets:
        ground = net.ground_fF if coupled else net.total_fF
        if ground > 0 and net.net != substrate:
            found.append(ParasiticCapacitor(net.net, GROUND, ground))
        found += [
            ParasiticCapacitor(net.net, other, value)
            for other, value in sorted(net.coupling_fF.items())
            if coupled and net.net < other and value > 0
        ]
    return tuple(found)


def node_capacitors(
    pieces: Sequence[CapacitancePiece], names: Mapping[int, str], networks: Mapping[int, NetNetwork]
) -> tuple[ParasiticCapacitor, ...]:
    """Return capacitors between the nodes that are nearest to each piece of capacitance.

    Args:
        pieces: All capacitance, by place.
        names: Name of each net.
        networks: Network of each net.
    """
    nearest = {number: _Nearest(names[number], network) for number, network in networks.items()}
    totals: dict[tuple[str, str], float] = defaultdict(float)
    nets: dict[tuple[str, str], tuple[str, str]] = {}
    for piece in pieces:
        one = nearest[piece.net].to(piece.x, piece.y)
        other = GROUND if piece.other is None else nearest[piece.other].to(piece.x, piece.y)
        key = (one, other) if other == GROUND or one < other else (other, one)
        whole = (names[piece.net], GROUND if piece.other is None else names[piece.other])
        totals[key] += piece.fF
        nets[key] = whole if whole[1] == GROUND or whole[0] < whole[1] else whole[::-1]
    kept: dict[tuple[str, str], float] = defaultdict(float)
    for key, value in totals.items():
        kept[key if value >= LEAST_FF else nets[key]] += value
    return tuple(ParasiticCapacitor(*key, value) for key, value in sorted(kept.items()))


class _Nearest:
    """The nodes of one net, by place."""

    def __init__(self, net: str, network: NetNetwork) -> None:
        self.net = net
        self.nodes = sorted((place.x, place.y, name) for name, place in network.places.items())

    def to(self, x: int, y: int) -> str:
        """Return the node nearest to a point, the net's own where it has no other."""
        nearest = min(self.nodes, key=lambda node: ((node[0] - x) ** 2 + (node[1] - y) ** 2, node), default=None)
        return self.net if nearest is None else nearest[2]


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
