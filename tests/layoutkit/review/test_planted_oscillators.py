"""What the review says of oscillators with a resonator, and of data that cross two outputs, on planted layouts."""

import pytest
from planted_layout import GF, WIRE, Planted, limit, pair, severities, wired

METAL3 = GF.conductor("Metal3")
TANK, TUNED = "between the capacitors of an oscillator", "a node of an oscillator"


def plate(planted, name, x, net, track):
    """Draw a capacitor from a net to the ground, its top plate joined to the net's track."""
    planted.plate(name, x, 40, 5, f"{net} vss")
    planted.via3(net, x + 1, track)
    planted.square("Via4", x + 1, track, 0.26)
    planted.box("Metal5", x + 0.8, track - 0.2, x + 1.2, 44, net)
    planted.box("Metal4", x + 3.8, -6.2, x + 4.2, 39.5, "vss")
    planted.via3("vss", x + 4, -6)


def buffered(planted, net):
    """Draw two inverters that make a clock of a net."""
    for x, kind, ends, supply in ((-60, "nmos", f"y {net}", "vss"), (-50, "pmos", f"y {net}", "vdd"),
                                  (-40, "nmos", "clk y", "vss"), (-30, "pmos", "clk y", "vdd")):  # fmt: skip
        planted.mos(f"M{-x}", kind, x, 0, 4, 1, f"{ends} {supply} {supply}")


def crystal(far, *, resistor=True, clock=None):
    """Return an oscillator with a capacitor so far to the right; its output as a clock leads up to ``clock``."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "xout xin vss vss")
    planted.bar("R1", 10, 0, 1, 10, "xin xout" if resistor else "other xout", upright=False)
    buffered(planted, "xout")
    plate(planted, "C1", far, "xin", 20)
    plate(planted, "C2", -20, "xout", 22)
    tracks = {"xin": 20, "xout": 22, "vdd": 28, "y": 30, "other": 32}
    for net in planted.ends:
        if net in tracks:
            planted.comb(net, tracks[net], right=far + 1.2 if net == "xin" else None, port=net != "y")
    planted.comb("clk", 24, right=clock)
    planted.comb("vss", -6, right=far + 4.2)
    return planted


def test_without_a_resistor_to_bias_it_nothing_is_an_oscillator():
    assert severities(crystal(60, clock=65).review(), "coupling", TUNED) == {"should"}
    assert not severities(crystal(60, clock=65, resistor=False).review(), "coupling", TUNED)


def test_a_bias_that_capacitors_hold_is_no_oscillator():
    """The resistor sets the current of a mirror: it leads to the supply, which a diode joins with the drain."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "nb nb vss vss")
    planted.mos("M2", "nmos", 6, 0, 4, 1, "pb nb vss vss")
    planted.mos("M3", "pmos", 30, 0, 4, 1, "pb pb vdd vdd")
    planted.bar("R1", 42, 0, 1, 10, "nb vdd", upright=False)
    buffered(planted, "pb")
    plate(planted, "C1", 60, "nb", 20)
    plate(planted, "C2", -20, "pb", 22)
    for net, track in (("nb", 20), ("pb", 22), ("clk", 24), ("vdd", 28), ("y", 30), ("vss", -6)):
        planted.comb(net, track, left=-62 if net != "y" else None, right=65 if net != "y" else None, port=net != "y")
    assert not severities(planted.review(), "coupling", TUNED)


@pytest.mark.parametrize(("right", "expected"), [(55, set()), (65, {"should"})])
def test_a_clock_that_crosses_a_node_of_an_oscillator(right, expected):
    """On Metal3, under the wire of Metal5 that leads to the plate."""
    found = [each for each in crystal(60, clock=right).review().findings if TUNED in each.why and "xin" in each.nets]
    assert {each.severity for each in found} == expected


@pytest.mark.parametrize(("more", "expected"), [(0, set()), (1, {"should"})])
def test_data_that_cross_one_output_more_often_than_the_other(more, expected):
    """Wires of Metal4 from one input over the track of one output, one more than the limit or as many."""
    planted = wired(pair(gap=20))
    right = max(x for x, _ in planted.ends["outn"])
    planted.box("Metal3", 0, 24 - WIRE / 2, right, 24 + WIRE / 2, "outp")
    planted.box("Metal3", 0, 25 - WIRE / 2, right, 25 + WIRE / 2, "outn")
    planted.box("Metal3", 0, 18 - WIRE / 2, right, 18 + WIRE / 2, "inp")
    for number in range(int(limit("coupling.unlike", "should")) - 2 + more):  # two more at their own places
        planted.via3("inp", 4 + 3 * number, 18)
        planted.box("Metal4", 3.8 + 3 * number, 18, 4.2 + 3 * number, 24.4, "inp")
    assert severities(planted.review(), "coupling", "inputs cross the two outputs unlike") == expected
