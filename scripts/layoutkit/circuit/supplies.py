"""Which nets of a circuit are supply and ground."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from layoutkit.circuit.circuit import Circuit

_DOMAIN = "(?:[a-z]|in|out|int|ext|core|io|ana|dig|low|high|hv|lv|reg|ref|sub|pad|buf|drv)?"
"""What the name of a supply may end in: a letter, or the part of the chip that it feeds."""
_GROUND = re.compile(rf"(?:0|[a-z]*_?(?:v?gnd|vss|vee|ground){_DOMAIN}\d*(?:_\w+)?!?|sub!)")
_POWER = re.compile(rf"(?:[a-z]*_?(?:vdd|vcc|vpwr|vps|avd|dvd|power){_DOMAIN}\d*(?:_\w+)?!?)")


@dataclass(frozen=True)
class Supplies:
    """The supply nets of a circuit, each kind sorted by name."""

    power: tuple[str, ...]
    ground: tuple[str, ...]

    @cached_property
    def _all(self) -> frozenset[str]:
        return frozenset((*self.power, *self.ground))

    def __contains__(self, net: object) -> bool:
        return net in self._all


def find_supplies(circuit: Circuit) -> Supplies:
    """Return the supply and ground nets of a circuit.

    A net is one by its name (``vdd``, ``VSS``, ``avdd``, ``gnd!``, ``0``); where no net of a polarity has such a name,
    the bulk net most transistors share is taken, unless a drain of the same type drives it (a tail with its own well).
    """
    nets = circuit.nets
    ground = {net for net in nets if _GROUND.fullmatch(net.lower())}
    power = {net for net in nets if _POWER.fullmatch(net.lower())}
    if not ground:
        ground = _shared_bulk(circuit, "nmos") - power
    if not power:
        power = _shared_bulk(circuit, "pmos") - ground
    return Supplies(tuple(sorted(power)), tuple(sorted(ground)))


def substrate_net(circuit: Circuit) -> str:
    """Return the net of the substrate: the bulk of the NMOS transistors, else ground, else an empty string.

    Of several bulks it is a ground net, the one of most transistors; where none is, it is ground itself.
    """
    bodies = Counter(device.terminals["b"] for device in circuit.devices if device.type == "nmos")
    ground = find_supplies(circuit).ground
    candidates = (set(bodies) & set(ground)) or ground or bodies if len(bodies) > 1 else bodies or ground
    return min(candidates, key=lambda net: (-bodies[net], net), default="")


def _shared_bulk(circuit: Circuit, mos_type: str) -> set[str]:
    devices = [device for device in circuit.devices if device.type == mos_type]
    bulks = Counter(device.terminals["b"] for device in devices)
    driven = {device.terminals["d"] for device in devices if device.terminals["d"] != device.terminals["s"]}
    candidates = [(-count, net) for net, count in bulks.items() if net not in driven]
    return {min(candidates)[1]} if candidates else set()
