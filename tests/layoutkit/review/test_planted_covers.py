"""Findings about wires over channels and under plates: which devices lie below, and which half."""

import pytest
from planted_layout import SIDE, WIRE, Planted, both, severities

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
