"""What no engineer signs although DRC and LVS are clean, each in a small layout, is found."""

import pytest
from planted_layout import SIDE, WIRE, Planted, pair, wired

from layoutkit.circuit.circuit import StatedSupplies


def found(review, kind, words=""):
    return {each.severity for each in review.findings if each.id == kind and words in each.why}


def tracks(planted, places, width=WIRE, hidden=()):
    for net, track in places.items():
        planted.comb(net, track, width=1.0 if net in {"vss", "vdd"} else width, port=net not in hidden)
    return planted


def test_an_amplifier_upside_down():
    """The load, of PMOS, lies at the ground rail, the tail under the power rail."""
    planted = Planted()
    planted.mos("M3", "nmos", 4, 30, 4, 1, "tail bias vss vss")
    planted.mos("M1", "nmos", 0, 20, 4, 1, "x inp tail vss")
    planted.mos("M2", "nmos", 8, 20, 4, 1, "out inn tail vss")
    planted.mos("M4", "pmos", 20, 4, 4, 1, "x x vdd vdd")
    planted.mos("M5", "pmos", 28, 4, 4, 1, "out x vdd vdd")
    places = {"vss": -4.0, "vdd": 40.0, "tail": 27.0, "bias": 37.0, "x": 12.0, "out": 13.0, "inp": 17.0, "inn": 18.0}
    for net, track in places.items():
        if net in {"vss", "vdd"}:
            planted.comb(net, track, left=-6, right=36, width=1)
        else:
            planted.comb(net, track, port=net not in {"tail", "x"})
    assert found(planted.review(), "rail-side") >= {"should"}


def test_a_wide_pass_device_on_a_narrow_port():
    """630 um of pass device: at full drive some 100 mA through a port of 0.28 um."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 10, 0.28, "vout gate vin vss", 63)
    tracks(planted, {"vout": 13.0, "gate": 15.0, "vin": -3.0, "vss": -8.0})
    review = planted.review()
    for kind in ("narrow-port", "electromigration", "wire-resistance"):
        assert found(review, kind) >= {"must"}
    assert not review.would_sign


@pytest.mark.parametrize("gap", [12, 19])
def test_an_input_pair_far_apart(gap):
    review = wired(pair(gap=gap)).review()
    assert found(review, "group-apart", "differential pair") == {"should"}
    between = pair(gap=gap)
    between.mos("M4", "nmos", 1 + 2 * SIDE + gap / 2 - 1, 10, 4, 1, "y z vss vss")
    assert found(wired(between, y=27.0, z=28.0).review(), "group-apart", "M4 lies among") == {"must"}


def test_a_capacitor_as_one_row():
    """Ten fingers of 49 x 21 um in a row 500 um long; what is beside it is 100 um high."""
    planted = Planted()
    planted.mos("MC", "nmos", 0, 0, 21, 49, "vss g vss vss", 10)
    for number in range(8):
        planted.mos(f"M{number}", "nmos", -8, 30 + 9 * number, 2, 0.5, f"d{number} g{number} vss vss")
        planted.ends[f"d{number}"] = [(x - 2 * number, y) for x, y in planted.ends[f"d{number}"]]
    for layer, net in (("Metal1", "vss"),):
        planted.box(layer, -8, 28, -7.4, 100, net)
    del planted.ends["vss"][1 + 11 :]
    for number in range(8):
        y = 30 + 9 * number
        planted.label(f"d{number}", "Metal1", -8 + 1.4, y + 1)
        planted.label(f"g{number}", "Metal1", -8 + 0.85, y + 2.6)
    planted.comb("g", 24)
    planted.ends["vss"].append((-7.7, 99.0))
    planted.comb("vss", -4)
    review = planted.review()
    assert found(review, "room", "as long as") == {"must"}
    assert found(review, "room", "of the core") == {"must"}


def test_dummies_as_lone_devices():
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 2, 0.5, "out in vss vss")
    for number in range(26):
        planted.mos(f"MD{number}", "nmos", 10 + 6 * number, 0, 2, 0.5, "vss vss vss vss")
    tracks(planted, {"out": 6.0, "in": 7.0, "vss": -4.0})
    assert found(planted.review(), "rings", "26 transistors") == {"should"}


def test_one_dummy_as_a_lone_device():
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 2, 0.5, "out in vss vss")
    planted.mos("MD", "nmos", 16, 0, 2, 0.5, "vss vss vss vss")
    tracks(planted, {"out": 6.0, "in": 7.0, "vss": -4.0})
    words = "1 transistor is always off and lies beside no transistor to guard"
    assert found(planted.review(), "rings", words) == {"should"}


def test_an_aspect_that_was_asked_for_and_missed():
    """Told 1.6, drawn 2.6."""
    planted = wired(pair())
    planted.box("PR_bndry", -10, -20, -10 + 2.6 * 60, 40)
    assert found(planted.review(constraints={"outline": [{"aspect": 1.6}]}), "room", "aspect 2.6") == {"must"}


def test_capacitors_strewn_around_delay_cells():
    """Twelve equal capacitors to ground, at places that follow from nothing."""
    planted = Planted()
    places = [(20 * (n % 4) + 3 * (n * n % 7), 40 + 22 * (n // 4) + 2 * (n * 5 % 4)) for n in range(12)]
    for number, (x, y) in enumerate(places):
        planted.plate(f"C{number}", x, y, 5, f"vss n{number}")
        planted.label(f"n{number}", "Metal4", x - 0.5, y - 0.5)
        planted.box("Metal5", x + 2, 30, x + 3, y + 3, "vss")
    planted.box("Metal5", -3, 30, 90, 31, "vss")
    planted.box("Metal5", -3, 4, -2, 31, "vss")
    for layer, level in (("Via1", "Metal2"), ("Via2", "Metal3"), ("Via3", "Metal4"), ("Via4", "Metal5")):
        planted.square(layer, -2, 5, 0.26)
        planted.square(level, -2, 5, 0.6, "vss")
    planted.label("vss", "Metal5", -2.5, 20)
    ground = StatedSupplies(ground=("vss",))  # no transistor tells it
    assert found(planted.review(supplies=ground), "passives", "12 equal capacitors") == {"should"}


def test_an_amplifier_in_two_columns_with_a_serpentine_between():
    """Each pair is symmetric in itself; the load stands 40 um beside the inputs, and one wire meanders to it."""
    planted = pair()
    planted.mos("M4", "pmos", 40, 10, 4, 1, "outp outp vdd vdd")
    planted.mos("M5", "pmos", 48, 10, 4, 1, "outn outp vdd vdd")
    places = {"outn": 18.0, "inp": 16.5, "inn": 17.2, "tail": 7.0, "bias": -3.0, "vss": -5.0, "vdd": 21.0}
    tracks(planted, places, hidden=("tail",))
    planted.comb("outp", 30.0, port=False)
    for start in (10, 20, 30):
        planted.erase("Metal3", start + 0.5, 29, start + 2.5, 31)
        for x in (start + 0.22, start + 2.5):
            planted.box("Metal3", x, 30 - WIRE / 2, x + WIRE, 45, "outp")
        planted.box("Metal3", start + 0.22, 45, start + 2.5 + WIRE, 45 + WIRE, "outp")
    review = planted.review()
    assert found(review, "axis") == {"must"}
    assert found(review, "dead-metal", "meander") == {"should"}
    assert found(review, "dead-metal", "of the area") == {"must"}
    assert found(review, "wire-length", "outp has")
    assert not review.would_sign
