"""One tap ring around several modules: which modules share one, the room it takes, and drawing it.

Modules drawn with ring ``later`` have no taps, and no well or thick oxide before the ring is drawn. Placement keeps
modules of one flavour and bulk net together and leaves room around them; the ring is then drawn around any such set of
boxes. How the boxes were placed does not matter here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.circuit.ranked_names import named_after
from layoutkit.draw.module import Module, Pin
from layoutkit.draw.ring import RING, SIDES, TapRing, draw_tap_ring, module_covers, ring_sizes
from layoutkit.draw.row import row_sizes
from layoutkit.draw.sketch import Sketch
from layoutkit.layout.cells import fresh_cell
from layoutkit.place import RingRoom
from layoutkit.rectangle import Rectangle

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from layoutkit.draw.ring import RingSide
    from layoutkit.draw.row import RowSizes
    from layoutkit.flow.modules import Drawn
    from layoutkit.place import Block, Placed, Placement
    from layoutkit.technology import DeviceSpec, Technology


@dataclass(frozen=True)
class CommonRing:
    """A ring around several modules.

    Attributes:
        module: Its cell, with the rail as a pin of the bulk net, in the coordinates of the placement.
        block: The ring as a block: its kind, bulk net and the box of each of its layers.
    """

    module: Module
    block: Block


def ring_room(technology: Technology, item: Drawn, block: Block) -> RingRoom:
    """Return the room that a ring needs around ``block``, the transistors of ``item``, which have no taps."""
    device = technology.device(item.flavour)
    sizes = row_sizes(technology, device)
    margins = {side: technology.snap_up(_margin(technology, device, block, side)) for side in SIDES}
    beside = max(margins["left"], margins["right"])  # a block may be mirrored
    box = block.box
    inner = Rectangle(box.left - beside, box.bottom - margins["bottom"], box.right + beside, box.top + margins["top"])
    sketch = Sketch()
    _draw_ring(sketch, technology, TapRing(Rectangle(*inner)), device, "")
    ring_boxes = _layer_boxes(technology, sketch)
    boxes = {
        layer: Rectangle.around([each[layer] for each in (block.layer_boxes, ring_boxes) if layer in each])
        for layer in sorted({*block.layer_boxes, *ring_boxes})
    }
    return RingRoom(
        key=f"{device.name} {block.bulk_net}",
        inner=inner,
        outside=replace(block, box=Rectangle.around([box, *ring_boxes.values()]), layer_boxes=boxes),
        reach=2 * technology.dim("tap_max_distance", device),
        spaces=_spaces_inside(technology, device, sizes),
    )


def draw_rings(
    layout: kdb.Layout,
    technology: Technology,
    drawn: Mapping[str, Drawn],
    blocks: Sequence[Block],
    placement: Placement,
) -> list[CommonRing]:
    """Return a ring for each set of blocks that share one, drawn in ``layout`` as one cell per ring.

    Args:
        layout: Receives the cells.
        technology: The process.
        drawn: What each block is, by its name.
        blocks: What was placed.
        placement: Where, and which blocks share a ring.
    """
    by_name = {block.name: block for block in blocks}
    return [
        _common_ring(layout, technology, [(by_name[name], drawn[name]) for name in names], placement)
        for names in placement.rings
    ]


def transformation(place: Placed) -> kdb.Trans:
    """Return what moves a block's own coordinates to ``place``."""
    flipped = kdb.Trans(2 if place.mirrored else 0, place.mirrored != place.upside_down, place.x, place.y)
    return flipped * kdb.Trans(1 if place.turned else 0, False, 0, 0)


def _common_ring(
    layout: kdb.Layout, technology: Technology, inside: Sequence[tuple[Block, Drawn]], placement: Placement
) -> CommonRing:
    members = [placement.placed[block.name].shape(block) for block, _ in inside]
    device = technology.device(inside[0][1].flavour)
    inner = Rectangle.around([placement.placed[b.name].rectangle(b.ring.inner) for b in members if b.ring])
    net = members[0].bulk_net
    sketch = Sketch()
    taps = TapRing(Rectangle(*inner), rails=(_rail_side(inner, members, placement),))
    pins = _draw_ring(sketch, technology, taps, device, net)
    covers = _covers(technology, taps, device)
    name = f"{RING}{'_'.join(block.name for block in members)}"[:60]
    while layout.has_cell(name):
        name += "_ring"
    name = named_after(members[0].name, name)
    cell = fresh_cell(layout, name)
    sketch.write(cell, technology, 0, 0)
    for block, item in inside:
        _cover(item.module, transformation(placement.placed[block.name]), covers, technology)
    module = Module(
        name=name,
        cell=cell,
        layout=layout,
        pins=tuple(Pin(net, technology.conductors[1].name, kdb.Box(*area)) for net, area in pins),
        devices=(),
        instances=(),
        symmetry_axis_x=None,
        bbox=cell.bbox(),
    )
    boxes = _layer_boxes(technology, sketch)
    box = Rectangle.around(list(boxes.values()))
    return CommonRing(module, replace(members[0], name=name, box=box, pins=(), layer_boxes=boxes, ring=None))


def _rail_side(inner: Rectangle, members: Sequence[Block], placement: Placement) -> RingSide:
    """Return the side of the ring that is nearer to the rails of its net inside."""
    heights = [
        placement.placed[block.name].point(x, y)[1]
        for block in members
        for net, x, y in block.pins
        if net == block.bulk_net
    ]
    below, above = (sum(abs(edge - y) for y in heights) for edge in (inner.bottom, inner.top))
    return "top" if above < below else "bottom"


def _draw_ring(
    sketch: Sketch, technology: Technology, taps: TapRing, device: DeviceSpec, net: str
) -> list[tuple[str, Rectangle]]:
    pins = draw_tap_ring(sketch, technology, device, taps, net)
    for layer, covered in _covers(technology, taps, device):
        sketch.box(layer, covered)
    return pins


def _covers(technology: Technology, taps: TapRing, device: DeviceSpec) -> list[tuple[str, Rectangle]]:
    """Return the well and the thick oxide of a ring as (layer, area)."""
    ring = ring_sizes(technology, device, row_sizes(technology, device))
    return list(module_covers(taps.inner, ring, technology, device))


def _cover(module: Module, place: kdb.Trans, covers: Sequence[tuple[str, Rectangle]], technology: Technology) -> None:
    """Draw the well and the thick oxide of a ring over a module in the module's cell, too.

    The ring holds them already. Programs that read the cells one by one, such as Magic, see a transistor only where
    all its layers are in one cell: without them drain and source of a PMOS are one net with the substrate.
    """
    for layer, covered in covers:
        over = module.bbox & place.inverted() * kdb.Box(*covered)
        module.cell.shapes(technology.layer(module.layout, layer)).insert(over)


def _margin(technology: Technology, device: DeviceSpec, block: Block, side: RingSide) -> int:
    """Return the distance from the block's box to the inner edge of the ring, negative where that lies inside. [dbu]"""
    sizes = row_sizes(technology, device)
    ring = ring_sizes(technology, device, sizes)
    marker = technology.role("poly_contact_marker")
    implant = max(ring.implant, ring.implant_to_active)
    spaces = {
        technology.resolve("poly"): max(ring.poly_space, ring.implant + ring.implant_to_channel - sizes.gate_extension),
        technology.contact.layer: max(ring.gate_contact_space, sizes.contact_space - ring.contact_side),
        technology.conductors[0].layer: ring.strip_space,
        **({device.implant: implant} if device.implant else {}),
        **dict.fromkeys(device.markers, ring.implant),
        **({marker: sizes.marker_to_contact - ring.contact_side} if marker else {}),
        technology.resolve("active"): max(
            ring.active_space, ring.implant + ring.implant_to_active, ring.implant + ring.implant_to_channel
        ),
    }
    if side in {"bottom", "top"}:
        rail = technology.conductors[1].layer
        spaces[rail] = sizes.rail_space + max(0, (sizes.rail - ring.width + 1) // 2)
    found = [space - _inset(block, layer, side) for layer, space in spaces.items() if layer in block.layer_boxes]
    return max(-ring.width, *found)


def _inset(block: Block, layer: str, side: RingSide) -> int:
    return abs(int(getattr(block.box, side)) - int(getattr(block.layer_boxes[layer], side)))


def _spaces_inside(technology: Technology, device: DeviceSpec, sizes: RowSizes) -> dict[tuple[str, str], int]:
    """Return the spaces that two blocks inside one ring keep between shapes of two different layers. [dbu]"""
    active, poly, contact = technology.resolve("active"), technology.resolve("poly"), technology.contact.layer
    spaces = {(poly, active): sizes.poly_to_active, (contact, active): sizes.gate_contact_to_active}
    marker = technology.role("poly_contact_marker")
    if marker:
        spaces |= {(marker, contact): sizes.marker_to_contact, (marker, marker): sizes.marker_space}
    if device.implant:
        spaces[contact, device.implant] = max(0, sizes.gate_contact_to_active - sizes.implant)
    return spaces


def _layer_boxes(technology: Technology, sketch: Sketch) -> dict[str, Rectangle]:
    return {
        technology.resolve(layer): Rectangle.around([Rectangle(*area) for area in areas])
        for layer, areas in sorted(sketch.boxes.items())
    }
