"""Which devices are drawn together: one module per matched group, and one per other transistor.

The devices of a module have the same flavour and body, and in a row the same gate length and finger width. Where a
netlist writes a ratio in W, all devices get the finger width that divides every W. The cascodes of a mirror share its
module if the taps around both reach all rows. A matched group is split if its devices differ otherwise or are too many,
and the split is reported. Equal transistors in parallel are drawn as one if their currents are stated.

Some pairs are two modules that mirror each other, unless the constraints state a pattern:

- A pair that switches fully: in a latch between the supplies without an input pair, or on a clock or enable. Two
  modules take less area than a common centroid.
- All pairs of a clocked comparator: it decides by how fast its two sides charge, so unequal wires and couplings cost it
  more offset than a gradient does, and two rails of one row couple unequally.
- Cascodes: their mismatch is divided by the gain of the devices below them, so equal wires count more. The wires of
  the two modules are exact mirror images.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from layoutkit.circuit.across_cells import MOST_MATCHED
from layoutkit.circuit.canonical import natural
from layoutkit.circuit.constraints import OF_PLACES
from layoutkit.circuit.ranked_names import named_after
from layoutkit.circuit.recognise import MODULE_TYPES
from layoutkit.circuit.roles import find_roles, is_clock
from layoutkit.draw.group import MirrorSpec, check_mirror, mirror_plan
from layoutkit.draw.mos import Transistor
from layoutkit.draw.pattern import AUTO
from layoutkit.errors import GeometryError, UnsupportedOperationError
from layoutkit.flow.current_loads import device_currents
from layoutkit.flow.dummies import SWITCHES, guarded, idle_devices
from layoutkit.layout.cells import short_name
from layoutkit.technology.device_kinds import PASSIVE_KINDS, plural_nouns
from layoutkit.technology.finger_widths import one_finger_width, widest_finger

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from layoutkit.circuit.circuit import Circuit, Device, RecognisedModule
    from layoutkit.circuit.constraints import Constraints, MatchedGroup
    from layoutkit.draw.deep_well import DeepWellNets
    from layoutkit.technology import DeviceSpec, Technology


_DIFFER = (
    "its devices differ in flavour, body or l, a branch has no cascode, the sources below the cascodes are on several "
    "nets, or no finger width near theirs divides all w"
)
_LARGE = f"a module without a stated pattern holds at most {MOST_MATCHED} devices"
_HIGH = "the rows of the mirror and as many of its cascodes are too high for the taps around them"
MOST_CUT = 4
"""Into how many a finger is cut at most, so that the devices of a group have fingers of one width."""
PARALLEL = "parallel"
"""Type of a group of devices on the same nets that are drawn as one device; they need not match."""
_FILLED = 0.75
"""Part of the height between two taps that fingers of a mirror and its cascodes may fill."""
_OF_A_LATCH = frozenset({"cross_coupled_pair", "cascode_pair", "load_pair", "symmetric_pair"})
"""Types of pairs that recognition finds at a latch; without an input pair or a tail current they switch."""
CASCODES = "the mismatch of cascodes is divided by the gain of the devices below them, so that equal wires count more"


@dataclass(frozen=True)
class Sizing:
    """How one device is cut into fingers, and how far its silicide is blocked, as ``Transistor`` has it. [dbu]."""

    finger_width: int
    length: int
    fingers: int
    blocked: tuple[int, int] | None = None


@dataclass(frozen=True)
class Group:
    """Devices drawn in one row.

    Attributes:
        name: Cell name.
        type: Recognised type; ``matched_group`` for devices that only the constraints match; ``PARALLEL``; ``single``.
        spec: The flavour all of them have.
        devices: Reference first.
        sizing: Finger width and length are equal for all; fingers are per device, in the order of ``devices``.
        bulk_net: Their common body.
        level: Steps from the supply that the body is tied to: 1 next to it.
        arrangement: ``auto``, ``interdigitated``, ``stacked`` or a pattern, see ``draw.pattern``.
        cascodes: Those of ``devices`` that are the cascodes of the others, in the same order; empty for none.
        deep_well: Nets of the deep well that isolates their body; None where the body is the substrate or an n well.
        split: Whether its fingers may be split; not where equal devices outside of the group keep theirs.
        guards: Dummies of the netlist at the ends of its rows.
        mirrored: Why a matched pair needs equal wires rather than a common centroid, so that it is two modules which
            mirror each other unless a pattern is stated; empty for others.
    """

    name: str
    type: str
    spec: DeviceSpec
    devices: tuple[Device, ...]
    sizing: tuple[Sizing, ...]
    bulk_net: str
    level: int
    arrangement: str = AUTO
    cascodes: tuple[str, ...] = ()
    deep_well: DeepWellNets | None = None
    split: bool = True
    mirrored: str = ""
    guards: tuple[Device, ...] = ()


def group_devices(
    circuit: Circuit,
    technology: Technology,
    constraints: Constraints,
    deep_wells: Mapping[str, DeepWellNets] | None = None,
) -> tuple[tuple[Group, ...], tuple[str, ...]]:
    """Return the groups of transistors to draw, each in exactly one, and what was decided, in words.

    Args:
        circuit: Mapped to ``technology``: models are its devices, sizes are legal.
        technology: Where the circuit is drawn.
        constraints: State which devices are matched; every other transistor is drawn by itself.
        deep_wells: Nets of the deep well of each device that lies in one, as ``isolated_bodies`` decides.

    Raises:
        UnsupportedOperationError: If there are devices of a kind that is not drawn; all are named.
    """
    others = [f"{d.id} ({d.type})" for d in circuit.devices if not (d.is_mos or d.type in PASSIVE_KINDS)]
    if others:
        raise UnsupportedOperationError(
            f"only {plural_nouns()} can be drawn; the circuit also has: {', '.join(others)}",
            details={"devices": others},
        )
    deep_wells = deep_wells or {}
    levels = _levels(circuit, constraints)
    recognised = {name: module for module in find_roles(circuit).modules for name in module.devices}
    alike = _mirrored_pairs(circuit, constraints)
    notes: list[str] = []
    groups: list[Group] = []
    taken: set[str] = set()
    apart: dict[str, str] = {}
    for wanted in constraints.matching:
        devices = [circuit.device(name) for name in wanted.devices]
        if not devices[0].is_mos:
            continue
        module = recognised.get(wanted.devices[0])
        kind = "matched_group"
        if module is not None and MODULE_TYPES[module.type].matched and set(wanted.devices) <= set(module.devices):
            kind = module.type
        mirrored = alike.get(frozenset(wanted.devices), "")
        if mirrored and wanted.arrangement == AUTO:
            apart.update(dict.fromkeys(wanted.devices, mirrored))
            continue
        found, reason = _modules_of(kind, wanted, circuit, technology, levels)
        if len(found) > 1:
            split = "; ".join(" ".join(d.id for d in group.devices) for group in found)
            reason = f"{reason}{_ratios(module, devices) if reason == _DIFFER else ''}"
            named = " ".join(wanted.devices)
            notes.append(f"the matched group {named} is drawn in {len(found)} modules, because {reason}: {split}")
        stated = wanted.arrangement if len(found) == 1 else AUTO
        groups.extend(replace(group, arrangement=stated, mirrored=mirrored) for group in found)
        taken.update(wanted.devices)
    changed = {
        _units_of(device): sizing
        for group in groups
        for device, sizing in zip(group.devices, group.sizing, strict=True)
        if sizing.fingers != device.nf * device.m > 1
    }
    idle = idle_devices(circuit, constraints)
    taken.update(device.id for device in idle)
    single = [
        (device, changed.get(_units_of(device)) or size(device, technology, 1))
        for device in circuit.devices
        if device.id not in taken and device.is_mos
    ]
    groups.extend(
        replace(_group(PARALLEL, part, technology, levels), mirrored=apart.get(part[0][0].id, ""))
        for part in _in_parallel(single, constraints, circuit)
    )
    groups, left = guarded(groups, idle, circuit, constraints, lambda device: size(device, technology, 1))
    rows = _equal([(device, size(device, technology, 1)) for device in left])
    groups.extend(_group(PARALLEL, part, technology, levels) for part in rows)
    units = Counter(_units_of(device) for device in circuit.devices if device.is_mos)
    return tuple(
        replace(
            group,
            deep_well=deep_wells.get(group.devices[0].id),
            split=all(count == units[unit] for unit, count in Counter(map(_units_of, group.devices)).items()),
        )
        for group in groups
    ), tuple(notes)


def _units_of(device: Device) -> tuple[Any, ...]:
    """Return what devices agree in that may be units of one mirror, although no group names them all."""
    nets = device.terminals
    return (device.model, device.w, device.l, device.nf, device.m, nets["s"], nets["b"], device.in_deep_well)


def _mirrored_pairs(circuit: Circuit, constraints: Constraints) -> dict[frozenset[str], str]:
    """Return the symmetric pairs that are drawn as two modules, and why."""
    drawn = find_roles(circuit).modules
    cascodes = {name for module in drawn if module.type == "cascode_pair" for name in module.devices}
    symmetric = {frozenset(pair) for group in constraints.symmetry for pair in group.pairs}
    switching = dict.fromkeys(_switching_pairs(circuit, constraints), SWITCHES)
    return dict.fromkeys((pair for pair in symmetric if pair <= cascodes), CASCODES) | switching


def _modules_of(
    kind: str, wanted: MatchedGroup, circuit: Circuit, technology: Technology, levels: Mapping[str, int]
) -> tuple[list[Group], str]:
    """Return the modules of a matched group, and the reason if there are several.

    Args:
        kind: Type of the modules.
        wanted: The group.
        circuit: The whole circuit.
        technology: The process.
        levels: Steps of each device from its supply.
    """
    tops = cascodes_of(circuit, wanted.devices)
    devices = [circuit.device(name) for name in wanted.devices]
    below = _alike([d for d in devices if d.id not in tops], technology)
    above = _alike([d for d in devices if d.id in tops], technology)
    lower, upper = ([_group(kind, part, technology, levels) for part in parts] for parts in (below, above))
    stacked = len(lower) == len(upper) == 1 and _stands_on(upper[0], lower[0], technology)
    differ = len(lower) + len(upper) > 1 and not stacked
    if wanted.arrangement != AUTO:
        return ([_with_cascodes(lower[0], upper[0])] if stacked else [*lower, *upper]), _DIFFER if differ else _LARGE

    def parts_of(sets: Sequence[Sequence[tuple[Device, Sizing]]], most: int) -> list[Group]:
        return [_group(kind, part, technology, levels) for each in sets for part in _parts(each, most)]

    if stacked:
        halves = list(zip(*(parts_of(sets, MOST_MATCHED // 2) for sets in (below, above)), strict=True))
        if all(_rows_fit(mirror, cascodes, technology) for mirror, cascodes in halves):
            return [_with_cascodes(*each) for each in halves], _LARGE
    reason = _DIFFER if differ else _HIGH if stacked else _LARGE
    return [*parts_of(below, MOST_MATCHED), *parts_of(above, MOST_MATCHED)], reason


def _in_parallel(
    single: Sequence[tuple[Device, Sizing]], constraints: Constraints, circuit: Circuit
) -> list[list[tuple[Device, Sizing]]]:
    """Return sets of devices to draw: parallel devices with stated currents together, every other one alone.

    Devices that are named in constraints on symmetry or places stay alone.
    """
    loads = device_currents(constraints, circuit)
    named = constraints.devices_in("symmetry", "proximity", *OF_PLACES)
    found: dict[Any, list[tuple[Device, Sizing]]] = {}
    for device, sizing in single:
        free = device.id in loads and device.id not in named
        found.setdefault(_likeness(device, sizing) if free else device.id, []).append((device, sizing))
    return list(found.values())


def _equal(devices: Sequence[tuple[Device, Sizing]]) -> list[list[tuple[Device, Sizing]]]:
    """Return devices in sets of those that can be drawn as one."""
    found: dict[Any, list[tuple[Device, Sizing]]] = {}
    for device, sizing in devices:
        found.setdefault(_likeness(device, sizing), []).append((device, sizing))
    return list(found.values())


def _likeness(device: Device, sizing: Sizing) -> tuple[Any, ...]:
    """Return what parallel transistors agree in that are drawn as one: model, nets, finger width and length."""
    return (device.model, *sorted(device.terminals.items()), sizing.finger_width, sizing.length)


def _switching_pairs(circuit: Circuit, constraints: Constraints) -> set[frozenset[str]]:
    """Return the symmetric pairs that switch fully.

    They are on a clock, with a latch and no input pair or tail current, or in a clocked comparator.
    """
    supplies = find_roles(circuit).supplies
    kinds = {name: module.type for module in find_roles(circuit).modules for name in module.devices}
    amplifying = {
        name
        for name, kind in kinds.items()
        if kind == "differential_pair"
        or (kind == "cross_coupled_pair" and circuit.device(name).terminals["s"] not in supplies)
    }
    latches = {name for name, kind in kinds.items() if kind == "cross_coupled_pair"}
    found = _clocked_comparators(circuit, constraints, kinds)
    for group in constraints.symmetry:
        devices = {device for pair in group.pairs for device in pair}
        if latches & devices and not amplifying & devices:
            found |= {frozenset(pair) for pair in group.pairs if {kinds.get(name) for name in pair} <= _OF_A_LATCH}
        loads = [pair for pair in group.pairs if {kinds.get(name) for name in pair} == {"load_pair"}]
        found |= {frozenset(pair) for pair in loads if is_clock(circuit, circuit.device(pair[0]).terminals["g"])}
    return found


def _clocked_comparators(circuit: Circuit, constraints: Constraints, kinds: Mapping[str, str]) -> set[frozenset[str]]:
    """Return the symmetric pairs of clocked comparators: an input pair whose current a clock switches, and a latch.

    The latch is symmetric with the input pair, or in a symmetry group without an input pair that shares nets with it,
    as behind two tails. The enable of a comparator with a bias current switches other transistors.

    Args:
        circuit: The whole circuit.
        constraints: State the symmetry.
        kinds: Type of the recognised module of each device that is in one.
    """
    supplies = find_roles(circuit).supplies
    clocked = {
        each.terminals["d"] for each in circuit.devices if each.is_mos and is_clock(circuit, each.terminals["g"])
    }
    groups = []
    for group in constraints.symmetry:
        devices = [device for pair in group.pairs for name in pair if (device := circuit.device(name)).is_mos]
        inputs = [device for device in devices if kinds.get(device.id) == "differential_pair"]
        latch = any(kinds.get(device.id) == "cross_coupled_pair" for device in devices)
        nets = {net for device in devices for net in device.terminals.values() if net not in supplies}
        groups.append((group.pairs, inputs, latch, nets))
    found: set[frozenset[str]] = set()
    for number, (_, inputs, _, nets) in enumerate(groups):
        if not {device.terminals["s"] for device in inputs} & clocked:
            continue
        parts = [part for other, part in enumerate(groups) if other == number or (not part[1] and part[3] & nets)]
        if any(latch for _, _, latch, _ in parts):
            found |= {frozenset(pair) for pairs, *_ in parts for pair in pairs}
    return found


def size(device: Device, technology: Technology, units: int) -> Sizing:
    """Return the fingers of a device: as in its netlist, more where a finger would be too wide or ``units`` needs more.

    Where more would be too narrow, there are fewer. The total width is kept exactly: a finger count is only taken when
    it divides the width on the grid.

    Args:
        device: A MOS transistor.
        technology: Gives the grid, the minimum width and the largest distance to a tap.
        units: Wanted divisor of the finger count, such as 2 for a common-centroid pair; 1 for none.
    """
    spec = technology.device(device.model)
    total = technology.snap(device.w * 1e6 / technology.dbu_um) * device.m
    length = technology.snap(device.l * 1e6 / technology.dbu_um)
    stated = device.nf * device.m
    blocked = spec.beyond_gate or spec.blocked(device.params, technology.dbu_um)
    widest = widest_finger(technology, spec)

    def legal(fingers: int) -> bool:
        width, rest = divmod(total, fingers)
        return rest == 0 and width % technology.grid == 0 and spec.min_w <= width <= widest

    candidates = (*range(stated, max(4 * stated, 2 * -(-total // widest)) + 1), *range(stated - 1, 0, -1))
    for wanted in (units, 1):
        for fingers in candidates:
            if fingers % wanted == 0 and legal(fingers):
                return Sizing(total // fingers, length, fingers, blocked)
    return Sizing(technology.snap(total / stated), length, stated, blocked)


def _alike(devices: Sequence[Device], technology: Technology) -> list[list[tuple[Device, Sizing]]]:
    """Return the devices in parts that can share a row, in order."""
    alike: dict[tuple[str, str, int, bool], list[Device]] = {}
    for device in devices:
        length = technology.snap(device.l * 1e6 / technology.dbu_um)
        key = (technology.device(device.model).name, device.terminals["b"], length, device.in_deep_well)
        alike.setdefault(key, []).append(device)
    parts = []
    for members in alike.values():
        sized = [(device, size(device, technology, 1)) for device in members]
        if len({sizing.finger_width for _, sizing in sized}) > 1:
            sized = _of_one_width(sized, technology)
        by_width: dict[int, list[tuple[Device, Sizing]]] = {}
        for device, sizing in sized:
            by_width.setdefault(sizing.finger_width, []).append((device, sizing))
        parts += list(by_width.values())
    return parts


def _parts(members: Sequence[tuple[Device, Sizing]], most: int) -> list[list[tuple[Device, Sizing]]]:
    """Return the devices in as few parts of at most ``most`` devices as possible; sizes differ by at most one."""
    count = -(-len(members) // most)
    ends = [len(members) * number // count for number in range(count + 1)]
    return [list(members[first:last]) for first, last in pairwise(ends)]


def _of_one_width(sized: Sequence[tuple[Device, Sizing]], technology: Technology) -> list[tuple[Device, Sizing]]:
    """Return the devices with the finger width nearest to their narrowest finger that divides all widths.

    They stay as they are if there is none, or if it cuts the narrowest finger into more than ``MOST_CUT``: an equal
    unit is worth a few more fingers, not dozens.
    """
    spec = technology.device(sized[0][0].model)
    totals = [sizing.finger_width * sizing.fingers for _, sizing in sized]
    narrowest = min(sizing.finger_width for _, sizing in sized)
    limits = (max(spec.min_w, -(-narrowest // MOST_CUT)), widest_finger(technology, spec))
    width = one_finger_width(totals, narrowest, limits, technology.grid)
    if not width:
        return list(sized)
    return [
        (device, replace(sizing, finger_width=width, fingers=total // width))
        for (device, sizing), total in zip(sized, totals, strict=True)
    ]


def cascodes_of(circuit: Circuit, devices: Sequence[str]) -> tuple[str, ...]:
    """Return the cascodes in a matched group that is all of a recognised mirror; they match each other only."""
    module = next((module for module in find_roles(circuit).modules if set(module.devices) == set(devices)), None)
    return tuple(module.properties.get("cascodes", ())) if module is not None else ()


def _stands_on(upper: Group, lower: Group, technology: Technology) -> bool:
    """Return whether every device of ``upper`` is the cascode of that of ``lower`` and both are drawn as one mirror.

    Those above several nets are not, as where resistors or junctions lie below their sources. The rows of both lie
    between taps below and above: together they are lower than twice the tap distance, less what wires take.
    """
    height = upper.sizing[0].finger_width + lower.sizing[0].finger_width
    if height > _FILLED * 2 * technology.dim("tap_max_distance", lower.spec):
        return False
    below, above = (tuple(transistors_of(each, {})) for each in (lower, upper))
    try:
        check_mirror(MirrorSpec("", below, above))
    except GeometryError:
        return False
    return True


def _rows_fit(lower: Group, upper: Group, technology: Technology) -> bool:
    """Return whether all rows of a mirror, and as many of its cascodes, lie between taps below and above."""
    below, above = (tuple(transistors_of(each, {})) for each in (lower, upper))
    plan = mirror_plan(technology, MirrorSpec("", below, above))
    mirror = plan.transistors[0].finger_width
    row = mirror + upper.sizing[0].finger_width * mirror // lower.sizing[0].finger_width
    most = _FILLED * 2 * technology.dim("tap_max_distance", lower.spec)
    return len(plan.rows) == 1 or len(plan.rows) * row <= most


def transistors_of(group: Group, currents: Mapping[str, float]) -> list[Transistor]:
    """Return the devices of a group as they are to be drawn, with their currents by name. [A]"""
    return [
        Transistor(
            device.id,
            group.spec,
            sizing.finger_width,
            sizing.length,
            sizing.fingers,
            1,
            device.terminals["s" if turned else "d"],
            device.terminals["g"],
            device.terminals["d" if turned else "s"],
            device.terminals["b"],
            current=currents.get(device.id, 0.0),
            blocked=sizing.blocked,
        )
        for device, sizing in zip(group.devices, group.sizing, strict=True)
        # what is drawn at the drain of the netlist stays there, whatever the current makes of it
        for turned in (device.exchanged and sizing.blocked is not None,)
    ]


def _with_cascodes(lower: Group, upper: Group) -> Group:
    devices = (*lower.devices, *upper.devices)
    return replace(
        lower,
        name=_name(lower.type, devices),
        devices=devices,
        sizing=(*lower.sizing, *upper.sizing),
        cascodes=tuple(d.id for d in upper.devices),
    )


def _ratios(module: RecognisedModule | None, devices: Sequence[Device]) -> str:
    """Return the ratios of a mirror by the sizes, in words; empty for other groups."""
    if module is None or module.type != "current_mirror":
        return ""
    known = {device.id for device in devices}
    ratios = {name: ratio for name, ratio in module.properties.get("ratios", {}).items() if name in known}
    listed = ", ".join(
        f"{name} {'none, l differs' if ratio is None else f'{ratio:g}'}" for name, ratio in ratios.items()
    )
    return f" (ratios to {module.properties['reference']} by the sizes: {listed})"


def _group(
    kind: str, part: Sequence[tuple[Device, Sizing]], technology: Technology, levels: Mapping[str, int]
) -> Group:
    kind = kind if len(part) > 1 else "single"
    devices = tuple(device for device, _ in part)
    spec = technology.device(devices[0].model)
    return Group(
        name=_name(kind if kind != "single" else spec.type, devices),
        type=kind,
        spec=spec,
        devices=devices,
        sizing=tuple(sizing for _, sizing in part),
        bulk_net=devices[0].terminals["b"],
        level=min(levels[d.id] for d in devices),
    )


def _name(kind: str, devices: Sequence[Device]) -> str:
    """Return the name of a group; the reference of a mirror comes first, the others in the order of their names."""
    ids = [device.id for device in devices]
    first = 0 if kind in MODULE_TYPES and MODULE_TYPES[kind].symmetric else 1
    return named_after(ids[0], short_name("_".join([kind, *ids[:first], *sorted(ids[first:], key=natural)])))


def _levels(circuit: Circuit, constraints: Constraints) -> dict[str, int]:
    """Return each transistor's distance from the rail of its type, counted through sources and drains.

    The two devices of a symmetric pair have the same distance, the smaller one.
    """
    levels: dict[str, int] = {}
    for kind in ("nmos", "pmos"):
        devices = [device for device in circuit.devices if device.type == kind]
        reached = {device.terminals["b"] for device in devices}
        waiting, level = list(devices), 1
        while waiting:
            near = [d for d in waiting if reached & _channel_nets(d)] or waiting
            levels.update({d.id: level for d in near})
            reached = set().union(*(_channel_nets(d) for d in near))
            waiting = [d for d in waiting if d.id not in levels]
            level += 1
    for left, right in (pair for group in constraints.symmetry for pair in group.pairs):
        if left in levels and right in levels:
            levels[left] = levels[right] = min(levels[left], levels[right])
    return levels


def _channel_nets(device: Device) -> set[str]:
    return {device.terminals["s"], device.terminals["d"]}
