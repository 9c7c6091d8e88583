"""skill.yaml: tools are found without their code, and a faulty one is told without hiding the next."""

import json

import pytest

from skillpack import find_tools, scan

ENTRY = {
    "id": "a.run",
    "script": "scripts/run.py",
    "version": "1.0.0",
    "input_schema": {"type": "object"},
    "output_schema": "schemas/out.json",
}
FILES = {"scripts/run.py": "raise SystemExit('imported')", "schemas/out.json": '{"type": "object"}'}


@pytest.fixture
def tools_of(write_skill, tmp_path):
    """Return the tools of a skill ``a`` whose skill.yaml has the given entries (JSON is YAML)."""

    def declare(*entries, **top):
        text = json.dumps({"skill": "a", "version": "2.0.0", "tools": list(entries), **top})
        write_skill("a", files={**FILES, "skill.yaml": text})
        return find_tools(scan([tmp_path / "skills"]).skills.values())

    return declare


def test_a_declared_tool_is_found_without_importing_it(tools_of, tmp_path):
    tools = tools_of({**ENTRY, "intent_tags": ["x"], "composable": True})
    tool = tools.by_id["a.run"]
    assert tools.faults == ()
    assert (tool.skill, tool.version, tool.script) == ("a", "1.0.0", str(tmp_path / "skills/a/scripts/run.py"))
    assert (tool.input_schema, tool.output_schema) == ({"type": "object"}, {"type": "object"})
    assert tool.entry["intent_tags"] == ["x"]
    assert tools.of_skill("a") == [tool]


def test_a_tool_without_a_version_has_its_skills(tools_of):
    entry = {key: value for key, value in ENTRY.items() if key != "version"}
    assert tools_of(entry).by_id["a.run"].version == "2.0.0"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"id": 3}, "id must be text, got 3"),
        ({"id": "A.Run"}, "is not lower-case words joined by dots"),
        ({"script": "scripts/none.py"}, "script 'scripts/none.py' does not exist"),
        ({"script": "../outside.py"}, "lies outside the skill"),
        ({"script": "/bin/sh"}, "lies outside the skill"),
        ({"script": "scripts"}, "does not exist"),
        ({"script": "a\0b"}, "lies outside the skill"),
        ({"version": 1.1}, "version must be text, got 1.1"),
        ({"input_schema": []}, "input_schema must be text or a mapping, got []"),
        ({"output_schema": "scripts/run.py"}, "Invalid JSON format"),
        ({"intent_tag": []}, "unknown field 'intent_tag'; did you mean 'intent_tags'?"),
        ({"composable": "yes"}, "composable must be true or false"),
    ],
)
def test_a_faulty_tool_is_told_and_does_not_hide_the_next(tools_of, change, reason):
    tools = tools_of({**ENTRY, **change}, {**ENTRY, "id": "a.other"})
    assert list(tools.by_id) == ["a.other"]
    assert [reason in fault.reason for fault in tools.faults] == [True]


def test_all_faults_of_a_tool_are_told_at_once(tools_of):
    (fault,) = tools_of({"id": "a.run", "script": "x.py", "cost": 3}).faults
    assert fault.tool == "a.run"
    assert fault.reason == (
        "has no input_schema; has no output_schema; cost must be a mapping, got 3; script 'x.py' does not exist"
    )


def test_a_tool_that_is_no_mapping_is_told_by_its_place(tools_of):
    assert [fault.tool for fault in tools_of("x", ENTRY).faults] == ["tools[0]"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("tools: [", "not valid YAML"),
        ("tools: 3", "needs a list 'tools'"),
        ("", "needs a list 'tools'"),
        ("skill: b\ntools: []", "says skill 'b', but SKILL.md says 'a'"),
        ("tools: []\ntools: []", "the key 'tools' twice"),
        ("a: &x 1\ntools: [*x]", "alias"),
        ("tools: [!!python/name:os.system x]", "not valid YAML"),
        ("a: 2026-99-99\ntools: []", "not valid YAML"),
        (b"\xff", "not UTF-8"),
    ],
)
def test_an_unreadable_declaration_is_one_fault_of_its_skill(write_skill, tmp_path, text, reason):
    write_skill("a", files={"skill.yaml": text})
    tools = find_tools(scan([tmp_path / "skills"]).skills.values())
    assert (dict(tools.by_id), [fault.tool for fault in tools.faults]) == ({}, [""])
    assert reason in tools.faults[0].reason


def test_of_equal_ids_the_first_skills_tool_is_used(write_skill, tmp_path):
    for name in ("a", "b"):
        write_skill(name, files={**FILES, "skill.yaml": json.dumps({"tools": [ENTRY]})})
    tools = find_tools(scan([tmp_path / "skills"]).skills.values())
    assert tools.by_id["a.run"].skill == "a"
    assert [(fault.skill, fault.reason) for fault in tools.faults] == [("b", "skill 'a' has a tool of the same id")]


def test_a_skill_without_declaration_has_no_tools(write_skill, tmp_path):
    write_skill("a")
    tools = find_tools(scan([tmp_path / "skills"]).skills.values())
    assert (dict(tools.by_id), tools.faults) == ({}, ())
