"""Which transistors are in parallel, and which can carry no current: in a layout as in a netlist.

Transistors of one device type are in parallel when they share gate, bulk, and source and drain in either order.

A transistor is a dummy when its source and drain are one net and its gate is tied to them or to the bulk, or when its
gate is tied to the bulk and source or drain leads nowhere: to an unnamed net that meets only such transistors.
A MOS capacitor (source and drain tied, gate driven) and a transistor that is merely off between two nets are not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

Net = TypeVar("Net", int, str)

FoldKey = tuple[str, Net, Net, frozenset[Net]]
"""Device type, bulk, gate, and the set of source and drain."""


def fold_key(device: str, nets: Mapping[str, Net]) -> FoldKey[Net]:
    """Return what a transistor of type ``device`` has in common with those in parallel to it."""
    return device, nets["b"], nets["g"], frozenset((nets["s"], nets["d"]))


def dummies(devices: Sequence[Mapping[str, Net]], named: Collection[Net]) -> set[int]:
    """Return the indexes of the dummies.

    Args:
        devices: Per transistor its nets by terminal ``d g s b``.
        named: Nets that lead out: labelled nets of a layout, ports of a circuit.
    """
    off = {index for index, nets in enumerate(devices) if nets["g"] == nets["b"]}
    lead_somewhere = set(named)
    for index, nets in enumerate(devices):
        lead_somewhere.update(nets[terminal] for terminal in ("g", "b"))
        if index not in off:
            lead_somewhere.update(nets[terminal] for terminal in ("s", "d"))
    found = set()
    for index, nets in enumerate(devices):
        tied = nets["s"] == nets["d"] and nets["g"] in (nets["s"], nets["b"])
        ends_nowhere = index in off and not {nets["s"], nets["d"]} <= lead_somewhere
        if tied or ends_nowhere:
            found.add(index)
    return found
