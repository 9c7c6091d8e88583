"""Dummies of arrays whose units are islands, pairs of three transistors, and switches in the ring of a pair."""

import pytest
from planted_layout import Planted, limit, severities


def tracks(planted, first=50.0, ports=()):
    for track, net in enumerate(planted.ends):
        planted.comb(net, first + track, port=net in {"vss", "vdd", *ports})
    return planted


@pytest.mark.parametrize(("step", "width", "guarded"), [(6.0, 4, True), (6.7, 4, False), (6.0, 5, False)])
def test_dummies_at_the_step_of_an_array_of_islands(step, width, guarded):
    """A mirror of four islands, 5 um between their gates; at both ends a dummy so far from the last, of this width."""
    planted = Planted()
    for number, x in enumerate((0, 6, 12, 18)):
        planted.mos(f"M{number}", "nmos", x, 0, 4, 1, f"{'i' if not number else f'o{number}'} i vss vss")
    for name, x in (("MDA", -step), ("MDB", 18 + step)):
        planted.mos(name, "nmos", x, 0, width, 1, "vss vss vss vss")
    review = tracks(planted, ports=("i", "o1", "o2", "o3")).review()
    assert severities(review, "group-unlike", "of current mirror M0, M1, M2, M3 ha") == (
        set() if guarded else {"should"}
    )
    assert severities(review, "rings", "beside no transistor to guard") == (set() if guarded else {"should"})


def test_islands_without_dummies_have_bare_ends():
    planted = Planted()
    for number, x in enumerate((0, 6, 12, 18)):
        planted.mos(f"M{number}", "nmos", x, 0, 4, 1, f"{'i' if not number else f'o{number}'} i vss vss")
    review = tracks(planted, ports=("i", "o1", "o2", "o3")).review()
    assert severities(review, "group-unlike", "8 ends of the rows of current mirror M0, M1, M2, M3") == {"should"}


@pytest.mark.parametrize(
    ("sizes", "drain", "expected"), [((4, 4, 4), "y", {"should"}), ((4, 4, 2), "y", set()), ((4, 4, 4), "z", set())]
)
def test_a_pair_of_which_one_half_is_two_transistors(sizes, drain, expected):
    """The sense of a common mode; of unlike sizes, or with a drain each, they are no pair."""
    planted = Planted()
    for name, x, nets, size in zip(("M1", "M2", "M3"), (0, 3, 14), ("x cm", "y op", f"{drain} on"), sizes, strict=True):
        planted.mos(name, "nmos", x, 0, size, 1, f"{nets} t vss")
    planted.mos("M4", "nmos", 30, 0, 4, 2, "t bias vss vss")
    ports = ("x", "y", "z", "cm", "op", "on", "bias")
    review = tracks(planted, ports=ports).review()
    assert severities(review, "group-apart", "differential pair M1, M2, M3") == expected


@pytest.mark.parametrize(
    ("number", "clocked", "inverted", "guarded", "expected"),
    [
        *((2, True, "inb", True, {"should"}), (3, True, "inb", True, {"must"}), (3, False, "inb", True, set())),
        *((3, True, "d0", True, set()), (1, True, "inb", False, {"must"}), (1, False, "inb", False, set())),
    ],
)
def test_switches_in_the_ring_of_an_input_pair(number, clocked, inverted, guarded, expected):
    """So many inverters' transistors, or sources of current, beside the pair; what they drive switches a current.

    Without poly beside its gates one is as bad as three.
    """
    assert (limit("group-apart.ring", "must"), limit("group-apart.unguarded", "must")) == (2, 0)
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "x in t vss")
    planted.mos("M2", "nmos", 3.2, 0, 4, 1, f"y {inverted} t vss")
    planted.mos("M3", "nmos", 60, 0, 4, 1, "t bias vss vss")
    for left in (-0.35, 2.5, 5.6) if guarded else ():
        planted.box("Poly2", left, -0.3, left + 0.3, 4.3)
    for each in range(number):
        gate = f"c{each}" if clocked else "bias"
        planted.mos(f"MN{each}", "nmos", (6.4, 8.8, -2.6)[each], 0, 4, 1, f"d{each} {gate} vss vss")
        if clocked:
            planted.mos(f"MP{each}", "pmos", 20 + 6 * each, 0, 4, 1, f"d{each} {gate} vdd vdd")
    for box in ((-4, -1.4, 15, -1.1), (-4, 5.7, 15, 6), (-4, -1.4, -3.7, 6), (14.7, -1.4, 15, 6)):
        planted.box("COMP", *box)
        planted.box("Pplus", *box)
    for track, net in enumerate(planted.ends):
        planted.comb(net, -6 if net == "vss" else 18.0 + track, port=net != "t")
    assert severities(planted.review(), "group-apart", "the ring of differential pair M1, M2") == expected


@pytest.mark.parametrize(("drains", "expected"), [("xy", {"should"}), ("uv", set())])
def test_the_latch_of_a_comparator_has_dummies_at_its_ends(drains, expected):
    """On the drains of the pair it decides by what these leave; elsewhere it is logic. Inverters follow it."""
    planted = Planted()
    for name, x, nets in (
        ("M1", 100, f"{drains[0]} in t vdd"),
        ("M2", 106, f"{drains[1]} inb t vdd"),
        ("M3", 112, "t clk vdd vdd"),
    ):
        planted.mos(name, "pmos", x, 20, 4, 1, nets)
    for number, (one, other) in enumerate(("xy", "yx")):
        planted.mos(f"ML{number}", "nmos", 6 * number, 0, 4, 1, f"{one} {other} vss vss")
        planted.mos(f"MC{number}", "nmos", 40 + 6 * number, 0, 4, 1, f"{one} clk vss vss")
        planted.mos(f"MN{number}", "nmos", 60 + 6 * number, 0, 4, 1, f"o{one} {one} vss vss")
        planted.mos(f"MP{number}", "pmos", 130 + 6 * number, 20, 4, 1, f"o{one} {one} vdd vdd")
    review = tracks(planted, ports=("in", "inb", "clk", "ox", "oy", "u", "v")).review()
    assert severities(review, "group-unlike", "ML0, ML1") == expected


@pytest.mark.parametrize(("crossed", "expected"), [(True, True), (False, False)])
def test_the_halves_of_a_latch_are_images(crossed, expected):
    """A level shifter, whose wire of y is longer; with its own output on the upper gates each half is a gate alone."""
    planted = Planted()
    for number, (one, other, gate) in enumerate((("x", "y", "a"), ("y", "x", "b"))):
        upper = other if crossed else one
        planted.mos(f"MA{number}", "nmos", 40 * number, 0, 4, 0.5, f"{one} {gate} vss vss")
        planted.mos(f"MB{number}", "pmos", 40 * number + 6, 0, 4, 0.5, f"{one} {gate} m{number} vdd")
        planted.mos(f"MC{number}", "pmos", 40 * number + 14, 0, 4, 0.5, f"m{number} {upper} vdd vdd")
    tracks(planted, first=14.0, ports=("a", "b", "x", "y"))
    planted.box("Metal3", 40, 14.0 + [*planted.ends].index("y") - 0.14, 300, 14.14 + [*planted.ends].index("y"))
    assert ("must" in severities(planted.review(), "net-pair", "x and y are images")) == expected


@pytest.mark.parametrize(("tail", "expected"), [("u", set()), ("vss", {"should"})])
def test_inputs_of_two_amplifiers_on_one_gate(tail, expected):
    """Above tails of their own they need not match, however far apart; one at a rail sets a current."""
    planted = Planted()
    for name, x, nets in (("M1", 0, "x g t vss"), ("M2", 30, f"y g {tail} vss")):
        planted.mos(name, "nmos", x, 0, 4, 1, nets)
    for name, x, nets in (("M3", 60, "t bias vss vss"), ("M4", 66, "u bias vss vss"), ("M5", 80, "g d vdd vdd")):
        planted.mos(name, "pmos" if name == "M5" else "nmos", x, 0, 4, 2, nets)
    planted.mos("M6", "nmos", 90, 0, 4, 2, "g bias vss vss")
    review = tracks(planted, ports=("x", "y", "bias", "d")).review()
    assert severities(review, "group-apart", "M1, M2, on the gate g") == expected
