"""Findings on what must match: where the devices of a group lie, how alike they are, how their channels are mixed."""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from functools import cache, cached_property
from itertools import combinations, groupby
from math import dist
from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.review.dummy_transistors import bare_sides
from layoutkit.review.matched_roles import (
    CASCODES,
    CROSSED,
    LOAD_DIODES,
    LOADS,
    MIRROR,
    NEARLY,
    ON_ONE_GATE,
    ON_ONE_RESISTOR,
    PAIR,
    MatchedDevices,
    are_mixed,
)
from layoutkit.review.subject import box_around, centre_of, gap_between, names_of, region_of, turned

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from layoutkit.review.finding import Remark
    from layoutkit.review.subject import PlacedDevice, Subject

_WELL_REACH_UM = 3.0
"""Distance from a well edge within which it shifts the threshold (well proximity effect). [um]"""
_POLY_REACH_UM = 1.0
"""Distance within which poly beside a gate shifts how it is etched. [um]"""
_SAME_CENTRE_UM = 0.5
"""Devices whose middle lies so near to the centre line of a group are mirrored about it. [um]"""
_GUARD_UM = 2.0  # poly so near to the last gate of a row guards it [um]
MOST_PARTS = 16  # of a ratio that is drawn in equal units
_HALVES = 2
_LEAST_RUN = 5  # channels of one device side by side that could be mixed with those of its image
_COPYING = frozenset({MIRROR, LOADS, CASCODES, ON_ONE_GATE})
_CROSSED_UM2 = 1.5  # channels of a device from which on it is worth mixing where others of the cell are [um2]
_FEWEST_MIXED = 4  # channels, or devices, from which on there are more ways to mix them than ABBA


class Matching:
    """The findings on matched groups of one layout.

    Args:
        subject: The layout.
        groups: Its matched groups.
        cells: The cell of an array that a device is in, by its index.
    """

    def __init__(self, subject: Subject, groups: Sequence[MatchedDevices], cells: Mapping[int, int]) -> None:
        self.subject, self.cells = subject, cells
        self._kept: dict[str, list[kdb.Box]] = {}
        logic = {placed for stage in subject.stages if is_gate(stage) for placed in stage}
        self._amplified = [{p.device.terminals.get("d") for p in g.devices} for g in groups if g.words == PAIR]
        mos = [group for group in groups if group.devices[0].device.is_mos and not logic.issuperset(group.devices)]
        self.transistors = [group for group in mos if not self._is_clocked(group)]
        self.bare = cache(self._bare_ends)
        mixed = (g for g in self.transistors if g.is_even and len(g.devices) == _HALVES and are_mixed(*g.devices))
        self.crossed = next((group.called for group in mixed), "")

    def findings(self) -> Iterator[Remark]:
        """Yield all findings."""
        for group in self.transistors:
            yield from self.apart(group)
            yield from self.unlike(group)
            yield from self._unlike_drains(group)
            if group.is_ordered:
                yield from self.bare_ends(group)
        for group in self._switched():
            yield from self.apart(group)
        for group in self.lone_references():
            yield from self.bare_ends(group)

    def _is_clocked(self, group: MatchedDevices) -> bool:
        """Return whether clocks or what they drive turn a group on and off, other than mirrors and latches."""
        gates, roles = {placed.device.terminals["g"] for placed in group.devices}, self.subject.roles
        drains = {placed.device.terminals["d"] for placed in group.devices}
        latch = gates & drains if len(gates) == 1 else gates == drains and gates in self._amplified
        inverters = [each.properties for each in roles.groups if each.type == "inverter" and roles.clocks]
        driven = {str(each[end]) for each in inverters for end in ("input", "output")}
        return not latch and gates <= {*roles.clocks, *driven}

    def _switched(self) -> Iterator[MatchedDevices]:
        """Yield the sources of one length at one rail whose gates nothing but switches part: they mirror in turn."""
        subject, part = self.subject, {net: frozenset({net}) for net in self.subject.circuit.nets}
        switched = (
            p for p in subject.placed if p.id in subject.both_ways or p.device.terminals.get("g") in subject.inverted
        )
        for net in (placed.device.terminals for placed in switched):
            if not {net["d"], net["s"]} & subject.supplies.nets:
                joined = part[net["d"]] | part[net["s"]]
                part |= dict.fromkeys(joined, joined)
        alike: dict[tuple[object, ...], list[PlacedDevice]] = defaultdict(list)
        for placed in subject.placed:
            device, net = placed.device, placed.device.terminals
            if device.is_mos and net["s"] in subject.supplies and not subject.is_idle(placed):
                alike[device.model, net["s"], net["b"], device.l, part[net["g"]]].append(placed)
        for devices in alike.values():
            gates, led = ({placed.device.terminals[end] for placed in devices} for end in ("g", "d"))
            above = (placed.device.terminals for placed in subject.placed if placed.device.is_mos)
            led |= {net["d"] for net in above if net["s"] in led}  # through cascodes
            if len(gates) > 1 and gates & led:
                joining = (each for each in subject.placed if each.device.is_mos and gates & each.ends)
                yield MatchedDevices("mirror behind switches", False, tuple(devices), (*devices, *joining))

    def lone_references(self) -> Iterator[MatchedDevices]:
        """Yield the diodes in no group whose gate is a port or that of others of their kind, as in a mirror."""
        grouped = {placed for group in self.transistors for placed in group.devices}
        for placed in self.subject.placed:
            net = placed.device.terminals
            if not placed.device.is_mos or net["d"] != net["g"] or net["d"] == net["s"] or placed in grouped:
                continue
            copies = [p for p in self.subject.placed if p is not placed and p.device.terminals.get("g") == net["g"]]
            copies = [p for p in copies if (p.device.model, p.device.l) == (placed.device.model, placed.device.l)]
            held = net["s"] in self.subject.supplies and net["g"] not in self.subject.supplies
            if held and (copies or net["g"] in self.subject.circuit.ports):
                yield MatchedDevices("reference", False, (placed,), (placed, *copies))

    def apart(self, group: MatchedDevices) -> list[Remark]:
        """Return whether foreign devices lie among the devices of a group, or too much room."""
        subject = self.subject
        cells = {self.cells.get(placed.index) for placed in group.devices}
        if not group.strict and len({self.subject.instance_of.get(placed.id) for placed in group.devices}) > 1:
            return []  # halves of a circuit, each with its own cell
        if group.spread or (not group.strict and None not in cells and len(cells) > 1):
            return []  # a group over several cells of an array is judged by comparing the cells
        cause = "" if None in cells else group.words
        hull = box_around(placed.box for placed in group.devices)
        foreign = [each for each in subject.among(group.devices, group.relatives) if not _is_of_quad(each, group)]
        tails, every = all(_is_tail(each, group) for each in foreign), [*group.devices, *foreign]
        if foreign and not group.strict and (tails or self._is_nested(group, foreign)):
            return []  # a tail between the halves of a latch
        if foreign and not tails:
            why = f"{names_of(foreign)} lie{'s' * (len(foreign) == 1)} among {group.called}"
            must = group.strict and self.makes_offset(group) and not all(_is_kin(each, group) for each in foreign)
            return subject.finding("group-apart", len(foreign), why, where=hull, devices=every, cause=cause, must=must)
        gap = subject.um(self.gap_within(group))
        if foreign:
            why = f"{names_of(foreign)}, which feeds {group.called}, lies between its devices, {gap:.3g} um apart"
            return subject.finding("group-apart.tail", gap, why, where=hull, devices=every, cause=cause)
        taps = (subject.taps & kdb.Region(hull)).area() * subject.technology.dbu_um**2
        why = f"taps or a ring separate the devices of {group.called}"
        bare, pair = self.bare(group) if taps else 0, group.words == PAIR
        why += ", and no dummies guard them" * bool(bare)
        parted = subject.finding("group-apart.tap", taps * pair, why, where=hull, devices=group.devices)
        why = f"{group.called} {group.has} {gap:.3g} um between {'their' if group.is_plural else 'its'} devices"
        return parted or subject.finding("group-apart.gap", gap, why, devices=group.devices, cause=cause)

    def makes_offset(self, group: MatchedDevices) -> bool:
        """Return whether an error of a group unbalances two halves; that of a bias changes a current."""
        names = {name for placed in group.devices for name in placed.names}
        halves = any(self.subject.images_by_name.get(name) in names for name in names)
        loads = {placed.device.terminals.get("d") for placed in group.devices} in self._amplified
        return group.words == PAIR or halves or (loads and group.words != LOAD_DIODES)

    def _is_nested(self, group: MatchedDevices, foreign: Sequence[PlacedDevice]) -> bool:
        """Return whether several devices among those of a group are mirrored about its centre line."""
        hull = box_around(placed.box for placed in group.devices)
        across, near = int(hull.height() > hull.width()), self.subject.technology.to_dbu(_SAME_CENTRE_UM)
        middle = centre_of(group.devices)[across]

        def is_image(one: PlacedDevice, other: PlacedDevice) -> bool:
            off = one.centre[across] + other.centre[across] - 2 * middle
            along = one.centre[1 - across] - other.centre[1 - across]
            return max(abs(off), abs(along)) <= near and one.area == other.area

        return len(foreign) > 1 and all(any(is_image(one, other) for other in foreign) for one in foreign)

    def gap_within(self, group: MatchedDevices) -> float:
        """Return the widest gap that has to be crossed from device to device; dummies are bridges. [dbu]"""
        hull = box_around(placed.box for placed in group.devices)
        dummies = [[box] for box in self.subject.idle_boxes if box.touches(hull)]
        return widest_gap([self._islands(placed) for placed in group.devices] + dummies, len(group.devices))

    def _islands(self, placed: PlacedDevice) -> list[kdb.Box]:
        """Return the boxes of the diffusions of a device, near its own channels. [dbu]"""
        if placed.id not in self._kept:
            reach = self.subject.technology.to_dbu(1.0)
            near = [box.enlarged(reach, reach) for box in placed.boxes]
            pieces = self.subject.role("active").interacting(region_of(placed.boxes))
            self._kept[placed.id] = [(piece.bbox() & box_around(near)) for piece in pieces.each()]
        return self._kept[placed.id]

    def unlike(self, group: MatchedDevices) -> Iterator[Remark]:
        """Yield how the devices of a group are drawn unlike each other."""
        subject = self.subject
        fingers = [finger for placed in group.devices for finger in placed.fingers if finger.around is not None]
        turned = Counter(bool(finger.around and finger.around.vertical) for finger in fingers)
        if len(turned) > 1:
            was = "is" if min(turned.values()) == 1 else "are"
            why = f"{min(turned.values())} of {len(fingers)} channels of {group.called} {was} turned by 90 degrees"
            yield from subject.finding("group-unlike.orientation", min(turned.values()), why, devices=group.devices)
        widths = sorted({round(finger.w_um, 4) for finger in fingers})
        lengths = sorted({round(finger.l_um, 4) for finger in fingers})
        if len(lengths) == 1 and widths[-1] - widths[0] > NEARLY * widths[-1]:
            why = f"the channels of {group.called} are {', '.join(f'{width:g}' for width in widths)} um wide"
            yield from subject.finding(
                "group-unlike.unit",
                1 - widths[0] / widths[-1],
                why,
                devices=group.devices,
                must=group.words != LOAD_DIODES and self._have_unit(group, widths[0], widths[-1]),
            )
            return
        if len(lengths) == 1 or group.strict:
            yield from self._surround(group)

    def _unlike_drains(self, group: MatchedDevices) -> list[Remark]:
        """Return whether drains of two devices of several channels each, which are not mixed, have unlike areas."""
        areas = {placed: self._drain_um2(placed) for placed in group.devices if len(placed.boxes) > 1}
        pairs = [(a, b) for a, b in combinations(areas, 2) if len(a.boxes) == len(b.boxes) and not are_mixed(a, b)]
        pairs = [
            (a, b) if areas[a] < areas[b] else (b, a) for a, b in pairs if a.area == b.area and areas[a] * areas[b]
        ]
        one, other = min(pairs, key=lambda pair: areas[pair[0]] / areas[pair[1]], default=(group.devices[0],) * 2)
        why = f"the drains of {one.id} and {other.id} in {group.called} have {areas.get(one, 0):.3g} and "
        why += f"{areas.get(other, 0):.3g} um2 of diffusion: their channels are joined in another order"
        share = 1 - areas[one] / areas[other] if pairs else 0.0
        kind, cause = "group-unlike.drains", "unlike drains"
        return self.subject.finding(kind, share, why, devices=[one, other], cause=cause, must=group.strict)

    def _drain_um2(self, placed: PlacedDevice) -> float:
        number = self.subject.number.get(placed.device.terminals["d"])
        ends = ((each, end) for each in placed.fingers for end in each.junctions if each.nets[end] == number)
        return sum(each.junctions[end].area_um2 for each, end in ends)

    def _have_unit(self, group: MatchedDevices, narrowest: float, widest: float) -> bool:
        """Return whether channels of one width could be those of all; those of a bias of unlike sizes the narrowest.

        What sets the bias of two equal halves may have another unit than these.
        """
        halves = ((placed, image) for placed in group.devices for image in self.subject.images(placed))
        differ = any({f.w_um for f in placed.fingers} != {f.w_um for f in image.fingers} for placed, image in halves)
        most = MOST_PARTS if group.is_even or differ else 1
        parts = Fraction(widest / narrowest).limit_denominator(most)
        return abs(float(parts) * narrowest / widest - 1) < 1e-3 and parts.numerator <= MOST_PARTS

    def _surround(self, group: MatchedDevices) -> list[Remark]:
        """Return how much the surroundings of the devices differ: distances to diffusion ends, well edges."""
        figures: dict[str, list[float]] = defaultdict(list)
        ends, bare = "ends of the diffusion", self.bare(group)
        for placed in group.devices:
            around = [(finger.around, finger.l_um) for finger in placed.fingers if finger.around is not None]
            figures[ends].append(sum(each.stress(length) for each, length in around) / len(around))
            wells = [min(each.well_um or _WELL_REACH_UM, _WELL_REACH_UM) for each, _ in around]
            figures["well edge"].append(sum(wells) / len(wells))
            figures["neighbouring poly"].append(self._neighbours(placed))
        spread = {name: (max(each) - min(each)) / max(each) if max(each) else 0.0 for name, each in figures.items()}
        if not bare:
            del spread[ends]  # dummies are between
        worst = max(spread, key=lambda name: spread[name])
        why = f"{group.called}: distances to the {worst} differ by {100 * spread[worst]:.3g} %"
        limit = f"group-unlike.{'surround' if bare else 'guarded'}"
        strict = group.strict and group.is_even and self.makes_offset(group)
        return self.subject.finding(limit, spread[worst], why, devices=group.devices, must=strict and worst == ends)

    @cached_property
    def _poly(self) -> kdb.Shapes:
        shapes = kdb.Shapes()
        shapes.insert(self.subject.role("poly"))
        return shapes

    def _neighbours(self, placed: PlacedDevice) -> float:
        """Return the mean distance from the channels of a device to the poly at both sides, within reach. [dbu]"""
        gaps = self._gaps(placed, self.subject.technology.to_dbu(_POLY_REACH_UM))
        return sum(gaps) / len(gaps)

    def _gaps(self, placed: PlacedDevice, reach: int) -> list[int]:
        """Return the distances from the channels of a device to the poly at both sides, or how far was looked. [dbu]"""
        found = []
        for finger, box in zip(placed.fingers, placed.boxes, strict=True):
            upright = bool(finger.around and finger.around.vertical)
            gate = turned(box, upright=upright)
            for start, end in ((gate.left - reach, gate.left - 1), (gate.right + 1, gate.right + reach)):
                strip = turned(kdb.Box(start, gate.bottom, end, gate.top), upright=upright)
                poly = kdb.Region([shape.polygon for shape in self._poly.each_touching(strip)])
                near = (
                    turned(piece.bbox(), upright=upright) for piece in (poly & kdb.Region(strip.enlarged(1, 1))).each()
                )
                gaps = (gate.left - its.right if start < gate.left else its.left - gate.right for its in near)
                found.append(max(0, min(gaps, default=reach)))
        return found

    def bare_ends(self, group: MatchedDevices) -> list[Remark]:
        """Return whether channels at the ends of the rows of a group have no other gate beside them."""
        bare = self.bare(group)
        why = f"{bare} end{'s' * (bare > 1)} of the rows of {group.called} {'have' if bare > 1 else 'has'} no dummy"
        return self.subject.finding("group-unlike.ends", bare, why, devices=group.devices, cause="bare ends")

    def _bare_ends(self, group: MatchedDevices) -> int:
        reach, gaps = self.subject.technology.to_dbu(_GUARD_UM), list[int]()
        units: list[tuple[kdb.Box, bool]] = []
        for placed in group.devices:
            gaps += self._gaps(placed, reach)
            turns = (bool(finger.around and finger.around.vertical) for finger in placed.fingers)
            units += zip(placed.boxes, turns, strict=True)
        bare = [(number // 2, bool(number % 2)) for number, gap in enumerate(gaps) if gap >= reach]
        others = [box for placed in group.relatives for box in placed.boxes]
        return bare_sides(self.subject, units, others, bare)


def is_gate(stage: Sequence[PlacedDevice]) -> bool:
    """Return whether a stage is a logic gate of several inputs, each on transistors of both types, without a diode."""
    gates = [{p.device.terminals["g"] for p in stage if p.device.type == kind} for kind in ("nmos", "pmos")]
    linear = any(placed.device.both_ways or placed.device.terminals["g"] in placed.ends for placed in stage)
    return gates[0] == gates[1] and len(gates[0]) > 1 and not linear


def widest_gap(nodes: Sequence[Sequence[kdb.Box]], own: int) -> float:
    """Return the widest gap to cross between the first nodes, of which the rest are bridges. [dbu]"""
    links = sorted(
        (min(gap_between(one, other) for one in nodes[a] for other in nodes[b]), a, b)
        for a, b in combinations(range(len(nodes)), 2)
    )
    joined = list(range(len(nodes)))  # the smallest node of each part; those of the group come first
    for gap, a, b in links:
        one, other = sorted((joined[a], joined[b]))
        joined = [one if root == other else root for root in joined]
        if not any(joined[:own]):
            return gap
    return 0.0


def _is_tail(placed: PlacedDevice, group: MatchedDevices) -> bool:
    """Return whether a transistor feeds the common source of a group."""
    sources = {each.device.terminals.get("s") for each in group.devices}
    return placed.device.is_mos and sources == {placed.device.terminals["d"]}


def _is_of_quad(placed: PlacedDevice, group: MatchedDevices) -> bool:
    """Return whether a transistor is of the other pair of a mixer, on gates and drains of this pair."""
    gates, drains = ({each.device.terminals.get(end) for each in group.devices} for end in ("g", "d"))
    net, kinds = placed.device.terminals, {(p.device.model, p.device.params.get("l")) for p in group.devices}
    alike = placed.device.is_mos and (placed.device.model, placed.device.params.get("l")) in kinds
    return alike and len(gates) > 1 and net["g"] in gates and net["d"] in drains


def _is_kin(placed: PlacedDevice, group: MatchedDevices) -> bool:
    """Return whether a transistor is in series with a group's, or of its type, length and source: it would fit in."""
    one, other = group.devices[0].device, placed.device
    drains = {each.device.terminals["d"] for each in group.devices}
    if one.type == other.type and one.terminals.get("b") == other.terminals.get("b") and other.terminals["s"] in drains:
        return True
    same = all(one.terminals.get(terminal) == other.terminals.get(terminal) for terminal in ("s", "b"))
    return same and (one.model, one.params.get("l")) == (other.model, other.params.get("l"))


def mixed_channels(matching: Matching, group: MatchedDevices) -> list[Remark]:
    """Return whether devices of a pair or mirror, at least one of several channels, have different centres."""
    subject, several = matching.subject, group.strict and not group.spread
    pairs = [(a, b) for a, b in combinations(group.devices, 2) if several and not _is_between(a, b)]
    apart = subject.um(max((dist(one.centre, other.centre) for one, other in pairs), default=0.0))
    bare = bool(apart and matching.bare(group))
    if group.words in {ON_ONE_GATE, ON_ONE_RESISTOR} and (found := ratio_apart(subject, group, must=bare)):
        return found
    why = f"the devices of {group.called} are not interleaved: their centres lie {apart:.3g} um apart"
    found = subject.finding(
        "group-apart.centres",
        apart,
        why + ", and no dummies guard them" * bare,
        devices=group.devices,
        cause="not interleaved",
        must=bare and group.is_even and matching.makes_offset(group),
    )
    two = len(group.devices) == _HALVES and not _is_apart(matching, group) and not _is_pumped(subject, group)
    if two and group.words in {CASCODES, CROSSED, LOADS}:
        pairs = [(group.devices[0], group.devices[1])]
    return (
        found
        or _blocks(subject, group, pairs)
        or _coarse(subject, group)
        or _nested(subject, group)
        or _whole(matching, group)
    )


def _is_pumped(subject: Subject, group: MatchedDevices) -> bool:
    """Return whether inverters drive the drains of a group through capacitors, as those of a charge pump's switches."""
    drains = {placed.device.terminals.get("d", "") for placed in group.devices}
    plates = (d.terminals.values() for d in subject.circuit.devices if d.type == "capacitor")
    return drains <= {net for ends in plates if not subject.inverted.isdisjoint(ends) for net in ends}


def _is_apart(matching: Matching, group: MatchedDevices) -> bool:
    subject = matching.subject
    return subject.limits["group-apart.gap"].beyond(subject.um(matching.gap_within(group))) is not None


def _whole(matching: Matching, group: MatchedDevices) -> list[Remark]:
    """Return whether equal devices of one channel each are so large that their middles are far apart.

    Two of several channels as well, and smaller ones, where the cell has pairs that are interleaved.
    """
    subject, every = matching.subject, group.devices
    matched = group.is_even and not group.spread and not _is_apart(matching, group)
    crossed, large = matching.crossed, every[0].area >= subject.technology.to_dbu(1.0) ** 2 * _CROSSED_UM2
    plain = matched and group.words in _COPYING and len(every) == _HALVES and large and bool(crossed)
    judged = [p for p in every if matched and len(p.boxes) == 1] if not plain else [*every] * (not are_mixed(*every))
    far = subject.um(max((dist(a.centre, b.centre) for a, b in combinations(judged, 2)), default=0.0))
    kind = "single channels" if all(len(placed.boxes) == 1 for placed in judged) else "plain rows"
    why = f"the devices of {group.called} are {kind}, not interleaved: their centres lie {far:.3g} um apart"
    why += f", though those of {crossed} are" * plain
    limit = f"group-apart.{'plain' if plain else 'whole'}"
    return subject.finding(limit, far, why, devices=judged, cause="single channels")


def _nested(subject: Subject, group: MatchedDevices) -> list[Remark]:
    """Return whether units of one device lie outside those of an equal one, or the reference outside all others."""
    middle = centre_of(group.devices)
    away: dict[PlacedDevice, float] = {}
    for placed in group.devices if group.strict and not group.spread else ():
        places = [(box.center().x, box.center().y) for box in placed.boxes]
        away[placed] = sum(dist(place, middle) for place in places) / len(places)
    pairs = [(a, b) for a in away for b in away if len(a.boxes) == len(b.boxes) >= _FEWEST_MIXED]
    found: list[Remark] = []
    figures = [("group-apart.nested", away[a] / max(away[b], 1.0), a) for a, b in pairs]
    for each in away if len(away) >= _FEWEST_MIXED else ():
        others = [(len(other.boxes), away[other]) for other in away if other is not each]
        mean = sum(count * far for count, far in others) / sum(count for count, _ in others)
        if each.device.terminals["d"] == each.device.terminals["g"]:
            figures.append(("group-apart.reference", away[each] / max(mean, 1.0), each))
    for name in ("group-apart.reference", "group-apart.nested"):
        own = ((float(f"{most:.6g}"), -each.index, each.id) for known, most, each in figures if known == name)
        most, _, outer = max(own, default=(0.0, 0, ""))
        what = "the others" if name == "group-apart.reference" else "those of an equal one"
        why = f"the channels of {outer} in {group.called} lie {most:.3g} times as far from its middle as {what}"
        found = found or subject.finding(name, most, why, devices=group.devices, cause=name)
    return found


def _blocks(
    subject: Subject, group: MatchedDevices, pairs: Sequence[tuple[PlacedDevice, PlacedDevice]]
) -> list[Remark]:
    """Return whether equal devices near to each other stand in one row as blocks: AAABBB."""
    equal = [(a, b) for a, b in pairs if len(a.boxes) == len(b.boxes) > 1 and not a.box.overlaps(b.box)]
    apart = 0.0
    for one, other in equal:
        places = [box.center() for box in one.boxes]
        pitch = min(a.distance(b) for a, b in combinations(places, 2))
        apart = max(apart, dist(one.centre, other.centre) / pitch)
    why = f"the channels of {group.called} stand in blocks, whose centres lie {apart:.3g} channels apart"
    return subject.finding("group-apart.blocks", apart, why, devices=group.devices, cause="not interleaved")


def _coarse(subject: Subject, group: MatchedDevices) -> list[Remark]:
    """Return whether the equal halves of a pair or mirror have one centre, but are mixed in large blocks only."""
    if not group.strict or group.spread or not group.is_even or len(group.devices) != _HALVES:
        return []
    rows: dict[tuple[bool, int], list[tuple[int, int, int]]] = defaultdict(list)
    for number, placed in enumerate(group.devices):
        for finger, box in zip(placed.fingers, placed.boxes, strict=True):
            upright = finger.around is not None and finger.around.vertical
            along = turned(box, upright=upright)
            rows[upright, along.center().y].append((along.left, along.right, number))
    runs = [list(run) for row in rows.values() for _, run in groupby(sorted(row), key=lambda each: each[2])]
    longest = max((run for run in runs if len(run) >= _LEAST_RUN), key=lambda run: run[-1][1] - run[0][0], default=())
    width = subject.um(longest[-1][1] - longest[0][0]) if longest else 0.0
    why = f"{group.called} {group.has} {len(longest)} channels of one device side by side, over {width:.3g} um, "
    why += "with none of the other between"
    return subject.finding("group-apart.coarse", width, why, devices=group.devices, cause="not interleaved")


def ratio_apart(subject: Subject, group: MatchedDevices, *, must: bool) -> list[Remark]:
    """Return whether the units of the largest transistor of a ratio lie about none of the others; in half pitches."""
    large = max(group.devices, key=lambda placed: (placed.area, -placed.index))
    others = [placed for placed in group.devices if placed.area < large.area and len(large.boxes) > 1]  # else one cell
    places = [box.center() for placed in group.devices for box in placed.boxes]
    pitch = min((one.distance(other) for one, other in combinations(places, 2)), default=0.0)
    off = min((dist(placed.centre, large.centre) for placed in others), default=0.0)
    why = f"the units of {large.id} lie about none of {names_of(others)}: {subject.um(off):.3g} um off"
    return subject.finding("group-apart.ratio", 2 * off / max(1.0, pitch), why, devices=group.devices, must=must)


def _is_between(one: PlacedDevice, other: PlacedDevice) -> bool:
    """Return whether no better place is left for two devices: both are one channel, or one lies within the other."""
    small, large = sorted((one, other), key=lambda each: len(each.boxes))
    return len(small.boxes) == 1 and (len(large.boxes) == 1 or small.box.inside(large.box))
