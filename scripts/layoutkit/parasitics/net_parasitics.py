"""What extraction of parasitics finds: elements for a simulator, and figures of each net and pair for people."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

GROUND = ""
"""The node of the substrate; node 0 where no net of the circuit is the substrate."""

LEAST_PART = 1e-3
"""Couplings below this part of a net's whole capacitance are left out of the answer. [1]"""


class ParasiticResistor(NamedTuple):
    """A resistance between two nodes of a net. [ohm]"""

    net: str
    one: str
    other: str
    ohm: float


class ParasiticCapacitor(NamedTuple):
    """A capacitance between two nodes, the second of which may be ``GROUND``. [fF]"""

    one: str
    other: str
    fF: float  # noqa: N815 - the unit


@dataclass(frozen=True)
class Elements:
    """The parasitic elements of a circuit.

    A net's own node has the name of the net. Terminals that are not in ``nodes`` are on it.

    Attributes:
        resistors: Between nodes of one net.
        capacitors: Between nodes.
        nodes: Node of a device terminal, by device and terminal.
        net_of: Net of every node that is not the own node of a net.
    """

    resistors: tuple[ParasiticResistor, ...] = ()
    capacitors: tuple[ParasiticCapacitor, ...] = ()
    nodes: Mapping[tuple[str, str], str] = field(default_factory=dict)
    net_of: Mapping[str, str] = field(default_factory=dict)


class TerminalResistance(NamedTuple):
    """Resistance from the port of a net to a terminal of a device; None where a resistance is not known. [ohm]"""

    device: str
    terminal: str
    ohm: float | None


@dataclass(frozen=True)
class NetParasitics:
    """The figures of one net.

    Attributes:
        net: Its name in the netlist.
        ground_fF: Capacitance to the substrate; for the net of the substrate, that of all other nets to it. [fF]
        coupling_fF: Capacitance to each other net. [fF]
        start: Where resistances are measured from: ``port``, or ``device.terminal`` on a net without a port.
        terminals: Resistance to each terminal on it.
        resistance_error: Largest relative difference between the written network's resistances and these. [1]
    """

    net: str
    ground_fF: float = 0.0  # noqa: N815 - the unit
    coupling_fF: Mapping[str, float] = field(default_factory=dict)  # noqa: N815 - the unit
    start: str = "port"
    terminals: tuple[TerminalResistance, ...] = ()
    resistance_error: float = 0.0

    @property
    def total_fF(self) -> float:  # noqa: N802 - the unit
        """Capacitance to everything. [fF]"""
        return self.ground_fF + sum(self.coupling_fF.values())

    def to_json(self) -> dict[str, Any]:
        """Return the figures as JSON data, the largest coupling first; not those below a thousandth of the net."""
        coupling = sorted(self.coupling_fF.items(), key=lambda item: (-item[1], item[0]))
        coupling = [(net, value) for net, value in coupling if value >= LEAST_PART * self.total_fF]
        return {
            "net": self.net,
            "total_ff": round(self.total_fF, 4),
            "ground_ff": round(self.ground_fF, 4),
            "coupling": [{"net": net, "ff": round(value, 4)} for net, value in coupling],
            "from": self.start,
            "terminals": [
                {"device": each.device, "terminal": each.terminal, "ohm": _rounded(each.ohm)} for each in self.terminals
            ],
            "resistance_error": round(self.resistance_error, 6),
        }


@dataclass(frozen=True)
class PairMismatch:
    """How unequal the parasitics of two nets are that should mirror each other.

    Attributes:
        nets: The two nets.
        total_fF: Capacitance of each to everything. [fF]
        capacitance_percent: Difference of the capacitances over their mean. [%]
        coupling_percent: Largest difference of what each couples to a net or its mirror image, over the same mean. [%]
        coupling_net: That net; empty where the two couple to nothing.
        resistance_percent: Largest difference of the resistances to two terminals that mirror each other, over the mean
            of all; None where none is known. [%]
        resistance_difference_ohm: The same difference. [ohm]
    """

    nets: tuple[str, str]
    total_fF: tuple[float, float]  # noqa: N815 - the unit
    capacitance_percent: float
    coupling_percent: float
    coupling_net: str
    resistance_percent: float | None
    resistance_difference_ohm: float

    def to_json(self) -> dict[str, Any]:
        """Return the figures as JSON data."""
        return {
            "nets": list(self.nets),
            "total_ff": [round(value, 4) for value in self.total_fF],
            "c_mismatch_percent": round(self.capacitance_percent, 4),
            "coupling_mismatch_percent": round(self.coupling_percent, 4),
            "coupling_net": self.coupling_net,
            "r_mismatch_percent": _rounded(self.resistance_percent),
        }


@dataclass(frozen=True)
class Parasitics:
    """The parasitics of one layout.

    Attributes:
        cell: Name of the circuit.
        nets: Figures of each net, sorted by name.
        pairs: Figures of each symmetric pair of nets.
        elements: What a simulator needs, as the mode states it.
        spice: The circuit with its parasitics as SPICE.
        spef: The parasitics as SPEF (IEEE 1481).
        unchecked: What could not be computed, and why.
        substrate: Net of the substrate; empty where none is known.
    """

    cell: str
    nets: tuple[NetParasitics, ...]
    pairs: tuple[PairMismatch, ...]
    elements: Elements
    spice: str
    spef: str
    unchecked: tuple[str, ...] = ()
    substrate: str = ""

    @property
    def total_fF(self) -> float:  # noqa: N802 - the unit
        """Capacitance of all nets; what lies between two nets counts once. [fF]"""
        coupling = sum(sum(net.coupling_fF.values()) for net in self.nets) / 2
        return coupling + sum(net.ground_fF for net in self.nets if net.net != self.substrate)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
