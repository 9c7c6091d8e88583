"""Draw routed nets into a cell: wires and pads as boxes, cuts as boxes, in a fixed order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutkit.route.metal import cut_index
from layoutkit.route.routing_stack import make_stack

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import klayout.db as kdb

    from layoutkit.route.routes import Rect, RoutedNet, RoutingResult
    from layoutkit.technology import Technology


def draw_routes(layout: kdb.Layout, cell: kdb.Cell, technology: Technology, result: RoutingResult) -> None:
    """Draw the successful nets of ``result`` into ``cell``: merged metal of each net per layer, and its cuts.

    A failed net draws nothing.
    """
    import klayout.db as kdb

    names = [conductor.name for conductor in technology.conductors]
    for net in result.nets:
        by_layer: dict[str, kdb.Region] = {}
        for layer, rect in net.metal:
            by_layer.setdefault(layer, kdb.Region()).insert(kdb.Box(*rect))
        for layer in sorted(by_layer, key=names.index):
            shapes = cell.shapes(technology.layer(layout, technology.conductor(layer).layer))
            for polygon in sorted(by_layer[layer].merged().each(), key=str):
                shapes.insert(polygon.bbox() if polygon.is_box() else polygon)  # what a reader of the file gets
        for name, rect in cuts_of(technology, net):
            layer = next(cut.layer for cut in technology.cuts if cut.name == name)
            cell.shapes(technology.layer(layout, layer)).insert(kdb.Box(*rect))


def cuts_of(technology: Technology, net: RoutedNet) -> Iterator[tuple[str, Rect]]:
    """Yield the name and rectangle of each cut of a net's vias, in the order of the vias. [dbu]"""
    stack = make_stack(technology, [conductor.name for conductor in technology.conductors], [])
    for via in net.vias:
        for rect in stack.cut_rects(cut_index(stack, via.cut), via.x, via.y, via.columns, via.rows):
            yield via.cut, rect


def draw_labels(
    layout: kdb.Layout, cell: kdb.Cell, technology: Technology, labels: Iterable[tuple[str, str, tuple[int, int]]]
) -> None:
    """Write labels into ``cell``; a label that is already there is not written again.

    Args:
        layout: The layout of ``cell``.
        cell: Receives the labels.
        technology: States the label layer of each conductor.
        labels: Name, conductor and point (x, y) of each. [dbu]
    """
    import klayout.db as kdb

    for name, conductor, point in labels:
        shapes = cell.shapes(technology.layer(layout, technology.conductor(conductor).label_layer))
        text = kdb.Text(name, kdb.Trans(*point))
        if not any(shape.text == text for shape in shapes.each(kdb.Shapes.STexts)):
            shapes.insert(text)
