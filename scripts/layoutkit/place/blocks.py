"""What placement works on: blocks with pins, and where each block ends up. All lengths in database units.

``Clearances`` gives the minimum distance of two blocks: the largest spacing that any two of their layers need.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from layoutkit.rectangle import Rectangle

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from layoutkit.technology import Technology

    IntArray = npt.NDArray[np.int64]

SIDES = ("left", "right", "bottom", "top")
ABSENT = 1 << 40
"""The distance to what is not drawn."""


@dataclass(frozen=True)
class RingRoom:
    """What a block without taps needs around it: a ring that it may share with its neighbours.

    Attributes:
        key: Blocks of one key may share a ring.
        inner: Inner edge of a ring around the block alone, in the block's own coordinates. A ring around several
            blocks has the bounding box of theirs.
        outside: The block in a ring of its own, as blocks outside of the ring see it.
        reach: Height inside a ring at which the middle is as far from the taps as allowed. [dbu]
        spaces: Least distances between shapes of two layers, of blocks inside one ring. [dbu]
    """

    key: str
    inner: Rectangle
    outside: Block
    reach: int
    spaces: Mapping[tuple[str, str], int]


@dataclass(frozen=True)
class Block:
    """One drawn module as placement sees it, in its first shape.

    Attributes:
        name: Unique name.
        kind: What is drawn: ``nmos``, ``pmos``, a passive's type; blocks of two kinds keep their wells apart.
        box: Bounding box in the block's own coordinates.
        pins: ``(net, x, y)`` of each pin's centre in the block's own coordinates.
        layer_boxes: Bounding box of each drawn layer, for the clearance to neighbours.
        level: Distance from the supply the block hangs on: 1 next to the rail, growing towards the output.
        symmetric: Whether the block is centred on the axis of its island.
        partner: Name of the block that is this one's mirror image across the axis. Of two partners the one that is
            listed first lies on the left.
        bulk_net: Net of the body; neighbours of one kind and bulk share their well.
        ring: Set where the block has no taps of its own.
        variants: The same module in other shapes, as blocks of the same name, kind and nets; placement chooses one.
        island: Symmetric blocks and partners of one island have one axis.
        turns: Whether the block may be turned by 90 degrees.
        holds: Kinds of what is inside of an instance of a cell; its own kind is unique.
        leaving: What a symmetric block costs that lies off the axis of its island, compared with a pair: it is an
            island of its own there. 0 for one that has to stay.
        excess: Area that is added as a penalty for disadvantages of this shape, such as split fingers. [dbu2]
    """

    name: str
    kind: str
    box: Rectangle
    pins: tuple[tuple[str, int, int], ...]
    layer_boxes: Mapping[str, Rectangle]
    level: int = 1
    symmetric: bool = False
    partner: str | None = None
    bulk_net: str = ""
    ring: RingRoom | None = None
    variants: tuple[Block, ...] = ()
    island: str = ""
    turns: bool = False
    holds: frozenset[str] = frozenset()
    leaving: float = 0.0
    excess: int = 0

    @property
    def width(self) -> int:
        """Width of the bounding box."""
        return self.box.right - self.box.left

    @property
    def height(self) -> int:
        """Height of the bounding box."""
        return self.box.top - self.box.bottom

    @property
    def shapes(self) -> tuple[Block, ...]:
        """The block in each of its shapes; ``Placed.variant`` is an index into them."""
        return (self, *self.variants)


@dataclass(frozen=True)
class Placed:
    """Where a block lies.

    Attributes:
        name: Name of the block.
        x: What is added to its x coordinates in the end. [dbu]
        y: What is added to its y coordinates in the end. [dbu]
        mirrored: Whether left and right are exchanged, about its own y axis.
        upside_down: Whether top and bottom are exchanged, about its own x axis.
        variant: Index into ``Block.shapes``.
        turned: Whether it is turned by 90 degrees counter-clockwise about its origin before anything else.
    """

    name: str
    x: int
    y: int
    mirrored: bool = False
    upside_down: bool = False
    variant: int = 0
    turned: bool = False

    def shape(self, block: Block) -> Block:
        """Return ``block`` in the shape that was chosen."""
        return block.shapes[self.variant]

    def box(self, block: Block) -> Rectangle:
        """Return the bounding box of ``block`` as placed, in the shape that was chosen."""
        return self.rectangle(self.shape(block).box)

    def rectangle(self, own: Rectangle) -> Rectangle:
        """Return a rectangle of the block's own coordinates as placed."""
        (left, bottom), (right, top) = self.point(own.left, own.bottom), self.point(own.right, own.top)
        return Rectangle(min(left, right), min(bottom, top), max(left, right), max(bottom, top))

    def point(self, x: int, y: int) -> tuple[int, int]:
        """Return a point of the block's own coordinates as placed."""
        if self.turned:
            x, y = -y, x
        return (-x if self.mirrored else x) + self.x, (-y if self.upside_down else y) + self.y


@dataclass(frozen=True)
class Island:
    """Blocks about one vertical axis: symmetric ones are centred on it, partners mirror each other across it.

    Attributes:
        axis_x: The axis. [dbu]
        members: Names of the blocks.
    """

    axis_x: int
    members: tuple[str, ...]


@dataclass(frozen=True)
class Placement:
    """A legal placement.

    Attributes:
        placed: Block name to its place, from the lowest to the highest, those of one height from left to right.
        islands: The symmetric parts. That of several blocks, with its axis at x = 0, comes first.
        box: Bounding box of all blocks, without rings that are still to be drawn.
        wire_length: Half-perimeter wire length over all nets. [dbu]
        rings: Names of the blocks inside each ring to be drawn; there is room for it around them.
    """

    placed: Mapping[str, Placed]
    islands: tuple[Island, ...]
    box: Rectangle
    wire_length: int
    rings: tuple[tuple[str, ...], ...] = ()

    @property
    def axis_x(self) -> int:
        """The main axis: that of the first island, 0 if there is none. [dbu]"""
        return self.islands[0].axis_x if self.islands else 0


@dataclass(frozen=True)
class PlacementOptions:
    """How to place.

    Attributes:
        gap_x: Extra room between neighbours side by side, for wires. [dbu]
        gap_y: Extra room between neighbours one above the other, for wires. [dbu]
        room: Extra room around single blocks, by name. [dbu]
        max_aspect: Largest ratio of the longer to the shorter side.
        outline: Width and height into which all should fit, instead of an aspect ratio. [dbu]
        seed: Seed of the annealing.
        moves: How many changes the annealing tries; None for a number that grows with the blocks.
        near: Names of blocks that belong next to each other, one tuple per group.
        aligned: Blocks with an edge in common: ``left``, ``right``, ``bottom``, ``top``, ``center_x`` or ``center_y``,
            and their names.
        ordered: Blocks that lie one after the other: ``left_to_right`` or ``bottom_to_top``, and their names.
        abutting: Names of blocks side by side, from left to right, as close as the rules allow.
        net_weights: How much the length of a net counts, by name; 1 for others.
        mirrored: Pairs of nets whose ports lie at the left and right as mirror images, so that the frame around the
            blocks is symmetric about their axis.
        sides: Side (``left``, ``right``, ``bottom``, ``top``) at which the port of a net is wanted, by net.
    """

    gap_x: int = 0
    gap_y: int = 0
    room: Mapping[str, int] = field(default_factory=dict)
    max_aspect: float = 2.0
    outline: tuple[int, int] | None = None
    seed: int = 1
    moves: int | None = None
    near: tuple[tuple[str, ...], ...] = ()
    aligned: tuple[tuple[str, tuple[str, ...]], ...] = ()
    ordered: tuple[tuple[str, tuple[str, ...]], ...] = ()
    abutting: tuple[tuple[str, ...], ...] = ()
    net_weights: Mapping[str, float] = field(default_factory=dict)
    mirrored: tuple[tuple[str, str], ...] = ()
    sides: Mapping[str, str] = field(default_factory=dict)

    def room_between(self, one: str, other: str) -> tuple[int, int]:
        """Return the extra room between two neighbours side by side, and one above the other. [dbu]"""
        around = self.room.get(one, 0) + self.room.get(other, 0)
        return self.gap_x + around, self.gap_y + around


class Clearances:
    """Computes the gaps between blocks' bounding boxes from the technology's spacing rules."""

    def __init__(self, technology: Technology) -> None:
        self.grid = technology.grid
        self.wells = {spec.well for spec in technology.devices.values() if spec.well}
        self.spaces = _spaces(technology)
        self.beside_deep_well: dict[str, int] = {}
        self.deep_well = ""
        if technology.deep_well is not None:
            deep, self.deep_well = technology.deep_well, technology.roles["deep_nwell"]
            self.wells |= {self.deep_well, *((deep.body,) if deep.body else ())}
            self.spaces = {**self.spaces, self.deep_well: deep.dim("space")}
            diffusion = max(deep.dim("to_active"), deep.dim("to_taps"))
            self.beside_deep_well = {technology.resolve(role): diffusion for role in ("active", "tap")}
            self.beside_deep_well[technology.roles["nwell"]] = deep.dim("to_wells")
        flavours = sorted(technology.devices.items())
        self.to_well = max(technology.dim(name, d) for _, d in flavours for name in ("active_to_well", "tap_to_well"))
        self.implant_to_active = max(technology.dim("implant_to_active", d) for _, d in flavours)
        self.to_bodies: dict[str, int] = {}
        self.to_plates: dict[tuple[str, str], int] = {}
        for spec in technology.passives.values():
            if "bottom" in spec.parts:
                plate = spec.type, technology.conductor(spec.parts["bottom"]).layer
                self.to_plates[plate] = max(spec.dimensions.get("bottom_to_others", 0), self.to_plates.get(plate, 0))
            if spec.undrawn_well:
                continue  # its n well and deep n well keep others away
            space = max(spec.dimensions.get(name, 0) for name in ("body_to_poly", "body_to_active", "unit_space"))
            self.to_bodies[spec.type] = max(space, self.to_bodies.get(spec.type, 0))
        plate_layers = {layer for _, layer in self.to_plates}
        self.to_wide_plates: dict[str, list[tuple[int, int]]] = {layer: [] for layer in plate_layers}
        for rule in technology.rules:
            layer = technology.resolve(str(rule.options.get("layer", "")))
            if rule.kind == "wide_space" and rule.severity == "error" and rule.value and layer in plate_layers:
                width = technology.to_dbu(float(rule.options["wide_um"]))
                self.to_wide_plates[layer].append((width, rule.value))
        implants = (layer for _, device in flavours for layer in (device.implant, device.bulk_implant))
        self.implants = {layer for layer in implants if layer}
        self.diffusion = {technology.resolve(role) for role in ("active", "tap")}
        self.covers = {layer: technology.dim("cover_to_others", d) for _, d in flavours for layer in d.covers}

    def gaps(self, blocks: Sequence[Block], *, inside: bool = False) -> IntArray:
        """Return the gap to keep between every two faces of blocks: left, right, bottom and top of each. [dbu]

        Row ``4 * i + side`` is of that side of block i, and a column alike; only sides that can face each other mean
        anything. Wells of one kind, oxide and bulk net may meet: they are one well.

        Args:
            blocks: The blocks, in the shape and turn in which they are placed.
            inside: Whether they lie inside one ring; means something for blocks of one ring only. Else they lie beside
                each other, where a block that needs a ring is to be given with it (``RingRoom.outside``).

        Returns:
            (4 n, 4 n) int64, symmetric.
        """
        insets = {layer: _insets(blocks, layer) for layer in sorted({name for b in blocks for name in b.layer_boxes})}
        drawn = {layer: inset < ABSENT for layer, inset in insets.items()}
        kinds, wells = (
            _numbers([b.kind for b in blocks]),
            _numbers([(b.kind, b.bulk_net, self.oxide(b)) for b in blocks]),
        )
        mixed = _per_face([bool(b.holds) for b in blocks]) > 0
        several = mixed[:, None] | mixed
        bodies = _per_face([max(self.to_bodies.get(kind, 0) for kind in _kinds(b)) for b in blocks])
        different = kinds[:, None] != kinds
        gap: IntArray = np.where(different & ~several, max(self.to_well, self.implant_to_active), 0)
        gap = np.maximum(gap, np.where(different & several, self._of_kinds(insets, len(gap)), 0))
        gap = np.maximum(gap, np.maximum(bodies[:, None], bodies))
        for layer, space in self.covers.items():
            if layer in drawn:
                one, both = drawn[layer][:, None] != drawn[layer], drawn[layer][:, None] & drawn[layer]
                gap = np.maximum(gap, np.where(one | (both & several), space, 0))
        for layer, space in self.spaces.items():
            if layer not in insets:
                continue
            plates = _per_face([self._beside_plate(block, layer) for block in blocks])
            need = np.maximum(space, np.maximum(plates[:, None], plates)) - _sum(insets[layer], insets[layer])
            if layer in self.wells:
                need = np.where(wells[:, None] == wells, 0, need)
            gap = np.maximum(gap, need)
        for layer, space in self.beside_deep_well.items() if self.deep_well in insets else ():
            if layer in insets:
                need = np.where(drawn[self.deep_well] & ~mixed, ABSENT, insets[layer])  # of a block of one well: in it
                need = space - _sum(insets[self.deep_well], need)
                gap = np.maximum(gap, np.maximum(need, need.T))
        for key in sorted({b.ring.key for b in blocks if b.ring}) if inside else ():
            alike = _per_face([int(b.ring is not None and b.ring.key == key) for b in blocks]) > 0
            spaces = next(b.ring.spaces for b in blocks if b.ring and b.ring.key == key)
            for (one, other), space in spaces.items():
                if one in insets and other in insets:
                    need = space - _sum(insets[one], insets[other])
                    need = np.maximum(need, need.T)
                    gap = np.maximum(gap, np.where(alike[:, None] & alike, need, 0))
        return -(-gap // self.grid) * self.grid

    def _beside_plate(self, block: Block, layer: str) -> int:
        """Return the gap that other metal of ``layer`` keeps to the bottom plates of a block, 0 without one. [dbu]

        Rules for very wide metal, such as M5.f of sg13g2, concern plates only; conductors state those for wires.
        """
        beside = [self.to_plates[kind, layer] for kind in _kinds(block) if (kind, layer) in self.to_plates]
        if beside and layer in block.layer_boxes:
            box = block.layer_boxes[layer]
            side = min(box.right - box.left, box.top - box.bottom)
            beside += [space for width, space in self.to_wide_plates[layer] if width < side]
        return max(beside, default=0)

    def _of_kinds(self, insets: Mapping[str, IntArray], count: int) -> IntArray:
        """Return the gap that wells and implants of one block keep to the diffusion of one of another kind. [dbu]"""
        gap = np.zeros((count, count), dtype=np.int64)
        for layers, space in ((self.wells, self.to_well), (self.implants, self.implant_to_active)):
            for layer in sorted(layers & insets.keys()):
                for diffusion in sorted(self.diffusion & insets.keys()):
                    need = space - _sum(insets[layer], insets[diffusion])
                    gap = np.maximum(gap, np.maximum(need, need.T))
        return gap

    def beside(self, first: Block, second: Block) -> int:
        """Return the gap between two blocks side by side, inside one ring where they share one, however mirrored."""
        shared = first.ring is not None and second.ring is not None and first.ring.key == second.ring.key
        blocks = [block if shared or not block.ring else block.ring.outside for block in (first, second)]
        margins = (
            0
            if shared
            else sum(
                max(bare.box.left - whole.box.left, whole.box.right - bare.box.right)
                for bare, whole in zip((first, second), blocks, strict=True)
            )
        )
        return int(np.max(self.gaps(blocks, inside=shared)[:2, 4:6])) + margins

    def oxide(self, block: Block) -> frozenset[str]:
        """Return the covers (thick oxide) that are drawn over ``block``."""
        return frozenset(layer for layer in self.covers if layer in block.layer_boxes)


def _kinds(block: Block) -> Sequence[str]:
    """Return the kinds of what is inside a block."""
    return sorted(block.holds) or (block.kind,)


def _insets(blocks: Sequence[Block], layer: str) -> IntArray:
    """Return the distance from each face of each block to its shapes on ``layer``. [dbu]"""
    found = []
    for block in blocks:
        shapes = block.layer_boxes.get(layer)
        found += [ABSENT] * 4 if shapes is None else [abs(getattr(block.box, s) - getattr(shapes, s)) for s in SIDES]
    return np.array(found, dtype=np.int64)


def _sum(one: IntArray, other: IntArray) -> IntArray:
    total: IntArray = one[:, None] + other
    return total


def _numbers(values: Sequence[Any]) -> IntArray:
    """Return a number for each face of a block, equal for equal values."""
    known: dict[Any, int] = {}
    return _per_face([known.setdefault(value, len(known)) for value in values])


def _per_face(values: Sequence[int]) -> IntArray:
    return np.repeat(np.array(values, dtype=np.int64), 4)


def _spaces(technology: Technology) -> Mapping[str, int]:
    spaces: dict[str, int] = {}
    for role in ("active", "tap"):
        spaces[technology.resolve(role)] = technology.dim("active_space")
    spaces[technology.resolve("poly")] = technology.dim("gate_space")
    for device in technology.devices.values():
        for layer in (device.implant, device.bulk_implant):
            if layer is not None:
                spaces[layer] = technology.dim("implant_space", device)
        if device.well:
            spaces[device.well] = max(spaces.get(device.well, 0), technology.dim("well_space", device))
        for layer in device.markers:
            spaces[layer] = technology.dim("marker_space", device)
        for layer in device.covers:
            spaces[layer] = technology.dim("cover_space", device)
    for conductor in technology.conductors:
        spaces[conductor.layer] = conductor.spacing()
    for passive in technology.passives.values():
        for layer in passive.markers:
            spaces[layer] = max(spaces.get(layer, 0), passive.dimensions.get(f"{layer}_space", 0))
    return {**spaces, **_by_rules(technology, spaces)}


def _by_rules(technology: Technology, known: Mapping[str, int]) -> Mapping[str, int]:
    """Return the spacing rules of layers that passive devices draw and no generator asks the spacing of. [dbu]"""
    drawn = {
        technology.resolve(layer)
        for passive in technology.passives.values()
        for layer in (*passive.markers, *passive.core_markers, *passive.parts.values())
    }
    spaces: dict[str, int] = {}
    for rule in technology.rules:
        if rule.kind == "space" and rule.severity == "error" and rule.value:
            for layer in drawn.intersection(rule.options.get("layers", [rule.options.get("layer")])):
                if not known.get(layer):
                    spaces[layer] = max(spaces.get(layer, 0), rule.value)
    return spaces
