"""Findings on neighbours that disturb: which nets are quiet, which are loud, and where they run side by side."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.review.subject import region_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from layoutkit.review.finding import Finding
    from layoutkit.review.subject import Subject

_BESIDE = 2  # wires nearer than this many minimum spaces run side by side
_OWN_UM = 1.0  # so near to a device on both nets, its own terminals couple more than its wires [um]


class Coupling:
    """The findings on coupling of one layout.

    Args:
        subject: The layout.

    Attributes:
        quiet: Nets that must not be disturbed: inputs, and nets that no source, diode or resistor holds; no loud one.
        loud: Nets that disturb: outputs, clocks, and what inverters and clocked switches are on.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        own = {*subject.supplies.power, *subject.supplies.ground}
        self.loud = {net for net in self._loud() - own if net in subject.number}
        self.quiet = {net for net in self._quiet() - own - self.loud if net in subject.number}

    def findings(self) -> Iterator[Finding]:
        """Yield all findings."""
        for quiet, loud in product(self.subject.nets, repeat=2):
            if quiet in self.quiet and loud in self.loud and self.subject.net_images.get(quiet) != loud:
                yield from self.coupling(quiet, loud)

    def coupling(self, quiet: str, loud: str) -> list[Finding]:
        """Return whether a quiet net runs beside a loud one."""
        subject, length, place = self.subject, 0, kdb.Box()
        reach = subject.technology.to_dbu(_OWN_UM)
        shared = region_of(
            placed.box.enlarged(reach, reach)
            for placed in subject.placed
            if {quiet, loud} <= set(placed.device.terminals.values())
        )
        for conductor in subject.technology.conductors:
            first, second = (subject.shapes(net, conductor.name) for net in (quiet, loud))
            if first.is_empty() or second.is_empty():
                continue
            pairs = first.separation_check(second, _BESIDE * conductor.space, False, kdb.Region.Projection)
            edges = kdb.Edges([min(pair.first, pair.second, key=kdb.Edge.length) for pair in pairs.each()])
            outside = edges - shared
            length += outside.length()
            place += outside.bbox()
        return subject.finding(
            "coupling",
            subject.um(length),
            f"{quiet} runs {subject.um(length):.3g} um beside {loud} at under {_BESIDE} minimum spaces",
            where=place,
            nets=[quiet, loud],
        )

    def _loud(self) -> set[str]:
        subject, circuit = self.subject, self.subject.circuit
        found = {*subject.roles.clocks}
        found |= {port for port, use in subject.roles.ports.items() if use.direction == "output"}
        for module in subject.roles.groups:
            if module.type == "inverter":
                found.update(str(module.properties[each]) for each in ("input", "output"))
        for device in circuit.devices:
            if device.is_mos and device.id in self.subject.both_ways and device.terminals["g"] in circuit.ports:
                found.add(device.terminals["g"])
        return found

    def _quiet(self) -> set[str]:
        subject = self.subject
        found = set(subject.roles.inputs)
        for module in subject.roles.groups:
            if module.type in {"differential_pair", "source_follower"}:
                found.update(subject.circuit.device(name).terminals.get("g", "") for name in module.devices)
        return found | {net for net in subject.circuit.nets if self._is_high_impedance(net)}

    def _is_high_impedance(self, net: str) -> bool:
        """Return whether a net drives a gate and only drains, open switches and capacitors hold it."""
        circuit, both_ways, gates = self.subject.circuit, self.subject.both_ways, 0
        pulls: dict[str, set[str]] = {"nmos": set(), "pmos": set()}
        if net in circuit.black_box_nets or net in circuit.ports:
            return False
        for end in circuit.nets[net]:
            device = circuit.device(end.device)
            switch = device.id in both_ways
            if device.is_mos and end.terminal == "g" and net not in {device.terminals["d"], device.terminals["s"]}:
                gates += 1
            elif device.is_mos and end.terminal in {"d", "s"} and (switch or end.terminal == "d"):
                if device.terminals["g"] == net:
                    return False  # as a diode
                if not switch:
                    pulls[device.type].add(device.terminals["g"])
            elif device.type != "capacitor" and end.terminal != "b":
                return False
        held = any(pulls.values()) or any(e.device in both_ways for e in circuit.nets[net])
        return bool(gates) and held and not pulls["nmos"] & pulls["pmos"]  # one gate on both types is a logic gate
