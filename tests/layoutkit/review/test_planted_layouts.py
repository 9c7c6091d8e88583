"""Each limit judges a layout 10 % inside it and one 10 % outside of it right; what is inside is arithmetic here."""

import math
import random
from dataclasses import replace

import klayout.db as kdb
import pytest
from planted_layout import GF, SIDE, WIRE, Planted, both, limit, pair, severities, wired

from layoutkit.circuit import read_netlist
from layoutkit.circuit.readers.source import NetlistText
from layoutkit.errors import LayoutkitError
from layoutkit.extract.extractor import extract
from layoutkit.lvs.compare import compare
from layoutkit.parasitics.layout_circuit import layout_circuit
from layoutkit.parasitics.net_network import layout_networks
from layoutkit.review.design_review import review_layout, unmatched
from layoutkit.review.finding import limits_with, shipped_limits
from layoutkit.review.room_and_wells import largest_empty

METAL3 = GF.conductor("Metal3")
SUPPLY = 3.3


# ---- currents


def source(length=300.0, width=WIRE):
    """Return a current source whose ground port lies at the end of a wire."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "out in vss vss")
    planted.comb("out", 8)
    planted.comb("in", 6.5)
    planted.comb("vss", -3, left=-2 - length, width=width)
    return planted


def stated(name, ampere):
    return {"device_currents": [{"device": name, "current": ampere}]}


@both("supply-drop", "must", "should")
def test_supply_drop(figure, expected):
    length = 3000.0  # beside which vias and columns do not count
    ohm = METAL3.sheet_ohm * length / WIRE
    review = source(length).review(constraints=stated("M1", figure * SUPPLY / ohm))
    assert severities(review, "supply-drop", "are lost") == expected


@pytest.mark.parametrize(("times", "expected"), [(3.8, {"should"}), (4.2, {"must"})])
def test_a_bias_that_nobody_knows_is_not_off_by_any_factor(times, expected):
    """The gate of the source is a port, so that its current is assumed: only four times over the limit is a must."""
    planted = source(3000)
    every = planted.review(limits={"supply-drop": {"must": 1e-6, "should": 1e-6}}).findings
    (found,) = (each for each in every if each.id == "supply-drop")
    limits = {"supply-drop": {"must": found.measured / times, "should": found.measured / 20}}
    assert severities(planted.review(limits=limits), "supply-drop") == expected


@both("electromigration", "must", "should")
def test_electromigration(figure, expected):
    review = source(20).review(constraints=stated("M1", figure * METAL3.current_ma(WIRE) * 1e-3))
    assert severities(review, "electromigration", "vss carries") == expected


@pytest.mark.parametrize(("times", "expected"), [(1.8, "should"), (2.2, "must")])
def test_an_estimated_current_over_a_limit_is_a_must_from_twice_of_it(times, expected):
    """M1 carries what its mirror's reference does, whose current only a usual overdrive tells."""

    def of_ground(width):
        planted = Planted()
        planted.mos("M1", "nmos", 0, 0, 40, 1, "out ref vss vss", 4)
        planted.mos("M2", "nmos", 20, 0, 40, 1, "ref ref vss vss", 4)
        for net, track, its_width in (("out", 52.0, 3), ("ref", 47.0, 3), ("vss", -3, width)):
            planted.comb(net, track, left=-20, width=its_width)
        every = planted.review(limits={"electromigration": {"should": 0.01}}).findings
        return next(each for each in every if each.id == "electromigration" and "vss carries" in each.why)

    found = of_ground(WIRE * of_ground(WIRE).measured / times)
    assert found.measured == pytest.approx(times, rel=0.04)
    assert (found.severity, "state it" in found.why) == (expected, expected == "should")


@pytest.mark.parametrize(("times", "expected"), [(1.9, {"should"}), (2.1, {"must"})])
def test_an_estimated_current_is_right_within_a_factor_of_two(times, expected):
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "out ref vss vss")
    planted.mos("M2", "nmos", 10, 0, 4, 1, "ref ref vss vss")
    every = wired(planted, out=8.0, ref=7.0).review(limits={"supply-drop": {"must": 1e-9, "should": 1e-9}}).findings
    found = next(each for each in every if each.id == "supply-drop")
    limits = {"supply-drop": {"must": found.measured / times, "should": found.measured / 20}}
    again = Planted()
    again.mos("M1", "nmos", 0, 0, 4, 1, "out ref vss vss")
    again.mos("M2", "nmos", 10, 0, 4, 1, "ref ref vss vss")
    assert severities(wired(again, out=8.0, ref=7.0).review(limits=limits), "supply-drop") == expected


@both("narrow-port", "must")
def test_narrow_port(figure, expected):
    width = 1.0
    review = source(20, width).review(constraints=stated("M1", METAL3.current_ma(width / figure) * 1e-3))
    assert severities(review, "narrow-port", "port vss") == expected


@pytest.mark.parametrize("x", [-10.0, -9.99, 3.14])
def test_a_label_at_the_edge_of_its_port_is_on_it(x):
    """The ground's wire leads from -10 um to 3.14 um: on both of its ends and within it the port is as wide."""
    planted, width, figure = Planted(), 1.0, 0.9
    planted.mos("M1", "nmos", 0, 0, 4, 1, "out in vss vss")
    planted.comb("out", 8)
    planted.comb("in", 6.5)
    planted.comb("vss", -3, left=-10, right=3.14, width=width, port=False)
    planted.label("vss", "Metal3", x, -3)
    review = planted.review(constraints=stated("M1", METAL3.current_ma(width / figure) * 1e-3))
    found = [each for each in review.findings if each.id == "narrow-port" and each.nets == ("vss",)]
    assert [round(each.measured, 2) for each in found] == [figure]


@both("wire-resistance", "must", "should")
def test_wire_resistance(figure, expected):
    """The on-resistance is that of a channel at full drive: 0.75 times the supply over twice the saturation current."""
    planted, length, width = Planted(), 0.28, 2
    planted.mos("M1", "nmos", 0, 0, width, length, "vout gate vin vss")
    channel_ohm = 0.75 * SUPPLY / (2 * GF.device("nmos").saturation_ma_um * 1e-3 * width)
    for net, track in (("vout", 4), ("gate", 5), ("vss", -5)):
        planted.comb(net, track)
    cuts = sum(cut.resistance_ohm for cut in GF.cuts[:2])
    columns = 2 * cuts + GF.conductor("Metal2").sheet_ohm * (4 - 1.7 + 1.7 + 3) / WIRE
    planted.comb("vin", -3, left=0.3 - (figure * channel_ohm - columns) / METAL3.sheet_ohm * WIRE)
    assert severities(planted.review(), "wire-resistance") == expected


@both("supply-drop.sense", "should")
def test_a_divider_that_takes_an_output_before_its_port(figure, expected):
    """The wire from the pass device to the port is so long beyond the resistor; the shorter, the less is lost."""

    def review(length, limits=None):
        planted = Planted()
        planted.mos("M1", "pmos", 0, 0, 2, 0.28, "vout enb vdd vdd")
        planted.mos("M2", "nmos", 8, 0, 2, 0.28, "enb en vss vss")
        planted.mos("M3", "pmos", 12, 0, 2, 0.28, "enb en vdd vdd")
        planted.bar("R1", 20, 10, 1, 20, "vout fb")
        for net, track in (("vdd", 50), ("enb", 5), ("en", 6), ("vss", -5), ("fb", 45)):
            planted.comb(net, track, port=net != "enb")
        planted.comb("vout", 8, right=21 + length, port=False)
        planted.label("vout", "Metal3", 21 + length - 0.1, 8)
        return planted.review(limits=limits)

    at_once = {"supply-drop.sense": {"should": 0}}
    short, long = (
        next(each.measured for each in review(length, at_once).findings if "at its port" in each.why)
        for length in (10, 110)
    )
    length = 10 + 100 * (figure - short) / (long - short)
    assert severities(review(length), "supply-drop", "at its port") == expected


def tapped(ohm):
    """Return a pass device in an amplifier's loop and its divider, with so many ohm of wire from there to the port.

    The pull-down M7 hides that it is one, so that its current is assumed.
    """
    planted = Planted()
    planted.mos("M1", "pmos", 0, 0, 40, 0.28, "vout enb vdd vdd", fingers=4)
    planted.mos("M2", "nmos", 20, 0, 4, 1, "enb fb tail vss")
    planted.mos("M3", "nmos", 25, 0, 4, 1, "d vref tail vss")
    planted.mos("M4", "nmos", 30, 0, 4, 1, "tail bias vss vss")
    planted.mos("M5", "pmos", 35, 0, 4, 1, "enb d vdd vdd")
    planted.mos("M6", "pmos", 42, 0, 4, 1, "d d vdd vdd")
    planted.mos("M7", "nmos", 15, 0, 2, 1, "vout off vss vss")
    planted.bar("R1", 50, 30, 1, 20, "vout fb", upright=False)
    tracks = {"vdd": 60, "enb": 45, "vss": -5, "fb": 46, "tail": 47, "d": 48, "vref": 49, "bias": 50, "off": 51}
    for net, track in tracks.items():
        planted.comb(net, track, port=net not in {"enb", "tail", "d"})
    end = 72 + ohm * WIRE / METAL3.sheet_ohm
    planted.comb("vout", 55, port=False)
    planted.box("Metal3", 40, 55 - WIRE / 2, end, 55 + WIRE / 2, "vout")
    planted.label("vout", "Metal3", end - 0.1, 55)
    return planted


@both("supply-drop.tap", "should")
def test_a_divider_that_takes_the_output_of_a_loop_before_its_port(figure, expected):
    words, tiny = "load current passes", {"supply-drop.tap": {"should": 1e-9}}
    short, long = (
        next(e.measured for e in tapped(ohm).review(limits=tiny).findings if words in e.why) for ohm in (5, 50)
    )
    review = tapped(5 + 45 * (figure - short) / (long - short)).review()
    assert severities(review, "supply-drop", words) == expected


ELECTRICAL = ("electromigration", "narrow-port", "supply-drop", "single-cut")


def amplifying(length):
    """Return a transistor whose gate is an input, with a wire of this length to its source."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 0.28, "out in vss vss")
    for net, track, left in (("out", 8, None), ("in", 6.5, None), ("vss", -3, -2 - length)):
        planted.comb(net, track, left=left)
    return planted


@both("wire-resistance.any", "must", "should")
def test_the_wires_of_an_amplifying_transistor(figure, expected):
    """Vias and columns, which a short wire has as well, count with the length of the wire."""
    spec, words = GF.device("nmos"), "the wires from the ports"
    on_ohm = 0.75 * spec.supply_v / (2 * spec.saturation_ma_um * 1e-3 * 4)
    every = amplifying(10).review(limits={"wire-resistance.any": {"should": 1e-6}}).findings
    (short,) = (each for each in every if words in each.why)
    length = 10 + (figure - short.measured) * on_ohm * WIRE / METAL3.sheet_ohm
    review = amplifying(length).review(constraints=stated("M1", 1e-9))
    assert severities(review, "wire-resistance", words) == expected


@both("wire-resistance", "must", "should")
@pytest.mark.parametrize("kind", ["switch", "ladder"])
def test_the_wires_of_a_switch_that_does_not_pass_full_drive(figure, expected, kind):
    """Half of a transmission gate between ports, and the driver of a resistor from a reference."""

    def drawn(length):
        planted = Planted()
        if kind == "switch":
            planted.mos("M1", "nmos", 0, 0, 4, 0.28, "a g b vss", 4)
            planted.mos("M2", "pmos", 20, 0, 4, 0.28, "a gb b vdd", 4)
            planted.mos("M3", "nmos", 40, 0, 4, 0.28, "gb g vss vss")
            planted.mos("M4", "pmos", 50, 0, 4, 0.28, "gb g vdd vdd")
        else:
            planted.mos("M1", "nmos", 0, 0, 4, 0.28, "a g vss vss", 4)
            planted.mos("M2", "pmos", 20, 0, 4, 0.28, "a g b b", 4)
            planted.bar("R1", 40, 10, 1, 20, "a c")
        tracks = {"a": 8.0, "b": -4.0, "c": 35.0, "g": 6.5, "gb": 5.5, "vdd": 12.0, "vss": -6.0}
        for net in planted.ends:
            planted.comb(
                net, tracks[net], left=-2 - length if net == "b" else None, port=(net, kind) != ("a", "ladder")
            )
        return planted

    every = (drawn(length).review(limits={"wire-resistance": {"should": 0}}).findings for length in (10, 110))
    short, long = (next(each.measured for each in found if each.id == "wire-resistance") for found in every)
    length = 10 + 100 * (figure - short) / (long - short)
    assert severities(drawn(length).review(), "wire-resistance") == expected


@pytest.mark.parametrize(("x", "expected"), [(7.5, set()), (3.0, {"must"})])
def test_what_lies_beside_the_way_between_the_halves_of_a_pair(x, expected):
    """The second half lies above and beside the first; what is in a corner of the box around both is not among them."""
    planted = pair(gap=8.0, dy=12.0)
    planted.mos("M9", "nmos", x, 12, 2, 0.5, "x y vss vss")
    tracks = {"outn": 33.0, "outp": 32.0, "inn": 31.0, "inp": 30.0, "x": 34.0, "y": 35.0}
    assert severities(wired(planted, **tracks).review(), "group-apart", "M9") == expected


@pytest.mark.parametrize(("gate", "expected"), [("gate", set()), ("enb", {"electromigration", "narrow-port"})])
def test_an_output_stage_is_no_pass_device(gate, expected):
    """40 um of PMOS, 0.5 um long: full drive is far more than its wires may carry, the current of a stage less."""
    planted, fingers, length = Planted(), 4, 0.5
    planted.mos("M1", "pmos", 0, 0, 10, length, f"vout {gate} vdd vdd", fingers)
    planted.mos("M2", "nmos", 20, 0, 2, 1, "x vb vss vss")
    for track, net in enumerate(planted.ends):
        planted.comb(net, 14.0 + track)
    full = GF.device("pmos").saturation_ma_um * 10 * fingers * GF.device("pmos").min_l * GF.dbu_um / length
    usual = full * (0.2 / (0.75 * SUPPLY)) ** 1.5
    assert usual < 0.5 * METAL3.current_ma(WIRE) < 2 * METAL3.current_ma(WIRE) < full
    musts = {each.id for each in planted.review().findings if each.severity == "must"}
    assert (musts & set(ELECTRICAL)) >= expected
    assert bool(musts & set(ELECTRICAL)) is bool(expected)


@pytest.mark.parametrize("held", [True, False])
def test_a_sampling_switch_carries_no_direct_current(held):
    """Without the capacitor at its output, which may be anywhere then, it is at full drive; its wires count anyway."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 5, 0.28, "vout clk vin vss", 4)
    if held:
        planted.plate("C1", 20, 8, 5, "ref vout")
        planted.via3("vout", 21, 9)
        planted.label("ref", "Metal5", 22.5, 10.5)
    planted.comb("vout", 9, left=-200, right=21.2)
    planted.comb("clk", 7)
    planted.comb("vin", -3, left=-200)
    planted.comb("vss", -5)
    review = planted.review()
    musts = {each.id for each in review.findings if each.severity == "must"}
    assert bool(musts & set(ELECTRICAL)) is not held
    assert severities(review, "wire-resistance", "to M1") == {"must"}


@both("narrow-port", "must")
def test_a_port_for_the_straps_of_a_pass_device(figure, expected):
    """Its channels are so long that its own current is less than what its six straps may carry."""
    planted, fingers = Planted(), 10
    planted.mos("M1", "nmos", 0, 0, 2, 4, "vout en vin vss", fingers)
    straps = (fingers // 2 + 1) * GF.conductors[0].current_ma(0.3)
    saturation = GF.device("nmos").saturation_ma_um * 2 * fingers * 0.28 / 4
    assert saturation < 0.8 * straps
    for net, track in (("vout", 9), ("en", 5), ("vss", -12)):
        planted.comb(net, track)
    planted.comb("vin", -3, left=-10, width=figure * straps / METAL3.current_ma_um)
    assert severities(planted.review(), "narrow-port", "port vin") == expected


@both("narrow-port", "must")
def test_a_rail_for_the_straps_of_a_pass_device(figure, expected):
    planted, fingers = Planted(), 10
    planted.mos("M1", "pmos", 0, 0, 2, 4, "vout gate vdd vdd", fingers)
    planted.mos("M2", "nmos", 60, 0, 2, 4, "x gate vss vss")
    straps = (fingers // 2 + 1) * GF.conductors[0].current_ma(0.3)
    for net, track in (("vout", 9), ("gate", 5), ("vss", -12), ("x", 12)):
        planted.comb(net, track)
    planted.comb("vdd", -5, width=figure * straps / METAL3.current_ma_um)
    assert severities(planted.review(), "narrow-port", "rails of vdd") == expected


@pytest.mark.parametrize("ports", [1, 2])
def test_two_ports_count_together(ports):
    half = 0.55 * METAL3.width_um(10)
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "out in vss vss")
    planted.comb("out", 8)
    planted.comb("in", 6.5)
    planted.comb("vss", -3, left=-20, width=half)
    if ports == 2:
        planted.box("Metal2", -10, -12, -10 + half, -3, "vss")
        planted.square("Via2", -9.9, -3, 0.26)
        planted.label("vss", "Metal2", -9.8, -11.9)
    review = planted.review(constraints=stated("M1", 10e-3))
    assert bool(severities(review, "narrow-port", "port vss")) is (ports == 1)


@pytest.mark.parametrize(("width", "expected"), [(0.36, set()), (1.2, {"should"})])
def test_single_cut(width, expected):
    """Metal that is not wider than a cut with its enclosure, between wires of other nets, has room for one cut."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "out in vss vss")
    for net, track in (("out", 8), ("in", 6.5), ("vss", -3)):
        planted.comb(net, track)
    for x, _ in planted.ends["out"]:
        planted.box("Metal3", x - width / 2, 8 - width / 2, x + width / 2, 8 + width / 2, "out")
        planted.box("Metal2", x - width / 2, 8 - width / 2, x + width / 2, 8 + width / 2, "out")
    review = planted.review()
    nets = {net for each in review.findings if each.id == "single-cut" for net in each.nets}
    assert ("out" in nets) is bool(expected) or width < 1  # a neighbour decides about the narrow one


@both("single-cut", "must")
def test_the_current_of_a_single_cut(figure, expected):
    """The drain has one way out, by one Via1 and one Via2 to its track."""
    cut = next(each for each in GF.cuts if each.name == "Via1")
    review = source(20).review(constraints=stated("M1", figure * cut.current_ma * 1e-3))
    assert severities(review, "single-cut", "of out, where two fit") == expected


@pytest.mark.parametrize(("fingers", "cuts", "expected"), [(8, 2, {"should"}), (8, 3, set()), (7, 2, set())])
def test_the_way_from_the_rail_to_a_block(fingers, cuts, expected):
    """The sources are joined by a track of Metal3, on which the rail of Metal4 lies with some cuts."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "out in vss vss", fingers)
    planted.comb("out", 8)
    planted.comb("in", 6.5)
    planted.comb("vss", -3, port=False)
    planted.box("Metal4", -5, -3.5, 20, -2.5, "vss")
    for number in range(cuts):
        planted.square("Via3", 0.6 * number - 1.5, -3, 0.26)
    planted.label("vss", "Metal4", -4, -3)
    assert severities(planted.review(), "single-cut", "joined to the rail of vss") == expected


@pytest.mark.parametrize(
    ("sources", "apart", "expected"), [(4, False, {"should"}), (3, False, set()), (4, True, set())]
)
def test_all_transistors_of_a_supply_on_one_stack_of_cuts(sources, apart, expected):
    """The block is judged from four channels on, unless another transistor has a way of its own."""
    planted = Planted()
    for number in range(sources):
        planted.mos(f"M{number}", "nmos", 5 * number, 0, 4, 1, f"out{number} in vss vss")
        planted.comb(f"out{number}", 8 + number)
    planted.comb("in", 6.5)
    if apart:
        *planted.ends["vss"], alone = planted.ends["vss"]
        planted.column("vss", *alone, -3)
        planted.via3("vss", alone[0], -3)
        planted.square("Metal3", alone[0], -3, 0.4, "vss")
    planted.comb("vss", -3, port=False)
    planted.box("Metal4", -5, -3.5, 20, -2.5, "vss")
    for x in (-1.5, -0.9):
        planted.square("Via3", x, -3, 0.26)
    planted.label("vss", "Metal4", -4, -3)
    assert severities(planted.review(), "single-cut", "joined to the rail of vss") == expected


@both("single-cut.share", "must", "should")
def test_a_block_of_many_channels_on_few_cuts(figure, expected):
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 0.3, "out in vss vss", round(3 * figure))
    planted.comb("out", 8)
    planted.comb("in", 6.5)
    planted.comb("vss", -3, port=False)
    planted.box("Metal4", -5, -3.5, 20, -2.5, "vss")
    for number in range(3):
        planted.square("Via3", 0.6 * number, -3, 0.26)
    planted.label("vss", "Metal4", -4, -3)
    assert severities(planted.review(), "single-cut", "joined to the rail of vss") == expected


def test_all_single_cuts_are_counted():
    """Each transistor more has as many joints more, however many there are."""

    def count(number):
        planted = Planted()
        for place in range(number):
            planted.mos(f"M{place}", "nmos", 6 * place, 0, 4, 1, "out in vss vss")
        for net, track in (("out", 8), ("in", 6.5), ("vss", -3)):
            planted.comb(net, track)
        (found,) = (each for each in planted.review().findings if each.unit == "joints")
        return found.measured

    assert count(40) - count(20) == 2 * (count(20) - count(10)) > 20


# ---- matched devices


@both("group-apart.gap", "should")
def test_gap_in_a_pair(figure, expected):
    assert severities(wired(pair(figure)).review(), "group-apart") == expected


@pytest.mark.parametrize(("x", "expected"), [(12, set()), (3.6, {"must"})])
def test_foreign_device_in_a_pair(x, expected):
    planted = pair(gap=5)
    planted.mos("M4", "nmos", x, 10, 4, 1, "y z vss vss")
    review = wired(planted, y=27.0, z=28.0).review()
    assert severities(review, "group-apart", "M4 lies among differential pair") == expected


@pytest.mark.parametrize(("side", "expected"), [(16, set()), (3, {"must"})])
def test_a_plate_above_a_pair_is_not_among_it(side, expected):
    """A plate over both transistors parts them no more than a wire does; one over the room between them takes it."""
    planted = pair(gap=8)
    planted.plate("C1", 6.2 - side / 2, 12 - side / 2, side, "top bot")
    planted.label("top", "Metal5", 6.2, 12)
    planted.label("bot", "Metal4", 6.2, 12 - side / 2)
    assert severities(wired(planted, top=30.0, bot=31.0).review(), "group-apart", "C1 lies among") == expected


@pytest.mark.parametrize(("gate", "expected"), [("ref", set()), ("other", {"should"})])
def test_a_device_that_must_match_one_of_the_group_is_not_foreign(gate, expected):
    """A mirror's second output, with a switch below its source, lies between the others; then a stranger does."""
    planted = Planted()
    for number, (drain, on, source_) in enumerate(
        [("ref", "ref", "vss"), ("out2", gate, "foot"), ("out", "ref", "vss")]
    ):
        planted.mos(f"M{number}", "nmos", 4 * number, 10, 4, 1, f"{drain} {on} {source_} vss")
    planted.mos("M3", "nmos", 20, 10, 4, 0.5, "foot en vss vss")
    for track, net in enumerate(planted.ends):
        planted.comb(net, -3.0 - track if net == "vss" else 17.0 + track, port=net != "foot")
    assert severities(planted.review(), "group-apart", "M1 lies among current mirror M0, M2") == expected


@both("group-apart.tail", "must")
def test_the_tail_between_a_pair(figure, expected):
    planted = Planted()
    width = 1.0 + 2 * SIDE
    planted.mos("M1", "nmos", 0, 10, 4, 1, "outp inp tail vss")
    planted.mos("M2", "nmos", width + figure, 10, 4, 1, "outn inn tail vss")
    planted.mos("M3", "nmos", width + figure / 2 - width / 2, 10, 4, 1, "tail bias vss vss")
    assert severities(wired(planted).review(), "group-apart", "M3, which feeds") == expected


@pytest.mark.parametrize(("crossed", "expected"), [(True, set()), (False, {"should"})])
def test_a_tail_between_the_halves_of_a_latch(crossed, expected):
    planted = Planted()
    width = 1.0 + 2 * SIDE
    for name, x, nets in (("M1", 0, "a b"), ("M2", 2 * width + 2, "b a")):
        planted.mos(name, "nmos", x, 10, 4, 1, f"{nets if crossed else nets[0] + ' in' + nets[0]} tail vss")
    planted.mos("M3", "nmos", width + 1, 10, 4, 1, "tail clk vss vss")
    planted.mos("M4", "nmos", 20, 0, 2, 0.5, "y clk vss vss")
    planted.mos("M5", "pmos", 25, 11, 4, 0.5, "y clk vdd vdd")
    tracks = {"a": 24, "b": 25, "ina": 18, "inb": 19, "tail": 7, "clk": -3, "vss": -5, "vdd": 34, "y": 32}
    for net in planted.ends:
        planted.comb(net, tracks[net], port=net != "tail")
    assert severities(planted.review(), "group-apart", "M3, which feeds") == expected


@pytest.mark.parametrize("gates", [True, False])
def test_the_transistors_of_logic_gates_are_no_pair(gates):
    """Two crossed NAND, 30 um apart; with the upper transistors of each on a bias, they are a latch with loads."""
    planted = Planted()
    for number, (a, y, z) in enumerate((("a", "y", "z"), ("b", "z", "y"))):
        x = 30.0 * number
        planted.mos(f"M1{number}", "nmos", x, 0, 4, 0.5, f"{y} {a} m{number} vss")
        planted.mos(f"M2{number}", "nmos", x + 3, 0, 4, 0.5, f"m{number} {z} vss vss")
        for part, gate in enumerate((a if gates else "bias", z if gates else "bias")):
            planted.mos(f"M{3 + part}{number}", "pmos", x + 8 + 6.2 * part, 20, 4, 0.5, f"{y} {gate} vdd vdd")
    for track, net in enumerate(planted.ends):
        planted.comb(net, 30.0 + track, port=net[0] != "m")
    found = [each for each in planted.review().findings if each.id == "group-apart"]
    assert bool(found) is not gates


def test_the_cascodes_of_a_mirror_are_not_foreign_to_each_other():
    """Two rows, mirror and cascodes, each side by side: neither is among the other, nor among itself."""
    planted = Planted()
    for number, (top, middle) in enumerate([("ref", "m1"), ("out", "m2")]):
        planted.mos(f"M{number}", "nmos", 3.2 * number, 0, 4, 1, f"{middle} ref vss vss")
        planted.mos(f"MC{number}", "nmos", 12 + 3.2 * number, 0, 4, 1, f"{top} vc {middle} vss")
    for track, net in enumerate(planted.ends):
        planted.comb(net, 22.0 + track, port=net not in {"m1", "m2"})
    assert severities(planted.review(), "group-apart", "among") == set()


def starved(gates):
    """Return a ring of three stages, each with its source of a mirror between the transistors of its neighbours."""
    planted = Planted()
    planted.mos("M0", "nmos", -8, 0, 2, 1, "ref ref vss vss")
    for number, gate in enumerate(gates):
        x, before, after = 16 * number, f"n{(number - 1) % 3}", f"n{number}"
        planted.mos(f"MS{number}", "nmos", x, 0, 2, 1, f"f{number} {gate} vss vss")
        planted.mos(f"MN{number}", "nmos", x + 4, 0, 2, 0.5, f"{after} {before} f{number} vss")
        planted.mos(f"MP{number}", "pmos", x + 9, 0, 2, 0.5, f"{after} {before} vdd vdd")
    for track, net in enumerate(planted.ends):
        planted.comb(net, 8.0 + track, port=net in {"ref", "vss", "vdd", "other", "n0"})
    return planted


@pytest.mark.parametrize(("gates", "expected"), [(("ref",) * 3, set()), (("ref", "other", "ref"), {"should"})])
def test_a_source_in_each_stage_of_a_ring(gates, expected):
    assert severities(starved(gates).review(), "group-apart", "among current mirror") == expected


def test_capacitors_on_the_outputs_of_a_ring_are_no_ratio():
    """Three equal ones, each beside its stage but the last: they are loads, and only their pitch counts."""
    planted = starved(("ref",) * 3)
    tracks = {net: 8.0 + track for track, net in enumerate(planted.ends)}
    for number, x in enumerate((0.0, 16.0, 39.0)):
        planted.plate(f"C{number}", x, 40, 5, f"vss n{number}")
        for net, metal, at in (("vss", "Metal5", x + 2.5), (f"n{number}", "Metal4", x - 0.5)):
            planted.box(metal, at - 0.3, tracks[net] - 0.3, at + 0.3, 43, net)
            planted.box("Metal3", x - 8, tracks[net] - WIRE / 2, x + 8, tracks[net] + WIRE / 2)
            planted.square("Via3", at, tracks[net], 0.26)
        planted.square("Via4", x + 2.5, tracks["vss"], 0.26)
        planted.square("Metal4", x + 2.5, tracks["vss"], 0.6, "vss")
    review = planted.review()
    assert not severities(review, "passives", "places") - {"should"}
    assert severities(review, "passives", "are scattered over 3 places") == {"should"}


@pytest.mark.parametrize(("second", "expected"), [({}, set()), ({"turned": True}, {"must"})])
def test_orientation(second, expected):
    assert severities(wired(pair(**second)).review(), "group-unlike", "turned by 90 degrees") == expected


@pytest.mark.parametrize(("second", "expected"), [({}, set()), ({"w": 2, "fingers": 2}, {"must"})])
def test_units(second, expected):
    assert severities(wired(pair(**second)).review(), "group-unlike", "um wide") == expected


@both("group-unlike.surround", "should")
def test_distance_to_a_well(figure, expected):
    planted = wired(pair())
    right = 3 * SIDE + 3  # of the second channel
    planted.box("Nwell", SIDE - 2.0 - 1, 9, SIDE - 2.0, 15)
    planted.box("Nwell", right + 2.0 * (1 - figure), 9, right + 2.0 * (1 - figure) + 1, 15)
    assert severities(planted.review(), "group-unlike", "well edge") == expected


@pytest.mark.parametrize(
    ("times", "guarded", "expected"), [(0.9, False, {"should"}), (1.1, False, {"must"}), (1.1, True, set())]
)
def test_the_ends_of_the_diffusion_of_a_pair(times, guarded, expected):
    """The diffusion of one half is 1 um longer: a must without dummies from the limit on, nothing behind them."""
    planted = pair()
    planted.box("COMP", -1, 10, 0.1, 14)
    planted.box("Nplus", -1.2, 9.8, 0.1, 14.2)
    for left in (-1.4, 2.5, 5.6) if guarded else ():
        planted.box("Poly2", left, 9.7, left + 0.3, 14.3)
    wired(planted)
    tiny = {"group-unlike.surround": {"must": 1.0, "should": 1e-6}}
    found = [each for each in planted.review(limits=tiny).findings if "ends of the diffusion" in each.why]
    assert len(found) == (not guarded)
    limits = {"group-unlike.surround": {"must": found[0].measured / times if found else 1e-6, "should": 1e-6}}
    assert severities(planted.review(limits=limits), "group-unlike", "ends of the diffusion") == expected


@both("group-unlike.guarded", "should")
def test_poly_beside_one_gate(figure, expected):
    """At both sides of the second gate poly lies 1 um away; at the first one nearer by the share."""
    planted = wired(pair(gap=3))
    gates = [(SIDE, SIDE + 1), (3 * SIDE + 4, 3 * SIDE + 5)]
    for number, (left, right) in enumerate(gates):
        away = 1.0 - (figure if number == 0 else 0)
        for x in (left - away - 0.1, right + away):
            planted.box("Poly2", x, 11.5, x + 0.1, 12.5)
    assert severities(planted.review(), "group-unlike", "neighbouring poly") == expected


@pytest.mark.parametrize(("x", "expected"), [(-2.0, set()), (2.85, {"should"})])
def test_a_tap_between_the_halves_of_a_pair(x, expected):
    planted = pair(2.0)
    planted.tap("nmos", "vss", x, 12, 0.3)
    assert severities(wired(planted).review(), "group-apart", "taps") == expected


@both("group-apart.centres", "should")
def test_halves_that_are_not_interleaved(figure, expected):
    """M1 and M5 are one half, M2 and M4 the other one, between them. M5 is farther away than M1."""
    planted = Planted()
    for name, x, nets in (
        ("M1", 0, "outp inp tail vss"), ("M2", 2, "outn inn tail vss"), ("M4", 4, "outn inn tail vss"),
        ("M5", 6 + 2 * figure, "outp inp tail vss"),
    ):  # fmt: skip
        planted.mos(name, "nmos", x, 10, 4, 0.3, nets)
    planted.mos("M3", "nmos", 3, 0, 4, 1, "tail bias vss vss")
    assert severities(wired(planted).review(), "group-apart", "interleaved") == expected


@pytest.mark.parametrize("guarded", [False, True])
@both("group-apart.centres", "must")
def test_halves_that_are_neither_interleaved_nor_guarded(figure, expected, guarded):
    """As above; poly beside every end of a row guards it, so that the distance of the centres is no must."""
    planted = Planted()
    for name, x, nets in (
        ("M1", 0, "outp inp tail vss"), ("M2", 2, "outn inn tail vss"), ("M4", 4, "outn inn tail vss"),
        ("M5", 6 + 2 * figure, "outp inp tail vss"),
    ):  # fmt: skip
        planted.mos(name, "nmos", x, 10, 4, 0.3, nets)
        for left in (x - 0.4, x + 1.6) if guarded else ():
            planted.box("Poly2", left, 9.7, left + 0.3, 14.3)
    planted.mos("M3", "nmos", 3, 0, 4, 1, "tail bias vss vss")
    found = severities(wired(planted).review(), "group-apart", "interleaved")
    assert found == ({"should"} if guarded else expected)


@pytest.mark.parametrize("fingers", [4, 2])
def test_a_mirror_copies_a_bias(fingers):
    """Without dummies, with centres farther apart than those of a pair may be: worth mending, also of equal sizes."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "ref ref vss vss", fingers)
    planted.mos("M2", "nmos", 30, 0, 4, 1, "out ref vss vss", 4)
    found = severities(wired(planted, ref=8.0, out=10.0).review(), "group-apart", "not interleaved")
    assert found == {"should"}


@pytest.mark.parametrize("switched", [False, True])
@pytest.mark.parametrize(("width", "expected"), [(4, set()), (2, {"must"})])
def test_the_transistors_that_set_a_current_with_a_resistor(width, expected, switched):
    """One has a resistor below its source, part of which a switch may bridge; their channels must be alike."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "bn bn vss vss")
    planted.mos("M2", "nmos", 5, 0, width, 1, "bp bn r vss", 16 // width)
    planted.mos("M3", "pmos", 0, 30, 4, 1, "bn bp vdd vdd")
    planted.mos("M4", "pmos", 8, 30, 4, 1, "bp bp vdd vdd")
    planted.mos("M5", "nmos", 50, 0, 4, 1, "out bn vss vss")
    planted.bar("R1", 60, 0, 1, 20, "r m")
    planted.bar("R2", 70, 0, 1, 20, "vss m")
    if switched:
        planted.mos("M6", "nmos", 80, 0, 4, 0.28, "m t vss vss")
    for track, net in enumerate(planted.ends):
        planted.comb(net, 7.0 + track, port=net not in {"r", "m", "bp", "bn"})
    assert severities(planted.review(), "group-unlike", "um wide") == expected


@both("foreign-over-gates.supply", "should")
def test_the_supply_over_one_half_of_a_mirror(figure, expected):
    """Straps on Metal2 belong to the transistors and do not count; Metal4 over one of the two gates does."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "ref ref vss vss")
    planted.mos("M2", "nmos", 3.2, 0, 4, 1, "out ref vss vss")
    planted.comb("ref", 7)
    planted.comb("out", 8)
    planted.comb("vss", -3)
    planted.via3("vss", -2, -3)
    planted.box("Metal4", -2.2, -3.2, -1.8, 1 + 4 * figure, "vss")
    planted.box("Metal4", -2.2, 1, SIDE + 1, 1 + 4 * figure, "vss")
    assert severities(planted.review(), "foreign-over-gates") == expected


@both("foreign-over-gates", "must")
def test_foreign_wire_over_gates(figure, expected):
    planted = pair()
    planted.mos("M4", "nmos", 12, 10, 4, 1, "y z vss vss")
    wired(planted, y=27.0, z=28.0)
    planted.via3("y", 13.9, 27.0)
    height = 2 * figure * 4  # of the gate of M1 alone, 1 um long and 4 um wide
    planted.box("Metal4", SIDE, 11, SIDE + 1, 11 + height, "y")
    planted.box("Metal5", 0, 0, 0.4, 0.4)
    planted.box("Metal4", SIDE, 11, -3, 11.0, "y")
    planted.box("Metal4", -3.2, 11, SIDE, 11 + min(height, 0.3), "y")
    planted.box("Metal4", -3.2, 11, -3, 27.2, "y")
    planted.box("Metal4", -3.2, 26.8, 14, 27.2, "y")
    assert severities(planted.review(), "foreign-over-gates") == expected


@pytest.mark.parametrize(("right", "expected"), [(SIDE + 1, {"must"}), (8, set())])
def test_a_supply_over_the_gates_of_a_pair(right, expected):
    """The ground of the substrate is nothing that the pair works with."""
    planted = wired(pair())
    planted.box("Metal4", -3.2, 11, right, 13)
    planted.box("Metal4", -3.2, -5.2, -3, 13)
    planted.box("Metal4", -3.2, -5.2, -1.8, -4.8)
    planted.via3("vss", -2, -5.0)
    assert severities(planted.review(), "foreign-over-gates") == expected


@pytest.mark.parametrize(
    ("dummies", "expected"), [((), {"should"}), ((0,), {"should"}), ((0, 1), set()), ((0, 2), {"should"})]
)
def test_a_pair_without_a_gate_beside_its_ends(dummies, expected):
    """Poly 1.9 um from the ends of the row guards them, 2.1 um does not."""
    planted = wired(pair(gap=0.2))
    places = (SIDE - 1.9 - 0.5, SIDE + 1 + 2 * SIDE + 0.2 + 1 + 1.9, SIDE + 1 + 2 * SIDE + 0.2 + 1 + 2.1)
    for number in dummies:
        planted.box("Poly2", places[number], 9.7, places[number] + 0.5, 14.3)
    assert severities(planted.review(), "group-unlike", "no dummy") == expected


@pytest.mark.parametrize(("top", "expected"), [(11.0, set()), (9.9, {"should"})])
def test_a_short_gate_beside_the_end_of_a_row(top, expected):
    """Channels extend from y = 10 to 14 um; only poly that overlaps this range counts as their dummy."""
    planted = wired(pair(gap=0.2))
    for left in (SIDE - 1.9, SIDE + 1 + 2 * SIDE + 0.2 + 1 + 1.4):
        planted.box("Poly2", left, 9.0, left + 0.5, top)
    assert severities(planted.review(), "group-unlike", "no dummy") == expected


@pytest.mark.parametrize(("gates", "expected"), [("b a", {"should"}), ("ck ckb", set())])
def test_a_pair_without_a_gate_beside_its_ends_that_is_no_differential_pair(gates, expected):
    """A cross-coupled pair, whose offset counts, and two loads that a clock turns on."""
    planted = Planted()
    one, other = gates.split()
    planted.mos("M1", "nmos", 0, 0, 2, 0.5, f"a {one} vss vss")
    planted.mos("M2", "nmos", 4, 0, 2, 0.5, f"b {other} vss vss")
    for number, net in enumerate(net for net in planted.ends if net != "vss"):
        planted.comb(net, 6.0 + number)
    planted.comb("vss", -5)
    assert severities(planted.review(), "group-unlike", "no dummy") == expected


def test_meshes_over_rows_are_no_length():
    """Each device in two rows of two; the net joins their drains on both sides of the rows, 0.9 um beside them."""
    planted = Planted()
    for name, x in (("M1", 0), ("M2", 8)):
        for row in (0, 20):
            planted.mos(f"{name}{'ab'[row // 20]}", "nmos", x, row, 2, 0.5, f"m g{name} s{name} vss", 2)
    for net, y in (("gM1", 10.0), ("gM2", 11.0), ("sM1", -3.0), ("sM2", -4.0), ("vss", -6.0)):
        planted.comb(net, y)
    planted.comb("m", 8.0, port=False)
    wire = severities(planted.review(), "wire-length", "m has ")
    for left in (-0.6, 4.9, 10.7):
        planted.box("Metal5", left, 0, left + WIRE, 22, "m")
        planted.box("Metal4", left, 8, left + WIRE, 8.3, "m")
        planted.square("Via4", left + WIRE / 2, 8.15, 0.2)
        planted.square("Via3", left + WIRE / 2, 8.1, 0.2)
        planted.box("Metal3", -0.6, 8 - WIRE / 2, 11, 8.3, "m")
    more = severities(planted.review(), "wire-length", "m has ")
    assert wire == more == set()


def test_a_wire_that_covers_both_gates_alike_is_no_finding():
    planted = pair()
    planted.mos("M4", "nmos", 12, 10, 4, 1, "y z vss vss")
    wired(planted, y=27.0, z=28.0)
    planted.via3("y", 13.9, 27.0)
    planted.box("Metal4", -3.2, 26.8, 14, 27.2, "y")
    planted.box("Metal4", -3.2, 11, -3, 27.2, "y")
    planted.box("Metal4", -3.2, 11, 8, 13, "y")
    assert severities(planted.review(), "foreign-over-gates") == set()


# ---- symmetry


@both("axis", "must")
def test_pair_off_its_axis(figure, expected):
    assert severities(wired(pair(dy=figure)).review(), "axis") == expected


def test_halves_that_are_unlike():
    """Two fingers of half the width, about the same axis, are not the image of one finger."""
    review = wired(pair(w=2, fingers=2, dx=0.0)).review()
    found, tail = (each for each in review.findings if each.id == "axis")
    assert (tail.severity, tail.devices) == ("should", ("M3",))
    assert (found.severity, found.measured > 1) == ("must", True)


@pytest.mark.parametrize("off", [-4.0, 3.0])
def test_the_pair_defines_the_axis_that_its_tail_misses(off):
    planted = Planted()
    planted.mos("M1", "nmos", 0, 10, 4, 1, "outp inp tail vss")
    planted.mos("M2", "nmos", 4, 10, 4, 1, "outn inn tail vss")
    planted.mos("M3", "nmos", 2 + off, 0, 4, 1, "tail bias vss vss")
    found = [each for each in wired(planted).review().findings if each.id == "axis"]
    assert [(each.devices, each.severity) for each in found] == [(("M3",), "should")]
    assert found[0].measured == pytest.approx(abs(off))


@pytest.mark.parametrize(("dy", "expected"), [(0.004, set()), (0.006, {"should"})])
def test_pair_off_the_grid(dy, expected):
    assert severities(wired(pair(dy=dy)).review(), "axis") == expected


@pytest.mark.parametrize("figure_name", ["resistance", "capacitance"])
@pytest.mark.parametrize("severity", ["must", "should"])
@pytest.mark.parametrize("share", [0.9, 1.1])
def test_unequal_outputs(figure_name, severity, share):
    """The tracks are so long that the columns do not count: their lengths differ by the figure over the mean."""
    found = unequal_outputs(figure_name, 8000.0, limit(f"net-pair.{figure_name}", severity) * share)
    assert (severity in found) is (share > 1)


def unequal_outputs(figure_name, length, figure):
    """Return the severities for outputs on tracks of this mean length whose lengths differ by the figure."""
    planted = pair()
    for net, track in {"inp": 18.0, "inn": 19.0, "tail": 7.0, "bias": -3.0, "vss": -5.0}.items():
        planted.comb(net, track, port=net != "tail")
    for net, track, part in (("outp", 28.0, 1 + figure / 2), ("outn", 31.0, 1 - figure / 2)):
        planted.comb(net, track, left=planted.ends[net][0][0] - length * part)
    findings = [each for each in planted.review().findings if {"outn", "outp"} <= {*each.nets}]
    return {each.severity for each in findings if f"in {figure_name}" in each.why}


@both("net-pair.ohms", "must")
def test_a_small_difference_of_resistance_is_not_severe(figure, expected):
    """The tracks, of known sheet resistance, differ by as many ohm as told, and by twice the length of one of them."""
    ohm_um = GF.conductor("Metal3").sheet_ohm / WIRE
    assert unequal_outputs("resistance", figure / (1.2 * ohm_um), 1.2) == (expected or {"should"})


@pytest.mark.parametrize(("length", "expected"), [(15.0, {"should"}), (60.0, {"must"})])
def test_a_small_difference_of_capacitance_is_not_severe(length, expected):
    """A micrometre of wire has 0.05 to 0.2 fF: 6 um are less than 1 fF together with what the vias add, 24 um more."""
    assert unequal_outputs("capacitance", length, 0.4) == expected


def crossed_pair():
    """Return two halves of three devices each, drawn unlike, whose outputs are no ports."""
    planted = Planted()
    for number, (out, other, gate, places) in enumerate(
        [("outp", "outn", "inp", (0, 12, 26)), ("outn", "outp", "inn", (50, 61, 76))], 1
    ):
        planted.mos(f"M{number}", "nmos", places[0], 10, 4, 0.5, f"{out} {gate} tail vss", 6)
        planted.mos(f"M{number + 2}", "nmos", places[1], 10, 4, 0.5, f"{out} {other} tail vss", 6)
        planted.mos(f"M{number + 4}", "pmos", places[2], 10, 4, 0.5, f"{out} load vdd vdd", 6)
    planted.mos("M7", "nmos", 20, 0, 4, 1, "tail bias vss vss")
    tracks = {"outp": 24, "outn": 26, "inp": 18, "inn": 19, "load": 20, "tail": 7, "bias": -3, "vss": -5, "vdd": 30}
    for net in planted.ends:
        width = 0.28 if net == "outp" else 0.4
        planted.comb(net, tracks[net], width=width, port=net not in {"tail", "outp", "outn"})
    return planted


def test_what_devices_are_called_and_their_order_decide_nothing():
    planted = crossed_pair()
    cards, seen = list(planted.cards), []
    for names in ("1234567", "5163427", "6254137", "3415267"):
        planted.cards = [f"M{names[int(card[1]) - 1]}{card[2:]}" for card in cards][:: -1 if names[0] > "4" else 1]
        findings = planted.review().findings
        seen.append(sorted((each.id, each.severity, str(each.box), round(each.measured, 6)) for each in findings))
    assert len(seen[0]) > 5
    assert all(each == seen[0] for each in seen)


def test_a_net_without_a_port_is_measured_from_the_terminal_that_is_asked_for():
    planted = crossed_pair()
    text = "\n".join([f"* planted\n.subckt TOP {' '.join(planted.ports)}", *planted.cards, ".ends", ""])
    circuit = read_netlist(NetlistText(text), identify_modules=False)
    found = layout_circuit(extract(planted.layout, planted.cell, GF), circuit)
    number = next(number for number, name in found.nets.items() if name == "outp")
    for device in ("M1", "M3", "M5"):
        network = layout_networks(found, {number}, {number: (device, "d")})[0][number]
        assert (network.start, network.nodes[device, "d"]) == (f"{device}.d", network.own)


def test_some_contacts_of_many_stand_for_the_others():
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 40, 0.5, "out in vss vss", 8)
    for net, track in (("out", 46.0), ("in", 44.0), ("vss", -3.0)):
        planted.comb(net, track, left=-20)
    text = "\n".join([f"* planted\n.subckt TOP {' '.join(planted.ports)}", *planted.cards, ".ends", ""])
    circuit = read_netlist(NetlistText(text), identify_modules=False)
    found = layout_circuit(extract(planted.layout, planted.cell, GF), circuit)
    number = next(number for number, name in found.nets.items() if name == "vss")
    assert len(found.feeds[number]["M1", "s"].points) == 5 * 79
    whole, thinned = (layout_networks(found, {number}, most_contacts=most)[0][number] for most in (None, 80))
    ohm = [next(each.ohm for each in network.terminals if each.terminal == "s") for network in (whole, thinned)]
    assert ohm[0] != ohm[1] == pytest.approx(ohm[0], rel=0.05)


# ---- floorplan


def stage(nmos_y, pmos_y, low=-6.0, high=20.0):
    planted = Planted()
    planted.mos("M1", "nmos", 0, nmos_y, 2, 0.5, "out in vss vss")
    planted.mos("M2", "pmos", 4.0, pmos_y, 4, 0.5, "out in vdd vdd")
    for net, track in (("vss", low), ("vdd", high)):
        planted.comb(net, track, left=-8, right=12, width=1)
    planted.comb("out", 7.0)
    planted.comb("in", 8.5)
    return planted


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ((0, 11), set()),
        ((5.8, 0), set()),  # by 1.8 um
        ((6.2, 0), {"should"}),  # by 2.2 um
        ((23.8, 0), {"should"}),
        ((24.2, 0), {"must"}),
        ((0, 0.5), set()),
        ((11, 0, 20.0, -6.0), set()),
    ],
)
def test_a_stage_upside_down(places, expected):
    assert severities(stage(*places).review(), "rail-side", "upside down") == expected


@both("rail-side.far", "should")
def test_a_transistor_far_from_its_rail(figure, expected):
    """The PMOS lies at the ground rail; the power rail above it, 1 um wide, is as far from it as the figure says."""
    planted = stage(0, 0, high=30.0)
    channel, rail, bottom = 4.0, 29.5, planted.cell.dbbox().bottom
    planted.box("PR_bndry", -8, bottom, 12, bottom + (rail - channel) / figure)
    assert severities(planted.review(), "rail-side", "from the rail") == expected


@pytest.mark.parametrize(("y", "expected"), [(12, set()), (-2, {"must"})])
def test_a_power_device_at_the_wrong_rail(y, expected):
    planted = Planted()
    planted.mos("M1", "pmos", 0, y, 4, 0.28, "vout enb vdd vdd")
    planted.mos("M2", "nmos", 8, 2, 4, 1, "x vb vss vss")
    for net, track in (("vss", -6.0), ("vdd", 20.0)):
        planted.comb(net, track, left=-8, right=16, width=1)
    for net, track in (("vout", 7.0), ("enb", 8.5), ("x", 10.0), ("vb", -4)):
        planted.comb(net, track)
    assert severities(planted.review(), "rail-side") == expected


@pytest.mark.parametrize(("wrong", "expected"), [(1, set()), (2, {"should"}), (3, {"should"})])
def test_transistors_at_the_other_rail(wrong, expected):
    """One of six is 17 %, two are 33 %, three 50 %."""
    planted = Planted()
    for number in range(6):
        kind, supply = ("nmos", "vss") if number < 3 else ("pmos", "vdd")
        low = (kind == "nmos") is not (number < wrong)
        planted.mos(f"M{number}", kind, 6 * number, 0 if low else 14, 2, 0.5, f"d{number} g{number} {supply} {supply}")
        planted.comb(f"d{number}", 6 + 0.6 * number)
        planted.comb(f"g{number}", 10 + 0.6 * number)
    for net, track in (("vss", -6.0), ("vdd", 24.0)):
        planted.comb(net, track, left=-8, right=40, width=1)
    assert severities(planted.review(), "rail-side", "of 6 transistors") == expected


@pytest.mark.parametrize("ground", ["vss", "vss2"])
@pytest.mark.parametrize(("turned", "expected"), [(False, set()), (True, {"should"})])
def test_transistors_of_two_powers_are_judged_within_their_own_stages(turned, expected, ground):
    """Three inverters on each of two powers: those of one lie wholly in the lower half of the cell."""
    planted = Planted()
    for number in range(6):
        x, y, (power, low) = 10.0 * (number % 3), 24.0 * (number // 3), (("vdd", "vss"), ("vdd2", ground))[number // 3]
        for kind, supply, body, at in (("nmos", low, "vss", 0.0), ("pmos", power, power, 4.0)):
            up = y + 8.0 * ((kind == "nmos") is turned)
            planted.mos(f"M{kind}{number}", kind, x + at, up, 2, 0.5, f"o{number} i{number} {supply} {body}")
        planted.comb(f"o{number}", y + 5.0 + 0.6 * (number % 3))
        planted.comb(f"i{number}", y + 13.0 + 0.6 * (number % 3))
    for net, track in {ground: 19.0, "vss": -6.0, "vdd": 16.0, "vdd2": 41.0}.items():
        planted.comb(net, track, left=-8, right=40, width=1)
    assert severities(planted.review(), "rail-side", "of 12 transistors") == expected


@both("flow-order.parts", "should")
def test_the_parts_of_an_inverter(figure, expected):
    """The channels of both transistors, on one gate and one drain, are so far apart, 3.5 um of it across."""
    review = stage(0, 2 + math.sqrt(figure**2 - 3.5**2), high=30.0).review()
    assert severities(review, "flow-order", "parts of one function") == expected


@pytest.mark.parametrize(("figure", "pair", "expected"), [(0.9, True, {"should"}), (1.1, True, {"must"}),
                                                          (0.9, False, set()), (1.1, False, {"should"})])  # fmt: skip
def test_bipolar_transistors_that_must_match(figure, pair, expected):
    """The emitters, 5 um wide, of a pair on one tail, or of a diode and what it biases, which is never severe.

    The cell is so wide that a mirror is judged at the limit of a pair. Their current comes from a mirror.
    """
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "tail bias vss vss")
    planted.mos("M2", "nmos", -12, 0, 4, 1, "bias bias vss vss")
    planted.npn("Q1", 0, 30, "outn inp tail" if pair else "ref ref tail")
    planted.npn("Q2", 5 + figure * limit("group-apart.bipolar", "must"), 30, f"outp {'inn' if pair else 'ref'} tail")
    for track, net in enumerate(planted.ends):
        planted.comb(net, 10.0 + track, port=net != "tail")
    limits = {} if pair else {"group-apart.bipolar": {"should": limit("group-apart.bipolar", "must")}}
    assert severities(planted.review(limits=limits), "group-apart", "bipolar transistors") == expected


@both("flow-order.parts", "should")
def test_the_parts_of_one_transistor(figure, expected):
    """LVS makes one of two transistors with the same nets."""
    planted = Planted()
    for name, x in (("M1", 0), ("M2", 1 + SIDE + figure)):
        planted.mos(name, "nmos", x, 0, 4, 1, "out in vss vss")
    for net, track in (("out", 8.0), ("in", 7.0), ("vss", -3.0)):
        planted.comb(net, track)
    assert severities(planted.review(), "flow-order", "parts of one function") == expected


@both("flow-order.power", "should")
def test_an_output_stage_beside_the_input_pair(figure, expected):
    """What carries ten times the current of the pair lies so far from the last channel of it."""
    planted = pair()
    planted.mos("M4", "nmos", 2.2 + 1 + SIDE + 1 + figure - SIDE, 10, 4, 1, "out outn vss vss")
    carried = [{"device": name, "current": ma * 1e-3} for name, ma in (("M1", 0.02), ("M2", 0.02), ("M4", 0.41))]
    review = wired(planted, out=27.0).review(constraints={"device_currents": carried})
    assert severities(review, "flow-order", "times the current of") == expected


@pytest.mark.parametrize(("order", "expected"), [((0, 1, 2), set()), ((1, 2, 0), {"should"}), ((1, 0, 2), {"should"})])
def test_the_order_of_stages(order, expected):
    planted, nets = Planted(), ["in", "a", "b", "out"]
    for number, place in enumerate(order):
        x = 12.0 * place
        planted.mos(f"M{number}", "nmos", x, 0, 2, 0.5, f"{nets[number + 1]} {nets[number]} vss vss")
        planted.mos(f"MP{number}", "pmos", x + 4, 11, 4, 0.5, f"{nets[number + 1]} {nets[number]} vdd vdd")
    for net, track in (("vss", -6.0), ("vdd", 20.0), ("in", 5.0), ("a", 6.0), ("b", 7.0), ("out", 8.0)):
        planted.comb(net, track, width=1 if net[0] == "v" else WIRE, port=net not in {"a", "b"})
    assert severities(planted.review(), "flow-order", "out of order") == expected


@pytest.mark.parametrize(
    ("order", "second", "unordered", "expected"),
    [
        ((0, 1, 2), "en", "", set()),
        ((1, 0, 2), "en", "", {"should"}),
        ((1, 0, 2), "out", "a loop", set()),
        ((1, 0, 2), "en", "an amplifier", set()),
    ],
)
def test_the_order_of_stages_where_a_signal_passes_on_two_ways(order, second, unordered, expected):
    """The last gate asks a signal and its inverse, as where edges are found. Loops and amplifiers have no order."""
    planted, (first, middle, last) = Planted(), [16.0 * place for place in order]
    planted.mos("M1", "nmos", middle, 0, 2, 0.5, "b a vss vss")
    planted.mos("M2", "pmos", middle, 11, 4, 0.5, f"b {'en' if unordered == 'an amplifier' else 'a'} vdd vdd")
    for number, (x, out, one, other) in enumerate([(first, "a", "in", second), (last, "out", "a", "b")]):
        planted.mos(f"MA{number}", "nmos", x, 0, 2, 0.5, f"{out} {one} n{number} vss")
        planted.mos(f"MB{number}", "nmos", x + 4, 0, 2, 0.5, f"n{number} {other} vss vss")
        planted.mos(f"MC{number}", "pmos", x, 11, 4, 0.5, f"{out} {one} vdd vdd")
        planted.mos(f"MD{number}", "pmos", x + 6, 11, 4, 0.5, f"{out} {other} vdd vdd")
    tracks = {"vss": -6.0, "vdd": 20.0, "in": 4.0, "a": 5.0, "b": 6.0, "en": 7.0, "out": 8.0, "n0": 3.5, "n1": 3.5}
    for net in planted.ends:
        planted.comb(net, tracks[net], width=1 if net[0] == "v" else WIRE, port=net not in {"a", "b", "n0", "n1"})
    review = planted.review()
    assert severities(review, "flow-order", "out of order") == expected
    assert any("feed back" in each.reason for each in review.unjudged) == bool(unordered)


@pytest.mark.parametrize(("inside", "expected"), [(0.9, set()), (1.1, {"should"})])
def test_a_port_inside_the_cell(inside, expected):
    planted = source(20)
    left = planted.cell.dbbox().left
    planted.ports.remove("out")
    planted.comb("out", 8, left=left + inside)
    planted.box("PR_bndry", left, -20, left + 40, 30)
    found = [each for each in planted.review().findings if "inside the cell" in each.why and "out" in each.nets]
    assert {each.severity for each in found} == expected


@pytest.mark.parametrize(("side", "expected"), [("left", set()), ("top", {"must"})])
def test_a_port_on_another_side_than_asked(side, expected):
    review = source(20).review(constraints={"port_sides": [{"port": "vss", "side": side}]})
    assert severities(review, "rails", "requested at the") == expected


def crowd(count=8, fingers=1):
    """Return transistors in a row; nothing else of the layout uses room."""
    planted = Planted()
    for number in range(count):
        planted.mos(f"M{number}", "nmos", 4 * fingers * number, 0, 2, 0.5, f"d{number} g{number} vss vss", fingers)
        planted.comb(f"d{number}", 5 + 0.6 * number)
        planted.comb(f"g{number}", -5 - 0.6 * number)
    planted.comb("vss", -12)
    return planted


@pytest.mark.parametrize(
    ("count", "fingers", "expected"), [(7, 1, set()), (8, 1, {"must"}), (3, 8, set()), (4, 8, {"must"})]
)
def test_room_is_judged_from_eight_devices_on(count, fingers, expected):
    """A device of several channels counts as two."""
    planted = crowd(count, fingers)
    planted.box("PR_bndry", -5, -15, 195, 35)
    assert severities(planted.review(), "room", "as long as") == expected


@both("room.few", "must")
def test_empty_room_beside_few_devices(figure, expected):
    """A field of 100 x 100 um around four transistors, covered but for a strip as high as the figure says."""
    planted = crowd(4)
    planted.box("Metal5", -5, -15, 95, 85 - 100 * figure)
    planted.box("PR_bndry", -5, -15, 95, 85)
    review = planted.review(limits={"room.gap": {"should": None}})
    assert severities(review, "room", "empty rectangle") == expected


@both("room.used", "must", "should")
def test_used_room(figure, expected):
    """A field of 300 x 100 um: transistors at its left, and a well at its right that takes the rest of the share."""
    planted = crowd()
    for x, y in ((-5, -15), (294.9, 84.9)):
        planted.box("Nwell", x, y, x + 0.1, y + 0.1)
    row = 8 * (0.5 + 2 * SIDE) * 3  # about the area of eight transistors
    planted.box("Nwell", 295 - (figure * 300 * 100 - row) / 100, -15, 295, 85)
    assert severities(planted.review(), "room", "of the core") == expected


@both("room.box", "should")
def test_room_for_wires(figure, expected):
    """A well of 1000 x 30 um takes nearly all of the core; a plate of metal makes the layout higher."""
    planted = crowd()
    planted.box("Nwell", 40, -15, 1040, 15)
    planted.box("Metal5", -3, -15, 1040, -15 + 30 / figure)
    assert severities(planted.review(), "room", "of the layout, wires") == expected


@both("room.row", "must", "should")
def test_a_row_that_is_not_folded(figure, expected):
    """The channels of a transistor are 43.4 um long in all."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 43.4 / figure, 0.5, "out in vss vss", 40)
    assert severities(wired(planted, out=20.0, **{"in": 19.0}).review(), "room", "fills a row") == expected


def test_a_short_row_is_no_finding():
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 1, 0.5, "out in vss vss", 31)
    assert severities(wired(planted, out=20.0, **{"in": 19.0}).review(), "room", "fills a row") == set()


def test_the_middle_rows_of_two_blocks_are_no_row():
    """M1 and M4, a load pair, lie in one line of 47 um; with the outputs above and below, in two blocks."""
    planted = Planted()
    for number in range(6):
        mirror, row = divmod(number, 3)
        drain = "d" if row == 1 else "o"
        x, nets = 30 * mirror + 1.1 * (row == 1), f"{drain}{mirror} d{mirror} vdd vdd"
        planted.mos(f"M{number}", "pmos", x, 6 * row, 1, 8, nets, 2)
    below = {"MA": "d0 inp t", "MB": "d1 inn t", "MT": "t b vss", "MC": "o0 o0 vss", "MD": "o1 o0 vss"}
    for number, (name, nets) in enumerate(below.items()):
        planted.mos(name, "nmos", 60 + 10 * number, 0, 2, 2, f"{nets} vss")
    for number, net in enumerate(sorted(planted.ends)):
        planted.comb(net, 24.0 + number, port=net not in {"d0", "d1", "t", "o0"})
    assert severities(planted.review(), "room", "a row of") == set()


def test_rows_that_one_channel_is_as_long_as_are_no_finding():
    """Two bars of 100 um side by side are 25 times as long as wide, and nothing of them can be folded."""
    planted = Planted()
    for name, x, nets in (("R1", 0, "a m"), ("R2", 3, "b m")):
        planted.bar(name, x, 0, 1, 100, nets)
    for net, track in (("a", -4.0), ("b", -5.0), ("m", 114.0)):
        planted.comb(net, track)
    assert severities(planted.review(), "room", "a row of") == set()


@both("room.channel", "should")
@pytest.mark.parametrize("long", [False, True])
def test_a_wide_channel(figure, expected, long):
    """A channel that is as long as 2 um has a gate of little resistance."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, figure, 2 if long else 0.5, "out in vss vss")
    found = severities(wired(planted, out=20.0, **{"in": 19.0}).review(), "room", "channels of")
    assert found == (set() if long else expected)


@both("room.ring", "should")
def test_a_place_inside_a_ring(figure, expected):
    """The inside of 20 x 20 um is filled from below, by diffusion, up to what the figure leaves."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, -40, 4, 1, "out in vss vss")
    for layer, more in (("COMP", 0.0), ("Pplus", 0.1)):
        planted.box(layer, 0 - more, 0 - more, 21 + more, 21 + more)
        planted.erase(layer, 0.5 + more, 0.5 + more, 20.5 - more, 20.5 - more)
    for layer in ("COMP", "Nplus"):
        planted.box(layer, 1, 0.8, 20, 20.5 - 20 * figure)
    assert severities(wired(planted, out=-30.0, **{"in": -31.0}, vss=-44.0).review(), "room", "of a ring") == expected


@both("room.empty", "must", "should")
def test_empty_room(figure, expected):
    """A field of 100 x 100 um, covered but for a strip that is as wide as it and as high as the figure says."""
    planted = crowd()
    bottom = 85 - 100 * figure
    planted.box("Metal5", -5, -15, 95, bottom - 0.5)
    planted.box("Metal5", -5, 84.5, 95, 85)
    planted.box("Metal5", -5, bottom - 1, 95, 84.5 - 100 * figure)
    review = planted.review(limits={"room.gap": {"should": None}})
    assert severities(review, "room", "empty rectangle") == expected


@both("room.gap", "should")
@pytest.mark.parametrize("wires", [0, 40])
def test_a_place_without_a_device(figure, expected, wires):
    """Wells fill 400 x 100 um but for a place 40 um wide and as high as the figure says, whatever crosses it."""
    planted = crowd()
    planted.box("Nwell", 40, -15, 395, 85)
    planted.box("Nwell", -5, 12, 41, 85)
    planted.erase("Nwell", 355, 10, 396, 10 + 1000 * figure)
    for number in range(wires):
        planted.box("Metal3", 345, 10 + 0.6 * number, 395, 10.28 + 0.6 * number)
    assert severities(planted.review(), "room", "without a device") == expected


@both("room.gaps", "should")
def test_several_places_without_a_device(figure, expected):
    """Wells fill 800 x 100 um but for four places 80 um wide at the top, each too small to be named alone."""
    planted = crowd()
    planted.box("Nwell", 40, -15, 795, 85)
    planted.box("Nwell", -5, 12, 41, 85)
    for left in (100, 280, 460, 640):
        planted.erase("Nwell", left, 85 - 250 * figure, left + 80, 86)
    review = planted.review(limits={"room.gap": {"should": 0.5}, "room.empty": {"should": None, "must": None}})
    assert severities(review, "room", "places without a device") == expected


@both("room.aspect", "must", "should")
def test_aspect(figure, expected):
    planted = crowd()
    planted.box("PR_bndry", -5, -15, -5 + 40 * figure, 25)
    assert severities(planted.review(), "room", "as long as") == expected


@pytest.mark.parametrize(("below", "expected"), [(20, {"must"}), (60, set())])
def test_a_boundary_far_from_all_that_is_drawn_is_no_outline(below, expected):
    """The transistors lie in the middle of a boundary that is made for more of them, or at its lower side."""
    planted = crowd()
    planted.box("PR_bndry", -5, -15 - below, 35, 100)
    assert severities(planted.review(), "room", "as long as") == expected


@pytest.mark.parametrize(("gate", "high", "expected"), [("b", 9, {"must"}), ("a0", 9, set()), ("a0", 11, {"must"})])
def test_the_height_of_logic_is_that_of_its_library(gate, high, expected):
    """Four inverters in a row; the gate of one transistor is on another input than that of its complement."""
    planted = Planted()
    for number in range(4):
        nets = f"y{number} a{number}"
        planted.mos(f"MN{number}", "nmos", 8 * number, 0, 1, 0.5, f"{nets} vss vss")
        pull = nets if number else f"y0 {gate}"
        planted.mos(f"MP{number}", "pmos", 8 * number, 3, 1, 0.5, f"{pull} vdd vdd")
    for number, net in enumerate(planted.ends):
        planted.comb(net, {"vss": -0.7, "vdd": 7.0}.get(net, 0.1 + 0.6 * number))
    box = planted.cell.dbbox()
    planted.box("PR_bndry", box.left, box.bottom, box.left + 3.3 * high, box.bottom + high)
    assert severities(planted.review(), "room", "as long as") == expected


@both("room.asked", "must", "should")
@pytest.mark.parametrize("asked", [{"aspect": 4.0}, {"width": 160.0}, {"height": 41.0, "width": 160.0}])
def test_an_outline_that_was_asked_for(figure, expected, asked):
    """Four times as long as wide is no finding where that was asked for; a tenth more than asked is severe."""
    planted = crowd()
    planted.box("PR_bndry", -5, -15, -5 + 40 * 4 * figure, 25)
    review = planted.review(constraints={"outline": [asked]})
    assert severities(review, "room", "was requested") == expected
    assert severities(review, "room", "as long as") == set()


def test_the_largest_empty_rectangle_is_found():
    boxes = [kdb.Box(0, 0, 1000, 300), kdb.Box(0, 300, 200, 1000), kdb.Box(600, 800, 1000, 1000)]
    found = largest_empty(kdb.Box(0, 0, 1000, 1000), kdb.Region(boxes))
    assert abs(found.area() - 800 * 500) < 0.05 * 800 * 500  # to a strip of 1/128


@pytest.mark.parametrize("seed", range(4))
def test_no_rectangle_of_empty_squares_is_larger_than_the_one_that_is_found(seed):
    chance, side = random.Random(seed), 8
    taken = {(x, y) for x in range(side) for y in range(side) if chance.random() < 0.05 + 0.1 * seed}
    spans = [(one, other) for one in range(side) for other in range(one + 1, side + 1)]
    free = [(a, b) for a in spans for b in spans if not any((x, y) in taken for x in range(*a) for y in range(*b))]
    most = max(100 * (a[1] - a[0]) * (b[1] - b[0]) for a, b in free)
    drawn = kdb.Region([kdb.Box(10 * x, 10 * y, 10 * x + 10, 10 * y + 10) for x, y in taken])
    found = largest_empty(kdb.Box(0, 0, 10 * side, 10 * side), drawn, steps=side)
    assert found.area() == most
    assert (drawn & kdb.Region(found)).is_empty()


def fed_by(ohm, millivolts):
    """Return what is said of the way to a source of so many ohm, on which its current loses so much.

    Vias and columns, which a short wire has as well, count with the length of the wire.
    """
    words, tiny = "ohm of wires lie between the port of vss", {"wire-length.feed": {"should": 1e-9}}
    (short,) = (each for each in source(10).review(limits=tiny).findings if words in each.why)
    length = 10 + (ohm - short.measured) * WIRE / METAL3.sheet_ohm
    review = source(length).review(constraints=stated("M1", 1e-3 * millivolts / ohm))
    return severities(review, "wire-length", words)


@both("wire-length.feed", "must", "should")
def test_a_supply_through_a_long_wire(figure, expected):
    assert fed_by(figure, 1.1 * limit("wire-length.lost", "must")) == expected


@pytest.mark.parametrize(("load", "expected"), [("nmos", {"must"}), ("pmos", {"should"})])
def test_a_long_supply_wire_to_logic_is_no_must(load, expected):
    """The gate of M1 drives a second transistor, of its type or of the other one, and both are two inverters then."""
    planted = source(500)
    planted.mos("M2", load, 8, 0, 4, 1, f"out in {'vss vss' if load == 'nmos' else 'vdd vdd'}")
    tracks = {"out": 8.0, "in": 6.5, "vss" if load == "nmos" else "vdd": -3.0 if load == "nmos" else -6.0}
    for net, track in tracks.items():
        planted.ends[net] = [end for end in planted.ends[net] if end[0] > 7]
        planted.comb(net, track, left=0, port=net == "vdd")
    loads = [{"device": name, "current": 2e-5} for name in ("M1", "M2")]
    review = planted.review(constraints={"device_currents": loads})
    assert severities(review, "wire-length", "ohm of wires lie between") == expected


@both("wire-length.lost", "must")
def test_a_long_supply_wire_on_which_little_is_lost_is_no_must(figure, expected):
    assert fed_by(1.1 * limit("wire-length.feed", "must"), figure) == (expected or {"should"})


@pytest.mark.parametrize(("size_um", "expected"), [(0.22, set()), (0.24, {"must"}), (0.2, {"must"})])
def test_contacts_of_another_size(size_um, expected):
    """CO.1: a contact is a square of 0.22 um, no more and no less."""
    planted = source(10)
    x, y = planted.ends["vss"][-1]
    planted.box("Contact", x + 2, y, x + 2 + size_um, y + size_um)
    assert severities(planted.review(), "single-cut", "cannot be made") == expected


@pytest.mark.parametrize(("apart", "expected"), [(18, set()), (22, {"must"})])
def test_distance_to_a_tap(apart, expected):
    """DF.14: n+ COMP to the nearest substrate tap at most 20 um."""
    planted = source(20)
    planted.mos("M2", "nmos", -1.75 + apart - 1.4 + 0.0, 4.5, 1, 0.2, "q r vss vss")
    planted.comb("q", 9.5)
    planted.comb("r", 10.5)
    x, y = planted.ends["vss"][-1]
    planted.column("vss", x, y, -3)
    planted.box("Metal3", -2, -3 - WIRE / 2, x + 0.2, -3 + WIRE / 2, "vss")
    assert severities(planted.review(), "well-tap") == expected


@pytest.mark.parametrize(
    ("gap", "between", "expected"), [(1.8, False, set()), (2.2, False, {"should"}), (8, True, {"should"})]
)
def test_a_mirror_behind_a_switch(gap, between, expected):
    """The gates of the diode and of its output are one net when the transmission gate between them is closed."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 2, 1, "ref ref vss vss")
    planted.mos("M2", "nmos", 1 + 2 * SIDE + gap, 0, 2, 1, "out held vss vss")
    planted.mos("M3", "nmos", 20, 0, 2, 0.3, "ref en held vss")
    planted.mos("M4", "pmos", 26, 0, 2, 0.3, "ref enb held vdd")
    if between:
        planted.mos("M5", "nmos", 1 + 2 * SIDE + 3, 0, 2, 0.3, "x y vss vss")
    tracks = {
        "ref": 6.0,
        "held": 7.0,
        "en": 8.0,
        "enb": 9.0,
        "vdd": 10.0,
        "out": -3.0,
        "vss": -5.0,
        "x": 11.0,
        "y": 12.0,
    }
    for net in planted.ends:
        planted.comb(net, tracks[net], port=net != "held")
    found = severities(planted.review(), "group-apart", "mirror behind switches")
    assert found == expected


PAIR_RING, TAIL_RING = (-1, 9, 11.4, 15.5), (3, -1, 7.4, 5.2)


@pytest.mark.parametrize(
    ("places", "alone"),
    [
        ([PAIR_RING], set()),
        ([(-1, 9, 3.2, 15.5), (7.2, 9, 11.4, 15.5)], {"M1", "M2"}),
        ([PAIR_RING, TAIL_RING], {"M3"}),
        ([PAIR_RING, (-9, -9.9, 40, 5.2)], set()),  # a large device keeps its ring
    ],
)
def test_rings_of_their_own(places, alone):
    """A transistor alone in a ring beside another one's, or beside a larger ring that it would fit in."""
    found = [each for each in ringed(places).review().findings if each.id == "rings"]
    assert {name for each in found for name in each.devices} == alone
    assert {each.severity for each in found} <= {"should"}


def ringed(places):
    planted = wired(pair(gap=6), bias=7.6)
    for left, low, right, high in places:
        for box in (
            (left, low, right, low + 0.3),
            (left, high - 0.3, right, high),
            (left, low, left + 0.3, high),
            (right - 0.3, low, right, high),
        ):
            planted.box("COMP", *box)
            planted.box("Pplus", *box)
    return planted


@pytest.mark.parametrize(
    ("places", "outside"), [([PAIR_RING], set()), ([(-1, 9, 3.2, 15.5)], {"M2"}), ([TAIL_RING], {"M1", "M2"})]
)
def test_a_pair_in_no_ring_of_taps(places, outside):
    found = [each for each in ringed(places).review().findings if "in no ring of taps" in each.why]
    assert {name for each in found for name in each.devices} == outside
    assert {each.severity for each in found} <= {"should"}


# ---- wires


@both("wire-length", "must", "should")
def test_length_of_a_wire(figure, expected):
    """Two gates 30 um apart; the track that joins them lies so far above them that the wire is as long as told."""
    planted, apart = Planted(), 30.0
    planted.mos("M1", "nmos", 0, 0, 2, 0.5, "a g vss vss")
    planted.mos("M2", "nmos", apart, 0, 2, 0.5, "b g vss vss")
    track = planted.ends["g"][0][1] + (figure - 1) * apart / 2
    planted.comb("g", track, port=False)
    for net, y in (("a", -3.0), ("b", -4.0), ("vss", -6.0)):
        planted.comb(net, y)
    planted.label("g", "Metal2", *planted.ends["g"][0])
    found = planted.review()
    assert severities(found, "wire-length", "g has") == expected


@both("wire-length.round", "should")
def test_a_wire_that_runs_round_in_a_layout(figure, expected):
    """As above in a layout of 220 um: up to the track and down again, within what the length of the tree allows."""
    planted, apart = Planted(), 200.0
    planted.mos("M1", "nmos", 0, 0, 2, 0.5, "a g vss vss")
    planted.mos("M2", "nmos", apart, 0, 2, 0.5, "b g vss vss")
    planted.comb("g", planted.ends["g"][0][1] + 220 * figure / 2, port=False)
    for net, y in (("a", -3.0), ("b", -4.0), ("vss", -6.0)):
        planted.comb(net, y)
    planted.label("g", "Metal2", *planted.ends["g"][0])
    planted.box("PR_bndry", -10, -8, 210, 100)
    assert severities(planted.review(), "wire-length", "g has") == expected


@pytest.mark.parametrize(("away", "expected"), [(4.5, set()), (5.5, {"should"})])
def test_the_strap_at_the_heads_of_a_bank_is_no_detour(away, expected):
    """Six bars in parallel are one resistor; the strap that joins them is as far from their bodies as told."""
    planted = Planted()
    for number in range(6):
        planted.bar(f"R{number}", 5 * number, 0, 1, 10, "a b")
    planted.mos("M1", "nmos", 28.5, -4, 2, 0.5, "a g vss vss")
    for net, track in (("a", -away), ("b", 14.0), ("g", 16.0), ("vss", -8.0)):
        planted.comb(net, track)
    review = planted.review(limits={"wire-length": {"should": 1.0}})
    assert severities(review, "wire-length", "a has") == expected


@both("wire-length.port", "should")
def test_a_port_far_from_what_it_leads_to(figure, expected):
    """The lower edge is near the first gate, but its port lies far to the right; a requested side is never reported."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 2, 0.5, "a g vss vss")
    planted.mos("M2", "nmos", 60, 0, 2, 0.5, "b h vss vss")
    (x, y), track = planted.ends["g"][0], 5.0
    for net, place in (("a", -3.0), ("b", -4.0), ("h", 4.0), ("vss", -6.0)):
        planted.comb(net, place)
    planted.comb("g", track, port=False)
    box = planted.cell.bbox().to_dtype(0.001)
    edge = min(x - box.left, y - box.bottom, box.top - y)
    right = x + figure * box.width() + edge - (track - y)
    planted.box("Metal3", x, track - WIRE / 2, right + 0.1, track + WIRE / 2, "g")
    planted.label("g", "Metal3", right, track)
    assert severities(planted.review(), "wire-length", "port g lies") == expected
    asked = planted.review(constraints={"port_sides": [{"port": "g", "side": "top"}]})
    assert severities(asked, "wire-length", "port g lies") == set()


@pytest.mark.parametrize(("apart", "expected"), [(7.5, {"should"}), (9.2, {"must"})])
def test_a_way_between_near_terminals(apart, expected):
    """Four times the length is severe from 25 um more on; these are 22.5 and 27.6 um."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 2, 0.5, "a g vss vss")
    planted.mos("M2", "nmos", apart, 0, 2, 0.5, "b g vss vss")
    planted.comb("g", planted.ends["g"][0][1] + 3 * apart / 2, port=False)
    for net, y in (("a", -3.0), ("b", -4.0), ("vss", -6.0)):
        planted.comb(net, y)
    planted.label("g", "Metal2", *planted.ends["g"][0])
    assert severities(planted.review(), "wire-length", "g has") == expected


@pytest.mark.parametrize(("length", "expected"), [(9.0, set()), (7.0, {"should"})])
def test_tracks_that_cross_a_matched_group_alike(length, expected):
    """The track of one drain goes on as far as that of the other one is long, or ends elsewhere."""
    planted = pair()
    for net, track in {"inp": 18.0, "inn": 19.0, "tail": 7.0, "bias": -3.0, "vss": -5.0}.items():
        planted.comb(net, track, port=net != "tail")
    for net, track, right in (("outp", 24.0, length), ("outn", 25.0, 9.0)):
        planted.comb(net, track, left=0.0, right=right)
    named = [each for each in planted.review().findings if each.id == "dead-metal" and "outp" in each.nets]
    assert {each.severity for each in named} == expected


@both("dead-metal.piece", "should")
def test_a_stub(figure, expected):
    """The track goes on beyond the edge of its last via."""
    planted = source(20)
    planted.ports.remove("out")
    (x, _), *_ = planted.ends["out"]
    planted.box("Metal3", x, 8 - WIRE / 2, x + 0.13 + figure, 8 + WIRE / 2, "out")
    planted.label("out", "Metal3", x - 0.1, 8)
    assert severities(planted.review(), "dead-metal", "lead nowhere") == expected


@pytest.mark.parametrize(("label", "expected"), [(3.0, set()), (-0.1, {"should"})])
def test_a_port_may_stand_anywhere_on_the_end_of_its_wire(label, expected):
    """The track of the drain leads 5 um beyond its via, and the port is on that end or on the other side of the via."""
    planted = source(20)
    planted.ports.remove("out")
    (x, _), *_ = planted.ends["out"]
    planted.box("Metal3", x, 8 - WIRE / 2, x + 5, 8 + WIRE / 2, "out")
    planted.label("out", "Metal3", x + label, 8)
    found = planted.review()
    assert severities(found, "dead-metal", "lead nowhere") == expected


@pytest.mark.parametrize(("short", "expected"), [(0.9, set()), (1.1, {"should"})])
def test_the_wire_of_a_port_may_lead_on_to_the_edge(short, expected):
    """The label is inside; the wire leads on with a jog and ends within a micrometre of the edge, or not."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "out in vss vss")
    planted.comb("vss", -30, left=-20, right=20, width=1)
    planted.comb("out", 6.5, port=False)
    (x, _), *_ = planted.ends["out"]
    planted.box("Metal3", x, 6.5 - WIRE / 2, 16, 6.5 + WIRE / 2, "out")
    planted.box("Metal3", 15.5, 6.6 - WIRE / 2, 20 - short, 6.6 + WIRE / 2, "out")
    planted.label("out", "Metal3", 15, 6.5)
    planted.comb("in", 30)
    assert severities(planted.review(), "dead-metal", "of out lead nowhere") == expected


@pytest.mark.parametrize(("short", "expected"), [(0.0, set()), (2.0, {"should"})])
def test_a_wire_across_the_whole_layout_is_joined_by_its_neighbours(short, expected):
    """The gate's wire leads from edge to edge of the metal, or ends before the right one."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "out in vss vss")
    planted.comb("vss", -3, left=-20, right=20, width=1)
    planted.comb("out", 8)
    planted.comb("in", 6.5, left=-20, right=20 - short)
    found = planted.review()
    assert severities(found, "dead-metal", "of in lead nowhere") == expected
    assert not severities(found, "wire-length", "in has")


@pytest.mark.parametrize(("away", "expected"), [(4.0, set()), (6.0, {"should"})])
def test_a_wire_across_the_whole_layout_whose_port_is_elsewhere(away, expected):
    """The port is at the end of a leg of Metal2 so far from the wire; the neighbours join the leg, not the wire."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "out in vss vss")
    planted.comb("vss", -3, left=-20, right=20, width=1)
    planted.comb("out", 6)
    planted.comb("in", 8, left=-20, right=20, port=False)
    planted.square("Via2", 10, 8, 0.26)
    planted.box("Metal2", 10 - WIRE / 2, 7.8, 10 + WIRE / 2, 8 + away + 0.3, "in")
    planted.label("in", "Metal2", 10, 8.14 + away)
    assert severities(planted.review(), "dead-metal", "of in lead nowhere") == expected


@pytest.mark.parametrize(("long", "expected"), [(9.0, set()), (11.0, {"should"})])
def test_ends_of_both_nets_of_a_pair(long, expected):
    """Both drains have a dead end of one length; short ones may balance each other, long ones are cut off both."""
    planted = pair()
    for net, track in {"inp": 18.0, "inn": 19.0, "tail": 7.0, "bias": -3.0, "vss": -5.0}.items():
        planted.comb(net, track, port=net != "tail")
    for net in ("outp", "outn"):
        (x, _), *_ = planted.ends[net]
        side, around = (-1, 0.2) if net == "outp" else (1, 0.5)
        planted.comb(net, 26.0, left=x - around, right=x + around, port=False)
        planted.label(net, "Metal2", x, 26.0)
        ends = sorted((x, x + side * long))
        planted.box("Metal3", ends[0], 26 - WIRE / 2, ends[1], 26 + WIRE / 2, net)
    named = [each for each in planted.review().findings if each.id == "dead-metal" and "outp" in each.nets]
    assert {each.severity for each in named} == expected


@pytest.mark.parametrize(("figure", "expected"), [(0.9, set()), (1.1, {"should"})])
def test_a_loop_through_pads_that_are_wider_than_the_wire(figure, expected):
    """Up by one cut, along on Metal4, down by another; the pads of both have edges beside the wire on every level."""
    planted = source(20)
    planted.ports.remove("out")
    (x, _), *_ = planted.ends["out"]
    planted.box("Metal3", x - 0.14, 8 - WIRE / 2, x + 40, 8 + WIRE / 2, "out")
    planted.label("out", "Metal3", x + 39.9, 8)
    wide = 5 * figure - 0.44 - 4
    for at in (x + 10, x + 10 + wide):
        planted.box("Metal3", at - WIRE / 2, 8, at + WIRE / 2, 10, "out")
        planted.via3("out", at, 10)
        planted.square("Metal3", at, 10, 0.44, "out")
        planted.square("Metal4", at, 10, 0.44, "out")
    planted.box("Metal4", x + 10, 10 - WIRE / 2, x + 10 + wide, 10 + WIRE / 2, "out")
    assert severities(planted.review(), "dead-metal", "loop") == expected


@both("dead-metal.piece", "should")
@pytest.mark.parametrize("shape", ["comb", "loop", "meander"])
def test_metal_that_carries_nothing(figure, expected, shape):
    """Teeth of a comb as long as told; a loop five times as long, since shorter ones join straps; legs half as long."""
    planted = source(20)
    planted.ports.remove("out")
    (x, _), *_ = planted.ends["out"]
    planted.box("Metal3", x - 0.14, 8 - WIRE / 2, x + 40, 8 + WIRE / 2, "out")
    planted.label("out", "Metal3", x + 39.9, 8)
    if shape == "comb":
        for tooth in range(3):
            left = x + 10 + tooth
            planted.box("Metal3", left, 8, left + WIRE, 8 + WIRE / 2 + figure, "out")
    elif shape == "loop":
        wide, high = 5 * figure / 3, 5 * figure / 3 + WIRE
        for box in (
            (10, 8, 10 + WIRE, 8 + WIRE / 2 + high),
            (10, 8 + WIRE / 2 + high - WIRE, 10 + wide, 8 + WIRE / 2 + high),
            (10 + wide - WIRE, 8, 10 + wide, 8 + WIRE / 2 + high),
        ):
            planted.box("Metal3", x + box[0], box[1], x + box[2], box[3], "out")
    else:
        gap = (x + 10 + WIRE, 8 - WIRE / 2, x + 10 + 2 * WIRE, 8 + WIRE / 2)
        planted.erase("Metal3", *gap)
        for left in (x + 10, x + 10 + 2 * WIRE):
            planted.box("Metal3", left, 8 - WIRE / 2, left + WIRE, 8 + WIRE * 1.5 + figure / 2, "out")
        top = 8 + WIRE / 2 + figure / 2
        planted.box("Metal3", x + 10, top, x + 10 + 3 * WIRE, top + WIRE, "out")
    words = {"comb": "lead nowhere", "loop": "loop", "meander": "meander"}
    assert severities(planted.review(), "dead-metal", words[shape]) == expected


@pytest.mark.parametrize(
    ("low", "top", "expected"), [(13.6, 10, set()), (14.6, 10, {"should"}), (8, 14, {"should"}), (8, 12, set())]
)
def test_straps_at_the_head_of_a_plate_are_no_meander(low, top, expected):
    """A loop of wire up to y = 10 um belongs to the plate if more than half of it lies within 5 um of the plate.

    Beside the plate, legs side by side that are longer than that do not.
    """
    planted = source(20)
    planted.ports.remove("out")
    (x, _), *_ = planted.ends["out"]
    planted.box("Metal3", x - 0.14, 8 - WIRE / 2, x + 40, 8 + WIRE / 2, "out")
    planted.label("out", "Metal3", x + 39.9, 8)
    planted.erase("Metal3", x + 10 + WIRE, 8 - WIRE / 2, x + 10 + 2 * WIRE, 8 + WIRE / 2)
    for left in (x + 10, x + 10 + 2 * WIRE):
        planted.box("Metal3", left, 8 - WIRE / 2, left + WIRE, top, "out")
    planted.box("Metal3", x + 10, top - WIRE, x + 10 + 3 * WIRE, top, "out")
    left = x + 8 if low > top else x + 12.5
    planted.plate("C1", left, low, 5, "out b")
    planted.label("b", "Metal4", left - 0.5, low)
    planted.via3("out", x + 30, 8)
    planted.square("Via4", x + 30, 8, 0.26)
    planted.box("Metal5", x + 29.8, 7.8, x + 30.2, low + 3, "out")
    planted.box("Metal5", left + 2, low + 2, x + 30.2, low + 3, "out")
    assert severities(planted.review(), "dead-metal", "meander") == expected


@pytest.mark.parametrize(("wide", "expected"), [(0.1, set()), (WIRE, {"should"})])
def test_edges_thinner_than_a_wire_are_no_meander(wide, expected):
    planted = source(20)
    planted.ports.remove("out")
    (x, _), *_ = planted.ends["out"]
    planted.box("Metal3", x - 0.14, 8 - WIRE / 2, x + 40, 8 + WIRE / 2, "out")
    planted.label("out", "Metal3", x + 39.9, 8)
    planted.erase("Metal3", x + 10 + wide, 8 - WIRE / 2, x + 10 + WIRE + wide, 8 + WIRE / 2)
    for left in (x + 10, x + 10 + WIRE + wide):
        planted.box("Metal3", left, 8 - WIRE / 2, left + wide, 10, "out")
    planted.box("Metal3", x + 10, 10, x + 10 + WIRE + 2 * wide, 10 + wide, "out")
    assert severities(planted.review(), "dead-metal", "meander") == expected


@both("dead-metal", "must")
def test_much_dead_metal(figure, expected):
    planted = source(20)
    planted.box("Metal3", -20, 6.5 - WIRE / 2, 1.0, 6.5 + WIRE / 2, "in")
    planted.label("in", "Metal3", -19.9, 6.5)
    area = planted.area_of_signals()
    (x, _), *_ = planted.ends["out"]
    dead = figure * area / (1 - figure)
    planted.box("Metal3", x, 8 - WIRE / 2, x + 0.13 + dead / WIRE, 8 + WIRE / 2, "out")
    assert severities(planted.review(), "dead-metal", "of the area") == expected - {"should"}


@pytest.mark.parametrize(
    ("figure", "source", "expected"),
    [(4.5, "vss", set()), (5.5, "vss", {"should"}), (22.0, "vss", {"must"}), (22.0, "inp", {"should"})],
)
def test_an_input_beside_an_output(figure, source, expected):
    """The current of M5 may flow from the output to the input: it drives both."""
    planted = pair()
    planted.mos("M5", "nmos", 20, 0, 2, 0.5, f"z outp {source} vss")
    planted.mos("M6", "pmos", 25, 11, 4, 0.5, "z outp vdd vdd")
    wired(planted, z=32.0, vdd=34.0, outp=24.0)
    x = 40.0
    planted.box("Metal3", planted.ends["inp"][0][0], 18 - WIRE / 2, x + 30, 18 + WIRE / 2, "inp")
    space = 1.5 * GF.conductor("Metal3").space * 1e-3
    zx = planted.ends["z"][0][0]
    planted.box("Metal3", zx, 32 - WIRE / 2, x, 32 + WIRE / 2, "z")
    planted.square("Via2", x - 0.2, 32, 0.26)
    planted.box("Metal2", x - 0.34, 18 + space, x - 0.06, 32.2, "z")
    planted.square("Via2", x - 0.2, 18 + space + WIRE, 0.26)
    planted.box("Metal3", x - 0.4, 18 + WIRE / 2 + space, x - 0.4 + figure, 18 + 1.5 * WIRE + space, "z")
    assert severities(planted.review(), "coupling", "inp runs") == expected


@pytest.mark.parametrize(("track", "expected"), [(16.0, set()), (30.0, {"must"})])
def test_the_gates_of_one_pair_run_side_by_side(track, expected):
    """Two pairs compare a reference with an output each: over the channels the tracks of both gates belong together."""
    planted = Planted()
    for number, (x, out) in enumerate(((0, "z"), (60, "w"))):
        planted.mos(f"M1{number}", "nmos", x, 10, 4, 1, f"p ref t{number} vss")
        planted.mos(f"M2{number}", "nmos", x + 25, 10, 4, 1, f"q {out} t{number} vss")
        planted.mos(f"M3{number}", "nmos", x + 12, 0, 4, 1, f"t{number} bias vss vss")
        planted.mos(f"M4{number}", "nmos", x + 30, 0, 2, 0.5, f"{out} in{number} vss vss")
        planted.mos(f"M5{number}", "pmos", x + 30, 50, 4, 0.5, f"{out} in{number} vdd vdd")
    near = track + WIRE + 1.5 * GF.conductor("Metal3").space * 1e-3
    tracks = {"p": 24, "q": 25, "t0": 7, "t1": 7, "bias": -3, "vss": -5, "vdd": 60, "in0": 62, "in1": 63, "w": 40}
    for net, place in tracks.items():
        planted.comb(net, place, port=net not in {"t0", "t1"})
    planted.comb("ref", track)
    planted.comb("z", near, left=1)
    found = [each for each in planted.review().findings if each.id == "coupling" and each.nets == ("ref", "z")]
    assert {each.severity for each in found} == expected


@pytest.mark.parametrize(("second", "expected"), [(14.0, set()), (13.0, {"should"})])
def test_what_is_mirrored_between_a_crossed_pair(second, expected):
    """Two other transistors between those of a latch have its axis or not."""
    planted = Planted()
    for name, x, nets in (("M1", 0, "a b"), ("M2", 20, "b a"), ("M3", 6, "y p"), ("M4", second, "z q")):
        planted.mos(name, "nmos", x, 10, 4, 1, f"{nets} vss vss")
    for net, track in {"a": 24, "b": 25, "y": 18, "z": 19, "p": 20, "q": 21, "vss": -5}.items():
        planted.comb(net, track)
    assert severities(planted.review(), "group-apart", "lie among") == expected


@pytest.mark.parametrize("dy", [0.9, 1.1])
def test_halves_of_logic_that_miss_their_axis_are_not_severe(dy):
    """Two inverters and what they switch, one path higher than the other; recognition asks no axis of them."""
    planted = Planted()
    for part, (x, out, gate) in enumerate(((0, "x", "a"), (20, "z", "b"))):
        y = dy * part
        planted.mos(f"M1{part}", "nmos", x, y, 2, 1, f"{out} {gate} vss vss")
        planted.mos(f"M2{part}", "pmos", x, 15 + y, 2, 1, f"{out} {gate} vdd vdd")
        planted.mos(f"M3{part}", "pmos", x + 8, 15 + y, 2, 1, f"y {out} vdd vdd")
    for net, track in {"a": 8, "b": 9, "x": 10, "z": 11, "y": 24, "vdd": 26, "vss": -5}.items():
        planted.comb(net, track, port=net not in {"x", "z"})
    assert "must" not in severities(planted.review(), "axis")


@pytest.mark.parametrize(("beside", "expected"), [(30.0, set()), (0.0, {"must"})])
def test_a_second_stage_beside_the_first_one_has_an_axis_of_its_own(beside, expected):
    """A pair with resistors drives a second one, on its right or 3.55 um off the axis above it."""
    planted = Planted()
    for number, (y, nets) in enumerate(((10, "p q inp inn t0"), (50, "r s p q t1"))):
        one, other, first, second, tail = nets.split()
        x = number * (beside or 3.55)
        planted.mos(f"M1{number}", "nmos", x, y, 4, 1, f"{one} {first} {tail} vss")
        planted.mos(f"M2{number}", "nmos", x + 8, y, 4, 1, f"{other} {second} {tail} vss")
        planted.mos(f"M3{number}", "nmos", x + 4, y - 10, 4, 1, f"{tail} bias vss vss")
        for part, net in enumerate((one, other)):
            planted.bar(f"R{part}{number}", x + 2.6 + 4 * part, y + 15, 1, 10, f"{net} vdd")
    tracks = {"p": 18, "q": 19, "inp": 16, "inn": 17, "t0": 7, "r": 58, "s": 59, "t1": 47, "bias": -3, "vss": -5}
    for net, track in {**tracks, "vdd": 80}.items():
        planted.comb(net, track, port=net not in {"p", "q", "t0", "t1"})
    assert severities(planted.review(), "axis") == expected


# ---- what repeats


@pytest.mark.parametrize(
    ("figure", "count", "expected"),
    [(0.004, 3, set()), (0.006, 3, {"should"}), (0.45, 3, {"should"}), (0.55, 3, {"must"})],
)
def test_a_repeated_cell(figure, count, expected):
    """One of two devices is moved: the best match of both misses each by half of that."""
    planted = Planted()
    cards = []
    for number in range(count):
        x, off = 12.0 * number, figure * 2 if number == 2 else 0.0
        planted.mos(f"A{number}", "nmos", x, 0, 2, 0.5, f"m{number} i{number} vss vss")
        planted.mos(f"B{number}", "nmos", x + 5 + off, 0, 2, 0.5, f"o{number} m{number} vss vss")
        for net, track in ((f"i{number}", 5.0), (f"m{number}", 6.0), (f"o{number}", -3.0)):
            planted.comb(net, track + number, port=net[0] != "m")
        cards.append(f"X{number} i{number} o{number} vss cell")
    planted.comb("vss", -8)
    text = f".subckt TOP {' '.join(planted.ports)}\n" + "\n".join(cards) + "\n.ends\n"
    text += ".subckt cell i o vss\nMA m i vss vss nfet_03v3 W=2u L=0.5u\nMB o m vss vss nfet_03v3 W=2u L=0.5u\n.ends\n"
    assert severities(planted.review(text), "repeated") == expected


@pytest.mark.parametrize(("times", "expected"), [(0.9, {"should"}), (1.1, set())])
def test_the_wires_of_a_ring(times, expected):
    """The wire of one stage is longer; so is the difference to the other stages."""

    def review(longer, limits=None):
        planted = starved(("ref",) * 3)
        x, y = planted.ends["n2"][0][0], 8.0 + list(planted.ends).index("n2")
        planted.box("Metal3", x, y - WIRE / 2, x + 40 + longer, y + WIRE / 2, "n2")
        return planted.review(limits=limits)

    every = (review(longer, {"repeated.load": {"should": 0}}).findings for longer in (0, 50))
    short, long = (next(each.measured for each in found if "stages of a ring" in each.why) for found in every)
    assert short < long
    found = review(50, {"repeated.load": {"should": long * times}})
    assert severities(found, "repeated", "stages of a ring") == expected


@pytest.mark.parametrize(("off", "expected"), [(0.004, set()), (0.006, {"should"})])
def test_the_pitch_of_repeated_cells(off, expected):
    planted = Planted()
    cards = []
    for number in range(3):
        x = 12.0 * number + (off if number == 2 else 0.0)
        planted.mos(f"A{number}", "nmos", x, 0, 2, 0.5, f"m{number} i{number} vss vss")
        planted.mos(f"B{number}", "nmos", x + 5, 0, 2, 0.5, f"o{number} m{number} vss vss")
        for net, track in ((f"i{number}", 5.0), (f"m{number}", 6.0), (f"o{number}", -3.0)):
            planted.comb(net, track + number, port=net[0] != "m")
        cards.append(f"X{number} i{number} o{number} vss cell")
    planted.comb("vss", -8)
    text = f".subckt TOP {' '.join(planted.ports)}\n" + "\n".join(cards) + "\n.ends\n"
    text += ".subckt cell i o vss\nMA m i vss vss nfet_03v3 W=2u L=0.5u\nMB o m vss vss nfet_03v3 W=2u L=0.5u\n.ends\n"
    assert severities(planted.review(text), "repeated", "pitch") == expected


@pytest.mark.parametrize(("away", "expected"), [(1.8, set()), (6.0, {"should"})])
def test_a_dummy_that_guards_nothing(away, expected):
    planted = source(20)
    x = SIDE + 1 + away - SIDE  # its channel is so far from that of M1
    planted.mos("MD", "nmos", x, 0, 4, 1, "vss vss vss vss")
    for end in planted.ends["vss"][-3:]:
        planted.column("vss", *end, -3)
    planted.box("Metal3", -2, -3 - WIRE / 2, x + 4, -3 + WIRE / 2, "vss")
    assert severities(planted.review(), "rings", "guard") == expected


@pytest.mark.parametrize(("count", "expected"), [(3, set()), (4, {"should"})])
def test_dummies_beyond_the_third_of_a_row_guard_nothing(count, expected):
    planted = source(20)
    for number in range(count):
        planted.mos(f"MD{number}", "nmos", 2.8 + 2.4 * number, 0, 4, 1, "vss vss vss vss")
    for end in planted.ends["vss"][-3 * count :]:
        planted.column("vss", *end, -3)
    planted.box("Metal3", -2, -3 - WIRE / 2, 20, -3 + WIRE / 2, "vss")
    assert severities(planted.review(), "rings", "guard") == expected


@pytest.mark.parametrize(("outside", "expected"), [(True, set()), (False, {"should"})])
def test_a_clamp_is_no_dummy_that_guards_nothing(outside, expected):
    """A transistor that is off between a port and a rail protects the port; on an inner net it is a dummy."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "x in vss vss")
    planted.mos("M2", "nmos", 10, 0, 4, 1, "d in vss vss")
    planted.mos("MD", "nmos", 30, 0, 4, 1, "d vss vss vss")
    for net, track in {"x": 9.0, "d": 8.0, "in": 6.5, "vss": -3.0}.items():
        planted.comb(net, track, port=net != "d" or outside)
    assert severities(planted.review(), "rings", "guard") == expected


# ---- verdict


def test_what_has_one_cause_is_one_finding_with_all_names_unless_it_must_change():
    """Three long wires of an otherwise empty layout, one of them three times as long as it has to be."""
    planted = Planted()
    for number, detour in enumerate((2.2, 2.4, 4.0)):
        y = 30.0 * number
        for part in (0, 1):
            nets = f"d{number}{part} n{number} vss vss"
            planted.mos(f"M{number}{part}", "nmos", 20 * part, y, 2, 0.5, nets)
            planted.comb(f"d{number}{part}", y - 2 - part)
        planted.comb(f"n{number}", y + 2.6 + 20 * (detour - 1) / 2, port=False)
    planted.comb("vss", -8)
    review = planted.review(limits={"wire-length.feed": {"must": None, "should": None}})
    found = {each.severity: each for each in review.findings if each.id == "wire-length"}
    assert [each.id for each in review.findings].count("wire-length") == len(found) == 2
    assert (found["must"].nets, {*found["should"].nets}) == (("n2",), {"n0", "n1"})
    assert "likewise n0 at (" in found["should"].why
    (other,) = found["should"].places
    assert "n0 has " in other.why
    assert other.box.top < found["should"].box.bottom  # each of them leads to its own place


def test_a_layout_that_is_not_its_netlist_is_unjudged_and_unsigned():
    planted = source(20)
    netlist = NetlistText("* other\n.subckt TOP out in vss\nM1 out in out vss nfet_03v3 W=4u L=1u\n.ends\n")
    circuit = read_netlist(netlist, identify_modules=False)
    result = compare(extract(planted.layout, planted.cell, GF), circuit)
    review = unmatched(result)
    assert not result.matched
    assert (review.would_sign, review.findings, [each.id for each in review.unjudged]) == (False, (), ["all"])
    with pytest.raises(LayoutkitError, match="is not the circuit"):
        review_layout(result, circuit)


def test_each_finding_of_an_axis_has_the_figure_and_the_limit_of_its_own_devices():
    """The pair is 0.3 um off in height, the tail stands 6 um beside the axis: it unbalances wires only."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 10, 4, 1, "outp inp tail vss")
    planted.mos("M2", "nmos", 4, 10.3, 4, 1, "outn inn tail vss")
    planted.mos("M3", "nmos", 8, 0, 4, 1, "tail bias vss vss")
    planted.mos("M4", "pmos", 0, 22, 4, 1, "outp outp vdd vdd")
    planted.mos("M5", "pmos", 4, 22, 4, 1, "outn outp vdd vdd")
    tracks = {"outp": 29.0, "outn": 30.0, "inp": 16.0, "inn": 17.0, "tail": 7.0, "bias": -3.0, "vss": -5.0, "vdd": 34.0}
    for net, track in tracks.items():
        planted.comb(net, track, port=net not in {"tail", "outp"})
    for limits, pair_is in ((None, "should"), ({"axis": {"must": 0.1, "should": 0.05}}, "must")):
        found = {each.devices: each for each in planted.review(limits=limits).findings if each.id == "axis"}
        assert {devices: each.severity for devices, each in found.items()} == {("M1", "M2"): pair_is, ("M3",): "should"}
        assert found["M1", "M2"].measured == pytest.approx(0.3)
        assert found["M3",].measured == pytest.approx(6.0)
        assert "M3 misses the vertical axis" in found["M3",].why
        assert "M1/M2 miss the vertical axis" in found["M1", "M2"].why
    tail = planted.review(limits={"axis.tail": {"must": 5}}).findings
    assert {each.severity for each in tail if each.devices == ("M3",)} >= {"must"}


@pytest.mark.parametrize(
    ("limits", "fault"),
    [
        ({"axis": {"must": -1}}, "axis.must is -1"),
        ({"rings.taps": {"should": 1.1e6}}, "rings.taps.should is 1100000.0, and must be a figure from 0 to 1e.06"),
        ({"axis": {"should": -0.1}, "coupling": {"must": math.nan}}, "axis.should is -0.1.*coupling.must is nan"),
        ({"axis": {"must": 0.1, "should": 5}}, "axis: should is 5, and must is 0.1: state a should of 0.1 or less"),
        ({"axis": {"should": 5}}, "axis: should is 5, and must is 1 as shipped"),
        ({"room.used": {"must": 0.8, "should": 0.5}}, "room.used: should is 0.5, and must is 0.8.*0.8 or more"),
    ],
)
def test_limits_that_make_no_sense_are_refused(limits, fault):
    with pytest.raises(LayoutkitError, match=fault):
        limits_with(limits)


@pytest.mark.parametrize("figure", [0, 1e-9, 1e6])
def test_a_review_by_any_figure_as_all_limits_ends(figure):
    planted = source(20)
    assert planted.review(limits={name: {"must": figure, "should": figure} for name in shipped_limits()}).findings


def test_limits_in_their_order_are_taken():
    """A must alone that is stricter than the package's should holds for both."""
    assert all(not each.is_inverted for each in shipped_limits().values())
    taken = limits_with({"axis": {"must": 0.001}, "room.used": {"must": 0.5, "should": 0.8}, "rings": {"should": None}})
    assert (taken["axis"].must, taken["axis"].should) == (0.001, 0.001)
    assert (taken["room.used"].must, taken["room.used"].should, taken["rings"].should) == (0.5, 0.8, None)
    assert limits_with({"net-pair.capacitance": {"must": 0.1}})["net-pair.difference"].must == 0
    stated = limits_with({"wire-length": {"must": 2}, "wire-length.detour": {"should": 3}})["wire-length.detour"]
    assert (stated.must, stated.should) == (25, 3)


def test_what_lvs_does_not_compare_keeps_everyone_from_signing():
    limits = {name: {"must": None, "should": None} for name in shipped_limits()}
    planted = source(20)
    cards = "\n".join([f".subckt TOP {' '.join(planted.ports)}", *planted.cards, "XL out vss load", "XI out vss inv"])
    text = NetlistText(f"* boxes\n{cards}\n.ends\n")
    circuit = read_netlist(text, identify_modules=False, black_boxes=("load", "inv"))
    result = compare(extract(planted.layout, planted.cell, GF), circuit)
    review = review_layout(result, circuit, None, limits)
    assert result.matched
    assert [each.reason for each in review.unjudged if each.matters] == [
        "LVS is not complete: not drawn and not compared are XL (load), XI (inv)"
    ]
    assert (review.would_sign, planted.review(limits=limits).would_sign) == (False, True)


def test_a_limit_of_null_is_never_reached():
    planted = wired(pair(dy=1.1))
    assert not planted.review(limits={"well-tap": {"must": None}}).would_sign
    assert severities(planted.review(limits={"axis": {"must": None, "should": None}}), "axis") == set()


def test_metal_without_a_stated_limit_is_unjudged():
    """GF180 states all limits, so that they are taken away here."""
    planted = source(20)
    conductors = tuple(replace(each, current_ma_um=None, narrow_current_ma=None) for each in GF.conductors)
    technology = replace(GF, conductors=conductors)
    circuit = read_netlist(
        NetlistText("* cut\n.subckt TOP out in vss\nM1 out in vss vss nfet_03v3 W=4u L=1u\n.ends\n"),
        identify_modules=False,
    )
    result = compare(extract(planted.layout, planted.cell, technology), circuit)
    review = review_layout(result, circuit)
    reasons = [each.reason for each in review.unjudged if each.id == "electromigration"]
    assert reasons == ["gf180mcuD states no largest current of Metal1, Metal2, Metal3"]
    assert not review.would_sign


def test_a_supply_without_a_port_is_unjudged_so_that_nobody_signs():
    planted, signed = source(20), source(20)
    shapes = planted.cell.shapes(GF.layer(planted.layout, METAL3.label_layer))
    for shape in [each for each in shapes.each() if each.text_string == "vss"]:
        shape.delete()
    planted.ports.remove("vss")
    limits = {name: {"must": None, "should": None} for name in shipped_limits()}
    review = planted.review(limits=limits)
    assert [each.reason for each in review.unjudged if each.matters] == ["vss has no labelled port to measure from"]
    assert (review.would_sign, signed.review(limits=limits).would_sign) == (False, True)
