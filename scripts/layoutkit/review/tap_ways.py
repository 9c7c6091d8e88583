"""Findings on the ways of supplies to taps: those of much resistance, and large rings that are joined at few places."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import klayout.db as kdb
import numpy as np

from layoutkit.parasitics.layout_circuit import FeedPoint, Feeds
from layoutkit.review.finding import Spot
from layoutkit.review.room_and_wells import rings_of
from layoutkit.review.subject import kept, names_of, region_of
from layoutkit.review.ways import MESH_CONTACTS, Pieces, from_ports

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from layoutkit.parasitics.net_network import NetNetwork
    from layoutkit.review.finding import Remark
    from layoutkit.review.subject import PlacedDevice, Subject

_ONE_PLACE_UM = 5.0  # joints of a ring that are nearer to each other are at one place [um]


class Taps(NamedTuple):
    """Taps that touch: their box, what is inside, and the contacts that are joined to the port best and worst. [dbu]

    ``most`` is the resistance from the port to the better one by the best way alone. [ohm]
    """

    box: kdb.Box
    devices: list[PlacedDevice]
    near: kdb.Box
    far: kdb.Box
    most: float

    @property
    def name(self) -> str:
        """What they surround, for a message."""
        return f"the taps around {names_of(self.devices)}" if self.devices else "taps"

    def terminals(self, conductor: str, net: int) -> dict[tuple[str, str], Feeds]:
        """Return both contacts as terminals of a device that has the name of their place."""
        places = (("near", self.near.p1), ("far", self.far.p1))
        return {(str(self.box), end): Feeds(net, {FeedPoint(conductor, at.x, at.y): 1.0}) for end, at in places}


@kept
def far_taps(subject: Subject, net: str) -> list[Taps]:
    """Return the taps of a supply that a way of much resistance leads to, or inside which there is much."""
    if net not in subject.labels or subject.shapes(net, "contact").count() > MESH_CONTACTS:
        return []
    ways, first = from_ports(subject, net), subject.technology.conductors[0].name
    contacts, found = subject.shapes(net, "contact"), []
    for tap in (subject.shapes(net, "n_tap") + subject.shapes(net, "p_tap")).merged().each():
        points = (each.bbox().center() for each in (contacts & kdb.Region(tap)).each())
        known = [(ways.ohm(first, kdb.Box(point, point)), point.x, point.y) for point in points]
        ohms = sorted((ohm, x, y) for ohm, x, y in known if ohm is not None)
        near, far = (ohms[0][0], ohms[-1][0]) if ohms else (0.0, 0.0)
        if subject.limits["well-tap.feed"].beyond(near) or subject.limits["well-tap.along"].beyond(far - near):
            inside = [placed for placed in subject.placed if tap.bbox().contains(placed.box.center())]
            best, worst = (kdb.Box(x, y, x, y) for _, x, y in (ohms[0], ohms[-1]))
            found.append(Taps(tap.bbox(), inside, best, worst, near))
    return found


def tap_ways(subject: Subject, networks: Mapping[str, NetNetwork]) -> Iterator[Remark]:
    """Yield the supplies that reach taps by a way of much resistance, and rings whose far end little metal joins.

    Args:
        subject: The layout.
        networks: The resistances of the supplies, to the contacts of ``far_taps`` as well.
    """
    for net in [net for net in subject.nets if net in networks and far_taps(subject, net)]:
        ohm = {(each.device, each.terminal): each.ohm for each in networks[net].terminals}
        known = [(ohm.get((str(t.box), "near")), ohm.get((str(t.box), "far")), t) for t in far_taps(subject, net)]
        measured = [(near, far, taps) for near, far, taps in known if near is not None and far is not None]
        feed = [(min(near, taps.most), taps) for near, _, taps in measured]
        yield from _worst_taps(subject, net, "well-tap.feed", feed)
        yield from _worst_taps(subject, net, "well-tap.along", [(far - near, taps) for near, far, taps in measured])


def _worst_taps(subject: Subject, net: str, limit: str, figures: Iterable[tuple[float, Taps]]) -> list[Remark]:
    """Return the worst taps of a supply beyond a limit, with the places of the others. [ohm]"""
    beyond = [each for each in figures if subject.limits[limit].beyond(each[0])]
    order = sorted(beyond, key=lambda each: (-float(f"{each[0]:.4g}"), each[1].box.left, each[1].box.bottom))
    if not order:
        return []
    whys = [_fed(subject, net, *each) if limit == "well-tap.feed" else _along(subject, net, *each) for each in order]
    others = zip(order[1:], whys[1:], strict=True)
    spots = [Spot(each.box, why, f"{each.name} ({ohm:.3g} ohm)") for (ohm, each), why in others]
    devices = {placed.index: placed for _, each in order for placed in each.devices}
    return subject.finding(
        limit, order[0][0], whys[0], where=order[0][1].box, devices=list(devices.values()), nets=[net], places=spots,
        cause=f"{limit} {net}",
    )  # fmt: skip


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


def _along(subject: Subject, net: str, ohm: float, taps: Taps) -> str:
    first = subject.technology.conductors[0].name
    return f"of {taps.name} on {net}, the far end is joined only by {first}, {ohm:.3g} ohm from the end that is fed"


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
