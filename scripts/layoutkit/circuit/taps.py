"""Joining nets of a circuit: those of taps written as devices, and those that a source of 0 V connects.

A tap is a contact to a well or to the substrate. It states that the net of the well and the net on its metal are the
same. Every module is drawn with taps of its own. A tap of the netlist becomes a device of the layout only if the
process has such a device and can draw its size. Its resistance is information only.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from layoutkit.circuit.passive_map import with_sides
from layoutkit.circuit.supplies import find_supplies, substrate_net
from layoutkit.circuit.symmetry_graph import grouped
from layoutkit.errors import MAX_LISTED, Findings, NetlistError, listed, sentences
from layoutkit.technology.finger_widths import MAX_SIDE_UM

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from layoutkit.circuit.circuit import Circuit, Device, StatedSupplies


def join_taps(circuit: Circuit, technology: Any = None) -> Circuit:
    """Return the circuit with the two nets of each tap joined, and without the taps that the process does not draw.

    The net keeps the name of the first port among its nets, else that of a supply, else the name at the highest level,
    else the first name in the alphabet. Warnings name every net that was renamed.

    Args:
        circuit: What a reader returned.
        technology: A ``layoutkit.technology.Technology``: taps that it draws in their size stay. None: no tap stays.

    Raises:
        NetlistError: If taps would join a power net to a ground net; the error names all of them.
    """
    taps = [device for device in circuit.devices if device.type == "tap"]
    if not taps:
        return circuit
    names = joined_names(circuit, [(tap.terminals["p"], tap.terminals["n"]) for tap in taps], "Taps")
    findings = Findings()
    ports = set(circuit.ports)
    for net, name in names.items():
        if net != name:
            findings.warn("taps join nets", f"{'port ' if net in ports else ''}{net} is {name}")
    joined = with_names(circuit, names)
    substrate = substrate_net(joined)
    left_out = {
        device.id
        for device in joined.devices
        if device.type == "tap" and not (technology and _is_drawn(technology, device, substrate))
    }
    if left_out:
        findings.warn(
            "taps are drawn around every module and are not devices of the layout",
            listed(_shown(tap) for tap in taps if tap.id in left_out),
        )
    devices = tuple(device for device in joined.devices if device.id not in left_out)
    return replace(joined, devices=devices, warnings=(*circuit.warnings, *findings.warnings))


def _is_drawn(technology: Any, tap: Device, substrate: str) -> bool:
    """Return whether the process draws a tap of this model, size and net."""
    spec = technology.device_names.drawn(tap.model)
    if spec is None or spec.type != "tap":
        return False
    if spec.in_substrate and substrate not in ("", tap.terminals["p"]):
        return False
    try:
        params = with_sides(tap).params
    except NetlistError:  # area and perimeter are those of a ring, not of a rectangle
        return False
    sides = sorted(round(params.get(side, 0) * 1e6 / technology.dbu_um) for side in ("w", "l"))
    longest = technology.to_dbu(MAX_SIDE_UM)
    widest = spec.max_l or technology.conductors[0].max_width or longest
    return bool(min(spec.min_w, spec.min_l) <= sides[0] <= widest and sides[1] <= longest)


def with_names(circuit: Circuit, names: Mapping[str, str]) -> Circuit:
    """Return the circuit with nets renamed; ports that become one are one port."""
    devices = tuple(
        replace(device, terminals={t: names.get(net, net) for t, net in device.terminals.items()})
        for device in circuit.devices
    )
    boxes = tuple(
        replace(box, nets={port: names.get(net, net) for port, net in box.nets.items()}) for box in circuit.black_boxes
    )
    ports = tuple(dict.fromkeys(names.get(port, port) for port in circuit.ports))
    supplies = circuit.supplies and _renamed(circuit.supplies, names)
    return replace(circuit, devices=devices, ports=ports, black_boxes=boxes, supplies=supplies)


def _renamed(supplies: StatedSupplies, names: Mapping[str, str]) -> StatedSupplies:
    """Return stated supplies under the names that their nets have afterwards."""
    power, ground = (
        None if nets is None else tuple(dict.fromkeys(names.get(net, net) for net in nets))
        for nets in (supplies.power, supplies.ground)
    )
    return replace(supplies, power=power, ground=ground)


def joined_names(circuit: Circuit, pairs: Sequence[tuple[str, str]], what: str) -> dict[str, str]:
    """Return each net of these pairs with the name it has where both nets of each pair are one.

    Args:
        circuit: The circuit.
        pairs: Nets that are joined.
        what: What joins them, for a message.

    Raises:
        NetlistError: If that would join a power net to a ground net; the error names all of them.
    """
    from networkx.utils import UnionFind

    joined = UnionFind(net for pair in pairs for net in pair)
    for pair in pairs:
        joined.union(*pair)
    groups = grouped(joined, joined.__getitem__)
    supplies = find_supplies(circuit)
    order = {port: index for index, port in enumerate(circuit.ports)}
    power, ground = set(supplies.power), set(supplies.ground)
    names: dict[str, str] = {}
    shorts = []
    for group in groups.values():
        if not power.isdisjoint(group) and not ground.isdisjoint(group):
            shorts.append(" and ".join(sorted((power | ground) & set(group))))
        best = min(group, key=lambda net: (order.get(net, len(order)), net not in supplies, net.count("."), net))
        names.update(dict.fromkeys(group, best))
    if shorts:
        raise NetlistError(
            f"{what} would join supply and ground: {sentences(shorts)}. Each of them makes one net of two",
            details={"nets": shorts[:MAX_LISTED]},
        )
    return names


def _shown(tap: Device) -> str:
    area = f", {tap.params['area'] * 1e12:g} um2" if "area" in tap.params else ""
    return f"{tap.id} ({tap.model}{area})"
