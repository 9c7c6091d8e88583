"""What the ports of a circuit carry and which way, as far as its devices tell, and which are its two inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from layoutkit.circuit.orientation import carries_both_ways

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from layoutkit.circuit.circuit import Circuit, Device, RecognisedModule
    from layoutkit.circuit.supplies import Supplies

Use = Literal["signal", "power", "ground"]
Direction = Literal["input", "output", "inout"]
_CONTROLS = {("nmos", "g"), ("pmos", "g"), ("npn", "b"), ("pnp", "b")}
_DRAINS = {("nmos", "d"), ("pmos", "d")}
_SOURCES = {("nmos", "s"), ("pmos", "s")}


class PortUse(NamedTuple):
    """What a port carries, and its direction: ``inout`` where the circuit does not tell."""

    use: Use
    direction: Direction


def port_uses(circuit: Circuit, supplies: Supplies) -> dict[str, PortUse]:
    """Return the use of each port.

    A port that leads to gates or bases only is an input; one that drains of both kinds drive, and no source, an output.
    A channel that carries current both ways is drain and source at both ends.
    """
    found = {}
    both_ways = carries_both_ways(circuit)
    types = {device.id: device.type for device in circuit.devices}
    for port in circuit.ports:
        ends = {
            (types[end.device], terminal)
            for end in circuit.nets[port]
            for terminal in ("ds" if end.device in both_ways and end.terminal in {"d", "s"} else (end.terminal,))
        }
        use: Use = "power" if port in supplies.power else "ground" if port in supplies.ground else "signal"
        direction: Direction = "inout"
        if use == "signal" and ends and ends <= _CONTROLS:
            direction = "input"
        elif use == "signal" and ends >= _DRAINS and not ends & _SOURCES:
            direction = "output"
        found[port] = PortUse(use, direction)
    return found


def ports_on_gates(circuit: Circuit, supplies: Supplies) -> list[str]:
    """Return the ports that only gates are on, in the order of the circuit."""
    signals = (port for port in circuit.ports if port not in supplies)
    return [port for port in signals if (ends := circuit.nets[port]) and all(end.terminal == "g" for end in ends)]


def differential_inputs(circuit: Circuit, supplies: Supplies, groups: Sequence[RecognisedModule]) -> tuple[str, ...]:
    """Return the two ports at the gates of a differential pair that nothing inside drives, in the order of the ports.

    The pair may have its sources joined by resistors or switches. Nothing where the circuit has no such ports.
    """
    signals = {port for port in circuit.ports if port not in supplies}
    for module in (group for group in groups if group.type == "differential_pair"):
        nets = [circuit.device(name).terminals["g"] for name in module.devices]
        if all(net in signals and not _is_driven(circuit, net) for net in nets):
            return tuple(sorted(nets, key=circuit.ports.index))
    return _pair_on_two_currents(circuit, supplies, (group for group in groups if group.type == "current_mirror"))


def _is_driven(circuit: Circuit, port: str) -> bool:
    """Whether a drain drives a port, as in a ring of differential stages; a transistor as a capacitor does not."""
    return any(end.terminal == "d" and circuit.device(end.device).terminals["s"] != port for end in circuit.nets[port])


def _pair_on_two_currents(circuit: Circuit, supplies: Supplies, mirrors: Iterable[RecognisedModule]) -> tuple[str, ...]:
    """Return two ports on gates of equal transistors, each between an output and a current of the same mirror.

    Transistors in series with one gate count as one.
    """
    signals = {port for port in circuit.ports if port not in supplies}
    on_gates: dict[str, list[Device]] = {
        port: [circuit.device(end.device) for end in circuit.nets[port]] for port in ports_on_gates(circuit, supplies)
    }
    for mirror in mirrors:
        currents = {circuit.device(name).terminals["d"] for name in mirror.devices}
        found: dict[str, tuple[set[str], set[str], list[str]]] = {}
        for port, devices in on_gates.items():
            below = currents & {device.terminals["s"] for device in devices}
            above = {device.terminals["d"] for device in devices} & signals
            if len(below) == len(above) == 1:
                sizes = sorted(f"{device.type} {sorted(device.params.items())}" for device in devices)
                found[port] = below, above, sizes
        if len(found) == 2:
            one, other = found.values()
            if one[2] == other[2] and not one[0] & other[0] and not one[1] & other[1]:
                return tuple(found)
    return ()
