"""Findings on ways of a current: places that it must pass (ports, joints of wires on one cut), and long wires."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from functools import cache, partial
from itertools import combinations, pairwise, product
from math import inf
from typing import TYPE_CHECKING

import klayout.db as kdb
import numpy as np

from layoutkit.errors import listed
from layoutkit.extract.single_cuts import WholeLayout, single_places
from layoutkit.review.finding import Spot
from layoutkit.review.floorplan import off_height, rails_of
from layoutkit.review.subject import (
    HEADS_UM,
    box_around,
    gap_between,
    kept,
    longer_side,
    names_of,
    region_of,
    wire_length,
)
from layoutkit.review.ways import Extents, Pieces, detour, worst_first

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from layoutkit.extract.single_cuts import SinglePlace
    from layoutkit.parasitics.layout_circuit import Feeds
    from layoutkit.review.electrical import Electrical
    from layoutkit.review.finding import Remark
    from layoutkit.review.subject import PlacedDevice, Subject
    from layoutkit.review.ways import Link


_FEWEST_FINGERS = 8  # channels of a block whose way to the rail is judged; two cuts are enough for fewer
_FEWEST_OF_ALL, _ALL = 4, 3  # channels and transistors from which on it is judged if it is all that its supply has
_FEW = 4  # devices that a short inner net joins at most
_MANY = 20  # devices of a net from which on none of them makes it long
_FAR_SHARE = 0.2  # of a net's tree that is worth naming if one device makes it [1]
_NEIGHBOURS_UM = 10.0
"""Devices no farther apart are joined within a few levels of metal. [um]"""
_LEAST_TREE_UM = 1.0
"""Nets whose terminals are nearer to each other than this have no length to judge. [um]"""
_PLATE_UM = 1.5  # from the plate of a capacitor to the edge of its own metal [um]
_BESIDE_UM = 1.0
"""The mesh that joins the rows of a device reaches so far beyond their diffusion. [um]"""


class PortsAndCuts:
    """The findings on ports and single cuts of one layout.

    Args:
        electrical: The currents of its nets, and where their metal is weakest.
    """

    def __init__(self, electrical: Electrical) -> None:
        self.electrical = electrical
        self.subject = electrical.subject
        self.technology = electrical.technology
        self.cuts_ma = {cut.name: cut.current_ma or inf for cut in self.technology.cuts}
        self._pieces = cache(partial(Pieces, self.subject, whole=True))
        self._fed = cache(self._shares)

    def findings(self) -> Iterator[Remark]:
        """Yield all findings."""
        for net in self.subject.nets:
            straps = self._straps(net)
            yield from self.narrow_port(net, straps)
            yield from self.narrow_rail(net, straps)
            if net in self.subject.supplies:
                yield from self.thin_feed(net)
                yield from self.behind_one_cut(net)
        yield from self.single_cut()

    def thin_feed(self, net: str) -> list[Remark]:
        """Return the blocks that so few cuts join to the rail of a supply that one failing cut matters."""
        blocks = [(sum(len(placed.boxes) for placed in own), cuts, own) for cuts, own in self._blocks(net)]
        whole = len({placed for _, placed, _ in self._drawing(net)})
        least = [_FEWEST_OF_ALL if len(own) == whole >= _ALL else _FEWEST_FINGERS for *_, own in blocks]
        blocks = [each for each, fewest in zip(blocks, least, strict=True) if each[0] >= fewest]
        for name, by_cut in (("single-cut.share", True), ("single-cut.feed", False)):
            limit = self.subject.limits[name]
            weak = [each for each in blocks if limit.beyond(each[0] / each[1] if by_cut else each[1])]
            if weak:
                many, cuts, _ = max(weak, key=lambda each: each[0] / each[1])
                why = f"{many} channels are joined to the rail of {net} by {cuts} cut{'s' * (cuts > 1)}"
                why += f", the worst of {len(weak)} blocks" * (len(weak) > 1)
                devices = [placed for *_, own in weak for placed in own]
                return self.subject.finding(name, many / cuts if by_cut else cuts, why, devices=devices, nets=[net])
        return []

    def _blocks(self, net: str) -> Iterator[tuple[int, list[PlacedDevice]]]:
        """Yield the devices that stay joined without the rail of a supply, and the number of cuts to the rail."""
        first, pieces, drawing = self.technology.conductors[0].name, self._pieces(net), self._drawing(net)
        rail = {piece for piece in self._ports(net) if piece is not None}
        if not {pieces.pieces[piece][0] for piece in rail} - {first}:
            return  # no rail, or one of the straps' own metal
        left = set(range(len(pieces.pieces))) - rail
        while left:
            left -= (part := pieces.reached(min(left), left))
            devices = list(dict.fromkeys(placed for piece, placed, _ in drawing if piece in part))
            cuts = sum(link.other in rail for piece in part for link in pieces.links[piece])
            if devices and cuts:
                yield cuts, devices

    def behind_one_cut(self, net: str) -> list[Remark]:
        """Return the transistors that a supply reaches through one cut alone; of a stack of such cuts, through one."""
        subject, pieces, ports = self.subject, self._pieces(net), self._ports(net) - {None}
        drawing, channels = self._drawing(net), defaultdict[int | None, float](float)
        for piece, placed, part in drawing:
            channels[piece] += part * len(placed.boxes)
        found: dict[tuple[PlacedDevice, ...], tuple[float, Spot]] = {}
        for piece, link, count in _in_only_ways(pieces, channels, ports) if ports else ():
            if subject.limits["single-cut.alone"].beyond(round(count, 3)):
                side = pieces.reached(piece, {*pieces.links} - {link.other})
                behind = {placed for each, placed, _ in drawing if (each in side) != bool(side & ports)}
                own = tuple(sorted(behind, key=lambda each: each.index))
                why = f"{net} reaches {names_of(own)} ({round(count)} channels) only through one {link.layer}"
                found.setdefault(own, (count, Spot(link.where, why, f"{link.layer} to {names_of(own)}")))
        devices = dict.fromkeys(placed for own in found for placed in own)
        return worst_first(subject, "single-cut.alone", found.values(), devices=[*devices], nets=[net], cause="alone")

    def _drawing(self, net: str) -> list[tuple[int | None, PlacedDevice, float]]:
        """Return the pieces of a net that transistors draw from, each with what part of its current."""
        working = ((p, own) for (p, end), own in self._fed(net).items()
                   if p.device.is_mos and end in p.device.kind.ends and not self.subject.is_idle(p))  # fmt: skip
        return [(piece, placed, part) for placed, own in working for piece, part in own.items()]

    def _ports(self, net: str) -> set[int | None]:
        """Return the pieces of a net that its ports are on."""
        return {self._pieces(net).at_point(name, point) for name, point, _ in self.subject.labels.get(net, ())}

    def _shares(self, net: str) -> dict[tuple[PlacedDevice, str], dict[int | None, float]]:
        """Return what part of the current of each terminal enters which piece of a net."""
        pieces = self._pieces(net)
        found: dict[tuple[PlacedDevice, str], dict[int | None, float]] = defaultdict(dict)
        for terminal, feed in self.subject.feeds(net).items():
            parts = found[terminal]
            for place, part in feed.points.items():
                piece = pieces.at_point(place.conductor, kdb.Point(place.x, place.y))
                parts[piece] = parts.get(piece, 0.0) + part
        return found

    def narrow_port(self, net: str, straps: Sequence[tuple[float, PlacedDevice]]) -> list[Remark]:
        """Return whether ports are too narrow for the current of their net, or the straps of a device at full drive.

        The ports of a net count together, and so do the straps of one device, by the current that they may carry.
        """
        subject = self.subject
        ports: dict[tuple[str, str], tuple[float, kdb.Point]] = {}
        for conductor, point, _ in subject.labels.get(net, ()):
            shapes = subject.shapes(net, conductor)
            piece = next((str(each) for each in shapes.each() if each.inside(point)), str(point))
            width = subject.um(min(Extents(shapes).at(point)))
            if width > ports.get((conductor, piece), (-1.0, point))[0]:
                ports[conductor, piece] = width, point
        if not ports:
            return []
        widest = max(ports, key=lambda each: (ports[each][0], each))
        drawn, place = sum(width for width, _ in ports.values()), ports[widest][1]
        needs = [(1000 * self._through_port(net), "its current")]
        needs += [(ma, f"which the straps of {placed.id} may carry together") for ma, placed in straps]
        most, of_what = max(needs)
        needed = self.technology.conductor(widest[0]).width_um(most)
        if not needed:
            return []
        return subject.finding(
            "narrow-port",
            drawn / needed,
            f"port {net} is {drawn:.3g} um of {widest[0]} wide and needs {needed:.3g} um for {most:.3g} mA, {of_what}",
            where=kdb.Box(place, place).enlarged(100, 100),
            nets=[net],
            must=self.electrical.is_sure(net, needed / drawn),
        )

    def narrow_rail(self, net: str, straps: Sequence[tuple[float, PlacedDevice]]) -> list[Remark]:
        """Return whether the rails of a supply together are too narrow for the straps of a device at full drive."""
        subject = self.subject
        rails = rails_of(subject, net) if straps and net in subject.supplies else []
        if not rails:
            return []
        carried = [self.technology.conductor(name).current_ma(subject.um(box.height())) or inf for name, box in rails]
        most, placed = max(straps, key=lambda each: (each[0], each[1].index))
        return subject.finding(
            "narrow-port",
            sum(carried) / most if most else inf,
            f"the rails of {net} may carry {sum(carried):.3g} mA, the straps of {placed.id} together {most:.3g} mA",
            what_to_do="rails as strong as the straps that they feed",
            where=box_around(box for _, box in rails),
            devices=[placed],
            nets=[net],
        )

    def _straps(self, net: str) -> list[tuple[float, PlacedDevice]]:
        """Return what the straps of the devices at full drive on a net may carry. [mA]"""
        return [
            (self._straps_ma(net, feeds), placed)
            for (placed, terminal), feeds in self.subject.feeds(net).items()
            if self.subject.is_full(placed) and terminal in placed.device.kind.ends
        ]

    def _straps_ma(self, net: str, feeds: Feeds) -> float:
        """Return what the straps of a terminal may carry together, each no wider than their pitch. [mA]"""
        first = self.technology.conductors[0]
        shapes = self.subject.shapes(net, first.name)
        points = [kdb.Point(place.x, place.y) for place in feeds.points if place.conductor == first.name]
        extents = Extents(shapes)
        spans = [extents.at(point) for point in points]
        upright = sum(across <= along for across, along in spans) * 2 >= len(spans)
        widths: dict[int, int] = {}
        for point, (across, along) in zip(points, spans, strict=True):
            line = point.x if upright else point.y
            widths[line] = max(widths.get(line, 0), across if upright else along)
        pitch = min((after - before for before, after in pairwise(sorted(widths))), default=None)
        limits = (first.current_ma(self.subject.um(min(width, pitch or width))) for width in widths.values())
        return sum(limit or 0.0 for limit in limits)

    def _through_port(self, net: str) -> float:
        """Return the current that enters a net from outside. [A]"""
        ends = self.electrical.currents_of(net)
        if net in self.subject.supplies:
            return sum(current for *_, current in ends)
        full = [current for placed, *_, current in ends if self.subject.is_full(placed)]
        if not full and not all(sign for *_, sign, _ in ends):
            return 0.0  # a resistor inside takes it
        return max(full, default=abs(sum(sign * current for *_, sign, current in ends)))

    def single_cut(self) -> Iterator[Remark]:
        """Yield the joints on one cut where two fit: each that carries more than a cut may, and all others together."""
        subject = self.subject
        conducting = {name: subject.layer(layer) for name, layer in subject.metal_layers}
        channels = region_of(box for placed in subject.placed for box in placed.boxes if placed.device.is_mos)
        whole = WholeLayout(self.technology, conducting, channels, subject.cell.bbox())
        plain: list[tuple[str, SinglePlace]] = []
        for net in sorted(subject.nets, key=lambda each: each not in subject.supplies):  # these matter most
            places = single_places(whole, {name: subject.shapes(net, name) for name in conducting})
            weak, carried = self.electrical.weakest(net), self._forced(net, places)
            for each in places:
                most = self.cuts_ma[each.cut]
                current = carried.get((each.cut, str(each.box)), 0.0)
                if weak is not None and weak.layer == each.cut and each.box.overlaps(weak.box):
                    current = max(current, weak.share * most)
                why = f"one {each.cut} of {net}, where two fit, carries {current:.3g} mA; its limit is {most:.3g} mA"
                sure = self.electrical.is_sure(net, current / most)
                over = subject.finding("single-cut", current / most, why, where=each.box, nets=[net], must=sure)
                yield from over
                if not over:
                    plain.append((net, each))
        names = list(dict.fromkeys(net for net, _ in plain))
        why = f"{len(plain)} joint{'s' * (len(plain) > 1)} of {listed(names)} with one cut where two fit"
        found = [Spot(cut.box, f"one {cut.cut} of {net}, where two fit", f"{cut.cut} of {net}") for net, cut in plain]
        where = box_around(each.box for _, each in plain)
        yield from subject.finding("single-cut.count", len(plain), why, where=where, nets=names, places=found)

    def _forced(self, net: str, places: Sequence[SinglePlace]) -> dict[tuple[str, str], float]:
        """Return the current of each cut of a net without a way beside it, by name and box. [mA]

        Nothing where one cut can carry all of the net's current. What flows through a cut that has a way beside it is
        left to the weakest place of the net.
        """
        if 1000 * self.electrical.total(net) <= min((self.cuts_ma[each.cut] for each in places), default=inf):
            return {}
        pieces = self._pieces(net)
        currents: dict[int | None, float] = defaultdict(float)  # from devices into each piece [mA]
        for placed, terminal, side, current in self.electrical.sides(net):
            for piece, part in self._fed(net)[placed, terminal].items():
                currents[piece] += 1000 * side * current * part
        found = _in_only_ways(pieces, currents, self._ports(net))
        return {(link.layer, str(link.where)): ampere for _, link, ampere in found}


def _in_only_ways(
    pieces: Pieces, currents: Mapping[int | None, float], ways_out: AbstractSet[int | None]
) -> list[tuple[int, Link, float]]:
    """Return each cut that is the only way between two parts of a net, as the link of a piece, with its current.

    It is that of the side where nothing unknown leaves; of both, the smaller one.

    Args:
        pieces: The metal of the net.
        currents: What devices bring to each piece.
        ways_out: Pieces at which an unknown current may leave.
    """
    import networkx as nx

    joints = [(piece, link) for piece, links in pieces.links.items() for link in links if piece < link.other]
    cuts = {(piece, link.other): link for piece, link in joints}
    ways = Counter((piece, link.other) for piece, link in joints)
    net = nx.Graph(list(ways))
    net.add_nodes_from(range(len(pieces.pieces)))
    bridges = [(a, b) for a, b in nx.bridges(net) if ways[min(a, b), max(a, b)] == 1]
    net.remove_edges_from(bridges)
    parts = list(nx.connected_components(net))
    part_of = {piece: number for number, part in enumerate(parts) for piece in part}
    held = np.array([(sum(currents.get(each, 0.0) for each in part), len(part & ways_out)) for part in parts])
    whole = held.sum(axis=0)
    tree = nx.Graph([(part_of[a], part_of[b], {"joint": (min(a, b), max(a, b))}) for a, b in bridges])
    found = []
    for above, below in reversed(list(nx.dfs_edges(tree))):  # what hangs on a part comes before it
        joint = tree.edges[above, below]["joint"]
        sides = (held[below], whole - held[below])
        current = min((float(abs(each)) for each, ways in sides if not ways), default=0.0)
        found.append((joint[0], cuts[joint], current))
        held[above] += held[below]
    return found


def wires(subject: Subject) -> Iterator[Remark]:
    """Yield all findings."""
    for net in subject.nets:
        if net not in subject.supplies:
            points = _points(subject, net)
            yield from far_port(subject, net, points)
            yield from length(subject, net, points)


def climbs(subject: Subject) -> Iterator[Remark]:
    """Yield the nets that climb many levels to join neighbours, or a port on a lower metal and its devices."""
    level = {conductor.name: number for number, conductor in enumerate(subject.technology.conductors)}
    reach = subject.technology.to_dbu(_BESIDE_UM)
    for net in subject.nets:
        own = list(dict.fromkeys(p for p, _ in subject.feeds(net) if not subject.is_idle(p)))
        plain = all(placed.device.is_mos or placed.device.type in {"npn", "pnp"} for placed in own)
        labels = subject.labels.get(net, ())
        places = [*(placed.box for placed in own), *(kdb.Box(point, point) for _, point, _ in labels)]
        if net in subject.supplies or not plain or not 1 < len(places) <= _FEW:
            continue
        gap = max(gap_between(one, other) for one, other in combinations(places, 2))
        ends = [level.get(place.conductor, 0) for feed in subject.feeds(net).values() for place in feed.points]
        drawn = max(map(level.__getitem__, subject.metal(net)), default=0) if subject.um(gap) <= _NEIGHBOURS_UM else 0
        highest = subject.technology.conductors[drawn].name
        mesh = region_of(p.box.enlarged(reach) for p in own if len(p.islands) > 1)  # over rows: high for its current
        if (subject.shapes(net, highest) - mesh).is_empty() or any(level[name] == drawn for name, *_ in labels):
            continue
        of = f"{names_of(own)} and its port" if labels else names_of(own)
        why = f"{net} climbs to {highest} between {of}, which lie {subject.um(gap):.3g} um apart"
        where = subject.shapes(net, highest).bbox()
        yield from subject.finding(
            "wire-length.climb", drawn - max(ends, default=0), why, where=where, devices=own, nets=[net], cause="climbs"
        )


def poly_wires(subject: Subject) -> Iterator[Remark]:
    """Yield the nets whose poly leads far from a gate to the nearest contact, or on to another gate."""
    active, limit = subject.role("active"), subject.limits["wire-length.poly"]
    reach = subject.technology.to_dbu(limit.should or 0.0)
    for net in subject.nets:
        worst, where = 0.0, kdb.Box()
        poly = subject.shapes(net, "poly")
        gates, contacts = poly & active, subject.shapes(net, "contact").interacting(poly)
        far = gates.outside(contacts.sized(reach))
        for piece in (poly - active).interacting(far).each():
            alone = kdb.Region(piece)
            ends = [contact.bbox() for contact in contacts.inside(alone).each()]
            late = [gate.bbox() for gate in far.interacting(alone).each()]
            if ends:
                gaps = [min(gap_between(gate, end) for end in ends) for gate in late]
            else:  # from another gate
                others = [gate.bbox() for gate in gates.interacting(alone).each()]
                gaps = [gap_between(gate, other) for gate, other in product(late, others)]
            worst, where = max((worst, where), (max(gaps), piece.bbox()), key=lambda each: each[0])
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
            found[placed] += gate_contacts(subject, net, placed)
    return {placed: points for placed, points in found.items() if points}


@kept
def gate_contacts(subject: Subject, net: str, placed: PlacedDevice) -> list[tuple[int, int]]:
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
    ) or off_height(subject, net, ports, pins)


def length(subject: Subject, net: str, points: Mapping[PlacedDevice, list[tuple[int, int]]]) -> list[Remark]:
    """Return whether the wires of a net are much longer than they have to be."""
    if len(points) < 2:
        return []
    ends = [(end.center().x, end.center().y) for _, end in subject.ends_of_crossings(net)]
    places = [*ends, *(point for own in points.values() for point in own)]
    whole = _spanning_tree(places)
    inner = sum(_spanning_tree(own) for own in points.values())
    own_area, lengths = kdb.Region(), (_BESIDE_UM, HEADS_UM, _PLATE_UM)
    beside, heads, around = map(subject.technology.to_dbu, lengths)
    for placed in points:
        boxes = [placed.box, *(kdb.Box(x, y, x, y) for x, y in points[placed])]
        if len(placed.islands) > 1:
            boxes.append(subject.role("active").interacting(region_of(placed.boxes)).bbox().enlarged(beside))
        elif not placed.device.is_mos and len(placed.boxes) > 1:
            boxes.append(placed.box.enlarged(heads))
        elif placed.device.type == "capacitor":
            boxes.append(placed.box.enlarged(around))
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
    long = [replace(each, why=each.why + _far_one(subject, points)) for each in next(filter(None, found), [])]
    return long or detour(subject, net, drawn - needed, points)


def _far_one(subject: Subject, points: Mapping[PlacedDevice, list[tuple[int, int]]]) -> str:
    """Return words on the device that a net of several others is much longer for."""
    if not 2 < len(points) <= _MANY:
        return ""
    whole = _spanning_tree([point for own in points.values() for point in own])
    rest = {
        far: _spanning_tree([point for p, own in points.items() if p is not far for point in own]) for far in points
    }
    far = min(rest, key=lambda placed: (rest[placed], placed.index))
    more = whole - rest[far]
    return f", {subject.um(more):.3g} um of that for {far.id} alone" if more > _FAR_SHARE * whole else ""


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
