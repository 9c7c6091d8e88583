"""Rule files of one's own: what they may say, and that every fault in them is told (S0.8)."""

import json

import pytest
from drc_sketch import Sketch

from layoutkit.drc.check import check
from layoutkit.drc.rule_files import is_deck, with_rules_of
from layoutkit.errors import FileError, LayoutkitError, TechnologyError
from layoutkit.technology import load

GENERIC = load("generic")
WIDTH = {"rule_id": "M1_MIN_WIDTH", "description": "Metal1 minimum width", "type": "width", "layer": 4, "value": 0.23}


def written(tmp_path, content, name="rules.json"):
    path = tmp_path / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def faults_of(tmp_path, *rules, **others):
    with pytest.raises(TechnologyError) as caught:
        with_rules_of(written(tmp_path, {"rules": list(rules), **others}), GENERIC)
    assert caught.value.code == "INVALID_PARAM"
    return caught.value.details["faults"]


@pytest.mark.parametrize("layer", [4, "4", "4/0", "metal1", "metal1 | metal1"])
def test_a_layer_is_a_number_a_name_or_an_expression(tmp_path, layer):
    technology = with_rules_of(written(tmp_path, {"rules": [{**WIDTH, "layer": layer}]}), GENERIC)
    layout, cell = Sketch(GENERIC).box("metal1", 0, 0, 225, 3000).layout()
    report = check(layout, cell, technology)
    assert report.total_violations == 1
    place = report.to_data()["violations"][0]["locations"][0]
    assert place["layer"] == ("metal1 | metal1" if layer == "metal1 | metal1" else "metal1")


def test_layers_the_technology_does_not_name_are_checked_by_number(tmp_path):
    technology = with_rules_of(written(tmp_path, {"rules": [{**WIDTH, "layer": "68/20"}]}), GENERIC)
    layout, cell = Sketch(GENERIC.with_layer_map({"metal1": (68, 20)})).box("metal1", 0, 0, 225, 3000).layout()
    assert check(layout, cell, technology).to_data()["violations"][0]["locations"][0]["layer"] == "68/20"


@pytest.mark.parametrize("kind", ["min_width", "width"])
def test_the_longer_names_of_kinds_and_fields_are_understood(tmp_path, kind):
    rule = {"rule_id": "W", "rule_description": "wide enough", "type": kind, "layer": "metal1", "value": 0.5}
    (read,) = with_rules_of(written(tmp_path, {"rules": [rule]}), GENERIC).rules
    assert (read.id, read.kind, read.description, read.value) == ("W", "width", "wide enough", 500)


def test_yaml_rules_with_derived_layers_are_read(tmp_path):
    text = """
    derived: {thick_poly: poly - active}
    rules:
      - {id: P, kind: area, layer: thick_poly, value: 0.5, severity: warning}
    """
    technology = with_rules_of(written(tmp_path, text, "rules.yaml"), GENERIC)
    assert technology.rules[0].value == 500_000
    assert technology.derived["thick_poly"] == "poly - active"
    assert technology.derived["gate"] == GENERIC.derived["gate"]


def test_all_faults_are_told_at_once(tmp_path):
    faults = faults_of(
        tmp_path,
        {**WIDTH, "type": "widht"},
        {**WIDTH, "rule_id": "B", "layer": "metal7"},
        {**WIDTH, "rule_id": "C", "value": "0.23"},
        {**WIDTH, "rule_id": "D", "lair": 3},
        {"type": "width"},
        "not a rule",
        WIDTH,
        WIDTH,
        surprise=1,
    )
    text = "\n".join(faults)
    for expected in (
        "unknown field 'surprise'",
        "rules[0]: unknown kind 'widht' (did you mean 'width'?)",
        "rules[1]: 'layer': technology generic has no layer 'metal7'",
        "rules[2]: value must be a number, got '0.23'",
        "rules[3]: kind width has no field 'lair' (did you mean 'layer'?)",
        "rules[4]: needs the field 'rule_id'",
        "rules[5]: a rule is an object, got str",
        "rules[7]: there is another rule 'M1_MIN_WIDTH'",
    ):
        assert expected in text


@pytest.mark.parametrize("value", ["1e400", "-1e400", "NaN", "1e300", "9" * 400])
def test_a_number_beyond_any_unit_is_refused_by_its_place(tmp_path, value):
    text = json.dumps({"rules": [{**WIDTH, "value": 0.125}]}).replace("0.125", value)
    with pytest.raises(FileError, match=r"from 1e-30 to 1e\+12 .* not at rules\.0\.value"):
        with_rules_of(written(tmp_path, text), GENERIC)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"value": None}, "needs a value"),
        ({"value": -0.1}, "not be negative"),
        ({"value": True}, "must be a number"),
        ({"severity": "fatal"}, "severity must be one of"),
        ({"layer": True}, "must be a layer"),
        ({"layer": 4.5}, "must be a layer"),
        ({"layer": ["metal1"]}, "must be a layer"),
        ({"layer": "__import__('os').system('true')"}, "layer expression"),
        ({"layer": "metal1.__class__"}, "no layer"),
        ({"layer": "(" * 500 + "metal1" + ")" * 500}, "cannot be read"),
        ({"metrics": "manhattan"}, "must be one of euclidean"),
        ({"min_projection_um": "long"}, "must be a length in um"),
        ({"cases": [{"layer": "metal1"}, 3]}, "cases"),
        ({"layers": []}, "layers"),
    ],
)
def test_a_malformed_rule_is_told(tmp_path, change, fault):
    assert fault in "\n".join(faults_of(tmp_path, {**WIDTH, **change}))


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"rules": []}', '{"rules": 3}', "null", "3", "\x00\x01"])
@pytest.mark.parametrize("name", ["rules.json", "rules.yaml"])
def test_a_file_without_rules_is_told(tmp_path, content, name):
    with pytest.raises(LayoutkitError) as caught:
        with_rules_of(written(tmp_path, content, name), GENERIC)
    assert caught.value.code == "INVALID_PARAM"


@pytest.mark.parametrize(("name", "deck"), [("a.drc", True), ("a.lydrc", True), ("a.rb", True), ("A.DRC", True),
                                            ("a.json", False), ("a.yaml", False), ("drc", False)])  # fmt: skip
def test_a_deck_is_told_from_a_rule_file_by_its_name(name, deck):
    assert is_deck(name) is deck


def test_a_missing_file_is_reported(tmp_path):
    with pytest.raises(FileError):
        with_rules_of(tmp_path / "none.json", GENERIC)


def test_a_message_lists_twenty_faults_of_a_file_and_the_details_all(tmp_path):
    with pytest.raises(TechnologyError) as caught:
        with_rules_of(written(tmp_path, {"rules": [3] * 5000}), GENERIC)
    assert str(caught.value).count("rules[") == 20
    assert str(caught.value).endswith("and 4980 more")
    assert len(caught.value.details["faults"]) == 5000
