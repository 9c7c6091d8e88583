"""Subcircuits that are used more than once: one design for each.

A shared subcircuit is laid out once by the same flow as the circuit itself. Each instance then is a module with pins.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from layoutkit.circuit.across_cells import AcrossCells, Places, groups_across_cells
from layoutkit.circuit.circuit import StatedSupplies
from layoutkit.circuit.ranked_names import named_after
from layoutkit.circuit.repeated import Hierarchy, find_repeated
from layoutkit.circuit.roles import find_roles
from layoutkit.errors import listed
from layoutkit.flow.cell_constraints import restricted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from layoutkit.circuit.circuit import Circuit, Device
    from layoutkit.circuit.constraints import Constraints
    from layoutkit.circuit.repeated import Part, SharedSubcircuit
    from layoutkit.circuit.supplies import Supplies
    from layoutkit.draw.deep_well import DeepWellNets

SUBCIRCUIT = "subcircuit"
FEWEST_IN_ARRAY = 3
"""Equal instances from which on they are placed as an array."""


@dataclass(frozen=True)
class InstanceGroup:
    """An instance of a shared cell, whose devices are drawn there, or several of them in an array.

    Attributes:
        name: Path of the instance; of an array the name of its cell.
        cell: Name of the shared cell.
        devices: In the names of the circuit that contains it.
        names: Id of each device in the cell to its id in that circuit; empty for an array.
        nets: Net of the cell to net of that circuit; empty for an array.
        several: The instances of an array; empty for a single one.
        type: ``subcircuit``.
        bulk_net: Empty: a cell has wells and substrate taps of its own.
        level: 1.
    """

    name: str
    cell: str
    devices: tuple[Device, ...]
    names: Mapping[str, str]
    nets: Mapping[str, str]
    several: tuple[InstanceGroup, ...] = ()
    type: str = SUBCIRCUIT
    bulk_net: str = ""
    level: int = 1

    @property
    def members(self) -> tuple[InstanceGroup, ...]:
        """The single instances."""
        return self.several or (self,)


@dataclass(frozen=True)
class Chip:
    """What is decided for the whole circuit and holds inside shared cells, too.

    Attributes:
        supplies: Power and ground nets.
        substrate: Net of the substrate.
        deep_wells: Nets of the deep well of each device that lies in one.
    """

    supplies: frozenset[str]
    substrate: str
    deep_wells: Mapping[str, DeepWellNets]

    @property
    def nets(self) -> tuple[str, ...]:
        """The nets of the substrate and of deep wells, which a cell may need though its netlist does not name them."""
        wells = (net for well in self.deep_wells.values() for net in (well.well, well.substrate))
        return tuple(sorted({*wells, self.substrate} - {""}))


@dataclass(frozen=True)
class Level:
    """One circuit to be laid out: the whole one, or a shared subcircuit.

    Attributes:
        circuit: All its devices.
        parts: Instances of shared cells inside it.
        chip: The decisions in its own names of nets and devices.
        ports: Nets that lead out of it; those of the substrate and of deep wells are among them.
    """

    circuit: Circuit
    parts: tuple[InstanceGroup, ...]
    chip: Chip
    ports: tuple[str, ...]

    @property
    def own(self) -> Circuit:
        """The circuit without the devices inside its parts; the nets of these are ports."""
        if not self.parts:
            return replace(self.circuit, ports=self.ports)
        inside = {name for part in self.parts for name in part.names.values()}
        devices = tuple(device for device in self.circuit.devices if device.id not in inside)
        nets = {net for part in self.parts for net in part.nets.values()}
        used = dict.fromkeys(net for device in devices for net in device.terminals.values())
        ports = dict.fromkeys((*self.ports, *(net for net in used if net in nets)))
        return replace(self.circuit, devices=devices, ports=tuple(ports), modules=())


def in_arrays(level: Level) -> tuple[InstanceGroup, ...]:
    """Return instances to be placed, those of one cell as one array where there are at least ``FEWEST_IN_ARRAY``.

    The stages of a ring or delay line lie in the order in which they drive each other.
    """
    by_cell: dict[str, list[InstanceGroup]] = {}
    for part in level.parts:
        by_cell.setdefault(part.cell, []).append(part)
    lines = [group for group in find_roles(level.circuit).groups if group.type == "ring_stage"] if level.parts else []
    stage_of = {
        name: (line, number)
        for line, group in enumerate(lines)
        for number, stage in enumerate(group.properties["stages"])
        for name in stage
    }
    found: list[InstanceGroup] = []
    for cell, members in by_cell.items():
        if len(members) < FEWEST_IN_ARRAY:
            found += members
            continue
        if all(any(device.id in stage_of for device in part.devices) for part in members):
            members.sort(key=lambda part: min(stage_of[d.id] for d in part.devices if d.id in stage_of))
        devices = tuple(device for member in members for device in member.devices)
        found.append(
            InstanceGroup(named_after(members[0].name, f"{cell}_array"), cell, devices, {}, {}, tuple(members))
        )
    return tuple(found)


def levels_of(circuit: Circuit, hierarchy: Hierarchy, chip: Chip) -> tuple[Level, dict[str, Level]]:
    """Return the whole circuit and each shared subcircuit, by its name, as circuits to be laid out."""
    shared = {each.name: each for each in hierarchy.shared}
    own_names = {name: _names_inside(each, chip) for name, each in shared.items()}
    here = dict.fromkeys(chip.nets)

    def parts(circuit: Circuit, parts: Iterable[Part], names: Mapping[str, str]) -> tuple[InstanceGroup, ...]:
        by_id = {device.id: device for device in circuit.devices}
        return tuple(
            InstanceGroup(
                part.name,
                part.shared,
                tuple(by_id[name] for name in part.devices.values()),
                part.devices,
                {**{own: names[flat] for flat, own in own_names[part.shared].items()}, **part.nets},
            )
            for part in parts
        )

    known = find_roles(circuit).supplies
    if hierarchy.parts:  # what is left of the circuit does not tell its supplies
        circuit = replace(circuit, supplies=StatedSupplies(known.power, known.ground))
    top = Level(circuit, parts(circuit, hierarchy.parts, {net: net for net in here}), chip, circuit.ports)
    return top, {
        name: Level(
            replace(each.circuit, ports=(), supplies=_supplies_inside(each, known)),
            parts(each.circuit, each.parts, own_names[name]),
            _chip_inside(each, chip, own_names[name]),
            tuple(dict.fromkeys((*each.circuit.ports, *own_names[name].values()))),
        )
        for name, each in shared.items()
    }


def _names_inside(shared: SharedSubcircuit, chip: Chip) -> dict[str, str]:
    """Return the name inside a shared subcircuit of each net that belongs to the whole chip."""
    first, *others = (use.nets for use in shared.uses)
    found = {}
    for net in chip.nets:
        same = [own for own, flat in first.items() if flat == net and all(nets[own] == net for nets in others)]
        name = same[0] if same else net
        while not same and name in first:
            name += "_"
        found[net] = name
    return found


def _supplies_inside(shared: SharedSubcircuit, known: Supplies) -> StatedSupplies:
    """Return the nets of a shared subcircuit that are supplies of the whole circuit in every instance."""
    power, ground = (
        tuple(own for own in shared.uses[0].nets if all(use.nets[own] in nets for use in shared.uses))
        for nets in (known.power, known.ground)
    )
    return StatedSupplies(power, ground)


def _chip_inside(shared: SharedSubcircuit, chip: Chip, names: Mapping[str, str]) -> Chip:
    supplies = (net for net in shared.uses[0].nets if all(use.nets[net] in chip.supplies for use in shared.uses))
    wells = {
        own: replace(well, well=names[well.well], substrate=names[well.substrate])
        for own, flat in shared.uses[0].devices.items()
        if (well := chip.deep_wells.get(flat))
    }
    own_supplies = {names[net] for net in chip.nets if net in chip.supplies}
    return Chip(frozenset({*supplies, *own_supplies}), names.get(chip.substrate, ""), wells)


def repeated_subcircuits(
    circuit: Circuit, chip: Chip, stated: Constraints | None, refused: Mapping[str, str]
) -> tuple[Hierarchy, tuple[str, ...]]:
    """Return the subcircuits to be laid out once, and what is laid out apart and why, in words.

    Instances are equal if they agree in what stated constraints say about their devices, and in which of these lie in
    deep wells. Devices of groups that reach across cells are no part of these, as ``across_cells`` decides. Stated
    constraints decide in its place: what they match across cells lies outside of these, and instances with a mirror
    image of a device in another one are not shared.

    Args:
        circuit: The flat circuit.
        chip: What is decided for it.
        stated: The constraints of a request; None where recognition suggests them.
        refused: Paths of instances that are not shared, and why.
    """

    def kind_of(names: Mapping[str, str]) -> Any:
        wells = tuple(own for own, flat in names.items() if flat in chip.deep_wells)
        if stated is None:
            return wells
        inside = restricted(stated, {flat: own for own, flat in names.items()}, {}).to_json()
        told = [{**entry, "section": name, "reason": ""} for name, entries in inside.items() for entry in entries]
        return wells, json.dumps(told, sort_keys=True)

    whole = find_repeated(circuit, kind_of)
    if not whole.shared:
        return Hierarchy(), ()
    across = groups_across_cells(circuit, whole, all_roles=stated is None)
    if stated is not None:
        across = _with_stated(across, Places(circuit, whole), stated)
    notes = [f"{', '.join(p for p in refused if refused[p] == why)}: {why}" for why in dict.fromkeys(refused.values())]
    found = find_repeated(circuit, kind_of, {*refused, *across.dissolved}, across.moved)
    return found, (*notes, *across.words)


def _with_stated(across: AcrossCells, places: Places, stated: Constraints) -> AcrossCells:
    """Return the decisions with what follows from stated constraints that reach across cells."""
    moved = {name: set(paths) for name, paths in across.moved.items()}
    dissolved: dict[str, None] = dict.fromkeys(across.dissolved)
    words = list(across.words)
    for group in stated.matching:
        apart = places.apart(group.devices)
        for name, paths in apart.items():
            moved.setdefault(name, set()).update(paths)
        if apart:
            named = " and ".join(group.devices)
            words.append(f"{', '.join(apart)}: laid out outside of their cells, as a constraint matches {named}")
    for axis in stated.symmetry:
        inner = (name for each in stated.axes_within.get(axis, ()) for pair in each.pairs for name in pair)
        own = {path for name in inner for path in places.around.get(name, ())}
        for pair in axis.pairs:
            outside = dict.fromkeys(
                path
                for name, paths in places.apart(pair).items()
                for path in paths
                if path not in moved.get(name, ()) and path not in own
            )
            if outside:
                dissolved.update(outside)
                words.append(
                    f"{', '.join(outside)}: laid out with the rest, as a constraint mirrors {' and '.join(pair)}"
                )
        if own:
            words.append(
                f"{listed(sorted(own))}: each stays a cell with an axis of its own, as the constraints state it"
            )
    return AcrossCells(moved, frozenset(dissolved), tuple(words))
