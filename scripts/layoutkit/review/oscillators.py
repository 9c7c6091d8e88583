"""Findings on oscillators with a resonator: resistance between its capacitors and the transistor, what disturbs it.

The transistor has its source on a supply. A resistor from drain to gate, with a switch in series or not, biases it; on
both nets, between which the crystal is, lies a capacitor to a supply.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import klayout.db as kdb

from layoutkit.parasitics.net_network import layout_networks
from layoutkit.review.coupling import LEVELS
from layoutkit.review.finding import Spot
from layoutkit.review.subject import MOST_CONTACTS, region_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from layoutkit.review.coupling import Coupling
    from layoutkit.review.finding import Remark
    from layoutkit.review.subject import PlacedDevice, Subject


class _Gain(NamedTuple):
    """A transistor with a resonator between gate and drain: the transistor, and these nets."""

    device: PlacedDevice
    gate: str
    drain: str


def oscillators(subject: Subject, coupling: Coupling) -> Iterator[Remark]:
    """Yield the findings on each transistor with a resonator between gate and drain."""
    for gain in _gains(subject):
        yield from _plates(subject, gain)
        yield from _disturbed(subject, gain, coupling)


def _gains(subject: Subject) -> Iterator[_Gain]:
    """Yield the largest transistor of each oscillator."""
    circuit, found = subject.circuit, defaultdict[tuple[str, str], list["PlacedDevice"]](list)
    for placed in subject.placed:
        net = placed.device.terminals
        if placed.device.is_mos and net["s"] in subject.supplies and not subject.is_idle(placed):
            found[net["g"], net["d"]].append(placed)
    for (gate, drain), devices in found.items():
        loaded = all(_capacitors(subject, net) for net in (gate, drain))
        fed = {end for each in circuit.nets[gate] for end in _far(subject, each.device, gate, "resistor")}
        fed -= subject.supplies.nets  # a bias with a capacitor to hold it
        through = {end for net in fed for each in circuit.nets[net] for end in _channel(subject, each.device, net)}
        if loaded and gate != drain and drain in fed | through and {gate, drain} <= {*circuit.ports}:
            yield _Gain(max(devices, key=lambda each: (each.area, -each.index)), gate, drain)


def _far(subject: Subject, name: str, net: str, kind: str) -> set[str]:
    """Return the other end of a device of a kind on a net; nothing for others."""
    device = subject.circuit.device(name)
    return {device.terminals[end] for end in device.kind.ends} - {net} if device.type == kind else set()


def _channel(subject: Subject, name: str, net: str) -> set[str]:
    """Return the other end of the channel of a transistor that begins on a net."""
    device = subject.circuit.device(name)
    ends = {device.terminals[end] for end in device.kind.ends}
    return ends - {net} if device.is_mos and net in ends else set()


def _capacitors(subject: Subject, net: str) -> list[PlacedDevice]:
    """Return the capacitors between a net and a supply."""
    own = [p for p in subject.placed if p.device.type == "capacitor" and net in p.ends and not subject.is_idle(p)]
    return [placed for placed in own if placed.ends - {net} <= subject.supplies.nets]


def _plates(subject: Subject, gain: _Gain) -> Iterator[Remark]:
    """Yield the resistance between the capacitors of each net and the transistor, or the port of the crystal."""
    numbers = {subject.number[net]: net for net in (gain.gate, gain.drain)}
    networks, _ = layout_networks(subject.found, numbers, most_contacts=MOST_CONTACTS)
    worst: list[tuple[float, str, PlacedDevice]] = []
    for number, net in sorted(numbers.items()):
        network, end = networks[number], "g" if net == gain.gate else "d"
        own, port = network.nodes.get((gain.device.key, end)), network.own if network.start == "port" else None
        for placed in _capacitors(subject, net):
            node = next((network.nodes.get((placed.key, each)) for each in ("p", "n")
                         if placed.device.terminals[each] == net), None)  # fmt: skip
            if node is None or own is None:
                continue
            ends = [each for each in (own, port) if each is not None and each != node]
            ohms = network.between(node, ends)
            words = [f"{ohm:.3g} ohm to {name}" for ohm, name in zip(ohms, (gain.device.id, "the port"), strict=False)]
            worst.append((max(ohms), f"{placed.id} by {net}: {' and '.join(words)}", placed))
    worst.sort(key=lambda each: (-float(f"{each[0]:.4g}"), each[2].index))
    beyond = [each for each in worst if subject.limits["wire-resistance.tank"].beyond(each[0])]
    if beyond:
        spots = [Spot(placed.box, why, why) for _, why, placed in beyond[1:]]
        why = f"wires lie between the capacitors of an oscillator and its transistor, from {beyond[0][1]}"
        yield from subject.finding(
            "wire-resistance.tank", beyond[0][0], why, where=beyond[0][2].box, nets=[gain.gate, gain.drain],
            devices=[gain.device, *(placed for *_, placed in beyond)], places=spots, cause="resonators",
        )  # fmt: skip


def _disturbed(subject: Subject, gain: _Gain, coupling: Coupling) -> Iterator[Remark]:
    """Yield what switches across or along the two nets, apart from the devices on both."""
    conductors, uses = subject.technology.conductors, subject.roles.ports
    ports = {port for port, use in uses.items() if use.direction == "output"}  # inputs such as enables stand still
    for net, loud in product((gain.gate, gain.drain), subject.nets):
        if loud not in coupling.loud & ports or loud in {gain.gate, gain.drain}:
            continue
        near = subject.technology.to_dbu(1.0)
        own = region_of(p.box.enlarged(near) for p in subject.placed
                        if {net, loud} <= {*p.device.terminals.values()})  # fmt: skip
        crossings = kdb.Region()
        for one, other in product(range(len(conductors)), repeat=2):
            if 0 < abs(one - other) <= LEVELS:
                metals = (subject.shapes(net, conductors[one].name), subject.shapes(loud, conductors[other].name))
                crossings += (metals[0] & metals[1]) - own
        count, (*_, along, place) = crossings.merged().count(), coupling.along(net, loud, own)
        words = [f"crosses {net} at {count} place{'s' * (count > 1)}"] * bool(count)
        far = subject.limits["coupling"].beyond(subject.um(along))
        words += [f"runs {subject.um(along):.3g} um within 1 um of it" if count else
                  f"runs {subject.um(along):.3g} um within 1 um of {net}"] * bool(far)  # fmt: skip
        why = f"{loud}, which switches, {' and '.join(words)}, a node of an oscillator"
        yield from subject.finding(
            "coupling.tuned", count + bool(far), why, where=crossings.bbox() + (place if far else kdb.Box()),
            nets=[net, loud], cause="resonators",
        )  # fmt: skip
