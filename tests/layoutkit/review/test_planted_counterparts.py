"""Findings about the nets of two halves, both ends of a switch, and bias nets that signals cross."""

import pytest
from planted_layout import WIRE, Planted, both, limit, pair, severities, wired

from layoutkit.review import wire_runs


def kicked(figure, symmetric=False, gate="q"):
    """Return a pair whose input at the left has the output of another stage beside it, away from the pair."""
    planted = pair()
    planted.mos("M8", "nmos", 12, 0, 4, 1, f"z {gate} vss vss")
    planted.mos("M9", "pmos", 16, 0, 4, 1, "z bp vdd vdd")
    wired(planted, z=21.0, q=9.0, bp=10.0, vdd=28.0)
    planted.box("Metal3", -16, 18 - WIRE / 2, 1, 18 + WIRE / 2, "inp")
    planted.box("Metal3", 4, 19 - WIRE / 2, 22, 19 + WIRE / 2, "inn")
    planted.via3("z", planted.ends["z"][0][0], 21)
    planted.box("Metal4", -16, 20.8, 22, 21.2, "z")
    for left, track in [(-16, 18), (22 - figure, 19)] if symmetric else [(-16, 18)]:
        low = track + WIRE / 2 + 0.3
        planted.box("Metal3", left, low, left + figure, low + WIRE, "z")
        planted.box("Metal4", left + 0.2, low, left + 0.6, 21, "z")
        planted.square("Via3", left + 0.4, low + WIRE / 2, 0.26)
    return planted


@both("net-pair.third", "should")
def test_a_signal_along_one_input_of_a_pair(figure, expected):
    assert severities(kicked(figure).review(), "net-pair", "farther along inp") == expected


def test_a_signal_along_both_inputs_of_a_pair():
    long = 2 * limit("net-pair.third", "should")
    assert severities(kicked(long).review(), "net-pair", "farther along inp") == {"should"}
    assert not severities(kicked(long, symmetric=True).review(), "net-pair", "farther along")


def test_a_signal_of_one_half_may_run_along_it():
    """The gate of the second stage is the input that its output runs along."""
    assert not severities(kicked(6.0, gate="inp").review(), "net-pair", "farther along")


@both("coupling.stacked", "should")
def test_the_ends_of_a_switch_over_each_other(figure, expected):
    """The channels of the switch reach over 7.8 um."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 2, 1, "b clk a vss", fingers=5)
    planted.mos("M2", "pmos", 0.4, 5, 2, 1, "b clkb a vdd", fingers=5)
    for net, track in {"a": 20, "b": 22, "clk": 24, "clkb": 26, "vss": -4, "vdd": 28}.items():
        planted.comb(net, track)
    x = planted.ends["b"][0][0]
    planted.via3("b", x, 22)
    planted.box("Metal4", x, 19.8, x + 7.8 * figure, 20.2, "b")
    planted.box("Metal4", x - 0.2, 19.8, x, 22, "b")
    assert severities(planted.review(), "coupling", "over each other") == expected


def test_the_ends_of_what_is_no_switch_may_lie_over_each_other():
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 2, 0.5, "b in a vss", fingers=8)
    planted.mos("M2", "nmos", 20, 0, 2, 0.5, "a bias vss vss")
    planted.mos("M3", "pmos", 30, 0, 2, 0.5, "b b vdd vdd")
    for net, track in {"a": 20, "b": 22, "in": 24, "bias": 26, "vss": -4, "vdd": 28}.items():
        planted.comb(net, track)
    x = planted.ends["b"][0][0]
    planted.via3("b", x, 22)
    planted.box("Metal4", x, 19.8, x + 8.2, 20.2, "b")
    planted.box("Metal4", x - 0.2, 19.8, x, 22, "b")
    assert not severities(planted.review(), "coupling", "the ends of switch")


def mirror_beside_logic(gate):
    """Return a mirror and an inverter, or a stage where ``gate``, that of its upper transistor, is not a."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 2, 0.5, "ib ib vss vss")
    planted.mos("M2", "nmos", 5, 0, 2, 0.5, "x ib vss vss")
    planted.mos("M3", "nmos", 9, 0, 2, 0.5, "y a vss vss")
    planted.mos("M4", "pmos", 12, 0, 2, 0.5, f"y {gate} vdd vdd")
    return planted


@pytest.mark.parametrize(
    ("places", "side", "gate", "expected"),
    [
        (4, 20, "a", set()),
        (5, 20, "a", {"should"}),
        (8, 20, "a", {"must"}),
        (8, 4, "a", {"should"}),
        (4, 40, "a", {"must"}),
        (8, 20, "bp", set()),
    ],
)
def test_a_bias_that_logic_crosses(monkeypatch, places, side, gate, expected):
    """The gates of a mirror, on 21 um of wire, below strips of the output of an inverter or a stage."""
    assert (limit("coupling.crossed", "must"), limit("coupling.crossed", "should")) == (7.5, 4.5)
    monkeypatch.setattr(wire_runs, "CROSSED_UM", side)
    planted = mirror_beside_logic(gate)
    for net, track in {"ib": 6, "x": 18, "y": 12, "a": 8, "bp": 16, "vss": -4, "vdd": 20}.items():
        if net in planted.ends:
            planted.comb(net, track, right=7 if net == "ib" else None)
    x = planted.ends["y"][0][0]
    planted.via3("y", x, 12)
    planted.box("Metal4", 1.2, 11.8, x + 0.2, 12.2, "y")
    for number in range(places):
        planted.box("Metal4", 1.2 + 0.8 * number, 5, 1.48 + 0.8 * number, 12, "y")
    assert severities(planted.review(), "coupling", "is crossed by") == expected


@pytest.mark.parametrize(("drain", "expected"), [("x", {"must"}), ("y", set())])
def test_a_bias_that_logic_crosses_over_a_transistor_of_both(drain, expected):
    """Over the wide channel of M2, whose gate the bias is, and whose drain the output of the inverter is, or not."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 2, 0.5, "ib ib vss vss")
    planted.mos("M2", "nmos", 5, 0, 8, 8, f"{drain} ib vss vss")
    planted.mos("M3", "nmos", 24, 0, 2, 0.5, "y a vss vss")
    planted.mos("M4", "pmos", 28, 0, 2, 0.5, "y a vdd vdd")
    for net, track in {"ib": 6, "x": 18, "y": 12, "a": 14, "vss": -4, "vdd": 20}.items():
        if net in planted.ends:
            planted.comb(net, track, right=14 if net == "ib" else None)
    x = max(x for x, _ in planted.ends["y"])
    planted.via3("y", x, 12)
    planted.box("Metal4", 6, 11.8, x + 0.2, 12.2, "y")
    for number in range(9):
        planted.box("Metal4", 6 + 0.8 * number, 5, 6.28 + 0.8 * number, 12, "y")
    assert severities(planted.review(), "coupling", "is crossed by") == expected


@pytest.mark.parametrize(("gate", "words"), [("a", "ib runs 8"), ("bp", "y, ib (8 um)")])
def test_a_bias_beside_logic_is_named_once(gate, words):
    """The gates of a mirror beside the output of an inverter, which disturbs them, or of a stage."""
    planted = mirror_beside_logic(gate)
    for net, track in {"ib": 6, "x": 18, "y": 12, "a": 8, "bp": 16, "vss": -4, "vdd": 20}.items():
        if net in planted.ends:
            planted.comb(net, track, left=-15 if net in {"ib", "y"} else None)
    planted.box("Metal3", -14, 6.5, -14 + WIRE, 12, "y")
    planted.box("Metal3", -14, 6.5, -6, 6.5 + WIRE, "y")
    (told,) = (each for each in planted.review().findings if each.id == "coupling" and "ib" in each.nets)
    assert words in told.why


@pytest.mark.parametrize(("several", "expected"), [(False, {"should"}), (True, set())])
def test_a_capacitor_between_the_drains_of_a_pair(several, expected):
    """Its bottom plate, or one of two equal plates each, is on a drain."""
    tracks = {"outp": 24.0, "outn": 25.0}
    planted = wired(pair(), **tracks)
    for number, (top, bottom) in enumerate([("outp", "outn"), ("outn", "outp")][: 1 + several]):
        left = 30 + 15 * number
        planted.plate(f"C{number}", left, 30, 5, f"{top} {bottom}")
        for net, x in ((top, left + 2.5), (bottom, left - 0.5)):
            track = tracks[net]
            planted.box("Metal3", planted.ends[net][0][0], track - WIRE / 2, x + 0.2, track + WIRE / 2, net)
            planted.via3(net, x, track)
            planted.box("Metal4" if net == bottom else "Metal5", x - 0.3, track - 0.3, x + 0.3, 31)
        planted.square("Via4", left + 2.5, tracks[top], 0.26)
    assert severities(planted.review(), "passives", "the counterpart") == expected


@pytest.mark.parametrize(
    ("below", "port", "expected"), [("inp", False, {"should"}), ("in", False, set()), ("inp", True, set())]
)
def test_the_bottom_plate_of_a_capacitor_at_a_gate(below, port, expected):
    """Nothing but the capacitor moves the gate, unless that is a port."""
    planted, tracks = (
        pair(),
        {"outp": 24.0, "outn": 25.0, "inp": 18.0, "inn": 19.0, "tail": 7.0, "bias": -3.0, "vss": -5},
    )
    for net, track in tracks.items():
        planted.comb(net, track, port=net != "tail" and (port or net != "inp"))
    planted.plate("C1", 30, 30, 5, "in inp" if below == "inp" else "inp in")
    x = 29.5 if below == "inp" else 32.5
    planted.box("Metal3", planted.ends["inp"][0][0], 18 - WIRE / 2, x + 0.2, 18 + WIRE / 2, "inp")
    planted.via3("inp", x, 18)
    planted.box("Metal4" if below == "inp" else "Metal5", x - 0.3, 17.7, x + 0.3, 31)
    planted.square("Via4", 32.5, 18 if below == "in" else 32.5, 0.26)
    planted.label("in", "Metal5" if below == "inp" else "Metal4", *((32, 33) if below == "inp" else (29.5, 33)))
    assert severities(planted.review(), "passives", "bottom plate on the sensitive net inp") == expected


@both("net-pair.wires", "should")
def test_the_tails_of_two_equal_pairs(figure, expected):
    """Each has a track and two columns; one reaches farther to the right, so that the figure is 2 d / (2 b + d)."""
    planted = Planted()
    for number, x in enumerate((0, 20)):
        for half, dx in enumerate((0, 3.2)):
            planted.mos(f"M{number}{half}", "nmos", x + dx, 10, 4, 1, f"o{half} i{number}{half} t{number} vss")
        planted.mos(f"MT{number}", "nmos", x, 0, 4, 1, f"t{number} bias vss vss")
    tracks = {
        "o0": 24,
        "o1": 25,
        "t0": 7.0,
        "t1": 7.0,
        "bias": -3,
        "vss": -5,
        **{f"i{a}{b}": 16 + 2 * a + b for a in (0, 1) for b in (0, 1)},
    }
    for net in planted.ends:
        planted.comb(net, tracks[net], port=net[0] != "t")
    ends = planted.ends["t0"]
    wires = sum(abs(y - 7.0) + WIRE for _, y in ends) + max(x for x, _ in ends) - min(x for x, _ in ends) + WIRE
    wires += 0.3 * 0 + 3 * 3.8
    more = 2 * wires * figure / (2 - figure)
    right = max(x for x, _ in planted.ends["t1"])
    planted.box("Metal3", right, 7.0 - WIRE / 2, right + WIRE / 2 + more, 7.0 + WIRE / 2, "t1")
    unsaid = {name: {"must": None, "should": None} for name in ("net-pair.capacitance", "net-pair.resistance")}
    assert severities(planted.review(limits=unsaid), "net-pair", "wired differently") == expected


@pytest.mark.parametrize(("held", "expected"), [(False, {"should"}), (True, set())])
def test_a_source_between_two_gates_is_no_switch(held, expected):
    """The two transistors between a and b have their gates on diodes, or on ports."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 2, 1, "b clk a vss", fingers=5)
    planted.mos("M2", "pmos", 0.4, 5, 2, 1, "b clkb a vdd", fingers=5)
    if held:
        planted.mos("M3", "nmos", 20, 0, 2, 1, "clk clk vss vss")
        planted.mos("M4", "pmos", 25, 0, 2, 1, "clkb clkb vdd vdd")
    for net, track in {"a": 20, "b": 22, "clk": 24, "clkb": 26, "vss": -4, "vdd": 28}.items():
        planted.comb(net, track)
    x = planted.ends["b"][0][0]
    planted.via3("b", x, 22)
    planted.box("Metal4", x, 19.8, x + 7.8, 20.2, "b")
    planted.box("Metal4", x - 0.2, 19.8, x, 22, "b")
    assert severities(planted.review(), "coupling", "the ends of switch") == expected


@pytest.mark.parametrize(("y", "expected"), [(1.0, {"should"}), (9.0, set())])
def test_a_wire_through_the_corner_that_a_group_leaves_free(y, expected):
    """Three transistors of a mirror in the shape of an L; the wire crosses one of them, or the corner between two."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "ib ib vss vss")
    planted.mos("M2", "nmos", 5, 0, 4, 1, "x ib vss vss")
    planted.mos("M3", "nmos", 0.4, 7, 4, 1, "z ib vss vss")
    planted.mos("M4", "nmos", 20, 0, 4, 1, "o in vss vss")
    for net, track in {"ib": 18, "x": 19, "z": 20, "o": 21, "in": 22, "vss": -4}.items():
        planted.comb(net, track)
    x = planted.ends["in"][0][0]
    planted.via3("in", x, 22)
    planted.box("Metal4", 4.9, y, 5.3, 22.2, "in")
    planted.box("Metal4", -1 if y < 5 else 3, y, 9, y + 0.4, "in")
    planted.box("Metal4", 4.9, 21.8, x + 0.2, 22.2, "in")
    assert severities(planted.review(), "coupling", "through current mirror") == expected


def held(where, driver="ck"):
    """Return a switch onto a capacitor and a gate, whose node leads to the right, past a wire of its control."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 2, 0.5, "h ck in vss")
    planted.mos("M2", "pmos", 4, 0, 2, 0.5, "h ckb in vdd")
    planted.mos("M3", "nmos", -14, 0, 2, 0.5, "ckb ck vss vss")
    planted.mos("M4", "pmos", -10, 0, 2, 0.5, "ckb ck vdd vdd")
    planted.mos("M5", "nmos", 12, 0, 2, 0.5, "vdd h out vss")
    planted.plate("C1", 30, 20, 5, "h vss")
    for net, track in {"h": 3.2, "in": 5, "ck": 6, "ckb": 7, "out": 8, "vss": -4, "vdd": 12}.items():
        planted.comb(net, track, port=net not in {"h", "ckb"})
    planted.box("Metal3", 12, 3.2 - WIRE / 2, 33, 3.2 + WIRE / 2, "h")
    planted.via3("h", 32.5, 3.2)
    planted.square("Via4", 32.5, 3.2, 0.26)
    planted.box("Metal5", 32.2, 3, 32.8, 22, "h")
    planted.box("Metal4", 29.3, -4.2, 29.7, 20, "vss")
    planted.box("Metal3", -2, -4.2, 29.7, -3.8, "vss")
    planted.square("Via3", 29.5, -4, 0.26)
    x = planted.ends[driver][0][0]
    planted.via3(driver, where, {"ck": 6, "in": 5}[driver])
    planted.box(
        "Metal3", min(x, where) - 0.2, {"ck": 6, "in": 5}[driver] - 0.14, where + 0.2, {"ck": 6, "in": 5}[driver] + 0.14
    )
    planted.box("Metal4", where - 0.14, 2.5, where + 0.14, 11, driver)
    return planted


@pytest.mark.parametrize(
    ("where", "driver", "expected"), [(26, "ck", {"should"}), (26, "in", set()), (-6, "ck", set())]
)
def test_a_sampled_node_that_its_clock_crosses(where, driver, expected):
    """A strip of the clock or of the input, across the wire to the capacitor or before it."""
    assert severities(held(where, driver).review(), "coupling", "sampled net h") == expected


@pytest.mark.parametrize(("source", "expected"), [("t", set()), ("u", {"must"})])
def test_the_outputs_of_one_pair_may_cross(source, expected):
    """One is the gate of the loads and the other the input of an inverter; with sources of their own they are none."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 2, 0.5, "ib ib vss vss")
    planted.mos("M2", "nmos", 5, 0, 2, 0.5, "y ib vss vss")
    planted.mos("M3", "nmos", 9, 0, 2, 0.5, "o y vss vss")
    planted.mos("M4", "pmos", 12, 0, 2, 0.5, "o y vdd vdd")
    planted.mos("M5", "pmos", 20, 0, 2, 0.5, "ib inp t vdd")
    planted.mos("M6", "pmos", 30, 0, 2, 0.5, f"y inn {source} vdd")
    planted.mos("M7", "pmos", 40, 0, 2, 0.5, "t bias vdd vdd")
    planted.mos("M8", "pmos", 50, 0, 2, 0.5, "u bias vdd vdd")
    tracks = {"ib": 6, "y": 12, "vss": -4, "vdd": 20, "o": 22, "inp": 24, "inn": 26, "t": 28, "u": 30, "bias": 32}
    for net, track in tracks.items():
        planted.comb(net, track, port=net not in {"ib", "y", "t", "u"})
    x = planted.ends["y"][0][0]
    planted.via3("y", x, 12)
    planted.box("Metal4", 1.2, 11.8, x + 0.2, 12.2, "y")
    for number in range(16):
        planted.box("Metal4", 1.2 + 0.8 * number, 5, 1.48 + 0.8 * number, 12, "y")
    planted.box("Metal4", 1.2, 11.8, 14, 12.2, "y")
    assert severities(planted.review(), "coupling", "bias net ib") == expected
