"""Findings on metal at devices: what runs over channels and bars and under plates, and the ways of supplies to taps."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import klayout.db as kdb
import numpy as np

from layoutkit.parasitics.layout_circuit import FeedPoint, Feeds
from layoutkit.review.finding import Spot
from layoutkit.review.matched_roles import MIRROR, PAIR, MatchedDevices
from layoutkit.review.room_and_wells import rings_of
from layoutkit.review.subject import box_around, kept, longer_side, names_of, region_of
from layoutkit.review.ways import MESH_CONTACTS, Pieces, from_ports, worst_first

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from layoutkit.parasitics.net_network import NetNetwork
    from layoutkit.review.coupling import Coupling
    from layoutkit.review.finding import Remark
    from layoutkit.review.subject import PlacedDevice, Subject

_STRAPS = 1  # level of the highest metal that straps on sources are drawn on
_ALIKE = 0.1  # devices whose covered share differs by at most this part of the largest are covered alike [1]
_BANK_UM = 5.0  # gap within which bars and plates are one body [um]
_LEAST_WAY_UM = 2.0  # ways through transistors that are shorter than half of this are not judged [um]
_PLATE_UM = 2.5  # from a plate to the edge of its metal [um]
_GUARD_UM = 2.0  # dummies so near to a group are parts of it [um]
_ONE_PLACE_UM = 5.0  # joints of a ring that are nearer to each other are at one place [um]


class CoveredDevices:
    """The findings on wires over and under the devices of one layout.

    Args:
        subject: The layout.
        groups: Its matched groups of transistors.
        coupling: Which nets are quiet, and which are loud.
    """

    def __init__(self, subject: Subject, groups: Sequence[MatchedDevices], coupling: Coupling) -> None:
        self.subject, self.groups, self.coupling = subject, groups, coupling

    def findings(self) -> Iterator[Remark]:
        """Yield all findings."""
        for group in self.groups:
            yield from self.covered(group)
            yield from self.busy_gates(group)
        yield from self.covered_alike()
        for group in self.coupling.groups:
            yield from self.through_group(group)
        for module in self.subject.roles.groups:
            stages = [module.devices] if module.type == "inverter" else module.properties.get("stages", ())
            for stage in stages:
                yield from self.over_logic(self.subject.devices(stage))
        for placed in self.subject.placed:
            if placed.device.type == "resistor":
                yield from self.over_resistor(placed)
            elif placed.device.type == "capacitor":
                yield from self.under_capacitor(placed)

    def over_resistor(self, placed: PlacedDevice) -> list[Remark]:
        """Return whether foreign signals run over a resistor, unless it is on a loud net itself."""
        subject, half = self.subject, self.subject.technology.to_dbu(_BANK_UM) // 2
        body = region_of(box.enlarged(half, half) for box in placed.boxes).merged().sized(-half)
        nets = set() if placed.ends & self.coupling.loud else {*subject.nets} - subject.supplies.nets - placed.ends
        return crossed(subject, body, nets, f"over resistor {placed.id}", [placed])

    def under_capacitor(self, placed: PlacedDevice) -> list[Remark]:
        """Return whether signals or the power run under a capacitor with no ground between.

        A bottom plate on a supply is a shield, but the nets that move are loaded by it. Diodes hold their net.
        """
        subject, technology, coupling = self.subject, self.subject.technology, self.coupling
        spec, ends = technology.passives.get(placed.fingers[0].device), placed.ends
        if spec is None or "bottom" not in spec.parts:
            return []
        lower, plates = technology.conductor(spec.parts["bottom"]).name, region_of(placed.boxes)
        below = {net for net in ends & {*subject.number} if not (subject.shapes(net, lower) & plates).is_empty()}
        body, near = plates, plates.sized(technology.to_dbu(_PLATE_UM))
        for net in below:
            body += (subject.shapes(net, lower) & near).interacting(plates)
        if ends <= subject.supplies.nets:
            return []
        if below & subject.supplies.nets:
            nets = coupling.moved
        else:
            nets = {net for net in subject.nets if not coupling.diodes(net)} - subject.supplies.nets
            nets |= {*subject.supplies.power}
        how = f"under capacitor {placed.id} ({', '.join(subject.in_order(ends))})"
        return crossed(subject, body.merged(), nets - ends, how, [placed], lower=lower)

    def through_group(self, group: MatchedDevices) -> list[Remark]:
        """Return whether foreign signals cross matched transistors, also their drains and sources."""
        subject = self.subject
        gates = {placed.device.terminals.get("g") for placed in group.devices}
        latch = gates == {placed.device.terminals.get("d") for placed in group.devices} and len(gates) > 1
        clocked = gates <= {*subject.roles.clocks, *self.coupling.loud} and not latch
        if not group.devices[0].device.is_mos or not group.is_ordered or clocked or self.coupling.enables(group):
            return []
        own = {net for placed in group.relatives for net in placed.device.terminals.values()}
        noisy = (
            ({*subject.roles.clocks} & self.coupling.loud if latch else self.coupling.loud | self.coupling.inputs)
            - own
            - self.coupling.biases
        )
        how, least = f"through {group.called}", 2 if group.spread else 1
        edges = noisy & self.coupling.loud - self.coupling.outputs if group.words == MIRROR else set[str]()
        severe = self._through(group.devices, edges, how, least=least, limit="coupling.edges")
        rest = noisy.difference(*(each.nets for each in severe))
        return severe + self._through(group.devices, rest, how, least=least)

    def _through(
        self, devices: Sequence[PlacedDevice], nets: AbstractSet[str], how: str, *, least: int = 1,
        gap_um: float = _BANK_UM, limit: str = "coupling.through",
    ) -> list[Remark]:  # fmt: skip
        """Return remarks on wires that cross the diffusions of some devices, or gaps between them up to a width."""
        half = self.subject.technology.to_dbu(gap_um) // 2
        bodies = self.subject.role("active").interacting(region_of(box for placed in devices for box in placed.boxes))
        blocks = bodies.extents(half).merged().sized(-half).each()
        blocks = (b for b in blocks if sum(b.inside(placed.box.center()) for placed in devices) >= least)
        found = (crossed(self.subject, kdb.Region(block), nets, how, devices, limit=limit) for block in blocks)
        return [each for block in found for each in block]

    def over_logic(self, stage: Sequence[PlacedDevice]) -> list[Remark]:
        """Return remarks on quiet wires over an inverter or the stage of a ring, which disturb what is above them."""
        own = {net for placed in stage for net in placed.device.terminals.values()}
        if not stage or not own & self.coupling.loud:
            return []
        return self._through(stage, self.coupling.quiet - own, f"over {names_of(stage)}", gap_um=0.0)

    def covered(self, group: MatchedDevices) -> list[Remark]:
        """Return whether foreign wires, or own ones above the straps, cover some devices more than others."""
        own = _nets_of(group)
        supplies = self.subject.supplies.nets & own
        kinds = [("foreign-over-gates", {*self.subject.nets} - own), ("foreign-over-gates.supply", supplies)]
        kinds += [("foreign-over-gates.supply", own - supplies)] * (group.words == PAIR)
        found = next(filter(None, (self._unlike_cover(group, name, nets) for name, nets in kinds)), [])
        return found or self._unlike_halves(group)

    def _unlike_halves(self, group: MatchedDevices) -> list[Remark]:
        """Return whether metal above the straps covers one half of an interleaved pair, with its dummies, alone."""
        subject, reach = self.subject, self.subject.technology.to_dbu(_GUARD_UM)
        if group.words != PAIR or not any(a.box.overlaps(b.box) for a, b in combinations(group.devices, 2)):
            return []
        hull = box_around(placed.box for placed in group.devices)
        near, middle = (hull.enlarged(reach, 0), hull.enlarged(0, reach)), hull.center()  # of the same rows
        gates = region_of([box for placed in group.devices for box in placed.boxes])
        gates += region_of(box for box in subject.idle_boxes if any(map(box.overlaps, near)))
        wires = self._over(gates, {*subject.nets} - (_nets_of(group) - subject.supplies.nets), {*subject.nets})
        over, around, found = sum(wires.values(), kdb.Region()).merged(), gates.bbox(), []
        for one, other, names in (
            (kdb.Box(around.left, around.bottom, middle.x, around.top),
             kdb.Box(middle.x, around.bottom, around.right, around.top), ("left", "right")),
            (kdb.Box(around.left, around.bottom, around.right, middle.y),
             kdb.Box(around.left, middle.y, around.right, around.top), ("lower", "upper")),
        ):  # fmt: skip
            halves = (kdb.Region(one), kdb.Region(other))
            (few, where), (many, there) = sorted(
                ((over & half).area() / max(1, (gates & half).area()), name)
                for half, name in zip(halves, names, strict=True)
            )
            found.append((many - few, many, there, where))
        apart, many, there, where = max(found)
        why = f"wires of {', '.join(subject.in_order(wires))} cover {100 * many:.3g} % of the gates in the {there} "
        why += f"half of {group.called}, and {100 * (many - apart):.3g} % of those in the {where} half"
        return subject.finding("foreign-over-gates.half", apart, why, devices=group.devices, nets=wires, cause="half")

    def _over(
        self, gates: kdb.Region, nets: AbstractSet[str], own: AbstractSet[str], above: int = _STRAPS
    ) -> dict[str, kdb.Region]:
        """Return where wires of some nets lie over gates, those of own nets above a level only."""
        found: dict[str, kdb.Region] = defaultdict(kdb.Region)
        for shape in self._wires.each_overlapping(gates.bbox()):
            level, number = divmod(shape.prop_id, len(self.subject.nets))
            net = self.subject.nets[number]
            if net in nets and (net not in own or level > above):
                found[net] += gates & kdb.Region(shape.polygon)
        return {net: region for net, region in found.items() if not region.is_empty()}

    def busy_gates(self, group: MatchedDevices) -> list[Remark]:
        """Return whether the wires of the drains and sources of a pair lie over much of its gates."""
        gates = {placed.device.terminals["g"] for placed in group.devices}
        nets = _nets_of(group) - gates if group.words == PAIR else set[str]()
        _, whole, seen = self._covered(group, nets, above=0)
        why = f"drain and source wires ({', '.join(self.subject.in_order(seen))}) run over {100 * whole:.3g} % of the "
        why += f"gate area of {group.called}: they couple what it drives to its gates"
        return self.subject.finding(
            "foreign-over-gates.own", whole, why, devices=group.devices, nets=seen, cause="own wires"
        )

    def covered_alike(self) -> Iterator[Remark]:
        """Yield the equal switches between signals, and mirror images in no group, that metal covers unlike.

        Of the metal over switches only supplies count.
        """
        subject, alike = self.subject, defaultdict(list)
        supplies, grouped = subject.supplies.nets, [{*group.devices} for group in self.groups]
        for placed in (placed for placed in subject.placed if placed.device.is_mos):
            if placed.id in subject.both_ways and not placed.ends & supplies:
                alike[placed.device.model, placed.device.w, placed.device.l].append(placed)
            for image in subject.images(placed):
                pair = MatchedDevices("counterparts", False, (placed, image), (placed, image))
                if placed.index < image.index and not any(own.issuperset(pair.devices) for own in grouped):
                    nets = {*subject.nets} - (_nets_of(pair) - supplies)
                    yield from self._unlike_cover(pair, "foreign-over-gates.supply", nets)
        for devices in (each for each in alike.values() if len(each) > 1):
            group = MatchedDevices("equal switches", False, tuple(devices), tuple(devices))
            yield from self._unlike_cover(group, "foreign-over-gates.supply", supplies)

    def _unlike_cover(self, group: MatchedDevices, name: str, nets: AbstractSet[str]) -> list[Remark]:
        """Return whether wires of some nets cover some devices of a group more than others."""
        (parts, whole, seen), foreign = self._covered(group, nets), name == "foreign-over-gates"
        if max(parts) - min(parts) <= _ALIKE * max(parts):
            return []
        return self.subject.finding(
            name,
            whole - min(parts) if foreign else max(parts) - min(parts),
            f"wires of {', '.join(self.subject.in_order(seen))} cover {100 * whole:.3g} % of the gates of "
            f"{group.called}, from {100 * min(parts):.3g} to {100 * max(parts):.3g} % per device",
            devices=group.devices,
            nets=seen,
            cause="" if foreign else name,
        )

    def _covered(
        self, group: MatchedDevices, nets: AbstractSet[str], *, above: int = _STRAPS
    ) -> tuple[list[float], float, set[str]]:
        """Return the covered share of each device, and of all; wires on own nets count above a level only."""
        every = region_of(box for placed in group.devices for box in placed.boxes)
        wires = self._over(every, nets, _nets_of(group), above)
        over = sum(wires.values(), kdb.Region()).merged()
        parts = [(region_of(placed.boxes) & over).area() / placed.area for placed in group.devices]
        return parts, over.area() / sum(placed.area for placed in group.devices), {*wires}

    @cached_property
    def _wires(self) -> kdb.Shapes:
        """The metal of all nets; a shape's property is the number of its net plus its level times the nets' count."""
        found, nets = kdb.Shapes(), self.subject.nets
        for level, conductor in enumerate(self.subject.technology.conductors):
            for number, net in enumerate(nets):
                for polygon in self.subject.shapes(net, conductor.name).each():
                    found.insert(kdb.PolygonWithProperties(polygon, number + level * len(nets)))
        return found


def crossed(  # noqa: PLR0913 - a wire, what it crosses, and the words of the finding
    subject: Subject,
    body: kdb.Region,
    nets: AbstractSet[str],
    how: str,
    devices: Sequence[PlacedDevice],
    *,
    lower: str = "",
    limit: str = "coupling.through",
) -> list[Remark]:
    """Return whether wires run across a body; of those below a conductor only what no ground shields from it counts."""
    shield, length, where, seen = kdb.Region(), 0, kdb.Box(), set[str]()
    names = [conductor.name for conductor in subject.technology.conductors]
    for name in reversed(names[: names.index(lower)] if lower else names):
        for net in [net for net in subject.nets if net in nets]:
            boxes = [piece.bbox() for piece in ((subject.shapes(net, name) & body) - shield).each()]
            if boxes:
                length += sum(map(longer_side, boxes))
                where += box_around(boxes)
                seen.add(net)
        for ground in subject.supplies.ground if lower else ():
            if ground in subject.number:
                shield += subject.shapes(ground, name)
    across, is_mos = min(body.bbox().width(), body.bbox().height()), devices[0].device.is_mos
    return subject.finding(
        limit if is_mos else "passives.noise",
        length / (max(across, subject.technology.to_dbu(_LEAST_WAY_UM)) if is_mos else across),
        f"wires of {', '.join(subject.in_order(seen))} run {subject.um(length):.3g} um {how}",
        where=where,
        devices=devices,
        nets=seen,
        cause=how.split(maxsplit=1)[0],
    )


def _nets_of(group: MatchedDevices) -> set[str]:
    """Return the nets of a group at the gates, drains and sources of all of its role."""
    return {net for placed in group.relatives for end, net in placed.device.terminals.items() if end != "b"}


class Taps(NamedTuple):
    """Taps that touch: their box, what is inside, and the contact that is joined to the port best. [dbu]

    ``most`` is the resistance from the port to it by the best way alone. [ohm]
    """

    box: kdb.Box
    devices: list[PlacedDevice]
    near: kdb.Box
    most: float

    @property
    def name(self) -> str:
        """What they surround, for a message."""
        return f"the taps around {names_of(self.devices)}" if self.devices else "taps"

    def terminals(self, conductor: str, net: int) -> dict[tuple[str, str], Feeds]:
        """Return the contact as the terminal of a device that has the name of their place."""
        return {(str(self.box), "near"): Feeds(net, {FeedPoint(conductor, self.near.left, self.near.bottom): 1.0})}


@kept
def far_taps(subject: Subject, net: str) -> list[Taps]:
    """Return the taps of a supply that a way of much resistance leads to."""
    if net not in subject.labels or subject.shapes(net, "contact").count() > MESH_CONTACTS:
        return []
    ways, first = from_ports(subject, net), subject.technology.conductors[0].name
    contacts, found = subject.shapes(net, "contact"), []
    for tap in (subject.shapes(net, "n_tap") + subject.shapes(net, "p_tap")).merged().each():
        points = (each.bbox().center() for each in (contacts & kdb.Region(tap)).each())
        known = [(ways.ohm(first, kdb.Box(point, point)), point.x, point.y) for point in points]
        near, x, y = min((each for each in known if each[0] is not None), default=(0.0, 0, 0))
        if near is not None and subject.limits["well-tap.feed"].beyond(near):
            inside = [placed for placed in subject.placed if tap.bbox().contains(placed.box.center())]
            found.append(Taps(tap.bbox(), inside, kdb.Box(x, y, x, y), near))
    return found


def tap_ways(subject: Subject, networks: Mapping[str, NetNetwork]) -> Iterator[Remark]:
    """Yield the supplies that reach taps by a way of much resistance.

    Args:
        subject: The layout.
        networks: The resistances of the supplies, to the contacts of ``far_taps`` as well.
    """
    for net in [net for net in subject.nets if net in networks and far_taps(subject, net)]:
        known = {each.device: each.ohm for each in networks[net].terminals if each.terminal == "near"}
        feed = [(ohm, taps) for taps in far_taps(subject, net) if (ohm := known.get(str(taps.box))) is not None]
        feed = [(min(ohm, taps.most), taps) for ohm, taps in feed]
        beyond = [each for each in feed if subject.limits["well-tap.feed"].beyond(each[0])]
        found = [
            (ohm, Spot(taps.box, _fed(subject, net, ohm, taps), f"{taps.name} ({ohm:.3g} ohm)")) for ohm, taps in beyond
        ]
        devices = list(dict.fromkeys(placed for _, taps in beyond for placed in taps.devices))
        yield from worst_first(subject, "well-tap.feed", found, devices=devices, nets=[net], cause=f"taps of {net}")


def _fed(subject: Subject, net: str, ohm: float, taps: Taps) -> str:
    first = subject.technology.conductors[0].name
    way = from_ports(subject, net).to(first, taps.near)
    if way is None:
        return ""
    low = [step.box for step in way.steps if step.conductor == first]
    rings = [(box, hole) for box, hole in rings_of(subject, net) if box != taps.box and any(map(box.overlaps, low))]
    through = [p for _, hole in rings for p in subject.placed if hole.inside(p.box.center()) and p not in taps.devices]
    words = f"{ohm:.3g} ohm lie between the port of {net} and {taps.name}: the best way has {way.words(subject)}"
    return words + f", and passes the ring of {names_of(through)}" * bool(through)


def joined_rings(subject: Subject) -> Iterator[Remark]:
    """Yield the rings of taps whose far end is far from where the supply joins them."""
    limit = subject.limits["well-tap.joined"]
    for net in [net for net in subject.nets if net in subject.labels and net in subject.supplies]:
        if subject.shapes(net, "contact").count() > MESH_CONTACTS:
            continue
        found: list[tuple[float, int, kdb.Box]] = []
        for ring in (subject.shapes(net, "n_tap") + subject.shapes(net, "p_tap")).merged().each():
            box = ring.bbox()
            if ring.holes() and limit.beyond(subject.um(box.width() + box.height())):
                joints = _joints_with(subject, net, ring)
                places = [each.bbox() for each in (subject.shapes(net, "contact") & kdb.Region(ring)).each()]
                if joints and places:
                    half = subject.technology.to_dbu(_ONE_PLACE_UM) // 2
                    number = region_of(joint.enlarged(half, half) for joint in joints).merged().count()
                    found.append((subject.um(_farthest(places, joints)), number, box))
        for far, number, box in found:
            inside = [placed for placed in subject.placed if box.contains(placed.box.center())]
            why = f"the ring of {net} around {names_of(inside)}" if inside else f"a ring of {net} around nothing"
            why += f" is joined to its supply at {number} place{'s' * (number > 1)} only, {far:.3g} um from its far end"
            yield from subject.finding(
                "well-tap.joined", far, why, where=box, devices=inside, nets=[net], cause=f"joined rings of {net}"
            )


def _joints_with(subject: Subject, net: str, ring: kdb.Polygon) -> list[kdb.Box]:
    """Return where metal that leads to a port without the ring joins its metal; nothing if the port is on it. [dbu]"""
    technology, first = subject.technology, subject.technology.conductors[0].name
    own = kdb.Region(ring).sized(technology.contact.size)
    metal = (subject.shapes(net, first) & own).merged()
    rest = Pieces(subject, net, whole=True, without={first: own})
    roots = [rest.at_point(name, point) for name, point, _ in subject.labels[net]]
    known = {number for root in roots if root is not None for number in rest.reached(root, rest.links.keys())}
    joints = [
        (kdb.Region(rest.pieces[number][1]).sized(1) & metal).bbox() for number in known
        if rest.pieces[number][0] == first
    ]  # fmt: skip
    for cut in (each for each in technology.cuts if technology.resolve(each.below) == first):
        above = technology.resolve(cut.above)
        vias = (via.bbox() for via in (subject.shapes(net, cut.name) & metal).each())
        joints += [via for via in vias if rest.at_point(above, via.center()) in known]
    return [joint for joint in joints if not joint.empty()] if None not in roots else []


def _farthest(places: Iterable[kdb.Box], joints: Sequence[kdb.Box]) -> float:
    """Return how far the farthest place is from the joint nearest to it. [dbu]"""
    left, bottom, right, top = np.array([(box.left, box.bottom, box.right, box.top) for box in joints]).T

    def nearest(place: kdb.Box) -> float:
        x = np.maximum(0, np.maximum(left - place.right, place.left - right))
        return float(np.hypot(x, np.maximum(0, np.maximum(bottom - place.top, place.bottom - top))).min())

    return max(map(nearest, places))
