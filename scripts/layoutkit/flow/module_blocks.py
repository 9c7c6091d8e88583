"""Drawn modules as the blocks that placement works on, and the modules in the shapes that placement chose."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.flow.groups import Group
from layoutkit.flow.hierarchy import InstanceGroup
from layoutkit.flow.passive_modules import PassiveGroup
from layoutkit.flow.rings import ring_room
from layoutkit.place import Block, Rectangle

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from layoutkit.draw.module import Module
    from layoutkit.flow.modules import Drawn
    from layoutkit.flow.symmetric_modules import SymmetryPlan
    from layoutkit.place import Placement
    from layoutkit.technology import Technology


def module_blocks(drawn: Sequence[Drawn], technology: Technology, plan: SymmetryPlan) -> list[Block]:
    """Return what placement needs to know of each module in each of its shapes; of two partners the left one first."""
    layout = drawn[0].module.layout
    drawn_layers = {layout.get_info(index): index for index in layout.layer_indexes()}
    layers = {
        spec.name: drawn_layers[kdb.LayerInfo(*spec.gds)]
        for spec in technology.layers.values()
        if kdb.LayerInfo(*spec.gds) in drawn_layers
    }
    blocks = {}
    for item in drawn:
        first, *others = (_block(technology, item, module, layers, plan) for module in item.shapes)
        blocks[first.name] = replace(first, variants=tuple(others))
    ordered = dict.fromkeys(
        name for item in drawn for name in plan.left_first.get(item.module.name, (item.module.name,))
    )
    return [blocks[name] for name in ordered]


def _block(technology: Technology, item: Drawn, module: Module, layers: Mapping[str, int], plan: SymmetryPlan) -> Block:
    name = item.module.name
    boxes = {layer: module.cell.bbox(index) for layer, index in layers.items()}
    block = Block(
        name=name,
        kind=item.kind,
        box=rectangle(module.bbox),
        pins=tuple((pin.net, pin.box.center().x, pin.box.center().y) for pin in module.pins),
        layer_boxes={layer: rectangle(box) for layer, box in boxes.items() if not box.empty()},
        level=item.group.level,
        symmetric=name in plan.centred,
        partner=plan.partners.get(name),
        bulk_net=item.well_net,
        island=plan.islands.get(name, ""),
        leaving=plan.loose.get(name, 0.0),
        turns=isinstance(item.group, PassiveGroup) and item.group.turns,
        excess=round(module.excess * module.bbox.area()),
    )
    if isinstance(item.group, Group) and not item.ringed:
        block = replace(block, ring=ring_room(technology, replace(item, module=module), block))
    if isinstance(item.group, InstanceGroup):
        # The pins of one net are joined inside of an instance, so the first one is as good as any.
        pins = [next(same) for _, same in groupby(block.pins, key=itemgetter(0))]
        block = replace(block, pins=tuple(pins), holds=item.holds)
    return block


def chosen_shapes(drawn: Sequence[Drawn], placement: Placement) -> list[Drawn]:
    """Return the modules in the shapes that placement chose, under their own names; the other cells are deleted."""
    chosen = []
    for item in drawn:
        shape = placement.placed[item.module.name].variant
        module, layout = item.shapes[shape], item.module.layout
        for other in item.shapes:
            if other is not module:
                layout.prune_cell(other.cell.cell_index(), -1)
        if shape:
            layout.rename_cell(module.cell.cell_index(), item.module.name)
            module = replace(module, name=item.module.name)
        chosen.append(replace(item, module=module, others=()))
    return chosen


def rectangle(box: kdb.Box) -> Rectangle:
    """Return a box as a rectangle of placement."""
    return Rectangle(box.left, box.bottom, box.right, box.top)
