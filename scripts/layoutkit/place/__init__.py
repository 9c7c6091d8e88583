"""Placement: blocks in rows about one symmetry axis."""

from layoutkit.place.blocks import Block, Placed, Placement, Rectangle, RingRoom
from layoutkit.place.rows import PlacementOptions, place_rows

__all__ = ["Block", "Placed", "Placement", "PlacementOptions", "Rectangle", "RingRoom", "place_rows"]
