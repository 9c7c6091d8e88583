"""LVS matches what is right and tells what is wrong: every failure that the issue lists, each with kind and words."""

from itertools import pairwise

import klayout.db as kdb
import pytest
from transistor_sketch import Sketch

from layoutkit.circuit import Circuit, Device
from layoutkit.draw.mos import MosSize, MosSpec, draw_mos, transistor
from layoutkit.extract.extractor import extract
from layoutkit.lvs.compare import compare
from layoutkit.lvs.shorts import with_shorts_located
from layoutkit.technology import load

TECHNOLOGIES = ["generic", "sky130A"]
PORTS = ("inp", "inn", "out", "bias", "vdd", "vss")
# A five-transistor OTA: id, kind, w, l [dbu], nets d g s b, fingers
OTA = (
    ("M1", "nmos", 2000, 500, "n1 inp tail vss", 2),
    ("M2", "nmos", 2000, 500, "out inn tail vss", 2),
    ("M3", "pmos", 3000, 500, "n1 n1 vdd vdd", 1),
    ("M4", "pmos", 3000, 500, "out n1 vdd vdd", 1),
    ("M5", "nmos", 1500, 1000, "tail bias vss vss", 4),
)


def device(name, kind, w, length, nets, fingers, *, m=1):
    params = {"w": w * fingers * 1e-9, "l": length * 1e-9, "nf": fingers, "m": m}
    return Device(name, kind, kind, params, dict(zip("dgsb", nets.split(), strict=True)))


def circuit(cards=OTA, ports=PORTS):
    return Circuit("ota", tuple(device(*card) for card in cards), ports)


def drawn(technology, cards=OTA, ports=PORTS, *, texts=False, **renamed):
    """Return a sketch of the cards; ``renamed``: card -> its nets, w or l instead."""
    sketch = Sketch(load(technology))
    for name, kind, w, length, nets, fingers in cards:
        changed = {"w": w, "l": length, "nets": nets, **renamed.get(name, {})}
        sketch.mos(kind, changed["w"], changed["l"], changed["nets"], fingers=fingers, text=name if texts else None)
    for port in ports:
        sketch.label_rails(port)
    return sketch


def lvs(sketch, reference=None, **options):
    return compare(extract(sketch.layout, sketch.cell, sketch.technology), reference or circuit(), **options)


def kinds(result):
    return [mismatch.kind for mismatch in result.mismatches]


def words(result):
    return "\n".join(f"{m.kind}: {m.message} ({m.cause})" for m in result.mismatches)


technologies = pytest.mark.parametrize("technology", TECHNOLOGIES)
with_and_without_texts = pytest.mark.parametrize("texts", [False, True])


@technologies
def test_the_right_layout_matches(technology):
    result = lvs(drawn(technology))
    assert result.matched, words(result)
    assert result.mismatches == ()
    assert result.net_pairs["tail" if "tail" in result.net_pairs else "out"] == "out"
    assert sorted(ref for refs in result.device_pairs.values() for ref in refs) == ["M1", "M2", "M3", "M4", "M5"]
    assert set(result.net_pairs.values()) == {*PORTS, "n1", "tail"}


def test_the_order_of_devices_and_the_sides_of_source_and_drain_do_not_matter():
    turned = [
        (name, kind, w, length, " ".join(nets.split()[i] for i in (2, 1, 0, 3)), fingers)
        for name, kind, w, length, nets, fingers in reversed(OTA)
    ]
    assert lvs(drawn("generic"), circuit(turned)).matched


def test_a_multiplier_parallel_devices_and_fingers_are_the_same_width():
    halves = [card for card in OTA if card[0] != "M5"]
    halves += [(f"M5{part}", "nmos", 1500, 1000, "tail bias vss vss", 2) for part in "ab"]
    assert lvs(drawn("generic"), circuit(halves)).matched
    assert lvs(drawn("generic", halves)).matched
    units = [device(*card) for card in OTA[:4]] + [device("M5", "nmos", 1500, 1000, "tail bias vss vss", 2, m=2)]
    assert lvs(drawn("generic"), Circuit("ota", tuple(units), PORTS)).matched


@technologies
@with_and_without_texts
def test_swapped_drains_of_a_pair_are_found(technology, texts):
    swapped = {"M1": {"nets": "out inp tail vss"}, "M2": {"nets": "n1 inn tail vss"}}
    result = lvs(drawn(technology, texts=texts, **swapped))
    assert not result.matched
    (mismatch,) = result.mismatches
    if texts:  # the device texts say that the gates are right
        assert mismatch.kind == "swapped_nets"
        assert set(mismatch.reference) == {"n1", "out"}
        assert "at M1.d, M2.d" in mismatch.message
    else:
        assert mismatch.kind == "swapped_ports"
        assert set(mismatch.reference) == {"inp", "inn"}
        assert "wires of M1, M2 are crossed at drains or gates" in mismatch.cause


def test_swapped_drains_of_a_bare_pair_are_found_though_the_circuit_is_symmetric():
    pair = OTA[:2]
    ports = ("inp", "inn", "n1", "out", "tail", "vss")
    swapped = {"M1": {"nets": "out inp tail vss"}, "M2": {"nets": "n1 inn tail vss"}}
    assert lvs(drawn("generic", pair, ports), circuit(pair, ports)).matched
    result = lvs(drawn("generic", pair, ports, **swapped), circuit(pair, ports))
    assert not result.matched
    assert kinds(result) == ["swapped_ports"]
    assert set(result.mismatches[0].reference) == {"n1", "out"}
    assert "M1.d" in result.mismatches[0].message
    assert "M2.d" in result.mismatches[0].message


@technologies
@with_and_without_texts
@pytest.mark.parametrize(
    ("card", "nets", "net", "cut_off"),
    [
        ("M5", "cut bias vss vss", "tail", "M5.d"),
        ("M3", "cut n1 vdd vdd", "n1", "M3.d"),
        ("M1", "n1 cut tail vss", "inp", "M1.g"),
        ("M4", "cut n1 vdd vdd", "out", "M4.d"),
        ("M2", "out inn - vss", "tail", "M2.s"),
    ],
)
def test_an_open_is_found(technology, texts, card, nets, net, cut_off):
    result = lvs(drawn(technology, texts=texts, **{card: {"nets": nets}}))
    assert "open" in kinds(result), words(result)
    opened = next(m for m in result.mismatches if m.kind == "open")
    assert opened.reference == (net,)
    assert cut_off in opened.message or net in PORTS


@technologies
@with_and_without_texts
@pytest.mark.parametrize(
    ("one", "other"), [("n1", "out"), ("tail", "n1"), ("inp", "inn"), ("tail", "vss"), ("bias", "vdd"), ("out", "inn")]
)
def test_a_short_is_found(technology, texts, one, other):
    sketch = drawn(technology, texts=texts)
    low, high = sorted((sketch.rails[one], sketch.rails[other]))
    sketch.box(sketch.metal[1], -4900, low - 300, -4600, high)
    for rail in (low, high):
        sketch.square(sketch.technology.cuts[1].layer, -4750, rail - 150)
    result = lvs(sketch)
    assert "short" in kinds(result), words(result)
    short = next(m for m in result.mismatches if m.kind == "short")
    assert set(short.reference) == {one, other}
    assert short.layout[0][1] is not None


def located(sketch):
    """Return the comparison of a sketch with its shorts located."""
    return with_shorts_located(
        sketch.layout,
        lvs(sketch),
        lambda layout: compare(extract(layout, layout.cell(sketch.cell.name), sketch.technology), circuit()),
    )


@technologies
@pytest.mark.parametrize(
    ("one", "other"), [("inp", "inn"), ("bias", "vdd"), ("out", "inn"), ("n1", "out"), ("tail", "vss"), ("inp", "n1")]
)
def test_a_short_is_told_by_the_shape_that_makes_it_and_nothing_that_follows_from_it(technology, one, other):
    sketch = drawn(technology)
    low, high = sorted((sketch.rails[one], sketch.rails[other]))
    sketch.box(sketch.metal[1], -4900, low - 300, -4600, high)
    for rail in (low, high):
        sketch.square(sketch.technology.cuts[1].layer, -4750, rail - 150)
    (mismatch,) = located(sketch).mismatches
    assert mismatch.kind == "short"
    assert set(mismatch.reference) == {one, other}
    ((_, place),) = mismatch.layout
    assert abs(place.x + 4.75) <= 0.15  # the middle of the box or of a cut below it
    assert (low - 300) / 1000 <= place.y <= high / 1000


@technologies
def test_one_shape_over_three_labelled_wires_is_one_finding(technology):
    sketch = drawn(technology)
    rails = sorted((sketch.rails[name], name) for name in ("inp", "inn", "out", "bias", "vdd", "vss"))
    (low, _), _, (high, _) = rails[:3]
    sketch.box(sketch.metal[2], -4100, low - 200, -3900, high - 100)  # over the labels, at x = -4 um
    (mismatch,) = located(sketch).mismatches
    crossed = {name for name, rail in sketch.rails.items() if low <= rail <= high}
    assert (mismatch.kind, set(mismatch.reference)) == ("short", crossed & {name for _, name in rails})
    ((layer, place),) = mismatch.layout
    assert layer == sketch.metal[2]
    assert (place.x, place.y) == pytest.approx((-4.0, (low + high - 300) / 2000))


def test_a_short_that_is_drawn_twice_is_told_by_its_shape():
    sketch = drawn("generic")
    low, high = sorted((sketch.rails["inp"], sketch.rails["inn"]))
    for _ in range(2):
        sketch.box(sketch.metal[1], -4900, low - 300, -4600, high)
        for rail in (low, high):
            sketch.square(sketch.technology.cuts[1].layer, -4750, rail - 150)
    assert kinds(located(sketch)) == ["short"]


@technologies
@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize(("one", "other"), [("inp", "inn"), ("out", "inn"), ("n1", "out"), ("tail", "vss")])
def test_shapes_that_each_short_the_same_nets_are_one_finding_with_all_places(technology, one, other, count):
    sketch = drawn(technology)
    low, high = sorted((sketch.rails[one], sketch.rails[other]))
    for x in range(-4750, -4750 - 700 * count, -700):
        sketch.box(sketch.metal[1], x - 150, low - 300, x + 150, high)
        for rail in (low, high):
            sketch.square(sketch.technology.cuts[1].layer, x, rail - 150)
            sketch.box(sketch.metal[2], x - 300, rail - 300, -4000, rail)
    (mismatch,) = located(sketch).mismatches
    assert (mismatch.kind, set(mismatch.reference)) == ("short", {one, other})
    assert sorted(round((-4.75 - place.x) / 0.7, 2) for _, place in mismatch.layout) == list(range(count))
    assert (" both" if count == 2 else " all") in mismatch.cause
    assert all((low - 300) / 1000 <= place.y <= high / 1000 for _, place in mismatch.layout)


def test_a_cut_is_told_rather_than_the_wire_that_it_joins():
    """Without the bridge or either of its cuts nothing is wrong; a cut is what must not be there."""
    sketch = drawn("generic")
    rail, other = sketch.rails["inp"], sketch.rails["inn"]
    sketch.box(sketch.metal[1], -4900, min(rail, other) - 300, -4600, max(rail, other))
    sketch.square(sketch.technology.cuts[1].layer, -4750, rail - 150)
    sketch.square(sketch.technology.cuts[1].layer, -4750, other - 150)
    ((layer, _),) = located(sketch).mismatches[0].layout
    assert layer in {cut.name for cut in sketch.technology.cuts}


def test_a_second_fault_is_told_beside_a_short():
    sketch = drawn("generic", M2={"w": 2500})
    low, high = sorted((sketch.rails["inp"], sketch.rails["inn"]))
    sketch.box(sketch.metal[1], -4900, low - 300, -4600, high)
    for rail in (low, high):
        sketch.square(sketch.technology.cuts[1].layer, -4750, rail - 150)
    result = located(sketch)
    assert kinds(result) == ["short", "wrong_parameter"], words(result)
    assert not result.matched


def test_two_labelled_wires_that_overlap_are_told_by_the_place_of_the_overlap():
    sketch = drawn("generic")
    order = sorted(sketch.rails, key=sketch.rails.get)
    one, other = next(pair for pair in pairwise(order) if set(pair) <= set(PORTS))
    sketch.box(sketch.metal[2], -4100, sketch.rails[one] - 250, -3900, sketch.rails[other] - 200)
    (mismatch,) = located(sketch).mismatches
    assert "overlap" in mismatch.message
    assert set(mismatch.reference) == {one, other}
    ((_, place),) = mismatch.layout
    assert (place.x, place.y) == (-4.0, (sketch.rails[other] - 250) / 1000)


@technologies
def test_a_wrong_width_is_found(technology):
    result = lvs(drawn(technology, M2={"w": 2005}))
    assert kinds(result) == ["wrong_parameter"], words(result)
    message = result.mismatches[0].message
    assert message.startswith("W of M2 is 4.01 um in the layout (2 fingers at (")
    assert message.endswith("4 um in the netlist (2 fingers)")


@technologies
def test_a_wrong_length_is_found(technology):
    result = lvs(drawn(technology, M4={"l": 505}))
    assert kinds(result) == ["wrong_parameter"], words(result)
    assert result.mismatches[0].message.startswith("L of M4 is 0.505 um in the layout (1 finger at (")


def test_one_wrong_size_among_devices_that_only_their_sizes_tell_apart_is_the_only_one_told():
    """Six transistors on nets without labels look alike; each is compared with the one of its size."""
    cards = [(f"M{i}", "nmos", 1000 + 250 * i, 500 + 100 * (i % 3), f"d{i} g{i} s{i} vss", 1) for i in range(6)]
    result = lvs(drawn("generic", cards[::-1], ("vss",), M4={"w": 3100}), circuit(cards, ("vss",)))
    assert kinds(result) == ["wrong_parameter"], words(result)
    assert result.mismatches[0].reference == ("M4",)


def test_one_finger_of_wrong_length_is_found():
    sketch = drawn("generic", [card for card in OTA if card[0] != "M5"])
    for length in (1000, 1000, 1005, 1000):
        sketch.mos("nmos", 1500, length, "tail bias vss vss")
    result = lvs(sketch.label_rails("bias"))
    assert kinds(result) == ["wrong_parameter"], words(result)
    assert result.mismatches[0].message.startswith("L of M5 is 1.005 um in the layout (1 finger at (")


@technologies
@with_and_without_texts
@pytest.mark.parametrize("missing", [card[0] for card in OTA])
def test_a_missing_device_is_found(technology, texts, missing):
    result = lvs(drawn(technology, [card for card in OTA if card[0] != missing], texts=texts))
    assert kinds(result) == ["missing_device"], words(result)
    assert result.mismatches[0].reference == (missing,)


@technologies
def test_an_extra_device_is_found(technology):
    sketch = drawn(technology)
    sketch.mos("nmos", 1000, 500, "n1 out vss vss")
    result = lvs(sketch)
    assert kinds(result) == ["extra_device"], words(result)
    assert result.mismatches[0].layout[0][1] is not None


@technologies
def test_a_swapped_port_is_found(technology):
    sketch = drawn(technology, ports=PORTS[2:])
    sketch.label_rails(inp="inn", inn="inp")
    result = lvs(sketch)
    assert not result.matched
    assert kinds(result) == ["swapped_ports"], words(result)
    assert {"inp", "inn"} <= set(result.mismatches[0].reference)


@technologies
@pytest.mark.parametrize(("kind", "bulk"), [("nmos", "vss"), ("pmos", "vdd")])
def test_a_floating_bulk_is_found(technology, kind, bulk):
    untapped = {name: {"nets": " ".join([*nets.split()[:3], "-"])} for name, own, _, _, nets, _ in OTA if own == kind}
    result = lvs(drawn(technology, **untapped))
    assert set(kinds(result)) == {"floating_bulk"}, words(result)
    assert bulk in result.mismatches[0].reference
    assert "no contacted tap" in result.mismatches[0].cause


def test_without_labels_every_port_is_missing_and_told_where():
    result = lvs(drawn("generic", ports=()))
    assert kinds(result) == ["missing_port"] * len(PORTS)
    gate = next(m for m in result.mismatches if m.reference == ("bias",))
    assert gate.layout[0][1] is not None


def test_a_label_beside_its_metal_is_the_cause_of_a_missing_port():
    sketch = drawn("generic", ports=PORTS[:-1])
    sketch.label("vss", -4000, 500_000)
    result = lvs(sketch)
    assert kinds(result) == ["missing_port"]
    assert "lies beside the shapes of metal3" in result.mismatches[0].cause
    assert any("lies beside" in warning for warning in result.warnings)


def test_a_port_on_metal_that_reaches_nothing_is_open():
    sketch = drawn("generic", M5={"nets": "tail cut vss vss"})
    result = lvs(sketch)
    assert kinds(result) == ["open"]
    assert "reaches no transistor" in result.mismatches[0].message


def test_one_label_on_two_nets_is_open_and_two_labels_on_one_net_are_a_short():
    sketch = drawn("generic")
    sketch.label_rails(tail="out")
    assert "open" in kinds(lvs(sketch))
    sketch = drawn("generic")
    sketch.label_rails(out="inp")
    assert "short" in kinds(lvs(sketch))


def test_a_label_may_name_an_inner_net_but_not_the_wrong_one():
    sketch = drawn("generic")
    assert lvs(sketch.label_rails("tail")).matched
    result = lvs(drawn("generic").label_rails(tail="n1", n1="tail"))
    assert not result.matched
    assert set(result.mismatches[0].reference) == {"n1", "tail"}


def test_a_pin_that_the_netlist_does_not_have_is_told_and_a_mere_label_is_a_warning():
    sketch = drawn("generic")
    sketch.label("note", -3000, sketch.rail("tail") - 150)
    result = lvs(sketch)
    assert result.matched
    assert "label 'note'" in result.warnings[0]
    for port in PORTS:
        sketch.label(port, -4500, sketch.rail(port) - 150, pin=True)
    assert lvs(sketch).matched
    sketch.label("spare", -3500, sketch.rail("tail") - 150, pin=True)
    assert kinds(lvs(sketch)) == ["extra_port"]


@technologies
@pytest.mark.parametrize(
    "fault", ["no pin", "pin beside its label", "pin of another metal", "no label", "label off metal"]
)
def test_a_port_is_a_label_on_metal_with_a_pin_shape_below_it(technology, fault):
    """Magic makes a port of a label with the purpose of pins only; netgen then finds no pin of that name."""
    sketch = drawn(technology, ports=PORTS[1:])
    for port in PORTS[1:]:
        sketch.label(port, -4500, sketch.rail(port) - 150, pin=True)
    x, y = -4500, sketch.rail("inp") - 150
    pins = sketch.technology.conductors
    if fault != "no label":
        sketch.label("inp", x, y + (500 if fault == "label off metal" else 0))
    if fault in {"pin beside its label", "no label"}:
        sketch.square(pins[2].pin_layer, x + (1000 if fault == "pin beside its label" else 0), y, 50)
    elif fault == "pin of another metal":
        sketch.square(pins[1].pin_layer, x, y, 50)
    result = lvs(sketch)
    (mismatch,) = result.mismatches
    assert (mismatch.kind, mismatch.reference) == ("missing_port", ("inp",))
    if "pin" in fault:
        assert f"no shape of {pins[2].pin_layer} below its label at (-4.5, {y / 1000:g}) um" in mismatch.message
    sketch.label("inp", x, y, pin=True)
    assert lvs(sketch).matched


@technologies
def test_a_layout_with_labels_alone_matches_with_a_warning(technology):
    result = lvs(drawn(technology))
    assert result.matched
    assert result.warnings[0].startswith("the layout has no pin shapes")
    sketch = drawn(technology, ports=PORTS[1:])
    for port in PORTS:  # a text on the layer of pins is a label with a pin
        sketch.cell.shapes(sketch.technology.layer(sketch.layout, sketch.technology.conductors[2].pin_layer)).insert(
            kdb.Text(port, kdb.Trans(-4500, sketch.rail(port) - 150))
        )
    result = lvs(sketch)
    assert (result.matched, result.warnings) == (True, ())


def test_labels_match_regardless_of_case_unless_nets_differ_in_it():
    sketch = drawn("generic", ports=PORTS[:-1])
    sketch.label_rails(vss="VSS")
    assert lvs(sketch).matched
    cards = [(*OTA[0][:4], "N1 inp tail vss", 2), *OTA[1:]]
    assert not lvs(sketch, circuit(cards)).matched


@pytest.mark.parametrize("nets", ["vss vss vss vss", "tail vss tail vss", "- vss tail vss"])
def test_dummies_do_not_disturb_and_are_told(nets):
    sketch = drawn("generic")
    sketch.mos("nmos", 2000, 500, nets, fingers=1)
    result = lvs(sketch)
    assert result.matched, words(result)
    (dummy,) = result.to_json()["dummies"]
    assert (dummy["w_um"], dummy["l_um"]) == (2.0, 0.5)


def test_dummies_that_the_netlist_asks_for_must_be_there():
    cards = (*OTA, ("MD", "nmos", 2000, 500, "vss vss vss vss", 2))
    assert lvs(drawn("generic", cards), circuit(cards)).matched
    result = lvs(drawn("generic"), circuit(cards))
    assert kinds(result) == ["missing_device"]
    assert result.mismatches[0].reference == ("MD",)


def test_a_bulk_on_the_wrong_net_is_found():
    result = lvs(drawn("generic", M3={"nets": "n1 n1 vdd out"}))
    assert not result.matched
    assert "M3.b" in words(result)


def test_the_tolerance_is_what_it_says():
    sketch = drawn("generic", M2={"w": 2005})
    assert lvs(sketch, tolerance=0.0026).matched
    assert not lvs(sketch, tolerance=0.0024).matched


def test_a_width_off_the_grid_matches_the_nearest_grid_points_and_nothing_else():
    cards = [("M1", "nmos", 1003.4, 500, "d g s vss", 2)]
    ports = ("d", "g", "s", "vss")
    for width, matches in ((1005, True), (1000, False), (1010, False)):
        sketch = drawn("generic", [("M1", "nmos", width, 500, "d g s vss", 2)], ports)
        assert lvs(sketch, circuit(cards, ports), tolerance=1e-4).matched is matches


def test_transistors_of_different_length_in_parallel_are_held_apart():
    cards = [("M1", "nmos", 1000, 500, "d g s vss", 1), ("M2", "nmos", 1000, 600, "d g s vss", 1)]
    ports = ("d", "g", "s", "vss")
    assert lvs(drawn("generic", cards[::-1], ports), circuit(cards, ports)).matched
    both_short = drawn("generic", [cards[0], cards[0]], ports)
    assert kinds(lvs(both_short, circuit(cards, ports)))[0] in {"wrong_parameter", "missing_device"}


def test_another_number_of_fingers_matches_with_a_warning():
    cards = [(*OTA[0][:2], 4000, 500, OTA[0][4], 1), *OTA[1:]]
    result = lvs(drawn("generic", cards))
    assert result.matched
    assert result.warnings[-1] == "M1 has 1 finger in the layout, 2 in the netlist"


def test_an_empty_layout_lacks_every_device_and_port():
    result = lvs(Sketch(load("generic")))
    assert sorted(set(kinds(result))) == ["missing_device", "missing_port"]
    assert result.mismatch_count == len(OTA) + len(PORTS)


def test_an_empty_netlist_finds_every_device_extra():
    assert kinds(lvs(drawn("generic"), Circuit("none"))) == ["extra_device"] * 5


def test_nothing_against_nothing_is_no_match():
    result = lvs(Sketch(load("generic")), Circuit("none"))
    assert not result.matched
    assert kinds(result) == ["nothing_compared"]


def test_a_gate_left_out_of_extraction_spoils_the_match():
    sketch = drawn("generic")
    sketch.box("poly", 100_000, 0, 100_500, 3000)
    sketch.box("active", 99_000, 1000, 101_500, 2000)
    result = lvs(sketch)
    assert kinds(result) == ["unrecognised_device"]
    assert result.mismatches[0].layout[0][1] == (100.25, 1.5)


def test_mismatches_are_bounded_and_counted():
    cards = [(f"M{i}", "nmos", 1000, 500, f"d{i} g{i} s{i} vss", 1) for i in range(60)]
    result = lvs(Sketch(load("generic")), circuit(cards, ()))
    assert (len(result.mismatches), result.mismatch_count) == (50, 60)


def test_the_same_layout_compares_the_same_twice():
    sketch = drawn("generic", M1={"nets": "out inp tail vss"})
    extraction = extract(sketch.layout, sketch.cell, sketch.technology)
    first, second = (compare(extraction, circuit()).to_json() for _ in range(2))
    assert first == second


@technologies
@pytest.mark.parametrize("kind", ["nmos", "pmos"])
@pytest.mark.parametrize(("fingers", "units", "rows", "dummies"), [(1, 1, 1, 0), (3, 2, 2, 1), (4, 1, 1, 2)])
def test_generated_transistors_come_back_as_asked_for(technology, kind, fingers, units, rows, dummies):
    process, layout = load(technology), kdb.Layout()
    layout.dbu = process.dbu_um
    nets = {"d": "d", "g": "g", "s": "s", "b": "b"}
    size = MosSize(fingers * 1.005e-6, 0.5e-6, fingers, units)
    asked = transistor(process, "M1", kind, size, nets)
    module = draw_mos(layout, process, MosSpec(asked, "X", dummies=dummies, rows=rows))
    params = {"w": size.w_m, "l": size.l_m, "nf": fingers, "m": units}
    reference = Circuit("x", (Device("M1", kind, kind, params, nets),), tuple("dgsb"))
    result = compare(extract(layout, module.cell, process), reference)
    assert result.matched, words(result)
    (device,) = result.extraction.devices
    assert (device.id, device.l_um, len(device.fingers)) == ("M1", 0.5, fingers * units)
    assert device.w_um == pytest.approx(1.005 * fingers * units, abs=1e-9)
    assert result.warnings == ()
