"""Rails, ports, order of stages, cells that repeat, wells: on both sides of each limit."""

from pathlib import Path

import klayout.db as kdb
import pytest
from planted_layout import WIRE, Planted, both, pair, severities, wired

from layoutkit.circuit import read_netlist
from layoutkit.errors import LayoutkitError
from layoutkit.extract.extractor import extract
from layoutkit.lvs.compare import compare
from layoutkit.review.design_review import review_layout
from layoutkit.technology import load

EXAMPLE = Path(__file__).resolve().parents[3] / "skills" / "layout-review" / "assets"

# ---- rails and ports


def inverter(low=-6.0, high=20.0, edge=None):
    """Return an inverter between two rails; ``edge`` draws the boundary that far below the ground rail."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 2, 0.5, "out in vss vss")
    planted.mos("M2", "pmos", 4.0, 11, 4, 0.5, "out in vdd vdd")
    for net, track in (("vss", low), ("vdd", high)):
        planted.comb(net, track, left=-8, right=12, width=1)
    planted.comb("out", 7.0)
    planted.comb("in", 8.5)
    if edge is not None:
        planted.box("PR_bndry", -8, low - 0.5 - edge, 12, high + 0.5)
    return planted


@pytest.mark.parametrize("turn", [kdb.Trans.R0, kdb.Trans.R90, kdb.Trans.R270])
@pytest.mark.parametrize(("track", "expected"), [(20.45, set()), (20.47, {"should"})])
def test_a_signal_outside_of_the_rails(track, expected, turn):
    """The power rail ends at 20.5 um; the wire of the input ends 0.09 and 0.11 um beyond it."""
    planted = inverter()
    x = 30.0
    planted.box("Metal3", planted.ends["in"][0][0], 8.5 - WIRE / 2, x, 8.5 + WIRE / 2, "in")
    planted.via3("in", x - 0.2, 8.5)
    planted.box("Metal4", x - 0.34, 8.3, x - 0.06, track + WIRE / 2, "in")
    planted.layout.transform(turn)
    assert severities(planted.review(), "rails", "outside the rails") == expected


@pytest.mark.parametrize("turn", [kdb.Trans.R0, kdb.Trans.R90, kdb.Trans.R270])
@pytest.mark.parametrize(("edge", "expected"), [(0.45, set()), (0.55, {"should"})])
def test_a_rail_inside_the_cell(edge, expected, turn):
    planted = inverter(edge=edge)
    planted.layout.transform(turn)
    assert severities(planted.review(), "rails", "rail of vss") == expected


@pytest.mark.parametrize(
    ("side", "expected"), [("left", set()), ("right", set()), ("top", set()), ("bottom", {"must"})]
)
def test_a_port_at_a_side_that_was_asked_for(side, expected):
    """The power rail reaches three sides."""
    review = inverter().review(constraints={"port_sides": [{"port": "vdd", "side": side}]})
    assert severities(review, "rails", "requested at the") == expected


def test_a_port_without_its_shape_is_no_match_so_that_nobody_signs():
    """The example of the skill, drawn in a process with shapes of pins."""
    technology, layout = load("sky130A"), kdb.Layout()
    layout.read(str(EXAMPLE / "pair.gds"))
    cell, circuit = layout.top_cell(), read_netlist(str(EXAMPLE / "pair.spice"), identify_modules=False)
    (place,) = (label for net in extract(layout, cell, technology).nets.values() for label in net.labels
                if label.text == "outn")  # fmt: skip
    shapes = cell.shapes(technology.layer(layout, technology.conductor(place.conductor).pin_layer))
    point = kdb.DPoint(*place.place).to_itype(layout.dbu)
    for shape in [each for each in shapes.each() if each.bbox().contains(point)]:
        shape.delete()
    with pytest.raises(LayoutkitError, match="Port outn of the netlist has no pin"):
        review_layout(compare(extract(layout, cell, technology), circuit), circuit)


# ---- the order of stages


def amplifier(output_at, output_left):
    """Return an amplifier in a cell that is 200 um long, its inputs at the left edge."""
    planted = pair()
    planted.mos("M4", "pmos", 0, 22, 4, 1, "x x vdd vdd")
    planted.mos("M5", "pmos", 8, 22, 4, 1, "outn x vdd vdd")
    planted.cards[0] = planted.cards[0].replace("outp", "x")
    planted.ends["x"] += planted.ends.pop("outp")
    for net, track in {"x": 29.0, "tail": 7.0, "bias": -3.0, "vss": -5.0, "vdd": 34.0}.items():
        planted.comb(net, track, port=net not in {"x", "tail"})
    planted.comb("inp", 16.0, left=-30)
    planted.comb("inn", 14.5, left=-30)
    planted.comb("outn", output_at, left=output_left)
    planted.box("PR_bndry", -30, -6, 170, 36)
    return planted


@both("flow-order.ports", "should")
def test_an_output_beside_an_input(figure, expected):
    """Both labels lie at the left edge."""
    review = amplifier(16.0 + 200 * figure, -30).review()
    assert severities(review, "flow-order", "from input inp") == expected


@pytest.mark.parametrize(("place", "expected"), [("left", {"should"}), ("right", set())])
def test_all_inputs_and_outputs_at_one_side(place, expected):
    planted = amplifier(44.0, -30)
    if place == "right":
        planted.box("Metal3", 0, 44 - WIRE / 2, 170, 44 + WIRE / 2, "outn")
        planted.move_label("outn", "Metal3", 169.9, 44)
    assert severities(planted.review(), "flow-order", "all inputs and outputs") == expected


@both("flow-order.load", "should")
def test_loads_far_from_their_pair(figure, expected):
    planted = pair()
    for name, x, net in (("R1", 0, "outp"), ("R2", 3, "outn")):
        planted.bar(name, x, 14 + figure, 1, 10, f"{net} vdd")
    wired(planted, vdd=54.0)
    assert severities(planted.review(), "flow-order", "and the loads") == expected


@both("flow-order.bias", "should")
def test_a_bias_far_from_what_it_biases(figure, expected):
    """A diode and a source on one gate net, so far apart as the figure says of a cell that is 200 um long."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 2, 1, "b b vss vss")
    planted.mos("M2", "nmos", 1 + 200 * figure, 0, 2, 1, "out b vss vss")
    for net, track in (("b", 6.0), ("out", 8.0), ("vss", -4.0)):
        planted.comb(net, track)
    planted.box("PR_bndry", -5, -6, 195, 10)
    assert severities(planted.review(), "flow-order", "biases") == expected


@both("flow-order.load", "should")
@pytest.mark.parametrize("port", [False, True])
def test_transistors_in_series_that_lie_apart(figure, expected, port):
    """The channels of two cascodes, 1 um long, from that below them; what a port is on may be met elsewhere."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 2, 1, "n in vss vss")
    planted.mos("M2", "nmos", 1 + figure, 0, 2, 1, "out casc n vss")
    planted.mos("M3", "nmos", 5 + figure, 0, 2, 1, "out2 casc2 n vss")
    for track, net in enumerate(planted.ends):
        planted.comb(net, 6.0 + track, port=net != "n" or port)
    found = severities(planted.review(), "flow-order", "whose current flows from one into the other")
    assert found == (set() if port else expected)


@both("flow-order.series", "should")
@pytest.mark.parametrize("long", [1, 4])
def test_two_transistors_alone_in_series(figure, expected, long):
    """They lie farther apart than either is long."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 2, long, "n in vss vss")
    planted.mos("M2", "nmos", long + figure, 0, 2, long, "out casc n vss")
    for track, net in enumerate(planted.ends):
        planted.comb(net, 6.0 + track, port=net != "n")
    found = severities(planted.review(), "flow-order", "whose current flows from one into the other")
    assert found == (expected if long < figure else set())


@both("flow-order.bias", "should")
def test_what_a_net_joins_over_most_of_the_layout(figure, expected):
    """The drain of one transistor on the gate of another one, so far apart in a cell that is 200 um long."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 2, 1, "n in vss vss")
    planted.mos("M2", "nmos", 1 + 200 * figure, 0, 2, 1, "out n vss vss")
    for track, net in enumerate(planted.ends):
        planted.comb(net, 6.0 + track, port=net != "n")
    planted.box("PR_bndry", -5, -6, 195, 14)
    assert severities(planted.review(), "flow-order", "the devices on n") == expected


@pytest.mark.parametrize(("one", "other"), [("a", "b"), ("b", "a")])
def test_a_switch_between_two_nets_and_a_transistor_from_one_to_the_other_are_no_gate(one, other):
    """Whatever the names: the gate of the second one is an end of the first one."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 2, 0.5, f"{one} in {other} vss")
    planted.mos("M2", "nmos", 40, 0, 2, 0.5, f"{one} {other} vss vss")
    for track, net in enumerate(planted.ends):
        planted.comb(net, 6.0 + track)
    assert not severities(planted.review(), "flow-order", "parts of one function")


@pytest.mark.parametrize("stacked", [True, False])
@both("flow-order.parts", "should")
def test_a_gate_of_two_transistors_in_series_of_each_type(figure, expected, stacked):
    """The last one, at the rail, is so far from that beside it. In parallel, as on a clock, they are no gate."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 2, 0.5, "m in vss vss")
    planted.mos("M2", "nmos", 3, 0, 2, 0.5, "y in m vss")
    planted.mos("M3", "pmos", 6, 0, 2, 0.5, f"y in {'p' if stacked else 'vdd'} vdd")
    planted.mos("M4", "pmos", 6.5 + figure, 0, 2, 0.5, f"{'p' if stacked else 'm'} in vdd vdd")
    for track, net in enumerate(planted.ends):
        planted.comb(net, 6.0 + track, port=net not in {"m", "p"})
    found = [each.why for each in planted.review().findings if "parts of one function" in each.why]
    assert bool(found and "M1, M2, M3, M4" in found[0]) == (stacked and bool(expected))


# ---- what repeats


def chain(places, turned=()):
    """Return equal cells of two transistors that drive each other in their order, each at its x."""
    planted, cards = Planted(), []
    for number, x in enumerate(places):
        names = (f"n{number}", f"m{number}", f"n{number + 1}")
        planted.mos(f"MA{number}", "nmos", x, 0, 2, 0.5, f"{names[1]} {names[0]} vss vss", turned=number in turned)
        planted.mos(f"B{number}", "nmos", x + 5, 0, 2, 0.5, f"{names[2]} {names[1]} vss vss", turned=number in turned)
        cards.append(f"X{number} {names[0]} {names[2]} vss cell")
    for track, net in enumerate(net for net in planted.ends if net != "vss"):
        planted.comb(net, 6.0 + 0.6 * track, port=net[0] == "n")
    planted.comb("vss", -8)
    text = f".subckt TOP {' '.join(planted.ports)}\n" + "\n".join(cards) + "\n.ends\n"
    text += ".subckt cell i o vss\nMA m i vss vss nfet_03v3 W=2u L=0.5u\nMB o m vss vss nfet_03v3 W=2u L=0.5u\n.ends\n"
    return planted.review(text)


@pytest.mark.parametrize(
    ("places", "words", "expected"),
    [
        ((0, 12, 24, 36, 48), "", set()),
        ((0, 24, 48, 36, 12), "", set()),  # a chain that lies folded
        ((0, 36, 12, 48, 24), "beside the one that drives them", {"should"}),
        ((0, 12, 24, 36, 48.006), "miss one pitch", {"should"}),
        ((0, 12, 24, 36, 48.004), "", set()),
    ],
)
def test_cells_of_a_chain(places, words, expected):
    assert severities(chain(places), "repeated", words) == expected


def test_a_resistor_with_both_ends_on_an_output_is_no_part_of_a_cell():
    """It does nothing, and LVS leaves it out."""
    planted = Planted()
    planted.mos("MN", "nmos", 0, 0, 2, 1, "out in vss vss")
    planted.mos("MP", "pmos", 8, 0, 2, 1, "out in vdd vdd")
    planted.bar("R1", 20, 0, 1, 8, "out out")
    for track, net in enumerate(planted.ends):
        planted.comb(net, 20.0 + track)
    assert not severities(planted.review(), "repeated")


@pytest.mark.parametrize(
    ("off", "control", "expected"), [(0.008, "sel", set()), (0.012, "sel", {"should"}), (3.0, "other", set())]
)
def test_pass_gates_on_the_same_controls_are_cells(off, control, expected):
    """One leads a signal, one its reference; the p transistor of the second is off by so much, both by half of it."""
    planted = Planted()
    for number, (x, gate) in enumerate(((0, "sel"), (30, control))):
        planted.mos(f"MN{number}", "nmos", x, 0, 2, 1, f"a{number} {gate} b{number} vss")
        planted.mos(f"MP{number}", "pmos", x + 8 + off * number, 0, 2, 1, f"a{number} {gate}b b{number} vdd")
    for track, net in enumerate(planted.ends):
        planted.comb(net, 20.0 + track)
    assert severities(planted.review(), "repeated", "drawn unlike") == expected


@pytest.mark.parametrize(("turned", "expected"), [((), set()), ((1,), {"must"})])
def test_a_cell_that_is_turned(turned, expected):
    assert severities(chain((0, 12, 24), turned), "repeated", "turned by 90 degrees") == expected


# ---- wells


def rings(*boxes, planted):
    for left, bottom, right, top in boxes:
        for box in (
            (left, bottom, right, bottom + 0.3),
            (left, top - 0.3, right, top),
            (left, bottom, left + 0.3, top),
            (right - 0.3, bottom, right, top),
        ):
            planted.box("COMP", *box)
            planted.box("Nplus", *box)


@pytest.mark.parametrize("ringed", [0, 1, 2])
def test_a_ring_for_each_domain(ringed):
    """Two p transistors in wells of two supplies: each needs a ring of taps of its own."""
    planted = Planted()
    for number in range(2):
        x = 20.0 * number
        planted.mos(f"MP{number}", "pmos", x, 11, 4, 0.5, f"o{number} i{number} vdd{number} vdd{number}")
        planted.mos(f"MN{number}", "nmos", x + 8, 0, 2, 0.5, f"o{number} i{number} vss vss")
        planted.box("Nwell", x - 3, 8, x + 6, 18)
        if number < ringed:
            rings((x - 2, 9, x + 5, 17.5), planted=planted)
    for track, net in enumerate(planted.ends):
        planted.comb(net, 20.0 + 0.7 * track)
    found = [each for each in planted.review().findings if each.id == "well-tap" and "no ring of" in each.why]
    assert [each.nets for each in found] == [(f"vdd{number}",) for number in range(ringed, 2)]


def test_one_domain_needs_no_ring():
    assert severities(inverter().review(), "well-tap", "no ring of") == set()


def test_the_pair_has_no_finding_of_its_floorplan():
    assert severities(wired(pair()).review(), "flow-order") == set()


def delay_line(off, stages=4):
    """Return starved inverters that drive each other; the load of the third one is twice ``off`` um away."""
    planted = Planted()
    for number in range(stages):
        x, moved = 16.0 * number, off if number == 2 else 0.0
        planted.mos(f"MA{number}", "nmos", x, 0, 2, 0.5, f"f{number} b vss vss")
        planted.mos(f"MB{number}", "nmos", x + 4, 0, 2, 0.5, f"n{number + 1} n{number} f{number} vss")
        planted.mos(f"MC{number}", "pmos", x + 8 + 2 * moved, 12, 4, 0.5, f"n{number + 1} n{number} vdd vdd")
    for track, net in enumerate(net for net in planted.ends if net not in {"vss", "vdd"}):
        planted.comb(net, 24.0 + 0.6 * track, port=net[0] != "f")
    planted.comb("vss", -8)
    planted.comb("vdd", -10)
    return planted


@pytest.mark.parametrize(("figure", "expected"), [(0.002, set()), (0.01, {"should"}), (0.9, {"must"})])
def test_equal_stages_of_a_flat_delay_line(figure, expected):
    """The sources match each other across the stages, so that two transistors are left: each misses by half."""
    assert severities(delay_line(figure).review(), "repeated") == expected


def test_three_stages_in_a_row_are_the_buffer_of_a_signal():
    assert severities(delay_line(0.9, stages=3).review(), "repeated") == set()


def test_the_load_of_a_stage_may_be_two_capacitors_in_series():
    line = delay_line(0.9)
    tracks = {net: 24.0 + 0.6 * track for track, net in enumerate(n for n in line.ends if n not in {"vss", "vdd"})}
    for number in range(1, 5):
        x, net = 100.0 + 20 * number, f"n{number}"
        line.plate(f"C{number}", x, 40, 5, f"{net} k{number}")
        line.plate("", x + 7, 40, 5, f"vss k{number}")
        line.cards[-2:] = [f"C{number} {net} vss cap_mim_2f0_m4m5_noshield W=5u L=5u series=2"]
        for end, (left, track) in {net: (x + 2, tracks[net]), "vss": (x + 9, -8.0)}.items():
            line.box("Metal3", 0, track - 0.14, left + 1, track + 0.14, end)
            line.via3(end, left + 0.5, track)
            line.square("Via4", left + 0.5, track, 0.26)
            line.box("Metal5", left, track - 0.5, left + 1, 43, end)
    assert "must" in severities(line.review(), "repeated")


def bits(off=0.0, turned=()):
    """Return three bits of a current-steering converter; a switch of the last one is ``off`` um too high."""
    planted = Planted()
    for number in range(3):
        x, up = 14.0 * number, off if number == 2 else 0.0
        pair = [(f"b{number}", "op"), (f"c{number}", "on")]
        for side, (gate, drain) in enumerate(reversed(pair) if number in turned else pair):
            nets = f"{drain} {gate} t{number} vss"
            planted.mos(f"MS{number}{side}", "nmos", x + 5 * side, 10 + side * up, 2, 0.5, nets)
        planted.mos(f"MT{number}", "nmos", x + 2.5, 0, 2, 0.5, f"t{number} vb vss vss")
    for track, net in enumerate(net for net in planted.ends if net != "vss"):
        planted.comb(net, 16.0 + 0.6 * track, port=net[0] != "t")
    planted.comb("vss", -8)
    return planted


@pytest.mark.parametrize(("off", "expected"), [(0.0, set()), (0.9, {"should"}), (1.1, {"must"})])
def test_each_bit_of_an_array_has_an_axis_of_its_own(off, expected):
    found = [each for each in bits(off).review().findings if each.id == "axis" and len(each.devices) > 1]
    assert {each.severity for each in found} == expected
    assert all({name[:3] for name in each.devices} == {"MS2"} for each in found)


@pytest.mark.parametrize(
    ("off", "turned", "expected"), [(0.0, (), set()), (0.0, (1,), set()), (0.9, (), {"should"}), (1.1, (), {"must"})]
)
def test_equal_bits_of_a_flat_netlist(off, turned, expected):
    """A bit whose halves are exchanged is the mirror image of the others."""
    assert severities(bits(off, turned).review(), "repeated", "unlike") == expected


def test_which_bits_are_unlike_the_others_does_not_hang_on_the_order_of_the_cards():
    planted, found = bits(1.1), []
    for cards in (planted.cards, planted.cards[::-1]):
        review = planted.review("\n".join([f".subckt TOP {' '.join(planted.ports)}", *cards, ".ends", ""]))
        found.append([(each.measured, sorted(each.devices)) for each in review.findings if each.id == "repeated"])
    assert found[0] == found[1] != []


def test_a_pair_of_switches_off_its_axis_is_no_must():
    planted = Planted()
    for number, (x, y) in enumerate(((0, 0), (8, 4))):
        planted.mos(f"MN{number}", "nmos", x, y, 2, 0.28, f"out s{number} in{number} vss")
        planted.mos(f"MP{number}", "pmos", x + 4, y + 12, 4, 0.28, f"out r{number} in{number} vdd")
    for track, net in enumerate(net for net in planted.ends if net not in {"vss", "vdd"}):
        planted.comb(net, 26.0 + 0.6 * track)
    planted.comb("vss", -8)
    planted.comb("vdd", -10)
    review = planted.review()
    assert "must" not in severities(review, "axis")


@pytest.mark.parametrize(("shift", "expected"), [(0, set()), (0.3, {"should"})])
def test_cells_whose_crossed_pairs_are_half_in_each(shift, expected):
    """Two latches of two cells each: the pairs reach over two cells, and the four cells are one row all the same."""
    planted = Planted()
    ends = (("b", "a"), ("a", "b"), ("d", "c"), ("c", "d"))
    for number, (gate, drain) in enumerate(ends):
        x = 12.0 * number + shift * (number == 3)
        planted.mos(f"N{number}", "nmos", x, 0, 2, 0.5, f"{drain} {gate} vss vss")
        planted.mos(f"P{number}", "pmos", x + 4, 11, 4, 0.5, f"{drain} {gate} vdd vdd")
    for net, track in (("vss", -6.0), ("vdd", 20.0), ("a", 5.0), ("b", 6.0), ("c", 7.0), ("d", 8.0)):
        planted.comb(net, track)
    cards = "\n".join(f"X{number} {gate} {drain} vdd vss HALF" for number, (gate, drain) in enumerate(ends))
    netlist = (
        ".subckt HALF i o vdd vss\nMN o i vss vss nfet_03v3 W=2u L=0.5u nf=1\n"
        f"MP o i vdd vdd pfet_03v3 W=4u L=0.5u nf=1\n.ends\n.subckt TOP a b c d vdd vss\n{cards}\n.ends\n"
    )
    assert severities(planted.review(netlist), "repeated") == expected


@pytest.mark.parametrize(("y", "expected"), [(6, set()), (12, {"should"})])
def test_transistors_at_their_rail_may_lie_below_the_middle_of_the_layout(y, expected):
    """Wires reach far above the rails; the PMOS transistors lie below the power rail, or above a second ground rail.

    An NMOS transistor lies between them.
    """
    planted = Planted()
    for number in range(4):
        planted.mos(f"MN{number}", "nmos", 8 * number, 0 if number else y, 2, 1, f"o{number} i{number} vss vss")
        planted.mos(f"MP{number}", "pmos", 8 * number + 4, y, 2, 1, f"o{number} i{number} vdd vdd")
    tracks = {"vss": -3.0, "vdd": 10.0 if y == 6 else 30.0}
    for number, net in enumerate(planted.ends):
        planted.comb(net, tracks.get(net, 32.0 + 0.6 * number), left=-4, right=36)
    if y > 6:
        planted.box("Metal3", -4, 9.5, 36, 10.5, "vss")
        planted.box("Metal4", 35, -3.2, 35.4, 10, "vss")
        for at in (-3, 10):
            planted.via3("vss", 35.2, at)
    planted.box("Metal3", -4, 60, 36, 60.3)
    assert severities(planted.review(), "rail-side", "nearer to the other one") == expected


@pytest.mark.parametrize(("straps", "expected"), [(1, {"should"}), (4, set())])
def test_a_rail_with_straps_of_its_own_metal(straps, expected):
    """The straps are joined at their other ends, too."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 2, 1, "out in vss vss", fingers=8)
    for net, track in (("in", 6), ("out", 8)):
        planted.comb(net, track)
    planted.comb("vss", -3, left=-3, right=28, width=1, port=False)
    planted.box("Metal3", -3, -8, 28, -6, "vss")
    for strap in range(straps):
        planted.box("Metal3", 8 * strap, -6, 8 * strap + 0.4, -3, "vss")
    planted.label("vss", "Metal3", -2.8, -7)
    assert severities(planted.review(), "rails", "is joined to") == expected
