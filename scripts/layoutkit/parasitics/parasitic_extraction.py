"""Extraction of parasitics: what the wires of a layout add to its circuit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from layoutkit.extract.extractor import extract
from layoutkit.layout.cells import choose_cell, to_unit
from layoutkit.parasitics.capacitance import capacitances
from layoutkit.parasitics.layout_circuit import layout_circuit
from layoutkit.parasitics.layout_networks import layout_networks
from layoutkit.parasitics.net_parasitics import Elements, NetParasitics, Parasitics, Resistor
from layoutkit.parasitics.net_shapes import net_shapes
from layoutkit.parasitics.node_capacitors import net_capacitors, node_capacitors
from layoutkit.parasitics.pair_mismatches import pair_mismatches
from layoutkit.parasitics.pex_netlist import pex_spice
from layoutkit.parasitics.spef import write_spef

if TYPE_CHECKING:
    from collections.abc import Mapping

    import klayout.db as kdb

    from layoutkit.circuit.circuit import Circuit
    from layoutkit.circuit.constraints import Constraints
    from layoutkit.parasitics.capacitance_pieces import Capacitances
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
        resistors=tuple(Resistor(net, *each) for net, network in named for each in network.resistors),
        capacitors=node_capacitors(capacitance.pieces, found.nets, networks),
        nodes={terminal: node for _, network in named for terminal, node in network.nodes.items()},
        net_of={node: net for net, network in named for node in (*network.places, *network.inner) if node != net},
    )
