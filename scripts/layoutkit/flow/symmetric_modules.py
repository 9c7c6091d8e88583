"""Which modules lie on the symmetry axis and which mirror each other, and what became of the constraints on devices.

Arrangements that are symmetric as a whole: every module lies on the main axis or mirrors another one across it.

A circuit allows them when every device is in a symmetric pair, or touches none of the nets that mirror each other: to
exchange the two sides then leaves it as it is. Such devices are centred. A transistor of an even number of fingers may
also be drawn as two halves, which mirror each other beside a centred module:

                axis
    [ pair, left and right in one ]
    [ half ] [ centred ] [ half ]
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.circuit.across_cells import MOST_MATCHED
from layoutkit.circuit.constraints import Outcome
from layoutkit.circuit.ranked_names import named_after
from layoutkit.errors import listed
from layoutkit.flow.groups import PARALLEL, Group
from layoutkit.flow.modules import draw_groups
from layoutkit.layout.cells import short_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from layoutkit.draw.module import Module
    from layoutkit.flow.design import Design
    from layoutkit.flow.hierarchy import InstanceGroup
    from layoutkit.flow.modules import Drawn
    from layoutkit.flow.passive_modules import PassiveGroup
    from layoutkit.place import Block, Placement
    from layoutkit.technology import Technology


BESIDE = 0.2
"""Cost of moving a mirror with the tail of a pair off the axis, relative to a pair. Its wires mirror no others."""


@dataclass(frozen=True)
class SymmetryPlan:
    """How modules are placed symmetrically.

    Attributes:
        centred: Names of the modules to be centred on the axis.
        partners: Module name to that of its mirror image.
        outcomes: What became of each symmetric pair and self-symmetric device.
        islands: Module to the name of its symmetry axis; only those that are centred or have a partner.
        loose: Centred modules that may leave the axis, and what that costs compared with a pair: those of pairs, each
            of which is symmetric about an axis of its own, too, and those of self-symmetric devices with others.
    """

    centred: frozenset[str]
    partners: Mapping[str, str]
    outcomes: tuple[Outcome, ...]
    islands: Mapping[str, str] = field(default_factory=dict)
    loose: Mapping[str, float] = field(default_factory=dict)

    @property
    def left_first(self) -> dict[str, tuple[str, str]]:
        """Each module that has a partner to both of them, the left one first."""
        pairs = list(self.partners.items())[::2]
        return {name: pair for pair in pairs for name in pair}


def plan_symmetry(drawn: Sequence[Drawn], design: Design) -> SymmetryPlan:
    """Return which of the drawn modules are centred on the axis, and which are placed as mirror images."""
    owner = {device: item.module for item in drawn for device in item.module.devices}
    shapes = {item.module.name: item.shapes for item in drawn}
    grid = design.technology.grid
    centred: dict[str, None] = {}
    partners: dict[str, str] = {}
    outcomes = []
    for number, group in enumerate(design.constraints.symmetry):
        image = dict(group.pairs) | {right: left for left, right in group.pairs}
        for index, (left, right) in enumerate(group.pairs):
            one, other = owner[left], owner[right]
            if one is other:
                mirrored = one.symmetry_axis_x is not None
                fault = (
                    ""
                    if mirrored or _has_pattern(one, (left, right))
                    else f"module {one.name} is not its own mirror image"
                )
                fault = fault or _off_grid(one, grid)
                if not fault:
                    centred[one.name] = None
                reason = fault or "drawn in one module, centred on the axis"
                if not fault and not mirrored:
                    reason += f"; its pattern {one.pattern} has a common centroid and no mirror image"
            else:
                taken = [
                    partners[a] for a, b in ((one.name, other.name), (other.name, one.name)) if partners.get(a, b) != b
                ]
                fault = _unequal(shapes[one.name], shapes[other.name], image)
                fault = fault or "".join(f"mirrors module {name} already" for name in taken[:1])
                if not fault:
                    partners[one.name], partners[other.name] = other.name, one.name
                reason = fault or "drawn as two modules that mirror each other"
            outcomes.append(Outcome(f"symmetry[{number}].pairs[{index}]", (left, right), not fault, reason))
    for number, group in enumerate(design.constraints.symmetry):
        for index, device in enumerate(group.self_symmetric):
            module = owner[device]
            fault = _off_grid(module, grid)
            if not fault:
                centred[module.name] = None
            reason = fault or "centred on the axis"
            if not fault and module.symmetry_axis_x is None:
                reason += "; its geometry is not its own mirror image"
            outcomes.append(Outcome(f"symmetry[{number}].self_symmetric[{index}]", (device,), not fault, reason))
    outcomes = [_beside_axis(each, partners, owner) for each in outcomes]
    on_axis = frozenset(centred) - set(partners)
    axes = _axes(design)
    islands = {
        owner[device].name: axes[number]
        for number, group in enumerate(design.constraints.symmetry)
        for device in (*(device for pair in group.pairs for device in pair), *group.self_symmetric)
        if owner[device].name in on_axis or owner[device].name in partners
    }
    alone = {owner[device].name for group in design.constraints.symmetry for device in group.self_symmetric}
    with_others = {item.module.name for item in drawn if len(item.group.devices) > 1}
    loose = {name: BESIDE if name in alone else 1.0 for name in sorted(on_axis) if name not in alone - with_others}
    return SymmetryPlan(on_axis, partners, tuple(outcomes), islands, loose)


def _beside_axis(outcome: Outcome, partners: Mapping[str, str], owner: Mapping[str, Module]) -> Outcome:
    """Return the outcome for devices to be centred, corrected if their module is the mirror image of another."""
    modules = {owner[name].name for name in outcome.names}
    partner = partners.get(next(iter(modules)), "") if len(modules) == 1 else ""
    if not partner or not outcome.obeyed:
        return outcome
    if len(outcome.names) == 1:
        return replace(outcome, obeyed=False, reason=f"mirrors module {partner}")
    return replace(outcome, reason=outcome.reason.replace("centred on the axis", "symmetric about its own axis"))


def _axes(design: Design) -> list[str]:
    """Return the name of the axis of each symmetry group: those of one signal path, which share nets, have one."""
    circuit, groups = design.circuit, design.constraints.symmetry
    nets = [
        {
            net
            for device in (*(device for pair in group.pairs for device in pair), *group.self_symmetric)
            for net in circuit.device(device).terminals.values()
            if net not in design.supplies
        }
        for group in groups
    ]
    axis = list(range(len(groups)))
    for one, other in combinations(range(len(groups)), 2):
        if nets[one] & nets[other]:
            low, high = sorted((axis[one], axis[other]))
            axis = [low if each == high else each for each in axis]
    return [f"symmetry[{number}]" for number in axis]


def axis_outcomes(
    outcomes: Sequence[Outcome], drawn: Sequence[Drawn], placement: Placement, technology: Technology
) -> list[Outcome]:
    """Return the outcomes of symmetry with what became of modules that placement put beside the main axis.

    A pair in one module is symmetric about the module's own axis; a self-symmetric device there is not obeyed.
    """
    owner = {device: item.module.name for item in drawn for device in item.module.devices}
    apart = {
        name: technology.to_um(abs(island.axis_x - placement.axis_x))
        for island in placement.islands
        for name in island.members
        if island.axis_x != placement.axis_x
    }
    found = []
    for each in outcomes:
        modules = {owner[device] for device in each.names}
        if each.obeyed and len(modules) == 1 and modules <= set(apart):
            distance = apart[next(iter(modules))]
            alone = len(each.names) == 1
            reason = each.reason.replace("centred on the axis", f"its axis lies {distance:g} um beside the main one")
            found.append(replace(each, obeyed=not alone, reason=f"{reason}, which makes the layout smaller"))
        else:
            found.append(each)
    return found


def _has_pattern(module: Module, devices: Sequence[str]) -> bool:
    """Return whether the devices are matched units of a module with a common centroid on its axis."""
    return bool(module.pattern) and module.centroid_error(devices) == 0


def _off_grid(module: Module, grid: int) -> str:
    """Return why a module cannot be centred on the axis; an empty string where it can."""
    odd = (module.bbox.left + module.bbox.right) % (2 * grid)
    return f"the width of module {module.name} is an odd number of grid steps" if odd else ""


def _unequal(one: Sequence[Module], other: Sequence[Module], image: Mapping[str, str]) -> str:
    """Return why two modules, each in its shapes, cannot mirror each other; an empty string where they can.

    Two mirrors that face each other can: each device of one has its image in the other.
    """
    shared = [shapes[0] for shapes in (one, other) if len(shapes[0].devices) > 1]
    if shared and {image.get(name, "") for name in one[0].devices} != set(other[0].devices):
        return "; ".join(f"module {module.name} also holds other devices" for module in shared)
    if len(one) != len(other) or not all(map(_same_geometry, one, other)):
        return "the two modules differ in geometry: their devices are connected differently"
    return ""


def _same_geometry(one: Module, other: Module) -> bool:
    layout = one.layout
    return one.bbox == other.bbox and all(
        (kdb.Region(one.cell.begin_shapes_rec(layer)) ^ kdb.Region(other.cell.begin_shapes_rec(layer))).is_empty()
        for layer in layout.layer_indexes()
    )


def matching_outcomes(drawn: Sequence[Drawn], design: Design) -> list[Outcome]:
    """Return what became of each matched group."""
    owner = {device: item.module for item in drawn for device in item.module.devices}
    groups = {item.module.name: item.group for item in drawn}
    found = []
    for index, wanted in enumerate(design.constraints.matching):
        modules = list({id(owner[device]): owner[device] for device in wanted.devices}.values())
        module = modules[0]
        error = centroid_error(module, groups[module.name]) if len(modules) == 1 else 0.0
        drawn_as = f"one module, {module.pattern}," if module.pattern else "one module"
        how = f"drawn as {drawn_as} with {_apart(design, error)}"
        sets = matched_sets(groups[module.name])
        if len(sets) > 1 and set(wanted.devices) == {name for names in sets for name in names}:
            how += f" of each set: {'; '.join(' '.join(names) for names in sets)}"
        why = getattr(groups[module.name], "mirrored", "")
        if len(modules) == 2 and why:
            reason, how = (
                "",
                f"drawn as two equal modules beside each other: {why}; state a pattern, such as AB/BA, for one module",
            )
        elif len(modules) > 1:
            names = listed(each.name for each in modules)
            reason = (
                f"drawn as {len(modules)} modules ({names}); one module needs equal flavour, body, length and fingers, "
                f"holds at most {MOST_MATCHED} devices unless a pattern is stated, and is as high as its taps reach"
            )
        elif error and wanted.arrangement in {"auto", "interdigitated"}:
            um = design.technology.to_um(error)
            units = "fingers" if module.pattern else "units"
            drawn_as = module.pattern or "one module"
            reason = f"drawn as {drawn_as}; the centroids are {um:g} um apart, these {units} do not allow less"
        else:
            reason = ""
        found.append(Outcome(f"matching[{index}]", wanted.devices, not reason, reason or how))
    return found


def centroid_error(module: Module, group: Group | PassiveGroup | InstanceGroup) -> float:
    """Return the largest distance between the centroids of two devices that match. [dbu]

    The cascodes of a mirror match each other, not the devices below them.
    """
    return max(module.centroid_error(devices) for devices in matched_sets(group))


def matched_sets(group: Group | PassiveGroup | InstanceGroup) -> list[list[str]]:
    """Return the devices of a group in sets that match: a mirror's cascodes are a set of their own.

    Parallel devices need not match.
    """
    if group.type == PARALLEL:
        return [[device.id] for device in group.devices]
    cascodes = getattr(group, "cascodes", ())
    sets = [[d.id for d in group.devices if (d.id in cascodes) is upper] for upper in (False, True)]
    return [devices for devices in sets if devices]


def _apart(design: Design, error: float) -> str:
    return "a common centroid" if not error else f"centroids {design.technology.to_um(error):g} um apart"


MOST_AREA = 1.15
"""How much more area an arrangement that is symmetric as a whole may take than any other."""
MOST_HALVED = 3
"""With more transistors that may be halved, either none or all of them are."""
MAIN_AXIS = "main"


def whole_arrangements(
    layout: kdb.Layout, design: Design, drawn: Sequence[Drawn], plan: SymmetryPlan
) -> list[tuple[tuple[Drawn, ...], SymmetryPlan]]:
    """Return modules and plan of each arrangement that is symmetric as a whole; none where the circuit is not.

    They differ in the transistors that are drawn in halves, which are added to ``layout``.

    Args:
        layout: Holds the modules.
        design: What is drawn.
        drawn: Its modules.
        plan: What the constraints say of them.
    """
    wishes = design.constraints
    if wishes.alignment or wishes.ordering or wishes.abutment or not _may_be_whole(design, drawn, plan):
        return []
    beside = [item for item in drawn if item.module.name not in plan.partners and item.module.name not in plan.centred]
    halves = {item.module.name: _halves(layout, design, group) for item in beside if (group := _whole(design, item))}
    found = []
    for names in _choices(list(halves)):
        split = {name: halves[name] for name in names}
        modules = tuple(part for item in drawn for part in split.get(item.module.name, (item,)))
        pairs = [tuple(part.module.name for part in parts) for parts in split.values()]
        if all(_fits_axis(item, design.technology.grid) for item in beside if item.module.name not in names):
            found.append((modules, _whole_plan(plan, modules, pairs)))
    return found


def least_area(blocks: Sequence[Block], max_aspect: float) -> float:
    """Return an area that no outline of an allowed ratio around ``blocks`` is smaller than. [dbu2]

    Centred blocks lie above one another, because the axis passes through each.

    Args:
        blocks: Blocks of one axis, which do not lie over one another.
        max_aspect: Largest ratio of the sides of the outline.
    """
    area = height = 0
    for block in blocks:
        area += min(shape.width * shape.height for shape in block.shapes)
        if block.symmetric:
            height += min(min(s.width, s.height) if block.turns else s.height for s in block.shapes)
    return max(area, height**2 / max_aspect)


def _may_be_whole(design: Design, drawn: Sequence[Drawn], plan: SymmetryPlan) -> bool:
    """Return whether the circuit is symmetric: modules without a mirror image touch no net that has one."""
    pairs = [pair for group in design.constraints.symmetry for pair in group.pairs]
    if not pairs or not all(outcome.obeyed for outcome in plan.outcomes):
        return False
    mirrored = {net for group in design.constraints.symmetry for nets in group.net_pairs for net in nets}
    for left, right in pairs:
        one, other = (set(design.circuit.device(name).terminals.items()) for name in (left, right))
        mirrored |= {net for _, net in one ^ other}
    in_pairs = {device for pair in pairs for device in pair}
    alone = [item for item in drawn if not in_pairs & set(item.module.devices)]
    return not any(pin.net in mirrored for item in alone for pin in item.module.pins)


def _fits_axis(item: Drawn, grid: int) -> bool:
    """Return whether a module has a shape whose middle is on the grid."""
    return any((shape.bbox.left + shape.bbox.right) % (2 * grid) == 0 for shape in item.shapes)


def _whole(design: Design, item: Drawn) -> Group | None:
    """Return the transistor that a module holds if it may be drawn as two halves."""
    group = item.group
    if not isinstance(group, Group) or item.ringed or len(group.devices) > 1 or group.guards:
        return None
    if group.sizing[0].fingers % 2:
        return None
    stated = {device for near in design.constraints.proximity for device in near.devices}
    stated |= {each.device for each in design.constraints.device_currents}
    return None if group.devices[0].id in stated else group


def _halves(layout: kdb.Layout, design: Design, group: Group) -> tuple[Drawn, ...]:
    sizing = replace(group.sizing[0], fingers=group.sizing[0].fingers // 2)
    names = (named_after(group.name, short_name(f"{group.name}_{side}")) for side in ("left", "right"))
    parts = tuple(replace(group, name=name, sizing=(sizing,)) for name in names)
    return tuple(draw_groups(layout, replace(design, groups=parts)))


def _choices(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield which transistors to draw in halves."""
    for count in range(len(names) + 1) if len(names) <= MOST_HALVED else (0, len(names)):
        yield from combinations(names, count)


def _whole_plan(plan: SymmetryPlan, modules: Sequence[Drawn], halved: Sequence[Sequence[str]]) -> SymmetryPlan:
    """Return the plan in which every module lies on one axis or has a partner."""
    partners = dict(plan.partners)
    for left, right in halved:
        partners[left], partners[right] = right, left
    names = [item.module.name for item in modules]
    return replace(
        plan,
        centred=frozenset(names) - set(partners),
        partners=partners,
        islands=dict.fromkeys(names, MAIN_AXIS),
        loose={},
    )
