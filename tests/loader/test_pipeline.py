"""Pipelines: checked before anything runs, each envelope recorded, resumable (S1.6, S1.7)."""

import json
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from patience import WATCHDOG_S
from skillpack import Runner, RunOptions, check_pipeline, find_tools, load_pipeline, run_pipeline, scan
from skillpack.exceptions import PipelineError
from skillpack.pipelines.pipeline import make_pipeline
from skillpack.pipelines.references import SchemaPlace, find_place, misfits
from sturdy.bounded_run import Cancellation

SCRIPT = """
    import sys
    from pathlib import Path
    from skillscript import SkillError, main

    def parse(params, context):
        note("parse")
        words = Path(params["file"]).read_text().split()
        data = {"words": words, "count": len(words), "first": {"text": words[0]} if words else {}}
        if params["extra"]:
            data["extra"] = "x"
        return data

    def weigh(params, context):
        note("weigh")
        if Path("broken").exists():
            raise SkillError("RULE_NOT_FOUND", "the scales are broken")
        print("weighing", file=sys.stderr)
        return {"total": params["count"] * params["factor"] + len(params.get("name", ""))}

    def note(text):
        with open("calls", "a") as file:
            file.write(text + " ")

    if __name__ == "__main__":
        violates = lambda data: data.get("total", 0) > 100
        raise SystemExit(main(__file__, TOOL, HANDLER, violates=violates))
    """


def schema(required, **properties):
    return {"type": "object", "additionalProperties": False, "required": required, "properties": properties}


TEXT, NUMBER, COUNT = {"type": "string"}, {"type": "number"}, {"type": "integer", "minimum": 0}
SCHEMAS = {
    "w.parse": (
        schema(["file"], file=TEXT, extra={"type": "boolean", "default": False}),
        schema(
            ["words", "count", "first"],
            words={"type": "array", "items": TEXT},
            count=COUNT,
            first=schema([], text=TEXT),
            extra=TEXT,
        ),
    ),
    "w.weigh": (
        schema(
            ["count"],
            count=COUNT,
            factor={"type": "number", "default": 1},
            name=TEXT,
            kind={"enum": ["a", "b"]},
            limits=schema(["low"], low=NUMBER, high=NUMBER),
        ),
        schema(["total"], total=NUMBER),
    ),
}


@pytest.fixture
def tools(write_skill, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    entries, files = [], {}
    for tool, (given, answered) in SCHEMAS.items():
        name = tool.rpartition(".")[2]
        files[f"schemas/{tool}.input.json"] = json.dumps(given)
        files[f"schemas/{tool}.output.json"] = json.dumps(answered)
        source = textwrap.dedent(SCRIPT).replace("TOOL", repr(tool)).replace("HANDLER", name)
        files[f"scripts/{name}.py"] = source
        entries.append(
            {
                "id": tool,
                "script": f"scripts/{name}.py",
                "input_schema": f"schemas/{tool}.input.json",
                "output_schema": f"schemas/{tool}.output.json",
            }
        )
    entries.append({**entries[0], "id": "w.alone", "composable": False})
    files["skill.yaml"] = json.dumps({"tools": entries})
    write_skill("w", files=files)
    (tmp_path / "text").write_text("one two three")
    found = find_tools(scan([tmp_path / "skills"]).skills.values())
    assert found.faults == ()
    return found


@pytest.fixture
def runner(tools):
    with Runner(tools, timeout=WATCHDOG_S) as runner:
        yield runner


def ref(pointer, **more):
    return {"$from": pointer, **more}


def pipeline(*steps, inputs=None, outputs=None):
    return make_pipeline(
        {
            "pipeline": "weighing",
            "version": "1.0.0",
            "inputs": inputs
            or {"required": ["file"], "properties": {"file": TEXT, "factor": {**NUMBER, "default": 2}}},
            "steps": list(steps),
            "outputs": outputs or {},
        }
    )


PARSE = {"id": "parse", "tool": "w.parse", "params": {"file": ref("/inputs/file")}}
WEIGH = {
    "id": "weigh",
    "tool": "w.weigh",
    "params": {
        "count": ref("/steps/parse/count"),
        "factor": ref("/inputs/factor"),
        "name": ref("/steps/parse/words/0"),
    },
}
GOOD = pipeline(PARSE, WEIGH, outputs={"total": ref("/steps/weigh/total"), "kind": "sum"})


def calls():
    file = Path("calls")
    return file.read_text().split() if file.exists() else []


def statuses(result):
    data = result.data if result.error is None else result.error.data
    return [entry["status"] for entry in data["steps"]]


# --- running


def test_each_step_gets_what_earlier_ones_answered(runner):
    result = run_pipeline(GOOD, {"file": "text"}, runner)
    assert (result.ok, result.data["status"], result.data["outputs"]) == (True, "done", {"total": 9, "kind": "sum"})
    assert [step["id"] for step in result.data["steps"]] == ["parse", "weigh"]
    assert [set(step["envelope"]) for step in result.data["steps"]] == [{"ok", "error", "data", "duration_ms"}] * 2
    assert result.data["steps"][0]["envelope"]["data"]["words"] == ["one", "two", "three"]
    assert calls() == ["parse", "weigh"]


def test_references_nest_in_objects_and_lists_and_may_have_a_default_or_be_left_out(runner):
    nested = {
        "count": 4,
        "name": ref("/steps/parse/words/9", default="none"),
        "kind": ref("/inputs/kind", optional=True),
        "limits": {"low": ref("/inputs/factor")},
    }
    inputs = {"properties": {"file": TEXT, "factor": {**NUMBER, "default": 2}, "kind": TEXT}}
    nesting = pipeline(PARSE, {**WEIGH, "params": nested}, inputs=inputs)
    result = run_pipeline(nesting, {"file": "text"}, runner)
    assert result.data["steps"][1]["envelope"]["data"] == {"total": 8}


def test_wrong_inputs_are_reported_before_anything_runs(runner):
    error = run_pipeline(GOOD, {"fiel": "text", "factor": "2"}, runner).error
    assert error.code == "INVALID_PARAM"
    assert len(error.details["errors"]) == 3
    assert calls() == []


@pytest.mark.parametrize(
    ("inputs", "problem"),
    [
        ({"file": "text", "number": -1}, "step 'weigh': 'count' must be at least 0, got -1"),
        ({"file": "text"}, "step 'weigh': count: /inputs/number leads to nothing"),
    ],
)
def test_an_input_that_a_late_step_refuses_is_reported_before_anything_runs(runner, inputs, problem):
    late = {**WEIGH, "params": {"count": ref("/inputs/number")}}
    document = pipeline(PARSE, late, inputs={"properties": {"file": TEXT, "number": NUMBER}, "required": ["file"]})
    result = run_pipeline(document, inputs, runner)
    assert (result.error.code, problem in result.error.message, calls()) == ("INVALID_PARAM", True, [])


def test_a_failing_step_ends_the_run_with_its_code_and_everything_so_far(runner, tmp_path):
    (tmp_path / "broken").touch()
    result = run_pipeline(GOOD, {"file": "text"}, runner)
    assert (result.error.code, result.exit_code) == ("RULE_NOT_FOUND", 2)
    assert result.error.message == "step 'weigh' (w.weigh): the scales are broken"
    assert result.error.details["step"] == "weigh"
    assert statuses(result) == ["done", "failed"]
    assert result.data["steps"][1]["envelope"]["error"]["code"] == "RULE_NOT_FOUND"


def test_an_upstream_answer_that_lacks_what_is_referred_to_fails_where_it_is_used(runner, tmp_path):
    """S1.6: upstream output of a pipeline."""
    (tmp_path / "text").write_text("")
    result = run_pipeline(GOOD, {"file": "text"}, runner)
    assert result.error.message == (
        "step 'weigh' (w.weigh): /steps/parse/words/0 leads to nothing: there is no '0' in a list of 0"
    )
    assert statuses(result) == ["done", "failed"]


@pytest.mark.parametrize(("on_violation", "expected"), [("stop", ["done", "violated", "not_run"]), ("continue", None)])
def test_a_violation_ends_the_run_unless_the_step_says_otherwise(runner, on_violation, expected):
    weigh = {**WEIGH, "params": {"count": 101}, "on_violation": on_violation}
    again = {**WEIGH, "id": "again", "params": {"count": ref("/steps/parse/count")}}
    result = run_pipeline(pipeline(PARSE, weigh, again), {"file": "text"}, runner)
    assert (result.ok, result.exit_code) == (True, 1)
    assert result.data["status"] == ("violated" if expected else "done")
    assert statuses(result) == (expected or ["done", "violated", "done"])


def test_progress_talk_and_context_pass_through(runner):
    seen, talk = [], []
    options = RunOptions(
        context={"memory_summary": "x"}, on_step=lambda *step: seen.append(step), on_stderr=talk.append
    )
    assert run_pipeline(GOOD, {"file": "text"}, runner, options).ok
    assert seen == [("parse", "running"), ("parse", "done"), ("weigh", "running"), ("weigh", "done")]
    assert b"weighing" in b"".join(talk)
    options = RunOptions(context={"memory": "x"})
    assert run_pipeline(GOOD, {"file": "text"}, runner, options).error.code == "INVALID_PARAM"


def test_a_cancelled_run_ends(runner):
    cancellation = Cancellation()
    cancellation.cancel()
    result = run_pipeline(GOOD, {"file": "text"}, runner, RunOptions(cancellation=cancellation))
    assert result.error.details["error_details"] == {"cancelled": True}
    assert calls() == []


def test_a_step_has_its_own_timeout(runner):
    slow = {**PARSE, "timeout_s": 0.001}
    assert run_pipeline(pipeline(slow), {"file": "text"}, runner).error.code == "TIMEOUT"
    with pytest.raises(PipelineError, match=r"'steps\[0\]\.timeout_s' must be at most 1000000, got 1e\+300"):
        pipeline({**PARSE, "timeout_s": 1e300})


# --- resuming


@pytest.fixture
def failed(runner, tmp_path):
    """A run that failed in its second step, with its state."""
    (tmp_path / "broken").touch()
    state = tmp_path / "state.json"
    run_pipeline(GOOD, {"file": "text"}, runner, RunOptions(state_path=state))
    assert calls() == ["parse", "weigh"]
    (tmp_path / "broken").unlink()
    return state


def resumed(runner, state, document=GOOD, **inputs):
    return run_pipeline(document, {"file": "text", **inputs}, runner, RunOptions(state_path=state, resume=True))


def test_what_was_done_is_not_run_again_after_a_failure(runner, failed):
    result = resumed(runner, failed)
    assert (result.data["outputs"]["total"], statuses(result)) == (9, ["reused", "done"])
    assert calls() == ["parse", "weigh", "weigh"]
    assert statuses(resumed(runner, failed)) == ["reused", "reused"]
    assert statuses(run_pipeline(GOOD, {"file": "text"}, runner, RunOptions(state_path=failed))) == ["done", "done"]


def test_a_step_requested_differently_and_all_after_it_run_again(runner, failed):
    resumed(runner, failed)
    assert statuses(resumed(runner, failed, factor=3)) == ["reused", "done"]
    changed = pipeline({**PARSE, "params": {**PARSE["params"], "extra": True}}, WEIGH)
    assert statuses(resumed(runner, failed, changed)) == ["done", "done"]


def test_a_changed_input_file_runs_everything_again_and_is_reported(runner, failed, tmp_path):
    (tmp_path / "text").write_text("one")
    result = resumed(runner, failed)
    assert statuses(result) == ["done", "done"]
    assert "an input file has changed" in result.data["warnings"][-1]


def test_another_folder_runs_everything_again(runner, failed, tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/text").write_text("one two three")
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert statuses(resumed(runner, failed)) == ["done", "done"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "Invalid JSON format"),
        ("[]", "is not a state of a pipeline"),
        ('{"format": 1}', "is not a state of a pipeline"),
        ('{"format": 1, "pipeline": "other", "steps": {}}', "is the state of the pipeline 'other'"),
    ],
)
def test_a_state_file_that_is_not_this_pipelines_is_refused(runner, tmp_path, content, reason):
    state = tmp_path / "state.json"
    state.write_text(content)
    error = resumed(runner, state).error
    assert error.code == "INVALID_PARAM"
    assert reason in error.message
    assert state.read_text() == content


@pytest.mark.parametrize("entry", [{}, [], {"request": 3}, {"envelope": {"ok": True}}])
def test_a_damaged_entry_is_run_again(runner, failed, entry):
    state = json.loads(failed.read_text())
    request = state["steps"]["parse"]["request"]
    state["steps"]["parse"] = {"request": request, **entry} if isinstance(entry, dict) else entry
    failed.write_text(json.dumps(state))
    assert statuses(resumed(runner, failed)) == ["done", "done"]


def test_recorded_data_that_the_tools_schema_refuses_is_not_used(runner, failed):
    state = json.loads(failed.read_text())
    state["steps"]["parse"]["envelope"]["data"]["count"] = "three"
    failed.write_text(json.dumps(state))
    assert statuses(resumed(runner, failed)) == ["done", "done"]


def test_a_state_longer_than_one_that_can_be_read_is_reported_and_not_written(monkeypatch, runner, tmp_path):
    monkeypatch.setattr("skillpack.pipelines.pipeline_run.MAX_STATE_BYTES", 100)
    result = run_pipeline(GOOD, {"file": "text"}, runner, RunOptions(state_path=tmp_path / "state"))
    assert result.ok
    assert [text for text in result.data["warnings"] if "state" in text] == [
        "the state file state would be longer than 100 bytes: left as it was"
    ]
    assert not (tmp_path / "state").exists()


def test_a_state_file_that_cannot_be_written_is_reported_and_stops_nothing(runner, tmp_path):
    options = RunOptions(state_path=tmp_path / "none" / "state.json")
    result = run_pipeline(GOOD, {"file": "text"}, runner, options)
    assert result.ok
    assert "cannot be written" in result.data["warnings"][-1]


# --- checking


def problems(tools, *steps, **more):
    return list(check_pipeline(pipeline(*steps, **more), tools).problems)


def test_a_good_pipeline_has_no_problems_but_tells_what_may_be_missing(tools):
    findings = check_pipeline(GOOD, tools)
    assert findings.problems == ()
    assert findings.warnings == (
        "step 'weigh': name: /steps/parse/words/0 may be missing; give it a default or make it optional",
    )


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ({"count": "three"}, "'count' must be an integer, got string \"three\""),
        ({}, "Missing required param: count"),
        ({"count": 1, "nmae": "x"}, "Unknown param: nmae; did you mean 'name'?"),
        ({"count": 1, "limits": {"low": ref("/inputs/factor"), "hihg": 1}}, "Unknown param: limits.hihg"),
        ({"count": 1, "limits": {"high": ref("/inputs/factor")}}, "Missing required param: limits.low"),
        (
            {"cuont": ref("/steps/parse/count"), "count": 1},
            "no such parameter: there is no 'cuont'; did you mean 'count'",
        ),
        ({"count": ref("/steps/parse/words")}, "count: /steps/parse/words is an array, but an integer is wanted"),
        ({"count": ref("/steps/parse/first")}, "is an object, but an integer is wanted"),
        ({"count": ref("/inputs/file")}, "count: /inputs/file is a string, but an integer is wanted"),
        ({"count": ref("/inputs/fiel")}, "there is no 'fiel'; did you mean 'file'?"),
        ({"count": ref("/steps/parse/cuont")}, "/steps/parse/cuont: there is no 'cuont'; did you mean 'count'?"),
        ({"count": ref("/steps/parse/count/x")}, "there is no 'x' in an integer"),
        ({"count": ref("/steps/parse/words/x")}, "an array has numbered items, not 'x'"),
        ({"count": ref("/steps/prase/count")}, "step 'prase' does not exist; did you mean 'parse'?"),
        ({"count": ref("/steps/last/count")}, "step 'last' runs later"),
        ({"count": ref("/steps/weigh/total")}, "step 'weigh' runs later"),
        ({"count": ref("/step/parse")}, "a reference starts with /inputs/ or /steps/"),
        ({"count": ref("/steps/parse//x")}, "has an empty part"),
        ({"count": ref("/inputs/factor", defualt=1)}, "a reference has no field 'defualt'; did you mean 'default'?"),
        ({"count": ref("/inputs/factor", optional=1)}, "'optional' is true or false"),
        (
            {"count": ref("/steps/parse/count", default="x")},
            "the default of a reference: 'count' must be an integer, got string \"x\"",
        ),
        ({"count": 1, "limits": ref("/steps/parse/first")}, "limits: /steps/parse/first has no 'low'"),
        ({"count": 1, "kind": ref("/inputs/kind")}, "is one of c, but one of a, b is wanted"),
    ],
)
def test_what_is_wrong_with_a_steps_parameters_is_reported_before_anything_runs(tools, params, problem):
    inputs = {"properties": {"file": TEXT, "factor": NUMBER, "kind": {"enum": ["c"]}}, "required": ["file"]}
    last = {**PARSE, "id": "last"}
    found = problems(tools, PARSE, {**WEIGH, "params": params}, last, inputs=inputs)
    assert any(problem in text for text in found), found
    assert all(text.startswith("step 'weigh': ") for text in found)
    assert calls() == []


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        ({"tool": "w.prase"}, "unknown tool 'w.prase'; did you mean 'w.parse'?"),
        ({"tool": "w.parse@2.0.0"}, "has no version 2.0.0"),
        ({"tool": "w.alone"}, "declared as not composable"),
        ({"id": "parse"}, "there is an earlier step of that name"),
    ],
)
def test_what_is_wrong_with_a_step_is_reported(tools, step, problem):
    (text,) = problems(tools, PARSE, {**PARSE, "id": "second", **step})
    assert problem in text


@pytest.mark.parametrize("tool", ["w.weigh@1.0.0", "w.wiegh"], ids=["of an older version", "unknown"])
def test_a_reference_that_leads_nowhere_is_reported_of_a_step_whose_parameters_cannot_be_judged(tools, tool):
    newer = replace(tools, by_id={**tools.by_id, "w.weigh": replace(tools.by_id["w.weigh"], version="1.1.0")})
    params = {"count": ref("/steps/parse/cuont"), "factor": ref("/steps/last/count"), "name": ref("/inputs/nme")}
    steps = [PARSE, {"id": "weigh", "tool": tool, "params": params}, {**PARSE, "id": "last"}]
    found = [text for text in check_pipeline(pipeline(*steps), newer).problems if "unknown tool" not in text]
    assert [text.split(": ")[2] for text in found] == ["/steps/parse/cuont", "/steps/last/count", "/inputs/nme"]


def test_all_problems_are_reported_at_once_and_a_run_is_refused_with_them(runner):
    bad = pipeline(
        {**PARSE, "params": {}}, {**WEIGH, "params": {"count": ref("/steps/none/x")}}, outputs={"o": ref("/x")}
    )
    error = run_pipeline(bad, {"file": "text"}, runner).error
    assert (error.code, len(error.details["problems"])) == ("INVALID_PARAM", 3)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("steps: []", "has no 'pipeline'"),
        ("pipeline: x\nsteps: []", "must have at least 1 items"),
        ("pipeline: X\nsteps: [{id: a, tool: b}]", "'pipeline' must match"),
        ("pipeline: x\nstep: 1\nsteps: [{id: a, tool: b}]", "has an unknown field 'step'; did you mean 'steps'?"),
        ("pipeline: x\nsteps: [{id: a, tool: b, on_violation: go}]", "must be one of stop, continue"),
        ("pipeline: x\nsteps: [{id: a}]", "steps[0].tool is missing"),
        (
            "pipeline: x\nsteps: [{id: a, tool: b, parms: {}}]",
            "steps[0].parms is an unknown field; did you mean 'params'",
        ),
        ("pipeline: x\ninputs: {properties: 3}\nsteps: [{id: a, tool: b}]", "inputs: $.properties"),
        ("pipeline: x\npipeline: y", "the key 'pipeline' twice"),
        ("- a", "is not a mapping"),
    ],
)
def test_a_file_that_is_no_pipeline_is_reported(tmp_path, text, problem):
    file = tmp_path / "x.pipeline.yaml"
    file.write_text(text)
    with pytest.raises(PipelineError) as caught:
        load_pipeline(file)
    assert problem in str(caught.value)


def test_a_missing_file_is_reported(tmp_path):
    with pytest.raises(PipelineError, match="no such pipeline"):
        load_pipeline(tmp_path / "none.yaml")


# --- what two schemas say of each other


@pytest.mark.parametrize(
    ("given", "wanted", "fits"),
    [
        ({}, {"type": "string"}, True),
        ({"type": "integer"}, {"type": "number"}, True),
        ({"type": "number"}, {"type": "integer"}, True),
        ({"type": ["string", "null"]}, {"type": "string"}, True),
        ({"type": "boolean"}, {"type": "integer"}, False),
        ({"const": "a"}, {"type": "number"}, False),
        ({"enum": ["a", "b"]}, {"enum": ["b", "c"]}, True),
        ({"enum": ["a"]}, {"enum": ["b"]}, False),
        ({"type": "number", "minimum": 5}, {"type": "number", "maximum": 4}, False),
        ({"type": "number", "maximum": 5}, {"type": "number", "minimum": 6}, False),
        ({"anyOf": [{"type": "string"}, {"type": "number"}]}, {"type": "number"}, True),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": "number"}, False),
        ({"type": "string"}, {"oneOf": [{"type": "number"}, {"type": "null"}]}, False),
        ({"type": "array", "items": TEXT}, {"type": "array", "items": NUMBER}, False),
        (schema(["a"], a=TEXT), schema(["a"], a=TEXT, b=TEXT), True),
        (schema(["a", "b"], a=TEXT, b=TEXT), schema(["a"], a=TEXT), False),
        (schema(["a"], a=TEXT), schema(["a"], a=NUMBER), False),
        (schema([], a=TEXT), {"type": "object", "required": ["b"]}, False),
        ({"$ref": "#/$defs/x", "$defs": {"x": TEXT}}, NUMBER, False),
        (TEXT, False, False),
        (TEXT, True, True),
    ],
)
def test_only_what_is_certain_is_a_misfit(given, wanted, fits):
    source = SchemaPlace(given, given)
    target = SchemaPlace(wanted, wanted if isinstance(wanted, dict) else {})
    assert (misfits(source, target) == []) is fits


def test_a_place_is_certain_only_when_every_step_to_it_is_required():
    document = schema(["a"], a=schema(["b"], b={"type": "array", "minItems": 1, "items": TEXT}, c=TEXT), d=TEXT)
    start = SchemaPlace(document, document)
    assert [find_place(start, path).certain for path in (["a", "b", 0], ["a", "b", 1], ["a", "c"], ["d"])] == [
        True,
        False,
        False,
        False,
    ]


def test_the_part_file_of_a_killed_run_is_taken_over_by_the_next(runner, tmp_path):
    state, part = tmp_path / "state.json", tmp_path / ".state.json.part"
    part.write_bytes(b"x" * 100_000)
    run_pipeline(GOOD, {"file": "text"}, runner, RunOptions(state_path=state))
    assert not part.exists()
    assert json.loads(state.read_text())["steps"]
