"""Every rule of every shipped technology keeps and breaks one grid step apart (S0.8; see drc_sketch)."""

import klayout.db as kdb
import pytest
from drc_sketch import BIG, SKETCHES, Sketch, cases, pairs, with_rule

from layoutkit.drc.check import Options, check
from layoutkit.drc.kinds import KINDS
from layoutkit.technology import load, names
from layoutkit.technology.technology import AREA_KINDS, DIMENSIONLESS_KINDS
from thorough import THOROUGH

TECHNOLOGIES = {name: load(name) for name in names()}
BASES = {name: {rule.id: rule for rule in TECHNOLOGIES[name].rules} for name in TECHNOLOGIES}
ALL_RULES = [
    (name, rule)
    for name, technology in TECHNOLOGIES.items()
    for rule in technology.rules
    if THOROUGH or BASES.get(technology.based_on, {}).get(rule.id) != rule  # what a process takes over is drawn there
]
RULES = [(name, rule) for name, rule in ALL_RULES if rule.kind != "unchecked"]
UNCHECKED = [(name, rule) for name, rule in ALL_RULES if rule.kind == "unchecked" and "layer" in rule.options]
OWN_RULES = [
    {"kind": "notch", "layer": "metal1", "value": 0.3},
    {"kind": "overlap", "layer": "metal1", "other": "metal2", "value": 0.3},
    {"kind": "gate_length", "layer": "gate", "active": "active", "value": 0.3},
    {"kind": "min_length", "layer": "metal1", "value": 0.5},
    {"kind": "max_length", "layer": "metal1", "value": 2.0},
    {"kind": "max_width", "layer": "metal1", "value": 2.0},
    {"kind": "max_ratio", "layer": "metal1", "value": 5.0},
    {"kind": "space", "layer": "metal1", "notches": "ignored", "value": 0.3},
    {"kind": "wide_space", "layer": "metal1", "wide_um": 2.0, "value": 0.5},
    {"kind": "wide_space", "layer": "metal1", "wide_um": 2.0, "attached_um": 0.5, "value": 0.5},
    {"kind": "wide_space", "layer": "metal1", "wide_um": 2.0, "long_edges_um": 8.0, "value": 0.5},
    {"kind": "max_area", "layer": "metal1", "value": 4.0},
    {"kind": "bent_width", "layer": "metal1", "value": 0.3},
    {"kind": "bent_width", "layer": "metal1", "longer_um": 0.5, "value": 0.3},
    {"kind": "bent_space", "layer": "metal1", "value": 0.3},
    {"kind": "count", "layer": "metal1", "inner": "via1", "value": 3},
    {"kind": "array_space", "layer": "via1", "array_um": 1.82, "value": 0.36},
    {"kind": "array_space", "layer": "via1", "array_um": 1.82, "crossing_um": 0.34, "value": 0.36},
    {"kind": "abutting_width", "layer": "metal1", "abutting": "metal2", "ends": "one", "value": 0.5},
    {"kind": "abutting_width", "layer": "metal1", "abutting": "metal2", "ends": "both", "value": 0.5},
    {"kind": "abutting_space", "layer": "metal1", "abutting": "metal2", "value": 0.2},
    {"kind": "abutting_flush", "layer": "metal1", "abutting": "metal2"},
    {"kind": "widest", "layer": "metal1", "value": 0.5},
    {"kind": "widest", "layer": "metal1", "abutting": "metal2", "value": 0.5},
    {"kind": "space", "layer": "metal1", "nets": "different", "value": 0.5},
    {"kind": "space", "layer": "metal1", "nets": "same", "value": 0.5},
    {"kind": "space", "layer": "metal1 - metal3", "net_of": "metal1", "nets": "different", "value": 0.5},
    {"kind": "space", "layer": "metal1", "notches": "ignored", "one_net": "nwell | metal3", "value": 0.5},
    {"kind": "separation", "layer": "metal1", "other": "metal2", "nets": "different", "value": 0.5},
    {"kind": "separation", "layer": "metal1", "other": "metal2", "nets": "same", "value": 0.5},
    {"kind": "wide_space", "layer": "metal1", "wide_um": 2.0, "min_projection_um": 1.0, "value": 0.5},
    {"kind": "enclosure", "outer": "metal1", "inner": "via1", "sides": "three", "value": 0.06},
    {"kind": "enclosure", "outer": "metal1", "inner": "via1", "sides": "two", "value": 0.06},
    {"kind": "enclosure", "outer": "metal1", "inner": "via1", "sides": "one", "value": 0.06},
    {"kind": "enclosure", "outer": "metal1", "inner": "via1", "sides": "opposite", "short_um": 0.04, "value": 0.06},
    {"kind": "line_end_enclosure", "outer": "metal1", "inner": "via1", "line_um": 0.34, "value": 0.06},
    {"kind": "max_area", "layer": "metal1", "value": 100.0},
    {"kind": "density", "layer": "metal1", "value": 0.35},
    {"kind": "density", "layer": "metal1", "bound": "max", "value": 0.6},
    {"kind": "density", "layer": "metal1", "within": "metal2", "value": 0.35},
    {"kind": "density", "layer": "metal1", "window_um": 20.0, "step_um": 10.0, "value": 0.35},
    {"kind": "density", "layer": "metal1", "bound": "max", "window_um": 20.0, "step_um": 10.0, "value": 0.6},
    {"kind": "antenna", "layer": "poly", "gate": "gate", "value": 50},
    {"kind": "antenna", "layer": "metal1", "gate": "gate", "value": 40},
    {"kind": "antenna", "layer": "metal1", "gate": "gate", "measure": "sidewall", "thickness_um": 0.5, "value": 40},
    {"kind": "antenna", "layer": "metal2", "gate": "gate", "value": 40},
    {"kind": "antenna", "layer": "metal1", "gate": "gate", "diode": "active & nplus", "value": 40},
    {"kind": "antenna", "layer": "metal1", "gate": "gate", "diode": "active & nplus", "diode_ratio": 100, "value": 40},
    {"kind": "antenna", "layer": "metal2", "gate": "gate", "sum": "cumulative", "value": 40},
]


def verdict_on(sketch, technology, rule_id):
    layout, cell = sketch.layout()
    report = check(layout, cell, technology, Options(rule_ids=[rule_id]))
    return report.verdicts[0]


def assert_pair(rule, fields, technology):
    kept, broken = pairs(rule, fields, technology)
    assert kept, rule.id
    assert broken, rule.id
    for number, sketch in enumerate(kept):
        verdict = verdict_on(sketch, technology, rule.id)
        assert (verdict.status, verdict.count, verdict.reason) == ("passed", 0, None), (number, verdict)
        assert verdict.shapes > 0 or not sketch.shapes, (
            rule.id,
            number,
            "the layout that keeps the rule has nothing the rule looks at",
        )
    for number, sketch in enumerate(broken):
        verdict = verdict_on(sketch, technology, rule.id)
        assert verdict.status == "failed", (number, verdict)
        assert verdict.count > 0, rule.id


@pytest.mark.parametrize(("name", "kind"), sorted({(name, rule.kind) for name, rule in RULES}))
def test_rules_are_kept_at_their_limits_and_broken_one_grid_step_beyond(name, kind):
    """All rules of a kind in one test: a test for each of the 1,600 rules costs more than what it asserts."""
    technology = TECHNOLOGIES[name]
    for rule in (rule for owner, rule in RULES if (owner, rule.kind) == (name, kind)):
        for fields in cases(rule, technology):
            assert_pair(rule, fields, technology)


@pytest.mark.parametrize(("name", "rule"), UNCHECKED, ids=[f"{name}-{rule.id}" for name, rule in UNCHECKED])
def test_a_rule_that_cannot_be_checked_is_unchecked_where_its_layer_is_drawn(name, rule):
    technology = TECHNOLOGIES[name]
    drawn = Sketch(technology).box(rule.options["layer"], 0, 0, BIG, BIG)
    assert verdict_on(drawn, technology, rule.id).status == "unchecked"
    assert verdict_on(Sketch(technology), technology, rule.id).status == "passed"


@pytest.mark.parametrize("fields", OWN_RULES, ids=[f"{f['kind']}-{n}" for n, f in enumerate(OWN_RULES)])
def test_a_kind_is_kept_at_its_limit_and_broken_one_grid_step_beyond(fields):
    technology, rule = with_rule(TECHNOLOGIES["generic"], **fields)
    assert_pair(rule, {key: value for key, value in fields.items() if key not in {"kind", "value"}}, technology)


def test_every_kind_has_a_drawing_and_a_rule_that_uses_it():
    assert set(SKETCHES) == set(KINDS)
    assert {rule.kind for _, rule in RULES} | {rule["kind"] for rule in OWN_RULES} == set(KINDS)


def test_the_reader_of_technology_files_scales_the_number_of_a_rule_as_its_kind_takes_it():
    """A count is read as a length is, and taken as it was written."""
    units = {name: kind.value for name, kind in KINDS.items()}
    assert {name for name, unit in units.items() if unit == "area"} == AREA_KINDS
    assert {name for name, unit in units.items() if unit in {"angle", "ratio"}} == DIMENSIONLESS_KINDS | {"count"}


@pytest.mark.parametrize("name", sorted(TECHNOLOGIES))
def test_every_rule_says_what_it_is_and_where_it_comes_from(name):
    for rule in TECHNOLOGIES[name].rules:
        assert rule.description
        assert rule.source
        assert rule.severity in {"error", "warning"}


@pytest.mark.parametrize("name", sorted(TECHNOLOGIES))
def test_an_empty_layout_is_not_clean_because_nothing_was_checked(name):
    layout = kdb.Layout()
    report = check(layout, layout.create_cell("EMPTY"), TECHNOLOGIES[name])
    assert {verdict.shapes for verdict in report.verdicts} == {0}
    assert (report.total_violations, report.complete, report.passed) == (0, False, False)
    assert report.to_data()["notes"][0] == "nothing is drawn in cell EMPTY: nothing was checked"


@pytest.mark.parametrize(("depth", "broken"), [(300, []), (295, ["pSD.f"])])
def test_a_layout_with_an_abutted_tie_is_judged_completely(depth, broken):
    technology = TECHNOLOGIES["sg13g2"]
    sketch = Sketch(technology).box("NWell", -2000, -2000, 4000, 3000).box("Activ", 0, 0, 1000 + depth, 1000)
    sketch.box("pSD", -200, -200, 1000, 1200).box("Cont", 400, 400, 560, 560).box("Metal1", 300, 300, 700, 700)
    report = check(*sketch.layout(), technology)
    assert report.complete
    assert [v.rule.id for v in report.verdicts if v.status == "failed"] == broken


@pytest.mark.parametrize(
    ("rule_id", "drawn", "broken"),
    [
        ("DF.18", {"DNWELL": (0, 0, 9, 9), "tap": (6, 4, 12, 5)}, True),  # crosses the edge of the deep well
        ("DF.18", {"DNWELL": (0, 0, 9, 9), "tap": (6, 4, 7, 5)}, False),
        ("DF.4e_3.3V", {"DNWELL": (0, 0, 9, 9), "LVPWELL": (6, 2, 9, 8), "tap": (7.5, 4, 8.5, 5)}, True),
        ("DF.4e_3.3V", {"DNWELL": (0, 0, 9, 9), "LVPWELL": (6, 2, 9, 8), "tap": (6.5, 4, 8.0, 5)}, False),
        ("DF.13_3.3V", {"DNWELL": (0, 0, 9, 9), "tap": (4, 4, 5, 5)}, True),  # nothing ties the deep well
        ("DF.13_3.3V", {"DNWELL": (0, 0, 9, 9), "tap": (4, 4, 5, 5), "n": (6, 4, 7, 5)}, False),
        ("SB.10", {"Poly2": (0, 0, 3, 1), "SAB": (-1, -1, 1, 2)}, False),  # a bar that ends below the block
        ("SB.10", {"Poly2": (0, 0, 3, 1), "SAB": (1, -1, 2.9, 2)}, True),
        ("DF.13_3.3V", {"DNWELL": (0, 0, 9, 9), "LVPWELL": (2, 2, 7, 7), "tap": (4, 4, 5, 5)}, False),
    ],
)
def test_rules_of_deep_wells_and_salicide_blocks_of_gf180mcu_find_what_the_foundrys_deck_finds(rule_id, drawn, broken):
    technology = TECHNOLOGIES["gf180mcuD"]
    layers = {"tap": ("COMP", "Pplus"), "n": ("COMP", "Nplus")}
    layout = kdb.Layout()
    cell = layout.create_cell("top")
    for name, box in drawn.items():
        for layer in layers.get(name, (name,)):
            cell.shapes(technology.layer(layout, layer)).insert(kdb.DBox(*box).to_itype(layout.dbu))
    verdict = check(layout, cell, technology, Options(rule_ids=[rule_id])).verdicts[0]
    assert (verdict.count > 0) == broken
