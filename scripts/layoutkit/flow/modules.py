"""Draw the groups: a single transistor folded to a handy shape, a matched group as one common-centroid row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutkit.draw.group import GroupSpec, draw_group
from layoutkit.draw.mos import MosSpec, Transistor, draw_mos
from layoutkit.flow.assemble import Drawn

if TYPE_CHECKING:
    from collections.abc import Sequence

    import klayout.db as kdb

    from layoutkit.draw.module import Module
    from layoutkit.flow.groups import Group
    from layoutkit.technology import Technology


def draw_groups(layout: kdb.Layout, technology: Technology, groups: Sequence[Group], dummies: int) -> list[Drawn]:
    """Return each group with its module, drawn in ``layout``.

    Args:
        layout: Receives one cell a group.
        technology: The process.
        groups: What to draw.
        dummies: Dummy fingers at each end of a matched row.
    """
    return [Drawn(group, _draw(layout, technology, group, dummies)) for group in groups]


def _draw(layout: kdb.Layout, technology: Technology, group: Group, dummies: int) -> Module:
    transistors = _transistors(group)
    if len(transistors) == 1:
        return draw_mos(layout, technology, MosSpec(transistors[0], group.name, labels=False))
    return draw_group(layout, technology, GroupSpec(group.name, tuple(transistors), dummies, labels=False))


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
