"""How long the wires of a net may be on each conductor, by the antenna rules, where only gates lie on the net.

While a layer is etched, its metal collects charge, and a gate without diffusion on its net has no way to drain it::

    port ==================== met3 =====.        the sidewalls of a thick conductor collect more than those of a
                                        |  via   thin one, so that a small gate bears a shorter wire there
                                      gate

                               .= met4 =.        with a hop, the long wire is not connected to the gate while it is
    port ============= met2 ===|        |        etched, and met4 is short
                                      gate

                      .= met5 =.          so does a hop above the plates of capacitors, whose metal is more than the
    plates ==== met4 =|        |= met4 =. gate may have
                                      gate
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

from layoutkit.errors import TechnologyError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from layoutkit.circuit.circuit import Circuit
    from layoutkit.flow.routing_job import WantedNet
    from layoutkit.technology import Conductor, Technology

WITHOUT_DETOUR = 0.8
"""Share of the allowed length that half the perimeter of a net's pins may reach, as wires are longer than that."""
WITHOUT_HOP = 0.5
"""That share for the conductor that allows most: pins, vias and further conductors count, too."""


def antenna_lengths(
    technology: Technology, circuit: Circuit, conductors: Sequence[Conductor], *, driven: bool = False
) -> dict[str, dict[str, int]]:
    """Return for each net with gates and no diffusion how long wires of least width may be on each conductor. [dbu]

    Only conductors with an antenna rule are listed. Resistors and plates of capacitors do not drain charge. With
    ``driven``, it is what the smallest gate bears on nets with diffusion, as long as that is not connected yet.
    """
    per_area = {conductor.name: _length_per_area(technology, conductor) for conductor in conductors}
    gates, drained = dict.fromkeys(circuit.nets, 0.0), set[str]()
    smallest: dict[str, float] = {}
    for device in circuit.devices:
        for terminal, net in device.terminals.items():
            if device.is_mos and terminal == "g":
                gates[net] += device.w * device.l * 1e12 * device.params.get("m", 1)
                smallest[net] = min(smallest.get(net, inf), device.w * device.l * 1e12)
            elif device.is_mos or terminal not in {"p", "n"} or device.type not in {"resistor", "capacitor"}:
                drained.add(net)
    um = 1 / technology.dbu_um
    return {
        net: {name: round(length * area * um) for name, length in per_area.items() if length is not None}
        for net, area in (smallest if driven else gates).items()
        if area and (net in drained) == driven
    }


def _length_per_area(technology: Technology, conductor: Conductor) -> float | None:
    """Return the length of a wire of least width that one um2 of gate bears [um], None where no rule says."""
    found = []
    for rule in technology.rules:
        if rule.kind == "antenna" and rule.value_um and _same_layer(technology, rule.options["layer"], conductor):
            sidewall = rule.options.get("measure") == "sidewall"
            charged = 2 * rule.options["thickness_um"] if sidewall else technology.to_um(conductor.width)
            found.append(rule.value_um / charged)
    return min(found, default=None)


def _same_layer(technology: Technology, name: str, conductor: Conductor) -> bool:
    try:
        return technology.conductor(name).name == conductor.name
    except TechnologyError:
        return False  # poly, or a cut


def hops_over_plates(technology: Technology, circuit: Circuit) -> dict[str, str]:
    """Return the conductor above the plates of capacitors, for each net whose plates alone charge its gates too much.

    Either plate may be on the net, as a layout may exchange them. A net is left out if it has plates on the uppermost
    conductor: nothing can connect these later.
    """
    levels = {conductor.name: level for level, conductor in enumerate(technology.conductors)}
    plates: dict[tuple[str, str], int] = {}
    for device in circuit.devices:
        spec = technology.passives.get(device.model)
        if spec is None or not {"bottom", "top"} <= spec.parts.keys():
            continue
        sides = round((device.w + device.l) * 1e6 / technology.dbu_um * device.m)  # half of the perimeter
        for net in {*device.terminals.values()}:
            for part in ("bottom", "top"):
                key = net, technology.conductor(spec.parts[part]).name
                plates[key] = plates.get(key, 0) + sides
    found: dict[str, int] = {}
    for net, lengths in antenna_lengths(technology, circuit, technology.conductors).items():
        charged = [
            levels[name] for name, longest in lengths.items() if plates.get((net, name), 0) > WITHOUT_DETOUR * longest
        ]
        if charged:
            found[net] = max(charged) + 1
    return {net: technology.conductors[level].name for net, level in found.items() if level < len(levels)}


def with_antenna_wishes(
    nets: Sequence[WantedNet],
    lengths: Mapping[str, Mapping[str, int]],
    layers: Sequence[str],
    driven: Mapping[str, Mapping[str, int]] | None = None,
    over_plates: Mapping[str, str] | None = None,
) -> tuple[WantedNet, ...]:
    """Return nets that avoid the conductors on which their wires would be longer than ``antenna_lengths`` allow.

    Where no conductor allows enough, wires leave each pin on one of ``layers`` that has two below and allows most: what
    is long lies below it, so that no gate is connected to it while it is etched.

    Args:
        nets: What to route.
        lengths: ``antenna_lengths``.
        layers: Conductors for the wires.
        driven: The same of nets with diffusion, which may be connected to a gate only after a long wire.
        over_plates: ``hops_over_plates``.
    """
    driven, over_plates = driven or {}, over_plates or {}
    found = []
    for net in nets:
        if net.name in over_plates:
            found.append(replace(net, hop_layer=over_plates[net.name]))
            continue
        allowed = lengths.get(net.name, driven.get(net.name, {}))
        boxes = [point.box for point in net.endpoints]
        across = max(box.right for box in boxes) - min(box.left for box in boxes)
        along = max(box.top for box in boxes) - min(box.bottom for box in boxes)
        longest = max(allowed.values(), default=0)
        bound = (WITHOUT_DETOUR if net.name in driven else WITHOUT_HOP) * longest
        if allowed and across + along > bound and len(layers) > 2:
            high = [name for name in layers[2:] if name in allowed] or [layers[-1]]
            found.append(replace(net, hop_layer=max(reversed(high), key=lambda name: allowed.get(name, 0))))
            continue
        short = {
            name
            for name, at_most in allowed.items()
            if net.name in lengths and at_most < longest and across + along > WITHOUT_DETOUR * at_most
        }
        found.append(replace(net, avoid_layers=tuple(sorted(short))))
    return tuple(found)
