"""The bodies of poly resistors: wires above them see them, and the models have what they have to the silicon below.

::

    poly    ####|===========|####        ####  head: on a net; the model may contain the capacitance of it as well
            head     body    head        ====  body: half of what wires have to it counts to the net of each end

Inner nets lie between the parts of a resistor that extraction states as one device.

::

    a --[part]-- inner --[part]-- inner --[part]-- b       in the netlist: one resistor from a to b
                   2/3 a            1/3 a
                   1/3 b            2/3 b

An inner net has no node in the netlist, but its wires have capacitance. While signals are slow against the resistor
and its capacitance, the voltage of an inner net is a weighted mean of those at the ends, and the charge on it comes
from the ends with the same weights (Elmore 1948, the first moment of the network). So each end gets that share of it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import klayout.db as kdb
import numpy as np

from layoutkit.extract.resistor_devices import union

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from layoutkit.extract.extracted import DrawnFinger, ExtractedDevice, Extraction
    from layoutkit.technology import Technology

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


@dataclass(frozen=True)
class ResistorBodies:
    """The bodies of all poly resistors of a layout.

    Attributes:
        shapes: A number of its own, above those of all nets, to each body.
        shares: That number to the nets at the ends, each with its share.
        modelled: Bodies and heads whose capacitance to the layers below is in the models.
    """

    shapes: dict[int, kdb.Region] = field(default_factory=dict)
    shares: Shares = field(default_factory=dict)
    modelled: kdb.Region = field(default_factory=kdb.Region)


def resistor_bodies(
    extraction: Extraction, inner: Shares, poly_of_nets: Mapping[int, kdb.Region], first_number: int
) -> ResistorBodies:
    """Return the bodies of the poly resistors of a layout.

    Parts in series are one device of the netlist, whose model knows two heads. The heads between the parts are wires.

    Args:
        extraction: The layout.
        inner: Shares of nets inside resistors, see ``inner_nets``.
        poly_of_nets: Net to its poly, without bodies.
        first_number: A number above those of all nets.
    """
    technology, found = extraction.technology, ResistorBodies()
    poly = union(region for net, region in sorted(poly_of_nets.items()) if net in extraction.nets)
    fingers: dict[str, list[DrawnFinger]] = defaultdict(list)
    for finger in extraction.fingers:
        fingers[finger.device].append(finger)
    layer = technology.roles["poly"]
    for name, spec in sorted(technology.passives.items()):
        cores = extraction.lvs.layer_by_name(f"core.{name}") if fingers[name] else None
        if cores is None or technology.resolve(spec.parts.get("body", "")) != technology.resolve(layer):
            continue
        found.modelled.insert(modelled_by(technology, name, cores, poly))
        shapes = kdb.Shapes()
        shapes.insert(cores.merged())
        for finger in fingers[name]:
            place = kdb.DPoint(*finger.place).to_itype(technology.dbu_um)
            for body in shapes.each_touching(kdb.Box(place, place)):
                if body.polygon.inside(place):
                    number = first_number + len(found.shapes)
                    found.shapes[number] = kdb.Region(body.polygon)
                    found.shares[number] = _halves(finger, inner)
    return found


def modelled_by(technology: Technology, name: str, cores: kdb.Region, poly: kdb.Region) -> kdb.Region:
    """Return the bodies and heads of a resistor whose capacitance to the layers below is in its model.

    Args:
        technology: Process.
        name: The resistor.
        cores: Its bodies.
        poly: Poly on nets of the circuit, without bodies.
    """
    head = round(technology.parasitics.modelled_heads_um.get(name, 0.0) / technology.dbu_um)
    return cores + (cores.sized(head) & poly)


def _halves(finger: DrawnFinger, inner: Shares) -> tuple[tuple[int, float], ...]:
    """Return the shares of the nets at the ends of one bar; those of an inner net are those of the nets at its ends."""
    shares: dict[int, float] = defaultdict(float)
    for end in finger.kind.ends:
        net = finger.nets[end]
        for each, share in inner.get(net, ((net, 1.0),)):
            shares[each] += share / 2
    return tuple(sorted(shares.items()))
