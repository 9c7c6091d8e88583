"""What stands or lies beside what it disturbs: on supplies, in rings, in the heat; what one function is made of."""

import pytest
from planted_layout import SIDE, WIRE, Planted, both, limit, pair, severities, wired


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
    ("high", "driver", "expected"), [(6.2, "clk", set()), (11.0, "clk", {"should"}), (11.0, "vb", set())]
)
def test_a_switch_in_the_ring_of_a_mirror(high, driver, expected):
    """M3 is above the mirror; its gate is driven by an inverter, or is a bias."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "ib ib vss vss")
    planted.mos("M2", "nmos", 3.2, 0, 4, 1, "x ib vss vss")
    planted.mos("M3", "nmos", 5.2, 7, 2, 1, f"y {driver} vss vss")
    planted.mos("M4", "nmos", 20, 0, 2, 0.5, "clk c vss vss")
    planted.mos("M5", "pmos", 25, 0, 2, 0.5, "clk c vdd vdd")
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


@pytest.mark.parametrize(("long", "expected"), [(4.5, set()), (5.5, {"should"})])
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
    """The capacitors lead to different nets, so that they are no images; of unlike ones the wires are not compared."""
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
    found = [each for each in planted.review().findings if each.id == "net-pair" and {"outn", "outp"} <= {*each.nets}]
    assert bool(found) is alike
