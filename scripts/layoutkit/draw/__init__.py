"""Drawing MOS structures: fingers in rows, rows in tap rings; single, paired and mirrored transistors on them."""

from layoutkit.draw.group import GroupSpec, draw_group
from layoutkit.draw.mirror import MirrorSpec, draw_mirror
from layoutkit.draw.module import Gate, Instance, Module, Pin
from layoutkit.draw.mos import MosSize, MosSpec, Transistor, draw_mos, transistor
from layoutkit.draw.pair import PairSpec, draw_pair
from layoutkit.draw.row import Finger, Row
from layoutkit.draw.stack import RowStack, draw_row_module

__all__ = [
    "Finger",
    "Gate",
    "GroupSpec",
    "Instance",
    "MirrorSpec",
    "Module",
    "MosSize",
    "MosSpec",
    "PairSpec",
    "Pin",
    "Row",
    "RowStack",
    "Transistor",
    "draw_group",
    "draw_mirror",
    "draw_mos",
    "draw_pair",
    "draw_row_module",
    "transistor",
]
