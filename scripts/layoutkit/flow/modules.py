"""Draw the groups: a single transistor folded to a compact shape, a matched group as common-centroid rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from layoutkit.draw.group import GroupSpec, draw_group
from layoutkit.draw.mos import MosSpec, Transistor, draw_mos
from layoutkit.draw.pair import PairSpec, draw_pair
from layoutkit.errors import GeometryError
from layoutkit.flow.passive_modules import PassiveGroup, draw_passives

if TYPE_CHECKING:
    from collections.abc import Collection

    import klayout.db as kdb

    from layoutkit.draw.module import Module
    from layoutkit.flow.design import Design
    from layoutkit.flow.groups import Group
    from layoutkit.technology import Technology

# A row this much wider than high is folded.
WIDE = 4.0


@dataclass(frozen=True)
class Drawn:
    """A group with the module drawn for it."""

    group: Group | PassiveGroup
    module: Module


def draw_groups(layout: kdb.Layout, design: Design) -> list[Drawn]:
    """Return each group of ``design`` with its module, drawn in ``layout`` as one cell per group."""
    paired = {device for group in design.constraints.symmetry for pair in group.pairs for device in pair}
    return [Drawn(group, _draw(layout, design, group, paired)) for group in design.groups]


def _draw(layout: kdb.Layout, design: Design, group: Group | PassiveGroup, paired: Collection[str]) -> Module:
    technology, dummies = design.technology, design.dummies
    if isinstance(group, PassiveGroup):
        return draw_passives(layout, technology, group, dummies)
    transistors = _transistors(group)
    rows = _rows(technology, group)
    if len(transistors) == 1:
        if transistors[0].id in paired:
            return _draw_by_role(layout, technology, MosSpec(transistors[0], group.name, rows=rows, labels=False))
        return draw_mos(layout, technology, MosSpec(transistors[0], group.name, rows=rows, labels=False))
    if group.arrangement in {"ABAB", "AABB"}:
        spacing = max(PairSpec.spacing, technology.dim("active_space", group.spec))
        first, second = transistors
        pair = PairSpec(group.name, first, second, group.arrangement, spacing=spacing, dummies=dummies, labels=False)
        try:
            return draw_pair(layout, technology, pair)
        except GeometryError:  # a device cannot be cut into two units; the row below needs none
            pass
    return draw_group(layout, technology, GroupSpec(group.name, tuple(transistors), dummies, labels=False, rows=rows))


def _draw_by_role(layout: kdb.Layout, technology: Technology, spec: MosSpec) -> Module:
    """Draw a transistor whose rails lie in an order that does not depend on the names of its nets.

    Two equal transistors that are connected alike then have the same geometry, so that one can mirror the other.
    """
    transistor = spec.transistor
    own = {"b": transistor.bulk, "d": transistor.drain, "g": transistor.gate, "s": transistor.source}
    roles: dict[str, str] = {}
    for role, net in own.items():
        roles.setdefault(net, role)
    renamed = replace(
        transistor,
        drain=roles[transistor.drain],
        gate=roles[transistor.gate],
        source=roles[transistor.source],
        bulk=roles[transistor.bulk],
    )
    module = draw_mos(layout, technology, replace(spec, transistor=renamed))
    nets = {role: net for net, role in roles.items()}
    return replace(module, pins=tuple(replace(pin, net=nets[pin.net]) for pin in module.pins))


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
