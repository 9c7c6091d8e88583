"""What the review says of the ways of supplies to their devices, on planted layouts."""

import klayout.db as kdb
import pytest
from planted_layout import GF, WIRE, Planted, both, limit, severities

from layoutkit.review.finding import Remark, by_cause

NECK = "connects to"


def fed(squares, width=WIRE, twice=False):
    """Return a current source whose ground comes from the track by one wire of so many squares, or by two of them."""
    planted = Planted()
    planted.mos("M1", "nmos", -1.6, 0, 4, 1, "vss in out vss", fingers=2)
    planted.comb("out", 8)
    planted.comb("in", 6.5)
    track = 3.7 - 0.26 - squares * width  # between the edges of the cuts
    planted.comb("vss", track)
    for step in range(round((width - WIRE) / 0.02)):  # wider on one side, in steps as those of a jog
        planted.box("Metal2", 0.3, track - 0.1, 0.3 + WIRE / 2 + 0.02 * (step + 1), 3.7 + 0.1, "vss")
    if twice:
        planted.box("Metal1", 0.2, 3.5, 0.4, 3.9, "vss")
        planted.box("Metal1", -1, 3.6, 0.4, 3.8, "vss")
        planted.ends["vss"] = [(-0.9, 3.7)]
        planted.comb("vss", track, left=-2, right=0, port=False)
    return planted


@both("supply-drop.neck", "should")
def test_a_supply_through_one_long_thin_wire(figure, expected):
    review = fed(figure).review()
    assert severities(review, "supply-drop", NECK) == expected
    found = [each for each in review.findings if NECK in each.why]
    assert all(each.measured == pytest.approx(figure, rel=1e-3) and each.devices == ("M1",) for each in found)


def block(squares, devices=2):
    """Return so many transistors, with eight channels together, whose ground comes by one wire of so many squares."""
    planted, fingers = Planted(), 8 // devices
    for number in range(devices):
        planted.mos(f"M{number}", "nmos", 12 * number, 0, 4, 0.5, f"out{number} in vss vss", fingers=fingers)
        planted.comb(f"out{number}", 8 + number)
    planted.comb("in", 6.5)
    planted.comb("vss", -3, left=-2.2, right=25, width=2, port=False)
    end = 0.17 - squares * WIRE  # from the first cut on
    planted.box("Metal3", end, -3 - WIRE / 2, -2.2, -3 + WIRE / 2, "vss")
    planted.label("vss", "Metal3", end, -3)
    return planted


@both("supply-drop.neck", "must")
@pytest.mark.parametrize("devices", [1, 2])
def test_a_block_behind_one_long_thin_wire(figure, expected, devices):
    """A single transistor, whose channels are equal, is no block."""
    found = severities(block(figure, devices).review(), "supply-drop", NECK)
    assert found == ({"should"} if devices == 1 and expected else expected)


def test_a_wire_of_the_same_length_is_no_neck_if_it_is_wide_or_has_another_beside_it():
    squares = 1.5 * limit("supply-drop.neck", "should")
    assert severities(fed(squares).review(), "supply-drop", NECK) == {"should"}
    assert not severities(fed(squares, twice=True).review(), "supply-drop", NECK)
    assert not severities(fed(squares / 2, width=2 * WIRE).review(), "supply-drop", NECK)


@pytest.mark.parametrize(("kind", "expected"), [("nmos", {"should"}), ("bars", set())])
def test_wires_add_nothing_to_the_resistance_of_a_resistor(kind, expected):
    """Two channels, or two bars in parallel, behind a long thin wire of the ground."""
    planted = Planted()
    if kind == "nmos":
        planted.mos("M1", "nmos", 0, 0, 4, 1, "vss in out vss", fingers=2)
        planted.comb("in", 7.5)
    else:
        for number in range(2):
            planted.bar("R1", 0.6 + 2 * number, 0, 1, 2, "vss out")
        planted.cards.pop()
        planted.cards[-1] += " m=2"
    far = [place for place in planted.ends["vss"] if place[0] > -1]
    planted.comb("out", 9)
    for x, y in far:
        planted.column("vss", x, y, 3.7 if kind == "nmos" else -0.5)
    track = 3.7 if kind == "nmos" else -0.5
    planted.box("Metal3", far[0][0] - 0.2, track - WIRE / 2, 30, track + WIRE / 2, "vss")
    planted.box("Metal3", 29, -9, 30, track + WIRE / 2, "vss")
    planted.ends["vss"] = [(-2, 5)]
    planted.comb("vss", -9, left=-3, right=30, width=2)
    assert severities(planted.review(), "supply-drop", NECK) == expected


def shared(squares, apart=False, fingers=1):
    """Return a mirror and an inverter whose ground comes from the track by one wire of so many squares.

    The output of the mirror has so many channels.
    """
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "ref ref vss vss")
    planted.mos("M2", "nmos", 5, 0, 4, 1, "out ref vss vss", fingers)
    planted.mos("M3", "nmos", 10, 0, 4, 1, "y a vss vss")
    planted.mos("M4", "pmos", 10, 20, 4, 1, "y a vdd vdd")
    for net, track in (("ref", 8), ("out", 9), ("y", 12), ("a", 13), ("vdd", 30)):
        planted.comb(net, track)
    planted.ends["vss"], foot = [], planted.ends["vss"]
    for x, y in foot if not apart else [place for place in foot if place[0] < 9]:
        planted.column("vss", x, y, -5)
    planted.box("Metal3", min(x for x, _ in foot) - 0.2, -5.14, 10.5 if not apart else 5.5, -4.86, "vss")
    planted.square("Via2", 7 if not apart else 2, -5, 0.26)
    end = -5.26 - squares * WIRE
    middle = 7 if not apart else 2
    planted.box("Metal2", middle - WIRE / 2, end - 0.14, middle + WIRE / 2, -4.86, "vss")
    planted.ends["vss"] = [(10.3, 3.7)] if apart else []
    for x, y in planted.ends["vss"]:
        planted.column("vss", x, y, end)
    planted.square("Via2", middle, end, 0.26)
    planted.box("Metal3", -2, end - 1, 12, end + 1, "vss")
    planted.label("vss", "Metal3", -1.8, end)
    return planted


@both("supply-drop.together", "should")
def test_what_switches_and_a_mirror_share_a_thin_wire(figure, expected):
    assert severities(shared(figure).review(), "supply-drop", "share it") == expected


@both("supply-drop.mixed", "must")
@pytest.mark.parametrize("fingers", [1, 2])
def test_a_block_that_switches_and_biases_behind_a_thin_wire(figure, expected, fingers):
    """Of under four channels a wire that is shared is no must."""
    found = severities(shared(figure, fingers=fingers).review(), "supply-drop", "share it")
    assert found == (expected if fingers > 1 and expected else {"should"})


def test_a_wire_of_its_own_to_what_switches_is_shared_by_nobody():
    squares = 2 * limit("supply-drop.together", "should")
    assert severities(shared(squares).review(), "supply-drop", "share it") == {"should"}
    assert not severities(shared(squares, apart=True).review(), "supply-drop", "share it")


@pytest.mark.parametrize(
    ("gate", "above", "expected"),
    [("b", "c", {"should"}), ("a", "c", set()), ("y", "c", set()), ("y", "o", {"should"})],
)
def test_a_source_behind_what_switches_on_one_strap(gate, above, expected):
    """The strap of an inverter leads on to a tail, whose gate is a port of its own, or a net of the inverter.

    That below a diode is in its voltage, whatever its gate is on.
    """
    planted = Planted()
    squares = 1.5 * limit("supply-drop.together", "should")
    planted.mos("M1", "nmos", 0, 0, 4, 1, f"t {gate} vss vss")
    planted.mos("M2", "nmos", 10, 0, 4, 1, f"o {above} t vss")
    planted.mos("M3", "nmos", 20, 0, 4, 1, "y a vss vss")
    planted.mos("M4", "pmos", 20, 20, 4, 1, "y a vdd vdd")
    for net, track in {"t": 8, "o": 9, "c": 10, "y": 12, "a": 13, "b": 14, "vdd": 30}.items():
        if net in planted.ends:
            planted.comb(net, track, port=net != "t")
    far = [place for place in planted.ends["vss"] if place[0] < 9]
    for x, y in planted.ends["vss"]:
        planted.column("vss", x, y, -5)
    first = 20.3
    planted.box("Metal3", min(x for x, _ in far) - 0.2, -5.14, first + 0.2, -4.86, "vss")
    end = -5.26 - squares * WIRE
    planted.square("Via2", first, -5, 0.26)
    planted.box("Metal2", first - WIRE / 2, end - 0.14, first + WIRE / 2, -4.86, "vss")
    planted.square("Via2", first, end, 0.26)
    planted.box("Metal3", -2, end - 1, 32, end + 1, "vss")
    planted.label("vss", "Metal3", -1.8, end)
    assert severities(planted.review(), "supply-drop", "share it") == expected


@both("supply-drop.neck", "should")
def test_a_rail_past_some_devices_counts_as_far_as_half_of_them(figure, expected):
    """Three current sources along a thin rail: the second one is the first that half of them are not nearer than."""
    planted = Planted()
    step = figure * WIRE + 0.33  # from the edge of the way in to that of a cut
    for number in range(3):
        nets = f"out{number} in vss vss"
        planted.mos(f"M{number}", "nmos", 4 if not number else 4 + step * number, 0, 4, 1, nets)
    planted.ends["vss"], taps = planted.ends["vss"][1:], planted.ends["vss"][:1]
    for net, track in (("in", 8), *((f"out{number}", 10 + number) for number in range(3))):
        planted.comb(net, track)
    first, *_ = (x for x, _ in planted.ends["vss"])
    planted.comb("vss", -3, left=first - 0.2, port=False)
    planted.ends["vss"] = taps
    planted.comb("vss", -6, left=-3, right=3)
    planted.box("Metal3", first - 0.2, -6.14, first + 0.2, -2.86, "vss")
    planted.box("Metal3", 2, -6.14, first + 0.2, -5.86, "vss")
    found = [each for each in planted.review().findings if NECK in each.why and each.nets == ("vss",)]
    along = [why for each in found for _, why in each.everywhere() if "um of Metal3" in why]
    assert ["M1, M2 (2 channels)" in why for why in along] == [True] * len(expected)


def gates(squares, fingers=24, switches=False):
    """Return a wide transistor whose gates hang on a wide track, and that on a wire of so many squares to the port."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 2, 0.5, "out in vss vss", fingers=fingers)
    if switches:
        planted.mos("M2", "pmos", 2 * fingers, 0, 2, 0.5, "out in vdd vdd")
        planted.comb("vdd", -8)
    for net, track in (("out", 12), ("vss", -5)):
        planted.comb(net, track, width=2)
    planted.comb("in", 7, left=0, width=3, port=False)
    planted.box("Metal3", -squares * WIRE - 0.1, 7 - WIRE / 2, 0, 7 + WIRE / 2, "in")
    planted.label("in", "Metal3", -squares * WIRE, 7)
    return planted


@both("wire-resistance.gate", "should")
def test_many_gates_on_one_thin_wire(figure, expected):
    assert severities(gates(figure).review(), "wire-resistance", NECK) == expected


def test_few_gates_may_hang_on_a_thin_wire():
    squares = 1.5 * limit("wire-resistance.gate", "should")
    assert severities(gates(squares).review(), "wire-resistance", NECK) == {"should"}
    assert not severities(gates(squares, fingers=22).review(), "wire-resistance", NECK)


@pytest.mark.parametrize(("fingers", "expected"), [(16, {"should"}), (14, set())])
def test_fewer_gates_of_what_switches_need_a_wide_wire(fingers, expected):
    squares = 1.5 * limit("wire-resistance.gate", "should")
    assert severities(gates(squares, fingers, switches=True).review(), "wire-resistance", NECK) == expected


def long_gate(squares, both_ends=False, switches=True):
    """Return a transistor with a gate of so many squares, which an inverter or a reference is made of."""
    planted, w = Planted(), 0.28 * squares
    planted.mos("M1", "nmos", 0, 0, w, 0.28, f"{'out' if switches else 'in'} in vss vss")
    if both_ends:
        x, _ = planted.ends["in"][0]
        planted.box("Poly2", x - 0.25, -0.85, x + 0.25, -0.3)
        planted.square("Contact", x, -0.6, 0.22)
        planted.square("Metal1", x, -0.6, 0.4, "in")
        planted.ends["in"].append((x, -0.6))
    if switches:
        planted.mos("M2", "pmos", 10, 0, 4, 0.28, "out in vdd vdd")
        planted.comb("vdd", w + 5)
        planted.comb("out", w + 4)
    planted.comb("in", w + 3)
    planted.comb("vss", w + 2)
    return planted.review()


@both("wire-resistance.finger", "should")
def test_a_long_gate_of_a_switching_transistor_with_contacts_at_one_end(figure, expected):
    assert severities(long_gate(figure), "wire-resistance", "at one end only") == expected


@pytest.mark.parametrize("other", [{"both_ends": True}, {"switches": False}])
def test_a_long_gate_with_contacts_at_both_ends_or_a_constant_voltage(other):
    squares = 1.5 * limit("wire-resistance.finger", "should")
    assert severities(long_gate(squares), "wire-resistance", "at one end only")
    assert not severities(long_gate(squares, **other), "wire-resistance", "at one end only")


def open_drain(drive, mean, squares=14, of="out", inner=False):
    """Return the findings on an output, or its ground, whose port is behind a thin wire; or an equal transistor.

    Its transistor can drive ``drive`` times what the wire may carry, of which ``mean`` flows.
    """
    planted, may_ma = Planted(), WIRE * GF.conductor("Metal4").current_ma(1)
    width = drive * may_ma / GF.device("nmos").saturation_ma_um / 4
    planted.mos("M1", "nmos", 0, 0, width, 0.28, "out in vss vss", fingers=4)
    planted.comb("in", width + 6)
    tracks = {"out": width + 3, "vss": -3}
    for net, track in tracks.items():
        planted.comb(net, track, left=-3, right=6, width=3, port=net != of)
    end = 5.13 + squares * WIRE
    planted.box("Metal4", 4.8, tracks[of] - WIRE / 2, end, tracks[of] + WIRE / 2, of)
    planted.square("Via3", 5, tracks[of], 0.26)
    planted.square("Metal4", end + 1, tracks[of], 2, of)
    if inner:
        planted.mos("M2", "nmos", end + 4, 0, width, 0.28, "out in2 vdd vss", fingers=4)
        planted.comb("out", width + 3, left=end, width=3, port=False)
        planted.square("Via3", end + 1, width + 3, 0.26)
        planted.comb("in2", width + 7)
        planted.comb("vdd", width + 12, width=3)
    else:
        planted.label(of, "Metal4", end + 1, tracks[of])
    carried = [{"device": name, "current": 1e-3 * mean * may_ma} for name in ("M1", "M2")[: 1 + inner]]
    found = planted.review(constraints={"device_currents": carried}).findings
    return [each for each in found if each.id == "electromigration" and "can flow" in each.why]


@both("electromigration.drive", "must", "should")
def test_the_thin_wire_of_a_strong_output(figure, expected):
    found = open_drain(figure, limit("electromigration.mean", "must"))
    assert {each.severity for each in found} == expected
    assert all(each.measured == pytest.approx(figure, rel=1e-2) and each.nets == ("out",) for each in found)


def test_the_thin_wire_of_a_strong_driver_inside_is_no_must():
    found = open_drain(1.1 * limit("electromigration.drive", "must"), 1, inner=True)
    assert {(each.severity, each.nets) for each in found} == {("should", ("out",))}


def test_the_thin_wire_of_the_ground_of_a_strong_output():
    found = open_drain(1.1 * limit("electromigration.drive", "must"), 1, of="vss")
    assert {(each.severity, each.nets) for each in found} == {("must", ("vss",))}


@pytest.mark.parametrize(("severity", "inside"), [("must", {"should"}), ("should", set())])
def test_a_strong_output_that_carries_little_may_have_a_thin_wire(severity, inside):
    mean, drive = limit("electromigration.mean", severity), 1.1 * limit("electromigration.drive", "must")
    assert {each.severity for each in open_drain(drive, 1.1 * mean)} == {severity}
    assert {each.severity for each in open_drain(drive, 0.9 * mean)} == inside


def test_a_short_wire_of_a_strong_output_is_no_thin_way():
    assert not open_drain(1.1 * limit("electromigration.drive", "must"), 1, squares=3)


def chained(drive, on_rail=False):
    """Return a strong transistor whose ground comes over the source of one that drives 1 mA, or from the rail."""
    planted, per_um = Planted(), GF.device("nmos").saturation_ma_um
    width = 1 / per_um
    planted.mos("M1", "nmos", 0, 0, width, 0.28, "a in vss vss")
    own = planted.ends["vss"][:]
    planted.mos("M2", "nmos", 12, 0, drive / per_um / 4, 0.28, "out in2 vss vss", fingers=4)
    strong, planted.ends["vss"] = planted.ends["vss"][2:], own
    for net, track in (("a", 30), ("in", 31), ("out", 32), ("in2", 33)):
        planted.comb(net, track)
    planted.comb("vss", -6, left=-3, right=20, width=2)
    planted.box("Metal1", 0.15, width - 0.2, 0.45, width + 2.2, "vss")  # from the source, away from the rail
    for x, y in strong if on_rail else [(0.3, width + 2), *strong]:
        planted.column("vss", x, y, -6 if on_rail else width + 2)
    planted.box("Metal3", 0.1, width + 1.86, strong[-1][0] + 0.2, width + 2.14, "vss")
    return planted


def through(planted):
    return [each for each in planted.review().findings if each.id == "supply-drop" and " reaches " in each.why]


@both("supply-drop.through", "must", "should")
def test_a_strong_transistor_behind_the_straps_of_a_weak_one(figure, expected):
    found = through(chained(figure))
    assert {each.severity for each in found} == expected
    assert all(each.measured == pytest.approx(figure, rel=1e-2) and "M2" in each.why for each in found)


def test_a_strong_transistor_with_straps_of_its_own_is_behind_nobody():
    assert not through(chained(1.1 * limit("supply-drop.through", "must"), on_rail=True))


@pytest.mark.parametrize(("reach", "expected"), [(0.1, {"must"}), (1.3, {"must"}), (2.0, set())])
def test_a_plate_that_only_touches_the_straps_of_a_weak_transistor(reach, expected):
    """The metal on the source of M1 reaches so far beyond its diffusion: less than a wire, or a way of its own."""
    planted = chained(1.1 * limit("supply-drop.through", "must"))
    top = 1 / GF.device("nmos").saturation_ma_um
    planted.box("Metal1", -reach, -6, 0.45, top + 2.2, "vss")
    planted.column("vss", -reach + 0.2, -6, -6)
    assert {each.severity for each in through(planted)} == expected


@pytest.mark.parametrize(
    ("mirror", "on_rail", "expected"), [(True, False, {"should"}), (True, True, set()), (False, False, set())]
)
def test_an_output_stage_behind_the_straps_of_a_mirror(mirror, on_rail, expected):
    """The stage is no stronger than the mirror, so that its current alone is no fault; its sources share the way."""
    planted, per_um = Planted(), GF.device("nmos").saturation_ma_um
    width, gate = 1 / per_um, "a" if mirror else "in"
    planted.mos("M1", "nmos", 0, 0, width, 0.28, f"a {gate} vss vss")
    planted.mos("M5", "nmos", -12, 0, width, 0.28, f"b {gate} vss vss")
    own = planted.ends["vss"][:]
    planted.mos("M2", "nmos", 12, 0, 1.2 / per_um / 4, 0.28, "out in2 vss vss", fingers=4)
    planted.mos("M3", "pmos", 24, 20, 2, 0.28, "out in2 vdd vdd")
    strong, planted.ends["vss"] = planted.ends["vss"][3:], own
    for net, track in (("a", 30), ("in", 31), ("out", 32), ("in2", 33), ("b", 34), ("vdd", 36)):
        if net in planted.ends:
            planted.comb(net, track)
    planted.comb("vss", -6, left=-13, right=20, width=2)
    planted.box("Metal1", 0.15, width - 0.2, 0.45, width + 2.2, "vss")
    for x, y in strong if on_rail else [(0.3, width + 2), *strong]:
        planted.column("vss", x, y, -6 if on_rail else width + 2)
    planted.box("Metal3", 0.1, width + 1.86, strong[-1][0] + 0.2, width + 2.14, "vss")
    assert {each.severity for each in through(planted) if "drives an output" in each.why} == expected


def at_a_source(length, square=1.4, number=1):
    """Return resistors of so many squares from a source to ground, whose wire to the port is so long."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "out in e vss")
    for each in range(number):
        planted.bar(f"R{each + 1}", 8 + 16 * each, 5, 8, 8 * square, "e vss", upright=False)
    tracks = {"out": 6, "in": 7, "e": 8}
    for net, track in tracks.items():
        planted.comb(net, track, port=net != "e")
    planted.comb("vss", -3, left=-3 - length)
    return planted


@both("wire-resistance.bar", "must", "should")
def test_the_wires_of_a_resistor_of_few_ohm(figure, expected):
    words, tiny = "R1 has", {"wire-resistance.bar": {"should": 1e-9}}
    short, long = (
        next(e.measured for e in at_a_source(length).review(limits=tiny).findings if words in e.why)
        for length in (10, 210)
    )
    review = at_a_source(10 + 200 * (figure - short) / (long - short)).review()
    assert severities(review, "wire-resistance", words) == expected


def test_the_wires_of_a_resistor_of_many_ohm_do_not_count():
    assert severities(at_a_source(1000).review(), "wire-resistance", "R1 has")
    assert not severities(at_a_source(1000, square=2).review(), "wire-resistance", "R1 has")


def test_resistors_of_few_ohm_in_parallel_are_one():
    whys = (next(e.why for e in at_a_source(1000, 0.6, n).review().findings if "R1 has" in e.why) for n in (1, 2))
    one, two = (float(why.split(" has ")[1].split(" ohm")[0]) for why in whys)
    assert two == pytest.approx(one / 2, rel=0.01)


def rows(ohm):
    """Return a mirror in two rows, the ground of the upper one by a wire of so many ohm more."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "ref ref vss vss", fingers=2)
    low = planted.ends["vss"][:]
    planted.mos("M2", "nmos", 0, 20, 4, 1, "out ref vss vss", fingers=2)
    high, planted.ends["vss"] = [each for each in planted.ends["vss"] if each not in low], low
    planted.comb("ref", 8)
    planted.comb("out", 30)
    planted.comb("vss", -6, left=-8, width=2)
    length = ohm * WIRE / GF.conductor("Metal3").sheet_ohm
    for x, y in high:
        planted.column("vss", x, y, 28)
    planted.box("Metal3", -length, 28 - WIRE / 2, high[-1][0] + 0.2, 28 + WIRE / 2, "vss")
    planted.box("Metal3", -length, -5, -length + 1, 28, "vss")
    planted.box("Metal3", -length, -6, -7, -5, "vss")
    return planted


@pytest.mark.parametrize(("ohm", "expected"), [(5, set()), (35, {"should"})])
def test_rows_of_a_mirror_that_the_supply_reaches_by_unlike_ways(ohm, expected):
    assert severities(rows(ohm).review(), "supply-drop", "the best ways from the port of vss") == expected


CELLS = """.subckt cell i q vss
M1 m i vss vss nfet_03v3 W=4u L=1u
M2 q m vss vss nfet_03v3 W=4u L=1u
.ends
.subckt TOP {ports}
X1 i1 q1 vss cell
X2 i2 q2 vss cell
.ends
"""


def cells(ohm):
    """Return two equal cells, the ground of the second one by a wire of so many ohm more."""
    planted = Planted()
    planted.tap("nmos", "vss", -6, 25)
    tap = planted.ends["vss"].pop()
    for number, y in ((1, 0), (2, 20)):
        planted.mos(f"A{number}", "nmos", 0, y, 4, 1, f"m{number} i{number} vss vss")
        planted.mos(f"B{number}", "nmos", 8, y, 4, 1, f"q{number} m{number} vss vss")
        for net, track in ((f"i{number}", 6), (f"m{number}", 7), (f"q{number}", 8)):
            planted.comb(net, y + track, port=net[0] != "m")
    high = [end for end in planted.ends["vss"] if end[1] > 20]
    planted.ends["vss"] = [end for end in planted.ends["vss"] if end not in high]
    planted.comb("vss", -6, left=-8, width=2)
    length = ohm * WIRE / GF.conductor("Metal3").sheet_ohm
    for x, y in [*high, tap]:
        planted.column("vss", x, y, 32)
    planted.box("Metal3", -length, 32 - WIRE / 2, high[-1][0] + 0.2, 32 + WIRE / 2, "vss")
    planted.box("Metal3", -length, -6, -length + 1, 32, "vss")
    planted.box("Metal3", -length, -6, -7, -5, "vss")
    return planted.review(CELLS.format(ports=" ".join(planted.ports)))


@pytest.mark.parametrize(("ohm", "expected"), [(10, set()), (60, {"should"})])
def test_equal_cells_that_the_supply_reaches_by_unlike_ways(ohm, expected):
    found = [e for e in cells(ohm).findings if "the sources of 2 equal cells differ" in e.why]
    assert {each.severity for each in found} == expected
    assert all("ohm to X1.M1, X1.M2 at" in each.why and "ohm to X2.M1, X2.M2 at" in each.why for each in found)


def unfed(nets="ref ref vss vss"):
    """Return a mirror whose reference is a diode on an inner net, and its output; ``nets`` are those of the diode."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 2, 1, nets)
    planted.mos("M2", "nmos", 5, 0, 2, 1, "out ref vss vss")
    planted.mos("M3", "pmos", 0, 20, 2, 1, "up up vdd vdd")
    for net, track in (("ref", 8), ("out", 9), ("vss", -3), ("vdd", 30), ("up", 12), ("in", 6)):
        if net in planted.ends:
            planted.comb(net, track, port=net != "ref")
    return planted


def test_a_reference_that_no_current_enters():
    found = [each for each in unfed().review().findings if "nothing drives ref" in each.why]
    assert [(each.severity, each.nets, each.devices) for each in found] == [("must", ("ref",), ("M1", "M2"))]


def test_a_reference_that_another_transistor_feeds_has_its_current():
    planted = unfed("ref ref vss vss")
    planted.mos("M4", "pmos", 8, 20, 2, 1, "ref up vdd vdd")
    for net, track in (("ref", 8.0), ("up", 12.0), ("vdd", 30.0)):
        planted.ends[net] = [place for place in planted.ends[net] if place[0] > 7.9 and place[1] > 15]
        planted.comb(net, track, left=0, port=False)
    assert not [each for each in planted.review().findings if "nothing drives ref" in each.why]


def test_a_gate_that_one_transistor_alone_drives_is_unjudged():
    review = unfed("ref in vss vss").review()
    assert not [each for each in review.findings if "nothing drives" in each.why]
    assert [each.matters for each in review.unjudged if "only M1 drives ref" in each.reason] == [False]


def tie_cell(second="nmos"):
    """Return a diode on ref, which switches on M2 on lo, which switches on M3 on hi: each is fed by one transistor."""
    planted = Planted()
    planted.mos("M1", "pmos", 0, 20, 2, 1, "ref ref vdd vdd")
    planted.mos("M2", second, 5, 0, 2, 1, f"lo ref {'vss vss' if second == 'nmos' else 'vdd vdd'}")
    planted.mos("M3", "pmos", 10, 20, 2, 1, "hi lo vdd vdd")
    planted.mos("M4", "nmos", 15, 0, 2, 1, "out hi in vss")
    for net, track in (("ref", 8), ("lo", 10), ("hi", 12), ("vss", -3), ("vdd", 30), ("out", 14), ("in", 6)):
        if net in planted.ends:
            planted.comb(net, track, port=net not in {"ref", "lo", "hi"})
    return planted


@pytest.mark.parametrize(("second", "expected"), [("nmos", set()), ("pmos", {"ref", "lo", "hi"})])
def test_gates_that_a_cell_ties_high_and_low_are_driven(second, expected):
    found = [each for each in tie_cell(second).review().findings if "nothing drives" in each.why]
    assert {net for each in found for net in each.nets} == expected


@pytest.mark.parametrize("joined", [True, False])
def test_a_source_that_only_the_diffusion_of_a_tap_joins_to_ground(joined):
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 2, 1, "out in vss vss")
    (x, _) = planted.ends["vss"][-1]
    planted.box("Metal1", x - 0.15, -1.2, x + 0.15, 1, "vss")
    planted.tap("nmos", "vss", x, -1)
    planted.tap("nmos", "vss", x + 4, -1)
    planted.box("COMP", x, -1.25, x + 4, -0.75)
    planted.box("Pplus", x, -1.35, x + 4, -0.65)
    planted.ends["vss"] = [end for end in planted.ends["vss"] if joined or end[0] != x]
    for net, track in (("out", 8), ("in", 9), ("vss", -3)):
        planted.comb(net, track)
    review = planted.review()
    found = [(each.severity, each.devices) for each in review.findings if "no metal joins" in each.why]
    assert found == [("must", ("M1",))] * (not joined)
    assert not [each for each in review.unjudged if each.matters]


@pytest.mark.parametrize(("metal", "expected"), [(False, {"must"}), (True, set())])
def test_a_port_of_poly_alone(metal, expected):
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "out in vss vss")
    for track, net in ((8, "in"), (9, "out"), (10, "vss")):
        planted.comb(net, track, port=net != "in" or metal)
    if not metal:
        planted.erase("Contact", 0, 4.3, 3, 5)
        planted.cell.shapes(planted.layout.layer(30, 10)).insert(kdb.Text("in", 1100, 2000))  # on the poly
        planted.ports.append("in")
    assert severities(planted.review(), "rails", "port in has no metal") == expected


@pytest.mark.parametrize(("tap", "expected"), [("vdd", set()), ("guard", set()), ("", {"must"})])
def test_a_deep_well_without_a_tap(tap, expected):
    """The p well of M1, with its own tap, lies in the deep well; of a net for that well alone the netlist is silent."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "out in low body")
    planted.tap("nmos", "body", 4, 2)
    planted.box("LVPWELL", -1, -1, 5.5, 6)
    planted.box("DNWELL", -4, -4, 8, 9)
    planted.mos("M2", "pmos", 20, 0, 4, 1, "out in vdd vdd")
    if tap:
        planted.tap("pmos", tap, 7, 8)
    for track, net in enumerate(planted.ends):
        planted.comb(net, 12 + 2 * track)
    planted.ports = [net for net in planted.ports if net != "guard"]
    assert severities(planted.review(), "well-tap", "deep n well around M1 has no tap") == expected


def test_a_port_that_leads_to_no_device():
    planted = chained(1)
    planted.square("Metal3", -5, 20, 1, "spare")
    planted.label("spare", "Metal3", -5, 20)
    found = [each for each in planted.review().findings if "no device is connected" in each.why]
    assert [(each.id, each.severity, each.nets) for each in found] == [("rails", "should", ("spare",))]


def hanging(length, fingers=8, places=1):
    """Return a block of channels whose ground hangs on a long rail at some places, 7 um apart."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 2, 1, "out in vss vss", fingers=fingers)
    for net, track in (("in", 6), ("out", 8)):
        planted.comb(net, track)
    planted.comb("vss", -3, left=-3, right=20, width=1, port=False)
    planted.box("Metal4", -3, -4, length - 3, -2, "vss")
    for place in range(places):
        planted.via3("vss", 7 * place, -3)
    planted.label("vss", "Metal4", -2.8, -3)
    return [each for each in planted.review().findings if each.id == "rails" and "is joined to" in each.why]


@both("rails.tied", "should")
def test_a_long_rail_that_a_block_hangs_on_at_one_place(figure, expected):
    found = hanging(figure)
    assert {each.severity for each in found} == expected
    assert all(each.measured == pytest.approx(figure, rel=1e-3) for each in found)


def test_a_rail_that_is_joined_at_several_places_or_feeds_few_channels():
    length = 1.1 * limit("rails.tied", "should")
    assert hanging(length)
    assert not hanging(length, places=2)
    assert not hanging(length, fingers=6)
    assert hanging(2 * length, fingers=4)


@pytest.mark.parametrize(("channels", "cuts", "expected"), [(3, 1, set()), (4, 1, {"should"}), (4, 2, set())])
def test_a_transistor_whose_supply_enters_by_one_cut(channels, cuts, expected):
    """Another one hangs on the track before it."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 2, 1, "out in vss vss", fingers=channels)
    planted.mos("M2", "nmos", 30, 0, 2, 1, "out2 in vss vss", fingers=channels)
    ends = planted.ends["vss"]
    planted.ends["vss"] = [end for end in ends if end[0] < 25]
    for net, track in (("in", 6), ("out", 8), ("out2", 9)):
        planted.comb(net, track)
    planted.comb("vss", -3, left=-3, right=20, width=1, port=False)
    planted.ends["vss"] = [end for end in ends if end[0] > 25]
    planted.comb("vss", -3, left=28, right=40, width=1, port=False)
    planted.box("Metal4", -3, -4, 40, -2, "vss")
    for number in range(6):
        planted.via3("vss", 2 * number, -3)
    for number in range(cuts):
        planted.via3("vss", 32 + number, -3)
    planted.label("vss", "Metal4", -2.8, -3)
    found = [each for each in planted.review().findings if "only through one Via3" in each.why]
    assert {each.severity for each in found} == expected
    assert all((each.id, each.devices) == ("single-cut", ("M2",)) for each in found)


@pytest.mark.parametrize(("source", "expected"), [("port", set()), ("resistor", set()), ("signal", {"should"})])
def test_a_mirror_drives_no_more_than_its_reference_tells(source, expected):
    """The thin wire of its output is judged by full drive only where a transistor on a signal feeds the reference."""
    planted, may_ma = Planted(), WIRE * GF.conductor("Metal4").current_ma(1)
    width = 1.1 * limit("electromigration.drive", "must") * may_ma / GF.device("nmos").saturation_ma_um / 4
    planted.mos("M1", "nmos", 0, 0, width, 0.28, "out ref vss vss", fingers=4)
    planted.mos("M2", "nmos", 10, 0, width, 0.28, "ref ref vss vss", fingers=4)
    if source == "resistor":
        planted.bar("R1", 20, 0, 1, 10, "ref vdd", upright=False)
    elif source == "signal":
        planted.mos("M3", "pmos", 20, 0, 20, 0.28, "ref x vdd vdd")
        planted.mos("M4", "pmos", 30, 0, 2, 0.28, "x in vdd vdd")
        planted.mos("M5", "nmos", 40, 0, 2, 0.28, "x in2 vss vss")
    tracks = {
        "out": width + 3,
        "vss": -3,
        "ref": width + 7,
        "vdd": width + 10,
        "x": width + 13,
        "in": width + 14,
        "in2": width + 15,
    }
    for net in planted.ends:
        wide = {"left": -3, "width": 3} if net in {"out", "vss"} else {}
        planted.comb(net, tracks[net], port=net not in {"out", "x"} and (net != "ref" or source == "port"), **wide)
    planted.box("Metal4", -20, tracks["out"] - WIRE / 2, -2.8, tracks["out"] + WIRE / 2, "out")
    planted.square("Via3", -2.9, tracks["out"], 0.26)
    planted.square("Metal4", -20, tracks["out"], 2, "out")
    planted.label("out", "Metal4", -20, tracks["out"])
    found = planted.review(limits={"electromigration.mean": {"should": 0.0, "must": None}}).findings
    assert {e.severity for e in found if "can flow" in e.why and "out" in e.nets} == expected


@pytest.mark.parametrize(("second", "kept"), [(46.1004, 1), (39.3, 2)])
def test_severe_findings_with_equal_figures_are_one_as_those_of_equal_cells_are(second, kept):
    def remark(net, measured, left):
        box = kdb.Box(left, 0, left + 100, 100)
        words = f"{net} is thin"
        return Remark("electromigration", "must", box, (), (net,), measured, 30.0, "times", words, "wider", "thin ways")

    found = by_cause([remark("a", 46.1005, 0), remark("b", second, 500)], 0.001)
    assert len(found) == kept
    assert all({"a", "b"} == set(each.nets) and "likewise b at (" in each.why for each in found if kept == 1)


@pytest.mark.parametrize(("load", "expected"), [("none", {"must"}), ("resistor", set())])
def test_what_a_resistor_takes_does_not_enter_at_the_port(load, expected):
    """The current of M1 flows into the output, or through R1 inside."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "out in vss vss")
    planted.comb("out", 8)
    planted.comb("in", 7)
    planted.comb("vss", -4, width=4)
    if load == "resistor":
        planted.bar("R1", 10, 0, 1, 10, "out vdd", upright=False)
        planted.ends["out"] = planted.ends["out"][1:]
        planted.comb("out", 8, left=0, port=False)
        planted.comb("vdd", 12, width=4)
    may_ma = WIRE * GF.conductor("Metal3").current_ma(1)
    review = planted.review(constraints={"device_currents": [{"device": "M1", "current": 1.5e-3 * may_ma}]})
    assert severities(review, "narrow-port", "port out") == expected


@pytest.mark.parametrize(("gate", "matters"), [("en", False), ("", True)])
def test_a_supply_without_a_port_behind_a_switch_matters_not(gate, matters):
    """Two inverters stand on an inner ground; a switch joins it with the ground, or nothing does."""
    planted = Planted()
    for name, x, nets in (("M1", 0, "y a gnd2 vss"), ("M2", 5, "z y gnd2 vss")):
        planted.mos(name, "nmos", x, 0, 4, 1, nets)
    for name, x, nets in (("M3", 0, "y a vdd vdd"), ("M4", 5, "z y vdd vdd")):
        planted.mos(name, "pmos", x, 20, 4, 1, nets)
    if gate:
        planted.mos("M5", "nmos", 10, 0, 4, 1, f"gnd2 {gate} vss vss")
    for net, track in {"a": 8, "y": 10, "z": 12, "en": 14, "gnd2": -3, "vss": -6, "vdd": 30}.items():
        if net in planted.ends:
            planted.comb(net, track, port=net not in {"y", "gnd2"})
    review = planted.review()
    assert any(each.matters and "no labelled port" in each.reason for each in review.unjudged) == matters
