"""Schemas that take definitions from a file which the skills of a folder share."""

import json
import os
import subprocess
import sys

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry

from patience import WATCHDOG_S
from skillscript import find_faults
from skillscript.schema_references import MAX_FILES, ReferenceFault, bundle

SHARED = "../../shared.schema.json#/$defs/"
POINT = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2, "description": "a point"}
BOX = {"type": "object", "properties": {"from": {"$ref": "#/$defs/point"}, "to": {"$ref": "#/$defs/point"}}}
BASE = {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer", "default": 1}}}
TREE = {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}}


@pytest.fixture
def skills(tmp_path):
    """A folder with one skill and one shared file."""
    root = tmp_path / "skills"
    (root / "s/schemas").mkdir(parents=True)
    definitions = {"point": POINT, "box": BOX, "base": BASE, "tree": TREE, "all": True, "number": 3}
    definitions["nullable"] = {"type": ["object", "null"], "properties": {"a": {}}, "unevaluatedProperties": False}
    (root / "shared.schema.json").write_text(json.dumps({"$defs": definitions}))
    return root


@pytest.fixture
def bundled(skills):
    return lambda schema: bundle(schema, skills / "s/schemas", skills)[0]


def test_a_definition_used_once_takes_the_place_of_its_reference(bundled):
    schema = {"properties": {"p": {"$ref": SHARED + "point", "description": "where", "default": [0, 0]}}}
    assert bundled(schema) == {"properties": {"p": {**POINT, "description": "where", "default": [0, 0]}}}


def test_a_definition_used_several_times_is_added_once(bundled):
    schema = {"properties": {"p": {"$ref": SHARED + "point"}, "b": {"$ref": SHARED + "box"}}}
    inner = {"$ref": "#/$defs/point"}
    assert bundled(schema) == {
        "properties": {"p": inner, "b": {"type": "object", "properties": {"from": inner, "to": inner}}},
        "$defs": {"point": POINT},
    }


def test_a_definition_of_the_schema_itself_keeps_its_name(bundled):
    schema = {
        "$defs": {"point": {"type": "string"}},
        "prefixItems": [{"$ref": "#/$defs/point"}, {"$ref": SHARED + "point"}, {"$ref": SHARED + "point"}],
    }
    result = bundled(schema)
    assert result["$defs"] == {"point": {"type": "string"}, "point_2": POINT}
    assert [item["$ref"] for item in result["prefixItems"]] == ["#/$defs/point", "#/$defs/point_2", "#/$defs/point_2"]


def test_an_object_takes_the_fields_of_a_shared_one(bundled):
    own = {"required": ["b"], "properties": {"b": {"type": "string"}}, "unevaluatedProperties": False}
    result = bundled({"title": "t", "$ref": SHARED + "base", **own})
    assert result == {
        "title": "t",
        "type": "object",
        "required": ["a", "b"],
        "properties": {**BASE["properties"], "b": {"type": "string"}},
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("beside", "value", "valid"),
    [
        ({"properties": {"a": {"minimum": 5}}}, {"a": 7}, True),
        ({"properties": {"a": {"minimum": 5}}}, {"a": 3}, False),  # both judge a
        ({"properties": {"a": {"minimum": 5}}}, {"a": 7.5}, False),
        ({"additionalProperties": False}, {"a": 1}, False),  # sees the fields beside it only
        ({"additionalProperties": False, "properties": {"b": True}}, {"a": 1, "b": 1}, False),
        ({"unevaluatedProperties": False, "anyOf": [{"properties": {"b": True}}]}, {"a": 1, "b": 1}, True),
        ({"unevaluatedProperties": False}, {"a": 1, "b": 1}, False),
        ({"type": ["object", "null"]}, None, False),
        ({"type": ["object", "null"], "required": []}, {"a": 1}, True),
        ({"type": "null"}, None, False),
        ({"required": ["b"]}, {"b": 1}, False),
    ],
)
def test_keywords_beside_a_reference_mean_what_json_schema_says(bundled, skills, beside, value, valid):
    """The judge is jsonschema, which reads the schema as it is written and the shared file by its address."""
    from referencing.jsonschema import DRAFT202012

    written = {"$ref": "shared.schema.json#/$defs/base", **beside}
    shared = DRAFT202012.create_resource(json.loads((skills / "shared.schema.json").read_text()))
    judge = Draft202012Validator(written, registry=Registry().with_resource("shared.schema.json", shared))
    result = bundled({**written, "$ref": SHARED + "base"})
    assert judge.is_valid(value) == (find_faults(value, result) == []) == valid


def test_a_reference_may_narrow_the_types_of_a_definition_and_may_not_widen_its_fields(bundled):
    narrowed = bundled({"$ref": SHARED + "nullable", "type": "object"})
    assert narrowed == {"type": "object", "properties": {"a": {}}, "unevaluatedProperties": False}
    widened = bundled({"$ref": SHARED + "nullable", "properties": {"b": {}}})
    assert find_faults({"b": 1}, widened) != []
    assert find_faults({"a": 1}, widened) == []


def test_a_definition_that_contains_itself_stays_one(bundled):
    result = bundled({"$ref": SHARED + "tree"})
    assert result == {"$ref": "#/$defs/tree", "$defs": {"tree": TREE}}
    assert find_faults({"children": [{"children": 3}]}, result)[0].path == "children[0].children"


def test_what_only_looks_like_a_reference_is_left_alone(bundled):
    value = {"$ref": "https://example.org/x"}
    schema = {"const": value, "default": value, "examples": [value], "properties": {"$ref": {"type": "string"}}}
    assert bundled(schema) == schema


def test_a_schema_grows_with_the_definitions_it_uses_and_no_faster(skills, bundled):
    """Written out in place, 40 definitions that each use the next one twice would be 2^40 schemas."""
    doubling = {f"d{i}": {"prefixItems": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(40)}
    (skills / "shared.schema.json").write_text(json.dumps({"$defs": {**doubling, "d40": POINT}}))
    assert len(json.dumps(bundled({"$ref": SHARED + "d0"}))) < 4000


def test_a_long_chain_of_definitions_is_no_deep_schema(skills, bundled):
    chain = {f"d{i}": {"items": {"items": {"$ref": f"#/$defs/d{i + 1}"}}} for i in range(900)}
    (skills / "shared.schema.json").write_text(json.dumps({"$defs": {**chain, "d900": {"type": "string"}}}))
    result = bundled({"$ref": SHARED + "d0"})
    waiting = [(result, 0)]
    while waiting:
        inner, depth = waiting.pop()
        assert depth < 60
        waiting += [(item, depth + 1) for item in inner.values() if isinstance(item, dict)]
    assert json.dumps(result).count('"items"') == 1800


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("https://example.org/x.json#/$defs/a", "is not followed"),
        ("//example.org/x.json#/$defs/a", "is not followed"),
        ("file:///etc/x.json#/$defs/a", "is not followed"),
        ("/etc/x.json#/$defs/a", "is not followed"),
        ("C:/x.json#/$defs/a", "is not followed"),
        ("..\\..\\shared.schema.json#/$defs/point", "is not followed"),
        ("../../%2e%2e/x.json#/$defs/a", "is not followed"),
        ("../../shared.schema.json", "is not followed"),
        ("../../shared.schema.json#/definitions/a", "is not followed"),
        ("../../shared.schema.json#/$defs/box/properties/from", "is not followed"),
        ("../../s/../../outside.json#/$defs/a", "is not followed"),
        ("../../../outside.json#/$defs/a", "leads out of the folder of the skills"),
        ("../../link.json#/$defs/a", "leads out of the folder of the skills"),
        ("../../missing.json#/$defs/a", "missing.json cannot be read"),
        ("../../shared.schema.json#/$defs/missing", "no schema named 'missing'"),
        ("../../shared.schema.json#/$defs/number", "no schema named 'number'"),
        ("../../fifo.json#/$defs/a", "is not a regular file"),
        ("../../large.json#/$defs/a", "is longer than"),
        ("../../text.json#/$defs/a", "Invalid JSON"),
        ("../../remote.json#/$defs/a", "is not followed"),
    ],
)
def test_a_reference_that_leads_elsewhere_is_refused_without_quoting_a_file(skills, bundled, reference, reason):
    (skills.parent / "outside.json").write_text('{"$defs": {"a": {"const": "private"}}}')
    (skills / "link.json").symlink_to(skills.parent / "outside.json")
    os.mkfifo(skills / "fifo.json")
    (skills / "large.json").write_bytes(b'{"$defs": {"a": {}}}' + b" " * (2 << 20))
    (skills / "text.json").write_text("password = private")
    (skills / "remote.json").write_text('{"$defs": {"a": {"$ref": "https://example.org/private.json#/$defs/a"}}}')
    with pytest.raises(ReferenceFault) as caught:
        bundled({"properties": {"x": {"$ref": reference}}})
    assert reason in str(caught.value)
    assert "password" not in str(caught.value)


def test_all_references_that_cannot_be_used_are_reported_at_once(bundled):
    with pytest.raises(ReferenceFault, match=r"leads out of .*https://a.*named 'gone'"):
        bundled({"prefixItems": [{"$ref": ref} for ref in ("https://a", "../../../b.json#/$defs/b", SHARED + "gone")]})


def test_the_number_of_files_is_bounded(skills, bundled):
    for i in range(MAX_FILES + 1):
        (skills / f"f{i}.json").write_text(json.dumps({"$defs": {"a": {"$ref": f"f{i + 1}.json#/$defs/a"}}}))
    with pytest.raises(ReferenceFault, match="more than the 16 files"):
        bundled({"$ref": "../../f0.json#/$defs/a"})


def test_files_that_refer_to_each_other_come_to_an_end(skills, bundled):
    (skills / "a.json").write_text('{"$defs": {"a": {"items": {"$ref": "b.json#/$defs/b"}}}}')
    (skills / "b.json").write_text('{"$defs": {"b": {"items": {"$ref": "a.json#/$defs/a"}}}}')
    result = bundled({"items": {"$ref": "../../a.json#/$defs/a"}})
    assert find_faults([[[3]]], result) == find_faults([[3]], result) == []
    assert json.dumps(result).count("$ref") <= 3


SCRIPT = """
from skillscript import main
def execute(params, context):
    return {"got": params}
raise SystemExit(main(__file__, "s.run", execute))
"""


def test_a_script_takes_flags_defaults_and_paths_from_shared_definitions(skills):
    shared = {
        "count": {"type": "integer", "minimum": 1, "default": 2, "description": "How many"},
        "name": {"type": "string", "default": "x"},
    }
    (skills / "shared.schema.json").write_text(json.dumps({"$defs": shared}))
    twice = {name: {"$ref": SHARED + "name"} for name in ("one", "two")}
    own = {"properties": {"count": {"$ref": SHARED + "count"}, **twice}, "additionalProperties": False}
    (skills / "s/schemas/s.run.input.json").write_text(json.dumps({"type": "object", **own}))
    (skills / "s/schemas/s.run.output.json").write_text('{"type": "object"}')
    (skills / "s/skill.yaml").write_text("tools: [{id: s.run}]")
    (skills / "s/scripts").mkdir()
    (skills / "s/scripts/run.py").write_text(SCRIPT)

    def run(*arguments):
        command = [sys.executable, str(skills / "s/scripts/run.py"), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=WATCHDOG_S, check=False).stdout

    assert json.loads(run("--two", "5"))["data"]["got"] == {"two": "5", "count": 2, "one": "x"}
    assert json.loads(run("--count", "0"))["error"]["message"] == "'count' must be at least 1, got 0"
    assert "How many [default: 2]" in run("--help")
    served = json.loads(run("--schema"))["input"]
    assert served["properties"]["one"] == {"$ref": "#/$defs/name"}
    assert served["$defs"] == {"name": shared["name"]}
