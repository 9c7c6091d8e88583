"""Units of matched groups in their order and where they belong; joints, rings and taps of single transistors."""

import pytest
from planted_layout import SIDE, Planted, both, limit, pair, severities, wired


def tracks(planted, first=50.0, ports=()):
    for track, net in enumerate(planted.ends):
        planted.comb(net, first + track, port=net in {"vss", "vdd", *ports})
    return planted


def in_a_row(second, third):
    """Return a mirror whose reference, M1, is at 0, and its copies at these places, each beside it."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 0.4, "ref ref vss vss")
    for name, x, y in (("M2", second, -3.5), ("M3", third, 3.5)):
        planted.mos(name, "nmos", x, y, 4, 0.4, f"o{name} ref vss vss")
    return tracks(planted, ports=("ref", "oM2", "oM3")).review()


@both("group-apart.order", "should")
def test_the_copies_of_a_reference_at_one_side_of_it(figure, expected):
    assert severities(in_a_row(4, 4 + figure), "group-apart", "on one side") == expected
    assert severities(in_a_row(-4, 4 + figure), "group-apart", "on one side") == set()


@both("group-unlike.edge", "should")
def test_a_mirror_near_the_edge_of_its_well(figure, expected):
    """The well begins so far below the channels; transistors that match nothing may lie there."""

    def review(gate):
        planted = Planted()
        planted.mos("M1", "pmos", 0, 0, 4, 1, "ref ref vdd vdd")
        planted.mos("M2", "pmos", 6, 0, 4, 1, f"out {gate} vdd vdd")
        planted.box("Nwell", -5, -figure, 20, 8)
        return tracks(planted, ports=("ref", "out", "in")).review()

    assert severities(review("ref"), "group-unlike", "edge of a well") == expected
    assert severities(review("in"), "group-unlike", "edge of a well") == set()


@pytest.mark.parametrize("what", ["stage", "diode", "other"])
@both("group-apart.replica", "should")
def test_a_second_stage_or_a_diode_away_from_the_loads_of_its_kind(figure, expected, what):
    """M6 lies so far above M5; a diode on the other rail follows nothing."""
    planted, gate = pair(), "outp" if what == "stage" else "b"
    planted.mos("M4", "pmos", -8, 30, 2, 1, f"outp {gate} vdd vdd", 2)
    planted.mos("M5", "pmos", 9, 30, 2, 1, f"outn {gate} vdd vdd", 2)
    if what == "other":
        planted.mos("M6", "nmos", 9.4, 32 + figure, 2, 1, "z z vss vss", 2)
    else:
        planted.mos("M6", "pmos", 9.4, 32 + figure, 2, 1, f"z {'outn' if what == 'stage' else 'z'} vdd vdd", 2)
    review = wired(planted, vdd=55.0, z=57.0, b=59.0).review()
    assert severities(review, "group-apart", "of the same kind") == (set() if what == "other" else expected)


@pytest.mark.parametrize(
    ("gap", "wide", "fingers", "middle", "expected"),
    [
        (2.0, 4, 1, "n", {"should"}),
        (-SIDE, 4, 1, "n", set()),  # on one diffusion
        (2.0, 3, 1, "n", set()),
        (2.0, 4, 2, "n", set()),
        (2.0, 4, 1, "vdd", set()),
        (11.0, 4, 1, "n", set()),
    ],
)
def test_channels_in_series_on_a_diffusion_each(gap, wide, fingers, middle, expected):
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, f"{middle} a vss vss")
    planted.mos("M2", "nmos", 1 + 2 * SIDE + gap, 0, wide, 1, f"y b {middle} vss", fingers)
    planted.mos("M3", "pmos", 40, 0, 4, 1, "y c vdd vdd")
    assert severities(tracks(planted, ports=("a", "b", "c", "y")).review(), "room", "share no diffusion") == expected


@pytest.mark.parametrize(("bias", "expected"), [("b", set()), ("other", {"should"})])
def test_a_mirror_and_its_cascodes_are_a_row_each(bias, expected):
    """With a gate of its own the upper transistor of the copy is no cascode, but one in series."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "x i vss vss")
    planted.mos("M2", "nmos", 4.5, 0, 4, 1, "y i vss vss")
    planted.mos("M3", "nmos", 9, 0, 4, 1, "i b x vss")
    planted.mos("M4", "nmos", 13.5, 0, 4, 1, f"o {bias} y vss")
    review = tracks(planted, ports=("i", "o", "b", "other")).review()
    assert severities(review, "room", "share no diffusion") == expected


def test_channels_that_pull_one_net_are_not_in_series():
    planted = Planted()
    for name, x, nets in (("M1", 0, "y a vss vss"), ("M2", 6, "y b vss vss"), ("M4", 24, "o y vss vss")):
        planted.mos(name, "nmos", x, 0, 4, 1, nets)
    for name, x, nets in (("M3", 14, "y c vdd vdd"), ("M5", 30, "o y vdd vdd")):
        planted.mos(name, "pmos", x, 0, 4, 1, nets)
    review = tracks(planted, ports=("a", "b", "c", "o")).review()
    assert severities(review, "room", "M1, M2 meet at y, but share no diffusion there") == {"should"}


@both("rings.share", "should")
def test_a_ring_larger_than_what_it_encloses(figure, expected):
    assert severities(in_a_ring(figure, 1), "rings", "of the area of the 1 ring around them") == expected


@pytest.mark.parametrize(("rings", "expected"), [(12, {"should"}), (13, {"must"})])
def test_rings_that_are_all_but_empty(rings, expected):
    """Large rings around a few devices take room; one around each of many devices is what spoils a layout."""
    review = in_a_ring(0.95 * limit("rings.share", "must"), rings)
    assert severities(review, "rings", f"of the area of the {rings} rings around them") == expected
    review = in_a_ring(1.05 * limit("rings.share", "must"), rings)
    assert severities(review, "rings", f"of the area of the {rings} rings around them") == {"should"}


def in_a_ring(figure, rings):
    """Review transistors that are each in a ring with an outline of 21 x 21 um.

    A transistor and its gate have 9.68 um2, other diffusion the rest of the figure.
    """
    planted = Planted()
    for number in range(rings):
        x = 30 * number
        for layer, more in (("COMP", 0.0), ("Pplus", 0.1)):
            planted.box(layer, x - more, 0 - more, x + 21 + more, 21 + more)
            planted.erase(layer, x + 0.5 + more, 0.5 + more, x + 20.5 - more, 20.5 - more)
        for layer in ("COMP", "Nplus"):
            planted.box(layer, x + 5, 2, x + 19, 2 + (441 * figure - 9.68) / 14)
        planted.mos(f"M{number}", "nmos", x + 1.6, 5, 4, 1, f"out{number} in vss vss")
    return tracks(planted, ports=("in", *(f"out{number}" for number in range(rings)))).review()


@both("rings.taps", "should")
def test_a_channel_far_from_the_next_tap(figure, expected):
    """The only tap ends at x = -1.75; what is off needs none."""
    for gate, found in (("in", expected), ("vss", set())):
        planted = Planted()
        planted.mos("M1", "nmos", 4, 0, 4, 0.5, "y x vss vss")
        planted.mos("M2", "nmos", figure - 1.75 - 1 - SIDE, 10, 4, 1, f"out {gate} vss vss")
        review = tracks(planted, ports=("out", "in", "x", "y")).review()
        assert severities(review, "rings", "from the nearest tap") == found
    nowhere = tracks(planted, ports=("out", "in", "x", "y")).review(limits={"rings.taps": {"must": None, "should": 0}})
    assert severities(nowhere, "rings", "from the nearest tap") == {"should"}


@pytest.mark.parametrize(("kind", "expected"), [("pmos", {"should"}), ("nmos", set())])
def test_a_tap_of_another_body_is_none(kind, expected):
    """Beside M2 is a tap of the well of M3, or of the substrate."""
    planted, far = Planted(), 1.5 * limit("rings.taps", "should")
    planted.mos("M1", "nmos", 4, 0, 4, 0.5, "y x vss vss")
    planted.mos("M2", "nmos", far, 10, 4, 1, "out in vss vss")
    planted.mos("M3", "pmos", far + 6, 10, 4, 0.5, "y x vdd vdd")
    if kind == "nmos":
        planted.tap("nmos", "vss", far + 4, 10)
    review = tracks(planted, ports=("out", "in", "x", "y")).review()
    found = {e.severity for e in review.findings if "from the nearest tap" in e.why and "M2" in e.devices}
    assert found == expected


@pytest.mark.parametrize(("fingers", "expected"), [(6, set()), (16, {"should"})])
def test_a_channel_far_from_the_tap_of_its_well(fingers, expected):
    """The only tap of the well is to the right of all channels."""
    planted = Planted()
    planted.mos("M1", "nmos", 1, 0, 4, 0.5, "y x vss vss")
    planted.mos("M2", "pmos", 8, 0, 4, 0.5, "out in vdd vdd", fingers)
    review = tracks(planted, ports=("out", "in", "x", "y")).review()
    assert severities(review, "rings", "from the nearest tap") == expected


@both("flow-order.parts", "should")
@pytest.mark.parametrize("gate", ["in", "other"])
def test_an_inverter_with_a_switch_at_each_source(figure, expected, gate):
    """M1 and M2 are so far apart, on one gate and one drain; with another gate they are no inverter."""
    planted = Planted()
    planted.mos("M0", "nmos", -6, 0, 4, 1, "a en vss vss")
    planted.mos("M1", "nmos", 0, 0, 4, 1, "out in a vss")
    planted.mos("M2", "pmos", 1 + figure, 0, 4, 1, f"out {gate} b vdd")
    planted.mos("M3", "pmos", 20, 0, 4, 1, "b enb vdd vdd")
    review = tracks(planted, ports=("out", "in", "other", "en", "enb")).review()
    assert severities(review, "flow-order", "parts of one function") == (expected if gate == "in" else set())


@pytest.mark.parametrize(
    ("gate", "width", "expected"), [("outn", 4, {"should"}), ("outp", 4, set()), ("outn", 5, set())]
)
def test_the_diodes_that_load_one_pair(gate, width, expected):
    """With the gate on the other output they are a mirror, of unlike sizes no loads of one kind; never severe."""
    planted = pair()
    planted.mos("M4", "pmos", -8, 30, 2, 1, "outp outp vdd vdd", 2)
    planted.mos("M5", "pmos", 14, 30, width, 1, f"outn {gate} vdd vdd")
    review = wired(planted, vdd=45.0).review()
    assert severities(review, "group-apart", "load diodes M4, M5") == expected
    assert severities(review, "group-unlike", "load diodes M4, M5 are 2, 4 um wide") == expected


@both("passives.apart", "should")
@pytest.mark.parametrize("long", [10, 12])
def test_equal_resistors_without_a_common_net(figure, expected, long):
    planted = Planted()
    for name, x, length in (("R1", 0, 10), ("R2", 1 + figure, long)):
        planted.bar(name, x, 0, 1, length, f"a{name} b{name}")
    planted.mos("M1", "nmos", 40, 0, 4, 1, "y bR1 aR2 vss")  # which makes them no images of each other
    for track, net in enumerate(planted.ends):
        planted.comb(net, -8.0 - track if net[0] == "a" else 20.0 + track)
    assert severities(planted.review(), "passives", "equal resistors") == (expected if long == 10 else set())


@pytest.mark.parametrize(("places", "expected"), [((0, 8), set()), ((8, 9.5, 11), {"should"})])
def test_dummies_all_around_bars(places, expected):
    """Two bars between dummies at both sides, above and below are in a frame; in two rows at one side they are not."""
    planted = Planted()
    planted.bar("R1", 3, 0, 1, 10, "a m")
    planted.bar("R2", 5, 0, 1, 10, "b m")
    above = [(x, y) for x in (3.5, 5.5) for y in (-8, 13)] if len(places) == 2 else []
    for number, (x, y) in enumerate([*((x, 0) for x in places), *above]):
        planted.bar(f"RD{number}", x, y, 1, 10 if not y else 5, "vss vss")
    for net, track in {"a": -14.0, "b": -15.0, "m": 30.0, "vss": -18.0}.items():
        planted.comb(net, track)
    assert severities(planted.review(), "passives", "dummies around") == expected


@pytest.mark.parametrize(("source", "expected"), [("x", {"should"}), ("vss", set())])
def test_a_supply_over_one_of_two_equal_switches(source, expected):
    """What joins a node with a supply is wired to it: nothing that must match another one."""
    planted = Planted()
    for number, other in enumerate(("y", source)):
        planted.mos(f"MN{number}", "nmos", 12 * number, 0, 4, 0.5, f"c{number} p{number} {other} vss")
        planted.mos(f"MP{number}", "pmos", 12 * number + 5, 0, 4, 0.5, f"c{number} q{number} {other} vdd")
    planted.box("Metal5", 12, 1, 14, 3, "vss")
    planted.square("Via4", 12.5, -8, 0.26)
    planted.box("Metal5", 12, -8.3, 13, 3, "vss")
    planted.square("Metal4", 12.5, -8, 0.5, "vss")
    planted.square("Via3", 12.5, -8, 0.26)
    for track, net in enumerate(net for net in planted.ends if net != "vss"):
        planted.comb(net, 20.0 + track)
    planted.comb("vss", -8.0, right=20)
    assert severities(planted.review(), "foreign-over-gates", "equal switches MN0, MN1") == expected


@pytest.mark.parametrize(
    ("width", "others", "expected"), [(16, 7, {"should"}), (14, 7, set()), (16, 6, set()), (16, 40, set())]
)
def test_a_channel_that_sets_the_height_of_the_layout(width, others, expected):
    """It is less than ten times as wide as long; of so few devices one has to be the largest."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, width, 3, "out in vss vss")
    for number in range(others):
        planted.mos(f"MN{number}", "nmos", 6 + 2 * number, 0, 4, 0.3, f"o{number} in vss vss")
    for track, net in enumerate(planted.ends):
        planted.comb(net, width + 1.5 + track)
    assert severities(planted.review(), "room", "of the longer side") == expected


@pytest.mark.parametrize(
    ("fingers", "low", "top", "expected"),
    [(8, "s", "z", {"must"}), (8, "vss", "z", set()), (8, "s", "s", set()), (17, "s", "z", set())],
)
def test_a_diode_and_what_is_on_its_gate_with_a_source_of_its_own(fingers, low, top, expected):
    """As in a source of a current in proportion to the temperature; above a stack on the gate it is part of that."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "b b vss vss")
    planted.mos("M2", "nmos", 10, 0, 4, 1, f"out b {low} vss", fingers)
    planted.mos("M3", "nmos", 50, 0, 4, 2, f"{top} b vss vss")
    planted.mos("M4", "nmos", 60, 0, 4, 0.5, "s drive vss vss")
    review = tracks(planted, ports=("b", "out", "drive", "z", "s")).review()
    assert severities(review, "group-apart", "the units of M2 lie about none of M1") == expected


@pytest.mark.parametrize(("number", "expected"), [(2, {"should"}), (3, {"must"})])
def test_a_line_of_nothing_but_inverters_passes_a_signal_on(number, expected):
    """The second one is drawn unlike the others; with a source each they are cells of a delay."""
    planted = Planted()
    for stage in range(4):
        x = 20.0 * stage
        source = "vss" if number == 2 else f"f{stage}"
        planted.mos(f"MN{stage}", "nmos", x, 0, 2, 0.5, f"n{stage + 1} n{stage} {source} vss")
        planted.mos(f"MP{stage}", "pmos", x + 5 + (stage == 1), 0, 4, 0.5, f"n{stage + 1} n{stage} vdd vdd")
        if number > 2:
            planted.mos(f"MS{stage}", "nmos", x + 10, 0, 2, 0.5, f"f{stage} b vss vss")
    review = tracks(planted, ports=("n0", "n4", "b")).review()
    assert severities(review, "repeated", "drawn unlike") == expected


def test_a_square_bar_lies_across_nothing():
    planted = Planted()
    planted.bar("R1", 0, 0, 4, 4, "a b")
    planted.bar("R2", 10, 0, 2, 10, "c d")
    for net, track in {"a": -10.0, "b": 40.0, "c": -12.0, "d": 42.0}.items():
        planted.comb(net, track)
    assert severities(planted.review(), "passives", "across") == set()


@pytest.mark.parametrize(("end", "expected"), [("m", set()), ("z", {"must"})])
def test_a_step_of_a_ladder_among_others_of_it(end, expected):
    planted = Planted()
    for name, at, long, nets in (("R1", 2, 10, "a m"), ("R2", 5, 10, "b m"), ("R9", 3.5, 7, f"y {end}")):
        planted.bar(name, at, 0, 1, long, nets)
    for net, track in {"a": -4.0, "b": -5.0, "m": 24.0, "vss": -8.0, "y": -6.0, "z": 25.0}.items():
        if net in planted.ends:
            planted.comb(net, track)
    assert severities(planted.review(), "group-apart", "R9 lies among") == expected


@pytest.mark.parametrize(
    ("source", "diode", "expected"), [("vss", "c", {"should"}), ("x", "b", set()), ("y", "c", set())]
)
def test_channels_of_unlike_widths_on_one_gate(source, diode, expected):
    """Widths count on a bias alone: not on the gate of a pair, nor on an inner gate without a source at a supply."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, f"a b {source} vss")
    planted.mos("M2", "nmos", 4, 0, 2, 1, f"{'z' if diode == 'b' else 'c'} b {'vss' if source == 'x' else source} vss")
    planted.mos("M3", "nmos", 40, 0, 4, 1, f"d e {source} vss")
    planted.mos("M4", "nmos", 60, 0, 4, 0.5, "x bias vss vss")
    ports = ("a", "c", "d", "e", "z", "bias", *("b" * (source != "y")))
    review = tracks(planted, ports=ports).review()
    assert severities(review, "group-unlike", "different widths: 2, 4 um") == expected


@pytest.mark.parametrize(("gate", "expected"), [("z", False), ("c", True)])
def test_half_of_a_pair_in_the_ring_of_a_mirror(gate, expected):
    """Its gate is the output, which feeds back, or that of an inverter, which turns it on and off."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "ib ib vss vss")
    planted.mos("M2", "nmos", 3.2, 0, 4, 1, "x ib vss vss")
    planted.mos("M3", "nmos", 5.2, 7, 2, 1, "y out t vss")
    planted.mos("M4", "nmos", 20, 7, 2, 1, "z in t vss")
    planted.mos("M5", "pmos", 30, 0, 4, 1, "y y vdd vdd")
    planted.mos("M6", "pmos", 40, 0, 4, 1, "z z vdd vdd")
    planted.mos("M7", "pmos", 50, 0, 4, 1, f"out {gate} vdd vdd")
    planted.mos("M8", "nmos", 60, 0, 4, 1, f"out {'bias' if gate == 'z' else gate} vss vss")
    planted.mos("M9", "nmos", 70, 0, 4, 1, "t bias vss vss")
    for box in ((-1, -1.4, 9, -1.1), (-1, 10.7, 9, 11), (-1, -1.4, -0.7, 11), (8.7, -1.4, 9, 11)):
        planted.box("COMP", *box)
        planted.box("Pplus", *box)
    for track, net in enumerate(planted.ends):
        planted.comb(net, -6 if net == "vss" else 18.0 + track, port=net in {*planted.ends} - {"t", "y", "z"})
    found = [each for each in planted.review().findings if "which turn on and off" in each.why]
    assert any("M3" in each.devices for each in found) == expected


@both("foreign-over-gates.supply", "should")
@pytest.mark.parametrize("alike", [False, True])
def test_a_supply_over_the_gate_of_one_of_two_counterparts(figure, expected, alike):
    """Two gates of a latch; metal on ground covers this part of the first channel of one, or of both."""
    planted = Planted()
    for x, y, other, name in ((0, "q", "qn", "s"), (40, "qn", "q", "r")):
        planted.mos(f"MA{y}", "nmos", x, 0, 4, 0.5, f"{y} {name} m{name} vss")
        planted.mos(f"MB{y}", "nmos", x + 6, 0, 4, 0.5, f"m{name} {other} vss vss")
        planted.mos(f"MC{y}", "pmos", x + 12, 0, 4, 0.5, f"{y} {name} vdd vdd")
        planted.mos(f"MD{y}", "pmos", x + 20, 0, 4, 0.5, f"{y} {other} vdd vdd")
        planted.box("Metal5", x - 1.2, 0, x - 0.8, 50.3)
        planted.square("Via4", x - 1, 50, 0.26)
        planted.via3("vss", x - 1, 50)
        if alike or not x:
            planted.box("Metal5", x - 1.2, 0, x + SIDE + 0.5, 4 * figure)
    review = tracks(planted, ports=("q", "qn", "s", "r")).review()
    assert severities(review, "foreign-over-gates", "of counterparts MAq, MAqn") == (set() if alike else expected)


@pytest.mark.parametrize(("net", "expected"), [("vss", set()), ("vdd", {"should"})])
def test_transistors_of_ground_at_a_rail_of_their_own_inside(net, expected):
    """Three of six lie in the upper half of the cell; a rail on this net is just above them."""
    planted = Planted()
    for number in range(6):
        kind, supply = ("nmos", "vss") if number < 3 else ("pmos", "vdd")
        planted.mos(f"M{number}", kind, 6 * number, 14, 2, 0.5, f"d{number} g{number} {supply} {supply}")
        planted.comb(f"d{number}", 6 + 0.6 * number)
        planted.comb(f"g{number}", 10 + 0.6 * number)
    for each, track in (("vss", -6.0), ("vdd", 24.0)):
        planted.comb(each, track, left=-8, right=40, width=1)
    low, high = (-6.0, 19.0) if net == "vss" else (19.0, 24.0)
    planted.box("Metal3", -8, 18.5, 40, 19.5, net)
    planted.box("Metal4", -7.7, low, -7.3, high, net)
    for y in (low, high):
        planted.via3(net, -7.5, y)
    assert severities(planted.review(), "rail-side", "of 6 transistors") == expected


@pytest.mark.parametrize(("gate", "expected"), [("bias", False), ("clk", True)])
def test_a_crossed_pair_that_amplifies_in_the_ring_of_a_mirror(gate, expected):
    """M3 and M4 add to what the pair M5, M6 amplifies; with a clock at their tail they turn on and off."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "ib ib vss vss")
    planted.mos("M2", "nmos", 3.2, 0, 4, 1, "x ib vss vss")
    planted.mos("M3", "nmos", 2, 7, 2, 1, "y z t vss")
    planted.mos("M4", "nmos", 5.2, 7, 2, 1, "z y t vss")
    planted.mos("M5", "nmos", 20, 7, 2, 1, "y in u vss")
    planted.mos("M6", "nmos", 25, 7, 2, 1, "z inb u vss")
    planted.mos("M7", "nmos", 30, 0, 2, 1, f"t {gate} vss vss")
    planted.mos("M8", "nmos", 40, 0, 2, 1, "u bias vss vss")
    planted.mos("M9", "pmos", 50, 0, 4, 1, "y bp vdd vdd")
    planted.mos("M10", "pmos", 60, 0, 4, 1, "z bp vdd vdd")
    planted.mos("M11", "nmos", 70, 0, 4, 1, "clk en vss vss")
    planted.mos("M12", "pmos", 80, 0, 4, 1, "clk en vdd vdd")
    for box in ((-1, -1.4, 9, -1.1), (-1, 10.7, 9, 11), (-1, -1.4, -0.7, 11), (8.7, -1.4, 9, 11)):
        planted.box("COMP", *box)
        planted.box("Pplus", *box)
    for track, net in enumerate(planted.ends):
        planted.comb(net, -6 if net == "vss" else 18.0 + track, port=net not in {"t", "u", "clk"})
    found = [each for each in planted.review().findings if "which turn on and off" in each.why]
    assert any({"M3", "M4"} <= {*each.devices} for each in found) == expected


@both("flow-order.parts", "should")
@pytest.mark.parametrize("inside", [False, True])
def test_transmission_gates_with_a_gate_and_an_end_in_common(figure, expected, inside):
    """MN of one and MP of the other are no inverter, however far apart; the two of one gate belong together."""
    planted = Planted()
    for x, (s, sb, end) in ((0, ("s", "sb", "a")), (40, ("sb", "s", "b"))):
        planted.mos(f"MN{x}", "nmos", x, 0, 4, 1, f"w {s} {end} vss")
        planted.mos(f"MP{x}", "pmos", x + 0.4, 4 + figure if inside else 9, 4, 1, f"w {sb} {end} vdd")
        for number in (1, 2):  # so that more ends are on the other net than on w, which is the drain of both
            planted.mos(f"MN{number}{x}", "nmos", x + 8 * number, 0, 4, 1, f"i{number}{x} {s} {end} vss")
            planted.mos(f"MP{number}{x}", "pmos", x + 0.4 + 8 * number, 9, 4, 1, f"i{number}{x} {sb} {end} vdd")
    review = tracks(planted, ports={*planted.ends}).review()
    assert severities(review, "flow-order", "parts of one function") == (expected if inside else set())


@both("group-apart.replica", "should")
@pytest.mark.parametrize("long", [10, 8])
def test_what_sets_the_gate_of_large_resistances(figure, expected, long):
    """Two channels in series between ports, their gate set by a third of the same length, or of another one."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 1, 10, "xa vg m vss")
    planted.mos("M2", "nmos", 14, 0, 1, 10, "xb vg m vss")
    planted.mos("M3", "nmos", 24 + figure, 0, 1, long, "vdd vg ib vss")
    planted.mos("M4", "nmos", 50, 0, 2, 1, "vg it vss vss")
    planted.mos("M5", "pmos", 58, 0, 2, 1, "vg ip vdd vdd")
    review = tracks(planted, ports=("xa", "xb", "ib", "it", "ip")).review()
    assert severities(review, "group-apart", "on the same gate as M1, M2") == (expected if long == 10 else set())
