"""What placement works on: blocks with pins, and where each block ends up. All lengths in database units."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Rectangle(NamedTuple):
    """An axis-parallel rectangle. [dbu]."""

    left: int
    bottom: int
    right: int
    top: int

    @classmethod
    def around(cls, boxes: Sequence[Rectangle]) -> Rectangle:
        """Return the bounding box of at least one rectangle."""
        return cls(
            min(box.left for box in boxes),
            min(box.bottom for box in boxes),
            max(box.right for box in boxes),
            max(box.top for box in boxes),
        )

    def steps(self, grid: int) -> Rectangle:
        """Return it in steps of the grid, rounded outwards."""
        return Rectangle(self.left // grid, self.bottom // grid, -(-self.right // grid), -(-self.top // grid))


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
