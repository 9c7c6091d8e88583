"""Placement: blocks side by side and one above the other, symmetric ones about an axis."""

from layoutkit.place.blocks import Block, Island, Placed, Placement, PlacementOptions, RingRoom
from layoutkit.place.engine import place_blocks
from layoutkit.rectangle import Rectangle

__all__ = [
    "Block",
    "Island",
    "Placed",
    "Placement",
    "PlacementOptions",
    "Rectangle",
    "RingRoom",
    "place_blocks",
]
