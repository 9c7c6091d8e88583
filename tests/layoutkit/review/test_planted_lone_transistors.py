"""Transistors in no matched group: on one gate, single, split; loads off the middle; wells, taps, gaps and ladders."""

import pytest
from planted_layout import SIDE, Planted, both, severities, wired


def tracks(planted, first=40.0, ports=()):
    for track, net in enumerate(planted.ends):
        planted.comb(net, first + track, port=net in {"vss", "vdd", *ports})
    return planted


def on_one_gate(gap=1.0, one=(4, 1), second=(4, 1), source="s"):
    """Return two transistors on a gate, their diffusions so far apart, with a resistor at the source of the second."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, *one, "a b vss vss")
    planted.mos("M2", "nmos", one[1] + 2 * SIDE + gap, 0, *second, f"c b {source} vss")
    if source == "s":
        planted.bar("R1", 60, 0, 1, 10, "s vss", upright=False)
    planted.mos("M3", "nmos", 80, 0, 4, 0.5, "out in vss vss")
    return tracks(planted, ports=("a", "b", "c", "out", "in")).review()


@both("group-apart.gate", "should")
def test_transistors_on_one_gate_lie_apart(figure, expected):
    assert severities(on_one_gate(figure), "group-apart", "on the gate b") == expected


def test_what_is_turned_on_and_off_together_may_lie_apart():
    """M2 joins the gate of M3 with its source: a switch, as what else is on its gate."""

    def review(drain):
        planted = Planted()
        planted.mos("M1", "nmos", 0, 0, 4, 1, "a en vss vss")
        planted.mos("M2", "nmos", 20, 0, 4, 1, f"{drain} en vss vss")
        planted.mos("M3", "nmos", 40, 0, 4, 1, "out x vss vss")
        planted.mos("M4", "nmos", 60, 0, 4, 0.5, "q y vss vss")
        return tracks(planted, ports=("a", "en", "out", "x", "y", "q", "z")).review()

    assert severities(review("z"), "group-apart", "on the gate en") == {"should"}
    assert severities(review("x"), "group-apart", "on the gate en") == set()


@both("group-apart.whole", "should")
def test_equal_transistors_on_one_gate_are_whole(figure, expected):
    """Nothing lies between them; their middles are so far apart."""
    size = (4, figure - 1.0 - 2 * SIDE)
    assert severities(on_one_gate(1.0, size, size), "group-apart", "not interleaved") == expected


def test_unlike_units_and_lengths_on_one_gate():
    assert severities(on_one_gate(second=(2, 1)), "group-unlike", "different widths: 2, 4 um") == {"should"}
    assert severities(on_one_gate(second=(2, 1)), "group-unlike", "different lengths") == set()
    lengths = severities(on_one_gate(second=(4, 2), source="vss"), "group-unlike", "different lengths: 1, 2 um")
    assert lengths == {"should"}
    assert severities(on_one_gate(second=(4, 2)), "group-unlike", "different lengths") == set()  # two sources


@pytest.mark.parametrize(("bits", "load", "expected"), [(3, "", {"should"}), (2, "", set()), (3, "pmos", set())])
def test_the_bits_of_a_current_in_blocks(bits, load, expected):
    """Transistors in parallel with a gate each; with one of the other type on their drains they are logic."""
    planted = Planted()
    for bit in range(bits):
        planted.mos(f"M{bit}", "nmos", 12.0 * bit, 0, 2, 1, f"out b{bit} vss vss", 2**bit)
    if load:
        planted.mos("M9", load, 60, 0, 4, 1, "out b0 vdd vdd")
    review = tracks(planted, ports=("out", *(f"b{bit}" for bit in range(bits)))).review()
    assert severities(review, "group-apart", "into one net") == expected


@pytest.mark.parametrize(("guarded", "gate", "expected"), [(0, "b", {"should"}), (1, "b", {"should"}), (2, "b", set())])
def test_ends_of_a_single_source(guarded, gate, expected):
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, f"a {gate} vss vss")
    planted.mos("M2", "nmos", 20, 0, 4, 0.5, "c d vss vss")
    for left in (-0.4, 2.3)[:guarded]:
        planted.box("Poly2", left, -0.3, left + 0.3, 4.3)
    assert severities(tracks(planted, ports=("a", gate, "c", "d")).review(), "group-unlike", "of M1") == expected


@pytest.mark.parametrize(("places", "expected"), [((4,), {"should"}), ((4, -4), set())])
@pytest.mark.parametrize("ties", ["vss vss vss", "e f vss"])
def test_dummies_across_the_rows_of_a_long_channel(places, expected, ties):
    """The channel of 1 x 8 um has them above and below, or others like it."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 1, 8, "a b vss vss")
    for number, y in enumerate(places):
        planted.mos(f"MD{number}", "nmos", 1.2 * (number + 1), y / 1.6, 1, 8, f"{ties} vss")
    planted.mos("M2", "nmos", 40, 0, 4, 0.5, "c d vss vss")
    found = severities(tracks(planted, ports=("a", "b", "c", "d", "e", "f")).review(), "group-unlike", "of M1")
    assert found == expected


def test_logic_and_switches_need_no_dummies():
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "out in vss vss")
    planted.mos("M2", "pmos", 6, 0, 4, 1, "out in vdd vdd")
    assert severities(tracks(planted, ports=("in", "out")).review(), "group-unlike", "no dummy") == set()


@pytest.mark.parametrize(("gate", "expected"), [("rst", set()), ("r", {"should"})])
def test_short_switches_on_one_port_need_no_dummies(gate, expected):
    """One is at the supply, the other behind a resistor; a mirror that holds their gates makes sources of them."""
    planted = Planted()
    planted.mos("M1", "pmos", 0, 0, 4, 0.28, f"a {gate} vdd vdd")
    planted.mos("M2", "pmos", 10, 0, 4, 0.28, f"c {gate} b vdd")
    planted.bar("R1", 20, 0, 1, 10, "a b", upright=False)
    if gate == "r":
        planted.mos("M3", "pmos", 40, 0, 4, 0.28, "r r vdd vdd")
    review = tracks(planted, ports=("c", gate)).review()
    assert severities(review, "group-unlike", "M2") == expected


@both("group-apart.coarse", "should")
@pytest.mark.parametrize("channels", [4, 6])
def test_a_pair_crossed_in_large_blocks(figure, expected, channels):
    """From the first to the last channel of each block lies the figure; four can hardly be mixed."""
    planted, length = Planted(), round((figure - (channels - 1) * SIDE) / channels, 2)
    nets = ("outp inp tail vss", "outn inn tail vss")
    for row in range(2):
        for half in range(2):
            number, x = (half + row) % 2, 12.0 * half + 30.0 * row
            planted.mos(f"M{1 + number}{row}", "nmos", x, 8.0 * row, 2, length, nets[number], channels)
    planted.mos("M3", "nmos", 80, 0, 4, 1, "tail bias vss vss")
    review = tracks(planted, ports=("inp", "inn", "outp", "outn", "bias")).review()
    assert severities(review, "group-apart", "side by side") == (expected if channels > 4 else set())


@both("flow-order.centre", "should")
@pytest.mark.parametrize("what", ["tail", "loads"])
def test_a_tail_or_loads_off_the_middle_of_their_pair(figure, expected, what):
    """The pair lies about x = 2.7; its tail, or its loads, so much beside it."""
    planted = Planted()
    off = {name: figure * (name == what) for name in ("tail", "loads")}
    planted.mos("M1", "nmos", 0, 10, 4, 1, "outp inp tail vss")
    planted.mos("M2", "nmos", 3.2, 10, 4, 1, "outn inn tail vss")
    planted.mos("M3", "nmos", 1.6 + off["tail"], 0, 4, 1, "tail bias vss vss")
    planted.mos("M4", "pmos", off["loads"], 30, 4, 1, "outp outp vdd vdd")
    planted.mos("M5", "pmos", 3.2 + off["loads"], 30, 4, 1, "outn outn vdd vdd")
    found = severities(wired(planted, vdd=45.0).review(), "flow-order", f"the {what} of M1, M2")
    assert found == expected


@pytest.mark.parametrize(("channels", "parts", "expected"), [(4, 4, {"should"}), (4, 1, set()), (3, 3, set())])
def test_channels_that_share_no_diffusion(channels, parts, expected):
    planted = Planted()
    for part in range(parts):
        planted.mos(f"M1{part}", "nmos", 4.0 * part, 0, 4, 1, "a b vss vss", channels // parts)
    assert severities(tracks(planted, ports=("a", "b")).review(), "room", "share no drain") == expected


@pytest.mark.parametrize(("wells", "devices", "expected"), [(2, 2, set()), (3, 2, {"should"}), (3, 1, set())])
def test_wells_that_could_be_one(wells, devices, expected):
    """With one transistor in most of them, that is what a finding on rings says."""
    planted = Planted()
    for well in range(wells):
        x = 14.0 * well
        for number in range(devices):
            planted.mos(f"M{well}{number}", "pmos", x + 4.2 * number, 0, 4, 1, f"o{well}{number} i{number} vdd vdd")
        planted.box("Nwell", x - 0.5, -0.5, x + 4.2 * devices, 5.0)
    assert severities(tracks(planted, first=60.0).review(), "rings", "wells of vdd") == expected


@pytest.mark.parametrize(("contacts", "expected"), [(1, {"should"}), (2, set())])
def test_taps_with_one_contact(contacts, expected):
    """The tap of the substrate, and two of the well."""
    planted = Planted()
    planted.mos("M1", "pmos", 0, 0, 4, 1, "out in vdd vdd")
    planted.tap("pmos", "vdd", 4.4, 3.0)
    for x, y in ((-2, 5), (3.4, 0.4), (4.4, 3.0)) if contacts > 1 else ():
        layer = "Pplus" if x < 0 else "Nplus"
        planted.box("COMP", x - 0.25, y - 0.8, x + 0.25, y)
        planted.box(layer, x - 0.35, y - 0.9, x + 0.35, y)
        planted.square("Contact", x, y - 0.5, 0.22)
        planted.box("Metal1", x - 0.2, y - 0.7, x + 0.2, y)
    planted.box("Nwell", -0.5, -1.5, 5.5, 5.2)
    assert severities(tracks(planted, ports=("in", "out")).review(), "well-tap", "one contact") == expected


@pytest.mark.parametrize(("long", "expected"), [(4, set()), (0.8, set())])
def test_a_bar_wider_than_long_lies_as_the_others(long, expected):
    planted = Planted()
    planted.bar("R1", 0, 0, 1, 10, "a b")
    planted.bar("R2", 6, 0, 2, long, "c d")
    review = tracks_of_bars(planted).review()
    assert severities(review, "passives", "across") == expected


def tracks_of_bars(planted):
    """Join each net of bars by a track of its own, those at lower ends below the bars."""
    for number, net in enumerate(planted.ends):
        low = max(y for _, y in planted.ends[net]) < 1
        planted.comb(net, -6.0 - number if low else 24.0 + number, port=net != "m")
    return planted


@pytest.mark.parametrize(("ends", "expected"), [("m b vss", set()), ("c m vss", {"should"})])
def test_bars_with_a_collector_between_them(ends, expected):
    """With a base at their middle two bars divide a voltage; with a collector they are a load and a resistor."""
    planted = Planted()
    planted.bar("R1", 0, 0, 1, 10, "a m", upright=False)
    planted.bar("R2", 30, 0, 1, 10, "n m", upright=False)
    planted.npn("Q1", 80, 0, ends)
    review = tracks(planted, first=-12.0, ports=("a", "n", "b", "c")).review()
    assert severities(review, "passives", "split over 2 places") == expected


@pytest.mark.parametrize(("ladder", "expected"), [(False, {"should"}), (True, set())])
def test_transistors_at_their_rails_above_a_ladder(ladder, expected):
    """Inverters between rails of their own, at the top of the cell; without the wells below they are upside down."""
    planted = Planted()
    for number in range(3):
        x, up = 16.0 * number, 0.0 if ladder else 6.0
        planted.mos(f"MN{number}", "nmos", x, up, 2, 0.5, f"o{number} i{number} vss vss")
        planted.mos(f"MP{number}", "pmos", x + 6, 6.0 - up, 2, 0.5, f"o{number} i{number} vdd vdd")
        planted.comb(f"o{number}", 12 + 0.6 * number)
        planted.comb(f"i{number}", 15 + 0.6 * number)
    for net, track in (("vss", -4.0), ("vdd", 20.0)):
        planted.comb(net, track, left=-8, right=60, width=1)
    planted.box("Metal5", -8, -60, 60, -20)
    planted.comb("vss", -58, left=-8, right=60, width=1)  # to the lower edge, where the ladder ends
    review = planted.review()
    assert severities(review, "rail-side", "of 6 transistors") == expected
    assert not severities(review, "rail-side", "from the rail")


@pytest.mark.parametrize(("rings", "expected"), [(2, set()), (1, {"should"})])
def test_a_pair_whose_halves_lie_in_two_rings_side_by_side(rings, expected):
    planted = Planted()
    for name, x, nets in (("M1", 0, "outp inp tail vss"), ("M2", 3, "outn inn tail vss")):
        for part in range(2):
            planted.mos(f"{name}{part}", "nmos", x + 10.0 * part, 10, 4, 1, nets)
    planted.mos("M3", "nmos", 30, 0, 4, 1, "tail bias vss vss")
    for ring in range(rings):
        left, right = 10.0 * ring - 1, 10.0 * ring + 7
        sides = (
            (left, 9, right, 9.3),
            (left, 15.2, right, 15.5),
            (left, 9, left + 0.3, 15.5),
            (right - 0.3, 9, right, 15.5),
        )
        for box in sides:
            planted.box("COMP", *box)
            planted.box("Pplus", *box)
    review = tracks(planted, ports=("outp", "outn", "inp", "inn", "bias")).review()
    assert severities(review, "well-tap", "in no ring of taps") == expected


@both("flow-order.load", "should")
@pytest.mark.parametrize("port", [False, True])
def test_a_transistor_as_a_capacitor_far_from_the_stage_that_drives_it(figure, expected, port):
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "x in vss vss")
    planted.mos("M2", "nmos", 1.0 + figure, 0, 4, 1, "vss x vss vss")
    planted.mos("M3", "pmos", 60, 0, 4, 1, "x in vdd vdd")
    review = tracks(planted, ports=("in", "x") if port else ("in",)).review()
    assert severities(review, "flow-order", "which drive it") == expected


@pytest.mark.parametrize(
    ("width", "gone", "expected"), [(1.6, True, {"should"}), (1.1, True, set()), (1.6, False, set())]
)
def test_one_contact_where_several_fit(width, gone, expected):
    """Three contacts of 0.22 um fit along 1.6 um; one is left of those on the drain."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, width, 1, "out in vss vss")
    if gone:
        planted.erase("Contact", 1.7, 0.5, 2.2, width)
    for net, track in (("out", 8), ("in", 9), ("vss", -4)):
        planted.comb(net, track)
    assert severities(planted.review(), "single-cut", "one contact each") == expected


def test_one_contact_where_one_fits_is_named_by_no_limit():
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 1.6, 1, "out in vss vss")
    planted.erase("Contact", 1.7, 0.5, 2.2, 1.6)
    planted.mos("M2", "nmos", 8, 0, 0.6, 1, "y in vss vss")
    for net, track in (("out", 8), ("in", 9), ("y", 10), ("vss", -4)):
        planted.comb(net, track)
    review = planted.review(limits={"single-cut.contacts": {"must": 2, "should": None}})
    assert [each.devices for each in review.findings if "one contact each" in each.why] == [("M1",)]
