"""Matched devices whose errors matter to the circuit are severe; what only changes a bias is worth mending."""

import pytest
from planted_layout import Planted, severities


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
