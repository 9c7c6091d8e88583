"""Nets between the parts of a resistor that extraction states as one device.

::

    a --[part]-- inner --[part]-- inner --[part]-- b       in the netlist: one resistor from a to b
                   2/3 a            1/3 a
                   1/3 b            2/3 b

An inner net has no node in the netlist, but its wires have capacitance. While signals are slow against the resistor and
its capacitance, the voltage of an inner net is a weighted mean of those at the ends, and the charge on it comes from
the ends with the same weights (Elmore 1948, the first moment of the network). So each end gets that share of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from layoutkit.extract.extracted import ExtractedDevice, Extraction

    Shares = dict[int, tuple[tuple[int, float], ...]]


def inner_nets(extraction: Extraction) -> Shares:
    """Return the shares that the nets at the ends of resistors have of each net inside them, all above 0.

    Nets are numbers as in ``extraction.nets``, which holds no inner net. The shares of an inner net add up to 1.
    """
    found: Shares = {}
    for device in extraction.devices:
        if device.kind.in_series == "lengths" and len(device.fingers) > 1:
            found |= {net: shares for net, shares in _shares(device).items() if net not in extraction.nets}
    return found


def _shares(device: ExtractedDevice) -> Shares:
    """Return the shares of both ends in each net inside: its voltage with 1 V at one end, 0 V at the other."""
    first_end, second_end = device.kind.ends
    ends = device.nets[first_end], device.nets[second_end]
    inner = sorted({bar.nets[end] for bar in device.fingers for end in device.kind.ends} - set(ends))
    if not inner or ends[0] == ends[1]:
        return dict.fromkeys(inner, ((ends[0], 1.0),))
    row = {net: number for number, net in enumerate((*inner, *ends))}
    conductances = np.zeros((len(row), len(row)))
    for bar in device.fingers:
        a, b, conductance = row[bar.nets[first_end]], row[bar.nets[second_end]], bar.w_um / bar.l_um
        conductances[[a, b], [a, b]] += conductance
        conductances[[a, b], [b, a]] -= conductance
    size = len(inner)
    first = np.linalg.solve(conductances[:size, :size], -conductances[:size, size])
    return {
        net: tuple((end, float(share)) for end, share in zip(ends, (part, 1 - part), strict=True) if share > 0)
        for net, part in zip(inner, first.tolist(), strict=True)
    }
