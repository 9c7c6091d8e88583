"""Which bodies lie in deep wells, and on which nets these are.

NMOS transistors whose body is the substrate's net, or one of the nets that the request says meet in the substrate, are
drawn in the substrate. Every other body needs a deep well. All
deep wells of a layout are on one net, the highest supply unless the request names another.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from layoutkit.circuit.roles import find_roles
from layoutkit.circuit.supplies import substrate_net
from layoutkit.draw.deep_well import DeepWellNets
from layoutkit.errors import LayoutkitError, UnsupportedOperationError, listed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from layoutkit.circuit.circuit import Circuit, Device
    from layoutkit.technology import Technology

KIND = "in deep well"
"""Ends the kind of a block in a deep well: their wells keep apart from those of others."""


def isolated_bodies(
    circuit: Circuit, technology: Technology, wanted: str | None = None, joined: Sequence[str] = ()
) -> tuple[Mapping[str, DeepWellNets], tuple[str, ...]]:
    """Return the nets of the deep well of each device that lies in one, and what was decided, in words.

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
    if len(bodies) < 2:
        return {}, ()
    substrate = substrate_net(circuit)
    fixed = {net for device, net in in_substrate.values() if not device.is_mos}
    if len(fixed) == 1 and substrate not in find_roles(circuit).supplies.ground:
        (substrate,) = fixed  # what cannot be isolated is in the substrate
    isolated = {name: device for name, (device, net) in in_substrate.items() if net not in {substrate, *joined}}
    if not isolated:
        return {}, (f"{listed(joined)} meet in the substrate, as substrate_nets states; each has rings of its own",)
    deep = technology.deep_well
    unable = [
        name
        for name, device in isolated.items()
        if deep is None or not device.is_mos or technology.device(device.model).name not in deep.devices
    ]
    if unable:
        raise _refusal(circuit, technology, bodies, unable)
    well = wanted or _highest_supply(circuit, technology, sorted(isolated))
    ringed = substrate not in bodies
    notes = [
        f"{listed(names)} lie in a deep well: their body {net} is not the substrate {substrate}"
        for net, names in sorted(bodies.items())
        if net not in {substrate, *joined}
    ]
    why = "as deep_well_net states" if wanted else "the highest supply; deep_well_net may name another net"
    return dict.fromkeys(isolated, DeepWellNets(well, substrate, ringed)), (
        *notes,
        f"the deep wells are tied to {well}, {why}",
    )


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
    able = f"; deep wells isolate only {', '.join(deep.devices)}, not {', '.join(unable)}" if deep else ""
    return UnsupportedOperationError(
        f"the nmos bodies are on {len(bodies)} nets, but in {technology.name} they are all the one substrate "
        f"({shown}){able}; connect them to one net{cure}, or name the grounds that meet in the substrate "
        "in substrate_nets",
        details={"bodies": {net: list(names) for net, names in bodies.items()}},
    )


def _highest_supply(circuit: Circuit, technology: Technology, isolated: Sequence[str]) -> str:
    """Return the supply net with the PMOS of the highest rated supply, of several the one of most PMOS."""
    power = find_roles(circuit).supplies.power
    if not power:
        raise UnsupportedOperationError(
            f"{', '.join(isolated)} need a deep well, which is tied to the highest supply, but the circuit has no net "
            "that is known as a supply; name one with deep_well_net",
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
