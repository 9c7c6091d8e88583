"""What the review says of ways of currents that no channel decides, and of thin links, on planted layouts."""

import re

import klayout.db as kdb
import pytest
from planted_layout import GF, WIRE, Planted, both, limit, severities

from layoutkit.review.ways import Ways

METAL3 = GF.conductor("Metal3")
TAPS = "ohm lie between the port of vss and the taps around M1"


def ringed(length):
    """Return a transistor in a ring of taps that a thin wire of Metal3 leads to from the port, so long."""
    planted = Planted()
    for layer in ("COMP", "Pplus", "Contact", "Metal1"):
        planted.erase(layer, -3, 4, -1, 6)  # the tap that it begins with
    planted.mos("M1", "nmos", 0, 0, 4, 1, "out in src vss")
    for box in ((-3, -3, 6, -2.5), (-3, 7, 6, 7.5), (-3, -2.5, -2.5, 7), (5.5, -2.5, 6, 7)):
        planted.box("COMP", *box)
        planted.box("Pplus", *(side + by for side, by in zip(box, (-0.1, -0.1, 0.1, 0.1), strict=True)))
        planted.box("Metal1", *box, "vss")
    for x in range(-2, 6):
        planted.square("Contact", x, -2.75, 0.22)
    planted.ends["vss"] = [(0, -2.75)]
    for net, track in (("out", 12), ("in", 13), ("src", 14)):
        planted.comb(net, track)
    planted.comb("vss", -6, left=-length)
    planted.tap("nmos", "vss", -length, -9)  # at the port
    planted.ends["vss"] = [(-length, -9)]
    planted.comb("vss", -6, left=-length - 0.2, right=-length + 0.2, width=1, port=False)
    return planted


@both("well-tap.feed", "should")
def test_taps_behind_a_long_wire(figure, expected):
    start = next(each for each in ringed(500).review().findings if TAPS in each.why)
    length = 500 + (figure - start.measured) * WIRE / METAL3.sheet_ohm
    review = ringed(length).review()
    found = [each for each in review.findings if TAPS in each.why]
    assert severities(review, "well-tap", TAPS) == expected
    assert all("um of Metal3" in each.why and each.devices == ("M1",) for each in found)


def test_two_ways_to_taps_count_together():
    """The best way alone has more than the limit, both together have less."""
    planted = ringed(500)
    planted.ends["vss"] = [(0, -2.75)]
    planted.comb("vss", -7, left=-500, port=False)
    planted.box("Metal3", -500, -7, -499.5, -6, "vss")
    limits = {"well-tap.feed": {"should": 100.0}}
    assert severities(ringed(500).review(limits=limits), "well-tap", TAPS) == {"should"}
    assert not severities(planted.review(limits=limits), "well-tap", TAPS)


def joined(far, at_top=False):
    """Return a ring whose lower side a wire joins, so far from a contact on its upper side, and there as well."""
    planted, top = ringed(20), far - 2.76
    for layer in ("COMP", "Pplus", "Metal1"):
        planted.erase(layer, -2.4, 6.8, 5.4, 7.7)
    for box in ((-3, top, 6, top + 0.5), (-3, 7, -2.5, top), (5.5, 7, 6, top)):
        planted.box("COMP", *box)
        planted.box("Pplus", *(side + by for side, by in zip(box, (-0.1, -0.1, 0.1, 0.1), strict=True)))
        planted.box("Metal1", *box, "vss")
    planted.square("Contact", 0, top + 0.25, 0.22)
    if at_top:
        planted.ends["vss"] = [(0, top + 0.25)]
        planted.comb("vss", top + 3, left=-20, port=False)
        planted.box("Metal3", -20.2, -6, -19.8, top + 3, "vss")
    return [e for e in planted.review().findings if "is joined to its supply" in e.why]


@both("well-tap.joined", "should")
def test_the_far_end_of_a_ring_from_where_its_supply_joins_it(figure, expected):
    found = joined(figure)
    assert {each.severity for each in found} == expected
    assert all(each.measured == pytest.approx(figure, abs=0.1) and each.devices == ("M1",) for each in found)


def test_a_ring_that_is_joined_at_both_sides():
    far = 1.1 * limit("well-tap.joined", "should")
    assert joined(far)
    assert not joined(far, at_top=True)


class Metal:
    """The metal of one net as the ways through it need it."""

    def __init__(self, boxes):
        self.technology, self.answers = GF, {}
        self.region = kdb.Region([kdb.Polygon(box) for box in boxes])

    def metal(self, _):
        return {"Metal3": self.region.merged()}

    def shapes(self, _, layer):
        return self.region.merged() if layer == "Metal3" else kdb.Region()


def test_a_way_takes_the_shorter_side_of_a_ring_and_knows_its_resistance():
    """A wire 1 um wide around 30 x 10 um; from the middle of the left side to that of the right one."""
    outer, inner = kdb.Region(kdb.Box(0, 0, 30000, 10000)), kdb.Region(kdb.Box(1000, 1000, 29000, 9000))
    ring = [piece.bbox() for piece in (outer - inner).decompose_trapezoids_to_region().each()]
    start, end = (kdb.Box(x, 3000, x, 3000) for x in (500, 29500))
    way = Ways(Metal(ring), "n", [("Metal3", start)]).to("Metal3", end)
    assert way.length == 2 * 2000 + 28000
    assert way.ohm == pytest.approx(METAL3.sheet_ohm * way.length / 1000, rel=0.01)
    assert way.box.bottom < 1000 < way.box.top < 4000


def linked(width, *, current=True, length=30):
    """Return a strong transistor whose drain leads to the port by a wire so wide, from a strap of 2 um."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "out in vss vss", fingers=4)
    planted.comb("in", 7)
    planted.comb("vss", -4, width=2)
    planted.comb("out", 12, width=2, port=False)
    right = max(x for x, _ in planted.ends["out"])
    planted.box("Metal3", right, 12 - width / 2, right + length, 12 + width / 2, "out")
    planted.label("out", "Metal3", right + length - 0.1, 12)
    may = METAL3.current_ma(width) * 1e-3
    return planted, {"device_currents": [{"device": "M1", "current": (0.5 if current else 0.1) * may}]}


@both("electromigration.thin", "should")
def test_a_thin_link_of_wide_straps(figure, expected):
    planted, asked = linked(2 / figure)
    review = planted.review(constraints=asked)
    words = "its widest strap is 2 um of Metal3"
    assert severities(review, "electromigration", words) == expected
    assert not severities(review, "dead-metal", "times the minimum width")


def test_a_thin_link_that_carries_next_to_nothing_is_thin_enough():
    planted, asked = linked(WIRE, current=False)
    assert not severities(planted.review(constraints=asked), "electromigration", "its widest strap")


@pytest.mark.parametrize(("squares", "expected"), [(9, set()), (12, {"should"})])
def test_a_short_thin_link_that_carries_half_of_what_it_may(squares, expected):
    """The less it carries, the longer it may be: five squares of a wire that carries all it may, ten of one of half."""
    planted, asked = linked(0.3, length=0.3 * squares)
    assert severities(planted.review(constraints=asked), "electromigration", "its widest strap") == expected
    planted, asked = linked(0.3, length=0.3 * squares, current=False)
    assert not severities(planted.review(constraints=asked), "electromigration", "its widest strap")


@pytest.mark.parametrize(("squares", "part", "source", "expected"), [
    (9, 0.15, "t", {"should"}), (3, 0.15, "t", set()), (9, 0.08, "t", set()), (9, 0.15, "vss", set()),
])  # fmt: skip
def test_a_short_thin_link_between_a_pair_and_its_tail(squares, part, source, expected):
    """From about five squares and a tenth of what it may carry on; two transistors with other sources are no pair."""
    planted, x = Planted(), 40 - 0.3 * squares
    planted.mos("M1", "nmos", 0, 0, 4, 1, f"{'on' if source == 't' else 't'} ip {source} vss")
    planted.mos("M2", "nmos", x - 6, 0, 4, 1, f"{'op' if source == 't' else 't'} in {source} vss")
    planted.mos("M3", "nmos", 40, 0, 4, 1, "t b vss vss")
    near = [end for end in planted.ends["t"] if end[0] < x]
    far = [end for end in planted.ends["t"] if end[0] >= x]
    left, right = max(place for place, _ in near), min(place for place, _ in far)
    planted.comb("t", 12, left=-1, right=left + 1, width=2, port=False)
    planted.box("Metal3", right - 0.5, 11, right + 1, 13, "t")
    planted.box("Metal2", right - 0.2, 3, right + 1.8, 13, "t")
    middle = right - 0.5 - 0.3 * squares
    planted.box("Metal3", left, 11, middle, 13, "t")
    planted.box("Metal4", middle - 0.4, 11.85, right - 0.1, 12.15, "t")
    for x in (middle - 0.2, right - 0.3):
        planted.square("Via3", x, 12, 0.26)
    for number, net in enumerate(("ip", "in", "b", "vss", "on", "op")):
        if net in planted.ends:
            planted.comb(net, -4 - number)
    asked = {"device_currents": [{"device": "M3", "current": part * METAL3.current_ma(0.3) * 1e-3}]}
    assert severities(planted.review(constraints=asked), "electromigration", "its widest strap") == expected


def plated(loop, second=False):
    """Return a transistor whose drain a wire joins to the far side of a plate, so much farther to the right and back.

    A second plate of that size can be where the wire begins.
    """
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "x in vss vss")
    for number in range(1 + second):
        left = -20 * number
        planted.plate(f"C{number + 1}", left, 20, 5, "x vss")
        planted.box("Metal4", left + 3.8, -6.2, left + 4.2, 19.5, "vss")
        planted.via3("vss", left + 4, -6)
    planted.comb("in", 6)
    planted.comb("x", 8, left=-20, right=10 + loop)
    planted.comb("vss", -6, left=-20, right=10)
    for x in [10 + loop, -17] if second else [10 + loop]:
        planted.via3("x", x, 8)
        planted.square("Via4", x, 8, 0.26)
        planted.box("Metal5", x - 0.2, 7.8, x + 0.2, 22.7, "x")
    planted.box("Metal5", 4, 22.3, 10 + loop, 22.7, "x")
    return planted


@both("wire-length.plate", "should")
def test_a_plate_that_a_wire_reaches_by_a_detour(figure, expected):
    words, tiny = "though the plate lies", {"wire-length.plate": {"should": 1e-3}}
    found = [each for each in plated(10).review(limits=tiny).findings if words in each.why]
    assert [each.devices for each in found] == [("C1",)]
    loop = 10 + (figure - found[0].measured) / 2
    assert severities(plated(loop).review(), "wire-length", words) == expected


def test_of_equal_plates_on_one_net_the_nearest_one_counts():
    loop = limit("wire-length.plate", "should")
    assert severities(plated(loop).review(), "wire-length", "though the plate lies")
    assert not severities(plated(loop, second=True).review(), "wire-length", "though the plate lies")


def ohms_to_plate(loop, limits):
    words = "the port of x and the plates of C1"
    return [e.measured for e in plated(loop).review(limits=limits).findings if words in e.why]


@both("wire-resistance.plate", "should")
def test_a_plate_behind_much_resistance(figure, expected):
    """20 um more have the resistance of so much Metal3 and Metal5."""
    (less,), (more,) = (ohms_to_plate(loop, {"wire-resistance.plate": {"should": 1e-3}}) for loop in (40, 60))
    assert more - less == pytest.approx(
        20 * (METAL3.sheet_ohm / WIRE + GF.conductor("Metal5").sheet_ohm / 0.4), rel=0.01
    )
    stated = more * limit("wire-resistance.plate", "should") / figure
    assert bool(ohms_to_plate(60, {"wire-resistance.plate": {"should": stated}})) == bool(expected)


def alone(squares, ampere):
    """Return one channel whose ground comes by a wire of so many squares."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "out in vss vss")
    planted.comb("out", 8)
    planted.comb("in", 6.5)
    planted.comb("vss", 3.7 - 0.26 - squares * WIRE)
    return planted.review(constraints={"device_currents": [{"device": "M1", "current": ampere}]})


@both("supply-drop.alone", "should")
def test_one_channel_behind_a_very_long_wire(figure, expected):
    assert severities(alone(figure, 1e-5), "supply-drop", "1 channel") == expected


def test_a_wire_that_loses_under_a_microvolt_is_wide_enough():
    squares = 1.5 * limit("supply-drop.alone", "should")
    lost = 1e-6 / (squares * GF.conductor("Metal2").sheet_ohm)
    assert severities(alone(squares, 1.1 * lost), "supply-drop", "1 channel") == {"should"}
    assert not severities(alone(squares, 0.9 * lost), "supply-drop", "1 channel")


def round_about(loop, straight=False):
    """Return a source 6 um above its rail that a wire leads to, up and down again over so much, or straight as well."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "out in vss vss")
    ends = planted.ends["vss"]
    x, y = ends[-1]
    planted.ends["vss"] = [end for end in ends if end != ends[-1]]
    planted.comb("out", 6)
    planted.comb("in", 7)
    planted.comb("vss", -3, left=-3, right=30, width=1)
    planted.column("vss", x, y, y + loop)
    planted.box("Metal3", x - 0.2, y + loop - WIRE / 2, 20.2, y + loop + WIRE / 2, "vss")
    planted.box("Metal4", 19.8, -3, 20.2, y + loop + 0.2, "vss")
    for track in (-3, y + loop):
        planted.square("Via3", 20, track, 0.26)
    if straight:
        planted.column("vss", x, y, -3)
    words, tiny = "by a detour", {"supply-drop.detour": {"should": 0.1}}
    return planted, [e for e in planted.review(limits=tiny).findings if words in e.why]


@both("supply-drop.detour", "should")
def test_a_source_that_its_rail_reaches_by_a_detour(figure, expected):
    """At five times the limit, so that the detour is long enough."""
    short, long = (round_about(loop)[1][0].measured for loop in (10, 30))
    loop = 10 + 20 * (figure * 5 - short) / (long - short)
    planted, _ = round_about(loop)
    limits = {"supply-drop.detour": {"should": 5 * limit("supply-drop.detour", "should")}}
    assert severities(planted.review(limits=limits), "supply-drop", "by a detour") == expected


def test_a_source_with_a_straight_way_beside_a_detour_has_no_detour():
    assert round_about(20)[1]
    assert not round_about(20, straight=True)[1]


@both("supply-drop.round", "should")
def test_a_detour_that_is_short_beside_the_layout_is_none(figure, expected):
    """Metal far away makes the layout as long as the share of the detour asks for."""
    planted, (found,) = round_about(30)
    whole, least = (float(each) for each in re.findall(r"([\d.]+) um(?:, mostly| would do)", found.why))
    planted.box("Metal5", -3, 60, -3 + (whole - least) / figure, 61)
    assert severities(planted.review(), "supply-drop", "by a detour") == expected
