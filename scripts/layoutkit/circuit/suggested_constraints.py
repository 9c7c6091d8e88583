"""What was understood of a circuit: as constraints, and in the words of a designer.

The words are about supplies, groups, symmetry, and what matches nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from layoutkit.circuit.across_cells import groups_across_cells
from layoutkit.circuit.constraints import (
    PRIORITIES,
    Alignment,
    Constraints,
    MatchedGroup,
    NetPriority,
    Ordering,
    ProximityGroup,
    SymmetryGroup,
)
from layoutkit.circuit.orientation import carries_both_ways, is_off
from layoutkit.circuit.recognise import MODULE_TYPES
from layoutkit.circuit.repeated import find_repeated
from layoutkit.circuit.roles import find_roles
from layoutkit.circuit.supplies import structural_supplies
from layoutkit.circuit.symmetry import DUMMY_PAIR, decouples, is_tied, off_end
from layoutkit.circuit.symmetry_graph import grouped, same_size, shared_nets
from layoutkit.errors import listed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from layoutkit.circuit.circuit import Circuit, Device, RecognisedModule
    from layoutkit.circuit.symmetry import SymmetricStructure


MOST_IN_ROW = 9
"""Stages of a ring or delay line that lie side by side."""
MOST_IN_ORDER = 2 * MOST_IN_ROW
"""Largest number of stages for which an order is suggested; longer rows need much more area."""
_STAGES = "equal stages that drive each other"
_DRAWN_OTHERWISE = frozenset({"inverter", "ring_stage"})
MOST_NAMED = 40
"""The maximum number of devices or pairs listed in a message; the rest are counted."""


def suggest_constraints(circuit: Circuit) -> Constraints:
    """Return the constraints that follow from the roles in ``circuit``; the same circuit gives the same ones."""
    bipolars = _bipolar_arrays(circuit)
    arrays = [*_capacitor_arrays(circuit), *bipolars]
    together = {name for array in bipolars for name in array.devices}
    ordering, columns = _lines_of_stages(circuit)
    symmetry = _symmetry(circuit, {name for array in arrays for name in array.devices})
    transistors = (
        _matching(module, devices)
        for module in find_roles(circuit).modules
        if MODULE_TYPES[module.type].matched and together.isdisjoint(module.devices)
        for devices in _by_kind(circuit, module)
    )
    return Constraints(
        symmetry=symmetry,
        matching=(*transistors, *arrays),
        proximity=(*_proximity(circuit), *_idle_devices(circuit)),
        alignment=tuple(Alignment(column, "center_x", _STAGES) for column in columns),
        ordering=tuple(ordering),
        net_priorities=_net_priorities(circuit, symmetry),
    )


def _symmetry(circuit: Circuit, in_arrays: AbstractSet[str]) -> tuple[SymmetryGroup, ...]:
    """Return a group for each symmetric structure, without capacitors whose plates have a common centroid."""
    mirrors = [set(group.devices) for group in find_roles(circuit).groups if group.type == "current_mirror"]
    owner = {name: module.id for module in find_roles(circuit).modules for name in module.devices}
    found, supplies = [], find_roles(circuit).supplies
    for structure in find_roles(circuit).symmetry:
        pairs, words, on_the_right = [], [], set[str]()
        for kind, *pair in structure.pairs:
            if in_arrays & {*pair} or _in_parallel(circuit, *pair) or kind == DUMMY_PAIR:
                continue
            if not same_size(*map(circuit.device, pair)):
                continue  # two models
            one, other = (owner.get(name, name) for name in pair)
            turned = one != other and one in on_the_right  # what shares a module with others lies on their side
            left, right = reversed(pair) if turned else pair
            on_the_right.update({one if turned else other} if one != other else ())
            pairs.append((left, right))
            mirrored = any({left, right} <= devices for devices in mirrors)
            name = "mirror of ratio 1" if mirrored else MODULE_TYPES[kind].words if kind in MODULE_TYPES else "pair"
            words.append(f"{name} {left}/{right}")
        if pairs:
            reason = listed(words, 12)
            nets = tuple(
                pair for pair in structure.net_pairs if not any(net in supplies for net in pair)
            )  # a rail mirrors no signal
            found.append(SymmetryGroup(tuple(pairs), structure.centred, nets, reason))
    return tuple(found)


def _idle_devices(circuit: Circuit) -> tuple[ProximityGroup, ...]:
    """Return what tied dummies lie beside, the devices of their body and finger width, and decoupling together."""
    roles, supplies = find_roles(circuit), structural_supplies(circuit)
    rails = supplies.nets
    found = []
    guarding = {name for group in roles.groups for name in group.properties.get("dummies", ())}
    for group in roles.groups:
        dummies = [circuit.device(name) for name in group.properties.get("dummies", ())]
        tied = [device for device in dummies if off_end(device) is not None]
        units = {_finger(device) for device in tied}
        wards = [name for name in group.devices if _finger(circuit.device(name)) in units]
        if tied and wards:
            names = (*wards, *(device.id for device in tied))
            found.append(ProximityGroup(names, f"dummies of the {MODULE_TYPES[group.type].words}"))
    alike: dict[tuple[str, tuple[object, ...]], list[str]] = defaultdict(list)
    for device in circuit.devices:
        if is_tied(device) and device.id not in guarding:
            alike["equal dummies", _finger(device)].append(device.id)
        elif decouples(device, rails):
            nets = sorted(rails & set(device.terminals.values()))
            alike[f"decoupling of {' and '.join(nets)}", ()].append(device.id)
    found += [ProximityGroup(tuple(names), words) for (words, _), names in alike.items() if len(names) > 1]
    return tuple(found)


def _finger(device: Device) -> tuple[object, ...]:
    """Return what a dummy and the transistor beside it agree in: model, body, and the width of a finger."""
    width = device.params.get("w") if device.is_mos else None
    return device.model, device.terminals.get("b"), round(width / device.nf * 1e12) if width else device.id


def _proximity(circuit: Circuit) -> tuple[ProximityGroup, ...]:
    """Return the groups that no one module holds, such as a mirror whose gates differ: their modules are neighbours.

    Groups on one symmetry axis are left out, since symmetry keeps them together, and so are inverters and ring stages.
    """
    roles = find_roles(circuit)
    owner = {name: each.id for each in roles.modules if MODULE_TYPES[each.type].matched for name in each.devices}
    axes = [{*each.centred, *(name for _, *pair in each.pairs for name in pair)} for each in roles.symmetry]
    return tuple(
        ProximityGroup(group.devices, f"{MODULE_TYPES[group.type].words} in several modules")
        for group in roles.groups
        if group.type not in _DRAWN_OTHERWISE
        and len({owner.get(name, name) for name in group.devices}) > 1
        and not any(axis.issuperset(group.devices) for axis in axes)
    )


def stages_without_order(circuit: Circuit) -> list[str]:
    """Return a sentence for each array of stages for which no order is suggested, because it has too many."""
    return [
        f"{group.id}: its {len(stages)} stages get no order, which {MOST_IN_ORDER} stages get at most, since more take "
        "much more area in order; state ordering to have one, or make each stage an instance of one subcircuit"
        for group in _flat_stages(circuit)
        if len(stages := group.properties["stages"]) > MOST_IN_ORDER
    ]


def _flat_stages(circuit: Circuit) -> list[RecognisedModule]:
    """Return the arrays of equal stages that are neither instances of a subcircuit nor parts of a symmetric circuit."""
    roles = find_roles(circuit)
    images = {name for each in roles.symmetry for _, *pair in each.pairs for name in pair}
    place = {name: each.path for each in circuit.subcircuits for name in each.devices}
    return [
        group
        for group in roles.groups
        if group.properties.get("stages")
        and images.isdisjoint(group.devices)
        and len({place.get(name, "") for name in group.devices}) == 1
    ]


def _lines_of_stages(circuit: Circuit) -> tuple[list[Ordering], list[tuple[str, ...]]]:
    """Return the order of equal stages that drive each other, and the transistors of each, which lie in a column.

    A long line goes to and fro in two rows. What matches devices outside of its stage, such as a current source, is
    drawn with these. Stages that are instances of a subcircuit are an array of cells in any case.
    """
    roles = find_roles(circuit)
    matched = {name for each in roles.modules if MODULE_TYPES[each.type].matched for name in each.devices}
    ordering, columns = list[Ordering](), list[tuple[str, ...]]()
    for group in _flat_stages(circuit):
        stages: Sequence[Sequence[str]] = group.properties["stages"]
        if len(stages) > MOST_IN_ORDER:
            continue
        lines = [line for line in zip(*stages, strict=False) if matched.isdisjoint(line)]
        for line in lines:
            length = -(-len(line) // -(-len(line) // MOST_IN_ROW))
            rows = [
                line[start : start + length][:: (1, -1)[start // length % 2]] for start in range(0, len(line), length)
            ]
            ordering += [Ordering(row, "left_to_right", _STAGES) for row in rows if len(row) > 1]
            if len(rows) > 1:
                ordering.append(Ordering(tuple(row[0] for row in rows), "bottom_to_top", _STAGES))
        if 1 < len(lines) == len(stages[0]):
            columns += [tuple(stage) for stage in stages]
    return ordering, columns


def _in_parallel(circuit: Circuit, left: str, right: str) -> bool:
    """Return whether two devices are capacitors on the same nets, which are one capacitor."""
    one, other = circuit.device(left), circuit.device(right)
    return "capacitor" in one.type and one.terminals == other.terminals


def _by_kind(circuit: Circuit, module: RecognisedModule) -> list[list[str]]:
    """Return the devices of a module that can match: a mirror's cascodes may be of another model than its branches.

    Transistors with bodies on two nets lie in two wells, so they do not match.
    """
    devices = map(circuit.device, module.devices)
    kinds = grouped(devices, lambda each: (each.type, each.model, each.terminals.get("b", "") if each.is_mos else ""))
    return [[device.id for device in alike] for alike in kinds.values() if len(alike) > 1]


def _matching(module: RecognisedModule, devices: Sequence[str]) -> MatchedGroup:
    """Return how the devices of a module, or those of one kind, are to be matched."""
    module_type = MODULE_TYPES[module.type]
    if module_type.symmetric:
        return MatchedGroup(tuple(devices), reason=module_type.words)
    ratios = module.properties.get("ratios", {})
    shown = listed(f"{device} {ratio:g}" if ratio else device for device, ratio in ratios.items())
    if "units" in module.properties:
        units = ":".join(str(module.properties["units"][device]) for device in devices)
        return MatchedGroup(tuple(devices), "interdigitated", f"{module_type.words}, {units} units")
    text = f"{module.properties.get('topology', 'simple')} current mirror, ratios to {module.devices[0]}: {shown}"
    return MatchedGroup(tuple(devices), reason=text)


def _bipolar_arrays(circuit: Circuit) -> list[MatchedGroup]:
    """Return the pairs of bipolar transistors that an array can give one centroid, and the quads of mixers.

    A quad is two pairs on the same two emitters and collectors, crossed: each base has a transistor of both emitters.
    """
    crossed: dict[tuple[object, ...], list[tuple[str, ...]]] = {}
    pairs: list[MatchedGroup] = []
    for module in find_roles(circuit).groups:
        one, *others = [circuit.device(name) for name in module.devices]
        if not MODULE_TYPES[module.type].symmetric or one.type not in {"npn", "pnp"}:
            continue
        if "common_emitter" in module.properties:
            ends = frozenset((end, each.terminals[end]) for each in (one, *others) for end in "cb")
            crossed.setdefault((one.model, *sorted(one.params.items()), ends), []).append(module.devices)
        if one.m > 1:
            words = f"{MODULE_TYPES[module.type].words}, {one.m}:{others[0].m} units"
            pairs.append(MatchedGroup(module.devices, "interdigitated", words))
    quads = [(*rows[0], *rows[1]) for rows in crossed.values() if len(rows) == 2]
    matched = {name for names in quads for name in names}
    words = "quad of bipolar transistors on two emitters"
    alone = [pair for pair in pairs if matched.isdisjoint(pair.devices)]
    return [*alone, *(MatchedGroup(names, "interdigitated", words) for names in quads)]


def _capacitor_arrays(circuit: Circuit) -> list[MatchedGroup]:
    """Return the capacitors that are made of equal plates and share a net that is no supply, in groups.

    Those that are all in parallel are one capacitor, of which nothing sees a part.

    Two that mirror each other and have an odd number of plates each form no group: no array gives them one centroid.
    """
    mirrored = [set(module.devices) for module in find_roles(circuit).modules if module.type == "capacitor_pair"]
    supplies = structural_supplies(circuit)
    plates = [
        device
        for device in circuit.devices
        if device.type == "capacitor" and {"w", "l"} <= device.params.keys() and device.params.get("series", 1) == 1
    ]
    groups = shared_nets(
        plates,
        lambda device: (device.model, *sorted((device.w, device.l))),
        supplies.nets,
    )
    return [
        MatchedGroup(
            tuple(device.id for device in group),
            "interdigitated",
            f"capacitors of equal plates, {':'.join(str(device.m) for device in group)}",
        )
        for group in groups
        if (group[0].m % 2 == 0 or {device.id for device in group} not in mirrored)
        and len({frozenset(device.terminals.values()) for device in group}) > 1
    ]


def _net_priorities(circuit: Circuit, symmetry: Sequence[SymmetryGroup]) -> tuple[NetPriority, ...]:
    """Return a priority for each net that joins two terminals or leaves the circuit, the first to route first."""
    supplies = find_roles(circuit).supplies
    mirrored = {net for group in symmetry for pair in group.net_pairs for net in pair}
    gates = Counter(net for net, places in circuit.nets.items() for place in places if place.terminal == "g")
    mirrors = [module for module in find_roles(circuit).groups if module.type == "current_mirror"]
    bias = {module.properties.get("common_gate") for module in mirrors}
    entries = []
    for net, places in circuit.nets.items():
        if len(places) < 2 and net not in circuit.ports:
            continue
        if net in supplies:
            kind, reason = "supply", "supply net"
        elif net in mirrored:
            kind, reason = "sensitive", "one of two nets that mirror each other"
        elif net in bias and gates[net] > 1:
            kind, reason = "bias", "gates of a current mirror"
        else:
            kind, reason = "signal", "signal net"
        entries.append(NetPriority(net, PRIORITIES[kind], kind, reason))
    return tuple(sorted(entries, key=lambda entry: entry.priority))


def recognition_data(circuit: Circuit) -> dict[str, Any]:
    """Return what was understood of an oriented circuit as JSON data.

    ``supplies`` and ``groups`` are lists of objects; ``cut``, ``across_cells``, ``symmetry``, ``not_matched`` and
    ``undefined_cells`` are sentences; ``drain_source_exchanged`` and ``carry_both_ways`` name transistors.
    """
    roles = find_roles(circuit)
    kinds = {**dict.fromkeys(roles.supplies.power, "power"), **dict.fromkeys(roles.supplies.ground, "ground")}
    turned = (device for device in circuit.devices if device.exchanged)
    return {
        "supplies": [
            {"net": net, "kind": kind, "reason": roles.supplies.reasons.get(net, "")} for net, kind in kinds.items()
        ],
        "groups": [
            {"id": group.id, "what": MODULE_TYPES[group.type].words, "devices": list(group.devices)}
            for group in roles.groups
        ],
        "cut": [*roles.cut, *stages_without_order(circuit)],
        "across_cells": list(groups_across_cells(circuit, find_repeated(circuit)).words),
        "symmetry": symmetry_lines(roles.symmetry),
        "not_matched": list(roles.not_matched),
        "drain_source_exchanged": [d.id for d in turned if not (d.both_ways or is_off(d, roles.supplies))],
        "carry_both_ways": sorted(carries_both_ways(circuit)),
        "undefined_cells": undefined_cells(circuit),
    }


def symmetry_lines(structures: Sequence[SymmetricStructure]) -> list[str]:
    """Return one sentence for each symmetric structure, the largest first."""
    lines = []
    for each in structures:
        words = [f"{left} and {right}" for _, left, right in each.pairs]
        text = f"{listed(words, MOST_NAMED)} mirror each other about one axis"
        if each.centred:
            text += f", with {listed(each.centred, MOST_NAMED)} on it"
        if each.net_pairs:
            text += f"; nets {listed((f'{left}/{right}' for left, right in each.net_pairs), MOST_NAMED)}"
        if each.unmatched:
            text += f"; {each.unmatched} device{'s have' if each.unmatched > 1 else ' has'} no image on these nets"
        lines.append(text)
    return lines


def undefined_cells(circuit: Circuit) -> list[str]:
    """Return each instance of a cell that the netlist does not define, with its nets and the devices on them."""
    lines = []
    supplies = find_roles(circuit).supplies
    for box in circuit.black_boxes:
        nets = [net for net in dict.fromkeys(box.nets.values()) if net not in supplies]
        on_it = dict.fromkeys(place.device for net in nets for place in circuit.nets[net])
        hangs = f"; on these nets: {listed(on_it, MOST_NAMED)}" if on_it else ""
        lines.append(
            f"{box.id} is a {box.cell}, which the netlist does not define, on {' '.join(nets) or 'supplies'}{hangs}"
        )
    return lines
