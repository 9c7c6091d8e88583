"""A layer that is drawn is judged or read, or reported as unchecked, unless it leaves nothing on the wafer."""

import klayout.db as kdb
import pytest
from drc_sketch import Sketch

from layoutkit.circuit.circuit import Circuit, Device
from layoutkit.draw.mos import MosSize, MosSpec, draw_mos, transistor
from layoutkit.drc.check import Options, check, check_cell, judged_layers
from layoutkit.errors import GeometryError, LayoutkitError
from layoutkit.extract.extractor import extract
from layoutkit.lvs.compare import compare
from layoutkit.technology import load, names
from layoutkit.technology.technology import NOT_ON_A_MASK, PURPOSES

REAL = [name for name in names() if name != "generic"]
DEEP_WELLS = {"sky130A": ("dnwell", "dnwell.3"), "gf180mcuD": ("DNWELL", "DN.2b"), "sg13g2": ("nBuLay", "NBL.c")}
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
    assert {spec.purpose for spec in layers} <= set(PURPOSES) - {"mask"}
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
    expected = {spec.gds for spec in unjudged if spec.purpose not in NOT_ON_A_MASK}
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
        ("sg13g2", "Substrate"),
        ("sg13g2", "Recog.esd"),
        ("sky130A", "npn"),
        ("sky130A", "areaid.ed"),
        ("gf180mcuD", "WELL_DIODE_MK"),
        ("gf180mcuD", "NAT"),
        ("gf180mcuD", "Resistor"),  # it excludes resistors, but means another device elsewhere
    ],
)
def test_a_layer_without_rules_makes_both_checks_incomplete_until_it_is_waived(name, layer):
    technology = load(name)
    gds = technology.spec(layer).gds
    layout, cell, circuit = a_transistor(technology)
    cell.shapes(layout.layer(*gds)).insert(kdb.Box(0, 0, 1000, 1000).moved(100000, 0))
    assert_incomplete(layout, cell, technology, circuit, {gds}, layer)


@pytest.mark.parametrize("name", sorted(names()))
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
    waived = check_cell(layout, cell, technology, Options(waived_layers=[waiver]))
    assert (waived.complete, waived.passed) == (True, True)
    assert waived.to_data()["layers_waived"] == [f"{layer}/{datatype}" for layer, datatype in layers]
    matched = compare(extract(layout, cell, technology, waived_layers=[waiver]), circuit)
    assert (matched.complete, matched.matched) == (True, True)
    assert matched.to_json()["layers_waived"] == waived.to_data()["layers_waived"]


def a_transistor(technology):
    """Return a clean labelled transistor and its circuit."""
    layout = kdb.Layout()
    layout.dbu = technology.dbu_um
    spec = technology.device("nmos")
    nets = dict(zip("dgsb", ("d", "g", "s", "b"), strict=True))
    w_um, l_um = (technology.to_um(max(size, least)) for size, least in ((1000, spec.min_w), (500, spec.min_l)))
    device = transistor(technology, "M1", "nmos", MosSize(w_um * 1e-6, l_um * 1e-6, 1), nets)
    module = draw_mos(layout, technology, MosSpec(device, "nmos"))
    params = {"w": w_um * 1e-6, "l": l_um * 1e-6, "nf": 1, "m": 1}
    circuit = Circuit("one", (Device(id="M1", type="nmos", model=spec.name, params=params, terminals=nets),))
    return layout, module.cell, circuit


def test_a_waiver_of_no_layer_is_refused_with_all_such_names():
    layout, cell = with_boxes([(4, 0)])
    for refuse in (
        lambda: check_cell(layout, cell, load("generic"), Options(waived_layers=["metal1", "metal17", "a/b"])),
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
                assert check(*sketch.layout(), technology, rule_ids=[rule.id]).total_violations == violated, fill


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
    assert check(layout, cell, technology, rule_ids=["M1_MIN_WIDTH"]).passed
    assert check_cell(layout, cell, technology, Options(chosen_rules=True)).passed
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
    report = check(layout, cell, load("generic"), rule_ids=["M1_MIN_SPACE"])
    assert report.total_violations == 1
