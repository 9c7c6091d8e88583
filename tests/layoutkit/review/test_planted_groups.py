"""How channels of matched groups are mixed, what else works as a group, and what is none."""

import pytest
from planted_layout import SIDE, Planted, both, pair, severities, wired
from test_planted_lone_transistors import tracks


def folded(kind, gap=0.5, fingers=3):
    """Return a pair whose cascodes or loads are of several channels each, in two rows side by side."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "d1 inp t vss")
    planted.mos("M2", "nmos", 10, 0, 4, 1, "d2 inn t vss")
    planted.mos("M3", "nmos", 20, 0, 4, 1, "t bias vss vss")
    rail, body = ("{drain}", "vss") if kind == "nmos" else ("vdd", "vdd")
    for number, drain in enumerate(("d1", "d2")):
        nets = f"o{number} vc {rail.format(drain=drain)} {body}" if kind == "nmos" else f"{drain} vc vdd vdd"
        x = 40 + number * (fingers * (1 + SIDE) + SIDE + gap)
        planted.mos(f"M{4 + number}", kind, x, 0, 4, 1, nets, fingers)
    return tracks(planted, ports=("inp", "inn", "o0", "o1", "bias", "vc", *(("d1", "d2") * (kind == "pmos")))).review()


@pytest.mark.parametrize(("gap", "fingers", "expected"), [(0.5, 3, {"should"}), (0.5, 1, set()), (9.0, 3, set())])
def test_cascodes_of_a_pair_in_blocks(gap, fingers, expected):
    """Where they lie far apart, each is on its side of an axis."""
    assert severities(folded("nmos", gap, fingers), "group-apart", "stand in blocks") == expected


@pytest.mark.parametrize(("is_pump", "expected"), [(True, set()), (False, {"should"})])
def test_crossed_switches_of_a_pump_in_blocks(is_pump, expected):
    """Inverters drive their drains through capacitors, or nothing does, as in a latch."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "a b vss vss", 3)
    planted.mos("M2", "nmos", 6, 0, 4, 1, "b a vss vss", 3)
    for number in (0, 1):
        planted.mos(f"MN{number}", "nmos", 20 + 8 * number, 0, 4, 0.5, f"ck{number} in{number} vss vss")
        planted.mos(f"MP{number}", "pmos", 24 + 8 * number, 0, 4, 0.5, f"ck{number} in{number} vdd vdd")
    heights = {"a": 20, "b": 22, "ck0": 24, "ck1": 26, "vss": -6, "vdd": 30, "in0": 12, "in1": 14}
    for net, track in heights.items():
        right = 70 if net in {"a", "b", "ck0", "ck1", "vss"} else None
        planted.comb(net, track, right=right, port=net not in {"a", "b", "ck0", "ck1"})
    for number, (top, bottom) in enumerate((("a", "ck0"), ("b", "ck1"))):
        x, low = 50 + 12 * number, bottom if is_pump else "vss"
        planted.plate(f"C{number}", x, 50, 5, f"{top} {low}")
        planted.via3(top, x + 1, heights[top])
        planted.square("Via4", x + 1, heights[top], 0.26)
        planted.box("Metal5", x + 0.8, heights[top] - 0.2, x + 1.2, 54, top)
        planted.via3(low, x + 4, heights[low])
        planted.box("Metal4", x + 3.8, heights[low] - 0.2, x + 4.2, 49.5, low)
    assert severities(planted.review(), "group-apart", "stand in blocks") == expected


@both("group-apart.whole", "should")
@pytest.mark.parametrize("gap", [1.0, 3.0])
def test_large_transistors_of_a_mirror_in_one_piece(figure, expected, gap):
    """So far lie the middles of two channels apart; with room between them, that is named instead."""
    planted, long = Planted(), figure - gap - 2 * SIDE
    planted.mos("M1", "nmos", 0, 0, 4, long, "ib ib vss vss")
    planted.mos("M2", "nmos", long + 2 * SIDE + gap, 0, 4, long, "out ib vss vss")
    review = tracks(planted, ports=("ib", "out")).review()
    assert severities(review, "group-apart", "are single channels") == (expected if gap < 2 else set())


@pytest.mark.parametrize(("share", "expected"), [(1.1, set()), (0.9, {"should"})])
@pytest.mark.parametrize(("order", "wide", "rows"), [("ABBA", 4, 0), ("ABBA", 4, 1), ("AABB", 4, 0), ("ABBA", 1, 0)])
def test_what_is_not_crossed_as_the_pair_of_its_cell_is(order, wide, rows, share, expected):
    """A mirror of one channel each, or cascodes of a row each; crossing small ones costs more than it gains."""
    planted = Planted()
    nets = ("oA vc dA", "oB vc dB") if rows else ("ib ib vss", "oM ib vss")
    right, top = (0.4, wide + 1.3) if rows else (3.2, 0)
    planted.mos("M1", "nmos", 0, 0, wide, 1 + 2 * rows, f"{nets[0]} vss", 1 + rows)
    planted.mos("M2", "nmos", right, top, wide, 1 + 2 * rows, f"{nets[1]} vss", 1 + rows)
    for number, name in enumerate(order):
        planted.mos(f"MP{number}", "nmos", 20 + 3.2 * number, 0, 4, 1, f"d{name} in{name} tail vss")
    planted.mos("MT", "nmos", 34, 0, 4, 1, "tail it vss vss")
    limits = {"group-apart.plain": {"should": share * (right**2 + top**2) ** 0.5}}
    ports = ("ib", "oM", "oA", "oB", "inA", "inB", "it", "vc", *(("dA", "dB") * (not rows)))
    review = tracks(planted, ports=ports).review(limits=limits)
    found = severities(review, "group-apart", "though those of differential pair")
    assert found == (expected if order == "ABBA" and wide > 1 else set())


PLAIN = {
    "two": ("ib ib vss", "oM ib vss"),
    "three": ("ib ib vss", "oM ib vss", "oN ib vss"),
    "pair": ("oM i1 t2", "oN i2 t2", "t2 it vss"),
    "AABB": ("oA vc dA", "oA vc dA", "oB vc dB", "oB vc dB"),
    "ABAB": ("oA vc dA", "oB vc dB", "oA vc dA", "oB vc dB"),
}


@pytest.mark.parametrize("kind", PLAIN)
def test_two_that_copy_and_are_not_mixed_are_plain(kind):
    """Three devices cannot be interleaved as two are, and other rules report an input pair that is not."""
    planted = Planted()
    for number, nets in enumerate(PLAIN[kind]):
        planted.mos(f"M{number}", "nmos", 3.2 * number, 0, 4, 1, f"{nets} vss")
    for number, name in enumerate("ABBA"):
        planted.mos(f"MP{number}", "nmos", 20 + 3.2 * number, 0, 4, 1, f"d{name} in{name} tail vss")
    planted.mos("MT", "nmos", 34, 0, 4, 1, "tail it vss vss")
    inner = {"tail", "t2"} | ({"dA", "dB"} if "vc" in planted.ends else set())
    review = tracks(planted, ports={*planted.ends} - inner).review(limits={"group-apart.plain": {"should": 0.5}})
    found = severities(review, "group-apart", "though those of")
    assert found == ({"should"} if kind in {"two", "AABB"} else set())


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        *(("AABBBBAA", {"should"}), ("ABBABAAB", set()), ("ABBA", set()), ("BBAABB", set())),
        *(("ABCDDCBA", {"should"}), ("BACDDCAB", set())),
    ],
)
def test_channels_of_one_device_outside_those_of_another_one(order, expected):
    """A is the reference; it may lie in the middle of more channels."""
    planted = Planted()
    for number, name in enumerate(order):
        planted.mos(f"M{name}{number}", "nmos", 2.4 * number, 0, 2, 1, f"{name.lower()} a vss vss")
    review = tracks(planted, ports=("a", "b", "c", "d")).review()
    assert severities(review, "group-apart", "times as far from its middle") == expected


@pytest.mark.parametrize(("gates", "expected"), [("r0 r1 r2", True), ("r0 r1", False)])
def test_switches_below_the_sources_of_a_mirror(gates, expected):
    planted = Planted()
    outputs = ("ib", "o1", "o2")
    for number, (gate, output) in enumerate(zip(gates.split(), outputs, strict=False)):
        planted.mos(f"MS{number}", "nmos", 12 * number, 0, 2, 1, f"s{number} {gate} vss vss")
        planted.mos(f"MM{number}", "nmos", 12 * number + 5, 20, 2, 1, f"{output} ib s{number} vss")
    review = tracks(planted, ports=(*outputs, *gates.split())).review()
    named = [each for each in review.findings if "no dummy" in each.why and "switches below a mirror" in each.why]
    assert bool(named) == expected


@pytest.mark.parametrize(("load", "gate", "expected"), [("x", "x", {"should"}), ("x", "b0", set())])
def test_weights_of_a_current_into_a_diode_need_dummies(load, gate, expected):
    """Lengths weigh the currents; with one of their gates at the load they are logic."""
    planted = Planted()
    for bit in range(3):
        planted.mos(f"M{bit}", "pmos", 12.0 * bit, 0, 1, 0.5 * 2**bit, f"x b{bit} vdd vdd")
    planted.mos("M9", "nmos", 60, 0, 4, 1, f"{load} {gate} vss vss")
    review = tracks(planted, ports=("x", "b0", "b1", "b2")).review()
    assert severities(review, "group-unlike", "the rows of M2, M1, M0") == expected


@pytest.mark.parametrize(("source", "expected"), [("vss", {"should"}), ("out", set())])
def test_a_diode_is_a_reference_at_a_rail_only(source, expected):
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 4, f"vcm vcm {source} vss")
    planted.mos("M2", "nmos", 20, 0, 4, 0.5, "c d vss vss")
    planted.mos("M3", "pmos", 30, 0, 4, 0.5, "out e vdd vdd")
    review = tracks(planted, ports=("vcm", "c", "d", "e", "out")).review()
    assert severities(review, "group-unlike", "M1") == expected


@pytest.mark.parametrize(("gate", "expected"), [("ck", {"should"}), ("bias", set())])
def test_what_switches_in_the_ring_of_cascodes(gate, expected):
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "o1 vc s1 vss")
    planted.mos("M2", "nmos", 3.2, 0, 4, 1, "o2 vc s2 vss")
    planted.mos("M3", "nmos", 20, 0, 4, 1, "s1 inp t vss")
    planted.mos("M4", "nmos", 30, 0, 4, 1, "s2 inn t vss")
    planted.mos("M5", "nmos", 40, 0, 4, 1, "t bias vss vss")
    planted.mos("M6", "nmos", 5.2, 7, 2, 1, f"y {gate} vss vss")
    planted.mos("M7", "nmos", 50, 0, 2, 1, "ckb ck vss vss")
    planted.mos("M8", "pmos", 60, 0, 2, 1, "ckb ck vdd vdd")
    for box in ((-1, -1.4, 9, -1.1), (-1, 10.7, 9, 11), (-1, -1.4, -0.7, 11), (8.7, -1.4, 9, 11)):
        planted.box("COMP", *box)
        planted.box("Pplus", *box)
    for track, net in enumerate(planted.ends):
        planted.comb(net, -6 if net == "vss" else 18.0 + track, port=net not in {"s1", "s2", "t"})
    assert severities(planted.review(), "group-apart", "the ring of cascode pair") == expected


@pytest.mark.parametrize(("gate", "expected"), [("ck", set()), ("bias", {"should"})])
def test_what_clocked_logic_drives_needs_no_dummies(gate, expected):
    planted = Planted()
    planted.mos("M1", "pmos", 0, 0, 4, 0.5, "y d vdd vdd")
    planted.mos("M2", "nmos", 10, 0, 4, 0.5, f"y {gate} m vss")
    planted.mos("M3", "nmos", 20, 0, 4, 0.5, "m e vss vss")
    planted.mos("M4", "nmos", 30, 0, 4, 1.0, "q y vss vss")
    planted.mos("M5", "pmos", 40, 0, 4, 1.0, f"q {gate} vdd vdd")
    review = tracks(planted, ports=("d", "e", "q", gate)).review()
    assert severities(review, "group-unlike", "M4") == expected


@pytest.mark.parametrize(("drain", "expected"), [("outn", {"must"}), ("w", {"should"})])
def test_a_transistor_among_the_mirrors_that_load_a_pair(drain, expected):
    """Two diodes and a crossed pair load it; a copy of one of its currents for another stage is no load."""
    planted = pair()
    planted.mos("M4", "pmos", 60, 30, 4, 1, "outp outp vdd vdd")
    planted.mos("M8", "pmos", 68, 30, 4, 0.5, "z q vdd vdd")
    planted.mos("M5", "pmos", 76, 30, 4, 1, f"{drain} outp vdd vdd")
    planted.mos("M6", "pmos", 100, 30, 4, 1, "outp outn vdd vdd")
    planted.mos("M7", "pmos", 108, 30, 4, 1, "outn outn vdd vdd")
    review = wired(planted, vdd=60.0, z=40.0, q=41.0, w=42.0).review()
    assert severities(review, "group-apart", "M8 lies among current mirror M4, M5") == expected


@pytest.mark.parametrize(("body", "expected"), [("s1", {"should"}), ("vdd", set())])
def test_halves_of_a_pair_in_wells_of_their_own(body, expected):
    """A resistor joins their sources; they are 21 um apart, without dummies. In unlike wells they are no pair."""
    planted = Planted()
    for number, x in enumerate((0, 21)):
        planted.mos(f"M{number}", "pmos", x, 0, 4, 1, f"o{number} in{number} s{number} {('s0', body)[number]}")
        planted.mos(f"M{2 + number}", "pmos", 40 + x, 0, 4, 1, f"s{number} bias vdd vdd")
        planted.mos(f"M{4 + number}", "nmos", 80 + x, 0, 4, 1, f"o{number} o{number} vss vss")
    planted.bar("R1", 8, 20, 1, 8, "s0 s1", upright=False)
    for track, net in enumerate(planted.ends):
        planted.comb(net, -6 if net == "vss" else 40.0 + track, port=net not in {"s0", "s1"})
    assert severities(planted.review(), "group-apart", "separate the devices of differential pair M0, M1") == expected


@pytest.mark.parametrize(("end", "expected"), [("g", {"must"}), ("x", set())])
def test_transistors_whose_gates_a_resistor_joins(end, expected):
    """As those of a reference, 3 to 1: the voltage on the resistor is the difference of theirs."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "g1 g1 vss vss", 3)
    planted.mos("M2", "nmos", 20, 0, 4, 1, "out g vss vss")
    planted.mos("M3", "pmos", 60, 0, 4, 1, "g p vdd vdd")
    planted.mos("M4", "pmos", 70, 0, 4, 1, "p p vdd vdd")
    planted.bar("R1", 40, 0, 1, 10, f"g1 {end}", upright=False)
    review = tracks(planted, ports=("out", "g", "p", *(("x",) * (end == "x")))).review()
    assert severities(review, "group-apart", "the units of M1 lie about none of M2") == expected


@pytest.mark.parametrize(("length", "expected"), [(1, {"should"}), (1.5, set())])
def test_diodes_below_a_mirror_are_a_loop_with_it(length, expected):
    """Their voltages add up to the same; diodes of another size shift a level."""
    planted = Planted()
    for number in (0, 1):
        planted.mos(f"M{number}", "nmos", 10 * number, 0, 4, length, f"x{number} x{number} vss vss")
        planted.mos(f"M{2 + number}", "nmos", 25 + 10 * number, 0, 4, 1, f"y{number} y0 x{number} vss")
    review = tracks(planted, ports=("x0", "x1", "y0", "y1")).review()
    assert severities(review, "group-apart", "diodes in a loop with a mirror") == expected


@pytest.mark.parametrize(("gate", "expected"), [("off", {"should"}), ("bias", set())])
def test_a_mirror_that_an_inverter_selects_and_a_cascode_closes(gate, expected):
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "x held vss vss")
    planted.mos("M2", "nmos", 12, 0, 4, 1, "out g vss vss")
    planted.mos("M3", "nmos", 20, 0, 4, 0.5, "g vc x vss")
    planted.mos("M4", "nmos", 30, 0, 4, 0.3, f"g {gate} held vss")
    planted.mos("M5", "nmos", 40, 0, 4, 0.3, "off sel vss vss")
    planted.mos("M6", "pmos", 50, 0, 4, 0.3, "off sel vdd vdd")
    planted.mos("M7", "nmos", 60, 0, 4, 0.3, "held off vss vss")
    review = tracks(planted, ports=("out", "g", "vc", "sel", *(("bias",) * (gate == "bias")))).review()
    assert severities(review, "group-apart", "mirror behind switches M1, M2") == expected


@pytest.mark.parametrize(("second", "expected"), [("tail in1 d1", {"must"}), ("d1 in1 tail", set())])
def test_drains_inside_one_half_and_outside_the_other(second, expected):
    """Of two channels each: one drain between them, or two beside them."""
    planted = Planted()
    planted.mos("M0", "nmos", 0, 0, 4, 1, "d0 in0 tail vss", 2)
    planted.mos("M1", "nmos", 6, 0, 4, 1, f"{second} vss", 2)
    planted.mos("M2", "nmos", 20, 0, 4, 1, "tail bias vss vss")
    planted.mos("M3", "pmos", 30, 0, 4, 1, "d0 d0 vdd vdd")
    planted.mos("M4", "pmos", 40, 0, 4, 1, "d1 d0 vdd vdd")
    review = tracks(planted, ports=("in0", "in1", "d1", "bias")).review()
    assert severities(review, "group-unlike", "the drains of M") == expected


@both("group-unlike.drains", "should", "must")
@pytest.mark.parametrize("gate", ["in1", "in0"])
def test_a_drain_with_a_larger_diffusion(figure, expected, gate):
    """The drains lie outside; that of a pair is larger by this share. On one gate without a diode they are no group."""
    planted, far = Planted(), 4 * SIDE * figure / (1 - figure) / 2
    for number, gates in enumerate(("in0", gate)):
        planted.mos(f"M{number}", "nmos", 10 * number, 0, 4, 1, f"tail {gates} d{number} vss", 2)
    planted.mos("M2", "nmos", 40, 0, 4, 1, "tail bias vss vss")
    planted.box("COMP", 10 + 2 + 3 * SIDE, 0, 10 + 2 + 3 * SIDE + far, 4)
    planted.box("Nplus", 10, -0.2, 10 + 2 + 3 * SIDE + far + 0.2, 4.2)
    review = tracks(planted, ports=("in0", "in1", "d0", "d1", "bias")).review()
    assert severities(review, "group-unlike", "the drains of M") == (expected if gate == "in1" else set())


@pytest.mark.parametrize(("order", "expected"), [("ABBA", set()), ("AABB", {"must"})])
def test_the_line_between_two_centres_is_no_axis(order, expected):
    """A pair and its loads side by side, each about a centre of its own, or in blocks."""
    planted = Planted()
    for number, half in enumerate(order):
        gate, drain = {"A": ("inp", "d1"), "B": ("inn", "out")}[half]
        planted.mos(f"M{half}{number}", "nmos", 3.2 * number, 0, 4, 1, f"{drain} {gate} t vss")
        planted.mos(f"ML{half}{number}", "pmos", 30 + 5 * number, 0, 4, 1, f"{drain} d1 vdd vdd")
    planted.mos("MT", "nmos", 60, 0, 4, 1, "t bias vss vss")
    review = tracks(planted, ports=("inp", "inn", "out", "bias")).review()
    assert severities(review, "axis", "miss the") == expected


@pytest.mark.parametrize(("gate", "expected"), [("q", {"should"}), ("c", set())])
def test_a_stage_with_diodes_is_no_logic(gate, expected):
    """Inverters that drive one net, one of them from itself, as in a transconductor; from another input, they are."""
    planted = Planted()
    for number, name in enumerate(("a", "b", gate)):
        planted.mos(f"MN{number}", "nmos", 12 * number, 0, 4, 1, f"q {name} vss vss")
        planted.mos(f"MP{number}", "pmos", 110 + 12 * number, 0, 4, 1, f"q {name} vdd vdd")
        planted.mos(f"ML{number}", "nmos", 60 + 12 * number, 0, 4, 1, f"y{number} q vss vss")
    review = tracks(planted, ports=("a", "b", "c", "q", "y0", "y1", "y2")).review()
    assert severities(review, "group-apart", "current mirror") == expected
