"""Extraction of parasitics: what the wires of a layout add to its circuit.

The capacitors of a netlist are of whole nets, or on the nodes that lie nearest.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from layoutkit.extract.extractor import extract
from layoutkit.layout.cells import choose_cell, to_unit
from layoutkit.parasitics.capacitance import capacitances
from layoutkit.parasitics.layout_circuit import layout_circuit
from layoutkit.parasitics.net_network import layout_networks, pair_mismatches
from layoutkit.parasitics.net_parasitics import (
    GROUND,
    Elements,
    NetParasitics,
    ParasiticCapacitor,
    ParasiticResistor,
    Parasitics,
)
from layoutkit.parasitics.net_shapes import net_shapes
from layoutkit.parasitics.netlists import pex_spice, write_spef

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.circuit.circuit import Circuit
    from layoutkit.circuit.constraints import Constraints
    from layoutkit.parasitics.capacitance_pieces import CapacitancePiece, Capacitances
    from layoutkit.parasitics.layout_circuit import LayoutCircuit
    from layoutkit.parasitics.net_network import NetNetwork
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
