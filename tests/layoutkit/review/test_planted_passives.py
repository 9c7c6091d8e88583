"""Resistors, capacitors and what runs beside or under them, on both sides of each limit."""

from types import SimpleNamespace

import klayout.db as kdb
import pytest
from planted_layout import GF, SIDE, WIRE, Planted, both, limit, pair, severities, wired

from layoutkit.circuit import read_netlist
from layoutkit.circuit.circuit import StatedSupplies
from layoutkit.circuit.readers.source import NetlistText
from layoutkit.review.matched_devices import ratio_apart
from layoutkit.review.passives import joined_by_capacitors

# ---- ratios of resistors


def divider(bars, dummies=((-2, 2), (18, 2)), length=10.0):
    """Return a divider of R1 from a to m and R2 from b to m, with dummy bars at the ends of the bank."""
    planted = Planted()
    for name, x, l, nets in bars:  # noqa: E741
        planted.bar(name, x, 0, 1, l, nets)
    for x, width in dummies:
        planted.box("Poly2", x, -0.8, x + min(1, width), length + 0.8)
    for net, track in (("a", -4.0), ("b", -5.0), ("m", 24.0), ("vss", -8.0)):
        if net in planted.ends:
            planted.comb(net, track)
    return planted


EVEN = [("R1", 2, 10, "a m"), ("R2", 5, 10, "b m")]
ENDS = ((0, 1), (7, 1))


def test_a_divider_of_equal_bars_in_one_bank_with_dummies_is_no_finding():
    assert severities(divider(EVEN, ENDS).review(), "passives") == set()


@pytest.mark.parametrize(("right", "severe"), [(10.5, False), (11.5, True)])
def test_the_end_of_a_strap_along_its_own_bank_is_not_severe(right, severe):
    """The strap at the heads of the bars runs on beyond the bank, which ends at 6 um, by less or more than 5 um."""
    planted = divider(EVEN, ENDS)
    planted.box("Metal3", 2.5, -4 - WIRE / 2, right, -4 + WIRE / 2, "a")
    found = planted.review(limits={"dead-metal": {"must": 0.01}})
    assert severities(found, "dead-metal", "of a lead") == {"should"}
    assert ("must" in severities(found, "dead-metal", "of the area")) is severe


@pytest.mark.parametrize(("long", "expected"), [(10, set()), (20, {"must"}), (13.37, {"should"})])
def test_bars_of_unlike_lengths(long, expected):
    """Twice the length are two bars in series; 1.337 times is no ratio of up to sixteen equal parts."""
    planted = divider([("R1", 2, 10, "a m"), ("R2", 5, long, "b m")], ENDS)
    assert severities(planted.review(), "passives", "different units") == expected


@pytest.mark.parametrize(("gap", "expected"), [(4.5, set()), (5.5, {"should"})])
def test_banks_of_a_ratio(gap, expected):
    """Equal ones would be a pair, whose halves may lie apart; plates apart are a must, as the test below shows."""
    planted = divider([("R1", 2, 10, "a m"), ("R2", 3 + gap, 20, "b m")], ENDS[:1])
    assert severities(planted.review(), "passives", "places") == expected


@pytest.mark.parametrize(("gap", "expected"), [(4.5, set()), (5.5, {"should"})])
def test_banks_of_a_ratio_between_widths_that_the_user_made_unlike(gap, expected):
    """A ratio that equal units cannot draw is never severe."""
    planted = Planted()
    planted.bar("R1", 2, 0, 1, 10, "a m")
    planted.bar("R2", 3 + gap, 0, 1.3, 10, "b m")
    for net, track in (("a", -4.0), ("b", -5.0), ("m", 24.0), ("vss", -8.0)):
        planted.comb(net, track)
    assert severities(planted.review(), "passives", "places") == expected


@pytest.mark.parametrize(("away", "expected"), [(1.8, set()), (2.2, {"should"})])
def test_a_bar_at_the_end_of_a_bank(away, expected):
    planted = divider(EVEN, (ENDS[0], (6 + away, 1)))
    assert severities(planted.review(), "passives", "no dummy bar") == expected


@pytest.mark.parametrize(
    ("gap", "dummies", "places", "bare"),
    [(2, ENDS, set(), set()), (6, ENDS, {"should"}, {"should"}), (2, ENDS[:1], set(), {"should"})],
)
@pytest.mark.parametrize("diode", ["b", "c"], ids=["sets a current", "matches nothing"])
def test_a_resistor_of_several_bars(gap, dummies, places, bare, diode):
    """Three bars in series set one current: no ratio, but a bank all the same; of two banks, each has two ends.

    Where their value sets nothing, their ends need no dummies.
    """
    planted = Planted()
    for number, (drain, x) in enumerate(((diode, -20), ("d", -14))):
        planted.mos(f"M{number}", "nmos", x, 0, 4, 1, f"{drain} {diode} vss vss")
    for number, nets in enumerate(("a m", "n m", "n b")):
        planted.bar(f"R{number}", 2 + 2 * number + (gap - 1) * (number == 2), 0, 1, 10, nets)
    for x in [0, 7 + gap][: len(dummies)]:
        planted.box("Poly2", x, -0.8, x + 1, 10.8)
    tracks = {"a": -4.0, "b": 16.0, "m": 14.0, "n": -6.0, "vss": -8.0, "c": 18.0, "d": 20.0}
    for net in planted.ends:
        planted.comb(net, tracks[net], port=net not in {"m", "n"})
    review = planted.review()
    assert severities(review, "passives", "places") == places
    assert severities(review, "passives", "no dummy bar") == (bare if diode == "b" else set())


@both("passives.frame", "must")
def test_dummies_that_take_much_of_the_layout(figure, expected):
    """A frame of twelve plates of 5 x 5 um around four; metal outside makes the layout larger."""
    planted = bank([(x * 8.0, y * 8.0) for y in (1, 2) for x in (1, 2)])
    for left, low in ((x * 8.0, y * 8.0) for x in range(4) for y in range(4) if {x, y} & {0, 3}):
        planted.plate("", left, low, 5, "tied tied")
        planted.cards.pop()
        planted.box("Metal5", left - 0.8, low - 0.8, left + 1, low + 1, "tied")
        planted.square("Via4", left - 0.5, low - 0.5, 0.26)
    box = planted.cell.dbbox()
    planted.box("Metal1", box.left, box.bottom - 1, box.left + 12 * 25 / figure / (box.height() + 1), box.bottom, None)
    found = severities(planted.review(), "passives", "have 12 dummies around 4 units")
    assert found == (expected or {"should"})


@pytest.mark.parametrize(("spare", "expected"), [(2, set()), (3, {"should"})])
def test_dummies_in_a_bank_of_two(spare, expected):
    planted = divider(EVEN, ENDS[:1])
    for number in range(spare):
        planted.bar(f"RD{number}", 7 + 1.2 * number, 0, 1, 10, "vss vss")
        for end in planted.ends["vss"][-2:]:
            planted.column("vss", *end, -8)
    planted.box("Metal3", 0, -8 - WIRE / 2, 20, -8 + WIRE / 2, "vss")
    assert severities(planted.review(), "passives", "dummies around") == expected


@pytest.mark.parametrize(("places", "expected"), [((0, 6), {"should"}), ((0, 3), set())])
def test_equal_loads_whose_bars_are_mixed(places, expected):
    """R1 of two bars with one of R2's two between them, or beside: nothing else says that the two must match."""
    planted = Planted()
    for number, x in enumerate(places):
        planted.bar(f"R1{number}", x, 0, 1, 10, ("a m", "b m")[number])
        planted.bar(f"R2{number}", 9 - x, 0, 1, 10, ("c n", "d n")[number])
    planted.mos("M1", "nmos", 30, 0, 4, 1, "c g vss vss")
    for track, net in enumerate(planted.ends):
        planted.comb(net, 24.0 + track if net in {"m", "n"} else -4.0 - track, port=net not in {"m", "n"})
    planted.comb("vss", -20)
    cards = "R1 a b vss ppolyf_u W=1u L=20u\nR2 c d vss ppolyf_u W=1u L=20u\n" + planted.cards[-1]
    text = f".subckt TOP a b c d g vss\n{cards}\n.ends\n"
    assert severities(planted.review(text), "passives", "equal resistors") == expected


def test_a_single_bar_and_the_ends_of_each_bank():
    """What sets a current alone wants dummies, too, at both ends of each place that its bars lie in."""
    planted = divider([("R1", 2, 10, "a m")], ENDS[:1])
    planted.bar("R2", 12, 0, 1, 10, "b m")
    planted.comb("m", 24.0)
    planted.comb("b", -5.0)
    assert "3 of its 4 ends" in next(each.why for each in planted.review().findings if "no dummy bar" in each.why)


@pytest.mark.parametrize("turned", [False, True])
def test_the_order_of_cards_decides_nothing_about_bars_in_series(turned):
    """LVS makes one resistor of the two equal bars, whose end is that of either card; the wide one follows them."""
    planted = Planted()
    for name, x, w, nets in (("R1", 2, 1, "a m"), ("R2", 4, 1, "n m"), ("R3", 12, 2, "n b")):
        planted.bar(name, x, 0, w, 10, nets)
    for net, track in (("a", -4.0), ("b", 16.0), ("m", 14.0), ("n", -6.0), ("vss", -8.0)):
        planted.comb(net, track, port=net in {"a", "b", "vss"})
    if turned:
        planted.cards.reverse()
    found = [each for each in planted.review().findings if "split over" in each.why]
    assert [set(each.devices) for each in found] == [{"R1", "R2", "R3"}]


@both("passives.covered", "should")
@pytest.mark.parametrize("both_bars", [False, True])
def test_metal_over_one_bar_of_a_ratio(figure, expected, both_bars):
    """Metal that nothing is on counts as well; over both bars alike it does no harm."""
    planted = divider(EVEN, ENDS)
    planted.box("Metal5", 5, 0, 6, 10 * figure)
    if both_bars:
        planted.box("Metal5", 2, 5, 3, 5 + 10 * figure)
    assert severities(planted.review(), "passives", "metal covers") == (set() if both_bars else expected)


@pytest.mark.parametrize(("x", "long", "expected"), [(8, 9, set()), (3.5, 9, {"must"}), (3.5, 10, set())])
def test_another_resistor_in_a_ratio(x, long, expected):
    """An equal bar is a neighbour as good as a dummy."""
    planted = Planted()
    for name, at, nets in (("R1", 2, "a m"), ("R2", 5, "b m"), ("R9", x, "y z")):
        planted.bar(name, at, 0, 1, long if name == "R9" else 10, nets)
    for net, track in (("a", -4.0), ("b", -5.0), ("m", 24.0), ("vss", -8.0), ("y", -6.0), ("z", 25.0)):
        planted.comb(net, track)
    assert severities(planted.review(), "group-apart", "R9 lies among") == expected


@pytest.mark.parametrize(("share", "expected"), [(0.95, set()), (1.05, {"should"})])
def test_what_lies_between_the_two_halves_of_a_circuit(share, expected):
    """That halves lie far apart is said; what is between them is then no more to mend."""
    planted, far = pair(), 42 + 1 + share * limit("group-apart.halves", "should")
    for name, x, long, nets in (("R1", 42, 10, "outp vdd"), ("R2", far, 10, "outn vdd"), ("R9", 45, 6, "y z")):
        planted.bar(name, x, 60, 1, long, nets)
    tracks = {"inp": 18.0, "inn": 19.0, "tail": 7.0, "bias": -3.0, "vss": -5.0, "vdd": 80.0, "z": 82.0}
    for track, net in enumerate(planted.ends):
        planted.comb(net, tracks.get(net, 30.0 + track), port=net != "tail")
    review = planted.review()
    assert bool(severities(review, "group-apart", "R9 lies among")) == (share < 1)
    assert severities(review, "group-apart", "halves that must match") == expected


# ---- capacitors


def bank(places, side=5.0, shared="x"):
    """Return capacitors of one size at these places; the nets at one of their ends are one port, the others ports."""
    planted = Planted()
    planted.comb("vss", -8)
    for number, (x, y) in enumerate(places):
        planted.plate(f"C{number}", x, y, side, f"{shared} b{number}")
        planted.label(f"b{number}", "Metal4", x - 0.5, y - 0.5)
        planted.box("Metal5", x + 2, y + 2, x + 3, places[0][1] + 3, shared)
        planted.box("Metal5", places[0][0] + 2, places[0][1] + 2, x + 3, places[0][1] + 3, shared)
    if shared == "vss":
        planted.box("Metal5", places[0][0] + 2, -8.2, places[0][0] + 3, places[0][1] + 3, "vss")
        planted.square("Via4", places[0][0] + 2.5, -8, 0.26)
        planted.square("Metal4", places[0][0] + 2.5, -8, 0.5, "vss")
        planted.square("Via3", places[0][0] + 2.5, -8, 0.26)
        planted.box("Metal3", -2, -8 - WIRE / 2, places[0][0] + 3, -8 + WIRE / 2, "vss")
    else:
        planted.label(shared, "Metal5", places[0][0] + 2.5, places[0][1] + 2.5)
    return planted


@pytest.mark.parametrize(("gap", "expected"), [(4.5, set()), (5.5, {"must"})])
def test_scattered_unit_capacitors(gap, expected):
    places = [(0, 0), (5 + gap, 0), (2 * (5 + gap), 0)]
    assert severities(bank(places).review(), "passives", "places") == expected


@pytest.mark.parametrize(
    ("missing", "gap", "places", "dummies"),
    [
        *((set(), 5.5, set(), {"must"}), (set(), 19.0, set(), {"should"}), (set(), 21.0, {"must"}, set())),
        *(({(0, 0)}, 5.5, {"must"}, set()), ("all", 5.5, {"must"}, set())),
    ],
)
def test_an_array_in_a_frame_of_dummies_is_one_place(missing, gap, places, dummies):
    """Two by two units, rows of which lie apart; the frame of twelve plates at the same pitch makes one array."""
    step = (8.0, 5.0 + gap)
    planted = bank([(x * step[0], y * step[1]) for y in (1, 2) for x in (1, 2)])
    for x, y in ((x, y) for x in range(4) for y in range(4) if {x, y} & {0, 3}):
        if missing != "all" and (x, y) not in missing:
            left, low = x * step[0], y * step[1]
            planted.plate("", left, low, 5, "tied tied")
            planted.cards.pop()
            planted.box("Metal5", left - 0.8, low - 0.8, left + 1, low + 1, "tied")
            planted.square("Via4", left - 0.5, low - 0.5, 0.26)
    review = planted.review()
    assert severities(review, "passives", "are split over 2 places") == places
    assert severities(review, "passives", f"have {12 - len(missing)} dummies around 4 units") == dummies


@pytest.mark.parametrize(("gap", "expected"), [(19.0, set()), (21.0, {"should"}), (None, {"should"})])
def test_plates_in_a_ratio_without_dummies_around_them(gap, expected):
    """One dummy lies so far beside them, or none does."""
    planted = bank([(0, 0), (8, 0), (16, 0)])
    if gap is not None:
        planted.plate("", 21 + gap, 0, 5, "tied tied")
        planted.cards.pop()
        planted.box("Metal5", 20.2 + gap, -0.8, 22 + gap, 1, "tied")
        planted.square("Via4", 20.5 + gap, -0.5, 0.26)
    assert severities(planted.review(), "passives", "no dummy plates lie around") == expected


@pytest.mark.parametrize(
    ("nets", "expected"),
    [("b{0} g vdd b{0}", set()), ("b{0} g vdd vdd", {"should"}), ("x{0} x{0} b{0} b{0}", {"should"})],
)
def test_plates_that_lift_wells_need_not_match(nets, expected):
    """A bootstrap for each of two switches: one plate is on a well; else both hang on the inputs of a pair.

    A diode in its well, which is a large resistance, leaves both nets alone. The bottom plate belongs on the input.
    """
    planted = pair()
    planted.mos("MV", "pmos", 60, 60, 2, 1, "y g vdd vdd")
    for number, (net, x) in enumerate((("inp", -20), ("inn", 20.4))):
        planted.plate(f"C{number}", x, 40, 5, f"{net} b{number}")
        planted.via3(net, x + 2.5, 18 + number)
        planted.square("Via4", x + 2.5, 18 + number, 0.26)
        planted.box("Metal5", x + 2.2, 17.7 + number, x + 2.8, 42)
        planted.mos(f"MP{number}", "pmos", x - 20 + 40 * number, 60, 2, 1, nets.format(number))
        left, right = min(x, x - 20 + 40 * number), max(x + 4, x + 24 * number)
        planted.comb(f"b{number}", 80.0 + number, left, right, port=False)
        planted.via3(f"b{number}", x + 1, 80 + number)
        planted.box("Metal4", x + 0.8, 39.5, x + 1.2, 80.2 + number, f"b{number}")
    tracks = {"outp": 24.0, "outn": 25.0, "inp": 18.0, "inn": 19.0, "tail": 7.0, "bias": -3.0, "vss": -5.0}
    for track, net in enumerate(each for each in planted.ends if each not in {"b0", "b1"}):
        left, right = (-18 if net == "inp" else None), (23.4 if net == "inn" else None)
        planted.comb(net, tracks.get(net, 90.0 + track), left, right, port=net != "tail")
    review = planted.review()
    assert severities(review, "passives", "no dummy plates lie around") == expected
    assert bool(severities(review, "passives", "bottom plate on the sensitive net b0")) == (not expected)


@pytest.mark.parametrize(("gap", "expected"), [(11.0, set()), (9.0, {"must"})])
def test_arrays_of_plates_beside_each_other(gap, expected):
    """Two by two units in a frame; so far beside it lies another array of dummies at a pitch of its own."""
    planted = bank([(8.0 * x, 14.0 * y) for y in (1, 2) for x in (1, 2)])
    frame = [(8.0 * x, 14.0 * y) for x in range(4) for y in range(4) if {x, y} & {0, 3}]
    for left, low in [*frame, *((29 + gap + 8.0 * x, 14.0 * y) for x in range(2) for y in range(4))]:
        planted.plate("", left, low, 5, "tied tied")
        planted.cards.pop()
        planted.box("Metal5", left - 0.8, low - 0.8, left + 1, low + 1, "tied")
        planted.square("Via4", left - 0.5, low - 0.5, 0.26)
    assert severities(planted.review(), "passives", "are split over") == expected


@pytest.mark.parametrize(("missing", "expected"), [(set(), set()), ({(1, 0)}, {"must"})])
def test_units_at_the_edge_of_an_array_of_dummies_are_in_one_place(missing, expected):
    """Units at three corners and one side of nine places, dummies at the others; rows lie 5.5 um apart."""
    units = [(0, 0), (2, 0), (0, 2), (2, 1)]
    planted = bank([(8.0 * x, 10.5 * y) for x, y in units])
    for x, y in ((x, y) for x in range(3) for y in range(3) if (x, y) not in {*units, *missing}):
        left, low = 8.0 * x, 10.5 * y
        planted.plate("", left, low, 5, "tied tied")
        planted.cards.pop()
        planted.box("Metal5", left - 0.8, low - 0.8, left + 1, low + 1, "tied")
        planted.square("Via4", left - 0.5, low - 0.5, 0.26)
    assert severities(planted.review(), "passives", "are split over") == expected


@pytest.mark.parametrize(("lines", "expected"), [(3, {"must"}), (4, set())])
def test_rows_and_columns_of_units_far_apart_are_one_array(lines, expected):
    places = [(11 * x, 11 * y) for y in range(lines) for x in range(lines)]
    assert severities(bank(places).review(), "passives", "places") == expected


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ([(0, 0), (20, 0), (40, 0), (60, 0)], set()),
        ([(0, 0), (8, 0), (16, 0), (0, 8)], set()),
        ([(0, 0), (20, 0), (47, 0), (60, 0)], {"should"}),
        ([(0, 0), (23, 11), (40, 31), (66, 17)], {"should"}),
    ],
)
def test_strewn_capacitors(places, expected):
    """Capacitors to ground that load one stage each: at one pitch, or in one bank, else strewn."""
    ground = StatedSupplies(ground=("vss",))  # no transistor tells it
    assert severities(bank(places, shared="vss").review(supplies=ground), "passives", "scattered") == expected


def one_after_the_other(figure, capacitors):
    """Return capacitors of two units each: of two each misses the middle by half a pitch, of three two by a pitch."""
    pitch = 10 * figure / (capacitors - 1)
    planted = bank([(pitch * number, 0) for number in range(2 * capacitors)])
    for number in range(capacitors, 2 * capacitors):
        first = number - capacitors
        planted.cards[number] = planted.cards[number].replace(f"b{number}", f"b{first}")
        low = -4 - number
        for each in (first, number):
            planted.box("Metal4", pitch * each + 2, low, pitch * each + 2.5, 1, f"b{first}")
            planted.square("Via3", pitch * each + 2.25, low + 0.25, 0.26)
        planted.box("Metal3", pitch * first + 2, low, pitch * number + 2.5, low + 0.5)
        planted.ports.remove(f"b{number}")
        planted.erase_label(f"b{number}", "Metal4")
    return severities(planted.review(), "passives", "off the middle")


@both("passives.centre", "should")
def test_the_middle_of_a_capacitor_of_several_units(figure, expected):
    assert one_after_the_other(figure, 2) == expected


@both("passives.centre", "must")
def test_an_array_of_more_than_two_halves(figure, expected):
    """Two halves may lie beside each other."""
    assert one_after_the_other(figure, 3) == expected
    assert one_after_the_other(figure, 2) == {"should"}


@both("wire-length.feed", "should")
def test_a_capacitor_on_a_supply_through_a_long_wire(figure, expected):
    """The wire on Metal3 from the port to below the plate is 4.5 um longer than the plate's place is far."""

    def review(x, limits=None, ampere=1e-7):
        planted = bank([(x, 40)], shared="vss")
        planted.mos("M1", "nmos", 0, 0, 2, 0.5, "out in vss vss")
        planted.comb("out", 8)
        planted.comb("in", 6)
        for end in planted.ends["vss"][1:]:
            planted.column("vss", *end, -8)
        stated = {"device_currents": [{"device": "M1", "current": ampere}]}
        return planted.review(limits=limits, constraints=stated)

    words, metal = "ohm of wires lie between the port of vss", GF.conductor("Metal3")
    (short,) = (e for e in review(50, {"wire-length.feed": {"should": 5}}).findings if words in e.why)
    for ampere in (1e-7, 0.1):  # with the larger one, another finding names the transistor, not the plate
        found = review(50 + (figure - short.measured) * WIRE / metal.sheet_ohm, ampere=ampere).findings
        assert {each.severity for each in found if words in each.why and "C0" in each.devices} == expected
        assert any("are lost between its port and M1" in each.why for each in found) == (ampere > 1e-7)


@both("group-apart.ratio", "must", "should")
def test_a_bipolar_transistor_of_two_units_beside_that_of_one(figure, expected):
    """All in one row; the one of one unit is so many halves of its distance to the nearest of the others off centre."""
    planted, off = Planted(), 30 * figure / (1 + figure / 2)
    for name, x, net in (("Q1", 0, "a"), ("Q2", 120, "a"), ("Q3", 60 - off, "b")):
        planted.npn(name, x, 30, f"{net} {net} vss")
    planted.mos("M1", "pmos", 160, 20, 2, 1, "b a vdd vdd")
    planted.mos("M2", "pmos", 168, 20, 2, 1, "a a vdd vdd")
    for track, net in enumerate(planted.ends):
        planted.comb(net, 10.0 + track)
    assert severities(planted.review(), "group-apart", "lie about none of Q3") == expected


def test_a_cell_that_holds_all_emitters_of_a_transistor_has_no_units_to_place():
    sizes = ((0, 1000), (9000, 4000))
    devices = [
        SimpleNamespace(index=x, area=size**2, centre=(x, 0), boxes=[kdb.Box(x, 0, x + size, size)])
        for x, size in sizes
    ]
    subject = SimpleNamespace(um=float, finding=lambda _, figure, *_args, **_options: figure)
    for number, device in enumerate(devices):
        device.id = f"Q{number}"
    assert ratio_apart(subject, SimpleNamespace(devices=devices), must=True) == 0
    devices[1].boxes *= 2
    assert ratio_apart(subject, SimpleNamespace(devices=devices), must=True) > 0


@pytest.mark.parametrize(("places", "expected"), [((0, 30, 60), {"must"}), ((0, 60, 30), set())])
def test_bipolar_transistors_in_a_ratio_with_currents_of_their_own(places, expected):
    """On one base, two units with one emitter beside or about one with another: a difference of two junctions."""
    planted = Planted()
    for name, x, nets in zip(("Q1", "Q2", "Q3"), places, ("a b e", "a b e", "c b f"), strict=True):
        planted.npn(name, x, 30, nets)
    for x, net in ((100, "e"), (130, "f")):
        planted.bar(f"R{net}", x, 0, 1, 10, f"{net} vss", upright=False)
    planted.mos("M1", "pmos", 160, 20, 2, 1, "c a vdd vdd")
    planted.mos("M2", "pmos", 168, 20, 2, 1, "a a vdd vdd")
    for track, net in enumerate(planted.ends):
        planted.comb(net, 10.0 + track)
    assert severities(planted.review(), "group-apart", "lie about none of Q3") == expected


@both("passives.noise", "should")
def test_a_supply_under_a_capacitor(figure, expected):
    planted = bank([(40, 30)])
    planted.mos("M1", "nmos", 0, 0, 2, 0.5, "out in vss vss")
    planted.mos("M2", "pmos", 4, 0, 2, 0.5, "out in vdd vdd")
    for end in planted.ends["vss"][1:]:
        planted.column("vss", *end, -8)
    planted.box("Metal3", -2, -8 - WIRE / 2, 10, -8 + WIRE / 2, "vss")
    for net, track in (("in", 6.0), ("out", 8.0), ("vdd", 12.0)):
        planted.comb(net, track)
    planted.box("Metal3", 4, 12 - WIRE / 2, 50.2, 12 + WIRE / 2, "vdd")
    planted.box("Metal3", 50, 12, 50.2, 35, "vdd")
    planted.box("Metal3", 45 - 5 * figure, 34, 50.2, 34.5, "vdd")
    assert severities(planted.review(), "passives", "under capacitor") == expected


@both("passives.noise", "should")
def test_an_input_under_a_capacitor_on_the_output(figure, expected):
    """The plates couple the output into the input below them; the other net of theirs is a port."""
    planted = amplifier()
    planted.plate("C1", 80, 40, 5, "out b")
    planted.label("b", "Metal4", 79.5, 39.5)
    planted.box("Metal3", planted.ends["out"][0][0], 18.5 - WIRE / 2, 90, 18.5 + WIRE / 2, "out")
    planted.via3("out", 89.8, 18.5)
    planted.square("Via4", 89.8, 18.5, 0.26)
    planted.box("Metal5", 89.6, 18.3, 90, 43, "out")
    planted.box("Metal5", 82, 42, 90, 43, "out")
    planted.box("Metal3", planted.ends["inp"][0][0], 16 - WIRE / 2, 95, 16 + WIRE / 2, "inp")
    planted.box("Metal3", 94.7, 16, 95, 44, "inp")
    planted.box("Metal3", 85 - 5 * figure, 43.7, 95, 44, "inp")
    assert severities(planted.review(), "passives", "wires of inp run") == expected


@both("passives.noise", "should")
def test_an_input_under_a_capacitor_of_a_later_stage(figure, expected):
    """One plate is on the output of the first stage, which is quiet itself."""
    planted = amplifier()
    planted.plate("C1", 80, 40, 5, "outn b")
    planted.label("b", "Metal4", 79.5, 39.5)
    planted.box("Metal3", planted.ends["outn"][0][0], 30 - WIRE / 2, 90, 30 + WIRE / 2, "outn")
    planted.via3("outn", 89.8, 30)
    planted.square("Via4", 89.8, 30, 0.26)
    planted.box("Metal5", 89.6, 29.8, 90, 43, "outn")
    planted.box("Metal5", 82, 42, 90, 43, "outn")
    planted.box("Metal3", planted.ends["inp"][0][0], 16 - WIRE / 2, 95, 16 + WIRE / 2, "inp")
    planted.box("Metal3", 94.7, 16, 95, 44, "inp")
    planted.box("Metal3", 85 - 5 * figure, 43.7, 95, 44, "inp")
    assert severities(planted.review(), "passives", "wires of inp run") == expected


@both("passives.noise", "should")
@pytest.mark.parametrize(
    ("driver", "cards"), [("out", ["a b"]), ("a", ["a b"]), ("a", ["a m", "m b"]), ("a", ["m b", "m a"])]
)
def test_a_wire_over_a_resistor(figure, expected, driver, cards):
    """The bar is 1 um wide; what an inverter drives disturbs it, but for a resistor at that net itself.

    The bar may be several in series, in any order.
    """
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 2, 0.5, f"{driver} in vss vss")
    planted.mos("M2", "pmos", 4, 0, 2, 0.5, f"{driver} in vdd vdd")
    planted.bar("R1", 20, 0, 1, 20, "a b")
    long = 20 // len(cards)
    planted.cards[-1:] = [f"R{at} {nets} vss ppolyf_u W=1u L={long}u" for at, nets in enumerate(cards, 1)]
    for net, track in (("in", 6.0), ("vdd", 12.0), ("vss", -8.0), ("a", -4.0), ("b", 25.0)):
        planted.comb(net, track)
    if driver == "out":
        planted.comb("out", 8.0)
    planted.box("Metal3", planted.ends[driver][0][0], 8 - WIRE / 2, 20 + figure, 8 + WIRE / 2, driver)
    if driver == "a":
        for x, y in planted.ends["a"][:2]:
            planted.column("a", x, y, 8)
    assert severities(planted.review(), "passives", "over resistor R") == (expected if driver == "out" else set())


# ---- coupling


def amplifier():
    """Return an amplifier of two stages; the net between them is of high impedance."""
    planted = pair()
    planted.mos("M4", "pmos", 0, 22, 4, 1, "outp outp vdd vdd")
    planted.mos("M5", "pmos", 8, 22, 4, 1, "outn outp vdd vdd")
    planted.mos("M6", "pmos", 16, 22, 4, 1, "out outn vdd vdd")
    planted.mos("M7", "nmos", 16, 0, 4, 1, "out bias vss vss")
    tracks = {"outp": 29.0, "outn": 30.0, "inp": 16.0, "inn": 17.0, "tail": 7.0, "bias": -3.0, "vss": -5.0, "vdd": 34.0}
    for net, track in {**tracks, "out": 18.5}.items():
        planted.comb(net, track, port=net not in {"tail", "outp", "outn"})
    return planted


@pytest.mark.parametrize(("quiet", "y"), [("outn", 30.0), ("inp", 16.0)])
@both("coupling", "must", "should")
def test_a_quiet_net_beside_the_output(figure, expected, quiet, y):
    planted = amplifier()
    for net, track, x, at in ((quiet, y, 62.0, 40.0), ("out", 18.5, 58.0, 42.0)):
        planted.box("Metal3", planted.ends[net][0][0], track - WIRE / 2, x, track + WIRE / 2, net)
        planted.via3(net, x - 0.2, track)
        planted.box("Metal4", x - 0.34, min(track, at), x - 0.06, max(track, at) + 0.2, net)
    space = 1.5 * GF.conductor("Metal4").space * 1e-3
    planted.box("Metal4", 61.8, 40.0, 200.0, 40.0 + WIRE, quiet)
    planted.box("Metal4", 57.8, 42.0, 90.0, 42.0 + WIRE, "out")
    planted.box("Metal4", 90.0, 40 + WIRE + space, 90 + figure, 42 + WIRE, "out")
    assert severities(planted.review(), "coupling", f"{quiet} runs") == expected


@pytest.mark.parametrize(("joined", "between"), [(True, False), (False, False), (True, True)])
def test_a_capacitor_couples_its_ends_on_purpose(joined, between):
    """Its top plate is on the output, its bottom plate on a net that runs along it, maybe by a resistor, or another."""
    planted = amplifier()
    bottom = "outn" if joined else "inp"
    for net, track, x, at in (("outn", 30.0, 62.0, 40.0), ("out", 18.5, 58.0, 42.0), ("inp", 16.0, 66.0, 30.0)):
        planted.box("Metal3", planted.ends[net][0][0], track - WIRE / 2, x, track + WIRE / 2, net)
        planted.via3(net, x - 0.2, track)
        planted.box("Metal4", x - 0.34, min(track, at), x - 0.06, max(track, at) + 0.2, net)
    space = 1.5 * GF.conductor("Metal4").space * 1e-3
    planted.box("Metal4", 61.8, 40.0, 120.0, 40.0 + WIRE, "outn")
    planted.box("Metal4", 57.8, 40 + WIRE + space, 120, 42 + WIRE, "out")
    planted.plate("C9", 130, 35, 5, f"out {'z' if between else bottom}")
    if between:
        planted.bar("R9", 100, 10, 1, 10, "outn z")
        start = planted.ends["outn"][-1]
        planted.column("outn", *start, 5.0)
        planted.box("Metal3", start[0], 5 - WIRE / 2, 115, 5 + WIRE / 2, "outn")
        planted.via3("outn", 115, 5)
        planted.box("Metal4", 115 - WIRE / 2, 5, 115 + WIRE / 2, 40.1, "outn")
        planted.comb("z", 26.0, right=140, port=False)
        planted.via3("z", 139, 26.0)
        planted.box("Metal4", 139 - WIRE / 2, 26, 139 + WIRE / 2, 36, "z")
        planted.box("Metal4", 135, 34, 139, 36, "z")
    else:
        planted.box("Metal4", 119, 40, 131, 40 + WIRE, "outn") if joined else planted.box(
            "Metal4", 65.7, 30, 131, 35, "inp"
        )
    planted.square("Via4", 119, 42, 0.26)
    planted.box("Metal5", 118, 41, 134, 42.5, "out")
    planted.box("Metal5", 131, 36, 134, 42.5, "out")
    found = severities(planted.review(limits={"coupling.share": {"must": None}}), "coupling", "outn runs")
    assert found == (set() if joined else {"must"})


@pytest.mark.parametrize(
    ("card", "port", "expected"),
    [
        ("", "", {"a", "z"}),
        ("M1 q z vss vss nfet_03v3 W=1u L=1u", "", {"z"}),
        ("R2 z vss vss ppolyf_u W=1u L=9u", "", {"z"}),
        ("", "z", {"z"}),
    ],
)
def test_a_resistor_in_series_with_a_capacitor(card, port, expected):
    """A gate senses the node between, a second resistor makes it a divider, or it is a port: no compensation."""
    cards = f"R1 a z vss ppolyf_u W=1u L=9u\nC1 out z cap_mim_2f0_m4m5_noshield W=5u L=5u\n{card}"
    text = f"* joined\n.subckt TOP a out q vss {port}\n{cards}\n.ends\n"
    found = joined_by_capacitors(read_netlist(NetlistText(text), identify_modules=False))
    assert found == {frozenset((net, "out")) for net in expected}


@pytest.mark.parametrize("plates", [1, 2])
@both("coupling.charge", "must", "should")
def test_a_net_that_keeps_a_charge_beside_a_logic_net(figure, expected, plates):
    """Two capacitors between signals and a transistor that resets them: one capacitor alone may be a filter's."""
    planted = bank([(8.0 * number, 40) for number in range(plates)])
    planted.mos("M1", "nmos", 0, 0, 2, 0.5, "x rst vss vss")
    planted.mos("M2", "nmos", 30, 0, 2, 0.5, "q in vss vss")
    planted.mos("M3", "pmos", 34, 0, 2, 0.5, "q in vdd vdd")
    for net, track, port in (("rst", 5.0, True), ("q", 7.0, True), ("in", 6.0, True), ("vdd", 12.0, True)):
        planted.comb(net, track, port=port)
    for end in planted.ends["vss"][1:]:
        planted.column("vss", *end, -8)
    planted.box("Metal3", -2, -8 - WIRE / 2, 36, -8 + WIRE / 2, "vss")
    planted.comb("x", 20.0, right=60, port=False)
    planted.via3("x", 2.3, 20.0)
    planted.square("Via4", 2.3, 20.0, 0.26)
    planted.box("Metal5", 2.0, 19.8, 2.6, 43, "x")
    space = 1.5 * GF.conductor("Metal3").space * 1e-3
    planted.box("Metal3", planted.ends["in"][0][0], 6 - WIRE / 2, 80, 6 + WIRE / 2, "in")
    planted.box("Metal3", 79.7, 6, 80, 20 - WIRE / 2 - space, "in")
    planted.box("Metal3", 60 - figure, 20 - 1.5 * WIRE - space, 80, 20 - WIRE / 2 - space, "in")
    review = planted.review(limits={"coupling.share": {"must": None}, "coupling.run": {"should": None}})
    assert severities(review, "coupling", "x runs") == (expected if plates > 1 else set())


@pytest.mark.parametrize(("gates", "expected"), [(("un", "dn"), {"should"}), (("vcp", "vcn"), set())])
def test_the_output_of_a_charge_pump_over_an_inverter(gates, expected):
    """Switches pass on the currents of two mirrors; where biases hold their gates, it is the output of an amplifier."""
    planted, (up, down) = Planted(), gates
    planted.mos("M1", "nmos", 0, 0, 2, 1, "bn bn vss vss")
    planted.mos("M2", "nmos", 5, 0, 2, 1, "n1 bn vss vss")
    planted.mos("M3", "nmos", 10, 0, 2, 0.5, f"ctl {down} n1 vss")
    planted.mos("M4", "pmos", 0, 30, 2, 1, "bp bp vdd vdd")
    planted.mos("M5", "pmos", 8, 30, 2, 1, "p1 bp vdd vdd")
    planted.mos("M6", "pmos", 16, 30, 2, 0.5, f"ctl {up} p1 vdd")
    planted.mos("M7", "nmos", 30, 0, 2, 0.5, "un u vss vss")
    planted.mos("M8", "pmos", 34, 30, 2, 0.5, "un u vdd vdd")
    for track, net in enumerate(planted.ends):
        planted.comb(net, 8.0 + track, port=net not in {"n1", "p1"})
    planted.box("Metal3", 10, 1, 33, 1 + WIRE, "ctl")
    x, y = planted.ends["ctl"][0]
    planted.square("Via2", x, 1 + WIRE / 2, 0.26)
    planted.box("Metal2", x - WIRE / 2, 1, x + WIRE / 2, y, "ctl")
    assert severities(planted.review(), "coupling", "run 1") == expected


@pytest.mark.parametrize(("inverter", "expected"), [(True, {"should"}), (False, set())])
def test_the_gate_of_a_mirror_beside_what_swings_from_rail_to_rail(inverter, expected):
    """An output of an amplifier disturbs it little; that of an inverter does."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 2, 1, "bn bn vss vss")
    planted.mos("M2", "nmos", 5, 0, 2, 1, "x bn vss vss")
    planted.mos("M3", "nmos", 10, 0, 2, 0.5, "out in vss vss")
    planted.mos("M4", "pmos", 14, 0, 2, 0.5, f"out {'in' if inverter else 'bp'} vdd vdd")
    tracks = {"bn": 5.0, "x": 6.0, "in": 7.0, "bp": 9.0, "out": 8.0, "vdd": 14.0, "vss": -8.0}
    for net in planted.ends:
        planted.comb(net, tracks[net])
    space = 1.5 * GF.conductor("Metal3").space * 1e-3
    planted.box("Metal3", planted.ends["bn"][0][0], 5 - WIRE / 2, 90, 5 + WIRE / 2, "bn")
    planted.box("Metal3", planted.ends["out"][0][0], 8 - WIRE / 2, 90, 8 + WIRE / 2, "out")
    planted.box("Metal3", 60, 5 + WIRE / 2 + space, 60 + WIRE, 8, "out")
    planted.box("Metal3", 60, 5 + WIRE / 2 + space, 90, 5 + 1.5 * WIRE + space, "out")
    assert severities(planted.review(), "coupling", "bn runs") == expected


@pytest.mark.parametrize("steering", [True, False])
def test_pairs_that_steer_the_currents_of_mirrors_into_one_net(steering):
    """They are a charge pump, whose output is quiet and whose gates are loud; with common gates they are inputs."""
    planted, gates = Planted(), ("up", "upb") if steering else ("dn", "dnb")
    planted.mos("M1", "nmos", 0, 0, 2, 1, "bn bn vss vss")
    planted.mos("M2", "nmos", 5, 0, 2, 1, "n1 bn vss vss")
    planted.mos("M3", "nmos", 10, 0, 2, 0.5, "ctl dn n1 vss")
    planted.mos("M4", "nmos", 15, 0, 2, 0.5, "dump dnb n1 vss")
    planted.mos("M5", "pmos", 0, 30, 2, 1, "bp bp vdd vdd")
    planted.mos("M6", "pmos", 8, 30, 2, 1, "p1 bp vdd vdd")
    planted.mos("M7", "pmos", 16, 30, 2, 0.5, f"ctl {gates[0]} p1 vdd")
    planted.mos("M8", "pmos", 24, 30, 2, 0.5, f"dump {gates[1]} p1 vdd")
    for track, net in enumerate(planted.ends):
        planted.comb(net, 8.0 + track, port=net not in {"n1", "p1"})
    x, space = planted.ends["ctl"][0][0], 1.5 * GF.conductor("Metal3").space * 1e-3
    low = 8.0 + list(planted.ends).index("ctl")
    planted.box("Metal3", x, low - WIRE / 2, 70, low + WIRE / 2, "ctl")
    top = 8.0 + list(planted.ends).index("dn")
    planted.box("Metal3", planted.ends["dn"][0][0], top - WIRE / 2, 75, top + WIRE / 2, "dn")
    planted.box("Metal3", 74.7, min(low, top), 75, max(low, top), "dn")
    planted.box("Metal3", 60, low + WIRE / 2 + space, 75, low + 1.5 * WIRE + space, "dn")
    review = planted.review(limits={"coupling.run": {"should": None}})
    assert bool(severities(review, "coupling", "ctl runs")) == steering


@both("coupling", "must", "should")
def test_a_clock_beside_what_a_switch_passes_on(figure, expected):
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 2, 0.5, "a clk b vss")
    planted.mos("M2", "pmos", 6, 0, 2, 0.5, "a clkb b vdd")
    planted.mos("M3", "nmos", 14, 0, 2, 0.5, "clkb clk vss vss")
    planted.mos("M4", "pmos", 18, 0, 2, 0.5, "clkb clk vdd vdd")
    tracks = {"a": 5.0, "b": 7.0, "clk": -3.0, "clkb": 9.0, "vdd": 14.0, "vss": -8.0}
    for net in planted.ends:
        planted.comb(net, tracks[net], port=net != "clkb")
    space = 1.5 * GF.conductor("Metal3").space * 1e-3
    planted.box("Metal3", planted.ends["a"][0][0], 5 - WIRE / 2, 60, 5 + WIRE / 2, "a")
    planted.box("Metal3", planted.ends["clk"][0][0], -3 - WIRE / 2, 80, -3 + WIRE / 2, "clk")
    planted.box("Metal3", 79.7, -3, 80, 5 - WIRE / 2 - space, "clk")
    planted.box("Metal3", 60 - figure, 5 - 1.5 * WIRE - space, 80, 5 - WIRE / 2 - space, "clk")
    assert severities(planted.review(limits={"coupling.share": {"must": None}}), "coupling", "a runs") == expected


@pytest.mark.parametrize(("control", "expected"), [("other", {"should"}), ("clk", set())])
def test_a_control_through_a_switch_of_a_signal(control, expected):
    """A wire over the whole height of the channel of another switch than the one that it turns on."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "a clk b vss")
    planted.mos("M2", "pmos", 6, 0, 4, 1, "a clkb b vdd")
    planted.mos("M3", "nmos", 16, 0, 4, 1, "a other c vss")
    planted.mos("M4", "pmos", 22, 0, 4, 1, "a otherb c vdd")
    tracks = {"a": 8.0, "b": 9.0, "c": 10.0, "clk": 12.0, "other": 13.0, "clkb": 14.0, "otherb": 15.0, "vdd": 16.0}
    tracks["vss"] = -8.0
    for net in planted.ends:
        planted.comb(net, tracks[net])
    planted.box("Metal3", 1.0, tracks[control] - WIRE / 2, 18, tracks[control] + WIRE / 2, control)
    planted.via3(control, 1.1, tracks[control])
    planted.box("Metal4", 0.9, -0.5, 1.3, tracks[control], control)
    assert severities(planted.review(), "coupling", "not connect to: M1") == expected


def test_what_a_diode_holds_is_not_quiet():
    """outp is on the diode of the load, and bias comes from outside."""
    review = amplifier().review()
    assert not any({"outp", "bias", "tail"} & set(each.nets) for each in review.findings if each.id == "coupling")


def clock_beside_an_input(figure):
    """Review a pair whose input and tail, on a clock, run side by side."""
    planted = pair()
    planted.cards[-1] = planted.cards[-1].replace("bias", "clk")
    planted.ends["clk"] = planted.ends.pop("bias")
    wired(planted, clk=-3.0)
    space = 1.5 * GF.conductor("Metal3").space * 1e-3
    planted.box("Metal3", planted.ends["inp"][0][0], 18 - WIRE / 2, 60, 18 + WIRE / 2, "inp")
    planted.box("Metal3", planted.ends["clk"][0][0], -3 - WIRE / 2, 80, -3 + WIRE / 2, "clk")
    planted.box("Metal3", 80, -3 - WIRE / 2, 80 + WIRE, 18 - WIRE / 2 - space, "clk")
    planted.box("Metal3", 60 - figure, 18 - 1.5 * WIRE - space, 80 + WIRE, 18 - WIRE / 2 - space, "clk")
    return planted.review(limits={"coupling.share": {"must": None}})


@both("coupling", "must", "should")
def test_a_clock_beside_an_input(figure, expected):
    assert severities(clock_beside_an_input(figure), "coupling", "inp runs") == expected


@both("coupling.short", "should")
def test_a_clock_beside_a_short_part_of_an_input(figure, expected):
    assert severities(clock_beside_an_input(figure), "coupling", "beside or over inp, an input") == expected


@pytest.mark.parametrize("share", [0.9, 1.1])
def test_a_clock_beside_a_large_part_of_an_input(share):
    """The input is a track of 60 um and a column of 3.4 um; the clock lies beside less than makes a must by itself."""
    planted = pair()
    planted.cards[-1] = planted.cards[-1].replace("bias", "clk")
    planted.ends["clk"] = planted.ends.pop("bias")
    wired(planted, clk=-3.0)
    left, space = planted.ends["inp"][0][0], 1.5 * GF.conductor("Metal3").space * 1e-3
    planted.box("Metal3", left, 18 - WIRE / 2, left + 60, 18 + WIRE / 2, "inp")
    planted.box("Metal3", planted.ends["clk"][0][0], -3 - WIRE / 2, 80, -3 + WIRE / 2, "clk")
    planted.box("Metal3", 80, -3 - WIRE / 2, 80 + WIRE, 18 - WIRE / 2 - space, "clk")
    start = left + 60 - share * limit("coupling.share", "must") * 64
    planted.box("Metal3", start, 18 - 1.5 * WIRE - space, 80 + WIRE, 18 - WIRE / 2 - space, "clk")
    assert severities(planted.review(), "coupling", "inp runs") == {"must" if share > 1 else "should"}


@pytest.mark.parametrize("diode", [True, False])
def test_an_output_that_a_diode_holds_is_a_bias(diode):
    """From the drain of a source to a port; the diode of a mirror on it makes it a bias for other circuits."""
    planted = pair()
    planted.mos("M4", "pmos", 10, 22, 4, 1, "b pb vdd vdd")
    planted.mos("M5", "pmos", 18, 22, 4, 1, "pb pb vdd vdd")
    planted.mos("M6", "nmos", 26, 0, 4, 1, f"b {'b' if diode else 'inb'} vss vss")
    planted.mos("M7", "nmos", 32, 0, 4, 1, "x b vss vss")
    tracks = {"outp": 29.0, "outn": 30.0, "inp": 16.0, "inn": 17.0, "tail": 7.0, "bias": -3.0, "vss": -5.0, "vdd": 34.0}
    tracks |= {"b": 18.5, "pb": 35.0, "inb": 36.0, "x": 37.0}
    for net in planted.ends:
        planted.comb(net, tracks[net], port=net != "tail")
    x, y = planted.ends["b"][0][0], 18.5
    planted.via3("b", x, y)
    planted.square("Via4", x, y, 0.26)
    planted.box("Metal5", 2.4, y - 0.2, x + 0.2, y + 0.2, "b")
    planted.box("Metal5", 2.4, 8.5, 2.8, y, "b")
    assert bool(severities(planted.review(), "coupling", "wires of b run")) != diode


@both("coupling.through", "should")
def test_an_output_through_a_pair(figure, expected):
    """A wire over the middle of a pair, between its gates, from above; the diffusion is 4 um high."""
    planted = amplifier()
    x, y = planted.ends["out"][0][0], 18.5
    planted.via3("out", x, y)
    planted.square("Via4", x, y, 0.26)
    planted.box("Metal5", 2.4, y - 0.2, x + 0.2, y + 0.2, "out")
    planted.box("Metal5", 2.4, 14 - 4 * figure, 2.8, y, "out")
    assert severities(planted.review(), "coupling", "through differential pair") == expected


@pytest.mark.parametrize("logic", [True, False])
@pytest.mark.parametrize("share", [0.95, 1.05])
def test_what_switches_through_a_mirror(share, logic):
    """A wire over the diode of a mirror from above; an input of an amplifier has no edges."""
    planted, net = amplifier(), "clk" if logic else "inp"
    planted.mos("M8", "nmos", 40, 0, 2, 1, "q clk vss vss")
    planted.mos("M9", "pmos", 40, 22, 4, 1, "q clk vdd vdd")
    for name, track in (("clk", 38.0), ("q", 37.0), ("vss", -5.0), ("vdd", 34.0)):
        planted.comb(name, track)
    x, y = planted.ends[net][-1][0], 38.0 if logic else 16.0
    planted.via3(net, x, y)
    planted.square("Via4", x, y, 0.26)
    planted.box("Metal5", 1.0, y - 0.2, x + 0.2, y + 0.2, net)
    reach = (1 + 2 * SIDE) * share * limit("coupling.edges", "must")
    planted.box("Metal5", 1.0, *((26 - reach, 1.4, y) if logic else (y, 1.4, 22 + reach)), net)
    found = severities(planted.review(), "coupling", "through current mirror M4, M5")
    assert found == {"must" if logic and share > 1 else "should"}


@pytest.mark.parametrize(("spaces", "expected"), [(1.8, {"should"}), (2.2, set())])
def test_the_distance_from_which_on_nets_do_not_couple(spaces, expected):
    """7 um side by side, at so many times the minimum space."""
    planted = pair()
    planted.cards[-1] = planted.cards[-1].replace("bias", "clk")
    planted.ends["clk"] = planted.ends.pop("bias")
    wired(planted, clk=-3.0)
    space = spaces * GF.conductor("Metal3").space * 1e-3
    planted.box("Metal3", planted.ends["inp"][0][0], 18 - WIRE / 2, 57, 18 + WIRE / 2, "inp")
    planted.box("Metal3", planted.ends["clk"][0][0], -3 - WIRE / 2, 80, -3 + WIRE / 2, "clk")
    planted.box("Metal3", 80, -3 - WIRE / 2, 80 + WIRE, 18 - WIRE / 2 - space, "clk")
    planted.box("Metal3", 50, 18 - 1.5 * WIRE - space, 80 + WIRE, 18 - WIRE / 2 - space, "clk")
    assert severities(planted.review(), "coupling", "inp runs") == expected


@pytest.mark.parametrize("shielded", [False, True])
@both("coupling", "must", "should")
def test_a_quiet_net_below_the_output(figure, expected, shielded):
    """A wire two levels up couples as one beside, but not through metal between them."""
    planted = amplifier()
    x, y = planted.ends["inp"][0][0], 60.0
    planted.via3("inp", x, 16.0)
    planted.box("Metal4", x - 0.14, 16.0, x + 0.14, y, "inp")
    planted.via3("inp", x, y - 0.14)
    planted.box("Metal3", x - 0.14, y - WIRE, 100.0, y, "inp")
    out = planted.ends["out"][0][0]
    planted.via3("out", out, 18.5)
    planted.square("Via4", out, 18.5, 0.26)
    planted.box("Metal5", out - 0.2, 18.3, out + 0.2, y, "out")
    planted.box("Metal5", out - 0.2, y - WIRE, out + figure, y, "out")
    if shielded:
        planted.box("Metal4", out + 0.5, y - 1, out + figure + 1, y + 1)
    found = severities(planted.review(), "coupling", "inp runs")
    assert found == (set() if shielded else expected)


@pytest.mark.parametrize(("replica", "expected"), [("vdd", {"should"}), ("other", set())])
def test_a_switch_beside_a_reference(replica, expected):
    """A transistor beside an equal one that is always on is a switch; one that draws from a diode is a reference."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "a dn vss vss")
    planted.mos("M2", "nmos", 6, 0, 4, 1, f"b {replica} vss vss")
    planted.mos("M3", "nmos", 12, 0, 4, 1, "c ref vss vss")
    planted.mos("M4", "nmos", 18, 10, 4, 1, "x bias a vss")
    planted.mos("M5", "nmos", 24, 10, 4, 1, "bias bias b vss")
    planted.mos("M6", "pmos", 30, 22, 4, 1, "c c vdd vdd")
    planted.mos("M7", "pmos", 38, 22, 4, 1, "bias c vdd vdd")
    tracks = {"dn": -3.0, "ref": -4.0, "a": 8.0, "b": 9.0, "c": 20.0, "x": 18.0, "bias": 17.0, "vss": -8.0, "vdd": 30.0}
    for net in planted.ends:
        planted.comb(net, tracks.get(net, -2.0), port=net not in {"a", "b", "c"})
    space = 1.5 * GF.conductor("Metal3").space * 1e-3
    planted.box("Metal3", planted.ends["dn"][0][0], -3 - WIRE / 2, 60, -3 + WIRE / 2, "dn")
    planted.box("Metal3", planted.ends["ref"][0][0], -4 - WIRE / 2, 80, -4 + WIRE / 2, "ref")
    planted.box("Metal3", 50, -3 - 1.5 * WIRE - space, 80, -3 - WIRE / 2 - space, "ref")
    planted.box("Metal3", 79.7, -4, 80, -3 - WIRE / 2 - space, "ref")
    assert severities(planted.review(), "coupling", "ref runs") == expected


@both("passives.noise", "should")
def test_the_input_of_a_single_transistor_under_a_capacitor(figure, expected):
    """Neither plate is on a net of the transistor."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 0.5, "y in vss vss")
    planted.bar("R1", 10, 0, 1, 10, "y vdd", upright=False)
    for net, track in {"y": 20, "in": 8, "vss": -4, "vdd": 22}.items():
        planted.comb(net, track)
    planted.plate("C1", 30, 30, 5, "a b")
    planted.label("a", "Metal5", 32, 32)
    planted.label("b", "Metal4", 29.5, 29.5)
    planted.box("Metal3", planted.ends["in"][0][0], 8 - WIRE / 2, 40, 8 + WIRE / 2, "in")
    planted.box("Metal3", 39.7, 8, 40, 32, "in")
    planted.box("Metal3", 35 - 5 * figure, 31.7, 40, 32, "in")
    assert severities(planted.review(), "passives", "wires of in run") == expected


@pytest.mark.parametrize(("plate", "expected"), [(True, set()), (False, {"should"})])
def test_the_metal_of_a_dummy_plate_leads_somewhere(plate, expected):
    """Both of its ends are on ground, and the netlist has it not; without the plate it is metal alone."""
    planted = bank([(0, 0), (9, 0)])
    planted.plate("C9", 18, 0, 5, "vss vss")
    planted.cards.pop()
    for x, layer, top in ((19, "Metal4", -1), (21, "Metal5", 1)):
        planted.box(layer, x - 0.2, -8.2, x + 0.2, top)
        planted.via3("vss", x, -8)
    planted.square("Via4", 21, -8, 0.26)
    planted.mos("M1", "nmos", -20, 0, 4, 1, "y x vss vss")
    for net, track in (("y", -12), ("x", -10), ("vss", -8)):
        planted.comb(net, track, right=22 if net == "vss" else None, port=net == "y")
    planted.box("Metal4", -19.2, -10.2, 2.7, -9.8)
    planted.via3("x", -19, -10)
    planted.box("Metal4", 2.3, -10.2, 2.7, -9.8)
    planted.box("Metal5", 2.3, -10.2, 2.7, 3, "x")
    planted.square("Via4", 2.5, -10, 0.26)
    if not plate:
        planted.erase("FuseTop", 17, -1, 25, 7)
        planted.erase("Via4", 17, -1, 25, 7)
    assert severities(planted.review(), "dead-metal", "of vss lead nowhere") == expected


@pytest.mark.parametrize(("coupled", "expected"), [(True, {"should"}), (False, set())])
def test_a_signal_that_a_capacitor_couples_in_under_another_one(coupled, expected):
    """A port on nothing but a plate carries a signal; a bias on a gate as well as a plate stands still."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, "a b vss vss")
    if not coupled:
        planted.mos("M2", "nmos", 8, 0, 4, 1, "rf rf vss vss")
    planted.plate("C1", 30, 20, 5, "rf b")
    planted.plate("C2", 50, 20, 5, "x a")
    planted.label("x", "Metal5", 52, 22)
    for net, track in (("a", 10), ("b", 12), ("vss", -4)):
        if net in planted.ends:
            planted.comb(net, track, right=60 if net == "a" else 40 if net == "b" else None)
    planted.via3("b", 31, 12)
    planted.box("Metal4", 30.8, 12, 31.2, 20, "b")
    planted.via3("a", 51, 10)
    planted.box("Metal4", 50.8, 10, 51.2, 20, "a")
    planted.box("Metal3", 45, 22, 60, 22.3, "rf")
    planted.via3("rf", 46, 22.15)
    planted.square("Via4", 46, 22.15, 0.26)
    planted.box("Metal5", 34, 22, 46.2, 22.4, "rf")
    if not coupled:
        planted.comb("rf", 16, right=60.2)
        planted.box("Metal3", 60, 16, 60.2, 22.3, "rf")
    else:
        planted.label("rf", "Metal3", 59, 22.15)
    assert severities(planted.review(), "passives", "wires of rf run") == expected
