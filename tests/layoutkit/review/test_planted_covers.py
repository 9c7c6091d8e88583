"""Findings about wires over channels, under plates and to ports: which devices lie below, which half, which way."""

import klayout.db as kdb
import pytest
from planted_layout import SIDE, WIRE, Planted, both, severities

from layoutkit.review.finding import shipped_limits
from layoutkit.review.room_and_wells import bare_rings
from layoutkit.review.subject import Subject
from layoutkit.technology import load

ROW = 1 + SIDE  # pitch of channels of 1 um


@pytest.mark.parametrize(("x", "named"), [(SIDE + 0.5, "XM1"), (SIDE + 3 * ROW + 0.5, "XM4")])
def test_only_transistors_whose_channels_lie_below_a_wire_are_named(x, named):
    """Four transistors share one diffusion, which a wire of another circuit crosses over one channel."""
    planted = Planted()
    nets = "abcde"
    for at in range(4):
        planted.mos(f"XM{at + 1}", "nmos", at * ROW, 0, 4, 1, f"{nets[at + 1]} g{at} {nets[at]} vss")
    for each in "bcd":  # drawn twice, at both transistors
        planted.ends[each].pop()
    planted.mos("XM9", "nmos", 40, 0, 4, 1, "y x vss vss")
    for track, net in enumerate(planted.ends):
        planted.comb(net, -4.0 if net == "vss" else 8.0 + track)
    planted.box("Metal4", x - WIRE / 2, -2, x + WIRE / 2, 20, "y")
    track = next(8.0 + at for at, net in enumerate(planted.ends) if net == "y")
    planted.box("Metal3", x - 0.2, track - WIRE / 2, 42, track + WIRE / 2, "y")
    planted.via3("y", x, track)
    (found,) = (f for f in planted.review().findings if "over transistors" in f.why and "y runs" in f.why)
    assert found.devices == (named,)


def crossed_pair():
    """Return a pair of four channels in two rows, each half at two corners, with its tail below."""
    planted = Planted()
    for x, y, d, g in (
        (0, 10, "outp", "inp"),
        (3, 10, "outn", "inn"),
        (0.4, 20, "outn", "inn"),
        (3.4, 20, "outp", "inp"),
    ):
        planted.mos(f"X{y}", "nmos", x, y, 4, 1, f"{d} {g} tail vss")
    planted.cards = [
        "M1 outp inp tail vss nfet_03v3 W=8u L=1u nf=2",
        "M2 outn inn tail vss nfet_03v3 W=8u L=1u nf=2",
    ]
    planted.mos("M3", "nmos", 1.5, 0, 4, 1, "tail bias vss vss")
    for net, track in {"outp": 28, "outn": 29, "inp": 30, "inn": 31, "tail": 7, "bias": -3, "vss": -5}.items():
        planted.comb(net, track, port=net != "tail")
    return planted


@both("foreign-over-gates.half", "should")
@pytest.mark.parametrize("alike", [False, True])
def test_a_supply_over_one_edge_of_a_crossed_pair(figure, expected, alike):
    """The strap covers both transistors alike, but one half of the gates only; a second one covers the other half."""
    planted = crossed_pair()
    for left in (True, False)[: 1 + alike]:
        edge, wide = 1.1 if left else 4.1, figure
        planted.box("Metal5", edge, 5, edge + wide, 27, "vss")
        planted.square("Via4", edge + wide / 2, 5.2, 0.02)
        planted.box("Metal4", -4, 5, 6, 5.4, "vss")
    planted.via3("vss", -3.5, 5.2)
    planted.box("Metal3", -3.7, -5, -3.3, 5.4, "vss")
    planted.box("Metal3", -3.7, -5 - WIRE / 2, 3, -5 + WIRE / 2, "vss")
    assert severities(planted.review(), "foreign-over-gates", "half of") == (set() if alike else expected)


@pytest.mark.parametrize(("y", "expected"), [(25, set()), (19.5, {"should"})])
def test_a_supply_over_a_dummy_counts_in_the_rows_of_the_pair(y, expected):
    """The dummy is to the side of the upper row, or above that."""
    planted = crossed_pair()
    planted.mos("MD", "nmos", -2.4, y, 4, 1, "vss vss vss vss")
    planted.box("Metal1", -2.4, y, -0.2, y + 4.8, "vss")
    planted.box("Metal1", -2.1, 4.9, -1.9, y + 1, "vss")
    planted.box("Metal5", -3, y - 1, 0.3, y + 5, "vss")
    planted.square("Via4", -2.8, y - 0.8, 0.02)
    planted.box("Metal4", -4, y - 1, -2.6, y - 0.6, "vss")
    planted.via3("vss", -3.5, y - 0.8)
    planted.box("Metal3", -3.7, -5, -3.3, y - 0.4, "vss")
    planted.box("Metal3", -3.7, -5 - WIRE / 2, 3, -5 + WIRE / 2, "vss")
    assert severities(planted.review(), "foreign-over-gates", "half of") == expected


@both("passives.noise", "should")
@pytest.mark.parametrize(("bottom", "net", "is_found"), [
    ("b", "x", True), ("b", "ib", False), ("vss", "in", True), ("vss", "x", False),
])  # fmt: skip
def test_a_signal_under_a_capacitor(figure, expected, bottom, net, is_found):
    """An inner node, or a bias that a diode holds, under plates on other nets; a bottom plate on ground is a shield.

    What comes from outside is loaded by the shield as well.
    """
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "x in vss vss")
    planted.mos("M2", "nmos", 4, 0, 4, 1, "y x vss vss")
    planted.mos("M3", "nmos", 8, 0, 4, 1, "ib ib vss vss")
    planted.mos("M4", "nmos", 12, 0, 4, 1, "z ib vss vss")
    planted.bar("R1", 20, 0, 1, 10, "x y", upright=False)
    planted.plate("C1", 80, 40, 5, f"a {bottom}")
    planted.label("a", "Metal5", 82, 42)
    for track, each in enumerate(planted.ends):
        planted.comb(each, -4.0 if each == "vss" else 8.0 + track, port=each != "x")
    if bottom == "b":
        planted.label("b", "Metal4", 79.5, 39.5)
    else:
        planted.box("Metal3", 0, -4 - WIRE / 2, 79.8, -4 + WIRE / 2, "vss")
        planted.via3("vss", 79.6, -4)
        planted.box("Metal4", 79.4, -4, 79.8, 40, "vss")
    track = next(8.0 + at for at, each in enumerate(planted.ends) if each == net)
    planted.box("Metal3", planted.ends[net][0][0], track - WIRE / 2, 95, track + WIRE / 2, net)
    planted.box("Metal3", 94.7, track, 95, 44, net)
    planted.box("Metal3", 85 - 5 * figure, 43.7, 95, 44, net)
    found = severities(planted.review(), "passives", f"wires of {net} run")
    assert found == (expected if is_found else set())


# ---- ways in and out


@both("wire-length.height", "should")
@pytest.mark.parametrize(("direction", "long", "is_found"), [("in", 60, True), ("out", 60, False), ("in", 20, False)])
def test_an_input_that_enters_far_from_the_height_of_its_gate(figure, expected, direction, long, is_found):
    """Its wire leads up along the left edge; an output may, and so may an input of a few micrometres."""
    planted = Planted()
    planted.mos("M1", "nmos", 5, 0, 4, 1, "out in vss vss")
    planted.mos("M2", "pmos", 10, 0, 4, 1, "out in vdd vdd")
    for net, track in (("out", 6), ("in", 5), ("vdd", 40)):
        planted.comb(net, track, port=net != direction)
    planted.comb("vss", -3, left=-5, right=long - 5)
    top = 4.6 + (figure * 60 if long == 60 else 6.5)
    planted.box("Metal4", -4.6, 5, -4.2, top, direction)
    track = 5 if direction == "in" else 6
    planted.box("Metal4", -4.6, track - 0.2, 8, track + 0.2, direction)
    planted.square("Via3", planted.ends[direction][0][0], track, 0.26)
    planted.label(direction, "Metal4", -4.4, top)
    found = severities(planted.review(limits={"wire-length.port": {"should": 9}}), "wire-length", "input in enters")
    assert found == (expected if is_found else set())


@pytest.mark.parametrize(("kind", "expected"), [("metal", {"should"}), ("poly", set()), ("far", set())])
def test_the_gates_of_an_inverter_are_one_line_of_poly(kind, expected):
    """Its transistors stand one above the other, or too far away from each other for one line."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 2, 0.5, "out in vss vss")
    planted.mos("M2", "pmos", 0, 16 if kind == "far" else 6, 2, 0.5, "out in vdd vdd")
    if kind == "poly":
        planted.box("Poly2", SIDE, 2, SIDE + 0.5, 7)
    for net, track in (("out", 22), ("in", 24), ("vss", -3), ("vdd", 26)):
        if net == "in":
            for x, y in planted.ends["in"]:
                planted.square("Via1", x, y, 0.26)
            planted.box("Metal2", SIDE + 0.1, 2, SIDE + 0.4, 24, "in")
            planted.label("in", "Metal2", SIDE + 0.25, 23.9)
        elif net == "out":
            planted.box("Metal1", 1.2, 1, 1.6, 17 if kind == "far" else 7, "out")
            planted.label("out", "Metal1", 1.4, 4)
        else:
            planted.comb(net, track)
    assert severities(planted.review(), "wire-length", "instead of poly") == expected


class Ring(Subject):
    """A ring of taps 20 x 10 um, 1 um wide, with metal over a share of it."""

    def __init__(self, technology, covered):
        self.technology, self.limits, self.answers = load(technology), shipped_limits(), {}
        self.nets, self.number = ["vss"], {"vss": 0}
        ring = kdb.Region(kdb.Box(0, 0, 20000, 10000)) - kdb.Region(kdb.Box(1000, 1000, 19000, 9000))
        metal = kdb.Region(kdb.Box(0, 0, round(covered * ring.area() / 1000), 1000))  # along the lower side
        first, second = (conductor.name for conductor in self.technology.conductors[:2])
        self.drawn = {"p_tap": ring, first: ring, second: metal}

    def shapes(self, _, layer):
        return self.drawn.get(layer, kdb.Region()).merged()


@both("well-tap.metal", "should")
@pytest.mark.parametrize(("technology", "resistive"), [("sky130A", True), ("gf180mcuD", False)])
def test_a_ring_of_local_interconnect_without_metal(figure, expected, technology, resistive):
    """The first conductor of the other process is metal itself. Metal of other nets does not count."""
    found = [*bare_rings(Ring(technology, 1 - figure))]
    assert all("no metal of that net over li1" in each.why for each in found)
    assert {each.severity for each in found} == (expected if resistive else set())


@pytest.mark.parametrize(("blocks", "expected"), [(2, {"should"}), (1, set())])
def test_a_ring_around_all_blocks_is_no_block(blocks, expected):
    """Two transistors with rings of their own stand in a large ring; that around one block is the block's."""
    planted = Planted()
    frames = [(-20, -20, 60, 30), (-4, -2, 7, 8), (34, -2, 45, 8)][: 1 + blocks]
    for left, bottom, right, top in frames:
        for box in ((left, bottom, right, bottom + 0.5), (left, top - 0.5, right, top),
                    (left, bottom, left + 0.5, top), (right - 0.5, bottom, right, top)):  # fmt: skip
            planted.box("COMP", *box)
            planted.box("Pplus", *box)
    planted.mos("M1", "nmos", 0, 0, 2, 0.5, "y x vss vss", 5)
    planted.mos("M2", "nmos", 36, 0, 2, 0.5, "z x vss vss", 5)
    for net, track in (("y", 12), ("z", 13), ("x", 14), ("vss", -10)):
        planted.comb(net, track)
    review = planted.review(limits={"room.few": {"must": None, "should": None}})
    assert severities(review, "room", "without a device") == expected


@pytest.mark.parametrize(("net", "expected"), [("a", {"should"}), ("b", set())])
def test_taps_of_a_chain_of_resistors_over_each_other(net, expected):
    """They lie over each other along the bank, between its bars; a bar joins b and c."""
    planted = Planted()
    for at, nets in enumerate(("a b", "c b", "c d")):
        planted.bar(f"R{at}", 4 * at, 0, 1, 20, nets)
    tracks = {"a": -4, "b": 24, "c": -6, "d": 26, "vss": -8}
    for each, track in tracks.items():
        planted.comb(each, track)
    for each, layer in ((net, "Metal4"), ("c", "Metal5")):
        low, high = sorted((tracks[each], 18 if tracks[each] < 0 else 2))
        planted.box(layer, 2.3, low - 0.2, 2.7, high + 0.2, each)
        planted.via3(each, 2.5, tracks[each])
        planted.box("Metal3", 0.3, tracks[each] - WIRE / 2, 5, tracks[each] + WIRE / 2, each)
    planted.square("Via4", 2.5, -6, 0.26)
    if net == "a":
        planted.erase("Metal4", 2, -7, 3, -5)
        planted.via3("c", 2.5, -6)
    assert severities(planted.review(), "coupling", f"{net} and c run along each other") == expected


@pytest.mark.parametrize(("factor", "direct", "expected"), [
    (0.9, False, {"should"}), (1.1, False, set()), (0.1, True, set()),
])  # fmt: skip
def test_a_way_between_neighbours_through_a_third(factor, direct, expected):
    """The drain of M1 reaches the gate beside it over a track far above, where the third pin is, or directly."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "n in vss vss")
    planted.mos("M2", "nmos", 10, 0, 4, 1, "y n vss vss")
    planted.mos("M3", "nmos", 5, 12, 4, 1, "z n vss vss")
    tracks = {"n": 20, "in": 8, "y": 10, "z": 18, "vss": -4}
    for net, track in tracks.items():
        planted.comb(net, track, left=-60 if net == "n" else None)
    ends = planted.ends["n"][:2]
    if direct:
        for x, _ in ends:
            planted.square("Via2", x, 6, 0.26)
        planted.box("Metal3", ends[0][0] - 0.2, 6 - WIRE / 2, ends[1][0] + 0.2, 6 + WIRE / 2, "n")
    up = sum(20 - y for _, y in ends)
    whole = planted.cell.dbbox()
    share = (up - (ends[1][1] - ends[0][1])) / max(whole.width(), whole.height())
    review = planted.review(limits={"wire-length.way": {"should": factor * share}})
    assert severities(review, "wire-length", "which lie") == expected
