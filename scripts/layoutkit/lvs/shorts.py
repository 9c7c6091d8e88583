"""Find the shape that shorts two nets: the layout without it is compared again, and shows what else is wrong.

label a   a's wire     shape     b's wire  label b      Every way from the labels of one net to those of the other
========='========== . ##### . =========='=========     leads over the shape. So it may over others, which are the
                                                        net's own: without these, more differs from the netlist.

A net without a label is held where the contacts of its transistors are.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, NamedTuple

import klayout.db as kdb

from layoutkit.errors import listed
from layoutkit.extract.extracted import DrawnFinger, Extraction, Label, Point
from layoutkit.lvs.lvs_result import LvsMismatch, LvsResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import networkx as nx

    Compared = Callable[[kdb.Layout], LvsResult]

MOST_SHAPES = 20_000  # of the shorted net
MOST_TRIED = 12  # layouts that are compared again for one short
MOST_SHORTS = 5
MOST_PIECES = 40  # of a way, that may make one of two parallel shorts
MOST_PARALLEL = 8  # shapes that each short the same two nets


class _Piece(NamedTuple):
    """A shape of a shorted net: its layer, its outline [dbu], and the places of its equals in that layer."""

    layer: str
    shape: kdb.Polygon
    numbers: tuple[int, ...]


class _Suspect(NamedTuple):
    """What may short two nets: one shape, the overlap of two shapes of a layer, or shapes that each short them."""

    pieces: tuple[_Piece, ...]
    overlap: kdb.Region | None = None
    parallel: bool = False


def with_shorts_located(layout: kdb.Layout, result: LvsResult, compared: Compared) -> LvsResult:
    """Return the result with each short at the shape that makes it, and beside it what differs without that shape.

    A short whose shape is not found stays as it is, with all that follows from it.

    Args:
        layout: The layout that was compared.
        result: Its comparison.
        compared: Returns the comparison of a changed copy of the layout.
    """
    located: list[LvsMismatch] = []
    last = result
    while len(located) < MOST_SHORTS and (found := _first_located(layout, last, compared)) is not None:
        mismatch, layout, last = found
        located.append(mismatch)
    if not located:
        return result
    count = len(located) + last.mismatch_count
    return replace(result, mismatches=(*located, *last.mismatches), mismatch_count=count)


def _first_located(
    layout: kdb.Layout, result: LvsResult, compared: Compared
) -> tuple[LvsMismatch, kdb.Layout, LvsResult] | None:
    """Return a short with its shape, the layout without the shape, and that layout's comparison."""
    for short in result.mismatches:
        best: tuple[tuple[int, bool, bool, int], _Suspect, kdb.Layout, LvsResult] | None = None
        cuts = {cut.name for cut in result.extraction.technology.cuts}
        for suspect in _suspects(layout, result.extraction, short):
            if suspect.parallel and best is not None and not best[0][0]:
                break  # without one shape nothing is wrong
            changed = _without(layout, result.extraction, suspect)
            again = compared(changed)
            apart = not any(
                each.kind == "short" and set(each.reference) == set(short.reference) for each in again.mismatches
            )
            piece = suspect.pieces[0]  # of shapes without which nothing is wrong, a cut or the smallest one joins nets
            rank = again.mismatch_count, suspect.parallel, piece.layer not in cuts, piece.shape.area()
            if apart and (best is None or rank < best[0]):
                best = rank, suspect, changed, again
        if best is not None and best[0][0] < result.mismatch_count:
            _, suspect, changed, again = best
            return _as_mismatch(_whole(short, result, again), suspect, layout.dbu), changed, again
    return None


def _whole(short: LvsMismatch, result: LvsResult, again: LvsResult) -> LvsMismatch:
    """Return the short with the labels of all nets that are one with it, and apart without its shape."""
    shorted = {net for net, label in _labels(result.extraction, short.reference[0])}
    texts = sorted({text for net in shorted for text in result.extraction.nets[net].texts})
    nets = {frozenset(net for net, _ in _labels(again.extraction, text)): text for text in reversed(texts)}
    names = sorted(text for net, text in nets.items() if net)
    return replace(short, reference=tuple(names)) if set(short.reference) <= set(names) else short


def _suspects(layout: kdb.Layout, extraction: Extraction, short: LvsMismatch) -> Iterator[_Suspect]:
    """Yield the shapes on every way between the labels of a short, at most ``MOST_TRIED``, then as many pairs."""
    import networkx as nx

    if short.kind != "short" or len(short.reference) != 2:
        return
    places = [_places(extraction, name, terminals) for name, terminals in zip_longest(short.reference, short.terminals)]
    nets = {place.net for each in places for place in each}
    if not all(places) or len(nets) != 1:
        return
    graph = _graph(layout, extraction, *nets)
    ends = [{piece for place in each for piece in graph if _holds(piece, place)} for each in places]
    if not all(ends):
        return
    if both := ends[0] & ends[1]:  # shapes from one label to the other, of one layer as the labels
        first = min(both, key=lambda piece: (piece.layer, piece.numbers))
        yield _Suspect((first, *(piece for piece in both if piece.layer == first.layer and piece != first)))
        return
    graph.add_edges_from((name, piece) for name, pieces in zip("ab", ends, strict=True) for piece in pieces)
    if not nx.has_path(graph, "a", "b"):
        return
    way = nx.shortest_path(graph, "a", "b")[1:-1]
    needed = {piece for piece in way if not nx.has_path(nx.restricted_view(graph, [piece], []), "a", "b")}
    own = ends[0] | ends[1]
    shapes = [_Suspect((piece,)) for piece in way if piece in needed and piece not in own]
    joints = [
        _Suspect((one, other), overlap)
        for one, other in pairwise(way)
        if one.layer == other.layer
        and not nx.has_path(nx.restricted_view(graph, [], [(one, other)]), "a", "b")
        and not (overlap := kdb.Region(one.shape) & kdb.Region(other.shape)).is_empty()
    ]
    yield from _spread(shapes, MOST_TRIED - 4)
    yield from _spread(joints, 4)
    cuts = {cut.name for cut in extraction.technology.cuts}
    pairs = [*_parallel(graph, [piece for piece in way if piece not in needed | own], needed | own)]
    size = {
        pair: (sum(each.layer not in cuts for each in pair), sum(each.shape.area() for each in pair)) for pair in pairs
    }
    yield from (_Suspect(pair, parallel=True) for pair in sorted(size, key=size.__getitem__)[:MOST_TRIED])
    if not pairs:
        pieces = graph.subgraph([piece for piece in graph if isinstance(piece, _Piece)])
        fixed = needed | own
        for name, terminals in zip_longest(short.reference, short.terminals):
            held = _places(extraction, name, terminals, every=True)
            fixed |= _own(pieces, [piece for piece in pieces if any(_holds(piece, place) for place in held)])
        for never in (fixed, fixed | {piece for piece in pieces if piece.layer in cuts}):
            if many := _fewest(graph, never, cuts):
                yield _Suspect(many, parallel=True)


def _own(graph: nx.Graph[_Piece | str], held: list[_Piece]) -> set[_Piece]:
    """Return the shapes that hold the places of a net, and those that every way between two of these leads over."""
    import networkx as nx

    above = nx.immediate_dominators(graph.to_directed(), held[0]) if held else {}
    found = set(held)
    for piece in held:
        before = above.get(piece)
        while before is not None and before not in found:
            found.add(before)
            before = above.get(before)
    return found


def _fewest(graph: nx.Graph[_Piece | str], fixed: set[_Piece], cuts: set[str]) -> tuple[_Piece, ...]:
    """Return the fewest shapes outside of ``fixed`` without which no way is left, cuts and small shapes first.

    This is the smallest cut between the nodes of a network in which each shape is an edge. It is empty if it has more
    than ``MOST_PARALLEL`` shapes.
    """
    import networkx as nx
    from networkx.algorithms.flow import boykov_kolmogorov

    pieces = [piece for piece in graph if isinstance(piece, _Piece)]
    pieces.sort(key=lambda piece: (piece.layer not in cuts, piece.shape.area(), piece.layer, piece.numbers))
    network: nx.DiGraph[tuple[_Piece | str, bool]] = nx.DiGraph()
    for rank, piece in enumerate(pieces):
        limit = {} if piece in fixed else {"capacity": rank + MOST_PARALLEL * len(pieces)}
        network.add_edge((piece, False), (piece, True), **limit)
    for name in "ab":
        network.add_edge((name, False), (name, True))
    for one, other in graph.edges:
        network.add_edges_from((((one, True), (other, False)), ((other, True), (one, False))))
    try:  # unbounded: some way leads over fixed shapes alone
        _, (near, _) = nx.minimum_cut(network, ("a", False), ("b", True), flow_func=boykov_kolmogorov)
    except nx.NetworkXUnbounded:
        return ()
    found = tuple(piece for piece in pieces if (piece, False) in near and (piece, True) not in near)
    return found if len(found) <= MOST_PARALLEL else ()


def _parallel(graph: nx.Graph[_Piece | str], ones: list[_Piece], never: set[_Piece]) -> Iterator[tuple[_Piece, _Piece]]:
    """Yield pairs of shapes that every way leads over, one or the other, though neither is on all of them."""
    import networkx as nx

    for one in ones[:MOST_PIECES]:
        way = nx.shortest_path(nx.restricted_view(graph, [one], []), "a", "b")[1:-1]
        for other in way[:MOST_PIECES]:
            if other not in never and not nx.has_path(nx.restricted_view(graph, [one, other], []), "a", "b"):
                yield one, other


def _spread(suspects: list[_Suspect], most: int) -> list[_Suspect]:
    """Return at most so many, evenly over the way."""
    step = max(1.0, len(suspects) / most)
    return [suspects[int(number * step)] for number in range(min(most, len(suspects)))]


def _labels(extraction: Extraction, name: str) -> list[tuple[int, Label]]:
    return [
        (net.id, label)
        for net in extraction.nets.values()
        for label in net.labels
        if label.text.lower() == name.lower()
    ]


class _Place(NamedTuple):
    """Where a net of the netlist is in the layout: the layout's net, a conductor and a point on it. [dbu]"""

    net: int
    conductor: str
    point: kdb.Point


def _places(
    extraction: Extraction, name: str, terminals: Sequence[tuple[int, DrawnFinger, str]] | None, *, every: bool = False
) -> list[_Place]:
    """Return where the labels of a net are; where it has none, or for ``every`` place, its transistors' contacts."""
    dbu, first = extraction.layout.dbu, extraction.technology.conductors[0].name
    found = [
        _Place(net, label.conductor, kdb.Point(round(label.place.x / dbu), round(label.place.y / dbu)))
        for net, label in _labels(extraction, name)
    ]
    for net, finger, terminal in () if found and not every else terminals or ():
        if terminal == "g" or (terminal in _CARRIERS and finger.nets["s"] != finger.nets["d"]):
            half = round(finger.l_um / dbu / 2) + 1
            middle = kdb.Point(round(finger.place.x / dbu), round(finger.place.y / dbu))
            channel = kdb.Region(kdb.Box(middle, middle).enlarged(half, half))
            for layer in _CARRIERS[terminal]:
                on = extraction.shapes(net, layer).interacting(channel)
                found += [
                    _Place(net, first, contact.bbox().center())
                    for contact in (extraction.shapes(net, "contact") & on).each()
                ]
    return found


_CARRIERS = {"g": ("poly",), "s": ("n_sd", "p_sd"), "d": ("n_sd", "p_sd")}


def _holds(piece: _Piece, place: _Place) -> bool:
    point = place.point
    return piece.layer == place.conductor and (piece.shape.inside(point) or piece.shape.touches(kdb.Box(point, point)))


def _drawn(layout: kdb.Layout, extraction: Extraction, name: str) -> kdb.RecursiveShapeIterator:
    """Return the drawn shapes of a conductor or cut, in an order that copies of the layout keep."""
    technology = extraction.technology
    cuts = {cut.name: cut.layer for cut in technology.cuts}
    layer = cuts[name] if name in cuts else technology.conductor(name).layer
    return layout.cell(extraction.cell_name).begin_shapes_rec(technology.layer(layout, layer))


def _graph(layout: kdb.Layout, extraction: Extraction, net: int) -> nx.Graph[_Piece | str]:
    """Return the drawn metal and cuts of a net; pieces that touch and conduct into each other are joined.

    It is empty for a net of more than ``MOST_SHAPES`` shapes.
    """
    import networkx as nx

    technology = extraction.technology
    graph: nx.Graph[_Piece | str] = nx.Graph()
    equal: dict[tuple[str, kdb.Polygon], list[int]] = {}
    for name in (*(each.name for each in technology.conductors), *(each.name for each in technology.cuts)):
        own = extraction.shapes(net, name)
        shapes = _drawn(layout, extraction, name)
        index = 0
        while not shapes.at_end():
            polygon = shapes.shape().polygon
            if polygon is not None and not own.is_empty():
                polygon = polygon.transformed(shapes.trans())
                if (name, polygon) in equal or not (kdb.Region(polygon) & own).is_empty():
                    equal.setdefault((name, polygon), []).append(index)
            index += 1
            shapes.next()
    if len(equal) > MOST_SHAPES:
        return graph
    by_layer: dict[str, list[_Piece]] = {}
    for (name, polygon), numbers in equal.items():
        by_layer.setdefault(name, []).append(_Piece(name, polygon, tuple(numbers)))
    graph.add_nodes_from(piece for pieces in by_layer.values() for piece in pieces)
    joins = [(each.name, each.name) for each in technology.conductors]
    joins += [(cut.name, side) for cut in technology.cuts for side in (cut.below, cut.above)]
    for one, other in joins:
        graph.add_edges_from(_touching(by_layer.get(one, []), by_layer.get(other, [])))
    return graph


def _touching(ones: list[_Piece], others: list[_Piece]) -> Iterator[tuple[_Piece, _Piece]]:
    """Yield the pairs that touch; both lists are walked from left to right."""
    ones, others = (sorted(each, key=lambda piece: piece.shape.bbox().left) for each in (ones, others))
    active: list[_Piece] = []
    at = 0
    for one in ones:
        box = one.shape.bbox()
        while at < len(others) and others[at].shape.bbox().left <= box.right:
            active.append(others[at])
            at += 1
        active = [other for other in active if other.shape.bbox().right >= box.left]
        for other in active:
            if other is not one and box.touches(other.shape.bbox()) and one.shape.touches(other.shape):
                yield one, other


def _without(layout: kdb.Layout, extraction: Extraction, suspect: _Suspect) -> kdb.Layout:
    """Return a copy of the layout without a shape, or with two shapes kept apart where they overlap."""
    changed = layout.dup()
    rest = None if suspect.overlap is None else suspect.overlap.sized(1)
    erased = []
    for name in sorted({piece.layer for piece in suspect.pieces}):
        wanted = {number for piece in suspect.pieces if piece.layer == name for number in piece.numbers}
        shapes, index = _drawn(changed, extraction, name), 0
        while not shapes.at_end():
            if index in wanted:
                erased.append((shapes.shape().dup(), shapes.trans(), changed.cell(shapes.cell_index()), shapes.layer()))
            index += 1
            shapes.next()
    for shape, transformation, cell, layer in erased:
        polygon = shape.polygon.transformed(transformation)
        cell.shapes(layer).erase(shape)
        if rest is not None:
            cell.shapes(layer).insert((kdb.Region(polygon) - rest).transformed(transformation.inverted()))
    return changed


def _as_mismatch(short: LvsMismatch, suspect: _Suspect, dbu: float) -> LvsMismatch:
    pieces = suspect.pieces if suspect.parallel else suspect.pieces[:1]
    shapes = [piece.shape.bbox() if suspect.overlap is None else suspect.overlap.bbox() for piece in pieces]
    boxes = [shape.to_dtype(dbu) for shape in shapes]
    where = [
        f"{piece.layer} from ({box.left:g}, {box.bottom:g}) to ({box.right:g}, {box.top:g}) um"
        for piece, box in zip(pieces, boxes, strict=True)
    ]
    what = f"a shape on {where[0]}" if suspect.overlap is None else f"shapes that overlap on {where[0]}"
    cause = "that shape, or what it touches, is in the wrong place: delete, cut or move it"
    if suspect.overlap is not None:
        cause = "move one of the two wires, or cut it there"
    if suspect.parallel:
        count = "two" if len(where) == len("ab") else str(len(where))
        what = f"{count} shapes, one on {', one on '.join(where)}"
        cause = f"each of the {count} shapes joins them: delete, cut or move {'both' if count == 'two' else 'all'}"
    places = [Point(round(box.center().x, 6), round(box.center().y, 6)) for box in boxes]
    return LvsMismatch(
        "short",
        f"Nets {listed(short.reference)} are shorted by {what}",
        cause,
        short.reference,
        tuple((piece.layer, place) for piece, place in zip(pieces, places, strict=True)),
    )
