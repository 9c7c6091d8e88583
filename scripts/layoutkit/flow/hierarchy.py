"""Subcircuits that are used more than once: one design for each, with the constraints of the circuit on its devices.

A shared subcircuit is laid out once by the same flow as the circuit itself. Each instance then is a module with pins.

Constraints are stated for the whole circuit. Each cell obeys those on its own devices, and the outcome is reported for
every instance.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import TYPE_CHECKING, Any

from layoutkit.circuit.across_cells import AcrossCells, Places, groups_across_cells
from layoutkit.circuit.circuit import StatedSupplies
from layoutkit.circuit.constraints import OF_THE_CHIP, Constraints, DeviceCurrent, SymmetryGroup
from layoutkit.circuit.ranked_names import named_after
from layoutkit.circuit.repeated import Hierarchy, find_repeated
from layoutkit.circuit.roles import find_roles
from layoutkit.circuit.suggested_constraints import suggest_constraints
from layoutkit.circuit.symmetry import facing_nets
from layoutkit.errors import listed
from layoutkit.flow.current_loads import device_currents

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from layoutkit.circuit.circuit import Circuit, Device
    from layoutkit.circuit.constraints import Outcome
    from layoutkit.circuit.repeated import Part, SharedSubcircuit
    from layoutkit.circuit.supplies import Supplies
    from layoutkit.draw.deep_well import DeepWellNets


SUBCIRCUIT = "subcircuit"
FEWEST_IN_ARRAY = 3
"""Equal instances from which on they are placed as an array."""
_DEVICES = ("devices", "device", "pairs", "self_symmetric")
_NETS = ("net", "net_pairs", "port")


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


def restricted(constraints: Constraints, devices: Mapping[str, str], nets: Mapping[str, str]) -> Constraints:
    """Return the constraints that name only some devices and nets, with these renamed.

    Args:
        constraints: In names of a whole circuit.
        devices: Id of each device to keep, mapped to its new id.
        nets: The same for nets.
    """
    kept: dict[str, tuple[Any, ...]] = {}
    for section in (entry.name for entry in fields(Constraints) if entry.name not in OF_THE_CHIP):
        entries = (_renamed(entry, devices, nets) for entry in getattr(constraints, section))
        kept[section] = tuple(entry for entry in entries if entry is not None)
    return Constraints(**kept)


def _renamed(entry: Any, devices: Mapping[str, str], nets: Mapping[str, str]) -> Any | None:
    """Return an entry with its names replaced; None if one is unknown. A symmetry group keeps what has known names."""
    changed: dict[str, Any] = {}
    for each in fields(entry):
        known = devices if each.name in _DEVICES else nets if each.name in _NETS else None
        value = getattr(entry, each.name)
        if known is None or not value:
            continue
        found = _with_names(value, known)
        if isinstance(entry, SymmetryGroup):
            items = (_with_names(item, known) for item in value)
            found = tuple(item for item in items if item is not None)
        if found is None:
            return None
        changed[each.name] = found
    of_devices = [name for name in changed if name in _DEVICES]
    if isinstance(entry, SymmetryGroup) and not any(changed[name] for name in of_devices or changed):
        return None
    return replace(entry, **changed)


def _with_names(value: Any, known: Mapping[str, str]) -> Any | None:
    """Return a name, or a tuple of names, replaced; None if one of them is unknown."""
    if isinstance(value, str):
        return known.get(value)
    found = tuple(_with_names(each, known) for each in value)
    return None if None in found else found


def together(all_of: Iterable[Constraints]) -> Constraints:
    """Return the constraints of several objects as one. If a net has several priorities, the first counts."""
    parts = list(all_of)
    found: dict[str, tuple[Any, ...]] = {}
    for section in (entry.name for entry in fields(Constraints)):
        entries = [entry for part in parts for entry in getattr(part, section)]
        if section == "net_priorities":
            entries = list({entry.net: entry for entry in reversed(entries)}.values())[::-1]
        found[section] = tuple(entries)
    return Constraints(**found)


def outcomes_inside(whole: Constraints, outcomes: Iterable[Outcome], names: Mapping[str, str]) -> Iterator[Outcome]:
    """Yield the outcomes of constraints inside a cell as outcomes of the whole circuit's constraints.

    Args:
        whole: The constraints of the whole circuit.
        outcomes: Of the cell, in its names.
        names: Name of each device and net of the cell in the whole circuit.
    """
    places = {(_section(path), each): path for path, each in _listed(whole)}
    for outcome in outcomes:
        found = tuple(names.get(name, name) for name in outcome.names)
        path = places.get((_section(outcome.path), found))
        if path is not None:
            yield replace(outcome, path=path, names=found)


def _section(path: str) -> str:
    return re.sub(r"\[\d+\]", "", path)


def _listed(constraints: Constraints) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the place of each constraint with the names in it."""
    for section in (entry.name for entry in fields(Constraints)):
        for number, entry in enumerate(getattr(constraints, section)):
            path = f"{section}[{number}]"
            if isinstance(entry, SymmetryGroup):
                yield from ((f"{path}.pairs[{i}]", pair) for i, pair in enumerate(entry.pairs))
                yield from ((f"{path}.self_symmetric[{i}]", (name,)) for i, name in enumerate(entry.self_symmetric))
                yield from ((f"{path}.net_pairs[{i}]", pair) for i, pair in enumerate(entry.net_pairs))
                continue
            named = [getattr(entry, each.name) for each in fields(entry) if each.name in (*_DEVICES, *_NETS)]
            if len(named) == 1:
                yield path, (named[0],) if isinstance(named[0], str) else named[0]


def suggested_by_level(top: Level, levels: Mapping[str, Level], hierarchy: Hierarchy) -> Constraints:
    """Return what recognition suggests for the circuit and, for every instance, for each shared subcircuit.

    Which devices match at the top is decided in the whole circuit: what is left there of a group that reaches into
    cells would not show it.
    """

    def suggested(level: Level) -> Constraints:
        return suggest_constraints(level.own)

    own = suggested(top)
    if top.parts:
        names = {device.id: device.id for device in top.own.devices}
        matching = restricted(suggest_constraints(top.circuit), names, {}).matching
        known = {name for group in matching for name in group.devices}
        matching += tuple(group for group in own.matching if known.isdisjoint(group.devices))
        own = replace(own, matching=matching)
    inside = ((suggested(levels[shared.name]), use) for shared in hierarchy.shared for use in shared.uses)
    whole = together([own, *(restricted(found, use.devices, use.nets) for found, use in inside)])
    return replace(whole, symmetry=_without_conflicts(whole.symmetry, top.chip.supplies))


def _without_conflicts(groups: Iterable[SymmetryGroup], supplies: Collection[str]) -> tuple[SymmetryGroup, ...]:
    """Return symmetry groups in which no supply mirrors another net, and no net two others.

    A pair of nets of a shared subcircuit may be two supplies in one instance, one net in another, and nets with other
    partners in a third.
    """
    partner: dict[str, str] = {}
    found = []
    for group in groups:
        pairs = []
        for one, other in group.net_pairs:
            free = partner.get(one, other) == other and partner.get(other, one) == one
            new = one != other and (one, other) not in pairs and (other, one) not in pairs
            if free and new and not {one, other}.intersection(supplies):
                partner[one], partner[other] = other, one
                pairs.append((one, other))
        if pairs or group.pairs or group.self_symmetric:
            found.append(replace(group, net_pairs=tuple(pairs)))
    return tuple(found)


def constraints_inside(shared: SharedSubcircuit, level: Level, whole: Constraints, circuit: Circuit) -> Constraints:
    """Return the constraints that a shared cell obeys: those on its devices and nets, and its largest currents."""
    of_uses = []
    for use in shared.uses:
        names: dict[str, list[str]] = {}
        for own, flat in use.nets.items():
            names.setdefault(flat, []).append(own)
        firsts = {flat: each[0] for flat, each in names.items()}
        inside = restricted(whole, {flat: own for own, flat in use.devices.items()}, firsts)
        tied = {each[0]: each for each in names.values()}
        symmetry = tuple(_with_tied_nets(group, tied, shared.circuit) for group in inside.symmetry)
        of_uses.append(replace(inside, symmetry=symmetry))
    found = of_uses[0]
    loads = device_currents(whole, circuit)
    most = {own: max(loads.get(each.devices[own], 0.0) for each in shared.uses) for own in shared.uses[0].devices}
    return replace(
        found,
        symmetry=_with_all_net_pairs([each.symmetry for each in of_uses]),
        net_currents=tuple(entry for entry in found.net_currents if entry.net not in level.ports),
        device_currents=tuple(DeviceCurrent(own, current) for own, current in most.items() if current),
        port_sides=(),
    )


def _with_tied_nets(group: SymmetryGroup, tied: Mapping[str, Sequence[str]], circuit: Circuit) -> SymmetryGroup:
    """Return a symmetry group in which one net of the whole circuit may be several nets of the cell.

    Its net pairs become those on which the devices of its pairs face each other.

    Args:
        group: The group; each net has the first of its names in the cell.
        tied: The first name of each net, mapped to all of its names in the cell.
        circuit: The circuit of the cell.
    """
    facing = set[tuple[str, str]]()
    for pair in group.pairs:
        nets = facing_nets(circuit.device(pair[0]), circuit.device(pair[1]))
        facing.update((*nets, *((other, one) for one, other in nets)))
    found: dict[tuple[str, str], None] = {}
    for one, other in group.net_pairs:
        choices = list(product(tied[one], tied[other]))
        known = [pair for pair in choices if pair in facing] if len(choices) > 1 else []
        found.update(dict.fromkeys(known or choices[:1]))
    return replace(group, net_pairs=tuple(found))


def _with_all_net_pairs(of_uses: Sequence[Sequence[SymmetryGroup]]) -> tuple[SymmetryGroup, ...]:
    """Return the symmetry groups of the first instance, each with the net pairs that it has in any instance."""
    pairs: dict[Any, dict[tuple[str, str], None]] = {}
    for groups in of_uses:
        for group in groups:
            known = pairs.setdefault((group.pairs, group.self_symmetric), {})
            taken = {net for pair in known for net in pair}
            known.update(dict.fromkeys(pair for pair in group.net_pairs if not taken.intersection(pair)))
    return tuple(replace(group, net_pairs=tuple(pairs[group.pairs, group.self_symmetric])) for group in of_uses[0])


def without_parts(level: Level, whole: Constraints) -> Constraints:
    """Return the constraints that the circuit of a level obeys itself: all but those on devices inside its parts."""
    if not level.parts:
        return whole
    own = {device.id: device.id for device in level.own.devices}
    drawn_here = restricted(whole, own, {net: net for net in level.circuit.nets})
    owner = {name: part.name for part in level.parts for name in part.names.values()}
    of_places = {
        section: tuple(
            entry for entry in getattr(whole, section) if len({owner.get(name, name) for name in entry.devices}) > 1
        )
        for section in ("proximity", "alignment", "ordering", "abutment")
    }
    return replace(whole, symmetry=drawn_here.symmetry, matching=drawn_here.matching, **of_places)
