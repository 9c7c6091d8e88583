"""Findings on wires along other wires, over foreign transistors, and unlike those of their counterparts."""

import pytest
from planted_layout import SIDE, WIRE, Planted, both, limit, pair, severities, wired


def stages(second="z in2 vss vss", **tracks):
    """Return two amplifiers side by side, with nets y and z, whose wires reach farther to the right than they must."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 0.5, "y in vss vss")
    planted.mos("M2", "pmos", 4, 0, 4, 0.5, "y bp vdd vdd")
    planted.mos("M3", "nmos", 12, 0, 3, 0.5, second)
    planted.mos("M4", "pmos", 16, 0, 4, 0.5, f"{second.split()[0]} bp2 vdd vdd")
    for number, net in enumerate(planted.ends):
        planted.comb(
            net, {"y": 20.0, "z": 24.0, "vss": -4.0, "vdd": 30.0}.get(net, 8.0 + number), **tracks.get(net, {})
        )
    return planted


def beside(planted, net, track, figure, x=24.0, y=20.0):
    """Lead a net from its track to a place beside the track at ``y``, and along it."""
    low = y + WIRE / 2 + 0.3
    planted.box("Metal3", planted.ends[net][0][0], track - WIRE / 2, x + WIRE, track + WIRE / 2, net)
    planted.box("Metal3", x, low, x + WIRE, track, net)
    planted.box("Metal3", x, low, x + figure, low + WIRE, net)


@both("coupling.run", "should")
def test_a_signal_along_another_one(figure, expected):
    planted = stages(y={"right": 34.0})
    beside(planted, "z", 24.0, figure)
    assert severities(planted.review(), "coupling", "y, z (") == expected


@pytest.mark.parametrize(("net", "expected"), [("bias", set()), ("in2", {"should"})])
def test_what_stands_still_may_run_along_what_does(net, expected):
    """The gate of the second stage beside that of the loads; a mirror holds both, or an input drives the one."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, f"{net} {net} vss vss" if net == "bias" else f"u {net} vss vss")
    planted.mos("M2", "nmos", 4, 0, 4, 1, f"bp {net} vss vss" if net == "bias" else "bp vss vss vss")
    planted.mos("M3", "pmos", 12, 0, 4, 1, "bp bp vdd vdd")
    planted.mos("M4", "pmos", 20, 0, 4, 1, "z bp vdd vdd")
    for number, name in enumerate(planted.ends):
        planted.comb(name, {net: 20.0, "bp": 24.0, "vss": -4.0, "vdd": 30.0}.get(name, 8.0 + number), right=34.0)
    beside(planted, "bp", 24.0, 8.0)
    found = {
        each.severity for each in planted.review().findings if each.id == "coupling" and {net, "bp"} <= {*each.nets}
    }
    assert found == expected


@pytest.mark.parametrize(("share", "expected"), [(0.9, set()), (1.1, {"should"})])
def test_a_way_is_judged_by_the_size_of_the_layout_as_well(share, expected):
    """Beside a rail of 100 um, 4 um are the least way that is named."""
    planted = stages(y={"right": 44.0}, vss={"right": 98.0})
    long = planted.cell.dbbox()
    beside(planted, "z", 24.0, 0.04 * max(long.width(), long.height()) * share)
    assert severities(planted.review(), "coupling", "y, z (") == expected


@pytest.mark.parametrize(("body", "expected"), [("w", set()), ("q", {"should"})])
def test_a_body_beside_a_signal(body, expected):
    """The well of M5 has a port of its own, or the gate of M5 is on it as well, so that it is a signal."""
    planted = stages(y={"right": 44.0})
    planted.mos("M5", "pmos", 30, 2, 4, 0.5, f"u q vdd {body}")
    for net, track in (("u", 12), ("q", 28), ("w", 28.6), ("vdd", 30)):
        if net in planted.ends:
            planted.comb(net, track)
    beside(planted, body, 28 if body == "q" else 28.6, 8.0, x=33.0)
    assert severities(planted.review(), "coupling", f"y, {body} (") == expected


@both("coupling.over", "should")
def test_a_signal_over_a_transistor_that_is_not_on_it(figure, expected):
    planted = stages()
    planted.mos("M5", "nmos", 24, 2, 8, 0.5, "w q vss vss")
    for net, track in (("w", 16), ("q", 18), ("vss", -4)):
        planted.comb(net, track)
    planted.box("Metal3", planted.ends["y"][0][0], 20 - WIRE / 2, 25, 20 + WIRE / 2, "y")
    planted.via3("y", 24.8, 20)
    planted.box("Metal4", 24.7, 10 - figure, 24.98, 20, "y")
    assert severities(planted.review(), "coupling", "does not connect to") == expected


@pytest.mark.parametrize(("along", "low"), [(8.0, 4.0), (2.0, 4.0), (8.0, 14.0), (2.0, 14.0)])
def test_a_long_wire_is_named_with_what_it_passes(along, low):
    """Net z runs along the track of y, and then down over M5, whose channel ends at 10 um, or not so far."""
    planted = stages(y={"right": 44.0})
    planted.mos("M5", "nmos", 38, 2, 8, 0.5, "w q vss vss")
    for net, track in (("w", 12), ("q", 13), ("vss", -4)):
        planted.comb(net, track)
    beside(planted, "z", 24.0, along)
    planted.box("Metal3", planted.ends["z"][0][0], 24 - WIRE / 2, 39, 24 + WIRE / 2, "z")
    planted.via3("z", 38.8, 24)
    planted.box("Metal4", 38.7, low, 38.98, 24, "z")
    found = planted.review(limits={"wire-length": {"must": None, "should": 1.0}}).findings
    places = (place for each in found if each.id == "wire-length" for place in each.everywhere())
    (passed,) = (why.partition("; the wire ")[2] for _, why in places if why.startswith("z has"))
    assert ("crosses M5" in passed) == (low < 10)
    assert ("y" in passed.partition(";")[0].partition("runs along ")[2].split(", ")) == (along > 3)


@both("coupling.supply", "should")
@pytest.mark.parametrize("source", ["vss", "vdd", "body"])
def test_a_supply_over_a_transistor_that_is_not_on_it(figure, expected, source):
    """M5 is on the ground alone, or a follower on the power above it; a supply that only holds its body is foreign."""
    planted = stages()
    nets = {"vss": "w q vss vss", "vdd": "vdd q w vss", "body": "w q u vdd"}
    planted.mos("M5", "pmos" if source == "body" else "nmos", 24, 2, 16, 0.5, nets[source])
    for net, track in [("w", 24), ("q", 26), ("vss", -4), ("u", 28)][: 3 + (source == "body")]:
        planted.comb(net, track)
    planted.box("Metal3", planted.ends["vdd"][0][0], 30 - WIRE / 2, 26.2, 30 + WIRE / 2, "vdd")
    if source != "vss":
        planted.comb("vdd", 30)
    planted.via3("vdd", 24.8, 30)
    planted.box("Metal4", 24.7, 18 - figure, 24.98, 30, "vdd")
    found = severities(planted.review(), "coupling", "vdd runs")
    assert found == (set() if source == "vdd" else expected)


@pytest.mark.parametrize(("load", "expected"), [("bp", {"should"}), ("q", set())])
def test_a_supply_over_logic(load, expected):
    """M5 amplifies, with M6 as its load, or both are an inverter."""
    planted = stages()
    planted.mos("M5", "nmos", 24, 2, 16, 0.5, "w q vss vss")
    planted.mos("M6", "pmos", 44, 2, 16, 0.5, f"w {load} vdd vdd")
    for net, track in (("w", 24), ("q", 26), ("vss", -4), ("vdd", 30)):
        planted.comb(net, track)
    if load == "bp":
        planted.comb("bp", 28)
    planted.via3("vdd", 24.8, 30)
    planted.box("Metal4", 24.7, 18 - 2 * limit("coupling.supply", "should"), 24.98, 30, "vdd")
    assert severities(planted.review(), "coupling", "vdd runs") == expected


@pytest.mark.parametrize(("gate", "expected"), [("bp", {"should"}), ("y", set())])
def test_a_signal_over_a_transistor_of_its_own(gate, expected):
    """M5 has the gate of the loads, or that of the wire."""
    planted = stages()
    planted.mos("M5", "nmos", 24, 2, 8, 0.5, f"w {gate} vss vss")
    for net, track in (("w", 16), (gate, {"bp": 12, "y": 20}[gate]), ("vss", -4)):
        planted.comb(net, track)
    planted.box("Metal3", planted.ends["y"][0][0], 20 - WIRE / 2, 25, 20 + WIRE / 2, "y")
    planted.via3("y", 24.8, 20)
    planted.box("Metal4", 24.7, 2 * limit("coupling.over", "should") - 4, 24.98, 20, "y")
    assert severities(planted.review(), "coupling", "does not connect to") == expected


@pytest.mark.parametrize(("right", "expected"), [(27.5, set()), (22.5, {"should"})])
def test_the_ring_of_a_transistor_is_no_transistor(right, expected):
    """The wire leads along a side of the ring of M5, or over M5 itself."""
    planted = stages()
    planted.mos("M5", "nmos", 22, 2, 8, 0.5, "w q vss vss")
    for net, track in (("w", 16), ("q", 18), ("vss", -4)):
        planted.comb(net, track)
    for box in ((20.5, 0.5, 28, 1), (20.5, 12, 28, 12.5), (20.5, 0.5, 21, 12.5), (27.3, 0.5, 28, 12.5)):
        planted.box("COMP", *box)
        planted.box("Pplus", *box)
    planted.box("Metal3", planted.ends["y"][0][0], 20 - WIRE / 2, right + 0.2, 20 + WIRE / 2, "y")
    planted.via3("y", right, 20)
    planted.box("Metal4", right - 0.14, 3, right + 0.14, 20, "y")
    assert severities(planted.review(), "coupling", "does not connect to") == expected


UNSAID = {name: {"must": None, "should": None} for name in ("net-pair.capacitance", "net-pair.resistance")}


def inputs(longer, track=18.0, reach=40.0):
    """Return a pair whose inputs run to the left and to the right, one of them longer by so much."""
    planted = pair()
    for net, side in (("inp", -1), ("inn", 1)):
        x, far = planted.ends[net][0][0], reach + longer * (side > 0)
        planted.box(
            "Metal3", *sorted((x, x + side * far))[:1], track - WIRE / 2, max(x, x + side * far), track + WIRE / 2, net
        )
    return wired(planted, inp=track, inn=track)


@both("net-pair.wires", "should")
def test_inputs_that_differ_in_length(figure, expected):
    """Each has 0.4 um of Metal1, a column of Metal2 from its gate to the track, and that: figure = 2 d / (2 b + d)."""
    wires = 0.4 + (18 + WIRE / 2 - 14.6 + WIRE / 2) + (40 + WIRE / 2)
    review = inputs(2 * wires * figure / (2 - figure)).review(limits=UNSAID)
    assert severities(review, "net-pair", "wired differently") == expected


@pytest.mark.parametrize(("reach", "expected"), [(0.0, set()), (20.0, {"should"})])
def test_inputs_that_differ_by_three_micrometres_are_alike(reach, expected):
    """2.9 um of 6 and 26 um, and as much of a third of the longer wires."""
    longer = 2.9 if not reach else 0.3 * (reach + 5)
    assert severities(inputs(longer, reach=reach).review(limits=UNSAID), "net-pair", "wired differently") == expected


@pytest.mark.parametrize(("shared", "expected"), [(True, set()), (False, {"should"})])
def test_a_net_of_more_gates_is_no_counterpart(shared, expected):
    """The gate of another transistor is on the longer input, or on a net of its own."""
    planted = inputs(30.0)
    planted.mos("M7", "nmos", 50, 10, 4, 1, f"u {'inn' if shared else 'v'} vss vss")
    for net in {"u", "inn" if shared else "v"}:
        planted.ends[net] = planted.ends[net][-1:]
        planted.comb(net, 18.0 if net == "inn" else 30.0 + (net == "u"), port=net != "inn")
    planted.ends["vss"] = planted.ends["vss"][-2:]
    planted.comb("vss", -5.0, left=0.0)
    assert severities(planted.review(limits=UNSAID), "net-pair", "wired differently") == expected


def covered(figure, nets):
    """Return a pair with a part of each gate below Metal2 that is joined to a column at its drain or gate."""
    planted = pair()
    for net, x in zip(nets, (0.0, 3.2), strict=True):
        planted.box("Metal2", x + 0.6, 14 - 4 * figure, x + 1.6, 14, net)
        planted.box("Metal2", x + 1.0, 13.9, x + (1.2 if net[0] == "i" else 2.04), 14.6 if net[0] == "i" else 14, net)
    return wired(planted).review()


@both("foreign-over-gates.own", "should")
def test_drains_over_the_gates_of_their_pair(figure, expected):
    assert severities(covered(figure, ("outp", "outn")), "foreign-over-gates", "run over") == expected


def test_wires_of_the_gates_themselves_over_them():
    assert severities(covered(0.9, ("inp", "inn")), "foreign-over-gates", "run over") == set()


@both("dead-metal.wide", "should")
def test_a_plate_of_metal_where_a_wire_will_do(figure, expected):
    """On Metal5 beside the pair, 8 um wide, where Metal5 is 0.44 um wide at least and the pair draws microamperes."""
    planted = wired(pair())
    for corner in (-10, 50):
        planted.square("Metal1", corner, corner, 0.4)
    area = planted.cell.dbbox().area()
    planted.via3("outp", planted.ends["outp"][0][0], 24)
    planted.square("Via4", planted.ends["outp"][0][0], 24, 0.26)
    planted.box("Metal5", 0, 23.5, 8, 23.5 + figure * area / 8, "outp")
    assert severities(planted.review(), "dead-metal", "times the minimum width") == expected


@pytest.mark.parametrize(("above", "expected"), [(6.0, {"should"}), (0.0, set())])
def test_the_straps_of_a_transistor_may_be_wide(above, expected):
    """Metal5 of the drain over the channel of M1, or above that."""
    planted = wired(pair())
    x = planted.ends["outp"][0][0]
    planted.via3("outp", x, 24)
    planted.square("Via4", x, 24, 0.26)
    planted.box("Metal5", x - 0.22, 12, x + 0.22, 24.2, "outp")
    planted.box("Metal5", SIDE - 0.5, 9.5 + above, SIDE + 1.5, 14.5 + above, "outp")
    found = planted.review(limits={"dead-metal.wide": {"should": 0.002}})
    assert severities(found, "dead-metal", "times the minimum width") == expected


@pytest.mark.parametrize(("ampere", "expected"), [(2e-3, {"should"}), (2e-1, set())])
def test_metal_as_wide_as_its_current_needs(ampere, expected):
    planted = wired(pair())
    planted.via3("outp", planted.ends["outp"][0][0], 24)
    planted.square("Via4", planted.ends["outp"][0][0], 24, 0.26)
    planted.box("Metal5", 0, 24 - 0.5, 4, 40, "outp")
    review = planted.review(constraints={"device_currents": [{"device": "M1", "current": ampere}]})
    assert severities(review, "dead-metal", "times the minimum width") == expected


@pytest.mark.parametrize(("gate", "expected"), [("outn", {"should"}), ("clk", set())])
def test_metal_of_a_switch_is_wide_for_its_resistance(gate, expected):
    """A plate on the drain of M4, which amplifies, or passes the voltage of port a to b."""
    planted = Planted()
    planted.mos("M4", "nmos", 0, 0, 4, 0.5, "b clk a vss" if gate == "clk" else "b outn vss vss")
    planted.mos("M5", "pmos", 12, 0, 4, 0.5, "b clkb a vdd" if gate == "clk" else "b bp vdd vdd")
    for number, net in enumerate(planted.ends):
        planted.comb(net, {"vss": -4.0, "vdd": 20.0}.get(net, 8.0 + 2 * number))
    (x, _), track = planted.ends["b"][0], 8.0 + 2 * list(planted.ends).index("b")
    planted.via3("b", x, track)
    planted.square("Via4", x, track, 0.26)
    planted.box("Metal5", x - 1, track - 0.5, x + 6, track + 6, "b")
    assert severities(planted.review(), "dead-metal", "times the minimum width") == expected


def ending(planted, net, x, y):
    """Let a wire end at the top of a column of Metal4, on two cuts to a patch of Metal5, one of them on its pad."""
    planted.box("Metal3", planted.ends[net][0][0], y - WIRE / 2, x + 0.2, y + WIRE / 2, net)
    planted.square("Via3", x, y, 0.26)
    planted.box("Metal4", x - WIRE / 2, y - 0.2, x + WIRE / 2, y + 14, net)
    planted.box("Metal4", x - 0.2, y + 14, x + 0.2, y + 14.8, net)
    planted.box("Metal5", x - 0.3, y + 13, x + 0.3, y + 14.8, net)
    for place in (y + 13.5, y + 14.4):
        planted.square("Via4", x, place, 0.26)


@pytest.mark.parametrize(("used", "expected"), [(False, {"should"}), (True, set())])
def test_a_wire_that_ends_on_two_cuts(used, expected):
    """From the patch that they lead to, nothing goes on, or a column to the drain of another transistor."""
    planted = wired(pair(), outp=30.0)
    ending(planted, "outp", 40, 30)
    if used:
        planted.mos("M7", "nmos", 38.1, 48, 2, 1, "outp v vss vss")
        planted.ends = {net: planted.ends[net][-1:] for net in ("outp", "v", "vss")}
        planted.column("outp", 40, 49.7, 44.4)
        planted.via3("outp", 40, 44.4)
        planted.square("Metal3", 40, 44.4, 0.4, "outp")
        planted.comb("v", 54.0)
        planted.comb("vss", -5.0, left=0.0)
    assert severities(planted.review(), "dead-metal", "of outp lead nowhere") == expected


def test_what_several_cuts_join_is_no_must():
    """Thirty micrometres of a net are half of all wires; the limit of a must is for what one cut joins."""
    planted = wired(pair(), outp=30.0)
    ending(planted, "outp", 40, 30)
    assert severities(planted.review(), "dead-metal") == {"should"}


def test_metal_above_a_wire_carries_its_current_too():
    """Metal4 with cuts at both ends and a shoulder beside it, over the wire from one drain to the other."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 2, 1, "y a vss vss")
    planted.mos("M2", "nmos", 30, 0, 2, 1, "y b vss vss")
    for net, track in (("y", 12.0), ("a", 8.0), ("b", 9.0), ("vss", -4.0)):
        planted.comb(net, track)
    planted.box("Metal4", 4, 11.8, 28, 12.2, "y")
    planted.box("Metal3", 4, 11.8, 4.4, 12.2, "y")
    for x in (4.2, 10, 20, 27.8):
        planted.square("Via3", x, 12, 0.26)
    assert severities(planted.review(), "dead-metal") == set()


@pytest.mark.parametrize(("long", "expected"), [(3.6, set()), (4.4, {"should"})])
def test_a_strap_that_leads_from_a_rail_to_nothing(long, expected):
    """The rail is at the edge of the layout, where a strap may end."""
    planted = pair()
    for net, track in {"outp": 24.0, "outn": 25.0, "inp": 18.0, "inn": 19.0, "tail": 7.0, "bias": -3.0}.items():
        planted.comb(net, track, port=net != "tail")
    planted.comb("vss", -6.0, left=-10, right=20, width=1)
    planted.box("Metal2", -8.14, -6.4, -7.86, -5.5 + long, "vss")
    planted.square("Via2", -8, -6, 0.26)
    assert severities(planted.review(), "dead-metal", "of vss lead nowhere") == expected


@both("dead-metal.floating", "should")
@pytest.mark.parametrize("tied", [False, True])
def test_metal_that_nothing_is_joined_to(figure, expected, tied):
    """A bar beside a pair, once on the ground's track; the largest is named, with its conductor."""
    planted = wired(pair())
    right = max(x for x, _ in planted.ends["vss"])
    for length, x in ((figure, right + 5), (9.0, right + 8)):
        planted.box("Metal4", x, -5.14, x + 1, -5.14 + length)
        if tied:
            planted.box("Metal3", right, -5.14, x + 1, -4.86, "vss")
            planted.square("Via3", x + 0.5, -5, 0.26)
    found = [each for each in planted.review().findings if "touch no device" in each.why]
    assert {each.severity for each in found} == (set() if tied else expected)
    assert all(each.why == f"{figure:.3g} um of Metal4 touch no device and no port" for each in found)


def test_wires_between_the_bars_of_dummies_are_theirs():
    planted = wired(pair())
    for x in (20.0, 22.0):
        planted.bar("R", x, 0, 1, 10, "d d")
        planted.cards.pop()
    planted.box("Metal1", 20, -0.7, 33, -0.3)
    planted.ends.pop("d")
    assert severities(planted.review(), "dead-metal", "touch no device") == set()


@pytest.mark.parametrize(("plates", "expected"), [("y x", {"should"}), ("x y", set()), ("vss x", set())])
def test_the_lower_plate_of_a_compensation(plates, expected):
    """On the output of the first stage, or of the second one; on the first above the ground, it is a shielded load."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 0.5, "x in vss vss")
    planted.mos("M2", "pmos", 4, 0, 4, 0.5, "x bp vdd vdd")
    planted.mos("M3", "nmos", 12, 0, 4, 0.5, "y x vss vss")
    planted.mos("M4", "pmos", 16, 0, 4, 0.5, "y bp vdd vdd")
    tracks = {"x": 12.0, "y": 14.0, "vss": -4.0, "vdd": 18.0, "in": 8.0, "bp": 10.0}
    for net, track in tracks.items():
        planted.comb(net, track, port=net != "x")
    planted.plate("C1", 30, 20, 5, plates)
    (top, bottom), left = plates.split(), planted.ends
    planted.via3(bottom, left[bottom][0][0], tracks[bottom])
    planted.box("Metal4", left[bottom][0][0], tracks[bottom] - 0.2, 30, tracks[bottom] + 0.2, bottom)
    planted.box("Metal4", 29.5, tracks[bottom], 30, 21, bottom)
    planted.via3(top, left[top][-1][0], tracks[top])
    planted.square("Via4", left[top][-1][0], tracks[top], 0.26)
    planted.box("Metal5", left[top][-1][0] - 0.3, tracks[top] - 0.3, 33, tracks[top] + 0.3, top)
    planted.box("Metal5", 32, tracks[top], 33, 22, top)
    assert severities(planted.review(), "passives", "bottom plate") == expected


@pytest.mark.parametrize(("track", "expected"), [(2.0, set()), (12.0, {"should"})])
def test_terminals_of_one_device_may_run_side_by_side_over_it(track, expected):
    """The bars of its gates and drains lie over the device, or far above."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 0.5, "d g vss vss", fingers=20)
    for net, y in (("d", track), ("g", track + 0.6), ("vss", -4.0)):
        planted.comb(net, y)
    assert severities(planted.review(), "coupling", "minimum spaces") == expected


@pytest.mark.parametrize(
    ("second", "up", "expected"),
    [("x ib vss vss", 0, set()), ("x ib vss vss", 4, {"must"}), ("x y vss vss", 0, {"must"})],
)
def test_a_strap_over_the_row_of_a_mirror_is_not_much_dead_metal(second, up, expected):
    """Drawn all along the row it covers the gates alike; beside the row, or over a lone transistor, it does not."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 6, "ib ib vss vss")
    planted.mos("M2", "nmos", 8, 0, 4, 6, second)
    for track, net in enumerate(planted.ends):
        planted.comb(net, -3 if net == "vss" else 9.0 + track)
    x, y = planted.ends["ib"][0]
    planted.square("Via2", x, y + up, 0.26)
    planted.box("Metal3", x - 0.2 - 5 * up, y + up - 0.2, 13, y + up + 0.2, "ib")
    review = planted.review()
    assert severities(review, "dead-metal", "of the area") == expected
    assert "should" in severities(review, "dead-metal", "lead nowhere")


@pytest.mark.parametrize("follower", [True, False])
def test_an_input_over_the_supply_of_its_pair(follower):
    """The supply at the drain of a source follower is not driven."""
    planted = pair()
    if follower:
        planted.cards[0] = planted.cards[0].replace("outp", "vdd", 1)
        planted.ends["vdd"] = planted.ends.pop("outp")
    planted.mos("M9", "pmos", 40, 10, 4, 1, "outn z vdd vdd")
    net = "vdd" if follower else "outp"
    wired(planted, vdd=34.0, z=36.0)
    (x, _), *_ = planted.ends[net]
    at = 34.0 if follower else 24.0
    planted.box("Metal3", planted.ends["inp"][0][0], 18 - WIRE / 2, 60, 18 + WIRE / 2, "inp")
    planted.via3(net, x, at)
    planted.box("Metal4", x - 0.14, at - WIRE / 2, 20 + WIRE, at + WIRE / 2, net)
    planted.box("Metal4", 20, 18 - WIRE / 2, 20 + WIRE, at + WIRE / 2, net)
    planted.box("Metal4", 20, 18 - WIRE / 2, 40, 18 + WIRE / 2, net)
    assert bool(severities(planted.review(), "coupling", "of a pair")) != follower


@pytest.mark.parametrize(
    ("length", "whole", "gate", "expected"),
    [(20, True, "in", set()), (24, True, "in", {"should"}), (24, False, "in", set()), (24, True, "vdd", set())],
)
def test_a_drain_along_a_long_channel(length, whole, gate, expected):
    """A wire of Metal2 over a channel, from its drain to its source or only over the half beside the drain.

    A gate that a supply holds is that of a weak pull, in which nothing is to match.
    """
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 2, length, f"out {gate} vss vss")
    planted.mos("M2", "pmos", 40, 0, 2, 1, "out2 in2 vdd vdd")
    for track, net in enumerate(planted.ends):
        planted.comb(net, -4 if net == "vss" else 6 + track)
    x, _ = planted.ends["out"][0]
    planted.box("Metal2", x - length * (1.0 if whole else 0.5), 1.5, x, 1.8, "out")
    assert severities(planted.review(), "foreign-over-gates", "over or beside its channel") == expected


@pytest.mark.parametrize(("place", "devices", "named"), [(60, 3, True), (12, 3, False), (60, 2, False)])
def test_the_device_that_makes_a_net_long_is_named(place, devices, named):
    """The last transistor on a net lies far from the two others, as near as these to each other, or from one alone."""
    planted = Planted()
    for number, x in enumerate((0, 6, place)[3 - devices :]):
        planted.mos(f"M{number}", "nmos", x, 0, 2, 0.5, f"z g{number} vss vss")
    for track, net in enumerate(planted.ends):
        planted.comb(net, 6.0 + track)
    found = planted.review(limits={"wire-length": {"must": None, "should": 0.1}}).findings
    texts = [why for each in found if each.id == "wire-length" for _, why in each.everywhere() if "z has" in why]
    assert [f"for M{devices - 1} alone" in text for text in texts] == [named]
