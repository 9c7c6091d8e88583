"""Route several nets at once around what is already drawn.

Draw routed nets into a cell: wires and pads as boxes, cuts as boxes, in a fixed order.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from layoutkit.errors import GeometryError, sentences
from layoutkit.rectangle import Occupancy, Shape
from layoutkit.route.board import Board, Hugging
from layoutkit.route.metal import cut_index
from layoutkit.route.mirroring import misfits
from layoutkit.route.negotiation import NOT_TRIED, Negotiation
from layoutkit.route.routes import Mirrored, NetRequest, RouteOptions, RoutingResult
from layoutkit.route.routing_stack import fixed_metal, make_stack

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.rectangle import FixedMetal, Rect
    from layoutkit.route.routes import RoutedNet
    from layoutkit.route.routing_stack import Obstacle, Stack
    from layoutkit.technology import Technology


LARGEST_SECOND_TRY = 100_000
"""Nodes up to which failed nets are tried once more with tracks that hug the fixed metal."""
SECOND_TRY_ITERATIONS = 12


def route(
    technology: Technology,
    nets: Sequence[NetRequest],
    obstacles: Mapping[str, Iterable[Obstacle]],
    area: kdb.Box,
    layers: Sequence[str],
    options: RouteOptions | None = None,
) -> RoutingResult:
    """Return wires and vias that join the terminals of every net, and why a net has none.

    Args:
        technology: The rules.
        nets: What to route.
        obstacles: Per conductor or cut of the stack (its name or an alias): metal that is already there and the net
            it belongs to (None: nobody's). A net may touch its own; others keep the rules' distance to it. Terminals
            count as metal of their net and need not be repeated.
        area: Nothing is drawn outside it. [dbu]
        layers: Conductors that may carry wires; vias pass through those in between.
        options: How to search.

    When a net fails, all are routed once more with further tracks that pass as near to fixed metal as the rules allow,
    so that a gap which just admits a wire is found; the better of the two outcomes counts. Where that is too many
    tracks, only metal near the terminals of the nets that failed gets them.

    Raises:
        GeometryError: If the area is empty or too large, a name appears twice or a net has no terminal.
        TechnologyError: If a layer is none of the technology's stack.
    """
    options = options or RouteOptions()
    _check_request(nets, area, options)
    unfit = misfits(nets)
    pairs = [
        Mirrored((str(net.mirror_of), net.name), exact=False, reason=unfit[net.name])
        for net in nets
        if net.name in unfit
    ]
    nets = [replace(net, mirror_of=None) if net.name in unfit else net for net in nets]
    result = _best_of_two(technology, nets, obstacles, (area, layers), options)
    return replace(result, mirrored=(*pairs, *result.mirrored))


def _best_of_two(
    technology: Technology,
    nets: Sequence[NetRequest],
    obstacles: Mapping[str, Iterable[Obstacle]],
    room: tuple[kdb.Box, Sequence[str]],
    options: RouteOptions,
) -> RoutingResult:
    """Return the routes within an area on some layers, after a second try where a net failed."""
    area, layers = room
    stack = make_stack(technology, layers, [terminal.layer for net in nets for terminal in net.terminals])
    fixed = fixed_metal(stack, nets, obstacles, options.keepouts)
    limits = (area.left, area.bottom, area.right, area.top)
    negotiation = Negotiation(Board(stack, nets, fixed, limits, options), nets)
    first = negotiation.run()
    if not first.failed or negotiation.given_up:
        return first
    shorter = replace(options, max_iterations=min(options.max_iterations, SECOND_TRY_ITERATIONS))
    names = {net.name for net in first.failed if net.reason != NOT_TRIED}
    failed = [net for net in nets if net.name in names]
    for metal, huggers in ((fixed, nets), (_near_terminals(stack, failed, fixed), failed)):
        try:
            hugging = Hugging(metal, huggers, LARGEST_SECOND_TRY)
            board = Board(stack, nets, fixed, limits, shorter, hugging=hugging)
        except GeometryError:  # too many tracks
            continue
        second = Negotiation(board, nets).run()
        enough = len(first.failed) if first.iterations else 1
        return second if len(second.failed) < enough else first
    return first


def _near_terminals(stack: Stack, nets: Sequence[NetRequest], fixed: Sequence[FixedMetal]) -> list[FixedMetal]:
    """Return the fixed metal that a wire or via on a terminal of ``nets`` may have to pass closely."""
    rooms = Occupancy()
    for net in nets:
        reach = stack.pitch() + (net.width or 0) // 2
        for terminal in net.terminals:
            box = terminal.box.enlarged(reach, reach)
            rooms.add("", Shape((box.left, box.bottom, box.right, box.top), net.name, wide=False))
    return [piece for piece in fixed if next(rooms.near("", piece.rect, 1), None) is not None]  # touching counts


def _check_request(nets: Sequence[NetRequest], area: kdb.Box, options: RouteOptions) -> None:
    names = [net.name for net in nets]
    twice = sorted({name for name in names if names.count(name) > 1})
    faults = [f"net '{name}' is listed more than once" for name in twice]
    faults += [f"net '{net.name}' has no terminal" for net in nets if not net.terminals]
    mirrors = [(net.name, net.mirror_of) for net in nets if net.mirror_of is not None]
    faults += [
        f"net '{name}' is to mirror '{of}', which is not in this request or is in another mirrored pair"
        for name, of in mirrors
        if of not in names or of in [mirror for mirror, _ in mirrors] or [o for _, o in mirrors].count(of) > 1
    ]
    if (mirrors or any(net.symmetric for net in nets)) and options.axis_x is None:
        faults.append("nets are to be mirrored, but RouteOptions.axis_x is not given")
    if area.empty() or not area.width() or not area.height():
        faults.append("the routing area is empty")
    if faults:
        raise GeometryError(sentences(faults))


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
