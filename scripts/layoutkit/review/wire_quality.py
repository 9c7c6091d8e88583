"""Findings on the length of wires."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import klayout.db as kdb
import numpy as np

from layoutkit.review.subject import HEADS_UM, box_around, gap_between, longer_side, region_of, wire_length

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from layoutkit.review.finding import Remark
    from layoutkit.review.subject import PlacedDevice, Subject

_LEAST_TREE_UM = 1.0
"""Nets whose terminals are nearer to each other than this have no length to judge. [um]"""

_BESIDE_UM = 1.0
"""The mesh that joins the rows of a device reaches so far beyond their diffusion. [um]"""


def wires(subject: Subject) -> Iterator[Remark]:
    """Yield all findings."""
    for net in subject.nets:
        if net not in subject.supplies:
            points = _points(subject, net)
            yield from far_port(subject, net, points)
            yield from length(subject, net, points)


def poly_wires(subject: Subject) -> Iterator[Remark]:
    """Yield the nets whose poly leads far from a gate to the nearest contact."""
    active = subject.role("active")
    for net in subject.nets:
        worst, where, contacts = 0.0, kdb.Box(), subject.shapes(net, "contact")
        for piece in (subject.shapes(net, "poly") - active).each():
            alone = kdb.Region(piece)
            ends = [contact.bbox() for contact in contacts.inside(alone).each()]
            for island in active.interacting(alone).each() if ends else ():
                gap = min(gap_between(island.bbox(), end) for end in ends)
                worst, where = max((worst, where), (gap, piece.bbox()), key=lambda each: each[0])
        why = f"{net} leads {subject.um(worst):.3g} um through poly to a gate"
        yield from subject.finding(
            "wire-length.poly", subject.um(worst), why, where=where, nets=[net], cause="poly as a wire"
        )


def _points(subject: Subject, net: str) -> dict[PlacedDevice, list[tuple[int, int]]]:
    """Return where each device meets a net: the centres of its contacts. [dbu]"""
    found: dict[PlacedDevice, list[tuple[int, int]]] = defaultdict(list)
    far = subject.technology.to_dbu(HEADS_UM)
    for (placed, _), feed in subject.feeds(net).items():
        points, near = [(place.x, place.y) for place in feed.points], placed.box.enlarged(far)
        if placed.device.type in {"npn", "pnp"} and not all(near.contains(kdb.Point(*point)) for point in points):
            points = [(box.center().x, box.center().y) for box in placed.boxes]  # no contact of its own
        found[placed] += points
        if feed.channels:
            found[placed] += _gate_contacts(subject, net, placed)
    return {placed: points for placed, points in found.items() if points}


def _gate_contacts(subject: Subject, net: str, placed: PlacedDevice) -> list[tuple[int, int]]:
    """Return the contacts on the poly of a device's gates. [dbu]"""
    poly = subject.shapes(net, "poly").interacting(region_of(placed.boxes))
    contacts = subject.shapes(net, "contact") & poly
    return [(point.x, point.y) for point in (each.bbox().center() for each in contacts.each())]


def far_port(subject: Subject, net: str, points: Mapping[PlacedDevice, list[tuple[int, int]]]) -> list[Remark]:
    """Return whether a port is far from its net's pins although one of them is near an edge.

    A port whose side was requested is left out.
    """
    ports, box = [point for _, point, _ in subject.labels.get(net, ())], subject.box
    pins = [place for own in points.values() for place in own]
    if not ports or not pins or (subject.asked is not None and net in subject.asked.sides):
        return []
    way = min(abs(port.x - x) + abs(port.y - y) for port in ports for x, y in pins)
    edge = min(min(x - box.left, box.right - x, y - box.bottom, box.top - y) for x, y in pins)
    return subject.finding(
        "wire-length.port",
        (way - edge) / longer_side(box),
        f"port {net} lies {subject.um(way):.3g} um from any device, one of which is {subject.um(edge):.3g} um "
        "from an edge",
        where=kdb.Box(ports[0], ports[0]).enlarged(100, 100),
        devices=list(points),
        nets=[net],
        cause="far ports",
    )


def length(subject: Subject, net: str, points: Mapping[PlacedDevice, list[tuple[int, int]]]) -> list[Remark]:
    """Return whether the wires of a net are much longer than they have to be."""
    if len(points) < 2:
        return []
    ends = [(end.center().x, end.center().y) for _, end in subject.ends_of_crossings(net)]
    places = [*ends, *(point for own in points.values() for point in own)]
    whole = _spanning_tree(places)
    inner = sum(_spanning_tree(own) for own in points.values())
    own_area, beside, heads = kdb.Region(), *map(subject.technology.to_dbu, (_BESIDE_UM, HEADS_UM))
    for placed in points:
        boxes = [placed.box, *(kdb.Box(x, y, x, y) for x, y in points[placed])]
        if len(placed.islands) > 1:
            boxes.append(subject.role("active").interacting(region_of(placed.boxes)).bbox().enlarged(beside))
        elif not placed.device.is_mos and len(placed.boxes) > 1:
            boxes.append(placed.box.enlarged(heads))
        own_area.insert(box_around(boxes))
    for layer in ("n_tap", "p_tap"):  # the metal on a ring is no way
        own_area += subject.shapes(net, layer).sized(subject.technology.contact.size)
    own_area.merge()
    metal = kdb.Region()
    for region in subject.metal(net).values():
        metal += region
    metal.merge()
    ports = [point for _, point, _ in subject.labels.get(net, ())]
    if ports:  # the way to the port counts as needed
        whole += min(abs(p.x - x) + abs(p.y - y) for p in ports for x, y in places)
    outside = sum(wire_length(polygon) for polygon in (metal - own_area).each())
    inside = min(sum(wire_length(polygon) for polygon in (metal & own_area).each()), inner)
    needed = max(whole, inner)
    if subject.um(needed) < _LEAST_TREE_UM:
        return []
    drawn = outside + inside
    why = f"{net} has {subject.um(drawn):.3g} um of wire and needs {subject.um(needed):.3g} um"
    beyond, share = subject.um(drawn - needed), (drawn - needed) / longer_side(subject.box)
    least = subject.limits["wire-length.detour"].must or 0.0
    figures = {"wire-length": drawn / needed, "wire-length.round": share if beyond > least else 0.0}
    where, own = metal.bbox(), list(points)
    found = (
        subject.finding(name, each, why, where=where, devices=own, nets=[net], cause="long wires", difference=beyond)
        for name, each in figures.items()
    )
    return next(filter(None, found), [])


def _spanning_tree(points: Sequence[tuple[int, int]]) -> float:
    """Return the length of the rectilinear minimum spanning tree of points (Prim, 1957). [dbu]"""
    places = np.array(sorted(set(points)), dtype=np.int64).reshape(-1, 2)
    x, y = places.T.copy()
    nearest, last, total = np.full(len(places), np.iinfo(np.int64).max), 0, 0
    for left in range(len(places) - 1, 0, -1):  # the last one joined makes room for the one at the end
        at, on = x[last], y[last]
        for each in (x, y, nearest):
            each[last] = each[left]
        np.minimum(nearest[:left], np.abs(x[:left] - at) + np.abs(y[:left] - on), out=nearest[:left])
        last = int(np.argmin(nearest[:left]))
        total += int(nearest[last])
    return float(total)
