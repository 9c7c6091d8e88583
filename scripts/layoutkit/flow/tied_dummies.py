"""Where the dummies of a netlist are drawn: transistors that are off, with gate and one end on the net of their body.

A dummy goes to the ends of the rows of the matched group that it guards, in place of a dummy that the netlist lacks, if
it has the flavour and body of the group and fingers of its width, or of a multiple of it, and its other end is on the
net of the body too, or on one of the group's. Groups that are each other's
mirror images get equal ones, and none gets more dummy fingers than it has fingers. Equal dummies that are left, and
equal transistors that are capacitors between supplies, are one block of rows with shared diffusions.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from layoutkit.circuit.constraints import OF_PLACES
from layoutkit.circuit.roles import find_roles
from layoutkit.circuit.symmetry import decouples, is_tied, off_end

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from layoutkit.circuit.circuit import Circuit, Device
    from layoutkit.circuit.constraints import Constraints
    from layoutkit.flow.groups import Group, Sizing

FEWEST = 4
"""How many dummy fingers a group may have although it has fewer fingers itself: two at each end."""


def idle_devices(circuit: Circuit, constraints: Constraints) -> tuple[Device, ...]:
    """Return the transistors that only guard or decouple, without those that constraints match or place."""
    named = constraints.devices_in("symmetry", "matching", *OF_PLACES)
    roles = find_roles(circuit)
    rails = {*roles.supplies.power, *roles.supplies.ground}
    guards = {name for group in roles.groups for name in group.properties.get("dummies", ()) if name not in named}
    return tuple(
        device
        for device in circuit.devices
        if (device.id in guards and off_end(device))
        or (device.is_mos and device.id not in named and (is_tied(device) or decouples(device, rails)))
    )


def guarded(
    groups: Sequence[Group],
    idle: Iterable[Device],
    circuit: Circuit,
    constraints: Constraints,
    sized: Callable[[Device], Sizing],
) -> tuple[list[Group], list[Device]]:
    """Return the groups with the dummies that they get, and the devices of ``idle`` that are left.

    Args:
        groups: All groups of transistors.
        idle: What ``idle_devices`` returned.
        circuit: The whole circuit.
        constraints: State which groups are mirror images.
        sized: Returns the fingers of a device.
    """
    owner = {device.id: number for number, group in enumerate(groups) for device in group.devices}
    image = {
        name: other
        for each in constraints.symmetry
        for one, twin in each.pairs
        for name, other in ((one, twin), (twin, one))
    }
    wards = {
        name: group.devices for group in find_roles(circuit).groups for name in group.properties.get("dummies", ())
    }
    alike: dict[tuple[tuple[int, ...], int, int, str | None], list[Device]] = defaultdict(list)
    left: list[Device] = []
    for device in idle:
        sizing, names = sized(device), wards.get(device.id, ())
        near = {owner[name] for name in (*names, *(image.get(name, name) for name in names)) if name in owner}
        places = tuple(sorted(number for number in near if _fits(device, sizing, groups[number])))
        end = off_end(device)
        if places and end is not None:
            alike[places, sizing.finger_width * sizing.fingers, sizing.length, end].append(device)
        else:
            left.append(device)
    found = list(groups)
    for (places, width, *_), devices in alike.items():
        share = len(devices) // len(places)
        for number in places:
            group = found[number]
            unit, own = group.sizing[0].finger_width, sum(each.fingers for each in group.sizing)
            taken = sum(sized(each).finger_width * sized(each).fingers for each in group.guards) // unit
            free = (max(own, FEWEST) - taken) * unit // width
            share = min(share, max(0, free))
        for place, number in enumerate(places):
            guards = (*found[number].guards, *devices[place * share : (place + 1) * share])
            found[number] = replace(found[number], guards=guards)
        left += devices[len(places) * share :]
    return found, left


def _fits(device: Device, sizing: Sizing, group: Group) -> bool:
    """Return whether a dummy can be drawn in fingers as wide as those of a group, on its diffusion."""
    first = group.devices[0]
    own = (device.model, device.terminals["b"], device.in_deep_well)
    same = own == (first.model, group.bulk_net, first.in_deep_well)
    nets = {net for each in group.devices for net in each.terminals.values()}
    return same and off_end(device) in nets and sizing.finger_width % group.sizing[0].finger_width == 0
