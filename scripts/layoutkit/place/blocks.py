"""What placement works on: blocks with pins, and where each block ends up. All lengths in database units."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Rectangle(NamedTuple):
    """An axis-parallel rectangle. [dbu]."""

    left: int
    bottom: int
    right: int
    top: int


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
        merged: Layers that are merged inside a ring, so that their shapes may face each other at any distance, each
            with its minimum width. Only layers that are one rectangle in the block. [dbu]
    """

    key: str
    inner: Rectangle
    outside: Block
    reach: int
    spaces: Mapping[tuple[str, str], int]
    merged: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Block:
    """One drawn module as placement sees it.

    Attributes:
        name: Unique name.
        kind: ``nmos`` or ``pmos``; blocks of one row share it.
        box: Bounding box in the block's own coordinates.
        pins: ``(net, x, y)`` of each pin's centre in the block's own coordinates.
        layer_boxes: Bounding box of each drawn layer, for the clearance to neighbours.
        level: Distance from the supply the block hangs on: 1 next to the rail, growing towards the output.
        symmetric: Whether the block is centred on the axis.
        partner: Name of the block that is this one's mirror image across the axis. Of two partners the one that is
            listed first lies on the left.
        bulk_net: Net of the body; neighbours of one kind and bulk share their well.
        ring: Set where the block has no taps of its own.
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

    @property
    def width(self) -> int:
        """Width of the bounding box."""
        return self.box.right - self.box.left

    @property
    def height(self) -> int:
        """Height of the bounding box."""
        return self.box.top - self.box.bottom


@dataclass(frozen=True)
class Placed:
    """Where a block lies: mirrored about its own y axis first where so, then moved by (x, y)."""

    name: str
    x: int
    y: int
    mirrored: bool

    def box(self, block: Block) -> Rectangle:
        """Return the bounding box of ``block`` as placed."""
        return self.rectangle(block.box)

    def rectangle(self, own: Rectangle) -> Rectangle:
        """Return a rectangle of the block's own coordinates as placed."""
        left, right = (-own.right, -own.left) if self.mirrored else (own.left, own.right)
        return Rectangle(left + self.x, own.bottom + self.y, right + self.x, own.top + self.y)


@dataclass(frozen=True)
class Placement:
    """A legal placement.

    Attributes:
        placed: Block name to its place, in row order from below, left to right.
        rows: Names of each row's blocks, from below, left to right.
        axis_x: The one vertical axis: symmetric blocks are centred on it, partners mirror each other across it.
        box: Bounding box of all blocks.
        wire_length: Half-perimeter wire length over all nets.
        rings: Names of the blocks inside each ring to be drawn; there is room for it around them.
    """

    placed: Mapping[str, Placed]
    rows: tuple[tuple[str, ...], ...]
    axis_x: int
    box: Rectangle
    wire_length: int
    rings: tuple[tuple[str, ...], ...] = ()
