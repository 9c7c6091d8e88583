"""From a design to placed modules: drawn, set in rows, their wells joined, their ports labelled; no wires yet."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import klayout.db as kdb

from layoutkit.flow.modules import draw_groups
from layoutkit.place import Block, PlacementOptions, Rectangle, place_rows
from layoutkit.place.clearance import Clearances

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from layoutkit.circuit.circuit import Circuit
    from layoutkit.draw.module import Module
    from layoutkit.flow.design import Design
    from layoutkit.flow.modules import Drawn
    from layoutkit.place import Placed, Placement
    from layoutkit.technology import Technology

# Groups whose two halves carry the two halves of a differential signal; mirrors match within themselves.
ON_THE_AXIS = frozenset({"differential_pair", "cross_coupled_pair", "cascode_pair", "load_pair", "symmetric_pair"})


@dataclass(frozen=True)
class PlacedModules:
    """A cell that holds the modules of a design, each in its place.

    Attributes:
        technology: The process.
        cell: The top cell.
        layout: Kept referenced: KLayout's cells do not outlive their layout.
        drawn: The modules, in the order of the design's groups.
        placement: Rows and axis.
        trans: Module name to its place in the cell.
    """

    technology: Technology
    cell: kdb.Cell
    layout: kdb.Layout
    drawn: tuple[Drawn, ...]
    placement: Placement
    trans: Mapping[str, kdb.Trans]

    @property
    def modules(self) -> dict[str, Module]:
        """The modules by name, sorted."""
        return {module.name: module for module in sorted((item.module for item in self.drawn), key=lambda m: m.name)}

    def place_of(self, module: Module, box: kdb.Box) -> kdb.Box:
        """Return where a box of a module's own coordinates lies. [dbu]"""
        return box.transformed(self.trans[module.name])


def place_modules(design: Design, options: PlacementOptions) -> PlacedModules:
    """Return the modules of ``design``, drawn into a new layout and placed.

    Args:
        design: What to draw.
        options: How to place.

    Raises:
        LayoutkitError: If a module cannot be drawn.
    """
    technology = design.technology
    layout = kdb.Layout()
    layout.dbu = technology.dbu_um
    drawn = draw_groups(layout, technology, design.groups, design.dummies)
    cell = layout.create_cell(_cell_name(design.circuit.name, layout))
    blocks = _blocks(drawn, technology)
    placement = place_rows(technology, blocks, options)
    trans = {name: _trans(place) for name, place in placement.placed.items()}
    placed = PlacedModules(technology, cell, layout, tuple(drawn), placement, trans)
    for name, module in placed.modules.items():
        cell.insert(kdb.CellInstArray(module.cell.cell_index(), trans[name]))
    _join_wells(technology, cell, blocks, placement)
    return placed


def _cell_name(name: str, layout: kdb.Layout) -> str:
    """Return a name for the top cell that GDS can hold and no module has."""
    safe = "".join(c if c.isascii() and (c.isalnum() or c in "_$") else "_" for c in name)[:60] or "top"
    while layout.has_cell(safe):
        safe += "_top"
    return safe


def _blocks(drawn: Sequence[Drawn], technology: Technology) -> list[Block]:
    """Return what placement needs to know of each module."""
    layout = drawn[0].module.layout
    names = {layout.get_info(index): index for index in layout.layer_indexes()}
    blocks = []
    for item in drawn:
        boxes = {}
        for spec in technology.layers.values():
            index = names.get(kdb.LayerInfo(*spec.gds))
            box = item.module.cell.bbox(index) if index is not None else kdb.Box()
            if not box.empty():
                boxes[spec.name] = _rectangle(box)
        axis = item.module.symmetry_axis_x
        middle = item.module.bbox.left + item.module.bbox.right
        blocks.append(
            Block(
                name=item.module.name,
                kind=item.group.spec.placed_with,
                box=_rectangle(item.module.bbox),
                pins=tuple((pin.net, pin.box.center().x, pin.box.center().y) for pin in item.module.pins),
                layer_boxes=boxes,
                level=item.group.level,
                symmetric=item.group.type in ON_THE_AXIS
                and axis is not None
                and 2 * axis == middle
                and middle % (2 * technology.grid) == 0,
                bulk_net=item.group.bulk_net,
            )
        )
    return blocks


def _rectangle(box: kdb.Box) -> Rectangle:
    return Rectangle(box.left, box.bottom, box.right, box.top)


def _trans(place: Placed) -> kdb.Trans:
    return kdb.Trans(2 if place.mirrored else 0, place.mirrored, place.x, place.y)


def _join_wells(technology: Technology, cell: kdb.Cell, blocks: Sequence[Block], placement: Placement) -> None:
    """Make one well of those of one layer, bulk net and oxide that stand closer than two wells may, oxide included."""
    drawn: dict[tuple[str, str, tuple[str, ...]], kdb.Region] = {}
    clearances = Clearances(technology)
    wells: dict[str, str | None] = {spec.type: spec.well for spec in technology.devices.values()}
    for block in blocks:
        well = wells.get(block.kind)
        if well is not None and well in block.layer_boxes:
            box = placement.placed[block.name].rectangle(block.layer_boxes[well])
            key = (well, block.bulk_net, tuple(sorted(clearances.oxide(block))))
            drawn.setdefault(key, kdb.Region()).insert(kdb.Box(*box))
    width = technology.dim("well_width")
    space = max(technology.dim("well_space", spec) for spec in technology.devices.values() if spec.well)
    for key, region in sorted(drawn.items(), key=lambda entry: entry[0]):
        others = kdb.Region()
        for other, shapes in drawn.items():
            if other != key:
                others += shapes.sized(space if other[0] == key[0] else clearances.to_well)
        patch = (_joined(region, space, width, technology.grid) - region - others).merged()
        for layer in (key[0], *key[2]):
            cell.shapes(technology.layer(cell.layout(), layer)).insert(patch)


def _joined(region: kdb.Region, space: int, width: int, grid: int) -> kdb.Region:
    """Return ``region`` with gaps and holes narrower than ``space`` filled; corners that nearly meet are bridged.

    A check cuts its edges where the distance ends, anywhere between grid points, so bridges grow to the grid.
    """
    half = -(-space // 2)
    for _ in range(len(list(region.each())) + 1):
        region = region.sized(half, 2).sized(-half, 2) + region
        region.merge()
        faults = region.space_check(space, False, kdb.Metrics.Euclidian)
        faults += region.width_check(width, False, kdb.Metrics.Euclidian)
        if faults.is_empty():
            break
        for pair in faults.each():
            region.insert(_on_grid(pair.bbox().enlarged(width // 2, width // 2), grid))
        region.merge()
    return region


def _on_grid(box: kdb.Box, grid: int) -> kdb.Box:
    """Return the smallest box on the grid that holds ``box``."""
    low = (edge // grid * grid for edge in (box.left, box.bottom))
    high = (-(-edge // grid) * grid for edge in (box.right, box.top))
    return kdb.Box(*low, *high)


def label_ports(placed: PlacedModules, circuit: Circuit) -> list[str]:
    """Write each port's name and pin shape on its widest rail; return the ports that have no metal, in words.

    Nets of black boxes are labelled as ports are, so that the black box can be connected there.
    """
    technology, layout, cell = placed.technology, placed.layout, placed.cell
    missing = []
    for port in dict.fromkeys((*circuit.ports, *(net for net in circuit.black_box_nets if circuit.nets[net]))):
        boxes = [
            (placed.place_of(item.module, pin.box), pin.layer)
            for item in placed.drawn
            for pin in item.module.pins_of(port)
        ]
        if not boxes:
            missing.append(f"port {port} connects to no device; it has no metal and no label")
            continue
        box, layer = max(boxes, key=lambda entry: (entry[0].width() * entry[0].height(), str(entry[0])))
        conductor = technology.conductor(layer)
        if conductor.pin_layer is not None:
            cell.shapes(technology.layer(layout, conductor.pin_layer)).insert(box)
        middle = box.center()
        text = kdb.Text(port, kdb.Trans(0, False, technology.snap(middle.x), technology.snap(middle.y)))
        cell.shapes(technology.layer(layout, conductor.label_layer)).insert(text)
    return missing


def matched_pairs(placed: PlacedModules) -> list[tuple[str, str]]:
    """Return every two devices that are drawn to match."""
    return [
        pair
        for item in placed.drawn
        if item.group.type not in {"single", "resistor_bank"}
        for pair in combinations([device.id for device in item.group.devices], 2)
    ]


def placement_data(placed: PlacedModules) -> dict[str, Any]:
    """Return rows, size and axis as JSON data. [um]"""
    box, to_um = placed.cell.bbox(), placed.technology.to_um
    return {
        "rows": [list(row) for row in placed.placement.rows],
        "width": to_um(box.width()),
        "height": to_um(box.height()),
        "axis_x": to_um(placed.placement.axis_x),
    }


def module_data(item: Drawn, technology: Technology) -> dict[str, Any]:
    """Return what was drawn for one group as JSON data. [um]"""
    return {
        "name": item.module.name,
        "type": item.group.type,
        "devices": list(item.module.devices),
        "symmetric": item.module.symmetry_axis_x is not None,
        "centroid_error": technology.to_um(item.module.centroid_error()),
    }
