"""Resistors whose ratio counts: ladders that switches trim, copies of one current, blocks, short and turned bars."""

import pytest
from planted_layout import Planted, both, severities

TRACKS = {"a": -4, "c": -6, "b": 42, "ta": 46, "tb": 48, "tc": 50, "vss": 52}


def ladder(steps, switched=True):
    """Return a chain of bars from a by b and c to ground, of these lengths, each with a switch across, or none of R3.

    A bar of negative length lies across the others.
    """
    planted = Planted()
    for number, (length, (one, other)) in enumerate(zip(steps, (("a", "b"), ("c", "b"), ("c", "vss")), strict=True)):
        x = 3.0 * number
        planted.bar(f"R{number}", x, 0, 1, abs(length), f"{one} {other}", upright=length > 0)
        if number < 2 or switched:
            planted.mos(f"M{number}", "nmos", 30 + 5 * number, 0, 4, 0.5, f"{one} t{'abc'[number]} {other} vss")
    for net, track in TRACKS.items():
        if net in planted.ends:
            planted.comb(net, track)
    return planted


@pytest.mark.parametrize(("switched", "expected"), [(True, {"must"}), (False, set())])
def test_the_steps_of_a_ladder_are_one_ratio(switched, expected):
    """The last step has another unit; without a switch across it is no step."""
    planted = ladder((10, 10, 5), switched)
    assert severities(planted.review(), "passives", "R0, R1, R2 are drawn in 2 different units") == expected


@pytest.mark.parametrize(("last", "expected"), [(10, set()), (-10, {"should"})])
def test_a_step_across_the_others(last, expected):
    assert severities(ladder((10, 10, last)).review(), "passives", "lies across") == expected


@both("passives.blocks", "should")
@pytest.mark.parametrize("mixed", [False, True])
def test_blocks_of_a_ratio(figure, expected, mixed):
    """Two bars each in series, as AABB with as much between the middles, or as ABBA."""
    planted = Planted()
    inner = (("A", "B"), ("B", "A"))[mixed]
    for name, x in zip(("A", *inner, "B"), (0, 2, figure, 2 + figure), strict=True):
        nets = {"A": ("a am", "m am"), "B": ("b bm", "m bm")}[name]
        part = sum(name in card.split()[0] for card in planted.cards)
        planted.bar(f"R{name}{part}", x, 0, 1, 10, nets[part])
    for net, track in {"a": -4, "b": -5, "m": -6, "vss": -8, "am": 26, "bm": 28}.items():
        planted.comb(net, track, port=net not in {"am", "bm"})
    found = severities(planted.review(), "passives", "side by side")
    assert found == (set() if mixed else expected)


@pytest.mark.parametrize(("gate", "expected"), [("n2", {"should"}), ("in", set())])
def test_a_resistor_into_which_a_mirror_copies_the_current_of_another_one(gate, expected):
    """R1 is at the emitter of a source of current, R2 at a mirror of that or at a stage; they are 10 and 15 um long."""
    planted = Planted()
    planted.npn("Q1", 0, 20, "n1 n1 vss")
    planted.npn("Q2", 40, 20, "n2 n1 e2")
    for number, nets in enumerate(("n1 n2", "n2 n2", f"v {gate}")):
        planted.mos(f"M{number}", "pmos", 70 + 8 * number, 20, 4, 1, f"{nets} vdd vdd")
    planted.bar("R1", 100, -20, 1, 10, "vss e2")
    planted.bar("R2", 103, -20, 1, 15, "vss v")
    tracks = {"n1": 13, "n2": 12, "e2": 11, "v": 10, "in": 9, "vdd": 40, "vss": -24}
    for net, track in tracks.items():
        if net in planted.ends:
            planted.comb(net, track, port=net not in {"n1", "n2", "e2"})
    assert severities(planted.review(), "passives", "R1, R2 are drawn in 2 different units") == expected


def test_a_resistor_into_which_bipolar_cascodes_lead_the_current_of_another_one():
    planted = Planted()
    for number, nets in enumerate(("t bias e", "a inp t", "b inn t", "outp vc a", "outn vc b")):
        planted.npn(f"Q{number}", 40 * number, 20, nets)
    for number, (nets, w, long) in enumerate((("vss e", 1, 10), ("outp vdd", 1, 15), ("outn vdd", 2, 15))):
        planted.bar(f"R{number}", 200 + 3 * number, -20, w, long, nets)
    tracks = {"t": 13, "a": 12, "b": 11, "inp": 10, "inn": 9, "bias": 8, "vc": 7, "e": 6, "vdd": 40}
    for net, track in {**tracks, "outp": -22, "outn": -23, "vss": -24}.items():
        planted.comb(net, track, port=net not in {"t", "a", "b", "e"})
    assert severities(planted.review(), "passives", "R0, R1 are drawn in 2 different units") == {"should"}
