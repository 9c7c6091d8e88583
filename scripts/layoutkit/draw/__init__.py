"""Drawing MOS structures: fingers in rows, rows in tap rings, and the single, paired and mirrored transistors on them."""

from layoutkit.draw.module import Gate, Instance, Module, Pin
from layoutkit.draw.mos import MosSize, MosSpec, Transistor, draw_mos, transistor
from layoutkit.draw.row import Finger, Row
from layoutkit.draw.stack import RowStack, draw_row_module

__all__ = [
    "Finger",
    "Gate",
    "Instance",
    "Module",
    "MosSize",
    "MosSpec",
    "Pin",
    "Row",
    "RowStack",
    "Transistor",
    "draw_mos",
    "draw_row_module",
    "transistor",
]
