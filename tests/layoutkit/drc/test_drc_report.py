"""What a report says: verdicts, counts, places, and that nothing unchecked reads as clean (S0.8)."""

from dataclasses import replace

import klayout.db as kdb
import pytest
from drc_sketch import Sketch, with_rule
from klayout import rdb

from layoutkit.drc.check import Options, check
from layoutkit.drc.kind_register import KINDS, rule_kind
from layoutkit.errors import FileError, GeometryError, RuleNotFoundError
from layoutkit.technology import load

GENERIC = load("generic")
SKY = load("sky130A")


def narrow_lines(count, layer="metal1"):
    """Return ``count`` lines 0.1 um wide and 2 um long, 1 um apart, each one width violation."""
    sketch = Sketch(GENERIC)
    for number in range(count):
        sketch.box(layer, 0, number * 1000, 2000, number * 1000 + 100)
    return sketch


def report_on(sketch, technology=GENERIC, **options):
    layout, cell = sketch.layout()
    return check(layout, cell, technology, Options(**options))


def test_a_violation_is_told_with_its_place_layer_and_distance():
    data = report_on(narrow_lines(1), rule_ids=["M1_MIN_WIDTH"]).to_data()
    assert data["passed"] is False
    assert data["summary"]["total_violations"] == data["summary"]["rules_violated"] == 1
    assert data["summary"]["rules_checked"] == 1
    (entry,) = data["violations"]
    assert (entry["rule_id"], entry["severity"], entry["count"]) == ("M1_MIN_WIDTH", "error", 1)
    assert entry["rule_description"] == GENERIC.rule("M1_MIN_WIDTH").description
    assert entry["locations"] == [
        {"x": 1.0, "y": 0.05, "layer": "metal1", "box": [0.0, 0.0, 2.0, 0.1], "distance": 0.1},
    ]


def test_max_violations_limits_the_places_and_never_the_count():
    data = report_on(narrow_lines(50), rule_ids=["M1_MIN_WIDTH"], max_violations=7).to_data()
    assert data["violations"][0]["count"] == 50
    assert data["summary"]["total_violations"] == 50
    assert [place["y"] for place in data["violations"][0]["locations"]] == [n + 0.05 for n in range(7)]
    none = report_on(narrow_lines(50), rule_ids=["M1_MIN_WIDTH"], max_violations=0).to_data()
    assert none["violations"][0]["locations"] == []
    assert none["violations"][0]["count"] == 50
    assert none["passed"] is False


def test_places_are_shared_out_so_that_a_rare_violation_is_listed():
    sketch = narrow_lines(30)
    sketch.box("poly", 5000, 0, 5100, 2000)
    data = report_on(sketch, rule_ids=["POLY_MIN_WIDTH", "M1_MIN_WIDTH"], max_violations=5).to_data()
    listed = {entry["rule_id"]: len(entry["locations"]) for entry in data["violations"]}
    assert listed == {"POLY_MIN_WIDTH": 1, "M1_MIN_WIDTH": 4}


def test_a_region_keeps_only_the_violations_that_touch_it():
    report = report_on(narrow_lines(10), rule_ids=["M1_MIN_WIDTH"], region=kdb.DBox(0, 2.5, 5, 5.05))
    assert [place["y"] for place in report.to_data()["violations"][0]["locations"]] == [3.05, 4.05, 5.05]
    with pytest.raises(GeometryError, match="empty"):
        report_on(narrow_lines(1), region=kdb.DBox())


def test_an_unknown_rule_id_is_answered_with_the_nearest_ones():
    with pytest.raises(RuleNotFoundError, match=r"did you mean m1\.1") as caught:
        report_on(narrow_lines(1), SKY, rule_ids=["M1.1", "nothing-like-it"])
    assert caught.value.code == "RULE_NOT_FOUND"
    assert caught.value.details["unknown"] == ["M1.1", "nothing-like-it"]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"kind": "antigravity", "layer": "metal1", "value": 1.0}, "no rule kind 'antigravity'"),
        ({"kind": "unchecked", "reason": "needs the whole chip"}, "needs the whole chip"),
        ({"kind": "unchecked", "reason": "needs the whole chip", "layer": "metal9"}, "no layer 'metal9'"),
        ({"kind": "width", "value": 1.0}, "needs the field 'layer'"),
        ({"kind": "width", "layer": "metal1"}, "needs a value"),
        ({"kind": "width", "layer": "metal9", "value": 1.0}, "no layer 'metal9'"),
        ({"kind": "width", "layer": "metal1 &", "value": 1.0}, "cannot be read"),
        ({"kind": "width", "layer": "metal1", "colour": 3, "value": 1.0}, "no field 'colour'"),
        ({"kind": "enclosure", "outer": "metal1", "inner": "via1", "sides": "many", "value": 1.0}, "sides"),
        ({"kind": "wide_space", "layer": "metal1", "value": 1.0}, "needs the field 'wide_um'"),
        ({"kind": "angle", "layer": "metal1", "value": 30}, "90 or 45"),
        ({"kind": "width", "cases": [], "value": 1.0}, "cases"),
        ({"kind": "width", "layers": "metal1", "value": 1.0}, "layers"),
    ],
)
def test_a_rule_that_cannot_be_checked_is_unchecked_and_the_layout_has_not_passed(fields, reason):
    technology, _ = with_rule(GENERIC, **fields)
    for sketch in (narrow_lines(1), Sketch(GENERIC)):  # also where nothing is drawn that it would look at
        report = report_on(sketch, technology)
        assert report.verdicts[0].status == "unchecked"
        assert reason in report.verdicts[0].reason
        assert not report.passed
        assert not report.complete
        assert report.to_data()["rules_unchecked"][0]["rule_id"] == "OWN"
        assert report.to_data()["summary"]["rules_checked"] == 0


def test_a_rule_that_cannot_be_checked_is_unchecked_only_where_it_concerns_shapes():
    technology, _ = with_rule(GENERIC, kind="unchecked", layer="metal1 & poly", reason="no such measure")
    apart = report_on(narrow_lines(3), technology)
    assert (apart.verdicts[0].status, apart.verdicts[0].shapes) == ("passed", 0)
    crossed = narrow_lines(3)
    crossed.box("poly", 500, 0, 600, 3000)
    (verdict,) = report_on(crossed, technology).unchecked
    assert verdict.reason.startswith("no such measure; 3 shapes")
    assert "(0.55, 1.05) um" in verdict.reason


def test_a_rule_of_a_whole_chip_is_checked_only_by_its_id():
    technology, rule = with_rule(GENERIC, kind="density", layer="metal1", value=0.9, scope="chip")
    width = GENERIC.rule("M1_MIN_WIDTH")
    technology = replace(technology, rules=(rule, width))
    assert [verdict.rule.id for verdict in report_on(narrow_lines(1), technology).verdicts] == [width.id]
    assert [v.rule.id for v in report_on(narrow_lines(3), technology, rule_ids=["OWN"]).violated] == ["OWN"]


def test_a_failure_inside_klayout_is_unchecked(monkeypatch):
    def fail(*_args, **_options):
        raise RuntimeError("internal error in width_check")

    monkeypatch.setattr(kdb.Region, "width_check", fail)
    report = report_on(narrow_lines(1), rule_ids=["M1_MIN_WIDTH", "M1_MIN_SPACE"])
    assert [verdict.status for verdict in report.verdicts] == ["unchecked", "passed"]
    assert "internal error" in report.verdicts[0].reason
    assert not report.passed


def test_derived_layers_that_run_in_a_circle_are_told():
    technology, _ = with_rule(GENERIC, kind="width", layer="egg", value=1.0)
    technology = replace(technology, derived={"egg": "hen & poly", "hen": "egg | metal1"})
    report = report_on(narrow_lines(1), technology)
    assert "defined through itself: egg -> hen -> egg" in report.verdicts[0].reason


def test_a_warning_is_told_and_does_not_fail_the_layout():
    technology, _ = with_rule(GENERIC, kind="width", layer="metal1", value=0.2, severity="warning")
    report = report_on(narrow_lines(2), technology)
    assert report.total_violations == 2
    assert report.passed


def test_a_layout_of_another_process_does_not_read_as_clean():
    layout = kdb.Layout()
    cell = layout.create_cell("FOREIGN")
    cell.shapes(layout.layer(200, 3)).insert(kdb.Box(0, 0, 10, 10))
    report = check(layout, cell, GENERIC)
    assert report.total_violations == 0
    assert not report.passed
    assert [layer.gds for layer in report.coverage.unchecked] == [(200, 3)]
    assert "200/3" in report.to_data()["notes"][0]


def test_no_rules_is_not_clean():
    report = report_on(narrow_lines(1), replace(GENERIC, rules=()))
    assert not report.passed
    assert "nothing was checked" in report.to_data()["notes"][0]


def test_the_report_database_holds_every_violation_and_every_rule(tmp_path):
    report = report_on(narrow_lines(40), SKY.with_layer_map({"met1": 4}), max_violations=1)
    path = tmp_path / "drc.lyrdb"
    report.write_lyrdb(path)
    database = rdb.ReportDatabase("read")
    database.load(str(path))
    assert database.top_cell_name == "SKETCH"
    counts = {category.name(): category.num_items() for category in database.each_category()}
    assert counts == {verdict.rule.id: verdict.count for verdict in report.verdicts}
    assert counts["m1.1"] == 40
    assert counts["n/psd.5a"] == 0
    assert all(category.description for category in database.each_category())
    first = path.read_bytes()
    report.write_lyrdb(path)
    assert path.read_bytes() == first


def test_an_unwritable_report_leaves_nothing(tmp_path):
    report = report_on(narrow_lines(1))
    with pytest.raises(FileError):
        report.write_lyrdb(tmp_path / "missing" / "drc.lyrdb")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("dbu_um", [0.001, 0.0005, 0.005, 0.002])
@pytest.mark.parametrize(("width_um", "passed"), [(0.2, True), (0.19, False)])
def test_other_database_units_are_measured_exactly(dbu_um, width_um, passed):
    layout = kdb.Layout()
    layout.dbu = dbu_um
    cell = layout.create_cell("UNITS")
    cell.shapes(layout.layer(4, 0)).insert(kdb.DBox(0, 0, width_um if dbu_um != 0.002 else 2 * width_um, 3))
    technology = GENERIC
    if dbu_um == 0.002:
        technology, _ = with_rule(GENERIC, kind="width", layer="metal1", value=0.4)
    report = check(layout, cell, technology)
    assert not report.unchecked
    assert report.passed is passed
    if not passed:
        limit = 0.38 if dbu_um == 0.002 else 0.19
        assert report.to_data()["violations"][0]["locations"][0]["distance"] == limit


def test_a_database_unit_that_does_not_fit_is_refused():
    layout = kdb.Layout()
    layout.dbu = 0.001 * 2**0.5
    with pytest.raises(GeometryError, match="database unit"):
        check(layout, layout.create_cell("ODD"), GENERIC)


def test_the_hierarchy_is_checked_as_if_it_were_flat():
    layout, cell = narrow_lines(1).layout()
    top = layout.create_cell("TOP")
    for place in ((0, 0), (0, 5000), (5000, 0)):
        top.insert(kdb.CellInstArray(cell.cell_index(), kdb.Trans(*place)))
    top.insert(kdb.CellInstArray(cell.cell_index(), kdb.Trans(1, False, 20000, 0)))
    assert check(layout, top, GENERIC, Options(rule_ids=["M1_MIN_WIDTH"])).total_violations == 4


def test_a_layer_that_only_a_flat_kind_looks_at_is_ruled_in_both_modes():
    technology, _ = with_rule(GENERIC, kind="density", layer="metal1", value=0.1)
    layout, cell = Sketch(GENERIC).box("metal1", 0, 0, 2000, 2000).layout()
    for mode in ("flat", "hierarchical"):
        report = check(layout, cell, technology, Options(mode=mode))
        assert (report.coverage.unchecked, report.passed) == ((), True)
        assert report.to_data(list_passed_rules=True)["rules_passed"] == [
            {"rule_id": "OWN", "shapes": 1, "measured": 1.0}
        ]


def test_rules_about_nets_leave_the_layout_as_it_is():
    technology, _ = with_rule(GENERIC, kind="space", layer="metal1", nets="different", value=0.5)
    layout, cell = Sketch(GENERIC).box("metal1", 0, 0, 2000, 2000).layout()
    before = list(layout.layer_indexes())
    assert check(layout, cell, technology).passed
    assert list(layout.layer_indexes()) == before


def test_a_rule_about_nets_needs_a_layer_that_carries_them():
    for fields, reason in (
        ({"layer": "nplus"}, "carries no nets"),
        ({"layer": "poly | metal1", "net_of": "poly"}, "leave"),
    ):
        technology, _ = with_rule(GENERIC, kind="space", nets="different", value=0.5, **fields)
        sketch = Sketch(GENERIC).box("metal1", 0, 0, 2000, 2000).box("nplus", 0, 0, 2000, 2000)
        (verdict,) = report_on(sketch, technology).unchecked
        assert reason in verdict.reason


def test_a_rule_kind_is_registered_once():
    with pytest.raises(ValueError, match="two rule kinds 'width'"):
        rule_kind("width", "layer")(KINDS["width"].check)


def test_an_antenna_rule_needs_a_layer_of_the_stack():
    technology, _ = with_rule(GENERIC, kind="antenna", layer="nplus", gate="gate", value=10)
    (verdict,) = report_on(Sketch(GENERIC).box("nplus", 0, 0, 2000, 2000), technology).unchecked
    assert "one of poly, contact, metal1" in verdict.reason


def test_an_antenna_ratio_is_measured():
    # gate 0.5 um by 1 um, poly 4 um by 0.5 um: 2 um2 of poly on 0.5 um2 of gate
    technology, _ = with_rule(GENERIC, kind="antenna", layer="poly", gate="gate", value=5)
    sketch = Sketch(GENERIC).box("poly", 0, 0, 4000, 500).box("active", 1000, -1000, 2000, 1500)
    assert report_on(sketch, technology).to_data(list_passed_rules=True)["rules_passed"][0]["measured"] == 4.0


@pytest.mark.parametrize(("plate", "found"), [(True, None), (False, 12.0)])
def test_an_antenna_does_not_pass_through_the_plate_of_a_capacitor(plate, found):
    """met4 on a MIM plate is not connected to met3 below it, hence not to the gate; without the plate it is."""
    technology, _ = with_rule(SKY, kind="antenna", layer="met4", gate="poly & diff", value=1000)
    sketch = Sketch(SKY).box("diff", 0, 0, 1000, 3000).box("poly", -1000, 1000, 2000, 2000)
    for cut in ("licon1", "mcon", "via", "via2", "via3"):
        sketch.box(cut, 1400, 1400, 1600, 1600)
    for metal in ("li1", "met1", "met2", "met3"):
        sketch.box(metal, 1000, 1000, 5000, 4000)
    sketch.box("met4", 1000, 1000, 5000, 4000)
    if plate:
        sketch.box("capm", 1200, 1200, 4800, 3800)
    (verdict,) = report_on(sketch, technology).verdicts
    assert (verdict.status, verdict.measured) == ("passed", found)


def test_checking_leaves_the_layout_as_it_is():
    layout, cell = narrow_lines(3).layout()
    before = (layout.layers(), layout.cells(), kdb.Region(cell.shapes(layout.layer(4, 0))).to_s())
    check(layout, cell, GENERIC)
    assert (layout.layers(), layout.cells(), kdb.Region(cell.shapes(layout.layer(4, 0))).to_s()) == before


def test_the_same_layout_gives_the_same_report():
    def told():
        data = report_on(narrow_lines(20)).to_data()
        data["summary"].pop("check_time_ms")
        return data

    assert told() == told()


def test_implants_may_meet_where_diffusion_and_tap_abut_and_nowhere_else():
    def butted(tap_top):
        sketch = Sketch(SKY).box("diff", -1000, 0, 0, 400).box("nsdm", -1125, -125, 0, 525)
        return sketch.box("tap", 0, 0, 500, tap_top).box("psdm", 0, -125, 625, 525)

    rules = ["n/psd.5a", "n/psd.5b", "n/psd.7", "n/psd.8", "n/psd.9", "difftap.6"]
    assert report_on(butted(400), SKY, rule_ids=rules).total_violations == 0
    shorter = report_on(butted(200), SKY, rule_ids=rules)
    assert {"n/psd.5a", "n/psd.7", "difftap.6"} <= {verdict.rule.id for verdict in shorter.violated}
