"""What the ports of a circuit carry and which way, as far as its devices tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from layoutkit.circuit.supplies import find_supplies

if TYPE_CHECKING:
    from layoutkit.circuit.circuit import Circuit

Use = Literal["signal", "power", "ground"]
Direction = Literal["input", "output", "inout"]
_CONTROLS = {("nmos", "g"), ("pmos", "g"), ("npn", "b"), ("pnp", "b")}
_DRAINS = {("nmos", "d"), ("pmos", "d")}
_SOURCES = {("nmos", "s"), ("pmos", "s")}


class PortUse(NamedTuple):
    """What a port carries, and its direction: ``inout`` where the circuit does not tell."""

    use: Use
    direction: Direction


def port_uses(circuit: Circuit) -> dict[str, PortUse]:
    """Return the use of each port.

    A port that leads to gates or bases only is an input; one that drains of both kinds drive, and no source, an output.
    """
    supplies, found = find_supplies(circuit), {}
    types = {device.id: device.type for device in circuit.devices}
    for port in circuit.ports:
        ends = {(types[end.device], end.terminal) for end in circuit.nets[port]}
        use: Use = "power" if port in supplies.power else "ground" if port in supplies.ground else "signal"
        direction: Direction = "inout"
        if use == "signal" and ends and ends <= _CONTROLS:
            direction = "input"
        elif use == "signal" and ends >= _DRAINS and not ends & _SOURCES:
            direction = "output"
        found[port] = PortUse(use, direction)
    return found
