"""Findings on the halves of circuits without an input pair above a tail: what can be exchanged without a change."""

import pytest
from planted_layout import GF, WIRE, Planted, both, limit, pair, severities, wired

TRACKS = {"a": 20, "b": 21, "in": 22, "ib": 23, "x": 24, "y": 25, "vdd": 30, "vss": -4}
HALF = (("nmos", 0, "{a} {i} vss vss"), ("pmos", 8, "{x} {b} vdd vdd"), ("pmos", 16, "{a} {i} {x} vdd"))
LEFT, RIGHT = {"a": "a", "b": "b", "i": "in", "x": "x"}, {"a": "b", "b": "a", "i": "ib", "x": "y"}


def level_shifter(step=None, off=0.0, bars=()):
    """Return two halves that drive each other: mirrored about 24 um, or moved by a step; one device of the right off.

    The inner transistors of the right half are off by as much, too, where it is moved. Bars at the drains come on wish.
    """
    planted = Planted()
    for net, x in zip("ab", bars, strict=False):
        planted.bar(f"R{net}", x, 40, 0.36, 4, f"{net} o{net}")
    for number, (kind, place, nets) in enumerate(HALF):
        x = 48 - 2.2 - place if step is None else place + step
        planted.mos(f"ML{number}", kind, place, 0, 2, 1, nets.format(**LEFT))
        planted.mos(f"MR{number}", kind, x + off * (number == 1), 0, 2, 1, nets.format(**RIGHT))
    for net, track in {**TRACKS, "oa": 50, "ob": 51}.items():
        if net in planted.ends:
            planted.comb(net, track, port=net not in {"a", "b", "x", "y"})
    return planted


@both("axis", "must", "should")
def test_halves_that_drive_each_other(figure, expected):
    """One of three pairs is off, so that its middle is by half."""
    assert severities(level_shifter(off=2 * figure).review(), "axis") == expected


@pytest.mark.parametrize(("made_of", "expected"), [("in", set()), ("en", {"must"})])
def test_a_signal_and_its_complement_set_no_halves(made_of, expected):
    """An inverter in the cell makes the second input from the first, or from another signal."""
    planted = Planted()
    planted.mos("MN", "nmos", 60, 0, 2, 1, f"ib {made_of} vss vss")
    planted.mos("MP", "pmos", 68, 0, 2, 1, f"ib {made_of} vdd vdd")
    for number, (x, out, other, gate) in enumerate(((0, "a", "b", "in"), (32, "b", "a", "ib"))):
        planted.mos(f"ML{number}", "nmos", x, 0, 2, 1, f"{out} {gate} vss vss")
        planted.mos(f"MU{number}", "pmos", x + 8 - 5 * number, 0, 2, 1, f"{out} {other} vdd vdd")
    for net, track in {**TRACKS, "en": 26}.items():
        if net in planted.ends:
            planted.comb(net, track, port=net != "ib")
    review = planted.review()
    assert severities(review, "axis") == expected
    assert bool(severities(review, "group-apart", "cross-coupled pair")) == bool(expected)


@pytest.mark.parametrize(("beside", "expected"), [(True, [True]), (False, [])])
def test_the_axis_is_that_of_most_pairs(beside, expected):
    """Two pairs are mirrored about x = 24; three of bars stand beside each other in a row, or are mirrored as well."""
    planted = Planted()
    for half, other, end in (("l", "r", 0), ("r", "l", 48)):
        for name, place, nets in (("n", 0, f"a{half} g{half} vss vss"), ("p", 8, f"a{half} a{other} vdd vdd")):
            x = place if not end else end - 2.2 - place
            planted.mos(f"M{name}{half}", f"{name}mos", x, 0, 2, 1, nets)
        for number, nets in enumerate((f"i{half} g{half}", f"o{half} a{half}", f"p{half} g{half}")):
            x = 60 + 4 * number + 0.9 * bool(end) if beside else abs(end - 14 - 2 * number) - 0.36 * bool(end)
            planted.bar(f"R{number}{half}", x, 10, 0.36, 4, nets)
    for track, net in enumerate(planted.ends):
        below = net[0] in "iop" or net == "vss"
        planted.comb(net, -5 - 0.7 * track if below else 25 + 0.7 * track, port=net[0] not in "ag")
    found = [f.why for f in planted.review().findings if f.id == "axis" and f.severity == "must"]
    assert ["vertical axis at 24" in why for why in found] == expected


@pytest.mark.parametrize(("off", "expected"), [(0.0, set()), (0.008, {"must"})])
def test_a_half_may_be_moved_instead_of_mirrored(off, expected):
    assert severities(level_shifter(step=28.0, off=off).review(), "axis") == expected


@pytest.mark.parametrize(("off", "expected"), [(0.0, set()), (1.1, {"must"})])
def test_a_block_of_a_half_may_be_moved_where_others_are_not(off, expected):
    """The transistors of the right half are those of the left one, moved by one step; their bars stand elsewhere."""
    planted = level_shifter(step=28.0, off=off, bars=(70, 78))
    assert "must" not in expected ^ severities(planted.review(), "axis", "ML0")


def test_two_equal_inverters_on_two_inputs_are_no_halves():
    planted = Planted()
    for number, (x, y) in enumerate(((0, 0), (17, 1.7))):
        planted.mos(f"MN{number}", "nmos", x, y, 2, 1, f"o{number} i{number} vss vss")
        planted.mos(f"MP{number}", "pmos", x + 5 + y, y, 2, 1, f"o{number} i{number} vdd vdd")
    for net, track in {"o0": 10, "o1": 11, "i0": 12, "i1": 13, "vdd": 16, "vss": -4}.items():
        planted.comb(net, track)
    assert not severities(planted.review(), "axis")


@pytest.mark.parametrize(("dy", "expected"), [(0.9, {"should"}), (1.1, {"must"})])
def test_a_bipolar_pair_above_two_resistors(dy, expected):
    """Its emitters are on two nets, which resistors join to the tail."""
    planted = Planted()
    planted.npn("Q1", 0, 20, "c1 in e1")
    planted.npn("Q2", 40, 20 + dy, "c2 ip e2")
    for number, nets in enumerate(("t e1", "t e2", "vdd c1", "vdd c2")):
        planted.bar(f"R{number}", (27, 35, 29.5, 32.5)[number], -20, 1, 8, nets)
    planted.mos("M1", "nmos", 46, -20, 4, 1, "t bias vss vss")
    tracks = {"e1": 13, "e2": 12, "c1": 11, "c2": 10, "in": 9, "ip": 8, "vdd": -24, "t": -26, "bias": -28, "vss": -30}
    for net, track in tracks.items():
        planted.comb(net, track, port=net not in {"e1", "e2", "t"})
    assert severities(planted.review(), "axis", "Q") == expected


@pytest.mark.parametrize(("side", "dy", "expected"), [(5, 0.004, set()), (5, 1.2, {"should"}), (6, 3, set())])
def test_capacitors_that_each_hang_on_one_input_of_a_pair(side, dy, expected):
    """One leads to an output, one of the same size to a reference; of another size it is no counterpart."""
    planted = pair()
    for net, other, x, y, its in (("inp", "outp", -20, 40, 5), ("inn", "ref", 20.4, 40 + dy, side)):
        planted.plate(f"C{net}", x, y, its, f"{net} {other}")
        track = {"inp": 18, "inn": 19}[net]
        planted.via3(net, x + 2.5, track)
        planted.square("Via4", x + 2.5, track, 0.26)
        planted.box("Metal5", x + 2.2, track - 0.3, x + 2.8, y + 2)
    planted.via3("outp", -20.5, 24)
    planted.box("Metal4", -20.7, 24, -20.3, 40)
    planted.label("ref", "Metal4", 20.4, 40 + dy)
    tracks = {"outp": 24.0, "outn": 25.0, "inp": 18.0, "inn": 19.0, "tail": 7.0, "bias": -3.0, "vss": -5.0}
    left = {"inp": -18, "outp": -21}
    for net, track in tracks.items():
        planted.comb(net, track, left.get(net), 23.4 if net == "inn" else None, port=net != "tail")
    assert severities(planted.review(), "axis", "Cin") == expected


@pytest.mark.parametrize("own", [True, False])
def test_diodes_in_wells_of_their_own_may_lie_apart(own):
    """They are the large resistances at both inputs of a pair; in the well of a supply they would load it."""
    planted = pair()
    for number, (net, x) in enumerate((("inp", -30), ("inn", 30))):
        body = net if own else "vdd"
        planted.mos(f"MR{number}", "pmos", x, 30, 2, 1, f"x{number} x{number} {net} {body}")
        planted.mos(
            f"MS{number}", "pmos", x + 10, 30, 2, 1, f"x{number} x{number} y{number} {f'y{number}' if own else 'vdd'}"
        )
    tracks = {"outp": 24.0, "outn": 25.0, "inp": 18.0, "inn": 19.0, "tail": 7.0, "bias": -3.0, "vss": -5.0}
    for track, net in enumerate(planted.ends):
        planted.comb(net, tracks.get(net, 40.0 + track), port=net not in {"tail", "x0", "x1"})
    review = planted.review()
    assert severities(review, "group-apart", "halves that must match") == (set() if own else {"must"})
    assert bool(severities(review, "group-apart", "load pair")) == (not own)


def test_load_diodes_in_the_well_of_a_supply_may_not_lie_apart():
    """Source and body of each are on one net as well, but they are no large resistances."""
    planted = pair()
    for half, x in (("p", -30), ("n", 30)):
        planted.mos(f"ML{half}", "pmos", x, 30, 2, 1, f"out{half} out{half} vdd vdd")
    wired(planted, vdd=40.0)
    assert severities(planted.review(), "group-apart", "halves that must match") == {"must"}


@pytest.mark.parametrize("current", [True, False])
def test_resistors_to_gates_may_lie_apart(current):
    """They bias both inputs of a pair and carry no current; as loads of the pair they must match."""
    planted = pair()
    ends = ("outp", "outn") if current else ("inp", "inn")
    for number, (net, x) in enumerate(zip(ends, (-30, 30), strict=True)):
        planted.bar(f"R{number}", x, 30, 1, 10, f"{net} vcm")
    tracks = {"outp": 24.0, "outn": 25.0, "inp": 18.0, "inn": 19.0, "tail": 7.0, "bias": -3.0, "vss": -5.0}
    for track, net in enumerate(planted.ends):
        planted.comb(net, tracks.get(net, 55.0 + track), port=net != "tail" and (current or net not in ends))
    assert severities(planted.review(), "group-apart", "R0 and R1, halves that must match") == (
        {"must"} if current else set()
    )


@pytest.mark.parametrize(("joined", "expected"), [(True, {"must"}), (False, set())])
def test_bipolar_halves_that_hold_pairs_of_their_own(joined, expected):
    """Each half is a pair that steers its current: the clocks of one steer the other as well, or it has its own."""
    planted = Planted()
    for half, own in (("l", 0), ("r", 1)):
        clock = "" if joined else half
        cells = (
            f"t{half} ct{clock} k{half}",
            f"h{half} ch{clock} k{half}",
            f"vdd h{half} t{half}",
            f"k{half} in{half} e{half}",
        )
        for number, nets in enumerate(cells):
            x = 40 * number if not own else 400 - 40 * number + 5 * (number == 2)
            planted.npn(f"Q{'THEC'[number]}{half}", x, 20, nets)
        planted.bar(f"R{half}", 200 + 12 * own, -40, 1, 8, f"e{half} vss", upright=False)
    for track, net in enumerate(planted.ends):
        planted.comb(net, 5.0 + 0.6 * track, port=net[0] in "civ")
    assert severities(planted.review(), "axis", "QE") == expected


@pytest.mark.parametrize(("sensed", "expected"), [(True, {"must"}), (False, {"should"})])
def test_the_voltage_between_drains_and_sources_does_not_matter(sensed, expected):
    """The drains of a pair lead to cascodes over ways that differ by half; ports sense their voltages."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 10, 4, 1, "d1 inp t vss")
    planted.mos("M2", "nmos", 10, 10, 4, 1, "d2 inn t vss")
    planted.mos("M3", "nmos", 5, 0, 4, 1, "t bias vss vss")
    far = 13 + 2 * limit("net-pair.ohms", "must") / (GF.conductor("Metal3").sheet_ohm / WIRE)
    planted.mos("M4", "nmos", 3, 20, 4, 1, "o1 vc d1 vss")
    planted.mos("M5", "nmos", far, 20, 4, 1, "o2 vc d2 vss")
    tracks = {"d1": 17, "d2": 18, "inp": 30, "inn": 31, "t": 7, "vc": 32, "o1": 33, "o2": 34, "bias": -3, "vss": -5}
    for net, track in tracks.items():
        planted.comb(net, track, port=net != "t" and (sensed or net[0] != "d"))
    assert severities(planted.review(), "net-pair", "in resistance") == expected


@pytest.mark.parametrize(("gate", "expected"), [("outp", set()), ("vb", {"should"})])
def test_the_diode_and_the_output_of_a_mirror_carry_other_loads(gate, expected):
    """The second drain of a pair leads 60 um to the left; its loads are a mirror, or two sources on a bias."""
    planted = pair()
    planted.mos("M6", "pmos", 20.3, 30, 4, 1, f"outp {gate} vdd vdd")
    planted.mos("M7", "pmos", 30.3, 30, 4, 1, f"outn {gate} vdd vdd")
    tracks = {"outp": 24.0, "outn": 25.0, "inp": 18.0, "inn": 19.0, "tail": 7.0, "bias": -3.0, "vss": -5.0}
    for net, track in {**tracks, "vb": 40.0, "vdd": 42.0}.items():
        if net in planted.ends:
            planted.comb(net, track, left=-60 if net == "outn" else None, port=net not in {"tail", "outp"})
    unsaid = {name: {"must": None, "should": None} for name in ("net-pair.capacitance", "net-pair.resistance")}
    assert severities(planted.review(limits=unsaid), "net-pair", "are wired differently") == expected


@pytest.mark.parametrize(
    ("width", "step", "expected"), [(4, 30, set()), (3, 30, {"must"}), (3, 24, set()), (3, 26, {"must"})]
)
def test_single_capacitors_of_two_halves_are_no_bank(width, step, expected):
    """Followers on capacitors that meet; with unlike tails they are no halves, but two plates may be 20 um apart."""
    planted = Planted()
    planted.npn("Q1", 0, 20, "vdd ip e1")
    planted.npn("Q2", 40, 20, "vdd in e2")
    planted.mos("M1", "nmos", 70, -20, 4, 1, "e1 bias vss vss")
    planted.mos("M2", "nmos", 80, -20, width, 1, "e2 bias vss vss")
    tracks = {"e1": 13, "e2": 12, "in": 9, "ip": 8, "vdd": 7, "bias": -28, "vss": -30}
    for net, track in tracks.items():
        planted.comb(net, track, right=140 if net in {"e1", "e2"} else None, port=net not in {"e1", "e2"})
    for number, x in enumerate((100, 100 + step)):
        net = f"e{number + 1}"
        planted.plate(f"C{number}", x, 60, 5, f"{net} x")
        planted.via3(net, x + 2.5, tracks[net])
        planted.square("Via4", x + 2.5, tracks[net], 0.26)
        planted.box("Metal5", x + 2.2, tracks[net] - 0.3, x + 2.8, 62)
    planted.box("Metal4", 99, 58, 106 + step, 59.5)
    planted.label("x", "Metal4", 100, 58.5)
    assert severities(planted.review(), "passives", "are split over 2 places") == expected
