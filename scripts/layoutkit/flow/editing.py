"""Move and delete modules, and delete the wires of a net; what belongs to a module goes with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import klayout.db as kdb

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from layoutkit.flow.contents import Contents, HeldModule

Metal = dict[str, kdb.Region]
"""Regions by conductor and cut."""


@dataclass
class Edited:
    """What an edit did besides its purpose.

    Attributes:
        lost_ends: Wires that ended on the module and end on nothing now: net, conductor and place. [dbu]
        stubs: How many pieces of wire that led to the module alone went with it.
        labels: Labels that went with it, or that were removed with their wires.
    """

    lost_ends: list[tuple[str, str, kdb.Point]] = field(default_factory=list)
    stubs: int = 0
    labels: list[str] = field(default_factory=list)

    def to_json(self, to_um: Any) -> dict[str, Any]:
        """Return it as JSON data. [um]"""
        return {
            "lost_ends": [
                {"net": net, "layer": layer, "x": to_um(point.x), "y": to_um(point.y)}
                for net, layer, point in self.lost_ends
            ],
            "stubs": self.stubs,
            "labels": sorted(self.labels),
        }


@dataclass(frozen=True)
class Attached:
    """What hangs on a module.

    Attributes:
        ends: Where wires that lead elsewhere touch its metal: net, conductor and the common area.
        stubs: Pieces of wire that touch nothing but this module, by conductor and cut.
        stub_count: Number of such pieces.
        labels: The cell's own labels on its metal or stubs: layer and text.
        texts: Texts of the cell itself that name its devices: layer and text.
    """

    ends: tuple[tuple[str, str, kdb.Box], ...]
    stubs: Mapping[str, kdb.Region]
    stub_count: int
    labels: tuple[tuple[str, kdb.Text], ...]
    texts: tuple[tuple[str, kdb.Text], ...]


def attached(contents: Contents, module: HeldModule) -> Attached:
    """Return what hangs on a module."""
    conductors = [conductor.name for conductor in contents.technology.conductors]
    metal = {name: contents.metal_of(module, contents.wire_layers[name]) for name in conductors}
    others = {name: contents.fixed_shapes(contents.wire_layers[name]) for name in conductors}  # ports and rails
    for other in contents.modules:
        if other.instance not in module.instances:
            for name in conductors:
                others[name] += contents.metal_of(other, contents.wire_layers[name])
    wires = {name: contents.wires(layer) for name, layer in contents.wire_layers.items()}
    stubs: Metal = {name: kdb.Region() for name in wires}
    ends: list[tuple[str, str, kdb.Box]] = []
    count = 0
    for piece in _pieces(contents, wires):
        if not _touches(piece, metal):
            continue
        if not _touches(piece, others):
            count += 1
            for name, region in piece.items():
                stubs[name] += region
            continue
        for name in metal.keys() & piece.keys():
            boxes = [polygon.bbox() for polygon in (piece[name] & metal[name]).merged().each()]
            ends += [(contents.net_names_at(name, box.center()), name, box) for box in boxes]
    for name in conductors:  # rails and ports that the module touches itself
        common = (contents.fixed_shapes(contents.wire_layers[name]) & metal[name]).merged()
        ends += [(contents.net_names_at(name, each.bbox().center()), name, each.bbox()) for each in common.each()]
    ends.sort(key=lambda end: (end[0], end[1], str(end[2])))
    area = {name: metal[name] + stubs[name] for name in conductors}
    labels = [
        (conductor.label_layer, text)
        for conductor in contents.technology.conductors
        for _, text in contents.own_texts([conductor.label_layer])
        if _covers(area[conductor.name], text) and not _covers(others[conductor.name], text)
    ]
    role = contents.technology.role("device_text")
    texts = [
        (layer, text)
        for layer in ([] if role is None else [role])
        for _, text in contents.own_texts([layer])
        if text.string in module.devices and module.box.contains(text.trans.disp.to_p())
    ]
    return Attached(tuple(ends), stubs, count, tuple(labels), tuple(texts))


def _touches(piece: Metal, metal: Metal) -> bool:
    return any(not piece[name].interacting(metal[name]).is_empty() for name in metal.keys() & piece.keys())


def _covers(area: kdb.Region, text: kdb.Text) -> bool:
    point = text.trans.disp.to_p()
    return not area.interacting(kdb.Region(kdb.Box(point, point).enlarged(1, 1))).is_empty()


def _pieces(contents: Contents, wires: Metal) -> list[Metal]:
    """Return the pieces of wire that hang together by themselves, without the metal of modules."""
    from layoutkit.extract.connectivity import Nets

    technology = contents.technology
    joins = [(cut.name, technology.resolve(side)) for cut in technology.cuts for side in (cut.below, cut.above)]
    nets = Nets({name: region.merged() for name, region in wires.items()}, joins, contents.layout.dbu)
    return [
        {name: shapes for name in wires if not (shapes := nets.shapes(net, name)).is_empty()} for net in nets.every()
    ]


def move_module(contents: Contents, module: HeldModule, moved: kdb.Trans) -> Edited:
    """Put a module at another place, with its own rings, stubs and labels.

    Args:
        contents: The cell.
        module: What to move.
        moved: Its new transformation in the cell.
    """
    with_it = attached(contents, module)
    change = moved * module.instance.trans.inverted()
    _erase(contents, with_it.stubs)
    _erase_texts(contents, (*with_it.labels, *with_it.texts))
    for instance in module.instances:
        instance.trans = change * instance.trans
    for name, region in with_it.stubs.items():
        if not region.is_empty():
            index = contents.layout.layer(*contents.technology.spec(contents.wire_layers[name]).gds)
            contents.cell.shapes(index).insert(region.merged().transformed(change))
    for layer, text in (*with_it.labels, *with_it.texts):
        index = contents.layout.layer(*contents.technology.spec(layer).gds)
        contents.cell.shapes(index).insert(text.transformed(change))
    metal = {name: contents.metal_of(module, contents.wire_layers[name]) for _, name, _ in with_it.ends}
    return Edited(_lost(with_it, metal), with_it.stub_count, [text.string for _, text in with_it.labels])


def delete_module(contents: Contents, module: HeldModule) -> Edited:
    """Delete a module with its own rings, stubs and labels, and their cells if nothing else uses them."""
    with_it = attached(contents, module)
    _erase(contents, with_it.stubs)
    _erase_texts(contents, (*with_it.labels, *with_it.texts))
    indices = {instance.cell.cell_index() for instance in module.instances}
    for instance in module.instances:
        instance.delete()
    for index in sorted(indices):
        if not list(contents.layout.cell(index).each_parent_inst()):
            contents.layout.prune_cell(index, -1)
    return Edited(_lost(with_it, {}), with_it.stub_count, [text.string for _, text in with_it.labels])


def ends_lost(before: Attached, contents: Contents, module: HeldModule) -> Edited:
    """Return which wires ended on a module before it was redrawn, and do not any more."""
    metal = {name: contents.metal_of(module, contents.wire_layers[name]) for _, name, _ in before.ends}
    return Edited(_lost(before, metal))


def follow_labels(
    contents: Contents, module: HeldModule, before: Attached, pins: Sequence[tuple[str, str, kdb.Box]]
) -> list[str]:
    """Move the labels of a module that was redrawn to its new pins of these nets; return the labels that moved.

    A label whose net has no pin any more is removed.

    Args:
        contents: The cell, with the new module.
        module: What was redrawn.
        before: What hung on it before.
        pins: Net, conductor and metal of its pins in the cell.
    """
    moved = []
    layers = {c.label_layer: c.name for c in contents.technology.conductors}
    for layer, text in before.labels:
        if _covers(contents.metal_of(module, contents.wire_layers[layers[layer]]), text):
            continue
        _erase_texts(contents, [(layer, text)])
        moved.append(text.string)
        place = next((box.center() for net, on, box in pins if net == text.string and on == layers[layer]), None)
        if place is not None:
            index = contents.layout.layer(*contents.technology.spec(layer).gds)
            contents.cell.shapes(index).insert(kdb.Text(text.string, kdb.Trans(place.x, place.y)))
    return sorted(moved)


def _lost(before: Attached, metal: Mapping[str, kdb.Region]) -> list[tuple[str, str, kdb.Point]]:
    return [
        (net, layer, box.center())
        for net, layer, box in before.ends
        if layer not in metal or metal[layer].interacting(kdb.Region(box)).is_empty()
    ]


def delete_wires(contents: Contents, name: str) -> tuple[int, list[str], set[str]]:
    """Delete the wires of a net; ports, rails and pins stay.

    Returns:
        Number of shapes, the labels that lay on the wires alone and went with them, and further names of the metal.

    Raises:
        LayoutkitError: If no pin or label has this name.
    """
    pieces = contents.pieces_of(name)
    others = {each for _, names in pieces for each in names} - {name}
    wires = {part: contents.wires(layer) for part, layer in contents.wire_layers.items()}
    doomed: Metal = {}
    for part, region in wires.items():
        region.merged_semantics = False
        doomed[part] = region.inside(metal_of_nets(contents, pieces, part))
    count = _erase(contents, doomed)
    gone = []
    for conductor in contents.technology.conductors:
        index = contents.layout.find_layer(*contents.technology.spec(conductor.layer).gds)
        left = kdb.Region() if index is None else kdb.Region(contents.cell.begin_shapes_rec(index))
        for shapes, text in contents.own_texts([conductor.label_layer]):
            if text.string == name and _covers(doomed[conductor.name], text) and not _covers(left, text):
                _erase_text(shapes, text)
                gone.append(text.string)
    return count, gone, others


def metal_of_nets(contents: Contents, pieces: Sequence[tuple[kdb.Net, set[str]]], part: str) -> kdb.Region:
    """Return the merged shapes of pieces of connected metal on a conductor or cut."""
    found = kdb.Region()
    for net, _ in pieces if part in contents.nets.regions else ():
        found += contents.nets.shapes(net, part)
    return found.merged()


def _erase(contents: Contents, regions: Mapping[str, kdb.Region]) -> int:
    """Erase the cell's own shapes that lie inside regions; return how many."""
    count = 0
    for name, region in regions.items():
        index = contents.layout.find_layer(*contents.technology.spec(contents.wire_layers[name]).gds)
        if index is None or region.is_empty():
            continue
        fixed = {polygon.to_s() for polygon in contents.fixed_shapes(contents.wire_layers[name]).each()}
        shapes, area = contents.cell.shapes(index), region.merged()
        for shape in list(shapes.each(kdb.Shapes.SRegions)):
            if shape.polygon.to_s() not in fixed and not kdb.Region(shape.polygon).inside(area).is_empty():
                shapes.erase(shape)
                count += 1
    return count


def _erase_texts(contents: Contents, texts: Sequence[tuple[str, kdb.Text]]) -> None:
    for layer, text in texts:
        index = contents.layout.find_layer(*contents.technology.spec(layer).gds)
        if index is not None:
            _erase_text(contents.cell.shapes(index), text)


def _erase_text(shapes: kdb.Shapes, text: kdb.Text) -> None:
    for shape in list(shapes.each(kdb.Shapes.STexts)):
        if shape.text == text:
            shapes.erase(shape)
            return
