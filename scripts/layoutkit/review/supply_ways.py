"""Findings on supplies that one wire alone, or the metal of others, leads to some devices."""

from __future__ import annotations

from collections import Counter
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import klayout.db as kdb

from layoutkit.review.finding import Spot
from layoutkit.review.floorplan import rails_of
from layoutkit.review.room_and_wells import rings_of
from layoutkit.review.subject import (
    PlacedDevice,
    box_around,
    gap_between,
    longer_side,
    names_of,
    region_of,
)
from layoutkit.review.ways import MESH_CONTACTS, Extents, rectangles, worst_first

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from layoutkit.review.finding import Remark
    from layoutkit.review.subject import Subject
    from layoutkit.review.ways import Pieces

_ALIKE = 0.1  # widths that differ by at most this much are one wire [1]
_STAYS = 0.5  # share of the devices behind a wire from which on its next piece is the same wire
_BLOCK = 4  # channels behind a wire from which on it feeds a block
_WHOLE_BLOCK = 8  # channels of several devices from which on a wire to them can be a must
_WIDE_UM = 1.5  # metal so wide along straps or a ring is a way of its own [um]


class Neck(NamedTuple):
    """A wire that is the only way to some devices: conductor, box, width and length [dbu], and these devices.

    ``others`` are devices that it leads to as well, but that branch off before its end.
    """

    conductor: str
    box: kdb.Box
    width: int
    length: int
    devices: tuple[PlacedDevice, ...]
    others: tuple[PlacedDevice, ...] = ()

    @property
    def squares(self) -> float:
        """Its length over its width."""
        return self.length / self.width

    @property
    def channels(self) -> int:
        """Number of channels, bars or plates of the devices behind it."""
        return sum(len(placed.boxes) for placed in self.devices)


def feet(subject: Subject) -> set[str]:
    """Return the ports that drive only current sources: transistors at a rail that feed sources of the same type."""
    circuit, found = subject.circuit, set[str]()
    for port in [port for port in circuit.ports if port not in subject.supplies]:
        own = [circuit.device(end.device) for end in circuit.nets[port] if end.terminal == "g"]
        fed = {net for device in own if device.is_mos for net in [device.terminals["d"]]}
        above = [(circuit.device(end.device), end) for net in fed for end in circuit.nets[net]]
        above = [each for each in above if each[0] not in own]
        stands = all(device.is_mos and device.terminals["s"] in subject.supplies for device in own)
        carry = above and all(end.terminal == "s" and device.type == own[0].type for device, end in above)
        if own and len(own) == len(circuit.nets[port]) and stands and carry and len({d.type for d in own}) == 1:
            found.add(port)
    return found


def supply_necks(subject: Subject) -> Iterator[Remark]:
    """Yield the supplies that a thin wire alone leads to some devices, and those where what switches shares it."""
    gates, mos = feet(subject), [device for device in subject.circuit.devices if device.is_mos]
    below = {d.terminals["s"] for d in mos if d.terminals["d"] == d.terminals["g"]} - subject.supplies.nets  # of diodes
    still = [d for d in mos if d.terminals["g"] in gates or not below.isdisjoint(map(d.terminals.get, "ds"))]
    sources = mirrored(subject) | {device.id for device in still}
    for net in [net for net in subject.nets if net in subject.supplies]:
        if subject.shapes(net, "contact").count() > MESH_CONTACTS:
            continue
        labels = [(name, kdb.Box(point, point)) for name, point, _ in subject.labels.get(net, ())]
        rails = port_rails(subject, net, labels)
        ends = {p: each for p, each in current_ends(subject, net).items() if p.device.type != "resistor"}
        found = necks(subject, net, labels, ends)  # a resistor has far more resistance than its wires
        found = [neck for neck in found if not any(neck.box.inside(rail) for rail in rails)]
        shared = {}
        for neck in found:
            behind = (*neck.devices, *neck.others)
            loud = [placed for placed in behind if switches(subject, placed)]
            quiet = [placed for placed in behind if placed not in loud and not sources.isdisjoint(placed.names)]
            if loud and quiet:
                switch = f"which switch{'es' * (len(loud) == 1)}"
                shared[neck] = f"; {names_of(loud)}, {switch}, and {names_of(quiet)} share it"
        mixed, thin = (subject.limits[f"supply-drop.{name}"] for name in ("mixed", "neck"))
        blocks = [neck for neck in shared if neck.channels >= _BLOCK and mixed.beyond(neck.squares)]
        alone = [neck for neck in found if thin.beyond(neck.squares) and neck not in blocks]
        others = [neck for neck in shared if neck not in alone and neck not in blocks]
        single = [neck for neck in found if neck not in shared and neck.channels == 1]
        for name, own in (("mixed", blocks), ("neck", alone), ("together", others), ("alone", single)):
            yield from neck_findings(subject, net, f"supply-drop.{name}", own, shared)


def port_rails(subject: Subject, net: str, labels: Iterable[tuple[str, kdb.Box]]) -> list[kdb.Box]:
    """Return the rails of a supply that its ports are on. [dbu]"""
    rails = [box for upright in (False, True) for _, box in rails_of(subject, net, upright=upright)]
    return [rail for rail in rails if any(place.inside(rail) for _, place in labels)]


def mirrored(subject: Subject) -> set[str]:
    """Return the transistors of mirrors."""
    return {name for each in subject.roles.groups if each.type == "current_mirror" for name in each.devices}


def switches(subject: Subject, placed: PlacedDevice, how: tuple[str, ...] = ("switching", "clocked")) -> bool:
    """Return whether the current of a device is known to be that of one that turns on and off."""
    known = (subject.currents.devices.get(name) for name in placed.names)
    return any(each is not None and each.how.startswith(how) for each in known)


def neck_findings(
    subject: Subject, net: str, limit: str, found: Sequence[Neck], shared: Mapping[Neck, str], cause: str = ""
) -> list[Remark]:
    """Return the necks of a net beyond a limit as one finding, with what else is to be said of each."""
    several = [neck for neck in found if limit == "supply-drop.alone" or neck in shared or neck.channels > 1]
    several = [neck for neck in several if not _loses_nothing(subject, neck)]
    beyond = [neck for neck in several if subject.limits[limit].beyond(neck.squares)]
    if not beyond:
        return []
    spots: list[tuple[float, Spot]] = []
    for neck in beyond:
        width, length = subject.um(neck.width), subject.um(neck.length)
        behind = f"{names_of(neck.devices)} ({neck.channels} channel{'s' * (neck.channels > 1)})"
        wire = f"{length:.3g} um of {neck.conductor}, {width:.3g} um wide"
        why = f"{net} connects to {behind} only through {wire}{shared.get(neck, '')}"
        spots.append((neck.squares, Spot(neck.box, why, f"{length:.3g} um to {names_of(neck.devices)}")))
    worst = max(beyond, key=lambda each: (float(f"{each.squares:.4g}"), -each.box.left, -each.box.bottom))
    return worst_first(
        subject, limit, spots, devices=list(dict.fromkeys(placed for neck in beyond for placed in neck.devices)),
        nets=[net], cause=cause,
        must=limit != "supply-drop.neck" or (len(worst.devices) > 1 and worst.channels >= _WHOLE_BLOCK),
    )  # fmt: skip


def _loses_nothing(subject: Subject, neck: Neck) -> bool:
    """Return whether a wire loses under a microvolt at the currents of all that it leads to."""
    sheet = subject.technology.conductor(neck.conductor).sheet_ohm
    return subject.carries_little(neck.devices, neck.squares * (sheet or inf))


def through_others(subject: Subject) -> Iterator[Remark]:
    """Yield the supplies that strong devices get through the straps or the ring of weaker ones alone, the worst each.

    What remains is measured without the two lowest metals on the diffusion of others, or in the ring around them.
    """
    limit = subject.limits["supply-drop.through"]
    for net in [net for net in subject.nets if net in subject.supplies]:
        ends = current_ends(subject, net)
        if subject.shapes(net, "contact").count() > MESH_CONTACTS or not limit.beyond(_strength(subject, ends)):
            continue
        ways, worst = _Ways(subject, net, ends), (0.0, kdb.Region(), list[PlacedDevice](), list[PlacedDevice]())
        loud, behind = _outputs(subject, ends), dict[tuple[PlacedDevice, ...], tuple[kdb.Region, list[PlacedDevice]]]()
        for region, inside in _hosts(subject, net, ends):
            own = _strength(subject, inside)
            if loud and _is_mirror(subject, inside):
                working = [placed for placed in inside if not subject.is_idle(placed)]
                behind.setdefault(tuple(p for p in ways.lost(region) if p in loud), (region, working))
            if _strength(subject, ends) - own > worst[0] * max(own, 1.0):
                gates = {placed.device.terminals.get("g") for placed in inside}
                fed = [p for p in ways.lost(region) if p not in inside and p.device.terminals.get("g") not in gates]
                found = (_strength(subject, fed) / max(own, 1.0), region, inside, fed)
                worst = max(worst, found, key=lambda each: each[0])
        figure, region, inside, fed = worst
        working = [placed for placed in inside if not subject.is_idle(placed)]
        whose = f"the straps or the ring of {names_of(working)}" if working else "a ring around dummies"
        why = f"{net} reaches {names_of(fed)}, which can drive {_strength(subject, fed):.3g} mA, only through {whose}"
        if any(placed.device.is_mos for placed in working):
            why += f", which can drive {_strength(subject, inside):.3g} mA"
        yield from subject.finding(
            "supply-drop.through",
            figure,
            why,
            where=region.bbox(),
            devices=[*working, *fed],
            nets=[net],
            must=any(placed.device.is_mos for placed in working),
        )
        for outputs, (where, mirror) in behind.items():
            told = limit.beyond(figure) and {*outputs} <= {*fed}
            drives = "drives an output" if len(outputs) == 1 else "drive outputs"
            why = f"{net} reaches {names_of(outputs)}, which {drives}, only through the straps or the ring of "
            why += f"{names_of(mirror)}, a mirror, whose sources the current shifts"
            yield from subject.finding(
                "supply-drop.behind", 0 if told else len(outputs), why, where=where.bbox(), nets=[net],
                devices=[*mirror, *outputs],
            )  # fmt: skip


def _is_mirror(subject: Subject, devices: Iterable[PlacedDevice]) -> bool:
    """Return whether all devices of a diffusion or ring that work are those of mirrors."""
    working, sources = [placed for placed in devices if not subject.is_idle(placed)], mirrored(subject)
    return bool(working) and all(not sources.isdisjoint(placed.names) for placed in working)


def _outputs(subject: Subject, ends: Iterable[PlacedDevice]) -> list[PlacedDevice]:
    """Return the transistors whose drain is an output that moves: of those on no mirror."""
    ports = {port for port, use in subject.roles.ports.items() if use.direction == "output"}
    sources = mirrored(subject)
    return [p for p in ends if p.device.is_mos and p.device.terminals["d"] in ports and sources.isdisjoint(p.names)]


def _strength(subject: Subject, devices: Iterable[PlacedDevice]) -> float:
    """Return what transistors can drive together. [mA]"""
    working = [placed for placed in devices if not subject.is_idle(placed)]
    return 1000 * sum(subject.currents.strength.get(name, 0.0) for placed in working for name in placed.names)


def _hosts(subject: Subject, net: str, ends: Iterable[PlacedDevice]) -> Iterator[tuple[kdb.Region, list[PlacedDevice]]]:
    """Yield the diffusions and the rings of a net whose metal may lead to others, with the devices on or in them."""
    active, seen = subject.role("active"), set[str]()
    for placed in (each for each in ends if each.device.is_mos):
        region = active.interacting(region_of(placed.boxes))
        if str(region) not in seen:
            seen.add(str(region))
            yield region, [p for p in subject.placed if p.device.is_mos and region_of(p.boxes).inside(region).count()]
    for box, hole in rings_of(subject, net):
        yield kdb.Region(box), [placed for placed in subject.placed if hole.inside(placed.box.center())]


class _Ways:
    """What is left of the ways from the ports of a supply to its devices without the metal of a place."""

    def __init__(self, subject: Subject, net: str, ends: Mapping[PlacedDevice, Sequence[kdb.Box]]) -> None:
        self.subject, self.net, self.pieces = subject, net, rectangles(subject, net)
        first, *others = (each.name for each in subject.technology.conductors)
        self.low = (first, *others[:1])
        labels = [(name, kdb.Box(point, point)) for name, point, _ in subject.labels.get(net, ())]
        self.roots = {piece for name, place in labels for piece in self.pieces.at(name, place)}
        self.rails = port_rails(subject, net, labels)
        whole = {piece for piece, _ in self._reached({})}
        self.fed = {
            placed: [(piece, point) for point in points for piece in self.pieces.at(first, point)[:1]]
            for placed, points in ends.items()
        }
        self.fed = {placed: each for placed, each in self.fed.items() if not whole.isdisjoint(p for p, _ in each)}

    def lost(self, region: kdb.Region) -> list[PlacedDevice]:
        """Return the devices that no way leads to without the metal over a region, though their own metal remains.

        What a piece has outside of the region remains a way if it is wide, or in line with what is over the region.
        """
        left: dict[int, kdb.Region] = {}
        wide = self.subject.technology.to_dbu(_WIDE_UM)
        for name in self.low:
            least = self.subject.technology.conductor(name).width
            found = self.pieces.shapes.get(name, kdb.Shapes()).each_touching(region.bbox())
            over = [
                number for number in sorted({shape.prop_id for shape in found} - self.roots) if self._is_free(number)
            ]
            near = box_around(self.pieces.pieces[number][1].bbox() for number in over).enlarged(least)
            metal = self.subject.shapes(self.net, name) & kdb.Region(near)
            bits = (metal - region).sized(1 - least // 2).sized(least // 2 - 1)
            beside = bits.sized(-wide // 2).sized(wide // 2)
            for part in (bits - beside).merged().each():
                along = longer_side((kdb.Region(part).sized(1) & region).bbox())
                if along**2 <= 2 * part.area():  # it leads on from the region, not along it
                    beside.insert(part)
            outlines = {number: kdb.Region(self.pieces.pieces[number][1]) for number in over}
            left |= {number: each & beside for number, each in outlines.items() if not (each & region).is_empty()}
        if not left:
            return []
        reached = self._reached(left)

        def parts(fed: Iterable[tuple[int, kdb.Box]]) -> list[tuple[int, str]]:
            known = [(piece, part) for piece, at in fed for part in self._parts(piece, left) if _touch(part, at)]
            return [(piece, str(part)) for piece, part in known]

        own = {placed: parts(fed) for placed, fed in self.fed.items()}
        return [placed for placed, each in own.items() if each and reached.isdisjoint(each)]

    def _is_free(self, piece: int) -> bool:
        return not any(self.pieces.pieces[piece][1].bbox().inside(rail) for rail in self.rails)

    def _reached(self, left: Mapping[int, kdb.Region]) -> set[tuple[int, str]]:
        """Return the pieces that the ports are joined with, or what is left of them."""
        front = [(root, part) for root in self.roots for part in self._parts(root, left)]
        found = {(piece, str(part)) for piece, part in front}
        while front:
            piece, own = front.pop()
            for link in self.pieces.links[piece]:
                if not _touch(own, link.where):
                    continue
                for part in self._parts(link.other, left):
                    if (link.other, str(part)) not in found and _touch(part, link.where):
                        found.add((link.other, str(part)))
                        front.append((link.other, part))
        return found

    @staticmethod
    def _parts(piece: int, left: Mapping[int, kdb.Region]) -> list[kdb.Polygon | None]:
        return [*left[piece].each()] if piece in left else [None]


def _touch(part: kdb.Polygon | None, place: kdb.Box) -> bool:
    """Return whether a part of a piece, None for all of it, is at a place."""
    return part is None or part.touches(place)


def current_ends(subject: Subject, net: str) -> dict[PlacedDevice, list[kdb.Box]]:
    """Return the contacts of each device that gives or draws current on a net. [dbu]"""
    found: dict[PlacedDevice, list[kdb.Box]] = {}
    first = subject.technology.conductors[0].name
    for (placed, terminal), feeds in subject.feeds(net).items():
        if not subject.is_idle(placed) and terminal in placed.device.kind.ends:
            points = [kdb.Box(p.x, p.y, p.x, p.y) for p in feeds.points if p.conductor == first]
            found[placed] = found.get(placed, []) + points
    return dict(sorted(found.items(), key=lambda each: each[0].index))


def necks(
    subject: Subject, net: str, starts: Sequence[tuple[str, kdb.Box]], ends: Mapping[PlacedDevice, Sequence[kdb.Box]]
) -> list[Neck]:
    """Return the wires of a net that all of the current of some devices has to pass on its way from where it starts.

    They are the dominators of the contacts of these devices in the graph of rectangles: Cooper, Harvey and Kennedy, "A
    simple, fast dominance algorithm", Rice University, 2001.
    """
    import networkx as nx

    pieces, first = rectangles(subject, net), subject.technology.conductors[0].name
    roots = {piece for name, place in starts for piece in pieces.at(name, place)}
    fed: dict[int, list[PlacedDevice]] = {}
    for placed, points in ends.items():
        for piece in {found for point in points for found in pieces.at(first, point)[:1]}:
            fed.setdefault(piece, []).append(placed)
    ways = nx.DiGraph((piece, link.other) for piece, links in pieces.links.items() for link in links)
    ways.add_edges_from((-1, root) for root in roots)
    if not roots or not fed:
        return []
    tree: dict[int, list[int]] = {}
    for piece, above in nx.immediate_dominators(ways, -1).items():
        if piece not in {above, -1}:
            tree.setdefault(above, []).append(piece)
    found = _Search(pieces, tree, fed, starts).found()
    extents = {name: Extents(region) for name, region in subject.metal(net).items()}
    return [_as_wide_as_drawn(neck, extents[neck.conductor]) for neck in found]


def _as_wide_as_drawn(neck: Neck, extents: Extents) -> Neck:
    """Return a neck with the width of all metal in its middle, where a jog divides a wire into rectangles beside."""
    x, y = extents.at(neck.box.center())
    return neck._replace(width=max(neck.width, y if neck.box.width() > neck.box.height() else x))


class _Search:
    """Walks the tree of dominators of one net."""

    def __init__(
        self, pieces: Pieces, tree: Mapping[int, Sequence[int]], fed: Mapping[int, Sequence[PlacedDevice]],
        ports: Sequence[tuple[str, kdb.Box]],
    ) -> None:  # fmt: skip
        self.pieces, self.fed, self.ports = pieces, fed, ports
        self.above: dict[int, int] = {}
        self.order = [-1]
        waiting = [*reversed(tree.get(-1, ()))]
        while waiting:
            self.order.append(piece := waiting.pop())
            below = tree.get(piece, ())
            self.above |= dict.fromkeys(below, piece)
            waiting += reversed(below)
        self.at = {piece: place for place, piece in enumerate(self.order)}
        self.size = dict.fromkeys(self.order, 1)
        self.own: dict[int, Counter[PlacedDevice]] = {piece: Counter(fed.get(piece, ())) for piece in self.order}
        for piece in reversed(self.order):
            if piece in self.above:
                self.size[self.above[piece]] += self.size[piece]
                self.own[self.above[piece]] += self.own[piece]
        self.whole = Counter(placed for devices in fed.values() for placed in devices)

    def found(self) -> list[Neck]:
        """Return the necks, pieces of one wire in line as one."""
        wires: dict[int, Neck] = {}
        for piece in self.order[1:]:
            neck = self._neck(piece)
            above = self.above.get(piece)
            while above is not None and above not in wires:
                above = self.above.get(above)
            before = wires.get(above) if above is not None else None
            if neck is not None and before is not None and _goes_on(before, neck):
                longer = before._replace(box=before.box + neck.box, length=before.length + neck.length)
                for key in [key for key, wire in wires.items() if wire is before]:
                    wires[key] = longer
                wires[piece] = longer
            elif neck is not None:
                wires[piece] = neck
        return list({id(wire): wire for wire in wires.values()}.values())

    def _neck(self, piece: int) -> Neck | None:
        """Return the part of a rectangle between where the current enters it and where half of it has not left yet."""
        inside = range(self.at[piece], self.at[piece] + self.size[piece])
        (name, outline), links = self.pieces.pieces[piece], self.pieces.links[piece]
        box = outline.bbox()
        enters = [link.where for link in links if self.at.get(link.other) not in inside]
        enters += [place for conductor, place in self.ports if conductor == name and place.inside(box)]
        one = box_around(enters)
        leaves = [(link.where, self.own[link.other]) for link in links if self.at.get(link.other) in inside]
        leaves = sorted(
            (each for each in leaves if each[1]), key=lambda each: (-gap_between(one, each[0]), str(each[0]))
        )
        far = Counter[PlacedDevice]()
        other = kdb.Box()
        for place, own in leaves:
            if 2 * far.total() < self.own[piece].total():
                far |= own
                other += place
        behind = [placed for placed, count in self.own[piece].items() if count == self.whole[placed]]
        behind.sort(key=lambda placed: placed.index)
        devices, others = (tuple(p for p in behind if (p in far) == is_far) for is_far in (True, False))
        if not devices or one.empty() or other.empty():
            return None
        x = max(one.left - other.right, other.left - one.right, 0)
        y = max(one.bottom - other.top, other.bottom - one.top, 0)
        length, width = (x, box.height()) if x >= y else (y, box.width())
        if not length:
            return None
        between = kdb.Box(min(one.right, other.right), box.bottom, max(one.left, other.left), box.top)
        if y > x:
            between = kdb.Box(box.left, min(one.top, other.top), box.right, max(one.bottom, other.bottom))
        return Neck(name, between, width, length, devices, others)


def _goes_on(before: Neck, neck: Neck) -> bool:
    """Return whether a neck is the next piece of a wire, which still leads to most of its devices."""
    most = len(neck.devices) >= _STAYS * len(before.devices)
    alike = abs(neck.width - before.width) <= _ALIKE * before.width
    in_line = longer_side(before.box + neck.box) >= before.length + neck.length
    return most and alike and in_line and before.conductor == neck.conductor
