"""Findings about neighbours: shared supply wires, switches in the ring of a matched group, heat, distant parts."""

from dataclasses import replace

import pytest
from planted_layout import SIDE, WIRE, Planted, both, limit, pair, severities, wired

from layoutkit.review import design_review
from layoutkit.review.matched_roles import MatchedDevices


@both("supply-drop.shared", "should")
def test_an_output_stage_on_the_wire_of_current_sources(figure, expected):
    """M3 shifts the ground of a mirror in proportion to its current."""

    def review(ampere, limits=None):
        planted = Planted()
        planted.mos("M1", "nmos", 0, 0, 4, 1, "ib ib vss vss")
        planted.mos("M2", "nmos", 5, 0, 4, 1, "x ib vss vss")
        planted.mos("M3", "nmos", 10, 0, 4, 1, "out in vss vss")
        for net, track, left in (
            ("ib", 6.5, None),
            ("x", 7.5, None),
            ("out", 8.5, None),
            ("in", 9.5, None),
            ("vss", -3, -200),
        ):
            planted.comb(net, track, left=left)
        loads = {"device_currents": [{"device": "M3", "current": ampere}, {"device": "M1", "current": 1e-6}]}
        return planted.review(constraints=loads, limits=limits)

    words, tiny = "they share wires", {"supply-drop.shared": {"should": 1e-9}}
    (small,) = (each for each in review(1e-4, tiny).findings if words in each.why)
    assert severities(review(1e-4 * figure / small.measured), "supply-drop", words) == expected


@both("flow-order.heat", "should")
def test_a_bipolar_transistor_beside_an_output_stage(figure, expected):
    """The transistor that carries a hundred times as much lies so far from the emitter."""

    def review(x, limits=None):
        planted = Planted()
        planted.npn("Q1", 0, 30, "b b vss")
        planted.mos("M1", "nmos", x, 34, 4, 1, "out in vss vss")
        for net, track in (("b", 12.0), ("out", 42.0), ("in", 44.0), ("vss", -5.0)):
            planted.comb(net, track)
        loads = {"device_currents": [{"device": "Q1", "current": 1e-5}, {"device": "M1", "current": 1e-3}]}
        return planted.review(constraints=loads, limits=limits)

    (near,) = (e for e in review(40, {"flow-order.heat": {"should": 900}}).findings if "times the current" in e.why)
    assert severities(review(40 + figure - near.measured), "flow-order", "times the current") == expected


@pytest.mark.parametrize(
    ("high", "driver", "held", "expected"),
    [
        (6.2, "clk", False, set()),
        (11.0, "clk", False, {"should"}),
        (11.0, "clk", True, set()),
        (11.0, "vb", False, set()),
    ],
)
def test_a_switch_in_the_ring_of_a_mirror(high, driver, held, expected):
    """M3 is above the mirror; its gate is driven by an inverter, which a diode may hold, or is a bias."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "ib ib vss vss")
    planted.mos("M2", "nmos", 3.2, 0, 4, 1, "x ib vss vss")
    planted.mos("M3", "nmos", 5.2, 7, 2, 1, f"y {driver} vss vss")
    planted.mos("M4", "nmos", 20, 0, 2, 0.5, "clk c vss vss")
    planted.mos("M5", "pmos", 25, 0, 2, 0.5, "clk c vdd vdd")
    if held:
        planted.mos("M6", "nmos", 40, 0, 2, 0.5, "clk clk vss vss")
    for box in ((-1, -1.4, 9, -1.1), (-1, high - 0.3, 9, high), (-1, -1.4, -0.7, high), (8.7, -1.4, 9, high)):
        planted.box("COMP", *box)
        planted.box("Pplus", *box)
    for track, net in enumerate(planted.ends):
        planted.comb(net, -6 if net == "vss" else 18.0 + track)
    assert severities(planted.review(), "group-apart", "the ring of") == expected


@both("flow-order.load", "should")
def test_a_capacitor_far_from_the_transistor_around_which_it_is(figure, expected):
    def review(x, limits=None):
        planted = Planted()
        planted.mos("M1", "nmos", 0, 0, 4, 1, "out g vss vss")
        planted.plate("C1", x, 20, 10, "out g")
        for net, track, place in (("out", 8.0, x + 5), ("g", 7.0, x - 0.5)):
            planted.comb(net, track, right=place + 0.2, port=net == "out")
            planted.via3(net, place, track)
            planted.box("Metal4", place - 0.2, track, place + 0.2, 20 if net == "g" else 14, net)
        planted.square("Via4", x + 5, 14, 0.26)
        planted.box("Metal5", x + 4.8, 13.8, x + 5.2, 24, "out")
        planted.comb("vss", -3)
        return planted.review(limits=limits)

    words = "around which it is"
    (near,) = (e for e in review(20, {"flow-order.load": {"should": 1}}).findings if words in e.why)
    far = (figure**2 - (20 - 4) ** 2) ** 0.5 if figure > 16 else 0.0
    assert near.measured == pytest.approx(((20 - SIDE - 1) ** 2 + 16**2) ** 0.5, abs=0.2)
    assert severities(review(SIDE + 1 + far), "flow-order", words) == expected


@pytest.mark.parametrize(("long", "expected"), [(3.6, set()), (4.4, {"should"})])
def test_a_supply_that_ends_inside(long, expected):
    """A wire from the ground's track leads nowhere; what is around it is larger."""
    planted = wired(pair())
    planted.box(
        "Metal3", planted.ends["outp"][0][0] - 30, 24 - WIRE / 2, planted.ends["outp"][0][0], 24 + WIRE / 2, "outp"
    )
    planted.box("Metal2", -2.1, -5 - WIRE / 2 - long, -1.8, -5, "vss")
    planted.move_label("vss", "Metal3", 2.0, -5)
    planted.box("Metal3", -20, -20, 30, -19.5)
    assert severities(planted.review(), "dead-metal", "of vss lead nowhere") == expected


@both("wire-length.poly", "should")
def test_poly_as_a_wire(figure, expected):
    """The contact lies so far above the diffusion."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "out in vss vss")
    x, y = planted.ends["in"].pop()
    for layer in ("Contact", "Metal1"):
        planted.erase(layer, x - 0.3, y - 0.3, x + 0.3, y + 0.3)
    y = 4 + figure + 0.11
    planted.box("Poly2", x - 0.25, 4.3, x + 0.25, y + 0.3)
    planted.square("Contact", x, y, 0.22)
    planted.square("Metal1", x, y, 0.4, "in")
    planted.ends["in"].append((x, y))
    for net, track in (("out", 12.0), ("in", 13.0), ("vss", -3.0)):
        planted.comb(net, track)
    assert severities(planted.review(), "wire-length", "through poly") == expected


@both("wire-length.poly", "should")
@pytest.mark.parametrize("below", [False, True])
def test_gates_that_poly_alone_joins(figure, expected, below):
    """Two channels in a row with a bar of poly above; the contact is on the bar, or below the first channel."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "out in vss vss")
    planted.mos("M2", "nmos", figure + (1 if below else 0.61), 0, 4, 1, "out2 in vss vss")
    (x, y), (other, _) = planted.ends["in"]
    for left in (x, other) if below else (other,):
        for layer in ("Contact", "Metal1"):
            planted.erase(layer, left - 0.3, y - 0.3, left + 0.3, y + 0.3)
    planted.box("Poly2", x, y - 0.2, other, y + 0.2)
    planted.ends["in"] = [(x, -0.8 if below else y)]
    if below:
        planted.box("Poly2", x - 0.3, -1.1, x + 0.3, -0.3)
        planted.square("Contact", x, -0.8, 0.22)
    for net, track in (("out", 12.0), ("in", 13.0), ("out2", 14.0), ("vss", -3.0)):
        planted.comb(net, track)
    assert severities(planted.review(), "wire-length", "through poly") == expected


@pytest.mark.parametrize(("long", "expected"), [(1.009, set()), (1.011, {"should"}), (2.0, {"should"})])
def test_a_mirror_of_unlike_lengths(long, expected):
    assert limit("group-unlike.length", "should") == 0.01
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "ib ib vss vss")
    planted.mos("M2", "nmos", 5, 0, 4, long, "x ib vss vss")
    for net, track in (("ib", 6.5), ("x", 7.5), ("vss", -3.0)):
        planted.comb(net, track)
    assert severities(planted.review(), "group-unlike", "um long") == expected


@pytest.mark.parametrize(("sides", "alike"), [((4, 4), True), ((4, 6), False)])
def test_outputs_that_differ_although_equal_capacitors_are_on_them(sides, alike):
    """The capacitors lead to different nets: no images. Capacitances of what is unlike are not compared."""
    planted = pair()
    for net, track in {"inp": 18.0, "inn": 19.0, "tail": 7.0, "bias": -3.0, "vss": -5.0, "outn": 31.0}.items():
        planted.comb(net, track, port=net != "tail")
    planted.comb("outp", 28.0, left=-300)
    for number, (net, track, side) in enumerate(zip(("outp", "outn"), (28.0, 31.0), sides, strict=True)):
        x, y, left = planted.ends[net][0][0], 50 + 20 * number, (-30, 40)[number]
        planted.plate(f"C{number}", left, y, side, f"{net} {('vss', 'c')[number]}")
        planted.via3(net, x, track)
        planted.square("Via4", x, track, 0.26)
        planted.box("Metal5", x - 0.3, track - 0.3, x + 0.3, y + 1, net)
        planted.box("Metal5", min(x, left + 1), y + 0.7, max(x, left + 1), y + 1.3, net)
    planted.label("c", "Metal4", 39.5, 70)
    planted.box("Metal4", -30, 49.5, -9.6, 50, "vss")
    planted.box("Metal4", -10, -5.2, -9.6, 50, "vss")
    planted.via3("vss", -9.8, -5)
    planted.box("Metal3", -10, -5 - WIRE / 2, 0, -5 + WIRE / 2, "vss")
    review = planted.review(limits={"net-pair.wires": {"should": None}})
    found = [each for each in review.findings if each.id == "net-pair" and {"outn", "outp"} <= {*each.nets}]
    assert bool(found) is alike


def coupling_of(monkeypatch, *devices, rest=None):
    """Return the quiet and the loud nets of transistors in a row: type, nets, width and length of each."""
    planted, found, real = Planted(), [], design_review.Coupling
    for number, (kind, nets, width, length) in enumerate(devices):
        planted.mos(f"M{number}", kind, 60.0 * number, 0, width, length, nets)
    if rest is not None:
        rest(planted)
    for track, net in enumerate(planted.ends):
        planted.comb(net, 24.0 + track, port=net not in {"m", "x", "t"})
    monkeypatch.setattr(design_review, "Coupling", lambda *parts: found.append(real(*parts)) or found[0])
    planted.review()
    return found[0].quiet, found[0].loud


STAGE = [("nmos", "x in t vss", 4, 1), ("pmos", "x bp vdd vdd", 4, 1), ("nmos", "t bn vss vss", 4, 1)]
OUTPUT = [("pmos", "out x vdd vdd", 4, 1), ("nmos", "out bn vss vss", 4, 1)]


@pytest.mark.parametrize("dummy", ["out out out vss", "x x x vss"])
def test_a_dummy_on_a_net_is_no_diode(monkeypatch, dummy):
    """The output of an amplifier is loud, that of its first stage quiet, whatever dummies are tied to them."""
    quiet, loud = coupling_of(monkeypatch, *STAGE, *OUTPUT, ("nmos", dummy, 4, 1))
    assert "x" in quiet
    assert "out" in loud


@pytest.mark.parametrize("end", ["m", "vdd"])
def test_a_resistor_to_a_capacitor_holds_no_net(monkeypatch, end):
    """In series with a compensation it carries no direct current; that to a supply is a load."""

    def rest(planted):
        planted.bar("R1", 400, 0, 1, 10, f"x {end}", upright=False)
        if end == "m":
            planted.mos("MC", "nmos", 430, 0, 4, 4, "vss m vss vss")

    quiet, _ = coupling_of(monkeypatch, *STAGE, *OUTPUT, rest=rest)
    assert "x" not in quiet or end == "m"


@pytest.mark.parametrize(("length", "expected"), [(30.0, True), (50.0, False)])
def test_a_long_diode_does_not_hold_a_net(monkeypatch, length, expected):
    """4 um wide: W/L of 0.13 holds it, 0.08 does not."""
    quiet, _ = coupling_of(
        monkeypatch,
        ("nmos", "out x vss vss", 4, 1),
        ("pmos", "out bp vdd vdd", 4, 1),
        ("nmos", "x x vss vss", 4, length),
    )
    assert ("x" in quiet) is not expected


@pytest.mark.parametrize("dummy", ["out vss vss vss", "vss vss out vss"])
def test_the_ends_of_a_dummy_do_not_decide_what_is_loud(monkeypatch, dummy):
    """Pairs of both types steer currents into the output of a charge pump; a dummy that is off has no drain."""
    pairs = [(kind, f"{net} {kind}{net} {kind}s {rail}", 2, 0.5)
             for kind, rail in (("nmos", "vss"), ("pmos", "vdd")) for net in ("out", "dum")]  # fmt: skip
    sources = [(kind, f"{kind}s {kind}g {rail} {rail}", 4, 1) for kind, rail in (("nmos", "vss"), ("pmos", "vdd"))]
    diodes = [(kind, f"{kind}g {kind}g {rail} {rail}", 4, 1) for kind, rail in (("nmos", "vss"), ("pmos", "vdd"))]
    _, loud = coupling_of(monkeypatch, *pairs, *sources, *diodes, ("nmos", dummy, 2, 0.5))
    assert {"nmosout", "nmosdum", "pmosout", "pmosdum"} <= loud


@pytest.mark.parametrize(
    ("length", "more", "expected"),
    [
        (0.45, (), True),
        (0.55, (), False),
        (0.45, [("pmos", "far up own vdd", 2, 0.45), ("pmos", "own pmosg vdd vdd", 4, 1)], False),
        (0.55, [("nmos", "dn u vss vss", 4, 0.5), ("pmos", "dn u vdd vdd", 4, 0.5)], True),
    ],
)
def test_switches_in_series_with_mirrors_are_loud(monkeypatch, length, more, expected):
    """A charge pump; a longer transistor, or one of two on its gate, is a cascode, unless logic drives the other."""
    sides = (("nmos", "vss", "dn"), ("pmos", "vdd", "up"))
    pump = [each for kind, rail, gate in sides for each in (
        (kind, f"{kind}g {kind}g {rail} {rail}", 4, 1), (kind, f"{kind}s {kind}g {rail} {rail}", 4, 1),
        (kind, f"ctl {gate} {kind}s {rail}", 2, length))]  # fmt: skip
    quiet, loud = coupling_of(monkeypatch, *pump, *more)
    assert ({"up", "dn"} <= loud) is expected
    assert ("ctl" in quiet) is expected


@pytest.mark.parametrize(("high", "expected"), [("pmos", False), ("nmos", True)])
def test_a_mesh_between_a_source_and_a_sink_is_no_switch(monkeypatch, high, expected):
    """Two in parallel from a net that PMOS feed to one that NMOS drain carry a current; else they may be a switch."""
    rail = {"pmos": "vdd", "nmos": "vss"}[high]
    mesh = [("nmos", "a gn b vss", 2, 0.5), ("pmos", "b gp a vdd", 2, 0.5)]
    stage = [(high, f"a in1 {rail} {rail}", 4, 1), ("nmos", "b in2 vss vss", 4, 1)]
    output = [("pmos", "out a vdd vdd", 8, 1), ("nmos", "out b vss vss", 8, 1)]
    _, loud = coupling_of(monkeypatch, *mesh, *stage, *output)
    assert ({"gn", "gp"} <= loud) is expected


@pytest.mark.parametrize("driven", [False, True])
def test_a_net_of_logic_that_a_resistor_moves_is_quiet(monkeypatch, driven):
    """A resistor pulls it up slowly; with a PMOS beside it, it swings from rail to rail."""
    inverter = [("nmos", "z a vss vss", 2, 0.5), ("pmos", "z a vdd vdd", 2, 0.5), ("nmos", "a s vss vss", 4, 1)]
    fast = [("pmos", "a s vdd vdd", 4, 1)] * driven
    quiet, loud = coupling_of(
        monkeypatch, *inverter, *fast, rest=lambda planted: planted.bar("R1", 400, 0, 1, 10, "a vdd", upright=False)
    )
    assert ("a" in quiet, "a" in loud) == (not driven, driven)
    assert "z" in loud


@pytest.mark.parametrize("held", [False, True])
def test_a_charge_between_switches_and_a_plate_is_quiet(monkeypatch, held):
    """Two transmission gates pass it on; a resistor to the ground would hold it."""
    gates = [("nmos", "in clk x vss"), ("pmos", "in clkb x vdd"), ("nmos", "x s out vss"), ("pmos", "x sb out vdd")]

    def rest(planted):
        planted.plate("C1", 500, 10, 20, "x y")
        planted.label("y", "Metal4", 499.5, 20)
        (x, _), *_ = planted.ends["x"]
        track = 24.0 + list(planted.ends).index("x")
        planted.via3("x", x, track)
        planted.square("Via4", x, track, 0.26)
        planted.box("Metal5", x - 0.2, track - 0.2, 510, track + 0.2, "x")
        if held:
            planted.bar("R1", 400, 0, 1, 10, "x vss", upright=False)

    quiet, _ = coupling_of(monkeypatch, *((kind, nets, 2, 0.5) for kind, nets in gates), rest=rest)
    assert ("x" in quiet) is not held


@pytest.mark.parametrize(("other", "expected"), [("ref", {"should"}), ("b", {"must"})])
def test_a_clock_beside_a_port_of_both_halves(other, expected):
    """Two switches and plates hold charges against one port, so that both get the same, or against a port each."""
    planted = Planted()
    for number, (net, far) in enumerate((("p", "ref"), ("n", other))):
        planted.mos(f"M{number}", "nmos", 20.0 * number, 0, 2, 0.5, f"{net} clk {far} vss")
        planted.plate(f"C{number}", 80.0 * number - 40, 60, 20, f"{net} {far}")
        for each, level in ((net, "Metal5"), (far, "Metal4")):
            x, track = planted.ends[each][-1][0], 10 + [*planted.ends].index(each)
            planted.via3(each, x, track)
            planted.square("Via4", x, track, 0.26)
            planted.box(level, x - 0.2, track - 0.2, x + 0.2, 62, each)
            planted.box(level, (x - 0.2, -21)[not number], 61.6, (x + 0.2, 41)[number], 62, each)
    for track, net in enumerate(planted.ends):
        planted.comb(net, 10.0 + track)
    low, left = (10.0 + [*planted.ends].index(net) for net in ("ref", "clk"))
    planted.box("Metal3", 20, low - WIRE / 2, 80, low + WIRE / 2, "ref")
    planted.box("Metal3", 20, left - WIRE / 2, 90, left + WIRE / 2, "clk")
    planted.box("Metal3", 90, min(low, left) - 1, 90.4, max(low, left) + 1, "clk")
    planted.box("Metal3", 60, low - 1.5 * WIRE - 0.4, 90.4, low - WIRE / 2 - 0.4, "clk")
    found = [each for each in planted.review().findings if each.id == "coupling" and each.why.startswith("ref runs")]
    assert {each.severity for each in found} == expected


@pytest.mark.parametrize(
    ("figure", "expected"),
    [(limit("coupling.charge", "should") * 0.9, set()), (limit("coupling.charge", "must") * 0.9, {"should"}),
     (limit("coupling.charge", "must") * 1.1, {"must"}), (limit("coupling", "must") * 1.1, {"must"})],
)  # fmt: skip
@pytest.mark.parametrize(("slow", "other"), [(False, "in"), (True, "in"), (False, "z")])
def test_a_charge_beside_logic(figure, expected, slow, other):
    """A net between a switch and a plate beside the output of an inverter, or one that a resistor moves.

    The inverter may be at the other end of the switch: what couples when that is off is no current of it.
    """
    planted = Planted()
    for x, kind, nets in ((0, "nmos", f"x clk {other} vss"), (20, "pmos", f"x clkb {other} vdd")):
        planted.mos(f"M{x}", kind, x, 0, 2, 0.5, nets)
    for x, kind, rail in ((40, "nmos", "vss"), (60, "pmos", "vdd")):
        planted.mos(f"M{x}", kind, x, 0, 2, 0.5, f"z a {rail} {rail}")
        if slow:
            planted.mos(f"M{x + 8}", kind, x + 8, 0, 2, 0.5, f"q x {rail} {rail}")
    if slow:
        planted.bar("R1", 120, 0, 1, 10, "x vss", upright=False)
    tracks = {"vss": -4, "vdd": 30, "clk": 12, "clkb": 14, "in": 8, "x": 18, "z": 22, "a": 26, "q": 28}
    for net in planted.ends:
        planted.comb(net, tracks[net], left=-80 if net in {"x", "z"} else None)
    planted.plate("C1", 100, 40, 20, "x y")
    planted.label("y", "Metal4", 99.5, 50)
    planted.via3("x", planted.ends["x"][0][0], 18)
    planted.square("Via4", planted.ends["x"][0][0], 18, 0.26)
    planted.box("Metal5", planted.ends["x"][0][0] - 0.2, 17.8, 110, 18.2, "x")
    planted.box("Metal5", 109.6, 17.8, 110, 42, "x")
    planted.box("Metal3", -30, 18.5, -30 + figure, 18.5 + WIRE, "z")
    planted.box("Metal3", -30, 18.5, -30 + WIRE, 22, "z")
    told = [each for each in planted.review().findings if each.id == "coupling"]
    found = {each.severity for each in told for _, why in each.everywhere() if "minimum spaces of z" in why}
    assert found == ({"should"} if slow and expected else expected)


@pytest.mark.parametrize(("drain", "expected"), [("z", {"should"}), ("y", {"must"})])
def test_a_source_beside_the_drain_of_its_transistor(drain, expected):
    """Its current drives both: the net between two long channels runs beside the drain of one, or beside a stranger."""
    planted = Planted()
    for x, kind, rail in ((40, "nmos", "vss"), (60, "pmos", "vdd")):
        planted.mos(f"M{x}", kind, x, 0, 2, 0.5, f"z a {rail} {rail}")
    planted.mos("M1", "nmos", 0, 0, 1, 20, f"{drain} b x vss")
    planted.mos("M2", "nmos", 90, 0, 1, 20, "x c vss vss")
    tracks = {"vss": -4, "vdd": 30, "x": 18, "z": 22, "a": 36, "b": 8, "c": 10, "y": 12}
    for net in planted.ends:
        planted.comb(net, tracks[net], left=-80 if net in {"x", "z"} else None, port=net != "x")
    planted.box("Metal3", -80, 18.5, -50, 18.5 + WIRE, "z")
    planted.box("Metal3", -80, 18.5, -80 + WIRE, 22, "z")
    assert severities(planted.review(), "coupling", "minimum spaces of z") == expected


@pytest.mark.parametrize("second", ["c", "d"])
def test_what_drives_rail_to_rail_from_a_clock_is_loud(monkeypatch, second):
    """An inverter whose NMOS has its source on a port; with another gate on the PMOS it is no logic."""
    rows = [("nmos", "m c foot vss", 2, 0.5), ("pmos", f"m {second} vdd vdd", 2, 0.5)]
    inverter = [("nmos", "z c vss vss", 2, 0.5), ("pmos", "z c vdd vdd", 2, 0.5)]
    _, loud = coupling_of(
        monkeypatch, *rows, *inverter, ("nmos", "p m vss vss", 2, 0.5), ("pmos", "p bp vdd vdd", 2, 0.5)
    )
    assert ("m" in loud) == (second == "c")


@pytest.mark.parametrize(("wire", "expected"), [("inp", {"should"}), (None, set())])
def test_a_wire_of_a_pair_over_one_of_its_gates(wire, expected):
    """That of its own gate, on Metal4 over the first transistor alone."""
    planted = pair()
    x, y = SIDE, 10
    if wire:
        planted.box("Metal4", x - 0.1, y - 0.5, x + 1.1, 18.2, wire)
        planted.square("Via3", x + 0.5, 18, 0.26)
    assert severities(wired(planted).review(), "foreign-over-gates", "wires of inp") == expected


@pytest.mark.parametrize(("clock", "expected"), [("clk", {"should"}), ("vb", set())])
def test_a_clock_through_a_latch(clock, expected):
    """A wire on Metal5 over the whole height of crossed transistors; a bias disturbs nothing."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 10, 4, 1, "a b vss vss")
    planted.mos("M2", "nmos", 4, 10, 4, 1, "b a vss vss")
    planted.mos("M3", "nmos", 20, 0, 2, 0.5, "y clk vss vss")
    planted.mos("M4", "pmos", 25, 0, 2, 0.5, "y clk vdd vdd")
    planted.mos("M5", "nmos", 32, 0, 2, 0.5, "z vb vss vss")
    for track, net in enumerate(planted.ends):
        planted.comb(net, 24.0 + track)
    x, y = planted.ends[clock][0][0], 24.0 + list(planted.ends).index(clock)
    planted.via3(clock, x, y)
    planted.square("Via4", x, y, 0.26)
    planted.box("Metal5", 3.0, y - 0.2, x + 0.2, y + 0.2, clock)
    planted.box("Metal5", 3.0, 9, 3.4, y, clock)
    assert severities(planted.review(), "coupling", f"wires of {clock} run") == expected


def test_ports_inside_the_cell_are_one_finding():
    planted = wired(pair())
    planted.box("PR_bndry", -30, -30, 60, 60)
    found = [each for each in planted.review().findings if "inside the cell" in each.why and each.id == "rails"]
    assert len([each for each in found if each.why.startswith("port")]) == 1


@pytest.mark.parametrize(("length", "expected"), [(30.0, False), (50.0, True)])
def test_a_port_between_long_transistors_is_quiet(monkeypatch, length, expected):
    """A divider of diodes, each 4 um wide: its tap is a high impedance where both are long."""
    quiet, _ = coupling_of(
        monkeypatch, ("nmos", "tap tap vss vss", 4, length), ("nmos", "vdd vdd tap vss", 4, length),
        ("pmos", "y bp vdd vdd", 4, 1), ("nmos", "y bn vss vss", 4, 1),
    )  # fmt: skip
    assert ("tap" in quiet) is expected


@pytest.mark.parametrize(("source", "expected"), [("b", {"should"}), ("z", {"must"})])
def test_a_cascode_among_the_halves_of_a_mirror(source, expected):
    """The load of a pair, with a transistor in series with one of its halves, or a stranger, between them."""
    planted = pair()
    for name, x, nets in (
        ("M4", 0, "outp outp vdd vdd"),
        ("M6", 8, f"y vc {source if source != 'b' else 'outn'} vdd"),
        ("M5", 16, "outn outp vdd vdd"),
    ):
        planted.mos(name, "pmos", x, 40, 4, 1, nets)
    tracks = {
        "outp": 60,
        "outn": 61,
        "inp": 18,
        "inn": 19,
        "tail": 7,
        "bias": -3,
        "vss": -5,
        "vdd": 66,
        "y": 62,
        "z": 63,
        "vc": 64,
    }
    for net in planted.ends:
        planted.comb(net, tracks[net], port=net not in {"tail", "outp"})
    assert severities(planted.review(), "group-apart", "M6 lies among") == expected


@pytest.mark.parametrize(("net", "expected"), [("vss", {"should"}), ("c", set())])
def test_a_supply_over_some_of_equal_switches(net, expected):
    """Metal4 over the gate of the first of two switches that pass signals on; that of a signal is its coupling."""
    planted = Planted()
    for number, (gate, end) in enumerate((("clk", "b"), ("other", "c"))):
        planted.mos(f"M1{number}", "nmos", 16 * number, 0, 4, 1, f"a {gate} {end} vss")
        planted.mos(f"M2{number}", "pmos", 6 + 16 * number, 0, 4, 1, f"a {gate}b {end} vdd")
    for track, name in enumerate(planted.ends):
        planted.comb(name, -8.0 if name == "vss" else 8.0 + track, left=-4, right=30)
    y = -8.0 if net == "vss" else 8.0 + list(planted.ends).index(net)
    planted.via3(net, SIDE + 0.5, y)
    planted.box("Metal4", SIDE, min(y, -0.5), SIDE + 1, max(y, 4.5), net)
    assert severities(planted.review(), "foreign-over-gates", "equal switches") == expected


@pytest.mark.parametrize(("crossed", "expected"), [(True, {"should"}), (False, {"must"})])
def test_a_pair_about_one_centre_has_no_axis_that_others_must_keep(crossed, expected):
    """Loads are mirrored about an axis 22 um beside a pair, which is interleaved, or has one half beside the other."""
    planted = Planted()
    halves = (
        ("outp inp", "outn inn", "outn inn", "outp inp")
        if crossed
        else ("outp inp", "outp inp", "outn inn", "outn inn")
    )
    for number, nets in enumerate(halves):
        planted.mos(f"M{number}", "nmos", 2.0 * number, 10, 4, 0.3, f"{nets} tail vss")
    planted.mos("M8", "nmos", 3, 0, 4, 1, "tail bias vss vss")
    planted.mos("M6", "pmos", 20, 40, 4, 1, "outp outp vdd vdd")
    planted.mos("M7", "pmos", 30, 40, 4, 1, "outn outp vdd vdd")
    tracks = {"outp": 60, "outn": 61, "inp": 18, "inn": 19, "tail": 7, "bias": -3, "vss": -5, "vdd": 66}
    for net in planted.ends:
        planted.comb(net, tracks[net], port=net != "tail")
    review = planted.review()
    assert severities(review, "axis", "M6/M7") == expected
    assert severities(review, "axis", "M8 misses") == (set() if crossed else {"should"})


def beside_an_output(gate):
    """Return a pair and another stage whose output is 0.8 um from an input, more than twice the least space."""
    planted = pair()
    planted.mos("M5", "nmos", 20, 0, 2, 0.5, "z outp vss vss")
    planted.mos("M6", "pmos", 25, 11, 4, 0.5, f"z {gate} vdd vdd")
    wired(planted, z=32.0, vdd=34.0, outp=24.0, **({} if gate == "outp" else {gate: 36.0}))
    planted.box("Metal3", planted.ends["inp"][0][0], 18 - WIRE / 2, 75, 18 + WIRE / 2, "inp")
    return planted


def lead_beside(planted, figure):
    planted.box("Metal3", planted.ends["z"][0][0], 32 - WIRE / 2, 40, 32 + WIRE / 2, "z")
    for y in (32, 19.08):
        planted.square("Via2", 39.8, y, 0.26)
    planted.box("Metal2", 39.66, 18.9, 39.94, 32.2, "z")
    planted.box("Metal3", 39.6, 18.94, 39.6 + figure, 19.22, "z")
    planted.box("Metal3", 40, 18 - WIRE / 2, 85, 18 + WIRE / 2, "inp")
    return severities(planted.review(), "coupling", "within 1 um of")


@both("coupling.near", "should")
def test_an_input_near_a_driven_net_for_long(figure, expected):
    assert lead_beside(beside_an_output("outp"), figure) == expected


@both("coupling.output", "must", "should")
def test_an_input_near_an_output(figure, expected):
    assert lead_beside(beside_an_output("bp"), figure) == expected


@both("coupling.output", "should")
@pytest.mark.parametrize("shielded", [False, True])
def test_an_input_near_an_output_of_another_metal(figure, expected, shielded):
    """It runs on Metal5 to the side of Metal3, and Metal4 may lie between."""
    planted = beside_an_output("bp")
    planted.box("Metal3", planted.ends["z"][0][0], 32 - WIRE / 2, 80, 32 + WIRE / 2, "z")
    planted.via3("z", 79.8, 32)
    planted.square("Via4", 79.8, 32, 0.26)
    planted.box("Metal5", 79.6, 18.94, 80, 32.2, "z")
    planted.box("Metal5", 75 - figure, 18.94, 80, 19.22, "z")
    if shielded:
        planted.box("Metal4", 60, 17, 78, 20)
    found = severities(planted.review(), "coupling", "within 1 um of")
    assert found == (set() if shielded else expected)


def drain_beside_input():
    """Return a pair whose output comes down beside the track of one of its inputs."""
    planted = pair()
    (x, _), *_ = planted.ends["outp"]
    wired(planted)
    planted.box("Metal3", planted.ends["inp"][0][0], 18 - WIRE / 2, 60, 18 + WIRE / 2, "inp")
    planted.via3("outp", x, 24)
    planted.box("Metal4", x - 0.14, 24 - WIRE / 2, 20 + WIRE, 24 + WIRE / 2, "outp")
    planted.box("Metal4", 20, 18 - WIRE / 2, 20 + WIRE, 24 + WIRE / 2, "outp")
    return planted


@both("coupling.pair", "should")
def test_a_drain_of_a_pair_over_its_input(figure, expected):
    planted = drain_beside_input()
    columns = 3.68  # beside each other over the transistor
    planted.box("Metal4", 20, 18 - WIRE / 2, 20 + figure - columns, 18 + WIRE / 2, "outp")
    assert severities(planted.review(), "coupling", "of a pair") == expected


@pytest.mark.parametrize(("joined", "expected"), [(True, set()), (False, {"should"})])
def test_a_drain_that_a_capacitor_couples_to_its_input(joined, expected):
    planted = drain_beside_input()
    planted.box("Metal4", 20, 18 - WIRE / 2, 40, 18 + WIRE / 2, "outp")
    planted.plate("C1", 70, 40, 5, "inp outp" if joined else "inp b")
    planted.box("Metal4", 20, 24, 69.5, 24.3, "outp")
    planted.box("Metal4", 69.2, 24, 69.5, 39.5 if joined else 25, "outp")
    if not joined:
        planted.label("b", "Metal4", 69.5, 40)
    planted.via3("inp", 59, 18)
    planted.square("Via4", 59, 18, 0.26)
    planted.box("Metal5", 58.8, 17.8, 73, 18.2, "inp")
    planted.box("Metal5", 72.6, 18, 73, 43, "inp")
    assert severities(planted.review(), "coupling", "of a pair") == expected


@pytest.mark.parametrize(("factor", "clocked", "expected"), [
    (0.9, True, {"should"}), (1.1, True, set()), (0.1, False, set()),
])  # fmt: skip
def test_a_stored_level_beside_a_clock_over_their_switch(factor, clocked, expected):
    """Both wires lie over the transistor that is on both, where wires of no clock may run beside each other."""
    planted, gate = Planted(), "clk" if clocked else "vb"
    planted.mos("M1", "nmos", 0, 0, 5, 1, f"x {gate} in vss")
    planted.mos("M2", "nmos", 8, 0, 4, 1, "y x vss vss")
    planted.mos("M3", "nmos", 20, 0, 4, 1, f"{'z' if clocked else gate} {gate} vss vss")
    for net, track in (("x", 8), ("in", -6), (gate, 9), ("y", 11), ("z", 12), ("vss", -8)):
        if net in planted.ends:
            planted.comb(net, track, port=net != "x")
    for net, x, track in (("x", 0.3, 8), (gate, 1.3, 9)):
        planted.via3(net, x, track)
        planted.box("Metal3", x, track - WIRE / 2, 2, track + WIRE / 2, net)
        planted.box("Metal4", x - WIRE / 2, 1, x + WIRE / 2, track, net)

    def found(limit):
        each = planted.review(limits={"coupling.clock": {"should": limit}}).findings
        return [one for one in each if one.why.startswith("x runs") and "beside clock" in one.why]

    assert all(one.measured > 7 for one in found(0.1))  # of Metal4, and what is above and below
    assert {one.severity for one in found(factor * (found(0.1)[0].measured if clocked else 1))} == expected


@both("coupling.across", "should")
def test_the_ends_of_a_switch_side_by_side(figure, expected):
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 2, 0.5, "b clk a vss")
    planted.mos("M2", "pmos", 20, 0, 2, 0.5, "b clkb a vdd")
    for net, track in (("clk", 12), ("clkb", 14), ("vss", -4), ("vdd", 16), ("a", 6), ("b", 9)):
        planted.comb(net, track)
    planted.box("Metal3", 30, 6.5, 30 + WIRE, 9, "b")
    planted.box("Metal3", planted.ends["b"][1][0], 9 - WIRE / 2, 30 + WIRE, 9 + WIRE / 2, "b")
    planted.box("Metal3", planted.ends["a"][1][0], 6 - WIRE / 2, 80, 6 + WIRE / 2, "a")
    planted.box("Metal3", 30, 6.5, 30 + figure, 6.5 + WIRE, "b")
    assert severities(planted.review(), "coupling", "side by side") == expected


@pytest.mark.parametrize(("width", "expected"), [(60, set()), (30, {"should"})])
def test_the_ends_of_a_switch_are_side_by_side_within_its_channel(width, expected):
    """A strap along the channel on each end, of 56 um: within the channel it cannot be elsewhere."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, width, 0.5, "b clk a vss")
    planted.mos("M2", "pmos", 20, 0, 2, 0.5, "b clkb a vdd")
    for net, track in (("clk", 82), ("clkb", 84), ("vss", -14), ("vdd", 86), ("a", 66), ("b", -6)):
        planted.comb(net, track)
    for net, x, low, high in (("a", 0.0, 2, 66), ("b", 0.45, -6, 58)):
        planted.box("Metal5", x, low, x + 0.3, high, net)
        track = 66 if net == "a" else -6
        planted.square("Via4", x + 0.15, track, 0.26)
        planted.square("Metal4", x + 0.15, track, 0.5, net)
        planted.square("Via3", x + 0.15, track, 0.26)
        planted.box("Metal3", x - 0.2, track - WIRE / 2, planted.ends[net][0][0] + 1, track + WIRE / 2, net)
    assert severities(planted.review(), "coupling", "side by side") == expected


@pytest.mark.parametrize("diode", ["ref", "out2"])
def test_the_gates_of_a_mirror_are_no_switches(monkeypatch, diode):
    """Below the pair is a source like one that is always on; a diode makes the gate that of a mirror."""
    feet = [("nmos", "t ref vss vss", 4, 1), ("nmos", "x vdd vss vss", 4, 1), ("pmos", "o2 bp vdd vdd", 4, 1)]
    upper = [("nmos", "o1 ina t vss", 4, 1), ("nmos", "o2 inb x vss", 4, 1), ("nmos", f"{diode} ref vss vss", 4, 2)]
    _, loud = coupling_of(monkeypatch, *feet, *upper)
    assert ("ref" in loud) == (diode != "ref")


@pytest.mark.parametrize(("x", "expected"), [(7, {"should"}), (60, set())])
def test_what_lies_beside_the_rails_is_not_outside_of_them(x, expected):
    """A wire above the power rail, over it or far to its right."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 2, 0.5, "out in vss vss")
    planted.mos("M2", "pmos", 4.0, 11, 4, 0.5, "out in vdd vdd")
    for net, track in (("vss", -6), ("vdd", 20)):
        planted.comb(net, track, left=-8, right=12, width=1)
    planted.mos("M3", "nmos", x, 0, 2, 0.5, "y z w vss")
    for net, track in (("out", 7.0), ("in", 8.5), ("y", 9.5), ("w", 10.5)):
        planted.comb(net, track)
    planted.comb("z", 24, port=False)
    planted.label("z", "Metal2", *planted.ends["z"][0])
    assert severities(planted.review(), "rails", "z runs") == expected


def test_the_plate_of_a_capacitor_is_no_wire():
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "out in vss vss")
    for net, track in (("vss", -3), ("out", 8), ("in", 6.5)):
        planted.comb(net, track)
    planted.plate("C1", 4, 12, 60, "b out")
    planted.label("b", "Metal5", 30, 40)
    (x, _), *_ = planted.ends["out"]
    planted.via3("out", x, 8)
    planted.box("Metal4", x - 0.14, 8, x + 0.14, 12.2, "out")
    planted.box("Metal4", x - 0.14, 12, 4, 12.28, "out")
    assert not severities(planted.review(), "wire-length", "out has")


@pytest.mark.parametrize(("woven", "expected"), [(True, set()), (False, {"should"})])
def test_straps_at_both_sides_of_an_array_are_no_loop(monkeypatch, woven, expected):
    """A second way to a drain, 1.2 um beside the transistor; in an array both sides have a strap."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "out in vss vss")
    for net, track in (("vss", -3), ("out", 8), ("in", 6.5)):
        planted.comb(net, track)
    planted.column("out", 1.9, 3.7, -1.5)
    planted.box("Metal3", 1.76, -1.64, 3.2, -1.36, "out")
    planted.box("Metal3", 2.92, -1.64, 3.2, 8.14, "out")
    planted.box("Metal3", 1.76, 7.86, 3.2, 8.14, "out")
    real = design_review.DeadMetal

    def with_array(subject, _):
        one = subject.by_name["M1"]
        devices = (one, replace(one, names=("M9",))) if woven else (one,)
        return real(subject, [MatchedDevices("current mirror", True, devices, devices)])

    monkeypatch.setattr(design_review, "DeadMetal", with_array)
    assert severities(planted.review(), "dead-metal", "of out only close a loop") == expected


@pytest.mark.parametrize(("above", "expected"), [("clk", set()), ("vb", {"should"})])
def test_what_enables_clocked_switches_is_no_mirror(above, expected):
    """A clock on Metal5 over two transistors on one gate, below clocked switches or below cascodes."""
    planted = Planted()
    for number, x in enumerate((0, 4)):
        planted.mos(f"M{number}", "nmos", x, 10, 4, 1, f"n{number} en vss vss")
        planted.mos(f"MS{number}", "nmos", 40 + x, 10, 4, 1, f"o{number} {above} n{number} vss")
    planted.mos("M3", "nmos", 20, 0, 2, 0.5, "y clk vss vss")
    planted.mos("M4", "pmos", 25, 0, 2, 0.5, "y clk vdd vdd")
    for track, net in enumerate(planted.ends):
        planted.comb(net, 24.0 + track)
    x, y = 3.2, 24.0 + list(planted.ends).index("clk")
    at = max(place for place, _ in planted.ends["clk"])
    planted.via3("clk", at, y)
    planted.square("Via4", at, y, 0.26)
    planted.box("Metal5", x, y - 0.2, at + 0.2, y + 0.2, "clk")
    planted.box("Metal5", x, 9, x + 0.4, y, "clk")
    assert severities(planted.review(), "coupling", "wires of clk run") == expected
