"""The bodies of poly resistors: wires above them see them, and the models have what they have to the silicon below.

::

    poly    ####|===========|####        ####  head: on a net; the model may contain the capacitance of it as well
            head     body    head        ====  body: half of what wires have to it counts to the net of each end
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import klayout.db as kdb

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layoutkit.extract.extracted import Extraction, Finger
    from layoutkit.parasitics.inner_nets import Shares
    from layoutkit.technology import Technology


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
    poly = kdb.Region()
    for net, region in sorted(poly_of_nets.items()):
        if net in extraction.nets:
            poly += region
    fingers: dict[str, list[Finger]] = defaultdict(list)
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


def _halves(finger: Finger, inner: Shares) -> tuple[tuple[int, float], ...]:
    """Return the shares of the nets at the ends of one bar; those of an inner net are those of the nets at its ends."""
    shares: dict[int, float] = defaultdict(float)
    for end in finger.kind.ends:
        net = finger.nets[end]
        for each, share in inner.get(net, ((net, 1.0),)):
            shares[each] += share / 2
    return tuple(sorted(shares.items()))
