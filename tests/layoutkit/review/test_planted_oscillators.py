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


def crystal(far, *, resistor=True, clock=None):
    """Return an oscillator with a capacitor so far to the right; its output as a clock leads up to ``clock``."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "xout xin vss vss")
    planted.bar("R1", 10, 0, 1, 10, "xin xout" if resistor else "other xout", upright=False)
    planted.mos("M2", "nmos", -60, 0, 4, 1, "y xout vss vss")
    planted.mos("M3", "pmos", -50, 0, 4, 1, "y xout vdd vdd")
    planted.mos("M4", "nmos", -40, 0, 4, 1, "clk y vss vss")
    planted.mos("M5", "pmos", -30, 0, 4, 1, "clk y vdd vdd")
    plate(planted, "C1", far, "xin", 20)
    plate(planted, "C2", -20, "xout", 22)
    tracks = {"xin": 20, "xout": 22, "vdd": 28, "y": 30, "other": 32}
    for net in planted.ends:
        if net in tracks:
            planted.comb(net, tracks[net], right=far + 1.2 if net == "xin" else None, port=net != "y")
    planted.comb("clk", 24, right=clock)
    planted.comb("vss", -6, right=far + 4.2)
    return planted


def tank(far, limits):
    return next((each for each in crystal(far).review(limits=limits).findings if TANK in each.why), None)


@pytest.mark.parametrize(("times", "expected"), [(0.9, {"should"}), (1.1, set())])
def test_resistance_between_a_capacitor_and_the_transistor_of_an_oscillator(times, expected):
    """It grows by that of the wire to a plate that lies farther away."""
    tiny = {"wire-resistance.tank": {"should": 1e-9}}
    near, far = (tank(away, tiny) for away in (40, 60))
    assert far.measured - near.measured == pytest.approx(METAL3.sheet_ohm * 20 / WIRE, rel=0.02)
    assert "C1 by xin" in far.why
    assert {"C1", "C2", "M1"} == {*far.devices}
    found = tank(60, {"wire-resistance.tank": {"should": far.measured * times}})
    assert {each.severity for each in [found] if each} == expected


def test_without_a_resistor_to_bias_it_nothing_is_an_oscillator():
    assert severities(crystal(60).review(), "wire-resistance", TANK) == {"should"}
    assert not severities(crystal(60, resistor=False).review(), "wire-resistance", TANK)


def test_a_bias_that_capacitors_hold_is_no_oscillator():
    """The resistor sets the current of a mirror: it leads to the supply, which a diode joins with the drain."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "nb nb vss vss")
    planted.mos("M2", "nmos", 6, 0, 4, 1, "pb nb vss vss")
    planted.mos("M3", "pmos", 30, 0, 4, 1, "pb pb vdd vdd")
    planted.bar("R1", 42, 0, 1, 10, "nb vdd", upright=False)
    plate(planted, "C1", 60, "nb", 20)
    plate(planted, "C2", -20, "pb", 22)
    for net, track in (("nb", 20), ("pb", 22), ("vdd", 28), ("vss", -6)):
        planted.comb(net, track, left=-20, right=65)
    assert not severities(planted.review(limits={"wire-resistance.tank": {"should": 1e-9}}), "wire-resistance", TANK)


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
