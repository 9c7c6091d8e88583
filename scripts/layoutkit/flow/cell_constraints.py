"""Constraints of a circuit inside the cells that its instances share.

Constraints are stated for the whole circuit. Each cell obeys those on its own devices, and the outcome is reported for
every instance.
"""

from __future__ import annotations

import re
from dataclasses import fields, replace
from itertools import product
from typing import TYPE_CHECKING, Any

from layoutkit.circuit.constraints import OF_THE_CHIP, Constraints, DeviceCurrent, SymmetryGroup
from layoutkit.circuit.suggested_constraints import suggest_constraints
from layoutkit.circuit.symmetry import facing_nets
from layoutkit.flow.current_loads import device_currents

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from layoutkit.circuit.circuit import Circuit
    from layoutkit.circuit.constraints import Outcome
    from layoutkit.circuit.repeated import Hierarchy, SharedSubcircuit
    from layoutkit.flow.hierarchy import Level

_DEVICES = ("devices", "device", "pairs", "self_symmetric")
_NETS = ("net", "net_pairs", "port")


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
