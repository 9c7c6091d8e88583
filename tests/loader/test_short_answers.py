"""Short answers: what the output schema marks is left out, and the answer says so."""

import pytest

from skillpack import Call, ToolDeclaration
from skillpack.execution import short_answers
from skillpack.execution.short_answers import in_detail, take_detail
from skillscript import SkillError, SkillResult

SCHEMA = {
    "type": "object",
    "x-whole": "files.all",
    "required": ["kept"],
    "properties": {
        "kept": {"x-short": False},
        "long": {"$ref": "#/$defs/long"},
        "notes": {"x-short": 2, "type": "array", "items": {"x-short": 4}},
        "faults": {"x-short": 3, "type": "array"},
        "count": {"x-short": 1},
        "inner": {"properties": {"seen": {}, "rest": {"x-short": False}}},
        "rows": {"items": {"properties": {"rest": {"x-short": False}}}},
        "files": {"properties": {"all": {}}, "additionalProperties": {"x-short": False}},
    },
    "$defs": {"long": {"x-short": False}},
}
DATA = {
    "kept": 1,
    "long": [1, 2],
    "notes": ["abcdef", "abc", "x"],
    "faults": [],
    "count": 0,
    "inner": {"seen": 1, "rest": [3]},
    "rows": [{"id": 1, "rest": 2}],
    "files": {"all": "/ws/all.json", "other": "/ws/other"},
    "unmarked": list(range(50)),
}


def declared(schema, **parameters):
    return ToolDeclaration("a.b", "s", "x.py", {"properties": parameters}, schema)


def short(schema, data):
    return in_detail(Call(SkillResult.success(data, 3), tool=declared(schema)), "short").envelope


@pytest.fixture(autouse=True)
def nothing_fits(request, monkeypatch):
    if "answer_that_fits" not in request.node.name:
        monkeypatch.setattr(short_answers, "SHORT_BYTES", 0)


def test_an_answer_that_fits_two_kilobytes_is_whole():
    schema = {"properties": {"rows": {"x-short": 1, "type": "array"}}}
    fits = {"rows": ["x" * 10, "x" * (short_answers.SHORT_BYTES - 108)]}
    assert len(str(fits)) + 80 == short_answers.SHORT_BYTES == 2048
    assert short(schema, fits)["data"] == fits
    assert short(schema, {"rows": [*fits["rows"][:1], fits["rows"][1] + "x"]})["data"] == {"rows": ["x" * 10]}


def test_of_a_list_with_two_numbers_an_answer_that_fits_keeps_what_there_is_room_for():
    schema = {"properties": {"rows": {"x-short": [40, 2], "type": "array"}, "more": {}}}
    for size, kept in ((20, 40), (80, 20), (1000, 2)):
        answer = short(schema, {"rows": ["x" * size] * 100, "more": 1})
        assert (len(answer["data"]["rows"]), answer["left_out"]["in_part"]) == (kept, ["rows"])
    assert len(short(schema, {"rows": ["x" * 2000]})["data"]["rows"]) == 1


def test_what_is_marked_is_left_out_and_named_with_the_place_of_the_whole_answer():
    answer = short(SCHEMA, DATA)
    assert answer["data"] == {
        "kept": 1,
        "notes": ["abcd...", "abc"],
        "inner": {"seen": 1},
        "rows": [{"id": 1}],
        "files": {"all": "/ws/all.json"},
        "unmarked": list(range(50)),
    }
    assert answer["left_out"] == {
        "fields": ["long"],
        "in_part": ["notes", "inner", "rows", "files"],
        "whole_answer": "detail: full, or /ws/all.json",
    }


def test_a_finding_is_never_left_out_for_its_kind_only_cut_to_a_number():
    answer = short(SCHEMA, {"kept": 1, "faults": ["a", "b", "c", "d"], "count": 4})
    assert answer["data"] == {"kept": 1, "faults": ["a", "b", "c"], "count": 4}
    assert answer["left_out"] == {"in_part": ["faults"], "whole_answer": "detail: full"}


def test_a_whole_answer_is_the_envelope_as_it_was():
    for schema, data in ((SCHEMA, {"kept": 1}), ({"type": "object"}, DATA)):
        assert set(short(schema, data)) == {"ok", "error", "data", "duration_ms"}
    whole = Call(SkillResult.success(DATA, 3), tool=declared(SCHEMA))
    assert in_detail(whole, "full") is whole


def test_data_of_a_failed_call_are_short_too():
    failed = Call(SkillResult.failure(SkillError("DRC_VIOLATION", "bad", None, DATA)), tool=declared(SCHEMA))
    answer = in_detail(failed, "short").envelope
    assert (answer["ok"], "long" in answer["data"], answer["left_out"]["fields"]) == (False, False, ["long"])


def test_detail_is_taken_from_the_parameters_unless_it_is_the_tools_own():
    assert take_detail(declared(SCHEMA), {"a": 1, "detail": "full"}, "short") == ({"a": 1}, "full")
    assert take_detail(declared(SCHEMA), {"a": 1}, "short") == ({"a": 1}, "short")
    assert take_detail(declared(SCHEMA, detail={}), {"detail": 7}, "short") == ({"detail": 7}, "short")
    assert take_detail(None, [1], "short") == ([1], "short")
    with pytest.raises(SkillError, match="detail must be one of short, full, got 'long'"):
        take_detail(declared(SCHEMA), {"detail": "long"}, "short")


def test_a_list_of_no_more_than_its_most_is_shortened_where_the_answer_that_fits_has_fewer():
    schema = {"properties": {"rows": {"x-short": [4, 1], "type": "array"}}}
    rows = ["x" * 700] * 4
    assert short(schema, {"rows": rows})["data"] == {"rows": rows[:2]}
    assert short(schema, {"rows": rows[:1] * 1})["data"] == {"rows": rows[:1]}
    assert short(schema, {"rows": ["x" * 3000]})["data"] == {"rows": ["x" * 3000]}
