"""A script finds the schemas that its skill declares, wherever they are (S1.1)."""

import json
import subprocess
import sys

import pytest

from patience import WATCHDOG_S

BODY = """
def execute(params, context):
    return {"got": params}
if __name__ == "__main__":
    from skillscript import main
    raise SystemExit(main(__file__, "quiz", execute))
"""
TAKES = {
    key: {"type": "object", "required": [key], "properties": {key: {"default": 1}}, "additionalProperties": False}
    for key in ("topic", "subject")
}


@pytest.fixture
def run(tmp_path):
    """Return a function that calls a script of a skill made of the given files."""

    def call(files, script, params):
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        command = [sys.executable, str(tmp_path / script), "--params", json.dumps(params)]
        return json.loads(subprocess.run(command, capture_output=True, timeout=WATCHDOG_S, check=False).stdout)

    return call


def test_a_handler_beside_its_declaration_takes_the_schemas_it_names(run):
    """The folder of S1.1."""
    files = {
        "handler.py": BODY,
        "schemas/input.schema.json": TAKES["topic"],
        "schemas/output.schema.json": {"type": "object"},
        "skill.yaml": {
            "id": "quiz",
            "script": "handler.py",
            "input_schema": "schemas/input.schema.json",
            "output_schema": "schemas/output.schema.json",
        },
    }
    assert run(files, "handler.py", {"topic": "x"})["data"] == {"got": {"topic": "x"}}
    assert run({}, "handler.py", {"subject": "x"})["error"]["code"] == "INVALID_PARAM"


@pytest.mark.parametrize(("name", "output"), [("skill.yaml", {"type": "object"}), ("skill.json", {})])
def test_a_schema_written_into_the_declaration_is_taken(run, name, output):
    entry = {
        "id": "quiz",
        "script": "scripts/a.py",
        "input_schema": TAKES["topic"],
        "output_schema": output,
    }
    files = {"scripts/a.py": BODY, name: {"tools": [{"id": "other"}, entry]}}
    assert run(files, "scripts/a.py", {"topic": "x"})["data"] == {"got": {"topic": "x"}}


def test_each_version_of_a_tool_takes_its_own_schema(run):
    output = {"output_schema": {"type": "object"}}
    versions = [
        {"id": "quiz", "version": "2.0.0", "script": "scripts/new.py", "input_schema": TAKES["subject"], **output},
        {"id": "quiz", "version": "1.0.0", "script": "scripts/old.py", "input_schema": TAKES["topic"], **output},
    ]
    files = {
        "scripts/new.py": BODY,
        "scripts/old.py": BODY,
        "schemas/quiz.input.json": TAKES["subject"],
        "schemas/quiz.output.json": {"type": "object"},
        "skill.yaml": {"tools": versions},
    }
    assert run(files, "scripts/old.py", {"topic": "x"})["data"] == {"got": {"topic": "x"}}
    assert run(files, "scripts/new.py", {"subject": "x"})["data"] == {"got": {"subject": "x"}}


def test_a_schema_that_is_nowhere_is_reported(run):
    error = run({"scripts/a.py": BODY, "skill.yaml": {"tools": []}}, "scripts/a.py", {})["error"]
    assert error["code"] == "INTERNAL_ERROR"
    assert "quiz.input.json cannot be read" in error["message"]


def test_a_copied_skill_of_another_version_than_the_package_is_reported(run):
    """Its shared definitions are those of the installed package; see ``skills/analog-layout.schema.json``."""
    takes = {"$ref": "../../analog-layout.schema.json#/$defs/of_another_version"}
    files = {
        "quiz/scripts/a.py": BODY,
        "quiz/schemas/quiz.input.json": takes,
        "quiz/schemas/quiz.output.json": {"type": "object"},
    }
    message = run(files, "quiz/scripts/a.py", {})["error"]["message"]
    assert "has no schema named 'of_another_version'" in message
    assert "differ in version: copy the skill again, or update the package" in message
