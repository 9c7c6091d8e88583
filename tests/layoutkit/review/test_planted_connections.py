"""Findings about short connections: loads beside or behind, climbs, strays of capacitors, blocks, unlike supplies."""

import pytest
from planted_layout import SIDE, Planted, both, pair, severities, wired


@both("group-apart.blocks", "should")
def test_channels_in_blocks(figure, expected):
    """Two of 1.6 um pitch each, one block above the other; in the rows of the best pairs they have one centre."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 1, 1, "ib ib vss vss", 2)
    planted.mos("M2", "nmos", 0.4, ((figure * (1 + SIDE)) ** 2 - 0.16) ** 0.5, 1, 1, "x ib vss vss", 2)
    for net, track in (("ib", 8.5), ("x", 9.5), ("vss", -3.0)):
        planted.comb(net, track)
    limits = {"group-apart.centres": {"must": None, "should": None}}
    assert severities(planted.review(limits=limits), "group-apart", "stand in blocks") == expected


def test_channels_about_one_centre_are_no_blocks():
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 1, 1, "ib ib vss vss", 2)
    planted.mos("M2", "nmos", 6.4, 0, 1, 1, "x ib vss vss", 4)
    planted.mos("M1b", "nmos", 16, 0, 1, 1, "ib ib vss vss", 2)
    for net, track in (("ib", 8.5), ("x", 9.5), ("vss", -3.0)):
        planted.comb(net, track)
    limits = {"group-apart.centres": {"must": None, "should": None}}
    assert not severities(planted.review(limits=limits), "group-apart", "stand in blocks")


@both("supply-drop.unlike", "should")
def test_a_mirror_that_loses_unlike_parts_of_the_ground(figure, expected):
    """The sources are in line on one wire; what is lost between them grows with the current."""

    def review(ampere, limits=None):
        planted = Planted()
        planted.mos("M1", "nmos", 0, 0, 4, 1, "ib ib vss vss")
        planted.mos("M2", "nmos", 100, 0, 4, 1, "x ib vss vss")
        for net, track in (("ib", 6.5), ("x", 7.5), ("vss", -3.0)):
            planted.comb(net, track)
        loads = [{"device": name, "current": ampere} for name in ("M1", "M2")]
        return planted.review(constraints={"device_currents": loads}, limits=limits)

    words, tiny = "makes alike", {"supply-drop.unlike": {"should": 1e-9}}
    (small,) = (each for each in review(1e-5, tiny).findings if words in each.why)
    assert severities(review(1e-5 * figure / small.measured), "supply-drop", words) == expected


@pytest.mark.parametrize("port", [False, True])
@both("passives.stray", "must", "should")
def test_wires_of_a_small_capacitor(figure, expected, port):
    """The wire to the gate of a transistor, on the metal of the plate, is so long; a port may have a load."""

    def review(long, limits=None):
        planted = Planted()
        planted.mos("M1", "nmos", 0, 0, 4, 1, "out g vss vss")
        planted.plate("C1", 10, 20, 5, "z g")
        planted.label("z", "Metal5", 12, 22)
        planted.comb("g", 8.0, port=port)
        x = planted.ends["g"][0][0]
        planted.via3("g", x, 8)
        planted.box("Metal4", x - 0.2, 8, x + 0.2, 22, "g")
        planted.box("Metal4", x, 21.6, 10, 22, "g")
        planted.box("Metal4", x - long, 21.6, x, 22, "g")
        planted.comb("out", 12.0)
        planted.comb("vss", -3)
        return planted.review(limits=limits)

    words, tiny = "the capacitor C1", {"passives.stray": {"should": 1e-9}}
    short, far = (
        next(e.measured for e in review(long, tiny).findings if words in e.why and "of g" in e.why)
        for long in (50, 250)
    )
    found = severities(review(50 + 200 * (figure - short) / (far - short)), "passives", words)
    assert found == ({"should"} if port and expected else expected)


@pytest.mark.parametrize(("top", "expected"), [(4, set()), (5, {"should"})])
def test_a_net_between_neighbours_that_climbs(top, expected):
    """From Metal1 over Metal2 and Metal3 up to this metal."""
    planted = wired(pair(), tail=7.0)
    (x, _), *_ = planted.ends["tail"]
    planted.via3("tail", x, 7)
    planted.box("Metal4", x - 0.2, 6.8, x + 2, 7.2, "tail")
    if top == 5:
        planted.square("Via4", x, 7, 0.26)
        planted.box("Metal5", x - 0.2, 6.8, x + 2, 7.2, "tail")
    assert severities(planted.review(), "wire-length", "tail climbs") == expected


@pytest.mark.parametrize("far", [4.0, 16.0])
def test_a_net_that_climbs_on_its_way(far):
    """Metal5 between transistors farther apart than neighbours is a way over others."""
    planted = wired(pair(gap=far))
    (x, _), *_ = planted.ends["tail"]
    planted.via3("tail", x, 7)
    planted.square("Via4", x, 7, 0.26)
    planted.box("Metal5", x - 0.2, 6.8, x + 2, 7.2, "tail")
    assert severities(planted.review(), "wire-length", "tail climbs") == ({"should"} if far < 10 else set())


@pytest.mark.parametrize(("label", "expected"), [("Metal2", {"should"}), ("Metal5", set())])
def test_a_port_that_climbs_to_its_transistor(label, expected):
    """The gate of the tail is beside its port, by a wire on Metal5; its port is on this wire or below."""
    planted = wired(pair(), bias=-3.0)
    x, _ = planted.ends["bias"][0]
    planted.erase_label("bias", "Metal3")
    for at in (x, x + 4):
        planted.via3("bias", at, -3)
        planted.square("Via4", at, -3, 0.26)
        planted.square("Via2", at, -3, 0.26)
        planted.square("Metal3", at, -3, 0.4, "bias")
        planted.square("Metal2", at, -3, 0.4, "bias")
    planted.box("Metal5", x - 0.2, -3.2, x + 4.2, -2.8, "bias")
    planted.label("bias", label, x + 4, -3)
    assert severities(planted.review(), "wire-length", "bias climbs") == expected


@both("flow-order.beside", "should")
@pytest.mark.parametrize("up", [0, 8])
def test_loads_beside_their_pair(figure, expected, up):
    """On the rows of the pair, or above them."""
    planted = pair()
    right = 2 * (1 + 2 * SIDE) + 1 - SIDE
    planted.mos("M4", "pmos", right + figure - SIDE, 10 + up, 4, 1, "outp outp vdd vdd")
    planted.mos("M5", "pmos", right + figure + 6, 10 + up, 4, 1, "outn outp vdd vdd")
    wired(planted, vdd=30.0, outp=33.0, outn=34.0, inp=36.0, inn=37.0)
    assert severities(planted.review(), "flow-order", "on the same rows") == (set() if up else expected)


@both("flow-order.behind", "should")
@pytest.mark.parametrize("kind", ["load", "switch"])
def test_loads_behind_the_tail(figure, expected, kind):
    """The tail lies above the pair, the loads above the tail; what only pulls the outputs up is no load."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "outp inp tail vss")
    planted.mos("M2", "nmos", 4, 0, 4, 1, "outn inn tail vss")
    planted.mos("M3", "nmos", 2.1, 10, 4, 1, "tail bias vss vss")
    for name, x, net in (("M4", -6, "outp"), ("M5", 8, "outn")):
        gate = "outp" if kind == "load" else f"en{net}"
        width = 6 if (kind, name) == ("switch", "M5") else 4
        planted.mos(name, "pmos", x, 14 + figure, width, 1, f"{net} {gate} vdd vdd")
    for track, net in enumerate(planted.ends):
        planted.comb(net, -4.0 - track, port=net != "tail")
    found = severities(planted.review(), "flow-order", "which feeds it")
    assert found == (expected if kind == "load" else set())
