"""Which devices are in parallel, and which can carry no current: in a layout as in a netlist.

Devices of one type are in parallel when they share all nets, where source and drain, or the two ends of a resistor or
capacitor, count in either order.

A transistor is a dummy when its source and drain are one net and its gate is tied to them or to the bulk, or when its
gate is tied to the bulk and source or drain leads nowhere: to an unnamed net that meets only such transistors.
A MOS capacitor (source and drain tied, gate driven) and a transistor that is merely off between two nets are not.

A resistor or capacitor is a dummy when both its ends are one net, or when both lead nowhere.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

Net = TypeVar("Net", int, str)

FoldKey = tuple[str, tuple[tuple[str, Net], ...]]
"""Device type, and its nets by role, sorted: bulk ``b``, gate ``g`` and the interchangeable ends ``e``."""

ROLES = {"d": "e", "s": "e", "p": "e", "n": "e", "g": "g", "b": "b"}


def fold_key(device: str, nets: Mapping[str, Net]) -> FoldKey[Net]:
    """Return what a device of type ``device`` has in common with those in parallel to it."""
    return device, tuple(sorted((ROLES[terminal], net) for terminal, net in nets.items()))


def dummies(devices: Sequence[Mapping[str, Net]], named: Collection[Net]) -> set[int]:
    """Return the indexes of the dummies.

    Args:
        devices: Per device its nets by terminal: ``d g s b``, or ``p n`` and perhaps ``b``.
        named: Nets that lead out: labelled nets of a layout, ports of a circuit.
    """
    transistors = {index: nets for index, nets in enumerate(devices) if "g" in nets}
    off = {index for index, nets in transistors.items() if nets["g"] == nets["b"]}
    lead_somewhere = set(named)
    for index, nets in transistors.items():
        lead_somewhere.update(nets[terminal] for terminal in ("g", "b"))
        if index not in off:
            lead_somewhere.update(nets[terminal] for terminal in ("s", "d"))
    found = _idle_passives(devices, named)
    meeting = Counter(net for nets in devices for net in nets.values())
    for index, nets in enumerate(devices):
        if index not in transistors and index not in found:
            lead_somewhere.update(nets[end] for end in ("p", "n") if meeting[nets[end]] > 1)
    for index, nets in transistors.items():
        tied = nets["s"] == nets["d"] and nets["g"] in (nets["s"], nets["b"])
        ends_nowhere = index in off and not {nets["s"], nets["d"]} <= lead_somewhere
        if tied or ends_nowhere:
            found.add(index)
    return found


def _idle_passives(devices: Sequence[Mapping[str, Net]], named: Collection[Net]) -> set[int]:
    """Return the indexes of the resistors and capacitors with both ends on one net, or both on none that leads on."""
    meeting = Counter(net for nets in devices for net in set(nets.values()))
    found = set()
    for index, nets in enumerate(devices):
        if "p" in nets:
            ends = {nets["p"], nets["n"]}
            if len(ends) == 1 or all(meeting[net] == 1 and net not in named for net in ends):
                found.add(index)
    return found
