"""Matched devices whose errors matter to the circuit are severe; what only changes a bias is worth mending."""

import pytest
from planted_layout import SIDE, Planted, both, pair, severities, wired


def tracks(planted, first=40.0, ports=()):
    for track, net in enumerate(planted.ends):
        planted.comb(net, first + track, port=net in {"vss", "vdd", *ports})
    return planted


@pytest.mark.parametrize(
    ("reference", "output", "expected"),
    [((4, 1), (4, 1), set()), ((4, 1), (16, 1), {"must"}), ((8, 1), (4, 2), {"must"}), ((5, 1), (8, 1), {"should"})],
)
def test_units_of_a_bias_mirror(reference, output, expected):
    """Sizes in a whole ratio have a common unit, the smaller one; 5 um and 8 um have none that is drawn."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, reference[0], 1, "ref ref vss vss", reference[1])
    planted.mos("M2", "nmos", 6, 0, output[0], 1, "out ref vss vss", output[1])
    assert severities(tracks(planted, ports=("ref", "out")).review(), "group-unlike", "um wide") == expected


@pytest.mark.parametrize(("second", "expected"), [((4.5, 2), {"should"}), ((9, 1), {"must"})])
def test_the_reference_of_two_equal_sources_may_have_another_unit(second, expected):
    """M4 and M5 are on the two outputs of a pair: unlike each other they are an offset, unlike M6 a bias."""
    planted = Planted()
    planted.mos("M1", "nmos", -5, 10, 4, 1, "outp inp tail vss")
    planted.mos("M2", "nmos", 5, 10, 4, 1, "outn inn tail vss")
    planted.mos("M3", "nmos", 0, 0, 4, 1, "tail bias vss vss")
    planted.mos("M4", "pmos", -14, 24, 4.5, 1, "outp b vdd vdd", 2)
    planted.mos("M5", "pmos", 12, 24, second[0], 1, "outn b vdd vdd", second[1])
    planted.mos("M6", "pmos", 24, 24, 8, 1, "b b vdd vdd")
    tracks(planted, ports=("outp", "outn", "inp", "inn", "bias", "b"))
    assert severities(planted.review(), "group-unlike", "um wide") == expected


@pytest.mark.parametrize(("moved", "expected"), [("loads", {"must"}), ("outputs", {"should"})])
def test_pairs_behind_the_mirrors_of_a_stage(moved, expected):
    """The loads of a pair share a supply; of M7 and M8, which share none, one is on the output."""
    planted = Planted()
    off = {name: 3 * (name == moved) for name in ("loads", "outputs")}
    planted.mos("M0", "nmos", 0, 0, 4, 1, "tail bias vss vss")
    for number, side, out, low in ((0, "p", "x", "p"), (1, "n", "y", "q")):
        for row, kind, nets, shift in (
            (1, "nmos", f"o{side} in{side} tail vss", 0),
            (3, "pmos", f"o{side} o{side} vdd vdd", off["loads"]),
            (5, "pmos", f"{out} o{side} vdd vdd", 0),
            (7, "nmos", f"{out} {out} {low} vss", off["outputs"]),
            (9, "nmos", f"{low} p vss vss", 0),
        ):  # each with columns of its own
            planted.mos(f"M{row + number}", kind, 5 * row * (2 * number - 1) + shift, 8 * row, 4, 1, nets)
    tracks(planted, first=90.0, ports=("inp", "inn", "bias", "y"))
    found = [each for each in planted.review().findings if each.id == "axis"]
    names = {"loads": "M3", "outputs": "M7"}
    assert {each.severity for each in found if names[moved] in each.devices} == expected


@pytest.mark.parametrize(("joined", "expected"), [("vdd", set()), ("z", {"must"})])
def test_a_well_that_nothing_is_joined_to(joined, expected):
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "out in vss vss")
    planted.mos("M2", "pmos", 6, 0, 4, 1, f"out in vdd {joined}")
    assert severities(tracks(planted, ports=("in", "out")).review(), "well-tap", "floats") == expected


def loaded(gap, gate):
    """Return a pair with two loads as far from each other as told, about its middle."""
    planted = pair()
    left = 1.6 - gap / 2 - 1 - SIDE
    planted.mos("M4", "pmos", left, 30, 4, 1, f"outp {gate} vdd vdd")
    planted.mos("M5", "pmos", left + 1 + gap, 30, 4, 1, f"outn {gate} vdd vdd")
    return wired(planted, vdd=45.0, **{gate: 40.0}).review()


@both("group-apart.halves", "should", "must")
def test_loads_of_a_pair_that_lie_apart(figure, expected):
    assert severities(loaded(figure, "b"), "group-apart", "halves") == expected


@pytest.mark.parametrize(("gate", "expected"), [("b", {"should"}), ("clk", set())])
def test_what_a_clock_turns_on_may_lie_apart(gate, expected):
    assert severities(loaded(20, gate), "group-apart", "halves") == expected


@pytest.mark.parametrize(
    ("gate", "guarded", "expected"), [("b", False, {"should"}), ("b", True, set()), ("x", False, set())]
)
def test_a_reference_whose_copies_are_elsewhere(gate, guarded, expected):
    """Its gate is a port; a diode between inner nets biases nothing."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, f"{gate} {gate} vss vss")
    planted.mos("M2", "pmos", 30, 0, 4, 0.5, f"{gate} in vdd vdd")
    for left in (-0.4, 2.3) if guarded else ():
        planted.box("Poly2", left, -0.3, left + 0.3, 4.3)
    assert severities(tracks(planted, ports=("b", "in")).review(), "group-unlike", "reference") == expected


@both("room.split", "should")
def test_channels_that_are_too_narrow(figure, expected):
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, round(figure, 3), 1, "out in vss vss", 2)
    planted.mos("M2", "nmos", 10, 0, 0.3, 1, "z in vss vss")  # one channel is as wide as asked for
    assert severities(tracks(planted, ports=("out", "in", "z")).review(), "room", "divided") == expected


@pytest.mark.parametrize(("dummies", "expected"), [(3, set()), (4, {"should"})])
def test_as_many_dummies_as_channels_in_a_row(dummies, expected):
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "out in vss vss", 4)
    planted.mos("MD", "nmos", 4 * (1 + SIDE), 0, 4, 1, "vss vss vss vss", dummies)
    assert severities(tracks(planted, ports=("out", "in")).review(), "rings", "in a row") == expected


@both("rings.away", "should")
def test_a_dummy_away_from_its_transistor(figure, expected):
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "out in vss vss")
    planted.mos("MD", "nmos", 1 + figure, 0, 4, 1, "out in out vss")
    planted.mos("MX", "nmos", 30, 0, 4, 1, "z z2 vss vss")
    assert severities(tracks(planted, ports=("out", "in", "z", "z2")).review(), "rings", "tied to a net of") == expected


@pytest.mark.parametrize(("gate", "expected"), [("in", {"should"}), ("z", set())])
def test_a_transistor_between_two_signals_is_a_capacitor(gate, expected):
    """With the gate of the transistor whose drain it is on, it is a dummy."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "out in vss vss")
    planted.mos("MD", "nmos", 15, 0, 4, 1, f"out {gate} out vss")
    planted.mos("MX", "nmos", 30, 0, 4, 1, "z z2 vss vss")
    assert severities(tracks(planted, ports=("out", "in", "z", "z2")).review(), "rings", "tied to a net of") == expected


@pytest.mark.parametrize(("gate", "expected"), [("vss", {"should"}), ("out", set())])
def test_a_transistor_as_a_capacitor_is_no_dummy(gate, expected):
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 2, 0.5, "out in vss vss")
    planted.mos("MC", "nmos", 16, 0, 2, 0.5, f"vss {gate} vss vss")
    assert severities(tracks(planted, ports=("out", "in")).review(), "rings", "always off") == expected


@pytest.mark.parametrize(("end", "expected"), [("vdd", {"should"}), ("c", set())])
def test_a_resistor_to_a_capacitor_is_no_load(end, expected):
    planted = pair()
    planted.bar("R1", 0, 60, 1, 10, f"outp {end}")
    if end == "c":
        planted.plate("C1", 10, 90, 5, "z c")
        planted.label("z", "Metal5", 12, 92)
        planted.via3("c", 9.5, 80)
        planted.box("Metal4", 9.3, 80, 9.7, 90, "c")
    planted.mos("MZ", "pmos", 40, 10, 4, 1, "zz zzz vdd vdd")
    ends = planted.ends.pop("c", [])
    wired(planted, vdd=75.0, zz=30.0, zzz=32.0)
    if end == "c":
        planted.ends["c"] = ends
        planted.comb("c", 80.0, right=9.7, port=False)
    assert severities(planted.review(), "flow-order", "loads") == expected


@pytest.mark.parametrize(("rows", "expected"), [((0, 0, 0), {"should"}), ((0, 40, 80), set())])
def test_equal_cells_in_rows_above_each_other_have_rails_of_their_own(rows, expected):
    """The transistors at power lie below those at ground in each cell."""
    planted, cards = Planted(), []
    for number, y in enumerate(rows):
        x = 25 * number
        planted.mos(f"MN{number}", "nmos", x, y + 14, 2, 0.5, f"y{number} a{number} vss vss")
        planted.mos(f"MP{number}", "pmos", x + 5, y, 2, 0.5, f"y{number} a{number} vdd vdd")
        cards.append(f"X{number} a{number} y{number} vdd vss cell")
    for net, track in [
        ("vss", -6.0),
        ("vdd", 110.0),
        *((f"{c}{n}", 100 + 3.0 * n + (c == "a")) for c in "ay" for n in range(3)),
    ]:
        planted.comb(net, track, left=-8, right=80, width=1 if net in {"vss", "vdd"} else 0.28)
    text = f".subckt TOP {' '.join(planted.ports)}\n" + "\n".join(cards) + "\n.ends\n.subckt cell a y vdd vss\n"
    text += "MN y a vss vss nfet_03v3 W=2u L=0.5u\nMP y a vdd vdd pfet_03v3 W=2u L=0.5u\n.ends\n"
    assert severities(planted.review(text), "rail-side", "nearer to the other one") == expected


@both("flow-order.tail", "should")
def test_a_tail_far_from_its_pair(figure, expected):
    """The lower ends of the channels of the pair are at 10 um."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 10, 4, 1, "outp inp tail vss")
    planted.mos("M2", "nmos", 3.2, 10, 4, 1, "outn inn tail vss")
    planted.mos("M3", "nmos", 1.5, 6 - figure, 4, 1, "tail bias vss vss")
    assert severities(wired(planted).review(), "flow-order", "which feeds") == expected


@pytest.mark.parametrize(("upright", "expected"), [(True, set()), (False, {"should"})])
def test_a_bar_across_others(upright, expected):
    planted = Planted()
    planted.bar("R1", 0, 0, 1, 10, "a b")
    planted.bar("R2", 4, 0, 1, 10, "c d")
    planted.bar("R3", 30, 0, 1, 10, "e f", upright=upright)
    for net, track in {"a": -10.0, "b": 40.0, "c": -12.0, "d": 42.0, "e": -14.0, "f": 44.0}.items():
        planted.comb(net, track)
    assert severities(planted.review(), "passives", "across") == expected


def test_ports_on_nothing_are_no_pair():
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 0.3, "out in vss vss")
    planted.ends |= {"spare": [(20.0, 0.0)], "other": [(22.0, 0.0)]}
    for track, net in enumerate(("out", "in", "vss", "spare", "other")):
        planted.comb(net, 8.0 + 2 * track, left=-5 - 100 * (net == "other"), right=25)
    assert not severities(planted.review(), "net-pair")


@pytest.mark.parametrize(("width", "fingers", "expected"), [(2, 12, set()), (4, 6, {"should"}), (5, 5, set())])
def test_the_channels_of_a_second_stage_and_of_the_loads_that_drive_it(width, fingers, expected):
    """The loads have 4 um in all; 25 um are no multiple of it."""
    planted = pair()
    planted.mos("M4", "pmos", -8, 40, 2, 1, "outp outp vdd vdd", 2)
    planted.mos("M5", "pmos", 9, 40, 2, 1, "outn outp vdd vdd", 2)
    planted.mos("M6", "pmos", 30, 40, width, 1, "z outn vdd vdd", fingers)
    assert severities(wired(planted, vdd=55.0, z=57.0).review(), "group-unlike", "that drive it") == expected


@pytest.mark.parametrize(("width", "expected"), [(3.98, {"should"}), (3.8, set())])
def test_a_pair_whose_widths_differ_by_a_rounding(width, expected):
    review = wired(pair(9.0, w=width)).review()
    assert severities(review, "group-apart", "differential pair M1, M2") == expected
    assert severities(review, "group-unlike", "um wide") == set()  # as the netlist has it


def test_sources_of_nearly_one_width_on_one_rail_are_no_pair():
    planted = Planted()
    for name, x, width in (("M1", 0, 4), ("M2", 20, 3.98)):
        planted.mos(name, "nmos", x, 0, width, 1, f"o{name} i{name} vss vss")
    assert severities(tracks(planted, ports=("oM1", "oM2", "iM1", "iM2")).review(), "group-apart") == set()


@pytest.mark.parametrize(
    ("gate", "width", "third", "expected"),
    [("g", 4, "z", {"should"}), ("g", 3.8, "z", set()), ("x", 4, "z", set()), ("g", 4, "g", set())],
)
def test_a_pair_on_one_gate_that_holds_two_nodes_equal(gate, width, third, expected):
    """Its sources are on unlike nets; without the diode it is none, nor with another one: cascodes."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 10, 4, 1, f"{gate} g a vss")
    planted.mos("M2", "nmos", 6, 10, width, 1, "out g b vss")
    planted.mos("M3", "nmos", 20, 0, 4, 0.5, f"y {third} vss vss")
    review = tracks(planted, ports=("g", "x", "out", "a", "b", "y", "z")).review()
    assert severities(review, "group-apart", "pair on one gate M1, M2") == expected


@pytest.mark.parametrize(("width", "expected"), [(8, {"must"}), (6.6, set())])
def test_diodes_whose_wells_are_their_gates(width, expected):
    """Their drains, gates and wells are on the substrate's net; a whole ratio wants equal channels."""
    planted = Planted()
    planted.mos("M0", "nmos", 40, 0, 4, 1, "out in vss vss")
    planted.mos("M9", "pmos", 60, 0, 4, 1, "out in vdd vdd")
    for name, x, wide in (("M1", 0, 4), ("M2", 12, width)):
        planted.mos(name, "pmos", x, 0, wide, 1, f"vss vss n{name} vss")
    review = tracks(planted, ports=("out", "in", "nM1", "nM2")).review()
    assert severities(review, "group-unlike", "the channels of diodes in a ratio") == expected
    assert severities(review, "rings", "always off") == set()


@pytest.mark.parametrize(("gates", "expected"), [("lob lo", set()), ("p q", {"must"})])
def test_the_two_pairs_of_a_mixer_are_interleaved(gates, expected):
    """On the same outputs with the same gates, exchanged, they are one quad; with gates of its own one is foreign."""
    planted, (one, other) = Planted(), gates.split()
    for x, name, nets in (
        (0, "M1", "a lo t"),
        (4, "M3", f"a {one} u"),
        (8, "M4", f"b {other} u"),
        (12, "M2", "b lob t"),
    ):
        planted.mos(name, "nmos", x, 10, 4, 0.5, f"{nets} vss")
    planted.mos("M5", "nmos", 1, 0, 4, 1, "t rf vss vss")
    planted.mos("M6", "nmos", 9, 0, 4, 1, "u rfb vss vss")
    for track, net in enumerate(planted.ends):
        planted.comb(net, -5 if net == "vss" else 20.0 + track, port=net not in {"t", "u"})
    assert severities(planted.review(), "group-apart", "lie among differential pair M1, M2") == expected
