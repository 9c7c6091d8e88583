"""Drawn modules as blocks for placement, and the places that they keep in a build with other sizes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import klayout.db as kdb

from layoutkit.flow.groups import Group
from layoutkit.flow.hierarchy import InstanceGroup
from layoutkit.flow.overlays import Overlay
from layoutkit.flow.passive_modules import PassiveGroup
from layoutkit.flow.rings import ring_room
from layoutkit.place import Block
from layoutkit.place.kept_places import EarlierPlaces, kept_placement
from layoutkit.rectangle import Rectangle

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from layoutkit.draw.module import Module
    from layoutkit.flow.modules import Drawn
    from layoutkit.flow.placing import PlacedModules, TriedPlacement
    from layoutkit.flow.symmetric_modules import SymmetryPlan
    from layoutkit.place import Placement
    from layoutkit.technology import Technology

MAX_NAMED = 8


@dataclass(frozen=True)
class KeptPlaces:
    """What became of the places of an earlier build.

    Attributes:
        kept: Modules that are drawn as before where they were before.
        redrawn: Modules that are new or have another size.
        moved: Modules that are drawn as before, each with how far it moved in x and y. [dbu]
        reason: Why the earlier places were given up; empty where they were not.
    """

    kept: tuple[str, ...]
    redrawn: tuple[str, ...]
    moved: tuple[tuple[str, int, int], ...]
    reason: str = ""

    def to_json(self, technology: Technology) -> dict[str, Any]:
        """Return it as JSON data, lengths in micrometres."""
        um = technology.to_um
        return {
            "kept": list(self.kept),
            "redrawn": list(self.redrawn),
            "moved": [{"module": name, "by": [um(dx), um(dy)]} for name, dx, dy in self.moved],
            **({"reason": self.reason} if self.reason else {}),
        }

    def text(self, technology: Technology) -> str:
        """Return a sentence that says what had to move; empty where nothing had to."""
        if not self.moved:
            return ""
        um, more = technology.to_um, len(self.moved) - MAX_NAMED
        listed = [f"{name} by ({um(dx):g}, {um(dy):g}) um" for name, dx, dy in self.moved[:MAX_NAMED]]
        why = self.reason or f"{', '.join(self.redrawn)} needed more room"
        return f"{why}: moved {', '.join(listed)}{f' and {more} more' if more > 0 else ''}"


def earlier_places(tried: TriedPlacement, resized: Iterable[str]) -> EarlierPlaces:
    """Return the places of a placement, which a later build with other sizes of ``resized`` may keep."""
    placed = tried.placed
    return EarlierPlaces(
        placed.placement,
        {item.module.name: rectangle(item.module.bbox) for item in placed.drawn},
        {item.module.name: item.module.devices for item in placed.drawn},
        tried.room.between,
        {each.name: each.over for each in placed.overlays},
        frozenset(resized),
    )


def kept_modules(
    technology: Technology, drawn: Sequence[Drawn], blocks: Sequence[Block], earlier: EarlierPlaces
) -> tuple[Placement, tuple[Overlay, ...]] | None:
    """Return a placement that keeps earlier places, with the capacitors over other modules; None if there is none."""
    devices = {item.module.name: item.module.devices for item in drawn}
    placement = kept_placement(technology, blocks, devices, earlier)
    if placement is None or not set(earlier.overlaid) <= set(placement.placed):
        return None
    return placement, tuple(Overlay(name, over) for name, over in earlier.overlaid.items())


def compared_places(earlier: EarlierPlaces, placed: PlacedModules, reason: str = "") -> KeptPlaces:
    """Return which modules kept their earlier places."""
    kept, redrawn, moved = [], [], []
    for item in placed.drawn:
        name, box = item.module.name, rectangle(item.module.bbox)
        if earlier.boxes.get(name) != box or not earlier.resized.isdisjoint(item.module.devices):
            redrawn.append(name)
            continue
        before, now = earlier.rectangle(name), placed.placement.placed[name].rectangle(box)
        if before == now:
            kept.append(name)
        else:
            moved.append((name, now.left - before.left, now.bottom - before.bottom))
    return KeptPlaces(
        tuple(sorted(kept, key=str)), tuple(sorted(redrawn, key=str)), tuple(sorted(moved, key=str)), reason
    )


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
