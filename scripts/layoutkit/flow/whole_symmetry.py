"""Arrangements that are symmetric as a whole: every module lies on the main axis or mirrors another one across it.

A circuit allows them when every device is in a symmetric pair, or touches none of the nets that mirror each other: to
exchange the two sides then leaves it as it is. Such devices are centred. A transistor of an even number of fingers may
also be drawn as two halves, which mirror each other beside a centred module:

                axis
    [ pair, left and right in one ]
    [ half ] [ centred ] [ half ]
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

from layoutkit.circuit.ranked_names import named_after
from layoutkit.flow.groups import Group
from layoutkit.flow.modules import draw_groups

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import klayout.db as kdb

    from layoutkit.flow.design import Design
    from layoutkit.flow.modules import Drawn
    from layoutkit.flow.symmetric_modules import SymmetryPlan
    from layoutkit.place import Block


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
    names = (named_after(group.name, f"{group.name[:50]}_{side}") for side in ("left", "right"))
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
