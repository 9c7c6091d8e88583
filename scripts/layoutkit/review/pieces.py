"""The metal of a net as a graph: pieces of one conductor each, and where they touch or cuts join them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import klayout.db as kdb

from layoutkit.review.subject import kept

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from layoutkit.review.subject import Subject

MESH_CONTACTS = 3000
"""Supplies of more contacts are meshes over power devices, in which no wire is the only way."""


class Link(NamedTuple):
    """Where a piece meets another one: its number, the conductor or cut that joins them, and the place. [dbu]"""

    other: int
    layer: str
    where: kdb.Box


class Pieces:
    """The metal of a net in pieces, and where they meet.

    Args:
        subject: The layout.
        net: The net.
        whole: Whether a piece is all metal of one conductor that touches; else each is a rectangle as wide as the wire.

    Attributes:
        pieces: The conductor and the outline of each piece. [dbu]
        links: Where each meets others.
    """

    def __init__(self, subject: Subject, net: str, *, whole: bool) -> None:
        self.whole = whole
        self.pieces: list[tuple[str, kdb.Polygon]] = []
        self.links: dict[int, list[Link]] = defaultdict(list)
        self.shapes: dict[str, kdb.Shapes] = {}
        self._last: dict[str, int] = {}
        for name, region in subject.metal(net).items():
            self.shapes[name] = kdb.Shapes()
            for piece in (region if whole else region.decompose_trapezoids_to_region()).each():
                self.shapes[name].insert(kdb.BoxWithProperties(piece.bbox(), len(self.pieces)))
                self.pieces.append((name, piece))
        for number, (name, outline) in enumerate(() if whole else self.pieces):
            for other in self.at(name, outline.bbox()):
                if other > number:
                    self._link(number, other, name, outline.bbox() & self.pieces[other][1].bbox())
        for cut in subject.technology.cuts:
            levels = [subject.technology.resolve(level) for level in (cut.below, cut.above)]
            joints = _joints(subject, net, cut.name, levels)
            for boxes in joints if whole else ([via.bbox()] for via in subject.shapes(net, cut.name).each()):
                above = self.at(levels[1], boxes[0])
                for one in self.at(levels[0], boxes[0]):
                    for box in boxes:
                        for other in above:
                            self._link(one, other, cut.name, box)

    def at(self, conductor: str, place: kdb.Box) -> list[int]:
        """Return the pieces of a conductor at a place; of whole ones that at its middle."""
        shapes, point = self.shapes.get(conductor), place.center()
        last = self._last.get(conductor)  # of whole pieces mostly the same one again
        if last is not None and self.pieces[last][1].inside(point):
            return [last]
        found = [] if shapes is None else [shape.prop_id for shape in shapes.each_touching(place)]
        if not self.whole:
            return found
        found = [number for number in found if self.pieces[number][1].inside(point)][:1]
        if found:
            self._last[conductor] = found[0]
        return found

    def at_point(self, conductor: str, point: kdb.Point) -> int | None:
        """Return the first piece of a conductor at a point."""
        return next(iter(self.at(conductor, kdb.Box(point, point))), None)

    def reached(self, start: int, among: Collection[int]) -> set[int]:
        """Return the pieces that a piece is joined with by some pieces."""
        found, front = {start}, [start]
        while front:
            new = {link.other for link in self.links[front.pop()] if link.other in among} - found
            found |= new
            front += new
        return found

    def _link(self, one: int, other: int, layer: str, where: kdb.Box) -> None:
        self.links[one].append(Link(other, layer, where))
        self.links[other].append(Link(one, layer, where))


def _joints(subject: Subject, net: str, cut: str, levels: Sequence[str]) -> Iterator[list[kdb.Box]]:
    """Yield the cuts of each place where the metal of two conductors overlaps, which join the same two pieces. [dbu]"""
    cuts, (below, above) = kdb.Shapes(), (subject.shapes(net, level) for level in levels)
    cuts.insert(subject.shapes(net, cut))
    for joint in (below & above).each():
        near = (via.bbox() for via in cuts.each_touching(joint.bbox()))
        if boxes := [box for box in near if joint.inside(box.center())]:
            yield boxes


@kept
def rectangles(subject: Subject, net: str) -> Pieces:
    """Return the metal of a net in rectangles, each as wide as the wire."""
    return Pieces(subject, net, whole=False)
