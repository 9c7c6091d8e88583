"""Which bodies lie in wells of their own, and on which nets these are.

Devices whose body is the substrate's net, or one of the nets that are said to meet in the substrate, are drawn in the
substrate, unless they state that they lie in a deep well. Any other body of a transistor, diode or resistor of
diffusion needs a deep well. All deep wells around p bodies are on one net, the highest supply unless the request names
another. Poly resistors on another net lie above an n well on that net. A deep well below an n well has the net of that.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

from layoutkit.circuit.roles import find_roles
from layoutkit.circuit.supplies import substrate_net
from layoutkit.draw.deep_well import DeepWellNets, needs_deep_well
from layoutkit.errors import LayoutkitError, UnsupportedOperationError, listed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from layoutkit.circuit.circuit import Circuit, Device
    from layoutkit.technology import Technology

DEEP, ABOVE = "in a deep well", "above an n well of that net"
"""Where a device lies whose body is not the substrate."""
KIND = "in well of its own"
"""Ends the kind of a block in such a well: their wells keep apart from those of others."""


def isolated_bodies(
    circuit: Circuit, technology: Technology, wanted: str | None = None, joined: Sequence[str] = ()
) -> tuple[Mapping[str, DeepWellNets], tuple[str, ...]]:
    """Return the nets of the well of its own of each device that has one, and what was decided, in words.

    Args:
        circuit: Mapped to ``technology``.
        technology: Where the circuit is drawn.
        wanted: Net of the deep wells; None for the highest supply.
        joined: Nets that meet in the substrate: bodies on them lie in it, in rings of their own.

    Raises:
        UnsupportedOperationError: If a body is neither the substrate's net nor can be isolated, or there is no supply
            for the deep wells; all such devices are named.
        LayoutkitError: If the circuit has no net ``wanted`` or lacks one of ``joined``.
    """
    in_substrate = {
        device.id: (device, device.terminals[terminal]) for device, terminal in _substrate_bodies(circuit, technology)
    }
    bodies: dict[str, list[str]] = {}
    for name, (_, net) in in_substrate.items():
        bodies.setdefault(net, []).append(name)
    if wanted is not None and wanted not in {*circuit.nets, *circuit.ports}:
        has = ", ".join(sorted(circuit.nets, key=str))
        raise LayoutkitError(
            f"deep_well_net names {wanted}, which is no net of the circuit; it has: {has}",
            details={"param_name": "deep_well_net", "provided_value": wanted},
        )
    _check_joined(circuit, technology, joined)
    stated = {device.id for device in circuit.devices if device.in_deep_well or _makes_deep_well(technology, device)}
    if len(bodies) < 2 and not stated:
        return {}, ()
    substrate = substrate_net(circuit)
    fixed = {net for device, net in in_substrate.values() if not device.is_mos}
    if len(fixed) == 1 and substrate not in find_roles(circuit).supplies.ground:
        (substrate,) = fixed  # what cannot be isolated is in the substrate
    isolated = {
        name: device
        for name, (device, net) in in_substrate.items()
        if name in stated or net not in {substrate, *joined}
    }
    in_n_wells = {device.id: device for device in circuit.devices if device.id in stated - in_substrate.keys()}
    if not isolated and not in_n_wells:
        return {}, (f"{listed(joined)} meet in the substrate, as substrate_nets states; each has rings of its own",)
    kinds = {name: _well_of(technology, device) for name, device in {**isolated, **in_n_wells}.items()}
    unable = [name for name, kind in kinds.items() if not kind]
    if unable:
        raise _refusal(circuit, technology, bodies, unable)
    notes = []
    for net, names in sorted(bodies.items()):
        for kind in (DEEP, ABOVE) if net not in {substrate, *joined} else ():
            if inside := [name for name in names if kinds.get(name) == kind and name not in stated]:
                verb = "lies" if len(inside) == 1 else "lie"
                notes.append(f"{listed(inside)} {verb} {kind}: the body {net} is not the substrate {substrate}")
    wells = {name: DeepWellNets(in_substrate[name][1], substrate) for name, kind in kinds.items() if kind == ABOVE}
    wells |= {name: DeepWellNets(_body_net(technology, each), substrate) for name, each in in_n_wells.items()}
    boxes = {
        box.terminals[ends[0]]: box.terminals[ends[1]] for box in circuit.devices if (ends := box.kind.well_inside)
    }
    deep = {name: in_substrate[name][1] for name, kind in kinds.items() if kind == DEEP and name not in in_n_wells}
    if free := sorted(name for name, body in deep.items() if body not in boxes):
        well = wanted or _highest_supply(circuit, technology, free)
        why = "as deep_well_net states" if wanted else "the highest supply; deep_well_net may name another net"
        notes.append(f"the deep wells are tied to {well}, {why}")
        boxes |= dict.fromkeys((deep[name] for name in free), well)
    wells |= {name: DeepWellNets(boxes[body], substrate, substrate not in bodies) for name, body in deep.items()}
    return {name: wells[name] for name in kinds}, tuple(notes)


def _well_of(technology: Technology, device: Device) -> str:
    """Return the well that can hold a device whose body is not the substrate: ``DEEP``, ``ABOVE`` or none."""
    deep = technology.deep_well
    if device.is_mos:
        transistor = technology.device(device.model)
    else:
        spec = technology.passive(device.model)
        if technology.resolve(spec.parts.get("body", "")) == technology.resolve("poly"):
            return ABOVE if technology.device("pmos").well else ""
        if (
            spec.diffusion_of is None
            or (spec.well and not spec.in_p_well)
            or technology.role("deep_nwell") in spec.excludes
        ):
            return ""  # a junction in a deep well is another device, or none
        if spec.undrawn_well:
            return DEEP
        transistor = spec.diffusion_of
    return DEEP if deep is not None and transistor.name in deep.devices else ""


def _makes_deep_well(technology: Technology, device: Device) -> bool:
    return not device.is_mos and needs_deep_well(technology, technology.passive(device.model))


def _body_net(technology: Technology, device: Device) -> str:
    """Return the net of the n well that a device lies in."""
    bulk = "b" if device.is_mos else technology.passive(device.model).body_terminal
    return device.terminals[bulk]


def _check_joined(circuit: Circuit, technology: Technology, joined: Sequence[str]) -> None:
    unknown = [net for net in joined if net not in {*circuit.nets, *circuit.ports}]
    if unknown:
        raise LayoutkitError(
            f"substrate_nets names {listed(unknown)}, no net of the circuit; it has: "
            f"{listed(sorted(circuit.nets, key=str))}",
            details={"param_name": "substrate_nets", "provided_value": list(joined)},
        )
    if joined and technology.role("substrate_cut") is None:
        raise UnsupportedOperationError(
            f"substrate_nets: {technology.name} has no layer that marks the substrate of another ground "
            "(role substrate_cut), so that LVS could not tell the nets apart; connect them to one net",
            details={"param_name": "substrate_nets"},
        )


def _substrate_bodies(circuit: Circuit, technology: Technology) -> list[tuple[Device, str]]:
    """Return the devices whose body is a p region that no drawn p well makes, each with its body terminal."""
    found = []
    for device in circuit.devices:
        if device.is_mos:
            if technology.device(device.model).well is None:
                found.append((device, "b"))
            continue
        passive = technology.passive(device.model)
        transistor = passive.diffusion_of
        if passive.body_terminal in device.terminals and (transistor is None or passive.in_substrate):
            found.append((device, passive.body_terminal))
    return found


def _refusal(
    circuit: Circuit, technology: Technology, bodies: Mapping[str, Sequence[str]], unable: Sequence[str]
) -> UnsupportedOperationError:
    shown = "; ".join(f"{net}: {listed(names)}" for net, names in sorted(bodies.items()))
    passives = technology.passives
    in_wells = [name for name, spec in passives.items() if spec.diffusion_of and not spec.in_substrate]
    junctions = any(passives[device.model].in_substrate for device in circuit.devices if not device.is_mos)
    cure = f", or use a junction in a well ({', '.join(in_wells)})" if junctions and in_wells else ""
    deep = technology.deep_well
    names = json.dumps(sorted(bodies))
    cut = technology.role("substrate_cut") is not None
    joined = f", or state that only the substrate joins them: substrate_nets {names}" if cut else ""
    able = f"; deep wells isolate only {', '.join(deep.devices)}, not {', '.join(unable)}" if deep else ""
    return UnsupportedOperationError(
        f"the nmos bodies are on {len(bodies)} nets, but in {technology.name} they are all the one substrate "
        f"({shown}){able}; connect them to one net{cure}{joined}",
        details={"bodies": {net: list(names) for net, names in bodies.items()}},
    )


def _highest_supply(circuit: Circuit, technology: Technology, isolated: Sequence[str]) -> str:
    """Return the supply net with the PMOS of the highest rated supply, of several the one of most PMOS."""
    power = find_roles(circuit).supplies.power
    if not power:
        raise UnsupportedOperationError(
            f"{', '.join(isolated)} need{'s' * (len(isolated) == 1)} a deep well, which is tied to the highest supply, "
            "but the circuit has no net that is known as a supply; name one with deep_well_net",
            details={"devices": list(isolated)},
        )
    rated: dict[str, float] = {}
    users: Counter[str] = Counter()
    for device in circuit.devices:
        net = device.terminals.get("b")
        if device.type == "pmos" and net in power:
            rated[net] = max(rated.get(net, 0.0), technology.device(device.model).supply_v or 0.0)
            users[net] += 1
    return min(power, key=lambda net: (-rated.get(net, 0.0), -users[net], net))
