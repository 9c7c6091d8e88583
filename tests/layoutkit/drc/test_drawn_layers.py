"""A layer that is drawn is judged or read, or reported as unchecked, unless it leaves nothing on the wafer."""

import json

import klayout.db as kdb
import pytest
from drc_sketch import Sketch

from layoutkit.circuit import Circuit, Device
from layoutkit.draw.mos import MosSize, MosSpec, draw_mos, transistor
from layoutkit.drc.check import Options, check, judged_layers
from layoutkit.errors import GeometryError, LayoutkitError
from layoutkit.extract.extractor import extract
from layoutkit.lvs.compare import compare
from layoutkit.technology import load
from layoutkit.technology.inspection import SCHEMA
from layoutkit.view.report_page import findings_of
from thorough import processes

REAL = [name for name in processes() if name != "generic"]
DEEP_WELLS = {"sky130A": ("dnwell", "dnwell.3"), "gf180mcuD": ("DNWELL", "DN.2b"), "sg13g2": ("nBuLay", "NBL.c")}
NOT_ON_THE_WAFER = {"pin", "text", "boundary", "exclusion", "annotation"}
# Layers of each process and what they are, read from its own layer list.
LAYERS = {
    "sky130A": {(64, 18): "well", (81, 23): "marker", (82, 44): "marker", (36, 28): "fill", (68, 5): "text"},
    "gf180mcuD": {(12, 0): "well", (204, 0): "well", (110, 5): "marker", (117, 5): "marker", (34, 4): "fill"},
    "sg13g2": {(32, 0): "well", (40, 0): "marker", (128, 0): "marker", (8, 22): "fill", (8, 24): "slot"},
}  # fmt: skip


def every_layer(technology):
    return [*technology.layers.values(), *technology.other_layers.values()]


def with_boxes(layers, dbu_um=0.001):
    """Return a layout with a box on each of the GDS ``layers``, far apart."""
    layout = kdb.Layout()
    layout.dbu = dbu_um
    cell = layout.create_cell("BOXES")
    for number, (layer, datatype) in enumerate(layers):
        cell.shapes(layout.layer(layer, datatype)).insert(kdb.Box(0, 0, 20000, 20000).moved(number * 100000, 0))
    return layout, cell


@pytest.mark.parametrize("name", REAL)
def test_a_process_declares_its_layers_with_their_purpose(name):
    technology = load(name)
    layers = every_layer(technology)
    assert len({spec.gds for spec in layers}) == len(layers) > 90
    assert {spec.purpose for spec in layers} <= {*SCHEMA.content["$defs"]["purpose"]["enum"]} - {"mask"}
    assert {gds: technology.layer_at(gds).purpose for gds in LAYERS[name]} == LAYERS[name]
    for conductor in technology.conductors:
        assert technology.spec(conductor.layer).fill or name == "generic"


@pytest.mark.parametrize("name", REAL)
def test_every_layer_on_the_wafer_is_judged_by_a_rule_or_reported_as_unchecked(name):
    technology = load(name)
    judged = judged_layers(technology, technology.rules)
    unjudged = [spec for spec in every_layer(technology) if spec.gds not in judged]
    layout, cell = with_boxes([spec.gds for spec in unjudged])
    report = check(layout, cell, technology)
    expected = {spec.gds for spec in unjudged if spec.purpose not in NOT_ON_THE_WAFER}
    assert {layer.gds for layer in report.coverage.unchecked} == expected
    assert len(expected) > 20
    assert (report.complete, report.passed) == (False, False)


@pytest.mark.parametrize("name", REAL)
def test_grid_and_angle_rules_judge_no_layer(name):
    technology = load(name)
    general = [rule for rule in technology.rules if rule.kind in {"grid", "angle"}]
    assert general
    assert judged_layers(technology, general) == set()


@pytest.mark.parametrize("name", REAL)
def test_two_tiny_deep_wells_next_to_each_other_violate(name):
    layer, spacing = DEEP_WELLS[name]
    sketch = Sketch(load(name)).box(layer, 0, 0, 100, 100).box(layer, 150, 0, 250, 100)
    report = check(*sketch.layout(), load(name))
    assert spacing in {verdict.rule.id for verdict in report.violated}


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("sg13g2", "BackMetal1"),
        ("sg13g2", "Recog.pcm"),
        ("sky130A", "areaid.ld"),
        ("sky130A", "areaid.fe"),
        ("gf180mcuD", "NEO_EE_MK"),
        ("gf180mcuD", "ZENER"),
        ("gf180mcuD", "FHRES"),
    ],
)
def test_a_layer_without_rules_makes_both_checks_incomplete_until_it_is_waived(name, layer):
    technology = load(name)
    gds = technology.spec(layer).gds
    layout, cell, circuit = a_transistor(technology)
    cell.shapes(layout.layer(*gds)).insert(kdb.Box(0, 0, 1000, 1000).moved(100000, 0))
    assert_incomplete(layout, cell, technology, circuit, {gds}, layer)


@pytest.mark.parametrize(
    ("name", "layer"), [("sg13g2", "dfpad"), ("sg13g2", "DigiBnd"), ("sky130A", "areaid.ft"), ("gf180mcuD", "OPC_drc")]
)
def test_a_marker_that_changes_rules_alone_leaves_lvs_complete(name, layer):
    technology = load(name)
    layout, cell, circuit = a_transistor(technology)
    cell.shapes(layout.layer(*technology.spec(layer).gds)).insert(kdb.Box(0, 0, 1000, 1000).moved(100000, 0))
    result = compare(extract(layout, cell, technology), circuit)
    assert (result.mismatches, result.complete, result.matched) == ((), True, True)


@pytest.mark.parametrize("name", sorted(processes()))
def test_a_layer_that_the_technology_does_not_name_makes_both_checks_incomplete(name):
    technology = load(name)
    layout, cell, circuit = a_transistor(technology)
    below = layout.create_cell("BELOW")
    below.shapes(layout.layer(250, 3)).insert(kdb.Box(0, 0, 100, 100))
    cell.insert(kdb.CellInstArray(below.cell_index(), kdb.Trans(100000, 0)))
    assert_incomplete(layout, cell, technology, circuit, {(250, 3)}, "250/3")


def assert_incomplete(layout, cell, technology, circuit, layers, waiver):
    report = check(layout, cell, technology)
    assert {layer.gds for layer in report.coverage.unchecked} == layers
    assert (report.total_violations, report.complete, report.passed) == (0, False, False)
    result = compare(extract(layout, cell, technology), circuit)
    assert {layer.gds for layer in result.extraction.coverage.unchecked} == layers
    assert (result.mismatches, result.complete, result.matched) == ((), False, False)
    waived = check(layout, cell, technology, Options(waived_layers=[waiver]))
    assert (waived.complete, waived.passed) == (True, True)
    assert waived.to_data()["layers_waived"] == [f"{layer}/{datatype}" for layer, datatype in layers]
    matched = compare(extract(layout, cell, technology, waived_layers=[waiver]), circuit)
    assert (matched.complete, matched.matched) == (True, True)
    assert matched.to_json()["layers_waived"] == waived.to_data()["layers_waived"]


def test_thousands_of_unknown_layers_are_counted_and_twenty_listed():
    technology = load("sky130A")
    layout, cell, circuit = a_transistor(technology)
    for number in range(2000):
        cell.shapes(layout.layer(1000 + number, 0)).insert(kdb.Box(0, 0, 100, 100))
    drc = check(layout, cell, technology).to_data()
    lvs = compare(extract(layout, cell, technology), circuit).to_json()
    for verdict in (drc, lvs):
        assert [layer["layer"] for layer in verdict["layers_unchecked"]] == [f"{1000 + n}/0" for n in range(20)]
        assert (verdict["layers_unchecked_count"], verdict["complete"]) == (2000, False)
        assert len(json.dumps(verdict)) < 8000
    shown = [each["text"] for each in findings_of({"drc": drc, "lvs": lvs})]
    assert sum("1980 more layers" in text for text in shown) == 2


def a_transistor(technology, model="nmos"):
    """Return a clean labelled transistor and its circuit."""
    layout = kdb.Layout()
    layout.dbu = technology.dbu_um
    spec = technology.device(model)
    nets = dict(zip("dgsb", ("d", "g", "s", "b"), strict=True))
    w_um, l_um = (technology.to_um(max(size, least)) for size, least in ((1000, spec.min_w), (500, spec.min_l)))
    device = transistor(technology, "M1", spec.name, MosSize(w_um * 1e-6, l_um * 1e-6, 1), nets)
    module = draw_mos(layout, technology, MosSpec(device, spec.name))
    params = {"w": w_um * 1e-6, "l": l_um * 1e-6, "nf": 1, "m": 1}
    circuit = Circuit("one", (Device(id="M1", type="nmos", model=spec.name, params=params, terminals=nets),))
    return layout, module.cell, circuit


# What the tools of the processes write beside a device: the layer, and the drawn layers that it covers, grown by um.
WRITTEN = {
    "sky130A": [("hvntm", ["diff"], 0.185), ("areaid.sc", ["diff", "tap"], 1.0), ("cfom.waffle_drop", ["diff"], 1.0)],
    "sg13g2": [("Substrate", ["pSD"], 0.0), ("HeatTrans", ["GatPoly"], 0.1), ("NoRCX", ["Activ"], 1.0),
               ("instance", ["Activ"], 1.0)],
}  # fmt: skip
MODELS = {"sky130A": "nfet_g5v0d10v5", "sg13g2": "nmos"}


def drawn_over(layout, cell, technology, name, layers, by_um):
    found = kdb.Region()
    for layer in layers:
        found += kdb.Region(cell.begin_shapes_rec(technology.layer(layout, layer)))
    by = round(by_um / layout.dbu)
    cell.shapes(technology.layer(layout, name)).insert(found.merged().sized(by).merged())


@pytest.mark.parametrize("name", sorted(WRITTEN))
def test_layers_that_tools_of_a_process_write_beside_devices_are_judged_and_read(name):
    technology = load(name)
    layout, cell, circuit = a_transistor(technology, MODELS[name])
    for layer, covered, by_um in WRITTEN[name]:
        drawn_over(layout, cell, technology, layer, covered, by_um)
    report = check(layout, cell, technology)
    assert (report.to_data()["layers_unchecked"], report.complete, report.passed) == ([], True, True)
    result = compare(extract(layout, cell, technology), circuit)
    assert (result.mismatches, result.complete, result.matched) == ((), True, True)


@pytest.mark.parametrize(("name", "layer", "rule"), [
    ("sky130A", "hvntm", "hvntm.10"), ("sg13g2", "Substrate", "Substrate.a"),
])  # fmt: skip
def test_such_a_layer_over_another_transistor_is_found_by_both_checks(name, layer, rule):
    technology = load(name)
    layout, cell, circuit = a_transistor(technology)
    drawn_over(layout, cell, technology, layer, [technology.role("active")], 0.3)
    assert rule in {verdict.rule.id for verdict in check(layout, cell, technology).violated}
    result = compare(extract(layout, cell, technology), circuit)
    assert "unrecognised_device" in {mismatch.kind for mismatch in result.mismatches}


def test_a_layer_that_only_says_which_rules_hold_needs_a_rule_that_refers_to_it():
    technology = load("sky130A")
    rules = [rule for rule in technology.rules if "areaid.sc" not in str(rule.options)]
    assert technology.spec("areaid.sc").gds in judged_layers(technology, technology.rules)
    assert technology.spec("areaid.sc").gds not in judged_layers(technology, rules)


@pytest.mark.parametrize(("rule", "gap", "violated"), [
    ("licon.11", 50, 1), ("licon.11", 55, 0), ("licon.11a", 50, 0), ("licon.11a", 45, 1),
])  # fmt: skip
def test_a_standard_cell_may_have_contacts_nearer_to_its_gates(rule, gap, violated):
    technology = load("sky130A")
    sketch = Sketch(technology).box("diff", 0, 0, 2000, 1000).box("poly", 1000, -200, 1150, 1200)
    sketch.box("licon1", 830 - gap, 400, 1000 - gap, 570)
    if rule == "licon.11a":
        sketch.box("areaid.sc", -500, -500, 2500, 1500)
    report = check(*sketch.layout(), technology, Options(rule_ids=["licon.11", "licon.11a"]))
    assert [(verdict.rule.id, verdict.count) for verdict in report.violated] == ([(rule, 1)] if violated else [])


@pytest.mark.parametrize(("level", "violated"), [("own", []), ("below", ["nwell.4", "LU.2", "LU.3"])])
def test_the_wells_of_a_cell_without_taps_are_its_ports_and_those_of_a_cell_below_it_are_not(level, violated):
    technology = load("sky130A")
    sketch = Sketch(technology).box("nwell", 0, 0, 4000, 2000).box("pdiff", 1000, 500, 2000, 1500)
    layout, cell = sketch.box("ndiff", 1000, -2000, 2000, -1000).layout()
    below = layout.create_cell("BELOW")
    cell.insert(kdb.CellInstArray(below.cell_index(), kdb.Trans()))
    for pin, y in (("nwell.pin", 1900), ("pwell.pin", -1900)):
        place = kdb.Box(0, y - 50, 100, y + 50)
        (cell if level == "own" else below).shapes(technology.layer(layout, pin)).insert(place)
    report = check(layout, cell, technology, Options(rule_ids=["nwell.4", "nwell.4.port", "LU.2", "LU.3", "LU.2.port"]))
    warned = ["nwell.4.port", "LU.2.port"] if level == "own" else []
    assert {verdict.rule.id for verdict in report.violated} == {*violated, *warned}
    assert report.passed == (not violated)


@pytest.mark.parametrize(("gap", "wired", "violated"), [
    (1800, False, []), (1795, False, ["NW.b1"]), (1795, True, []), (620, True, []), (615, True, ["NW.b"]),
])  # fmt: skip
def test_wells_that_a_wire_joins_may_be_nearer_to_each_other(gap, wired, violated):
    technology = load("sg13g2")
    sketch = Sketch(technology)
    for left in (0, 3000 + gap):
        sketch.box("NWell", left, 0, left + 3000, 3000).box("Activ", left + 1000, 1000, left + 2000, 2000)
        sketch.box("Cont", left + 1400, 1400, left + 1560, 1560)
    if wired:
        sketch.box("Metal1", 1000, 1300, 5000 + gap, 1700)
    report = check(*sketch.layout(), technology, Options(rule_ids=["NW.b", "NW.b1"]))
    assert [verdict.rule.id for verdict in report.violated] == violated


@pytest.mark.parametrize(("long", "violated"), [(160, []), (165, ["CntB.a1"]), (335, ["CntB.a1"]), (340, [])])
def test_a_contact_is_a_square_or_a_bar_of_the_least_length(long, violated):
    technology = load("sg13g2")
    sketch = Sketch(technology).box("Cont", 0, 0, 160, long)
    report = check(*sketch.layout(), technology, Options(rule_ids=["Cnt.a", "CntB.a", "CntB.a.max", "CntB.a1"]))
    assert [verdict.rule.id for verdict in report.violated] == violated


def test_what_is_drawn_beside_texts_need_not_lie_on_the_grid():
    technology = load("sky130A")
    for layer, violated in (("text", []), ("prBndry.boundary", ["x.1b"])):
        report = check(
            *Sketch(technology).box(layer, 1, 0, 1000, 1000).layout(), technology, Options(rule_ids=["x.1b", "x.3a"])
        )
        assert [verdict.rule.id for verdict in report.violated] == violated


def test_via_and_poly_of_another_name_count_as_those_they_are():
    technology = load("sg13g2")
    for left, violated in ((10840, []), (10835, ["TV1.b"])):
        sketch = (
            Sketch(technology).box("TopVia1", 10000, 10000, 10420, 10420).box("Vmim", left, 10000, left + 420, 10420)
        )
        report = check(*sketch.layout(), technology, Options(rule_ids=["TV1.a", "TV1.b"]))
        assert [verdict.rule.id for verdict in report.violated] == violated
    bar = Sketch(technology).box("GatPoly", 0, 0, 600, 1000).box("PolyRes", 600, 0, 3000, 1000)
    bar.box("GatPoly", 3000, 0, 3600, 1000).box("SalBlock", 600, -300, 3000, 1300)
    report = check(*bar.layout(), technology, Options(rule_ids=["Sal.d", "PolyRes.a", "Gat.b"]))
    assert not report.violated


def test_a_waiver_of_no_layer_is_refused_with_all_such_names():
    layout, cell = with_boxes([(4, 0)])
    for refuse in (
        lambda: check(layout, cell, load("generic"), Options(waived_layers=["metal1", "metal17", "a/b"])),
        lambda: extract(layout, cell, load("generic"), waived_layers=["metal1", "metal17", "a/b"]),
    ):
        with pytest.raises(LayoutkitError, match="'metal17', 'a/b'") as caught:
            refuse()
        assert caught.value.details["unknown"] == ["metal17", "a/b"]


@pytest.mark.parametrize("name", REAL)
def test_fill_of_a_conductor_counts_in_its_spacing(name):
    technology = load(name)
    for conductor in technology.conductors:
        rule = next(r for r in technology.rules if r.kind == "space" and r.options == {"layer": conductor.layer})
        for fill in technology.spec(conductor.layer).fill:
            for gap, violated in ((rule.value, 0), (rule.value - technology.grid, 1)):
                sketch = Sketch(technology).box(conductor.layer, 0, 0, 9000, 9000)
                sketch.box(fill, 9000 + gap, 0, 18000, 9000)
                assert check(*sketch.layout(), technology, Options(rule_ids=[rule.id])).total_violations == violated, (
                    fill
                )


@pytest.mark.parametrize("name", REAL)
def test_fill_conducts_and_a_slot_does_not(name):
    technology = load(name)
    first = technology.conductors[0]
    spec = technology.spec(first.layer)
    label = technology.spec(first.label_layer).gds

    def labelled(*bridges):
        sketch = Sketch(technology).box(first.layer, 0, 0, 4000, 1000).box(first.layer, 8000, 0, 12000, 1000)
        for layer, box in bridges:
            sketch.box(layer, *box)
        layout, cell = sketch.layout()
        for text, x in (("a", 500), ("b", 11500)):
            cell.shapes(layout.layer(*label)).insert(kdb.Text(text, kdb.Trans(x, 500)))
        nets = extract(layout, cell, technology).nets.values()
        return sorted(tuple(net.texts) for net in nets)

    assert labelled() == [("a",), ("b",)]
    for fill in spec.fill:
        assert labelled((fill, (3000, 0, 9000, 1000))) == [("a", "b")]
    for slot in spec.slots:
        whole = (first.layer, (3000, 0, 9000, 1000))
        assert labelled(whole, (slot, (5000, -1000, 6000, 2000))) == [("a",), ("b",)]


@pytest.mark.parametrize("name", REAL)
def test_crossing_fill_is_no_transistor_and_poly_across_fill_is_one_unknown(name):
    technology = load(name)
    poly, active = technology.role("poly"), technology.role("active")
    poly_fill, active_fill = (technology.spec(layer).fill[0] for layer in (poly, active))
    for gate, expected in ((poly_fill, 0), (poly, 1)):
        sketch = Sketch(technology).box(active_fill, 0, 0, 3000, 1000).box(gate, 1000, -1000, 1500, 2000)
        extraction = extract(*sketch.layout(), technology)
        assert len(extraction.devices) + len(extraction.dummies) + len(extraction.ignored["nmos"]) == expected, gate


def test_chosen_rules_need_not_judge_every_layer():
    layout, cell = with_boxes([(4, 0), (250, 3)])
    technology = load("generic")
    assert check(layout, cell, technology, Options(rule_ids=["M1_MIN_WIDTH"])).passed
    assert check(layout, cell, technology, Options(chosen_rules=True)).passed
    assert not check(layout, cell, technology).passed


@pytest.mark.parametrize(("dbu_um", "reach_um", "fits"), [
    (0.01, 3e6, False), (0.00254, 60e3, False), (0.01, 1e6, True), (0.00254, 2e3, True), (0.001, 1e6, True),
])  # fmt: skip
def test_a_cell_that_needs_more_than_32_bits_in_working_units_is_refused(dbu_um, reach_um, fits):
    layout = kdb.Layout()
    layout.dbu = dbu_um
    cell = layout.create_cell("FAR")
    at, metal = round(reach_um / dbu_um), layout.layer(4, 0)
    for left in (at - 600, at - 300):  # too near to each other in any of these units
        cell.shapes(metal).insert(kdb.Box(left, 0, left + 298, 1000))
    if not fits:
        with pytest.raises(GeometryError, match=r"FAR reaches to .* um"):
            check(layout, cell, load("generic"))
        return
    report = check(layout, cell, load("generic"), Options(rule_ids=["M1_MIN_SPACE"]))
    assert report.total_violations == 1
