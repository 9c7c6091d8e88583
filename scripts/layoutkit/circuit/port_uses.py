"""What the ports of a circuit carry and which way, and which are its two inputs, its clocks and its enables."""

from __future__ import annotations

import re
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
_CLOCK_NAME = re.compile(r"(n|x)?(c(l?k|lock)|phi|latch|strobe|en_?clk).*", re.IGNORECASE)
_INVERSE = r"_?(?:bar|inv|not|b|n|x|z)|[!~-]"
_INVERSE_SUFFIX = re.compile(rf"(.+?)(?:{_INVERSE})")
_INVERSE_PREFIX = re.compile(r"(?:n_?|x_?|not_|inv_|[!~/])(.+)")
_TRUE_SUFFIX = re.compile(r"(.+?)(?:_?[pt]|\+)")
_ON = re.compile(rf"en(?:a|able)?(\d*)({_INVERSE})?(\d*)", re.IGNORECASE)
_OFF = re.compile(rf"(?:pd|pwd|pwr_?dn|power_?down|sleep|dis(?:able)?|rst|reset)(\d*)({_INVERSE})?(\d*)", re.IGNORECASE)


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
        devices = [circuit.device(name) for name in module.devices]
        nets = {device.terminals["g" if device.is_mos else "b"] for device in devices}
        if len(nets) == 2 and all(net in signals and not _is_driven(circuit, net) for net in nets):
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


def clock_ports(circuit: Circuit, supplies: Supplies, ports: Sequence[str]) -> dict[str, bool]:
    """Return the clocks among some ports, the main one first, and whether each is the inverse of that one.

    A clock has the name of one or switches the tail of other transistors and also drives gates of the other kind. Of
    two clocks one is the inverse by its name (``clk`` and ``clk_b``, ``ckp`` and ``ckn``) or by what it drives: the
    tails conduct and the resets do not while the circuit compares.

    Args:
        circuit: The circuit.
        supplies: Its supplies.
        ports: Ports that only gates are on, in the order of the circuit.
    """
    driven = {port: [circuit.device(end.device) for end in circuit.nets[port]] for port in ports}
    named = [port for port in ports if _CLOCK_NAME.fullmatch(port)]
    both = [
        port
        for port in ports
        if port not in named
        and {device.type for device in driven[port]} >= {"nmos", "pmos"}
        and any(_is_tail(circuit, supplies, device) for device in driven[port])
    ]
    found = [*named, *both]
    if not found:
        return {}
    main = next((port for port in found if not any(_is_inverse(port, other) for other in found)), found[0])
    found += [port for port in ports if port not in found and (_is_inverse(port, main) or _is_inverse(main, port))]
    high = {port: _compares_high(circuit, supplies, driven[port]) for port in found}
    inverted = {main: False}
    for port in found:
        if port != main:
            opposite = None not in (high[port], high[main]) and high[port] != high[main]
            inverted[port] = opposite or _is_inverse(port, main) or _is_inverse(main, port)
    return inverted


def is_clock(circuit: Circuit, net: str) -> bool:
    """Return whether a net leads to gates of both types, but to no drain: a bias turns on one type only."""
    ends = [(circuit.device(end.device), end.terminal) for end in circuit.nets[net]]
    at_gates = {device.type for device, terminal in ends if device.is_mos and terminal == "g"}
    return at_gates == {"nmos", "pmos"} and not any(device.is_mos and terminal == "d" for device, terminal in ends)


def held_at_supply(port: str) -> bool | None:
    """Return whether a port enables the circuit when it is high, by its name; None for another name."""
    for pattern, high in ((_ON, True), (_OFF, False)):
        match = pattern.fullmatch(port)
        if match is not None:
            return high != bool(match[2])
    return None


def _is_inverse(port: str, of: str) -> bool:
    """Whether the name of a port says that it is the inverse of another, with the same number at the end of both."""
    one, other = (re.fullmatch(r"(.*?)(\d*)", name.lower()) for name in (port, of))
    if one is None or other is None:
        return False
    if one[2] != other[2]:  # clk1 and clk1_b: the mark is after the number
        return _marks(port.lower(), of.lower())
    return _marks(one[1], other[1]) or _marks(port.lower(), of.lower())


def _marks(name: str, of: str) -> bool:
    match = _INVERSE_SUFFIX.fullmatch(name)
    if match is not None:
        true = _TRUE_SUFFIX.fullmatch(of)
        if of == match[1] or (true is not None and true[1] == match[1]):
            return True
    match = _INVERSE_PREFIX.fullmatch(name)
    return match is not None and match[1] == of


def _is_tail(circuit: Circuit, supplies: Supplies, device: Device) -> bool:
    """Whether a transistor connects a supply to the sources of others of its kind."""
    drain = device.terminals["d"]
    return device.terminals["s"] in supplies and any(
        end.terminal == "s" and circuit.device(end.device).type == device.type for end in circuit.nets[drain]
    )


def _compares_high(circuit: Circuit, supplies: Supplies, driven: Sequence[Device]) -> bool | None:
    """Return whether a clock is high during the comparison; None where nothing tells.

    It turns tails on then, and off what connects other nets to a supply.
    """
    tails = {device.type == "nmos" for device in driven if _is_tail(circuit, supplies, device)}
    resets = {device.type == "pmos" for device in driven if device.terminals["s"] in supplies}
    votes = tails or resets
    return votes.pop() if len(votes) == 1 else None
