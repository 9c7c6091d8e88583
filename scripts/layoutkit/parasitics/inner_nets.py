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
    from collections.abc import Collection, Iterable

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
    """Return the shares of both ends in each net inside."""
    first, second = device.kind.ends
    ends = {device.nets[first], device.nets[second]}
    inner = {bar.nets[end] for bar in device.fingers for end in device.kind.ends} - ends
    return voltage_shares([(bar.nets[first], bar.nets[second], bar.w_um / bar.l_um) for bar in device.fingers], inner)


def voltage_shares(bars: Iterable[tuple[int, int, float]], inner: Collection[int]) -> Shares:
    """Return the shares of the ends in each inner net: its voltage with 1 V at one of them, 0 V at the others.

    Args:
        bars: The two nets of each resistor, and its conductance in any unit.
        inner: The inner nets; all others are ends.
    """
    bars = list(bars)
    ends = sorted({net for *both, _ in bars for net in both} - set(inner))
    row = {net: number for number, net in enumerate((*sorted(inner), *ends))}
    conductances = np.zeros((len(row), len(row)))
    for first, second, conductance in bars:
        a, b = row[first], row[second]
        conductances[[a, b], [a, b]] += conductance
        conductances[[a, b], [b, a]] -= conductance
    size = len(inner)
    parts = np.linalg.solve(conductances[:size, :size], -conductances[:size, size:])
    return {
        net: tuple((end, share) for end, share in zip(ends, shares, strict=True) if share > 0)
        for net, shares in zip(sorted(inner), parts.tolist(), strict=True)
    }
