"""A tool may declare error codes of its own (S2.5), and camelCase parameters get flags of both spellings."""

from __future__ import annotations

import json

import pytest

from skillscript import SkillError, SkillResult, Tool, call

DECLARING = {"type": "object", "x-error-codes": {"NODE_EXISTS": "taken", "oops": "not a code"}}
RAISE = """
class GraphError(Exception):
    code, details = "NODE_EXISTS", {"id": "clk"}
raise GraphError("node 'clk' exists already")
"""


def test_a_declared_code_reaches_the_envelope_with_exit_code_2(make_skill):
    run = make_skill(RAISE, DECLARING).run("--w", "1")
    assert run.error == {"code": "NODE_EXISTS", "message": "node 'clk' exists already", "details": {"id": "clk"}}
    assert run.code == 2
    assert "Traceback" not in run.stderr


def test_an_undeclared_code_is_an_internal_error(make_skill):
    run = make_skill(RAISE).run("--w", "1")
    assert (run.error["code"], run.code) == ("INTERNAL_ERROR", 4)


@pytest.mark.parametrize("code", ["oops", "OOPS", "NODE_", "_NODE", "NODE__EXISTS", "NODE_EXISTS\n", "A_" * 40, "", 3])
def test_what_is_no_code_cannot_be_declared(code):
    class Odd(Exception):  # noqa: N818
        pass

    Odd.code = code

    def execute(_params, _context):
        raise Odd

    tool = Tool("tiny.draw", execute, {}, {"x-error-codes": {str(code): "meaning"}})
    assert call(tool, {}).error.code == "INTERNAL_ERROR"


def test_a_tools_own_code_survives_the_way_through_an_envelope():
    error = SkillError("HAS_RELATIONS", "why", {"count": 2}, own=("HAS_RELATIONS",))
    back = SkillResult.from_dict(json.loads(SkillResult.failure(error).to_json()))
    assert (back.error.code, back.error.details, back.exit_code) == ("HAS_RELATIONS", {"count": 2}, 2)


def test_a_slip_in_an_envelope_is_no_code():
    with pytest.raises(ValueError, match="unknown error code 'OOPS'"):
        SkillResult.from_dict({"ok": False, "error": {"code": "OOPS"}, "data": None, "duration_ms": 0})


@pytest.mark.parametrize("flag", ["--graph-id", "--graphId"])
def test_a_camel_case_parameter_has_a_flag_of_either_spelling(make_skill, flag):
    skill = make_skill()
    path = skill.folder / "schemas" / "tiny.draw.input.json"
    schema = json.loads(path.read_text())
    schema["properties"]["graphId"] = {"type": "string", "description": "Graph."}
    path.write_text(json.dumps(schema))
    assert skill.run("--w", "1", flag, "demo").envelope["data"]["params"]["graphId"] == "demo"
    assert "--graphId TEXT" in (shown := skill.run("--help").stdout)
    assert "--graph-id TEXT, " in shown or "--graph-id, " in shown  # Python 3.13 shows the value once
    assert "--graph-id: is given 2 times" in skill.run("--w", "1", "--graphId", "a", flag, "b").error["message"]
