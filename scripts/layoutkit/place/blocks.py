"""What placement works on: blocks with pins, and where each block ends up. All lengths in database units."""

from __future__ import annotations

from dataclasses import dataclass
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
    """

    placed: Mapping[str, Placed]
    rows: tuple[tuple[str, ...], ...]
    axis_x: int
    box: Rectangle
    wire_length: int
