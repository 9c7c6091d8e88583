"""Validation, defaults and plain JSON, in process (S1.3)."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import skillscript
from skillscript import (
    SkillError,
    SkillResult,
    Tool,
    call,
    check_schema,
    fill_defaults,
    find_faults,
    parse_json,
    validate,
)
from skillscript.schema import as_declared
from sturdy.schema_acceptance import accepts
from sturdy.strict_json import NotJsonError, plain
from thorough import THOROUGH

SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 1.0, -2.0, "", "a", "abc", "R0"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
NUMBERS = st.sampled_from([-1, 0, 0.5, 1, 2])
COUNTS = st.integers(0, 3)
TYPES = st.sampled_from(["string", "number", "integer", "boolean", "array", "object", "null"])


def schemas(inner):
    return st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES | st.lists(TYPES, min_size=1, max_size=2, unique=True),
            "enum": st.lists(VALUES, min_size=1, max_size=3),
            "const": VALUES,
            "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
            "additionalProperties": st.booleans() | inner,
            "propertyNames": inner,
            "required": st.lists(st.sampled_from("abc"), unique=True, max_size=2),
            "items": st.booleans() | inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "uniqueItems": st.booleans(),
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "oneOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
            "if": inner,
            "then": inner,
            "else": inner,
            "minimum": NUMBERS,
            "maximum": NUMBERS,
            "exclusiveMinimum": NUMBERS,
            "exclusiveMaximum": NUMBERS,
            "minLength": COUNTS,
            "maxLength": COUNTS,
            "minItems": COUNTS,
            "maxItems": COUNTS,
            "minProperties": COUNTS,
            "maxProperties": COUNTS,
            "pattern": st.sampled_from(["^a", "b", "^R[0-9]$"]),
            "$ref": st.sampled_from(["#/$defs/small", "#/$defs/text"]),
            "x-error": st.just({"type": "own"}),
        },
    )


SCHEMAS = st.recursive(st.booleans() | schemas(st.booleans()), schemas, max_leaves=4).map(
    lambda schema: {
        "$defs": {"small": {"maximum": 1}, "text": {"type": "string"}},
        **(schema if isinstance(schema, dict) else {"allOf": [schema]}),
    },
)


@settings(max_examples=400 if THOROUGH else 150, deadline=None)
@given(schema=SCHEMAS, value=VALUES)
def test_the_quick_yes_never_contradicts_jsonschema_and_faults_appear_exactly_for_invalid_values(schema, value):
    valid = Draft202012Validator(schema).is_valid(value)
    if accepts(schema, value, schema):
        assert valid
    faults = find_faults(value, schema)
    assert bool(faults) is not valid
    json.dumps([fault.to_dict() for fault in faults], allow_nan=False)


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab\u4e2d", max_size=3), inner, max_size=3),
    max_leaves=10,
)


@settings(max_examples=150, deadline=None)
@given(data=st.dictionaries(st.text("xyz", max_size=3), JSON_VALUES, max_size=3), duration=st.integers(0, 10**6))
def test_an_envelope_survives_the_way_through_json(data, duration):
    result = SkillResult.success(data, duration)
    back = SkillResult.from_dict(parse_json(result.to_json().encode()))
    assert back == result
    failure = SkillResult.failure(SkillError("KLAYOUT_ERROR", "why", data, data), duration)
    again = SkillResult.from_dict(parse_json(failure.to_json()))
    assert again.to_dict() == failure.to_dict()
    assert again.exit_code == 4


@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, {1: 2}, {"a": {2}}, b"x", 2**63, -(2**63) - 1, "\ud800", "a\0b", object(), ["x", (1, 2j)]],
)
def test_what_json_cannot_hold_is_refused(value):
    with pytest.raises(NotJsonError):
        plain(value)


@pytest.mark.parametrize(
    ("value", "faults"),
    [
        (True, ["the input must be a number, got true"]),
        ("1", ['the input must be a number, got string "1"']),
        (1.0, []),
    ],
)
def test_types_are_strict(value, faults):
    assert [fault.message for fault in find_faults(value, {"type": "number"})] == faults


def test_an_object_that_is_none_is_told_with_the_example_of_its_description():
    sizes = {"type": "object", "description": '{"M1": {"w": "6u"}}\nNew sizes.'}
    schema = {"type": "object", "properties": {"sizes": sizes, "l": {"type": "number", "description": "[m] Length."}}}
    found = {fault.message for fault in find_faults({"sizes": 6, "l": []}, schema)}
    assert found == {
        """'sizes' must be an object, such as {"M1": {"w": "6u"}}, got 6""",
        "'l' must be a number, got array []",
    }


def test_a_whole_float_given_for_an_integer_reaches_the_handler_as_int():
    schema = {"properties": {"nf": {"type": "integer"}, "w": {"type": "number"}}}
    filled = validate({"nf": 2.0, "w": 2.0}, schema)
    assert [type(filled["nf"]), type(filled["w"])] == [int, float]
    assert find_faults({"nf": 2.5}, schema)


def test_defaults_are_filled_in_nested_objects_arrays_and_references_without_sharing():
    schema = {
        "$defs": {"device": {"type": "object", "properties": {"m": {"type": "integer", "default": 1}}}},
        "properties": {
            "device_a": {"$ref": "#/$defs/device"},
            "devices": {"type": "array", "items": {"$ref": "#/$defs/device"}},
            "box": {"type": "object", "default": {}, "properties": {"layers": {"default": ["m1"]}}},
            "either": {"anyOf": [{"type": "string"}, {"type": "object", "properties": {"deep": {"default": 0}}}]},
            "absent": {"type": "object", "properties": {"x": {"default": 1}}},
        },
    }
    value = {"device_a": {}, "devices": [{}, {"m": 4}], "either": {}}
    filled = fill_defaults(value, schema)
    assert filled == {
        "device_a": {"m": 1},
        "devices": [{"m": 1}, {"m": 4}],
        "box": {"layers": ["m1"]},
        "either": {"deep": 0},
    }
    filled["box"]["layers"].append("changed")
    assert fill_defaults(value, schema)["box"] == {"layers": ["m1"]}
    assert value == {"device_a": {}, "devices": [{}, {"m": 4}], "either": {}}


def test_own_messages_may_name_value_limit_and_parameter():
    device = {
        "type": "object",
        "required": ["w"],
        "x-error": {"required": "Missing required param: {name} of {param}", "additionalProperties": "No {name}"},
        "additionalProperties": False,
        "properties": {"w": {"type": "number", "minimum": 2, "x-error": "Width {value} is below minimum {limit}"}},
    }
    schema = {"properties": {"a": device, "b": device, "c": device}}
    messages = [fault.message for fault in find_faults({"a": {}, "b": {"w": 1}, "c": {"w": 3, "q": 1}}, schema)]
    assert messages == ["Missing required param: w of a.w", "Width 1 is below minimum 2", "No q"]


def test_the_alternative_that_was_meant_explains_itself():
    mos = {"type": "object", "properties": {"type": {"const": "mos"}, "w": {"type": "number"}}, "required": ["w"]}
    cap = {"type": "object", "properties": {"type": {"const": "cap"}, "c": {"type": "number"}}, "required": ["c"]}
    schema = {"properties": {"device": {"oneOf": [mos, cap, {"type": "string"}]}}}
    assert [fault.path for fault in find_faults({"device": {"type": "mos", "w": "x"}}, schema)] == ["device.w"]
    assert find_faults({"device": 3}, schema)[0].message == "'device' must be an object or a string, got 3"


@pytest.mark.parametrize(
    ("rule", "value", "message"),
    [
        ({"oneOf": [{"required": ["w", "l"]}, {"required": ["c"]}]}, {"w": 1}, "give exactly one of w and l, c"),
        ({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, {}, "give at least one of a, b"),
        ({"not": {"required": ["a", "b"]}}, {"a": 1, "b": 1}, "give only one of a, b"),
        ({"not": {"required": ["a", "b", "c"]}}, {"a": 1, "b": 1, "c": 1}, "do not give all of a, b, c"),
    ],
)
def test_a_rule_of_alternatives_says_which_properties_to_give(rule, value, message):
    (fault,) = find_faults(value, rule)
    assert fault.message == f"{message}; received {', '.join(value) or 'none of them'}"


def test_a_million_mistakes_are_a_short_answer():
    with pytest.raises(SkillError) as caught:
        validate(["x"] * 100_000, {"items": {"type": "number"}})
    assert len(caught.value.details["errors"]) == 50
    assert caught.value.details["error_count"] == 1000
    assert len(caught.value.message) < 1000


def test_long_received_values_are_shortened():
    with pytest.raises(SkillError) as caught:
        validate({"a": "x" * 100_000}, {"additionalProperties": {"type": "number"}})
    assert len(caught.value.message) + len(json.dumps(caught.value.details)) < 2000


def test_a_reference_out_of_the_schema_is_not_followed():
    schema = {"$ref": "http://127.0.0.1:9/never.json"}
    tool = Tool("tiny.draw", lambda params, _context: params, schema, {})
    result = call(tool, {})
    assert result.error.code == "INTERNAL_ERROR"
    assert "never.json" in result.error.message


def test_check_schema_tells_what_makes_a_schema_invalid():
    assert check_schema({"type": "object"}) == []
    assert check_schema({"properties": {"a": {"type": "int"}}})[0].startswith("$.properties.a.type")


def test_call_runs_a_tool_in_process_and_nothing_escapes(tmp_path):
    tool = Tool("tiny.draw", lambda params, _context: {"n": params["n"]}, {"properties": {"n": {"default": 3}}}, {})
    assert call(tool, {}).to_dict()["data"] == {"n": 3}
    assert call(tool, {"n": math.inf}).error.details["param_name"] == "n"
    assert call(tool, None).error.message == "params must be an object, got null"
    log = tmp_path / "log"
    loop: list[object] = []
    loop.append(loop)
    assert call(tool, {"n": loop}, log=str(log)).error.code == "INVALID_PARAM"
    assert json.loads(log.read_text())["result"]["ok"] is False


@pytest.mark.parametrize(
    "envelope",
    [{}, {"ok": True, "error": {"code": "TIMEOUT"}, "data": None, "duration_ms": 0}, {"ok": 1, "error": None}],
)
def test_what_is_no_envelope_is_refused(envelope):
    with pytest.raises(ValueError, match="not an envelope"):
        SkillResult.from_dict(envelope)


def test_a_name_that_no_property_may_have_is_reported_like_an_unknown_parameter():
    nets = {"type": "object", "propertyNames": {"enum": ["gate", "bulk"]}, "additionalProperties": {"type": "string"}}
    (fault,) = find_faults({"nets": {"gat": "x", "bulk": "y"}}, {"type": "object", "properties": {"nets": nets}})
    assert (fault.path, fault.allowed) == ("nets.gat", ["gate", "bulk"])
    assert fault.message.startswith("Unknown param: nets.gat; did you mean 'gate'")


def test_several_unknown_parameters_say_once_what_is_allowed():
    schema = {"type": "object", "properties": {"gate": {}, "bulk": {}}, "additionalProperties": False}
    faults = find_faults({"z": 1, "gat": 2, "y": 3}, schema)
    assert [fault.path for fault in faults] == ["gat", "y", "z"]
    assert ["allowed: gate, bulk" in fault.message for fault in faults] == [False, True, False]
    assert [fault.allowed for fault in faults] == [["gate", "bulk"], ["gate", "bulk"], None]


def test_an_unknown_code_cannot_be_raised():
    with pytest.raises(ValueError, match="unknown error code 'OOPS'"):
        SkillError("OOPS", "x")


def test_every_public_name_is_there():
    for name in skillscript.__all__:
        assert getattr(skillscript, name) is not None
    with pytest.raises(AttributeError):
        skillscript.no_such_name  # noqa: B018 - the access is the test


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("^a$", "a", True),
        ("^a$", "a\n", False),
        ("^(a$|b)", "a\n", False),
        (r"a\$", "a$\n", True),
        ("^[$]", "$", True),
    ],
)
def test_the_end_of_a_pattern_is_the_very_end_of_the_text(pattern, text, fits):
    assert (find_faults(text, {"pattern": pattern}) == []) is fits


@pytest.mark.parametrize(
    ("given", "metres", "micrometres"),
    [("4u", 4e-6, 4.0), ("0.5 um", 0.5e-6, 0.5), ("180n", 1.8e-7, 0.18), (".25µm", 2.5e-7, 0.25), (2, 2, 2)],
)
def test_a_length_may_be_a_text_with_a_prefix(given, metres, micrometres):
    schema = {
        "type": "object",
        "$ref": "#/$defs/sized",
        "properties": {"x": {"items": {"type": "number", "x-si": "um"}}, "name": {"type": "string"}},
        "$defs": {
            "sized": {"properties": {"w": {"$ref": "#/$defs/length"}}},
            "length": {"type": "number", "x-si": "m"},
        },
    }
    value = {"w": given, "x": [given], "name": "4u"}
    assert as_declared(value, schema) == {"w": metres, "x": [micrometres], "name": "4u"}
    assert value["w"] == given


@pytest.mark.parametrize(
    ("unit", "given", "number"),
    [
        ("F", "100fF", 1e-13),
        ("ohm", "10k", 1e4),
        ("ohm", "2Meg", 2e6),
        ("A", "20 uA", 2e-5),
        ("V", "900m", 0.9),
        ("m2", "4p", 4e-12),
        ("m2", "4um2", 4e-12),
    ],
)
def test_a_quantity_may_be_a_text_with_a_prefix_and_its_own_unit(unit, given, number):
    schema = {"items": {"type": "number", "x-si": unit}}
    assert as_declared([given], schema) == [pytest.approx(number, rel=1e-12)]


NAMES = {
    "additionalProperties": False,
    "properties": {
        "graphId": {},
        "net_name": {},
        "sizes": {"additionalProperties": {"additionalProperties": False, "properties": {"w": {}}}},
    },
}


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({"graph_id": 1, "net-name": 2}, {"graphId": 1, "net_name": 2}),
        ({"GraphID": 1, "netName": 2}, {"graphId": 1, "net_name": 2}),
        ({"sizes": {"M_1": {"W": 3}, "M1": {"w": 4}}}, {"sizes": {"M_1": {"w": 3}, "M1": {"w": 4}}}),
        ({"graph_id": 1, "graphId": 2}, {"graph_id": 1, "graphId": 2}),
        ({"graph_id": 1, "GraphID": 2}, {"graph_id": 1, "GraphID": 2}),
        ({"graphs": 1}, {"graphs": 1}),
    ],
)
def test_a_name_may_be_spelt_in_another_case_where_that_is_unambiguous(given, read):
    assert as_declared(given, NAMES) == read


@pytest.mark.parametrize("given", ["4", "4x", "u", "", "4 u u", True, "1e-6", "4uF", "4uV", "4um2", "4M"])
def test_what_is_no_length_stays_and_is_refused(given):
    schema = {"type": "object", "properties": {"w": {"type": "number", "x-si": "m"}}}
    assert as_declared({"w": given}, schema) == {"w": given}
    assert find_faults(as_declared({"w": given}, schema), schema)
