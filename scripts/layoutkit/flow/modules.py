"""Draw the groups: a single transistor folded to a handy shape, a matched group as common-centroid rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from layoutkit.draw.group import GroupSpec, draw_group
from layoutkit.draw.mos import MosSpec, Transistor, draw_mos
from layoutkit.flow.passive_modules import PassiveGroup, draw_passives

if TYPE_CHECKING:
    from collections.abc import Sequence

    import klayout.db as kdb

    from layoutkit.draw.module import Module
    from layoutkit.flow.groups import Group
    from layoutkit.technology import Technology

# A row this much wider than high is folded.
WIDE = 4.0


@dataclass(frozen=True)
class Drawn:
    """A group with the module drawn for it."""

    group: Group | PassiveGroup
    module: Module


def draw_groups(
    layout: kdb.Layout, technology: Technology, groups: Sequence[Group | PassiveGroup], dummies: int
) -> list[Drawn]:
    """Return each group with its module, drawn in ``layout``.

    Args:
        layout: Receives one cell a group.
        technology: The process.
        groups: What to draw.
        dummies: Dummy fingers at each end of a matched row.
    """
    return [Drawn(group, _draw(layout, technology, group, dummies)) for group in groups]


def _draw(layout: kdb.Layout, technology: Technology, group: Group | PassiveGroup, dummies: int) -> Module:
    if isinstance(group, PassiveGroup):
        return draw_passives(layout, technology, group, dummies)
    transistors = _transistors(group)
    rows = _rows(technology, group)
    if len(transistors) == 1:
        return draw_mos(layout, technology, MosSpec(transistors[0], group.name, rows=rows, labels=False))
    return draw_group(layout, technology, GroupSpec(group.name, tuple(transistors), dummies, labels=False, rows=rows))


def _rows(technology: Technology, group: Group) -> int:
    """Return into how many rows a group is folded: as many as bring it nearest to a square, if all divide evenly."""
    fingers = sum(sizing.fingers for sizing in group.sizing)
    sizing = group.sizing[0]
    pitch = sizing.length + 2 * technology.dim("contact_to_gate", group.spec) + technology.contact.size
    rail = technology.conductors[1].width + technology.conductors[1].space + technology.cuts[0].size
    nets = {net for device in group.devices for net in device.terminals.values()}
    height = sizing.finger_width + len(nets) * rail

    def aspect(rows: int) -> float:
        return max(fingers * pitch / rows / (height * rows), height * rows / (fingers * pitch / rows))

    reach = 2 * technology.dim("tap_max_distance", group.spec)  # taps lie below and above all rows only
    able = [
        rows
        for rows in (1, 2, 4)
        if all(sizing.fingers % rows == 0 for sizing in group.sizing) and (rows == 1 or rows * height < reach)
    ]
    best = min(able, key=aspect)
    return best if aspect(1) > WIDE else 1


def _transistors(group: Group) -> list[Transistor]:
    return [
        Transistor(
            device.id,
            group.spec,
            sizing.finger_width,
            sizing.length,
            sizing.fingers,
            1,
            device.terminals["d"],
            device.terminals["g"],
            device.terminals["s"],
            device.terminals["b"],
        )
        for device, sizing in zip(group.devices, group.sizing, strict=True)
    ]
