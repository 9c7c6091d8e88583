"""Extraction of parasitics: what the wires of a layout add to its circuit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from layoutkit.extract.extractor import extract
from layoutkit.layout.cells import choose_cell
from layoutkit.parasitics.layout_circuit import layout_circuit
from layoutkit.parasitics.net_parasitics import GROUND, Capacitor, Elements, NetParasitics, Parasitics
from layoutkit.parasitics.pex_netlist import pex_spice

if TYPE_CHECKING:
    import klayout.db as kdb

    from layoutkit.circuit.circuit import Circuit
    from layoutkit.parasitics.layout_circuit import LayoutCircuit
    from layoutkit.technology import Technology

Mode = Literal["c", "cc", "rc"]
"""``c``: the capacitance of each net to ground. ``cc``: with couplings apart. ``rc``: with resistances as well."""


def extract_parasitics(
    layout: kdb.Layout,
    circuit: Circuit,
    technology: Technology,
    *,
    cell_name: str | None = None,
    mode: Mode = "cc",
) -> Parasitics:
    """Return the parasitics of a layout.

    Args:
        layout: The layout.
        circuit: Its input netlist, in models of the technology.
        technology: Its process.
        cell_name: Cell to extract; None for the only top cell.
        mode: What the netlist holds.

    Raises:
        LayoutkitError: If the layout is not the circuit.
    """
    extraction = extract(layout, choose_cell(layout, cell_name), technology)
    found = layout_circuit(extraction, circuit)
    nets, unchecked = _capacitances(found)
    elements = Elements(capacitors=_lumped(nets, mode))
    return Parasitics(
        cell=circuit.name,
        nets=nets,
        pairs=(),
        elements=elements,
        spice=pex_spice(found, elements),
        spef="",
        unchecked=unchecked,
    )


def _capacitances(found: LayoutCircuit) -> tuple[tuple[NetParasitics, ...], tuple[str, ...]]:
    technology = found.extraction.technology
    dbu = technology.dbu_um
    nets, unchecked = [], set()
    for number, name in sorted(found.nets.items(), key=lambda item: item[1]):
        total = 0.0
        for conductor in technology.conductors:
            shapes = found.extraction.shapes(number, conductor.name).merged()
            if conductor.area_af_um2 is None or conductor.fringe_af_um is None:
                if not shapes.is_empty():
                    unchecked.add(f"capacitance of {conductor.name}: technology {technology.name} states none")
                continue
            total += shapes.area() * dbu * dbu * conductor.area_af_um2
            total += shapes.perimeter() * dbu * conductor.fringe_af_um
        nets.append(NetParasitics(net=name, ground_fF=total / 1000))
    return tuple(nets), tuple(sorted(unchecked))


def _lumped(nets: tuple[NetParasitics, ...], mode: Mode) -> tuple[Capacitor, ...]:
    found = []
    for net in nets:
        ground = net.total_fF if mode == "c" else net.ground_fF
        if ground > 0:
            found.append(Capacitor(net.net, GROUND, ground))
        if mode != "c":
            found += [
                Capacitor(net.net, other, value)
                for other, value in sorted(net.coupling_fF.items())
                if net.net < other and value > 0
            ]
    return tuple(found)
